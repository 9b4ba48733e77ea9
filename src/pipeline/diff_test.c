#include "pipeline/diff.h"

#include "pipeline/generate.h"
#include "tests/planning.h"
#include "tests/check.h"

static struct hd_plan_layout layout(const char *text)
{
	struct hd_schedule s = hd_parsed_schedule(text);
	struct hd_plan_layout l = { 0 };

	assert_int_equal(hd_layout_of_schedule(&l, &s, &arena, NULL), HD_OK);
	return l;
}

static struct hd_plan_diff compare(const struct hd_plan_layout *a, const struct hd_plan_layout *b,
	const struct hd_stage_costs *costs)
{
	struct hd_plan_diff d = { 0 };

	assert_int_equal(hd_plan_diff(&d, a, b, costs, &arena, NULL), HD_OK);
	return d;
}

static void a_schedule_equals_itself(void **state)
{
	(void)state;
	for (const struct hd_schedule_kind *k = hd_schedule_kinds; k->name; k++) {
		struct hd_schedule s;
		struct hd_plan_layout l;
		assert_int_equal(hd_schedule_make(&s, &(struct hd_schedule_ask){ .name = k->name, .p = 3,
			.m = 7 }, &arena, NULL), HD_OK);
		assert_int_equal(hd_layout_of_schedule(&l, &s, &arena, NULL), HD_OK);
		CHECK(compare(&l, &l, NULL).same, "%s", k->name);
	}
}

static void a_stage_that_changes_ranks_takes_its_bytes_along(void **state)
{
	struct hd_plan_layout a =
		layout("0: F0.0 F0.1 B0.0 B0.1\n1: F1.0 B1.0 F1.1 B1.1\n2: F2.0 B2.0 F2.1 B2.1\n");
	struct hd_plan_layout b =
		layout("0: F0.0 F0.1 B0.0 B0.1\n1: F2.0 B2.0 F2.1 B2.1\n2: F1.0 B1.0 F1.1 B1.1\n");
	struct hd_stage_cost cost[] = { { .param = 1, .opt = 2 }, { .param = 10, .opt = 20 },
		{ .param = 100, .opt = 200 } };
	struct hd_stage_costs costs = { .nstages = 3, .stage = cost };
	struct hd_plan_diff d = compare(&a, &b, &costs);

	(void)state;
	assert_false(d.same);
	assert_int_equal(d.nstages, 2);
	assert_int_equal(d.stage[0].stage, 1);
	assert_int_equal(d.stage[0].from[0], 1);
	assert_int_equal(d.stage[0].to[0], 2);
	assert_int_equal(d.stage[0].bytes, 30);
	assert_int_equal(d.bytes, 330);
	assert_int_equal(d.nvns, 0);
	assert_int_equal(compare(&a, &b, NULL).bytes, -1);
	assert_int_equal(d.nlists, 2);
	assert_int_equal(d.list[0].rank, 1);
	assert_int_equal(d.list[0].removed, 4);
	assert_int_equal(d.list[0].added, 4);
}

/* Replicas trade virtual nodes: 2 and 3 go from rank 0 to rank 1 in one row; rank 1 held the stage before. */
static void virtual_nodes_move_between_copies_in_runs(void **state)
{
	struct hd_plan_layout a = layout("0: F0.0 B0.0 F0.1 B0.1 F0.2 B0.2 F0.3 B0.3\n1: F0.4 B0.4\n");
	struct hd_plan_layout b = layout("0: F0.0 B0.0 F0.1 B0.1\n1: F0.2 B0.2 F0.3 B0.3 F0.4 B0.4\n");
	struct hd_plan_diff d = compare(&a, &b, NULL);

	(void)state;
	assert_int_equal(d.nstages, 0);
	assert_int_equal(d.nvns, 1);
	assert_memory_equal(&d.vn[0], (&(struct hd_vn_move){ 0, 2, 2, 0, 1 }), sizeof d.vn[0]);
	assert_int_equal(d.vns_moved, 2);
	assert_int_equal(d.removed, 4);
	assert_int_equal(d.added, 4);
}

static void a_stage_that_gains_a_copy_sends_it_once(void **state)
{
	struct hd_plan_layout a = layout("0: F0.0 B0.0 F0.1 B0.1\n1: F1.0 B1.0 F1.1 B1.1\n2:\n");
	struct hd_plan_layout b = layout("0: F0.0 B0.0 F0.1 B0.1\n1: F1.0 B1.0\n2: F1.1 B1.1\n");
	struct hd_stage_cost cost[] = { { .param = 1 }, { .param = 10, .opt = 5 } };
	struct hd_plan_diff d = compare(&a, &b, &(struct hd_stage_costs){ .nstages = 2, .stage = cost });

	(void)state;
	assert_int_equal(d.nstages, 1);
	assert_int_equal(d.stage[0].nto, 2);
	assert_int_equal(d.bytes, 15);
	assert_int_equal(d.nvns, 1);
	assert_memory_equal(&d.vn[0], (&(struct hd_vn_move){ 1, 1, 1, 1, 2 }), sizeof d.vn[0]);
}

/* Only what changed counts: one instruction in the middle of a list. */
static void lists_differ_by_what_is_removed_and_added(void **state)
{
	struct hd_plan_layout a = layout("0: F0.0 F0.1 F0.2 B0.0 B0.1 B0.2\n"),
		b = layout("0: F0.0 F0.1 B0.0 F0.2 B0.1 B0.2\n");
	struct hd_plan_diff d = compare(&a, &b, NULL);

	(void)state;
	assert_int_equal(d.nlists, 1);
	assert_int_equal(d.list[0].at, 2);
	assert_int_equal(d.list[0].removed, 1);
	assert_int_equal(d.list[0].added, 1);
	assert_int_equal(d.list[0].first_removed.vn, 2);
	assert_int_equal(d.list[0].first_added.op, HD_INS_B);
}

static void plans_move_virtual_nodes_chunks_and_workers(void **state)
{
	struct hd_plan_job job = { .nvns = 8, .nchunks = 6, .nstages = 1, .wave = 1 };
	struct hd_plan a, b;
	struct hd_plan_layout la, lb;

	(void)state;
	assert_int_equal(hd_plan_data(&a, &job, 2, NULL, &arena, NULL), HD_OK);
	assert_int_equal(hd_plan_data(&b, &job, 2, (const uint32_t[]){ 6, 2 }, &arena, NULL), HD_OK);
	b.owner[3] = 1 - a.owner[3];
	b.worker[1] = (uint16_t)(a.worker[1] + 3);
	assert_int_equal(hd_layout_of_plan(&la, &a, &arena, NULL), HD_OK);
	assert_int_equal(hd_layout_of_plan(&lb, &b, &arena, NULL), HD_OK);
	assert_true(compare(&la, &la, NULL).same);
	struct hd_plan_diff d = compare(&la, &lb, NULL);
	assert_int_equal(d.nvns, 1);
	assert_memory_equal(&d.vn[0], (&(struct hd_vn_move){ 0, 4, 2, 1, 0 }), sizeof d.vn[0]);
	assert_int_equal(d.nranks, 1);
	assert_int_equal(d.rank[0].to, a.worker[1] + 3);
	uint32_t chunks = 0;
	for (uint32_t c = 0; c < 6; c++)
		chunks += a.owner[c] != b.owner[c];
	assert_int_equal(d.chunks_moved, chunks);
	assert_true(chunks >= 1);
}

static void other_sizes_are_differences(void **state)
{
	struct hd_plan_layout a = layout("0: F0.0 B0.0\n"), b = layout("0: F0.0 B0.0 F0.1 B0.1\n"),
		c = layout("0: F0.0 B0.0\n1: F1.0 B1.0\n");

	(void)state;
	assert_false(compare(&a, &b, NULL).same);
	assert_false(compare(&a, &c, NULL).same);
	assert_int_equal(compare(&a, &c, NULL).nlists, 1);
	assert_int_equal(hd_plan_diff(&(struct hd_plan_diff){ 0 }, &a, &c,
		&(struct hd_stage_costs){ .nstages = 1 }, &arena, NULL), HD_E_INVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_schedule_equals_itself),
		cmocka_unit_test(a_stage_that_changes_ranks_takes_its_bytes_along),
		cmocka_unit_test(virtual_nodes_move_between_copies_in_runs),
		cmocka_unit_test(a_stage_that_gains_a_copy_sends_it_once),
		cmocka_unit_test(lists_differ_by_what_is_removed_and_added),
		cmocka_unit_test(plans_move_virtual_nodes_chunks_and_workers),
		cmocka_unit_test(other_sizes_are_differences),
	};
	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
