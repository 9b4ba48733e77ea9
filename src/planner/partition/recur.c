#include "planner/partition/recur.h"

enum { WORD = 64 };

static void relax(const struct hd_recur *r, uint32_t k, uint32_t j, const double *from, const double *last,
	double *to)
{
	uint32_t machines = r->t->machines, most = hd_terms_most(r->t);
	double worst = 0;

	for (uint32_t x = 0; x < machines; x++)
		worst = hd_larger(worst, to[x]);
	for (uint32_t m = 1; m <= most; m++) {
		double term = last[m];
		if (!(term < worst))
			continue;
		if (r->t->how->memory_bytes > 0) {
			for (uint32_t x = m + 1; x <= machines; x++) {
				double v = hd_larger(from[x - m - 1], term);
				if (v < to[x - 1] && hd_terms_fits(r->t, k + 1, j, x, m))
					to[x - 1] = v;
			}
			continue;
		}
		double *restrict mine = to + m;
		for (uint32_t x = 0; x < machines - m; x++) {
			double v = hd_larger(from[x], term);
			mine[x] = v < mine[x] ? v : mine[x];
		}
	}
}

/* No term of this k can be below what the row has: T/m' is at least T/most. */
static bool hopeless(const struct hd_recur *r, uint32_t k, uint32_t j, const double *to)
{
	double least = hd_terms_time(r->t, k + 1, j) / (double)hd_terms_most(r->t);

	for (uint32_t x = 1; x < r->t->machines; x++)
		if (least < to[x])
			return false;
	return true;
}

static void fill(const struct hd_recur *r, uint32_t j, double *last)
{
	const struct hd_terms *t = r->t;
	const struct hd_cuts *c = t->cuts;
	uint32_t from = r->all ? 0 : r->row, to = r->all ? j : r->row, most = hd_terms_most(t);

	for (uint32_t i = from; i <= to; i++)
		for (uint32_t x = 1; x <= t->machines; x++)
			hd_recur_at(r, i, j)[x - 1] = hd_terms_one(t, i, j, x);
	for (uint32_t w = 0; w < c->words && t->machines > 1; w++)
		for (uint64_t left = c->pred[(size_t)j * c->words + w]; left; left &= left - 1) {
			uint32_t k = w * WORD + (uint32_t)__builtin_ctzll(left);
			if (k < from || (!r->all && (!hd_terms_may(t, r->row, k) ||
				hopeless(r, k, j, hd_recur_at(r, r->row, j)))))
				continue;
			for (uint32_t m = 1; m <= most; m++)
				last[m] = hd_terms_last(t, k, j, m);
			for (uint32_t i = from; i <= to && i <= k; i++)
				if (hd_terms_may(t, i, k))
					relax(r, k, j, hd_recur_at(r, i, k), last, hd_recur_at(r, i, j));
		}
	for (uint32_t i = from; i <= to && t->how->fewer; i++)
		for (uint32_t x = 1; x < t->machines && i < j; x++)
			if (hd_recur_at(r, i, j)[x - 1] < hd_recur_at(r, i, j)[x])
				hd_recur_at(r, i, j)[x] = hd_recur_at(r, i, j)[x - 1];
}

static enum hd_err run(struct hd_recur *r, size_t rows, struct hd_arena *arena)
{
	double *last = hd_arena_take(arena, (size_t)r->t->machines + 1, sizeof *last);

	r->at = hd_arena_take(arena, rows * r->t->machines, sizeof *r->at);
	if (!r->at || !last)
		return HD_E_NOMEM;
	for (uint32_t j = r->row; j < r->end; j++)
		fill(r, j, last);
	return HD_OK;
}

enum hd_err hd_recur_all(struct hd_recur *r, const struct hd_terms *t, struct hd_arena *arena)
{
	*r = (struct hd_recur){ .t = t, .all = true, .end = t->cuts->n };
	return run(r, (size_t)t->cuts->n * (t->cuts->n + 1) / 2, arena);
}

enum hd_err hd_recur_row(struct hd_recur *r, const struct hd_terms *t, uint32_t i, uint32_t last,
	struct hd_arena *arena)
{
	*r = (struct hd_recur){ .t = t, .row = i, .end = last + 1 };
	return run(r, t->cuts->n, arena);
}
