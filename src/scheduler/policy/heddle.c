/* Ours: a plan of everything that is left to do, as one linear program, and whole devices to what the plan
 * begins with.
 *
 * Time from now is cut into intervals 1..M that grow geometrically; the last one ends when all work does, E
 * seconds after it begins. y[k][m] is the part of interval m (L_m seconds, middle mid_m) in which shape k
 * runs. Shapes are all ways to run: a job on its scale of one type, two jobs on the same devices (packed), an
 * elastic job on any count, a mixed one on two types at once.
 *
 *	minimise   sum_i w_i C_i + mu W E + money / v           W = sum w, mu = 3: a second of makespan
 *	                                                        against three of mean completion time
 *	C_i     =  sum_km (r_ki L_m / n_i) mid_m y_km + 1/2 sum_km L_m y_km       mean busy time and half the
 *	time spent running: where a job ends that
 *	                                                        runs without break (Goemans et al., "Single
 *	                                                        machine scheduling with release dates", 2002)
 *	time       sum_(k with i) y_km <= 1,  devices  sum_k need_kj y_km <= N_j,  work  sum_km r_ki L_m / n_i
 *	           y_km >= 1
 *
 * r_ki is what revocations leave of the measured steps/s, r (1 - min(0.95, sum n lambda L)). In interval 1 a
 * shape that is not the one of the last answer does L_1 less the seconds of the change: the resize that the
 * job itself measured, 20 s otherwise. Money: the price of all devices for all of the plan; v is what an hour
 * less of one job's wait is worth (delay_usd_h). Without it prices only decide between equals.
 *
 * A plan gives parts of time, and parts are paid for by switching. So the steps of the plan are taken as a
 * list: by interval, those that fill it before those that do not, then by the mean time at which their job
 * runs; each gets its devices whole if they are free and its job has none. When a job comes or ends, a new
 * plan is made.
 *
 * Why it is good at both ends: mean completion time wants the job with the least left per weight first,
 * makespan wants each job where it is relatively fast and all devices busy to the end. Shares of now alone
 * (las, sum, makespan) see one of the two; a plan of the rest sees that order is free where the places are
 * fixed. It is not fair: a long job waits while short ones come, until the end binds.
 *
 * Columns are generated: ways on one's scale and fewest devices are there from the start, all others come
 * when their reduced cost says that they help, the best of each job and interval and the HD_PAIRS best pairs
 * a turn. After HD_TURNS what is found is taken (`cut`).
 *
 * Many jobs are dealt into parts with their part of the devices (pop.c), and planned one after the other; the
 * steps of all parts are then one list, and devices are given as if it had been one plan. Gangs that are too
 * large for a part have parts of their own: all devices for as much of each interval as a rough plan gives
 * them, in which some jobs stand for all. pop:1:heddle plans the whole whatever it takes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/policy/int.h"

enum { HD_TURNS = 40, HD_PAIRS = 200, HD_INTERVALS = 6 };
/* against 2: the published traces end up to 4 % earlier, for 2 % more mean */
#define HD_MU 3.0
#define HD_MOVE_S 20.0
#define HD_FIRST_S 300.0                          /* interval 1 */
/* of the last interval, to large gangs and to the others at least */
#define HD_LAST_ROOM 0.1
#define HD_HELPS 1e-7                             /* a reduced cost below minus this, of costs around 1 */

struct plan_column { struct hd_shape shape; uint32_t m; };      /* rates of the shape as measured */

struct cluster_plan {
	struct hd_policy *policy;
	const struct hd_sched_state *s;
	struct hd_seen seen;
	struct hd_arena *arena;
	struct hd_diag *diag;
	uint32_t nintervals;
	/* of the last: what is guessed, which is the unit of E */
	double length[HD_INTERVALS], middle[HD_INTERVALS];
	/* sum of w; the guess of the makespan, unit of the objective */
	double weight, total;
	double usd_unit;                          /* objective per money */
	const struct hd_alike *alike;             /* [njobs] each job stands for some; NULL: for itself */
	/* the part of the devices that is there for the plan */
	double room[HD_SCHED_TYPES][HD_INTERVALS];
	struct hd_lp *lp;                         /* owned */
	uint32_t *time_row, *device_row, *work_row;
	struct plan_column *col;
	uint32_t ncols, nsolved, cap;             /* nsolved: those that the last solution knows */
	struct hd_lp_result last;
	uint32_t nlps, iterations;
	double gap;
	bool cut;
};

enum hd_err hd_heddle_init(struct hd_policy *policy, struct hd_diag *diag) { (void)policy, (void)diag;
	return HD_OK; }
void hd_heddle_finish(struct hd_policy *policy) { (void)policy; }

static enum hd_err no_memory(struct cluster_plan *p) { return hd_fail(p->diag, HD_E_NOMEM,
	"no memory for a plan of %u jobs", p->s->njobs); }

/* ---- time ---- */

/* A makespan that no plan beats by much: all work where it needs the fewest device seconds, on all
 * devices; no less than the longest job. */
static double guess(const struct cluster_plan *p)
{
	double work = 0, devices = 0, longest = 0;

	for (uint32_t j = 0; j < p->s->ntypes; j++)
		devices += p->s->types[j].n;
	for (uint32_t i = 0; i < p->s->njobs; i++) {
		double best = 0;
		if (p->seen.absent[i])
			continue;
		for (uint32_t j = 0; j < p->s->ntypes; j++)
			best = fmax(best, p->s->types[j].n >= p->s->jobs[i].scale ? p->s->jobs[i].rate[j] :
				0);
		for (uint32_t j = 0; j < p->s->ntypes && !(best > 0); j++)
			best = fmax(best, hd_sched_rate_on(&p->s->jobs[i], j,
				hd_sched_fewest(&p->s->jobs[i])));
		if (!(best > 0))
			continue;
		work += p->s->jobs[i].scale * p->s->jobs[i].steps_left / best;
		longest = fmax(longest, p->s->jobs[i].steps_left / best);
	}
	return fmax(fmax(work / devices, longest), 1);
}

/* Lengths L_1 q^k that fill seven tenths of the guess; the last interval is guessed to take the rest. */
static void cut_time(struct cluster_plan *p)
{
	double low = 1, high = 1e6, first = fmin(HD_FIRST_S, 0.7 * p->total / (HD_INTERVALS - 1)), at = 0;

	for (int k = 0; k < 100; k++) {
		double q = sqrt(low * high), sum = 0;
		for (int m = 0; m < HD_INTERVALS - 1; m++)
			sum += first * pow(q, m);
		*(sum < 0.7 * p->total ? &low : &high) = q;
	}
	p->nintervals = HD_INTERVALS;
	for (int m = 0; m < HD_INTERVALS; m++) {
		p->length[m] = m < HD_INTERVALS - 1 ? first * pow(low, m) : 0.3 * p->total;
		p->middle[m] = at + p->length[m] / 2;
		at += p->length[m];
	}
}

/* ---- columns ---- */

static double usd_s(const struct cluster_plan *p, const struct hd_shape *shape)
{
	double usd_h = 0;

	for (int d = 0; d < shape->nneeds; d++)
		usd_h += shape->need[d].n * p->s->types[shape->need[d].type].price_usd_h;
	return usd_h / 3600;
}

/* Seconds of interval 1 that go by before the job computes: it runs another way than in the last answer. */
static double change_s(const struct cluster_plan *p, const struct hd_shape *shape)
{
	const struct hd_sched_elastic *e = p->s->jobs[shape->member[0]].elastic;

	if (hd_kept_find(p->policy, p->s, shape))
		return 0;
	return shape->nmembers == 1 && e && e->resize_s > 0 ? e->resize_s : HD_MOVE_S;
}

/* The part of a member's work that is done when the column is 1. */
static double work_of(const struct cluster_plan *p, const struct plan_column *c, int member)
{
	uint32_t i = c->shape.member[member];
	double seconds = p->length[c->m];

	if (c->m == 0)
		seconds -= fmin(change_s(p, &c->shape), 0.9 * seconds);
	return c->shape.rate[member] * hd_way_risk(p->s, i, c->shape.need,
		c->shape.nneeds) * seconds / p->s->jobs[i].steps_left;
}

static double times(const struct cluster_plan *p, const struct plan_column *c) { return p->alike ?
	p->alike[c->shape.member[0]].n : 1; }

static double cost_of(const struct cluster_plan *p, const struct plan_column *c)
{
	double cost = usd_s(p, &c->shape) * p->length[c->m] * p->usd_unit, unit = 1 / (p->total * p->weight);

	for (int k = 0; k < c->shape.nmembers; k++) {
		uint32_t i = c->shape.member[k];
		double tie = 1 - 1e-5 * i / p->s->njobs;  /* equal jobs: the older first */
		cost += p->s->jobs[i].weight * unit * tie * (work_of(p, c,
			k) * p->middle[c->m] + 0.5 * p->length[c->m]);
	}
	return cost * times(p, c);
}

struct column_entries { uint32_t row[2 * 2 + HD_SHAPE_NEEDS]; double val[2 * 2 + HD_SHAPE_NEEDS]; uint32_t n;
	};

static void entries_of(const struct cluster_plan *p, const struct plan_column *c, struct column_entries *e)
{
	e->n = 0;
	for (int k = 0; k < c->shape.nmembers; k++) {
		uint32_t i = c->shape.member[k];
		e->row[e->n] = p->time_row[(size_t)i * p->nintervals + c->m];
		e->val[e->n++] = 1;
		e->row[e->n] = p->work_row[i];
		e->val[e->n++] = work_of(p, c, k);
	}
	for (int d = 0; d < c->shape.nneeds; d++) {
		e->row[e->n] = p->device_row[(size_t)c->shape.need[d].type * p->nintervals + c->m];
		e->val[e->n++] = c->shape.need[d].n * times(p, c);
	}
}

static enum hd_err add(struct cluster_plan *p, const struct plan_column *c)
{
	struct column_entries e;
	double zero = 0, inf = INFINITY, cost = cost_of(p, c);

	if (p->ncols == p->cap) {
		uint32_t cap = p->cap ? 2 * p->cap : 1024;
		struct plan_column *more = hd_arena_take(p->arena, cap, sizeof *more);
		if (!more)
			return no_memory(p);
		if (p->ncols)
			memcpy(more, p->col, p->ncols * sizeof *more);
		p->col = more;
		p->cap = cap;
	}
	entries_of(p, c, &e);
	p->col[p->ncols++] = *c;
	return hd_lp_cols(p->lp, 1, &zero, &inf, &cost, (uint32_t[]){ 0, e.n }, e.row, e.val) ? no_memory(p) :
		HD_OK;
}

static enum hd_err rows(struct cluster_plan *p)
{
	const struct hd_sched_state *s = p->s;
	uint32_t m = p->nintervals, n = 0, most = (s->njobs + s->ntypes) * m + s->njobs, last = 0;
	double *lo = hd_arena_take(p->arena, most + 1, sizeof *lo),
		*hi = hd_arena_take(p->arena, most + 1, sizeof *hi);
	uint32_t *none = hd_arena_take(p->arena, (size_t)most + 2, sizeof *none),
		*idx = hd_arena_take(p->arena, s->njobs + s->ntypes + 1, sizeof *idx);
	double *val = hd_arena_take(p->arena, s->njobs + s->ntypes + 1, sizeof *val), zero = 0,
		inf = INFINITY, mu = HD_MU * p->length[m - 1] / p->total;

	p->time_row = hd_arena_take(p->arena, (size_t)s->njobs * m + 1, sizeof *p->time_row);
	p->device_row = hd_arena_take(p->arena, (size_t)s->ntypes * m + 1, sizeof *p->device_row);
	p->work_row = hd_arena_take(p->arena, s->njobs + 1, sizeof *p->work_row);
	if (!lo || !hi || !none || !idx || !val || !p->time_row || !p->device_row || !p->work_row)
		return no_memory(p);
	for (uint32_t i = 0; i < s->njobs; i++) {
		if (p->seen.absent[i])
			continue;
		for (uint32_t k = 0; k < m; k++) {
			lo[n] = -INFINITY;
			hi[n] = k + 1 < m ? 1 : 0;
			p->time_row[(size_t)i * m + k] = n++;
		}
		idx[last] = n - 1;
		val[last++] = -1;
		lo[n] = 1;
		hi[n] = INFINITY;
		p->work_row[i] = n++;
	}
	for (uint32_t j = 0; j < s->ntypes; j++) {
		for (uint32_t k = 0; k < m; k++) {
			lo[n] = -INFINITY;
			hi[n] = k + 1 < m ? s->types[j].n * p->room[j][k] : 0;
			p->device_row[(size_t)j * m + k] = n++;
		}
		idx[last] = n - 1;
		val[last] = -(double)s->types[j].n * p->room[j][m - 1];
		last += s->types[j].n > 0;
	}
	if (hd_lp_rows(p->lp, n, lo, hi, none, NULL, NULL))
		return no_memory(p);
	/* column 0 is E, in units of the last interval */
	p->col = hd_arena_take(p->arena, p->cap = 1024, sizeof *p->col);
	if (!p->col || hd_lp_cols(p->lp, 1, &zero, &inf, &mu, (uint32_t[]){ 0, last }, idx, val))
		return no_memory(p);
	p->col[p->ncols++] = (struct plan_column){ .m = m - 1 };
	return HD_OK;
}

/* ---- pricing ---- */

struct column_offer { double reduced; struct plan_column col; };

static double reduced_cost(const struct cluster_plan *p, const struct plan_column *c)
{
	struct column_entries e;
	double d = cost_of(p, c);

	entries_of(p, c, &e);
	for (uint32_t k = 0; k < e.n; k++)
		d -= e.val[k] * p->last.dual[e.row[k]];
	return d;
}

struct best_columns { struct cluster_plan *p; struct column_offer at[HD_INTERVALS]; };

static enum hd_err price_way(void *context, const struct hd_shape *shape)
{
	struct best_columns *b = context;

	for (uint32_t m = 0; m < b->p->nintervals; m++) {
		struct plan_column c = { *shape, m };
		double d = reduced_cost(b->p, &c);
		if (d < b->at[m].reduced)
			b->at[m] = (struct column_offer){ d, c };
	}
	return HD_OK;
}

static enum hd_err price_jobs(struct cluster_plan *p, uint32_t *added)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; !err && i < p->s->njobs; i++) {
		struct best_columns b = { .p = p };
		if (p->seen.absent[i] || !p->s->jobs[i].elastic)
			continue;
		for (uint32_t m = 0; m < p->nintervals; m++)
			b.at[m].reduced = -HD_HELPS;
		err = hd_ways_each(p->s, i, price_way, &b);
		for (uint32_t m = 0; !err && m < p->nintervals; m++)
			if (b.at[m].reduced < -HD_HELPS) {
				err = add(p, &b.at[m].col);
				++*added;
			}
	}
	return err;
}

static int better(const void *a, const void *b)
{
	const struct column_offer *x = a, *y = b;

	if (x->reduced != y->reduced)
		return x->reduced < y->reduced ? -1 : 1;
	if (x->col.m != y->col.m)
		return x->col.m < y->col.m ? -1 : 1;
	for (int k = 0; k < 2; k++)
		if (x->col.shape.member[k] != y->col.shape.member[k])
			return x->col.shape.member[k] < y->col.shape.member[k] ? -1 : 1;
	return x->col.shape.need[0].type < y->col.shape.need[0].type ? -1 :
		x->col.shape.need[0].type > y->col.shape.need[0].type;
}

static enum hd_err price_pairs(struct cluster_plan *p, uint32_t *added)
{
	const struct hd_sched_state *s = p->s;
	struct column_offer *offers = hd_arena_take(p->arena, 2 * HD_PAIRS, sizeof *offers);
	uint32_t n = 0;
	double rate[2];
	enum hd_err err = offers ? HD_OK : no_memory(p);

	for (uint32_t a = 0; !err && a < s->njobs; a++)
		for (uint32_t b = a + 1; b < s->njobs; b++)
			for (uint32_t j = 0; s->jobs[a].scale == s->jobs[b].scale && j < s->ntypes; j++) {
				if (p->alike && p->alike[a].n != p->alike[b].n)
					break;
				if (!hd_seen_pair(&p->seen, a, b, j, rate))
					continue;
				for (uint32_t m = 0; m < p->nintervals; m++) {
					struct plan_column c = { hd_way_pair(s, a, b, j), m };
					double d = reduced_cost(p, &c);
					if (d >= -HD_HELPS)
						continue;
					offers[n++] = (struct column_offer){ d, c };
					if (n == 2 * HD_PAIRS) {
						qsort(offers, n, sizeof *offers, better);
						n = HD_PAIRS;
					}
				}
			}
	if (err)
		return err;
	qsort(offers, n, sizeof *offers, better);
	for (uint32_t k = 0; !err && k < n && k < HD_PAIRS; k++, ++*added)
		err = add(p, &offers[k].col);
	return err;
}

static enum hd_err add_own(void *context, const struct hd_shape *shape)
{
	struct cluster_plan *p = context;
	const struct hd_sched_job *job = &p->s->jobs[shape->member[0]];
	bool own = shape->nneeds == 1 && (shape->need[0].n == job->scale ||
		shape->need[0].n == hd_sched_fewest(job));
	enum hd_err err = HD_OK;

	for (uint32_t m = 0; !err && own && m < p->nintervals; m++)
		err = add(p, &(struct plan_column){ *shape, m });
	return err;
}

static enum hd_err solve(struct cluster_plan *p)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; !err && i < p->s->njobs; i++)
		if (!p->seen.absent[i])
			err = hd_ways_each(p->s, i, add_own, p);
	const struct hd_lp_limits limits = { .iterations = p->policy->set.lp_iterations,
		.gap = p->policy->set.lp_gap };
	for (uint32_t turn = 0, added = 1; !err && added; turn++) {
		added = 0;
		if (hd_policy_is_stopped(&p->policy->set))
			return hd_fail(p->diag, HD_E_AGAIN, "a plan of %u jobs: cancelled",
				p->s->njobs);
		if (hd_lp_solve(p->lp, &limits, &p->last))
			return no_memory(p);
		p->nlps++;
		p->iterations += p->last.iterations;
		p->nsolved = p->ncols;
		if (p->last.status != HD_LP_OPTIMAL)
			return hd_fail(p->diag, HD_E_AGAIN, "a plan of %u jobs: %s", p->s->njobs,
				hd_lp_status_text(p->last.status));
		p->gap = fmax(p->gap, p->last.gap);
		err = price_jobs(p, &added);
		if (!err && p->policy->set.variant == HD_VARIANT_PACKED)
			err = price_pairs(p, &added);
		if (added && turn + 1 == HD_TURNS) {
			p->cut = true;
			break;
		}
	}
	return err;
}

/* ---- from the plan to devices ---- */

/* members as the whole counts them */
struct plan_step { struct hd_shape shape; uint32_t number, m; bool part; double when, y; };

/* What the plan comes to, of one part or of all. */
struct steps {
	struct plan_step *at;
	uint32_t n, cap;
	double objective;                       /* of parts: without the end of all */
	/* of parts: how long any job runs in the last interval, and devices of each type, in units of it */
	double last, used[HD_SCHED_TYPES];
};

static int by_plan(const void *a, const void *b)
{
	const struct plan_step *x = a, *y = b;

	if (x->m != y->m)
		return x->m < y->m ? -1 : 1;
	if (x->part != y->part)
		return y->part ? -1 : 1;
	if (x->when != y->when)
		return x->when < y->when ? -1 : 1;
	if (x->y != y->y)
		return x->y > y->y ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* When each job runs in the mean. */
static void mean_busy(const struct cluster_plan *p, double *when)
{
	for (uint32_t i = 0; i < p->s->njobs; i++)
		when[i] = 0;
	for (uint32_t k = 1; k < p->nsolved; k++)
		for (int m = 0; m < p->col[k].shape.nmembers && p->last.x[k] > 0; m++)
			when[p->col[k].shape.member[m]] += work_of(p, &p->col[k],
				m) * p->last.x[k] * p->middle[p->col[k].m];
}

static bool take(const struct hd_shape *shape, bool *placed, uint32_t *left)
{
	for (int k = 0; k < shape->nmembers; k++)
		if (placed[shape->member[k]])
			return false;
	for (int d = 0; d < shape->nneeds; d++)
		if (shape->need[d].n > left[shape->need[d].type])
			return false;
	for (int k = 0; k < shape->nmembers; k++)
		placed[shape->member[k]] = true;
	for (int d = 0; d < shape->nneeds; d++)
		left[shape->need[d].type] -= shape->need[d].n;
	return true;
}

static enum hd_err add_step(struct cluster_plan *p, struct steps *to, const struct plan_step *step)
{
	if (to->n == to->cap) {
		uint32_t cap = to->cap ? 2 * to->cap : 1024;
		struct plan_step *more = hd_arena_take(p->arena, cap, sizeof *more);
		if (!more)
			return no_memory(p);
		if (to->n)
			memcpy(more, to->at, to->n * sizeof *more);
		to->at = more;
		to->cap = cap;
	}
	to->at[to->n++] = *step;
	return HD_OK;
}

/* What the part needs of the last interval, for the end of all parts. */
static void gather_last(const struct cluster_plan *p, double *runs, struct steps *to)
{
	for (uint32_t i = 0; i < p->s->njobs; i++)
		runs[i] = 0;
	for (uint32_t k = 1; k < p->nsolved; k++) {
		const struct plan_column *c = &p->col[k];
		if (c->m != p->nintervals - 1)
			continue;
		for (int m = 0; m < c->shape.nmembers; m++) {
			runs[c->shape.member[m]] += p->last.x[k];
			to->last = fmax(to->last, runs[c->shape.member[m]]);
		}
		for (int d = 0; d < c->shape.nneeds; d++)
			to->used[c->shape.need[d].type] += c->shape.need[d].n * p->last.x[k];
	}
}

/* `job`: the number in the whole of each job of the part; NULL: it is the whole. */
static enum hd_err gather(struct cluster_plan *p, const uint32_t *job, struct steps *to)
{
	double *when = hd_arena_take(p->arena, p->s->njobs + 1, sizeof *when),
		last_s = p->last.x[0] * p->length[p->nintervals - 1];
	enum hd_err err = when ? HD_OK : no_memory(p);

	if (err)
		return err;
	if (job)
		gather_last(p, when, to);
	mean_busy(p, when);
	for (uint32_t k = 1; !err && k < p->nsolved; k++) {
		struct hd_shape shape = p->col[k].shape;
		double first = fmin(when[shape.member[0]], shape.nmembers == 2 ? when[shape.member[1]] :
			INFINITY);
		if (!(p->last.x[k] > 1e-6))
			continue;
		for (int m = 0; job && m < shape.nmembers; m++)
			shape.member[m] = job[shape.member[m]];
		err = add_step(p, to, &(struct plan_step){ shape, to->n, p->col[k].m, p->last.x[k] < 0.99,
			first,
			p->last.x[k] });
	}
	to->objective += p->last.objective * p->total * p->weight - (job ? HD_MU * last_s * p->weight : 0);
	return err;
}

static enum hd_err answer(struct cluster_plan *p, struct steps *steps, struct hd_shares *out)
{
	struct hd_collect c = { .out = out, .arena = p->arena };
	bool *placed = hd_arena_take(p->arena, p->s->njobs + 1, sizeof *placed);
	uint32_t left[HD_SCHED_TYPES];
	enum hd_err err = placed ? HD_OK : no_memory(p);

	for (uint32_t j = 0; j < p->s->ntypes; j++)
		left[j] = p->s->types[j].n;
	if (steps->n)
		qsort(steps->at, steps->n, sizeof *steps->at, by_plan);
	for (uint32_t k = 0; !err && k < steps->n; k++)
		if (take(&steps->at[k].shape, placed, left))
			err = hd_collect(&c, &steps->at[k].shape, 1);
	out->objective = steps->objective;
	out->work_conserving = true;
	out->nlps = p->nlps;
	out->iterations = p->iterations;
	out->gap = p->gap;
	out->cut = p->cut;
	return err ? no_memory(p) : HD_OK;
}

/* `total`: the guess of the makespan that the intervals were cut for. */
static void set_units(struct cluster_plan *p, double total)
{
	double mean = 0, devices = 0;

	for (uint32_t i = 0; i < p->s->njobs; i++)
		p->weight += p->seen.absent[i] ? 0 : p->s->jobs[i].weight * (p->alike ? p->alike[i].n : 1);
	for (uint32_t j = 0; j < p->s->ntypes; j++) {
		mean += p->s->types[j].n * p->s->types[j].price_usd_h / 3600;
		devices += p->s->types[j].n;
	}
	p->total = total;
	if (p->policy->set.delay_usd_h > 0)
		p->usd_unit = 3600 / p->policy->set.delay_usd_h / (p->total * p->weight);
	else if (mean > 0)
		p->usd_unit = 1e-3 * devices / mean / (p->total * p->weight);
}

/* ---- large plans in parts ---- */

/* Jobs up to which the plan is made as a whole, and jobs of a part beyond. A solve grows faster than its
 * jobs: by pairs most, by sizes next. */
enum { PLAIN, SIZES, PAIRS };
static const struct { uint32_t whole, part; } in_parts[] = { [PLAIN] = { 600, 250 }, [SIZES] = { 400, 100 },
	[PAIRS] = { 150, 50 } };

/* Parts, and jobs of each. */
static uint32_t parts_of(const struct cluster_plan *p, uint32_t *size)
{
	uint32_t n = 0;
	bool sizes = false;

	for (uint32_t i = 0; i < p->s->njobs; i++) {
		n += !p->seen.absent[i];
		sizes |= !p->seen.absent[i] && p->s->jobs[i].elastic;
	}
	int kind = p->policy->set.variant == HD_VARIANT_PACKED ? PAIRS : sizes ? SIZES : PLAIN;
	*size = in_parts[kind].part;
	return p->policy->set.npops == 1 || n <= in_parts[kind].whole ? 1 : (n + *size - 1) / *size;
}

static enum hd_err find(struct cluster_plan *p)
{
	p->lp = hd_lp_new(false);
	enum hd_err err = p->lp ? rows(p) : no_memory(p);
	return err ? err : solve(p);
}

static void forget(struct cluster_plan *p)
{
	hd_lp_free(p->lp);
	p->lp = NULL;
}

static enum hd_err make(struct cluster_plan *p, const uint32_t *job, struct steps *steps)
{
	enum hd_err err = find(p);

	if (!err)
		err = gather(p, job, steps);
	forget(p);
	return err;
}

static struct cluster_plan part_plan(const struct cluster_plan *whole, const struct hd_sched_state *state)
{
	struct cluster_plan p = { .policy = whole->policy, .s = state, .arena = whole->arena,
		.diag = whole->diag,
		.nintervals = whole->nintervals };

	memcpy(p.length, whole->length, sizeof p.length);
	memcpy(p.middle, whole->middle, sizeof p.middle);
	memcpy(p.room, whole->room, sizeof p.room);
	return p;
}

static void count(struct cluster_plan *whole, const struct cluster_plan *p)
{
	whole->nlps += p->nlps;
	whole->iterations += p->iterations;
	whole->gap = fmax(whole->gap, p->gap);
	whole->cut |= p->cut;
}

/* Of each type and interval the part that jobs of large gangs' parts run on. Of the last interval no part
 * gets all or nothing: it must end whatever is left. */
static void measure_large(const struct cluster_plan *p, const struct hd_dealt *dealt, const uint32_t *job,
	double room[HD_SCHED_TYPES][HD_INTERVALS])
{
	uint32_t last = p->nintervals - 1;

	memset(room, 0, HD_SCHED_TYPES * sizeof *room);
	for (uint32_t k = 1; k < p->nsolved; k++) {
		const struct plan_column *c = &p->col[k];
		bool large = dealt->part_of[job[c->shape.member[0]]] >= dealt->nparts - dealt->nlarge;
		for (int d = 0; large && d < c->shape.nneeds; d++)
			room[c->shape.need[d].type][c->m] += c->shape.need[d].n * times(p,
				c) * p->last.x[k] / p->s->types[c->shape.need[d].type].n;
	}
	for (uint32_t j = 0; j < p->s->ntypes; j++) {
		for (uint32_t m = 0; m < last; m++)
			room[j][m] = fmin(1, fmax(0, room[j][m]));
		room[j][last] = p->last.x[0] > 0 ? room[j][last] / p->last.x[0] : 0.5;
		room[j][last] = fmin(1 - HD_LAST_ROOM, fmax(HD_LAST_ROOM, room[j][last]));
	}
}

/* A plan of the jobs that stand for others says when the large gangs run, and on how many devices: that is
 * the room of their parts, and what is left is that of the others. */
static enum hd_err plan_rough(struct cluster_plan *whole, const struct hd_dealt *dealt, uint32_t *job,
	double room[HD_SCHED_TYPES][HD_INTERVALS])
{
	uint32_t njobs = whole->s->njobs, *stands = hd_arena_take(whole->arena, njobs + 1, sizeof *stands);
	struct hd_alike *alike = hd_arena_take(whole->arena, njobs + 1, sizeof *alike);
	struct hd_sched_job *jobs = hd_arena_take(whole->arena, njobs + 1, sizeof *jobs);
	struct hd_sched_state state;

	if (!stands || !alike || !jobs)
		return no_memory(whole);
	for (uint32_t i = 0; i < njobs; i++)
		stands[i] = dealt->alike[i].n ? 0 : HD_SCHED_NONE;
	if (hd_pop_part(whole->s, 0, 1, stands, whole->arena, &state, job))
		return no_memory(whole);
	for (uint32_t i = 0; i < state.njobs; i++) {
		jobs[i] = state.jobs[i];
		alike[i] = dealt->alike[job[i]];
		jobs[i].weight = alike[i].weight;
		jobs[i].steps_left *= alike[i].work;
	}
	state.jobs = jobs;
	struct cluster_plan p = part_plan(whole, &state);
	p.alike = alike;
	enum hd_err err = hd_see(&p.seen, p.policy, &state, HD_FLAT_ONE, p.arena, p.diag);
	if (err)
		return err;
	set_units(&p, whole->total);
	err = find(&p);
	if (!err)
		measure_large(&p, dealt, job, room);
	count(whole, &p);
	forget(&p);
	return err;
}

/* A k-th of the devices of each type: one more of them for some of the time where k does not divide them. */
static enum hd_err narrow(struct cluster_plan *p, struct hd_sched_state *state, uint32_t k)
{
	struct hd_sched_type *types = hd_arena_take(p->arena, state->ntypes, sizeof *types);

	if (!types)
		return HD_E_NOMEM;
	memcpy(types, state->types, state->ntypes * sizeof *types);
	for (uint32_t j = 0; j < state->ntypes; j++) {
		types[j].n = (types[j].n + k - 1) / k;
		for (uint32_t m = 0; m < p->nintervals && types[j].n; m++)
			p->room[j][m] = state->types[j].n / ((double)k * types[j].n);
	}
	state->types = types;
	return HD_OK;
}

/* One after the other over the same intervals: side by side they are a plan of the whole, so that its
 * objective is that of the joined plan. */
static enum hd_err make_parts(struct cluster_plan *whole, uint32_t k, uint32_t size, struct steps *steps)
{
	uint32_t *job = hd_arena_take(whole->arena, whole->s->njobs + 1, sizeof *job), nsmall;
	double room[HD_SCHED_TYPES][HD_INTERVALS];
	struct hd_dealt dealt;
	enum hd_err err = HD_OK;

	if (!job || hd_pop_deal(whole->s, k, size, whole->arena, &dealt))
		return no_memory(whole);
	nsmall = dealt.nparts - dealt.nlarge;
	if (nsmall && dealt.nlarge && (err = plan_rough(whole, &dealt, job, room)))
		return err;
	for (uint32_t part = 0; part < dealt.nparts; part++) {
		bool large = part >= nsmall;
		struct hd_sched_state state;
		struct cluster_plan p = part_plan(whole, &state);
		if (hd_pop_part(whole->s, part, 1, dealt.part_of, whole->arena, &state, job))
			return no_memory(whole);
		if (!state.njobs)
			continue;
		if (narrow(&p, &state, large ? 1 : nsmall))
			return no_memory(whole);
		for (uint32_t j = 0; j < state.ntypes; j++)
			for (uint32_t m = 0; m < p.nintervals && dealt.nlarge; m++)
				p.room[j][m] *= !large ? 1 - room[j][m] :
					(nsmall ? room[j][m] : 1) / dealt.nlarge;
		if ((err = hd_see(&p.seen, whole->policy, &state, HD_FLAT_ONE, whole->arena, whole->diag)))
			return err;
		set_units(&p, whole->total);
		if ((err = make(&p, job, steps)))
			return err;
		count(whole, &p);
	}
	for (uint32_t j = 0; j < whole->s->ntypes; j++)
		steps->last = whole->s->types[j].n ? fmax(steps->last,
			steps->used[j] / whole->s->types[j].n) : steps->last;
	steps->objective += HD_MU * steps->last * whole->length[whole->nintervals - 1] * whole->weight;
	return HD_OK;
}

enum hd_err hd_heddle_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out,
	struct hd_diag *diag)
{
	struct cluster_plan p = { .policy = policy, .s = state, .arena = arena, .diag = diag };
	struct steps steps = { .n = 0 };
	uint32_t size;
	enum hd_err err = hd_see(&p.seen, policy, state, HD_FLAT_ONE, arena, diag);

	if (err)
		return err;
	for (uint32_t j = 0; j < HD_SCHED_TYPES; j++)
		for (uint32_t m = 0; m < HD_INTERVALS; m++)
			p.room[j][m] = 1;
	set_units(&p, guess(&p));
	cut_time(&p);
	uint32_t k = parts_of(&p, &size);
	err = k == 1 ? make(&p, NULL, &steps) : make_parts(&p, k, size, &steps);
	return err ? err : answer(&p, &steps, out);
}
