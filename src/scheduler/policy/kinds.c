/* Pairs by kind of job: a column says "job i on type j, beside some job of kind b" instead of naming it. n
 * jobs of A kinds need n (1 + A) m columns, not n^2 m / 2.
 *
 *	devices   such a column needs half of s_i
 *	balance   of kinds a != b of one scale, on each type: the time of jobs of a beside b = that of jobs of
 *	          b beside a
 *	own kind  one column for all jobs of the kind and type, equal for all of them; none where there is but
 *	one
 *
 * Back to pairs: gavel as published, x_ik = x_i,b x_k,a / S with S the time that b has beside a, and of one
 * kind all pairs alike. exact: jobs by id, the first of a beside the first of b until one of
 * them has had its time, and of one kind neighbours in a ring: as few pairs as there are jobs, with the same
 * time for each.
 *
 * Jobs are of one kind if they go equally fast alone, on equally many devices, and the table of pairs says
 * so, or their name where pairs are listed by jobs. Kinds pair where all their jobs would, equally fast:
 * where a list of pairs lacks one of them, or has another rate for it, these kinds stay apart on that type,
 * since a column that names no partner cannot promise that one is not met. */
#include <math.h>
#include <string.h>

#include "scheduler/policy/int.h"

static bool same_kind(const struct hd_sched_job *a, const struct hd_sched_job *b, uint32_t ntypes)
{
	if (a->scale != b->scale || memcmp(a->rate, b->rate, ntypes * sizeof *a->rate) != 0)
		return false;
	if (a->ikind != HD_SCHED_NONE || b->ikind != HD_SCHED_NONE)
		return a->ikind == b->ikind;
	return *a->kind && !strcmp(a->kind, b->kind);
}

static enum hd_err no_memory(const struct hd_policy_lp *pg) { return hd_fail(pg->diag, HD_E_NOMEM,
	"no memory for kinds of %u jobs", pg->seen->state->njobs); }

/* Jobs by kind, in order of their ids. */
static enum hd_err sort_out(struct hd_kinds *ks, const struct hd_policy_lp *pg)
{
	const struct hd_sched_state *s = pg->seen->state;
	uint32_t *of = hd_arena_take(pg->arena, s->njobs + 1, sizeof *of),
		*head = hd_arena_take(pg->arena, s->njobs + 1, sizeof *head), at = 0;

	ks->member = hd_arena_take(pg->arena, s->njobs + 1, sizeof *ks->member);
	ks->first = hd_arena_take(pg->arena, s->njobs + 2, sizeof *ks->first);
	if (!of || !head || !ks->member || !ks->first)
		return no_memory(pg);
	for (uint32_t i = 0; i < s->njobs; i++) {
		uint32_t k = 0;
		if (pg->seen->absent[i])
			continue;
		while (k < ks->n && !same_kind(&s->jobs[head[k]], &s->jobs[i], s->ntypes))
			k++;
		if (k == ks->n)
			head[ks->n++] = i;
		of[i] = k;
	}
	for (uint32_t k = 0; k < ks->n; k++) {
		ks->first[k] = at;
		for (uint32_t i = 0; i < s->njobs; i++)
			if (!pg->seen->absent[i] && of[i] == k)
				ks->member[at++] = i;
	}
	ks->first[ks->n] = at;
	return HD_OK;
}

static uint32_t count(const struct hd_kinds *ks, uint32_t k) { return ks->first[k + 1] - ks->first[k]; }

static bool rates(const struct hd_kinds *ks, const struct hd_policy_lp *pg, uint32_t a, uint32_t b,
	uint32_t type, double rate[2])
{
	const struct hd_sched_state *s = pg->seen->state;
	double other[2];

	if ((a == b && count(ks, a) < 2) || !hd_seen_pair(pg->seen, ks->member[ks->first[a]],
		ks->member[ks->first[b] + (a == b)], type, rate))
		return false;
	/* a table of pairs knows kinds alone */
	for (uint32_t q = 0; s->npairs && q < count(ks, a); q++)
		for (uint32_t r = a == b ? q + 1 : 0; r < count(ks, b); r++)
			if (!hd_seen_pair(pg->seen, ks->member[ks->first[a] + q],
				ks->member[ks->first[b] + r], type, other) ||
				memcmp(other, rate, sizeof other) != 0)
				return false;
	return true;
}

static enum hd_err room(struct hd_kinds *ks, const struct hd_policy_lp *pg, uint32_t *cap)
{
	uint32_t more = *cap ? 2 * *cap : 64;
	struct hd_kinds_group *group = ks->ngroups < *cap ? ks->group : hd_arena_take(pg->arena, more,
		sizeof *group);

	if (!group)
		return no_memory(pg);
	if (group != ks->group && ks->ngroups)
		memcpy(group, ks->group, ks->ngroups * sizeof *group);
	*cap = group != ks->group ? more : *cap;
	ks->group = group;
	return HD_OK;
}

/* The columns of kind `a` beside another in one group: their time is bound by `balance`. */
static enum hd_err beside(struct hd_policy_lp *pg, const struct hd_kinds *ks, uint32_t a, uint32_t type,
	double rate, uint32_t balance, double sign,
	uint32_t *first)
{
	const struct hd_sched_state *s = pg->seen->state;
	enum hd_err err = HD_OK;

	for (uint32_t q = 0; !err && q < count(ks, a); q++) {
		uint32_t i = ks->member[ks->first[a] + q], col;
		double zero = 0, inf = INFINITY;
		err = hd_program_cols(pg, 1, &zero, &inf, &zero, (uint32_t[]){ 0, 4 },
			(uint32_t[]){ pg->time_row[i], pg->promise_row[i], pg->cap_row[type], balance },
			(double[]){ 1, rate / pg->seen->p[i], 0.5 * s->jobs[i].scale, sign }, &col);
		*first = q ? *first : col;
	}
	return err;
}

static enum hd_err among(struct hd_policy_lp *pg, const struct hd_kinds *ks, uint32_t a, uint32_t type,
	double rate, uint32_t *col)
{
	uint32_t n = count(ks, a), *idx = hd_arena_take(pg->arena, 2 * (size_t)n + 1, sizeof *idx);
	double *val = hd_arena_take(pg->arena, 2 * (size_t)n + 1, sizeof *val), zero = 0, inf = INFINITY;

	if (!idx || !val)
		return no_memory(pg);
	for (uint32_t q = 0; q < n; q++) {
		uint32_t i = ks->member[ks->first[a] + q];
		idx[2 * q] = pg->time_row[i];
		val[2 * q] = 1;
		idx[2 * q + 1] = pg->promise_row[i];
		val[2 * q + 1] = rate / pg->seen->p[i];
	}
	idx[2 * n] = pg->cap_row[type];
	val[2 * n] = 0.5 * n * pg->seen->state->jobs[ks->member[ks->first[a]]].scale;
	return hd_program_cols(pg, 1, &zero, &inf, &zero, (uint32_t[]){ 0, 2 * n + 1 }, idx, val, col);
}

enum hd_err hd_kinds_open(struct hd_kinds *ks, struct hd_policy_lp *pg)
{
	const struct hd_sched_state *s = pg->seen->state;
	enum hd_err err = sort_out(ks, pg);
	uint32_t cap = 0;

	for (uint32_t a = 0; !err && a < ks->n; a++)
		for (uint32_t b = a; !err && b < ks->n; b++)
			for (uint32_t j = 0; !err && j < s->ntypes; j++) {
				struct hd_kinds_group g = { .a = a, .b = b, .type = j };
				uint32_t row = 0, none[2] = { 0, 0 };
				double zero = 0;
				if (s->types[j].n == 0 || s->jobs[ks->member[ks->first[a]]].scale !=
					s->jobs[ks->member[ks->first[b]]].scale ||
					!rates(ks, pg, a, b, j, g.rate))
					continue;
				err = room(ks, pg, &cap);
				if (err)
					break;
				if (a == b) {
					err = among(pg, ks, a, j, g.rate[0], &g.col[0]);
				} else {
					err = hd_program_rows(pg, 1, &zero, &zero, none, NULL, NULL, &row);
					if (!err)
						err = beside(pg, ks, a, j, g.rate[0], row, 1, &g.col[0]);
					if (!err)
						err = beside(pg, ks, b, j, g.rate[1], row, -1, &g.col[1]);
				}
				ks->group[ks->ngroups++] = g;
			}
	return err;
}

void hd_kinds_dear(const struct hd_kinds *ks, struct hd_policy_lp *pg)
{
	const struct hd_sched_state *s = pg->seen->state;
	double mean = 0;

	for (uint32_t j = 0; j < s->ntypes; j++)
		mean += s->types[j].price_usd_h / s->ntypes;
	for (uint32_t k = 0; k < ks->ngroups; k++) {
		const struct hd_kinds_group *g = &ks->group[k];
		double cost = -0.5 * s->jobs[ks->member[ks->first[g->a]]].scale * (mean > 0 ?
			s->types[g->type].price_usd_h / mean : 1) * (1 + 1e-6);
		if (g->a == g->b) {
			hd_lp_edit(pg->lp, HD_LP_COST, g->col[0], 0, cost * count(ks, g->a));
			continue;
		}
		for (int side = 0; side < 2; side++)
			for (uint32_t q = 0; q < count(ks, side ? g->b : g->a); q++)
				hd_lp_edit(pg->lp, HD_LP_COST, g->col[side] + q, 0, cost);
	}
}

/* ---- back to pairs ---- */

struct back { struct hd_collect collect; struct hd_policy_lp *pg; const struct hd_kinds *ks; bool gavel; };

static double time_of(const struct back *b, const struct hd_kinds_group *g, int side,
	uint32_t q) { return fmax(0, b->pg->last.x[g->col[side] + q]); }

static enum hd_err pair(struct back *b, const struct hd_kinds_group *g, uint32_t qa, uint32_t qb, double x)
{
	uint32_t i = b->ks->member[b->ks->first[g->a] + qa], k = b->ks->member[b->ks->first[g->b] + qb];
	struct hd_shape shape = hd_way_pair(b->pg->seen->state, i < k ? i : k, i < k ? k : i, g->type);

	return x < 1e-9 ? HD_OK : hd_collect(&b->collect, &shape, x);
}

static enum hd_err own(struct back *b, const struct hd_kinds_group *g)
{
	uint32_t n = count(b->ks, g->a);
	double x = time_of(b, g, 0, 0);
	enum hd_err err = HD_OK;

	for (uint32_t q = 0; !err && q < n; q++) {
		if (!b->gavel)
			err = n == 2 && q == 1 ? HD_OK : pair(b, g, q, (q + 1) % n, n == 2 ? x : x / 2);
		for (uint32_t r = q + 1; !err && b->gavel && r < n; r++)
			err = pair(b, g, q, r, x / (n - 1));
	}
	return err;
}

static enum hd_err product(struct back *b, const struct hd_kinds_group *g)
{
	double sum = 0;
	enum hd_err err = HD_OK;

	for (uint32_t r = 0; r < count(b->ks, g->b); r++)
		sum += time_of(b, g, 1, r);
	for (uint32_t q = 0; !err && sum > 0 && q < count(b->ks, g->a); q++)
		for (uint32_t r = 0; !err && r < count(b->ks, g->b); r++)
			err = pair(b, g, q, r, time_of(b, g, 0, q) * time_of(b, g, 1, r) / sum);
	return err;
}

static enum hd_err in_turn(struct back *b, const struct hd_kinds_group *g)
{
	uint32_t q = 0, r = 0, na = count(b->ks, g->a), nb = count(b->ks, g->b);
	double left = time_of(b, g, 0, 0), right = time_of(b, g, 1, 0);
	enum hd_err err = HD_OK;

	while (!err && q < na && r < nb) {
		double x = fmin(left, right);
		err = pair(b, g, q, r, x);
		left -= x;
		right -= x;
		if (left <= right)
			left = ++q < na ? time_of(b, g, 0, q) : 0;
		else
			right = ++r < nb ? time_of(b, g, 1, r) : 0;
	}
	return err;
}

enum hd_err hd_kinds_shares(const struct hd_kinds *ks, struct hd_policy_lp *pg, struct hd_shares *out)
{
	struct back b = { { out, (struct hd_shape *)out->shape, (double *)out->x, out->nshapes, pg->arena },
		pg, ks,
		pg->seen->set->fidelity == HD_FIDELITY_GAVEL };
	enum hd_err err = HD_OK;

	for (uint32_t k = 0; !err && k < ks->ngroups; k++) {
		const struct hd_kinds_group *g = &ks->group[k];
		err = g->a == g->b ? own(&b, g) : b.gavel ? product(&b, g) : in_turn(&b, g);
	}
	return err ? no_memory(pg) : HD_OK;
}

void hd_kinds_z(const struct hd_kinds *ks, const struct hd_policy_lp *pg, double *z)
{
	for (uint32_t k = 0; k < ks->ngroups; k++) {
		const struct hd_kinds_group *g = &ks->group[k];
		for (int side = 0; side < 1 + (g->a != g->b); side++)
			for (uint32_t q = 0; q < count(ks, side ? g->b : g->a); q++) {
				uint32_t i = ks->member[ks->first[side ? g->b : g->a] + q];
				z[i] += pg->last.x[g->col[side] + (g->a == g->b ? 0 : q)] *
					g->rate[side] / pg->seen->p[i];
			}
	}
}
