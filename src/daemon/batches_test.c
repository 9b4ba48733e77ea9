/* Batch jobs of leases, by a launcher that only remembers; the test plays the batch system. */
#include "daemon/batches.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/file_sim.h"
#include "tests/check.h"

#define S INT64_C(1000000000)
enum { MOST = 8 };

struct fake { struct hd_launcher head; char mark[100], name[100], time[40], last[100]; uint32_t nodes, want;
	bool ends, open; struct hd_launcher_count is; struct hd_launcher_end end; bool has_end;
		enum hd_err refuses; };

static struct hd_fs_sim disk;
static struct hd_clock_sim clock_;
static struct hd_pools pools;
static struct hd_batches *batches;
static struct hd_launcher_settings settings[2];
static struct fake fake[MOST];
static uint32_t nfakes;
static char said[1000];

static struct fake *of(struct hd_launcher *l) { return (struct fake *)l; }
static void l_want(struct hd_launcher *l, uint32_t n) { of(l)->want = n; }
static void l_end(struct hd_launcher *l) { of(l)->ends = true; }
static void l_changed(struct hd_launcher *l) { (void)l; }
static void l_close(struct hd_launcher *l) { of(l)->open = false; }
static enum hd_err l_look(struct hd_launcher *l, struct hd_diag *diag)
{
	return of(l)->refuses ? hd_fail(diag, of(l)->refuses, "no such account") : HD_OK;
}
static bool l_ended(struct hd_launcher *l, struct hd_launcher_end *end)
{
	const bool has = of(l)->has_end;

	*end = of(l)->end;
	of(l)->has_end = false;
	return has;
}
static void l_count(const struct hd_launcher *l, struct hd_launcher_count *count)
{
	*count = ((const struct fake *)l)->is;
}
static enum hd_err l_open(const struct hd_launcher_spec *spec, struct hd_launcher **l, struct hd_diag *diag);
static const struct hd_launcher_ops ops = { .name = "test", .open = l_open, .want = l_want, .end = l_end,
	.changed = l_changed, .look = l_look, .ended = l_ended, .count = l_count, .close = l_close };

static enum hd_err l_open(const struct hd_launcher_spec *spec, struct hd_launcher **l, struct hd_diag *diag)
{
	struct fake *f = &fake[nfakes++];

	(void)diag;
	assert_true(nfakes < MOST && spec->stays);
	*f = (struct fake){ .head = { .ops = &ops }, .nodes = spec->nodes, .open = true };
	snprintf(f->mark, sizeof f->mark, "%s", spec->mark);
	snprintf(f->name, sizeof f->name, "%s", spec->name);
	snprintf(f->time, sizeof f->time, "%s", spec->settings->slurm.time);
	for (size_t i = 0; spec->argv[i]; i++)
		snprintf(f->last, sizeof f->last, "%s", spec->argv[i]);
	*l = &f->head;
	return HD_OK;
}

static void say(void *user, const char *kind, uint64_t job, const char *text)
{
	(void)user;
	snprintf(said + strlen(said), sizeof said - strlen(said), "%s %llu %s\n", kind,
		(unsigned long long)job,
		text);
}

static int begin(void **state)
{
	(void)state;
	memset(&pools, 0, sizeof pools);
	said[0] = '\0';
	nfakes = 0;
	hd_fs_sim_init(&disk);
	hd_clock_sim(&clock_, S, 1000 * S);
	for (int i = 0; i < 2; i++)
		settings[i] = (struct hd_launcher_settings){ .slurm = { .partition = "", .account = "",
			.time = "02:00:00", .signal_s = 120 } };
	assert_int_equal(hd_pools_add(&pools, "v100:2:3", NULL), HD_OK);
	assert_int_equal(hd_pools_add(&pools, "k80:3", NULL), HD_OK);
	assert_int_equal(hd_pools_open(&pools, &disk.fs, NULL), HD_OK);
	const struct hd_batches_spec spec = { .fs = &disk.fs, .clock = &clock_.clock, .ops = &ops,
		.pools = &pools, .settings = settings, .mark = "heddle-1-job-", .program = "/heddle",
		.passed = { "--devices", "1" } };
	assert_int_equal(hd_batches_open(&batches, &spec, say, NULL, NULL), HD_OK);
	return 0;
}

static int finish(void **state)
{
	(void)state;
	hd_batches_close(batches);
	hd_pools_close(&pools);
	hd_fs_sim_finish(&disk);
	for (uint32_t i = 0; i < nfakes; i++)
		assert_false(fake[i].open);
	return 0;
}

static struct hd_batches_ask ask_of(uint64_t job, uint32_t lease, uint32_t n)
{
	return (struct hd_batches_ask){ .job = job, .lease = lease, .type = 1, .n = n, .name = "tiny",
		.run = "/D/runs/7" };
}

static void want(uint64_t job, uint32_t lease, uint32_t n)
{
	const struct hd_batches_ask ask = ask_of(job, lease, n);

	assert_int_equal(hd_batches_want(batches, &ask, NULL), HD_OK);
}

static void look(int64_t after_ns)
{
	hd_clock_sim_advance(&clock_, after_ns);
	hd_batches_look(batches);
}

/* found, waiting, running, left */
static void is(struct fake *f, uint32_t waiting, uint32_t running, uint32_t left)
{
	f->is = (struct hd_launcher_count){ .found = true, .waiting = waiting, .running = running, .left =
		left,
		.at = "Slurm job 9_0", .why = "" };
	if (waiting)
		snprintf(f->is.why, sizeof f->is.why, "Priority (1)");
	look(0);
}

static struct hd_batch_seen seen(uint64_t job)
{
	struct hd_batch_seen s = { 0 };

	assert_true(hd_batches_of(batches, job, &s));
	return s;
}

static void a_lease_is_one_batch_job_of_its_nodes_until_it_is_over(void **state)
{
	char text[300];

	(void)state;
	want(7, 2, 3);
	assert_int_equal(nfakes, 1);
	assert_int_equal(fake[0].nodes, 3);
	assert_int_equal(fake[0].want, 1);
	assert_string_equal(fake[0].mark, "heddle-1-job-7-2");
	assert_string_equal(fake[0].name, "job 7 tiny");
	assert_string_equal(fake[0].last, "1");
	want(7, 2, 3);
	assert_int_equal(nfakes, 1);
	CHECK(seen(7).there && !seen(7).runs, "what is asked for is not there");
	is(&fake[0], 1, 0, 1);
	hd_batches_text(batches, 7, text, sizeof text);
	assert_string_equal(text, "Slurm job 9_0 waits: Priority (1)");
	is(&fake[0], 0, 1, 1);
	CHECK(seen(7).there && seen(7).runs && seen(7).lease == 2 && seen(7).n == 3, "it does not run");
	fake[0].end = (struct hd_launcher_end){ .name = "Slurm job 9_0", .code = 75 };
	fake[0].has_end = true;
	is(&fake[0], 0, 0, 0);
	CHECK(!seen(7).there && seen(7).code == 75, "it is there, code %d", seen(7).code);
	assert_int_equal(fake[0].want, 0);        /* not replaced before it is wanted */
	want(7, 2, 3);
	assert_int_equal(fake[0].want, 1);
	CHECK(seen(7).there, "wanted again it is not there");
	assert_int_equal(nfakes, 1);
}

static void what_an_earlier_process_asked_for_is_there_until_it_is_known_not_to_be(void **state)
{
	const struct hd_batches_ask ask = ask_of(7, 2, 3);

	(void)state;
	assert_int_equal(hd_batches_find(batches, &ask, NULL), HD_OK);
	look(0);
	CHECK(seen(7).there && !fake[0].want, "before the batch system has answered it is not there");
	is(&fake[0], 0, 0, 0);
	CHECK(!seen(7).there, "it is there");
}

static void one_that_is_left_is_ended_later_and_makes_room_for_the_next(void **state)
{
	const struct hd_batches_ask next = ask_of(7, 3, 1);

	(void)state;
	want(7, 2, 3);
	is(&fake[0], 0, 1, 1);
	hd_batches_leave(batches, 7);
	assert_int_equal(fake[0].want, 0);
	look(HD_BATCHES_LEAVE_NS - 1);
	assert_false(fake[0].ends);
	look(1);
	assert_true(fake[0].ends);
	assert_int_equal(hd_batches_want(batches, &next, NULL), HD_E_AGAIN);
	assert_int_equal(nfakes, 1);
	is(&fake[0], 0, 0, 0);
	assert_int_equal(hd_batches_want(batches, &next, NULL), HD_OK);
	assert_false(fake[0].open);
	assert_int_equal(fake[1].nodes, 1);
	hd_batches_kill(batches, 7);
	assert_true(fake[1].ends);
	hd_batches_forget(batches, 7);
	is(&fake[1], 0, 0, 1);
	assert_int_equal(hd_batches_n(batches), 1);
	is(&fake[1], 0, 0, 0);
	assert_int_equal(hd_batches_n(batches), 0);
}

/* The limit is of running time; the notice comes before the end of Slurm's. */
static void a_time_limit_is_said_if_it_is_shorter_than_the_schedulers(void **state)
{
	static const struct { double limit_s; const char *time; } cases[] = {
		{ 0, "02:00:00" }, { 60, "4" }, { 3600, "63" }, { 7200, "02:00:00" }, { 1e6, "02:00:00" },
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_batches_ask ask = ask_of(1 + i, 1, 1);
		ask.limit_s = cases[i].limit_s;
		assert_int_equal(hd_batches_want(batches, &ask, NULL), HD_OK);
		assert_string_equal(fake[i].time, cases[i].time);
	}
}

static void a_refusal_is_said_once_and_tried_again(void **state)
{
	char text[300];

	(void)state;
	want(7, 1, 1);
	fake[0].refuses = HD_E_INVAL;
	look(0);
	look(HD_BATCHES_REFUSED_NS);
	assert_string_equal(said, "refused 7 no such account\n");
	hd_batches_text(batches, 7, text, sizeof text);
	assert_string_equal(text, "no such account");
	fake[0].refuses = HD_OK;
	look(HD_BATCHES_REFUSED_NS);
	is(&fake[0], 1, 0, 1);
	hd_batches_text(batches, 7, text, sizeof text);
	assert_string_equal(text, "Slurm job 9_0 waits: Priority (1)");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_lease_is_one_batch_job_of_its_nodes_until_it_is_over,
			begin, finish),
		cmocka_unit_test_setup_teardown(
			what_an_earlier_process_asked_for_is_there_until_it_is_known_not_to_be, begin,
				finish),
		cmocka_unit_test_setup_teardown(one_that_is_left_is_ended_later_and_makes_room_for_the_next,
			begin, finish),
		cmocka_unit_test_setup_teardown(a_time_limit_is_said_if_it_is_shorter_than_the_schedulers,
			begin,
			finish),
		cmocka_unit_test_setup_teardown(a_refusal_is_said_once_and_tried_again, begin, finish),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
