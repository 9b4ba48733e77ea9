#include "data/fair.h"

#include <math.h>
#include <string.h>

#include "tests/check.h"

enum { N = 8 };

/* All alike: each gets what it wants in 10 ms a request. */
static struct hd_fair_window alike(uint32_t n)
{
	struct hd_fair_window w = { .nworkers = n };

	for (uint32_t i = 0; i < n; i++) {
		w.part[i] = (struct hd_fair_part){ .demanded = 100, .delivered = 100, .service_s = 0.010,
			.depth = 8, .knee = 32 };
		for (uint32_t g = 0; g < 4; g++)
			w.part[i].file_service_s[g] = 0.010;
	}
	return w;
}

static void a_slow_device(struct hd_fair_window *w, uint32_t at)
{
	w->part[at].delivered = 20;
	w->part[at].service_s = 0.050;
	w->part[at].waited_s = 4;
	for (uint32_t g = 0; g < 4; g++)
		w->part[at].file_service_s[g] = 0.050;
}

static void a_slow_server(struct hd_fair_window *w, uint32_t at)
{
	for (uint32_t i = 0; i < w->nworkers; i++)
		w->part[i].file_service_s[2] = 0.080;
	w->part[at].delivered = 20;       /* it reads most of that group */
	w->part[at].waited_s = 4;
	w->part[at].service_s = 0.040;
}

static void a_slow_processor(struct hd_fair_window *w, uint32_t at)
{
	w->part[at].delivered = 20;
	w->part[at].waited_s = 4;
}

static void a_shallow_reader(struct hd_fair_window *w, uint32_t at)
{
	a_slow_processor(w, at);
	w->part[at].depth = 1;
}

static void each_pattern_has_its_cause(void **state)
{
	static const struct { void (*make)(struct hd_fair_window *, uint32_t); enum hd_fair_cause cause;
		} cases[] = {
		{ a_slow_device, HD_FAIR_DEVICE }, { a_slow_server, HD_FAIR_SERVER },
		{ a_slow_processor, HD_FAIR_PROCESSOR }, { a_shallow_reader, HD_FAIR_DEPTH },
	};

	(void)state;
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
		for (uint32_t n = 2; n <= N; n++)
			for (uint32_t at = 0; at < n; at++) {
				struct hd_fair_window w[HD_FAIR_WINDOWS];
				struct hd_fair_found found;
				for (uint32_t k = 0; k < HD_FAIR_WINDOWS; k++) {
					w[k] = alike(n);
					cases[c].make(&w[k], at);
				}
				hd_fair_judge(w, HD_FAIR_WINDOWS, NULL, &found);
				for (uint32_t i = 0; i < n; i++)
					if (i == at)
						CHECK(found.flagged[i] && found.cause[i] == cases[c].cause,
							"case %d, %u workers: %u is %s", (int)c, n, i,
							hd_fair_cause_text(found.cause[i]));
					else if (c != 1)
						CHECK(!found.flagged[i], "case %d, %u workers: %u", (int)c,
							n, i);
			}
}

static void four_of_six_windows_are_needed(void **state)
{
	(void)state;
	for (uint32_t mask = 0; mask < 64; mask++) {
		struct hd_fair_window w[HD_FAIR_WINDOWS];
		struct hd_fair_found found;
		uint32_t bits = 0;
		for (uint32_t k = 0; k < HD_FAIR_WINDOWS; k++) {
			w[k] = alike(N);
			if (mask >> k & 1) {
				a_slow_device(&w[k], 3);
				bits++;
			}
		}
		hd_fair_judge(w, HD_FAIR_WINDOWS, NULL, &found);
		CHECK(found.flagged[3] == (bits >= 4), "windows %x", mask);
	}
}

static void a_store_that_stands_still_flags_nothing(void **state)
{
	struct hd_fair_window w[HD_FAIR_WINDOWS];
	struct hd_fair_found found;

	(void)state;
	for (uint32_t k = 0; k < HD_FAIR_WINDOWS; k++) {
		w[k] = alike(N);
		for (uint32_t i = 0; i < N; i++)
			w[k].part[i].delivered = 0;
	}
	hd_fair_judge(w, HD_FAIR_WINDOWS, NULL, &found);
	assert_true(found.stalled);
	for (uint32_t i = 0; i < N; i++)
		assert_false(found.flagged[i]);
}

static void jain_is_the_paper_s_figure(void **state)
{
	struct hd_fair_window w = alike(4);

	(void)state;
	assert_true(fabs(hd_fair_jain(&w) - 1) < 1e-12);
	w.part[0].delivered = w.part[1].delivered = 0;
	assert_true(fabs(hd_fair_jain(&w) - 0.5) < 1e-12);      /* half of the workers get all */
	w.part[0].demanded = 0;
	assert_true(fabs(hd_fair_jain(&w) - 2.0 / 3) < 1e-12);  /* it wants nothing */
}

static void depths_go_down_then_up_and_come_back(void **state)
{
	struct hd_fair_window bad = alike(4), good = alike(4);
	struct hd_fair_found found = { .flagged = { true }, .jain = 0.8 }, fine = { .jain = 1 };
	uint32_t depth[HD_FAIR_WORKERS] = { 8, 8, 8, 8 }, acts[HD_FAIR_UNDO + 1] = { 0 };
	struct hd_fair fair;

	(void)state;
	hd_fair_init(&fair);
	a_slow_device(&bad, 0);
	for (uint32_t k = 0; k < 6 * 9 + 1; k++) {
		const enum hd_fair_act act = hd_fair_react(&fair, &bad, &found, depth).act;
		acts[act]++;
		bad.part[0].delivered *= act ? 1.1 : 1;   /* each brings something */
	}
	/* three workers from 8 to 1, three steps each; then one step up of the flagged one */
	assert_true(acts[HD_FAIR_LOWER] == 9 && acts[HD_FAIR_DEEPEN] == 1 && !acts[HD_FAIR_MOVE]);
	assert_true(depth[1] == 1 && depth[2] == 1 && depth[3] == 1 && depth[0] == 16);
	for (uint32_t k = 0; k < HD_FAIR_WINDOWS; k++)
		assert_int_equal(hd_fair_react(&fair, &good, &fine, depth).act,
			k + 1 == HD_FAIR_WINDOWS ? HD_FAIR_UNDO : HD_FAIR_STAY);
	assert_true(depth[0] == 8 && depth[1] == 8 && depth[2] == 8 && depth[3] == 8);
}

static void a_worker_that_begins_to_wait_is_not_lowered_again(void **state)
{
	struct hd_fair_window bad = alike(2), waits = alike(2);
	struct hd_fair_found found = { .flagged = { true }, .jain = 0.8 };
	uint32_t depth[HD_FAIR_WORKERS] = { 32, 8 };
	struct hd_fair fair;

	(void)state;
	hd_fair_init(&fair);
	a_slow_device(&bad, 0);
	a_slow_device(&waits, 0);
	waits.part[1].waited_s = 1;
	assert_int_equal(hd_fair_react(&fair, &bad, &found, depth).act, HD_FAIR_LOWER);
	assert_int_equal(depth[1], 4);
	assert_int_equal(hd_fair_react(&fair, &waits, &found, depth).act, HD_FAIR_BACK);
	assert_int_equal(depth[1], 8);
	for (uint32_t k = 0; k < 30; k++)
		(void)hd_fair_react(&fair, &bad, &found, depth);
	assert_int_equal(depth[1], 8);
	assert_int_equal(depth[0], 32);   /* at its knee */
}

/* Each kind once, taken back, and the next one. */
static void what_brings_nothing_is_taken_back(void **state)
{
	static const enum hd_fair_act want[] = { HD_FAIR_LOWER, HD_FAIR_DEEPEN, HD_FAIR_MOVE, HD_FAIR_MOVE };
	struct hd_fair_window bad = alike(4);
	struct hd_fair_found found = { .flagged = { true }, .jain = 0.8, .cause = { HD_FAIR_DEVICE } };
	uint32_t depth[HD_FAIR_WORKERS] = { 8, 8, 8, 8 };
	struct hd_fair fair;

	(void)state;
	hd_fair_init(&fair);
	a_slow_device(&bad, 0);
	for (uint32_t k = 0; k < 4 * HD_FAIR_WINDOWS; k++) {
		const struct hd_fair_answer a = hd_fair_react(&fair, &bad, &found, depth);
		assert_int_equal(a.act, k % HD_FAIR_WINDOWS ? HD_FAIR_STAY : want[k / HD_FAIR_WINDOWS]);
	}
	assert_true(depth[0] == 8 && depth[1] == 8 && depth[2] == 8 && depth[3] == 8);
}

/* Groups that differ in memory say nothing of a server. */
static void times_of_memory_name_no_server(void **state)
{
	struct hd_fair_window w[HD_FAIR_WINDOWS];
	struct hd_fair_found found;

	(void)state;
	for (uint32_t k = 0; k < HD_FAIR_WINDOWS; k++) {
		w[k] = alike(2);
		a_slow_device(&w[k], 1);
		for (uint32_t g = 0; g < 4; g++) {
			w[k].part[0].file_service_s[g] = 20e-6 * (g + 1);
			w[k].part[1].file_service_s[g] = 20e-3 * (g + 1);
		}
	}
	hd_fair_judge(w, HD_FAIR_WINDOWS, NULL, &found);
	assert_true(found.flagged[1] && !found.flagged[0]);
	assert_int_equal(found.cause[1], HD_FAIR_DEVICE);
}

/* Where depths have done what they can, and at once where a processor is slow. */
static void what_depths_do_not_mend_moves(void **state)
{
	struct hd_fair_window bad = alike(4);
	struct hd_fair_found found = { .flagged = { false, true, true }, .jain = 0.8,
		.cause = { 0, HD_FAIR_PROCESSOR, HD_FAIR_PROCESSOR } };
	uint32_t depth[HD_FAIR_WORKERS] = { 1, 8, 32, 1 };
	struct hd_fair fair;

	(void)state;
	hd_fair_init(&fair);
	a_slow_processor(&bad, 1);
	a_slow_processor(&bad, 2);
	bad.part[2].delivered = 10;
	struct hd_fair_answer a = hd_fair_react(&fair, &bad, &found, depth);
	assert_true(a.act == HD_FAIR_MOVE && a.worker == 2);
	assert_true(depth[0] == 1 && depth[1] == 8 && depth[2] == 32);
	found.cause[1] = found.cause[2] = HD_FAIR_DEVICE;
	bad.part[1].knee = 8;
	for (uint32_t k = 1; k < HD_FAIR_WINDOWS; k++)
		assert_int_equal(hd_fair_react(&fair, &bad, &found, depth).act, HD_FAIR_STAY);
	a = hd_fair_react(&fair, &bad, &found, depth);
	assert_true(a.act == HD_FAIR_MOVE && a.worker == 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_pattern_has_its_cause),
		cmocka_unit_test(four_of_six_windows_are_needed),
		cmocka_unit_test(a_store_that_stands_still_flags_nothing),
		cmocka_unit_test(jain_is_the_paper_s_figure),
		cmocka_unit_test(depths_go_down_then_up_and_come_back),
		cmocka_unit_test(a_worker_that_begins_to_wait_is_not_lowered_again),
		cmocka_unit_test(times_of_memory_name_no_server),
		cmocka_unit_test(what_brings_nothing_is_taken_back),
		cmocka_unit_test(what_depths_do_not_mend_moves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
