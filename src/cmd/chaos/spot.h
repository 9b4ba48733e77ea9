/* spot.h -- a job on machines that come and go, played and shown line by line, for `chaos spot JOB` and `demo
 * spot`. */
#ifndef HD_CMD_CHAOS_SPOT_H
#define HD_CMD_CHAOS_SPOT_H

#include "chaos/play.h"
#include "cmd/verbs.h"

/* What `said` and `user` of the ask are is set here. Exit 0 only if both digests are equal. */
HD_MUST_USE enum hd_err hd_spot_play(struct hd_cmd *cmd, const struct hd_play_ask *ask);

#endif
