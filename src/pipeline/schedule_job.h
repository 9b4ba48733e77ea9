/* schedule_job.h -- what a job and its machines ask of a schedule, as far as passes and the checker need it.
 *
 * A zeroed job asks for what the schedule's own `update` says and nothing else.
 *
 * 1. Stage s is updated every `every` virtual nodes of the schedule, `delay` updates late: virtual node k of
 *    the run uses version max(0, k / every - delay), forward and backward; update u sums the gradients of
 *    (u-1) every .. u every - 1 and makes version u of version u-1. Version 0: initial weights.
 * 2. At most delay + 1 versions of a stage live on a rank; one more while an eager update is unconfirmed.
 * 3. Tied group g is summed by TIE g on every rank that holds one of its stages, after their RED.
 * 4. NORM and VAL are done by every rank that holds a stage.
 *
 * Pointers are borrowed; NULL where nothing is asked. Pure. */
#ifndef HD_PIPELINE_SCHEDULE_JOB_H
#define HD_PIPELINE_SCHEDULE_JOB_H

#include "cost/stage_costs.h"
#include "pipeline/schedule.h"

struct hd_stage_rule { uint32_t every, delay; };          /* every 0: all virtual nodes of a step */

/* Nodes of a graph in cut order and the stages they are given to: those of stage s are node[first[s]] ..
 * node[first[s+1] - 1]. */
struct hd_layers {
	const char *const *name; uint32_t nnodes;
	const uint32_t *first, *node; uint32_t nstages;
	const uint32_t (*edge)[2]; uint32_t nedges;       /* from, to */
};

struct hd_vn_list { const uint32_t *at; uint32_t len; };

struct hd_schedule_job {
	const struct hd_stage_rule *rule; /* [stages] */
	bool clips;                       /* gradients: NORM, or VAL after eager updates */
	bool eager;                       /* for passes: STEP! and VAL instead of NORM and STEP */
	/* the lists are complete: transfers and updates that are missing are errors */
	bool whole;
	const struct hd_tied_group *tied; uint32_t ntied; /* stage_costs.h; group g is TIE g */
	const uint16_t *buckets;          /* [stages] of its gradient; NULL: one each */
	uint32_t slots;                   /* receive buffers of a channel, counted from 1; 0: not named */
	const struct hd_stage_costs *costs;
	const int64_t *memory;            /* [ranks, or tensor groups] bytes of its device; 0: no limit */
	const struct hd_layers *layers;
	/* [ranks] tensor group of each: groups count up from 0, members stand together */
	const uint32_t *tensor;
	/* the job's virtual nodes of each pipeline, V in all */
	const struct hd_vn_list *pipeline; uint32_t npipelines, nvns;
};

/* The rule of stages as the schedule's `update` gives it, rule[stages]; with `job` and its rule, a copy of
 * that, every settled. HD_E_BADPLAN: `every` of a stage does not divide m. */
HD_MUST_USE enum hd_err hd_stage_rules(struct hd_stage_rule *rule, const struct hd_schedule *schedule,
	const struct hd_schedule_job *job,
	struct hd_diag *diag);

static inline uint32_t hd_buckets_of(const struct hd_schedule_job *job, uint32_t stage)
{
	return job && job->buckets && job->buckets[stage] ? job->buckets[stage] : 1;
}

/* Division that rounds down, also for virtual nodes of earlier steps. */
static inline int32_t hd_block_of(int32_t vn, uint32_t every)
{
	int32_t e = (int32_t)every;
	return vn >= 0 ? vn / e : -((-vn + e - 1) / e);
}

#endif
