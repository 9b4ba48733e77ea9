/* pace.h -- how fast each worker really is, and when that asks for another sharing out.
 *
 * A worker's seal says how long its step took and how long it computed in it; the latter, over its virtual nodes, is its
 * pace. The planner of views asks here (hd_pace_plan): virtual nodes go to workers by the exact solver (plan/solver.h).
 *
 * 1. A pace is an EWMA (0.1) over steps without repairs, each counted as at most twice the pace; the first HD_PACE_FIRST steps of a view are not counted.
 * 2. Another plan is asked for when for HD_PACE_STEPS steps in a row some pace was more than 5 % off what the plan in force
 *    was made with.
 * 3. Workers that were never measured count as the median of those that were, else as what they say of themselves. While nobody
 *    was measured, or all are within 5 % of one another, shares are even.
 * 4. Times are measured; no bit of the result depends on what comes of them.
 *
 * Plain values, no clock. Threads: one. */
#ifndef HD_SERVE_PACE_H
#define HD_SERVE_PACE_H

#include "cluster/coordinator.h"

enum { HD_PACE_FIRST = 3, HD_PACE_STEPS = 16, HD_PACE_OFF_PERCENT = 5 };

struct hd_pace_worker {
	uint32_t worker, steps;
	uint64_t vn_ps, planned_ps;       /* 0: not measured; planned: when the plan was made */
	uint64_t step_ns, wait_ns, compute_ns;    /* of its last step */
	uint64_t redone;                  /* virtual nodes that it computed for others, in all */
};

struct hd_pace {
	uint32_t nvns, epoch, off;        /* off: steps in a row that asked for another plan */
	uint32_t in_epoch;                /* steps of it seen */
	uint32_t n;
	struct hd_pace_worker worker[HD_MAX_WORKERS];
	char words[600];                  /* what the solver said of the last plan that it made; "" none */
};

void hd_pace_init(struct hd_pace *pace, uint32_t nvns);
/* A seal of a member under `view`, which may be NULL. */
void hd_pace_seal(struct hd_pace *pace, uint32_t worker, const struct hd_step_news *news, const struct hd_view *view);
/* After a committed step: is it time to ask for another plan? Then not again for as many steps. */
bool hd_pace_asks(struct hd_pace *pace);
const struct hd_pace_worker *hd_pace_of(const struct hd_pace *pace, uint32_t worker);        /* NULL: it has sealed no step */
/* How fast a worker is: 1 is the median of those of the view. 0: not measured. */
double hd_pace_speed(const struct hd_pace *pace, uint32_t worker, const struct hd_view *view);
/* hd_plan_view of cluster/coordinator.h; `self` is the pace. */
bool hd_pace_plan(void *self, struct hd_view *view, const struct hd_member_info *info, uint32_t n);

#endif
