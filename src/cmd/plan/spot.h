/* spot.h -- `plan JOB --spot FILE`: what each way through losses of machines is worth (planner/ways.h).
 *
 * FILE is a market (JSON, spot/value.h) or a trace of machines, of which it is counted how often and how many
 * at once they go. */
#ifndef HD_CMD_PLAN_SPOT_H
#define HD_CMD_PLAN_SPOT_H

#include "cmd/plan/planning.h"

HD_MUST_USE enum hd_err hd_cmd_plan_spot(struct hd_cmd *cmd, struct hd_planning *planning);

#endif
