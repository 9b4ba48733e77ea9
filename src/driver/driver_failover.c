#include "driver/driver_int.h"

#include <string.h>

#include "plan/plan.h"
#include "pipeline/failover.h"
#include "pipeline/plan_schedule.h"
#include "worker/elastic.h"

/* What a loss within a step, and after it, asks of lists and stages (protocol/coordinator.h).
 *
 * May a step go on after a loss within it? The lists are those that every member of the view has made, and
 * what is asked of them here is what its members ask (engine/rest.h), so the answer is theirs; but for
 * memory, of which each knows alone. */

/* Without redundancy in its lists there is nothing to send again. */
static bool keeps_sent(const struct hd_plan *plan)
{
	bool any = false;

	for (uint32_t r = 0; r < plan->nranks; r++)
		for (uint32_t i = 0; i < plan->list[r].len; i++)
			any |= plan->list[r].at[i].flags & HD_INS_KEEP;
	return any;
}

static enum hd_err ask(struct driver *c, const struct hd_view *view, const struct hd_step_progress *progress,
	const bool *lost, bool *may, struct hd_arena *arena)
{
	const struct hd_task *task = c->spec->task;
	const struct hd_plan_job job = hd_plan_job_whole(task->job->nvns, task->layout.nchunks);
	const struct hd_pipes *pipes;
	struct hd_schedule lists, left;
	struct hd_plan plan;
	struct hd_diag why = { "" };

	enum hd_err err = hd_pipe_set_find(&c->pipes, &view->shape, &pipes, &why);
	err = err ? err : hd_pipes_plan(&plan, pipes, view, &job, task, arena, &why);
	if (err || !keeps_sent(&plan))
		return err;
	for (uint32_t r = 0; r < plan.nranks; r++)
		if (!lost[r] && progress->at[r] > plan.list[r].len)
			return HD_E_INVAL;
	err = hd_schedule_of_plan(&lists, &plan, arena, &why);
	err = err ? err : hd_failover(&left, &lists, progress, lost, arena, &why);
	*may = !err;
	return err;
}

bool driver_goes_on(void *self, const struct hd_view *view, const uint32_t *next, const uint8_t *arrived,
	const bool *lost)
{
	const struct hd_step_progress progress = { .at = next, .arrived = arrived };
	struct hd_arena arena;
	bool may = false;

	hd_arena_init(&arena, 0);
	enum hd_err err = ask(self, view, &progress, lost, &may, &arena);
	hd_arena_finish(&arena);
	return !err && may;
}

/* ---- fewer stages */

/* Each lost stage and the one before become one, which the holder of its shadow has whole; at the front, it
 * and the one behind. False: other cuts are needed. */
static bool join(struct hd_view_shape *fewer, const struct hd_pipes *pipes, uint64_t lost)
{
	const uint32_t n = pipes->shape.nstages;
	uint32_t to = 0;

	for (uint32_t s = 0; s < n; s++) {
		const bool behind = lost >> s & 1 || (s == 1 && lost & 1);
		if ((!s || !behind) && to < fewer->nstages)
			fewer->first[to] = pipes->stages.first[s];
		to += !s || !behind;
	}
	return to == fewer->nstages;
}

/* Is it a shape of this job that none refused, within the memory that workers may take, if that is a
 * number? */
static bool has_room(struct driver *c, struct hd_view_shape *shape, const struct hd_fewer_ask *ask)
{
	const struct hd_redraw *r = c->spec->redraw;
	const uint64_t key = hd_view_shape_key(shape);
	const struct hd_pipes *pipes;
	struct hd_diag why = { "" };

	for (uint32_t i = 0; i < ask->nrefused; i++)
		if (ask->refused[i] == key)
			return false;
	return !hd_pipe_set_find(&c->pipes, shape, &pipes, &why) &&
		(!r || !r->spec.fits || r->spec.fits(r->spec.self, shape, ask->n, driver_devices(c), &why));
}

/* 1f1b. */
static uint32_t in_order(uint32_t redundancy)
{
	struct hd_view_shape as = { .nstages = 1 };

	while (strcmp(hd_schedule_kinds[as.schedule].name, "1f1b") != 0)
		as.schedule++;
	hd_shape_make_redundant(&as, redundancy);
	return as.schedule;
}

bool driver_fewer_noted(struct driver *c, const char *name)
{
	const struct hd_view *view = c->machine ? hd_coordinator_view(c->machine) : NULL;
	const bool narrow = view && view->shape.nstages && view->shape.width < c->config.shape.width;

	/* narrow, and none asked for more: those before a takeover */
	if (!strcmp(name, "view"))
		c->has_fewer = narrow && (c->has_fewer || !c->reshaped);
	c->has_fewer |= !strcmp(name, "fewer");
	return c->has_fewer && narrow && !strcmp(name, HD_NOTE_REFUSED);
}

/* In the middle of a run: cuts by the FLOPs have no first nodes, and may have them. What takes less memory
 * comes after what costs less: even cuts, then activations that are computed again. One rank has the model as
 * one stage, in the order of 1f1b, and none that could have a shadow. */
bool driver_fewer(void *self, const struct hd_fewer_ask *ask, struct hd_view_shape *fewer)
{
	const struct hd_view_shape *shape = ask->shape;
	/* of fewer ranks a plan file has no lists */
	const bool listed = hd_shape_order(shape) == HD_SHAPE_LISTED;
	const bool one = ask->width == 1;
	const uint32_t chunks = listed || one ? 1 : shape->nstages / shape->width;
	struct driver *c = self;
	const struct hd_pipes *had;
	struct hd_view_shape even;

	if (shape->groups || hd_view_has_copies(shape) || hd_pipe_set_find(&c->pipes, shape, &had, NULL))
		return false;
	hd_view_shape(&even, ask->width, chunks, shape->place[shape->nstages - 1] == 0);
	if (one)
		even.nstages = even.width = 1;
	even.schedule = one ? in_order(HD_REDUNDANCY_NONE) : listed ? in_order(hd_shape_redundancy(shape)) :
		shape->schedule;
	even.each = shape->each;
	even.again = shape->again;
	for (;; even.again = true) {
		*fewer = even;
		if (!one && chunks == 1 && had->shape.nstages == had->shape.width &&
			join(fewer, had, ask->lost) && has_room(c, fewer, ask))
			return true;
		*fewer = even;
		if (has_room(c, fewer, ask))
			return true;
		if (even.again)
			return false;
	}
}
