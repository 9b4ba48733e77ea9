/* lockstep.h -- a step in which all virtual nodes advance together: for norms over the
 * global batch (model.bn: global), and for a graph in several intervals.
 *
 * The training graph has nodes at which virtual nodes *meet*. What a batchnorm_sync makes is the sum of
 * what all virtual nodes of all ranks bring to it; what a rows_meet makes is rows of the own and of others.
 * So a rank runs a phase from sync to sync for each of its virtual nodes, brings their values, meets the
 * others, and goes on with what it takes.
 *
 * 1. A sum is folded along the canonical tree in f64, by one rank: sync k by rank
 *    k mod ranks. An empty virtual node brings +0.0, or moments of nothing. Rows are not summed: each
 *    virtual node takes those that its list of ghosts names, by row of the step; where the job says so,
 *    those of an earlier step (stale.h). In mode bounded ranks do not meet for rows (stamps.h), and may run
 *    steps ahead (fore.h): leaves of step t lie in set t mod `nsets`.
 * 2. Each virtual node keeps an arena of its own from the first sync to the end of the
 *    step: memory grows with the virtual nodes of a rank.
 * 3. Ranks meet twice at every sync, also those without virtual nodes, and after a
 *    failure too. Where other workers have virtual nodes, rank 0 exchanges leaves with
 *    them in between (meeting.h), and ranks meet once more.
 * 4. Virtual nodes run in ascending order between two syncs, so each tensor is folded
 *    by the same moves in the same order as without lockstep. */
#ifndef HD_ENGINE_LOCKSTEP_H
#define HD_ENGINE_LOCKSTEP_H

#include "device/program.h"
#include "engine/ghosts.h"

struct hd_closing;
struct hd_job;
struct hd_task;
struct hd_node;
struct hd_fore;
struct hd_rank;
struct hd_stamps;
struct hd_worker;

/* One sync: its node, its place in the phase's order, what virtual nodes bring: rows f32 or moments f64. */
struct hd_sync {
	uint32_t node, place, number;     /* number: through both phases */
	uint64_t bytes;
	uint8_t *leaf;                    /* [nsets][nvns][bytes] */
	void *earlier;                    /* [k][nvns][bytes] of earlier epochs (stale.h); NULL: none */
	bool rows;
	struct hd_ghosts ghosts;          /* of rows, which are read; .ghost NULL: all go to all */
};

/* by HD_RUN_F, HD_RUN_B; none: no lockstep */
struct hd_lockstep {
	struct hd_sync *sync[2]; uint32_t nsyncs[2];
	uint32_t nsets;                   /* of leaves */
	struct hd_stamps *stamps;         /* NULL: none are kept */
	struct hd_fore *fore;             /* NULL: nothing runs ahead */
	struct hd_closing *closing;       /* NULL: rows are late to the end (closing.h) */
	int64_t met;                      /* leaves are all of this step, from 1; 0: not all are; rank 0 */
};

static inline bool hd_lockstep_needed(const struct hd_lockstep *lockstep)
{
	return lockstep->nsyncs[HD_RUN_F] > 0;
}

/* [nvns][bytes] of a step. */
uint8_t *hd_sync_leaf(const struct hd_worker *worker, const struct hd_sync *sync, uint64_t step);
bool hd_lockstep_is_sync(const struct hd_node *node);
uint64_t hd_lockstep_bytes(const struct hd_graph *graph, const struct hd_job *job);     /* of the leaves */
uint32_t hd_lockstep_meetings(const struct hd_graph *graph);     /* syncs of a step, in both phases */
/* What of n workers with so many virtual nodes each, ascending, the one that sends the most sends the
 * others in a step: rows to where they are read (ghosts.h), all else to all. */
HD_MUST_USE enum hd_err hd_lockstep_sent(const struct hd_task *task, const uint32_t *count, uint32_t n,
	uint64_t *most, struct hd_diag *diag);
/* The syncs, and their leaves once the worker is known to fit: no table of it, they count in fits.c. */
HD_MUST_USE enum hd_err hd_lockstep_make(struct hd_worker *worker, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_lockstep_leaves(struct hd_worker *worker, struct hd_diag *diag);
/* Arenas for `need` virtual nodes of the rank, when a plan is prepared. */
HD_MUST_USE enum hd_err hd_lockstep_take(struct hd_rank *rank, uint32_t need, struct hd_diag *diag);
void hd_lockstep_give(struct hd_rank *rank);
/* Between two steps: no virtual node brings anything, but those of the pass that comes (a probe). */
void hd_lockstep_clear(struct hd_worker *worker);
/* FL and BL: the phase for all virtual nodes of the rank, which LD has loaded. Every rank calls it. */
HD_MUST_USE enum hd_err hd_lockstep_run(struct hd_rank *rank, enum hd_run_phase phase, struct hd_diag *diag);

#endif
