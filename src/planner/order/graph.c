#include "planner/order.h"

#include <math.h>
#include <string.h>

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM,
	"no memory for a graph of receives"); }

/* An op that waits, and one that it waits for: from any op that is left, always to an input that is left,
 * until one comes again. */
static enum hd_err tell_cycle(const struct hd_order_graph *g, const uint32_t *missing, bool *seen,
	struct hd_diag *diag)
{
	uint32_t at = 0;

	while (!missing[at])
		at++;
	while (!seen[at]) {
		seen[at] = true;
		uint32_t next = at;
		for (uint32_t i = 0; i < g->op[at].ninputs; i++) {
			uint32_t from = g->input[g->op[at].first + i];
			if (from >= g->nrecvs && missing[from - g->nrecvs])
				next = from - g->nrecvs;
		}
		if (seen[next])
			return hd_fail(diag, HD_E_INPUT, "%s%sop %.80s needs %.80s, which needs it: a cycle",
				g->name, *g->name ? ": " : "", g->op[at].name,
				g->op[next].name);
		at = next;
	}
	return HD_E_BUG;
}

enum hd_err hd_order_settle(struct hd_order_graph *g, struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t *missing = hd_arena_take(arena, (size_t)g->nops + 1, sizeof *missing),
		*first = hd_arena_take(arena, (size_t)g->nops + 2, sizeof *first);
	uint32_t *reader = hd_arena_take(arena, (size_t)g->ninputs + 1, sizeof *reader), n = 0;
	bool *seen = hd_arena_take(arena, (size_t)g->nops + 1, sizeof *seen);

	g->topo = hd_arena_take(arena, (size_t)g->nops + 1, sizeof *g->topo);
	if (!missing || !first || !reader || !seen || !g->topo)
		return no_memory(diag);
	for (int round = 0; round < 2; round++) {         /* how many read an op, then which */
		for (uint32_t o = 0; o < g->nops; o++)
			for (uint32_t i = 0; i < g->op[o].ninputs; i++) {
				uint32_t from = g->input[g->op[o].first + i];
				if (from < g->nrecvs)
					continue;
				if (round)
					reader[first[from - g->nrecvs + 1]++] = o;
				else
					first[from - g->nrecvs + 2]++;
				missing[o] += !round;
			}
		for (uint32_t o = 0; o < g->nops && !round; o++)
			first[o + 2] += first[o + 1];
	}
	for (uint32_t o = 0; o < g->nops; o++)
		if (!missing[o])
			g->topo[n++] = o;
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t i = first[g->topo[k]]; i < first[g->topo[k] + 1]; i++)
			if (!--missing[reader[i]])
				g->topo[n++] = reader[i];
	return n == g->nops ? HD_OK : tell_cycle(g, missing, seen, diag);
}

/* ---- of a profile */

static uint32_t first_tied(const struct hd_profile *p, uint32_t v)
{
	for (uint32_t u = 0; u < v && *p->node[v].tied; u++)
		if (!strcmp(p->node[u].tied, p->node[v].tied))
			return u;
	return v;
}

/* Edges by the node that they enter: those of v are at[first[v]] .. at[first[v + 1]]. */
static void sort_edges(const struct hd_profile *p, uint32_t *first, uint32_t *at)
{
	for (uint32_t e = 0; e < p->nedges; e++)
		first[p->edge[e].to + 2]++;
	for (uint32_t v = 0; v < p->nnodes; v++)
		first[v + 2] += first[v + 1];
	for (uint32_t e = 0; e < p->nedges; e++)
		at[first[p->edge[e].to + 1]++] = p->edge[e].from;
}

enum hd_err hd_order_of_profile(struct hd_order_graph *out, const struct hd_profile *p, double bytes_per_s,
	int64_t latency_ps, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const size_t n = (size_t)p->nnodes + 2;
	struct hd_order_graph g = { .name = "", .nops = p->nnodes,
		.measured = p->method == HD_PROFILE_MEASURED, .unit = 1e12,
		.recv = hd_arena_take(arena, n, sizeof *g.recv),
		.recv_time = hd_arena_take(arena, n, sizeof *g.recv_time),
		.op = hd_arena_take(arena, n, sizeof *g.op),
		.input = hd_arena_take(arena, (size_t)p->nedges + n, sizeof *g.input) };
	uint32_t *of = hd_arena_take(arena, n, sizeof *of), *first = hd_arena_take(arena, n, sizeof *first);
	uint32_t *from = hd_arena_take(arena, (size_t)p->nedges + 1, sizeof *from);

	if (!g.recv || !g.recv_time || !g.op || !g.input || !of || !first || !from)
		return no_memory(diag);
	for (uint32_t v = 0; v < p->nnodes; v++) {
		const struct hd_profile_node *node = &p->node[v];
		uint32_t tied = first_tied(p, v);
		of[v] = node->param <= 0 ? HD_ORDER_RECVS : tied < v ? of[tied] : g.nrecvs;
		if (node->param <= 0 || tied < v)
			continue;
		g.recv[g.nrecvs] = *node->tied ? node->tied : node->id;
		g.recv_time[g.nrecvs++] = latency_ps + llround((double)node->param * (1e12 / bytes_per_s));
	}
	sort_edges(p, first, from);
	for (uint32_t v = 0; v < p->nnodes; v++) {
		g.op[v] = (struct hd_order_op){ .name = p->node[v].op, .time = p->node[v].f.p50_ns * 1000,
			.first = g.ninputs };
		if (of[v] != HD_ORDER_RECVS)
			g.input[g.ninputs++] = of[v];
		for (uint32_t e = first[v]; e < first[v + 1]; e++)
			g.input[g.ninputs++] = g.nrecvs + from[e];
		g.op[v].ninputs = g.ninputs - g.op[v].first;
	}
	*out = g;
	return hd_order_settle(out, arena, diag);
}
