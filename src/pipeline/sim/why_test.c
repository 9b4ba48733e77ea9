/* The critical path: by hand, by a law that no walk along causes knows of, and with shadows. */
#include "pipeline/sim_why.h"

#include <string.h>

#include "pipeline/passes.h"
#include "pipeline/redundancy.h"
#include "pipeline/sim/testing.h"
#include "tests/check.h"

static struct hd_schedule made(const char *name, uint32_t p, uint32_t m, uint32_t v, bool complete)
{
	struct hd_schedule s, all;
	struct hd_diag diag = { "" };
	const struct hd_schedule_ask ask = { .name = name, .p = p, .m = m, .v = v };

	CHECK(hd_schedule_make(&s, &ask, &arena, &diag) == HD_OK, "%s", diag.text);
	if (!complete)
		return s;
	CHECK(hd_schedule_complete(&all, &s, &(struct hd_pass_options){ 0 }, &arena, &diag) == HD_OK, "%s",
		diag.text);
	return all;
}

static struct hd_stage_costs priced(uint32_t nstages, int64_t f, int64_t b)
{
	struct hd_stage_costs costs = { .nstages = nstages, .ovl = 1, .comm_tax = 1,
		.stage = hd_arena_take(&arena, nstages, sizeof *costs.stage) };

	for (uint32_t s = 0; s < nstages; s++)
		costs.stage[s] = (struct hd_stage_cost){ .f = f, .i = b / 2, .w = b - b / 2, .r = f,
			.step = 5, .param = 8, .out = 4, .in = 4 };
	return costs;
}

/* Two stages of F 10 and B 20, a hop of 3, two virtual nodes: rank 1 has 2 x 30 and then, over a hop, rank 0
 * its last B of 20 and the update of 5; F0 of rank 0 and a hop come before. */
static void two_stages_by_hand(void **state)
{
	const struct hd_schedule s = made("gpipe", 2, 2, 1, true);
	const struct hd_stage_costs costs = priced(2, 10, 20);
	const struct hd_sim_setting set = { .costs = &costs, .hop = 3,
		.transport = HD_TRANSPORT_BUFFERED };
	struct hd_sim_plan sim;
	const struct hd_sim_reasons why = hd_sim_explained(&s, &set, &sim);

	(void)state;
	assert_int_equal(sim.makespan, 10 + 3 + 60 + 3 + 20 + 5);
	assert_int_equal(why.term[HD_INS_F], 30);
	assert_int_equal(why.term[HD_INS_B], 60);
	assert_int_equal(why.term[HD_INS_STEP], 5);
	assert_int_equal(why.term[HD_TERM_TRANSFER], 6);
	assert_true(why.nparts >= 5 && why.part[0].rank == 0 && why.part[1].kind == HD_PATH_TRANSFER);
	assert_true(why.part[1].rank == 1 && why.part[1].from == 0 && why.part[2].rank == 1);
	/* rank 1 waits for rank 0 before it has worked, rank 0 for rank 1 */
	assert_true(why.nwaits >= 2 && why.wait[0].of == 1);
	CHECK(why.wait[why.nwaits - 1].rank == 1 && why.wait[why.nwaits - 1].of == 0, "rank %u waits for %u",
		why.wait[why.nwaits - 1].rank, why.wait[why.nwaits - 1].of);
}

/* Two pipelines of one stage: rank 0 has one virtual node, rank 1 two, and comes last to the sum. */
static void the_slower_pipeline_is_the_cause_of_a_sum(void **state)
{
	const struct hd_schedule s = hd_parsed_schedule("0: F0.0 B0.0 RED0 NORM STEP0\n"
		"1: F0.1 B0.1 F0.2 B0.2 RED0 NORM STEP0\n");
	const struct hd_stage_costs costs = priced(1, 10, 20);
	const struct hd_sim_setting set = { .costs = &costs, .hop = 3,
		.transport = HD_TRANSPORT_BUFFERED };
	struct hd_sim_plan sim;
	const struct hd_sim_reasons why = hd_sim_explained(&s, &set, &sim);

	(void)state;
	assert_int_equal(why.term[HD_INS_F], 20);
	assert_int_equal(why.term[HD_INS_B], 40);
	assert_int_equal(why.term[HD_INS_STEP], 5);
	assert_int_equal(why.part[0].rank, 1);
	assert_true(why.nwaits && why.wait[0].rank == 0 && why.wait[0].of == 1);
}

/* How often the path has F of a stage. */
static int64_t forwards(const struct hd_schedule *s, const struct hd_sim_reasons *why, uint32_t stage)
{
	int64_t n = 0;

	for (uint32_t q = 0; q < why->nparts; q++) {
		const struct hd_path_part *part = &why->part[q];
		for (uint32_t at = part->first; part->kind == HD_PATH_WORK && at < part->end; at++)
			n += s->list[part->rank].at[at].op == HD_INS_F &&
				s->list[part->rank].at[at].stage == stage;
	}
	return n;
}

static uint32_t dearer(const struct hd_schedule s, int64_t hop)
{
	struct hd_stage_costs costs = priced(s.nstages, 30, 60);
	const struct hd_sim_setting set = { .costs = &costs, .hop = hop,
		.transport = HD_TRANSPORT_BUFFERED };
	struct hd_sim_plan sim, other;
	uint32_t found = 0;

	costs.stage[s.nstages / 2].f += 11;
	costs.stage[0].w += 7;
	const struct hd_sim_reasons why = hd_sim_explained(&s, &set, &sim);
	for (uint32_t k = 0; k < s.nstages; k++) {
		const int64_t n = forwards(&s, &why, k);
		costs.stage[k].f += 100;
		(void)hd_sim_explained(&s, &set, &other);
		costs.stage[k].f -= 100;
		CHECK(other.makespan >= sim.makespan + 100 * n,
			"%s, hop %lld: F of stage %u is %lld times in the path, the step goes from %lld to "
			"%lld", s.heading, (long long)hop, k, (long long)n, (long long)sim.makespan,
			(long long)other.makespan);
		found += n > 0;
	}
	return found;
}

/* Whatever waits for what: a path is a chain of things that cannot begin before one another. So if the op of
 * a stage takes d longer, the step takes at least d longer for each time that the path has it. */
static void dearer_parts_of_the_path_make_the_step_longer(void **state)
{
	static const struct { const char *name; uint32_t p, m, v; } rows[] = {
		{ "gpipe", 3, 5, 1 }, { "1f1b", 4, 7, 1 }, { "interleaved", 2, 6, 2 }, { "zb-h1", 3, 6, 1 },
		{ "zb-v", 3, 6, 2 }, { "1f1b", 2, 9, 1 }, { "dualpipev", 2, 6, 2 },
	};
	uint32_t found = 0;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (int64_t hop = 0; hop < 40; hop += 13)
			found += dearer(made(rows[i].name, rows[i].p, rows[i].m, rows[i].v, true), hop);
	CHECK(found > 20, "F of %u stages is on a path", found);
}

/* Pipelines side by side meet in sums; shadows work, and send. */
static void pipelines_and_shadows_are_in_it(void **state)
{
	/* at least the update of a shadow; with FULL forward and backward of it at the end of a list, too */
	static const struct { enum hd_redundancy mode; int64_t least; } rows[] = {
		{ HD_REDUNDANCY_LAZY, 5 }, { HD_REDUNDANCY_EAGER, 5 }, { HD_REDUNDANCY_FULL, 35 } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct hd_schedule s = made("1f1b", 3, 6, 1, true);
		const struct hd_stage_costs costs = priced(3, 10, 20);
		const struct hd_sim_setting set = { .costs = &costs, .hop = 3,
			.transport = HD_TRANSPORT_BUFFERED };
		struct hd_schedule with;
		struct hd_sim_plan sim;
		struct hd_diag diag = { "" };
		int64_t shadows = 0;
		CHECK(hd_redundancy_add(&with, &s, &(struct hd_redundancy_ask){ .mode = rows[i].mode,
			.setting = &set }, &arena, &diag) == HD_OK, "%s", diag.text);
		const struct hd_sim_reasons why = hd_sim_explained(&with, &set, &sim);
		for (uint32_t t = HD_TERM_SHADOW; t < HD_TERM_MEETING; t++)
			shadows += why.term[t];
		CHECK(shadows >= rows[i].least, "mode %d: %lld of shadows", rows[i].mode, (long long)shadows);
	}
}

static void terms_have_names(void **state)
{
	char room[32];

	(void)state;
	assert_string_equal(hd_term_name(HD_INS_F, room), "F");
	assert_string_equal(hd_term_name(HD_TERM_SHADOW + HD_INS_F, room), "F of shadows");
	assert_string_equal(hd_term_name(HD_TERM_MEETING + HD_INS_RED, room), "RED");
	assert_string_equal(hd_term_name(HD_TERM_TRANSFER, room), "transfers");
	assert_string_equal(hd_term_name(HD_TERM_HOST, room), "host");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(two_stages_by_hand, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(the_slower_pipeline_is_the_cause_of_a_sum, make_arena,
			drop_arena),
		cmocka_unit_test_setup_teardown(dearer_parts_of_the_path_make_the_step_longer, make_arena,
			drop_arena),
		cmocka_unit_test_setup_teardown(pipelines_and_shadows_are_in_it, make_arena, drop_arena),
		cmocka_unit_test(terms_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
