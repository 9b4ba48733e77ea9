#include "driver/scaler.h"

#include <stdio.h>
#include <string.h>

#include "base/timeouts.h"
#include "protocol/coordinator.h"

#define HD_SCALER_BOOT_S 1.0              /* before one was seen */

enum hd_err hd_scaler_turn(struct hd_scaler *s, const char *policy, struct hd_diag *diag)
{
	const struct hd_scale_policy *row = hd_scale_policies;
	const int64_t none[HD_MAX_MEMBERS + 1] = { 0 };
	const struct hd_scale_setting set = { .min = 1, .max = 1, .compute_ps = none };

	s->policy = NULL;
	s->begun = false;
	s->asked = s->cut = 0;
	if (!policy)
		return HD_OK;
	enum hd_err err = hd_scale_init(&s->scale, policy, &set, diag);
	if (err)
		return err;
	while (strcmp(row->name, policy) != 0)
		row++;
	s->policy = row->name;
	return HD_OK;
}

/* Sizes that fit beside the guests, a virtual node each. */
static uint32_t most(const struct hd_scaler *s)
{
	uint32_t most_local = s->nvns > s->guests ? s->nvns - s->guests : 1;
	uint32_t max = s->max < most_local ? s->max : most_local;

	return max > s->min ? max : s->min;
}

static bool begin(struct hd_scaler *s, const struct hd_scaler_now *now)
{
	if (now->guests != s->guests) {
		s->guests = now->guests;
		s->begun = false;
		s->asked = s->cut = 0;
	}
	if (s->begun || !now->vn_ps)
		return s->begun;
	for (uint32_t k = 1; k <= most(s); k++)
		s->compute_ps[k] = (int64_t)((s->nvns + k + s->guests - 1) / (k + s->guests)) *
			(int64_t)now->vn_ps;
	const struct hd_scale_setting set = { .objective = s->objective, .min = s->min, .max = most(s),
		.every = s->every, .price_usd_h = s->price_usd_h,
		.compute_ps = s->compute_ps, .boot_s = HD_SCALER_BOOT_S,
		.stall_s = (double)now->step_ns * 1e-9 };
	s->begun = !hd_scale_init(&s->scale, s->policy, &set, NULL);
	return s->begun;
}

/* Joins may fail: give up after a timeout. Leaves never do: a member that is to go goes at a boundary. */
static uint32_t give_up(struct hd_scaler *s, const struct hd_scaler_now *now, bool *said)
{
	int64_t waited = now->now_ns - s->asked_ns, timeout = HD_TIMEOUT_NS(START,
		s->detect_ns) + HD_CO_STEPS_TO_JOIN * (int64_t)now->step_ns;

	if (!s->asked || s->asked <= now->members || waited <= timeout)
		return 0;
	snprintf(s->why, sizeof s->why,
		"%u of %u workers came in %.3g s: no more than those until others are here", now->members,
		s->asked,
		(double)waited * 1e-9);
	s->cut = s->scale.set.max = now->members > s->min ? now->members : s->min;
	s->asked = 0;
	*said = true;
	return s->cut;
}

/* Others are here: the sizes above are open again. */
static void reopen(struct hd_scaler *s, const struct hd_scaler_now *now, bool *said)
{
	if (!s->cut || now->here <= s->cut)
		return;
	snprintf(s->why, sizeof s->why, "%u workers are here: up to %u may be asked for again", now->here,
		most(s));
	struct hd_scale_setting set = s->scale.set;
	set.max = most(s);
	hd_scale_reopen(&s->scale, &set);
	s->cut = 0;
	*said = true;
}

uint32_t hd_scaler_step(struct hd_scaler *s, const struct hd_scaler_now *now, bool *said)
{
	struct hd_scale_answer answer;
	const struct hd_scale_now where = { .left = now->left,
		.elapsed_s = (double)(now->now_ns - now->since_ns) * 1e-9, .size = now->members,
		.awaits = now->members != now->target };

	*said = false;
	if (!s->policy || !now->step_ns || !now->members || now->members > s->max || !begin(s, now))
		return 0;
	if (s->asked && now->members == s->asked) {
		s->scale.set.boot_s = (double)(now->now_ns - s->asked_ns) * 1e-9;
		s->asked = 0;
	}
	hd_scale_sample(&s->scale, now->members, (double)now->step_ns * 1e-9);
	reopen(s, now, said);
	hd_scale_propose(&s->scale, &where, &answer);
	if (answer.why[0] && strcmp(answer.why, s->why) != 0) {
		memcpy(s->why, answer.why, sizeof s->why);
		*said = true;
	}
	if (where.awaits)
		return give_up(s, now, said);
	if (answer.size == now->members)
		return 0;
	s->asked = answer.size;
	s->asked_ns = now->now_ns;
	return answer.size;
}
