#include "run/stage_drift.h"

#include "base/philox.h"
#include "tests/check.h"

/* Times that are made up, with noise by a seed. */

static struct hd_arena arena;
static struct hd_stage_drift drift;
static double speed[3];
static const double expected[3] = { 100, 200, 50 };

static int begin(void **state)
{
	struct hd_diag diag = { "" };

	(void)state;
	hd_arena_init(&arena, 0);
	CHECK(hd_stage_drift_init(&drift, 3, expected, &arena, &diag) == HD_OK, "%s", diag.text);
	return 0;
}

static int end(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	return 0;
}

/* Steps until ranks drift; 0: they do not. */
static uint32_t steps(const double slow[3], double noise, uint32_t most)
{
	for (uint32_t i = 0; i < most; i++) {
		const uint32_t counter[4] = { i };
		const struct hd_philox drawn = hd_philox(counter, hd_philox_key(7, HD_RNG_NOISE));
		double busy[3];
		for (int r = 0; r < 3; r++)
			busy[r] = expected[r] * slow[r] * (1 + noise * (double)hd_uniform(drawn.word[r]));
		if (hd_stage_drift_step(&drift, busy, speed))
			return i + 1;
	}
	return 0;
}

static void a_rank_that_slows_down_is_found_in_a_window(void **state)
{
	static const double slow[3] = { 1, 2, 1 };

	(void)state;
	assert_int_equal(steps(slow, 0.05, 100), HD_STAGE_DRIFT_STEPS);
	CHECK(speed[0] > 0.95 && speed[0] <= 1 && speed[1] > 0.475 && speed[1] <= 0.5 && speed[2] > 0.95,
		"%g %g %g", speed[0], speed[1], speed[2]);
}

static void what_slows_all_alike_is_no_drift(void **state)
{
	static const double alike[3] = { 3, 3, 3 }, little[3] = { 1, 1.1, 1.05 };

	(void)state;
	assert_int_equal(steps(alike, 0.05, 320), 0);
	assert_int_equal(steps(little, 0.0, 320), 0);
}

/* Some steps of a window are much longer, as when another program has the core: fewer than half say
 * nothing. */
static void some_steps_that_are_disturbed_say_nothing(void **state)
{
	static const double even[3] = { 1, 1, 1 }, once[3] = { 1, 9, 1 };

	(void)state;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(steps(once, 0, HD_STAGE_DRIFT_STEPS / 2 - 1), 0);
		assert_int_equal(steps(even, 0, HD_STAGE_DRIFT_STEPS / 2 + 1), 0);
	}
	assert_int_equal(steps(once, 0, HD_STAGE_DRIFT_STEPS), HD_STAGE_DRIFT_STEPS);
}

static void in_vain_it_waits_twice_as_long(void **state)
{
	static const double slow[3] = { 1, 2, 1 };

	(void)state;
	for (uint32_t want = HD_STAGE_DRIFT_STEPS; want < HD_STAGE_DRIFT_MOST; want *= 2) {
		assert_int_equal(steps(slow, 0.05, 1000), want);
		hd_stage_drift_vain(&drift);
	}
	assert_int_equal(steps(slow, 0.05, 1000), HD_STAGE_DRIFT_MOST);
	hd_stage_drift_vain(&drift);
	assert_int_equal(steps(slow, 0.05, 1000), HD_STAGE_DRIFT_MOST);
}

static void a_rank_of_which_nothing_is_known_is_not_judged(void **state)
{
	static const double none[3] = { 1, 0, 1 };

	(void)state;
	assert_int_equal(steps(none, 0, 100), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_rank_that_slows_down_is_found_in_a_window, begin, end),
		cmocka_unit_test_setup_teardown(what_slows_all_alike_is_no_drift, begin, end),
		cmocka_unit_test_setup_teardown(some_steps_that_are_disturbed_say_nothing, begin, end),
		cmocka_unit_test_setup_teardown(in_vain_it_waits_twice_as_long, begin, end),
		cmocka_unit_test_setup_teardown(a_rank_of_which_nothing_is_known_is_not_judged, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
