#define _GNU_SOURCE        /* of the C library: what Linux has beyond POSIX */
#include "sys/process.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "sys/cgroup.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/signal.h"

static const int signal_of[] = {
	[HD_PROC_TERM] = SIGTERM, [HD_PROC_KILL] = SIGKILL, [HD_PROC_INT] = SIGINT, [HD_PROC_STOP] = SIGSTOP,
		[HD_PROC_CONT] = SIGCONT, [HD_PROC_USR1] = SIGUSR1, [HD_PROC_KILL_ALL] = SIGKILL,
};

enum hd_err hd_pid_signal(int pid, enum hd_proc_signal what)
{
	return pid > 1 && kill(what == HD_PROC_KILL_ALL ? -pid : pid, signal_of[what]) == 0 ? HD_OK :
		HD_E_NOTFOUND;
}

bool hd_pid_lives(int pid)
{
	char path[40], text[1024], *at;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	return pid > 0 && hd_proc_text(path, text, sizeof text) && (at = strrchr(text, ')')) &&
		at[1] == ' ' && at[2] && !strchr("ZXxTt", at[2]);
}

/* The 22nd field; the second may hold anything, but ends with the last bracket. */
uint64_t hd_pid_began(int pid)
{
	char path[40], text[1024], *at;
	unsigned long long began = 0;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	if (pid < 1 || !hd_proc_text(path, text, sizeof text) || !(at = strrchr(text, ')')))
		return 0;
	return sscanf(at + 1,
		" %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		&began) == 1 ? began : 0;
}

int64_t hd_pid_age_ns(int pid)
{
	const uint64_t began = hd_pid_began(pid);
	const long hz = sysconf(_SC_CLK_TCK);
	struct timespec now;

	if (!began || hz < 1 || clock_gettime(CLOCK_BOOTTIME, &now))
		return 0;
	const int64_t age = (int64_t)now.tv_sec * INT64_C(1000000000) + now.tv_nsec -
		(int64_t)(began * (UINT64_C(1000000000) / (uint64_t)hz));
	return age > 0 ? age : 0;
}

/* ---- the system ---- */

static const char tied[] = HD_TIE_VARIABLE "=1";

static bool is_replaced(const char *ours, const char *const *added)
{
	size_t len = strcspn(ours, "=") + 1;

	if (!strncmp(ours, tied, strlen(HD_TIE_VARIABLE) + 1))
		return true;
	for (; added && *added; added++)
		if (!strncmp(ours, *added, len))
			return true;
	return false;
}

/* Where the child's input is a tie: the one given, or ours. */
static bool is_tied(const struct hd_spawn *how) { return how->tie || (how->in < 0 && hd_tied()); }

/* What is added takes the place of ours: of two of one name some shells see the first, some the last. */
static const char **environment(const struct hd_spawn *how)
{
	const char *const *added = how->env;
	size_t n = 0, most = 2;           /* the tie, and the end */

	for (size_t i = 0; environ[i]; i++)
		most++;
	for (size_t i = 0; added && added[i]; i++)
		most++;
	const char **all = hd_alloc(most * sizeof *all);
	if (!all)
		return NULL;
	for (size_t i = 0; environ[i]; i++)
		if (!is_replaced(environ[i], added))
			all[n++] = environ[i];
	for (size_t i = 0; added && added[i]; i++)
		all[n++] = added[i];
	if (is_tied(how))
		all[n++] = tied;
	all[n] = NULL;
	return all;
}

static int redirect(posix_spawn_file_actions_t *actions, const struct hd_spawn *how)
{
	int error = how->tie ? posix_spawn_file_actions_adddup2(actions, how->tie->in, 0) :
		how->in >= 0 ? posix_spawn_file_actions_adddup2(actions, how->in, 0) :
		is_tied(how) ? 0 : posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);

	if (!error && how->out >= 0)
		error = posix_spawn_file_actions_adddup2(actions, how->out, 1);
	if (!error && how->err >= 0)
		error = posix_spawn_file_actions_adddup2(actions, how->err, 2);
	if (!error)
		error = posix_spawn_file_actions_addclosefrom_np(actions, 3);
	return error;
}

static int start(const struct hd_spawn *how, const char **env, int *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;

	int error = posix_spawn_file_actions_init(&actions);
	if (error)
		return error;
	error = posix_spawnattr_init(&attr);
	if (error)
		goto out_actions;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
	error = redirect(&actions, how);
	if (!error)        /* the casts only drop const: the interface is older than const */
		error = posix_spawnp(pid, how->argv[0], &actions, &attr, (char *const *)(uintptr_t)how->argv,
			(char *const *)(uintptr_t)env);
	posix_spawnattr_destroy(&attr);
out_actions:
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

static enum hd_err real_spawn(struct hd_host *host, const struct hd_spawn *how, struct hd_proc *proc,
	struct hd_diag *diag)
{
	int pid;

	(void)host;
	const char **env = environment(how);
	if (!env)
		return hd_fail(diag, HD_E_NOMEM, "out of memory to start %s", how->argv[0]);
	int error = start(how, env, &pid);
	hd_free(env);
	if (error)
		return hd_fail_errno(diag, error, "start", how->argv[0]);
	proc->pid = pid;
	/* The child is ours and unreaped, so the number cannot have another owner yet. */
	proc->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return HD_OK;
}

static int code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

enum { LOOK_MS = 5 };                     /* without pidfd: how often we look */

/* Waits for the child's end, at most `left_ns`. */
static void doze(const struct hd_proc *proc, int64_t left_ns)
{
	struct pollfd end = { .fd = proc->pidfd, .events = POLLIN };
	int64_t ms = left_ns / HD_NS_PER_MS + (left_ns % HD_NS_PER_MS > 0);

	if (proc->pidfd < 0 && ms > LOOK_MS)
		ms = LOOK_MS;
	/* whatever it answers, the caller looks and asks the clock */
	(void)poll(&end, 1, ms > INT_MAX ? INT_MAX : (int)ms);
}

static enum hd_err real_wait(struct hd_host *host, struct hd_proc *proc, int64_t timeout_ns, int *code,
	struct hd_diag *diag)
{
	struct hd_clock clock;
	int status;

	(void)host;
	hd_clock_real(&clock);
	int64_t start_ns = hd_clock_now_ns(&clock);
	for (;;) {
		int pid = waitpid(proc->pid, &status, WNOHANG);
		if (pid == proc->pid) {
			if (proc->pidfd >= 0)
				close(proc->pidfd);
			*code = code_of(status);
			return HD_OK;
		}
		if (pid < 0 && errno != EINTR)
			return hd_fail(diag, HD_E_BUG, "process %d is no child of ours: %s", proc->pid,
				strerror(errno));
		int64_t gone_ns = hd_clock_now_ns(&clock) - start_ns;
		if (gone_ns >= timeout_ns)
			return HD_E_AGAIN;
		doze(proc, timeout_ns - gone_ns);
	}
}

static enum hd_err real_signal(struct hd_host *host, struct hd_proc *proc, enum hd_proc_signal what,
	struct hd_diag *diag)
{
	(void)host;
	if (kill(what == HD_PROC_KILL_ALL ? -proc->pid : proc->pid, signal_of[what]))
		return hd_fail(diag, HD_E_REFUSED, "cannot signal process %d: %s", proc->pid,
			strerror(errno));
	return HD_OK;
}

static const struct hd_host_ops real_ops = { "real", real_spawn, real_wait, real_signal };

void hd_host_real(struct hd_host *host) { host->ops = &real_ops; }

/* ---- the recorder ---- */

static enum hd_err sim_spawn(struct hd_host *host, const struct hd_spawn *how, struct hd_proc *proc,
	struct hd_diag *diag)
{
	struct hd_host_sim *sim = (struct hd_host_sim *)host;
	size_t at = 0;

	if (sim->refuse || sim->n == HD_HOST_SIM_CAP)
		return hd_fail(diag, sim->refuse ? sim->refuse : HD_E_REFUSED,
			"cannot start %s: the test says so", how->argv[0]);
	char *args = sim->proc[sim->n].args;
	for (size_t i = 0; how->argv[i]; i++) {
		size_t len = strlen(how->argv[i]), space = HD_HOST_SIM_ARGS - 1 - at;
		if (i && space)
			args[at++] = ' ', space--;
		len = len < space ? len : space;
		memcpy(args + at, how->argv[i], len);
		at += len;
	}
	args[at] = 0;
	proc->pid = (int)++sim->n;
	proc->pidfd = -1;
	return HD_OK;
}

static enum hd_err sim_wait(struct hd_host *host, struct hd_proc *proc, int64_t timeout_ns, int *code,
	struct hd_diag *diag)
{
	struct hd_host_sim *sim = (struct hd_host_sim *)host;

	(void)timeout_ns;
	(void)diag;
	if (!sim->proc[proc->pid - 1].ended)
		return HD_E_AGAIN;
	*code = sim->proc[proc->pid - 1].code;
	return HD_OK;
}

static enum hd_err sim_signal(struct hd_host *host, struct hd_proc *proc, enum hd_proc_signal what,
	struct hd_diag *diag)
{
	struct hd_host_sim *sim = (struct hd_host_sim *)host;

	(void)diag;
	sim->proc[proc->pid - 1].signals |= 1u << what;
	if (what == HD_PROC_KILL || what == HD_PROC_KILL_ALL)
		hd_host_sim_end(sim, proc->pid, 128 + SIGKILL);
	return HD_OK;
}

static const struct hd_host_ops sim_ops = { "recorder", sim_spawn, sim_wait, sim_signal };

void hd_host_sim_init(struct hd_host_sim *sim) { *sim = (struct hd_host_sim){ .host = { &sim_ops } }; }

void hd_host_sim_end(struct hd_host_sim *sim, int pid, int code)
{
	assert(pid >= 1 && (size_t)pid <= sim->n);
	if (sim->proc[pid - 1].ended)
		return;
	sim->proc[pid - 1].ended = true;
	sim->proc[pid - 1].code = code;
}

/* ---- both ---- */

enum hd_err hd_proc_spawn(struct hd_host *host, const struct hd_spawn *how, struct hd_proc *proc,
	struct hd_diag *diag)
{
	struct hd_proc made = { .host = host };

	assert(how->argv && how->argv[0]);
	enum hd_err err = host->ops->spawn(host, how, &made, diag);
	if (!err)
		*proc = made;
	return err;
}

enum hd_err hd_proc_wait(struct hd_proc *proc, int64_t timeout_ns, int *code, struct hd_diag *diag)
{
	assert(proc->host);
	enum hd_err err = proc->host->ops->wait(proc->host, proc, timeout_ns, code, diag);
	if (!err)
		proc->host = NULL;
	return err;
}

enum hd_err hd_proc_signal(struct hd_proc *proc, enum hd_proc_signal what, struct hd_diag *diag)
{
	assert(proc->host);
	return proc->host->ops->signal(proc->host, proc, what, diag);
}

void hd_proc_finish(struct hd_proc *proc)
{
	int code;

	if (!proc->host)
		return;
	enum hd_err err = hd_proc_signal(proc, HD_PROC_KILL, NULL);
	/* KILL cannot be refused: the wait ends. */
	while (!err && proc->host && hd_proc_wait(proc, HD_NS_PER_S, &code, NULL) == HD_E_AGAIN)
		;
	proc->host = NULL;
}

/* ---- a process that leaves its terminal ---- */

/* A tie stays its input; what follows it is a process, so this one has to begin again (tie.h). */
static int leave_terminal(int log)
{
	if (setsid() < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
		return errno;
	if (hd_tied())
		return hd_tie_follow(NULL) ? EBADF : 0;
	int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (none < 0 || dup2(none, 0) < 0)
		return errno;
	close(none);
	return 0;
}

enum hd_err hd_proc_detach(struct hd_detached *at, const char *log, struct hd_diag *diag)
{
	int ends[2], error = 0, file = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);

	if (file < 0)
		return hd_fail_errno(diag, errno, "write", log);
	if (pipe2(ends, O_CLOEXEC)) {
		error = errno;
		close(file);
		return hd_fail_errno(diag, error, "make", "a pipe");
	}
	(void)fflush(NULL);
	*at = (struct hd_detached){ .pid = fork() };
	if (at->pid < 0)
		error = errno;
	else if (!at->pid)
		error = leave_terminal(file);
	close(file);
	at->gate = at->pid ? ends[0] : ends[1];
	close(at->pid ? ends[1] : ends[0]);
	if (at->pid < 0)
		close(at->gate);
	return error ? hd_fail_errno(diag, error, "start", "a process that goes on without this terminal") :
		HD_OK;
}

void hd_proc_begun(struct hd_detached *at)
{
	if (at->gate > 0 && write(at->gate, "", 1) == 1)
		close(at->gate);
	at->gate = 0;
}

enum hd_err hd_proc_await(struct hd_detached *at, int *code, struct hd_diag *diag)
{
	int status;
	ssize_t n;
	char c;

	do
		n = read(at->gate, &c, 1);
	while (n < 0 && errno == EINTR);
	close(at->gate);
	at->gate = 0;
	if (n == 1)
		return HD_OK;
	while (waitpid(at->pid, &status, 0) < 0)
		if (errno != EINTR)
			return hd_fail(diag, HD_E_BUG, "process %d is no child of ours: %s", at->pid,
				strerror(errno));
	*code = code_of(status);
	return HD_E_AGAIN;
}

/* "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" */
static bool take_uuid(const char *text, uint8_t id[16])
{
	size_t n = 0;

	for (; *text && *text != '\n' && n < 32; text++) {
		if (*text == '-')
			continue;
		const char *digits = "0123456789abcdef", *digit = strchr(digits, *text);
		if (!digit)
			return false;
		id[n / 2] = (uint8_t)(id[n / 2] << 4 | (digit - digits));
		n++;
	}
	return n == 32;
}

enum hd_err hd_proc_folder(char *at, size_t cap, struct hd_diag *diag)
{
	return getcwd(at, cap) ? HD_OK : hd_fail_errno(diag, errno, "tell the path of", "the current folder");
}

enum hd_err hd_proc_program(char *at, size_t cap, struct hd_diag *diag)
{
	ssize_t n = readlink("/proc/self/exe", at, cap);

	if (n < 0)
		return hd_fail_errno(diag, errno, "tell the path of", "this program");
	if ((size_t)n == cap)
		return hd_fail(diag, HD_E_NOSPACE, "the path of this program is longer than %zu bytes",
			cap - 1);
	at[n] = '\0';
	return HD_OK;
}

/* A handler of this program is none of the next one's: the system resets it. */
enum hd_err hd_proc_become(const char *const *argv, struct hd_diag *diag)
{
	sigset_t was;

	(void)pthread_sigmask(SIG_SETMASK, NULL, &was);
	hd_signal_hold();
	execve(argv[0], (char *const *)(uintptr_t)argv, environ);
	int error = errno;
	hd_signal_hold_not();
	(void)pthread_sigmask(SIG_SETMASK, &was, NULL);
	return hd_fail_errno(diag, error, "go on as", argv[0]);
}

uint32_t hd_proc_children(int *pid, uint32_t cap)
{
	char path[64], text[4096];
	uint32_t n = 0;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	if (!hd_proc_text(path, text, sizeof text))
		return 0;
	for (char *at = text, *end; n < cap; at = end) {
		const long one = strtol(at, &end, 10);
		if (end == at || one <= 0)
			break;
		pid[n++] = (int)one;
	}
	return n;
}

bool hd_pid_reap(int pid)
{
	int status;

	return waitpid(pid, &status, WNOHANG) == pid;
}

bool hd_pid_is_alike(int pid)
{
	struct stat own, other;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	return pid > 0 && !stat("/proc/self/exe", &own) && !stat(path, &other) &&
		own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

enum hd_err hd_proc_runs(const char *path, struct hd_diag *diag)
{
	struct stat stat_of;

	if (stat(path, &stat_of) == 0 && S_ISREG(stat_of.st_mode) && access(path, X_OK) == 0)
		return HD_OK;
	return hd_fail(diag, HD_E_INPUT, "%s is no executable: name a file that this user may run (chmod +x)",
		path);
}

char *const *hd_proc_environment(void) { return environ; }

void hd_proc_self(struct hd_proc_self *self)
{
	char text[64];

	*self = (struct hd_proc_self){ .pid = (uint32_t)getpid() };
	if (!hd_proc_text("/proc/sys/kernel/random/boot_id", text, sizeof text) ||
		!take_uuid(text, self->boot))
		memset(self->boot, 0, sizeof self->boot);
	if (gethostname(self->host, sizeof self->host - 1) || !*self->host)
		self->host[0] = '_';
	for (char *at = self->host; *at; at++)
		*at = (char)(isalnum((unsigned char)*at) || strchr(".-_", *at) ? *at : '_');
}
