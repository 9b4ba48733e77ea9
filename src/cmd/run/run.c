#include <string.h>

#include "sys/signal.h"
#include "driver/driver.h"
#include "cmd/session.h"
#include "cmd/run/detach.h"
#include "cmd/run/drive.h"
#include "cmd/run/places.h"

#define RUN_OPTS HD_OPT_STEPS, HD_OPT_WORKERS, HD_OPT_LAUNCH, HD_OPT_PLACES, HD_OPT_LISTEN, HD_OPT_KEY, \
	HD_OPT_DEVICES, HD_OPT_THREADS, HD_OPT_PROFILE, HD_OPT_PLAN, HD_OPT_SET, HD_OPT_EVENTS, \
	HD_OPT_DETACH, HD_OPT_RECORD

/* run and resume differ in where the job and the state come from, and in nothing else. */

static enum hd_err write_template(struct hd_cmd *cmd)
{
	const char *path = cmd->args.text[HD_OPT_NEW];
	struct hd_text text;
	struct hd_stat stat;

	if (!hd_fs_stat(&cmd->fs, path, &stat, NULL))
		return hd_fail(&cmd->diag, HD_E_INVAL, "%s is there already; choose another name", path);
	hd_text_init(&text, &cmd->arena);
	hd_job_template(&text);
	enum hd_err err = hd_file_write_atomic(&cmd->fs, path, text.at, text.len, &cmd->diag);
	if (!err)
		printf("%s\n", path);
	return err;
}

static void show_config(struct hd_cmd *cmd, const struct hd_job *job)
{
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_job_json(job, true, &text);
	printf("%s\n", text.at);
}

/* What says where the devices of one process work: several workers follow the plan of each view. */
static enum hd_err spreads(struct hd_cmd *cmd, const struct hd_job *job)
{
	static const struct { enum hd_opt opt; const char *name; } alone[] = {
		{ HD_OPT_PLAN, "plan" }, { HD_OPT_SPEEDS, "speeds" }, { HD_OPT_REPLAN, "replan" } };

	if (!cmd->args.has[HD_OPT_WORKERS])
		return HD_OK;
	for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
		if (cmd->args.has[alone[i].opt])
			return hd_fail(&cmd->diag, HD_E_INVAL,
				"--%s is for the devices of one process, and --workers asks for several: "
				"leave one of them out", alone[i].name);
	if (cmd->args.has[HD_OPT_NEW_SEMANTICS])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--new-semantics begins another lineage in one process, and --workers asks for "
			"several: leave out --workers until the first checkpoint; workers go on with that, "
			"unless a key that fixes the result was changed");
	return hd_job_spreads(job, &cmd->diag);
}

/* The plan of the job, as the run has it, unless an option names another one. */
static enum hd_err take_options(struct hd_cmd *cmd, struct hd_job *job, struct hd_run_options *options)
{
	const struct hd_job_value *plan = &job->value[HD_JOB_PAR_PLAN];
	enum hd_err err = hd_job_trains(job, &cmd->diag);

	err = err ? err : hd_places_ask(cmd, job);
	err = err ? err : hd_drive_list(cmd, job);
	err = err ? err : spreads(cmd, job);
	err = err ? err : hd_drive_spread(cmd, job, options);
	if (err)
		return err;
	if (!job->value[HD_JOB_NET_LISTEN].is_none && !cmd->args.has[HD_OPT_WORKERS])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"net.listen is %s, but a run in one process takes no workers; give --workers 1 or "
			"more",
			hd_job_text(job, HD_JOB_NET_LISTEN));
	if (cmd->args.has[HD_OPT_STEPS] && !cmd->args.count[HD_OPT_STEPS])
		return hd_fail(&cmd->diag, HD_E_INVAL, "--steps is at least 1");
	options->stop_at = hd_args_count(&cmd->args, HD_OPT_STEPS, 0);
	options->map = cmd->args.has[HD_OPT_PLAN] ? cmd->args.text[HD_OPT_PLAN] :
		plan->is_none || cmd->args.has[HD_OPT_WORKERS] || hd_drive_keeps_lists(job) ? NULL :
		plan->text;
	options->stages = true;
	options->replan = cmd->args.has[HD_OPT_REPLAN];
	if (cmd->args.has[HD_OPT_SPEEDS])
		err = hd_devices_speeds(options, cmd->args.text[HD_OPT_SPEEDS], &cmd->diag);
	if (err)
		return err;
	options->stop = hd_session_stop_run;
	return HD_OK;
}

/* No step is beyond the job's last one. Said with --quiet, too: what was asked for is not done. */
static void warn_far(const struct hd_cmd *cmd, const struct hd_job *job)
{
	const uint64_t stop_at = hd_args_count(&cmd->args, HD_OPT_STEPS, 0);
	const int64_t last = hd_job_int(job, HD_JOB_STEPS);

	if (!job->value[HD_JOB_STEPS].is_none && stop_at > (uint64_t)last)
		fprintf(stderr, "!! --steps %llu is beyond job.steps %lld, where the run ends: --steps stops "
			"sooner, never later; -s job.steps=%llu is a longer job (of a run that has begun: "
			"with --new-semantics)\n", (unsigned long long)stop_at, (long long)last,
			(unsigned long long)stop_at);
}

/* What each of several workers would open, and whether the job takes so many. */
static enum hd_err as_one_of(struct hd_cmd *cmd, struct hd_job *job, uint32_t *n,
	struct hd_run_options *options)
{
	enum hd_err err = hd_drive_workers(cmd, n);

	if (!err)
		err = hd_driver_takes(job, *n, &cmd->diag);
	if (err)
		return err;
	cmd->args.text[HD_OPT_DEVICES] = hd_drive_devices(cmd, *n);
	cmd->args.has[HD_OPT_DEVICES] = true;
	if (!cmd->args.text[HD_OPT_DEVICES])
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the devices of a worker");
	options->shared = true;
	options->stages = false;          /* the plan of all of them is none of one */
	return hd_session_devices(cmd, job, options);
}

/* Everything is checked and built, nothing is written. */
static enum hd_err dry_run(struct hd_cmd *cmd, struct hd_job *job, struct hd_run_options *options,
	struct hd_ui *ui)
{
	/* buckets that were asked for take other memory than those of the layout */
	const bool chooses = cmd->args.has[HD_OPT_WORKERS] &&
		(hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_AUTO ||
		!job->value[HD_JOB_COMM_BUCKETS].is_auto);
	struct hd_launch launch = { 0 };
	struct hd_run *run = NULL;
	bool opened = false;
	uint32_t n = 0;

	options->quiet_disk = options->explain = true;
	enum hd_err err = cmd->args.has[HD_OPT_WORKERS] ? as_one_of(cmd, job, &n, options) : HD_OK;
	if (!err && chooses) {
		/* judged is what would be chosen, by the same measuring */
		if ((err = hd_launch_open(&launch, &(struct hd_launch_spec){ .job = job, .fs = &cmd->fs,
			.clock = &cmd->clock, .target = n, .worker = &options->worker,
			.pace = options->pace, .profile = options->profile,
			.watch = hd_ui_watch(ui) }, &cmd->diag)))
			return err;
		job = launch.job;
		opened = true;
	}
	if (!err)
		err = hd_run_create(&run, job, &cmd->fs, &cmd->clock, NULL, options, &cmd->diag);
	if (!err && n)
		err = hd_run_tell_team(run, n, &cmd->diag);
	if (!err)
		hd_ui_say(ui, "nothing was started (--dry-run)");
	hd_run_destroy(run);
	if (opened)
		hd_launch_close(&launch);
	return err;
}

/* Several worker processes: this one coordinates. */
static enum hd_err drive(struct hd_cmd *cmd, struct hd_job *job, const struct hd_run_options *options,
	struct hd_rundir *dir, uint64_t step)
{
	struct hd_launch_end end = { .began = false };
	struct hd_launcher *launcher = NULL;
	uint32_t n = 0;
	enum hd_err err = hd_drive_workers(cmd, &n);

	if (!err)
		err = hd_drive_keep(cmd, job, dir);
	err = err ? err : hd_places_open(cmd, job, dir, &launcher);
	if (!err)
		err = hd_drive(cmd, job, dir, &(struct hd_drive){ .target = n, .step = step,
			.launcher = launcher, .worker = &options->worker, .pace = options->pace }, &end);
	if (err && !end.began)
		hd_rundir_discard(dir);
	else
		hd_rundir_close(dir);
	hd_places_close(launcher);
	return err;
}

static enum hd_err verb_run(struct hd_cmd *cmd)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	struct hd_run_options options = { 0 };
	struct hd_rundir dir = { 0 };
	struct hd_run *run = NULL;
	struct hd_ui ui;
	const char *yaml;
	size_t len;
	bool stays = false;
	enum hd_err err;

	if (cmd->args.has[HD_OPT_NEW])
		return write_template(cmd);
	if (!job || cmd->args.npos != 1)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"`heddle run` takes a job file; `heddle run --new job.yaml` writes one to start "
			"from");
	err = hd_session_job(cmd, cmd->args.pos[0], job, &yaml, &len);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_SHOW_CONFIG]) {
		show_config(cmd, job);
		return HD_OK;
	}
	err = hd_session_devices(cmd, job, &options);
	if (!err)
		err = take_options(cmd, job, &options);
	if (err)
		return err;
	hd_ui_init(&ui, cmd);
	warn_far(cmd, job);
	options.watch = hd_ui_watch(&ui);
	if (cmd->args.has[HD_OPT_PRINT])
		return hd_places_print(cmd, job);
	if (cmd->args.has[HD_OPT_DRY_RUN])
		return dry_run(cmd, job, &options, &ui);

	err = hd_rundir_create(&dir, &cmd->fs, &cmd->clock,
		hd_args_text(&cmd->args, HD_OPT_DIR, "."),
		cmd->args.text[HD_OPT_OUT], hd_job_text(job, HD_JOB_NAME), yaml, len, &cmd->diag);
	if (!err)
		err = hd_job_files_put(&dir, job, &cmd->arena, &cmd->diag);
	if (!err)
		err = hd_signal_install(&cmd->diag);
	if (!err)
		err = hd_detach(cmd, &dir, &stays);
	if (stays) {
		hd_rundir_close(&dir);    /* what becomes of it is the other part's */
		return err;
	}
	if (!err && cmd->args.has[HD_OPT_WORKERS])
		return drive(cmd, job, &options, &dir, 0);
	hd_title_set(&cmd->title, "heddle run", "heddle: run of %s", dir.path);
	if (!err)
		err = hd_run_create(&run, job, &cmd->fs, &cmd->clock, &dir, &options, &cmd->diag);
	if (err) {
		hd_rundir_discard(&dir);
		return err;
	}
	hd_detach_begun(cmd);
	err = hd_session_train(cmd, &ui, run, &dir);
	hd_run_destroy(run);
	hd_rundir_close(&dir);
	return err;
}

const struct hd_verb hd_verb_run = {
	.name = "run", .args = "JOB", .npos_min = 0, .npos_max = 1,
	.about = "train a job here",
	.more =
		"The run directory is runs/NAME below the current folder (or -C DIR), NAME from "
		"job.name; a name that is taken gets -2, -3 and so on. It holds the resolved job, "
		"metrics.ndjson, events.ndjson, checkpoints and report.html. A run of 20 steps and more says "
		"at its end what held it back, if something took more than 5 % of its last 100 steps "
		"(`heddle trace analyze` says more).\n"
		"Devices and threads never change a bit of the result: only how fast it comes. "
		"--dry-run says which are chosen and what memory is predicted; with --workers N of each "
		"worker.\n"
		"Nothing listens but Unix sockets in that directory, unless --listen HOST:PORT --key "
		"FILE lets workers of other machines join.\n"
		"SIGTERM, or SIGHUP (the terminal closes): finish the step, checkpoint, exit 75; "
		"SIGINT: the same with 130; a second signal leaves at once, and its workers of this "
		"machine once they see that no coordinator comes, some times workers.detect later; those "
		"of other machines when they give up. With --detach the run goes "
		"on without its terminal, its words in RUN/log/run.log; so it does under nohup. A "
		"directory that is removed or moved ends its run, with a checkpoint where it was (exit "
		"3).",
	.opts = HD_OPTS(RUN_OPTS, HD_OPT_EXPLAIN, HD_OPT_SPEEDS, HD_OPT_OUT, HD_OPT_DRY_RUN, HD_OPT_PRINT,
		HD_OPT_SHOW_CONFIG, HD_OPT_NEW),
	.run = verb_run, .test = "program_run.sh",
};

static enum hd_err verb_resume(struct hd_cmd *cmd)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	uint64_t from = hd_args_count(&cmd->args, HD_OPT_FROM, UINT64_MAX);
	struct hd_run_options options = { 0 };
	struct hd_ckpt_info info;
	struct hd_rundir dir = { 0 };
	struct hd_run *run = NULL;
	char path[HD_PATH_CAP];
	struct hd_ui ui;
	bool stays = false;
	enum hd_err err;

	if (!job)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the job");
	err = hd_rundir_open(&dir, &cmd->fs, &cmd->clock, cmd->args.pos[0], &cmd->diag);
	err = err ? err : hd_rundir_has_job(&cmd->fs, dir.path, &cmd->diag);
	if (!err) {
		hd_rundir_path(&dir, HD_RUN_JOB, path, sizeof path);
		err = hd_session_job(cmd, path, job, NULL, NULL);
	}
	if (!err)
		err = hd_session_newest(cmd, &dir, job, from, &info);
	if (!err)
		err = hd_kernels_keep(&dir, job, info.kernels, &cmd->arena, &cmd->diag);
	if (!err)
		err = hd_session_devices(cmd, job, &options);
	if (!err)
		err = take_options(cmd, job, &options);
	if (!err) {
		hd_ui_init(&ui, cmd);
		warn_far(cmd, job);
		options.watch = hd_ui_watch(&ui);
	}
	if (!err)
		err = hd_signal_install(&cmd->diag);
	if (!err)
		err = hd_detach(cmd, &dir, &stays);
	if (!err && !stays && cmd->args.has[HD_OPT_WORKERS])
		return drive(cmd, job, &options, &dir, info.step);
	if (stays) {
		hd_rundir_close(&dir);
		return err;
	}
	hd_title_set(&cmd->title, "heddle run", "heddle: run of %s", dir.path);
	if (!err)
		err = hd_run_create(&run, job, &cmd->fs, &cmd->clock, &dir, &options, &cmd->diag);
	if (!err && *info.folder)
		err = hd_run_restore(run, info.folder, cmd->args.has[HD_OPT_NEW_SEMANTICS] ?
			HD_RESTORE_NEW_SEMANTICS : HD_RESTORE_GO_ON, &cmd->diag);
	if (!err && *info.folder)
		hd_ui_say(&ui, ">> resumed at step %llu from %s", (unsigned long long)info.step, info.folder);
	if (!err) {
		hd_detach_begun(cmd);
		err = hd_session_train(cmd, &ui, run, &dir);
	}
	hd_run_destroy(run);
	hd_rundir_close(&dir);
	return err;
}

const struct hd_verb hd_verb_resume = {
	.name = "resume", .args = "RUN", .npos_min = 1, .npos_max = 1,
	.about = "continue a run from its newest whole checkpoint, bit for bit",
	.more =
		"A checkpoint that is damaged is reported and the next older one is taken. A run that "
		"ended before its first one begins at step 0.\n"
		"--new-semantics is for one process, until its first checkpoint.\n"
		"With --workers what -s and HEDDLE_ variables say is kept in the run, for its workers and "
		"for a coordinator that takes over.",
	.opts = HD_OPTS(RUN_OPTS, HD_OPT_EXPLAIN, HD_OPT_SPEEDS, HD_OPT_REPLAN, HD_OPT_FROM,
		HD_OPT_NEW_SEMANTICS),
	.run = verb_resume, .test = "program_resume.sh",
};
