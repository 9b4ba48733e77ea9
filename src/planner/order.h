/* order.h -- in which order a device should receive what its step waits for.
 *
 * Hashemi, Jyothi and Campbell, "TicTac: Accelerating distributed deep learning with communication
 * scheduling" (MLSys 2019), with two orders of our own. `heddle plan order` prints it. A graph is the first
 * virtual node of a step on one device: receives, one link, no pre-emption; ops, one compute unit that
 * never waits while an op is ready.
 *
 * 1. dep(op): the receives it needs, itself or by its inputs. Of those outstanding: P(r) = sum of the times
 *    of ops that need r alone; M+(r) = least sum of receive times of an op that needs r and another; none:
 *    infinite.
 * 2. tic: every receive takes 1, ops nothing; by M+, ties share the place of the first of them. tic+: by the
 *    least |dep(op)| of an op that needs r, even alone; ties likewise. tac: again and again the receive that
 *    beats all before it in the order of declaration; r beats b if min(P(b), M(r)) < min(P(r), M(b)), or
 *    these are equal and M+(r) < M+(b). The places are the priorities.
 * 3. The makespan of an order follows without a simulation: the most over k of A_k + W_k, and A_n; A_k is
 *    when the k-th receive has come, W_k the time of ops whose last receive is the k-th or later (k = 0: all
 *    ops).
 * 4. search: from the best of tac, tic+, tic (ties: the first), the best move of one receive to another place
 *    (of more than 64: at most 8 away) while it is strictly better, ties by place, then new place; at most 20
 *    n^2 makespans, 2000 of more than 64.
 * 5. Times are integers (ticks); equal graphs have equal orders everywhere.
 *
 * Cost: tac n^2 and what groups of ops with equal dep touch; a makespan edges + n. Everything lies in the
 * arena. Pure. */
#ifndef HD_PLANNER_ORDER_H
#define HD_PLANNER_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "cost/profile.h"

enum { HD_ORDER_RECVS = 65535, HD_ORDER_OPS = 1 << 20, HD_ORDER_SET_BYTES = 1 << 28 };
#define HD_ORDER_TICKS 1e6                        /* of a unit of a file */
#define HD_ORDER_UNITS 1e6                        /* the most that one receive or op takes */

/* inputs first .. of `input` */
struct hd_order_op { const char *name; int64_t time; uint32_t first, ninputs; };

struct hd_order_graph {
	const char *name;                         /* "" unknown */
	uint32_t nrecvs, nops, ninputs;
	const char **recv; int64_t *recv_time;    /* [nrecvs] */
	struct hd_order_op *op;                   /* [nops] as declared */
	uint32_t *input;                          /* a receive, or nrecvs + an op */
	uint32_t *topo;                           /* [nops] inputs first */
	/* the time of every op is known; of others it is one unit */
	bool measured;
	double unit;                              /* ticks of what is shown as 1 */
};

/*        id        text      about                                              */
#define HD_ORDERS(X)                                                              \
	X(FIFO,     "fifo",   "as declared")                                      \
	X(RANDOM,   "random", "by the seed")                                      \
	X(TIC,      "tic",    "without times, by shared ops")               \
	X(TIC_PLUS, "tic+",   "without times, by how few receives an op needs")   \
	X(TAC,      "tac",    "by times")                                         \
	X(SEARCH,   "search", "by moves from the best of them")

enum hd_order_mode {
#define X(id, text, about) HD_ORDER_##id,
	HD_ORDERS(X)
#undef X
	HD_NORDERS
};
extern const char *const hd_order_names[HD_NORDERS];

struct hd_recv_order {
	uint32_t *recv;                           /* [nrecvs] in order */
	/* [nrecvs] of each receive; equal: it does not matter which comes first */
	uint32_t *priority;
	uint32_t ntied;                           /* receives that share theirs */
	int64_t makespan;
};

/* {"recv": {name: time}, "ops": {name: {"time": t, "inputs": [name, ..]}}}, or {"cases": [..]} of such; other
 * members are not read. A time that is left out is not known. HD_E_INPUT: with the place or both names. */
HD_MUST_USE enum hd_err hd_order_read(struct hd_order_graph **graphs, uint32_t *n, const char *text,
	size_t len, const char *file,
	struct hd_arena *arena, struct hd_diag *diag);
/* Parameters are what a step waits for: a receive for each node with weights (one for all that are tied),
 * over a link; ops are the forward pass. Ticks are picoseconds. */
HD_MUST_USE enum hd_err hd_order_of_profile(struct hd_order_graph *graph, const struct hd_profile *profile,
	double bytes_per_s, int64_t latency_ps,
	struct hd_arena *arena, struct hd_diag *diag);
/* Fills topo. HD_E_INPUT: ops that need each other. */
HD_MUST_USE enum hd_err hd_order_settle(struct hd_order_graph *graph, struct hd_arena *arena,
	struct hd_diag *diag);

HD_MUST_USE enum hd_err hd_order_make(struct hd_recv_order *order, const struct hd_order_graph *graph,
	enum hd_order_mode mode, uint64_t seed,
	struct hd_arena *arena, struct hd_diag *diag);
/* What `auto` means: search where all times are known, else tic+. */
static inline enum hd_order_mode hd_order_auto(const struct hd_order_graph *graph) { return graph->measured ?
	HD_ORDER_SEARCH : HD_ORDER_TIC_PLUS; }

/* Nothing beside anything else, and everything beside everything. */
struct hd_order_bounds { int64_t upper, lower; };
struct hd_order_bounds hd_order_bounds(const struct hd_order_graph *graph);

#endif
