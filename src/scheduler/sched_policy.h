/* sched_policy.h -- which devices a job should get for which part of the time: policies as rows of one table.
 *
 * The rounds and the simulator open a policy once and ask it again whenever its shares are stale; `heddle
 * sched solve` asks once.
 *
 *	err = hd_policy_parse(&setting, "max_min_fairness_perf", &diag);      a name of ours or a published
 *	                                                                      one
 *	err = hd_policy_create(&policy, &setting, &diag);
 *	err = hd_policy_allocate(policy, &state, &arena, &shares, &diag);     again and again
 *	hd_policy_destroy(policy);
 *
 * 1. The answer is a list of shapes with a share of wall time each. A shape needs no more devices of a type
 *    than there are (but in fidelity `gavel`, rule 3), and devices of several types only if its job may mix
 *    them. The shapes of a job sum to 1 at most, and what the shapes need of a type to its devices at most:
 *    checked after every call of every build, to 1e-9 (HD_E_BUG); what the tolerance of a solver left above
 *    (1e-7 at most) is taken off before. Shares below 1e-9 are 0 and shapes with share 0 are not listed;
 *    code that fills idle devices looks at the state.
 * 2. Order of shapes: single jobs by job, then by needs; then pairs by (a, b), then by type.
 * 3. Fidelity `gavel` does what the published code does, its faults included; `exact` (the default) keeps a
 *    promise that is unique: the objective, then the second promise of the policy, then fewest and cheapest
 *    devices, then least change. What still ties is given to the lower job id and the first type by name;
 *    from 3,000 single shapes on equal jobs get equal shares instead, and least change counts shapes. Equal
 *    states give equal bytes, whatever order the jobs of the file had.
 * 4. Blocked and finished jobs (sched_state.h, rule 3) get nothing and count nowhere.
 * 5. A solver that gives up (limit, no certificate) does not empty the cluster: shares of the last call are
 *    kept where they still fit, new jobs get the isolated share, `kept` says so.
 * 6. Memory of a policy is keyed by job id, lives in the policy, and a copy of it cannot be had: a replay
 *    starts at the first call.
 *
 * Ownership: the policy is on the heap, shares lie in the arena of the call. Pure but for the seconds limit
 * of the solver; one thread at a time. */
#ifndef HD_SCHEDULER_SCHED_POLICY_H
#define HD_SCHEDULER_SCHED_POLICY_H

#include <stdatomic.h>

#include "base/text.h"
#include "scheduler/sched_state.h"

enum { HD_SHAPE_NEEDS = 4 };                      /* types that one job spreads over at most */

/* A way to run: one job or two on the same devices, what it needs, how fast its members go. */
struct hd_shape {
	uint8_t nmembers, nneeds;
	uint32_t member[2];                       /* indices of jobs, ascending */
	/* steps/s of each member while it runs so; never scaled by a variant */
	double rate[2];
	struct hd_need { uint32_t type, n; } need[HD_SHAPE_NEEDS];        /* types ascending */
};

struct hd_shares {
	uint32_t nshapes;
	const struct hd_shape *shape;
	const double *x;                          /* [nshapes], rule 1 */
	double objective;                         /* of the policy, in its own measure; NaN: it has none */
	const double *e;                          /* [njobs] steps/s that the shares come to */
	/* [njobs] e over proportional throughput; 0 of absent jobs */
	const double *z;
	/* Prices of the last program solved for the promise; NULL where a policy solves none. */
	const double *y;                          /* [ntypes] of one more device, >= 0 */
	const double *u;                          /* [njobs] of more time of the job's own, >= 0 */
	/* [njobs] of the job's promise, >= 0: 0 if it is not what holds the objective down */
	const double *l;
	/* [njobs] steps/s missing for the deadline; NULL: policy knows none */
	const double *short_by;
	bool work_conserving;                     /* idle devices may be filled with waiting jobs */
	bool kept;                                /* rule 5 */
	const char *kept_why;                     /* of kept shares: what the solver said */
	bool cut;                                 /* turns ran out while something might still have helped */
	bool degenerate;                          /* the prices are some of several */
	uint32_t nlps, iterations;
	double gap;                               /* the worst certificate: relative residual or gap */
};

/*        id       name                                                                          */
#define HD_VARIANTS(X)                                                                            \
	X(HETERO, "hetero")               /* uses each job's speed on each type */                \
	X(PLAIN,  "plain")                /* as if all types were equal */                        \
	X(PACKED, "packed")               /* speeds, and pairs on shared devices */               \
	X(KINDS,  "kinds")                /* packed, with columns by kind of job, for many jobs of few kinds */

enum hd_variant {
#define X(id, name) HD_VARIANT_##id,
	HD_VARIANTS(X)
#undef X
	HD_NVARIANTS
};

enum hd_fidelity { HD_FIDELITY_EXACT, HD_FIDELITY_GAVEL };

struct hd_sched_policy;

/* 0 and NULL everywhere is the standard. */
struct hd_policy_setting {
	const struct hd_sched_policy *policy;
	enum hd_variant variant;
	enum hd_fidelity fidelity;
	/* of plain variants of ftf and makespan; NULL: each job's fastest. Borrowed */
	const char *reference_type;
	uint32_t seed;
	/* above 1: jobs and devices are dealt into so many problems (POP); 1: never, 0: where the policy
	 * says */
	uint32_t npops;
	double pack_threshold;                    /* pairs worth less are left out; 0: 1.0 */
	/* cost: gain wanted on a step, floor of the isolated share; 0: 0.25. Below 0: none */
	double beta, phi;
	/* cost: jobs that can be over in so much of the time to their deadline wait for cheaper hours; 0:
	 * none */
	double patience;
	/* heddle: what an hour less until one job ends is worth; 0: prices decide between equals alone */
	double delay_usd_h;
	double alpha;                             /* allox: how many of the oldest jobs are looked at; 0: 1 */
	/* sum, cost: the published objective, in steps, instead of ours */
	bool published;
	bool deadlines;                           /* cost: keep them */
	/* above 0: the deadline of a job is so many times its work on `reference_type` */
	double slo_factor;
	bool backfill, preempt;                   /* fifo, sjf */
	/* of one solve, beyond which it is given up; 0: 1,000,000 */
	uint32_t lp_iterations;
	double lp_gap;                            /* relative, of a certificate that is believed; 0: 1e-7 */
	/* borrowed; NULL: none. Once any thread sets it, an answer at work ends soon, as one that gave up
	 * (rule 5): programs of 10 s each at most are looked between */
	const atomic_bool *stop;
	/* hierarchy: 1 + enum hd_entity_kind for all entities; 0: as in the state */
	int entity_kind;
};

enum {
	HD_POLICY_LP = 1,                         /* needs the solver of linear programs */
	/* shares are 0 or 1: whole devices until it says otherwise */
	HD_POLICY_WHOLE = 2,
	HD_POLICY_PUBLISHED = 4,                  /* has a fidelity gavel of its own */
	/* answers with device counts: a job's `scale` is its demand, no must */
	HD_POLICY_ELASTIC = 8,
	/* how objectives of parts join to one; neither: their sum */
	HD_POLICY_LEAST = 32, HD_POLICY_LARGEST = 64,
	/* saves money, which moves waste: rounds hold on to devices longer */
	HD_POLICY_STEADY = 128,
	/* order of arrival: a job without share is not to be started on spare devices */
	HD_POLICY_QUEUE = 16,
};

struct hd_policy;

struct hd_sched_policy {
	const char *name, *about;
	const char *measure;                      /* what the objective is, with its unit */
	uint32_t powers;                          /* HD_POLICY_* */
	uint32_t variants;                        /* bit 1 << enum hd_variant of each that it has */
	size_t memory_size;                       /* of what it keeps between calls, zeroed before init */
	/* Once, after the setting is checked. */
	HD_MUST_USE enum hd_err (*init)(struct hd_policy *policy, struct hd_diag *diag);
	/* Fills in shapes, x, objective, prices, work_conserving; the caller fills e and z, sorts and
	 * checks. */
	HD_MUST_USE enum hd_err (*allocate)(struct hd_policy *policy, const struct hd_sched_state *state,
		struct hd_arena *arena, struct hd_shares *out,
		struct hd_diag *diag);
	/* Frees what init and allocate took, also half of it. */
	void (*finish)(struct hd_policy *policy);
};
extern const struct hd_sched_policy hd_sched_policies[];         /* ends with name == NULL */

/* "las", "las-plain", "makespan-packed", "pop:4:las", or a published name ("finish_time_fairness_perf",
 * "..._SLOs_slo=3x_v100_time"). HD_E_INVAL: unknown (with a suggestion), or not in this build. */
HD_MUST_USE enum hd_err hd_policy_parse(struct hd_policy_setting *setting, const char *name,
	struct hd_diag *diag);
/* Every published name, for lists; NULL after the last. */
const char *hd_policy_published(uint32_t i);

HD_MUST_USE enum hd_err hd_policy_create(struct hd_policy **policy, const struct hd_policy_setting *setting,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_policy_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena,
	struct hd_shares *shares, struct hd_diag *diag);
const struct hd_policy_setting *hd_policy_setting(const struct hd_policy *policy);
void hd_policy_destroy(struct hd_policy *policy);

/* whether this build can solve linear programs */
bool hd_policy_has_lp(void);

#endif
