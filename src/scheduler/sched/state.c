#include "scheduler/sched_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
	const struct hd_sched_type *const *x = a, *const *y = b;
	int order = strcmp((*x)->name, (*y)->name);

	return order ? order : *x < *y ? -1 : 1;
}

static int by_id(const void *a, const void *b)
{
	const struct hd_sched_job *const *x = a, *const *y = b;

	return (*x)->id != (*y)->id ? ((*x)->id < (*y)->id ? -1 : 1) : *x < *y ? -1 : 1;
}

static int by_jobs(const void *a, const void *b)
{
	const struct hd_sched_pair *x = a, *y = b;

	return x->a != y->a ? (x->a < y->a ? -1 : 1) : x->b != y->b ? (x->b < y->b ? -1 : 1) : 0;
}

static const struct { double least, most; const char *words; } ranges[] = {
#define X(id, least, most, words) { least, most, words },
	HD_SCHED_RANGES(X)
#undef X
};

const char *hd_sched_range_words(enum hd_sched_range range) { return ranges[range].words; }

bool hd_sched_in(enum hd_sched_range range, double v)
{
	return (v >= ranges[range].least && v <= ranges[range].most) ||
		(range == HD_SCHED_IN_RATE && v == 0) || (range == HD_SCHED_IN_UNTIL && v == INFINITY);
}

static bool good(double v, bool zero) { return isfinite(v) && (zero ? v >= 0 : v > 0); }

static enum hd_err check_types(const struct hd_sched_state *s, struct hd_diag *diag)
{
	if (s->ntypes == 0 || s->ntypes > HD_SCHED_TYPES)
		return hd_fail(diag, HD_E_INVAL, "%u types of devices: there are 1 to %d", s->ntypes,
			HD_SCHED_TYPES);
	for (uint32_t j = 0; j < s->ntypes; j++) {
		const struct hd_sched_type *t = &s->types[j];
		if (j && !strcmp(t->name, s->types[j - 1].name))
			return hd_fail(diag, HD_E_INVAL, "the type \"%s\" is there twice", t->name);
		if (t->n > HD_SCHED_DEVICES)
			return hd_fail(diag, HD_E_INVAL, "type %s: %u devices, %d at most", t->name, t->n,
				HD_SCHED_DEVICES);
		if (!good(t->price_usd_h, true) || !good(t->revoked_per_s, true))
			return hd_fail(diag, HD_E_INVAL,
				"type %s: a price of %g and %g revocations a second; both are numbers from 0",
				t->name, t->price_usd_h,
				t->revoked_per_s);
	}
	return HD_OK;
}

static enum hd_err check_elastic(const struct hd_sched_job *job, struct hd_diag *diag)
{
	const struct hd_sched_elastic *e = job->elastic;

	if (!e)
		return HD_OK;
	if (e->min == 0 || e->min > e->max || e->max > HD_SCHED_DEVICES || !good(e->resize_s, true))
		return hd_fail(diag, HD_E_INVAL, "job %llu: %u to %u devices, %g s a resize",
			(unsigned long long)job->id, e->min, e->max, e->resize_s);
	if (e->min > job->scale || e->nvns == 0)
		return hd_fail(diag, HD_E_INVAL,
			"job %llu: elastic from %u devices on with %u virtual nodes, a scale of %u: at "
			"least one node, and no more "
			"devices than the scale", (unsigned long long)job->id, e->min, e->nvns, job->scale);
	for (uint32_t k = 1; k <= e->max; k++)
		if (!good(e->speedup[k], false))
			return hd_fail(diag, HD_E_INVAL, "job %llu: a speed-up of %g on %u devices",
				(unsigned long long)job->id, e->speedup[k], k);
	return HD_OK;
}

static enum hd_err check_job(const struct hd_sched_state *s, uint32_t i, struct hd_diag *diag)
{
	const struct hd_sched_job *job = &s->jobs[i];
	unsigned long long id = job->id;

	if (i && s->jobs[i - 1].id == job->id)
		return hd_fail(diag, HD_E_INVAL, "job %llu is there twice", id);
	if (job->scale == 0 || job->scale > HD_SCHED_DEVICES)
		return hd_fail(diag, HD_E_INVAL,
			"job %llu: a scale of %u; it is the number of devices, 1 to %d", id, job->scale,
			HD_SCHED_DEVICES);
	if (!good(job->weight, false))
		return hd_fail(diag, HD_E_INVAL, "job %llu: a weight of %g; it is above 0", id, job->weight);
	if (!good(job->steps_left, true))
		return hd_fail(diag, HD_E_INVAL, "job %llu: %g steps left", id, job->steps_left);
	if (!good(job->age_s, true) || isnan(job->deadline_s) || !good(job->usd_per_step, true) ||
		!good(job->lost_s, true))
		return hd_fail(diag, HD_E_INVAL,
			"job %llu: age %g s, deadline %g s, value %g a step, loss %g s: numbers from 0 (a "
			"deadline may be passed)",
			id, job->age_s, job->deadline_s, job->usd_per_step, job->lost_s);
	if (job->entity != HD_SCHED_NONE && job->entity >= s->nentities)
		return hd_fail(diag, HD_E_INVAL, "job %llu: entity %u of %u", id, job->entity, s->nentities);
	if (job->ikind != HD_SCHED_NONE && s->table && job->ikind >= s->table->nkinds)
		return hd_fail(diag, HD_E_INVAL, "job %llu: kind %u of %u", id, job->ikind, s->table->nkinds);
	for (uint32_t j = 0; j < s->ntypes; j++)
		if (!good(job->rate[j], true))
			return hd_fail(diag, HD_E_INVAL,
				"job %llu: %g steps/s on type %s; 0 stands for cannot run there", id,
				job->rate[j], s->types[j].name);
	return check_elastic(job, diag);
}

static enum hd_err check_pair(const struct hd_sched_state *s, uint32_t i, struct hd_diag *diag)
{
	const struct hd_sched_pair *p = &s->pairs[i];

	if (p->a >= p->b || p->b >= s->njobs)
		return hd_fail(diag, HD_E_INVAL, "a pair of jobs number %u and %u of %u", p->a, p->b,
			s->njobs);
	unsigned long long a = s->jobs[p->a].id, b = s->jobs[p->b].id;
	if (i && !by_jobs(p - 1, p))
		return hd_fail(diag, HD_E_INVAL, "the pair of jobs %llu and %llu is there twice", a, b);
	for (uint32_t k = 0; k < 2 * s->ntypes; k++)
		if (!good(p->rate[k % 2][k / 2], true))
			return hd_fail(diag, HD_E_INVAL, "jobs %llu and %llu together: %g steps/s on type %s",
				a, b, p->rate[k % 2][k / 2],
				s->types[k / 2].name);
	return HD_OK;
}

/* A copy of rates[ntypes] with type j at where[j]. */
static const double *moved(const double *rate, const uint32_t *from, uint32_t n, struct hd_arena *arena)
{
	double *to = hd_arena_take(arena, n, sizeof *to);

	for (uint32_t j = 0; to && j < n; j++)
		to[j] = rate[from[j]];
	return to;
}

/* where the new i-th was; place: where the old i-th job is now */
struct id_order { uint32_t *type, *job, *place; };

static enum hd_err find_order(const struct hd_sched_state *s, struct id_order *o, struct hd_arena *arena)
{
	const struct hd_sched_type **types = hd_arena_take(arena, s->ntypes, sizeof *types);
	const struct hd_sched_job **jobs = hd_arena_take(arena, s->njobs, sizeof *jobs);

	o->type = hd_arena_take(arena, s->ntypes, sizeof *o->type);
	o->job = hd_arena_take(arena, s->njobs, sizeof *o->job);
	o->place = hd_arena_take(arena, s->njobs, sizeof *o->place);
	if (!types || !jobs || !o->type || !o->job || !o->place)
		return HD_E_NOMEM;
	for (uint32_t j = 0; j < s->ntypes; j++)
		types[j] = &s->types[j];
	for (uint32_t i = 0; i < s->njobs; i++)
		jobs[i] = &s->jobs[i];
	qsort(types, s->ntypes, sizeof *types, by_name);
	qsort(jobs, s->njobs, sizeof *jobs, by_id);
	for (uint32_t j = 0; j < s->ntypes; j++)
		o->type[j] = (uint32_t)(types[j] - s->types);
	for (uint32_t i = 0; i < s->njobs; i++) {
		o->job[i] = (uint32_t)(jobs[i] - s->jobs);
		o->place[o->job[i]] = i;
	}
	return HD_OK;
}

static enum hd_err reorder(struct hd_sched_state *s, const struct id_order *o, struct hd_arena *arena)
{
	struct hd_sched_type *types = hd_arena_take(arena, s->ntypes, sizeof *types);
	struct hd_sched_job *jobs = hd_arena_take(arena, s->njobs, sizeof *jobs);
	struct hd_sched_pair *pairs = hd_arena_take(arena, s->npairs, sizeof *pairs);

	if (!types || !jobs || !pairs)
		return HD_E_NOMEM;
	for (uint32_t j = 0; j < s->ntypes; j++)
		types[j] = s->types[o->type[j]];
	for (uint32_t i = 0; i < s->njobs; i++) {
		jobs[i] = s->jobs[o->job[i]];
		jobs[i].rate = moved(jobs[i].rate, o->type, s->ntypes, arena);
		if (!jobs[i].rate)
			return HD_E_NOMEM;
	}
	for (uint32_t k = 0; k < s->npairs; k++) {
		const struct hd_sched_pair *was = &s->pairs[k];
		if (was->a >= s->njobs || was->b >= s->njobs) {        /* check_pair will say so */
			pairs[k] = *was;
			continue;
		}
		uint32_t a = o->place[was->a], b = o->place[was->b];
		bool swap = a > b;
		pairs[k] = (struct hd_sched_pair){ swap ? b : a, swap ? a : b,
			{ moved(was->rate[swap], o->type, s->ntypes, arena), moved(was->rate[!swap], o->type, s->ntypes, arena) } };
		if (!pairs[k].rate[0] || !pairs[k].rate[1])
			return HD_E_NOMEM;
	}
	qsort(pairs, s->npairs, sizeof *pairs, by_jobs);
	s->types = types;
	s->jobs = jobs;
	s->pairs = pairs;
	return HD_OK;
}

/* Each leads to one that is within none, in a few steps. */
static enum hd_err check_entity(const struct hd_sched_state *s, uint32_t entity, struct hd_diag *diag)
{
	const struct hd_sched_entity *e = &s->entities[entity];
	uint32_t levels = 1;

	if (!good(e->weight, false))
		return hd_fail(diag, HD_E_INVAL, "entity %s: a weight of %g; it is above 0", e->name,
			e->weight);
	for (uint32_t at = e->within; at; at = s->entities[at - 1].within)
		if (at > s->nentities || levels++ == HD_SCHED_LEVELS)
			return hd_fail(diag, HD_E_INVAL, "entity %s: it lies within itself, or more than %d "
				"deep", e->name, HD_SCHED_LEVELS);
	return HD_OK;
}

enum hd_err hd_sched_order(struct hd_sched_state *s, struct hd_arena *arena, struct hd_diag *diag)
{
	struct id_order o;
	enum hd_err err;

	if (s->njobs > HD_SCHED_JOBS || s->nentities > HD_SCHED_ENTITIES)
		return hd_fail(diag, HD_E_INVAL, "%u jobs and %u entities: %d and %d at most", s->njobs,
			s->nentities, HD_SCHED_JOBS, HD_SCHED_ENTITIES);
	if (s->table && s->table->nkinds > HD_SCHED_KINDS)
		return hd_fail(diag, HD_E_INVAL, "%u kinds of jobs: %d at most", s->table->nkinds,
			HD_SCHED_KINDS);
	err = find_order(s, &o, arena);
	if (!err)
		err = reorder(s, &o, arena);
	if (err)
		return hd_fail(diag, err, "no memory for a state of %u jobs", s->njobs);
	err = check_types(s, diag);
	for (uint32_t i = 0; !err && i < s->nentities; i++)
		err = check_entity(s, i, diag);
	for (uint32_t i = 0; !err && i < s->njobs; i++)
		err = check_job(s, i, diag);
	for (uint32_t k = 0; !err && k < s->npairs; k++)
		err = check_pair(s, k, diag);
	return err;
}

uint32_t hd_sched_find(const struct hd_sched_state *s, uint64_t id)
{
	uint32_t lo = 0, hi = s->njobs;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (s->jobs[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < s->njobs && s->jobs[lo].id == id ? lo : HD_SCHED_NONE;
}

bool hd_sched_blocked(const struct hd_sched_state *s, uint32_t job)
{
	for (uint32_t j = 0; j < s->ntypes; j++)
		if (hd_sched_fits(s, job, j))
			return false;
	return true;
}

double hd_sched_rate_on(const struct hd_sched_job *job, uint32_t type, uint32_t n)
{
	const struct hd_sched_elastic *e = job->elastic;

	if (!e)
		return n == job->scale ? job->rate[type] : 0;
	if (n < e->min || n > e->max)
		return 0;
	return job->rate[type] * (e->speedup[n] / e->speedup[job->scale < e->max ? job->scale : e->max]);
}

bool hd_sched_fits_whole(const struct hd_sched_state *s, uint32_t job)
{
	for (uint32_t j = 0; j < s->ntypes; j++)
		if (s->jobs[job].rate[j] > 0 && s->types[j].n >= s->jobs[job].scale)
			return true;
	return false;
}

bool hd_sched_absent(const struct hd_sched_state *s, uint32_t job) { return !(s->jobs[job].steps_left > 0) ||
	hd_sched_blocked(s, job); }

static const struct hd_sched_pair *listed(const struct hd_sched_state *s, uint32_t a, uint32_t b)
{
	uint32_t lo = 0, hi = s->npairs;
	struct hd_sched_pair key = { a, b, { NULL, NULL } };

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (by_jobs(&s->pairs[mid], &key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < s->npairs && s->pairs[lo].a == a && s->pairs[lo].b == b ? &s->pairs[lo] : NULL;
}

bool hd_sched_pair_rate(const struct hd_sched_state *s, uint32_t a, uint32_t b, uint32_t type, double rate[2])
{
	const struct hd_sched_pair *pair = listed(s, a < b ? a : b, a < b ? b : a);
	const struct hd_sched_job *x = &s->jobs[a], *y = &s->jobs[b];

	rate[0] = rate[1] = 0;
	if (a == b || x->scale != y->scale || s->types[type].n == 0)
		return false;
	if (pair) {
		rate[0] = pair->rate[a > b][type];
		rate[1] = pair->rate[a < b][type];
	} else if (s->table && x->ikind != HD_SCHED_NONE && y->ikind != HD_SCHED_NONE) {
		const double *at = &s->table->rate[(((size_t)x->ikind * s->table->nkinds + y->ikind) *
			s->ntypes + type) * 2];
		rate[0] = at[0];
		rate[1] = at[1];
	}
	return rate[0] > 0 && rate[1] > 0;
}

double hd_sched_proportional(const struct hd_sched_state *s, const double *rate)
{
	double sum = 0, devices = 0;

	for (uint32_t j = 0; j < s->ntypes; j++) {
		sum += rate[j] * s->types[j].n;
		devices += s->types[j].n;
	}
	return devices > 0 ? sum / devices : 0;
}

double hd_sched_isolated(const struct hd_sched_state *s, uint32_t job, const double *rate, uint32_t n,
	bool whole, double *x)
{
	double sum = 0, steps = 0;

	for (uint32_t j = 0; j < s->ntypes; j++) {
		x[j] = whole && s->types[j].n < s->jobs[job].scale ? 0 :
			(double)s->types[j].n / n / s->jobs[job].scale;
		sum += x[j];
	}
	for (uint32_t j = 0; j < s->ntypes; j++) {
		x[j] /= fmax(1, sum);
		steps += rate[j] * x[j];
	}
	return steps;
}
