/* testing_oracle.h -- for tests: what a policy promises, as linear programs built straight from the state.
 * They share with the code under test the state and its rule of absence (sched_state.h), and the solver,
 * whose answers are certified by lp.h.
 *
 * One question is one program over singles and, if asked, all pairs that are worth their device:
 *
 *	max c + sum_i worth_i e_i per_j - sum_j price_j used_j      e_i >= lo_i + g_i c, time and devices
 *
 * with e_i in steps/s; no share of a type with fewer devices than a job needs, unless `parts` asks for the
 * published form. Where `soft` is given, what e_i lacks of need_i costs usd_i a step. */
#ifndef HD_SCHEDULER_POLICY_TESTING_ORACLE_H
#define HD_SCHEDULER_POLICY_TESTING_ORACLE_H

#include "scheduler/lp.h"
#include "scheduler/policy/testing.h"

enum { ORACLE_SOFT = 2 };

struct oracle {
	const struct hd_sched_state *s;
	const double *rate;                       /* [njobs * ntypes] as the variant sees it */
	bool pairs, parts;
	const double *g;                          /* [njobs]; NULL: no level */
	const double *lo;                         /* [njobs]; NULL: 0 */
	const double *worth, *per, *price;        /* [njobs], [ntypes], [ntypes]; NULL: 0, 1, 0 */
	const double *need[ORACLE_SOFT], *usd[ORACLE_SOFT];      /* [njobs]; NULL: none */
};

enum oracle_rates { ORACLE_HETERO, ORACLE_ONE, ORACLE_V100 };

static inline const double *oracle_rates(const struct hd_sched_state *s, enum oracle_rates as)
{
	double *rate = hd_arena_take(&arena, (size_t)s->njobs * s->ntypes, sizeof *rate);

	for (uint32_t i = 0; i < s->njobs; i++) {
		double v100 = 0;
		for (uint32_t j = 0; j < s->ntypes; j++)
			v100 = strcmp(s->types[j].name, "v100") ? v100 : s->jobs[i].rate[j];
		for (uint32_t j = 0; j < s->ntypes; j++)
			rate[i * s->ntypes + j] = !(s->jobs[i].rate[j] > 0) ? 0 : as == ORACLE_HETERO ?
				s->jobs[i].rate[j] : as == ORACLE_ONE ? 1 : v100;
	}
	return rate;
}

/* sum_j T N / sum_j N; 1 of absent jobs, and where all T are taken for 1. */
static inline double oracle_p(const struct hd_sched_state *s, enum oracle_rates as, uint32_t i)
{
	double sum = 0, n = 0;

	for (uint32_t j = 0; j < s->ntypes; j++) {
		sum += s->jobs[i].rate[j] * s->types[j].n;
		n += s->types[j].n;
	}
	return as == ORACLE_HETERO && !hd_sched_absent(s, i) ? sum / n : 1;
}

static inline void oracle_columns(const struct oracle *o, struct hd_lp *lp)
{
	const struct hd_sched_state *s = o->s;
	uint32_t n = s->njobs, m = s->ntypes;
	double zero = 0, inf = INFINITY;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < m; j++) {
			double rate = hd_sched_absent(s, i) ? 0 : o->rate[i * m + j],
				scale = s->jobs[i].scale;
			double cost = (o->worth ? o->worth[i] : 0) * rate * (o->per ? o->per[j] : 1) -
				(o->price ? o->price[j] : 0) * scale;
			uint32_t idx[] = { i, n + i, 2 * n + j, 2 * n + m + i, 3 * n + m + i };
			if (rate > 0 && (o->parts || is_whole(s, i, j)))
				assert_int_equal(hd_lp_cols(lp, 1, &zero, &inf, &cost, (uint32_t[]){ 0, 5 },
					idx,
					(double[]){ 1, rate, scale, rate, rate }), HD_OK);
		}
	for (uint32_t k = 0; o->pairs && k < s->npairs; k++)
		for (uint32_t j = 0; j < m; j++) {
			const struct hd_sched_pair *q = &s->pairs[k];
			const struct hd_sched_job *a = &s->jobs[q->a], *b = &s->jobs[q->b];
			double x = q->rate[0][j], y = q->rate[1][j], scale = a->scale;
			bool worth_it = a->rate[j] > 0 && b->rate[j] > 0 && x > 0 && y > 0 &&
				x / a->rate[j] + y / b->rate[j] >= 1;
			double cost = o->worth ? (o->worth[q->a] * x + o->worth[q->b] * y) * (o->per ?
				o->per[j] : 1) : 0;
			if (worth_it && (o->parts || is_whole(s, q->a, j)) && !hd_sched_absent(s, q->a) &&
				!hd_sched_absent(s, q->b))
				assert_int_equal(hd_lp_cols(lp, 1, &zero, &inf, &cost, (uint32_t[]){ 0, 5 },
					(uint32_t[]){ q->a, q->b, n + q->a, n + q->b, 2 * n + j },
					(double[]){ 1, 1, x, y, scale }), HD_OK);
		}
}

/* The objective, NAN where there is no such share. */
static inline double oracle_best(const struct oracle *o)
{
	const struct hd_sched_state *s = o->s;
	uint32_t n = s->njobs, m = s->ntypes, nrows = 4 * n + m,
		*idx = hd_arena_take(&arena, nrows + 1, sizeof *idx), used = 0;
	double *lo = hd_arena_take(&arena, nrows, sizeof *lo), *hi = hd_arena_take(&arena, nrows, sizeof *hi),
		*val = hd_arena_take(&arena, nrows, sizeof *val);
	double zero = 0, inf = INFINITY, one = 1, objective = NAN;
	struct hd_lp *lp = hd_lp_new(true);
	struct hd_lp_result r;

	for (uint32_t i = 0; i < n; i++) {                        /* rows: time, e, devices, what is soft */
		lo[i] = -INFINITY;
		hi[i] = 1;
		lo[n + i] = hd_sched_absent(s, i) ? -INFINITY : o->lo ? o->lo[i] : 0;
		for (uint32_t k = 0; k < ORACLE_SOFT; k++)
			lo[2 * n + m + k * n + i] = o->need[k] &&
				!hd_sched_absent(s, i) ? o->need[k][i] : -INFINITY;
	}
	for (uint32_t k = n; k < nrows; k++)
		hi[k] = INFINITY;
	for (uint32_t j = 0; j < m; j++) {
		lo[2 * n + j] = -INFINITY;
		hi[2 * n + j] = s->types[j].n;
	}
	assert_int_equal(hd_lp_rows(lp, nrows, lo, hi, idx, NULL, NULL), HD_OK);
	oracle_columns(o, lp);
	for (uint32_t k = 0; k < ORACLE_SOFT; k++)
		for (uint32_t i = 0; o->need[k] && i < n; i++) {
			double cost = -o->usd[k][i];
			assert_int_equal(hd_lp_cols(lp, 1, &zero, &inf, &cost, (uint32_t[]){ 0, 1 },
				(uint32_t[]){ 2 * n + m + k * n + i }, &one), HD_OK);
		}
	for (uint32_t i = 0; o->g && i < n; i++)
		if (!hd_sched_absent(s, i) && o->g[i] > 0) {
			idx[used] = n + i;
			val[used++] = -o->g[i];
		}
	if (o->g && used)
		assert_int_equal(hd_lp_cols(lp, 1, &zero, &inf, &one, (uint32_t[]){ 0, used }, idx, val),
			HD_OK);
	assert_int_equal(hd_lp_solve(lp, NULL, &r), HD_OK);
	CHECK(r.status == HD_LP_OPTIMAL || r.status == HD_LP_INFEASIBLE, "%s", hd_lp_status_text(r.status));
	if (r.status == HD_LP_OPTIMAL)
		objective = r.objective;
	hd_lp_free(lp);
	return objective;
}

/* ---- filling by the book: raise all, then ask of each by a program of its own whether it can still rise
 * ---- */

struct oracle_fill { const struct oracle *o; bool entities; int kind; double *z, *p, *g, *lo; bool *final; };

/* Whether the job is not final and lies within the entity, at whatever depth. */
static inline bool oracle_is_in(const struct oracle_fill *f, uint32_t job, uint32_t entity)
{
	const struct hd_sched_state *s = f->o->s;
	uint32_t at = s->jobs[job].entity == HD_SCHED_NONE ? 0 : s->jobs[job].entity + 1;

	while (at && at - 1 != entity)
		at = s->entities[at - 1].within;
	return at && !f->final[job];
}

/* What part of the entity is that of one of those in it: a job of its own (job) or an entity there (!job). */
static inline double oracle_part(const struct oracle_fill *f, uint32_t entity, bool job, uint32_t which)
{
	const struct hd_sched_state *s = f->o->s;
	int kind = f->kind ? f->kind - 1 : (int)s->entities[entity].kind;
	double sum = 0;

	if (kind == HD_ENTITY_FIFO) {
		uint32_t oldest = 0;
		while (!oracle_is_in(f, oldest, entity))
			oldest++;
		return job ? oldest == which : oracle_is_in(f, oldest, which);
	}
	for (uint32_t k = 0; k < s->njobs; k++)
		if (s->jobs[k].entity == entity && !f->final[k])
			sum += s->jobs[k].weight;
	for (uint32_t e = 0; e < s->nentities; e++) {
		bool any = false;
		for (uint32_t k = 0; k < s->njobs; k++)
			any |= oracle_is_in(f, k, e);
		sum += any && s->entities[e].within == entity + 1 ? s->entities[e].weight : 0;
	}
	return (job ? s->jobs[which].weight : s->entities[which].weight) / sum;
}

/* Speeds of jobs that are not final: weight over scale; of entities their weight, in parts on the way to the
 * job. */
static inline bool oracle_speeds(struct oracle_fill *f)
{
	const struct hd_sched_state *s = f->o->s;
	bool any = false;

	for (uint32_t i = 0; i < s->njobs; i++) {
		uint32_t e = s->jobs[i].entity;
		double w = s->jobs[i].weight;
		if (f->entities && e != HD_SCHED_NONE && !f->final[i]) {
			w = oracle_part(f, e, true, i);
			for (; s->entities[e].within; e = s->entities[e].within - 1)
				w *= oracle_part(f, s->entities[e].within - 1, false, e);
			w *= s->entities[e].weight;
		}
		f->g[i] = f->final[i] ? 0 : w / s->jobs[i].scale;
		any |= f->g[i] > 0;
	}
	return any;
}

/* z of each job, lexicographically largest. */
static inline double *oracle_filled(const struct hd_sched_state *s, enum oracle_rates as, bool pairs,
	bool parts, bool entities, int kind)
{
	struct oracle o = { .s = s, .rate = oracle_rates(s, as), .pairs = pairs, .parts = parts };
	uint32_t n = s->njobs;
	struct oracle_fill f = { &o, entities, kind, hd_arena_take(&arena, n, sizeof(double)),
		hd_arena_take(&arena, n, sizeof(double)),
		hd_arena_take(&arena, n, sizeof(double)), hd_arena_take(&arena, n, sizeof(double)),
		hd_arena_take(&arena, n, sizeof(bool)) };
	double *g = hd_arena_take(&arena, n, sizeof *g), *one = hd_arena_take(&arena, n, sizeof *one);

	for (uint32_t i = 0; i < n; i++) {
		f.p[i] = oracle_p(s, as, i);
		f.final[i] = hd_sched_absent(s, i);
	}
	while (oracle_speeds(&f)) {
		uint32_t least = HD_SCHED_NONE;
		double rise = INFINITY;
		for (uint32_t i = 0; i < n; i++) {
			g[i] = f.g[i] * f.p[i];
			f.lo[i] = f.z[i] * f.p[i] * (1 - 1e-10);
		}
		o.g = g;
		o.lo = f.lo;
		double c = oracle_best(&o);
		CHECK(!isnan(c), "a level that cannot be had");
		for (uint32_t i = 0; i < n; i++) {
			f.z[i] += c * f.g[i];
			f.lo[i] = f.z[i] * f.p[i] * (1 - 1e-9);
		}
		o.g = NULL;
		for (uint32_t i = 0; i < n; i++) {
			if (!(f.g[i] > 0))
				continue;
			memset(one, 0, n * sizeof *one);
			one[i] = 1 / f.p[i];
			o.worth = one;
			double most = oracle_best(&o);
			one[i] = 0;
			o.worth = NULL;
			double by = (most - f.z[i]) / fmax(1, f.z[i]);
			f.final[i] = by < 1e-6;           /* what the others' slack lets it have */
			least = by < rise ? i : least;
			rise = fmin(by, rise);
		}
		/* somebody must be: all were raised as far as they could be */
		f.final[least] = true;
		CHECK(rise < 1e-5, "a level that stops no job: job %u could rise by %g", least, rise);
	}
	return f.z;
}

#endif
