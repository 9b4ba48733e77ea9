/* tokenizer.h -- a published `tokenizer.json`: text to token numbers and back.
 *
 * `data tokenize` and `data cat` call it. The file is that of the package `tokenizers` (format "1.0"); what
 * is made of a text is what that package makes of it, byte for byte (bench/tokenize.py compares).
 *
 * 1. A file is understood completely or refused, with the place in it: hd_tokenizer_create() knows the parts
 *    that README.md lists. Dropout is refused, since it draws. What the file says of truncation and padding
 *    is followed by hd_tokenizer_row() alone, but for lengths: hd_tokenizer_ignores() tells.
 * 2. Text is valid UTF-8; anything else is HD_E_INPUT, with the byte.
 * 3. Equal texts give equal numbers, whatever was encoded before: caches hold results only.
 * 4. Limits: HD_TOKEN_VOCAB tokens, HD_TOKEN_TEXT bytes of one text.
 *
 * Ownership: a tokenizer lives in the caller's memory, its parts in an arena of its own; finish() frees.
 * Threads: a tokenizer is not changed by use; each thread has a work of its own. Pure. */
#ifndef HD_TOKEN_TOKENIZER_H
#define HD_TOKEN_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
	HD_TOKEN_VOCAB = 1 << 22,         /* tokens: sixteen times the largest published vocabulary */
	HD_TOKEN_TEXT = 1 << 29,          /* bytes of a text: an offset, tripled, fits 32 bits */
	HD_TOKEN_BYTES = 32 << 20,        /* of a file: base/json.h's limit */
};
#define HD_TOKEN_NONE UINT32_MAX

struct hd_tokenizer;
struct hd_token_work;                     /* a thread's memory */

struct hd_token_ids { uint32_t *at; uint32_t n, cap; };      /* on the heap; hd_free(at) */
HD_MUST_USE enum hd_err hd_token_ids_add(struct hd_token_ids *ids, uint32_t id, struct hd_diag *diag);
struct hd_token_text { uint8_t *at; size_t len; uint32_t cap; };      /* on the heap; hd_free(at) */

/* `name` is for messages. */
HD_MUST_USE enum hd_err hd_tokenizer_create(struct hd_tokenizer **tokenizer, const char *name,
	const char *json, size_t len, struct hd_diag *diag);
void hd_tokenizer_destroy(struct hd_tokenizer *tokenizer);      /* takes NULL */
HD_MUST_USE enum hd_err hd_token_work_create(struct hd_token_work **work,
	const struct hd_tokenizer *tokenizer, struct hd_diag *diag);
void hd_token_work_destroy(struct hd_token_work *work);         /* takes NULL */

/* Appends to `ids`. `special`: with what the post-processor adds. `name` is the text's, for messages. */
HD_MUST_USE enum hd_err hd_tokenizer_encode(struct hd_token_work *work, const char *name, const void *text,
	size_t len, bool special, struct hd_token_ids *ids, struct hd_diag *diag);
/* A text, or a pair of texts, as one row of `most` tokens: with what the post-processor adds, cut and
 * filled up at the sides that the file says (truncation, padding), else at the right. */
struct hd_token_row {
	uint32_t *id;                     /* [most] */
	uint8_t *kind;                    /* [most] */
	uint32_t first, n;                /* where what is no pad stands */
	bool cut;
};
/* HD_E_INPUT also where what is added leaves no room. */
HD_MUST_USE enum hd_err hd_tokenizer_row(struct hd_token_work *work, const char *name,
	const char *const text[2], const size_t len[2], uint32_t ntexts, uint32_t most, uint32_t pad,
	struct hd_token_row *row, struct hd_diag *diag);
/* The token that fills up: the file's padding, or [PAD], <pad>, <|pad|>; HD_TOKEN_NONE: it has none. */
uint32_t hd_tokenizer_pad(const struct hd_tokenizer *tokenizer);

/* Appends to `text`; numbers that are no token are left out, as are special tokens with `skip`. Bytes that
 * are no UTF-8 become U+FFFD. */
HD_MUST_USE enum hd_err hd_tokenizer_decode(struct hd_token_work *work, const uint32_t *ids, uint32_t n,
	bool skip, struct hd_token_text *text, struct hd_diag *diag);

/* One more than the largest number of a token. */
uint32_t hd_tokenizer_size(const struct hd_tokenizer *tokenizer);
/* HD_TOKEN_NONE: no token */
uint32_t hd_tokenizer_find(const struct hd_tokenizer *tokenizer, const char *token);
bool hd_tokenizer_is_special(const struct hd_tokenizer *tokenizer, uint32_t id);
/* What the file says that is not followed: "truncation", "padding", both, or NULL. */
const char *hd_tokenizer_ignores(const struct hd_tokenizer *tokenizer);

#endif
