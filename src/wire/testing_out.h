/* testing_out.h -- one end of a connection alone: all frames that it sends are looked at, and the test says
 * what the peer answers (for the tests of stream_send.c and stream_out.c). */
#ifndef HD_WIRE_TESTING_OUT_H
#define HD_WIRE_TESTING_OUT_H

#include "base/le.h"
#include "wire/stream_int.h"
#include "wire/testing.h"

static const struct hd_hash plan = { { 1, 2, 3 } };

enum { FRAMES = 4096, SMALL = 256, LONG = 100000 };       /* LONG: more than a chunk, less than two */

/* Every frame that went out, in order. */
static struct out { struct hd_frame frame; uint8_t payload[SMALL]; } out[FRAMES];
static uint32_t n_out;

/* Takes the bytes of the stream apart as they come, in whatever pieces. */
static uint8_t gathered[HD_FRAME_HEADER];
static size_t header_at;
static uint32_t payload_at;

static inline void take_byte(uint8_t byte)
{
	struct out *o = &out[n_out];

	if (header_at < HD_FRAME_HEADER) {
		gathered[header_at++] = byte;
		if (header_at == HD_FRAME_HEADER) {
			assert_true(n_out < FRAMES);
			assert_int_equal(hd_frame_get(gathered, &o->frame, NULL), HD_OK);
			payload_at = 0;
		}
	} else {
		if (payload_at < SMALL)
			o->payload[payload_at] = byte;
		payload_at++;
	}
	if (header_at == HD_FRAME_HEADER && payload_at == o->frame.len) {
		header_at = 0;
		n_out++;
	}
}

/* Those that are whole; one that has begun is kept. */
static inline void forget_out(void)
{
	out[0] = out[n_out];
	n_out = 0;
}

/* At most `most` bytes of what one hd_stream_out() names; how many. */
static inline size_t write_some(struct stream_pair *p, size_t most)
{
	struct hd_vec vec[HD_STREAM_VECS];
	bool has = hd_stream_has_out(p->stream[0]);
	size_t n = hd_stream_out(p->stream[0], p->now, vec), done = 0;

	CHECK(has == (n > 0), "it says %d, and names %zu pieces", has, n);
	for (size_t k = 0; k < n; k++) {
		CHECK(vec[k].len > 0, "piece %zu of %zu is empty", k, n);
		for (size_t b = 0; b < vec[k].len && done < most; b++, done++)
			take_byte(((const uint8_t *)vec[k].at)[b]);
	}
	if (done)
		hd_stream_wrote(p->stream[0], done, p->now);
	return done;
}

static inline void write_all(struct stream_pair *p)
{
	while (write_some(p, SIZE_MAX))
		;
}

/* What is named now, all but its last byte: the streams in it are committed, not written. */
static inline size_t write_all_but_one(struct stream_pair *p)
{
	struct hd_vec vec[HD_STREAM_VECS];
	size_t n = hd_stream_out(p->stream[0], p->now, vec), len = 0;

	for (size_t k = 0; k < n; k++)
		len += vec[k].len;
	assert_true(len > 1);
	return write_some(p, len - 1);
}

static inline enum hd_close hear(struct stream_pair *p, struct hd_frame frame, const uint8_t *payload)
{
	uint8_t bytes[HD_FRAME_HEADER + SMALL];

	if (p->stream[0]->config.payload_crc && frame.len) {
		frame.flags |= HD_FRAME_CRC;
		frame.payload_crc = hd_crc32c(0, payload, frame.len);
	}
	hd_frame_put(&frame, bytes);
	if (frame.len)
		memcpy(bytes + HD_FRAME_HEADER, payload, frame.len);
	return pair_feed(p, 0, bytes, HD_FRAME_HEADER + frame.len);
}

static inline void hear_epoch(struct stream_pair *p, uint32_t epoch)
{
	assert_int_equal(hear(p, (struct hd_frame){ .type = HD_FRAME_EPOCH, .epoch = epoch, .len = 16 },
		plan.byte), HD_CLOSE_NONE);
}

static inline enum hd_close hear_slot(struct stream_pair *p, uint32_t transfer, uint32_t count)
{
	uint8_t bytes[hd_grant_len];

	hd_grant_put(&(struct hd_grant_payload){ transfer, count }, bytes);
	return hear(p, (struct hd_frame){ .type = HD_FRAME_GRANT, .class = HD_CLASS_PLANNED,
		.epoch = p->stream[0]->epoch, .len = hd_grant_len }, bytes);
}

static inline enum hd_close hear_credit(struct stream_pair *p, uint8_t class, uint64_t bytes)
{
	uint8_t payload[hd_credit_len];

	hd_credit_put(&(struct hd_credit_payload){ bytes }, payload);
	return hear(p, (struct hd_frame){ .type = HD_FRAME_CREDIT, .class = class,
		.epoch = p->stream[0]->epoch, .len = hd_credit_len }, payload);
}

static inline void hear_cancel(struct stream_pair *p, uint8_t class, uint32_t stream)
{
	uint8_t bytes[hd_cancel_len];

	hd_cancel_put(&(struct hd_cancel_payload){ HD_CANCEL_NOT_NEEDED }, bytes);
	assert_int_equal(hear(p, (struct hd_frame){ .type = HD_FRAME_CANCEL, .class = class,
		.flags = HD_FRAME_MINE, .epoch = p->stream[0]->epoch,
		.stream = stream, .len = hd_cancel_len }, bytes), HD_CLOSE_NONE);
}

static inline void hear_prio(struct stream_pair *p, uint32_t stream, int32_t priority)
{
	assert_int_equal(hear(p, (struct hd_frame){ .type = HD_FRAME_PRIO, .class = HD_CLASS_PLANNED,
		.flags = HD_FRAME_MINE,
		.epoch = p->stream[0]->epoch, .stream = stream, .priority = priority }, plan.byte),
		HD_CLOSE_NONE);
}

/* One end alone, fenced, without checksums, in epoch 1 with these rows both ways; its EPOCH went and the
 * peer's came. */
static inline struct stream_pair *alone(const struct hd_transfer *rows, size_t n)
{
	struct stream_pair *p = pair_of(1200, true, false, 1);

	n_out = 0;
	header_at = 0;
	if (!n)
		return p;
	hd_stream_epoch(p->stream[0], 1, plan);
	assert_int_equal(hd_stream_channel(p->stream[0], rows, n, rows, n, NULL), HD_OK);
	write_all(p);
	assert_int_equal(n_out, 1);
	hear_epoch(p, 1);
	n_out = 0;
	return p;
}

static uint8_t bytes[4 << 20];

static inline enum hd_err send(struct stream_pair *p, uint32_t transfer, int32_t priority, uint64_t len,
	uint64_t token)
{
	return hd_stream_send(p->stream[0], &(struct hd_send){ transfer, priority, token, bytes, len, token },
		p->now, &p->diag[0]);
}

static inline enum hd_err answer(struct stream_pair *p, uint64_t request, uint64_t len, uint64_t token)
{
	return hd_stream_answer(p->stream[0], &(struct hd_answer){ .request = request, .bytes = bytes,
		.len = len, .token = token }, p->now, &p->diag[0]);
}

static inline enum hd_err tell(struct stream_pair *p, uint32_t id,
	size_t len) { return hd_stream_tell(p->stream[0], id, 7, bytes, len, &p->diag[0]); }

static inline void turn(struct stream_pair *p)
{
	assert_int_equal(hd_stream_turn(p->stream[0], p->now, &p->diag[0]), HD_CLOSE_NONE);
}

/* Frames of this type among those that went. */
static inline uint32_t count_out(enum hd_frame_type type)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_out; i++)
		n += out[i].frame.type == type;
	return n;
}

/* The n-th of this type. */
static inline const struct out *nth_out(enum hd_frame_type type, uint32_t n)
{
	for (uint32_t i = 0; i < n_out; i++)
		if (out[i].frame.type == type && !n--)
			return &out[i];
	fail_msg("no such frame went out");
	return NULL;
}

/* How the send of this token ended; it did so exactly once. */
static inline enum hd_err end_of(const struct stream_pair *p, uint64_t token)
{
	enum hd_err err = HD_E_AGAIN;
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->heard[0].n_sents; i++)
		if (p->heard[0].sents[i].token == token) {
			err = p->heard[0].sents[i].err;
			n++;
		}
	CHECK(n == 1, "token %d ended %u times", (int)token, n);
	return err;
}

#endif
