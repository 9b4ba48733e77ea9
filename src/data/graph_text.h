/* graph_text.h -- a graph as text: edges, vertices with features and labels, splits.
 *
 * Parsers of bytes; data/graph_input.h opens the files and says which parser reads which.
 *
 * 1. Lines end with LF or CR LF, the last may have no end; empty ones and those that begin with '#' are
 *    skipped. What breaks a rule is HD_E_INPUT with file:line.
 * 2. Edges: "from to", or with a tab or a comma between; ids below `nvertices`.
 * 3. Vertices: line i is vertex i, "label column:value ...": columns from 0, ascending; the label is -1 for
 *    none; a line may hold the label alone. Nothing is skipped: an empty line is an error.
 * 4. Splits: lines "train ids...", "val ids..." (or "valid"), "test ids...", each once; an id stands in one
 *    of them at most.
 *
 * Ownership: a sink is handed what it borrows for the call. Pure. */
#ifndef HD_DATA_GRAPH_TEXT_H
#define HD_DATA_GRAPH_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Takes edges one by one. `both`: the file says that it is one each way. */
struct hd_edge_sink {
	void *user;
	enum hd_err (*edge)(void *user, uint32_t from, uint32_t to, bool both, struct hd_diag *diag);
};

/* One vertex: sparse features (column, value), or dense ones (column NULL, all of them). */
struct hd_vertex_row {
	uint64_t vertex;
	int32_t label;                    /* -1: none */
	uint32_t width;                   /* columns that the file says there are; 0: those that are named */
	uint32_t n;
	const uint32_t *column;
	const float *value;
};

/* Takes vertices in ascending order. */
struct hd_vertex_sink {
	void *user;
	enum hd_err (*row)(void *user, const struct hd_vertex_row *row, struct hd_diag *diag);
};

enum { HD_VERTICES_CAP = 0x7fffffff,      /* of a graph */
       HD_COLUMNS_CAP = 1 << 24 };        /* of features */

HD_MUST_USE enum hd_err hd_edge_text(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	const struct hd_edge_sink *sink, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_vertex_text(const uint8_t *bytes, size_t len, const char *name,
	const struct hd_vertex_sink *sink, struct hd_diag *diag);
/* One integer a line: line i is vertex i's label. */
HD_MUST_USE enum hd_err hd_label_text(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	int32_t *label, struct hd_diag *diag);
/* Into mask[nvertices] (enum hd_graph_mask), zeroed by the caller. */
HD_MUST_USE enum hd_err hd_split_text(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	uint8_t *mask, struct hd_diag *diag);
/* Lines of ids, one a line, all of the set `which`. */
HD_MUST_USE enum hd_err hd_split_ids(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	uint8_t which, uint8_t *mask, struct hd_diag *diag);

#endif
