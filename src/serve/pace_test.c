#include "serve/pace.h"

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

/* `steps` steps in which each worker takes ms[i] for a virtual node. How often another plan was asked for. */
static uint32_t run(struct hd_pace *p, const struct hd_view *view, const double *ms, uint32_t steps)
{
	uint32_t asked = 0;

	for (uint32_t s = 0; s < steps; s++) {
		for (uint32_t i = 0; i < view->nmembers; i++) {
			uint32_t n = 0;
			for (uint32_t r = 0; r < view->nranks; r++)
				n += view->rank[r].worker == view->member[i] ? view->rank[r].nvns : 0;
			const struct hd_step_news news = { .step_ns = (uint64_t)(ms[i] * n * 1e6) + 5000000, .wait_ns = 4000000,
				.compute_ns = (uint64_t)(ms[i] * n * 1e6) };
			hd_pace_seal(p, view->member[i], &news, view);
		}
		asked += hd_pace_asks(p);
	}
	return asked;
}

static void counts(const struct hd_view *view, uint32_t *n)
{
	for (uint32_t i = 0; i < view->nmembers; i++) {
		n[i] = 0;
		for (uint32_t r = 0; r < view->nranks; r++)
			n[i] += view->rank[r].worker == view->member[i] ? view->rank[r].nvns : 0;
	}
}

static bool plan(struct hd_pace *p, struct hd_view *view)
{
	struct hd_member_info info[8];

	for (uint32_t i = 0; i < view->nmembers; i++)
		info[i] = (struct hd_member_info){ .worker = view->member[i], .ndevices = 1 };
	return hd_pace_plan(p, view, info, view->nmembers);
}

static void equal_workers_keep_even_shares(void **state)
{
	const double ms[] = { 2, 2.04, 1.98 };
	struct hd_view view = even(1, 3, 12);
	struct hd_pace p;

	(void)state;
	hd_pace_init(&p, 12);
	assert_false(plan(&p, &view));            /* nothing is known */
	run(&p, &view, ms, 40);
	assert_false(plan(&p, &view));
	assert_int_equal(run(&p, &view, ms, 200), 0);     /* the plan was made with these paces */
}

/* 16 virtual nodes, the second worker three times as slow: 12 and 4 end together. */
static void a_slow_worker_gets_its_part(void **state)
{
	const double ms[] = { 2, 6 };
	struct hd_view view = even(1, 2, 16);
	uint32_t n[2], nvns = 0;
	struct hd_pace p;

	(void)state;
	hd_pace_init(&p, 16);
	assert_true(run(&p, &view, ms, 40) >= 1);
	assert_true(plan(&p, &view));
	counts(&view, n);
	assert_int_equal(n[0], 12);
	assert_int_equal(n[1], 4);
	for (uint32_t r = 0; r < view.nranks; r++)
		nvns += view.rank[r].nvns;
	assert_int_equal(nvns, 16);
	assert_true(strlen(p.words) > 0);
	view.epoch = 2;
	assert_int_equal(run(&p, &view, ms, 100), 0);     /* settled */
}

static void who_was_never_measured_counts_as_the_median(void **state)
{
	const double ms[] = { 1, 3 };
	struct hd_view two = even(1, 2, 16), three = even(2, 3, 16);
	uint32_t n[3];
	struct hd_pace p;

	(void)state;
	hd_pace_init(&p, 16);
	run(&p, &two, ms, 40);
	assert_true(plan(&p, &three));
	counts(&three, n);
	assert_int_equal(n[0] + n[1] + n[2], 16);
	assert_true(n[0] > n[1] && n[0] > n[2]);
}

static void one_odd_step_or_a_repair_changes_nothing(void **state)
{
	double ms[] = { 2, 2 };
	struct hd_view view = even(1, 2, 16);
	struct hd_pace p;

	(void)state;
	hd_pace_init(&p, 16);
	run(&p, &view, ms, 40);
	assert_false(plan(&p, &view));
	ms[1] = 20;
	assert_int_equal(run(&p, &view, ms, 1), 0);
	ms[1] = 2;
	assert_int_equal(run(&p, &view, ms, 15), 0);
	for (int i = 0; i < 100; i++) {
		const struct hd_step_news news = { .step_ns = 900000000, .compute_ns = 900000000, .redone = 3 };
		hd_pace_seal(&p, 11, &news, &view);
	}
	assert_int_equal(run(&p, &view, ms, 60), 0);
}

static void each_worker_is_told_by_its_own_times(void **state)
{
	const double ms[] = { 2, 6, 4 };
	struct hd_view view = even(1, 3, 12);
	struct hd_pace p;

	(void)state;
	hd_pace_init(&p, 12);
	assert_null(hd_pace_of(&p, 10));
	assert_true(hd_pace_speed(&p, 10, &view) == 0);
	run(&p, &view, ms, 10);
	assert_int_equal(hd_pace_of(&p, 10)->compute_ns, 8000000);
	assert_int_equal(hd_pace_of(&p, 11)->compute_ns, 24000000);
	assert_int_equal(hd_pace_of(&p, 11)->step_ns, 29000000);
	assert_int_equal(hd_pace_of(&p, 11)->vn_ps, UINT64_C(6000000000));
	assert_true(hd_pace_speed(&p, 10, &view) == 2);
	assert_true(hd_pace_speed(&p, 12, &view) == 1);
	assert_true(hd_pace_speed(&p, 11, &view) < 0.67);
	const struct hd_step_news repair = { .step_ns = 1, .compute_ns = 1, .redone = 5 };
	hd_pace_seal(&p, 11, &repair, NULL);      /* before there is a view it is told, not measured */
	assert_int_equal(hd_pace_of(&p, 11)->redone, 5);
	assert_int_equal(hd_pace_of(&p, 11)->vn_ps, UINT64_C(6000000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_workers_keep_even_shares),
		cmocka_unit_test(a_slow_worker_gets_its_part),
		cmocka_unit_test(who_was_never_measured_counts_as_the_median),
		cmocka_unit_test(each_worker_is_told_by_its_own_times),
		cmocka_unit_test(one_odd_step_or_a_repair_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
