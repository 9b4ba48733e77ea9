/* What a job asks of a planner, key by key. */
#include "planner/job_ask.h"

#include <stdio.h>
#include <string.h>

#include "tests/planning.h"
#include "tests/check.h"

static struct hd_job job;

static struct hd_job_plan_ask ask_of(const char *parallel, const char *model)
{
	struct hd_diag diag = { "" };
	char text[512];

	snprintf(text, sizeof text, "job: {steps: 10}\nmodel: {use: builtin:gpt%s}\ndata: {kind: synthetic}\n"
		"batch: {global: 64, virtual_nodes: 8}\nparallel: {%s}\n", model, parallel);
	CHECK(hd_job_parse(&job, "tiny.yaml", text, strlen(text), NULL, 0, &arena, &diag, NULL) == HD_OK,
		"%s\n%s", diag.text, text);
	return hd_job_ask(&job);
}

static void what_is_auto_asks_for_nothing(void **state)
{
	struct hd_job_plan_ask a = ask_of("", "");

	(void)state;
	assert_int_equal(a.vns, 8);
	assert_true(!a.stages && !a.chunks && !a.tensor && !a.replicas && !a.schedule && !a.deep);
	assert_int_equal(a.recompute, HD_RECOMPUTES_IF_NEEDED);
	assert_int_equal(a.variant, HD_PART_PAPER);
	assert_true(!a.sums && !a.cluster && !a.meetings && !a.spans);
}

static void what_is_given_is_asked_for(void **state)
{
	struct hd_job_plan_ask a = ask_of("mode: pipeline, stages: 4, chunks: 2, replicas: 3, schedule: "
		"interleaved, recompute: stage", ", shards: 2");

	(void)state;
	assert_int_equal(a.stages, 4);
	assert_int_equal(a.chunks, 2);
	assert_int_equal(a.replicas, 3);
	assert_string_equal(a.schedule, "interleaved");
	assert_int_equal(a.recompute, HD_RECOMPUTES_ALWAYS);
	assert_true(a.deep);
	assert_int_equal(a.tensor_shards, 2);
	assert_int_equal(a.tensor, 0);
	assert_int_equal(ask_of("recompute: none", "").recompute, HD_RECOMPUTES_NEVER);
}

static void mode_tensor_asks_for_the_narrowest_group(void **state)
{
	static const struct { const char *parallel, *model; uint32_t tensor; } cases[] = {
		{ "mode: tensor", ", shards: 4", 2 }, { "mode: tensor", ", shards: 3", 3 },
		{ "mode: tensor, tensor: 4", ", shards: 4", 4 }, { "mode: auto", ", shards: 4", 0 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		CHECK(ask_of(cases[k].parallel, cases[k].model).tensor == cases[k].tensor, "case %zu: %u", k,
			hd_job_ask(&job).tensor);
}

static void a_variant_that_is_no_variant_is_the_other_planner(void **state)
{
	(void)state;
	assert_int_equal(hd_job_ask_variant(NULL), HD_PART_PAPER);
	for (uint32_t v = 0; v < HD_NPART_VARIANTS; v++)
		assert_int_equal(hd_job_ask_variant(hd_part_variant_name(v)), v);
	assert_int_equal(hd_job_ask_variant("heddle"), HD_NPART_VARIANTS);
}

/* "": refused. */
static void the_planner_is_that_of_the_option_the_mode_or_the_job(void **state)
{
	static const struct { const char *parallel, *model, *named, *planner; } cases[] = {
		{ "", "", NULL, "auto" },                        { "mode: data", "", NULL, "data" },
		{ "planner: ptdp", "", NULL, "ptdp" },           { "planner: ptdp", "", "pipedream", "pipedream" },
		{ "", ", bn: global", NULL, "data" },            { "mode: auto", ", bn: global", NULL, "data" },
		{ "planner: ptdp", ", bn: global", NULL, "" },   { "", ", bn: global", "2bw", "" },
		{ "mode: pipeline", ", bn: global", NULL, "" },  { "", "", "pipedreem", "" },
	};

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		const struct hd_job_planner *planner = NULL;
		struct hd_diag diag = { "" };
		ask_of(cases[k].parallel, cases[k].model);
		enum hd_err err = hd_job_ask_planner(&planner, &job, 0, cases[k].named, &diag);
		CHECK(*cases[k].planner ? !err && !strcmp(planner->name, cases[k].planner) :
			err == HD_E_INVAL, "case %zu: %s, %s", k, err ? "refused" : planner->name, diag.text);
	}
}

/* As with norms over the global batch. */
static void virtual_nodes_that_meet_are_for_planner_data(void **state)
{
	const struct hd_job_planner *planner = NULL;
	struct hd_diag diag = { "" };

	(void)state;
	ask_of("mode: auto", "");
	assert_int_equal(hd_job_ask_planner(&planner, &job, 4, NULL, &diag), HD_OK);
	assert_string_equal(planner->name, "data");
	assert_int_equal(hd_job_ask_planner(&planner, &job, 4, "ptdp", &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "a graph in several intervals"), "%s", diag.text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_arena, drop_arena)
	static const struct CMUnitTest tests[] = {
		TEST(what_is_auto_asks_for_nothing),
		TEST(what_is_given_is_asked_for),
		TEST(mode_tensor_asks_for_the_narrowest_group),
		TEST(a_variant_that_is_no_variant_is_the_other_planner),
		TEST(the_planner_is_that_of_the_option_the_mode_or_the_job),
		TEST(virtual_nodes_that_meet_are_for_planner_data),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
