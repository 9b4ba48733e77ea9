/* exchange.h -- what of one step's exchange is here, at one member: bookkeeping without bytes.
 *
 * A step has nbuckets buckets and one *table* (loss, weight, correct and norm moments of each virtual
 * node). Owners add the roots of a bucket and publish the sum; every member sends its entries of
 * the table to all. The member machine asks here what is ready; buffers and sending are the runtime's.
 *
 * 1. Per bucket a member holds its own roots or the sum, never neither. Once a sum is here it stays until
 *    hd_exchange_begin().
 * 2. A bucket is ready to fold at its owner when every root of every pass is here; the passes tile the
 *    virtual nodes, so no other test is needed. What comes twice changes nothing.
 * 3. A bucket with one root in all is folded like others; the fold adds nothing.
 * 4. After a loss hd_exchange_again() forgets all that came of unsummed buckets and all foreign entries of
 *    the table; own sums, and a table that was complete, stay. A sum that any member holds is published by a
 *    holder (hd_exchange_source), a table likewise.
 * 5. The step is *complete* when all sums and all entries of the table are here.
 *
 * Sharded state (`copies` above 0): only the members of a bucket's *chain* take its sum and bring its
 * optimizer slots on; the others get its new parameters (PARM).
 *
 * 6. The sum goes along the *line* of its bucket: from the owner, or those that had it when the step was
 *    taken up again, to each of the chain that has none, one after the other. The last of the chain sends the
 *    parameters: so a holder of them proves that the whole chain has the sum.
 * 7. What all need for the step's scalars, the sums of squares of a bucket (NORM), comes from the first of
 *    its line.
 * 8. The chain is that of the view where slots lie there already, or come in this step (`fetchers`). A step
 *    that is taken up again has the holders of slots as its chain; no member fetches in it.
 * 9. The step is complete when the parameters of all buckets are here, in place of the sums.
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

/* Holders of the sums of buckets `first` .. up to the next run's first: bits of member indices; 0: none. */
struct hd_have { uint32_t first; uint64_t members; };
/* Bucket by bucket. Runs rise; what lies before the first has no holder, and buckets that there are not are
 * left out. */
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
	/* members that held the whole table when the step was taken up again */
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
	uint64_t *chain;                  /* owned: [nbuckets] members that bring the slots on in this step */
	/* owned: [nbuckets] members that held the parameters when the step was taken up again */
	uint64_t *parm_have;
	uint64_t fetchers;                /* members that slots of the chain come to in this step */
	uint64_t done;                    /* members that had sealed the step when it was taken up again */
};

/* What there was of a step that is taken up again. `chain`: holders of slots, in runs as the others;
 * `done`: members that have sealed it. */
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

/* A new step: nothing is here. `slots`: [nbuckets] members that hold them, where state is sharded.
 * HD_E_BADPLAN: the passes do not tile, or `me` is no member. */
HD_MUST_USE enum hd_err hd_exchange_begin(struct hd_exchange *x, const struct hd_view *view, uint32_t worker,
	uint64_t step,
	const struct hd_passes *passes, const uint64_t *slots, struct hd_diag *diag);
/* The same step under a new view (rule 4). With sums of everything the passes need not tile. */
HD_MUST_USE enum hd_err hd_exchange_again(struct hd_exchange *x, const struct hd_view *view, uint32_t worker,
	uint64_t step,
	const struct hd_passes *passes, const struct hd_exchange_past *past, struct hd_diag *diag);

/* The member that sends the sum: the owner if none had it, else one of the holders, dealt by bucket number
 * (sharded: the first of the line). An index. */
uint32_t hd_exchange_source(const struct hd_exchange *x, uint32_t bucket);
/* Members that this one sends the sum to, and the one that sends it here (HD_NOBODY: none does). */
uint64_t hd_exchange_sum_to(const struct hd_exchange *x, uint32_t bucket);
uint32_t hd_exchange_sum_from(const struct hd_exchange *x, uint32_t bucket);
/* Of the parameters of a bucket: the sender, and the receivers. */
uint32_t hd_exchange_parm_source(const struct hd_exchange *x, uint32_t bucket);
uint64_t hd_exchange_parm_to(const struct hd_exchange *x, uint32_t bucket);
uint64_t hd_exchange_norm_to(const struct hd_exchange *x);                /* from the source of the sum */
static inline bool hd_exchange_chained(const struct hd_exchange *x,
	uint32_t bucket) { return x->chain[bucket] >> x->me & 1; }
static inline bool hd_exchange_fresh(const struct hd_exchange *x,
	uint32_t bucket) { return x->parm[bucket / 64] >> bucket % 64 & 1; }
static inline bool hd_exchange_summed(const struct hd_exchange *x,
	uint32_t bucket) { return x->sum[bucket / 64] >> bucket % 64 & 1; }
/* here, or anywhere when the step was taken up again */
bool hd_exchange_any_sum(const struct hd_exchange *x);
/* no member has its sum: roots go to its owner */
bool hd_exchange_wants_roots(const struct hd_exchange *x, uint32_t bucket);
/* The sender of the whole table: an index; HD_NOBODY: none has it, each member sends its entries. */
uint32_t hd_exchange_table_source(const struct hd_exchange *x);

/* What came, from a member (`worker`), also from oneself. false: it says nothing new, or is none of this
 * step's. HD_E_PROTOCOL is not distinguished here: the grants of the wire check which member may send what.
 * */
bool hd_exchange_root(struct hd_exchange *x, uint32_t worker, uint32_t ordinal, uint32_t bucket);
bool hd_exchange_has_root(const struct hd_exchange *x, uint32_t worker, uint32_t ordinal, uint32_t bucket);
/* Table entries of passes.pass[pass]. */
static inline bool hd_exchange_has_leaves(const struct hd_exchange *x,
	uint32_t pass) { return x->leaf[pass / 64] >> pass % 64 & 1; }
bool hd_exchange_sum(struct hd_exchange *x, uint32_t bucket);
bool hd_exchange_leaves(struct hd_exchange *x, uint32_t worker, uint32_t pass);
bool hd_exchange_table(struct hd_exchange *x);
bool hd_exchange_norm(struct hd_exchange *x, uint32_t bucket);
bool hd_exchange_parm(struct hd_exchange *x, uint32_t bucket);
/* All is here that bringing the own buckets on needs: the table, all sums of squares, the sums of the own
 * chains. */
bool hd_exchange_may_update(const struct hd_exchange *x);
/* Of this owner's bucket: all roots are here and its fold was not asked for yet. Marks it asked for. */
bool hd_exchange_fold(struct hd_exchange *x, uint32_t bucket);
bool hd_exchange_complete(const struct hd_exchange *x);

#endif
