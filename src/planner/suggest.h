/* suggest.h -- other sizes of virtual nodes for a job's batch, each with the plan that it would get.
 *
 * How large a virtual node is belongs to the job: it changes bits. So this changes nothing; `heddle plan JOB
 * --suggest-job` prints it, and a person decides. Large virtual nodes fill a device, small ones fill a
 * pipeline and are shared out more evenly.
 *
 * 1. Candidates: sizes b = 1, 2, 4, ... and the job's own. V = ceil(B / b), and b then is ceil(B / V), as a
 *    job makes it; each V once, in ascending order of sizes. The last virtual node may be shorter; none is
 *    empty.
 * 2. Each is planned by the given planner, under the same constraints, on its own profile. Where no plan
 *    fits, the reason is kept.
 * 3. Best: the most samples a second; ties: the smaller virtual nodes.
 *
 * Equal arguments give equal answers. What is handed out lies in the arena; profiles and plans go through
 * one of their own. Pure. */
#ifndef HD_PLANNER_SUGGEST_H
#define HD_PLANNER_SUGGEST_H

#include "planner/job_plan.h"

enum { HD_SUGGEST_MOST = 34 };

struct hd_suggest_ask {
	const struct hd_job_planner *planner;
	struct hd_job_plan_ask plan;              /* vns: the job's; sums: not read */
	uint64_t batch;
	struct hd_cuts_how cuts;
	/* The profile for virtual nodes of `rows`, into `arena`. */
	enum hd_err (*profile)(void *user, uint64_t rows, struct hd_profile *profile, struct hd_arena *arena,
		struct hd_diag *diag);
	void *user;
};

struct hd_suggestion {
	uint64_t vn_size;
	uint32_t vns;
	bool own, best;
	bool fits;
	double step_s, samples_s;                 /* 0: it does not fit */
	int64_t peak;                             /* bytes of the fullest rank */
	const char *what;                         /* the plan in words, or why there is none */
};

/* HD_E_INVAL: no candidate has a plan; why the job's own has none. Profiles that fail end it. */
HD_MUST_USE enum hd_err hd_suggest(struct hd_suggestion out[HD_SUGGEST_MOST], uint32_t *n,
	const struct hd_suggest_ask *ask, struct hd_arena *arena,
	struct hd_diag *diag);

#endif
