/* collective_sum.h -- the sum of a vector over the processes of a job by any primitive of plan/collective.h.
 *
 * `heddle bench comm` times it. The vector of 32-bit floats is cut into buckets; each runs the primitive's
 * list of moves by itself, so that bytes of one are under way while another is added.
 *
 *	prepare -> begin -> [hub poll -> arrived, sent -> turn] until done -> prepare ...
 *
 * 1. In a round of a bucket a member sends its moves of that round, waits for those that come, adds, and
 *    goes on to the next round. What it sends is what it has then. It adds where it sends from only when
 *    that was sent. Copies are received where they stay: a sum that comes has in it what this member sent.
 * 2. Adds of one round and range are one sum along the canonical tree, this member's values in their place
 *    (tree_add.h).
 * 3. Buffers for operands are there for HD_COLLECTIVE_AHEAD buckets; that many are granted ahead.
 * 4. Nothing is added in a callback: turn() does, one round of one bucket a call.
 * 5. No member begins a round of the vector before all have finished the last and have prepared, or are about
 *    to: what comes early waits for its grant.
 * 6. A move comes once, from its sender, in this round of the vector; else HD_E_PROTOCOL.
 * 7. The id of a move: first_id + bucket * moves of a full bucket + its place in the list; equal at all
 *    members. From one member to another at most one move goes in a round, so ids rise by rounds. Sums, which
 *    others wait for, go before operands; of each the first bucket first.
 *
 * The hub's channels of the epoch are the owner's, which asks for the rows: several of these may share one.
 *
 * Ownership: init/finish; hub and values are borrowed. Threads: the hub's. Nothing allocates after init. */
#ifndef HD_WORKER_COLLECTIVE_SUM_H
#define HD_WORKER_COLLECTIVE_SUM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "sys/memory.h"
#include "wire/hub.h"
#include "plan/collective.h"

enum {
	HD_COLLECTIVE_MEMBERS = 16,
	HD_COLLECTIVE_AHEAD = 4,
	HD_COLLECTIVE_BUCKET = 1 << 18,   /* floats */
	HD_COLLECTIVE_MOVES = 64,         /* that a member may send of a bucket, or receive */
};

struct hd_collective_sum_spec {
	struct hd_hub *hub;               /* borrowed; its worker id is `me` */
	uint32_t me;                      /* of shape.p members, 2..HD_COLLECTIVE_MEMBERS */
	enum hd_collective kind;
	struct hd_collective_shape shape;
	float *values;                    /* borrowed */
	uint64_t len, bucket;             /* floats; bucket 0: HD_COLLECTIVE_BUCKET */
	uint32_t first_id;
};

/* Moves of one member in a bucket: `in` by round, range and sender; `out` as in the list. */
struct hd_member_move {
	uint64_t first, end, at;          /* at: floats into a bucket's buffers, of an add that comes */
	uint32_t round, peer, number;
	bool add;
};
struct hd_member_moves {
	struct hd_member_move in[HD_COLLECTIVE_MOVES], out[HD_COLLECTIVE_MOVES];
	uint32_t nin, nout, nmoves, nrounds;
	uint64_t floats;                  /* of the buffers of a bucket */
};

struct hd_collective_bucket { uint64_t here, sent; uint32_t round; bool over; };

struct hd_collective_sum {
	struct hd_collective_sum_spec spec;
	struct hd_member_moves moves[2];          /* of a full bucket, and of the last */
	uint32_t nbuckets, nover, stride, cursor;
	uint64_t floats;                  /* of the buffers of one bucket */
	uint64_t number;                  /* of the round of the vector: 1, 2, ... */
	bool begun;
	struct hd_arena arena;
	struct hd_collective_bucket *bucket;      /* in the arena: [nbuckets] */
	struct hd_memory block;           /* owned: buffers for operands */
};

/* HD_E_BADPLAN: as hd_collective_check(). HD_E_INVAL: more members or moves than there may be. */
HD_MUST_USE enum hd_err hd_collective_sum_init(struct hd_collective_sum *sum,
	const struct hd_collective_sum_spec *spec, struct hd_diag *diag);
void hd_collective_sum_finish(struct hd_collective_sum *sum);     /* takes zeroed and finished ones */

/* How many ids it has; how many sends to one member may be queued at a time. */
uint32_t hd_collective_sum_ids(const struct hd_collective_sum *sum);
uint32_t hd_collective_sum_streams(const struct hd_collective_sum *sum);
/* Rows of the channel with a member, ascending from row[0] on; `row` NULL: their number alone. */
size_t hd_collective_sum_rows(const struct hd_collective_sum *sum, uint32_t member, bool out,
	struct hd_transfer *row);

/* Before each round of the vector: buffers are granted. Values are those of this round. */
HD_MUST_USE enum hd_err hd_collective_sum_prepare(struct hd_collective_sum *sum, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_collective_sum_begin(struct hd_collective_sum *sum, struct hd_diag *diag);
/* From the hub's callbacks, of ids and tokens of its own. */
HD_MUST_USE enum hd_err hd_collective_sum_arrived(struct hd_collective_sum *sum,
	const struct hd_arrival *arrival, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_collective_sum_sent(struct hd_collective_sum *sum, const struct hd_sent *sent,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_collective_sum_turn(struct hd_collective_sum *sum, bool *more,
	struct hd_diag *diag);
bool hd_collective_sum_done(const struct hd_collective_sum *sum);

#endif
