/* relay.h -- the bytes of a step's exchange: from this worker's partial sums and sums to the others', and
 * back.
 *
 * The member machine says what goes where (protocol/member.h), the exchange what is here
 * (protocol/exchange.h), the transfer table which row that is (protocol/transfers.h), dist.h where bytes
 * lie; the hub moves them (wire/hub.h). Here they meet: which buffer is posted for a row, which bytes are
 * sent for it, which addresses a fold joins.
 *
 * Ids, lengths and priorities are those of the table's rows, and the table is the epoch's. Metrics travel one
 * virtual node a transfer: its length is fixed for an epoch, the number of virtual nodes of a pass is not.
 * New parameters of sharded state and, in steps that have one, the digests of their slots are two transfers,
 * and one piece of news when both are here.
 *
 * 1. Rows of a channel follow from the view and the exchange alone (hd_transfers_between).
 * 2. Grants are given step by step: posted is what the step at hand will bring, nothing else. An epoch that
 *    ends voids them; hd_relay_open() posts what is still to come.
 *    Each of it once: of a step and a channel nothing is posted again (served), so all that was posted is
 *    filled when the step is complete (awaited), and no buffer is left that a later step's bytes could go to.
 *    A step that begins while something is still awaited in the same channel is HD_E_INTEGRITY, as is an
 *    arrival whose row goes from another member, to another member, is beyond the table, or has another
 *    buffer than the one it came to. Which buffer a row has is determined again for each step and map.
 * 3. Metrics are read and written here, on the I/O thread, while no pass or update is under way that touches
 *    them: a pass's own are put by the compute thread before its result, those of others are taken by it when
 *    it finishes.
 * 4. Roots, their order, their buffers and what is posted follow from one exchange, of one step, at one time
 *    (hd_relay_open). While a step has begun and is not open, nothing is posted or taken.
 *
 * Ownership: init/finish; hub and worker are borrowed; the value does not move after init. Memory is taken
 * when a view or a repair needs more than there is.
 * Threads: the I/O thread; the compute thread for the functions of rule 3, which say so. */
#ifndef HD_WORKER_RELAY_H
#define HD_WORKER_RELAY_H

#include "wire/hub.h"
#include "protocol/exchange.h"
#include "protocol/transfers.h"
#include "protocol/view.h"
#include "engine/dist.h"

/* A root of the step's tree: the partial sum of one pass of one worker. `index`: among those of its pass. */
struct hd_relay_root { uint32_t worker, ordinal, pass, index; };

struct hd_relay {
	struct hd_hub *hub;               /* borrowed, as worker, layout, x */
	struct hd_worker *worker;
	const struct hd_layout *layout;
	uint32_t nvns, nbuckets, self;    /* self: own worker id */
	uint64_t digest_every;            /* steps between two that have a digest; 0: none has */
	uint64_t metrics_len;             /* bytes of one virtual node's message */
	/* owned: [nvns][metrics_len]; the whole table as a message; those of a pass, at the compute thread's
	 * */
	uint8_t *metrics, *table, *own;
	uint8_t *metrics_here;            /* owned: [nvns] that came from others in this step */
	/* owned, of sharded state: [nsegments] sums of squares as they came */
	double *norm;
	/* owned: digests of slots, bucket by bucket; [nbuckets] bits of kinds that came in this step */
	uint8_t *digest, *parts;
	bool has_view;
	uint64_t step;                    /* opened last, where `x` is set */
	struct hd_view view;              /* in force */
	uint32_t me;                      /* own index in it */
	/* the hub's: that of the view, or a later one whose view is to come */
	uint32_t epoch;
	const struct hd_exchange *x;      /* of the step at hand; NULL: none is opened in this view */
	struct hd_transfers rows;         /* of the view; set with x */
	uint32_t first_owned, nowned;     /* buckets that this worker joins */
	uint32_t nroots;                  /* of all passes of the step */
	struct hd_tnode root[HD_VIEW_ROOTS];
	struct hd_relay_root of[HD_VIEW_ROOTS];
	const float **operand;            /* owned: [nowned][nroots] */
	uint64_t operand_cap, received_cap;
	float *received;                  /* owned: receive buffers of partial sums */
	/* dist.h's number of each own pass; set by the compute thread */
	uint32_t engine_pass[HD_MAX_PASSES];
	struct hd_transfer *channel;      /* owned: rows of the channel that is being opened */
	uint32_t *id;                     /* owned: their ids */
	uint64_t channel_cap, id_cap;
	/* by a member's index: the epoch whose channel is open, + 1; the step that was posted for there, + 1;
	 * posts that are not filled */
	uint64_t open_epoch[HD_MAX_MEMBERS], served[HD_MAX_MEMBERS];
	uint32_t awaited[HD_MAX_MEMBERS];
};

HD_MUST_USE enum hd_err hd_relay_init(struct hd_relay *relay, struct hd_hub *hub, struct hd_worker *worker,
	const struct hd_layout *layout, uint32_t nvns, struct hd_diag *diag);
void hd_relay_finish(struct hd_relay *relay);                /* takes zeroed ones */

/* The hub is in that epoch: nothing is opened before the view of the same number. */
void hd_relay_epoch(struct hd_relay *relay, uint32_t epoch);
/* The view is in force; channels are opened when the exchange of a step is known. */
void hd_relay_view(struct hd_relay *relay, const struct hd_view *view, uint32_t self);
/* A step begins, or begins again under a new view: determines its roots, opens the channels that are not
 * open, posts for all that is to come. Between two epochs nothing: the next view has the step begin again. A
 * second time in a view it does nothing more. HD_E_INTEGRITY: rule 2. HD_E_NOSPACE: more roots than a step
 * may have. */
HD_MUST_USE enum hd_err hd_relay_open(struct hd_relay *relay, const struct hd_exchange *x,
	struct hd_diag *diag);
/* A member of the view is connected (only now, or again). */
HD_MUST_USE enum hd_err hd_relay_up(struct hd_relay *relay, uint32_t worker, struct hd_diag *diag);

/* ---- sending; `members` are bits of indices, the own one is left out ---- */

/* The own partial sums of a bucket, of one pass, to a worker. */
HD_MUST_USE enum hd_err hd_relay_partial(struct hd_relay *relay, uint32_t pass, uint32_t bucket, uint32_t to,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_relay_sum(struct hd_relay *relay, uint32_t bucket, uint64_t members,
	struct hd_diag *diag);
/* The metrics of an own pass, to all. */
HD_MUST_USE enum hd_err hd_relay_metrics(struct hd_relay *relay, uint32_t pass, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_relay_table(struct hd_relay *relay, uint64_t members, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_relay_norm(struct hd_relay *relay, uint32_t bucket, uint64_t members,
	struct hd_diag *diag);
/* New parameters, and digests in a step that has them. */
HD_MUST_USE enum hd_err hd_relay_parm(struct hd_relay *relay, uint32_t bucket, uint64_t members,
	struct hd_diag *diag);

/* ---- arriving ---- */

/* What an arrival was. METRICS complete a pass when `pass_done`. */
struct hd_relay_news {
	enum hd_xfer_kind kind;
	uint32_t ordinal, bucket, pass;
	bool pass_done, parm_done;
};
/* HD_E_PROTOCOL: nothing of this step; HD_E_INTEGRITY: rule 2. Refused, it changes nothing. */
HD_MUST_USE enum hd_err hd_relay_arrived(struct hd_relay *relay, const struct hd_arrival *arrival,
	struct hd_relay_news *news, struct hd_diag *diag);

/* Addresses of the operands of a fold, in the order of relay->root; own ones are filled in as their passes
 * are computed. */
const float *const *hd_relay_operands(struct hd_relay *relay, uint32_t bucket);

/* ---- called by the compute thread ---- */

void hd_relay_own_metrics(struct hd_relay *relay, uint32_t pass);        /* of a pass that it has computed */
HD_MUST_USE enum hd_err hd_relay_take(struct hd_relay *relay, struct hd_diag *diag);     /* those of others */
/* Of sharded state: sums of squares of the others, before an update; after it the digests of the own buckets'
 * slots; before finishing those of the others. */
void hd_relay_take_norms(struct hd_relay *relay);
void hd_relay_own_digests(struct hd_relay *relay, const uint8_t *own);
void hd_relay_take_digests(struct hd_relay *relay, const uint8_t *own);

#endif
