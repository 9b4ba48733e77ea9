#define _GNU_SOURCE
#include "clustersim/machines.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clustersim/io/cells.h"
#include "clustersim/io/intervals.h"

static enum hd_err grow(struct hd_arena *arena, void *list, size_t n, size_t *cap, size_t size,
	const char *name, struct hd_diag *diag)
{
	void **at = list, *grown;

	if (n < *cap)
		return HD_OK;
	size_t more = *cap ? 2 * *cap : 256;
	if (more > HD_MACHINES)
		return hd_fail(diag, HD_E_INPUT, "%s: more than %d lines", name, HD_MACHINES);
	if (!(grown = hd_arena_take(arena, more, size)))
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for %zu machines", name, more);
	if (n)
		memcpy(grown, *at, n * size);
	*at = grown;
	*cap = more;
	return HD_OK;
}

enum hd_err hd_machine_list_csv(struct hd_machine_list *list, const char *name, const uint8_t *bytes,
	size_t len, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_machine_list out = { 0 };
	struct cells *c;
	size_t cap = 0;
	enum hd_err err = cells_open(&c, name, bytes, len, ',', arena, diag);

	if (err)
		return err;
	if (!cells_next(c, &err, diag))
		return err ? err : hd_fail(diag, HD_E_INPUT,
			"%s:1:1: the list is empty: its first line names the columns", name);
	int sn = cells_find(c, "sn"), gpu = cells_find(c, "gpu"), model = cells_find(c, "model");
	uint32_t columns = c->n;
	if (sn < 0 || gpu < 0 || model < 0)
		return cells_fail(c, c->n, diag,
			"a list of nodes has the columns sn, gpu and model; \"%s\" is missing",
			sn < 0 ? "sn" : gpu < 0 ? "gpu" : "model");
	while (!err && cells_next(c, &err, diag)) {
		uint32_t devices = 0;
		if (c->n != columns)
			return cells_fail(c, c->n - 1, diag, "%u fields, the header has %u", c->n, columns);
		if ((err = cells_u32(c, (uint32_t)gpu, "gpu", 0, HD_MACHINE_DEVICES, &devices, diag)))
			return err;
		if (!devices) {
			out.nwithout++;
			continue;
		}
		if (!*c->cell[model].text)
			return cells_fail(c, (uint32_t)model, diag, "%u devices of no model", devices);
		if ((err = grow(arena, &out.at, out.n, &cap, sizeof *out.at, name, diag)))
			return err;
		struct hd_machine *m = &out.at[out.n++];
		m->name = hd_arena_text(arena, c->cell[sn].text, strlen(c->cell[sn].text));
		m->type = hd_arena_text(arena, c->cell[model].text, strlen(c->cell[model].text));
		m->devices = devices;
		if (!m->name || !m->type)
			return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its machines", name);
	}
	if (!err)
		*list = out;
	return err;
}

struct machines_reader { struct hd_machine_events out; size_t cap; struct hd_arena *arena; };

static enum hd_err add(struct machines_reader *r, double at_s, int32_t change, const char *machine,
	const char *name,
	struct hd_diag *diag)
{
	enum hd_err err = grow(r->arena, &r->out.at, r->out.n, &r->cap, sizeof *r->out.at, name, diag);

	if (!err)
		r->out.at[r->out.n++] = (struct hd_machine_event){ at_s, change, machine };
	return err;
}

static int by_time(const void *a, const void *b, void *events)
{
	const struct hd_machine_event *at = events;
	size_t i = *(const size_t *)a, k = *(const size_t *)b;

	if (at[i].at_s < at[k].at_s || at[i].at_s > at[k].at_s)
		return at[i].at_s < at[k].at_s ? -1 : 1;
	return (i > k) - (i < k);
}

static enum hd_err sort(struct machines_reader *r, const char *name, struct hd_diag *diag)
{
	size_t n = r->out.n, *order = hd_arena_take(r->arena, n + 1, sizeof *order);
	struct hd_machine_event *sorted = hd_arena_take(r->arena, n + 1, sizeof *sorted);

	if (!order || !sorted)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory to sort its lines", name);
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	if (n)
		qsort_r(order, n, sizeof *order, by_time, r->out.at);
	for (size_t i = 0; i < n; i++)
		sorted[i] = r->out.at[order[i]];
	r->out.at = sorted;
	return HD_OK;
}

static int by_name(const void *a, const void *b)
{
	const struct hd_machine_event *x = *(const struct hd_machine_event *const *)a,
		*y = *(const struct hd_machine_event *const *)b;
	int order = strcmp(x->name, y->name);

	return order ? order : (x > y) - (x < y);
}

/* Of each name: one event that adds, and then perhaps one that removes. *culprit: the name that is not so. */
static enum hd_err check_names(const struct machines_reader *r, const char *name, const char **culprit,
	struct hd_diag *diag)
{
	size_t n = r->out.n;
	const struct hd_machine_event **at = hd_arena_take(r->arena, n + 1, sizeof *at);

	if (!at)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory to check its names", name);
	for (size_t i = 0; i < n; i++)
		at[i] = &r->out.at[i];
	if (n)
		qsort(at, n, sizeof *at, by_name);
	for (size_t i = 0; i < n; i++) {
		bool first = i == 0 || strcmp(at[i - 1]->name, at[i]->name) != 0, third = i > 1 &&
			!strcmp(at[i - 2]->name, at[i]->name);
		if (first == (at[i]->change > 0) && !third)
			continue;
		*culprit = at[i]->name;
		return hd_fail(diag, HD_E_INPUT,
			"%s: \"%.60s\" is %s at %.3f s: a name is added once, and removed once after that",
			name, at[i]->name, at[i]->change > 0 ? "added again" :
			first ? "removed before it is added" : "removed again", at[i]->at_s);
	}
	return HD_OK;
}

static enum hd_err read_named(struct machines_reader *r, const struct cells *c, struct hd_diag *diag)
{
	double ms = 0;
	enum hd_err err = cells_f64(c, 0, "milliseconds", 0, 1e15, &ms, diag);
	bool adds = !strcmp(c->cell[1].text, "add");

	if (!err && !adds && strcmp(c->cell[1].text, "remove") != 0)
		err = cells_fail(c, 1, diag, "\"%.40s\" is neither add nor remove", c->cell[1].text);
	if (!err && !*c->cell[2].text)
		err = cells_fail(c, 2, diag, "the machine has no name");
	const char *machine = err ? NULL : hd_arena_text(r->arena, c->cell[2].text, strlen(c->cell[2].text));
	if (!err && !machine)
		err = hd_fail(diag, HD_E_NOMEM, "%s: no memory for its names", c->name);
	return err ? err : add(r, ms / 1000, adds ? 1 : -1, machine, c->name, diag);
}

/* `change` holds the count until differences are made of it. */
static enum hd_err read_sample(struct machines_reader *r, const struct cells *c, struct hd_diag *diag)
{
	char when[128];
	const char *time = c->cell[1].text + strspn(c->cell[1].text, " "),
		*count = c->cell[2].text + strspn(c->cell[2].text, " ");
	struct cells bare = { .name = c->name, .line = c->line, .n = 1 };
	double at_s = 0;
	uint32_t n = 0;
	enum hd_err err;

	(void)snprintf(when, sizeof when, "%.60s %.60s", c->cell[0].text, time);
	if (!when_parse(when, &at_s))
		return cells_fail(c, 0, diag, "\"%s\" is no time (YYYY-MM-DD, HH:MM:SS)", when);
	bare.cell[0] = (struct table_cell){ count, c->cell[2].column };
	if ((err = cells_u32(&bare, 0, "running machines", 0, HD_MACHINES, &n, diag)))
		return err;
	return add(r, at_s, (int32_t)n, "", c->name, diag);
}

static void make_differences(struct hd_machine_events *events)
{
	double start_s = events->n ? events->at[0].at_s : 0;
	int32_t before = 0;
	size_t n = 0;

	for (size_t i = 0; i < events->n; i++) {
		bool last = i + 1 == events->n || events->at[i + 1].at_s > events->at[i].at_s;
		int32_t count = events->at[i].change;
		if (!last || (count == before && i))
			continue;
		events->at[n++] = (struct hd_machine_event){ events->at[i].at_s - start_s, count - before,
			"" };
		before = count;
	}
	events->n = n;
}

/* Each machine comes, and goes where its end is known. */
static enum hd_err add_intervals(struct machines_reader *r, const struct intervals *all, const char *name,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < all->n && !err; i++) {
		err = add(r, all->at[i].start_s, 1, all->at[i].name, name, diag);
		if (!err && !isinf(all->at[i].stop_s))
			err = add(r, all->at[i].stop_s, -1, all->at[i].name, name, diag);
	}
	return err;
}

static enum hd_err read_three(struct machines_reader *r, struct cells *c, bool samples, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	do {
		if (c->n != 3)
			return cells_fail(c, 0, diag,
				"%u fields: a line is milliseconds,add|remove,name or date,time,count; or "
				"the first line names the columns name, start and stop", c->n);
		err = samples ? read_sample(r, c, diag) : read_named(r, c, diag);
	} while (!err && cells_next(c, &err, diag));
	return err;
}

/* *samples: it holds counts, and no differences yet. */
static enum hd_err read_lines(struct machines_reader *r, struct cells *c, bool *samples, struct hd_diag *diag)
{
	struct intervals intervals = { 0 };
	double at_s;
	enum hd_err err = HD_OK;

	if (!cells_next(c, &err, diag))
		return err;
	if (intervals_header(c)) {
		err = intervals_read(&intervals, c, r->arena, diag);
		return err ? err : add_intervals(r, &intervals, c->name, diag);
	}
	*samples = when_parse(c->cell[0].text, &at_s);
	return read_three(r, c, *samples, diag);
}

/* What is wrong of a last line without an end may be so because the rest of the line is missing. */
static enum hd_err maybe_cut(enum hd_err err, const struct cells *c, const struct hd_diag *why,
	struct hd_diag *diag)
{
	if (err != HD_E_INPUT || !cells_cut(c))
		return hd_fail(diag, err, "%s", why->text);
	return hd_fail(diag, err, "%s; line %" PRIu64 ", the last one, has no end: it may be cut off",
		why->text, c->line);
}

enum hd_err hd_machine_events_csv(struct hd_machine_events *events, const char *name, const uint8_t *bytes,
	size_t len, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const uint8_t *eol = len ? memchr(bytes, '\n', len) : NULL;
	const bool tabs = len && memchr(bytes, '\t', eol ? (size_t)(eol - bytes) : len);
	struct machines_reader r = { .arena = arena };
	const char *last = NULL, *culprit = NULL;
	struct hd_diag why = { "" };
	struct cells *c;
	bool samples = false;
	enum hd_err err = cells_open(&c, name, bytes, len, tabs ? '\t' : ',', arena, diag);

	if (err)
		return err;
	if ((err = read_lines(&r, c, &samples, &why)))
		return maybe_cut(err, c, &why, diag);
	last = r.out.n ? r.out.at[r.out.n - 1].name : NULL;
	err = sort(&r, name, diag);
	if (!err && !samples && (err = check_names(&r, name, &culprit, &why)))
		return culprit && culprit == last ? maybe_cut(err, c, &why, diag) :
			hd_fail(diag, err, "%s", why.text);
	if (err)
		return err;
	if (samples)
		make_differences(&r.out);
	*events = r.out;
	return HD_OK;
}
