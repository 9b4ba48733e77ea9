/* testing_views.h -- what tests of a member's views share. Members are 0 and 1; 2 is to come. For tests
 * only. */
#ifndef HD_PROTOCOL_TESTING_VIEWS_H
#define HD_PROTOCOL_TESTING_VIEWS_H

#include "protocol/testing_member.h"

__attribute__((unused)) static const struct hd_step_news none;
__attribute__((unused)) static const uint32_t two[] = { 0, 1 }, three[] = { 0, 1, 2 };
__attribute__((unused)) static const struct hd_vrank ranks[] = { { 0, 2 }, { 1, 1 }, { 2, 1 } };

#define AT(step_) .step = (step_)
#define SEAL_OF(from, e, s, k, ...) PEER_SAYS(from, SEAL, .epoch = (e), .seal = { .step = (s), .ran = true, \
	.knows = (k), __VA_ARGS__ })
#define PREPARE(in, n) HEAR(PREPARE, .epoch = (in), .prepare = { .next = (n), .nold = 2, .old = two, \
	.nmember = 3, .member = three, .nrank = 3, .rank = ranks })
#define DECIDE(n) HEAR(DECIDE, .epoch = 1, .decided = { n })

/* Of 0 and 1 whichever this is seals step s of epoch e. */
static inline const char *end_step(struct at_work *w, uint32_t e, uint64_t s)
{
	uint32_t me = w->m->worker, other = 1 - me;

	EVENT(COMPUTED, AT(s));
	EVENT(ROOT, .epoch = e, .worker = other, .bucket = me, AT(s));
	EVENT(FOLDED, .bucket = me, AT(s));
	EVENT(SUM, .epoch = e, .worker = other, .bucket = other, AT(s));
	EVENT(LEAVES, .epoch = e, .worker = other, AT(s));
	return EVENT(UPDATED, AT(s), .news = &none);
}

/* And its boundary is done. */
static inline const char *seal(struct at_work *w, uint32_t e, uint64_t s)
{
	end_step(w, e, s);
	return EVENT(READY, AT(s + 1));
}

#endif
