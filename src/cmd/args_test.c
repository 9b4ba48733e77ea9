#include "cmd/args.h"

#include <string.h>

#include "cmd/verbs.h"
#include "tests/check.h"

/* argv as a user types it, split at blanks. */
static enum hd_err parse(struct hd_args *args, const struct hd_verb *verb, const char *line,
	struct hd_diag *diag)
{
	static char room[2000];
	char *argv[HD_MAX_POSITIONALS + 200], *at = room;
	int argc = 0;

	diag->text[0] = '\0';
	assert_true(strlen(line) < sizeof room);
	snprintf(room, sizeof room, "%s", line);
	while (*at) {
		size_t len = strcspn(at, " ");
		argv[argc++] = at;
		at += len + (at[len] == ' ');
		argv[argc - 1][len] = '\0';
	}
	return hd_args_parse(args, verb, argc, argv, diag);
}

static void options_stand_anywhere_and_the_last_of_one_counts(void **state)
{
	static const char *const lines[] = {
		"job.yaml --steps 7 -s a=1 -s b=2 --json", "--steps=7 -s a=1 job.yaml --json -s b=2",
		"--steps 3 -s a=1 --json --steps 7 -s b=2 -- job.yaml",
	};
	struct hd_diag diag;
	struct hd_args args;

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		CHECK(!parse(&args, &hd_verb_run, lines[i], &diag), "%s: %s", lines[i], diag.text);
		assert_int_equal(args.npos, 1);
		assert_string_equal(args.pos[0], "job.yaml");
		assert_int_equal(args.count[HD_OPT_STEPS], 7);
		assert_int_equal(args.nsets, 2);
		assert_string_equal(args.set[0], "a=1");
		assert_string_equal(args.set[1], "b=2");
		assert_true(args.has[HD_OPT_JSON] && !args.has[HD_OPT_QUIET] && !args.has[HD_OPT_OUT]);
	}
}

static void what_follows_two_dashes_is_no_option(void **state)
{
	struct hd_diag diag;
	struct hd_args args;

	(void)state;
	assert_int_equal(parse(&args, &hd_verb_run, "-- --json", &diag), HD_OK);
	assert_string_equal(args.pos[0], "--json");
	assert_false(args.has[HD_OPT_JSON]);
	assert_int_equal(parse(&args, &hd_verb_scale, "run -3", &diag), HD_OK);         /* less three */
	assert_string_equal(args.pos[1], "-3");
}

/* "=" splits at the first one; a value may look like an option. */
static void a_value_is_taken_as_it_is(void **state)
{
	struct hd_diag diag;
	struct hd_args args;

	(void)state;
	assert_int_equal(parse(&args, &hd_verb_run, "--set=optim.lr=0.1 --out --json x", &diag), HD_OK);
	assert_string_equal(args.set[0], "optim.lr=0.1");
	assert_string_equal(args.text[HD_OPT_OUT], "--json");
	assert_false(args.has[HD_OPT_JSON]);
}

/* -v is --verbose, of schedules their chunks; --trace is a file to write, or one of jobs. */
static void one_name_means_what_the_verb_takes(void **state)
{
	struct hd_diag diag;
	struct hd_args args;

	(void)state;
	assert_int_equal(parse(&args, &hd_verb_run, "x -v", &diag), HD_OK);
	assert_true(args.has[HD_OPT_VERBOSE]);
	assert_int_equal(parse(&args, &hd_verb_plan_show, "-v 2", &diag), HD_OK);
	assert_true(args.has[HD_OPT_CHUNKS] && args.count[HD_OPT_CHUNKS] == 2 && !args.has[HD_OPT_VERBOSE]);
	assert_int_equal(parse(&args, &hd_verb_simulate, "--trace f", &diag), HD_OK);
	assert_true(args.has[HD_OPT_TRACE] && !args.has[HD_OPT_JOBS]);
	assert_int_equal(parse(&args, &hd_verb_sched_simulate, "--trace f", &diag), HD_OK);
	assert_true(args.has[HD_OPT_JOBS] && !args.has[HD_OPT_TRACE]);
}

static void what_is_wrong_is_answered_with_what_is_right(void **state)
{
	const struct { const struct hd_verb *verb; const char *line, *says; } cases[] = {
		{ &hd_verb_run, "x --stpes 3", "there is no option --stpes; did you mean --steps?" },
		{ &hd_verb_run, "x --zzzzzzzz", "`heddle help` lists what there is" },
		{ &hd_verb_run, "x -z", "there is no option -z" },
		{ &hd_verb_run, "x -sq", "there is no option -sq" },
		{ &hd_verb_eval, "x --steps 3", "`heddle eval` does not take --steps; these do: run, resume" },
		{ &hd_verb_run, "x --steps", "--steps needs a value: N" },
		{ &hd_verb_run, "x --steps many", "--steps many: " },
		{ &hd_verb_run, "x --steps -1", "--steps -1: " },
		{ &hd_verb_run, "x --steps=", "--steps : " },
		{ &hd_verb_run, "x --json=1", "--json takes no value" },
		{ &hd_verb_run, "x --color sometimes", "--color is one of auto|always|never, not \"sometimes\"" },
		{ &hd_verb_run, "x --color auto|always", "--color is one of" },
		{ &hd_verb_run, "a b", "`heddle run` takes JOB; see `heddle run --help`" },
		{ &hd_verb_resume, "", "`heddle resume` takes RUN" },
		{ &hd_verb_version, "x", "`heddle version` takes no arguments" },
		{ &hd_verb_run, "x --an-option-whose-name-is-longer-than-any-that-could-be-in-the-table-of-options 1",
			"there is no option --an-option" },
	};
	struct hd_diag diag;
	struct hd_args args;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CHECK(parse(&args, cases[i].verb, cases[i].line, &diag) == HD_E_INVAL, "%s", cases[i].line);
		CHECK(strstr(diag.text, cases[i].says), "%s: %s", cases[i].line, diag.text);
	}
}

static void settings_have_a_bound(void **state)
{
	char line[HD_MAX_SETS * 8 + 16] = "x";
	struct hd_diag diag;
	struct hd_args args;

	(void)state;
	for (int i = 0; i < HD_MAX_SETS; i++)
		strcat(line, " -s a=1");
	assert_int_equal(parse(&args, &hd_verb_run, line, &diag), HD_OK);
	strcat(line, " -s a=1");
	assert_int_equal(parse(&args, &hd_verb_run, line, &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "more than 64 times --set");
}

static void arguments_have_a_bound(void **state)
{
	char line[HD_MAX_POSITIONALS * 2 + 16] = "x";
	struct hd_diag diag;
	struct hd_args args;

	(void)state;
	for (int i = 0; i < HD_MAX_POSITIONALS; i++)
		strcat(line, " a");
	assert_int_equal(parse(&args, &hd_verb_run, line, &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "more than 250 arguments");
}

static void help_is_given_whatever_the_arguments(void **state)
{
	struct hd_diag diag;
	struct hd_args args;

	(void)state;
	assert_int_equal(parse(&args, &hd_verb_resume, "--help", &diag), HD_OK);
	assert_true(args.has[HD_OPT_HELP]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_stand_anywhere_and_the_last_of_one_counts),
		cmocka_unit_test(what_follows_two_dashes_is_no_option),
		cmocka_unit_test(a_value_is_taken_as_it_is),
		cmocka_unit_test(one_name_means_what_the_verb_takes),
		cmocka_unit_test(what_is_wrong_is_answered_with_what_is_right),
		cmocka_unit_test(settings_have_a_bound),
		cmocka_unit_test(arguments_have_a_bound),
		cmocka_unit_test(help_is_given_whatever_the_arguments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
