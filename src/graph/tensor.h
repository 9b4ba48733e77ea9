/* tensor.h -- which of the t devices of a rank runs each node of a graph in shards, and what it waits for.
 *
 * Devices of one rank have one memory. Each runs its own nodes, in the order of the graph, in one arena that
 * all of them share; what another one has made is read where it lies. So no value is copied, and a rank of t
 * devices holds no more than a rank of one, but for rule 4.
 *
 * 1. Of T shards (graph/shard.h) device j of t has those with s t / T = j, rounded down: t divides T, and
 *    neighbours of the tree of shards lie on one device as long as there are any.
 * 2. A node of no shard runs once: on the lowest of the devices that make what it reads, on device 0 where
 *    that is nothing. So a sum of shards is added on the device of its left operand, down the tree, and a
 *    chain of whole nodes stays on one device. A view runs where what it shows was made.
 * 3. A device does not begin a node before what the node reads is made; what a view shows is made with the
 *    value that it shows. Nodes and their operands are those of
 *    one device, so are the bits. Since the order of the graph is an order of its data, some device can
 *    always go on.
 * 4. Two devices are at different places of the order. `until` says how far apart they can be: how many nodes
 *    of a device's list may begin before the node of a place is done. Those behind them may take the bytes of
 *    what it read (device/memplan.h).
 *
 * Everything lies in the arena given. Pure. */
#ifndef HD_GRAPH_TENSOR_H
#define HD_GRAPH_TENSOR_H

#include "graph/ir.h"

enum { HD_MAX_TENSOR = 64 };              /* devices of a rank */

/* Nodes that a device runs one after another: it waits before the first, and says that all are done after the
 * last. */
struct hd_tensor_step {
	uint32_t from, to;                /* of its list */
	const uint32_t *after;            /* [t] nodes of each device's list that are done; of its own: 0 */
};

struct hd_tensor_list {
	uint32_t *node, n;
	struct hd_tensor_step *step; uint32_t nsteps;
};

/* [nvalues] the value whose bytes a view shows; of any other the value itself. NULL: no memory. */
uint32_t *hd_tensor_roots(const struct hd_graph *graph, struct hd_arena *arena);

/* device[nnodes] by rules 1 and 2. HD_E_INVAL: t does not divide the shards, or is above the most. */
HD_MUST_USE enum hd_err hd_tensor_place(uint8_t *device, const struct hd_graph *graph, uint32_t nshards,
	uint32_t t, struct hd_diag *diag);

/* The lists of t devices for one order of nodes, all of which are done before another order begins: list[t];
 * of each place of the order its place in its device's list, place[norder], and until[norder][t]. */
HD_MUST_USE enum hd_err hd_tensor_lists(struct hd_tensor_list *list, uint32_t *place, uint32_t *until,
	const struct hd_graph *graph, const uint8_t *device, uint32_t t, const uint32_t *order,
	uint32_t norder, struct hd_arena *arena, struct hd_diag *diag);

#endif
