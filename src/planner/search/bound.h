/* bound.h -- a lower bound on the simulated time of a candidate, found without a simulation.
 *
 * Private to the planner: a candidate whose bound is above the best so far need not be simulated. It is the
 * greatest of
 *
 *	work    of a rank: the way of its first virtual node to it, its work, then the sum of its gradients
 *	        over the copies; or where backward passes are whole, the way back of its last virtual node
 *	ports   of a link: all that goes over one port, at the bandwidth of its level (links.h: never more)
 *
 * The simulator rounds each instruction and transfer to the picosecond; a bound leaves as much. 0: nothing is
 * known (delayed updates, tensor groups). Pure. */
#ifndef HD_PLANNER_SEARCH_BOUND_H
#define HD_PLANNER_SEARCH_BOUND_H

#include "planner/search/shape.h"

/* Of the candidate with its cuts. Memory is taken from `scratch`, which may be reset afterwards;
 * HD_E_NOMEM. */
HD_MUST_USE enum hd_err hd_auto_bound(const struct hd_auto_space *space, const struct hd_auto_cand *cand,
	struct hd_arena *scratch, double *ps);

/* Could the candidate's shape, cut anywhere, take as little as `target_ps`? False: surely not. Of all places
 * of its boundaries those are left that keep each port within it, and each stage's work with the way to it
 * and back; and of these the least that the ports carry, that ranks wait for their first virtual node, over
 * all ranks, and means of what ranks work with the way to them. True without a look where there are too many
 * cuts, stages or devices for one. */
HD_MUST_USE enum hd_err hd_auto_may_take(const struct hd_auto_space *space, const struct hd_auto_cand *cand,
	int64_t target_ps,
	struct hd_arena *scratch, bool *may);

#endif
