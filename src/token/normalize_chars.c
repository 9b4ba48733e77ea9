#include "token/normalize_int.h"

#include "base/alloc.h"
#include "token/byte_chars.h"

enum hd_err hd_norm_lowercase(const struct hd_norm *norm, struct hd_norm_work *work, struct hd_text_view in,
	struct hd_bytes *out, struct hd_diag *diag)
{
	enum hd_err err = hd_bytes_room(out, 2 * in.len, diag);
	uint32_t c, to[HD_CHAR_LOWER];

	(void)norm;
	(void)work;
	if (err)
		return err;
	HD_EACH_CHAR(in, i, c, n)
		for (unsigned k = 0, all = hd_char_lower(c, to); k < all; k++)
			hd_norm_put(out, to[k], i < in.nzero);
	return HD_OK;
}

static enum hd_err without(struct hd_norm_work *work, struct hd_text_view in, struct hd_bytes *out,
	enum hd_char_class class, struct hd_diag *diag)
{
	enum hd_err err = hd_bytes_room(out, in.len, diag);
	uint32_t c;

	if (err)
		return err;
	HD_EACH_CHAR(in, i, c, n)
		if (!(hd_char_classes(work->unicode, c) & class)) {
			hd_bytes_put(out, in.at + i, n);
			if (i < in.nzero)
				out->nzero = out->len;
		}
	return HD_OK;
}

enum hd_err hd_norm_strip_accents(const struct hd_norm *norm, struct hd_norm_work *work,
	struct hd_text_view in,
	struct hd_bytes *out, struct hd_diag *diag)
{
	(void)norm;
	return without(work, in, out, HD_CHAR_MARK, diag);
}

enum hd_err hd_norm_strip(const struct hd_norm *norm, struct hd_norm_work *work, struct hd_text_view in,
	struct hd_bytes *out, struct hd_diag *diag)
{
	size_t first = 0, last = in.len;
	enum hd_err err = hd_bytes_room(out, in.len, diag);
	uint32_t c;

	(void)work;
	if (err)
		return err;
	while (norm->left && first < last) {
		size_t n = hd_char_get(in.at + first, &c);
		if (!hd_char_is_space(c))
			break;
		first += n;
	}
	while (norm->right && last > first) {
		const uint8_t *before = hd_char_before(in.at + last);
		hd_char_get(before, &c);
		if (!hd_char_is_space(c))
			break;
		last = (size_t)(before - in.at);
	}
	hd_bytes_put(out, in.at + first, last - first);
	out->nzero = first < in.nzero ? (in.nzero < last ? in.nzero : last) - first : 0;
	return HD_OK;
}

static bool nmt_drops(uint32_t c)
{
	return (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f || c ==
		0x9f;
}

static bool nmt_blanks(uint32_t c)
{
	return c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 || (c >= 0x200b && c <= 0x200f) ||
		c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd;
}

enum hd_err hd_norm_nmt(const struct hd_norm *norm, struct hd_norm_work *work, struct hd_text_view in,
	struct hd_bytes *out, struct hd_diag *diag)
{
	enum hd_err err = hd_bytes_room(out, in.len, diag);
	uint32_t c;

	(void)norm;
	(void)work;
	if (err)
		return err;
	HD_EACH_CHAR(in, i, c, n)
		if (!nmt_drops(c))
			hd_norm_put(out, nmt_blanks(c) ? ' ' : c, i < in.nzero);
	return HD_OK;
}

enum hd_err hd_norm_byte_level(const struct hd_norm *norm, struct hd_norm_work *work, struct hd_text_view in,
	struct hd_bytes *out, struct hd_diag *diag)
{
	enum hd_err err = hd_bytes_room(out, 2 * in.len, diag);

	(void)norm;
	(void)work;
	if (err)
		return err;
	for (size_t i = 0; i < in.len; i++)
		hd_norm_put(out, hd_byte_char(in.at[i]), i < in.nzero);
	return HD_OK;
}

/* ---- BERT ---- */

static bool is_chinese(uint32_t c)
{
	return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <=
		0x2a6df) ||
		(c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 &&
			c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

static enum hd_err bert_clean(const struct hd_norm *norm, struct hd_norm_work *work, struct hd_text_view in,
	struct hd_bytes *out, struct hd_diag *diag)
{
	enum hd_err err = hd_bytes_room(out, in.len, diag);
	uint32_t c;

	(void)norm;
	if (err)
		return err;
	HD_EACH_CHAR(in, i, c, n) {
		bool blank = hd_char_is_space(c), tab = c == '\t' || c == '\n' || c == '\r';
		if (c && c != 0xfffd && (tab || !(hd_char_classes(work->unicode, c) & HD_CHAR_OTHER)))
			hd_norm_put(out, blank ? ' ' : c, i < in.nzero);
	}
	return HD_OK;
}

static enum hd_err bert_chinese(const struct hd_norm *norm, struct hd_norm_work *work, struct hd_text_view in,
	struct hd_bytes *out, struct hd_diag *diag)
{
	enum hd_err err = hd_bytes_room(out, in.len + in.len / 3 * 2, diag);
	uint32_t c;

	(void)norm;
	(void)work;
	if (err)
		return err;
	HD_EACH_CHAR(in, i, c, n) {
		if (is_chinese(c))
			hd_norm_put(out, ' ', i < in.nzero);
		hd_norm_put(out, c, i < in.nzero);
		if (is_chinese(c))
			hd_norm_put(out, ' ', i < in.nzero);
	}
	return HD_OK;
}

static enum hd_err bert_accents(const struct hd_norm *norm, struct hd_norm_work *work, struct hd_text_view in,
	struct hd_bytes *out, struct hd_diag *diag)
{
	static const struct hd_norm nfd = { .form = HD_NFD };
	struct hd_bytes *between = &work->text[2];
	enum hd_err err;

	(void)norm;
	between->len = between->nzero = 0;
	return (err = hd_norm_form(&nfd, work, in, between, diag)) ? err : without(work,
		hd_bytes_view(between), out,
		HD_CHAR_MN, diag);
}

/* The steps that it asks for, in turn between `out` and a text of its own. */
enum hd_err hd_norm_bert(const struct hd_norm *norm, struct hd_norm_work *work, struct hd_text_view in,
	struct hd_bytes *out, struct hd_diag *diag)
{
	const struct { bool on; hd_norm_apply *apply; } steps[] = {
		{ norm->clean, bert_clean }, { norm->chinese, bert_chinese }, { norm->accents, bert_accents },
		{ norm->lower, hd_norm_lowercase },
	};
	struct hd_bytes other = { 0 };
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < sizeof steps / sizeof steps[0] && !err; i++) {
		if (!steps[i].on)
			continue;
		struct hd_bytes was = other;
		other = *out;
		*out = was;
		out->len = out->nzero = 0;
		err = steps[i].apply(norm, work, in, out, diag);
		in = hd_bytes_view(out);
	}
	if (!err && in.at != out->at)
		err = hd_bytes_add(out, in.at, in.len, diag), out->nzero = in.nzero;
	hd_free(other.at);
	return err;
}
