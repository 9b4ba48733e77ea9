#include "chaos/harness.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sys/file_sim.h"
#include "sys/signal.h"
#include "chaos/campaign.h"
#include "tests/check.h"

/* Runs that no coordinator answers for, on a disk, a clock and a host in memory. */

struct bench { struct hd_fs_sim fs; struct hd_clock_sim clock; struct hd_host_sim host;
	struct hd_harness h; };

static int enter(void **state)
{
	static struct bench b;
	struct hd_diag diag = { "" };

	memset(&b, 0, sizeof b);
	hd_fs_sim_init(&b.fs);
	hd_clock_sim(&b.clock, HD_NS_PER_S, 0);
	hd_host_sim_init(&b.host);
	assert_int_equal(hd_harness_init(&b.h, &b.fs.fs, &b.clock.clock, "job.yaml", "proof", 40, &diag),
		HD_OK);
	b.h.host = &b.host.host;
	*state = &b;
	return 0;
}

static int leave(void **state)
{
	struct bench *b = *state;

	b->h.ours = false;                /* nothing real is to be stopped */
	hd_harness_finish(&b->h);
	hd_fs_sim_finish(&b->fs);
	return 0;
}

/* A process that lives: this one. */
static void some_process_lives(struct hd_harness *h)
{
	h->known = h->ours = true;
	h->live.nworkers = 1;
	h->live.worker[0].pid = getpid();
}

static enum hd_err look_after(struct bench *b, int64_t by_ns, struct hd_diag *diag)
{
	hd_clock_sim_advance(&b->clock, by_ns);
	return hd_harness_look(&b->h, diag);
}

static void folders_lie_below_a_new_parent(void **state)
{
	struct bench *b = *state;
	struct hd_diag diag = { "" };
	struct hd_harness other;
	char dir[HD_HARNESS_PATH];

	assert_string_equal(b->h.dir, "proof/chaos");
	assert_string_equal(b->h.twin_dir, "proof/undisturbed");
	assert_int_equal(hd_harness_init(&other, &b->fs.fs, &b->clock.clock, "j", "proof", 40, &diag),
		HD_E_INVAL);
	assert_non_null(strstr(diag.text, "proof is there already"));
	hd_harness_finish(&other);
	hd_harness_folder(&b->fs.fs, "p", "chaos", dir);
	assert_string_equal(dir, "p/runs/chaos");
	assert_int_equal(hd_fs_mkdirs(&b->fs.fs, "p/runs/chaos", &diag), HD_OK);
	assert_int_equal(hd_fs_mkdirs(&b->fs.fs, "p/runs/chaos-2", &diag), HD_OK);
	hd_harness_folder(&b->fs.fs, "p", "chaos", dir);
	assert_string_equal(dir, "p/runs/chaos-3");
}

static void a_run_is_started_with_its_settings(void **state)
{
	static const char *const set[] = { "optim.lr=0.1", "job.seed=4" };
	struct bench *b = *state;
	struct hd_diag diag = { "" };

	b->h.set = set;
	b->h.nsets = HD_HARNESS_SETS - 1;         /* with the two of the harness more than a run takes */
	assert_int_equal(hd_harness_start(&b->h, 3, "1", &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "65 times -s") && b->host.n == 0, "%s", diag.text);
	b->h.nsets = 2;
	b->h.pace_ms = 150;
	b->h.samples = true;
	assert_int_equal(hd_harness_start(&b->h, 3, "1", &diag), HD_OK);
	assert_int_equal(b->host.n, 1);
	assert_string_equal(b->host.proc[0].args,
		"/proc/self/exe run job.yaml -q --devices 1 --out proof/chaos "
		"--steps 40 --workers 3 -s workers.pace=150 ms -s optim.lr=0.1 -s job.seed=4 "
		"-s trace.samples=true");
}

static void what_the_run_says_is_kept_and_the_twin_has_settings_of_its_own(void **state)
{
	static const char *const set[] = { "optim.lr=0.1" }, *const own[] = { "workers.memory=auto",
		"parallel.mode=data" };
	struct bench *b = *state;
	struct hd_diag diag = { "" };
	struct hd_harness_end end;
	struct hd_stat stat;

	b->h.set = set;
	b->h.nsets = 1;
	b->h.twin_set = own;
	b->h.ntwin_sets = 2;
	b->h.said = "proof/said";
	assert_int_equal(hd_harness_start(&b->h, 3, "1", &diag), HD_OK);
	assert_string_equal(b->host.proc[0].args,
		"/proc/self/exe run job.yaml -q --devices 1 --out proof/chaos "
		"--steps 40 --workers 3 --json -s optim.lr=0.1");
	assert_int_equal(hd_fs_stat(&b->fs.fs, "proof/said", &stat, NULL), HD_OK);
	hd_signal_stop_set(HD_STOP_INTERRUPT);    /* the twin does not end, and somebody wants an end */
	assert_int_equal(hd_harness_compare(&b->h, &end, &diag), HD_E_INTERRUPT);
	hd_signal_stop_set(HD_STOP_NONE);
	assert_string_equal(b->host.proc[1].args,
		"/proc/self/exe run job.yaml -q --devices 1 --out proof/undisturbed "
		"--steps 40 -s optim.lr=0.1 -s workers.memory=auto -s parallel.mode=data");
}

/* It leaves with the exit code of what it was asked; before that the same code is an error. */
static void a_run_that_was_asked_to_stop_ends_without_an_error(void **state)
{
	struct bench *b = *state;
	struct hd_diag diag = { "" };

	for (int stopped = 0; stopped < 2; stopped++) {
		assert_int_equal(hd_harness_start(&b->h, 3, "1", &diag), HD_OK);
		hd_host_sim_end(&b->host, 1 + stopped, 75);
		diag.text[0] = 0;
		/* a run without a checkpoint has no step for the twin to end at */
		assert_int_equal(stopped ? hd_harness_stop(&b->h, &diag) :
			look_after(b, HD_NS_PER_S, &diag), stopped ? HD_E_NOTFOUND : HD_E_INTEGRITY);
	}
	assert_int_equal(b->h.nsteps, 40);
}

static void no_step_for_a_minute_is_a_hang(void **state)
{
	struct bench *b = *state;
	struct hd_diag diag = { "" };
	int64_t waited = 0;

	some_process_lives(&b->h);
	b->h.live.step = 7;
	assert_int_equal(look_after(b, 0, &diag), HD_OK);
	while (waited < HD_HARNESS_STILL_NS - HD_NS_PER_S) {
		CHECK(look_after(b, HD_NS_PER_S / 2, &diag) == HD_OK, "%s", diag.text);
		waited += HD_NS_PER_S / 2;
	}
	enum hd_err err = HD_OK;
	for (int i = 0; i < 4 && !err; i++)
		err = look_after(b, HD_NS_PER_S / 2, &diag);
	assert_int_equal(err, HD_E_INTEGRITY);
	assert_non_null(strstr(diag.text, "stands still at step 7"));
}

/* More faults than the run has time for, each of which waits for a part of a step: a run that stands still is
 * seen no later for that. */
static void faults_that_wait_hide_no_hang(void **state)
{
	enum { MANY = 4000 };
	static struct hd_fault fault[MANY];
	struct bench *b = *state;
	struct hd_campaign c = { .nsteps = 40, .detect_ns = HD_NS_PER_S, .fault = fault, .nfaults = MANY };
	struct hd_faults faults = { .harness = &b->h };
	struct hd_diag diag = { "" };
	const int64_t began_ns = hd_clock_now_ns(&b->clock.clock);

	for (uint32_t i = 0; i < MANY; i++)       /* which no coordinator takes */
		fault[i] = (struct hd_fault){ .kind = HD_FAULT_SCALE, .part = UINT32_MAX };
	some_process_lives(&b->h);
	b->h.live.step = 7;
	b->h.live.step_ms = 1000;
	assert_int_equal(hd_campaign_run(&c, &b->h, &faults, &diag), HD_E_INTEGRITY);
	assert_non_null(strstr(diag.text, "stands still at step 7"));
	CHECK(hd_clock_now_ns(&b->clock.clock) - began_ns < 2 * HD_HARNESS_STILL_NS, "after %lld s",
		(long long)((hd_clock_now_ns(&b->clock.clock) - began_ns) / HD_NS_PER_S));
}

static void a_step_begins_the_minute_again(void **state)
{
	struct bench *b = *state;
	struct hd_diag diag = { "" };

	some_process_lives(&b->h);
	for (int i = 0; i < 300; i++) {
		b->h.live.step += i % 50 == 0;
		CHECK(look_after(b, HD_NS_PER_S, &diag) == HD_OK, "look %d: %s", i, diag.text);
	}
}

/* A machine that slept, or a harness that was stopped: one look after an hour is one second of waiting. */
static void a_machine_that_stood_still_is_no_hang(void **state)
{
	struct bench *b = *state;
	struct hd_diag diag = { "" };

	some_process_lives(&b->h);
	for (int i = 0; i < 50; i++)
		CHECK(look_after(b, 3600 * HD_NS_PER_S, &diag) == HD_OK, "look %d: %s", i, diag.text);
}

static void a_visited_run_without_a_coordinator_for_a_minute_is_gone(void **state)
{
	struct bench *b = *state;
	struct hd_harness visited;
	struct hd_diag diag = { "" };
	enum hd_err err = HD_OK;
	int looks = 0;

	assert_int_equal(hd_harness_visit(&visited, &b->fs.fs, &b->clock.clock, "proof/other", &diag), HD_OK);
	for (; !err && looks < 100; looks++) {
		hd_clock_sim_advance(&b->clock, HD_NS_PER_S);
		err = hd_harness_look(&visited, &diag);
	}
	assert_int_equal(err, HD_E_NOTFOUND);
	assert_int_equal(looks, 60);
	assert_non_null(strstr(diag.text, "no process has coordinated proof/other for a minute"));
	hd_harness_finish(&visited);
}

static void when_all_of_it_died_the_run_is_resumed_after_a_pause(void **state)
{
	struct bench *b = *state;
	struct hd_diag diag = { "" };

	assert_int_equal(hd_harness_start(&b->h, 3, "2", &diag), HD_OK);
	assert_int_equal(look_after(b, HD_NS_PER_S, &diag), HD_OK);
	hd_host_sim_end(&b->host, 1, 137);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(look_after(b, HD_NS_PER_S / 2, &diag), HD_OK);
		CHECK(b->host.n == 1, "it was resumed at once");
	}
	for (int i = 0; i < 8; i++)
		assert_int_equal(look_after(b, HD_NS_PER_S / 2, &diag), HD_OK);
	assert_int_equal(b->host.n, 2);
	assert_int_equal(b->h.resumed, 1);
	assert_string_equal(b->host.proc[1].args,
		"/proc/self/exe resume proof/chaos -q --devices 2 --steps 40 --workers 3");
}

static void a_run_that_ends_with_an_error_is_reported(void **state)
{
	struct bench *b = *state;
	struct hd_diag diag = { "" };

	assert_int_equal(hd_harness_start(&b->h, 3, "1", &diag), HD_OK);
	hd_host_sim_end(&b->host, 1, 4);
	assert_int_equal(look_after(b, HD_NS_PER_S, &diag), HD_E_INTEGRITY);
	assert_non_null(strstr(diag.text, "ended with exit code 4"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(folders_lie_below_a_new_parent, enter, leave),
		cmocka_unit_test_setup_teardown(a_run_is_started_with_its_settings, enter, leave),
		cmocka_unit_test_setup_teardown(
			what_the_run_says_is_kept_and_the_twin_has_settings_of_its_own, enter, leave),
		cmocka_unit_test_setup_teardown(a_run_that_was_asked_to_stop_ends_without_an_error, enter,
			leave),
		cmocka_unit_test_setup_teardown(no_step_for_a_minute_is_a_hang, enter, leave),
		cmocka_unit_test_setup_teardown(faults_that_wait_hide_no_hang, enter, leave),
		cmocka_unit_test_setup_teardown(a_step_begins_the_minute_again, enter, leave),
		cmocka_unit_test_setup_teardown(a_machine_that_stood_still_is_no_hang, enter, leave),
		cmocka_unit_test_setup_teardown(a_visited_run_without_a_coordinator_for_a_minute_is_gone,
			enter, leave),
		cmocka_unit_test_setup_teardown(when_all_of_it_died_the_run_is_resumed_after_a_pause, enter,
			leave),
		cmocka_unit_test_setup_teardown(a_run_that_ends_with_an_error_is_reported, enter, leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
