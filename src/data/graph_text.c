#include "data/graph_text.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/num.h"
#include "data/prepared.h"

/* A file read line by line; the words of a line are parted by blanks, tabs or commas. */
struct lines {
	const char *name;
	const uint8_t *next, *end;        /* of the file */
	const uint8_t *at, *stop;         /* of the line at hand */
	uint64_t line;
	struct hd_diag *diag;
};

static bool next_line(struct lines *l, bool skip)
{
	while (l->next < l->end) {
		const uint8_t *lf = memchr(l->next, '\n', (size_t)(l->end - l->next));
		l->at = l->next;
		l->stop = lf ? lf : l->end;
		l->next = lf ? lf + 1 : l->end;
		l->line++;
		if (l->stop > l->at && l->stop[-1] == '\r')
			l->stop--;
		if (!skip || (l->at < l->stop && *l->at != '#'))
			return true;
	}
	return false;
}

static void skip_blanks(struct lines *l)
{
	while (l->at < l->stop && (*l->at == ' ' || *l->at == '\t' || *l->at == ','))
		l->at++;
}

static bool at_end(struct lines *l)
{
	skip_blanks(l);
	return l->at == l->stop;
}

static enum hd_err bad_line(const struct lines *l, const char *want)
{
	return hd_fail(l->diag, HD_E_INPUT, "%s:%llu: wanted %s", l->name, (unsigned long long)l->line, want);
}

static bool blank_or_end(const struct lines *l, uint8_t also)
{
	return l->at == l->stop || *l->at == ' ' || *l->at == '\t' || *l->at == ',' ||
		(also && *l->at == also);
}

/* A number below 2^32 that ends where a word does, or at `also`. */
static bool take_number(struct lines *l, uint8_t also, uint32_t *number)
{
	uint64_t v = 0;

	skip_blanks(l);
	if (l->at == l->stop || *l->at < '0' || *l->at > '9')
		return false;
	for (; l->at < l->stop && *l->at >= '0' && *l->at <= '9'; l->at++)
		if ((v = v * 10 + (uint64_t)(*l->at - '0')) > UINT32_MAX)
			return false;
	*number = (uint32_t)v;
	return blank_or_end(l, also);
}

static enum hd_err take_id(struct lines *l, uint64_t nvertices, const char *want, uint32_t *id)
{
	if (!take_number(l, 0, id))
		return bad_line(l, want);
	if (*id >= nvertices)
		return hd_fail(l->diag, HD_E_INPUT, "%s:%llu: vertex %u, but the features are of %llu "
			"vertices: ids "
			"count from 0", l->name, (unsigned long long)l->line, *id,
			(unsigned long long)nvertices);
	return HD_OK;
}

static struct lines begin(const uint8_t *bytes, size_t len, const char *name, struct hd_diag *diag)
{
	return (struct lines){ .name = name, .next = bytes, .end = bytes + len, .diag = diag };
}

enum hd_err hd_edge_text(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	const struct hd_edge_sink *sink, struct hd_diag *diag)
{
	static const char want[] = "two ids: \"from to\"";
	struct lines l = begin(bytes, len, name, diag);
	enum hd_err err = HD_OK;

	while (!err && next_line(&l, true)) {
		uint32_t from = 0, to = 0;
		err = take_id(&l, nvertices, want, &from);
		if (!err)
			err = take_id(&l, nvertices, want, &to);
		if (!err && !at_end(&l))
			err = bad_line(&l, "two ids and no more: weights of edges are not read");
		if (!err)
			err = sink->edge(sink->user, from, to, false, diag);
	}
	return err;
}

/* ---- vertices */

static bool take_label(struct lines *l, int32_t *label)
{
	uint32_t v = 0;

	skip_blanks(l);
	if (l->stop - l->at >= 2 && l->at[0] == '-' && l->at[1] == '1') {
		l->at += 2;
		*label = -1;
		return blank_or_end(l, 0);
	}
	if (!take_number(l, 0, &v) || v >= HD_PREPARED_CLASSES_CAP)
		return false;
	*label = (int32_t)v;
	return true;
}

enum { VALUE_CAP = 64 };

static bool take_value(struct lines *l, float *value)
{
	char text[VALUE_CAP];
	size_t n = 0;
	double v;

	while (!blank_or_end(l, 0)) {
		if (n + 1 == sizeof text)
			return false;
		text[n++] = (char)*l->at++;
	}
	text[n] = 0;
	if (n == 1 && text[0] == '1') {
		*value = 1;
		return true;
	}
	if (hd_num_f64(text, -0x1.fffffep127, 0x1.fffffep127, &v, NULL))
		return false;
	*value = (float)v;
	return isfinite(*value);
}

/* The features of a line, in lists that grow. */
struct row_room { uint32_t *column, columns_cap; float *value; uint32_t values_cap, n; };

static enum hd_err take_feature(struct lines *l, struct row_room *room)
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
	if (!take_number(l, ':', &column) || l->at == l->stop || *l->at++ != ':' || !take_value(l, &value))
		return bad_line(l, "\"label column:value ...\" with finite values");
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

static enum hd_err take_row(struct lines *l, struct row_room *room, const struct hd_vertex_sink *sink)
{
	struct hd_vertex_row row = { .vertex = l->line - 1 };
	enum hd_err err = HD_OK;

	room->n = 0;
	if (row.vertex >= HD_VERTICES_CAP)
		return hd_fail(l->diag, HD_E_INPUT, "%s has more than %d vertices", l->name, HD_VERTICES_CAP);
	if (!take_label(l, &row.label))
		return bad_line(l, "a label first: -1 for none, or a class from 0");
	while (!err && !at_end(l))
		err = take_feature(l, room);
	row.n = room->n;
	row.column = room->column;
	row.value = room->value;
	return err ? err : sink->row(sink->user, &row, l->diag);
}

enum hd_err hd_vertex_text(const uint8_t *bytes, size_t len, const char *name,
	const struct hd_vertex_sink *sink, struct hd_diag *diag)
{
	struct lines l = begin(bytes, len, name, diag);
	struct row_room room = { 0 };
	enum hd_err err = HD_OK;

	while (!err && next_line(&l, false))
		err = take_row(&l, &room, sink);
	hd_free(room.column);
	hd_free(room.value);
	return err;
}

enum hd_err hd_label_text(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	int32_t *label, struct hd_diag *diag)
{
	struct lines l = begin(bytes, len, name, diag);

	while (next_line(&l, false)) {
		if (l.line > nvertices)
			return hd_fail(diag, HD_E_INPUT, "%s has more lines than the features have "
				"vertices (%llu)",
				name, (unsigned long long)nvertices);
		if (!take_label(&l, &label[l.line - 1]) || !at_end(&l))
			return bad_line(&l, "one label: -1 for none, or a class from 0");
	}
	return l.line == nvertices ? HD_OK : hd_fail(diag, HD_E_INPUT, "%s has %llu labels, the features "
		"are of "
		"%llu vertices", name, (unsigned long long)l.line, (unsigned long long)nvertices);
}

/* ---- splits */

static enum hd_err add_ids(struct lines *l, uint64_t nvertices, uint8_t which, uint8_t *mask)
{
	static const char *const names[] = { "none", "train", "val", "test" };

	while (!at_end(l)) {
		uint32_t id = 0;
		enum hd_err err = take_id(l, nvertices, "ids of vertices", &id);
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

static uint8_t take_set(struct lines *l)
{
	for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
		struct lines after = *l;
		size_t len = strlen(sets[i].word);
		if ((size_t)(l->stop - l->at) < len || memcmp(l->at, sets[i].word, len) != 0)
			continue;
		after.at += len;
		if (!blank_or_end(&after, 0))
			continue;
		*l = after;
		return sets[i].which;
	}
	return HD_GRAPH_REST;
}

enum hd_err hd_split_text(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
	uint8_t *mask, struct hd_diag *diag)
{
	struct lines l = begin(bytes, len, name, diag);
	unsigned seen = 0;
	enum hd_err err = HD_OK;

	while (!err && next_line(&l, true)) {
		uint8_t which = take_set(&l);
		if (which == HD_GRAPH_REST)
			return bad_line(&l, "\"train\", \"val\" or \"test\", then ids");
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
	struct lines l = begin(bytes, len, name, diag);
	enum hd_err err = HD_OK;

	while (!err && next_line(&l, true))
		err = add_ids(&l, nvertices, which, mask);
	return err;
}
