/* local_workers.h -- the worker processes that a run has on its own machine.
 *
 * The coordinator decides how many there shall be; a crew starts them, notices at once when one ended, and
 * ends them with the run. Who they are in the job (their worker ids) is not known here.
 *
 * 1. Each is a process of the program itself, `heddle worker ...`, with a log of its own,
 *    log/hand-<number>.log in the run's folder; numbers rise and are never used again.
 * 2. One that failed, or ended within HD_LOCAL_SHORT_NS of its start, is a bad start: after the k-th in a row
 *    the next start waits min(2^k * 100 ms, 5 s) (ready_ns), so that a program that cannot start does not eat
 *    the machine. One that could not be started at all is a bad start too.
 * 3. One fails that cannot be started, or ends with an error, or by a signal, and of which its owner says
 *    that it did nothing. HD_LOCAL_ALIKE of them in a row with the same code say something of all that are to
 *    come; one that did something forgives those before it.
 * 4. finish: SIGTERM to all, SIGKILL to those that are there after the grace. No child outlives its local.
 *
 * Ownership: init/finish; texts of the spec are borrowed. Threads: one. */
#ifndef HD_DRIVER_LOCAL_WORKERS_H
#define HD_DRIVER_LOCAL_WORKERS_H

#include "sys/clock.h"
#include "sys/file.h"
#include "sys/process.h"

enum { HD_LOCAL_CHILDREN = 64, HD_LOCAL_ARGS = 24, HD_LOCAL_ALIKE = 5 };
#define HD_LOCAL_SHORT_NS INT64_C(2000000000)

struct hd_local_spec {
	struct hd_host *host;             /* borrowed, as fs and clock */
	struct hd_fs *fs;
	struct hd_clock *clock;
	const char *dir;                  /* of the run */
	const char *const *argv;          /* of every child, ends with NULL, at most HD_LOCAL_ARGS */
};

/* proc.host NULL: a free place */
struct hd_child { struct hd_proc proc; uint32_t number; int64_t began_ns; uint64_t mark; };
/* code: 128 + signal. mark: that of the crew when it was started. */
struct hd_child_end { uint32_t number; int pid, code; int64_t lived_ns; uint64_t mark; };

struct hd_local_workers {
	struct hd_local_spec spec;
	struct hd_child child[HD_LOCAL_CHILDREN];
	uint32_t n, next, bad_starts;
	uint64_t mark;                    /* the owner's, for those that are started from now on */
	uint32_t nalike;                  /* failed in a row with alike_code */
	int alike_code;
	int64_t ready_ns;                 /* not before, by the clock */
};

void hd_local_init(struct hd_local_workers *local, const struct hd_local_spec *spec);
void hd_local_finish(struct hd_local_workers *local, int64_t grace_ns);
/* HD_E_AGAIN: too soon after bad starts, see ready_ns. `number` may be NULL. */
HD_MUST_USE enum hd_err hd_local_start(struct hd_local_workers *local, uint32_t *number,
	struct hd_diag *diag);
/* One that has ended since the last look, for the owner to judge next. false: none. Does not block. */
bool hd_local_ended(struct hd_local_workers *local, struct hd_child_end *end);
/* True: it is the last of HD_LOCAL_ALIKE that failed alike, or one after them. */
bool hd_local_judge(struct hd_local_workers *local, const struct hd_child_end *end, bool did_something);
struct hd_child *hd_local_find(struct hd_local_workers *local, int pid);          /* NULL: none */

#endif
