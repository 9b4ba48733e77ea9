/* protobuf.h -- messages of Protocol Buffers, written field by field into memory of a fixed size.
 *
 * Varints, fixed 64-bit words and lengths, as the encoding's public description says; no schema.
 *
 * 1. A message inside another is begun and ended: its length has two bytes, so it holds at most
 *    HD_PB_NESTED_MAX bytes (a length in more bytes than it needs is valid).
 * 2. Memory that does not suffice sets `full` and drops the rest: check once, at the end.
 *
 * Ownership: the caller's memory. Pure. */
#ifndef HD_BASE_PROTOBUF_H
#define HD_BASE_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HD_PB_NESTED_MAX = (1 << 14) - 1 };

struct hd_pb { uint8_t *at; size_t len, cap; bool full; };

void hd_pb_varint(struct hd_pb *pb, uint32_t field, uint64_t v);
void hd_pb_fixed64(struct hd_pb *pb, uint32_t field, uint64_t v);
void hd_pb_fixed32(struct hd_pb *pb, uint32_t field, uint32_t v);
void hd_pb_bytes(struct hd_pb *pb, uint32_t field, const void *bytes, size_t len);
void hd_pb_text(struct hd_pb *pb, uint32_t field, const char *text);
/* Of small messages, of 127 bytes at most, the length has one byte. */
size_t hd_pb_begin(struct hd_pb *pb, uint32_t field);
void hd_pb_end(struct hd_pb *pb, size_t begun);

#endif
