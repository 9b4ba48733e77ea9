/* fit_split.h -- where to cut a model so that the ranks of a schedule keep to their memory.
 *
 * Asked when a plan does not fit: the answer is a split into as many stages.
 *
 * 1. How many buffers of each kind a rank holds at once follows from the order of its instructions; the
 *    simulator counts them on stages of one byte. This is an estimate, since kinds need not peak together and
 *    buffers depend on times.
 * 2. A rank with several stages gives each the same share of its memory.
 * 3. Stages are filled front to back as far as they fit by the estimate; what that takes is simulated, and if
 *    it is too much a lower estimate is tried, a few times.
 *
 * Pure. */
#ifndef HD_PLANNER_FIT_SPLIT_H
#define HD_PLANNER_FIT_SPLIT_H

#include "cost/stage_costs.h"
#include "pipeline/schedule_check.h"

/* first[stages]; memory: what it takes, at least the one asked for */
struct hd_split_fit { uint32_t *first; int64_t memory; };

/* memory: bytes of every rank. Where no split is found that fits, that of the least peak among those tried,
 * with its peak. HD_E_NOTFOUND: more stages than cuts, or no range of cuts can be a stage. */
HD_MUST_USE enum hd_err hd_fit_split(struct hd_split_fit *fit, const struct hd_schedule *schedule,
	const struct hd_cut_sums *sums,
	const struct hd_schedule_rules *rules, int64_t memory, struct hd_arena *arena, struct hd_diag *diag);

#endif
