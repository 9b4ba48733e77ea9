#include <string.h>

#include "daemon/pilots.h"

/* How many pilots of which type: a walk over the jobs, in the order in which they are to be served. No policy
 * is asked: it decides over what is there, and what is asked for here is what would let all of them run. */

struct plan { const struct hd_pools *pools; uint32_t *want, left, fast[HD_DISPATCH_TYPES]; };

static uint32_t least_of(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Types by speed, the fastest first; equal ones by name. */
static void sort_types(struct plan *p)
{
	for (uint32_t t = 0; t < p->pools->ntypes; t++) {
		uint32_t at = t;
		for (; at && p->pools->type[p->fast[at - 1]].speed < p->pools->type[t].speed; at--)
			p->fast[at] = p->fast[at - 1];
		p->fast[at] = t;
	}
}

static uint32_t room(const struct plan *p, uint32_t type, uint32_t of)
{
	return of > p->want[type] ? least_of(p->left, of - p->want[type]) : 0;
}

static bool give(struct plan *p, uint32_t type, uint32_t of, uint32_t least, uint32_t most)
{
	if (room(p, type, of) < least)
		return false;
	const uint32_t n = least_of(room(p, type, of), most);
	p->want[type] += n;
	p->left -= n;
	return true;
}

static void place(struct plan *p, const uint32_t can[HD_DISPATCH_TYPES], const struct hd_pilots_ask *ask)
{
	const uint32_t all = p->pools->type[ask->type].n;

	/* a job that runs stays where it is, with as much as it has */
	if (ask->now) {
		if (!give(p, ask->type, all, ask->now, ask->most > ask->now ? ask->most : ask->now))
			(void)give(p, ask->type, all, 0, ask->now);
		return;
	}
	for (int waits = 0; waits < 2; waits++)
		for (uint32_t i = 0; i < p->pools->ntypes; i++) {
			const uint32_t t = p->fast[i];
			if (ask->at[t] && give(p, t, waits ? p->pools->type[t].n : can[t], ask->least,
				ask->most))
				return;
		}
}

void hd_pilots_plan(const struct hd_pools *pools, uint32_t least, uint32_t most,
	const uint32_t can[HD_DISPATCH_TYPES], const struct hd_pilots_ask *ask, uint32_t n,
	uint32_t want[HD_DISPATCH_TYPES])
{
	struct plan p = { .pools = pools, .want = want, .left = most };

	memset(want, 0, HD_DISPATCH_TYPES * sizeof *want);
	sort_types(&p);
	for (int waits = 0; waits < 2; waits++)
		for (uint32_t i = 0; i < n && p.left; i++)
			if ((ask[i].now == 0) == waits)
				place(&p, can, &ask[i]);
	for (uint32_t i = 0; i < pools->ntypes && most - p.left < least; i++)
		(void)give(&p, p.fast[i], pools->type[p.fast[i]].n, 0, least - (most - p.left));
}
