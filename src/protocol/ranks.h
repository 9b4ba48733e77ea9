/* ranks.h -- which member runs which rank of a pipeline, so that the fewest bytes of state move.
 *
 * A transportation problem. Supply: each member can have so many ranks. Demand: a *place*, which is the
 * number of a rank within its pipeline, takes one for each pipeline of the view. Cost: a rank of member m at
 * place w costs the bytes of the buckets that the stages of w read and m does not hold. It is solved by
 * shortest augmenting paths (Ahuja, Magnanti, Orlin: Network Flows, 9.7).
 *
 * 1. A function of its arguments alone. The first member that can have a rank has one, since it is
 *    the checkpoint writer (view.h). Of all such assignments the sum of the costs is the least.
 * 2. Of those with this sum it is the one in which rank 0 is at the lowest member, then rank 1, and so on.
 *    Where nothing has to move, members in order are the ranks.
 * 3. Costs are per rank: a bucket that two places of one member both read counts twice. Where each member
 *    has one rank, the sum is the number of bytes that move.
 *
 * The coordinator alone calls it, but for what a run predicts of its first view. What members hold it knows
 * by their reports, after a member was lost or a new coordinator took over, and by the view in force, at a
 * planned change. All others read the ranks in the view.
 *
 * 4. With shadows (view.h, rule 10) a place needs what the next place reads, too.
 *
 * 5. Members without a rank that are not about to go follow a stage each (view.h, rule 14), where the table
 *    of buckets says so. One after another: of the stages with the fewest holders so far, which are those
 *    that run it, those with its shadow, and the followers found before, and of the members that are left,
 *    the two of which the member lacks the fewest bytes; of equals the lowest member, then the lowest stage.
 *    So a member goes on to follow what it followed as others come and go.
 *
 * Pure: no allocation, no clock. */
#ifndef HD_PROTOCOL_RANKS_H
#define HD_PROTOCOL_RANKS_H

#include "protocol/view.h"

/* at[m][w]: bytes of the state that place w needs and member m does not hold. */
struct hd_lacks { uint64_t at[HD_MAX_MEMBERS][HD_STAGE_BITS]; };

/* `held` [buckets->n]: the members that hold a bucket, a bit mask of their indices; `bytes` [buckets->n]: of
 * its parameters and slots. */
void hd_lacks_make(struct hd_lacks *lacks, const struct hd_view_shape *shape,
	const struct hd_stage_buckets *buckets, const uint64_t *bytes, const uint64_t *held,
	uint32_t nmembers);
/* Of a view that hd_view_staged() made: puts its ranks at the members that lack the least. `nranks`: how many
 * each can have, as given to that function. */
void hd_ranks_settle(struct hd_view *view, const uint32_t *nranks, const struct hd_lacks *lacks);
/* Rule 5, of a view whose ranks are settled. `held` NULL: members lack everything alike; `going`: those that
 * are about to go, a mask of indices. */
void hd_ranks_follow(struct hd_view *view, const struct hd_stage_buckets *buckets, const uint64_t *bytes,
	const uint64_t *held, uint64_t going);
/* The bytes that members lack under the view, each bucket once per member; *members: those that lack any. */
uint64_t hd_view_moves(const struct hd_view *view, const struct hd_stage_buckets *buckets,
	const uint64_t *bytes, const uint64_t *held, uint64_t *members);

#endif
