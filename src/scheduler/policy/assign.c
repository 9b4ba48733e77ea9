/* Rectangular assignment by shortest augmenting paths (Jonker, Volgenant 1987; Crouse 2016), with the
 * tie-breaks of the solver that the published scheduler calls: columns wait in a list of descending index, a
 * free column wins among equals, the place of a scanned one is taken by the last of the list. */
#include <math.h>
#include <string.h>

#include "scheduler/policy/int.h"

struct assign {
	uint32_t nrows, ncols;
	hd_assign_cost *cost;
	const void *context;
	double *u, *v, *dist;                     /* duals of rows and columns; distance of columns */
	uint32_t *pred, *row_of, *remaining;      /* [ncols] */
	bool *scanned;                            /* [ncols] */
	uint32_t *column;                         /* [nrows] */
};

/* One tree from row `start`: the free column that it reaches, and how far that is. */
static uint32_t reach(struct assign *a, uint32_t start, double *far)
{
	uint32_t left = a->ncols, i = start, sink = HD_SCHED_NONE;
	double reached = 0;

	for (uint32_t k = 0; k < a->ncols; k++) {
		a->remaining[k] = a->ncols - k - 1;
		a->dist[k] = INFINITY;
		a->scanned[k] = false;
	}
	while (sink == HD_SCHED_NONE) {
		uint32_t best = HD_SCHED_NONE;
		double lowest = INFINITY;
		for (uint32_t k = 0; k < left; k++) {
			uint32_t j = a->remaining[k];
			double r = reached + a->cost(a->context, i, j) - a->u[i] - a->v[j];
			if (r < a->dist[j]) {
				a->dist[j] = r;
				a->pred[j] = i;
			}
			if (a->dist[j] < lowest || (a->dist[j] == lowest && a->row_of[j] == HD_SCHED_NONE)) {
				lowest = a->dist[j];
				best = k;
			}
		}
		/* no column has a cost that is a number */
		if (best == HD_SCHED_NONE || !isfinite(lowest))
			return HD_SCHED_NONE;
		reached = lowest;
		uint32_t j = a->remaining[best];
		if (a->row_of[j] == HD_SCHED_NONE)
			sink = j;
		else
			i = a->row_of[j];
		a->scanned[j] = true;
		a->remaining[best] = a->remaining[--left];
	}
	*far = reached;
	return sink;
}

static void augment(struct assign *a, uint32_t start, uint32_t sink, double far)
{
	a->u[start] += far;
	for (uint32_t j = 0; j < a->ncols; j++) {
		if (!a->scanned[j])
			continue;
		if (a->row_of[j] != HD_SCHED_NONE && a->row_of[j] != start)
			a->u[a->row_of[j]] += far - a->dist[j];
		a->v[j] -= far - a->dist[j];
	}
	for (uint32_t j = sink;;) {
		uint32_t i = a->pred[j], next = a->column[i];
		a->row_of[j] = i;
		a->column[i] = j;
		if (i == start)
			break;
		j = next;
	}
}

enum hd_err hd_assign(uint32_t nrows, uint32_t ncols, hd_assign_cost *cost, const void *context,
	const struct hd_policy_setting *set,
	struct hd_arena *arena, uint32_t *column)
{
	struct assign a = { .nrows = nrows, .ncols = ncols, .cost = cost, .context = context,
		.column = column };

	a.u = hd_arena_take(arena, nrows, sizeof *a.u);
	a.v = hd_arena_take(arena, ncols, sizeof *a.v);
	a.dist = hd_arena_take(arena, ncols, sizeof *a.dist);
	a.pred = hd_arena_take(arena, ncols, sizeof *a.pred);
	a.row_of = hd_arena_take(arena, ncols, sizeof *a.row_of);
	a.remaining = hd_arena_take(arena, ncols, sizeof *a.remaining);
	a.scanned = hd_arena_take(arena, ncols, sizeof *a.scanned);
	if (!a.u || !a.v || !a.dist || !a.pred || !a.row_of || !a.remaining || !a.scanned)
		return HD_E_NOMEM;
	for (uint32_t j = 0; j < ncols; j++)
		a.row_of[j] = HD_SCHED_NONE;
	for (uint32_t i = 0; i < nrows; i++)
		column[i] = HD_SCHED_NONE;
	for (uint32_t i = 0; i < nrows; i++) {
		double far;
		if (hd_policy_is_stopped(set))
			return HD_E_AGAIN;
		uint32_t sink = reach(&a, i, &far);
		if (sink == HD_SCHED_NONE)
			return HD_E_INVAL;
		augment(&a, i, sink, far);
	}
	return HD_OK;
}
