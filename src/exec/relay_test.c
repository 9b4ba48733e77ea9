#include "exec/testing_relay.h"

/* What a step's exchange gives, when links, members and views come and go at each instant of it. */

static void steps_without_faults_end(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= R_WORKERS; n++)
		for (uint64_t seed = 0; seed < 4; seed++) {
			char what[80];
			snprintf(what, sizeof what, "%u workers, seed %llu", n, (unsigned long long)seed);
			r_run(what, seed, n, NULL, 0, 6);
		}
}

/* One fault at every `every`-th turn of a run. */
static void sweep(const char *name, struct r_plan fault, uint32_t nworkers, uint64_t seed, uint32_t every)
{
	uint32_t turns = r_run(name, seed, nworkers, NULL, 0, 4);

	for (uint32_t at = 1; at < turns; at += every) {
		char what[120];
		fault.turn = at;
		snprintf(what, sizeof what, "%s at turn %u, %u workers, seed %llu", name, at, nworkers, (unsigned long long)seed);
		r_run(what, seed, nworkers, &fault, 1, 4);
	}
}

static uint32_t every(uint32_t n)
{
	const char *text = getenv("HD_RELAY_EVERY");       /* 1: each turn, for a hunt */
	return text ? (uint32_t)strtoul(text, NULL, 10) : SANITIZED ? 10 * n : n;
}

static void an_epoch_may_end_at_any_instant(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 2; seed++)
		sweep("a fence", (struct r_plan){ .kind = R_FENCE }, 3, seed, every(11));
}

static void a_view_may_be_planned_at_any_instant(void **state)
{
	(void)state;
	for (uint64_t seed = 10; seed < 12; seed++)
		sweep("a planned view", (struct r_plan){ .kind = R_PLAN }, 3, seed, every(29));
}

static void a_member_may_be_lost_at_any_instant(void **state)
{
	(void)state;
	for (uint32_t who = 0; who < 3; who++)
		sweep("a loss", (struct r_plan){ .kind = R_LOSE, .a = who, .fence = 5 }, 3, 20 + who, every(17));
}

static void a_link_may_break_at_any_instant(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		sweep("a broken link", (struct r_plan){ .kind = R_CUT, .a = i == 2, .b = 1 + (i > 0), .mend = i & 1 ? 0 : 300, .fence = i & 1 ? 400 : 20,
			.again = i > 1 }, 3, 30 + i, every(17));
}

static void runs_of_many_faults_give_the_same_sums(void **state)
{
	const char *first = getenv("HD_RELAY_FIRST"), *count = getenv("HD_RELAY_RUNS");
	uint64_t from = first ? strtoull(first, NULL, 10) : 0, n = count ? strtoull(count, NULL, 10) : DRAWS(120);

	(void)state;
	for (uint64_t seed = from; seed < from + n; seed++) {
		struct r_world draw = { .random = (seed + 77) * UINT64_C(0xbf58476d1ce4e5b9) | 1 };
		uint32_t nplans = 1 + r_draw(&draw, 12), nworkers = 2 + r_draw(&draw, 3);
		struct r_plan plan[12];
		char what[80];
		for (uint32_t i = 0; i < nplans; i++) {
			plan[i] = (struct r_plan){ (enum r_fault)r_draw(&draw, R_NFAULTS), 1 + r_draw(&draw, 6000), r_draw(&draw, nworkers - 1), 0,
				r_draw(&draw, 400), r_draw(&draw, 300), r_draw(&draw, 2) };
			plan[i].b = plan[i].a + 1 + r_draw(&draw, nworkers - 1 - plan[i].a);
		}
		snprintf(what, sizeof what, "seed %llu, %u workers, %u faults", (unsigned long long)seed, nworkers, nplans);
		r_run(what, seed, nworkers, plan, nplans, 8);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_without_faults_end),
		cmocka_unit_test(an_epoch_may_end_at_any_instant),
		cmocka_unit_test(a_view_may_be_planned_at_any_instant),
		cmocka_unit_test(a_member_may_be_lost_at_any_instant),
		cmocka_unit_test(a_link_may_break_at_any_instant),
		cmocka_unit_test(runs_of_many_faults_give_the_same_sums),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
