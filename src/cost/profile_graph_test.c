#include "cost/profile_graph.h"

#include <stdlib.h>

#include "graph/layout.h"
#include "graph/testing.h"
#include "cost/cuts.h"
#include "tests/check.h"

/* What the profile says of a graph is compared with sums taken straight from the graph: here
 * nothing is grouped, every value is looked at alone. */

struct subject { struct hd_subject s; struct hd_profile p; uint32_t *home; struct hd_profile_ask ask; };

static void open_graph(struct subject *t, struct hd_profile_ask ask)
{
	CHECK(t->s.err == HD_OK, "%s", t->s.diag.text);
	CHECK(hd_graph_optimize(&t->s.graph, ask.rows, &t->s.diag) == HD_OK, "%s", t->s.diag.text);
	CHECK(hd_graph_autodiff(&t->s.graph, &t->s.diag) == HD_OK, "%s", t->s.diag.text);
	t->ask = ask;
	CHECK(hd_profile_of_graph(&t->p, &t->home, &t->s.graph, &t->ask, &t->s.arena, &t->s.diag) == HD_OK,
		"%s", t->s.diag.text);
}

static void open_model(struct subject *t, const char *name, const struct hd_model_arg *arg, uint32_t nargs)
{
	hd_subject_model(&t->s, name, arg, nargs, (struct hd_model_opts){ 0 });
	open_graph(t, (struct hd_profile_ask){ .rows = 3, .nslots = 2, .tensor_shards = 1 });
}

static void open_text(struct subject *t, const char *text)
{
	hd_subject_parse(&t->s, text);
	open_graph(t, (struct hd_profile_ask){ .rows = 3, .nslots = 1, .tensor_shards = 1 });
}

static void close_subject(struct subject *t) { hd_subject_finish(&t->s); }

static uint32_t cuts_of(struct subject *t)
{
	struct hd_cuts cuts;

	CHECK(hd_cuts_make(&cuts, &t->p, (struct hd_cuts_how){ 0 }, "p", &t->s.arena, &t->s.diag) == HD_OK,
		"%s", t->s.diag.text);
	assert_int_equal(cuts.nnodes, t->p.nnodes);
	int64_t param = 0;
	for (uint32_t i = 0; i < t->p.nnodes; i++)
		param += t->p.node[i].param;
	assert_int_equal(cuts.param[cuts.n - 1], param);      /* the last cut has everything below it */
	return cuts.n;
}

/* Read off `heddle model show mlp` by hand. */
static void a_chain_has_a_node_for_each_fused_op_and_as_many_cuts(void **state)
{
	static const struct { const char *id, *op; int64_t param, out; } want[] = {
		{ "%0", "reshape", 0, 784 }, { "%1", "matmul fc1.weight", 1024 * 784, 1024 }, { "%2", "bias_act fc1.bias", 1024, 1024 },
		{ "%4", "matmul fc2.weight", 1024 * 1024, 1024 }, { "%5", "bias_act fc2.bias", 1024, 1024 }, { "%7", "matmul fc3.weight", 10240, 10 },
		{ "%8", "bias fc3.bias", 10, 10 }, { "%9", "softmax_xent", 0, 1 }, { "%12", "sum64", 0, 0 },
	};
	struct subject t;

	(void)state;
	open_model(&t, "mlp", NULL, 0);
	assert_int_equal(t.p.nnodes, 9);
	assert_int_equal(t.p.nedges, 8);
	for (uint32_t i = 0; i < 9; i++) {
		const struct hd_profile_node *n = &t.p.node[i];
		CHECK(!strcmp(n->id, want[i].id) && !strcmp(n->op, want[i].op), "node %u is %s (%s)", i,
			n->id, n->op);
		CHECK(n->param == 4 * want[i].param && n->opt == 2 * n->param,
			"node %u: %lld bytes of parameters", i, (long long)n->param);
		CHECK(want[i].out ? n->nouts == 1 && n->out[0] == 3 * 4 * want[i].out : n->nouts == 0,
			"node %u: %u outputs", i, n->nouts);
		CHECK(i == 0 || (t.p.edge[i - 1].from == i - 1 && t.p.edge[i - 1].to == i &&
			t.p.edge[i - 1].out == 0), "edge %u", i - 1);
	}
	assert_int_equal(cuts_of(&t), 9);
	close_subject(&t);
	open_model(&t, "lenet", NULL, 0);
	/* 3 convolutions or pools twice, 3 layers, loss; the reshape shows what the pool made */
	assert_int_equal(t.p.nnodes, 14);
	assert_int_equal(cuts_of(&t), 14);
	close_subject(&t);
}

/* Of mlp again: what the backward pass reads, node by node, as its text shows. */
static void what_is_kept_counts_where_it_is_needed(void **state)
{
	static const int64_t saved[] = { 0, 784, 1024, 1024, 1024, 1024, 0, 10 + 1 + 1, 0 };
	static const double act_w[] = { 0, 1, 1, 1, 1, 1, 0, 10. / 12, 0 };
	struct subject t;

	(void)state;
	open_model(&t, "mlp", NULL, 0);
	for (uint32_t i = 0; i < 9; i++) {
		CHECK(t.p.node[i].saved == 3 * 4 * saved[i], "node %u keeps %lld bytes", i,
			(long long)t.p.node[i].saved);
		CHECK(i == 7 || t.p.node[i].act_w == act_w[i], "node %u: %g of it for W", i,
			t.p.node[i].act_w);
	}
	close_subject(&t);
}

static const char *const models[] = { "mlp", "lenet", "gpt", "llama", "bert", "lstm", "gru", "resnet18",
	"vgg16", "inception" };
enum { NMODELS = sizeof models / sizeof *models };

static const struct hd_model_arg small[] = { { "layers", "2" }, { "width", "32" }, { "heads", "2" },
	{ "context", "16" } };

static void open_any(struct subject *t, int i)
{
	bool text = !strcmp(models[i], "gpt") || !strcmp(models[i], "llama") || !strcmp(models[i], "bert");

	open_model(t, models[i], text ? small : NULL, text ? 4 : 0);
}

static uint32_t view_root(const struct hd_graph *g, uint32_t v)
{
	while (g->value[v].kind == HD_TEMP && hd_ops[g->node[g->value[v].node].op].class == HD_OP_VIEW)
		v = g->node[g->value[v].node].in[0];
	return v;
}

/* Bytes of forward tensors and inputs that any gradient node reads, through views, each once. */
static int64_t kept_by(const struct hd_graph *g, uint64_t rows)
{
	int64_t sum = 0;

	for (uint32_t v = 0; v < g->nvalues; v++) {
		bool forward = g->value[v].kind == HD_INPUT ||
			(g->value[v].kind == HD_TEMP && g->value[v].node < g->nforward), read = false;
		for (uint32_t n = g->nforward; n < g->nnodes && forward && !read; n++)
			for (int k = 0; k < g->node[n].nin; k++)
				read |= view_root(g, g->node[n].in[k]) == v;
		sum += read ? (int64_t)hd_value_bytes(&g->value[v], rows) : 0;
	}
	return sum;
}

static void sums_over_the_nodes_are_those_of_the_graph(void **state)
{
	(void)state;
	for (int i = 0; i < NMODELS; i++) {
		struct subject t;
		struct hd_layout layout;
		int64_t param = 0, saved = 0, opt = 0;
		open_any(&t, i);
		CHECK(hd_layout_make(&layout, &t.s.graph, &t.s.arena, &t.s.diag) == HD_OK, "%s",
			t.s.diag.text);
		for (uint32_t n = 0; n < t.p.nnodes; n++) {
			const struct hd_profile_node *node = &t.p.node[n];
			bool again = false;
			for (uint32_t k = 0; k < n; k++)
				again |= *node->tied && !strcmp(node->tied, t.p.node[k].tied);
			param += again ? 0 : node->param;
			opt += again ? 0 : node->opt;
			saved += node->saved;
			CHECK(node->act_w >= 0 && node->act_w <= 1 && node->work >= 0, "%s: %s", models[i],
				node->id);
		}
		CHECK(param == 4 * (int64_t)layout.params_elems, "%s: %lld bytes of parameters", models[i],
			(long long)param);
		CHECK(opt == 8 * (int64_t)layout.params_elems, "%s: %lld bytes of slots", models[i],
			(long long)opt);
		CHECK(saved == kept_by(&t.s.graph, 3), "%s: %lld bytes kept, not %lld", models[i],
			(long long)saved, (long long)kept_by(&t.s.graph, 3));
		close_subject(&t);
	}
}

static void every_graph_node_has_its_home_and_edges_lead_to_the_loss(void **state)
{
	(void)state;
	for (int i = 0; i < NMODELS; i++) {
		struct subject t;
		open_any(&t, i);
		const struct hd_graph *g = &t.s.graph;
		bool *leads = hd_arena_take(&t.s.arena, t.p.nnodes, sizeof *leads);
		for (uint32_t n = 0; n < g->nnodes; n++) {
			assert_true(t.home[n] < t.p.nnodes);
			CHECK(n < g->nforward || t.home[n] == t.home[g->node[n].of],
				"%s: gradient node %u lives away from its forward node",
				models[i], n);
		}
		for (uint32_t e = 0; e < t.p.nedges; e++) {
			CHECK(t.p.edge[e].from < t.p.edge[e].to &&
				t.p.edge[e].out < t.p.node[t.p.edge[e].from].nouts, "%s: edge %u", models[i],
				e);
			leads[t.p.edge[e].from] = true;
		}
		assert_int_equal(t.home[g->value[hd_graph_find_output(g, "loss")].node], t.p.nnodes - 1);
		for (uint32_t n = 0; n + 1 < t.p.nnodes; n++)
			CHECK(leads[n], "%s: nothing reads node %s (%s)", models[i], t.p.node[n].id,
				t.p.node[n].op);
		CHECK(!strcmp(models[i], "inception") || cuts_of(&t) >= t.p.nnodes - 1,
			"%s: %u cuts of %u nodes", models[i], cuts_of(&t), t.p.nnodes);
		close_subject(&t);
	}
}

static void a_tied_weight_names_its_group_at_each_reader(void **state)
{
	struct subject t;
	uint32_t n = 0;

	(void)state;
	open_any(&t, 2);
	for (uint32_t i = 0; i < t.p.nnodes; i++) {
		if (!*t.p.node[i].tied)
			continue;
		assert_string_equal(t.p.node[i].tied, "wte.weight");
		assert_int_equal(t.p.node[i].param, 256 * 32 * 4);
		n++;
	}
	assert_int_equal(n, 2);
	close_subject(&t);
}

/* d reads a view of a, and q, which reads a too: joining the view's maker would make a circle. The weight is
 * a chain that reads inputs alone. */
static void ends_join_the_last_node_that_they_read_from(void **state)
{
	static const char text[] = "graph t\ninput x f32 [*,4]\ninput y i32 [*]\nparam w f32 [4,4] zeros\n"
		"%0 = matmul x w\n"
		"%1 = act %0 act=tanh\n"
		"%2 = reshape %0 d0=-1 d1=4\n"
		"%3 = sub %2 %1\n"
		"%4 = act %3 act=square\n"
		"%5 = sum64 %4\n"
		"%6,%7,%8 = softmax_xent %1 y\n"
		"%9 = sum64 %6\n"
		"%10 = count64 y\n"
		"output loss %9\noutput weight %10\noutput correct %5\n";
	static const char *const home[] = { "%0", "%1", "%0", "%1", "%1", "%1", "%6", "%9", "%9" };
	struct subject t;

	(void)state;
	open_text(&t, text);
	assert_int_equal(t.p.nnodes, 4);
	for (uint32_t n = 0; n < t.s.graph.nforward; n++)
		CHECK(!strcmp(t.p.node[t.home[n]].id, home[n]), "node %u lives at %s", n,
			t.p.node[t.home[n]].id);
	assert_int_equal(t.p.nedges, 3);
	assert_int_equal(cuts_of(&t), 4);
	close_subject(&t);
}

static void modelled_times_are_those_of_the_larger_rate(void **state)
{
	struct subject t;
	int64_t sum = 0;
	double want = 0;

	(void)state;
	open_model(&t, "lenet", NULL, 0);
	/* slow, so that rounding is small */
	hd_profile_model(&t.p, t.home, &t.s.graph, &t.ask, (struct hd_profile_rates){ 2e6, 1e6 });
	for (uint32_t i = 0; i < t.p.nnodes; i++)
		sum += hd_profile_node_ns(&t.p.node[i]);
	for (uint32_t n = 0; n < t.s.graph.nnodes; n++) {
		const struct hd_node *node = &t.s.graph.node[n];
		struct hd_cost c = hd_ops[node->op].cost(&t.s.graph, node, 3);
		want += hd_ops[node->op].class == HD_OP_VIEW ? 0 :
			1e9 * (c.flops / 2e6 > c.bytes / 1e6 ? c.flops / 2e6 : c.bytes / 1e6);
	}
	CHECK(llabs(sum - (int64_t)want) <= t.s.graph.nnodes, "%lld ns, not %.0f", (long long)sum, want);
	/* the first convolution has no gradient of its input */
	assert_int_equal(t.p.node[0].i.p50_ns, 0);
	assert_true(t.p.node[0].w.p50_ns > 0 && t.p.node[3].i.p50_ns > 0);
	close_subject(&t);
}

static void it_reads_back_to_the_same_bytes(void **state)
{
	(void)state;
	for (int i = 0; i < NMODELS; i++) {
		struct subject t;
		struct hd_profile back;
		struct hd_text a, b;
		open_any(&t, i);
		hd_profile_model(&t.p, t.home, &t.s.graph, &t.ask, hd_profile_nominal);
		hd_text_init(&a, &t.s.arena);
		hd_text_init(&b, &t.s.arena);
		hd_profile_print(&t.p, &a);
		CHECK(hd_profile_read(&back, a.at, a.len, "p.json", &t.s.arena, &t.s.diag) == HD_OK, "%s: %s",
			models[i], t.s.diag.text);
		assert_int_equal(back.nedges, t.p.nedges);        /* none was there twice */
		hd_profile_print(&back, &b);
		CHECK(a.len == b.len && !memcmp(a.at, b.at, a.len), "%s prints otherwise", models[i]);
		close_subject(&t);
	}
}

static void a_profile_of_something_else_is_refused_by_name(void **state)
{
	static const struct { uint64_t graph, rows; const char *says; } cases[] = {
		{ 7, 3, "p.json is the profile of another graph, not of this job's" },
		{ 0, 4, "p.json is of virtual nodes of 3 samples, this job has 4" },
	};
	struct subject t, other;
	struct hd_diag diag = { "" };

	(void)state;
	open_model(&t, "lenet", NULL, 0);
	open_model(&other, "mlp", NULL, 0);
	assert_true(t.p.graph && other.p.graph && t.p.graph != other.p.graph);
	assert_int_equal(hd_profile_fits(&t.p, "p.json", t.p.graph, 3, &diag), HD_OK);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag why = { "" };
		enum hd_err err = hd_profile_fits(&t.p, "p.json", cases[i].graph ? cases[i].graph : t.p.graph,
			cases[i].rows, &why);
		CHECK(err == HD_E_INVAL && strstr(why.text, cases[i].says), "%s", why.text);
	}
	close_subject(&t);
	close_subject(&other);
}

static void a_graph_without_gradient_or_loss_is_refused(void **state)
{
	struct hd_profile_ask ask = { .rows = 1 };
	struct hd_profile p;
	struct hd_subject s;
	uint32_t *home;

	(void)state;
	hd_subject_model(&s, "lenet", NULL, 0, (struct hd_model_opts){ 0 });
	assert_int_equal(hd_profile_of_graph(&p, &home, &s.graph, &ask, &s.arena, &s.diag), HD_E_INVAL);
	assert_non_null(strstr(s.diag.text, "a profile is of a training graph"));
	hd_subject_finish(&s);
}

/* From 3 rows to 7: bytes as the graph says; a node that was measured k times what the model says stays k
 * times it. */
static void a_profile_of_other_rows_keeps_what_was_measured_against_the_model(void **state)
{
	static const struct hd_model_arg arg[] = { { "layers", "1" }, { "width", "24" }, { "heads", "2" },
		{ "context", "5" }, { "vocab", "11" } };
	struct subject t;
	struct hd_profile want, got, few;
	struct hd_profile_ask ask = { .rows = 7, .nslots = 2, .tensor_shards = 1 };
	uint32_t *home;

	(void)state;
	open_model(&t, "gpt", arg, 5);
	hd_profile_model(&t.p, t.home, &t.s.graph, &t.ask, hd_profile_nominal);
	CHECK(hd_profile_of_graph(&want, &home, &t.s.graph, &ask, &t.s.arena, &t.s.diag) == HD_OK, "%s",
		t.s.diag.text);
	hd_profile_model(&want, home, &t.s.graph, &ask, hd_profile_nominal);
	for (uint32_t i = 0; i < t.p.nnodes; i++) {
		t.p.node[i].f.p50_ns *= i % 3;
		t.p.node[i].i.p50_ns *= 2;
		t.p.node[i].work += 1000;
	}
	t.p.method = HD_PROFILE_MEASURED;
	CHECK(hd_profile_at(&got, &t.s.graph, &t.p, &ask, &t.s.arena, &t.s.diag) == HD_OK, "%s",
		t.s.diag.text);
	CHECK(got.nnodes == want.nnodes && got.vn_size == 7 && got.method == HD_PROFILE_MEASURED,
		"%u nodes, %u rows", got.nnodes, got.vn_size);
	for (uint32_t i = 0; i < got.nnodes; i++) {
		const struct hd_profile_node *a = &got.node[i], *b = &want.node[i];
		CHECK(a->saved == b->saved && a->nouts == b->nouts && (!a->nouts || a->out[0] == b->out[0]) &&
			a->work == b->work + 1000, "node %u: bytes", i);
		CHECK(a->f.p50_ns == b->f.p50_ns * (i % 3) && a->i.p50_ns == 2 * b->i.p50_ns &&
			a->w.p50_ns == b->w.p50_ns && a->f.sd_ns == 0,
			"node %u: %lld %lld %lld ns, the model %lld %lld %lld", i, (long long)a->f.p50_ns,
			(long long)a->i.p50_ns, (long long)a->w.p50_ns,
			(long long)b->f.p50_ns, (long long)b->i.p50_ns, (long long)b->w.p50_ns);
	}
	CHECK(hd_profile_at(&got, &t.s.graph, NULL, &ask, &t.s.arena, &t.s.diag) == HD_OK &&
		got.node[3].f.p50_ns == want.node[3].f.p50_ns, "the model alone");
	few = t.p;
	few.nnodes--;
	CHECK(hd_profile_at(&got, &t.s.graph, &few, &ask, &t.s.arena, &t.s.diag) == HD_E_INVAL,
		"other nodes");
	few = t.p;
	few.vn_size = 0;
	CHECK(hd_profile_at(&got, &t.s.graph, &few, &ask, &t.s.arena, &t.s.diag) == HD_E_INVAL,
		"unknown rows");
	close_subject(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chain_has_a_node_for_each_fused_op_and_as_many_cuts),
		cmocka_unit_test(what_is_kept_counts_where_it_is_needed),
		cmocka_unit_test(sums_over_the_nodes_are_those_of_the_graph),
		cmocka_unit_test(every_graph_node_has_its_home_and_edges_lead_to_the_loss),
		cmocka_unit_test(a_tied_weight_names_its_group_at_each_reader),
		cmocka_unit_test(ends_join_the_last_node_that_they_read_from),
		cmocka_unit_test(modelled_times_are_those_of_the_larger_rate),
		cmocka_unit_test(it_reads_back_to_the_same_bytes),
		cmocka_unit_test(a_profile_of_something_else_is_refused_by_name),
		cmocka_unit_test(a_graph_without_gradient_or_loss_is_refused),
		cmocka_unit_test(a_profile_of_other_rows_keeps_what_was_measured_against_the_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
