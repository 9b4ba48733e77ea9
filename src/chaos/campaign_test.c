#include "chaos/campaign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

enum { T = 1000000000 };

/* Computed beforehand in Python, with Philox4x32-10 written from its paper. */
static void draws_are_those_of_another_program(void **state)
{
	static const struct { uint64_t seed; uint32_t i; enum hd_fault_kind kind; uint64_t nsteps;
		uint32_t nworkers, npoints; struct hd_fault want; } cases[] = {
		{ 1, 0, HD_FAULT_KILL, 200, 3, 60,
			{ .pick = 2071525780u, .part = 3989096956u, .other = 2098127166u,
			.by = 0, .how = 0, .point = 0, .step = 9, .for_ns = 1000000000 } },
		{ 1, 5, HD_FAULT_POINT, 200, 3, 60,
			{ .pick = 3615659465u, .part = 2690177145u, .other = 1759548546u,
			.by = 0, .how = 0, .point = 33, .step = 86, .for_ns = 1000000000 } },
		{ 7, 9, HD_FAULT_PAUSE, 64, 3, 60,
			{ .pick = 3601966115u, .part = 2896504675u, .other = 1449766941u,
			.by = 0, .how = 0, .point = 0, .step = 35, .for_ns = 3828300476 } },
		{ 7, 10, HD_FAULT_SLOW, 64, 3, 60,
			{ .pick = 366468040u, .part = 2182664843u, .other = 51216024u,
			.by = 2, .how = 0, .point = 0, .step = 9, .for_ns = 2026489257 } },
		{ 7, 11, HD_FAULT_NET, 1000, 3, 60,
			{ .pick = 2414918609u, .part = 2673984199u, .other = 3814631570u,
			.by = 0, .how = 2, .point = 0, .step = 604, .for_ns = 855758666 } },
		{ 8589934592, 12, HD_FAULT_DISK, 200, 3, 60,
			{ .pick = 2943013037u, .part = 2198819968u, .other = 3538904392u,
			.by = 0, .how = 5, .point = 0, .step = 134, .for_ns = 3537353515 } },
		{ 8589934592, 13, HD_FAULT_SCALE, 200, 3, 60,
			{ .pick = 3294376115u, .part = 1720031560u, .other = 3891780284u,
			.by = 2, .how = 0, .point = 0, .step = 58, .for_ns = 1000000000 } },
		{ 1, 14, HD_FAULT_SCALE, 200, 64, 60,
			{ .pick = 1061620017u, .part = 2977115284u, .other = 1056115084u,
			.by = 59, .how = 0, .point = 0, .step = 130, .for_ns = 1000000000 } },
	};
	(void)state;

	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		const struct hd_campaign c = { .seed = cases[k].seed, .nsteps = cases[k].nsteps,
			.detect_ns = T,
			.nworkers = cases[k].nworkers, .npoints = cases[k].npoints };
		const struct hd_fault *w = &cases[k].want;
		struct hd_fault f;
		hd_campaign_draw(&c, cases[k].i, cases[k].kind, &f);
		CHECK(f.kind == cases[k].kind && f.pick == w->pick && f.part == w->part &&
			f.other == w->other,
			"case %zu", k);
		CHECK(f.by == w->by && f.how == w->how && f.point == w->point, "case %zu: %u %u %u", k, f.by,
			f.how, f.point);
		CHECK(f.step == w->step && f.for_ns == w->for_ns, "case %zu: %u %u", k, (unsigned)f.step,
			(unsigned)f.for_ns);
		CHECK(!f.tried && !f.begun && f.target == HD_TARGET_ANY, "case %zu", k);
	}
}

static void kinds_are_counted_as_they_are_written(void **state)
{
	static const struct { const char *text; uint32_t kills, count[HD_FAULTS]; } cases[] = {
		{ "", 4, { 4 } }, { "pause=3,net=5", 20, { 20, 0, 3, 0, 5 } }, { "scale=4096", 0, { 0, 0, 0, 0, 0, 0, 4096 } },
		{ "disk=1,disk=2", 7, { 7, 0, 0, 0, 0, 2 } }, { "point=0", 9, { 9 } },
		{ "point=1,pause=2,slow=3,net=4,disk=5,scale=6", 1, { 1, 1, 2, 3, 4, 5, 6 } },
	};
	struct hd_diag diag = { "" };
	(void)state;

	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		uint32_t count[HD_FAULTS] = { 9, 9, 9, 9, 9, 9, 9 };
		CHECK(!hd_campaign_counts(cases[c].text, cases[c].kills, count, &diag), "%s", diag.text);
		assert_memory_equal(count, cases[c].count, sizeof count);
	}
}

static void without_a_word_there_is_a_tenth_of_the_kills_of_each_kind(void **state)
{
	uint32_t count[HD_FAULTS];
	struct hd_diag diag = { "" };
	(void)state;

	assert_int_equal(hd_campaign_counts(NULL, 30, count, &diag), HD_OK);
	for (uint32_t k = 0; k < HD_FAULTS; k++)
		assert_int_equal(count[k], k == HD_FAULT_KILL ? 30 : hd_fault_orders(k) &&
			!hd_failpoint_built() ? 0 : 3);
}

static void words_of_another_form_are_refused(void **state)
{
	static const char *const bad[] = { "kill=1", "pause", "pause=", "pause=x", "pause=-1", "pause=4097",
		"paus=1",
		"pauses=1", "=1", "pause=1,,net=1", "pause=1;net=1", "PAUSE=1" };
	(void)state;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		uint32_t count[HD_FAULTS];
		struct hd_diag diag = { "" };
		CHECK(hd_campaign_counts(bad[i], 5, count, &diag) == HD_E_INVAL, "%s", bad[i]);
		CHECK(strstr(diag.text, "write KIND=N"), "%s", diag.text);
	}
}

static struct hd_campaign campaign_of(uint64_t seed)
{
	return (struct hd_campaign){ .seed = seed, .nsteps = 80, .detect_ns = T, .nworkers = 3, .npoints = 10,
		.count = { 20, 3, 4, 5, 6, 7, 8 } };
}

static void a_plan_has_each_fault_once_in_the_order_of_steps(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct hd_campaign c = campaign_of(seed), twin = campaign_of(seed),
			other = campaign_of(seed + 100);
		uint32_t n[HD_FAULTS] = { 0 };
		bool same = true;
		assert_int_equal(hd_campaign_plan(&c, &arena, &diag), HD_OK);
		assert_int_equal(hd_campaign_plan(&twin, &arena, &diag), HD_OK);
		assert_int_equal(hd_campaign_plan(&other, &arena, &diag), HD_OK);
		assert_int_equal(c.nfaults, 53);
		for (uint32_t i = 0; i < c.nfaults; i++) {
			const struct hd_fault *f = &c.fault[i];
			n[f->kind]++;
			assert_in_range(f->step, 1, 80 - 80 / 8 - 2);
			CHECK(!i || f[-1].step < f->step || (f[-1].step == f->step && f[-1].part <= f->part),
				"fault %u", i);
			assert_int_equal(f->part, twin.fault[i].part);
			assert_int_equal(f->kind, twin.fault[i].kind);
			same &= f->part == other.fault[i].part;
		}
		assert_memory_equal(n, c.count, sizeof n);
		assert_false(same);
	}
	hd_arena_finish(&arena);
}

static void with_points_each_place_comes_as_often_in_the_first_half(void **state)
{
	struct hd_campaign c = campaign_of(3);
	uint32_t n[10] = { 0 };
	struct hd_diag diag = { "" };
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	c.each_point = 4;
	assert_int_equal(hd_campaign_plan(&c, &arena, &diag), HD_OK);
	assert_int_equal(c.count[HD_FAULT_POINT], 40);
	for (uint32_t i = 0; i < c.nfaults; i++)
		if (c.fault[i].kind == HD_FAULT_POINT) {
			n[c.fault[i].point]++;
			assert_in_range(c.fault[i].step, 1, 1 + 68 / 2);
		}
	for (uint32_t p = 0; p < 10; p++)
		assert_int_equal(n[p], 4);
	hd_arena_finish(&arena);
}

static void each_fault_has_one_and_a_half_t_but_no_step_more_than_a_second(void **state)
{
	static const struct { int64_t detect_ns; uint32_t nfaults; uint64_t nsteps, want_ms; } cases[] = {
		{ T, 20, 200, 150 }, { T, 0, 200, 0 }, { 500000000, 40, 100, 300 }, { T, 4000, 100, 1000 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct hd_campaign c = { .detect_ns = cases[i].detect_ns, .nfaults = cases[i].nfaults,
			.nsteps = cases[i].nsteps };
		assert_int_equal(hd_campaign_pace_ms(&c), cases[i].want_ms);
	}
}

static void gaps_are_exponential(void **state)
{
	double sum = 0, above = 0;
	(void)state;

	for (uint32_t i = 0; i < 4096; i++) {
		int64_t gap = hd_campaign_gap_ns(1000, i << 20 | 1 << 19);
		assert_true(gap >= 0);
		sum += (double)gap / T;
		above += gap > 2 * (int64_t)T;
	}
	assert_true(fabs(sum / 4096 - 1) < 0.01);
	assert_true(fabs(above / 4096 - exp(-2)) < 0.01);
	assert_true(hd_campaign_gap_ns(1000, 0) > hd_campaign_gap_ns(1000, UINT32_MAX));
	assert_true(llabs(hd_campaign_gap_ns(3000, 77) - 3 * hd_campaign_gap_ns(1000, 77)) <= 3);
}

static void what_did_not_happen_is_counted(void **state)
{
	struct hd_campaign c = campaign_of(3);
	struct hd_faults faults = { .done = { 0 } };
	struct hd_diag diag = { "" };
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	assert_int_equal(hd_campaign_plan(&c, &arena, &diag), HD_OK);
	for (uint32_t k = 0; k < HD_FAULTS; k++)
		assert_int_equal(hd_campaign_missed(&c, &faults, k), c.count[k]);
	assert_int_equal(hd_campaign_missed_all(&c, &faults), 53);
	for (uint32_t i = 0; i < c.nfaults; i++)
		c.fault[i].begun = c.fault[i].kind != HD_FAULT_NET;
	faults.done[HD_FAULT_POINT] = 2;
	faults.done[HD_FAULT_KILL] = 99;
	assert_int_equal(hd_campaign_missed(&c, &faults, HD_FAULT_KILL), 0);
	assert_int_equal(hd_campaign_missed(&c, &faults, HD_FAULT_NET), 6);
	assert_int_equal(hd_campaign_missed(&c, &faults, HD_FAULT_POINT), 1);
	assert_int_equal(hd_campaign_missed_all(&c, &faults), 7);
	faults.done[HD_FAULT_POINT] = 30;
	assert_int_equal(hd_campaign_missed(&c, &faults, HD_FAULT_POINT), 0);
	hd_arena_finish(&arena);
}

static void places_with_too_few_deaths_are_named(void **state)
{
	struct hd_campaign c = { .npoints = 6, .each_point = 2 };
	struct hd_faults faults = { .done = { 0 } };
	struct hd_diag diag = { "" };
	uint32_t sum = 0;
	(void)state;

	for (uint32_t p = 0; p < HD_FP_COUNT; p++)
		faults.killed[p] = p < 6 ? 2 : 0;
	assert_int_equal(hd_campaign_all_places(&c, &faults, &diag), HD_OK);
	for (uint32_t phase = 0; phase < HD_FP_NPHASES; phase++)
		sum += hd_campaign_killed_in(&c, &faults, phase);
	assert_int_equal(sum, 12);
	assert_int_equal(hd_campaign_killed_in(&c, &faults, hd_failpoint_phase(0)), 12);
	faults.killed[1] = 1;
	faults.killed[4] = 0;
	assert_int_equal(hd_campaign_all_places(&c, &faults, &diag), HD_E_INTEGRITY);
	assert_non_null(strstr(diag.text, "before 2 of 6 places had their 2 deaths"));
	assert_non_null(strstr(diag.text, hd_failpoint_name(1)));
	assert_non_null(strstr(diag.text, hd_failpoint_name(4)));
	assert_null(strstr(diag.text, hd_failpoint_name(2)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(draws_are_those_of_another_program),
		cmocka_unit_test(kinds_are_counted_as_they_are_written),
		cmocka_unit_test(without_a_word_there_is_a_tenth_of_the_kills_of_each_kind),
		cmocka_unit_test(words_of_another_form_are_refused),
		cmocka_unit_test(a_plan_has_each_fault_once_in_the_order_of_steps),
		cmocka_unit_test(with_points_each_place_comes_as_often_in_the_first_half),
		cmocka_unit_test(each_fault_has_one_and_a_half_t_but_no_step_more_than_a_second),
		cmocka_unit_test(gaps_are_exponential),
		cmocka_unit_test(what_did_not_happen_is_counted),
		cmocka_unit_test(places_with_too_few_deaths_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
