/* ending.h -- the state of a run by its folder alone, when no process of it is left.
 *
 * The process that runs it writes an event `job_start` and, unless it is killed, `job_end`: where it stopped,
 * of how many steps, with which exit code and why. One that leaves at once (sys/signal.h) has
 * that ready at each step: it says so, too. Steps and loss are those of the last line of metrics.ndjson,
 * which a death may leave behind the last checkpoint.
 *
 * Threads: any. Reads the ends of two files. */
#ifndef HD_RUN_ENDING_H
#define HD_RUN_ENDING_H

#include "sys/signal.h"
#include "run/rundir.h"

enum { HD_ENDING_TEXT = 600 };

struct hd_ending {
	bool began, ended;                /* ended false: it goes on, or was killed */
	bool reached;                     /* it ended since eval.target was reached */
	bool at_once;                     /* it left by a second signal, without a checkpoint */
	int exit;                         /* of one that ended; -1: not said (an earlier program) */
	uint64_t step, steps;             /* steps 0: not known */
	bool has_loss;
	double loss;
	char text[HD_ENDING_TEXT];        /* why it ended; "": as it should */
	char name[HD_MAX_NAME];           /* of the job; "": not known */
};

/* HD_E_NOTFOUND: no run lies there. */
HD_MUST_USE enum hd_err hd_ending_look(struct hd_fs *fs, const char *run, struct hd_ending *ending,
	struct hd_diag *diag);

/* Of a run that no process holds: new, died, done, stopped (it was asked to), failed, ended (not known
 * how). */
const char *hd_ending_state(const struct hd_ending *ending);

/* It ended well and has all its steps, or what it was to reach: no process has anything left to do. */
bool hd_ending_is_done(const struct hd_ending *ending);

/* It was asked to stop, and did: it goes on when it is resumed, or, if it left at once, by a worker that
 * comes later. */
bool hd_ending_is_stopped(const struct hd_ending *ending);

/* It ended as it should, with all its steps or with as many as were asked for, or was stopped in order: it
 * goes on when it is resumed, by no other way. */
bool hd_ending_is_over(const struct hd_ending *ending);

/* Written by the run's holder. */
void hd_ending_begins(struct hd_rundir *dir, uint64_t step, uint64_t steps);
void hd_ending_ends(struct hd_rundir *dir, uint64_t step, uint64_t steps, enum hd_err err,
	const struct hd_diag *why);
/* As one that ends well, since its target was reached. */
void hd_ending_reached(struct hd_rundir *dir, uint64_t step, uint64_t steps);

/* The line of each wish, of this step and of the one before. Zeroed: none is ready. */
struct hd_ending_word { struct hd_signal_word word[2]; char line[2][HD_STOP_INTERRUPT + 1][HD_ENDING_TEXT];
	unsigned next; };
/* From now on a second signal writes that the run stopped at `step`, without a checkpoint. Those of `word`
 * and `dir` stay where they are until hd_signal_word_set() takes another one. */
void hd_ending_at_once(struct hd_ending_word *word, const struct hd_rundir *dir, uint64_t step,
	uint64_t steps);

#endif
