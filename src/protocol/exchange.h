/* exchange.h -- which messages of a step's gradient exchange have arrived at one member: bookkeeping, no
 * bytes.
 *
 * The exchange is a reduce-scatter and an all-gather by bucket: members send their roots (partial sums) of
 * a bucket to its owner, the owner adds them and publishes the sum to all. The *table* (loss, weight, correct
 * and norm moments of each virtual node) is gathered too: every member sends its entries to all. The member
 * machine asks here what is ready; buffers and sending are the runtime's.
 *
 * 1. Of each bucket a member holds its own roots, or the sum, or both. A sum that is here stays until
 *    hd_exchange_begin().
 * 2. A bucket is ready to fold at its owner when all roots of all passes are here. No other test is needed:
 *    the passes partition the virtual nodes. A duplicate changes nothing.
 * 3. A bucket that has only one root in all is folded like others; the fold adds nothing.
 * 4. After the loss of a member the step is *restarted* under a new view (hd_exchange_again()). Roots of
 *    buckets without a sum, and table entries of other members, are forgotten. Sums that are here stay, and
 *    so does a complete table. If any member holds the sum of a bucket, a holder publishes it
 *    (hd_exchange_source()); the same goes for the table.
 * 5. The step is *complete* when all sums and all entries of the table are here.
 *
 * Sharded state (`copies` above 0; ZeRO-1): only the members of a bucket's *chain* take its sum and update
 * its optimizer slots; the others get its new parameters (PARM).
 *
 * 6. The sum is passed from member to member along the *line* of its bucket: first the owner (in a restarted
 *    step: those that had the sum), then each member of the chain that lacks it. The last one of the chain
 *    sends the parameters. So a member that has these knows that the whole chain has the sum.
 * 7. All members need the sums of squares of every bucket (NORM) for the norm of the step. They come from
 *    the first of the bucket's line.
 * 8. The chain has those members of the view's chain (hd_bucket_chain()) that hold the slots, or receive
 *    them in this step (`fetchers`). In a restarted step the holders of slots are the chain; none fetches.
 * 9. The step is complete when the new parameters of all buckets are here, instead of the sums.
 *
 * Which row of the transfer table each message is: protocol/transfers.h.
 *
 * Ownership: memory is taken in init, begin and again only. One thread. Pure otherwise. */
#ifndef HD_PROTOCOL_EXCHANGE_H
#define HD_PROTOCOL_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "protocol/view.h"

/* A run of buckets with the same holders: from `first` to the bucket before the next run. `members`: the
 * holders, a bit mask of member indices; 0: none. */
struct hd_have { uint32_t first; uint64_t members; };
/* Expands n runs to members[nbuckets]. Runs are ascending. Buckets before the first run have no holder; runs
 * beyond nbuckets are ignored. */
void hd_have_spread(uint64_t *members, uint32_t nbuckets, const struct hd_have *run, uint32_t n);

struct hd_exchange {
	uint32_t nvns, nbuckets, copies;  /* copies 0: replicated state */
	uint32_t me, nmembers;            /* index among the members of the view in force */
	uint64_t step;
	struct hd_passes passes;
	uint32_t nroots;                  /* of all passes */
	uint32_t first_root[HD_VIEW_PASSES + 1];      /* by index of the pass */
	uint32_t nsums, nleaves;          /* sums here; passes whose entries of the table are here */
	bool table;                       /* the table is complete */
	/* members that held the whole table when the step was restarted */
	uint64_t table_have;
	uint64_t leaf[HD_VIEW_PASSES / 64];           /* passes whose entries are here */
	uint64_t *sum;                    /* owned: [nbuckets] bits, sums here */
	uint64_t *folding;                /* owned: bits, folds asked for and not done */
	/* owned: [nbuckets] members that hold the sum, 0: none (of a redone step) */
	uint64_t *have;
	uint32_t *left;                   /* owned: [nbuckets] roots still to come, at their owner */
	uint64_t *root;                   /* owned: [nbuckets][words] roots here */
	uint32_t words, words_cap;        /* of a row of `root` */
	/* sharded state */
	uint32_t nnorms, nparms;          /* here */
	uint64_t *norm, *parm;            /* owned: [nbuckets] bits */
	uint64_t *chain;                  /* owned: [nbuckets] members that update the slots in this step */
	/* owned: [nbuckets] members that held the parameters when the step was restarted */
	uint64_t *parm_have;
	uint64_t fetchers;                /* members that receive slots of their chains in this step */
	uint64_t done;                    /* members that had sealed the step when it was restarted */
};

/* The holders of what there is of a restarted step: of sums, new parameters and slots (`chain`) in runs;
 * of the table, and the members that have sealed the step (`done`), as bit masks. Borrowed for the call. */
struct hd_exchange_past {
	const struct hd_have *have, *parm, *chain;
	uint32_t nhave, nparm, nchain;
	uint64_t table, done;
	/* this member has nothing of it: it had not begun it, or what it had was cancelled */
	bool afresh;
};

HD_MUST_USE enum hd_err hd_exchange_init(struct hd_exchange *x, uint32_t nvns, uint32_t nbuckets,
	uint32_t copies, struct hd_diag *diag);
void hd_exchange_finish(struct hd_exchange *x);           /* takes zeroed and finished ones */

/* A new step: nothing is here. `slots` [nbuckets]: bit masks of the holders of slots; NULL unless state is
 * sharded. HD_E_BADPLAN: the passes do not partition the virtual nodes, or `worker` is no member. */
HD_MUST_USE enum hd_err hd_exchange_begin(struct hd_exchange *x, const struct hd_view *view, uint32_t worker,
	uint64_t step,
	const struct hd_passes *passes, const uint64_t *slots, struct hd_diag *diag);
/* The same step under a new view (rule 4). If every bucket has a sum somewhere, the passes need not cover all
 * virtual nodes. */
HD_MUST_USE enum hd_err hd_exchange_again(struct hd_exchange *x, const struct hd_view *view, uint32_t worker,
	uint64_t step,
	const struct hd_passes *passes, const struct hd_exchange_past *past, struct hd_diag *diag);

/* The index of the member that sends the sum: the owner if none had it, else one of the holders, chosen by
 * the bucket's number (sharded: the first of the line). */
uint32_t hd_exchange_source(const struct hd_exchange *x, uint32_t bucket);
/* Members that this one sends the sum to, and the one that sends it here (HD_NOBODY: none does). */
uint64_t hd_exchange_sum_to(const struct hd_exchange *x, uint32_t bucket);
uint32_t hd_exchange_sum_from(const struct hd_exchange *x, uint32_t bucket);
/* Of the parameters of a bucket: the sender, and the receivers. */
uint32_t hd_exchange_parm_source(const struct hd_exchange *x, uint32_t bucket);
uint64_t hd_exchange_parm_to(const struct hd_exchange *x, uint32_t bucket);
uint64_t hd_exchange_norm_to(const struct hd_exchange *x);                /* from the source of the sum */
/* Is this member in the chain of the bucket? */
static inline bool hd_exchange_chained(const struct hd_exchange *x, uint32_t bucket)
{
	return x->chain[bucket] >> x->me & 1;
}
/* Are the bucket's new parameters here? */
static inline bool hd_exchange_fresh(const struct hd_exchange *x, uint32_t bucket)
{
	return x->parm[bucket / 64] >> bucket % 64 & 1;
}
/* Is the bucket's sum here? */
static inline bool hd_exchange_summed(const struct hd_exchange *x, uint32_t bucket)
{
	return x->sum[bucket / 64] >> bucket % 64 & 1;
}
/* Is a sum of any bucket here, or at any member when the step was restarted? */
bool hd_exchange_any_sum(const struct hd_exchange *x);
/* Do roots of the bucket go to its owner? They do while no member has its sum. */
bool hd_exchange_wants_roots(const struct hd_exchange *x, uint32_t bucket);
/* The sender of the whole table: an index; HD_NOBODY: none has it, each member sends its entries. */
uint32_t hd_exchange_table_source(const struct hd_exchange *x);

/* A message arrived from the member `worker` (also from this one). false: a duplicate, or not of this step.
 * Whether that member may send it is not checked here: the wire grants what each peer may send. */
bool hd_exchange_root(struct hd_exchange *x, uint32_t worker, uint32_t ordinal, uint32_t bucket);
bool hd_exchange_has_root(const struct hd_exchange *x, uint32_t worker, uint32_t ordinal, uint32_t bucket);
/* Table entries of passes.pass[pass]. */
static inline bool hd_exchange_has_leaves(const struct hd_exchange *x, uint32_t pass)
{
	return x->leaf[pass / 64] >> pass % 64 & 1;
}
bool hd_exchange_sum(struct hd_exchange *x, uint32_t bucket);
bool hd_exchange_leaves(struct hd_exchange *x, uint32_t worker, uint32_t pass);
bool hd_exchange_table(struct hd_exchange *x);
bool hd_exchange_norm(struct hd_exchange *x, uint32_t bucket);
bool hd_exchange_parm(struct hd_exchange *x, uint32_t bucket);
/* Is all here that the update of the own buckets needs: the table, all sums of squares, and the sums of the
 * buckets in whose chain this member is? */
bool hd_exchange_may_update(const struct hd_exchange *x);
/* true, once per bucket that this member owns: all its roots are here. Marks it as asked for. */
bool hd_exchange_fold(struct hd_exchange *x, uint32_t bucket);
bool hd_exchange_complete(const struct hd_exchange *x);

#endif
