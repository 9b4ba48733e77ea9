#include "worker/elastic_int.h"

/* Apart from what counts (elastic_spent.c), which knows plans and their forecast: the exchange does not. */

void hd_elastic_spent_say(struct hd_elastic *e, uint64_t step)
{
	if (e->spent.n)
		hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_SPENT, .step = step,
			.spent = e->spent.said, .n = e->spent.n });
}
