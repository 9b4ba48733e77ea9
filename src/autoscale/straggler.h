/* straggler.h -- slow workers: detect them and decide when to replace one.
 *
 * balance/drift.h first gives a slow worker fewer virtual nodes, or none: that moves no state and costs
 * nothing. If that is not enough, the worker is replaced. Input of every step: the time that each worker's
 * devices took for a virtual node. Two rules choose the worker to replace:
 *
 *	ours      slowdown = time over the median of the other workers (even: the lower of the middle two),
 *	          an EWMA of 0.1, judged after 10 samples. Replaced, the slowest first: above 1 / 0.95 for
 *	          16 steps (then after each 16 more), if a healthy worker shortens the rest of the run by
 *	          more than a worker's boot time. No worker is exempt.
 *	ae-2020   throughput over the median of all (even: the mean of the middle two), an EWMA of 0.1 from
 *	          the first value; replaced below 0.8. The first worker is exempt. ("Resource Elasticity in
 *	          Distributed Deep Learning", MLSys 2020)
 *
 * 1. REPLACE: request a new worker. The slow one leaves once the new one is a member, not before. One
 *    replacement at a time, 100 steps apart.
 * 2. The slow one left: REPLACED. The new one did not arrive in time: KEEP, and no more are requested.
 * 3. A replacement is itself slow: the cause is not the worker. OVER: no more are requested.
 * 4. A worker without a sample in a step (it has no virtual node) counts as slow as it was.
 *
 * Every answer has its reason, with numbers. All state is in struct hd_straggler; a worker that
 * left is forgotten. Pure. */
#ifndef HD_AUTOSCALE_STRAGGLER_H
#define HD_AUTOSCALE_STRAGGLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_STRAGGLER_WORKERS = 128, HD_STRAGGLER_WHY = 240 };

enum hd_straggler_act { HD_STRAGGLER_NONE, HD_STRAGGLER_REPLACE, HD_STRAGGLER_REPLACED, HD_STRAGGLER_KEEP,
	HD_STRAGGLER_OVER };
struct hd_straggler_action { enum hd_straggler_act act; uint32_t worker; char why[HD_STRAGGLER_WHY]; };

struct hd_straggler_sample { uint32_t worker; uint64_t vn_ps; };          /* 0: it ran no virtual node */

/* Expected step time now, and if that worker were as fast as the others; false: not known. */
typedef bool hd_straggler_gain(void *self, uint32_t worker, double normal_ps, int64_t *now_ps,
	int64_t *well_ps);

struct hd_straggler_now {
	/* the workers that may be replaced, by rising ids */
	const struct hd_straggler_sample *sample; uint32_t n;
	uint64_t left;                            /* steps */
	int64_t now_ns, patience_ns;              /* how long a new worker may take to arrive */
	hd_straggler_gain *gain; void *self;
};

/* EWMAs; the others' time */
struct hd_straggler_worker { uint32_t worker, nsamples, low; double of_others, of_all, normal_ps; };

struct hd_straggler;
struct hd_straggler_rule {
	const char *name, *about;
	/* The worker to replace; NULL: none. */
	const struct hd_straggler_worker *(*choose)(const struct hd_straggler *s,
		const struct hd_straggler_now *now, struct hd_straggler_action *action);
};
extern const struct hd_straggler_rule hd_straggler_rules[];              /* ends with name == NULL */

struct hd_straggler {
	const struct hd_straggler_rule *rule;     /* NULL: off */
	struct hd_straggler_worker worker[HD_STRAGGLER_WORKERS]; uint32_t n;     /* by rising ids */
	uint64_t steps, acted;                    /* steps seen; the step of the last action + 1 */
	/* with `waiting`; the highest id when one was requested; with `came`: the replacement */
	uint32_t asked_for, newest, newcomer;
	int64_t asked_ns, boot_ns;                /* boot: 1 s until one was seen */
	bool waiting, came, over;
};

/* rule NULL: off. HD_E_INVAL: no such rule. */
HD_MUST_USE enum hd_err hd_straggler_init(struct hd_straggler *s, const char *rule, struct hd_diag *diag);
/* After a committed step. */
void hd_straggler_step(struct hd_straggler *s, const struct hd_straggler_now *now,
	struct hd_straggler_action *action);

#endif
