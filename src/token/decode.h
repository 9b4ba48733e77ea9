/* decode.h -- the `decoder` of the file: texts of tokens to the text that they stand for.
 *
 * 1. Steps from a list of texts to a list; the result is the last list, joined. Without a decoder: with
 *    blanks between. */
#ifndef HD_TOKEN_DECODE_H
#define HD_TOKEN_DECODE_H

#include "base/json.h"
#include "token/pattern.h"

struct hd_decoder_kind;

struct hd_decoder {
	const struct hd_decoder_kind *kind;
	struct hd_pattern pattern;        /* Replace */
	/* what replaces; prefix, suffix, pad; delimiter */
	const char *text, *word; size_t len, word_len;
	bool cleanup, prefix;             /* prefix: Metaspace put one, which goes */
	uint32_t c, start, stop;          /* Strip, Metaspace */
};
struct hd_decoders { struct hd_decoder *at; uint32_t n, cap; bool any; };      /* any: the file has one */

struct hd_token_part { size_t at, len; };
struct hd_token_parts { struct hd_token_part *at; uint32_t n, cap; };      /* hd_free(at) */

struct hd_decode_work {
	struct hd_finder *finder;         /* borrowed */
	struct hd_bytes text;             /* of all parts */
	struct hd_token_parts parts, next;      /* the result is in `parts` */
	struct hd_bytes spare;
};

HD_MUST_USE enum hd_err hd_decoders_read(struct hd_decoders *decoders, const struct hd_json *json,
	struct hd_arena *arena, struct hd_diag *diag);
void hd_decoders_finish(struct hd_decoders *decoders);
/* work->parts: texts of tokens. */
HD_MUST_USE enum hd_err hd_decoders_apply(const struct hd_decoders *decoders, struct hd_decode_work *work,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_decode_part(struct hd_decode_work *work, const void *at, size_t len,
	struct hd_diag *diag);
void hd_decode_work_finish(struct hd_decode_work *work);

#endif
