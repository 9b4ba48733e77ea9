/* sched_why.h -- why a job got no share, from the prices of the last answer and from asking the policy once more.
 *
 * `heddle sched solve` prints it for every job that waits. A what-if is not computed from prices (they hold at a point only):
 * the policy is asked again with one weight changed, so what it says is so.
 *
 * Pure but for the solver; everything lies in the arena. */
#ifndef HD_CLUSTER_SCHED_WHY_H
#define HD_CLUSTER_SCHED_WHY_H

#include "cluster/sched_policy.h"

/*        id          code                                                                   */
#define HD_WHYS(X)                                                                            \
	X(RUNS,       "RUNS")           /* it has a share */                                  \
	X(OVER,       "OVER")           /* no steps left */                                   \
	X(UNRUNNABLE, "UNRUNNABLE")     /* no type can run it, or none is large enough */     \
	X(NO_SHARE,   "NO_SHARE")       /* the policy gives it nothing for now */             \
	X(TOO_DEAR,   "TOO_DEAR")       /* its steps cost more than they are worth */         \
	X(QUEUED,     "QUEUED")         /* others are before it in the queue */

enum hd_why_code {
#define X(id, name) HD_WHY_##id,
	HD_WHYS(X)
#undef X
};
const char *hd_why_name(enum hd_why_code code);

enum { HD_WHY_TEXT = 300 };

struct hd_why {
	enum hd_why_code code;
	uint32_t type;                            /* the resource that is tight for it; HD_SCHED_NONE */
	double weight;                            /* with it the job would have a share now; 0: none up to 1024 times its own, or weights do not count */
	char text[HD_WHY_TEXT];                   /* a sentence */
};

HD_MUST_USE enum hd_err hd_sched_why(const struct hd_policy_setting *setting, const struct hd_sched_state *state, const struct hd_shares *shares, uint32_t job,
	struct hd_arena *arena, struct hd_why *why, struct hd_diag *diag);

#endif
