/* relay.h -- the bytes of a step's exchange: from this worker's roots and sums to the others', and back.
 *
 * The member machine says what goes where (member.h), the exchange what is here (exchange.h), the share where bytes
 * lie (share.h), the hub moves them (wire/hub.h). Here they meet: which transfer carries what, which buffer is
 * posted for it, which addresses a fold joins.
 *
 * Transfers of an epoch, by id (bits 31..30, 29..20, 19..0):
 *	0 ROOT  ordinal of the sender's root, bucket      1 SUM   0, bucket
 *	2 LEAF  0, virtual node                           3 TABLE 0, 0
 * Of sharded state a SUM's ordinal says what of the bucket it is (exchange.h): parameters and, in steps that have one, the digests of their
 * slots are two transfers, and one piece of news when both are here.
 * What leaves say travels leaf by leaf: a transfer's length is fixed for an epoch, the number of leaves of a pass is not.
 *
 * 1. Rows of a channel follow from the view and the exchange alone, so both ends name the same ones.
 * 2. Grants are given step by step: posted is what the step at hand will bring, nothing else. An epoch that
 *    ends voids them; again() posts what is still to come.
 *    Each of it once: of a step and a channel nothing is posted again (served), so all that was posted is filled when the step is
 *    complete (awaited), and no place is left that a later step's bytes could go to. A step that begins while something is still awaited in the
 *    same channel is HD_E_INTEGRITY, as is what comes to another place than that of its name: places are named anew with each step and map.
 * 3. Entries of the table are read and written here, on the wire's thread, while no pass or update is under way that
 *    touches them: a pass's own are put by the hand before its result, foreign ones are taken by the hand when it finishes.
 * 4. Roots, their order, their places and what is posted are named from one exchange, of one step, at one time (open). While a step has
 *    begun and is not open, nothing is named, posted or taken.
 *
 * Ownership: init/finish; hub and worker are borrowed. Memory is taken when a view or a repair needs more than there is.
 * Threads: the wire's; hd_relay_leaves() and hd_relay_take() the hand's, as rule 3 says. */
#ifndef HD_WORKER_RELAY_H
#define HD_WORKER_RELAY_H

#include "wire/hub.h"
#include "protocol/exchange.h"
#include "protocol/view.h"
#include "engine/share.h"

struct hd_relay {
	struct hd_hub *hub;               /* borrowed, as worker, layout, x */
	struct hd_worker *worker;
	const struct hd_layout *layout;
	uint32_t nvns, nbuckets, self;    /* self: own worker id */
	uint64_t digest_every;            /* steps between two that have a digest; 0: none has */
	uint64_t leaf_len;                /* bytes of a leaf's message */
	/* owned: [nvns][leaf_len]; the whole table as a message; what a pass says, at the hand's */
	uint8_t *leaf, *table, *own;
	uint8_t *leaf_here;               /* owned: [nvns] that came from others in this step */
	/* owned, of sharded state: [nsegments] sums of squares as they came */
	double *norm;
	/* owned: digests of slots, bucket by bucket; [nbuckets] bits of parts that came in this step */
	uint8_t *digest, *parts;
	bool has_view;
	uint64_t step;                    /* opened last, where `x` is set */
	struct hd_view view;              /* in force */
	/* the hub's: that of the view, or a later one whose view is to come */
	uint32_t epoch;
	const struct hd_exchange *x;      /* of the step at hand; NULL: none is opened in this view */
	uint32_t first_owned, nowned;     /* buckets that this worker joins */
	uint32_t nroots;                  /* of all passes of the step */
	struct hd_tnode root[HD_VIEW_ROOTS];
	struct hd_relay_root { uint32_t worker, ordinal, pass, index; } of[HD_VIEW_ROOTS];
	const float **operand;            /* owned: [nowned][nroots] */
	uint64_t operand_cap, room_cap;
	float *room;                      /* owned: received roots */
	uint32_t share_pass[HD_MAX_PASSES];       /* number in share.h of each own pass; the hand's to set */
	struct hd_transfer *rows;         /* owned */
	size_t rows_cap;
	/* by a member's index: the epoch whose channel is open, + 1; the step that was posted for there, +
	 * 1; posts that are not filled */
	uint64_t open_epoch[HD_MAX_MEMBERS], served[HD_MAX_MEMBERS];
	uint32_t awaited[HD_MAX_MEMBERS];
};

HD_MUST_USE enum hd_err hd_relay_init(struct hd_relay *relay, struct hd_hub *hub, struct hd_worker *worker,
	const struct hd_layout *layout,
	uint32_t nvns, struct hd_diag *diag);
void hd_relay_finish(struct hd_relay *relay);                /* takes zeroed ones */

/* The hub is in that epoch: nothing is opened before the view of the same number. */
void hd_relay_epoch(struct hd_relay *relay, uint32_t epoch);
/* The view is in force; channels are opened when the exchange of a step is known. */
void hd_relay_view(struct hd_relay *relay, const struct hd_view *view, uint32_t self);
/* A step begins, or begins again under a new view: names its roots, opens the channels that are not open,
 * posts for all that is to come. Between two epochs nothing: the next view has the step begin again. A
 * second time in a view it does nothing more. HD_E_INTEGRITY: rule 2. */
HD_MUST_USE enum hd_err hd_relay_open(struct hd_relay *relay, const struct hd_exchange *x,
	struct hd_diag *diag);
/* A member of the view is connected (only now, or again). */
HD_MUST_USE enum hd_err hd_relay_up(struct hd_relay *relay, uint32_t worker, struct hd_diag *diag);

HD_MUST_USE enum hd_err hd_relay_roots(struct hd_relay *relay, uint32_t pass, uint32_t bucket, uint32_t to,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_relay_sum(struct hd_relay *relay, uint32_t bucket, uint64_t members,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_relay_leaves_out(struct hd_relay *relay, uint32_t pass, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_relay_table(struct hd_relay *relay, uint64_t members, struct hd_diag *diag);

HD_MUST_USE enum hd_err hd_relay_norm(struct hd_relay *relay, uint32_t bucket, uint64_t members,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_relay_parm(struct hd_relay *relay, uint32_t bucket, uint64_t members,
	struct hd_diag *diag);

/* What a transfer that arrived was. HD_E_PROTOCOL: nothing of this step; HD_E_INTEGRITY: rule 2. A LEAF
 * completes a pass when `pass_done`. */
struct hd_relay_news { enum hd_transfer_kind kind; uint32_t ordinal, bucket, pass; bool pass_done, parm_done;
	};
HD_MUST_USE enum hd_err hd_relay_arrived(struct hd_relay *relay, const struct hd_arrival *arrival,
	struct hd_relay_news *news, struct hd_diag *diag);

/* Addresses of the operands of a fold, in the order of relay->root; own ones are filled in as their passes
 * are computed. */
const float *const *hd_relay_operands(struct hd_relay *relay, uint32_t bucket);

/* The hand's: entries of a pass it has computed; entries of the others, before it finishes. */
void hd_relay_leaves(struct hd_relay *relay, uint32_t pass);
HD_MUST_USE enum hd_err hd_relay_take(struct hd_relay *relay, struct hd_diag *diag);
/* Of sharded state: sums of squares of the others, before an update; after it the digests of the own buckets'
 * slots; before finishing those of the others. */
void hd_relay_take_norms(struct hd_relay *relay);
void hd_relay_own_digests(struct hd_relay *relay, const uint8_t *own);
void hd_relay_take_digests(struct hd_relay *relay, const uint8_t *own);

#endif
