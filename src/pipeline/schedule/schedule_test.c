#include "pipeline/schedule.h"

#include <stdio.h>
#include <string.h>

#include "tests/planning.h"
#include "tests/check.h"

static void sizes_and_places_are_inferred(void **state)
{
	struct hd_schedules all = hd_parsed_schedules("# a remark\n"
		"## first one  T=3\n0: F0.0 B0.0\n1: F1.0 (F1.1&B1.0)\n\n## second\n0:\n1: F0.4\n## only a "
		"remark\n");

	(void)state;
	assert_int_equal(all.len, 2);
	assert_string_equal(all.at[0].heading, "first one  T=3");
	assert_true(all.at[0].nranks == 2 && all.at[0].nvns == 2 && all.at[0].nstages == 2);
	assert_true(all.at[0].place[0] == 0 && all.at[0].place[1] == 1);
	assert_int_equal(all.at[0].list[1].at[1].flags, HD_INS_PAIR_BEGIN);
	assert_int_equal(all.at[0].list[1].at[2].flags, HD_INS_PAIR_END);
	assert_true(all.at[1].nranks == 2 && all.at[1].nvns == 5 && all.at[1].list[0].len == 0 &&
		all.at[1].place[0] == 1);
}

static void directives_must_agree_with_the_lists(void **state)
{
	static const struct { const char *text, *want; } cases[] = {
		{ "p 2\nm 1\nstages 2\nplace mod\n0: F0.0\n1: F1.0\n", NULL }, { "place v\n0: F0.0 F3.0\n1: F1.0 F2.0\n", NULL },
		{ "place 1 0\n0: F1.0\n1: F0.0\n", NULL },
		{ "p 3\n0: F0.0\n1: F1.0\n", "s.txt:1:2: p is 3, there are lists of 2 ranks" },
		{ "m 2\n0: F0.0\n", "s.txt:2:1: the lists above have m = 1 and 1 stages, not what their directives say" },
		{ "stages 2\n0: F0.0\n", "s.txt:2:1: the lists above have m = 1 and 1 stages, not what their directives say" },
		{ "place mod\n0: F1.0\n1: F0.0\n", "s.txt:3:1: the lists above run stage 0 on rank 1, not where their place says" },
		{ "place\n0: F0.0\n", "s.txt:1:6: mod, v or the rank of each stage belongs here" },
		{ "place 0 x\n0: F0.0\n", "s.txt:1:9: \"x\" is not a plain number up to 4095" },
		{ "0: F0.0\np 1\n", "s.txt:2:1: directives stand before the lists" },
		{ "1: F0.0\n", "s.txt:1:1: the list of rank 0 comes next" }, { "0: F0.0\n0: F0.1\n", "s.txt:2:1: the list of rank 1 comes next" },
		{ "section period\n0:\n", "s.txt:1:9: section prologue comes here" },
		{ "0:\nsection prologue\n", "s.txt:2:1: the first section stands before all lists" },
		{ "section prologue\n0:\n1:\nsection period\n0:\nsection epilogue\n", "s.txt:6:1: a section has a list of each of 2 ranks" },
		{ "section prologue\n0:\nsection period\n0:\n1:\n", "s.txt:5:1: there are lists of 1 ranks" },
		{ "update 2bw\nsection prologue\n0:\nsection period\n0:\n", "s.txt:5:1: the schedule above ends before the lists of its sections" },
		{ "update 2bw\nsection prologue\n0:\nsection period\n0:\nsection epilogue\n0:\nsection epilogue\n", "s.txt:8:9: epilogue was the last section" },
		{ "section prologue\n0:\nsection period\n0:\nsection epilogue\n0:\n", "s.txt:6:1: sections belong to delayed updates" },
		{ "update stash\n0:\n", "s.txt:2:1: update stash needs the sections" },
		{ "update often\n0:\n", "s.txt:1:8: flush, stash, vsync or 2bw belongs here" },
		{ "update stash\nsection prologue\n0: F0.0\nsection period\n0: F0.0 B0.-1\nsection epilogue\n0: B0.-1\n", NULL },
		{ "hello\n", "s.txt:1:1: \"hello\" is neither a rank nor a directive" },
		{ "\x1b[2Jgone\xff\n", "s.txt:1:1: \"\\x1b[2Jgone\\xff\" is neither a rank nor a directive" }, { "0 F0.0\n", "s.txt:1:1: a rank is followed by a colon" },
		{ "0: F0.0 X\n", "s.txt:1:9: no instruction begins like \"X\"" }, { "0: F0.0 (F0.1&B0.0\n", "s.txt:1:9: a pair is written" },
		{ "0: (F0.1&RED0)\n", "s.txt:1:10: RED cannot be half of a pair" }, { "0: (F0.1B0.1)\n", "s.txt:1:4: a pair is written" },
		{ "## a\001b\n0: F0.0\n", "s.txt:1:5: a control character in a heading" },
		{ "0: (F0.&B0.1)\n", "s.txt:1:8: a number is missing: the virtual node" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hd_schedules all;
		struct hd_diag diag = { "" };
		enum hd_err err = hd_schedules_parse(&all, cases[i].text, strlen(cases[i].text), "s.txt",
			&arena, &diag);
		CHECK(err == (cases[i].want ? HD_E_INPUT : HD_OK), "%s: %s", cases[i].text, diag.text);
		CHECK(!cases[i].want || !strncmp(diag.text, cases[i].want, strlen(cases[i].want)), "%s: %s",
			cases[i].text, diag.text);
	}
}

/* Each block of the file, from its heading to the empty line, against what is printed. */
static void every_stored_schedule_prints_back(void **state)
{
	const char *text = hd_shared_text("schedules.txt");

	(void)state;
	if (!text) {
		SKIP("data/schedules.txt is neither in HEDDLE_SHARED nor in tests");
	}
	struct hd_schedules all = hd_parsed_schedules(text);
	assert_true(all.len >= 8);
	for (uint32_t i = 0; i < all.len; i++) {
		struct hd_text printed;
		hd_text_init(&printed, &arena);
		hd_schedule_print(&all.at[i], &printed);
		CHECK(strstr(text, printed.at), "%s", printed.at);
		unsigned p = 0, m = 0, stages = 0;
		const char *sizes = strstr(all.at[i].heading, " p=");
		assert_int_equal(sscanf(sizes, " p=%u m=%u stages=%u", &p, &m, &stages), 3);
		CHECK(all.at[i].nranks == p && all.at[i].nvns == m && all.at[i].nstages == stages, "%s",
			all.at[i].heading);
	}
	print_message("%u schedules\n", all.len);
}

static void sections_print_back(void **state)
{
	static const char text[] =
		"## x\nupdate 2bw\nsection prologue\n0: F0.0 F0.1 B0.0\n1: F1.0 B1.0 F1.1 B1.1\n"
		"section period\n0: F0.0 B0.-1 F0.1 B0.0\n1: F1.0 B1.0 F1.1 B1.1\nsection epilogue\n0: "
		"B0.-1\n1:\n";
	struct hd_schedules all = hd_parsed_schedules(text);
	struct hd_text printed;

	(void)state;
	assert_int_equal(all.len, 1);
	assert_true(all.at[0].update == HD_UPDATE_2BW && all.at[0].nvns == 2 && all.at[0].nranks == 2 &&
		all.at[0].epilogue[1].len == 0);
	hd_text_init(&printed, &arena);
	hd_schedule_print(&all.at[0], &printed);
	assert_string_equal(printed.at, text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_and_places_are_inferred),
		cmocka_unit_test(directives_must_agree_with_the_lists),
		cmocka_unit_test(sections_print_back),
		cmocka_unit_test(every_stored_schedule_prints_back),
	};
	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
