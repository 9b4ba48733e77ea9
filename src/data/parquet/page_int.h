/* page_int.h -- a column chunk page by page: levels and values, private to parquet/.
 *
 * Entry i of a page has a repetition and a definition level; those whose definition level is the leaf's
 * highest
 * have a value, in turn. Texts lie in the page, or in the file, until the next page is taken. */
#ifndef HD_DATA_PARQUET_PAGE_INT_H
#define HD_DATA_PARQUET_PAGE_INT_H

#include "data/parquet/codes_int.h"

struct hd_parquet_cursor {
	const struct hd_parquet *file;
	const struct hd_parquet_leaf *leaf; uint32_t ileaf;
	/* the chunk */
	uint32_t group, codec;
	struct hd_parquet_bytes chunk;
	uint64_t left;                           /* entries in pages to come */
	struct hd_parquet_value *dict; uint32_t dict_cap, ndict;
	uint8_t *dict_bytes; uint32_t dict_bytes_cap;
	/* the page */
	uint8_t *page; uint32_t page_cap;
	uint8_t *made;                           /* texts of DELTA_BYTE_ARRAY; NULL: none */
	uint32_t *rep, *def, *index; uint32_t rep_cap, def_cap, index_cap;
	struct hd_parquet_value *value; uint32_t value_cap;
	uint32_t n, nvalues, i, ivalue;
	/* the row at hand (rows.c) */
	union hd_row_number *number; uint32_t number_cap; uint64_t nnumbers;
	char *text; uint32_t text_cap;
};

/* Begins the column's chunk of a row group. */
HD_MUST_USE enum hd_err hd_parquet_chunk_begin(struct hd_parquet_cursor *c, uint32_t group,
	struct hd_diag *diag);
/* The next page with entries, when c->i == c->n; *found false: the chunk has ended. */
HD_MUST_USE enum hd_err hd_parquet_page_next(struct hd_parquet_cursor *c, bool *found, struct hd_diag *diag);
void hd_parquet_cursor_finish(struct hd_parquet_cursor *c);

#endif
