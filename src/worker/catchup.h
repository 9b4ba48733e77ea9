/* catchup.h -- state transfer to a joiner while training goes on: a fuzzy copy, brought up to date step by
 * step.
 *
 * The *source* is a member. At step boundaries (the only time when the state does not change) it copies
 * part of its state into a queue. For each bucket that it copied before, it also queues the gradient sum of
 * the step just finished. The *sink* is in the joiner. It stores the state ranges (*snaps*), and runs the
 * ordinary update on the sums, bucket by bucket, with the scalars of that step. Once every bucket was
 * copied, the sink holds X_step and follows the training.
 *
 * The stream is a sequence of records. It travels in *chunks* of at most HD_CATCHUP_CHUNK bytes, which the
 * joiner requests one by one. The first byte of a chunk says: more of the stream, or the source gave up
 * (this may come in the middle of a record). A record, little endian:
 *
 *	u32 kind, u32 index, u64 step, u64 len, then len bytes
 *	SNAP   index = snap, of X_step
 *	SUM    index = bucket, gradient sum of step
 *	STEP   scalars of step, and the state's remainder after it
 *	REST   the state's remainder at X_step
 *	PROBE  index = virtual node: digest of its gradients in step, from X_step; empty: the source lacked
 *	       memory
 *	EVEN   all of X_step was sent
 *
 * 1. Order at the boundary of X_s: SUM of s-1 for each bucket sent before; STEP s-1 (REST if nothing was
 *    sent before); SNAPs of X_s; when all are sent, EVEN. PROBE comes before the first EVEN.
 * 2. Flow control. A boundary copies at most `budget` bytes of snaps, but at least one group of snaps that
 *    change together, and none while HD_CATCHUP_QUEUE bytes are queued. Sums must be queued always; beyond
 *    HD_CATCHUP_QUEUE_MOST the source gives up. Before adding more, the member waits for the joiner to
 *    drain its queue, up to max(its compute time of the step, T/8). So a joiner up to 2x slower than
 *    training still catches up. A slower one is aborted; the coordinator retries it after a backoff
 *    (coordinator.h, rule 13).
 * 3. The sink accepts only the record that it expects: another order, length or index is HD_E_PROTOCOL.
 * 4. The sink computes the virtual node of PROBE too: same program, same samples, the received state. A
 *    different digest is HD_E_INTEGRITY: the joiner's steps would differ from the members'. Each transfer
 *    probes another virtual node.
 *
 * Ownership: source and sink are the caller's; a chunk taken is freed by hd_catchup_chunk_free().
 * Threads: boundary(), wait() and the sink: compute thread. take(), cancel() and chunk_free(): I/O
 * thread. */
#ifndef HD_WORKER_CATCHUP_H
#define HD_WORKER_CATCHUP_H

#include "sys/lock.h"
#include "engine/dist.h"

enum { HD_CATCHUP_CHUNK = 1 << 20, HD_CATCHUP_QUEUE = 64 << 20, HD_CATCHUP_QUEUE_MOST = 256 << 20,
	HD_CATCHUP_HEAD = 24 };

struct hd_catchup_chunk { struct hd_catchup_chunk *next; uint64_t number; size_t len; uint8_t bytes[]; };

struct hd_catchup_source {
	struct hd_worker *worker;         /* borrowed */
	const struct hd_layout *layout;   /* borrowed */
	uint32_t nsnaps, nbuckets, given; /* snaps 0..given-1 are sent */
	bool even, begun, unprobed;       /* unprobed: no memory for PROBE */
	uint64_t at;                      /* the last boundary */
	struct hd_lock lock;              /* guards what follows */
	struct hd_cond less;              /* a chunk was taken */
	bool over, said_over;                  /* gave up; the joiner has that chunk */
	/* the last one is filled further until it is full or the boundary is over */
	struct hd_catchup_chunk *first, *last;
	uint64_t queued, next;            /* bytes; number of the next chunk */
};

void hd_catchup_source_init(struct hd_catchup_source *source, struct hd_worker *worker,
	const struct hd_layout *layout);
void hd_catchup_source_finish(struct hd_catchup_source *source);       /* takes zeroed ones */
/* Between steps: the state is X_step, and step - 1 was just finished (or none yet). Called again for the
 * same step: more snaps, for a joiner that stopped members wait for. */
void hd_catchup_source_boundary(struct hd_catchup_source *source, uint64_t step, uint64_t budget);
/* Waits until less than HD_CATCHUP_QUEUE is queued or the transfer was cancelled. false: `until_ns`
 * passed (on hd_clock_real()). */
bool hd_catchup_source_wait(struct hd_catchup_source *source, int64_t until_ns);
/* The joiner needs no more: drops the queue, wakes wait(). */
void hd_catchup_source_cancel(struct hd_catchup_source *source);
/* the oldest; NULL: none */
struct hd_catchup_chunk *hd_catchup_source_take(struct hd_catchup_source *source);
void hd_catchup_chunk_free(struct hd_catchup_chunk *chunk);

struct hd_catchup_sink {
	struct hd_worker *worker;         /* borrowed */
	const struct hd_layout *layout;   /* borrowed */
	uint32_t nsnaps, nbuckets, nsums;
	uint8_t *has;                     /* owned: [nsnaps] */
	uint32_t *sum;                    /* owned: [nbuckets] buckets whose sums of the step arrived */
	uint8_t *room;                    /* owned: buffer of the record being received */
	uint64_t room_cap, got;           /* bytes of the record, its head included */
	uint8_t head[HD_CATCHUP_HEAD];
	uint64_t step;                    /* of the state, once some of it arrived */
	bool begun, over, asked;          /* asked: PROBE came */
	/* no memory for PROBE, here or at the source: the bits were not compared */
	bool unprobed;
};

HD_MUST_USE enum hd_err hd_catchup_sink_init(struct hd_catchup_sink *sink, struct hd_worker *worker,
	const struct hd_layout *layout, struct hd_diag *diag);
void hd_catchup_sink_finish(struct hd_catchup_sink *sink);             /* takes zeroed ones */
/* The next chunk. *even: all of X_step is here (sink->step); call hd_dist_learned() before the worker steps.
 * sink->over: the source gave up. */
HD_MUST_USE enum hd_err hd_catchup_sink_take(struct hd_catchup_sink *sink, const uint8_t *chunk,
	size_t len, bool *even,
	struct hd_diag *diag);
/* The next bytes of the stream, cut anywhere. */
HD_MUST_USE enum hd_err hd_catchup_sink_feed(struct hd_catchup_sink *sink, const uint8_t *bytes,
	size_t len, bool *even,
	struct hd_diag *diag);

#endif
