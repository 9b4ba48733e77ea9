/* relay.h -- sends and receives the bytes of a step's gradient exchange: partial sums, sums, metrics.
 *
 * Four others decide, and the relay connects them: the member machine says what is sent to which member
 * (protocol/member.h), the exchange what has arrived (protocol/exchange.h), the transfer table which row
 * that is (protocol/transfers.h), dist.h at which address the bytes lie. The hub moves them (wire/hub.h). For
 * each row of the table the relay knows the buffer to post, the bytes to send, and the operands of a fold.
 *
 * Ids, lengths and priorities are those of the rows; the table is valid for one epoch. Metrics are sent one
 * virtual node per transfer, because the length of a transfer is fixed for an epoch and the number of
 * virtual nodes of a pass is not. In sharded state, new parameters of a bucket and the digests of its slots
 * (in steps that have a digest) are two transfers; their arrival is reported once, when both are here.
 *
 * A partial sum of a bucket is one transfer for each of its runs (graph/layout.h: the bucket, and the
 * pieces of tied parameters' gradients that are added to it). Its arrival, too, is reported once, when all
 * are here.
 *
 * 1. The rows of a channel (a pair of members) depend on the view and the exchange alone
 *    (hd_transfers_between()).
 * 2. Receive buffers are posted step by step: exactly those that the step at hand will fill. The end of an
 *    epoch voids them; hd_relay_open() posts again what has not arrived.
 *    Per step and channel each buffer is posted once (`served`). So when the step is complete all of them
 *    are filled (`awaited` is 0), and bytes of a later step find no buffer of this one. HD_E_INTEGRITY: a
 *    step begins while a channel still awaits something; or an arrival's row has another sender, another
 *    receiver or another buffer, or does not exist. The buffers of rows are found for each step and map.
 * 3. Metrics are read and written here, on the I/O thread, only while no pass or update that touches them
 *    runs. The compute thread puts those of its own pass here before it reports the pass, and takes those of
 *    others when it finishes the step.
 * 4. hd_relay_open() fixes the roots, their order, their buffers and the posts of a step, all from one
 *    exchange. Between the begin of a step and its open nothing is posted or taken.
 * 5. Mail between stages is posted and sent as the worker hands it over (hd_relay_mail()), from the step's
 *    open on; it may be of the step after the open one, and says so. What the hub has borrowed of it goes
 *    back to the worker with `sent`, whatever became of it; what was posted is void after the epoch. A new
 *    epoch fences the worker's mail (dist.h).
 *
 * 6. With pairs (protocol/exchange.h, rule 11) what is added up lies in the receive buffers, and the hub
 *    borrows it. An epoch may end while a chunk of it is being written: the step that begins then takes other
 *    buffers, and these are kept until the last of their sums is `sent`. All else that is sent by a row keeps
 *    its bits when a step is restarted.
 *
 * Ownership: init/finish; hub and worker are borrowed; the value does not move after init. Memory is taken
 * only when a view or a repair needs more than there is.
 * Threads: the I/O thread; the compute thread for the functions of rule 3, which say so. */
#ifndef HD_WORKER_RELAY_H
#define HD_WORKER_RELAY_H

#include "wire/hub.h"
#include "protocol/exchange.h"
#include "protocol/transfers.h"
#include "protocol/view.h"
#include "engine/dist.h"

/* A root of the step's tree: the partial sum of one pass of one worker. `index`: among those of the pass of
 * dist.h, which has all stages of a worker. */
struct hd_relay_root { uint32_t worker, ordinal, pass, index; };

/* Mail between stages (dist.h) that the relay has taken from the worker. */
enum hd_relay_mail_state {
	HD_RELAY_FREE,
	HD_RELAY_WAITS,                   /* for its channel, or for a place in the hub's queue */
	HD_RELAY_SENDS,                   /* with the hub, until `sent` */
	HD_RELAY_POSTED,                  /* its buffer is posted, until it arrives */
};
struct hd_relay_mail { struct hd_dist_letter letter; uint32_t member, id; enum hd_relay_mail_state state; };

struct hd_relay {
	struct hd_hub *hub;               /* borrowed, as worker, layout, x */
	struct hd_worker *worker;
	const struct hd_layout *layout;
	const struct hd_comm *comm;       /* borrowed: urgencies (plan/comm.h); NULL: nothing is decided */
	uint32_t nvns, nbuckets, self;    /* self: own worker id */
	uint64_t digest_every;            /* steps between two that have a digest; 0: none has */
	uint64_t metrics_len;             /* bytes of one virtual node's message */
	/* Several workers may speak of one virtual node, each of its stages of it: their messages lie in
	 * planes, the one of the lowest id in plane 0. `merged`: `table` has what all say, and counts
	 * instead. */
	uint32_t nplanes; uint64_t metrics_cap;
	_Atomic bool merged;              /* the compute thread takes the metrics meanwhile */
	uint32_t nsaid;                   /* members of the view in which these metrics were begun */
	/* owned: [nplanes][nvns][metrics_len]; the whole table as one message; those of one pass, for the
	 * compute thread */
	uint8_t *metrics, *table, *own;
	/* owned: [nplanes][nvns] 1: received from another member in this step */
	uint8_t *metrics_here; uint64_t metrics_here_cap;
	/* owned, of sharded state: [nsegments] sums of squares as received */
	double *norm;
	/* owned, of whole tensors by stages: bucket by bucket sums of squares of parameters and of moves, as
	 * received, or to be sent */
	double *ratio;
	/* owned: digests of slots, bucket by bucket; [nbuckets] bits of the kinds received */
	uint8_t *digest, *parts;
	bool has_view;
	uint64_t step;                    /* the step that was opened last; valid if `x` is set */
	struct hd_view view;              /* in force */
	uint32_t me;                      /* this worker's index in it */
	/* of the hub: that of the view, or a later one whose view has not come yet */
	uint32_t epoch;
	const struct hd_exchange *x;      /* of the open step; NULL: none is open in this view */
	struct hd_transfers rows;         /* of the view; set with x */
	/* owned: buckets that this worker joins, ascending; [nbuckets] the row of operands of each, or
	 * HD_NOBODY */
	uint32_t *owned, nowned, *row_of;
	uint32_t nroots;                  /* of all passes of the step */
	struct hd_tnode root[HD_VIEW_ROOTS];
	uint16_t stage[HD_VIEW_ROOTS];    /* of the plan; runs without anything of it have no operand */
	struct hd_relay_root of[HD_VIEW_ROOTS];
	uint32_t nrows;                   /* runs of these: bucket by bucket, each followed by its pieces */
	const float **operand;            /* owned: [nrows][nroots] */
	uint8_t *run_here;                /* owned: [nrows][nroots] 1: received in this step */
	const float **own_run;            /* owned: room for the runs of any bucket */
	uint64_t operand_cap, here_cap, received_cap;
	uint8_t *received;                /* owned: receive buffers of partial sums */
	/* rule 6: sums there that the hub has borrowed; its number; those of earlier steps */
	uint32_t lent, received_serial;
	struct hd_relay_kept *kept;
	/* the number that dist.h gave each own pass; set by the compute thread. Those of several stages are
	 * one pass there */
	uint32_t engine_pass[HD_MAX_PASSES];
	struct hd_transfer *channel;      /* owned: rows of the channel that is being opened */
	uint32_t *id;                     /* owned: their ids */
	uint64_t channel_cap, id_cap;
	struct hd_relay_mail *mail; uint64_t mail_cap;    /* owned: letters of a step,
		and what an earlier one left */
	uint64_t mail_used, nwaits;       /* all places below are in use; how many letters wait */
	struct hd_dist_letter *letter; uint64_t letter_cap;       /* owned: scratch */
	/* by member index: 1 + the epoch whose channel is open; 1 + the step whose buffers were posted there;
	 * how many of these are not filled yet */
	uint64_t open_epoch[HD_MAX_MEMBERS], served[HD_MAX_MEMBERS];
	uint32_t awaited[HD_MAX_MEMBERS];
};

/* Receive buffers of an earlier step: rule 6. */
struct hd_relay_kept { struct hd_relay_kept *next; uint8_t *bytes; uint32_t serial, lent; };

HD_MUST_USE enum hd_err hd_relay_init(struct hd_relay *relay, struct hd_hub *hub, struct hd_worker *worker,
	const struct hd_layout *layout, uint32_t nvns, struct hd_diag *diag);
void hd_relay_finish(struct hd_relay *relay);                /* takes zeroed ones */

/* Before the first step, where several workers may speak of one virtual node: room for n of them. Later the
 * compute thread may be writing there. */
HD_MUST_USE enum hd_err hd_relay_planes(struct hd_relay *relay, uint32_t n, struct hd_diag *diag);
/* What was decided of urgencies, from the next view on. No other worker need have it: they are the sender's
 * alone. */
void hd_relay_comm(struct hd_relay *relay, const struct hd_comm *comm);
/* The hub is in that epoch now. No channel opens before hd_relay_view() brings the view of this epoch. */
void hd_relay_epoch(struct hd_relay *relay, uint32_t epoch);
/* The view is in force; channels open with the first step. `self`: this worker's id. */
void hd_relay_view(struct hd_relay *relay, const struct hd_view *view, uint32_t self);
/* A step begins, or restarts under a new view: finds its roots, opens the channels that are not open, posts
 * a buffer for each transfer that has not arrived. Does nothing between hd_relay_epoch() and the view, since
 * the step restarts then; nor when called again for the same step and view. HD_E_INTEGRITY: rule 2.
 * HD_E_NOSPACE: more than HD_VIEW_ROOTS roots. */
HD_MUST_USE enum hd_err hd_relay_open(struct hd_relay *relay, const struct hd_exchange *x,
	struct hd_diag *diag);
/* A connection to a member of the view came up, for the first time or again. */
HD_MUST_USE enum hd_err hd_relay_up(struct hd_relay *relay, uint32_t worker, struct hd_diag *diag);

/* ---- sending; `members`: a bit mask of member indices; this worker's own bit is ignored ---- */

/* This worker's partial sums of a bucket, of one pass, to a worker. */
HD_MUST_USE enum hd_err hd_relay_partial(struct hd_relay *relay, uint32_t pass, uint32_t bucket, uint32_t to,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_relay_sum(struct hd_relay *relay, uint32_t bucket, uint64_t members,
	struct hd_diag *diag);
/* The metrics of an own pass, to all. */
HD_MUST_USE enum hd_err hd_relay_metrics(struct hd_relay *relay, uint32_t pass, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_relay_table(struct hd_relay *relay, uint64_t members, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_relay_norm(struct hd_relay *relay, uint32_t bucket, uint64_t members,
	struct hd_diag *diag);
/* What hd_relay_own_ratios() put. */
HD_MUST_USE enum hd_err hd_relay_ratio(struct hd_relay *relay, uint32_t bucket, uint64_t members,
	struct hd_diag *diag);
/* New parameters, and digests in a step that has them. */
HD_MUST_USE enum hd_err hd_relay_parm(struct hd_relay *relay, uint32_t bucket, uint64_t members,
	struct hd_diag *diag);

/* ---- arriving ---- */

/* What arrived. Of mail between stages only the kind is set. partial_done: all runs of that partial sum are
 * here. passes: bits of those of the sender whose metrics are complete. parm_done: the new parameters of the
 * bucket (and the digests of its slots, if the step has a digest) are. */
struct hd_relay_news {
	enum hd_xfer_kind kind;
	uint32_t ordinal, bucket, passes;
	bool partial_done, parm_done;
};
/* HD_E_PROTOCOL: not of this step; HD_E_INTEGRITY: rule 2. A refused arrival changes nothing. */
HD_MUST_USE enum hd_err hd_relay_arrived(struct hd_relay *relay, const struct hd_arrival *arrival,
	struct hd_relay_news *news, struct hd_diag *diag);

/* A device stands still for the new parameters of a bucket (sharded state), or for its sum: the sender
 * of what is missing, or of what it is made of here, sends that first. Returns the id of the missing row,
 * of several the first; HD_NOBODY: none comes from another worker. */
uint32_t hd_relay_want(struct hd_relay *relay, uint32_t bucket);

/* The operands of the fold of a bucket, [nroots] for each of its runs, in the order of relay->root. Those of
 * this worker become valid as its passes are computed. */
const float *const *hd_relay_operands(struct hd_relay *relay, uint32_t bucket);
/* The same in a step of one root, which is this worker's, of any bucket; valid until the next call. The
 * compute thread. */
const float *const *hd_relay_own_runs(struct hd_relay *relay, uint32_t bucket);

/* ---- mail between stages ---- */

/* Takes what the worker has to send and to receive, and passes on what can be. Call it whenever the worker
 * asks for it (hd_dist_mail_watch()) and after each `sent`. */
HD_MUST_USE enum hd_err hd_relay_mail(struct hd_relay *relay, struct hd_diag *diag);
/* true: it was mail, and the worker has its buffer again. */
bool hd_relay_sent(struct hd_relay *relay, const struct hd_sent *sent);

/* ---- called by the compute thread ---- */

void hd_relay_own_metrics(struct hd_relay *relay, uint32_t pass);        /* puts those of a computed pass */
/* Takes the metrics of the others. */
HD_MUST_USE enum hd_err hd_relay_take(struct hd_relay *relay, struct hd_diag *diag);
/* Of sharded state. Before the update: take the sums of squares of the others. */
void hd_relay_take_norms(struct hd_relay *relay);
/* Of whole tensors by stages. When the own buckets are measured, or the step is finished: put what others
 * need of them. Before the step is finished: take what came. */
void hd_relay_own_ratios(struct hd_relay *relay, const uint8_t *own);
void hd_relay_take_ratios(struct hd_relay *relay);
/* After the update: put the digests of the slots of the own buckets. */
void hd_relay_own_digests(struct hd_relay *relay, const uint8_t *own);
/* Before the step is finished: take the digests of the others. */
void hd_relay_take_digests(struct hd_relay *relay, const uint8_t *own);

#endif
