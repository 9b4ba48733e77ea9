#include "run/run_int.h"

#include <stdio.h>
#include <string.h>

#include "sys/thread.h"
#include "plan/check.h"
#include "pipeline/staged.h"
#include "run/choose_plan.h"
#include "run/given_costs.h"
#include "run/kept_costs.h"
#include "run/kept_forecast.h"
#include "run/kept_plan.h"
#include "run/pipes_listed.h"

/* Which plan a run takes: that of a file, the one it had before, stages that the job asks for, the best by
 * measured costs, or the even one. */

static bool is_auto(const struct hd_run *run)
{
	return run->options.stages && hd_job_int(run->job, HD_JOB_PAR_MODE) == HD_PAR_AUTO;
}

static bool has_stages(const struct hd_run *run)
{
	return run->options.stages && hd_job_has_stages(run->job) && !run->options.map;
}

static uint32_t cores_of(const struct hd_run *run)
{
	struct hd_cores cores;

	hd_cores_usable(&cores);
	return run->options.auto_cores ? run->options.auto_cores : cores.n;
}

/* How many devices the stages have is settled before devices are chosen; threads are shared out as always. */
enum hd_err hd_run_plan_begin(struct hd_run *run, struct hd_diag *diag)
{
	struct hd_worker_spec *spec = &run->options.worker;

	if (!has_stages(run) || (is_auto(run) && !hd_job_has_tensor(run->job)))
		return HD_OK;
	/* of auto the width and the number of devices stay, all else is open again */
	enum hd_err err = hd_job_is_listed(run->job) ? hd_pipes_listed_alone(&run->stages, run->job,
		spec->ndevices, &run->arena, diag) : hd_run_stages(&run->stages, run->job, spec->ndevices,
		cores_of(run), diag);
	if (!err)
		spec->ndevices = run->stages.p * run->stages.d * run->stages.t;
	if (is_auto(run))
		run->stages = (struct hd_run_stages){ .t = run->stages.t };
	return err;
}

static uint32_t width_of(const struct hd_run *run) { return run->stages.t ? run->stages.t : 1; }

/* Steps are predicted by the times of the run's start, and all devices wait those. */
static enum hd_err check_pace(const struct hd_run *run, struct hd_diag *diag)
{
	const double is = run->costs->pace, asked = run->options.pace;

	if (!run->options.shared || !(is > 0) || (is >= asked && is <= asked))
		return HD_OK;
	return hd_fail(diag, HD_E_INVAL, "devices of this run wait %g times what a core takes, not %g times: "
		"say --devices paced:N:%g; slower ones are paced:SPEED,...:%g", is, asked, is, is);
}

/* One of several waits what the run's start has measured, where it lies in the folder. */
static enum hd_err costs_of(struct hd_run *run, struct hd_diag *diag)
{
	const struct hd_run_options *o = &run->options;
	struct hd_worker_spec as = o->worker;

	if (o->profile)
		return hd_given_costs(&run->costs, run->task, run->fs, o->profile, o->pace, &run->measured,
			diag);
	if (o->shared && run->dir && !hd_kept_costs_get(&run->costs, &as, run->dir, run->task,
		&run->measured, NULL))
		return HD_OK;
	return hd_run_costs_measure(&run->costs, run->task, &o->worker, o->pace, &run->measured, diag);
}

enum hd_err hd_run_plan_measure(struct hd_run *run, struct hd_diag *diag)
{
	struct hd_worker_spec *spec = &run->options.worker;
	const bool open = is_auto(run) && !run->options.map && spec->ndevices > 1;
	const double pace = run->options.pace;
	struct hd_diag why = { "" };

	if (run->options.speeds.n && run->options.speeds.n != spec->ndevices)
		return hd_fail(diag, HD_E_INVAL, "--speeds has %u numbers, and there are %u devices",
			run->options.speeds.n, spec->ndevices);
	spec->speed = run->options.paced.n ? run->options.paced.at : NULL;
	/* devices of no result that do not wait have no times */
	if ((run->options.shared && pace <= 0) || (!strcmp(spec->kind, "null") && pace <= 0) ||
		!(open || run->stages.p || pace > 0))
		return HD_OK;
	enum hd_err err = costs_of(run, &why);
	if (!err && pace > 0) {
		spec->pace_ns = run->costs->node_ns;
		if ((err = check_pace(run, diag)))
			return err;
	}
	if (err == HD_E_NOMEM || err == HD_E_BUG || (err && run->options.profile))
		return hd_fail(diag, err, "%s", why.text);
	if (err)
		hd_run_note(run, "choice", "plans are not made by measured times: %s", why.text);
	return HD_OK;
}

/* ---- plans that are there */

static enum hd_err check(const struct hd_plan *plan, const struct hd_plan_job *job, struct hd_diag *diag)
{
	return plan->first ? hd_plan_staged_check(plan, job, NULL, diag) : hd_plan_check(plan, job, NULL,
		diag);
}

static enum hd_err read_plan(struct hd_run *run, const struct hd_plan_job *job, struct hd_diag *diag)
{
	uint8_t *bytes;
	size_t len;
	enum hd_err err = hd_file_read_all(run->fs, run->options.map, &run->arena, 16 << 20, &bytes, &len,
		diag);

	if (!err)
		err = hd_plan_parse(&run->plan, (const char *)bytes, len, run->options.map, &run->arena,
			diag);
	run->plan.xfers.len = 0;          /* between workers: here is one */
	return err ? err : check(&run->plan, job, diag);
}

/* The newest plan of the folder, if it is one for these devices. */
static bool had_plan(struct hd_run *run, const struct hd_plan_job *job, struct hd_plan *plan)
{
	return run->dir && !run->options.replan &&
		!hd_plan_read_newest(plan, run->fs, run->dir->path, &run->arena, NULL) &&
		hd_plan_devices(plan) == run->options.worker.ndevices &&
		(hd_plan_width(plan) == width_of(run) || !hd_job_has_stages(run->job)) &&
		!check(plan, job, NULL);
}

/* Another one's parts are on workers of their own. */
static bool is_of_one_process(const struct hd_plan *plan)
{
	for (uint32_t r = 0; r < plan->nranks; r++)
		if (plan->worker[r])
			return false;
	return true;
}

/* ---- plans that are made */

/* By ranks of `width` devices: one that is as slow as its slowest. */
static struct hd_forecast_setting setting_of(struct hd_run *run, uint32_t width)
{
	const struct hd_worker_spec *spec = &run->options.worker;
	const uint32_t threads = spec->nthreads ? spec->nthreads : 1, cores = cores_of(run) / threads;
	const double *given = run->options.speeds.n ? run->options.speeds.at : NULL;
	double *speed = given && width > 1 ? hd_arena_take(&run->arena, spec->ndevices, sizeof *speed) : NULL;

	for (uint32_t d = 0; speed && d < spec->ndevices; d++)
		if (d % width == 0 || given[d] < speed[d / width])
			speed[d / width] = given[d];
	return (struct hd_forecast_setting){ .speed = run->speed ? run->speed : speed ? speed : given,
		/* of no result: they wait, and need no core for it */
		.cores = !strcmp(spec->kind, "null") || cores >= spec->ndevices ? 0 : cores ? cores : 1 };
}

static void say_lines(struct hd_run *run, const char *lines)
{
	for (; *lines; lines += strcspn(lines, "\n"), lines += *lines == '\n')
		hd_run_note(run, "choice", "plan: %.*s", (int)strcspn(lines, "\n"), lines);
}

/* The first that the worker takes: memory is judged by it. */
static enum hd_err take_first(struct hd_run *run, const struct hd_plan_choices *choices, struct hd_diag *diag)
{
	struct hd_diag first = { "" };
	enum hd_err err = HD_E_INVAL;

	for (uint32_t i = 0; i < choices->n; i++) {
		const struct hd_plan_choice *c = &choices->at[i];
		struct hd_diag why = { "" };
		run->plan = c->plan;
		if (!run->plan.cause || !*run->plan.cause)
			run->plan.cause = "data parallel: the fastest by measured times";
		err = hd_worker_adopt(run->worker, &run->plan, &why);
		if (!err) {
			run->stages = c->stages;
			run->forecast = c->forecast;
			hd_forecast_forget(&run->forecast, &run->plan);
			return HD_OK;
		}
		if (err != HD_E_REFUSED && err != HD_E_NOMEM)
			return hd_fail(diag, err, "%s", why.text);
		hd_run_note(run, "choice", "plan: refused, the next is tried: %s", why.text);
		if (i == 0)
			first = why;
	}
	return hd_fail(diag, err, "%s", first.text);
}

static enum hd_err choose(struct hd_run *run, const struct hd_plan_job *job, struct hd_diag *diag)
{
	const uint32_t width = width_of(run);
	const struct hd_choose_ask ask = { .task = run->task, .costs = run->costs, .job = *job,
		.ndevices = run->options.worker.ndevices / width, .width = width, .setting =
		setting_of(run, width),
		.memory_bytes = run->options.worker.memory_limit_bytes * width,
		.shape = run->stages.p ? &run->stages : NULL,
		.open = is_auto(run) && !hd_job_has_tensor(run->job) };
	struct hd_plan_choices choices;
	enum hd_err err = hd_choose_plan(&choices, &ask, &run->arena, diag);

	if (err)
		return err;
	if (!ask.shape)
		say_lines(run, choices.why.at);
	return take_first(run, &choices, diag);
}

static enum hd_err forecast(struct hd_run *run, struct hd_diag *diag)
{
	const struct hd_forecast_setting setting = setting_of(run, hd_plan_width(&run->plan));

	if (!run->costs)
		return HD_OK;
	enum hd_err err = hd_forecast_make(&run->forecast, &run->plan, run->costs, &setting, &run->arena,
		diag);
	hd_forecast_forget(&run->forecast, &run->plan);
	return err == HD_E_NOTFOUND ? HD_OK : err;
}

static enum hd_err take_made(struct hd_run *run, struct hd_diag *diag)
{
	enum hd_err err = hd_worker_adopt(run->worker, &run->plan, diag);

	return err ? err : forecast(run, diag);
}

static enum hd_err take(struct hd_run *run, const struct hd_plan_job *job, struct hd_diag *diag)
{
	struct hd_plan had;
	enum hd_err err;

	if (run->options.map) {
		err = read_plan(run, job, diag);
		return err ? err : take_made(run, diag);
	}
	run->stages.drains = run->stages.delayed ? hd_task_drains(run->task, run->stages.p) : NULL;
	run->stages.overlap = run->stages.delayed && !run->stages.drains;
	const bool has = (is_auto(run) || run->stages.p) && had_plan(run, job, &had);
	if (is_auto(run) && has && is_of_one_process(&had)) {
		run->plan = had;
		return take_made(run, diag);
	}
	const bool cuts_stay = run->stages.listed || run->stages.ncopies;
	if (run->stages.p && has && had.first && had.nstages == hd_run_stages_n(&run->stages) &&
		!run->stages.listed)
		run->stages.first = had.first;
	else if (run->costs && (is_auto(run) || (hd_run_stages_n(&run->stages) > 1 && !cuts_stay)))
		return choose(run, job, diag);
	if (is_auto(run) && width_of(run) > 1) {
		err = hd_run_stages(&run->stages, run->job, run->options.worker.ndevices, cores_of(run),
			diag);
		if (err)
			return err;
	}
	err = run->stages.p ? hd_run_stages_plan(&run->plan, &run->stages, job, run->task, run->costs,
		&run->arena, diag) :
		hd_plan_data(&run->plan, job, run->options.worker.ndevices, NULL, &run->arena, diag);
	return err ? err : take_made(run, diag);
}

/* ---- kept */

static enum hd_err keep_plan(struct hd_run *run, struct hd_diag *diag)
{
	if (!run->dir)
		return HD_OK;
	enum hd_err err = hd_plan_number(&run->plan.number, &run->plan, run->fs, run->dir->path, diag);
	return err ? err : hd_plan_keep(&run->plan, run->fs, run->dir->path, diag);
}

/* What is not written is only said on the screen. */
static void keep_forecast(struct hd_run *run, const char *what)
{
	struct hd_diag why = { "" };

	if (run->dir && run->forecast.step_ns > 0 &&
		hd_forecast_keep(&run->forecast, run->dir, run->plan.number, what, &why))
		hd_run_note(run, "warning", "what plan %u was %s to take could not be written: %s",
			run->plan.number, what, why.text);
}

static void say(struct hd_run *run)
{
	const struct hd_worker_spec *spec = &run->options.worker;

	hd_run_note(run, "plan", "%u virtual nodes on %u device%s x %u thread%s%s%s", run->job->nvns,
		spec->ndevices, spec->ndevices == 1 ? "" : "s", spec->nthreads, spec->nthreads == 1 ?
			"" : "s",
		run->plan.first ? ", " : "", run->plan.first ? run->plan.cause : "");
	if (run->forecast.step_ns > 0)
		hd_run_note(run, "predicted", "%.3f ms a step%s", run->forecast.step_ns * 1e-6,
			run->forecast.cores ? ", on fewer cores than devices" : "");
}

/* Stages that were cut by measured costs, one after the other of a pipeline. */
static enum hd_err watch_begin(struct hd_run *run, struct hd_diag *diag)
{
	const uint32_t n = run->plan.nranks;

	run->drift.expected_ns = NULL;
	if (!run->plan.first || run->forecast.step_ns <= 0 || !run->stages.p || run->stages.listed)
		return HD_OK;
	run->was_ns = hd_arena_take(&run->arena, n, sizeof *run->was_ns);
	run->busy_ns = hd_arena_take(&run->arena, n, sizeof *run->busy_ns);
	run->found = hd_arena_take(&run->arena, n, sizeof *run->found);
	if (!run->was_ns || !run->busy_ns || !run->found)
		return hd_fail(diag, HD_E_NOMEM, "no memory to watch %u ranks", n);
	return hd_stage_drift_init(&run->drift, n, run->forecast.busy_ns, &run->arena, diag);
}

enum hd_err hd_run_plan_adopt(struct hd_run *run, struct hd_diag *diag)
{
	const struct hd_plan_job job = hd_worker_plan_job(run->worker);
	enum hd_err err = take(run, &job, diag);

	if (!err && (!run->plan.cause || !*run->plan.cause))
		run->plan.cause = "start of the run";
	err = err ? err : keep_plan(run, diag);
	if (err)
		return err;
	say(run);
	keep_forecast(run, HD_KEPT_PREDICTED);
	return watch_begin(run, diag);
}

/* ---- drift */

static enum hd_err alone(struct hd_run *run, const struct hd_choose_ask *ask, const struct hd_plan *plan,
	double *step_ns, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_forecast as_is;
	enum hd_err err = hd_forecast_make(&as_is, plan, run->costs, &ask->setting, arena, diag);

	*step_ns = err ? 0 : as_is.step_ns;
	return err;
}

/* The new plan's memory is the run's from here on. */
static enum hd_err change_to(struct hd_run *run, const struct hd_plan_choice *choice, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_plan before = run->plan;
	struct hd_diag why = { "" };

	run->plan = choice->plan;
	if (hd_worker_adopt(run->worker, &run->plan, &why)) {
		run->plan = before;
		return hd_fail(diag, HD_E_REFUSED, "%s", why.text);
	}
	struct hd_arena old = run->arena;
	run->arena = *arena;
	*arena = old;
	run->stages = choice->stages;
	run->forecast = choice->forecast;
	run->times = (struct hd_times){ .n = 0 };
	return HD_OK;
}

static void say_change(struct hd_run *run, const double *speed, double now_ns)
{
	uint32_t slowest = 0;

	for (uint32_t r = 1; r < run->plan.nranks; r++)
		slowest = speed[r] < speed[slowest] ? r : slowest;
	hd_run_note(run, "plan",
		"stages drift: device %u is at %.2f of the speed that its stage was cut for; "
		"%s, %.3f ms a step predicted in place of %.3f", slowest, speed[slowest], run->plan.cause,
		run->forecast.step_ns * 1e-6, now_ns * 1e-6);
}

enum hd_err hd_run_plan_again(struct hd_run *run, const double *found, bool *taken, struct hd_diag *diag)
{
	const uint32_t n = run->plan.nranks;
	struct hd_run_stages shape = run->stages;
	struct hd_plan_choices choices;
	struct hd_diag why = { "" };
	struct hd_arena arena;
	double now_ns = 0;

	*taken = false;
	hd_arena_init(&arena, 0);
	double *speed = hd_arena_take(&arena, n, sizeof *speed);
	for (uint32_t r = 0; speed && r < n; r++)
		speed[r] = (run->speed ? run->speed[r] : 1) * found[r];
	shape.first = NULL;
	const struct hd_choose_ask ask = { .task = run->task, .costs = run->costs,
		.job = hd_worker_plan_job(run->worker), .ndevices = n, .width = hd_plan_width(&run->plan),
		.setting = { .cores = run->forecast.cores, .speed = speed },
		.memory_bytes = run->options.worker.memory_limit_bytes * hd_plan_width(&run->plan),
		.shape = &shape };
	enum hd_err err = speed ? alone(run, &ask, &run->plan, &now_ns, &arena, &why) : HD_E_NOMEM;
	err = err ? err : hd_choose_plan(&choices, &ask, &arena, &why);
	if (!err && choices.at[0].forecast.step_ns < now_ns * (1 - HD_CHOOSE_MARGIN))
		err = change_to(run, &choices.at[0], &arena, &why);
	else if (!err)
		err = HD_E_INVAL;
	*taken = !err;
	if (*taken) {
		run->speed = speed;
		say_change(run, found, now_ns);
		err = keep_plan(run, diag);
		keep_forecast(run, HD_KEPT_PREDICTED);
		err = err ? err : watch_begin(run, diag);
	} else
		err = err == HD_E_BUG ? hd_fail(diag, err, "%s", why.text) : HD_OK;
	hd_arena_finish(&arena);
	return err;
}

enum hd_err hd_run_plan_watch(struct hd_run *run, struct hd_diag *diag)
{
	bool taken = false;

	if (run->times.n == 1)
		hd_forecast_begin(&run->forecast, &run->plan, run->worker);
	if (!run->drift.expected_ns)
		return HD_OK;
	for (uint32_t r = 0; r < run->plan.nranks; r++) {
		const double all = hd_forecast_busy_ns(&run->plan, run->worker, r);
		run->busy_ns[r] = all - run->was_ns[r];
		run->was_ns[r] = all;
	}
	if (!hd_stage_drift_step(&run->drift, run->busy_ns, run->found))
		return HD_OK;
	enum hd_err err = hd_run_plan_again(run, run->found, &taken, diag);
	if (!err && !taken)
		hd_stage_drift_vain(&run->drift);
	return err;
}

static void measure(struct hd_run *run)
{
	struct hd_forecast *f = &run->forecast;

	if (f->step_ns <= 0)
		return;
	hd_forecast_measure(f, &run->plan, run->worker);
	f->nsteps = run->times.n;
	f->measured_ns = hd_times_quantile(&run->times, 0.5) * 1e6;
	f->least_ns = hd_times_quantile(&run->times, 0) * 1e6;
}

void hd_run_plan_end(struct hd_run *run)
{
	measure(run);
	if (run->times.n)
		keep_forecast(run, HD_KEPT_MEASURED);
}

const struct hd_forecast *hd_run_forecast(struct hd_run *run)
{
	measure(run);
	return run->forecast.step_ns > 0 ? &run->forecast : NULL;
}
