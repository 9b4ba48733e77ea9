/* links.h -- transfers that share ports: the rate of each, and when it is done.
 *
 * A flow goes over one or more ports at once and has the smallest of its shares of them: 1/n of the
 * bandwidth, n flows on the port. All ports of one flow have the same bandwidth, so its work is counted in
 * ticks that it would take alone.
 *
 * 1. When a flow begins or ends, the flows it shares ports with are counted up to now and get new shares.
 * 2. Work is counted in 1/256 of a tick, rounded down when done, up when ending: a flow never ends early. */
#ifndef HD_PIPELINE_SIM_LINKS_H
#define HD_PIPELINE_SIM_LINKS_H

#include "cost/topology.h"
#include "pipeline/sim/queue.h"

__extension__ typedef __int128 sim_wide;

/* flows on it; busy up to `since` */
struct sim_port { uint32_t *flow, n, cap; int64_t bytes, busy, since; };

struct sim_flow {
	sim_wide left; int64_t since;             /* work, as of */
	const uint32_t *port;                     /* borrowed */
	uint32_t nports, share, serial;           /* share 0: it is not under way */
};

struct sim_links {
	const struct hd_cluster *cluster;         /* NULL: no ports */
	uint32_t per_ps, nports;
	/* ports out of a level; those in follow them: first[l] + 2 * component + in */
	uint32_t first[HD_CLUSTER_LEVELS + 1];
	uint32_t size[HD_CLUSTER_LEVELS + 1];     /* devices in a component of level l - 1 */
	struct sim_port *port;
	struct sim_flow *flow;
	struct sim_queue *queue;
	struct hd_arena *arena;
	bool full;                                /* no memory */
};

bool hd_sim_links_make(struct sim_links *links, const struct hd_cluster *cluster, uint32_t nflows,
	struct hd_arena *arena);
static inline uint32_t hd_sim_port(const struct sim_links *l, uint32_t level, uint32_t device, bool in)
{
	return l->first[level] + 2 * (device / l->size[level]) + in;
}
/* Ticks that bytes take alone over a level; INT64_MAX: 2^62 or more. */
int64_t hd_sim_alone(double bytes_per_s, int64_t bytes, uint32_t per_ps);
/* The flow moves `ticks` > 0 of work over ports; SIM_FLOW_ENDS with its number and serial tells the end. */
void hd_sim_flow_begin(struct sim_links *links, uint32_t flow, int64_t ticks, int64_t bytes,
	const uint32_t *port, uint32_t nports, int64_t now);
void hd_sim_flow_end(struct sim_links *links, uint32_t flow, int64_t now);

#endif
