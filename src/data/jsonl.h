/* jsonl.h -- JSON Lines: a line is an object (RFC 8259), of which some members are wanted.
 *
 * 1. A line ends with LF or CR LF, the last one also with its file. Lines of blanks are passed by, and a byte
 *    order mark in front of the file.
 * 2. A member is wanted by its path: "a.b" is b in the object a, or the member called "a.b". Its cell (row.h)
 *    is a number, a text, or a list of numbers; true and false are 1 and 0; null is nothing, as is a member
 *    that is not there. A text is what its escapes stand for.
 * 3. All of a line is checked, wanted or not: syntax, UTF-8, surrogates in pairs, depth up to
 *    HD_JSONL_DEPTH. Of what is wanted also: it stands once; lists are regular and hold numbers alone; a
 *    number is no larger than f64 has. An integer that fits in 64 bits is exact, other numbers are the
 *    nearest f64.
 * 4. A place is a line and a byte in it, both from 1.
 * 5. A line has at most HD_JSONL_LINE bytes; memory is that of the longest line, a few times.
 *
 * Ownership: the caller's struct, ended by hd_jsonl_finish(); bytes, name and paths are borrowed. */
#ifndef HD_DATA_JSONL_H
#define HD_DATA_JSONL_H

#include "base/err.h"
#include "data/row.h"

enum { HD_JSONL_DEPTH = 64, HD_JSONL_WANTED = 256, HD_JSONL_PATH = 256,
       HD_JSONL_NUMBER = 400,             /* bytes of a number */
       HD_JSONL_LINE = 256 << 20 };

/* A container that is open. path_len: of what is written of the path when its member began. */
struct hd_jsonl_level { bool array; uint32_t path_len; uint64_t n; };

struct hd_jsonl {
	const char *name;                 /* for messages */
	const uint8_t *at, *end, *begin;  /* begin: of the line */
	uint64_t line;
	const char *const *wanted; uint32_t nwanted;
	/* called for each member of the object itself; NULL: none */
	enum hd_err (*member)(void *user, const char *name, size_t len, struct hd_diag *diag);
	void *user;
	/* the line at hand */
	struct hd_jsonl_level level[HD_JSONL_DEPTH]; uint32_t depth;
	char path[HD_JSONL_PATH]; uint32_t path_len;   /* HD_JSONL_PATH: none that is wanted */
	uint32_t cell, cell_depth;        /* wanted, that is open; depth of its first list */
	int32_t leaf;                     /* lists around its numbers; -1: none came yet */
	struct hd_row_cell *cells;
	/* where the cells' numbers and texts lie */
	union hd_row_number *number; uint32_t number_cap; uint64_t nnumbers;
	char *text; uint32_t text_cap; uint64_t text_len;
	uint64_t from[HD_JSONL_WANTED];   /* a cell's first number, or byte of text */
};

void hd_jsonl_init(struct hd_jsonl *jsonl, const uint8_t *bytes, size_t len, const char *name,
	const char *const *wanted, uint32_t nwanted);
/* Passes blank lines by; is there a row? */
bool hd_jsonl_more(struct hd_jsonl *jsonl);
/* The next row, a cell for each path. HD_E_INPUT names file:line:byte. */
HD_MUST_USE enum hd_err hd_jsonl_next(struct hd_jsonl *jsonl, struct hd_row_cell *cells,
	struct hd_diag *diag);
void hd_jsonl_finish(struct hd_jsonl *jsonl);      /* takes zeroed ones */

#endif
