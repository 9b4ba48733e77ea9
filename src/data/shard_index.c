#include "data/shard_index.h"

#include <string.h>

#include "base/err.h"
#include "base/le.h"

static const char magic[16] = "heddle-shard 1\n";

static enum hd_err take_sample(const uint8_t *at, uint64_t size, struct hd_shard_sample *s)
{
	*s = (struct hd_shard_sample){ hd_get64(at), hd_get64(at + 8), hd_get32(at + 16),
		(int32_t)hd_get32(at + 20), hd_get32(at + 24) };
	return s->offset > size || s->len > size - s->offset || s->form >= HD_SHARD_FORMS ||
		hd_get32(at + 28) ?
		HD_E_INPUT : HD_OK;
}

enum hd_err hd_shard_index_parse(const uint8_t *bytes, size_t len, uint64_t size, struct hd_arena *arena,
	struct hd_shard_index *index)
{
	struct hd_shard_index got;
	struct hd_hash hash;
	enum hd_err err = HD_OK;

	if (len < HD_SHARD_HEAD + sizeof hash || memcmp(bytes, magic, sizeof magic) != 0)
		return HD_E_INPUT;
	got.n = hd_get64(bytes + 16);
	if (got.n != (len - HD_SHARD_HEAD - sizeof hash) / HD_SHARD_SAMPLE ||
		(len - HD_SHARD_HEAD - sizeof hash) % HD_SHARD_SAMPLE)
		return HD_E_INPUT;
	memcpy(&hash, bytes + len - sizeof hash, sizeof hash);
	if (!hd_hash_same(hash, hd_hash(bytes, len - sizeof hash)))
		return HD_E_INPUT;
	memcpy(&got.hash, bytes + 24, sizeof got.hash);
	got.sample = hd_arena_take(arena, got.n ? got.n : 1, sizeof *got.sample);
	if (!got.sample)
		return HD_E_NOMEM;
	for (uint64_t i = 0; i < got.n && !err; i++)
		err = take_sample(bytes + HD_SHARD_HEAD + i * HD_SHARD_SAMPLE, size, &got.sample[i]);
	if (!err)
		*index = got;
	return err;
}

uint8_t *hd_shard_index_print(const struct hd_shard_index *index, struct hd_arena *arena, size_t *len)
{
	struct hd_hash hash;

	*len = HD_SHARD_HEAD + index->n * HD_SHARD_SAMPLE + sizeof hash;
	uint8_t *bytes = hd_arena_take(arena, *len, 1);
	if (!bytes)
		return NULL;
	memcpy(bytes, magic, sizeof magic);
	hd_put64(bytes + 16, index->n);
	memcpy(bytes + 24, &index->hash, sizeof index->hash);
	for (uint64_t i = 0; i < index->n; i++) {
		uint8_t *at = bytes + HD_SHARD_HEAD + i * HD_SHARD_SAMPLE;
		hd_put64(at, index->sample[i].offset);
		hd_put64(at + 8, index->sample[i].len);
		hd_put32(at + 16, index->sample[i].crc);
		hd_put32(at + 20, (uint32_t)index->sample[i].label);
		hd_put32(at + 24, index->sample[i].form);
		hd_put32(at + 28, 0);
	}
	hash = hd_hash(bytes, *len - sizeof hash);
	memcpy(bytes + *len - sizeof hash, &hash, sizeof hash);
	return bytes;
}
