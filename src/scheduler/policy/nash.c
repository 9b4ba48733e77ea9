/* The strategy-proof policy (Cole, Gkatzelis and Goel, "Mechanism design for fair division", EC 2013):
 * maximise the product of what jobs get, then take from each as much as its presence takes from the others.
 * No job gains by lying about its speeds; the price is that devices are left idle: the discounts are not
 * handed on.
 *
 *	z*      = arg max sum_i w_i log z_i                        a geometric mean: scaling z_i by s_i / w_i
 *	                                                           changes nothing
 *	f_i     = prod_(k != i) (z*_k / z*_k(without i)) ^ (w_k / w_i)
 *	z_i     = f_i z*_i
 *
 * gavel: all w are 1, as published, and shares are those of the optimum times f_i. exact: weights count, and
 * of all shares that give z* those of fewest and cheapest devices.
 *
 * Each of the n + 1 optima is found from inside (primal-dual, Boyd and Vandenberghe, "Convex Optimization",
 * 11.7): shares x > 0 with slacks t of time and r of devices > 0, prices v, u, y of the three, x v = t u = r
 * y = mu while mu falls. A Newton step is a system of one block of m by m a job and one row a type over all:
 * O(n m^3) for n jobs of m types, and 20 to 40 steps whatever n is.
 *
 * Certificate: for any prices y, u >= 0 no allocation's sum of w log z is above
 *
 *	sum_j N_j y_j + sum_i u_i + w_i log(w_i max_j g_ij / (s_i y_j + u_i)) - w_i
 *
 * where a job spends w_i on what is the most for its money. What that is above the shares found, by sum w, is
 * the answer's `gap`: HD_NEAR is aimed at, doubles reach some 1e-8 where thousands share, and above HD_LP_GAP
 * the answer is said to be cut. */
#include <math.h>
#include <string.h>

#include "scheduler/policy/int.h"

enum { HD_STEPS = 120 };                          /* of one optimum; 20 to 40 are taken */
#define HD_NEAR 1e-9                              /* of sum w log z, by sum w */
#define HD_FALL 0.1                               /* of mu, a step */
#define HD_CENTRE 0.5                             /* after a step that had to be cut short */
/* of a type's devices: what rounding may take off its slack */
#define HD_LOST 1e-8
#define HD_STOPPED 1e100                          /* a pivot that lets nothing through */

/* One way of a job: its share, the price of its being above 0; the best share so far. */
struct nash_way { uint32_t type; double gain, x, v, dx, best; };
/* A job in the system: its ways, z, slack of time and its price. */
struct person { uint32_t job, first, n; double w, s, z, t, u, dt, du; };

struct nash {
	struct hd_seen seen;
	struct hd_arena *arena;
	struct hd_diag *diag;
	uint32_t n, m, nways, out;                /* persons; `out` is not there, n: all are */
	struct person *person;                    /* by job */
	struct nash_way *way;
	/* slacks of devices, their prices */
	double r[HD_SCHED_TYPES], y[HD_SCHED_TYPES], dr[HD_SCHED_TYPES], dy[HD_SCHED_TYPES];
	double *matrix, *block;                   /* [m * m] of the types, of a person */
	uint32_t nlps, iterations;
	double gap;
	bool cut;                                 /* an optimum has a gap above HD_LP_GAP */
};

enum hd_err hd_nash_init(struct hd_policy *policy, struct hd_diag *diag) { (void)policy, (void)diag;
	return HD_OK; }
void hd_nash_finish(struct hd_policy *policy) { (void)policy; }

static enum hd_err no_memory(struct nash *n) { return hd_fail(n->diag, HD_E_NOMEM, "no memory for %u jobs",
	n->seen.state->njobs); }

static enum hd_err open(struct nash *n, bool weights)
{
	const struct hd_sched_state *s = n->seen.state;

	n->m = s->ntypes;
	n->person = hd_arena_take(n->arena, n->seen.npresent + 1, sizeof *n->person);
	n->way = hd_arena_take(n->arena, (size_t)n->seen.npresent * n->m + 1, sizeof *n->way);
	n->matrix = hd_arena_take(n->arena, (size_t)n->m * n->m, sizeof *n->matrix);
	n->block = hd_arena_take(n->arena, (size_t)n->m * n->m, sizeof *n->block);
	if (!n->person || !n->way || !n->matrix || !n->block)
		return no_memory(n);
	for (uint32_t i = 0; i < s->njobs; i++) {
		struct person *p = &n->person[n->n];
		if (n->seen.absent[i])
			continue;
		*p = (struct person){ .job = i, .first = n->nways, .w = weights ? s->jobs[i].weight : 1,
			.s = s->jobs[i].scale };
		for (uint32_t j = 0; j < n->m; j++)
			if (hd_seen_rate(&n->seen, i, j) > 0)
				n->way[n->nways++] = (struct nash_way){ .type = j,
					.gain = hd_seen_rate(&n->seen, i, j) / n->seen.p[i] };
		p->n = n->nways - p->first;
		n->n++;
	}
	return HD_OK;
}

static struct nash_way *ways(const struct nash *n, const struct person *p) { return &n->way[p->first]; }
static bool there(const struct nash *n, uint32_t i) { return i != n->out; }
static double weight(const struct nash *n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n->n; i++)
		sum += there(n, i) ? n->person[i].w : 0;
	return sum;
}

/* Slacks of time and z of the shares. */
static void measure(struct nash *n)
{
	for (uint32_t i = 0; i < n->n; i++) {
		struct person *p = &n->person[i];
		if (!there(n, i))
			continue;
		p->z = 0;
		p->t = 1;
		for (uint32_t k = 0; k < p->n; k++) {
			const struct nash_way *w = &ways(n, p)[k];
			p->z += w->gain * w->x;
			p->t -= w->x;
		}
	}
}

/* Half of an equal part of everything, prices for one mu. */
static void begin(struct nash *n)
{
	double mu = weight(n) / n->n / n->m;

	for (uint32_t j = 0; j < n->m; j++)
		n->r[j] = n->seen.state->types[j].n;
	for (uint32_t i = 0; i < n->n; i++) {
		struct person *p = &n->person[i];
		double sum = 0;
		for (uint32_t k = 0; k < p->n; k++)
			sum += ways(n, p)[k].x = n->seen.state->types[ways(n, p)[k].type].n / (p->s * n->n);
		for (uint32_t k = 0; k < p->n; k++) {
			struct nash_way *w = &ways(n, p)[k];
			w->x *= 0.5 / fmax(1, sum);
			w->v = mu / w->x;
			n->r[w->type] -= there(n, i) ? p->s * w->x : 0;
		}
	}
	measure(n);
	for (uint32_t i = 0; i < n->n; i++)
		n->person[i].u = there(n, i) ? mu / n->person[i].t : 0;
	for (uint32_t j = 0; j < n->m; j++)
		n->y[j] = n->r[j] > 0 ? mu / n->r[j] : 0;
}

/* By how much the shares are above time or devices: a factor, 1 if they are not. */
static double excess(const struct nash *n)
{
	double over = 1, used[HD_SCHED_TYPES] = { 0 };

	for (uint32_t i = 0; i < n->n; i++) {
		const struct person *p = &n->person[i];
		double time = 0;
		for (uint32_t k = 0; there(n, i) && k < p->n; k++) {
			time += ways(n, p)[k].x;
			used[ways(n, p)[k].type] += p->s * ways(n, p)[k].x;
		}
		over = fmax(over, time);
	}
	for (uint32_t j = 0; j < n->m; j++)
		over = n->seen.state->types[j].n ? fmax(over, used[j] / n->seen.state->types[j].n) : over;
	return over;
}

/* Of the shares as they can be had. */
static double worth(const struct nash *n)
{
	double sum = 0, over = log(excess(n));

	for (uint32_t i = 0; i < n->n; i++)
		sum += there(n, i) ? n->person[i].w * (log(n->person[i].z) - over) : 0;
	return sum;
}

/* The certificate. */
static double bound(const struct nash *n)
{
	double sum = 0;

	for (uint32_t j = 0; j < n->m; j++)
		sum += n->seen.state->types[j].n * n->y[j];
	for (uint32_t i = 0; i < n->n; i++) {
		const struct person *p = &n->person[i];
		double most = 0;
		if (!there(n, i))
			continue;
		for (uint32_t k = 0; k < p->n; k++)
			most = fmax(most, ways(n, p)[k].gain / (p->s * n->y[ways(n, p)[k].type] + p->u));
		sum += p->u + p->w * log(p->w * most) - p->w;
	}
	return sum;
}

/* ---- a Newton step ---- */

/* In place: L with L L' = a positive definite matrix of its lower half. A pivot lost to rounding stops its
 * direction. */
static void factor(double *at, uint32_t m)
{
	for (uint32_t c = 0; c < m; c++) {
		double least = 1e-15 * at[c * m + c];
		for (uint32_t k = 0; k < c; k++)
			at[c * m + c] -= at[c * m + k] * at[c * m + k];
		at[c * m + c] = at[c * m + c] > least ? sqrt(at[c * m + c]) : HD_STOPPED;
		for (uint32_t r = c + 1; r < m; r++) {
			for (uint32_t k = 0; k < c; k++)
				at[r * m + c] -= at[r * m + k] * at[c * m + k];
			at[r * m + c] /= at[c * m + c];
		}
	}
}

static void solve(const double *at, uint32_t m, double *right)
{
	for (uint32_t r = 0; r < m; r++) {
		for (uint32_t k = 0; k < r; k++)
			right[r] -= at[r * m + k] * right[k];
		right[r] /= at[r * m + r];
	}
	for (uint32_t r = m; r-- > 0;) {
		for (uint32_t k = r + 1; k < m; k++)
			right[r] -= at[k * m + r] * right[k];
		right[r] /= at[r * m + r];
	}
}

/* The block of one person: diag(v / x) + g g' w / z^2 + 1 1' u / t. */
static void block(const struct nash *n, const struct person *p, double *at)
{
	const struct nash_way *w = ways(n, p);

	for (uint32_t k = 0; k < p->n; k++)
		for (uint32_t l = 0; l <= k; l++)
			at[k * p->n + l] = w[k].gain * w[l].gain * p->w / (p->z * p->z) + p->u / p->t +
				(k == l ? w[k].v / w[k].x : 0);
	factor(at, p->n);
}

/* What shares would gain at prices mu / slack. */
static void gradient(const struct nash *n, const struct person *p, double mu, double *to)
{
	for (uint32_t k = 0; k < p->n; k++) {
		const struct nash_way *w = &ways(n, p)[k];
		to[k] = p->w * w->gain / p->z + mu / w->x - mu / p->t - p->s * mu / n->r[w->type];
	}
}

/* The direction in dx, dt, dr and the prices. */
static void direct(struct nash *n, double mu)
{
	uint32_t m = n->m;
	double q[HD_SCHED_TYPES] = { 0 }, to[HD_SCHED_TYPES];

	memset(n->matrix, 0, (size_t)m * m * sizeof *n->matrix);
	for (uint32_t j = 0; j < m; j++)
		n->matrix[j * m + j] = n->y[j] > 0 ? n->r[j] / n->y[j] : 1;
	for (uint32_t i = 0; i < n->n; i++) {
		const struct person *p = &n->person[i];
		struct nash_way *w = ways(n, p);
		if (!there(n, i))
			continue;
		block(n, p, n->block);
		gradient(n, p, mu, to);
		solve(n->block, p->n, to);
		for (uint32_t k = 0; k < p->n; k++) {
			w[k].dx = to[k];
			q[w[k].type] += p->s * to[k];
		}
		for (uint32_t l = 0; l < p->n; l++) {             /* a column of its inverse */
			for (uint32_t k = 0; k < p->n; k++)
				to[k] = k == l;
			solve(n->block, p->n, to);
			for (uint32_t k = l; k < p->n; k++)       /* types ascend with ways: the lower half */
				n->matrix[w[k].type * m + w[l].type] += p->s * p->s * to[k];
		}
	}
	factor(n->matrix, m);
	solve(n->matrix, m, q);
	memset(n->dr, 0, sizeof n->dr);
	for (uint32_t i = 0; i < n->n; i++) {
		struct person *p = &n->person[i];
		struct nash_way *w = ways(n, p);
		if (!there(n, i))
			continue;
		block(n, p, n->block);
		for (uint32_t k = 0; k < p->n; k++)
			to[k] = p->s * q[w[k].type];
		solve(n->block, p->n, to);
		p->dt = 0;
		for (uint32_t k = 0; k < p->n; k++) {
			w[k].dx -= to[k];
			p->dt -= w[k].dx;
			n->dr[w[k].type] -= p->s * w[k].dx;
		}
		p->du = mu / p->t - p->u - p->u / p->t * p->dt;
	}
	for (uint32_t j = 0; j < m; j++) {
		double exact = n->y[j] > 0 ? -n->r[j] / n->y[j] * q[j] : 0;
		/* y / r of what they use more is q, which the sum of dx has lost where r is small; where
		 * no pivot was left it is the sum */
		if (fabs(n->dr[j] - exact) <= HD_LOST * n->seen.state->types[j].n)
			n->dr[j] = exact;
		n->dy[j] = n->y[j] > 0 ? mu / n->r[j] - n->y[j] - n->y[j] / n->r[j] * n->dr[j] : 0;
	}
}

static double within(double at, double by) { return by < 0 ? -at / by : INFINITY; }

/* As far as all slacks and prices stay above a hundredth of what they were. */
static double reach(const struct nash *n, double mu)
{
	double most = INFINITY;

	for (uint32_t j = 0; j < n->m; j++)
		if (n->y[j] > 0)
			most = fmin(most, fmin(within(n->r[j], n->dr[j]), within(n->y[j], n->dy[j])));
	for (uint32_t i = 0; i < n->n; i++) {
		const struct person *p = &n->person[i];
		if (!there(n, i))
			continue;
		most = fmin(most, fmin(within(p->t, p->dt), within(p->u, p->du)));
		for (uint32_t k = 0; k < p->n; k++) {
			const struct nash_way *w = &ways(n, p)[k];
			most = fmin(most, fmin(within(w->x, w->dx),
				within(w->v, mu / w->x - w->v - w->v / w->x * w->dx)));
		}
	}
	return fmin(1, 0.99 * most);
}

static void step(struct nash *n, double mu, double part)
{
	for (uint32_t i = 0; i < n->n; i++) {
		struct person *p = &n->person[i];
		if (!there(n, i))
			continue;
		p->u += part * p->du;
		for (uint32_t k = 0; k < p->n; k++) {
			struct nash_way *w = &ways(n, p)[k];
			w->v += part * (mu / w->x - w->v - w->v / w->x * w->dx);
			w->x += part * w->dx;
		}
	}
	for (uint32_t j = 0; j < n->m; j++) {
		n->y[j] += part * n->dy[j];
		n->r[j] += part * n->dr[j];
	}
	measure(n);
}

/* The mean of x v, t u, r y. */
static double duality(const struct nash *n)
{
	double sum = 0;
	uint32_t terms = 0;

	for (uint32_t j = 0; j < n->m; j++) {
		sum += n->r[j] * n->y[j];
		terms += n->y[j] > 0;
	}
	for (uint32_t i = 0; i < n->n; i++) {
		const struct person *p = &n->person[i];
		if (!there(n, i))
			continue;
		sum += p->t * p->u;
		for (uint32_t k = 0; k < p->n; k++)
			sum += ways(n, p)[k].x * ways(n, p)[k].v;
		terms += 1 + p->n;
	}
	return sum / terms;
}

static void keep(struct nash *n)
{
	for (uint32_t k = 0; k < n->nways; k++)
		n->way[k].best = n->way[k].x;
}

static void take_back(struct nash *n)
{
	for (uint32_t k = 0; k < n->nways; k++)
		n->way[k].x = n->way[k].best;
	double over = excess(n);
	for (uint32_t k = 0; k < n->nways; k++)
		n->way[k].x /= over;
	measure(n);
}

/* The optimum without person `out` (n: of all); z stay in the persons, its sum of w log z in *best. Ends
 * where rounding makes the certificate worse again, with the best shares and the best bound: any prices
 * bound it. */
static enum hd_err optimum(struct nash *n, uint32_t out, double *best)
{
	uint32_t limit = n->seen.set->lp_iterations;
	double all, least = INFINITY, gap = INFINITY, fall = HD_CENTRE;

	n->out = out;
	n->nlps++;
	*best = -INFINITY;
	all = weight(n);
	begin(n);
	for (uint32_t turn = 0; turn < HD_STEPS && gap > HD_NEAR; turn++) {
		double is = worth(n), above = bound(n), mu = duality(n);
		least = fmin(least, above);
		if (is > *best)
			keep(n);
		*best = fmax(*best, is);
		gap = (least - *best) / all;
		if (!((above - is) / all <= 100 * fmax(gap, HD_NEAR)) || gap <= HD_NEAR)
			break;
		if (hd_policy_is_stopped(n->seen.set))
			return hd_fail(n->diag, HD_E_AGAIN, "the product: cancelled");
		if (limit && turn >= limit)
			return hd_fail(n->diag, HD_E_AGAIN,
				"the product: the limit of iterations was reached");
		direct(n, fall * mu);
		double part = reach(n, fall * mu);
		step(n, fall * mu, part);
		fall = part > 0.5 ? HD_FALL : HD_CENTRE;
		n->iterations++;
	}
	take_back(n);
	n->gap = fmax(n->gap, gap);
	n->cut |= !(gap <= HD_LP_GAP);
	return HD_OK;
}

/* f_i = exp((what the others have of sum w log z with i there, less their optimum without it) / w_i). */
static enum hd_err discounts(struct nash *n, const double *z, double *f)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; !err && i < n->n; i++) {
		double with = 0, without;
		f[n->person[i].job] = 1;
		if (n->n == 1)
			continue;
		for (uint32_t k = 0; k < n->n; k++)
			with += k == i ? 0 : n->person[k].w * log(z[n->person[k].job]);
		err = optimum(n, i, &without);
		f[n->person[i].job] = fmin(1, exp((with - without) / n->person[i].w));
	}
	return err;
}

static enum hd_err as_solved(struct nash *n, const double *x, const double *f, struct hd_shares *out)
{
	struct hd_collect c = { .out = out, .arena = n->arena };
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; !err && i < n->n; i++)
		for (uint32_t k = 0; !err && k < n->person[i].n; k++) {
			uint32_t job = n->person[i].job, at = n->person[i].first + k;
			struct hd_shape shape = hd_way_single(n->seen.state, job, n->way[at].type);
			if (x[at] * f[job] >= 1e-9)
				err = hd_collect(&c, &shape, x[at] * f[job]);
		}
	return err ? no_memory(n) : HD_OK;
}

/* Fewest and cheapest devices that give every job z, then f of them: the discount must hit what the optimum
 * gives, or a lie could pay. */
static enum hd_err settled(struct nash *n, const struct hd_policy *policy, const double *z, const double *f,
	struct hd_shares *out)
{
	struct hd_policy_lp pg = { 0 };
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

enum hd_err hd_nash_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out,
	struct hd_diag *diag)
{
	struct nash n = { .arena = arena, .diag = diag };
	bool exact = policy->set.fidelity == HD_FIDELITY_EXACT;
	double *f = hd_arena_take(arena, state->njobs + 1, sizeof *f),
		*z = hd_arena_take(arena, state->njobs + 1, sizeof *z), *x = NULL;
	enum hd_err err = f && z ? hd_see(&n.seen, policy, state, HD_FLAT_ONE, arena, diag) : hd_fail(diag,
		HD_E_NOMEM, "no memory for %u jobs", state->njobs);

	if (err)
		return err;
	if (n.seen.npresent == 0) {
		out->objective = 0;
		return HD_OK;
	}
	err = open(&n, exact);
	if (!err)
		err = optimum(&n, n.n, &out->objective);
	x = err ? NULL : hd_arena_take(arena, n.nways + 1, sizeof *x);
	if (!err && !x)
		err = no_memory(&n);
	for (uint32_t k = 0; !err && k < n.nways; k++)
		x[k] = n.way[k].x;
	for (uint32_t i = 0; !err && i < n.n; i++)
		z[n.person[i].job] = n.person[i].z;
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
	return err;
}
