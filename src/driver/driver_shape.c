#include "driver/driver_int.h"

#include "job/sets.h"
#include "run/kept_forecast.h"
#include "run/kept_job.h"
#include "run/pipes_settled.h"

/* Another shape of the pipelines of a run that goes on:
 * {"do":"shape","set":["parallel.stages=2"],"workers":4}. It is in the run's job before the machine hears
 * of it: a coordinator that takes over, workers that come later and a resume read it there. */

static enum hd_err read_sets(struct hd_job_sets *sets, const struct hd_json *ask, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_json *set = NULL;
	const char *word = NULL;
	enum hd_err err = hd_json_get(ask, "set", HD_JSON_ARRAY, &set, diag);

	err = err ? err : hd_job_sets_init(sets, (uint32_t)hd_json_count(set), arena, diag);
	for (size_t i = 0; !err && i < hd_json_count(set); i++) {
		err = hd_json_as_text(hd_json_item(set, i), &word, diag);
		err = err ? err : hd_job_sets_word(sets, word, diag);
	}
	return err;
}

enum hd_err driver_has_pipelines(const struct hd_pipes *pipes, const struct hd_job *job, struct hd_diag *diag)
{
	const uint32_t least = hd_job_least_pipelines(job);

	return least == 1 || (pipes->shape.nstages && least <= pipes->most) ? HD_OK : hd_fail(diag,
		HD_E_INVAL, "elastic.resilience: %s keeps %u pipelines, and this run has %u at most: give it "
		"more virtual nodes or more replicas, or another way", hd_job_text(job, HD_JOB_RESILIENCE),
		least, pipes->shape.nstages ? pipes->most : 0);
}

/* Workers have as many devices as those that are here. */
static enum hd_err has_devices(const struct driver *c, const struct hd_pipes *pipes, int64_t nworkers,
	struct hd_diag *diag)
{
	const uint32_t width = pipes->shape.width, v = pipes->stages.v, t = hd_pipes_each(pipes),
		n = driver_devices(c) / t;

	if (!n)
		return hd_fail(diag, HD_E_INVAL,
			"a rank of this run takes %u devices of a worker, and none has so many", t);
	if ((uint64_t)nworkers * n < width)
		return hd_fail(diag, HD_E_INVAL,
			"a pipeline would have %u devices, and %lld workers have %u: ask for %u workers at "
			"once, as in `heddle scale RUN %u -s ...`, or for fewer stages", width * t,
			(long long)nworkers,
			(uint32_t)nworkers * n * t, (width + n - 1) / n, (width + n - 1) / n);
	return (n < width ? n : width) * v <= HD_MAX_PASSES ? HD_OK : hd_fail(diag, HD_E_INVAL,
		"%u ranks of a worker with %u stages each: at most %d stages lie on one worker", n, v,
		HD_MAX_PASSES);
}

static enum hd_err make(struct driver *c, struct hd_pipes *pipes, struct hd_job *job, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_task *task = hd_arena_take(arena, 1, sizeof *task);

	if (!task)
		return hd_fail(diag, HD_E_NOMEM, "no memory for another shape");
	enum hd_err err = hd_pipes_change(job, c->config.shape.width / hd_view_groups(&c->config.shape),
		driver_devices(c), arena, diag);
	err = err ? err : hd_job_spreads(job, diag);
	if (err)
		return err;
	*task = *c->spec->task;
	task->job = job;
	return hd_pipes_make(pipes, task, arena, diag);
}

static void reshape_to(struct driver *c, const struct hd_view_shape *shape, uint32_t most)
{
	c->config.shape = *shape;
	c->config.pipes = most;
	c->redrawn.nstages = 0;
	c->reshaped = true;
	driver_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_RESHAPE, .shape = &c->config.shape,
		.n = most, .least = c->config.least });
}

static enum hd_err with_redundancy(struct hd_view_shape *shape, struct driver *c, enum hd_redundancy mode,
	struct hd_diag *diag)
{
	struct hd_view_shape made = c->config.shape;
	const struct hd_pipes *pipes;

	hd_shape_make_redundant(&made, mode);
	enum hd_err err = hd_pipe_set_find(&c->pipes, &made, &pipes, diag);
	if (!err)
		*shape = pipes->shape;
	return err;
}

enum hd_err driver_make_redundant(struct driver *c, enum hd_redundancy mode, struct hd_diag *diag)
{
	struct hd_view_shape shape;
	enum hd_err err = with_redundancy(&shape, c, mode, diag);

	if (!err)
		reshape_to(c, &shape, c->config.pipes);
	return err;
}

static bool is_set(const struct hd_job *job, enum hd_job_key key)
{
	return job->value[key].origin == HD_FROM_SET;
}

/* Redundancy alone: the stages stay as they are cut. False: other keys were set, too. */
static bool redundancy_alone(const struct hd_job *job)
{
	bool is = is_set(job, HD_JOB_REDUNDANCY) || is_set(job, HD_JOB_RESILIENCE);

	for (int key = 0; key < HD_JOB_NKEYS; key++)
		is &= key == HD_JOB_REDUNDANCY || key == HD_JOB_RESILIENCE ||
			!is_set(job, (enum hd_job_key)key);
	return is;
}

/* A mode that is asked for stays; by-notice leaves it to the losses. */
static void settle_resilience(struct hd_job *job)
{
	struct hd_job_value *by = &job->value[HD_JOB_RESILIENCE];

	if (!is_set(job, HD_JOB_REDUNDANCY) || is_set(job, HD_JOB_RESILIENCE))
		return;
	by->i = HD_RESILIENCE_GIVEN;
	by->text = "given";
}

static enum hd_err change_redundancy(struct driver *c, const struct hd_job *job, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_kept_value kept[] = { { HD_JOB_REDUNDANCY, job->value[HD_JOB_REDUNDANCY] },
		{ HD_JOB_RESILIENCE, job->value[HD_JOB_RESILIENCE] } };
	struct hd_view_shape shape;
	enum hd_err err = with_redundancy(&shape, c, (enum hd_redundancy)kept->value.i, diag);

	if (!err && hd_job_least_pipelines(job) > c->config.pipes)
		err = hd_fail(diag, HD_E_INVAL, "elastic.resilience: %s keeps %u pipelines, and this run has "
			"%u at most: ask for parallel.replicas, too", kept[1].value.text,
			hd_job_least_pipelines(job), c->config.pipes);
	err = err ? err : hd_kept_job_put(c->spec->dir, kept, sizeof kept / sizeof *kept, arena, diag);
	if (!err) {
		c->config.least = hd_job_least_pipelines(job);
		reshape_to(c, &shape, c->config.pipes);
	}
	return err;
}

/* While by-notice has it off other stages have none either; auto's mode goes with them. */
static void leave_to_guard(const struct driver *c, const struct hd_job *job, struct hd_view_shape *shape)
{
	if ((c->guards || c->judges) && !is_set(job, HD_JOB_REDUNDANCY) && !is_set(job, HD_JOB_RESILIENCE))
		hd_shape_make_redundant(shape, hd_shape_redundancy(&c->config.shape));
}

static enum hd_err change_stages(struct driver *c, struct hd_job *job, const struct hd_json *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_pipes *kept;
	struct hd_pipes pipes;
	int64_t nworkers = c->config.target;
	enum hd_err err = make(c, &pipes, job, arena, diag);

	if (!err)
		leave_to_guard(c, job, &pipes.shape);
	if (!err && hd_json_find(ask, "workers"))
		err = hd_json_get_i64(ask, "workers", 1, HD_MAX_MEMBERS, &nworkers, diag);
	err = err ? err : driver_has_pipelines(&pipes, job, diag);
	err = err ? err : has_devices(c, &pipes, nworkers, diag);
	err = err ? err : hd_pipe_set_find(&c->pipes, &pipes.shape, &kept, diag);
	err = err ? err : hd_pipes_keep_shape(c->spec->dir, job, &pipes, arena, diag);
	if (!err) {
		c->config.least = driver_guard_least(c, &pipes, job);
		reshape_to(c, &pipes.shape, pipes.most);
	}
	return err;
}

static enum hd_err change(struct driver *c, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_pipes *pipes;
	struct hd_job_sets sets;
	struct hd_job *job = NULL;
	enum hd_err err = read_sets(&sets, ask, arena, diag);

	err = err ? err : hd_kept_job_read(&job, c->spec->dir, sets.set, sets.n, arena, diag);
	if (!err)
		settle_resilience(job);
	if (!err && redundancy_alone(job))
		err = change_redundancy(c, job, arena, diag);
	else if (!err)
		err = change_stages(c, job, ask, arena, diag);
	if (!err && (is_set(job, HD_JOB_REDUNDANCY) || is_set(job, HD_JOB_RESILIENCE)))
		driver_guard_begin(c, job);
	err = err ? err : hd_pipe_set_find(&c->pipes, &c->config.shape, &pipes, diag);
	if (err)
		return err;
	hd_json_put_i64(w, "stages", pipes->shape.nstages / pipes->groups);
	hd_json_put_i64(w, "devices", pipes->shape.width * hd_pipes_each(pipes));
	hd_json_put_text(w, "schedule", pipes->stages.schedule);
	hd_json_put_text(w, "redundancy", hd_redundancy_names[hd_shape_redundancy(&pipes->shape)]);
	return HD_OK;
}

enum hd_err driver_answer_shape(struct driver *c, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	struct hd_arena arena;

	if (!c->config.shape.nstages)
		return hd_fail(diag, HD_E_INVAL,
			"this run has no pipelines: stages, schedule and replicas are those of a run with "
			"parallel.mode: pipeline");
	if (!c->machine || !driver_devices(c))
		return hd_fail(diag, HD_E_INVAL,
			"no worker of the run is here yet: try again when it has begun");
	hd_arena_init(&arena, 0);
	enum hd_err err = change(c, ask, w, &arena, diag);
	hd_arena_finish(&arena);
	return err;
}

/* ---- stages that drift */

static enum hd_err keep_settled(struct driver *c, const struct hd_pipes *pipes, uint32_t ndevices,
	struct hd_diag *diag)
{
	const struct hd_pipes_settling how = { pipes->stages.recompute, ndevices };
	struct hd_kept_value kept = { HD_JOB_PAR_SETTLED, c->spec->task->job->value[HD_JOB_PAR_SETTLED] };
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	enum hd_err err = hd_pipes_settled(&kept.value, &pipes->shape, how, &arena, diag);
	err = err ? err : hd_kept_job_put(c->spec->dir, &kept, 1, &arena, diag);
	hd_arena_finish(&arena);
	return err;
}

/* As of a shape that is asked for: first in the run's job. */
static enum hd_err change_to(struct driver *c, const struct hd_view_shape *shape, uint32_t ndevices,
	struct hd_diag *diag)
{
	const struct hd_pipes *pipes;
	enum hd_err err = hd_pipe_set_find(&c->pipes, shape, &pipes, diag);

	err = err ? err : keep_settled(c, pipes, ndevices, diag);
	if (err)
		return err;
	c->config.shape = pipes->shape;
	driver_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_RESHAPE, .shape = &c->config.shape,
		.n = c->config.pipes, .least = c->config.least });
	return HD_OK;
}

void driver_keep_measured(struct driver *c)
{
	struct hd_redraw *redraw = c->spec->redraw;
	struct hd_forecast forecast;
	struct hd_diag why = { "" };

	if (redraw && hd_redraw_measured(redraw, &forecast) &&
		hd_forecast_keep(&forecast, c->spec->dir, redraw->epoch, HD_KEPT_MEASURED, &why))
		driver_note(c, "warning", HD_NOBODY, why.text);
}

void driver_keep_predicted(struct driver *c, const struct hd_view *view, const struct hd_pipes *pipes)
{
	struct hd_forecast forecast;
	struct hd_diag why = { "" };
	struct hd_arena arena;

	if (!c->spec->redraw)
		return;
	hd_arena_init(&arena, 0);
	if (hd_redraw_predict(c->spec->redraw, view, pipes, &forecast, &arena) &&
		hd_forecast_keep(&forecast, c->spec->dir, view->epoch, HD_KEPT_PREDICTED, &why))
		driver_note(c, "warning", HD_NOBODY, why.text);
	hd_arena_finish(&arena);
}

void driver_redraw(struct driver *c, uint64_t step, const struct hd_step_news *news)
{
	const struct hd_view *view = hd_coordinator_view(c->machine);
	const struct hd_pipes *pipes;
	struct hd_view_shape shape;
	struct hd_diag why = { "" };
	struct hd_co_status status;
	char said[HD_REDRAW_WORDS];

	hd_coordinator_status(c->machine, &status);
	if (!c->spec->redraw || !view || hd_pipe_set_find(&c->pipes, &view->shape, &pipes, NULL))
		return;
	const bool changes = !hd_view_same_shape(&view->shape, &c->config.shape);
	if (view->epoch != c->spec->redraw->epoch)
		driver_keep_measured(c);          /* of the view before */
	const struct hd_redraw_step s = { step, (double)news->step_ns * 1e-6, view, pipes, &c->reshape.pace,
		changes || status.halting };
	if (!changes)
		c->redrawn.nstages = 0;
	if (!hd_redraw_step(c->spec->redraw, &s, &shape, said)) {
		if (*said)
			driver_note(c, "warning", HD_NOBODY, said);
		return;
	}
	const struct hd_view_shape was = view->shape;
	enum hd_err err = change_to(c, &shape, view->nranks, &why);
	driver_note(c, err ? "warning" : "redraw", HD_NOBODY, err ? why.text : said);
	hd_redraw_kept(c->spec->redraw, view, !err);
	if (!err)
		c->redrawn = was;
}

/* The coordinator before this one had them cut again: the run's job has what was settled last, and the view
 * has not. What a user asks for is not settled; redundancy that differs is a user's wish, or by-notice had it
 * off; with fewer stages a run goes on after a loss. */
static bool inherits_redraw(const struct driver *c, const struct hd_view *view)
{
	const struct hd_view_shape *wanted = &c->config.shape;
	struct hd_view_shape had = view->shape;
	struct hd_job_settled settled;

	if (c->guards || c->judges)
		hd_shape_make_redundant(&had, hd_shape_redundancy(wanted));
	return !c->reshaped && had.nstages == wanted->nstages && !hd_view_same_shape(&had, wanted) &&
		hd_shape_redundancy(&had) == hd_shape_redundancy(wanted) &&
		hd_job_has_settled(c->spec->task->job, &settled);
}

void driver_redraw_refused(struct driver *c)
{
	const struct hd_view *view = c->machine ? hd_coordinator_view(c->machine) : NULL;
	struct hd_diag why = { "" };

	if (!view || (!c->redrawn.nstages && !inherits_redraw(c, view)))
		return;
	const struct hd_view_shape was = c->redrawn.nstages ? c->redrawn : view->shape;
	c->redrawn.nstages = 0;
	if (c->spec->redraw)
		c->spec->redraw->off = true;
	enum hd_err err = change_to(c, &was, view->nranks, &why);
	driver_note(c, err ? "warning" : "redraw", HD_NOBODY, err ? why.text :
		"a worker refused stages that were cut again: the run goes on with those it had, and they "
		"are cut again no more");
}
