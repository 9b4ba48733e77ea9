#include "base/protobuf.h"

#include <assert.h>
#include <string.h>

#include "base/le.h"

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5, VARINT_MAX = 10 };

static void put(struct hd_pb *pb, const void *bytes, size_t len)
{
	if (pb->full || len > pb->cap - pb->len) {
		pb->full = true;
		return;
	}
	memcpy(pb->at + pb->len, bytes, len);
	pb->len += len;
}

static void raw(struct hd_pb *pb, uint64_t v)
{
	uint8_t out[VARINT_MAX];
	size_t n = 0;

	for (; v > 0x7f; v >>= 7)
		out[n++] = (uint8_t)(v | 0x80);
	out[n++] = (uint8_t)v;
	put(pb, out, n);
}

static void tag(struct hd_pb *pb, uint32_t field, uint32_t type)
{
	assert(field);
	raw(pb, (uint64_t)field << 3 | type);
}

void hd_pb_varint(struct hd_pb *pb, uint32_t field, uint64_t v)
{
	tag(pb, field, VARINT);
	raw(pb, v);
}

void hd_pb_fixed64(struct hd_pb *pb, uint32_t field, uint64_t v)
{
	uint8_t out[8];

	tag(pb, field, FIXED64);
	hd_put64(out, v);
	put(pb, out, sizeof out);
}

void hd_pb_fixed32(struct hd_pb *pb, uint32_t field, uint32_t v)
{
	uint8_t out[4];

	tag(pb, field, FIXED32);
	hd_put32(out, v);
	put(pb, out, sizeof out);
}

void hd_pb_bytes(struct hd_pb *pb, uint32_t field, const void *bytes, size_t len)
{
	tag(pb, field, LENGTH);
	raw(pb, len);
	put(pb, bytes, len);
}

void hd_pb_text(struct hd_pb *pb, uint32_t field, const char *text)
{
	hd_pb_bytes(pb, field, text, strlen(text));
}

size_t hd_pb_begin(struct hd_pb *pb, uint32_t field)
{
	static const uint8_t room[2];

	tag(pb, field, LENGTH);
	put(pb, room, sizeof room);
	return pb->len;
}

void hd_pb_end(struct hd_pb *pb, size_t begun)
{
	size_t len = pb->len - begun;

	if (pb->full)
		return;
	assert(begun >= 2 && len <= HD_PB_NESTED_MAX);
	if (len < 0x80) {
		memmove(pb->at + begun - 1, pb->at + begun, len);
		pb->at[begun - 2] = (uint8_t)len;
		pb->len--;
		return;
	}
	pb->at[begun - 2] = (uint8_t)(len | 0x80);
	pb->at[begun - 1] = (uint8_t)(len >> 7);
}
