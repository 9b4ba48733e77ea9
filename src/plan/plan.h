/* plan.h -- where and when a job computes: a value without pointers to code.
 *
 * Made by pure functions (below, planner, pipeline), accepted or refused by the checker (check.h), run by
 * engine, costed by the simulator (pipeline/simulate.h), printed and parsed back byte for byte.
 *
 * 1. Ranks are numbered 0..nranks-1; a rank is one device of one worker, or `tensor` devices of one worker
 *    that run the shards of its stages together (graph/tensor.h). `list[r]`
 *    is what rank r does in one step, in order.
 * 2. `map[v]` is the rank that runs virtual node v; the virtual nodes of all ranks
 *    partition 0..V-1.
 * 3. Each chunk of the flat gradient has one owner rank, which joins its roots.
 * 4. A plan fixes no bit of the result: any plan that the checker accepts gives
 *    the bits of the one-device plan.
 * 5. The devices that share a stage's shards may lie on several workers, in n `groups` of `tensor` devices
 *    (graph/spread.h). Each group is a rank, and what it runs of stage s a stage of the plan: group k of rank
 *    r is rank r n + k and runs s n + k; `first` says the same of all. Their lists are one list, group k
 *    of a rank sends to group k of another (hd_plan_spread(), pipeline/staged.h).
 *
 * Ownership: arrays lie in the arena of the maker. Pure. */
#ifndef HD_PLAN_PLAN_H
#define HD_PLAN_PLAN_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/text.h"
#include "plan/ins.h"
#include "plan/tree.h"
#include "plan/xfer.h"

enum { HD_MAX_RANKS = 4096, HD_MAX_INS = 1 << 24 };

struct hd_ilist { struct hd_ins *at; uint32_t len, cap; };

struct hd_plan {
	uint32_t number;                  /* order of adoption within a run */
	uint32_t nranks, nstages, nvns;
	uint16_t *worker;                 /* [nranks] whose device it is */
	uint32_t *map;                    /* [nvns] rank; of several stages the one that runs stage 0 */
	/* [nstages] forward node of the graph that a stage begins with (graph/stages.h); NULL: one stage, in
	 * the waves of a data-parallel plan */
	uint32_t *first;
	uint32_t tensor;                  /* devices of a rank, where stages have a beginning; 0: one */
	/* rule 5: ranks that run the shards of a stage together, each a substage; 0: one */
	uint32_t groups;
	/* ranks begin a step while they end the one before, by lists of their own (pipeline/window.h) */
	bool overlap;
	uint32_t nchunks, *owner;         /* [nchunks] rank */
	struct hd_ilist *list;            /* [nranks] */
	struct hd_xfers xfers;
	const char *cause;                /* why it was adopted, one line */
};

static inline uint32_t hd_plan_width(const struct hd_plan *plan) { return plan->tensor ? plan->tensor : 1; }
static inline uint32_t hd_plan_groups(const struct hd_plan *plan) { return plan->groups ? plan->groups : 1; }
static inline uint32_t hd_plan_devices(const struct hd_plan *plan)
{
	return plan->nranks * hd_plan_width(plan);
}

/* What the job fixes that a plan must respect. */
struct hd_plan_job {
	uint32_t nvns, nchunks, nstages;
	uint32_t nshards;                 /* of the model (model.shards); 0: not asked */
	/* norms over the global batch: all virtual nodes advance together (FL, BL) */
	bool lockstep;
	/* virtual nodes whose activations a rank can hold at once; 0: one */
	uint32_t wave;
};

/* Stages of a plan whose ranks each hold the whole model. */
enum { HD_WHOLE_MODEL = 1 };
/* The job of such a plan; other fields may be set afterwards. No other place says how many stages there
 * are. */
static inline struct hd_plan_job hd_plan_job_whole(uint32_t nvns, uint32_t nchunks)
{
	return (struct hd_plan_job){ .nvns = nvns, .nchunks = nchunks, .nstages = HD_WHOLE_MODEL };
}

/* The data-parallel plan: rank r runs a contiguous range of virtual nodes in waves of at most job->wave
 * (all LD of a wave, all F, all B), then RED NORM STEP; in lockstep all LD, then FL BL.
 * counts[r] virtual nodes; NULL: as even as possible, larger counts first. A rank with count 0 still
 * takes part in RED and STEP. */
HD_MUST_USE enum hd_err hd_plan_data(struct hd_plan *plan, const struct hd_plan_job *job, uint32_t nranks,
	const uint32_t *counts, struct hd_arena *arena, struct hd_diag *diag);
/* The same for any map (map[v] = rank), contiguous or not. */
HD_MUST_USE enum hd_err hd_plan_of_map(struct hd_plan *plan, const struct hd_plan_job *job, uint32_t nranks,
	const uint32_t *map, struct hd_arena *arena, struct hd_diag *diag);

/* of its text form without number and cause */
struct hd_hash hd_plan_digest(const struct hd_plan *plan);
enum hd_err hd_plan_print(const struct hd_plan *plan, struct hd_text *text);
/* Its line in there. */
void hd_xfer_print(const struct hd_xfer *xfer, struct hd_text *text);
HD_MUST_USE enum hd_err hd_plan_parse(struct hd_plan *plan, const char *text, size_t len, const char *file,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
