#include "spot/meter.h"

#include <string.h>

#include "base/philox.h"
#include "tests/check.h"

static struct hd_meter meter, again;

static void empty(void) { memset(&meter, 0, sizeof meter); }

static void has(const int64_t want[HD_NLEDGER])
{
	for (int p = 0; p < HD_NLEDGER; p++)
		CHECK(meter.ledger.ms[p] == want[p], "%s: %lld, not %lld", hd_ledger_names[p],
			(long long)meter.ledger.ms[p], (long long)want[p]);
}

static void a_step_divides_by_what_its_worker_says(void **state)
{
	const struct hd_meter_share waits = { .step_ns = 50000000, .wait_ns = 20000000, .redone = 1,
		.own = 3 },
		waits_long = { .step_ns = 1, .wait_ns = INT64_C(9000000000) };
	(void)state;

	empty();
	struct hd_meter_machine *a = hd_meter_come(&meter, 7, 1000, 3600000000);
	assert_ptr_equal(hd_meter_come(&meter, 7, 5000, 1), a);
	hd_meter_does(&meter, a, HD_METER_WAITS, 1300);
	hd_meter_does(&meter, a, HD_METER_STEPS, 1340);
	hd_meter_commit(&meter, a, 0, &waits, 1440);
	hd_meter_committed(&meter, 0);
	/* 100 ms: 20 of waiting, a quarter of 80 computed again */
	has((int64_t[HD_NLEDGER]){ [HD_LEDGER_BOOT] = 300, [HD_LEDGER_WAITING] = 40, [HD_LEDGER_BUBBLE] = 20,
		[HD_LEDGER_REDO] = 20, [HD_LEDGER_USEFUL] = 60 });
	/* a loss within a step: a pause, and the step goes on; it waited no longer than it took */
	hd_meter_does(&meter, a, HD_METER_PAUSES, 1450);
	hd_meter_does(&meter, a, HD_METER_STEPS, 1480);
	hd_meter_commit(&meter, a, 1, &waits_long, 1500);
	hd_meter_committed(&meter, 1);
	has((int64_t[HD_NLEDGER]){ [HD_LEDGER_BOOT] = 300, [HD_LEDGER_WAITING] = 40, [HD_LEDGER_BUBBLE] = 50,
		[HD_LEDGER_REDO] = 20, [HD_LEDGER_USEFUL] = 60, [HD_LEDGER_PAUSE] = 30 });
	/* back to a checkpoint: the step was committed before */
	hd_meter_does(&meter, a, HD_METER_REBUILDS, 1500);
	hd_meter_does(&meter, a, HD_METER_STEPS, 1600);
	hd_meter_commit(&meter, a, 1, NULL, 1611);
	hd_meter_committed(&meter, 1);
	hd_meter_commit(&meter, a, 2, NULL, 1631);
	/* an open step, and time that goes back */
	struct hd_spot_ledger now;
	hd_meter_now(&meter, 1635, &now);
	assert_true(now.ms[HD_LEDGER_USEFUL] == 84 && meter.ledger.ms[HD_LEDGER_USEFUL] == 80);
	hd_meter_does(&meter, a, HD_METER_STEPS, 100);
	hd_meter_go(&meter, a, 1640);
	has((int64_t[HD_NLEDGER]){ [HD_LEDGER_BOOT] = 300, [HD_LEDGER_WAITING] = 40, [HD_LEDGER_BUBBLE] = 50,
		[HD_LEDGER_REDO] = 40, [HD_LEDGER_USEFUL] = 80, [HD_LEDGER_PAUSE] = 30,
		[HD_LEDGER_REBUILD] = 100 });
	assert_null(hd_meter_find(&meter, 7));
	/* 640 ms at 3.6 dollars an hour: a thousand nano-dollars each */
	struct hd_ledger_sum sum;
	assert_true(hd_ledger_sum(&meter.ledger, &sum) && sum.ms == 640 && sum.nano_usd == 640000);
}

/* The last step is committed, and the machine writes a checkpoint and ends: nothing was lost. */
static void what_rests_leaves_no_step(void **state)
{
	(void)state;

	empty();
	struct hd_meter_machine *a = hd_meter_come(&meter, 7, 0, 3600000000);
	hd_meter_does(&meter, a, HD_METER_STEPS, 10);
	hd_meter_commit(&meter, a, 0, NULL, 30);
	hd_meter_committed(&meter, 0);
	hd_meter_does(&meter, a, HD_METER_STEPS, 34);
	hd_meter_rest(&meter, a, 35);
	has((int64_t[HD_NLEDGER]){ [HD_LEDGER_BOOT] = 10, [HD_LEDGER_USEFUL] = 20, [HD_LEDGER_WAITING] = 5 });
	hd_meter_rest(&meter, a, 40);
	hd_meter_go(&meter, a, 50);
	has((int64_t[HD_NLEDGER]){ [HD_LEDGER_BOOT] = 10, [HD_LEDGER_USEFUL] = 20,
		[HD_LEDGER_WAITING] = 20 });
}

/* A step of 10 ms waits 2.6 and does 0.7 for a loss: of ten of them not a millisecond is rounded away. */
static void what_is_below_a_millisecond_is_not_lost(void **state)
{
	const struct hd_meter_share share = { .step_ns = 10000000, .wait_ns = 2600000,
		.redundant_ns = 700000, .own = 4 };
	(void)state;

	empty();
	struct hd_meter_machine *a = hd_meter_come(&meter, 7, 0, 3600000000);
	hd_meter_does(&meter, a, HD_METER_STEPS, 0);
	for (uint64_t step = 0; step < 10; step++) {
		hd_meter_commit(&meter, a, step, &share, 10 * (int64_t)(step + 1));
		hd_meter_committed(&meter, step);
	}
	has((int64_t[HD_NLEDGER]){ [HD_LEDGER_BUBBLE] = 26, [HD_LEDGER_REDUNDANT] = 7,
		[HD_LEDGER_USEFUL] = 67 });
	/* no more than the step took, and waiting comes first; of the rest a quarter was computed again */
	const struct hd_meter_share more = { .step_ns = 1, .wait_ns = 6000000, .redundant_ns = UINT64_MAX },
		redoes = { .step_ns = 1, .wait_ns = 2000000, .redundant_ns = 4000000, .redone = 1,
		.own = 3 };
	hd_meter_commit(&meter, a, 10, &more, 110);
	hd_meter_committed(&meter, 10);
	hd_meter_commit(&meter, a, 11, &redoes, 124);
	has((int64_t[HD_NLEDGER]){ [HD_LEDGER_BUBBLE] = 34, [HD_LEDGER_REDUNDANT] = 15, [HD_LEDGER_REDO] = 2,
		[HD_LEDGER_USEFUL] = 73 });
}

/* Whatever happens, in whatever order: the parts are all that was paid, machine by machine. */
static void the_parts_are_all_of_the_paid_time(void **state)
{
	int64_t paid = 0, now = 0, from[8], sum = 0;
	bool there[8] = { false };
	uint64_t step = 0;
	(void)state;

	empty();
	for (uint32_t i = 0; i < 20000; i++) {
		const struct hd_philox x = hd_philox((const uint32_t[4]){ i, 0, 0, 0 }, 42);
		const uint32_t id = x.word[0] % 8;
		const struct hd_meter_share share = { .step_ns = x.word[1], .wait_ns = x.word[2] % 40000000,
			.redundant_ns = x.word[1] % 9000000,
			.redone = x.word[3] % 3, .own = x.word[3] / 3 % 4 };
		struct hd_meter_machine *m = hd_meter_find(&meter, id);
		now += x.word[1] % 20;
		if (!m && there[id])
			CHECK(false, "machine %u is lost", id);
		if (!m) {
			from[id] = now - (int64_t)(x.word[2] % 5);
			there[id] = hd_meter_come(&meter, id, from[id], 910000000) != NULL;
		} else if (x.word[3] % 16 == 0) {
			hd_meter_go(&meter, m, now);
			paid += now - from[id];
			there[id] = false;
		} else if (x.word[3] % 16 == 15) {
			hd_meter_rest(&meter, m, now);
		} else if (x.word[3] % 16 < 8) {
			hd_meter_commit(&meter, m, step, &share, now);
			hd_meter_committed(&meter, step);
			step = x.word[2] % 11 ? step + 1 : step / 2;
		} else {
			hd_meter_does(&meter, m, x.word[2] % HD_METER_NDOES, now);
		}
		if (x.word[3] % 64 == 9) {        /* another coordinator goes on with it */
			uint8_t bytes[HD_METER_BYTES];
			int64_t at = 0;
			uint32_t len = hd_meter_put(&meter, now, bytes);
			memset(&again, 1, sizeof again);
			assert_true(hd_meter_get(&again, &at, bytes, len) && at == now);
			assert_false(hd_meter_get(&again, &at, bytes, len - 1));
			meter = again;
		}
	}
	for (uint32_t id = 0; id < 8; id++)
		if (there[id])
			paid += now - from[id];
	struct hd_spot_ledger last;
	struct hd_ledger_sum all;
	hd_meter_now(&meter, now, &last);
	for (int p = 0; p < HD_NLEDGER; p++) {
		assert_true(last.ms[p] >= 0);
		sum += last.ms[p];
	}
	assert_true(hd_ledger_sum(&last, &all));
	CHECK(sum == paid && all.ms == paid, "%lld of %lld", (long long)sum, (long long)paid);
	assert_true(all.nano_usd == paid * 910000000 / 3600000);
	assert_true(last.ms[HD_LEDGER_REDO] > 0 && last.ms[HD_LEDGER_PAUSE] > 0 &&
		last.ms[HD_LEDGER_BUBBLE] > 0 && last.ms[HD_LEDGER_REDUNDANT] > 0);
}

static void bytes_that_are_none_are_refused(void **state)
{
	uint8_t bytes[HD_METER_BYTES];
	int64_t at;
	(void)state;

	empty();
	(void)hd_meter_come(&meter, 1, 0, 5);
	const uint32_t len = hd_meter_put(&meter, 9, bytes);
	assert_int_equal(len, HD_METER_HEAD + HD_METER_ENTRY);
	bytes[len - 4] = HD_METER_NDOES;
	assert_false(hd_meter_get(&again, &at, bytes, len));
	(void)hd_meter_put(&meter, 9, bytes);
	bytes[8 * 2 + 7] = 0x80;
	assert_false(hd_meter_get(&again, &at, bytes, len));
	assert_false(hd_meter_get(&again, &at, bytes, HD_METER_HEAD - 1));
	/* times that no coordinator writes: its own; when a machine's last part began, how long its step is
	 * open */
	static const struct { uint32_t at; uint64_t is; bool taken; } time[] = {
		{ 0, (uint64_t)HD_METER_MS_MOST, true }, { 0, (uint64_t)HD_METER_MS_MOST + 1, false },
		{ 0, UINT64_MAX, false }, { 0, INT64_MAX, false },
		{ HD_METER_HEAD + 16, (uint64_t)HD_METER_MS_MOST + 1, false },
		{ HD_METER_HEAD + 16, UINT64_MAX, true }, { HD_METER_HEAD + 16, UINT64_C(1) << 63, false },
		{ HD_METER_HEAD + 24, (uint64_t)HD_METER_MS_MOST + 1, false },
		{ HD_METER_HEAD + 24, (uint64_t)HD_METER_MS_MOST, true },
	};
	for (size_t i = 0; i < sizeof time / sizeof *time; i++) {
		assert_int_equal(hd_meter_put(&meter, 9, bytes), len);
		for (int b = 0; b < 8; b++)
			bytes[time[i].at + (uint32_t)b] = (uint8_t)(time[i].is >> 8 * b);
		CHECK(hd_meter_get(&again, &at, bytes, len) == time[i].taken, "row %zu", i);
	}
	empty();
	for (uint64_t i = 0; i < HD_METER_MACHINES; i++)
		assert_non_null(hd_meter_come(&meter, i, 0, 5));
	assert_null(hd_meter_come(&meter, HD_METER_MACHINES, 0, 5));
	assert_int_equal(hd_meter_put(&meter, 0, bytes), HD_METER_BYTES);
}

/* The boot and the monotonic clock say what passed; no other clock is asked. */
static void time_goes_on_over_coordinators_of_one_boot_and_stands_over_another(void **state)
{
	static const uint8_t boot[HD_METER_BOOT] = { 7, 1 }, other[HD_METER_BOOT] = { 8 };
	static const int64_t ms = 1000000;
	uint8_t bytes[HD_METER_CLOCK_BYTES];
	struct hd_meter_clock c, next;
	(void)state;

	hd_meter_clock_begin(&c, boot, 500 * ms);
	assert_true(hd_meter_clock_ms(&c, 500 * ms) == 0 && hd_meter_clock_ms(&c, 1700 * ms) == 1200);
	hd_meter_clock_put(&c, bytes);
	/* written at 1200, taken over 300 ms after that */
	hd_meter_clock_follow(&next, bytes, 1200, boot, 2000 * ms);
	assert_int_equal(hd_meter_clock_ms(&next, 2000 * ms), 1500);
	hd_meter_clock_put(&next, bytes);
	assert_int_equal(hd_meter_clock_ms(&next, 2200 * ms), 1700);
	/* after a restart of the machine, whose clock begins again; or on another one, that has been up for
	 * long */
	hd_meter_clock_follow(&next, bytes, 1700, other, 30 * ms);
	assert_true(hd_meter_clock_ms(&next, 30 * ms) == 1700 && hd_meter_clock_ms(&next, 40 * ms) == 1710);
	hd_meter_clock_put(&next, bytes);
	hd_meter_clock_follow(&next, bytes, 1710, boot, INT64_C(90000000) * ms);
	assert_int_equal(hd_meter_clock_ms(&next, INT64_C(90000000) * ms), 1710);
	/* of a program that kept no clock; a record of what is to come */
	hd_meter_clock_follow(&next, NULL, 42, boot, 9 * ms);
	assert_int_equal(hd_meter_clock_ms(&next, 9 * ms), 42);
	hd_meter_clock_put(&next, bytes);
	hd_meter_clock_follow(&next, bytes, 5000, boot, 9 * ms);
	assert_int_equal(hd_meter_clock_ms(&next, 9 * ms), 5000);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_goes_on_over_coordinators_of_one_boot_and_stands_over_another),
		cmocka_unit_test(a_step_divides_by_what_its_worker_says),
		cmocka_unit_test(what_rests_leaves_no_step),
		cmocka_unit_test(what_is_below_a_millisecond_is_not_lost),
		cmocka_unit_test(the_parts_are_all_of_the_paid_time),
		cmocka_unit_test(bytes_that_are_none_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
