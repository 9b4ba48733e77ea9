/* arrange.h -- in which order the members of a plan get their ranges of virtual nodes.
 *
 * Each member has a contiguous range; what it must send is the roots of the range (tree.h), so ranges that
 * begin where the tree divides are cheaper. Counts stay, their order is chosen.
 *
 * 1. Least is (most roots of one member, roots of all), in that order.
 * 2. Exact while the product of (multiplicity + 1) over distinct counts is at most HD_ARRANGE_EXACT; beyond,
 *    counts are sorted by (trailing zero bits, size), both descending.
 * 3. Of equal orders the one that keeps to the order given for longest.
 * 4. Counts of 0 come last, in the order given.
 *
 * Pure; scratch is taken from the arena. */
#ifndef HD_BALANCE_ARRANGE_H
#define HD_BALANCE_ARRANGE_H

#include "base/arena.h"
#include "base/err.h"
#include "plan/tree.h"

enum { HD_ARRANGE_EXACT = 1000000, HD_ARRANGE_MOST = 4096 };

struct hd_arranged { uint32_t most, total; bool exact; };

/* of [first, end); 0 of an empty one */
uint32_t hd_range_roots(uint32_t nvns, uint32_t first, uint32_t end);

/* order[i] is the item that comes i-th; ranges follow one another from leaf `first`, which with all counts
 * stays within V. */
HD_MUST_USE enum hd_err hd_arrange(uint32_t nvns, uint32_t first, const uint32_t *count, uint32_t n,
	uint32_t *order, struct hd_arranged *out,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
