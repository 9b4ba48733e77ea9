#include "graph/autodiff.h"

#include <stdio.h>
#include <string.h>

#include "graph/testing.h"
#include "tests/check.h"

/* Built-in models in the forms that jobs use: plain, with dropout, per token, optimized, cut. */
struct variant { const char *model; struct hd_model_arg arg[4]; uint32_t nargs; struct hd_model_opts opts;
	bool optimize; uint32_t cut; };
static const struct variant variants[] = {
	{ "mlp", { { 0 } }, 0, { 0 }, false, 0 },
	{ "mlp", { { "hidden", "[8, 8]" }, { "act", "gelu" } }, 2, { .loss = HD_LOSS_MSE, .normalize = 0 }, true, 5 },
	{ "lenet", { { 0 } }, 0, { 0 }, false, 0 },
	{ "lenet", { { "channels", "3" } }, 1, { 0 }, true, 7 },
	{ "gpt", { { "layers", "2" }, { "width", "8" }, { "context", "4" } }, 3, { 0 }, false, 0 },
	{ "gpt", { { "layers", "2" }, { "width", "8" }, { "dropout", "0.1" } }, 3, { 0 }, true, 0 },
	{ "gpt", { { "layers", "3" }, { "width", "8" }, { "dropout", "0.1" } }, 3, { .normalize = HD_NORMALIZE_TOKEN }, true, 21 },
};
enum { NVARIANTS = sizeof variants / sizeof variants[0] };

static void make(struct hd_subject *s, const struct variant *v)
{
	hd_subject_model(s, v->model, v->arg, v->nargs, v->opts);
	CHECK(s->err == HD_OK, "%s: %s", v->model, s->diag.text);
	if (v->cut)
		assert_int_equal(hd_graph_cut(&s->graph, 1, &v->cut, NULL), HD_OK);
	if (v->optimize)
		assert_int_equal(hd_graph_optimize(&s->graph, 64, &s->diag), HD_OK);
	s->err = hd_graph_autodiff(&s->graph, &s->diag);
	CHECK(s->err == HD_OK, "%s: %s", v->model, s->diag.text);
}

static void every_parameter_has_a_gradient_and_the_graph_verifies(void **state)
{
	(void)state;
	for (int i = 0; i < NVARIANTS; i++) {
		struct hd_subject s;
		make(&s, &variants[i]);
		CHECK(hd_graph_verify(&s.graph, 1000, &s.diag) == HD_OK, "variant %d: %s", i, s.diag.text);
		for (uint32_t p = 0; p < s.graph.nparams; p++)
			CHECK(s.graph.value[s.graph.param[p].value].grad != HD_NONE,
				"variant %d, parameter %u", i, p);
		hd_subject_finish(&s);
	}
}

/* Nothing is made that no parameter needs: walking back from the gradients meets every gradient node. */
static void no_gradient_node_is_dead(void **state)
{
	(void)state;
	for (int i = 0; i < NVARIANTS; i++) {
		struct hd_subject s;
		static bool needed[4096];
		make(&s, &variants[i]);
		memset(needed, 0, sizeof needed);
		for (uint32_t g = 0; g < hd_graph_ngrads(&s.graph); g++)
			needed[hd_graph_grad(&s.graph, g)] = true;
		for (uint32_t n = s.graph.nnodes; n-- > s.graph.nforward;) {
			const struct hd_node *node = &s.graph.node[n];
			CHECK(needed[node->out], "variant %d: node %u (%s) is dead", i, n,
				hd_ops[node->op].name);
			for (int k = 0; k < node->nin; k++)
				needed[node->in[k]] = true;
		}
		hd_subject_finish(&s);
	}
}

/* Backward order, and the weight gradients of a node right after its input gradient. */
static void gradients_come_last_node_first_and_weights_after_inputs(void **state)
{
	(void)state;
	for (int i = 0; i < NVARIANTS; i++) {
		struct hd_subject s;
		make(&s, &variants[i]);
		for (uint32_t n = s.graph.nforward + 1; n < s.graph.nnodes; n++) {
			const struct hd_node *node = &s.graph.node[n], *before = node - 1;
			CHECK(node->of <= before->of, "variant %d: node %u", i, n);
			CHECK(node->of < before->of || node->phase >= before->phase, "variant %d: node %u", i,
				n);
		}
		hd_subject_finish(&s);
	}
}

static uint32_t count(const struct hd_graph *graph, uint16_t op, uint8_t phase)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < graph->nnodes; i++)
		n += graph->node[i].op == op && graph->node[i].phase == phase;
	return n;
}

static uint16_t maker(const struct hd_graph *graph, uint32_t grad)
{
	return graph->node[graph->value[hd_graph_grad(graph, grad)].node].op;
}

static void a_tied_weight_has_a_part_for_each_use_head_first(void **state)
{
	struct hd_subject s;

	(void)state;
	make(&s, &variants[4]);
	assert_int_equal(count(&s.graph, HD_OP_ADD, HD_PHASE_W), 0);
	uint32_t p = hd_graph_find_param(&s.graph, "wte.weight");
	assert_int_equal(hd_graph_ngrads(&s.graph), s.graph.nparams + 1);
	assert_int_equal(s.graph.part[0].param, p);
	assert_int_equal(maker(&s.graph, p), HD_OP_MATMUL);
	assert_int_equal(maker(&s.graph, s.graph.nparams), HD_OP_EMBED_DW);
	hd_subject_finish(&s);
}

/* Which uses make parts: text of a graph whose parameters a and b are read in some ways. */
#define WAYS_HEAD "input x f32 [*,3]\ninput y f32 [*,3]\nparam a f32 [3] ones\nparam b f32 [3] ones\n" \
	"%0 = bias x b axis=-1\n"
#define WAYS_TAIL(last) "%90 = mse " last " y\n%91 = sum64 %90\noutput loss %91\n"
static const struct { const char *text; uint32_t nparts, nadds; } ways[] = {
	/* one use; two, three, four: the last is the parameter's, the others follow backwards */
	{ WAYS_HEAD "%1 = bias %0 a axis=-1\n" WAYS_TAIL("%1"), 0, 0 },
	{ WAYS_HEAD "%1 = bias %0 a axis=-1\n%2 = bias %1 a axis=-1\n" WAYS_TAIL("%2"), 1, 0 },
	{ WAYS_HEAD "%1 = bias %0 a axis=-1\n%2 = bias %1 a axis=-1\n%3 = bias %2 b axis=-1\n"
	  "%4 = bias %3 a axis=-1\n%5 = bias %4 a axis=-1\n" WAYS_TAIL("%5"), 4, 0 },
	/* more than that are added in the graph */
	{ WAYS_HEAD "%1 = bias %0 a axis=-1\n%2 = bias %1 a axis=-1\n%3 = bias %2 a axis=-1\n"
	  "%4 = bias %3 a axis=-1\n%5 = bias %4 a axis=-1\n" WAYS_TAIL("%5"), 0, 4 },
	/* one node that reads it twice is one use, and one that hands it on is none that could lie apart */
	{ WAYS_HEAD "%1 = mul a a\n%2 = bias %0 %1 axis=-1\n" WAYS_TAIL("%2"), 0, 1 },
	{ WAYS_HEAD "%1 = mul a a\n%2 = bias %0 %1 axis=-1\n%3 = bias %2 a axis=-1\n" WAYS_TAIL("%3"), 1, 1 },
	{ WAYS_HEAD "%1 = reshape a d0=3\n%2 = bias %0 %1 axis=-1\n%3 = bias %2 a axis=-1\n" WAYS_TAIL("%3"),
	  0, 1 },
};

static void uses_that_could_lie_apart_make_parts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		struct hd_subject s;
		hd_subject_init(&s);
		CHECK(hd_graph_parse(&s.graph, "way", ways[i].text, strlen(ways[i].text), &s.diag) == HD_OK &&
			hd_graph_autodiff(&s.graph, &s.diag) == HD_OK &&
			hd_graph_verify(&s.graph, 4, &s.diag) == HD_OK, "way %zu: %s", i, s.diag.text);
		CHECK(s.graph.nparts == ways[i].nparts && count(&s.graph, HD_OP_ADD, HD_PHASE_W) ==
			ways[i].nadds, "way %zu: %u parts, %u sums", i, s.graph.nparts,
			count(&s.graph, HD_OP_ADD, HD_PHASE_W));
		for (uint32_t g = s.graph.nparams, use = HD_NONE; g < hd_graph_ngrads(&s.graph); g++) {
			uint32_t p = hd_graph_grad_param(&s.graph, g);
			bool first = g == s.graph.nparams || p != hd_graph_grad_param(&s.graph, g - 1);
			use = first ? s.graph.node[s.graph.value[hd_graph_grad(&s.graph, p)].node].of : use;
			uint32_t of = s.graph.node[s.graph.value[hd_graph_grad(&s.graph, g)].node].of;
			CHECK(of < use, "way %zu: part %u is of node %u, after node %u", i, g, of, use);
			use = of;
		}
		hd_subject_finish(&s);
	}
}

static void dropout_gradients_have_the_key_of_their_forward_node(void **state)
{
	struct hd_subject s;
	uint32_t seen = 0;

	(void)state;
	make(&s, &variants[5]);
	for (uint32_t i = s.graph.nforward; i < s.graph.nnodes; i++)
		if (s.graph.node[i].op == HD_OP_DROPOUT_DX) {
			assert_int_equal(s.graph.node[i].key, s.graph.node[s.graph.node[i].of].key);
			seen++;
		}
	assert_int_equal(seen, 5);                       /* embedding, and twice per layer */
	assert_int_equal(s.graph.nrandom, 5);
	hd_subject_finish(&s);
}

/* Three different extents: only the right product of the right operands has the operand's shape. */
static void products_of_every_storage_have_gradients_of_their_operands_shapes(void **state)
{
	(void)state;
	for (int t = 0; t < 4; t++) {
		struct hd_subject s;
		char text[512];
		bool ta = t & 1, tb = t & 2;
		snprintf(text, sizeof text,
			"input y i32 [2]\nparam a f32 [%s] zeros\nparam b f32 [%s] zeros\n%%0 = matmul a b "
			"ta=%d tb=%d\n"
			"%%1,%%2,%%3 = softmax_xent %%0 y\n%%4 = sum64 %%1\noutput loss %%4\n",
			ta ? "3,2" : "2,3", tb ? "5,3" : "3,5", ta, tb);
		hd_subject_parse(&s, text);
		CHECK(s.err == HD_OK, "%s", s.diag.text);
		s.err = hd_graph_autodiff(&s.graph, &s.diag);
		CHECK(s.err == HD_OK, "ta=%d tb=%d: %s", ta, tb, s.diag.text);
		for (uint32_t p = 0; p < 2; p++) {
			const struct hd_value *v = &s.graph.value[s.graph.param[p].value];
			CHECK(hd_dims_same(v, &s.graph.value[v->grad]), "ta=%d tb=%d operand %u", ta, tb, p);
		}
		hd_subject_finish(&s);
	}
}

static void scaled_losses_scale_the_gradient_of_the_logits_once(void **state)
{
	struct hd_subject s;

	(void)state;
	hd_subject_parse(&s,
		"input y i32 [*]\ninput x f32 [*,2]\nparam b f32 [2] zeros\n%0 = bias x b axis=-1\n%1,%2,%3 "
		"= softmax_xent %0 y\n"
		"%4 = scale %1 by=0.5\n%5 = scale %4 by=0.25\n%6 = sum64 %5\noutput loss %6\n");
	assert_int_equal(hd_graph_autodiff(&s.graph, &s.diag), HD_OK);
	assert_int_equal(count(&s.graph, HD_OP_SCALE, HD_PHASE_I), 1);
	for (uint32_t i = s.graph.nforward; i < s.graph.nnodes; i++)
		if (s.graph.node[i].op == HD_OP_SCALE)
			assert_true(s.graph.node[i].attr.f[0] == 0.125f);
	hd_subject_finish(&s);
}

/* A parameter in a sum of equal shapes gets a gradient of its own, not a share of another's. */
static void parameters_never_share_a_gradient(void **state)
{
	struct hd_subject s;

	(void)state;
	hd_subject_parse(&s,
		"input y i32 [2]\nparam a f32 [2,3] zeros\nparam b f32 [2,3] zeros\n%0 = add a b\n%1 = sub "
		"%0 a\n"
		"%2,%3,%4 = softmax_xent %1 y\n%5 = sum64 %2\noutput loss %5\n");
	CHECK(s.err == HD_OK, "%s", s.diag.text);
	assert_int_equal(hd_graph_autodiff(&s.graph, &s.diag), HD_OK);
	CHECK(hd_graph_verify(&s.graph, 1, &s.diag) == HD_OK, "%s", s.diag.text);
	hd_subject_finish(&s);
}

/* Where a rule wants a value, the ones of the seed are written out. */
static void a_loss_may_be_made_of_any_ops_that_broadcast(void **state)
{
	struct hd_subject s;

	(void)state;
	hd_subject_parse(&s,
		"input x f32 [*,2]\nparam w f32 [2] zeros\n%0 = mul x w\n%1 = reduce_mean %0 axes=2\n%2 = "
		"sum64 %1\noutput loss %2\n");
	assert_int_equal(hd_graph_autodiff(&s.graph, &s.diag), HD_OK);
	CHECK(hd_graph_verify(&s.graph, 4, &s.diag) == HD_OK, "%s", s.diag.text);
	assert_int_equal(count(&s.graph, HD_OP_EXPAND, HD_PHASE_I), 2);
	hd_subject_finish(&s);
}

static const struct { const char *text, *says; } refusals[] = {
	{ "param w f32 [2] zeros\n", "no output named loss" },
	{ "input x f32 [*,2]\n%0 = count64 x\noutput loss %0\n", "must be made by sum64" },
	{ "input x f32 [*,2]\ninput y i32 [*]\nparam w f32 [2] zeros\n%1,%2,%3 = softmax_xent x y\n%4 = sum64 %1\noutput loss %4\n",
	  "does not depend on the parameter 'w'" },
	{ "input x f32 [*,2]\nparam w f32 [2] zeros\n%0 = bias x w axis=-1\n%2 = sum64 %0\noutput loss %2\n",
	  "only losses may be summed" },
	{ "input x f32 [*,2]\ninput y i32 [*]\nparam w f32 [2] zeros\n%0 = bias x w axis=-1\n%1,%2,%3 = softmax_xent %0 y\n%5 = sum64 %3\n"
	  "output loss %5\n", "output 2, which has no gradient" },
	{ "input x f32 [*,2]\ninput y i32 [*]\nparam w f32 [2] zeros\n%0 = bias x w axis=-1\n%7 = sum_rows %0 axis=-1\n%8 = bias x %7 axis=-1\n"
	  "%1,%2,%3 = softmax_xent %8 y\n%5 = sum64 %1\noutput loss %5\n", "the op has no gradient" },
};

/* d/dw of w (x < w) is the comparison alone: nothing flows through it, nor through ids. */
static void steps_and_whole_numbers_have_slope_0(void **state)
{
	static const char *const steps[] = { "%0 = less x w\n%1 = mul %0 w\n",
		"%7 = mul x w\n%8 = argmax %7 axis=1\n%9 = one_hot %8 depth=2\n%1 = mul %9 w\n" };
	(void)state;
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		struct hd_subject s;
		char text[400];
		snprintf(text, sizeof text, "input x f32 [*,2]\ninput y i32 [*]\nparam w f32 [2] ones\n%s"
			"%%2,%%3,%%4 = softmax_xent %%1 y\n%%5 = sum64 %%2\noutput loss %%5\n", steps[i]);
		hd_subject_parse(&s, text);
		CHECK(s.err == HD_OK && hd_graph_autodiff(&s.graph, &s.diag) == HD_OK, "%zu: %s", i,
			s.diag.text);
		uint32_t muls = 0;
		for (uint32_t n = s.graph.nforward; n < s.graph.nnodes; n++)
			muls += s.graph.node[n].op == HD_OP_MUL;
		CHECK(muls == 1, "%zu: %u products backwards", i, muls);
		hd_subject_finish(&s);
	}
}

static void what_has_no_gradient_is_refused_by_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		struct hd_subject s;
		hd_subject_parse(&s, refusals[i].text);
		CHECK(s.err == HD_OK, "%zu: %s", i, s.diag.text);
		CHECK(hd_graph_autodiff(&s.graph, &s.diag) == HD_E_INVAL, "%zu", i);
		CHECK(strstr(s.diag.text, refusals[i].says), "%zu: %s", i, s.diag.text);
		hd_subject_finish(&s);
	}
}

static void a_second_gradient_is_refused(void **state)
{
	struct hd_subject s;

	(void)state;
	make(&s, &variants[0]);
	assert_int_equal(hd_graph_autodiff(&s.graph, &s.diag), HD_E_INVAL);
	hd_subject_finish(&s);
}

/* At every amount of memory: done or HD_E_NOMEM, never half an answer that claims success. */
static void without_memory_it_fails_cleanly(void **state)
{
	uint32_t failures = 0;
	enum hd_err err = HD_E_NOMEM;

	(void)state;
	for (size_t budget = 4096; err != HD_OK; budget += 4096) {
		struct hd_subject s;
		struct hd_model_opts opts = { 0 };
		hd_subject_init(&s);
		s.arena.budget_bytes = budget;
		err = hd_model_build(&s.graph, "lenet", NULL, 0, &opts, &s.diag);
		if (err == HD_OK)
			err = hd_graph_optimize(&s.graph, 8, &s.diag);
		if (err == HD_OK)
			err = hd_graph_autodiff(&s.graph, &s.diag);
		CHECK(err == HD_OK || err == HD_E_NOMEM, "%zu bytes: %s", budget, s.diag.text);
		failures += err != HD_OK;
		hd_subject_finish(&s);
	}
	assert_true(failures > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_parameter_has_a_gradient_and_the_graph_verifies),
		cmocka_unit_test(no_gradient_node_is_dead),
		cmocka_unit_test(gradients_come_last_node_first_and_weights_after_inputs),
		cmocka_unit_test(a_tied_weight_has_a_part_for_each_use_head_first),
		cmocka_unit_test(uses_that_could_lie_apart_make_parts),
		cmocka_unit_test(dropout_gradients_have_the_key_of_their_forward_node),
		cmocka_unit_test(products_of_every_storage_have_gradients_of_their_operands_shapes),
		cmocka_unit_test(scaled_losses_scale_the_gradient_of_the_logits_once),
		cmocka_unit_test(parameters_never_share_a_gradient),
		cmocka_unit_test(a_loss_may_be_made_of_any_ops_that_broadcast),
		cmocka_unit_test(steps_and_whole_numbers_have_slope_0),
		cmocka_unit_test(what_has_no_gradient_is_refused_by_name),
		cmocka_unit_test(a_second_gradient_is_refused),
		cmocka_unit_test(without_memory_it_fails_cleanly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
