/* pattern.h -- what is looked for in a text: a string, or a regular expression.
 *
 * Replace and Split of the file. The package runs regular expressions by Oniguruma; we by PCRE2, after the
 * text of the expression was rewritten to mean there what it means in Oniguruma (pattern_rewrite.c): classes
 * of characters by the package's version of Unicode, \s as White_Space, \v, intervals. What the two read
 * differently and is not rewritten is refused, with the place.
 *
 * 1. Matches are found left to right, none overlaps, none is empty right after another.
 * 2. An expression that tries HD_PATTERN_TRIES ways at one place is HD_E_INPUT.
 *
 * Ownership: finish() frees; takes zeroed ones. Threads: a pattern is read only; finders are a thread's. */
#ifndef HD_TOKEN_PATTERN_H
#define HD_TOKEN_PATTERN_H

#include <stdbool.h>

#include "base/json.h"
#include "token/bytes.h"

enum { HD_PATTERN_TRIES = 10000000,       /* Oniguruma's own limit */
       HD_PATTERN_STACK = 4 << 20 };      /* of compiled expressions */

struct hd_pattern { void *code; const char *string; size_t len; const char *where; };

/* { "String": ... } or { "Regex": ... }, a member of the file. Strings lie in `arena`. */
HD_MUST_USE enum hd_err hd_pattern_read(struct hd_pattern *pattern, const struct hd_json *json,
	struct hd_arena *arena, struct hd_diag *diag);
/* A regular expression; `where` is for messages. */
HD_MUST_USE enum hd_err hd_pattern_make(struct hd_pattern *pattern, const char *regex, const char *where,
	struct hd_arena *arena, struct hd_diag *diag);
void hd_pattern_finish(struct hd_pattern *pattern);

struct hd_finder { void *data, *context, *stack; };
HD_MUST_USE enum hd_err hd_finder_make(struct hd_finder *finder, struct hd_diag *diag);
void hd_finder_finish(struct hd_finder *finder);

/* A walk over the matches in a text; begins zeroed but for the first three. */
struct hd_found {
	const struct hd_pattern *pattern;
	struct hd_finder *finder;
	struct hd_text_view text;
	size_t from, end;                 /* where the next is looked for; the end of the last */
	bool any;
	size_t first, last;               /* of the match: [first, last) */
};
/* false: no more, or *err. */
bool hd_found_next(struct hd_found *found, enum hd_err *err, struct hd_diag *diag);

#endif
