/* exchange.h -- which messages of a step's gradient exchange have arrived at one member: bookkeeping, no
 * bytes.
 *
 * The exchange is a reduce-scatter and an all-gather by bucket (view.h): members send their roots (partial
 * sums) of a bucket to its owner, which *folds* them: adds them in the order of the canonical tree. The sum
 * goes to the members that hold the bucket's optimizer slots, to all at once where these are all members
 * (rule 6). The *table* is gathered too: for each virtual node its loss, weight (how many samples or tokens
 * it counts for), correct predictions, and moments for batch normalisation; every member sends its entries to
 * all. The member's state machine (member.h) asks here what is ready; buffers and sending are the runtime's.
 *
 * 1. Of each bucket a member holds its own roots, the sum, both, or neither. A sum that is here stays until
 *    hd_exchange_begin(), or until hd_exchange_again() says that the step is another one or starts over.
 * 2. A bucket is ready to fold at its owner when all roots of all passes of its makers (plan/buckets.h) are
 *    here. No other test is needed: the passes partition the virtual nodes. A duplicate changes nothing.
 * 3. A bucket that has only one root in all is folded like others; the fold adds nothing.
 * 4. After the loss of a member the step is *restarted* under a new view (hd_exchange_again()). Roots of
 *    buckets without a sum, and table entries of other members, are forgotten. Sums that are here stay, and
 *    so does a complete table. If any member holds the sum of a bucket, a holder publishes it
 *    (hd_exchange_source()); the same goes for the table.
 *    With pipeline stages no further pass repairs a step: either it is finished from the sums that there are,
 *    or it starts over (coordinator.h, rule 15).
 * 5. Rule 9 says when a step is *complete* here.
 *
 * Which members update what follows from the *holding* (plan/holding.h). The *chain* of a bucket are the
 * members that hold its slots. In sharded state (ZeRO-1) all other members hold its parameters, and get the
 * new ones from the chain (PARAMETERS of plan/xfer.h, here PARM). With state by stages they hold neither.
 *
 * 6. The *line* of a bucket is the way that its sum takes: first its owner (in a restarted step: those that
 *    had the sum), then each member of the chain that lacks it, those last that hold the bucket for a loss
 *    alone, as shadows and followers: those that compute with it do not wait for them. Each member of the
 *    line passes the sum to the next. Beside that the order only matters to members outside (rule 7). So
 *    where the line has all members, one of them sends the sum to all others at once.
 * 7. Proof of sum. All members need the sums of squares of every bucket for the gradient norm of the step. A
 *    member in the line takes them from the sum; all others get them (NORM) from the *last* of the line. So a
 *    member that has all norms knows that every sum is at all its holders: no gradient of this step is ever
 *    computed again, and only then may it update slots. On a line of all members no norm is sent and none is
 *    needed: a member that updates has the sum itself. Parameters come from the last of the chain: that it
 *    has the sum says that all of the chain have. So in a step that follows one of the same view they may
 *    come before the norms of other buckets (member.h, rule 13), not in the first one of a view, where
 *    others than the chain still have the slots.
 * 8. The chain has those members that hold the slots under the view, or receive them in this step
 *    (`fetchers`). In a restarted step the holders of slots are the chain; no slots are fetched,
 *    and those that came to a member after it had said what it holds count for none.
 * 9. Where some members hold parameters without slots (held.apart), the step is complete when the new
 *    parameters of all buckets that this member holds are here. Else it is complete with the sums of the
 *    buckets in whose line this member is, the norms of the others, and the table.
 *
 * 10. Where some member is *kin* of a bucket (plan/holding.h, rule 5), of an optimizer that changes whole
 *    tensors, an update has two phases: those of the chain take the sums of squares of parameters and of
 *    their moves, and the last of the chain sends them to the kin (RATIO). Nothing has changed before they
 *    have come, so they may be taken again. Kin follow from the chain of the step. The step is complete when
 *    those of all buckets of which this member is kin are here.
 *
 * 11. *Pairs*. Where the job asks for it (`pairs`), all state is replicated, and each of a power of two of
 *    members runs one pass over one aligned block of virtual nodes (plan/collective.h), members
 *    ascending. Partial sums then go by halving. A member's *parent* for a bucket is the member whose index
 *    differs in the lowest bit in which its own differs from the owner's. A member sends its parent one
 *    partial sum of the bucket, when all that it adds is here: its own, and those of the members whose
 *    parent it is. That is a node of the tree: of an aligned block of members. So the owner joins log2 n
 *    of others instead of n - 1. What follows from the sum is as ever. A step that is restarted has no
 *    pairs: roots go to owners. None is used up, and rule 4 holds as it stands. Whether a step has pairs
 *    follows from view and job alone.
 *
 * Which row of the transfer table each message is: protocol/transfers.h.
 *
 * Ownership: memory is taken in init, begin and again only; `buckets` is borrowed. One thread. Pure
 * otherwise. */
#ifndef HD_PROTOCOL_EXCHANGE_H
#define HD_PROTOCOL_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "plan/holding.h"
#include "protocol/passes.h"

/* Consecutive buckets with the same holders: from `first` to the bucket before the next such run. `members`:
 * the holders, a bit mask of member indices; 0: none. */
struct hd_have { uint32_t first; uint64_t members; };
/* Expands n runs to members[nbuckets]. Runs are ascending. Buckets before the first run have no holder; runs
 * beyond nbuckets are ignored. */
void hd_have_spread(uint64_t *members, uint32_t nbuckets, const struct hd_have *run, uint32_t n);

/* The line of one bucket (rule 6). */
struct hd_sum_line {
	uint64_t had, members;            /* masks: those that begin with the sum; all of the line */
	uint32_t n, nhad, at[HD_MAX_MEMBERS];     /* indices in order, those of `had` first */
	bool all;                         /* it has all members of the view */
};

/* `have`: members that hold the sum, 0: none yet, the owner folds it; `chain`: those that are to have it;
 * `spare`: of these the ones that come last (held.spare). */
void hd_line_make(struct hd_sum_line *line, uint32_t owner, uint64_t have, uint64_t chain, uint64_t spare,
	uint32_t nmembers);
uint32_t hd_line_source(const struct hd_sum_line *line, uint32_t bucket);
/* The members that this one sends the sum to. */
uint64_t hd_line_sum_to(const struct hd_sum_line *line, uint32_t bucket, uint32_t member);

struct hd_exchange {
	uint32_t nvns, nbuckets;
	uint32_t copies;                  /* of the job; 0: slots lie with the parameters */
	uint32_t servers;                 /* of the job (plan/holding.h), before the first step */
	bool pairs;                       /* of the job, set after init: rule 11 */
	bool paired, again;               /* of the step; again: it was restarted */
	/* borrowed; NULL: one stage */
	const struct hd_stage_buckets *buckets;
	struct hd_holding held;           /* under the view of the step */
	uint32_t me, nmembers;            /* index among the members of the view in force */
	uint64_t stages;                  /* that this member runs, bits */
	uint64_t step;
	struct hd_passes passes;
	uint32_t nroots;                  /* of all passes */
	uint32_t first_root[HD_VIEW_PASSES + 1];      /* by index of the pass */
	uint32_t of_stage[HD_STAGE_BITS];             /* roots of the passes of a stage */
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
	/* still to come of what this member needs: sums, norms and parameters (rules 7, 9) */
	uint32_t due_sums, due_norms, due_parms, due_ratios;
	uint32_t nnorms, nparms;          /* here */
	uint64_t *squared;                /* owned: [nbuckets] bits, sums whose squares are taken */
	uint64_t *norm, *parm;            /* owned: [nbuckets] bits */
	/* owned: [nbuckets] bits: ratios that came; buckets whose sums of squares were taken here */
	uint64_t *ratio, *measured;
	uint64_t *kin;                    /* owned: [nbuckets] members (rule 10) */
	bool joint;                       /* some bucket has kin */
	uint64_t *chain;                  /* owned: [nbuckets] members that update the slots in this step */
	/* owned: [nbuckets] members that held the parameters when the step was restarted */
	uint64_t *parm_have;
	uint64_t fetchers;                /* members that receive slots of their chains in this step */
	uint64_t done;                    /* members that had sealed it (seal.h) when it was restarted */
};

/* The holders of what there is of a restarted step: of sums, new parameters and slots (`chain`) in runs;
 * of the table, and the members that have sealed the step (`done`), as bit masks. Borrowed for the call. */
struct hd_exchange_past {
	const struct hd_have *have, *parm, *chain;
	uint32_t nhave, nparm, nchain;
	uint64_t table, done;
	/* this member keeps nothing of the step: it had not begun it, or all start it over */
	bool afresh;
};

HD_MUST_USE enum hd_err hd_exchange_init(struct hd_exchange *x, uint32_t nvns, uint32_t nbuckets,
	uint32_t copies, struct hd_diag *diag);
/* Before the first step of a job whose model is cut into stages. */
void hd_exchange_stages(struct hd_exchange *x, const struct hd_stage_buckets *buckets);
void hd_exchange_finish(struct hd_exchange *x);           /* takes zeroed and finished ones */

/* A new step: nothing is here. `slots` [nbuckets]: bit masks of the members that hold the slots now; only
 * read where some member holds a part of the state (held.partial). HD_E_BADPLAN: the passes do not partition
 * the virtual nodes, or `worker` is no member. */
HD_MUST_USE enum hd_err hd_exchange_begin(struct hd_exchange *x, const struct hd_view *view, uint32_t worker,
	uint64_t step, const struct hd_passes *passes, const uint64_t *slots, struct hd_diag *diag);
/* The same step under a new view (rule 4). If every bucket's sum and the table have a holder, the passes need
 * not cover all virtual nodes. */
HD_MUST_USE enum hd_err hd_exchange_again(struct hd_exchange *x, const struct hd_view *view, uint32_t worker,
	uint64_t step, const struct hd_passes *passes, const struct hd_exchange_past *past,
	struct hd_diag *diag);

void hd_exchange_line(const struct hd_exchange *x, uint32_t bucket, struct hd_sum_line *line);
/* The index of the member from which the sum comes: the owner if none had it, else the first of the line; on
 * a line of all members one of those that had it, chosen by the bucket's number. */
uint32_t hd_exchange_source(const struct hd_exchange *x, uint32_t bucket);
/* Rule 11: the member that `member` sends its partial sum to, where `owner` is the bucket's; of the owner
 * itself. */
static inline uint32_t hd_pair_parent(uint32_t member, uint32_t owner)
{
	uint32_t differs = member ^ owner;

	return member ^ (differs & (0 - differs));
}
/* How many members among n are its children: member ^ 1, ^ 2, ^ 4, .. */
uint32_t hd_pair_children(uint32_t member, uint32_t owner, uint32_t n);
/* The member that own partial sums of the bucket go to; this one: they are joined here. */
uint32_t hd_exchange_root_to(const struct hd_exchange *x, uint32_t bucket);
/* true, once per bucket that goes on to this member's parent: all that it adds is here. */
bool hd_exchange_combine(struct hd_exchange *x, uint32_t bucket);
/* Members that this one sends the sum to, and the one that sends it here (HD_NOBODY: none does; on a line
 * of all members always the source, which may be this one). */
uint64_t hd_exchange_sum_to(const struct hd_exchange *x, uint32_t bucket);
uint32_t hd_exchange_sum_from(const struct hd_exchange *x, uint32_t bucket);
/* Of the parameters of a bucket: the sender, and the receivers. */
uint32_t hd_exchange_parm_source(const struct hd_exchange *x, uint32_t bucket);
uint64_t hd_exchange_parm_to(const struct hd_exchange *x, uint32_t bucket);
/* Of the sums of squares: the sender (HD_NOBODY: none need be sent), and the receivers. */
uint32_t hd_exchange_norm_source(const struct hd_exchange *x, uint32_t bucket);
uint64_t hd_exchange_norm_to(const struct hd_exchange *x, uint32_t bucket);
/* Of the sums of squares of a bucket's parameters and moves: the sender, and the receivers. */
uint32_t hd_exchange_ratio_source(const struct hd_exchange *x, uint32_t bucket);
uint64_t hd_exchange_ratio_to(const struct hd_exchange *x, uint32_t bucket);
/* Is this member in the chain of the bucket? */
static inline bool hd_exchange_chained(const struct hd_exchange *x, uint32_t bucket)
{
	return x->chain[bucket] >> x->me & 1;
}
/* Do stages that this member runs read the bucket? Without stages all do. */
static inline bool hd_exchange_reads(const struct hd_exchange *x, uint32_t bucket)
{
	return !x->buckets || x->buckets->at[bucket].readers & x->stages;
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
/* Are roots of this pass roots of the bucket? */
bool hd_exchange_makes(const struct hd_exchange *x, const struct hd_pass *pass, uint32_t bucket);
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
/* The sums of squares of a sum that is here were taken; false: it is not here, or they were already. */
bool hd_exchange_square(struct hd_exchange *x, uint32_t bucket);
static inline bool hd_exchange_squared(const struct hd_exchange *x, uint32_t bucket)
{
	return x->squared[bucket / 64] >> bucket % 64 & 1;
}
bool hd_exchange_leaves(struct hd_exchange *x, uint32_t worker, uint32_t pass);
bool hd_exchange_table(struct hd_exchange *x);
bool hd_exchange_norm(struct hd_exchange *x, uint32_t bucket);
bool hd_exchange_parm(struct hd_exchange *x, uint32_t bucket);
bool hd_exchange_ratio(struct hd_exchange *x, uint32_t bucket);
/* The sums of squares of parameters and moves of a bucket in whose chain this member is were taken. */
void hd_exchange_measure(struct hd_exchange *x, uint32_t bucket);
static inline bool hd_exchange_is_measured(const struct hd_exchange *x, uint32_t bucket)
{
	return x->measured[bucket / 64] >> bucket % 64 & 1;
}
/* Is all here that an update needs: the table, the sums of the buckets in whose line this member is, and the
 * norms of all others? */
bool hd_exchange_may_update(const struct hd_exchange *x);
/* true, once per bucket that this member owns: all its roots are here. Marks it as asked for. */
bool hd_exchange_fold(struct hd_exchange *x, uint32_t bucket);
bool hd_exchange_complete(const struct hd_exchange *x);

#endif
