#include "run/xfer_order.h"

#include <string.h>

#include "protocol/transfers.h"
#include "run/comm_settled.h"

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for the order of transfers");
}

/* ---- the forward pass ---- */

/* Of nodes that nothing was measured of their operations. */
static double node_ns(const struct hd_task *task, const struct hd_run_costs *costs, uint32_t i)
{
	const struct hd_graph *g = &task->train;

	return costs ? (double)costs->node_ns[i] :
		hd_ops[g->node[i].op].cost(g, &g->node[i], task->job->per_vn).flops;
}

static uint32_t reads_of(uint32_t *to, uint32_t *seen, const struct hd_task *task, uint32_t inode)
{
	const struct hd_graph *g = &task->train;
	const struct hd_layout *l = &task->layout;
	uint32_t n = 0;

	for (uint32_t k = 0; k < g->node[inode].nin; k++) {
		const struct hd_value *v = &g->value[g->node[inode].in[k]];
		if (v->kind != HD_PARAM)
			continue;
		for (uint32_t s = l->first_segment[v->data]; s < l->first_segment[v->data + 1]; s++) {
			const uint32_t b = hd_layout_bucket_of(l, l->segment[s].chunk);
			if (seen[b] == inode + 1)
				continue;
			seen[b] = inode + 1;
			if (to)
				to[n] = b;
			n++;
		}
	}
	return n;
}

static enum hd_err read_nodes(struct hd_tl_order *order, const struct hd_task *task,
	const struct hd_run_costs *costs, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t nnodes = task->train.nforward;
	struct hd_tl_node *node = hd_arena_take(arena, nnodes + 1u, sizeof *node);
	uint32_t *seen = hd_arena_take(arena, order->nbuckets + 1u, sizeof *seen), all = 0;
	double sum = 0;

	if (!node || !seen)
		return no_memory(diag);
	for (uint32_t i = 0; i < nnodes; i++) {
		node[i] = (struct hd_tl_node){ node_ns(task, costs, i), all, reads_of(NULL, seen, task, i) };
		sum += node[i].share;
		all += node[i].n;
	}
	uint32_t *reads = hd_arena_take(arena, all + 1u, sizeof *reads);
	if (!reads)
		return no_memory(diag);
	memset(seen, 0, order->nbuckets * sizeof *seen);
	for (uint32_t i = 0; i < nnodes; i++) {
		(void)reads_of(reads + node[i].first, seen, task, i);
		node[i].share = sum > 0 ? node[i].share / sum : 1.0 / nnodes;
	}
	order->node = node;
	order->nnodes = nnodes;
	order->reads = reads;
	return HD_OK;
}

/* ---- rows ---- */

static enum hd_err owners_of(uint32_t *owner, const struct hd_task *task, const struct hd_plan *plan,
	struct hd_diag *diag)
{
	if (plan->nchunks != task->layout.nchunks || plan->nvns != task->job->nvns)
		return hd_fail(diag, HD_E_INVAL, "the newest plan of the run is of %u virtual nodes and %u "
			"chunks, its job has %u and %u: the folder has files of two jobs", plan->nvns,
			plan->nchunks, task->job->nvns, task->layout.nchunks);
	for (uint32_t b = 0; b < hd_layout_nbuckets(&task->layout); b++)
		owner[b] = plan->worker[plan->owner[hd_layout_first_chunk(&task->layout, b)]];
	return HD_OK;
}

static uint32_t count_workers(const struct hd_plan *plan)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < plan->nranks; r++)
		n = plan->worker[r] >= n ? plan->worker[r] + 1u : n;
	return n;
}

static enum hd_err read_rows(struct hd_tl_order *order, const struct hd_task *task,
	const struct hd_plan *plan, const struct hd_comm *now, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_comm *comm[2] = { task->comm.nbuckets ? &task->comm : NULL, now };
	uint32_t *owner = hd_arena_take(arena, order->nbuckets + 1u, sizeof *owner);
	struct hd_transfers table[2];
	enum hd_err err = owner ? owners_of(owner, task, plan, diag) : no_memory(diag);

	for (int k = 0; k < 2 && !err; k++)
		hd_transfers_init(&table[k], &(struct hd_transfers_spec){ .nmembers = count_workers(plan),
			.nvns = task->job->nvns, .nbuckets = order->nbuckets,
			.copies = hd_job_copies(task->job), .layout = &task->layout, .owner = owner,
			.comm = comm[k] });
	if (err)
		return err;
	order->nrows = hd_transfers_count(&table[0]);
	struct hd_tl_row *row = hd_arena_take(arena, order->nrows + 1u, sizeof *row);
	if (!row)
		return no_memory(diag);
	for (uint32_t id = 0; id < order->nrows; id++) {
		struct hd_xfer_name name;
		if (hd_transfers_name(&table[0], id, &name, NULL) || hd_xfer_is_mail(name.kind))
			continue;
		const struct hd_xfer was = hd_transfers_row(&table[0], &name);
		row[id] = (struct hd_tl_row){ was.kind, was.bucket, was.priority,
			hd_transfers_priority(&table[1], &name, 0) };
	}
	order->row = row;
	return HD_OK;
}

/* comm.order is strict: nothing goes before its turn (worker/elastic.c). */
static bool wants(enum hd_comm_order by) { return by != HD_COMM_FIFO && by != HD_COMM_RANDOM; }

static enum hd_err may_ask(const struct hd_task *task, const struct hd_plan *plan, enum hd_comm_order was,
	enum hd_comm_order by, const struct hd_run_costs *costs, struct hd_diag *diag)
{
	if (plan->first || plan->nstages > 1)
		return hd_fail(diag, HD_E_REFUSED, "--order: the workers of this run compute stages of the "
			"model; another order is replayed of runs whose workers each hold all of it");
	if (count_workers(plan) < 2)
		return hd_fail(diag, HD_E_REFUSED, "--order: the run has one worker, which sends nothing");
	if (hd_job_int(task->job, HD_JOB_COMM_PRIMITIVE) == HD_PRIMITIVE_HALVING)
		return hd_fail(diag, HD_E_REFUSED, "--order: partial sums of this run go by pairs "
			"(comm.primitive: halving-doubling), which are not replayed in another order");
	if (was == HD_COMM_RANDOM)
		return hd_fail(diag, HD_E_REFUSED, "--order: this run was recorded with comm.order: random, "
			"which is another order in each step; record it with another one");
	if (!costs && (by == HD_COMM_TAC || by == HD_COMM_SEARCH))
		return hd_fail(diag, HD_E_REFUSED, "--order %s needs to know what the nodes of the model "
			"take, and this run has measured nothing (costs.json); tic, tic+ and fifo do without",
			hd_comm_order_names[by]);
	return HD_OK;
}

enum hd_err hd_xfer_order(struct hd_tl_order *order, const struct hd_task *task,
	const struct hd_run_costs *costs, const struct hd_plan *plan, enum hd_comm_order by,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_comm_ask ask = { .graph = &task->train, .layout = &task->layout,
		.node_ns = costs ? costs->node_ns : NULL, .link = hd_comm_link_of(costs), .order = by,
		.seed = (uint64_t)hd_job_int(task->job, HD_JOB_SEED) };
	const enum hd_comm_order was = task->comm.nbuckets ? task->comm.order :
		(enum hd_comm_order)hd_job_int(task->job, HD_JOB_COMM_ORDER);
	struct hd_tl_order made = { .nbuckets = hd_layout_nbuckets(&task->layout), .wants_was = wants(was),
		.wants_now = wants(by) };
	struct hd_comm now;
	enum hd_err err = may_ask(task, plan, was, by, costs, diag);

	err = err ? err : hd_comm_ranks(&now, &ask, arena, diag);
	err = err ? err : read_nodes(&made, task, costs, arena, diag);
	err = err ? err : read_rows(&made, task, plan, &now, arena, diag);
	if (!err)
		*order = made;
	return err;
}
