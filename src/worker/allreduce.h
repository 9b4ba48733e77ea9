/* allreduce.h -- the sum of a vector over the processes of a job, alone: what the exchange of a training step
 * costs.
 *
 * `heddle bench allreduce` times it. The vector of 32-bit floats is cut into buckets of 1 MiB. Every member
 * sends a bucket to its owner, the owner adds the n of them and sends the sum to all; buckets follow one
 * another without waiting.
 *
 *	begin -> [hub poll -> arrived, sent -> turn] until done -> begin ...
 *
 * 1. value = the canonical tree (plan/tree.h) over the members 0..n-1 as leaves: bits depend on nothing but
 *    the values and n. Element by element: a member's part in it is its place in the tree, not when it came.
 * 2. In place: a member's own values stay until the sum of the bucket is here; every bucket is written once a
 *    round.
 * 3. An owner has buffers for HD_ALLREDUCE_AHEAD buckets of each other member: as many are granted ahead, so
 *    that bytes of one are under way while another is added. Sums are received where they stay.
 * 4. Nothing is added in a callback: arrived() notes, turn() adds, one bucket a call.
 * 5. Members may be one round apart, not more: one that is behind has not sent what the others wait for.
 * 6. A part counts once: of the own bucket, the round and the member that its row says; so does a sum, of
 *    this round and from the bucket's owner. What comes again, or from another, is HD_E_PROTOCOL.
 * 7. Ids, lengths and priorities are those of a transfer table (protocol/transfers.h) of n virtual nodes, one
 *    a member: a part is the one partial sum of its member. Sums, which others wait for with nothing left to
 *    do, go before parts.
 *
 * The hub's channels of the epoch are this object's.
 *
 * Ownership: init/finish; hub and values are borrowed. Threads: the hub's. Nothing allocates after open. */
#ifndef HD_WORKER_ALLREDUCE_H
#define HD_WORKER_ALLREDUCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sys/memory.h"
#include "wire/hub.h"
#include "protocol/transfers.h"

enum {
	HD_ALLREDUCE_MEMBERS = 16,
	HD_ALLREDUCE_AHEAD = 4,
	HD_ALLREDUCE_BUCKET = 1 << 20,    /* bytes; as HD_BUCKET_CHUNKS chunks of a gradient */
};
#define HD_ALLREDUCE_MOST (UINT64_C(1) << 32)     /* bytes of a vector */

struct hd_allreduce_spec {
	struct hd_hub *hub;               /* borrowed; its worker id is `me` */
	uint32_t me, n;                   /* members 0..n-1, 2..HD_ALLREDUCE_MEMBERS */
	float *values;                    /* borrowed */
	uint64_t len;                     /* floats, 1..HD_ALLREDUCE_MOST / 4 */
};

/* An own bucket whose parts come in. */
struct hd_allreduce_part {
	const float *at[HD_ALLREDUCE_MEMBERS];
	uint32_t here;                    /* bits of members */
};

struct hd_allreduce {
	struct hd_allreduce_spec spec;
	struct hd_transfers rows;
	uint32_t nbuckets, first, end;    /* first..end - 1 are this member's */
	uint64_t round;                   /* 1, 2, ... */
	uint32_t nsums, nadded, nunsent;  /* of this round: sums of others here, own added, sends not over */
	/* bits of buckets: sums of others that are here, of this round */
	uint64_t here[HD_ALLREDUCE_MOST / HD_ALLREDUCE_BUCKET / 64];
	struct hd_memory block;           /* owned: buffers for parts, [members][AHEAD] buckets */
	/* of own bucket b, counted through all rounds: place b % AHEAD */
	struct hd_allreduce_part part[HD_ALLREDUCE_AHEAD];
	uint64_t ncounted;                /* own buckets added, of all rounds */
};

HD_MUST_USE enum hd_err hd_allreduce_init(struct hd_allreduce *sum, const struct hd_allreduce_spec *spec,
	struct hd_diag *diag);
void hd_allreduce_finish(struct hd_allreduce *sum);       /* takes zeroed and finished ones */
uint32_t hd_allreduce_streams(uint64_t len, uint32_t n);  /* streams_cap that the hub needs */

/* All others are up, the hub is in its epoch: channels, and posts ahead for the first round. Once. */
HD_MUST_USE enum hd_err hd_allreduce_open(struct hd_allreduce *sum, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_allreduce_begin(struct hd_allreduce *sum, struct hd_diag *diag);
/* From the hub's callbacks. HD_E_PROTOCOL: an arrival that no rule allows. */
HD_MUST_USE enum hd_err hd_allreduce_arrived(struct hd_allreduce *sum, const struct hd_arrival *arrival,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_allreduce_sent(struct hd_allreduce *sum, const struct hd_sent *sent,
	struct hd_diag *diag);
/* Adds a bucket whose parts are all here, and sends its sum. *more: there is another. */
HD_MUST_USE enum hd_err hd_allreduce_turn(struct hd_allreduce *sum, bool *more, struct hd_diag *diag);
/* All sums are here and what was lent is the owner's again. */
bool hd_allreduce_done(const struct hd_allreduce *sum);

#endif
