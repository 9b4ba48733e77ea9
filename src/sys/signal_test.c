/* Signals end processes: each case runs in a child that reports by its exit code. */
#include "sys/signal.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"

static const struct { int number; enum hd_wish wish; int exit; const char *name; } asks[] = {
	{ SIGTERM, HD_WISH_PREEMPT, 75, "SIGTERM" },  { SIGUSR1, HD_WISH_PREEMPT, 75, "SIGUSR1" }, { SIGUSR2, HD_WISH_PREEMPT, 75, "SIGUSR2" },
	{ SIGXCPU, HD_WISH_PREEMPT, 75, "SIGXCPU" },  { SIGHUP, HD_WISH_PREEMPT, 75, "SIGHUP" },   { SIGINT, HD_WISH_INTERRUPT, 130, "SIGINT" },
};
enum { N = sizeof asks / sizeof *asks, WISH_RIGHT = 33, WISH_WRONG = 44 };

/* The exit code of a child that installs the handlers and gets `first`, then `second` (0: none). */
static int fate(int first, enum hd_wish want, int second)
{
	int status;

	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		if (hd_signal_install(NULL) || hd_signal_wish() != HD_WISH_NONE || hd_signal_number())
			_exit(1);
		raise(SIGCONT);
		raise(SIGPIPE);
		if (hd_signal_wish() != HD_WISH_NONE)
			_exit(2);
		if (first)
			raise(first);
		bool right = hd_signal_wish() == want && hd_signal_number() == first;
		if (second)
			raise(second);
		_exit(right ? WISH_RIGHT : WISH_WRONG);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

static void the_first_signal_makes_a_wish(void **state)
{
	(void)state;
	assert_int_equal(fate(0, HD_WISH_NONE, 0), WISH_RIGHT);
	for (size_t i = 0; i < N; i++)
		CHECK(fate(asks[i].number, asks[i].wish, 0) == WISH_RIGHT, "%s", asks[i].name);
}

static void the_second_signal_leaves_at_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < N; i++)
		for (size_t k = 0; k < N; k++)
			CHECK(fate(asks[i].number, asks[i].wish, asks[k].number) == asks[k].exit, "%s, %s", asks[i].name, asks[k].name);
	assert_int_equal(fate(SIGTERM, HD_WISH_PREEMPT, SIGCONT), WISH_RIGHT);
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
		_exit(hd_signal_wish() == HD_WISH_NONE ? WISH_RIGHT : WISH_WRONG);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), WISH_RIGHT);
}

static void a_wish_of_our_own_leaves_the_first_signal_harmless(void **state)
{
	int status;

	(void)state;
	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		if (hd_signal_install(NULL))
			_exit(1);
		hd_signal_wish_set(HD_WISH_PREEMPT);
		raise(SIGINT);        /* the first signal: no second one, though a wish stood */
		if (hd_signal_wish() != HD_WISH_PREEMPT || hd_signal_number() != SIGINT)
			_exit(WISH_WRONG);
		raise(SIGTERM);
		_exit(WISH_WRONG);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 75);
}

static void names_and_codes_fit(void **state)
{
	(void)state;
	for (size_t i = 0; i < N; i++) {
		assert_string_equal(hd_signal_name(asks[i].number), asks[i].name);
		assert_int_equal(hd_err_exit(hd_wish_err(asks[i].wish)), asks[i].exit);
	}
	assert_string_equal(hd_signal_name(SIGSEGV), "signal");
	assert_int_equal(hd_wish_err(HD_WISH_NONE), HD_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_signal_makes_a_wish),
		cmocka_unit_test(the_second_signal_leaves_at_once),
		cmocka_unit_test(an_end_of_the_terminal_that_is_ignored_stays_so),
		cmocka_unit_test(a_wish_of_our_own_leaves_the_first_signal_harmless),
		cmocka_unit_test(names_and_codes_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
