/* stretch.h -- the parts of a step in lockstep that another machine may compute: stretches of nodes between
 * two meetings without an op on edges, one dense task (functions/dense.h) a virtual node.
 *
 * A worker whose spec names an owner of tasks (functions/owner.h) hands out each stretch; its device runs
 * those that no function takes. Without an owner there are none.
 *
 * 1. Bits are those of the device alone: a task has the nodes' ops, attributes, shapes and draws, and
 *    gradients are folded here, virtual nodes ascending, by the moves of the device.
 * 2. A stretch has a node of class dense. Its inputs are the values that it reads of others, its outputs
 *    those that others read, that a step reads out or folds.
 * 3. Results lie beside the arenas until all virtual nodes have theirs: a task's inputs stay as they are
 *    while any attempt may read them.
 * 4. What a message cannot carry (a row of more than HD_FN_DATA_BYTES, too many tensors) is no stretch:
 *    the device runs it, and `why` of the first such is for a user's eyes.
 * 5. Device and functions work at once: what finds no slot is the device's.
 *
 * Only the first rank hands out stretches, so such a worker has one device. Connections and calls allocate
 * during a step, in addition to the memory that is taken with a plan.
 *
 * Ownership: tables in the worker's arena; results are taken with a plan and given back by finish().
 * Threads: the rank's. */
#ifndef HD_ENGINE_STRETCH_H
#define HD_ENGINE_STRETCH_H

#include "device/program.h"
#include "functions/message.h"

struct hd_fn_job;
struct hd_rank;
struct hd_worker;

/* Places [from, to) of the phase's order. */
struct hd_stretch {
	enum hd_run_phase phase;
	uint32_t from, to;
	struct hd_fn_work *work;          /* of its tasks, but for draws and digests */
	uint32_t *value, *place;          /* [work->ntensors] in the training graph; of an output's maker */
	uint64_t out_bytes;               /* of the outputs of a task, each on lines of its own */
};

/* All of a worker. */
struct hd_stretches {
	struct hd_stretch *at;
	uint32_t n;
	char why[720];                    /* why a part that was long enough is none, or "" */
	/* of the stretch at hand, [cap] virtual nodes */
	uint32_t cap;
	struct hd_fn_work *work;
	struct hd_fn_job *job;
	void *(*tensor)[HD_FN_TENSORS];
	uint32_t *ivn, *task;             /* of a task; of a virtual node, HD_NONE: it is none */
	uint8_t *results;
	uint64_t result_bytes;            /* of one task, of the largest stretch */
	int64_t idle_ns;
};

/* Of the worker's programs. HD_E_INVAL: there is nothing to give out. */
HD_MUST_USE enum hd_err hd_stretches_make(struct hd_worker *worker, struct hd_diag *diag);
/* Room for `need` virtual nodes, when a plan is prepared. */
HD_MUST_USE enum hd_err hd_stretches_take(struct hd_worker *worker, uint32_t need, struct hd_diag *diag);
/* What that takes. */
uint64_t hd_stretches_bytes(const struct hd_worker *worker, uint32_t need);
/* The owner forgets its tasks. Takes a worker without any. */
void hd_stretches_finish(struct hd_worker *worker);
/* How many there are; *why: of rule 4, or "". */
uint32_t hd_stretches_of(const struct hd_worker *worker, const char **why);
/* How long the device stood still since the worker was made, while functions had what was left. */
int64_t hd_stretches_idle_ns(const struct hd_worker *worker);
/* The first one in places [from, to) of a phase; NULL: there is none, or this rank gives out nothing. */
const struct hd_stretch *hd_stretch_in(const struct hd_rank *rank, enum hd_run_phase phase, uint32_t from,
	uint32_t to);
/* Computes it for all virtual nodes of the rank. Failures are the rank's (hd_rank_fail). */
void hd_stretch_run(struct hd_rank *rank, const struct hd_stretch *stretch);

#endif
