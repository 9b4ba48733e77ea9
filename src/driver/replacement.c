#include "driver/replacement.h"

#include "base/timeouts.h"

static bool gain(void *self, uint32_t worker, double normal_ps, int64_t *now_ps, int64_t *well_ps)
{
	return hd_reshape_if(self, worker, 0, now_ps) && hd_reshape_if(self, worker, normal_ps, well_ps);
}

void hd_replacement_step(struct hd_straggler *straggler, struct hd_reshape *reshape,
	const struct hd_view *view, const struct hd_replacement_now *now,
	struct hd_straggler_action *action)
{
	struct hd_straggler_sample sample[HD_MAX_MEMBERS];
	uint64_t step_ns = 0;
	uint32_t n = 0;

	*action = (struct hd_straggler_action){ HD_STRAGGLER_NONE, 0, "" };
	if (reshape->pace.in_epoch <= HD_PACE_FIRST)
		return;
	for (uint32_t i = 0; i < view->nmembers; i++) {
		const struct hd_pace_worker *w = hd_pace_of(&reshape->pace, view->member[i]);
		const struct hd_pace_step *s = w ? hd_pace_at(w, now->step) : NULL;
		if (!s || s->redone)
			return;                   /* no ordinary step */
		step_ns = s->step_ns > step_ns ? s->step_ns : step_ns;
		if (!hd_is_remote(view->member[i]))
			sample[n++] = (struct hd_straggler_sample){ view->member[i],
				hd_pace_vn_ps(s, view, view->member[i]) };
	}
	hd_straggler_step(straggler, &(struct hd_straggler_now){ .sample = sample, .n = n, .left = now->left,
		.now_ns = now->now_ns,
		.patience_ns = HD_TIMEOUT_NS(START, now->detect_ns) + HD_CO_STEPS_TO_JOIN * (int64_t)step_ns,
		.gain = gain, .self = reshape }, action);
}
