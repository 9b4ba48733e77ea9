/* Signals end processes: each case runs in a child that reports by its exit code. */
#include "sys/signal.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/file.h"
#include "tests/check.h"

static const struct { int number; enum hd_stop stop; int exit; const char *name; } asks[] = {
	{ SIGTERM, HD_STOP_PREEMPT, 75, "SIGTERM" },  { SIGUSR1, HD_STOP_PREEMPT, 75, "SIGUSR1" }, { SIGUSR2, HD_STOP_PREEMPT, 75, "SIGUSR2" },
	{ SIGXCPU, HD_STOP_PREEMPT, 75, "SIGXCPU" },  { SIGHUP, HD_STOP_PREEMPT, 75, "SIGHUP" },   { SIGINT, HD_STOP_INTERRUPT, 130, "SIGINT" },
};
enum { N = sizeof asks / sizeof *asks, STOP_RIGHT = 33, STOP_WRONG = 44 };

/* The exit code of a child that installs the handlers and gets `first`, then `second` (0: none). */
static int fate(int first, enum hd_stop want, int second)
{
	int status;

	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		if (hd_signal_install(NULL) || hd_signal_stop() != HD_STOP_NONE || hd_signal_number())
			_exit(1);
		raise(SIGCONT);
		raise(SIGPIPE);
		if (hd_signal_stop() != HD_STOP_NONE)
			_exit(2);
		if (first)
			raise(first);
		bool right = hd_signal_stop() == want && hd_signal_number() == first;
		if (second)
			raise(second);
		_exit(right ? STOP_RIGHT : STOP_WRONG);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

static void the_first_signal_asks_to_stop(void **state)
{
	(void)state;
	assert_int_equal(fate(0, HD_STOP_NONE, 0), STOP_RIGHT);
	for (size_t i = 0; i < N; i++)
		CHECK(fate(asks[i].number, asks[i].stop, 0) == STOP_RIGHT, "%s", asks[i].name);
}

/* As of a program that another process became while it had a request. */
static void a_request_that_was_held_comes_with_the_handlers(void **state)
{
	int status;

	(void)state;
	for (size_t i = 0; i < N; i++) {
		fflush(NULL);
		pid_t child = fork();
		if (!child) {
			hd_signal_hold();
			raise(asks[i].number);
			_exit(!hd_signal_number() && !hd_signal_install(NULL) &&
				hd_signal_number() == asks[i].number && hd_signal_stop() == asks[i].stop ?
				STOP_RIGHT : STOP_WRONG);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == STOP_RIGHT, "%s", asks[i].name);
	}
}

static void the_second_signal_leaves_at_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < N; i++)
		for (size_t k = 0; k < N; k++)
			CHECK(fate(asks[i].number, asks[i].stop, asks[k].number) == asks[k].exit, "%s, %s",
				asks[i].name, asks[k].name);
	assert_int_equal(fate(SIGTERM, HD_STOP_PREEMPT, SIGCONT), STOP_RIGHT);
}

/* srun's tasks get Slurm's signal, and srun's. */
static void the_same_signal_once_more_is_the_first_of_a_starter_that_sends_two(void **state)
{
	int status;

	(void)state;
	for (size_t i = 0; i < N; i++)
		for (size_t k = 0; k < N; k++) {
			fflush(NULL);
			pid_t child = fork();
			if (!child) {
				if (hd_signal_install(NULL))
					_exit(1);
				hd_signal_twice();
				raise(asks[i].number);
				raise(asks[k].number);
				_exit(hd_signal_stop() == asks[i].stop ? STOP_RIGHT : STOP_WRONG);
			}
			assert_int_equal(waitpid(child, &status, 0), child);
			const int want = i == k ? STOP_RIGHT : asks[k].exit;
			CHECK(WIFEXITED(status) && WEXITSTATUS(status) == want, "%s, %s", asks[i].name,
				asks[k].name);
		}
}

static void an_end_of_the_terminal_that_is_ignored_stays_so(void **state)
{
	int status;

	(void)state;
	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		if (signal(SIGHUP, SIG_IGN) == SIG_ERR || hd_signal_install(NULL))
			_exit(1);
		raise(SIGHUP);
		_exit(hd_signal_stop() == HD_STOP_NONE ? STOP_RIGHT : STOP_WRONG);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), STOP_RIGHT);
}

static void a_stop_of_our_own_leaves_the_first_signal_harmless(void **state)
{
	int status;

	(void)state;
	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		if (hd_signal_install(NULL))
			_exit(1);
		hd_signal_stop_set(HD_STOP_PREEMPT);
		raise(SIGINT);        /* the first signal: no second one, though a request stood */
		if (hd_signal_stop() != HD_STOP_PREEMPT || hd_signal_number() != SIGINT)
			_exit(STOP_WRONG);
		raise(SIGTERM);
		_exit(STOP_WRONG);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 75);
}

enum { SAYS = 1, TOOK_BACK = 2, ANOTHER = 4 };

/* The exit code of a child that has a word ready in `path`, gets SIGTERM and then `second`. */
static int last_word(const char *path, int second, int how)
{
	int status;

	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		struct hd_fs fs;
		struct hd_file file;
		hd_fs_real(&fs);
		if (hd_signal_install(NULL) || hd_file_open(&fs, path,
			HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_TRUNCATE | HD_OPEN_APPEND, &file, NULL))
			_exit(1);
		struct hd_signal_word one = { .to = &file }, two = { .to = &file };
		one.line[HD_STOP_PREEMPT].at = two.line[HD_STOP_PREEMPT].at = "of 75\n";
		one.line[HD_STOP_PREEMPT].len_bytes = two.line[HD_STOP_PREEMPT].len_bytes = 6;
		two.line[HD_STOP_INTERRUPT].at = "of 130\n";
		two.line[HD_STOP_INTERRUPT].len_bytes = 7;
		hd_signal_word_set(&one);
		if (how & ANOTHER)
			hd_signal_word_set(&two);
		if (how & TOOK_BACK)
			hd_signal_word_set(NULL);
		raise(SIGTERM);
		raise(second);
		_exit(STOP_WRONG);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

static void the_last_word_is_said_before_it_leaves(void **state)
{
	static const struct { int second, how, exit; const char *said; } cases[] = {
		{ SIGTERM, SAYS, 75, "of 75\n" }, { SIGHUP, SAYS | ANOTHER, 75, "of 75\n" }, { SIGINT, SAYS | ANOTHER, 130, "of 130\n" },
		{ SIGINT, SAYS, 130, "" }, { SIGTERM, SAYS | ANOTHER | TOOK_BACK, 75, "" },
	};
	char root[] = "/tmp/hd_signal_test.XXXXXX", path[64], text[64];
	(void)state;

	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof path, "%s/word", root);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(last_word(path, cases[i].second, cases[i].how), cases[i].exit);
		FILE *file = fopen(path, "r");
		assert_non_null(file);
		text[fread(text, 1, sizeof text - 1, file)] = '\0';
		fclose(file);
		CHECK(!strcmp(text, cases[i].said), "case %zu: \"%s\"", i, text);
	}
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(root), 0);
}

/* Two threads: what a signal has taken is not taken back; a thread that tries waits for the end. */
static void *take_back(void *user)
{
	(void)user;
	hd_signal_word_set(NULL);
	_exit(STOP_WRONG);
}

static int64_t slow_write(struct hd_fs *fs, int id, const void *bytes, size_t len, int64_t offset)
{
	pthread_t thread;

	(void)fs;
	(void)offset;
	if (pthread_create(&thread, NULL, take_back, NULL))
		_exit(1);
	for (int i = 0; i < 100; i++)
		/* long enough for what would be wrong; nothing waits for it */
		poll(NULL, 0, 1);
	return write(id, bytes, len);
}

static void who_takes_it_back_too_late_does_not_go_on(void **state)
{
	int status, ends[2];
	char word[8];
	(void)state;

	assert_int_equal(pipe(ends), 0);
	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		struct hd_fs_ops ops = { .file.write = slow_write };
		struct hd_fs fs = { &ops };
		struct hd_file file = { .fs = &fs, .id = ends[1] };
		struct hd_signal_word one = { .to = &file };
		one.line[HD_STOP_PREEMPT].at = "last";
		one.line[HD_STOP_PREEMPT].len_bytes = 4;
		if (hd_signal_install(NULL))
			_exit(1);
		hd_signal_word_set(&one);
		raise(SIGTERM);
		raise(SIGTERM);
		_exit(STOP_WRONG);
	}
	close(ends[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 75, "status %d", status);
	assert_int_equal(read(ends[0], word, sizeof word), 4);
	close(ends[0]);
}

/* 0: it ended by itself; else the signal that ended it. users: recordings while the signal comes, of two that
 * there were. */
static int ends_by(int users)
{
	int status;

	fflush(NULL);
	const pid_t child = fork();
	if (!child) {
		bool good = !hd_signal_install(NULL) && !hd_signal_dump_take(NULL) &&
			!hd_signal_dump_take(NULL);
		for (int i = users; i < 2; i++)
			hd_signal_dump_give();
		const int before = hd_signal_dumps();
		raise(SIGQUIT);
		_exit(good && hd_signal_dumps() == before + 1 && hd_signal_stop() == HD_STOP_NONE ?
			STOP_RIGHT : STOP_WRONG);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == STOP_RIGHT);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Where nothing is recorded it would be swallowed. */
static void a_quit_is_taken_while_something_is_recorded(void **state)
{
	(void)state;
	assert_int_equal(ends_by(2), 0);
	assert_int_equal(ends_by(1), 0);
	assert_int_equal(ends_by(0), SIGQUIT);
}

static void names_and_codes_fit(void **state)
{
	(void)state;
	for (size_t i = 0; i < N; i++) {
		assert_string_equal(hd_signal_name(asks[i].number), asks[i].name);
		assert_int_equal(hd_err_exit(hd_stop_err(asks[i].stop)), asks[i].exit);
	}
	assert_string_equal(hd_signal_name(SIGSEGV), "signal");
	assert_int_equal(hd_stop_err(HD_STOP_NONE), HD_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_signal_asks_to_stop),
		cmocka_unit_test(a_request_that_was_held_comes_with_the_handlers),
		cmocka_unit_test(the_second_signal_leaves_at_once),
		cmocka_unit_test(the_same_signal_once_more_is_the_first_of_a_starter_that_sends_two),
		cmocka_unit_test(an_end_of_the_terminal_that_is_ignored_stays_so),
		cmocka_unit_test(a_stop_of_our_own_leaves_the_first_signal_harmless),
		cmocka_unit_test(the_last_word_is_said_before_it_leaves),
		cmocka_unit_test(who_takes_it_back_too_late_does_not_go_on),
		cmocka_unit_test(a_quit_is_taken_while_something_is_recorded),
		cmocka_unit_test(names_and_codes_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
