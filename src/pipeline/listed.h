/* listed.h -- the pipelines of a plan that a user wrote, for as many pipelines as there are.
 *
 * Over workers the number of pipelines changes while a run goes on. A plan file has lists for its own number
 * d; for fewer they are shared out.
 *
 * 1. Pipeline k of the file has ranks k p .. k p + p - 1, of which the same ones run the same stages, and
 *    neighbouring virtual nodes, in any shares. Each rank has a stage, stage 0 is on the first one.
 * 2. For d pipelines with these shares a plan is the file's lists as they stand.
 * 3. For others, the list of a rank is those of the same rank in each of the file's pipelines, one after
 *    another, of the virtual nodes that its pipeline has, without the others. So they keep the file's order,
 *    and no rank has more under way at once than in the file. Transfers, versions and updates are made new
 *    (passes.h).
 * 4. Whatever rank ran a virtual node, no bit of the result depends on it.
 * 5. Stages may have copies: the ranks of a stage are neighbours then, and stages stand in the order of
 *    ranks. There are as many lanes (lanes.h) as the least common multiple of the copies says. They have
 *    neighbouring virtual nodes, as many each, larger shares first; lane l of L goes through copy
 *    floor(l c / L) of a stage with c. Such a file has one pipeline, of ranks of one device: it is never
 *    shared out.
 * 6. A file may have the work of shadows (redundancy.h). `plan` is without it, and so is what follows from
 *    it; `shadowed` are the file's lists.
 *
 * Users: run/stages.c, run/pipes.c. Everything lies in the arena; lists are shared with the plan that was
 * given. Pure. */
#ifndef HD_PIPELINE_LISTED_H
#define HD_PIPELINE_LISTED_H

#include "pipeline/redundancy.h"

struct hd_listed {
	struct hd_plan plan;              /* of ranks that are each one worker's: folded (staged.h) */
	uint32_t p, d, t;                 /* ranks of a pipeline, pipelines, devices of a rank */
	uint32_t most;                    /* stages of the rank that has most */
	uint32_t *place;                  /* [stages] rank of a pipeline that runs each, or its first copy */
	uint32_t *copies, lanes;          /* [stages] rule 5; NULL, 1: none */
	uint32_t *share;                  /* [d] virtual nodes of each pipeline */
	const struct hd_ilist *shadowed;  /* [ranks] rule 6; NULL: it has no shadows */
	enum hd_redundancy mode;          /* of these */
};

/* Of a plan that is proved (hd_plan_check_file()). HD_E_INVAL: it is not as rules 1 and 5 have it. */
HD_MUST_USE enum hd_err hd_listed_of(struct hd_listed *listed, const struct hd_plan *file,
	struct hd_arena *arena, struct hd_diag *diag);
/* Rule 2: are they the file's own? */
bool hd_listed_is_whole(const struct hd_listed *listed, const uint32_t *share, uint32_t d);
/* The proved plan of d pipelines with share[k] virtual nodes each, of ranks as in `listed`. Chunks are owned
 * as hd_plan_staged() deals them. HD_E_BADPLAN: it is not one of this job. */
HD_MUST_USE enum hd_err hd_listed_plan(struct hd_plan *plan, const struct hd_listed *listed,
	const struct hd_plan_job *job, const uint32_t *share, uint32_t d, struct hd_arena *arena,
	struct hd_diag *diag);

#endif
