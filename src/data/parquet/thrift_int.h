/* thrift_int.h -- Thrift's compact protocol, as far as Parquet's footer and page headers need it.
 *
 * A reader walks fields of structs and skips what it does not know. After the first error (`bad`) everything
 * reads as zero and no struct has a further field: it is asked for once, at the end. Private to parquet/. */
#ifndef HD_DATA_PARQUET_THRIFT_INT_H
#define HD_DATA_PARQUET_THRIFT_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hd_thrift_type { HD_THRIFT_STOP, HD_THRIFT_TRUE, HD_THRIFT_FALSE, HD_THRIFT_I8, HD_THRIFT_I16,
	HD_THRIFT_I32, HD_THRIFT_I64, HD_THRIFT_DOUBLE, HD_THRIFT_BINARY, HD_THRIFT_LIST, HD_THRIFT_SET,
	HD_THRIFT_MAP, HD_THRIFT_STRUCT };
enum { HD_THRIFT_DEPTH = 32 };

struct hd_thrift { const uint8_t *at, *end; bool bad; };
/* A field of a struct: zeroed before the first. */
struct hd_thrift_field { int32_t id; enum hd_thrift_type type; };

/* The next field; false: the struct ends. Its value must be read or skipped. */
bool hd_thrift_next(struct hd_thrift *t, struct hd_thrift_field *field);
/* A whole number of a field of type i8 to i64; another type is bad. */
int64_t hd_thrift_int(struct hd_thrift *t, enum hd_thrift_type type);
bool hd_thrift_bool(struct hd_thrift *t, enum hd_thrift_type type);
/* Borrowed from the bytes. */
const uint8_t *hd_thrift_bytes(struct hd_thrift *t, enum hd_thrift_type type, size_t *len);
/* The count of a list of `of`; at most as many as there are bytes left. */
size_t hd_thrift_list(struct hd_thrift *t, enum hd_thrift_type type, enum hd_thrift_type of);
void hd_thrift_skip(struct hd_thrift *t, enum hd_thrift_type type);
uint64_t hd_thrift_varint(struct hd_thrift *t);

static inline int64_t hd_zigzag(uint64_t v) { return (int64_t)(v >> 1 ^ (0 - (v & 1))); }

#endif
