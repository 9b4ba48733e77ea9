/* cuts.h -- where a model may be cut: the states of a pipeline's front, in order, with their sums.
 *
 * Made of a profile's graph; the partitioner (partition.h) chooses stages as ranges of cuts. The
 * definitions are those of the PipeDream program, made exact.
 *
 * 1. A cut is an antichain A of nodes: all of them and all their ancestors have run. aug(A) is A and
 *    those ancestors whose output is still needed: every ancestor q of a member a with a successor that
 *    is neither an ancestor of a nor a itself.
 * 2. Cut 0 is the first source of the file. From a cut, each u of aug(A) ascending gives way to each of its
 *    successors x in the order of the edges, unless x is in A or a descendant of x in aug(A); members that
 *    then have a descendant in the set leave it.
 * 3. Cuts are numbered by reverse post-order of the depth-first walk from cut 0, children in the order
 *    found: predecessors come first.
 * 4. time, param and act of a cut are sums over aug(A) and all its ancestors; out is the sum of the
 *    activations of aug(A). All are integers, hence exact.
 *
 * 5. After the last cut all nodes have run; a graph of parts that no edge joins is refused (HD_E_INPUT,
 *    naming a node of another part than cut 0's).
 *
 * Data sources (no edge in, `Input...`) and unused outputs (no edge out, `__getitem__...`) are dropped
 * first, each once. With `compress`, before that, a chain of a branch becomes one node: for every u of
 * several successors and every successor of u with one edge in, as far as nodes have one edge out and the
 * next has one edge in; its times and parameters are added, its activation is the last one's. The edges of
 * what comes of it stand in the order of the nodes they lead to.
 *
 * Ownership: everything lies in the arena given. Pure. */
#ifndef HD_COST_CUTS_H
#define HD_COST_CUTS_H

#include "cost/profile.h"

/* unless asked otherwise; pred is a bit set of n squared: 50 MB */
enum { HD_CUTS_MAX = 5000, HD_CUTS_CAP = 20000 };

#define HD_NO_NODE UINT32_MAX

struct hd_cuts_how { uint32_t max; bool compress; };   /* max 0: HD_CUTS_MAX */

struct hd_cuts {
	uint32_t n, nnodes;               /* nodes that are left to be cut */
	int64_t *time_ns, *param, *act;   /* [n] up to and with the cut */
	int64_t *out;                     /* [n] bytes that cross it */
	uint64_t *pred; uint32_t words;   /* [n][words] strict ancestors among the cuts, as bits */
	const char **name;                /* [n] ids of its antichain, "a+b" */
	/* [n][ran_words] which of the nnodes have run at it, as bits */
	uint64_t *ran; uint32_t ran_words;
	/* [nodes of the profile] which of the nnodes it is or became part of; HD_NO_NODE: dropped */
	uint32_t *home;
};

HD_MUST_USE enum hd_err hd_cuts_make(struct hd_cuts *cuts, const struct hd_profile *profile,
	struct hd_cuts_how how,
	const char *file, struct hd_arena *arena, struct hd_diag *diag);

static inline bool hd_cuts_precede(const struct hd_cuts *cuts, uint32_t k, uint32_t j)
{
	return cuts->pred[(size_t)j * cuts->words + k / 64] >> (k % 64) & 1;
}

/* `home` has run at the cut. */
static inline bool hd_cuts_ran(const struct hd_cuts *cuts, uint32_t cut, uint32_t home)
{
	return cuts->ran[(size_t)cut * cuts->ran_words + home / 64] >> (home % 64) & 1;
}

#endif
