#include "graph/stages.h"

#include <stdlib.h>

#include "graph/testing.h"
#include "tests/check.h"

/* Models with what a cut may separate: a tied weight, skips, dropout, a residual stream. */
static const struct { const char *model; struct hd_model_arg arg[4]; uint32_t nargs; } models[] = {
	{ "mlp", { { "hidden", "[8, 8]" }, { "act", "gelu" } }, 2 },
	{ "lenet", { { 0 } }, 0 },
	{ "gpt", { { "layers", "3" }, { "width", "8" }, { "context", "4" }, { "dropout", "0.1" } }, 4 },
};
enum { NMODELS = sizeof models / sizeof models[0], ROWS = 16 };

static void make(struct hd_subject *s, int m)
{
	hd_subject_model(s, models[m].model, models[m].arg, models[m].nargs, (struct hd_model_opts){ 0 });
	CHECK(s->err == HD_OK, "%s: %s", models[m].model, s->diag.text);
	assert_int_equal(hd_graph_optimize(&s->graph, ROWS, &s->diag), HD_OK);
	CHECK(hd_graph_autodiff(&s->graph, &s->diag) == HD_OK, "%s", s->diag.text);
}

/* Counted apart from the code: a node that reads something and is of a stage finds it in that stage, or in
 * what crosses to it. */
static void check_reads(const struct hd_graph_stages *s)
{
	const struct hd_graph *g = s->whole;

	for (uint32_t i = 0; i < g->nnodes; i++)
		for (uint8_t k = 0; k < g->node[i].nin; k++) {
			uint32_t v = g->node[i].in[k], at = s->of_node[i];
			if (g->value[v].kind != HD_TEMP || s->of_node[g->value[v].node] == at)
				continue;
			bool forward = g->value[v].node < g->nforward;
			for (uint32_t b = at; b != s->of_node[g->value[v].node]; b += forward ? -1u : 1) {
				const struct hd_crossing *c = forward ? &s->act[b - 1] : &s->grad[b];
				uint32_t found = 0;
				for (uint32_t j = 0; j < c->n; j++)
					found += c->value[j] == v;
				CHECK(found == 1,
					"node %u reads value %u, which crosses %u times at stage %u",
					i, v, found, b);
			}
		}
}

static void check_whole(const struct hd_graph_stages *s)
{
	uint32_t nodes = 0, learned = 0, nrunning = 0, noutputs = 0;
	struct hd_diag diag = { "" };

	for (uint32_t k = 0; k < s->n; k++) {
		const struct hd_graph_stage *stage = &s->stage[k];
		CHECK(hd_graph_verify(&stage->graph, ROWS, &diag) == HD_OK, "stage %u: %s", k, diag.text);
		nodes += stage->graph.nnodes;
		nrunning += stage->graph.nrunning;
		assert_int_equal(stage->graph.ninputs, stage->ndata + stage->nact_in + stage->ngrad_in);
		assert_int_equal(stage->nact_in, k ? s->act[k - 1].n : 0);
		assert_int_equal(stage->ngrad_in, k + 1 < s->n ? s->grad[k].n : 0);
		for (uint32_t p = 0; p < s->whole->nparams; p++)
			learned += stage->learns[p];
		for (const char *const *name = (const char *const[]){ "loss", "weight", "correct",
			NULL }; *name; name++)
			noutputs += hd_graph_find_output(&stage->graph, *name) != HD_NONE;
	}
	assert_int_equal(nodes, s->whole->nnodes);
	assert_int_equal(learned, s->whole->nparams);
	assert_int_equal(nrunning, s->whole->nrunning);
	assert_int_equal(noutputs, 3);
}

static void every_node_is_in_one_stage_and_each_stage_verifies(void **state)
{
	(void)state;
	for (int m = 0; m < NMODELS; m++) {
		struct hd_subject s;
		make(&s, m);
		for (uint32_t n = 1; n <= 5; n++) {
			struct hd_graph_stages stages;
			uint32_t first[5];
			CHECK(hd_graph_stages_balance(first, n, &s.graph, ROWS, &s.arena, &s.diag) == HD_OK,
				"%s", s.diag.text);
			CHECK(hd_graph_stages_make(&stages, &s.graph, first, n, &s.arena, &s.diag) == HD_OK,
				"%s in %u: %s", models[m].model, n, s.diag.text);
			check_reads(&stages);
			check_whole(&stages);
		}
		hd_subject_finish(&s);
	}
}

/* Anywhere, also inside of a block: two cuts at each pair of some places. */
static void a_cut_may_lie_between_any_two_nodes(void **state)
{
	(void)state;
	for (int m = 0; m < NMODELS; m++) {
		struct hd_subject s;
		make(&s, m);
		for (uint32_t a = 1; a + 1 < s.graph.nforward; a++) {
			struct hd_graph_stages stages;
			const uint32_t first[3] = { 0, a, a + 1 + (a * 7) % (s.graph.nforward - a - 1) };
			CHECK(hd_graph_stages_make(&stages, &s.graph, first, 3, &s.arena, &s.diag) == HD_OK,
				"%s: %s", models[m].model, s.diag.text);
			check_reads(&stages);
			check_whole(&stages);
		}
		hd_subject_finish(&s);
	}
}

/* The head reads the table of the embedding: its part of the gradient travels back whole, and is added where
 * the table is learned. */
static void a_tied_weight_is_learned_in_the_lowest_stage(void **state)
{
	struct hd_subject s;
	struct hd_graph_stages stages;
	uint32_t first[3], p;

	(void)state;
	make(&s, 2);
	assert_int_equal(hd_graph_stages_balance(first, 3, &s.graph, ROWS, &s.arena, &s.diag), HD_OK);
	assert_int_equal(hd_graph_stages_make(&stages, &s.graph, first, 3, &s.arena, &s.diag), HD_OK);
	for (p = 0; p < s.graph.nparams; p++)
		if (hd_dims_same(&s.graph.value[s.graph.param[p].value],
			&s.graph.value[s.graph.param[0].value]))
			break;
	assert_int_equal(stages.of_param[p], 0);
	assert_true(stages.grad[1].n >= 1);
	hd_subject_finish(&s);
}

static void stages_that_are_none_are_refused(void **state)
{
	static const struct { uint32_t first[3], n; const char *words; } bad[] = {
		{ { 1, 2 }, 2, "stage 0 begins at node 1" },
		{ { 0, 3, 3 }, 3, "stage 2 begins at node 3" },
		{ { 0, 9999 }, 2, "stage 1 begins at node 9999" },
		{ { 0 }, 0, "0 stages" },
	};
	struct hd_graph_stages stages;
	struct hd_subject s;
	uint32_t first[3];

	(void)state;
	make(&s, 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_diag diag = { "" };
		assert_int_equal(hd_graph_stages_make(&stages, &s.graph, bad[i].first, bad[i].n, &s.arena,
			&diag), HD_E_INVAL);
		CHECK(strstr(diag.text, bad[i].words), "%s", diag.text);
	}
	assert_int_equal(hd_graph_stages_balance(first, s.graph.nforward + 1, &s.graph, ROWS, &s.arena,
		&s.diag),
		HD_E_INVAL);
	hd_subject_finish(&s);
}

static void balance_gives_no_stage_far_more_than_its_share(void **state)
{
	struct hd_subject s;
	uint32_t first[3];

	(void)state;
	make(&s, 2);
	assert_int_equal(hd_graph_stages_balance(first, 3, &s.graph, ROWS, &s.arena, &s.diag), HD_OK);
	for (uint32_t k = 0; k < 3; k++) {
		double own = 0, all = 0;
		for (uint32_t i = 0; i < s.graph.nnodes; i++) {
			uint32_t at = i < s.graph.nforward ? i : s.graph.node[i].of;
			double flops = hd_ops[s.graph.node[i].op].cost(&s.graph, &s.graph.node[i],
				ROWS).flops;
			all += flops;
			own += at >= first[k] && (k == 2 || at < first[k + 1]) ? flops : 0;
		}
		CHECK(own < all / 3 * 1.7, "stage %u has %.0f of %.0f", k, own, all);
	}
	hd_subject_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_node_is_in_one_stage_and_each_stage_verifies),
		cmocka_unit_test(a_cut_may_lie_between_any_two_nodes),
		cmocka_unit_test(a_tied_weight_is_learned_in_the_lowest_stage),
		cmocka_unit_test(stages_that_are_none_are_refused),
		cmocka_unit_test(balance_gives_no_stage_far_more_than_its_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
