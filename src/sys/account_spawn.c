#define _GNU_SOURCE        /* of the C library: what Linux has beyond POSIX */
#include "sys/account.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/file.h"
#include "sys/process.h"
#include "sys/tie.h"

/* posix_spawn() cannot change the account, so this is a fork. Other threads may have held any lock: the child
 * makes system calls alone, and says by a pipe that ends with the exec what went wrong. */

struct own_environment {
	char home[HD_ACCOUNT_HOME + 8], user[HD_ACCOUNT_NAME + 8], logname[HD_ACCOUNT_NAME + 12];
	char *at[6];
};

static char plain_path[] = "PATH=/usr/local/bin:/usr/bin:/bin";

/* A copy of the tie's word: HD_TIE_VARIABLE says that the input is one. */
static char tied_word[] = HD_TIE_VARIABLE "=1";

static void environment_of(const struct hd_account *a, bool tied, struct own_environment *own)
{
	size_t n = 0;

	snprintf(own->home, sizeof own->home, "HOME=%s", a->home);
	own->at[n++] = plain_path;
	own->at[n++] = own->home;
	if (a->name[0]) {
		snprintf(own->user, sizeof own->user, "USER=%s", a->name);
		snprintf(own->logname, sizeof own->logname, "LOGNAME=%s", a->name);
		own->at[n++] = own->user;
		own->at[n++] = own->logname;
	}
	if (tied)
		own->at[n++] = tied_word;
	own->at[n] = NULL;
}

/* Groups first: once the user is another one, none of it is allowed. 0 or an errno. */
static int become(const struct hd_account *a)
{
	gid_t group[HD_ACCOUNT_GROUPS];

	for (uint32_t i = 0; i < a->ngroups; i++)
		group[i] = a->group[i];
	if (syscall(SYS_setgroups, a->ngroups, group) || syscall(SYS_setresgid, a->gid, a->gid, a->gid) ||
		syscall(SYS_setresuid, a->uid, a->uid, a->uid))
		return errno;
	/* there must be no way back */
	return a->uid != 0 && syscall(SYS_setresuid, 0, 0, 0) == 0 ? EPERM : 0;
}

/* The descriptors 0 to 2; those that are given may be among them. */
static int redirect(const struct hd_spawn *how)
{
	int in = how->tie ? how->tie->in : how->in;

	if (how->out >= 0 && dup2(how->out, 1) < 0)
		return errno;
	if (how->err >= 0 && dup2(how->err, 2) < 0)
		return errno;
	if (in < 0 && !hd_tied())
		in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return in > 0 && dup2(in, 0) < 0 ? errno : 0;
}

static void plain_signals(void)
{
	struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int s = 1; s < NSIG; s++)
		(void)sigaction(s, &plain, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

_Noreturn static void go(const struct hd_account *as, const struct hd_spawn *how, char *const *env, int gate)
{
	plain_signals();
	(void)setsid();
	int error = redirect(how);
	/* a folder that the account could not have come to would be open to it */
	if (!error && chdir("/"))
		error = errno;
	if (!error && gate != 3 && dup3(gate, 3, O_CLOEXEC) < 0)
		error = errno;
	gate = error ? gate : 3;
	if (!error && syscall(SYS_close_range, 4, ~0u, 0))
		error = errno;
	error = error ? error : become(as);
	if (!error) {
		/* the cast only drops const: the interface is older than const */
		(void)execve(how->argv[0], (char *const *)(uintptr_t)how->argv, env);
		error = errno;
	}
	(void)!write(gate, &error, sizeof error);
	_exit(127);
}

/* 0 or an errno: the pipe says it, or ends with the exec. */
static int start(const struct hd_account *as, const struct hd_spawn *how, char *const *env, int *pid)
{
	int gate[2], error = 0, status;
	ssize_t n;

	if (pipe2(gate, O_CLOEXEC))
		return errno;
	*pid = fork();
	if (*pid == 0)
		go(as, how, env, gate[1]);
	error = *pid < 0 ? errno : 0;
	close(gate[1]);
	if (!error) {
		do
			n = read(gate[0], &error, sizeof error);
		while (n < 0 && errno == EINTR);
		error = n == sizeof error ? error : 0;
		while (error && waitpid(*pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(gate[0]);
	return error;
}

enum hd_err hd_account_spawn(struct hd_host *host, const struct hd_account *account,
	const struct hd_spawn *how, struct hd_proc *proc, struct hd_diag *diag)
{
	struct own_environment own;
	int pid = 0;

	environment_of(account, how->tie || (how->in < 0 && hd_tied()), &own);
	int error = start(account, how, own.at, &pid);
	if (error)
		return hd_fail_errno(diag, error, "start", how->argv[0]);
	*proc = (struct hd_proc){ .host = host, .pid = pid,
		.pidfd = (int)syscall(SYS_pidfd_open, pid, 0) };
	return HD_OK;
}

/* Its descriptor stands for one process, whatever becomes of the number meanwhile. */
enum hd_err hd_account_signal(int pid, uint32_t uid, int what)
{
	static const int signal_of[] = { [HD_PROC_TERM] = SIGTERM, [HD_PROC_KILL] = SIGKILL,
		[HD_PROC_STOP] = SIGSTOP };
	int fd = pid > 1 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	bool sent = fd >= 0 && hd_pid_uid(pid) == uid &&
		syscall(SYS_pidfd_send_signal, fd, signal_of[what], NULL, 0) == 0;

	if (fd >= 0)
		close(fd);
	return sent ? HD_OK : HD_E_NOTFOUND;
}
