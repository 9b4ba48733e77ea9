#include "token/unicode.h"

#include <string.h>
#include <utf8proc.h>

#include "token/unicode_int.h"

static const struct { enum hd_char_class bit; const struct hd_chars *chars; } sets[] = {
	{ HD_CHAR_WORD, hd_chars_word }, { HD_CHAR_NUMERIC, hd_chars_numeric },
	{ HD_CHAR_PUNCT, hd_chars_punct }, { HD_CHAR_OTHER, hd_chars_other }, { HD_CHAR_MN, hd_chars_mn },
	{ HD_CHAR_MARK, hd_chars_mark }, { HD_CHAR_LATER, hd_chars_later }, { HD_CHAR_GLUED, hd_chars_glued },
};

enum { NSETS = sizeof sets / sizeof sets[0] };

/* Numbers the pages that hold anything, from 1 on. */
static uint32_t number_pages(struct hd_unicode *u)
{
	uint32_t n = 1;

	for (unsigned s = 0; s < NSETS; s++)
		for (const struct hd_chars *r = sets[s].chars; r->last; r++)
			for (uint32_t p = r->first / HD_CHAR_PAGE; p <= r->last / HD_CHAR_PAGE; p++)
				if (!u->page[p])
					u->page[p] = (uint16_t)n++;
	return n;
}

enum hd_err hd_unicode_make(struct hd_unicode *u, struct hd_arena *arena, struct hd_diag *diag)
{
	memset(u, 0, sizeof *u);
	uint32_t n = number_pages(u);
	u->at = hd_arena_take(arena, n, sizeof *u->at);
	if (!u->at)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the classes of characters");
	for (unsigned s = 0; s < NSETS; s++)
		for (const struct hd_chars *r = sets[s].chars; r->last; r++)
			for (uint32_t c = r->first; c <= r->last; c++)
				u->at[u->page[c / HD_CHAR_PAGE]][c % HD_CHAR_PAGE] |= (uint8_t)sets[s].bit;
	return HD_OK;
}

size_t hd_char_put(uint32_t c, uint8_t out[HD_CHAR_BYTES])
{
	if (c < 0x80) {
		out[0] = (uint8_t)c;
		return 1;
	}
	size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--, c >>= 6)
		out[i] = (uint8_t)(0x80 | (c & 0x3f));
	out[0] = (uint8_t)((0xf00u >> n & 0xff) | c);
	return n;
}

unsigned hd_char_lower(uint32_t c, uint32_t out[HD_CHAR_LOWER])
{
	if (c < 0x80) {
		out[0] = c >= 'A' && c <= 'Z' ? c + 32 : c;
		return 1;
	}
	if (c == 0x130) {                         /* the one that becomes two: i and a dot above */
		out[0] = 'i';
		out[1] = 0x307;
		return 2;
	}
	out[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
	for (const struct hd_chars *r = hd_chars_lower; r->last && r->first <= c; r++)
		if (r->first == c)
			out[0] = r->last;
	return 1;
}

bool hd_char_breaks(const struct hd_unicode *u, uint32_t before, uint32_t after, int32_t *state)
{
	bool breaks = utf8proc_grapheme_break_stateful((utf8proc_int32_t)before, (utf8proc_int32_t)after,
		state);

	/* a mark is glued to any character but a control; of new marks utf8proc does not know that */
	if (!(hd_char_classes(u, after) & HD_CHAR_GLUED))
		return breaks;
	switch (utf8proc_get_property((utf8proc_int32_t)before)->boundclass) {
	case UTF8PROC_BOUNDCLASS_CONTROL:
	case UTF8PROC_BOUNDCLASS_CR:
	case UTF8PROC_BOUNDCLASS_LF: return breaks;
	default: return false;
	}
}

/* ---- normal forms ---- */

uint32_t hd_form_first(enum hd_form form)
{
	return form == HD_NFC ? 0x300 : form == HD_NFD ? 0xc0 : 0xa0;
}

static unsigned ccc(const struct hd_unicode *u, int32_t c)
{
	return hd_char_classes(u, (uint32_t)c) & HD_CHAR_LATER ? 0 :
		(unsigned)utf8proc_get_property(c)->combining_class & 0xff;
}

static size_t decompose(const struct hd_unicode *u, bool compat, const uint32_t *in, size_t n, int32_t *out)
{
	const utf8proc_option_t how = UTF8PROC_DECOMPOSE | (compat ? UTF8PROC_COMPAT : 0);
	size_t at = 0;
	int last = 0;

	for (size_t i = 0; i < n; i++) {
		if (hd_char_classes(u, in[i]) & HD_CHAR_LATER)
			out[at++] = (int32_t)in[i];
		else
			at += (size_t)utf8proc_decompose_char((utf8proc_int32_t)in[i], out + at,
				HD_CHAR_DECOMPOSED, how, &last);
	}
	return at;
}

/* Marks in the order of their classes, equal ones as they stand: counted, since a hostile text is one long
 * run of them. */
static void order_run(const struct hd_unicode *u, int32_t *at, size_t n, int32_t *spare)
{
	size_t place[257] = { 0 };

	for (size_t i = 0; i < n; i++)
		place[ccc(u, at[i]) + 1]++;
	for (unsigned c = 0; c < 256; c++)
		place[c + 1] += place[c];
	for (size_t i = 0; i < n; i++)
		spare[place[ccc(u, at[i])]++] = at[i];
	memcpy(at, spare, n * sizeof *at);
}

static void order_marks(const struct hd_unicode *u, int32_t *at, size_t n, int32_t *spare)
{
	for (size_t i = 0; i < n; ) {
		size_t from = i;
		while (i < n && ccc(u, at[i]))
			i++;
		if (i - from > 1)
			order_run(u, at + from, i - from, spare);
		i += i == from;
	}
}

/* Between characters that are not known, which compose with nothing. */
static size_t compose(const struct hd_unicode *u, int32_t *at, size_t n)
{
	size_t to = 0;

	for (size_t i = 0; i < n; ) {
		size_t from = i;
		while (i < n && !(hd_char_classes(u, (uint32_t)at[i]) & HD_CHAR_LATER))
			i++;
		size_t len = (size_t)utf8proc_normalize_utf32(at + from, (utf8proc_ssize_t)(i - from),
			UTF8PROC_COMPOSE | UTF8PROC_STABLE);
		memmove(at + to, at + from, len * sizeof *at);
		to += len;
		if (i < n)
			at[to++] = at[i++];
	}
	return to;
}

size_t hd_form_make(const struct hd_unicode *u, enum hd_form form, const uint32_t *in, size_t n, int32_t *out,
	int32_t *spare)
{
	size_t len = decompose(u, form == HD_NFKC || form == HD_NFKD, in, n, out);

	order_marks(u, out, len, spare);
	return form == HD_NFC || form == HD_NFKC ? compose(u, out, len) : len;
}
