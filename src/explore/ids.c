#include <stdio.h>
#include <string.h>

#include "explore/explore_int.h"

/* The least job above that of a trial that runs; UINT64_MAX: none. */
static uint64_t next_above(const struct explore *x, uint64_t after)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < x->trials->ntrials; i++)
		if (x->trials->trial[i].state == HD_TRIAL_RUNNING && x->of[i].job > after &&
			x->of[i].job < least)
			least = x->of[i].job;
	return least;
}

bool explore_ids(const struct explore *x, uint64_t *after, char *text, size_t cap)
{
	enum { RANGE = 2 * 20 + 3, MOST = 1000 };
	uint64_t from = next_above(x, *after), n = 0;
	size_t len = 0;

	text[0] = '\0';
	while (from != UINT64_MAX && cap - len > RANGE && n < MOST) {
		uint64_t to = from, next = next_above(x, to);
		for (n++; next == to + 1 && n < MOST; n++) {
			to = next;
			next = next_above(x, to);
		}
		len += (size_t)snprintf(text + len, cap - len, "%s%llu", len ? "." : "",
			(unsigned long long)from);
		if (to > from)
			len += (size_t)snprintf(text + len, cap - len, "-%llu", (unsigned long long)to);
		*after = to;
		from = next;
	}
	return len > 0;
}
