#include "planner/comm.h"

#include <math.h>
#include <string.h>

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for a graph of buckets");
}

/* ---- ranks ---- */

/* Which buckets each forward node reads, written behind one another. */
struct comm_reads { const struct hd_comm_ask *ask; struct hd_order_graph *graph; uint32_t *seen; };

/* `out` false: only counted. A bucket stands once in a node's inputs. */
static void put_buckets(struct comm_reads *r, uint32_t node, uint32_t param, bool out)
{
	const struct hd_layout *l = r->ask->layout;

	for (uint32_t s = l->first_segment[param]; s < l->first_segment[param + 1]; s++) {
		const uint32_t b = hd_layout_bucket_of(l, l->segment[s].chunk);
		if (r->seen[b] == node + 1)
			continue;
		r->seen[b] = node + 1;
		if (out)
			r->graph->input[r->graph->ninputs] = b;
		r->graph->ninputs++;
	}
}

static void put_inputs(struct comm_reads *r, uint32_t i, bool out)
{
	const struct hd_graph *g = r->ask->graph;
	const struct hd_node *node = &g->node[i];
	struct hd_order_graph *o = r->graph;

	o->op[i].first = o->ninputs;
	for (uint32_t k = 0; k < node->nin; k++) {
		const struct hd_value *v = &g->value[node->in[k]];
		if (v->kind == HD_PARAM)
			put_buckets(r, i, v->data, out);
		if (v->kind != HD_TEMP)
			continue;
		if (out)
			o->input[o->ninputs] = o->nrecvs + v->node;
		o->ninputs++;
	}
	o->op[i].ninputs = o->ninputs - o->op[i].first;
}

static int64_t takes_ps(const struct hd_comm_link *link, uint64_t bytes)
{
	return link->latency_ns * 1000 + llround((double)bytes * (1e12 / link->bytes_per_s));
}

enum hd_err hd_comm_graph(struct hd_order_graph *graph, const struct hd_comm_ask *ask, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_graph *g = ask->graph;
	struct hd_order_graph made = { .name = "", .nrecvs = hd_layout_nbuckets(ask->layout),
		.nops = g->nforward, .measured = ask->node_ns != NULL, .unit = 1e12 };
	struct comm_reads r = { ask, &made, hd_arena_take(arena, made.nrecvs + 1u, sizeof *r.seen) };

	if (made.nrecvs > HD_ORDER_RECVS)
		return hd_fail(diag, HD_E_INVAL, "%u buckets; an order is made of at most %d", made.nrecvs,
			HD_ORDER_RECVS);
	made.op = hd_arena_take(arena, made.nops + 1u, sizeof *made.op);
	made.recv = hd_arena_take(arena, made.nrecvs + 1u, sizeof *made.recv);
	made.recv_time = hd_arena_take(arena, made.nrecvs + 1u, sizeof *made.recv_time);
	if (!made.op || !made.recv || !made.recv_time || !r.seen)
		return no_memory(diag);
	for (uint32_t i = 0; i < made.nops; i++)
		put_inputs(&r, i, false);
	made.input = hd_arena_take(arena, made.ninputs + 1u, sizeof *made.input);
	if (!made.input)
		return no_memory(diag);
	memset(r.seen, 0, made.nrecvs * sizeof *r.seen);
	made.ninputs = 0;
	for (uint32_t i = 0; i < made.nops; i++) {
		put_inputs(&r, i, true);
		made.op[i].name = "";
		made.op[i].time = ask->node_ns ? ask->node_ns[i] * 1000 : 0;
	}
	for (uint32_t b = 0; b < made.nrecvs; b++) {
		const struct hd_chunk run = hd_layout_bucket(ask->layout, b);
		const uint32_t param = ask->layout->segment[run.first_segment].param;
		made.recv[b] = hd_graph_text_of(g, g->value[g->param[param].value].name);
		made.recv_time[b] = takes_ps(&ask->link, run.len * sizeof(float));
	}
	*graph = made;
	return hd_order_settle(graph, arena, diag);
}

static enum hd_err by_graph(struct hd_comm *c, const struct hd_comm_ask *ask, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_order_graph graph;
	struct hd_recv_order order;
	enum hd_err err = hd_comm_graph(&graph, ask, arena, diag);

	if (err)
		return err;
	const enum hd_order_mode mode = ask->order == HD_COMM_AUTO ? hd_order_auto(&graph) :
		(enum hd_order_mode)(ask->order - 1);
	err = hd_order_make(&order, &graph, mode, ask->seed, arena, diag);
	if (err)
		return err;
	c->order = (enum hd_comm_order)(mode + 1);
	memcpy(c->rank, order.priority, c->nbuckets * sizeof *c->rank);
	return HD_OK;
}

_Static_assert((int)HD_COMM_FIFO == (int)HD_ORDER_FIFO + 1 && (int)HD_COMM_SEARCH == (int)HD_ORDER_SEARCH +
	1 &&
	(int)HD_COMM_TIC_PLUS == (int)HD_ORDER_TIC_PLUS + 1, "orders of jobs and of planners stand alike");

enum hd_err hd_comm_ranks(struct hd_comm *comm, const struct hd_comm_ask *ask, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_comm c = { .order = HD_COMM_FIFO, .nbuckets = hd_layout_nbuckets(ask->layout),
		.parts = ask->order != HD_COMM_AUTO && ask->order != HD_COMM_FIFO };
	enum hd_err err = HD_OK;

	c.rank = hd_arena_take(arena, c.nbuckets + 1u, sizeof *c.rank);
	if (!c.rank)
		return no_memory(diag);
	for (uint32_t b = 0; b < c.nbuckets; b++)
		c.rank[b] = c.nbuckets - 1 - b;
	if (ask->order != HD_COMM_FIFO)
		err = by_graph(&c, ask, arena, diag);
	if (!err)
		*comm = c;
	return err;
}

/* ---- buckets ---- */

static uint64_t segment_bytes(const struct hd_layout *l, uint32_t s)
{
	const uint64_t end = s + 1 < l->nsegments ? l->segment[s + 1].at : l->elems;

	return (end - l->segment[s].at) * sizeof(float);
}

enum hd_err hd_comm_cut(struct hd_comm_cut *cut, const struct hd_layout *l, int64_t bytes,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const bool tensors = bytes == HD_COMM_TENSORS;
	const uint64_t most = (uint64_t)(tensors ? HD_COMM_MOST : bytes);
	struct hd_comm_cut c = { .nsegments = hd_arena_take(arena, l->nsegments + 1u, sizeof *c.nsegments) };
	uint64_t has = 0;

	if (!c.nsegments)
		return no_memory(diag);
	for (uint32_t s = l->nsegments; s-- > 0;) {
		const uint64_t more = segment_bytes(l, s);
		const bool apart = tensors && s + 1 < l->nsegments && l->segment[s].param != l->segment[s +
			1].param;
		if (s + 1 == l->nsegments || apart || has + more > most) {
			c.nbuckets++;
			has = 0;
		}
		c.nsegments[c.nbuckets - 1]++;
		has += more;
	}
	for (uint32_t i = 0; i < c.nbuckets / 2; i++) {
		const uint32_t other = c.nsegments[c.nbuckets - 1 - i];
		c.nsegments[c.nbuckets - 1 - i] = c.nsegments[i];
		c.nsegments[i] = other;
	}
	*cut = c;
	return HD_OK;
}

/* When each parameter's gradient is made, in nanoseconds of the backward pass; a part counts as its
 * parameter. `end` [nnodes]: when each node is done. */
static void find_ready(int64_t *ready, int64_t *end, const struct hd_comm_ask *ask)
{
	const struct hd_graph *g = ask->graph;
	int64_t now = 0;

	for (uint32_t i = g->nforward; i < g->nnodes; i++)
		end[i] = now += ask->node_ns[i];
	for (uint32_t k = 0; k < hd_graph_ngrads(g); k++) {
		const uint32_t v = hd_graph_grad(g, k), p = hd_graph_grad_param(g, k);
		const uint32_t node = v != HD_NONE ? g->value[v].node : HD_NONE;
		if (node != HD_NONE && end[node] > ready[p])
			ready[p] = end[node];
	}
}

/* The pieces of rule 4, the last first: gradients of a bucket problem whose ops stand in a line, so that an
 * op
 * ends when its gradient and all before it are made. */
struct comm_pieces { uint32_t *nsegments; int64_t *bytes, *ready; uint32_t n; };

static enum hd_err find_pieces(struct comm_pieces *c, const struct hd_comm_ask *ask, int64_t most,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_layout *l = ask->layout;
	int64_t *of = hd_arena_take(arena, l->nparams + 1u, sizeof *of), made = 0;
	int64_t *end = hd_arena_take(arena, ask->graph->nnodes + 1u, sizeof *end);

	*c = (struct comm_pieces){ .nsegments = hd_arena_take(arena, l->nsegments, sizeof *c->nsegments),
		.bytes = hd_arena_take(arena, l->nsegments, sizeof *c->bytes),
		.ready = hd_arena_take(arena, l->nsegments, sizeof *c->ready) };
	if (!of || !end || !c->nsegments || !c->bytes || !c->ready)
		return no_memory(diag);
	find_ready(of, end, ask);
	for (uint32_t s = l->nsegments; s-- > 0;) {
		const int64_t more = (int64_t)segment_bytes(l, s), ready = of[l->segment[s].param];
		const bool same = c->n && l->segment[s].param == l->segment[s + 1].param;
		made = ready > made ? ready : made;
		if (!same || c->bytes[c->n - 1] + more > most)
			c->n++;
		c->nsegments[c->n - 1]++;
		c->bytes[c->n - 1] += more;
		c->ready[c->n - 1] = made;
	}
	return HD_OK;
}

static enum hd_err state_problem(struct hd_bucket_problem *problem, uint32_t **order,
	const struct comm_pieces *c,
	const struct hd_comm_ask *ask, uint32_t nworkers, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_bucket_problem p = { .graph = { .name = "", .nops = c->n, .measured = true, .unit = 1e12,
		.op = hd_arena_take(arena, c->n + 1u, sizeof *p.graph.op) },
		.bytes = c->bytes, .alpha = 2 * ask->link.latency_ns * 1000,
		.beta = 2.0 * (nworkers - 1) / nworkers * (1e12 / ask->link.bytes_per_s) };

	*order = hd_arena_take(arena, c->n + 1u, sizeof **order);
	if (!p.graph.op || !*order)
		return no_memory(diag);
	for (uint32_t i = 0; i < c->n; i++) {
		p.graph.op[i] = (struct hd_order_op){ .name = "",
			.time = (c->ready[i] - (i ? c->ready[i - 1] : 0)) * 1000 };
		(*order)[i] = i;
	}
	*problem = p;
	return HD_OK;
}

enum hd_err hd_comm_cut_best(struct hd_comm_cut *cut, const struct hd_comm_ask *ask, uint32_t nworkers,
	int64_t most, int64_t *end_ns, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_bucket_problem problem;
	struct hd_bucketing best;
	struct comm_pieces pieces;
	struct hd_comm_cut c = { 0 };
	uint32_t *order = NULL;
	enum hd_err err = find_pieces(&pieces, ask, most, arena, diag);

	*end_ns = 0;
	if (!err && pieces.n > HD_BUCKET_PIECES)
		return hd_comm_cut(cut, ask->layout, most, arena, diag);
	err = err ? err : state_problem(&problem, &order, &pieces, ask, nworkers, arena, diag);
	err = err ? err : hd_buckets_make(&best, &problem, order, HD_BUCKETS_EXACT, most, arena, diag);
	if (err)
		return err;
	c.nbuckets = best.nbuckets;
	c.nsegments = hd_arena_take(arena, c.nbuckets + 1u, sizeof *c.nsegments);
	if (!c.nsegments)
		return no_memory(diag);
	for (uint32_t b = 0; b < c.nbuckets; b++)
		for (uint32_t i = best.bucket[b].first; i < best.bucket[b].first + best.bucket[b].n; i++)
			c.nsegments[c.nbuckets - 1 - b] += pieces.nsegments[best.gradient[i]];
	*end_ns = best.end / 1000;
	*cut = c;
	return HD_OK;
}
