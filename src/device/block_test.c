/* A graph in blocks computes what the plain graph does: losses and gradients of a small
 * residual network on the reference device, which rounds every value once. */
#include <math.h>
#include <stdio.h>

#include "graph/text.h"
#include "device/testing.h"

static const char net[] =
	"input x f32 [*,3,9,8]\ninput y i32 [*]\nparam a f32 [16,3,3,3] zeros\nparam b f32 [32,16,3,3] "
	"zeros\nparam c f32 [32,32,3,3] zeros\n"
	"param s f32 [32,16,1,1] zeros\nparam d f32 [48,32,3,3] zeros\nparam w f32 [192,5] zeros\n"
	"%0 = conv2d x a sh=1 sw=1 ph=1 pw=1\n%1 = act %0 act=relu\n%2 = conv2d %1 b sh=2 sw=2 ph=1 "
	"pw=1\n%3 = act %2 act=tanh\n"
	"%4 = conv2d %3 c sh=1 sw=1 ph=1 pw=1\n%5 = conv2d %1 s sh=2 sw=2\n%6 = add %4 %5\n%7 = act %6 "
	"act=relu\n%8 = conv2d %7 d sh=1 sw=1 ph=1 pw=1\n"
	"%9 = maxpool2d %8 kh=2 kw=2 sh=2 sw=2\n%10 = reshape %9 d0=-1 d1=192\n%11 = matmul %10 "
	"w\n%12,%13,%14 = softmax_xent %11 y\n%15 = sum64 %12\n"
	"output loss %15\n";

static void make(struct hd_stage *stage, bool blocked, const char *kind)
{
	struct hd_device *device = hd_stage_device(kind, 2);
	struct hd_diag diag = { "" };

	memset(stage, 0, sizeof *stage);
	hd_arena_init(&stage->arena, 0);
	hd_graph_init(&stage->graph, &stage->arena);
	CHECK(hd_graph_parse(&stage->graph, "net", net, strlen(net), &diag) == HD_OK, "%s", diag.text);
	if (blocked)
		CHECK(hd_graph_block(&stage->graph, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_graph_autodiff(&stage->graph, &diag) == HD_OK, "%s", diag.text);
	hd_stage_set(stage, &(uint64_t){ 3 }, 1, 7);
	hd_stage_load(stage, device);
	hd_stage_run(stage, device, HD_RUN_F);
	hd_stage_run(stage, device, HD_RUN_B);
	hd_stage_join(stage);
	hd_device_destroy(device);
}

static void near(const struct hd_stage *plain, const struct hd_stage *blocked, double eps)
{
	for (uint32_t p = 0; p < plain->layout.nparams; p++) {
		const float *want = plain->grad + plain->layout.at[p],
			*got = blocked->grad + blocked->layout.at[p];
		double peak = 0;
		for (uint64_t e = 0; e < plain->layout.len[p]; e++)
			peak = fmax(peak, fabs((double)want[e]));
		CHECK(peak > 0, "parameter %u has no gradient", p);
		for (uint64_t e = 0; e < plain->layout.len[p]; e++)
			CHECK(fabs((double)want[e] - (double)got[e]) <= eps * peak,
				"parameter %u, element %llu: %.9g, not %.9g", p,
				(unsigned long long)e, (double)got[e], (double)want[e]);
	}
}

/* Each node rounds once: 32 roundings at most lie between a parameter and its gradient. */
static void losses_and_gradients_in_blocks_are_those_of_the_plain_graph(void **state)
{
	struct hd_stage plain, blocked;
	(void)state;

	make(&plain, false, "reference");
	make(&blocked, true, "reference");
	assert_true(blocked.graph.nnodes > plain.graph.nnodes);
	near(&plain, &blocked, 0x1p-24 * 32);
	hd_stage_finish(&blocked);
	make(&blocked, true, "cpu");
	/* sums of up to 600 terms in f32: their square root more */
	near(&plain, &blocked, 0x1p-24 * 32 * 24);
	hd_stage_finish(&plain);
	hd_stage_finish(&blocked);
}

int main(void)
{
	static const struct CMUnitTest tests[] =
		{ cmocka_unit_test(losses_and_gradients_in_blocks_are_those_of_the_plain_graph) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
