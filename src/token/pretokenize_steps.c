#include "token/pretokenize_int.h"

#include <string.h>

#include "token/byte_chars.h"

/* ---- stretches that match or not, and what becomes of them ---- */

struct splitter {
	struct hd_pre_work *work;
	const struct hd_token_piece *whole;
	enum hd_behavior behavior;
	bool invert, open, was_match;     /* open: [first, last) is not out yet */
	size_t first, last;
	enum hd_err err;
	struct hd_diag *diag;
};

static void out(struct splitter *s, size_t first, size_t last)
{
	if (!s->err)
		s->err = hd_pieces_cut(&s->work->next, s->whole, first, last, s->diag);
}

static void close_open(struct splitter *s)
{
	if (s->open)
		out(s, s->first, s->last);
	s->open = false;
}

/* Whether a stretch belongs to the one before. */
static bool joins(const struct splitter *s, bool match)
{
	switch (s->behavior) {
	case HD_CONTIGUOUS: return match == s->was_match;
	case HD_MERGED_WITH_PREVIOUS: return match && !s->was_match;
	case HD_MERGED_WITH_NEXT: return s->was_match && !match;
	case HD_REMOVED: case HD_ISOLATED: default: return false;
	}
}

static void stretch(struct splitter *s, size_t first, size_t last, bool match)
{
	match ^= s->invert;
	if (s->behavior == HD_REMOVED && match)
		return;
	if (s->open && joins(s, match)) {
		s->last = last;
	} else {
		close_open(s);
		s->first = first;
		s->last = last;
		s->open = true;
	}
	s->was_match = match;
}

typedef bool is_fn(const struct hd_pre *pre, const struct hd_unicode *unicode, uint32_t c);

/* Each character that `is` so matches by itself. */
static enum hd_err split_chars(const struct hd_pre *pre, struct splitter *s, is_fn *is)
{
	const uint8_t *at = s->work->text.at + s->whole->at;
	size_t from = 0, len = s->whole->len;
	uint32_t c;

	for (size_t i = 0, n; i < len; i += n) {
		n = hd_char_get(at + i, &c);
		if (!is(pre, s->work->unicode, c))
			continue;
		if (from < i)
			stretch(s, from, i, false);
		stretch(s, i, i + n, true);
		from = i + n;
	}
	if (from < len)
		stretch(s, from, len, false);
	close_open(s);
	return s->err;
}

static enum hd_err split_pattern(const struct hd_pre *pre, struct splitter *s)
{
	struct hd_found f = { .pattern = &pre->pattern, .finder = s->work->finder, .text = {
		s->work->text.at + s->whole->at, s->whole->len, 0 } };
	size_t from = 0;

	while (!s->err && hd_found_next(&f, &s->err, s->diag)) {
		if (from < f.first)
			stretch(s, from, f.first, false);
		stretch(s, f.first, f.last, true);
		from = f.last;
	}
	if (from < s->whole->len)
		stretch(s, from, s->whole->len, false);
	close_open(s);
	return s->err;
}

/* ---- the steps: a piece at a time, into work->next ---- */

static struct splitter splitter(struct hd_pre_work *work, const struct hd_token_piece *piece,
	enum hd_behavior behavior, struct hd_diag *diag)
{
	return (struct splitter){ .work = work, .whole = piece, .behavior = behavior, .diag = diag };
}

static bool is_space(const struct hd_pre *pre, const struct hd_unicode *u, uint32_t c)
{
	(void)pre;
	(void)u;
	return hd_char_is_space(c);
}

static bool is_punct(const struct hd_pre *pre, const struct hd_unicode *u, uint32_t c)
{
	(void)pre;
	return hd_char_classes(u, c) & HD_CHAR_PUNCT;
}

static bool is_numeric(const struct hd_pre *pre, const struct hd_unicode *u, uint32_t c)
{
	(void)pre;
	return hd_char_classes(u, c) & HD_CHAR_NUMERIC;
}

static bool is_own(const struct hd_pre *pre, const struct hd_unicode *u, uint32_t c)
{
	(void)u;
	return c == pre->c;
}

enum hd_err hd_pre_whitespace_split(const struct hd_pre *pre, struct hd_pre_work *work,
	const struct hd_token_piece *piece, struct hd_diag *diag)
{
	struct splitter s = splitter(work, piece, HD_REMOVED, diag);

	return split_chars(pre, &s, is_space);
}

enum hd_err hd_pre_punctuation(const struct hd_pre *pre, struct hd_pre_work *work,
	const struct hd_token_piece *piece, struct hd_diag *diag)
{
	struct splitter s = splitter(work, piece, pre->behavior, diag);

	return split_chars(pre, &s, is_punct);
}

enum hd_err hd_pre_digits(const struct hd_pre *pre, struct hd_pre_work *work,
	const struct hd_token_piece *piece, struct hd_diag *diag)
{
	struct splitter s = splitter(work, piece, pre->single ? HD_ISOLATED : HD_CONTIGUOUS, diag);

	return split_chars(pre, &s, is_numeric);
}

enum hd_err hd_pre_delimiter(const struct hd_pre *pre, struct hd_pre_work *work,
	const struct hd_token_piece *piece, struct hd_diag *diag)
{
	struct splitter s = splitter(work, piece, HD_REMOVED, diag);

	return split_chars(pre, &s, is_own);
}

enum hd_err hd_pre_split(const struct hd_pre *pre, struct hd_pre_work *work,
	const struct hd_token_piece *piece, struct hd_diag *diag)
{
	struct splitter s = splitter(work, piece, pre->behavior, diag);

	s.invert = pre->invert;
	return split_pattern(pre, &s);
}

/* 0: white space, 1: \w, 2: neither */
static unsigned kind_of(const struct hd_unicode *u, uint32_t c)
{
	return hd_char_classes(u, c) & HD_CHAR_WORD ? 1 : hd_char_is_space(c) ? 0 : 2;
}

enum hd_err hd_pre_whitespace(const struct hd_pre *pre, struct hd_pre_work *work,
	const struct hd_token_piece *piece, struct hd_diag *diag)
{
	const uint8_t *at = work->text.at + piece->at;
	enum hd_err err = HD_OK;
	uint32_t c;

	(void)pre;
	for (size_t i = 0, n; i < piece->len && !err; ) {
		size_t from = i;
		i += hd_char_get(at + i, &c);
		unsigned kind = kind_of(work->unicode, c);
		while (i < piece->len && (n = hd_char_get(at + i, &c), kind_of(work->unicode, c) == kind))
			i += n;
		if (kind)
			err = hd_pieces_cut(&work->next, piece, from, i, diag);
	}
	return err;
}

/* Between white space, then each punctuation by itself. */
enum hd_err hd_pre_bert(const struct hd_pre *pre, struct hd_pre_work *work,
	const struct hd_token_piece *piece, struct hd_diag *diag)
{
	const uint8_t *at = work->text.at + piece->at;
	size_t from = 0;
	enum hd_err err = HD_OK;
	uint32_t c;

	(void)pre;
	for (size_t i = 0, n; i < piece->len && !err; i += n) {
		n = hd_char_get(at + i, &c);
		bool blank = hd_char_is_space(c), mark = !blank && hd_char_classes(work->unicode, c) &
			HD_CHAR_PUNCT;
		if (!blank && !mark)
			continue;
		err = hd_pieces_cut(&work->next, piece, from, i, diag);
		if (mark && !err)
			err = hd_pieces_cut(&work->next, piece, i, i + n, diag);
		from = i + n;
	}
	return err ? err : hd_pieces_cut(&work->next, piece, from, piece->len, diag);
}

enum hd_err hd_pre_fixed_length(const struct hd_pre *pre, struct hd_pre_work *work,
	const struct hd_token_piece *piece, struct hd_diag *diag)
{
	const uint8_t *at = work->text.at + piece->at;
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < piece->len && !err; ) {
		size_t from = i;
		for (uint32_t k = 0; k < pre->length && i < piece->len; k++)
			i += hd_char_len(at[i]);
		err = hd_pieces_cut(&work->next, piece, from, i, diag);
	}
	return err;
}

/* The piece behind `head`, at the end of the text. */
static enum hd_err behind(struct hd_pre_work *work, const void *head, size_t len,
	struct hd_token_piece *piece,
	struct hd_diag *diag)
{
	size_t at = work->text.len;
	enum hd_err err = hd_bytes_room(&work->text, len + piece->len, diag);

	if (err)
		return err;
	hd_bytes_put(&work->text, head, len);
	hd_bytes_put(&work->text, work->text.at + piece->at, piece->len);
	piece->at = at;
	piece->len += (uint32_t)len;
	piece->nzero += piece->nzero ? (uint32_t)len : 0;
	return HD_OK;
}

/* In letters; a byte of the first character gives letters of it. */
static enum hd_err map_bytes(struct hd_pre_work *work, struct hd_token_piece *piece, struct hd_diag *diag)
{
	size_t at = work->text.len, nzero = 0;
	enum hd_err err = hd_bytes_room(&work->text, 2 * (size_t)piece->len, diag);

	if (err)
		return err;
	for (uint32_t i = 0; i < piece->len; i++) {
		work->text.len += hd_char_put(hd_byte_char(work->text.at[piece->at + i]), work->text.at +
			work->text.len);
		if (i < piece->nzero)
			nzero = work->text.len - at;
	}
	*piece = (struct hd_token_piece){ at, (uint32_t)(work->text.len - at), (uint32_t)nzero, piece->id };
	return HD_OK;
}

enum hd_err hd_pre_byte_level(const struct hd_pre *pre, struct hd_pre_work *work,
	const struct hd_token_piece *whole, struct hd_diag *diag)
{
	struct hd_token_piece piece = *whole;
	uint32_t from = work->next.n;
	enum hd_err err = HD_OK;

	if (pre->prefix && work->text.at[piece.at] != ' ')
		err = behind(work, " ", 1, &piece, diag);
	if (!err && pre->regex) {
		struct splitter s = splitter(work, &piece, HD_ISOLATED, diag);
		err = split_pattern(pre, &s);
	} else if (!err) {
		err = hd_pieces_add(&work->next, piece, diag);
	}
	for (uint32_t i = from; i < work->next.n && pre->maps && !err; i++)
		err = map_bytes(work, &work->next.at[i], diag);
	return err;
}

/* Blanks become the letter. */
static enum hd_err write_blanks(const struct hd_pre *pre, struct hd_pre_work *work,
	struct hd_token_piece *piece, struct hd_diag *diag)
{
	uint8_t letter[HD_CHAR_BYTES];
	const size_t n = hd_char_put(pre->c, letter), at = work->text.len;
	size_t nzero = 0;

	if (!memchr(work->text.at + piece->at, ' ', piece->len))
		return HD_OK;
	enum hd_err err = hd_bytes_room(&work->text, n * piece->len, diag);
	if (err)
		return err;
	for (uint32_t i = 0; i < piece->len; i++) {
		const uint8_t b = work->text.at[piece->at + i];
		hd_bytes_put(&work->text, b == ' ' ? letter : &b, b == ' ' ? n : 1);
		if (i < piece->nzero)
			nzero = work->text.len - at;
	}
	*piece = (struct hd_token_piece){ at, (uint32_t)(work->text.len - at), (uint32_t)nzero, piece->id };
	return HD_OK;
}

enum hd_err hd_pre_metaspace(const struct hd_pre *pre, struct hd_pre_work *work,
	const struct hd_token_piece *whole, struct hd_diag *diag)
{
	struct hd_token_piece piece = *whole;
	uint8_t letter[HD_CHAR_BYTES];
	size_t n = hd_char_put(pre->c, letter);
	enum hd_err err = write_blanks(pre, work, &piece, diag);

	if (err)
		return err;
	bool there = piece.len >= n && !memcmp(work->text.at + piece.at, letter, n);
	if (!there && (pre->prepend == HD_PREPEND_ALWAYS || (pre->prepend == HD_PREPEND_FIRST &&
		piece.nzero)))
		err = behind(work, letter, n, &piece, diag);
	if (err || !pre->split)
		return err ? err : hd_pieces_add(&work->next, piece, diag);
	struct splitter s = splitter(work, &piece, HD_MERGED_WITH_NEXT, diag);
	return split_chars(pre, &s, is_own);
}
