#include "serve/keeper.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "sys/loop.h"
#include "serve/control.h"
#include "tests/check.h"

/* A run that answers, turned by the test; the keeper asks from its own thread. */
static struct hd_clock clock_;
static struct hd_net net;
static struct hd_loop loop;
static struct hd_control control;
static struct hd_keeper *keeper;
static char dir[64];
static uint32_t asked;
static double for_s;

static enum hd_err reply(void *self, const char *what, const struct hd_json *ask, struct hd_json_writer *w, struct hd_diag *diag)
{
	(void)self;
	(void)w;
	assert_string_equal(what, "status");
	asked++;
	return hd_json_get_f64(ask, "for_s", &for_s, diag);
}

static int open_all(void **state)
{
	char addr[HD_ADDR_CAP];

	(void)state;
	hd_clock_real(&clock_);
	hd_net_real(&net);
	snprintf(dir, sizeof dir, "/tmp/hd_keeper_test.%d", (int)getpid());
	mkdir(dir, 0700);
	control = (struct hd_control){ .answer = reply, .tag = 100 };
	asked = 0;
	return hd_control_path(dir, "run.sock", addr, NULL) || hd_loop_init(&loop, &clock_, NULL) || hd_control_open(&control, addr, &loop, &net, NULL) ||
		hd_keeper_create(&keeper, &clock_, NULL);
}

static int close_all(void **state)
{
	(void)state;
	hd_keeper_destroy(keeper);
	hd_control_close(&control);
	hd_loop_finish(&loop);
	return rmdir(dir);
}

/* Until it was asked so often in all; false: not in that time. */
static bool hears(uint32_t n, int64_t within_ns)
{
	int64_t until = hd_clock_now_ns(&clock_) + within_ns;
	struct hd_loop_event event[8];

	while (asked < n && hd_clock_now_ns(&clock_) < until) {
		size_t got;
		assert_int_equal(hd_loop_poll(&loop, hd_clock_now_ns(&clock_) + 10000000, event, 8, &got, NULL), HD_OK);
		for (size_t i = 0; i < got; i++)
			hd_control_event(&control, &event[i]);
		hd_control_tick(&control, hd_clock_now_ns(&clock_));
	}
	return asked >= n;
}

static void a_run_hears_of_its_scheduler_while_that_decides_and_no_longer(void **state)
{
	(void)state;
	hd_keeper_set(keeper, 0.2);
	assert_int_equal(hd_keeper_add(keeper, "/tmp/no run of that name", NULL), HD_OK);        /* nobody answers there */
	assert_int_equal(hd_keeper_add(keeper, dir, NULL), HD_OK);
	assert_false(hears(1, 300000000));
	(void)hd_keeper_begin(keeper, INT64_MAX);
	assert_true(hears(4, INT64_C(600000000000)));
	assert_true(for_s == 0.2);
	assert_false(hd_keeper_end(keeper));
	uint32_t then = asked;
	assert_false(hears(then + 2, 500000000));         /* but for the question that was on its way */
}

static void short_decisions_and_runs_that_are_gone_ask_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {           /* a scheduler decides before it has seen a run */
		(void)hd_keeper_begin(keeper, INT64_MAX);
		assert_false(hears(1, 1000000));
		assert_false(hd_keeper_end(keeper));
	}
	hd_keeper_set(keeper, 3600);
	assert_int_equal(hd_keeper_add(keeper, dir, NULL), HD_OK);
	for (int i = 0; i < 100; i++) {
		(void)hd_keeper_begin(keeper, INT64_MAX);
		assert_false(hd_keeper_end(keeper));
	}
	(void)hd_keeper_begin(keeper, INT64_MAX);
	assert_false(hears(1, 200000000));
	assert_false(hd_keeper_end(keeper));
	hd_keeper_set(keeper, 0.04);
	(void)hd_keeper_begin(keeper, INT64_MAX);
	assert_false(hears(1, 200000000));
	assert_false(hd_keeper_end(keeper));
}

/* As forty users who ask at once what would be. */
static void many_short_decisions_are_as_one_that_is_long(void **state)
{
	(void)state;
	hd_keeper_set(keeper, 0.8);
	assert_int_equal(hd_keeper_add(keeper, dir, NULL), HD_OK);
	for (int i = 0; i < 2000 && !asked; i++) {
		(void)hd_keeper_begin(keeper, INT64_MAX);
		(void)hears(1, 20000000);
		assert_false(hd_keeper_end(keeper));
	}
	assert_true(asked > 0);
}

/* However long runs take to hear of it, or whether there are any. */
static void who_decides_too_long_is_told_to_stop(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		hd_keeper_set(keeper, i % 2 ? 0.02 : 0);
		assert_int_equal(hd_keeper_add(keeper, "/tmp/no run of that name", NULL), HD_OK);
		const atomic_bool *stop = hd_keeper_begin(keeper, 20000000);
		int64_t began = hd_clock_now_ns(&clock_);
		while (!atomic_load(stop))
			hd_clock_wait_until(&clock_, hd_clock_now_ns(&clock_) + 1000000);
		assert_true(hd_clock_now_ns(&clock_) - began >= 19000000);
		assert_true(hd_keeper_end(keeper));
		(void)hd_keeper_begin(keeper, i % 2 ? INT64_MAX : INT64_C(3600000000000));       /* nothing of the one before */
		assert_false(hears(1, 2000000));
		assert_false(hd_keeper_end(keeper));
	}
}

static void without_memory_there_is_no_keeper(void **state)
{
	struct hd_keeper *none = NULL;
	struct hd_diag diag = { "" };

	(void)state;
	hd_clock_real(&clock_);
	hd_alloc_arm(1);
	enum hd_err err = hd_keeper_create(&none, &clock_, &diag);
	hd_alloc_arm(0);
	assert_int_equal(err, HD_E_NOMEM);
	assert_non_null(strstr(diag.text, "no memory"));
	assert_null(none);
	hd_keeper_destroy(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_memory_there_is_no_keeper),
		cmocka_unit_test_setup_teardown(a_run_hears_of_its_scheduler_while_that_decides_and_no_longer, open_all, close_all),
		cmocka_unit_test_setup_teardown(short_decisions_and_runs_that_are_gone_ask_nothing, open_all, close_all),
		cmocka_unit_test_setup_teardown(many_short_decisions_are_as_one_that_is_long, open_all, close_all),
		cmocka_unit_test_setup_teardown(who_decides_too_long_is_told_to_stop, open_all, close_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
