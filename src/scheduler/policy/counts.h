/* counts.h -- how many of G equal devices each of n jobs gets by its weight: the arithmetic behind the
 * policies wfs and wfs-2020.
 *
 * Both give every job at least `least` and no more than `most`, G in all at most. The order of the list
 * breaks ties, so equal jobs in another order exchange their counts and no other job's changes.
 *
 * ours: weighted max-min within one device. Every job starts with `least`; then device by device to the
 * smallest count/weight, of equal ones to the larger weight, then to the first in the list. Weights compare
 * as whole millionths up to a million, so nothing is rounded. Then a count falls to the smallest with the
 * same number of virtual nodes on the fullest device, ceil(V/k), and what falls off goes to a job that gains
 * a whole step of its own from it.
 *
 * 2020 (Or et al., "VirtualFlow", 2022, as its code of 2020 does it): powers of two of the fair part, halved
 * in order of weight until they fit; a job that reaches its demand gets that and leaves; what is left over
 * doubles jobs in descending order of weight. With its faults: of 12 devices for demands 4, 8, 16 and weights
 * 1, 1, 2 the heavier job gets 8, the others 2. `least` and `nvns` are not looked at: every job starts at 1.
 * Sums are in double, left to right.
 *
 * Pure. Scratch lies in the arena. */
#ifndef HD_SCHEDULER_POLICY_COUNTS_H
#define HD_SCHEDULER_POLICY_COUNTS_H

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct hd_want {
	double weight;                            /* > 0 */
	uint32_t least, most;                     /* 1 <= least <= most */
	uint32_t nvns;                            /* virtual nodes; 0: of no matter */
	/* [most + 1], no job gets devices beyond its first highest point; NULL: always rises */
	const double *speedup;
};

/* counts[n]; the sum of `least` is G at most. HD_E_NOMEM. */
HD_MUST_USE enum hd_err hd_wfs_counts(uint32_t n, const struct hd_want *want, uint32_t devices,
	struct hd_arena *arena, uint32_t *counts);
/* counts[n]; n is G at most. HD_E_NOMEM. */
HD_MUST_USE enum hd_err hd_wfs_2020_counts(uint32_t n, const struct hd_want *want, uint32_t devices,
	struct hd_arena *arena, uint32_t *counts);

#endif
