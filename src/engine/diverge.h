/* diverge.h -- where the first number that is not finite came from.
 *
 * Said to the user when a step fails by HD_E_DIVERGED. The state is still that of the
 * step's beginning, so the step is computed again on rank 0, virtual node by virtual
 * node and op by op, and every result is looked at right after it was made.
 *
 * 1. Virtual nodes in order; in one, inputs before forward before backward: the first
 *    found is the cause, what follows is its consequence.
 * 2. All finite, so the sum of the virtual nodes was not: that is said. A worker of several looks at its own.
 *
 * Costs one step without devices side by side, once; overwrites arena and inputs of
 * rank 0, no state. Ranks are idle. */
#ifndef HD_ENGINE_DIVERGE_H
#define HD_ENGINE_DIVERGE_H

#include "engine/worker_int.h"

/* Adds ": <cause>" to the message in diag; one that cannot be found leaves it as it is. */
void hd_diverge_explain(struct hd_worker *worker, struct hd_diag *diag);

#endif
