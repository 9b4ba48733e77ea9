#include "driver/redraw.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void hd_redraw_init(struct hd_redraw *r, const struct hd_redraw_spec *spec)
{
	*r = (struct hd_redraw){ .spec = *spec };
	hd_arena_init(&r->arena, 0);
}

void hd_redraw_finish(struct hd_redraw *r)
{
	hd_arena_finish(&r->arena);
	hd_spent_finish(&r->said);
}

/* ---- speeds */

static uint32_t nth_of(const struct hd_view *view, uint32_t rank)
{
	uint32_t nth = 0;

	for (uint32_t k = 0; k < rank; k++)
		nth += view->rank[k].worker == view->rank[rank].worker;
	return nth;
}

static double speed_of(const struct hd_redraw *r, const struct hd_view *view, uint32_t rank)
{
	const uint32_t worker = view->rank[rank].worker, nth = nth_of(view, rank);

	for (uint32_t i = 0; i < r->nspeeds; i++)
		if (r->speed[i].worker == worker && r->speed[i].nth == nth)
			return r->speed[i].speed;
	return 1;
}

/* Ids are never used again: of too many the first is gone. */
static void set_speed(struct hd_redraw *r, const struct hd_view *view, uint32_t rank, double speed)
{
	const uint32_t worker = view->rank[rank].worker, nth = nth_of(view, rank);
	uint32_t i = 0;

	while (i < r->nspeeds && (r->speed[i].worker != worker || r->speed[i].nth != nth))
		i++;
	if (i == HD_VIEW_RANKS)
		i = 0;
	r->nspeeds += i == r->nspeeds;
	r->speed[i].worker = worker;
	r->speed[i].nth = nth;
	r->speed[i].speed = speed;
}

/* Of whole ranks: one that lies on several workers is as slow as its slowest. NULL: no memory. */
static double *speeds_of(const struct hd_redraw *r, const struct hd_view *view, const double *found,
	struct hd_arena *arena)
{
	double *speed = hd_arena_take(arena, view->nranks, sizeof *speed);

	const uint32_t groups = hd_view_groups(&view->shape);

	for (uint32_t k = 0; speed && k < view->nranks; k++) {
		const double is = speed_of(r, view, k) * (found ? found[k] : 1);
		double *to = &speed[k / groups];
		*to = k % groups == 0 || is < *to ? is : *to;
	}
	return speed;
}

/* ---- the view in force */

static struct hd_forecast_setting setting_of(const struct hd_redraw *r, const struct hd_view *view,
	const double *speed)
{
	uint32_t devices = 1;             /* of the first member, as of all that a run starts */

	while (devices < view->nranks && view->rank[devices].worker == view->rank[0].worker)
		devices++;
	const uint32_t each = hd_view_each(&view->shape);
	return (struct hd_forecast_setting){ .cores = hd_forecast_shared(r->spec.cores, view->nranks * each),
		.speed = speed, .holders = hd_pipes_holders(r->spec.task->job, devices * each) };
}

static enum hd_err predict(const struct hd_redraw *r, struct hd_forecast *forecast,
	const struct hd_view *view, const struct hd_pipes *pipes, const double *speed,
	struct hd_arena *arena)
{
	const struct hd_task *task = r->spec.task;
	const struct hd_plan_job job = hd_plan_job_whole(task->job->nvns, task->layout.nchunks);
	const struct hd_forecast_setting setting = setting_of(r, view, speed);
	struct hd_plan plan;
	enum hd_err err = view->shape.nstages ? hd_pipes_plan(&plan, pipes, view, &job, task, arena, NULL) :
		hd_plan_data(&plan, &job, view->nranks, NULL, arena, NULL);

	err = err ? err : hd_forecast_make(forecast, &plan, r->spec.costs, &setting, arena, NULL);
	if (!err)
		hd_forecast_forget(forecast, &plan);
	return err;
}

static void watch(struct hd_redraw *r, const struct hd_view *view)
{
	const uint32_t n = view->nranks;

	r->busy_ns = NULL;
	if (!r->spec.is_auto || view->shape.nstages < 2 || view->shape.each || view->shape.groups ||
		hd_view_has_copies(&view->shape))
		return;
	double *busy_ns = hd_arena_take(&r->arena, n, sizeof *busy_ns);
	r->found = hd_arena_take(&r->arena, n, sizeof *r->found);
	if (busy_ns && r->found && !hd_stage_drift_init(&r->drift, n, r->forecast.busy_ns, &r->arena, NULL))
		r->busy_ns = busy_ns;
}

bool hd_redraw_predict(const struct hd_redraw *r, const struct hd_view *view, const struct hd_pipes *pipes,
	struct hd_forecast *forecast, struct hd_arena *arena)
{
	const bool known = view->shape.nstages || hd_pipes_whole_is_predicted(r->spec.costs);
	const double *speed = speeds_of(r, view, NULL, arena);

	*forecast = (struct hd_forecast){ .step_ns = 0 };
	if (!known || !speed || predict(r, forecast, view, pipes, speed, arena))
		forecast->step_ns = 0;
	return forecast->step_ns > 0;
}

/* What cannot be predicted is not watched. */
static void look(struct hd_redraw *r, const struct hd_view *view, const struct hd_pipes *pipes)
{
	hd_arena_reset(&r->arena);
	r->epoch = view->epoch;
	r->busy_ns = NULL;
	r->unfit = false;
	const bool known = hd_redraw_predict(r, view, pipes, &r->forecast, &r->arena);
	r->times = (struct hd_times){ .n = 0 };
	r->nworkers = 0;
	for (uint32_t k = 0; k < view->nranks; k++)
		if (!nth_of(view, k))
			r->worker[r->nworkers++] = view->rank[k].worker;
	if (known)
		watch(r, view);
}

/* ---- other cuts */

static bool read_busy(struct hd_redraw *r, const struct hd_redraw_step *s)
{
	for (uint32_t k = 0; k < s->view->nranks; k++) {
		const struct hd_pace_worker *w = hd_pace_of(s->pace, s->view->rank[k].worker);
		const struct hd_pace_step *at = w ? hd_pace_at(w, s->step) : NULL;
		if (!at || at->redone)
			return false;
	}
	return hd_spent_step(&r->said, s->view, s->step, r->busy_ns);
}

static enum hd_err cut(const struct hd_redraw *r, const struct hd_redraw_step *s, const double *speed,
	struct hd_view_shape *shape, double *step_ns, struct hd_arena *arena)
{
	const struct hd_forecast_setting setting = setting_of(r, s->view, speed);
	struct hd_forecast forecast;
	struct hd_view view = *s->view;
	struct hd_pipes pipes;
	enum hd_err err = hd_pipes_cut_again(shape, s->pipes, hd_view_pipes(s->view), r->spec.task,
		r->spec.costs, &setting, r->spec.memory_bytes, arena, NULL);

	err = err ? err : hd_pipes_of_shape(&pipes, r->spec.task, shape, arena, NULL);
	if (err)
		return err;
	view.shape = *shape;
	err = predict(r, &forecast, &view, &pipes, speed, arena);
	*step_ns = err ? 0 : forecast.step_ns;
	return err;
}

static void say(char said[HD_REDRAW_WORDS], const struct hd_view *view, const double *found, double now_ns,
	double then_ns)
{
	uint32_t slowest = 0;

	for (uint32_t k = 1; k < view->nranks; k++)
		slowest = found[k] < found[slowest] ? k : slowest;
	snprintf(said, HD_REDRAW_WORDS, "stages drift: worker %u is at %.2f of the speed that its stage was "
		"cut for; %.3f ms a step predicted with other cuts in place of %.3f",
		view->rank[slowest].worker, found[slowest], then_ns * 1e-6, now_ns * 1e-6);
}

/* Of a worker of the view, the most. */
static uint32_t devices_of(const struct hd_view *view)
{
	uint32_t most = 1;

	for (uint32_t m = 0; m < view->nmembers; m++) {
		uint32_t n = 0;
		for (uint32_t r = 0; r < view->nranks; r++)
			n += view->rank[r].worker == view->member[m];
		most = n > most ? n : most;
	}
	return most * hd_view_each(&view->shape);
}

/* What the spec's owner says of the memory that it takes; said once for a view. */
static bool fits(struct hd_redraw *r, const struct hd_redraw_step *s, const struct hd_view_shape *shape,
	char said[HD_REDRAW_WORDS])
{
	struct hd_diag why = { "" };

	if (!r->spec.fits || r->spec.fits(r->spec.self, shape, s->view->nmembers,
		devices_of(s->view), &why))
		return true;
	if (!r->unfit)
		snprintf(said, HD_REDRAW_WORDS, "stages drift, and cuts for the speeds found do not fit: %s",
			why.text);
	r->unfit = true;
	return false;
}

static bool again(struct hd_redraw *r, const struct hd_redraw_step *s, struct hd_view_shape *shape,
	char said[HD_REDRAW_WORDS])
{
	struct hd_forecast now;
	struct hd_arena arena;
	double then_ns = 0;

	hd_arena_init(&arena, 0);
	const double *speed = speeds_of(r, s->view, r->found, &arena);
	const bool asks = speed && !predict(r, &now, s->view, s->pipes, speed, &arena) &&
		!cut(r, s, speed, shape, &then_ns, &arena) &&
		then_ns < now.step_ns * (1 - HD_CHOOSE_MARGIN) &&
		!hd_view_same_shape(shape, &s->view->shape) && fits(r, s, shape, said);
	if (asks)
		say(said, s->view, r->found, now.step_ns, then_ns);
	else
		hd_stage_drift_vain(&r->drift);
	hd_arena_finish(&arena);
	return asks;
}

bool hd_redraw_step(struct hd_redraw *r, const struct hd_redraw_step *s, struct hd_view_shape *shape,
	char said[HD_REDRAW_WORDS])
{
	*said = '\0';
	if (s->view->epoch != r->epoch)
		look(r, s->view, s->pipes);
	if (r->forecast.step_ns <= 0)
		return false;
	hd_times_add(&r->times, s->step_ms);
	return !s->changes && !r->off && r->busy_ns && read_busy(r, s) &&
		hd_stage_drift_step(&r->drift, r->busy_ns, r->found) && again(r, s, shape, said);
}

/* ---- what it took */

static bool has_said(const struct hd_spent_sums *w)
{
	for (uint32_t i = 0; w && i < w->n; i++)
		if (w->kind[i].n)
			return true;
	return false;
}

/* Rule 7. */
static void add_said(struct hd_redraw *r, struct hd_forecast *f)
{
	uint32_t *missing = hd_arena_take(&r->arena, r->nworkers + (size_t)1, sizeof *missing), n = 0;

	for (uint32_t i = 0; i < r->nworkers; i++) {
		const struct hd_spent_sums *w = hd_spent_of(&r->said, r->worker[i], r->epoch);
		n += has_said(w) ? w->n : 0;
	}
	struct hd_spent_kind *all = hd_arena_take(&r->arena, n + (size_t)1, sizeof *all);
	n = 0;
	for (uint32_t i = 0; all && missing && i < r->nworkers; i++) {
		const struct hd_spent_sums *w = hd_spent_of(&r->said, r->worker[i], r->epoch);
		if (!has_said(w)) {
			missing[f->nmissing++] = r->worker[i];
			continue;
		}
		memcpy(all + n, w->kind, w->n * sizeof *all);
		n += w->n;
	}
	f->missing = missing;
	if (all)
		hd_forecast_measured(f, all, n);
}

bool hd_redraw_measured(struct hd_redraw *r, struct hd_forecast *forecast)
{
	if (r->forecast.step_ns <= 0 || !r->times.n)
		return false;
	*forecast = r->forecast;
	forecast->nsteps = r->times.n;
	forecast->measured_ns = hd_times_quantile(&r->times, 0.5) * 1e6;
	forecast->least_ns = hd_times_quantile(&r->times, 0) * 1e6;
	add_said(r, forecast);
	return true;
}

void hd_redraw_kept(struct hd_redraw *r, const struct hd_view *view, bool kept)
{
	assert(r->busy_ns && view->epoch == r->epoch);
	if (!kept) {
		hd_stage_drift_vain(&r->drift);
		return;
	}
	for (uint32_t k = 0; k < view->nranks; k++) {
		set_speed(r, view, k, speed_of(r, view, k) * r->found[k]);
	}
	r->busy_ns = NULL;                /* rule 3 */
}
