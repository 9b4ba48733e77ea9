/* solve_int.h -- what the two searches of the solver share; private to the folder.
 *
 * A class is all workers with the same devices, in the same order, and the same link. Its table is that of a
 * worker as a whole: the greedy division of solver.h, rule 1. A set says how many workers of each class are
 * used, each with one virtual node at least; a line is a set with its counts, in the order of the ranges. */
#ifndef HD_BALANCE_SOLVE_INT_H
#define HD_BALANCE_SOLVE_INT_H

#include "balance/solver.h"

struct hd_solve_class {
	/* those with more virtual nodes now first, then the lower */
	uint32_t nworkers, *worker;
	uint32_t ndevices, *type;                 /* of each, in the order of its devices */
	uint64_t bytes_per_s;
	struct hd_vn_cost cost;                   /* of the worker */
};

struct hd_solve_line {
	int64_t step_ps;
	uint32_t n, most_roots, roots;
	uint32_t *class_of, *count;               /* [n] in the order of the ranges */
};

struct hd_solve_search {
	const struct hd_solve_ask *ask;
	const uint8_t *allowed; const uint32_t *must;
	struct hd_solve_class *class; uint32_t nclasses;
	uint32_t *used;                           /* [nclasses] the set at hand */
	bool exact, found;
	uint8_t *range_roots;                     /* exact: [(V + 1) * (V + 1)] of [first, end) */
	uint32_t range_most;                      /* the most of them */
	struct hd_solve_line best;
	struct hd_arena *arena, *scratch;         /* scratch: of one set */
	struct hd_diag *diag;
};

HD_MUST_USE enum hd_err hd_solve_classes(struct hd_solve_search *s);
/* v virtual nodes shared out over devices of these types. */
void hd_solve_divide(const struct hd_solve_ask *ask, const uint32_t *type, uint32_t n, uint32_t v,
	uint32_t *count);
/* C of one member of n that has r roots. */
int64_t hd_solve_exchange(const struct hd_solve_ask *ask, uint64_t bytes_per_s, uint32_t r, uint32_t n);
/* Is this better than the best so far, as far as ties go before the plan in use? */
bool hd_solve_better(const struct hd_solve_search *s, const struct hd_solve_line *line);
HD_MUST_USE enum hd_err hd_solve_keep(struct hd_solve_search *s, const struct hd_solve_line *line);

/* The least line of the set at hand: kept if it is better than the best. floor_ps: no line of the set has
 * a smaller max cost. */
HD_MUST_USE enum hd_err hd_solve_exactly(struct hd_solve_search *s, int64_t floor_ps);

#endif
