#include "graph/op.h"

#include <stdio.h>

#include "graph/testing.h"
#include "tests/check.h"

/* Each line is a node over these leaves; what its rule must say. "" : accepted, with this shape. */
static const char leaves[] =
	"input x f32 [*,4]\ninput img f32 [*,3,8,8]\ninput ids i32 [*,5]\ninput y i32 [*]\ninput seq f32 "
	"[*,5,6]\ninput qkv f32 [*,5,12]\n"
	"param w f32 [4,2] zeros\nparam k f32 [7,3,3,3] zeros\nparam v4 f32 [4] zeros\nparam v3 f32 [3] "
	"zeros\nparam t f32 [9,6] zeros\n"
	"param pos f32 [5,6] zeros\nparam v6 f32 [6] ones\nparam k1 f32 [6,1,3,3] zeros\n"
	"param w12 f32 [12,3] zeros\nparam w9 f32 [9,3] zeros\nparam w6 f32 [6,2] zeros\nparam v12 f32 [12] "
	"zeros\n"
	"input list i32 [9]\ninput heads f32 [9,3]\ninput rows f32 [9,*]\ninput h15 f32 [5,15]\n"
	"input imb f32 [*,2,8,8,16]\nparam kb f32 [33,20,3,3] zeros\n"
	"param experts f32 [3,2,6] zeros\nparam e4 f32 [3,4,2] zeros\n";

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
	{ "%0 = edge_sum list list heads h15 h15", "f32 [5,15]", "" },
	{ "%0 = edge_sum list list rows h15 h15", NULL, "heads divide the columns" },
	{ "%0 = edge_dot list list h15 h15 heads", "f32 [9,3]", "" },
	{ "%0 = edge_dot list list h15 h15 rows", NULL, "heads divide the columns" },
	{ "%0 = block img", "f32 [*,1,8,8,16]", "" },
	{ "%0 = block seq", NULL, "images have four extents" },
	{ "%0 = unblock imb c=20", "f32 [*,20,8,8]", "" },
	{ "%0 = unblock imb c=16", NULL, "do not fill these blocks" },
	{ "%0 = unblock imb c=33", NULL, "do not fill these blocks" },
	{ "%0 = unblock img c=3", NULL, "five extents" },
	{ "%0 = conv2d_b imb kb sh=2 sw=1 ph=1 pw=0", "f32 [*,3,4,6,16]", "" },
	{ "%0 = conv2d_b imb k sh=1 sw=1", NULL, "channels of the kernels" },
	{ "%0 = conv2d_b img k sh=1 sw=1", NULL, "five extents" },
	{ "%0 = conv2d_b imb kb sh=1 sw=1 pw=3", NULL, "smaller than the kernel" },
	{ "%0 = conv2d_b imb kb sh=0 sw=1", NULL, "strides are at least 1" },
	{ "%0 = conv2d_b_dx imb kb imb sh=1 sw=1", NULL, "shape of the convolution" },
	{ "%0,%1 = attention qkv heads=2 causal=1", "f32 [*,5,4]", "" },
	{ "%0,%1 = attention qkv heads=3", NULL, "heads divides C" },
	{ "%0,%1 = attention seq heads=2 causal=2", NULL, "causal is 0 or 1" },
	{ "%0 = reshape x d0=-4", "f32 [4*]", "" },
	{ "%0 = reshape x d0=-1 d1=2 d2=2", "f32 [*,2,2]", "" },
	{ "%0 = reshape x d0=-1 d1=3", NULL, "another number of elements" },
	{ "%0 = reshape x d0=-1 d2=4", NULL, "follows the 0" },
	{ "%0 = add seq pos", "f32 [*,5,6]", "" },
	{ "%0 = add pos seq", "f32 [*,5,6]", "" },
	{ "%0 = sub seq v4", NULL, "do not broadcast" },
	{ "%0 = mul x y", NULL, "both are i32" },
	{ "%0 = where y x v4", NULL, "do not broadcast" },
	{ "%0 = where ids seq seq", NULL, "do not broadcast" },
	{ "%0 = less ids ids", "f32 [*,5]", "" },
	{ "%0 = power ids ids", NULL, "not f32" },
	{ "%0 = expand v4 d0=-1 d1=4", "f32 [*,4]", "" },
	{ "%0 = expand x d0=3 d1=4", NULL, "neither 1 nor the new one" },
	{ "%0 = reduce_sum seq axes=5", "f32 [5]", "" },
	{ "%0 = reduce_sum seq axes=5 keep=4", "f32 [5,1]", "" },
	{ "%0 = reduce_sum seq axes=2 keep=4", NULL, "a part of it" },
	{ "%0 = reduce_sum seq axes=8", NULL, "a mask of extents" },
	{ "%0 = reduce_mean seq axes=1", NULL, "grows with the rows" },
	{ "%0 = argmax seq axis=2", "i32 [*,5]", "" },
	{ "%0 = topk seq axis=2 k=3", "i32 [*,5,3]", "" },
	{ "%0 = topk seq axis=1 k=5 least=1", "i32 [*,5,6]", "" },
	{ "%0 = topk seq axis=2 k=7", NULL, "at most the extent" },
	{ "%0 = topk seq axis=2 k=0", NULL, "at least 1" },
	{ "%0 = topk seq axis=0 k=1", NULL, "grows with the rows" },
	{ "%0 = topk seq axis=1 k=1 least=2", NULL, "least is 0 or 1" },
	{ "%0 = topk ids axis=1 k=1", NULL, "not f32" },
	{ "%0 = expert_matmul seq ids experts tb=1", "f32 [*,5,2]", "" },
	{ "%0 = expert_matmul x ids e4", "f32 [*,5,2]", "" },
	{ "%0 = expert_matmul x y e4", "f32 [*,2]", "" },
	{ "%0 = expert_matmul seq ids experts", NULL, "summed over differ" },
	{ "%0 = expert_matmul seq ids experts tb=2", NULL, "tb is 0 or 1" },
	{ "%0 = expert_matmul seq y experts tb=1", NULL, "extents of the rows" },
	{ "%0 = expert_matmul seq x experts tb=1", NULL, "ids are i32" },
	{ "%0 = expert_matmul seq ids pos", NULL, "fixed extents" },
	{ "%0 = expert_matmul ids ids experts", NULL, "not f32" },
	{ "%0 = expert_dw x x y e4", NULL, "columns of w" },
	{ "%0 = cumsum x axis=0", NULL, "grows with the rows" },
	{ "%0 = softmax y", NULL, "not f32" },
	{ "%0 = permute seq p0=1 p1=0 p2=2", "f32 [5,*,6]", "" },
	{ "%0 = permute seq p0=1 p1=1 p2=2", NULL, "every extent of x once" },
	{ "%0 = slice seq axis=1 from=4 step=-2 count=3", "f32 [*,3,6]", "" },
	{ "%0 = slice seq axis=1 from=4 step=2 count=2", NULL, "the last element exist" },
	{ "%0 = slice seq axis=0 step=1 count=1", NULL, "grows with the rows" },
	{ "%0 = concat seq seq axis=1", "f32 [*,10,6]", "" },
	{ "%0 = concat seq seq axis=0", NULL, "grows with the rows" },
	{ "%0 = concat seq x axis=1", NULL, "number of extents" },
	{ "%0 = pad seq axis=1 before=2 after=1 value=3", "f32 [*,8,6]", "" },
	{ "%0 = pad seq axis=1 before=-2", NULL, "slice to take away" },
	{ "%0 = gather pos ids axis=0", "f32 [*,5,6]", "" },
	{ "%0 = gather seq y axis=1", NULL, "only one of x and ids" },
	{ "%0 = one_hot y depth=9", "f32 [*,9]", "" },
	{ "%0 = one_hot x depth=9", NULL, "ids are i32" },
	{ "%0 = cast y to=1", "f32 [*]", "" },
	{ "%0 = cast y to=3", NULL, "another dtype" },
	{ "%0 = contract seq pos tb=1", "f32 [*,5,5]", "" },
	{ "%0 = contract seq pos", NULL, "summed over differ" },
	{ "%0 = contract x x tb=1", NULL, "two extents of the result" },
	{ "%0 = contract x x ta=1", "f32 [4,4]", "" },
	{ "%0 = scale x by=nan", NULL, "not finite" },
	{ "%0 = bias img v3 axis=1", "f32 [*,3,8,8]", "" },
	{ "%0 = bias img v3 axis=-1", NULL, "extent of that axis" },
	{ "%0 = bias x v4 axis=2", NULL, "axis is -1 or 1" },
	{ "%0,%1 = bias_act x v4 axis=-1 act=gelu", "f32 [*,4]", "" },
	{ "%0 = act x act=leaky alpha=0.2", "f32 [*,4]", "" },
	{ "%0 = act x act=relu alpha=0.2", NULL, "does not read it" },
	{ "%0 = act x act=clip alpha=1 beta=0.5", NULL, "alpha is not above beta" },
	{ "%0 = maxpool2d img kh=2 kw=3 sh=2 sw=1", "f32 [*,3,4,6]", "" },
	{ "%0 = maxpool2d img kh=9 kw=1 sh=1 sw=1", NULL, "fit into the image" },
	{ "%0 = conv2d img k1 sh=1 sw=1 groups=3", "f32 [*,6,6,6]", "" },
	{ "%0 = conv2d img k1 sh=1 sw=1 ph=2 groups=3 dh=2 dw=3", "f32 [*,6,8,2]", "" },
	{ "%0 = conv2d img k sh=1 sw=1 groups=1 dh=1 dw=1", "f32 [*,7,6,6]", "" },
	{ "%0 = conv2d img k1 sh=1 sw=1", NULL, "different channels" },
	{ "%0 = conv2d img k sh=1 sw=1 groups=3", NULL, "groups are at least 1 and divide the kernels" },
	{ "%0 = conv2d img k1 sh=1 sw=1 groups=2", NULL, "different channels" },
	{ "%0 = conv2d img k1 sh=1 sw=1 groups=-3", NULL, "groups are at least 1" },
	{ "%0 = conv2d img k sh=1 sw=1 dh=-1", NULL, "dilations and pads at least 0" },
	{ "%0 = conv2d img k sh=1 sw=1 dh=4", NULL, "larger than the padded image" },
	{ "%0 = maxpool2d img kh=3 kw=3 sh=2 sw=2 ph=1 pw=1", "f32 [*,3,4,4]", "" },
	{ "%0 = maxpool2d img kh=3 kw=3 sh=2 sw=2 ph=3", NULL, "smaller than the window" },
	{ "%0 = maxpool2d x kh=1 kw=1 sh=1 sw=1", NULL, "four extents" },
	{ "%0 = avgpool2d img kh=8 kw=8 sh=1 sw=1", "f32 [*,3,1,1]", "" },
	{ "%0 = avgpool2d img kh=3 kw=3 sh=1 sw=1 pw=1 all=1", "f32 [*,3,6,8]", "" },
	{ "%0 = avgpool2d img kh=3 kw=3 sh=1 sw=1 all=2", NULL, "all is 0 or 1" },
	{ "%0 = avgpool2d img kh=3 kw=3 sh=0 sw=1", NULL, "strides are at least 1" },
	{ "%0,%1 = groupnorm img v3 v3 groups=3 eps=1e-5", "f32 [*,3,8,8]", "" },
	{ "%0,%1 = groupnorm img v3 v3 groups=2 eps=1e-5", NULL, "divide the channels" },
	{ "%0,%1 = groupnorm img v4 v3 groups=1 eps=1e-5", NULL, "the channels of x" },
	{ "%0,%1 = groupnorm img v3 v3 groups=1", NULL, "eps is above 0" },
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
	{ "%0 = dropout seq p=0.5 from=2 whole=7", "f32 [*,5,6]", "" },
	{ "%0 = dropout seq p=0.5 from=3 whole=7", NULL, "inside extent 1 of its whole" },
	{ "%0 = dropout seq p=0.5 from=-1 whole=7", NULL, "inside extent 1 of its whole" },
	{ "%0 = dropout seq p=0.5 from=1", NULL, "inside extent 1 of its whole" },
	{ "%0 = dropout y p=0.5 whole=7", NULL, "inside extent 1 of its whole" },
	{ "%0 = dropout seq p=0.5 from=-2147483648 whole=2147483647", NULL, "inside extent 1 of its whole" },
	{ "%0,%1 = rmsnorm seq v6 eps=1e-5", "f32 [*,5,6]", "" },
	{ "%0,%1 = rmsnorm seq v6 eps=0", NULL, "eps is above 0" },
	{ "%0,%1 = rmsnorm seq v4 eps=1", NULL, "gamma has not" },
	{ "%0,%1,%2 = add_rmsnorm seq pos v6 eps=1", NULL, "differ in shape" },
	{ "%0 = rotary qkv heads=2 base=100", "f32 [*,5,12]", "" },
	{ "%0 = rotary qkv heads=4 base=100", NULL, "even number of channels" },
	{ "%0 = rotary qkv heads=2 base=1", NULL, "base is above 1" },
	{ "%0 = rotary x heads=2 base=9", NULL, "[N,T,heads D]" },
	{ "%0 = swiglu seq pos", NULL, "shapes differ" },
	{ "%0,%1 = attend qkv seq seq heads=4 kv=2 causal=1", "f32 [*,5,12]", "" },
	{ "%0,%1 = attend qkv seq seq heads=2 kv=2", NULL, "k and v are [N,T,kv D]" },
	{ "%0,%1 = attend qkv seq seq heads=4 kv=3", NULL, "kv divides heads" },
	{ "%0,%1 = attend qkv seq qkv heads=4 kv=2", NULL, "k and v are [N,T,kv D]" },
	{ "%0,%1 = attend_pad qkv seq seq ids heads=4 kv=2 pad=3", "f32 [*,5,12]", "" },
	{ "%0,%1 = attend_pad qkv seq seq y heads=4 kv=2", NULL, "ids are i32 [N,T]" },
	{ "%0,%1 = attend_pad qkv seq seq seq heads=4 kv=2", NULL, "ids are i32 [N,T]" },
	{ "%0,%1,%2 = lstm qkv w12 v12", "f32 [*,5,3]", "" },
	{ "%0,%1,%2 = lstm seq w12 v12", NULL, "[N,T,4H]" },
	{ "%0,%1,%2 = lstm qkv w9 v12", NULL, "w is [4H,H]" },
	{ "%0,%1,%2 = lstm qkv w12 v6", NULL, "bias has not" },
	{ "%0,%1,%2 = gru seq w6 v6", "f32 [*,5,2]", "" },
	{ "%0,%1,%2 = gru qkv w12 v12", NULL, "w is [3H,H]" },
	{ "%0 = recur_dw qkv seq", "f32 [12,6]", "" },
	{ "%0 = recur_dw qkv x", NULL, "[N,T,G] and [N,T,H]" },
	{ "%0,%1 = mask_tokens ids mask=4 vocab=5 share=0.15", "i32 [*,5]", "" },
	{ "%0,%1 = mask_tokens ids mask=5 vocab=5 share=0.15", NULL, "below vocab" },
	{ "%0,%1 = mask_tokens ids mask=1 vocab=5 share=1.5", NULL, "share is 0 to 1" },
	{ "%0,%1 = mask_tokens seq mask=1 vocab=5", NULL, "tokens are i32" },
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
	assert_true(cost_of("%0 = conv2d img k1 sh=1 sw=1 groups=3", 2).flops == 2.0 * 2 * 6 * 6 * 6 * 9);
	assert_true(cost_of("%0 = maxpool2d img kh=3 kw=2 sh=1 sw=1", 2).flops == 2.0 * 3 * 6 * 7 * 6);
	assert_true(cost_of("%0 = conv2d_b imb kb sh=1 sw=1", 2).flops == 2.0 * 2 * 33 * 6 * 6 * 20 * 9);
	assert_true(cost_of("%0,%1 = attention qkv heads=2", 3).flops == 2.0 * 2 * 3 * 5 * 5 * 4);
	assert_true(cost_of("%0,%1 = attention qkv heads=2 causal=1", 3).flops == 2.0 * 3 * 5 * 5 * 4);
	assert_true(cost_of("%0,%1 = attend qkv seq seq heads=4 kv=2", 3).flops == 2.0 * 2 * 3 * 5 * 5 * 12);
	assert_true(cost_of("%0,%1 = attend qkv seq seq heads=4 kv=2 causal=1",
		3).flops == 2.0 * 3 * 5 * 5 * 12);
	assert_true(cost_of("%0 = contract seq pos tb=1", 3).flops == 2.0 * 3 * 5 * 5 * 6);
	assert_true(cost_of("%0,%1,%2 = lstm qkv w12 v12", 2).flops == 2.0 * 2 * 5 * 12 * 3);
	assert_true(cost_of("%0 = recur_dw qkv seq", 2).flops == 2.0 * 2 * 5 * 12 * 6);
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
	assert_int_equal(hd_op_attr_check(HD_OP_ADD, &(struct hd_attr){ .i = { 0, 0, 1 } }, &diag),
		HD_E_INVAL);
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
