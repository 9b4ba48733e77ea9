#include "planner/order/flows.h"

#include <assert.h>
#include <math.h>

#include "planner/ports.h"

/* ---- heaps ---- */

static bool before(const struct hd_flow_message *a, const struct hd_flow_message *b, bool by_time)
{
	if (by_time && (a->ready_ns < b->ready_ns || a->ready_ns > b->ready_ns))
		return a->ready_ns < b->ready_ns;
	if (a->urgency != b->urgency)
		return a->urgency < b->urgency;
	return a->bucket > b->bucket;
}

static void push(struct hd_flow_heap *h, const struct hd_flow_message *m, bool by_time)
{
	uint32_t i = h->n++;

	assert(h->n <= h->cap);
	for (; i && before(m, &h->at[(i - 1) / 2], by_time); i = (i - 1) / 2)
		h->at[i] = h->at[(i - 1) / 2];
	h->at[i] = *m;
}

static struct hd_flow_message pop(struct hd_flow_heap *h, bool by_time)
{
	const struct hd_flow_message first = h->at[0], last = h->at[--h->n];
	uint32_t i = 0;

	for (uint32_t next; (next = 2 * i + 1) < h->n; i = next) {
		next += next + 1 < h->n && before(&h->at[next + 1], &h->at[next], by_time);
		if (!before(&h->at[next], &last, by_time))
			break;
		h->at[i] = h->at[next];
	}
	h->at[i] = last;
	return first;
}

bool hd_flows_init(struct hd_flows *f, uint32_t nports, uint32_t messages, struct hd_arena *arena)
{
	assert(nports <= HD_FLOW_PORTS);
	f->nports = nports;
	f->coming = (struct hd_flow_heap){ .cap = messages * nports * nports };
	f->coming.at = hd_arena_take(arena, (size_t)f->coming.cap + 1, sizeof *f->coming.at);
	bool whole = f->coming.at;
	for (uint32_t from = 0; from < nports; from++)
		for (uint32_t to = 0; to < nports; to++) {
			struct hd_flow_heap *h = &f->pair[from][to];
			*h = (struct hd_flow_heap){ .cap = messages };
			h->at = from == to ? NULL : hd_arena_take(arena, messages + 1u, sizeof *h->at);
			whole &= from == to || h->at;
		}
	return whole;
}

void hd_flows_add(struct hd_flows *f, const struct hd_flow_message *message)
{
	struct hd_flow_message m = *message;

	assert(m.from != m.to && m.from < f->nports && m.to < f->nports);
	m.left += f->own_bytes;
	push(&f->coming, &m, true);
}

/* ---- time ---- */

static uint32_t choose(const struct hd_flows *f, struct hd_port_flow *flow)
{
	uint32_t n = 0;

	for (uint32_t from = 0; from < f->nports; from++)
		for (uint32_t to = 0; to < f->nports; to++)
			if (f->pair[from][to].n)
				flow[n++] = (struct hd_port_flow){ from, to, 0 };
	return n;
}

/* Either time goes on to the next that is ready, or a message ends: so turns are bounded by messages,
 * whatever rounding leaves. */
static void go_on(struct hd_flows *f, struct hd_port_flow *flow, uint32_t nflows)
{
	double until_ns = f->coming.n ? f->coming.at[0].ready_ns : INFINITY;
	double end_ns[HD_FLOW_PORTS * HD_FLOW_PORTS];

	hd_ports_share(flow, nflows, f->nports, 1 / f->ns_per_byte);
	for (uint32_t i = 0; i < nflows; i++) {
		end_ns[i] = f->now_ns + f->pair[flow[i].from][flow[i].to].at[0].left / flow[i].rate;
		until_ns = fmin(until_ns, end_ns[i]);
	}
	const double ns = until_ns - f->now_ns;
	f->now_ns = until_ns;
	for (uint32_t i = 0; i < nflows; i++) {
		struct hd_flow_heap *h = &f->pair[flow[i].from][flow[i].to];
		h->at[0].left -= flow[i].rate * ns;
		/* one that would end together with the first has less than a byte left */
		if (end_ns[i] > until_ns && h->at[0].left > 0.5)
			continue;
		const struct hd_flow_message m = pop(h, false);
		f->arrived(f->user, &m, f->now_ns + f->late_ns);
	}
}

void hd_flows_run(struct hd_flows *f)
{
	struct hd_port_flow flow[HD_FLOW_PORTS * HD_FLOW_PORTS];

	for (;;) {
		while (f->coming.n && f->coming.at[0].ready_ns <= f->now_ns) {
			const struct hd_flow_message m = pop(&f->coming, true);
			push(&f->pair[m.from][m.to], &m, false);
		}
		const uint32_t n = choose(f, flow);
		if (n)
			go_on(f, flow, n);
		else if (f->coming.n)
			f->now_ns = f->coming.at[0].ready_ns;
		else
			return;
	}
}
