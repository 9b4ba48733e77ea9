/* fore.h -- virtual nodes that run steps ahead of the slowest: of a graph in several intervals with
 * batch.mode bounded and batch.staleness S above 0 (docs/adr/0192). Private to the room.
 *
 * The *step at hand* is the one that is not committed yet: the slowest virtual node is in it. A rank that has
 * finished it for its own virtual nodes goes on with the next one, and so up to S steps ahead. The step at
 * hand ends when all ranks have finished it and, over workers, all rows of the others are here. It runs a
 * step in *parts*: from sync to sync, forwards, then backwards; a part of all its virtual nodes at a time.
 * Between two parts it checks whether it is called back to the step at hand. A step that was left unfinished
 * is taken up where it was left, whether it is still ahead or has become the one at hand.
 *
 * 1. A virtual node begins a step with the newest weights that are committed, keeps these to the end of it,
 *    and takes the newest rows that are there (stamps.h, rules 1 and 2): what it reads of later steps than
 *    its own is nothing.
 * 2. What it makes of a step ahead lies beside the same of the step at hand: leaves of the syncs in S + 1
 *    sets (lockstep.h), gradients in buffers of their own, loss and ages here. When that step becomes the
 *    one at hand a rank moves the latter three to their places, and all goes on as if it had been made
 *    there: sums, norm, update and commit know of one step.
 * 3. None of it is state. It is forgotten where the step at hand is begun again, skipped or taken over from
 *    outside, with a new plan and before a probe; then those steps are computed once more, and may read
 *    other rows.
 * 4. No message is sent for a step ahead: its rows go to other workers when it has become the one at hand. So
 *    protocol, exchange and credits are those of steps one after another (meeting.h), and rows of other
 *    workers are at least as late as the rank is ahead.
 * 5. The rows of a step are those of the step before: samples of a graph are all of it, so what LD has
 *    loaded for the step at hand serves those ahead.
 * 6. Nothing runs ahead in step 0 or where all before were skipped, in steps after closing (closing.h), in a
 *    replay, in a repair or a probe, nor between COMPUTE and the next step.
 *
 * Ownership: the worker's arena; buffers are of the ranks' pools. Threads: a rank its own virtual nodes; the
 * counters any rank; forgetting between two activities, the worker's caller. */
#ifndef HD_ENGINE_FORE_H
#define HD_ENGINE_FORE_H

#include <stdatomic.h>

#include "graph/ir.h"
#include "job/job.h"

struct hd_leaf;
struct hd_rank;
struct hd_task;
struct hd_worker;

struct hd_fore {
	uint32_t most;                    /* S */
	struct hd_leaf *leaf;             /* [S][nvns] of step t at t mod S */
	double *said;                     /* [S][nvns] of what a leaf says besides (moments.h) */
	atomic_uint nthrough;             /* ranks that are through the step at hand */
	_Atomic bool here;                /* all that other workers bring to it is here */
	/* of tests: before a part, on the rank's thread; NULL: none */
	void (*hold)(void *user, const struct hd_rank *rank, uint32_t part); void *hold_user;
};

uint32_t hd_fore_steps(const struct hd_job *job);                     /* S; 0: none runs ahead */
/* HD_E_INVAL: the job has what needs all virtual nodes in one step. */
HD_MUST_USE enum hd_err hd_fore_allowed(const struct hd_task *task, struct hd_diag *diag);
uint64_t hd_fore_bytes(const struct hd_task *task);                   /* besides gradients */
HD_MUST_USE enum hd_err hd_fore_take(struct hd_worker *worker, struct hd_diag *diag);
void hd_fore_forget(struct hd_worker *worker);                        /* rule 3 */

/* Do virtual nodes run ahead in the pass at hand? */
bool hd_fore_runs(const struct hd_worker *worker);
/* A step begins: what the rank has of it comes to its place. Rank 0 counts from 0. */
void hd_fore_open(struct hd_rank *rank);
/* Of the step that the rank is in: its gradients; what virtual node vn says. */
float *const *hd_fore_buffer(const struct hd_rank *rank);
struct hd_leaf *hd_fore_leaf(const struct hd_rank *rank, uint32_t vn);
double *hd_fore_said(const struct hd_rank *rank, uint32_t vn);
/* Which part the rank runs next of a step, and that it was run. `nparts`: of a step. */
uint32_t hd_fore_next(const struct hd_rank *rank, uint64_t step, uint32_t nparts);
void hd_fore_ran(struct hd_rank *rank, uint64_t step, uint32_t part, uint32_t nparts);

#endif
