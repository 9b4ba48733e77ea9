/* ranks.h -- which member runs which rank of a model in stages, so that the fewest bytes of state move.
 *
 * A transportation problem: a member supplies its devices, a *place* (rank of one pipeline) takes a device of
 * each pipeline, and a device of member m at place w costs the bytes of the buckets that the stages of w
 * read and m does not hold. It is solved by shortest augmenting paths (Ahuja, Magnanti, Orlin: Network Flows,
 * 9.7).
 *
 * 1. A function of its arguments alone. The first member that has devices has a rank: it is the checkpoint
 *    writer (view.h). Of all such assignments the sum of the costs is the least.
 * 2. Of those with this sum it is the one in which rank 0 is at the lowest member, then rank 1, and so on.
 *    Where nothing has to move, members in order are the ranks.
 * 3. Costs are by device: what two places of one member read both counts for each. With a device a member the
 *    sum is that of the bytes that move.
 *
 * The coordinator alone calls it, with what members hold: by their statuses after a loss and at a takeover,
 * by the view in force at a planned change. All others read the ranks in the view.
 *
 * Pure: no allocation, no clock. */
#ifndef HD_PROTOCOL_RANKS_H
#define HD_PROTOCOL_RANKS_H

#include "protocol/view.h"

/* Bytes that each member lacks of each place. */
struct hd_lacks { uint64_t at[HD_MAX_MEMBERS][HD_STAGE_BITS]; };

/* `held` [buckets->n]: the members that hold a bucket, by index; `bytes` [buckets->n]: of its state. */
void hd_lacks_make(struct hd_lacks *lacks, const struct hd_view_shape *shape,
	const struct hd_stage_buckets *buckets, const uint64_t *bytes, const uint64_t *held,
	uint32_t nmembers);
/* Gives the ranks of a view that hd_view_staged() made, of members that can have so many each, to the members
 * that lack the least. */
void hd_ranks_settle(struct hd_view *view, const uint32_t *nranks, const struct hd_lacks *lacks);
/* The bytes that members lack under the view, each bucket once a member; *members: those that lack any. */
uint64_t hd_view_moves(const struct hd_view *view, const struct hd_stage_buckets *buckets,
	const uint64_t *bytes, const uint64_t *held, uint64_t *members);

#endif
