/* graph_npz.h -- sparse matrices as SciPy's save_npz() writes them: edges, or features.
 *
 * Parsers of bytes; data/graph_input.h opens the files.
 *
 * 1. Formats csr, csc and coo; of features csr alone. An entry (i, j) is the edge from i to j; values of
 *    edges are not read, entries that are stored as zero count.
 * 2. Indices may stand in any order within a row; features of a row are sorted, and none stands twice.
 *
 * Ownership: what is unpacked lies on the heap for the call. Pure. */
#ifndef HD_DATA_GRAPH_NPZ_H
#define HD_DATA_GRAPH_NPZ_H

#include "data/graph_text.h"

HD_MUST_USE enum hd_err hd_edge_npz(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	const struct hd_edge_sink *sink, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_vertex_npz(const uint8_t *bytes, size_t len, const char *name,
	const struct hd_vertex_sink *sink, struct hd_diag *diag);

#endif
