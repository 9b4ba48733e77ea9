/* steady.h -- what a step takes where steps overlap, from the middle of one to the middle of the next: the
 * lists of several steps (pipeline/window.h) are simulated one behind the other, without what ends a step.
 *
 * Of a plan whose steps overlap, a stage a rank. The answer is the time between the first forwards of the
 * last stage in the last two steps. So it holds waits for tensors on links and for the busiest rank, and none
 * for filling or draining the pipeline.
 *
 * Pure; memory is the arena's. */
#ifndef HD_RUN_STEADY_H
#define HD_RUN_STEADY_H

#include "plan/plan.h"
#include "pipeline/sim_plan.h"

/* `set` as for the plan; spans are on. */
HD_MUST_USE enum hd_err hd_steady_time(double *took_ns, const struct hd_plan *plan,
	const struct hd_sim_setting *set, struct hd_arena *arena, struct hd_diag *diag);

#endif
