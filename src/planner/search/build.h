/* build.h -- a candidate as a schedule of all its ranks, judged by the checker and the simulator.
 *
 * Private to the planner. Rank r of pipeline q is rank q p + r of the schedule; the virtual nodes of a
 * pipeline are neighbours, in the order of the pipelines, so that few partial sums remain of them. */
#ifndef HD_PLANNER_SEARCH_BUILD_H
#define HD_PLANNER_SEARCH_BUILD_H

#include "planner/search/shape.h"

/* Instructions that the candidate's schedule has, about: before sums, updates and recomputation. */
uint64_t hd_auto_nins(const struct hd_auto_cand *cand, uint32_t vns);
/* Everything of the plan but the times. */
HD_MUST_USE enum hd_err hd_auto_build(struct hd_auto_plan *plan, const struct hd_auto_space *space,
	const struct hd_auto_cand *cand,
	struct hd_arena *arena, struct hd_diag *diag);
/* proved: the same lists were checked with other cuts */
enum hd_auto_proof { HD_AUTO_TO_PROVE, HD_AUTO_PROVED };
/* Checks, and simulates with the transfers of a run: buffered, HD_CREDITS of a channel. HD_E_NOTFOUND: a rank
 * needs more memory than its device has (its peak says how much), or more buffers; or, `late`, it takes
 * more than the simulator counts. */
HD_MUST_USE enum hd_err hd_auto_judge(struct hd_auto_plan *plan, const struct hd_auto_space *space,
	enum hd_auto_proof how, bool *late,
	struct hd_arena *scratch, struct hd_diag *diag);

#endif
