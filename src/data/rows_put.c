#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "data/rows_cells_int.h"

enum { NO_LABEL = -1, NO_LABEL_TORCH = -100 };

enum hd_err hd_rows_bad(const struct hd_row_set *rows, uint32_t column, const struct hd_row_cell *cell,
	struct hd_row_place place, struct hd_diag *diag, const char *fmt, ...)
{
	char what[300], at[64] = "";
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	if (place.lines && cell && cell->column)
		(void)snprintf(at, sizeof at, ":%" PRIu64, cell->column);
	return hd_fail(diag, HD_E_INPUT, "%s%s%" PRIu64 "%s: \"%.60s\": %s", place.file,
		place.lines ? ":" : " row ", place.row, at, rows->name[column], what);
}

enum hd_err hd_rows_no_value(const struct hd_row_set *rows, uint32_t column, const struct hd_row_cell *cell,
	struct hd_row_place place, struct hd_diag *diag)
{
	return hd_rows_bad(rows, column, cell, place, diag, "no value here: fill it in%s",
		column < rows->ncolumns ? ", or leave it out of data.columns" : "");
}

/* One row on its way into the arrays. */
struct row_put { struct hd_row_set *rows; const struct hd_data_spec *spec; const struct hd_row_cell *cell;
	uint32_t column; struct hd_row_place place; struct hd_diag *diag; };

#define BAD(p, ...) hd_rows_bad((p)->rows, (p)->column, (p)->cell, (p)->place, (p)->diag, __VA_ARGS__)

/* ---- numbers ---- */

static bool same_extents(const struct hd_rows_column *c, const struct hd_row_cell *cell)
{
	return c->rank == cell->rank && c->n == cell->n &&
		!memcmp(c->dim, cell->dim, cell->rank * sizeof *cell->dim);
}

static enum hd_err put_reals(const struct row_put *p, float *out)
{
	const struct hd_row_cell *c = p->cell;

	if (c->kind == HD_ROW_TEXT)
		return BAD(p, "a text where the first row has numbers");
	if (!same_extents(&p->rows->column[p->column], c))
		return BAD(p, "the shape %s, that of the first row is %s", hd_dims_text(c->rank, c->dim).at,
			hd_dims_text(p->rows->column[p->column].rank, p->rows->column[p->column].dim).at);
	for (uint64_t i = 0; i < c->n; i++) {
		const double v = c->kind == HD_ROW_WHOLE ? (double)c->number[i].whole : c->number[i].real;
		if (!isfinite(v) || fabs(v) > (double)FLT_MAX)
			return BAD(p, "%g is not finite, or too large for f32: fill it in", v);
		out[i] = c->kind == HD_ROW_WHOLE ? (float)c->number[i].whole : (float)v;
	}
	return HD_OK;
}

/* ---- tokens: those at hand of a row, all its columns one behind the other ---- */

/* next: the one behind the context; -1 */
struct row_tokens { int32_t *out; uint64_t n; int64_t next; };

static void put_token(const struct row_put *p, struct row_tokens *t, int64_t token)
{
	if (t->n < p->spec->context)
		t->out[t->n] = (int32_t)token;
	else if (t->n == p->spec->context)
		t->next = token;
	t->n++;
}

static enum hd_err check_token(const struct row_put *p, uint64_t i, int64_t token)
{
	const uint32_t bound = hd_token_bound(p->spec);

	if (token < 0 || token > INT32_MAX || (bound && token >= bound))
		return BAD(p, "%s %" PRIu64 " is %" PRId64 ", the model knows tokens from 0 to %" PRId64,
			p->cell->kind == HD_ROW_TEXT ? "byte" : "token", i + 1, token,
			bound ? (int64_t)bound - 1 : (int64_t)INT32_MAX);
	if (p->cell->kind == HD_ROW_TEXT && token == p->spec->pad)
		return BAD(p, "byte %" PRIu64 " is %" PRId64 ", which the model takes for the end of a "
			"text: use "
			"another model.args pad, as 256", i + 1, token);
	return HD_OK;
}

static enum hd_err put_tokens(const struct row_put *p, struct row_tokens *t)
{
	const struct hd_row_cell *c = p->cell;
	const bool text = c->kind == HD_ROW_TEXT;
	enum hd_err err = HD_OK;

	if (text != (p->rows->form == HD_ROWS_TEXT))
		return BAD(p, text ? "a text where the first row has numbers" :
			"numbers where the first row has a text");
	if (c->kind == HD_ROW_REAL)
		return BAD(p, "a number with a fraction is no token");
	if (!text && c->rank != p->rows->column[p->column].rank)
		return BAD(p, "the first row has %s here", c->rank ? "a number" : "a list");
	if (text && p->column)
		put_token(p, t, '\n');
	for (uint64_t i = 0; i < (text ? c->len : c->n) && t->n <= p->spec->context && !err; i++) {
		const int64_t token = text ? (unsigned char)c->text[i] : c->number[i].whole;
		if (!(err = check_token(p, i, token)))
			put_token(p, t, token);
	}
	return err;
}

/* Behind the last: the model's pad, or, where nothing is learned of it, any token. */
static enum hd_err fill_up(const struct row_put *p, struct row_tokens *t, bool next)
{
	int32_t pad = p->spec->pad;

	p->rows->ncut += t->n > p->spec->context;
	if (t->n >= p->spec->context)
		return HD_OK;
	if (pad < 0 && (next || p->rows->texts.mask))
		pad = 0;
	if (pad < 0)
		return BAD(p, "%" PRIu64 " tokens, the model reads %u: name a token to fill it up "
			"(model.args pad: "
			"256, vocab: 257)", t->n, p->spec->context);
	for (uint64_t i = t->n; i < p->spec->context; i++)
		t->out[i] = pad;
	return HD_OK;
}

static void put_next(const struct row_put *p, const struct row_tokens *t, int32_t *out)
{
	for (uint64_t i = 0; i + 1 < p->spec->context; i++)
		out[i] = i + 1 < t->n ? t->out[i + 1] : NO_LABEL;
	out[p->spec->context - 1] = (int32_t)t->next;
}

/* ---- labels ---- */

static enum hd_err put_name(const struct row_put *p, int32_t *out)
{
	const struct hd_data_spec *spec = p->spec;

	for (uint32_t k = 0; k < spec->nclasses; k++)
		if (strlen(spec->class[k]) == p->cell->len && !memcmp(spec->class[k], p->cell->text,
		p->cell->len)) {
			*out = (int32_t)k;
			return HD_OK;
		}
	return spec->nclasses ? BAD(p, "\"%.60s\" is none of data.classes", p->cell->text) :
		BAD(p, "\"%.60s\" is a text: name the classes in data.classes", p->cell->text);
}

static enum hd_err put_label(const struct row_put *p, uint64_t i, bool may_miss, int32_t *out)
{
	const int64_t most = p->spec->classes ? (int64_t)p->spec->classes - 1 : INT32_MAX,
		v = p->cell->number[i].whole;

	*out = (int32_t)v;
	if (v >= 0 && v <= most)
		return HD_OK;
	*out = NO_LABEL;
	return may_miss && (v == NO_LABEL || v == NO_LABEL_TORCH) ? HD_OK :
		BAD(p, "%" PRId64 " is no class: they are 0 to %" PRId64, v, most);
}

static enum hd_err put_labels(const struct row_put *p, int32_t *out)
{
	const struct hd_row_cell *c = p->cell;
	const struct hd_row_set *rows = p->rows;
	const bool each = p->spec->context && rows->nlabels == p->spec->context && !p->spec->one_label;
	enum hd_err err = HD_OK;

	if (c->kind == HD_ROW_TEXT)
		return rows->column[p->column].rank ? BAD(p, "a text where the first row has a list") :
			put_name(p, out);
	if (c->kind == HD_ROW_REAL)
		return BAD(p, "a label is the number of a class, without a fraction; for a loss on numbers "
			"set "
			"model.loss mse");
	if (p->spec->nclasses)
		return BAD(p, "a number, where data.classes names classes");
	if (c->rank != rows->column[p->column].rank || (!each && c->n != rows->nlabels))
		return BAD(p, "the shape %s, that of the first row is %s", hd_dims_text(c->rank, c->dim).at,
			hd_dims_text(rows->column[p->column].rank, rows->column[p->column].dim).at);
	for (uint64_t i = 0; i < rows->nlabels && !err; i++)
		if (i < c->n)
			err = put_label(p, i, c->rank != 0, &out[i]);
		else
			out[i] = NO_LABEL;
	return err;
}

/* ---- a row ---- */

static enum hd_err put_texts(struct row_put *p, const struct hd_row_cell *cells)
{
	struct hd_row_set *rows = p->rows;
	const char *text[2] = { NULL };
	size_t len[2] = { 0 };
	struct hd_diag why = { "" };
	bool cut = false;

	for (p->column = 0; p->column < rows->ncolumns; p->column++) {
		p->cell = &cells[p->column];
		if (p->cell->kind == HD_ROW_NONE)
			return hd_rows_no_value(rows, p->column, p->cell, p->place, p->diag);
		if (p->cell->kind != HD_ROW_TEXT)
			return BAD(p, "numbers where the first row has a text");
		text[p->column] = p->cell->text;
		len[p->column] = p->cell->len;
	}
	p->column = 0;
	p->cell = &cells[0];
	const bool next = rows->nnames == rows->ncolumns;
	enum hd_err err = hd_texts_put(&rows->texts, rows->row, text, len, rows->ncolumns,
		rows->x.token + rows->row * rows->nelems,
		next ? rows->y.label + rows->row * rows->nlabels : NULL, &cut, &why);
	rows->ncut += cut;
	return err == HD_E_INPUT ? BAD(p, "%s", why.text) : err ? hd_fail(p->diag, err, "%s", why.text) :
		HD_OK;
}

static enum hd_err put_x(struct row_put *p, const struct hd_row_cell *cells, struct row_tokens *t)
{
	struct hd_row_set *rows = p->rows;
	float *out = rows->x.number + rows->row * rows->nelems;
	enum hd_err err = HD_OK;

	for (p->column = 0; p->column < rows->ncolumns && !err; p->column++) {
		p->cell = &cells[p->column];
		if (p->cell->kind == HD_ROW_NONE)
			return hd_rows_no_value(rows, p->column, p->cell, p->place, p->diag);
		if (rows->form != HD_ROWS_NUMBERS)
			err = put_tokens(p, t);
		else if (!(err = put_reals(p, out)))
			out += p->cell->n;
	}
	return err;
}

enum hd_err hd_rows_put(struct hd_row_set *rows, const struct hd_data_spec *spec,
	const struct hd_row_cell *cells,
	struct hd_row_place place, struct hd_diag *diag)
{
	struct row_put p = { .rows = rows, .spec = spec, .place = place, .diag = diag };
	const bool labels = rows->nnames > rows->ncolumns;

	assert(rows->row < rows->nrows);
	struct row_tokens t = { .out = rows->x.token + rows->row * rows->nelems, .next = NO_LABEL };
	int32_t *y = rows->y.label + rows->row * rows->nlabels;
	enum hd_err err = rows->texts.tokenizer ? put_texts(&p, cells) : put_x(&p, cells, &t);
	if (err)
		return err;
	p.column = 0;
	p.cell = &cells[0];
	if (rows->texts.tokenizer)
		t.n = spec->context;
	else if (rows->form != HD_ROWS_NUMBERS && (err = fill_up(&p, &t, !spec->one_label &&
		!spec->float_target)))
		return err;
	p.column = rows->ncolumns;
	p.cell = &cells[p.column];
	if (!rows->texts.tokenizer)
		hd_texts_note(&rows->texts, rows->row, t.n < spec->context ? (uint32_t)t.n : spec->context);
	if (!labels && rows->texts.tokenizer)
		err = HD_OK;                      /* put_texts() did */
	else if (!labels)
		put_next(&p, &t, y);
	else if (p.cell->kind == HD_ROW_NONE)
		err = hd_rows_no_value(rows, p.column, p.cell, place, diag);
	else
		err = spec->float_target ? put_reals(&p, rows->y.number + rows->row * rows->nlabels) :
			put_labels(&p, y);
	rows->row += !err;
	return err;
}
