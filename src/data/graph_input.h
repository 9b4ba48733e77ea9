/* graph_input.h -- files that a graph is prepared from: opened, and handed to the parser of their form.
 *
 * gnn/prepare.h reads through it. The form follows from the end of the name, ".gz" left away; gzipped is what
 * begins so, but no ".u32". In place of a file stands a folder in OGB's layout: then it is the role's file
 * inside, of valid and test also an empty one.
 *
 * 1. A file is mapped, or unpacked whole if it is gzipped; it may be parsed more than once.
 * 2. An id is below the number of vertices, which the features say; a message names the file and the place.
 *
 * Ownership: opened and closed by the caller. Threads: one. */
#ifndef HD_DATA_GRAPH_INPUT_H
#define HD_DATA_GRAPH_INPUT_H

#include "base/arena.h"
#include "sys/file.h"
#include "data/graph_text.h"

/* what a file holds, its name in OGB's layout */
#define HD_GRAPH_ROLES(X) \
	X(EDGES, "edge.csv") \
	X(FEATURES, "node-feat.csv") \
	X(LABELS, "node-label.csv") \
	X(TRAIN, "train.csv") \
	X(VALID, "valid.csv") \
	X(TEST, "test.csv")
enum hd_graph_role {
#define X(id, name) HD_GRAPH_IS_##id,
	HD_GRAPH_ROLES(X)
#undef X
};

struct hd_graph_input {
	const char *name;                 /* in the arena */
	const uint8_t *bytes; size_t len;
	struct hd_fs *fs;
	struct hd_map map;
	struct hd_arena arena;            /* of the name, and of what was unpacked */
};

bool hd_graph_is_folder(struct hd_fs *fs, const char *path);
HD_MUST_USE enum hd_err hd_graph_input_open(struct hd_graph_input *input, struct hd_fs *fs, const char *path,
	enum hd_graph_role role, struct hd_diag *diag);
void hd_graph_input_close(struct hd_graph_input *input);           /* takes zeroed ones */

HD_MUST_USE enum hd_err hd_graph_edges(const struct hd_graph_input *input, uint64_t nvertices,
	const struct hd_edge_sink *sink, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_graph_vertices(const struct hd_graph_input *input,
	const struct hd_vertex_sink *sink, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_graph_labels(const struct hd_graph_input *input, uint64_t nvertices,
	int32_t *label, struct hd_diag *diag);
/* A split: the file, or of a folder three of them. Into mask[nvertices], zeroed by the caller. */
HD_MUST_USE enum hd_err hd_graph_sets(struct hd_fs *fs, const char *path, uint64_t nvertices, uint8_t *mask,
	struct hd_diag *diag);

#endif
