/* codes_int.h -- the encodings of Parquet's values and levels: bytes to arrays, private to parquet/.
 *
 * Source: Encodings.md of apache/parquet-format. Each returns false where the bytes are too few, or say what
 * cannot be; then nothing of the output counts. */
#ifndef HD_DATA_PARQUET_CODES_INT_H
#define HD_DATA_PARQUET_CODES_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/parquet.h"

struct hd_parquet_value { union { int64_t whole; double real; const uint8_t *text; } as; uint32_t len; };

/* Bytes that are read from the front. */
struct hd_parquet_bytes { const uint8_t *at, *end; };

/* n values of `width` bits, 0 to 32, in runs and bit-packed groups. */
bool hd_parquet_hybrid(struct hd_parquet_bytes *in, uint32_t width, uint32_t n, uint32_t *out);
/* Little-endian values of fixed length, texts with their lengths, packed booleans. */
bool hd_parquet_plain(struct hd_parquet_bytes *in, const struct hd_parquet_leaf *leaf, uint32_t n,
	struct hd_parquet_value *out);
/* The bytes of each value in as many streams as it has bytes. */
bool hd_parquet_split(struct hd_parquet_bytes *in, const struct hd_parquet_leaf *leaf, uint32_t n,
	struct hd_parquet_value *out);
/* n whole numbers; those of INT32 wrap at 32 bits. */
bool hd_parquet_delta(struct hd_parquet_bytes *in, bool is_32, uint32_t n, struct hd_parquet_value *out);
/* Texts whose lengths are in front. */
bool hd_parquet_delta_length(struct hd_parquet_bytes *in, uint32_t n, struct hd_parquet_value *out);
/* Texts that begin as the one before; the whole ones lie in *made, on the heap, which is the caller's also
 * where it is false. */
bool hd_parquet_delta_text(struct hd_parquet_bytes *in, uint32_t n, struct hd_parquet_value *out,
	uint8_t **made);

#endif
