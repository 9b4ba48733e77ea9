/* pass.h -- rewriting a forward graph into an equal, cheaper one.
 *
 * The maker of a graph to run calls hd_graph_optimize() once, between building (or
 * cutting) and autodiff, so that gradients are made by the rules of the fused ops.
 *
 * 1. No pass changes a bit of any output or gradient: fused ops compute what their
 *    parts compute in the same order, and only exact arithmetic is folded (no gelu,
 *    tanh, sigmoid: the mathematics library of two hosts may differ). One exception: `block`
 *    gives convolutions another order of their sums. It reads nothing but the graph, so
 *    equal jobs still have equal bits.
 * 2. Nodes of two stages are never joined; stages, shards and keys of random ops are
 *    kept.
 * 3. Inputs, parameters and buffers keep their number and order, outputs their names, running
 *    statistics their moments.
 * 4. After every pass the verifier runs; what it refuses is HD_E_BUG.
 *
 * To add a pass: a file and a row of hd_graph_passes. Old arrays stay in the graph's arena. */
#ifndef HD_GRAPH_PASS_H
#define HD_GRAPH_PASS_H

#include "graph/ir.h"

struct hd_graph_pass {
	const char *name, *about;
	enum hd_err (*run)(struct hd_graph *graph, struct hd_diag *diag);
};
extern const struct hd_graph_pass hd_graph_passes[];      /* in order of running; ends with name == NULL */

/* Each in turn; `rows` is the largest number of rows, for the verifier. */
HD_MUST_USE enum hd_err hd_graph_optimize(struct hd_graph *graph, uint64_t rows, struct hd_diag *diag);

/* nodes of constants become constants */
HD_MUST_USE enum hd_err hd_graph_fold(struct hd_graph *graph, struct hd_diag *diag);
/* images between convolutions lie in blocks */
HD_MUST_USE enum hd_err hd_graph_block(struct hd_graph *graph, struct hd_diag *diag);
/* pairs of nodes become one */
HD_MUST_USE enum hd_err hd_graph_fuse(struct hd_graph *graph, struct hd_diag *diag);
/* nodes and constants that no output needs go */
HD_MUST_USE enum hd_err hd_graph_prune(struct hd_graph *graph, struct hd_diag *diag);
/* Not one of hd_graph_passes, for it changes results: norms over a part of the batch become norms over all
 * of it, in pieces between which parts are summed (op_batch.h). Before autodiff. */
HD_MUST_USE enum hd_err hd_graph_globalize(struct hd_graph *graph, struct hd_diag *diag);

/* For passes. A rewrite copies a graph node by node into a new one; to[] maps values of the old graph
 * to those of the new, and a pass fills it for what it makes itself. */
struct hd_rewrite { const struct hd_graph *from; struct hd_graph graph; uint32_t *to; };
/* Copies name, inputs, parameters and buffers. */
HD_MUST_USE enum hd_err hd_rewrite_begin(struct hd_rewrite *rewrite, const struct hd_graph *from,
	struct hd_diag *diag);
/* The same without some parameters, whose places others take: leave[nparams], NULL: none. */
HD_MUST_USE enum hd_err hd_rewrite_begin_without(struct hd_rewrite *rewrite, const struct hd_graph *from,
	const bool *leave, struct hd_diag *diag);
/* The new graph's value for one of the old; a constant is copied when it is first asked for. */
HD_MUST_USE enum hd_err hd_rewrite_value(struct hd_rewrite *rewrite, uint32_t value, uint32_t *to,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_rewrite_copy(struct hd_rewrite *rewrite, const struct hd_node *node,
	struct hd_diag *diag);
/* Appends a node made of values of the old graph; `like` gives stage, shard and key. `out`: first output, new
 * graph. */
HD_MUST_USE enum hd_err hd_rewrite_node(struct hd_rewrite *rewrite, const struct hd_node *like, uint16_t op,
	uint8_t nin,
	const uint32_t *in, const struct hd_attr *attr, uint32_t *out, struct hd_diag *diag);
/* Copies outputs and running statistics; the new graph takes the place of the old. */
HD_MUST_USE enum hd_err hd_rewrite_end(struct hd_rewrite *rewrite, struct hd_graph *graph,
	struct hd_diag *diag);

#endif
