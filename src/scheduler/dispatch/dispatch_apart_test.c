/* The live scheduler's machine where policies are asked apart: what happens until they answer, or give up. */
#include "scheduler/dispatch/testing_dispatch.h"

static void what_came_and_went_while_the_policy_was_asked_holds(void **state)
{
	struct hd_dispatch_event shares = { .kind = HD_DISPATCH_IN_SHARES };
	struct hd_dispatch_outs outs;
	struct hd_diag diag = { "" };
	struct world w;

	(void)state;
	begin(&w, "fifo", 1);
	CHECK(hd_dispatch_step(w.d, &shares, 0, &outs, &diag) == HD_E_INVAL,
		"shares that were not asked for");
	submit(&w, 100, 1);
	submit(&w, 100, 1);
	(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_TICK });
	CHECK(hd_dispatch_asks(w.d), "no shares are asked for");
	(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_CANCEL, .job = 1 });
	submit(&w, 100, 1);
	CHECK(w.lease[2].state == HD_LEASE_RELEASED && w.lease[3].state == HD_LEASE_RELEASED,
		"somebody has devices before there are shares");
	hd_dispatch_solve(hd_dispatch_asks(w.d));
	CHECK(!hd_dispatch_asks(w.d) && w.lease[2].state == HD_LEASE_RELEASED, "the solver decides");
	(void)step(&w, &shares);
	CHECK(w.lease[1].state == HD_LEASE_RELEASED && w.row[1].state == HD_DISPATCH_CANCELLED,
		"a job that left got devices");
	CHECK(w.lease[2].state == HD_LEASE_OFFERED, "a job that stayed got none");
	for (int i = 0; i < 400 && w.row[3].state == HD_DISPATCH_OPEN; i++)
		pass(&w, 1);
	CHECK(w.run[3].times_done == 1, "the job that came while the policy was asked was never asked about");
	finish(&w);
}

/* 30 jobs on 6 devices, the first with priority 10. A policy that is stopped gives each the
 * same (sched_policy.h, rule 5); one without memory, nothing. */
static void a_policy_that_is_stopped_or_has_no_memory_decides_nothing(void **state)
{
	static const struct { const char *policy; size_t bytes; bool stop; double share; } rows[] = {
		{ "las", 0, false, 5.0 / 29 }, { "las", 0, true, 0.2 }, { "las", 24000, false, 0 }, { "goodput", 0, true, 0.2 },
		{ "goodput", 0, false, 0 }, { "allox", 0, true, 0.2 }, { "allox", 0, false, 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct hd_dispatch_setting set = { .policy = rows[i].policy, .ntypes = 1, .type = one,
			.began_s = -1, .apart = true,
			.policy_bytes = rows[i].bytes };
		struct hd_dispatch_job job = { .id = 1, .scale = 1, .weight = 10, .deadline_s = INFINITY,
			.steps = 100 };
		struct hd_policy_setting asked;
		struct hd_sched_state seen;
		struct hd_dispatch_outs outs;
		struct hd_dispatch_why why;
		struct hd_dispatch *d = NULL;
		struct hd_arena arena;
		struct hd_diag diag = { "" };
		uint32_t offered = 0, said = 0;
		if (!strcmp(rows[i].policy, "las") && !hd_policy_has_lp())
			continue;
		for (uint32_t t = 0; t < HD_DISPATCH_TYPES; t++)
			job.rate[t] = (struct hd_dispatch_rate){ -1, -1, HD_RATE_GUESSED };
		CHECK(hd_dispatch_create(&d, &set, NULL, &diag) == HD_OK, "row %zu: %s", i, diag.text);
		for (; job.id <= 30; job.id++, job.weight = 1)
			CHECK(!hd_dispatch_step(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SUBMIT,
				.row = &job }, 1, &outs, &diag),
				"row %zu: %s", i, diag.text);
		hd_arena_init(&arena, 0);
		CHECK(!hd_dispatch_snapshot(d, "", 2, &arena, &asked, &seen, &diag) && seen.njobs == 30,
			"row %zu: %u jobs", i, seen.njobs);
		CHECK(seen.jobs[29].age_s >= 0 && seen.jobs[0].age_s <= 2,
			"before the first step jobs are %g s old", seen.jobs[0].age_s);
		hd_arena_finish(&arena);
		CHECK(!hd_dispatch_step(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_TICK }, 2,
			&outs, &diag), "row %zu: %s", i, diag.text);
		CHECK(hd_dispatch_asks(d), "row %zu", i);
		if (rows[i].stop)
			hd_dispatch_stop(hd_dispatch_asks(d));
		hd_dispatch_solve(hd_dispatch_asks(d));
		CHECK(!hd_dispatch_step(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SHARES }, 3,
			&outs, &diag), "row %zu: %s", i, diag.text);
		for (size_t k = 0; k < outs.n; k++)
			said += outs.at[k].kind == HD_DISPATCH_DO_NOTE &&
				strstr(outs.at[k].text, "more memory than there is");
		for (uint64_t id = 1; id <= 30; id++)
			offered += hd_dispatch_lease(d, id) != NULL;
		CHECK(!hd_dispatch_explain(d, 30, &(struct hd_dispatch_ask){ .now_s = 3 }, &why, &diag),
			"row %zu: %s", i, diag.text);
		CHECK(fabs(why.type[0].share - rows[i].share) < 1e-6,
			"row %zu: the last job has %g of a device", i, why.type[0].share);
		CHECK(offered == (rows[i].bytes ? 0 : 6), "row %zu: %u jobs got devices", i, offered);
		CHECK(said == (rows[i].bytes > 0), "row %zu: %u notes of the memory", i, said);
		hd_dispatch_destroy(d);
	}
}

static void a_policy_that_is_given_up_takes_nothing_away_and_is_asked_again(void **state)
{
	struct hd_dispatch_event event = { .kind = HD_DISPATCH_IN_GIVE_UP, .text = "it takes too long" };
	struct hd_dispatch_outs outs;
	struct hd_diag diag = { "" };
	struct world w;

	(void)state;
	begin(&w, "fifo", 2);
	CHECK(hd_dispatch_step(w.d, &event, 0, &outs, &diag) == HD_E_INVAL,
		"a question that was not asked was given up");
	submit(&w, 1000000, 1);
	for (int i = 0; i < 60; i++)
		pass(&w, 1);
	CHECK(w.lease[1].state == HD_LEASE_HELD, "the job has no devices: %d", w.lease[1].state);
	/* the first question of a machine, which has no shares yet, and then one that has */
	crash(&w);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 100 && !hd_dispatch_asks(w.d); i++) {
			if (!i && round)
				submit(&w, 100, 1);
			compute(&w, 1);
			w.now_s += 1;
			look(&w);
			(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_TICK });
			CHECK(w.lease[1].state == HD_LEASE_HELD,
				"round %d, after %d s the job has lost its devices: %d", round, i,
				w.lease[1].state);
		}
		CHECK(hd_dispatch_asks(w.d), "round %d: not asked again", round);
		give_up(&w);
		CHECK(!hd_dispatch_asks(w.d) && w.lease[1].state == HD_LEASE_HELD, "round %d: %d", round,
			w.lease[1].state);
		for (int i = 0; i < 100 && !hd_dispatch_asks(w.d); i++) {
			if (!i && !round)
				submit(&w, 100, 1);
			compute(&w, 1);
			w.now_s += 1;
			look(&w);
			(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_TICK });
			CHECK(w.lease[1].state == HD_LEASE_HELD, "round %d, given up for %d s: %d", round, i,
				w.lease[1].state);
		}
		(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SHARES });
	}
	for (int i = 0; i < 50; i++)
		pass(&w, 1);
	CHECK(w.lease[1].state == HD_LEASE_HELD && w.run[1].times_done == 0, "%d", w.lease[1].state);
	CHECK(w.run[2].times_done == 1 && w.run[3].times_done == 1, "a job that came was never asked about");
	finish(&w);
}

/* A machine made from the store has leases and no shares: a question that takes rounds takes nothing away. */
static void jobs_run_on_while_a_new_scheduler_asks_its_first_question(void **state)
{
	struct world w;

	(void)state;
	begin(&w, "fifo", 2);
	submit(&w, 1000000, 1);
	for (int i = 0; i < 60; i++)
		pass(&w, 1);
	CHECK(w.lease[1].state == HD_LEASE_HELD, "the job has no devices: %d", w.lease[1].state);
	crash(&w);
	for (int i = 0; i < 100; i++) {           /* five rounds without a solver */
		compute(&w, 1);
		w.now_s += 1;
		look(&w);
		(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_TICK });
		CHECK(w.lease[1].state == HD_LEASE_HELD, "after %d s it lost its devices: %d", i,
			w.lease[1].state);
	}
	CHECK(hd_dispatch_asks(w.d), "nothing was asked");
	(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SHARES });
	for (int i = 0; i < 50; i++)
		pass(&w, 1);
	CHECK(w.lease[1].state == HD_LEASE_HELD && w.run[1].times_done == 0,
		"and keeps them with the answer: %d", w.lease[1].state);
	finish(&w);
}

/* Nor does it keep anybody on a device that is out of service: so a scheduler that ends, and drains, does
 * end. */
static void a_device_out_of_service_is_left_while_nobody_answers(void **state)
{
	struct world w;

	(void)state;
	for (int given_up = 0; given_up < 2; given_up++) {
		begin(&w, "fifo", 2);
		submit(&w, 1000000, 1);
		for (int i = 0; i < 60; i++)
			pass(&w, 1);
		CHECK(w.lease[1].state == HD_LEASE_HELD, "the job has no devices: %d", w.lease[1].state);
		crash(&w);
		for (int i = 0; i < 200; i++) {
			compute(&w, 1);
			w.now_s += 1;
			look(&w);
			(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_TICK });
			if (i == 10 && given_up)
				give_up(&w);
			for (uint32_t v = 0; v < DEVICES && i == 50; v++)
				(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE,
					.device = v });
			CHECK(i >= 50 || w.lease[1].state == HD_LEASE_HELD,
				"after %d s it lost its devices: %d", i, w.lease[1].state);
		}
		CHECK(w.lease[1].state == HD_LEASE_RELEASED,
			"it stays on a device that is out of service: %d", w.lease[1].state);
		for (uint32_t v = 0; v < DEVICES; v++)
			(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE,
				.device = v, .ok = true });
		for (int i = 0; i < 100; i++)
			pass(&w, 1);
		CHECK(w.lease[1].state == HD_LEASE_HELD, "it did not go on: %d", w.lease[1].state);
		finish(&w);
	}
}

/* Nor does one whose answer is an error. */
static void an_error_in_place_of_the_first_answer_takes_nothing_away(void **state)
{
	struct world w;

	(void)state;
	begin(&w, "fifo", 2);
	submit(&w, 1000000, 1);
	for (int i = 0; i < 60; i++)
		pass(&w, 1);
	CHECK(w.lease[1].state == HD_LEASE_HELD, "the job has no devices: %d", w.lease[1].state);
	crash(&w);
	for (int errors = 0, i = 0; i < 200; i++) {
		struct hd_dispatch_question *q;
		compute(&w, 1);
		w.now_s += 1;
		look(&w);
		(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_TICK });
		if (errors < 3 && (q = hd_dispatch_asks(w.d))) {
			hd_dispatch_solve(q);
			q->of[0].err = hd_fail(&q->of[0].why, HD_E_BUG, "no answer");
			(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SHARES });
			errors++;
		} else if (hd_dispatch_asks(w.d)) {
			(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SHARES });
		}
		CHECK(w.lease[1].state == HD_LEASE_HELD, "after %d s and %d errors it lost its devices: %d",
			i, errors, w.lease[1].state);
	}
	CHECK(w.run[1].times_done == 0, "it was run again");
	finish(&w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_came_and_went_while_the_policy_was_asked_holds,
			set_apart, set_within),
		cmocka_unit_test_setup_teardown(
			a_policy_that_is_given_up_takes_nothing_away_and_is_asked_again,
			set_apart, set_within),
		cmocka_unit_test(a_policy_that_is_stopped_or_has_no_memory_decides_nothing),
		cmocka_unit_test_setup_teardown(jobs_run_on_while_a_new_scheduler_asks_its_first_question,
			set_apart, set_within),
		cmocka_unit_test_setup_teardown(a_device_out_of_service_is_left_while_nobody_answers,
			set_apart, set_within),
		cmocka_unit_test_setup_teardown(an_error_in_place_of_the_first_answer_takes_nothing_away,
			set_apart, set_within),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
