/* The live scheduler's machine: whole lives of jobs, crashes at every record, logs, runs that end badly. */
#include "scheduler/dispatch/testing_dispatch.h"

static void jobs_are_started_run_and_end(void **state)
{
	static const char *const policies[] = { "fifo", "isolated", "las", "makespan", "sjf", "wfs" };
	(void)state;

	for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
		struct world w;
		if (p > 1 && p < 4 && !hd_policy_has_lp())
			continue;
		begin(&w, policies[p], 1);
		for (int i = 0; i < 9; i++)
			submit(&w, 100 + 20 * (uint64_t)i, 1 + (uint32_t)i % 3);
		run_out(&w);
		check_done(&w);
		for (uint64_t id = 1; id <= w.njobs; id++)
			CHECK(w.row[id].state == HD_DISPATCH_DONE, "%s: job %llu: %s", policies[p],
				(unsigned long long)id, w.row[id].why);
		finish(&w);
	}
}

/* The whole history of a small cluster, once for each point at which the machine can be dropped. */
static int story(struct world *w, int crash_at)
{
	begin(w, hd_policy_has_lp() ? "las" : "isolated", 7);
	w->crash_at = crash_at;
	submit(w, 120, 1);
	submit(w, 150, 2);
	pass(w, 1);
	submit(w, 90, 3);
	for (int i = 0; i < 3; i++)
		submit(w, 60, 1);
	for (int i = 0; i < 12; i++)
		pass(w, 0.5);
	w->device_out[0] = true;
	(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE, .device = 0 });
	submit(w, 40, 2);
	pass(w, 1);
	if (hd_dispatch_job(w->d, 2) && !w->row[2].cancel && w->row[2].state == HD_DISPATCH_OPEN) {
		while (!step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_CANCEL, .job = 2 }) &&
			!w->row[2].cancel)
			;
	}
	pass(w, 1);
	w->device_out[0] = false;
	(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE, .device = 0, .ok = true });
	run_out(w);
	check_done(w);
	return w->point;
}

static void a_death_at_any_record_or_order_loses_no_job_and_runs_none_twice(void **state)
{
	struct world w;
	(void)state;

	int points = story(&w, -1);
	finish(&w);
	CHECK(points > 60, "only %d points", points);
	for (int k = 0; k < points; k++) {
		(void)story(&w, k);
		CHECK(w.crashes == 1, "point %d was not reached", k);
		for (uint64_t id = 1; id <= w.njobs; id++)
			CHECK(w.row[id].state == (id == 2 ? HD_DISPATCH_CANCELLED : HD_DISPATCH_DONE),
				"death at %d: job %llu is %s: %s", k,
				(unsigned long long)id, hd_dispatch_state_name(w.row[id].state),
				w.row[id].why);
		finish(&w);
	}
}

/* After up to two others, held, limited, as an array: by chance. */
static void submit_by_chance(struct world *w)
{
	struct hd_job_terms t = { .held = !draw(w, 6), .limit_s = draw(w, 4) ? 0 : 10 + (double)draw(w, 60),
		.nafter = w->njobs > 2 ? (uint32_t)draw(w, 3) : 0 };
	uint32_t n = w->njobs + 4 < JOBS && !draw(w, 5) ? 2 + (uint32_t)draw(w, 3) : 0;
	uint64_t steps = 20 + draw(w, 200);

	for (uint32_t i = 0; i < t.nafter; i++)
		t.after[i] = (struct hd_after){ .job = 1 + draw(w, w->njobs),
			.kind = (enum hd_after_kind)draw(w, HD_AFTER_NKINDS) };
	t.at_once = n ? (uint32_t)draw(w, 3) : 0;
	submit_on(w, steps, 1 + (uint32_t)draw(w, 3), &t, n);
}

/* None runs on beyond its limit: but for the time in which it leaves, or is killed, and two long passes. */
static void check_limits(const struct world *w)
{
	for (uint64_t id = 1; id <= w->njobs; id++)
		CHECK(!(w->row[id].terms.limit_s > 0) || w->ran_s[id] <= w->row[id].terms.limit_s + 15 + 16,
			"job %llu ran for %g s of %g s", (unsigned long long)id, w->ran_s[id],
			w->row[id].terms.limit_s);
}

static void happen(struct world *w)
{
	uint64_t id = 1 + draw(w, w->njobs ? w->njobs : 1);
	uint32_t v = (uint32_t)draw(w, DEVICES);
	struct hd_dispatch_outs outs;

	switch (draw(w, 13)) {
	case 0:
		if (w->njobs < JOBS && draw(w, 2))
			submit(w, 20 + draw(w, 200), 1 + (uint32_t)draw(w, 3));
		else if (w->njobs < JOBS)
			submit_by_chance(w);
		break;
	case 12:
		if (id <= w->njobs)
			(void)hold(w, id, draw(w, 2));
		break;
	case 1:
		if (draw(w, 4) == 0 && hd_dispatch_job(w->d, id) &&
			hd_dispatch_job(w->d, id)->state == HD_DISPATCH_OPEN &&
			!hd_dispatch_job(w->d, id)->cancel)
			(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_CANCEL,
				.job = id });
		break;
	case 2:
		w->device_out[v] = !w->device_out[v];
		(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE, .device = v,
			.ok = !w->device_out[v] });
		break;
	case 3:
		if (hd_dispatch_job(w->d, id) && hd_dispatch_job(w->d, id)->state == HD_DISPATCH_OPEN)
			(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_WEIGHT, .job = id,
				.value = 0.25 * (double)(1 + draw(w, 16)) });
		if (hd_dispatch_job(w->d, id) && draw(w, 2) &&
			hd_dispatch_job(w->d, id)->state == HD_DISPATCH_OPEN &&
			!hd_dispatch_job(w->d, id)->cancel)
			(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SCALE, .job = id,
				.n = 1 + (uint32_t)draw(w, 3) });
		break;
	case 4:                                   /* a worker dies */
		w->worker[v] = 0;
		break;
	case 5:                                   /* all of a run dies */
		if (w->run[id].alive)
			end_run(w, id, 137);
		break;
	case 6:
		w->stubborn[id] = draw(w, 3) == 0;
		break;
	case 7:
		if (draw(w, 3) == 0)
			crash(w);
		break;
	case 8:
		w->crash_at = w->point + (int)draw(w, 6);
		break;
	case 9:                                   /* nonsense is refused and changes nothing */
		assert_int_equal(hd_dispatch_step(w->d, &(struct hd_dispatch_event){ .kind =
			HD_DISPATCH_IN_CANCEL, .job = 1000 }, w->now_s, &outs, NULL),
			HD_E_NOTFOUND);
		assert_int_equal(outs.n, 0);
		break;
	default:
		pass(w, 0.25 * (double)(1 + draw(w, 30)));
	}
}

static void whatever_happens_no_device_is_in_two_leases_and_every_job_ends(void **state)
{
	static const char *const policies[] = { "las", "wfs", "fifo", "isolated", "makespan", "wfs", "sjf",
		"las-plain" };
	uint32_t resized = 0, moved = 0, killed = 0, crashes = 0, held = 0, late = 0, broken = 0, tasks = 0;
	const char *more = getenv("HD_DISPATCH_SEEDS");
	(void)state;

	for (uint64_t seed = 0; seed < (more ? strtoull(more, NULL, 10) : SANITIZED ? 30 : 120); seed++) {
		struct world w;
		const char *policy = policies[seed % (sizeof policies / sizeof *policies)];
		begin(&w, hd_policy_has_lp() ? policy : "fifo", seed);
		for (int i = 0; i < 120; i++)
			happen(&w);
		w.crash_at = -1;
		for (uint32_t i = 0; i < DEVICES; i++)
			if (w.device_out[i]) {
				w.device_out[i] = false;
				(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE,
					.device = i, .ok = true });
			}
		for (uint64_t id = 0; id <= JOBS; id++)
			w.stubborn[id] = false;
		for (uint64_t id = 1; id <= w.njobs; id++)
			(void)hold(&w, id, false);
		run_out(&w);
		check_done(&w);
		check_limits(&w);
		held += w.nheld;
		for (uint64_t id = 1; id <= w.njobs; id++) {
			late += w.row[id].state == HD_DISPATCH_TIMEOUT;
			broken += strstr(w.row[id].why, "ended otherwise") != NULL;
			tasks += w.row[id].terms.array != 0;
		}
		resized += w.nresized;
		moved += w.nmoved;
		killed += w.nkilled;
		crashes += w.crashes;
		finish(&w);
	}
	CHECK(one_set ? !resized && moved > DRAWS(10) : resized > DRAWS(10), "%u resized, %u moved",
		resized, moved);
	CHECK(moved > 0 && killed > 0 && crashes > DRAWS(100),
		"%u resized, %u moved, %u killed, %u crashes", resized, moved, killed, crashes);
	CHECK(held > DRAWS(20) && late > 0 && broken > 0 && tasks > DRAWS(20),
		"%u held, %u beyond their limit, %u after one that ended otherwise, %u tasks", held, late,
			broken,
		tasks);
}

static void a_log_repeated_writes_the_same_bytes(void **state)
{
	struct hd_text again;
	struct hd_diag diag = { "" };
	bool given_up = false;
	uint32_t started = 0;
	struct world w;
	(void)state;

	for (uint64_t seed = 500; seed < 506; seed++) {
		begin(&w, hd_policy_has_lp() ? "las" : "isolated", seed);
		for (int i = 0; i < 80; i++)
			happen(&w);
		hd_text_init(&again, &w.arena);
		CHECK(!hd_dispatch_replay("log", w.log.at, w.log.len, &w.arena, &again, &diag), "%s",
			diag.text);
		CHECK(again.len == w.log.len && !memcmp(again.at, w.log.at, w.log.len), "%zu bytes, then %zu",
			w.log.len, again.len);
		CHECK(w.log.len > 2000, "%zu bytes", w.log.len);
		started += strstr(w.log.at, "\"do\":\"worker\"") != NULL;
		given_up |= strstr(w.log.at, "\"in\":\"GIVE_UP\"") != NULL;
		finish(&w);
	}
	CHECK(started >= 4 && given_up == apart, "logs with a start: %u; a policy that was given up: %d",
		started, given_up);
}

/* Two devices by the next boundary while it runs, by the same run; then one again. */
static void a_job_of_another_scale_is_resized_while_it_runs(void **state)
{
	static const uint32_t sizes[] = { 2, 1, 3 };
	struct hd_dispatch_outs outs;
	struct world w;

	(void)state;
	begin(&w, "fifo", 3);
	submit(&w, 100000, 1);
	for (int i = 0; i < 20; i++)
		pass(&w, 1);
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		const struct hd_dispatch_job was = w.row[1];
		(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SCALE, .job = 1,
			.n = sizes[k] });
		CHECK(w.row[1].scale == sizes[k], "stored: %u", w.row[1].scale);
		CHECK(fabs(w.row[1].rate[1].steps_s * was.scale - was.rate[1].steps_s * sizes[k]) < 1e-9,
			"%g steps/s on %u, %g on %u", was.rate[1].steps_s, was.scale,
			w.row[1].rate[1].steps_s, sizes[k]);
		for (int i = 0; i < 40 && w.lease[1].n != sizes[k]; i++)
			pass(&w, 1);
		CHECK(w.lease[1].n == sizes[k], "%u devices, not %u", w.lease[1].n, sizes[k]);
	}
	CHECK(w.nstarts == 1 && w.row[1].leases == 1, "%u starts", w.nstarts);
	assert_int_equal(hd_dispatch_step(w.d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SCALE,
		.job = 1, .n = 0 }, w.now_s, &outs, NULL), HD_E_INVAL);
	assert_int_equal(hd_dispatch_step(w.d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SCALE,
		.job = 1, .n = HD_DISPATCH_SET + 1 }, w.now_s, &outs, NULL), HD_E_INVAL);
	CHECK(w.row[1].scale == 3 && outs.n == 0, "a refused scale is taken");
	finish(&w);
}

static void a_run_that_fails_five_times_is_dropped_with_the_reason(void **state)
{
	struct world w;
	(void)state;

	begin(&w, "fifo", 3);
	submit(&w, 1000, 1);
	w.run[1].ends_badly = true;
	for (int i = 0; i < 400 && w.row[1].state == HD_DISPATCH_OPEN; i++)
		pass(&w, 0.01);                   /* dead before its first step */
	assert_int_equal(w.row[1].state, HD_DISPATCH_FAILED);
	assert_int_equal(w.row[1].failures, HD_DISPATCH_FAILURES);
	assert_int_equal(w.nstarts, HD_DISPATCH_FAILURES);
	CHECK(strstr(w.row[1].why, "5 runs in a row failed without a step") &&
		strstr(w.row[1].why, "it fell over"), "%s", w.row[1].why);
	finish(&w);
}

/* 10 and 75 say "again" of a run that was asked to leave; one that leaves by itself before its first step
 * would do so for ever. */
static void a_run_that_leaves_by_itself_without_a_step_counts_as_failed(void **state)
{
	static const int32_t codes[] = { 10, 75 };
	(void)state;

	for (size_t k = 0; k < 2; k++) {
		struct world w;
		begin(&w, "fifo", 3);
		submit(&w, 1000, 1);
		for (int i = 0; i < 400 && w.row[1].state == HD_DISPATCH_OPEN; i++) {
			if (w.run[1].alive)
				end_run(&w, 1, codes[k]);
			pass(&w, 0.01);
		}
		CHECK(w.row[1].state == HD_DISPATCH_FAILED && w.nstarts == HD_DISPATCH_FAILURES,
			"code %d: %u starts", codes[k], w.nstarts);
		finish(&w);
	}
}

/* Whatever a run says of itself: with steps to go it is not done. */
static void a_run_that_ends_with_0_before_its_last_step_goes_on(void **state)
{
	struct hd_text again;
	struct hd_diag diag = { "" };
	struct world w;

	(void)state;
	begin(&w, "fifo", 3);
	submit(&w, 1000, 1);
	for (int i = 0; i < 5; i++)
		pass(&w, 1);
	CHECK(w.run[1].steps > 1 && w.run[1].steps < 900, "at step %g", w.run[1].steps);
	end_run(&w, 1, 0);
	pass(&w, 0.5);
	CHECK(w.row[1].state == HD_DISPATCH_OPEN && w.row[1].failures == 0, "it is %s: %s",
		hd_dispatch_state_name(w.row[1].state), w.row[1].why);
	run_out(&w);
	check_done(&w);
	CHECK(w.row[1].state == HD_DISPATCH_DONE && w.row[1].done == 1000 && w.nstarts == 2, "%u starts",
		w.nstarts);
	hd_text_init(&again, &w.arena);
	CHECK(!hd_dispatch_replay("log", w.log.at, w.log.len, &w.arena, &again, &diag), "%s", diag.text);
	CHECK(again.len == w.log.len && !memcmp(again.at, w.log.at, w.log.len), "%zu bytes, then %zu",
		w.log.len, again.len);
	finish(&w);
	begin(&w, "fifo", 3);
	submit(&w, 1000, 1);
	for (int i = 0; i < 400 && w.row[1].state == HD_DISPATCH_OPEN; i++) {
		if (w.run[1].alive)
			end_run(&w, 1, 0);
		pass(&w, 0.01);
	}
	CHECK(w.row[1].state == HD_DISPATCH_FAILED && strstr(w.row[1].why,
		"exit code 0 at step 0, before its last one"), "%s", w.row[1].why);
	finish(&w);
}

/* The run goes on with the others; that one place stays empty is said, once. */
static void a_device_on_which_workers_fail_is_told(void **state)
{
	struct world w;
	uint32_t reports = 0;

	(void)state;
	begin(&w, "fifo", 3);
	w.barren[1] = true;
	submit(&w, 100000, 2);
	for (int i = 0; i < 200; i++)
		pass(&w, 0.5);
	for (const char *at = w.log.at; (at = strstr(at, "\"kind\":\"failing\"")); at++)
		reports++;
	CHECK(reports == 1 && w.row[1].state == HD_DISPATCH_OPEN && workers_of(&w, 1) == 1,
		"reported %u times",
		reports);
	CHECK(strstr(w.log.at, "6 workers in a row ended on fast-1 before they took part: log/fast-1.log"),
		"%s", w.row[1].why);
	finish(&w);
}

static void an_error_of_the_job_is_not_tried_again(void **state)
{
	(void)state;

	for (int32_t code = 2; code <= 5; code++) {
		struct world w;
		begin(&w, "fifo", 3);
		submit(&w, 1000, 1);
		pass(&w, 1);
		end_run(&w, 1, code);
		run_out(&w);
		CHECK(w.row[1].state == HD_DISPATCH_FAILED && w.row[1].exit == code && w.nstarts == 1,
			"code %d", code);
		finish(&w);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_are_started_run_and_end),
		cmocka_unit_test(a_death_at_any_record_or_order_loses_no_job_and_runs_none_twice),
		cmocka_unit_test(whatever_happens_no_device_is_in_two_leases_and_every_job_ends),
		cmocka_unit_test(a_log_repeated_writes_the_same_bytes),
		cmocka_unit_test(a_job_of_another_scale_is_resized_while_it_runs),
		cmocka_unit_test(a_run_that_fails_five_times_is_dropped_with_the_reason),
		cmocka_unit_test(a_run_that_leaves_by_itself_without_a_step_counts_as_failed),
		cmocka_unit_test(a_run_that_ends_with_0_before_its_last_step_goes_on),
		cmocka_unit_test(a_device_on_which_workers_fail_is_told),
		cmocka_unit_test(an_error_of_the_job_is_not_tried_again),
		{ "apart: jobs_are_started_run_and_end", jobs_are_started_run_and_end, set_apart, set_within, NULL },
		{ "apart: a_death_at_any_record_or_order_loses_no_job_and_runs_none_twice", a_death_at_any_record_or_order_loses_no_job_and_runs_none_twice, set_apart, set_within, NULL },
		{ "apart: whatever_happens_no_device_is_in_two_leases_and_every_job_ends", whatever_happens_no_device_is_in_two_leases_and_every_job_ends, set_apart, set_within, NULL },
		{ "apart: a_log_repeated_writes_the_same_bytes", a_log_repeated_writes_the_same_bytes, set_apart, set_within, NULL },
		{ "whole: whatever_happens_no_device_is_in_two_leases_and_every_job_ends", whatever_happens_no_device_is_in_two_leases_and_every_job_ends, set_whole, set_parts, NULL },
		{ "whole: a_death_at_any_record_or_order_loses_no_job_and_runs_none_twice", a_death_at_any_record_or_order_loses_no_job_and_runs_none_twice, set_whole, set_parts, NULL },
		{ "whole: a_log_repeated_writes_the_same_bytes", a_log_repeated_writes_the_same_bytes, set_whole, set_parts, NULL },
		{ "apart: a_run_that_fails_five_times_is_dropped_with_the_reason", a_run_that_fails_five_times_is_dropped_with_the_reason, set_apart, set_within, NULL },
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
