/* graph_layout.h -- a prepared graph as the rows of N virtual nodes, and its edges as each of them sees them.
 *
 * Users: the set of samples of a graph (graph_set.c), which has these rows and lists; engine/task.h, which
 * makes the model for them.
 *
 * 1. A virtual node is one interval of the file or several neighbours: N is a power of two, up to their
 *    number. All have as many rows as the largest: what is left over at the end of one has no vertex, no edge
 *    and no label. Row r of virtual node i is row i * rows + r of the graph. One virtual node: its vertices.
 * 2. Ends of edges, per virtual node: `near` is the own end as a row of the virtual node, `far` the other
 *    one, among its rows and behind them its ghosts, rows of others, ascending. Edges are sorted by `near`,
 *    then by the vertex at the far end: the order of the graph, not that of `far`. Each vertex has one to
 *    itself.
 *    `number` is the edge's place among all of the graph, sorted by target, then source: what is drawn for an
 *    edge is drawn by it, whichever end asks.
 * 3. Lists have `edges` and `ghosts` places a row, the same for all virtual nodes; -1 is left over.
 * 4. The file is mapped: numbers that could not be there are HD_E_INTEGRITY, never a place out of bounds.
 *
 * Ownership: a layout borrows the graph; bounds and lists lie in the arena. */
#ifndef HD_DATA_GRAPH_LAYOUT_H
#define HD_DATA_GRAPH_LAYOUT_H

#include "base/arena.h"
#include "data/prepared.h"

/* Virtual node i has the vertices bound[i] to bound[i + 1] - 1. */
struct hd_graph_layout { const struct hd_prepared *graph; const char *name; uint64_t *bound,
	rows; uint32_t n; };

/* HD_E_INVAL: there are no n virtual nodes in it. The name is borrowed. */
HD_MUST_USE enum hd_err hd_graph_layout_make(struct hd_graph_layout *layout, const struct hd_prepared *graph,
	const char *name, uint32_t n, struct hd_arena *arena, struct hd_diag *diag);
/* The row of a vertex; the vertex of a row, or the number of all vertices where it has none. */
uint64_t hd_graph_layout_row(const struct hd_graph_layout *layout, uint64_t vertex);
uint64_t hd_graph_layout_vertex(const struct hd_graph_layout *layout, uint64_t row);

/* The edges that end in a virtual node, or with `back` those that begin there. Places a row; lists
 * [n][rows * edges], [n][rows * ghosts]. */
struct hd_graph_ends { uint64_t edges, ghosts; int32_t *far, *near, *number, *ghost; };
/* The places alone. */
HD_MUST_USE enum hd_err hd_graph_ends_count(const struct hd_graph_layout *layout, bool back,
	struct hd_graph_ends *ends, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_graph_ends_make(const struct hd_graph_layout *layout, bool back,
	struct hd_graph_ends *ends, struct hd_arena *arena, struct hd_diag *diag);

/* Of a file that is read whole for it: rows and places of its n virtual nodes, no lists. */
struct hd_graph_shape { uint64_t rows; struct hd_graph_ends in, out; };
HD_MUST_USE enum hd_err hd_graph_shape(struct hd_graph_shape *shape, struct hd_fs *fs, const char *path,
	uint32_t n, struct hd_diag *diag);

#endif
