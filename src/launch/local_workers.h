/* local_workers.h -- worker processes of a run on its own machine.
 *
 * The coordinator decides how many are wanted. This starts them, reaps them and ends them with the run. It
 * knows pids, not worker ids.
 *
 * 1. Each child is `heddle worker ...` of the same program, with its own log log/hand-<number>.log in the
 *    run's folder. Numbers rise and are never reused.
 * 2. A start is bad if the process cannot be started, fails, or lives less than HD_LOCAL_SHORT_NS. After the
 *    k-th bad start in a row the next one waits min(2^k * 100 ms, 5 s) (ready_ns), so that a program that
 *    cannot start does not eat the machine.
 * 3. A child has failed if it cannot be started, or ends with an error or by a signal, and its owner says
 *    that it did nothing. HD_LOCAL_ALIKE failures in a row with the same code mean that the next will fail,
 *    too. A child that did something resets the count.
 * 4. A *generation* is the children that were there when one of them failed; its first failure counts, and
 *    those of the others do not. Of HD_LOCAL_ALIKE generations in a row that fail in one step of the run,
 *    whatever they did before, the next will fail in it, too. A commit of that step ends the series.
 * 5. A child that is started with a zone gets it as --zone, and has it as long as it lives.
 * 6. finish: SIGTERM to all, SIGKILL to those alive after the grace. No child outlives it.
 *
 * Ownership: init/finish; texts of the spec are borrowed. Threads: one. */
#ifndef HD_LAUNCH_LOCAL_WORKERS_H
#define HD_LAUNCH_LOCAL_WORKERS_H

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
struct hd_child { struct hd_proc proc; uint32_t number; int64_t began_ns; uint64_t mark; const char *zone; };
/* code: 128 + signal. mark: hd_local_workers.mark at its start. */
struct hd_child_end { uint32_t number; int pid, code; int64_t lived_ns; uint64_t mark; };

struct hd_local_workers {
	struct hd_local_spec spec;
	struct hd_child child[HD_LOCAL_CHILDREN];
	uint32_t n, next, bad_starts;
	uint64_t mark;                    /* the owner's, for those that are started from now on */
	const char *zone;                 /* likewise; NULL: none */
	uint32_t nalike;                  /* failed in a row with alike_code */
	int alike_code;
	int64_t ready_ns;                 /* not before, by the clock */
	/* generations that failed in a row in that step; children from this number on are of the next one */
	struct { uint64_t step; uint32_t n, next; } same;
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
/* One of those that run a step has ended in it. How many generations have failed in it, where this is the
 * first failure of its own; else 0. */
uint32_t hd_local_fell(struct hd_local_workers *local, const struct hd_child_end *end, uint64_t step);
void hd_local_passed(struct hd_local_workers *local, uint64_t step);      /* committed */
struct hd_child *hd_local_find(struct hd_local_workers *local, int pid);          /* NULL: none */

#endif
