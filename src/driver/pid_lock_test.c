#include "driver/pid_lock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/process.h"
#include "tests/check.h"

static struct hd_fs fs;
static struct hd_clock clock_;
static char folder[40], path[80];

static int fresh(void **state)
{
	(void)state;
	hd_fs_real(&fs);
	hd_clock_real(&clock_);
	snprintf(folder, sizeof folder, "/tmp/hd_pid_lock.XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/seat", folder);
	return 0;
}

static int gone(void **state)
{
	(void)state;
	return hd_fs_remove_tree(&fs, folder, NULL);
}

static void who_sits_is_seen_until_it_ends_whichever_way(void **state)
{
	struct hd_pid_lock_holder holder = { 0 };
	struct hd_file lock;
	int status;
	char word;
	int ready[2];
	(void)state;

	assert_int_equal(hd_pid_lock_look(&fs, path, &holder, NULL), HD_E_NOTFOUND);
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (!child) {
		enum hd_err err = hd_pid_lock_take(&lock, &fs, &clock_, path, 7, 3, NULL);
		word = err ? 'n' : 'y';
		_exit(write(ready[1], &word, 1) == 1 ? pause() : 1);
	}
	assert_int_equal(read(ready[0], &word, 1), 1);
	assert_int_equal(word, 'y');
	assert_int_equal(hd_pid_lock_look(&fs, path, &holder, NULL), HD_OK);
	CHECK(holder.job == 7 && holder.lease == 3 && holder.pid == child, "job %llu, process %d",
		(unsigned long long)holder.job, holder.pid);
	assert_int_equal(hd_pid_lock_take(&lock, &fs, &clock_, path, 8, 1, NULL), HD_E_AGAIN);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(hd_pid_lock_look(&fs, path, &holder, NULL), HD_E_NOTFOUND);
	assert_int_equal(hd_pid_lock_take(&lock, &fs, &clock_, path, 8, 1, NULL), HD_OK);
	assert_int_equal(hd_pid_lock_look(&fs, path, &holder, NULL), HD_OK);
	CHECK(holder.job == 8 && holder.pid == getpid(), "the next one");
	assert_int_equal(hd_file_close(&lock, NULL), HD_OK);
	close(ready[0]);
	close(ready[1]);
}

/* The lock shows that a process is alive; the text of another process must not be taken for its own. */
static void a_number_that_another_process_has_now_is_nobodys(void **state)
{
	struct hd_pid_lock_holder holder = { 0 };
	struct hd_file lock;
	char text[80];
	(void)state;

	assert_int_equal(hd_pid_lock_take(&lock, &fs, &clock_, path, 7, 3, NULL), HD_OK);
	int n = snprintf(text, sizeof text, "9 9 %d %llu\n", (int)getpid(),
		(unsigned long long)hd_pid_began((int)getpid()) + 1);
	assert_int_equal(hd_file_truncate(&lock, 0, NULL), HD_OK);
	assert_int_equal(hd_file_pwrite(&lock, text, (size_t)n, 0, NULL), HD_OK);
	assert_int_equal(hd_pid_lock_look(&fs, path, &holder, NULL), HD_OK);
	CHECK(holder.pid == 0 && holder.job == 0, "process %d", holder.pid);
	assert_int_equal(hd_file_close(&lock, NULL), HD_OK);
	CHECK(hd_pid_began((int)getpid()) && !hd_pid_began(0) && !hd_pid_began(-1), "when processes began");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_sits_is_seen_until_it_ends_whichever_way, fresh, gone),
		cmocka_unit_test_setup_teardown(a_number_that_another_process_has_now_is_nobodys, fresh,
		gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
