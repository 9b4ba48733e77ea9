/* graph_matrix.h -- a graph as matrices of other programs: Matrix Market, NumPy, pairs of numbers, tables.
 *
 * Parsers of bytes; data/graph_input.h opens the files and says which parser reads which.
 *
 * 1. Matrix Market: "coordinate", of any field but complex, "general" or "symmetric"; an entry (i, j) is
 *    the edge from i - 1 to j - 1, of a symmetric matrix one each way; values are not read.
 * 2. NumPy: edges are integers [2, E] (sources, then targets) or [E, 2]; features numbers [vertices, width],
 *    finite; labels integers [vertices].
 * 3. Pairs: two u32 an edge, little end first.
 * 4. A table of features: a line a vertex, numbers between commas, as many in each line.
 * 5. Vertices that are read here have no label: labels come from a file of their own.
 *
 * Ownership: a sink is handed what it borrows for the call. Pure. */
#ifndef HD_DATA_GRAPH_MATRIX_H
#define HD_DATA_GRAPH_MATRIX_H

#include "data/graph_text.h"

HD_MUST_USE enum hd_err hd_edge_mtx(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	const struct hd_edge_sink *sink, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_edge_npy(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	const struct hd_edge_sink *sink, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_edge_pairs(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	const struct hd_edge_sink *sink, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_vertex_npy(const uint8_t *bytes, size_t len, const char *name,
	const struct hd_vertex_sink *sink, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_vertex_csv(const uint8_t *bytes, size_t len, const char *name,
	const struct hd_vertex_sink *sink, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_label_npy(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	int32_t *label, struct hd_diag *diag);

#endif
