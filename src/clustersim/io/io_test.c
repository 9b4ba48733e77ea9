#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "clustersim/job_list.h"
#include "clustersim/machines.h"
#include "clustersim/prices.h"
#include "tests/shared_file.h"

static struct hd_arena arena;

static bool rates_of(struct hd_rates *rates, const char *path)
{
	const struct hd_json *json;
	struct hd_diag diag = { "" };
	size_t len;
	const uint8_t *bytes = shared_bytes(path, &arena, &len);

	if (!bytes)
		return false;
	CHECK(hd_json_parse(&arena, path, (const char *)bytes, len, &json, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_rates_read(rates, json, &arena, &diag) == HD_OK, "%s", diag.text);
	return true;
}

/* The figures are read off the files by eye. */
static void measured_rates_are_read_with_their_pairs(void **state)
{
	struct hd_rates rates, table;

	(void)state;
	if (!rates_of(&rates, "data/gavel/throughputs/simulation_throughputs.json") ||
		!rates_of(&table, "data/gavel/job_table.json"))
		SKIP("data/gavel is neither in HEDDLE_SHARED nor in tests");
	assert_int_equal(rates.ntypes, 3);
	assert_int_equal(rates.nleft_out, 3);
	assert_int_equal(rates.nkinds, 83);
	assert_string_equal(rates.type[0], "k80");
	assert_string_equal(rates.type[2], "v100");
	uint32_t small = hd_rates_kind(&rates, "ResNet-18 (batch size 16)", 1),
		next = hd_rates_kind(&rates, "ResNet-18 (batch size 32)", 1);
	assert_true(hd_rates_alone(&rates, small, 0) == 4.795294551566172);
	const double *pair = rates.pair + (((size_t)small * 83 + next) * 3 + 0) * 2;
	assert_true(pair[0] == 2.539979567443098 && pair[1] == 3.1201925448827033);
	pair = rates.pair + (((size_t)next * 83 + small) * 3 + 0) * 2;
	assert_true(pair[1] == 2.539979567443098 && pair[0] == 3.1201925448827033);
	assert_int_equal(hd_rates_kind(&rates, "ResNet-18 (batch size 16)", 3), HD_RATES_NONE);

	/* two files of one measurement */
	assert_int_equal(table.ntypes, 3);
	assert_null(table.pair);
	assert_int_equal(table.nkinds, 83);
	for (uint32_t k = 0; k < 83; k++)
		for (uint32_t t = 0; t < 3; t++)
			CHECK(hd_rates_alone(&table, k, t) == hd_rates_alone(&rates, k, t), "%s, %u on %s",
				table.kind[k].name, table.kind[k].scale,
				table.type[t]);

	struct hd_rates two;
	static const char *const names[] = { "v100", "h100" };
	assert_int_equal(hd_rates_pick(&rates, 2, names, &arena, &two, NULL), HD_OK);
	assert_true(hd_rates_alone(&two, small, 0) == hd_rates_alone(&rates, small, 2) &&
		hd_rates_alone(&two, small, 1) == 0);

	struct hd_text text;
	const struct hd_json *json;
	struct hd_rates again;
	hd_text_init(&text, &arena);
	hd_rates_print(&rates, &text);
	assert_int_equal(hd_json_parse(&arena, "again", text.at, text.len, &json, NULL), HD_OK);
	assert_int_equal(hd_rates_read(&again, json, &arena, NULL), HD_OK);
	assert_memory_equal(again.alone, rates.alone, 83 * 3 * sizeof(double));
	assert_memory_equal(again.pair, rates.pair, 83 * 83 * 3 * 2 * sizeof(double));
	hd_arena_reset(&arena);
}

static void bad_rates_are_refused_with_their_place(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ "{}", "t: the whole is empty: no rates of any kind of job" },
		{ "{\"a\":{\"('M', 1)\":{\"null\":-1}}}", "t: .a.('M', 1).null is -1; it is steps/s from 1e-12 to 1e12, or 0 where the job cannot run" },
		{ "{\"a\":{\"('M', 1)\":{\"null\":\"nan\"}}}", "t: .a.('M', 1).null is nan; it is steps/s from 1e-12 to 1e12, or 0 where the job cannot run" },
		{ "{\"a\":{\"('M', 1)\":{\"null\":1e308}}}", "t: .a.('M', 1).null is 1e+308; it is steps/s from 1e-12 to 1e12, or 0 where the job cannot run" },
		{ "{\"a\":{\"('M', 0)\":{\"null\":1}}}", "t: .a: \"('M', 0)\" is no kind of job: write \"('Model (batch size b)', devices)\"" },
		{ "{\"a\":{\"M\":{\"null\":1}}}", "t: .a: \"M\" is no kind of job: write \"('Model (batch size b)', devices)\"" },
		{ "{\"a\":{\"('M', 1)\":{\"('N', 1)\":[1,2]}}}", "t: .a.('M', 1): the rates of \"('N', 1)\" alone are not in this file" },
		{ "{\"a\":{\"('M', 1)\":{\"('M', 1)\":[1]}}}", "t: .a.('M', 1).('M', 1): a pair has two rates, [mine, the other's]" },
		{ "{\"a\":{\"('M', 1)\":{\"('N', 1)\":[1,2]},\"('N', 1)\":{\"('M', 1)\":[1,2]}}}",
		  "t: .a.('N', 1).('M', 1): 1 and 2 here, but the other kind's row says 2 and 1" },
		{ "{\"('M', 1)\":{\"a\":-2}}", "t: .('M', 1).a is -2; it is steps/s from 1e-12 to 1e12, or 0 where the job cannot run" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct hd_json *json;
		struct hd_rates rates = { .ntypes = 7 };
		struct hd_diag diag = { "" };
		assert_int_equal(hd_json_parse(&arena, "t", cases[i].text, strlen(cases[i].text), &json,
			&diag), HD_OK);
		assert_int_equal(hd_rates_read(&rates, json, &arena, &diag), HD_E_INPUT);
		assert_string_equal(diag.text, cases[i].says);
		assert_int_equal(rates.ntypes, 7);
	}
	hd_arena_reset(&arena);
}

static void traces_of_both_forms_are_read_and_written_back(void **state)
{
	static const struct { const char *path; size_t n; uint32_t columns; } traces[] = {
		{ "artifact_evaluation", 15, 10 }, { "max_min_fairness", 96, 10 }, { "minimize_makespan", 100, 10 }, { "small_test", 20, 10 },
		{ "highmem_test", 8, 10 }, { "msr_7col_18jobs", 18, 7 }, { "msr_7col_3jobs", 3, 7 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
		struct hd_job_list list, again;
		struct hd_diag diag = { "" };
		struct hd_text text, twice;
		char path[120];
		size_t len;
		snprintf(path, sizeof path, "data/gavel/traces/%s.trace", traces[i].path);
		const uint8_t *bytes = shared_bytes(path, &arena, &len);
		if (!bytes)
			SKIP("data/gavel is neither in HEDDLE_SHARED nor in tests");
		CHECK(hd_job_list_trace(&list, path, bytes, len, &arena, &diag) == HD_OK, "%s", diag.text);
		CHECK(list.n == traces[i].n && list.columns == traces[i].columns, "%s: %zu jobs", path,
			list.n);
		hd_text_init(&text, &arena);
		hd_job_list_print(&list, &text);
		assert_int_equal(hd_job_list_trace(&again, "again", (const uint8_t *)text.at, text.len,
			&arena, &diag), HD_OK);
		assert_int_equal(again.n, list.n);
		for (size_t k = 0; k < list.n; k++)
			CHECK(again.at[k].steps == list.at[k].steps &&
				again.at[k].arrival_s == list.at[k].arrival_s &&
				again.at[k].scale == list.at[k].scale
				&& !strcmp(again.at[k].command, list.at[k].command) &&
					!strcmp(again.at[k].kind, list.at[k].kind), "%s, job %zu", path, k);
		hd_text_init(&twice, &arena);
		hd_job_list_print(&again, &twice);
		assert_string_equal(text.at, twice.at);
		if (i == 6) {
			assert_string_equal(list.at[1].kind, "Recommendation (batch size 8192)");
			assert_true(list.at[1].arrival_s == 1511 && list.at[1].steps > 0 &&
				list.at[1].weight == 1 && list.at[1].slo == 0);
		}
	}
	hd_arena_reset(&arena);
}

#define LINE "K\tc\td\t-n\t1\t10\t2\t1\t-1\t5\n"

static void bad_lines_of_traces_are_refused_with_place_and_field(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ LINE "K\tc\t-n\t1\t10\t6\t1\n", "t:2:1: 7 fields, where the first line has 10" },
		{ "K\tc\td\n", "t:1:1: 3 fields: a line of a trace has 10 between tabs, or 7" },
		{ LINE "K\tc\td\t-n\t1\t10\t2\t1\t-1\t4\n", "t:2:22: arrival 4 is before that of the line before, 5: sort the lines" },
		{ "K\tc\td\t-n\t2\t10\t2\t1\t-1\t5\n", "t:1:10: needs data: 2 is not between 0 and 1" },
		{ "K\tc\td\t-n\t1\tten\t2\t1\t-1\t5\n", "t:1:12: total steps: \"ten\" is not a number" },
		{ "K\tc\td\t-n\t1\t10\t0\t1\t-1\t5\n", "t:1:15: scale: 0 is not between 1 and 1048576" },
		{ "K\tc\td\t-n\t1\t10\t2\t0\t-1\t5\n", "t:1:17: weight: 0; it is a weight from 1e-9 to 1e9" },
		{ "K\tc\td\t-n\t1\t10\t2\t1\t-0.5\t5\n", "t:1:19: SLO is -0.5: a factor above 0, or -1 for none" },
		{ LINE "K\tc\td\t-n\t1\t10\t2\t1\t-1\t", "t:2:22: arrival: \"\" is not a number" },
		{ "K\x01\tc\td\t-n\t1\t10\t2\t1\t-1\t5\n", "t:1:1: field 1 holds a control character" },
		{ "K\xff\tc\td\t-n\t1\t10\t2\t1\t-1\t5\n", "t:1:1: field 1 is no UTF-8" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_job_list list = { .n = 77 };
		struct hd_diag diag = { "" };
		CHECK(hd_job_list_trace(&list, "t", (const uint8_t *)cases[i].text, strlen(cases[i].text),
			&arena, &diag) == HD_E_INPUT, "case %zu", i);
		if (strncmp(diag.text, cases[i].says, strlen(cases[i].says)) != 0)
			fail_msg("case %zu says %s", i, diag.text);
		assert_int_equal(list.n, 77);
	}
	struct hd_job_list list;
	static const char marked[] =
		"\xef\xbb\xbfK\tc\td\t-n\t1\t10\t2\t1\t1.5\t5\r\n\r\nK\tc\td\t-n\t1\t10\t2\t1\t-1\t6";
	assert_int_equal(hd_job_list_trace(&list, "t", (const uint8_t *)marked, sizeof marked - 1, &arena,
		NULL), HD_OK);
	assert_int_equal(list.n, 2);
	assert_string_equal(list.at[0].kind, "K");
	assert_true(list.at[0].slo == 1.5 && list.at[1].arrival_s == 6);
	hd_arena_reset(&arena);
}

static void published_tables_of_clusters_become_jobs(void **state)
{
	static const char philly[] = "timestamp,duration,num_gpus,vc\n"
		"2017-10-03 00:00:10,100,1,a\n"            /* second by time */
		"2017-10-03T00:00:00,50.5,4,b\n"
		"2017-10-03 00:00:10,0,2,c\n"              /* no time: dropped */
		"2017-10-04 00:00:00,7,16,d\n";
	static const char helios[] =
		"\xef\xbb\xbfjob_id,user,gpu_num,Submit_Time,duration\r\n17,u1,8,1586000000,3600\r\n18,"
		"\"u,2\",0,1586000001,5\r\n";
	struct hd_job_table_how how = { .rates = NULL };
	struct hd_job_list list;
	struct hd_diag diag = { "" };
	(void)state;

	CHECK(hd_job_list_csv(&list, "philly", (const uint8_t *)philly, sizeof philly - 1, &how, &arena,
		&diag) == HD_OK, "%s", diag.text);
	assert_int_equal(list.n, 3);
	assert_int_equal(list.nrows, 4);
	assert_int_equal(list.ndropped, 1);
	assert_true(list.at[0].arrival_s == 0 && list.at[0].steps == 50.5 && list.at[0].scale == 4);
	assert_true(list.at[1].arrival_s == 10 && list.at[1].duration_s == 100 &&
		list.at[2].arrival_s == 86400 && list.at[2].scale == 16);
	assert_int_equal(hd_job_list_csv(&list, "helios", (const uint8_t *)helios, sizeof helios - 1, &how,
		&arena, &diag), HD_OK);
	assert_int_equal(list.n, 1);
	assert_string_equal(list.at[0].user, "u1");
	assert_true(list.at[0].scale == 8 && list.at[0].duration_s == 3600);

	struct hd_rates rates;
	if (!rates_of(&rates, "data/gavel/job_table.json"))
		SKIP("data/gavel is neither in HEDDLE_SHARED nor in tests");
	how = (struct hd_job_table_how){ .rates = &rates, .reference = "v100", .seed = 3 };
	static const char scales[] = "submit,duration,gpus\n0,10,3\n1,10,9\n2,10,8\n3,10,1\n4,10,1\n";
	assert_int_equal(hd_job_list_csv(&list, "scales", (const uint8_t *)scales, sizeof scales - 1, &how,
		&arena, &diag), HD_OK);
	assert_int_equal(list.n, 4);
	assert_int_equal(list.ndropped, 1);
	assert_true(list.at[0].scale == 4 && list.at[1].scale == 8);
	for (size_t i = 0; i < list.n; i++) {
		uint32_t k = hd_rates_kind(&rates, list.at[i].kind, list.at[i].scale);
		assert_int_not_equal(k, HD_RATES_NONE);
		assert_true(list.at[i].steps == 10 * hd_rates_alone(&rates, k, 2));
	}
	how.columns.type = "kind";
	static const char named[] = "submit,duration,gpus,kind\n0,10,2,LM (batch size 5)\n";
	assert_int_equal(hd_job_list_csv(&list, "named", (const uint8_t *)named, sizeof named - 1, &how,
		&arena, &diag), HD_OK);
	assert_string_equal(list.at[0].kind, "LM (batch size 5)");
	static const char unknown[] = "submit,duration,gpus,kind\n0,10,2,LM\n";
	assert_int_equal(hd_job_list_csv(&list, "u", (const uint8_t *)unknown, sizeof unknown - 1, &how,
		&arena, &diag), HD_E_INPUT);
	assert_string_equal(diag.text, "u:2:8: type \"LM\" on 2 devices is not in the table of rates");
	hd_arena_reset(&arena);
}

static void columns_are_mapped_by_name_and_mistakes_are_named(void **state)
{
	static const struct { const char *map, *text, *says; } cases[] = {
		{ "submit=when,duration=secs,gpus=n,weight=w,deadline=until,user=by", "When,SECS,n,w,until,by\n1,2,3,4,9,me\n", "" },
		{ "", "a,b\n1,2\n", "t:1:1: no column of the header \"a\" is known to hold submit: name it with --map" },
		{ "submit=b", "a,c\n1,2\n", "t:1:1: the header has no column \"b\" (submit)" },
		{ "", "submit,duration,gpus\n1,x,3\n", "t:2:3: duration: \"x\" is not a number (such as 0.1, 3 or 1e-4)" },
		{ "", "submit,duration,gpus\n1,2,1.5\n", "t:2:5: gpus is 1.5: a whole number, at most 1048576" },
		{ "", "submit,duration,gpus\nsoon,2,1\n", "t:2:1: submit \"soon\" is no time: write seconds, or YYYY-MM-DD HH:MM:SS" },
		{ "", "submit,duration,gpus\n2017-02-29,2,1\n", "t:2:1: submit \"2017-02-29\" is no time: write seconds, or YYYY-MM-DD HH:MM:SS" },
		{ "", "submit,duration,gpus\n1,2\n", "t:2:3: 2 fields, the header has 3" },
		{ "", "submit,duration,gpus,weight\n1,2,3,0\n", "t:2:7: weight is 0; it is a weight from 1e-9 to 1e9" },
		{ "", "", "t:1:1: the table is empty: its first line names the columns" },
		{ "gpu=x", NULL, "there is no field \"gpu\" (submit, duration, gpus, type, weight, user, deadline); did you mean gpus?" },
		{ "gpus", NULL, "\"gpus\" maps no column: write FIELD=COLUMN, for example submit=timestamp,gpus=num_gpus" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_job_table_how how = { .rates = NULL };
		struct hd_job_list list = { 0 };
		struct hd_diag diag = { "" };
		enum hd_err err = *cases[i].map ? hd_job_columns_parse(&how.columns, cases[i].map, &arena,
			&diag) : HD_OK;
		if (!err && cases[i].text)
			err = hd_job_list_csv(&list, "t", (const uint8_t *)cases[i].text,
				strlen(cases[i].text), &how, &arena, &diag);
		CHECK((err == HD_OK) == !*cases[i].says && !strcmp(diag.text, cases[i].says), "case %zu: %s",
			i, diag.text);
		if (!i) {
			assert_true(list.n == 1 && list.at[0].weight == 4 && list.at[0].deadline_s == 8 &&
				list.at[0].scale == 3);
			assert_string_equal(list.at[0].user, "me");
		}
	}
	hd_arena_reset(&arena);
}

static enum hd_err read_sacct(struct hd_job_list *list, const char *text, const char *map,
	struct hd_diag *diag)
{
	struct hd_job_table_how how = { .rates = NULL };

	*list = (struct hd_job_list){ 0 };
	if (map)
		assert_int_equal(hd_job_columns_parse(&how.columns, map, &arena, NULL), HD_OK);
	return hd_job_list_sacct(list, "t", (const uint8_t *)text, strlen(text), &how, &arena, diag);
}

static const struct hd_listed_job *job_of(const struct hd_job_list *list, const char *id)
{
	for (size_t i = 0; i < list->n; i++)
		if (!strcmp(list->at[i].record->id, id))
			return &list->at[i];
	CHECK(false, "no job %s", id);
	return NULL;
}

static void what_slurm_accounted_becomes_jobs(void **state)
{
	static const char text[] = "JobID|JobName|User|Submit|Elapsed|NNodes|ReqTRES|AllocTRES|\n"
		"17|train|ann|2023-03-01T10:00:05|1-02:03:04|1|cpu=4,gres/gpu=4|"
		"billing=1,cpu=4,gres/gpu:v100=2,gres/gpu=2|\n"
		"17.batch|batch||2023-03-01T10:00:05|1-02:03:04|1||cpu=4|\n"
		"18|bare|bob|2023-03-01T10:00:00|05:30|3|||\n"
		"19_4|array|bob|2023-03-01T11:00:00|01:00:00|1|gres/gpu:a=1,gres/gpu:b=2||\n"
		"20|never|bob|2023-03-01T12:00:00|00:00:00|1|gres/gpu=1||\n";
	struct hd_job_list list;
	struct hd_diag diag = { "" };
	(void)state;

	CHECK(read_sacct(&list, text, NULL, &diag) == HD_OK, "%s", diag.text);
	assert_true(list.n == 2 && list.ndropped == 1 && list.ncpu == 1 && list.nbad == 0 && list.nopen == 0);
	assert_true(list.at[0].arrival_s == 0 && list.at[0].scale == 2 &&
		list.at[0].duration_s == 86400 + 7384 && list.at[0].weight == 1);
	assert_string_equal(list.at[0].type, "v100");
	assert_true(list.at[1].arrival_s == 3595 && list.at[1].scale == 3 && list.at[1].duration_s == 3600 &&
		!list.at[1].type);
	CHECK(read_sacct(&list, text, "gpus=NNodes,user=JobName,weight=NNodes", &diag) == HD_OK, "%s",
		diag.text);
	assert_true(list.n == 3 && list.ncpu == 0 && list.at[0].scale == 3 && list.at[0].duration_s == 330 &&
		list.at[0].weight == 3);
	assert_string_equal(list.at[0].user, "bare");
	static const struct { const char *text, *map, *says; } bad[] = {
		{ "JobID|Submit\n", NULL, "t:1:1: the fields JobID, Submit and Elapsed (or ElapsedRaw) are needed" },
		{ "JobID|Submit|Elapsed|NNodes\n", NULL, "t:1:1: no field says how many GPUs a job has: add AllocTRES to --format, or name what counts" },
		{ "JobID|Submit|Elapsed|NNodes\n", "gpus=Nodes", "t:1:1: the header has no column \"Nodes\"" },
		{ "JobID|Submit|Elapsed|AllocTRES|\n", NULL, "t: it has a header and no job" },
		{ "JobID|Submit|Elapsed|AllocTRES\n1|2023-03-01T10:00:05|00:01|cpu=1\n2|Unknown|00:01|gres/gpu=1\n", NULL,
			"t: no job is left: 1 have no GPU (--map gpus=NNodes takes one device a node), 0 "
			"took no time or too many, and 1 rows could "
			"not be read: t:3:3: Submit \"Unknown\" is no time" },
		{ "", NULL, "t:1:1: the file is empty" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_diag why = { "" };
		CHECK(read_sacct(&list, bad[i].text, bad[i].map, &why) == HD_E_INPUT, "case %zu", i);
		CHECK(!strncmp(why.text, bad[i].says, strlen(bad[i].says)), "case %zu: %s", i, why.text);
	}
	hd_arena_reset(&arena);
}

/* Each cell that can be wrong, between two rows that are right. */
static void a_bad_row_of_an_accounting_costs_that_row_alone(void **state)
{
	static const struct { const char *row, *says; } bad[] = {
		{ "|2023-03-01T10:00:05|00:01|1|gres/gpu=1|", "t:3:1: a job without JobID" },
		{ "2|Unknown|00:01|1|gres/gpu=1|", "t:3:3: Submit \"Unknown\" is no time" },
		{ "2|2023-02-30T10:00:05|00:01|1|gres/gpu=1|", "t:3:3: Submit \"2023-02-30T10:00:05\" is no time" },
		{ "2|2023-03-01T10:00:05|1-|1|gres/gpu=1|", "t:3:23: Elapsed \"1-\" is no duration" },
		{ "2|2023-03-01T10:00:05|INVALID|1|gres/gpu=1|", "t:3:23: Elapsed \"INVALID\" is no duration" },
		{ "2|2023-03-01T10:00:05|00:01|1", "t:3:29: 4 fields, the header has 6" },
		{ "2|2023-03-01T10:00:05|00:01|1|gres/gpu=1|x|", "t:3:44: 7 fields, the header has 6" },
		{ "2|2023-03-01T10:00:05|00:01|1|gres/gpu=many|", "t:3:31: AllocTRES \"gres/gpu=many\" is no list of resources" },
		{ "2|2023-03-01T10:00:05|00:01|1|gres/gpu:a=9999999|", "t:3:31: AllocTRES \"gres/gpu:a=9999999\" is no list of resources" },
		{ "2|2023-03-01T10:00:05|00:01|heavy|gres/gpu=1|", "t:3:29: weight: " },
		{ "2|2023-03-01T10:00:05|00:01|-1|gres/gpu=1|", "t:3:29: weight is -1; it is a weight from" },
		{ "2|caf\xe9|00:01|1|gres/gpu=1|", "t:3:3: field 2 is no UTF-8" },
		{ "2|\033[2J|00:01|1|gres/gpu=1|", "t:3:3: field 2 holds a control character" },
	};
	char text[600];
	(void)state;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_job_list list;
		struct hd_diag diag = { "" };
		snprintf(text, sizeof text,
			"JobID|Submit|Elapsed|Priority|AllocTRES|\n"
			"1|2023-03-01T10:00:00|00:01|1|gres/gpu=1|\n%s\n"
			"3|2023-03-01T10:00:09|00:01|1|gres/gpu=1|", bad[i].row);
		CHECK(read_sacct(&list, text, "weight=Priority", &diag) == HD_OK, "case %zu: %s", i,
			diag.text);
		CHECK(list.n == 2 && list.nbad == 1 && list.at[1].arrival_s == 9 && !list.bad[1],
			"case %zu: %zu jobs, %d bad", i, list.n, (int)list.nbad);
		CHECK(!strncmp(list.bad[0], bad[i].says, strlen(bad[i].says)), "case %zu: %s", i,
			list.bad[0]);
	}
	hd_arena_reset(&arena);
}

static void gpus_of_an_accounting_are_counted_with_their_type(void **state)
{
	static const struct { const char *req, *alloc; uint32_t n; const char *type; } cases[] = {
		{ "", "billing=8,cpu=8,gres/gpu=4,mem=1G,node=1", 4, NULL }, { "", "cpu=8,gres/gpu:a100=4,gres/gpu=4", 4, "a100" },
		{ "", "gres/gpu=4,gres/gpu:a100=4", 4, "a100" }, { "", "gres/gpu:a100=4", 4, "a100" }, { "", "gres/gpu:a100=2,gres/gpu:v100=1", 3, NULL },
		{ "", "gres/gpu:a100=2,gres/gpu=5", 5, NULL }, { "", "gres/gpu:a100=2,gres/gpu:a100=1", 3, "a100" },
		{ "gres/gpu:h100=4", "gres/gpu=4", 4, "h100" }, { "gres/gpu:h100=8", "gres/gpu=4", 4, NULL }, { "gres/gpu:h100=8", "cpu=4", 8, "h100" },
		{ "gpu:2", "", 2, NULL }, { "gpu:tesla:2", "", 2, "tesla" }, { "gres:gpu:3", "", 3, NULL }, { "gpu:tesla", "", 1, "tesla" }, { "gpu", "", 1, NULL },
		{ "gpu:a100:2(IDX:0-1)", "", 2, "a100" }, { "", "gres/gpu:1080ti=2", 2, "1080ti" }, { "", "gres/gpumem=4G,gres/gpuutil=0,cpu=1", 0, NULL },
		{ "", "gres/gpu=0,gres/shard=4", 0, NULL }, { "gres/fpga=2", "cpu=4", 0, NULL }, { "", "", 0, NULL },
		{ "", "gres/gpu:nvidia_a100_80gb_pcie_with_a_name_that_is_very_long_indeed_and_longer=2,gres/gpu=2", 2,
			"nvidia_a100_80gb_pcie_with_a_name_that_is_very_long_indeed_and_l" },
	};
	char text[600];
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_job_list list;
		struct hd_diag diag = { "" };
		snprintf(text, sizeof text,
			"AllocTRES|JobID|ReqTRES|ElapsedRaw|Submit\ngres/gpu=1|1||5|2023-03-01T10:00:00\n"
			"%s|2|%s|5|2023-03-01T10:00:01\n",
			cases[i].alloc, cases[i].req);
		CHECK(read_sacct(&list, text, NULL, &diag) == HD_OK, "case %zu: %s", i, diag.text);
		CHECK(list.n == (cases[i].n ? 2 : 1) && list.ncpu == !cases[i].n && !list.nbad,
			"case %zu: %zu jobs, %d without", i, list.n, (int)list.ncpu);
		if (!cases[i].n)
			continue;
		const char *type = list.at[1].type;
		CHECK(list.at[1].scale == cases[i].n, "case %zu: %u", i, list.at[1].scale);
		CHECK(!type == !cases[i].type && (!type || !strncmp(type, cases[i].type, 63)), "case %zu: %s",
			i, type ? type : "any");
	}
	hd_arena_reset(&arena);
}

/* sacct prints [DD-]HH:MM:SS, of old MM:SS and fractions of what it measured; a limit may be given as days
 * and hours. */
static void durations_are_read_as_slurm_writes_them(void **state)
{
	static const struct { const char *text; double seconds; } cases[] = {
		{ "05:30", 330 }, { "01:02.5", 62.5 }, { "00:00.250", 0.25 }, { "01:02:03", 3723 }, { "01:02:03.5", 3723.5 }, { "100:00:00", 360000 },
		{ "1-02", 93600 }, { "1-02:03", 93780 }, { "1-02:03:04", 93784 }, { "1-02:03:04.125", 93784.125 }, { "2-00:00:00", 172800 },
		{ "5", -1 }, { "5.5", -1 }, { "01.02.03", -1 }, { "1-02.5", -1 }, { "1-02:03.5", -1 }, { "01:02.", -1 }, { "01:02.5:03", -1 }, { "01:", -1 },
		{ "1:2:3:4", -1 }, { "1-1-1", -1 }, { "01:02:03:", -1 }, { "1-01:02:03:04", -1 }, { "-01:02", -1 }, { "01:02.5x", -1 }, { "01:02 ", -1 },
	};
	char text[400];
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_job_list list;
		struct hd_diag diag = { "" };
		snprintf(text, sizeof text,
			"JobID|Submit|Elapsed|Timelimit|AllocTRES\n"
			"1|2023-03-01T10:00:00|%s|02:00|gres/gpu=1\n"
			"2|2023-03-01T10:00:01|00:01|%s|gres/gpu=1", cases[i].text, cases[i].text);
		CHECK(read_sacct(&list, text, NULL, &diag) == HD_OK, "%s: %s", cases[i].text, diag.text);
		const struct hd_listed_job *last = &list.at[list.n - 1];
		CHECK(list.n == (cases[i].seconds < 0 ? 1u : 2u) && list.nbad == (cases[i].seconds < 0),
			"%s: %zu jobs", cases[i].text, list.n);
		double read_s = cases[i].seconds;
		CHECK(read_s < 0 ? isnan(last->record->limit_s) : list.at[0].duration_s == read_s &&
			last->record->limit_s == read_s,
			"%s: %g s, limit %g", cases[i].text, list.at[0].duration_s, last->record->limit_s);
	}
	hd_arena_reset(&arena);
}

static void an_empty_cell_of_the_duration_asked_for_costs_its_row(void **state)
{
	static const char text[] =
		"JobID|Submit|Elapsed|Planned|AllocTRES\n1|2023-03-01T10:00:00|00:07|9|gres/gpu=1\n"
		"2|2023-03-01T10:00:01|00:07||gres/gpu=1\n";
	struct hd_job_list list;
	struct hd_diag diag = { "" };
	(void)state;

	CHECK(read_sacct(&list, text, "duration=Planned", &diag) == HD_OK, "%s", diag.text);
	CHECK(list.n == 1 && list.nbad == 1 && list.at[0].duration_s == 9, "%zu jobs, %d bad", list.n,
		(int)list.nbad);
	assert_string_equal(list.bad[0], "t:3:29: \"Planned\" is empty: no duration");
	hd_arena_reset(&arena);
}

static void parts_of_a_heterogeneous_job_are_one_job(void **state)
{
#define HEAD "JobID|Submit|ElapsedRaw|State|AllocTRES|Kind\n"
#define AT "|2023-03-01T10:00:0"
	static const struct { const char *rows; size_t n; uint32_t scale; double duration_s; const char *type;
		int ncpu, nbad, nopen; } cases[] = {
		{ "7+0" AT "0|5|COMPLETED|gres/gpu:a=2|k\n7+0.batch" AT "0|5|||\n7+1" AT "0|9|COMPLETED|gres/gpu:a=3|k\n", 1, 5, 9, "a", 0, 0, 0 },
		{ "7+0" AT "0|5|RUNNING|gres/gpu:a=2|k\n7+1" AT "0|4|COMPLETED|gres/gpu:b=3|k\n", 1, 5, 5, NULL, 0, 0, 1 },
		{ "7+0" AT "0|5||cpu=2|k\n7+1" AT "0|4||gres/gpu:b=3|k\n", 1, 3, 5, "b", 0, 0, 0 },
		{ "7+0" AT "0|5||gres/gpu:b=3|k\n7+1" AT "0|4||cpu=2|k\n", 1, 3, 5, "b", 0, 0, 0 },
		{ "7+0" AT "0|5||cpu=2|k\n7+1" AT "0|4||cpu=1|k\n", 0, 0, 0, NULL, 1, 0, 0 },
		{ "7+0" AT "0|5||gres/gpu=1|k\n8+0" AT "0|5||gres/gpu=1|k\n", 2, 1, 5, NULL, 0, 0, 0 },
		{ "7+0" AT "0|5||gres/gpu=1|k\n8" AT "0|5||gres/gpu=1|k\n", 2, 1, 5, NULL, 0, 0, 0 },
		{ "7+0" AT "0|5||gres/gpu=1|k\n7+1" AT "0|x||gres/gpu=1|k\n", 1, 1, 5, NULL, 0, 1, 0 },
		{ "7+" AT "0|5||gres/gpu=1|k\n7+x" AT "0|5||gres/gpu=1|k\n", 2, 1, 5, NULL, 0, 0, 0 },
		{ "7+0" AT "0|5||gres/gpu=1|k\n" HEAD "7+1" AT "0|5||gres/gpu=2|k\n", 1, 3, 5, NULL, 0, 0, 0 },
		/* other rows between them, in any order; a number that comes again is of another job */
		{ "7+0" AT "0|5||gres/gpu:a=1|k\n8" AT "0|5||gres/gpu=4|k\n7+1" AT "0|7||gres/gpu:a=2|k\n", 2, 3, 7, "a", 0, 0, 0 },
		{ "7+2" AT "0|5||gres/gpu=1|k\n8+0" AT "0|5||gres/gpu=4|k\n7+0" AT "0|7||gres/gpu=2|k\n8+1" AT "0|6||gres/gpu=1|k\n7+1" AT "0|3||gres/gpu=3|k\n", 2, 6, 7, NULL, 0, 0, 0 },
		{ "7+0" AT "0|5||gres/gpu=1|k\n7+1" AT "0|5||gres/gpu=2|k\n7+0" AT "0|8||gres/gpu=4|k\n7+1" AT "0|9||gres/gpu=5|k\n", 2, 3, 5, NULL, 0, 0, 0 },
		{ "7+127" AT "0|5||gres/gpu=1|k\n7+128" AT "0|5||gres/gpu=2|k\n7+0" AT "0|6||gres/gpu=4|k\n", 2, 5, 6, NULL, 0, 0, 0 },
	};
	char text[600];
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int kind = 0; kind < 2; kind++) {
			struct hd_job_list list;
			struct hd_diag diag = { "" };
			snprintf(text, sizeof text,
				HEAD "1" AT "0|1||gres/gpu=1|first\n%s9" AT "9|1||gres/gpu=1|last\n",
				cases[i].rows);
			CHECK(read_sacct(&list, text, kind ? "type=Kind" : NULL, &diag) == HD_OK,
				"case %zu: %s", i, diag.text);
			CHECK(list.n == cases[i].n + 2 && (int)list.ncpu == cases[i].ncpu &&
				(int)list.nbad == cases[i].nbad &&
				(int)list.nopen == cases[i].nopen,
				"case %zu: %zu jobs, %d without, %d bad, %d open", i, list.n, (int)list.ncpu,
				(int)list.nbad, (int)list.nopen);
			const struct hd_listed_job *job = &list.at[1];
			if (!cases[i].n)
				continue;
			CHECK(job->scale == cases[i].scale && job->duration_s == cases[i].duration_s &&
				job->record->id[0] == '7',
				"case %zu: %u devices, %g s", i, job->scale, job->duration_s);
			CHECK(!job->type == !cases[i].type &&
				(!job->type || !strcmp(job->type, cases[i].type)), "case %zu: %s", i,
				job->type ? job->type : "any");
			CHECK(!kind || !strcmp(job->kind, "k"), "case %zu: kind %s", i, job->kind);
		}
	hd_arena_reset(&arena);
#undef HEAD
#undef AT
}

static void gpus_of_each_node_are_those_of_all_nodes(void **state)
{
	static const struct { const char *req, *alloc, *nodes; uint32_t n; bool bad; } cases[] = {
		{ "PER_NODE:gpu:2", "", "3", 6, false }, { "PER_NODE:gres:gpu:a100:2", "", "3", 6, false }, { "PER_JOB:gpu:2", "", "3", 2, false },
		{ "PER_NODE:gpu", "", "4", 4, false }, { "PER_NODE:gpu:2", "", "", 0, true }, { "PER_TASK:gpu:2", "", "3", 0, true },
		{ "PER_TASK:gpu:2", "gres/gpu=8", "3", 8, false }, { "PER_NODE:gpu:2", "gres/gpu=8", "", 8, false }, { "PER_NODE:gpu:60000", "", "60000", 0, true },
		{ "PER_TASK:craynetwork:1", "", "1", 0, false }, { "PER_SOCKET:gpu:0", "", "1", 0, false },
	};
	char text[400];
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_job_list list;
		struct hd_diag diag = { "" };
		snprintf(text, sizeof text,
			"JobID|Submit|ElapsedRaw|NNodes|AllocTRES|ReqGRES\n"
			"1|2023-03-01T10:00:00|5|1|gres/gpu=1|\n"
			"2|2023-03-01T10:00:01|5|%s|%s|%s\n", cases[i].nodes, cases[i].alloc, cases[i].req);
		CHECK(read_sacct(&list, text, NULL, &diag) == HD_OK, "case %zu: %s", i, diag.text);
		CHECK(list.n == (cases[i].n ? 2u : 1u) && list.nbad == cases[i].bad &&
			list.ncpu == (!cases[i].n && !cases[i].bad),
			"case %zu: %zu jobs", i, list.n);
		CHECK(!cases[i].n || list.at[1].scale == cases[i].n, "case %zu: %u", i,
			list.at[list.n - 1].scale);
	}
	hd_arena_reset(&arena);
}

/* Rows as several releases print them; tests/data/README.md says that the cluster is made up. */
static void what_slurm_prints_is_kept(void **state)
{
	size_t len;
	const char *text = (const char *)shared_bytes("data/slurm/sacct.txt", &arena, &len);
	struct hd_job_list list;
	struct hd_diag diag = { "" };
	(void)state;

	assert_non_null(text);
	CHECK(read_sacct(&list, text, NULL, &diag) == HD_OK, "%s", diag.text);
	CHECK(list.n == 9 && list.ncpu == 1 && list.nbad == 3 && list.ndropped == 2 && list.nopen == 1,
		"%zu jobs, %d cpu, %d bad, %d dropped, %d open", list.n,
		(int)list.ncpu, (int)list.nbad, (int)list.ndropped, (int)list.nopen);
	static const struct { const char *id, *user, *account, *partition, *qos, *type; uint32_t scale;
		double duration_s, limit_s, waited_s; } want[] = {
		{ "412001", "amara", "vision", "gpu", "normal", "a100", 2, 3600, 14400, 130 },
		{ "412003_1", "amara", "vision", "gpu", "low", "v100", 1, 1200, NAN, 240 },
		{ "412010+0", "chen", "nlp", "gpu", "high", "a100", 8, 93784, 172800, 7200 },
		{ "412011", "dina", "teaching", "interactive", "normal", NULL, 1, 3000, INFINITY, 3 },
		{ "412015", "chen", "nlp", "gpu", "normal", NULL, 3, 7201, 7200, 600 },
		{ "412016", "amara", "vision", "gpu", "high", "a100", 1, 600, 1800, 20 },
		{ "412018", "bo", "vision", "gpu", "normal", "h100", 1, 600, 2700, NAN },
	};
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		const struct hd_listed_job *j = job_of(&list, want[i].id);
		const struct hd_job_record *r = j->record;
		CHECK(!strcmp(j->user, want[i].user) && !strcmp(r->account, want[i].account) &&
			!strcmp(r->partition, want[i].partition)
			&& !strcmp(r->qos, want[i].qos) && !j->type == !want[i].type &&
				(!j->type || !strcmp(j->type, want[i].type)), "%s", want[i].id);
		CHECK(j->scale == want[i].scale && fabs(j->duration_s - want[i].duration_s) < 1e-9,
			"%s: %u for %g s", want[i].id, j->scale, j->duration_s);
		CHECK(isnan(want[i].limit_s) ? isnan(r->limit_s) : !(r->limit_s < want[i].limit_s) &&
			!(r->limit_s > want[i].limit_s), "%s: limit %g s",
			want[i].id, r->limit_s);
		CHECK(isnan(want[i].waited_s) ? isnan(r->waited_s) :
			fabs(r->waited_s - want[i].waited_s) < 1e-9, "%s: waited %g s", want[i].id,
			r->waited_s);
	}
	/* an older form: another order, no bar at the end, minutes, a second header in the middle */
	text = (const char *)shared_bytes("data/slurm/sacct-20.txt", &arena, &len);
	assert_non_null(text);
	CHECK(read_sacct(&list, text, NULL, &diag) == HD_OK, "%s", diag.text);
	assert_true(list.n == 2 && list.ncpu == 1 && list.ndropped == 1 && list.nbad == 0);
	assert_true(list.at[0].scale == 2 && list.at[0].record->limit_s == 5400 &&
		list.at[0].record->waited_s == 30);
	assert_true(list.at[1].scale == 1 && isinf(list.at[1].record->limit_s) &&
		list.at[1].record->waited_s == 0 && !list.at[1].type);
	assert_string_equal(list.at[0].type, "tesla");
	assert_string_equal(list.at[1].record->account, "chem");
	hd_arena_reset(&arena);
}

static void prices_of_all_forms_say_what_holds_when(void **state)
{
	static const char csv[] = "price,time,type,zone\n2,100,v,a\n1,200,v,a\n1.5,100,v,b\n7,50,k,a\n";
	static const char wide[] = "date,$v,$k\n2020-01-01,2,\n2020-01-02,1,3\n";
	static const char aws[] =
		"{\"SpotPriceHistory\":[{\"AvailabilityZone\":\"us-east-1a\","
		"\"InstanceType\":\"p3.2xlarge\",\"SpotPrice\":\"0.918000\","
		"\"Timestamp\":\"2020-02-03T04:05:06.000Z\"},{\"AvailabilityZone\":\"us-east-1a\","
		"\"InstanceType\":\"p3.2xlarge\",\"SpotPrice\":\"0.9\","
		"\"Timestamp\":\"2020-02-03T03:05:06+00:00\"}]}";
	struct hd_prices p;
	struct hd_diag diag = { "" };
	const struct hd_json *json;
	(void)state;

	CHECK(hd_prices_read(&p, "csv", (const uint8_t *)csv, sizeof csv - 1, &arena, &diag) == HD_OK, "%s",
		diag.text);
	uint32_t v = hd_prices_type(&p, "v"), k = hd_prices_type(&p, "k");
	assert_true(k == 0 && v == 1 && p.start_s == 50 && p.end_s == 200);
	static const struct { double at, v; } wants[] = { { 0, 1.5 }, { 100, 1.5 }, { 199.9, 1.5 },
		{ 200, 1 }, { 1e9, 1 } };
	for (size_t i = 0; i < sizeof wants / sizeof *wants; i++)
		CHECK(hd_price_at(&p, v, wants[i].at) == wants[i].v, "at %g: %g", wants[i].at,
			hd_price_at(&p, v, wants[i].at));
	assert_true(hd_price_at(&p, k, 0) == 7 && hd_price_change(&p, v, 99) == 100 &&
		hd_price_change(&p, v, 100) == 200 && hd_price_change(&p, v,
		200) == INFINITY);

	assert_int_equal(hd_prices_read(&p, "wide", (const uint8_t *)wide, sizeof wide - 1, &arena, &diag),
		HD_OK);
	assert_true(hd_price_at(&p, hd_prices_type(&p, "v"), p.start_s + 86399) == 2 &&
		hd_price_at(&p, hd_prices_type(&p, "v"), p.start_s + 86400) == 1);
	assert_int_equal(hd_json_parse(&arena, "aws", aws, sizeof aws - 1, &json, &diag), HD_OK);
	CHECK(hd_prices_json(&p, json, &arena, &diag) == HD_OK, "%s", diag.text);
	assert_true(p.n == 2 && p.at[0].usd_h == 0.9 && p.end_s - p.start_s == 3600 && p.end_s == 1580702706);

	size_t len;
	const uint8_t *bytes = shared_bytes("data/prices/ec2-2016.tsv", &arena, &len);
	if (!bytes)
		SKIP("data/prices is neither in HEDDLE_SHARED nor in tests");
	CHECK(hd_prices_read(&p, "ec2", bytes, len, &arena, &diag) == HD_OK, "%s", diag.text);
	assert_true(p.n == 93039 || p.n == 401);                  /* all of it, or the extract */
	assert_int_equal(p.ntypes, 5);
	/* the whole history against a walk over the text, at some instants */
	for (int i = 0; i < 20; i++) {
		double at = p.start_s + (p.end_s - p.start_s) * i / 20;
		for (uint32_t t = 0; t < p.ntypes; t++) {
			double least = INFINITY;
			for (uint32_t z = 0; z < p.nzones; z++) {
				double here = INFINITY, when = -INFINITY, first = INFINITY,
					first_at = INFINITY;
				for (size_t n = 0; n < p.n; n++) {
					const struct hd_price *x = &p.at[n];
					if (x->type != t || x->zone != z)
						continue;
					if (x->at_s <= at && x->at_s >= when) {
						when = x->at_s;
						here = x->usd_h;
					}
					if (x->at_s < first_at) {
						first_at = x->at_s;
						first = x->usd_h;
					}
				}
				least = fmin(least, when > -INFINITY ? here : first);
			}
			CHECK(hd_price_at(&p, t, at) == least, "%s at %g: %g, not %g", p.type[t], at,
				hd_price_at(&p, t, at), least);
		}
	}
	hd_arena_reset(&arena);
}

/* Facts of the traces' own description. */
static void machines_come_and_go_as_their_traces_say(void **state)
{
	static const struct { const char *path; size_t n, removals; int32_t most, end; double mean;
		} traces[] = {
		{ "data/spot/p3-trace.csv", 344, 167, 32, 10, 24.03 }, { "data/spot/g4dn-trace.csv", 153, 74, 24, 5, 12.60 },
		{ "data/spot/gcloud-a100x1-east1b.txt", 0, 0, 64, 64, 0 }, { "data/spot/gcloud-v100x1-east1c.txt", 0, 0, 80, 80, 0 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
		struct hd_machine_events events;
		struct hd_diag diag = { "" };
		size_t len, removals = 0;
		int32_t running = 0, most = 0;
		double area = 0;
		const uint8_t *bytes = shared_bytes(traces[i].path, &arena, &len);
		if (!bytes)
			SKIP("data/spot is neither in HEDDLE_SHARED nor in tests");
		CHECK(hd_machine_events_csv(&events, traces[i].path, bytes, len, &arena, &diag) == HD_OK,
			"%s", diag.text);
		for (size_t k = 0; k < events.n; k++) {
			area += k ? running * (events.at[k].at_s - events.at[k - 1].at_s) : 0;
			assert_true(!k || events.at[k].at_s >= events.at[k - 1].at_s);
			running += events.at[k].change;
			removals += events.at[k].change < 0;
			most = running > most ? running : most;
		}
		CHECK(most == traces[i].most && running == traces[i].end, "%s: at most %d, %d at the end",
			traces[i].path, most, running);
		if (traces[i].n) {
			double mean = area / (events.at[events.n - 1].at_s - 0);
			CHECK(events.n == traces[i].n && removals == traces[i].removals,
				"%s: %zu events, %zu removals", traces[i].path, events.n, removals);
			CHECK(fabs(mean - traces[i].mean) < 0.7, "%s: mean %.3f", traces[i].path, mean);
		}
	}
	static const struct { const char *text, *says; } bad[] = {
		{ "0,add,a\n5,remove,b\n", "t: \"b\" is removed before it is added at 0.005 s: a name is added once, and removed once after that" },
		{ "0,add,a\n5,add,a\n", "t: \"a\" is added again at 0.005 s: a name is added once, and removed once after that" },
		{ "0,gone,a\n", "t:1:3: \"gone\" is neither add nor remove" },
		{ "2020-01-01, 10:00:00, many\n", "t:1:22: running machines: " },
		{ "0,add\n", "t:1:1: 2 fields: a line is milliseconds,add|remove,name or date,time,count" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_machine_events events;
		struct hd_diag diag = { "" };
		CHECK(hd_machine_events_csv(&events, "t", (const uint8_t *)bad[i].text, strlen(bad[i].text),
			&arena, &diag) == HD_E_INPUT, "case %zu", i);
		CHECK(!strncmp(diag.text, bad[i].says, strlen(bad[i].says)), "case %zu: %s", i, diag.text);
	}
	hd_arena_reset(&arena);
}

static void a_list_of_nodes_names_types_and_devices(void **state)
{
	static const char text[] =
		"sn,cpu_milli,memory_mib,gpu,model\nn-0,32000,262144,8,V100M32\nn-1,64000,1,0,\n"
		"n-2,1,1,2,T4\n";
	static const char bad[] = "sn,cpu_milli,memory_mib,gpu,model\nn-0,1,1,2,\n";
	struct hd_machine_list list;
	struct hd_diag diag = { "" };
	(void)state;

	assert_int_equal(hd_machine_list_csv(&list, "t", (const uint8_t *)text, sizeof text - 1, &arena,
		&diag), HD_OK);
	assert_true(list.n == 2 && list.nwithout == 1 && list.at[0].devices == 8);
	assert_string_equal(list.at[1].type, "T4");
	assert_int_equal(hd_machine_list_csv(&list, "t", (const uint8_t *)bad, sizeof bad - 1, &arena, &diag),
		HD_E_INPUT);
	assert_string_equal(diag.text, "t:2:11: 2 devices of no model");
	hd_arena_reset(&arena);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(measured_rates_are_read_with_their_pairs),
		cmocka_unit_test(bad_rates_are_refused_with_their_place),
		cmocka_unit_test(traces_of_both_forms_are_read_and_written_back),
		cmocka_unit_test(bad_lines_of_traces_are_refused_with_place_and_field),
		cmocka_unit_test(published_tables_of_clusters_become_jobs),
		cmocka_unit_test(columns_are_mapped_by_name_and_mistakes_are_named),
		cmocka_unit_test(what_slurm_accounted_becomes_jobs),
		cmocka_unit_test(a_bad_row_of_an_accounting_costs_that_row_alone),
		cmocka_unit_test(gpus_of_an_accounting_are_counted_with_their_type),
		cmocka_unit_test(durations_are_read_as_slurm_writes_them),
		cmocka_unit_test(an_empty_cell_of_the_duration_asked_for_costs_its_row),
		cmocka_unit_test(parts_of_a_heterogeneous_job_are_one_job),
		cmocka_unit_test(gpus_of_each_node_are_those_of_all_nodes),
		cmocka_unit_test(what_slurm_prints_is_kept),
		cmocka_unit_test(prices_of_all_forms_say_what_holds_when),
		cmocka_unit_test(machines_come_and_go_as_their_traces_say),
		cmocka_unit_test(a_list_of_nodes_names_types_and_devices),
	};

	hd_arena_init(&arena, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&arena);
	return failed;
}
