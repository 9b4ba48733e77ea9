#include "token/vocab.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"

/* A power of two, twice the number or more. */
static uint32_t slots(uint32_t n)
{
	uint32_t size = 16;

	while (size / 2 < n)
		size *= 2;
	return size;
}

enum hd_err hd_vocab_init(struct hd_vocab *v, struct hd_arena *arena, uint32_t n, struct hd_diag *diag)
{
	uint32_t size = slots(n);

	*v = (struct hd_vocab){ .mask = size - 1, .slot = hd_arena_take(arena, size, sizeof *v->slot) };
	return v->slot ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for a vocabulary of %u", n);
}

static struct hd_word *slot_of(const struct hd_vocab *v, const void *at, size_t len)
{
	uint32_t i = (uint32_t)hd_hash64(at, len) & v->mask;

	while (v->slot[i].at && (v->slot[i].len != len || memcmp(v->slot[i].at, at, len)))
		i = (i + 1) & v->mask;
	return &v->slot[i];
}

void hd_vocab_put(struct hd_vocab *v, const uint8_t *at, uint32_t len, uint32_t id)
{
	struct hd_word *word = slot_of(v, at, len);

	assert(v->n <= v->mask / 2);
	v->n += !word->at;
	*word = (struct hd_word){ at, len, id };
	if (len > v->longest_bytes)
		v->longest_bytes = len;
	if (id >= v->size)
		v->size = id + 1;
}

enum hd_err hd_vocab_end(struct hd_vocab *v, struct hd_arena *arena, struct hd_diag *diag)
{
	v->text = hd_arena_take(arena, v->size ? v->size : 1, sizeof *v->text);
	if (!v->text)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a vocabulary of %u", v->size);
	for (uint32_t i = 0; i <= v->mask; i++)
		if (v->slot[i].at)
			v->text[v->slot[i].id] = &v->slot[i];
	return HD_OK;
}

uint32_t hd_vocab_find(const struct hd_vocab *v, const void *at, size_t len)
{
	if (len > v->longest_bytes)
		return HD_TOKEN_NONE;
	const struct hd_word *word = slot_of(v, at, len);
	return word->at ? word->id : HD_TOKEN_NONE;
}

/* ---- pairs ---- */

enum hd_err hd_pairs_init(struct hd_pairs *p, struct hd_arena *arena, uint32_t n, struct hd_diag *diag)
{
	uint32_t size = slots(n);

	*p = (struct hd_pairs){ .mask = size - 1, .slot = hd_arena_take(arena, size, sizeof *p->slot) };
	if (!p->slot)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u pairs", n);
	for (uint32_t i = 0; i < size; i++)
		p->slot[i].key = HD_PAIR_FREE;
	return HD_OK;
}

static struct hd_pair *pair_of(const struct hd_pairs *p, uint64_t key)
{
	uint64_t h = key * 0x9e3779b97f4a7c15u;
	uint32_t i = (uint32_t)(h >> 32 ^ h >> 15) & p->mask;

	while (p->slot[i].key != HD_PAIR_FREE && p->slot[i].key != key)
		i = (i + 1) & p->mask;
	return &p->slot[i];
}

void hd_pairs_put(struct hd_pairs *p, uint64_t key, uint32_t rank, uint32_t to)
{
	*pair_of(p, key) = (struct hd_pair){ key, rank, to };
}

const struct hd_pair *hd_pairs_find(const struct hd_pairs *p, uint64_t key)
{
	const struct hd_pair *pair = pair_of(p, key);

	return pair->key == key ? pair : NULL;
}
