#include "trace/burst.h"

#include "tests/check.h"

static struct hd_burst burst;
static struct hd_burst_probe kept;
static bool keep;

static struct hd_burst_probe probe(uint64_t t1, uint64_t there, uint64_t inside)
{
	return (struct hd_burst_probe){ t1, 7000 + t1, 7000 + t1 + inside, t1 + there + inside };
}

static void bursts_come_every_half_second_and_later_every_two(void **state)
{
	const uint64_t from = UINT64_C(1) << 50, second = UINT64_C(1000000000);
	uint32_t n = 0, late = 0;
	(void)state;

	hd_burst_begin(&burst, from);
	for (uint64_t t = 0; t < 20 * second; t += second / 10) {
		bool due = hd_burst_due(&burst, from + t, &kept, &keep);
		n += due;
		late += due && t >= 10 * second;
		CHECK(due == (t < 10 * second ? t % (second / 2) == 0 : t % (2 * second) == 0), "at %llu ms",
			(unsigned long long)(t / 1000000));
	}
	assert_true(n == 20 + 5 && late == 5);
}

static void the_probe_with_the_shortest_way_is_kept(void **state)
{
	const uint64_t there[HD_BURST_PROBES] = { 90, 50, 70, 40, 40, 60, 99, 41 };
	(void)state;

	hd_burst_begin(&burst, 5);
	assert_true(hd_burst_due(&burst, 5, &kept, &keep) && !keep);
	for (uint32_t i = 0; i < HD_BURST_PROBES; i++) {
		/* the longer the other end takes, the shorter the way: what counts is the way alone */
		struct hd_burst_probe p = probe(1000 * (i + 1), there[i], 200 - there[i]);
		assert_int_equal(hd_burst_took(&burst, &p, &kept, &keep), i + 1 < HD_BURST_PROBES);
		assert_int_equal(keep, i + 1 == HD_BURST_PROBES);
	}
	assert_true(kept.t1 == 4000 && kept.t4 == 4200);
	struct hd_burst_probe stray = probe(1, 1, 1);
	assert_false(hd_burst_took(&burst, &stray, &kept, &keep) || keep);
	assert_int_equal(kept.t1, 4000);
}

static void what_runs_backwards_is_not_kept(void **state)
{
	const struct hd_burst_probe bad[] = { { 10, 5, 6, 9 }, { 10, 6, 5, 20 }, { 10, 5, 30, 20 } };
	(void)state;

	hd_burst_begin(&burst, 0);
	assert_true(hd_burst_due(&burst, 0, &kept, &keep));
	for (uint32_t i = 0; i < HD_BURST_PROBES; i++)
		(void)hd_burst_took(&burst, &bad[i % 3], &kept, &keep);
	assert_false(keep);
}

static void of_a_burst_that_is_cut_short_what_came_is_kept(void **state)
{
	struct hd_burst_probe p = probe(100, 30, 1);
	(void)state;

	hd_burst_begin(&burst, 0);
	assert_true(hd_burst_due(&burst, 0, &kept, &keep));
	assert_true(hd_burst_took(&burst, &p, &kept, &keep) && !keep);
	assert_true(hd_burst_due(&burst, HD_BURST_SOON_NS, &kept, &keep) && keep);
	assert_int_equal(kept.t1, 100);
	hd_burst_end(&burst);
	assert_false(hd_burst_due(&burst, 100 * HD_BURST_EVERY_NS, &kept, &keep) || keep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bursts_come_every_half_second_and_later_every_two),
		cmocka_unit_test(the_probe_with_the_shortest_way_is_kept),
		cmocka_unit_test(what_runs_backwards_is_not_kept),
		cmocka_unit_test(of_a_burst_that_is_cut_short_what_came_is_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
