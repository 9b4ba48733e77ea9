/* added.h -- `added_tokens` of the file: strings that are tokens wherever they stand.
 *
 * 1. Those that are not `normalized` are found in the text as it was given, the others in what the normalizer
 *    made of each stretch between, by what it makes of themselves.
 * 2. Of those that begin leftmost the longest counts; after it the search goes on. single_word: not beside a
 *    \w; lstrip, rstrip: it takes the white space there.
 *
 * Ownership: all lies in the arena. */
#ifndef HD_TOKEN_ADDED_H
#define HD_TOKEN_ADDED_H

#include "token/model.h"
#include "token/normalize.h"
#include "token/pretokenize.h"

struct hd_added_token {
	const char *text;                 /* as the file has it */
	const char *looked_for; size_t len;       /* normalized, if it is to be */
	uint32_t id;
	bool single_word, lstrip, rstrip, normalized, special;
};

struct hd_added {
	struct hd_added_token *at; uint32_t n;
	struct hd_pairs trie[2];          /* [normalized]: node and byte to node and index in `at` */
	bool begins[2][256], any[2];
};

/* Numbers of tokens that the model does not have follow those that it has; a file that says otherwise is
 * refused. */
HD_MUST_USE enum hd_err hd_added_read(struct hd_added *added, const struct hd_json *json,
	const struct hd_model *model, const struct hd_norms *norms, struct hd_norm_work *work,
	struct hd_arena *arena, struct hd_diag *diag);
/* Cuts `whole`, at `at`, into pieces. */
HD_MUST_USE enum hd_err hd_added_split(const struct hd_added *added, bool normalized,
	const struct hd_unicode *unicode, const uint8_t *at, const struct hd_token_piece *whole,
	struct hd_pieces *pieces, struct hd_diag *diag);
const struct hd_added_token *hd_added_find(const struct hd_added *added, const char *text);      /* or NULL */
const struct hd_added_token *hd_added_of(const struct hd_added *added, uint32_t id);             /* or NULL */

#endif
