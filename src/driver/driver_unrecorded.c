#include "driver/driver_int.h"

#include <stdio.h>

#include "protocol/member.h"

/* Steps that have no line in metrics.ndjson: how many, and why. */

static void tell(struct driver *c, uint64_t n, const char *why)
{
	char text[240];

	c->end.unrecorded += n;
	snprintf(text, sizeof text, "%llu steps have no line in metrics.ndjson: %s", (unsigned long long)n,
		why);
	driver_note(c, "unrecorded", HD_NOBODY, text);
}

/* Members keep the records of their last steps for a coordinator that is to come; of more there is no
 * line. */
void driver_tell_unrecorded(struct driver *c)
{
	char why[120];

	if (!c->unrecorded)
		return;
	snprintf(why, sizeof why, "nobody coordinated them, and members keep the records of their last %d",
		HD_MEMBER_NEWS);
	tell(c, c->unrecorded, why);
	c->unrecorded = 0;
}

/* Members that nobody coordinated may have saved a state and died: of the steps before it there is only
 * what had been written down. */
void driver_begins_at(struct driver *c, uint64_t step)
{
	uint64_t every = (uint64_t)hd_job_int(c->spec->task->job, HD_JOB_METRICS_EVERY);

	driver_tell_unrecorded(c);
	if (step / every > c->recorded / every)
		tell(c, step / every - c->recorded / every,
			"nobody coordinated them, and those who knew their records are gone");
	c->recorded = step > c->recorded ? step : c->recorded;
}
