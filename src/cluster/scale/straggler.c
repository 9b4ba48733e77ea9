#include "cluster/straggler.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"

static const double alpha = 0.1, judged_low = 0.95, judged_late = 0.1, old_low = 0.8;
enum { JUDGED_AFTER = 10, PATIENCE = 16, DWELL = 100 };

static const char *const act_words[] = {
#define X(id, words) words,
	HD_STRAGGLER_ACTS(X)
#undef X
};

const char *hd_straggler_words(enum hd_straggler_act act) { return act_words[act]; }

__attribute__((format(printf, 4, 5)))
static void answer(struct hd_straggler_action *action, enum hd_straggler_act act, uint32_t worker, const char *fmt, ...)
{
	va_list args;

	action->act = act;
	action->worker = worker;
	va_start(args, fmt);
	vsnprintf(action->why, sizeof action->why, fmt, args);
	va_end(args);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Even count: mean of the middle two. */
static double median(double *value, uint32_t n)
{
	qsort(value, n, sizeof *value, compare);
	return n % 2 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2;
}

static void learn(struct hd_straggler_worker *w, double speed)
{
	w->speed = w->nsamples ? (1 - alpha) * w->speed + alpha * speed : speed;
	w->nsamples++;
}

/* ---- ours */

static double profile_ps(const struct hd_straggler *s, uint32_t worker)
{
	const struct hd_vn_cost *t = &s->ask->type[s->worker[worker].type];

	/* a virtual node of a full device: without what a step costs once */
	return t->nvns > 1 ? (double)(t->ps[t->nvns] - t->ps[1]) / (t->nvns - 1) : (double)t->ps[1];
}

static void our_step(struct hd_straggler *s, const struct hd_straggler_sample *sample, int64_t step_ps)
{
	for (uint32_t i = 0; i < s->ask->nworkers; i++) {
		struct hd_straggler_worker *w = &s->worker[i];
		double over[HD_STRAGGLER_WORKERS];
		uint32_t n = 0;
		if (sample[i].vn_ps <= 0)
			continue;
		for (uint32_t j = 0; j < s->ask->nworkers; j++)
			if (s->worker[j].type == w->type && sample[j].vn_ps > 0)
				over[n++] = (double)sample[j].vn_ps / profile_ps(s, j);
		/* all of a type slow is drift of the type, not a straggler; two of a type: the faster says what is normal */
		double normal = n == 2 ? (over[0] < over[1] ? over[0] : over[1]) : median(over, n);
		learn(w, n == 1 ? profile_ps(s, i) / (double)sample[i].vn_ps : normal * profile_ps(s, i) / (double)sample[i].vn_ps);
		w->low = w->nsamples >= JUDGED_AFTER && w->speed < judged_low * w->mapped_speed ? w->low + 1 : 0;
		w->late = w->speed >= judged_low && (double)sample[i].late_ps > judged_late * (double)step_ps ? w->late + 1 : 0;
	}
}

enum hd_err hd_straggler_plan(const struct hd_straggler *s, const uint8_t *use, struct hd_solve_plan *plan, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_solve_ask ask;
	double *slow = hd_arena_take(arena, s->ask->ndevices, sizeof *slow);

	if (!slow)
		return hd_fail(diag, HD_E_NOMEM, "no memory to judge %u workers", s->ask->nworkers);
	for (uint32_t d = 0; d < s->ask->ndevices; d++) {
		const struct hd_straggler_worker *w = &s->worker[s->ask->device[d].worker];
		slow[d] = w->nsamples < JUDGED_AFTER || w->speed >= judged_low ? 1 : 1 / w->speed;
	}
	enum hd_err err = hd_solve_slowed(&ask, s->ask, slow, arena, diag);
	ask.now = NULL;
	return err ? err : hd_solve_least(plan, &ask, use, NULL, arena, diag);
}

static enum hd_err plan_with(const struct hd_straggler *s, uint32_t worker, bool with, struct hd_solve_plan *plan, struct hd_arena *arena,
	struct hd_diag *diag)
{
	uint8_t *use = hd_arena_take(arena, s->ask->ndevices, 1);

	if (!use)
		return hd_fail(diag, HD_E_NOMEM, "no memory to judge worker %u", worker);
	for (uint32_t d = 0; d < s->ask->ndevices; d++) {
		uint32_t w = s->ask->device[d].worker;
		use[d] = w == worker ? with : s->worker[w].in_map;
	}
	return hd_straggler_plan(s, use, plan, arena, diag);
}

static double ms(int64_t ps) { return (double)ps * 1e-9; }

static bool others_in_map(const struct hd_straggler *s, uint32_t worker)
{
	for (uint32_t i = 0; i < s->ask->nworkers; i++)
		if (i != worker && s->worker[i].in_map)
			return true;
	return false;
}

/* Is the gain of a new worker of full speed over the rest of the run more than its boot? */
static enum hd_err may_replace(struct hd_straggler *s, uint32_t worker, const struct hd_solve_plan *now, struct hd_straggler_action *action,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_straggler_worker slow = s->worker[worker];
	struct hd_solve_plan fresh;

	s->worker[worker].nsamples = 0;
	enum hd_err err = plan_with(s, worker, true, &fresh, arena, diag);
	s->worker[worker] = slow;
	if (err)
		return err;
	double saves_ms = ms(now->step_ps - fresh.step_ps) * (double)s->left;
	if (!s->replacement || slow.asked || saves_ms <= ms(s->boot_ps))
		return HD_OK;
	s->worker[worker].asked = true;
	answer(action, HD_STRAGGLER_REPLACE, worker, "worker %u runs at %.2f of its speed: a replacement saves %.1f s of the %llu steps left "
		"and boots in %.1f s", worker, slow.speed, saves_ms * 1e-3, (unsigned long long)s->left, ms(s->boot_ps) * 1e-3);
	return HD_OK;
}

static enum hd_err judge_slow(struct hd_straggler *s, uint32_t worker, struct hd_straggler_action *action, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_straggler_worker *w = &s->worker[worker];
	struct hd_solve_plan with, without;
	enum hd_err err = plan_with(s, worker, true, &with, arena, diag);

	if (err)
		return err;
	err = may_replace(s, worker, &with, action, arena, diag);
	if (err || action->act)
		return err;
	if (others_in_map(s, worker)) {
		uint8_t *use = hd_arena_take(arena, s->ask->ndevices, 1);
		if (!use)
			return hd_fail(diag, HD_E_NOMEM, "no memory to judge worker %u", worker);
		err = plan_with(s, worker, false, &without, arena, diag);
		if (err)
			return err;
		/* the solver leaves a slow device out by itself: a plan with it that does not use it is one without it */
		bool unused = true;
		for (uint32_t d = 0; d < s->ask->ndevices; d++)
			unused &= s->ask->device[d].worker != worker || !with.count[d];
		if (unused || !hd_solve_gains(with.step_ps, without.step_ps, hd_solve_margin_ppm(s->ask))) {
			w->in_map = false;
			answer(action, HD_STRAGGLER_DROP, worker, "worker %u runs at %.2f of its speed: %.3f ms a step with it, %.3f without", worker, w->speed,
				ms(with.step_ps), ms(without.step_ps));
			return HD_OK;
		}
	}
	answer(action, HD_STRAGGLER_REMAP, worker, "worker %u runs at %.2f of its speed, the map is made for %.2f: %.3f ms a step with a new one", worker,
		w->speed, w->mapped_speed, ms(with.step_ps));
	w->mapped_speed = w->speed;
	return HD_OK;
}

static enum hd_err judge_standby(struct hd_straggler *s, uint32_t worker, struct hd_straggler_action *action, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_straggler_worker *w = &s->worker[worker];
	struct hd_solve_plan with, without;

	if (s->step >= w->probed + DWELL) {
		w->probed = s->step;
		answer(action, HD_STRAGGLER_PROBE, worker, "worker %u stands by at %.2f of its speed: one virtual node to see", worker, w->speed);
		return HD_OK;
	}
	if (s->step != w->probed + 1 || s->step < w->acted + DWELL)
		return HD_OK;
	enum hd_err err = plan_with(s, worker, true, &with, arena, diag);
	err = err ? err : plan_with(s, worker, false, &without, arena, diag);
	if (err || !hd_solve_gains(with.step_ps, without.step_ps, hd_solve_margin_ppm(s->ask)))
		return err;
	w->in_map = true;
	w->mapped_speed = w->speed < 1 ? w->speed : 1;
	answer(action, HD_STRAGGLER_RETURN, worker, "worker %u runs at %.2f of its speed again: %.3f ms a step with it, %.3f without", worker, w->speed,
		ms(with.step_ps), ms(without.step_ps));
	return HD_OK;
}

/* Faster than the map says by as much: the map is made anew, too. */
static bool recovered(const struct hd_straggler_worker *w) { return w->mapped_speed < judged_low && w->speed * judged_low > w->mapped_speed; }

static enum hd_err our_decide(struct hd_straggler *s, struct hd_straggler_action *action, struct hd_arena *arena, struct hd_diag *diag)
{
	for (uint32_t i = 0; i < s->ask->nworkers; i++) {
		struct hd_straggler_worker *w = &s->worker[i];
		enum hd_err err = HD_OK;
		bool rested = w->acted == 0 || s->step >= w->acted + DWELL;
		if (!w->in_map)
			err = judge_standby(s, i, action, arena, diag);
		else if (rested && w->low >= PATIENCE)
			err = judge_slow(s, i, action, arena, diag);
		else if (rested && recovered(w)) {
			w->mapped_speed = w->speed < 1 ? w->speed : 1;
			answer(action, HD_STRAGGLER_REMAP, i, "worker %u runs at %.2f of its speed again", i, w->speed);
		} else if (rested && w->late >= PATIENCE) {
			answer(action, HD_STRAGGLER_CHUNKS, i, "worker %u computes at %.2f of its speed and seals late by more than %.0f %% of a step, "
				"%u steps long: its link", i, w->speed, judged_late * 100, w->late);
			w->late = 0;
		}
		if (err || action->act) {
			w->acted = action->act != HD_STRAGGLER_PROBE && action->act ? s->step : w->acted;
			w->low = 0;
			return err;
		}
	}
	return HD_OK;
}

/* ---- ae-2020: "Resource Elasticity in Distributed Deep Learning" (MLSys 2020) */

static void old_step(struct hd_straggler *s, const struct hd_straggler_sample *sample, int64_t step_ps)
{
	double rate[HD_STRAGGLER_WORKERS], sorted[HD_STRAGGLER_WORKERS];
	uint32_t n = 0;
	(void)step_ps;

	for (uint32_t i = 0; i < s->ask->nworkers; i++)
		if (sample[i].vn_ps > 0) {
			rate[i] = 1e12 / (double)sample[i].vn_ps;
			sorted[n++] = rate[i];
		}
	double middle = n ? median(sorted, n) : 1;
	for (uint32_t i = 0; i < s->ask->nworkers; i++)
		if (sample[i].vn_ps > 0)
			learn(&s->worker[i], rate[i] / middle);
}

static enum hd_err old_decide(struct hd_straggler *s, struct hd_straggler_action *action, struct hd_arena *arena, struct hd_diag *diag)
{
	(void)arena;
	(void)diag;
	for (uint32_t i = 1; i < s->ask->nworkers; i++) {          /* worker 0 is exempt */
		struct hd_straggler_worker *w = &s->worker[i];
		if (w->asked && s->came && s->came_for == i && w->in_map) {
			w->in_map = false;
			s->came = false;
			answer(action, HD_STRAGGLER_RELEASE, i, "the replacement of worker %u has come", i);
			return HD_OK;
		}
		if (w->in_map && !w->asked && w->nsamples && w->speed < old_low) {
			w->asked = true;
			answer(action, HD_STRAGGLER_REPLACE, i, "worker %u has %.2f of the median throughput, below %.1f", i, w->speed, old_low);
			return HD_OK;
		}
	}
	return HD_OK;
}

const struct hd_straggler_rule hd_straggler_rules[] = {
	{ "ours", "a ladder: re-map, stand by, replace", our_step, our_decide },
	{ "ae-2020", "replace whoever has less than 0.8 of the median throughput", old_step, old_decide },
	{ 0 },
};

enum hd_err hd_straggler_init(struct hd_straggler *s, const char *rule, const struct hd_solve_ask *ask, struct hd_diag *diag)
{
	const struct hd_straggler_rule *row = hd_straggler_rules;
	struct hd_near near = hd_near_to(rule);

	for (; row->name && strcmp(row->name, rule) != 0; row++)
		hd_near_offer(&near, row->name);
	if (!row->name)
		return hd_fail(diag, HD_E_INVAL, "there is no straggler rule \"%.40s\"%s%s%s there are ours, ae-2020", rule,
			near.best ? "; did you mean " : ";", near.best ? near.best : "", near.best ? "?" : "");
	if (ask->nworkers > HD_STRAGGLER_WORKERS || ask->ndevices != ask->nworkers)
		return hd_fail(diag, HD_E_INVAL, "stragglers are found among up to %d workers of one device each, not %u workers with %u devices",
			HD_STRAGGLER_WORKERS, ask->nworkers, ask->ndevices);
	*s = (struct hd_straggler){ .rule = row, .ask = ask };
	for (uint32_t d = 0; d < ask->ndevices; d++)
		s->worker[ask->device[d].worker] = (struct hd_straggler_worker){ .type = ask->device[d].type, .in_map = true, .speed = 1, .mapped_speed = 1 };
	return HD_OK;
}

void hd_straggler_on_step(struct hd_straggler *s, const struct hd_straggler_sample *sample, int64_t step_ps)
{
	s->step++;
	s->left -= s->left > 0;
	s->rule->on_step(s, sample, step_ps);
}

enum hd_err hd_straggler_decide(struct hd_straggler *s, struct hd_straggler_action *action, struct hd_arena *arena, struct hd_diag *diag)
{
	*action = (struct hd_straggler_action){ HD_STRAGGLER_NONE, 0, "" };
	return s->rule->decide(s, action, arena, diag);
}
