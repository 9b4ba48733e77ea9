#include "driver/fairness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "driver/reshape.h"
#include "tests/check.h"

/* Workers of one process, in time that is computed: each reads what its virtual nodes need of a step while
 * the step before computes, so it waits for what reading takes beyond computing. The store is shared by
 * depth: of its rate each has what its requests are of all in flight; a worker's own path has a rate, too.
 * Steps are taken together. */
enum { MOST = 8, NVNS = 32, SAYS = 0 };
#define WINDOW_NS INT64_C(10000000000)
#define VN_BYTES 1e6
#define SIZE 262144.0

struct fair_store {
	struct hd_fairness f;
	struct hd_view view;
	struct hd_reshape reshape;
	bool moves;                       /* maps follow measured paces, as in a run */
	uint32_t n;
	double rate, path[MOST];          /* bytes a second: of all; of a worker's own path, 0: no bound */
	double compute_s;                 /* of a virtual node */
	uint32_t own[MOST], ordered[MOST];        /* depths */
	double now_s, window_s, waited[MOST], bytes[MOST], step_wait[MOST], waits[MOST];
	uint64_t step;
	uint32_t nflagged, nanswers;
	char kinds[2000], text[HD_FAIRNESS_TEXT];
};
static struct fair_store s;

static void make_view(uint32_t n)
{
	uint32_t member[MOST], ndevices[MOST];
	struct hd_member_info info[MOST];
	struct hd_view view = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		member[i] = 10 + i;
		ndevices[i] = 1;
		info[i] = (struct hd_member_info){ .worker = member[i], .ndevices = 1 };
	}
	hd_view_even(&view, s.view.epoch + 1, member, ndevices, n, NVNS);
	(void)hd_reshape_plan(&s.reshape, &view, info, n);
	s.view = view;
}

static void open_store(uint32_t n, double rate, double compute_s, bool moves)
{
	hd_reshape_finish(&s.reshape);
	memset(&s, 0, sizeof s);
	hd_fairness_init(&s.f, WINDOW_NS);
	hd_reshape_init(&s.reshape, NVNS, 1 << 20, moves);
	s.n = n;
	s.rate = rate;
	s.compute_s = compute_s;
	for (uint32_t i = 0; i < n; i++)
		s.own[i] = 8;
	make_view(n);
}

static uint32_t share(uint32_t i)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < s.view.nranks; r++)
		n += s.view.rank[r].worker == 10 + i ? s.view.rank[r].nvns : 0;
	return n;
}

static uint32_t depth_of(uint32_t i) { return s.ordered[i] ? s.ordered[i] : s.own[i]; }

/* Of the store, in bytes a second. */
static double rate_of(uint32_t i)
{
	double all = 0;

	for (uint32_t k = 0; k < s.n; k++)
		all += depth_of(k);
	const double rate = s.rate * depth_of(i) / all;
	return s.path[i] > 0 && s.path[i] < rate ? s.path[i] : rate;
}

static void say_windows(void)
{
	struct hd_fairness_out out;

	for (uint32_t i = 0; i < s.n; i++) {
		struct hd_fair_part p = { .delivered = s.bytes[i], .waited_s = s.waited[i],
			.demanded = s.bytes[i] * s.window_s / (s.window_s - s.waited[i]),
			.service_s = depth_of(i) * SIZE / rate_of(i), .depth = depth_of(i), .knee = 64 };
		for (uint32_t g = 0; g < 4; g++)
			p.file_service_s[g] = p.service_s;
		hd_fairness_take(&s.f, &s.view, 10 + i, &p, (int64_t)(s.now_s * 1e9));
		s.waited[i] = s.bytes[i] = 0;
	}
	s.window_s = 0;
	assert_true(hd_fairness_step(&s.f, &s.view, (int64_t)(s.now_s * 1e9), &out));
	for (uint32_t k = 0; k < out.nsaid; k++) {
		s.nflagged += !strcmp(out.said[k].kind, "reading_unfair");
		s.nanswers += !strcmp(out.said[k].kind, "reading_answer");
		snprintf(s.text, sizeof s.text, "%s", out.said[k].text);
		if (SAYS)
			printf("%6.0f s %s: %s\n", s.now_s, out.said[k].kind, out.said[k].text);
	}
	for (uint32_t k = 0; k < out.norders; k++)
		s.ordered[out.order[k].worker - 10] = out.order[k].depth;
}

/* One step of all; times are exact. */
static void step(void)
{
	double wait[MOST], own[MOST], step_s = 0;
	struct hd_reshape_said said;

	for (uint32_t i = 0; i < s.n; i++) {
		const double computes = share(i) * s.compute_s, reads = share(i) * VN_BYTES / rate_of(i);
		wait[i] = reads > computes ? reads - computes : 0;
		own[i] = computes + wait[i];
		step_s = fmax(step_s, own[i]);
	}
	for (uint32_t i = 0; i < s.n; i++) {
		const struct hd_step_news news = { .step_ns = (uint64_t)(step_s * 1e9),
			.compute_ns = (uint64_t)(own[i] * 1e9), .read_wait_ns = (uint64_t)(wait[i] * 1e9),
			.wait_ns = (uint64_t)((step_s - own[i]) * 1e9) };
		hd_reshape_seal(&s.reshape, 10 + i, s.step, &news, &s.view);
		s.waited[i] += s.step_wait[i] = wait[i];
		s.waits[i] += wait[i];
		s.bytes[i] += share(i) * VN_BYTES;
	}
	if (hd_reshape_step(&s.reshape, s.step, &s.view, &said))
		make_view(s.n);
	s.step++;
	s.now_s += step_s;
	s.window_s += step_s;
	if (s.window_s >= (double)WINDOW_NS * 1e-9)
		say_windows();
}

static void run_s(double seconds)
{
	for (const double end = s.now_s + seconds; s.now_s < end;)
		step();
}

/* An hour: nothing is flagged and nothing answered. */
static void an_hour_of_a_healthy_store_flags_nothing(void **state)
{
	static const struct { uint32_t n; double rate; } row[] = { { 2, 100e6 }, { 3, 100e6 }, { 8, 400e6 },
		{ 8, 20e6 } };            /* the last: too slow for all alike */

	(void)state;
	for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
		open_store(row[k].n, row[k].rate, 0.05, true);
		run_s(3600);
		CHECK(!s.nflagged && !s.nanswers, "row %zu: %s", k, s.text);
		for (uint32_t i = 0; i < s.n; i++)
			assert_int_equal(s.ordered[i], 0);
	}
}

/* One of eight reads one at once beside seven that read eight, and the store has no more than all need:
 * within a minute it is named, and then those that do not wait give up depth. */
static void a_worker_that_others_crowd_out_waits_half_as_long(void **state)
{
	(void)state;
	open_store(8, 200e6, 0.08, false);
	s.own[5] = 1;
	run_s(20);
	const double before = s.step_wait[5];
	run_s(45);
	assert_int_equal(s.nflagged, 1);
	assert_string_equal(s.f.flagged[5] ? "named" : "not", "named");
	run_s(600);
	memset(s.waits, 0, sizeof s.waits);
	const uint64_t since = s.step;
	run_s(7200);
	const double after = s.waits[5] / (double)(s.step - since);
	CHECK(before > 0 && after <= before / 2, "waited %.3f s a step, then %.3f, %u answers: %s", before,
		after, s.nanswers, s.text);
	for (uint32_t i = 0; i < s.n; i++)
		CHECK(i == 5 || s.waits[i] < 0.02 * s.waits[5], "worker %u waits, too: %.3f", i, s.waits[i]);
}

/* A path that is slow by itself: depths change nothing there. Virtual nodes move away, by the paces that
 * have the waits in them. */
static void a_slow_path_has_its_virtual_nodes_moved(void **state)
{
	double before[2];

	(void)state;
	for (int moves = 0; moves < 2; moves++) {
		open_store(4, 1e9, 0.02, moves);
		s.path[2] = 12e6;
		run_s(1800);
		before[moves] = s.step_wait[2];
		if (moves)
			CHECK(share(2) < NVNS / 4, "it has %u", share(2));
		else
			CHECK(s.nflagged == 1 && strstr(s.text, "should move away from worker 12") &&
				share(2) == NVNS / 4, "%s", s.text);
	}
	CHECK(before[1] <= before[0] / 2, "waits %.3f s a step, moved %.3f", before[0], before[1]);
}

/* What was ordered is taken back once all are served alike. */
static void orders_end_with_what_they_answer(void **state)
{
	(void)state;
	open_store(8, 200e6, 0.08, false);
	s.own[5] = 1;
	run_s(400);
	uint32_t orders = 0;
	for (uint32_t i = 0; i < s.n; i++)
		orders += s.ordered[i] > 0;
	assert_true(orders > 0);
	s.rate = 4e9;
	run_s(200);
	for (uint32_t i = 0; i < s.n; i++)
		assert_int_equal(s.ordered[i], 0);
	CHECK(strstr(s.text, "all read as they would again"), "%s", s.text);
}

/* An answer that brought nothing is taken back, and its order ends, too, when all are served alike again. */
static void what_was_taken_back_is_ordered_no_more(void **state)
{
	(void)state;
	open_store(4, 1e9, 0.02, false);
	s.path[2] = 12e6;
	run_s(600);
	assert_true(s.nanswers > 1);
	s.path[2] = 0;
	run_s(600);
	for (uint32_t i = 0; i < s.n; i++)
		CHECK(!s.ordered[i], "worker %u has to read %u at once: %s", 10 + i, s.ordered[i], s.text);
}

/* Half of eight behind a slow switch: each is named, and what is answered is said. */
static void all_that_are_flagged_at_once_are_named(void **state)
{
	(void)state;
	open_store(8, 4e9, 0.02, false);
	for (uint32_t i = 0; i < 4; i++)
		s.path[i] = 12e6;
	run_s(60);
	CHECK(s.nflagged == 4 && s.nanswers == 1, "%u named, %u answers", s.nflagged, s.nanswers);
	for (uint32_t i = 0; i < 4; i++)
		s.path[i] = 0;
	s.path[4] = 12e6;
	run_s(120);
	assert_true(s.f.flagged[4]);
	assert_int_equal(s.nflagged, 5);
}

/* A window without reading (an evaluation), or without a byte for any worker, says nothing of slow ones. */
static void a_window_without_reading_changes_nothing(void **state)
{
	const struct hd_fair_part idle = { .depth = 8, .knee = 64 }, still = { .demanded = 1, .waited_s = 9,
		.depth = 8, .knee = 64 };

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct hd_fairness_out out;
		open_store(4, 1e9, 0.02, false);
		s.path[2] = 12e6;
		run_s(100);
		assert_true(s.f.flagged[2]);
		for (uint32_t i = 0; i < 4; i++)
			hd_fairness_take(&s.f, &s.view, 10 + i, k ? &still : &idle, (int64_t)(s.now_s * 1e9));
		assert_true(hd_fairness_step(&s.f, &s.view, (int64_t)(s.now_s * 1e9), &out));
		CHECK(!out.nsaid, "%d: %s: %s", k, out.said[0].kind, out.said[0].text);
		assert_true(s.f.flagged[2]);
	}
}

/* Others in the view, and one that says nothing. */
static void windows_are_of_the_members(void **state)
{
	struct hd_fair_part p = { .delivered = 10, .demanded = 10, .service_s = 0.01, .depth = 8,
		.knee = 64 };
	struct hd_fairness_out out;

	(void)state;
	open_store(3, 1e9, 0.05, false);
	hd_fairness_take(&s.f, &s.view, 99, &p, 1);
	assert_false(hd_fairness_step(&s.f, &s.view, 3 * WINDOW_NS, &out));
	hd_fairness_take(&s.f, &s.view, 10, &p, 1);
	hd_fairness_take(&s.f, &s.view, 11, &p, 2);
	assert_false(hd_fairness_step(&s.f, &s.view, WINDOW_NS, &out));
	assert_true(hd_fairness_step(&s.f, &s.view, 2 * WINDOW_NS + 1, &out));
	assert_int_equal(s.f.nwindows, 1);
	hd_fairness_take(&s.f, &s.view, 12, &p, 1);
	make_view(2);
	assert_false(hd_fairness_step(&s.f, &s.view, 9 * WINDOW_NS, &out));
	assert_int_equal(s.f.nwindows, 0);
	assert_int_equal(s.f.n, 2);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_hour_of_a_healthy_store_flags_nothing),
		cmocka_unit_test(a_worker_that_others_crowd_out_waits_half_as_long),
		cmocka_unit_test(a_slow_path_has_its_virtual_nodes_moved),
		cmocka_unit_test(orders_end_with_what_they_answer),
		cmocka_unit_test(what_was_taken_back_is_ordered_no_more),
		cmocka_unit_test(all_that_are_flagged_at_once_are_named),
		cmocka_unit_test(a_window_without_reading_changes_nothing),
		cmocka_unit_test(windows_are_of_the_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
