/* straggler.h -- workers that fall behind, and when another is asked for in the place of one.
 *
 * balance/drift.h gives a slow worker fewer virtual nodes, and none while it is not worth its exchange: that moves no state and costs nothing.
 * What is left is another worker. Told every step how long the devices of each worker took for a virtual node, this says whom to relieve:
 *
 *	ours      slow = time over the median of the others' (even: the lower of the middle two), an EWMA of 0.1, judged after 10 samples.
 *	          Above 1 / 0.95 for 16 steps (and then after each 16), and the rest of the run would be shorter with it well, by more than a worker takes to
 *	          boot: relieved, the slowest first. Nobody is exempt.
 *	ae-2020   throughput over the median of all (even: the mean of the middle two), an EWMA of 0.1 from the first value; below 0.8. The
 *	          first worker is exempt. ("Resource Elasticity in Distributed Deep Learning", MLSys 2020)
 *
 * 1. RELIEVE: a worker is asked for; when it is a member the slow one goes, not before. One at a time, and 100 steps between two.
 * 2. It went: RELIEVED. The other did not come in time: KEEP, and no more are asked for.
 * 3. A worker that came in the place of one and is to be relieved, too: what is slow is not the worker. OVER: no more are asked for.
 * 4. A worker without a sample in a step (it has no virtual node) counts as slow as it was.
 *
 * Every answer has its reason, with numbers. All state is in struct hd_straggler; who no longer is a member is forgotten. Pure. */
#ifndef HD_AUTOSCALE_STRAGGLER_H
#define HD_AUTOSCALE_STRAGGLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_STRAGGLER_WORKERS = 128, HD_STRAGGLER_WHY = 240 };

enum hd_straggler_act { HD_STRAGGLER_NONE, HD_STRAGGLER_RELIEVE, HD_STRAGGLER_RELIEVED, HD_STRAGGLER_KEEP,
	HD_STRAGGLER_OVER };
struct hd_straggler_action { enum hd_straggler_act act; uint32_t worker; char why[HD_STRAGGLER_WHY]; };

struct hd_straggler_sample { uint32_t worker; uint64_t vn_ps; };          /* 0: it ran no virtual node */

/* What a step is to take as things are, and if that worker were as fast as the others; false: not known. */
typedef bool hd_straggler_gain(void *self, uint32_t worker, double normal_ps, int64_t *now_ps,
	int64_t *well_ps);

struct hd_straggler_now {
	const struct hd_straggler_sample *sample; uint32_t n;    /* all who may be relieved, by rising ids */
	uint64_t left;                            /* steps */
	int64_t now_ns, patience_ns;              /* how long another may take to come */
	hd_straggler_gain *gain; void *self;
};

/* EWMAs; the others' time */
struct hd_straggler_worker { uint32_t worker, nsamples, low; double of_others, of_all, normal_ps; };

struct hd_straggler;
struct hd_straggler_rule {
	const char *name, *about;
	/* Whom to relieve; NULL: nobody. */
	const struct hd_straggler_worker *(*choose)(const struct hd_straggler *s,
		const struct hd_straggler_now *now, struct hd_straggler_action *action);
};
extern const struct hd_straggler_rule hd_straggler_rules[];              /* ends with name == NULL */

struct hd_straggler {
	const struct hd_straggler_rule *rule;     /* NULL: off */
	struct hd_straggler_worker worker[HD_STRAGGLER_WORKERS]; uint32_t n;     /* by rising ids */
	uint64_t steps, acted;                    /* told of; the step of the last action + 1 */
	/* with `waiting`; the highest id when one was asked for; with `came`: who took its place */
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
