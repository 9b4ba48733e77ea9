/* graph_rates.h -- what a core of this machine does of the work of a graph network, measured within a second,
 * or by --rates FILE, for `simulate graph`. */
#ifndef HD_CMD_SIM_GRAPH_RATES_H
#define HD_CMD_SIM_GRAPH_RATES_H

#include "functions/graph_value.h"
#include "cmd/verbs.h"

/* A file needs what is measured; what is given has values of its own. */
HD_MUST_USE enum hd_err hd_graph_rates_read(struct hd_cmd *cmd, const char *path,
	struct hd_gval_rates *rates);
HD_MUST_USE enum hd_err hd_graph_rates_measure(struct hd_cmd *cmd, struct hd_gval_rates *rates);

#endif
