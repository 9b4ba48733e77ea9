/* What the coordinator makes of workers' notices: the text of status, and when local workers may be started.
 * */
#include <stdio.h>
#include <string.h>

#include "driver/driver_int.h"
#include "tests/check.h"

#define S INT64_C(1000000000)
#define PREEMPT "{\"worker\":1,\"source\":\"ec2\",\"notice\":\"preempt\",\"lead_ms\":120000," \
	"\"deadline\":\"2017-09-18T08:22:00.000Z\",\"of\":\"machine\",\"text\":\"terminate\"}"
#define SIGNAL "{\"source\":\"signal\",\"notice\":\"preempt\",\"lead_ms\":10000,\"deadline\":\"soon\"," \
	"\"of\":\"process\",\"text\":\"SIGTERM\"}"
#define RISK "{\"source\":\"ec2-rebalance\",\"notice\":\"risk\",\"text\":\"rebalance recommendation\"}"
#define WITHDRAWN "{\"source\":\"ec2\",\"notice\":\"withdrawn\",\"text\":\"terminate\"}"
#define REMOTE 1000001                    /* as HD_REMOTE_WORKER counts */

static struct hd_clock_sim sim;
static struct hd_driver_spec spec;

static struct driver *begin(void)
{
	static struct driver c;

	hd_clock_sim(&sim, 1000 * S, 0);
	spec = (struct hd_driver_spec){ .clock = &sim.clock };
	memset(&c, 0, sizeof c);
	c.spec = &spec;
	return &c;
}

static void none_is_started_until_half_a_minute_after_the_end(void **state)
{
	struct driver *c = begin();

	(void)state;
	assert_true(driver_may_start(c));
	driver_noticed(c, 1, PREEMPT);
	assert_string_equal(driver_notice_of(c, 1), "ec2: terminate at 2017-09-18T08:22:00.000Z");
	assert_string_equal(driver_notice_of(c, 0), "");
	assert_false(driver_may_start(c));
	hd_clock_sim_advance(&sim, 150 * S - 1);
	assert_false(driver_may_start(c));
	hd_clock_sim_advance(&sim, 1);
	assert_true(driver_may_start(c));
}

static void a_notice_that_is_withdrawn_holds_for_the_worker_that_comes_back(void **state)
{
	struct driver *c = begin();

	(void)state;
	driver_noticed(c, 1, PREEMPT);
	driver_noticed(c, 1, WITHDRAWN);
	assert_string_equal(driver_notice_of(c, 1), "");
	assert_false(driver_may_start(c));
	hd_clock_sim_advance(&sim, 5 * S);
	assert_true(driver_may_start(c));
	/* a risk that is said after it changes nothing: the machine goes at that time */
	driver_noticed(c, 1, PREEMPT);
	driver_noticed(c, 1, RISK);
	assert_true(driver_is_announced(c, 1));
	assert_string_equal(driver_notice_of(c, 1), "ec2: terminate at 2017-09-18T08:22:00.000Z");
	hd_clock_sim_advance(&sim, 149 * S);
	assert_false(driver_may_start(c));
	driver_noticed(c, 1, WITHDRAWN);
	hd_clock_sim_advance(&sim, 6 * S);
	assert_true(driver_may_start(c));
	/* after a risk the end is news */
	driver_noticed(c, 1, RISK);
	driver_noticed(c, 1, PREEMPT);
	assert_true(driver_is_announced(c, 1));
	driver_noticed(c, 1, WITHDRAWN);
	hd_clock_sim_advance(&sim, 6 * S);
	/* another one's stands */
	driver_noticed(c, 2, PREEMPT);
	driver_noticed(c, 3, PREEMPT);
	driver_noticed(c, 2, WITHDRAWN);
	hd_clock_sim_advance(&sim, 6 * S);
	assert_false(driver_may_start(c));
}

static void risks_signals_remote_machines_and_garbage_hold_nothing(void **state)
{
	static const char *const bad[] = { "", "{", "[]", "{\"source\":\"ec2\"}",
		"{\"source\":1,\"notice\":\"preempt\"}",
		"{\"source\":\"ec2\",\"notice\":\"preempt\",\"text\":\"x\",\"lead_ms\":-5}" };
	struct driver *c = begin();

	(void)state;
	assert_true(hd_is_remote(REMOTE));
	driver_noticed(c, REMOTE, PREEMPT);
	driver_noticed(c, 4, RISK);
	driver_noticed(c, 5, SIGNAL);
	for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++)
		driver_noticed(c, 10 + i, bad[i]);
	assert_true(driver_may_start(c));
	assert_string_equal(driver_notice_of(c, 4), "ec2-rebalance: rebalance recommendation (a risk)");
	assert_string_equal(driver_notice_of(c, REMOTE), "ec2: terminate at 2017-09-18T08:22:00.000Z");
}

static void of_too_many_the_ones_that_end_first_are_forgotten(void **state)
{
	struct driver *c = begin();
	char text[300];

	(void)state;
	for (uint32_t i = 0; i < DRIVER_NOTICES + 3; i++) {
		snprintf(text, sizeof text,
			"{\"source\":\"azure\",\"notice\":\"preempt\",\"text\":\"Reboot\","
			"\"lead_ms\":%u,\"deadline\":\"soon\",\"of\":\"machine\"}", 1000 * (i + 1));
		driver_noticed(c, i, text);
	}
	for (uint32_t i = 0; i < DRIVER_NOTICES + 3; i++)
		CHECK(*driver_notice_of(c, i) == (i < 3 ? '\0' : 'a'), "worker %u", i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none_is_started_until_half_a_minute_after_the_end),
		cmocka_unit_test(a_notice_that_is_withdrawn_holds_for_the_worker_that_comes_back),
		cmocka_unit_test(risks_signals_remote_machines_and_garbage_hold_nothing),
		cmocka_unit_test(of_too_many_the_ones_that_end_first_are_forgotten),
	};
	return cmocka_run_group_tests_name("driver_notice", tests, NULL, NULL);
}
