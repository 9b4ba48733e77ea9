/* ids.h -- how many different integers an input may hold: what the tables that they index say.
 *
 * Ids reach a table as they are, moved (ops that change no element), clipped or masked; logits are the table
 * of the labels that judge them. Ids that are computed on the way are bounded by nothing here: a kernel that
 * meets one past the end touches no memory for it, and its result is no number.
 *
 * Reads the graph as it is, before or after passes; its working memory is the graph's arena. */
#ifndef HD_GRAPH_IDS_H
#define HD_GRAPH_IDS_H

#include "graph/ir.h"

/* The table with the fewest rows that elements of `value` index; rows 0: none does. node: its reader. */
struct hd_ids { int64_t rows; uint32_t node; };
HD_MUST_USE enum hd_err hd_graph_ids(const struct hd_graph *graph, uint32_t value, struct hd_ids *ids,
	struct hd_diag *diag);

#endif
