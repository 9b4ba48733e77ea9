#include "graph/op.h"

#include <stdio.h>

#include "graph/testing.h"
#include "tests/check.h"

/* Each line is a node over these leaves; what its rule must say. "" : accepted, with this shape. */
static const char leaves[] =
	"input x f32 [*,4]\ninput img f32 [*,3,8,8]\ninput ids i32 [*,5]\ninput y i32 [*]\ninput seq f32 [*,5,6]\ninput qkv f32 [*,5,12]\n"
	"param w f32 [4,2] zeros\nparam k f32 [7,3,3,3] zeros\nparam v4 f32 [4] zeros\nparam v3 f32 [3] zeros\nparam t f32 [9,6] zeros\n"
	"param pos f32 [5,6] zeros\nparam v6 f32 [6] ones\n";

static const struct { const char *line, *shape, *error; } cases[] = {
	{ "%0 = matmul x w", "f32 [*,2]", "" },
	{ "%0 = matmul x w tb=1", NULL, "summed over differ" },
	{ "%0 = matmul x x ta=1", "f32 [4,4]", "" },
	{ "%0 = matmul w w tb=1", "f32 [4,4]", "" },
	{ "%0 = matmul x x tb=1", NULL, "grow with the rows" },
	{ "%0 = matmul seq pos tb=1", "f32 [*,5,5]", "" },
	{ "%0 = matmul x w ta=2", NULL, "ta and tb are 0 or 1" },
	{ "%0 = matmul v4 w", NULL, "need two extents" },
	{ "%0 = conv2d img k sh=1 sw=2 ph=1 pw=0", "f32 [*,7,8,3]", "" },
	{ "%0 = conv2d img k sh=1 sw=1 ph=3", NULL, "smaller than the kernel" },
	{ "%0 = conv2d img k sh=0 sw=1", NULL, "strides are at least 1" },
	{ "%0 = conv2d x k sh=1 sw=1", NULL, "four extents" },
	{ "%0,%1 = attention qkv heads=2 causal=1", "f32 [*,5,4]", "" },
	{ "%0,%1 = attention qkv heads=3", NULL, "heads divides C" },
	{ "%0,%1 = attention seq heads=2 causal=2", NULL, "causal is 0 or 1" },
	{ "%0 = reshape x d0=-4", "f32 [4*]", "" },
	{ "%0 = reshape x d0=-1 d1=2 d2=2", "f32 [*,2,2]", "" },
	{ "%0 = reshape x d0=-1 d1=3", NULL, "another number of elements" },
	{ "%0 = reshape x d0=-1 d2=4", NULL, "follows the 0" },
	{ "%0 = add seq pos", "f32 [*,5,6]", "" },
	{ "%0 = add pos seq", NULL, "last extents" },
	{ "%0 = sub seq pos", NULL, "shapes differ" },
	{ "%0 = scale x by=nan", NULL, "not finite" },
	{ "%0 = bias img v3 axis=1", "f32 [*,3,8,8]", "" },
	{ "%0 = bias img v3 axis=-1", NULL, "extent of that axis" },
	{ "%0 = bias x v4 axis=2", NULL, "axis is -1 or 1" },
	{ "%0,%1 = bias_act x v4 axis=-1 act=gelu", "f32 [*,4]", "" },
	{ "%0 = maxpool2d img kh=2 kw=3 sh=2 sw=1", "f32 [*,3,4,6]", "" },
	{ "%0 = maxpool2d img kh=9 kw=1 sh=1 sw=1", NULL, "fit into the image" },
	{ "%0 = embed ids t", "f32 [*,5,6]", "" },
	{ "%0 = embed x t", NULL, "ids are i32" },
	{ "%0 = sum_rows img axis=1", "f32 [3]", "" },
	{ "%0 = sum_rows seq keep=2", "f32 [5,6]", "" },
	{ "%0 = sum_rows seq keep=3", NULL, "at least one extent to sum over" },
	{ "%0,%1 = layernorm seq v6 v6 eps=1e-5", "f32 [*,5,6]", "" },
	{ "%0,%1 = layernorm seq v6 v6 eps=0", NULL, "eps is above 0" },
	{ "%0,%1 = layernorm seq v4 v6 eps=1e-5", NULL, "gamma and beta" },
	{ "%0,%1,%2 = add_layernorm seq pos v6 v6 eps=1e-5", NULL, "differ in shape" },
	{ "%0,%1,%2 = softmax_xent x y", "f32 [*]", "" },
	{ "%0,%1,%2 = softmax_xent seq y", NULL, "leading extents of the logits" },
	{ "%0 = mse x x", "f32 [*]", "" },
	{ "%0 = sum64 x", "f64 [1]", "" },
	{ "%0 = sum64 y", NULL, "not f32" },
	{ "%0 = count64 y", "f64 [1]", "" },
	{ "%0 = dropout x p=1", NULL, "below 1" },
	{ "%0 = dropout x p=0.5", "f32 [*,4]", "" },
};

static void shape_rules_derive_or_say_which_rule_is_broken(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hd_subject s;
		char text[2048];
		snprintf(text, sizeof text, "%s%s\n", leaves, cases[i].line);
		hd_subject_parse(&s, text);
		CHECK((s.err == HD_OK) == (cases[i].shape != NULL), "%s: %s", cases[i].line, s.diag.text);
		if (cases[i].shape) {
			const char *got = hd_value_shape(&s.graph.value[s.graph.node[0].out]).at;
			CHECK(strcmp(got, cases[i].shape) == 0, "%s: %s", cases[i].line, got);
		} else {
			CHECK(strstr(s.diag.text, cases[i].error), "%s: %s", cases[i].line, s.diag.text);
		}
		hd_subject_finish(&s);
	}
}

static struct hd_cost cost_of(const char *line, uint64_t rows)
{
	struct hd_subject s;
	char text[2048];

	snprintf(text, sizeof text, "%s%s\n", leaves, line);
	hd_subject_parse(&s, text);
	CHECK(s.err == HD_OK, "%s", s.diag.text);
	struct hd_cost cost = hd_ops[s.graph.node[0].op].cost(&s.graph, &s.graph.node[0], rows);
	double flops = cost.flops, bytes = cost.bytes;
	hd_subject_finish(&s);
	return (struct hd_cost){ flops, bytes };
}

/* Counted by hand: multiply and add of every product. */
static void costs_of_dense_ops_are_their_multiply_adds(void **state)
{
	(void)state;
	assert_true(cost_of("%0 = matmul x w", 10).flops == 2.0 * 10 * 4 * 2);
	assert_true(cost_of("%0 = matmul x x ta=1", 10).flops == 2.0 * 10 * 4 * 4);
	assert_true(cost_of("%0 = matmul x w", 10).bytes == 4.0 * (40 + 8 + 20));
	assert_true(cost_of("%0 = conv2d img k sh=1 sw=1", 2).flops == 2.0 * 2 * 7 * 6 * 6 * 27);
	assert_true(cost_of("%0,%1 = attention qkv heads=2", 3).flops == 2.0 * 2 * 3 * 5 * 5 * 4);
	assert_true(cost_of("%0,%1 = attention qkv heads=2 causal=1", 3).flops == 2.0 * 3 * 5 * 5 * 4);
	assert_true(cost_of("%0 = reshape x d0=-4", 3).bytes == 0.0);
	assert_true(cost_of("%0 = scale x by=2", 3).bytes == 2.0 * 3 * 4 * 4);
}

static void every_op_has_a_row_that_agrees_with_its_line(void **state)
{
	(void)state;
	for (uint16_t op = 0; op < HD_NOPS; op++) {
		uint16_t parsed = HD_NOPS;
		struct hd_attr_name attr;
		CHECK(hd_op_parse(hd_ops[op].name, &parsed) && parsed == op, "%s", hd_ops[op].name);
		CHECK(hd_ops[op].shape && hd_ops[op].cost && hd_ops[op].about[0], "%s", hd_ops[op].name);
		CHECK(hd_ops[op].nin <= HD_MAX_IN && hd_ops[op].nout <= HD_MAX_OUT, "%s", hd_ops[op].name);
		uint32_t n = 0;
		while (hd_op_attr(op, n, &attr))
			n++;
		CHECK(n <= 8, "%s", hd_ops[op].name);
	}
}

static void attributes_are_found_by_name_and_kind(void **state)
{
	struct hd_attr_name attr;

	(void)state;
	assert_true(hd_op_attr(HD_OP_CONV2D, 2, &attr));
	assert_string_equal(attr.at, "ph");
	assert_false(attr.is_float);
	assert_int_equal(attr.slot, 2);
	assert_true(hd_op_attr(HD_OP_LAYERNORM, 0, &attr));
	assert_string_equal(attr.at, "eps");
	assert_true(attr.is_float);
	assert_false(hd_op_attr(HD_OP_LAYERNORM, 1, &attr));
	assert_false(hd_op_attr(HD_OP_ADD, 0, &attr));
}

static void attributes_without_a_name_must_be_zero(void **state)
{
	struct hd_diag diag = { "" };

	(void)state;
	assert_int_equal(hd_op_attr_check(HD_OP_ADD, &(struct hd_attr){ .i = { 0, 0, 1 } }, &diag), HD_E_INVAL);
	assert_int_equal(hd_op_attr_check(HD_OP_SCALE, &(struct hd_attr){ .f = { 1, 1 } }, NULL), HD_E_INVAL);
	assert_int_equal(hd_op_attr_check(HD_OP_SCALE, &(struct hd_attr){ .f = { 1, 0 } }, NULL), HD_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shape_rules_derive_or_say_which_rule_is_broken),
		cmocka_unit_test(costs_of_dense_ops_are_their_multiply_adds),
		cmocka_unit_test(every_op_has_a_row_that_agrees_with_its_line),
		cmocka_unit_test(attributes_are_found_by_name_and_kind),
		cmocka_unit_test(attributes_without_a_name_must_be_zero),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
