/* xfer.h -- the transfer table: a row for each message between workers that a step may need, and the kinds
 * of transfers.
 *
 * A row says what is carried, from which worker to which, of which bucket of the flat gradient
 * (graph/layout.h), how urgent it is, how long, by which primitive it goes and what it is predicted to cost.
 * A running job derives its rows from its view (protocol/transfers.h); a plan file has one a line. A plan of
 * one worker has none: its devices share memory.
 *
 * 1. The number of a row is the id of its transfer: on the wire, in the trace, in files.
 * 2. Priorities order the rows from one worker to another within a class; smaller is more urgent.
 * 3. A bucket is a run of whole chunks (graph/layout.h).
 * 4. Numbers and texts of kinds stand in files and are never reused. */
#ifndef HD_PLAN_XFER_H
#define HD_PLAN_XFER_H

#include <stdbool.h>
#include <stdint.h>

/* What a transfer carries. The text is that of plan files. A partial sum is what one worker has of a bucket's
 * sum (a *root*, plan/tree.h); a chain are the holders of a bucket's optimizer slots (plan/holding.h); a
 * virtual node is a fixed part of the global batch. */
#define HD_XFERS(X)                                                                            \
	X(PARTIAL,      1, "root",    "a partial sum of a bucket, to its owner")               \
	X(SUM,          2, "sum",     "the sum of a bucket")                                   \
	X(PARAMETERS,   3, "parm",    "new parameters of a bucket, from the last of its chain")\
	X(ACTIVATIONS,  4, "act",     "activations, to the next stage")                        \
	X(GRADIENTS,    5, "grad",    "gradients of activations, to the previous stage")       \
	X(STATE,        6, "snap",    "parameters and slots, to a worker that joins")          \
	X(NORM,         7, "norm",    "sums of squares of a bucket, for the gradient norm")    \
	X(DIGEST,       8, "digest",  "digests of a bucket's optimizer slots")                 \
	X(METRICS,      9, "metrics", "metrics of one virtual node")                           \
	X(TABLE,       10, "table",   "metrics of all virtual nodes")                          \
	X(SHADOW,      11, "shadow",  "state of a stage, to a standby copy; not sent so far")  \
	X(MOMENTS,     12, "moments", "for batch normalisation over the global batch")         \
	X(SHARDS,      13, "shards",  "what shards of a stage on several workers read of others")\
	X(RATIO,       14, "ratio",   "sums of squares of a bucket's parameters and of their moves, for trust ratios")

enum hd_xfer_kind {
#define X(id, number, text, about) HD_XFER_##id = (number),
	HD_XFERS(X)
#undef X
};
enum { HD_XFER_KINDS = 15 };              /* one more than the greatest number; 0 is no kind */

/* *Mail*: what compute threads need from one another during forward and backward. The plan says which rows of
 * it a step has; for all other kinds the exchange after backward does (protocol/exchange.h). */
static inline bool hd_xfer_is_mail(enum hd_xfer_kind kind)
{
	return kind == HD_XFER_ACTIVATIONS || kind == HD_XFER_GRADIENTS || kind == HD_XFER_MOMENTS ||
		kind == HD_XFER_SHARDS;
}

/* Of the wire (wire/hub.h), a lower one goes first: messages, transfers that a plan or view names, and bulk
 * (state for joiners, checkpoints). */
enum hd_xfer_class { HD_XFER_CONTROL, HD_XFER_PLANNED, HD_XFER_BULK };

struct hd_xfer {
	uint8_t  kind, class, primitive;  /* primitive: enum hd_collective (collective.h); 0: direct */
	uint32_t from, to;                /* workers */
	uint32_t priority, bucket;
	uint32_t first_chunk, nchunks;    /* those of the bucket; 0, 0: it is of no bucket */
	uint64_t len_bytes, predicted_ns;
};

struct hd_xfers { struct hd_xfer *at; uint32_t len, cap; };

#endif
