/* The transform: what it writes, that erasing undoes it, that the checker accepts it, and what it costs. */
#include "pipeline/redundancy.h"

#include "pipeline/passes.h"
#include "pipeline/sim/testing.h"
#include "pipeline/testing_shadows.h"
#include "tests/check.h"

static const char *const kinds[] = { "gpipe", "1f1b", "zb-h1", "zb-h2", "1f1b-rr" };
enum { NKINDS = sizeof kinds / sizeof *kinds };

static struct hd_stage_costs even_costs(uint32_t nstages, int64_t f, int64_t i, int64_t w)
{
	struct hd_stage_costs c = { 0 };
	const struct hd_rank_costs full = { .f = f, .i = i, .w = w };

	CHECK(hd_stage_costs_even(&c, &full, nstages, &arena, NULL) == HD_OK, "costs");
	return c;
}

static struct hd_schedule with_shadows(const struct hd_schedule *s, enum hd_redundancy mode,
	enum hd_shadow_place place)
{
	const struct hd_stage_costs costs = even_costs(s->nstages, 10, 10, 10);
	const struct hd_sim_setting set = { .costs = &costs };
	const struct hd_redundancy_ask ask = { mode, place, &set };
	struct hd_schedule out = { 0 };
	struct hd_diag diag = { "" };

	CHECK(hd_redundancy_add(&out, s, &ask, &arena, &diag) == HD_OK, "%s: %s", s->heading, diag.text);
	return out;
}

static struct hd_schedule complete(const struct hd_schedule *s)
{
	struct hd_schedule out = { 0 };
	struct hd_diag diag = { "" };

	CHECK(hd_schedule_complete(&out, s, &(struct hd_pass_options){ 0 }, &arena, &diag) == HD_OK, "%s",
		diag.text);
	return out;
}

static void check_one(const struct hd_schedule *s, const struct hd_schedule *whole, enum hd_redundancy mode,
	enum hd_shadow_place place)
{
	struct hd_schedule made = with_shadows(s, mode, place), again = { 0 };
	struct hd_diag diag = { "" };
	static const struct hd_schedule_rules rules[] = { { HD_TRANSPORT_EAGER, 0 },
		{ HD_TRANSPORT_BUFFERED, 0 }, { HD_TRANSPORT_BUFFERED, 1 } };

	CHECK(hd_redundancy_in(&made) && !hd_redundancy_in(whole), "%s", s->heading);
	CHECK(hd_redundancy_erase(&again, &made, &arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(!strcmp(hd_printed_schedule(&again), hd_printed_schedule(whole)),
		"%s %s: erased it is\n%s\nnot\n%s",
		s->heading, hd_redundancy_names[mode], hd_printed_schedule(&again),
		hd_printed_schedule(whole));
	for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
		bool bare = !hd_schedule_check(whole, &rules[k], NULL, &diag);
		CHECK(!bare == !!hd_schedule_check(&made, &rules[k], NULL, &diag), "%s %s %s: %s\n%s",
			s->heading, hd_redundancy_names[mode], hd_shadow_place_names[place], diag.text,
			hd_printed_schedule(&made));
	}
	/* text form: parsed back it is the same */
	struct hd_schedule parsed = hd_parsed_schedule(hd_printed_schedule(&made));
	CHECK(!strcmp(hd_printed_schedule(&parsed), hd_printed_schedule(&made)), "%s", s->heading);
}

static void erasing_gives_back_what_was_given_and_the_checker_accepts_both(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < NKINDS; k++)
		for (uint32_t p = 2; p <= 6; p++)
			for (uint32_t m = 1; m <= 2 * p + 1; m += 2)
				for (int mode = HD_REDUNDANCY_LAZY; mode < HD_NREDUNDANCIES; mode++)
					for (int place = 0; place < HD_NSHADOW_PLACES; place++) {
						struct hd_schedule s = hd_named_schedule(kinds[k], p, m, 0),
							whole = complete(&s);
						check_one(&s, &whole, (enum hd_redundancy)mode,
							(enum hd_shadow_place)place);
					}
	for (uint32_t k = 0; k < 3; k++)
		for (uint32_t d = 1; d <= 3; d++)
			for (int mode = HD_REDUNDANCY_LAZY; mode < HD_NREDUNDANCIES; mode++) {
				struct hd_schedule s = hd_side_by_side(kinds[k], 3, 5, d);
				check_one(&s, &s, (enum hd_redundancy)mode, HD_SHADOW_PLACE_AUTO);
			}
}

/* Written by hand from the rules of the header. */
static void lists_of_two_stages_are_these(void **state)
{
	static const struct { enum hd_redundancy mode; const char *want; } cases[] = {
		{ HD_REDUNDANCY_LAZY,
			"## 1f1b p=2 m=2 stages=2\n"
			"0: PIN0@0 LD0.0 F0.0 SAk0.0>1 LD0.1 F0.1 SAk0.1>1 RG0.0<1 B0.0 RG0.1<1 B0.1 SHIP0>1 "
			"REL0@0 TAKE1<1 STEP0@1 STEPx1@1\n"
			"1: PIN1@0 LD1.0 RA1.0<0 F1.0 B1.0 SGk1.0>0 LD1.1 RA1.1<0 F1.1 B1.1 SGk1.1>0 SHIP1>0 "
			"REL1@0 TAKE0<0 STEP1@1 STEPx0@1\n" },
		{ HD_REDUNDANCY_EAGER,
			"## 1f1b p=2 m=2 stages=2\n"
			"0: PIN0@0 LD0.0 F0.0 SAk0.0>1 LD0.1 F0.1 SAk0.1>1 LDx1.0 Fx1.0 OFFx1.0 RG0.0<1 B0.0 "
			"LDx1.1 Fx1.1 OFFx1.1 RG0.1<1 B0.1 SHIP0>1 REL0@0 TAKE1<1 STEP0@1 STEPx1@1\n"
			"1: PIN1@0 LD1.0 RA1.0<0 F1.0 B1.0 SGk1.0>0 LD1.1 LDx0.0 Fx0.0 OFFx0.0 RA1.1<0 F1.1 "
			"B1.1 "
			"SGk1.1>0 LDx0.1 Fx0.1 OFFx0.1 SHIP1>0 REL1@0 TAKE0<0 STEP1@1 STEPx0@1\n" },
		{ HD_REDUNDANCY_FULL,
			"## 1f1b p=2 m=2 stages=2\n"
			"0: PIN0@0 LD0.0 F0.0 SAk0.0>1 LD0.1 F0.1 SAk0.1>1 LDx1.0 Fx1.0 Bx1.0 RG0.0<1 B0.0 "
			"LDx1.1 Fx1.1 Bx1.1 RG0.1<1 B0.1 SHIP0>1 REL0@0 TAKE1<1 STEP0@1 STEPx1@1\n"
			"1: PIN1@0 LD1.0 RA1.0<0 F1.0 B1.0 SGk1.0>0 LD1.1 LDx0.0 Fx0.0 RA1.1<0 F1.1 B1.1 "
			"SGk1.1>0 LDx0.1 Fx0.1 Bx0.0 Bx0.1 SHIP1>0 REL1@0 TAKE0<0 STEP1@1 STEPx0@1\n" },
	};

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct hd_schedule s = hd_named_schedule("1f1b", 2, 2, 0),
			made = with_shadows(&s, cases[k].mode, HD_SHADOW_PLACE_RECEIVES);
		CHECK(!strcmp(hd_printed_schedule(&made), cases[k].want), "%s is\n%s",
			hd_redundancy_names[cases[k].mode], hd_printed_schedule(&made));
	}
}

/* Two pipelines: each ships round its own ring, and takes when the step is over. */
static void pipelines_have_a_ring_each(void **state)
{
	struct hd_schedule s, made;

	(void)state;
	s = hd_side_by_side("gpipe", 2, 1, 2);
	made = with_shadows(&s, HD_REDUNDANCY_LAZY, HD_SHADOW_PLACE_AUTO);
	CHECK(!strcmp(hd_printed_schedule(&made),
		"## gpipe\n"
		"0: PIN0@0 LD0.0 F0.0 SAk0.0>1 RG0.0<1 B0.0 REL0@0 RED0 SHIP0>1 NORM STEP0@1 TAKE1<1 "
		"STEPx1@1\n"
		"1: PIN1@0 LD1.0 RA1.0<0 F1.0 B1.0 SGk1.0>0 REL1@0 RED1 SHIP1>0 NORM STEP1@1 TAKE0<0 "
		"STEPx0@1\n"
		"2: PIN0@0 LD0.1 F0.1 SAk0.1>3 RG0.1<3 B0.1 REL0@0 RED0 SHIP0>3 NORM STEP0@1 TAKE1<3 "
		"STEPx1@1\n"
		"3: PIN1@0 LD1.1 RA1.1<2 F1.1 B1.1 SGk1.1>2 REL1@0 RED1 SHIP1>2 NORM STEP1@1 TAKE0<2 "
		"STEPx0@1\n"),
		"it is\n%s", hd_printed_schedule(&made));
}

static void what_has_no_ring_is_refused_with_the_reason(void **state)
{
	static const struct { const char *text, *want; } cases[] = {
		{ "0: F0.0 F2.0 B2.0 B0.0\n1: F1.0 B1.0\n", "rank 0 runs stages 0 and 2: with shadows a rank has one stage, as in gpipe, 1f1b, zb-h1, zb-h2" },
		{ "0: F0.0 B0.0\n", "there is 1 stage: a shadow stands on a rank of another stage" },
		{ "p 3\n0: F0.0 B0.0\n1: F1.0 B1.0\n2: \n", "rank 2 runs no stage: with shadows every rank has one" },
		{ "0: F0.0 F0.1 B0.0 B0.1\n1: F1.0 B1.0\n2: F1.1 B1.1\n", "3 ranks are not 1 pipelines of 2 stages: with shadows each stage has as many ranks as stage 0" },
		{ "0: F0.0 F0.1 B0.0 B0.1\n1: F0.2 F0.3 B0.2 B0.3\n2: F1.0 F1.2 B1.0 B1.2\n3: F1.1 F1.3 B1.1 B1.3\n",
			"rank 2 runs virtual nodes of several pipelines: with shadows all stages share them "
			"out alike" },
		{ "0: F0.0 F0.1 B0.0 B0.1\n1: F0.2 F0.3 B0.2 B0.3\n2: F1.0 B1.0\n3: F1.1 B1.1\n",
			"ranks 2 and 3 both run stage 1 for one pipeline: with shadows all stages share "
			"virtual nodes out alike" },
		{ "0: F0.0 B0.0 STEP0\n1: F1.0 B1.0 STEP1 STEP1\n", "rank 1 has STEP 2 times: with shadows once" },
		{ "0: F0.0 B0.0 STEP!0 VAL\n1: F1.0 B1.0 STEP!1 VAL\n", "rank 0, #7: STEP before the norm is known cannot be repeated by a shadow" },
		{ "0: LD0.0 F0.0 SA0.0>1 RG0.0<1 B0.0 SHIP0>1 STEP0\n1: RA1.0<0 F1.0 B1.0 SG1.0>0 STEP1\n", "it has shadow stages already" },
	};
	static const struct hd_redundancy_ask ask = { HD_REDUNDANCY_EAGER, HD_SHADOW_PLACE_RECEIVES, NULL };

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct hd_schedule s = hd_parsed_schedule(cases[k].text), out;
		struct hd_diag diag = { "" };
		CHECK(hd_redundancy_add(&out, &s, &ask, &arena, &diag) == HD_E_INVAL &&
			!strcmp(diag.text, cases[k].want), "%s: %s", cases[k].text, diag.text);
	}
	struct hd_schedule s = hd_named_schedule("pipedream", 3, 4, 0), out;
	struct hd_diag diag = { "" };
	CHECK(hd_redundancy_add(&out, &s, &ask, &arena, &diag) == HD_E_INVAL && !strcmp(diag.text,
		"updates are delayed (stash): with shadows they are those of whole steps"), "%s", diag.text);
	s = hd_named_schedule("1f1b", 3, 4, 0);
	CHECK(hd_redundancy_add(&out, &s, &(struct hd_redundancy_ask){ 0 }, &arena, &diag) == HD_OK &&
		!strcmp(hd_printed_schedule(&out), hd_printed_schedule(&s)), "none changes nothing");
}

/* ---- what it costs */

static struct hd_sim_plan simulated(const struct hd_schedule *s, const struct hd_stage_costs *costs)
{
	return hd_sim_adds_up(s, &(struct hd_sim_setting){ .costs = costs });
}

static struct hd_schedule shadowed(const struct hd_schedule *s, enum hd_redundancy mode,
	enum hd_shadow_place place, const struct hd_stage_costs *costs)
{
	const struct hd_sim_setting set = { .costs = costs };
	struct hd_schedule out = { 0 };
	struct hd_diag diag = { "" };

	CHECK(hd_redundancy_add(&out, s, &(struct hd_redundancy_ask){ mode, place, &set }, &arena,
		&diag) == HD_OK,
		"%s", diag.text);
	return out;
}

/* The goals of the design: eager within 15 % of a step, lazy within 2 %. By hand: 24 forwards of 10 fit into
 * the bubble of 1F1B but for one; before receives each stands on the critical path. */
static void eager_and_lazy_cost_little(void **state)
{
	static const struct { enum hd_redundancy mode; enum hd_shadow_place place; int64_t want; } cases[] = {
		{ HD_REDUNDANCY_LAZY, HD_SHADOW_PLACE_AUTO, 1050 },
		{ HD_REDUNDANCY_EAGER, HD_SHADOW_PLACE_RECEIVES, 1280 },
		{ HD_REDUNDANCY_EAGER, HD_SHADOW_PLACE_GAPS, 1060 },
		{ HD_REDUNDANCY_EAGER, HD_SHADOW_PLACE_AUTO, 1060 },
		{ HD_REDUNDANCY_FULL, HD_SHADOW_PLACE_AUTO, 1550 },
	};
	struct hd_schedule s;
	struct hd_stage_costs costs;

	(void)state;
	s = hd_named_schedule("1f1b", 12, 24, 0);
	costs = even_costs(12, 10, 10, 10);
	assert_int_equal(simulated(&s, &costs).makespan, (24 + 11) * 30);
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct hd_schedule made = shadowed(&s, cases[k].mode, cases[k].place, &costs);
		int64_t took = simulated(&made, &costs).makespan;
		CHECK(took == cases[k].want, "%s, %s: %lld", hd_redundancy_names[cases[k].mode],
			hd_shadow_place_names[cases[k].place], (long long)took);
	}
	assert_true(100 * (1060 - 1050) <= 15 * 1050);
}

/* Two stages, one virtual node; sizes that no two sums share. */
static void the_simulator_charges_memory_of_shadows(void **state)
{
	struct hd_stage_cost stage[2] = {
		{ .f = 10, .i = 10, .w = 10, .saved = 3, .saved_w = 3, .out = 50, .param = 1000, .opt = 2000 },
		{ .f = 10, .i = 10, .w = 10, .saved = 7, .saved_w = 7, .in = 50, .param = 10000, .opt = 20000 },
	};
	const struct hd_stage_costs costs = { .nstages = 2, .stage = stage, .ovl = 1, .comm_tax = 1 };
	struct hd_schedule s = hd_named_schedule("1f1b", 2, 1, 0), made;
	struct hd_sim_plan sim;

	(void)state;
	/* Rank 0 while its B runs: own state 3000, its sum 1000, activations 3, the gradient that came 50,
	 * and what rank 1 ships meanwhile, 10000. On the host the shadow's 30000, what was sent 50. */
	made = shadowed(&s, HD_REDUNDANCY_LAZY, HD_SHADOW_PLACE_RECEIVES, &costs);
	sim = simulated(&made, &costs);
	assert_int_equal(sim.rank[0].at_peak[HD_MEMORY_SHADOWS], 0);
	assert_int_equal(sim.rank[0].peak, 3000 + 1000 + 53 + 10000);
	assert_int_equal(sim.rank[0].host, 30000 + 50);
	/* the state of the shadow on the device; its activations pass to the host */
	made = shadowed(&s, HD_REDUNDANCY_EAGER, HD_SHADOW_PLACE_RECEIVES, &costs);
	sim = simulated(&made, &costs);
	assert_int_equal(sim.rank[0].at_peak[HD_MEMORY_SHADOWS], 30000);
	assert_int_equal(sim.rank[0].peak, 3000 + 1000 + 53 + 10000 + 30000);
	assert_int_equal(sim.rank[0].host, 7 + 50);
	/* And a sum of its gradients from Bx on. Rank 1 ships later, when the update takes it at once. */
	made = shadowed(&s, HD_REDUNDANCY_FULL, HD_SHADOW_PLACE_RECEIVES, &costs);
	sim = simulated(&made, &costs);
	assert_int_equal(sim.rank[0].at_peak[HD_MEMORY_SHADOWS], 30000 + 10000);
	assert_int_equal(sim.rank[0].peak, 3000 + 1000 + 53 + 40000);
	assert_int_equal(sim.rank[0].host, 50);
}

/* Gradients of a shadow are summed by a binary counter: of 7 leaves three sums at most, and the next leaf. */
static void sums_of_a_shadow_are_counted(void **state)
{
	struct hd_stage_cost stage[2] = { { .f = 1, .i = 1, .param = 1 }, { .f = 1, .i = 1, .param = 100 } };
	static const struct { uint32_t m; int64_t sums; } cases[] = { { 1, 1 }, { 2, 2 }, { 3, 2 }, { 4, 3 },
		{ 7, 3 }, { 8, 4 } };
	const struct hd_stage_costs costs = { .nstages = 2, .stage = stage, .ovl = 1, .comm_tax = 1 };

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct hd_schedule s = hd_named_schedule("1f1b", 2, cases[k].m, 0),
			made = shadowed(&s, HD_REDUNDANCY_FULL, HD_SHADOW_PLACE_RECEIVES, &costs);
		struct hd_sim_plan sim = simulated(&made, &costs);
		CHECK(sim.rank[0].at_peak[HD_MEMORY_SHADOWS] == 100 + 100 * cases[k].sums, "m %u: %lld",
			cases[k].m, (long long)sim.rank[0].at_peak[HD_MEMORY_SHADOWS]);
	}
}

/* What crosses links: shipped sums in every mode, each input gradient twice in `full`. */
static void the_simulator_charges_traffic_of_shadows(void **state)
{
	struct hd_stage_cost stage[3] = { { .out = 4, .param = 100 }, { .in = 4, .out = 8, .param = 200 },
		{ .in = 8, .param = 400 } };
	static const int64_t want[HD_NREDUNDANCIES][3] = { { 2 * 4, 2 * (4 + 8), 2 * 8 },
		{ 2 * 4 + 100, 2 * (4 + 8) + 200, 2 * 8 + 400 }, { 2 * 4 + 100, 2 * (4 + 8) + 200, 2 * 8 + 400 },
		{ 2 * 4 + 100, 2 * (4 + 8) + 200 + 2 * 4, 2 * 8 + 400 + 2 * 8 } };
	const struct hd_stage_costs costs = { .nstages = 3, .stage = stage, .ovl = 1, .comm_tax = 1 };
	struct hd_cluster cluster;

	(void)state;
	cluster = hd_small_cluster(3, 5);
	for (int mode = 0; mode < HD_NREDUNDANCIES; mode++) {
		struct hd_schedule s = hd_named_schedule("gpipe", 3, 2, 0);
		struct hd_schedule made = shadowed(&s, (enum hd_redundancy)mode, HD_SHADOW_PLACE_AUTO,
			&costs);
		for (uint32_t r = 0; r < 3; r++)
			stage[r].f = stage[r].i = 10;
		struct hd_sim_plan sim = hd_sim_adds_up(&made, &(struct hd_sim_setting){ .costs = &costs,
			.cluster = &cluster });
		int64_t bytes[3] = { 0 };
		for (uint32_t k = 0; k < sim.nlinks; k++)
			bytes[sim.link[k].component] += sim.link[k].bytes;
		for (uint32_t r = 0; r < 3; r++)
			CHECK(bytes[r] == want[mode][r], "%s: rank %u sends %lld bytes, not %lld",
				hd_redundancy_names[mode], r, (long long)bytes[r], (long long)want[mode][r]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(erasing_gives_back_what_was_given_and_the_checker_accepts_both),
		cmocka_unit_test(lists_of_two_stages_are_these),
		cmocka_unit_test(pipelines_have_a_ring_each),
		cmocka_unit_test(what_has_no_ring_is_refused_with_the_reason),
		cmocka_unit_test(eager_and_lazy_cost_little),
		cmocka_unit_test(the_simulator_charges_memory_of_shadows),
		cmocka_unit_test(sums_of_a_shadow_are_counted),
		cmocka_unit_test(the_simulator_charges_traffic_of_shadows),
	};
	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
