#include "graph/onnx/wire.h"

#include <stdbool.h>
#include <string.h>

#include "base/le.h"

enum { VARINT, EIGHT, BYTES, FOUR = 5, VARINT_BYTES = 10 };

static bool varint(struct hd_wire *wire, uint64_t *value)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < VARINT_BYTES && wire->pos < wire->len; i++) {
		uint8_t byte = wire->at[wire->pos++];
		if (i == VARINT_BYTES - 1 && byte > 1)
			return false;
		v |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80)) {
			*value = v;
			return true;
		}
	}
	return false;
}

static bool skip(struct hd_wire *wire, uint64_t n)
{
	if (n > wire->len - wire->pos)
		return false;
	wire->pos += n;
	return true;
}

static bool content(struct hd_wire *wire, struct hd_wire_field *field)
{
	uint64_t value;

	switch (field->type) {
	case VARINT:
		return varint(wire, &value);
	case EIGHT:
		return skip(wire, 8);
	case FOUR:
		return skip(wire, 4);
	case BYTES:
		if (!varint(wire, &field->len))
			return false;
		field->bytes = wire->at + wire->pos;
		return skip(wire, field->len);
	default:
		return false;
	}
}

int hd_wire_next(struct hd_wire *wire, struct hd_wire_field *field)
{
	uint64_t tag;

	if (wire->pos == wire->len)
		return 0;
	*field = (struct hd_wire_field){ .from = wire->pos };
	if (!varint(wire, &tag) || tag >> 3 == 0 || tag > UINT32_MAX)
		return -1;
	field->id = (uint32_t)(tag >> 3);
	field->type = tag & 7;
	if (!content(wire, field))
		return -1;
	field->to = wire->pos;
	return 1;
}

/* The message inside field `id`, NULL: it holds none or is not known. */
static const ProtobufCMessageDescriptor *inside(const ProtobufCMessageDescriptor *kind, uint32_t id)
{
	const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(kind, id);

	return field && field->type == PROTOBUF_C_TYPE_MESSAGE ? field->descriptor : NULL;
}

enum hd_err hd_wire_walk(const ProtobufCMessageDescriptor *kind, const char *file, const void *bytes,
	uint64_t len, struct hd_diag *diag)
{
	struct { struct hd_wire wire; const ProtobufCMessageDescriptor *kind; } stack[HD_WIRE_DEPTH];
	struct hd_wire_field field;
	uint32_t depth = 1;

	stack[0].wire = (struct hd_wire){ bytes, len, 0 };
	stack[0].kind = kind;
	while (depth) {
		struct hd_wire *wire = &stack[depth - 1].wire;
		uint64_t at = (uint64_t)(wire->at - (const uint8_t *)bytes) + wire->pos;
		int got = hd_wire_next(wire, &field);
		if (got < 0)
			return hd_fail(diag, HD_E_INPUT,
				"%s: byte %llu: no field of an ONNX message stands here (in %s); is the "
				"file whole?", file,
				(unsigned long long)at, stack[depth - 1].kind->short_name);
		const ProtobufCMessageDescriptor *sub = got &&
			field.type == BYTES ? inside(stack[depth - 1].kind, field.id) : NULL;
		if (!got)
			depth--;
		if (!sub)
			continue;
		if (depth == HD_WIRE_DEPTH)
			return hd_fail(diag, HD_E_INPUT, "%s: byte %llu: messages are nested deeper than %d",
				file, (unsigned long long)at, HD_WIRE_DEPTH);
		stack[depth].wire = (struct hd_wire){ field.bytes, field.len, 0 };
		stack[depth++].kind = sub;
	}
	return HD_OK;
}

static void *take(void *arena, size_t size) { return hd_arena_take(arena, size ? size : 1, 1); }
static void give(void *arena, void *at) { (void)arena, (void)at; }      /* it all goes with the arena */

static enum hd_err slim(const uint8_t *bytes, uint64_t len, uint32_t without, struct hd_arena *arena,
	uint8_t **out, uint64_t *out_len,
	struct hd_diag *diag)
{
	struct hd_wire wire = { bytes, len, 0 };
	struct hd_wire_field field;
	uint64_t n = 0;

	while (hd_wire_next(&wire, &field) > 0)
		n += field.id == without ? 0 : field.to - field.from;
	*out = hd_arena_take(arena, n ? n : 1, 1);
	if (!*out)
		return hd_fail(diag, HD_E_NOMEM, "no memory for an ONNX message of %llu bytes",
			(unsigned long long)n);
	*out_len = 0;
	wire.pos = 0;
	while (hd_wire_next(&wire, &field) > 0)
		if (field.id != without) {
			memcpy(*out + *out_len, bytes + field.from, field.to - field.from);
			*out_len += field.to - field.from;
		}
	return HD_OK;
}

enum hd_err hd_wire_unpack(const ProtobufCMessageDescriptor *kind, const char *file, const void *bytes,
	uint64_t len, uint32_t without,
	struct hd_arena *arena, ProtobufCMessage **message, struct hd_diag *diag)
{
	ProtobufCAllocator allocator = { take, give, arena };
	uint8_t *kept;

	if (without) {
		enum hd_err err = slim(bytes, len, without, arena, &kept, &len, diag);
		if (err)
			return err;
		bytes = kept;
	}
	*message = protobuf_c_message_unpack(kind, &allocator, len, bytes);
	if (!*message)
		return hd_fail(diag, HD_E_INPUT,
			"%s: a %s in it cannot be unpacked: a field has the wrong type, or it needs more "
			"than %zu MiB", file,
			kind->short_name, arena->budget_bytes >> 20);
	return HD_OK;
}
