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

bool driver_fewer_noted(struct driver *c, const char *name)
{
	const struct hd_view *view = c->machine ? hd_coordinator_view(c->machine) : NULL;
	const bool narrow = view && view->shape.nstages && view->shape.width < c->config.shape.width,
		stuck = !strcmp(name, HD_NOTE_STUCK) ||
			(c->has_fewer && narrow && !strcmp(name, HD_NOTE_REFUSED));

	if (!strcmp(name, "view"))
		c->has_fewer &= narrow;
	c->has_fewer |= !strcmp(name, "fewer");
	c->no_fewer |= stuck;
	return stuck;
}

/* Is it a shape of this job, within the memory that workers may take, if that is a number? */
static bool has_room(struct driver *c, struct hd_view_shape *shape, uint32_t n)
{
	const struct hd_redraw *r = c->spec->redraw;
	const struct hd_pipes *pipes;
	struct hd_diag why = { "" };

	return !hd_pipe_set_find(&c->pipes, shape, &pipes, &why) &&
		(!r || !r->spec.fits || r->spec.fits(r->spec.self, shape, n, &why));
}

/* In the middle of a run: cuts by the FLOPs have no first nodes, and may have them. */
bool driver_fewer(void *self, const struct hd_view_shape *shape, uint64_t lost, uint32_t width, uint32_t n,
	struct hd_view_shape *fewer)
{
	const uint32_t chunks = shape->nstages / shape->width;
	struct driver *c = self;
	const struct hd_pipes *had;
	struct hd_view_shape even;

	if (c->no_fewer || shape->groups || hd_view_has_copies(shape) ||
		hd_pipe_set_find(&c->pipes, shape, &had, NULL))
		return false;
	hd_view_shape(&even, width, chunks, shape->place[shape->nstages - 1] == 0);
	even.schedule = shape->schedule;
	even.each = shape->each;
	even.again = shape->again;
	*fewer = even;
	if (chunks == 1 && join(fewer, had, lost) && has_room(c, fewer, n))
		return true;
	*fewer = even;
	return has_room(c, fewer, n);
}
