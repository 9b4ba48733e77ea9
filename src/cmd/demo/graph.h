/* graph.h -- the story of `demo graph`: a graph network whose dense work goes to functions that die, straggle
 * and lose answers; its twin without functions; the bill. */
#ifndef HD_CMD_DEMO_GRAPH_H
#define HD_CMD_DEMO_GRAPH_H

#include "cmd/verbs.h"

/* Exit 0 only if both states are equal bit for bit, and functions did some of the work. */
HD_MUST_USE enum hd_err hd_demo_graph(struct hd_cmd *cmd);

#endif
