#include "autoscale/autoscale.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/near.h"
#include "autoscale/int.h"

const struct hd_scale_policy hd_scale_policies[] = {
	{ "curve", "fits what exchange adds to the solver's step times, and tries what could still be better", hd_curve_sample, hd_curve_propose,
		hd_curve_cost },
	{ "ae-2020", "the autoscaling engine of 2020: a step up or down at a time", hd_ae_2020_sample, hd_ae_2020_propose, hd_ae_2020_cost },
	{ 0 },
};

static enum hd_err check(const struct hd_scale_setting *set, struct hd_diag *diag)
{
	if (set->min == 0 || set->min > set->max || set->max > HD_SCALE_MAX)
		return hd_fail(diag, HD_E_INVAL, "sizes from %u to %u: they are from 1 to %d", set->min,
			set->max, HD_SCALE_MAX);
	if (set->objective == HD_OBJECTIVE_UTILITY && !set->utility)
		return hd_fail(diag, HD_E_INVAL,
			"the objective utility needs a utility: linear:Y,X or points:VALUE:TIME,...");
	if (set->objective == HD_OBJECTIVE_DEADLINE && !(set->deadline_s > 0))
		return hd_fail(diag, HD_E_INVAL, "the objective deadline needs a deadline above 0 s, not %g",
			set->deadline_s);
	if (!(set->price_usd_h >= 0) || !(set->theta >= 0) || !(set->boot_s >= 0) || !(set->stall_s >= 0))
		return hd_fail(diag, HD_E_INVAL,
			"prices, theta and times are 0 or more: %g USD/h, %g, boot %g s, stall %g s",
			set->price_usd_h, set->theta,
			set->boot_s, set->stall_s);
	return HD_OK;
}

static uint32_t or(uint32_t value, uint32_t standard) { return value ? value : standard; }

enum hd_err hd_scale_init(struct hd_scale *scale, const char *policy, const struct hd_scale_setting *setting,
	struct hd_diag *diag)
{
	struct hd_near near = hd_near_to(policy);
	const struct hd_scale_policy *row = hd_scale_policies;
	enum hd_err err = check(setting, diag);

	for (; row->name && strcmp(row->name, policy) != 0; row++)
		hd_near_offer(&near, row->name);
	if (!err && !row->name)
		return hd_fail(diag, HD_E_INVAL,
			"there is no autoscaling policy \"%.40s\"%s%s%s there are curve, ae-2020", policy,
			near.best ? "; did you mean " : ";", near.best ? near.best : "",
			near.best ? "?" : "");
	if (!err && row->propose == hd_curve_propose && !setting->compute_ps)
		return hd_fail(diag, HD_E_INVAL, "the policy curve needs the solver's step times");
	if (err)
		return err;
	*scale = (struct hd_scale){ .policy = row, .set = *setting };
	scale->set.every = or(setting->every, 50);
	scale->set.step = or(setting->step, 4);
	scale->set.passes = or(setting->passes, 3);
	scale->set.stay = or(setting->stay, 100);
	scale->set.theta = setting->theta > 0 ? setting->theta : 0.1;
	scale->set.price_usd_h = setting->price_usd_h > 0 ? setting->price_usd_h : 1;
	if (setting->utility)
		scale->utility = *setting->utility;
	return HD_OK;
}

void hd_scale_sample(struct hd_scale *scale, uint32_t size, double step_s)
{
	struct hd_scale_known *known;

	assert(size >= 1 && size <= HD_SCALE_MAX && step_s > 0);
	if (size != scale->last_size) {                   /* rule 1 */
		scale->last_size = size;
		scale->since = 1;
		return;
	}
	known = &scale->known[size];
	double off = step_s - known->mean_s;
	known->n++;
	known->mean_s += off / (double)known->n;
	known->m2 += off * (step_s - known->mean_s);
	scale->since++;
	scale->policy->on_sample(scale, size, step_s);
}

void hd_scale_propose(struct hd_scale *scale, const struct hd_scale_now *now, struct hd_scale_answer *answer)
{
	answer->size = now->size;
	answer->why[0] = 0;
	if (now->awaits || now->left == 0)
		return;
	scale->policy->propose(scale, now, answer);
	answer->size = answer->size < scale->set.min ? scale->set.min : answer->size > scale->set.max ?
		scale->set.max : answer->size;
}

void hd_scale_reopen(struct hd_scale *scale, const struct hd_scale_setting *setting)
{
	scale->settled = false;
	scale->looked = 0;
	scale->set.compute_ps = setting->compute_ps;
	scale->set.price_usd_h = setting->price_usd_h > 0 ? setting->price_usd_h : 1;
	scale->set.min = setting->min;
	scale->set.max = setting->max;
}

/* ---- shared */

static const double late = 1e12;

double hd_scale_money(const struct hd_scale *scale, uint32_t size,
	double seconds) { return seconds * size * scale->set.price_usd_h / 3600; }

double hd_scale_objective(const struct hd_scale *scale, const struct hd_scale_now *now, uint32_t size,
	double step_s)
{
	double rest_s = (double)now->left * step_s, money = hd_scale_money(scale, size, rest_s);

	switch (scale->set.objective) {
	case HD_OBJECTIVE_COST:
		return money;
	case HD_OBJECTIVE_UTILITY:
		return money - hd_utility_at(&scale->utility, now->elapsed_s + rest_s);
	case HD_OBJECTIVE_DEADLINE:
		/* too late: by what share, above all that money can be */
		return now->elapsed_s + rest_s <= scale->set.deadline_s ? money :
			late * (now->elapsed_s + rest_s) / scale->set.deadline_s;
	case HD_OBJECTIVE_TIME:
	case HD_OBJECTIVE_EFFICIENCY:
	case HD_NOBJECTIVES:
		break;
	}
	return rest_s;
}

double hd_scale_sd_of_mean(const struct hd_scale_known *known)
{
	return known->n < 2 ? 0 : sqrt(known->m2 / ((double)known->n - 1) / (double)known->n);
}

bool hd_scale_efficient(uint32_t i, double step_i, uint32_t j, double step_j, double theta)
{
	double rate_i = 1 / step_i, rate_j = 1 / step_j;

	return (rate_j - rate_i) / (j - i) / (rate_i / i) > theta;
}

void hd_scale_why(struct hd_scale_answer *answer, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(answer->why, sizeof answer->why, fmt, args);
	va_end(args);
}
