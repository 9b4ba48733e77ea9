/* failover.h -- the rest of a step after ranks are lost: lists in which the ranks with their shadows go on
 * with both stages.
 *
 * A pure function of the lists of the step (redundancy.h), of how far each rank has come, and of the ranks
 * that are lost. A runtime stops every survivor between two instructions, asks this, and goes on with the new
 * lists; whether they were made for a loss it need not know.
 *
 * 1. Of a lost rank of stage q, the *heir* is the rank before it, which holds its shadow. The heir lives,
 *    inherits once, and its shadow is that of the last commit; else HD_E_REFUSED: the step cannot be mended
 *    from inside the pipeline. So any ranks may be lost of which no two follow one another in the ring.
 * 2. Virtual node v of stage q is *settled* if survivors hold its gradient; the others are done again by the
 *    heir: their backward, and their forward where the shadow has not computed it (then ONx brings its
 *    activations back). What a survivor has summed stays summed.
 * 3. Tensors: the heir has what its own stage sent (flag k), or hands it on (HA); it receives from the stage
 *    behind what that has still to send, and what it sent already is sent again (RSG, before its other work,
 *    ascending). It sends on what has not arrived there, and hands its own stage the gradients that have not
 *    (HG). A receive of what has arrived already stays as it was (RGx: a copy that came for the shadow).
 * 4. Sums are of named parts (plan/tree.h): what both a peer and the shadow have of a lost rank counts once.
 *    RED of stage q stands in the heir's list, in the order of stages; of a sum that is complete it gets the
 *    result, as a NORM does that others have passed. If all shipped sums of the stage have arrived at the
 *    heir, nothing is done again. STEPx of the heir becomes STEP.
 * 5. Shadows of lost ranks end: nothing is shipped to them. Bx that wait for a lost rank are left out. The
 *    heir's own stage stays shadowed; the stage that it inherits and the one behind the lost rank are not,
 *    until the ranks are placed again.
 * 6. The two lists of an heir are merged as they would run: all lists of the rest are executed, without
 *    limits of buffers, and the heir takes of the two what can go on: loads, then what is sent or handed,
 *    receives, backward before forward, its own stage first. So the lists end. HD_E_BADPLAN: they do not; the
 *    progress is none of these lists.
 *
 * Messages have names (what, stage, virtual node), so no order of a channel is broken by what is sent again.
 * Pure; everything lies in the arena. */
#ifndef HD_PIPELINE_FAILOVER_H
#define HD_PIPELINE_FAILOVER_H

#include "pipeline/redundancy.h"

/* What of (stage, virtual node) has reached the rank that uses it. Asked of lost senders only. */
enum hd_arrived {
	HD_ARRIVED_ACT = 1,                       /* the output of its forward */
	HD_ARRIVED_GRAD = 2,                      /* its input gradient */
	HD_ARRIVED_COPY = 4,                      /* the same, sent to a shadow: also of living senders */
};

struct hd_step_progress {
	const uint32_t *at;                       /* [ranks] next instruction */
	const uint8_t *arrived;                   /* [stages * vns] bits of hd_arrived */
	const bool *settled;                      /* [stages * vns] rule 2; NULL: none */
	const bool *shipped;                      /* [ranks] all sums for its shadow have arrived; NULL:
		of none */
	const bool *stale;                        /* [ranks] its shadow is older than the last commit; NULL:
		none */
};

/* How far a simulated step is at a time, in its ticks: of one step, with spans. What has been sent and is
 * under way does not arrive. */
HD_MUST_USE enum hd_err hd_step_progress_at(struct hd_step_progress *out, const struct hd_sim_plan *sim,
	int64_t time,
	struct hd_arena *arena, struct hd_diag *diag);

/* `schedule` has passed hd_schedule_check(). `lost`: [ranks]. Lists of lost ranks are empty. */
HD_MUST_USE enum hd_err hd_failover(struct hd_schedule *out, const struct hd_schedule *schedule,
	const struct hd_step_progress *progress, const bool *lost, struct hd_arena *arena,
	struct hd_diag *diag);

#endif
