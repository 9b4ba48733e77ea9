/* Weighted fair sharing by resizing, on the devices of one type; counts.h computes the counts.
 *
 * Running jobs stay; waiting ones are admitted.
 *
 * wfs-2020: in descending order of weight, of equal ones in order of arrival, while fewer jobs run than there
 * are devices, unless a running job of higher weight would get less. Counts are applied at once, whatever a
 * resize costs.
 *
 * wfs: in descending order of weight times (60 s + time waited), so that no job waits for ever, while the
 * fewest devices of all fit. Then, step by step:
 *	1. those admitted get their counts; running jobs above their own shrink for them, the one most above
 *	   first; always, nothing is asked;
 *	2. free devices go to running jobs below their counts, if the time saved is more than twice what the
 *	   resize costs;
 *	3. what is still uneven is evened out all at once, if the jobs together save more than twice what
 *	   their resizes cost.
 * A job that was resized less than 30 s ago takes part in the second and third only after that. Saved: how
 * much earlier the job ends. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/policy/counts.h"
#include "scheduler/policy/int.h"

#define HD_DWELL_S 30.0
#define HD_PATIENCE_S 60.0
#define HD_PAYS 2.0                               /* times its cost that a change must save */

/* since: number of the start; age_s: of the job at its last change */
struct grant { uint64_t id, since; uint32_t count; double age_s; };

struct wfs_sharing {
	struct hd_policy *policy;
	const struct hd_sched_state *s;
	struct hd_arena *arena;
	struct hd_diag *diag;
	uint32_t type, devices;
	uint32_t *job, nrunning, n;               /* in list order: running by start, then admitted */
	uint32_t *queue, nqueue;
	struct hd_want *want;                     /* [n] of job[] */
	uint32_t *count, *held;                   /* [n] what each should have; has */
	bool *settled;                            /* [n] resized too short a time ago */
};

static struct hd_wfs *memory(const struct wfs_sharing *sh) { return sh->policy->memory; }

static enum hd_err init(struct hd_policy *policy)
{
	((struct hd_wfs *)policy->memory)->grants = (struct hd_ledger){ .size = sizeof(struct grant) };
	return HD_OK;
}

enum hd_err hd_wfs_init(struct hd_policy *policy, struct hd_diag *diag) { (void)diag; return init(policy); }
enum hd_err hd_wfs_2020_init(struct hd_policy *policy, struct hd_diag *diag) { (void)diag;
	return init(policy); }
void hd_wfs_finish(struct hd_policy *policy) { hd_ledger_finish(&((struct hd_wfs *)policy->memory)->grants); }
void hd_wfs_2020_finish(struct hd_policy *policy) { hd_wfs_finish(policy); }

static enum hd_err one_type(struct wfs_sharing *sh)
{
	uint32_t types = 0;

	for (uint32_t j = 0; j < sh->s->ntypes; j++)
		if (sh->s->types[j].n) {
			sh->type = j;
			types++;
		}
	sh->devices = types ? sh->s->types[sh->type].n : 0;
	if (types > 1)
		return hd_fail(sh->diag, HD_E_INVAL,
			"the policy %s shares devices of one type, here are %u (the policy heddle resizes "
			"jobs over several)",
			sh->policy->set.policy->name, types);
	return HD_OK;
}

/* Demand is the scale: what the job asked for. */
static struct hd_want want_of(const struct hd_sched_job *job)
{
	struct hd_want w = { job->weight, hd_sched_fewest(job), job->scale, 0, NULL };

	if (!job->elastic)
		return w;
	w.most = job->elastic->max < w.most ? job->elastic->max : w.most;
	w.most = w.most < w.least ? w.least : w.most;
	w.nvns = job->elastic->nvns;
	w.speedup = job->elastic->speedup;
	return w;
}

static const struct grant *grant_of(const struct wfs_sharing *sh,
	uint32_t job) { return hd_ledger_find(&memory(sh)->grants, sh->s->jobs[job].id); }

struct wfs_turn { double claim; uint64_t since; uint32_t job; };

static int by_since(const void *a, const void *b)
{
	const struct wfs_turn *x = a, *y = b;

	return x->since < y->since ? -1 : x->since > y->since;
}

static int by_claim(const void *a, const void *b)
{
	const struct wfs_turn *x = a, *y = b;

	if (x->claim != y->claim)
		return x->claim > y->claim ? -1 : 1;
	return x->job < y->job ? -1 : x->job > y->job;
}

/* Running jobs by start into job[], the others by weight into queue[]. Where devices were lost the last
 * started go back to the queue. */
static enum hd_err line_up(struct wfs_sharing *sh, bool ours)
{
	uint32_t n = sh->s->njobs, running = 0, waiting = 0, fits = 0;
	struct wfs_turn *runs = hd_arena_take(sh->arena, (size_t)n + 1, sizeof *runs),
		*waits = hd_arena_take(sh->arena, (size_t)n + 1, sizeof *waits);

	sh->job = hd_arena_take(sh->arena, (size_t)n + 1, sizeof *sh->job);
	sh->queue = hd_arena_take(sh->arena, (size_t)n + 1, sizeof *sh->queue);
	sh->want = hd_arena_take(sh->arena, (size_t)n + 1, sizeof *sh->want);
	sh->count = hd_arena_take(sh->arena, (size_t)n + 1, sizeof *sh->count);
	sh->held = hd_arena_take(sh->arena, (size_t)n + 1, sizeof *sh->held);
	sh->settled = hd_arena_take(sh->arena, (size_t)n + 1, sizeof *sh->settled);
	if (!runs || !waits || !sh->job || !sh->queue || !sh->want || !sh->count || !sh->held || !sh->settled)
		return hd_fail(sh->diag, HD_E_NOMEM, "no memory for %u jobs", n);
	for (uint32_t i = 0; i < n; i++) {
		const struct grant *g = grant_of(sh, i);
		struct wfs_turn turn = { sh->s->jobs[i].weight * (ours ?
			HD_PATIENCE_S + sh->s->jobs[i].age_s :
			1), g ? g->since : 0, i };
		if (hd_sched_absent(sh->s, i))
			continue;
		*(g ? &runs[running++] : &waits[waiting++]) = turn;
	}
	qsort(runs, running, sizeof *runs, by_since);
	for (uint32_t k = 0; k < running; k++) {
		uint32_t least = ours ? want_of(&sh->s->jobs[runs[k].job]).least : 1;
		if (fits + least > sh->devices) {
			waits[waiting++] = runs[k];
			continue;
		}
		fits += least;
		sh->job[sh->nrunning++] = runs[k].job;
	}
	qsort(waits, waiting, sizeof *waits, by_claim);
	for (uint32_t k = 0; k < waiting; k++)
		sh->queue[sh->nqueue++] = waits[k].job;
	sh->n = sh->nrunning;
	for (uint32_t k = 0; k < sh->n; k++)
		sh->want[k] = want_of(&sh->s->jobs[sh->job[k]]);
	return HD_OK;
}

static void admit(struct wfs_sharing *sh, uint32_t job)
{
	sh->want[sh->n] = want_of(&sh->s->jobs[job]);
	sh->job[sh->n++] = job;
}

/* ---- 2020 ---- */

static bool takes_from_above(const struct wfs_sharing *sh, const uint32_t *fair, const uint32_t *pot,
	double weight)
{
	for (uint32_t k = 0; k < sh->nrunning; k++)
		if (sh->want[k].weight > weight && pot[k] < fair[k])
			return true;
	return false;
}

/* It gives any number, so every job must run on any. */
static enum hd_err all_elastic(const struct wfs_sharing *sh)
{
	for (uint32_t i = 0; i < sh->s->njobs; i++) {
		const struct hd_sched_job *job = &sh->s->jobs[i];
		if (!hd_sched_absent(sh->s, i) && (hd_sched_fewest(job) > 1 ||
			(!job->elastic && job->scale > 1)))
			return hd_fail(sh->diag, HD_E_INVAL,
				"the policy wfs-2020 resizes every job from 1 device on, job %llu runs on "
				"%u or not at all",
				(unsigned long long)job->id, hd_sched_fewest(job));
	}
	return HD_OK;
}

static enum hd_err fill_2020(struct wfs_sharing *sh)
{
	uint32_t *pot = hd_arena_take(sh->arena, (size_t)sh->s->njobs + 1, sizeof *pot);
	enum hd_err err = pot ? hd_wfs_2020_counts(sh->n, sh->want, sh->devices, sh->arena, sh->count) :
		HD_E_NOMEM;

	for (uint32_t q = 0; !err && q < sh->nqueue && sh->n < sh->devices; q++) {
		admit(sh, sh->queue[q]);
		err = hd_wfs_2020_counts(sh->n, sh->want, sh->devices, sh->arena, pot);
		if (!err && takes_from_above(sh, sh->count, pot, sh->want[sh->n - 1].weight)) {
			sh->n--;
			break;
		}
		memcpy(sh->count, pot, sh->n * sizeof *pot);
	}
	return err ? hd_fail(sh->diag, err, "no memory for %u jobs", sh->s->njobs) : HD_OK;
}

/* ---- ours ---- */

/* Seconds that the job takes on so many devices. */
static double takes(const struct wfs_sharing *sh, uint32_t k, uint32_t count)
{
	const struct hd_sched_job *job = &sh->s->jobs[sh->job[k]];
	double rate = hd_sched_rate_on(job, sh->type, count);

	return rate > 0 ? job->steps_left / rate : INFINITY;
}

static double costs(const struct wfs_sharing *sh, uint32_t k)
{
	const struct hd_sched_job *job = &sh->s->jobs[sh->job[k]];

	return job->elastic ? job->elastic->resize_s : 0;
}

static void shrink_for_new(struct wfs_sharing *sh, uint32_t *now, int64_t *free)
{
	while (*free < 0) {
		uint32_t most = sh->n;
		for (uint32_t k = 0; k < sh->nrunning; k++)
			if (now[k] > sh->count[k] && (most == sh->n ||
				now[k] - sh->count[k] > now[most] - sh->count[most]))
				most = k;
		int64_t over = most == sh->n ? 0 : (int64_t)(now[most] - sh->count[most]);
		if (!over)
			return;
		now[most] -= (uint32_t)over;              /* whole: a second resize would cost again */
		*free += over;
	}
}

static void grow(struct wfs_sharing *sh, uint32_t *now, int64_t *free)
{
	for (uint32_t k = 0; k < sh->nrunning; k++) {
		uint32_t to = sh->count[k];
		if (to <= now[k] || sh->settled[k] || *free <= 0)
			continue;
		to = (int64_t)(to - now[k]) <= *free ? to : now[k] + (uint32_t)*free;
		if (takes(sh, k, now[k]) - takes(sh, k, to) > HD_PAYS * costs(sh, k)) {
			*free -= to - now[k];
			now[k] = to;
		}
	}
}

static void even_out(struct wfs_sharing *sh, uint32_t *now)
{
	double saved = 0, cost = 0;
	bool any = false;

	for (uint32_t k = 0; k < sh->nrunning; k++)
		if (sh->count[k] != now[k]) {
			if (sh->settled[k])
				return;
			saved += takes(sh, k, now[k]) - takes(sh, k, sh->count[k]);
			cost += costs(sh, k);
			any = true;
		}
	if (any && saved > HD_PAYS * cost)
		memcpy(now, sh->count, sh->n * sizeof *now);
}

static enum hd_err fill_ours(struct wfs_sharing *sh)
{
	uint32_t least = 0, *now = hd_arena_take(sh->arena, (size_t)sh->s->njobs + 1, sizeof *now);
	int64_t free = sh->devices;
	enum hd_err err;

	for (uint32_t k = 0; k < sh->n; k++)
		least += sh->want[k].least;
	for (uint32_t q = 0; q < sh->nqueue; q++) {
		uint32_t needs = want_of(&sh->s->jobs[sh->queue[q]]).least;
		if (needs > sh->devices - least)
			continue;
		least += needs;
		admit(sh, sh->queue[q]);
	}
	err = now ? hd_wfs_counts(sh->n, sh->want, sh->devices, sh->arena, sh->count) : HD_E_NOMEM;
	if (err)
		return hd_fail(sh->diag, err, "no memory for %u jobs", sh->s->njobs);
	for (uint32_t k = 0; k < sh->n; k++) {
		const struct grant *g = grant_of(sh, sh->job[k]);
		sh->held[k] = g ? g->count : sh->count[k];
		sh->settled[k] = g && sh->s->jobs[sh->job[k]].age_s - g->age_s < HD_DWELL_S;
		now[k] = k < sh->nrunning ? sh->held[k] : sh->count[k];
		free -= now[k];
	}
	shrink_for_new(sh, now, &free);
	if (free > 0)
		grow(sh, now, &free);
	even_out(sh, now);
	memcpy(sh->count, now, sh->n * sizeof *now);
	return HD_OK;
}

/* ---- both ---- */

static enum hd_err answer(struct wfs_sharing *sh, struct hd_shares *out)
{
	struct hd_collect c = { .out = out, .arena = sh->arena };
	enum hd_err err = HD_OK;

	hd_ledger_keep(&memory(sh)->grants, sh->s);
	for (uint32_t q = 0; q < sh->nqueue; q++)               /* those put back */
		hd_ledger_drop(&memory(sh)->grants, sh->s->jobs[sh->queue[q]].id);
	for (uint32_t k = 0; !err && k < sh->n; k++) {
		const struct hd_sched_job *job = &sh->s->jobs[sh->job[k]];
		struct hd_shape shape = { .nmembers = 1, .nneeds = 1, .member = { sh->job[k], HD_SCHED_NONE },
			.rate = { hd_sched_rate_on(job, sh->type, sh->count[k]) },
			.need = { { sh->type, sh->count[k] } } };
		struct grant *g = hd_ledger_add(&memory(sh)->grants, job->id);
		if (!g || (err = hd_collect(&c, &shape, 1)))
			return hd_fail(sh->diag, HD_E_NOMEM, "no memory for %u jobs", sh->s->njobs);
		if (!g->count)
			g->since = ++memory(sh)->starts;
		if (g->count != sh->count[k])
			g->age_s = job->age_s;
		g->count = sh->count[k];
	}
	return err;
}

static enum hd_err run(struct hd_policy *policy, const struct hd_sched_state *state, bool ours,
	struct hd_arena *arena, struct hd_shares *out,
	struct hd_diag *diag)
{
	struct wfs_sharing sh = { .policy = policy, .s = state, .arena = arena, .diag = diag };
	enum hd_err err = one_type(&sh);

	if (!err)
		err = line_up(&sh, ours);
	if (!err)
		err = ours ? fill_ours(&sh) : all_elastic(&sh);
	if (!err && !ours)
		err = fill_2020(&sh);
	return err ? err : answer(&sh, out);
}

enum hd_err hd_wfs_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out, struct hd_diag *diag)
{
	return run(policy, state, true, arena, out, diag);
}

enum hd_err hd_wfs_2020_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out,
	struct hd_diag *diag)
{
	return run(policy, state, false, arena, out, diag);
}
