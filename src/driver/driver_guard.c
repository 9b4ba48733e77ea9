#include "driver/driver_int.h"

#include <stdio.h>
#include <string.h>

#include "run/kept_job.h"

/* Redundancy that is on while machines are lost without notice (spot/guard.h). What is switched are views:
 * the run's job keeps the mode that was asked for. What was counted is stored with each loss: a coordinator
 * that takes over, or a resume, goes on with it (driver_guard_kept.c). */

/* ---- what is judged (spot/resilience.h). The run's job has the mode that it is now, so what it was at first
 * is stored beside the losses. */

static const enum hd_redundancy redundancy_of[HD_NSPOT_STRATEGIES] = { [HD_SPOT_LAZY] = HD_REDUNDANCY_LAZY,
	[HD_SPOT_EAGER] = HD_REDUNDANCY_EAGER, [HD_SPOT_FULL] = HD_REDUNDANCY_FULL };

enum hd_spot_strategy driver_strategy(enum hd_redundancy mode)
{
	return mode == HD_REDUNDANCY_NONE ? HD_SPOT_CHECKPOINT :
		(enum hd_spot_strategy)(HD_SPOT_LAZY + (mode - HD_REDUNDANCY_LAZY));
}

static const char *word_of(enum hd_spot_strategy mode)
{
	return mode == HD_SPOT_REPLICA ? "replica:1" : hd_redundancy_names[redundancy_of[mode]];
}

/* Without shadows two pipelines may be kept: that is in no key of the run's job, and goes with what is
 * stored. */
static enum hd_err take_mode(struct driver *c, enum hd_spot_strategy to, struct hd_diag *why)
{
	const enum hd_redundancy mode = redundancy_of[to];
	const uint32_t least = c->config.least;
	struct hd_kept_value kept = { HD_JOB_REDUNDANCY, c->spec->task->job->value[HD_JOB_REDUNDANCY] };
	struct hd_arena arena;

	c->config.least = to == HD_SPOT_REPLICA ? 2 : 1;
	enum hd_err err = driver_make_redundant(c, mode, why);
	if (err) {
		c->config.least = least;
		return err;
	}
	hd_resilience_took(&c->resilience, to);
	driver_guard_keep(c);             /* first: a mode that is not in it was asked for since */
	kept.value.i = mode;
	kept.value.text = hd_redundancy_names[mode];
	hd_arena_init(&arena, 0);
	err = hd_kept_job_put(c->spec->dir, &kept, 1, &arena, why);
	hd_arena_finish(&arena);
	if (err)                                  /* a coordinator that takes over judges again */
		driver_note(c, "warning", HD_NOBODY, why->text);
	return HD_OK;
}

/* Before a loss was seen: silence until it is known and a start; half of what lies between checkpoints. */
static void expect(const struct driver *c, struct hd_resilience_now *now)
{
	const struct hd_job_value *pause = &c->spec->task->job->value[HD_JOB_PAUSE_MAX];
	/* the one just committed may have been done twice */
	const double known_s = c->resilience.step_s[c->resilience.is],
		step_s = known_s > 0 ? known_s : c->step_ms * 1e-3;

	now->takes_s = (double)c->detect_ns * 1e-9 + 2;
	now->back_s = now->takes_s + driver_saving_every_s(c, step_s) / 2;
	if (c->saves) {
		now->checkpoint_s = c->saving.cost_s;
		now->every_s = driver_saving_every_s(c, step_s);
	}
	now->pause_max_s = pause->is_none ? 0 : (double)pause->i * 1e-9;
}

static int64_t now_ms(const struct driver *c) { return hd_clock_now_ns(c->spec->clock) / HD_NS_PER_MS; }

/* Devices that have, or could have, a rank. Before the first view they gather. */
static void see_devices(struct driver *c)
{
	struct hd_co_worker_status worker[HD_MAX_WORKERS];
	const bool began = c->machine && hd_coordinator_view(c->machine);
	const uint32_t n = began ? hd_coordinator_workers(c->machine, worker, HD_MAX_WORKERS) : 0;
	uint32_t devices = 0;

	for (uint32_t i = 0; i < n; i++)
		devices += worker[i].up && (worker[i].state == HD_W_MEMBER || worker[i].state == HD_W_READY) ?
			worker[i].ndevices / hd_view_each(&c->config.shape) : 0;
	hd_resilience_there(&c->resilience, devices, now_ms(c));
}

static void judge(struct driver *c, const struct hd_view *view, uint64_t step, bool whole)
{
	const struct hd_job *job = c->spec->task->job;
	const struct hd_pipes *pipes;
	enum hd_spot_strategy to = c->resilience.is;
	char said[HD_RESILIENCE_WORDS + 64], why[HD_RESILIENCE_WORDS] = "";
	struct hd_diag diag = { "" };

	if (hd_pipe_set_find(&c->pipes, &view->shape, &pipes, NULL))
		return;
	const bool single = pipes->stages.v == 1 && pipes->stages.t <= 1 &&
		hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_PIPELINE &&
		hd_job_int(job, HD_JOB_UPDATE) == HD_UPDATE_FLUSH;
	struct hd_resilience_now now = { .step = step, .now_ms = now_ms(c),
		.pipelines = view->nranks / view->shape.width, .stages = view->shape.width,
		.machines = view->nranks, .most = c->config.pipes, .vns = c->config.nvns,
		.step_s = whole ? c->step_ms * 1e-3 : 0,
		.batch = (double)hd_job_int(job, HD_JOB_GLOBAL), .usd_h = hd_job_num(job, HD_JOB_USD_H) };
	const bool shadows = now.stages > 1 && view->nmembers > 1;
	now.can[HD_SPOT_LAZY] = shadows && !c->cannot[HD_SPOT_LAZY];
	now.can[HD_SPOT_EAGER] = shadows && single && !c->cannot[HD_SPOT_EAGER];
	now.can[HD_SPOT_FULL] = shadows && single && !c->cannot[HD_SPOT_FULL];
	now.can[HD_SPOT_REPLICA] = now.stages > 1 && now.pipelines > 1 && !view->shape.groups &&
		!hd_view_has_copies(&view->shape) && !c->cannot[HD_SPOT_REPLICA];
	expect(c, &now);
	const bool other = hd_resilience_commit(&c->resilience, &now, &to, why);
	if (*why)
		snprintf(c->judged, sizeof c->judged, "%s", why);
	driver_guard_keep_at_times(c);
	if (!other)
		return;
	if (take_mode(c, to, &diag)) {
		c->cannot[to] = true;
		driver_note(c, "warning", HD_NOBODY, diag.text);
		return;
	}
	snprintf(said, sizeof said, "auto: %s%s; %s", to == HD_SPOT_REPLICA ? "" : "redundancy ", word_of(to),
		why);
	driver_note(c, "resilience", HD_NOBODY, said);
}

uint32_t driver_guard_least(struct driver *c, const struct hd_pipes *pipes, const struct hd_job *job)
{
	const struct hd_view_shape *shape = &pipes->shape;

	if (!c->judges || c->resilience.is != HD_SPOT_REPLICA ||
		job->value[HD_JOB_RESILIENCE].origin == HD_FROM_SET ||
		job->value[HD_JOB_REDUNDANCY].origin == HD_FROM_SET)
		return hd_job_least_pipelines(job);
	if (pipes->most > 1 && shape->width > 1 && !shape->groups && !hd_view_has_copies(shape))
		return 2;
	hd_resilience_took(&c->resilience, HD_SPOT_CHECKPOINT);
	driver_guard_keep(c);
	return 1;
}

const char *driver_resilience(const struct driver *c, char *out, size_t cap)
{
	char why[HD_GUARD_WORDS];

	if (c->guards)
		snprintf(out, cap, "by-notice, %s", hd_guard_why(&c->guard, why));
	else if (c->judges)
		snprintf(out, cap, "auto, %s", *c->judged ? c->judged : "not judged yet");
	else
		snprintf(out, cap, "%s", c->way);
	return out;
}

/* ---- by-notice */

void driver_guard_begin(struct driver *c, const struct hd_job *job)
{
	const enum hd_redundancy mode = (enum hd_redundancy)hd_job_int(job, HD_JOB_REDUNDANCY);

	c->guards = hd_job_int(job, HD_JOB_RESILIENCE) == HD_RESILIENCE_BY_NOTICE;
	c->judges = hd_job_int(job, HD_JOB_RESILIENCE) == HD_RESILIENCE_AUTO;
	c->guard = (struct hd_guard){ .n = 0 };
	snprintf(c->way, sizeof c->way, "%s", hd_job_text(job, HD_JOB_RESILIENCE));
	hd_resilience_begin(&c->resilience, driver_strategy(mode), now_ms(c));
	memset(c->cannot, 0, sizeof c->cannot);
	*c->judged = '\0';
	c->guard_mode = mode == HD_REDUNDANCY_NONE ? HD_REDUNDANCY_LAZY : mode;
	c->guard_stuck = c->guard_refused = c->guard_switched = false;
	c->own_mode = mode;
	if (c->guards && mode == HD_REDUNDANCY_NONE)
		driver_note(c, "resilience", HD_NOBODY,
			"by-notice: elastic.redundancy is none, so it is lazy while it is on");
	if (c->machine)
		driver_guard_keep(c);
}

static bool was_switched_on(const struct driver *c, enum hd_redundancy mode)
{
	return mode != HD_REDUNDANCY_NONE && (c->judges ? mode != c->own_mode :
		c->guards && c->guard_switched && !c->guard_refused);
}

bool driver_guard_refused(struct driver *c)
{
	const enum hd_redundancy mode = hd_shape_redundancy(&c->config.shape);
	char said[100];
	struct hd_diag why = { "" };

	if (!was_switched_on(c, mode) || (c->judges ? take_mode(c, driver_strategy(c->own_mode), &why) :
		driver_make_redundant(c, HD_REDUNDANCY_NONE, &why)))
		return false;
	c->guard_refused = c->guards;
	c->cannot[driver_strategy(mode)] = true;
	driver_guard_keep(c);
	snprintf(said, sizeof said, "a worker has not the memory for redundancy %s, which stays off",
		hd_redundancy_names[mode]);
	driver_note(c, "resilience", HD_NOBODY, said);
	return true;
}

static bool takes_part(const struct driver *c, uint32_t worker)
{
	const struct hd_view *view = c->machine ? hd_coordinator_view(c->machine) : NULL;

	for (uint32_t i = 0; view && i < view->nmembers; i++)
		if (view->member[i] == worker)
			return true;
	return false;
}

/* Two pipelines that auto keeps by itself cannot be: all would wait, and one is enough for the job. */
static void keep_two_no_more(struct driver *c, const char *because)
{
	struct hd_diag why = { "" };
	const bool failed = take_mode(c, HD_SPOT_CHECKPOINT, &why) != HD_OK;

	driver_note(c, failed ? "warning" : "resilience", HD_NOBODY, failed ? why.text : because);
}

/* They are judged again, but where there are devices for two stages each: for these memory is missing. */
static void holds(struct driver *c)
{
	c->cannot[HD_SPOT_REPLICA] |= c->resilience.there >= 4;
	keep_two_no_more(c, c->cannot[HD_SPOT_REPLICA] ?
		"auto: none; two pipelines of fewer stages do not fit, and replica:1 stays off" :
		"auto: none; there are too few devices for two pipelines, and one is enough");
}

void driver_guard_scales(struct driver *c, uint32_t target)
{
	const struct hd_view_shape *shape = &c->config.shape;

	if (c->judges && c->resilience.is == HD_SPOT_REPLICA &&
		(uint64_t)target * (driver_devices(c) / hd_view_each(shape)) < (uint64_t)2 * shape->width)
		keep_two_no_more(c, "auto: none; so few workers are asked for that they are one pipeline");
}

/* What is lost with it: stages, not what waits for a place, nor what it runs for one that is lost already. */
static uint32_t ranks_of(const struct driver *c, uint32_t worker)
{
	const struct hd_view *view = c->machine ? hd_coordinator_view(c->machine) : NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; view && i < view->nranks; i++)
		n += view->rank[i].worker == worker && !hd_view_doubled(view, i);
	return n;
}

void driver_guard_noted(struct driver *c, const char *name, uint32_t worker)
{
	const bool left = !strcmp(name, "leave"), lost = !strcmp(name, "lost"),
		announced = left && driver_is_announced(c, worker);

	if (c->judges)
		see_devices(c);
	if (c->judges && !strcmp(name, "restore"))
		hd_resilience_back(&c->resilience);
	/* stays: one with notice, which could hand its part over if one pipeline were enough */
	if (c->judges && c->resilience.is == HD_SPOT_REPLICA &&
		(!strcmp(name, "hold") || !strcmp(name, "stays")))
		holds(c);
	if ((c->judges || c->saves) && (announced || lost)) {
		hd_resilience_lost(&c->resilience, worker, ranks_of(c, worker), announced, c->end.step,
			now_ms(c));
		driver_guard_keep(c);
	}
	if (!c->guards || !(left || lost) || !takes_part(c, worker))
		return;
	if (left)
		hd_guard_left(&c->guard, worker, announced);
	else
		hd_guard_lost(&c->guard, worker);
	driver_guard_keep(c);
}

void driver_guard_step(struct driver *c, uint64_t step, bool whole)
{
	const struct hd_view *view = hd_coordinator_view(c->machine);
	const enum hd_redundancy mode = hd_guard_wants(&c->guard) && !c->guard_refused ? c->guard_mode :
		HD_REDUNDANCY_NONE;
	struct hd_diag why = { "" };
	struct hd_co_status status;
	char said[HD_GUARD_WORDS];

	if (c->judges)
		see_devices(c);
	const bool made_up = c->judges && hd_resilience_made_up(&c->resilience, step, now_ms(c));
	if (c->judges && view && view->shape.nstages && hd_view_same_shape(&view->shape, &c->config.shape)) {
		hd_coordinator_status(c->machine, &status);
		if (!status.halting)
			judge(c, view, step, whole && !made_up);
		return;
	}
	if (!c->guards || !view || !view->shape.nstages || mode == hd_shape_redundancy(&c->config.shape) ||
		!hd_view_same_shape(&view->shape, &c->config.shape))
		return;
	hd_coordinator_status(c->machine, &status);
	if (status.halting)
		return;
	if (!driver_make_redundant(c, mode, &why)) {
		c->guard_stuck = false;
		c->guard_switched = mode != HD_REDUNDANCY_NONE;
		driver_guard_keep(c);
		driver_note(c, "resilience", HD_NOBODY, hd_guard_why(&c->guard, said));
		return;
	}
	if (!c->guard_stuck)
		driver_note(c, "warning", HD_NOBODY, why.text);
	c->guard_stuck = true;                    /* said once, tried at each step */
}
