#include "run/value_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "run/rundir.h"

/* One digest of a run: vn HD_NONE: of the state, and `of` a segment. */
struct value_entry { uint64_t step, digest; uint32_t vn, of; struct hd_value_place at; };

/* What a run has written down. Names are those of its first file. */
struct value_side {
	const char *dir;
	struct value_entry *entry;        /* owned */
	size_t n, cap;
	const struct hd_json *names;      /* NULL: none yet */
	struct hd_arena line;             /* of the line at hand */
	const char *path;                 /* of the file at hand */
	size_t number;                    /* of the line, from 1 */
	uint32_t worker;                  /* whose file it is */
	uint64_t torn;                    /* lines that are no record */
};

/* ---- reading ---- */

static enum hd_err add(struct value_side *s, const struct value_entry *entry, struct hd_diag *diag)
{
	if (s->n == s->cap) {
		const size_t cap = s->cap ? 2 * s->cap : 1024;
		struct value_entry *more = hd_alloc(cap * sizeof *more);
		if (!more)
			return hd_fail(diag, HD_E_NOMEM, "no memory for the values of %s", s->dir);
		if (s->n)
			memcpy(more, s->entry, s->n * sizeof *more);
		hd_free(s->entry);
		s->entry = more;
		s->cap = cap;
	}
	s->entry[s->n++] = *entry;
	return HD_OK;
}

static enum hd_err read_marks(struct value_side *s, struct value_entry *entry, const struct hd_json *marks,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < hd_json_count(marks) && !err; i++) {
		const struct hd_json *mark = hd_json_item(marks, i);
		int64_t of = 0;
		if (hd_json_count(mark) != 2)
			return hd_fail(diag, HD_E_INPUT, "no pair of a number and a digest");
		err = hd_json_as_i64(hd_json_item(mark, 0), 0, HD_MAX_NODES, &of, diag);
		err = err ? err : hd_json_as_u64(hd_json_item(mark, 1), UINT64_MAX, &entry->digest, diag);
		entry->of = (uint32_t)of;
		err = err ? err : add(s, entry, diag);
	}
	return err;
}

static enum hd_err read_record(struct value_side *s, const struct hd_json *line, struct hd_diag *diag)
{
	const bool state = hd_json_find(line, "state");
	int64_t step = 0, vn = HD_NONE, rank = 0, stage = 0;
	const struct hd_json *marks;
	enum hd_err err = hd_json_get_i64(line, "step", 0, INT64_MAX, &step, diag);

	if (!err && !state)
		err = hd_json_get_i64(line, "vn", 0, HD_NONE - 1, &vn, diag);
	err = err ? err : hd_json_get_i64(line, "rank", 0, UINT16_MAX, &rank, diag);
	if (!err && !state)
		err = hd_json_get_i64(line, "stage", 0, UINT16_MAX, &stage, diag);
	err = err ? err : hd_json_get(line, state ? "state" : "made", HD_JSON_ARRAY, &marks, diag);
	struct value_entry entry = { .step = (uint64_t)step, .vn = (uint32_t)vn,
		.at = { s->worker, (uint32_t)rank, (uint32_t)stage } };
	return err ? err : read_marks(s, &entry, marks, diag);
}

/* Rule 4. `next` begins the line after it; NULL: it is the last one. */
static bool may_be_torn(const char *next, const char *end)
{
	static const char header[] = "{\"graph\":";

	return !next || ((size_t)(end - next) >= sizeof header - 1 &&
		!memcmp(next, header, sizeof header - 1));
}

/* The names of the first file stay, for messages. */
static enum hd_err take_line(struct value_side *s, const struct hd_json *line, const char *text, size_t len,
	struct hd_arena *arena, struct hd_diag *diag)
{
	static const char *const lists[] = { "graph", "tensors", "segments" };
	const struct hd_json *list;
	enum hd_err err = HD_OK;

	if (!hd_json_find(line, lists[0]))
		return read_record(s, line, diag);
	for (size_t i = 0; i < sizeof lists / sizeof *lists && !err; i++)
		err = hd_json_get(line, lists[i], HD_JSON_ARRAY, &list, diag);
	return err || s->names ? err : hd_json_parse(arena, s->dir, text, len, &s->names, diag);
}

static enum hd_err read_line(struct value_side *s, const char *text, size_t len, bool torn,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_diag why = { "" };
	const struct hd_json *line;

	hd_arena_reset(&s->line);
	enum hd_err err = hd_json_parse(&s->line, "a record", text, len, &line, &why);
	if (err && err != HD_E_NOMEM && torn) {
		s->torn++;
		return HD_OK;
	}
	err = err ? err : take_line(s, line, text, len, arena, &why);
	return err ? hd_fail(diag, err == HD_E_NOMEM ? err : HD_E_INPUT, "%s, line %zu: %s", s->path,
		s->number, why.text) : HD_OK;
}

static enum hd_err read_file(struct value_side *s, struct hd_fs *fs, const char *path, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_file file = { 0 };
	struct hd_map map = { 0 };
	enum hd_err err = hd_file_open(fs, path, HD_OPEN_READ, &file, diag);

	if (!err)
		err = hd_file_map(&file, &map, diag);
	s->path = path;
	s->number = 0;
	const char *from = (const char *)map.bytes, *end = from ? from + map.len : NULL;   /* empty */
	while (!err && from < end) {
		const char *until = memchr(from, '\n', (size_t)(end - from));
		const char *next = until && until + 1 < end ? until + 1 : NULL;
		s->number++;
		if (until)
			err = read_line(s, from, (size_t)(until - from), may_be_torn(next, end), arena, diag);
		else
			s->torn++;
		from = next ? next : end;
	}
	hd_file_unmap(fs, &map);
	if (file.fs)
		(void)!hd_file_close(&file, NULL);
	return err;
}

static int by_key(const void *x, const void *y)
{
	const struct value_entry *a = x, *b = y;
	const uint64_t key[][2] = { { a->step, b->step }, { a->vn, b->vn }, { a->of, b->of },
		{ a->at.worker, b->at.worker }, { a->at.rank, b->at.rank }, { a->digest, b->digest } };

	for (size_t i = 0; i < sizeof key / sizeof *key; i++)
		if (key[i][0] != key[i][1])
			return key[i][0] < key[i][1] ? -1 : 1;
	return 0;
}

static enum hd_err read_side(struct value_side *s, struct hd_fs *fs, struct hd_arena *arena,
	struct hd_diag *diag)
{
	char folder[HD_PATH_CAP], path[HD_PATH_CAP + 300];
	char **names;
	size_t n = 0;

	snprintf(folder, sizeof folder, "%s/" HD_VALUES_FOLDER, s->dir);
	enum hd_err err = hd_fs_list(fs, folder, arena, &names, &n, NULL);
	if (err)
		return hd_rundir_has_job(fs, s->dir, NULL) ?
			hd_fail(diag, HD_E_NOTFOUND, "%s is no folder of a run, which alone has a record of "
				"values: --explain compares two runs", s->dir) :
			hd_fail(diag, HD_E_NOTFOUND,
				"%s has no record of values: run the job with -s trace.values=1", s->dir);
	for (size_t i = 0; i < n && !err; i++) {
		s->worker = (uint32_t)strtoul(names[i], NULL, 10);
		snprintf(path, sizeof path, "%s/%.250s", folder, names[i]);
		err = read_file(s, fs, path, arena, diag);
	}
	if (!err && !s->names)
		return hd_fail(diag, HD_E_NOTFOUND, "%s: no file of it says which graph it is of", folder);
	if (!err && s->n)
		qsort(s->entry, s->n, sizeof *s->entry, by_key);
	return err;
}

/* ---- names ---- */

static const char *text_at(const struct hd_json *names, const char *list, size_t i)
{
	const struct hd_json *all = hd_json_find(names, list);
	const char *text = NULL;

	return i < hd_json_count(all) && !hd_json_as_text(hd_json_item(all, i), &text, NULL) ? text : NULL;
}

static enum hd_err same_graph(const struct value_side *a, const struct value_side *b, struct hd_diag *diag)
{
	for (size_t i = 0;; i++) {
		const char *x = text_at(a->names, "graph", i), *y = text_at(b->names, "graph", i);
		if (!x && !y)
			return HD_OK;
		if (!x || !y || strcmp(x, y))
			return hd_fail(diag, HD_E_INPUT, "other graphs, whose values say nothing of one "
				"another: \"%s\" of %s is \"%s\" of %s", x ? x : "no node", a->dir,
				y ? y : "no node", b->dir);
	}
}

static int64_t number_at(const struct hd_json *list, size_t i)
{
	int64_t number = 0;

	return i < hd_json_count(list) && !hd_json_as_i64(hd_json_item(list, i), 0, INT64_MAX, &number,
		NULL) ? number : 0;
}

static void name_it(struct hd_value_difference *d, const struct value_side *s, const struct value_entry *e)
{
	const char *text = e->vn == HD_NONE ? NULL : text_at(s->names, "graph", e->of);
	const struct hd_json *segments = hd_json_find(s->names, "segments");

	if (e->vn != HD_NONE || e->of >= hd_json_count(segments)) {
		snprintf(d->what, sizeof d->what, "%s", text ? text : "a part without a name");
		return;
	}
	const struct hd_json *segment = hd_json_item(segments, e->of);
	const long long first = number_at(segment, 1), len = number_at(segment, 2);
	text = text_at(s->names, "tensors", (size_t)number_at(segment, 0));
	snprintf(d->what, sizeof d->what, "%.140s, elements %lld to %lld", text ? text : "a tensor", first,
		first + len - 1);
}

/* ---- comparing ---- */

static bool same_key(const struct value_entry *a, const struct value_entry *b)
{
	return a->step == b->step && a->vn == b->vn && a->of == b->of;
}

/* The entries of one key from `at` on: where they end; *other: the first that differs from the first. */
static size_t group(const struct value_side *s, size_t at, const struct value_entry **other)
{
	size_t end = at;

	*other = NULL;
	for (; end < s->n && same_key(&s->entry[at], &s->entry[end]); end++)
		if (!*other && s->entry[end].digest != s->entry[at].digest)
			*other = &s->entry[end];
	return end;
}

static int order(const struct value_entry *a, const struct value_entry *b)
{
	struct value_entry x = *a, y = *b;

	x.at = y.at = (struct hd_value_place){ 0 };
	x.digest = y.digest = 0;
	return by_key(&x, &y);
}

static void differ(struct hd_value_difference *d, const struct value_side *s, const struct value_entry *a,
	const struct value_entry *b, const char *within)
{
	if (!d->found) {
		d->found = true;
		d->within = within;
		d->step = a->step;
		d->vn = a->vn;
		d->nvns = a->vn != HD_NONE;
		d->a = a->at;
		d->b = b->at;
		name_it(d, s, a);
	} else if (a->vn != HD_NONE) {
		d->nvns++;
	}
}

static void compare(const struct value_side *a, const struct value_side *b, struct hd_value_difference *d)
{
	uint64_t last_step = UINT64_MAX;
	uint32_t last_vn = HD_NONE;

	for (size_t i = 0, k = 0; i < a->n || k < b->n;) {
		const struct value_entry *x = i < a->n ? &a->entry[i] : NULL, *y = k < b->n ? &b->entry[k] :
			NULL, *in_a = NULL, *in_b = NULL;
		const int which = !x ? 1 : !y ? -1 : order(x, y);
		const struct value_entry *key = which > 0 ? y : x;
		if (d->found && key->step != d->step)
			return;
		i = which <= 0 ? group(a, i, &in_a) : i;
		k = which >= 0 ? group(b, k, &in_b) : k;
		const bool between = which == 0 && x->digest != y->digest;
		/* one count a virtual node, which differs from its first node that does on */
		if ((in_a || in_b || between) && (!d->found || key->vn != last_vn)) {
			last_vn = key->vn;
			if (in_a || in_b)
				differ(d, in_a ? a : b, in_a ? x : y, in_a ? in_a : in_b, in_a ? "A" : "B");
			else
				differ(d, a, x, y, NULL);
		}
		if (!d->found && which != 0)
			d->alone[which > 0]++;
		if (!d->found && which == 0) {
			d->compared++;
			d->steps += x->step != last_step;
			last_step = x->step;
		}
	}
}

enum hd_err hd_value_diff(struct hd_fs *fs, const char *a, const char *b, struct hd_arena *arena,
	struct hd_value_difference *found, struct hd_diag *diag)
{
	struct value_side side[2] = { { .dir = a }, { .dir = b } };
	enum hd_err err = HD_OK;

	*found = (struct hd_value_difference){ 0 };
	for (int i = 0; i < 2 && !err; i++) {
		hd_arena_init(&side[i].line, 0);
		err = read_side(&side[i], fs, arena, diag);
		hd_arena_finish(&side[i].line);
	}
	err = err ? err : same_graph(&side[0], &side[1], diag);
	for (int i = 0; i < 2; i++)
		found->torn[i] = side[i].torn;
	if (!err)
		compare(&side[0], &side[1], found);
	hd_free(side[0].entry);
	hd_free(side[1].entry);
	return err;
}
