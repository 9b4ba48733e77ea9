/* tree.h -- the canonical tree: the one order in which contributions of virtual
 * nodes are added.
 *
 * Level-0 nodes are the leaves, one per virtual node. Node (h,i) covers leaves
 * [i*2^h, min((i+1)*2^h, V)) and exists if that is not empty; its value is
 *     value(h-1,2i) + value(h-1,2i+1)     left operand = lower ids, or
 *     value(h-1,2i)                       when the right child does not exist:
 *                                         a promotion, a copy, no addition.
 * The result is value(H,0), H = ceil(log2 V). Equivalently: n leaves are split at
 * the largest power of two below n. Promotion gives several (h,i) one cover; the
 * canonical *name* is the one with the smallest h. A tree has 2V-1 names.
 *
 * Hence any map of virtual nodes to devices and any order of arrival gives the
 * same bits: a device folds what lies wholly within its leaves, and what is left
 * (the *roots* of its set) is added by the owner of the chunk, in the tree's order.
 *
 * Pure; nothing allocates. */
#ifndef HD_PLAN_TREE_H
#define HD_PLAN_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_MAX_VNS = 65536, HD_MAX_LEVELS = 17, HD_MAX_ROOTS = 2 * HD_MAX_LEVELS };

struct hd_tnode { uint32_t level, index; };

uint32_t hd_tree_height(uint32_t nvns);                                           /* H */
bool hd_tree_exists(uint32_t nvns, struct hd_tnode node);
/* canonical name of its cover */
struct hd_tnode hd_tree_name(uint32_t nvns, struct hd_tnode node);
/* canonical name of the parent; itself for the root */
struct hd_tnode hd_tree_parent(uint32_t nvns, struct hd_tnode name);
/* canonical name; undefined for the root */
struct hd_tnode hd_tree_sibling(uint32_t nvns, struct hd_tnode name);
/* is it a right operand of its parent? */
bool hd_tree_is_right(uint32_t nvns, struct hd_tnode name);
void hd_tree_cover(uint32_t nvns, struct hd_tnode node, uint32_t *first, uint32_t *end);
static inline bool hd_tnode_same(struct hd_tnode a, struct hd_tnode b) { return a.level == b.level &&
	a.index == b.index; }

/* Roots of a set of leaves given as `has[v]` (V flags), in ascending order of cover. `out` has room for
 * `cap`; HD_E_NOSPACE otherwise. A contiguous range has at most max(2, 2*ceil(log2 V) - 2). */
HD_MUST_USE enum hd_err hd_tree_roots(uint32_t nvns, const uint8_t *has, struct hd_tnode *out, uint32_t cap,
	uint32_t *nroots);

#endif
