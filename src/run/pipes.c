#include "run/pipes.h"

#include <string.h>

#include "graph/tensor.h"
#include "pipeline/lanes.h"
#include "pipeline/redundancy.h"
#include "run/pipes_int.h"
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
	const uint64_t vectors = 1 + hd_optim_nslots(&task->optim) + task->delays.most;

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
	pipes->buckets.follows = hd_job_int(task->job, HD_JOB_STANDBY) != HD_STANDBY_NONE;
	err = find_tensors(pipes, task, arena, diag);
	return err ? err : hd_pipes_shadows_fit(pipes, task->job, diag);
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
	if (l->copies && (l->p > HD_STAGE_BITS || l->lanes > HD_VIEW_RANKS))
		return hd_fail(diag, HD_E_INVAL,
			"the plan has stages with copies, on %u ranks and in %u lanes; over workers there "
			"are at most %d, in %d", l->p, l->lanes, HD_STAGE_BITS, HD_VIEW_RANKS);
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
	hd_pipes_say_recompute(job, shape->again);
	hd_pipes_say(job, HD_JOB_PAR_TENSOR, hd_view_each(shape) * groups);
	hd_pipes_say(job, HD_JOB_PAR_GROUPS, groups);
	*task = *of;
	task->job = job;
	hd_pipes_say(job, HD_JOB_PAR_STAGES, nstages);
	hd_pipes_say(job, HD_JOB_PAR_CHUNKS, hd_view_has_copies(shape) ? 1 : nstages / width);
	hd_pipes_say(job, HD_JOB_PAR_WIDTH, width);
	if (hd_pipes_say_copies(job, shape, arena, diag))
		return HD_E_NOMEM;
	hd_pipes_say(job, HD_JOB_PAR_SCHEDULE, 0);
	job->value[HD_JOB_PAR_SCHEDULE].text = schedule;
	hd_pipes_say_redundancy(job, hd_shape_redundancy(shape));
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
	hd_pipes_say(&job, HD_JOB_PAR_GROUPS, hd_view_groups(shape));
	hd_pipes_say_redundancy(&job, hd_shape_redundancy(shape));
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

/* Views may have fewer pipelines than the file; a run that keeps more than it has cannot begin. */
static enum hd_err as_file(struct hd_pipes *pipes, const struct hd_task *task, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const uint32_t least = hd_job_least_pipelines(task->job);
	struct hd_pipes made;
	enum hd_err err = by_lists(&made, task, arena, diag);

	if (!err && least > made.most)
		err = hd_fail(diag, HD_E_INVAL,
			"elastic.resilience: %s keeps %u pipelines, and the plan (parallel.plan) has %u: "
			"a plan of %u pipelines, or elastic.resilience: checkpoint",
			hd_job_text(task->job, HD_JOB_RESILIENCE), least, made.most, least);
	if (!err)
		*pipes = made;
	return err;
}

/* Of the job: after a loss a view may have one stage, until there are workers for more. */
static enum hd_err has_state_by_stages(const struct hd_pipes *pipes, const struct hd_job *job,
	struct hd_diag *diag)
{
	return hd_job_int(job, HD_JOB_SYNC) != HD_SYNC_STAGES || pipes->shape.nstages != 1 ? HD_OK :
		hd_fail(diag, HD_E_INVAL,
		"comm.sync: stages leaves a worker the state of its stages, and here each has the whole "
		"model: comm.sync: allreduce, or parallel.stages: 2 or more");
}

/* By what was settled, else by the keys. */
static enum hd_err as_job(struct hd_pipes *pipes, const struct hd_task *task, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_job *job = task->job;
	const struct hd_schedule_kind *kind = NULL;
	struct hd_job_settled s;

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

enum hd_err hd_pipes_make(struct hd_pipes *pipes, const struct hd_task *task, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_pipes made;

	*pipes = (struct hd_pipes){ .stages.p = 0 };
	if (!hd_job_has_pipes(task->job))
		return HD_OK;
	enum hd_err err = hd_job_is_listed(task->job) ? as_file(&made, task, arena, diag) :
		as_job(&made, task, arena, diag);
	err = err ? err : has_state_by_stages(&made, task->job, diag);
	if (!err)
		*pipes = made;
	return err;
}
