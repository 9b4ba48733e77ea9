#include "clustersim/io/intervals.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clustersim/machines.h"

enum { NUMBER = 16 };                     /* "#4194304" and the final 0 */
/* Thirty thousand years: times in milliseconds still fit anywhere. */
static const double SPAN_S = 1e12;

bool intervals_header(const struct cells *cells)
{
	return cells_find(cells, "name") >= 0 && cells_find(cells, "start") >= 0 &&
		cells_find(cells, "stop") >= 0;
}

static enum hd_err make_room(struct intervals *all, size_t *cap, const struct cells *c,
	struct hd_arena *arena, struct hd_diag *diag)
{
	if (all->n < *cap)
		return HD_OK;
	size_t more = *cap ? 2 * *cap : 256;
	if (more > HD_MACHINES)
		return hd_fail(diag, HD_E_INPUT, "%s: more than %d lines", c->name, HD_MACHINES);
	struct interval *grown = hd_arena_take(arena, more, sizeof *grown);
	if (!grown)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for %zu lines", c->name, more);
	if (all->n)
		memcpy(grown, all->at, all->n * sizeof *grown);
	all->at = grown;
	*cap = more;
	return HD_OK;
}

static enum hd_err read_one(struct interval *out, const struct cells *c, uint32_t name, uint32_t start,
	uint32_t stop, struct hd_arena *arena, struct hd_diag *diag)
{
	struct interval one = { .stop_s = INFINITY };
	enum hd_err err = cells_when(c, start, "start", &one.start_s, diag);

	if (!err && *c->cell[stop].text)
		err = cells_when(c, stop, "stop", &one.stop_s, diag);
	if (!err && one.stop_s < one.start_s)
		err = cells_fail(c, stop, diag, "it stops before it starts");
	if (!err && !*c->cell[name].text)
		err = cells_fail(c, name, diag, "the machine has no name");
	if (!err && !(one.name = hd_arena_text(arena, c->cell[name].text, strlen(c->cell[name].text))))
		err = hd_fail(diag, HD_E_NOMEM, "%s: no memory for its names", c->name);
	if (!err)
		*out = one;
	return err;
}

static int by_name(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (order)
		return order;
	if (x->start_s < y->start_s || x->start_s > y->start_s)
		return x->start_s < y->start_s ? -1 : 1;
	return (x->stop_s > y->stop_s) - (x->stop_s < y->stop_s);
}

static int by_start(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	if (x->start_s < y->start_s || x->start_s > y->start_s)
		return x->start_s < y->start_s ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static enum hd_err number(struct intervals *all, const char *file, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const char *name = NULL;
	unsigned times = 0;

	for (size_t i = 0; i < all->n; i++) {
		struct interval *x = &all->at[i];
		times = name && !strcmp(name, x->name) ? times + 1 : 1;
		name = x->name;
		if (times == 1)
			continue;
		if (x->start_s < all->at[i - 1].stop_s)
			return hd_fail(diag, HD_E_INPUT,
				"%s: \"%.60s\" starts before it stopped: times of one machine do not "
				"overlap", file, x->name);
		const size_t room = strlen(x->name) + NUMBER;
		char *numbered = hd_arena_take(arena, room, 1);
		if (!numbered)
			return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its names", file);
		(void)snprintf(numbered, room, "%s#%u", x->name, times);
		x->name = numbered;
	}
	return HD_OK;
}

enum hd_err intervals_read(struct intervals *all, struct cells *c, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const uint32_t name = (uint32_t)cells_find(c, "name"), start = (uint32_t)cells_find(c, "start"),
		stop = (uint32_t)cells_find(c, "stop"), columns = c->n;
	struct intervals out = { 0 };
	double first_s = INFINITY, last_s = -INFINITY;
	size_t cap = 0;
	enum hd_err err = HD_OK;

	while (!err && cells_next(c, &err, diag)) {
		if (c->n != columns)
			return cells_fail(c, c->n - 1, diag, "%u fields, the header has %u", c->n, columns);
		if ((err = make_room(&out, &cap, c, arena, diag)) ||
			(err = read_one(&out.at[out.n], c, name, start, stop, arena, diag)))
			return err;
		out.at[out.n].row = out.n;
		const struct interval *x = &out.at[out.n++];
		first_s = fmin(first_s, x->start_s);
		last_s = fmax(last_s, isinf(x->stop_s) ? x->start_s : x->stop_s);
		if (last_s - first_s > SPAN_S)
			return cells_fail(c, start, diag, "more than %g s after the first start", SPAN_S);
	}
	for (size_t i = 0; i < out.n; i++) {
		out.at[i].start_s -= first_s;
		out.at[i].stop_s -= first_s;
	}
	if (out.n)
		qsort(out.at, out.n, sizeof *out.at, by_name);
	err = err ? err : number(&out, c->name, arena, diag);
	if (out.n)
		qsort(out.at, out.n, sizeof *out.at, by_start);
	if (!err)
		*all = out;
	return err;
}
