#include "driver/launch_int.h"

#include <stdio.h>
#include <string.h>

#include "sys/thread.h"
#include "run/fits.h"
#include "run/kept_job.h"
#include "run/pipes_choose.h"

static bool is_auto(const struct hd_job *job) { return hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_AUTO; }

static uint32_t cores_of(const struct hd_worker_spec *worker)
{
	const uint32_t threads = worker->nthreads ? worker->nthreads : 1;
	struct hd_cores cores;

	hd_cores_usable(&cores);
	return cores.n > threads ? cores.n / threads : 1;
}

static void measure(struct hd_launch *launch)
{
	const struct hd_launch_spec *spec = &launch->spec;
	struct hd_diag why = { "" };
	struct hd_worker_spec one;
	char line[sizeof why.text + 80];

	if (!spec->worker || strcmp(spec->worker->kind, "cpu") != 0 ||
		!(hd_job_has_pipes(launch->job) || is_auto(launch->job)))
		return;
	one = *spec->worker;
	one.memory_limit_bytes = 0;       /* of a worker; this is none */
	if (!hd_run_costs_measure(&launch->costs, launch->task, &one, 0, &launch->arena, &why)) {
		hd_redraw_init(&launch->redraw, &(struct hd_redraw_spec){ .task = launch->task,
			.costs = launch->costs, .cores = cores_of(&one), .is_auto = is_auto(launch->job) });
		return;
	}
	launch->costs = NULL;
	snprintf(line, sizeof line, "no step is predicted: %s", why.text);
	launch_note(spec, "choice", line, line);
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

/* What a run settled on before is kept where it is one for these workers: measuring again would move cuts by
 * noise. */
static bool has_settled(const struct hd_launch *launch)
{
	const struct hd_job_value *value = &launch->job->value[HD_JOB_PAR_SETTLED];
	const uint32_t all = launch->spec.target * launch->spec.worker->ndevices;
	struct hd_job_settled s;

	return !value->is_none && hd_job_settled(&s, value->text) && all >= s.width && all % s.width == 0;
}

static enum hd_err settle(struct hd_launch *launch, const struct hd_pipes_choice *choice,
	struct hd_diag *diag)
{
	struct hd_job_value *value = &launch->job->value[HD_JOB_PAR_SETTLED];

	value->is_none = true;
	value->text = "none";
	return choice->shape.nstages ? hd_pipes_settled(value, &choice->shape, &launch->arena, diag) : HD_OK;
}

/* The first whose parts fit the workers. */
static enum hd_err take_first(struct hd_launch *launch, const struct hd_pipes_choices *choices,
	struct hd_diag *diag)
{
	const struct hd_launch_spec *spec = &launch->spec;
	const struct hd_run_options options = { .worker = *spec->worker };
	struct hd_diag first = { "" };
	enum hd_err err = HD_E_INVAL;

	for (uint32_t i = 0; i < choices->n; i++) {
		struct hd_diag why = { "" };
		char line[sizeof why.text + 80];
		err = settle(launch, &choices->at[i], diag);
		if (err)
			return err;
		err = hd_run_fits(launch->job, spec->fs, spec->clock, &options, spec->target, &why);
		if (!err)
			return HD_OK;
		if (i == 0)
			first = why;
		snprintf(line, sizeof line, "plan: refused, the next is tried: %s", why.text);
		launch_note(spec, "choice", line, line);
	}
	return hd_fail(diag, err, "%s", first.text);
}

static enum hd_err choose(struct hd_launch *launch, struct hd_diag *diag)
{
	const struct hd_launch_spec *spec = &launch->spec;
	const struct hd_pipes_ask ask = { .task = launch->task, .costs = launch->costs,
		.nworkers = spec->target, .ndevices = spec->worker->ndevices,
		.cores = cores_of(spec->worker), .memory_bytes = spec->worker->memory_limit_bytes };
	struct hd_kept_value kept = { .key = HD_JOB_PAR_SETTLED };
	struct hd_pipes_choices choices;
	enum hd_err err = hd_pipes_choose(&choices, &ask, &launch->arena, diag);

	if (err)
		return err;
	say_lines(spec, choices.why.at);
	err = take_first(launch, &choices, diag);
	if (err)
		return err;
	kept.value = launch->job->value[HD_JOB_PAR_SETTLED];
	return hd_kept_job_put(spec->dir, &kept, 1, &launch->arena, diag);
}

/* Plans that nothing was measured for, or whose job goes with the whole model alone, are as without auto. */
static bool is_open(const struct hd_launch *launch)
{
	const struct hd_job *job = launch->job;

	return is_auto(job) && launch->costs && launch->spec.target &&
		launch->spec.target * launch->spec.worker->ndevices > 1 && !hd_job_copies(job) &&
		!hd_job_has_tensor(job) &&
		hd_job_int(job, HD_JOB_SLICES) <= 1 && hd_job_int(job, HD_JOB_BN) != HD_BN_GLOBAL;
}

enum hd_err launch_choose(struct hd_launch *launch, struct hd_diag *diag)
{
	measure(launch);
	if (!is_open(launch) || has_settled(launch))
		return HD_OK;
	return choose(launch, diag);
}

/* ---- the prediction */

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
	} else if (forecast->npipes) {
		snprintf(line, sizeof line, "%.3f ms a step%s", forecast->step.step_ns * 1e-6,
			forecast->step.cores ? ", on fewer cores than devices" : "");
		launch_note(spec, "predicted", line, line);
	}
}

void launch_predicted(const struct hd_launch *launch, const struct hd_pipes_forecast *start,
	struct hd_forecast *forecast)
{
	const struct hd_times *times = &launch->redraw.times;

	*forecast = start->step;
	if (!launch->costs || !times->n)
		return;
	*forecast = launch->redraw.forecast;
	forecast->nsteps = times->n;
	forecast->measured_ns = hd_times_quantile(times, 0.5) * 1e6;
	forecast->least_ns = hd_times_quantile(times, 0) * 1e6;
}
