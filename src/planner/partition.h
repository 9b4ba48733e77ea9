/* partition.h -- which ranges of cuts become stages, and on how many machines each runs.
 *
 * Machines form levels: M[0] machines joined by links of bandwidth b[0] are a component, M[1] components
 * joined by b[1] the next, and so on. On each level a range of cuts i..j is given to M components so
 * that its slowest stage is as fast as can be:
 *
 *	A[i][j][x] = min( one(i,j,x), min over k, m' of max( A[i][k][x-m'], last(k,j,x,m') ) )
 *
 * x >= 2, 1 <= m' < x, k a predecessor of j, k >= i. The best time on all M components of a level is the
 * time T that the next level counts with; T of one machine is the sum of the times, in seconds. The variants
 * are three readings of one(), last() and k: see HD_PART_VARIANTS.
 *
 * 1. The arithmetic is doubles from exact integers, the expressions in the order written, nothing
 *    contracted: the same answer on every machine, whatever way it was found.
 * 2. Among all partitions whose every term is at most the best time Tp: fewest stages, least sum of `out`
 *    over the cuts between them, then from the last stage back the earliest cut, then the fewest
 *    machines. With `fewer`, first as few machines as give Tp. Each stage is then split over the components
 *    below it by the same rules.
 * 3. What is found is computed once more from its stages, by other code; a difference is HD_E_BUG.
 * 4. Large problems of one level without a memory limit are solved by asking whether all terms can be at most
 *    a bound; it gives what the recurrence gives, bit for bit.
 *
 * Ownership: the answer lies in the arena; the tables of the search too. Pure. */
#ifndef HD_PLANNER_PARTITION_H
#define HD_PLANNER_PARTITION_H

#include "cost/cuts.h"

enum { HD_PART_LEVELS = 4, HD_PART_MACHINES = 4096 };

/* w: bytes of parameters of the range; b: bandwidth of the level; u: M of the level below, 1 on the lowest;
 * c: ratio of compression of activations. The terms of c only if it is given.
 *        id       name       one(i,j,x)                             last(k,j,x,m') */
#define HD_PART_VARIANTS(X) \
	/* (T + 4(x-1)w/(b x)/u)/x    max((T + 4(m'-1)w/(b m'))/m', 2out[k]/(b m')/c, */ \
	/*                            and if j < N-1: 2out[j]/(b m')/c) */ \
	X(CODE,    "code",    "the program of PipeDream")                                                                                     \
	/* max(T, 2(x-1)w/b)/x        max(max(T, 2(m'-1)w/b)/m', 2out[k]/b); i-1 precedes k */ \
	X(PRINTED, "printed", "the formula as its paper prints it")                                                                           \
	/* max(T, 2(x-1)w/(b x))/x    max(max(T, 2(m'-1)w/(b m'))/m', 2out[k]/b); i-1 precedes k */ \
	X(PAPER,   "paper",   "the formula with the all-reduce volume that the paper's text gives")

enum hd_part_variant {
#define X(id, name, about) HD_PART_##id,
	HD_PART_VARIANTS(X)
#undef X
	HD_NPART_VARIANTS
};

/* How the top level is searched: tests ask for one or the other and compare. */
enum hd_part_search { HD_PART_AUTO, HD_PART_RECURRENCE, HD_PART_BOUND };

struct hd_part_level { uint32_t machines; double bytes_per_s; };

struct hd_part_how {
	enum hd_part_variant variant;
	struct hd_part_level level[HD_PART_LEVELS]; uint32_t nlevels;      /* innermost first */
	bool straight;                    /* one machine a stage, as many stages as machines */
	bool fewer;                       /* machines may stay idle if that is faster */
	/* ratio c of `code`; 0: activations cost nothing. The others count them always */
	double activations;
	/* per machine; 0: no limit. ceil(machines behind / replicas) copies, 1 at least but for `code` */
	double memory_bytes;
	enum hd_part_search search;
};

/* Cuts first..last on `replicas` components. `split`: how each component of them splits the range; NULL on
 * the lowest level. */
struct hd_part_stage { uint32_t first, last, replicas; struct hd_part_split *split; };
struct hd_part_split { uint32_t nstages; double time_s; struct hd_part_stage *stage; };

struct hd_partition {
	struct hd_part_split top;
	double time_s;                    /* Tp */
	double one_s;                     /* all on one machine */
	double data_s;                    /* data parallel on all machines, as the program counts it */
};

HD_MUST_USE enum hd_err hd_part_solve(struct hd_partition *part, const struct hd_cuts *cuts,
	const struct hd_part_how *how,
	struct hd_arena *arena, struct hd_diag *diag);

/* "L2: 0-6 x2 6-22 x1; L1: 0-6 x4; L1: 6-22 x4": a-b are cuts [a,b). */
void hd_part_print(const struct hd_partition *part, uint32_t nlevels, struct hd_text *text);

const char *hd_part_variant_name(enum hd_part_variant variant);
const char *hd_part_variant_about(enum hd_part_variant variant);

#endif
