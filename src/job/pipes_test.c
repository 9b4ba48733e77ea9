#include "job/job.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/redundancy.h"
#include "job/testing.h"
#include "tests/check.h"

/* redundancy: by-notice says both keys; they stand alone, too. */
static void redundancy_may_be_left_to_notices(void **state)
{
	static const struct { const char *more, *set, *value, *mode, *by; } row[] = {
		{ "", NULL, NULL, "none", "given" },
		{ "elastic: {redundancy: by-notice}\n", NULL, NULL, "lazy", "by-notice" },
		{ "redundancy: by-notice\n", NULL, NULL, "lazy", "by-notice" },
		{ "elastic: {redundancy: none, resilience: by-notice}\n", NULL, NULL, "none", "by-notice" },
		{ "resilience: by-notice\nredundancy: lazy\n", NULL, NULL, "lazy", "by-notice" },
		{ "", "redundancy", "by-notice", "lazy", "by-notice" },
		{ "redundancy: by-notice\n", "resilience", "given", "lazy", "by-notice" },
		{ "", "elastic.redundancy", "lazy", "lazy", "given" },
		/* words that are a redundancy; the later place counts */
		{ "", "resilience", "auto", "none", "auto" },
		{ "elastic: {resilience: shadow-lazy}\n", NULL, NULL, "lazy", "shadow-lazy" },
		{ "resilience: shadow-full\nparallel: {mode: pipeline}\n", NULL, NULL, "full", "shadow-full" },
		{ "resilience: reroute\n", NULL, NULL, "none", "reroute" },
		{ "resilience: replica:2\n", NULL, NULL, "none", "replica:2" },
		{ "resilience: shadow-lazy\n", "resilience", "replica:1", "none", "replica:1" },
		{ "resilience: shadow-lazy\n", "redundancy", "none", "none", "given" },
		{ "redundancy: lazy\n", "resilience", "checkpoint", "none", "checkpoint" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const struct hd_job_set set = { row[i].set, row[i].value, HD_FROM_SET };
		char text[400];
		snprintf(text, sizeof text, "%scomm: {sync: stages}\n%s", SMALLEST, row[i].more);
		CHECK(parse_with(text, &set, row[i].set != NULL) == HD_OK, "row %zu: %s", i, diag.text);
		CHECK(!strcmp(hd_job_text(&job, HD_JOB_REDUNDANCY), row[i].mode) &&
			!strcmp(hd_job_text(&job, HD_JOB_RESILIENCE), row[i].by), "row %zu: %s, %s", i,
			hd_job_text(&job, HD_JOB_REDUNDANCY), hd_job_text(&job, HD_JOB_RESILIENCE));
		CHECK(!strcmp(hd_redundancy_names[hd_job_int(&job, HD_JOB_REDUNDANCY)], row[i].mode),
			"row %zu: mode %lld", i, (long long)hd_job_int(&job, HD_JOB_REDUNDANCY));
		const uint32_t least = strncmp(row[i].by, "replica:", 8) ? 1 :
			(uint32_t)row[i].by[8] - '0' + 1;
		CHECK(hd_job_least_pipelines(&job) == least, "row %zu: %u pipelines at least", i,
			hd_job_least_pipelines(&job));
	}
	const struct hd_job_set pause = { "pause_max", "3 s", HD_FROM_SET },
		source = { "notice.source", "gce", HD_FROM_SET };
	assert_int_equal(parse_with(SMALLEST "notice: {source: ec2}\npause_max: 2 s\n", &pause, 1), HD_OK);
	assert_string_equal(hd_job_text(&job, HD_JOB_NOTICE_SOURCE), "ec2");
	assert_true(hd_job_int(&job, HD_JOB_PAUSE_MAX) == INT64_C(3000000000));
	assert_int_equal(parse_with(SMALLEST "notice: {source: ec2}\n", &source, 1), HD_OK);
	assert_string_equal(hd_job_text(&job, HD_JOB_NOTICE_SOURCE), "gce");
}

#define FOUR_SHARDS "job: {steps: 10}\nmodel: {use: builtin:mlp, shards: 4}\n" \
	"data: {kind: synthetic}\nbatch: {global: 64}\n"

/* What can be planned and not be run gets another message than what is wrong. */
static void what_is_only_planned_is_not_trained(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ SMALLEST, NULL },
		{ SMALLEST "parallel: {mode: data, stages: 1, chunks: 1, recompute: none}\n", NULL },
		{ SMALLEST "parallel: {mode: explicit, plan: a.plan}\n", NULL },
		{ SMALLEST "parallel: {mode: pipeline, stages: 2, replicas: 3}\n", NULL },
		{ SMALLEST "parallel: {schedule: zb-h1}\n", NULL },
		{ FOUR_SHARDS "parallel: {mode: tensor, replicas: 2}\n", NULL },
		{ FOUR_SHARDS "parallel: {tensor: 2, stages: 2}\n", NULL },
		{ SMALLEST "parallel: {planner: ptdp}\n", "tiny.yaml:5:21: parallel.planner: ptdp can be planned" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag why = { "" };
		must(cases[i].text);
		enum hd_err err = hd_job_trains(&job, &why);
		CHECK(err == (cases[i].says ? HD_E_INVAL : HD_OK) &&
			(!cases[i].says || strstr(why.text, cases[i].says)), "case %zu: %s", i, why.text);
	}
}

/* Stages run in one process: several workers are refused such a job, and others are not. */
static void stages_go_over_workers_but_not_sharded(void **state)
{
	static const struct { const char *text; bool stages; } cases[] = {
		{ SMALLEST, false },
		{ SMALLEST "parallel: {mode: data}\n", false },
		{ SMALLEST "parallel: {stages: 1, recompute: none}\n", false },
		{ SMALLEST "parallel: {mode: pipeline}\n", true },
		{ SMALLEST "parallel: {stages: 2}\n", true },
		{ SMALLEST "parallel: {recompute: stage}\n", true },
		{ SMALLEST "parallel: {offload: stage}\n", true },
		{ SMALLEST "parallel: {offload: none}\n", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag why = { "" };
		must(cases[i].text);
		CHECK(hd_job_has_stages(&job) == cases[i].stages, "case %zu", i);
		assert_int_equal(hd_job_spreads(&job, &why), HD_OK);
	}
	struct hd_diag why = { "" };
	must(SMALLEST "parallel: {mode: pipeline}\ncomm: {sync: sharded}\n");
	assert_int_equal(hd_job_spreads(&job, &why), HD_E_INVAL);
	CHECK(strstr(why.text, "comm.sync: stages, or allreduce"), "%s", why.text);
	must(SMALLEST "parallel: {mode: pipeline}\n");
	static const char *const wide[] = { FOUR_SHARDS "parallel: {mode: tensor}\n",
		FOUR_SHARDS "parallel: {tensor: 2, stages: 2}\n" };
	for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
		why.text[0] = '\0';
		must(wide[i]);
		assert_true(hd_job_has_stages(&job) && hd_job_has_tensor(&job));
		assert_int_equal(hd_job_has_depth(&job), i == 1);
		CHECK(hd_job_spreads(&job, &why) == HD_OK, "%s", why.text);
	}
	must(SMALLEST "parallel: {mode: explicit, plan: a.plan}\n");
	why.text[0] = '\0';
	assert_int_equal(hd_job_spreads(&job, &why), HD_E_INVAL);
	CHECK(strstr(why.text, "scheduler's workers take parallel.mode: data, and no plan"), "%s", why.text);
	assert_false(hd_job_is_listed(&job) || hd_job_has_stages(&job));
	/* over workers its lists are in the job, and are of no use without the mode */
	must(SMALLEST "parallel: {mode: explicit, plan: a.plan, lists: \"plan 0\\nstages 2\\n\"}\n");
	assert_string_equal(hd_job_text(&job, HD_JOB_PAR_LISTS), "plan 0\nstages 2\n");
	assert_true(hd_job_is_listed(&job) && hd_job_has_stages(&job) && hd_job_has_pipes(&job));
	assert_int_equal(hd_job_spreads(&job, NULL), HD_OK);
	must(SMALLEST "parallel: {lists: \"plan 0\\n\"}\n");
	assert_false(hd_job_is_listed(&job) || hd_job_has_stages(&job));
	must(SMALLEST "parallel: {mode: pipeline}\n");
	job.value[HD_JOB_SLICES].i = 2;
	why.text[0] = '\0';
	assert_int_equal(hd_job_spreads(&job, &why), HD_E_INVAL);
	CHECK(strstr(why.text, "batch.slices: 1"), "%s", why.text);
}

/* What was chosen before is open again where it starts. */
static void what_was_chosen_before_forbids_no_key(void **state)
{
	static const struct { const char *text; bool pipes; } cases[] = {
		{ SMALLEST "parallel: {mode: auto, settled: \"1f1b 2 2\"}\n", true },
		{ SMALLEST "parallel: {mode: auto, settled: \"1f1b 2 2\"}\ncomm: {sync: sharded}\n", true },
		{ SMALLEST "parallel: {mode: auto, settled: \"data-parallel 1 1 of 2\"}\n", false },
		{ SMALLEST "parallel: {mode: data, settled: \"1f1b 2 2\"}\n", false },
		{ SMALLEST "parallel: {mode: auto}\n", false },
		{ SMALLEST "parallel: {mode: auto, stages: 2, settled: \"data-parallel 1 1\"}\n", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag why = { "" };
		must(cases[i].text);
		CHECK(hd_job_has_pipes(&job) == cases[i].pipes, "case %zu", i);
		CHECK(hd_job_spreads(&job, &why) == HD_OK, "case %zu: %s", i, why.text);
	}
}

static void delayed_updates_go_over_workers(void **state)
{
	static const char *const cases[] = {
		SMALLEST "optim: {update: flush}\n",
		SMALLEST "optim: {update: 2bw}\n",
		SMALLEST "optim: {update: stash, cuts: auto:3}\n",
		SMALLEST "optim: {update: vsync, cuts: \"0,2\"}\ncomm: {sync: sharded}\n",
		SMALLEST "optim: {update: 2bw}\nparallel: {schedule: 2bw}\ncomm: {sync: stages}\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag why = { "" };
		must(cases[i]);
		CHECK(hd_job_spreads(&job, &why) == HD_OK, "case %zu: %s", i, why.text);
	}
}

/* The delay of a parameter follows from these. */
static void cuts_of_an_update_are_a_number_of_stages_or_their_first_nodes(void **state)
{
	static const struct { const char *text; uint32_t n; bool balance; } cases[] = {
		{ "auto:2", 2, true }, { "auto:16", 16, true }, { "auto:1", 0, true }, { "auto:17", 0, true },
		{ "auto:", 0, true }, { "auto:3,", 0, true }, { "auto:-3", 0, true }, { "0,1", 2, false },
		{ "0,12,25", 3, false }, { "0", 0, false }, { "", 0, false }, { "0,", 0, false },
		{ "1,2", 0, false }, { "0,2,2", 0, false }, { "0,3,2", 0, false }, { "0, 2", 0, false },
		{ "0,99999999999999999999", 0, false }, { "0,4294967294", 2, false },
		{ "0,4294967295", 0, false },
		{ "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15", 16, false },
		{ "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", 0, false },
	};
	uint32_t node[HD_JOB_MAX_CUTS];
	bool balance;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CHECK(hd_job_cuts(cases[i].text, &balance, node) == cases[i].n, "%s", cases[i].text);
		CHECK(balance == cases[i].balance, "%s", cases[i].text);
	}
	assert_int_equal(hd_job_cuts("0,12,25", &balance, node), 3);
	assert_true(node[0] == 0 && node[1] == 12 && node[2] == 25);
}

static void settled_pipelines_come_back_as_they_were_written(void **state)
{
	static const struct { const char *text; uint32_t stages, width, n, last, ndevices; bool again; }
		cases[] = {
		{ "1f1b 3 3 of 6", 3, 3, 0, 0, 6, false }, { "1f1b 3 3 recompute", 3, 3, 0, 0, 0, true },
		{ "zb-v 4 2 0,6,12,18 recompute of 4", 4, 2, 4, 18, 4, true },
		{ "zb-v 4 2 0,6,12,18 recompute tensor 4 groups 2 of 8", 4, 2, 4, 18, 8, true },
		{ "1f1b 1 1 tensor 2", 1, 1, 0, 0, 0, false }, { "1f1b 3 3 tensor 1", 0, 0, 0, 0, 0, false },
		{ "1f1b 3 3 groups 2", 0, 0, 0, 0, 0, false },
		{ "1f1b 3 3 tensor 4 groups 3", 0, 0, 0, 0, 0, false },
		{ "data-parallel 1 1 tensor 2", 0, 0, 0, 0, 0, false },
		{ "1f1b-rr 2 4 0,7 copies 3,1 of 4", 2, 4, 2, 7, 4, false },
		{ "1f1b-rr 3 7 recompute copies 4,2,1", 3, 7, 0, 0, 0, true },
		{ "1f1b-rr 2 5 copies 3,1", 0, 0, 0, 0, 0, false }, { "1f1b-rr 2 4", 0, 0, 0, 0, 0, false },
		{ "1f1b-rr 2 5 copies 3,2", 0, 0, 0, 0, 0, false }, { "1f1b-rr 2 2 copies 1,1", 0, 0, 0, 0, 0, false },
		{ "1f1b-rr 3 4 copies 3,1", 0, 0, 0, 0, 0, false }, { "1f1b-rr 2 4 copies 3,1,", 0, 0, 0, 0, 0, false },
		{ "data-parallel 1 1", 1, 1, 0, 0, 0, false },
		{ "data-parallel 1 1 of 4", 1, 1, 0, 0, 4, false },
		{ "data-parallel 2 2", 0, 0, 0, 0, 0, false },
		{ "data-parallel 1 2", 0, 0, 0, 0, 0, false },
		{ "data-parallel 1 1 recompute", 0, 0, 0, 0, 0, false },
		{ "data-parallel 1 1 0,5", 0, 0, 0, 0, 0, false },
		{ "1f1b 3 3 of 0", 0, 0, 0, 0, 0, false }, { "1f1b 3 3 of ", 0, 0, 0, 0, 0, false },
		{ "1f1b 3 3 of 3 recompute", 0, 0, 0, 0, 0, false },
		{ "1f1b 3 3 recomputes", 0, 0, 0, 0, 0, false },
		{ "1f1b 3 3 of 3,4", 0, 0, 0, 0, 0, false }, { "1f1b 3 3", 3, 3, 0, 0, 0, false },
		{ "zb-v 4 2 0,6,12,18", 4, 2, 4, 18, 0, false }, { "x 2 1 0,1", 2, 1, 2, 1, 0, false },
		{ "1f1b 64 64", 64, 64, 0, 0, 0, false }, { "1f1b 65 65", 0, 0, 0, 0, 0, false },
		{ "1f1b 1 1", 0, 0, 0, 0, 0, false }, { "1f1b 3 2", 0, 0, 0, 0, 0, false },
		{ "1f1b 3 0", 0, 0, 0, 0, 0, false }, { "1f1b 3", 0, 0, 0, 0, 0, false },
		{ "1f1b", 0, 0, 0, 0, 0, false }, { "", 0, 0, 0, 0, 0, false },
		{ " 3 3", 0, 0, 0, 0, 0, false }, { "1f1b 3 3 ", 0, 0, 0, 0, 0, false },
		{ "1f1b 3 3 0,5", 0, 0, 0, 0, 0, false }, { "1f1b 3 3 0,5,5", 0, 0, 0, 0, 0, false },
		{ "1f1b 3 3 1,5,6", 0, 0, 0, 0, 0, false }, { "1f1b 3 3 0,5,6,7", 0, 0, 0, 0, 0, false },
		{ "1f1b 3 3 0,5,6 ", 0, 0, 0, 0, 0, false }, { "1f1b 3 3,0", 0, 0, 0, 0, 0, false },
		{ "1f1b  3 3", 0, 0, 0, 0, 0, false }, { "1f1b 3 -3", 0, 0, 0, 0, 0, false },
		{ "a-schedule-of-thirty-two-letters 2 2", 0, 0, 0, 0, 0, false },
		{ "a-schedule-of-thirtyone-letters 2 2", 2, 2, 0, 0, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_job_settled s = { .stages = 99 };
		char room[200] = "";
		struct hd_text text;
		const bool good = hd_job_settled(&s, cases[i].text);
		CHECK(good == (cases[i].stages > 0) && s.stages == (good ? cases[i].stages : 99), "%s",
			cases[i].text);
		if (!good)
			continue;
		CHECK(s.width == cases[i].width && s.n == cases[i].n &&
			(!s.n || s.node[s.n - 1] == cases[i].last) && s.ndevices == cases[i].ndevices &&
			s.recompute == cases[i].again, "%s", cases[i].text);
		hd_text_fixed(&text, room, sizeof room);
		hd_job_settled_put(&s, &text);
		assert_string_equal(room, cases[i].text);
	}
}

static void copies_of_stages_are_numbers_that_divide_one_another(void **state)
{
	static const struct { const char *text; uint32_t n, last; } cases[] = {
		{ "3,1", 2, 1 }, { "1,2", 2, 2 }, { "4,2,1", 3, 1 }, { "6,1,3", 3, 3 }, { "63,1", 2, 1 },
		{ "64,1", 0, 0 }, { "3", 0, 0 }, { "1,1", 0, 0 }, { "3,2", 0, 0 }, { "6,2,3", 0, 0 },
		{ "0,2", 0, 0 }, { "3,1,", 0, 0 }, { "3,,1", 0, 0 }, { "3,-1", 0, 0 }, { "3,1 ", 0, 0 }, { "", 0, 0 },
		{ "none", 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint32_t copies[HD_JOB_MAX_STAGES];
		const uint32_t n = hd_job_stage_copies(cases[i].text, copies);
		CHECK(n == cases[i].n && (!n || copies[n - 1] == cases[i].last), "%s: %u", cases[i].text, n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(redundancy_may_be_left_to_notices),
		cmocka_unit_test(what_is_only_planned_is_not_trained),
		cmocka_unit_test(stages_go_over_workers_but_not_sharded),
		cmocka_unit_test(what_was_chosen_before_forbids_no_key),
		cmocka_unit_test(delayed_updates_go_over_workers),
		cmocka_unit_test(cuts_of_an_update_are_a_number_of_stages_or_their_first_nodes),
		cmocka_unit_test(settled_pipelines_come_back_as_they_were_written),
		cmocka_unit_test(copies_of_stages_are_numbers_that_divide_one_another),
	};
	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
