#define _GNU_SOURCE
/* The policy and the rounds of the live scheduler, on the jobs that wait and the devices that are free: one
 * round of them. */
#include "clustersim/schedsim/advice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_S = 365 * 86400 };                   /* of a job that asked for none */

struct advising {
	const struct hd_slurm_now *live;
	struct hd_sched_state state;
	struct hd_sched_type *type;
	struct hd_rounds *rounds;                 /* owned */
	struct hd_policy *policy;                 /* owned */
	const char *policy_name;
	struct hd_shares shares;
	struct hd_arena *arena;
	struct hd_diag *diag;
	uint32_t *host, ndevices;
};

static bool asks(const struct hd_slurm_job *job) { return !job->runs && !job->bar; }

/* A number for each device: types in order, in a type nodes in order. Those that are taken are out of use. */
static enum hd_err open_rounds(struct advising *a, const struct hd_policy_setting *policy)
{
	const struct hd_slurm_now *live = a->live;
	const struct hd_rounds_setting setting = { .fidelity = HD_FIDELITY_EXACT,
		.queue = policy->policy->powers & HD_POLICY_QUEUE, .seed = policy->seed };
	uint32_t d = 0;

	for (uint32_t k = 0; k < live->nnodes; k++)
		a->ndevices += live->node[k].gpus;
	a->host = hd_arena_take(a->arena, (size_t)a->ndevices + 1, sizeof *a->host);
	a->type = hd_arena_take(a->arena, (size_t)live->ntypes + 1, sizeof *a->type);
	if (!a->host || !a->type)
		return hd_fail(a->diag, HD_E_NOMEM, "no memory for %u devices", a->ndevices);
	memcpy(a->type, live->type, live->ntypes * sizeof *a->type);
	for (uint32_t k = 0; k < live->nnodes; k++)
		for (uint32_t g = 0; g < live->node[k].gpus; g++)
			a->host[d++] = k;
	enum hd_err err = hd_rounds_create(&a->rounds, &setting, live->ntypes, live->type, a->host, a->diag);
	d = 0;
	for (uint32_t k = 0; k < live->nnodes && !err; k++)
		for (uint32_t g = 0; g < live->node[k].gpus; g++, d++)
			if (!live->node[k].usable || g < live->node[k].used)
				hd_rounds_device(a->rounds, d, false);
	for (uint32_t t = 0; t < live->ntypes && !err; t++)
		a->type[t].n = hd_rounds_usable(a->rounds, t);
	return err;
}

/* Its own type, in its partitions. */
static bool runs_on(const struct hd_slurm_now *live, const struct hd_slurm_job *job, uint32_t type)
{
	for (uint32_t k = 0; k < live->nnodes; k++)
		if (live->node[k].type == type)
			return (live->node[k].partitions & job->partitions) &&
				(!*job->gpu || !strcmp(job->gpu, live->node[k].gpu));
	return false;
}

static int by_slurms_order(const void *a, const void *b, void *jobs)
{
	const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct hd_slurm_job *x = (const struct hd_slurm_job *)jobs + i, *y =
		(const struct hd_slurm_job *)jobs + k;

	if (x->tier != y->tier)
		return x->tier > y->tier ? -1 : 1;
	if (x->priority > y->priority || x->priority < y->priority)
		return x->priority > y->priority ? -1 : 1;
	return (i > k) - (i < k);
}

/* 1 each; for a policy of weights alone n for Slurm's first of n jobs, down to 1. NULL: no memory. */
static const double *weights_of(const struct advising *a)
{
	const uint32_t n = a->live->njobs;
	double *weight = hd_arena_take(a->arena, (size_t)n + 1, sizeof *weight);
	uint32_t *order = hd_arena_take(a->arena, (size_t)n + 1, sizeof *order);

	if (!weight || !order)
		return NULL;
	for (uint32_t i = 0; i < n; i++) {
		weight[i] = 1;
		order[i] = i;
	}
	if (!n || strncmp(a->policy_name, "priority", 8) != 0)
		return weight;
	qsort_r(order, n, sizeof *order, by_slurms_order, a->live->job);
	for (uint32_t i = 0; i < n; i++)
		weight[order[i]] = n - i;
	return weight;
}

static enum hd_err make_state(struct advising *a)
{
	const struct hd_slurm_now *live = a->live;
	struct hd_sched_job *jobs = hd_arena_take(a->arena, (size_t)live->njobs + 1, sizeof *jobs);
	double *rates = hd_arena_take(a->arena, (size_t)live->njobs * live->ntypes + 1, sizeof *rates);
	const double *weight = weights_of(a);
	uint32_t n = 0;
	enum hd_err err = HD_OK;

	if (!jobs || !rates || !weight)
		return hd_fail(a->diag, HD_E_NOMEM, "no memory for the state of %u jobs", live->njobs);
	for (uint32_t i = 0; i < live->njobs && !err; i++) {
		const struct hd_slurm_job *job = &live->job[i];
		double *rate = rates + (size_t)n * live->ntypes;
		if (!asks(job))
			continue;
		for (uint32_t t = 0; t < live->ntypes; t++)
			rate[t] = runs_on(live, job, t);
		jobs[n] = (struct hd_sched_job){ .id = i + 1, .kind = "", .ikind = HD_SCHED_NONE,
			.scale = job->gpus, .weight = weight[i], .rate = rate,
			.age_s = live->now_s - job->submit_s,
			.steps_left = isfinite(job->limit_s) && job->limit_s > 0 ? job->limit_s : LIMIT_S,
			.deadline_s = INFINITY, .entity = HD_SCHED_NONE };
		err = hd_rounds_arrive(a->rounds, &jobs[n++], 0, a->diag);
	}
	a->state = (struct hd_sched_state){ .ntypes = live->ntypes, .types = a->type, .njobs = n, .jobs =
		jobs };
	return err;
}

const char *advice_where(const struct hd_slurm_now *live, const uint32_t *of, struct hd_arena *arena)
{
	struct hd_text text;

	hd_text_init(&text, arena);
	for (uint32_t k = 0; k < live->nnodes; k++)
		if (of[k])
			hd_text_addf(&text, "%s%s:%u", text.len ? " " : "", live->node[k].name, of[k]);
	return text.full ? NULL : text.len ? text.at : "";
}

/* So many on each of its nodes, where it asks for that. */
static bool is_as_asked(const struct hd_slurm_now *live, const struct hd_slurm_job *job, const uint32_t *of)
{
	for (uint32_t k = 0; k < live->nnodes && job->per_node; k++)
		if (of[k] && of[k] != job->per_node)
			return false;
	return true;
}

static enum hd_err note_runs(struct advising *a, const struct hd_round *round, struct hd_advice *by_job)
{
	uint32_t *of = hd_arena_take(a->arena, (size_t)a->live->nnodes + 1, sizeof *of);

	if (!of)
		return hd_fail(a->diag, HD_E_NOMEM, "no memory for nodes");
	for (uint32_t r = 0; r < round->nruns; r++)
		for (uint8_t m = 0; m < round->run[r].nmembers; m++) {
			const struct hd_round_run *run = &round->run[r];
			const uint64_t job = run->id[m] - 1;
			memset(of, 0, a->live->nnodes * sizeof *of);
			for (uint32_t d = 0; d < run->ndevices; d++)
				of[a->host[round->device[run->first + d]]]++;
			if (!is_as_asked(a->live, &a->live->job[job], of)) {
				by_job[job].code = HD_WHY_GANG_NO_FIT;
				by_job[job].wait.type = HD_SCHED_NONE;
				by_job[job].scattered = true;
				continue;
			}
			by_job[job].starts = true;
			by_job[job].code = HD_WHY_RUNS;
			if (!(by_job[job].where = advice_where(a->live, of, a->arena)))
				return hd_fail(a->diag, HD_E_NOMEM, "no memory for names of nodes");
		}
	return HD_OK;
}

static enum hd_err note_waits(struct advising *a, const struct hd_policy_setting *policy,
	struct hd_advice *by_job)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < a->state.njobs && !err; i++) {
		struct hd_advice *of = &by_job[a->state.jobs[i].id - 1];
		struct hd_why why;
		if (of->starts || of->scattered || (err = hd_rounds_why(a->rounds, 0, a->state.jobs[i].id,
			&of->wait, a->diag)))
			continue;
		of->code = of->wait.code;
		if (of->code != HD_WHY_NO_SHARE)
			continue;
		hd_sched_why_code(policy, &a->state, &a->shares, i, &why);
		of->code = why.code;
	}
	return err;
}

static enum hd_err ask(struct advising *a, const struct hd_policy_setting *policy, struct hd_advice *by_job)
{
	struct hd_round round;
	enum hd_err err = open_rounds(a, policy);

	if (!err)
		err = make_state(a);
	if (!err)
		err = hd_policy_create(&a->policy, policy, a->diag);
	if (err || !a->state.njobs)
		return err;
	if ((err = hd_policy_allocate(a->policy, &a->state, a->arena, &a->shares, a->diag)) ||
		(err = hd_rounds_adopt(a->rounds, 0, &a->state, &a->shares, a->diag)) ||
		(err = hd_rounds_next(a->rounds, &round, a->diag)) || (err = note_runs(a, &round, by_job)))
		return err;
	return note_waits(a, policy, by_job);
}

enum hd_err hd_slurm_advise(struct hd_advice **advice, uint32_t *n, const struct hd_slurm_now *live,
	const struct hd_policy_setting *policy, struct hd_arena *arena, struct hd_diag *diag)
{
	struct advising a = { .live = live, .arena = arena, .diag = diag,
		.policy_name = policy ? policy->policy->name : "" };
	struct hd_advice *by_job = hd_arena_take(arena, (size_t)live->njobs + 1, sizeof *by_job),
		*to = hd_arena_take(arena, (size_t)live->njobs + 1, sizeof *to);

	if (!by_job || !to)
		return hd_fail(diag, HD_E_NOMEM, "no memory for advice on %u jobs", live->njobs);
	for (uint32_t i = 0; i < live->njobs; i++)
		by_job[i] = (struct hd_advice){ .job = &live->job[i], .where = "", .code = HD_WHY_NO_SHARE };
	enum hd_err err = policy ? ask(&a, policy, by_job) : slurm_advice(live, by_job, arena, diag);
	hd_rounds_destroy(a.rounds);
	hd_policy_destroy(a.policy);
	if (err)
		return err;
	*n = 0;
	for (int starts = 1; starts >= 0; starts--)
		for (uint32_t i = 0; i < live->njobs; i++)
			if (!live->job[i].runs && by_job[i].starts == starts)
				to[(*n)++] = by_job[i];
	*advice = to;
	return HD_OK;
}
