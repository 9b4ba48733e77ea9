#include "timeline/analyze/replay.h"

#include "timeline/analyze/testing_train.h"
#include "tests/check.h"

static int64_t replayed(const struct hd_tl_causes *causes, struct hd_arena *arena,
	const struct hd_tl_whatif *whatif, int64_t *recorded)
{
	struct hd_tl_replayed r = { 0 };

	assert_int_equal(hd_tl_replay(causes, (struct hd_tl_range){ 0, HD_TL_TRAIN_STEPS - 1 }, whatif, arena,
		&r, NULL),
		HD_OK);
	if (recorded)
		*recorded = r.recorded;
	return r.replayed;
}

static void an_unchanged_run_takes_as_long_as_it_did(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (uint64_t seed = 0; seed < DRAWS(200); seed++) {
		const struct hd_tl_train c = hd_tl_train_of(seed);
		struct hd_tl_causes causes;
		const struct hd_tl_whatif none = hd_tl_as_recorded();
		int64_t recorded;
		const int64_t took = hd_tl_train_record(&c, &h);
		hd_tl_hand_made(&h, &causes);
		const int64_t again = replayed(&causes, &h.arena, &none, &recorded);
		CHECK(recorded == took && again == took, "seed %u: %lld recorded as %lld, replayed as %lld",
			(unsigned)seed, (long long)took, (long long)recorded, (long long)again);
		hd_arena_finish(&h.arena);
	}
}

/* The change is small enough that what is waited for stays the same in part, and large enough that it does
 * not in another: the truth is made by the costs, not by the recording. Rounding: 1 ns a transfer. */
static void other_bandwidth_and_no_waits_for_data_come_out_as_if_run(void **state)
{
	(void)state;
	static struct hd_tl_hand h[2];
	double worst = 0, sum = 0;
	const uint32_t n = DRAWS(200);

	for (uint64_t seed = 0; seed < n; seed++) {
		struct hd_tl_train c = hd_tl_train_of(seed);
		struct hd_tl_causes causes;
		struct hd_tl_whatif w = hd_tl_as_recorded();
		hd_tl_train_record(&c, &h[0]);
		hd_tl_hand_made(&h[0], &causes);
		w.bandwidth = seed % 2 ? 4 : 1;
		w.data = seed % 2 ? 1 : 0;
		for (int s = 0; s < HD_TL_TRAIN_STEPS && seed % 2 == 0; s++)
			for (int p = 0; p < HD_TL_TRAIN_PROCESSES; p++)
				c.data[s][p] = 0;
		for (int p = 0; p < HD_TL_TRAIN_PROCESSES * HD_TL_TRAIN_PROCESSES && seed % 2; p++)
			c.wire[p / HD_TL_TRAIN_PROCESSES][p % HD_TL_TRAIN_PROCESSES] /= 4;
		c.gate = seed % 2 ? 1 : c.gate;
		c.queue = seed % 2 ? 2 : c.queue;
		const int64_t truth = hd_tl_train_record(&c, &h[1]), got = replayed(&causes, &h[0].arena, &w,
			NULL);
		const double off = (double)(got > truth ? got - truth : truth - got) / (double)truth;
		worst = off > worst ? off : worst;
		sum += off;
		hd_arena_finish(&h[0].arena);
		hd_arena_finish(&h[1].arena);
	}
	/* a transfer that nothing waited for is in no wait of the recording, and may be the last of the
		change */
	CHECK(sum / n < 0.01 && worst < 0.05, "off by %g on average, %g at worst", sum / n, worst);
}

static void faster_devices_come_out_as_if_run(void **state)
{
	(void)state;
	static struct hd_tl_hand h[2];

	for (uint64_t seed = 0; seed < DRAWS(100); seed++) {
		struct hd_tl_train c = hd_tl_train_of(seed);
		struct hd_tl_causes causes;
		struct hd_tl_whatif w = hd_tl_as_recorded();
		hd_tl_train_record(&c, &h[0]);
		hd_tl_hand_made(&h[0], &causes);
		w.compute = 2;
		for (int i = 0; i < HD_TL_TRAIN_STEPS * HD_TL_TRAIN_PROCESSES; i++)
			c.work[i / HD_TL_TRAIN_PROCESSES][i % HD_TL_TRAIN_PROCESSES] /= 2;
		const int64_t truth = hd_tl_train_record(&c, &h[1]), got = replayed(&causes, &h[0].arena, &w,
			NULL);
		CHECK(got > truth - truth / 100 && got < truth + truth / 100, "seed %u: %lld, not %lld",
			(unsigned)seed, (long long)got, (long long)truth);
		for (int i = 0; i < 2; i++)
			hd_arena_finish(&h[i].arena);
	}
}

/* Each fourth step all transfers come late: none of them by the channels of one process. Rounding: 1 ns a
 * transfer. */
static void transfers_that_vary_alike_are_no_gain(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (uint32_t p = 0; p < HD_TL_TRAIN_PROCESSES; p++) {
		struct hd_tl_train c = hd_tl_train_of(p);
		struct hd_tl_causes causes;
		struct hd_tl_whatif w = hd_tl_as_recorded();
		int64_t recorded;
		for (int i = 0; i < HD_TL_TRAIN_PROCESSES * HD_TL_TRAIN_PROCESSES; i++)
			c.wire[i / HD_TL_TRAIN_PROCESSES][i % HD_TL_TRAIN_PROCESSES] = 300;
		for (int s = 0; s < HD_TL_TRAIN_STEPS; s += 4)
			c.late[s] = 9000;
		hd_tl_train_record(&c, &h);
		hd_tl_hand_made(&h, &causes);
		w.process = p;
		w.channels = true;
		const int64_t got = replayed(&causes, &h.arena, &w, &recorded);
		CHECK(got <= recorded && got > recorded - 6 * HD_TL_TRAIN_STEPS, "process %u: %lld, not %lld",
			p, (long long)got, (long long)recorded);
		hd_arena_finish(&h.arena);
	}
}

static void a_slow_process_at_the_median_is_as_if_it_were_as_fast(void **state)
{
	(void)state;
	static struct hd_tl_hand h[2];

	for (uint64_t seed = 0; seed < DRAWS(100); seed++) {
		struct hd_tl_train c = hd_tl_train_of(seed), fast;
		struct hd_tl_causes causes;
		struct hd_tl_whatif w = hd_tl_as_recorded();
		for (int s = 0; s < HD_TL_TRAIN_STEPS; s++)
			for (int p = 0; p < HD_TL_TRAIN_PROCESSES; p++) {
				c.work[s][p] = p == 1 ? 6000 : 2000;
				c.data[s][p] = 0;
			}
		fast = c;
		for (int s = 0; s < HD_TL_TRAIN_STEPS; s++)
			fast.work[s][1] = 2000;
		hd_tl_train_record(&c, &h[0]);
		hd_tl_hand_made(&h[0], &causes);
		w.process = 1;
		w.work = true;
		const int64_t truth = hd_tl_train_record(&fast, &h[1]), got = replayed(&causes, &h[0].arena,
			&w, NULL);
		CHECK(got > truth - truth / 20 && got < truth + truth / 20, "seed %u: %lld, not %lld",
			(unsigned)seed, (long long)got, (long long)truth);
		w.process = 0;            /* it is as fast as the others already: no change */
		int64_t recorded;
		const int64_t same = replayed(&causes, &h[0].arena, &w, &recorded);
		CHECK(same > recorded - recorded / 50, "seed %u: %lld", (unsigned)seed, (long long)same);
		for (int i = 0; i < 2; i++)
			hd_arena_finish(&h[i].arena);
	}
}

/* Steps of a first life, a pause, steps of a second one; the last of them after two that are not recorded. */
static void a_pause_between_two_lives_is_no_step(void **state)
{
	(void)state;
	static struct hd_tl_hand h;
	static const struct { uint64_t first, last, want; } row[] = {
		{ 0, 9, 5 }, { 0, 4, 0 }, { 6, 9, 6 }, { 0, 13, 12 }, { 12, 13, 12 } };
	struct hd_tl_causes causes;
	const struct hd_tl_whatif none = hd_tl_as_recorded();

	hd_tl_hand_init(&h, 3);
	for (uint32_t s = 0; s < 14; s++) {
		/* process 2 comes in the middle of the second life: no pause */
		const int64_t t = s < 5 ? 100 * s : 1000000 + 100 * s;
		if (s == 10 || s == 11)
			continue;
		hd_tl_hand_op(&h, s >= 5, 1, t, t + 90);
		if (s >= 7)
			hd_tl_hand_op(&h, 2, 1, t, t + 80);
	}
	for (uint32_t p = 0; p < 3; p++)
		for (uint32_t s = p == 0 ? 0 : p == 1 ? 5 : 7; s < (p ? 14 : 5); s++)
			if (s != 10 && s != 11)
				hd_tl_hand_step(&h, p, s, (p ? 1000000 : 0) + 100 * s, (p ? 1000000 : 0) +
					100 * s + 100);
	hd_tl_hand_made(&h, &causes);
	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		struct hd_tl_range range = { row[i].first, row[i].last };
		struct hd_tl_replayed r;
		hd_tl_range_unbroken(&causes, &range);
		CHECK(range.first == row[i].want && range.last == row[i].last, "row %zu: from %llu", i,
			(unsigned long long)range.first);
		assert_int_equal(hd_tl_replay(&causes, range, &none, &h.arena, &r, NULL), HD_OK);
		CHECK(r.recorded == 100 * (int64_t)(range.last - range.first + 1), "row %zu: %lld ns", i,
			(long long)r.recorded);
	}
	hd_arena_finish(&h.arena);
}

/* The fewest that are enough, and all where none are. */
static void a_range_is_as_long_as_it_is_asked_to_be(void **state)
{
	(void)state;
	static struct hd_tl_hand h;
	struct hd_tl_causes causes;
	static const struct { uint64_t least; int64_t ns; uint64_t first; } row[] = {
		{ 1, 0, 99 }, { 1, 100, 99 }, { 1, 101, 98 }, { 20, 0, 80 }, { 20, 2000, 80 }, { 20, 2001, 79 },
		{ 20, 9900, 1 }, { 20, 10001, 0 }, { 500, 0, 0 }, { 500, INT64_MAX, 0 },
	};

	hd_tl_hand_init(&h, 2);
	for (uint32_t p = 0; p < 2; p++)
		for (uint32_t s = 0; s < 100; s++) {
			hd_tl_hand_op(&h, p, 1, 100 * s, 100 * s + 100);
			hd_tl_hand_step(&h, p, s, 100 * s, 100 * s + 100);
		}
	hd_tl_hand_made(&h, &causes);
	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		struct hd_tl_range range;
		assert_int_equal(hd_tl_range_long(&h.tl, row[i].least, row[i].ns, &range, NULL), HD_OK);
		CHECK(range.first == row[i].first && range.last == 99, "row %zu: from %llu", i,
			(unsigned long long)range.first);
	}
	hd_arena_finish(&h.arena);
	hd_tl_hand_init(&h, 2);
	hd_tl_hand_made(&h, &causes);
	struct hd_tl_range none;
	assert_int_equal(hd_tl_range_long(&h.tl, 20, 100, &none, NULL), HD_E_NOTFOUND);
	hd_arena_finish(&h.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unchanged_run_takes_as_long_as_it_did),
		cmocka_unit_test(other_bandwidth_and_no_waits_for_data_come_out_as_if_run),
		cmocka_unit_test(faster_devices_come_out_as_if_run),
		cmocka_unit_test(transfers_that_vary_alike_are_no_gain),
		cmocka_unit_test(a_slow_process_at_the_median_is_as_if_it_were_as_fast),
		cmocka_unit_test(a_pause_between_two_lives_is_no_step),
		cmocka_unit_test(a_range_is_as_long_as_it_is_asked_to_be),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
