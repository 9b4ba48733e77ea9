/* POP (Narayanan et al., "Solving Large-Scale Granular Resource Allocation Problems Efficiently with POP",
 * SOSP 2021): jobs and the devices of each type dealt into k problems that are solved separately, in 1/k of
 * the size and far less than 1/k of the time.
 *
 * Dealt round-robin after sorting by (scale, best type, weight, id), since a skewed deal costs much more than
 * chance would. Devices that k does not divide go to the parts in turn. Where a part would be too small for
 * one of its gangs, k is lowered until none is. A policy that gives devices for a part of the time (heddle.c)
 * deals by the work that is left on the mean of the devices, and lowers k to half at most: gangs that are too
 * large for k parts are dealt among themselves then, into parts of all devices for some of the time. Prices
 * of the parts are not prices of the whole: there are none. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "scheduler/policy/int.h"

/* work: device seconds left, 0 where it does not count */
struct pop_turn { uint32_t scale, best, job; double weight, work; };

static int by_kind(const void *a, const void *b)
{
	const struct pop_turn *x = a, *y = b;

	if (x->scale != y->scale)
		return x->scale < y->scale ? -1 : 1;
	if (x->best != y->best)
		return x->best < y->best ? -1 : 1;
	if (x->work != y->work)
		return x->work > y->work ? -1 : 1;
	if (x->weight != y->weight)
		return x->weight < y->weight ? -1 : 1;
	return x->job < y->job ? -1 : x->job > y->job;
}

static uint32_t devices_of(const struct hd_sched_state *s, uint32_t type, uint32_t part, uint32_t k)
{
	uint32_t extra = s->types[type].n % k;

	return s->types[type].n / k + ((part + k - type % k) % k < extra);
}

static bool fits_in(const struct hd_sched_state *s, uint32_t job, uint32_t part, uint32_t k)
{
	for (uint32_t j = 0; j < s->ntypes; j++)
		if (s->jobs[job].rate[j] > 0 && devices_of(s, j, part, k) >= s->jobs[job].scale)
			return true;
	return false;
}

/* To and fro where work counts: the part with the most of one turn gets the least of the next. */
static uint32_t part_at(uint32_t turn, uint32_t k, bool work) { return work &&
	turn / k % 2 ? k - 1 - turn % k : turn % k; }

/* Where devices are dealt by the time: a part has all that are begun. */
static bool fits_begun(const struct hd_sched_state *s, uint32_t job, uint32_t k)
{
	for (uint32_t j = 0; j < s->ntypes; j++)
		if (s->jobs[job].rate[j] > 0 && (s->types[j].n + k - 1) / k >= s->jobs[job].scale)
			return true;
	return false;
}

static bool all_fit(const struct hd_sched_state *s, const struct pop_turn *turns, uint32_t n, uint32_t k,
	bool work)
{
	for (uint32_t t = 0; t < n; t++)
		if (!(work ? fits_begun(s, turns[t].job, k) : fits_in(s, turns[t].job, part_at(t, k, work),
			k)))
			return false;
	return true;
}

/* The turns of gangs that not all of k parts could run go last, each kind in its order; how many can run
 * anywhere. */
static uint32_t large_last(const struct hd_sched_state *s, struct pop_turn *turns, uint32_t n, uint32_t k,
	struct pop_turn *room)
{
	uint32_t nsmall = 0, nlarge = 0;

	for (uint32_t t = 0; t < n; t++)
		if (fits_begun(s, turns[t].job, k))
			turns[nsmall++] = turns[t];
		else
			room[nlarge++] = turns[t];
	memcpy(turns + nsmall, room, nlarge * sizeof *room);
	return nsmall;
}

static void deal(const struct pop_turn *turns, uint32_t n, uint32_t first, uint32_t k, bool work,
	uint32_t *part_of)
{
	for (uint32_t t = 0; t < n; t++)
		part_of[turns[t].job] = first + part_at(t, k, work);
}

/* Of as many turns as there are parts the one in the middle stands for all. */
static void group(const struct pop_turn *turns, uint32_t n, uint32_t k, struct hd_alike *alike)
{
	for (uint32_t t = 0; t < n; t += k) {
		uint32_t many = n - t < k ? n - t : k, lead = t + many / 2;
		struct hd_alike *to = &alike[turns[lead].job];
		*to = (struct hd_alike){ .n = many };
		for (uint32_t i = t; i < t + many; i++) {
			to->weight += turns[i].weight / many;
			to->work += turns[i].work / many;
		}
		to->work = turns[lead].work > 0 ? to->work / turns[lead].work : 1;
	}
}

static uint32_t parts_of(uint32_t n, uint32_t size) { return (n + size - 1) / size; }

static enum hd_err deal_large(const struct hd_sched_state *s, struct pop_turn *turns, uint32_t n,
	uint32_t size,
	struct hd_arena *arena, struct hd_dealt *to)
{
	struct pop_turn *room = hd_arena_take(arena, n + 1, sizeof *room);

	to->alike = hd_arena_take(arena, s->njobs + 1, sizeof *to->alike);
	if (!room || !to->alike)
		return HD_E_NOMEM;
	uint32_t small = large_last(s, turns, n, to->nparts, room), nsmall = parts_of(small, size);
	to->nlarge = parts_of(n - small, size);
	to->nparts = nsmall + to->nlarge;
	deal(turns, small, 0, nsmall, true, to->part_of);
	deal(turns + small, n - small, nsmall, to->nlarge, true, to->part_of);
	group(turns, small, nsmall, to->alike);
	group(turns + small, n - small, to->nlarge, to->alike);
	return HD_OK;
}

enum hd_err hd_pop_deal(const struct hd_sched_state *s, uint32_t k, uint32_t size, struct hd_arena *arena,
	struct hd_dealt *to)
{
	struct pop_turn *turns = hd_arena_take(arena, s->njobs + 1, sizeof *turns);
	uint32_t n = 0, least = size ? (k + 1) / 2 : 1, fit = k;
	bool work = size;

	*to = (struct hd_dealt){ .part_of = hd_arena_take(arena, s->njobs + 1, sizeof *to->part_of),
		.nparts = k };
	if (!turns || !to->part_of)
		return HD_E_NOMEM;

	for (uint32_t i = 0; i < s->njobs; i++) {
		uint32_t best = 0;
		double mean = work ? hd_sched_proportional(s, s->jobs[i].rate) : 0;
		to->part_of[i] = HD_SCHED_NONE;
		for (uint32_t j = 1; j < s->ntypes; j++)
			best = s->jobs[i].rate[j] > s->jobs[i].rate[best] ? j : best;
		if (!hd_sched_absent(s, i))
			turns[n++] = (struct pop_turn){ s->jobs[i].scale, best, i, s->jobs[i].weight,
				mean > 0 ? s->jobs[i].scale * s->jobs[i].steps_left / mean : 0 };
	}
	qsort(turns, n, sizeof *turns, by_kind);
	while (fit > least && !all_fit(s, turns, n, fit, work))
		fit--;
	if (fit > 1 && fit == least && !all_fit(s, turns, n, fit, work))
		return deal_large(s, turns, n, size, arena, to);
	deal(turns, n, 0, fit, work, to->part_of);
	to->nparts = fit;
	return HD_OK;
}

enum hd_err hd_pop_part(const struct hd_sched_state *s, uint32_t part, uint32_t k, const uint32_t *part_of,
	struct hd_arena *arena,
	struct hd_sched_state *to, uint32_t *job)
{
	uint32_t njobs = 0, npairs = 0;

	for (uint32_t i = 0; i < s->njobs; i++)
		njobs += part_of[i] == part;
	for (uint32_t p = 0; p < s->npairs; p++)
		npairs += part_of[s->pairs[p].a] == part && part_of[s->pairs[p].b] == part;
	struct hd_sched_type *types = hd_arena_take(arena, s->ntypes, sizeof *types);
	struct hd_sched_job *jobs = hd_arena_take(arena, njobs, sizeof *jobs);
	struct hd_sched_pair *pairs = hd_arena_take(arena, npairs, sizeof *pairs);
	/* the number in the part of a job of the whole */
	uint32_t *where = hd_arena_take(arena, s->njobs, sizeof *where);

	if (!types || !jobs || !pairs || !where)
		return HD_E_NOMEM;
	*to = *s;
	to->njobs = to->npairs = 0;
	for (uint32_t j = 0; j < s->ntypes; j++) {
		types[j] = s->types[j];
		types[j].n = devices_of(s, j, part, k);
	}
	for (uint32_t i = 0; i < s->njobs; i++)
		if (part_of[i] == part) {
			where[i] = to->njobs;
			job[to->njobs] = i;
			jobs[to->njobs++] = s->jobs[i];
		}
	for (uint32_t p = 0; p < s->npairs; p++)
		if (part_of[s->pairs[p].a] == part && part_of[s->pairs[p].b] == part) {
			pairs[to->npairs] = s->pairs[p];
			pairs[to->npairs].a = where[s->pairs[p].a];
			pairs[to->npairs++].b = where[s->pairs[p].b];
		}
	to->types = types;
	to->jobs = jobs;
	to->pairs = pairs;
	return HD_OK;
}

static double joined(const struct hd_sched_policy *row, double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) ? b : a;
	return row->powers & HD_POLICY_LEAST ? fmin(a, b) : row->powers & HD_POLICY_LARGEST ? fmax(a, b) :
		a + b;
}

static enum hd_err open_parts(struct hd_policy *policy, struct hd_diag *diag)
{
	struct hd_policy_setting set = policy->set;
	enum hd_err err = HD_OK;

	if (policy->parts)
		return HD_OK;
	policy->parts = hd_alloc(set.npops * sizeof *policy->parts);
	if (!policy->parts)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u parts", set.npops);
	memset(policy->parts, 0, set.npops * sizeof *policy->parts);
	set.npops = 0;
	for (uint32_t p = 0; !err && p < policy->set.npops; p++)
		err = hd_policy_create(&policy->parts[p], &set, diag);
	return err;
}

void hd_pop_finish(struct hd_policy *policy)
{
	for (uint32_t p = 0; policy->parts && p < policy->set.npops; p++)
		hd_policy_destroy(policy->parts[p]);
	hd_free(policy->parts);
}

enum hd_err hd_pop_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out, struct hd_diag *diag)
{
	uint32_t *job = hd_arena_take(arena, state->njobs + 1, sizeof *job);
	struct hd_dealt dealt;
	struct hd_collect c = { .out = out, .arena = arena };
	enum hd_err err = job && !hd_pop_deal(state, policy->set.npops, 0, arena, &dealt) ? open_parts(policy,
		diag)
		: hd_fail(diag, HD_E_NOMEM, "no memory for %u jobs", state->njobs);

	if (err)
		return err;
	out->work_conserving = true;
	for (uint32_t p = 0; !err && p < dealt.nparts; p++) {
		struct hd_sched_state part;
		struct hd_shares shares;
		err = hd_pop_part(state, p, dealt.nparts, dealt.part_of, arena, &part, job);
		if (!err)
			err = hd_policy_allocate(policy->parts[p], &part, arena, &shares, diag);
		for (uint32_t i = 0; !err && i < shares.nshapes; i++) {
			struct hd_shape shape = shares.shape[i];
			for (int m = 0; m < shape.nmembers; m++)
				shape.member[m] = job[shape.member[m]];
			err = hd_collect(&c, &shape, shares.x[i]);
		}
		if (err)
			break;
		out->objective = joined(policy->set.policy, out->objective, shares.objective);
		out->work_conserving &= shares.work_conserving;
		if (shares.kept && !out->kept)
			out->kept_why = shares.kept_why;
		out->kept |= shares.kept;
		out->cut |= shares.cut;
		out->nlps += shares.nlps;
		out->iterations += shares.iterations;
		out->gap = fmax(out->gap, shares.gap);
	}
	if (out->kept)
		out->objective = NAN;             /* some parts have none: no joining is that of all */
	return err ? hd_fail(diag, err, "no memory for %u jobs", state->njobs) : HD_OK;
}
