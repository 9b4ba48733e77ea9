#include "pipeline/sim/links.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { PARTS = 256 };

bool hd_sim_links_make(struct sim_links *l, const struct hd_cluster *cluster, uint32_t nflows,
	struct hd_arena *arena)
{
	uint32_t size = 1;

	l->cluster = cluster;
	l->arena = arena;
	for (uint32_t k = 0; cluster && k < cluster->nlevels; k++) {
		l->first[k] = l->nports;
		l->size[k] = size;
		l->nports += 2 * (cluster->ndevices / size);
		size *= cluster->level[k].components;
	}
	l->port = hd_arena_take(arena, (size_t)l->nports + 1, sizeof *l->port);
	l->flow = hd_arena_take(arena, (size_t)nflows + 1, sizeof *l->flow);
	return l->port && l->flow;
}

int64_t hd_sim_alone(double bytes_per_s, int64_t bytes, uint32_t per_ps)
{
	double ticks = (double)bytes * 1e12 / bytes_per_s * (double)per_ps;

	return ticks < 0x1p62 ? llround(ticks) : INT64_MAX;
}

static void count_up(struct sim_flow *f, int64_t now)
{
	f->left -= (sim_wide)(now - f->since) * PARTS / f->share;
	f->left = f->left > 0 ? f->left : 0;
	f->since = now;
}

static void set_share(struct sim_links *l, uint32_t flow, int64_t now)
{
	struct sim_flow *f = &l->flow[flow];
	uint32_t share = 1;

	for (uint32_t p = 0; p < f->nports; p++)
		share = l->port[f->port[p]].n > share ? l->port[f->port[p]].n : share;
	if (share == f->share)
		return;
	if (f->share)
		count_up(f, now);
	f->share = share;
	f->serial++;
	/* beyond INT64_MAX: others end before, and it is put again */
	sim_wide at = now + (f->left * share + PARTS - 1) / PARTS;
	hd_sim_queue_put(l->queue, (struct queue_event){ at < INT64_MAX ? (int64_t)at : INT64_MAX,
		SIM_FLOW_ENDS, flow, f->serial });
}

static void set_shares(struct sim_links *l, const uint32_t *port, uint32_t nports, int64_t now)
{
	for (uint32_t p = 0; p < nports; p++)
		for (uint32_t k = 0; k < l->port[port[p]].n; k++)
			set_share(l, l->port[port[p]].flow[k], now);
}

static bool join(struct sim_links *l, struct sim_port *p, uint32_t flow, int64_t now)
{
	if (p->n == p->cap) {
		uint32_t cap = p->cap ? 2 * p->cap : 8, *list = hd_arena_take(l->arena, cap, sizeof *list);
		if (!list)
			return false;
		if (p->n)
			memcpy(list, p->flow, p->n * sizeof *list);
		p->flow = list;
		p->cap = cap;
	}
	p->since = p->n ? p->since : now;
	p->flow[p->n++] = flow;
	return true;
}

void hd_sim_flow_begin(struct sim_links *l, uint32_t flow, int64_t ticks, int64_t bytes, const uint32_t *port,
	uint32_t nports, int64_t now)
{
	struct sim_flow *f = &l->flow[flow];

	assert(ticks > 0 && f->share == 0);
	*f = (struct sim_flow){ .left = (sim_wide)ticks * PARTS, .since = now, .port = port, .nports = nports,
		.serial = f->serial };
	for (uint32_t p = 0; p < nports; p++) {
		l->port[port[p]].bytes += bytes;
		l->full |= !join(l, &l->port[port[p]], flow, now);
	}
	if (!l->full)
		set_shares(l, port, nports, now);
	if (nports == 0)
		set_share(l, flow, now);
}

void hd_sim_flow_end(struct sim_links *l, uint32_t flow, int64_t now)
{
	struct sim_flow *f = &l->flow[flow];

	f->share = 0;
	f->serial++;
	for (uint32_t k = 0; k < f->nports; k++) {
		struct sim_port *p = &l->port[f->port[k]];
		uint32_t at = 0;
		while (p->flow[at] != flow)
			at++;
		memmove(&p->flow[at], &p->flow[at + 1], (--p->n - at) * sizeof *p->flow);
		p->busy += p->n ? 0 : now - p->since;
	}
	set_shares(l, f->port, f->nports, now);
}
