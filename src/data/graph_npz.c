#include "data/graph_npz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/grow.h"
#include "base/le.h"
#include "data/npy.h"
#include "data/zip.h"

enum { UNPACKED_SHIFT = 36, FORMAT = 3 };

/* A sparse matrix: the arrays of its format. */
struct sparse {
	const char *name;
	struct hd_diag *diag;
	struct hd_arena arena;
	char format[FORMAT + 1];
	struct hd_npy start, index, row, value;   /* csr, csc: start and index; coo: row and index */
	uint64_t nrows, ncolumns;
};

static enum hd_err refused(const struct sparse *s, const char *why)
{
	return hd_fail(s->diag, HD_E_INPUT, "%s is no sparse matrix as scipy.sparse.save_npz() writes it: %s",
		s->name, why);
}

static enum hd_err member(struct sparse *s, const uint8_t *bytes, size_t len, const char *name,
	struct hd_zip_member *found)
{
	enum hd_err err = hd_zip_find(bytes, len, s->name, name, (size_t)1 << UNPACKED_SHIFT, &s->arena,
		found,
		s->diag);

	return err == HD_E_NOTFOUND ? hd_fail(s->diag, HD_E_INPUT, "%s is no sparse matrix as "
		"scipy.sparse.save_npz() writes it: it has no %s", s->name, name) : err;
}

static enum hd_err array(struct sparse *s, const uint8_t *bytes, size_t len, const char *name,
	struct hd_npy *npy)
{
	struct hd_zip_member found = { 0 };
	enum hd_err err = member(s, bytes, len, name, &found);

	return err ? err : hd_npy_parse(found.bytes, found.len, s->name, npy, s->diag);
}

static bool whole(const struct hd_npy *npy) { return npy->dtype == HD_I32 || npy->dtype == HD_I64; }

/* Negative ones become too large. */
static uint64_t whole_at(const struct hd_npy *npy, uint64_t i)
{
	return npy->dtype == HD_I32 ? (uint64_t)(int32_t)hd_get32(npy->at + 4 * i) : hd_get64(npy->at +
		8 * i);
}

static float value_at(const struct hd_npy *npy, uint64_t i)
{
	uint32_t word;
	uint64_t wide;
	float f32;
	double f64;

	if (npy->dtype == HD_U8)
		return npy->at[i];
	if (whole(npy))
		return (float)(int64_t)whole_at(npy, i);
	if (npy->dtype == HD_F32) {
		word = hd_get32(npy->at + 4 * i);
		memcpy(&f32, &word, sizeof f32);
		return f32;
	}
	wide = hd_get64(npy->at + 8 * i);
	memcpy(&f64, &wide, sizeof f64);
	return fabs(f64) <= 0x1.fffffep127 ? (float)f64 : INFINITY;
}

/* Bounds of rows (of csc: columns) rise from 0 to the number of entries. */
static enum hd_err check_start(const struct sparse *s, uint64_t n)
{
	if (s->start.nelems != n + 1 || whole_at(&s->start, 0) != 0 ||
		whole_at(&s->start, n) != s->index.nelems)
		return refused(s, "indptr does not fit the shape and the indices");
	for (uint64_t i = 0; i < n; i++)
		if (whole_at(&s->start, i) > whole_at(&s->start, i + 1))
			return refused(s, "indptr falls");
	return HD_OK;
}

static enum hd_err open_sparse(struct sparse *s, const uint8_t *bytes, size_t len)
{
	struct hd_zip_member format = { 0 };
	struct hd_npy shape;
	enum hd_err err = member(s, bytes, len, "format.npy", &format);

	if (err)
		return err;
	/* a text of three letters, whose array has no other bytes */
	if (format.len < FORMAT)
		return refused(s, "its format cannot be read");
	memcpy(s->format, format.bytes + format.len - FORMAT, FORMAT);
	bool coo = !strcmp(s->format, "coo"), csc = !strcmp(s->format, "csc");
	if (!coo && !csc && strcmp(s->format, "csr") != 0)
		return refused(s, "formats are csr, csc and coo: convert with tocsr()");
	if ((err = array(s, bytes, len, "shape.npy", &shape)) ||
		(err = array(s, bytes, len, coo ? "col.npy" : "indices.npy", &s->index)) ||
		(err = array(s, bytes, len, coo ? "row.npy" : "indptr.npy", coo ? &s->row : &s->start)))
		return err;
	if (!whole(&shape) || shape.nelems != 2 || !whole(&s->index) || !whole(coo ? &s->row : &s->start))
		return refused(s, "shape or indices are no integers");
	s->nrows = whole_at(&shape, 0);
	s->ncolumns = whole_at(&shape, 1);
	if (s->nrows > HD_VERTICES_CAP || s->ncolumns > HD_VERTICES_CAP)
		return refused(s, "its shape is too large");
	if (coo)
		return s->row.nelems == s->index.nelems ? HD_OK : refused(s, "row and col differ in length");
	return check_start(s, csc ? s->ncolumns : s->nrows);
}

static enum hd_err far_end(const struct sparse *s, const struct hd_npy *npy, uint64_t e, uint64_t bound,
	uint32_t *to)
{
	uint64_t v = whole_at(npy, e);

	if (v >= bound)
		return hd_fail(s->diag, HD_E_INPUT, "%s: index %lld of entry %llu is not below %llu", s->name,
			(long long)v, (unsigned long long)e, (unsigned long long)bound);
	*to = (uint32_t)v;
	return HD_OK;
}

static enum hd_err each_edge(const struct sparse *s, const struct hd_edge_sink *sink)
{
	bool coo = s->row.at, csc = !strcmp(s->format, "csc");
	uint32_t from = 0, to = 0;
	uint64_t row = 0;
	enum hd_err err = HD_OK;

	for (uint64_t e = 0; e < s->index.nelems && !err; e++) {
		while (!coo && whole_at(&s->start, row + 1) <= e)
			row++;
		from = (uint32_t)row;
		if (coo)
			err = far_end(s, &s->row, e, s->nrows, &from);
		if (!err)
			err = far_end(s, &s->index, e, s->nrows, &to);
		if (!err)
			err = sink->edge(sink->user, csc ? to : from, csc ? from : to, false, s->diag);
	}
	return err;
}

enum hd_err hd_edge_npz(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	const struct hd_edge_sink *sink, struct hd_diag *diag)
{
	struct sparse s = { .name = name, .diag = diag };
	enum hd_err err;

	hd_arena_init(&s.arena, 0);
	err = open_sparse(&s, bytes, len);
	if (!err && (s.nrows != nvertices || s.ncolumns != nvertices))
		err = hd_fail(diag, HD_E_INPUT, "%s: a matrix of %llu rows and %llu columns, the features "
			"are of %llu "
			"vertices", name, (unsigned long long)s.nrows, (unsigned long long)s.ncolumns,
			(unsigned long long)nvertices);
	if (!err)
		err = each_edge(&s, sink);
	hd_arena_finish(&s.arena);
	return err;
}

/* ---- features */

struct npz_entry { uint32_t column; float value; };

static int by_column(const void *a, const void *b)
{
	const struct npz_entry *x = a, *y = b;

	return x->column < y->column ? -1 : x->column > y->column;
}

struct npz_row { struct npz_entry *entry; uint32_t *column; float *value; uint32_t caps[3]; };

static enum hd_err make_room(struct npz_row *r, uint64_t n, struct hd_diag *diag)
{
	enum hd_err err = hd_grow(&r->entry, &r->caps[0], n + 1, sizeof *r->entry, "features of a vertex",
		diag);

	if (!err)
		err = hd_grow(&r->column, &r->caps[1], n + 1, sizeof *r->column, "features of a vertex",
			diag);
	return err ? err : hd_grow(&r->value, &r->caps[2], n + 1, sizeof *r->value, "features of a vertex",
		diag);
}

static enum hd_err take_vertex(const struct sparse *s, uint64_t v, struct npz_row *r,
	const struct hd_vertex_sink *sink)
{
	uint64_t first = whole_at(&s->start, v), n = whole_at(&s->start, v + 1) - first;
	enum hd_err err = make_room(r, n, s->diag);

	for (uint64_t i = 0; i < n && !err; i++) {
		err = far_end(s, &s->index, first + i, s->ncolumns, &r->entry[i].column);
		r->entry[i].value = value_at(&s->value, first + i);
	}
	if (err)
		return err;
	qsort(r->entry, n, sizeof *r->entry, by_column);
	for (uint64_t i = 0; i < n; i++) {
		if (!isfinite(r->entry[i].value) || (i && r->entry[i].column == r->entry[i - 1].column))
			return hd_fail(s->diag, HD_E_INPUT, "%s: column %u of row %llu stands twice or is "
				"not finite",
				s->name, r->entry[i].column, (unsigned long long)v);
		r->column[i] = r->entry[i].column;
		r->value[i] = r->entry[i].value;
	}
	struct hd_vertex_row row = { v, -1, (uint32_t)s->ncolumns, (uint32_t)n, r->column, r->value };
	return sink->row(sink->user, &row, s->diag);
}

enum hd_err hd_vertex_npz(const uint8_t *bytes, size_t len, const char *name,
	const struct hd_vertex_sink *sink, struct hd_diag *diag)
{
	struct sparse s = { .name = name, .diag = diag };
	struct npz_row row = { 0 };
	enum hd_err err;

	hd_arena_init(&s.arena, 0);
	err = open_sparse(&s, bytes, len);
	if (!err && strcmp(s.format, "csr") != 0)
		err = refused(&s, "features are csr: convert with tocsr()");
	if (!err)
		err = array(&s, bytes, len, "data.npy", &s.value);
	if (!err && (s.value.nelems != s.index.nelems || s.ncolumns > HD_COLUMNS_CAP))
		err = refused(&s, "it has not as many values as indices, or too many columns");
	for (uint64_t v = 0; !err && v < s.nrows; v++)
		err = take_vertex(&s, v, &row, sink);
	hd_free(row.entry);
	hd_free(row.column);
	hd_free(row.value);
	hd_arena_finish(&s.arena);
	return err;
}
