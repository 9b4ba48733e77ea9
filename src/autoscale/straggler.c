#include "autoscale/straggler.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"

static const double alpha = 0.1, judged_slow = 1 / 0.95, old_low = 0.8;
enum { JUDGED_AFTER = 10, PATIENCE = 16, DWELL = 100 };

__attribute__((format(printf, 4, 5)))
static void answer(struct hd_straggler_action *action, enum hd_straggler_act act, uint32_t worker,
	const char *fmt, ...)
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

static double seconds(int64_t ns) { return (double)ns * 1e-9; }

/* ---- what each step says */

/* The members, each with what is known of it. */
static void take_members(struct hd_straggler *s, const struct hd_straggler_now *now)
{
	struct hd_straggler_worker next[HD_STRAGGLER_WORKERS];
	uint32_t n = now->n < HD_STRAGGLER_WORKERS ? now->n : HD_STRAGGLER_WORKERS, k = 0;

	for (uint32_t i = 0; i < n; i++) {
		while (k < s->n && s->worker[k].worker < now->sample[i].worker)
			k++;
		bool known = k < s->n && s->worker[k].worker == now->sample[i].worker;
		next[i] = known ? s->worker[k] : (struct hd_straggler_worker){ .worker =
			now->sample[i].worker };
	}
	memcpy(s->worker, next, n * sizeof *next);
	s->n = n;
}

/* The lower of the middle two: of two others one may be slow as well. */
static double middle_of_others(const struct hd_straggler_now *now, uint32_t n, uint32_t but)
{
	double time[HD_STRAGGLER_WORKERS];
	uint32_t k = 0;

	for (uint32_t i = 0; i < n; i++)
		if (i != but && now->sample[i].vn_ps)
			time[k++] = (double)now->sample[i].vn_ps;
	qsort(time, k, sizeof *time, compare);
	return k ? time[(k - 1) / 2] : 0;
}

static double middle_rate(const struct hd_straggler_now *now, uint32_t n)
{
	double rate[HD_STRAGGLER_WORKERS];
	uint32_t k = 0;

	for (uint32_t i = 0; i < n; i++)
		if (now->sample[i].vn_ps)
			rate[k++] = 1e12 / (double)now->sample[i].vn_ps;
	qsort(rate, k, sizeof *rate, compare);
	return !k ? 0 : k % 2 ? rate[k / 2] : (rate[k / 2 - 1] + rate[k / 2]) / 2;
}

static void learn(struct hd_straggler *s, const struct hd_straggler_now *now)
{
	double all = middle_rate(now, s->n);

	for (uint32_t i = 0; i < s->n; i++) {
		struct hd_straggler_worker *w = &s->worker[i];
		double others = middle_of_others(now, s->n, i), mine = (double)now->sample[i].vn_ps,
			by = w->nsamples ? alpha : 1;
		if (mine > 0 && others > 0) {
			w->of_others += by * (mine / others - w->of_others);
			w->of_all += by * (1e12 / mine / all - w->of_all);
			w->nsamples++;
		}
		if (others > 0)
			w->normal_ps = others;
		w->low = w->nsamples >= JUDGED_AFTER && w->of_others > judged_slow ? w->low + 1 : 0;
	}
}

/* ---- which worker to replace */

static const struct hd_straggler_worker *choose_ours(const struct hd_straggler *s,
	const struct hd_straggler_now *now, struct hd_straggler_action *action)
{
	const struct hd_straggler_worker *worst = NULL;
	int64_t now_ps = 0, well_ps = 0;

	for (uint32_t i = 0; i < s->n; i++)
		if (s->worker[i].low && s->worker[i].low % PATIENCE == 0 &&
			(!worst || s->worker[i].of_others > worst->of_others))
			worst = &s->worker[i];
	if (!worst || !now->gain(now->self, worst->worker, worst->normal_ps, &now_ps, &well_ps))
		return NULL;
	double saves_s = (double)(now_ps - well_ps) * 1e-12 * (double)now->left;
	if (saves_s <= seconds(s->boot_ns))
		return NULL;
	answer(action, HD_STRAGGLER_REPLACE, worst->worker,
		"worker %u takes %.2f of the others' time for a virtual node: another "
		"in its place saves %.1f s of the %llu steps left, and boots in %.1f s",
		worst->worker, worst->of_others, saves_s,
		(unsigned long long)now->left, seconds(s->boot_ns));
	return worst;
}

static const struct hd_straggler_worker *choose_old(const struct hd_straggler *s,
	const struct hd_straggler_now *now, struct hd_straggler_action *action)
{
	(void)now;
	for (uint32_t i = 1; i < s->n; i++) {                     /* the first is exempt */
		const struct hd_straggler_worker *w = &s->worker[i];
		if (w->nsamples && w->of_all < old_low) {
			answer(action, HD_STRAGGLER_REPLACE, w->worker,
				"worker %u has %.2f of the median throughput, below %.1f", w->worker,
				w->of_all,
				old_low);
			return w;
		}
	}
	return NULL;
}

const struct hd_straggler_rule hd_straggler_rules[] = {
	{ "ours", "another in the place of a slow worker, if that saves more than it takes to boot", choose_ours },
	{ "ae-2020", "replace a worker below 0.8 of the median throughput", choose_old },
	{ 0 },
};

enum hd_err hd_straggler_init(struct hd_straggler *s, const char *rule, struct hd_diag *diag)
{
	const struct hd_straggler_rule *row = hd_straggler_rules;
	struct hd_near near = hd_near_to(rule ? rule : "");

	*s = (struct hd_straggler){ .boot_ns = INT64_C(1000000000) };
	for (; rule && row->name && strcmp(row->name, rule) != 0; row++)
		hd_near_offer(&near, row->name);
	if (!row->name)
		return hd_fail(diag, HD_E_INVAL,
			"there is no straggler rule \"%.40s\"%s%s%s there are ours, ae-2020", rule,
			near.best ? "; did you mean " : ";", near.best ? near.best : "",
			near.best ? "?" : "");
	s->rule = rule ? row : NULL;
	return HD_OK;
}

/* ---- one at a time */

static bool is_member(const struct hd_straggler *s, uint32_t worker)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->worker[i].worker == worker)
			return true;
	return false;
}

static uint32_t first_after(const struct hd_straggler *s, uint32_t newest)
{
	uint32_t i = 0;

	while (i + 1 < s->n && s->worker[i].worker <= newest)
		i++;
	return s->worker[i].worker;
}

static void wait_for_the_other(struct hd_straggler *s, const struct hd_straggler_now *now,
	struct hd_straggler_action *action)
{
	int64_t waited = now->now_ns - s->asked_ns;
	bool gone = !is_member(s, s->asked_for);

	if (!gone && waited <= now->patience_ns)
		return;
	s->waiting = false;
	s->acted = s->steps;
	if (gone) {
		s->came = s->n && s->worker[s->n - 1].worker > s->newest;
		s->newcomer = s->came ? first_after(s, s->newest) : 0;
		s->boot_ns = s->came ? waited : s->boot_ns;
		answer(action, HD_STRAGGLER_REPLACED, s->asked_for,
			"worker %u %s %.1f s after another was asked for", s->asked_for,
			s->came ? "was replaced" : "is gone", seconds(waited));
	} else {
		s->over = true;
		answer(action, HD_STRAGGLER_KEEP, s->asked_for,
			"no worker came in the place of %u in %.1f s: it stays, and no more are asked for",
			s->asked_for, seconds(waited));
	}
}

void hd_straggler_step(struct hd_straggler *s, const struct hd_straggler_now *now,
	struct hd_straggler_action *action)
{
	*action = (struct hd_straggler_action){ HD_STRAGGLER_NONE, 0, "" };
	if (!s->rule || s->over)
		return;
	s->steps++;
	take_members(s, now);
	learn(s, now);
	if (s->waiting) {
		wait_for_the_other(s, now, action);
		return;
	}
	const struct hd_straggler_worker *w = s->acted && s->steps < s->acted + DWELL ? NULL :
		s->rule->choose(s, now, action);
	if (!w)
		return;
	if (s->came && w->worker == s->newcomer) {
		s->over = true;
		answer(action, HD_STRAGGLER_OVER, w->worker,
			"worker %u came in the place of a slow one and takes %.2f of the others' time, too: "
			"it is not the worker; no more are asked for", w->worker, w->of_others);
		return;
	}
	s->waiting = true;
	s->asked_for = w->worker;
	s->asked_ns = now->now_ns;
	s->newest = s->worker[s->n - 1].worker;
}
