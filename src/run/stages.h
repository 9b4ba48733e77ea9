/* stages.h -- the plan of a run in one process whose job asks for stages (`parallel:` in the job file).
 *
 * What the keys leave open is filled in: one pipeline, 1f1b (interleaved where a device has several chunks),
 * a stage a device and chunk, cuts that balance the stages: by measured times (choose_plan.h), else by the
 * FLOPs. No bit of the result depends on it.
 *
 * 1. ndevices = p d t: d pipelines (`replicas`) of p ranks, each with v chunks of the model (`chunks`); a
 *    pipeline has p v stages (`stages`). A rank is t devices that share the model's shards (`tensor`).
 *    `mode: tensor` without a number takes the most devices that divide both the shards and the devices there
 *    are. Where no key asks for depth, p is 1 with t above 1.
 * 2. Over several workers the same stages are those of every view's pipelines (pipes.h).
 * 3. Where stages have copies (`copies`), a pipeline has a stage for each number, on so many ranks; p are its
 *    ranks, and the virtual nodes of a copy are neighbours (pipeline/lanes.h).
 * 4. Where a plan file says the order (`listed`), over workers and where a run over workers goes on in one
 *    process, it says stages, cuts and places, too: v is what the rank with most stages has.
 *
 * Pure. */
#ifndef HD_RUN_STAGES_H
#define HD_RUN_STAGES_H

#include "pipeline/generate.h"
#include "pipeline/listed.h"
#include "engine/worker.h"

#define HD_STAGES_LISTED "file"           /* what stands for a schedule's name where a plan file says it */

struct hd_run_stages {
	const char *schedule;             /* of a row of hd_schedule_kinds, or HD_STAGES_LISTED */
	uint32_t p, v, d, t;
	uint32_t ncopies, copies[HD_JOB_MAX_STAGES];     /* rule 3; ncopies 0: a stage a device and chunk */
	uint32_t groups;                  /* of a rank's devices, each on a worker (pipes.h); 0: one */
	bool recompute;                   /* all stages keep their input alone */
	bool offload;                     /* those that do not have the rest in a file (engine/offload.h) */
	/* an order of delayed updates: steps overlap (pipeline/window.h), or where those of the job cannot,
	 * each is drained, and its order that of 1f1b */
	bool delayed;
	bool overlap;                     /* those of the job can */
	const char *drains;               /* why they cannot (hd_task_drains()); NULL: not said */
	/* where they were measured (choose_plan.h); NULL: by the FLOPs, as even as can be, as `recompute`
	 * says */
	const uint32_t *first;            /* [stages] nodes of the graph with which stages begin */
	const uint32_t *share;            /* [d] virtual nodes of each pipeline */
	const bool *again;                /* [stages] keeps its input alone */
	const struct hd_listed *listed;   /* rule 4; NULL: a schedule of that name */
	bool shared;                      /* over workers, whose buckets are of these cuts: none is moved */
};

/* `ndevices` 0: not said; `ncores` then bounds how many there are. Both 0: of a view, which may have one
 * stage on one device. HD_E_INVAL: numbers that do not go together, with what would. */
HD_MUST_USE enum hd_err hd_run_stages(struct hd_run_stages *stages, const struct hd_job *job,
	uint32_t ndevices,
	uint32_t ncores, struct hd_diag *diag);

/* Stages of a pipeline. */
static inline uint32_t hd_run_stages_n(const struct hd_run_stages *stages)
{
	return stages->listed ? stages->listed->plan.nstages : stages->ncopies ? stages->ncopies :
		stages->p * stages->v;
}
/* What a generator is asked for, for a pipeline of m virtual nodes (generate.h). */
struct hd_schedule_ask hd_run_stages_ask(const struct hd_run_stages *stages, uint32_t m);

/* What the next step reads as this one makes it has to lie in the last stage (engine/eager.h): that one
 * begins no later than the last one of the job. Moves its cut where that can be. */
struct hd_task;
void hd_run_stages_hold_last(uint32_t *first, uint32_t nstages, const struct hd_task *task);

/* The order of a schedule whose steps are each drained: of delayed updates that of 1f1b; NULL stays. */
const char *hd_run_stages_drained(const char *schedule);
/* The order of work of a pipeline's lists: a row of hd_schedule_kinds. */
static inline const char *hd_run_stages_order(const struct hd_run_stages *stages)
{
	return stages->delayed ? "1f1b" : stages->schedule;
}

/* The checked plan for p d t devices; cause says which, and what part of the time each stage has, of the
 * FLOPs without costs. */
struct hd_run_costs;
HD_MUST_USE enum hd_err hd_run_stages_plan(struct hd_plan *plan, const struct hd_run_stages *stages,
	const struct hd_plan_job *job, const struct hd_task *task, const struct hd_run_costs *costs,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
