/* shard_int.h -- a graph on its way into shards, shared by the files that split it: by columns, heads and
 * rows of tables (shard.c) and along the sequence (shard_sequence.c).
 *
 * 1. A value of the old graph may be in the new one whole, in T parts by columns, in T copies, in T parts of
 *    the sequence: each is made when it is first read.
 * 2. After the first failure (`err`) nothing is done; functions then return NULL or HD_NONE. */
#ifndef HD_GRAPH_SHARD_INT_H
#define HD_GRAPH_SHARD_INT_H

#include "graph/op.h"
#include "graph/pass.h"
#include "graph/shard.h"

/* How a value lies in shards: its extent `axis` is cut in `blocks` equal pieces, of each of which a shard has
 * its share (queries, keys and values of attention are three). blocks 0: it is whole. */
struct hd_shard_split { uint8_t blocks, axis; };

struct hd_shard_state {
	struct hd_shard_split split;
	uint32_t *part;                           /* [T] in the new graph, NULL: not made */
	uint32_t *copy;                           /* [T] of a whole value: rule 3's f */
	const uint32_t *rows;                         /* [T] of the sequence, NULL: not made */
	/* its readers work on parts of the sequence where they can */
	bool along;
};

/* Slices of a value, made once. */
struct hd_slices { uint32_t value; struct hd_shard_split split; uint32_t *part; };

/* What the first walk has seen of a parameter, and what the second one makes of it (shard.c). */
struct hd_shard_param {
	struct hd_shard_split split;
	bool sliced, whole;                       /* is read in slices; otherwise, or in other slices */
	uint32_t *part;                           /* [T] parameters in the new graph, NULL: it is one */
};

struct hd_sharder {
	struct hd_rewrite r;
	const struct hd_graph *from;
	uint32_t nshards, nsplits;                /* products and tables that were split */
	bool sequence; uint32_t nalong;           /* nodes that were split along it */
	struct hd_shard_split *wish;                    /* [from->nvalues] */
	struct hd_shard_state *at;                /* [from->nvalues] */
	struct hd_slices *slices; uint32_t nslices, cap;
	struct hd_shard_param *param;             /* [from->nparams] */
	const struct hd_node *node;               /* that is being rewritten */
	uint16_t shard;                           /* of the nodes that are made: as hd_node has it */
	uint32_t done;                            /* nodes of the old graph before this one are */
	struct hd_diag *diag;
	enum hd_err err;                          /* the first failure */
};

/* room for T values */
uint32_t *hd_shard_take(struct hd_sharder *x);
void hd_shard_refuse(struct hd_sharder *x, const char *what, int64_t n);
/* A node of values of the new graph; a random one has the key of the node that is being rewritten. */
uint32_t hd_shard_make(struct hd_sharder *x, enum hd_op op, uint8_t nin, const uint32_t *in,
	struct hd_attr attr);
/* Nodes that are made from here on are of that shard (0: of none); of which they were before. */
uint16_t hd_shard_turn(struct hd_sharder *x, uint16_t shard);

/* A value of the old graph in the new one: for each shard, handed down the tree; as a shard's slice. */
const uint32_t *hd_shard_copies(struct hd_sharder *x, uint32_t value);
const uint32_t *hd_shard_slices(struct hd_sharder *x, uint32_t value, struct hd_shard_split split);
static inline int64_t hd_shard_first(const struct hd_sharder *x, int64_t n,
	uint32_t s) { return n * s / x->nshards; }

/* The sequence option (shard_sequence.c). `value` was summed over the shards: what follows it may work on
 * parts. */
void hd_shard_enter(struct hd_sharder *x, uint32_t value);
/* a rule: says whether it rewrote the node */
bool hd_shard_along(struct hd_sharder *x, const struct hd_node *n);

#endif
