/* planning.h -- the plan of the job that a verb names: `plan JOB` prints it (or those of other jobs,
 * --suggest-job), `simulate JOB` simulates it in other ways.
 *
 * Apart from job.h, since what knows schedules cannot know devices that run: rooms share names. */
#ifndef HD_CMD_PLAN_PLANNING_H
#define HD_CMD_PLAN_PLANNING_H

#include "planner/suggest.h"
#include "cmd/plan/job.h"

struct hd_planning {
	struct hd_plan_input in;
	const struct hd_job_planner *planner;
	struct hd_job_plan_ask ask;
	struct hd_job_plan plan;
};

/* By the job's table `parallel` and the options of the verb. Lies in the arena of the call. _read: all but
 * the plan. */
HD_MUST_USE enum hd_err hd_cmd_planning_read(struct hd_cmd *cmd, struct hd_planning **planning);
HD_MUST_USE enum hd_err hd_cmd_planning(struct hd_cmd *cmd, struct hd_planning **planning);
/* --suggest-job: prints other sizes of virtual nodes. */
HD_MUST_USE enum hd_err hd_cmd_suggest_job(struct hd_cmd *cmd, struct hd_planning *planning);

#endif
