/* int.h -- what the two readers of profiles share. */
#ifndef HD_COST_INT_H
#define HD_COST_INT_H

#include "cost/profile.h"

/* Ids of nodes to their indices: open addressing over the nodes of one profile. */
struct hd_profile_ids { uint32_t *at, mask; const struct hd_profile_node *node; };
HD_MUST_USE bool hd_profile_ids_init(struct hd_profile_ids *ids, const struct hd_profile_node *node,
	uint32_t cap, struct hd_arena *arena);
/* The index of the node of this id, or UINT32_MAX. */
uint32_t hd_profile_ids_find(const struct hd_profile_ids *ids, const char *id, size_t len);
void hd_profile_ids_add(struct hd_profile_ids *ids, uint32_t inode);

/* Adds to *sum what is at least 0, and says whether the sum stays within rule 1. */
static inline bool hd_profile_add(int64_t *sum, int64_t v)
{
	if (v > HD_PROFILE_SUM_MAX - *sum)
		return false;
	*sum += v;
	return true;
}

/* Rules 1 and 2 as a whole: sums, an edge twice (kept once: edges are rewritten), cycles, sources.
 * *bad is the node or edge that the message is about, for the caller's place: UINT32_MAX none. */
HD_MUST_USE enum hd_err hd_profile_verify(struct hd_profile *profile, const char **why, uint32_t *bad,
	struct hd_arena *arena);

#endif
