#include "run/pipes_forecast.h"

#include <math.h>

#include "run/pipes.h"
#include "run/testing_costs.h"

/* Nodes whose times are made up: each takes 1 ms forward, 1 for its input and 1 for its weights, and what
 * lies between them nothing. */

enum { VNS = 8, NODE_MS = 3 };

static void begin(struct hd_made *m, const char *more) { hd_made_begin(m, hd_made_gpt, more, 0); }

static struct hd_pipes_forecast of(struct hd_made *m, uint32_t nworkers, uint32_t ndevices, uint32_t cores)
{
	struct hd_pipes_forecast f = { .npipes = 99 };
	struct hd_diag diag = { "" };

	CHECK(hd_pipes_forecast(&f, m->rig.task, m->costs, nworkers, ndevices, cores, &m->rig.arena,
		&diag) == HD_OK, "%s", diag.text);
	return f;
}

/* One core is never idle while anything is left to do: it takes what the nodes take together. */
static void ranks_of_one_core_take_the_sum_of_all_nodes(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= 4; n++) {
		struct hd_made m;
		char more[64];
		snprintf(more, sizeof more, "parallel: {mode: pipeline, width: %u}\n", n);
		begin(&m, more);
		const struct hd_pipes_forecast f = of(&m, n, 1, 1);
		CHECK(f.npipes == 1 && f.step.cores == 1 &&
			fabs(f.step.step_ns * 1e-6 / (VNS * NODE_MS * m.nnodes) - 1) < 1e-6,
			"%u workers: %g ms", n, f.step.step_ns * 1e-6);
		hd_made_end(&m);
	}
}

/* A core each: the slowest stage has all virtual nodes one after the other, the others some before and
 * behind. A second pipeline takes half of them. */
static void more_workers_make_the_pipelines_of_the_view(void **state)
{
	struct hd_made m;

	(void)state;
	begin(&m, "parallel: {stages: 2, replicas: 2}\n");
	const double all_ms = VNS * NODE_MS * m.nnodes;
	const struct hd_pipes_forecast one = of(&m, 2, 1, 8), wide = of(&m, 1, 2, 8), spare = of(&m, 3, 1, 8),
		two = of(&m, 4, 1, 8);
	CHECK(one.npipes == 1 && one.step.step_ns * 1e-6 > all_ms / 2 && one.step.step_ns * 1e-6 < all_ms,
		"%g of %g ms", one.step.step_ns * 1e-6, all_ms);
	assert_true(one.step.cores == 0 && wide.npipes == 1 && wide.step.step_ns == one.step.step_ns);
	assert_true(spare.npipes == 1 && spare.step.step_ns == one.step.step_ns);
	CHECK(two.npipes == 2 && two.step.step_ns * 1e-6 >= all_ms / 4 && two.step.step_ns < one.step.step_ns,
		"%g of %g ms", two.step.step_ns * 1e-6, all_ms);
	assert_true(of(&m, 4, 1, 4).step.cores == 0 && of(&m, 4, 1, 3).step.cores == 3);
	hd_made_end(&m);
}

/* Steps that overlap take what the rank computes that has most nodes; drained ones take longer. */
static void steps_that_overlap_take_what_the_busiest_rank_computes(void **state)
{
	static const uint32_t nodes[] = { 1, 4, 7 };

	(void)state;
	for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
		struct hd_made m;
		struct hd_forecast f[2];
		begin(&m, NULL);
		const uint32_t first[] = { 0, m.costs->line.first[nodes[i]] };
		for (int overlap = 0; overlap < 2; overlap++) {
			const struct hd_run_stages s = { .schedule = "1f1b", .p = 2, .v = 1, .d = 1, .t = 1,
				.delayed = true, .overlap = overlap, .first = first };
			const struct hd_plan_job job = hd_plan_job_whole(VNS, m.rig.task->layout.nchunks);
			struct hd_plan plan;
			assert_int_equal(hd_run_stages_plan(&plan, &s, &job, m.rig.task, m.costs,
				&m.rig.arena, NULL), HD_OK);
			assert_int_equal(plan.overlap, overlap);
			assert_int_equal(hd_forecast_make(&f[overlap], &plan, m.costs,
				&(struct hd_forecast_setting){ .cores = 0 }, &m.rig.arena, NULL), HD_OK);
		}
		const uint32_t most = nodes[i] > m.nnodes - nodes[i] ? nodes[i] : m.nnodes - nodes[i];
		CHECK(fabs(f[1].step_ns * 1e-6 / (VNS * NODE_MS * most) - 1) < 1e-6 &&
			f[0].step_ns > f[1].step_ns, "%u nodes: %g ms", nodes[i], f[1].step_ns * 1e-6);
		hd_made_end(&m);
	}
}

static void what_has_no_pipeline_is_not_predicted(void **state)
{
	struct hd_made m;

	(void)state;
	begin(&m, "parallel: {stages: 4}\n");
	assert_int_equal(of(&m, 3, 1, 4).npipes, 0);
	assert_int_equal(of(&m, HD_MAX_MEMBERS + 1, 1, 4).npipes, 0);
	assert_int_equal(of(&m, 2, HD_VIEW_RANKS, 4).npipes, 0);
	assert_int_equal(of(&m, 0, 1, 4).npipes, 0);
	hd_made_end(&m);
	begin(&m, NULL);
	assert_int_equal(of(&m, 2, 1, 4).npipes, 0);
	hd_made_end(&m);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_of_one_core_take_the_sum_of_all_nodes),
		cmocka_unit_test(more_workers_make_the_pipelines_of_the_view),
		cmocka_unit_test(steps_that_overlap_take_what_the_busiest_rank_computes),
		cmocka_unit_test(what_has_no_pipeline_is_not_predicted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
