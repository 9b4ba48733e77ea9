#include "base/bits.h"

#include "tests/check.h"

static void logarithms_bracket_every_number(void **state)
{
	(void)state;
	for (uint64_t n = 1; n < 5000; n++) {
		uint32_t down = hd_floor_log2(n), up = hd_ceil_log2(n);
		CHECK(UINT64_C(1) << down <= n && n < UINT64_C(2) << down, "%d", (int)n);
		CHECK(UINT64_C(1) << up >= n && (up == 0 || UINT64_C(1) << (up - 1) < n), "%d", (int)n);
		CHECK(hd_is_pow2(n) == (up == down), "%d", (int)n);
	}
	assert_int_equal(hd_floor_log2(UINT64_MAX), 63);
	assert_int_equal(hd_ceil_log2(UINT64_MAX), 64);
	assert_false(hd_is_pow2(0));
}

static void the_tree_splits_at_the_largest_power_below(void **state)
{
	(void)state;
	for (uint64_t n = 2, want = 1; n < 5000; n++) {
		want = want * 2 < n ? want * 2 : want;
		CHECK(hd_tree_split(n) == want, "%d", (int)n);
	}
}

static void quotients_and_multiples_round_up(void **state)
{
	(void)state;
	for (uint64_t n = 0; n < 200; n++)
		for (uint64_t by = 1; by < 20; by++) {
			uint64_t want = 0;
			while (want * by < n)
				want++;
			CHECK(hd_ceil_div(n, by) == want && hd_round_up(n, by) == want * by, "%d by %d",
				(int)n, (int)by);
		}
	assert_int_equal(hd_ceil_div(UINT64_MAX, 2), UINT64_C(1) << 63);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(logarithms_bracket_every_number),
		cmocka_unit_test(the_tree_splits_at_the_largest_power_below),
		cmocka_unit_test(quotients_and_multiples_round_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
