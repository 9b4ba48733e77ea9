#include "sys/usage.h"

#include "sys/clock.h"
#include "sys/thread.h"
#include "tests/check.h"

struct other { struct hd_usage *usage; bool known; uint64_t ran, waited; };

static void spin(int64_t ns)
{
	const int64_t until = hd_clock_thread_ns() + ns;

	while (hd_clock_thread_ns() < until)
		;
}

static void read_other(void *user)
{
	struct other *o = user;

	o->known = hd_usage_read(o->usage, &o->ran, &o->waited);
}

/* The clock of the thread is another count of the same. */
static void a_thread_has_run_at_least_what_its_clock_says_between(void **state)
{
	(void)state;
	struct hd_usage usage = HD_USAGE_CLOSED;
	uint64_t ran, waited, later, still;

	if (!hd_usage_read(&usage, &ran, &waited))
		SKIP("the system does not count what threads wait for processors");
	spin(20000000);
	assert_true(hd_usage_read(&usage, &later, &still));
	assert_true(later >= ran + 15000000 && still >= waited);
	/* a thread of its own counts its own */
	struct other other = { .usage = &usage };
	struct hd_thread thread;
	assert_int_equal(hd_thread_start(&thread, "other", -1, read_other, &other, NULL), HD_OK);
	hd_thread_join(&thread);
	assert_true(other.known && other.ran < later);
	assert_true(hd_usage_read(&usage, &ran, &waited) && ran >= later);
	hd_usage_close(&usage);
	hd_usage_close(&usage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_has_run_at_least_what_its_clock_says_between),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
