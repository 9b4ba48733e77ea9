/* Runs without a coordinator: what is said of them, and how long the next one is waited for. Time is
 * simulated, folders are real, since sockets lie in them; answers are control_test.c's and the programs'. */
#include "driver/reach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/ending.h"
#include "tests/check.h"

static struct hd_fs fs;
static struct hd_clock real;
static struct hd_clock_sim clock_;
static struct hd_arena arena;
static char folder[40], run[110], last_wait[300];
static uint32_t nwaits;

static void waits(const char *text)
{
	nwaits++;
	snprintf(last_wait, sizeof last_wait, "%s", text);
}

static const struct hd_reach reach = { &fs, &clock_.clock, &arena, waits };

static int fresh(void **state)
{
	(void)state;
	hd_fs_real(&fs);
	hd_clock_real(&real);
	hd_clock_sim(&clock_, 0, 0);
	hd_arena_init(&arena, 0);
	nwaits = 0;
	snprintf(folder, sizeof folder, "/tmp/hd_reach.XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(run, sizeof run, "%s/run", folder);
	return 0;
}

static int gone(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	return hd_fs_remove_tree(&fs, folder, NULL);
}

/* The code, and what the text must hold. */
static void asks(enum hd_err want, const char *says, const char *and)
{
	const struct hd_json *answer;
	struct hd_diag diag = { "" };
	enum hd_err err = hd_reach_ask(&reach, run, "{\"do\":\"status\"}", &answer, &diag);

	CHECK(err == want && strstr(diag.text, says) && strstr(diag.text, and), "%d: %s", (int)err,
		diag.text);
}

static void what_is_no_run_directory_is_refused(void **state)
{
	(void)state;
	asks(HD_E_NOTFOUND, run, "");
	assert_int_equal(hd_file_write_atomic(&fs, run, "x", 1, NULL), HD_OK);
	asks(HD_E_INPUT, run, "is no run directory");
	assert_int_equal(hd_fs_unlink(&fs, run, NULL), HD_OK);
	assert_int_equal(hd_fs_mkdirs(&fs, run, NULL), HD_OK);
	asks(HD_E_NOTFOUND, "is not a run directory", "job.yaml");
	assert_int_equal(clock_.now_ns, 0);
}

/* each field has a value to print */
static void can_be_written(const struct hd_live *live)
{
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_init(&text, &arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_live_put(live, HD_LIVE_JSON, &w);
	hd_json_close(&w);
	assert_non_null(strstr(text.at, "\"saving\":\"given\",\"best\":\"none\""));
}

static void a_run_that_none_holds_is_not_waited_for(void **state)
{
	struct hd_rundir dir;
	struct hd_live live;
	struct hd_diag diag = { "" };

	(void)state;
	assert_int_equal(hd_rundir_create(&dir, &fs, &real, "", run, "n", "{}", 2, NULL), HD_OK);
	hd_ending_begins(&dir, 0, 20);
	hd_rundir_close(&dir);
	asks(HD_E_NOTFOUND, "it has ended", "heddle resume");
	assert_int_equal(clock_.now_ns, 0);
	assert_int_equal(hd_reach_alone(&reach, run), 0);
	CHECK(hd_reach_look(&reach, run, &live, &diag) == HD_OK, "%s", diag.text);
	CHECK(!live.goes_on && !live.alone && !live.away && live.steps == 20 && !strcmp(live.state, "died"),
		"state %s", live.state);
	can_be_written(&live);
}

static void a_run_in_one_process_is_named_with_it(void **state)
{
	static const struct { enum hd_hold as; const char *state; } cases[] = {
		{ HD_HOLD_ALONE, "running" }, { HD_HOLD_EVALUATES, "evaluating" },
	};
	struct hd_rundir dir;

	(void)state;
	assert_int_equal(hd_rundir_create(&dir, &fs, &real, "", run, "n", "{}", 2, NULL), HD_OK);
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct hd_live live;
		struct hd_diag diag = { "" };
		hd_rundir_hold_as(&dir, cases[k].as);
		asks(HD_E_NOTFOUND, "started without --workers", "one process");
		assert_int_equal(hd_reach_alone(&reach, run), getpid());
		CHECK(hd_reach_look(&reach, run, &live, &diag) == HD_OK, "%s", diag.text);
		CHECK(live.goes_on && live.alone == getpid() && live.exit == -1 &&
			!strcmp(live.state, cases[k].state) && strstr(live.why, "without workers"),
			"case %zu: %s, %s", k, live.state, live.why);
	}
	assert_int_equal(clock_.now_ns, 0);
	hd_rundir_close(&dir);
}

/* Rule 1: said from 5 s on, each 5 s, up to a minute. */
static void a_coordinator_to_come_is_waited_for_a_minute(void **state)
{
	static const struct { enum hd_hold as; const char *says; } cases[] = {
		{ HD_HOLD_BEGINS, "one is starting" }, { HD_HOLD_COORDINATES, "the last one is ending" },
	};
	struct hd_rundir dir;

	(void)state;
	assert_int_equal(hd_rundir_create(&dir, &fs, &real, "", run, "n", "{}", 2, NULL), HD_OK);
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		int64_t began = clock_.now_ns;
		hd_rundir_hold_as(&dir, cases[k].as);
		nwaits = 0;
		asks(HD_E_PEERLOST, "no coordinator of", "for 60 s");
		CHECK(nwaits >= 9 && nwaits <= 11 && strstr(last_wait, cases[k].says), "%u times: %s", nwaits,
			last_wait);
		CHECK(clock_.now_ns - began >= 60 * HD_NS_PER_S && clock_.now_ns - began < 62 * HD_NS_PER_S,
			"%lld ns", (long long)(clock_.now_ns - began));
		assert_int_equal(hd_reach_alone(&reach, run), 0);
	}
	hd_rundir_close(&dir);
}

static void one_miss_is_no_error_two_in_a_row_are(void **state)
{
	static const struct { enum hd_err err; bool missed; } cases[] = {
		{ HD_E_PEERLOST, true }, { HD_E_PEERLOST, false }, { HD_E_PEERLOST, false }, { HD_OK, false },
		{ HD_E_PEERLOST, true }, { HD_E_NOTFOUND, false }, { HD_E_PEERLOST, true },
	};
	struct hd_reach_misses misses = { 0 };

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		CHECK(hd_reach_missed(&misses, cases[k].err) == cases[k].missed, "question %zu", k);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, gone)
	static const struct CMUnitTest tests[] = {
		TEST(what_is_no_run_directory_is_refused),
		TEST(a_run_that_none_holds_is_not_waited_for),
		TEST(a_run_in_one_process_is_named_with_it),
		TEST(a_coordinator_to_come_is_waited_for_a_minute),
		TEST(one_miss_is_no_error_two_in_a_row_are),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
