/* spot.h -- machines of a trace on a simulated clock, by --model, for `simulate spot` and `chaos spot
 * --simulate`. */
#ifndef HD_CMD_SIM_SPOT_H
#define HD_CMD_SIM_SPOT_H

#include "spot/trace.h"
#include "cmd/verbs.h"

/* `way` as --resilience takes it. */
HD_MUST_USE enum hd_err hd_simulate_spot(struct hd_cmd *cmd, const char *way,
	const struct hd_spot_trace *trace);

#endif
