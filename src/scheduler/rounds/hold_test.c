#include <string.h>

#include "scheduler/rounds.h"
#include "tests/check.h"

static const struct hd_sched_type types[] = { { "a", 2, 0, 0 }, { "b", 2, 0, 0 } };
static const double both[] = { 1, 1 }, second[] = { 1, 5 };

static struct hd_rounds *two_jobs(void)
{
	const struct hd_rounds_setting set = { .fidelity = HD_FIDELITY_EXACT, .round_s = 10, .kappa = -1 };
	struct hd_rounds *r = NULL;

	assert_int_equal(hd_rounds_create(&r, &set, 2, types, NULL, NULL), HD_OK);
	for (uint64_t id = 1; id <= 2; id++)
		assert_int_equal(hd_rounds_arrive(r, &(struct hd_sched_job){ .id = id, .scale = 1,
			.rate = both }, 1, NULL), HD_OK);
	return r;
}

static void adopt(struct hd_rounds *r, uint32_t type_of_1, uint32_t type_of_2)
{
	const struct hd_sched_job jobs[] = { { .id = 1, .scale = 1, .rate = both },
		{ .id = 2, .scale = 1, .rate = both } };
	const struct hd_sched_state state = { .ntypes = 2, .njobs = 2, .types = types, .jobs = jobs };
	const struct hd_shape shape[] = { { .nmembers = 1, .nneeds = 1, .member = { 0 }, .rate = { 1 },
		.need = { { type_of_1, 1 } } },
		{ .nmembers = 1, .nneeds = 1, .member = { 1 }, .rate = { 1 }, .need = { { type_of_2, 1 } } } };
	const double x[] = { 1, 1 };

	assert_int_equal(hd_rounds_adopt(r, 0, &state, &(struct hd_shares){ .nshapes = 2, .shape = shape,
		.x = x }, NULL), HD_OK);
}

static void who_held_a_device_before_keeps_it(void **state)
{
	struct hd_round round;
	(void)state;

	struct hd_rounds *r = two_jobs();
	const uint32_t one = 3, two = 2;
	assert_int_equal(hd_rounds_hold(r, 1, &one, 1, NULL), HD_OK);
	assert_int_equal(hd_rounds_hold(r, 2, &two, 1, NULL), HD_OK);
	adopt(r, 1, 1);
	assert_int_equal(hd_rounds_next(r, &round, NULL), HD_OK);
	assert_int_equal(round.nruns, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct hd_round_run *run = &round.run[i];
		CHECK(run->kind == HD_RUN_SAME && round.device[run->first] == (run->id[0] == 1 ? 3 : 2),
			"job %llu on %u", (unsigned long long)run->id[0],
			round.device[run->first]);
	}
	hd_rounds_destroy(r);
}

static void a_hold_that_cannot_be_is_refused(void **state)
{
	const uint32_t far = 4, one = 0, all[] = { 0, 1, 2, 3 };
	(void)state;

	struct hd_rounds *r = two_jobs();
	assert_int_equal(hd_rounds_hold(r, 1, &far, 1, NULL), HD_E_INVAL);
	assert_int_equal(hd_rounds_hold(r, 9, &one, 1, NULL), HD_E_INVAL);
	assert_int_equal(hd_rounds_hold(r, 1, all, 4, NULL), HD_OK);
	assert_int_equal(hd_rounds_hold(r, 1, &one, 1, NULL), HD_E_INVAL);
	assert_int_equal(hd_rounds_hold(r, 2, &one, 1, NULL), HD_E_INVAL);
	hd_rounds_destroy(r);
}

/* Spare devices go by speed: what was measured since counts. */
static void a_rate_that_was_measured_counts_from_then_on(void **state)
{
	struct hd_round round;
	(void)state;

	for (int measured = 0; measured < 2; measured++) {
		struct hd_rounds *r = two_jobs();
		const struct hd_sched_state empty = { .ntypes = 2, .types = types };
		assert_int_equal(hd_rounds_adopt(r, 0, &empty,
			&(struct hd_shares){ .work_conserving = true }, NULL), HD_OK);
		if (measured)
			hd_rounds_rate(r, 1, second);
		assert_int_equal(hd_rounds_next(r, &round, NULL), HD_OK);
		for (uint32_t i = 0; i < round.nruns; i++)
			if (round.run[i].id[0] == 1)
				CHECK(round.run[i].need[0].type == (uint32_t)measured &&
					round.run[i].rate[0] == (measured ? 5 : 1), "type %u at %g",
					round.run[i].need[0].type, round.run[i].rate[0]);
		hd_rounds_destroy(r);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_held_a_device_before_keeps_it),
		cmocka_unit_test(a_hold_that_cannot_be_is_refused),
		cmocka_unit_test(a_rate_that_was_measured_counts_from_then_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
