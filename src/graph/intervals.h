/* intervals.h -- a graph network whose rows are those of one interval of the graph it learns.
 *
 * In one interval the lists of edges name rows of the same value that they sum. In several, each a virtual
 * node, an op of edges reads rows of others: they meet before it (ops/rows_meet.inc.h).
 *
 * User: engine/task.h, between the passes and the gradient.
 *
 * 1. An op of edges over `from`, `to` becomes one over `far`, `near`: `near` is the target's row among the
 *    own, `far` the source's among own rows and ghosts, `part_number` the edge's in the whole graph.
 *    Backwards it is `back_far`, `back_near`, `back_number`, of the edges that begin in the interval
 *    (far_end.h has the names and the gradients, data/graph_layout.h the lists).
 * 2. Edges keep their order, so each row's sum, and each softmax, has the order and the bits of one interval.
 * 3. Rows meet once for all ops that read them one way.
 * 4. Values of edges are of those that end in the interval: a forward op that reads them the other way is
 *    refused with its name. Sums of rows (spmm) go either way.
 *
 * Pure. */
#ifndef HD_GRAPH_INTERVALS_H
#define HD_GRAPH_INTERVALS_H

#include "graph/ir.h"

/* Places a row: for edges that end in the interval and for their ghosts; of those that begin there. */
struct hd_interval_slots { uint32_t edges, ghosts, back_edges, back_ghosts; };

/* Before autodiff. HD_E_INVAL: rule 4; lists that are not `from`, `to` and `number`. */
HD_MUST_USE enum hd_err hd_graph_intervals(struct hd_graph *graph, const struct hd_interval_slots *slots,
	struct hd_diag *diag);

#endif
