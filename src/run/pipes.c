#include "run/pipes.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "graph/tensor.h"
#include "pipeline/lanes.h"
#include "pipeline/redundancy.h"
#include "run/kept_job.h"
#include "run/kept_plan.h"
#include "run/pipes_listed.h"
#include "run/pipes_shadows.h"

/* A schedule may need more virtual nodes than a pipeline's share has. */
static uint32_t most_pipes(const struct hd_run_stages *s, uint32_t nvns, uint32_t asked)
{
	struct hd_schedule made;
	struct hd_arena arena;
	uint32_t d = 1;
	bool takes = true;

	hd_arena_init(&arena, 0);
	for (; takes && d < asked && d < HD_VIEW_RANKS / (s->p * s->groups); d += takes) {
		const struct hd_schedule_ask ask = hd_run_stages_ask(s, nvns / (d + 1));
		takes = (!s->ncopies || ask.m >= hd_lanes_count(s->copies, s->ncopies)) &&
			!hd_schedule_make(&made, &ask, &arena, NULL);
		hd_arena_reset(&arena);
	}
	hd_arena_finish(&arena);
	return d;
}

/* What the job says, for `ndevices` of one pipeline, or of as many as it asks for. */
static enum hd_err shape_of(struct hd_pipes *pipes, const struct hd_task *task, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_job_value *width = &task->job->value[HD_JOB_PAR_WIDTH];
	const struct hd_job_value *replicas = &task->job->value[HD_JOB_PAR_REPLICAS];
	const struct hd_job_value *stages = &task->job->value[HD_JOB_PAR_STAGES];
	const struct hd_job_value *tensor = &task->job->value[HD_JOB_PAR_TENSOR];
	const uint32_t d = replicas->is_auto ? 1 : (uint32_t)replicas->i;
	const uint32_t t = tensor->is_auto ? 1 : (uint32_t)tensor->i;
	const bool copies = !task->job->value[HD_JOB_PAR_COPIES].is_none;
	struct hd_schedule one;

	if (width->is_auto && stages->is_auto && !copies)
		return hd_fail(diag, HD_E_INVAL,
			"the run does not say how many devices a pipeline has (parallel.stages)");
	struct hd_job job = *task->job;
	/* the width is not 1 for want of a number of stages */
	if (stages->is_auto && width->i > 1)
		job.value[HD_JOB_PAR_MODE].i = HD_PAR_PIPELINE;
	enum hd_err err = hd_run_stages(&pipes->stages, &job, stages->is_auto && !copies ?
		(uint32_t)width->i * d * t : 0, 0, diag);
	if (err)
		return err;
	const struct hd_run_stages *s = &pipes->stages;
	const struct hd_job_value *groups = &task->job->value[HD_JOB_PAR_GROUPS];
	const uint32_t n = pipes->stages.groups = pipes->groups = groups->is_auto ? 1 : (uint32_t)groups->i;
	if (s->t % n)
		return hd_fail(diag, HD_E_INVAL, "%u devices of a rank (parallel.tensor) on %u workers "
			"(parallel.groups): the workers must divide the devices", s->t, n);
	pipes->most = most_pipes(s, task->job->nvns, replicas->is_auto ? UINT32_MAX : d);
	if (hd_run_stages_n(s) * n > HD_STAGE_BITS)
		return hd_fail(diag, HD_E_INVAL,
			"%u stages, each on %u workers; over workers there are at most %d",
			hd_run_stages_n(s), n, HD_STAGE_BITS / n);
	/* where a schedule puts its stages does not depend on the virtual nodes */
	const struct hd_schedule_ask ask = hd_run_stages_ask(s, task->job->nvns);
	err = hd_schedule_make(&one, &ask, arena, diag);
	if (err)
		return err;
	if (s->t / n > UINT8_MAX)
		return hd_fail(diag, HD_E_INVAL, "%u devices of a rank on one worker; at most %d", s->t / n,
			UINT8_MAX);
	pipes->shape = (struct hd_view_shape){ .nstages = one.nstages * n, .width = s->p * n,
		.each = (uint8_t)(s->t > n ? s->t / n : 0), .groups = (uint8_t)(n > 1 ? n : 0),
		.again = s->recompute };
	while (strcmp(hd_schedule_kinds[pipes->shape.schedule].name, s->schedule) != 0)
		pipes->shape.schedule++;
	hd_shape_make_redundant(&pipes->shape, (uint32_t)hd_job_int(task->job, HD_JOB_REDUNDANCY));
	for (uint32_t i = 0, at = 0; i < pipes->shape.nstages; i++) {
		pipes->shape.place[i] = (uint8_t)(s->ncopies ? at : one.place[i / n] * n + i % n);
		at += s->ncopies ? s->copies[i] : 0;
	}
	return pipes->shape.place[0] == 0 ? HD_OK : hd_fail(diag, HD_E_INVAL,
		"%s begins on device %u of its pipeline; over workers stage 0 is on the first", s->schedule,
		pipes->shape.place[0]);
}

static enum hd_err weigh(struct hd_pipes *pipes, const struct hd_task *task, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const uint64_t vectors = 1 + hd_optims[task->optim.kind].nslots + task->delays.most;

	pipes->bytes = hd_arena_take(arena, pipes->buckets.n, sizeof *pipes->bytes);
	if (!pipes->bytes)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the sizes of %u buckets", pipes->buckets.n);
	for (uint32_t b = 0; b < pipes->buckets.n; b++)
		pipes->bytes[b] = hd_layout_bucket(&task->layout, b).len * sizeof(float) * vectors;
	return HD_OK;
}

/* Of state by stages no worker has the norm of a tensor that several hold parts of. */
static enum hd_err find_tensors(struct hd_pipes *pipes, const struct hd_task *task, struct hd_arena *arena,
	struct hd_diag *diag)
{
	if (pipes->buckets.whole || hd_optims[task->optim.kind].unit != HD_UNIT_TENSOR)
		return HD_OK;
	return hd_bucket_tensors_make(&pipes->buckets.tensors, &task->layout, &task->wholes, arena, diag);
}

static enum hd_err has_state_by_stages(const struct hd_pipes *pipes, const struct hd_job *job,
	struct hd_diag *diag)
{
	if (hd_job_int(job, HD_JOB_SYNC) == HD_SYNC_STAGES && pipes->shape.nstages == 1)
		return hd_fail(diag, HD_E_INVAL,
			"comm.sync: stages leaves a worker the state of its stages, and here each has the "
			"whole model: comm.sync: allreduce, or parallel.stages: 2 or more");
	return hd_pipes_shadows_fit(pipes, job, diag);
}

/* `given`: its first nodes; NULL: by the FLOPs. */
static enum hd_err cut(struct hd_pipes *pipes, const struct hd_task *task, const uint32_t *given,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t n = pipes->shape.nstages / pipes->groups;
	uint32_t *first = hd_arena_take(arena, n, sizeof *first);
	struct hd_graph_spread spread;
	struct hd_graph_stages cuts;

	if (!first)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the cuts of %u stages", n);
	const uint32_t *copies = pipes->stages.ncopies ? pipes->stages.copies : NULL;
	enum hd_err err = given ? HD_OK : hd_graph_stages_share(first, copies, n, &task->train, task->rows[0],
		arena, diag);
	for (uint32_t s = 0; s < n && given; s++)
		first[s] = given[s];
	for (uint32_t s = 0; s < pipes->shape.nstages && given; s++)
		pipes->shape.first[s] = given[s / pipes->groups];
	/* as in one process; what a view's shape says stays */
	if (!err && !given && pipes->stages.delayed && !copies && pipes->groups == 1 && n > 1 &&
		!hd_task_drains(task, pipes->stages.p))
		hd_run_stages_hold_last(first, n, task);
	err = err ? err : hd_graph_stages_make(&cuts, &task->train, first, n, arena, diag);
	err = err ? err : hd_graph_spread_make(&spread, &cuts, (uint32_t)hd_job_int(task->job, HD_JOB_SHARDS),
		pipes->stages.t, pipes->groups, arena, diag);
	err = err ? err : hd_stage_buckets_make(&pipes->buckets, &task->layout, &cuts, &spread, arena, diag);
	err = err ? err : weigh(pipes, task, arena, diag);
	if (err)
		return err;
	pipes->stages.first = first;
	pipes->buckets.whole = hd_job_int(task->job, HD_JOB_SYNC) != HD_SYNC_STAGES;
	pipes->buckets.shadows = hd_job_int(task->job, HD_JOB_REDUNDANCY) != HD_REDUNDANCY_NONE;
	err = find_tensors(pipes, task, arena, diag);
	return err ? err : has_state_by_stages(pipes, task->job, diag);
}

static enum hd_err by_keys(struct hd_pipes *pipes, const struct hd_task *task, const uint32_t *first,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_pipes made = { .stages.p = 0 };
	enum hd_err err = shape_of(&made, task, arena, diag);

	err = err ? err : cut(&made, task, first, arena, diag);
	if (!err)
		*pipes = made;
	return err;
}

/* What no view can have. */
static enum hd_err fits_views(const struct hd_listed *l, uint32_t groups, struct hd_diag *diag)
{
	if (l->t % groups)
		return hd_fail(diag, HD_E_INVAL, "the plan has %u devices of a rank (tensor) on %u workers "
			"(parallel.groups): the workers must divide the devices", l->t, groups);
	if ((uint64_t)l->plan.nstages * groups > HD_STAGE_BITS || l->t / groups > UINT8_MAX)
		return hd_fail(diag, HD_E_INVAL, "the plan has %u stages, each on %u workers; over workers "
			"there are at most %d, of %d devices of a rank", l->plan.nstages, groups,
			HD_STAGE_BITS / groups, UINT8_MAX);
	return (uint64_t)l->plan.nranks * groups <= HD_VIEW_RANKS ? HD_OK : hd_fail(diag, HD_E_INVAL,
		"the plan has %u ranks, each on %u workers; over workers there are at most %d",
		l->plan.nranks, groups, HD_VIEW_RANKS / groups);
}

/* Rule 6. */
static enum hd_err by_lists(struct hd_pipes *pipes, const struct hd_task *task, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_job_value *groups = &task->job->value[HD_JOB_PAR_GROUPS];
	const uint32_t n = groups->is_auto ? 1 : (uint32_t)groups->i;
	struct hd_listed *l = hd_arena_take(arena, 1, sizeof *l);

	if (!l)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the lists of a plan");
	enum hd_err err = hd_pipes_listed(l, task->job, arena, diag);
	err = err ? err : fits_views(l, n, diag);
	if (err)
		return err;
	struct hd_pipes made = { .groups = n, .most = l->d,
		.stages = hd_pipes_listed_stages(l, 1, n),
		.shape = { .nstages = l->plan.nstages * n, .width = l->p * n, .schedule = HD_SHAPE_LISTED,
			.each = (uint8_t)(l->t > n ? l->t / n : 0), .groups = (uint8_t)(n > 1 ? n : 0) } };
	hd_shape_make_redundant(&made.shape, (uint32_t)hd_job_int(task->job, HD_JOB_REDUNDANCY));
	for (uint32_t i = 0; i < made.shape.nstages; i++)
		made.shape.place[i] = (uint8_t)(l->place[i / n] * n + i % n);
	err = cut(&made, task, l->plan.first, arena, diag);
	if (!err)
		*pipes = made;
	return err;
}

static void say(struct hd_job *job, enum hd_job_key key, uint32_t i)
{
	job->value[key].is_auto = job->value[key].is_standard = false;
	job->value[key].i = i;
}

static void say_redundancy(struct hd_job *job, uint32_t mode)
{
	say(job, HD_JOB_REDUNDANCY, mode);
	job->value[HD_JOB_REDUNDANCY].text = hd_redundancy_names[mode];
}

static void say_recompute(struct hd_job *job, bool again)
{
	say(job, HD_JOB_PAR_RECOMPUTE, again ? HD_RECOMPUTE_STAGE : HD_RECOMPUTE_NONE);
	job->value[HD_JOB_PAR_RECOMPUTE].text = again ? "stage" : "none";
}

/* The ranks of each stage of a shape with copies; none of another. */
static enum hd_err say_copies(struct hd_job *job, const struct hd_view_shape *shape, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_job_value *value = &job->value[HD_JOB_PAR_COPIES];
	struct hd_text text;

	value->is_none = !hd_view_has_copies(shape);
	value->is_standard = false;
	value->text = "none";
	if (value->is_none)
		return HD_OK;
	hd_text_init(&text, arena);
	for (uint32_t s = 0; s < shape->nstages; s++)
		hd_text_addf(&text, "%s%u", s ? "," : "", hd_view_copies(shape, s));
	value->text = text.at;
	return text.full ? hd_fail(diag, HD_E_NOMEM, "no memory for the shape of a view") : HD_OK;
}

/* As if the job's keys asked for it; of `shape` what is no number of stages and ranks; its cuts, where it has
 * none, are by the FLOPs. */
static enum hd_err as_asked(struct hd_pipes *pipes, const struct hd_task *of, const char *schedule,
	uint32_t nstages, uint32_t width, const struct hd_view_shape *shape, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_job *job = hd_arena_take(arena, 1, sizeof *job);
	struct hd_task *task = hd_arena_take(arena, 1, sizeof *task);
	const uint32_t groups = hd_view_groups(shape);

	if (!job || !task)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the shape of a view");
	*job = *of->job;
	say_recompute(job, shape->again);
	say(job, HD_JOB_PAR_TENSOR, hd_view_each(shape) * groups);
	say(job, HD_JOB_PAR_GROUPS, groups);
	*task = *of;
	task->job = job;
	say(job, HD_JOB_PAR_STAGES, nstages);
	say(job, HD_JOB_PAR_CHUNKS, hd_view_has_copies(shape) ? 1 : nstages / width);
	say(job, HD_JOB_PAR_WIDTH, width);
	if (say_copies(job, shape, arena, diag))
		return HD_E_NOMEM;
	say(job, HD_JOB_PAR_SCHEDULE, 0);
	job->value[HD_JOB_PAR_SCHEDULE].text = schedule;
	say_redundancy(job, hd_shape_redundancy(shape));
	uint32_t *first = hd_view_nfirst(shape) ? hd_arena_take(arena, nstages, sizeof *first) : NULL;
	if (!first && hd_view_nfirst(shape))
		return hd_fail(diag, HD_E_NOMEM, "no memory for the shape of a view");
	for (uint32_t s = 0; first && s < nstages; s++)
		first[s] = shape->first[s * groups];
	return by_keys(pipes, task, first, arena, diag);
}

/* The job's plan file, with another redundancy or its ranks on another number of workers. */
static enum hd_err as_listed(struct hd_pipes *pipes, const struct hd_task *of,
	const struct hd_view_shape *shape, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_job job = *of->job;
	struct hd_task task = *of;

	/* whatever the job's mode is by now: a view may be from before it left the file */
	if (of->job->value[HD_JOB_PAR_LISTS].is_none || hd_shape_redundancy(shape) >= HD_NREDUNDANCIES)
		return hd_fail(diag, HD_E_INVAL,
			"the stages are those of a plan file, and this job has none");
	task.job = &job;
	say(&job, HD_JOB_PAR_GROUPS, hd_view_groups(shape));
	say_redundancy(&job, hd_shape_redundancy(shape));
	return by_lists(pipes, &task, arena, diag);
}

enum hd_err hd_pipes_of_shape(struct hd_pipes *pipes, const struct hd_task *task,
	const struct hd_view_shape *shape, struct hd_arena *arena, struct hd_diag *diag)
{
	if (shape->width && hd_shape_order(shape) == HD_SHAPE_LISTED)
		return as_listed(pipes, task, shape, arena, diag);
	const uint32_t n = hd_view_groups(shape), t = n * hd_view_each(shape),
		shards = (uint32_t)hd_job_int(task->job, HD_JOB_SHARDS);
	uint32_t known = 0;

	while (known < hd_shape_order(shape) && hd_schedule_kinds[known].name)
		known++;
	if (!shape->width || (hd_view_has_copies(shape) ? n > 1 || t > 1 || shape->nstages < 2 ||
		shape->width > HD_STAGE_BITS : shape->nstages % shape->width != 0) || shape->width % n ||
		!hd_schedule_kinds[known].name || hd_shape_redundancy(shape) >= HD_NREDUNDANCIES)
		return hd_fail(diag, HD_E_INVAL,
			"%u stages over %u devices, in the order %u, are no pipeline", shape->nstages,
			shape->width, shape->schedule);
	if (shards % t || shape->nstages % n)
		return hd_fail(diag, HD_E_INVAL,
			"%u devices of a rank on %u workers do not share %u shards (model.shards) of %u "
			"stages", t, n, shards, shape->nstages);
	return as_asked(pipes, task, hd_schedule_kinds[known].name, shape->nstages / n, shape->width / n,
		shape, arena, diag);
}

enum hd_err hd_pipes_make(struct hd_pipes *pipes, const struct hd_task *task, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_job *job = task->job;
	const struct hd_schedule_kind *kind = NULL;
	struct hd_job_settled s;

	*pipes = (struct hd_pipes){ .stages.p = 0 };
	if (!hd_job_has_pipes(job))
		return HD_OK;
	if (hd_job_is_listed(job))
		return by_lists(pipes, task, arena, diag);
	if (!hd_job_has_settled(job, &s) || (s.stages == 1 && !s.tensor))
		return by_keys(pipes, task, NULL, arena, diag);
	if (hd_schedule_kind_find(&kind, s.schedule, NULL))
		return hd_fail(diag, HD_E_INVAL, "parallel.settled is \"%.80s\", which no run wrote",
			hd_job_text(job, HD_JOB_PAR_SETTLED));
	const uint32_t n = s.groups ? s.groups : 1, each = (s.tensor ? s.tensor : 1) / n;
	struct hd_view_shape shape = { .nstages = s.stages * n, .groups = (uint8_t)(n > 1 ? n : 0),
		.each = (uint8_t)(each > 1 ? each : 0), .again = s.recompute };
	for (uint32_t i = 0; i < s.n * n && i < HD_STAGE_BITS; i++)
		shape.first[i] = s.node[i / n];
	hd_shape_make_redundant(&shape, (uint32_t)hd_job_int(job, HD_JOB_REDUNDANCY));
	shape.width = s.width * n;
	for (uint32_t i = 0, at = 0; i < s.stages && s.has_copies; at += s.copies[i++])
		shape.place[i] = (uint8_t)at;
	return as_asked(pipes, task, kind->name, s.stages, s.width, &shape, arena, diag);
}

/* ---- views, and their plans ---- */

bool hd_pipes_view(struct hd_view *view, const struct hd_pipes *pipes, uint32_t n, uint32_t ndevices,
	uint32_t nvns)
{
	uint32_t member[HD_MAX_MEMBERS], of[HD_MAX_MEMBERS], ranks[HD_MAX_MEMBERS];

	assert(n >= 1 && n <= HD_MAX_MEMBERS && n <= HD_VIEW_RANKS / ndevices);
	for (uint32_t i = 0; i < n; i++) {
		member[i] = i;
		of[i] = ndevices;
		ranks[i] = pipes->shape.nstages ? ndevices / hd_pipes_each(pipes) : 0;
	}
	if (pipes->shape.nstages && hd_view_staged(view, 1, member, ranks, n, nvns, &pipes->shape,
		pipes->most))
		return true;
	hd_view_even(view, 1, member, of, n, nvns);
	return false;
}

/* Chunks of a member's buckets, dealt to its ranks as they stand in the view; without a rank it has none. */
static enum hd_err own_chunks(struct hd_plan *plan, const struct hd_pipes *pipes,
	const struct hd_view *view, struct hd_diag *diag)
{
	const uint32_t nbuckets = hd_bucket_count(plan->nchunks);
	uint32_t rank[HD_VIEW_RANKS];
	struct hd_holding held;
	enum hd_err err = hd_holding_init(&held, nbuckets, diag);

	if (err)
		return err;
	hd_view_holding(&held, view, view->shape.nstages ? &pipes->buckets : NULL, 0);
	for (uint32_t m = 0; m < view->nmembers; m++) {
		uint32_t n = 0, nchunks = 0, at = 0;
		for (uint32_t r = 0; r < view->nranks; r++)
			if (view->rank[r].worker == view->member[m])
				rank[n++] = r;
		for (uint32_t c = 0; c < plan->nchunks; c++)
			nchunks += held.owner[c / HD_BUCKET_CHUNKS] == m;
		for (uint32_t c = 0; c < plan->nchunks; c++)
			if (held.owner[c / HD_BUCKET_CHUNKS] == m)
				plan->owner[c] = rank[(uint64_t)at++ * n / nchunks];
	}
	hd_holding_finish(&held);
	return HD_OK;
}

static const char *cause_of(const struct hd_view *view, const char *shape, struct hd_arena *arena)
{
	struct hd_text text;

	hd_text_init(&text, arena);
	hd_text_addf(&text, "view %u: worker%s", view->epoch, view->nmembers == 1 ? "" : "s");
	for (uint32_t m = 0; m < view->nmembers; m++)
		hd_text_addf(&text, " %u", view->member[m]);
	hd_text_addf(&text, "%s%s", shape ? "; " : "", shape ? shape : "");
	return text.full ? "" : text.at;
}

const char *hd_pipes_drain(const struct hd_pipes *pipes, const struct hd_view_shape *shape,
	const struct hd_task *task)
{
	const struct hd_run_stages *s = &pipes->stages;
	const char *drains = s->delayed ? hd_task_drains(task, s->p) : "its order is of no delayed update";

	if (!drains && hd_shape_redundancy(shape) != HD_REDUNDANCY_NONE)
		drains = "workers hold shadows of stages: elastic.redundancy";
	return drains;
}

/* Do steps of the view overlap? What a plan says besides is in stages.c. */
static void find_overlap(struct hd_run_stages *s, const struct hd_pipes *pipes, const struct hd_view *view,
	const struct hd_task *task)
{
	if (!s->delayed)
		return;
	s->drains = hd_pipes_drain(pipes, &view->shape, task);
	s->overlap = !s->drains;
}

static enum hd_err staged(struct hd_plan *plan, const struct hd_pipes *pipes, const struct hd_view *view,
	const struct hd_plan_job *job, const struct hd_task *task, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_run_stages s = pipes->stages;
	uint32_t share[HD_VIEW_RANKS];

	assert(view->shape.nstages == pipes->shape.nstages && view->shape.width == s.p * pipes->groups);
	s.d = hd_view_pipes(view);
	for (uint32_t k = 0; k < s.d; k++)
		for (uint32_t r = share[k] = 0; r < hd_view_copies(&view->shape, 0); r++)
			share[k] += view->rank[k * view->shape.width + r].nvns;
	s.share = share;
	s.shared = true;
	find_overlap(&s, pipes, view, task);
	return hd_run_stages_plan(plan, &s, job, task, NULL, arena, diag);
}

enum hd_err hd_pipes_plan(struct hd_plan *plan, const struct hd_pipes *pipes, const struct hd_view *view,
	const struct hd_plan_job *job, const struct hd_task *task, struct hd_arena *arena,
	struct hd_diag *diag)
{
	uint32_t counts[HD_VIEW_RANKS];
	enum hd_err err;

	for (uint32_t r = 0; r < view->nranks; r++)
		counts[r] = view->rank[r].nvns;
	if (view->shape.nstages)
		err = staged(plan, pipes, view, job, task, arena, diag);
	else
		err = hd_plan_data(plan, job, view->nranks, counts, arena, diag);
	err = err ? err : own_chunks(plan, pipes, view, diag);
	if (err)
		return err;
	for (uint32_t r = 0; r < view->nranks; r++)
		plan->worker[r] = (uint16_t)hd_view_index(view, view->rank[r].worker);
	err = view->shape.nstages ? hd_pipes_shadows(plan, (enum hd_redundancy)hd_shape_redundancy(
		&view->shape), job, task, arena, diag) : HD_OK;
	plan->number = view->epoch;
	plan->cause = cause_of(view, view->shape.nstages ? plan->cause : NULL, arena);
	return err;
}

/* The buckets whose parameters, or of sharded state whose slots, a member holds. */
static enum hd_err find_held(const uint8_t **held, const struct hd_stage_buckets *buckets, uint32_t n,
	uint32_t copies, const struct hd_view *view, uint32_t member, struct hd_arena *arena,
	struct hd_diag *diag)
{
	uint8_t *is = hd_arena_take(arena, n, 1);
	struct hd_holding all;

	if (!is)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the holders of %u buckets", n);
	enum hd_err err = hd_holding_init(&all, n, diag);
	if (err)
		return err;
	hd_view_holding(&all, view, buckets, copies);
	for (uint32_t b = 0; b < n; b++)
		is[b] = member < view->nmembers && (copies ? all.slot : all.param)[b] >> member & 1;
	hd_holding_finish(&all);
	*held = is;
	return HD_OK;
}

/* The places to bring others state and to get it in (worker/elastic_slots.c). While the view stays, the
 * checkpoint writer alone lacks buckets; the others leave those to get state in alone. */
static enum hd_err count_moved(struct hd_dist_view *part, const uint8_t *held, const struct hd_pipes *pipes,
	const struct hd_view *view, uint32_t member, const struct hd_worker *engine, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const uint32_t n = hd_layout_nbuckets(hd_dist_layout(engine)), copies = hd_dist_copies(engine),
		writer = hd_view_index(view, hd_view_writer(view));
	uint64_t most = 0, given = 0, got = 0, nlacking = 0;
	const uint8_t *his;
	enum hd_err err = find_held(&his, copies ? NULL : &pipes->buckets, n, copies, view, writer, arena,
		diag);

	if (err)
		return err;
	for (uint32_t b = 0; b < n; b++) {
		const uint64_t bytes = hd_dist_slot_bytes(engine, b);
		most = bytes > most ? bytes : most;
		if (writer != HD_NOBODY && held[b] && !his[b])
			given = bytes > given ? bytes : given;
		if (writer == member && !held[b]) {
			got = bytes > got ? bytes : got;
			nlacking++;
		}
	}
	nlacking = nlacking < HD_PIPES_FETCHED ? nlacking : HD_PIPES_FETCHED;
	part->received_bytes += HD_PIPES_MOVED * most;
	part->idle_received_bytes = HD_PIPES_MOVED * most - given - nlacking * got;
	return HD_OK;
}

enum hd_err hd_pipes_part(struct hd_dist_view *part, const struct hd_pipes *pipes, const struct hd_view *view,
	uint32_t worker, const struct hd_worker *engine, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t member = hd_view_index(view, worker);
	enum hd_err err = hd_view_received(view, worker, part->plan->nvns, hd_dist_layout(engine),
		&pipes->buckets, &part->received_bytes);

	part->worker = member == HD_NOBODY ? HD_DIST_NOBODY : (uint16_t)member;
	part->held = NULL;
	part->rests = hd_view_writer(view) != worker;
	part->slots = NULL;
	part->idle_received_bytes = 0;
	const bool staged = view->shape.nstages, sharded = hd_dist_copies(engine) && !staged;
	if (err || !(sharded || (hd_dist_by_stage(engine) && staged)))
		return err;
	const uint8_t *held;
	err = find_held(&held, sharded ? NULL : &pipes->buckets, hd_layout_nbuckets(hd_dist_layout(engine)),
		hd_dist_copies(engine), view, member, arena, diag);
	err = err ? err : count_moved(part, held, pipes, view, member, engine, arena, diag);
	if (!err)
		*(sharded ? &part->slots : &part->held) = held;
	return err;
}

/* ---- the run's job ---- */

static enum hd_err put_number(struct hd_job_value *value, uint32_t n, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_text text;

	hd_text_init(&text, arena);
	hd_text_addf(&text, "%u", n);
	if (text.full)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a number of the job");
	value->is_auto = value->is_standard = false;
	value->i = n;
	value->text = text.at;
	return HD_OK;
}

/* Of a mode that leaves it open: the most devices of one worker that the shards can be shared out to. */
static enum hd_err settle_tensor(struct hd_job *job, uint32_t ndevices, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_job_value *tensor = &job->value[HD_JOB_PAR_TENSOR];
	const uint32_t shards = (uint32_t)hd_job_int(job, HD_JOB_SHARDS);
	uint32_t t = ndevices < HD_MAX_TENSOR ? ndevices : HD_MAX_TENSOR;

	if (!tensor->is_auto || hd_job_int(job, HD_JOB_PAR_MODE) != HD_PAR_TENSOR)
		return HD_OK;
	while (t > 1 && (shards % t || ndevices % t))
		t--;
	return t > 1 ? put_number(tensor, t, arena, diag) : hd_fail(diag, HD_E_INVAL,
		"parallel.mode: tensor shares %u shards (model.shards) out over the %u device%s of a worker: "
		"no number above 1 divides both; give each worker --devices %u, or another divisor", shards,
		ndevices, ndevices == 1 ? "" : "s", shards);
}

/* On how many workers the devices of a rank lie. */
static enum hd_err settle_groups(struct hd_job *job, uint32_t t, uint32_t ndevices, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_job_value *value = &job->value[HD_JOB_PAR_GROUPS];
	const uint32_t n = !value->is_auto ? (uint32_t)value->i : ndevices % t == 0 ? 1 : t / ndevices;

	if (!value->is_auto && t % n)
		return hd_fail(diag, HD_E_INVAL,
			"parallel.groups is %u, which does not divide the %u devices of a rank "
			"(parallel.tensor); give a number that does, or auto", n, t);
	if (!value->is_auto && ndevices % (t / n))
		return hd_fail(diag, HD_E_INVAL,
			"a rank has %u devices on each of %u workers (parallel.tensor, parallel.groups), and "
			"a worker has %u: give each --devices %u or a multiple, or -s parallel.groups=auto",
			t / n, n, ndevices, t / n);
	if (!n || t % n || ndevices % (t / n))
		return hd_fail(diag, HD_E_INVAL,
			"a rank is %u devices (parallel.tensor), and a worker has %u: give each --devices "
			"%u, or a number that divides %u", t, ndevices, (ndevices / t + 1) * t, t);
	return put_number(value, n, arena, diag);
}

static enum hd_err lies_on(uint32_t ranks, uint32_t width, uint32_t most, struct hd_diag *diag)
{
	return (uint64_t)(ranks < width ? ranks : width) * most <= HD_MAX_PASSES ? HD_OK : hd_fail(diag,
		HD_E_INVAL, "%u ranks of a worker with %u stages each: at most %d stages lie on one worker; "
		"give it fewer devices, and the run more workers", ranks, most, HD_MAX_PASSES);
}

/* A run begins with all pipelines of its file; one that is resumed has what is left of its devices. */
static enum hd_err settle_listed(struct hd_job *job, uint32_t nworkers, uint32_t ndevices,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_job_value *width = &job->value[HD_JOB_PAR_WIDTH];
	struct hd_listed l;
	enum hd_err err = hd_pipes_listed(&l, job, arena, diag);

	if (err)
		return err;
	const uint32_t d = width->is_auto ? l.d : 1, need = d * l.p * l.t;
	if ((uint64_t)nworkers * ndevices < need)
		return hd_fail(diag, HD_E_INVAL,
			"%u pipeline%s of the plan (parallel.plan) %s %u devices, and %u worker%s ha%s %u: "
			"use --workers %u or more (those beyond the plan's %u devices wait), or "
			"parallel.mode: pipeline without a plan", d, d == 1 ? "" : "s",
			d == 1 ? "has" : "have", need, nworkers, nworkers == 1 ? "" : "s",
			nworkers == 1 ? "s" : "ve",
			nworkers * ndevices, (need + ndevices - 1) / ndevices, l.d * l.p * l.t);
	err = settle_groups(job, l.t, ndevices, arena, diag);
	if (err)
		return err;
	const uint32_t n = (uint32_t)job->value[HD_JOB_PAR_GROUPS].i;
	err = lies_on(ndevices / (l.t / n), l.p * n, l.most, diag);
	return err ? err : put_number(width, l.p, arena, diag);
}

enum hd_err hd_pipes_settle(struct hd_job *job, uint32_t nworkers, uint32_t ndevices, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_job_value *width = &job->value[HD_JOB_PAR_WIDTH];
	struct hd_run_stages s;

	if (!hd_job_has_stages(job))
		return HD_OK;
	if (hd_job_is_listed(job))
		return settle_listed(job, nworkers, ndevices, arena, diag);
	const uint32_t all = nworkers * ndevices;
	enum hd_err err = settle_tensor(job, ndevices, arena, diag);
	err = err ? err : hd_run_stages(&s, job, all, all, diag);
	err = err ? err : settle_groups(job, s.t, ndevices, arena, diag);
	if (err)
		return err;
	const uint32_t n = (uint32_t)job->value[HD_JOB_PAR_GROUPS].i;
	err = lies_on(ndevices / (s.t / n), s.p * n, s.v, diag);
	return err ? err : put_number(width, s.p, arena, diag);
}

static bool set(const struct hd_job *job, int key) { return job->value[key].origin == HD_FROM_SET; }

/* Stages with copies that were chosen stay as if the keys asked for them. */
static enum hd_err put_copies(struct hd_job *job, const struct hd_job_settled *s, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_view_shape shape = { .nstages = s->stages, .width = s->width };

	for (uint32_t i = 0, at = 0; i < s->stages; at += s->copies[i++])
		shape.place[i] = (uint8_t)at;
	if (s->recompute && !set(job, HD_JOB_PAR_RECOMPUTE))
		say_recompute(job, true);
	return say_copies(job, &shape, arena, diag);
}

/* What was chosen and stays comes from the keys from here on. */
static enum hd_err leave_settled(struct hd_job *job, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_job_value *settled = &job->value[HD_JOB_PAR_SETTLED];
	const struct hd_schedule_kind *kind = NULL;
	struct hd_job_settled s;

	if (settled->is_none || !hd_job_settled(&s, settled->text) ||
		hd_schedule_kind_find(&kind, s.schedule, NULL))
		return HD_OK;
	settled->is_none = true;
	settled->text = "none";
	/* the shape's keys below are of this order */
	if (s.has_copies && !set(job, HD_JOB_PAR_COPIES) && !set(job, HD_JOB_PAR_STAGES) &&
		!set(job, HD_JOB_PAR_CHUNKS) && !set(job, HD_JOB_PAR_SCHEDULE))
		return put_copies(job, &s, arena, diag);
	if (s.has_copies)
		return HD_OK;
	if (s.recompute && !set(job, HD_JOB_PAR_RECOMPUTE))
		say_recompute(job, true);
	if (s.tensor && !set(job, HD_JOB_PAR_TENSOR)) {
		say(job, HD_JOB_PAR_TENSOR, s.tensor);
		if (!set(job, HD_JOB_PAR_GROUPS))
			say(job, HD_JOB_PAR_GROUPS, s.groups ? s.groups : 1);
	}
	if (s.stages == 1 || set(job, HD_JOB_PAR_SCHEDULE))
		return HD_OK;
	say(job, HD_JOB_PAR_SCHEDULE, 0);
	job->value[HD_JOB_PAR_SCHEDULE].text = kind->name;
	if (!set(job, HD_JOB_PAR_CHUNKS))
		say(job, HD_JOB_PAR_CHUNKS, s.stages / s.width);
	return HD_OK;
}

/* Copies give way to other stages, and other stages to copies. */
static void leave_copies(struct hd_job *job)
{
	static const struct hd_job_value open = { .is_auto = true, .text = "auto" };
	struct hd_job_value *value = job->value, *copies = &value[HD_JOB_PAR_COPIES],
		*schedule = &value[HD_JOB_PAR_SCHEDULE];

	if (set(job, HD_JOB_PAR_COPIES)) {
		for (int k = 0; k < 2; k++) {
			const int key = k ? HD_JOB_PAR_CHUNKS : HD_JOB_PAR_SCHEDULE;
			value[key] = set(job, key) ? value[key] : open;
		}
		return;
	}
	if (copies->is_none || !(set(job, HD_JOB_PAR_STAGES) || set(job, HD_JOB_PAR_CHUNKS) ||
		set(job, HD_JOB_PAR_SCHEDULE)))
		return;
	copies->is_none = true;
	copies->text = "none";
	*schedule = set(job, HD_JOB_PAR_SCHEDULE) ? *schedule : open;
}

/* From a plan file to pipelines that the keys ask for; the way back needs the file at every worker. The job
 * keeps the lists: until the next view those that come, or take over, need them. */
static bool leaves_lists(const struct hd_job *job)
{
	return !job->value[HD_JOB_PAR_LISTS].is_none && hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_PIPELINE;
}

static enum hd_err refuse_key(int key, struct hd_diag *diag)
{
	if (key == HD_JOB_SHARDS || key == HD_JOB_SEQUENCE_SHARDS)
		return hd_fail(diag, HD_E_INVAL,
			"%s.%s says in which parts sums are made, and so the bits of the result: it is part "
			"of the job, and another one is another run; parallel.tensor, how many devices "
			"share these parts, changes to any number that divides theirs",
			hd_job_keys[key].table, hd_job_keys[key].key);
	return hd_fail(diag, HD_E_INVAL,
		"%s.%s does not change while a run goes on: stop it and resume it with that; "
		"parallel.stages, chunks, copies, schedule, replicas, tensor, groups and recompute, and "
		"elastic.redundancy do",
		hd_job_keys[key].table, hd_job_keys[key].key);
}

/* With another number of devices in a rank these lie on as few workers as can be. */
static enum hd_err change_tensor(struct hd_job *job, uint32_t ndevices, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_job_value *value = job->value, *tensor = &value[HD_JOB_PAR_TENSOR];

	if (!set(job, HD_JOB_PAR_TENSOR) && !set(job, HD_JOB_PAR_GROUPS))
		return HD_OK;
	if (!set(job, HD_JOB_PAR_GROUPS))
		value[HD_JOB_PAR_GROUPS].is_auto = true;
	enum hd_err err = settle_tensor(job, ndevices, arena, diag);
	return err ? err : settle_groups(job, tensor->is_auto ? 1 : (uint32_t)tensor->i, ndevices, arena,
		diag);
}

enum hd_err hd_pipes_change(struct hd_job *job, uint32_t width, uint32_t ndevices, struct hd_arena *arena,
	struct hd_diag *diag)
{
	static const enum hd_job_key changes[] = { HD_JOB_PAR_STAGES, HD_JOB_PAR_CHUNKS,
		HD_JOB_PAR_SCHEDULE, HD_JOB_PAR_REPLICAS, HD_JOB_PAR_TENSOR, HD_JOB_PAR_GROUPS,
		HD_JOB_PAR_RECOMPUTE, HD_JOB_PAR_COPIES, HD_JOB_REDUNDANCY };
	static const struct hd_job_value open = { .is_auto = true, .text = "auto" };
	struct hd_job_value *value = job->value;

	const bool leaves = leaves_lists(job);
	for (int key = 0; key < HD_JOB_NKEYS; key++) {
		bool any = !set(job, key) || (leaves && (key == HD_JOB_PAR_MODE || key == HD_JOB_PAR_PLAN));
		for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
			any |= key == (int)changes[i];
		if (!any)
			return refuse_key(key, diag);
	}
	enum hd_err err = change_tensor(job, ndevices, arena, diag);
	if (err)
		return err;
	if (set(job, HD_JOB_PAR_SCHEDULE) && !set(job, HD_JOB_PAR_CHUNKS))
		value[HD_JOB_PAR_CHUNKS] = open;
	leave_copies(job);
	err = leave_settled(job, arena, diag);
	if (err)
		return err;
	if (!value[HD_JOB_PAR_COPIES].is_none) {
		value[HD_JOB_PAR_STAGES] = value[HD_JOB_PAR_WIDTH] = value[HD_JOB_PAR_CHUNKS] = open;
		return HD_OK;
	}
	if (set(job, HD_JOB_PAR_STAGES)) {
		value[HD_JOB_PAR_WIDTH] = open;
		return HD_OK;
	}
	value[HD_JOB_PAR_STAGES] = open;
	return put_number(&value[HD_JOB_PAR_WIDTH], width, arena, diag);
}

enum hd_err hd_pipes_keep_shape(struct hd_rundir *dir, const struct hd_job *job, const struct hd_pipes *pipes,
	struct hd_arena *arena, struct hd_diag *diag)
{
	static const struct hd_job_value open = { .is_auto = true, .text = "auto" };
	enum { STAGES, WIDTH, CHUNKS };
	/* one stage has no order of its own, and a plan file says it by itself */
	const bool staged = hd_run_stages_n(&pipes->stages) > 1 && !pipes->stages.listed;
	struct hd_kept_value value[] = { { HD_JOB_PAR_STAGES, open }, { HD_JOB_PAR_WIDTH, { .i = 0 } },
		{ HD_JOB_PAR_CHUNKS, open },
		{ HD_JOB_PAR_SCHEDULE, staged ? (struct hd_job_value){ .text = pipes->stages.schedule } :
			open },
		{ HD_JOB_PAR_REPLICAS, job->value[HD_JOB_PAR_REPLICAS] },
		{ HD_JOB_PAR_MODE, job->value[HD_JOB_PAR_MODE] },
		{ HD_JOB_PAR_PLAN, job->value[HD_JOB_PAR_PLAN] },
		{ HD_JOB_PAR_LISTS, job->value[HD_JOB_PAR_LISTS] },
		{ HD_JOB_PAR_TENSOR, job->value[HD_JOB_PAR_TENSOR] },
		{ HD_JOB_PAR_GROUPS, job->value[HD_JOB_PAR_GROUPS] },
		{ HD_JOB_PAR_RECOMPUTE, job->value[HD_JOB_PAR_RECOMPUTE] },
		{ HD_JOB_PAR_SETTLED, job->value[HD_JOB_PAR_SETTLED] },
		{ HD_JOB_PAR_COPIES, job->value[HD_JOB_PAR_COPIES] },
		{ HD_JOB_REDUNDANCY, job->value[HD_JOB_REDUNDANCY] },
		{ HD_JOB_RESILIENCE, job->value[HD_JOB_RESILIENCE] } };
	enum hd_err err = put_number(&value[WIDTH].value, pipes->stages.p, arena, diag);

	/* of devices of a rank alone it would follow that there is one */
	if (!err && staged && pipes->stages.t > 1 && hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_GIVEN)
		err = put_number(&value[STAGES].value, hd_run_stages_n(&pipes->stages), arena, diag);
	/* those of the schedule are left open: so another one has its own */
	if (!err && !pipes->stages.listed &&
		pipes->stages.v != hd_schedule_kinds[hd_shape_order(&pipes->shape)].vmin)
		err = put_number(&value[CHUNKS].value, pipes->stages.v, arena, diag);
	for (size_t i = 0; i < sizeof value / sizeof *value; i++)
		value[i].value.type = job->value[value[i].key].type;
	return err ? err : hd_kept_job_put(dir, value, sizeof value / sizeof *value, arena, diag);
}

enum hd_err hd_pipes_keep(struct hd_rundir *dir, const struct hd_job *job, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_kept_value value[] = { { HD_JOB_PAR_WIDTH, job->value[HD_JOB_PAR_WIDTH] },
		{ HD_JOB_PAR_LISTS, job->value[HD_JOB_PAR_LISTS] },
		{ HD_JOB_PAR_GROUPS, job->value[HD_JOB_PAR_GROUPS] },
		{ HD_JOB_PAR_TENSOR, job->value[HD_JOB_PAR_TENSOR] } };

	return hd_job_has_stages(job) ? hd_kept_job_put(dir, value, sizeof value / sizeof *value, arena,
		diag) : HD_OK;
}
