#include "cmd/trace/recorded.h"

#include <stdio.h>
#include <string.h>

#include "run/kept_costs.h"
#include "run/kept_plan.h"
#include "cmd/session.h"

/* The recording says which job it is of. */
static enum hd_err is_same(struct hd_cmd *cmd, const struct hd_trace_input *input, const struct hd_task *task,
	const char *dir)
{
	char own[HD_HASH_HEX];

	hd_hash_hex(task->job_hash, own);
	if (!*input->timeline.job || !strcmp(input->timeline.job, own))
		return HD_OK;
	return hd_fail(&cmd->diag, HD_E_INVAL, "the recordings of %s are of another job (%.12s) than its "
		"files (%.12s): leave out those that were copied there", dir, input->timeline.job, own);
}

enum hd_err hd_recorded_open(struct hd_recorded_run *run, struct hd_cmd *cmd,
	const struct hd_trace_input *input, const char *wants)
{
	struct hd_rundir dir = { .fs = &cmd->fs };
	struct hd_diag why = { "" };
	char path[HD_RUN_PATH];

	*run = (struct hd_recorded_run){ .job = hd_arena_take(&cmd->arena, 1, sizeof *run->job) };
	if (!run->job)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the run's job");
	if (!input->folder)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--%s needs the folder of the run, for its job and "
			"plan: heddle trace whatif RUN --%s ...", wants, wants);
	enum hd_err err = hd_session_job_of(cmd, input->folder, run->job, path);
	err = err ? err : hd_task_create(&run->task, run->job, &cmd->fs, &cmd->diag);
	err = err ? err : is_same(cmd, input, run->task, path);
	if (err)
		return err;
	snprintf(dir.path, sizeof dir.path, "%s", path);
	err = hd_kept_costs_get(&run->costs, &run->worker, &dir, run->task, &cmd->arena, &why);
	if (err && err != HD_E_NOTFOUND)
		return hd_fail(&cmd->diag, err, "%s", why.text);
	return hd_plan_read_newest(&run->plan, &cmd->fs, path, &cmd->arena, &cmd->diag);
}

void hd_recorded_close(struct hd_recorded_run *run) { hd_task_destroy(run->task); }
