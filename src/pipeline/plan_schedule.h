/* plan_schedule.h -- a plan that a run adopted, seen as a schedule of one step: for the simulator, the
 * checker's eyes and drawings.
 *
 * The lists are borrowed from the plan; places are those of the forwards, where all of a stage's are on
 * one rank. */
#ifndef HD_PIPELINE_PLAN_SCHEDULE_H
#define HD_PIPELINE_PLAN_SCHEDULE_H

#include "pipeline/schedule.h"

HD_MUST_USE enum hd_err hd_schedule_of_plan(struct hd_schedule *out, const struct hd_plan *plan,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
