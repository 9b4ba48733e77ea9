#include "run/port_forecast.h"

#include <stdlib.h>

static uint32_t ranks_of_worker(const struct hd_plan *plan, const struct hd_step_holders *holders)
{
	return holders->devices / hd_plan_width(plan);
}

bool hd_has_ports(const struct hd_plan *plan, const struct hd_run_costs *costs,
	const struct hd_step_holders *holders)
{
	const uint32_t each = ranks_of_worker(plan, holders);

	return costs->port_bytes_per_s > 0 && each && plan->nranks > each;
}

enum hd_err hd_port_cluster(struct hd_cluster *cluster, const struct hd_plan *plan,
	const struct hd_run_costs *costs, const struct hd_step_holders *holders, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const uint32_t each = ranks_of_worker(plan, holders), n = (plan->nranks + each - 1) / each;
	const struct hd_cluster_level level[] = {
		{ "machine", each, HD_CLUSTER_BYTES_PER_S_MAX, (int64_t)(costs->hop_ns * 1000) },
		{ "link", n, costs->port_bytes_per_s,
			(int64_t)((costs->port_latency_ns + costs->hop_ns) * 1000) } };
	const struct hd_cluster_kind kind = { "device", 1, 0 };
	const uint32_t from = each == 1;

	return hd_cluster_make(cluster, level + from, 2 - from, kind, arena, diag);
}

static bool is_back(const struct hd_ins *ins)
{
	return (ins->op == HD_INS_B || ins->op == HD_INS_I || ins->op == HD_INS_W) &&
		!(ins->flags & HD_INS_SHADOW);
}

static double last_back_ns(const struct hd_plan *plan, const struct hd_sim_plan *sim, uint32_t stage)
{
	double last = 0;

	for (uint32_t r = 0; r < plan->nranks; r++)
		for (uint32_t i = 0; i < plan->list[r].len; i++) {
			const struct hd_ins *ins = &plan->list[r].at[i];
			const double end = hd_sim_plan_s(sim, sim->span[r][i].end) * 1e9;
			if (is_back(ins) && (!plan->first || ins->stage == stage) && end > last)
				last = end;
		}
	return last;
}

/* Virtual nodes that a rank computes in one call at the end: those behind its last forward. */
static uint32_t last_wave(const struct hd_plan *plan)
{
	uint32_t most = 0;

	for (uint32_t r = 0; r < plan->nranks; r++) {
		uint32_t n = 0;
		for (uint32_t i = 0; i < plan->list[r].len; i++) {
			const uint8_t op = plan->list[r].at[i].op;
			n = op == HD_INS_F ? 0 : n + is_back(&plan->list[r].at[i]);
		}
		most = n > most ? n : most;
	}
	return most;
}

static int ready_first(const void *a, const void *b)
{
	const struct hd_step_part *x = a, *y = b;

	return (x->ready_ns > y->ready_ns) - (x->ready_ns < y->ready_ns);
}

static double param_bytes(const struct hd_graph *g, uint32_t grad)
{
	return (double)hd_value_elems(&g->value[hd_graph_grad(g, grad)], 1) * sizeof(float);
}

/* The whole model's gradients, as its backward pass makes them. */
static uint32_t parts_of_whole(struct hd_step_part *part, const struct hd_run_costs *costs,
	double end_ns, uint32_t wave)
{
	const struct hd_graph *g = costs->graph;
	double left = 0, all = 0;
	uint32_t n = 0;

	for (uint32_t k = 0; k < hd_graph_ngrads(g); k++)
		all += hd_graph_grad(g, k) == HD_NONE ? 0 : param_bytes(g, k);
	for (uint32_t i = g->nnodes; i-- > g->nforward; left += (double)costs->node_ns[i] * wave)
		for (uint32_t k = 0; k < hd_graph_ngrads(g); k++) {
			const uint32_t v = hd_graph_grad(g, k);
			if (v != HD_NONE && g->value[v].node == i)
				part[n++] = (struct hd_step_part){ 0, param_bytes(g, k) / all,
					end_ns - left };
		}
	return n;
}

enum hd_err hd_port_sums(double *done_ns, const struct hd_plan *plan, const struct hd_sim_plan *sim,
	const struct hd_stage_costs *stages, const struct hd_run_costs *costs,
	const struct hd_step_holders *holders, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t most = plan->nstages + hd_graph_ngrads(costs->graph);
	struct hd_step_part *part = hd_arena_take(arena, most, sizeof *part);
	uint32_t n = 0;

	if (!part)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a forecast");
	if (!plan->first)
		n = parts_of_whole(part, costs, last_back_ns(plan, sim, 0), last_wave(plan));
	for (uint32_t s = 0; s < plan->nstages && plan->first; s++)
		part[n++] = (struct hd_step_part){ s, 1, last_back_ns(plan, sim, s) };
	qsort(part, n, sizeof *part, ready_first);
	return hd_step_link_time(done_ns, plan, stages, costs, holders, part, n, arena, diag);
}
