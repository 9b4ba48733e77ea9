/* spot.h -- the story of `demo spot`: machines of a market come, vanish and are replaced, training goes
 * on; then
 * the undisturbed twin, and what a dollar bought. */
#ifndef HD_CMD_DEMO_SPOT_H
#define HD_CMD_DEMO_SPOT_H

#include "cmd/verbs.h"

/* Exit 0 only if both states are equal bit for bit. */
HD_MUST_USE enum hd_err hd_demo_spot(struct hd_cmd *cmd);

#endif
