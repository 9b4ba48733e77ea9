/* scan.h -- lines and words of the text forms of this room, with their places.
 *
 * Plans and schedules are read through it: a line at a time, a word at a time, comments
 * and empty lines left out. Private to the parsers of the room.
 *
 * 1. Words are separated by blanks or tabs; a line may end without a line feed.
 * 2. A refusal says file:line:column, counted in bytes from 1, and is HD_E_INPUT.
 * 3. Nothing is copied: words point into the text, which ends where `end` says. */
#ifndef HD_PLAN_SCAN_H
#define HD_PLAN_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "plan/plan.h"

struct hd_scan {
	const char *file;
	const char *next, *end;           /* of the text not yet given out as lines */
	const char *line, *at, *line_end; /* of the line at hand */
	uint32_t nline;
	struct hd_diag *diag;
};

struct hd_scan hd_scan_of(const char *text, size_t len, const char *file, struct hd_diag *diag);
/* The next line that is neither empty nor a comment ('#' first); false at the end. With
 * `headings`, lines that begin with "##" are given out too. */
bool hd_scan_line(struct hd_scan *scan, bool headings);
/* The next word of the line; false at its end. */
bool hd_scan_word(struct hd_scan *scan, const char **word, size_t *len);
/* `at` points into the line. */
__attribute__((format(printf, 3, 4)))
enum hd_err hd_scan_refuse(const struct hd_scan *scan, const char *at, const char *fmt, ...);
/* A whole word as a plain number: digits, no zero in front. */
HD_MUST_USE enum hd_err hd_scan_number(const struct hd_scan *scan, const char *word, size_t len, uint64_t max,
	uint64_t *out);
/* The line is a list of a rank, "3: ...": its number; the rest stays to be read. */
bool hd_scan_is_list(const struct hd_scan *scan);
HD_MUST_USE enum hd_err hd_scan_rank(struct hd_scan *scan, uint32_t nranks, uint32_t *rank);
/* The instructions of the rest of the line. `left` is how many there may be yet. */
HD_MUST_USE enum hd_err hd_scan_list(struct hd_scan *scan, struct hd_ilist *list, uint32_t *left,
	struct hd_arena *arena);

/* " F0.0 (F0.1&B0.0)": a blank before each. */
void hd_list_print(const struct hd_ilist *list, struct hd_text *text);

#endif
