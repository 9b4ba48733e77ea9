/* wire.h -- the bytes of a protobuf message, looked at before anything is unpacked.
 *
 *	field = tag varint (number << 3 | type), then by type
 *	        0 varint | 1 eight bytes | 2 length varint and as many bytes | 5 four bytes
 *
 * protobuf-c's unpack recurses without a limit, trusts nothing but lengths and copies
 * everything. So a file is walked first (no recursion, no memory), and pieces that would
 * be copied for nothing, tensors' bytes above all, are left out of what is unpacked.
 *
 * 1. After hd_wire_walk() every message that the descriptor knows is well formed to
 *    depth HD_WIRE_DEPTH: each length lies inside its message, groups do not occur.
 * 2. hd_wire_next() on a walked message never fails, it ends.
 *
 * Private to graph/onnx. Pure. */
#ifndef HD_GRAPH_ONNX_WIRE_H
#define HD_GRAPH_ONNX_WIRE_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/err.h"

enum { HD_WIRE_DEPTH = 32 };

struct hd_wire { const uint8_t *at; uint64_t len, pos; };      /* `pos`: of the next tag */
struct hd_wire_field {
	uint32_t id;
	uint8_t type;
	uint64_t from, to;                /* with the tag, in its message */
	const uint8_t *bytes;             /* type 2: the content */
	uint64_t len;
};

/* 1: a field; 0: the end; -1: malformed. */
int hd_wire_next(struct hd_wire *wire, struct hd_wire_field *field);

/* HD_E_INPUT with file and offset when the bytes are no such message. */
HD_MUST_USE enum hd_err hd_wire_walk(const ProtobufCMessageDescriptor *kind, const char *file,
	const void *bytes, uint64_t len,
	struct hd_diag *diag);

/* Unpacks a walked message without its fields number `skip` (0: with all); memory is the arena's.
 * HD_E_INPUT, HD_E_NOMEM. */
HD_MUST_USE enum hd_err hd_wire_unpack(const ProtobufCMessageDescriptor *kind, const char *file,
	const void *bytes, uint64_t len,
	uint32_t skip, struct hd_arena *arena, ProtobufCMessage **message, struct hd_diag *diag);

#endif
