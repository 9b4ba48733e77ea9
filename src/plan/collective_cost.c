#include "plan/collective_cost.h"

#include <math.h>
#include <string.h>

#include "base/bits.h"

enum { ALPHA, BETA, GAMMA, OVERHEAD, INCAST };      /* of terms; INCAST: of beta (incast - 1) */

/* Loopback and a lan, roughly: what is fitted or read takes their place. */
static const struct hd_collective_costs unknown[HD_COLLECTIVE_LINKS] = {
	[HD_COLLECTIVE_LOCAL] = { 20000, 0.5, 0.2, 1000, 1 },
	[HD_COLLECTIVE_REMOTE] = { 100000, 8, 0.2, 2000, 1.5 },
};

void hd_collective_table_init(struct hd_collective_table *table)
{
	memcpy(table->link, unknown, sizeof table->link);
	for (uint32_t k = 0; k < HD_COLLECTIVE_COUNT; k++)
		for (uint32_t c = 0; c < HD_COLLECTIVE_CLASSES; c++)
			table->ratio[k][c] = 1;
}

uint32_t hd_collective_class(uint64_t bytes)
{
	uint32_t class = hd_floor_log2(bytes ? bytes : 1);
	return class < HD_COLLECTIVE_CLASSES ? class : HD_COLLECTIVE_CLASSES - 1;
}

/* ---- the formulas, as terms ---- */

static double roots_of(const struct hd_collective_shape *s) { return s->roots > 1 ? s->roots : 1; }

static void owned(double *t, const struct hd_collective_shape *s, double n, double owners)
{
	double p = s->p, r = roots_of(s), bytes = (1 + r) * p / owners * (p - 1) / p * n;

	t[ALPHA] = 2;
	t[OVERHEAD] = 2 * (p - 1);
	t[BETA] = t[INCAST] = bytes;
	t[GAMMA] = (p * r - 1) / owners * n;
}

static void direct(double *t, const struct hd_collective_shape *s, double n) { owned(t, s, n, s->p); }
static void owner(double *t, const struct hd_collective_shape *s, double n)
{
	owned(t, s, n, s->owners ? s->owners : 1);
}

/* Folding, and what is left of p. */
static uint32_t folded(double *t, uint32_t p, double n)
{
	uint32_t folds = hd_collective_folds(p);

	t[ALPHA] = 2 * folds;
	t[BETA] = 2 * folds * n;
	t[GAMMA] = folds * n;
	return (p + (1u << folds) - 1) >> folds;
}

static void halving(double *t, const struct hd_collective_shape *s, double n)
{
	uint32_t left = folded(t, s->p, n);
	double q = left;

	t[ALPHA] += 2 * hd_floor_log2(left);
	t[BETA] += 2 * (q - 1) / q * n;
	t[GAMMA] += (q - 1) / q * n;
}

static void doubling(double *t, const struct hd_collective_shape *s, double n)
{
	double rounds = hd_floor_log2(folded(t, s->p, n));

	t[ALPHA] += rounds;
	t[BETA] += rounds * n;
	t[GAMMA] += rounds * n;
}

static void ring(double *t, const struct hd_collective_shape *s, double n)
{
	double p = s->p;

	t[ALPHA] = 2 * (p - 1);
	t[BETA] = 2 * (p - 1) / p * n;
	t[GAMMA] = (p - 1) / p * n;
}

static void tree(double *t, const struct hd_collective_shape *s, double n)
{
	double k = s->segments ? s->segments : 1, rounds = 2 * hd_floor_log2(s->p) + k - 1;

	t[ALPHA] = rounds;
	t[BETA] = 2 * rounds * n / k;
	t[GAMMA] = rounds * n / k;
}

static void (*const formulas[HD_COLLECTIVE_COUNT])(double *t, const struct hd_collective_shape *s,
	double n) = {
	[HD_COLLECTIVE_DIRECT] = direct, [HD_COLLECTIVE_OWNER] = owner, [HD_COLLECTIVE_HALVING] = halving,
	[HD_COLLECTIVE_DOUBLING] = doubling, [HD_COLLECTIVE_RING] = ring, [HD_COLLECTIVE_TREE] = tree,
};

void hd_collective_terms(double t[HD_COLLECTIVE_TERMS], enum hd_collective kind,
	const struct hd_collective_shape *shape, double bytes)
{
	memset(t, 0, HD_COLLECTIVE_TERMS * sizeof *t);
	if (shape->p > 1)
		formulas[kind](t, shape, bytes);
}

static double priced(const double *t, const struct hd_collective_costs *c)
{
	return t[ALPHA] * c->alpha_ns + t[BETA] * c->beta_ns + t[GAMMA] * c->gamma_ns +
		t[OVERHEAD] * c->overhead_ns + t[INCAST] * c->beta_ns * (c->incast - 1);
}

static double one_link(enum hd_collective kind, const struct hd_collective_shape *shape, double n,
	const struct hd_collective_costs *c)
{
	double t[HD_COLLECTIVE_TERMS];

	hd_collective_terms(t, kind, shape, n);
	return priced(t, c);
}

double hd_collective_predict(enum hd_collective kind, const struct hd_collective_shape *shape, uint64_t bytes,
	const struct hd_collective_costs *inside, const struct hd_collective_costs *outside)
{
	struct hd_collective_shape in = { .p = shape->node, .roots = shape->roots },
		out = { .p = shape->node ? shape->p / shape->node : 0 };

	if (kind != HD_COLLECTIVE_HIERARCHICAL)
		return one_link(kind, shape, (double)bytes, outside);
	return one_link(HD_COLLECTIVE_DIRECT, &in, (double)bytes, inside) +
		one_link(HD_COLLECTIVE_DIRECT, &out, (double)bytes / (shape->node ? shape->node : 1),
			outside);
}

uint32_t hd_collective_segments(const struct hd_collective_costs *c, uint32_t p, uint64_t bytes,
	uint32_t most)
{
	struct hd_collective_shape fewer = { .p = p, .segments = 1 }, more = fewer;
	double h = p > 1 ? hd_floor_log2(p) : 0, per = 2 * c->beta_ns + c->gamma_ns,
		k = c->alpha_ns > 0 ? sqrt((2 * h - 1) * (double)bytes * per / c->alpha_ns) : most;

	fewer.segments = !(k > 1) ? 1 : k < most ? (uint32_t)k : most;
	more.segments = fewer.segments < most ? fewer.segments + 1 : most;
	return hd_collective_predict(HD_COLLECTIVE_TREE, &more, bytes, c, c) <
		hd_collective_predict(HD_COLLECTIVE_TREE, &fewer, bytes, c, c) ? more.segments
			: fewer.segments;
}

/* ---- choosing ---- */

double hd_collective_expect(const struct hd_collective_table *table, enum hd_collective kind,
	const struct hd_collective_shape *shape, uint64_t bytes)
{
	double ratio = table->ratio[kind][hd_collective_class(bytes)];
	enum hd_collective_link outside = shape->node >= shape->p ? HD_COLLECTIVE_LOCAL
		: HD_COLLECTIVE_REMOTE;

	return ratio < 0 ? -1 : ratio * hd_collective_predict(kind, shape, bytes,
		&table->link[HD_COLLECTIVE_LOCAL], &table->link[outside]);
}

enum hd_collective hd_collective_choose(const struct hd_collective_table *table,
	const struct hd_collective_shape *shape, uint64_t bytes, double *ns)
{
	enum hd_collective best = HD_COLLECTIVE_DIRECT;

	*ns = hd_collective_expect(table, best, shape, bytes);
	for (uint32_t i = best + 1; i < HD_COLLECTIVE_COUNT; i++) {
		double other = hd_collective_expect(table, (enum hd_collective)i, shape, bytes);
		if (other < 0 || other >= *ns || hd_collective_check((enum hd_collective)i, shape, NULL))
			continue;
		best = (enum hd_collective)i;
		*ns = other;
	}
	return best;
}

void hd_collective_refine(struct hd_collective_table *table, const struct hd_collective_sample *s)
{
	double *ratio = &table->ratio[s->kind][hd_collective_class(s->bytes)],
		expected = hd_collective_expect(table, s->kind, &s->shape, s->bytes);

	if (*ratio < 0 || !(expected > 0) || !(s->ns > 0))
		return;
	double moved = 0.9 * *ratio + 0.1 * (s->ns / (expected / *ratio));
	*ratio = moved < 0.125 ? 0.125 : moved > 8 ? 8 : moved;
}
