#include "graph/pass.h"

#include <stdio.h>

#include "graph/testing.h"
#include "tests/check.h"

/* Parses, runs one pass, and compares with what is expected, both in canonical form. */
static void expect(enum hd_err (*pass)(struct hd_graph *, struct hd_diag *), const char *text,
	const char *wanted)
{
	struct hd_subject s;

	hd_subject_parse(&s, text);
	CHECK(s.err == HD_OK, "%s", s.diag.text);
	CHECK(pass(&s.graph, &s.diag) == HD_OK, "%s", s.diag.text);
	CHECK(hd_graph_verify(&s.graph, 64, &s.diag) == HD_OK, "%s", s.diag.text);
	assert_string_equal(hd_subject_print(&s), wanted);
	hd_subject_finish(&s);
}

static void chains_of_constants_become_one(void **state)
{
	(void)state;
	expect(hd_graph_fold,
		"const $0 f32 [2,2] 1 2 3 4\nconst $1 f32 [2] 10 -20\n%0 = add $0 $1\n%1 = scale %0 "
		"by=0.5\n%2 = act %1 act=relu\n"
		"%3 = mul %2 $0\n%4 = reshape %3 d0=4\n%5 = sub %4 %4\noutput a %4\noutput b %5\n",
		"const $0 f32 [2,2] 1 2 3 4\nconst $1 f32 [2] 10 -20\nconst $2 f32 [2,2] 11 -18 13 "
		"-16\nconst $3 f32 [2,2] 5.5 -9 6.5 -8\n"
		"const $4 f32 [2,2] 5.5 0 6.5 0\nconst $5 f32 [2,2] 5.5 0 19.5 0\nconst $6 f32 [4] 5.5 0 "
		"19.5 0\nconst $7 f32 [4] 0 0 0 0\n"
		"output a $6\noutput b $7\n");
}

/* As the kernels compute: what does not fit wraps, by 0 is 0, towards 0. */
static void whole_constants_are_folded_as_the_kernels_compute_them(void **state)
{
	(void)state;
	expect(hd_graph_fold,
		"const $0 i32 [2] 2147483647 -7\nconst $1 i32 [1] 2\nconst $2 i32 [2] 0 3\n%0 = add $0 "
		"$1\n%1 = mul %0 $1\n%2 = div $0 $2\n%3 = sub $2 $1\n"
		"%4 = maximum $0 $2\n%5 = minimum $0 $2\n%6 = reshape %5 d0=2 d1=1\n%7 = less $0 $2\n"
		"output a %0\noutput b %1\noutput c %2\noutput d %3\noutput e %4\noutput f %6\noutput g %7\n",
		"const $0 i32 [2] 2147483647 -7\nconst $1 i32 [1] 2\nconst $2 i32 [2] -2147483647 -5\nconst "
		"$3 i32 [2] 2 -10\nconst $4 i32 [2] 0 3\n"
		"const $5 i32 [2] 0 -2\nconst $6 i32 [2] -2 1\nconst $7 i32 [2] 2147483647 3\nconst $8 i32 "
		"[2] 0 -7\nconst $9 i32 [2,1] 0 -7\n"
		"%0 = less $0 $4 : f32 [2]\noutput a $2\noutput b $3\noutput c $5\noutput d $6\noutput e "
		"$7\noutput f $9\noutput g %0\n");
}

static void exact_activations_of_constants_are_folded(void **state)
{
	(void)state;
	expect(hd_graph_fold,
		"const $0 f32 [2] -4 16\n%0 = act $0 act=leaky alpha=0.25\n%1 = act $0 act=clip alpha=-1 "
		"beta=9\n%2 = act $0 act=abs\n"
		"%3 = act %2 act=sqrt\n%4 = act $0 act=recip\n%5 = act $0 act=square\n%6 = act $0 act=neg\n"
		"output a %0\noutput b %1\noutput c %3\noutput d %4\noutput e %5\noutput f %6\n",
		"const $0 f32 [2] -4 16\nconst $1 f32 [2] -1 16\nconst $2 f32 [2] -1 9\nconst $3 f32 [2] 4 "
		"16\nconst $4 f32 [2] 2 4\n"
		"const $5 f32 [2] -0.25 0.0625\nconst $6 f32 [2] 16 256\nconst $7 f32 [2] 4 -16\n"
		"output a $1\noutput b $2\noutput c $4\noutput d $5\noutput e $6\noutput f $7\n");
}

static void what_is_not_exact_or_not_finite_is_left(void **state)
{
	static const char text[] =
		"const $0 f32 [2] 1 3e+38\n%0 = act $0 act=gelu : f32 [2]\n%1 = add $0 $0 : f32 [2]\n%2 = "
		"scale %1 by=2 : f32 [2]\n"
		"output a %0\noutput b %2\n";

	(void)state;
	expect(hd_graph_fold, text, text);
}

static void nodes_that_read_inputs_are_left(void **state)
{
	static const char text[] =
		"input x f32 [2]\nconst $0 f32 [2] 1 2\n%0 = add x $0 : f32 [2]\noutput a %0\n";

	(void)state;
	expect(hd_graph_fold, text, text);
}

static const char leaves[] =
	"input x f32 [*,2]\nparam b f32 [2] zeros\nparam g f32 [2] ones\nparam h f32 [2] zeros\n";

static void expect_fused(const char *text, const char *wanted)
{
	char from[1024], to[1024];

	snprintf(from, sizeof from, "%s%s", leaves, text);
	snprintf(to, sizeof to, "%s%s", leaves, wanted);
	expect(hd_graph_fuse, from, to);
}

static void bias_and_activation_are_fused(void **state)
{
	(void)state;
	expect_fused("%0 = bias x b axis=-1\n%1 = act %0 act=tanh\noutput y %1\noutput z %0\n",
		"%0,%1 = bias_act x b axis=-1 act=tanh : f32 [*,2], f32 [*,2]\noutput y %1\noutput z %0\n");
	expect_fused("%0 = bias x b axis=-1\n%1 = act %0 act=clip alpha=-0.5 beta=6\noutput y %1\n",
		"%0,%1 = bias_act x b axis=-1 act=clip alpha=-0.5 beta=6 : f32 [*,2], f32 [*,2]\noutput y "
		"%1\n");
}

static void sums_and_norms_are_fused_and_the_sum_stays_readable(void **state)
{
	(void)state;
	expect_fused("%0 = add x x\n%1,%2 = layernorm %0 g h eps=0.5\n%3 = add %0 %1\noutput y %3\noutput s "
		"%2\n",
		"%0,%1,%2 = add_layernorm x x g h eps=0.5 : f32 [*,2], f32 [*,2], f32 [*,2]\n%3 = add %1 %0 "
		": f32 [*,2]\noutput y %3\noutput s %2\n");
}

static void pairs_that_are_no_neighbours_repeat_or_differ_in_stage_are_left(void **state)
{
	static const char *const texts[] = {
		"%0 = bias x b axis=-1 : f32 [*,2]\n%1 = scale %0 by=2 : f32 [*,2]\n%2 = act %0 act=relu : "
			"f32 [*,2]\noutput y %2\noutput z %1\n",
		"%0 = bias x b axis=-1 : f32 [*,2]\n%1 = act x act=relu : f32 [*,2]\noutput y %1\noutput z "
		"%0\n",
		"%0 = bias x b axis=-1 : f32 [*,2]\n%1 = act %0 act=relu stage=1 : f32 [*,2]\noutput y %1\n",
		"%0 = add x b : f32 [*,2]\n%1,%2 = layernorm %0 g h eps=0.5 : f32 [*,2], f32 [*,2]\noutput "
		"y %1\n",
		"%0 = add g h : f32 [2]\n%1,%2 = layernorm x %0 h eps=0.5 : f32 [*,2], f32 [*,2]\noutput y "
		"%1\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		expect_fused(texts[i], texts[i]);
}

static void what_no_output_needs_goes_but_parameters_and_keys_stay(void **state)
{
	(void)state;
	expect(hd_graph_prune,
		"input x f32 [*,2]\ninput unused f32 [3]\nparam w f32 [2] zeros\nconst $0 f32 [1] 7\nconst "
		"$1 f32 [2] 1 2\n%0 = dropout x p=0.5\n"
		"%1 = dropout x p=0.5\n%2 = bias %1 $1 axis=-1\n%3 = scale $0 by=2\noutput y %2\n",
		"input x f32 [*,2]\ninput unused f32 [3]\nparam w f32 [2] zeros\nconst $0 f32 [2] 1 2\n%0 = "
		"dropout x p=0.5 key=1 : f32 [*,2]\n"
		"%1 = bias %0 $0 axis=-1 : f32 [*,2]\noutput y %1\n");
}

static void moments_that_move_a_buffer_are_needed(void **state)
{
	static const char text[] =
		"input x f32 [*,2]\nparam w f32 [2] ones\nbuffer m f32 [2] zeros\nbuffer v f32 [2] ones\n"
		"buffer unused f32 [3] ones\n%0,%1,%2 = batchnorm x w w m v axis=1 eps=1e-05 : f32 [*,2], "
		"f32 [3,2], f64 [3,2]\n"
		"output y x\nrunning m v %2 0.1\n";

	(void)state;
	expect(hd_graph_prune, text, text);
	expect(hd_graph_fuse, text, text);
}

static const char kernels[] =
	"input x f32 [*,3,6,6]\nparam a f32 [16,3,3,3] zeros\nparam b f32 [32,16,3,3] zeros\nparam c f32 "
	"[32,32,1,1] zeros\n"
	"param d f32 [5,32,1,1] zeros\nparam g f32 [16] ones\nbuffer m f32 [16] zeros\nbuffer v f32 [16] "
	"ones\n";

static void expect_blocked(const char *text, const char *wanted)
{
	char from[2048], to[2048];

	snprintf(from, sizeof from, "%s%s", kernels, text);
	snprintf(to, sizeof to, "%s%s", kernels, wanted);
	expect(hd_graph_block, from, to);
	expect(hd_graph_block, to, to);
}

static void chains_of_convolutions_are_entered_and_left_once(void **state)
{
	(void)state;
	expect_blocked("%0 = conv2d x a sh=1 sw=1 ph=1 pw=1\n%1 = act %0 act=relu\n%2 = conv2d %1 b sh=2 "
		"sw=2 ph=1 pw=1\n%3 = conv2d %2 c sh=1 sw=1\n"
		"%4 = add %3 %2\n%5 = act %4 act=relu\n%6 = maxpool2d %5 kh=3 kw=3 sh=1 sw=1\n%7 = mul %5 "
		"%2\noutput y %6\noutput z %5\noutput v %7\n",
		"%0 = block x : f32 [*,1,6,6,16]\n%1 = conv2d_b %0 a sh=1 sw=1 ph=1 pw=1 : f32 "
		"[*,1,6,6,16]\n%2 = act %1 act=relu : f32 [*,1,6,6,16]\n"
		"%3 = conv2d_b %2 b sh=2 sw=2 ph=1 pw=1 : f32 [*,2,3,3,16]\n%4 = conv2d_b %3 c sh=1 sw=1 : "
		"f32 [*,2,3,3,16]\n"
		"%5 = add %4 %3 : f32 [*,2,3,3,16]\n%6 = act %5 act=relu : f32 [*,2,3,3,16]\n%7 = unblock "
		"%6 c=32 : f32 [*,32,3,3]\n"
		"%8 = maxpool2d %7 kh=3 kw=3 sh=1 sw=1 : f32 [*,32,1,1]\n%9 = mul %6 %3 : f32 "
		"[*,2,3,3,16]\n%10 = unblock %9 c=32 : f32 [*,32,3,3]\n"
		"output y %8\noutput z %7\noutput v %10\n");
}

static void norms_follow_and_their_moments_stay(void **state)
{
	(void)state;
	expect_blocked("%0 = conv2d x a sh=1 sw=1\n%1,%2,%3 = batchnorm %0 g g m v axis=1 eps=1e-05\noutput "
		"y %1\nrunning m v %3 0.1\n",
		"%0 = block x : f32 [*,1,6,6,16]\n%1 = conv2d_b %0 a sh=1 sw=1 : f32 [*,1,4,4,16]\n"
		"%2,%3,%4 = batchnorm %1 g g m v axis=16 eps=1e-05 : f32 [*,1,4,4,16], f32 [3,16], f64 "
		"[3,16]\n"
		"%5 = unblock %2 c=16 : f32 [*,16,4,4]\noutput y %5\nrunning m v %4 0.1\n");
}

/* Of joined images each fills blocks of its own; what does not is joined in the plain order, as is what is
 * joined along another axis. */
static void images_are_joined_in_blocks_where_each_fills_them(void **state)
{
	(void)state;
	expect_blocked("%0 = conv2d x a sh=1 sw=1\n%1 = conv2d %0 b sh=1 sw=1 ph=1 pw=1\n%2 = concat %0 %1 "
		"axis=1\n%3 = maxpool2d %0 kh=1 kw=1 sh=1 sw=1\n"
		"%4 = concat %3 %2 axis=1\n%5 = act %4 act=relu\noutput y %5\n",
		"%0 = block x : f32 [*,1,6,6,16]\n%1 = conv2d_b %0 a sh=1 sw=1 : f32 [*,1,4,4,16]\n%2 = "
		"conv2d_b %1 b sh=1 sw=1 ph=1 pw=1 : f32 [*,2,4,4,16]\n"
		"%3 = concat %1 %2 axis=1 : f32 [*,3,4,4,16]\n%4 = unblock %1 c=16 : f32 [*,16,4,4]\n"
		"%5 = maxpool2d %4 kh=1 kw=1 sh=1 sw=1 : f32 [*,16,4,4]\n%6 = block %5 : f32 "
		"[*,1,4,4,16]\n%7 = concat %6 %3 axis=1 : f32 [*,4,4,4,16]\n"
		"%8 = act %7 act=relu : f32 [*,4,4,4,16]\n%9 = unblock %8 c=64 : f32 [*,64,4,4]\noutput y "
		"%9\n");
	expect_blocked("%0 = conv2d x a sh=1 sw=1\n%1 = conv2d %0 b sh=1 sw=1\n%2 = conv2d %1 d sh=1 "
		"sw=1\n%3 = concat %1 %2 axis=1\n%4 = concat %2 %1 axis=1\n"
		"%5 = concat %1 %1 axis=2\noutput y %3\noutput z %4\noutput v %5\n",
		"%0 = block x : f32 [*,1,6,6,16]\n%1 = conv2d_b %0 a sh=1 sw=1 : f32 [*,1,4,4,16]\n%2 = "
		"conv2d_b %1 b sh=1 sw=1 : f32 [*,2,2,2,16]\n"
		"%3 = unblock %2 c=32 : f32 [*,32,2,2]\n%4 = conv2d %3 d sh=1 sw=1 : f32 [*,5,2,2]\n%5 = "
		"concat %3 %4 axis=1 : f32 [*,37,2,2]\n"
		"%6 = concat %4 %3 axis=1 : f32 [*,37,2,2]\n%7 = concat %3 %3 axis=2 : f32 "
		"[*,32,4,2]\noutput y %5\noutput z %6\noutput v %7\n");
}

/* Too few channels of the result, or of a source that needs a gradient; keyed by element; repeated
 * operands. */
static void what_does_not_fill_blocks_or_needs_the_plain_order_stays_plain(void **state)
{
	static const char wide[] = "%0 = conv2d x a sh=1 sw=1 dh=2 : f32 [*,16,2,4]\noutput y %0\n";

	(void)state;
	expect_blocked(wide, wide);
	expect_blocked("%0 = conv2d x a sh=1 sw=1 groups=1 dh=1 dw=1\n%1 = dropout %0 p=0.5 key=0\n%2 = "
		"conv2d %1 b sh=1 sw=1\n"
		"%3 = conv2d %2 d sh=1 sw=1\noutput y %3\n",
		"%0 = block x : f32 [*,1,6,6,16]\n%1 = conv2d_b %0 a sh=1 sw=1 : f32 [*,1,4,4,16]\n%2 = "
		"unblock %1 c=16 : f32 [*,16,4,4]\n"
		"%3 = dropout %2 p=0.5 key=0 : f32 [*,16,4,4]\n%4 = block %3 : f32 [*,1,4,4,16]\n%5 = "
		"conv2d_b %4 b sh=1 sw=1 : f32 [*,2,2,2,16]\n"
		"%6 = unblock %5 c=32 : f32 [*,32,2,2]\n%7 = conv2d %6 d sh=1 sw=1 : f32 [*,5,2,2]\noutput "
		"y %7\n");
}

static uint32_t fused_pairs(const struct hd_graph *graph)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < graph->nnodes; i++)
		n += graph->node[i].op == HD_OP_BIAS_ACT || graph->node[i].op == HD_OP_ADD_LAYERNORM;
	return n;
}

/* Wherever a graph is cut, at most the pair that the cut divides is left unfused, and the
 * order in which gradients are summed is the same: operands of gradient ADDs keep their ops. */
static void a_cut_divides_one_pair_and_nothing_else(void **state)
{
	static const struct hd_model_arg arg[] = { { "layers", "2" }, { "width", "8" },
		{ "dropout", "0.1" } };
	struct hd_subject whole;

	(void)state;
	hd_subject_model(&whole, "gpt", arg, 3, (struct hd_model_opts){ 0 });
	uint32_t nnodes = whole.graph.nnodes, nrandom = whole.graph.nrandom;
	assert_int_equal(hd_graph_optimize(&whole.graph, 64, &whole.diag), HD_OK);
	assert_int_equal(fused_pairs(&whole.graph), 2 + 4);
	for (uint32_t cut = 1; cut < nnodes; cut++) {
		struct hd_subject s;
		hd_subject_model(&s, "gpt", arg, 3, (struct hd_model_opts){ 0 });
		assert_int_equal(hd_graph_cut(&s.graph, 1, &cut, NULL), HD_OK);
		CHECK(hd_graph_optimize(&s.graph, 64, &s.diag) == HD_OK, "cut %u: %s", cut, s.diag.text);
		uint32_t lost = fused_pairs(&whole.graph) - fused_pairs(&s.graph);
		CHECK(lost <= 1 && s.graph.nnodes == whole.graph.nnodes + lost, "cut %u: %u pairs lost", cut,
			lost);
		CHECK(s.graph.nrandom == nrandom, "cut %u", cut);
		assert_int_equal(hd_graph_autodiff(&s.graph, &s.diag), HD_OK);
		CHECK(hd_graph_verify(&s.graph, 64, &s.diag) == HD_OK, "cut %u: %s", cut, s.diag.text);
		hd_subject_finish(&s);
	}
	hd_subject_finish(&whole);
}

static void passes_are_a_fixed_point_on_what_they_made(void **state)
{
	struct hd_subject s;

	(void)state;
	hd_subject_model(&s, "lenet", NULL, 0, (struct hd_model_opts){ 0 });
	assert_int_equal(hd_graph_optimize(&s.graph, 64, &s.diag), HD_OK);
	const char *once = hd_subject_print(&s);
	assert_int_equal(hd_graph_optimize(&s.graph, 64, &s.diag), HD_OK);
	assert_string_equal(hd_subject_print(&s), once);
	hd_subject_finish(&s);
}

static void cuts_out_of_order_or_after_the_gradient_are_refused(void **state)
{
	struct hd_subject s;

	(void)state;
	hd_subject_model(&s, "lenet", NULL, 0, (struct hd_model_opts){ 0 });
	assert_int_equal(hd_graph_cut(&s.graph, 2, (uint32_t[]){ 5, 5 }, NULL), HD_E_INVAL);
	assert_int_equal(hd_graph_cut(&s.graph, 1, (uint32_t[]){ 0 }, NULL), HD_E_INVAL);
	assert_int_equal(hd_graph_cut(&s.graph, 1, (uint32_t[]){ s.graph.nnodes }, NULL), HD_E_INVAL);
	assert_int_equal(hd_graph_cut(&s.graph, 2, (uint32_t[]){ 3, 9 }, NULL), HD_OK);
	assert_int_equal(s.graph.node[2].stage, 0);
	assert_int_equal(s.graph.node[3].stage, 1);
	assert_int_equal(s.graph.node[9].stage, 2);
	assert_int_equal(hd_graph_autodiff(&s.graph, NULL), HD_OK);
	assert_int_equal(hd_graph_cut(&s.graph, 1, (uint32_t[]){ 3 }, NULL), HD_E_INVAL);
	assert_int_equal(hd_graph_optimize(&s.graph, 64, &s.diag), HD_E_INVAL);
	hd_subject_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chains_of_constants_become_one),
		cmocka_unit_test(whole_constants_are_folded_as_the_kernels_compute_them),
		cmocka_unit_test(exact_activations_of_constants_are_folded),
		cmocka_unit_test(what_is_not_exact_or_not_finite_is_left),
		cmocka_unit_test(nodes_that_read_inputs_are_left),
		cmocka_unit_test(bias_and_activation_are_fused),
		cmocka_unit_test(sums_and_norms_are_fused_and_the_sum_stays_readable),
		cmocka_unit_test(pairs_that_are_no_neighbours_repeat_or_differ_in_stage_are_left),
		cmocka_unit_test(what_no_output_needs_goes_but_parameters_and_keys_stay),
		cmocka_unit_test(moments_that_move_a_buffer_are_needed),
		cmocka_unit_test(chains_of_convolutions_are_entered_and_left_once),
		cmocka_unit_test(norms_follow_and_their_moments_stay),
		cmocka_unit_test(images_are_joined_in_blocks_where_each_fills_them),
		cmocka_unit_test(what_does_not_fill_blocks_or_needs_the_plain_order_stays_plain),
		cmocka_unit_test(a_cut_divides_one_pair_and_nothing_else),
		cmocka_unit_test(passes_are_a_fixed_point_on_what_they_made),
		cmocka_unit_test(cuts_out_of_order_or_after_the_gradient_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
