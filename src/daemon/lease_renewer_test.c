#include "daemon/lease_renewer.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "sys/account.h"
#include "sys/loop.h"
#include "driver/control.h"
#include "tests/check.h"

/* A run that answers, turned by the test; the renewer asks from its own thread. */
static struct hd_clock clock_;
/* the renewer's: may be put forward */
static struct { struct hd_clock clock; _Atomic int64_t ahead_ns; _Atomic uint64_t reads; } its;
static struct hd_net net;
static struct hd_loop loop;
static struct hd_control control;
static struct hd_lease_renewer *renewer;
static char dir[64];
static uint32_t asked;
static double for_s;
static void (*meanwhile)(void);           /* while a run has been asked and has not answered */

static int64_t its_now(struct hd_clock *clock)
{
	(void)clock;
	its.reads++;
	return hd_clock_now_ns(&clock_) + its.ahead_ns;
}

static enum hd_err reply(void *self, const char *what, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	(void)self;
	(void)w;
	assert_string_equal(what, "status");
	asked++;
	if (meanwhile)
		meanwhile();
	return hd_json_get_f64(ask, "for_s", &for_s, diag);
}

static int open_all(void **state)
{
	char addr[HD_ADDR_CAP];

	(void)state;
	hd_clock_real(&clock_);
	hd_net_real(&net);
	snprintf(dir, sizeof dir, "/tmp/hd_lease_renewer_test.%d", (int)getpid());
	mkdir(dir, 0700);
	control = (struct hd_control){ .answer = reply, .tag = 100 };
	asked = 0;
	meanwhile = NULL;
	static const struct hd_clock_ops ops = { .name = "ahead", .now_ns = its_now };
	its.clock.ops = &ops;
	its.ahead_ns = 0;
	return hd_control_path(dir, "run.sock", addr, NULL) || hd_loop_init(&loop, &clock_, NULL) ||
		hd_control_open(&control, addr, &loop, &net, NULL) ||
		hd_renewer_create(&renewer, &its.clock, NULL);
}

static int close_all(void **state)
{
	(void)state;
	hd_renewer_destroy(renewer);
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
		assert_int_equal(hd_loop_poll(&loop, hd_clock_now_ns(&clock_) + 10000000, event, 8, &got,
			NULL), HD_OK);
		for (size_t i = 0; i < got; i++)
			hd_control_event(&control, &event[i]);
		hd_control_tick(&control, hd_clock_now_ns(&clock_));
	}
	return asked >= n;
}

static void a_run_hears_of_its_scheduler_while_that_decides_and_no_longer(void **state)
{
	(void)state;
	hd_renewer_set(renewer, 0.2);
	/* no process answers there */
	assert_int_equal(hd_renewer_add(renewer, "/tmp/no run of that name", HD_NO_UID, NULL), HD_OK);
	assert_int_equal(hd_renewer_add(renewer, dir, geteuid(), NULL), HD_OK);
	assert_false(hears(1, 300000000));
	(void)hd_renewer_begin(renewer, INT64_MAX);
	assert_true(hears(4, INT64_C(600000000000)));
	assert_true(for_s == 0.2);
	assert_false(hd_renewer_end(renewer));
	uint32_t then = asked;
	assert_false(hears(then + 2, 500000000));         /* but for the question that was on its way */
}

static void short_decisions_and_runs_that_are_gone_ask_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {           /* a scheduler decides before it has seen a run */
		(void)hd_renewer_begin(renewer, INT64_MAX);
		assert_false(hears(1, 1000000));
		assert_false(hd_renewer_end(renewer));
	}
	hd_renewer_set(renewer, 3600);
	assert_int_equal(hd_renewer_add(renewer, dir, geteuid(), NULL), HD_OK);
	for (int i = 0; i < 100; i++) {
		(void)hd_renewer_begin(renewer, INT64_MAX);
		assert_false(hd_renewer_end(renewer));
	}
	(void)hd_renewer_begin(renewer, INT64_MAX);
	assert_false(hears(1, 200000000));
	assert_false(hd_renewer_end(renewer));
	hd_renewer_set(renewer, 0.04);
	(void)hd_renewer_begin(renewer, INT64_MAX);
	assert_false(hears(1, 200000000));
	assert_false(hd_renewer_end(renewer));
}

/* As forty what-if requests at once. */
static void many_short_decisions_are_as_one_that_is_long(void **state)
{
	(void)state;
	hd_renewer_set(renewer, 0.8);
	assert_int_equal(hd_renewer_add(renewer, dir, geteuid(), NULL), HD_OK);
	for (int i = 0; i < 2000 && !asked; i++) {
		(void)hd_renewer_begin(renewer, INT64_MAX);
		(void)hears(1, 20000000);
		assert_false(hd_renewer_end(renewer));
	}
	assert_true(asked > 0);
}

/* However long runs take to hear of it, or whether there are any. */
static void a_decision_that_takes_too_long_is_stopped(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		hd_renewer_set(renewer, i % 2 ? 0.02 : 0);
		assert_int_equal(hd_renewer_add(renewer, "/tmp/no run of that name", HD_NO_UID, NULL), HD_OK);
		int64_t began = hd_clock_now_ns(&clock_);
		const atomic_bool *stop = hd_renewer_begin(renewer, 20000000);
		while (!atomic_load(stop))
			hd_clock_wait_until(&clock_, hd_clock_now_ns(&clock_) + 1000000);
		assert_true(hd_clock_now_ns(&clock_) - began >= 19000000);
		assert_true(hd_renewer_end(renewer));
		/* nothing of the one before */
		(void)hd_renewer_begin(renewer, i % 2 ? INT64_MAX : INT64_C(3600000000000));
		assert_false(hears(1, 2000000));
		assert_false(hd_renewer_end(renewer));
	}
}

#define HOUR INT64_C(3600000000000)
#define LONG INT64_C(60000000000)        /* longer than any wait that ends */

static void add_dir(int times)
{
	for (int i = 0; i < times; i++)
		assert_int_equal(hd_renewer_add(renewer, dir, geteuid(), NULL), HD_OK);
}

static void end_an_hour_later(void)
{
	its.ahead_ns += HOUR;
	assert_false(hd_renewer_end(renewer));
}

/* Rule 1: the end comes while a run is asked; the others are not asked. And what was not asked then does not
 * count as asked: the next decision finds that quarter over. */
static void a_decision_that_ends_ends_the_round(void **state)
{
	(void)state;
	hd_renewer_set(renewer, 4 * 3600);
	add_dir(5);
	its.ahead_ns += HOUR;
	meanwhile = end_an_hour_later;
	for (uint32_t i = 1; i <= 3; i++) {
		(void)hd_renewer_begin(renewer, INT64_MAX);
		assert_true(hears(i, LONG));
		assert_false(hears(i + 1, 200000000));
	}
}

static void ask_them_itself(void)
{
	its.ahead_ns += HOUR;
	hd_renewer_set(renewer, 4 * 3600);
	add_dir(1);
	assert_false(hd_renewer_end(renewer));
}

/* The daemon asks while the renewer does: the quarter counts from the later of the two. */
static void a_quarter_counts_from_who_asked_last(void **state)
{
	(void)state;
	hd_renewer_set(renewer, 4 * 3600);
	add_dir(1);
	its.ahead_ns += HOUR;
	meanwhile = ask_them_itself;
	(void)hd_renewer_begin(renewer, INT64_MAX);
	assert_true(hears(1, LONG));
	(void)hd_renewer_begin(renewer, INT64_MAX);
	assert_false(hears(2, 200000000));
	assert_false(hd_renewer_end(renewer));
}

static void a_run_that_there_is_no_memory_for_is_not_asked(void **state)
{
	struct hd_diag diag = { "" };

	(void)state;
	hd_renewer_set(renewer, 0.04);
	hd_alloc_arm(1);
	enum hd_err err = hd_renewer_add(renewer, dir, geteuid(), &diag);
	hd_alloc_arm(0);
	assert_int_equal(err, HD_E_NOMEM);
	(void)hd_renewer_begin(renewer, INT64_MAX);
	assert_false(hears(1, 200000000));
	assert_false(hd_renewer_end(renewer));
}

static void destroy_it(void)
{
	hd_renewer_destroy(renewer);
	renewer = NULL;
}

static void it_waits_for_one_question_when_it_must_go(void **state)
{
	(void)state;
	hd_renewer_set(renewer, 4 * 3600);
	add_dir(3);
	its.ahead_ns += HOUR;
	meanwhile = destroy_it;
	(void)hd_renewer_begin(renewer, INT64_MAX);
	assert_true(hears(1, LONG));
	assert_null(renewer);
	assert_false(hears(2, 200000000));
}

/* Without runs a look at the clock sends nothing, and moves nothing. */
static void a_quarter_without_runs_is_not_spent(void **state)
{
	(void)state;
	hd_renewer_set(renewer, 4 * 3600);
	its.ahead_ns += HOUR;
	const atomic_bool *stop = hd_renewer_begin(renewer, 0);
	while (!atomic_load(stop))
		hd_clock_wait_until(&clock_, hd_clock_now_ns(&clock_) + 1000000);
	assert_true(hd_renewer_end(renewer));
	add_dir(1);
	(void)hd_renewer_begin(renewer, INT64_MAX);
	assert_true(hears(1, LONG));
	assert_true(for_s == 4 * 3600);
	assert_false(hd_renewer_end(renewer));
}

static void a_lease_of_no_length_is_not_kept(void **state)
{
	(void)state;
	hd_renewer_set(renewer, 0);
	add_dir(1);
	(void)hd_renewer_begin(renewer, INT64_MAX);
	assert_false(hears(1, 200000000));
	assert_false(hd_renewer_end(renewer));
}

/* It looks at the clock a few times: one that does not sleep does so millions of times. */
static void looks_little(void)
{
	uint64_t before = its.reads;

	hd_clock_wait_until(&clock_, hd_clock_now_ns(&clock_) + 100000000);
	assert_true(its.reads - before < 100);
}

static void it_sleeps_where_there_is_nothing_to_do(void **state)
{
	(void)state;
	looks_little();                                    /* before the first decision */
	const atomic_bool *stop = hd_renewer_begin(renewer, 1000000);
	while (!atomic_load(stop))
		hd_clock_wait_until(&clock_, hd_clock_now_ns(&clock_) + 1000000);
	/* a decision that goes on after its stop flag is set */
	looks_little();
	assert_true(hd_renewer_end(renewer));
	looks_little();
}

static void without_memory_there_is_no_renewer(void **state)
{
	struct hd_lease_renewer *none = NULL;
	struct hd_diag diag = { "" };

	(void)state;
	hd_clock_real(&clock_);
	hd_alloc_arm(1);
	enum hd_err err = hd_renewer_create(&none, &clock_, &diag);
	hd_alloc_arm(0);
	assert_int_equal(err, HD_E_NOMEM);
	assert_non_null(strstr(diag.text, "no memory"));
	assert_null(none);
	hd_renewer_destroy(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_memory_there_is_no_renewer),
		cmocka_unit_test_setup_teardown(a_run_hears_of_its_scheduler_while_that_decides_and_no_longer,
		open_all, close_all),
		cmocka_unit_test_setup_teardown(short_decisions_and_runs_that_are_gone_ask_nothing, open_all,
		close_all),
		cmocka_unit_test_setup_teardown(a_decision_that_ends_ends_the_round, open_all, close_all),
		cmocka_unit_test_setup_teardown(a_quarter_counts_from_who_asked_last, open_all, close_all),
		cmocka_unit_test_setup_teardown(a_run_that_there_is_no_memory_for_is_not_asked, open_all,
		close_all),
		cmocka_unit_test_setup_teardown(it_waits_for_one_question_when_it_must_go, open_all,
		close_all),
		cmocka_unit_test_setup_teardown(a_quarter_without_runs_is_not_spent, open_all, close_all),
		cmocka_unit_test_setup_teardown(a_lease_of_no_length_is_not_kept, open_all, close_all),
		cmocka_unit_test_setup_teardown(it_sleeps_where_there_is_nothing_to_do, open_all, close_all),
		cmocka_unit_test_setup_teardown(many_short_decisions_are_as_one_that_is_long, open_all,
		close_all),
		cmocka_unit_test_setup_teardown(a_decision_that_takes_too_long_is_stopped, open_all,
		close_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
