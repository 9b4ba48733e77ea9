#include "cmd/demo/one_run.h"

#include <stdio.h>
#include <string.h>

#include "run/kernels.h"
#include "run/report.h"
#include "cmd/session.h"

enum hd_err demo_run(struct hd_cmd *cmd, const char *yaml, const struct hd_job_set *set, uint32_t nsets,
	const struct hd_run_options *given, struct demo_end *end)
{
	const char *parent = hd_args_text(&cmd->args, HD_OPT_DIR, ".");
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	struct hd_run_options options = *given;
	int64_t began_ns = hd_clock_now_ns(&cmd->clock);
	struct hd_rundir dir = { 0 };
	struct hd_run *run = NULL;
	struct hd_ui ui;

	if (!job)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the demo");
	enum hd_err err = hd_job_parse(job, "demo.yaml", yaml, strlen(yaml), set, nsets, &cmd->arena,
		&cmd->diag, NULL);
	if (!err)
		err = hd_kernels_settle(job, &cmd->fs, NULL, &cmd->diag);
	if (err)
		return err;
	options.worker.kernels = hd_kernels_of(job);
	options.stop = hd_session_stop;
	hd_ui_init(&ui, cmd);
	options.watch = hd_ui_watch(&ui);
	err = hd_rundir_create(&dir, &cmd->fs, &cmd->clock, parent, NULL, hd_job_text(job, HD_JOB_NAME), yaml,
		strlen(yaml), &cmd->diag);
	if (!err)
		err = hd_job_files_put(&dir, job, &cmd->arena, &cmd->diag);
	if (!err)
		err = hd_run_create(&run, job, &cmd->fs, &cmd->clock, &dir, &options, &cmd->diag);
	if (!err)
		err = hd_run_train(run, &cmd->diag);
	hd_ui_end(&ui);
	if (!err) {
		hd_hash_hex(hd_worker_digest(hd_run_worker(run)), end->hex);
		end->has_accuracy = hd_run_best(run, &end->accuracy);
		end->loss_first = ui.first_loss;
		end->loss_last = ui.last_loss;
		end->steps = hd_worker_at(hd_run_worker(run));
		snprintf(end->dir, sizeof end->dir, "%s", dir.path);
		err = hd_report_write(&dir, &cmd->diag);
	}
	end->seconds = (double)(hd_clock_now_ns(&cmd->clock) - began_ns) * 1e-9;
	hd_run_destroy(run);
	hd_rundir_close(&dir);
	return err;
}
