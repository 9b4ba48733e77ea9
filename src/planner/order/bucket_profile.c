#include "planner/order/int.h"

#include <string.h>

/* Ops of node v: I, then W where it has weights or a time. Both need the I of every node that reads v,
 * which is the gradient of v's output. */
struct building {
	const struct hd_profile *profile;
	struct hd_bucket_problem *problem;
	uint32_t *of;                             /* [nodes] the op I */
	uint32_t *first, *to;
	struct hd_arena *arena;
};

static const char *name(struct building *b, const char *what, const char *id)
{
	char text[160];
	size_t n = strlen(id) < sizeof text - 3 ? strlen(id) : sizeof text - 3;

	memcpy(text, what, 2);
	memcpy(text + 2, id, n);
	return hd_arena_text(b->arena, text, n + 2);
}

static bool is_first_tied(const struct hd_profile *p, uint32_t v)
{
	for (uint32_t u = 0; u < v && *p->node[v].tied; u++)
		if (!strcmp(p->node[u].tied, p->node[v].tied))
			return false;
	return true;
}

static uint32_t add(struct building *b, uint32_t v, const char *what, int64_t ns, int64_t bytes)
{
	struct hd_order_graph *g = &b->problem->graph;
	struct hd_order_op *op = &g->op[g->nops];

	*op = (struct hd_order_op){ .name = name(b, what, b->profile->node[v].id), .time = ns * 1000,
		.first = g->ninputs };
	for (uint32_t e = b->first[v]; e < b->first[v + 1]; e++)
		g->input[g->ninputs++] = b->of[b->to[e]];
	op->ninputs = g->ninputs - op->first;
	b->problem->bytes[g->nops] = bytes;
	return g->nops++;
}

/* Edges by the node that they leave: those of v are to[first[v]] .. to[first[v + 1]]. */
static void sort_edges(struct building *b)
{
	const struct hd_profile *p = b->profile;

	for (uint32_t e = 0; e < p->nedges; e++)
		b->first[p->edge[e].from + 2]++;
	for (uint32_t v = 0; v < p->nnodes; v++)
		b->first[v + 2] += b->first[v + 1];
	for (uint32_t e = 0; e < p->nedges; e++)
		b->to[b->first[p->edge[e].from + 1]++] = p->edge[e].to;
}

enum hd_err hd_bucket_of_profile(struct hd_bucket_problem *out, const struct hd_profile *p, uint32_t devices,
	double bytes_per_s, int64_t latency_ps,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const size_t n = (size_t)p->nnodes + 2, edges = (size_t)p->nedges + 1;
	struct hd_bucket_problem made = { .graph = { .name = "", .measured = p->method == HD_PROFILE_MEASURED,
		.unit = 1e12,
		.op = hd_arena_take(arena, 2 * n, sizeof *made.graph.op),
		.input = hd_arena_take(arena, 2 * edges, sizeof *made.graph.input) },
		.bytes = hd_arena_take(arena, 2 * n, sizeof *made.bytes), .alpha = 2 * latency_ps,
		.beta = 2.0 * (devices - 1) / devices * (1e12 / bytes_per_s) };
	struct building b = { .profile = p, .problem = &made, .of = hd_arena_take(arena, n, sizeof *b.of),
		.first = hd_arena_take(arena, n, sizeof *b.first),
		.to = hd_arena_take(arena, edges, sizeof *b.to), .arena = arena };

	if (!made.graph.op || !made.graph.input || !made.bytes || !b.of || !b.first || !b.to)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a problem of buckets");
	sort_edges(&b);
	for (uint32_t v = p->nnodes; v-- > 0;) {
		const struct hd_profile_node *node = &p->node[v];
		int64_t bytes = node->param > 0 && is_first_tied(p, v) ? node->param : 0;
		b.of[v] = add(&b, v, "I ", node->i.p50_ns, 0);
		if (bytes || node->w.p50_ns > 0)
			(void)add(&b, v, "W ", node->w.p50_ns, bytes);
	}
	for (uint32_t o = 0; o < made.graph.nops; o++)
		if (!made.graph.op[o].name)
			return hd_fail(diag, HD_E_NOMEM, "no memory for names of gradients");
	if (!(hd_bucket_ticks(&made) <= HD_BUCKET_TICKS_MAX))
		return hd_fail(diag, HD_E_INVAL,
			"at %g bytes a second all gradients together take %g s; %g s is the most",
			bytes_per_s,
			hd_bucket_ticks(&made) / made.graph.unit, HD_BUCKET_TICKS_MAX / made.graph.unit);
	*out = made;
	return hd_order_settle(&out->graph, arena, diag);
}
