/* A pilot on files, processes and a clock in memory; the test is its scheduler. */
#include "launch/pilot.h"

#include <stdio.h>
#include <string.h>

#include "sys/file_sim.h"
#include "tests/check.h"

#define S INT64_C(1000000000)
#define TYPE "/D/pilots/v100"
#define RUN "/D/runs/3-gpt"

static struct hd_fs_sim disk;
static struct hd_host_sim host;
static struct hd_clock_sim clock_;
static struct hd_pilot pilot;
static struct hd_pilot_state is;
static char *environment[] = { "SLURM_JOB_ID=79", "SLURM_ARRAY_JOB_ID=77", "SLURM_ARRAY_TASK_ID=1", NULL };

static size_t notice(int64_t ends_wall_ns, char *text, size_t cap)
{
	(void)ends_wall_ns;
	return (size_t)snprintf(text, cap, "leave\n");
}

static void serves(uint64_t beat, bool ended)
{
	const struct hd_pilot_scheduler s = { .beat = beat, .ended = ended };

	assert_int_equal(hd_pilot_scheduler_write(&s, &disk.fs, TYPE "/" HD_PILOT_SCHEDULER, NULL), HD_OK);
}

static const char *file(const char *what)
{
	static char path[200];

	snprintf(path, sizeof path, TYPE "/%s%s", pilot.name, what);
	return path;
}

static bool has(const char *what)
{
	struct hd_stat stat;

	return hd_fs_stat(&disk.fs, what, &stat, NULL) == HD_OK;
}

static void order(uint64_t n, enum hd_pilot_what what)
{
	const struct hd_pilot_order o = { .n = n, .what = what, .job = 3, .lease = 2, .run = RUN,
		.device = "v100-0" };

	assert_int_equal(hd_pilot_order_write(&o, &disk.fs, file(".order"), NULL), HD_OK);
}

static void turn(enum hd_err expected, bool stop)
{
	hd_clock_sim_advance(&clock_, HD_PILOT_LOOK_NS);
	assert_int_equal(hd_pilot_turn(&pilot, stop, NULL), expected);
	if (expected == HD_E_AGAIN)
		assert_int_equal(hd_pilot_state_read(&is, &disk.fs, file(".state"), NULL), HD_OK);
}

static void listens(void)
{
	assert_int_equal(hd_file_write_atomic(&disk.fs, RUN "/listen", "10.0.0.1:7", 10, NULL), HD_OK);
}

static int begin(void **state)
{
	static const char *const folders[] = { TYPE, RUN "/log" };

	(void)state;
	hd_fs_sim_init(&disk);
	hd_host_sim_init(&host);
	hd_clock_sim(&clock_, S, S);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(hd_fs_mkdirs(&disk.fs, folders[i], NULL), HD_OK);
	serves(1, false);
	const struct hd_pilot_spec spec = { .host = &host.host, .fs = &disk.fs, .clock = &clock_.clock,
		.dir = TYPE, .program = "/bin/heddle", .extra = { "--devices", "1" }, .nextra = 2,
		.environment = environment, .notice = notice };
	assert_int_equal(hd_pilot_open(&pilot, &spec, NULL), HD_OK);
	turn(HD_E_AGAIN, false);
	return 0;
}

static int finish(void **state)
{
	(void)state;
	hd_pilot_close(&pilot);
	hd_fs_sim_finish(&disk);
	return 0;
}

static void works(void)
{
	listens();
	order(1, HD_PILOT_WORK);
	turn(HD_E_AGAIN, false);
	assert_int_equal(host.n, 1);
	assert_int_equal(is.worker, 1);
}

static void it_says_where_it_is_and_begins_a_worker_once_its_run_listens(void **state)
{
	(void)state;
	assert_string_equal(is.place, "Slurm job 77_1");
	assert_int_equal(is.job, 0);
	order(1, HD_PILOT_WORK);
	turn(HD_E_AGAIN, false);
	assert_int_equal(is.job, 3);
	assert_int_equal(is.n, 1);
	assert_int_equal(host.n, 0);
	listens();
	turn(HD_E_AGAIN, false);
	assert_string_equal(host.proc[0].args, "/bin/heddle worker --join " RUN " --far -q --devices 1");
	assert_true(has(RUN "/log/v100-0.log"));
	turn(HD_E_AGAIN, false);
	assert_int_equal(host.n, 1);              /* the same order, read again */
	hd_host_sim_end(&host, 1, 75);
	turn(HD_E_AGAIN, false);
	assert_int_equal(is.job, 0);
	assert_int_equal(is.code, 75);
	order(2, HD_PILOT_WORK);
	turn(HD_E_AGAIN, false);
	assert_int_equal(host.n, 2);
}

static void a_run_that_never_listens_is_given_up(void **state)
{
	(void)state;
	order(1, HD_PILOT_WORK);
	turn(HD_E_AGAIN, false);
	hd_clock_sim_advance(&clock_, HD_PILOT_START_NS);
	serves(2, false);
	turn(HD_E_AGAIN, false);
	assert_int_equal(is.job, 0);
	assert_int_equal(is.code, hd_err_exit(HD_E_PEERLOST));
	assert_int_equal(host.n, 0);
}

static void each_order_to_leave_is_one_signal(void **state)
{
	(void)state;
	works();
	order(2, HD_PILOT_LEAVE);
	turn(HD_E_AGAIN, false);
	turn(HD_E_AGAIN, false);
	assert_int_equal(host.proc[0].signals, 1u << HD_PROC_TERM);
	order(3, HD_PILOT_KILL);
	turn(HD_E_AGAIN, false);
	assert_true(host.proc[0].signals & 1u << HD_PROC_KILL);
}

/* The batch system may signal pilot and worker alike: notice, and no signal of ours. */
static void a_node_that_is_taken_back_is_noticed_and_left_when_its_worker_has(void **state)
{
	(void)state;
	works();
	turn(HD_E_AGAIN, true);
	assert_true(is.leaving);
	assert_true(has(file(".notice")));
	order(2, HD_PILOT_LEAVE);
	turn(HD_E_AGAIN, true);
	assert_int_equal(host.proc[0].signals, 0);
	hd_host_sim_end(&host, 1, 0);
	turn(HD_E_PREEMPTED, true);
	hd_pilot_close(&pilot);
	assert_false(has(file(".state")) || has(file(".order")) || has(file(".notice")));
}

static void without_a_scheduler_it_goes_but_not_from_its_work(void **state)
{
	(void)state;
	works();
	hd_clock_sim_advance(&clock_, HD_PILOT_ALONE_NS);
	turn(HD_E_AGAIN, false);
	hd_host_sim_end(&host, 1, 75);
	turn(HD_OK, false);
}

static void a_beat_is_patience_and_an_end_is_less(void **state)
{
	(void)state;
	for (uint64_t beat = 2; beat < 6; beat++) {
		hd_clock_sim_advance(&clock_, HD_PILOT_ALONE_NS - S);
		serves(beat, false);
		turn(HD_E_AGAIN, false);
	}
	serves(7, true);
	turn(HD_E_AGAIN, false);
	hd_clock_sim_advance(&clock_, HD_PILOT_ENDED_NS - S);
	serves(8, false);                         /* the next scheduler is there */
	turn(HD_E_AGAIN, false);
	hd_clock_sim_advance(&clock_, HD_PILOT_ENDED_NS);
	turn(HD_E_AGAIN, false);
	serves(9, true);
	turn(HD_E_AGAIN, false);
	hd_clock_sim_advance(&clock_, HD_PILOT_ENDED_NS);
	turn(HD_OK, false);
}

static void it_goes_when_it_is_sent_away(void **state)
{
	(void)state;
	works();
	order(2, HD_PILOT_GO);
	turn(HD_E_AGAIN, false);
	assert_int_equal(host.proc[0].signals, 1u << HD_PROC_TERM);
	hd_host_sim_end(&host, 1, 75);
	turn(HD_OK, false);
}

static void files_that_are_none_change_nothing(void **state)
{
	static const char *const bad[] = { "", "[]", "{\"n\":1,\"do\":\"dance\"}", "{\"n\":-1}",
		"{\"n\":2,\"do\":\"go\"",
		"{\"n\":2,\"do\":\"go\",\"device\":7}" };
	struct hd_pilot_order o = { .n = 77 };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(hd_file_write_atomic(&disk.fs, file(".order"), bad[i], strlen(bad[i]), NULL),
			HD_OK);
		CHECK(hd_pilot_order_read(&o, &disk.fs, file(".order"), NULL) != HD_OK && o.n == 77, "%s",
			bad[i]);
		turn(HD_E_AGAIN, false);
		assert_int_equal(is.n, 0);
	}
	assert_false(hd_pilot_is_folder(&disk.fs, RUN));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(it_says_where_it_is_and_begins_a_worker_once_its_run_listens),
		TEST(a_run_that_never_listens_is_given_up),
		TEST(each_order_to_leave_is_one_signal),
		TEST(a_node_that_is_taken_back_is_noticed_and_left_when_its_worker_has),
		TEST(without_a_scheduler_it_goes_but_not_from_its_work),
		TEST(a_beat_is_patience_and_an_end_is_less),
		TEST(it_goes_when_it_is_sent_away),
		TEST(files_that_are_none_change_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
