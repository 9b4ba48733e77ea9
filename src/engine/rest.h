/* rest.h -- the rest of a step after ranks are lost: lists of failover (pipeline/failover.h), taken up in the
 * middle of a step with all that the survivors have. Private to the room.
 *
 * hd_rest_adopt() makes a pipe for the new lists beside that of the step: seats of the survivors take over
 * the buffers, and cells keep their activations, what came by mail and what they kept. The rank with the
 * shadow of a lost stage runs that stage from its shadow's cells and on its shadow's state.
 *
 * 1. Between two instructions: each rank has run the first at[rank] of its list whole, and nothing of the
 *    others. The last of them stands before NORM: what is sealed is not gone on with here.
 * 2. Nothing of a lost rank is read: its activations, mail, sums, its stage's state in the store, and what
 *    its stage said of virtual nodes (loss, moments). What it has sent is read where it has arrived.
 * 3. Partial sums go on: the fold of a survivor's stage is that of the virtual nodes that it has summed, in
 *    their order, and then of those to come. Both trees have the same nodes so far; they are copied.
 * 4. Messages are not bounded by credits (failover.h): seats have buffers for all that is still to come.
 * 5. Over several workers (hd_dist_rest() in dist.h) a fence stops the ranks of each; all make the same
 *    lists, of the progress of all, and each goes on with its own. What was sent and did not arrive in time
 *    is sent again from what its sender keeps. A far shadow's state is what the heir's worker holds.
 * 6. The step ends as any other. After it the plan is not that of the ranks there are, and the next step
 *    begins with another one; until it is adopted what was lost and what is left is held.
 *
 * In one process sums are made at NORM, so no sum of a lost rank is settled before. */
#ifndef HD_ENGINE_REST_H
#define HD_ENGINE_REST_H

#include "pipeline/failover.h"
#include "engine/dist.h"
#include "engine/pipe.h"

/* What has arrived at the cells of this worker whose ranks are not lost (NULL: none is): [nstages * nvns] of
 * progress. */
void hd_rest_arrived(const struct hd_pipe *pipe, const bool *lost, uint8_t *arrived);

/* at: [nranks] of the plan, next instruction of each rank; lost: [nranks]. Ranks begin their new lists at the
 * beginning; `lists` gets them, they lie in the arena of the part. HD_E_REFUSED: the step cannot be mended
 * from inside the pipeline, and is as it was. Another error: the step cannot go on. */
HD_MUST_USE enum hd_err hd_rest_adopt(struct hd_worker *worker, const uint32_t *at, const bool *lost,
	const struct hd_ilist **lists, struct hd_diag *diag);
/* The same of ranks of several workers (dist.h); `redone` as there. It begins no mail. */
HD_MUST_USE enum hd_err hd_rest_make(struct hd_worker *worker, const struct hd_dist_loss *loss,
	const struct hd_ilist **lists, uint32_t *redone, struct hd_diag *diag);
void hd_rest_give(struct hd_pipe *rest, struct hd_worker *worker);   /* and of the pipe before it */

#endif
