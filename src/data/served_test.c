#include "data/served.h"

#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "tests/check.h"

enum { N = 4000 };

static int by_value(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t draw(uint32_t i, uint32_t octaves)
{
	const uint32_t counter[4] = { i, 0, 0, 7 };
	const struct hd_philox p = hd_philox(counter, hd_philox_key(3, HD_RNG_NOISE));

	return (INT64_C(16384) << p.word[0] % octaves) + p.word[1] % 10000;
}

/* Beside sorted times: within 7 %, in every window alone. */
static void medians_are_those_of_the_window(void **state)
{
	static struct hd_served served;
	static struct hd_served_seen seen;
	struct hd_fair_part part;
	static int64_t ns[N], group[HD_FAIR_FILES][N];

	(void)state;
	memset(&served, 0, sizeof served);
	memset(&seen, 0, sizeof seen);
	for (uint32_t window = 0; window < 6; window++) {
		uint32_t n[HD_FAIR_FILES] = { 0 };
		for (uint32_t i = 0; i < N; i++) {
			const uint32_t g = i % (HD_FAIR_FILES - 1);       /* the last is not read */
			ns[i] = draw(window * N + i, window + 4 + g);
			group[g][n[g]++] = ns[i];
			hd_served_add(&served, g, ns[i]);
		}
		hd_served_window(&served, &seen, &part);
		qsort(ns, N, sizeof *ns, by_value);
		const double want = (double)ns[N / 2 - 1] * 1e-9, p99 = (double)ns[N * 99 / 100 - 1] * 1e-9;
		CHECK(part.service_s > 0.93 * want && part.service_s < 1.07 * want, "%g, not %g",
			part.service_s, want);
		CHECK(part.service_p99_s > 0.93 * p99 && part.service_p99_s < 1.07 * p99, "%g, not %g",
			part.service_p99_s, p99);
		for (uint32_t g = 0; g + 1 < HD_FAIR_FILES; g++) {
			qsort(group[g], n[g], sizeof *ns, by_value);
			const double of = (double)group[g][(n[g] - 1) / 2] * 1e-9;
			CHECK(part.file_service_s[g] > 0.93 * of && part.file_service_s[g] < 1.07 * of,
				"group %u: %g, not %g", g, part.file_service_s[g], of);
		}
		assert_true(part.file_service_s[HD_FAIR_FILES - 1] == 0);
	}
	hd_served_window(&served, &seen, &part);
	assert_true(part.service_s == 0 && part.service_p99_s == 0);
}

static void bins_cover_all_times(void **state)
{
	static struct hd_served served;

	(void)state;
	for (uint32_t b = 1; b < HD_SERVED_BINS; b++)
		assert_true(hd_served_bin_ns(b) > hd_served_bin_ns(b - 1));
	for (uint32_t b = 0; b < HD_SERVED_BINS; b++) {
		hd_served_add(&served, 0, hd_served_bin_ns(b));
		assert_int_equal(served.n[0][b], 1);
	}
	hd_served_add(&served, 0, -5);
	hd_served_add(&served, HD_FAIR_FILES, INT64_MAX);
	assert_int_equal(served.n[0][0], 2);
	assert_int_equal(served.n[0][HD_SERVED_BINS - 1], 2);
	assert_true(hd_served_bin_ns(HD_SERVED_BINS - 1) > INT64_C(60000000000));
	assert_int_equal(hd_served_p99_ns(&served, HD_SERVED_BINS + 3), 0);
	assert_true(hd_served_p99_ns(&served, 10) > INT64_C(40000000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(medians_are_those_of_the_window),
		cmocka_unit_test(bins_cover_all_times),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
