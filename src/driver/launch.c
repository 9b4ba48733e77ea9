#include "driver/launch_int.h"

#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "engine/lockstep.h"
#include "run/best.h"
#include "run/habits.h"
#include "run/ending.h"
#include "run/identity.h"
#include "run/pipes.h"
#include "run/report.h"
#include "driver/driver_int.h"

void launch_note(const struct hd_launch_spec *spec, const char *kind, const char *said, const char *kept)
{
	char room[2 * sizeof((struct hd_diag *)0)->text + 80];
	struct hd_json_writer w;
	struct hd_text body;

	spec->watch.note(spec->watch.user, kind, said);
	if (!spec->dir)
		return;
	hd_text_fixed(&body, room, sizeof room);
	hd_json_writer_init(&w, &body);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "text", kept);
	hd_json_close(&w);
	if (body.full)
		return;
	body.at[body.len - 1] = '\0';     /* the members alone */
	hd_rundir_event(spec->dir, kind, 0, body.at + 1);
}

/* A run that begins or is resumed has its data here. One that is taken over has members that have them: only
 * workers that join later are judged by what lies here. */
static enum hd_err prove(const struct hd_launch *launch, struct hd_diag *diag)
{
	const struct hd_launch_spec *spec = &launch->spec;
	struct hd_diag other = { "" };
	char line[sizeof other.text + 80];

	if (spec->target)
		return hd_identity_keep(spec->dir, launch->task, diag);
	enum hd_err err = hd_identity_take(spec->fs, spec->dir->path, launch->task, &other, diag);
	if (err || !other.text[0])
		return err;
	snprintf(line, sizeof line, "%s; workers that have the old data go on, others are refused",
		other.text);
	launch_note(spec, "warning", line, other.text);
	return HD_OK;
}

/* Is the plan file one of this model, and are there the pipelines that the job keeps? Before a worker starts.
 * Of parallel.mode: auto they are not known yet. */
static enum hd_err prove_pipes(const struct hd_launch *launch, struct hd_diag *diag)
{
	const struct hd_job *job = launch->job;
	const bool keeps = hd_job_least_pipelines(job) > 1 && hd_job_has_pipes(job) &&
		hd_job_int(job, HD_JOB_PAR_MODE) != HD_PAR_AUTO;
	struct hd_pipes pipes;
	struct hd_arena arena;

	if (!hd_job_is_listed(job) && !keeps)
		return HD_OK;
	hd_arena_init(&arena, 0);
	enum hd_err err = hd_pipes_make(&pipes, launch->task, &arena, diag);
	err = err || !keeps ? err : driver_has_pipelines(&pipes, job, diag);
	hd_arena_finish(&arena);
	return err;
}

/* Each worker would refuse its plan. */
static enum hd_err prove_stages(const struct hd_launch *launch, struct hd_diag *diag)
{
	const struct hd_job *job = launch->job;

	if (hd_job_int(job, HD_JOB_PAR_MODE) != HD_PAR_PIPELINE ||
		!hd_lockstep_meetings(&launch->task->train))
		return HD_OK;
	return hd_fail(diag, HD_E_INVAL,
		"parallel.mode: pipeline: virtual nodes meet inside the model (norms over the global batch, "
		"a graph in several intervals), and its stages run them one after the other: "
		"parallel.mode: data, or model.bn: ghost, or of a graph batch.virtual_nodes: 1");
}

enum hd_err hd_launch_open(struct hd_launch *launch, const struct hd_launch_spec *spec, struct hd_diag *diag)
{
	*launch = (struct hd_launch){ .spec = *spec };
	hd_arena_init(&launch->arena, 0);
	launch->job = hd_arena_take(&launch->arena, 1, sizeof *launch->job);
	enum hd_err err = launch->job ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for the job");
	if (!err) {
		*launch->job = *spec->job;
		launch->spec.job = launch->job;
		err = hd_task_create(&launch->task, launch->job, spec->fs, diag);
	}
	err = err ? err : hd_best_check(launch->job, launch->task->data, diag);
	err = err ? err : prove_stages(launch, diag);
	err = err || !spec->dir ? err : prove(launch, diag);
	err = err ? err : prove_pipes(launch, diag);
	err = err ? err : launch_choose(launch, diag);
	if (err)
		hd_launch_close(launch);
	return err;
}

void hd_launch_close(struct hd_launch *launch)
{
	hd_task_destroy(launch->task);
	launch->task = NULL;
	if (launch->costs)
		hd_redraw_finish(&launch->redraw);
	launch->costs = NULL;
	hd_arena_finish(&launch->arena);
}

/* A file of the run's folder for workers of other machines; where none may join it need not fit. */
static enum hd_err text_of(struct hd_launch *launch, const char *name, size_t most, const char **text,
	struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	struct hd_diag why = { "" };
	uint8_t *bytes;
	size_t len;

	hd_rundir_path(launch->spec.dir, name, path, sizeof path);
	enum hd_err err = hd_file_read_all(launch->spec.fs, path, &launch->arena, most, &bytes, &len, &why);
	*text = err ? "" : (const char *)bytes;
	return !err || !launch->net->listens || err == HD_E_NOTFOUND ? HD_OK
		: hd_fail(diag, err, "%s; a worker that joins this run from another machine needs it",
			why.text);
}

/* The members have the state; what of it is left here is the last checkpoint. */
static void take_end(const struct hd_launch *launch, struct hd_launch_end *end)
{
	const struct hd_launch_spec *spec = &launch->spec;
	struct hd_ckpt_info info;

	end->steps = hd_job_ends_early(spec->job) ? 0 : launch->task->nsteps;
	if (!hd_ckpt_find(spec->fs, spec->dir->path, UINT64_MAX, &info, NULL, NULL, NULL) &&
		info.step == end->driver.step)
		hd_hash_hex(info.digest, end->digest);
}

enum hd_err hd_launch_reach(struct hd_launch *launch, const struct hd_network *net, struct hd_diag *diag)
{
	launch->net = net;
	enum hd_err err = hd_driver_address("unix", launch->spec.dir->path, HD_LAUNCH_SOCKET, launch->address,
		diag);

	if (!err)
		err = text_of(launch, HD_RUN_JOB, HD_MSG_JOB, &launch->job_text, diag);
	return err ? err : text_of(launch, HD_RUN_FOLDER, HD_MSG_PATH, &launch->job_folder, diag);
}

static struct hd_driver_spec driver_of(const struct hd_launch *launch)
{
	const struct hd_launch_spec *spec = &launch->spec;
	const struct hd_network *net = launch->net;

	return (struct hd_driver_spec){ .task = launch->task, .fs = spec->fs, .clock = spec->clock,
		.dir = spec->dir, .target = spec->target, .step = spec->step, .lease_ns = spec->lease_ns,
		.worker_argv = spec->worker_argv, .launcher = spec->launcher,
		.listen = { launch->address, net->listens ? net->coordinator : NULL },
		.job_text = launch->job_text, .job_folder = launch->job_folder,
		.realm = net->realm, .key = net->has_key ? net->key.byte : NULL,
		.key_len = sizeof net->key.byte, .plaintext = net->plaintext, .stop = spec->stop };
}

/* A run ends well at its last step, where its workers stop by order, or at its target. */
static bool is_reached(const struct hd_launch *launch, uint64_t step)
{
	const uint64_t stop_at = launch->spec.stop_at, nsteps = launch->task->nsteps;

	return hd_job_ends_early(launch->job) && step < (stop_at && stop_at < nsteps ? stop_at :
		nsteps);
}

/* Workers are not heard before they are members. */
static void tell_habits(struct hd_launch *launch)
{
	struct hd_text text;

	if (hd_job_int(launch->job, HD_JOB_LOG_LEVEL) < HD_LOG_INFO)
		return;
	hd_text_init(&text, &launch->arena);
	hd_habits_batch(launch->job, &text);
	launch_note(&launch->spec, "choice", text.at, text.at);
	hd_text_init(&text, &launch->arena);
	if (hd_habits_rates(launch->task, &text))
		launch_note(&launch->spec, "choice", text.at, text.at);
}

enum hd_err hd_launch_run(struct hd_launch *launch, struct hd_launch_end *end, struct hd_diag *diag)
{
	const struct hd_launch_spec *spec = &launch->spec;
	struct hd_driver_spec driver = driver_of(launch);
	struct hd_driver_progress progress;
	struct hd_pipes_forecast forecast;

	*end = (struct hd_launch_end){ .began = true, .digest = "" };
	driver.word = &launch->word;
	tell_habits(launch);
	launch_predict(launch, &forecast);
	hd_task_drop_weights(launch->task);
	hd_driver_progress_init(&progress, &(struct hd_driver_progress_spec){ .clock = spec->clock,
		.watch = spec->watch, .nvns = spec->job->nvns, .nsteps = launch->task->nsteps,
		.batch = spec->job->batch });
	driver.watch = hd_driver_progress_watch(&progress);
	driver.redraw = launch->costs ? &launch->redraw : NULL;
	enum hd_err err = hd_driver_run(&driver, &end->driver, diag);
	launch_predicted(launch, &forecast, &end->forecast);
	hd_driver_progress_finish(&progress);
	if (!err)
		hd_held_back_note(spec->dir, spec->step, end->driver.step, end->held_back);
	if (err != HD_E_AGAIN) {
		if (!err && is_reached(launch, end->driver.step))
			hd_ending_reached(spec->dir, end->driver.step, launch->task->nsteps);
		else
			hd_ending_ends(spec->dir, end->driver.step, launch->task->nsteps, err, diag);
		(void)!hd_report_write(spec->dir, &end->report);
	}
	hd_signal_word_set(NULL);
	take_end(launch, end);
	return err;
}
