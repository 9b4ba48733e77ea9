/* shard_index.h -- where the samples of a shard stand: built once from all of its bytes, kept as a file.
 *
 *	byte 0                 16      24          40                                    40 + 32 n
 *	     "heddle-shard 1\n" n u64  hash of the n samples of 32 bytes each            hash of all before
 *	     (ended by 0)              shard
 *	a sample: offset u64, length u64, crc u32, label i32, form u32, 0 u32            little end first
 *
 * 1. A sample's bytes lie inside the shard; `form` is one of its kind's. What else is HD_E_INPUT.
 * 2. What is kept is named by the shard's name, version, length and kind (cache.h), so that another shard
 *    has another index.
 *
 * Pure but for nothing: bytes in, bytes out. */
#ifndef HD_DATA_SHARD_INDEX_H
#define HD_DATA_SHARD_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash.h"

enum { HD_SHARD_HEAD = 40, HD_SHARD_SAMPLE = 32, HD_SHARD_FORMS = 4 };

struct hd_shard_sample { uint64_t offset, len; uint32_t crc; int32_t label; uint32_t form; };

struct hd_shard_index { struct hd_hash hash; uint64_t n; struct hd_shard_sample *sample; };

/* sample in the arena. `size`: of the shard. */
HD_MUST_USE enum hd_err hd_shard_index_parse(const uint8_t *bytes, size_t len, uint64_t size,
	struct hd_arena *arena, struct hd_shard_index *index);
/* NULL: no memory. */
uint8_t *hd_shard_index_print(const struct hd_shard_index *index, struct hd_arena *arena, size_t *len);

#endif
