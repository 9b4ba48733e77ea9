/* partition_heddle.h -- `plan partition --variant heddle`: stages for one step, fill and drain counted
 * (planner/steady.h).
 *
 * The machines are devices of speed 1 on links without latency; the other options are those of
 * partition.h. */
#ifndef HD_CMD_PLAN_PARTITION_HEDDLE_H
#define HD_CMD_PLAN_PARTITION_HEDDLE_H

#include "planner/partition.h"
#include "cmd/verbs.h"

HD_MUST_USE enum hd_err hd_cmd_partition_heddle(struct hd_cmd *cmd, const struct hd_profile *profile,
	const struct hd_cuts *cuts,
	const struct hd_part_how *how);

#endif
