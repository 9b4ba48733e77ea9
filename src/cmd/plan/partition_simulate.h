/* partition_simulate.h -- `heddle plan partition --simulate`: PipeDream's ways in the simulator
 * (pipedream.h). */
#ifndef HD_CMD_PLAN_PARTITION_SIMULATE_H
#define HD_CMD_PLAN_PARTITION_SIMULATE_H

#include "planner/partition.h"
#include "cmd/verbs.h"

HD_MUST_USE enum hd_err hd_cmd_partition_simulate(struct hd_cmd *cmd, const struct hd_profile *profile,
	const struct hd_cuts *cuts,
	const struct hd_part_how *how);

#endif
