/* planning.h -- the plan of the job that a verb names: `plan JOB` prints it, `simulate JOB` simulates it in other ways.
 *
 * Apart from plan_job.h, since what knows schedules cannot know devices that run: rooms share names. */
#ifndef HD_CMD_PLANNING_H
#define HD_CMD_PLANNING_H

#include "plan/job_plan.h"
#include "cmd/plan_job.h"

struct hd_planning {
	struct hd_plan_input in;
	struct hd_job_plan_ask ask;
	struct hd_job_plan plan;
};

/* By the job's table `parallel` and the options of the verb. Lies in the arena of the call. */
HD_MUST_USE enum hd_err hd_cmd_planning(struct hd_cmd *cmd, struct hd_planning **planning);

#endif
