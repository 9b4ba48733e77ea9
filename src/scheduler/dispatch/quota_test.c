/* Quotas: what jobs together hold, counted on the disk at each record. */
#include "scheduler/dispatch/testing_dispatch.h"

/* 0 and 1 are users of one account, 2 is of none and in a group of one job at once. */
static const struct { uint32_t n; struct hd_dispatch_limit limit[2]; } of[4] = {
	{ 2, { { "user ada", 2, UINT32_MAX }, { "account red", 3, UINT32_MAX } } },
	{ 2, { { "user bob", UINT32_MAX, 2 }, { "account red", 3, UINT32_MAX } } },
	{ 1, { { "group few", UINT32_MAX, 1 } } },
	{ 0, { { "", 0, 0 } } },
};

static void submit_sized(struct world *w, uint64_t steps, uint32_t scale, uint32_t max, uint32_t whose)
{
	struct hd_dispatch_job row = { .id = w->njobs + 1, .scale = scale, .weight = 1,
		.deadline_s = INFINITY, .steps = steps, .min = max ? 1 : 0, .max = max, .nvns = 16,
		.rate = { { -1, -1, HD_RATE_GUESSED }, { -1, -1, HD_RATE_GUESSED } },
		.nlimits = of[whose].n,
		.entity = { .weight = 1 + whose } };

	for (uint32_t i = 0; i < row.nlimits; i++)
		row.limit[i] = of[whose].limit[i];
	snprintf(row.entity.name, sizeof row.entity.name, "account %u", whose / 2);
	do
		(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SUBMIT, .row = &row });
	while (w->njobs < row.id);
}

static void submit_of(struct world *w, uint64_t steps, uint32_t scale, uint32_t whose)
{
	submit_sized(w, steps, scale, strcmp(w->policy, "wfs") ? 0 : 3, whose);
}

/* Sums of what the disk says; nothing of the machine is asked. */
static void check_quotas(const struct world *w, uint32_t most_of[4])
{
	for (uint32_t k = 0; k < 4; k++)
		for (uint32_t i = 0; i < of[k].n; i++) {
			const struct hd_dispatch_limit *l = &of[k].limit[i];
			uint32_t devices = 0, jobs = 0;
			for (uint64_t id = 1; id <= w->njobs; id++)
				for (uint32_t j = 0; j < w->row[id].nlimits; j++)
					if (!strcmp(w->row[id].limit[j].name, l->name) &&
						w->lease[id].state != HD_LEASE_RELEASED) {
						devices += w->lease[id].n;
						jobs++;
					}
			CHECK(devices <= l->devices && jobs <= l->running,
				"%s: %u devices of %u, %u jobs of %u", l->name, devices, l->devices, jobs,
				l->running);
			most_of[k] = devices > most_of[k] ? devices : most_of[k];
		}
}

static void whatever_happens_no_quota_is_exceeded_and_every_job_ends(void **state)
{
	static const char *const policies[] = { "las", "wfs", "fifo", "hierarchy", "isolated" };
	uint32_t most[4] = { 0 }, crashes = 0;
	(void)state;

	for (uint64_t seed = 0; seed < (SANITIZED ? 5 : 15); seed++) {
		struct world w;
		begin(&w, hd_policy_has_lp() ? policies[seed % 5] : "fifo", seed);
		for (int i = 0; i < 150; i++) {
			if (w.njobs < JOBS && !draw(&w, 3))
				submit_of(&w, 20 + draw(&w, 300), 1 + (uint32_t)draw(&w, 2),
					(uint32_t)draw(&w, 4));
			if (!draw(&w, 8))
				w.crash_at = w.point + (int)draw(&w, 6);
			pass(&w, 0.5);
			check_quotas(&w, most);
		}
		w.crash_at = -1;
		for (int i = 0; i < 4000 && !is_over(&w); i++) {
			pass(&w, 0.5);
			check_quotas(&w, most);
		}
		CHECK(is_over(&w), "seed %llu: a job does not end", (unsigned long long)seed);
		check_done(&w);
		crashes += w.crashes;
		struct hd_text again;
		struct hd_diag diag = { "" };
		hd_text_init(&again, &w.arena);
		CHECK(!hd_dispatch_replay("log", w.log.at, w.log.len, &w.arena, &again, &diag), "%s",
			diag.text);
		CHECK(again.len == w.log.len && !memcmp(again.at, w.log.at, w.log.len),
			"seed %llu: %zu bytes, then %zu", (unsigned long long)seed, w.log.len,
			again.len);
		finish(&w);
	}
	/* they are used up, or the test shows nothing */
	CHECK(most[0] == 3 && most[1] == 3 && crashes > 10, "%u and %u devices, %u crashes", most[0], most[1],
		crashes);
}

static void what_a_quota_leaves_goes_to_others_and_it_is_said_why(void **state)
{
	struct hd_dispatch_why why;
	struct world w;
	(void)state;

	begin(&w, "fifo", 3);
	submit_of(&w, 100000, 2, 0);
	submit_of(&w, 100000, 1, 0);              /* ada's third device: not as long as the first job runs */
	for (int i = 0; i < 4; i++)               /* as many as devices are left */
		submit_of(&w, 100000, 1, 3);
	for (int i = 0; i < 8; i++)
		pass(&w, 0.5);
	pass_a_boundary(&w);
	pass_a_boundary(&w);
	CHECK(workers_of(&w, 1) == 2, "%u, %u and %u workers; %s: %s", workers_of(&w, 1), workers_of(&w, 2),
		workers_of(&w, 3), hd_lease_name(w.lease[1].state), w.row[1].why);
	assert_int_equal(workers_of(&w, 2), 0);
	for (uint64_t id = 3; id <= 6; id++)
		CHECK(workers_of(&w, id) == 1, "job %llu waits, and a device idles", (unsigned long long)id);
	assert_int_equal(hd_dispatch_explain(w.d, 2, &(struct hd_dispatch_ask){ .now_s = w.now_s }, &why,
		NULL), HD_OK);
	assert_string_equal(why.code, "QUOTA");
	CHECK(strstr(why.text, "user ada may have 2 devices at once and has 2, and this job needs 1"), "%s",
		why.text);
	(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_CANCEL, .job = 1 });
	for (int i = 0; i < 3; i++)
		pass_a_boundary(&w);
	assert_int_equal(workers_of(&w, 2), 1);
	finish(&w);
}

/* Its quota went down, or it was asked to be larger: under a policy that does not resize it waits, though it
 * could be smaller under another one. */
static void a_job_larger_than_its_quota_keeps_no_device_from_others(void **state)
{
	struct hd_dispatch_why why;
	struct world w;
	(void)state;

	begin(&w, "fifo", 3);
	submit_sized(&w, 100000, 3, 3, 0);        /* ada may have 2 */
	submit_sized(&w, 100000, 3, 3, 0);
	submit_of(&w, 100000, 2, 0);
	for (int i = 0; i < 4; i++)
		submit_of(&w, 100000, 1, 3);
	for (int i = 0; i < 8; i++)
		pass(&w, 0.5);
	pass_a_boundary(&w);
	pass_a_boundary(&w);
	CHECK(!workers_of(&w, 1) && !workers_of(&w, 2) && workers_of(&w, 3) == 2, "%u, %u and %u workers",
		workers_of(&w, 1), workers_of(&w, 2), workers_of(&w, 3));
	for (uint64_t id = 4; id <= 7; id++)
		CHECK(workers_of(&w, id) == 1, "job %llu waits, and a device idles", (unsigned long long)id);
	assert_int_equal(hd_dispatch_explain(w.d, 1, &(struct hd_dispatch_ask){ .now_s = w.now_s }, &why,
		NULL), HD_OK);
	assert_string_equal(why.code, "QUOTA");
	CHECK(strstr(why.text, "user ada may have 2 devices at once, and this job needs 3: it waits until it "
		"wants fewer or may have more"), "%s", why.text);
	finish(&w);
}

/* It waits for devices that there are not, or that are out of service: its quota goes to what can run. */
static void a_job_that_no_type_holds_takes_no_room_of_its_quota(void **state)
{
	struct hd_dispatch_why why;
	(void)state;

	for (int out = 0; out < 2; out++) {
		struct world w;
		begin(&w, "fifo", 3);
		for (uint32_t v = 0; out && v < 6; v += 3) {
			w.device_out[v] = true;
			(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE,
				.device = v });
		}
		submit_sized(&w, 100000, out ? 3 : 5, 0, 2);     /* group few: one job at once */
		submit_of(&w, 100000, 1, 2);
		for (int i = 0; i < 8; i++)
			pass(&w, 0.5);
		pass_a_boundary(&w);
		pass_a_boundary(&w);
		CHECK(!workers_of(&w, 1) && workers_of(&w, 2) == 1, "out %d: %u and %u workers", out,
			workers_of(&w, 1), workers_of(&w, 2));
		const struct hd_dispatch_ask ask = { .now_s = w.now_s };
		assert_int_equal(hd_dispatch_explain(w.d, 1, &ask, &why, NULL), HD_OK);
		assert_string_equal(why.code, out ? "QUOTA" : "UNRUNNABLE");
		for (uint32_t v = 0; out && v < 6; v += 3) {     /* then it is the first in line */
			w.device_out[v] = false;
			(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE,
				.device = v, .ok = true });
		}
		(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_CANCEL, .job = 2 });
		for (int i = 0; i < 3; i++)
			pass_a_boundary(&w);
		CHECK(workers_of(&w, 1) == (out ? 3 : 0), "out %d: %u workers", out, workers_of(&w, 1));
		assert_int_equal(hd_dispatch_explain(w.d, 1, &(struct hd_dispatch_ask){ .now_s = w.now_s },
			&why, NULL), HD_OK);
		assert_string_equal(why.code, out ? "RUNS" : "UNRUNNABLE");
		finish(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(whatever_happens_no_quota_is_exceeded_and_every_job_ends, set_within),
		cmocka_unit_test_setup(whatever_happens_no_quota_is_exceeded_and_every_job_ends, set_apart),
		cmocka_unit_test_setup(what_a_quota_leaves_goes_to_others_and_it_is_said_why, set_within),
		cmocka_unit_test_setup(a_job_larger_than_its_quota_keeps_no_device_from_others, set_within),
		cmocka_unit_test_setup(a_job_that_no_type_holds_takes_no_room_of_its_quota, set_within),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
