#include "driver/pace.h"

#include <string.h>

#include "tests/check.h"

static struct hd_view even(uint32_t epoch, uint32_t n, uint32_t nvns)
{
	uint32_t member[8], ndevices[8];
	struct hd_view view;

	for (uint32_t i = 0; i < n; i++) {
		member[i] = 10 + i;
		ndevices[i] = 1;
	}
	hd_view_even(&view, epoch, member, ndevices, n, nvns);
	return view;
}

/* Steps from..from + n - 1 of even shares, in which each worker takes ms[i] for a virtual node. */
static void run(struct hd_pace *p, const struct hd_view *view, const double *ms, uint64_t from, uint32_t n)
{
	uint32_t share = view->rank[0].nvns;

	for (uint64_t s = from; s < from + n; s++)
		for (uint32_t i = 0; i < view->nmembers; i++) {
			const struct hd_step_news news = { .step_ns = (uint64_t)(ms[i] * share * 1e6) +
				5000000, .wait_ns = 4000000,
				.compute_ns = (uint64_t)(ms[i] * share * 1e6) };
			hd_pace_seal(p, view->member[i], s, &news, view);
		}
}

static void each_worker_is_told_by_its_own_times(void **state)
{
	const double ms[] = { 2, 6, 4 };
	struct hd_view view = even(1, 3, 12);
	static struct hd_pace p;

	(void)state;
	assert_null(hd_pace_of(&p, 10));
	assert_true(hd_pace_speed(&p, 10, &view) == 0);
	run(&p, &view, ms, 0, 10);
	assert_int_equal(hd_pace_last(hd_pace_of(&p, 10))->compute_ns, 8000000);
	assert_int_equal(hd_pace_last(hd_pace_of(&p, 11))->compute_ns, 24000000);
	assert_int_equal(hd_pace_last(hd_pace_of(&p, 11))->step_ns, 29000000);
	assert_int_equal(hd_pace_of(&p, 11)->vn_ps, UINT64_C(6000000000));
	assert_true(hd_pace_speed(&p, 10, &view) == 2);
	assert_true(hd_pace_speed(&p, 12, &view) == 1);
	assert_true(hd_pace_speed(&p, 11, &view) < 0.67);
	const struct hd_step_news repair = { .step_ns = 1, .compute_ns = 1, .redone = 5 };
	hd_pace_seal(&p, 11, 10, &repair, NULL);  /* without a view it is reported, not measured */
	assert_int_equal(hd_pace_of(&p, 11)->redone, 5);
	assert_int_equal(hd_pace_of(&p, 11)->vn_ps, UINT64_C(6000000000));
}

static void two_steps_are_kept(void **state)
{
	const double ms[] = { 2, 6 };
	struct hd_view view = even(1, 2, 12);
	static struct hd_pace p;

	(void)state;
	run(&p, &view, ms, 0, 8);
	assert_null(hd_pace_at(hd_pace_of(&p, 10), 5));
	assert_non_null(hd_pace_at(hd_pace_of(&p, 10), 6));
	assert_int_equal(hd_pace_at(hd_pace_of(&p, 11), 7)->compute_ns, 36000000);
	assert_null(hd_pace_at(hd_pace_of(&p, 10), 8));
}

/* The first steps of a view, and steps with repairs, are in no sum; what waits longer for data than it
 * computes counts as waiting only. */
static void sums_are_of_the_steps_that_count(void **state)
{
	const double ms[] = { 2, 3 };
	struct hd_view view = even(1, 2, 12);
	static struct hd_pace p;

	(void)state;
	run(&p, &view, ms, 0, HD_PACE_FIRST + 5);
	assert_int_equal(hd_pace_of(&p, 11)->sums.vns, 5 * 6);
	assert_int_equal(hd_pace_of(&p, 11)->sums.compute_ns, 5 * 6 * 3000000);
	for (uint64_t i = 0; i < 4; i++)
		hd_pace_seal(&p, 11, 8 + i, &(struct hd_step_news){ .step_ns = 90, .compute_ns = 70,
			.read_wait_ns = i ? 20 : 80, .redone = i == 3 }, &view);
	assert_int_equal(hd_pace_of(&p, 11)->sums.steps, 8);
	assert_int_equal(hd_pace_of(&p, 11)->sums.read_wait_ns, 70 + 2 * 20);
	assert_int_equal(hd_pace_of(&p, 10)->sums.read_wait_ns, 0);
}

/* What a member says is bounded; what has left the view, or was not there, does not count. */
static void a_step_s_bytes_are_summed_and_the_longest_read_counts(void **state)
{
	struct hd_view view = even(1, 3, 12), fewer = even(2, 2, 12);
	static struct hd_pace p;

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		hd_pace_seal(&p, 10 + i, 6, &(struct hd_step_news){ .step_ns = 90, .compute_ns = 70,
			.read_wait_ns = (uint64_t[]){ 20, 50, 100 }[i], .bytes_out = 1000u << 4 * i,
			.preempted = 1u << i, .inverted = 3u << i }, NULL);
	assert_int_equal(hd_pace_total(&p, 6, &view).bytes_out, 1000 + 16000 + 256000);
	assert_int_equal(hd_pace_total(&p, 6, &view).preempted, 7);
	assert_int_equal(hd_pace_total(&p, 6, &view).inverted, 21);
	assert_int_equal(hd_pace_total(&p, 6, &view).read_wait_ns, 90);
	assert_int_equal(hd_pace_total(&p, 6, &fewer).bytes_out, 1000 + 16000);
	assert_int_equal(hd_pace_total(&p, 6, &fewer).read_wait_ns, 50);
	hd_pace_seal(&p, 11, 7, &(struct hd_step_news){ .step_ns = 9, .bytes_out = 5 }, &view);
	assert_int_equal(hd_pace_total(&p, 7, &view).bytes_out, 5);
	assert_int_equal(hd_pace_total(&p, 7, NULL).bytes_out, 0);
	for (uint32_t i = 0; i < 3; i++)
		hd_pace_seal(&p, 10 + i, 8, &(struct hd_step_news){ .bytes_out = UINT64_MAX }, &view);
	assert_int_equal(hd_pace_total(&p, 8, &view).bytes_out, 3 * (INT64_MAX / HD_MAX_MEMBERS));
}

static void odd_steps_repairs_and_the_first_of_a_view_count_little(void **state)
{
	double ms[] = { 2, 2 };
	struct hd_view view = even(1, 2, 16);
	static struct hd_pace p;

	(void)state;
	ms[1] = 50;                               /* buffers are touched for the first time */
	run(&p, &view, ms, 0, HD_PACE_FIRST);
	assert_true(!hd_pace_of(&p, 11) || !hd_pace_of(&p, 11)->vn_ps);
	ms[1] = 2;
	run(&p, &view, ms, 3, 40);
	assert_int_equal(hd_pace_of(&p, 11)->vn_ps, UINT64_C(2000000000));
	ms[1] = 200;
	run(&p, &view, ms, 43, 1);
	assert_int_equal(hd_pace_of(&p, 11)->vn_ps, UINT64_C(2200000000));
	for (uint64_t i = 0; i < 100; i++) {
		const struct hd_step_news news = { .step_ns = 900000000, .compute_ns = 900000000,
			.redone = 3 };
		hd_pace_seal(&p, 11, 44 + i, &news, &view);
	}
	assert_int_equal(hd_pace_of(&p, 11)->vn_ps, UINT64_C(2200000000));
}

static void the_median_of_two_is_their_mean(void **state)
{
	const double ms[] = { 2, 6, 10 };
	const uint32_t two[] = { 10, 11 }, three[] = { 10, 11, 12 }, strange[] = { 77 };
	struct hd_view view = even(1, 3, 12);
	static struct hd_pace p;

	(void)state;
	run(&p, &view, ms, 0, 10);
	assert_int_equal(hd_pace_median(&p, two, 2), UINT64_C(4000000000));
	assert_int_equal(hd_pace_median(&p, three, 3), UINT64_C(6000000000));
	assert_int_equal(hd_pace_median(&p, strange, 1), 0);
}

/* A coordinator that follows knows what the one before it measured, and goes on from there. */
static void paces_outlive_a_coordinator(void **state)
{
	const double ms[] = { 2, 6, 4 };
	struct hd_view view = even(1, 3, 12);
	static struct hd_pace before, after;
	uint8_t bytes[HD_PACE_BYTES];

	(void)state;
	memset(&before, 0, sizeof before);
	memset(&after, 0, sizeof after);
	run(&before, &view, ms, 0, 10);
	size_t len = hd_pace_put(&before, bytes);
	assert_int_equal(len, 3 * HD_PACE_ENTRY);
	hd_pace_take(&after, bytes, len - 1);
	assert_null(hd_pace_of(&after, 10));
	hd_pace_take(&after, bytes, len);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(hd_pace_of(&after, 10 + i)->vn_ps == hd_pace_of(&before, 10 + i)->vn_ps);
	assert_true(hd_pace_speed(&after, 11, &view) < 0.7);
	run(&after, &view, (const double[]){ 2, 2, 2 }, 10, 10);
	assert_true(hd_pace_speed(&after, 11, &view) < 1);       /* an average over what was taken */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_worker_is_told_by_its_own_times),
		cmocka_unit_test(two_steps_are_kept),
		cmocka_unit_test(sums_are_of_the_steps_that_count),
		cmocka_unit_test(a_step_s_bytes_are_summed_and_the_longest_read_counts),
		cmocka_unit_test(odd_steps_repairs_and_the_first_of_a_view_count_little),
		cmocka_unit_test(the_median_of_two_is_their_mean),
		cmocka_unit_test(paces_outlive_a_coordinator),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
