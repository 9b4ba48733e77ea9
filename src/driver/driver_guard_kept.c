#include "driver/driver_int.h"

/* What the next coordinator goes on with. Two records: losses as by-notice counts them (spot/guard.h), as
 * earlier programs have it, and
 *
 *	which of elastic.resilience it is of 1 | the mode that the job had before auto 1 | the mode now 1 |
 *	flags 1: by-notice has switched it, it was refused, auto keeps two pipelines |
 *	modes that did not work, a bit each 1 |
 *	what auto has seen (spot/resilience.h)
 */

enum { WAY_BYTES = 5 + HD_RESILIENCE_BYTES };
#define WAY_NS INT64_C(10000000000)

static int64_t now_ms(const struct driver *c) { return hd_clock_now_ns(c->spec->clock) / HD_NS_PER_MS; }

static uint8_t way_of(const struct driver *c)
{
	return c->judges ? HD_RESILIENCE_AUTO : c->guards ? HD_RESILIENCE_BY_NOTICE : HD_RESILIENCE_GIVEN;
}

/* As the run's job says it: by-notice leaves it there, whatever is on. */
static uint8_t mode_of(const struct driver *c)
{
	const int is = (int)c->resilience.is;

	if (!c->judges)
		return (uint8_t)c->guard_mode;
	return is == HD_SPOT_CHECKPOINT || is == HD_SPOT_REPLICA ? HD_REDUNDANCY_NONE :
		(uint8_t)(HD_REDUNDANCY_LAZY + (is - HD_SPOT_LAZY));
}

static bool keeps_two(const struct driver *c) { return c->judges && c->resilience.is == HD_SPOT_REPLICA; }

void driver_guard_keep(struct driver *c)
{
	uint8_t guard[HD_GUARD_BYTES], way[WAY_BYTES] = { way_of(c), (uint8_t)c->own_mode, mode_of(c),
		(uint8_t)(c->guard_switched | c->guard_refused << 1 | keeps_two(c) << 2) };

	for (int k = 0; k < HD_NSPOT_STRATEGIES; k++)
		way[4] |= (uint8_t)(c->cannot[k] << k);
	hd_resilience_put(&c->resilience, now_ms(c), way + 5);
	hd_guard_put(&c->guard, guard);
	driver_keep(c, DRIVER_KEEPS_GUARD, guard, sizeof guard);
	driver_keep(c, DRIVER_KEEPS_WAY, way, sizeof way);
	c->way_ns = hd_clock_now_ns(c->spec->clock);
}

void driver_guard_keep_at_times(struct driver *c)
{
	if (hd_clock_now_ns(c->spec->clock) - c->way_ns > WAY_NS)
		driver_guard_keep(c);
}

/* A resume may be on other machines: what was timed on the last ones says nothing of them. Losses stay. */
static void forget_times(struct hd_resilience *r)
{
	for (int k = 0; k < HD_NSPOT_STRATEGIES; k++) {
		r->step_s[k] = r->takes_s[k] = 0;
		r->nsteps[k] = 0;
	}
	r->back_s = 0;
}

/* False: there is none of this way. */
static bool take_way(struct driver *c)
{
	const bool resumed = c->spec->target > 0;
	uint8_t way[WAY_BYTES];

	if (driver_kept(c, DRIVER_KEEPS_WAY, way, sizeof way) != sizeof way || way[0] != way_of(c) ||
		way[1] >= HD_NREDUNDANCIES || way[3] > 7)
		return false;
	if (c->judges || c->saves)
		(void)!hd_resilience_take(&c->resilience, way + 5, HD_RESILIENCE_BYTES, now_ms(c));
	if (resumed)
		forget_times(&c->resilience);
	if (way[2] == mode_of(c))                 /* else it was asked for since */
		c->own_mode = (enum hd_redundancy)way[1];
	if (resumed)
		return true;
	c->guard_switched = way[3] & 1;
	c->guard_refused = way[3] >> 1 & 1;
	if (c->judges && way[3] >> 2 && mode_of(c) == HD_REDUNDANCY_NONE && c->config.pipes > 1) {
		c->config.least = 2;
		hd_resilience_took(&c->resilience, HD_SPOT_REPLICA);
	}
	for (int k = 0; k < HD_NSPOT_STRATEGIES; k++)
		c->cannot[k] = way[4] >> k & 1;
	return true;
}

void driver_guard_go_on(struct driver *c)
{
	uint8_t bytes[HD_GUARD_BYTES];
	char said[HD_GUARD_WORDS];

	if (!c->guards && !c->judges && !c->saves)
		return;
	if (c->guards && hd_guard_take(&c->guard, bytes, driver_kept(c, DRIVER_KEEPS_GUARD, bytes,
		sizeof bytes)) && c->guard.n)
		driver_note(c, "resilience", HD_NOBODY, hd_guard_why(&c->guard, said));
	/* of a run of an earlier program it is not known what auto began with */
	if (!take_way(c) && !c->spec->target)
		c->own_mode = HD_REDUNDANCY_NONE;
	driver_guard_keep(c);
}
