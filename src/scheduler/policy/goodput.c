/* Devices by goodput, samples per second weighed by what they teach (Qiao et al., "Pollux: co-adaptive
 * cluster scheduling for goodput-optimized deep learning", OSDI 2021; several types of devices as in Jayaram
 * Subramanya et al., "Sia", SOSP 2023).
 *
 * speedup of a way to run = its goodput over that of an equal part: N_j / n devices (at least one) of each
 * type j, types by their numbers. The power mean of speedups of exponent -1 is made as large as it gets: the
 * least sum of w / speedup. A job that waits counts as one that goes at HD_WAITS of its part. A job without a
 * model (sched_state.h) has goodput = steps/s: its batch stays.
 *
 * Where we depart: Pollux draws placements at random and keeps the best (a genetic search), here they are
 * found step by step:
 *	1. from nothing, the step that saves most: a job begins, or goes on to more devices of its type.
 *	   Thrice: by what it saves for each device more, for the root of their number, and at all;
 *	2. then, job by job, the one way that saves most given all others, and pairs of jobs of which one lets
 *	   go for the other, until nothing helps or HD_TRIES ways were tried (`cut`). The best of the three is
 *	   the answer.
 * A change from the last answer counts as the time that it takes, resize_s (30 s to begin, 20 s to move), out
 * of the HD_LASTS_S that a decision lasts. Ties: lower job id, first type, fewer devices.
 *
 * Changes the batch, so its runs are not bound to the promise of equal bits; it is for jobs that allow
 * that. */
#include "scheduler/policy/goodput.h"

#include <assert.h>
#include <math.h>

#include "scheduler/policy/int.h"

enum { HD_BATCHES = 50, HD_STARTS = 3, HD_TRIES = 10000000 };       /* ways looked at from one start */
#define HD_WAITS 0.1
#define HD_LASTS_S 600.0
#define HD_BEGIN_S 30.0
#define HD_MOVE_S 20.0

/* ---- the model ---- */

static double step_s(const struct hd_sched_goodput *m, uint32_t k, double local, double more)
{
	bool nodes = m->node && k > m->node;
	double acc = m->ac + m->bc * local, far = k > 2 ? k - 2 : 1e-8;
	double net = k == 1 ? 1e-8 : nodes ? m->an + m->bn * far : m->ar + m->br * far;

	return more * acc + pow(pow(acc, m->g) + pow(net, m->g), 1 / m->g);
}

double hd_goodput_at(const struct hd_sched_goodput *m, uint32_t k, double batch)
{
	double local = batch / k, more = ceil(local / m->most_local - 1e-9) - 1, s;

	more = fmax(more, 0);
	local = local / (more + 1);
	s = k * local * (more + 1) / m->batch;
	return k * local * (more + 1) / step_s(m, k, local,
		more) * ((m->var + m->sqr) / (m->var / s + m->sqr)) / s;
}

static void batches_of(const struct hd_sched_goodput *m, double batch[HD_BATCHES])
{
	for (int i = 0; i < HD_BATCHES; i++)
		batch[i] = m->batch * pow((double)m->most_batch / m->batch, (double)i / (HD_BATCHES - 1));
}

static double best_batch(const struct hd_sched_goodput *m, uint32_t k, const double from[HD_BATCHES],
	double *batch)
{
	double best = 0;

	for (int i = 0; i < HD_BATCHES; i++) {
		double worth;
		if (from[i] < k)                          /* a sample a device at least */
			continue;
		worth = hd_goodput_at(m, k, from[i]);
		if (worth > best) {
			best = worth;
			*batch = from[i];
		}
	}
	return best;
}

double hd_goodput(const struct hd_sched_goodput *m, uint32_t k, double *batch)
{
	double from[HD_BATCHES];

	batches_of(m, from);
	return best_batch(m, k, from, batch);
}

/* ---- allotment ---- */

/* wait: w / speedup, less than of a job that waits */
struct goodput_way { uint32_t type, n; double wait; };

struct allotment {
	const struct hd_policy *policy;
	const struct hd_sched_state *s;
	struct hd_arena *arena;
	struct goodput_way *way;                          /* of all jobs: by job, type, n */
	uint32_t nways, cap;
	uint32_t *first;                          /* [njobs * ntypes + 1]: of a job and type, n ascending */
	/* [nways]: of those of its job and type up to it the one that waits least */
	uint32_t *least;
	/* [njobs]: the wait of its best way, if all devices were its */
	double *lowest;
	uint32_t *has;                            /* [njobs] its way; HD_SCHED_NONE: waits */
	int64_t free[HD_SCHED_TYPES];
	uint32_t tries;
};

static uint32_t first_of(const struct allotment *g, uint32_t job) { return g->first[(size_t)job *
	g->s->ntypes]; }
static uint32_t end_of(const struct allotment *g, uint32_t job) { return g->first[(size_t)(job + 1) *
	g->s->ntypes]; }

/* Goodput of one job by devices, which is the same on every type: found once each. */
/* at: [cap], NAN: not asked for yet */
struct goodput_curve { double batch[HD_BATCHES], *at; uint32_t cap; };

static bool told_to_stop(const struct allotment *g) { return hd_policy_is_stopped(&g->policy->set); }

static enum hd_err begin_curve(struct goodput_curve *c, const struct hd_sched_state *s, uint32_t job,
	struct hd_arena *arena)
{
	uint32_t most = hd_sched_most(&s->jobs[job]), devices = 0;

	if (!s->jobs[job].goodput)
		return HD_OK;
	for (uint32_t t = 0; t < s->ntypes; t++)
		devices = s->types[t].n > devices ? s->types[t].n : devices;
	most = most < devices ? most : devices;
	if (most >= c->cap) {
		c->cap = 2 * most + 16;
		if (!(c->at = hd_arena_take(arena, c->cap, sizeof *c->at)))
			return HD_E_NOMEM;
	}
	for (uint32_t k = 0; k <= most; k++)
		c->at[k] = NAN;
	batches_of(s->jobs[job].goodput, c->batch);
	return HD_OK;
}

static double worth(struct goodput_curve *c, const struct hd_sched_job *job, uint32_t type, uint32_t n,
	uint32_t ntypes)
{
	double most = 0, batch;

	if (!job->goodput)
		return hd_sched_rate_on(job, type, n);
	for (uint32_t j = 0; j < ntypes; j++)
		most = fmax(most, job->rate[j]);
	if (!(job->rate[type] > 0))
		return 0;
	assert(n < c->cap);
	if (isnan(c->at[n]))
		c->at[n] = best_batch(job->goodput, n, c->batch, &batch);
	return c->at[n] * job->rate[type] / most;
}

/* Types by their numbers, of each N_j / n devices as whole ones, what the job can be on; 0: on none. */
static double of_a_part(const struct hd_sched_state *s, struct goodput_curve *c, uint32_t job, uint32_t njobs)
{
	const struct hd_sched_job *j = &s->jobs[job];
	double sum = 0, devices = 0;

	for (uint32_t t = 0; t < s->ntypes; t++) {
		uint32_t n = s->types[t].n / njobs, least = hd_sched_fewest(j), most = hd_sched_most(j);
		double less = 1;
		n = n > most ? most : n;
		if (n < least) {                          /* a part of the time of what it needs */
			less = fmin(1, (double)s->types[t].n / njobs / least);
			n = least;
		}
		sum += n <= s->types[t].n ? less * s->types[t].n * worth(c, j, t, n, s->ntypes) : 0;
		devices += s->types[t].n;
	}
	return devices > 0 ? sum / devices : 0;
}

static double change_s(const struct allotment *g, uint32_t job, uint32_t type, uint32_t n)
{
	const struct hd_sched_elastic *e = g->s->jobs[job].elastic;

	for (uint32_t k = 0; k < g->policy->nkept; k++) {
		const struct hd_kept_share *was = &g->policy->kept[k];
		if (was->a != g->s->jobs[job].id)
			continue;
		if (was->need[0].type == type)
			return was->need[0].n == n ? 0 : e ? e->resize_s : HD_MOVE_S;
		return HD_MOVE_S;
	}
	return HD_BEGIN_S;
}

static double waiting(const struct allotment *g, uint32_t job) { return g->s->jobs[job].weight / HD_WAITS; }
static double now(const struct allotment *g, uint32_t job) { return g->has[job] == HD_SCHED_NONE ? waiting(g,
	job) : g->way[g->has[job]].wait; }

static enum hd_err add_way(struct allotment *g, struct goodput_way way)
{
	if (g->nways == g->cap) {
		uint32_t cap = g->cap ? 2 * g->cap : 256;
		struct goodput_way *more = hd_arena_take(g->arena, cap, sizeof *more);
		if (!more)
			return HD_E_NOMEM;
		for (uint32_t k = 0; k < g->nways; k++)
			more[k] = g->way[k];
		g->way = more;
		g->cap = cap;
	}
	g->way[g->nways++] = way;
	return HD_OK;
}

/* All ways of a job that are better than to wait. */
static enum hd_err ways_of(struct allotment *g, struct goodput_curve *c, uint32_t i, uint32_t present)
{
	const struct hd_sched_state *s = g->s;
	const struct hd_sched_job *j = &s->jobs[i];
	enum hd_err err = begin_curve(c, s, i, g->arena);
	double part = err || hd_sched_absent(s, i) ? 0 : of_a_part(s, c, i, present);

	g->has[i] = HD_SCHED_NONE;
	g->lowest[i] = waiting(g, i);
	for (uint32_t t = 0; !err && t < s->ntypes; t++) {
		g->first[(size_t)i * s->ntypes + t] = g->nways;
		for (uint32_t n = hd_sched_fewest(j); !err && part > 0 && n <= hd_sched_most(j) &&
			n <= s->types[t].n;
			n = j->elastic ? hd_way_next(n) : n + 1) {
			double good = worth(c, j, t, n, s->ntypes) * (1 - fmin(0.9,
				change_s(g, i, t, n) / HD_LASTS_S));
			double wait = good > 0 ? j->weight * part / good : INFINITY;
			if (wait < waiting(g, i))
				err = add_way(g, (struct goodput_way){ t, n, wait });
			g->lowest[i] = fmin(g->lowest[i], wait);
		}
	}
	return err;
}

static enum hd_err ways(struct allotment *g, uint32_t present)
{
	struct goodput_curve curve = { .cap = 0 };
	uint32_t njobs = g->s->njobs, nlists = njobs * g->s->ntypes;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; !err && i < njobs; i++)
		err = told_to_stop(g) ? HD_E_AGAIN : ways_of(g, &curve, i, present);
	g->first[nlists] = g->nways;
	if (err || !(g->least = hd_arena_take(g->arena, g->nways + 1, sizeof *g->least)))
		return err ? err : HD_E_NOMEM;
	for (uint32_t l = 0; l < nlists; l++)
		for (uint32_t k = g->first[l]; k < g->first[l + 1]; k++) {
			bool better = k == g->first[l] || g->way[k].wait < g->way[g->least[k - 1]].wait *
				(1 - 1e-12);
			g->least[k] = better ? k : g->least[k - 1];
		}
	return HD_OK;
}

/* Gives job the way (HD_SCHED_NONE: nothing) and the devices of the one it had back. */
static void give(struct allotment *g, uint32_t job, uint32_t way)
{
	if (g->has[job] != HD_SCHED_NONE)
		g->free[g->way[g->has[job]].type] += g->way[g->has[job]].n;
	g->has[job] = way;
	if (way != HD_SCHED_NONE)
		g->free[g->way[way].type] -= g->way[way].n;
}

static bool fits(const struct allotment *g, uint32_t way) { return way == HD_SCHED_NONE ||
	g->way[way].n <= g->free[g->way[way].type]; }

/* ---- rule 1 ---- */

struct size_offer { double saved; uint32_t way; };             /* way HD_SCHED_NONE: nothing fits */

/* A start, or more devices of the same type, by what it saves for a power of their number, which stands in
 * `many`. */
static struct size_offer look(const struct allotment *g, uint32_t job, const double *many)
{
	struct size_offer best = { 0, HD_SCHED_NONE };
	uint32_t had = g->has[job] == HD_SCHED_NONE ? 0 : g->way[g->has[job]].n;

	for (uint32_t k = first_of(g, job); k < end_of(g, job); k++) {
		const struct goodput_way *to = &g->way[k];
		if ((had && to->type != g->way[g->has[job]].type) || to->n <= had ||
			to->n - had > g->free[to->type])
			continue;
		double saved = (now(g, job) - to->wait) / many[to->n - had];
		if (saved > best.saved * (1 + 1e-12))
			best = (struct size_offer){ saved, k };
	}
	return best;
}

static bool still_fits(const struct allotment *g, uint32_t job, uint32_t way)
{
	uint32_t had = g->has[job] == HD_SCHED_NONE ? 0 : g->way[g->has[job]].n;

	return g->way[way].n - had <= g->free[g->way[way].type];
}

/* Step by step. Devices only become fewer meanwhile, so the best of a job is its best as long as it fits. */
static enum hd_err begin_from_nothing(struct allotment *g, double power)
{
	uint32_t most = 0, njobs = g->s->njobs;
	struct size_offer *offer = hd_arena_take(g->arena, njobs + 1, sizeof *offer);

	for (uint32_t k = 0; k < g->nways; k++)
		most = g->way[k].n > most ? g->way[k].n : most;
	double *many = hd_arena_take(g->arena, most + 1, sizeof *many);
	if (!offer || !many)
		return HD_E_NOMEM;
	for (uint32_t n = 1; n <= most; n++)
		many[n] = pow(n, power);
	for (uint32_t i = 0; i < njobs; i++)
		offer[i] = look(g, i, many);
	for (uint32_t next = 0; next != HD_SCHED_NONE && !told_to_stop(g);) {
		double saved = 0;
		next = HD_SCHED_NONE;
		for (uint32_t i = 0; i < njobs; i++) {
			if (offer[i].way != HD_SCHED_NONE && !still_fits(g, i, offer[i].way))
				offer[i] = look(g, i, many);
			if (offer[i].way == HD_SCHED_NONE || !(offer[i].saved > saved * (1 + 1e-12)))
				continue;
			saved = offer[i].saved;
			next = i;
		}
		if (next == HD_SCHED_NONE)
			break;
		give(g, next, offer[next].way);
		offer[next] = look(g, next, many);
	}
	return HD_OK;
}

/* ---- rule 2 ---- */

/* Of a job's ways on a type with at most so many devices the best; HD_SCHED_NONE: none. */
static uint32_t best_under(const struct allotment *g, uint32_t job, uint32_t type, int64_t most)
{
	size_t list = (size_t)job * g->s->ntypes + type;
	uint32_t from = g->first[list], to = g->first[list + 1];

	while (from < to) {
		uint32_t mid = from + (to - from) / 2;
		if (g->way[mid].n <= most)
			from = mid + 1;
		else
			to = mid;
	}
	return from == g->first[list] ? HD_SCHED_NONE : g->least[from - 1];
}

/* The best way of one job with what is free when it lets go of its own; HD_SCHED_NONE is allowed. */
static uint32_t best_of(const struct allotment *g, uint32_t job, double *wait)
{
	uint32_t best = HD_SCHED_NONE;

	*wait = waiting(g, job);
	for (uint32_t t = 0; t < g->s->ntypes; t++) {
		uint32_t k = best_under(g, job, t, g->free[t]);
		if (k != HD_SCHED_NONE && g->way[k].wait < *wait * (1 - 1e-12)) {
			*wait = g->way[k].wait;
			best = k;
		}
	}
	return best;
}

/* Rule 2: job a takes way k and b, letting go of what it had, the best that is left. */
static bool try_pair(struct allotment *g, uint32_t a, uint32_t b)
{
	uint32_t hada = g->has[a], hadb = g->has[b], best[2] = { hada, hadb };
	double least = (now(g, a) + now(g, b)) * (1 - 1e-9), wait;

	g->tries++;
	if (g->lowest[a] + g->lowest[b] >= least)
		return false;
	give(g, b, HD_SCHED_NONE);
	for (uint32_t k = first_of(g, a); k < end_of(g, a); k++) {
		give(g, a, HD_SCHED_NONE);
		if (g->way[k].wait + g->lowest[b] >= least || !fits(g, k))
			continue;
		g->tries += end_of(g, b) - first_of(g, b);
		give(g, a, k);
		uint32_t other = best_of(g, b, &wait);
		if (g->way[k].wait + wait < least) {
			least = g->way[k].wait + wait;
			best[0] = k;
			best[1] = other;
		}
	}
	give(g, a, HD_SCHED_NONE);
	give(g, a, best[0]);
	give(g, b, best[1]);
	return best[0] != hada || best[1] != hadb;
}

static bool improve(struct allotment *g)
{
	bool any = false;
	double wait;

	for (uint32_t a = 0; a < g->s->njobs && !told_to_stop(g); a++) {
		uint32_t had = g->has[a];
		if (first_of(g, a) == end_of(g, a))
			continue;
		give(g, a, HD_SCHED_NONE);
		uint32_t best = best_of(g, a, &wait);
		bool better = wait < (had == HD_SCHED_NONE ? waiting(g, a) : g->way[had].wait) * (1 - 1e-9);
		give(g, a, better ? best : had);
		any |= better;
	}
	for (uint32_t a = 0; a < g->s->njobs; a++)
		for (uint32_t b = 0; b < g->s->njobs && g->tries < HD_TRIES; b++)
			if (a != b && first_of(g, a) < end_of(g, a) && g->has[b] != HD_SCHED_NONE)
				any |= try_pair(g, a, b);
	return any;
}

enum hd_err hd_goodput_init(struct hd_policy *policy, struct hd_diag *diag) { (void)policy, (void)diag;
	return HD_OK; }
void hd_goodput_finish(struct hd_policy *policy) { (void)policy; }

static double sum_of(const struct allotment *g)
{
	double sum = 0;

	for (uint32_t i = 0; i < g->s->njobs; i++)
		sum += hd_sched_absent(g->s, i) ? 0 : now(g, i);
	return sum;
}

static enum hd_err best_of_starts(struct allotment *g, struct hd_shares *out)
{
	static const double power[HD_STARTS] = { 1, 0.5, 0 };
	uint32_t *best = hd_arena_take(g->arena, g->s->njobs + 1, sizeof *best);

	if (!best)
		return HD_E_NOMEM;
	out->objective = INFINITY;
	for (int start = 0; start < HD_STARTS; start++) {
		g->tries = 0;
		for (uint32_t i = 0; i < g->s->njobs; i++)
			give(g, i, HD_SCHED_NONE);
		if (begin_from_nothing(g, power[start]))
			return HD_E_NOMEM;
		while (!told_to_stop(g) && g->tries < HD_TRIES && improve(g))
			;
		if (told_to_stop(g))
			return HD_E_AGAIN;
		out->cut |= g->tries >= HD_TRIES;
		if (sum_of(g) < out->objective * (1 - 1e-9)) {
			out->objective = sum_of(g);
			for (uint32_t i = 0; i < g->s->njobs; i++)
				best[i] = g->has[i];
		}
	}
	g->has = best;
	return HD_OK;
}

static enum hd_err collect(struct allotment *g, struct hd_shares *out)
{
	struct hd_collect c = { .out = out, .arena = g->arena };
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; !err && i < g->s->njobs; i++) {
		if (g->has[i] == HD_SCHED_NONE)
			continue;
		const struct goodput_way *w = &g->way[g->has[i]];
		struct hd_shape shape = { .nmembers = 1, .nneeds = 1, .member = { i, HD_SCHED_NONE },
			.need = { { w->type, w->n } } };
		shape.rate[0] = hd_sched_rate_on(&g->s->jobs[i], w->type, w->n);
		err = hd_collect(&c, &shape, 1);
	}
	return err;
}

enum hd_err hd_goodput_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out,
	struct hd_diag *diag)
{
	struct allotment g = { .policy = policy, .s = state, .arena = arena };
	uint32_t present = 0;
	enum hd_err err = HD_OK;

	g.first = hd_arena_take(arena, (size_t)state->njobs * state->ntypes + 1, sizeof *g.first);
	g.lowest = hd_arena_take(arena, state->njobs + 1, sizeof *g.lowest);
	g.has = hd_arena_take(arena, state->njobs + 1, sizeof *g.has);
	for (uint32_t j = 0; j < state->ntypes; j++)
		g.free[j] = state->types[j].n;
	for (uint32_t i = 0; i < state->njobs; i++)
		present += !hd_sched_absent(state, i);
	if (!g.first || !g.has || !g.lowest)
		err = HD_E_NOMEM;
	if (!err)
		err = ways(&g, present);
	if (!err)
		err = best_of_starts(&g, out);
	if (!err)
		err = collect(&g, out);
	out->work_conserving = false;
	if (err == HD_E_AGAIN)
		return hd_fail(diag, err, "devices for %u jobs by goodput: cancelled",
			state->njobs);
	return err ? hd_fail(diag, err, "no memory for %u jobs", state->njobs) : HD_OK;
}
