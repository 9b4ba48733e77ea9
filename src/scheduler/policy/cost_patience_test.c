/* The price worth waiting for, against every threshold there is; and what is remembered of prices. */
#include "scheduler/policy/cost_patience.h"

#include "scheduler/policy/testing.h"

enum { SPANS = 7, TYPES = 3 };

/* Steps/s on average if each span goes to the type that is best at v: tried type by type. */
static double tried(const double span[], double usd_h[][TYPES], const double *rate, uint32_t scale, double v)
{
	double steps = 0, all = 0;

	for (int k = 0; k < SPANS; k++) {
		int best = -1;
		for (int t = 0; t < TYPES; t++) {
			double gain = v * rate[t] - usd_h[k][t] * scale / 3600;
			if (rate[t] > 0 && gain > 0 && (best < 0 ||
				gain > v * rate[best] - usd_h[k][best] * scale / 3600))
				best = t;
		}
		steps += best < 0 ? 0 : span[k] * rate[best];
		all += span[k];
	}
	return steps / all;
}

/* Where what is done changes: a span begins to pay, or another type becomes better. The least of these
 * prices that does, just above it. */
static double least(const double span[], double usd_h[][TYPES], const double *rate, uint32_t scale,
	double need)
{
	double found = INFINITY;

	for (int k = 0; k < SPANS; k++)
		for (int a = 0; a < TYPES; a++)
			for (int b = -1; b < TYPES; b++) {
				double more = rate[a] - (b < 0 ? 0 : rate[b]),
					dearer = (usd_h[k][a] - (b < 0 ? 0 : usd_h[k][b])) * scale / 3600;
				double v = dearer / more;
				if (a != b && more > 0 && v > 0 && v < found &&
					tried(span, usd_h, rate, scale, v * (1 + 1e-9)) >= need)
					found = v;
			}
	return found;
}

static void the_price_is_the_least_that_does(void **state)
{
	uint32_t infinite = 0;

	(void)state;
	for (uint32_t seed = 0; seed < 300; seed++) {
		double rate[TYPES], usd_h[SPANS][TYPES], span[SPANS], best = 0;
		uint32_t scale = 1 + seed % 4;
		struct hd_patience p = { .n = SPANS, .ntypes = TYPES, .span_s = span, .usd_h = &usd_h[0][0] };
		for (uint32_t t = 0; t < TYPES; t++)
			best = fmax(best, rate[t] = t && draw(seed, 1, t, 0) < 0.2 ? 0 : 0.1 + 5 * draw(seed,
				2, t, 0));
		for (uint32_t k = 0; k < SPANS; k++) {
			span[k] = 60 + 7200 * draw(seed, 3, k, 0);
			for (uint32_t t = 0; t < TYPES; t++)
				usd_h[k][t] = 0.05 + 3 * draw(seed, 4, k, t);
		}
		double need = 1.1 * best * draw(seed, 5, 0, 0), want = least(span, usd_h, rate, scale, need),
			got = hd_patience_price(&p, rate, scale, need);
		infinite += isinf(want) ? 1 : 0;
		CHECK(isinf(want) ? isinf(got) : fabs(got - want) <= 1e-6 * want,
			"seed %u: %.12g, tried %.12g", seed, got, want);
	}
	CHECK(infinite > 5 && infinite < 100, "%u of 300 have no price", infinite);
}

static void time_passes_by_the_ages_of_who_stays(void **state)
{
	struct hd_patience p = { 0 };
	struct hd_diag diag = { "" };
	double rate[] = { 1 };
	struct hd_sched_type type = { "t", 1, 2, 0 };
	struct hd_sched_job job = { .id = 1, .scale = 1, .rate = rate };
	struct hd_sched_state s = { .ntypes = 1, .njobs = 1, .types = &type, .jobs = &job };

	(void)state;
	assert_int_equal(hd_patience_see(&p, &s, &diag), HD_OK);
	CHECK(fabs(hd_patience_price(&p, rate, 1, 0.5) - 2.0 / 3600) < 1e-8,
		"without a past, what it costs now");
	job.age_s = 3000;
	type.price_usd_h = 1;
	assert_int_equal(hd_patience_see(&p, &s, &diag), HD_OK);
	job.age_s = 4000;
	type.price_usd_h = 5;
	assert_int_equal(hd_patience_see(&p, &s, &diag), HD_OK);
	/* no job stayed: no time is known to have passed */
	job = (struct hd_sched_job){ .id = 2, .scale = 1, .rate = rate, .age_s = 9e9 };
	assert_int_equal(hd_patience_see(&p, &s, &diag), HD_OK);
	CHECK(fabs(hd_patience_price(&p, rate, 1, 0.24) - 1.0 / 3600) < 1e-8, "1 in a quarter of the time");
	CHECK(fabs(hd_patience_price(&p, rate, 1, 0.26) - 2.0 / 3600) < 1e-8, "2 in the rest");
	for (uint32_t k = 0; k < 5 * HD_PATIENCE_SEEN; k++) {          /* half the time at 4, half at 8 */
		job.age_s += 1e6;
		type.price_usd_h = k / 64 % 2 ? 4 : 8 + k * 1e-7;
		assert_int_equal(hd_patience_see(&p, &s, &diag), HD_OK);
		CHECK(p.n <= HD_PATIENCE_SEEN, "%u spans", p.n);
	}
	CHECK(hd_patience_price(&p, rate, 1, 0.3) < 5.0 / 3600 &&
		hd_patience_price(&p, rate, 1, 0.7) > 7.0 / 3600, "thinned, but not bent");
	hd_patience_finish(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_price_is_the_least_that_does),
		cmocka_unit_test(time_passes_by_the_ages_of_who_stays),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
