#include "serve/standing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/process.h"
#include "tests/check.h"

static struct hd_fs fs;
static struct hd_clock clock_;
static struct hd_net net;
static char folder[40], run[80];

static int fresh(void **state)
{
	(void)state;
	hd_fs_real(&fs);
	hd_clock_real(&clock_);
	hd_net_real(&net);
	snprintf(folder, sizeof folder, "/tmp/hd_standing.XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(run, sizeof run, "%s/run", folder);
	return 0;
}

static int gone(void **state)
{
	(void)state;
	return hd_fs_remove_tree(&fs, folder, NULL);
}

static void who_holds_a_run_says_as_what(void **state)
{
	static const enum hd_hold as[] = { HD_HOLD_ALONE, HD_HOLD_CONDUCTS, HD_HOLD_BEGINS };
	struct hd_rundir dir;
	struct hd_standing at;
	enum hd_hold hold;
	int pid = 0;
	(void)state;

	assert_int_equal(hd_rundir_held(&fs, run, &hold, &pid, NULL), HD_OK);
	assert_int_equal(hold, HD_HOLD_NONE);
	assert_int_equal(hd_rundir_create(&dir, &fs, &clock_, "", run, "n", "{}", 2, NULL), HD_OK);
	assert_int_equal(hd_standing_look(&fs, run, &at, NULL), HD_OK);
	CHECK(at.hold == HD_HOLD_BEGINS && at.pid == getpid() && !at.workers, "hold %d, process %d", (int)at.hold, at.pid);
	for (size_t i = 0; i < sizeof as / sizeof *as; i++) {
		hd_rundir_hold_as(&dir, as[i]);
		assert_int_equal(hd_rundir_held(&fs, run, &hold, &pid, NULL), HD_OK);
		CHECK(hold == as[i] && pid == getpid(), "hold %d, process %d", (int)hold, pid);
	}
	hd_rundir_close(&dir);
	assert_int_equal(hd_standing_look(&fs, run, &at, NULL), HD_OK);
	assert_int_equal(at.hold, HD_HOLD_NONE);
}

/* What an earlier program left there, or another machine whose processes are others. */
static void a_number_that_names_nobody_is_not_believed(void **state)
{
	static const char *const texts[] = { "", "alone", "alone 4194304 5\n", "alone 1 0\n", "who 1 2\n" };
	struct hd_rundir dir;
	char path[120];
	(void)state;

	assert_int_equal(hd_rundir_create(&dir, &fs, &clock_, "", run, "n", "{}", 2, NULL), HD_OK);
	snprintf(path, sizeof path, "%s/lock", run);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		enum hd_hold hold;
		int pid = -1;
		assert_int_equal(hd_file_truncate(&dir.lock, 0, NULL), HD_OK);
		if (*texts[i])
			assert_int_equal(hd_file_pwrite(&dir.lock, texts[i], strlen(texts[i]), 0, NULL), HD_OK);
		assert_int_equal(hd_rundir_held(&fs, run, &hold, &pid, NULL), HD_OK);
		CHECK(hold == HD_HOLD_BEGINS && pid == 0, "\"%s\": hold %d, process %d", texts[i], (int)hold, pid);
	}
	hd_rundir_close(&dir);
}

/* Looking takes the lock for an instant: who comes then is not refused. */
static void who_comes_while_somebody_looks_gets_in(void **state)
{
	struct hd_rundir dir;
	char path[120];
	int told[2], status;
	char word;
	(void)state;

	assert_int_equal(hd_rundir_create(&dir, &fs, &clock_, "", run, "n", "{}", 2, NULL), HD_OK);
	hd_rundir_close(&dir);
	snprintf(path, sizeof path, "%s/lock", run);
	assert_int_equal(pipe(told), 0);
	pid_t child = fork();
	if (!child) {
		struct hd_file file;
		enum hd_err err = hd_file_open(&fs, path, HD_OPEN_READ, &file, NULL);
		err = err ? err : hd_file_lock(&file, NULL);
		word = err ? 'n' : 'y';
		if (write(told[1], &word, 1) == 1)
			hd_clock_wait_until(&clock_, hd_clock_now_ns(&clock_) + 20 * HD_NS_PER_MS);
		_exit(0);
	}
	assert_int_equal(read(told[0], &word, 1), 1);
	assert_int_equal(word, 'y');
	assert_int_equal(hd_rundir_open(&dir, &fs, &clock_, run, NULL), HD_OK);
	hd_rundir_close(&dir);
	assert_int_equal(waitpid(child, &status, 0), child);
	close(told[0]);
	close(told[1]);
}

static void listen_as(uint32_t pid, struct hd_sock *sock)
{
	char name[HD_POST_NAME], addr[HD_ADDR_CAP + HD_POST_NAME];

	hd_post_name(pid, name);
	snprintf(addr, sizeof addr, "unix:%s/%s", run, name);
	assert_int_equal(hd_sock_listen(&net, addr, sock, NULL), HD_OK);
}

static bool is_there(const char *name)
{
	char path[160];
	struct hd_stat stat;

	snprintf(path, sizeof path, "%s/%s", run, name);
	return !hd_fs_stat(&fs, path, &stat, NULL);
}

static void workers_count_while_they_listen_and_the_dead_are_swept(void **state)
{
	static const char *const not_ours[] = { "w.sock", "w1x.sock", "x1.sock", "w1.sock2", "w99999999999.sock" };
	struct hd_sock here, dead, mute;
	struct hd_standing at;
	struct hd_rundir dir;
	uint32_t living = 9;
	(void)state;

	assert_int_equal(hd_rundir_create(&dir, &fs, &clock_, "", run, "n", "{}", 2, NULL), HD_OK);
	for (size_t i = 0; i < sizeof not_ours / sizeof *not_ours; i++)
		assert_int_equal(hd_rundir_put(&dir, not_ours[i], "x", 1, NULL), HD_OK);
	assert_int_equal(hd_posts_look(&fs, run, true, &living, NULL), HD_OK);
	assert_int_equal(living, 0);
	listen_as((uint32_t)getppid(), &here);
	listen_as(4194304, &dead);                /* the kernel's processes end below */
	listen_as((uint32_t)getpid(), &mute);     /* it lives and does not listen yet */
	close(dead.id);
	close(mute.id);
	for (int sweep = 0; sweep < 2; sweep++) {
		assert_int_equal(hd_posts_look(&fs, run, sweep, &living, NULL), HD_OK);
		assert_int_equal(living, 1);
		CHECK(is_there("w4194304.sock") == !sweep, "the dead worker's socket, sweep %d", sweep);
	}
	assert_int_equal(hd_standing_look(&fs, run, &at, NULL), HD_OK);
	CHECK(at.workers == 1 && at.hold == HD_HOLD_NONE, "%u workers, hold %d", at.workers, (int)at.hold);
	for (size_t i = 0; i < sizeof not_ours / sizeof *not_ours; i++)
		CHECK(is_there(not_ours[i]), "%s was swept", not_ours[i]);
	char name[HD_POST_NAME];
	hd_post_name((uint32_t)getpid(), name);
	CHECK(is_there(name), "%s was swept", name);
	hd_sock_close(&here);
	hd_rundir_close(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_holds_a_run_says_as_what, fresh, gone),
		cmocka_unit_test_setup_teardown(a_number_that_names_nobody_is_not_believed, fresh, gone),
		cmocka_unit_test_setup_teardown(who_comes_while_somebody_looks_gets_in, fresh, gone),
		cmocka_unit_test_setup_teardown(workers_count_while_they_listen_and_the_dead_are_swept, fresh, gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
