#include "data/rows_int.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/near.h"
#include "data/rows_cells_int.h"

/* ---- names ---- */

/* The first part of a path is what the file must have. */
static bool has_name(const char *const *names, uint32_t n, const char *path)
{
	const size_t first = strcspn(path, ".");

	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(names[i], path) || (strlen(names[i]) == first && !memcmp(names[i], path, first)))
			return true;
	return false;
}

static enum hd_err check_name(const char *const *names, uint32_t n, const char *path, const char *key,
	const char *file, struct hd_diag *diag)
{
	struct hd_near near = hd_near_to(path);

	if (has_name(names, n, path))
		return HD_OK;
	for (uint32_t i = 0; i < n; i++)
		hd_near_offer(&near, names[i]);
	return hd_fail(diag, HD_E_INPUT, "%s: there is no \"%.60s\", which %s names%s%s%s", file, path, key,
		near.best ? "; did you mean " : "", near.best ? near.best : "", near.best ? "?" : "");
}

/* A token's label is the one behind it, where no other is named. */
static bool learns_next(const struct hd_data_spec *spec)
{
	return spec->context && !spec->one_label && !spec->float_target;
}

static const char *find_label(const struct hd_data_spec *spec, const char *const *names, uint32_t n)
{
	if (spec->label || learns_next(spec))
		return spec->label;
	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(names[i], "label"))
			return names[i];
	return n ? names[n - 1] : NULL;
}

/* `by_job`: it stands in the job, else in the file alone. */
static enum hd_err add_name(struct hd_row_set *rows, const char *name, bool by_job, const char *file,
	struct hd_diag *diag)
{
	for (uint32_t i = 0; i < rows->nnames; i++)
		if (!strcmp(rows->name[i], name))
			return by_job ? hd_fail(diag, HD_E_INVAL,
				"data.columns, data.label: \"%.60s\" is named twice", name) :
				hd_fail(diag, HD_E_INPUT, "%s: two columns are called \"%.60s\"", file, name);
	if (rows->nnames == HD_ROWS_COLUMNS)
		return hd_fail(diag, HD_E_INPUT, "%s: more than %d columns: name those of use in "
			"data.columns, or "
			"make a list of them", file, HD_ROWS_COLUMNS - 1);
	rows->name[rows->nnames] = hd_arena_text(&rows->reader.arena, name, strlen(name));
	return rows->name[rows->nnames++] ? HD_OK : hd_fail(diag, HD_E_NOMEM,
		"%s: no memory for the names of its "
		"columns", file);
}

static enum hd_err check_wishes(const struct hd_data_spec *spec, struct hd_diag *diag)
{
	if (spec->float_target && spec->nclasses)
		return hd_fail(diag, HD_E_INVAL,
			"data.classes names classes, the loss wants numbers: leave it out, or use "
			"model.loss cross-entropy");
	if (spec->classes && spec->nclasses > spec->classes)
		return hd_fail(diag, HD_E_INVAL, "data.classes has %u names, the model %u classes",
			spec->nclasses, spec->classes);
	return HD_OK;
}

enum hd_err hd_rows_names(struct hd_row_set *rows, const struct hd_data_spec *spec, const char *const *names,
	uint32_t n, const char *file, struct hd_diag *diag)
{
	const char *label = find_label(spec, names, n);
	enum hd_err err = check_wishes(spec, diag);

	for (uint32_t i = 0; i < spec->ncolumns && !err; i++)
		if (!(err = check_name(names, n, spec->column[i], "data.columns", file, diag)))
			err = add_name(rows, spec->column[i], true, file, diag);
	for (uint32_t i = 0; i < n && !spec->ncolumns && !err; i++)
		if (!label || strcmp(names[i], label) != 0)
			err = add_name(rows, names[i], false, file, diag);
	rows->ncolumns = rows->nnames;
	if (!err && !rows->ncolumns)
		err = hd_fail(diag, HD_E_INPUT, "%s has nothing but the label", file);
	if (!err && label && !(err = check_name(names, n, label, "data.label", file, diag)))
		err = add_name(rows, label, true, file, diag);
	return err;
}

/* ---- the first row: what samples are ---- */

static enum hd_err note_columns(struct hd_row_set *rows, const struct hd_row_cell *cells,
	struct hd_row_place place, struct hd_diag *diag)
{
	rows->column = hd_arena_take(&rows->reader.arena, rows->nnames, sizeof *rows->column);
	if (!rows->column)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u columns", rows->nnames);
	for (uint32_t i = 0; i < rows->nnames; i++) {
		if (cells[i].kind == HD_ROW_NONE)
			return hd_rows_no_value(rows, i, &cells[i], place, diag);
		rows->column[i] = (struct hd_rows_column){ .text = cells[i].kind == HD_ROW_TEXT,
			.rank = cells[i].rank, .n = cells[i].n };
		memcpy(rows->column[i].dim, cells[i].dim, sizeof cells[i].dim);
	}
	return HD_OK;
}

static enum hd_err add_numbers(struct hd_row_set *rows, const struct hd_data_spec *spec,
	const struct hd_row_cell *cells, struct hd_row_place place, struct hd_diag *diag)
{
	const struct hd_rows_column *only = &rows->column[0];
	uint64_t n = 0;

	for (uint32_t i = 0; i < rows->ncolumns; i++) {
		if (rows->column[i].text)
			return hd_rows_bad(rows, i, &cells[i], place, diag,
				"a text, and the model reads numbers: "
				"name other data.columns, or use a model of tokens");
		n += rows->column[i].n;
	}
	const int64_t flat = (int64_t)n;
	rows->nelems = n;
	if (rows->ncolumns == 1 && only->rank)
		return hd_field_add_x(&rows->reader, spec, HD_F32, only->rank, only->dim, place.file, diag);
	return hd_field_add_x(&rows->reader, spec, HD_F32, 1, &flat, place.file, diag);
}

static enum hd_err add_tokens(struct hd_row_set *rows, const struct hd_data_spec *spec,
	const struct hd_row_cell *cells, struct hd_row_place place, struct hd_diag *diag)
{
	const int64_t context = spec->context;
	bool lists = false;

	rows->form = rows->column[0].text ? HD_ROWS_TEXT : HD_ROWS_TOKENS;
	for (uint32_t i = 0; i < rows->ncolumns; i++) {
		if (rows->column[i].text != rows->column[0].text)
			return hd_rows_bad(rows, i, &cells[i], place, diag,
				"texts and numbers cannot be tokens of one "
				"sample: name other data.columns");
		if (rows->column[i].rank > 1)
			return hd_rows_bad(rows, i, &cells[i], place, diag, "lists in a list are no tokens");
		lists = lists || rows->column[i].rank;
	}
	if (rows->form == HD_ROWS_TOKENS && !lists && rows->ncolumns != spec->context)
		return hd_fail(diag, HD_E_INPUT, "%s has %u numbers for \"x\", the model reads %u tokens: "
			"let "
			"data.columns name a text, a list of tokens, or %u numbers", place.file,
			rows->ncolumns,
			spec->context, spec->context);
	rows->nelems = spec->context;
	if (spec->tokenizer && (rows->form != HD_ROWS_TEXT || rows->ncolumns > 2))
		return hd_rows_bad(rows, 0, &cells[0], place, diag,
			"data.tokenizer takes one text, or two: name them in data.columns");
	if (spec->tokenizer && learns_next(spec) && rows->nnames > rows->ncolumns)
		return hd_rows_bad(rows, rows->ncolumns, &cells[0], place, diag,
			"with data.tokenizer the label of a token is the next one: leave data.label out");
	enum hd_err err = hd_texts_open(&rows->texts, &rows->reader, spec, diag);
	return err ? err : hd_field_add(&rows->reader, "x", HD_I32, 1, &context, diag);
}

static enum hd_err add_target(struct hd_row_set *rows, const struct hd_data_spec *spec,
	const struct hd_row_cell *cell, struct hd_row_place place, struct hd_diag *diag)
{
	const struct hd_rows_column *c = &rows->column[rows->ncolumns];
	const int64_t flat = (int64_t)c->n;

	if (c->text)
		return hd_rows_bad(rows, rows->ncolumns, cell, place, diag,
			"a text, and the loss wants numbers");
	if (spec->classes && c->n != spec->classes)
		return hd_rows_bad(rows, rows->ncolumns, cell, place, diag,
			"%" PRIu64 " number%s, the model gives "
			"%u: change model.args or data.label", c->n, c->n == 1 ? "" : "s", spec->classes);
	rows->nlabels = c->n;
	return hd_field_add(&rows->reader, "y", HD_F32, c->rank ? c->rank : 1, c->rank ? c->dim : &flat,
		diag);
}

static enum hd_err add_labels(struct hd_row_set *rows, const struct hd_data_spec *spec,
	const struct hd_row_cell *cell, struct hd_row_place place, struct hd_diag *diag)
{
	const struct hd_rows_column *c = rows->nnames > rows->ncolumns ? &rows->column[rows->ncolumns] : NULL;
	const int64_t context = spec->context;

	if (spec->float_target)
		return add_target(rows, spec, cell, place, diag);
	rows->nlabels = 1;
	if (learns_next(spec)) {
		rows->nlabels = spec->context;
		if (c && c->rank != 1)
			return hd_rows_bad(rows, rows->ncolumns, cell, place, diag,
				"the model learns a label for each "
				"token: this must be a list of them");
		return hd_field_add(&rows->reader, "y", HD_I32, 1, &context, diag);
	}
	if (!c->rank)
		return hd_field_add(&rows->reader, "y", HD_I32, 0, NULL, diag);
	rows->nlabels = c->n;
	return hd_field_add(&rows->reader, "y", HD_I32, c->rank, c->dim, diag);
}

static enum hd_err take_memory(struct hd_row_set *rows, struct hd_diag *diag)
{
	struct hd_arena *arena = &rows->reader.arena;
	uint64_t nx = 0, ny = 0;

	if (hd_mul_u64(rows->nrows, rows->nelems, &nx) && hd_mul_u64(rows->nrows, rows->nlabels, &ny)) {
		rows->x.at = hd_arena_take(arena, nx, sizeof *rows->x.number);
		rows->y.at = hd_arena_take(arena, ny, sizeof *rows->y.number);
	}
	if (!rows->x.at || !rows->y.at)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %" PRIu64 " samples of %" PRIu64 " numbers",
			rows->nrows, rows->nelems + rows->nlabels);
	rows->reader.set.table_bytes += (nx + ny) * sizeof *rows->x.number;
	return HD_OK;
}

enum hd_err hd_rows_begin(struct hd_row_set *rows, const struct hd_data_spec *spec,
	const struct hd_row_cell *first, struct hd_row_place place, uint64_t nrows, struct hd_diag *diag)
{
	enum hd_err err = note_columns(rows, first, place, diag);

	assert(nrows && rows->nnames >= rows->ncolumns && rows->ncolumns);
	rows->nrows = nrows;
	rows->row = 0;
	if (!err)
		err = spec->context ? add_tokens(rows, spec, first, place, diag) :
			add_numbers(rows, spec, first, place, diag);
	if (!err)
		err = add_labels(rows, spec, rows->nnames > rows->ncolumns ? &first[rows->ncolumns] : NULL,
			place,
			diag);
	if (!err && spec->context)
		err = hd_texts_fields(&rows->texts, &rows->reader, spec, nrows, diag);
	return err ? err : take_memory(rows, diag);
}

/* ---- the set ---- */

enum hd_err hd_rows_end(struct hd_row_set *rows, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct hd_reader *reader = &rows->reader;
	char cut[64] = "";

	assert(rows->row == rows->nrows);
	hd_texts_finish(&rows->texts);
	reader->set.count = rows->nrows;
	reader->set.hash = hd_sources_hash(reader);
	if (rows->ncut)
		(void)snprintf(cut, sizeof cut, ", %" PRIu64 " of them cut at %u tokens", rows->ncut,
		spec->context);
	hd_reader_about(reader, "%" PRIu64 " rows of %u column%s%s, %s", rows->nrows, rows->ncolumns,
		rows->ncolumns == 1 ? "" : "s", cut, spec->path);
	return hd_split_hashed(reader, spec, rows->nrows, diag);
}

void hd_rows_destroy(struct hd_dataset *set)
{
	if (set)
		hd_texts_finish(&((struct hd_row_set *)set)->texts);
	hd_reader_destroy(set);
}

enum hd_err hd_rows_read(const struct hd_dataset *set, uint32_t split, uint64_t index, void *const *out,
	struct hd_diag *diag)
{
	const struct hd_row_set *rows = (const struct hd_row_set *)set;
	const uint64_t id = hd_split_id(&rows->reader, split, index);

	(void)diag;
	memcpy(out[0], rows->x.number + id * rows->nelems, rows->nelems * sizeof *rows->x.number);
	memcpy(out[1], rows->y.number + id * rows->nlabels, rows->nlabels * sizeof *rows->y.number);
	hd_texts_read(&rows->texts, id, out);
	return HD_OK;
}
