/* refuse.h -- why nothing that was asked for works, and the nearest that does.
 *
 * Private to the planner. Too few virtual nodes: how many would do, or which p. Memory: the smallest need in bytes, and at which
 * shape. Else: the limits of p, t, d. */
#ifndef HD_PLAN_PLANNER_REFUSE_H
#define HD_PLAN_PLANNER_REFUSE_H

#include "plan/planner/shape.h"

/* Never HD_OK. */
struct hd_auto_need { int64_t bytes, has; struct hd_auto_shape shape; };      /* on a rank of devices with `has`; bytes INT64_MAX: unknown */

/* simulated: the least need of what was simulated. */
HD_MUST_USE enum hd_err hd_auto_refuse(struct hd_auto_space *space, const struct hd_auto_need *simulated);

#endif
