/* comm.h -- decides of a job's graph, layout and costs what a run does with its transfers (plan/comm.h): the
 * rank of each bucket, and of which segments buckets are.
 *
 * The coordinator's process calls it when a run begins; `heddle plan order` and `plan buckets` print it.
 *
 * 1. Ranks: order.h, whose receives are the buckets of the layout and whose ops are the forward nodes of the
 *    graph with their real inputs: what the first virtual node of a step does. A node needs the buckets with
 *    any segment of a parameter that it reads; so of several readers the earliest counts. A receive takes
 *    latency_ns and its bytes over the link.
 * 2. fifo: the last bucket first, as backward passes make them. auto: rule of hd_order_auto(), and no `parts`
 *    (ADR 202); the other orders have `parts`.
 * 3. Buckets of given bytes: whole segments of consecutive tensors while they have no more than that
 *    together, at least one segment; the last tensors first, so that the one that is smaller is the first.
 *    HD_COMM_TENSORS: each tensor, cut into pieces of HD_COMM_MOST.
 * 4. Buckets by times (rule 2 of bucket.h): the gradients of the parameters, the last first, ready when all
 *    their parts are made by the backward nodes in the graph's order; a bucket is a run of them, ready with
 *    the last; none has more than `most` bytes: larger tensors are cut. What is more than HD_BUCKET_PIECES
 *    pieces is cut by `most` alone.
 * 5. A function of the ask: equal asks, equal answers everywhere.
 *
 * Everything lies in the arena. Pure. */
#ifndef HD_PLANNER_COMM_H
#define HD_PLANNER_COMM_H

#include "graph/layout.h"
#include "plan/comm.h"
#include "planner/bucket.h"

#define HD_COMM_TENSORS INT64_C(-1)
#define HD_COMM_MOST (INT64_C(64) << 20)

struct hd_comm_link { double bytes_per_s; int64_t latency_ns; };

struct hd_comm_ask {
	const struct hd_graph *graph;             /* the training graph */
	const struct hd_layout *layout;           /* of it; of its buckets ranks are made */
	const int64_t *node_ns;                   /* [graph->nnodes]; NULL: not known */
	struct hd_comm_link link;
	enum hd_comm_order order;
	uint64_t seed;                            /* of random */
};

/* Receives and ops of rule 1. */
HD_MUST_USE enum hd_err hd_comm_graph(struct hd_order_graph *graph, const struct hd_comm_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag);
/* All but nsegments, which stays NULL. HD_E_INVAL: as of order.h. */
HD_MUST_USE enum hd_err hd_comm_ranks(struct hd_comm *comm, const struct hd_comm_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag);

/* How many segments each bucket has, in the layout's order. */
struct hd_comm_cut { uint32_t nbuckets, *nsegments; };
/* Rule 3. Of the layout only segments count. */
HD_MUST_USE enum hd_err hd_comm_cut(struct hd_comm_cut *cut, const struct hd_layout *layout, int64_t bytes,
	struct hd_arena *arena, struct hd_diag *diag);
/* Rule 4, of ask's graph, times and link, which must be known, summed by owners of `nworkers`. *end_ns: when
 * the last is summed, from the first backward node on; 0: not known. */
HD_MUST_USE enum hd_err hd_comm_cut_best(struct hd_comm_cut *cut, const struct hd_comm_ask *ask,
	uint32_t nworkers, int64_t most, int64_t *end_ns, struct hd_arena *arena, struct hd_diag *diag);

#endif
