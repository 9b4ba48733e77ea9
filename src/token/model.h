/* model.h -- the `model` of the file: a word to tokens.
 *
 * BPE, WordPiece, Unigram and WordLevel are rows of model.c's table, each a file model_*.c.
 *
 * 1. A word is not empty. What a word became is kept in a cache of bounded size; it changes no result.
 * 2. `maps_bytes` (pretokenize.h 3): the model sees the word in letters for its bytes.
 *
 * Ownership: a model lies in the arena; a work is a thread's, finish() frees. */
#ifndef HD_TOKEN_MODEL_H
#define HD_TOKEN_MODEL_H

#include "base/json.h"
#include "token/bytes.h"
#include "token/vocab.h"

struct hd_model_kind;

struct hd_model {
	const struct hd_model_kind *kind;
	struct hd_vocab vocab;
	uint32_t count;                   /* how many tokens the file lists */
	bool maps_bytes;
	uint32_t unk;                     /* HD_TOKEN_NONE: none */
	const char *unk_text;             /* NULL: the file names none */
	const char *prefix, *suffix;      /* of continued subwords, at the end of words; "" */
	size_t prefix_len, suffix_len;
	bool fuse, fallback, whole;       /* fuse_unk, byte_fallback, ignore_merges */
	uint32_t byte_id[256];            /* of "<0x00>" ...; HD_TOKEN_NONE: none */
	struct hd_pairs pairs;            /* BPE: merges; Unigram: a trie, node and byte to node and token */
	const double *score;              /* Unigram, [count] */
	double unk_score;
	uint32_t chars_cap;               /* WordPiece: longer words are unknown */
};

struct hd_symbol { uint32_t id, prev, next, len; };
struct hd_merge { uint64_t key; uint32_t to; };           /* rank and place: the least is next */
struct hd_best { double score; uint32_t from, id; };
struct hd_cached { uint64_t hash; uint32_t at, len, ids, n; };

struct hd_model_work {
	const struct hd_model *model;
	struct hd_bytes text, scratch;    /* the word in letters; one subword */
	struct hd_symbol *symbol; uint32_t symbol_cap, nsymbols;
	struct hd_merge *merge; uint32_t merge_cap, nmerges;
	struct hd_best *best; uint32_t best_cap;
	struct hd_token_ids ids;          /* of the word at hand */
	struct hd_cached *cached; uint32_t ncached;
	struct hd_bytes cached_text;
	struct hd_token_ids cached_ids;
};

HD_MUST_USE enum hd_err hd_model_read(struct hd_model *model, const struct hd_json *json,
	struct hd_arena *arena, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_model_work_make(struct hd_model_work *work, const struct hd_model *model,
	struct hd_diag *diag);
void hd_model_work_finish(struct hd_model_work *work);
/* Appends. */
HD_MUST_USE enum hd_err hd_model_encode(struct hd_model_work *work, const uint8_t *at, size_t len,
	struct hd_token_ids *ids, struct hd_diag *diag);

#endif
