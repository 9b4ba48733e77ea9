#include "run/pipe_set.h"

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
	enum hd_err err = hd_pipes_of_shape(&made->pipes, set->task, shape, &set->arena, diag);
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

bool hd_pipe_set_shares(void *self, const struct hd_view_shape *shape, uint32_t npipes, uint32_t *share)
{
	const struct hd_pipes *pipes;

	return !hd_pipe_set_find(self, shape, &pipes, NULL) && hd_pipes_shares(pipes, npipes, share);
}

bool hd_pipe_set_early(void *self, const struct hd_view *view)
{
	struct hd_pipe_set *set = self;
	const struct hd_pipes *pipes;

	if (!set->task->delays.early || view->shape.nstages < 2 || hd_view_pipes(view) > 1)
		return false;
	return hd_pipe_set_find(set, &view->shape, &pipes, NULL) ||
		!hd_pipes_drain(pipes, &view->shape, set->task);
}
