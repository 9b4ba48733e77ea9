#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "tests/planning.h"
#include "tests/check.h"

static const char golden[] =
	"plan 3\n"
	"cause \"2 workers \\\"joined\\\" \\\\\"\n"
	"stages 2\n"
	"cuts 0 17\n"
	"overlap\n"
	"workers 0-1:0 2:7\n"
	"map 0-3:0 4:2 5:1\n"
	"owner 0-41:0 42:2 43-50:1\n"
	"xfer root 0>7 class=1 prio=4 bucket=0 chunks=0+42 bytes=1048576 ns=90000 via=0\n"
	"xfer act 7>0 class=2 prio=4294967295 bucket=1 chunks=0+0 bytes=9223372036854775807 ns=0 via=255\n"
	"0: LD0.0 F0.0 B0.0 RED0 NORM STEP0\n"
	"1:\n"
	"2: Fc1.4 (F0.1&B0.2) SA0.4>1#3 STEP!0@1 VAL@1 BAR9\n";

static void a_plan_prints_as_it_was_written(void **state)
{
	struct hd_plan p;
	struct hd_diag diag = { "" };
	struct hd_text text;

	(void)state;
	CHECK(hd_plan_parse(&p, golden, sizeof golden - 1, "p", &arena, &diag) == HD_OK, "%s", diag.text);
	assert_true(p.number == 3 && p.nstages == 2 && p.nranks == 3 && p.nvns == 6 && p.nchunks == 51);
	assert_string_equal(p.cause, "2 workers \"joined\" \\");
	assert_true(p.first[0] == 0 && p.first[1] == 17);
	assert_true(p.worker[1] == 0 && p.worker[2] == 7 && p.map[4] == 2 && p.map[5] == 1 &&
		p.owner[50] == 1);
	assert_int_equal(p.xfers.len, 2);
	assert_true(p.xfers.at[0].kind == HD_XFER_PARTIAL && p.xfers.at[0].to == 7 &&
		p.xfers.at[0].nchunks == 42);
	assert_true(p.xfers.at[1].kind == HD_XFER_ACTIVATIONS && p.xfers.at[1].primitive == 255 &&
		p.xfers.at[1].class == 2);
	hd_text_init(&text, &arena);
	assert_int_equal(hd_plan_print(&p, &text), HD_OK);
	assert_string_equal(text.at, golden);
}

static void order_comments_and_runs_do_not_change_the_plan(void **state)
{
	static const char other[] =
		"# remark\n owner 0:0 1:0\n\nmap\t0-1:0 2:0\n  workers 0:0\nstages 1\nplan 0\n# remark\n0:  "
		"NORM \t STEP0";
	static const char want[] =
		"plan 0\ncause \"\"\nstages 1\nworkers 0:0\nmap 0-2:0\nowner 0-1:0\n0: NORM STEP0\n";
	struct hd_plan p, q;
	struct hd_text text;

	(void)state;
	assert_int_equal(hd_plan_parse(&p, other, sizeof other - 1, "p", &arena, NULL), HD_OK);
	hd_text_init(&text, &arena);
	assert_int_equal(hd_plan_print(&p, &text), HD_OK);
	assert_string_equal(text.at, want);
	assert_int_equal(hd_plan_parse(&q, want, sizeof want - 1, "p", &arena, NULL), HD_OK);
	assert_true(hd_hash_same(hd_plan_digest(&p), hd_plan_digest(&q)));
}

static void random_plans_survive_print_and_parse(void **state)
{
	(void)state;
	srandom(5);
	for (int round = 0; round < 2000; round++) {
		struct hd_plan_job job = { .nvns = 1 + (uint32_t)random() % 40,
			.nchunks = (uint32_t)random() % 30, .nstages = 1 };
		uint32_t map[40], nranks = 1 + (uint32_t)random() % 6;
		struct hd_plan p, q;
		struct hd_text once, twice;
		for (uint32_t v = 0; v < job.nvns; v++)
			map[v] = (uint32_t)random() % nranks;
		assert_int_equal(hd_plan_of_map(&p, &job, nranks, map, &arena, NULL), HD_OK);
		p.cause = "because\nof \t\"this\" \\ \xc3\xa9";
		hd_text_init(&once, &arena);
		hd_text_init(&twice, &arena);
		assert_int_equal(hd_plan_print(&p, &once), HD_OK);
		assert_int_equal(hd_plan_parse(&q, once.at, once.len, "p", &arena, NULL), HD_OK);
		assert_memory_equal(q.map, p.map, job.nvns * sizeof *map);
		for (uint32_t r = 0; r < nranks; r++)
			assert_memory_equal(q.list[r].at, p.list[r].at, p.list[r].len * sizeof *p.list[r].at);
		assert_int_equal(hd_plan_print(&q, &twice), HD_OK);
		assert_string_equal(once.at, twice.at);
		hd_arena_reset(&arena);
	}
}

#define HEAD "plan 1\nstages 1\nworkers 0-1:0\nmap 0-3:0\nowner 0:0\n"

static void every_error_has_its_place(void **state)
{
	static const struct { const char *text, *want; } cases[] = {
		{ "", "p: the line plan is missing" }, { HEAD "0: NORM\n", "p: rank 1 has no list" },
		{ "plan 1\nplan 2\n", "p:2:1: a second plan" }, { "plan x\n", "p:1:6: \"x\" is not a plain number up to 4294967295" },
		{ "plan 1 2\n", "p:1:8: one number belongs here" }, { "plan\n", "p:1:5: \"\" is not a plain number" },
		{ "cuts 0\n", "p:1:1: the line cuts stands after a line stages of 1 or more" },
		{ "stages 1\ntensor 2\n", "p:2:1: the line tensor stands after a line cuts" },
		{ "stages 1\ncuts 0\ntensor 1\n", "p:3:1: the line tensor says 2 devices of a rank or more" },
		{ "stages 1\ncuts 0\ntensor 4097\n", "p:3:8: \"4097\" is not a plain number up to 4096" },
		{ "stages 1\ncuts 0\ntensor 2 2\n", "p:3:10: one number belongs here" },
		{ "stages 2\ngroups 2\n", "p:2:1: the line groups stands after a line cuts" },
		{ "stages 1\ncuts 0\ngroups 1\n", "p:3:1: the line groups says 2 ranks that share a stage or more" },
		{ "stages 2\ncuts 0 1 2\n", "p:2:10: there are 2 stages: one number each" },
		{ "overlap\n", "p:1:1: the line overlap stands after a line cuts" },
		{ "stages 2\ncuts 0 1\noverlap yes\n", "p:3:9: the line overlap is a word alone" },
		{ "stages 2\ncuts 0 1\noverlap\noverlap\n", "p:4:1: a second overlap" },
		{ "stages 2\ncuts 0\n", "p:2:7: there are 2 stages: one number each, here are 1" },
		{ "plans 1\n", "p:1:1: there is no directive \"plans\"" }, { "0: NORM\n", "p:1:1: the line workers stands before" },
		{ "workers\n", "p:1:1: a plan has at least one rank" }, { "workers 1:0\n", "p:1:9: 0 comes next: indices ascend without a hole" },
		{ "workers 0-2:0 4:1\n", "p:1:15: 3 comes next" }, { "map 3-1:0\n", "p:1:5: 0 comes next" }, { "map 0-x:0\n", "p:1:7: \"x\" is not" },
		{ "map 0\n", "p:1:5: write FIRST-LAST:VALUE, as 0-7:1" }, { "map 0:\n", "p:1:7: \"\" is not a plain number" },
		{ "map 0-65536:0\n", "p:1:7: \"65536\" is not a plain number up to 65535" },
		{ "workers 0-4096:0\n", "p:1:11: \"4096\" is not a plain number up to 4095" },
		{ "cause x\n", "p:1:7: the cause stands between double quotes" }, { "cause \"x\n", "p:1:9: the cause ends with a double quote" },
		{ "cause \"x\" y\n", "p:1:9: the cause ends with a double quote" }, { "cause \"\\n\"\n", "p:1:9: a \\ stands before" },
		{ "cause \"\x01\"\n", "p:1:8: a control character" }, { "cause \"\\", "p:1:9: the cause ends" },
		{ "xfer rooot 0>1\n", "p:1:6: there is no transfer \"rooot\"" }, { "xfer root\n", "p:1:10: FROM>TO belongs here" },
		{ "xfer root 01\n", "p:1:11: two numbers with > between" }, { "xfer root 0>1 prio=1\n", "p:1:15: class=... belongs here" },
		{ "xfer root 0>1 class=3 prio=1\n", "p:1:21: \"3\" is not a plain number up to 2" },
		{ HEAD "0: NORM\n0: NORM\n", "p:7:1: rank 0 has two lists" }, { HEAD "2: NORM\n", "p:6:1: there is no rank 2; they are 0 to 1" },
		{ HEAD "0: NORM\nplan 2\n", "p:7:1: a second plan" }, { HEAD "0: NORM\ncause \"\"\n", "p:7:1: directives stand before the lists" },
		{ HEAD "0 NORM\n", "p:6:1: a rank is followed by a colon" }, { HEAD "0: NORM F0\n", "p:6:11: a point and a virtual node are missing" },
		{ HEAD "00: NORM\n", "p:6:1: \"00\" is not a plain number" }, { HEAD "0: NORM\r\n", "p:6:8: \"\\x0d\" does not belong to NORM" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hd_plan p = { .number = 77 };
		struct hd_diag diag = { "" };
		CHECK(hd_plan_parse(&p, cases[i].text, strlen(cases[i].text), "p", &arena,
			&diag) == HD_E_INPUT, "accepted: %s", cases[i].text);
		CHECK(!strncmp(diag.text, cases[i].want, strlen(cases[i].want)), "%s: %s", cases[i].text,
			diag.text);
		assert_int_equal(p.number, 77);
	}
}

static void a_text_that_is_cut_anywhere_is_refused_or_a_plan(void **state)
{
	(void)state;
	for (size_t len = 0; len < sizeof golden - 1; len++) {
		struct hd_plan p;
		char *cut = malloc(len ? len : 1);       /* exactly as large, for the sanitizer */
		memcpy(cut, golden, len);
		enum hd_err err = hd_plan_parse(&p, cut, len, "p", &arena, NULL);
		CHECK(err == HD_OK || err == HD_E_INPUT, "cut at %zu", len);
		free(cut);
	}
}

static void no_memory_is_said(void **state)
{
	enum hd_err err = HD_E_NOMEM;

	(void)state;
	for (size_t budget = 1; err && budget < (1 << 20); budget += 64) {
		struct hd_arena small;
		struct hd_plan p;
		hd_arena_init(&small, budget);
		err = hd_plan_parse(&p, golden, sizeof golden - 1, "p", &small, NULL);
		CHECK(!err || err == HD_E_NOMEM, "budget %zu", budget);
		hd_arena_finish(&small);
	}
	assert_int_equal(err, HD_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plan_prints_as_it_was_written),
		cmocka_unit_test(order_comments_and_runs_do_not_change_the_plan),
		cmocka_unit_test(random_plans_survive_print_and_parse),
		cmocka_unit_test(every_error_has_its_place),
		cmocka_unit_test(a_text_that_is_cut_anywhere_is_refused_or_a_plan),
		cmocka_unit_test(no_memory_is_said),
	};
	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
