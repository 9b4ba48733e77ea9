#include "sys/clock.h"

#include <stdlib.h>

#include "tests/check.h"

static void the_machines_clock_does_not_go_back(void **state)
{
	struct hd_clock clock;

	(void)state;
	hd_clock_real(&clock);
	int64_t before = hd_clock_now_ns(&clock);
	for (int i = 0; i < 1000; i++) {
		int64_t now = hd_clock_now_ns(&clock);
		assert_true(now >= before);
		before = now;
	}
	hd_clock_wait_until(&clock, before + HD_NS_PER_MS);
	assert_true(hd_clock_now_ns(&clock) >= before + HD_NS_PER_MS);
	hd_clock_wait_until(&clock, -5);
	assert_true(hd_clock_wall_ns(&clock) > 1600000000 * HD_NS_PER_S);
}

static void a_simulated_wait_moves_the_time_to_its_deadline(void **state)
{
	struct hd_clock_sim sim;

	(void)state;
	hd_clock_sim(&sim, 100, 5000);
	hd_clock_wait_until(&sim.clock, 1100);
	assert_int_equal(hd_clock_now_ns(&sim.clock), 1100);
	assert_int_equal(hd_clock_wall_ns(&sim.clock), 6000);
	hd_clock_wait_until(&sim.clock, 50);
	assert_int_equal(hd_clock_now_ns(&sim.clock), 1100);
	hd_clock_sim_jump(&sim, -5900);
	assert_int_equal(hd_clock_now_ns(&sim.clock), 1100);
	assert_int_equal(hd_clock_wall_ns(&sim.clock), 100);
}

static void raw_and_boot_time_do_not_go_back(void **state)
{
	uint64_t raw = hd_clock_raw_ns();
	int64_t boot = hd_clock_boot_ns();

	(void)state;
	for (int i = 0; i < 1000; i++) {
		uint64_t raw_next = hd_clock_raw_ns();
		int64_t boot_next = hd_clock_boot_ns();
		assert_true(raw_next >= raw && boot_next >= boot && raw > 0 && boot > 0);
		raw = raw_next;
		boot = boot_next;
	}
}

/* Of a thread that works some is used, of one that waits next to none: less than half of what the wait
 * takes. */
static void a_thread_that_waits_uses_no_processor(void **state)
{
	struct hd_clock clock, own;
	volatile uint64_t sum = 0;

	(void)state;
	hd_clock_real(&clock);
	int64_t began = hd_clock_thread_ns();
	for (uint64_t i = 0; i < 100000; i++)
		sum += i;
	assert_true(sum > 0 && hd_clock_thread_ns() > began);
	hd_clock_thread(&own);
	assert_true(hd_clock_now_ns(&own) > began);
	hd_clock_wait_until(&own, hd_clock_now_ns(&own) + HD_NS_PER_MS);
	assert_true(hd_clock_thread_ns() >= began + HD_NS_PER_MS);
	began = hd_clock_thread_ns();
	int64_t wall = hd_clock_now_ns(&clock);
	hd_clock_wait_until(&clock, wall + 20 * HD_NS_PER_MS);
	assert_true(2 * (hd_clock_thread_ns() - began) < hd_clock_now_ns(&clock) - wall);
}

static void wall_time_is_written_as_rfc_3339(void **state)
{
	/* seconds from date(1): date -u -d 2026-01-31T23:59:59Z +%s */
	static const struct { int64_t ns; const char *text; } cases[] = {
		{ 0, "1970-01-01T00:00:00.000Z" },
		{ 1769903999 * HD_NS_PER_S + 123999999, "2026-01-31T23:59:59.123Z" },
		{ 1709164800 * HD_NS_PER_S, "2024-02-29T00:00:00.000Z" },
		{ -1, "1969-12-31T23:59:59.999Z" },
	};
	char text[HD_CLOCK_TEXT];

	(void)state;
	assert_int_equal(setenv("TZ", "Asia/Tokyo", 1), 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		hd_clock_text(cases[i].ns, text);
		assert_string_equal(text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_machines_clock_does_not_go_back),
		cmocka_unit_test(a_simulated_wait_moves_the_time_to_its_deadline),
		cmocka_unit_test(raw_and_boot_time_do_not_go_back),
		cmocka_unit_test(a_thread_that_waits_uses_no_processor),
		cmocka_unit_test(wall_time_is_written_as_rfc_3339),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
