#include "balance/arrange.h"

#include <assert.h>

#include "base/bits.h"

uint32_t hd_range_roots(uint32_t nvns, uint32_t first, uint32_t end)
{
	uint32_t n = 0, to;

	for (uint32_t at = first; at < end; at = to, n++) {
		struct hd_tnode node = { 0, at };
		uint32_t from, up_to = at + 1;
		while (!(node.index & 1) && node.level < hd_tree_height(nvns)) {
			struct hd_tnode up = { node.level + 1, node.index / 2 };
			hd_tree_cover(nvns, up, &from, &up_to);
			if (up_to > end)
				break;
			node = up;
		}
		hd_tree_cover(nvns, node, &from, &to);
	}
	return n;
}

/* What is placed is known by how many of each distinct count are: a number in mixed radix; so is where the
 * next range begins. `left` is the least number of roots of all that is not placed, from the full state
 * down. */
struct arrange_search {
	uint32_t nvns, first, ncounts, nstates;
	/* [ncounts] distinct counts, in the order of their first item */
	uint32_t *count, *have, *stride;
	uint32_t *left;
};
#define NEVER UINT32_MAX

static uint32_t begins(const struct arrange_search *s, uint32_t state)
{
	uint32_t at = s->first;

	for (uint32_t c = 0; c < s->ncounts; c++)
		at += state / s->stride[c] % (s->have[c] + 1) * s->count[c];
	return at;
}

/* Roots of all that is still to be placed if count c comes next and no range has more than `most`. */
static uint32_t with(const struct arrange_search *s, uint32_t state, uint32_t at, uint32_t c, uint32_t most)
{
	if (state / s->stride[c] % (s->have[c] + 1) == s->have[c])
		return NEVER;
	uint32_t roots = hd_range_roots(s->nvns, at, at + s->count[c]), rest = s->left[state + s->stride[c]];
	return roots > most || rest == NEVER ? NEVER : roots + rest;
}

static bool solve(struct arrange_search *s, uint32_t most)
{
	s->left[s->nstates - 1] = 0;
	for (uint32_t state = s->nstates - 1; state-- > 0;) {
		uint32_t at = begins(s, state), least = NEVER;
		for (uint32_t c = 0; c < s->ncounts; c++) {
			uint32_t roots = with(s, state, at, c, most);
			least = roots < least ? roots : least;
		}
		s->left[state] = least;
	}
	return s->left[0] != NEVER;
}

static uint32_t index_of(const struct arrange_search *s, uint32_t count)
{
	for (uint32_t c = 0; c < s->ncounts; c++)
		if (s->count[c] == count)
			return c;
	return s->ncounts;
}

/* Distinct counts and their product; false if there are too many states. */
static bool describe(struct arrange_search *s, const uint32_t *count, uint32_t n)
{
	uint64_t states = 1;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t c = index_of(s, count[i]);
		if (!count[i])
			continue;
		if (c == s->ncounts)
			s->count[s->ncounts++] = count[i];
		s->have[c]++;
	}
	for (uint32_t c = 0; c < s->ncounts; c++) {
		s->stride[c] = (uint32_t)states;
		states *= s->have[c] + 1;
		if (states > HD_ARRANGE_EXACT)
			return false;
	}
	s->nstates = (uint32_t)states;
	return true;
}

/* The earliest item that is not placed and whose count keeps the optimum. */
static uint32_t next_item(const struct arrange_search *s, uint32_t state, uint32_t most,
	const uint32_t *count,
	uint32_t n, const uint8_t *placed)
{
	uint32_t at = begins(s, state), want = s->left[state];

	for (uint32_t i = 0; i < n; i++)
		if (count[i] && !placed[i] && with(s, state, at, index_of(s, count[i]), most) == want)
			return i;
	assert(false);
	return n;
}

static void order_exactly(struct arrange_search *s, const uint32_t *count, uint32_t n, uint32_t *order,
	uint8_t *placed)
{
	uint32_t most = 1, state = 0, done = 0;

	while (!solve(s, most))
		most++;
	while (state != s->nstates - 1) {
		uint32_t i = next_item(s, state, most, count, n, placed);
		placed[i] = 1;
		order[done++] = i;
		state += s->stride[index_of(s, count[i])];
	}
	for (uint32_t i = 0; i < n; i++)
		if (!count[i])
			order[done++] = i;
}

static bool before(uint32_t a, uint32_t b)
{
	uint32_t za = a ? (uint32_t)__builtin_ctz(a) : 0, zb = b ? (uint32_t)__builtin_ctz(b) : 0;

	return za != zb && a && b ? za > zb : a > b;
}

static void order_by_sorting(const uint32_t *count, uint32_t n, uint32_t *order)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = i;
		while (at && before(count[i], count[order[at - 1]])) {
			order[at] = order[at - 1];
			at--;
		}
		order[at] = i;
	}
}

enum hd_err hd_arrange(uint32_t nvns, uint32_t first, const uint32_t *count, uint32_t n, uint32_t *order,
	struct hd_arranged *out,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct arrange_search s = { .nvns = nvns, .first = first, .count = hd_arena_take(arena, (size_t)n + 1,
		sizeof *s.count),
		.have = hd_arena_take(arena, (size_t)n + 1, sizeof *s.have),
		.stride = hd_arena_take(arena, (size_t)n + 1, sizeof *s.stride) };
	uint8_t *placed = hd_arena_take(arena, (size_t)n + 1, sizeof *placed);
	struct hd_arranged made = { 0 };
	uint64_t end = first;

	for (uint32_t i = 0; i < n; i++)
		end += count[i];
	if (n > HD_ARRANGE_MOST || end > nvns)
		return hd_fail(diag, HD_E_INVAL, "%u ranges (up to %d) up to virtual node %llu of %u", n,
			HD_ARRANGE_MOST, (unsigned long long)end, nvns);
	if (!s.count || !s.have || !s.stride || !placed)
		return hd_fail(diag, HD_E_NOMEM, "no memory to arrange %u ranges", n);
	made.exact = describe(&s, count, n);
	if (made.exact) {
		s.left = hd_arena_take(arena, s.nstates, sizeof *s.left);
		if (!s.left)
			return hd_fail(diag, HD_E_NOMEM, "no memory to arrange %u ranges", n);
		order_exactly(&s, count, n, order, placed);
	} else {
		order_by_sorting(count, n, order);
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t roots = hd_range_roots(nvns, first, first + count[order[i]]);
		first += count[order[i]];
		made.most = roots > made.most ? roots : made.most;
		made.total += roots;
	}
	*out = made;
	return HD_OK;
}
