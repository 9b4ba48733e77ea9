/* power_law.h -- a made graph for benchmarks: a power law of degrees after Chung and Lu (exponent 3), edges
 * both ways, as device/spmm.h takes them.
 *
 * 1. A function of its numbers and the seed, by Philox: an edge's ends are drawn apart, the vertex of rank k
 *    in proportion to k^-1/2; ranks are dealt to vertices at random. Loops and doubles are left out, so
 *    `nedges` is what was asked or a few less.
 *
 * Ownership: make() takes what free() gives back. */
#ifndef HD_CMD_BENCH_POWER_LAW_H
#define HD_CMD_BENCH_POWER_LAW_H

#include <stdint.h>

#include "base/err.h"

struct hd_power_law { uint64_t nvertices, nedges; uint64_t *offset; uint32_t *at; };

/* nedges: directed ones, both ways counted. */
HD_MUST_USE enum hd_err hd_power_law_make(struct hd_power_law *graph, uint32_t nvertices, uint64_t nedges,
	uint64_t seed, struct hd_diag *diag);
void hd_power_law_free(struct hd_power_law *graph);        /* takes zeroed ones */

#endif
