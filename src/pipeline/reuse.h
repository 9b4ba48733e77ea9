/* reuse.h -- how far back the activations lie that an instruction of a plan uses: by the lists alone.
 *
 * Between two uses of a virtual node's activations a rank uses others. Their bytes, each place in memory
 * counted once and its own with them, are the *distance* of the second use, in activations of one virtual
 * node of the whole model: the unit of cost/reuse.h, which says what it costs.
 *
 * 1. F and R write to the place that the stage's last one left, or to a new one; I, W and B use it; the last
 *    of them leaves it. F of a stage that computes again (flag c) leaves it at once.
 * 2. Lists repeat: distances are those of a step that follows one, and virtual nodes of the step to come
 *    (pipeline/window.h) are found there again.
 * 3. A place is a stage's of a rank. What transfers, weights and gradients use is not counted: what is
 *    measured at distance 1 has them too.
 *
 * Used by the forecast of a step (run/forecast.h). All in the arena. Pure. */
#ifndef HD_PIPELINE_REUSE_H
#define HD_PIPELINE_REUSE_H

#include "plan/plan.h"
#include "cost/reuse.h"

/* What the phases of a stage (enum hd_phase) take in the mean of the plan's instructions on it, over what
 * they take at distance 1. */
struct hd_stage_reuse { double by[3]; };

/* of[nstages]; share[stage]: its part of the activations of a virtual node. */
HD_MUST_USE enum hd_err hd_reuse_stages(struct hd_stage_reuse *of, const struct hd_plan *plan,
	const double *share, const struct hd_reuse *reuse, struct hd_arena *arena, struct hd_diag *diag);

#endif
