/* names.h -- texts that events refer to by number: a table that only grows.
 *
 * Names are interned when a plan is loaded, never while recording. The table lies in the
 * flight file; a name's number is the offset of its text in the table.
 *
 * 1. Texts end with 0. Offset 0 holds "?", which stands for every name that found no space.
 * 2. `used` is stored last, with release: what lies below it is whole and never changes.
 * 3. The same text has the same number.
 * 4. A text is cut to HD_TRACE_NAME_MAX bytes and at a 0.
 * 5. Readers trust nothing: every number gives a text.
 *
 * Ownership: table and `used` are the caller's, the index is in the struct.
 * Threads: one interns at a time; readers any. */
#ifndef HD_TRACE_NAMES_H
#define HD_TRACE_NAMES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { HD_TRACE_NAME_MAX = 255,           /* an op with its tensor, a host with its port */
       HD_NAMES_BYTES = 256 << 10,        /* of a flight file's table */
       HD_NAMES_INDEX = 1 << 15 };        /* more than such a table holds of names of 8 bytes */

struct hd_names {
	char *table;                      /* borrowed, as is used */
	_Atomic uint32_t *used;
	uint32_t cap_bytes, nnames;
	uint32_t nrefused;                /* names that became "?" for want of space */
	uint32_t index[HD_NAMES_INDEX];   /* hash -> number; 0: free */
};

/* cap_bytes >= 2. Empties the table. */
void hd_names_init(struct hd_names *names, char *table, uint32_t cap_bytes, _Atomic uint32_t *used);
uint32_t hd_names_intern(struct hd_names *names, const char *text, size_t len);

/* The text of a number in a table of `used` bytes; "?" if it is none. */
const char *hd_names_text(const char *table, uint32_t used, uint32_t name);

#endif
