/* stream.h -- the state machine of one greeted connection: what to send next, and what arrived.
 *
 * Pure: peer.h moves the bytes. No descriptor, no clock (`now` is an argument), no waiting: the same
 * machine runs in simulations and under every interleaving of a test.
 *
 * Sending: control before planned before bulk. Planned streams wait in a heap by (priority, arrival), those
 * without a grant outside it. One chunk is committed at a time, and never preempted; then the heap picks the
 * next. Receiving: payload goes from the transport straight into the posted buffer, small frames through
 * 4 KiB of staging.
 *
 *  1. Bytes that hd_stream_out() named stay where they are until hd_stream_wrote() covered them; those of
 *     hd_stream_in() until hd_stream_read(). Between the two no other call but these, and callbacks come only
 *     from hd_stream_read(), hd_stream_wrote() and hd_stream_turn().
 *  2. Chunk: 2^floor(log2(goodput x 1 ms)), 16 KiB to 1 MiB, 64 KiB until known; goodput weighted 0.2.
 *  3. Bulk is not starved: while it waits behind planned data it gets a byte for each 19 of those, a chunk at
 *     a time.
 *  4. Control: 256 KiB of credit, bulk: 4 MiB, given back as the bytes are consumed. Control messages go in
 *     the order of the calls, one after the other: at most one is incomplete at the receiver.
 *  5. Fence (config.fenced): frames of the current and the decided epoch are accepted; of an older one
 *     dropped, counted, and answered STALE once per epoch; of a newer one: nothing is read until it is known
 *     (hd_stream_held()). OPEN of a planned stream, GRANT and PRIO go only after both ends' EPOCH frames
 *     agree. Bulk, and messages from id HD_TELL_ASKS on, are sent as of the decided epoch once the peer has
 *     named it.
 *  6. An EPOCH frame ends the planned streams of earlier epochs in its direction; no other frame does.
 *  7. Advice (PRIO) is of a stream, or of the nth of a transfer in this epoch, which may not be queued yet:
 *     it is kept for that one, and no other has it.
 *  8. At most HD_STREAMS_OPEN streams are under way in one direction.
 *
 * Ownership: create/destroy; one thread. */
#ifndef HD_WIRE_STREAM_H
#define HD_WIRE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "sys/socket.h"
#include "wire/close.h"
#include "wire/events.h"
#include "wire/hub.h"

enum {
	HD_STREAMS_OPEN = 1024,
	HD_STREAM_VECS = 32,
	HD_CHUNK_LEAST = 16 << 10, HD_CHUNK_FIRST = 64 << 10, HD_CHUNK_MOST = 1 << 20,
	HD_CREDIT_CONTROL = 256 << 10, HD_CREDIT_BULK = 4 << 20,
	HD_AGE_SHARE = 19,
	/* a control message of the room: u32 epoch of the end that dropped */
	HD_CONTROL_STALE = 1,
};

struct hd_stream_config {
	uint32_t self, peer;
	bool fenced;                      /* neither end is a coordinator */
	bool payload_crc;                 /* the transport does not protect what it carries */
	uint32_t streams_cap;
	uint64_t (*stamp)(void *self);    /* of probes */
	void *stamp_self;
};

struct hd_stream;

HD_MUST_USE enum hd_err hd_stream_create(const struct hd_stream_config *config,
	const struct hd_wire_events *events, struct hd_stream **stream,
					 struct hd_diag *diag);
void hd_stream_destroy(struct hd_stream *stream);         /* no callbacks; takes NULL */
/* `sent` of all that is queued says HD_E_PEERLOST */
void hd_stream_lost(struct hd_stream *stream);

/* ---- what the owner asks for: as in wire/hub.h ---- */
void hd_stream_decided(struct hd_stream *stream, uint32_t next);
void hd_stream_epoch(struct hd_stream *stream, uint32_t epoch, struct hd_hash plan);
HD_MUST_USE enum hd_err hd_stream_channel(struct hd_stream *stream, const struct hd_transfer *in, size_t n_in,
	const struct hd_transfer *out, size_t n_out,
					  struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_stream_tell(struct hd_stream *stream, uint32_t id, uint64_t step,
	const void *bytes, size_t len, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_stream_send(struct hd_stream *stream, const struct hd_send *send, int64_t now,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_stream_answer(struct hd_stream *stream, const struct hd_answer *answer,
	int64_t now, struct hd_diag *diag);
void hd_stream_cancel(struct hd_stream *stream, uint64_t token);
HD_MUST_USE enum hd_err hd_stream_post(struct hd_stream *stream, uint32_t transfer, void *buffer, int64_t now,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_stream_expect(struct hd_stream *stream, uint64_t request, void *buffer,
	uint64_t cap, int64_t now, struct hd_diag *diag);
void hd_stream_want(struct hd_stream *stream, uint32_t transfer);
void hd_stream_rank(struct hd_stream *stream, uint64_t token, int32_t priority);
void hd_stream_refuse(struct hd_stream *stream, uint64_t request);
void hd_stream_ping(struct hd_stream *stream);            /* one is pending at most */
/* after all queued messages; then nothing more goes out */
void hd_stream_bye(struct hd_stream *stream, enum hd_close why, const char *text);

/* ---- bytes ---- */
/* What to write next; 0: nothing. At least one chunk's worth where there is as much. */
size_t hd_stream_out(struct hd_stream *stream, int64_t now, struct hd_vec vec[HD_STREAM_VECS]);
void hd_stream_wrote(struct hd_stream *stream, size_t len, int64_t now);
bool hd_stream_has_out(const struct hd_stream *stream);   /* hd_stream_out() would name something */
/* and some of it was chosen before: it goes first */
bool hd_stream_is_committed(const struct hd_stream *stream);
bool hd_stream_said_bye(const struct hd_stream *stream);  /* and it is written */
/* Where the next bytes go; 0: nothing is read now (see hd_stream_held). */
size_t hd_stream_in(struct hd_stream *stream, struct hd_vec vec[2]);
/* len bytes came there. Anything but NONE: close for this reason; diag says more. */
enum hd_close hd_stream_read(struct hd_stream *stream, size_t len, int64_t now, struct hd_diag *diag);
/* Callbacks that are due without bytes, and input that was held and may go on. As hd_stream_read(). */
enum hd_close hd_stream_turn(struct hd_stream *stream, int64_t now, struct hd_diag *diag);
bool hd_stream_is_due(const struct hd_stream *stream);    /* hd_stream_turn() would do something */

/* ---- what the peer watches ---- */
/* an unknown epoch; a promised grant without its post */
enum hd_held { HD_HELD_NOT, HD_HELD_AHEAD, HD_HELD_POST };
enum hd_held hd_stream_held(const struct hd_stream *stream, uint32_t *epoch);
bool hd_stream_inside(const struct hd_stream *stream);    /* between the first and the last byte of a frame */
uint32_t hd_stream_chunk(const struct hd_stream *stream);
/* adds to what is there */
void hd_stream_stats(const struct hd_stream *stream, struct hd_hub_stats *stats);

#endif
