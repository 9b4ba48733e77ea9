/* A Slurm that answers from a script, on a clock that the test sets. */
#include "launch/slurm_jobs.h"

#include <stdio.h>
#include <string.h>

#include "tests/check.h"

#define S INT64_C(1000000000)

static struct hd_slurm_jobs jobs;
static struct hd_slurm_next next;
static char said[1000];
static struct hd_arena arena;

static void tell(void *user, const struct hd_batch_job *job, const char *text)
{
	(void)user;
	(void)job;
	snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", text);
}

static enum hd_slurm_ask ask(int64_t now_ns)
{
	hd_slurm_jobs_next(&jobs, now_ns, &next);
	return next.ask;
}

static enum hd_err look(int64_t now_ns, const char *text)
{
	struct hd_slurm_lines lines;

	said[0] = '\0';
	hd_arena_reset(&arena);
	const enum hd_err err = hd_slurm_lines_parse(text, strlen(text), &arena, &lines, NULL);
	hd_slurm_jobs_looked(&jobs, &lines, !err, now_ns, tell, NULL);
	return err;
}

static int begin(void **state)
{
	(void)state;
	hd_slurm_jobs_init(&jobs);
	return 0;
}

static int end(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	return 0;
}

static void begun(uint32_t n, int64_t now_ns)
{
	hd_slurm_jobs_want(&jobs, n, now_ns);
	assert_int_equal(ask(now_ns), HD_SLURM_SUBMIT);
	assert_int_equal(next.n, n);
	hd_slurm_jobs_submitted(&jobs, "7", n, now_ns);
}

static void what_is_wanted_is_submitted_once_and_looked_at_ever_more_seldom(void **state)
{
	int64_t now = S, before = 0;

	(void)state;
	assert_int_equal(ask(0), HD_SLURM_NOTHING);
	begun(2, now);
	assert_int_equal(ask(now), HD_SLURM_NOTHING);
	for (int i = 0; i < 9; i++) {
		assert_int_equal(next.ask, HD_SLURM_NOTHING);
		CHECK(next.at_ns - now >= before && next.at_ns - now <= HD_SLURM_RARE_NS, "look %d", i);
		before = next.at_ns - now;
		now = next.at_ns;
		assert_int_equal(ask(now), HD_SLURM_LOOK);
		assert_int_equal(look(now, "7_0|PENDING|0|0||Priority|\n7_1|PENDING|0|0||Priority|\n"),
			HD_OK);
		assert_int_equal(ask(now), HD_SLURM_NOTHING);
	}
	assert_int_equal(before, HD_SLURM_RARE_NS);
	assert_int_equal(look(now, "7_0|RUNNING|0|0|k1|None|\n7_1|PENDING|0|0||Priority|\n"), HD_OK);
	assert_non_null(strstr(said, "Slurm job 7_0 runs on k1, after "));
	assert_int_equal(ask(now), HD_SLURM_NOTHING);
	assert_int_equal(next.at_ns, now + HD_SLURM_SOON_NS);     /* something changed */
}

static void of_too_many_the_newest_that_wait_are_taken_back(void **state)
{
	(void)state;
	begun(4, S);
	assert_int_equal(look(2 * S, "7_0|RUNNING|0|0|k1|None|\n7_1|PENDING|0|0||R|\n7_2|PENDING|0|0||R|\n"
		"7_3|RUNNING|0|0|k2|None|\n"), HD_OK);
	hd_slurm_jobs_want(&jobs, 3, 2 * S);
	assert_int_equal(ask(2 * S), HD_SLURM_TAKE_BACK);
	assert_int_equal(next.n, 1);
	assert_string_equal(next.id[0], "7_2");
	hd_slurm_jobs_taken_back(&jobs, &next, 2 * S);
	assert_int_equal(ask(2 * S), HD_SLURM_NOTHING);
	hd_slurm_jobs_want(&jobs, 1, 2 * S);
	assert_int_equal(ask(2 * S), HD_SLURM_TAKE_BACK);
	assert_int_equal(next.n, 1);              /* 7_1; of the two that run a worker's release decides */
	hd_slurm_jobs_taken_back(&jobs, &next, 2 * S);
	assert_int_equal(ask(2 * S), HD_SLURM_NOTHING);
	assert_int_equal(look(3 * S,
		"7_0|RUNNING|0|0|k1|None|\n7_1|CANCELLED|0|0||None|\n7_2|CANCELLED|0|0||None|\n"
		"7_3|COMPLETED|0|0|k2|None|\n"), HD_OK);
	assert_string_equal(said, "");            /* all that was asked for */
	hd_slurm_jobs_want(&jobs, 2, 3 * S);
	assert_int_equal(ask(3 * S), HD_SLURM_SUBMIT);
	assert_int_equal(next.n, 1);
}

static void a_job_that_slurm_queues_again_keeps_its_seat(void **state)
{
	struct hd_launcher_end end;

	(void)state;
	begun(1, S);
	assert_int_equal(look(2 * S, "7_0|RUNNING|0|0|k1|None|\n"), HD_OK);
	assert_int_equal(look(3 * S, "7_0|PENDING|0|1||BeginTime|\n"), HD_OK);
	assert_string_equal(said, "Slurm job 7_0 was taken from its node and is in the queue again: "
		"BeginTime\n");
	assert_false(hd_slurm_jobs_ended(&jobs, &end, 3 * S));
	assert_int_equal(ask(3 * S), HD_SLURM_NOTHING);
	assert_int_equal(look(200 * S, "7_0|RUNNING|0|1|k2|None|\n"), HD_OK);
	assert_string_equal(said, "Slurm job 7_0 runs on k2, after 197.0 s in the queue\n");
}

static void failures_wait_longer_each_time_and_are_counted(void **state)
{
	struct hd_launcher_end end;
	int64_t now = S, pause = HD_SLURM_AGAIN_NS;
	char line[100];

	(void)state;
	hd_slurm_jobs_want(&jobs, 1, now);
	for (uint32_t i = 0; i < 7; i++) {
		char id[HD_SLURM_ID];
		assert_int_equal(ask(now), HD_SLURM_SUBMIT);
		snprintf(id, sizeof id, "%u", 10 + i);
		hd_slurm_jobs_submitted(&jobs, id, 1, now);
		snprintf(line, sizeof line, "%u_0|FAILED|768|0|k1|NonZeroExitCode|\n", 10 + i);
		assert_int_equal(look(now, line), HD_OK);
		assert_true(hd_slurm_jobs_ended(&jobs, &end, now));
		assert_int_equal(end.code, 3);
		assert_int_equal(end.alike, i + 1);
		snprintf(line, sizeof line, "log/slurm-%u_0.log", 10 + i);
		assert_string_equal(end.log, line);
		assert_false(hd_slurm_jobs_ended(&jobs, &end, now));
		jobs.look_ns = INT64_MAX;
		assert_int_equal(ask(now + pause - 1), HD_SLURM_NOTHING);
		assert_int_equal(next.at_ns, now + pause);
		now += pause;
		pause *= 2;
	}
	/* one that left as it was asked to is no failure, and ends the row */
	assert_int_equal(ask(now), HD_SLURM_SUBMIT);
	hd_slurm_jobs_submitted(&jobs, "30", 1, now);
	assert_int_equal(look(now, "30_0|FAILED|19200|0|k1|NonZeroExitCode|\n"), HD_OK);
	assert_string_equal(said, "");
	assert_true(hd_slurm_jobs_ended(&jobs, &end, now));
	assert_int_equal(end.alike, 0);
	jobs.look_ns = INT64_MAX;
	assert_int_equal(ask(now), HD_SLURM_SUBMIT);
	hd_slurm_jobs_submitted(&jobs, "31", 1, now);
	assert_int_equal(look(now, "31_0|FAILED|768|0|k1|NonZeroExitCode|\n"), HD_OK);
	assert_true(hd_slurm_jobs_ended(&jobs, &end, now));
	assert_int_equal(end.alike, 1);
	jobs.look_ns = INT64_MAX;
	assert_int_equal(ask(now + HD_SLURM_AGAIN_NS), HD_SLURM_SUBMIT);
}

static void jobs_that_slurm_forgot_are_over_and_lost_answers_are_made_up_for(void **state)
{
	struct hd_launcher_end end;

	(void)state;
	/* sbatch made the jobs, and its answer was lost */
	hd_slurm_jobs_want(&jobs, 2, S);
	assert_int_equal(ask(S), HD_SLURM_SUBMIT);
	assert_true(hd_slurm_jobs_failed(&jobs, HD_SLURM_SUBMIT, S));
	assert_int_equal(ask(S), HD_SLURM_NOTHING);
	assert_int_equal(ask(next.at_ns), HD_SLURM_LOOK);          /* before another is submitted */
	assert_int_equal(look(3 * S, "9_0|PENDING|0|0||None|\n9_1|RUNNING|0|0|k1|None|\n"), HD_OK);
	assert_int_equal(ask(3 * S), HD_SLURM_NOTHING);
	/* a line that is not understood: nothing is missed */
	assert_int_equal(look(4 * S, "9_0|PENDING|0|0||None|\nslurm says hello\n"), HD_E_INPUT);
	assert_int_equal(hd_slurm_jobs_seats(&jobs, HD_SLURM_RUNS), 1);
	assert_int_equal(look(5 * S, "9_0|PENDING|0|0||None|\n"), HD_OK);
	assert_true(hd_slurm_jobs_ended(&jobs, &end, 5 * S));
	assert_string_equal(end.name, "Slurm job 9_1");
	assert_int_equal(hd_slurm_jobs_left(&jobs), 1);
	jobs.look_ns = INT64_MAX;
	assert_int_equal(ask(5 * S), HD_SLURM_SUBMIT);
	assert_int_equal(next.n, 1);
}

static void a_controller_that_is_silent_is_asked_ever_more_seldom_and_named_once(void **state)
{
	int64_t now = 2 * S;

	(void)state;
	begun(1, S);
	assert_int_equal(look(now, "7_0|RUNNING|0|0|k1|None|\n"), HD_OK);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(ask(now), HD_SLURM_NOTHING);
		now = next.at_ns;
		assert_int_equal(ask(now), HD_SLURM_LOOK);
		assert_int_equal(hd_slurm_jobs_failed(&jobs, HD_SLURM_LOOK, now), i == 0);
	}
	assert_int_equal(ask(now), HD_SLURM_NOTHING);
	assert_int_equal(next.at_ns - now, HD_SLURM_RARE_NS);
	assert_int_equal(hd_slurm_jobs_seats(&jobs, HD_SLURM_RUNS), 1);
	assert_int_equal(look(now, "7_0|RUNNING|0|0|k1|None|\n"), HD_OK);
	assert_true(hd_slurm_jobs_failed(&jobs, HD_SLURM_LOOK, now));
}

static void a_user_hears_why_nodes_wait(void **state)
{
	char text[HD_LAUNCHER_WHY + 64];

	(void)state;
	begun(3, S);
	assert_int_equal(look(2 * S,
		"7_0|RUNNING|0|0|k1|None|\n7_1|PENDING|0|0||Resources|\n7_2|PENDING|0|0||Priority|\n"),
		HD_OK);
	assert_false(hd_slurm_jobs_waits(&jobs, 5 * S, text));
	assert_true(hd_slurm_jobs_waits(&jobs, 6 * S, text));
	assert_string_equal(text, "2 of 3 nodes wait in Slurm's queue: Resources (1), Priority (1)");
	assert_false(hd_slurm_jobs_waits(&jobs, 30 * S, text));    /* nothing new */
	assert_int_equal(look(31 * S,
		"7_0|RUNNING|0|0|k1|None|\n7_1|PENDING|0|0||Priority|\n7_2|PENDING|0|0||Priority|\n"),
		HD_OK);
	assert_true(hd_slurm_jobs_waits(&jobs, 31 * S, text));
	assert_string_equal(text, "2 of 3 nodes wait in Slurm's queue: Priority (2)");
}

static void a_full_table_submits_no_more(void **state)
{
	(void)state;
	begun(200, S);
	hd_slurm_jobs_want(&jobs, 400, S);
	assert_int_equal(ask(S), HD_SLURM_SUBMIT);
	assert_int_equal(next.n, HD_SLURM_JOBS - 200);
	hd_slurm_jobs_submitted(&jobs, "8", next.n, S);
	assert_int_equal(ask(S), HD_SLURM_NOTHING);
}

/* A controller that does not answer says nothing of what there is: nothing is submitted twice for it. */
static void jobs_of_an_earlier_process_are_found_before_any_is_submitted(void **state)
{
	(void)state;
	hd_slurm_jobs_find(&jobs);
	hd_slurm_jobs_want(&jobs, 3, S);
	assert_int_equal(ask(S), HD_SLURM_LOOK);
	assert_true(hd_slurm_jobs_failed(&jobs, HD_SLURM_LOOK, S));
	assert_int_equal(ask(S + 1), HD_SLURM_NOTHING);
	assert_int_equal(ask(next.at_ns), HD_SLURM_LOOK);
	assert_int_equal(look(3 * S, "7_0|RUNNING|0|0|k1|None|\n7_1|PENDING|0|0||Priority|\n"
		"6_0|FAILED|256|0|k2|None|\n"), HD_OK);
	assert_null(strstr(said, "6_0"));         /* over before it was seen */
	assert_int_equal(ask(3 * S), HD_SLURM_SUBMIT);
	assert_int_equal(next.n, 1);
	struct hd_launcher_end end;
	assert_false(hd_slurm_jobs_ended(&jobs, &end, 3 * S));
}

/* Before it is said how many are wanted, what waits keeps its place in the queue. */
static void what_was_found_is_not_taken_back_before_a_number_is_said(void **state)
{
	(void)state;
	hd_slurm_jobs_find(&jobs);
	assert_int_equal(ask(S), HD_SLURM_LOOK);
	assert_int_equal(look(S, "7_0|PENDING|0|0||Priority|\n"), HD_OK);
	assert_int_equal(ask(S), HD_SLURM_NOTHING);
	assert_int_equal(ask(next.at_ns), HD_SLURM_LOOK);
	assert_int_equal(look(3 * S, "7_0|PENDING|0|0||Priority|\n"), HD_OK);
	assert_int_equal(ask(3 * S), HD_SLURM_NOTHING);
	hd_slurm_jobs_want(&jobs, 0, 3 * S);
	assert_int_equal(ask(3 * S), HD_SLURM_TAKE_BACK);
	assert_int_equal(next.n, 1);
}

/* What was taken back as it began runs on, and is ended. */
static void an_end_takes_back_those_that_run_too(void **state)
{
	char at[128];

	(void)state;
	begun(3, S);
	assert_int_equal(look(2 * S, "7_0|RUNNING|0|0|k1|None|\n7_1|PENDING|0|0||R|\n7_2|PENDING|0|0||R|\n"),
		HD_OK);
	hd_slurm_jobs_at(&jobs, at, sizeof at);
	assert_string_equal(at, "Slurm job 7_0 on k1");
	hd_slurm_jobs_want(&jobs, 2, 2 * S);
	assert_int_equal(ask(2 * S), HD_SLURM_TAKE_BACK);
	hd_slurm_jobs_taken_back(&jobs, &next, 2 * S);
	assert_int_equal(look(3 * S, "7_0|RUNNING|0|0|k1|None|\n7_1|PENDING|0|0||R|\n"
		"7_2|RUNNING|0|0|k2|None|\n"), HD_OK);
	hd_slurm_jobs_end(&jobs, 3 * S);
	assert_int_equal(ask(3 * S), HD_SLURM_TAKE_BACK);
	assert_int_equal(next.n, 3);
	hd_slurm_jobs_taken_back(&jobs, &next, 3 * S);
	assert_int_equal(hd_slurm_jobs_left(&jobs), 3);
	assert_int_equal(ask(3 * S), HD_SLURM_NOTHING);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_is_wanted_is_submitted_once_and_looked_at_ever_more_seldom,
			begin),
		cmocka_unit_test_setup(of_too_many_the_newest_that_wait_are_taken_back, begin),
		cmocka_unit_test_setup(a_job_that_slurm_queues_again_keeps_its_seat, begin),
		cmocka_unit_test_setup(failures_wait_longer_each_time_and_are_counted, begin),
		cmocka_unit_test_setup(jobs_that_slurm_forgot_are_over_and_lost_answers_are_made_up_for,
			begin),
		cmocka_unit_test_setup(a_controller_that_is_silent_is_asked_ever_more_seldom_and_named_once,
			begin),
		cmocka_unit_test_setup(a_user_hears_why_nodes_wait, begin),
		cmocka_unit_test_setup(a_full_table_submits_no_more, begin),
		cmocka_unit_test_setup(an_end_takes_back_those_that_run_too, begin),
		cmocka_unit_test_setup(jobs_of_an_earlier_process_are_found_before_any_is_submitted, begin),
		cmocka_unit_test_setup(what_was_found_is_not_taken_back_before_a_number_is_said, begin),
	};
	return cmocka_run_group_tests(tests, NULL, end);
}
