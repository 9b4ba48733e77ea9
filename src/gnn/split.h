/* split.h -- a graph cut into intervals that have few edges between them: recursive bisection.
 *
 * gnn/prepare.h numbers the vertices by it. METIS makes each cut where it is built in, else the splitter of
 * this room; what came out is data of the prepared graph and never computed again.
 *
 * 1. The graph is cut in two log2 V times; the path of left (0) and right (1) choices, first choice highest,
 *    is the interval. So any run of intervals that a power of two aligns is one side of a cut, and any run at
 *    all a good part. Left is the side with the lowest vertex.
 * 2. A cut balances vertices and edges, as far as it can: within 1.02 and 1.05 of a half, METIS 1.03 and
 *    1.05. It leaves each side as many vertices as it will have intervals: no interval is empty.
 * 3. Own splitter: breadth-first from the lowest vertex of least degree, and so on until all are met; cut
 *    at half of the edges; then at most 8 passes of moves by gain, then number, each of which ends where
 *    balance, then the cut, was best.
 * 4. Equal arguments and an equal splitter (METIS: of one version) give equal intervals.
 *
 * Ownership: the caller's arrays. Threads: any; METIS draws from the C library's generator, so one at a
 * time. */
#ifndef HD_GNN_SPLIT_H
#define HD_GNN_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "data/prepared.h"

enum hd_split_with { HD_SPLIT_AUTO, HD_SPLIT_OWN, HD_SPLIT_METIS };

/* What is cut: edges both ways, rows ascending, no loops; `weight` counts the edges into each vertex. */
struct hd_split_graph { uint64_t nvertices; struct hd_edges edges; const uint32_t *weight; };

struct hd_split_how {
	enum hd_split_with with;
	uint32_t nintervals;              /* a power of two, at most nvertices */
	uint64_t seed;
	/* after each cut, of nintervals - 1; NULL: none */
	void (*progress)(void *user, uint32_t done, uint32_t all);
	void *user;
};

/* The count where none is asked for: about a million edges and directions each, 16 to 4096, of at least 16
 * vertices. */
uint32_t hd_split_intervals(uint64_t nvertices, uint64_t nedges);
bool hd_split_metis_built(void);
/* HD_E_INVAL: no power of two, or more than the vertices (0: not known yet). HD_E_REFUSED: METIS is not built
 * in. */
HD_MUST_USE enum hd_err hd_split_check(enum hd_split_with with, uint32_t nintervals, uint64_t nvertices,
	struct hd_diag *diag);
/* interval[nvertices]. *used: METIS made the cuts (all but those where it found none). Refused is what
 * hd_split_check() refuses, and with METIS asked for a graph too large for it. HD_E_IO: METIS failed: no
 * other splitter takes its place then. SIGTERM, which it catches, ends the process as at any other time, or
 * is HD_E_PREEMPTED where the program takes signals (sys/signal.h). Where it is ignored METIS ends by it,
 * too: HD_E_IO. */
HD_MUST_USE enum hd_err hd_split(const struct hd_split_graph *graph, const struct hd_split_how *how,
	uint32_t *interval, enum hd_graph_splitter *used, struct hd_diag *diag);

#endif
