/* The live scheduler's machine: rates, moves, rounds, reasons, and what is refused. */
#include "scheduler/dispatch/testing_dispatch.h"

static void measured_speed_takes_half_and_the_impossible_waits(void **state)
{
	struct hd_dispatch_rate *rate;
	struct world w;
	(void)state;

	begin(&w, "fifo", 3);
	w.speed_of[1] = 8;                        /* 16 steps/s on fast, guessed 2 */
	submit(&w, 100000, 1);
	for (int i = 0; i < 5; i++)
		pass(&w, 1);
	rate = w.row[1].rate;
	CHECK(rate[0].from == HD_RATE_GUESSED && rate[0].steps_s == 2 && rate[1].steps_s == 1, "%g %g",
		rate[0].steps_s, rate[1].steps_s);
	pass_a_boundary(&w);
	CHECK(rate[0].from == HD_RATE_MEASURED && fabs(rate[0].steps_s - 16) < 0.5, "measured %g",
		rate[0].steps_s);
	CHECK(rate[1].from == HD_RATE_GUESSED && fabs(rate[1].steps_s - 8) < 0.5, "guessed by it %g",
		rate[1].steps_s);
	w.speed_of[1] = 4;
	double was = rate[0].steps_s;
	pass_a_boundary(&w);
	CHECK(fabs(rate[0].steps_s - (0.5 * was + 4)) < 0.5, "halfway from %g to 8: %g", was,
		rate[0].steps_s);
	was = rate[0].steps_s;
	w.speed_of[1] = was / 2 * 1.08;           /* nearly what is believed: no news */
	pass_a_boundary(&w);
	CHECK(rate[0].steps_s == was && rate[0].from == HD_RATE_MEASURED, "%g, then %g", was,
		rate[0].steps_s);
	w.speed_of[1] = 1000;
	pass_a_boundary(&w);
	CHECK(rate[0].outlier > 1000 && rate[0].steps_s == was, "outlier %g, %g", rate[0].outlier,
		rate[0].steps_s);
	finish(&w);
}

static void a_job_that_goes_elsewhere_never_stops_if_the_place_is_free(void **state)
{
	struct world w;
	uint32_t most = 0;
	(void)state;

	begin(&w, "fifo", 3);
	submit(&w, 400, 2);
	for (int i = 0; i < 4; i++)
		pass(&w, 0.5);
	assert_int_equal(workers_of(&w, 1), 2);
	assert_true(w.worker[0] && w.worker[1]);
	w.device_out[0] = true;
	(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE, .device = 0 });
	for (int i = 0; i < 12; i++) {
		pass(&w, 0.25);
		uint32_t n = workers_of(&w, 1);
		CHECK(n >= 1 && w.run[1].alive, "turn %d: %u workers", i, n);
		most = n > most ? n : most;
	}
	CHECK(w.worker[0] == 0 && w.worker[1] == 1 && w.worker[2] == 1, "on %llu %llu %llu",
		(unsigned long long)w.worker[0],
		(unsigned long long)w.worker[1], (unsigned long long)w.worker[2]);
	assert_int_equal(w.nstarts, 1);
	assert_true(w.nresized >= 1);
	assert_int_equal(w.lease[1].state, HD_LEASE_HELD);
	finish(&w);
}

static void a_job_whose_type_goes_runs_on_another(void **state)
{
	struct world w;
	(void)state;

	begin(&w, "fifo", 3);
	submit(&w, 4000, 2);
	for (int i = 0; i < 4; i++)
		pass(&w, 0.5);
	for (uint32_t v = 0; v < 3; v++) {
		w.device_out[v] = true;
		(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE, .device = v });
	}
	pass_a_boundary(&w);
	for (int i = 0; i < 10; i++)
		pass(&w, 0.5);
	CHECK(w.worker[3] == 1 && w.worker[4] == 1 && w.run[1].alive, "it waits for ever: %s",
		hd_lease_name(w.lease[1].state));
	finish(&w);
}

/* A round counts as one round, however late the call came that closed it. */
static void a_round_ends_at_its_boundary(void **state)
{
	struct hd_dispatch_why why;
	struct world w;
	(void)state;

	begin(&w, "fifo", 3);
	submit(&w, 100000, 1);
	pass(&w, 0.5);
	double began_s = w.now_s - 0.5, at_s = hd_dispatch_boundary_s(w.d);
	for (int k = 0; k < 3; k++) {
		pass(&w, hd_dispatch_boundary_s(w.d) - w.now_s - 0.25);
		pass(&w, 0.95 + 0.1 * k);
	}
	assert_int_equal(hd_dispatch_explain(w.d, 1, &(struct hd_dispatch_ask){ .now_s = w.now_s }, &why,
		NULL), HD_OK);
	CHECK(hd_dispatch_boundary_s(w.d) == at_s + 60 && fabs(why.type[0].received_s - 60) < 0.5,
		"from %g s on, first boundary %g s: received %g s",
		began_s, at_s, why.type[0].received_s);
	finish(&w);
}

/* Under a policy that starts no job without a share, too: there is a free device, so the run does not
 * stop. */
static void a_job_whose_only_device_goes_moves_while_it_runs(void **state)
{
	struct world w;
	(void)state;

	begin(&w, "fifo", 3);
	submit(&w, 4000, 1);
	for (int i = 0; i < 4; i++)
		pass(&w, 0.5);
	assert_int_equal(w.worker[0], 1);
	/* those that stand free go first, so it has nowhere to go but to the other type */
	for (uint32_t v = 0; v < 3; v++) {
		w.device_out[2 - v] = true;
		(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE, .device = 2 - v });
	}
	for (int i = 0; i < 12; i++) {
		pass(&w, 0.25);
		CHECK(workers_of(&w, 1) >= 1 && w.run[1].alive, "turn %d: it stands still, its lease is %s",
			i, hd_lease_name(w.lease[1].state));
	}
	CHECK(w.worker[0] == 0 && w.worker[3] == 1 && w.nstarts == 1, "on %llu and %llu, %u starts",
		(unsigned long long)w.worker[0],
		(unsigned long long)w.worker[3], w.nstarts);
	pass_a_boundary(&w);
	CHECK(w.worker[3] == 1 && w.nstarts == 1 && w.lease[1].state == HD_LEASE_HELD,
		"after the boundary its lease is %s, %u starts",
		hd_lease_name(w.lease[1].state), w.nstarts);
	finish(&w);
}

static bool sees_none(void *user, uint64_t job) { (void)user; (void)job; return false; }

static void why_has_a_code_for_everybody(void **state)
{
	uint32_t nothers = 0;
	struct hd_dispatch_why why;
	struct hd_diag diag = { "" };
	struct world w;
	(void)state;

	begin(&w, hd_policy_has_lp() ? "las" : "isolated", 3);
	for (int i = 0; i < 12; i++)
		submit(&w, 4000, 1 + (uint32_t)(i % 3));
	submit(&w, 10, 4);                        /* of no type there are four */
	for (int k = 0; k < 30; k++) {
		pass(&w, 2.5);
		for (uint64_t id = 1; id <= w.njobs; id++) {
			if (!hd_dispatch_job(w.d, id))
				continue;
			CHECK(!hd_dispatch_explain(w.d, id, &(struct hd_dispatch_ask){ .now_s = w.now_s,
				.what_if = true }, &why, &diag), "%s",
				diag.text);
			CHECK(*why.code && *why.text, "job %llu has no code", (unsigned long long)id);
			if (id == 13 && k > 9)
				assert_string_equal(why.code, "UNRUNNABLE");
			if (w.lease[id].state == HD_LEASE_HELD)
				assert_string_equal(why.code, "RUNS");
			else if (w.lease[id].state == HD_LEASE_RELEASED)
				assert_string_not_equal(why.code, "RUNS");
			CHECK(!hd_dispatch_explain(w.d, id, &(struct hd_dispatch_ask){ .now_s = w.now_s,
				.may_see = sees_none }, &why, &diag), "%s", diag.text);
			CHECK(!strstr(why.text, "(priority") || strstr(why.text, "by its share"), "%s",
				why.text);
			nothers += strstr(why.text, "of others") != NULL;
		}
	}
	CHECK(nothers || !hd_policy_has_lp(), "no job waited for others");
	assert_int_equal(hd_dispatch_explain(w.d, 99, &(struct hd_dispatch_ask){ .now_s = 0, .what_if =
		true }, &why, NULL), HD_E_NOTFOUND);
	finish(&w);
}

static void a_setting_that_makes_no_sense_is_refused(void **state)
{
	static const struct hd_dispatch_type twice[] = { { "a", 1, 1, 0 }, { "a", 1, 1, 0 } },
		slow[] = { { "a", 1, 0, 0 } };
	const struct hd_dispatch_setting bad[] = {
		{ .policy = "unknown", .ntypes = 2, .type = types }, { .policy = "las-packed", .ntypes = 2, .type = types },
		{ .policy = "gandiva", .ntypes = 2, .type = types }, { .policy = "wfs", .ntypes = 2, .type = types }, { .policy = "fifo", .ntypes = 0 }, { .policy = "fifo", .ntypes = 2, .type = twice },
		{ .policy = "fifo", .ntypes = 1, .type = slow }, { .policy = "fifo", .ntypes = HD_DISPATCH_TYPES + 1, .type = types },
	};
	struct hd_dispatch *d = NULL;
	(void)state;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_dispatch_create(&d, &bad[i], NULL, &diag) == HD_E_INVAL && *diag.text,
			"case %zu: %s", i, diag.text);
	}
}

/* allox and wfs-2020 know jobs of one device; what they would refuse later, with everybody's decisions, is
 * refused as it comes. */
static void a_job_that_the_policy_does_not_know_is_refused_alone(void **state)
{
	static const struct { const char *policy; uint32_t scale; bool fits;
		} rows[] = { { "allox", 1, true }, { "allox", 2, false },
		{ "wfs-2020", 1, true }, { "wfs-2020", 2, false }, { "fifo", 2, true }, { "isolated", 2, true }, { "las", 2, true } };
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct hd_dispatch_setting set = { .policy = rows[i].policy, .ntypes = 1, .type = one,
			.began_s = -1 };
		struct hd_dispatch_job job = { .id = 1, .scale = rows[i].scale, .weight = 1,
			.deadline_s = INFINITY, .steps = 100 };
		struct hd_dispatch *d = NULL;
		struct hd_diag diag = { "" };
		for (uint32_t t = 0; t < HD_DISPATCH_TYPES; t++)
			job.rate[t] = (struct hd_dispatch_rate){ -1, -1, HD_RATE_GUESSED };
		if (!strcmp(rows[i].policy, "las") && !hd_policy_has_lp())
			continue;
		CHECK(hd_dispatch_create(&d, &set, NULL, &diag) == HD_OK, "%s: %s", rows[i].policy,
			diag.text);
		enum hd_err err = hd_dispatch_fits(d, &job, 5, NULL, &diag);
		CHECK(err == (rows[i].fits ? HD_OK : HD_E_INVAL), "%s, %u devices: error %d, %s",
			rows[i].policy, job.scale, err, diag.text);
		CHECK(rows[i].fits || strstr(diag.text, rows[i].policy), "%s", diag.text);
		hd_dispatch_destroy(d);
	}
}

/* A row as a submission makes it is elastic (max is set) whether or not the policy resizes. */
static void a_job_that_no_type_can_run_is_called_so(void **state)
{
	static const struct { const char *policy; uint32_t scale, min; double slow; const char *says;
		} rows[] = {
		{ "fifo", 3, 1, -1, "" }, { "fifo", 4, 1, -1, "submit it for 3" }, { "fifo", 6, 4, -1, "smaller workers.min" }, { "wfs", 6, 3, -1, "" },
		{ "wfs", 6, 4, -1, "it needs 4 devices" }, { "isolated", 4, 1, -1, "or choose a policy that resizes" }, { "fifo", 1, 1, 0, "rate is 0" },
	};
	const struct hd_dispatch_event tick = { .kind = HD_DISPATCH_IN_TICK };
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct hd_dispatch_setting set = { .policy = rows[i].policy,
			.ntypes = strcmp(rows[i].policy, "wfs") ? 2 : 1, .type = types,
			.began_s = -1 };
		struct hd_dispatch_job job = { .id = 1, .scale = rows[i].scale, .min = rows[i].min, .max = 8,
			.nvns = 8, .weight = 1,
			.deadline_s = INFINITY, .steps = 100 };
		const struct hd_dispatch_event submit = { .kind = HD_DISPATCH_IN_SUBMIT, .job = 1,
			.row = &job };
		char text[HD_DISPATCH_WHY] = "?";
		struct hd_dispatch_outs outs;
		struct hd_dispatch *d = NULL;
		struct hd_dispatch_why why;
		struct hd_diag diag = { "" };
		for (uint32_t t = 0; t < HD_DISPATCH_TYPES; t++)
			job.rate[t] = (struct hd_dispatch_rate){ rows[i].slow, -1, HD_RATE_GUESSED };
		CHECK(!hd_dispatch_create(&d, &set, NULL, &diag), "%s", diag.text);
		CHECK(hd_dispatch_unrunnable(d, &job, text) == (*rows[i].says != 0), "case %zu: \"%s\"", i,
			text);
		CHECK(!*rows[i].says == !*text && strstr(text, rows[i].says), "case %zu: \"%s\"", i, text);
		CHECK(!hd_dispatch_step(d, &submit, 1, &outs, &diag) &&
			!hd_dispatch_step(d, &tick, 2, &outs, &diag), "%s", diag.text);
		CHECK(!hd_dispatch_explain(d, 1, &(struct hd_dispatch_ask){ .now_s = 2 }, &why, &diag), "%s",
			diag.text);
		CHECK(!strcmp(why.code, "UNRUNNABLE") == (*rows[i].says != 0), "case %zu: %s, \"%s\"", i,
			why.code, why.text);
		hd_dispatch_destroy(d);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(measured_speed_takes_half_and_the_impossible_waits),
		cmocka_unit_test(a_job_that_goes_elsewhere_never_stops_if_the_place_is_free),
		cmocka_unit_test(a_job_whose_type_goes_runs_on_another),
		cmocka_unit_test(a_round_ends_at_its_boundary),
		cmocka_unit_test(a_job_whose_only_device_goes_moves_while_it_runs),
		cmocka_unit_test(why_has_a_code_for_everybody),
		cmocka_unit_test(a_job_that_the_policy_does_not_know_is_refused_alone),
		cmocka_unit_test(a_job_that_no_type_can_run_is_called_so),
		cmocka_unit_test(a_setting_that_makes_no_sense_is_refused),
		{ "apart: a_job_whose_type_goes_runs_on_another", a_job_whose_type_goes_runs_on_another, set_apart, set_within, NULL },
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
