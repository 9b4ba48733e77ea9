/* refuse.h -- why nothing that was asked for works, and the nearest that does.
 *
 * Private to the planner. Too few virtual nodes: how many would do, or which p. Memory: the smallest need in
 * bytes, and at which shape. Time: how many passed what is counted. Else: the limits of p, t, d. */
#ifndef HD_PLANNER_SEARCH_REFUSE_H
#define HD_PLANNER_SEARCH_REFUSE_H

#include "planner/search/shape.h"

/* on a rank of devices with `has`; bytes INT64_MAX: unknown */
struct hd_auto_need { int64_t bytes, has; struct hd_auto_shape shape; };

/* Never HD_OK. simulated: the least need of what was simulated; nlate: how many fit and take longer than
 * is counted. */
HD_MUST_USE enum hd_err hd_auto_refuse(struct hd_auto_space *space, const struct hd_auto_need *simulated,
	uint64_t nlate);

#endif
