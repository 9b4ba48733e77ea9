#include "planner/comm.h"

#include <string.h>

#include "graph/testing.h"
#include "tests/planning.h"

/* Of graphs of real models: what a node needs is read off the flat vector, orders are judged by running the
 * nodes under every one of them, buckets by every way to cut. */

enum { BUCKETS = 6, NODES = 400 };

struct commed {
	struct hd_subject s;
	struct hd_layout layout;
	int64_t node_ns[NODES];
	struct hd_comm_ask ask;
};

static const struct hd_model_arg mlp[] = { { "input", "[1, 20, 20]" }, { "hidden", "[200, 90, 70]" },
	{ "classes", "4" } };
static const struct hd_model_arg gpt[] = { { "layers", "1" }, { "width", "16" }, { "heads", "2" },
	{ "context", "8" }, { "vocab", "32" }, { "dropout", "0" } };
static const struct hd_model_arg inception[] = { { "stem", "cifar" }, { "channels", "1" }, { "height", "6" },
	{ "width", "6" }, { "base", "8" }, { "blocks", "[1]" }, { "classes", "4" } };
struct comm_model { const char *name; const struct hd_model_arg *arg; uint32_t nargs; };
static const struct comm_model models[] = {
	{ "mlp", mlp, 3 }, { "gpt", gpt, 6 }, { "inception", inception, 7 } };
enum { NMODELS = 3 };

static void open_model(struct commed *c, const struct comm_model *m, struct hd_dice *d)
{
	struct hd_subject *s = &c->s;

	hd_subject_model(s, m->name, m->arg, m->nargs, (struct hd_model_opts){ 0 });
	CHECK(s->err == HD_OK, "%s", s->diag.text);
	CHECK(hd_graph_autodiff(&s->graph, &s->diag) == HD_OK, "%s", s->diag.text);
	CHECK(hd_layout_make(&c->layout, &s->graph, &s->arena, &s->diag) == HD_OK, "%s", s->diag.text);
	assert_in_range(s->graph.nnodes, 1, NODES);
	for (uint32_t i = 0; i < s->graph.nnodes; i++)
		c->node_ns[i] = hd_roll(d, 4) ? hd_roll(d, 3000) : 0;
	c->ask = (struct hd_comm_ask){ .graph = &s->graph, .layout = &c->layout, .node_ns = c->node_ns,
		.link = { .bytes_per_s = 1e6 * (1 + hd_roll(d, 100)), .latency_ns = hd_roll(d, 900) } };
}

/* Any runs of segments, at most `most`. */
static void cut_any(struct commed *c, uint32_t most, struct hd_dice *d)
{
	uint32_t nsegments[BUCKETS] = { 0 }, n = 1 + hd_roll(d, most), all = c->layout.nsegments;

	n = n < all ? n : all;
	for (uint32_t i = 0; i < all; i++)
		nsegments[i < n ? i : hd_roll(d, n)]++;
	CHECK(hd_layout_cut(&c->layout, n, nsegments, &c->s.arena, &c->s.diag) == HD_OK, "%s",
		c->s.diag.text);
}

static bool reads(const struct commed *c, const struct hd_node *node, uint32_t bucket)
{
	const struct hd_chunk run = hd_layout_bucket(&c->layout, bucket);

	for (uint32_t k = 0; k < node->nin; k++) {
		const struct hd_value *v = &c->s.graph.value[node->in[k]];
		const uint64_t at = v->kind == HD_PARAM ? c->layout.at[v->data] : 0,
			len = v->kind == HD_PARAM ? c->layout.len[v->data] : 0;
		if (len && at < run.at + run.len && run.at < at + len)
			return true;
	}
	return false;
}

static void a_node_needs_the_buckets_that_it_reads(void **state)
{
	struct hd_dice d = { 5 };

	(void)state;
	for (int round = 0; round < 30; round++) {
		struct commed c;
		struct hd_order_graph g;
		open_model(&c, &models[round % NMODELS], &d);
		cut_any(&c, BUCKETS, &d);
		CHECK(hd_comm_graph(&g, &c.ask, &c.s.arena, &c.s.diag) == HD_OK, "%s", c.s.diag.text);
		assert_true(g.nrecvs == hd_layout_nbuckets(&c.layout) && g.nops == c.s.graph.nforward);
		for (uint32_t i = 0; i < g.nops; i++) {
			uint32_t has[BUCKETS] = { 0 }, nops = 0, temps = 0;
			for (uint32_t k = g.op[i].first; k < g.op[i].first + g.op[i].ninputs; k++) {
				nops += g.input[k] >= g.nrecvs;
				if (g.input[k] < g.nrecvs)
					has[g.input[k]]++;
			}
			for (uint32_t k = 0; k < c.s.graph.node[i].nin; k++)
				temps += c.s.graph.value[c.s.graph.node[i].in[k]].kind == HD_TEMP;
			assert_int_equal(nops, temps);
			assert_int_equal(g.op[i].time, c.node_ns[i] * 1000);
			for (uint32_t b = 0; b < g.nrecvs; b++)
				CHECK(has[b] == reads(&c, &c.s.graph.node[i], b), "node %u, bucket %u", i, b);
		}
		hd_subject_finish(&c.s);
	}
}

/* Nodes one by one, always one that can begin first. Picoseconds. */
static int64_t run_nodes(const struct commed *c, const uint32_t *order, uint32_t n)
{
	const struct hd_graph *g = &c->s.graph;
	int64_t here[BUCKETS], end[NODES], now = 0;
	bool done[NODES] = { false };

	for (uint32_t k = 0; k < n; k++)
		here[order[k]] = now += c->ask.link.latency_ns * 1000 + (int64_t)(
			(double)hd_layout_bucket(&c->layout,
				order[k]).len * 4 * (1e12 / c->ask.link.bytes_per_s) +
			0.5);
	int64_t last = now;
	now = 0;
	for (uint32_t left = g->nforward; left; left--) {
		uint32_t best = UINT32_MAX;
		int64_t first = INT64_MAX;
		for (uint32_t i = 0; i < g->nforward; i++) {
			int64_t can = 0;
			bool may = !done[i];
			for (uint32_t k = 0; k < g->node[i].nin && may; k++) {
				const struct hd_value *v = &g->value[g->node[i].in[k]];
				may = v->kind != HD_TEMP || done[v->node];
				can = may && v->kind == HD_TEMP && end[v->node] > can ? end[v->node] : can;
			}
			for (uint32_t b = 0; b < n && may; b++)
				can = reads(c, &g->node[i], b) && here[b] > can ? here[b] : can;
			if (may && can < first) {
				first = can;
				best = i;
			}
		}
		now = (first > now ? first : now) + c->node_ns[best] * 1000;
		end[best] = now;
		done[best] = true;
	}
	return now > last ? now : last;
}

static int64_t least_of_all(const struct commed *c, uint32_t *order, uint32_t at, uint32_t n)
{
	int64_t least = INT64_MAX;

	if (at == n)
		return run_nodes(c, order, n);
	for (uint32_t i = at; i < n; i++) {
		const uint32_t was = order[at];
		order[at] = order[i];
		order[i] = was;
		const int64_t now = least_of_all(c, order, at + 1, n);
		least = now < least ? now : least;
		order[i] = order[at];
		order[at] = was;
	}
	return least;
}

/* Of buckets that share a rank the lower first. */
static int64_t run_ranks(const struct commed *c, const struct hd_comm *comm)
{
	uint32_t order[BUCKETS], n = 0;

	for (uint32_t r = 0; r < comm->nbuckets; r++)
		for (uint32_t b = 0; b < comm->nbuckets; b++)
			if (comm->rank[b] == r)
				order[n++] = b;
	assert_int_equal(n, comm->nbuckets);
	return run_nodes(c, order, n);
}

static void ranks_are_near_the_best_of_all_orders(void **state)
{
	struct hd_dice d = { 8 };
	double excess[HD_NCOMM_ORDERS] = { 0 };
	enum { ROUNDS = 45 };

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct commed c;
		struct hd_comm comm;
		uint32_t order[BUCKETS];
		open_model(&c, &models[round % NMODELS], &d);
		cut_any(&c, 5, &d);
		for (uint32_t b = 0; b < BUCKETS; b++)
			order[b] = b;
		const int64_t best = least_of_all(&c, order, 0, hd_layout_nbuckets(&c.layout));
		for (int o = 0; o < HD_NCOMM_ORDERS; o++) {
			c.ask.order = (enum hd_comm_order)o;
			CHECK(hd_comm_ranks(&comm, &c.ask, &c.s.arena, &c.s.diag) == HD_OK, "%s",
				c.s.diag.text);
			assert_true(comm.order == (o == HD_COMM_AUTO ? HD_COMM_SEARCH :
				(enum hd_comm_order)o));
			assert_true(comm.parts == (o != HD_COMM_AUTO && o != HD_COMM_FIFO));
			const int64_t takes = run_ranks(&c, &comm);
			assert_true(takes >= best);
			excess[o] += (double)(takes - best) / (double)best / ROUNDS;
		}
		c.ask.order = HD_COMM_AUTO;
		c.ask.node_ns = NULL;
		CHECK(hd_comm_ranks(&comm, &c.ask, &c.s.arena, &c.s.diag) == HD_OK, "%s", c.s.diag.text);
		assert_true(comm.order == HD_COMM_TIC_PLUS && !comm.parts);
		hd_subject_finish(&c.s);
	}
	CHECK(excess[HD_COMM_SEARCH] <= 0.001 && excess[HD_COMM_TAC] <= 0.01 && excess[HD_COMM_AUTO] ==
		excess[HD_COMM_SEARCH], "search %g, tac %g", excess[HD_COMM_SEARCH], excess[HD_COMM_TAC]);
	CHECK(excess[HD_COMM_FIFO] > excess[HD_COMM_TIC_PLUS] + 0.01, "fifo %g, tic+ %g",
		excess[HD_COMM_FIFO],
		excess[HD_COMM_TIC_PLUS]);
}

static uint64_t bytes_of(const struct hd_layout *l, uint32_t s)
{
	return ((s + 1 < l->nsegments ? l->segment[s + 1].at : l->elems) - l->segment[s].at) * 4;
}

static void buckets_have_the_bytes_that_were_given(void **state)
{
	static const int64_t given[] = { 1, 4096, 65536 * 4, 65536 * 4 + 4096, 1 << 20, 1 << 30,
		HD_COMM_TENSORS };
	struct hd_dice d = { 2 };

	(void)state;
	for (size_t i = 0; i < NMODELS * sizeof given / sizeof *given; i++) {
		struct commed c;
		struct hd_comm_cut cut;
		const int64_t most = given[i / NMODELS];
		uint32_t s = 0;
		open_model(&c, &models[i % NMODELS], &d);
		CHECK(hd_comm_cut(&cut, &c.layout, most, &c.s.arena, &c.s.diag) == HD_OK, "%s",
			c.s.diag.text);
		for (uint32_t b = 0; b < cut.nbuckets; b++) {
			const uint32_t first = s, end = s + cut.nsegments[b];
			uint64_t bytes = 0;
			assert_true(cut.nsegments[b] && end <= c.layout.nsegments);
			for (; s < end; s++)
				bytes += bytes_of(&c.layout, s);
			if (most == HD_COMM_TENSORS) {
				assert_int_equal(c.layout.segment[first].param,
					c.layout.segment[end - 1].param);
				continue;
			}
			assert_true(end - first == 1 || bytes <= (uint64_t)most);
			/* one more of those before would have been too much */
			assert_true(!first || bytes + bytes_of(&c.layout, first - 1) > (uint64_t)most);
		}
		assert_int_equal(s, c.layout.nsegments);
		hd_subject_finish(&c.s);
	}
}

/* When parameter p's gradient is whole: the last node that makes any part of it. */
static int64_t made_ns(const struct commed *c, uint32_t p)
{
	const struct hd_graph *g = &c->s.graph;
	int64_t now = 0, made = 0;

	for (uint32_t i = g->nforward; i < g->nnodes; i++) {
		bool makes = g->value[g->param[p].value].grad != HD_NONE &&
			g->value[g->value[g->param[p].value].grad].node == i;
		for (uint32_t k = 0; k < g->nparts; k++)
			makes |= g->part[k].param == p && g->value[g->part[k].value].node == i;
		now += c->node_ns[i];
		made = makes ? now : made;
	}
	return made;
}

/* Tensors from the last one on; a bit says that a bucket ends behind it. */
static double end_of(const struct commed *c, uint32_t cuts, uint32_t nworkers, const int64_t *ready)
{
	const struct hd_layout *l = &c->layout;
	double now = 0, bytes = 0, last = 0;

	for (uint32_t i = 0; i < l->nparams; i++) {
		const uint32_t p = l->nparams - 1 - i;
		const uint64_t end = p + 1 < l->nparams ? l->at[p + 1] : l->elems;
		bytes += (double)(end - l->at[p]) * 4;
		last = (double)ready[p] > last ? (double)ready[p] : last;
		if (i + 1 < l->nparams && !(cuts >> i & 1))
			continue;
		now = (now > last ? now : last) + 2 * (double)c->ask.link.latency_ns +
			2.0 * (nworkers - 1) / nworkers * bytes * 1e9 / c->ask.link.bytes_per_s;
		bytes = 0;
	}
	return now > last ? now : last;
}

static void buckets_by_times_are_the_best_of_all(void **state)
{
	static const struct hd_model_arg small[] = { { "input", "[1, 9, 9]" },
		{ "hidden", "[50, 90, 30, 60]" },
		{ "classes", "4" } };
	static const struct comm_model model = { "mlp", small, 3 };
	struct hd_dice d = { 21 };

	(void)state;
	for (int round = 0; round < 40; round++) {
		struct commed c;
		struct hd_comm_cut cut;
		int64_t end_ns, ready[16];
		const uint32_t nworkers = 2 + hd_roll(&d, 4);
		double best = 1e300;
		open_model(&c, &model, &d);
		assert_in_range(c.layout.nparams, 8, 12);
		for (uint32_t p = 0; p < c.layout.nparams; p++)
			ready[p] = made_ns(&c, p);
		for (uint32_t cuts = 0; cuts < 1u << (c.layout.nparams - 1); cuts++) {
			const double end = end_of(&c, cuts, nworkers, ready);
			best = end < best ? end : best;
		}
		CHECK(hd_comm_cut_best(&cut, &c.ask, nworkers, 1 << 30, &end_ns, &c.s.arena, &c.s.diag) ==
			HD_OK, "%s", c.s.diag.text);
		CHECK((double)end_ns - best < 2 && best - (double)end_ns < 2, "round %d: %lld ns, best %g",
			round,
			(long long)end_ns, best);
		CHECK(hd_layout_cut(&c.layout, cut.nbuckets, cut.nsegments, &c.s.arena, &c.s.diag) == HD_OK,
			"%s",
			c.s.diag.text);
		hd_subject_finish(&c.s);
	}
}

/* Of branches, whose parameters stand in another order than their gradients are made: a bucket is ready with
 * the latest of its own. */
static double end_of_branches(const struct commed *c, uint32_t nworkers)
{
	const struct hd_layout *l = &c->layout;
	double f[200] = { 0 };

	assert_in_range(l->nparams, 20, 199);
	for (uint32_t j = 1; j <= l->nparams; j++) {
		double bytes = 0, ready = 0;
		f[j] = 1e300;
		for (uint32_t i = j; i-- > 0;) {
			const uint32_t p = l->nparams - 1 - i;
			const uint64_t end = p + 1 < l->nparams ? l->at[p + 1] : l->elems;
			bytes += (double)(end - l->at[p]) * 4;
			ready = (double)made_ns(c, p) > ready ? (double)made_ns(c, p) : ready;
			const double now = (f[i] > ready ? f[i] : ready) +
				2 * (double)c->ask.link.latency_ns +
				2.0 * (nworkers - 1) / nworkers * bytes * 1e9 / c->ask.link.bytes_per_s;
			f[j] = now < f[j] ? now : f[j];
		}
	}
	return f[l->nparams];
}

static void buckets_of_branches_wait_for_the_latest(void **state)
{
	struct hd_dice d = { 4 };
	uint32_t out_of_order = 0;

	(void)state;
	for (int round = 0; round < 12; round++) {
		struct commed c;
		struct hd_comm_cut cut;
		int64_t end_ns;
		open_model(&c, &models[2], &d);
		c.ask.link.bytes_per_s *= 100;
		for (uint32_t p = 1; p < c.layout.nparams; p++)
			out_of_order += made_ns(&c, p) > made_ns(&c, p - 1);
		CHECK(hd_comm_cut_best(&cut, &c.ask, 3, 1 << 30, &end_ns, &c.s.arena, &c.s.diag) == HD_OK,
			"%s",
			c.s.diag.text);
		const double best = end_of_branches(&c, 3);
		CHECK((double)end_ns - best < 30 && best - (double)end_ns < 30, "round %d: %lld ns, best %g",
			round, (long long)end_ns, best);
		hd_subject_finish(&c.s);
	}
	assert_true(out_of_order > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_needs_the_buckets_that_it_reads),
		cmocka_unit_test(ranks_are_near_the_best_of_all_orders),
		cmocka_unit_test(buckets_have_the_bytes_that_were_given),
		cmocka_unit_test(buckets_by_times_are_the_best_of_all),
		cmocka_unit_test(buckets_of_branches_wait_for_the_latest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
