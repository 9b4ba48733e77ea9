/* xfer.h -- the transfer table: what a row says, and the kinds of transfers.
 *
 * One row a transfer: what it carries, from which worker to which, how urgent it is, which bucket it is of,
 * by which primitive it goes, how long it is and what it is predicted to cost. The row's number is the
 * transfer's id: on the wire, in the trace, in files. A running job derives its rows from its view
 * (protocol/transfers.h); the rows of a plan file are those of its lines, in order. A plan of one worker has
 * none: its devices share memory.
 *
 * 1. Ids are the numbers of rows.
 * 2. Priorities order the rows of one channel and class; smaller is more urgent.
 * 3. A bucket is a run of whole chunks.
 * 4. Numbers and texts of kinds stand in files and are never reused. */
#ifndef HD_PLAN_XFER_H
#define HD_PLAN_XFER_H

#include <stdbool.h>
#include <stdint.h>

/* What a transfer carries. The text is that of plan files. */
#define HD_XFERS(X)                                                                             \
	X(PARTIAL,     1, "root",    "a partial sum of a bucket (a root of its tree), to its owner") \
	X(SUM,         2, "sum",     "the sum of a bucket")                                          \
	X(PARAMETERS,  3, "parm",    "new parameters of a bucket, from the last of its chain")       \
	X(ACTIVATIONS, 4, "act",     "activations, to the next stage")                               \
	X(GRADIENTS,   5, "grad",    "gradients of activations, to the previous stage")              \
	X(STATE,       6, "snap",    "state, to a joiner")                                           \
	X(NORM,        7, "norm",    "sums of squares of a bucket, segment by segment")              \
	X(DIGEST,      8, "digest",  "digests of a bucket's optimizer slots")                        \
	X(METRICS,     9, "metrics", "metrics of one virtual node")                                  \
	X(TABLE,      10, "table",   "metrics of all virtual nodes")                                 \
	X(SHADOW,     11, "shadow",  "what a shadow of a stage holds, from that stage")         \
	X(MOMENTS,    12, "moments", "what virtual nodes bring to a norm over the global batch")

enum hd_xfer_kind {
#define X(id, number, text, about) HD_XFER_##id = (number),
	HD_XFERS(X)
#undef X
};
enum { HD_XFER_KINDS = 13 };              /* one more than the greatest number; 0 is no kind */

/* What one compute thread hands to another inside a pass: its rows are the plan's, not the exchange's. */
static inline bool hd_xfer_is_mail(enum hd_xfer_kind kind)
{
	return kind == HD_XFER_ACTIVATIONS || kind == HD_XFER_GRADIENTS || kind == HD_XFER_MOMENTS;
}

enum hd_xfer_class { HD_XFER_CONTROL, HD_XFER_PLANNED, HD_XFER_BULK };

struct hd_xfer {
	uint8_t  kind, class, primitive;  /* primitive 0: direct */
	uint32_t from, to;                /* workers */
	uint32_t priority, bucket;
	uint32_t first_chunk, nchunks;    /* what a bucket covers; 0, 0 where there is none */
	uint64_t len_bytes, predicted_ns;
};

struct hd_xfers { struct hd_xfer *at; uint32_t len, cap; };

#endif
