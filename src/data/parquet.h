/* parquet.h -- Apache Parquet, the part of it that training data need.
 *
 *	byte 0     4                                        len-8    len-4
 *	     PAR1  pages of column chunks, by row groups .. footer   its length  PAR1
 *
 * Source: apache/parquet-format (README.md, parquet.thrift, Encodings.md, Compression.md), version 2.11.
 *
 * 1. A leaf of the schema is a column: its path is the names of the fields around it, without those that a
 * list
 *    adds (LIST's own "list" and "element", also in their older forms). A cell (row.h) is a number, a text,
 * or
 *    a list of numbers, of as many extents as lists stand inside one another.
 * 2. Read: BOOLEAN, INT32, INT64 (also unsigned), FLOAT, DOUBLE, FLOAT16, BYTE_ARRAY that is UTF-8; pages of
 * both
 *    versions, a dictionary page; PLAIN, dictionaries, RLE of booleans, the three DELTA encodings,
 *    BYTE_STREAM_SPLIT; snappy, gzip, zstd, lz4_raw or nothing; checksums of pages where there are any.
 * 3. Refused by name, of a column that is wanted: INT96, decimals, dates and times, other fixed bytes, lists
 * of
 *    texts, lists of objects, maps; brotli, lzo and the older lz4; BIT_PACKED levels; encrypted files; chunks
 * in
 *    other files. A null in a list is refused, a null cell is HD_ROW_NONE, as is a list that is null.
 * 4. Nothing that a file says is trusted: offsets, counts, levels and indices are compared before they are
 * used;
 *    a page has at most HD_PARQUET_PAGE values. Memory: a page and a dictionary of each wanted column, a few
 *    times, and the footer.
 *
 * Ownership: everything borrows the bytes; the file lies in the arena, a reader is ended by its finish. */
#ifndef HD_DATA_PARQUET_H
#define HD_DATA_PARQUET_H

#include "base/arena.h"
#include "base/err.h"
#include "data/row.h"

enum { HD_PARQUET_PAGE = 1 << 24, HD_PARQUET_PAGE_BYTES = 1 << 30, HD_PARQUET_LEVELS = 32,
       HD_PARQUET_WANTED = 256 };

enum hd_parquet_type { HD_PARQUET_BOOLEAN, HD_PARQUET_INT32, HD_PARQUET_INT64, HD_PARQUET_INT96,
	HD_PARQUET_FLOAT,
	HD_PARQUET_DOUBLE, HD_PARQUET_BYTES, HD_PARQUET_FIXED, HD_PARQUET_TYPES };

struct hd_parquet_leaf {
	const char *path;
	enum hd_parquet_type type;
	uint32_t fixed_bytes;             /* of FIXED */
	bool is_unsigned;
	const char *refused;              /* why it cannot be wanted; NULL: it can */
	uint32_t max_def, max_rep;
	/* definition level from which the list of depth i has an element */
	uint32_t list_def[HD_ROW_RANK + 1];
};

struct hd_parquet_chunk { uint64_t at, len, nvalues; uint32_t codec; bool elsewhere; };

struct hd_parquet {
	const uint8_t *bytes; size_t len;
	const char *name;
	struct hd_parquet_leaf *leaf; uint32_t nleaves;
	uint64_t nrows;
	/* chunk: [ngroups, nleaves] */
	uint64_t *group_rows; struct hd_parquet_chunk *chunk; uint32_t ngroups;
};

/* The footer. HD_E_INPUT names the file and what is wrong with it. */
HD_MUST_USE enum hd_err hd_parquet_open(struct hd_parquet *file, struct hd_arena *arena, const uint8_t *bytes,
	size_t len, const char *name, struct hd_diag *diag);

struct hd_parquet_cursor;
struct hd_parquet_rows {
	const struct hd_parquet *file;
	struct hd_parquet_cursor *cursor; uint32_t nwanted;
	uint64_t row, group_left; uint32_t group;        /* row: given so far */
};
/* `wanted`: paths, HD_E_INPUT where there is none of a name or it is refused. */
HD_MUST_USE enum hd_err hd_parquet_rows_begin(struct hd_parquet_rows *rows, const struct hd_parquet *file,
	const char *const *wanted, uint32_t nwanted, struct hd_diag *diag);
static inline bool hd_parquet_more(const struct hd_parquet_rows *rows)
{
	return rows->row < rows->file->nrows;
}
/* The next row; its cells last until the next call. */
HD_MUST_USE enum hd_err hd_parquet_next(struct hd_parquet_rows *rows, struct hd_row_cell *cells,
	struct hd_diag *diag);
void hd_parquet_rows_finish(struct hd_parquet_rows *rows);      /* takes zeroed ones */

#endif
