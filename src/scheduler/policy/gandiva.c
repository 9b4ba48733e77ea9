/* Gandiva (Xiao et al., OSDI 2018), as the published scheduler models it: when there are more wants than
 * devices, jobs are paired at random, pairs that do not pay are dissolved, and every single or pair gets the
 * same part of all types.
 *
 * exact: pairs by the largest gain on their best type, greedily, nothing random; on a type where a pair does
 * not pay its members take turns. */
#include <math.h>
#include <stdlib.h>

#include "scheduler/policy/int.h"

struct partner { uint64_t id, other; };

enum hd_err hd_gandiva_init(struct hd_policy *policy, struct hd_diag *diag)
{
	struct hd_gandiva *g = policy->memory;

	(void)diag;
	g->partners = (struct hd_ledger){ .size = sizeof(struct partner) };
	hd_mt_init(&g->mt, policy->set.seed);
	return HD_OK;
}

void hd_gandiva_finish(struct hd_policy *policy)
{
	hd_ledger_finish(&((struct hd_gandiva *)policy->memory)->partners);
}

static double summed(const struct hd_sched_state *s, uint32_t a, uint32_t b, uint32_t type)
{
	double rate[2];

	(void)hd_sched_pair_rate(s, a, b, type, rate);
	return (s->jobs[a].rate[type] > 0 ? rate[0] / s->jobs[a].rate[type] : 0) +
		(s->jobs[b].rate[type] > 0 ? rate[1] / s->jobs[b].rate[type] : 0);
}

/* Over all types: a pair is judged by what it gains anywhere, but is worth nothing if there is a type
 * where it cannot run. */
static double summed_everywhere(const struct hd_sched_state *s, uint32_t a, uint32_t b)
{
	double sum = 0, rate[2];

	for (uint32_t j = 0; j < s->ntypes; j++) {
		if (s->types[j].n && !hd_sched_pair_rate(s, a, b, j, rate))
			return 0;
		sum += summed(s, a, b, j);
	}
	return sum;
}

static enum hd_err match_at_random(struct hd_gandiva *g, const struct hd_sched_state *s, uint32_t *other,
	uint32_t *alone)
{
	uint32_t n = 0, turns;

	for (uint32_t i = 0; i < s->njobs; i++)
		if (!hd_never_whole(s, i) && other[i] == HD_SCHED_NONE)
			alone[n++] = i;
	turns = n;
	for (uint32_t t = 0; t < turns && n > 1; t++) {
		uint32_t at[2], kept = 0;
		hd_mt_sample2(&g->mt, n, at);
		uint32_t a = alone[at[0]], b = alone[at[1]];
		if (s->jobs[a].scale != s->jobs[b].scale)
			continue;
		struct partner *x = hd_ledger_add(&g->partners, s->jobs[a].id);
		if (!x)
			return HD_E_NOMEM;
		x->other = s->jobs[b].id;
		struct partner *y = hd_ledger_add(&g->partners, s->jobs[b].id);
		if (!y)
			return HD_E_NOMEM;
		y->other = s->jobs[a].id;
		other[a] = b;
		other[b] = a;
		for (uint32_t k = 0; k < n; k++)
			if (alone[k] != a && alone[k] != b)
				alone[kept++] = alone[k];
		n = kept;
	}
	return HD_OK;
}

static void remember(struct hd_gandiva *g, const struct hd_sched_state *s, uint32_t *other)
{
	struct partner *all = g->partners.at;
	uint32_t kept = 0;

	for (uint32_t k = 0; k < g->partners.n; k++) {
		uint32_t a = hd_sched_find(s, all[k].id), b = hd_sched_find(s, all[k].other);
		if (a == HD_SCHED_NONE || b == HD_SCHED_NONE || hd_never_whole(s, a) ||
			hd_never_whole(s, b) || summed_everywhere(s, a, b) < 1)
			continue;
		other[a] = b;
		all[kept++] = all[k];
	}
	g->partners.n = kept;
}

struct gain { double most; uint32_t a, b; };

static int by_gain(const void *a, const void *b)
{
	const struct gain *x = a, *y = b;

	if (x->most != y->most)
		return x->most > y->most ? -1 : 1;
	return x->a != y->a ? (x->a < y->a ? -1 : 1) : x->b < y->b ? -1 : x->b > y->b;
}

static enum hd_err match_by_gain(const struct hd_policy *policy, const struct hd_sched_state *s,
	uint32_t *other, struct hd_arena *arena)
{
	double threshold = policy->set.pack_threshold > 0 ? policy->set.pack_threshold : 1;
	struct gain *gains = hd_arena_take(arena, (size_t)s->njobs * s->njobs / 2 + 1, sizeof *gains);
	uint32_t n = 0;

	if (!gains)
		return HD_E_NOMEM;
	for (uint32_t a = 0; a < s->njobs; a++)
		for (uint32_t b = a + 1; b < s->njobs; b++) {
			double most = 0;
			for (uint32_t j = 0; !hd_never_whole(s, a) && !hd_never_whole(s, b) && j < s->ntypes;
				j++)
				most = hd_whole(&policy->set, s, a, j) ? fmax(most, summed(s, a, b, j)) :
					most;
			if (most > threshold)
				gains[n++] = (struct gain){ most, a, b };
		}
	qsort(gains, n, sizeof *gains, by_gain);
	for (uint32_t k = 0; k < n; k++)
		if (other[gains[k].a] == HD_SCHED_NONE && other[gains[k].b] == HD_SCHED_NONE) {
			other[gains[k].a] = gains[k].b;
			other[gains[k].b] = gains[k].a;
		}
	return HD_OK;
}

/* Each of `units` combinations gets N_j / units / scale of every type, at most all its time. */
static enum hd_err share(const struct hd_policy *policy, const struct hd_sched_state *s,
	const uint32_t *other, uint32_t units, struct hd_arena *arena,
	struct hd_shares *out)
{
	struct hd_collect c = { .out = out, .arena = arena };
	bool exact = policy->set.fidelity == HD_FIDELITY_EXACT;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; !err && i < s->njobs; i++) {
		double x[HD_SCHED_TYPES], rate[2];
		if (hd_never_whole(s, i) || (other[i] != HD_SCHED_NONE && other[i] < i))
			continue;
		(void)hd_sched_isolated(s, i, s->jobs[i].rate, units, exact, x);
		for (uint32_t j = 0; !err && j < s->ntypes; j++) {
			struct hd_shape one = hd_way_single(s, i, j);
			if (x[j] <= 0)
				continue;
			if (other[i] == HD_SCHED_NONE) {
				err = one.rate[0] > 0 ? hd_collect(&c, &one, x[j]) : HD_OK;
				continue;
			}
			struct hd_shape pair = hd_way_pair(s, i, other[i], j),
				two = hd_way_single(s, other[i], j);
			bool pays = hd_sched_pair_rate(s, i, other[i], j, rate) &&
				(!exact || summed(s, i, other[i], j) >= 1);
			if (pays || (!exact && (pair.rate[0] > 0 || pair.rate[1] > 0))) {
				err = hd_collect(&c, &pair, x[j]);
			} else if (exact) {
				err = one.rate[0] > 0 ? hd_collect(&c, &one, x[j] / 2) : HD_OK;
				if (!err && two.rate[0] > 0)
					err = hd_collect(&c, &two, x[j] / 2);
			}
		}
	}
	return err;
}

enum hd_err hd_gandiva_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out,
	struct hd_diag *diag)
{
	struct hd_gandiva *g = policy->memory;
	uint32_t *other = hd_arena_take(arena, state->njobs + 1, sizeof *other),
		*alone = hd_arena_take(arena, state->njobs + 1, sizeof *alone);
	uint64_t wanted = 0, devices = 0;
	uint32_t units = 0;
	enum hd_err err = other && alone ? HD_OK : HD_E_NOMEM;

	for (uint32_t j = 0; j < state->ntypes; j++)
		devices += state->types[j].n;
	for (uint32_t i = 0; !err && i < state->njobs; i++) {
		other[i] = HD_SCHED_NONE;
		wanted += hd_never_whole(state, i) ? 0 : state->jobs[i].scale;
	}
	out->work_conserving = true;
	if (!err && policy->set.fidelity == HD_FIDELITY_GAVEL) {
		remember(g, state, other);
		if (wanted > devices)
			err = match_at_random(g, state, other, alone);
		for (uint32_t i = 0; wanted <= devices && i < state->njobs; i++)
			other[i] = HD_SCHED_NONE;
	} else if (!err && wanted > devices) {
		err = match_by_gain(policy, state, other, arena);
	}
	for (uint32_t i = 0; !err && i < state->njobs; i++)
		units += !hd_never_whole(state, i) && (other[i] == HD_SCHED_NONE || other[i] > i);
	if (!err)
		err = share(policy, state, other, units, arena, out);
	return err ? hd_fail(diag, err, "no memory for %u jobs", state->njobs) : HD_OK;
}
