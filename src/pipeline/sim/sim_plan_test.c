/* The full simulator: against the fast one on every family, and by hand where a figure is known. */
#include "pipeline/sim_plan.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/passes.h"
#include "pipeline/sim/int.h"
#include "pipeline/sim/testing.h"
#include "tests/check.h"

#define U HD_UNIT_PS

static void agree(const struct hd_schedule *s, const struct hd_rank_costs *costs, uint32_t steps)
{
	struct hd_sim fast;
	struct hd_stage_costs even;
	struct hd_diag diag = { "" };
	const struct hd_sim_ask ask = { .costs = *costs, .steps = steps };

	CHECK(hd_simulate(&fast, s, &ask, &arena, &diag) == HD_OK, "%s: %s", s->heading, diag.text);
	CHECK(hd_stage_costs_even(&even, costs, fast.ran.nstages, &arena, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t k = 0; k < even.nstages; k++)
		even.stage[k].saved = even.stage[k].saved_w = 1;       /* a byte a chunk */
	const struct hd_sim_setting set = { .costs = &even, .per_ps = fast.per_ps,
		.hop = costs->hop * fast.per_ps, .steps = steps };
	struct hd_sim_plan full = hd_sim_adds_up(s, &set);
	CHECK(full.makespan == fast.makespan && full.span_idle == fast.span_idle &&
		full.busiest == fast.busiest && full.nins == fast.nins,
		"%s: %lld, the fast one %lld; idle %lld, %lld", s->heading, (long long)full.makespan,
		(long long)fast.makespan, (long long)full.span_idle,
		(long long)fast.span_idle);
	for (uint32_t r = 0; r < s->nranks; r++) {
		const struct hd_sim_rank *want = &fast.rank[r];
		const struct hd_sim_share *have = &full.rank[r];
		CHECK(have->first == want->first && have->last == want->last && have->busy == want->busy,
			"%s: rank %u", s->heading, r);
		CHECK(have->peak == want->peak, "%s: rank %u: %lld chunks, the fast one says %u", s->heading,
			r, (long long)have->peak, want->peak);
	}
	for (uint32_t k = 0; k < fast.steps; k++)
		CHECK(full.steps == fast.steps && (fast.steps == 1 || full.step_end[k] == fast.step_end[k]),
			"%s: step %u", s->heading, k);
}

static void both_simulators_agree_on_every_family(void **state)
{
	static const struct hd_rank_costs costs[] = { { U, U, U, 0 }, { U, U, U, U / 10 },
		{ U, 2 * U, U / 2, U / 3 }, { 3 * U, U, 5 * U, U } };
	uint32_t compared = 0;

	(void)state;
	for (const struct hd_schedule_kind *k = hd_schedule_kinds; k->name; k++)
		for (uint32_t p = 1; p <= 5; p++)
			for (uint32_t m = p; m <= 3 * p; m += p > 2 ? p - 1 : 1)
				for (uint32_t v = k->vmin; v <= k->vmax && v <= 3; v++) {
					struct hd_schedule s;
					struct hd_diag diag = { "" };
					const struct hd_schedule_ask ask = { .name = k->name, .p = p, .m = m,
						.v = v };
					if (!strcmp(k->name, "zb-auto") && p > 3)
						continue;                    /* seconds of search */
					if (hd_schedule_make(&s, &ask, &arena, &diag))
						continue;                    /* what the kind cannot do */
					for (size_t c = 0; c < sizeof costs / sizeof *costs; c++, compared++)
						agree(&s, &costs[c], 0);
				}
	CHECK(compared > 1000, "%u were compared", compared);
}

static void both_simulators_agree_on_the_stored_schedules(void **state)
{
	const char *text = hd_shared_text("schedules.txt");

	(void)state;
	if (!text) {
		SKIP("data/schedules.txt is neither in HEDDLE_SHARED nor in tests");
	}
	struct hd_schedules all = hd_parsed_schedules(text);
	for (uint32_t i = 0; i < all.len; i++) {
		agree(&all.at[i], &(struct hd_rank_costs){ U, U, U, 0 }, 0);
		agree(&all.at[i], &(struct hd_rank_costs){ U, U, U, U / 10 }, 0);
	}
}

/* Stages of 100 forward, 60 and 40 backward, 50 again; 1000 bytes of weights, 300 of activations (90 for
 * W), 20 of input. */
static struct hd_stage_costs plain(uint32_t nstages)
{
	struct hd_stage_costs c = { .nstages = nstages, .ovl = 1, .comm_tax = 1,
		.stage = hd_arena_take(&arena, nstages, sizeof *c.stage) };

	for (uint32_t s = 0; s < nstages; s++)
		c.stage[s] = (struct hd_stage_cost){ .f = 100, .i = 60, .w = 40, .r = 50, .saved = 300,
			.saved_w = 90, .kept = 20, .in = s ? 20 : 0,
			.out = s + 1 < nstages ? 20 : 0, .param = 1000, .opt = 70, .work = 5, .step = 8 };
	return c;
}

static struct hd_cluster two_servers(double inner, double outer, int64_t latency)
{
	const struct hd_cluster_level level[] = { { "server", 2, inner, 0 }, { "net", 2, outer, latency } };
	struct hd_cluster c = { 0 };
	struct hd_diag diag = { "" };

	CHECK(hd_cluster_make(&c, level, 2, (struct hd_cluster_kind){ "any", 1, 0 }, &arena, &diag) == HD_OK,
		"%s", diag.text);
	return c;
}

static void sums_go_over_the_slowest_level_beside_compute(void **state)
{
	/* four holders: 1000 bytes * 3/4 * 2 over the network at 0.1 byte a tick: 15000; and 2 * 2
	 * latencies of 7 */
	struct hd_schedule s = hd_parsed_schedule("0: F0.0 B0.0 RED0 F0.4 STEP0\n"
		"1: F0.1 B0.1 RED0 F0.5 STEP0\n2: F0.2 B0.2 RED0 F0.6 STEP0\n3: F0.3 B0.3 RED0 F0.7 STEP0\n");
	struct hd_stage_costs costs = plain(1);
	struct hd_cluster c = two_servers(1e12, 1e11, 7);
	const struct hd_sim_setting set = { .costs = &costs, .cluster = &c, .spans = true };

	(void)state;
	struct hd_sim_plan sim = hd_sim_adds_up(&s, &set);
	assert_int_equal(sim.span[0][2].start, 200);
	assert_int_equal(sim.span[0][2].end, 200 + 15000 + 28);
	assert_int_equal(sim.span[0][3].end, 300);                   /* F1 does not wait */
	assert_int_equal(sim.makespan, 200 + 15028 + 8);
	assert_int_equal(sim.rank[0].idle[HD_IDLE_TRANSFER], 15228 - 300);
	assert_int_equal(sim.nlinks, 2);                             /* a port out of each server */
	assert_int_equal(sim.link[0].bytes, 1500);
	assert_int_equal(sim.link[0].busy, 15000);
	/* weights, optimizer and workspace, one buffer of the sum, and its own activations */
	assert_int_equal(sim.rank[0].peak, 1075 + 1000 + 300);
	/* two buckets go one after the other, half each */
	struct hd_schedule b =
		hd_parsed_schedule("0: F0.0 B0.0 RED0#1 RED0#2 STEP0\n1: F0.1 B0.1 RED0#1 RED0#2 STEP0\n");
	costs = plain(1);
	struct hd_cluster two = hd_small_cluster(2, 0);
	const struct hd_sim_setting bucket = { .costs = &costs, .cluster = &two, .spans = true };
	sim = hd_sim_adds_up(&b, &bucket);
	assert_int_equal(sim.span[1][2].end, 200 + 500);
	assert_int_equal(sim.span[1][3].start, 700);
	assert_int_equal(sim.makespan, 200 + 1000 + 8);
}

static void a_sum_leaves_one_buffer(void **state)
{
	/* each rank holds every other virtual node: no two of its sums join */
	struct hd_schedule s =
		hd_parsed_schedule("0: F0.0 B0.0 F0.2 B0.2 RED0 NORM F0.4 F0.6\n1: F0.1 B0.1 F0.3 B0.3 RED0 "
		"NORM F0.5 F0.7\n");
	struct hd_stage_costs costs = plain(1);
	struct hd_cluster two = hd_small_cluster(2, 0);
	const struct hd_sim_setting set = { .costs = &costs, .cluster = &two, .spans = true };

	(void)state;
	costs.stage[0].param = 100;
	struct hd_sim_plan sim = hd_sim_adds_up(&s, &set);
	assert_int_equal(sim.rank[0].peak, 100 + 75 + 600 + 100);
	/* two sums over, one back, half of each */
	assert_int_equal(sim.span[0][4].end, 400 + 100 * 3 / 2);
}

static void norms_ties_and_barriers_wait_for_all(void **state)
{
	struct hd_schedule s =
		hd_parsed_schedule("0: F0.0 B0.0 TIE0 NORM STEP0\n1: F1.0 B1.0 TIE0 NORM STEP1\n");
	struct hd_stage_costs costs = plain(2);
	struct hd_tied_group tied = { "words", 400, 2, NULL };
	struct hd_cluster c = hd_small_cluster(2, 5);
	const struct hd_sim_setting set = { .costs = &costs, .cluster = &c, .spans = true };

	(void)state;
	costs.stage[0].out = costs.stage[1].in = 0;
	costs.tied = &tied;
	costs.ntied = 1;
	struct hd_sim_plan sim = hd_sim_adds_up(&s, &set);
	/* F0, hop 5, F1, B1, hop 5, B0; then 400 bytes * 1/2 * 2 and 2 latencies; NORM 2 latencies; STEP */
	assert_int_equal(sim.span[1][2].start, 100 + 5 + 200 + 5 + 100);
	assert_int_equal(sim.span[1][2].end, 410 + 400 + 10);
	assert_int_equal(sim.span[1][3].end, 820 + 10);
	assert_int_equal(sim.makespan, 830 + 8);
}

static void offloaded_activations_leave_and_come_back(void **state)
{
	struct hd_schedule s = hd_parsed_schedule("0: F0.0 OFF0.0 F0.1 ON0.0 B0.0 B0.1\n");
	struct hd_stage_costs costs = plain(1);
	struct hd_sim_setting set = { .costs = &costs, .host_bytes_per_s = 1e13, .spans = true };

	(void)state;
	costs.stage[0].param = 10;
	/* 300 bytes take 30: off from 100 to 130, on from 200 to 230 */
	struct hd_sim_plan sim = hd_sim_adds_up(&s, &set);
	assert_int_equal(sim.makespan, 200 + 30 + 200);
	assert_int_equal(sim.rank[0].idle[HD_IDLE_TRANSFER] + sim.rank[0].idle[HD_IDLE_DEPENDENCY], 30);
	/* at most: both activations and the gradient while B0.0 runs */
	assert_int_equal(sim.rank[0].peak, 85 + 600 + 10);
	set.host_bytes_per_s = 1e11;                                 /* 3000 each way: B0.0 waits for both */
	sim = hd_sim_adds_up(&s, &set);
	assert_int_equal(sim.makespan, 100 + 3000 + 3000 + 200);
	/* where the rank moves by itself, it does nothing else: two forwards, two backwards, twice 30 */
	set.host_bytes_per_s = 1e13;
	set.host_waits = true;
	sim = hd_sim_adds_up(&s, &set);
	assert_int_equal(sim.makespan, 100 + 30 + 100 + 30 + 200);
	assert_int_equal(sim.span[0][1].end, 130);
	assert_int_equal(sim.span[0][3].start, 230);
	assert_int_equal(sim.rank[0].busy, sim.makespan);
	/* F0.1 begins when nothing of the other is here */
	assert_int_equal(sim.rank[0].peak, 85 + 600 + 10);
	set.host_waits = false;
	set.host_bytes_per_s = 1e11;
	/* the rank does not stand at ON: another forward runs first */
	struct hd_schedule later = hd_parsed_schedule("0: F0.0 OFF0.0 ON0.0 F0.1 B0.0 B0.1\n");
	sim = hd_sim_adds_up(&later, &set);
	assert_int_equal(sim.span[0][3].end, 200);
	assert_int_equal(sim.makespan, 100 + 3000 + 3000 + 200);
	assert_int_equal(sim.rank[0].peak, 85 + 900);
}

static void pinned_versions_are_kept(void **state)
{
	struct hd_schedule s =
		hd_parsed_schedule("0: PIN0@0 F0.0 B0.0 STEP0@1 PIN0@1 F0.1 REL0@0 B0.1 STEP0@2 REL0@1\n");
	struct hd_stage_costs costs = plain(1);
	const struct hd_stage_rule rule = { 1, 1 };
	const struct hd_schedule_job job = { .rule = &rule };
	const struct hd_sim_setting set = { .costs = &costs, .job = &job };

	(void)state;
	struct hd_sim_plan sim = hd_sim_adds_up(&s, &set);
	/* version 0 is beside 1 while F0.1 runs; version 1 beside 2 for no time; a gradient while B runs */
	assert_int_equal(sim.rank[0].peak, 1075 + 300 + 1000);
	assert_true(sim.rank[0].at_peak[HD_MEMORY_VERSIONS] + sim.rank[0].at_peak[HD_MEMORY_PARTIALS] ==
		1000);
	/* without pins: as many as the rule keeps */
	struct hd_schedule bare = hd_parsed_schedule("0: F0.0 B0.0 F0.1 B0.1\n");
	assert_int_equal(hd_sim_adds_up(&bare, &set).rank[0].at_peak[HD_MEMORY_VERSIONS], 1000);
}

static void pairs_overlap_and_transfers_tax_compute(void **state)
{
	struct hd_schedule pair = hd_parsed_schedule("0: F0.0 (F0.1&B0.0) B0.1\n");
	struct hd_schedule far = hd_parsed_schedule("0: F0.0 F0.1 B0.0 B0.1\n1: F1.0 B1.0 F1.1 B1.1\n");
	struct hd_stage_costs costs = plain(1), two = plain(2);
	struct hd_cluster c = hd_small_cluster(2, 0);

	(void)state;
	costs.ovl = 0.75;
	assert_int_equal(hd_sim_adds_up(&pair, &(struct hd_sim_setting){ .costs = &costs }).makespan,
		100 + 150 + 100);
	/* F0.0 ends at 100; while its 50 bytes go, F0.1 takes twice its time: 50 ticks do 25, then 75 more */
	two.comm_tax = 2;
	two.stage[0].out = two.stage[1].in = 50;
	struct hd_sim_plan sim = hd_sim_adds_up(&far, &(struct hd_sim_setting){ .costs = &two, .cluster = &c,
		.spans = true });
	assert_int_equal(sim.span[0][1].end, 100 + 50 + 75);
	/* F1.0 from 150; the second tensor goes from 225: of F1.0 75 are done, of the other 25 half while
	 * it goes, until 275 */
	assert_int_equal(sim.span[1][0].end, 225 + 50);
}

/* Ranks that nothing binds to one another, with work for 10, 30 and 20 on two cores: all at 2/3 until the
 * first has ended at 15, then each on a core of its own. */
static void ranks_share_the_cores_that_there_are(void **state)
{
	struct hd_schedule s = hd_parsed_schedule("0: F0.0 B0.0\n1: F0.1 B0.1\n2: F0.2 B0.2\n");
	struct hd_stage_cost stage = { .f = 4 * U, .i = 6 * U };
	const struct hd_stage_costs costs = { .nstages = 1, .stage = &stage, .ovl = 1, .comm_tax = 1 };
	const double speed[3] = { 1, 1.0 / 3, 0.5 };
	static const struct { uint32_t cores; int64_t end[3]; } rows[] = { { 0, { 10, 30, 20 } },
		{ 3, { 10, 30, 20 } }, { 2, { 15, 35, 25 } }, { 1, { 30, 60, 50 } } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_sim_plan sim = hd_sim_adds_up(&s, &(struct hd_sim_setting){ .costs = &costs,
			.cores = rows[i].cores, .speed = speed });
		for (uint32_t r = 0; r < 3; r++)
			CHECK(llabs(sim.rank[r].last - rows[i].end[r] * U) < 16,
				"%u cores: rank %u ends at %lld",
				rows[i].cores, r, (long long)sim.rank[r].last);
	}
}

/* Flush schedules without hops: while something is left, one rank can work. So one core is never idle, and as
 * many cores as ranks are as good as no word of cores. */
static void one_core_is_never_idle(void **state)
{
	static const char *const names[] = { "gpipe", "1f1b", "interleaved", "zb-h1", "zb-v" };
	const struct hd_rank_costs costs = { 3 * U, 2 * U, U, 0 };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		for (uint32_t p = 2; p <= 4; p++) {
			const struct hd_schedule_ask ask = { .name = names[i], .p = p, .m = 2 * p,
				.v = !strcmp(names[i], "zb-v") || !strcmp(names[i], "interleaved") ? 2 : 1 };
			struct hd_schedule s;
			struct hd_stage_costs even;
			struct hd_diag diag = { "" };
			CHECK(hd_schedule_make(&s, &ask, &arena, &diag) == HD_OK, "%s", diag.text);
			CHECK(hd_stage_costs_even(&even, &costs, s.nstages, &arena, &diag) == HD_OK, "%s",
				diag.text);
			struct hd_sim_setting set = { .costs = &even, .per_ps = ask.v };
			const int64_t free = hd_sim_adds_up(&s, &set).makespan;
			set.cores = p;
			CHECK(hd_sim_adds_up(&s, &set).makespan == free, "%s on %u", names[i], p);
			set.cores = 1;
			int64_t one = hd_sim_adds_up(&s, &set).makespan, work = 6 * U * ask.v * ask.m * p;
			CHECK(one >= work && one - work < 1000000, "%s, p %u: %lld for %lld of work",
				names[i],
				p, (long long)one, (long long)work);
		}
}

static void steps_repeat_and_give_a_rate(void **state)
{
	struct hd_schedule s = hd_named_schedule("1f1b", 2, 4, 0);
	struct hd_stage_costs costs = plain(2);
	const struct hd_sim_setting set = { .costs = &costs, .steps = 6 };

	(void)state;
	costs.stage[0].out = costs.stage[1].in = 0;
	struct hd_sim_plan sim = hd_sim_adds_up(&s, &set);
	assert_int_equal(sim.steps, 6);
	/* a step is 4 virtual nodes of 200 ticks, and one more stage to fill */
	assert_int_equal(sim.step_end[5] - sim.step_end[1], 4 * 1000);
	CHECK(hd_sim_plan_rate(&sim) > 3.99e9 && hd_sim_plan_rate(&sim) < 4.01e9, "%g",
		hd_sim_plan_rate(&sim));
}

static void noise_follows_the_seed_alone(void **state)
{
	struct hd_schedule s = hd_named_schedule("1f1b", 3, 40, 0);
	struct hd_stage_costs costs = plain(3);
	struct hd_sim_setting set = { .costs = &costs, .noise = true, .seed = 7 };
	int64_t quiet = hd_sim_adds_up(&s, &(struct hd_sim_setting){ .costs = &costs }).makespan;

	(void)state;
	for (uint32_t k = 0; k < 3; k++) {
		costs.stage[k].f *= 1000000;
		costs.stage[k].of_f = (struct hd_spread){ costs.stage[k].f, costs.stage[k].f / 10 };
	}
	quiet = hd_sim_adds_up(&s, &(struct hd_sim_setting){ .costs = &costs }).makespan;
	int64_t one = hd_sim_adds_up(&s, &set).makespan, again = hd_sim_adds_up(&s, &set).makespan;
	set.seed = 8;
	int64_t other = hd_sim_adds_up(&s, &set).makespan;
	assert_true(one == again && one != other && one != quiet);
	CHECK(one > quiet * 9 / 10 && one < quiet * 13 / 10, "%lld, %lld without noise", (long long)one,
		(long long)quiet);
	/* the mean of many draws is the mean, their deviation the deviation */
	double sum = 0, square = 0;
	for (uint32_t i = 0; i < 4000; i++) {
		double d = (double)(hd_sim_draw(3, 1, 2, i, 0,
			&(struct hd_spread){ 100000, 1000 }) - 100000) / 1000;
		sum += d;
		square += d * d;
	}
	CHECK(sum / 4000 < 0.06 && sum / 4000 > -0.06 && square / 4000 > 0.92 && square / 4000 < 1.08,
		"mean %g, variance %g", sum / 4000, square / 4000);
}

static void what_is_odd_is_warned_of(void **state)
{
	struct hd_schedule s = hd_parsed_schedule("p 3\n0: F0.0 B0.0\n1: F1.0 B1.0\n2: BAR0\n");
	struct hd_stage_costs costs = plain(2);
	struct hd_sim_warning w[HD_SIM_WARNINGS];
	const struct hd_stage_rule rule[] = { { 1, 9 }, { 1, 0 } };
	const struct hd_schedule_job job = { .rule = rule };

	(void)state;
	costs.stage[0].f = 900;
	struct hd_sim_plan sim = hd_sim_adds_up(&s, &(struct hd_sim_setting){ .costs = &costs, .job = &job });
	assert_int_equal(hd_sim_plan_warnings(&sim, w, HD_SIM_WARNINGS), 3);
	assert_string_equal(w[0].text,
		"the slowest rank works 67 % longer than the mean of all: other cuts would balance the "
		"stages");
	assert_string_equal(w[1].text, "rank 2 has no work");
	assert_string_equal(w[2].text,
		"rank 0: older versions of weights are 9000 of its 11395 bytes at most");
	assert_int_equal(hd_sim_plan_warnings(&sim, w, 1), 1);
	s = hd_named_schedule("gpipe", 4, 2, 0);
	costs = plain(4);
	sim = hd_sim_adds_up(&s, &(struct hd_sim_setting){ .costs = &costs });
	assert_int_equal(hd_sim_plan_warnings(&sim, w, HD_SIM_WARNINGS), 1);
	assert_string_equal(w[0].text,
		"the bubble is 150 % of the busiest rank's work: more virtual nodes a step, or fewer ranks, "
		"make it smaller");
}

/* 2^62 ticks, or an error: no overflow. */
static void slower_links_take_longer_or_are_refused(void **state)
{
	static const double slower[] = { 1e15, 1e12, 1e9, 1e6, 1e5, 1e4, 1e3, 100, 10, 1 };
	const struct { const char *lists; uint32_t nstages; int64_t moved; } cases[] = {
		{ "0: F0.0 F0.1 B0.0 B0.1\n1: F1.0 B1.0 F1.1 B1.1\n", 2, 20 * 2 },             /* a way at least */
		{ "0: F0.0 B0.0 RED0 STEP0\n1: F0.1 B0.1 RED0 STEP0\n", 1, 1000 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		for (int64_t larger = 1; larger <= 1000000000; larger *= 1000) {
			struct hd_schedule s = hd_parsed_schedule(cases[k].lists);
			struct hd_stage_costs costs = plain(cases[k].nstages);
			struct hd_sim_plan sim, before = { 0 };
			bool refused = false;
			for (uint32_t i = 0; i < costs.nstages; i++) {
				costs.stage[i].in *= larger;
				costs.stage[i].out *= larger;
				costs.stage[i].param *= larger;
			}
			for (size_t b = 0; b < sizeof slower / sizeof *slower; b++) {
				const struct hd_cluster_level level = { "net", 2, slower[b], 0 };
				struct hd_cluster c;
				struct hd_diag diag = { "" };
				assert_int_equal(hd_cluster_make(&c, &level, 1,
					(struct hd_cluster_kind){ "any", 1, 0 }, &arena, &diag), HD_OK);
				const struct hd_sim_setting set = { .costs = &costs, .cluster = &c };
				double least = (double)(cases[k].moved * larger) * 1e12 / slower[b];
				enum hd_err err = hd_sim_plan(&sim, &s, &set, &arena, &diag);
				CHECK(err == HD_OK || (err == HD_E_INVAL && least > 0x1p58),
					"case %zu: %lld times at %g B/s: %s", k, (long long)larger,
					slower[b], diag.text);
				CHECK(!err || strstr(diag.text, "raise bytes_per_s"), "%s", diag.text);
				CHECK(err || (!refused && sim.makespan >= before.makespan &&
					(double)sim.makespan >= least),
					"case %zu: %lld times at %g B/s: %lld", k, (long long)larger,
					slower[b], (long long)sim.makespan);
				refused |= err != HD_OK;
				before = err ? before : sim;
			}
			CHECK(refused == (larger > 1000), "case %zu: %lld times", k, (long long)larger);
		}
}

static void what_cannot_be_simulated_is_refused(void **state)
{
	struct hd_stage_costs costs = plain(2);
	struct hd_stage_costs long_work = plain(2), long_sums = plain(1);
	struct hd_cluster c = hd_small_cluster(2, 0);
	const uint32_t device[] = { 0, 5 };
	const double speed[] = { 1, 0 }, slow[] = { 1, 1e-18 };
	const struct { const char *lists; struct hd_sim_setting set; const char *says; } cases[] = {
		{ "0: F0.0 B0.0\n1: B1.0 F1.0\n", { .costs = &costs }, "it never ends: rank 0 waits at #1 B0.0, rank 1 at #0 B1.0" },
		{ "0: F0.0 B0.0 F0.0\n1: F1.0 B1.0\n", { .costs = &costs }, "forward of stage 0, virtual node 0 stands twice, on ranks 0 and 0" },
		{ "0: F0.0 B0.0\n", { .costs = &costs }, "costs of 2 stages for a schedule of 1" },
		{ "0: F0.0 B0.0\n1: F1.0 B1.0\n", { .costs = &costs, .cluster = &c, .device = device }, "rank 1 is on device 5; the cluster has 2" },
		{ "0: F0.0 B0.0\n1: F1.0 B1.0\n", { .costs = &costs, .speed = speed }, "rank 1 has speed 0; it is above 0" },
		{ "0: F0.0 RA0.0<1 B0.0\n1: F1.0 B1.0\n", { .costs = &costs }, "rank 0, #1: stage 0 has nothing to receive" },
		{ "0: F0.0 B0.0\n1: F1.0 B1.0\n", { .costs = &long_work }, "(2^62 ticks), the most that is simulated: lower the costs" },
		{ "0: F0.0 B0.0\n1: F1.0 B1.0\n", { .costs = &costs, .speed = slow }, "4.61e+06 s (2^62 ticks), the most that is simulated" },
		{ "0: F0.0 B0.0\n1: F1.0 B1.0\n", { .costs = &costs, .hop = INT64_MAX }, "(2^62 ticks), the most that is simulated" },
		{ "0: F0.0 B0.0 RED0 STEP0\n1: F0.1 B0.1 RED0 STEP0\n", { .costs = &long_sums, .cluster = &c }, "(2^62 ticks), the most that is" },
		{ "0: F0.0 OFF0.0 ON0.0 B0.0\n", { .costs = &long_sums, .host_bytes_per_s = 1e-20 }, "raise the bytes per second between" },
		{ "0: F0.0 RED0 B0.0 RED1\n1: F1.0 RED1 B1.0 RED0\n", { .costs = &costs }, "RED0 never begins: it stands behind another on rank 1" },
	};

	(void)state;
	long_work.stage[0].f = long_work.stage[1].i = INT64_MAX;
	long_sums.stage[0].add = INT64_MAX;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct hd_schedule s = hd_parsed_schedule(cases[k].lists);
		struct hd_sim_plan sim = { 0 };
		struct hd_diag diag = { "" };
		enum hd_err err = hd_sim_plan(&sim, &s, &cases[k].set, &arena, &diag);
		CHECK(err != HD_OK && strstr(diag.text, cases[k].says), "case %zu: %s", k, diag.text);
		assert_null(sim.rank);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_simulators_agree_on_every_family, make_arena,
			drop_arena),
		cmocka_unit_test_setup_teardown(both_simulators_agree_on_the_stored_schedules, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(sums_go_over_the_slowest_level_beside_compute, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(a_sum_leaves_one_buffer, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(norms_ties_and_barriers_wait_for_all, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(offloaded_activations_leave_and_come_back, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(pinned_versions_are_kept, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(pairs_overlap_and_transfers_tax_compute, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(ranks_share_the_cores_that_there_are, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(one_core_is_never_idle, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(steps_repeat_and_give_a_rate, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(noise_follows_the_seed_alone, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(what_is_odd_is_warned_of, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(slower_links_take_longer_or_are_refused, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(what_cannot_be_simulated_is_refused, make_arena, drop_arena),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
