#include "worker/elastic_int.h"

#include "sys/thread.h"
#include "tests/check.h"

/* Which thread takes up the results of the compute thread, and when the other one is woken. Machine, hub and
 * results are stand-ins here. */

static struct hd_elastic e;
static struct hd_clock_sim sim;
static struct hd_elastic_spec spec;
static struct hd_view view;
static bool has_view;
static enum hd_member_state member_state;
static int64_t hub_due_ns;
static uint32_t taken_up, woken;

const struct hd_view *hd_member_view(const struct hd_member *m) { (void)m; return has_view ? &view : NULL; }
enum hd_member_state hd_member_state(const struct hd_member *m) { (void)m; return member_state; }
int64_t hd_hub_due_ns(const struct hd_hub *hub) { (void)hub; return hub_due_ns; }
void hd_hub_wake(struct hd_hub *hub) { (void)hub; woken++; }
enum hd_err hd_relay_mail(struct hd_relay *r, struct hd_diag *diag) { (void)r; (void)diag; return HD_OK; }
void hd_elastic_slots_later(struct hd_elastic *of) { (void)of; }
void hd_elastic_fail(struct hd_elastic *of, enum hd_err err, const struct hd_diag *diag)
{
	(void)of;
	(void)err;
	fail_msg("%s", diag->text);
}
void hd_elastic_feed(struct hd_elastic *of, const struct hd_member_event *event) { (void)of; (void)event; }
void hd_elastic_results(struct hd_elastic *of)
{
	(void)of;
	assert_false(hd_lock_try(&e.turn));       /* with the turn */
	taken_up++;
}

/* One member that trains, its I/O thread at rest, and nothing to be said. */
static int begin(void **state)
{
	(void)state;
	hd_clock_sim(&sim, 5000, 0);
	spec = (struct hd_elastic_spec){ .clock = &sim.clock };
	e = (struct hd_elastic){ .spec = &spec };
	hd_lock_init(&e.turn);
	hd_lock_init(&e.notes_lock);
	for (uint32_t i = 0; i < HD_ELASTIC_TRANSFERS; i++)
		e.transfer[i].worker = HD_NOBODY;
	view = (struct hd_view){ .epoch = 1, .nmembers = 1 };
	has_view = true;
	member_state = HD_MEMBER;
	hub_due_ns = 5001;
	taken_up = woken = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	assert_true(hd_lock_try(&e.turn));       /* it was given back */
	hd_lock_give(&e.turn);
	hd_lock_finish(&e.turn);
	hd_lock_finish(&e.notes_lock);
	return 0;
}

static void alone_a_worker_goes_on_by_itself(void **state)
{
	(void)state;
	hd_elastic_done(&e);
	assert_true(taken_up == 1 && woken == 0);
	hub_due_ns = 5000;                        /* a message waits */
	hd_elastic_done(&e);
	assert_true(taken_up == 2 && woken == 1);
}

static void what_only_the_other_thread_does_is_left_to_it(void **state)
{
	(void)state;
	view.nmembers = 2;
	hd_elastic_done(&e);
	view.nmembers = 1;
	has_view = false;
	hd_elastic_done(&e);
	has_view = true;
	member_state = HD_HALTED;
	hd_elastic_done(&e);
	member_state = HD_MEMBER;
	e.leaving = true;
	hd_elastic_done(&e);
	e.leaving = false;
	e.stepping = true;                        /* it waits in the midst of an event */
	hd_elastic_done(&e);
	e.stepping = false;
	e.transfer[HD_ELASTIC_TRANSFERS - 1].worker = 3;
	hd_elastic_done(&e);
	assert_true(taken_up == 0 && woken == 6);
}

static void other(void *user)
{
	(void)user;
	hd_elastic_done(&e);
}

/* Whether it was alone when it had the turn last, it knows; not what has become of that since. */
static void a_turn_that_is_taken_is_waited_for_alone(void **state)
{
	struct hd_thread thread;

	(void)state;
	hd_elastic_done(&e);
	assert_true(taken_up == 1 && woken == 0 && e.alone);
	hd_elastic_yield(&e, false);
	assert_int_equal(hd_thread_start(&thread, "compute", -1, other, NULL, NULL), HD_OK);
	view.nmembers = 2;
	hd_elastic_yield(&e, true);
	hd_thread_join(&thread);
	assert_true(taken_up == 1 && woken == 1 && !e.alone);
	view.nmembers = 1;
	e.alone = true;
	hd_elastic_yield(&e, false);
	assert_int_equal(hd_thread_start(&thread, "compute", -1, other, NULL, NULL), HD_OK);
	hd_elastic_yield(&e, true);
	hd_thread_join(&thread);
	assert_true(taken_up == 2 && woken == 1);
}

/* Else it might not get the turn for as long as steps are short. */
static void a_thread_that_comes_back_is_let_in_first(void **state)
{
	(void)state;
	e.comes_back = e.alone = true;
	hd_elastic_done(&e);
	assert_true(taken_up == 0 && woken == 1);
	hd_elastic_yield(&e, false);
	assert_false(e.comes_back);
	hd_elastic_yield(&e, true);
	hd_elastic_done(&e);
	assert_true(taken_up == 1 && woken == 1);
}

static void a_turn_that_is_taken_is_not_waited_for_else(void **state)
{
	struct hd_thread thread;

	(void)state;
	hd_elastic_yield(&e, false);
	assert_int_equal(hd_thread_start(&thread, "compute", -1, other, NULL, NULL), HD_OK);
	hd_thread_join(&thread);
	assert_true(taken_up == 0 && woken == 1);
	hd_elastic_yield(&e, true);
	assert_int_equal(hd_thread_start(&thread, "compute", -1, other, NULL, NULL), HD_OK);
	hd_thread_join(&thread);
	assert_true(taken_up == 1 && woken == 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(alone_a_worker_goes_on_by_itself, begin, end),
		cmocka_unit_test_setup_teardown(what_only_the_other_thread_does_is_left_to_it, begin, end),
		cmocka_unit_test_setup_teardown(a_turn_that_is_taken_is_waited_for_alone, begin, end),
		cmocka_unit_test_setup_teardown(a_thread_that_comes_back_is_let_in_first, begin, end),
		cmocka_unit_test_setup_teardown(a_turn_that_is_taken_is_not_waited_for_else, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
