#include "plan/collective.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"

static const struct { const char *word; bool canonical; } kinds[] = {
#define X(id, number, word, canonical) [number] = { word, canonical },
	HD_COLLECTIVES(X)
#undef X
};

const char *hd_collective_word(enum hd_collective kind) { return kinds[kind].word; }
bool hd_collective_is_canonical(enum hd_collective kind) { return kinds[kind].canonical; }

bool hd_collective_find(const char *word, enum hd_collective *kind)
{
	for (uint32_t i = 0; i < HD_COLLECTIVE_COUNT; i++)
		if (!strcmp(word, kinds[i].word)) {
			*kind = (enum hd_collective)i;
			return true;
		}
	return false;
}

/* ---- what may be ---- */

static enum hd_err check_nodes(const struct hd_collective_shape *shape, struct hd_diag *diag)
{
	if (shape->node >= 2 && hd_is_pow2(shape->node) && shape->p % shape->node == 0)
		return HD_OK;
	return hd_fail(diag, HD_E_BADPLAN,
		"hierarchical: %u ranks in nodes of %u; it wants equal nodes of 2, 4, 8, "
		"... ranks; take direct", shape->p, shape->node);
}

enum hd_err hd_collective_check(enum hd_collective kind, const struct hd_collective_shape *shape,
	struct hd_diag *diag)
{
	const char *word = hd_collective_word(kind);
	bool paired = kind == HD_COLLECTIVE_HALVING || kind == HD_COLLECTIVE_DOUBLING ||
		kind == HD_COLLECTIVE_HIERARCHICAL;

	if (!shape->p || shape->p > HD_COLLECTIVE_RANKS)
		return hd_fail(diag, HD_E_BADPLAN, "%s: %u ranks; 1 to %d can sum", word, shape->p,
			HD_COLLECTIVE_RANKS);
	if (!hd_collective_is_canonical(kind) && !shape->fast)
		return hd_fail(diag, HD_E_BADPLAN,
			"%s adds in another order than the canonical tree, so bits differ, and sums "
			"of other bits were not asked for", word);
	if (paired && shape->ragged)
		return hd_fail(diag, HD_E_BADPLAN,
			"%s: the virtual nodes of each worker are not one aligned block, as "
			"its pairs of partial sums need; take direct", word);
	if (kind == HD_COLLECTIVE_OWNER && shape->owners > shape->p)
		return hd_fail(diag, HD_E_BADPLAN, "owner: %u owners among %u ranks", shape->owners,
			shape->p);
	if (kind == HD_COLLECTIVE_TREE && shape->segments > HD_COLLECTIVE_SEGMENTS)
		return hd_fail(diag, HD_E_BADPLAN, "tree: %u segments; at most %d", shape->segments,
			HD_COLLECTIVE_SEGMENTS);
	return kind == HD_COLLECTIVE_HIERARCHICAL ? check_nodes(shape, diag) : HD_OK;
}

bool hd_collective_aligned(uint32_t nvns, const uint32_t *first, const uint32_t *end, uint32_t p)
{
	uint32_t block = p ? end[0] - first[0] : 0;

	if (!p || first[0] || end[p - 1] != nvns || (p > 1 && !hd_is_pow2(block)))
		return false;
	for (uint32_t i = 1; i < p; i++) {
		uint32_t size = end[i] - first[i];
		if (first[i] != end[i - 1] || !size || size > block || (size < block && i + 1 < p))
			return false;
	}
	return true;
}

uint32_t hd_collective_folds(uint32_t p)
{
	uint32_t n = 0;

	for (; !hd_is_pow2(p); p = (p + 1) / 2)
		n++;
	return n;
}

/* ---- lists of moves ---- */

/* Counts first, then writes: `move` is NULL while it counts. */
struct moves_out { struct hd_collective_move *move; uint32_t n, round; uint64_t len; };

static void put(struct moves_out *w, uint32_t from, uint32_t to, uint64_t first, uint64_t end, bool add)
{
	if (first == end || from == to)
		return;
	if (w->move)
		w->move[w->n] = (struct hd_collective_move){ first, end, w->round, (uint16_t)from,
			(uint16_t)to, add };
	w->n++;
}

/* Where part i of n parts of [first, end) begins; part n begins at the end. */
static uint64_t part_at(uint64_t first, uint64_t end, uint32_t i, uint32_t n)
{
	return first + (end - first) / n * i + (end - first) % n * i / n;
}

/* Ranks base, base + stride, ..: n of them; the first `owners` own a part each of [first, end). */
struct group { uint32_t base, stride, n, owners; uint64_t first, end; };

/* Each gives each owner the operands of its part; or, back, each owner gives each the sum. */
static void group_moves(struct moves_out *w, const struct group *g, bool back)
{
	for (uint32_t owner = 0; owner < g->owners; owner++)
		for (uint32_t other = 0; other < g->n; other++) {
			uint32_t a = g->base + other * g->stride, b = g->base + owner * g->stride;
			put(w, back ? b : a, back ? a : b, part_at(g->first, g->end, owner, g->owners),
				part_at(g->first, g->end, owner + 1, g->owners), !back);
		}
}

static void owned(struct moves_out *w, uint32_t p, uint32_t owners)
{
	struct group all = { 0, 1, p, owners, 0, w->len };

	group_moves(w, &all, false);
	w->round++;
	group_moves(w, &all, true);
	w->round++;
}

static void direct(struct moves_out *w, const struct hd_collective_shape *s) { owned(w, s->p, s->p); }
static void owner(struct moves_out *w, const struct hd_collective_shape *s)
{
	owned(w, s->p, s->owners ? s->owners : 1);
}

static void hierarchical(struct moves_out *w, const struct hd_collective_shape *s)
{
	uint32_t nnodes = s->p / s->node;

	for (uint32_t leg = 0; leg < 4; leg++, w->round++) {
		bool inside = leg == 0 || leg == 3, back = leg >= 2;
		for (uint32_t i = 0; i < (inside ? nnodes : s->node); i++) {
			struct group g = inside ? (struct group){ i * s->node, 1, s->node, s->node, 0,
				w->len }
				: (struct group){ i, s->node, nnodes, nnodes, part_at(0, w->len, i, s->node),
				part_at(0, w->len, i + 1, s->node) };
			group_moves(w, &g, back);
		}
	}
}

/* Of the p ranks those are left that are multiples of 2^folds: the n-th is n << folds. */
static void fold(struct moves_out *w, uint32_t p, uint32_t folds)
{
	for (uint32_t f = 0; f < folds; f++, w->round++)
		for (uint32_t r = 1u << f; r < p; r += 2u << f)
			put(w, r, r - (1u << f), 0, w->len, true);
}

static void unfold(struct moves_out *w, uint32_t p, uint32_t folds)
{
	for (uint32_t f = folds; f-- > 0; w->round++)
		for (uint32_t r = 1u << f; r < p; r += 2u << f)
			put(w, r - (1u << f), r, 0, w->len, false);
}

static void doubling(struct moves_out *w, const struct hd_collective_shape *s)
{
	uint32_t folds = hd_collective_folds(s->p), left = (s->p + (1u << folds) - 1) >> folds;

	fold(w, s->p, folds);
	for (uint32_t far = 1; far < left; far *= 2, w->round++)
		for (uint32_t a = 0; a < left; a++)
			put(w, a << folds, (a ^ far) << folds, 0, w->len, true);
	unfold(w, s->p, folds);
}

/* What rank a keeps after it has halved with neighbours 1 .. below `far` away. */
static void half_of(uint64_t len, uint32_t a, uint32_t far, uint64_t *first, uint64_t *end)
{
	*first = 0;
	*end = len;
	for (uint32_t bit = 1; bit < far; bit *= 2) {
		uint64_t mid = *first + (*end - *first) / 2;
		*(a & bit ? first : end) = mid;
	}
}

static void halving(struct moves_out *w, const struct hd_collective_shape *s)
{
	uint32_t folds = hd_collective_folds(s->p), left = (s->p + (1u << folds) - 1) >> folds;
	uint64_t first, end;

	fold(w, s->p, folds);
	for (uint32_t far = 1; far < left; far *= 2, w->round++)
		for (uint32_t a = 0; a < left; a++) {
			half_of(w->len, a ^ far, far * 2, &first, &end);
			put(w, a << folds, (a ^ far) << folds, first, end, true);
		}
	for (uint32_t far = left / 2; far >= 1; far /= 2, w->round++)
		for (uint32_t a = 0; a < left; a++) {
			half_of(w->len, a, far * 2, &first, &end);
			put(w, a << folds, (a ^ far) << folds, first, end, false);
		}
	unfold(w, s->p, folds);
}

static void ring(struct moves_out *w, const struct hd_collective_shape *s)
{
	uint32_t p = s->p;

	for (uint32_t t = 0; t < 2 * (p - 1); t++, w->round++)
		for (uint32_t r = 0; r < p; r++) {
			uint32_t part = (r + 2 * p - t) % p;      /* added up while t < p - 1 */
			put(w, r, (r + 1) % p, part_at(0, w->len, part, p), part_at(0, w->len, part + 1, p),
				t < p - 1);
		}
}

/* Rank r has the children 2 r + 1 and 2 r + 2. Segment i leaves a rank of depth d in round i + deepest - d,
 * and is sent down to its children in round i + deepest + d. */
static void tree(struct moves_out *w, const struct hd_collective_shape *s)
{
	uint32_t segments = s->segments ? s->segments : 1, deepest = hd_floor_log2(s->p);

	for (; w->round < 2 * deepest + segments - 1 && deepest; w->round++)
		for (uint32_t r = 1; r < s->p; r++) {
			uint32_t up = (r - 1) / 2, d = hd_floor_log2(r + 1), i = w->round + d - deepest;
			if (w->round + d >= deepest && i < segments)
				put(w, r, up, part_at(0, w->len, i, segments), part_at(0, w->len, i + 1,
					segments), true);
			i = w->round - deepest - (d - 1);
			if (w->round >= deepest + d - 1 && i < segments)
				put(w, up, r, part_at(0, w->len, i, segments), part_at(0, w->len, i + 1,
					segments), false);
		}
}

static void (*const lists[HD_COLLECTIVE_COUNT])(struct moves_out *w, const struct hd_collective_shape *s) = {
	[HD_COLLECTIVE_DIRECT] = direct, [HD_COLLECTIVE_OWNER] = owner, [HD_COLLECTIVE_HALVING] = halving,
	[HD_COLLECTIVE_DOUBLING] = doubling, [HD_COLLECTIVE_HIERARCHICAL] = hierarchical,
	[HD_COLLECTIVE_RING] = ring, [HD_COLLECTIVE_TREE] = tree,
};

enum hd_err hd_collective_schedule(struct hd_collective_schedule *schedule, enum hd_collective kind,
	const struct hd_collective_shape *shape, uint64_t len, struct hd_arena *arena, struct hd_diag *diag)
{
	struct moves_out count = { .len = len }, write = { .len = len };

	enum hd_err err = hd_collective_check(kind, shape, diag);
	if (err)
		return err;
	lists[kind](&count, shape);
	write.move = hd_arena_take(arena, count.n + 1, sizeof *write.move);
	if (!write.move)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u moves", count.n);
	lists[kind](&write, shape);
	*schedule = (struct hd_collective_schedule){ write.move, write.n, write.round };
	return HD_OK;
}
