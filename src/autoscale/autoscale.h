/* autoscale.h -- how many workers a job should have, found by trying, with every trial paid for.
 *
 * A policy gets the step time of each size that was used and proposes the next size. The runtime and the
 * simulator (autoscale_sim.h) drive it alike. Policies are rows of hd_scale_policies.
 *
 * 1. The first step after a change of size is no sample.
 * 2. A proposal is a size within [min, max] and the sentence why, with its numbers; the same size means:
 *    stay.
 * 3. While joiners are awaited, nothing is proposed.
 * 4. A policy sees its arguments and nothing else: no clock, no prices but those of the setting. Equal calls
 *    give equal answers on every machine.
 *
 * The objective J, what is to be small:
 *
 *	time        what is left to run, in seconds
 *	cost        what that costs, all workers together
 *	utility     cost less what the time of the end is worth (utility.h)
 *	deadline    cost, if the end is in time; sizes that are too late are worse than all that are not
 *	efficiency  no number: the largest size whose last step up gained more than theta of what it would
 *	have, scaled ideally
 *
 * Memory: all of a policy's lies in struct hd_scale. Pure. */
#ifndef HD_AUTOSCALE_AUTOSCALE_H
#define HD_AUTOSCALE_AUTOSCALE_H

#include "base/text.h"
#include "autoscale/utility.h"

enum { HD_SCALE_MAX = 1024, HD_SCALE_WHY = 320, HD_SCALE_WINDOW = 32 };

/*        id          name                                      */
#define HD_OBJECTIVES(X)                                          \
	X(TIME,       "time")                                     \
	X(COST,       "cost")                                     \
	X(UTILITY,    "utility")                                  \
	X(DEADLINE,   "deadline")                                 \
	X(EFFICIENCY, "efficiency")

enum hd_objective {
#define X(id, name) HD_OBJECTIVE_##id,
	HD_OBJECTIVES(X)
#undef X
	HD_NOBJECTIVES
};

struct hd_scale_setting {
	enum hd_objective objective;
	uint32_t min, max;
	uint32_t every, step, passes, stay;       /* of ae-2020; 0: 50, 4, 3, 100 */
	double theta;                             /* of efficiency; 0: 0.1 */
	double price_usd_h;                       /* of one worker; 0: 1 */
	double deadline_s;                        /* from the start of the job */
	const struct hd_utility *utility;         /* borrowed; ae-2020 judges by it if it is there */
	/* curve: [max + 1] the solver's step time without what is measured; borrowed */
	const int64_t *compute_ps;
	/* what a joiner computes nothing for; what a change costs the members */
	double boot_s, stall_s;
};

/* steps left; joiners awaited */
struct hd_scale_now { uint64_t left; double elapsed_s; uint32_t size; bool awaits; };

struct hd_scale_answer { uint32_t size; char why[HD_SCALE_WHY]; };

/* of one size: samples, mean, sum of squares about it */
struct hd_scale_known { uint64_t n; double mean_s, m2; };

struct hd_scale_policy;
struct hd_scale {
	const struct hd_scale_policy *policy;
	struct hd_scale_setting set;
	struct hd_scale_known known[HD_SCALE_MAX + 1];
	uint32_t last_size, since;                /* of the last step; steps since the last change of size */
	bool settled;
	uint32_t settled_size, nwindow, nslice;
	/* the last slices at it, the mean of a step in each; a slice is a step, or as many as last 10 ms */
	double window_s[HD_SCALE_WINDOW];
	double slice_s;                           /* of the slice begun, of nslice steps */
	double looked;                            /* J that looks around have cost */
	struct hd_utility utility;
};

struct hd_scale_policy {
	const char *name, *about;
	/* After every step but the first of a size; the sample is in known[] already. Never changes the
	 * size by itself. */
	void (*on_sample)(struct hd_scale *scale, uint32_t size, double step_s);
	/* Before a step, never while joiners are awaited. Fills in the answer; answer->size is the size
	 * now. */
	void (*propose)(struct hd_scale *scale, const struct hd_scale_now *now,
		struct hd_scale_answer *answer);
	/* J of the rest at this size, by what the policy knows; a NaN where it knows nothing. */
	double (*cost)(const struct hd_scale *scale, const struct hd_scale_now *now, uint32_t size);
};
extern const struct hd_scale_policy hd_scale_policies[];         /* ends with name == NULL */

/* HD_E_INVAL: no such policy, sizes, an objective without what it needs. */
HD_MUST_USE enum hd_err hd_scale_init(struct hd_scale *scale, const char *policy,
	const struct hd_scale_setting *setting, struct hd_diag *diag);
void hd_scale_sample(struct hd_scale *scale, uint32_t size, double step_s);       /* every step; above 0 */
void hd_scale_propose(struct hd_scale *scale, const struct hd_scale_now *now, struct hd_scale_answer *answer);
/* Devices or prices changed: settled decisions are open again; reads compute_ps and prices again. */
void hd_scale_reopen(struct hd_scale *scale, const struct hd_scale_setting *setting);

#endif
