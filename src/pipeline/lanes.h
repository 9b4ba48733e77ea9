/* lanes.h -- which copies of the stages a virtual node goes through, where those of a copy are neighbours.
 *
 * Of stages with copies (1f1b-rr) a *lane* is a way through the pipeline, with one copy of each stage. There
 * are as many lanes as the stage with the most copies has, L; lane l goes through copy floor(l c / L) of a
 * stage with c. So a copy's lanes are neighbours.
 *
 * 1. Virtual nodes are dealt to lanes in order, larger parts first: those of a copy are neighbours, too, and
 *    leave few partial sums (plan/tree.h).
 * 2. Lanes take turns, in an order that keeps all copies at work: the next one is that whose copies have had
 *    the fewest turns in all, ties to the lower lane. After L turns it begins again.
 * 3. Of two stages the number of copies of one divides that of the other: so the copies of every stage take
 *    turns in one order, as those of 1f1b-rr do. Others (2 and 3) would need lists of another kind.
 *
 * Users: the generator of 1f1b-rr, and views of such pipelines, which count by the same rule
 * (protocol/view.h). Pure. */
#ifndef HD_PIPELINE_LANES_H
#define HD_PIPELINE_LANES_H

#include "base/arena.h"
#include "base/err.h"

struct hd_lanes {
	uint32_t n, *order;               /* [n] lanes in the order of their turns */
	const uint32_t *copies; uint32_t nstages;        /* borrowed */
};

/* How many; 0: rule 3, or a stage without a copy. */
uint32_t hd_lanes_count(const uint32_t *copies, uint32_t nstages);
/* In the arena. HD_E_INVAL: there are none. */
HD_MUST_USE enum hd_err hd_lanes_make(struct hd_lanes *lanes, const uint32_t *copies, uint32_t nstages,
	struct hd_arena *arena, struct hd_diag *diag);
/* The copy of a stage that a lane goes through. */
static inline uint32_t hd_lanes_copy(const struct hd_lanes *lanes, uint32_t lane, uint32_t stage)
{
	return (uint32_t)((uint64_t)lane * lanes->copies[stage] / lanes->n);
}
/* Of m virtual nodes those of a lane: so many from the first on. */
static inline uint32_t hd_lanes_share(const struct hd_lanes *lanes, uint32_t lane, uint32_t m)
{
	return m / lanes->n + (lane < m % lanes->n);
}
static inline uint32_t hd_lanes_first(const struct hd_lanes *lanes, uint32_t lane, uint32_t m)
{
	return lane * (m / lanes->n) + (lane < m % lanes->n ? lane : m % lanes->n);
}

#endif
