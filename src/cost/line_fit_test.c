#include "cost/line_fit.h"

#include <math.h>

#include "tests/check.h"

enum { NPOINTS = 8 };

static void sizes(struct hd_line_point *point)
{
	for (int i = 0; i < NPOINTS; i++)
		point[i].bytes = (int64_t)1024 << (2 * i);
}

static void points_on_a_line_give_that_line(void **state)
{
	static const struct { double latency_ns, bytes_per_s; } lines[] = { { 5000, 1e10 }, { 0, 3e9 },
		{ 2000000, 1.25e8 }, { 300, 2.5e11 } };

	(void)state;
	for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
		struct hd_line_point point[NPOINTS];
		sizes(point);
		for (int i = 0; i < NPOINTS; i++)
			point[i].ns = (int64_t)(lines[k].latency_ns +
				(double)point[i].bytes / lines[k].bytes_per_s * 1e9 + 0.5);
		struct hd_line line = hd_line_fit(point, NPOINTS);
		CHECK(fabs((double)line.latency_ns - lines[k].latency_ns) <= 2 &&
			fabs(line.bytes_per_s / lines[k].bytes_per_s - 1) < 0.01,
			"line %zu: %lld ns, %g bytes/s", k, (long long)line.latency_ns, line.bytes_per_s);
	}
}

/* No step to either side makes the sum of squares of the relative errors smaller. */
static double misfit(const struct hd_line_point *point, double latency, double slope)
{
	double sum = 0;

	for (int i = 0; i < NPOINTS; i++) {
		double error = (latency + slope * (double)point[i].bytes) / (double)point[i].ns - 1;
		sum += error * error;
	}
	return sum;
}

static void no_line_beside_it_fits_better(void **state)
{
	static const int64_t ns[NPOINTS] = { 900, 1300, 1200, 4000, 30000, 90000, 600000, 1900000 };
	struct hd_line_point point[NPOINTS];

	(void)state;
	sizes(point);
	for (int i = 0; i < NPOINTS; i++)
		point[i].ns = ns[i];
	struct hd_line line = hd_line_fit(point, NPOINTS);
	double a = (double)line.latency_ns, b = 1e9 / line.bytes_per_s, best = misfit(point, a, b);
	CHECK(best <= misfit(point, a + 20, b) && best <= misfit(point, a - 20, b) &&
		best <= misfit(point, a, b * 1.01) &&
		best <= misfit(point, a, b * 0.99), "%g ns and %g ns a byte miss by %g", a, b, best);
	assert_true(a > 0);
}

static void odd_measurements_still_give_a_link(void **state)
{
	static const struct hd_line_point steep[] = { { 1024, 10 }, { 4096, 1000 }, { 16384, 100000 } },
		falling[] = { { 1024, 5000 }, { 4096, 100 } };
	struct hd_line line;

	(void)state;
	line = hd_line_fit(steep, 3);
	CHECK(line.latency_ns == 0 && line.bytes_per_s > 0, "%lld ns, %g", (long long)line.latency_ns,
		line.bytes_per_s);
	line = hd_line_fit(falling, 2);
	CHECK(line.latency_ns >= 0 && fabs(line.bytes_per_s - 4.096e10) < 1, "%lld ns, %g",
		(long long)line.latency_ns, line.bytes_per_s);
	line = hd_line_fit(steep, 1);
	CHECK(line.latency_ns >= 0 && line.bytes_per_s > 0, "%lld ns, %g", (long long)line.latency_ns,
		line.bytes_per_s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(points_on_a_line_give_that_line),
		cmocka_unit_test(no_line_beside_it_fits_better),
		cmocka_unit_test(odd_measurements_still_give_a_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
