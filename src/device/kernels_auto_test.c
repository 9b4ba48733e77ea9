/* kernels_auto_test.c -- what `auto` stands for: laws of the committed table, and of the choice. */
#include "device/kernels_auto.h"

#include <string.h>

#include "graph/autodiff.h"
#include "graph/model.h"
#include "tests/check.h"

static struct hd_arena arena;

static int set_up(void **state) { (void)state; hd_arena_init(&arena, 0); return 0; }
static int tear_down(void **state) { (void)state; hd_arena_finish(&arena); return 0; }

/* A GPT of so many positions: its products of forward and dx are the library's from 128 rows on. */
static void build(struct hd_graph *graph, const char *context)
{
	const struct hd_model_opts opts = { .loss = HD_LOSS_CROSS_ENTROPY, .normalize = HD_NORMALIZE_SAMPLE };
	const struct hd_model_arg arg[] = { { "layers", "1" }, { "width", "64" }, { "heads", "2" },
		{ "vocab", "256" }, { "context", context } };
	struct hd_diag diag = { "" };

	hd_graph_init(graph, &arena);
	CHECK(!hd_model_build(graph, "gpt", arg, 5, &opts, &diag), "%s", diag.text);
	CHECK(!hd_graph_autodiff(graph, &diag), "%s", diag.text);
}

static enum hd_kernels choose(const struct hd_kernels_rate *rate, uint32_t n, const char *cpu,
	const char *context)
{
	const struct hd_kernels_rates rates = { rate, n };
	struct hd_graph graph;

	build(&graph, context);
	return hd_kernels_auto(&rates, cpu, &graph, 1);
}

static void the_table_has_sane_rates_and_no_row_twice(void **state)
{
	const struct hd_kernels_rates *t = &hd_kernels_measured;

	(void)state;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct hd_kernels_rate *r = &t->at[i];
		CHECK(r->mflop > 0 && r->own > 1 && r->own < 1000 && r->library > 1 && r->library < 1000,
			"row %u", i);
		CHECK(strcmp(r->cpu, "other") != 0, "row %u", i);
		for (uint32_t k = 0; k < i; k++)
			CHECK(strcmp(t->at[k].cpu, r->cpu) != 0 || t->at[k].op != r->op ||
				t->at[k].mflop != r->mflop, "rows %u and %u", k, i);
	}
}

static void own_kernels_are_taken_within_five_percent(void **state)
{
	const struct hd_kernels_rate even[] = { { "x", HD_OP_MATMUL, 1, 100, 104.9 } };
	const struct hd_kernels_rate slow[] = { { "x", HD_OP_MATMUL, 1, 100, 105.1 } };

	(void)state;
	assert_int_equal(choose(even, 1, "x", "128"), HD_KERNELS_PORTABLE);
	assert_int_equal(choose(slow, 1, "x", "128"), HD_KERNELS_LIBRARY);
}

static void an_unknown_processor_and_an_op_without_rows_have_own_kernels(void **state)
{
	const struct hd_kernels_rate slow[] = { { "x", HD_OP_MATMUL, 1, 100, 200 } };
	const struct hd_kernels_rate conv[] = { { "x", HD_OP_CONV2D, 1, 100, 200 } };

	(void)state;
	assert_int_equal(choose(slow, 1, "y", "128"), HD_KERNELS_PORTABLE);
	assert_int_equal(choose(conv, 1, "x", "128"), HD_KERNELS_PORTABLE);
	assert_int_equal(choose(NULL, 0, "other", "128"), HD_KERNELS_PORTABLE);
}

/* Below 128 rows the library's set has our products too: however bad ours are, nothing would change. */
static void calls_that_both_sets_compute_alike_do_not_count(void **state)
{
	const struct hd_kernels_rate slow[] = { { "x", HD_OP_MATMUL, 1, 100, 200 } };

	(void)state;
	assert_int_equal(choose(slow, 1, "x", "127"), HD_KERNELS_PORTABLE);
	assert_int_equal(choose(slow, 1, "x", "128"), HD_KERNELS_LIBRARY);
}

/* Products of this model have 1 and more million operations, one 4.2: rows far away count for none. */
static void the_nearest_row_counts(void **state)
{
	const struct hd_kernels_rate rate[] = { { "x", HD_OP_MATMUL, 1e-3, 100, 900 },
		{ "x", HD_OP_MATMUL, 1, 100, 100 }, { "x", HD_OP_MATMUL, 1e6, 100, 900 } };
	const struct hd_kernels_rate tie[] = { { "x", HD_OP_MATMUL, 1, 100, 900 },
		{ "x", HD_OP_MATMUL, 1, 100, 100 } };

	(void)state;
	assert_int_equal(choose(rate, 3, "x", "128"), HD_KERNELS_PORTABLE);
	assert_int_equal(choose(tie, 2, "x", "128"), HD_KERNELS_LIBRARY);
}

static void this_processor_has_a_type(void **state)
{
	(void)state;
	assert_true(hd_cpu_type() == hd_cpu_type() && *hd_cpu_type());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_has_sane_rates_and_no_row_twice),
		cmocka_unit_test(own_kernels_are_taken_within_five_percent),
		cmocka_unit_test(an_unknown_processor_and_an_op_without_rows_have_own_kernels),
		cmocka_unit_test(calls_that_both_sets_compute_alike_do_not_count),
		cmocka_unit_test(the_nearest_row_counts),
		cmocka_unit_test(this_processor_has_a_type),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
