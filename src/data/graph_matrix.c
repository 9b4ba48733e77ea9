#include "data/graph_matrix.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/le.h"
#include "data/graph_lines.h"
#include "data/npy.h"
#include "data/prepared.h"

/* ---- Matrix Market */

static bool word_is(struct hd_graph_lines *l, const char *word)
{
	size_t len = strlen(word);
	struct hd_graph_lines after;

	if (hd_lines_at_end(l) || (size_t)(l->stop - l->at) < len || memcmp(l->at, word, len) != 0)
		return false;
	after = *l;
	after.at += len;
	if (!hd_lines_word_ends(&after, 0))
		return false;
	*l = after;
	return true;
}

static bool one_of(struct hd_graph_lines *l, const char *const *word, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (word_is(l, word[i]))
			return true;
	return false;
}

/* The first line; *both: symmetric. */
static bool take_banner(struct hd_graph_lines *l, bool *both)
{
	static const char *const fields[] = { "pattern", "real", "integer", "double" };

	if (!hd_lines_next(l, 0) || !word_is(l, "%%MatrixMarket") || !word_is(l, "matrix") ||
		!word_is(l, "coordinate") || !one_of(l, fields, sizeof fields / sizeof fields[0]))
		return false;
	*both = word_is(l, "symmetric");
	return (*both || word_is(l, "general")) && hd_lines_at_end(l);
}

static enum hd_err take_entry(struct hd_graph_lines *l, uint64_t nvertices, bool both,
	const struct hd_edge_sink *sink)
{
	uint32_t id[2] = { 0 };
	double value;                     /* not used: it may be beyond a float */

	for (int i = 0; i < 2; i++) {
		if (!hd_lines_number(l, 0, &id[i]) || !id[i])
			return hd_lines_bad(l, "an entry: row and column, from 1");
		if (id[i] > nvertices)
			return hd_fail(l->diag, HD_E_INPUT, "%s:%llu: row or column %u, but the features "
				"are of %llu "
				"vertices", l->name, (unsigned long long)l->line, id[i],
				(unsigned long long)nvertices);
	}
	if (!hd_lines_at_end(l) && (!hd_lines_f64(l, DBL_MAX, &value) || !hd_lines_at_end(l)))
		return hd_lines_bad(l, "an entry: row, column and at most one value");
	return sink->edge(sink->user, id[0] - 1, id[1] - 1, both, l->diag);
}

enum hd_err hd_edge_mtx(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	const struct hd_edge_sink *sink, struct hd_diag *diag)
{
	struct hd_graph_lines l = hd_lines_begin(bytes, len, name, diag);
	uint32_t rows = 0, columns = 0, want = 0, n = 0;
	bool both = false;
	enum hd_err err = HD_OK;

	if (!take_banner(&l, &both))
		return hd_lines_bad(&l, "\"%%MatrixMarket matrix coordinate pattern|real|integer "
			"general|symmetric\"");
	if (!hd_lines_next(&l, '%') || !hd_lines_number(&l, 0, &rows) || !hd_lines_number(&l, 0, &columns) ||
		!hd_lines_number(&l, 0, &want) || !hd_lines_at_end(&l))
		return hd_lines_bad(&l, "rows, columns and how many entries");
	if (rows != nvertices || columns != nvertices)
		return hd_fail(diag, HD_E_INPUT, "%s:%llu: a matrix of %u rows and %u columns, the "
			"features are of "
			"%llu vertices", name, (unsigned long long)l.line, rows, columns,
			(unsigned long long)nvertices);
	for (; !err && hd_lines_next(&l, '%'); n++)
		err = n < want ? take_entry(&l, nvertices, both, sink) : hd_lines_bad(&l, "no more entries "
			"than "
			"the head says");
	if (!err && n != want)
		err = hd_fail(diag, HD_E_INPUT, "%s has %u entries, its head says %u: it is cut off", name, n,
			want);
	return err;
}

/* ---- NumPy */

static bool whole(const struct hd_npy *npy)
{
	return npy->dtype == HD_I32 || npy->dtype == HD_I64 || npy->dtype == HD_U8;
}

static int64_t whole_at(const struct hd_npy *npy, uint64_t i)
{
	if (npy->dtype == HD_U8)
		return npy->at[i];
	return npy->dtype == HD_I32 ? (int32_t)hd_get32(npy->at + 4 * i) : (int64_t)hd_get64(npy->at + 8 * i);
}

static float number_at(const struct hd_npy *npy, uint64_t i)
{
	uint32_t word;
	uint64_t wide;
	float f32;
	double f64;

	if (whole(npy))
		return (float)whole_at(npy, i);
	if (npy->dtype == HD_F32) {
		word = hd_get32(npy->at + 4 * i);
		memcpy(&f32, &word, sizeof f32);
		return f32;
	}
	wide = hd_get64(npy->at + 8 * i);
	memcpy(&f64, &wide, sizeof f64);
	return fabs(f64) <= 0x1.fffffep127 ? (float)f64 : INFINITY;
}

enum hd_err hd_edge_npy(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	const struct hd_edge_sink *sink, struct hd_diag *diag)
{
	struct hd_npy npy;
	enum hd_err err = hd_npy_parse(bytes, len, name, &npy, diag);

	if (err)
		return err;
	if (!whole(&npy) || npy.rank != 2 || (npy.dim[0] != 2 && npy.dim[1] != 2))
		return hd_fail(diag, HD_E_INPUT, "%s: edges are integers of shape [2, edges] or [edges, 2]",
			name);
	bool rows = npy.dim[0] == 2;
	uint64_t n = (uint64_t)npy.dim[rows ? 1 : 0];
	for (uint64_t e = 0; e < n && !err; e++) {
		int64_t from = whole_at(&npy, rows ? e : 2 * e), to = whole_at(&npy, rows ? n + e : 2 * e +
			1);
		if (from < 0 || to < 0 || (uint64_t)from >= nvertices || (uint64_t)to >= nvertices)
			return hd_fail(diag, HD_E_INPUT, "%s: edge %llu, from %lld to %lld, but the "
				"features are of %llu "
				"vertices", name, (unsigned long long)e, (long long)from, (long long)to,
				(unsigned long long)nvertices);
		err = sink->edge(sink->user, (uint32_t)from, (uint32_t)to, false, diag);
	}
	return err;
}

enum hd_err hd_edge_pairs(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	const struct hd_edge_sink *sink, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	if (len % 8)
		return hd_fail(diag, HD_E_INPUT, "%s has %zu bytes: an edge is two numbers of 4", name, len);
	for (size_t at = 0; at < len && !err; at += 8) {
		uint32_t from = hd_get32(bytes + at), to = hd_get32(bytes + at + 4);
		if (from >= nvertices || to >= nvertices)
			return hd_fail(diag, HD_E_INPUT, "%s: edge %zu, from %u to %u, but the features "
				"are of %llu "
				"vertices", name, at / 8, from, to, (unsigned long long)nvertices);
		err = sink->edge(sink->user, from, to, false, diag);
	}
	return err;
}

static enum hd_err read_dense(const struct hd_npy *npy, const char *name, const struct hd_vertex_sink *sink,
	float *value, struct hd_diag *diag)
{
	uint64_t n = (uint64_t)npy->dim[0], width = (uint64_t)npy->dim[1];
	enum hd_err err = HD_OK;

	for (uint64_t v = 0; v < n && !err; v++) {
		struct hd_vertex_row row = { .vertex = v, .label = -1, .n = (uint32_t)width, .value = value };
		for (uint64_t c = 0; c < width; c++)
			if (!isfinite(value[c] = number_at(npy, v * width + c)))
				return hd_fail(diag, HD_E_INPUT, "%s: feature %llu of vertex %llu is not "
					"finite", name,
					(unsigned long long)c, (unsigned long long)v);
		err = sink->row(sink->user, &row, diag);
	}
	return err;
}

enum hd_err hd_vertex_npy(const uint8_t *bytes, size_t len, const char *name,
	const struct hd_vertex_sink *sink, struct hd_diag *diag)
{
	struct hd_npy npy;
	enum hd_err err = hd_npy_parse(bytes, len, name, &npy, diag);

	if (err)
		return err;
	if (npy.rank != 2 || !npy.nelems || npy.dim[0] > HD_VERTICES_CAP || npy.dim[1] > HD_COLUMNS_CAP)
		return hd_fail(diag, HD_E_INPUT, "%s: features are numbers of shape [vertices, width], of "
			"at most %d "
			"vertices and a width of %d", name, HD_VERTICES_CAP, HD_COLUMNS_CAP);
	float *value = hd_alloc((size_t)npy.dim[1] * sizeof *value);
	err = value ? read_dense(&npy, name, sink, value, diag) : hd_fail(diag, HD_E_NOMEM,
		"no memory for %lld features", (long long)npy.dim[1]);
	hd_free(value);
	return err;
}

enum hd_err hd_label_npy(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	int32_t *label, struct hd_diag *diag)
{
	struct hd_npy npy;
	enum hd_err err = hd_npy_parse(bytes, len, name, &npy, diag);

	if (err)
		return err;
	if (!whole(&npy) || npy.nelems != nvertices)
		return hd_fail(diag, HD_E_INPUT, "%s: labels are as many integers as there are vertices "
			"(%llu)", name,
			(unsigned long long)nvertices);
	for (uint64_t v = 0; v < nvertices; v++) {
		int64_t one = whole_at(&npy, v);
		if (one < -1 || one >= HD_PREPARED_CLASSES_CAP)
			return hd_fail(diag, HD_E_INPUT, "%s: label %lld of vertex %llu: labels are -1 for "
				"none, or "
				"classes from 0, below %d", name, (long long)one, (unsigned long long)v,
				HD_PREPARED_CLASSES_CAP);
		label[v] = (int32_t)one;
	}
	return HD_OK;
}

/* ---- a table */

struct table_row { float *value; uint32_t cap, n; };

static enum hd_err take_values(struct hd_graph_lines *l, struct table_row *room)
{
	enum hd_err err = HD_OK;

	for (room->n = 0; !err && !hd_lines_at_end(l); room->n++) {
		err = hd_grow(&room->value, &room->cap, (uint64_t)room->n + 1, sizeof *room->value,
			"features of a vertex", l->diag);
		if (!err && (room->n == HD_COLUMNS_CAP || !hd_lines_value(l, &room->value[room->n])))
			err = hd_lines_bad(l, "finite numbers between commas");
	}
	return err;
}

enum hd_err hd_vertex_csv(const uint8_t *bytes, size_t len, const char *name,
	const struct hd_vertex_sink *sink, struct hd_diag *diag)
{
	struct hd_graph_lines l = hd_lines_begin(bytes, len, name, diag);
	struct table_row room = { 0 };
	uint32_t width = 0;
	enum hd_err err = HD_OK;

	while (!err && hd_lines_next(&l, 0)) {
		struct hd_vertex_row row = { .vertex = l.line - 1, .label = -1 };
		err = take_values(&l, &room);
		width = l.line == 1 ? room.n : width;
		if (!err && (!room.n || room.n != width || row.vertex >= HD_VERTICES_CAP))
			err = hd_fail(diag, HD_E_INPUT, "%s:%llu: %u numbers; each line has as many as the "
				"first (%u), "
				"and there are at most %d", name, (unsigned long long)l.line, room.n, width,
				HD_VERTICES_CAP);
		row.n = room.n;
		row.value = room.value;
		if (!err)
			err = sink->row(sink->user, &row, diag);
	}
	hd_free(room.value);
	return err;
}
