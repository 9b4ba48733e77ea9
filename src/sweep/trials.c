#include "sweep/trials.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *hd_trial_state_name(enum hd_trial_state state)
{
	static const char *const names[] = {
#define X(id, name) [HD_TRIAL_##id] = name,
		HD_TRIAL_STATES(X)
#undef X
	};

	return names[state];
}

bool hd_trials_better(const struct hd_trials *t, uint32_t a, uint32_t b, uint32_t rung)
{
	const double x = t->trial[a].metric[rung], y = t->trial[b].metric[rung];

	if (isfinite(x) != isfinite(y))
		return isfinite(x);
	if (isfinite(x) && x != y)
		return t->max ? x > y : x < y;
	return a < b;
}

static bool has_reported(const struct hd_trials *t, uint32_t i, uint32_t rung)
{
	return t->trial[i].reached > rung;
}

/* Of those that reported at the rung: how many are better. */
static uint32_t place_of(const struct hd_trials *t, uint32_t i, uint32_t rung)
{
	uint32_t place = 0;

	for (uint32_t k = 0; k < t->ntrials; k++)
		place += k != i && has_reported(t, k, rung) && hd_trials_better(t, k, i, rung);
	return place;
}

static void run(struct hd_trials *t, uint32_t i, uint32_t rung)
{
	t->trial[i].state = HD_TRIAL_RUNNING;
	t->trial[i].target = rung;
	t->nrunning++;
}

static void stop_paused(struct hd_trials *t)
{
	for (uint32_t i = 0; i < t->ntrials; i++)
		if (t->trial[i].state == HD_TRIAL_PAUSED)
			t->trial[i].state = HD_TRIAL_STOPPED;
}

/* ---- one function a method: what is to run now ---- */

static void settle_all(struct hd_trials *t)
{
	for (uint32_t i = 0; i < t->ntrials; i++)
		if (t->trial[i].state == HD_TRIAL_WAITING)
			run(t, i, 0);
}

/* Trials that may be at a rung. */
static uint32_t most_at(const struct hd_trials *t, uint32_t rung)
{
	uint32_t n = t->ntrials;

	for (; rung; rung--)
		n = n / t->eta ? n / t->eta : 1;
	return n;
}

static void settle_halving(struct hd_trials *t)
{
	uint32_t rung = 0, n;
	bool goes_on[HD_SWEEP_TRIALS];

	settle_all(t);
	if (t->nrunning)
		return;
	for (uint32_t i = 0; i < t->ntrials; i++)
		if (t->trial[i].state == HD_TRIAL_PAUSED && t->trial[i].reached > rung)
			rung = t->trial[i].reached;
	n = most_at(t, rung);
	for (uint32_t i = 0; i < t->ntrials; i++)
		goes_on[i] = rung && t->trial[i].state == HD_TRIAL_PAUSED && t->trial[i].reached == rung &&
			place_of(t, i, rung - 1) < n;
	for (uint32_t i = 0; i < t->ntrials; i++)
		if (goes_on[i])
			run(t, i, rung);
	stop_paused(t);
}

static bool promote(struct hd_trials *t)
{
	for (uint32_t rung = t->nrungs - 1; rung--;) {
		uint32_t n = 0;
		for (uint32_t i = 0; i < t->ntrials; i++)
			n += has_reported(t, i, rung);
		for (uint32_t i = 0; i < t->ntrials; i++)
			if (t->trial[i].state == HD_TRIAL_PAUSED && t->trial[i].reached == rung + 1 &&
				place_of(t, i, rung) < n / t->eta) {
				run(t, i, rung + 1);
				return true;
			}
	}
	return false;
}

static bool begin_one(struct hd_trials *t)
{
	for (uint32_t i = 0; i < t->ntrials; i++)
		if (t->trial[i].state == HD_TRIAL_WAITING) {
			run(t, i, 0);
			return true;
		}
	return false;
}

static void settle_asha(struct hd_trials *t)
{
	while (t->nrunning < t->parallel && (promote(t) || begin_one(t)))
		;
	if (!t->nrunning)
		stop_paused(t);
}

static void (*const settle[HD_SWEEP_NMETHODS])(struct hd_trials *t) = {
	[HD_SWEEP_GRID] = settle_all, [HD_SWEEP_RANDOM] = settle_all, [HD_SWEEP_SOBOL] = settle_all,
	[HD_SWEEP_HALVING] = settle_halving, [HD_SWEEP_ASHA] = settle_asha,
};

/* ---- events ---- */

void hd_trials_begin(struct hd_trials *t, const struct hd_sweep *sweep, const uint64_t *rung, uint32_t nrungs,
	uint32_t parallel)
{
	memset(t, 0, sizeof *t);
	t->method = sweep->method;
	t->max = sweep->max;
	t->ntrials = sweep->ntrials;
	t->eta = sweep->eta;
	t->parallel = parallel ? parallel : 1;
	t->nrungs = nrungs;
	memcpy(t->rung, rung, nrungs * sizeof *rung);
	settle[t->method](t);
}

enum hd_err hd_trials_take(struct hd_trials *t, const struct hd_trial_event *e, struct hd_diag *diag)
{
	struct hd_trial *of = e->trial < t->ntrials ? &t->trial[e->trial] : NULL;

	if (!of || of->state != HD_TRIAL_RUNNING || of->target != e->rung)
		return hd_fail(diag, HD_E_INTEGRITY, "trial %u is not on its way to rung %u", e->trial,
			e->rung);
	if (!e->failed && e->step != t->rung[e->rung])
		return hd_fail(diag, HD_E_INTEGRITY, "trial %u reports at step %llu, and rung %u is at %llu",
			e->trial, (unsigned long long)e->step, e->rung,
			(unsigned long long)t->rung[e->rung]);
	t->nrunning--;
	of->step = e->step > of->step ? e->step : of->step;
	if (e->failed) {
		of->state = HD_TRIAL_FAILED;
		of->exit = e->exit;
		snprintf(of->why, sizeof of->why, "%s", e->why ? e->why : "");
	} else {
		of->metric[of->reached++] = e->metric;
		snprintf(of->digest, sizeof of->digest, "%s", e->digest ? e->digest : "");
		of->state = of->reached == t->nrungs ? HD_TRIAL_DONE : HD_TRIAL_PAUSED;
	}
	settle[t->method](t);
	return HD_OK;
}

bool hd_trials_is_over(const struct hd_trials *t) { return !t->nrunning; }

uint32_t hd_trials_best(const struct hd_trials *t)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < t->ntrials; i++) {
		const uint32_t n = t->trial[i].reached, of = best == UINT32_MAX ? 0 : t->trial[best].reached;
		if (n > of || (n && n == of && hd_trials_better(t, i, best, n - 1)))
			best = i;
	}
	return best;
}

uint64_t hd_trials_steps(const struct hd_trials *t)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < t->ntrials; i++)
		n += t->trial[i].step;
	return n;
}
