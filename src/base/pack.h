/* pack.h -- compressed bytes, unpacked whole; the checksum of gzip and zip files.
 *
 * Data sets come gzipped (idx files of Debian, foreign traces). The library behind it
 * is known to pack.c and pack/ alone.
 *
 * 1. All members of a gzip file, joined; each one's CRC and length are checked. Bytes
 *    after the last member, a cut end and every flipped bit are HD_E_INPUT.
 * 2. Never more than max_bytes come out: a bomb is refused before it is unpacked.
 *
 * Ownership: the result lies in the arena, followed by a 0 byte. Pure otherwise. */
#ifndef HD_BASE_PACK_H
#define HD_BASE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

bool hd_gzip_is(const uint8_t *bytes, size_t len);      /* starts like one */

HD_MUST_USE enum hd_err hd_gzip_unpack(struct hd_arena *arena, const char *name, const uint8_t *bytes,
	size_t len,
	size_t max_bytes, uint8_t **out, size_t *out_len, struct hd_diag *diag);

/* Blocks whose length is known before: pages of columnar files. Snappy's raw format, LZ4's block, gzip of one
 * member, frames of Zstandard. Exactly `out_len` bytes come out, else HD_E_INPUT, and what was written is of
 * no
 * use. */
enum hd_codec { HD_CODEC_SNAPPY, HD_CODEC_LZ4, HD_CODEC_GZIP, HD_CODEC_ZSTD };
HD_MUST_USE enum hd_err hd_block_unpack(enum hd_codec codec, const char *name, const uint8_t *bytes,
	size_t len,
	uint8_t *out, size_t out_len, struct hd_diag *diag);

/* CRC-32 of ISO 3309; "123456789" gives 0xCBF43926. */
uint32_t hd_crc32(const uint8_t *bytes, size_t len);

#endif
