/* front.h -- the graph that is cut: a profile's nodes without what the cutter does not need.
 *
 * Private to the maker of cuts. Nodes keep the order of the file; `succ` keeps the order of the edges. */
#ifndef HD_COST_FRONT_H
#define HD_COST_FRONT_H

#include "cost/cuts.h"

/* of: its node in the profile, the first of a chain */
struct hd_front_node { int64_t time_ns, param, out; uint32_t of; };

struct hd_cut_front {
	struct hd_front_node *node; uint32_t n;
	uint32_t *first, *succ;           /* successors of v: succ[first[v]] .. succ[first[v + 1] - 1] */
	/* [nodes of the profile] where it went; HD_NO_NODE: it was dropped */
	uint32_t *home;
};

/* Compression if asked for, then the removal of sources and sinks. */
HD_MUST_USE enum hd_err hd_front_make(struct hd_cut_front *front, const struct hd_profile *profile,
	bool compress,
	struct hd_arena *arena);

#endif
