#include "run/pipes_choose.h"

#include <string.h>

#include "pipeline/generate.h"
#include "run/pipes_forecast.h"

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory to choose pipelines");
}

static struct hd_choose_ask as_one_process(const struct hd_task *task, const struct hd_run_costs *costs,
	uint32_t ndevices, const struct hd_forecast_setting *setting)
{
	return (struct hd_choose_ask){ .task = task, .costs = costs, .ndevices = ndevices,
		.job = hd_plan_job_whole(task->job->nvns, task->layout.nchunks), .setting = *setting,
		.alike = true };
}

static bool shape_of(struct hd_view_shape *shape, const struct hd_run_stages *s, uint32_t redundancy)
{
	const uint32_t n = s->groups ? s->groups : 1, t = s->t / n;

	*shape = (struct hd_view_shape){ .nstages = hd_run_stages_n(s) * n, .width = s->p * n,
		.again = s->recompute, .each = (uint8_t)(t > 1 ? t : 0), .groups = (uint8_t)(n > 1 ? n : 0) };
	while (hd_schedule_kinds[shape->schedule].name &&
		strcmp(hd_schedule_kinds[shape->schedule].name, s->schedule) != 0)
		shape->schedule++;
	if (!hd_schedule_kinds[shape->schedule].name || shape->nstages > HD_STAGE_BITS ||
		(!s->first && hd_run_stages_n(s) > 1))
		return false;
	hd_shape_make_redundant(shape, redundancy);
	for (uint32_t i = 0, at = 0; i < s->ncopies; at += s->copies[i++])
		shape->place[i] = (uint8_t)at;
	for (uint32_t i = 0; i < shape->nstages && s->first; i++)
		shape->first[i] = s->first[i / n];
	return true;
}

/* The places are those of the schedule; *takes: the job can have it in a view. */
static enum hd_err complete(struct hd_view_shape *shape, const struct hd_task *task, bool *takes,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_diag why = { "" };
	struct hd_pipes pipes;
	enum hd_err err = hd_pipes_of_shape(&pipes, task, shape, arena, &why);

	*takes = !err;
	if (err == HD_E_NOMEM || err == HD_E_BUG)
		return hd_fail(diag, err, "%s", why.text);
	if (!err)
		*shape = pipes.shape;
	return HD_OK;
}

static enum hd_err add(struct hd_pipes_choices *to, const struct hd_plan_choice *from,
	const struct hd_pipes_ask *ask, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_job *job = ask->task->job;
	const struct hd_run_stages *s = &from->stages;
	struct hd_pipes_choice made = { .step_ns = from->forecast.step_ns, .recompute = s->recompute };
	struct hd_text about;
	/* of data parallel: a worker a virtual node at most, each with all state */
	bool takes = hd_job_int(job, HD_JOB_SYNC) != HD_SYNC_STAGES && ask->nworkers <= job->nvns;
	enum hd_err err = HD_OK;

	if (s->p) {
		takes = shape_of(&made.shape, s, (uint32_t)hd_job_int(job, HD_JOB_REDUNDANCY));
		err = takes ? complete(&made.shape, ask->task, &takes, arena, diag) : HD_OK;
	}
	if (err || !takes)
		return err;
	hd_text_init(&about, arena);
	hd_plan_choice_name(from, &about);
	made.about = about.at;
	to->at[to->n++] = made;
	return about.full ? no_memory(diag) : HD_OK;
}

static void explain(struct hd_pipes_choices *c, const struct hd_pipes_ask *ask,
	const struct hd_plan_choices *found)
{
	hd_text_addf(&c->why, "%s: %.3f ms a step predicted on %u workers, by ops measured in %.1f s\n",
		c->at[0].about, c->at[0].step_ns * 1e-6, ask->nworkers, ask->costs->took_s);
	for (uint32_t i = 1; i < c->n && i < HD_CHOICES_SHOWN; i++)
		hd_text_addf(&c->why, "%s: %.3f ms, %.3f times the choice\n", c->at[i].about,
			c->at[i].step_ns * 1e-6, c->at[i].step_ns / c->at[0].step_ns);
	hd_plan_choices_drain(found, ask->task, &c->why);
}

enum hd_err hd_pipes_choose(struct hd_pipes_choices *choices, const struct hd_pipes_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t all = ask->nworkers * ask->ndevices;
	const struct hd_forecast_setting setting = { .cores = hd_forecast_shared(ask->cores, all),
		.holders = hd_pipes_holders(ask->task->job, ask->ndevices) };
	struct hd_choose_ask how = as_one_process(ask->task, ask->costs, all, &setting);
	struct hd_pipes_choices made = { .n = 0 };
	struct hd_plan_choices found;

	how.memory_bytes = ask->memory_bytes;
	how.again = ask->again;
	how.open = !hd_job_has_tensor(ask->task->job);
	how.each = ask->ndevices;
	enum hd_err err = hd_choose_plan(&found, &how, arena, diag);
	if (err)
		return err;
	made.at = hd_arena_take(arena, (size_t)found.n + 1, sizeof *made.at);
	if (!made.at)
		return no_memory(diag);
	for (uint32_t i = 0; i < found.n && !err; i++)
		err = add(&made, &found.at[i], ask, arena, diag);
	if (err)
		return err;
	if (!made.n)
		return hd_fail(diag, HD_E_INVAL,
			"no pipelines that the job's keys ask for fit %u workers of %u device%s",
			ask->nworkers, ask->ndevices, ask->ndevices == 1 ? "" : "s");
	hd_text_init(&made.why, arena);
	explain(&made, ask, &found);
	*choices = made;
	return made.why.full ? no_memory(diag) : HD_OK;
}

enum hd_err hd_pipes_cut_again(struct hd_view_shape *shape, const struct hd_pipes *pipes, uint32_t npipes,
	const struct hd_task *task, const struct hd_run_costs *costs,
	const struct hd_forecast_setting *setting, uint64_t memory_bytes, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const uint32_t width = pipes->shape.width, cores = setting->cores / npipes;
	struct hd_run_stages same = pipes->stages;
	double *slowest = hd_arena_take(arena, width, sizeof *slowest);
	const struct hd_forecast_setting one = { .speed = setting->speed ? slowest : NULL,
		.cores = setting->cores && !cores ? 1 : cores, .holders = setting->holders };
	struct hd_choose_ask how = as_one_process(task, costs, width, &one);
	struct hd_plan_choices found;
	bool takes = false;

	if (pipes->stages.ncopies)
		return hd_fail(diag, HD_E_INVAL, "stages with copies are cut once");
	if (!slowest)
		return no_memory(diag);
	for (uint32_t r = 0; setting->speed && r < npipes * width; r++)
		if (r < width || setting->speed[r] < slowest[r % width])
			slowest[r % width] = setting->speed[r];
	how.job = hd_plan_job_whole((how.job.nvns + npipes - 1) / npipes, task->layout.nchunks);
	same.d = 1;
	same.first = NULL;
	how.shape = &same;
	how.memory_bytes = memory_bytes;
	enum hd_err err = hd_choose_plan(&found, &how, arena, diag);
	for (uint32_t i = 0; !err && !takes && i < found.n; i++) {
		struct hd_view_shape made;
		if (shape_of(&made, &found.at[i].stages, hd_shape_redundancy(&pipes->shape)))
			err = complete(&made, task, &takes, arena, diag);
		if (takes)
			*shape = made;
	}
	return err || takes ? err : hd_fail(diag, HD_E_INVAL, "these stages cannot be cut again");
}
