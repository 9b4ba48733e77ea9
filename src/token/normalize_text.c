#include "token/normalize_int.h"

#include "base/grow.h"

enum hd_err hd_norm_copy(struct hd_bytes *out, struct hd_text_view in, size_t from, size_t to,
	struct hd_diag *diag)
{
	size_t before = out->len;
	enum hd_err err = hd_bytes_add(out, in.at + from, to - from, diag);

	if (!err && from < in.nzero)
		out->nzero = before + (in.nzero < to ? in.nzero : to) - from;
	return err;
}

static enum hd_err stretch_room(struct hd_norm_work *w, size_t n, struct hd_diag *diag)
{
	enum hd_err err;

	(void)((err = hd_grow(&w->in, &w->in_cap, n + 1, sizeof *w->in, "characters", diag)) ||
		(err = hd_grow(&w->out, &w->out_cap, hd_form_cap(n + 1), sizeof *w->out, "characters",
			diag)) || (err = hd_grow(&w->spare, &w->spare_cap, hd_form_cap(n + 1),
			sizeof *w->spare, "characters", diag)));
	return err;
}

/* How many of the first `len` characters come from the first of the stretch: what it decomposes to, as far as
 * no mark of another came between, or what it is composed to. */
static size_t of_first(const struct hd_norm *norm, const struct hd_norm_work *w, size_t len)
{
	int32_t alone[HD_CHAR_DECOMPOSED], spare[HD_CHAR_DECOMPOSED];
	size_t n = hd_form_make(w->unicode, norm->form, w->in, 1, alone, spare), same = 0;

	while (same < n && same < len && alone[same] == w->out[same])
		same++;
	return same ? same : 1;
}

/* Characters that may change, and the one before them, which may be composed with them. */
static enum hd_err stretch(const struct hd_norm *norm, struct hd_norm_work *w, struct hd_text_view in,
	size_t from,
	size_t to, struct hd_bytes *out, struct hd_diag *diag)
{
	uint32_t c, n = 0;
	enum hd_err err = stretch_room(w, to - from, diag);

	if (err)
		return err;
	for (size_t i = from; i < to; i += hd_char_get(in.at + i, &c), w->in[n++] = c)
		;
	size_t len = hd_form_make(w->unicode, norm->form, w->in, n, w->out, w->spare);
	if ((err = hd_bytes_room(out, HD_CHAR_BYTES * len, diag)))
		return err;
	size_t nfirst = from < in.nzero ? of_first(norm, w, len) : 0;
	for (size_t i = 0; i < len; i++)
		hd_norm_put(out, (uint32_t)w->out[i], i < nfirst);
	return HD_OK;
}

enum hd_err hd_norm_form(const struct hd_norm *norm, struct hd_norm_work *work, struct hd_text_view in,
	struct hd_bytes *out, struct hd_diag *diag)
{
	const uint32_t first = hd_form_first(norm->form);
	size_t plain = 0;                         /* where what was not copied yet begins */
	enum hd_err err = hd_bytes_room(out, in.len, diag);
	uint32_t c;

	for (size_t i = 0; i < in.len && !err; ) {
		size_t n = hd_char_get(in.at + i, &c);
		if (c < first) {
			i += n;
			continue;
		}
		size_t from = i > plain ? (size_t)(hd_char_before(in.at + i) - in.at) : i, to = i;
		while (to < in.len && (n = hd_char_get(in.at + to, &c), c >= first))
			to += n;
		if (!(err = hd_norm_copy(out, in, plain, from, diag)))
			err = stretch(norm, work, in, from, to, out, diag);
		i = plain = to;
	}
	return err ? err : hd_norm_copy(out, in, plain, in.len, diag);
}

enum hd_err hd_norm_prepend(const struct hd_norm *norm, struct hd_norm_work *work, struct hd_text_view in,
	struct hd_bytes *out, struct hd_diag *diag)
{
	enum hd_err err = hd_bytes_room(out, in.len + norm->len, diag);

	(void)work;
	if (err || !in.len)
		return err;
	hd_bytes_put(out, norm->text, norm->len);
	hd_bytes_put(out, in.at, in.len);
	out->nzero = in.nzero ? norm->len + in.nzero : 0;
	return HD_OK;
}

enum hd_err hd_norm_replace(const struct hd_norm *norm, struct hd_norm_work *work, struct hd_text_view in,
	struct hd_bytes *out, struct hd_diag *diag)
{
	struct hd_found f = { .pattern = &norm->pattern, .finder = work->finder, .text = in };
	enum hd_err err = HD_OK;
	size_t at = 0;

	while (in.len && !err && hd_found_next(&f, &err, diag)) {
		if ((err = hd_norm_copy(out, in, at, f.first, diag)) || (err = hd_bytes_add(out, norm->text,
			norm->len,
			diag)))
			break;
		if (in.nzero && (f.last == 0 || f.last - 1 < in.nzero))
			out->nzero = out->len;
		at = f.last;
	}
	return err ? err : hd_norm_copy(out, in, at, in.len, diag);
}

static enum hd_err map_part(const struct hd_norm *norm, struct hd_text_view in, size_t i, size_t n,
	struct hd_bytes *out, struct hd_diag *diag)
{
	size_t len;
	const uint8_t *found = hd_charsmap_find(&norm->map, in.at + i, n, &len);
	enum hd_err err = found ? hd_bytes_add(out, found, len, diag) : hd_bytes_add(out, in.at + i, n, diag);

	if (!err && i < in.nzero)
		out->nzero = out->len;
	return err;
}

enum { SHORT_GRAPHEME = 6 };                      /* what is shorter is looked up as a whole */

enum hd_err hd_norm_precompiled(const struct hd_norm *norm, struct hd_norm_work *work, struct hd_text_view in,
	struct hd_bytes *out, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	uint32_t before, after;
	size_t n, len;

	for (size_t i = 0; i < in.len && !err; i += n) {
		int32_t state = 0;
		n = hd_char_get(in.at + i, &before);
		for (size_t k; i + n < in.len; n += k, before = after) {
			k = hd_char_get(in.at + i + n, &after);
			if (hd_char_breaks(work->unicode, before, after, &state))
				break;
		}
		if (n < SHORT_GRAPHEME && hd_charsmap_find(&norm->map, in.at + i, n, &len)) {
			err = map_part(norm, in, i, n, out, diag);
			continue;
		}
		for (size_t k = 0, one; k < n && !err; k += one) {
			one = hd_char_len(in.at[i + k]);
			err = map_part(norm, in, i + k, one, out, diag);
		}
	}
	return err;
}
