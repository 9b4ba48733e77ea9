/* values.h -- digests of what a step makes: each node's outputs of each virtual node, and the state after it.
 *
 * A plan says where and when; what a node of the training graph makes of a virtual node is equal under all
 * plans, bit for bit, and so is its digest, whichever rank of which stage, tensor group or pipeline made it.
 * Where two runs differ, the first digest that differs names the node, the virtual node and the place. The
 * key `trace.values` asks for them; run/value_log.h writes them down and compares.
 *
 * 1. A digest is of (virtual node, node of the task's training graph): all outputs, for the rows of the
 *    virtual node in their order. Slices of one (batch.slices) are joined in their order. A view has none.
 *    Shards of a model are nodes of its graph: each has its own, whatever devices share them.
 * 2. A node that runs again in a step (recomputation, after a loss) and makes the same keeps its digest; else
 *    both are joined, so that the difference shows.
 * 3. After the update each segment of the flat vector (layout.h) that this worker updates has one, of its
 *    parameters and slots.
 * 4. Looked at are the steps whose number `every` divides; of the state also those before them, so that
 *    where values begin to differ is known to be no difference of the state that they began from.
 * 5. While values are looked at no kernel folds gradients by itself (device.h): equal bits, but memory that
 *    would only be reserved is written to, which no prediction counts.
 * 6. Not looked at: work of shadows, evaluation, probes of joiners, running statistics; what another process
 *    has made and the device takes as made (hd_bind.made).
 *
 * Ownership: in the worker's arena. Threads: a rank writes the marks of its virtual nodes; all else is the
 * worker's caller's, between passes. */
#ifndef HD_ENGINE_VALUES_H
#define HD_ENGINE_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "graph/stages.h"

struct hd_bind;
struct hd_rank;
struct hd_worker;

/* digest 0: there is none. Where: the device of the worker; the stage of the plan. */
struct hd_mark { uint64_t digest; uint16_t rank, stage; };

struct hd_values {
	uint64_t every, step;             /* step: of the marks */
	bool looks, has_state;            /* at values of the step at hand; there are marks of the state */
	uint32_t nvns, nnodes, nsegments;
	struct hd_mark *made;             /* [nvns][nnodes] */
	struct hd_mark *state;            /* [nsegments] */
};

/* NULL: the job does not ask for them. */
struct hd_values *hd_worker_values(struct hd_worker *worker);
/* May there be marks? */
static inline bool hd_values_any(const struct hd_values *values)
{
	return values->looks || values->has_state;
}
/* Takes what there is for written down: no marks are left. */
void hd_values_clear(struct hd_values *values);

/* Within the room: tables when a worker is made; a step begins, or has ended well. */
HD_MUST_USE enum hd_err hd_values_make(struct hd_worker *worker, struct hd_diag *diag);
void hd_values_begin(struct hd_worker *worker);
void hd_values_end(struct hd_worker *worker);
/* Lets a run of the rank's device look, if the step is looked at. */
void hd_values_watch(struct hd_rank *rank, uint16_t stage, const uint32_t *node_of, struct hd_bind *bind);
/* [nodes of the stage's graph] which node of the whole graph each is. NULL: no memory. */
uint32_t *hd_values_nodes(const struct hd_graph_stages *cuts, uint32_t stage, struct hd_arena *arena);

#endif
