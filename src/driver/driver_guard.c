#include "driver/driver_int.h"

#include <string.h>

/* Redundancy that is on while machines are lost without notice (spot/guard.h). What is switched are views:
 * the run's job keeps the mode that was asked for. What was counted is stored
 * with each loss: a coordinator that takes over, or a resume, goes on with it. */

static void keep(struct driver *c)
{
	uint8_t bytes[HD_GUARD_BYTES];

	hd_guard_put(&c->guard, bytes);
	driver_keep_guard(c, bytes, sizeof bytes);
}

void driver_guard_begin(struct driver *c, const struct hd_job *job)
{
	const enum hd_redundancy mode = (enum hd_redundancy)hd_job_int(job, HD_JOB_REDUNDANCY);

	c->guards = hd_job_int(job, HD_JOB_RESILIENCE) == HD_RESILIENCE_BY_NOTICE;
	c->guard = (struct hd_guard){ .n = 0 };
	c->guard_mode = mode == HD_REDUNDANCY_NONE ? HD_REDUNDANCY_LAZY : mode;
	c->guard_stuck = c->guard_switched = c->guard_refused = false;
	if (c->guards && mode == HD_REDUNDANCY_NONE)
		driver_note(c, "resilience", HD_NOBODY,
			"by-notice: elastic.redundancy is none, so it is lazy while it is on");
	if (c->machine)
		keep(c);
}

void driver_guard_go_on(struct driver *c)
{
	uint8_t bytes[HD_GUARD_BYTES];
	char said[HD_GUARD_WORDS];

	if (c->guards && hd_guard_take(&c->guard, bytes, driver_kept_guard(c, bytes, sizeof bytes)) &&
		c->guard.n)
		driver_note(c, "resilience", HD_NOBODY, hd_guard_why(&c->guard, said));
}

bool driver_guard_refused(struct driver *c)
{
	struct hd_diag why = { "" };

	if (!c->guards || !c->guard_switched || c->guard_refused ||
		hd_shape_redundancy(&c->config.shape) == HD_REDUNDANCY_NONE ||
		driver_make_redundant(c, HD_REDUNDANCY_NONE, &why))
		return false;
	c->guard_refused = true;
	driver_note(c, "resilience", HD_NOBODY,
		"a worker has not the memory for redundancy, which stays off");
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

void driver_guard_noted(struct driver *c, const char *name, uint32_t worker)
{
	const bool left = !strcmp(name, "leave"), lost = !strcmp(name, "lost");

	if (!c->guards || !(left || lost) || !takes_part(c, worker))
		return;
	if (left)
		hd_guard_left(&c->guard, worker, driver_is_announced(c, worker));
	else
		hd_guard_lost(&c->guard, worker);
	keep(c);
}

void driver_guard_step(struct driver *c)
{
	const struct hd_view *view = hd_coordinator_view(c->machine);
	const enum hd_redundancy mode = hd_guard_wants(&c->guard) && !c->guard_refused ? c->guard_mode :
		HD_REDUNDANCY_NONE;
	struct hd_diag why = { "" };
	struct hd_co_status status;
	char said[HD_GUARD_WORDS];

	if (!c->guards || !view || !view->shape.nstages || mode == hd_shape_redundancy(&c->config.shape) ||
		!hd_view_same_shape(&view->shape, &c->config.shape))
		return;
	hd_coordinator_status(c->machine, &status);
	if (status.halting)
		return;
	if (!driver_make_redundant(c, mode, &why)) {
		c->guard_stuck = false;
		c->guard_switched = mode != HD_REDUNDANCY_NONE;
		driver_note(c, "resilience", HD_NOBODY, hd_guard_why(&c->guard, said));
		return;
	}
	if (!c->guard_stuck)
		driver_note(c, "warning", HD_NOBODY, why.text);
	c->guard_stuck = true;                    /* said once, tried at each step */
}
