/* tiles_test.c -- tiles of calls, of waves and of folds, against grids worked out by hand. */
#include "device/tiles.h"

#include "graph/autodiff.h"
#include "graph/model.h"
#include "tests/check.h"

static struct hd_arena arena;

static int set_up(void **state) { (void)state; hd_arena_init(&arena, 0); return 0; }
static int tear_down(void **state) { (void)state; hd_arena_finish(&arena); return 0; }

/* Of 32 rows of 784 inputs to 1024 and 1024 wide, 8 parts: forward 256 x 1024 results, in panels of 256 x
 * 128; gradient 1024 x 1024, in panels of at most 336 x 256. */
static void a_wave_has_more_tiles_and_folds_have_their_own(void **state)
{
	const struct hd_model_opts opts = { .loss = HD_LOSS_CROSS_ENTROPY, .normalize = HD_NORMALIZE_SAMPLE };
	const struct hd_model_arg arg[] = { { "input", "[1, 28, 28]" }, { "hidden", "[1024, 1024]" } };
	const uint64_t rows = 32;
	struct hd_program program;
	struct hd_layout layout;
	struct hd_graph graph;
	struct hd_diag diag = { "" };
	uint32_t seen = 0;

	(void)state;
	hd_graph_init(&graph, &arena);
	CHECK(!hd_model_build(&graph, "mlp", arg, 2, &opts, &diag), "%s", diag.text);
	CHECK(!hd_graph_autodiff(&graph, &diag), "%s", diag.text);
	CHECK(!hd_layout_make(&layout, &graph, &arena, &diag), "%s", diag.text);
	CHECK(!hd_program_make_waves(&program, &graph, &layout, true, &rows, 1, 8, &arena, &diag), "%s",
		diag.text);
	for (uint32_t i = 0; i < graph.nnodes; i++) {
		const struct hd_call *call = &program.calls[0][i];
		uint32_t one = hd_program_tiles(&program, i, 1), all = hd_program_tiles(&program, i, 8);
		if (hd_ops[call->op].class == HD_OP_VIEW)
			CHECK(one == 0 && all == 0, "node %u", i);
		if (call->op != HD_OP_MATMUL || hd_cols(&call->out[0]) != 1024 ||
			hd_rows(&call->out[0]) < 32 || hd_cols(&call->in[0]) < 100)
			continue;         /* a product with the few classes is few tiles */
		seen |= call->attr.i[0] ? 1 : 2;
		CHECK(all >= 8 && all >= one && one >= 1, "node %u: %u tiles, %u of 8 parts", i, one,
			all);
		CHECK(!call->attr.i[0] || all == one, "node %u: a fold has the grid of its gradient", i);
	}
	assert_int_equal(seen, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wave_has_more_tiles_and_folds_have_their_own),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
