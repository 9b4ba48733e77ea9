/* far_end.h -- values of edges at their other end, for the gradients of a graph in several intervals.
 *
 * An interval has the edges that end in it and, in lists of their own, those that begin in it
 * (intervals.h). What was computed for the first is there; a gradient that goes to the sources sums over the
 * second. Values of edges do not meet: they are computed again, of rows of vertices that do.
 *
 * Users: the rules of the gradients of ops of edges (ops/spmm.inc.h, edge_sum.inc.h, edge_pair.inc.h).
 *
 * 1. A value is made again by the node that makes it, over the lists the other way: where it read rows that
 *    met it reads the own ones, where it read own rows they meet. What sums over the edges of a target has
 *    its sums kept where all of them are (edge_peaks, edge_softmax_sums), and these meet.
 * 2. Each edge has the same bits at both ends: kernels compute it from the same numbers, in the same order.
 * 3. A node is made once: a second asker takes it.
 * 4. Refused with the op's name: values of edges that are an input, and ops whose result is not edge by edge.
 *
 * Pure. */
#ifndef HD_GRAPH_FAR_END_H
#define HD_GRAPH_FAR_END_H

#include "graph/autodiff.h"

/* Lists of an interval, as inputs of the graph and as fields of the data (data/graph_layout.h); those of one
 * direction stand together. */
enum hd_edge_list {
	HD_LIST_FAR, HD_LIST_NEAR, HD_LIST_GHOSTS, HD_LIST_NUMBER,
	HD_LIST_BACK_FAR, HD_LIST_BACK_NEAR, HD_LIST_BACK_GHOSTS, HD_LIST_BACK_NUMBER, HD_EDGE_LISTS
};
extern const char *const hd_edge_list_names[HD_EDGE_LISTS];

/* The name of the input that a list is, through views; "" if it is computed. */
const char *hd_edge_list_name(const struct hd_graph *graph, uint32_t value);

/* Is it rows that met? Then *own is what met: their gradient goes there. */
bool hd_far_met(struct hd_autodiff *ad, uint32_t value, uint32_t *own);
/* The list that says the same of the edges the other way. */
HD_MUST_USE enum hd_err hd_far_list(struct hd_autodiff *ad, uint32_t list, uint32_t *other,
	struct hd_diag *diag);
/* Rows of the own vertices at the far ends of the edges the other way, of those of `list`. */
HD_MUST_USE enum hd_err hd_far_rows(struct hd_autodiff *ad, uint32_t forward, uint32_t list, uint32_t rows,
	uint32_t *met, struct hd_diag *diag);
/* A value of the edges of `list`, of those the other way. `own`: any rows of the own vertices. */
HD_MUST_USE enum hd_err hd_far_edges(struct hd_autodiff *ad, uint32_t list, uint32_t own, uint32_t edges,
	uint32_t *again, struct hd_diag *diag);

#endif
