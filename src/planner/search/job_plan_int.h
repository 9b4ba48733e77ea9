/* job_plan_int.h -- what the planners of a job share; private to them.
 *
 * A maker fills in skeleton, nstages, first, device and why, recompute where stages compute again and the
 * skeleton does not say so, for rule 4 of job_plan.h whole and counts, and costs where they are not those of
 * the ranges of cuts; the rest is common to all. `planner` is set before. */
#ifndef HD_PLANNER_SEARCH_JOB_PLAN_INT_H
#define HD_PLANNER_SEARCH_JOB_PLAN_INT_H

#include "planner/job_plan.h"
#include "planner/planner.h"

typedef enum hd_err hd_job_plan_maker(struct hd_job_plan *plan, const struct hd_job_plan_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag);

/* Refuses the first wish that is given: "the planner NAME decides the KEY itself". */
struct hd_job_wish { bool given; const char *key; };
HD_MUST_USE enum hd_err hd_job_plan_refuse(const struct hd_job_plan *plan, const struct hd_job_wish *wish,
	size_t n, struct hd_diag *diag);
/* What the ask says of recomputation, as the automatic planner is asked. */
enum hd_auto_recompute hd_job_plan_recompute(const struct hd_job_plan_ask *ask);
/* Rank r on device r. */
HD_MUST_USE enum hd_err hd_job_plan_in_order(struct hd_job_plan *plan, uint32_t nranks,
	struct hd_arena *arena, struct hd_diag *diag);

/* Rule 5 of job_plan.h: a step of the plan's stages, one a rank, of a run that goes on. */
HD_MUST_USE enum hd_err hd_job_plan_steady(struct hd_sim_plan *sim, const struct hd_job_plan *plan,
	const struct hd_job_plan_ask *ask, struct hd_arena *arena, struct hd_diag *diag);
/* The best plan whose steps overlap. HD_E_INVAL: there is none, and why. job_plan_overlap.c */
hd_job_plan_maker hd_job_plan_overlap;

hd_job_plan_maker hd_job_plan_data;                                          /* job_plan_data.c */
hd_job_plan_maker hd_job_plan_pipedream;                                     /* job_plan_stages.c */
hd_job_plan_maker hd_job_plan_auto, hd_job_plan_2bw, hd_job_plan_ptdp;     /* job_plan_auto.c */

#endif
