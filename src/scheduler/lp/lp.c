#include "scheduler/lp.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "scheduler/lp/lp_int.h"

enum { HD_REFINED = 3 };                          /* times */
#define HD_ROUGH 1e-3                             /* gap of what is not worth to be refined */

static const char *const texts[] = {
#define X(id, text) text,
	HD_LP_STATUSES(X)
#undef X
};

const char *hd_lp_status_text(enum hd_lp_status status) { return texts[status]; }

bool hd_lp_built(void) { return hd_lp_solver_built(); }

/* `*at` gets room for `need` elements; what it held stays. */
static enum hd_err grow(void **at, uint32_t had, uint32_t cap, size_t size)
{
	void *more = hd_alloc((size_t)cap * size);

	if (!more)
		return HD_E_NOMEM;
	if (had)
		memcpy(more, *at, (size_t)had * size);
	hd_free(*at);
	*at = more;
	return HD_OK;
}

static uint32_t doubled(uint32_t cap, uint32_t need)
{
	uint32_t more = cap ? cap : 64;

	while (more < need)
		more *= 2;
	return more;
}

static enum hd_err room_for_cols(struct hd_lp *lp, uint32_t need)
{
	uint32_t cap = doubled(lp->col_cap, need);
	double **arrays[] = { &lp->lo, &lp->hi, &lp->cost };
	enum hd_err err = HD_OK;

	for (size_t i = 0; !err && need > lp->col_cap && i < 3; i++)
		err = grow((void **)arrays[i], lp->ncols, cap, sizeof(double));
	if (!err && need > lp->col_cap)
		lp->col_cap = cap;
	return err;
}

static enum hd_err room_for_rows(struct hd_lp *lp, uint32_t need)
{
	uint32_t cap = doubled(lp->row_cap, need);
	double **arrays[] = { &lp->row_lo, &lp->row_hi, &lp->row_scale };
	enum hd_err err = HD_OK;

	for (size_t i = 0; !err && need > lp->row_cap && i < 3; i++)
		err = grow((void **)arrays[i], lp->nrows, cap, sizeof(double));
	if (!err && need > lp->row_cap)
		lp->row_cap = cap;
	return err;
}

static enum hd_err room_for_entries(struct hd_lp *lp, uint32_t need)
{
	uint32_t cap = doubled(lp->entry_cap, need);
	enum hd_err err = need > lp->entry_cap ? grow((void **)&lp->entry, lp->nentries, cap,
		sizeof *lp->entry) : HD_OK;

	if (!err && need > lp->entry_cap)
		lp->entry_cap = cap;
	return err;
}

struct hd_lp *hd_lp_new(bool maximise)
{
	struct hd_lp *lp = hd_lp_built() ? hd_alloc(sizeof *lp) : NULL;

	if (lp)
		*lp = (struct hd_lp){ .maximise = maximise };
	return lp;
}

void hd_lp_free(struct hd_lp *lp)
{
	if (!lp)
		return;
	hd_lp_solver_drop(lp);
	double *arrays[] = { lp->lo, lp->hi, lp->cost, lp->row_lo, lp->row_hi, lp->row_scale, lp->x, lp->dual,
		lp->reduced, lp->activity };
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
		hd_free(arrays[i]);
	hd_free(lp->entry);
	hd_free(lp);
}

enum hd_err hd_lp_cols(struct hd_lp *lp, uint32_t n, const double lo[], const double hi[],
	const double cost[], const uint32_t start[],
	const uint32_t idx[], const double val[])
{
	enum hd_err err = room_for_cols(lp, lp->ncols + n);

	if (!err && start)
		err = room_for_entries(lp, lp->nentries + start[n] - start[0]);
	for (uint32_t c = 0; !err && c < n; c++) {
		uint32_t col = lp->ncols + c;
		lp->lo[col] = lo[c];
		lp->hi[col] = hi[c];
		lp->cost[col] = cost[c];
		for (uint32_t k = start ? start[c] : 0; start && k < start[c + 1]; k++) {
			assert(idx[k] < lp->nrows && isfinite(val[k]));
			lp->entry[lp->nentries++] = (struct hd_lp_entry){ idx[k], col, val[k] };
		}
	}
	if (!err)
		lp->ncols += n;
	lp->costs_moved = true;
	return err;
}

enum hd_err hd_lp_rows(struct hd_lp *lp, uint32_t n, const double lo[], const double hi[],
	const uint32_t start[], const uint32_t idx[],
	const double val[])
{
	enum hd_err err = room_for_rows(lp, lp->nrows + n);

	if (!err)
		err = room_for_entries(lp, lp->nentries + start[n] - start[0]);
	for (uint32_t r = 0; !err && r < n; r++) {
		uint32_t row = lp->nrows + r;
		double largest = 0;
		for (uint32_t k = start[r]; k < start[r + 1]; k++) {
			assert(idx[k] < lp->ncols && isfinite(val[k]));
			largest = fmax(largest, fabs(val[k]));
			lp->entry[lp->nentries++] = (struct hd_lp_entry){ row, idx[k], val[k] };
		}
		lp->row_lo[row] = lo[r];
		lp->row_hi[row] = hi[r];
		lp->row_scale[row] = largest > 0 ? largest : 1;
	}
	if (!err)
		lp->nrows += n;
	lp->bounds_moved = true;
	return err;
}

void hd_lp_edit(struct hd_lp *lp, enum hd_lp_what what, uint32_t index, double lo, double hi_or_cost)
{
	assert(index < (what == HD_LP_ROW ? lp->nrows : lp->ncols));
	switch (what) {
	case HD_LP_COLUMN:
		lp->lo[index] = lo;
		lp->hi[index] = hi_or_cost;
		lp->bounds_moved = true;
		break;
	case HD_LP_ROW:
		lp->row_lo[index] = lo;
		lp->row_hi[index] = hi_or_cost;
		lp->bounds_moved = true;
		break;
	case HD_LP_COST:
		lp->cost[index] = hi_or_cost;
		lp->costs_moved = true;
		break;
	}
}

static double outside(double v, double lo, double hi, double unit)
{
	double below = isfinite(lo) ? (lo - v) / unit / (1 + fabs(lo) / unit) : 0,
		above = isfinite(hi) ? (v - hi) / unit / (1 + fabs(hi) / unit) : 0;

	return fmax(0, fmax(below, above));
}

/* Rule 4. Duals and reduced costs bound the objective from the other side (weak duality): a multiplier whose
 * bound is missing counts as residual, all others enter the dual objective, whatever their sign. */
static double certify(struct hd_lp *lp, double *objective)
{
	double worst = 0, primal = 0, dual = 0, unit = 0, sign = lp->maximise ? 1 : -1,
		*activity = lp->activity;

	if (lp->nrows)
		memset(activity, 0, lp->nrows * sizeof *activity);
	for (uint32_t c = 0; c < lp->ncols; c++) {
		lp->reduced[c] = lp->cost[c];
		primal += lp->cost[c] * lp->x[c];
		unit = fmax(unit, fabs(lp->cost[c]));
		worst = fmax(worst, outside(lp->x[c], lp->lo[c], lp->hi[c], 1));
	}
	unit = unit > 0 ? unit : 1;
	for (uint32_t k = 0; k < lp->nentries; k++) {
		const struct hd_lp_entry *e = &lp->entry[k];
		activity[e->row] += e->val * lp->x[e->col];
		lp->reduced[e->col] -= e->val * lp->dual[e->row];
	}
	for (uint32_t r = 0; r < lp->nrows; r++) {
		double bound = sign * lp->dual[r] > 0 ? lp->row_hi[r] : lp->row_lo[r];
		worst = fmax(worst, outside(activity[r], lp->row_lo[r], lp->row_hi[r], lp->row_scale[r]));
		if (isfinite(bound))
			dual += lp->dual[r] * bound;
		else
			worst = fmax(worst, fabs(lp->dual[r]) * lp->row_scale[r] / unit);
	}
	for (uint32_t c = 0; c < lp->ncols; c++) {
		double bound = sign * lp->reduced[c] > 0 ? lp->hi[c] : lp->lo[c];
		if (isfinite(bound))
			dual += lp->reduced[c] * bound;
		else
			worst = fmax(worst, fabs(lp->reduced[c]) / unit);
	}
	*objective = primal;
	return fmax(worst, fabs(dual - primal) / fmax(fabs(primal), unit));
}

static enum hd_err room_for_result(struct hd_lp *lp)
{
	enum hd_err err = HD_OK;

	if (lp->x_cap < lp->ncols) {
		err = grow((void **)&lp->x, 0, lp->col_cap, sizeof(double));
		if (!err)
			err = grow((void **)&lp->reduced, 0, lp->col_cap, sizeof(double));
		lp->x_cap = err ? 0 : lp->col_cap;
	}
	if (!err && lp->dual_cap < lp->nrows) {
		err = grow((void **)&lp->dual, 0, lp->row_cap, sizeof(double));
		if (!err)
			err = grow((void **)&lp->activity, 0, lp->row_cap, sizeof(double));
		lp->dual_cap = err ? 0 : lp->row_cap;
	}
	return err;
}

/* Without columns every row is 0, and solvers fall over it. */
static void solve_empty(struct hd_lp *lp, struct hd_lp_result *result)
{
	result->status = HD_LP_OPTIMAL;
	for (uint32_t r = 0; r < lp->nrows; r++) {
		lp->dual[r] = lp->activity[r] = 0;
		if (lp->row_lo[r] > 0 || lp->row_hi[r] < 0)
			result->status = HD_LP_INFEASIBLE;
	}
}

/* The tolerances of a solver are absolute; prices of thousands make a gap of what they leave. */
static enum hd_err refine(struct hd_lp *lp, const struct hd_lp_limits *within, struct hd_lp_result *result)
{
	struct hd_lp_raw raw = { HD_LP_OPTIMAL, 0 };
	enum hd_err err = HD_OK;

	for (int turn = 0; turn < HD_REFINED && !err && raw.status == HD_LP_OPTIMAL &&
		result->gap > within->gap && result->gap < HD_ROUGH; turn++) {
		err = hd_lp_solver_refine(lp, within, &raw);
		result->iterations += raw.iterations;
		result->gap = certify(lp, &result->objective);
	}
	return err;
}

enum hd_err hd_lp_solve(struct hd_lp *lp, const struct hd_lp_limits *limits, struct hd_lp_result *result)
{
	struct hd_lp_limits within = { limits && limits->seconds > 0 ? limits->seconds : 10, limits &&
		limits->iterations ? limits->iterations : 1000000,
		limits && limits->gap > 0 ? limits->gap : HD_LP_GAP };
	struct hd_lp_raw raw = { HD_LP_NUMERIC, 0 };
	enum hd_err err = room_for_result(lp);

	*result = (struct hd_lp_result){ .status = HD_LP_NUMERIC };
	if (!err && lp->ncols == 0)
		solve_empty(lp, result);
	for (int how = HD_LP_USUAL; !err && lp->ncols > 0 && how <= HD_LP_CAREFUL; how++) {
		err = hd_lp_solver_run(lp, &within, (enum hd_lp_try)how, &raw);
		result->iterations += raw.iterations;
		result->status = raw.status;
		if (err || raw.status == HD_LP_LIMIT)
			break;
		if (raw.status == HD_LP_INFEASIBLE || raw.status == HD_LP_UNBOUNDED)
			/* nothing to certify: said thrice, twice from nothing, it is believed */
			continue;
		if (raw.status == HD_LP_OPTIMAL) {
			result->gap = certify(lp, &result->objective);
			err = refine(lp, &within, result);
			if (result->gap <= within.gap)
				break;
			result->status = HD_LP_NUMERIC;
		}
	}
	result->x = lp->x;
	result->dual = lp->dual;
	result->reduced = lp->reduced;
	result->activity = lp->activity;
	return err;
}

enum hd_err hd_lp_check(struct hd_lp *lp, const double *x, const double *dual,
	const struct hd_lp_limits *limits, struct hd_lp_result *result)
{
	enum hd_err err = room_for_result(lp);

	*result = (struct hd_lp_result){ .status = HD_LP_NUMERIC };
	if (err)
		return err;
	memcpy(lp->x, x, lp->ncols * sizeof *x);
	memcpy(lp->dual, dual, lp->nrows * sizeof *dual);
	result->gap = certify(lp, &result->objective);
	if (result->gap <= (limits && limits->gap > 0 ? limits->gap : HD_LP_GAP))
		result->status = HD_LP_OPTIMAL;
	result->x = lp->x;
	result->dual = lp->dual;
	result->reduced = lp->reduced;
	result->activity = lp->activity;
	return HD_OK;
}
