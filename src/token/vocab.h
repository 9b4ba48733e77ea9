/* vocab.h -- strings and their numbers, both ways; and sets of numbers by pairs.
 *
 * A tokenizer's vocabulary; the merges of BPE.
 *
 * 1. A string has one number; a number may have several strings, of which the last is its text.
 *
 * Ownership: all lies in the arena. Threads: reading is pure. */
#ifndef HD_TOKEN_VOCAB_H
#define HD_TOKEN_VOCAB_H

#include "base/arena.h"
#include "base/err.h"
#include "token/tokenizer.h"

struct hd_word { const uint8_t *at; uint32_t len, id; };

struct hd_vocab {
	struct hd_word *slot;             /* at most half full; at NULL: free */
	uint32_t mask, n, longest_bytes;
	uint32_t size;                    /* one more than the largest number */
	struct hd_word **text;            /* [size]; NULL: no such number */
};

/* For `n` strings. */
HD_MUST_USE enum hd_err hd_vocab_init(struct hd_vocab *vocab, struct hd_arena *arena, uint32_t n,
	struct hd_diag *diag);
/* The string is borrowed. There is room for it, as hd_vocab_init() was asked. A later number of an equal
 * string takes the place of the first. */
void hd_vocab_put(struct hd_vocab *vocab, const uint8_t *at, uint32_t len, uint32_t id);
HD_MUST_USE enum hd_err hd_vocab_end(struct hd_vocab *vocab, struct hd_arena *arena, struct hd_diag *diag);
/* HD_TOKEN_NONE: none */
uint32_t hd_vocab_find(const struct hd_vocab *vocab, const void *at, size_t len);

struct hd_pairs { struct hd_pair { uint64_t key; uint32_t rank, to; } *slot; uint32_t mask; };
#define HD_PAIR_FREE UINT64_MAX
HD_MUST_USE enum hd_err hd_pairs_init(struct hd_pairs *pairs, struct hd_arena *arena, uint32_t n,
	struct hd_diag *diag);
void hd_pairs_put(struct hd_pairs *pairs, uint64_t key, uint32_t rank, uint32_t to);
const struct hd_pair *hd_pairs_find(const struct hd_pairs *pairs, uint64_t key);      /* NULL: none */

#endif
