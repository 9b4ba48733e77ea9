#include "engine/overlap.h"

#include <string.h>

#include "pipeline/window.h"
#include "engine/part_int.h"
#include "engine/post.h"
#include "engine/worker_int.h"

const char *hd_task_drains(const struct hd_task *task, uint32_t p)
{
	const bool norm = task->delays.early, clips = hd_job_num(task->job, HD_JOB_CLIP) > 0,
		ratios = hd_optims[task->optim.kind].unit == HD_UNIT_TENSOR;
	const struct { bool drains; const char *why; } rows[] = {
		{ task->delays.most == 0, "no parameter is read late" },
		{ task->delays.most > 1 && task->layout.held_elems > task->layout.elems,
			"parameters are read more than one step late, and some are frozen" },
		{ !hd_window_fits(p, task->job->nvns), "there are fewer than 2 (devices - 1) virtual nodes" },
		{ task->train.nrunning, "the model has running statistics" },
		{ hd_job_int(task->job, HD_JOB_SAMPLES), "trace.samples names the rows of each step" },
		{ !task->job->value[HD_JOB_VALUES].is_none, "trace.values looks at one step at a time" },
		{ norm && clips, "the last stage waits for the norm that optim.clip needs" },
		{ norm && ratios, "the last stage waits for the norms that optim.kind needs" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].drains)
			return rows[i].why;
	return NULL;
}

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for steps that overlap");
}

/* What a pipe runs of one step, part of it in the list of the step before. */
static enum hd_err join_lists(struct hd_ilist *to, const struct hd_ilist *from, uint32_t nvns,
	struct hd_arena *arena, struct hd_diag *diag)
{
	*to = (struct hd_ilist){ hd_arena_take(arena, from->len, sizeof *to->at), 0, from->len };
	if (!to->at)
		return no_memory(diag);
	for (int now = 0; now < 2; now++)
		for (uint32_t i = 0; i < from->len; i++)
			if (hd_ins_uses(from->at[i].op, 'v') && (from->at[i].vn < nvns) == now) {
				to->at[to->len] = from->at[i];
				to->at[to->len++].vn -= now ? 0 : nvns;
			}
	return HD_OK;
}

/* Arenas and mail of both pipes for a step that was begun ahead, and for one that was not. */
static enum hd_err count(struct hd_overlap *o, const struct hd_plan *plan, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_ilist *steady = hd_arena_take(arena, plan->nranks, sizeof *steady);
	struct hd_ilist *first = hd_arena_take(arena, plan->nranks, sizeof *first);
	enum hd_err err = steady && first ? HD_OK : no_memory(diag);

	for (uint32_t r = 0; r < plan->nranks && !err; r++) {
		struct hd_window window = { .p = plan->nranks, .nvns = plan->nvns, .ahead = true,
			.goes_on = true, .again = hd_window_again(plan, r) };
		struct hd_ilist all;
		err = hd_window_list(&all, &window, r, arena, diag);
		err = err ? err : join_lists(&steady[r], &all, plan->nvns, arena, diag);
		window.ahead = window.goes_on = false;
		err = err ? err : hd_window_list(&first[r], &window, r, arena, diag);
	}
	for (int k = 0; k < 2 && !err; k++) {
		err = hd_pipe_also(o->pipe[k], steady, arena, diag);
		err = err ? err : hd_pipe_also(o->pipe[k], first, arena, diag);
	}
	return err;
}

/* A device without a rank has the list that it has in any step: the ends alone. */
static enum hd_err make_lists(struct hd_overlap *o, const struct hd_work *work, const struct hd_plan *plan,
	const uint32_t *rank, uint32_t ndevices, struct hd_arena *arena, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (int ahead = 0; ahead < 2; ahead++)
		for (int on = 0; on < 2; on++) {
			struct hd_window window = { .p = plan->nranks, .nvns = plan->nvns, .ahead = ahead,
				.goes_on = on, .eager = o->eager };
			struct hd_ilist *list = hd_arena_take(arena, ndevices, sizeof *list);
			if (!list)
				return no_memory(diag);
			o->list[ahead][on] = list;
			for (uint32_t d = 0; d < ndevices && !err; d++) {
				if (rank[d] == HD_NONE) {
					list[d] = *work->rank[d].list;
					continue;
				}
				window.again = hd_window_again(plan, rank[d]);
				err = hd_window_list(&list[d], &window, rank[d], arena, diag);
			}
		}
	return err;
}

/* A list that goes on no further than this step is the same up to there. Devices of a rank take turns, which
 * is not to be broken off: none of theirs. */
static enum hd_err find_fore(struct hd_overlap *o, const struct hd_plan *plan, const uint32_t *rank,
	uint32_t ndevices, struct hd_arena *arena, struct hd_diag *diag)
{
	o->fore = hd_arena_take(arena, ndevices, sizeof *o->fore);
	o->done = hd_arena_take(arena, ndevices, sizeof *o->done);
	if (!o->fore || !o->done)
		return no_memory(diag);
	for (uint32_t d = 0; d < ndevices; d++) {
		const struct hd_ilist *list = &o->list[1][1][d];
		const bool turns = rank[d] == HD_NONE || hd_tensor_turns(o->pipe[0]);
		uint32_t n = 0;
		while (n < list->len && hd_ins_uses(list->at[n].op, 'v') && list->at[n].vn < plan->nvns)
			n++;
		o->fore[d] = turns ? 0 : n;
	}
	return HD_OK;
}

enum hd_err hd_overlap_make(struct hd_worker *w, struct hd_work *work, const struct hd_plan *plan,
	const uint32_t *rank, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_overlap *o = hd_arena_take(arena, 1, sizeof *o);

	if (!o)
		return no_memory(diag);
	const char *why = hd_task_drains(w->task, plan->nranks);
	if (why)
		return hd_fail(diag, HD_E_REFUSED,
			"the plan's steps overlap, and those of this job cannot: %s; leave out the plan's "
			"line overlap", why);
	*o = (struct hd_overlap){ .pipe = { work->pipe } };
	enum hd_err err = hd_pipe_make(&o->pipe[1], w, plan, rank, arena, diag);
	for (int k = 0; k < 2 && !err; k++)
		o->pipe[k]->overlaps = true;
	err = err ? err : hd_eager_make(&o->eager, w, o->pipe[0], arena, diag);
	err = err ? err : make_lists(o, work, plan, rank, w->spec.ndevices, arena, diag);
	err = err ? err : find_fore(o, plan, rank, w->spec.ndevices, arena, diag);
	err = err ? err : count(o, plan, arena, diag);
	if (err)
		return err;
	o->pipe[1]->first_vector = o->pipe[0]->nvectors;
	work->overlap = o;
	return HD_OK;
}

void hd_overlap_begin(struct hd_worker *w, struct hd_work *work)
{
	struct hd_overlap *o = work->overlap;

	o->at ^= o->ahead;
	o->goes_on = w->step->goes_on;
	work->pipe = o->pipe[o->at];
	w->parts->part->parm = work->pipe->vector[0];
	if (w->parts->part->alone)
		w->parts->part->sum = work->pipe->vector[0];
	for (uint32_t d = 0; d < w->spec.ndevices; d++)
		work->rank[d].list = &o->list[o->ahead][o->goes_on][d];
	if (o->ahead) {
		hd_pipe_go_on(work->pipe);
		hd_post_go_on(work->pipe);
		for (uint32_t d = 0; d < w->spec.ndevices; d++)
			work->rank[d].from = o->done[d];
	} else {
		o->err = HD_OK;
		hd_pipe_begin(work->pipe);
		hd_versions_near(w);
	}
	memset(o->done, 0, w->spec.ndevices * sizeof *o->done);
	hd_pipe_clear(hd_overlap_next(o));
	if (o->goes_on)
		hd_post_ahead(hd_overlap_next(o));
	/* whoever fails forgets it (hd_worker_reread) */
	o->ahead = o->goes_on;
}

uint64_t hd_overlap_bytes(const struct hd_overlap *o, const struct hd_worker *w, uint32_t device)
{
	return o->eager && o->eager->device == device ? hd_eager_bytes(o->eager, w) : 0;
}

struct hd_overlap *hd_overlap_in_use(const struct hd_worker *w)
{
	return w->parts && w->parts->part ? w->parts->part->work.overlap : NULL;
}

bool hd_overlap_ahead(const struct hd_worker *w)
{
	return hd_overlap_in_use(w) && hd_overlap_in_use(w)->ahead;
}

void hd_overlap_drop(struct hd_worker *w)
{
	if (hd_overlap_in_use(w))
		hd_overlap_in_use(w)->ahead = false;
	hd_post_drop(w);
}

void hd_overlap_give(struct hd_worker *w, const struct hd_work *work)
{
	hd_pipe_give(work->pipe, w);
	if (!work->overlap)
		return;
	hd_pipe_give(hd_overlap_next(work->overlap), w);
	hd_eager_give(work->overlap->eager, w);
}

void hd_overlap_fence(struct hd_work *work)
{
	hd_pipe_fence(work->pipe);
	if (work->overlap)
		hd_pipe_fence(hd_overlap_next(work->overlap));
}
