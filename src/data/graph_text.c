#include "data/graph_text.h"

#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "data/graph_lines.h"
#include "data/prepared.h"

enum hd_err hd_edge_text(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	const struct hd_edge_sink *sink, struct hd_diag *diag)
{
	static const char want[] = "two ids: \"from to\"";
	struct hd_graph_lines l = hd_lines_begin(bytes, len, name, diag);
	enum hd_err err = HD_OK;

	while (!err && hd_lines_next(&l, '#')) {
		uint32_t from = 0, to = 0;
		err = hd_lines_id(&l, nvertices, want, &from);
		if (!err)
			err = hd_lines_id(&l, nvertices, want, &to);
		if (!err && !hd_lines_at_end(&l))
			err = hd_lines_bad(&l, "two ids and no more: weights of edges are not read");
		if (!err)
			err = sink->edge(sink->user, from, to, false, diag);
	}
	return err;
}

/* ---- vertices */

static bool take_label(struct hd_graph_lines *l, int32_t *label)
{
	uint32_t v = 0;

	if (hd_lines_at_end(l))
		return false;
	if (l->stop - l->at >= 2 && l->at[0] == '-' && l->at[1] == '1') {
		l->at += 2;
		*label = -1;
		return hd_lines_word_ends(l, 0);
	}
	if (!hd_lines_number(l, 0, &v) || v >= HD_PREPARED_CLASSES_CAP)
		return false;
	*label = (int32_t)v;
	return true;
}

/* The features of a line, in lists that grow. */
struct row_room { uint32_t *column, columns_cap; float *value; uint32_t values_cap, n; };

static enum hd_err take_feature(struct hd_graph_lines *l, struct row_room *room)
{
	uint32_t n = room->n, column = 0;
	float value = 0;
	enum hd_err err = hd_grow(&room->column, &room->columns_cap, (uint64_t)n + 1, sizeof *room->column,
		"features of a vertex", l->diag);

	if (!err)
		err = hd_grow(&room->value, &room->values_cap, (uint64_t)n + 1, sizeof *room->value,
			"features of a vertex", l->diag);
	if (err)
		return err;
	if (!hd_lines_number(l, ':', &column) || l->at == l->stop || *l->at++ != ':' || !hd_lines_value(l,
		&value))
		return hd_lines_bad(l, "\"label column:value ...\" with finite values");
	if (column >= HD_COLUMNS_CAP)
		return hd_fail(l->diag, HD_E_INPUT, "%s:%llu: column %u of features; the most are %d",
			l->name,
			(unsigned long long)l->line, column, HD_COLUMNS_CAP);
	if (n && column <= room->column[n - 1])
		return hd_fail(l->diag, HD_E_INPUT, "%s:%llu: column %u after column %u: columns ascend",
			l->name,
			(unsigned long long)l->line, column, room->column[n - 1]);
	room->column[n] = column;
	room->value[n] = value;
	room->n++;
	return HD_OK;
}

static enum hd_err take_row(struct hd_graph_lines *l, struct row_room *room,
	const struct hd_vertex_sink *sink)
{
	struct hd_vertex_row row = { .vertex = l->line - 1 };
	enum hd_err err = HD_OK;

	room->n = 0;
	if (row.vertex >= HD_VERTICES_CAP)
		return hd_fail(l->diag, HD_E_INPUT, "%s has more than %d vertices", l->name, HD_VERTICES_CAP);
	if (!take_label(l, &row.label))
		return hd_lines_bad(l, "a label first: -1 for none, or a class from 0");
	while (!err && !hd_lines_at_end(l))
		err = take_feature(l, room);
	row.n = room->n;
	row.column = room->column;
	row.value = room->value;
	return err ? err : sink->row(sink->user, &row, l->diag);
}

enum hd_err hd_vertex_text(const uint8_t *bytes, size_t len, const char *name,
	const struct hd_vertex_sink *sink, struct hd_diag *diag)
{
	struct hd_graph_lines l = hd_lines_begin(bytes, len, name, diag);
	struct row_room room = { 0 };
	enum hd_err err = HD_OK;

	while (!err && hd_lines_next(&l, 0))
		err = take_row(&l, &room, sink);
	hd_free(room.column);
	hd_free(room.value);
	return err;
}

enum hd_err hd_label_text(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	int32_t *label, struct hd_diag *diag)
{
	struct hd_graph_lines l = hd_lines_begin(bytes, len, name, diag);

	while (hd_lines_next(&l, 0)) {
		if (l.line > nvertices)
			return hd_fail(diag, HD_E_INPUT, "%s has more lines than the features have "
				"vertices (%llu)",
				name, (unsigned long long)nvertices);
		if (!take_label(&l, &label[l.line - 1]) || !hd_lines_at_end(&l))
			return hd_lines_bad(&l, "one label: -1 for none, or a class from 0");
	}
	return l.line == nvertices ? HD_OK : hd_fail(diag, HD_E_INPUT, "%s has %llu labels, the features "
		"are of "
		"%llu vertices", name, (unsigned long long)l.line, (unsigned long long)nvertices);
}

/* ---- splits */

static enum hd_err add_ids(struct hd_graph_lines *l, uint64_t nvertices, uint8_t which, uint8_t *mask)
{
	static const char *const names[] = { "none", "train", "val", "test" };

	while (!hd_lines_at_end(l)) {
		uint32_t id = 0;
		enum hd_err err = hd_lines_id(l, nvertices, "ids of vertices", &id);
		if (err)
			return err;
		if (mask[id])
			return hd_fail(l->diag, HD_E_INPUT, "%s:%llu: vertex %u is in \"%s\" already: a "
				"vertex "
				"stands once, in one set", l->name, (unsigned long long)l->line, id,
				names[mask[id]]);
		mask[id] = which;
	}
	return HD_OK;
}

static const struct { const char *word; uint8_t which; } sets[] = {
	{ "train", HD_GRAPH_TRAIN }, { "val", HD_GRAPH_VALID }, { "valid", HD_GRAPH_VALID },
	{ "test", HD_GRAPH_TEST },
};

static uint8_t take_set(struct hd_graph_lines *l)
{
	for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
		struct hd_graph_lines after = *l;
		size_t len = strlen(sets[i].word);
		if ((size_t)(l->stop - l->at) < len || memcmp(l->at, sets[i].word, len) != 0)
			continue;
		after.at += len;
		if (!hd_lines_word_ends(&after, 0))
			continue;
		*l = after;
		return sets[i].which;
	}
	return HD_GRAPH_REST;
}

enum hd_err hd_split_text(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	uint8_t *mask, struct hd_diag *diag)
{
	struct hd_graph_lines l = hd_lines_begin(bytes, len, name, diag);
	unsigned seen = 0;
	enum hd_err err = HD_OK;

	while (!err && hd_lines_next(&l, '#')) {
		uint8_t which = take_set(&l);
		if (which == HD_GRAPH_REST)
			return hd_lines_bad(&l, "\"train\", \"val\" or \"test\", then ids");
		if (seen & 1u << which)
			return hd_fail(diag, HD_E_INPUT, "%s:%llu: the set stands twice", name,
				(unsigned long long)l.line);
		seen |= 1u << which;
		err = add_ids(&l, nvertices, which, mask);
	}
	return err;
}

enum hd_err hd_split_ids(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	uint8_t which, uint8_t *mask, struct hd_diag *diag)
{
	struct hd_graph_lines l = hd_lines_begin(bytes, len, name, diag);
	enum hd_err err = HD_OK;

	while (!err && hd_lines_next(&l, '#'))
		err = add_ids(&l, nvertices, which, mask);
	return err;
}
