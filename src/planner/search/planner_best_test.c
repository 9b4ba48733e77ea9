/* The planner against everything there is: schedules, cuts and places, each simulated. */
#include "planner/search/testing_planner.h"

#include "pipeline/passes.h"
#include "pipeline/schedule_check.h"
#include "pipeline/sim_plan.h"

/* One of two devices half as fast; all places of the one cut, and all shares of data parallel, simulated. */
static int64_t simulate(const struct model *m, const struct machines *c, struct hd_schedule s,
	const uint32_t *first, uint32_t nstages)
{
	struct hd_stage_costs costs;
	struct hd_sim_plan sim;

	assert_int_equal(hd_stage_costs_make(&costs, &m->sums, first, nstages, &arena, NULL), HD_OK);
	assert_int_equal(hd_schedule_updates(&s, &s, NULL, &arena, NULL), HD_OK);
	assert_int_equal(hd_sim_plan(&sim, &s, &(struct hd_sim_setting){ .costs = &costs,
		.cluster = &c->cluster }, &arena, NULL), HD_OK);
	return sim.makespan;
}

static void of_two_devices_one_half_as_fast_the_best_of_all_is_found(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(40); seed++) {
		struct hd_dice d = { seed };
		struct machines c;
		struct model m;
		struct hd_auto a;
		uint32_t n = 3 + hd_roll(&d, 8), vns = 2 + hd_roll(&d, 10);
		make_machines(&c, &d, 2, 1, true, 0, 1);
		c.of[1] = 1;
		c.cluster.level[0] = (struct hd_cluster_level){ "in", 2, 1e12, 0 };
		make_model(&m, d, n, 1, false);
		int64_t best = INT64_MAX;
		for (uint32_t cut = 1; cut < n; cut++) {
			struct hd_schedule s;
			s = hd_named_schedule("1f1b", 2, vns, 1);
			int64_t took = simulate(&m, &c, s, (uint32_t[]){ 0, cut }, 2);
			best = took < best ? took : best;
		}
		assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster,
			&(struct hd_auto_ask){ .vns = vns, .schedule = "1f1b", .p = 2 }, &arena, NULL),
			HD_OK);
		CHECK((double)a.plan[0].makespan_ps <= 1.02 * (double)best,
			"%u: %lld ps, the best of all cuts takes %lld", seed,
			(long long)a.plan[0].makespan_ps,
			(long long)best);
		assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &(struct hd_auto_ask){ .vns = vns },
			&arena, NULL), HD_OK);
		CHECK((double)a.plan[0].makespan_ps <= 1.02 * (double)best, "%u: the free choice takes %lld",
			seed, (long long)a.plan[0].makespan_ps);
		hd_arena_reset(&arena);
	}
}

/* All cuts of n nodes in `stages`, of all schedules that the planner knows, on two like devices. */
static void try_cuts(const struct model *m, const struct machines *c, const char *name, uint32_t v,
	uint32_t vns, uint32_t at, uint32_t *first,
	uint32_t nstages, int64_t *best)
{
	struct hd_schedule s;

	if (at >= nstages) {
		s = hd_named_schedule(name, 2, vns, v);
		int64_t took = simulate(m, c, s, first, nstages);
		*best = took < *best ? took : *best;
		return;
	}
	for (first[at] = first[at - 1] + 1; first[at] + (nstages - at) <= m->cuts.n; first[at]++)
		try_cuts(m, c, name, v, vns, at + 1, first, nstages, best);
}

static void of_all_schedules_and_cuts_on_two_devices_none_is_much_faster(void **state)
{
	static const struct { const char *name; uint32_t v; } all[] = { { "gpipe", 1 }, { "1f1b", 1 },
		{ "interleaved", 2 }, { "zb-h1", 1 }, { "zb-h2", 1 },
		{ "zb-v", 2 }, { "v-half", 2 }, { "v-min", 2 }, { "dualpipev", 2 } };
	uint32_t equal = 0;

	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(30); seed++) {
		struct hd_dice d = { seed };
		struct machines c;
		struct model m;
		struct hd_auto a;
		uint32_t n = 4 + hd_roll(&d, 4), vns = 4 + hd_roll(&d, 5), first[8] = { 0 };
		int64_t best = INT64_MAX;
		make_machines(&c, &d, 2, 1, true, 0, 1);
		make_model(&m, d, n, 1, false);
		for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
			try_cuts(&m, &c, all[k].name, all[k].v, vns, 1, first, 2 * all[k].v, &best);
		assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &(struct hd_auto_ask){ .vns = vns },
			&arena, NULL), HD_OK);
		CHECK((double)a.plan[0].makespan_ps <= 1.05 * (double)best,
			"%u: %lld ps (%s), the best there is takes %lld", seed,
			(long long)a.plan[0].makespan_ps,
			a.plan[0].shape.schedule, (long long)best);
		equal += a.plan[0].makespan_ps <= best;
		hd_arena_reset(&arena);
	}
	CHECK(equal >= (SANITIZED ? 1 : 20), "only %u of %d are as good as the best", equal, DRAWS(30));
}

static int64_t steady_step(const struct model *m, const struct machines *c, const char *name, uint32_t vns,
	const uint32_t *first, uint32_t p)
{
	const struct hd_schedule_job job = { 0 };
	struct hd_schedule s = hd_named_schedule(name, p, vns, 1);
	struct hd_stage_costs costs;
	struct hd_sim_plan sim;

	assert_int_equal(hd_stage_costs_make(&costs, &m->sums, first, p, &arena, NULL), HD_OK);
	assert_int_equal(hd_schedule_complete(&s, &s, &(struct hd_pass_options){ .job = &job }, &arena, NULL),
		HD_OK);
	assert_int_equal(hd_sim_plan(&sim, &s, &(struct hd_sim_setting){ .costs = &costs,
		.cluster = &c->cluster }, &arena, NULL), HD_OK);
	return (sim.step_end[sim.steps - 1] - sim.step_end[1]) / (sim.steps - 2);
}

/* Updates of every virtual node: all places of one boundary or two simulated, for as many stages. */
static void of_stages_with_versions_the_best_places_are_found(void **state)
{
	static const struct { enum hd_update_mode update; const char *schedule;
		} kinds[] = { { HD_UPDATE_STASH, "stash" }, { HD_UPDATE_VSYNC, "vsync" } };

	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(24); seed++) {
		struct hd_dice d = { seed };
		struct machines c;
		struct model m;
		struct hd_auto a;
		const char *name = kinds[seed % 2].schedule;
		uint32_t p = 2 + hd_roll(&d, 2), n = p + hd_roll(&d, 8), vns = 2 + hd_roll(&d, 10);
		int64_t best = INT64_MAX;
		make_machines(&c, &d, p, 1, true, 0, 1);
		c.of[1] = seed % 4 == 3;
		c.cluster.level[0] = (struct hd_cluster_level){ "in", p, 1e12, 0 };
		make_model(&m, d, n, 1, false);
		for (uint32_t x = 1; x + p - 2 < n; x++)
			for (uint32_t y = x + 1; y < (p == 2 ? x + 2 : n); y++) {
				int64_t took = steady_step(&m, &c, name, vns, (uint32_t[]){ 0, x, y }, p);
				best = took < best ? took : best;
			}
		const struct hd_auto_ask ask = { .vns = vns, .update = kinds[seed % 2].update, .p = p };
		assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, NULL), HD_OK);
		const struct hd_auto_plan *plan = &a.plan[0];
		assert_string_equal(plan->shape.schedule, name);
		assert_int_equal(plan->npipelines, 1);
		CHECK((double)plan->makespan_ps <= 1.02 * (double)best,
			"%u: %s of %u stages: %lld ps, the best of all places takes %lld", seed, name, p,
			(long long)plan->makespan_ps, (long long)best);
		/* with a byte less than its fullest rank takes, weights of all versions included, it is
		 * not the same plan */
		for (int k = 0; k < 2; k++)
			c.kind[k].memory = plan->peak - 1;
		struct hd_diag diag = { "" };
		int64_t before = plan->makespan_ps;
		enum hd_err err = hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, &diag);
		CHECK(err == HD_E_INVAL || (err == HD_OK && a.plan[0].peak <= c.kind[0].memory &&
			a.plan[0].makespan_ps >= before), "%u: %s", seed,
			diag.text);
		hd_arena_reset(&arena);
	}
}

/* More cuts than the planner looks at: all places there are for two boundaries, or for one, simulated. */
static void of_long_chains_the_best_places_are_nearly_found(void **state)
{
	double worst = 1;

	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(12); seed++) {
		struct hd_dice d = { seed };
		struct machines c;
		struct model m;
		struct hd_auto a;
		uint32_t p = seed < 9 ? 2 : 3, n = (p == 2 ? 100 : 70) + hd_roll(&d, p == 2 ? 400 : 20),
			vns = 2 + hd_roll(&d, 10);
		int64_t best = INT64_MAX;
		make_machines(&c, &d, p, 1, true, 0, 1);
		c.of[1] = seed % 2;
		c.cluster.level[0] = (struct hd_cluster_level){ "in", p, seed % 3 ? 1e12 : 1e9, 0 };
		make_model(&m, d, n, 1, false);
		for (uint32_t x = 1; x + p - 2 < n; x++)
			for (uint32_t y = x + 1; y < (p == 2 ? x + 2 : n); y++) {
				int64_t took = simulate(&m, &c, hd_named_schedule("1f1b", p, vns, 1),
					(uint32_t[]){ 0, x, y }, p);
				best = took < best ? took : best;
			}
		assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster,
			&(struct hd_auto_ask){ .vns = vns, .schedule = "1f1b", .p = p }, &arena, NULL),
			HD_OK);
		double over = (double)a.plan[0].makespan_ps / (double)best;
		worst = over > worst ? over : worst;
		CHECK(over <= 1.01, "%u: %u cuts, %u stages: %lld ps, the best takes %lld", seed, n, p,
			(long long)a.plan[0].makespan_ps, (long long)best);
		hd_arena_reset(&arena);
	}
	print_message("at worst %.4f times the best of all places\n", worst);
}

static void the_faster_pipeline_takes_more_virtual_nodes(void **state)
{
	struct machines c;
	struct model m;
	struct hd_auto a;
	struct hd_dice d = { 1 };

	(void)state;
	make_machines(&c, &d, 1, 2, true, 0, 1);
	c.of[1] = 1;
	c.cluster.level[1] = (struct hd_cluster_level){ "out", 2, 1e12, 0 };
	make_model(&m, d, 1, 1, false);
	assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &(struct hd_auto_ask){ .vns = 7 }, &arena,
		NULL), HD_OK);
	assert_int_equal(a.plan[0].npipelines, 2);
	assert_int_equal(a.plan[0].share[0], 5);
	assert_int_equal(a.plan[0].share[1], 2);
	hd_arena_reset(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_two_devices_one_half_as_fast_the_best_of_all_is_found),
		cmocka_unit_test(of_all_schedules_and_cuts_on_two_devices_none_is_much_faster),
		cmocka_unit_test(of_stages_with_versions_the_best_places_are_found),
		cmocka_unit_test(of_long_chains_the_best_places_are_nearly_found),
		cmocka_unit_test(the_faster_pipeline_takes_more_virtual_nodes),
	};

	hd_arena_init(&arena, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&arena);
	return failed;
}
