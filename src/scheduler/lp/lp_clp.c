/* CLP (coin-or), by its C interface: the only file that knows it.
 *
 * It always minimises, with costs divided by the largest: its tolerances are absolute. First solve: its own
 * choice with presolve; without it and without perturbation when its duals fail the certificate: they are
 * what suffers. After edits dual simplex (bounds moved) or primal (costs moved or columns came), from the
 * basis it has. Never its barrier, which lacks a sparse factorisation in the packaged build. */
#include <float.h>
#include <math.h>
#include <string.h>

#include <coin/Clp_C_Interface.h>

#include "base/alloc.h"
#include "scheduler/lp/lp_int.h"

struct hd_lp_solver {
	Clp_Simplex *model;
	uint32_t ncols, nrows, nentries;          /* that it has heard of */
	enum hd_lp_try how;
};

bool hd_lp_solver_built(void) { return true; }

void hd_lp_solver_drop(struct hd_lp *lp)
{
	if (!lp->solver)
		return;
	Clp_deleteModel(lp->solver->model);
	hd_free(lp->solver);
	lp->solver = NULL;
}

static double unit(const struct hd_lp *lp, const struct hd_lp_solver *solver,
	uint32_t row) { return solver->how != HD_LP_BARE ? lp->row_scale[row] : 1; }

/* A batch of new columns or new rows: entries [from, to) of the program whose major index is in [first,
 * first + n). */
struct lp_batch { CoinBigIndex *start; int *index; double *value, *bound[3]; };

static void batch_drop(struct lp_batch *b)
{
	void *all[] = { b->start, b->index, b->value, b->bound[0], b->bound[1], b->bound[2] };

	for (size_t i = 0; i < 6; i++)
		hd_free(all[i]);
}

static enum hd_err batch_make(struct lp_batch *b, uint32_t n, uint32_t nentries)
{
	b->start = hd_alloc((n + 2) * sizeof *b->start);
	b->index = hd_alloc((nentries + 1) * sizeof *b->index);
	b->value = hd_alloc((nentries + 1) * sizeof *b->value);
	for (int i = 0; i < 3; i++)
		b->bound[i] = hd_alloc((n + 1) * sizeof(double));
	if (!b->start || !b->index || !b->value || !b->bound[0] || !b->bound[1] || !b->bound[2])
		return HD_E_NOMEM;
	memset(b->start, 0, (n + 2) * sizeof *b->start);
	return HD_OK;
}

/* Counting sort of the new entries: by column those in rows it knows, by row those in new rows. `first`:
 * of the new columns or rows. */
static void batch_sort(struct lp_batch *b, const struct hd_lp *lp, const struct hd_lp_solver *solver,
	bool by_row, uint32_t first, uint32_t n)
{
	for (uint32_t k = solver->nentries; k < lp->nentries; k++)
		if ((lp->entry[k].row >= solver->nrows) == by_row)
			b->start[(by_row ? lp->entry[k].row : lp->entry[k].col) - first + 2]++;
	for (uint32_t i = 2; i <= n + 1; i++)
		b->start[i] += b->start[i - 1];
	for (uint32_t k = solver->nentries; k < lp->nentries; k++) {
		const struct hd_lp_entry *e = &lp->entry[k];
		if ((e->row >= solver->nrows) != by_row)
			continue;
		CoinBigIndex at = b->start[(by_row ? e->row : e->col) - first + 1]++;
		b->index[at] = (int)(by_row ? e->col : e->row);
		b->value[at] = e->val / unit(lp, solver, e->row);
	}
}

static double largest_cost(const struct hd_lp *lp)
{
	double most = 0;

	for (uint32_t c = 0; c < lp->ncols; c++)
		most = fmax(most, fabs(lp->cost[c]));
	return most > 0 ? most : 1;
}

static double clp_bound(double v) { return isfinite(v) ? v : v < 0 ? -DBL_MAX : DBL_MAX; }

static enum hd_err add_cols(struct hd_lp *lp, struct hd_lp_solver *solver)
{
	uint32_t n = lp->ncols - solver->ncols;
	struct lp_batch b;
	enum hd_err err = batch_make(&b, n, lp->nentries - solver->nentries);

	if (!err && n) {
		batch_sort(&b, lp, solver, false, solver->ncols, n);
		for (uint32_t c = 0; c < n; c++) {
			b.bound[0][c] = clp_bound(lp->lo[solver->ncols + c]);
			b.bound[1][c] = clp_bound(lp->hi[solver->ncols + c]);
			b.bound[2][c] = 0;
		}
		Clp_addColumns(solver->model, (int)n, b.bound[0], b.bound[1], b.bound[2], b.start, b.index,
			b.value);
	}
	batch_drop(&b);
	return err;
}

static enum hd_err add_rows(struct hd_lp *lp, struct hd_lp_solver *solver)
{
	uint32_t n = lp->nrows - solver->nrows;
	struct lp_batch b;
	enum hd_err err = batch_make(&b, n, lp->nentries - solver->nentries);

	if (!err && n) {
		batch_sort(&b, lp, solver, true, solver->nrows, n);
		for (uint32_t r = 0; r < n; r++) {
			b.bound[0][r] = clp_bound(lp->row_lo[solver->nrows + r] / unit(lp, solver,
				solver->nrows + r));
			b.bound[1][r] = clp_bound(lp->row_hi[solver->nrows + r] / unit(lp, solver,
				solver->nrows + r));
		}
		Clp_addRows(solver->model, (int)n, b.bound[0], b.bound[1], b.start, b.index, b.value);
	}
	batch_drop(&b);
	return err;
}

static void move_bounds(struct hd_lp *lp, struct hd_lp_solver *solver)
{
	double *lo = Clp_rowLower(solver->model), *hi = Clp_rowUpper(solver->model);

	for (uint32_t r = 0; r < lp->nrows; r++) {
		lo[r] = clp_bound(lp->row_lo[r] / unit(lp, solver, r));
		hi[r] = clp_bound(lp->row_hi[r] / unit(lp, solver, r));
	}
	lo = Clp_columnLower(solver->model);
	hi = Clp_columnUpper(solver->model);
	for (uint32_t c = 0; c < lp->ncols; c++) {
		lo[c] = clp_bound(lp->lo[c]);
		hi[c] = clp_bound(lp->hi[c]);
	}
}

static enum hd_err make(struct hd_lp *lp, enum hd_lp_try how)
{
	struct hd_lp_solver *solver = hd_alloc(sizeof *solver);

	if (!solver)
		return HD_E_NOMEM;
	*solver = (struct hd_lp_solver){ .model = Clp_newModel(), .how = how };
	lp->solver = solver;
	Clp_setLogLevel(solver->model, 0);
	Clp_setOptimizationDirection(solver->model, 1);
	Clp_setPrimalTolerance(solver->model, 1e-9);
	Clp_setDualTolerance(solver->model, 1e-9);
	if (how == HD_LP_BARE)
		Clp_scaling(solver->model, 0);
	if (how != HD_LP_USUAL)
		Clp_setPerturbation(solver->model, 102);        /* never */
	/* rows come empty: their entries with the columns */
	Clp_resize(solver->model, (int)lp->nrows, 0);
	solver->nrows = lp->nrows;
	return HD_OK;
}

static enum hd_lp_status status_of(const struct hd_lp_solver *solver)
{
	static const enum hd_lp_status map[] = { HD_LP_OPTIMAL, HD_LP_INFEASIBLE, HD_LP_UNBOUNDED,
		HD_LP_LIMIT };
	int status = Clp_status(solver->model);

	return status >= 0 && status < 4 ? map[status] : HD_LP_NUMERIC;
}

static void solve(struct hd_lp_solver *solver, bool fresh, bool costs)
{
	if (solver->how == HD_LP_BARE) {
		Clp_dual(solver->model, 0);
	} else if (solver->how == HD_LP_CAREFUL) {
		Clp_primal(solver->model, 0);
		Clp_dual(solver->model, 0);
	} else if (fresh) {
		Clp_initialSolve(solver->model);
	} else if (costs) {
		Clp_primal(solver->model, 0);
	} else {
		Clp_dual(solver->model, 0);
	}
}

enum hd_err hd_lp_solver_run(struct hd_lp *lp, const struct hd_lp_limits *limits, enum hd_lp_try how,
	struct hd_lp_raw *raw)
{
	enum hd_err err = HD_OK;
	bool fresh, costs;

	if (how != HD_LP_USUAL || (lp->solver && lp->solver->how != HD_LP_USUAL))
		hd_lp_solver_drop(lp);
	fresh = !lp->solver;
	if (fresh)
		err = make(lp, how);
	if (err)
		return err;
	struct hd_lp_solver *solver = lp->solver;
	costs = lp->costs_moved || lp->ncols > solver->ncols;
	err = add_cols(lp, solver);
	if (!err)
		err = add_rows(lp, solver);
	if (err) {
		hd_lp_solver_drop(lp);
		return err;
	}
	solver->ncols = lp->ncols;
	solver->nrows = lp->nrows;
	solver->nentries = lp->nentries;
	move_bounds(lp, solver);
	double most = largest_cost(lp), sign = lp->maximise ? -1 : 1;
	double *cost = Clp_objective(solver->model);
	for (uint32_t c = 0; c < lp->ncols; c++)
		cost[c] = sign * lp->cost[c] / most;
	lp->costs_moved = lp->bounds_moved = false;
	Clp_setNumberIterations(solver->model, 0);
	Clp_setMaximumIterations(solver->model, (int)limits->iterations);
	Clp_setMaximumSeconds(solver->model, limits->seconds);
	solve(solver, fresh, costs);
	raw->status = status_of(solver);
	raw->iterations = (uint32_t)Clp_numberIterations(solver->model);
	if (raw->status != HD_LP_OPTIMAL)
		return HD_OK;
	memcpy(lp->x, Clp_primalColumnSolution(solver->model), lp->ncols * sizeof(double));
	const double *dual = Clp_dualRowSolution(solver->model);
	for (uint32_t r = 0; r < lp->nrows; r++)
		lp->dual[r] = sign * dual[r] * most / unit(lp, solver, r);
	return HD_OK;
}

#define HD_ENLARGED 1e6

/* The program of what is missing: rows and bounds less what x comes to, costs less what the duals pay for,
 * both enlarged. Its solution is a correction, as exact as the tolerances are absolute (iterative
 * refinement). */
static void enlarge(struct hd_lp *lp, struct hd_lp_solver *solver, const double *activity, double most)
{
	double *lo = Clp_rowLower(solver->model), *hi = Clp_rowUpper(solver->model),
		*cost = Clp_objective(solver->model), sign = lp->maximise ? -1 : 1;

	for (uint32_t r = 0; r < lp->nrows; r++) {
		lo[r] = clp_bound((lp->row_lo[r] - activity[r]) / unit(lp, solver, r) * HD_ENLARGED);
		hi[r] = clp_bound((lp->row_hi[r] - activity[r]) / unit(lp, solver, r) * HD_ENLARGED);
	}
	lo = Clp_columnLower(solver->model);
	hi = Clp_columnUpper(solver->model);
	for (uint32_t c = 0; c < lp->ncols; c++) {
		lo[c] = clp_bound((lp->lo[c] - lp->x[c]) * HD_ENLARGED);
		hi[c] = clp_bound((lp->hi[c] - lp->x[c]) * HD_ENLARGED);
		cost[c] = sign * lp->reduced[c] / most * HD_ENLARGED;
	}
}

enum hd_err hd_lp_solver_refine(struct hd_lp *lp, const struct hd_lp_limits *limits, struct hd_lp_raw *raw)
{
	struct hd_lp_solver *solver = lp->solver;
	double most = largest_cost(lp), sign = lp->maximise ? -1 : 1;

	enlarge(lp, solver, lp->activity, most);
	/* the next run begins from the program as given */
	lp->costs_moved = lp->bounds_moved = true;
	Clp_setNumberIterations(solver->model, 0);
	Clp_setMaximumIterations(solver->model, (int)limits->iterations);
	Clp_setMaximumSeconds(solver->model, limits->seconds);
	Clp_dual(solver->model, 0);
	raw->status = status_of(solver);
	raw->iterations = (uint32_t)Clp_numberIterations(solver->model);
	if (raw->status != HD_LP_OPTIMAL)
		return HD_OK;
	const double *x = Clp_primalColumnSolution(solver->model), *dual = Clp_dualRowSolution(solver->model);
	for (uint32_t c = 0; c < lp->ncols; c++)
		lp->x[c] += x[c] / HD_ENLARGED;
	for (uint32_t r = 0; r < lp->nrows; r++)
		lp->dual[r] += sign * dual[r] * most / unit(lp, solver, r) / HD_ENLARGED;
	return HD_OK;
}
