/* unicode.h -- what characters are to the package `tokenizers`, and their normal forms.
 *
 * The package asks four tables of four versions of Unicode: Oniguruma 17 (pattern_rewrite.c), its
 * language's library 17, unicode-normalization 9, unicode_categories 8. A character newer than the table
 * that is asked is not known there. unicode_tables.c has the sets, made from the package by
 * tools/token_tables.py; utf8proc (Unicode 15) has decompositions, combining classes, compositions and lower
 * case, but for the characters that the package leaves alone (HD_CHAR_LATER).
 *
 * 1. Text is valid UTF-8: what comes from outside is looked at once, by its reader.
 *
 * Threads: reading is pure. */
#ifndef HD_TOKEN_UNICODE_H
#define HD_TOKEN_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum hd_char_class {
	HD_CHAR_WORD    = 1 << 0,         /* \w of Whitespace and of single_word */
	HD_CHAR_NUMERIC = 1 << 1,
	HD_CHAR_PUNCT   = 1 << 2,
	HD_CHAR_OTHER   = 1 << 3,         /* control, format, private use */
	HD_CHAR_MN      = 1 << 4,         /* nonspacing mark */
	HD_CHAR_MARK    = 1 << 5,         /* any combining mark */
	HD_CHAR_LATER   = 1 << 6,         /* the normal forms do not know it */
	HD_CHAR_GLUED   = 1 << 7,         /* of one grapheme with the letter before */
};

enum { HD_CHAR_PAGE = 256, HD_CHAR_PAGES = 0x110000 / HD_CHAR_PAGE };

struct hd_unicode {
	uint16_t page[HD_CHAR_PAGES];
	uint8_t (*at)[HD_CHAR_PAGE];      /* in the arena; page 0 is empty */
};

HD_MUST_USE enum hd_err hd_unicode_make(struct hd_unicode *unicode, struct hd_arena *arena,
	struct hd_diag *diag);

static inline unsigned hd_char_classes(const struct hd_unicode *unicode, uint32_t c)
{
	return unicode->at[unicode->page[c / HD_CHAR_PAGE]][c % HD_CHAR_PAGE];
}

/* White_Space */
static inline bool hd_char_is_space(uint32_t c)
{
	return c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
		(c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
		c == 0x3000;
}

/* Bytes of the character at `at` by its first byte. */
static inline size_t hd_char_len(uint8_t first)
{
	return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* The character at `at`; *c. Its length. */
static inline size_t hd_char_get(const uint8_t *at, uint32_t *c)
{
	if (at[0] < 0x80) {
		*c = at[0];
		return 1;
	}
	if (at[0] < 0xe0) {
		*c = (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu);
		return 2;
	}
	if (at[0] < 0xf0) {
		*c = (at[0] & 0xfu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
		return 3;
	}
	*c = (at[0] & 7u) << 18 | (at[1] & 0x3fu) << 12 | (at[2] & 0x3fu) << 6 | (at[3] & 0x3fu);
	return 4;
}

/* Where the character before `at` begins; at is not the first byte. */
static inline const uint8_t *hd_char_before(const uint8_t *at)
{
	do
		at--;
	while ((*at & 0xc0) == 0x80);
	return at;
}

enum { HD_CHAR_BYTES = 4, HD_CHAR_LOWER = 2,
       HD_CHAR_DECOMPOSED = 18 };         /* characters of the longest decomposition, U+FDFA */
size_t hd_char_put(uint32_t c, uint8_t out[HD_CHAR_BYTES]);
unsigned hd_char_lower(uint32_t c, uint32_t out[HD_CHAR_LOWER]);       /* how many */
/* Does a grapheme end between the two, of which none is newer than HD_CHAR_GLUED? *state: 0 at the
 * beginning. */
bool hd_char_breaks(const struct hd_unicode *unicode, uint32_t before, uint32_t after, int32_t *state);

enum hd_form { HD_NFC, HD_NFD, HD_NFKC, HD_NFKD };
/* Characters below it are not changed by a form, and what may be begins at them. */
uint32_t hd_form_first(enum hd_form form);
/* How many characters `n` may become before they are composed. */
static inline size_t hd_form_cap(size_t n) { return n * HD_CHAR_DECOMPOSED; }
/* `out` has room for hd_form_cap(n), and as many for `spare`. The count. */
size_t hd_form_make(const struct hd_unicode *unicode, enum hd_form form, const uint32_t *in, size_t n,
	int32_t *out, int32_t *spare);

#endif
