#include "launch/local_workers.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sys/file_sim.h"
#include "tests/check.h"

static struct hd_fs fs;
static struct hd_clock real;
static char dir[64];
static const char *const argv_[] = { "heddle", "worker", "--join", "unix:x", NULL };

static int folder(void **state)
{
	(void)state;
	hd_fs_real(&fs);
	hd_clock_real(&real);
	snprintf(dir, sizeof dir, "/tmp/hd_launch_local_test.%d", (int)getpid());
	return hd_fs_mkdirs(&fs, dir, NULL);
}

static int no_folder(void **state)
{
	(void)state;
	return hd_fs_remove_tree(&fs, dir, NULL);
}

static void children_are_started_numbered_and_noticed_when_they_end(void **state)
{
	struct hd_host_sim host;
	struct hd_local_workers local;
	struct hd_child_end end;
	uint32_t number = 99;

	(void)state;
	hd_host_sim_init(&host);
	hd_local_init(&local, &(struct hd_local_spec){ .host = &host.host, .fs = &fs, .clock = &real,
		.dir = dir, .argv = argv_ });
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(hd_local_start(&local, &number, NULL), HD_OK);
		assert_int_equal(number, i);
		assert_string_equal(host.proc[i].args, "heddle worker --join unix:x");
	}
	assert_false(hd_local_ended(&local, &end));
	hd_host_sim_end(&host, 2, 128 + 9);
	assert_true(hd_local_ended(&local, &end));
	assert_int_equal(end.number, 1);
	assert_int_equal(end.pid, 2);
	assert_int_equal(end.code, 137);
	assert_false(hd_local_ended(&local, &end));
	assert_null(hd_local_find(&local, 2));
	assert_int_equal(hd_local_find(&local, 3)->number, 2);
	assert_int_equal(local.n, 2);
	local.ready_ns = 0;
	assert_int_equal(hd_local_start(&local, &number, NULL), HD_OK);
	assert_int_equal(number, 3);              /* not 1 again */
	local.zone = "eu-1a";
	assert_int_equal(hd_local_start(&local, &number, NULL), HD_OK);
	assert_string_equal(host.proc[4].args, "heddle worker --join unix:x --zone eu-1a");
	local.zone = NULL;
	hd_local_finish(&local, 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(host.proc[i].ended);
}

static void a_program_that_cannot_start_is_tried_ever_more_rarely(void **state)
{
	struct hd_clock_sim time;
	struct hd_host_sim host;
	struct hd_local_workers local;
	struct hd_child_end end;
	uint32_t number;
	static const int64_t wait_ms[] = { 100, 200, 400, 800, 1600, 3200, 5000, 5000 };

	(void)state;
	hd_host_sim_init(&host);
	hd_clock_sim(&time, 0, 0);
	hd_local_init(&local, &(struct hd_local_spec){ .host = &host.host, .fs = &fs, .clock = &time.clock,
		.dir = dir, .argv = argv_ });
	for (int k = 0; k < 8; k++) {
		assert_int_equal(hd_local_start(&local, &number, NULL), HD_OK);
		hd_host_sim_end(&host, k + 1, 2);
		assert_true(hd_local_ended(&local, &end));
		(void)hd_local_judge(&local, &end, false);
		assert_int_equal(hd_local_start(&local, NULL, NULL), HD_E_AGAIN);
		assert_int_equal(local.ready_ns - hd_clock_now_ns(&time.clock), wait_ms[k] * 1000000);
		hd_clock_sim_advance(&time, local.ready_ns - hd_clock_now_ns(&time.clock));
	}
	assert_int_equal(hd_local_start(&local, &number, NULL), HD_OK);
	hd_clock_sim_advance(&time, 10 * HD_LOCAL_SHORT_NS);
	hd_host_sim_end(&host, 9, 0);
	assert_true(hd_local_ended(&local, &end));
	assert_false(hd_local_judge(&local, &end, true));
	assert_int_equal(hd_local_start(&local, NULL, NULL), HD_OK);        /* it had worked for a while */
	hd_local_finish(&local, 0);
}

/* Failures alike in a row predict the next; a child that was stopped, or did
 * something before, does not. */
static void failing_alike_is_noticed_however_long_it_takes(void **state)
{
	static const struct { int code; bool did; int64_t lived_s; bool alike, waits; } row[] = {
		{ 3, false, 0, false, true }, { 3, false, 60, false, true }, { 3, false, 1, false, true }, { 5, false, 0, false, true },
		{ 3, false, 9, false, true }, { 3, false, 9, false, true }, { 3, false, 9, false, true }, { 3, false, 9, false, true },
		{ 75, false, 9, false, false }, { 0, false, 9, false, false }, { 3, false, 9, true, true }, { 3, false, 9, true, true },
		{ 3, true, 9, false, false }, { 3, false, 9, false, true }, { 137, false, 9, false, true }, { 130, false, 9, false, false },
		{ 137, false, 9, false, true }, { 137, false, 9, false, true }, { 137, false, 9, false, true }, { 137, false, 9, true, true },
	};
	struct hd_clock_sim time;
	struct hd_host_sim host;
	struct hd_local_workers local;
	struct hd_child_end end;

	(void)state;
	hd_host_sim_init(&host);
	hd_clock_sim(&time, 0, 0);
	hd_local_init(&local, &(struct hd_local_spec){ .host = &host.host, .fs = &fs, .clock = &time.clock,
		.dir = dir, .argv = argv_ });
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		local.mark = 100 + i;
		assert_int_equal(hd_local_start(&local, NULL, NULL), HD_OK);
		local.mark = 0;
		hd_clock_sim_advance(&time, row[i].lived_s * 1000000000);
		hd_host_sim_end(&host, (int)i + 1, row[i].code);
		assert_true(hd_local_ended(&local, &end));
		CHECK(end.mark == 100 + i && end.lived_ns == row[i].lived_s * 1000000000, "row %zu", i);
		CHECK(hd_local_judge(&local, &end, row[i].did) == row[i].alike, "row %zu: %u alike", i,
			local.nalike);
		CHECK((local.ready_ns > hd_clock_now_ns(&time.clock)) == row[i].waits, "row %zu", i);
		hd_clock_sim_advance(&time, 10 * HD_LOCAL_SHORT_NS);
	}
}

/* The line that process 1 of this test has written; "": none within a minute. */
static void read_log(char *text, int cap)
{
	const int64_t until_ns = hd_clock_now_ns(&real) + 60 * HD_NS_PER_S;
	char path[128];

	snprintf(path, sizeof path, "%s/log/hand-1.log", dir);
	for (*text = '\0'; !strchr(text, '\n') && hd_clock_now_ns(&real) < until_ns;) {
		FILE *f = fopen(path, "r");
		if (!f || !fgets(text, cap, f))
			*text = '\0';
		if (f)
			fclose(f);
		hd_clock_wait_until(&real, hd_clock_now_ns(&real) + HD_NS_PER_MS);
	}
}

/* The second one does not end when it is asked to: it says so first, and is asked then. */
static void real_processes_end_with_their_run_and_leave_a_log(void **state)
{
	static const char *const stubborn[] = { "/bin/sh", "-c",
		"trap '' TERM; echo here; exec sleep 300", NULL };
	static const char *const brief[] = { "/bin/sh", "-c", "exit 7", NULL };
	struct hd_host host;
	struct hd_local_workers local;
	struct hd_child_end end = { .code = 0 };
	uint32_t number;
	char text[16];
	int pid;

	(void)state;
	hd_host_real(&host);
	hd_local_init(&local, &(struct hd_local_spec){ .host = &host, .fs = &fs, .clock = &real, .dir = dir,
		.argv = brief });
	assert_int_equal(hd_local_start(&local, &number, NULL), HD_OK);
	for (int i = 0; i < 6000 && !hd_local_ended(&local, &end); i++)
		hd_clock_wait_until(&real, hd_clock_now_ns(&real) + 10000000);
	assert_int_equal(end.code, 7);
	local.spec.argv = stubborn;
	local.ready_ns = 0;
	assert_int_equal(hd_local_start(&local, &number, NULL), HD_OK);
	pid = local.child[0].proc.pid;
	read_log(text, sizeof text);
	assert_string_equal(text, "here\n");
	hd_local_finish(&local, 100000000);
	assert_int_equal(kill(pid, 0), -1);
}

/* Two children a generation. A commit of the step, or an end in another one, ends the series. */
static void generations_that_fall_in_one_step_are_counted(void **state)
{
	static const struct { uint32_t number; int code; uint64_t step; uint32_t passed, want; } row[] = {
		{ 0, 137, 7, 0, 1 }, { 1, 137, 7, 0, 0 }, { 2, 137, 7, 0, 2 }, { 3, 1, 7, 0, 0 }, { 4, 75, 7, 0, 0 }, { 5, 1, 7, 0, 3 },
		{ 6, 137, 7, 6, 4 }, { 7, 137, 7, 0, 0 }, { 8, 137, 3, 0, 1 }, { 9, 137, 3, 0, 0 }, { 10, 137, 7, 0, 1 },
		{ 12, 137, 7, 7, 1 }, { 14, 137, 7, 0, 2 }, { 16, 0, 7, 0, 0 }, { 17, 139, 7, 0, 3 },
	};
	struct hd_local_workers local;

	(void)state;
	hd_local_init(&local, &(struct hd_local_spec){ .dir = dir });
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		local.next = row[i].number / 2 * 2 + 2;
		if (row[i].passed)
			hd_local_passed(&local, row[i].passed);
		const uint32_t n = hd_local_fell(&local, &(struct hd_child_end){ .number = row[i].number,
			.code = row[i].code }, row[i].step);
		CHECK(n == row[i].want, "row %zu: %u generations, wanted %u", i, n, row[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(children_are_started_numbered_and_noticed_when_they_end,
			folder, no_folder),
		cmocka_unit_test_setup_teardown(a_program_that_cannot_start_is_tried_ever_more_rarely, folder,
		no_folder),
		cmocka_unit_test_setup_teardown(failing_alike_is_noticed_however_long_it_takes, folder,
		no_folder),
		cmocka_unit_test(generations_that_fall_in_one_step_are_counted),
		cmocka_unit_test_setup_teardown(real_processes_end_with_their_run_and_leave_a_log, folder,
		no_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
