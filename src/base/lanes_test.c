#include "base/lanes.h"

#include <math.h>
#include <string.h>

#include "base/philox.h"
#include "tests/check.h"

enum { MOST = 300 };

static float values[MOST];

/* Magnitudes from 2^-20 to 2^20: another order gives other bits almost always. */
static int fill(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < MOST; i++) {
		struct hd_philox drawn = hd_philox((uint32_t[4]){ i, 0, 0, 0 }, 5);
		values[i] = ldexpf(hd_uniform(drawn.word[0]) - 0.5f, (int)(drawn.word[1] % 41) - 20);
	}
	return 0;
}

/* The canonical tree level by level, as its definition has it: neighbours are added, an
 * odd one out is promoted. */
static double tree_by_levels(const double *at, size_t n)
{
	double level[MOST];

	memcpy(level, at, n * sizeof *at);
	for (; n > 1; n = (n + 1) / 2)
		for (size_t i = 0; i < n; i += 2)
			level[i / 2] = i + 1 < n ? level[i] + level[i + 1] : level[i];
	return n ? level[0] : 0.0;
}

static void the_tree_is_the_canonical_one_for_every_n(void **state)
{
	double at[MOST];
	(void)state;

	for (size_t i = 0; i < MOST; i++)
		at[i] = (double)values[i] * 1.1;
	for (size_t n = 0; n <= MOST; n++) {
		double got = hd_tree_sum(at, n), want = tree_by_levels(at, n);
		CHECK(memcmp(&got, &want, sizeof got) == 0, "n %zu: %a, not %a", n, got, want);
	}
}

static void eleven_leaves_add_up_as_the_definition_writes_them(void **state)
{
	double a[11];
	(void)state;

	for (size_t i = 0; i < 11; i++)
		a[i] = (double)values[i];
	double want = (((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]))) +
		((a[8] + a[9]) + a[10]), got = hd_tree_sum(a, 11);
	assert_memory_equal(&got, &want, sizeof got);
}

static void lanes_are_strided_sums_joined_by_the_tree(void **state)
{
	(void)state;
	for (size_t n = 0; n <= MOST; n++) {
		double sum[HD_LANES] = { 0 }, squares[HD_LANES] = { 0 };
		for (size_t j = 0; j < HD_LANES; j++)
			for (size_t i = j; i < n; i += HD_LANES) {
				sum[j] += (double)values[i];
				squares[j] += (double)values[i] * (double)values[i];
			}
		double want[2] = { tree_by_levels(sum, HD_LANES), tree_by_levels(squares, HD_LANES) };
		double got[2] = { hd_lanes_sum(values, n), hd_lanes_sumsq(values, n) };
		CHECK(memcmp(got, want, sizeof got) == 0, "n %zu", n);
	}
}

static void the_order_matters_in_these_values(void **state)
{
	double straight = 0;
	(void)state;

	for (size_t i = 0; i < MOST; i++)
		straight += (double)values[i] * (double)values[i];
	assert_true(straight != hd_lanes_sumsq(values, MOST));
}

static void not_finite_values_come_through(void **state)
{
	float at[20] = { 0 };
	(void)state;

	at[19] = INFINITY;
	assert_true(isinf(hd_lanes_sum(at, 20)) && isinf(hd_lanes_sumsq(at, 20)));
	at[3] = NAN;
	assert_true(isnan(hd_lanes_sum(at, 20)) && isnan(hd_lanes_sumsq(at, 20)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tree_is_the_canonical_one_for_every_n),
		cmocka_unit_test(eleven_leaves_add_up_as_the_definition_writes_them),
		cmocka_unit_test(lanes_are_strided_sums_joined_by_the_tree),
		cmocka_unit_test(the_order_matters_in_these_values),
		cmocka_unit_test(not_finite_values_come_through),
	};
	return cmocka_run_group_tests(tests, fill, NULL);
}
