/* json_scan.h -- JSON read value by value, for files that are too large for a tree (base/json.h). Private to
 * the room.
 *
 * 1. Nothing is kept of what is skipped; nesting is at most HD_TL_JSON_DEPTH deep.
 * 2. Lenient where writers of traces are known to be: control characters in strings are taken as they are,
 *    so is a comma before a closing bracket; bad escapes become U+FFFD.
 * 3. `cut` is set where the text ends inside of what was asked for.
 *
 * Threads: one at a time. */
#ifndef HD_TIMELINE_JSON_SCAN_H
#define HD_TIMELINE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum { HD_TL_JSON_DEPTH = 64 };

struct json_scan {
	const char *begin, *at, *end;
	bool cut;
	const char *why;                  /* of what is no JSON; NULL: none yet */
};

/* The next character that is no blank, not taken; 0 at the end. */
char hd_tl_scan_peek(struct json_scan *scan);
/* Takes it if it is that one. */
bool hd_tl_scan_take(struct json_scan *scan, char c);
/* A string, unescaped, at the end of `text` (NULL: dropped). */
bool hd_tl_scan_string(struct json_scan *scan, struct hd_text *text);
/* A number as it is written. */
bool hd_tl_scan_number(struct json_scan *scan, const char **text, size_t *len);
/* Any value. */
bool hd_tl_scan_skip(struct json_scan *scan);
/* After '{' or between members: the next key in `key`, its colon taken. False: '}' was taken, or an error. */
bool hd_tl_scan_member(struct json_scan *scan, struct hd_text *key, bool *first);
/* After '[' or between items: is there one more? False: ']' was taken, or an error. */
bool hd_tl_scan_item(struct json_scan *scan, bool *first);
static inline bool hd_tl_scan_failed(const struct json_scan *scan) { return scan->cut || scan->why; }

/* A decimal number times 10^digits, rounded to the nearest whole; false: not finite, or beyond 2^61. */
bool hd_tl_scan_decimal(const char *text, size_t len, int digits, int64_t *out);

#endif
