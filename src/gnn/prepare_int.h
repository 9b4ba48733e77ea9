/* prepare_int.h -- a graph while it is prepared: what the steps hand on.
 *
 * Steps, in this order: prepare_read.c (vertices, edges, sets), split.c, prepare_write.c.
 * Ownership: all of it is hd_prepare_graph()'s, and ends there. Private to the room. */
#ifndef HD_GNN_PREPARE_INT_H
#define HD_GNN_PREPARE_INT_H

#include "base/hash.h"
#include "data/graph_input.h"
#include "data/pair_sort.h"
#include "gnn/prepare.h"

/* Edges by vertex in ids of the input: offsets in memory, far ends in a scratch file of no name, mapped. */
struct hd_rows { uint64_t *offset; struct hd_map map; };

struct hd_preparing {
	const struct hd_prepare *how;
	struct hd_fs *fs;
	struct hd_diag *diag;
	char temporary[HD_PATH_CAP];
	struct hd_file output;            /* the temporary file, locked */
	bool taken;                       /* it is this call's, and has its temporary name */
	struct hd_graph_input features; uint64_t features_digest;         /* read twice */
	struct hd_prepared_head head;
	/* by id of the input */
	int32_t *label; uint32_t labels_cap;
	uint32_t *nfeatures; uint32_t nfeatures_cap;
	uint8_t *mask;
	uint32_t *weight;                 /* edges into it */
	uint32_t *interval, *renumber;
	struct hd_rows in, both;          /* both: in either direction; undirected: `in` */
	/* by new number */
	uint32_t *order;                  /* the id of the input */
	uint64_t *bound;                  /* of intervals */
	uint64_t scratch_bytes;
};

/* Intervals and splitter, as far as they are known: first without the vertices, then with them. */
HD_MUST_USE enum hd_err hd_prepare_check(const struct hd_preparing *p);
HD_MUST_USE enum hd_err hd_prepare_read(struct hd_preparing *p);
HD_MUST_USE enum hd_err hd_prepare_write(struct hd_preparing *p);
void hd_rows_free(struct hd_rows *rows, struct hd_fs *fs);         /* takes zeroed ones */
HD_MUST_USE enum hd_err hd_prepare_path(char path[HD_PATH_CAP], const char *out, const char *end,
	struct hd_diag *diag);

static inline struct hd_edges hd_rows_edges(const struct hd_rows *rows)
{
	return (struct hd_edges){ rows->offset, (const uint32_t *)(const void *)rows->map.bytes };
}

/* Of a file as it is mapped; 0: it was unpacked into memory, where nothing changes it. */
static inline uint64_t hd_prepare_digest(const struct hd_graph_input *input)
{
	return input->map.len ? hd_hash64(input->map.bytes, input->map.len) : 0;
}

static inline void hd_prepare_say(const struct hd_preparing *p, const char *what, uint64_t done, uint64_t all)
{
	if (p->how->progress)
		p->how->progress(p->how->user, what, done, all);
}

enum { HD_PREPARE_OFTEN = 1 << 16 };      /* edges or vertices between two lines of progress */

#endif
