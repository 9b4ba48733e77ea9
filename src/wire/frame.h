/* frame.h -- the bytes of a frame: 48 of header, then a payload whose length the type fixes.
 *
 * 0       2   3    4     5     6   8       12       16     24       32       36         40        44
 * | magic | v | ty | cls | flg | 0 | epoch | stream | step | offset | length | priority | payload | header
 * |  u16  | u8| u8 | u8  | u8  |u16|  u32  |  u32   | u64  |  u64   |  u32   |   i32    | crc u32 | crc u32
 *
 * Little-endian; crc is CRC-32C (base/crc32c.h), the header's of its bytes 0..43. Used by stream and peer
 * alone.
 *
 * 1. hd_frame_get() accepts only what it understands completely: known type, a class and flags that the
 *    type may have, fields that mean nothing for the type zero, a length of the type's. So one frame
 *    has one spelling, and get after put is the identity.
 * 2. `mine`: the stream's number was chosen by the receiver of this frame (it talks of a stream it gets).
 * 3. A payload is read by its hd_<name>_get(), which checks that values of closed sets are in them.
 * 4. Numbers in the tables are never reused.
 *
 * Pure; nothing allocates; any thread. */
#ifndef HD_WIRE_FRAME_H
#define HD_WIRE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"

enum {
	HD_FRAME_MAGIC = 0x4448,          /* "HD" */
	HD_FRAME_VERSION = 1,
	HD_FRAME_HEADER = 48,
	HD_DATA_MAX = 1 << 20,            /* of one frame */
	HD_BYE_TEXT = 200,
};

enum hd_frame_flags { HD_FRAME_CRC = 1, HD_FRAME_MINE = 2, HD_FRAME_LAST = 4 };
enum { HD_CLASS_CONTROL = 0, HD_CLASS_PLANNED = 1, HD_CLASS_BULK = 2, HD_CLASSES = 3 };
enum hd_frame_field { HD_FIELD_STREAM = 1, HD_FIELD_STEP = 2, HD_FIELD_OFFSET = 4, HD_FIELD_PRIORITY = 8 };

/* Classes as bits. `must`: flags that are always there; `may`: that can be (payload CRC: every type with a
 * payload). `fenced`: by epoch (stream.h). PRIO of stream 0 is of a transfer that has not begun at the
 * receiver: `offset` is its id, `step` says that it is the nth of it in this epoch, from 1.
 *        id        no, classes, must, may, fields that mean something, least and greatest payload, fenced */
#define HD_FRAMES(X) \
	X(HELLO,      1, 1, 0, 0, 0,                                          80,         80,   0)              \
	X(WELCOME,    2, 1, 0, 0, 0,                                          80,         80,   0)              \
	X(EPOCH,      3, 1, 0, 0, 0,                                          16,         16,   1)              \
	X(OPEN,       4, 7, 0, 0, HD_FIELD_STREAM | HD_FIELD_STEP | HD_FIELD_PRIORITY, 32, 32,  1)              \
	X(DATA,       5, 7, 0, HD_FRAME_LAST, HD_FIELD_STREAM | HD_FIELD_STEP | HD_FIELD_OFFSET | HD_FIELD_PRIORITY, 1, HD_DATA_MAX, 1) \
	X(CANCEL,     6, 6, HD_FRAME_MINE, 0, HD_FIELD_STREAM,                 4,          4,   1)              \
	X(CANCELLED,  7, 6, 0, 0, HD_FIELD_STREAM,                             8,          8,   1)              \
	X(PRIO,       8, 6, HD_FRAME_MINE, 0, HD_FIELD_STREAM | HD_FIELD_STEP | HD_FIELD_OFFSET | HD_FIELD_PRIORITY, 0, 0, 1) \
	X(GRANT,      9, 2, 0, 0, 0,                                           8,          8,   1)              \
	X(CREDIT,    10, 5, 0, 0, 0,                                           8,          8,   0)              \
	X(PING,      11, 1, 0, 0, 0,                                           8,          8,   0)              \
	X(PONG,      12, 1, 0, 0, 0,                                          24,         24,   0)              \
	X(BYE,       13, 1, 0, 0, 0,                                           4, 4 + HD_BYE_TEXT, 0)

enum hd_frame_type {
#define X(id, no, classes, must, may, fields, least, greatest, fenced) HD_FRAME_##id = (no),
	HD_FRAMES(X)
#undef X
};

struct hd_frame {
	enum hd_frame_type type;
	uint8_t class, flags;
	uint32_t epoch, stream;
	uint64_t step, offset;
	uint32_t len;                     /* of the payload */
	int32_t priority;
	uint32_t payload_crc;             /* 0 without HD_FRAME_CRC */
};

void hd_frame_put(const struct hd_frame *frame, uint8_t bytes[HD_FRAME_HEADER]);
/* HD_E_PROTOCOL says which rule is broken; *frame is then untouched. */
HD_MUST_USE enum hd_err hd_frame_get(const uint8_t bytes[HD_FRAME_HEADER], struct hd_frame *frame,
	struct hd_diag *diag);
const char *hd_frame_name(enum hd_frame_type type);        /* "HELLO"; "?" of a number without a row */
bool hd_frame_is_fenced(enum hd_frame_type type);

/* ---- payloads of fixed length ----
 *
 * F(sort, name, least, greatest): u16, u32, u64, or `id`, 16 bytes without bounds. */

/* HELLO, WELCOME: in the latter least = greatest = the version chosen, and nonce is the HELLO's */
#define HD_GREETING(F) \
	F(u16, least, 0, UINT16_MAX) F(u16, greatest, 0, UINT16_MAX) F(u32, worker, 0, UINT32_MAX) \
	F(u32, role, 1, 3) F(u32, detect_ms, 10, 600000) F(id, job, 0, 0) F(id, job_hash, 0, 0) \
	F(id, kernels, 0, 0) F(id, nonce, 0, 0)
#define HD_EPOCH(F) F(id, plan, 0, 0)
/* transfer UINT32_MAX: unplanned; flow: of a control message its id; request: of bulk, else 0 */
#define HD_OPEN(F) \
	F(u32, transfer, 0, UINT32_MAX) F(u32, kind, 0, 2) F(u64, total, 0, UINT64_MAX) \
	F(u64, flow, 0, UINT64_MAX) F(u64, request, 0, UINT64_MAX)
#define HD_CANCEL(F) F(u32, reason, 1, 3)         /* enum hd_cancel_reason */
#define HD_CANCELLED(F) F(u64, sent, 0, UINT64_MAX)       /* bytes; also unasked, by a sender that gives up */
#define HD_GRANT(F) F(u32, transfer, 0, UINT32_MAX - 1) F(u32, count, 1, UINT32_MAX)
#define HD_CREDIT(F) F(u64, bytes, 1, UINT64_MAX)         /* of the frame's class */
#define HD_PING(F) F(u64, t1, 0, UINT64_MAX)
#define HD_PONG(F) F(u64, t1, 0, UINT64_MAX) F(u64, t2, 0, UINT64_MAX) F(u64, t3, 0, UINT64_MAX)

/* P(name, fields): struct hd_<name>_payload, hd_<name>_put(), hd_<name>_get(), hd_<name>_len */
#define HD_PAYLOADS(P) \
	P(greeting, HD_GREETING) P(epoch, HD_EPOCH) P(open, HD_OPEN) P(cancel, HD_CANCEL) \
	P(cancelled, HD_CANCELLED) P(grant, HD_GRANT) P(credit, HD_CREDIT) P(ping, HD_PING) P(pong, HD_PONG)

enum hd_cancel_reason { HD_CANCEL_EPOCH = 1, HD_CANCEL_NOT_NEEDED = 2, HD_CANCEL_ERROR = 3 };
#define HD_TRANSFER_NONE UINT32_MAX

#define HD_SORT_u16 uint16_t
#define HD_SORT_u32 uint32_t
#define HD_SORT_u64 uint64_t
#define HD_SORT_id struct hd_hash
#define HD_LEN_u16 2
#define HD_LEN_u32 4
#define HD_LEN_u64 8
#define HD_LEN_id 16
#define F(sort, name, lo, hi) HD_SORT_##sort name;
#define P(name, fields) struct hd_##name##_payload { fields(F) };
HD_PAYLOADS(P)
#undef F
#undef P
#define F(sort, name, lo, hi) + HD_LEN_##sort
#define P(name, fields) \
	enum { hd_##name##_len = 0 fields(F) }; \
	void hd_##name##_put(const struct hd_##name##_payload *payload, uint8_t *bytes); \
	HD_MUST_USE enum hd_err hd_##name##_get(const uint8_t *bytes, struct hd_##name##_payload *payload, \
		struct hd_diag *diag);
HD_PAYLOADS(P)
#undef F
#undef P

#endif
