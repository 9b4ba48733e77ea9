/* plan_xfers.h -- the transfer rows of a kept plan (plan/xfer.h): one a bucket, what its owner or the last of
 * its chain sends first, with the urgency and the time that the run settled (plan/comm.h).
 *
 * 1. Of state that all holders update it is the sum, from the bucket's owner; with comm.sync: sharded the new
 *    parameters, from the last that holds slots. `to` is the first other worker that gets it; those behind
 *    it get the same, and rows of their own are not written. What no other worker needs has no row.
 * 2. ns is what the bytes take over a link that is free, as comm.settled says the link. It is 0 where the run
 *    began without measuring one, and only there.
 * 3. Rows are for readers of the file: the checker and a run by that file do not look at them.
 *
 * Everything lies in the arena. Pure. */
#ifndef HD_RUN_PLAN_XFERS_H
#define HD_RUN_PLAN_XFERS_H

#include "run/pipes.h"

/* Into plan->xfers, of a plan that hd_pipes_plan() made of the same view. */
HD_MUST_USE enum hd_err hd_plan_xfers(struct hd_plan *plan, const struct hd_pipes *pipes,
	const struct hd_view *view, const struct hd_task *task, struct hd_arena *arena, struct hd_diag *diag);

#endif
