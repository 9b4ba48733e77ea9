/* lose.h -- `plan show --lose`: the rest of a step after ranks are lost, at a time of its simulation. */
#ifndef HD_CMD_PLAN_LOSE_H
#define HD_CMD_PLAN_LOSE_H

#include "pipeline/schedule.h"
#include "cmd/verbs.h"

/* Without --lose it changes nothing. Costs are those of --costs and --comm. */
HD_MUST_USE enum hd_err hd_cmd_lose(struct hd_cmd *cmd, struct hd_schedule *s);
/* Of a schedule that was found to be none: where it is what --lose printed, HD_E_INVAL says that in place of
 * findings, since it is no whole step. Else HD_OK. */
HD_MUST_USE enum hd_err hd_cmd_lose_made(struct hd_cmd *cmd, const struct hd_schedule *s);

#endif
