#include "spot/saving.h"

#include <math.h>
#include <string.h>

#include "spot/value.h"
#include "tests/check.h"

/* What checkpoints and losses cost in an hour: by the interval, from the definition and not the formula. */
static double lost_s(double every_s, double cost_s, double back_h)
{
	return cost_s * 3600 / every_s + back_h * every_s / 2;
}

static void an_interval_loses_less_than_any_other(void **state)
{
	static const struct { double cost_s, back_h; } row[] = { { 0.2, 6 }, { 2, 6 }, { 2, 60 },
		{ 0.05, 600 }, { 10, 1 }, { 0.5, 2000 } };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_saving s;
		hd_saving_begin(&s);
		hd_saving_saved(&s, row[i].cost_s);
		s.every_ms = UINT32_MAX;          /* far from all */
		assert_true(hd_saving_judge(&s, row[i].back_h));
		const double is_s = (double)s.every_ms * 1e-3,
			least = lost_s(is_s, row[i].cost_s, row[i].back_h);
		for (double other_s = 0.1; other_s < 4000; other_s *= 1.02)
			CHECK(other_s < 4 * row[i].cost_s || other_s < 1 || other_s > 1800 ||
				least <= 1.001 * lost_s(other_s, row[i].cost_s, row[i].back_h),
				"row %zu: %g s is worse than %g s", i, is_s, other_s);
	}
}

static void its_ends_hold_whatever_is_measured(void **state)
{
	static const struct { double cost_s, back_h; uint64_t every_ms; } row[] = {
		{ 1, 0, 1800000 }, { 1, 1e-6, 1800000 }, { 100, 1e6, 400000 }, { 1e-6, 1e6, 1000 },
		{ 1000, 1, 4000000 },
		/* nothing was measured */
		{ 0, 1e6, HD_SAVING_FIRST_MS }, { NAN, 1, HD_SAVING_FIRST_MS },
		{ INFINITY, 1, HD_SAVING_FIRST_MS }, { -1, 1, HD_SAVING_FIRST_MS },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_saving s;
		hd_saving_begin(&s);
		hd_saving_saved(&s, row[i].cost_s);
		const bool other = hd_saving_judge(&s, row[i].back_h);
		assert_int_equal(other, s.every_ms != HD_SAVING_FIRST_MS);
		CHECK(s.every_ms == row[i].every_ms, "row %zu: %llu ms", i, (unsigned long long)s.every_ms);
	}
}

/* It follows a change, and not the noise around it. */
static void small_changes_of_what_is_measured_change_nothing(void **state)
{
	struct hd_saving s;

	(void)state;
	hd_saving_begin(&s);
	hd_saving_saved(&s, 2);
	assert_true(hd_saving_judge(&s, 100));            /* 12 s */
	assert_int_equal(s.every_ms, 12000);
	/* twice the rate is 1/1.41 of the interval */
	assert_false(hd_saving_judge(&s, 150));
	assert_false(hd_saving_judge(&s, 70));
	assert_true(hd_saving_judge(&s, 200));
	assert_int_equal(s.every_ms, 8485);
	assert_false(hd_saving_judge(&s, 200));
	assert_true(hd_saving_judge(&s, 100));
	/* one checkpoint of four times the cost is a quarter of the mean: 2 * 3/4 + 8/4 */
	hd_saving_saved(&s, 8);
	CHECK(fabs(s.cost_s - 3.5) < 1e-12, "%g", s.cost_s);
	assert_true(hd_saving_judge(&s, 100));
	assert_int_equal(s.every_ms, 15875);
}

static void what_is_stored_is_read_back_and_nothing_else(void **state)
{
	static const char *const bad[] = { "", "\n", "42000\n", "42000 1", "42000 1 \n", "42000  1\n",
		"x 1\n",
		"999 1\n", "-42000 1\n", "42000 x\n", "42000 -1\n", "99999999999999999999 1\n",
		"42000 0000000000000000000000000000000000000000000000000000000000001\n" };
	const struct hd_saving was = { .every_ms = 42000, .cost_s = 0.123456 };
	struct hd_saving s = { .every_ms = 7 };
	char text[HD_SAVING_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(!hd_saving_take(&s, bad[i], strlen(bad[i])) && s.every_ms == 7, "%s", bad[i]);
	assert_false(hd_saving_take(&s, "42000\0 1\n", 9));
	const size_t len = hd_saving_put(&was, text);
	assert_true(len == strlen("42000 123456\n") && !memcmp(text, "42000 123456\n", len));
	assert_true(hd_saving_take(&s, text, len) && s.every_ms == was.every_ms &&
		fabs(s.cost_s - was.cost_s) < 1e-12);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interval_loses_less_than_any_other),
		cmocka_unit_test(its_ends_hold_whatever_is_measured),
		cmocka_unit_test(small_changes_of_what_is_measured_change_nothing),
		cmocka_unit_test(what_is_stored_is_read_back_and_nothing_else),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
