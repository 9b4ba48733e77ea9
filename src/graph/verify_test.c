#include "graph/verify.h"

#include <stdio.h>

#include "graph/testing.h"
#include "tests/check.h"

static void train(struct hd_subject *s)
{
	static const struct hd_model_arg arg[] = { { "layers", "1" }, { "width", "8" }, { "context", "4" },
		{ "dropout", "0.1" } };
	uint32_t cut = 17;

	hd_subject_model(s, "gpt", arg, 4, (struct hd_model_opts){ 0 });
	assert_int_equal(hd_graph_cut(&s->graph, 1, &cut, NULL), HD_OK);
	assert_int_equal(hd_graph_optimize(&s->graph, 64, &s->diag), HD_OK);
	assert_int_equal(hd_graph_autodiff(&s->graph, &s->diag), HD_OK);
	CHECK(hd_graph_verify(&s->graph, 64, &s->diag) == HD_OK, "%s", s->diag.text);
}

/* One rule broken at a time; the message names it. g->node[9] is an add_layernorm, [1] an add, [0] an
 * embed. */
#define BREAK(name, line) static void name(struct hd_graph *g) { line; }
BREAK(no_op, g->node[1].op = HD_NOPS)
BREAK(no_operand, g->node[1].nin = 1)
BREAK(far_operand, g->node[1].in[0] = g->nvalues)
BREAK(spare_operand, g->node[1].in[2] = 0)
BREAK(later_operand, g->node[1].in[0] = g->node[2].out)
BREAK(own_operand, g->node[1].in[0] = g->node[1].out)
BREAK(two_makers, g->node[1].out = g->node[0].out)
BREAK(foreign_maker, g->value[g->node[1].out].node = 0)
BREAK(no_maker, g->value[g->node[1].out].node = HD_NONE)
BREAK(leaf_maker, g->value[g->param[0].value].node = 0)
BREAK(other_shape, g->value[g->node[1].out].dim[1] = 5)
BREAK(other_dtype, g->value[g->node[1].out].dtype = HD_F64)
BREAK(no_dtype, g->value[g->node[1].out].dtype = 9)
BREAK(no_kind, g->value[g->node[1].out].kind = 9)
BREAK(zero_extent, g->value[g->node[1].out].dim[1] = 0)
BREAK(huge, g->value[g->input[0]].dim[1] = 2147483647)
BREAK(bad_attr, g->node[2].attr.f[0] = 2)
BREAK(spare_attr, g->node[1].attr.i[0] = 1)
BREAK(early_gradient, g->node[1].phase = HD_PHASE_I)
BREAK(late_forward, g->node[g->nforward].phase = HD_PHASE_F)
BREAK(no_forward, g->node[g->nforward].of = HD_NONE)
BREAK(odd_forward, g->node[1].of = 0)
BREAK(weight_first, g->node[g->nforward].phase = HD_PHASE_W)
BREAK(stage_back, g->node[3].stage = 1)
BREAK(stage_of_gradient, g->node[g->nforward].stage = 0)
BREAK(many_stages, g->node[g->nforward - 1].stage = HD_MAX_STAGES)
BREAK(odd_key, g->node[1].key = 1)
BREAK(same_key, g->node[9].key = 0)
BREAK(far_key, g->node[2].key = 99)
BREAK(gradient_key, g->node[g->nnodes - 3].key = 2)
BREAK(param_dtype, g->value[g->param[0].value].dtype = HD_I32)
BREAK(param_index, g->value[g->param[0].value].data = 3)
BREAK(param_table, g->param[0].value = g->input[0])
BREAK(input_table, g->input[0] = g->param[0].value)
BREAK(far_output, g->output[0].value = g->nvalues)
BREAK(loss_f32, g->output[0].value = g->input[0])
BREAK(no_gradient, g->value[g->param[0].value].grad = HD_NONE)
BREAK(input_gradient, g->value[g->param[0].value].grad = g->node[g->nforward].out)
BREAK(shared_gradient, g->value[g->param[3].value].grad = g->value[g->param[2].value].grad)
BREAK(part_param, g->part[0].param = g->nparams)
BREAK(part_far, g->part[0].value = g->nvalues)
BREAK(part_shape, g->part[0].value = g->value[g->param[1].value].grad)
BREAK(part_order, uint32_t v = g->part[0].value; g->part[0].value = g->value[g->param[0].value].grad;
	g->value[g->param[0].value].grad = v)
BREAK(part_twice, g->part[g->nparts++] = g->part[0])
BREAK(part_input, g->part[0].value = g->node[g->nforward].out)
BREAK(far_nforward, g->nforward = g->nnodes + 1)

static const struct { void (*brk)(struct hd_graph *g); const char *says; } breaks[] = {
	{ no_op, "node 1 (?): the op exists" }, { no_operand, "node 1 (add): the op exists" },
	{ far_operand, "operand 0 exists" }, { spare_operand, "operand 2 exists, and those past the last are empty" },
	{ later_operand, "operand 0 is made by node 2" }, { own_operand, "operand 0 is made by node 1" },
	{ two_makers, "one maker" }, { foreign_maker, "one maker" }, { no_maker, "one maker" },
	{ leaf_maker, "only temporaries have a maker" }, { other_shape, "by the op's rule, and the graph says f32 [*,5,8]" },
	{ other_dtype, "the graph says f64" }, { no_dtype, "dtype 9 does not exist" }, { no_kind, "its kind does not exist" },
	{ zero_extent, "extent 1 is 0" }, { huge, "output 0 is f32 [*,2147483647,8]" }, { bad_attr, "p is at least 0" },
	{ spare_attr, "has no name" }, { early_gradient, "forward nodes are of phase F" }, { late_forward, "forward nodes are of phase F" },
	{ no_forward, "names the forward node" }, { odd_forward, "names the forward node" },
	{ weight_first, "never reads a weight gradient" }, { stage_back, "stages never descend" },
	{ stage_of_gradient, "has the stage of its forward node, 1" }, { many_stages, "at most 4096 stages" },
	{ odd_key, "only random nodes have a key" }, { same_key, "keys of random nodes ascend" }, { far_key, "keys of random nodes ascend" },
	{ gradient_key, "a gradient has its forward node's key" }, { param_dtype, "a parameter is f32" },
	{ param_index, "parameter 0: its value" }, { param_table, "parameter 0: its value" }, { input_table, "input 0: its value" },
	{ far_output, "its value exists" }, { loss_f32, "a sum is f64 [1]" }, { no_gradient, "its gradient is a value of phase W" },
	{ input_gradient, "its gradient is a value of phase W" }, { shared_gradient, "shares its gradient" },
	{ part_param, "part 0 of gradients: parts ascend" },
	{ part_far, "a part of its gradient is a value of phase W" },
	{ part_shape, "a part of its gradient is a value of phase W" },
	{ part_order, "made after the part before" }, { part_twice, "made after the part before" },
	{ part_input, "a part of its gradient is a value of phase W" },
	 { far_nforward, "forward nodes of" },
};

static void every_broken_rule_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
		struct hd_subject s;
		train(&s);
		breaks[i].brk(&s.graph);
		CHECK(hd_graph_verify(&s.graph, 64, &s.diag) == HD_E_INVAL, "%s: accepted", breaks[i].says);
		CHECK(strstr(s.diag.text, breaks[i].says), "%s: %s", breaks[i].says, s.diag.text);
		hd_subject_finish(&s);
	}
}

static void the_size_limit_is_that_of_the_largest_rows(void **state)
{
	struct hd_subject s;

	(void)state;
	hd_subject_init(&s);
	uint32_t x;
	assert_int_equal(hd_graph_input(&s.graph, "x", HD_F32, 2, (int64_t[]){ -1, 1 << 20 }, &x, NULL),
		HD_OK);
	assert_int_equal(hd_graph_verify(&s.graph, 1 << 24, &s.diag), HD_OK);             /* 2^46 bytes */
	assert_int_equal(hd_graph_verify(&s.graph, (1 << 24) + 1, &s.diag), HD_E_INVAL);
	assert_int_equal(hd_graph_verify(&s.graph, UINT64_MAX, NULL), HD_E_INVAL);
	hd_subject_finish(&s);
}

/* Any single byte of nodes or values changed: refused or harmless, never a crash. */
static void no_flipped_byte_crashes_the_verifier(void **state)
{
	struct hd_subject s;
	uint32_t refused = 0;

	(void)state;
	train(&s);
	uint8_t *parts[] = { (uint8_t *)s.graph.node, (uint8_t *)s.graph.value };
	size_t lens[] = { s.graph.nnodes * sizeof *s.graph.node, s.graph.nvalues * sizeof *s.graph.value };
	for (int p = 0; p < 2; p++)
		for (size_t i = 0; i < lens[p]; i++) {
			uint8_t kept = parts[p][i];
			parts[p][i] = (uint8_t)(kept ^ (1u << i % 8));
			refused += hd_graph_verify(&s.graph, 64, NULL) != HD_OK;
			parts[p][i] = kept;
		}
	assert_true(refused > (lens[0] + lens[1]) / 4);
	assert_int_equal(hd_graph_verify(&s.graph, 64, NULL), HD_OK);
	hd_subject_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_broken_rule_is_named),
		cmocka_unit_test(the_size_limit_is_that_of_the_largest_rows),
		cmocka_unit_test(no_flipped_byte_crashes_the_verifier),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
