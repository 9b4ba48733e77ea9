#include "scheduler/policy/counts.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- ours ---- */

struct give {
	const struct hd_want *want;
	uint32_t *counts, *cap, *heap, n;         /* heap: jobs below their cap, the neediest first */
	uint64_t *weight;                         /* in millionths */
};

static uint64_t millionths(double weight)
{
	double w = rint(fmin(weight, 1e6) * 1e6);

	return w < 1 ? 1 : (uint64_t)w;
}

/* Whether job a is before job b at its count: count/weight crosswise. 2^24 devices times 10^12 fit in 64
 * bits. */
static bool before(const struct give *g, uint32_t a, uint32_t b)
{
	uint64_t x = g->counts[a] * g->weight[b], y = g->counts[b] * g->weight[a];

	if (x != y)
		return x < y;
	return g->weight[a] != g->weight[b] ? g->weight[a] > g->weight[b] : a < b;
}

static void sink(struct give *g, uint32_t at)
{
	for (;;) {
		uint32_t child = 2 * at + 1, job = g->heap[at];
		if (child + 1 < g->n && before(g, g->heap[child + 1], g->heap[child]))
			child++;
		if (child >= g->n || !before(g, g->heap[child], job))
			return;
		g->heap[at] = g->heap[child];
		g->heap[child] = job;
		at = child;
	}
}

static uint32_t cap_of(const struct hd_want *want)
{
	uint32_t cap = want->nvns && want->nvns < want->most ? want->nvns : want->most, best = cap;

	cap = cap > want->least ? cap : want->least;
	best = want->least;
	for (uint32_t k = want->least + 1; want->speedup && k <= cap; k++)
		best = want->speedup[k] > want->speedup[best] ? k : best;
	return want->speedup ? best : cap;
}

static uint32_t ceil_div(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

/* The smallest count that is as good as k: as many virtual nodes on the fullest device. */
static uint32_t shortest(const struct hd_want *want, uint32_t k)
{
	uint32_t least = want->nvns ? ceil_div(want->nvns, ceil_div(want->nvns, k)) : k;

	return least > want->least ? least : want->least;
}

/* The next count that is better than k; 0: there is none. */
static uint32_t next_step(const struct hd_want *want, uint32_t k)
{
	uint32_t full = want->nvns ? ceil_div(want->nvns, k) : 2;

	if (!want->nvns)
		return k + 1;
	return full > 1 ? ceil_div(want->nvns, full - 1) : 0;
}

static uint32_t drop_idle(struct give *g, uint32_t n)
{
	uint32_t pool = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = shortest(&g->want[i], g->counts[i]);
		pool += g->counts[i] - k;
		g->counts[i] = k;
	}
	return pool;
}

/* What fell off, in whole steps, to the neediest that can take one. */
static void hand_on(struct give *g, uint32_t n, uint32_t pool)
{
	while (pool) {
		uint32_t best = n;
		for (uint32_t i = 0; i < n; i++) {
			uint32_t to = next_step(&g->want[i], g->counts[i]);
			if (to && to <= g->cap[i] && to - g->counts[i] <= pool &&
				(best == n || before(g, i, best)))
				best = i;
		}
		if (best == n)
			return;
		uint32_t to = next_step(&g->want[best], g->counts[best]);
		pool -= to - g->counts[best];
		g->counts[best] = to;
	}
}

enum hd_err hd_wfs_counts(uint32_t n, const struct hd_want *want, uint32_t devices, struct hd_arena *arena,
	uint32_t *counts)
{
	struct give g = { .want = want, .counts = counts };
	uint64_t sum = 0;

	g.cap = hd_arena_take(arena, (size_t)n + 1, sizeof *g.cap);
	g.heap = hd_arena_take(arena, (size_t)n + 1, sizeof *g.heap);
	g.weight = hd_arena_take(arena, (size_t)n + 1, sizeof *g.weight);
	if (!g.cap || !g.heap || !g.weight)
		return HD_E_NOMEM;
	for (uint32_t i = 0; i < n; i++) {
		counts[i] = want[i].least;
		sum += want[i].least;
		g.cap[i] = cap_of(&want[i]);
		g.weight[i] = millionths(want[i].weight);
		if (g.cap[i] > counts[i])
			g.heap[g.n++] = i;
	}
	assert(sum <= devices);
	for (uint32_t at = g.n / 2; at-- > 0;)
		sink(&g, at);
	for (uint64_t left = devices - sum; left && g.n; left--) {
		uint32_t job = g.heap[0];
		if (++counts[job] == g.cap[job])
			g.heap[0] = g.heap[--g.n];
		if (g.n)
			sink(&g, 0);
		sum++;
	}
	hand_on(&g, n, (uint32_t)(devices - sum) + drop_idle(&g, n));
	return HD_OK;
}

/* ---- 2020 ---- */

struct share { const struct hd_want *want; uint32_t list, count; };        /* list: place in the list */

static int up(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->want->weight != y->want->weight)
		return x->want->weight < y->want->weight ? -1 : 1;
	return x->list < y->list ? -1 : 1;
}

static int down(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->want->weight != y->want->weight)
		return x->want->weight > y->want->weight ? -1 : 1;
	return x->list < y->list ? -1 : 1;
}

static int listed(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	return x->list < y->list ? -1 : 1;
}

static uint32_t power_below(double x)
{
	int e;

	(void)frexp(x < 1 ? 1 : x, &e);                   /* x = f 2^e, 0.5 <= f < 1 */
	return 1u << (e - 1);
}

/* Powers of two of the fair parts, halved in ascending order of weight until they fit. Leaves `todo` in
 * order of the list. */
static void halve(struct share *todo, uint32_t n, uint32_t free)
{
	double weights = 0;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		weights += todo[i].want->weight;
	for (uint32_t i = 0; i < n; i++)
		sum += todo[i].count = power_below(free * todo[i].want->weight / weights);
	qsort(todo, n, sizeof *todo, up);
	for (uint32_t i = 0; sum > free && i < n;)
		if (todo[i].count > 1) {
			todo[i].count /= 2;
			sum -= todo[i].count;
		} else {
			i++;
		}
	qsort(todo, n, sizeof *todo, listed);
}

static void double_up(struct share *all, uint32_t n, uint32_t free)
{
	qsort(all, n, sizeof *all, down);
	for (uint32_t i = 0; i < n && free; i++)
		while (free >= all[i].count && all[i].want->most >= 2 * (uint64_t)all[i].count) {
			free -= all[i].count;
			all[i].count *= 2;
		}
}

enum hd_err hd_wfs_2020_counts(uint32_t n, const struct hd_want *want, uint32_t devices,
	struct hd_arena *arena, uint32_t *counts)
{
	struct share *todo = hd_arena_take(arena, (size_t)n + 1, sizeof *todo),
		*all = hd_arena_take(arena, (size_t)n + 1, sizeof *all);
	uint32_t free = devices, left = n;

	if (!todo || !all)
		return HD_E_NOMEM;
	assert(n <= devices);
	for (uint32_t i = 0; i < n; i++)
		todo[i] = (struct share){ &want[i], i, 0 };
	while (left) {
		uint32_t kept = 0;
		halve(todo, left, free);
		for (uint32_t i = 0; i < left; i++)
			if (todo[i].count >= todo[i].want->most) {
				counts[todo[i].list] = todo[i].want->most;
				free -= todo[i].want->most;
			} else {
				todo[kept++] = todo[i];
			}
		if (kept == left)                                 /* no job reached its demand */
			break;
		left = kept;
	}
	for (uint32_t i = 0; i < left; i++) {
		counts[todo[i].list] = todo[i].count;
		free -= todo[i].count;
	}
	for (uint32_t i = 0; i < n; i++)
		all[i] = (struct share){ &want[i], i, counts[i] };
	double_up(all, n, free);
	for (uint32_t i = 0; i < n; i++)
		counts[all[i].list] = all[i].count;
	return HD_OK;
}
