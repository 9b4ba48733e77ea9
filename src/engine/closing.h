/* closing.h -- the return from asynchronous to synchronous steps near the end of training: of a graph in
 * several intervals, with stale rows (batch.mode) and batch.close (docs/adr/0207). Three states, forward
 * only: early, closed, done. Read by the run.
 *
 * Early, before a step whose number is a multiple of batch.close.every, the measure batch.close.metric is
 * taken on the validation set. If it is within batch.close.margin of batch.close.target, this step and all
 * that follow are in sync (stale.h, stamps.h). Done is when eval.target is reached, as in any run.
 *
 * 1. The decision is a function of the state before the step and of the job: each worker makes it itself,
 *    also one that follows or has joined, and no message carries it. So runs in mode exact have the same bits
 *    on any devices and workers and after a resume, as they have without closing.
 * 2. With the commit of the first step in sync its number is state: "run.closed", 0 before. The recording
 *    has ages of 0 from there on (stamps.h), so a replay measures nothing: it closes where its recording
 *    did.
 * 3. Nothing runs ahead of the slowest in sync (fore.h). What did of the first such step is not used: it read
 *    stale rows, and is computed once more.
 * 4. A measure is taken once before a step, unless the state is another since: hd_closing_forget().
 *
 * Ownership: the worker's arena. Threads: the worker's caller; ranks read whether a step is in sync. */
#ifndef HD_ENGINE_CLOSING_H
#define HD_ENGINE_CLOSING_H

#include "job/job.h"

struct hd_task;
struct hd_worker;

struct hd_closing {
	int64_t since;                    /* the entry of the table */
	uint64_t measured;                /* step + 1 before which the measure was taken; 0: none */
	bool near;                        /* it is within the margin */
	double measure;
};

bool hd_closing_wanted(const struct hd_job *job);
/* HD_E_INVAL: nothing to measure on. */
HD_MUST_USE enum hd_err hd_closing_allowed(const struct hd_task *task, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_closing_take(struct hd_worker *worker, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_closing_table(struct hd_worker *worker, struct hd_diag *diag);
/* Between two steps: is the step at hand the first in sync, or after it? Measures where it must. */
HD_MUST_USE enum hd_err hd_closing_look(struct hd_worker *worker, struct hd_diag *diag);
bool hd_closing_closed(const struct hd_worker *worker);     /* of the step at hand, after look() */
/* The measure that closes the step at hand; false: it is not the first one in sync, or of a replay. */
bool hd_closing_begins(const struct hd_worker *worker, double *measure);
void hd_closing_forget(struct hd_worker *worker);
void hd_closing_commit(struct hd_worker *worker);           /* as hd_stale_commit() */

#endif
