/* intervals.h -- a graph network whose rows are those of one interval of the graph it learns.
 *
 * In one interval the lists of edges name rows of the same value that they sum. In several, each a virtual
 * node, a sum reads rows of others: they meet before it (ops/rows_meet.inc.h).
 *
 * User: engine/task.h, between the passes and the gradient.
 *
 * 1. A sum over `from`, `to` becomes one over `far`, `near`: `near` is the target's row among the own,
 *    `far` the source's among own rows and ghosts. Backwards it is `back_far`, `back_near`, of the edges that
 *    begin in the interval (data/graph_layout.h has all of them, as fields of these names).
 * 2. Edges keep their order, so each row's sum has the order, and the bits, of one interval.
 * 3. Values of edges do not meet: ops that make them are refused with their name.
 *
 * Pure. */
#ifndef HD_GRAPH_INTERVALS_H
#define HD_GRAPH_INTERVALS_H

#include "graph/ir.h"

/* Places a row: for edges that end in the interval and for their ghosts; of those that begin there. */
struct hd_interval_slots { uint32_t edges, ghosts, back_edges, back_ghosts; };

/* Before autodiff. HD_E_INVAL: rule 3; sums over lists that are not `from` and `to`, one way or the other. */
HD_MUST_USE enum hd_err hd_graph_intervals(struct hd_graph *graph, const struct hd_interval_slots *slots,
	struct hd_diag *diag);

#endif
