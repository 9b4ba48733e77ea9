#include "serve/scaler.h"

#include <stdio.h>
#include <string.h>

#define HD_SCALER_BOOT_S 1.0              /* before one was seen */
#define HD_SCALER_PATIENCE_NS INT64_C(60000000000)

enum hd_err hd_scaler_turn(struct hd_scaler *s, const char *policy, struct hd_diag *diag)
{
	const struct hd_scale_policy *row = hd_scale_policies;
	const int64_t none[HD_MAX_MEMBERS + 1] = { 0 };
	const struct hd_scale_setting set = { .min = 1, .max = 1, .compute_ps = none };

	s->policy = NULL;
	s->begun = false;
	s->asked = 0;
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

static bool begin(struct hd_scaler *s, const struct hd_scaler_now *now)
{
	if (s->begun || !now->vn_ps)
		return s->begun;
	for (uint32_t k = 1; k <= s->max; k++)
		s->compute_ps[k] = (int64_t)((s->nvns + k - 1) / k) * (int64_t)now->vn_ps;
	const struct hd_scale_setting set = { .objective = s->objective, .min = s->min, .max = s->max, .every = s->every, .price_usd_h = s->price_usd_h,
		.compute_ps = s->compute_ps, .boot_s = HD_SCALER_BOOT_S, .stall_s = (double)now->step_ns * 1e-9 };
	s->begun = !hd_scale_init(&s->scale, s->policy, &set, NULL);
	return s->begun;
}

/* More than those cannot be had. */
static uint32_t give_up(struct hd_scaler *s, uint32_t members, bool *said)
{
	snprintf(s->why, sizeof s->why, "%u of %u workers came in %lld s: no more than those from here on", members, s->asked,
		(long long)(HD_SCALER_PATIENCE_NS / 1000000000));
	s->max = s->scale.set.max = members > s->min ? members : s->min;
	s->asked = 0;
	*said = true;
	return s->max;
}

uint32_t hd_scaler_step(struct hd_scaler *s, const struct hd_scaler_now *now, bool *said)
{
	struct hd_scale_answer answer;
	const struct hd_scale_now where = { .left = now->left, .elapsed_s = (double)(now->now_ns - now->since_ns) * 1e-9, .size = now->members,
		.awaits = now->members != now->target };

	*said = false;
	if (!s->policy || !now->step_ns || !now->members || now->members > s->max || !begin(s, now))
		return 0;
	if (s->asked && now->members == s->asked) {
		s->scale.set.boot_s = (double)(now->now_ns - s->asked_ns) * 1e-9;
		s->asked = 0;
	}
	hd_scale_sample(&s->scale, now->members, (double)now->step_ns * 1e-9);
	hd_scale_propose(&s->scale, &where, &answer);
	if (answer.why[0] && strcmp(answer.why, s->why) != 0) {
		memcpy(s->why, answer.why, sizeof s->why);
		*said = true;
	}
	if (where.awaits)
		return s->asked && now->now_ns - s->asked_ns > HD_SCALER_PATIENCE_NS ? give_up(s, now->members, said) : 0;
	if (answer.size == now->members)
		return 0;
	s->asked = answer.size;
	s->asked_ns = now->now_ns;
	return answer.size;
}
