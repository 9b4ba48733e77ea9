#define _GNU_SOURCE
#include "sys/usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/clock.h"
#include "sys/thread.h"
#include "tests/check.h"

struct other { struct hd_usage *usage; bool known; uint64_t ran, waited; };

static void spin(int64_t ns)
{
	const int64_t until = hd_clock_thread_ns() + ns;

	while (hd_clock_thread_ns() < until)
		;
}

static void read_other(void *user)
{
	struct other *o = user;

	o->known = hd_usage_read(o->usage, &o->ran, &o->waited);
}

/* The clock of the thread is another count of the same. */
static void a_thread_has_run_at_least_what_its_clock_says_between(void **state)
{
	(void)state;
	struct hd_usage usage = HD_USAGE_CLOSED;
	uint64_t ran, waited, later, still;

	if (!hd_usage_read(&usage, &ran, &waited))
		SKIP("the system does not count what threads wait for processors");
	spin(20000000);
	assert_true(hd_usage_read(&usage, &later, &still));
	assert_true(later >= ran + 15000000 && still >= waited);
	/* a thread of its own counts its own */
	struct other other = { .usage = &usage };
	struct hd_thread thread;
	assert_int_equal(hd_thread_start(&thread, "other", -1, read_other, &other, NULL), HD_OK);
	hd_thread_join(&thread);
	assert_true(other.known && other.ran < later);
	assert_true(hd_usage_read(&usage, &ran, &waited) && ran >= later);
	hd_usage_close(&usage);
	hd_usage_close(&usage);
}

static void what_is_held_never_goes_back_nor_outruns_the_clock(void **state)
{
	(void)state;
	struct hd_throttle h = { 0 };

	hd_throttle_grow(&h, 5000, 100);          /* the past of its first group is not its own */
	assert_int_equal(h.ns, 0);
	hd_throttle_grow(&h, 5030, 200);
	assert_int_equal(h.ns, 30);
	hd_throttle_grow(&h, 5280, 300);          /* two processors: 250 of 100 */
	assert_int_equal(h.ns, 130);
	hd_throttle_grow(&h, 5280, 400);          /* or counted late: what is owed comes later */
	assert_int_equal(h.ns, 230);
	hd_throttle_grow(&h, 7, 1000);            /* another group */
	assert_int_equal(h.ns, 280);
	hd_throttle_grow(&h, UINT64_C(1) << 60, 1001);    /* one with a past */
	assert_int_equal(h.ns, 281);
	hd_throttle_grow(&h, UINT64_C(1) << 60, UINT64_C(1) << 50);
	assert_true(h.ns <= 1000000281);
	hd_throttle_grow(&h, UINT64_C(1) << 60, UINT64_C(1) << 55);
	assert_true(h.ns <= 1000000281);
}

static bool write_to(const char *folder, const char *file, const char *text)
{
	char path[160];

	snprintf(path, sizeof path, "%s/%s", folder, file);
	FILE *f = fopen(path, "w");
	if (!f)
		return false;
	const bool good = fputs(text, f) >= 0;
	return fclose(f) == 0 && good;
}

/* A hundredth of a processor in periods of 100 ms: 5 ms of work are held back, however busy the machine. */
static int child_in(const char *folder)
{
	uint64_t before, after;
	char pid[32];

	snprintf(pid, sizeof pid, "%d", (int)getpid());
	if (!write_to(folder, "cgroup.procs", pid))
		return 77;
	if (!hd_throttle_read(&before))
		return 1;
	spin(5000000);
	return hd_throttle_read(&after) && after > before ? 0 : 2;
}

static void a_process_with_a_quota_is_held_back(void **state)
{
	(void)state;
	char folder[128];
	int status = 0;

	snprintf(folder, sizeof folder, "/sys/fs/cgroup/cpu/hd_usage_test.%d", (int)getpid());
	if (mkdir(folder, 0700) || !write_to(folder, "cpu.cfs_quota_us", "1000")) {
		rmdir(folder);
		SKIP("no control group with a quota can be made");
	}
	const pid_t child = fork();
	if (child == 0)
		_exit(child_in(folder));
	assert_int_equal(waitpid(child, &status, 0), child);
	rmdir(folder);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_has_run_at_least_what_its_clock_says_between),
		cmocka_unit_test(what_is_held_never_goes_back_nor_outruns_the_clock),
		cmocka_unit_test(a_process_with_a_quota_is_held_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
