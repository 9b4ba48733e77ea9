/* What an accounting says of jobs is kept, counted and written; the same accounting in its other form says
	the
 * same. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "clustersim/job_input.h"
#include "tests/check.h"

static struct hd_arena arena;

static int begin(void **state)
{
	(void)state;
	hd_arena_init(&arena, 64u << 20);
	return 0;
}

static int end(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	return 0;
}

static void read_list(struct hd_job_list *list, const char *text)
{
	const struct hd_job_table_how how = { .rates = NULL };
	struct hd_diag diag = { "" };

	*list = (struct hd_job_list){ 0 };
	CHECK(hd_job_list_read(list, "t", (const uint8_t *)text, strlen(text), &how, &arena, &diag) == HD_OK,
		"%s", diag.text);
}

#define HEAD \
	"JobID|JobName|User|Account|Partition|QOS|State|Submit|Start|End|TimelimitRaw|ElapsedRaw|AllocTRES|\n"
#define OCT "2026-10-01T0"
#define MORNING "2026-10-01T08:00:00|2026-10-01T08:10:00|2026-10-01T09:00:00|90|3000|gres/gpu:a100=2|\n"

static void every_row_is_a_job_or_counted_by_its_reason(void **state)
{
	static const char text[] = HEAD
		"1|a|u|p|gpu|q|COMPLETED|" MORNING
		"1.batch|batch||p|||COMPLETED|" MORNING "1.extern|extern||p|||COMPLETED|" MORNING
			"1.0|x||p|||COMPLETED|" MORNING
		"2|a|u|p|gpu|q|CANCELLED by "
			"7|2026-10-01T08:00:00|None|2026-10-01T08:01:00|90|0|gres/gpu=2|\r\n"
		"3_[5-9%2]|a|u|p|gpu|q|PENDING|2026-10-01T08:00:00|Unknown|Unknown|90|0|gres/gpu=2|\n"
		"4|a|u|p|gpu|q|FAILED|" OCT "8:00:00|" OCT "8:00:00|" OCT "8:00:00|90|0|gres/gpu=2|\n"
		"5|a|u|p|gpu|q|COMPLETED|" OCT "8:00:00|" OCT "8:00:00|" OCT "8:00:00|90|9|cpu=2|\n"
		"6|a|u|p|gpu|q|COMPLETED|Unknown|Unknown|Unknown|90|9|gres/gpu=2|\n"
		"7|a|u|p|gpu|q|COMPLETED|2026-10-01T08:00:00|Unknown|Unknown|90|9|gres/gpu=many|\n"
		"8|a|u|p|gpu|q|COMPLETED|2026-10-01T08:00:00|Unknown|90|9|gres/gpu=1|\n"
		"|a|u|p|gpu|q|COMPLETED|" MORNING;
	static const uint64_t want[HD_LEFT_NREASONS] = { [HD_LEFT_STEP] = 3, [HD_LEFT_WAITED] = 2,
		[HD_LEFT_NO_TIME] = 1, [HD_LEFT_NO_GPU] = 1, [HD_LEFT_WHEN] = 1, [HD_LEFT_COUNT] = 1,
		[HD_LEFT_FIELDS] = 1, [HD_LEFT_OTHER] = 1 };
	struct hd_job_list list;
	(void)state;

	read_list(&list, text);
	assert_int_equal(list.n, 1);
	for (int k = 0; k < HD_LEFT_NREASONS; k++)
		CHECK(list.left_out[k] == want[k], "reason %d: %d rows, not %d", k, (int)list.left_out[k],
			(int)want[k]);
}

static void what_an_accounting_says_of_a_job_is_in_its_record(void **state)
{
	struct hd_job_list list;
	(void)state;

	read_list(&list, HEAD "1|a|u|p|gpu|q|CANCELLED by 7|" MORNING
		"2|a|u|p|gpu|q|RUNNING|" OCT "8:00:00|" OCT "8:10:00|Unknown|UNLIMITED|3000|gres/gpu=2|\n");
	const struct hd_job_record *r = list.at[0].record;
	assert_string_equal(r->state, "CANCELLED");
	CHECK(r->submit_s == 1790841600 && r->start_s == 1790842200 && r->end_s == 1790845200 &&
		r->limit_s == 5400 && r->waited_s == 600, "%.17g %.17g %.17g", r->submit_s, r->start_s,
		r->end_s);
	CHECK(!strcmp(r->type, "a100") && !strcmp(r->asked, ""), "%s, asked %s", r->type, r->asked);
	CHECK(isnan(list.at[1].record->end_s) && isinf(list.at[1].record->limit_s), "no end, no limit");
}

/* A job that got a type need not have asked for it. */
static void what_a_job_asked_for_is_not_what_it_got(void **state)
{
	static const struct { const char *cells, *type, *asked; } cases[] = {
		{ "gres/gpu=2|gres/gpu=2,gres/gpu:a=2|", "a", "*" }, { "gres/gpu:a=2|gres/gpu:a=2|", "a", "a" },
		{ "cpu=4|gres/gpu:a=2|", "a", "" }, { "|gres/gpu=2|", "", "" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[200];
		struct hd_job_list list;
		(void)snprintf(text, sizeof text, "JobID|Submit|ElapsedRaw|ReqTRES|AllocTRES|\n1|" OCT
			"8:00:00|9|%s\n", cases[i].cells);
		read_list(&list, text);
		CHECK(list.n == 1 && !strcmp(list.at[0].record->type, cases[i].type) &&
			!strcmp(list.at[0].record->asked, cases[i].asked), "case %zu: %s", i,
			list.at[0].record->asked);
	}
}

/* The bar belongs to the one text field with which times are times again. */
static void a_name_with_bars_is_put_together_where_it_is_clear(void **state)
{
	static const struct { const char *row, *name; } cases[] = {
		{ HEAD "1|a|b|u|p|gpu|q|COMPLETED|" MORNING, "a|b" },
		{ HEAD "1|a||b|u|p|gpu|q|COMPLETED|" MORNING, "a||b" },
		{ "Submit|ElapsedRaw|AllocTRES|JobID|JobName|\n" OCT "8:00:00|9|gres/gpu=1|1|a|b|c|\n", "a|b|c" },
		{ "JobName|Submit|ElapsedRaw|AllocTRES|JobID|Comment|\n|x|" OCT "8:00:00|9|gres/gpu=1|1|why|\n", "|x" },
		{ "JobName|Submit|ElapsedRaw|AllocTRES|JobID|Comment|\nx|" OCT "8:00:00|9|gres/gpu=1|1|why|not|\n", "x" },
		/* two texts side by side: either may have it */
		{ "JobID|Submit|ElapsedRaw|AllocTRES|JobName|Comment|\n1|" OCT "8:00:00|9|gres/gpu=1|a|b|c|\n", NULL },
		/* no text field at all */
		{ "JobID|Submit|ElapsedRaw|AllocTRES|\n1|" OCT "8:00:00|9|gres/gpu=1|a|b|\n", NULL },
	};
	char text[600];
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_job_list list;
		(void)snprintf(text, sizeof text, "%sJobID|JobName|Submit|ElapsedRaw|AllocTRES|\n"
			"9|last|2026-10-01T08:00:00|9|gres/gpu=1|\n", cases[i].row);
		read_list(&list, text);
		CHECK(list.n == (cases[i].name ? 2 : 1) && list.nrejoined == (uint64_t)!!cases[i].name &&
			list.left_out[HD_LEFT_FIELDS] == (uint64_t)!cases[i].name, "case %zu: %zu jobs", i,
				list.n);
		CHECK(!cases[i].name || !strcmp(list.at[0].name, cases[i].name), "case %zu: %s", i,
			list.at[0].name);
	}
}

/* A job that ran across the end of a month is in both files, first as one that still runs. */
static void a_start_that_is_there_twice_counts_once_and_longest(void **state)
{
	struct hd_job_list list;
	(void)state;

	read_list(&list, HEAD
		"1|a|u|p|gpu|q|RUNNING|" OCT "8:00:00|" OCT "8:10:00|Unknown|90|60|gres/gpu=2|\n"
		"2|a|u|p|gpu|q|COMPLETED|" MORNING
		HEAD "1|a|u|p|gpu|q|COMPLETED|" MORNING
		"1|a|u|p|gpu|q|COMPLETED|" OCT "9:01:00|" OCT "9:10:00|" OCT "9:20:00|90|600|gres/gpu=2|\n"
		"2|a|u|p|gpu|q|COMPLETED|" MORNING);
	assert_true(list.n == 3 && list.left_out[HD_LEFT_AGAIN] == 2 && list.nopen == 0);
	assert_string_equal(list.at[0].record->id, "1");
	assert_string_equal(list.at[0].record->state, "COMPLETED");
	assert_true(list.at[0].duration_s == 3000 && list.at[1].duration_s == 3000 &&
		list.at[2].duration_s == 600);
}

static void the_written_form_reads_back_to_the_same(void **state)
{
	struct hd_job_list list, again;
	struct hd_text once, twice;
	(void)state;

	read_list(&list, HEAD "1|a, \"b\"|u|p|gpu|q|COMPLETED|" MORNING
		"2_7||||||RUNNING|2026-10-01T08:00:00.125|Unknown|Unknown|UNLIMITED|3000|gres/gpu=2|\n"
		"3|a|u|p|gpu|q|TIMEOUT|" OCT "7:00:00|" OCT "6:00:00|" OCT
			"8:00:00|Partition_Limit|7200|gres/gpu:x=9|\n");
	hd_text_init(&once, &arena);
	hd_text_init(&twice, &arena);
	hd_job_list_print_recorded(&list, &once);
	read_list(&again, once.at);
	hd_job_list_print_recorded(&again, &twice);
	assert_string_equal(once.at, twice.at);
	assert_int_equal(again.n, 3);
	assert_non_null(strstr(once.at, "\n2_7,,,,,,RUNNING,,,,2,1,1790841600.125,,,3000,inf,\n"));
	for (size_t i = 0; i < 3; i++) {
		const struct hd_listed_job *a = &list.at[i], *b = &again.at[i];
		CHECK(!memcmp(&a->arrival_s, &b->arrival_s, 8) && !memcmp(&a->steps, &b->steps, 8) &&
			!memcmp(&a->deadline_s, &b->deadline_s, 8) && a->scale == b->scale, "job %zu", i);
		CHECK(!strcmp(a->name, b->name) && !a->type == !b->type &&
			isnan(a->record->waited_s) == isnan(b->record->waited_s), "job %zu", i);
	}
}

static void a_bad_line_of_the_written_form_is_named(void **state)
{
	static const struct { const char *line, *says; } cases[] = {
		{ "1,a,u,p,g,q,DONE,,,,1,1,5,6,7,8,9", "17 fields, the header has 18" },
		{ ",a,u,p,g,q,DONE,,,,1,1,5,6,7,8,9,", "t:2:1: a job without job_id" },
		{ "1,a,u,p,g,q,DONE,,,,x,1,5,6,7,8,9,", "t:2:21: gpus" },
		{ "1,a,u,p,g,q,DONE,,,,1,0,5,6,7,8,9,", "weight is 0" },
		{ "1,a,u,p,g,q,DONE,,,,1,1,,6,7,8,9,", "submit" },
		{ "1,a,u,p,g,q,DONE,,,,1,1,5,6,7,-8,9,", "duration" },
		{ "1,a,u,p,g,q,DONE,,,,1,1,5,6,7,8,never,", "limit" },
	};
	const struct hd_job_table_how how = { .rates = NULL };
	char text[400];
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_job_list list;
		struct hd_diag diag = { "" };
		(void)snprintf(text, sizeof text, "%s\n%s\n", HD_JOB_RECORDED, cases[i].line);
		CHECK(hd_job_list_read(&list, "t", (const uint8_t *)text, strlen(text), &how, &arena, &diag)
			==
			HD_E_INPUT && strstr(diag.text, cases[i].says), "case %zu: %s", i, diag.text);
	}
}

/* One job in the words of several data parsers. */
static void sacct_json_says_what_parsable_says(void **state)
{
	static const char *const texts[] = {
		HEAD "12_4|n \"x\"|u|p|gpu|q|COMPLETED|" MORNING,
		/* v0.0.41 */
		"{\"meta\": {\"jobs\": {\"x\": 1}}, \"jobs\": [{\"account\": \"p\", \"name\": \"n "
			"\\\"x\\\"\", \"user\": \"u\", \"partition\": \"gpu\","
		" \"qos\": \"q\", \"job_id\": 16, \"array\": {\"job_id\": 12, \"task_id\": {\"set\": "
			"true, \"infinite\": false, \"number\": 4}},"
		" \"het\": {\"job_id\": 0, \"job_offset\": {\"set\": false, \"infinite\": false, "
			"\"number\": 0}},"
		" \"state\": {\"current\": [\"COMPLETED\"], \"reason\": \"None\"},"
		" \"time\": {\"elapsed\": 3000, \"submission\": 1790841600, \"start\": 1790842200, "
			"\"end\": 1790845200,"
		" \"limit\": {\"set\": true, \"infinite\": false, \"number\": 90}},"
		" \"tres\": {\"requested\": [], \"allocated\": [{\"type\": \"cpu\", \"name\": \"\", "
			"\"id\": 1, \"count\": 4},"
		" {\"type\": \"gres\", \"name\": \"gpu\", \"id\": 1001, \"count\": 2}, {\"type\": "
			"\"gres\", \"name\": \"gpu:a100\", \"id\": 1002, \"count\": 2}]},"
		" \"steps\": [{\"jobs\": {}}]}], \"errors\": [] }",
		/* v0.0.37: numbers are numbers, a state is a word */
		"{\"jobs\": [{\"account\": \"p\", \"name\": \"n \\\"x\\\"\", \"association\": {\"user\": "
			"\"u\"}, \"partition\": \"gpu\","
		" \"qos\": \"q\", \"job_id\": 16, \"array\": {\"job_id\": 12, \"task_id\": 4}, \"het\": "
			"{\"job_id\": null, \"job_offset\": null},"
		" \"state\": {\"current\": \"COMPLETED\"}, \"time\": {\"elapsed\": 3000, \"submission\": "
			"1790841600, \"start\": 1790842200,"
		" \"end\": 1790845200, \"limit\": 90}, \"tres\": {\"allocated\": [{\"type\": \"gres\", "
			"\"name\": \"gpu:a100\", \"count\": 2}]}}]}",
	};
	struct hd_text want, is;
	struct hd_job_list list;
	(void)state;

	hd_text_init(&want, &arena);
	read_list(&list, texts[0]);
	hd_job_list_print_recorded(&list, &want);
	for (size_t i = 1; i < sizeof texts / sizeof *texts; i++) {
		hd_text_init(&is, &arena);
		read_list(&list, texts[i]);
		hd_job_list_print_recorded(&list, &is);
		assert_string_equal(is.at, want.at);
	}
}

static void a_limit_of_json_may_be_none(void **state)
{
	static const char text[] =
		"{\"jobs\": [{\"job_id\": 1, \"time\": {\"submission\": 5, \"elapsed\": 9, \"limit\": "
		"{\"set\": true, \"infinite\": true, \"number\": 7}}, \"tres\": {\"requested\": "
		"[{\"type\": \"gres\", \"name\": \"gpu\", \"count\": 1}]}}]}";
	struct hd_job_list list;
	(void)state;

	read_list(&list, text);
	assert_true(list.n == 1 && isinf(list.at[0].record->limit_s));
	assert_string_equal(list.at[0].record->asked, "*");
}

static void json_without_jobs_or_with_half_a_job_is_refused(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ "{}", "without a list \"jobs\"" }, { "{\"jobs\": []}", "without a list \"jobs\"" },
		{ "{\"job\": [{}]}", "without a list \"jobs\"" }, { "{\"jobs\": [\n{\"a\": 1", "begins in line 2" },
		{ "{\"jobs\": [{\"name\": \"a", "begins in line 1" }, { "{\"jobs\": [{}]}", "no job is left" },
	};
	const struct hd_job_table_how how = { .rates = NULL };
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_job_list list;
		struct hd_diag diag = { "" };
		CHECK(hd_job_list_read(&list, "t", (const uint8_t *)cases[i].text, strlen(cases[i].text),
			&how, &arena,
			&diag) == HD_E_INPUT && strstr(diag.text, cases[i].says), "case %zu: %s", i,
				diag.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_row_is_a_job_or_counted_by_its_reason, begin, end),
		cmocka_unit_test_setup_teardown(what_an_accounting_says_of_a_job_is_in_its_record, begin,
			end),
		cmocka_unit_test_setup_teardown(what_a_job_asked_for_is_not_what_it_got, begin, end),
		cmocka_unit_test_setup_teardown(a_name_with_bars_is_put_together_where_it_is_clear, begin,
			end),
		cmocka_unit_test_setup_teardown(a_start_that_is_there_twice_counts_once_and_longest, begin,
			end),
		cmocka_unit_test_setup_teardown(the_written_form_reads_back_to_the_same, begin, end),
		cmocka_unit_test_setup_teardown(a_bad_line_of_the_written_form_is_named, begin, end),
		cmocka_unit_test_setup_teardown(sacct_json_says_what_parsable_says, begin, end),
		cmocka_unit_test_setup_teardown(a_limit_of_json_may_be_none, begin, end),
		cmocka_unit_test_setup_teardown(json_without_jobs_or_with_half_a_job_is_refused, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
