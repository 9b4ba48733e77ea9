/* The live scheduler's machine: jobs that are held, run after others, are tasks, or have a limit. */
#include "scheduler/dispatch/testing_dispatch.h"

static void repeat(struct world *w)
{
	struct hd_text again;
	struct hd_diag diag = { "" };

	hd_text_init(&again, &w->arena);
	CHECK(!hd_dispatch_replay("log", w->log.at, w->log.len, &w->arena, &again, &diag), "%s", diag.text);
	CHECK(again.len == w->log.len && !memcmp(again.at, w->log.at, w->log.len), "%zu bytes, then %zu",
		w->log.len, again.len);
}

static const char *code_of(struct world *w, uint64_t id)
{
	static struct hd_dispatch_why why;
	struct hd_diag diag = { "" };

	CHECK(!hd_dispatch_explain(w->d, id, &(struct hd_dispatch_ask){ .now_s = w->now_s }, &why, &diag),
		"%s", diag.text);
	return why.code;
}

static void a_held_job_leaves_its_devices_and_goes_on_when_it_is_released(void **state)
{
	struct world w;
	(void)state;

	begin(&w, "fifo", 1);
	submit_on(&w, 200, 1, &(struct hd_job_terms){ .held = true }, 0);
	submit(&w, 400, 3);
	for (int i = 0; i < 8; i++)
		pass(&w, 0.5);
	CHECK(w.lease[1].state == HD_LEASE_RELEASED && w.lease[2].state == HD_LEASE_HELD, "job 1 is %s",
		hd_lease_name(w.lease[1].state));
	assert_string_equal(code_of(&w, 1), "HELD");
	double at = w.run[2].steps;
	CHECK(hold(&w, 2, true) && at > 0, "at step %g", at);
	for (int i = 0; i < 8; i++)
		pass(&w, 0.5);
	CHECK(w.lease[2].state == HD_LEASE_RELEASED && w.row[2].state == HD_DISPATCH_OPEN &&
		w.row[2].exit == 75 &&
		w.run[2].steps >= at && !w.row[2].failures, "job 2 is %s", hd_lease_name(w.lease[2].state));
	(void)hold(&w, 1, false);
	for (int i = 0; i < 40; i++)
		pass(&w, 0.5);
	CHECK(w.row[1].started_s > 0 && w.lease[2].state == HD_LEASE_RELEASED, "job 2 runs while it is held");
	(void)hold(&w, 2, false);
	run_out(&w);
	check_done(&w);
	CHECK(w.row[1].state == HD_DISPATCH_DONE && w.row[2].state == HD_DISPATCH_DONE, "job 2: %s",
		w.row[2].why);
	repeat(&w);
	finish(&w);
}

/* Slurm's kill_invalid_depend, always: a job that can never run does not stay. */
static void a_job_runs_after_others_or_is_cancelled_with_the_reason(void **state)
{
	struct world w;
	struct hd_job_terms t = { .nafter = 1 };
	(void)state;

	begin(&w, "fifo", 1);
	submit(&w, 60, 1);
	for (int k = 0; k < HD_AFTER_NKINDS; k++) {      /* jobs 2, 3, 4: ok, fail, any */
		t.after[0] = (struct hd_after){ .job = 1, .kind = (enum hd_after_kind)k };
		submit_on(&w, 60, 1, &t, 0);
	}
	t.after[0] = (struct hd_after){ .job = 3, .kind = HD_AFTER_OK };        /* 5:
		after one that is cancelled */
	submit_on(&w, 60, 1, &t, 0);
	pass(&w, 0.5);
	assert_string_equal(code_of(&w, 2), "DEPENDS");
	run_out(&w);
	check_done(&w);
	CHECK(w.row[2].state == HD_DISPATCH_DONE && w.row[4].state == HD_DISPATCH_DONE, "job 4: %s",
		w.row[4].why);
	assert_int_equal(w.row[3].state, HD_DISPATCH_CANCELLED);
	assert_string_equal(w.row[3].why, "it was to run after 1:fail, and job 1 ended otherwise");
	assert_string_equal(w.row[5].why, "it was to run after 3:ok, and job 3 ended otherwise");
	CHECK(w.row[2].started_s >= w.row[1].ended_s, "it began before");
	repeat(&w);
	finish(&w);
}

static void a_job_after_none_that_is_there_is_refused(void **state)
{
	struct hd_dispatch_job row = { .id = 2, .scale = 1, .weight = 1, .deadline_s = INFINITY, .steps = 10,
		.terms = { .nafter = 1 } };
	static const uint64_t of[] = { 0, 2, 7, 1 };
	struct hd_dispatch_outs outs;
	struct world w;
	(void)state;

	begin(&w, "fifo", 1);
	submit(&w, 60, 1);
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		row.terms.after[0].job = of[i];
		enum hd_err err = hd_dispatch_step(w.d, &(struct hd_dispatch_event){
			.kind = HD_DISPATCH_IN_SUBMIT, .row = &row }, w.now_s, &outs, NULL);
		CHECK(err == (of[i] == 1 ? HD_OK : HD_E_INVAL), "after job %llu: %d",
			(unsigned long long)of[i], err);
	}
	row.id = 3;
	row.terms.nafter = 0;
	row.terms.limit_s = NAN;
	assert_int_equal(hd_dispatch_step(w.d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SUBMIT,
		.row = &row },
		w.now_s, &outs, NULL), HD_E_INVAL);
	finish(&w);
}

static void tasks_of_an_array_take_turns(void **state)
{
	uint32_t most = 0;
	struct world w;
	(void)state;

	begin(&w, "isolated", 1);
	submit_on(&w, 60, 1, &(struct hd_job_terms){ .at_once = 2 }, 9);
	pass(&w, 0.5);
	pass(&w, 0.5);
	assert_string_equal(code_of(&w, 3), "ARRAY_FULL");
	for (int i = 0; i < 400 && !is_over(&w); i++) {
		uint32_t n = 0;
		pass(&w, 0.5);
		for (uint64_t id = 1; id <= 9; id++)
			n += workers_of(&w, id) > 0;
		most = n > most ? n : most;
	}
	CHECK(is_over(&w) && most == 2, "%u at once", most);
	for (uint64_t id = 2; id <= 9; id++)
		CHECK(w.row[id].started_s >= w.row[id - 1].started_s && w.row[id].terms.index == id - 1,
			"task %llu begins before the one before it", (unsigned long long)id);
	repeat(&w);
	finish(&w);
}

static void one_job_runs_after_all_tasks_of_an_array(void **state)
{
	(void)state;

	for (int k = 0; k < HD_AFTER_NKINDS; k++)
		for (uint64_t failing = 0; failing < 4; failing++) {
			struct world w;
			struct hd_job_terms t = { .nafter = 1, .after = { { .job = 2, .kind =
				(enum hd_after_kind)k } } };
			begin(&w, "fifo", 1);
			submit(&w, 20, 1);
			submit_on(&w, 60, 1, &(struct hd_job_terms){ 0 }, 3);
			submit_on(&w, 20, 1, &t, 0);
			t.after[0].job = 3;               /* one task alone */
			submit_on(&w, 20, 1, &t, 0);
			if (failing)
				(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_CANCEL,
					.job = 1 + failing });
			run_out(&w);
			bool met = k == HD_AFTER_ANY || (k == HD_AFTER_OK) == !failing,
				single = k == HD_AFTER_ANY || (k == HD_AFTER_OK) == (failing != 2);
			CHECK(w.row[5].state == (met ? HD_DISPATCH_DONE : HD_DISPATCH_CANCELLED),
				"kind %d, task %llu fails: job 5 is %s", k, (unsigned long long)failing,
				hd_dispatch_state_name(w.row[5].state));
			CHECK(w.row[6].state == (single ? HD_DISPATCH_DONE : HD_DISPATCH_CANCELLED),
				"job 6 is %s",
				hd_dispatch_state_name(w.row[6].state));
			repeat(&w);
			finish(&w);
		}
}

/* A task's rows come together: one that is refused takes all of them along. */
static void an_array_is_taken_whole_or_not(void **state)
{
	struct hd_dispatch_job row[3] = { { .id = 1, .scale = 1, .weight = 1, .deadline_s = INFINITY,
		.steps = 10 } };
	struct hd_dispatch_outs outs;
	struct world w;
	(void)state;

	begin(&w, "fifo", 1);
	row[1] = row[2] = row[0];
	row[1].id = 2;
	row[2].id = 3;
	row[2].weight = -1;
	const struct hd_dispatch_event e = { .kind = HD_DISPATCH_IN_SUBMIT, .row = row, .n = 3 };
	assert_int_equal(hd_dispatch_step(w.d, &e, 0, &outs, NULL), HD_E_INVAL);
	assert_int_equal(hd_dispatch_njobs(w.d), 0);
	row[2].weight = 1;
	assert_int_equal(hd_dispatch_step(w.d, &e, 0, &outs, NULL), HD_OK);
	assert_int_equal(hd_dispatch_njobs(w.d), 3);
	finish(&w);
}

static uint32_t count(const struct world *w, const char *text)
{
	uint32_t n = 0;

	for (const char *at = w->log.at; (at = strstr(at, text)); at++)
		n++;
	return n;
}

/* Moved, preempted, restarted: running time alone counts. */
static void a_job_at_its_limit_commits_and_ends(void **state)
{
	struct world w;
	(void)state;

	for (int stubborn = 0; stubborn < 2; stubborn++) {
		begin(&w, "fifo", 1);
		submit_on(&w, 100000, 1, &(struct hd_job_terms){ .limit_s = 40 }, 0);
		w.stubborn[1] = stubborn;
		for (int i = 0; i < 20; i++)
			pass(&w, 0.5);
		(void)hold(&w, 1, true);
		for (int i = 0; i < 60; i++)
			pass(&w, 0.5);
		(void)hold(&w, 1, false);
		crash(&w);
		for (int i = 0; i < 300 && w.row[1].state == HD_DISPATCH_OPEN; i++)
			pass(&w, 0.5);
		pass(&w, 0.5);
		CHECK(w.row[1].state == HD_DISPATCH_TIMEOUT && is_over(&w), "job 1 is %s: %s",
			hd_dispatch_state_name(w.row[1].state), w.row[1].why);
		CHECK(w.ran_s[1] >= 39 && w.ran_s[1] <= 40 + (stubborn ? 32 : 3) && w.now_s > 60,
			"it ran for %g s until %g s", w.ran_s[1], w.now_s);
		CHECK(fabs(w.row[1].ran_s - w.ran_s[1]) < 3, "%g s are counted, it ran for %g s",
			w.row[1].ran_s, w.ran_s[1]);
		CHECK(count(&w, "of running time are left of 40 s") == 1, "it is warned %u times",
			count(&w, "of running time are left of 40 s"));
		CHECK(strstr(w.row[1].why, "its time limit of 40 s was used up"), "%s", w.row[1].why);
		repeat(&w);
		finish(&w);
	}
}

/* It is done between two looks: its time is that of its lease. */
static void a_job_that_ends_unseen_took_its_time(void **state)
{
	struct world w;
	(void)state;

	begin(&w, "fifo", 1);
	submit(&w, 1, 1);
	run_out(&w);
	check_done(&w);
	CHECK(w.row[1].ran_s > 0 && w.row[1].ran_s <= w.now_s && w.row[1].from_s < 0, "%g s of %g s",
		w.row[1].ran_s, w.now_s);
	repeat(&w);
	finish(&w);
}

/* With sjf, which goes by the time that is left: the longer job came first. */
static void what_is_expected_of_a_job_orders_it(void **state)
{
	(void)state;

	for (int expected = 0; expected < 2; expected++) {
		struct world w;
		begin(&w, "sjf", 1);
		submit(&w, 300, 3);
		pass(&w, 0.5);
		submit_on(&w, 4000, 3, &(struct hd_job_terms){ .expect_s = expected ? 4000 : 0 }, 0);
		submit_on(&w, 4000, 3, &(struct hd_job_terms){ .expect_s = expected ? 20 : 0 }, 0);
		const struct hd_dispatch_job *row = hd_dispatch_job(w.d, 3);
		CHECK(row->rate[0].steps_s == (expected ? 200 : 6) && row->rate[1].steps_s == (expected ?
			100 : 3) &&
			row->rate[0].from == HD_RATE_GUESSED, "%g and %g steps/s", row->rate[0].steps_s,
			row->rate[1].steps_s);
		for (int i = 0; i < 400 && w.row[2].started_s < 0 && w.row[3].started_s < 0; i++)
			pass(&w, 0.5);
		bool third = w.row[3].started_s >= 0 && (w.row[2].started_s < 0 ||
			w.row[3].started_s < w.row[2].started_s);
		CHECK(third == expected, "expected %d: job 2 at %g s, job 3 at %g s", expected,
			w.row[2].started_s,
			w.row[3].started_s);
		finish(&w);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_held_job_leaves_its_devices_and_goes_on_when_it_is_released),
		cmocka_unit_test(a_job_runs_after_others_or_is_cancelled_with_the_reason),
		cmocka_unit_test(a_job_after_none_that_is_there_is_refused),
		cmocka_unit_test(tasks_of_an_array_take_turns),
		cmocka_unit_test(one_job_runs_after_all_tasks_of_an_array),
		cmocka_unit_test(an_array_is_taken_whole_or_not),
		cmocka_unit_test(a_job_at_its_limit_commits_and_ends),
		cmocka_unit_test(a_job_that_ends_unseen_took_its_time),
		cmocka_unit_test(what_is_expected_of_a_job_orders_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
