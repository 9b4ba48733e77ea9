#include "wire/frame.h"

#include <assert.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/le.h"

enum { CRC_AT = 44 };

static const struct row {
	const char *name;
	uint8_t classes, must, may, fields;
	uint32_t least, greatest;
	bool fenced;
} rows[] = {
#define X(id, no, classes, must, may, fields, least, greatest, fenced) \
	[no] = { #id, classes, must, may, fields, least, greatest, fenced },
	HD_FRAMES(X)
#undef X
};
enum { TYPES = sizeof rows / sizeof *rows };

const char *hd_frame_name(enum hd_frame_type type) { return (unsigned)type < TYPES &&
	rows[type].name ? rows[type].name : "?"; }
bool hd_frame_is_fenced(enum hd_frame_type type) { return rows[type].fenced; }

void hd_frame_put(const struct hd_frame *frame, uint8_t bytes[HD_FRAME_HEADER])
{
	assert((unsigned)frame->type < TYPES && rows[frame->type].name);
	hd_put16(bytes, HD_FRAME_MAGIC);
	bytes[2] = HD_FRAME_VERSION;
	bytes[3] = (uint8_t)frame->type;
	bytes[4] = frame->class;
	bytes[5] = frame->flags;
	hd_put16(bytes + 6, 0);
	hd_put32(bytes + 8, frame->epoch);
	hd_put32(bytes + 12, frame->stream);
	hd_put64(bytes + 16, frame->step);
	hd_put64(bytes + 24, frame->offset);
	hd_put32(bytes + 32, frame->len);
	hd_put32(bytes + 36, (uint32_t)frame->priority);
	hd_put32(bytes + 40, frame->payload_crc);
	hd_put32(bytes + CRC_AT, hd_crc32c(0, bytes, CRC_AT));
}

static enum hd_err refuse(struct hd_diag *diag, const char *what, uint64_t value)
{
	return hd_fail(diag, HD_E_PROTOCOL, "a frame %s (%llu)", what, (unsigned long long)value);
}

/* What the type's row says about the rest. */
static enum hd_err judge(const struct hd_frame *frame, const struct row *row, struct hd_diag *diag)
{
	unsigned may = row->must | row->may | (row->greatest ? HD_FRAME_CRC : 0u);

	if (frame->class >= HD_CLASSES || !(row->classes >> frame->class & 1))
		return refuse(diag, "of a class that its type cannot have", frame->class);
	if (frame->flags & ~may || (frame->flags & row->must) != row->must)
		return refuse(diag, "with flags that its type cannot have", frame->flags);
	if (frame->len < row->least || frame->len > row->greatest)
		return refuse(diag, "of a length that its type cannot have", frame->len);
	if ((frame->stream && !(row->fields & HD_FIELD_STREAM)) ||
		(frame->step && !(row->fields & HD_FIELD_STEP)) ||
	    (frame->offset && !(row->fields & HD_FIELD_OFFSET)) ||
	    (frame->priority && !(row->fields & HD_FIELD_PRIORITY)))
		return refuse(diag, "with a field that its type does not use", frame->type);
	if (frame->payload_crc && !(frame->flags & HD_FRAME_CRC))
		return refuse(diag, "with a payload checksum but not the flag of it", frame->payload_crc);
	return HD_OK;
}

enum hd_err hd_frame_get(const uint8_t bytes[HD_FRAME_HEADER], struct hd_frame *frame, struct hd_diag *diag)
{
	struct hd_frame got = {
		.type = (enum hd_frame_type)bytes[3], .class = bytes[4], .flags = bytes[5],
		.epoch = hd_get32(bytes + 8), .stream = hd_get32(bytes + 12), .step = hd_get64(bytes + 16),
		.offset = hd_get64(bytes + 24),
		.len = hd_get32(bytes + 32), .priority = (int32_t)hd_get32(bytes + 36),
		.payload_crc = hd_get32(bytes + 40),
	};

	if (hd_get16(bytes) != HD_FRAME_MAGIC)
		return refuse(diag, "without the magic number", hd_get16(bytes));
	if (bytes[2] != HD_FRAME_VERSION)
		return refuse(diag, "of another version", bytes[2]);
	if (hd_get32(bytes + CRC_AT) != hd_crc32c(0, bytes, CRC_AT))
		return refuse(diag, "whose header's checksum is wrong", hd_get32(bytes + CRC_AT));
	if ((unsigned)bytes[3] >= TYPES || !rows[bytes[3]].name)
		return refuse(diag, "of an unknown type", bytes[3]);
	if (hd_get16(bytes + 6))
		return refuse(diag, "whose reserved bytes are not 0", hd_get16(bytes + 6));
	enum hd_err err = judge(&got, &rows[bytes[3]], diag);
	if (!err)
		*frame = got;
	return err;
}

/* ---- payloads ---- */

static uint16_t get_u16(const uint8_t *p) { return (uint16_t)hd_get16(p); }
static uint32_t get_u32(const uint8_t *p) { return hd_get32(p); }
static uint64_t get_u64(const uint8_t *p) { return hd_get64(p); }
static struct hd_hash get_id(const uint8_t *p)
{
	struct hd_hash id;

	memcpy(id.byte, p, sizeof id.byte);
	return id;
}
static void put_u16(uint8_t *p, uint16_t v) { hd_put16(p, v); }
static void put_u32(uint8_t *p, uint32_t v) { hd_put32(p, v); }
static void put_u64(uint8_t *p, uint64_t v) { hd_put64(p, v); }
static void put_id(uint8_t *p, struct hd_hash v) { memcpy(p, v.byte, sizeof v.byte); }

/* Unsigned: one comparison that stays sensible for bounds of the whole range. */
#define IN_u16(v, lo, hi) ((uint64_t)(v) - (uint64_t)(lo) <= (uint64_t)(hi) - (uint64_t)(lo))
#define IN_u32(v, lo, hi) IN_u16(v, lo, hi)
#define IN_u64(v, lo, hi) IN_u16(v, lo, hi)
#define IN_id(v, lo, hi) true

#define PUT(sort, name, lo, hi) put_##sort(bytes + at, payload->name); at += HD_LEN_##sort;
#define GET(sort, name, lo, hi) got.name = get_##sort(bytes + at); at += HD_LEN_##sort;
#define JUDGE(sort, name, lo, hi) \
	if (!IN_##sort(got.name, lo, hi)) \
		return hd_fail(diag, HD_E_PROTOCOL, "a payload whose %s is out of range", #name);
#define P(name, fields) \
	void hd_##name##_put(const struct hd_##name##_payload *payload, uint8_t *bytes) \
	{ \
		size_t at = 0; \
		fields(PUT) \
		assert(at == hd_##name##_len); \
	} \
	enum hd_err hd_##name##_get(const uint8_t *bytes, struct hd_##name##_payload *payload, \
		struct hd_diag *diag) \
	{ \
		struct hd_##name##_payload got; \
		size_t at = 0; \
		(void)diag; \
		fields(GET) \
		assert(at == hd_##name##_len); \
		fields(JUDGE) \
		*payload = got; \
		return HD_OK; \
	}
HD_PAYLOADS(P)
