/* The live scheduler's machine: devices that are drained, in maintenance, reserved. */
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

static bool knows(const struct world *w, const char *name)
{
	for (uint32_t i = 0; i < hd_dispatch_nwindows(w->d); i++)
		if (!strcmp(hd_dispatch_window(w->d, i)->name, name))
			return true;
	return false;
}

/* On the disk first, as the daemon does it. False: the machine refuses it. */
static bool put(struct world *w, uint32_t at, const struct hd_kept *window)
{
	struct hd_dispatch_outs outs;
	struct hd_diag diag = { "" };
	const struct hd_dispatch_event e = { .kind = HD_DISPATCH_IN_WINDOW, .window = window,
		.ok = true };

	if (hd_dispatch_step(w->d, &e, w->now_s, &outs, &diag))
		return false;
	w->window[at] = *window;
	w->came_s[at] = w->now_s;
	crash(w);                                 /* its orders are lost: the next step repeats them */
	return knows(w, window->name);
}

static void take_back(struct world *w, uint32_t at)
{
	const struct hd_kept was = w->window[at];

	w->window[at].name[0] = 0;
	if (knows(w, was.name))
		(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_WINDOW,
			.window = &was });
}

static struct hd_kept window_of(const char *name, enum hd_window_kind kind, double from_s, double until_s,
	uint32_t first, uint32_t n)
{
	struct hd_kept w = { .kind = kind, .from_s = from_s, .until_s = until_s, .ndevices = n };

	snprintf(w.name, sizeof w.name, "%s", name);
	if (kind == HD_WINDOW_RESERVED)
		snprintf(w.user, sizeof w.user, "ada");
	for (uint32_t i = 0; i < n; i++)
		w.device[i] = first + i;
	return w;
}

static void until(struct world *w, double at_s)
{
	while (w->now_s < at_s)
		pass(w, 0.5);
}

/* The law: once it had `drain_s` to leave, and the time in which it is killed, no device is used. */
static uint32_t check_windows(const struct world *w)
{
	uint32_t kept = 0;

	for (uint32_t v = 0; v < DEVICES; v++) {
		bool late = true;
		for (uint32_t i = 0; i < WINDOWS; i++)
			late &= !w->window[i].name[0] || !hd_window_has(&w->window[i], v) ||
				w->now_s >= fmax(w->window[i].from_s, w->came_s[i] + DRAIN_S) + 2;
		bool is = is_kept(w, w->worker[v], v, -2);
		kept += is;
		CHECK(!late || !is || !w->worker[v], "at %g s job %llu is on device %u, which a window keeps",
			w->now_s, (unsigned long long)w->worker[v], v);
	}
	return kept;
}

static void whatever_happens_no_kept_device_is_used_and_jobs_end(void **state)
{
	static const char *const policies[] = { "las", "wfs", "fifo", "isolated" };
	static const char *const users[] = { "ada", "bob", NULL };
	uint32_t kept = 0, crashes = 0, used = 0, killed = 0;
	(void)state;

	for (uint64_t seed = 0; seed < (SANITIZED ? 4 : 8); seed++) {
		struct world w;
		uint32_t nth = 0;
		begin(&w, hd_policy_has_lp() ? policies[seed % 4] : "fifo", seed);
		for (int i = 0; i < 240; i++) {
			uint32_t at = (uint32_t)draw(&w, WINDOWS), first = (uint32_t)draw(&w, DEVICES);
			if (w.njobs < JOBS && !draw(&w, 5)) {
				w.user = users[draw(&w, 3)];
				submit(&w, 20 + draw(&w, 300), 1 + (uint32_t)draw(&w, 2));
				w.stubborn[w.njobs] = !draw(&w, 4);
				w.clings[w.njobs] = !draw(&w, 4);
			}
			if (!w.window[at].name[0] && !draw(&w, 8)) {
				char name[16];
				snprintf(name, sizeof name, "w%u", nth++);
				double from_s = w.now_s + (draw(&w, 2) ? 0 : (double)draw(&w, 40));
				const struct hd_kept window = window_of(name,
					(enum hd_window_kind)draw(&w, HD_WINDOW_NKINDS), from_s,
					draw(&w, 4) ? from_s + 20 + (double)draw(&w, 40) : INFINITY, first,
					1 + (uint32_t)draw(&w, DEVICES - first));
				(void)put(&w, at, &window);
			} else if (w.window[at].name[0] && !draw(&w, 24))
				take_back(&w, at);
			if (!draw(&w, 16))
				w.crash_at = w.point + (int)draw(&w, 6);
			pass(&w, 0.5);
			kept += check_windows(&w);
			for (uint32_t v = 0; v < DEVICES; v++)
				used += w.worker[v] && hd_dispatch_device(w.d, v).window;
		}
		w.crash_at = -1;
		for (uint32_t i = 0; i < WINDOWS; i++)
			take_back(&w, i);
		run_out(&w);
		check_done(&w);
		crashes += w.crashes;
		killed += w.nkilled;
		repeat(&w);
		finish(&w);
	}
	CHECK(kept > 100 && used > 100 && crashes > 10 && killed,
		"%u kept, %u used by their own, %u crashes, %u killed", kept, used, crashes, killed);
}

static void a_job_leaves_before_maintenance_and_goes_on_elsewhere(void **state)
{
	struct world w;
	(void)state;

	begin(&w, "fifo", 1);
	submit(&w, 1000, 2);
	until(&w, 4);
	CHECK(workers_of(&w, 1) == 2 && w.worker[0] == 1 && w.worker[1] == 1,
		"it is not on fast-0 and fast-1");
	const struct hd_kept window = window_of("fans", HD_WINDOW_MAINTENANCE, 40, 60, 0, 2);
	CHECK(put(&w, 0, &window), "refused");
	until(&w, 40 - DRAIN_S - 1);
	CHECK(w.worker[0] == 1 && w.worker[1] == 1, "it left too early");
	until(&w, 40);
	CHECK(!w.worker[0] && !w.worker[1] && workers_of(&w, 1) == 2, "it has %u devices elsewhere",
		workers_of(&w, 1));
	CHECK(hd_dispatch_device(w.d, 0).window, "the window is not known");
	until(&w, 61);
	CHECK(!hd_dispatch_device(w.d, 0).window && !hd_dispatch_nwindows(w.d), "it is not over");
	w.window[0].name[0] = 0;
	run_out(&w);
	repeat(&w);
	finish(&w);
}

/* It has two devices, and is resized away from the one that the window keeps; its worker there does not
 * leave. `held`: shortly before the window begins its user holds it, which gives it another `drain_s`. */
static void cling(bool held)
{
	const struct hd_kept window = window_of("fans", HD_WINDOW_MAINTENANCE, 40, 200, 0, 1);
	struct world w;

	begin(&w, "fifo", 1);
	submit(&w, 100000, 2);
	until(&w, 4);
	CHECK(w.worker[0] == 1 && w.worker[1] == 1, "it is not on fast-0 and fast-1");
	w.stubborn[1] = w.clings[1] = true;
	CHECK(put(&w, 0, &window), "refused");
	until(&w, 35);
	CHECK(w.worker[0] == 1 && w.worker[2] == 1 && !w.nkilled, "it is on %llu, %llu after %u kills",
		(unsigned long long)w.worker[0], (unsigned long long)w.worker[2], w.nkilled);
	if (held)
		(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_HOLD, .job = 1,
			.ok = true });
	until(&w, 39.5);
	CHECK(w.worker[0] == 1 && !w.nkilled, "it was killed before the window began");
	until(&w, 42);
	CHECK(!w.worker[0] && w.nkilled == 1, "%g s into the window it is on the device, after %u kills",
		w.now_s - window.from_s, w.nkilled);
	w.stubborn[1] = w.clings[1] = false;
	if (held)
		(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_HOLD, .job = 1 });
	until(&w, 90);
	CHECK(workers_of(&w, 1) == 2 && w.row[1].state == HD_DISPATCH_OPEN && !w.row[1].failures,
		"it has %u devices, and failed %u times", workers_of(&w, 1), w.row[1].failures);
	repeat(&w);
	finish(&w);
}

/* One that has begun already when it is made. */
static void a_window_that_comes_late_leaves_its_time_to_leave(void **state)
{
	const struct hd_kept window = window_of("now", HD_WINDOW_DRAIN, 10, 200, 0, DEVICES);
	struct world w;
	(void)state;

	begin(&w, "fifo", 1);
	submit(&w, 100000, 2);
	until(&w, 20);
	w.stubborn[1] = w.clings[1] = true;
	CHECK(put(&w, 0, &window), "refused");
	until(&w, 20 + DRAIN_S - 0.5);
	CHECK(workers_of(&w, 1) == 2 && !w.nkilled, "it was killed after %g s", w.now_s - 20);
	until(&w, 20 + DRAIN_S + 2);
	CHECK(!workers_of(&w, 1) && w.nkilled == 1, "it has %u devices after %u kills", workers_of(&w, 1),
		w.nkilled);
	finish(&w);
}

static void a_worker_that_stays_is_killed_as_the_window_begins(void **state) { (void)state; cling(false); }
static void a_job_asked_again_to_leave_has_no_longer_for_it(void **state) { (void)state; cling(true); }

static void a_reservation_is_for_its_user_alone_and_says_so(void **state)
{
	struct hd_dispatch_why why;
	struct world w;
	(void)state;

	begin(&w, "fifo", 1);
	w.user = "bob";
	submit(&w, 100000, 3);                    /* has all fast ones */
	submit(&w, 100000, 3);                    /* has all slow ones */
	until(&w, 4);
	const struct hd_kept window = window_of("demo", HD_WINDOW_RESERVED, 30, 90, 0, 3);
	CHECK(put(&w, 0, &window), "refused");
	w.user = "ada";
	submit(&w, 100, 2);                       /* 3 */
	submit(&w, 100, 2);                       /* 4: for two there is no room */
	until(&w, 31);
	CHECK(workers_of(&w, 3) == 2 && !workers_of(&w, 4), "%u and %u workers", workers_of(&w, 3),
		workers_of(&w, 4));
	for (uint32_t v = 0; v < 3; v++)
		CHECK(w.worker[v] == 0 || w.worker[v] == 3, "job %llu is on device %u",
			(unsigned long long)w.worker[v], v);
	/* the first job waits: slow ones are the second's, of the fast ones none is its own */
	assert_int_equal(hd_dispatch_explain(w.d, 1, &(struct hd_dispatch_ask){ .now_s = w.now_s }, &why,
		NULL), HD_OK);
	until(&w, 85);
	CHECK(w.row[3].state == HD_DISPATCH_DONE && w.row[4].started_s >= w.row[3].ended_s - 1,
		"job 4 began at %g s", w.row[4].started_s);
	until(&w, 130);
	w.window[0].name[0] = 0;
	CHECK(workers_of(&w, 1) || workers_of(&w, 2), "none went on");
	repeat(&w);
	finish(&w);
}

static void what_waits_for_a_window_says_so(void **state)
{
	struct hd_dispatch_why why;
	struct world w;
	(void)state;

	begin(&w, "fifo", 1);
	const struct hd_kept window = window_of("rack", HD_WINDOW_MAINTENANCE, 0, 500, 0, DEVICES);
	CHECK(put(&w, 0, &window), "refused");
	submit(&w, 100, 2);
	until(&w, 10);
	CHECK(!workers_of(&w, 1), "it runs");
	assert_int_equal(hd_dispatch_explain(w.d, 1, &(struct hd_dispatch_ask){ .now_s = w.now_s }, &why,
		NULL), HD_OK);
	assert_string_equal(why.code, "RESERVED");
	CHECK(strstr(why.text, "3 of 3 devices of fast are kept from it: rack (maintenance) until 500.0 s"),
		"%s", why.text);
	take_back(&w, 0);
	run_out(&w);
	check_done(&w);
	finish(&w);
}

static void a_window_that_makes_no_sense_is_refused(void **state)
{
	struct world w;
	(void)state;

	begin(&w, "fifo", 1);
	submit(&w, 100000, 1);
	const struct hd_kept good = window_of("a.b-c_1", HD_WINDOW_RESERVED, 100, 200, 1, 2);
	CHECK(put(&w, 0, &good), "refused");
	struct hd_kept bad[10];
	for (size_t i = 0; i < 10; i++)
		bad[i] = window_of("other", HD_WINDOW_MAINTENANCE, 10, 20, 0, 1);
	bad[0] = good;                            /* the name is taken */
	bad[1] = window_of("other", HD_WINDOW_MAINTENANCE, 150, 160, 2, 1);     /* at the same time */
	bad[2].until_s = 10;
	bad[3].from_s = NAN;
	bad[4].ndevices = 0;
	bad[5].device[0] = DEVICES;
	bad[6].name[0] = '/';
	bad[7].user[0] = 'u';                     /* maintenance is for none */
	bad[8].kind = HD_WINDOW_RESERVED;         /* for one */
	bad[9].until_s = NAN;
	for (size_t i = 0; i < 10; i++)
		CHECK(!put(&w, 1, &bad[i]), "window %zu is taken", i);
	const struct hd_kept drain = window_of("drain", HD_WINDOW_DRAIN, 0, INFINITY, 0, DEVICES);
	CHECK(put(&w, 1, &drain), "a drain may be at any time");
	finish(&w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(whatever_happens_no_kept_device_is_used_and_jobs_end, set_within),
		cmocka_unit_test_setup(whatever_happens_no_kept_device_is_used_and_jobs_end, set_apart),
		cmocka_unit_test_setup(a_job_leaves_before_maintenance_and_goes_on_elsewhere, set_within),
		cmocka_unit_test_setup(a_worker_that_stays_is_killed_as_the_window_begins, set_within),
		cmocka_unit_test_setup(a_window_that_comes_late_leaves_its_time_to_leave, set_within),
		cmocka_unit_test_setup(a_job_asked_again_to_leave_has_no_longer_for_it, set_within),
		cmocka_unit_test_setup(a_reservation_is_for_its_user_alone_and_says_so, set_within),
		cmocka_unit_test_setup(what_waits_for_a_window_says_so, set_within),
		cmocka_unit_test_setup(a_window_that_makes_no_sense_is_refused, set_within),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
