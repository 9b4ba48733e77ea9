#include "worker/elastic_int.h"

/* What a device stands still for comes first: the compute thread says for which bucket, the I/O thread asks
 * its sender. Only the order of transfers changes, so what is asked for too late does no harm. */

void hd_elastic_lacks(struct hd_elastic *e)
{
	const uint32_t bucket = e->broken || e->stale || !e->computed ? UINT32_MAX : hd_dist_lacks(e->worker);

	if (bucket == UINT32_MAX || hd_commands_wait(&e->commands))
		return;
	atomic_store(&e->lacks, bucket + 1);
	hd_hub_wake(&e->hub);
}

void hd_elastic_want(struct hd_elastic *e)
{
	const uint32_t lacks = atomic_exchange(&e->lacks, 0);

	if (lacks && !e->keeps_order && !e->open_pending)
		atomic_store(&e->awaits, hd_relay_want(&e->relay, lacks - 1));
}
