/* profile_line.h -- a profile whose nodes stand in a row: the order in which a graph runs, and where it may
 * be cut into stages that run.
 *
 * A stage of a run is a stretch of the graph's order (graph/stages.h), while cuts of a profile are fronts of
 * its branches (cuts.h). Planners that are given this line find what a run can take up: cut k of the line is
 * the place before node k + 1.
 *
 * 1. Nodes, costs and tied groups are those of the profile. The only edges lead from each node to the next.
 * 2. What leaves node k is one tensor of the bytes that cross to node k + 1: everything forward that is made
 *    before it and read from there on, also by the gradient nodes that run there, pass-through included. A
 *    gradient node runs where graph/stages.h puts it.
 * 3. back[k] are the bytes of gradients that cross from node k to node k - 1.
 * 4. first[k] is the node of the graph with which a stage begins that begins with node k.
 *
 * Ownership: everything lies in the arena; names are the profile's. Pure. */
#ifndef HD_COST_PROFILE_LINE_H
#define HD_COST_PROFILE_LINE_H

#include "graph/ir.h"
#include "cost/profile.h"

struct hd_profile_line {
	struct hd_profile profile;
	uint32_t *first;                  /* [nodes] */
	int64_t *back;                    /* [nodes] */
};

/* `home` as hd_profile_of_graph() has it, of the same graph; rows: of a virtual node. */
HD_MUST_USE enum hd_err hd_profile_line(struct hd_profile_line *line, const struct hd_profile *profile,
	const uint32_t *home, const struct hd_graph *graph, uint64_t rows, struct hd_arena *arena,
	struct hd_diag *diag);

#endif
