/* cost.h -- the time of a split, from its stages alone: rule 3 of partition.h.
 *
 * Written apart from the search and from terms.h, from the table in partition.h. It also says
 * whether the stages follow one another from the first cut to the last and use no more machines than there
 * are. */
#ifndef HD_PLANNER_PARTITION_COST_H
#define HD_PLANNER_PARTITION_COST_H

#include "planner/partition.h"

/* Infinite when a stage breaks the memory rule; minus infinity when the stages are no split of the range. */
double hd_part_cost(const struct hd_part_split *split, const struct hd_cuts *cuts,
	const struct hd_part_how *how, uint32_t level,
	uint32_t first, uint32_t last);

#endif
