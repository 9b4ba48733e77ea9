/* signal.h -- stop requests by signals: preempt, or interrupt.
 *
 * A worker looks at hd_signal_stop() between steps; on a request it commits a checkpoint
 * and leaves with the exit code of the request.
 *
 * 1. SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU: HD_STOP_PREEMPT (75). SIGINT: HD_STOP_INTERRUPT
 *    (130). The first request stands. A SIGHUP that is ignored already (nohup) stays so.
 * 2. A second of these signals exits at once, with the exit code of the second
 *    signal; nothing is flushed. The last line, if one is set, is written before.
 * 3. SIGCONT is handled and does nothing. SIGPIPE is ignored: the write fails. SIGQUIT asks for a copy of
 *    what is recorded (hd_signal_dumps()), and ends nothing, while something is recorded
 *    (hd_signal_dump_take()); else it is as it was before.
 * 4. A fault (SIGSEGV, SIGBUS, SIGFPE, SIGILL) and SIGABRT call what hd_signal_fatal_set() has set, once;
 *    then they end the process as without a handler. Not under a sanitizer, which has a report of its own.
 * 5. Of a starter that sends each signal twice (hd_signal_twice()) the same one within HD_SIGNAL_TWICE_NS is
 *    the first one still.
 * 6. The flag, when it was set, the last line beside it, the count of SIGQUITs and of recordings that take
 *    them, what a fault calls and rule 5 are the mutable globals of the room besides the failpoints.
 *
 * Threads: install from the main thread before others start; the flag is read by any. */
#ifndef HD_SYS_SIGNAL_H
#define HD_SYS_SIGNAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define HD_SIGNAL_TWICE_NS INT64_C(5000000000)

enum hd_stop { HD_STOP_NONE, HD_STOP_PREEMPT, HD_STOP_INTERRUPT };

/* Lets those come, too, that were held. */
HD_MUST_USE enum hd_err hd_signal_install(struct hd_diag *diag);
/* Rule 5, from here on: srun hands on what Slurm has sent to its tasks already. */
void hd_signal_twice(void);
/* For a process that goes on as another program: requests to stop wait from here on, one that has come too,
 * until that program installs its handlers. All other signals come. */
void hd_signal_hold(void);
/* It goes on as this program: requests come again. What has come before is known already. */
void hd_signal_hold_not(void);
enum hd_stop hd_signal_stop(void);
int hd_signal_number(void);               /* the signal of the request; 0: none */
const char *hd_signal_name(int number);   /* "SIGTERM"; of other numbers "signal" */
enum hd_err hd_stop_err(enum hd_stop stop);       /* HD_OK, HD_E_PREEMPTED, HD_E_INTERRUPT */
void hd_signal_stop_set(enum hd_stop stop);       /* by a test, or by a deadline (run.max_seconds) */

/* For a library that caught SIGTERM in place of the program: it comes once more, now that what it does is as
 * before. Where it does not end the process: the error of the stop request. */
enum hd_err hd_signal_term_again(void);

int hd_signal_dumps(void);                /* how often SIGQUIT came */
/* By each recording, from its begin to its end; one thread of the process at a time. */
HD_MUST_USE enum hd_err hd_signal_dump_take(struct hd_diag *diag);
void hd_signal_dump_give(void);

/* What a fault does before the process ends: async-signal-safe, on the thread of the fault. */
struct hd_signal_fatal { void (*act)(void *user, int number); void *user; };
/* Borrowed until another is set; NULL: none. */
void hd_signal_fatal_set(const struct hd_signal_fatal *fatal);

struct hd_file;

/* What a second signal writes before it exits: the line of its request, added to `to` (opened to append) by
 * one write. */
struct hd_signal_word {
	const struct hd_file *to;
	/* len_bytes 0: nothing is said */
	struct { const char *at; size_t len_bytes; } line[HD_STOP_INTERRUPT + 1];
};
/* In place of the one before, which is the caller's again; NULL: none. Borrowed until then. By one thread at
 * a time. It does not return once a second signal has begun to say the one before: the process is ending. */
void hd_signal_word_set(const struct hd_signal_word *word);

#endif
