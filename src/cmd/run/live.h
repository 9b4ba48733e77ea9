/* live.h -- what the verbs that speak to a run share: driver/reach.h with what a call has, and how a run is
 * printed. Where a coordinator is waited for, stderr says so, unless --quiet. */
#ifndef HD_CMD_RUN_LIVE_H
#define HD_CMD_RUN_LIVE_H

#include "driver/reach.h"
#include "cmd/verbs.h"

HD_MUST_USE enum hd_err hd_live_ask(struct hd_cmd *cmd, const char *run, const char *ask,
	const struct hd_json **answer);
HD_MUST_USE enum hd_err hd_live_look(struct hd_cmd *cmd, const char *run, struct hd_live *live);
/* The same; what it finds lies in `arena`. */
HD_MUST_USE enum hd_err hd_live_look_in(struct hd_cmd *cmd, struct hd_arena *arena, const char *run,
	struct hd_live *live);
int hd_live_alone(struct hd_cmd *cmd, const char *run);
/* As `status` and `top` print it. */
void hd_live_print(const struct hd_live *live, FILE *to);

#endif
