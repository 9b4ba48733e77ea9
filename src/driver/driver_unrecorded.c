#include "driver/driver_int.h"

#include <stdio.h>

#include "protocol/member.h"

/* Steps that have no line in metrics.ndjson, or more than one: how many, and why. */

static void tell(struct driver *c, uint64_t n, const char *why)
{
	char text[240];

	c->end.unrecorded += n;
	snprintf(text, sizeof text, "%llu steps have no line in metrics.ndjson: %s", (unsigned long long)n,
		why);
	driver_note(c, "unrecorded", HD_NOBODY, text);
}

/* Members keep the records of their last HD_MEMBER_NEWS steps for the next coordinator; older ones are
 * lost. */
void driver_tell_unrecorded(struct driver *c)
{
	char why[120];

	if (!c->unrecorded)
		return;
	snprintf(why, sizeof why, "no coordinator was there, and members keep the records of their last %d",
		HD_MEMBER_NEWS);
	tell(c, c->unrecorded, why);
	c->unrecorded = 0;
}

/* The state of the last steps is gone. They get a line each once more, which counts: it is of the state that
 * is there now. */
static void tell_again(struct driver *c, uint64_t step)
{
	char text[120];

	snprintf(text, sizeof text, "%llu steps that have a line are done again, from the checkpoint of step "
		"%llu on", (unsigned long long)(c->recorded - step), (unsigned long long)step);
	driver_note(c, "again", HD_NOBODY, text);
	c->had_lines = 0;
}

/* Members without a coordinator may have saved a checkpoint and died: of the steps before it only the written
 * lines exist. */
void driver_begins_at(struct driver *c, uint64_t step)
{
	uint64_t every = (uint64_t)hd_job_int(c->spec->task->job, HD_JOB_METRICS_EVERY);

	driver_tell_unrecorded(c);
	if (step / every > c->recorded / every)
		tell(c, step / every - c->recorded / every,
			"no coordinator was there, and the members with their records are gone");
	c->end.step = step;               /* if it ends there, no commit says so */
	if (step < c->recorded)
		tell_again(c, step);
	c->recorded = step > c->recorded ? step : c->recorded;
}

/* Members are there, which say what they keep; a checkpoint may be of more steps than have lines. */
void driver_goes_on_at(struct driver *c, uint64_t step)
{
	uint64_t every = (uint64_t)hd_job_int(c->spec->task->job, HD_JOB_METRICS_EVERY);
	uint64_t kept = step > HD_CO_NEWS ? step - HD_CO_NEWS : 0;

	if (kept / every > c->recorded / every)
		tell(c, kept / every - c->recorded / every, "no coordinator was there for longer than "
			"members keep them");
	c->recorded = kept > c->recorded ? kept : c->recorded;
	c->config.recorded = c->recorded;
}
