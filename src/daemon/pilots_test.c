/* Pilots on files in memory, a launcher that only remembers; the test plays the pilots. */
#include "daemon/pilots.h"

#include <stdio.h>
#include <string.h>

#include "sys/file_sim.h"
#include "tests/check.h"

#define S INT64_C(1000000000)

static struct hd_fs_sim disk;
static struct hd_clock_sim clock_;
static struct hd_pools pools;
static struct hd_pilots *pilots;
static char said[2000];
static uint32_t wanted[2];
static bool stopped[2];

static void l_want(struct hd_launcher *l, uint32_t n);
static enum hd_err l_look(struct hd_launcher *l, struct hd_diag *diag) { (void)l, (void)diag; return HD_OK; }
static bool l_ended(struct hd_launcher *l, struct hd_launcher_end *end) { (void)l, (void)end; return false; }
static void l_count(const struct hd_launcher *l, struct hd_launcher_count *count);
static enum hd_err l_stop(struct hd_launcher *l, int64_t grace_ns, struct hd_diag *diag);
static const struct hd_launcher_ops ops = { .name = "test", .want = l_want, .look = l_look, .ended = l_ended,
	.count = l_count, .stop = l_stop };
static struct hd_launcher launcher[2] = { { .ops = &ops }, { .ops = &ops } };

static void l_want(struct hd_launcher *l, uint32_t n) { wanted[l - launcher] = n; }
static void l_count(const struct hd_launcher *l, struct hd_launcher_count *count)
{
	*count = (struct hd_launcher_count){ .waiting = 1, .running = (uint32_t)(l - launcher), .why =
		"Resources (1)" };
}
static enum hd_err l_stop(struct hd_launcher *l, int64_t grace_ns, struct hd_diag *diag)
{
	(void)grace_ns, (void)diag;
	stopped[l - launcher] = true;
	return HD_OK;
}

static void say(void *user, const char *kind, const char *text)
{
	(void)user;
	snprintf(said + strlen(said), sizeof said - strlen(said), "%s %s\n", kind, text);
}

static struct hd_pilots_spec spec_of(void)
{
	return (struct hd_pilots_spec){ .fs = &disk.fs, .clock = &clock_.clock, .dir = "/D", .pools = &pools,
		.launcher = { &launcher[0], &launcher[1] }, .least = 0, .most = 4, .idle_ns = 10 * S,
		.own = "10.0.0.1" };
}

static void open_(void)
{
	const struct hd_pilots_spec spec = spec_of();

	said[0] = '\0';
	assert_int_equal(hd_pilots_open(&pilots, &spec, say, NULL, NULL), HD_OK);
}

static int begin(void **state)
{
	(void)state;
	memset(&pools, 0, sizeof pools);
	memset(stopped, 0, sizeof stopped);
	hd_fs_sim_init(&disk);
	hd_clock_sim(&clock_, S, 1000 * S);
	assert_int_equal(hd_pools_add(&pools, "v100:2:3", NULL), HD_OK);
	assert_int_equal(hd_pools_add(&pools, "k80:3", NULL), HD_OK);
	assert_int_equal(hd_pools_open(&pools, &disk.fs, NULL), HD_OK);
	open_();
	return 0;
}

static int finish(void **state)
{
	(void)state;
	hd_pilots_close(pilots);
	hd_pools_close(&pools);
	hd_fs_sim_finish(&disk);
	return 0;
}

/* k80-0 to k80-2 are devices 0 to 2, v100-0 and v100-1 are 3 and 4 */
static void is(const char *name, struct hd_pilot_state state)
{
	char path[200];

	snprintf(path, sizeof path, "/D/pilots/%s.state", name);
	snprintf(state.node, sizeof state.node, "%s", strchr(name, '/') + 1);
	assert_int_equal(hd_pilot_state_write(&state, &disk.fs, path, NULL), HD_OK);
}

static struct hd_pilot_order order_of(const char *name)
{
	struct hd_pilot_order order = { 0 };
	char path[200];

	snprintf(path, sizeof path, "/D/pilots/%s.order", name);
	assert_int_equal(hd_pilot_order_read(&order, &disk.fs, path, NULL), HD_OK);
	return order;
}

static void look(int64_t after_ns)
{
	hd_clock_sim_advance(&clock_, after_ns);
	hd_pilots_look(pilots);
}

static void work(uint32_t device, uint64_t job)
{
	const struct hd_pilot_order order = { .what = HD_PILOT_WORK, .job = job, .lease = 1, .run =
		"/D/runs/1" };

	assert_int_equal(hd_pilots_order(pilots, device, &order, NULL), HD_OK);
}

static void a_pilot_fills_a_device_of_its_type_until_it_is_gone(void **state)
{
	(void)state;
	is("v100/a", (struct hd_pilot_state){ .beat = 1, .place = "Slurm job 7_0" });
	is("k80/b", (struct hd_pilot_state){ .beat = 1 });
	look(S);
	assert_non_null(hd_pilots_at(pilots, 3));
	assert_non_null(hd_pilots_at(pilots, 0));
	assert_null(hd_pilots_at(pilots, 1));
	assert_non_null(strstr(said, "v100-0 is a, Slurm job 7_0"));
	assert_string_equal(order_of("v100/a").device, "v100-0");
	is("v100/a", (struct hd_pilot_state){ .beat = 2, .leaving = true });
	look(S);
	assert_null(hd_pilots_at(pilots, 3));
	assert_non_null(hd_pilots_any(pilots, 3));
	assert_int_equal(hd_fs_unlink(&disk.fs, "/D/pilots/v100/a.state", NULL), HD_OK);
	look(S);
	assert_null(hd_pilots_any(pilots, 3));
	assert_non_null(strstr(said, "was taken back"));
}

static void one_that_is_silent_is_gone_and_its_files_with_it(void **state)
{
	struct hd_stat stat;

	(void)state;
	is("k80/b", (struct hd_pilot_state){ .beat = 1, .job = 4 });
	look(S);
	look(HD_PILOTS_SILENT_NS - S);
	assert_non_null(hd_pilots_at(pilots, 0));
	look(S);
	assert_null(hd_pilots_any(pilots, 0));
	assert_int_equal(hd_fs_stat(&disk.fs, "/D/pilots/k80/b.state", &stat, NULL), HD_E_NOTFOUND);
	assert_int_equal(hd_fs_stat(&disk.fs, "/D/pilots/k80/b.order", &stat, NULL), HD_E_NOTFOUND);
}

static void work_is_there_from_its_order_to_its_end(void **state)
{
	(void)state;
	is("v100/a", (struct hd_pilot_state){ .beat = 1 });
	look(S);
	const struct hd_pilot_seen *s = hd_pilots_at(pilots, 3);
	assert_false(hd_pilots_work(s));
	work(3, 9);
	assert_true(hd_pilots_work(s));
	const uint64_t n = order_of("v100/a").n;
	work(3, 9);                               /* orders come again */
	assert_int_equal(order_of("v100/a").n, n);
	is("v100/a", (struct hd_pilot_state){ .beat = 2, .n = n, .job = 9, .lease = 1 });
	look(S);
	assert_true(hd_pilots_work(s));
	is("v100/a", (struct hd_pilot_state){ .beat = 3, .n = n, .code = 75 });
	look(S);
	assert_false(hd_pilots_work(s));
	work(3, 9);                               /* its worker ended: another one */
	assert_int_equal(order_of("v100/a").n, n + 1);
}

/* Leases are of devices by name: a pilot is the same device to the next scheduler, in whichever order pilots
 * are found. */
static void the_next_scheduler_finds_the_same_devices(void **state)
{
	(void)state;
	is("k80/z", (struct hd_pilot_state){ .beat = 1 });
	look(S);
	is("k80/a", (struct hd_pilot_state){ .beat = 1 });
	look(S);
	work(0, 5);
	hd_pilots_close(pilots);
	open_();
	assert_string_equal(hd_pilots_at(pilots, 0)->name, "z");
	assert_string_equal(hd_pilots_at(pilots, 1)->name, "a");
	assert_true(hd_pilots_work(hd_pilots_at(pilots, 0)));
	assert_int_equal(hd_pilots_at(pilots, 0)->order.job, 5);
	/* the host's number came round: another process, with nothing of the first */
	is("k80/z", (struct hd_pilot_state){ .beat = 5, .n = 2, .job = 5 });
	look(S);
	is("k80/z", (struct hd_pilot_state){ .beat = 1 });
	look(S);
	assert_null(hd_pilots_any(pilots, 0));
	is("k80/z", (struct hd_pilot_state){ .beat = 2 });
	look(S);
	assert_false(hd_pilots_work(hd_pilots_at(pilots, 0)));
}

static void more_is_asked_for_at_once_and_less_after_a_while(void **state)
{
	bool busy[HD_POOL_DEVICES] = { false };

	(void)state;
	hd_pilots_want(pilots, (uint32_t[HD_DISPATCH_TYPES]){ 2, 1 }, busy);
	assert_int_equal(wanted[0], 2);
	assert_int_equal(wanted[1], 1);
	is("k80/a", (struct hd_pilot_state){ .beat = 1 });
	is("k80/b", (struct hd_pilot_state){ .beat = 1 });
	look(S);
	busy[1] = true;
	hd_pilots_want(pilots, (uint32_t[HD_DISPATCH_TYPES]){ 0 }, busy);
	hd_clock_sim_advance(&clock_, 9 * S);
	hd_pilots_want(pilots, (uint32_t[HD_DISPATCH_TYPES]){ 1 }, busy);
	assert_int_equal(wanted[0], 2);
	hd_clock_sim_advance(&clock_, S);
	hd_pilots_want(pilots, (uint32_t[HD_DISPATCH_TYPES]){ 0 }, busy);
	assert_int_equal(wanted[0], 0);
	assert_int_equal(order_of("k80/a").what, HD_PILOT_GO);
	assert_int_equal(order_of("k80/b").what, HD_PILOT_REST);          /* it has a job */
	assert_null(hd_pilots_at(pilots, 0));
	assert_non_null(hd_pilots_at(pilots, 1));
}

static void one_too_many_is_sent_away_and_at_the_end_all(void **state)
{
	struct hd_pilot_scheduler scheduler;

	(void)state;
	for (int i = 0; i < 3; i++) {
		char name[16];
		snprintf(name, sizeof name, "v100/%c", 'a' + i);
		is(name, (struct hd_pilot_state){ .beat = 1 });
	}
	look(S);
	assert_int_equal(order_of("v100/c").what, HD_PILOT_GO);
	assert_int_equal(hd_pilots_stop(pilots, false, NULL), HD_OK);
	assert_int_equal(order_of("v100/a").what, HD_PILOT_REST);
	assert_false(stopped[0] || stopped[1]);
	assert_int_equal(hd_pilots_stop(pilots, true, NULL), HD_OK);
	assert_int_equal(order_of("v100/a").what, HD_PILOT_GO);
	assert_true(stopped[0] && stopped[1]);
	assert_int_equal(hd_pilot_scheduler_read(&scheduler, &disk.fs, "/D/pilots/k80/scheduler", NULL),
		HD_OK);
	assert_true(scheduler.ended);
}

enum { K80, V100 };
/* of one that waits, on either; of one that runs */
#define WAITS(least, most) { least, most, 0, 0, { true, true } }
#define RUNS(least, most, now, type) { least, most, now, type, { true, true } }

static void nodes_are_asked_for_by_what_would_let_all_jobs_run(void **state)
{
	static const struct { struct hd_pilots_ask ask[4]; uint32_t n, least, most, want[2]; } cases[] = {
		{ .n = 0, .most = 4, .want = { 0, 0 } },
		{ .n = 0, .least = 3, .most = 4, .want = { 1, 2 } },      /* the faster first */
		{ { WAITS(1, 1) }, 1, 0, 4, { 0, 1 } },
		{ { WAITS(2, 2), WAITS(2, 2) }, 2, 0, 4, { 2, 2 } },
		/* three at once are on k80 alone; the second job still gets the others */
		{ { WAITS(3, 3), WAITS(1, 1) }, 2, 0, 4, { 3, 1 } },
		{ { WAITS(2, 2), WAITS(2, 2) }, 2, 0, 3, { 0, 2 } },
		{ { { 1, 8, 0, 0, { true, false } } }, 1, 0, 2, { 2, 0 } },       /* as many as there may be */
		{ { WAITS(1, 1), RUNS(1, 2, 2, K80) }, 2, 0, 4, { 2, 1 } },
		{ { WAITS(4, 4) }, 1, 0, 4, { 0, 0 } },                   /* no type has so many */
		{ { { 1, 1, 0, 0, { false, false } } }, 1, 0, 4, { 0, 0 } },      /* it runs nowhere */
		/* of one that runs what it has is kept, whatever the order */
		{ { WAITS(2, 2), RUNS(1, 1, 1, V100) }, 2, 0, 4, { 2, 1 } },
	};
	uint32_t want[HD_DISPATCH_TYPES];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		hd_pilots_plan(&pools, cases[i].least, cases[i].most, (uint32_t[HD_DISPATCH_TYPES]){ 3, 2 },
			cases[i].ask, cases[i].n, want);
		CHECK(want[K80] == cases[i].want[K80] && want[V100] == cases[i].want[V100],
			"case %zu: %u %u", i,
			want[K80], want[V100]);
	}
}

/* The faster nodes are taken by others: what waits for them runs on those that there are. */
static void a_type_whose_nodes_do_not_come_is_passed_over(void **state)
{
	static const struct hd_pilots_ask two = WAITS(2, 2), three = WAITS(3, 3), runs = RUNS(2, 2, 2, V100);
	uint32_t can[HD_DISPATCH_TYPES], want[HD_DISPATCH_TYPES];

	(void)state;
	is("v100/a", (struct hd_pilot_state){ .beat = 1 });
	look(S);                                  /* one waits in either queue */
	look(HD_PILOTS_STUCK_NS - S);
	hd_pilots_can(pilots, can);
	assert_int_equal(can[V100], 2);
	is("k80/b", (struct hd_pilot_state){ .beat = 1 });
	is("v100/a", (struct hd_pilot_state){ .beat = 2 });
	look(S);
	hd_pilots_can(pilots, can);
	assert_int_equal(can[V100], 1);
	assert_int_equal(can[K80], 3);            /* one came just now */
	hd_pilots_plan(&pools, 0, 4, can, &two, 1, want);
	assert_int_equal(want[K80], 2);
	assert_int_equal(want[V100], 0);
	hd_pilots_plan(&pools, 0, 4, can, &runs, 1, want);
	assert_int_equal(want[V100], 2);          /* one that has some there stays */
	can[K80] = 0;
	hd_pilots_plan(&pools, 0, 4, can, &three, 1, want);
	assert_int_equal(want[K80], 3);           /* there is no other way */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_pilot_fills_a_device_of_its_type_until_it_is_gone),
		TEST(one_that_is_silent_is_gone_and_its_files_with_it),
		TEST(work_is_there_from_its_order_to_its_end),
		TEST(the_next_scheduler_finds_the_same_devices),
		TEST(more_is_asked_for_at_once_and_less_after_a_while),
		TEST(one_too_many_is_sent_away_and_at_the_end_all),
		TEST(a_type_whose_nodes_do_not_come_is_passed_over),
		TEST(nodes_are_asked_for_by_what_would_let_all_jobs_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
