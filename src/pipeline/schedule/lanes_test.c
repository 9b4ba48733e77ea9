#include "pipeline/lanes.h"

#include <string.h>

#include "pipeline/staged.h"
#include "tests/planning.h"
#include "tests/check.h"

static void lanes_take_turns_so_that_all_copies_work(void **state)
{
	/* by hand */
	static const struct { uint32_t nstages, copies[3], n, order[6]; } rows[] = {
		{ 2, { 3, 1 }, 3, { 0, 1, 2 } }, { 2, { 1, 2 }, 2, { 0, 1 } },
		{ 2, { 4, 2 }, 4, { 0, 2, 1, 3 } }, { 3, { 1, 6, 3 }, 6, { 0, 2, 4, 1, 3, 5 } },
		{ 3, { 1, 1, 1 }, 1, { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_lanes lanes;
		assert_int_equal(hd_lanes_make(&lanes, rows[i].copies, rows[i].nstages, &arena, NULL), HD_OK);
		CHECK(lanes.n == rows[i].n && !memcmp(lanes.order, rows[i].order,
			lanes.n * sizeof *lanes.order), "row %zu", i);
	}
}

static void copies_that_do_not_divide_one_another_are_refused(void **state)
{
	static const uint32_t odd[] = { 4, 1, 3 }, none[] = { 2, 0 };
	struct hd_lanes lanes = { .n = 77 };
	struct hd_diag diag = { "" };

	(void)state;
	assert_int_equal(hd_lanes_count(odd, 2), 4);
	assert_int_equal(hd_lanes_count(odd, 3), 0);
	assert_int_equal(hd_lanes_count(none, 2), 0);
	assert_int_equal(hd_lanes_make(&lanes, odd, 3, &arena, &diag), HD_E_INVAL);
	CHECK(lanes.n == 77 && strstr(diag.text, "neither divides the other"), "%s", diag.text);
}

static void copies_with_neighbouring_virtual_nodes_take_turns(void **state)
{
	static const uint32_t copies[] = { 2, 1 };
	const struct hd_schedule_ask ask = { .name = "1f1b-rr", .p = 3, .m = 5, .replicas = copies,
		.nreplicas = 2, .neighbours = true };
	struct hd_schedule s;
	struct hd_text text;

	(void)state;
	assert_int_equal(hd_schedule_make(&s, &ask, &arena, NULL), HD_OK);
	hd_text_init(&text, &arena);
	hd_schedule_print(&s, &text);
	assert_string_equal(text.at,
		"## 1f1b-rr p=3 m=5 stages=2\n0: F0.0 F0.1 B0.0 F0.2 B0.1 B0.2\n1: F0.3 F0.4 B0.3 B0.4\n"
		"2: F1.0 B1.0 F1.3 B1.3 F1.1 B1.1 F1.4 B1.4 F1.2 B1.2\n");
}

static void check_neighbours(const struct hd_plan *plan, uint32_t m)
{
	for (uint32_t r = 0; r < plan->nranks; r++) {
		uint32_t first = UINT32_MAX, end = 0, n = 0;
		for (uint32_t i = 0; i < plan->list[r].len; i++) {
			const struct hd_ins *ins = &plan->list[r].at[i];
			if (ins->op != HD_INS_F)
				continue;
			first = ins->vn < first ? ins->vn : first;
			end = ins->vn + 1 > end ? ins->vn + 1 : end;
			n++;
		}
		CHECK(n && end - first == n && end <= m, "rank %u: %u from %u to %u", r, n, first, end);
	}
}

/* All numbers of copies up to 4 of two to four stages that divide one another, with as many virtual nodes as
 * lanes and some more: the checker, which knows nothing of lanes, accepts them. */
static void no_numbers_of_copies_wait_in_a_circle(void **state)
{
	static const uint32_t cuts[] = { 0, 3, 5, 9 };
	uint32_t nplans = 0;

	(void)state;
	for (uint32_t nstages = 2; nstages <= 4; nstages++)
		for (uint32_t code = 0; code < 1u << 2 * nstages; code++) {
			uint32_t copies[4], ranks = 0;
			for (uint32_t s = 0; s < nstages; s++)
				ranks += copies[s] = 1 + (code >> 2 * s & 3);
			const uint32_t lanes = hd_lanes_count(copies, nstages);
			if (!lanes || ranks > 10)
				continue;
			for (uint32_t m = lanes; m <= lanes + 7; m += m > lanes + 1 ? 3 : 1) {
				const struct hd_plan_job job = { .nvns = m, .nchunks = 5, .nstages = 1 };
				const struct hd_schedule_ask ask = { .name = "1f1b-rr", .p = ranks, .m = m,
					.replicas = copies, .nreplicas = nstages, .neighbours = true };
				struct hd_schedule s;
				struct hd_plan plan;
				struct hd_diag diag = { "" };
				enum hd_err err = hd_schedule_make(&s, &ask, &arena, &diag);
				err = err ? err : hd_plan_staged(&plan, &job, &s, 1, cuts, HD_KEEPS_ALL,
					&arena, &diag);
				CHECK(!err, "%u stages, copies %x, %u virtual nodes: %s", nstages, code, m,
					diag.text);
				check_neighbours(&plan, m);
				nplans++;
			}
			hd_arena_reset(&arena);
		}
	assert_true(nplans > 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes_take_turns_so_that_all_copies_work),
		cmocka_unit_test(copies_that_do_not_divide_one_another_are_refused),
		cmocka_unit_test(copies_with_neighbouring_virtual_nodes_take_turns),
		cmocka_unit_test(no_numbers_of_copies_wait_in_a_circle),
	};

	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
