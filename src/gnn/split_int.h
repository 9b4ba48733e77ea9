/* split_int.h -- one cut of a graph in two: what the recursion asks, what splitters answer.
 *
 * Ownership: the caller's arrays. Private to the room. */
#ifndef HD_GNN_SPLIT_INT_H
#define HD_GNN_SPLIT_INT_H

#include "gnn/split.h"

/* A part of the graph by itself: its vertices from 0, in the order of their ids. */
struct hd_bisect {
	uint32_t n;
	const uint64_t *offset;           /* n + 1 */
	const uint32_t *at;               /* edges that stay inside */
	const uint32_t *weight;           /* edges into each vertex, of the whole graph */
	uint32_t least;                   /* vertices that each side has at least */
};

/* side[n], 0 or 1. */
HD_MUST_USE enum hd_err hd_bisect_own(const struct hd_bisect *graph, uint8_t *side, struct hd_diag *diag);
/* HD_E_AGAIN: it found no cut that keeps the rules; take another splitter. HD_E_REFUSED: too many edges.
 * HD_E_IO: it failed. HD_E_PREEMPTED: a signal stopped it. */
HD_MUST_USE enum hd_err hd_bisect_metis(const struct hd_bisect *graph, uint64_t seed, uint8_t *side,
	struct hd_diag *diag);

#endif
