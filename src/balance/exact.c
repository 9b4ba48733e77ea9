/* The least line of one set, exactly.
 *
 * A state is (which workers of the set have their range, where the next begins); a move gives a worker of
 * some class the next v leaves. T is max cost + max(0, C - back), so for every bound on C (a value of
 * hd_solve_exchange()) and on back (a value of the tables) the least max cost of the moves that keep both is
 * found, and T is the least sum. Then, with max cost, C and back bounded by what T leaves them, the smallest
 * bound on roots and the least number of them. Cost of one walk: V^2 / 2 moves for each class and each
 * state of the set. */
#include <assert.h>
#include <stdlib.h>

#include "balance/solve_int.h"

#define NEVER INT64_MAX

struct cost_bound { int64_t exchange_ps, back_ps, cost_ps; uint32_t roots; };

struct exact_walk {
	const struct hd_solve_search *s;
	uint32_t n, nvns, nstates, *stride;       /* [classes] */
	int64_t *togo;                            /* [nstates * (V + 1)] */
	int64_t *exchange;                        /* [classes * (most roots + 1)] */
};

static bool may_take(const struct exact_walk *w, uint32_t state, uint32_t c)
{
	uint32_t used = w->s->used[c];

	return used && state / w->stride[c] % (used + 1) < used;
}

static uint32_t roots_at(const struct exact_walk *w, uint32_t first,
	uint32_t end) { return w->s->range_roots[(size_t)first * (w->nvns + 1) + end]; }

static bool keeps(const struct exact_walk *w, const struct cost_bound *b, uint32_t c, uint32_t first,
	uint32_t v)
{
	uint32_t roots = roots_at(w, first, first + v);

	return roots <= b->roots && w->s->class[c].cost.back_ps[v] >= b->back_ps &&
	       w->exchange[(size_t)c * (w->s->range_most + 1) + roots] <= b->exchange_ps;
}

static int64_t *at(const struct exact_walk *w, uint32_t state,
	uint32_t first) { return &w->togo[(size_t)state *
	(w->nvns + 1) + first]; }

/* Least max cost (by_roots: least roots) of all moves from here on. */
static int64_t move(const struct exact_walk *w, const struct cost_bound *b, uint32_t c, uint32_t state,
	uint32_t first,
	uint32_t v, bool by_roots)
{
	int64_t rest = *at(w, state + w->stride[c], first + v), cost = w->s->class[c].cost.ps[v];

	if (rest == NEVER || !keeps(w, b, c, first, v))
		return NEVER;
	if (by_roots)
		return rest + roots_at(w, first, first + v);
	return cost > rest ? cost : rest;
}

static int64_t least_from(const struct exact_walk *w, const struct cost_bound *b, uint32_t state,
	uint32_t first,
	bool by_roots)
{
	int64_t least = NEVER;

	for (uint32_t c = 0; c < w->s->nclasses; c++) {
		if (!may_take(w, state, c))
			continue;
		for (uint32_t v = 1; v <= w->nvns - first && w->s->class[c].cost.ps[v] <= b->cost_ps; v++) {
			int64_t got = move(w, b, c, state, first, v, by_roots);
			least = got < least ? got : least;
		}
	}
	return least;
}

static int64_t walk_all(const struct exact_walk *w, const struct cost_bound *b, bool by_roots)
{
	for (uint32_t first = 0; first <= w->nvns; first++)
		*at(w, w->nstates - 1, first) = first == w->nvns ? 0 : NEVER;
	for (uint32_t state = w->nstates - 1; state-- > 0;) {
		*at(w, state, w->nvns) = NEVER;
		for (uint32_t first = 0; first < w->nvns; first++)
			*at(w, state, first) = least_from(w, b, state, first, by_roots);
	}
	return *at(w, 0, 0);
}

static int64_t exposed(const struct cost_bound *b) { return b->exchange_ps > b->back_ps ?
	b->exchange_ps - b->back_ps : 0; }

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static uint32_t distinct(int64_t *value, uint32_t n)
{
	uint32_t m = 0;

	qsort(value, n, sizeof *value, compare);
	for (uint32_t i = 0; i < n; i++)
		if (!m || value[m - 1] != value[i])
			value[m++] = value[i];
	return m;
}

static uint32_t exchanges(const struct exact_walk *w, int64_t *value)
{
	uint32_t n = 0;

	for (uint32_t c = 0; c < w->s->nclasses; c++)
		for (uint32_t r = 1; w->s->used[c] && r <= w->s->range_most; r++)
			value[n++] = w->exchange[(size_t)c * (w->s->range_most + 1) + r];
	return distinct(value, n);
}

static uint32_t backs(const struct exact_walk *w, int64_t *value)
{
	uint32_t n = 0;

	for (uint32_t c = 0; c < w->s->nclasses; c++)
		for (uint32_t v = 1; w->s->used[c] && v <= w->nvns &&
			w->s->class[c].cost.ps[v] != HD_VN_NEVER; v++)
			value[n++] = w->s->class[c].cost.back_ps[v];
	return distinct(value, n);
}

/* All pairs of bounds that can matter: with nothing exposed, only the smallest bound on back. */
static uint32_t bounds(const struct exact_walk *w, struct cost_bound *out, int64_t *exchange, int64_t *back)
{
	uint32_t nexchanges = exchanges(w, exchange), nbacks = backs(w, back), n = 0;

	for (uint32_t e = 0; e < nexchanges; e++)
		for (uint32_t b = 0; b < nbacks; b++) {
			out[n++] = (struct cost_bound){ exchange[e], back[b], 0, w->s->range_most };
			if (back[b] >= exchange[e])
				break;
		}
	return n;
}

/* T of the set, and for each pair the max cost that T leaves to it (below 0: none). */
static int64_t least_step(const struct exact_walk *w, struct cost_bound *pair, uint32_t npairs,
	int64_t floor_ps)
{
	int64_t limit = w->s->found ? w->s->best.step_ps : NEVER, step = NEVER;

	for (uint32_t i = 0; i < npairs; i++) {
		int64_t e = exposed(&pair[i]);
		pair[i].cost_ps = limit == NEVER ? NEVER - 1 : limit - e;
		if (pair[i].cost_ps < floor_ps)
			continue;
		int64_t cost = walk_all(w, &pair[i], false);
		if (cost != NEVER && cost + e < step)
			step = cost + e;
		limit = step < limit ? step : limit;
	}
	for (uint32_t i = 0; i < npairs; i++)
		pair[i].cost_ps = step == NEVER ? -1 : step - exposed(&pair[i]);
	return step;
}

/* The pair with the least roots, under the smallest bound on them that some pair can keep. */
static const struct cost_bound *least_roots(const struct exact_walk *w, struct cost_bound *pair,
	uint32_t npairs,
	struct hd_solve_line *line, int64_t floor_ps)
{
	struct cost_bound *best = NULL;
	int64_t least = NEVER;

	for (uint32_t roots = 1; !best && roots <= w->s->range_most; roots++)
		for (uint32_t i = 0; i < npairs; i++) {
			pair[i].roots = roots;
			int64_t got = pair[i].cost_ps < floor_ps ? NEVER : walk_all(w, &pair[i], true);
			if (got < least) {
				least = got;
				best = &pair[i];
			}
		}
	assert(best);
	line->most_roots = best->roots;
	line->roots = (uint32_t)least;
	return best;
}

/* Lower classes first, larger counts first. */
static void read_line(const struct exact_walk *w, const struct cost_bound *b, struct hd_solve_line *line)
{
	uint32_t state = 0, first = 0;

	walk_all(w, b, true);
	for (line->n = 0; state != w->nstates - 1; line->n++) {
		bool taken = false;
		for (uint32_t c = 0; c < w->s->nclasses && !taken; c++)
			for (uint32_t v = w->nvns - first; v >= 1 && !taken && may_take(w, state, c); v--) {
				if (w->s->class[c].cost.ps[v] > b->cost_ps ||
					move(w, b, c, state, first, v, true) != *at(w, state, first))
					continue;
				line->class_of[line->n] = c;
				line->count[line->n] = v;
				state += w->stride[c];
				first += v;
				taken = true;
			}
		assert(taken);
	}
}

static bool take(struct exact_walk *w, struct hd_solve_line *line, struct cost_bound **pair,
	int64_t **exchange,
	int64_t **back)
{
	const struct hd_solve_search *s = w->s;
	size_t nexchanges = (size_t)s->nclasses * s->range_most, nbacks = (size_t)s->nclasses * w->nvns;

	w->nstates = 1;
	w->stride = hd_arena_take(s->scratch, s->nclasses, sizeof *w->stride);
	for (uint32_t c = 0; w->stride && c < s->nclasses; c++) {
		w->stride[c] = w->nstates;
		w->nstates *= s->used[c] + 1;
		w->n += s->used[c];
	}
	w->togo = hd_arena_take(s->scratch, (size_t)w->nstates * (w->nvns + 1), sizeof *w->togo);
	w->exchange = hd_arena_take(s->scratch, (size_t)s->nclasses * (s->range_most + 1),
		sizeof *w->exchange);
	*exchange = hd_arena_take(s->scratch, nexchanges, sizeof **exchange);
	*back = hd_arena_take(s->scratch, nbacks, sizeof **back);
	*pair = *back ? hd_arena_take(s->scratch, nexchanges * nbacks, sizeof **pair) : NULL;
	line->class_of = hd_arena_take(s->scratch, w->n, sizeof *line->class_of);
	line->count = hd_arena_take(s->scratch, w->n, sizeof *line->count);
	return w->stride && w->togo && w->exchange && *exchange && *back && *pair && line->class_of &&
		line->count;
}

enum hd_err hd_solve_exactly(struct hd_solve_search *s, int64_t floor_ps)
{
	struct exact_walk w = { .s = s, .nvns = s->ask->nvns };
	struct hd_solve_line line = { 0 };
	struct cost_bound *pair;
	int64_t *exchange, *back;

	if (!take(&w, &line, &pair, &exchange, &back))
		return hd_fail(s->diag, HD_E_NOMEM, "no memory to search the maps of %u members", w.n);
	for (uint32_t c = 0; c < s->nclasses; c++)
		for (uint32_t r = 1; r <= s->range_most; r++)
			w.exchange[(size_t)c * (s->range_most + 1) + r] = hd_solve_exchange(s->ask,
				s->class[c].bytes_per_s, r, w.n);
	uint32_t npairs = bounds(&w, pair, exchange, back);
	line.n = w.n;
	line.step_ps = least_step(&w, pair, npairs, floor_ps);
	if (line.step_ps == NEVER || (s->found && (line.step_ps > s->best.step_ps ||
		(line.step_ps == s->best.step_ps && line.n > s->best.n))))
		return HD_OK;
	const struct cost_bound *best = least_roots(&w, pair, npairs, &line, floor_ps);
	read_line(&w, best, &line);
	return hd_solve_better(s, &line) ? hd_solve_keep(s, &line) : HD_OK;
}
