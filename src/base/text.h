/* text.h -- a growing string in an arena or in fixed storage.
 *
 * Printers of graphs, plans, JSON lines and reports write into it, so that no
 * printer knows where its text goes.
 *
 * 1. `at` is always terminated by 0 (once something was put or init ran).
 * 2. A text that cannot grow sets `full` and drops the rest: check once, at the end.
 *
 * Ownership: growing texts live in their arena; fixed ones in the caller's buffer. */
#ifndef HD_BASE_TEXT_H
#define HD_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

struct hd_text {
	char *at;
	size_t len, cap;
	struct hd_arena *arena;           /* borrowed; NULL: fixed storage */
	bool full;
};

void hd_text_init(struct hd_text *text, struct hd_arena *arena);
void hd_text_fixed(struct hd_text *text, char *at, size_t cap);
void hd_text_put(struct hd_text *text, const char *bytes, size_t len);
void hd_text_add(struct hd_text *text, const char *string);
__attribute__((format(printf, 2, 3))) void hd_text_addf(struct hd_text *text, const char *fmt, ...);

#endif
