/* tree_add.h -- the sum of vectors along the canonical tree (plan/tree.h), one vector a leaf.
 *
 * Users: the all-reduce of the exchange (allreduce.h) and of the primitives (collective_sum.h).
 *
 * 1. `to` may be one of the operands; no others overlap.
 * 2. Elements are added through all levels in blocks that fit the first cache. Two operands are added in
 *    place: an addition has the same bits either way round.
 *
 * Pure; nothing allocates. */
#ifndef HD_WORKER_TREE_ADD_H
#define HD_WORKER_TREE_ADD_H

#include <stdint.h>

enum { HD_TREE_ADD_MOST = 16 };           /* operands */

/* n operands, 2..HD_TREE_ADD_MOST, of `len` floats. */
void hd_tree_add(const float *const *at, uint32_t n, float *to, uint64_t len);

#endif
