/* passes.h -- what a skeleton lacks, added step by step: recomputation, then (schedule_check.h) transfers, then updates.
 *
 * 1. Each pass is a pure function of its schedule; applied twice it does what it does once.
 * 2. A schedule that the checker accepts stays accepted.
 * 3. Schedules of delayed updates are refused: their sections have no end of a step. HD_E_INVAL.
 *
 * Not here: offloading, versions (PIN, REL), clipping (NORM), tied groups (TIE): they need a job. */
#ifndef HD_PLAN_PASSES_H
#define HD_PLAN_PASSES_H

#include "plan/schedule.h"

/* Stages with recompute[s] keep only their input in F (flag c) and have R directly before B or I. */
HD_MUST_USE enum hd_err hd_schedule_recompute(struct hd_schedule *out, const struct hd_schedule *schedule, const bool *recompute,
	struct hd_arena *arena, struct hd_diag *diag);

/* After the last B or W of a stage on a rank: RED if other ranks hold it too. Then a STEP of each, in the same order. */
HD_MUST_USE enum hd_err hd_schedule_updates(struct hd_schedule *out, const struct hd_schedule *schedule, struct hd_arena *arena, struct hd_diag *diag);

#endif
