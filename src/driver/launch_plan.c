#include "driver/launch_int.h"

#include <stdio.h>
#include <string.h>

#include "sys/thread.h"
#include "run/comm_settled.h"
#include "run/fits.h"
#include "run/given_costs.h"
#include "run/kept_costs.h"
#include "run/kept_job.h"
#include "run/kernels.h"
#include "run/pipes_choose.h"
#include "run/pipes_settled.h"

static bool is_auto(const struct hd_job *job) { return hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_AUTO; }

static uint32_t cores_of(const struct hd_worker_spec *worker)
{
	const uint32_t threads = worker->nthreads ? worker->nthreads : 1;
	struct hd_cores cores;

	if (!strcmp(worker->kind, "null"))
		return UINT32_MAX;        /* they wait, and need none */
	hd_cores_usable(&cores);
	return cores.n > threads ? cores.n / threads : 1;
}

/* ---- memory */

/* ndevices: of each worker; 0: of those that this launch starts. `shape` NULL: the job's. */
static enum hd_err fits(const struct hd_launch *launch, const struct hd_view_shape *shape, uint32_t n,
	uint32_t ndevices, struct hd_diag *diag)
{
	const struct hd_launch_spec *spec = &launch->spec;
	/* whoever waits for this thread waits no longer than a worker takes to be built */
	struct hd_run_options options = { .worker = *spec->worker, .task = launch->task, .shape = shape };

	if (ndevices)
		options.worker.ndevices = ndevices;
	return hd_run_fits(launch->job, spec->fs, spec->clock, &options, n, diag);
}

bool launch_shape_fits(void *self, const struct hd_view_shape *shape, uint32_t nworkers, uint32_t ndevices,
	struct hd_diag *why)
{
	const struct hd_launch *launch = self;
	struct hd_view_shape as = *shape;
	struct hd_job_settled was = { .stages = 0 };

	as.again |= hd_job_has_settled(launch->job, &was) && was.recompute;
	return !fits(launch, &as, nworkers, ndevices, why);
}

/* ---- costs */

static void watch_steps(struct hd_launch *launch)
{
	const struct hd_worker_spec *worker = launch->spec.worker;

	hd_redraw_init(&launch->redraw, &(struct hd_redraw_spec){ .task = launch->task,
		.costs = launch->costs, .cores = cores_of(worker), .is_auto = is_auto(launch->job),
		.memory_bytes = worker->memory_limit_bytes, .fits = launch_shape_fits, .self = launch });
}

static void predicts_nothing(const struct hd_launch *launch, const char *why)
{
	char line[sizeof((struct hd_diag *)0)->text + 80];

	snprintf(line, sizeof line, "no step is predicted: %s", why);
	launch_note(&launch->spec, "choice", line, line);
}

static enum hd_err costs_of(struct hd_launch *launch, struct hd_diag *diag)
{
	const struct hd_launch_spec *spec = &launch->spec;
	struct hd_worker_spec one = *spec->worker;

	one.memory_limit_bytes = 0;       /* of a worker; this is none */
	return spec->profile ? hd_given_costs(&launch->costs, launch->task, spec->fs, spec->profile,
		spec->pace, &launch->arena, diag) :
		hd_run_costs_measure(&launch->costs, launch->task, &one, spec->pace, &launch->arena, diag);
}

static enum hd_err measure(struct hd_launch *launch, struct hd_diag *diag)
{
	const struct hd_launch_spec *spec = &launch->spec;
	struct hd_diag why = { "" }, unkept = { "" };
	enum hd_err err = costs_of(launch, &why);

	if (err) {
		launch->costs = NULL;
		if (spec->profile)        /* asked for by name */
			return hd_fail(diag, err, "%s", why.text);
		predicts_nothing(launch, why.text);
		return HD_OK;
	}
	watch_steps(launch);
	if (spec->dir && hd_kept_costs_put(spec->dir, launch->costs, spec->worker, &launch->arena, &unkept))
		launch_note(spec, "warning", unkept.text, unkept.text);
	return HD_OK;
}

/* A run that is taken over has its workers, and may be in the midst of a step: what its start measured. */
static void recall(struct hd_launch *launch)
{
	static const char line[] = "this coordinator predicts by the costs that the run's start measured";
	const struct hd_job_value *memory = &launch->job->value[HD_JOB_MEMORY];
	struct hd_diag why = { "" };

	launch->kept = (struct hd_worker_spec){ .kind = "cpu", .kernels = hd_kernels_of(launch->job),
		.memory_limit_bytes = memory->is_auto ? 0 : (uint64_t)memory->i };
	enum hd_err err = hd_kept_costs_get(&launch->costs, &launch->kept, launch->spec.dir, launch->task,
		&launch->arena, &why);
	if (err) {
		launch->costs = NULL;
		if (err != HD_E_NOTFOUND)
			predicts_nothing(launch, why.text);
		return;
	}
	if (launch->costs->late_ns > 0)
		launch->kept.kind = "null";       /* they wait */
	launch->spec.worker = &launch->kept;
	watch_steps(launch);
	launch_note(&launch->spec, "choice", line, line);
}

enum hd_err launch_cost(struct hd_launch *launch, struct hd_diag *diag)
{
	const struct hd_worker_spec *worker = launch->spec.worker;
	const bool waits = launch->spec.pace > 0;
	enum hd_err err = HD_OK;

	if (!hd_job_has_pipes(launch->job) && !is_auto(launch->job) && !waits &&
		!(launch->spec.target && hd_comm_wants_times(launch->job)))
		return HD_OK;
	if (worker && (waits || !strcmp(worker->kind, "cpu")))
		err = measure(launch, diag);
	else if (!worker && !launch->spec.target)
		recall(launch);
	return err;
}

/* ---- the choice */

static void say_lines(const struct hd_launch_spec *spec, const char *lines)
{
	char line[300];

	for (; *lines; lines += strcspn(lines, "\n"), lines += *lines == '\n') {
		snprintf(line, sizeof line, "plan: %.*s", (int)strcspn(lines, "\n"), lines);
		launch_note(spec, "choice", line, line);
	}
}

static uint32_t devices_of(const struct hd_launch *launch)
{
	return launch->spec.worker ? launch->spec.target * launch->spec.worker->ndevices : 0;
}

/* In the run's job, as in this one. */
static enum hd_err keep(struct hd_launch *launch, struct hd_diag *diag)
{
	const struct hd_kept_value kept = { HD_JOB_PAR_SETTLED, launch->job->value[HD_JOB_PAR_SETTLED] };

	return !launch->spec.dir ? HD_OK : hd_kept_job_put(launch->spec.dir, &kept, 1, &launch->arena, diag);
}

/* The first whose parts fit the workers. What ends otherwise than by memory would end so for all of them. */
static enum hd_err take_first(struct hd_launch *launch, const struct hd_pipes_choices *choices,
	struct hd_diag *diag)
{
	struct hd_diag first = { "" };
	enum hd_err unfit = HD_E_INVAL;

	for (uint32_t i = 0; i < choices->n; i++) {
		const struct hd_pipes_choice *c = &choices->at[i];
		const struct hd_pipes_settling how = { c->recompute, devices_of(launch) };
		struct hd_diag why = { "" };
		char line[sizeof why.text + 80];
		enum hd_err err = hd_pipes_settled(&launch->job->value[HD_JOB_PAR_SETTLED], &c->shape, how,
			&launch->arena, diag);
		if (err)
			return err;
		err = fits(launch, NULL, launch->spec.target, 0, &why);
		if (!err)
			return HD_OK;
		if (!hd_run_is_unfit(err))
			return hd_fail(diag, err, "%s", why.text);
		if (i == 0) {
			first = why;
			unfit = err;
		}
		snprintf(line, sizeof line, "plan: refused, the next is tried: %s", why.text);
		launch_note(&launch->spec, "choice", line, line);
	}
	return hd_fail(diag, unfit, "%s", first.text);
}

static enum hd_err choose_of(struct hd_launch *launch, bool again, struct hd_diag *diag)
{
	const struct hd_launch_spec *spec = &launch->spec;
	const struct hd_pipes_ask ask = { .task = launch->task, .costs = launch->costs,
		.nworkers = spec->target, .ndevices = spec->worker->ndevices,
		.cores = cores_of(spec->worker), .memory_bytes = spec->worker->memory_limit_bytes,
		.again = again };
	struct hd_pipes_choices choices;
	enum hd_err err = hd_pipes_choose(&choices, &ask, &launch->arena, diag);

	if (err)
		return err;
	say_lines(spec, choices.why.at);
	return take_first(launch, &choices, diag);
}

/* A worker takes more than the planner counts: what fits by its numbers may yet have to compute again. */
static enum hd_err choose(struct hd_launch *launch, struct hd_diag *diag)
{
	const bool open = hd_job_int(launch->job, HD_JOB_PAR_RECOMPUTE) == HD_RECOMPUTE_AUTO;
	struct hd_diag why = { "" };
	enum hd_err err = choose_of(launch, false, &why);

	if (err && (!hd_run_is_unfit(err) || !open || choose_of(launch, true, NULL)))
		return hd_fail(diag, err, "%s", why.text);
	return keep(launch, diag);
}

static const char *why_whole(const struct hd_launch *launch)
{
	if (!launch->spec.worker)
		return "a scheduler's workers have the whole model each";
	if (devices_of(launch) == 1)
		return "there is one device";
	return hd_job_is_whole(launch->job) ? "the job's keys go with the whole model alone" :
		"the job's ops were not measured";
}

/* As without auto: by the keys, else the whole model on each device. */
static enum hd_err leave_to_keys(struct hd_launch *launch, struct hd_diag *diag)
{
	static const struct hd_view_shape whole = { .nstages = 0 };
	static const struct hd_pipes_settling unchosen = { .ndevices = 0 };
	struct hd_job_value *value = &launch->job->value[HD_JOB_PAR_SETTLED];
	const bool staged = hd_job_has_stages(launch->job),
		by_stage = hd_job_int(launch->job, HD_JOB_SYNC) == HD_SYNC_STAGES;

	if (by_stage && (!staged || !launch->spec.worker))
		return hd_fail(diag, HD_E_INVAL,
			"comm.sync: stages leaves a worker the state of its stages, and parallel.mode: auto "
			"has none here: %s; use parallel.mode: pipeline with more devices than one, or "
			"another comm.sync", why_whole(launch));
	value->is_none = true;
	value->text = "none";
	enum hd_err err = staged ? HD_OK : hd_pipes_settled(value, &whole, unchosen, &launch->arena, diag);
	err = err ? err : keep(launch, diag);
	return err || !by_stage ? err : fits(launch, NULL, launch->spec.target, 0, diag);
}

/* Plans whose job goes with the whole model alone are as without auto. */
static bool is_open(const struct hd_launch *launch)
{
	return devices_of(launch) > 1 && !hd_job_is_whole(launch->job) && !hd_job_has_tensor(launch->job);
}

enum hd_err launch_settle(struct hd_launch *launch, struct hd_diag *diag)
{
	const bool open = is_open(launch);
	struct hd_diag why = { "" };
	char line[sizeof why.text + 80];

	/* what is taken over goes on as it is */
	if (!is_auto(launch->job) || !launch->spec.target)
		return HD_OK;
	if (open && hd_pipes_stay(launch->job, devices_of(launch))) {
		enum hd_err err = fits(launch, NULL, launch->spec.target, 0, &why);
		if (!err)
			return HD_OK;
		if (!hd_run_is_unfit(err) || !launch->costs)
			return hd_fail(diag, err, "%s", why.text);
		snprintf(line, sizeof line, "plan: what was chosen before fits no longer: %s", why.text);
		launch_note(&launch->spec, "choice", line, line);
	}
	return open && launch->costs ? choose(launch, diag) : leave_to_keys(launch, diag);
}

/* ---- transfers */

/* What was asked for, or found by times, is said; what is as ever is kept alone. */
static void say_comm(const struct hd_launch *launch, const struct hd_comm_settled *s)
{
	const struct hd_job_value *value = launch->job->value;
	char line[sizeof s->why + 100];

	if (*s->why)
		launch_note(&launch->spec, "warning", s->why, s->why);
	if (!s->comm.nbuckets || (!s->cut && value[HD_JOB_COMM_ORDER].origin == HD_FROM_DEFAULT &&
		value[HD_JOB_COMM_BUCKETS].origin == HD_FROM_DEFAULT))
		return;
	int n = snprintf(line, sizeof line, "comm: order %s, %u bucket%s", hd_comm_order_names[s->comm.order],
		s->comm.nbuckets, s->comm.nbuckets == 1 ? "" : "s");
	if (s->step_ns)
		snprintf(line + n, sizeof line - (size_t)n, " by times, for steps of %.3f ms",
			(double)s->step_ns * 1e-6);
	else if (s->cut)
		snprintf(line + n, sizeof line - (size_t)n, " by times, the last summed %.3f ms after the "
			"backward pass began", (double)s->end_ns * 1e-6);
	launch_note(&launch->spec, "choice", line, line);
}

/* State by stages was judged with the layout's buckets: one of several stages is held by all of them, and
 * places are as large as the largest. What auto takes is judged when that is known. */
static enum hd_err fits_cut(const struct hd_launch *launch, struct hd_diag *diag)
{
	if (!launch->task->comm.nsegments || !launch->spec.worker || is_auto(launch->job) ||
		hd_job_int(launch->job, HD_JOB_SYNC) != HD_SYNC_STAGES)
		return HD_OK;
	return fits(launch, NULL, launch->spec.target, 0, diag);
}

/* Of comm.buckets: auto they stay as they are where those by times do not fit. */
static enum hd_err settle_comm(struct hd_launch *launch, struct hd_comm_settled *settled,
	struct hd_diag *diag)
{
	struct hd_comm_settling how = { launch->costs, launch->spec.target, false };
	struct hd_job_value *value = launch->job->value;
	struct hd_diag why = { "" };
	enum hd_err err = hd_comm_settle(settled, &value[HD_JOB_COMM_SETTLED], launch->task, &how,
		&launch->arena, diag);

	if (err || !(err = fits_cut(launch, &why)))
		return err;
	if (!hd_run_is_unfit(err) || !value[HD_JOB_COMM_BUCKETS].is_auto)
		return hd_fail(diag, err, "%s", why.text);
	how.uncut = true;
	err = hd_comm_settle(settled, &value[HD_JOB_COMM_SETTLED], launch->task, &how, &launch->arena, diag);
	if (!err && !*settled->why)
		snprintf(settled->why, sizeof settled->why, "comm.buckets: auto: buckets by times do not fit "
			"workers.memory, and stay as they are");
	return err;
}

/* For this start. */
static bool is_given(const struct hd_job *job, enum hd_job_key key)
{
	return job->value[key].origin == HD_FROM_SET || job->value[key].origin == HD_FROM_ENV;
}

enum hd_err launch_comm(struct hd_launch *launch, struct hd_diag *diag)
{
	struct hd_job_value *value = &launch->job->value[HD_JOB_COMM_SETTLED];
	struct hd_comm_settled settled;

	/* taken over, or resumed as it was: measuring again would move buckets by noise */
	if (!launch->spec.target || (!value->is_none && !is_given(launch->job, HD_JOB_COMM_ORDER) &&
		!is_given(launch->job, HD_JOB_COMM_BUCKETS)))
		return HD_OK;
	enum hd_err err = settle_comm(launch, &settled, diag);
	if (err)
		return err;
	say_comm(launch, &settled);
	const struct hd_kept_value kept = { HD_JOB_COMM_SETTLED, *value };
	return !launch->spec.dir ? HD_OK : hd_kept_job_put(launch->spec.dir, &kept, 1, &launch->arena, diag);
}

enum hd_err launch_choose(struct hd_launch *launch, struct hd_diag *diag)
{
	enum hd_err err = launch_cost(launch, diag);

	err = err ? err : launch_comm(launch, diag);
	return err ? err : launch_settle(launch, diag);
}

/* ---- the prediction */

#define OVERLAP_ON_SHARED "no step is predicted: steps overlap, on fewer cores than devices"

void launch_predict(struct hd_launch *launch, struct hd_pipes_forecast *forecast)
{
	const struct hd_launch_spec *spec = &launch->spec;
	struct hd_diag why = { "" };
	char line[sizeof why.text + 80];

	*forecast = (struct hd_pipes_forecast){ .npipes = 0 };
	if (!launch->costs)
		return;
	enum hd_err err = hd_pipes_forecast(forecast, launch->task, launch->costs, spec->target,
		spec->worker->ndevices, cores_of(spec->worker), &launch->arena, &why);
	if (err) {
		snprintf(line, sizeof line, "no step is predicted: %s", *why.text ? why.text :
			"a stage begins where nothing was measured");
		launch_note(spec, "choice", line, line);
	} else if (forecast->npipes && forecast->step.step_ns <= 0) {
		launch_note(spec, "choice", OVERLAP_ON_SHARED, OVERLAP_ON_SHARED);
	} else if (forecast->npipes) {
		snprintf(line, sizeof line, "%.3f ms a step%s", forecast->step.step_ns * 1e-6,
			forecast->step.cores ? ", on fewer cores than devices" : "");
		launch_note(spec, "predicted", line, line);
	}
}

void launch_predicted(struct hd_launch *launch, const struct hd_pipes_forecast *start,
	struct hd_forecast *forecast)
{
	if (!launch->costs || !hd_redraw_measured(&launch->redraw, forecast))
		*forecast = start->step;
}
