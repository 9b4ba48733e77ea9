/* post.h -- the `post_processor` of the file: tokens before and behind those of a text.
 *
 * 0. `single` and `pair` are the same with the kind of each token, for one text and for two (row.h).
 * 1. What it adds to a single text is a list: tokens, and the place of the text's own. ByteLevel adds none.
 *    Of a Sequence one part may add tokens. */
#ifndef HD_TOKEN_POST_H
#define HD_TOKEN_POST_H

#include "base/json.h"
#include "token/tokenizer.h"

/* A token that is added, or, with HD_TOKEN_NONE, a text's own: 0 or 1. `kind` is that of all its tokens. */
struct hd_token_slot { uint32_t id; uint8_t text, kind; };
enum { HD_TOKEN_SLOTS = 32 };
struct hd_token_slots { struct hd_token_slot at[HD_TOKEN_SLOTS]; uint32_t n; };

struct hd_token_post {
	struct hd_token_ids ids;          /* HD_TOKEN_NONE: the text's own; none: as if that */
	struct hd_token_slots single, pair;
};

HD_MUST_USE enum hd_err hd_token_post_read(struct hd_token_post *post, const struct hd_json *json,
	struct hd_arena *arena,
	struct hd_diag *diag);
void hd_token_post_finish(struct hd_token_post *post);

#endif
