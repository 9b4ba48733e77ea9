/* autoscale_sim.h -- an autoscaling policy on a job whose step times are known, with every trial charged.
 *
 * The same policy as at run time (autoscale.h); only the steps are looked up instead of run. Tests and the
 * table of docs/results/autoscale.md ask.
 *
 * 1. A step at size k takes step_s[k] times (1 + noise x), x uniform in [-sqrt 3, sqrt 3), keyed by seed and
 *    step: `noise` is the relative standard deviation.
 * 2. Going up: joiners are paid from the proposal on, the members go on stepping for boot_s, then the size
 *    changes. Going down changes at once. Each change stalls the members for stall_s.
 * 3. From step `then_at` on steps are those of then_step_s (NULL: they stay).
 *
 * Pure. */
#ifndef HD_AUTOSCALE_AUTOSCALE_SIM_H
#define HD_AUTOSCALE_AUTOSCALE_SIM_H

#include "autoscale/autoscale.h"

struct hd_scale_job {
	const double *step_s;                     /* [max + 1] */
	const double *then_step_s; uint64_t then_at;
	uint64_t steps;
	uint32_t start;
	double noise;
	uint64_t seed;
};

struct hd_scale_run {
	double time_s, cost_usd;
	uint32_t size, nchanges;                  /* at the end */
	uint64_t last_change;                     /* step */
};

/* For tests. `log` (or NULL): a line for every proposal that changes the size or says why it stays. */
HD_MUST_USE enum hd_err hd_scale_simulate(struct hd_scale_run *run, const char *policy,
	const struct hd_scale_setting *setting,
	const struct hd_scale_job *job, struct hd_arena *arena, struct hd_text *log, struct hd_diag *diag);

#endif
