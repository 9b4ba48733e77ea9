#include "balance/drift.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double alpha = 0.1, far = 0.05, worse = 0.02, other = 0.1, worth = 0.01;
enum { PATIENCE = 16, JUDGED = 8, REST = 100, REST_MOST = 1600 };

__attribute__((format(printf, 3, 4)))
static void answer_with(struct hd_drift_answer *answer, enum hd_drift_act act, const char *fmt, ...)
{
	va_list args;

	answer->act = act;
	va_start(args, fmt);
	vsnprintf(answer->why, sizeof answer->why, fmt, args);
	va_end(args);
}

enum hd_err hd_drift_init(struct hd_drift *drift, const struct hd_solve_ask *ask, const uint32_t *count,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_drift made = { .ask = ask, .device = hd_arena_take(arena, ask->ndevices,
		sizeof *made.device),
		.count = hd_arena_take(arena, ask->ndevices, sizeof *made.count),
		.before = hd_arena_take(arena, ask->ndevices, sizeof *made.before) };
	bool taken = made.device && made.count && made.before;

	for (uint32_t i = 0; i < HD_DRIFT_SETS && taken; i++) {
		made.set[i].used = hd_arena_take(arena, ask->ndevices, 1);
		made.set[i].slow = hd_arena_take(arena, ask->ndevices, sizeof *made.set[i].slow);
		taken = made.set[i].used && made.set[i].slow;
	}
	if (!taken)
		return hd_fail(diag, HD_E_NOMEM, "no memory to watch %u devices", ask->ndevices);
	for (uint32_t d = 0; d < ask->ndevices; d++)
		made.device[d] = (struct hd_drift_device){ .slow = 1, .made_for = 1, .rest = REST };
	memcpy(made.count, count, ask->ndevices * sizeof *count);
	for (uint32_t i = 0; i < ask->nerrors && i < HD_SOLVE_ERRORS; i++)
		made.error_ppm[made.nerrors++] = ask->error_ppm[i];
	*drift = made;
	return HD_OK;
}

/* A virtual node of a full device, without what a step costs once. */
static double profile_ps(const struct hd_vn_cost *t) { return t->nvns > 1 ?
	(double)(t->ps[t->nvns] - t->ps[1]) / (t->nvns - 1) : (double)t->ps[1]; }

void hd_drift_on_step(struct hd_drift *drift, const int64_t *vn_ps, int64_t step_ps)
{
	for (uint32_t d = 0; d < drift->ask->ndevices; d++) {
		struct hd_drift_device *dev = &drift->device[d];
		dev->idle = drift->count[d] ? 0 : dev->idle + 1;
		if (vn_ps[d] <= 0)
			continue;
		double slow = (double)vn_ps[d] / profile_ps(&drift->ask->type[drift->ask->device[d].type]);
		dev->slow = dev->nsamples++ ? (1 - alpha) * dev->slow + alpha * slow : slow;
		dev->off = fabs(dev->slow / dev->made_for - 1) > far ? dev->off + 1 : 0;
	}
	drift->last_ps[drift->nlast++ % JUDGED] = step_ps;
}

static int ascending(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Their median: one step that something else held up says little. */
static int64_t middle_of_last(const struct hd_drift *drift)
{
	uint32_t n = drift->nlast < JUDGED ? drift->nlast : JUDGED;
	int64_t last[JUDGED];

	memcpy(last, drift->last_ps, n * sizeof *last);
	qsort(last, n, sizeof *last, ascending);
	return n ? (last[(n - 1) / 2] + last[n / 2]) / 2 : 0;
}

/* ---- sets that were given up */

static bool set_is_barred(const struct hd_drift *drift, const uint32_t *count)
{
	for (uint32_t i = 0; i < HD_DRIFT_SETS; i++) {
		const struct hd_drift_set *set = &drift->set[i];
		bool same = set->taken;
		for (uint32_t d = 0; d < drift->ask->ndevices && same; d++)
			same = set->used[d] == (count[d] > 0) &&
				fabs(drift->device[d].slow / set->slow[d] - 1) <= other;
		if (same)
			return true;
	}
	return false;
}

static void bar_set(struct hd_drift *drift)
{
	struct hd_drift_set *set = &drift->set[drift->nsets++ % HD_DRIFT_SETS];

	set->taken = true;
	for (uint32_t d = 0; d < drift->ask->ndevices; d++) {
		set->used[d] = drift->count[d] > 0;
		set->slow[d] = drift->device[d].slow;
	}
}

/* ---- a change is judged */

static void learn_error(struct hd_drift *drift, int64_t measured_ps)
{
	double error = fabs((double)measured_ps - (double)drift->predicted_ps) / (double)drift->predicted_ps *
		1e6;

	if (drift->nerrors == HD_SOLVE_ERRORS)
		memmove(drift->error_ppm, drift->error_ppm + 1,
			(HD_SOLVE_ERRORS - 1) * sizeof *drift->error_ppm);
	drift->error_ppm[drift->nerrors - (drift->nerrors == HD_SOLVE_ERRORS)] = error > 1e6 ? 1000000 :
		(uint32_t)error;
	drift->nerrors += drift->nerrors < HD_SOLVE_ERRORS;
}

static double ms(int64_t ps) { return (double)ps * 1e-9; }

static void judge(struct hd_drift *drift, struct hd_drift_answer *answer)
{
	int64_t measured_ps = middle_of_last(drift);

	if (drift->nlast < JUDGED)
		return;
	drift->judging = false;
	learn_error(drift, measured_ps);
	answer->judged = true;
	answer->measured_ps = measured_ps;
	answer->judged_ps = drift->predicted_ps;
	if (!((double)measured_ps > (double)drift->before_ps * (1 + worse))) {
		answer_with(answer, HD_DRIFT_STAY,
			"the new map takes %.3f ms a step, the one before took %.3f, predicted were %.3f",
			ms(measured_ps),
			ms(drift->before_ps), ms(drift->predicted_ps));
		return;
	}
	bar_set(drift);
	answer->count = drift->before;
	answer->predicted_ps = drift->before_ps;
	answer_with(answer, HD_DRIFT_BACK,
		"the new map takes %.3f ms a step, the one before took %.3f, predicted were %.3f: back",
		ms(measured_ps),
		ms(drift->before_ps), ms(drift->predicted_ps));
}

/* ---- a new map */

static uint32_t worst_device(const struct hd_drift *drift)
{
	uint32_t worst = UINT32_MAX;

	for (uint32_t d = 0; d < drift->ask->ndevices; d++)
		if (drift->device[d].off >= PATIENCE && (worst == UINT32_MAX ||
		    fabs(log(drift->device[d].slow / drift->device[d].made_for)) >
		    fabs(log(drift->device[worst].slow / drift->device[worst].made_for))))
			worst = d;
	return worst;
}

static void made_for_now(struct hd_drift *drift)
{
	for (uint32_t d = 0; d < drift->ask->ndevices; d++) {
		drift->device[d].made_for = drift->device[d].slow;
		drift->device[d].off = 0;
	}
}

static void put_counts(struct hd_text *text, const uint32_t *count, uint32_t n)
{
	for (uint32_t d = 0; d < n; d++)
		hd_text_addf(text, "%s%u", d ? "/" : "", count[d]);
}

/* The longest share of these counts. */
static int64_t compute_of(const struct hd_solve_ask *ask, const uint32_t *count)
{
	int64_t most = 0;

	for (uint32_t d = 0; d < ask->ndevices; d++) {
		int64_t ps = ask->type[ask->device[d].type].ps[count[d]];
		most = ps > most ? ps : most;
	}
	return most;
}

/* The solver's map by the times now, and what it saves over the counts `now`. */
static enum hd_err solve_now(struct hd_drift *drift, const uint32_t *now, struct hd_solve *solve,
	int64_t *saves_ps, struct hd_arena *arena,
	struct hd_diag *diag)
{
	uint32_t n = drift->ask->ndevices;
	double *slow = hd_arena_take(arena, n, sizeof *slow);
	struct hd_solve_ask ask;

	if (!slow)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the speeds of %u devices", n);
	for (uint32_t d = 0; d < n; d++)
		slow[d] = drift->device[d].slow;
	enum hd_err err = hd_solve_slowed(&ask, drift->ask, slow, arena, diag);
	ask.now = now;
	ask.error_ppm = drift->error_ppm;
	ask.nerrors = drift->nerrors;
	if (!err)
		err = hd_solve(solve, &ask, arena, diag);
	if (!err)
		*saves_ps = compute_of(&ask, now) - solve->plan.compute_ps;
	return err;
}

static bool is_worth_it(const struct hd_solve *solve, int64_t saves_ps) { return (double)saves_ps >= worth *
	(double)solve->plan.step_ps; }

struct two_counts { char was[64], is[64]; };

static struct two_counts words_of(const uint32_t *was, const uint32_t *is, uint32_t n)
{
	struct two_counts words;
	struct hd_text text;

	hd_text_fixed(&text, words.was, sizeof words.was);
	put_counts(&text, was, n);
	hd_text_fixed(&text, words.is, sizeof words.is);
	put_counts(&text, is, n);
	return words;
}

static enum hd_err solve_anew(struct hd_drift *drift, uint32_t worst, struct hd_drift_answer *answer,
	struct hd_arena *arena, struct hd_diag *diag)
{
	double by = drift->device[worst].slow, made_for = drift->device[worst].made_for;
	struct hd_solve solve;
	int64_t saves_ps = 0;
	enum hd_err err = solve_now(drift, drift->count, &solve, &saves_ps, arena, diag);

	if (err)
		return err;
	made_for_now(drift);
	const struct two_counts words = words_of(drift->count, solve.plan.count, drift->ask->ndevices);
	bool barred = set_is_barred(drift, solve.plan.count);
	bool same = !memcmp(solve.plan.count, drift->count, drift->ask->ndevices * sizeof *drift->count);
	if (same && drift->said_same)
		return HD_OK;
	drift->said_same |= same;
	if (barred || !is_worth_it(&solve, saves_ps)) {
		answer_with(answer, HD_DRIFT_STAY,
			"device %u takes %.2f of its profile, the map was made for %.2f: virtual nodes stay "
			"%s; %s %s, predicted "
			"%.3f ms a step, is %.3f, saves %.3f", worst, by, made_for, words.was,
			barred ? "was slower when tried:" : "not worth it:", words.is,
			ms(solve.plan.step_ps), ms(middle_of_last(drift)), ms(saves_ps));
		return HD_OK;
	}
	answer->count = solve.plan.count;
	answer->predicted_ps = solve.plan.step_ps;
	answer_with(answer, HD_DRIFT_CHANGE,
		"device %u takes %.2f of its profile, the map was made for %.2f: virtual nodes %s "
		"instead of %s; predicted %.3f ms a step, was %.3f", worst, by, made_for, words.is, words.was,
		ms(solve.plan.step_ps), ms(middle_of_last(drift)));
	return HD_OK;
}

/* ---- devices without virtual nodes */

static uint32_t device_to_try(const struct hd_drift *drift)
{
	for (uint32_t d = 0; d < drift->ask->ndevices; d++)
		if (drift->device[d].idle >= drift->device[d].rest)
			return d;
	return UINT32_MAX;
}

static enum hd_err begin_trial(const struct hd_drift *drift, uint32_t d, struct hd_drift_answer *answer,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t n = drift->ask->ndevices, most = 0;
	uint32_t *count = hd_arena_take(arena, n, sizeof *count);

	if (!count)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the counts of %u devices", n);
	for (uint32_t i = 0; i < n; i++) {
		count[i] = drift->count[i];
		most = count[i] > count[most] ? i : most;
	}
	if (count[most] < 2)
		return HD_OK;                     /* with one virtual node it cannot be faster */
	count[most]--;
	count[d] = 1;
	answer->count = count;
	answer->device = d;
	answer_with(answer, HD_DRIFT_TRY,
		"device %u has had no virtual node for %u steps, it took %.2f of its profile: one to see", d,
		drift->device[d].idle, drift->device[d].slow);
	return HD_OK;
}

static enum hd_err end_trial(struct hd_drift *drift, struct hd_drift_answer *answer, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_drift_device *dev = &drift->device[drift->tried];
	struct hd_solve solve;
	int64_t saves_ps = 0;
	enum hd_err err = solve_now(drift, drift->before, &solve, &saves_ps, arena, diag);

	if (err)
		return err;
	const struct two_counts words = words_of(drift->before, solve.plan.count, drift->ask->ndevices);
	made_for_now(drift);
	if (set_is_barred(drift, solve.plan.count) || !is_worth_it(&solve, saves_ps)) {
		answer->count = drift->before;
		answer->predicted_ps = drift->before_ps;
		answer_with(answer, HD_DRIFT_BACK,
			"device %u takes %.2f of its profile: %s again, %.3f ms a step", drift->tried,
			dev->slow, words.was,
			ms(drift->before_ps));
		return HD_OK;
	}
	answer->count = solve.plan.count;
	answer->predicted_ps = solve.plan.step_ps;
	answer_with(answer, HD_DRIFT_CHANGE,
		"device %u takes %.2f of its profile now: virtual nodes %s instead of %s; predicted %.3f ms "
		"a step, was %.3f",
		drift->tried, dev->slow, words.is, words.was, ms(solve.plan.step_ps), ms(drift->before_ps));
	return HD_OK;
}

enum hd_err hd_drift_decide(struct hd_drift *drift, struct hd_drift_answer *answer, struct hd_arena *arena,
	struct hd_diag *diag)
{
	uint32_t worst = worst_device(drift), idle = device_to_try(drift);

	*answer = (struct hd_drift_answer){ .act = HD_DRIFT_STAY };
	if (drift->judging) {
		judge(drift, answer);
		return HD_OK;
	}
	if (drift->trying)
		return drift->nlast < JUDGED ? HD_OK : end_trial(drift, answer, arena, diag);
	if (worst != UINT32_MAX)
		return solve_anew(drift, worst, answer, arena, diag);
	return idle == UINT32_MAX ? HD_OK : begin_trial(drift, idle, answer, arena, diag);
}

static void rest_longer(struct hd_drift_device *dev) { dev->rest = 2 * dev->rest < REST_MOST ? 2 * dev->rest :
	REST_MOST; }

void hd_drift_adopt(struct hd_drift *drift, const struct hd_drift_answer *answer)
{
	uint32_t n = drift->ask->ndevices;

	/* the change that a trial ends with is judged against what was before it */
	if (!drift->trying) {
		drift->before_ps = middle_of_last(drift);
		if (answer->act != HD_DRIFT_BACK)
			memcpy(drift->before, drift->count, n * sizeof *drift->count);
	} else if (answer->act == HD_DRIFT_BACK) {
		rest_longer(&drift->device[drift->tried]);
	}
	drift->predicted_ps = answer->predicted_ps;
	drift->judging = answer->act == HD_DRIFT_CHANGE;
	drift->trying = answer->act == HD_DRIFT_TRY;
	drift->nlast = 0;
	drift->said_same = false;
	if (drift->trying) {
		drift->tried = answer->device;
		drift->device[drift->tried].nsamples = 0;
	}
	memmove(drift->count, answer->count, n * sizeof *drift->count);
	for (uint32_t d = 0; d < n && drift->judging; d++)
		drift->device[d].rest = drift->count[d] ? REST : drift->device[d].rest;
}
