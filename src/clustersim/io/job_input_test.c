#include "clustersim/job_input.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "tests/shared_file.h"

static struct hd_arena arena;

static int fresh(void **state)
{
	(void)state;
	hd_arena_init(&arena, 0);
	return 0;
}

static int gone(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	return 0;
}

static void the_first_line_says_which_form_a_list_has(void **state)
{
	static const struct { const char *text; uint32_t columns; uint64_t njobs; } cases[] = {
		{ "submit,duration,gpus\n0,60,1\n5,60,2\n", 0, 2 },
		{ "JobID|Submit|ElapsedRaw|AllocTRES\n7|2024-01-01T00:00:00|60|gres/gpu=2\n", 0, 1 },
		{ "ResNet-18\tc\td\t-n\t0\t100\t1\t1\t-1\t0\n", 10, 1 },
	};
	const struct hd_job_table_how how = { .seed = 0 };

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct hd_job_list list;
		struct hd_diag diag = { "" };
		enum hd_err err = hd_job_list_read(&list, "jobs", (const uint8_t *)cases[k].text,
			strlen(cases[k].text), &how, &arena, &diag);
		CHECK(err == HD_OK, "case %zu: %s", k, diag.text);
		CHECK(list.n == cases[k].njobs && list.columns == cases[k].columns, "case %zu: %zu jobs, %u "
			"columns", k, list.n, list.columns);
	}
}

static void a_job_runs_on_the_type_that_it_names(void **state)
{
	static const struct hd_sched_type type[] = { { .name = "K80", .n = 4 }, { .name = "V100", .n = 2 } };
	static const double speed[] = { 1, 4 };
	struct hd_listed_job job[] = {
		{ .type = "v100", .steps = 10 }, { .type = NULL, .steps = 10 }, { .type = "a100", .steps = 10 },
		{ .type = "k80", .steps = 10 }, { .type = "tpu", .steps = 10 },
	}, again[5];
	struct hd_job_list list = { .n = 5, .at = job };
	const char *unknown;

	(void)state;
	memcpy(again, job, sizeof job);
	assert_int_equal(hd_job_list_bind_types(&list, type, speed, 2, &unknown), 2);
	assert_string_equal(unknown, "a100");
	assert_ptr_equal(job[0].type, type[1].name);
	assert_ptr_equal(job[3].type, type[0].name);
	assert_true(!job[1].type && !job[2].type && !job[4].type);
	assert_true(job[0].steps == 40 && job[1].steps == 10 && job[2].steps == 10 && job[3].steps == 10);
	list.at = again;
	assert_int_equal(hd_job_list_bind_types(&list, type, NULL, 2, &unknown), 2);
	assert_true(again[0].steps == 10);                      /* rates know what work is */
	list.n = 2;
	assert_int_equal(hd_job_list_bind_types(&list, type, speed, 2, &unknown), 0);
	assert_null(unknown);
}

static void a_user_that_is_no_entity_counts_for_its_account(void **state)
{
	static const struct hd_sched_entity entities[] = { { "ada", 1, HD_ENTITY_FAIRNESS, 0 },
		{ "physics", 1, HD_ENTITY_FAIRNESS, 0 } };
	static const struct hd_job_record physics = { .account = "physics" }, none = { .account = "art" };
	struct hd_listed_job job[] = { { .user = "bob", .record = &physics },
		{ .user = "ada", .record = &physics }, { .user = "bob", .record = &none }, { .user = "bob" } };
	static const char *const want[] = { "physics", "ada", "bob", "bob" };
	struct hd_job_list list = { .n = 4, .at = job };

	(void)state;
	hd_job_list_bind_accounts(&list, entities, 0);
	assert_string_equal(job[0].user, "bob");
	hd_job_list_bind_accounts(&list, entities, 2);
	for (size_t i = 0; i < 4; i++)
		CHECK(!strcmp(job[i].user, want[i]), "job %zu: %s", i, job[i].user);
}

/* Twice the jobs are twice the load, twice the devices half of it; on 100 times what it takes none waits. */
static void a_load_is_jobs_over_devices(void **state)
{
	struct hd_job_generator_setting how = { .per_hour = 10, .seed = 3, .multi = true };
	struct hd_sched_type type[] = { { .name = "k80", .n = 8 }, { .name = "p100", .n = 8 },
		{ .name = "v100", .n = 8 } };
	struct hd_rates rates;
	const struct hd_json *json;
	struct hd_diag diag = { "" };
	size_t len;
	const char *path = "data/gavel/throughputs/simulation_throughputs.json";
	const uint8_t *bytes = shared_bytes(path, &arena, &len);

	(void)state;
	if (!bytes)
		SKIP("data/gavel is neither in HEDDLE_SHARED nor in tests");
	CHECK(hd_json_parse(&arena, path, (const char *)bytes, len, &json, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_rates_read(&rates, json, &arena, &diag) == HD_OK, "%s", diag.text);
	double one = hd_job_generator_load(&how, &rates, &rates, type, 3);
	CHECK(one > 0 && isfinite(one), "%g", one);
	how.per_hour = 20;
	assert_true(fabs(hd_job_generator_load(&how, &rates, &rates, type, 3) / one - 2) < 1e-12);
	for (int t = 0; t < 3; t++)
		type[t].n = 16;
	assert_true(fabs(hd_job_generator_load(&how, &rates, &rates, type, 3) / one - 1) < 1e-12);
	type[0].n = type[1].n = 0;
	assert_true(hd_job_generator_load(&how, &rates, &rates, type, 3) > one);
	how.per_hour = 0;
	assert_true(hd_job_generator_load(&how, &rates, &rates, type, 3) == 0);
}

static void costs_are_four_numbers(void **state)
{
	static const char *const bad[] = { "", "1", "1,2,3", "1,2,3,4,5", "1,2,3,", "1,2,-3,4", "1,,3,4",
		"a,2,3,4", "1,2,3,4,", "1,2,3,11111111111111111111111111111111111111111" };
	struct hd_switch_costs c = HD_SWITCH_COSTS;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CHECK(hd_switch_costs_parse(&c, bad[i]) == HD_E_INVAL, "'%s'", bad[i]);
		CHECK(c.start_s == 30 && c.preempt_s == 5, "'%s' left something", bad[i]);
	}
	assert_int_equal(hd_switch_costs_parse(&c, "0,1.5,2,1e3"), HD_OK);
	assert_true(c.start_s == 0 && c.resize_s == 1.5 && c.move_s == 2 && c.preempt_s == 1000);
}

static void a_speedup_is_given_or_that_of_an_even_split(void **state)
{
	static const char *const bad[] = { "", "1", "1:2", "1:2:3:4", "1:2:1.9", "0:1:2", "1:2:", "1:x:3" };
	double s[5] = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(hd_speedup_parse(s, bad[i], 3, 8) == HD_E_INVAL, "'%s'", bad[i]);
	assert_int_equal(hd_speedup_parse(s, "1:1.9:2.7", 3, 8), HD_OK);
	assert_true(s[1] == 1 && s[2] == 1.9 && s[3] == 2.7);
	/* of 6 virtual nodes a device has 6, 3, 2, 2 at most */
	assert_int_equal(hd_speedup_parse(s, NULL, 4, 6), HD_OK);
	assert_true(s[1] == 1 && s[2] == 2 && s[3] == 3 && s[4] == 3);
	assert_int_equal(hd_speedup_parse(s, NULL, 4, 2), HD_OK);
	assert_true(s[2] == 2 && s[3] == 2 && s[4] == 2);
}

static void elastic_sizes_begin_at_one_and_do_not_fall(void **state)
{
	static const struct { uint64_t min, max; const char *speedup, *says; } bad[] = {
		{ 0, 4, NULL, "min 0, max 4: 1 device at least, and max no less than min" },
		{ 3, 2, NULL, "min 3, max 2: 1 device at least, and max no less than min" },
		{ 1, 0, NULL, "max 0" },
		{ 1, 2, "1:0.5", "speedup=1:0.5: one number for each count of devices up to max, not falling" },
	};
	struct hd_sched_elastic e = { .min = 7, .max = 9, .nvns = 11, .resize_s = 2.5, .mixed = true };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_elastic_make(&e, bad[i].min, bad[i].max, 0, bad[i].speedup, &arena, &diag) ==
			HD_E_INVAL && strstr(diag.text, bad[i].says), "%zu: %s", i, diag.text);
		CHECK(e.min == 7 && e.max == 9 && e.nvns == 11 && !e.speedup, "%zu left something", i);
	}
	assert_int_equal(hd_elastic_make(&e, 2, 3, 0, NULL, &arena, NULL), HD_OK);
	assert_true(e.min == 2 && e.max == 3 && e.nvns == 3 && e.speedup[2] == 1.5 && e.speedup[3] == 3);
	assert_true(e.resize_s == 2.5 && e.mixed);
	assert_int_equal(hd_elastic_make(&e, 1, 1, 8, "1.25", &arena, NULL), HD_OK);
	assert_true(e.min == 1 && e.max == 1 && e.nvns == 8 && e.speedup[1] == 1.25);
}

static void an_entity_has_a_name_of_its_own_and_a_weight_above_0(void **state)
{
	static const struct { const char *name, *weight, *says; } bad[] = {
		{ "b", "0", "b:0: a weight above 0" }, { "b", "-1", "a weight above 0" },
		{ "b", "2x", "b:2x: a weight above 0, of at most 4096 entities" }, { "b", "", "b:: a weight" },
		{ "a", "2", "a is named twice" },
	};
	struct hd_entity_list list = { 0 };

	(void)state;
	assert_int_equal(hd_entity_add(&list, "a", "2.5", NULL, &arena, NULL), HD_OK);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_entity_add(&list, bad[i].name, bad[i].weight, NULL, &arena, &diag) == HD_E_INVAL &&
			strstr(diag.text, bad[i].says), "%zu: %s", i, diag.text);
		CHECK(list.n == 1, "%zu left something", i);
	}
	assert_int_equal(hd_entity_add(&list, "b", NULL, "fifo", &arena, NULL), HD_OK);
	assert_int_equal(hd_entity_add(&list, "c", "3", "fairness", &arena, NULL), HD_OK);
	assert_string_equal(list.at[0].name, "a");
	assert_true(list.at[0].weight == 2.5 && list.at[1].weight == 1 && list.at[2].weight == 3);
	assert_true(list.at[0].kind == HD_ENTITY_FAIRNESS && list.at[1].kind == HD_ENTITY_FIFO &&
		list.at[2].kind == HD_ENTITY_FAIRNESS);
	list.n = HD_SCHED_ENTITIES;               /* full: what lies there is not looked at */
	assert_int_equal(hd_entity_add(&list, "d", NULL, NULL, &arena, NULL), HD_E_INVAL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, gone)
	static const struct CMUnitTest tests[] = {
		TEST(the_first_line_says_which_form_a_list_has),
		TEST(a_job_runs_on_the_type_that_it_names),
		TEST(a_user_that_is_no_entity_counts_for_its_account),
		TEST(a_load_is_jobs_over_devices),
		TEST(costs_are_four_numbers),
		TEST(a_speedup_is_given_or_that_of_an_even_split),
		TEST(elastic_sizes_begin_at_one_and_do_not_fall),
		TEST(an_entity_has_a_name_of_its_own_and_a_weight_above_0),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
