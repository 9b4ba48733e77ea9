/* stamps.h -- which rows were late: of a graph in several intervals with batch.mode bounded or replay
 * (docs/adr/0179, 0192). Private to the room; the recording is read when a task is made (task.h).
 *
 * In `bounded` ranks and workers do not wait at a sync: a virtual node in epoch e takes of each other one
 * the newest rows that are there, of e down to e - 1 - S (stale.h; S is batch.staleness). Which they are is
 * a fact of the run, so it is *recorded*; `replay` of a recording waits at each sync and takes what was
 * recorded.
 *
 * 1. With S = 0 a step begins when the one before is committed: the weights are of the step for all virtual
 *    nodes, rows are of e or e - 1. With S above 0 virtual nodes may be up to S steps ahead of the step at
 *    hand (fore.h), and one keeps for a step the newest weights that were committed when it began that step:
 *    it *pins* a version. Step 0 is in step, and nothing runs ahead in it, and so is each step before which
 *    all were skipped. Moments of norms over the global batch are waited for as ever.
 * 2. One *age* for each reader, sync and virtual node that is read: how many epochs ago its rows were made,
 *    0 to S + 1. A reader decides it once at a sync, for all its ghosts of that virtual node: they are rows
 *    of one epoch. Rows of a step that was skipped are older ones (stale.h, rule 4): an age counts steps, not
 *    updates. One age more for each reader and step, with S above 0: by how many updates its weights
 *    are behind those of the step, 0 to S.
 * 3. Ages of a step travel with what its leaves say (leaves.c) and become state with its commit: the entry
 *    "stamps" of the table, [steps of the job, syncs, readers, words of 32 bits], a word with as many ages
 *    as it has room for, of as few bits as S + 2 values need; with S above 0 one sync more than there are,
 *    whose first age is that of the weights. So a checkpoint of a run is its recording, and a step that was
 *    begun again is recorded as it counted.
 * 4. Where the recorded run went back to sync (closing.h) steps that it has not made are in sync, too.
 * 5. The same job in `replay`, job.steps among it, has the same bits on any devices and workers, this entry
 *    among them. A recording of fewer steps than the job has is refused.
 *
 * Ownership: the worker's arena. Threads: ranks mark and look at marks (release, acquire); a rank writes the
 * bits of its own virtual nodes; all else is the worker's caller's. */
#ifndef HD_ENGINE_STAMPS_H
#define HD_ENGINE_STAMPS_H

#include <stdatomic.h>

#include "graph/ir.h"
#include "job/job.h"

struct hd_fs;
struct hd_rank;
struct hd_sync;
struct hd_task;
struct hd_worker;

struct hd_stamps {
	/* [sets][syncs][nvns] step + 1 of the leaf that is there: of step t in set t mod sets (lockstep.h) */
	_Atomic uint64_t *brought;
	atomic_uint *nranks;              /* [sets][syncs] that have brought theirs */
	uint32_t *late;                   /* the entry of the table */
	uint64_t said_at;                 /* where the ages of a virtual node begin in what its leaf says */
};

/* What another run has recorded. */
/* closed: from that step on it is in sync (closing.h); 0: none. */
struct hd_recording { uint64_t nsteps; const uint32_t *late; uint64_t closed; };
/* Of the newest checkpoint at `path`, a run's or its own folder. HD_E_INVAL: of another graph, staleness or
 * number of virtual nodes, or of fewer steps; no recording. `digest`: of its bits. */
HD_MUST_USE enum hd_err hd_recording_read(struct hd_recording *recording, const struct hd_task *task,
	struct hd_fs *fs, const char *path, struct hd_arena *arena, struct hd_hash *digest,
	struct hd_diag *diag);

bool hd_stamps_kept(const struct hd_job *job);                        /* bounded or replay */
uint32_t hd_stamps_bound(const struct hd_job *job);                   /* S, 0 in other modes */
/* Numbers that a leaf says besides; bytes of the entry. 0 in other modes. */
uint64_t hd_stamps_said(const struct hd_graph *graph, const struct hd_job *job);
uint64_t hd_stamps_bytes(const struct hd_task *task);
/* HD_E_REFUSED: more than state may have; before bytes() is asked. */
HD_MUST_USE enum hd_err hd_stamps_allowed(const struct hd_task *task, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_stamps_take(struct hd_worker *worker, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_stamps_table(struct hd_worker *worker, struct hd_diag *diag);

/* Does no rank wait at the syncs of the step at hand? */
bool hd_stamps_run_free(const struct hd_worker *worker);
void hd_stamps_clear(struct hd_worker *worker);                       /* nothing was brought, of any step */
/* A step begins: of the one that comes last ahead of it nothing was brought; rank 0. */
void hd_stamps_begin(struct hd_worker *worker);
void hd_stamps_mark(struct hd_worker *worker, const struct hd_sync *sync, uint32_t vn, uint64_t step);
/* The rank is the last one to bring in its step. */
bool hd_stamps_last(struct hd_rank *rank, const struct hd_sync *sync);
/* All ranks have brought in the step at hand. */
bool hd_stamps_all(const struct hd_worker *worker, const struct hd_sync *sync);
/* What virtual node vn takes at the sync is decided, and said by its leaf. */
void hd_stamps_decide(struct hd_rank *rank, const struct hd_sync *sync, uint32_t vn);
uint32_t hd_stamps_age(const struct hd_rank *rank, const struct hd_sync *sync, uint32_t vn, uint32_t other);
/* The same of the weights that it begins a step with; by how many updates they are behind the newest now. */
void hd_stamps_pin(struct hd_rank *rank, uint32_t vn);
uint32_t hd_stamps_pinned(const struct hd_rank *rank, uint32_t vn);
void hd_stamps_commit(struct hd_worker *worker);                      /* as hd_stale_commit() */

#endif
