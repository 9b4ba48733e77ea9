/* job_ask.h -- what a job asks of a planner: its table `parallel` as an ask (job_plan.h).
 *
 * 1. A key that is auto asks for nothing: 0 or NULL, and the planner chooses.
 * 2. Mode tensor without a width asks for the narrowest group that divides the job's shards.
 * 3. Mode pipeline asks for two stages at least, whatever is measured.
 * 4. Norms over the global batch (model.bn global) leave one planner, data: all virtual nodes pass the model
 *    in lockstep. Another one that was named is HD_E_INVAL; where the choice is open, data it is.
 *
 * 5. Why steps of delayed updates cannot overlap, as far as the keys say it.
 *
 * Not here: what is known of a model and of devices (sums, cluster, meetings), what is to be drawn. The ask
 * borrows the job's texts. Pure. */
#ifndef HD_PLANNER_JOB_ASK_H
#define HD_PLANNER_JOB_ASK_H

#include "job/job.h"
#include "planner/job_plan.h"

struct hd_job_plan_ask hd_job_ask(const struct hd_job *job);

/* By name, as `plan --partitioner` has it: a variant of pipedream; any other word is steady.h's, which has
 * HD_NPART_VARIANTS. NULL: what the paper does. */
enum hd_part_variant hd_job_ask_variant(const char *name);

/* named: --planner, or NULL: that of the mode, else of the job. meetings: of the virtual nodes, inside a step
 * of its graph (engine/lockstep.h). */
HD_MUST_USE enum hd_err hd_job_ask_planner(const struct hd_job_planner **planner, const struct hd_job *job,
	uint32_t meetings, const char *named, struct hd_diag *diag);

#endif
