/* xfer.h -- the transfer table of a plan: every message that its instructions send.
 *
 * One row per transfer: who sends what to whom, how urgent it is, in which bucket
 * and by which primitive, and what it is predicted to cost. `wire` gives a stream
 * the row's class and priority; the tracer joins measured to predicted cost by id.
 * Plans of one worker have an empty table: devices of a worker share memory.
 *
 * 1. ids are the row numbers. 2. Priorities order the rows of one channel and
 *    class; smaller is more urgent. 3. A bucket is a run of whole chunks. */
#ifndef HD_PLAN_XFER_H
#define HD_PLAN_XFER_H

#include <stdint.h>

/* What a transfer carries. Numbers are those of files. */
#define HD_XFERS(X)                                                      \
	X(ROOT, 1, "root", "roots of the tree of a bucket, to its owner")   \
	X(SUM,  2, "sum",  "the joined sum of a bucket, from its owner")    \
	X(PARM, 3, "parm", "new parameters of a bucket, from its tail")     \
	X(ACT,  4, "act",  "activations to the next stage")                 \
	X(GRAD, 5, "grad", "input gradients to the previous stage")         \
	X(SNAP, 6, "snap", "state for a joiner")

enum hd_xfer_kind {
#define X(id, number, text, about) HD_XFER_##id = (number),
	HD_XFERS(X)
#undef X
};

struct hd_xfer {
	uint8_t  kind, class, primitive;  /* class 0 control, 1 planned, 2 bulk; primitive 0: direct */
	uint16_t from, to;                /* workers */
	uint32_t priority, bucket;
	uint32_t first_chunk, nchunks;    /* what a bucket covers; 0,0 for activations */
	uint64_t len_bytes, predicted_ns;
};

struct hd_xfers { struct hd_xfer *at; uint32_t len, cap; };

#endif
