/* The one linear program behind the share policies: shapes as columns, time of each job and devices of each
 * type as rows, and for each job a promise row in normalised throughput, z_i - g_i c >= lo_i. A policy
 * chooses g, lo and the worth of shapes.
 *
 * A coefficient of the level column c cannot be edited (lp.h): hd_program_level closes the old column at 0
 * and adds a new one.
 *
 * Many pairs are not listed but priced: after a solve every pair of jobs of equal scale is held against the
 * prices, the HD_BEST best reduced costs become columns, until none is above HD_IMPROVES of the largest cost.
 * What is optimal over the listed columns and leaves no reduced cost is optimal over all.
 *
 * Programs of many single jobs are tried by prices first (blocks.c); the solver is asked where that does
 * not get there. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/policy/int.h"

/* single shapes from which prices are tried first; pair columns up to which all are listed; added a turn;
 * turns */
enum { HD_LARGE = 3000, HD_LISTED = 6000, HD_BEST = 200, HD_TURNS = 500 };
#define HD_IMPROVES 1e-9

static enum hd_err no_memory(struct hd_policy_lp *pg) { return hd_fail(pg->diag, HD_E_NOMEM,
	"no memory for a program of %u shapes", pg->nshapes); }

/* ---- shapes ---- */

static uint32_t *slot(const struct hd_policy_lp *pg, uint32_t a, uint32_t b, uint32_t type)
{
	uint64_t key = ((uint64_t)a * pg->seen->state->njobs + b) * pg->seen->state->ntypes + type;
	uint32_t mask = pg->listed_cap - 1, at = (uint32_t)((key * 0x9E3779B97F4A7C15u) >> 32) & mask;

	for (; pg->listed[at]; at = (at + 1) & mask) {
		const struct hd_shape *s = &pg->shape[pg->listed[at] - 1];
		if (s->member[0] == a && s->member[1] == b && s->need[0].type == type)
			break;
	}
	return &pg->listed[at];
}

static enum hd_err room(struct hd_policy_lp *pg)
{
	uint32_t cap = pg->cap ? 2 * pg->cap : 256;
	struct hd_shape *shape = hd_arena_take(pg->arena, cap, sizeof *shape);
	double (*gain)[2] = hd_arena_take(pg->arena, cap, sizeof *gain);
	uint32_t *col = hd_arena_take(pg->arena, cap, sizeof *col);

	if (!shape || !gain || !col)
		return no_memory(pg);
	if (pg->nshapes) {
		memcpy(shape, pg->shape, pg->nshapes * sizeof *shape);
		memcpy(gain, pg->gain, pg->nshapes * sizeof *gain);
		memcpy(col, pg->col, pg->nshapes * sizeof *col);
	}
	pg->shape = shape;
	pg->gain = gain;
	pg->col = col;
	pg->cap = cap;
	return HD_OK;
}

/* The table of listed pairs is kept at most half full. */
static enum hd_err room_in_table(struct hd_policy_lp *pg, uint32_t npairs)
{
	uint32_t cap = 1024;

	while (cap < 4 * npairs)
		cap *= 2;
	if (2 * npairs < pg->listed_cap)
		return HD_OK;
	pg->listed = hd_arena_take(pg->arena, cap, sizeof *pg->listed);
	if (!pg->listed)
		return no_memory(pg);
	pg->listed_cap = cap;
	for (uint32_t k = 0; k < pg->nshapes; k++)
		if (pg->shape[k].nmembers == 2)
			*slot(pg, pg->shape[k].member[0], pg->shape[k].member[1],
				pg->shape[k].need[0].type) = k + 1;
	return HD_OK;
}

static enum hd_err add_shape(struct hd_policy_lp *pg, const struct hd_shape *shape, const double rate[2])
{
	enum hd_err err = pg->nshapes == pg->cap ? room(pg) : HD_OK;

	if (!err && shape->nmembers == 2)
		err = room_in_table(pg, pg->nshapes + 1);
	if (err)
		return err;
	pg->shape[pg->nshapes] = *shape;
	for (int k = 0; k < shape->nmembers; k++)
		pg->gain[pg->nshapes][k] = rate[k] / pg->seen->p[shape->member[k]];
	if (shape->nmembers == 2)
		*slot(pg, shape->member[0], shape->member[1], shape->need[0].type) = pg->nshapes + 1;
	pg->nshapes++;
	return HD_OK;
}

static enum hd_err add_singles(struct hd_policy_lp *pg)
{
	const struct hd_sched_state *s = pg->seen->state;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; !err && i < s->njobs; i++)
		for (uint32_t j = 0; !err && j < s->ntypes; j++)
			if (!pg->seen->absent[i] && hd_seen_rate(pg->seen, i, j) > 0) {
				struct hd_shape shape = hd_way_single(s, i, j);
				err = add_shape(pg, &shape, (double[]){ hd_seen_rate(pg->seen, i, j), 0 });
			}
	return err;
}

static enum hd_err add_pairs(struct hd_policy_lp *pg, uint32_t *found, bool list)
{
	const struct hd_sched_state *s = pg->seen->state;
	enum hd_err err = HD_OK;
	double rate[2];

	for (uint32_t a = 0; !err && a < s->njobs; a++)
		for (uint32_t b = a + 1; !err && b < s->njobs && (list || *found <= HD_LISTED); b++)
			for (uint32_t j = 0; !err && j < s->ntypes; j++)
				if (hd_seen_pair(pg->seen, a, b, j, rate)) {
					struct hd_shape shape = hd_way_pair(s, a, b, j);
					(*found)++;
					err = list ? add_shape(pg, &shape, rate) : HD_OK;
				}
	return err;
}

/* ---- columns and rows ---- */

struct shape_entries { uint32_t row[16]; double val[16]; uint32_t n; };

static void enter(struct shape_entries *e, uint32_t row, double val)
{
	if (row == HD_SCHED_NONE || val == 0)
		return;
	assert(e->n < 16);
	e->row[e->n] = row;
	e->val[e->n++] = val;
}

static void column_of(const struct hd_policy_lp *pg, uint32_t k, struct shape_entries *e)
{
	const struct hd_shape *s = &pg->shape[k];

	e->n = 0;
	for (int m = 0; m < s->nmembers; m++) {
		enter(e, pg->time_row[s->member[m]], 1);
		enter(e, pg->promise_row[s->member[m]], pg->gain[k][m]);
	}
	for (int d = 0; d < s->nneeds; d++)
		enter(e, pg->cap_row[s->need[d].type], s->need[d].n);
	for (uint32_t r = 0; r < pg->nrows_over; r++)
		enter(e, pg->row_over[r], pg->row_worth[r](pg, k, pg->row_context[r]));
}

/* Shapes [from, nshapes) become columns. */
static enum hd_err columns(struct hd_policy_lp *pg, uint32_t from)
{
	uint32_t n = pg->nshapes - from, used = 0;
	double *lo = hd_arena_take(pg->arena, n + 1, sizeof *lo),
		*hi = hd_arena_take(pg->arena, n + 1, sizeof *hi);
	double *cost = hd_arena_take(pg->arena, n + 1, sizeof *cost),
		*val = hd_arena_take(pg->arena, 16 * (size_t)n + 1, sizeof *val);
	uint32_t *start = hd_arena_take(pg->arena, n + 1, sizeof *start),
		*idx = hd_arena_take(pg->arena, 16 * (size_t)n + 1, sizeof *idx);
	struct shape_entries e;

	if (!lo || !hi || !cost || !val || !start || !idx)
		return no_memory(pg);
	for (uint32_t k = 0; k < n; k++) {
		column_of(pg, from + k, &e);
		hi[k] = INFINITY;
		cost[k] = pg->worth ? pg->worth(pg, from + k, pg->context) : 0;
		for (uint32_t i = 0; i < e.n; i++, used++) {
			idx[used] = e.row[i];
			val[used] = e.val[i];
		}
		start[k + 1] = used;
		pg->col[from + k] = pg->ncols + k;
	}
	enum hd_err err = hd_lp_cols(pg->lp, n, lo, hi, cost, start, idx, val);
	pg->ncols += n;
	return err ? no_memory(pg) : HD_OK;
}

/* Row-wise, so that each row's largest coefficient is known when it comes. */
static enum hd_err base_rows(struct hd_policy_lp *pg)
{
	const struct hd_sched_state *s = pg->seen->state;
	uint32_t nrows = 0, n = 2 * s->njobs + s->ntypes, entries = 0;
	double *lo = hd_arena_take(pg->arena, n, sizeof *lo), *hi = hd_arena_take(pg->arena, n, sizeof *hi);
	uint32_t *start = hd_arena_take(pg->arena, (size_t)n + 2, sizeof *start);
	struct shape_entries e;

	if (!lo || !hi || !start)
		return no_memory(pg);
	for (uint32_t i = 0; i < s->njobs; i++) {
		pg->time_row[i] = pg->promise_row[i] = HD_SCHED_NONE;
		pg->promise_lo[i] = -INFINITY;
		if (pg->seen->absent[i])
			continue;
		lo[nrows] = -INFINITY;
		hi[nrows] = 1;
		pg->time_row[i] = nrows++;
		lo[nrows] = -INFINITY;
		hi[nrows] = INFINITY;
		pg->promise_row[i] = nrows++;
	}
	for (uint32_t j = 0; j < s->ntypes; j++) {
		pg->cap_row[j] = s->types[j].n ? nrows : HD_SCHED_NONE;
		lo[nrows] = -INFINITY;
		hi[nrows] = s->types[j].n;
		nrows += s->types[j].n > 0;
	}
	for (uint32_t k = 0; k < pg->nshapes; k++) {
		column_of(pg, k, &e);
		entries += e.n;
		for (uint32_t i = 0; i < e.n; i++)
			start[e.row[i] + 2]++;
	}
	for (uint32_t r = 2; r <= nrows + 1; r++)
		start[r] += start[r - 1];
	uint32_t *idx = hd_arena_take(pg->arena, entries + 1, sizeof *idx);
	double *val = hd_arena_take(pg->arena, entries + 1, sizeof *val);
	if (!idx || !val)
		return no_memory(pg);
	for (uint32_t k = 0; k < pg->nshapes; k++) {
		column_of(pg, k, &e);
		for (uint32_t i = 0; i < e.n; i++) {
			uint32_t at = start[e.row[i] + 1]++;
			idx[at] = pg->col[k];
			val[at] = e.val[i];
		}
	}
	pg->nrows = nrows;
	return hd_lp_rows(pg->lp, nrows, lo, hi, start, idx, val) ? no_memory(pg) : HD_OK;
}

static enum hd_err base_columns(struct hd_policy_lp *pg)
{
	uint32_t n = pg->nshapes;
	double *zero = hd_arena_take(pg->arena, n + 1, sizeof *zero),
		*inf = hd_arena_take(pg->arena, n + 1, sizeof *inf);

	if (!zero || !inf)
		return no_memory(pg);
	for (uint32_t k = 0; k < n; k++) {
		inf[k] = INFINITY;
		pg->col[k] = k;
	}
	pg->ncols = n;
	return hd_lp_cols(pg->lp, n, zero, inf, zero, NULL, NULL, NULL) ? no_memory(pg) : HD_OK;
}

enum hd_err hd_program_open(struct hd_policy_lp *pg, const struct hd_seen *seen, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_sched_state *s = seen->state;
	uint32_t npairs = 0;

	*pg = (struct hd_policy_lp){ .seen = seen, .arena = arena, .diag = diag, .level = HD_SCHED_NONE };
	pg->time_row = hd_arena_take(arena, s->njobs, sizeof *pg->time_row);
	pg->promise_row = hd_arena_take(arena, s->njobs, sizeof *pg->promise_row);
	pg->promise_lo = hd_arena_take(arena, s->njobs, sizeof *pg->promise_lo);
	pg->cap_row = hd_arena_take(arena, s->ntypes, sizeof *pg->cap_row);
	pg->lp = hd_lp_new(true);
	if (!pg->time_row || !pg->promise_row || !pg->promise_lo || !pg->cap_row || !pg->lp)
		return no_memory(pg);
	enum hd_err err = add_singles(pg);
	pg->large = pg->nshapes >= HD_LARGE && seen->set->variant != HD_VARIANT_PACKED;
	if (!err && seen->set->variant == HD_VARIANT_PACKED) {
		err = add_pairs(pg, &npairs, false);
		pg->generate = npairs > HD_LISTED;
		if (!err)
			err = pg->generate ? room_in_table(pg, 1) : add_pairs(pg, &npairs, true);
	}
	if (!err)
		err = base_columns(pg);
	return err ? err : base_rows(pg);
}

void hd_program_close(struct hd_policy_lp *pg)
{
	hd_lp_free(pg->lp);
	pg->lp = NULL;
}

enum hd_err hd_program_level(struct hd_policy_lp *pg, const double *g)
{
	const struct hd_sched_state *s = pg->seen->state;
	uint32_t start[2] = { 0, 0 }, n = 0, *idx = hd_arena_take(pg->arena, s->njobs + 1, sizeof *idx);
	double zero = 0, inf = INFINITY, one = 1, *val = hd_arena_take(pg->arena, s->njobs + 1, sizeof *val);

	if (!idx || !val)
		return no_memory(pg);
	if (pg->level != HD_SCHED_NONE) {
		hd_lp_edit(pg->lp, HD_LP_COLUMN, pg->level, 0, 0);
		hd_lp_edit(pg->lp, HD_LP_COST, pg->level, 0, 0);
	}
	pg->level = HD_SCHED_NONE;
	pg->g = g;
	if (!g)
		return HD_OK;
	for (uint32_t i = 0; i < s->njobs; i++)
		if (pg->promise_row[i] != HD_SCHED_NONE && g[i] > 0) {
			idx[n] = pg->promise_row[i];
			val[n++] = -g[i];
		}
	start[1] = n;
	if (n == 0)
		inf = 0;
	pg->level = pg->ncols++;
	return hd_lp_cols(pg->lp, 1, &zero, &inf, &one, start, idx, val) ? no_memory(pg) : HD_OK;
}

void hd_program_promise(struct hd_policy_lp *pg, uint32_t job, double lo)
{
	assert(pg->slack == 0);                           /* what is relaxed is settled */
	pg->promise_lo[job] = lo;
	if (pg->promise_row[job] != HD_SCHED_NONE)
		hd_lp_edit(pg->lp, HD_LP_ROW, pg->promise_row[job], lo, INFINITY);
}

void hd_program_relax(struct hd_policy_lp *pg, double slack)
{
	pg->slack = slack;
	for (uint32_t i = 0; i < pg->seen->state->njobs; i++)
		if (pg->promise_row[i] != HD_SCHED_NONE && isfinite(pg->promise_lo[i]))
			hd_lp_edit(pg->lp, HD_LP_ROW, pg->promise_row[i],
				pg->promise_lo[i] - slack * fabs(pg->promise_lo[i]), INFINITY);
	for (uint32_t r = 0; r < pg->nrows_over; r++)
		hd_lp_edit(pg->lp, HD_LP_ROW, pg->row_over[r], pg->row_lo[r] - slack * fabs(pg->row_lo[r]),
			INFINITY);
}

void hd_program_worth(struct hd_policy_lp *pg, hd_worth *worth, const void *context)
{
	pg->worth = worth;
	pg->context = context;
	for (uint32_t k = 0; k < pg->nshapes; k++)
		hd_lp_edit(pg->lp, HD_LP_COST, pg->col[k], 0, worth ? worth(pg, k, context) : 0);
}

enum hd_err hd_program_rows(struct hd_policy_lp *pg, uint32_t n, const double lo[], const double hi[],
	const uint32_t start[], const uint32_t idx[],
	const double val[], uint32_t *first)
{
	*first = pg->nrows;
	pg->mixed = true;
	pg->nrows += n;
	return hd_lp_rows(pg->lp, n, lo, hi, start, idx, val) ? no_memory(pg) : HD_OK;
}

enum hd_err hd_program_cols(struct hd_policy_lp *pg, uint32_t n, const double lo[], const double hi[],
	const double cost[], const uint32_t start[],
	const uint32_t idx[], const double val[], uint32_t *first)
{
	*first = pg->ncols;
	pg->mixed = true;
	pg->ncols += n;
	return hd_lp_cols(pg->lp, n, lo, hi, cost, start, idx, val) ? no_memory(pg) : HD_OK;
}

enum hd_err hd_program_row(struct hd_policy_lp *pg, hd_worth *worth, const void *context, double lo)
{
	uint32_t start[2] = { 0, 0 }, n = 0, *idx = hd_arena_take(pg->arena, pg->nshapes + 1, sizeof *idx);
	double inf = INFINITY, *val = hd_arena_take(pg->arena, pg->nshapes + 1, sizeof *val);

	assert(pg->nrows_over < HD_PROGRAM_ROWS);
	if (!idx || !val)
		return no_memory(pg);
	for (uint32_t k = 0; k < pg->nshapes; k++) {
		val[n] = worth(pg, k, context);
		idx[n] = pg->col[k];
		n += val[n] != 0;
	}
	start[1] = n;
	pg->row_worth[pg->nrows_over] = worth;
	pg->row_context[pg->nrows_over] = context;
	pg->row_lo[pg->nrows_over] = lo;
	pg->row_over[pg->nrows_over++] = pg->nrows++;
	return hd_lp_rows(pg->lp, 1, &lo, &inf, start, idx, val) ? no_memory(pg) : HD_OK;
}

enum hd_err hd_program_want(struct hd_policy_lp *pg, uint32_t a, uint32_t b, uint32_t type)
{
	uint32_t from = pg->nshapes;
	double rate[2];

	if (!pg->generate || !hd_seen_pair(pg->seen, a, b, type, rate) || *slot(pg, a, b, type))
		return HD_OK;
	struct hd_shape shape = hd_way_pair(pg->seen->state, a, b, type);
	enum hd_err err = add_shape(pg, &shape, rate);
	return err ? err : columns(pg, from);
}

/* ---- solving ---- */

struct pair_offer { double reduced; uint32_t a, b, type; };

static int better(const void *a, const void *b)
{
	const struct pair_offer *x = a, *y = b;

	if (x->reduced != y->reduced)
		return x->reduced > y->reduced ? -1 : 1;
	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	return x->b != y->b ? (x->b < y->b ? -1 : 1) : x->type < y->type ? -1 : x->type > y->type;
}

/* The reduced cost of a shape that is no column yet: it stands at pg->nshapes for the moment. */
static double reduced_cost(const struct hd_policy_lp *pg)
{
	struct shape_entries e;
	double d = pg->worth ? pg->worth(pg, pg->nshapes, pg->context) : 0;

	column_of(pg, pg->nshapes, &e);
	for (uint32_t i = 0; i < e.n; i++)
		d -= e.val[i] * pg->last.dual[e.row[i]];
	return d;
}

/* What a reduced cost must be above: costs may be steps or money in any unit. */
static double improves(const struct hd_policy_lp *pg)
{
	double most = pg->level == HD_SCHED_NONE ? 0 : 1;

	for (uint32_t k = 0; pg->worth && k < pg->nshapes; k++)
		most = fmax(most, fabs(pg->worth(pg, k, pg->context)));
	return HD_IMPROVES * (most > 0 ? most : 1);
}

/* Best pairs that are no columns, at most HD_BEST; kept sorted in batches of twice that. */
static enum hd_err price(struct hd_policy_lp *pg, uint32_t *added)
{
	const struct hd_sched_state *s = pg->seen->state;
	struct pair_offer offers[2 * HD_BEST];
	double rate[2], least = improves(pg);
	uint32_t n = 0, from = pg->nshapes;
	enum hd_err err = pg->nshapes == pg->cap ? room(pg) : HD_OK;

	for (uint32_t a = 0; !err && a < s->njobs; a++)
		for (uint32_t b = a + 1; b < s->njobs; b++)
			for (uint32_t j = 0; s->jobs[a].scale == s->jobs[b].scale && j < s->ntypes; j++) {
				if (!hd_seen_pair(pg->seen, a, b, j, rate) || *slot(pg, a, b, j))
					continue;
				pg->shape[pg->nshapes] = (struct hd_shape){ .nmembers = 2, .nneeds = 1,
					.member = { a, b }, .rate = { rate[0], rate[1] },
					.need = { { j, s->jobs[a].scale } } };
				pg->gain[pg->nshapes][0] = rate[0] / pg->seen->p[a];
				pg->gain[pg->nshapes][1] = rate[1] / pg->seen->p[b];
				double d = reduced_cost(pg);
				if (d <= least)
					continue;
				offers[n++] = (struct pair_offer){ d, a, b, j };
				if (n == 2 * HD_BEST) {
					qsort(offers, n, sizeof *offers, better);
					n = HD_BEST;
				}
			}
	qsort(offers, n, sizeof *offers, better);
	n = n < HD_BEST ? n : HD_BEST;
	for (uint32_t k = 0; !err && k < n; k++) {
		struct hd_shape shape = hd_way_pair(s, offers[k].a, offers[k].b, offers[k].type);
		(void)hd_seen_pair(pg->seen, offers[k].a, offers[k].b, offers[k].type, rate);
		err = add_shape(pg, &shape, rate);
	}
	*added = n;
	return err || n == 0 ? err : columns(pg, from);
}

static enum hd_err solve_once(struct hd_policy_lp *pg)
{
	const struct hd_lp_limits limits = { .iterations = pg->seen->set->lp_iterations,
		.gap = pg->seen->set->lp_gap };
	bool solved = false;

	if (hd_policy_is_stopped(pg->seen->set))
		return hd_fail(pg->diag, HD_E_AGAIN, "a program of %u shapes: cancelled",
			pg->nshapes);
	enum hd_err err = pg->large && !pg->mixed ? hd_blocks_solve(pg, &limits, &solved) : HD_OK;

	if (!err && !solved)
		err = hd_lp_solve(pg->lp, &limits, &pg->last);
	pg->nlps++;
	pg->iterations += pg->last.iterations;
	if (err)
		return no_memory(pg);
	switch (pg->last.status) {
	case HD_LP_OPTIMAL:
		pg->gap = fmax(pg->gap, pg->last.gap);
		return HD_OK;
	case HD_LP_INFEASIBLE:
		return HD_OK;
	case HD_LP_UNBOUNDED:
	case HD_LP_LIMIT:
	case HD_LP_NUMERIC:
		break;
	}
	return hd_fail(pg->diag, HD_E_AGAIN, "a program of %u shapes: %s", pg->nshapes,
		hd_lp_status_text(pg->last.status));
}

enum hd_err hd_program_solve(struct hd_policy_lp *pg)
{
	uint32_t added = 1;
	enum hd_err err = solve_once(pg);

	for (uint32_t turn = 0; !err && pg->generate && added && turn < HD_TURNS &&
		pg->last.status == HD_LP_OPTIMAL; turn++) {
		err = price(pg, &added);
		if (!err && added)
			err = solve_once(pg);
		/* reported to the caller: the search for better shapes was cut short */
		pg->cut |= added && turn + 1 == HD_TURNS;
	}
	return err;
}

double hd_program_c(const struct hd_policy_lp *pg) { return pg->level == HD_SCHED_NONE ? 0 :
	pg->last.x[pg->level]; }

void hd_program_z(const struct hd_policy_lp *pg, double *z)
{
	for (uint32_t i = 0; i < pg->seen->state->njobs; i++)
		z[i] = 0;
	for (uint32_t k = 0; k < pg->nshapes; k++)
		for (int m = 0; m < pg->shape[k].nmembers; m++)
			z[pg->shape[k].member[m]] += pg->gain[k][m] * pg->last.x[pg->col[k]];
}

double hd_program_l(const struct hd_policy_lp *pg, uint32_t job)
{
	return pg->promise_row[job] == HD_SCHED_NONE ? 0 : fmax(0, -pg->last.dual[pg->promise_row[job]]);
}

enum hd_err hd_program_prices(const struct hd_policy_lp *pg, struct hd_shares *out)
{
	const struct hd_sched_state *s = pg->seen->state;
	double *y = hd_arena_take(pg->arena, s->ntypes, sizeof *y),
		*u = hd_arena_take(pg->arena, s->njobs, sizeof *u);
	double *l = hd_arena_take(pg->arena, s->njobs, sizeof *l);

	if (!y || !u || !l)
		return no_memory((struct hd_policy_lp *)pg);
	for (uint32_t j = 0; j < s->ntypes; j++)
		y[j] = pg->cap_row[j] == HD_SCHED_NONE ? 0 : fmax(0, pg->last.dual[pg->cap_row[j]]);
	for (uint32_t i = 0; i < s->njobs; i++) {
		u[i] = pg->time_row[i] == HD_SCHED_NONE ? 0 : fmax(0, pg->last.dual[pg->time_row[i]]);
		l[i] = hd_program_l(pg, i);
	}
	out->y = y;
	out->u = u;
	out->l = l;
	/* nonbasic at 0 without a reduced cost: another optimum is as good */
	for (uint32_t k = 0; k < pg->nshapes; k++)
		out->degenerate |= pg->last.x[pg->col[k]] <= 0 && fabs(pg->last.reduced[pg->col[k]]) < 1e-12;
	return HD_OK;
}

enum hd_err hd_program_shares(const struct hd_policy_lp *pg, struct hd_shares *out)
{
	struct hd_collect c = { .out = out, .arena = pg->arena };
	enum hd_err err = HD_OK;

	out->nshapes = 0;
	for (uint32_t k = 0; !err && k < pg->nshapes; k++)
		if (pg->last.x[pg->col[k]] >= 1e-9)
			err = hd_collect(&c, &pg->shape[k], pg->last.x[pg->col[k]]);
	out->nlps = pg->nlps;
	out->iterations = pg->iterations;
	out->gap = pg->gap;
	out->cut = pg->cut;
	return err ? no_memory((struct hd_policy_lp *)pg) : HD_OK;
}
