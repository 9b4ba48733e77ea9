#include "autoscale/straggler.h"

#include <string.h>

#include "tests/check.h"

enum { W = 4, T1 = 1000000, BOOT = 50 };

/* ---- a script: four workers, 16 virtual nodes, one of them at some speed from step 100 on; another boots
 * for 50 steps of 1 ms */

struct stage {
	struct hd_straggler s;
	uint32_t worker[W], slow, next;   /* ids; of the slow one */
	uint64_t step, left;
	double (*speed)(uint64_t step);
	bool comes, well;                 /* another comes when it is asked for; it is not slow itself */
	uint64_t comes_at;
	struct hd_straggler_action last;
};

static double time_of(const struct stage *g, uint32_t worker) { return worker == g->slow ?
	1 / g->speed(g->step) : 1; }

/* Shares are not whole here: all end together. */
static bool gain(void *self, uint32_t worker, double normal_ps, int64_t *now_ps, int64_t *well_ps)
{
	const struct stage *g = self;
	double rate[2] = { 0 };

	for (uint32_t i = 0; i < W; i++) {
		rate[0] += 1 / time_of(g, g->worker[i]);
		rate[1] += g->worker[i] == worker ? T1 / normal_ps : 1 / time_of(g, g->worker[i]);
	}
	*now_ps = (int64_t)(16 * T1 / rate[0]);
	*well_ps = (int64_t)(16 * T1 / rate[1]);
	return true;
}

static void open_stage(struct stage *g, const char *rule, uint32_t slow, double (*speed)(uint64_t step))
{
	struct hd_diag diag = { "" };

	*g = (struct stage){ .slow = slow, .next = W, .left = UINT64_C(1) << 40, .speed = speed,
		.comes = true, .well = true };
	for (uint32_t i = 0; i < W; i++)
		g->worker[i] = i;
	CHECK(hd_straggler_init(&g->s, rule, &diag) == HD_OK, "%s", diag.text);
}

static void replace(struct stage *g)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < W; i++)
		if (g->worker[i] != g->s.asked_for)
			g->worker[k++] = g->worker[i];
	g->worker[W - 1] = g->next++;
	g->slow = g->well ? UINT32_MAX : g->worker[W - 1];
	g->comes_at = 0;
}

struct seen { uint32_t n[5]; uint64_t first[5]; };

static struct seen play(struct stage *g, uint64_t steps)
{
	struct seen seen = { 0 };

	for (uint64_t end = g->step + steps; g->step < end; ) {
		struct hd_straggler_sample sample[W];
		struct hd_straggler_action action;
		g->step++;
		if (g->comes_at == g->step)
			replace(g);
		for (uint32_t i = 0; i < W; i++)
			sample[i] = (struct hd_straggler_sample){ g->worker[i],
				(uint64_t)(T1 * time_of(g, g->worker[i])) };
		const struct hd_straggler_now now = { .sample = sample, .n = W, .left = g->left,
			.now_ns = (int64_t)g->step * 1000000,
			.patience_ns = 1000000000, .gain = gain, .self = g };
		hd_straggler_step(&g->s, &now, &action);
		if (!action.act)
			continue;
		assert_true(action.why[0]);
		if (action.act == HD_STRAGGLER_REPLACE && g->comes)
			g->comes_at = g->step + BOOT;
		seen.first[action.act] = seen.n[action.act]++ ? seen.first[action.act] : g->step;
		g->last = action;
	}
	return seen;
}

static double quarter(uint64_t step) { return step < 100 ? 1 : 0.25; }
static double half(uint64_t step) { return step < 100 ? 1 : 0.5; }
static double most(uint64_t step) { return step < 100 ? 1 : 0.75; }
static double a_little(uint64_t step) { return step < 100 ? 1 : 0.97; }
static double a_moment(uint64_t step) { return step % 100 < 12 ? 0.8 : 1; }
static double flaps(uint64_t step) { return step / 40 % 2 ? 0.5 : 1; }

static void a_slow_worker_goes_when_another_has_come(void **state)
{
	static double (*const speeds[])(uint64_t) = { quarter, half, most };
	(void)state;

	for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++)
		for (uint32_t slow = 0; slow < W; slow++) {               /* no worker is exempt */
			struct stage g;
			open_stage(&g, "ours", slow, speeds[i]);
			struct seen seen = play(&g, 2000);
			CHECK(seen.n[HD_STRAGGLER_REPLACE] == 1 &&
				seen.first[HD_STRAGGLER_REPLACE] >= 100 + 16 - 1 &&
				seen.first[HD_STRAGGLER_REPLACE] < 125,
				"row %zu, worker %u: %u times, at step %llu", i, slow,
				seen.n[HD_STRAGGLER_REPLACE],
				(unsigned long long)seen.first[HD_STRAGGLER_REPLACE]);
			CHECK(seen.n[HD_STRAGGLER_REPLACED] == 1 &&
				seen.first[HD_STRAGGLER_REPLACED] == seen.first[HD_STRAGGLER_REPLACE] +
				BOOT &&
				g.last.worker == slow && strstr(g.last.why, "was replaced 0.1 s after"), "%s",
				g.last.why);
			assert_true(g.s.boot_ns == BOOT * 1000000);
		}
}

static void who_is_hardly_slow_or_only_for_moments_stays(void **state)
{
	static double (*const speeds[])(uint64_t) = { a_little, a_moment };
	(void)state;

	for (size_t i = 0; i < 2; i++) {
		struct stage g;
		open_stage(&g, "ours", 2, speeds[i]);
		play(&g, 2000);
		CHECK(!g.last.act, "%s", g.last.why);
	}
}

/* At a quarter of the speed a step takes 16/3.25 instead of 4: 0.92 us saved a step, against a boot of 1
 * s. */
static void another_is_asked_for_only_if_that_pays(void **state)
{
	static const struct { uint64_t left; uint32_t asked; } rows[] = { { 1050000, 0 }, { 1120000, 1 } };
	(void)state;

	for (size_t i = 0; i < 2; i++) {
		struct stage g;
		open_stage(&g, "ours", 3, quarter);
		g.left = rows[i].left;
		struct seen seen = play(&g, 250);
		CHECK(seen.n[HD_STRAGGLER_REPLACE] == rows[i].asked, "%llu left: %s",
			(unsigned long long)rows[i].left, g.last.why);
	}
}

static void who_comes_and_is_as_slow_is_the_last(void **state)
{
	struct stage g;
	(void)state;

	open_stage(&g, "ours", 1, half);
	g.well = false;
	struct seen seen = play(&g, 5000);
	CHECK(seen.n[HD_STRAGGLER_REPLACE] == 1 && seen.n[HD_STRAGGLER_OVER] == 1, "asked %u times: %s",
		seen.n[HD_STRAGGLER_REPLACE], g.last.why);
	CHECK(g.last.worker == W && strstr(g.last.why, "it is not the worker"), "%s", g.last.why);
}

/* The replacement is healthy; much later another worker is slow, which is no replacement. */
static void a_later_slow_worker_is_replaced_as_well(void **state)
{
	struct stage g;
	(void)state;

	open_stage(&g, "ours", 1, half);
	play(&g, 1000);
	assert_int_equal(g.last.act, HD_STRAGGLER_REPLACED);
	/* the one that came is gone, and a user's worker is there */
	g.worker[W - 1] = g.next++;
	g.slow = g.worker[W - 1];
	struct seen seen = play(&g, 1000);
	CHECK(seen.n[HD_STRAGGLER_REPLACE] == 1 && !seen.n[HD_STRAGGLER_OVER], "%s", g.last.why);
}

static void who_has_no_other_stays(void **state)
{
	struct stage g;
	(void)state;

	open_stage(&g, "ours", 1, half);
	g.comes = false;
	struct seen seen = play(&g, 5000);
	CHECK(seen.n[HD_STRAGGLER_REPLACE] == 1 && seen.n[HD_STRAGGLER_KEEP] == 1 &&
		seen.first[HD_STRAGGLER_KEEP] == seen.first[HD_STRAGGLER_REPLACE] + 1001, "%s", g.last.why);
}

static void flapping_does_not_oscillate(void **state)
{
	struct stage g;
	(void)state;

	open_stage(&g, "ours", 0, flaps);
	g.well = false;
	struct seen seen = play(&g, 2000);
	assert_true(seen.n[HD_STRAGGLER_REPLACE] <= 1 && seen.n[HD_STRAGGLER_OVER] <= 1);
}

/* s + (1 - s) 0.9^n after n slow steps, the first of which is step 100: below 0.8 with n = 3, 5 and 16. */
static void the_rule_of_2020_replaces_below_0_8_of_the_median_and_spares_the_first(void **state)
{
	static const struct { double (*speed)(uint64_t); uint64_t at; } rows[] = { { quarter, 102 },
		{ half, 104 }, { most, 115 }, { a_little, 0 } };
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct stage g;
		open_stage(&g, "ae-2020", 1, rows[i].speed);
		struct seen seen = play(&g, 300);
		CHECK(seen.first[HD_STRAGGLER_REPLACE] == rows[i].at &&
			seen.n[HD_STRAGGLER_REPLACE] == (rows[i].at > 0), "row %zu: at step %llu: %s", i,
			(unsigned long long)seen.first[HD_STRAGGLER_REPLACE], g.last.why);
		open_stage(&g, "ae-2020", 0, quarter);
		play(&g, 300);
		CHECK(!g.last.act, "%s", g.last.why);
	}
}

static void nonsense_is_refused_and_nothing_is_off(void **state)
{
	struct hd_straggler s;
	struct hd_straggler_action action;
	struct hd_diag diag = { "" };
	(void)state;

	assert_int_equal(hd_straggler_init(&s, "our", &diag), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "did you mean ours?"));
	assert_int_equal(hd_straggler_init(&s, NULL, &diag), HD_OK);
	hd_straggler_step(&s, &(struct hd_straggler_now){ .n = 0 }, &action);
	assert_true(!action.act && !s.steps);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_worker_goes_when_another_has_come),
		cmocka_unit_test(who_is_hardly_slow_or_only_for_moments_stays),
		cmocka_unit_test(another_is_asked_for_only_if_that_pays),
		cmocka_unit_test(who_comes_and_is_as_slow_is_the_last),
		cmocka_unit_test(a_later_slow_worker_is_replaced_as_well),
		cmocka_unit_test(who_has_no_other_stays),
		cmocka_unit_test(flapping_does_not_oscillate),
		cmocka_unit_test(the_rule_of_2020_replaces_below_0_8_of_the_median_and_spares_the_first),
		cmocka_unit_test(nonsense_is_refused_and_nothing_is_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
