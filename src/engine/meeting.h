/* meeting.h -- how several workers meet at the syncs of a step in lockstep (lockstep.h): what the virtual
 * nodes of each bring goes to the others. Private to the room.
 *
 * At a sync a worker sends one letter (dist.h) to each *peer*, another worker that has virtual nodes (rule
 * 5), and receives one of each. Moments go to all as they are: every worker has all leaves and folds them
 * itself, by the code of one worker: the bits are the same, and the loss of a worker takes no sum along
 * (docs/adr/0109). Of rows each worker gets those that its intervals read (ghosts.h), and no letter where
 * these are none; where rows of earlier steps are state (stale.h) they go to all, too.
 *
 * Syncs are numbered through both phases, those of F first. A letter has the leaves of its sender, virtual
 * nodes ascending, or rows, ascending.
 *
 * 1. In: each letter has a place of its own. All of them are offered to the wire when the pass begins: a step
 *    needs no credits, since what arrives has its place.
 * 2. Out: each sync has places of its own, of rows one a peer. The wire borrows them; a sync's are written
 *    again when all of them have been given back, and under another plan than before when those of all syncs
 *    have.
 * 3. Rank 0 alone waits, at a meeting of all ranks. The wait ends when the letters of all peers are here, or
 *    with the epoch (hd_dist_fence()): then the pass fails with HD_E_STALE, on all ranks, and the step is
 *    begun again or was finished by others.
 * 4. A pass whose last letter is here ends well, whatever fence comes after it.
 * 5. A worker without virtual nodes neither sends nor receives; where rows of earlier steps are state
 *    (stale.h) it receives, and is a peer of those that send, whose step may end before the rows are out
 *    (post.h, rule 9). A repair or a probe meets no others.
 *
 * Ownership: places lie in the worker's arena, one block of them, taken when a plan of several workers is
 * prepared that needs more than there is (the older block stays: a plan in use has it); tables of a plan in
 * the arena of its part. Threads: all that both threads touch is under the lock of the post; places are the
 * wire's between queue and arrival, or `sent`. */
#ifndef HD_ENGINE_MEETING_H
#define HD_ENGINE_MEETING_H

#include "engine/dist.h"
#include "engine/lockstep.h"

/* One a worker. */
struct hd_meeting {
	uint32_t nsyncs;
	uint32_t *borrowed, nborrowed;    /* [nsyncs], and of all: letters that the wire has */
	uint8_t *block; uint64_t cap_bytes, taken_bytes;
	uint64_t need_bytes;              /* of the parts at hand */
	uint32_t nparts, laid;            /* that were made; the one whose places were written last */
	_Atomic bool waits;               /* rank 0 waits for a peer */
	uint64_t waited_ns;               /* in the pass at hand; rank 0 */
};

/* Of one plan. */
/* Its virtual nodes: order[first .. first + n). */
struct hd_meeting_peer { uint16_t worker; uint32_t first, n; };
/* Of one letter: where it is in the block, and how long; 0: there is none. */
struct hd_meeting_place { uint64_t at, len; };
/* Of a sync: rows[npeers] by way, NULL: moments; places [npeers]. */
struct hd_meeting_sync { const struct hd_ghost_rows *sent, *received; struct hd_meeting_place *out, *in; };
struct hd_meeting_part {
	uint16_t self;                    /* number in the plan */
	uint32_t number;                  /* of the part, from 1 on */
	struct hd_meeting_sync *sync;     /* [nsyncs] */
	uint64_t bytes; uint8_t *block;   /* of all places */
	uint32_t npeers; struct hd_meeting_peer *peer;
	struct hd_meeting_peer own;
	uint32_t *order;                  /* [nvns] virtual nodes, worker after worker */
	uint8_t *here; uint32_t *missing; /* [nsyncs][npeers] is it; [nsyncs] how many are not here */
	bool fenced;
};

HD_MUST_USE enum hd_err hd_meeting_make(struct hd_worker *worker, struct hd_diag *diag);
uint64_t hd_meeting_bytes(const struct hd_worker *worker);       /* of places that are needed or taken */
/* The peers under a plan, and what goes to each. *part NULL: none. Takes no block. */
HD_MUST_USE enum hd_err hd_meeting_plan(struct hd_worker *worker, const struct hd_plan *plan, uint16_t self,
	struct hd_meeting_part **part, struct hd_arena *arena, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_meeting_take(struct hd_worker *worker, struct hd_meeting_part *part,
	struct hd_diag *diag);

/* The pass begins: nothing was awaited yet, and the post is open until hd_post_end(). part NULL: it meets
 * nothing. */
void hd_meeting_begin(struct hd_worker *worker, struct hd_meeting_part *part);
/* Rank 0, between two meetings of the ranks: what peers read of the sync goes out, what they send comes into
 * s->leaf. HD_E_STALE: rule 3. */
HD_MUST_USE enum hd_err hd_meeting_hold(struct hd_rank *rank, const struct hd_sync *s, struct hd_diag *diag);

/* Where ranks do not meet (stamps.h). Rank 0, before the first sync: waits until all buffers are back. Any
 * rank, the last to bring its leaves: they go out. Any: what peers have brought is taken, and marked. Rank 0,
 * at the end: waits for the rest. HD_E_STALE: rule 3. */
HD_MUST_USE enum hd_err hd_meeting_ready(struct hd_worker *worker, struct hd_diag *diag);
void hd_meeting_offer(struct hd_worker *worker, const struct hd_sync *s);
void hd_meeting_look(struct hd_worker *worker, const struct hd_sync *s);
/* Rank 0, which does not wait: all that has come is taken; *all: nothing is missing. */
HD_MUST_USE enum hd_err hd_meeting_poll(struct hd_worker *worker, bool *all, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_meeting_drain(struct hd_worker *worker, struct hd_diag *diag);

/* ---- post.c; under its lock ---- */

/* HD_E_STALE: it is not awaited. */
HD_MUST_USE enum hd_err hd_meeting_arrived(struct hd_meeting *meeting, struct hd_meeting_part *part,
	const struct hd_dist_letter *letter);
void hd_meeting_void(struct hd_meeting *meeting);        /* nothing is borrowed */
void hd_meeting_given(struct hd_meeting *meeting, const struct hd_dist_letter *letter);
size_t hd_meeting_list(const struct hd_meeting *meeting, const struct hd_meeting_part *part, uint16_t peer,
	bool send, struct hd_dist_letter *letter);

#endif
