#include "engine/times.h"

#include "tests/check.h"

static void an_interval_is_the_least_power_of_two_that_costs_little(void **state)
{
	static const struct { double cost_ms, step_ms; uint64_t want; } cases[] = {
		{ 0, 10, 1 }, { 0.1, 10, 1 }, { 0.11, 10, 2 }, { 0.3, 10, 4 }, { 0.4, 10, 4 }, { 7, 10, 128 }, { 1, 1, 128 }, { 1e-9, 0, (uint64_t)1 << 40 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t got = hd_times_interval(cases[i].cost_ms, cases[i].step_ms, 100);
		CHECK(got == cases[i].want, "%g ms of %g: %llu", cases[i].cost_ms, cases[i].step_ms,
			(unsigned long long)got);
	}
}

static void quantiles_are_those_of_the_last_values(void **state)
{
	struct hd_times times = { .n = 0 };

	(void)state;
	assert_true(hd_times_quantile(&times, 0.5) == 0);
	for (int i = 0; i < 3 * HD_TIMES_CAP; i++)
		hd_times_add(&times, i);
	assert_true(hd_times_quantile(&times, 0) == 2 * HD_TIMES_CAP);
	assert_true(hd_times_quantile(&times, 0.5) == 2 * HD_TIMES_CAP + HD_TIMES_CAP / 2);
	assert_true(hd_times_quantile(&times, 1) == 3 * HD_TIMES_CAP - 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interval_is_the_least_power_of_two_that_costs_little),
		cmocka_unit_test(quantiles_are_those_of_the_last_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
