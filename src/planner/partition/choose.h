/* choose.h -- one split among all whose terms are at most the best time: rule 2 of partition.h.
 *
 * Given row i, the last cut j, the number of machines x and the best time: the stages, in order. */
#ifndef HD_PLANNER_PARTITION_CHOOSE_H
#define HD_PLANNER_PARTITION_CHOOSE_H

#include "planner/partition/terms.h"

/* The order of rule 2 before cuts and machines decide. stages UINT32_MAX: there is none. */
struct hd_merit { uint32_t stages; int64_t out; };

static inline bool hd_merit_less(struct hd_merit a, struct hd_merit b)
{
	return a.stages != b.stages ? a.stages < b.stages : a.out < b.out;
}
static inline bool hd_merit_same(struct hd_merit a, struct hd_merit b) { return a.stages == b.stages &&
	a.out == b.out; }

/* Writes the stages' cuts and replicas; HD_E_BUG: no split keeps the bound. */
HD_MUST_USE enum hd_err hd_part_choose(struct hd_part_split *split, const struct hd_terms *t, uint32_t i,
	uint32_t j, uint32_t x, double bound,
	struct hd_arena *arena);
/* The same answer for row 0 and the last cut of a large problem; no memory limit. */
HD_MUST_USE enum hd_err hd_part_choose_wide(struct hd_part_split *split, const struct hd_terms *t, uint32_t x,
	double bound, struct hd_arena *arena);

#endif
