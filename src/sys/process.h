/* process.h -- other programs: started without a shell, waited for with a deadline, ended.
 *
 * Launchers and whole-program tests use it. Rows: the system, and a recorder that
 * remembers what it was asked and answers from a script.
 *
 * 1. argv goes to the program as it is; no shell reads it. The child has no signal
 *    blocked or ignored, a session of its own, and only descriptors 0-2. So a terminal that closes is not its
 *    end, nor is that of its parent while it is stopped.
 * 2. A program that cannot be started is an error of the start, not an exit code 127.
 * 3. A child that was started is waited for until it ended: then its id is void.
 * 4. Ended by signal s it is reported as exit 128 + s, as shells do.
 *
 * Ownership: the caller's struct; hd_proc_finish() kills and reaps what still runs.
 * Threads: one per child. hd_proc_wait() blocks no longer than its deadline. */
#ifndef HD_SYS_PROCESS_H
#define HD_SYS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sys/tie.h"

/* Identity of this process, for files that processes of any machine read. */
enum { HD_HOST_CAP = 65 };
struct hd_proc_self {
	uint32_t pid;
	uint8_t boot[16];                 /* the kernel's id of this boot; zeros where it has none */
	/* the machine's name, of letters, digits, '.', '-', '_' (others become '_'); never "" */
	char host[HD_HOST_CAP];
};
void hd_proc_self(struct hd_proc_self *self);
/* where relative paths begin */
HD_MUST_USE enum hd_err hd_proc_folder(char *at, size_t cap, struct hd_diag *diag);
/* the file that this process runs */
HD_MUST_USE enum hd_err hd_proc_program(char *at, size_t cap, struct hd_diag *diag);
/* HD_E_INPUT: the path is no file that this user may run. */
HD_MUST_USE enum hd_err hd_proc_runs(const char *path, struct hd_diag *diag);
/* "NAME=value", ends with NULL; borrowed from the process, which does not change it */
char *const *hd_proc_environment(void);

struct hd_host;

struct hd_spawn {
	const char *const *argv;          /* ends with NULL; argv[0] is searched in PATH if it has no '/' */
	/* "NAME=value", in place of ours or added; ends with NULL; NULL: none */
	const char *const *env;
	int in, out, err;                 /* descriptors for 0, 1, 2; -1: /dev/null, ours, ours */
	/* what it ends with, in place of an input (in -1); NULL: what we end with, if anything (tie.h) */
	const struct hd_tie *tie;
};

struct hd_proc {
	struct hd_host *host;             /* borrowed; NULL: not running */
	int pid, pidfd;                   /* pidfd -1: none (an old kernel, or the recorder) */
};

/* KILL_ALL: SIGKILL to all processes of the child's session that are of its group */
enum hd_proc_signal { HD_PROC_TERM, HD_PROC_KILL, HD_PROC_INT, HD_PROC_STOP, HD_PROC_CONT, HD_PROC_USR1,
	HD_PROC_KILL_ALL };

struct hd_host_ops {
	const char *name;
	enum hd_err (*spawn)(struct hd_host *host, const struct hd_spawn *how, struct hd_proc *proc,
		struct hd_diag *diag);
	enum hd_err (*wait)(struct hd_host *host, struct hd_proc *proc, int64_t timeout_ns, int *code,
		struct hd_diag *diag);
	enum hd_err (*signal)(struct hd_host *host, struct hd_proc *proc, enum hd_proc_signal what,
		struct hd_diag *diag);
};

struct hd_host { const struct hd_host_ops *ops; };

void hd_host_real(struct hd_host *host);

HD_MUST_USE enum hd_err hd_proc_spawn(struct hd_host *host, const struct hd_spawn *how, struct hd_proc *proc,
	struct hd_diag *diag);
/* HD_E_AGAIN: still running after timeout_ns (0: just look). */
HD_MUST_USE enum hd_err hd_proc_wait(struct hd_proc *proc, int64_t timeout_ns, int *code,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_proc_signal(struct hd_proc *proc, enum hd_proc_signal what, struct hd_diag *diag);
/* A process that is no child of this one, of this user: HD_E_NOTFOUND if it is gone. The caller knows that
 * the number is still its. */
HD_MUST_USE enum hd_err hd_pid_signal(int pid, enum hd_proc_signal what);
/* When a process began, in ticks of this boot; 0: there is none of that number. With it a number means one
 * process only. */
uint64_t hd_pid_began(int pid);
/* For how long it has been there; 0: there is none of that number. As exact as a tick, 10 ms. */
int64_t hd_pid_age_ns(int pid);
/* It could do something now: it is neither gone, nor ended and not waited for, nor stopped. */
bool hd_pid_lives(int pid);
void hd_proc_finish(struct hd_proc *proc);                /* takes zeroed and ended ones */

/* This process goes on as another program, with its number, folder, environment, children and descriptors
 * 0-2. A request to stop that has come, or comes meanwhile, is that program's (sys/signal.h). It returns only
 * with an error, and then is as it was. */
HD_MUST_USE enum hd_err hd_proc_become(const char *const *argv, struct hd_diag *diag);
/* Children of this process, those too that a program started which it was before: as many as there is room
 * for. */
uint32_t hd_proc_children(int *pid, uint32_t cap);
/* True: the child has ended, and its number is void. */
bool hd_pid_reap(int pid);
/* It runs the file that this process does. */
bool hd_pid_is_alike(int pid);

/* This process in two, before it has threads: one goes on in a session of its own, with what it writes in the
 * file `log` (made new), and returns with pid 0 and a descriptor to tell that it has begun; the other
 * returns with the pid of that one, and waits for it to tell, or to end. */
struct hd_detached { int pid, gate; };
HD_MUST_USE enum hd_err hd_proc_detach(struct hd_detached *at, const char *log, struct hd_diag *diag);
void hd_proc_begun(struct hd_detached *at);               /* by the one that goes on */
/* By the other. HD_OK: it has begun. HD_E_AGAIN: it ended before, with *code. */
HD_MUST_USE enum hd_err hd_proc_await(struct hd_detached *at, int *code, struct hd_diag *diag);

/* ---- the twin ---- */

enum { HD_HOST_SIM_CAP = 64, HD_HOST_SIM_ARGS = 256 };

struct hd_host_sim {
	struct hd_host host;              /* hand out &sim->host */
	enum hd_err refuse;               /* what the next spawns answer; HD_OK: they start */
	size_t n;
	struct {
		char args[HD_HOST_SIM_ARGS];      /* argv joined by blanks, cut */
		bool ended;
		int code;                         /* set by the test, or by a signal that ends it */
		unsigned signals;                 /* bits 1 << hd_proc_signal, as they came */
	} proc[HD_HOST_SIM_CAP];                  /* pid is 1 + index */
};

void hd_host_sim_init(struct hd_host_sim *sim);
void hd_host_sim_end(struct hd_host_sim *sim, int pid, int code);        /* it ended by itself */

#endif
