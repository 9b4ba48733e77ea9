/* testing_script.h -- bytes that a peer sends, written frame by frame, and the end that reads them: included
 * by *_test.c only. */
#ifndef HD_WIRE_TESTING_SCRIPT_H
#define HD_WIRE_TESTING_SCRIPT_H

#include "base/le.h"
#include "wire/stream_int.h"
#include "wire/testing.h"

__attribute__((unused))
static const struct hd_hash plan_a = { { 1, 2, 3 } }, plan_b = { { 9 } };
__attribute__((unused))
static const struct hd_transfer rows[] = { { 1, 1, 100 }, { 2, 0, 100 }, { 3, 1, 100 } };

struct script { uint8_t bytes[1 << 16]; size_t len; uint32_t epoch; bool old; };

static inline void add(struct script *s, struct hd_frame frame, const uint8_t *payload)
{
	frame.epoch = frame.epoch ? frame.epoch : s->old ? 0 : s->epoch;
	if (frame.flags & HD_FRAME_CRC && !frame.payload_crc)
		frame.payload_crc = hd_crc32c(0, payload, frame.len);
	hd_frame_put(&frame, s->bytes + s->len);
	memcpy(s->bytes + s->len + HD_FRAME_HEADER, payload, frame.len);
	s->len += HD_FRAME_HEADER + frame.len;
}

static inline void add_open(struct script *s, uint8_t class, uint32_t stream, struct hd_open_payload open)
{
	uint8_t bytes[hd_open_len];

	hd_open_put(&open, bytes);
	add(s, (struct hd_frame){ .type = HD_FRAME_OPEN, .class = class, .flags = HD_FRAME_CRC,
		.stream = stream, .step = 5, .len = hd_open_len }, bytes);
}

static inline void add_data(struct script *s, uint8_t class, uint32_t stream, uint64_t offset, uint32_t len,
	uint8_t flags)
{
	static const uint8_t zeros[1 << 15];

	add(s, (struct hd_frame){ .type = HD_FRAME_DATA, .class = class, .flags = flags | HD_FRAME_CRC,
		.stream = stream, .step = 5, .offset = offset,
		.len = len }, zeros);
}

static inline void add_numbers(struct script *s, enum hd_frame_type type, uint8_t class, uint8_t flags,
	uint32_t stream, uint32_t a, uint32_t b, uint32_t len)
{
	uint8_t bytes[8];

	hd_put32(bytes, a);
	hd_put32(bytes + 4, b);
	add(s, (struct hd_frame){ .type = type, .class = class, .flags = (uint8_t)(flags | HD_FRAME_CRC),
		.stream = stream, .len = len }, bytes);
}

static inline void add_epoch(struct script *s, uint32_t epoch, struct hd_hash plan)
{
	add(s, (struct hd_frame){ .type = HD_FRAME_EPOCH, .flags = HD_FRAME_CRC, .epoch = epoch, .len = 16 },
		plan.byte);
}

/* What follows is of the epoch before: 0 is what add() does not write, so it is marked. */
static inline void add_old(struct script *s) { s->old = true; }

#define PLANNED(id, total) ((struct hd_open_payload){ (id), HD_KIND_PLANNED, (total), 0, 0 })
#define CONTROL(id, total) ((struct hd_open_payload){ HD_TRANSFER_NONE, HD_KIND_CONTROL, (total), (id), 0 })
#define BULK(request, total) \
	((struct hd_open_payload){ HD_TRANSFER_NONE, HD_KIND_BULK, (total), 0, (request) })

static inline struct stream_pair *victim(uint8_t into[3][100])
{
	struct stream_pair *p = pair_make(true, true, 1);
	struct hd_vec vec[HD_STREAM_VECS];

	hd_stream_decided(p->stream[1], 2);
	hd_stream_epoch(p->stream[1], 1, plan_a);
	assert_int_equal(hd_stream_channel(p->stream[1], rows, 3, rows, 3, NULL), HD_OK);
	assert_int_equal(hd_stream_post(p->stream[1], 1, into[0], 0, NULL), HD_OK);
	assert_int_equal(hd_stream_post(p->stream[1], 3, into[1], 0, NULL), HD_OK);
	assert_int_equal(hd_stream_expect(p->stream[1], 7, into[2], 100, 0, NULL), HD_OK);
	assert_int_equal(hd_stream_expect(p->stream[1], 0, into[2], 100, 0, NULL), HD_OK);
	size_t n = hd_stream_out(p->stream[1], 0, vec);
	for (size_t i = 0; i < n; i++)
		hd_stream_wrote(p->stream[1], vec[i].len, 0);
	return p;
}

#endif
