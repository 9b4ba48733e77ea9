#define _GNU_SOURCE
#include "sys/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/clock.h"
#include "sys/signal.h"
#include "tests/check.h"

enum { TIMEOUT_S = 60 };

/* Runs argv with its output caught; its exit code. */
static int caught(const char *const *argv, const char *const *env, char *text, size_t cap)
{
	struct hd_host host;
	struct hd_proc proc = { 0 };
	struct hd_diag diag = { "" };
	int ends[2], code = -1;
	size_t len = 0;
	ssize_t n;

	hd_host_real(&host);
	assert_int_equal(pipe(ends), 0);
	struct hd_spawn how = { .argv = argv, .env = env, .in = -1, .out = ends[1], .err = -1 };
	CHECK(!hd_proc_spawn(&host, &how, &proc, &diag), "%s", diag.text);
	close(ends[1]);
	while (len < cap - 1 && (n = read(ends[0], text + len, cap - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = 0;
	close(ends[0]);
	CHECK(!hd_proc_wait(&proc, TIMEOUT_S * HD_NS_PER_S, &code, &diag), "%s", diag.text);
	assert_null(proc.host);
	return code;
}

static void arguments_pass_no_shell(void **state)
{
	static const char *const argv[] = { "echo", "$HOME; `id`", "* 'x'", "", NULL };
	char text[200];

	(void)state;
	assert_int_equal(caught(argv, NULL, text, sizeof text), 0);
	assert_string_equal(text, "$HOME; `id` * 'x' \n");
}

static void exit_codes_and_signals_are_told(void **state)
{
	static const struct { const char *script; int code; } cases[] = {
		{ "exit 0", 0 }, { "exit 75", 75 }, { "kill -TERM $$", 128 + 15 }, { "kill -KILL $$", 128 + 9 },
	};
	char text[10];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *const argv[] = { "sh", "-c", cases[i].script, NULL };
		CHECK(caught(argv, NULL, text, sizeof text) == cases[i].code, "%s", cases[i].script);
	}
}

static void the_child_has_our_environment_and_what_is_added(void **state)
{
	static const char *const argv[] = { "sh", "-c", "echo $HD_ONE/$HD_TWO", NULL },
		*const env[] = { "HD_TWO=new", NULL };
	char text[100];

	(void)state;
	assert_int_equal(setenv("HD_ONE", "ours", 1), 0);
	assert_int_equal(setenv("HD_TWO", "old", 1), 0);
	assert_int_equal(caught(argv, env, text, sizeof text), 0);
	assert_string_equal(text, "ours/new\n");
	/* some shells see the first of two of one name, some the last: there must be one */
	static const char *const count[] = { "sh", "-c",
		"tr '\\0' '\\n' </proc/$$/environ | grep -c ^HD_TWO=", NULL };
	assert_int_equal(caught(count, env, text, sizeof text), 0);
	assert_string_equal(text, "1\n");
}

static void the_child_has_three_descriptors_and_a_session_of_its_own(void **state)
{
	static const char *const argv[] = { "sh", "-c",
		"for f in /proc/self/fd/*; do case ${f##*/} in 0|1|2) ;; *) [ -e $f ] && readlink $f; esac; "
		"done; "
					    "set -- $(cat /proc/$$/stat) && test $$ = $5 && test $$ = $6 && "
					    "readlink /proc/$$/fd/0", NULL };
	char text[400];

	(void)state;
	/* not close-on-exec: the child must not see it all the same */
	int extra = open("/etc/passwd", O_RDONLY);
	assert_true(extra > 2);
	assert_int_equal(caught(argv, NULL, text, sizeof text), 0);
	assert_null(strstr(text, "passwd"));
	assert_non_null(strstr(text, "/dev/null"));
	close(extra);
}

static void the_child_has_no_signal_blocked_or_ignored(void **state)
{
	static const char *const argv[] = { "sh", "-c", "kill -TERM $$", NULL };
	sigset_t term, before;
	char text[10];

	(void)state;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	assert_int_equal(sigprocmask(SIG_BLOCK, &term, &before), 0);
	assert_int_equal(caught(argv, NULL, text, sizeof text), 128 + SIGTERM);
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
	assert_true(signal(SIGTERM, SIG_IGN) != SIG_ERR);
	assert_int_equal(caught(argv, NULL, text, sizeof text), 128 + SIGTERM);
	assert_true(signal(SIGTERM, SIG_DFL) != SIG_ERR);
}

/* Of a child that had a request to stop and goes on as `argv`: its exit code, and what it said. */
static int fate_of_become(const char *const *argv, char *text, size_t cap)
{
	int ends[2], status;
	size_t n = 0;
	ssize_t got;

	fflush(NULL);
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (!child) {
		if (dup2(ends[1], 1) != 1 || hd_signal_install(NULL))
			_exit(1);
		raise(SIGTERM);
		if (!hd_proc_become(argv, NULL))
			_exit(2);
		/* still this program, with the first request */
		_exit(hd_signal_stop() == HD_STOP_PREEMPT && hd_signal_number() == SIGTERM ? 33 : 3);
	}
	close(ends[1]);
	while (n + 1 < cap && (got = read(ends[0], text + n, cap - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

static bool has_term(const char *text, const char *mask)
{
	const char *at = strstr(text, mask);

	assert_non_null(at);
	return strtoull(at + strlen(mask), NULL, 16) >> (SIGTERM - 1) & 1;
}

static void a_request_to_stop_is_of_the_program_that_a_process_becomes(void **state)
{
	static const char *const cat[] = { "/bin/cat", "/proc/self/status", NULL };
	static const char *const none[] = { "/bin/there-is-none", NULL };
	char text[8192];

	(void)state;
	assert_int_equal(fate_of_become(cat, text, sizeof text), 0);
	assert_true(has_term(text, "SigBlk:") && has_term(text, "SigPnd:"));
	assert_int_equal(fate_of_become(none, text, sizeof text), 33);
}

/* The one that goes on tells its session, and that it has begun, or ends before. */
static void a_process_that_detaches_goes_on_in_a_session_of_its_own(void **state)
{
	char log[] = "/tmp/hd_process_test.XXXXXX", text[100] = "";
	struct hd_diag diag = { "" };
	struct hd_detached at;
	int code = -1, status;

	(void)state;
	assert_true(close(mkstemp(log)) == 0);
	for (int begins = 0; begins < 2; begins++) {
		CHECK(!hd_proc_detach(&at, log, &diag), "%s", diag.text);
		if (!at.pid) {
			dprintf(1, "%s %d", getsid(0) == getpid() && getpgrp() == getpid() ? "own" : "other",
				begins);
			if (begins)
				hd_proc_begun(&at);
			_exit(44);
		}
		assert_int_equal(hd_proc_await(&at, &code, &diag), begins ? HD_OK : HD_E_AGAIN);
		if (begins)
			assert_true(waitpid(at.pid, &status, 0) == at.pid && WEXITSTATUS(status) == 44);
		else
			assert_int_equal(code, 44);
		int file = open(log, O_RDONLY);
		assert_int_equal(read(file, text, sizeof text), 5);
		CHECK(!strncmp(text, begins ? "own 1" : "own 0", 5), "%s", text);
		close(file);
	}
	unlink(log);
	assert_int_equal(hd_proc_detach(&at, "/no/such/folder/log", NULL), HD_E_NOTFOUND);
}

static void a_program_that_is_not_there_is_an_error_of_the_start(void **state)
{
	static const char *const argv[] = { "/no/such/program", NULL };
	struct hd_host host;
	struct hd_proc proc = { 0 };
	struct hd_diag diag = { "" };
	struct hd_spawn how = { .argv = argv, .in = -1, .out = -1, .err = -1 };

	(void)state;
	hd_host_real(&host);
	assert_int_equal(hd_proc_spawn(&host, &how, &proc, &diag), HD_E_NOTFOUND);
	assert_null(proc.host);
	assert_non_null(strstr(diag.text, "cannot start /no/such/program"));
	hd_proc_finish(&proc);
}

static void a_child_that_runs_on_is_waited_for_no_longer_than_asked_and_ended(void **state)
{
	static const char *const argv[] = { "sleep", "1000", NULL };
	static const struct { enum hd_proc_signal what; int code; } ends[] = { { HD_PROC_TERM, 143 },
		{ HD_PROC_KILL, 137 }, { HD_PROC_INT, 130 } };
	struct hd_host host;
	struct hd_diag diag = { "" };
	struct hd_spawn how = { .argv = argv, .in = -1, .out = -1, .err = -1 };
	int code;

	(void)state;
	hd_host_real(&host);
	for (size_t i = 0; i < 3; i++)
		for (int polled = 0; polled < 2; polled++) {
			struct hd_proc proc = { 0 };
			assert_int_equal(hd_proc_spawn(&host, &how, &proc, &diag), HD_OK);
			if (polled && proc.pidfd >= 0) {        /* as on a kernel without pidfd */
				close(proc.pidfd);
				proc.pidfd = -1;
			}
			assert_int_equal(hd_proc_wait(&proc, 0, &code, &diag), HD_E_AGAIN);
			assert_int_equal(hd_proc_wait(&proc, HD_NS_PER_MS, &code, &diag), HD_E_AGAIN);
			assert_int_equal(hd_proc_signal(&proc, HD_PROC_STOP, &diag), HD_OK);
			assert_int_equal(hd_proc_signal(&proc, HD_PROC_CONT, &diag), HD_OK);
			assert_int_equal(hd_proc_signal(&proc, ends[i].what, &diag), HD_OK);
			assert_int_equal(hd_proc_wait(&proc, TIMEOUT_S * HD_NS_PER_S, &code, &diag), HD_OK);
			assert_int_equal(code, ends[i].code);
		}
	struct hd_proc proc = { 0 };
	assert_int_equal(hd_proc_spawn(&host, &how, &proc, &diag), HD_OK);
	hd_proc_finish(&proc);
	hd_proc_finish(&proc);
}

static void the_recorder_remembers_and_answers_from_its_script(void **state)
{
	static const char *const argv[] = { "heddle", "run", "job.yaml", NULL };
	struct hd_host_sim sim;
	struct hd_proc a = { 0 }, b = { 0 }, c = { 0 };
	struct hd_spawn how = { .argv = argv, .in = -1, .out = -1, .err = -1 };
	int code = -1;

	(void)state;
	hd_host_sim_init(&sim);
	assert_int_equal(hd_proc_spawn(&sim.host, &how, &a, NULL), HD_OK);
	assert_int_equal(hd_proc_spawn(&sim.host, &how, &b, NULL), HD_OK);
	assert_string_equal(sim.proc[1].args, "heddle run job.yaml");
	assert_int_equal(hd_proc_wait(&a, TIMEOUT_S * HD_NS_PER_S, &code, NULL), HD_E_AGAIN);
	hd_host_sim_end(&sim, a.pid, 75);
	assert_int_equal(hd_proc_wait(&a, 0, &code, NULL), HD_OK);
	assert_int_equal(code, 75);
	assert_int_equal(hd_proc_signal(&b, HD_PROC_TERM, NULL), HD_OK);
	assert_int_equal(hd_proc_wait(&b, 0, &code, NULL), HD_E_AGAIN);
	hd_proc_finish(&b);
	assert_int_equal(sim.proc[1].signals, 1 << HD_PROC_TERM | 1 << HD_PROC_KILL);
	sim.refuse = HD_E_NOTFOUND;
	assert_int_equal(hd_proc_spawn(&sim.host, &how, &c, NULL), HD_E_NOTFOUND);
	assert_int_equal(sim.n, 2);
	sim.refuse = HD_OK;
	char big[400];
	memset(big, 'a', sizeof big - 1);
	big[sizeof big - 1] = 0;
	const char *const many[] = { "x", big, "y", NULL };
	how.argv = many;
	assert_int_equal(hd_proc_spawn(&sim.host, &how, &c, NULL), HD_OK);
	assert_int_equal(strlen(sim.proc[2].args), HD_HOST_SIM_ARGS - 1);
}

static void we_know_our_number_and_boot(void **state)
{
	struct hd_proc_self self, again;
	uint8_t zeros[16] = { 0 };

	(void)state;
	char program[4096];
	assert_int_equal(hd_proc_program(program, sizeof program, NULL), HD_OK);
	assert_non_null(strstr(program, "/sys_process_test"));
	assert_int_equal(hd_proc_program(program, strlen(program), NULL), HD_E_NOSPACE);
	assert_int_equal(hd_proc_runs(program, NULL), HD_OK);
	assert_int_equal(hd_proc_runs("/", NULL), HD_E_INPUT);
	assert_int_equal(hd_proc_runs("/proc/self/status", NULL), HD_E_INPUT);
	assert_int_equal(hd_proc_runs("/no/such", NULL), HD_E_INPUT);
	hd_proc_self(&self);
	hd_proc_self(&again);
	assert_int_equal(self.pid, getpid());
	assert_string_equal(self.host, again.host);
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";
	CHECK(self.host[0] && strspn(self.host, letters) == strlen(self.host), "on \"%s\"", self.host);
	assert_memory_equal(self.boot, again.boot, sizeof self.boot);
	if (access("/proc/sys/kernel/random/boot_id", R_OK) == 0)
		assert_memory_not_equal(self.boot, zeros, sizeof zeros);
}

static void who_is_stopped_or_ended_does_not_live(void **state)
{
	int status;
	(void)state;

	assert_true(hd_pid_lives(getpid()));
	assert_false(hd_pid_lives(0));
	assert_false(hd_pid_lives(-1));
	assert_false(hd_pid_lives(4194304));          /* the kernel's numbers end below */
	pid_t child = fork();
	if (!child)
		for (;;)
			pause();
	assert_true(hd_pid_lives(child));
	assert_int_equal(kill(child, SIGSTOP), 0);
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_false(hd_pid_lives(child));
	assert_int_equal(kill(child, SIGKILL), 0);
	siginfo_t info;
	/* ended, and not waited for */
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_false(hd_pid_lives(child));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_false(hd_pid_lives(child));
}

/* ---- ties: this program again, as `root`, which starts a `leaf`, or as `gone`, which detaches itself */

static int follow(const char *as)
{
	const char *const leaf[] = { "/proc/self/exe", "leaf", NULL };
	struct hd_host host;
	struct hd_proc proc = { 0 };
	char line[40];

	if (hd_tie_follow(NULL))
		return 2;
	if (!strcmp(as, "gone")) {
		const char *log = getenv("TIE_TEST_LOG");
		struct hd_detached at;
		if (hd_proc_detach(&at, log ? log : "", NULL))
			return 5;
		if (at.pid)
			return 0;
	}
	const int n = snprintf(line, sizeof line, "%s %d\n", as, (int)getpid());
	if (write(1, line, (size_t)n) != n)
		return 3;
	hd_host_real(&host);
	if (!strcmp(as, "root") && hd_proc_spawn(&host, &(struct hd_spawn){ .argv = leaf, .in = -1, .out = -1,
		.err = -1 }, &proc, NULL))
		return 4;
	for (;;)
		pause();
}

/* Until a whole line of `as`; its number, 0: the other ends are closed, -1: neither within a minute. */
static int heard_of(int fd, const char *as)
{
	char text[200] = "", *at;
	size_t len = 0;

	for (;;) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		if (poll(&ready, 1, TIMEOUT_S * 1000) != 1)
			return -1;
		const ssize_t n = read(fd, text + len, sizeof text - 1 - len);
		if (n <= 0)
			return 0;
		len += (size_t)n;
		text[len] = 0;
		if ((at = strstr(text, as)) && strchr(at, '\n'))
			return (int)strtol(at + strlen(as), NULL, 10);
	}
}

/* The reading end is at its end once both are gone: one of them was stopped, in a session of its own. */
static void who_is_tied_ends_with_what_it_started_when_the_tie_is_cut(void **state)
{
	static const char *const root[] = { "/proc/self/exe", "root", NULL };
	struct hd_host host;
	struct hd_proc proc = { 0 };
	struct hd_tie tie;
	int ends[2], code = 0;

	(void)state;
	hd_host_real(&host);
	assert_int_equal(hd_tie_open(&tie, NULL), HD_OK);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(hd_proc_spawn(&host, &(struct hd_spawn){ .argv = root, .in = -1, .out = ends[1],
		.err = -1, .tie = &tie }, &proc, NULL), HD_OK);
	close(ends[1]);
	const int leaf = heard_of(ends[0], "leaf ");
	assert_true(leaf > 1);
	assert_int_equal(kill(leaf, SIGSTOP), 0);
	assert_int_equal(hd_proc_wait(&proc, 0, &code, NULL), HD_E_AGAIN);
	hd_tie_cut(&tie);
	assert_int_equal(hd_proc_wait(&proc, TIMEOUT_S * HD_NS_PER_S, &code, NULL), HD_OK);
	assert_int_equal(code, 128 + SIGKILL);
	const int left = heard_of(ends[0], "nothing");
	if (left)
		(void)kill(leaf, SIGKILL);
	assert_int_equal(left, 0);
	close(ends[0]);
	hd_tie_cut(&tie);                 /* that of nothing is nothing */
}

/* Its log is a pipe, which is at its end once it is gone, too. */
static void who_detaches_ends_when_its_tie_is_cut(void **state)
{
	static const char *const argv[] = { "/proc/self/exe", "gone", NULL };
	char log[] = "/tmp/hd_tie_test.XXXXXX";
	struct hd_host host;
	struct hd_proc proc = { 0 };
	struct hd_tie tie;
	int code = -1;

	(void)state;
	hd_host_real(&host);
	assert_non_null(mkdtemp(log));
	char path[sizeof log + 8];
	(void)snprintf(path, sizeof path, "%s/fifo", log);
	assert_int_equal(mkfifo(path, 0600), 0);
	const int end = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(end >= 0);
	assert_int_equal(setenv("TIE_TEST_LOG", path, 1), 0);
	assert_int_equal(hd_tie_open(&tie, NULL), HD_OK);
	assert_int_equal(hd_proc_spawn(&host, &(struct hd_spawn){ .argv = argv, .in = -1, .out = -1,
		.err = -1, .tie = &tie }, &proc, NULL), HD_OK);
	assert_int_equal(hd_proc_wait(&proc, TIMEOUT_S * HD_NS_PER_S, &code, NULL), HD_OK);
	assert_int_equal(code, 0);
	const int pid = heard_of(end, "gone ");
	assert_true(pid > 1 && hd_pid_lives(pid));
	hd_tie_cut(&tie);
	const int left = heard_of(end, "nothing");
	if (left)
		(void)kill(pid, SIGKILL);
	assert_int_equal(left, 0);
	close(end);
	unlink(path);
	rmdir(log);
	unsetenv("TIE_TEST_LOG");
}

static void a_tie_that_is_none_is_said_and_one_that_was_cut_ends_at_once(void **state)
{
	static const char *const leaf[] = { "/proc/self/exe", "leaf", NULL };
	struct hd_host host;
	struct hd_proc proc = { 0 };
	struct hd_tie tie;
	int code = 0, none = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	hd_host_real(&host);
	assert_int_equal(hd_tie_open(&tie, NULL), HD_OK);
	close(tie.hold);
	tie.hold = 0;
	assert_int_equal(hd_proc_spawn(&host, &(struct hd_spawn){ .argv = leaf, .in = -1, .out = none,
		.err = -1, .tie = &tie }, &proc, NULL), HD_OK);
	assert_int_equal(hd_proc_wait(&proc, TIMEOUT_S * HD_NS_PER_S, &code, NULL), HD_OK);
	assert_int_equal(code, 128 + SIGKILL);
	const struct hd_tie wrong = { .in = none };
	assert_int_equal(hd_proc_spawn(&host, &(struct hd_spawn){ .argv = leaf, .in = -1, .out = none,
		.err = -1, .tie = &wrong }, &proc, NULL), HD_OK);
	assert_int_equal(hd_proc_wait(&proc, TIMEOUT_S * HD_NS_PER_S, &code, NULL), HD_OK);
	assert_int_equal(code, 2);
	close(none);
	hd_tie_cut(&tie);
}

int main(int argc, char **argv)
{
	if (argc == 2 && (!strcmp(argv[1], "root") || !strcmp(argv[1], "leaf") || !strcmp(argv[1], "gone")))
		return follow(argv[1]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_stopped_or_ended_does_not_live),
		cmocka_unit_test(arguments_pass_no_shell),
		cmocka_unit_test(exit_codes_and_signals_are_told),
		cmocka_unit_test(the_child_has_our_environment_and_what_is_added),
		cmocka_unit_test(the_child_has_three_descriptors_and_a_session_of_its_own),
		cmocka_unit_test(the_child_has_no_signal_blocked_or_ignored),
		cmocka_unit_test(a_request_to_stop_is_of_the_program_that_a_process_becomes),
		cmocka_unit_test(a_process_that_detaches_goes_on_in_a_session_of_its_own),
		cmocka_unit_test(who_is_tied_ends_with_what_it_started_when_the_tie_is_cut),
		cmocka_unit_test(who_detaches_ends_when_its_tie_is_cut),
		cmocka_unit_test(a_tie_that_is_none_is_said_and_one_that_was_cut_ends_at_once),
		cmocka_unit_test(a_program_that_is_not_there_is_an_error_of_the_start),
		cmocka_unit_test(a_child_that_runs_on_is_waited_for_no_longer_than_asked_and_ended),
		cmocka_unit_test(the_recorder_remembers_and_answers_from_its_script),
		cmocka_unit_test(we_know_our_number_and_boot),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
