/* collective.h -- the primitives by which p ranks sum a vector: each as a list of moves.
 *
 * Users: the sum of a vector over processes (worker/collective_sum.h), `heddle bench comm`, the choice of a
 * primitive for a bucket (plan/collective_cost.h).
 *
 * A *move* carries a range of elements from one rank to another in a *round*. What is sent is what the sender
 * has when its part of the earlier rounds is over. A copy takes the place of what is there. Adds of one round
 * and one range are one sum: the receiver's own values and all that came, as operands in the order of their
 * ranks, along the canonical tree of that many leaves (plan/tree.h).
 *
 *	primitive            rounds                          what each rank does
 *	direct               2                               owners of a p-th each add; all get the sums
 *	owner                2                               as direct, but the first `owners` ranks own
 *	halving-doubling     2 log2 p                        halves with a neighbour 1, 2, 4, .. away;
	then back
 *	recursive-doubling   log2 p                          whole vectors with a neighbour 1, 2, 4, .. away
 *	hierarchical         4                               direct inside nodes, between them, inside again
 *	ring                 2 (p - 1)                       p-ths go round, twice
 *	tree                 2 (levels - 1) + segments       segments up a binary tree, and down again
 *
 * 1. *Canonical* primitives add each element along the canonical tree over the ranks 0..p-1: their sums have
 *    the bits of any other canonical one. Ring and tree add each operand once, in an order of their own that
 *    p, the number of segments and the length fix: `heddle bench comm` measures them, and no job can ask
 *    for them yet.
 * 2. halving-doubling and recursive-doubling want a power of two of ranks. Others *fold* first: of the ranks
 *    that are left 0, 1, 2, .. each odd one gives its vector to the even one before it, again and again,
	until
 *    a power of two is left; at the end the sums go back. (To fold only the ranks beyond a power of two,
	once,
 *    adds 0 + 1, 2, 3, 4 of five ranks as ((01)2)(34): not the tree's order, which is ((01)(23))4.)
 * 3. hierarchical wants nodes of a power of two of ranks, at least two, all equally large.
 * 4. Ranges may be uneven; a move without elements is left out. Moves stand by rounds. In a round no rank
 *    receives two ranges that overlap, but adds of one same range.
 * 5. Numbers stand in files and traces; they are never reused.
 *
 * Source of the algorithms: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations
 * in MPICH" (2005); the ring is Patarasuk and Yuan's (2009).
 *
 * Ownership: moves lie in the arena given. Pure. */
#ifndef HD_PLAN_COLLECTIVE_H
#define HD_PLAN_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

/* name, number, its word in files and options, canonical? */
#define HD_COLLECTIVES(X) \
	X(DIRECT,       0, "direct",             true)  \
	X(OWNER,        1, "owner",              true)  \
	X(HALVING,      2, "halving-doubling",   true)  \
	X(DOUBLING,     3, "recursive-doubling", true)  \
	X(HIERARCHICAL, 4, "hierarchical",       true)  \
	X(RING,         5, "ring",               false) \
	X(TREE,         6, "tree",               false)

/* "all|direct|owner|..", for options */
#define HD_COLLECTIVE_WORD(id, number, word, canonical) "|" word
#define HD_COLLECTIVE_WORDS "all" HD_COLLECTIVES(HD_COLLECTIVE_WORD)

enum hd_collective {
#define X(id, number, word, canonical) HD_COLLECTIVE_##id = (number),
	HD_COLLECTIVES(X)
#undef X
	HD_COLLECTIVE_COUNT,
};
enum { HD_COLLECTIVE_RANKS = 1024, HD_COLLECTIVE_SEGMENTS = 64 };

/* The ranks of a sum, and how a primitive is laid out. */
struct hd_collective_shape {
	uint32_t p;                       /* ranks, 1..HD_COLLECTIVE_RANKS */
	uint32_t node;                    /* ranks of a node; 0 or 1: each is a node of its own */
	uint32_t owners;                  /* of `owner`: 1..p; 0: 1 */
	uint32_t segments;                /* of `tree`: 1..HD_COLLECTIVE_SEGMENTS; 0: 1 */
	bool fast;                        /* rule 1: sums of other bits will do; no job says so yet */
	/* each rank has several partial sums, or one of no aligned block (hd_collective_aligned()) */
	bool ragged;
	double roots;                     /* partial sums of a rank, in the mean; 0: 1 */
};

struct hd_collective_move { uint64_t first, end; uint32_t round; uint16_t from, to; bool add; };
struct hd_collective_schedule { struct hd_collective_move *move; uint32_t nmoves, nrounds; };

const char *hd_collective_word(enum hd_collective kind);
bool hd_collective_is_canonical(enum hd_collective kind);
bool hd_collective_find(const char *word, enum hd_collective *kind);

/* HD_E_BADPLAN with the reason: rules 1 to 3, or the ranks' parts are ragged. */
HD_MUST_USE enum hd_err hd_collective_check(enum hd_collective kind, const struct hd_collective_shape *shape,
	struct hd_diag *diag);
/* Is the canonical tree over nvns leaves that of `p` equal blocks of it, rank i having [first[i], end[i])?
 * Each block but the last is of the same power of two. */
bool hd_collective_aligned(uint32_t nvns, const uint32_t *first, const uint32_t *end, uint32_t p);

/* How often ranks fold (rule 2). */
uint32_t hd_collective_folds(uint32_t p);
/* HD_E_BADPLAN: as hd_collective_check(). */
HD_MUST_USE enum hd_err hd_collective_schedule(struct hd_collective_schedule *schedule,
	enum hd_collective kind, const struct hd_collective_shape *shape, uint64_t len,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
