/* The strategy-proof policy (Cole, Gkatzelis and Goel, "Mechanism design for fair division", EC 2013): maximise the product of what jobs
 * get, then take from each as much as its presence takes from the others. Nobody gains by lying about its speeds, whose price is
 * that devices are left idle: the discounts are not handed on.
 *
 *	z*      = arg max sum_i w_i log z_i                        a geometric mean: scaling z_i by s_i / w_i changes nothing
 *	f_i     = prod_(k != i) (z*_k / z*_k(without i)) ^ (w_k / w_i)
 *	z_i     = f_i z*_i
 *
 * gavel: all w are 1, as published, and shares are those of the solver times f_i. exact: weights count, and of all shares that give z*
 * those of fewest and cheapest devices.
 *
 * log is replaced by tangents, u_i <= log t + (z_i - t) / t, more of them at each solution, until the program's bound is within HD_NEAR
 * of what the solution is worth. Tangents hold for whoever is there: the n programs without one job begin with all that were found.
 * No job gets less than its part w_i / sum w of what it would have alone: the product is no smaller than with z' of one job alone.
 * So z_i has a lower bound above 0, and tangents are at finite slopes. */
#include <math.h>

#include "cluster/policy/int.h"

enum { HD_TANGENTS = 12, HD_TURNS = 60 };         /* at the start, by job; programs of one optimum */
#define HD_NEAR 1e-9                              /* of sum w log z, by sum w */

struct nash {
	struct hd_seen seen;
	struct hd_arena *arena;
	struct hd_diag *diag;
	struct hd_lp *lp;
	uint32_t nx, ncols, nrows;
	uint32_t *job, *type;                     /* [nx] of a column of shares */
	uint32_t *zcol, *ucol;                    /* [njobs] */
	double *w, *lo, *top, weight;             /* [njobs]; sum of w */
	double *z, *x;                            /* [njobs], [nx] of the last optimum */
	struct hd_lp_result last;
	uint32_t nlps, iterations;
	double gap;
	bool cut;                                 /* an optimum was not reached in HD_TURNS */
};

enum hd_err hd_nash_init(struct hd_policy *policy, struct hd_diag *diag) { (void)policy, (void)diag; return HD_OK; }
void hd_nash_finish(struct hd_policy *policy) { (void)policy; }

static enum hd_err no_memory(struct nash *n) { return hd_fail(n->diag, HD_E_NOMEM, "no memory for %u jobs", n->seen.state->njobs); }

/* The most that the job can have alone: whole time on its fastest type that is large enough for a part of it. */
static double alone(const struct hd_seen *seen, uint32_t job)
{
	const struct hd_sched_state *s = seen->state;
	double left = 1, sum = 0, done[HD_SCHED_TYPES] = { 0 };

	while (left > 0) {
		uint32_t best = HD_SCHED_NONE;
		for (uint32_t j = 0; j < s->ntypes; j++)
			if (!(done[j] > 0) && hd_seen_rate(seen, job, j) > (best == HD_SCHED_NONE ? 0 : hd_seen_rate(seen, job, best)))
				best = j;
		if (best == HD_SCHED_NONE)
			break;
		double part = fmin(left, (double)s->types[best].n / s->jobs[job].scale);
		done[best] = 1;
		sum += part * hd_seen_rate(seen, job, best);
		left -= part;
	}
	return sum / seen->p[job];
}

static enum hd_err memory_of(struct nash *n)
{
	const struct hd_sched_state *s = n->seen.state;
	double **doubles[] = { &n->w, &n->lo, &n->top, &n->z };

	for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
		if (!(*doubles[i] = hd_arena_take(n->arena, s->njobs + 1, sizeof(double))))
			return no_memory(n);
	n->zcol = hd_arena_take(n->arena, s->njobs + 1, sizeof *n->zcol);
	n->ucol = hd_arena_take(n->arena, s->njobs + 1, sizeof *n->ucol);
	n->job = hd_arena_take(n->arena, (size_t)s->njobs * s->ntypes + 1, sizeof *n->job);
	n->type = hd_arena_take(n->arena, (size_t)s->njobs * s->ntypes + 1, sizeof *n->type);
	n->lp = hd_lp_new(true);
	return n->zcol && n->ucol && n->job && n->type && n->lp ? HD_OK : no_memory(n);
}

/* Rows: time and z_i - sum gain x = 0 of each job, then devices of each type. */
static enum hd_err rows(struct nash *n)
{
	const struct hd_sched_state *s = n->seen.state;
	enum hd_err err = HD_OK;
	const uint32_t none[2] = { 0, 0 };

	for (uint32_t i = 0; !err && i < s->njobs; i++)
		for (int r = 0; !err && r < 2; r++) {
			double lo = r ? 0 : -INFINITY, hi = r ? 0 : 1;
			err = hd_lp_rows(n->lp, 1, &lo, &hi, none, NULL, NULL);
		}
	for (uint32_t j = 0; !err && j < s->ntypes; j++) {
		double lo = -INFINITY, hi = s->types[j].n;
		err = hd_lp_rows(n->lp, 1, &lo, &hi, none, NULL, NULL);
	}
	n->nrows = 2 * s->njobs + s->ntypes;
	return err ? no_memory(n) : HD_OK;
}

static enum hd_err columns(struct nash *n)
{
	const struct hd_sched_state *s = n->seen.state;
	double zero = 0, inf = INFINITY, least = -INFINITY;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; !err && i < s->njobs; i++)
		for (uint32_t j = 0; !err && j < s->ntypes; j++) {
			double rate = n->seen.absent[i] ? 0 : hd_seen_rate(&n->seen, i, j);
			if (!(rate > 0))
				continue;
			n->job[n->nx] = i;
			n->type[n->nx++] = j;
			err = hd_lp_cols(n->lp, 1, &zero, &inf, &zero, (uint32_t[]){ 0, 3 }, (uint32_t[]){ 2 * i, 2 * i + 1, 2 * s->njobs + j },
				(double[]){ 1, -rate / n->seen.p[i], s->jobs[i].scale });
		}
	n->ncols = n->nx;
	if (!(n->x = hd_arena_take(n->arena, n->nx + 1, sizeof *n->x)))
		return no_memory(n);
	for (uint32_t i = 0; !err && i < s->njobs; i++) {
		if (n->seen.absent[i])
			continue;
		n->zcol[i] = n->ncols++;
		err = hd_lp_cols(n->lp, 1, &n->lo[i], &n->top[i], &zero, (uint32_t[]){ 0, 1 }, (uint32_t[]){ 2 * i + 1 }, (double[]){ 1 });
		n->ucol[i] = n->ncols++;
		if (!err)
			err = hd_lp_cols(n->lp, 1, &least, &inf, &n->w[i], NULL, NULL, NULL);
	}
	return err ? no_memory(n) : HD_OK;
}

/* u - z / t <= log t - 1, in units of t: z / t is around 1. */
static enum hd_err tangent(struct nash *n, uint32_t job, double t)
{
	double lo = -INFINITY, hi = log(t) - 1;

	n->nrows++;
	return hd_lp_rows(n->lp, 1, &lo, &hi, (uint32_t[]){ 0, 2 }, (uint32_t[]){ n->ucol[job], n->zcol[job] }, (double[]){ 1, -1 / t }) ? no_memory(n) :
		HD_OK;
}

static enum hd_err open(struct nash *n, bool weights)
{
	const struct hd_sched_state *s = n->seen.state;
	enum hd_err err = memory_of(n);

	for (uint32_t i = 0; !err && i < s->njobs; i++)
		if (!n->seen.absent[i])
			n->weight += n->w[i] = weights ? s->jobs[i].weight : 1;
	for (uint32_t i = 0; !err && i < s->njobs; i++)
		if (!n->seen.absent[i]) {
			n->top[i] = alone(&n->seen, i);
			n->lo[i] = n->top[i] * n->w[i] / n->weight * (1 - 1e-6);
		}
	if (!err)
		err = rows(n);
	if (!err)
		err = columns(n);
	for (uint32_t i = 0; !err && i < s->njobs; i++)
		for (int k = 0; !err && k < HD_TANGENTS && !n->seen.absent[i]; k++)
			err = tangent(n, i, n->lo[i] * pow(n->top[i] / n->lo[i], (k + 0.5) / HD_TANGENTS));
	return err;
}

static enum hd_err solve_once(struct nash *n)
{
	const struct hd_lp_limits limits = { .iterations = n->seen.set->lp_iterations, .gap = n->seen.set->lp_gap };
	enum hd_err err = hd_lp_solve(n->lp, &limits, &n->last);

	n->nlps++;
	n->iterations += n->last.iterations;
	if (err)
		return no_memory(n);
	if (n->last.status != HD_LP_OPTIMAL)
		return hd_fail(n->diag, HD_E_AGAIN, "a program of the product: %s", hd_lp_status_text(n->last.status));
	n->gap = fmax(n->gap, n->last.gap);
	return HD_OK;
}

/* The optimum without job `out` (HD_SCHED_NONE: of all); z into n->z, its sum of w log z into *best. */
static enum hd_err optimum(struct nash *n, uint32_t out, double *best)
{
	const struct hd_sched_state *s = n->seen.state;
	enum hd_err err = HD_OK;

	*best = -INFINITY;
	for (int turn = 0; !err && turn < HD_TURNS; turn++) {
		double worth = 0;
		err = solve_once(n);
		if (err)
			return err;
		for (uint32_t i = 0; i < s->njobs; i++)
			worth += n->seen.absent[i] || i == out ? 0 : n->w[i] * log(n->last.x[n->zcol[i]]);
		for (uint32_t i = 0; worth > *best && i < s->njobs; i++)
			n->z[i] = n->seen.absent[i] ? 0 : n->last.x[n->zcol[i]];
		for (uint32_t k = 0; worth > *best && k < n->nx; k++)
			n->x[k] = n->last.x[k];
		*best = fmax(*best, worth);
		if (n->last.objective - *best <= HD_NEAR * n->weight)
			return HD_OK;
		/* the arrays of `last` are of this program until the next solve: rows may come meanwhile */
		for (uint32_t i = 0; !err && i < s->njobs; i++) {
			if (n->seen.absent[i] || i == out)
				continue;
			double z = n->last.x[n->zcol[i]], u = n->last.x[n->ucol[i]];
			if (u - log(z) > HD_NEAR / 2)
				err = tangent(n, i, z);
		}
	}
	n->cut = true;
	return err;
}

/* Job i leaves (or comes back): no shares, no z, no worth. */
static void absent(struct nash *n, uint32_t i, bool gone)
{
	for (uint32_t k = 0; k < n->nx; k++)
		if (n->job[k] == i)
			hd_lp_edit(n->lp, HD_LP_COLUMN, k, 0, gone ? 0 : INFINITY);
	hd_lp_edit(n->lp, HD_LP_COLUMN, n->zcol[i], gone ? 0 : n->lo[i], n->top[i]);
	hd_lp_edit(n->lp, HD_LP_COST, n->ucol[i], 0, gone ? 0 : n->w[i]);
}

/* f_i = exp((what the others have of sum w log z with i there, less their optimum without it) / w_i). */
static enum hd_err discounts(struct nash *n, const double *z, double *f)
{
	const struct hd_sched_state *s = n->seen.state;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; !err && i < s->njobs; i++) {
		double with = 0, without;
		f[i] = 1;
		if (n->seen.absent[i] || n->seen.npresent == 1)
			continue;
		for (uint32_t k = 0; k < s->njobs; k++)
			with += n->seen.absent[k] || k == i ? 0 : n->w[k] * log(z[k]);
		absent(n, i, true);
		err = optimum(n, i, &without);
		absent(n, i, false);
		f[i] = fmin(1, exp((with - without) / n->w[i]));
	}
	return err;
}

static enum hd_err as_solved(struct nash *n, const double *x, const double *f, struct hd_shares *out)
{
	struct hd_collect c = { .out = out, .arena = n->arena };
	enum hd_err err = HD_OK;

	for (uint32_t k = 0; !err && k < n->nx; k++) {
		struct hd_shape shape = hd_way_single(n->seen.state, n->job[k], n->type[k]);
		if (x[k] * f[n->job[k]] >= 1e-9)
			err = hd_collect(&c, &shape, x[k] * f[n->job[k]]);
	}
	return err ? no_memory(n) : HD_OK;
}

/* Fewest and cheapest devices that give everyone z, then f of them: the discount must hit what the optimum gives, or a lie could pay. */
static enum hd_err settled(struct nash *n, const struct hd_policy *policy, const double *z, const double *f, struct hd_shares *out)
{
	struct hd_program pg = { 0 };
	enum hd_err err = hd_program_open(&pg, &n->seen, n->arena, n->diag);

	for (uint32_t i = 0; !err && i < n->seen.state->njobs; i++)
		if (!n->seen.absent[i])
			hd_program_promise(&pg, i, z[i] * (1 - 1e-9));
	if (!err)
		err = hd_program_settle(&pg, policy, out);
	double *x = err ? NULL : hd_arena_take(n->arena, out->nshapes + 1, sizeof *x);
	for (uint32_t k = 0; x && k < out->nshapes; k++)
		x[k] = out->x[k] * f[out->shape[k].member[0]];
	if (!err && !x)
		err = no_memory(n);
	out->x = x;
	hd_program_close(&pg);
	out->nlps += n->nlps;
	out->iterations += n->iterations;
	out->gap = fmax(out->gap, n->gap);
	return err;
}

enum hd_err hd_nash_allocate(struct hd_policy *policy, const struct hd_sched_state *state, struct hd_arena *arena, struct hd_shares *out,
	struct hd_diag *diag)
{
	struct nash n = { .arena = arena, .diag = diag };
	bool exact = policy->set.fidelity == HD_FIDELITY_EXACT;
	double *f = hd_arena_take(arena, state->njobs + 1, sizeof *f), *z = hd_arena_take(arena, state->njobs + 1, sizeof *z), *x = NULL;
	enum hd_err err = f && z ? hd_see(&n.seen, policy, state, HD_FLAT_ONE, arena, diag) : hd_fail(diag, HD_E_NOMEM, "no memory for %u jobs", state->njobs);

	if (err)
		return err;
	if (n.seen.npresent == 0) {
		out->objective = 0;
		return HD_OK;
	}
	err = open(&n, exact);
	if (!err)
		err = optimum(&n, HD_SCHED_NONE, &out->objective);
	x = err ? NULL : hd_arena_take(arena, n.nx, sizeof *x);
	if (!err && !x)
		err = no_memory(&n);
	for (uint32_t k = 0; !err && k < n.nx; k++)
		x[k] = n.x[k];
	for (uint32_t i = 0; !err && i < state->njobs; i++)
		z[i] = n.z[i];
	if (!err)
		err = discounts(&n, z, f);
	if (!err)
		err = exact ? settled(&n, policy, z, f, out) : as_solved(&n, x, f, out);
	out->cut |= n.cut;
	if (!exact) {
		out->nlps = n.nlps;
		out->iterations = n.iterations;
		out->gap = n.gap;
	}
	hd_lp_free(n.lp);
	return err;
}
