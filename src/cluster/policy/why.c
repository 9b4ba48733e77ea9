#include "cluster/sched_why.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {
#define X(id, name) name,
	HD_WHYS(X)
#undef X
};

const char *hd_why_name(enum hd_why_code code) { return names[code]; }

static bool has_share(const struct hd_shares *shares, uint32_t job)
{
	for (uint32_t k = 0; k < shares->nshapes; k++)
		for (int m = 0; m < shares->shape[k].nmembers; m++)
			if (shares->shape[k].member[m] == job)
				return true;
	return false;
}

/* The dearest type among those that the job runs on; without prices the one with least room. */
static uint32_t tight(const struct hd_sched_state *s, const struct hd_shares *shares, uint32_t job)
{
	uint32_t most = HD_SCHED_NONE;

	for (uint32_t j = 0; shares->y && j < s->ntypes; j++)
		if (hd_sched_fits(s, job, j) && shares->y[j] > 0 && (most == HD_SCHED_NONE || shares->y[j] > shares->y[most]))
			most = j;
	return most;
}

/* Asks again with another weight of one job. */
static enum hd_err starts_with(const struct hd_policy_setting *set, const struct hd_sched_state *state, uint32_t job, double weight, struct hd_arena *arena,
	bool *starts, struct hd_diag *diag)
{
	struct hd_sched_state other = *state;
	struct hd_sched_job *jobs = hd_arena_take(arena, state->njobs, sizeof *jobs);
	struct hd_policy *policy = NULL;
	struct hd_shares shares;
	enum hd_err err = jobs ? hd_policy_create(&policy, set, diag) : hd_fail(diag, HD_E_NOMEM, "no memory for %u jobs", state->njobs);

	if (err)
		return err;
	memcpy(jobs, state->jobs, state->njobs * sizeof *jobs);
	jobs[job].weight = weight;
	other.jobs = jobs;
	err = hd_policy_allocate(policy, &other, arena, &shares, diag);
	*starts = !err && has_share(&shares, job);
	hd_policy_destroy(policy);
	return err;
}

/* Doubling, then the smallest of sixteenths between; in multiples of its own weight. */
static enum hd_err find_weight(const struct hd_policy_setting *set, const struct hd_sched_state *s, uint32_t job, struct hd_arena *arena, double *weight,
	struct hd_diag *diag)
{
	double own = s->jobs[job].weight, lo = 1, hi = 2;
	bool starts = false;
	enum hd_err err = HD_OK;

	for (; !err && hi <= 1024; lo = hi, hi *= 2) {
		err = starts_with(set, s, job, own * hi, arena, &starts, diag);
		if (starts)
			break;
	}
	for (int step = 0; !err && starts && step < 4; step++) {
		double mid = (lo + hi) / 2;
		bool there;
		err = starts_with(set, s, job, own * mid, arena, &there, diag);
		if (there)
			hi = mid;
		else
			lo = mid;
	}
	*weight = !err && starts ? own * hi : 0;
	return err;
}

static enum hd_err no_share(const struct hd_policy_setting *set, const struct hd_sched_state *s, const struct hd_shares *shares, uint32_t job,
	struct hd_arena *arena, struct hd_why *why, struct hd_diag *diag)
{
	unsigned long long id = s->jobs[job].id;
	enum hd_err err = find_weight(set, s, job, arena, &why->weight, diag);

	why->type = tight(s, shares, job);
	const char *type = why->type == HD_SCHED_NONE ? "others give more for its devices" : s->types[why->type].name;
	const char *is = why->type == HD_SCHED_NONE ? "" : " is the tight resource";
	if (why->weight > 0)
		snprintf(why->text, sizeof why->text, "job %llu waits: %s%s; at priority %.4g it would start now", id, type, is, why->weight);
	else
		snprintf(why->text, sizeof why->text, "job %llu waits: %s%s; a higher priority would not change it", id, type, is);
	return err;
}

enum hd_err hd_sched_why(const struct hd_policy_setting *set, const struct hd_sched_state *s, const struct hd_shares *shares, uint32_t job,
	struct hd_arena *arena, struct hd_why *why, struct hd_diag *diag)
{
	unsigned long long id = s->jobs[job].id;

	*why = (struct hd_why){ .code = HD_WHY_RUNS, .type = HD_SCHED_NONE };
	if (!(s->jobs[job].steps_left > 0)) {
		why->code = HD_WHY_OVER;
		snprintf(why->text, sizeof why->text, "job %llu has no steps left", id);
	} else if (hd_sched_blocked(s, job)) {
		why->code = HD_WHY_UNRUNNABLE;
		snprintf(why->text, sizeof why->text, "job %llu cannot run: no type that it has a speed on has %u devices", id, s->jobs[job].scale);
	} else if (has_share(shares, job)) {
		snprintf(why->text, sizeof why->text, "job %llu runs", id);
	} else if (set->policy->powers & HD_POLICY_QUEUE) {
		why->code = HD_WHY_QUEUED;
		snprintf(why->text, sizeof why->text, "job %llu waits: others are before it, and no type that it fits has %u devices left", id,
			s->jobs[job].scale);
	} else if (!shares->work_conserving) {
		why->code = HD_WHY_TOO_DEAR;
		snprintf(why->text, sizeof why->text, "job %llu waits: where there is room its steps cost more than they are worth", id);
	} else {
		why->code = HD_WHY_NO_SHARE;
		return no_share(set, s, shares, job, arena, why, diag);
	}
	return HD_OK;
}
