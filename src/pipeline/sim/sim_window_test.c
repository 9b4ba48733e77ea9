/* A step of many: by the closed form, by what one step more takes of a whole run, and its causes. */
#include "pipeline/sim_window.h"

#include <string.h>

#include "pipeline/sim/testing.h"
#include "pipeline/sim_why.h"
#include "pipeline/window.h"
#include "tests/check.h"

enum { MAX_P = 5 };

static struct hd_stage_costs priced(uint32_t p, const int64_t *f, const int64_t *b)
{
	struct hd_stage_costs costs = { .nstages = p, .ovl = 1, .comm_tax = 1,
		.stage = hd_arena_take(&arena, p, sizeof *costs.stage) };

	for (uint32_t s = 0; s < p; s++)
		costs.stage[s] = (struct hd_stage_cost){ .f = f[s], .i = b[s] / 2, .w = b[s] - b[s] / 2,
			.r = f[s], .step = 5, .param = 8, .out = 4, .in = 4, .saved = 16, .kept = 4 };
	return costs;
}

/* Work and waits of each rank, the path and its terms all add up to the step. */
static void adds_up(const struct hd_sim_plan *sim)
{
	struct hd_sim_reasons why;
	struct hd_diag diag = { "" };
	int64_t terms = 0, at = 0;

	CHECK(hd_sim_reasons(&why, sim, &arena, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t t = 0; t < HD_TERMS; t++)
		terms += why.term[t];
	for (uint32_t i = 0; i < why.nparts; at = why.part[i++].until)
		assert_int_equal(why.part[i].start, at);
	CHECK(terms == sim->makespan && at == sim->makespan, "terms %lld, path to %lld of %lld",
		(long long)terms, (long long)at, (long long)sim->makespan);
	for (uint32_t r = 0; r < sim->ran.nranks; r++) {
		int64_t all = sim->rank[r].busy;
		for (int w = 0; w < HD_NIDLES; w++)
			all += sim->rank[r].idle[w];
		CHECK(all == sim->makespan && !sim->rank[r].idle[HD_IDLE_WARM_UP] &&
			!sim->rank[r].idle[HD_IDLE_DRAIN], "rank %u: %lld of %lld", r, (long long)all,
			(long long)sim->makespan);
	}
}

/* A run of so many steps, from its first forward to its last update. */
static int64_t run_of(uint32_t nsteps, const struct hd_sim_windowed *ask, const struct hd_sim_setting *set)
{
	struct hd_schedule s = { .heading = "", .nranks = ask->p, .nvns = nsteps * ask->nvns,
		.nstages = ask->p, .list = hd_arena_take(&arena, ask->p, sizeof *s.list),
		.place = hd_arena_take(&arena, ask->p, sizeof *s.place) };
	struct hd_diag diag = { "" };
	struct hd_sim_plan sim;

	for (uint32_t r = 0; r < ask->p; r++) {
		struct hd_ilist *all = &s.list[r], one;
		all->at = hd_arena_take(&arena, (size_t)nsteps * (7 * (ask->nvns + 2 * ask->p) + 4),
			sizeof *all->at);
		s.place[r] = r;
		for (uint32_t t = 0; t < nsteps; t++) {
			assert_int_equal(hd_window_list(&one, &(struct hd_window){ .p = ask->p,
				.nvns = ask->nvns, .ahead = t > 0, .goes_on = t + 1 < nsteps,
				.again = ask->again && ask->again[r] }, r, &arena, &diag), HD_OK);
			for (uint32_t i = 0; i < one.len; i++) {
				if (one.at[i].op == HD_INS_NORM && set->costs->ntied &&
					set->costs->tied->holds[r])
					all->at[all->len++] = (struct hd_ins){ .op = HD_INS_TIE };
				all->at[all->len] = one.at[i];
				all->at[all->len++].vn += hd_ins_uses(one.at[i].op, 'v') ? t * ask->nvns : 0;
			}
		}
	}
	CHECK(hd_sim_plan(&sim, &s, set, &arena, &diag) == HD_OK, "%s", diag.text);
	return sim.makespan;
}

/* Equal stages with backwards of two forwards: V of both, and the update. */
static void equal_stages_never_wait(void **state)
{
	static const int64_t f[MAX_P] = { 10, 10, 10, 10, 10 }, b[MAX_P] = { 20, 20, 20, 20, 20 };

	(void)state;
	for (uint32_t p = 2; p <= MAX_P; p++)
		for (uint32_t nvns = 2 * (p - 1); nvns < 3 * p; nvns++) {
			const struct hd_stage_costs costs = priced(p, f, b);
			const struct hd_sim_setting set = { .costs = &costs,
				.transport = HD_TRANSPORT_BUFFERED };
			struct hd_sim_windowed ask = { p, nvns, NULL, false };
			struct hd_sim_plan sim, stash;
			assert_int_equal(hd_sim_window(&sim, &ask, &set, &arena, NULL), HD_OK);
			CHECK(sim.makespan == 30 * nvns + 5 && sim.busiest == sim.makespan, "p %u V %u: %lld",
				p, nvns, (long long)sim.makespan);
			adds_up(&sim);
			ask.last_reads_newest = true;
			assert_int_equal(hd_sim_window(&stash, &ask, &set, &arena, NULL), HD_OK);
			for (uint32_t r = 0; r < p; r++) {
				const int64_t kept = r + 1 == p ? 0 : 8;
				assert_int_equal(sim.rank[r].at_peak[HD_MEMORY_VERSIONS], 8);
				assert_int_equal(stash.rank[r].at_peak[HD_MEMORY_VERSIONS], kept);
				assert_int_equal(sim.rank[r].peak - stash.rank[r].peak, 8 - kept);
			}
		}
}

/* Of stages that differ, over hops and recomputing some, it is what a run of eight steps takes more than one
 * of seven. */
static void a_step_is_what_one_step_more_takes(void **state)
{
	struct hd_dice d = { 5 };

	(void)state;
	for (uint32_t i = 0; i < 60; i++) {
		const uint32_t p = 2 + hd_roll(&d, MAX_P - 1), nvns = 2 * (p - 1) + hd_roll(&d, 6);
		int64_t f[MAX_P], b[MAX_P];
		bool again[MAX_P];
		for (uint32_t r = 0; r < p; r++) {
			f[r] = 5 + hd_roll(&d, 12);
			b[r] = 2 * f[r] + hd_roll(&d, 5);
			again[r] = i % 3 == 0 && hd_roll(&d, 2);
		}
		struct hd_stage_costs costs = priced(p, f, b);
		bool holds[MAX_P] = { true };
		struct hd_tied_group tied = { "w", 64, p, holds };
		holds[p - 1] = true;
		costs.tied = &tied;
		costs.ntied = i % 2;
		const struct hd_sim_setting set = { .costs = &costs, .hop = hd_roll(&d, 2) * hd_roll(&d, 20),
			.transport = HD_TRANSPORT_BUFFERED };
		const struct hd_sim_windowed ask = { p, nvns, again, false };
		struct hd_sim_plan sim;
		assert_int_equal(hd_sim_window(&sim, &ask, &set, &arena, NULL), HD_OK);
		const int64_t more = run_of(8, &ask, &set) - run_of(7, &ask, &set);
		CHECK(sim.makespan == more, "%u: p %u V %u hop %lld: %lld, one more takes %lld", i, p, nvns,
			(long long)set.hop, (long long)sim.makespan, (long long)more);
		adds_up(&sim);
	}
}

/* What links carry in a step: each virtual node once over every cut, and its gradient once back. */
static void links_carry_what_one_step_sends(void **state)
{
	static const int64_t f[MAX_P] = { 10, 10, 10, 10, 10 }, b[MAX_P] = { 20, 20, 20, 20, 20 };

	(void)state;
	for (uint32_t p = 2; p <= MAX_P; p++) {
		const struct hd_stage_costs costs = priced(p, f, b);
		struct hd_cluster c = hd_small_cluster(p, 0);
		const struct hd_sim_setting set = { .costs = &costs, .cluster = &c,
			.transport = HD_TRANSPORT_BUFFERED };
		const struct hd_sim_windowed ask = { p, 2 * p, NULL, false };
		struct hd_sim_plan sim;
		int64_t bytes = 0;
		assert_int_equal(hd_sim_window(&sim, &ask, &set, &arena, NULL), HD_OK);
		for (uint32_t i = 0; i < sim.nlinks; i++)
			bytes += sim.link[i].bytes;
		CHECK(bytes == (int64_t)(p - 1) * ask.nvns * (4 + 4), "p %u: %lld", p, (long long)bytes);
	}
}

static void too_few_virtual_nodes_are_refused(void **state)
{
	static const int64_t f[MAX_P] = { 1, 1, 1, 1, 1 };
	const struct hd_stage_costs costs = priced(4, f, f);
	const struct hd_sim_setting set = { .costs = &costs, .transport = HD_TRANSPORT_BUFFERED };
	struct hd_diag diag = { "" };
	struct hd_sim_plan sim;

	(void)state;
	const struct hd_sim_windowed ask = { 4, 5, NULL, false };
	assert_int_equal(hd_sim_window(&sim, &ask, &set, &arena, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "p = 4, m = 5"), "%s", diag.text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(equal_stages_never_wait, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(a_step_is_what_one_step_more_takes, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(links_carry_what_one_step_sends, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(too_few_virtual_nodes_are_refused, make_arena, drop_arena),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
