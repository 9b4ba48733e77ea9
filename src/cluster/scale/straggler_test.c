#include "cluster/straggler.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

enum { W = 4, V = 16, T1 = 1000000 };

/* ---- a script: four workers, worker 2 at some speed from step 100 on */

struct stage { struct hd_arena arena; struct hd_vn_cost type; struct hd_solve_device device[W]; struct hd_solve_worker worker[W];
	struct hd_solve_ask ask; struct hd_straggler s; };

static void open_stage(struct stage *g, const char *rule)
{
	const struct hd_wave_time wave = { 1, T1, 0, 0 };
	struct hd_vn_profile p = { "a", 0, 0, &wave, 1 };
	struct hd_diag diag = { "" };

	memset(g, 0, sizeof *g);
	hd_arena_init(&g->arena, 0);
	assert_int_equal(hd_vn_cost_make(&g->type, &p, V, &g->arena, NULL), HD_OK);
	g->ask = (struct hd_solve_ask){ .nvns = V, .type = &g->type, .ntypes = 1, .device = g->device, .ndevices = W, .worker = g->worker, .nworkers = W };
	for (uint32_t d = 0; d < W; d++)
		g->device[d] = (struct hd_solve_device){ 0, d };
	CHECK(hd_straggler_init(&g->s, rule, &g->ask, &diag) == HD_OK, "%s", diag.text);
	g->s.left = 100000;
}

struct seen { uint32_t n[16], all; uint64_t first[16]; };

/* speed(step) of worker `slow`; standbys run only the step after a probe. */
static void play(struct stage *g, uint32_t slow, double (*speed)(uint64_t step), uint64_t steps, struct seen *seen)
{
	bool probing = false;

	memset(seen, 0, sizeof *seen);
	for (uint64_t step = 1; step <= steps; step++) {
		struct hd_straggler_sample sample[W] = { 0 };
		struct hd_straggler_action action;
		struct hd_diag diag = { "" };
		for (uint32_t w = 0; w < W; w++)
			if (g->s.worker[w].in_map || (w == slow && probing))
				sample[w].vn_ps = (int64_t)(T1 / (w == slow ? speed(step) : 1));
		hd_straggler_on_step(&g->s, sample, 4 * T1);
		CHECK(hd_straggler_decide(&g->s, &action, &g->arena, &diag) == HD_OK, "%s", diag.text);
		probing = action.act == HD_STRAGGLER_PROBE;
		if (!action.act)
			continue;
		CHECK(action.worker == slow && action.why[0], "step %llu: worker %u: %s", (unsigned long long)step, action.worker, action.why);
		seen->first[action.act] = seen->n[action.act] ? seen->first[action.act] : step;
		seen->n[action.act]++;
		seen->all += action.act != HD_STRAGGLER_PROBE;
	}
}

static double quarter(uint64_t step) { return step < 100 ? 1 : 0.25; }
static double half(uint64_t step) { return step < 100 ? 1 : 0.5; }
static double most(uint64_t step) { return step < 100 ? 1 : 0.75; }
static double a_little(uint64_t step) { return step < 100 ? 1 : 0.97; }
static double hardly(uint64_t step) { return step < 100 ? 1 : 0.05; }
static double back_at_600(uint64_t step) { return step < 100 || step >= 600 ? 1 : 0.5; }
static double dead_until_600(uint64_t step) { return step < 100 || step >= 600 ? 1 : 0.02; }
static double flaps(uint64_t step) { return step / 40 % 2 ? 0.5 : 1; }

/* 16 virtual nodes, four workers of 4: at 0.25 a worker is worth one virtual node (15 on three take 5), at 0.5 two, at 0.75 three. */
static void slow_workers_get_less_and_hopeless_ones_none(void **state)
{
	static const struct { double (*speed)(uint64_t); enum hd_straggler_act act; } rows[] = {
		{ half, HD_STRAGGLER_REMAP }, { most, HD_STRAGGLER_REMAP }, { quarter, HD_STRAGGLER_REMAP }, { hardly, HD_STRAGGLER_DROP } };
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct stage g;
		struct seen seen;
		open_stage(&g, "ours");
		play(&g, 2, rows[i].speed, 400, &seen);
		CHECK(seen.n[rows[i].act] >= 1 && seen.first[rows[i].act] >= 100 + 16 - 1 && seen.first[rows[i].act] < 260, "row %zu: %u at step %llu", i,
			seen.n[rows[i].act], (unsigned long long)seen.first[rows[i].act]);
		CHECK(seen.all <= 3, "row %zu: %u actions in 300 steps", i, seen.all);
		hd_arena_finish(&g.arena);
	}
	struct stage g;
	struct seen seen;
	open_stage(&g, "ours");
	play(&g, 2, a_little, 400, &seen);
	assert_int_equal(seen.all, 0);
	hd_arena_finish(&g.arena);
}

static void who_recovers_gets_its_share_back(void **state)
{
	struct stage g;
	struct seen seen;
	(void)state;

	open_stage(&g, "ours");
	play(&g, 1, back_at_600, 1200, &seen);
	assert_true(seen.n[HD_STRAGGLER_REMAP] >= 2 && g.s.worker[1].mapped_speed > 0.9);
	hd_arena_finish(&g.arena);
	open_stage(&g, "ours");
	play(&g, 1, dead_until_600, 6000, &seen);
	CHECK(seen.n[HD_STRAGGLER_DROP] == 1 && seen.n[HD_STRAGGLER_PROBE] >= 5 && seen.n[HD_STRAGGLER_RETURN] == 1 && g.s.worker[1].in_map,
		"%u drops, %u probes, %u returns", seen.n[HD_STRAGGLER_DROP], seen.n[HD_STRAGGLER_PROBE], seen.n[HD_STRAGGLER_RETURN]);
	hd_arena_finish(&g.arena);
}

static void flapping_does_not_oscillate(void **state)
{
	struct stage g;
	struct seen seen;
	(void)state;

	open_stage(&g, "ours");
	play(&g, 0, flaps, 2000, &seen);
	CHECK(seen.all <= 2000 / 100, "%u actions in 2000 steps", seen.all);
	hd_arena_finish(&g.arena);
}

/* A quarter of the speed: 5 instead of 4 virtual nodes a step. Over 100000 steps that is worth any boot, over 50 it is not. */
static void a_replacement_is_asked_for_only_if_it_pays(void **state)
{
	static const struct { uint64_t left; uint32_t asked; } rows[] = { { 100000, 1 }, { 300, 0 } };
	(void)state;

	for (size_t i = 0; i < 2; i++) {
		struct stage g;
		struct seen seen;
		open_stage(&g, "ours");
		g.s.replacement = true;
		g.s.left = rows[i].left;
		g.s.boot_ps = INT64_C(1000) * T1;
		play(&g, 3, quarter, 250, &seen);
		CHECK(seen.n[HD_STRAGGLER_REPLACE] == rows[i].asked, "%llu left: asked %u times", (unsigned long long)rows[i].left,
			seen.n[HD_STRAGGLER_REPLACE]);
		hd_arena_finish(&g.arena);
	}
}

static void a_slow_link_loses_chunks_not_virtual_nodes(void **state)
{
	struct stage g;
	struct hd_straggler_action action = { HD_STRAGGLER_NONE, 0, "" };
	uint64_t at = 0;
	(void)state;

	open_stage(&g, "ours");
	for (uint64_t step = 1; step <= 60 && !action.act; step++) {
		struct hd_straggler_sample sample[W] = { { T1, 0 }, { T1, T1 }, { T1, 0 }, { T1, 0 } };
		hd_straggler_on_step(&g.s, sample, 5 * T1);
		assert_int_equal(hd_straggler_decide(&g.s, &action, &g.arena, NULL), HD_OK);
		at = step;
	}
	CHECK(action.act == HD_STRAGGLER_CHUNKS && action.worker == 1 && at == 16, "%s at step %llu: %s", hd_straggler_words(action.act),
		(unsigned long long)at, action.why);
	hd_arena_finish(&g.arena);
}

/* s + (1 - s) 0.9^n after n slow steps, the first of which is step 100: below 0.8 with n = 3, 5 and 16. */
static void the_rule_of_2020_replaces_below_0_8_of_the_median_and_spares_worker_0(void **state)
{
	static const struct { double (*speed)(uint64_t); uint64_t at; } rows[] = { { quarter, 102 }, { half, 104 }, { most, 115 }, { a_little, 0 } };
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct stage g;
		struct seen seen;
		open_stage(&g, "ae-2020");
		play(&g, 1, rows[i].speed, 300, &seen);
		CHECK(seen.first[HD_STRAGGLER_REPLACE] == rows[i].at && seen.all == (rows[i].at > 0), "row %zu: at step %llu, %u actions", i,
			(unsigned long long)seen.first[HD_STRAGGLER_REPLACE], seen.all);
		g.s.came = true;
		g.s.came_for = 1;
		play(&g, 1, rows[i].speed, 3, &seen);
		assert_int_equal(seen.n[HD_STRAGGLER_RELEASE], rows[i].at > 0);
		hd_arena_finish(&g.arena);
		open_stage(&g, "ae-2020");
		play(&g, 0, quarter, 300, &seen);
		assert_int_equal(seen.all, 0);
		hd_arena_finish(&g.arena);
	}
}

static void nonsense_is_refused(void **state)
{
	struct stage g;
	struct hd_diag diag = { "" }, other = { "" };
	(void)state;

	open_stage(&g, "ours");
	assert_int_equal(hd_straggler_init(&g.s, "our", &g.ask, &diag), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "did you mean ours?"));
	g.ask.nworkers = 3;
	assert_int_equal(hd_straggler_init(&g.s, "ours", &g.ask, &other), HD_E_INVAL);
	assert_non_null(strstr(other.text, "3 workers with 4 devices"));
	hd_arena_finish(&g.arena);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_workers_get_less_and_hopeless_ones_none),
		cmocka_unit_test(who_recovers_gets_its_share_back),
		cmocka_unit_test(flapping_does_not_oscillate),
		cmocka_unit_test(a_replacement_is_asked_for_only_if_it_pays),
		cmocka_unit_test(a_slow_link_loses_chunks_not_virtual_nodes),
		cmocka_unit_test(the_rule_of_2020_replaces_below_0_8_of_the_median_and_spares_worker_0),
		cmocka_unit_test(nonsense_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
