/* job_plan.h -- the plan of a job, whichever planner makes it, and what it is expected to take: `heddle plan
 * JOB`.
 *
 * A planner finds a schedule, its stages and the devices of its ranks; here every plan is simulated by the
 * same full simulator (sim_plan.h), so that plans of different planners can be compared, and printed in
 * words.
 *
 * 1. Planners are rows of hd_job_planners. An option that a planner does not know is refused, not ignored.
 * 2. A plan whose fullest rank needs more than its device has is HD_E_INVAL, with rank, bytes and what would
 *    need less.
 * 3. Equal asks give equal bytes on every machine.
 * 4. A plan in which every rank has the whole model is `whole`: a run can take it up (plan.h). `counts` says
 *    how many virtual nodes each rank has, in ascending ranges; `device` says which device a rank is.
 *
 * 5. Delayed updates let steps of one straight pipeline overlap (pipeline/window.h). Then the plan is a step
 *    of a run that goes on (sim_window.h): `overlap`, and `schedule` has the lists of one step that is
 *    drained, as a plan file with the line overlap does. What is drained is planned as without delays.
 *
 * Not here: how the profile was measured, what to print. Everything lies in the arena; the ask is borrowed.
 * Pure. */
#ifndef HD_PLANNER_JOB_PLAN_H
#define HD_PLANNER_JOB_PLAN_H

#include "pipeline/sim_plan.h"
#include "planner/partition.h"

/* 0 and NULL: the planner chooses. */
struct hd_job_plan_ask {
	const struct hd_cut_sums *sums;
	const struct hd_cluster *cluster;
	uint32_t vns, tensor_shards;              /* V and T of the job */
	/* and what lies between split products in T parts of the sequence */
	bool sequence;
	/* norms over the global batch: how often workers meet in a step, and what all virtual nodes bring to
	 * all meetings together */
	uint32_t meetings; uint64_t meeting_bytes;
	/* what the one of n devices with so many virtual nodes each, ascending, that sends the most sends the
	 * others at all meetings; NULL: what it brings, to each */
	enum hd_err (*sent)(void *user, const uint32_t *count, uint32_t n, uint64_t *most,
		struct hd_diag *diag);
	void *user;
	uint32_t stages, chunks, tensor, replicas;
	const char *schedule;
	enum hd_update_mode update;               /* of the job, whatever the order */
	/* rule 5: why steps of the job cannot overlap, whatever the plan; NULL: they may */
	const char *drains;
	enum hd_job_recompute { HD_RECOMPUTES_IF_NEEDED, HD_RECOMPUTES_NEVER,
		HD_RECOMPUTES_ALWAYS } recompute;
	enum hd_part_variant variant;             /* of pipedream; HD_NPART_VARIANTS: steady.h instead */
	bool deep;                                /* two stages at least (parallel.mode pipeline) */
	bool clips;
	bool spans;                               /* of the simulation, to be drawn */
};
enum { HD_JOB_PLAN_DEEPEST = 16 };                /* depths that are tried for `deep`, where none is given */

struct hd_job_plan {
	const char *planner;
	/* compute alone; complete: transfers, sums and updates too */
	struct hd_schedule skeleton, schedule;
	struct hd_stage_costs costs;              /* of a rank's share of a stage */
	uint32_t nstages, *first;                 /* [nstages] first cut of each */
	uint32_t tensor;                          /* devices that share what a rank runs; 0: 1 */
	bool *recompute;                          /* [nstages], or NULL: as the skeleton says */
	uint32_t *device;                         /* [ranks] */
	bool whole; uint32_t *counts;             /* rule 4: [ranks] */
	bool overlap;                             /* rule 5 */
	struct hd_sim_plan sim;
	struct hd_text why;                       /* sentences, a line each */
};

struct hd_job_planner {
	const char *name, *about;
	enum hd_err (*make)(struct hd_job_plan *plan, const struct hd_job_plan_ask *ask,
		struct hd_arena *arena, struct hd_diag *diag);
	/* tried too where devices differ, and taken if it is faster; NULL: nothing is */
	enum hd_err (*also)(struct hd_job_plan *plan, const struct hd_job_plan_ask *ask,
		struct hd_arena *arena, struct hd_diag *diag);
};
enum { HD_JOB_PLANNERS = 8 };                     /* most rows */
extern const struct hd_job_planner hd_job_planners[];      /* ends with name == NULL */

/* HD_E_INVAL, with all names, if there is none of this one. */
HD_MUST_USE enum hd_err hd_job_planner_find(const struct hd_job_planner **planner, const char *name,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_job_plan_make(struct hd_job_plan *plan, const struct hd_job_planner *planner,
	const struct hd_job_plan_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag);

/* May the planner auto's plan for equal devices have a step as short as that? False: surely not. */
HD_MUST_USE enum hd_err hd_job_plan_may(bool *may, const struct hd_job_plan_ask *ask, double step_s,
	struct hd_diag *diag);

/* The same work on the same devices in the same order, whatever its planner and name. */
bool hd_job_plan_same(const struct hd_job_plan *a, const struct hd_job_plan *b);

/* A schedule file with remarks: planner, stages, devices of the ranks. `heddle plan check` takes it. */
void hd_job_plan_print(const struct hd_job_plan *plan, const struct hd_job_plan_ask *ask,
	struct hd_text *text);

static inline double hd_job_plan_step_s(const struct hd_job_plan *plan) { return hd_sim_plan_s(&plan->sim,
	plan->sim.makespan); }

#endif
