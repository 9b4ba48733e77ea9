/* pipes_shadows.h -- the lists of a view's plan with the work of shadows (pipeline/redundancy.h), as
 * elastic.redundancy: lazy|eager|full asks for it over workers. The user is pipes.c.
 *
 * 1. Another worker holds the state of a stage, and gets its sums, by the holding alone (protocol/view.h,
 *    rule 10), in each mode. What lists add is for a step that goes on after a loss: what is sent is kept
 *    until the step is committed (flag k); in `eager` the forward of the shadow, in `full` its backward, too.
 * 2. A rank shadows the stage after its own in the ring of its pipeline. Where both are of one worker, which
 *    takes both with it, such work would be for nothing: a view with two such ranks has lists without
 *    shadows, as in `lazy`, and its cause says so. So has one by a plan file whose stages lie in another
 *    order than its ranks: a holding has the shadow at the rank before, lists at that of the stage before.
 *    Where a plan file has shadows of that mode, they stand where it has them.
 * 3. Where the work of shadows stands is found by simulation, with the FLOPs of the stages for costs: a
 *    function of view and job, so all members find the same.
 * 4. Refused, when a run starts or is given another shape: `eager` and `full` of ranks with several stages
 *    (chunks), of several devices, or whose stages lie in another order.
 * 5. `lazy` goes with all that has stages. Where it can have no such lists (those ranks, delayed updates, an
 *    order that takes no shadows) they are as without redundancy, and a step is begun again after a loss.
 *
 * Pure. */
#ifndef HD_RUN_PIPES_SHADOWS_H
#define HD_RUN_PIPES_SHADOWS_H

#include "pipeline/redundancy.h"
#include "run/pipes.h"

/* HD_E_INVAL: rule 4. */
HD_MUST_USE enum hd_err hd_pipes_shadows_fit(const struct hd_pipes *pipes, const struct hd_job *job,
	struct hd_diag *diag);
/* Gives the plan of a view, whose ranks' workers are known, the lists of the mode of its shape. `given`
 * [ranks]: a plan file has them for this plan; NULL: they are made. */
HD_MUST_USE enum hd_err hd_pipes_shadows(struct hd_plan *plan, enum hd_redundancy mode,
	const struct hd_ilist *given, const struct hd_plan_job *plan_job, const struct hd_task *task,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
