/* profile_graph.h -- the profile of a training graph of ours, all but its times.
 *
 * The profiler (engine/profile.h) fills in times that it measured, hd_profile_model() times from
 * counts of operations; a plan made by either may cut the model only between nodes of the profile.
 *
 * 1. A node of the profile is a forward node of the graph, which is fused already: fusion groups are never
 *    cut. Two kinds join another node: a view joins the node whose output it shows, and what no forward node
 *    reads (the weight of a step, its hits) joins the last node that it reads from, or the one that makes the
 *    loss if it reads from none. So the loss is the only node without an edge out, and every node leads to
 *    it.
 * 2. A gradient node belongs to the profile node of the forward node that it is `of`, and counts in i or w by
 *    its phase. `home` says for every node of the graph where it belongs. Nodes stand in the order of the
 *    graph, so edges go upwards.
 * 3. The id is the label of the node's first output in the text of the graph (`heddle model show`), op its op
 *    and the parameters that it reads.
 * 4. out: the tensors that other profile nodes read, in order of values, each once; a view is the tensor that
 *    it shows. What is kept for the backward pass alone is not among them.
 * 5. saved: bytes of what the node's gradient nodes read of the forward pass (tensors and inputs of the
 *    graph). What several nodes need counts at the first of them, whose backward pass is the last to want it:
 *    so all nodes together keep what the device keeps, and what a stage needs of the stage before counts
 *    where it is read.
 * 6. act_w: what W still needs after I, by saved; at most 1. That is what W reads of the saved tensors,
 *    counted as there, and of gradients that I made, counted at the node that made them.
 * 7. work: the most that one graph node of it reads and makes besides what is saved, and `scratch_bytes`.
 * 8. param: all parameters that its forward node reads, `opt` their slots but of frozen ones. A parameter
 *    that several nodes read counts at each of them, and names the group `tied` of all of them.
 * 9. recompute_ok everywhere: every op has the same bits again, random ones are keyed.
 *
 * Ownership: everything lies in the arena given. Pure. */
#ifndef HD_COST_PROFILE_GRAPH_H
#define HD_COST_PROFILE_GRAPH_H

#include "graph/ir.h"
#include "cost/profile.h"

struct hd_profile_ask {
	uint64_t rows;                    /* of a virtual node: vn_size */
	uint32_t nslots, tensor_shards;   /* slots of the optimizer */
	uint64_t scratch_bytes;           /* of the device's kernels */
};

/* Nodes, edges, bytes; times are 0. (*home)[n] for every node of the graph, which has its gradient. */
HD_MUST_USE enum hd_err hd_profile_of_graph(struct hd_profile *profile, uint32_t **home,
	const struct hd_graph *graph,
	const struct hd_profile_ask *ask, struct hd_arena *arena, struct hd_diag *diag);

/* Times of a device that reaches both rates: the larger of operations and bytes moved, node by node. */
struct hd_profile_rates { double flops_per_s, bytes_per_s; };
extern const struct hd_profile_rates hd_profile_nominal;        /* of a core as docs/results/step.md has it */
void hd_profile_model(struct hd_profile *profile, const uint32_t *home, const struct hd_graph *graph,
	const struct hd_profile_ask *ask,
	struct hd_profile_rates rates);

/* The profile of the graph at ask->rows, whatever rows `measured` has (NULL: times are modelled): bytes are
 * counted, the times of a node are its measured ones times what the model says of both sizes (by the rows,
 * where it says 0); spreads are not known. HD_E_INVAL: `measured` has other nodes, or does not know its
 * rows. */
HD_MUST_USE enum hd_err hd_profile_at(struct hd_profile *profile, const struct hd_graph *graph,
	const struct hd_profile *measured,
	const struct hd_profile_ask *ask, struct hd_arena *arena, struct hd_diag *diag);

/* Hash of the graph's text: two jobs of equal training graphs may share a profile. Never 0. */
HD_MUST_USE enum hd_err hd_profile_hash(const struct hd_graph *graph, uint64_t *hash, struct hd_diag *diag);

/* Refuses a profile of another graph or of virtual nodes of other sizes (HD_E_INVAL, by name); one of no
 * graph of ours, too. */
HD_MUST_USE enum hd_err hd_profile_fits(const struct hd_profile *profile, const char *file, uint64_t graph,
	uint64_t rows, struct hd_diag *diag);

#endif
