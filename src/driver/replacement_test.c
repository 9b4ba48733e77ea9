#include "driver/replacement.h"

#include <string.h>

#include "tests/check.h"

/* Three members, two of them local; what they take for each of their virtual nodes, in ms. */
static struct hd_reshape reshape;
static struct hd_straggler straggler;
static struct hd_view view;
static uint64_t at;
static double ms[3];
static uint32_t redone;
static const uint32_t member[3] = { 1, 2, HD_REMOTE_WORKER + 3 };

static void open_run(double a, double b, double remote)
{
	const uint32_t ndevices[3] = { 1, 1, 1 };

	hd_reshape_finish(&reshape);
	hd_reshape_init(&reshape, 12, 1 << 20, true);
	assert_int_equal(hd_straggler_init(&straggler, "ours", NULL), HD_OK);
	hd_view_even(&view, 1, member, ndevices, 3, 12);
	ms[0] = a;
	ms[1] = b;
	ms[2] = remote;
	redone = 0;
	at = 0;
}

/* Shares stay as they are: what the planner would do is not this test's. */
static struct hd_straggler_action run(uint32_t steps)
{
	struct hd_straggler_action action = { HD_STRAGGLER_NONE, 0, "" };

	for (uint32_t k = 0; k < steps && !action.act; k++, at++) {
		struct hd_reshape_said said;
		for (uint32_t i = 0; i < 3; i++) {
			double longest = ms[0] > ms[1] ? ms[0] : ms[1];
			longest = 4e6 * (longest > ms[2] ? longest : ms[2]);
			const struct hd_step_news news = { .step_ns = (uint64_t)longest + 100000,
				.wait_ns = (uint64_t)(longest - ms[i] * 4e6),
				.compute_ns = (uint64_t)(ms[i] * 4e6), .redone = redone };
			hd_reshape_seal(&reshape, member[i], at, &news, &view);
		}
		(void)hd_reshape_step(&reshape, at, &view, &said);
		hd_replacement_step(&straggler, &reshape, &view,
			&(struct hd_replacement_now){ at, 1000000, (int64_t)at * 40000000, 1000000000 },
			&action);
	}
	return action;
}

static void a_local_worker_slower_than_another_is_relieved(void **state)
{
	(void)state;
	open_run(2, 4, 2);
	struct hd_straggler_action action = run(100);
	CHECK(action.act == HD_STRAGGLER_REPLACE && action.worker == 2 &&
		strstr(action.why, "takes 2.00 of the others' time"), "%s", action.why);
	run(100);
	assert_true(straggler.waiting && straggler.asked_for == 2);
}

static void those_of_other_machines_are_neither_judged_nor_compared_with(void **state)
{
	static const double rows[][3] = { { 2, 2, 8 }, { 4, 4, 2 } };
	(void)state;

	for (size_t i = 0; i < 2; i++) {
		open_run(rows[i][0], rows[i][1], rows[i][2]);
		struct hd_straggler_action action = run(300);
		CHECK(!action.act, "row %zu: %s", i, action.why);
	}
}

static void steps_with_repairs_say_nothing(void **state)
{
	(void)state;
	open_run(2, 4, 2);
	redone = 1;
	assert_int_equal(run(300).act, HD_STRAGGLER_NONE);
	assert_true(straggler.steps == 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_local_worker_slower_than_another_is_relieved),
		cmocka_unit_test(those_of_other_machines_are_neither_judged_nor_compared_with),
		cmocka_unit_test(steps_with_repairs_say_nothing),
	};
	int rc = cmocka_run_group_tests(tests, NULL, NULL);
	hd_reshape_finish(&reshape);
	return rc;
}
