#include "cmd/run/drive.h"

#include <string.h>

#include "sys/process.h"
#include "sys/thread.h"
#include "run/fits.h"
#include "run/kept_job.h"
#include "run/pipes.h"
#include "run/pipes_listed.h"
#include "chaos/fault.h"
#include "cmd/json_line.h"
#include "cmd/run/detach.h"

enum { DRIVE_ARGS = 16, HD_PLAN_FILE = 16 << 20 };

enum hd_err hd_drive_fits(struct hd_cmd *cmd, struct hd_job *job, const struct hd_run_options *options,
	uint32_t n)
{
	return hd_run_fits(job, &cmd->fs, &cmd->clock, options, n, &cmd->diag);
}

enum hd_err hd_drive_workers(struct hd_cmd *cmd, uint32_t *n)
{
	uint64_t asked = cmd->args.count[HD_OPT_WORKERS];

	if (asked < 1 || asked > HD_LAUNCH_WORKERS)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--workers is from 1 to %d", HD_LAUNCH_WORKERS);
	*n = (uint32_t)asked;
	return HD_OK;
}

static bool is_given(const struct hd_job_value *value)
{
	return value->origin == HD_FROM_SET || value->origin == HD_FROM_ENV;
}

bool hd_drive_keeps_lists(const struct hd_job *job)
{
	return hd_job_is_listed(job) && !is_given(&job->value[HD_JOB_PAR_PLAN]);
}

enum hd_err hd_drive_list(struct hd_cmd *cmd, struct hd_job *job)
{
	const struct hd_job_value *plan = &job->value[HD_JOB_PAR_PLAN];
	uint8_t *bytes;
	size_t len;

	if (!cmd->args.has[HD_OPT_WORKERS] || hd_job_int(job, HD_JOB_PAR_MODE) != HD_PAR_EXPLICIT ||
		hd_drive_keeps_lists(job))
		return HD_OK;
	enum hd_err err = hd_file_read_all(&cmd->fs, plan->text, &cmd->arena, HD_PLAN_FILE, &bytes, &len,
		&cmd->diag);
	return err ? err : hd_pipes_list(job, (const char *)bytes, len, plan->text, &cmd->arena, &cmd->diag);
}

enum hd_err hd_drive_spread(struct hd_cmd *cmd, struct hd_job *job, struct hd_run_options *options)
{
	const bool is_auto = hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_AUTO;
	enum hd_err err = HD_OK;
	uint32_t n = 0;

	if (!cmd->args.has[HD_OPT_WORKERS] || !(hd_job_has_pipes(job) || is_auto))
		return HD_OK;
	if (!cmd->args.has[HD_OPT_DEVICES]) {
		cmd->args.text[HD_OPT_DEVICES] = "1";
		cmd->args.has[HD_OPT_DEVICES] = true;
		err = hd_session_devices(cmd, job, options);
	}
	if (!err && !options->worker.ndevices)
		err = hd_fail(&cmd->diag, HD_E_INVAL,
			"--devices %s: stages over workers need a number; give --devices 1 or more",
			cmd->args.text[HD_OPT_DEVICES]);
	err = err ? err : hd_drive_workers(cmd, &n);
	err = err ? err : hd_pipes_settle(job, n, options->worker.ndevices, &cmd->arena, &cmd->diag);
	/* state by stages: each worker would find out when it has its stages, and another be started in its
	 * place. What auto takes is judged when that is known (driver/launch.h) */
	return err || is_auto || hd_job_int(job, HD_JOB_SYNC) != HD_SYNC_STAGES ? err :
		hd_drive_fits(cmd, job, options, n);
}

/* A plan file that was read now goes in the place of the one that the run has: is it one of this model? And
 * has it, or the one that the run has, as many pipelines as are asked for now? */
static enum hd_err prove_lists(struct hd_cmd *cmd, const struct hd_job *job)
{
	struct hd_task *task = NULL;
	struct hd_pipes pipes;

	if (!hd_job_is_listed(job) || !(is_given(&job->value[HD_JOB_PAR_PLAN]) ||
		is_given(&job->value[HD_JOB_RESILIENCE])))
		return HD_OK;
	enum hd_err err = hd_task_create(&task, job, &cmd->fs, &cmd->diag);
	err = err ? err : hd_pipes_make(&pipes, task, &cmd->arena, &cmd->diag);
	hd_task_destroy(task);
	return err;
}

enum hd_err hd_drive_keep(struct hd_cmd *cmd, const struct hd_job *job, struct hd_rundir *dir)
{
	enum hd_err err = prove_lists(cmd, job);

	err = err ? err : hd_kept_job_settings(dir, job, &cmd->arena, &cmd->diag);
	return err ? err : hd_pipes_keep(dir, job, &cmd->arena, &cmd->diag);
}

const char *hd_drive_devices(struct hd_cmd *cmd, uint32_t nworkers)
{
	struct hd_text devices;
	struct hd_cores cores;

	if (cmd->args.has[HD_OPT_DEVICES])
		return cmd->args.text[HD_OPT_DEVICES];
	if (cmd->args.has[HD_OPT_PLACES])
		return "auto";            /* of another machine, taken to be like this one */
	hd_text_init(&devices, &cmd->arena);
	hd_cores_usable(&cores);
	hd_text_addf(&devices, "auto:%u", cores.n / nworkers > 1 ? cores.n / nworkers : 1);
	return devices.full ? NULL : devices.at;
}

static const char *const *worker_line(struct hd_cmd *cmd, const char *dir, uint32_t target)
{
	const char **argv = hd_arena_take(&cmd->arena, DRIVE_ARGS, sizeof *argv);
	const char *devices = hd_drive_devices(cmd, target);
	struct hd_text threads, steps;
	uint32_t n = 0;

	hd_text_init(&threads, &cmd->arena);
	hd_text_init(&steps, &cmd->arena);
	if (!argv || !devices)
		return NULL;
	argv[n++] = "/proc/self/exe";
	argv[n++] = "worker";
	argv[n++] = "--join";
	argv[n++] = dir;
	argv[n++] = "--devices";
	argv[n++] = devices;
	if (cmd->args.has[HD_OPT_THREADS]) {
		hd_text_addf(&threads, "%llu", (unsigned long long)cmd->args.count[HD_OPT_THREADS]);
		argv[n++] = "--threads";
		argv[n++] = threads.at;
	}
	if (cmd->args.has[HD_OPT_STEPS]) {
		hd_text_addf(&steps, "%llu", (unsigned long long)cmd->args.count[HD_OPT_STEPS]);
		argv[n++] = "--steps";
		argv[n++] = steps.at;
	}
	if (cmd->args.has[HD_OPT_PROFILE]) {
		argv[n++] = "--profile";
		argv[n++] = cmd->args.text[HD_OPT_PROFILE];
	}
	argv[n++] = "--going";
	argv[n] = NULL;
	return threads.full || steps.full ? NULL : argv;
}

/* The process goes on as another program, which takes over the run as it stands. Members may have started a
 * coordinator meanwhile: it is waited for. */
static enum hd_err become(struct hd_cmd *cmd, const char *program, const char *const *worker,
	struct hd_rundir *dir)
{
	const char **argv = hd_arena_take(&cmd->arena, DRIVE_ARGS + 8, sizeof *argv);
	uint32_t n = 0;

	if (!argv)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the next program");
	argv[n++] = program;
	argv[n++] = "serve";
	argv[n++] = "--job";
	argv[n++] = hd_arena_text(&cmd->arena, dir->path, strlen(dir->path));
	argv[n++] = "--wait";
	argv[n++] = "60s";
	if (cmd->args.has[HD_OPT_QUIET])
		argv[n++] = "-q";
	if (cmd->args.has[HD_OPT_JSON])
		argv[n++] = "--json";
	/* what its workers get after the folder that they join, --going too */
	for (uint32_t i = 4; worker && worker[i]; i++)
		argv[n++] = worker[i];
	hd_rundir_sync(dir);
	return argv[3] ? hd_proc_become(argv, &cmd->diag) : hd_fail(&cmd->diag, HD_E_NOMEM,
		"no memory for the next program");
}

/* The workers are gone: the state is read from the disk. */
static void put_test(struct hd_cmd *cmd, struct hd_json_writer *w, const struct hd_job *job, const char *dir)
{
	struct hd_diag keep = cmd->diag;
	struct hd_ckpt_info kept;
	struct hd_session s;

	if (strcmp(hd_job_text(job, HD_JOB_DATA_KIND), "graph") != 0) {
		if (hd_session_best(cmd, job, dir, &kept))
			hd_json_put_i64(w, "best_step", (int64_t)kept.step);
		return;
	}
	if (hd_session_open(cmd, dir, &s))
		fprintf(stderr, "!! no test: %s\n", cmd->diag.text);
	else
		hd_session_put_test(cmd, w, s.run, dir);
	hd_session_close(&s);
	cmd->diag = keep;
}

static void print_json(struct hd_cmd *cmd, const struct hd_ui *ui, const struct hd_rundir *dir,
	const struct hd_job *job, const struct hd_launch_end *end, enum hd_err err)
{
	const struct hd_driver_end *driver = &end->driver;
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "run", dir->path);
	hd_json_put_i64(w, "step", (int64_t)driver->step);
	if (ui->steps) {
		hd_json_put_f32(w, "loss_first", (float)ui->first_loss);
		hd_json_put_f32(w, "loss_last", (float)ui->last_loss);
	} else {
		hd_json_put_null(w, "loss_first");
		hd_json_put_null(w, "loss_last");
	}
	hd_json_put_text(w, "digest", end->digest);
	if (!err)
		put_test(cmd, w, job, dir->path);
	hd_session_put_forecast(cmd, w, &end->forecast);
	hd_json_put_text(w, "held_back", end->held_back);
	hd_json_put_i64(w, "commits", driver->commits);
	hd_json_put_i64(w, "membership", driver->epochs);
	hd_json_put_i64(w, "redone_vn", (int64_t)driver->redone);
	hd_json_put_i64(w, "unrecorded", (int64_t)driver->unrecorded);
	hd_json_put_i64(w, "given_up", driver->given_up);
	hd_session_put_functions(cmd, w, dir->path);
	hd_json_put_i64(w, "exit", hd_err_exit(err));
	hd_json_line_print(&line);
}

static void print_end(struct hd_cmd *cmd, struct hd_ui *ui, const struct hd_job *job,
	const struct hd_rundir *dir, const struct hd_launch_end *end, enum hd_err err)
{
	hd_ui_end(ui);
	if (end->report.text[0])
		hd_ui_say(ui, "!! no report: %s", end->report.text);
	if (cmd->args.has[HD_OPT_JSON]) {
		print_json(cmd, ui, dir, job, end, err);
		return;
	}
	hd_session_say_forecast(ui, &end->forecast);
	if (end->held_back[0])
		hd_ui_say(ui, "held     %s", end->held_back);
	if (*end->digest)
		hd_ui_say(ui, "state    %s  (step %llu)", end->digest, (unsigned long long)end->driver.step);
	if (end->driver.given_up)
		hd_ui_say(ui,
			"!! %u workers were given up for lost and lived: this machine is busier than "
			"workers.detect (%lld ms) allows for; a larger one waits longer",
			end->driver.given_up, (long long)hd_job_int(job, HD_JOB_DETECT) / 1000000);
	hd_session_say_best(ui, job, dir->path);
	hd_session_say_functions(ui, dir->path);
	hd_ui_say(ui, "report   %s/report.html", dir->path);
	if (dir->lines_lost)
		hd_ui_say(ui, "!! some lines of metrics or events could not be written");
}

void hd_drive_warn(const struct hd_network *net)
{
	if (net->plaintext)
		fprintf(stderr, "!! " HD_NETWORK_OPEN "\n");
}

enum hd_err hd_drive_network(struct hd_cmd *cmd, const struct hd_job *job, const char *dir,
	struct hd_network *net)
{
	enum hd_err err = hd_network_of(net, job, &cmd->fs, dir, &cmd->diag);

	if (!err && !net->listens && cmd->args.has[HD_OPT_KEY])
		err = hd_fail(&cmd->diag, HD_E_INVAL,
			"--key is for machines that come over the network, and this run listens to none; "
			"add --listen HOST:PORT");
	if (!err)
		hd_drive_warn(net);
	return err;
}

/* Workers of this machine, and of others, can reach it. */
static enum hd_err open_to_workers(struct hd_cmd *cmd, struct hd_launch *launch, struct hd_network *net)
{
	const struct hd_launch_spec *spec = &launch->spec;
	enum hd_err err = hd_drive_network(cmd, spec->job, spec->dir->path, net);

	if (!err)
		err = hd_network_keep(spec->dir, spec->job, &cmd->arena, &cmd->diag);
	return err ? err : hd_launch_reach(launch, net, &cmd->diag);
}

enum hd_err hd_drive(struct hd_cmd *cmd, const struct hd_job *job, struct hd_rundir *dir,
	const struct hd_drive *how, struct hd_launch_end *reached)
{
	struct hd_network net = { .listens = false };
	struct hd_launch_end end = { .digest = "" };
	struct hd_launch launch;
	struct hd_ui ui;
	const char *const *workers = how->others_start || how->launcher || hd_job_int(job, HD_JOB_START) ?
		NULL : worker_line(cmd, dir->path, how->target ? how->target : 1);

	hd_title_set(&cmd->title, "heddle coord", "heddle: coordinator of %s", dir->path);
	hd_ui_init(&ui, cmd);
	enum hd_err err = hd_launch_open(&launch, &(struct hd_launch_spec){ .job = job, .fs = &cmd->fs,
		.clock = &cmd->clock, .dir = dir, .target = how->target, .step = how->step,
		.lease_ns = (int64_t)(how->lease_s * 1e9),
		.launcher = how->launcher,
		.worker_argv = workers,
		.worker = how->worker, .pace = how->pace, .profile = cmd->args.text[HD_OPT_PROFILE],
		.stop_at = how->until ? how->until : hd_args_count(&cmd->args, HD_OPT_STEPS, 0),
		.stop = hd_session_stop, .watch = hd_ui_watch(&ui) }, &cmd->diag);

	if (err)
		return err;
	err = open_to_workers(cmd, &launch, &net);
	if (!err) {
		hd_fault_take_orders(dir->path);
		hd_detach_begun(cmd);
		err = hd_launch_run(&launch, &end, &cmd->diag);
		if (err != HD_E_AGAIN)
			print_end(cmd, &ui, job, dir, &end, err);
	}
	if (reached)
		*reached = end;
	hd_network_wipe(&net);
	hd_launch_close(&launch);
	return err == HD_E_AGAIN && end.driver.become[0] ? become(cmd, end.driver.become, workers, dir) : err;
}
