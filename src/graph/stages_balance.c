#include "graph/stages.h"

#include "graph/op.h"

/* Where to cut by the graph alone. */

enum { NEAR = 8 };                        /* a boundary may lie 1/NEAR of a stage beside its share */

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM,
	"no memory to find cuts"); }

/* upto[i]: FLOPs of the forward nodes before i and of the gradients that belong to them. */
static void sum_flops(const struct hd_graph *g, uint64_t rows, double *upto)
{
	for (uint32_t i = 0; i <= g->nforward; i++)
		upto[i] = 0;
	for (uint32_t i = 0; i < g->nnodes; i++) {
		uint32_t at = i < g->nforward ? i : g->node[i].of;
		struct hd_cost cost = hd_ops[g->node[i].op].cost(g, &g->node[i], rows);
		/* an op without arithmetic moves its bytes: as many operations as numbers */
		upto[at + 1] += cost.flops > cost.bytes / sizeof(float) ? cost.flops :
			cost.bytes / sizeof(float);
	}
	for (uint32_t i = 0; i < g->nforward; i++)
		upto[i + 1] += upto[i];
}

/* crossing[i]: bytes that are made before forward node i and read from it on. */
static void sum_bytes(const struct hd_graph *g, uint64_t rows, uint32_t *last, double *crossing)
{
	for (uint32_t v = 0; v < g->nvalues; v++)
		last[v] = 0;
	for (uint32_t i = 0; i < g->nforward; i++)
		for (uint8_t k = 0; k < g->node[i].nin; k++)
			last[g->node[i].in[k]] = i;
	for (uint32_t i = 0; i <= g->nforward; i++)
		crossing[i] = 0;
	for (uint32_t v = 0; v < g->nvalues; v++)
		if (g->value[v].kind == HD_TEMP)         /* no forward node reads a gradient */
			for (uint32_t i = g->value[v].node + 1; i <= last[v]; i++)
				crossing[i] += (double)hd_value_bytes(&g->value[v], rows);
}

static uint32_t cut_near(const double *upto, const double *crossing, uint32_t from, uint32_t end,
	double share,
	double slack)
{
	uint32_t best = from;

	for (uint32_t i = from; i < end; i++) {
		double off = upto[i] > share ? upto[i] - share : share - upto[i],
			best_off = upto[best] > share ? upto[best] - share : share - upto[best];
		bool is_near = off <= slack, best_near = best_off <= slack;
		if (is_near != best_near ? is_near : is_near ? crossing[i] < crossing[best] : off < best_off)
			best = i;
	}
	return best;
}

enum hd_err hd_graph_stages_balance(uint32_t *first, uint32_t n, const struct hd_graph *graph, uint64_t rows,
	struct hd_arena *arena, struct hd_diag *diag)
{
	return hd_graph_stages_share(first, NULL, n, graph, rows, arena, diag);
}

enum hd_err hd_graph_stages_share(uint32_t *first, const uint32_t *copies, uint32_t n,
	const struct hd_graph *graph, uint64_t rows, struct hd_arena *arena, struct hd_diag *diag)
{
	if (n == 0 || n > graph->nforward)
		return hd_fail(diag, HD_E_INVAL,
			"%u stages, and the model has %u nodes: a stage has one at least, use fewer", n,
			graph->nforward);
	double *upto = hd_arena_take(arena, graph->nforward + 1, sizeof *upto);
	double *crossing = hd_arena_take(arena, graph->nforward + 1, sizeof *crossing);
	uint32_t *last = hd_arena_take(arena, graph->nvalues, sizeof *last);
	if (!upto || !crossing || !last)
		return no_memory(diag);
	sum_flops(graph, rows, upto);
	sum_bytes(graph, rows, last, crossing);
	uint32_t nparts = n, before = 0;
	for (uint32_t s = 0; s < n && copies; s++)
		nparts += copies[s] - 1;
	double part = upto[graph->nforward] / nparts;
	first[0] = 0;
	for (uint32_t s = 1; s < n; s++) {
		before += copies ? copies[s - 1] : 1;
		first[s] = cut_near(upto, crossing, first[s - 1] + 1, graph->nforward - (n - 1 - s),
			part * before, part / NEAR);
	}
	return HD_OK;
}
