/* pull.h -- parameters pulled over a link while layers compute: `heddle bench pull`.
 *
 * One thread has all parameters and sends them, each as a transfer of its own, with the ranks of an order
 * (planner/order.h); the other asks for them, computes ops as what they need has come, and compares every
 * byte afterwards. In place of computing it waits: an op begins when the unit is free and its inputs are
 * there, of several the one that was ready first (ties: as declared), and takes its time. It begins at the
 * time at which that became so, not when this machine's thread noticed.
 *
 * 1. Orders follow one another in each round, the first of a round being another one each time; of times the
 *    median counts, of `over_random` too: time of the round's random order over this one's.
 * 2. A pull lasts from the question to the end of the last op or transfer. C: what ops took; N: how long any
 *    transfer was under way, first to last byte; upper = C + N, lower = the greater; E = (upper - time) /
 *    (upper - lower), S = (upper - lower) / lower (shared words of `heddle plan order`: efficiency, gain).
 * 3. Random orders: each round another one, from `seed` on.
 * 4. `displaced`: transfers that arrived after one of a greater rank. Bytes that differ are HD_E_INTEGRITY.
 *
 * Ownership: the caller's; rows' arrivals lie in the arena. Threads: as ends.h. */
#ifndef HD_WORKER_PULL_H
#define HD_WORKER_PULL_H

#include "planner/order.h"
#include "worker/link.h"

enum { HD_PULL_ROUNDS = 100, HD_PULL_RECVS = 1024 };
#define HD_PULL_BYTES (UINT64_C(2) << 30)

struct hd_pull_spec {
	const char *transport;            /* row of wire/transports.h */
	struct hd_link_spec link;
	const char *folder;               /* mode 0700, for sockets */
	const struct hd_order_graph *graph;
	double tick_ns, compute;          /* of the graph's ticks; times of ops are multiplied by `compute` */
	const uint64_t *bytes;            /* [graph->nrecvs] at least 1 each, HD_PULL_BYTES in all */
	const enum hd_order_mode *order;  /* [norders], each once */
	uint32_t norders, rounds;         /* rounds: 1..HD_PULL_ROUNDS */
	uint64_t seed;
};

/* Times in ms. */
struct hd_pull_row {
	double time, predicted, computing, transfers;
	double efficiency, gain, over_random;      /* over_random: 0 without a random order */
	uint64_t displaced;                        /* of all rounds */
	uint32_t *arrival;                         /* [nrecvs] receives as they arrived in the last round */
};

HD_MUST_USE enum hd_err hd_pull_run(const struct hd_pull_spec *spec, struct hd_pull_row *row,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
