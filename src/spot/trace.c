#define _GNU_SOURCE
#include "spot/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"

enum { NODE_NAME = 16 };

struct trace_maker {
	struct hd_spot_trace out;
	size_t cap;
	struct hd_arena *arena;
	struct hd_diag *diag;
};

static enum hd_err no_memory(const struct trace_maker *m)
{
	return hd_fail(m->diag, HD_E_NOMEM, "no memory for the events of a trace");
}

/* Room for `n` nodes, and as many events as they can have. */
static enum hd_err open_maker(struct trace_maker *m, size_t n)
{
	if (n > HD_SPOT_EVENTS)
		return hd_fail(m->diag, HD_E_INPUT,
			"more than %d machines come and go; give a shorter time or fewer machines",
			HD_SPOT_EVENTS);
	m->out.at = hd_arena_take(m->arena, 2 * n + 1, sizeof *m->out.at);
	m->out.name = hd_arena_take(m->arena, n + 1, sizeof *m->out.name);
	return m->out.at && m->out.name ? HD_OK : no_memory(m);
}

/* ---- order */

static int by_place(const void *a, const void *b, void *changes)
{
	const struct hd_spot_change *at = changes;
	size_t i = *(const size_t *)a, k = *(const size_t *)b;

	if (at[i].at_ms != at[k].at_ms)
		return at[i].at_ms < at[k].at_ms ? -1 : 1;
	if ((at[i].change > 0) != (at[k].change > 0))
		return at[i].change > 0 ? -1 : 1;
	return (i > k) - (i < k);
}

/* Borrowed from the arena, in the order of rule 1; NULL: no memory. */
static struct hd_spot_change *in_order(size_t n, const struct hd_spot_change *changes, struct hd_arena *arena)
{
	struct hd_spot_change *sorted = hd_arena_take(arena, n + 1, sizeof *sorted);
	size_t *order = hd_arena_take(arena, n + 1, sizeof *order);

	if (!sorted || !order)
		return NULL;
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	if (n)
		qsort_r(order, n, sizeof *order, by_place, (void *)(uintptr_t)changes);
	for (size_t i = 0; i < n; i++)
		sorted[i] = changes[order[i]];
	return sorted;
}

/* ---- names */

static int by_name(const void *a, const void *b, void *changes)
{
	const struct hd_spot_change *at = changes;
	size_t i = *(const size_t *)a, k = *(const size_t *)b;
	int order = strcmp(at[i].name, at[k].name);

	return order ? order : (i > k) - (i < k);
}

static enum hd_err from_names(struct trace_maker *m, size_t n, struct hd_spot_change *sorted)
{
	size_t *order = hd_arena_take(m->arena, n + 1, sizeof *order);
	uint32_t *node = hd_arena_take(m->arena, n + 1, sizeof *node);
	size_t nadded = 0;

	for (size_t i = 0; i < n; i++)
		nadded += sorted[i].change > 0;
	enum hd_err err = order && node ? open_maker(m, nadded > n - nadded ? nadded : n - nadded) :
		no_memory(m);
	if (err)
		return err;
	for (size_t i = 0; i < n; i++) {
		order[i] = i;
		if (sorted[i].change > 0) {
			node[i] = m->out.nnodes;
			m->out.name[m->out.nnodes++] = sorted[i].name;
		}
	}
	if (n)
		qsort_r(order, n, sizeof *order, by_name, sorted);
	for (size_t k = 0; k < n; k++) {
		const struct hd_spot_change *c = &sorted[order[k]];
		const bool first = !k || strcmp(sorted[order[k - 1]].name, c->name) != 0,
			third = k > 1 && !strcmp(sorted[order[k - 2]].name, c->name);
		if (first != (c->change > 0) || third)
			return hd_fail(m->diag, HD_E_INPUT, "\"%.60s\" is %s at %" PRId64 " ms: a machine is "
				"added once, and removed once after that", c->name,
				c->change > 0 ? "added again" : first ? "removed before it is added"
				: "removed again", c->at_ms);
		if (!first)
			node[order[k]] = node[order[k - 1]];
	}
	for (size_t i = 0; i < n; i++)
		m->out.at[m->out.n++] = (struct hd_spot_event){ sorted[i].at_ms, node[i],
			sorted[i].change > 0 };
	return HD_OK;
}

/* ---- counts */

/* Nodes that are there, the one with the smallest draw first: a binary heap. */
struct present { uint64_t *draw; uint32_t *node; uint32_t n; };

static bool goes_before(const struct present *p, uint32_t a, uint32_t b)
{
	return p->draw[p->node[a]] != p->draw[p->node[b]] ? p->draw[p->node[a]] < p->draw[p->node[b]]
		: p->node[a] < p->node[b];
}

static void swap(struct present *p, uint32_t a, uint32_t b)
{
	uint32_t node = p->node[a];

	p->node[a] = p->node[b];
	p->node[b] = node;
}

static void come(struct present *p, uint32_t node)
{
	p->node[p->n] = node;
	for (uint32_t at = p->n++; at && goes_before(p, at, (at - 1) / 2); at = (at - 1) / 2)
		swap(p, at, (at - 1) / 2);
}

static uint32_t go(struct present *p)
{
	uint32_t node = p->node[0], at = 0;

	p->node[0] = p->node[--p->n];
	for (uint32_t next; (next = 2 * at + 1) < p->n; at = next) {
		next += next + 1 < p->n && goes_before(p, next + 1, next);
		if (!goes_before(p, next, at))
			break;
		swap(p, next, at);
	}
	return node;
}

static uint64_t draw_of(uint64_t seed, uint32_t node)
{
	const uint32_t counter[4] = { HD_RNG_CLUSTER_SPOT, node, 0, 0 };
	struct hd_philox x = hd_philox(counter, hd_philox_key(seed, HD_RNG_CLUSTER));

	return (uint64_t)x.word[1] << 32 | x.word[0];
}

static enum hd_err add_counted(struct trace_maker *m, struct present *p, uint64_t seed, int64_t at_ms)
{
	uint32_t node = m->out.nnodes;
	char *name = hd_arena_take(m->arena, NODE_NAME, 1);

	if (!name)
		return no_memory(m);
	(void)snprintf(name, NODE_NAME, "node%" PRIu32, node + 1);
	m->out.name[node] = name;
	p->draw[node] = draw_of(seed, node);
	come(p, node);
	m->out.at[m->out.n++] = (struct hd_spot_event){ at_ms, node, true };
	m->out.nnodes++;
	return HD_OK;
}

static enum hd_err from_counts(struct trace_maker *m, size_t n, const struct hd_spot_change *sorted,
	uint64_t seed)
{
	struct present p = { .n = 0 };
	int64_t added = 0, there = 0;
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < n; i++) {
		added += sorted[i].change > 0 ? sorted[i].change : 0;
		if ((there += sorted[i].change) < 0)
			return hd_fail(m->diag, HD_E_INPUT, "%" PRId64 " machines at %" PRId64 " ms", there,
				sorted[i].at_ms);
	}
	if ((err = open_maker(m, (size_t)added)))
		return err;
	p.draw = hd_arena_take(m->arena, (size_t)added + 1, sizeof *p.draw);
	p.node = hd_arena_take(m->arena, (size_t)added + 1, sizeof *p.node);
	if (!p.draw || !p.node)
		return no_memory(m);
	for (size_t i = 0; i < n && !err; i++)
		if (sorted[i].change > 0)
			for (int32_t k = 0; k < sorted[i].change && !err; k++)
				err = add_counted(m, &p, seed, sorted[i].at_ms);
		else
			for (int32_t k = sorted[i].change; k < 0; k++)
				m->out.at[m->out.n++] = (struct hd_spot_event){ sorted[i].at_ms, go(&p),
					false };
	return err;
}

enum hd_err hd_spot_trace_make(struct hd_spot_trace *trace, size_t n, const struct hd_spot_change *changes,
	uint64_t seed, struct hd_arena *arena, struct hd_diag *diag)
{
	struct trace_maker m = { .arena = arena, .diag = diag };
	struct hd_spot_change *sorted = in_order(n, changes, arena);
	enum hd_err err = HD_OK;

	if (!sorted)
		return no_memory(&m);
	for (size_t i = 0; i < n; i++)
		if (changes[i].at_ms < 0 || changes[i].at_ms > HD_SPOT_MS_MOST)
			return hd_fail(diag, HD_E_INPUT, "a time of %" PRId64 " ms: it is from 0 to %" PRId64,
				changes[i].at_ms, HD_SPOT_MS_MOST);
	err = n && changes[0].name ? from_names(&m, n, sorted) : from_counts(&m, n, sorted, seed);
	if (!err)
		*trace = m.out;
	return err;
}

enum hd_err hd_spot_trace_at_most(struct hd_spot_trace *trace, const struct hd_spot_trace *of, uint32_t most,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct trace_maker m = { .arena = arena, .diag = diag };
	uint32_t *number = hd_arena_take(arena, (size_t)of->nnodes + 1, sizeof *number), there = 0;
	enum hd_err err = number ? open_maker(&m, of->nnodes) : no_memory(&m);

	for (size_t i = 0; i < of->n && !err; i++) {
		const struct hd_spot_event *e = &of->at[i];
		if (e->added && there == most)
			continue;                 /* its number stays 0: it was not taken */
		if (e->added) {
			m.out.name[m.out.nnodes] = of->name[e->node];
			number[e->node] = ++m.out.nnodes;
		} else if (!number[e->node]) {
			continue;
		}
		there = e->added ? there + 1 : there - 1;
		m.out.at[m.out.n++] = (struct hd_spot_event){ e->at_ms, number[e->node] - 1, e->added };
	}
	if (!err)
		*trace = m.out;
	return err;
}
