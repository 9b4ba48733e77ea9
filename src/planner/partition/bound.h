/* bound.h -- can row 0 keep every term at most a bound? The decision that replaces the recurrence on large
 * problems.
 *
 * The best time is the least bound that can be kept, found by halving over the doubles themselves. For a
 * bound, F[j] is the set of machine counts on which cuts 0..j keep it:
 *
 *	F[j] = { x: one(0,j,x) <= bound } + union over k of { y + m': y in F[k], last(k,j,m') <= bound }
 *
 * 1. For fixed k and j the m' from 2 up that keep the bound are one interval: `code` and `paper` fall with m'
 *    (T/m + c(m-1)/m^2 falls from m = 2, by far more than rounding can hide while m is at most
 *    HD_PART_MACHINES), so it ends at M; the two parts of `printed` are one falling, T/m, and one rising,
 *    c(m-1)/m. m' = 1 stands apart.
 * 2. So of an interval up to M only the least member of F[k] counts; the rest is shifts of sets of bits.
 * 3. No memory rule: its terms look at x. */
#ifndef HD_PLANNER_PARTITION_BOUND_H
#define HD_PLANNER_PARTITION_BOUND_H

#include "planner/partition/terms.h"

/* m' from lo to hi; none: lo > hi. `alone`: m' = 1 too. */
struct hd_span { uint32_t lo, hi; bool alone; };

struct hd_bound {
	const struct hd_terms *t;
	uint32_t words;
	uint64_t *set;                    /* [n][words] F: bit x */
	uint32_t *least;                  /* [n] the least member; UINT32_MAX: empty */
};

HD_MUST_USE enum hd_err hd_bound_init(struct hd_bound *bound, const struct hd_terms *t,
	struct hd_arena *arena);
/* Fills the sets for this bound; whether all cuts can be on exactly M machines. */
bool hd_bound_holds(struct hd_bound *bound, double limit);
/* The best time; INFINITY: there is no split. The sets stand for it. */
double hd_bound_best(struct hd_bound *bound);

/* Surely no m' from 1 to `most` keeps the limit. Quick, and may miss some. */
bool hd_bound_hopeless(const struct hd_terms *t, uint32_t k, uint32_t j, uint32_t most, double limit);
/* Those m' from 2 to `most` with which the stage keeps the limit, and whether 1 does. `most` < 2: alone
 * only. */
struct hd_span hd_bound_span(const struct hd_terms *t, uint32_t k, uint32_t j, uint32_t most, double limit);

#endif
