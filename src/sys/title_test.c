#include "sys/title.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"

/* Each case is a process of its own: a name is for good. It answers with 0, or the number of what was
 * wrong. */
static void in_a_process(int (*run)(void))
{
	int status;

	if (access("/proc/sys/kernel/ns_last_pid", F_OK))
		SKIP("this kernel has no CONFIG_CHECKPOINT_RESTORE: it moves no arguments");
	if (SANITIZED)
		SKIP("a sanitizer may have a thread of its own, and a process of two keeps its line");
	(void)fflush(NULL);
	int pid = fork();
	if (!pid)
		_exit(run());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "case %d is wrong, status %d",
		WEXITSTATUS(status), status);
}

static size_t holds(const char *path, char *text, size_t cap)
{
	int file = open(path, O_RDONLY);
	ssize_t n, len = 0;

	while (file >= 0 && (n = read(file, text + len, cap - 1 - (size_t)len)) > 0)
		len += n;
	close(file);
	text[len] = 0;
	return (size_t)len;
}

static char before[1 << 17], after[1 << 17], around[1 << 17], now[1 << 17];

/* The line: name, NULs, the arguments as they were. */
static bool line_is(const char *name, size_t space, const char *args, size_t nargs)
{
	size_t n = holds("/proc/self/cmdline", after, sizeof after);
	bool ok = n == space + nargs && !strcmp(after, name) && !memcmp(after + space, args, nargs);

	for (size_t i = strlen(name); i < space && ok; i++)
		ok = !after[i];
	return ok;
}

static int name_then_arguments(void)
{
	struct hd_title title = { 0 };
	size_t nargs = holds("/proc/self/cmdline", before, sizeof before),
		nenv = holds("/proc/self/environ", around, sizeof around);
	const char *first = "heddle: worker of runs/1", *longer = "heddle: worker 4294967295 of runs/1";
	size_t space = strlen(first) + HD_TITLE_GROWS + 1;
	char brief[32];

	hd_title_set(&title, "heddle worker", "heddle: worker of %s", "runs/1");
	if (!line_is(first, space, before, nargs))
		return 1;
	(void)holds("/proc/self/comm", brief, sizeof brief);
	if (strcmp(brief, "heddle worker\n"))
		return 2;
	hd_title_set(&title, "heddle worker 3", "heddle: worker %u of %s", 4294967295u, "runs/1");
	if (!line_is(longer, space, before, nargs))
		return 3;
	hd_title_set(&title, "heddle worker 3", "heddle: worker %u of %s", 3u, "runs/1");
	if (!line_is("heddle: worker 3 of runs/1", space, before, nargs))
		return 4;
	if (holds("/proc/self/environ", now, sizeof now) != nenv || memcmp(now, around, nenv))
		return 5;
	hd_title_set(&title, "heddle worker 3", "%s and what has no space any more", longer);
	(void)holds("/proc/self/cmdline", after, sizeof after);
	if (strlen(after) != space - 1 || strncmp(after, longer, strlen(longer)) ||
		memcmp(after + space, before, nargs))
		return 6;
	return 0;
}

static void the_name_stands_before_the_arguments(void **state)
{
	(void)state;
	in_a_process(name_then_arguments);
}

static int long_path(void)
{
	struct hd_title title = { 0 };
	size_t nargs = holds("/proc/self/cmdline", before, sizeof before);
	static char path[6000];

	memset(path, 'p', sizeof path - 1);
	hd_title_set(&title, "heddle worker", "heddle: worker of %s", path);
	size_t n = holds("/proc/self/cmdline", after, sizeof after), len = strlen(after);
	if (len < 4096 || len > sizeof path || strncmp(after, "heddle: worker of ppp", 21) ||
		memcmp(after + n - nargs, before, nargs))
		return 1;
	hd_title_set(&title, "heddle worker 7", "heddle: worker 7 of %s", path);
	if (holds("/proc/self/cmdline", after, sizeof after) != n ||
		strncmp(after, "heddle: worker 7 of p", 21) || memcmp(after + n - nargs, before, nargs))
		return 2;
	return 0;
}

static void a_path_that_is_too_long_is_cut(void **state)
{
	(void)state;
	in_a_process(long_path);
}

static int fork_has_it(void)
{
	struct hd_title title = { 0 };
	int status, ends[2];

	hd_title_set(&title, "heddle run", "heddle: run of a");
	if (pipe(ends))
		return 1;
	int pid = fork();
	if (!pid) {
		hd_title_set(&title, "heddle coord", "heddle: coordinator of a");
		_exit(holds("/proc/self/cmdline", after, sizeof after) &&
			!strcmp(after, "heddle: coordinator of a") ? 0 : 1);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return 2;
	(void)holds("/proc/self/cmdline", after, sizeof after);
	return strcmp(after, "heddle: run of a") ? 3 : 0;
}

static void a_fork_has_a_name_of_its_own(void **state)
{
	(void)state;
	in_a_process(fork_has_it);
}

/* The heap goes on where it was: what is taken after the move is whole, and the heap still grows. */
static int heap_grows(void)
{
	struct hd_title title = { 0 };
	char *at[200];

	hd_title_set(&title, "heddle run", "heddle: run of a");
	char *top = sbrk(0);
	for (int i = 0; i < 200; i++) {
		if (!(at[i] = malloc(60000)))
			return 1;
		memset(at[i], i, 60000);
	}
	for (int i = 0; i < 200; i++)
		for (int k = 0; k < 60000; k++)
			if (at[i][k] != (char)i)
				return 2;
	if ((char *)sbrk(0) <= top)
		return 3;
	for (int i = 0; i < 200; i++)
		free(at[i]);
	return 0;
}

static void the_heap_grows_as_before(void **state)
{
	(void)state;
	in_a_process(heap_grows);
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_it(void *user)
{
	pthread_mutex_lock(&held);
	pthread_mutex_unlock(&held);
	return user;
}

static int late(void)
{
	struct hd_title title = { 0 };
	size_t nargs = holds("/proc/self/cmdline", before, sizeof before);
	pthread_t thread;
	char brief[32];

	pthread_mutex_lock(&held);
	if (pthread_create(&thread, NULL, wait_for_it, NULL))
		return 1;
	hd_title_set(&title, "heddle run", "heddle: run of a");
	size_t n = holds("/proc/self/cmdline", after, sizeof after);
	(void)holds("/proc/self/comm", brief, sizeof brief);
	pthread_mutex_unlock(&held);
	pthread_join(thread, NULL);
	if (n != nargs || memcmp(after, before, nargs))
		return 2;
	hd_title_set(&title, "heddle run", "heddle: run of b");         /* nor later: it was said */
	if (holds("/proc/self/cmdline", after, sizeof after) != nargs)
		return 3;
	return strcmp(brief, "heddle run\n") ? 4 : 0;
}

static void with_a_second_thread_the_line_stays(void **state)
{
	(void)state;
	in_a_process(late);
}

static void *name_it(void *user)
{
	hd_title_set(user, "heddle worker 3", "heddle: worker 3 of a");
	return NULL;
}

static int from_thread(void)
{
	struct hd_title title = { 0 };
	pthread_t thread;
	char brief[32];

	hd_title_set(&title, "heddle worker", "heddle: worker of a");
	if (pthread_create(&thread, NULL, name_it, &title) || pthread_join(thread, NULL))
		return 1;
	(void)holds("/proc/self/cmdline", after, sizeof after);
	(void)holds("/proc/self/comm", brief, sizeof brief);
	return strcmp(after, "heddle: worker 3 of a") ? 2 : strcmp(brief, "heddle worker 3\n") ? 3 : 0;
}

static void any_thread_changes_the_name_of_the_process(void **state)
{
	(void)state;
	in_a_process(from_thread);
}

/* A batch system's daemon splits the line of /proc/PID/stat at blanks. */
static int of_slurm(void)
{
	struct hd_title title = { 0 };
	char brief[64] = "";

	if (setenv("SLURM_JOB_ID", "7", 1))
		return 1;
	hd_title_set(&title, "heddle worker 7", "heddle: worker 7 of a b");
	(void)holds("/proc/self/comm", brief, sizeof brief);
	return strcmp(brief, "heddle-worker-7\n") != 0 ? 2 : 0;
}

static void the_short_name_has_no_blank_in_a_job_of_slurm(void **state)
{
	(void)state;
	in_a_process(of_slurm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_name_stands_before_the_arguments),
		cmocka_unit_test(a_path_that_is_too_long_is_cut),
		cmocka_unit_test(a_fork_has_a_name_of_its_own),
		cmocka_unit_test(the_heap_grows_as_before),
		cmocka_unit_test(with_a_second_thread_the_line_stays),
		cmocka_unit_test(the_short_name_has_no_blank_in_a_job_of_slurm),
		cmocka_unit_test(any_thread_changes_the_name_of_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
