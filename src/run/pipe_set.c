#include "run/pipe_set.h"

#include <string.h>

#include "pipeline/generate.h"

enum hd_err hd_pipe_set_init(struct hd_pipe_set *set, const struct hd_task *task, struct hd_diag *diag)
{
	*set = (struct hd_pipe_set){ .task = task };
	hd_lock_init(&set->lock);
	hd_arena_init(&set->arena, 0);
	return hd_pipes_make(&set->first, task, &set->arena, diag);
}

void hd_pipe_set_finish(struct hd_pipe_set *set)
{
	if (!set->task)
		return;
	hd_arena_finish(&set->arena);
	hd_lock_finish(&set->lock);
	set->task = NULL;
}

static void say(struct hd_job *job, enum hd_job_key key, uint32_t i)
{
	job->value[key].is_auto = job->value[key].is_standard = false;
	job->value[key].i = i;
}

/* The run's job as if its keys asked for the shape. */
static enum hd_err make(struct hd_pipes *pipes, const struct hd_task *of, const struct hd_view_shape *shape,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_job *job = hd_arena_take(arena, 1, sizeof *job);
	struct hd_task *task = hd_arena_take(arena, 1, sizeof *task);
	uint32_t known = 0;

	if (!job || !task)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the shape of a view");
	while (known < shape->schedule && hd_schedule_kinds[known].name)
		known++;
	if (!shape->width || shape->nstages % shape->width || !hd_schedule_kinds[known].name)
		return hd_fail(diag, HD_E_INVAL,
			"%u stages over %u devices, in the order %u, are no pipeline", shape->nstages,
			shape->width, shape->schedule);
	*job = *of->job;
	*task = *of;
	task->job = job;
	say(job, HD_JOB_PAR_STAGES, shape->nstages);
	say(job, HD_JOB_PAR_CHUNKS, shape->nstages / shape->width);
	say(job, HD_JOB_PAR_WIDTH, shape->width);
	say(job, HD_JOB_PAR_SCHEDULE, 0);
	job->value[HD_JOB_PAR_SCHEDULE].text = hd_schedule_kinds[known].name;
	return hd_pipes_make(pipes, task, arena, diag);
}

static enum hd_err find(struct hd_pipe_set *set, const struct hd_view_shape *shape,
	const struct hd_pipes **pipes, struct hd_diag *diag)
{
	for (const struct hd_pipe_set_entry *e = set->others; e; e = e->next)
		if (hd_view_same_shape(&e->pipes.shape, shape)) {
			*pipes = &e->pipes;
			return HD_OK;
		}
	struct hd_pipe_set_entry *made = hd_arena_take(&set->arena, 1, sizeof *made);
	if (!made)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the shape of a view");
	enum hd_err err = make(&made->pipes, set->task, shape, &set->arena, diag);
	if (err)
		return err;
	if (!hd_view_same_shape(&made->pipes.shape, shape))
		return hd_fail(diag, HD_E_INVAL, "%s has its stages at other devices",
			made->pipes.stages.schedule);
	made->next = set->others;
	set->others = made;
	*pipes = &made->pipes;
	return HD_OK;
}

enum hd_err hd_pipe_set_find(struct hd_pipe_set *set, const struct hd_view_shape *shape,
	const struct hd_pipes **pipes, struct hd_diag *diag)
{
	if (!shape->nstages || hd_view_same_shape(&set->first.shape, shape)) {
		*pipes = &set->first;
		return HD_OK;
	}
	if (!set->first.shape.nstages)
		return hd_fail(diag, HD_E_INVAL, "the run's job has no stages");
	hd_lock_take(&set->lock);
	enum hd_err err = find(set, shape, pipes, diag);
	hd_lock_give(&set->lock);
	return err;
}

const struct hd_stage_buckets *hd_pipe_set_buckets(void *self, const struct hd_view_shape *shape)
{
	const struct hd_pipes *pipes;

	return hd_pipe_set_find(self, shape, &pipes, NULL) ? NULL : &pipes->buckets;
}
