#include <math.h>
#include <string.h>

#include "scheduler/policy/int.h"

static uint32_t reference(const struct hd_sched_state *state, const char *name)
{
	for (uint32_t j = 0; name && j < state->ntypes; j++)
		if (!strcmp(state->types[j].name, name))
			return j;
	return HD_SCHED_NONE;
}

/* What is left of a speed when devices are revoked: each event costs all devices of the job `lost_s`. */
static double kept(const struct hd_sched_job *job, const struct hd_sched_type *type)
{
	return 1 - fmin(0.95, job->scale * type->revoked_per_s * job->lost_s);
}

/* The reference's rate, or the largest where it has none: the job runs somewhere, so it must have a speed. */
static double flat_rate(const struct hd_sched_state *state, uint32_t job, enum hd_flat flat, uint32_t type)
{
	const double *rate = state->jobs[job].rate;
	double most = 0;

	if (flat == HD_FLAT_ONE)
		return 1;
	if (type != HD_SCHED_NONE && rate[type] > 0)
		return rate[type];
	for (uint32_t j = 0; j < state->ntypes; j++)
		most = fmax(most, rate[j]);
	return most;
}

static double rate_of(const struct hd_policy_setting *set, const struct hd_sched_state *state, uint32_t job,
	uint32_t j, enum hd_flat flat, uint32_t ref)
{
	if (state->types[j].n == 0)
		return 0;
	if (set->variant == HD_VARIANT_PLAIN)
		return state->jobs[job].rate[j] > 0 ? flat_rate(state, job, flat, ref) : 0;
	return state->jobs[job].rate[j] * (set->fidelity == HD_FIDELITY_EXACT ? kept(&state->jobs[job],
		&state->types[j]) : 1);
}

enum hd_err hd_see(struct hd_seen *seen, const struct hd_policy *policy, const struct hd_sched_state *state,
	enum hd_flat flat, struct hd_arena *arena,
	struct hd_diag *diag)
{
	uint32_t n = state->njobs, m = state->ntypes, ref = reference(state, policy->set.reference_type);
	bool *absent = hd_arena_take(arena, n, sizeof *absent);
	double *rate = hd_arena_take(arena, (size_t)n * m, sizeof *rate),
		*p = hd_arena_take(arena, n, sizeof *p);
	double *iso = hd_arena_take(arena, n, sizeof *iso), x[HD_SCHED_TYPES];
	bool elastic = policy->set.policy->powers & HD_POLICY_ELASTIC;

	*seen = (struct hd_seen){ .state = state, .set = &policy->set, .absent = absent, .rate = rate, .p = p,
		.iso = iso };
	if (!absent || !rate || !p || !iso)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u jobs", n);
	for (uint32_t i = 0; i < n; i++) {
		absent[i] = elastic ? hd_sched_absent(state, i) : hd_never_whole(state, i);
		seen->npresent += !absent[i];
		p[i] = 1;
	}
	for (uint32_t i = 0; i < n; i++) {
		double *row = &rate[(size_t)i * m];
		if (absent[i])
			continue;
		for (uint32_t j = 0; j < m; j++)
			row[j] = rate_of(&policy->set, state, i, j, flat, ref);
		/* all T are 1 then, also where the job cannot run: it is not owed less for that */
		p[i] = policy->set.variant == HD_VARIANT_PLAIN &&
			flat == HD_FLAT_ONE ? 1 : hd_sched_proportional(state, row);
		for (uint32_t j = 0; j < m && !elastic; j++)
			row[j] = hd_whole(&policy->set, state, i, j) ? row[j] : 0;
		iso[i] = hd_sched_isolated(state, i, row, seen->npresent, !elastic &&
			policy->set.fidelity == HD_FIDELITY_EXACT, x);
	}
	return HD_OK;
}

double hd_seen_best(const struct hd_seen *seen, uint32_t job)
{
	double most = 0;

	for (uint32_t j = 0; j < seen->state->ntypes; j++)
		most = fmax(most, hd_seen_rate(seen, job, j));
	return most;
}

bool hd_seen_pair(const struct hd_seen *seen, uint32_t a, uint32_t b, uint32_t type, double rate[2])
{
	const struct hd_sched_state *s = seen->state;
	double threshold = seen->set->pack_threshold > 0 ? seen->set->pack_threshold : 1;

	if (seen->absent[a] || seen->absent[b] || !hd_whole(seen->set, s, a, type) ||
		!hd_sched_pair_rate(s, a, b, type, rate) ||
		!(s->jobs[a].rate[type] > 0 && s->jobs[b].rate[type] > 0))
		return false;
	double worth = rate[0] / s->jobs[a].rate[type] + rate[1] / s->jobs[b].rate[type];
	if (seen->set->fidelity == HD_FIDELITY_EXACT) {
		rate[0] *= kept(&s->jobs[a], &s->types[type]);
		rate[1] *= kept(&s->jobs[b], &s->types[type]);
	}
	return worth >= threshold;
}

struct hd_shape hd_way_single(const struct hd_sched_state *state, uint32_t job, uint32_t type)
{
	return (struct hd_shape){ .nmembers = 1, .nneeds = 1, .member = { job, HD_SCHED_NONE },
		.rate = { state->jobs[job].rate[type] },
		.need = { { type, state->jobs[job].scale } } };
}

struct hd_shape hd_way_pair(const struct hd_sched_state *state, uint32_t a, uint32_t b, uint32_t type)
{
	struct hd_shape shape = { .nmembers = 2, .nneeds = 1, .member = { a, b },
		.need = { { type, state->jobs[a].scale } } };

	(void)hd_sched_pair_rate(state, a, b, type, shape.rate);
	return shape;
}

enum hd_err hd_collect(struct hd_collect *c, const struct hd_shape *shape, double x)
{
	struct hd_shares *out = c->out;

	if (out->nshapes == c->cap) {
		uint32_t cap = c->cap ? 2 * c->cap : 64;
		struct hd_shape *shapes = hd_arena_take(c->arena, cap, sizeof *shapes);
		double *xs = hd_arena_take(c->arena, cap, sizeof *xs);
		if (!shapes || !xs)
			return HD_E_NOMEM;
		if (out->nshapes) {
			memcpy(shapes, c->shape, out->nshapes * sizeof *shapes);
			memcpy(xs, c->x, out->nshapes * sizeof *xs);
		}
		c->cap = cap;
		out->shape = c->shape = shapes;
		out->x = c->x = xs;
	}
	c->shape[out->nshapes] = *shape;
	c->x[out->nshapes++] = x;
	return HD_OK;
}

double hd_max_min(const struct hd_seen *seen, const double *z)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < seen->state->njobs; i++)
		if (!seen->absent[i])
			least = fmin(least, z[i] * seen->state->jobs[i].scale / seen->state->jobs[i].weight);
	return isfinite(least) ? least : 0;
}
