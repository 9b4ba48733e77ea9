/* normalize_int.h -- the steps of normalize.c's table. Private to the room.
 *
 * A step appends what becomes of `in` to `out`, which is empty. */
#ifndef HD_TOKEN_NORMALIZE_INT_H
#define HD_TOKEN_NORMALIZE_INT_H

#include "token/normalize.h"

typedef enum hd_err hd_norm_apply(const struct hd_norm *norm, struct hd_norm_work *work,
	struct hd_text_view in,
	struct hd_bytes *out, struct hd_diag *diag);

hd_norm_apply hd_norm_lowercase, hd_norm_strip_accents, hd_norm_strip, hd_norm_nmt, hd_norm_byte_level,
	hd_norm_bert, hd_norm_form, hd_norm_prepend, hd_norm_replace, hd_norm_precompiled;

/* Each character of a view: where it begins, itself, its length. */
#define HD_EACH_CHAR(in, i, c, n) \
	for (size_t i = 0, n; i < (in).len && (n = hd_char_get((in).at + i, &(c)), true); i += n)

/* Where there is room; `zero`: it comes from the first character. */
static inline void hd_norm_put(struct hd_bytes *out, uint32_t c, bool zero)
{
	out->len += hd_char_put(c, out->at + out->len);
	if (zero)
		out->nzero = out->len;
}

/* Appends [from, to) of `in`, and keeps the origin. */
HD_MUST_USE enum hd_err hd_norm_copy(struct hd_bytes *out, struct hd_text_view in, size_t from, size_t to,
	struct hd_diag *diag);

#endif
