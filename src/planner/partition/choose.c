#include "planner/partition/choose.h"

enum { WORD = 64 };
static const struct hd_merit none = { UINT32_MAX, 0 };

struct chooser {
	const struct hd_terms *t;
	uint32_t row, machines;
	double bound;
	struct hd_merit *best;             /* [cut][x - 1] */
};

/* The machines m' that the last stage k+1..j may have, ascending. */
static uint32_t allowed(const struct chooser *c, uint32_t k, uint32_t j, uint32_t *m)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i <= hd_terms_most(c->t) && i < c->machines; i++)
		if (hd_terms_last(c->t, k, j, i) <= c->bound)
			m[n++] = i;
	return n;
}

/* What comes of a last stage k+1..j on m of x machines. */
static struct hd_merit after(const struct chooser *c, uint32_t k, uint32_t j, uint32_t x, uint32_t m)
{
	struct hd_merit before = c->best[(size_t)k * c->t->machines + x - m - 1];

	if (before.stages == UINT32_MAX || !hd_terms_fits(c->t, k + 1, j, x, m))
		return none;
	return (struct hd_merit){ before.stages + 1, before.out + c->t->cuts->out[k] };
}

static bool leads(const struct chooser *c, uint32_t k, uint32_t j)
{
	return hd_cuts_precede(c->t->cuts, k, j) && hd_terms_may(c->t, c->row, k);
}

static void fill(const struct chooser *c, uint32_t j, uint32_t *m)
{
	struct hd_merit *mine = c->best + (size_t)j * c->t->machines;

	for (uint32_t x = 1; x <= c->machines; x++)
		mine[x - 1] = hd_terms_one(c->t, c->row, j, x) <= c->bound ? (struct hd_merit){ 1, 0 } : none;
	for (uint32_t k = c->row; k < j; k++) {
		uint32_t n = leads(c, k, j) ? allowed(c, k, j, m) : 0;
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t x = m[i] + 1; x <= c->machines; x++) {
				struct hd_merit merit = after(c, k, j, x, m[i]);
				if (hd_merit_less(merit, mine[x - 1]))
					mine[x - 1] = merit;
			}
	}
}

/* The earliest cut, then the fewest machines, that give the best merit of (j, x). */
static bool step_back(const struct chooser *c, uint32_t *j, uint32_t *x, uint32_t *m,
	struct hd_part_stage *stage)
{
	struct hd_merit want = c->best[(size_t)*j * c->t->machines + *x - 1];

	for (uint32_t k = c->row; k < *j; k++) {
		uint32_t n = leads(c, k, *j) ? allowed(c, k, *j, m) : 0;
		for (uint32_t i = 0; i < n && m[i] < *x; i++)
			if (hd_merit_same(after(c, k, *j, *x, m[i]), want)) {
				*stage = (struct hd_part_stage){ k + 1, *j, m[i], NULL };
				*j = k;
				*x -= m[i];
				return true;
			}
	}
	return false;
}

enum hd_err hd_part_choose(struct hd_part_split *split, const struct hd_terms *t, uint32_t i, uint32_t j,
	uint32_t x, double bound, struct hd_arena *arena)
{
	struct chooser c = { t, i, x, bound, hd_arena_take(arena, (size_t)(j + 1) * t->machines,
		sizeof *c.best) };
	uint32_t *m = hd_arena_take(arena, (size_t)t->machines + 1, sizeof *m);

	if (!c.best || !m)
		return HD_E_NOMEM;
	for (uint32_t to = i; to <= j; to++)
		fill(&c, to, m);
	uint32_t n = c.best[(size_t)j * t->machines + x - 1].stages;
	if (n == UINT32_MAX)
		return HD_E_BUG;
	*split = (struct hd_part_split){ n, bound, hd_arena_take(arena, n, sizeof *split->stage) };
	if (!split->stage)
		return HD_E_NOMEM;
	for (uint32_t s = n; s-- > 1;)
		if (!step_back(&c, &j, &x, m, &split->stage[s]))
			return HD_E_BUG;
	split->stage[0] = (struct hd_part_stage){ i, j, x, NULL };
	return HD_OK;
}
