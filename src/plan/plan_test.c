#include "plan/plan.h"

#include "tests/planning.h"
#include "tests/check.h"

static void every_virtual_node_is_loaded_forwarded_and_backwarded_by_its_rank(void **state)
{
	(void)state;
	for (uint32_t nvns = 1; nvns <= 20; nvns++)
		for (uint32_t nranks = 1; nranks <= 24; nranks++) {
			struct hd_plan_job job = { .nvns = nvns, .nchunks = nvns * 3, .nstages = 1 };
			struct hd_plan p;
			uint32_t next = 0, least = nvns / nranks, most = least + (nvns % nranks != 0),
				before = most;
			assert_int_equal(hd_plan_data(&p, &job, nranks, NULL, &arena, NULL), HD_OK);
			for (uint32_t r = 0; r < nranks; r++) {
				uint32_t n = (p.list[r].len - 3) / 3;
				CHECK(n >= least && n <= before, "V=%u n=%u: rank %u has %u", nvns, nranks, r,
					n);
				before = n;
				for (uint32_t i = 0; i < n; i++, next++) {
					const struct hd_ins *at = &p.list[r].at[3 * i];
					assert_int_equal(p.map[next], r);
					assert_true(at[0].op == HD_INS_LD && at[1].op == HD_INS_F &&
						at[2].op == HD_INS_B);
					assert_true(at[0].vn == next && at[1].vn == next && at[2].vn == next);
				}
				const struct hd_ins *end = &p.list[r].at[3 * n];
				assert_true(end[0].op == HD_INS_RED && end[1].op == HD_INS_NORM &&
					end[2].op == HD_INS_STEP);
				assert_int_equal(end[2].ver, HD_VER_RULE);
			}
			assert_int_equal(next, nvns);
			for (uint32_t c = 0; c < job.nchunks; c++)
				assert_int_equal(p.owner[c], c * nranks / job.nchunks);
			hd_arena_reset(&arena);
		}
}

static void counts_and_maps_are_taken_as_given(void **state)
{
	struct hd_plan_job job = { .nvns = 5, .nchunks = 4, .nstages = 1 };
	struct hd_plan p, q;
	static const uint32_t counts[] = { 0, 3, 2 }, even[] = { 1, 1, 1, 2, 2 }, odd[] = { 2, 0, 2, 0, 2 };
	struct hd_diag diag = { "" };

	(void)state;
	assert_int_equal(hd_plan_data(&p, &job, 3, counts, &arena, NULL), HD_OK);
	assert_memory_equal(p.map, even, sizeof even);
	assert_int_equal(p.list[0].len, 3);
	assert_int_equal(hd_plan_of_map(&q, &job, 3, even, &arena, NULL), HD_OK);
	assert_true(hd_hash_same(hd_plan_digest(&p), hd_plan_digest(&q)));
	assert_int_equal(hd_plan_of_map(&q, &job, 3, odd, &arena, NULL), HD_OK);
	assert_false(hd_hash_same(hd_plan_digest(&p), hd_plan_digest(&q)));
	assert_int_equal(q.list[2].at[3].vn, 2);
	assert_int_equal(hd_plan_data(&p, &job, 2, counts, &arena, &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "the devices are given 3 virtual nodes, the job has 5");
	assert_int_equal(hd_plan_of_map(&q, &job, 2, odd, &arena, NULL), HD_E_INVAL);
}

static void number_and_cause_are_not_part_of_the_digest(void **state)
{
	struct hd_plan_job job = { .nvns = 5, .nchunks = 4, .nstages = 1 };
	struct hd_plan p;

	(void)state;
	assert_int_equal(hd_plan_data(&p, &job, 2, NULL, &arena, NULL), HD_OK);
	struct hd_hash before = hd_plan_digest(&p);
	p.number = 9;
	p.cause = "2 workers joined";
	assert_true(hd_hash_same(before, hd_plan_digest(&p)));
	p.owner[0] = 1;
	assert_false(hd_hash_same(before, hd_plan_digest(&p)));
}

static void impossible_plans_are_refused(void **state)
{
	struct hd_plan p;
	static const struct { struct hd_plan_job job; uint32_t nranks; } cases[] = {
		{ { .nvns = 4, .nstages = 1 }, 0 }, { { .nvns = 4, .nstages = 1 }, HD_MAX_RANKS + 1 }, { { .nvns = 0, .nstages = 1 }, 1 },
		{ { .nvns = HD_MAX_VNS + 1, .nstages = 1 }, 1 }, { { .nvns = 4, .nstages = 2 }, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		CHECK(hd_plan_data(&p, &cases[i].job, cases[i].nranks, NULL, &arena, NULL) == HD_E_INVAL,
			"case %zu", i);
}

static void no_memory_is_said(void **state)
{
	struct hd_plan_job job = { .nvns = 40, .nchunks = 4, .nstages = 1 };
	struct hd_plan p;
	enum hd_err err = HD_E_NOMEM;

	(void)state;
	for (size_t budget = 1; err; budget += 64) {
		struct hd_arena small;
		assert_in_range(budget, 1, 1 << 20);
		hd_arena_init(&small, budget);
		err = hd_plan_data(&p, &job, 3, NULL, &small, NULL);
		CHECK(!err || err == HD_E_NOMEM, "budget %zu", budget);
		hd_arena_finish(&small);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_virtual_node_is_loaded_forwarded_and_backwarded_by_its_rank),
		cmocka_unit_test(counts_and_maps_are_taken_as_given),
		cmocka_unit_test(number_and_cause_are_not_part_of_the_digest),
		cmocka_unit_test(impossible_plans_are_refused),
		cmocka_unit_test(no_memory_is_said),
	};
	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
