#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/utf8.h"
#include "data/parquet/page_int.h"

/* Rows out of columns, after Dremel (Melnik et al. 2010): an entry with repetition level r goes on with a
 * list of
 * depth r; its definition level says how much of what stands around it is there. */

static enum hd_err bad_row(const struct hd_parquet_rows *rows, const struct hd_parquet_cursor *c,
	const char *what,
	struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INPUT, "%s row %" PRIu64 ": \"%.60s\": %s", rows->file->name, rows->row + 1,
		c->leaf->path, what);
}

static enum hd_err find_leaf(const struct hd_parquet *file, const char *path, struct hd_parquet_cursor *c,
	struct hd_diag *diag)
{
	uint32_t found = file->nleaves;

	for (uint32_t i = 0; i < file->nleaves; i++) {
		if (strcmp(file->leaf[i].path, path) != 0)
			continue;
		if (found < file->nleaves)
			return hd_fail(diag, HD_E_INPUT, "%s: two columns are called \"%.60s\"", file->name,
				path);
		found = i;
	}
	if (found == file->nleaves)
		return hd_fail(diag, HD_E_INPUT, "%s: there is no column \"%.60s\"", file->name, path);
	if (file->leaf[found].refused)
		return hd_fail(diag, HD_E_INPUT, "%s: column \"%.60s\" holds %s, which are not read: leave "
			"it out of "
			"data.columns, or write it otherwise", file->name, path, file->leaf[found].refused);
	*c = (struct hd_parquet_cursor){ .file = file, .leaf = &file->leaf[found], .ileaf = found };
	return HD_OK;
}

enum hd_err hd_parquet_rows_begin(struct hd_parquet_rows *rows, const struct hd_parquet *file,
	const char *const *wanted, uint32_t nwanted, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	assert(nwanted && nwanted <= HD_PARQUET_WANTED);
	*rows = (struct hd_parquet_rows){ .file = file, .nwanted = nwanted };
	rows->cursor = hd_alloc(nwanted * sizeof *rows->cursor);
	if (!rows->cursor)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for %u columns", file->name, nwanted);
	memset(rows->cursor, 0, nwanted * sizeof *rows->cursor);
	for (uint32_t i = 0; i < nwanted && !err; i++)
		err = find_leaf(file, wanted[i], &rows->cursor[i], diag);
	return err;
}

void hd_parquet_rows_finish(struct hd_parquet_rows *rows)
{
	for (uint32_t i = 0; i < rows->nwanted && rows->cursor; i++)
		hd_parquet_cursor_finish(&rows->cursor[i]);
	hd_free(rows->cursor);
	*rows = (struct hd_parquet_rows){ 0 };
}

/* ---- one cell ---- */

static enum hd_err put_text(const struct hd_parquet_rows *rows, struct hd_parquet_cursor *c,
	struct hd_row_cell *cell, struct hd_diag *diag)
{
	const struct hd_parquet_value v = c->value[c->ivalue++];
	enum hd_err err = hd_grow(&c->text, &c->text_cap, (uint64_t)v.len + 1, 1, "bytes of text", diag);

	if (err)
		return err;
	for (size_t at = 0, n; at < v.len; at += n)
		if (!(n = v.as.text[at] < 0x80 ? 1 : hd_utf8_len((const char *)v.as.text + at, v.len - at)))
			return bad_row(rows, c, "bytes that are no UTF-8, so no text", diag);
	if (v.len)
		memcpy(c->text, v.as.text, v.len);
	c->text[v.len] = 0;
	cell->kind = HD_ROW_TEXT;
	cell->text = c->text;
	cell->len = v.len;
	return HD_OK;
}

static bool is_real(const struct hd_parquet_leaf *leaf)
{
	return leaf->type == HD_PARQUET_FLOAT || leaf->type == HD_PARQUET_DOUBLE ||
		leaf->type == HD_PARQUET_FIXED;
}

static void make_real(struct hd_parquet_cursor *c, struct hd_row_cell *cell)
{
	for (uint64_t i = 0; i < c->nnumbers; i++)
		c->number[i].real = (double)c->number[i].whole;
	cell->kind = HD_ROW_REAL;
}

/* A number beyond 63 bits makes the cell one of f64. */
static enum hd_err put_number(struct hd_parquet_cursor *c, struct hd_row_cell *cell, struct hd_diag *diag)
{
	const struct hd_parquet_value v = c->value[c->ivalue++];
	enum hd_err err = hd_grow(&c->number, &c->number_cap, c->nnumbers + 1, sizeof *c->number, "numbers",
		diag);

	if (err)
		return err;
	const bool large = c->leaf->type == HD_PARQUET_INT64 && c->leaf->is_unsigned && v.as.whole < 0;
	if (large && cell->kind == HD_ROW_WHOLE)
		make_real(c, cell);
	if (is_real(c->leaf))
		c->number[c->nnumbers].real = v.as.real;
	else if (cell->kind == HD_ROW_REAL)
		c->number[c->nnumbers].real = large ? (double)(uint64_t)v.as.whole : (double)v.as.whole;
	else
		c->number[c->nnumbers].whole = v.as.whole;
	c->nnumbers++;
	return HD_OK;
}

/* Lists that are open in the row at hand. */
struct open_lists { uint32_t n; int64_t count[HD_ROW_RANK + 1]; };

static bool close_lists(struct open_lists *open, uint32_t down_to, struct hd_row_cell *cell)
{
	for (; open->n > down_to; open->n--) {
		int64_t *dim = &cell->dim[open->n - 1];
		if (*dim >= 0 && *dim != open->count[open->n])
			return false;
		*dim = open->count[open->n];
	}
	return true;
}

/* The entry at hand, in a list of depth `rep`. */
static enum hd_err put_entry(const struct hd_parquet_rows *rows, struct hd_parquet_cursor *c, uint32_t rep,
	struct open_lists *open, struct hd_row_cell *cell, struct hd_diag *diag)
{
	const struct hd_parquet_leaf *leaf = c->leaf;
	const uint32_t def = c->def[c->i++];

	if (rep > open->n || (rep && def < leaf->list_def[rep]))
		return bad_row(rows, c, "levels that no list has", diag);
	if (!close_lists(open, rep, cell))
		return bad_row(rows, c, "lists of several lengths: extents must be regular", diag);
	if (rep)
		open->count[rep]++;
	for (uint32_t d = rep + 1; d <= leaf->max_rep; d++) {
		if (def + 1 < leaf->list_def[d])             /* the list itself is null */
			return d == 1 ? (cell->kind = HD_ROW_NONE, HD_OK) : bad_row(rows, c,
				"null in a list: fill it in",
				diag);
		open->n = d;
		open->count[d] = def >= leaf->list_def[d];
		if (!open->count[d])
			return HD_OK;
	}
	if (def < leaf->max_def)
		return leaf->max_rep ? bad_row(rows, c, "null in a list: fill it in", diag) :
			(cell->kind = HD_ROW_NONE, HD_OK);
	return leaf->type == HD_PARQUET_BYTES ? put_text(rows, c, cell, diag) : put_number(c, cell, diag);
}

/* Is there an entry? A row reaches over pages, not over row groups. */
static enum hd_err more_entries(struct hd_parquet_cursor *c, bool *more, struct hd_diag *diag)
{
	*more = c->i < c->n;
	return *more ? HD_OK : hd_parquet_page_next(c, more, diag);
}

static enum hd_err take_cell(const struct hd_parquet_rows *rows, struct hd_parquet_cursor *c,
	struct hd_row_cell *cell, struct hd_diag *diag)
{
	struct open_lists open = { 0 };
	bool more;
	enum hd_err err = more_entries(c, &more, diag);

	*cell = (struct hd_row_cell){ .kind = is_real(c->leaf) ? HD_ROW_REAL : HD_ROW_WHOLE,
		.rank = c->leaf->max_rep };
	for (uint32_t d = 0; d < HD_ROW_RANK; d++)
		cell->dim[d] = -1;
	c->nnumbers = 0;
	if (err)
		return err;
	if (!more || c->rep[c->i])
		return bad_row(rows, c, more ? "a row begins inside a list" :
			"the column ends before the others", diag);
	err = put_entry(rows, c, 0, &open, cell, diag);
	while (!err && c->leaf->max_rep && !(err = more_entries(c, &more, diag)) && more && c->rep[c->i])
		err = put_entry(rows, c, c->rep[c->i], &open, cell, diag);
	if (!err && !close_lists(&open, 0, cell))
		err = bad_row(rows, c, "lists of several lengths: extents must be regular", diag);
	for (uint32_t d = 0; d < cell->rank; d++)
		cell->dim[d] = cell->dim[d] < 0 ? 0 : cell->dim[d];
	if (cell->kind == HD_ROW_NONE)
		cell->rank = 0;
	cell->n = c->nnumbers;
	cell->number = c->nnumbers ? c->number : NULL;
	return err;
}

/* ---- rows ---- */

static enum hd_err next_group(struct hd_parquet_rows *rows, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	while (!rows->group_left)
		rows->group_left = rows->file->group_rows[rows->group++];
	for (uint32_t i = 0; i < rows->nwanted && !err; i++) {
		struct hd_parquet_cursor *c = &rows->cursor[i];
		if (c->left || c->i < c->n)
			return bad_row(rows, c, "its row group has more values than rows", diag);
		err = hd_parquet_chunk_begin(c, rows->group - 1, diag);
	}
	return err;
}

enum hd_err hd_parquet_next(struct hd_parquet_rows *rows, struct hd_row_cell *cells, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	assert(hd_parquet_more(rows));
	if (!rows->group_left)
		err = next_group(rows, diag);
	for (uint32_t i = 0; i < rows->nwanted && !err; i++)
		err = take_cell(rows, &rows->cursor[i], &cells[i], diag);
	rows->group_left--;
	rows->row++;
	return err;
}
