/* Partitions: whose jobs are on which devices, by the disk and the workers alone. */
#include "scheduler/dispatch/testing_dispatch.h"

/* Of 6 devices: 0-2 fast, 3-5 slow. */
static const uint32_t fast[] = { 0, 1, 2 }, slow[] = { 3, 4, 5 }, both[] = { 1, 2, 3 }, all[] = { 0, 1, 2,
	3, 4, 5 };
static const struct hd_dispatch_partition apart_of[] = {
	{ .name = "a", .ndevices = 3, .device = fast }, { .name = "b", .ndevices = 3, .device = slow } };
/* day takes devices from night's jobs, and only free ones from those of week */
static const struct hd_dispatch_partition shared[] = {
	{ .name = "day", .most = 2, .preempts = 4, .ndevices = 3, .device = both },
	{ .name = "week", .ndevices = 3, .device = slow },
	{ .name = "night", .ndevices = 6, .device = all } };

static uint64_t submit_to(struct world *w, const char *partition, uint64_t steps, uint32_t scale,
	const struct hd_dispatch_limit *limit)
{
	struct hd_dispatch_job row = { .id = w->njobs + 1, .scale = scale, .weight = 1,
		.deadline_s = INFINITY, .steps = steps,
		.min = strcmp(w->policy, "wfs") ? 0 : 1, .max = strcmp(w->policy, "wfs") ? 0 : 3, .nvns = 16,
		.rate = { { -1, -1, HD_RATE_GUESSED }, { -1, -1, HD_RATE_GUESSED } } };

	if (limit) {
		row.nlimits = 1;
		row.limit[0] = *limit;
	}
	snprintf(row.partition, sizeof row.partition, "%s", partition);
	do
		(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SUBMIT, .row = &row });
	while (w->njobs < row.id);
	return row.id;
}

static void check_replay(struct world *w)
{
	struct hd_text again;
	struct hd_diag diag = { "" };

	hd_text_init(&again, &w->arena);
	CHECK(!hd_dispatch_replay("log", w->log.at, w->log.len, &w->arena, &again, &diag), "%s", diag.text);
	CHECK(again.len == w->log.len && !memcmp(again.at, w->log.at, w->log.len), "%zu bytes, then %zu",
		w->log.len, again.len);
}

/* That a worker is on a device of its partition the world itself checks, at each order. */
static void whatever_happens_jobs_are_on_devices_of_their_partition_and_end(void **state)
{
	static const char *const policies[] = { "las", "wfs", "fifo", "hierarchy", "isolated" };
	static const struct hd_dispatch_limit limit = { "user ada", 2, 2 };
	uint32_t crashes = 0, limited = 0, taken = 0;
	(void)state;

	for (uint64_t seed = 0; seed < (SANITIZED ? 3 : 10); seed++) {
		struct world w;
		begin_with(&w, hd_policy_has_lp() ? policies[seed % 5] : "fifo", seed, shared, 3);
		for (int i = 0; i < 4000 && (i < 150 || !is_over(&w)); i++) {
			uint64_t k = draw(&w, 3);
			if (i < 150 && w.njobs < JOBS && !draw(&w, 3))
				submit_to(&w, shared[k].name, 20 + draw(&w, 300), 1 + (uint32_t)draw(&w, 2),
					draw(&w, 2) ? &limit : NULL);
			if (i < 150 && !draw(&w, 8))
				w.crash_at = w.point + (int)draw(&w, 6);
			else if (i >= 150)
				w.crash_at = -1;
			pass(&w, 0.5);
			uint32_t devices = 0;
			for (uint64_t id = 1; id <= w.njobs; id++)
				if (w.row[id].nlimits && w.lease[id].state != HD_LEASE_RELEASED)
					devices += w.lease[id].n;
			CHECK(devices <= 2, "seed %llu: %u devices of 2", (unsigned long long)seed, devices);
			limited += devices == 2;
			taken += workers_of(&w, 1) > 0;
		}
		CHECK(is_over(&w), "seed %llu: a job does not end", (unsigned long long)seed);
		check_done(&w);
		crashes += w.crashes;
		check_replay(&w);
		finish(&w);
	}
	CHECK(crashes > 10 && limited > 10 && taken, "%u crashes, %u at the limit", crashes, limited);
}

/* The oracle is the machine without partitions, of one type: it is asked the same about the same jobs. */
static void partitions_without_a_common_device_decide_as_two_machines_do(void **state)
{
	static const char *const policies[] = { "fifo", "las", "isolated", "sum", "makespan", "ftf" };
	(void)state;

	for (size_t p = 0; p < (hd_policy_has_lp() ? sizeof policies / sizeof *policies : 1); p++) {
		struct hd_dispatch *d[3] = { NULL };
		struct hd_dispatch_outs outs;
		struct hd_diag diag = { "" };
		for (int m = 0; m < 3; m++) {
			const struct hd_dispatch_setting set = { .policy = policies[p], .round_s = 20,
				.min_reset_s = 5, .ntypes = m < 2 ? 1 : 2, .type = &types[m % 2],
				.npartitions = m < 2 ? 0 : 2, .partition = apart_of, .began_s = -1 };
			CHECK(!hd_dispatch_create(&d[m], &set, NULL, &diag), "%s", diag.text);
		}
		for (uint64_t id = 1; id <= 14; id++) {
			uint32_t m = (uint32_t)(id * 7 / 3 % 2);
			struct hd_dispatch_job row = { .id = id, .scale = 1 + (uint32_t)(id % 3 == 0),
				.weight = 1 + (double)(id % 4), .deadline_s = INFINITY, .steps = 1000 * id };
			for (uint32_t t = 0; t < HD_DISPATCH_TYPES; t++)
				row.rate[t] = (struct hd_dispatch_rate){ -1, -1, HD_RATE_GUESSED };
			const struct hd_dispatch_event event = { .kind = HD_DISPATCH_IN_SUBMIT, .row = &row };
			CHECK(!hd_dispatch_step(d[m], &event, 1, &outs, &diag), "%s", diag.text);
			snprintf(row.partition, sizeof row.partition, "%s", apart_of[m].name);
			CHECK(!hd_dispatch_step(d[2], &event, 1, &outs, &diag), "%s", diag.text);
		}
		for (double now_s = 2; now_s < 300; now_s += 9) {
			for (int m = 0; m < 3; m++)
				CHECK(!hd_dispatch_step(d[m], &(struct hd_dispatch_event){ .kind =
					HD_DISPATCH_IN_TICK }, now_s, &outs, &diag), "%s", diag.text);
			for (uint64_t id = 1; id <= 14; id++) {
				uint32_t m = (uint32_t)(id * 7 / 3 % 2);
				struct hd_dispatch_why alone, whole;
				const struct hd_dispatch_ask ask = { .now_s = now_s };
				CHECK(!hd_dispatch_explain(d[m], id, &ask, &alone, &diag) &&
					!hd_dispatch_explain(d[2], id, &ask, &whole, &diag), "%s", diag.text);
				CHECK(!strcmp(alone.code, whole.code) && !strcmp(alone.text, whole.text) &&
					alone.type[0].share == whole.type[m].share &&
					alone.type[0].received_s == whole.type[m].received_s &&
					alone.type[0].priority == whole.type[m].priority,
					"%s, job %llu at %g s: %s %g, %s %g", policies[p],
					(unsigned long long)id, now_s, alone.text, alone.type[0].share,
					whole.text, whole.type[m].share);
			}
		}
		for (int m = 0; m < 3; m++)
			hd_dispatch_destroy(d[m]);
	}
}

static void settle(struct world *w)
{
	pass(w, 0.5);
	pass_a_boundary(w);
	pass_a_boundary(w);
}

static void one_that_preempts_has_devices_at_once_and_the_other_shrinks_or_waits(void **state)
{
	struct world w;
	(void)state;

	begin_with(&w, hd_policy_has_lp() ? "wfs" : "fifo", 1, shared, 3);
	uint64_t night = submit_to(&w, "night", 100000, hd_policy_has_lp() ? 3 : 6, NULL);
	settle(&w);
	uint32_t had = workers_of(&w, night);
	CHECK(had >= 3, "%u workers", had);
	for (uint32_t i = 0; i < 3; i++)
		(void)submit_to(&w, "day", 100000, 1, NULL);
	settle(&w);
	for (uint64_t id = night + 1; id <= night + 3; id++)
		CHECK(workers_of(&w, id) == 1, "job %llu of day has %u workers", (unsigned long long)id,
			workers_of(&w, id));
	CHECK(!strcmp(w.policy, "fifo") || (workers_of(&w, night) && w.row[night].leases == 1),
		"night's job has %u workers in lease %u", workers_of(&w, night), w.row[night].leases);
	for (uint64_t id = night + 1; id <= night + 3; id++)
		(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_CANCEL, .job = id });
	settle(&w);
	settle(&w);
	CHECK(workers_of(&w, night) == had, "night's job has %u workers, %u before", workers_of(&w, night),
		had);
	finish(&w);
}

static void one_that_does_not_preempt_waits_and_says_for_what(void **state)
{
	static const struct hd_dispatch_partition two[] = {
		{ .name = "first", .ndevices = 3, .device = fast },
		{ .name = "second", .ndevices = 3, .device = fast } };
	struct hd_dispatch_why why;
	struct world w;
	(void)state;

	begin_with(&w, "fifo", 1, two, 2);
	uint64_t old = submit_to(&w, "second", 100000, 2, NULL);
	settle(&w);
	assert_int_equal(workers_of(&w, old), 2);
	uint64_t waits = submit_to(&w, "first", 100000, 2, NULL), fits = submit_to(&w, "second", 100000, 1,
		NULL);
	settle(&w);
	assert_int_equal(workers_of(&w, old), 2);
	assert_int_equal(workers_of(&w, waits), 0);
	assert_int_equal(hd_dispatch_explain(w.d, waits, &(struct hd_dispatch_ask){ .now_s = w.now_s },
		&why, NULL), HD_OK);
	assert_string_equal(why.code, "PARTITION");
	CHECK(strstr(why.text, "partition first has 3 devices of fast, and jobs of other partitions have"),
		"%s",
		why.text);
	(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_CANCEL, .job = old });
	settle(&w);
	assert_int_equal(workers_of(&w, waits), 2);
	/* the third device is the second's */
	assert_int_equal(workers_of(&w, fits), 1);
	finish(&w);
}

static void of_what_is_free_the_first_takes_first(void **state)
{
	static const struct hd_dispatch_partition two[] = {
		{ .name = "first", .ndevices = 3, .device = fast },
		{ .name = "second", .ndevices = 6, .device = all } };
	struct world w;
	(void)state;

	begin_with(&w, "fifo", 1, two, 2);
	for (int i = 0; i < 4; i++)                       /* four came before,
		and there are three fast ones */
		(void)submit_to(&w, "second", 100000, 1, NULL);
	uint64_t first = submit_to(&w, "first", 100000, 3, NULL);
	settle(&w);
	assert_int_equal(workers_of(&w, first), 3);
	uint32_t n = 0;
	for (uint64_t id = 1; id <= 4; id++)
		n += workers_of(&w, id);
	CHECK(n == 3 && workers_of(&w, 1) && workers_of(&w, 2), "%u workers of those behind", n);
	finish(&w);
}

/* Drained devices, and those of a reservation, are devices of partitions. */
static void windows_hold_within_partitions(void **state)
{
	struct hd_kept kept = { .name = "demo", .kind = HD_WINDOW_RESERVED, .user = "ada", .from_s = 0,
		.until_s = 1e6, .ndevices = 3, .device = { 2, 3, 4 } };
	struct world w;
	(void)state;

	begin_with(&w, "fifo", 1, apart_of, 2);
	w.window[0] = kept;
	(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_WINDOW, .window = &kept, .ok =
		true });
	struct hd_dispatch_job row = { .scale = 2, .weight = 1, .deadline_s = INFINITY, .steps = 100000,
		.user = "ada", .rate = { { -1, -1, HD_RATE_GUESSED }, { -1, -1, HD_RATE_GUESSED } } };
	for (uint32_t i = 0; i < 2; i++) {
		row.id = i + 1;
		snprintf(row.partition, sizeof row.partition, "%s", apart_of[i].name);
		(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SUBMIT, .row = &row });
	}
	settle(&w);
	/* of the window one device is a's, too few; two are b's */
	CHECK(w.worker[0] == 1 && w.worker[1] == 1 && w.worker[3] == 2 && w.worker[4] == 2,
		"jobs %llu %llu, %llu %llu", (unsigned long long)w.worker[0], (unsigned long long)w.worker[1],
		(unsigned long long)w.worker[3], (unsigned long long)w.worker[4]);
	finish(&w);
}

/* All that one user has reserved, of a type of which two partitions have a part. */
static void a_reservation_gives_a_partition_its_own_devices(void **state)
{
	static const uint32_t head[] = { 0 }, tail[] = { 1, 2 };
	static const struct hd_dispatch_partition two[] = {
		{ .name = "head", .ndevices = 1, .device = head },
		{ .name = "tail", .ndevices = 2, .device = tail } };
	struct hd_kept kept = { .name = "demo", .kind = HD_WINDOW_RESERVED, .user = "ada", .from_s = 0,
		.until_s = 1e6, .ndevices = 3, .device = { 0, 1, 2 } };
	struct hd_dispatch_job row = { .id = 1, .scale = 2, .weight = 1, .deadline_s = INFINITY,
		.steps = 100000, .user = "ada", .partition = "tail",
		.rate = { { -1, -1, HD_RATE_GUESSED }, { -1, -1, HD_RATE_GUESSED } } };
	struct world w;
	(void)state;

	begin_with(&w, "fifo", 1, two, 2);
	w.window[0] = kept;
	(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_WINDOW, .window = &kept,
		.ok = true });
	(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SUBMIT, .row = &row });
	for (int i = 0; i < 20; i++)              /* without jobs in rounds there is no boundary */
		pass(&w, 0.5);
	CHECK(!w.worker[0] && w.worker[1] == 1 && w.worker[2] == 1, "jobs %llu %llu %llu",
		(unsigned long long)w.worker[0], (unsigned long long)w.worker[1],
		(unsigned long long)w.worker[2]);
	finish(&w);
}

/* Of one user's two jobs one waits for devices of a partition that is full. */
static void a_job_that_waits_in_one_partition_leaves_its_quota_to_another(void **state)
{
	static const struct hd_dispatch_limit limit = { "user ada", 1, 1 };
	struct hd_dispatch_why why;
	struct world w;
	(void)state;

	for (int first = 0; first < 2; first++) {         /* whichever of them is asked first */
		const char *full = apart_of[first].name, *has_room = apart_of[!first].name;
		begin_with(&w, "fifo", 1, apart_of, 2);
		const uint64_t big = submit_to(&w, full, 100000, 3, NULL);
		settle(&w);
		const uint64_t waits = submit_to(&w, full, 100000, 1, &limit);
		const uint64_t runs = submit_to(&w, has_room, 100000, 1, &limit);
		settle(&w);
		CHECK(workers_of(&w, big) == 3 && !workers_of(&w, waits) && workers_of(&w, runs) == 1,
			"%u, %u and %u workers", workers_of(&w, big), workers_of(&w, waits),
			workers_of(&w, runs));
		(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_CANCEL, .job = big });
		settle(&w);
		CHECK(!workers_of(&w, waits) && workers_of(&w, runs) == 1, "%u and %u workers of a quota of "
			"one", workers_of(&w, waits), workers_of(&w, runs));
		const struct hd_dispatch_ask ask = { .now_s = w.now_s };
		assert_int_equal(hd_dispatch_explain(w.d, waits, &ask, &why, NULL), HD_OK);
		assert_string_equal(why.code, "QUOTA");
		(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_CANCEL, .job = runs });
		settle(&w);
		assert_int_equal(workers_of(&w, waits), 1);
		finish(&w);
	}
}

/* Of a partition that there is not nothing is said as if it were the first. */
static void a_job_is_judged_by_its_own_partition_alone(void **state)
{
	static const uint32_t one_of[] = { 0 };
	static const struct hd_dispatch_partition two[] = {
		{ .name = "small", .ndevices = 1, .device = one_of },
		{ .name = "large", .ndevices = 3, .device = slow } };
	static const struct { const char *partition; bool takes, unrunnable; } rows[] = {
		{ "small", true, true }, { "large", true, false }, { "", false, false }, { "huge", false, false } };
	struct world w;
	(void)state;

	begin_with(&w, "fifo", 1, two, 2);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_dispatch_job row = { .id = 1, .scale = 2, .weight = 1, .deadline_s = INFINITY,
			.steps = 100, .rate = { { -1, -1, HD_RATE_GUESSED }, { -1, -1, HD_RATE_GUESSED } } };
		char text[HD_DISPATCH_WHY];
		struct hd_diag diag = { "" };
		snprintf(row.partition, sizeof row.partition, "%s", rows[i].partition);
		CHECK(hd_dispatch_unrunnable(w.d, &row, text) == rows[i].unrunnable &&
			!*text == !rows[i].unrunnable, "\"%s\": \"%s\"", rows[i].partition, text);
		enum hd_err err = hd_dispatch_fits(w.d, &row, 0, NULL, &diag);
		CHECK(rows[i].takes ? !err : err == HD_E_INVAL && strstr(diag.text, "which there is not"),
			"\"%s\": \"%s\"", rows[i].partition, diag.text);
	}
	finish(&w);
}

static void a_setting_that_makes_no_sense_is_refused(void **state)
{
	static const uint32_t none[] = { 6 };
	static const struct { struct hd_dispatch_partition of[2]; const char *says; } rows[] = {
		{ { { .name = "x" }, { .name = "x" } }, "names are different" },
		{ { { .name = "x" }, { .name = "" } }, "of 1 to 32 bytes" },
		{ { { .name = "x" }, { .name = "y", .preempts = 1 } }, "takes devices from one that goes first" },
		{ { { .name = "x", .preempts = 1 }, { .name = "y" } }, "takes devices from one that goes first" },
		{ { { .name = "x", .preempts = 4 }, { .name = "y" } }, "takes devices from one that goes first" },
		{ { { .name = "x" }, { .name = "y", .ndevices = 1, .device = none } }, "has device 6, and there are 6" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct hd_dispatch_setting set = { .policy = "fifo", .ntypes = 2, .type = types,
			.npartitions = 2, .partition = rows[i].of, .began_s = -1 };
		struct hd_dispatch *d = NULL;
		struct hd_diag diag = { "" };
		CHECK(hd_dispatch_create(&d, &set, NULL, &diag) == HD_E_INVAL && strstr(diag.text,
			rows[i].says),
			"row %zu: %s", i, diag.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(whatever_happens_jobs_are_on_devices_of_their_partition_and_end,
			set_within),
		cmocka_unit_test_setup(whatever_happens_jobs_are_on_devices_of_their_partition_and_end,
			set_apart),
		cmocka_unit_test_setup(partitions_without_a_common_device_decide_as_two_machines_do,
			set_within),
		cmocka_unit_test_setup(one_that_preempts_has_devices_at_once_and_the_other_shrinks_or_waits,
			set_within),
		cmocka_unit_test_setup(one_that_does_not_preempt_waits_and_says_for_what, set_within),
		cmocka_unit_test_setup(of_what_is_free_the_first_takes_first, set_within),
		cmocka_unit_test_setup(windows_hold_within_partitions, set_within),
		cmocka_unit_test_setup(a_reservation_gives_a_partition_its_own_devices, set_within),
		cmocka_unit_test_setup(a_job_that_waits_in_one_partition_leaves_its_quota_to_another,
			set_within),
		cmocka_unit_test_setup(a_job_is_judged_by_its_own_partition_alone, set_within),
		cmocka_unit_test_setup(a_setting_that_makes_no_sense_is_refused, set_within),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
