/* pipes_shadows.h -- the lists of a view's plan with the work of shadows (pipeline/redundancy.h), as
 * elastic.redundancy: eager|full asks for it over workers. The user is pipes.c.
 *
 * 1. Mode `lazy` needs nothing in the lists: another worker holds the state of a stage, and gets its sums, by
 *    the holding alone (protocol/view.h, rule 10). So do the other two; the lists add the forward of the
 *    shadow, and in `full` its backward.
 * 2. A rank shadows the stage after its own in the ring of its pipeline. Where both are of one worker, which
 *    takes both with it, such work would be for nothing: a view with two such ranks has lists without
 *    shadows, as in `lazy`, and its cause says so.
 * 3. Where the work of shadows stands is found by simulation, with the FLOPs of the stages for costs: a
 *    function of view and job, so all members find the same.
 * 4. Refused, when a run starts or is given another shape: ranks with several stages (chunks), or of several
 *    devices.
 *
 * Pure. */
#ifndef HD_RUN_PIPES_SHADOWS_H
#define HD_RUN_PIPES_SHADOWS_H

#include "pipeline/redundancy.h"
#include "run/pipes.h"

/* HD_E_INVAL: rule 4. */
HD_MUST_USE enum hd_err hd_pipes_shadows_fit(const struct hd_pipes *pipes, const struct hd_job *job,
	struct hd_diag *diag);
/* Gives the plan of a view, whose ranks' workers are known, the lists of the mode of its shape. */
HD_MUST_USE enum hd_err hd_pipes_shadows(struct hd_plan *plan, enum hd_redundancy mode,
	const struct hd_plan_job *plan_job, const struct hd_task *task, struct hd_arena *arena,
	struct hd_diag *diag);

#endif
