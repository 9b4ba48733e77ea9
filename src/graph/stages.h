/* stages.h -- a trained graph cut into the stages of a pipeline, each a graph of its own.
 *
 * A stage is a run of forward nodes and the gradient nodes that belong to it. What a node reads of another
 * stage becomes an input of its stage, what another stage reads an output; devices run a stage as they run
 * any graph (device/program.h). Cut after all passes and after autodiff, so cutting moves no fusion.
 *
 * 1. Stage s has the forward nodes [first[s], first[s+1]) of the whole graph. A gradient node stands in the
 *    lowest of: the stage of its forward node, and the stages that make the gradients it reads. So a sum of
 *    gradients is added where the last of its operands is made: the association is that of the whole graph,
 *    and partial sums travel back stage by stage. The gradient of a tied parameter has parts instead (ir.h),
 *    each in the stage of its use, and none of them crosses.
 * 2. What crosses from stage s to s+1 is act[s], ascending value ids of the whole graph; what crosses back
 *    from s+1 to s is grad[s]. A value that a later stage reads crosses every boundary between; the stages
 *    between pass it on.
 * 3. Nodes, attributes, keys of random numbers and order are those of the whole graph, so a stage computes
 *    the same bits wherever it runs.
 * 4. Each stage has all parameters and buffers of the whole graph, and parts of gradients, in its order: one
 *    layout serves all. Parameters whose first part another stage makes are frozen in it; a part that
 *    another stage makes has no value.
 * 5. A gradient of a weight that crosses (a weight that several stages read, and that has no parts) is of
 *    phase I in the stage that sends it, with all that makes it: what a stage sends is complete after I.
 *
 * Ownership: everything lies in the arena; the whole graph is borrowed (names and constants are shared).
 * Pure. */
#ifndef HD_GRAPH_STAGES_H
#define HD_GRAPH_STAGES_H

#include "graph/ir.h"

struct hd_crossing { uint32_t *value, n; };       /* ids of the whole graph */

struct hd_graph_stage {
	struct hd_graph graph;
	/* inputs of `graph`, in this order: `ndata` fields of the data, act[s-1], grad[s] */
	uint32_t ndata, nact_in, ngrad_in;
	uint32_t *act_out, *grad_out;     /* [act[s].n], [grad[s-1].n] values of `graph` that are sent */
	uint32_t *running;                /* [graph.nrunning] which record of the whole graph */
	bool *learns;                     /* [ngrads of the whole graph] the gradient is made here */
};

struct hd_graph_stages {
	const struct hd_graph *whole;
	uint32_t n, *first;               /* [n] first forward node of each; first[0] is 0 */
	uint16_t *of_node;                /* [nodes of the whole graph] its stage */
	uint16_t *of_grad;                /* [ngrads] that makes it; of a frozen parameter: 0 */
	struct hd_crossing *act, *grad;   /* [n - 1] */
	struct hd_graph_stage *stage;     /* [n] */
};

/* `graph` has its gradient. HD_E_INVAL: `first` does not begin with 0 and rise, or more crosses a boundary
 * than a graph has inputs for. */
HD_MUST_USE enum hd_err hd_graph_stages_make(struct hd_graph_stages *stages, const struct hd_graph *graph,
	const uint32_t *first, uint32_t n, struct hd_arena *arena, struct hd_diag *diag);

/* The lowest stage that makes something of a parameter's gradient; 0 of a frozen one. */
uint16_t hd_graph_stages_lowest(const struct hd_graph_stages *stages, uint32_t param);

/* Where to cut when nothing was measured: near equal shares of the FLOPs of `rows` rows, forward and
 * backward, and of the places near them the one where the fewest bytes cross. first[n] is filled. HD_E_INVAL:
 * fewer forward nodes than stages. A function of the graph alone. */
HD_MUST_USE enum hd_err hd_graph_stages_balance(uint32_t *first, uint32_t n, const struct hd_graph *graph,
	uint64_t rows, struct hd_arena *arena, struct hd_diag *diag);
/* The same for stages of which each has so many parts of the FLOPs as it has copies. */
HD_MUST_USE enum hd_err hd_graph_stages_share(uint32_t *first, const uint32_t *copies, uint32_t n,
	const struct hd_graph *graph, uint64_t rows, struct hd_arena *arena, struct hd_diag *diag);

#endif
