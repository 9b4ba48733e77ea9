#include "balance/drift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

enum { D = 4, V = 16, T1 = 1000000 };

/* Four devices of a type; what each really takes for a virtual node, and what a step of a map takes beyond
 * that. */
struct stage { struct hd_arena arena; struct hd_vn_cost type; struct hd_solve_device device[D];
	struct hd_solve_worker worker[D];
	struct hd_solve_ask ask; struct hd_drift drift; double slow[D];
		int64_t (*hidden)(const uint32_t *count); };

static void open_stage(struct stage *g)
{
	const struct hd_wave_time wave = { 1, T1, 0, 0 };
	struct hd_vn_profile p = { "a", 0, 0, &wave, 1 };
	static const uint32_t even[D] = { 4, 4, 4, 4 };

	memset(g, 0, sizeof *g);
	hd_arena_init(&g->arena, 0);
	assert_int_equal(hd_vn_cost_make(&g->type, &p, V, &g->arena, NULL), HD_OK);
	g->ask = (struct hd_solve_ask){ .nvns = V, .type = &g->type, .ntypes = 1, .device = g->device,
		.ndevices = D, .worker = g->worker, .nworkers = D };
	for (uint32_t d = 0; d < D; d++) {
		g->device[d] = (struct hd_solve_device){ 0, d };
		g->slow[d] = 1;
	}
	assert_int_equal(hd_drift_init(&g->drift, &g->ask, even, &g->arena, NULL), HD_OK);
}

/* Runs until something is to be done, at most n steps; how many it took. What is to be done is adopted. */
static uint32_t run(struct stage *g, uint32_t n, struct hd_drift_answer *answer)
{
	answer->act = HD_DRIFT_STAY;
	for (uint32_t i = 1; i <= n; i++) {
		int64_t vn_ps[D], step_ps = 0;
		struct hd_diag diag = { "" };
		for (uint32_t d = 0; d < D; d++) {
			vn_ps[d] = g->drift.count[d] ? (int64_t)(g->slow[d] * T1) : 0;
			step_ps = vn_ps[d] * g->drift.count[d] > step_ps ? vn_ps[d] * g->drift.count[d] :
				step_ps;
		}
		step_ps += g->hidden ? g->hidden(g->drift.count) : 0;
		hd_drift_on_step(&g->drift, vn_ps, step_ps);
		CHECK(hd_drift_decide(&g->drift, answer, &g->arena, &diag) == HD_OK, "%s", diag.text);
		if (answer->act) {
			hd_drift_adopt(&g->drift, answer);
			return i;
		}
	}
	return n;
}

static void a_device_that_slows_down_gets_less_after_sixteen_steps(void **state)
{
	struct hd_drift_answer answer;
	struct stage g;
	(void)state;

	open_stage(&g);
	assert_int_equal(run(&g, 100, &answer), 100);
	g.slow[1] = 2;                            /* 16 virtual nodes on 3.5: 5/2/5/4 take 5 instead of 8 */
	uint32_t n = run(&g, 100, &answer);
	CHECK(answer.act == HD_DRIFT_CHANGE && n == 16, "after %u steps: %s", n, answer.why);
	assert_true(answer.count[1] < 4 && answer.predicted_ps < 8 * T1);
	CHECK(strstr(answer.why, "device 1 takes 1.8") && strstr(answer.why,
		"instead of 4/4/4/4; predicted "), "%s", answer.why);
	const int64_t predicted_ps = answer.predicted_ps, vn_ps[D] = { T1, 2 * T1, T1, T1 };
	for (int i = 1; i <= 8; i++) {            /* then it is said how right that was */
		hd_drift_on_step(&g.drift, vn_ps, 5 * T1);
		assert_int_equal(hd_drift_decide(&g.drift, &answer, &g.arena, NULL), HD_OK);
		assert_int_equal(answer.judged, i == 8);
	}
	assert_true(answer.measured_ps == 5 * T1 && answer.judged_ps == predicted_ps);
	CHECK(strstr(answer.why, "a step, the one before took"), "%s", answer.why);
	/* settles: judged, and what is left of the drift makes no other map */
	assert_int_equal(run(&g, 100, &answer), 100);
	assert_int_equal(answer.act, HD_DRIFT_STAY);
	assert_int_equal(g.drift.nerrors, 1);
	g.slow[1] = 1;
	run(&g, 200, &answer);
	CHECK(answer.act == HD_DRIFT_CHANGE && answer.count[1] > 2, "%s", answer.why);
	hd_arena_finish(&g.arena);
}

static void small_or_short_changes_make_no_map(void **state)
{
	struct hd_drift_answer answer;
	struct stage g;
	(void)state;

	open_stage(&g);
	g.slow[2] = 1.045;
	run(&g, 500, &answer);
	/* not even thought about */
	assert_true(answer.act == HD_DRIFT_STAY && g.drift.device[2].made_for == 1);
	/* four steps at 1.3 raise the EWMA to 1.10, above 1.05 for 11 steps in all */
	for (int burst = 0; burst < 20; burst++) {
		g.slow[2] = 1.3;
		run(&g, 4, &answer);
		assert_int_equal(answer.act, HD_DRIFT_STAY);
		g.slow[2] = 1;
		run(&g, 40, &answer);
		assert_int_equal(answer.act, HD_DRIFT_STAY);
	}
	hd_arena_finish(&g.arena);
}

/* The solver is asked again and again, and has the map that is in use. */
static void the_same_map_is_said_once(void **state)
{
	struct hd_drift_answer answer;
	struct stage g;
	(void)state;

	open_stage(&g);
	run(&g, 20, &answer);
	uint32_t words = 0, asked = 0;
	for (int step = 0; step < 2000; step++) {
		const double made_for = g.drift.device[0].made_for;
		for (uint32_t d = 0; d < D; d++)
			g.slow[d] = step / 40 % 2 ? 1 : 1.5;
		run(&g, 1, &answer);
		assert_int_equal(answer.act, HD_DRIFT_STAY);
		words += answer.why[0] != 0;
		asked += fabs(g.drift.device[0].made_for - made_for) > 1e-9;
	}
	assert_int_equal(words, 1);
	assert_true(asked > 20);
	/* of the map after it, it is said once more */
	const struct hd_drift_answer even = { .act = HD_DRIFT_BACK,
		.count = (const uint32_t[D]){ 4, 4, 4, 4 } };
	hd_drift_adopt(&g.drift, &even);
	for (int step = 0; step < 200; step++) {
		for (uint32_t d = 0; d < D; d++)
			g.slow[d] = step / 40 % 2 ? 1 : 1.5;
		run(&g, 1, &answer);
		assert_int_equal(answer.act, HD_DRIFT_STAY);
		words += answer.why[0] != 0;
	}
	assert_int_equal(words, 2);
	hd_arena_finish(&g.arena);
}

/* Whatever is not the even map takes 1 ms more, which no profile knows: 6 instead of 5.6. */
static int64_t uneven_is_dear(const uint32_t *count) { return count[0] == 4 && count[1] == 4 &&
	count[2] == 4 ? 0 : T1; }

static void a_map_that_turns_out_slower_is_taken_back_and_not_tried_again_until_speeds_change(void **state)
{
	static const uint32_t even[D] = { 4, 4, 4, 4 };
	struct hd_drift_answer answer;
	struct stage g;
	(void)state;

	open_stage(&g);
	g.hidden = uneven_is_dear;
	run(&g, 20, &answer);
	g.slow[3] = 1.4;
	run(&g, 100, &answer);
	assert_int_equal(answer.act, HD_DRIFT_CHANGE);
	assert_int_equal(run(&g, 100, &answer), 8);
	CHECK(answer.act == HD_DRIFT_BACK && strstr(answer.why, ": back"), "%s", answer.why);
	assert_memory_equal(g.drift.count, even, sizeof even);
	assert_true(g.drift.nerrors == 1 && g.drift.error_ppm[0] > 150000);
	run(&g, 300, &answer);
	assert_int_equal(answer.act, HD_DRIFT_STAY);
	g.slow[3] = 1.5;                          /* 7 % more: still the same to it */
	run(&g, 300, &answer);
	assert_int_equal(answer.act, HD_DRIFT_STAY);
	/* worth another try, though errors of that size ask for a large gain */
	g.slow[3] = 3;
	run(&g, 300, &answer);
	CHECK(answer.act == HD_DRIFT_CHANGE && answer.count[3] < 4, "%s", answer.why);
	hd_arena_finish(&g.arena);
}

/* A step with it would take 20, three others need 6: it gets nothing, and is tried now and then until it
 * is well. */
static void a_device_that_was_left_out_is_tried_until_it_is_well(void **state)
{
	static const uint32_t rests[] = { 100, 200, 400 };
	struct hd_drift_answer answer;
	uint32_t without[D];
	struct stage g;
	(void)state;

	open_stage(&g);
	run(&g, 20, &answer);
	g.slow[1] = 20;
	run(&g, 100, &answer);
	CHECK(answer.act == HD_DRIFT_CHANGE && answer.count[1] == 0, "%s", answer.why);
	memcpy(without, g.drift.count, sizeof without);
	for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
		assert_int_equal(run(&g, 2000, &answer), rests[i]);
		CHECK(answer.act == HD_DRIFT_TRY && answer.device == 1 && g.drift.count[1] == 1, "%s",
			answer.why);
		uint32_t all = 0;
		for (uint32_t d = 0; d < D; d++)
			all += g.drift.count[d];
		assert_int_equal(all, V);
		assert_int_equal(run(&g, 100, &answer), 8);
		CHECK(answer.act == HD_DRIFT_BACK && strstr(answer.why, "device 1 takes 20.00"), "%s",
			answer.why);
		assert_memory_equal(g.drift.count, without, sizeof without);
	}
	g.slow[1] = 1;
	assert_int_equal(run(&g, 2000, &answer), 800);
	assert_int_equal(run(&g, 100, &answer), 8);
	CHECK(answer.act == HD_DRIFT_CHANGE && answer.count[1] == 4 &&
		strstr(answer.why, "device 1 takes 1.00 of its profile now"), "%s", answer.why);
	/* judged against what was before the trial: it stays */
	assert_int_equal(run(&g, 1000, &answer), 1000);
	assert_int_equal(answer.act, HD_DRIFT_STAY);
	assert_true(g.drift.device[1].rest == 100);
	hd_arena_finish(&g.arena);
}

static void devices_that_are_as_slow_as_one_another_stay_one_type(void **state)
{
	struct stage g;
	struct hd_solve_ask slowed;
	static const double slow[D] = { 1.501, 1.0, 1.499, 1.004 };
	(void)state;

	open_stage(&g);
	assert_int_equal(hd_solve_slowed(&slowed, &g.ask, slow, &g.arena, NULL), HD_OK);
	assert_int_equal(slowed.ntypes, 2);
	assert_true(slowed.device[0].type == slowed.device[2].type &&
		slowed.device[1].type == slowed.device[3].type);
	assert_int_equal(slowed.type[slowed.device[0].type].ps[4], 6 * T1);
	assert_int_equal(g.type.ps[4], 4 * T1);   /* the profile is not touched */
	const struct hd_vn_cost two[2] = { g.type, g.type };
	g.ask.type = two;
	g.ask.ntypes = 2;
	g.device[2].type = 1;
	assert_int_equal(hd_solve_slowed(&slowed, &g.ask, slow, &g.arena, NULL), HD_OK);
	assert_true(slowed.ntypes == 3 && slowed.device[0].type != slowed.device[2].type);

	static struct hd_solve_device device[200];
	static double many[200];
	for (uint32_t d = 0; d < 200; d++) {
		device[d].worker = d;
		many[d] = 1 + d * 0.03;
	}
	g.ask.device = device;
	g.ask.ndevices = g.ask.nworkers = 200;
	assert_int_equal(hd_solve_slowed(&slowed, &g.ask, many, &g.arena, NULL), HD_OK);
	assert_true(slowed.ntypes <= HD_SOLVE_TYPES && slowed.ntypes > HD_SOLVE_TYPES / 4);
	for (uint32_t d = 0; d < 200; d++) {
		double got = (double)slowed.type[slowed.device[d].type].ps[1] / T1;
		CHECK(got > many[d] - 0.09 && got < many[d] + 0.09, "device %u: %g, not %g", d, got, many[d]);
	}
	hd_arena_finish(&g.arena);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_that_slows_down_gets_less_after_sixteen_steps),
		cmocka_unit_test(small_or_short_changes_make_no_map),
		cmocka_unit_test(the_same_map_is_said_once),
		cmocka_unit_test(
			a_map_that_turns_out_slower_is_taken_back_and_not_tried_again_until_speeds_change),
		cmocka_unit_test(a_device_that_was_left_out_is_tried_until_it_is_well),
		cmocka_unit_test(devices_that_are_as_slow_as_one_another_stay_one_type),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
