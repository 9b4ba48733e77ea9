#include "run/port_forecast.h"

#include "graph/stages.h"
#include "plan/buckets.h"

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
			(int64_t)((costs->port_latency_ns + HD_LETTER_HOPS * costs->hop_ns) * 1000) } };
	const struct hd_cluster_kind kind = { "device", 1, 0 };
	const uint32_t from = each == 1;

	return hd_cluster_make(cluster, level + from, 2 - from, kind, arena, diag);
}

static bool is_back(const struct hd_ins *ins)
{
	return (ins->op == HD_INS_B || ins->op == HD_INS_I || ins->op == HD_INS_W) &&
		!(ins->flags & HD_INS_SHADOW);
}

/* When each rank has made its last gradient of each stage: [ranks][stages]; the latest of all. */
static double last_backs(double *last_ns, const struct hd_plan *plan, const struct hd_sim_plan *sim)
{
	double all_ns = 0;

	for (uint32_t r = 0; r < plan->nranks; r++)
		for (uint32_t i = 0; i < plan->list[r].len; i++) {
			const struct hd_ins *ins = &plan->list[r].at[i];
			const double end_ns = hd_sim_plan_s(sim, sim->span[r][i].end) * 1e9;
			double *last = &last_ns[r * plan->nstages + (plan->first ? ins->stage : 0)];
			if (!is_back(ins))
				continue;
			*last = end_ns > *last ? end_ns : *last;
			all_ns = end_ns > all_ns ? end_ns : all_ns;
		}
	return all_ns;
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

static double param_bytes(const struct hd_graph *g, uint32_t grad)
{
	return (double)hd_value_elems(&g->value[hd_graph_grad(g, grad)], 1) * sizeof(float);
}

/* A part of a stage's gradient, and when the last of it is made. */
struct made_part { double share, ready_ns; };

/* The whole model's gradients, as its backward pass makes them. */
static uint32_t parts_of_whole(struct made_part *part, const struct hd_run_costs *costs, double end_ns,
	uint32_t wave)
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
				part[n++] = (struct made_part){ param_bytes(g, k) / all, end_ns - left };
		}
	return n;
}

/* Parts from the last to be made on: when so large a share of all is there, counted from the first made. */
static double ready_of(const struct made_part *part, uint32_t n, double share)
{
	double have = 0, ready_ns = 0;

	while (n-- && have < share - 1e-9) {
		have += part[n].share;
		ready_ns = part[n].ready_ns;
	}
	return ready_ns;
}

/* What stages make and read of each bucket. */
static enum hd_err table_of(struct hd_stage_buckets *table, const struct hd_layout *layout,
	const struct hd_plan *plan, const struct hd_graph *graph, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_graph_stages cuts;
	enum hd_err err = plan->first ? hd_graph_stages_make(&cuts, graph, plan->first, plan->nstages, arena,
		diag) : HD_OK;

	return err ? err : hd_stage_buckets_make(table, layout, plan->first ? &cuts : NULL, NULL, arena,
		diag);
}

enum hd_err hd_port_sums(double *done_ns, const struct hd_plan *plan, const struct hd_sim_plan *sim,
	const struct hd_run_costs *costs, const struct hd_step_holders *holders, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_layout layout;
	struct hd_stage_buckets table;
	enum hd_err err = hd_layout_make(&layout, costs->graph, arena, diag);

	err = err ? err : table_of(&table, &layout, plan, costs->graph, arena, diag);
	if (err)
		return err;
	struct hd_step_bucket *bucket = hd_arena_take(arena, (size_t)table.n + 1, sizeof *bucket);
	struct made_part *part = hd_arena_take(arena, (size_t)hd_graph_ngrads(costs->graph) + 1,
		sizeof *part);
	double *last_ns = hd_arena_take(arena, (size_t)plan->nranks * plan->nstages, sizeof *last_ns);
	if (!bucket || !part || !last_ns)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a forecast");
	const double all_ns = last_backs(last_ns, plan, sim);
	const uint32_t nparts = plan->first ? 0 :
		parts_of_whole(part, costs, all_ns, last_wave(plan));
	for (uint32_t b = 0; b < table.n; b++) {
		const struct hd_chunk at = hd_layout_bucket(&layout, b);
		const double all = (double)layout.elems, behind = (double)(layout.elems - at.at);
		bucket[b] = (struct hd_step_bucket){ .bytes = (double)at.len * sizeof(float),
			.stage = table.at[b].stage, .makers = table.at[b].makers,
			.readers = table.at[b].readers,
			.ready_ns = ready_of(part, nparts, behind / all) };
	}
	return hd_step_link_time(done_ns, plan, costs, holders, bucket, table.n,
		plan->first ? last_ns : NULL, arena, diag);
}
