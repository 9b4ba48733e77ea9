/* stale.h -- rows of ghosts from earlier epochs: of a graph in several intervals whose job says
 * batch.mode: exact, bounded or replay (docs/adr/0179). Private to the room.
 *
 * An *epoch* is a step, a *cell* is one of `batch.cells` equal runs of virtual nodes. In exact k (k is
 * `batch.staleness`) the ghosts that a virtual node takes in epoch e, at every sync, forwards and backwards,
 * are rows of epoch max(0, e - k) where they are of another cell, and rows of e where they are of its own.
 * So epoch 0 is that of a graph in step, and exact 0 is all of it. In bounded and replay k is S + 1 (S is
 * `batch.staleness`), and of each virtual node that is read it is recorded how late its rows are (stamps.h).
 *
 * 1. In exact it follows from e, k and the cells which epoch a row is of: not from devices, workers, plans or
 *    arrival.
 * 2. The rows of the k epochs before are state: an entry "rows.N" of the table (table.c) for sync N of both
 *    phases, [k, rows of a step, width]; epoch t lies in place t mod k.
 * 3. They change with the commit of a step and not before: a step that is begun again finds what it found.
 *    Exact epoch e reads place e mod k, and then its own rows take that place (before epoch k: place 0, and
 *    e). Rows of steps that are not committed, which a virtual node ahead of others may read (fore.h), lie in
 *    the leaves of the syncs.
 * 4. The rows of a step that is skipped are those of the step before: its place becomes a copy, as weights
 *    stay what they were, so that no row that is not finite becomes state. What is read may thus be older by
 *    as many steps as were skipped. Where all steps so far were skipped there are no rows: the next one is in
 *    step, as step 0 is, and its rows take every place.
 * 5. Every worker has all of it, also one without virtual nodes: it takes the rows of the others (meeting.h,
 *    rule 5), in the pass of its part, which is made when it finishes the step. If the others finish the step
 *    and go on, a fence ends its pass: it then has the sums but not the rows, so it leaves, and may join
 *    again. This cannot happen to a worker with virtual nodes: the sums need its own, and the last of these
 *    comes after the last sync.
 * 6. Evaluation runs the whole graph and reads none.
 * 7. A value of an edge (attention) is made at both of its ends (graph/far_end.h), at each of the rows that a
 *    virtual node takes there: own ones of e, late ones of the other end. So where rows are late the two
 *    differ, as the sums of rows over an edge do; the maximum and the sum of a softmax, made where its target
 *    is, are rows as well, as late as the target's other rows.
 *
 * Ownership: the worker's arena. Threads: ranks read between two syncs; the worker's caller writes between
 * two steps. */
#ifndef HD_ENGINE_STALE_H
#define HD_ENGINE_STALE_H

#include "graph/ir.h"
#include "job/job.h"

struct hd_rank;
struct hd_sync;
struct hd_worker;

/* k; 0: rows are of the epoch at hand. */
uint32_t hd_stale_epochs(const struct hd_job *job);
uint64_t hd_stale_bytes(const struct hd_graph *graph, const struct hd_job *job);
/* The places of all syncs, zeros. */
HD_MUST_USE enum hd_err hd_stale_take(struct hd_worker *worker, struct hd_diag *diag);
/* Their entries of the state table. */
HD_MUST_USE enum hd_err hd_stale_table(struct hd_worker *worker, struct hd_diag *diag);
/* The leaves among which virtual node vn, in the step that the rank computes, finds the rows of another one,
 * or its own: those of a sync or a place. In bounded and replay it is decided before (hd_stamps_decide()). */
const uint8_t *hd_stale_leaf(const struct hd_rank *rank, const struct hd_sync *sync, uint32_t vn,
	uint32_t other);
/* HD_E_PEERLOST: the sums of the step at hand are here, and not all rows: rule 5. */
HD_MUST_USE enum hd_err hd_stale_check(const struct hd_worker *worker, struct hd_diag *diag);
/* All steps before the one at hand were skipped, or there were none. */
bool hd_stale_none(const struct hd_worker *worker);
/* The step is committed, or skipped; its number is still worker->count.step, and skips are those before. */
void hd_stale_commit(struct hd_worker *worker, bool skipped);

#endif
