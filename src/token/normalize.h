/* normalize.h -- the `normalizer` of the file: steps from text to text.
 *
 * 1. A Sequence is its steps, one after the other; the table of normalize.c has all kinds.
 * 2. Each step keeps nzero (bytes.h).
 *
 * Ownership: steps lie in the arena they were read into; finish() frees what does not. A work is a
 * thread's. */
#ifndef HD_TOKEN_NORMALIZE_H
#define HD_TOKEN_NORMALIZE_H

#include "base/json.h"
#include "token/charsmap.h"
#include "token/pattern.h"
#include "token/unicode.h"

struct hd_norm_kind;

struct hd_norm {
	const struct hd_norm_kind *kind;
	enum hd_form form;
	bool left, right;                 /* Strip */
	bool clean, chinese, accents, lower;      /* BertNormalizer */
	const char *text; size_t len;     /* Replace, Prepend */
	struct hd_pattern pattern;
	struct hd_charsmap map;
};

struct hd_norms { struct hd_norm *at; uint32_t n, cap; };

struct hd_norm_work {
	const struct hd_unicode *unicode;
	struct hd_finder *finder;         /* borrowed */
	struct hd_bytes text[3];
	uint32_t *in; int32_t *out, *spare;       /* of a stretch in a normal form; hd_free() */
	uint32_t in_cap, out_cap, spare_cap;
};

/* json: NULL or null: no step. */
HD_MUST_USE enum hd_err hd_norms_read(struct hd_norms *norms, const struct hd_json *json,
	struct hd_arena *arena, struct hd_diag *diag);
void hd_norms_finish(struct hd_norms *norms);
/* *out: `in` itself, or the work's until the next call. */
HD_MUST_USE enum hd_err hd_norms_apply(const struct hd_norms *norms, struct hd_norm_work *work,
	struct hd_text_view in, struct hd_text_view *out, struct hd_diag *diag);
void hd_norm_work_finish(struct hd_norm_work *work);

#endif
