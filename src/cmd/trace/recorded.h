/* recorded.h -- the run that a recording is of, by the files of its folder: what a what-if needs that a
 * recording does not say.
 *
 * Ownership: the task is the caller's to destroy; all else lies in the call's arena. */
#ifndef HD_CMD_TRACE_RECORDED_H
#define HD_CMD_TRACE_RECORDED_H

#include "run/costs.h"
#include "cmd/trace/input.h"

struct hd_recorded_run {
	struct hd_job *job;
	struct hd_task *task;
	struct hd_run_costs *costs;       /* NULL: it kept none */
	struct hd_worker_spec worker;     /* devices and threads of each, where it kept costs */
	struct hd_plan plan;              /* the newest that it adopted */
};

/* `wants`: the option that needs it, for messages. HD_E_INVAL: recordings of no run, or of more than one. */
HD_MUST_USE enum hd_err hd_recorded_open(struct hd_recorded_run *run, struct hd_cmd *cmd,
	const struct hd_trace_input *input, const char *wants);
void hd_recorded_close(struct hd_recorded_run *run);          /* takes zeroed ones */

#endif
