/* holding.h -- which members of a view hold the parameters and the optimizer slots of each bucket, and which
 * one of them is its owner: the member that adds its partial sums.
 *
 * The words: a *member* is a worker that takes part at the moment, a *view* all of them (protocol/view.h). A
 * *bucket* is a fixed part of the flat gradient: the unit that is summed, owned and updated (plan/buckets.h).
 * The *slots* of a parameter are what its optimizer keeps for it, as Adam's m and v.
 *
 * One type for every way to lay out state; the exchange of a step knows no other (protocol/exchange.h):
 *
 *	                       parameters at             slots at
 *	replicated             all members               all members
 *	sharded (ZeRO-1)       all members               a chain: the owner and the next `copies` - 1 members
 *	parameter server       all members               a chain among the first `servers` members, round
 *	staged                 holders of the readers    the same members
 *	staged, with shadows   those, and members with   the same members
 *	                       a reader's shadow
 *	staged, with followers those, and members that   the same members
 *	                       follow a reader
 *	staged and sharded     holders of the readers    a chain among them (refused: HD_NO_SHARDED_STAGES)
 *
 * *Staged*: a member holds the state of the pipeline stages that it runs, and is a *holder* of these stages.
 * The *readers* of a bucket are the stages whose nodes read its parameters. A weight that several stages read
 * is updated by the holders of all of them. A pipeline may replicate its state instead (`whole` of
 * plan/buckets.h): the first row. A *shadow* of a stage is its state at a member that does not run it:
 * nothing is computed with it, it is updated as its stage is, and it is there when the stage's holders are
 * lost. A *follower* is a member that runs no stage and has the shadow of one: here it is a shadow like
 * others.
 *
 * 1. Masks are by index among the members of a view: bit m is member m; at most 64 members.
 * 2. Every bucket has one owner, which is one of its slot holders and holds its stage: the lowest that makes
 *    any of its gradient. A shadow makes no owner. Owners of the buckets with one stage (without stages: of
 *    all) are dealt by `bytes`, from the last bucket on, as backward passes make them. Of the holders (with
 *    servers: the first `servers` members) it goes to one that has few bytes so far: no more than the least
 *    has, and half of this bucket, or HD_HOLDING_SLACK of an even part. Of these to the one that the bucket
 *    likes best, a hash of it and the member's id. So bytes are even, at the end and at any time before, and
 *    a holder that comes or goes moves few. Where all of them have the slots anyway (`copies` 0, or no fewer
 *    than they are) an owner moves nothing: the least has it, of equal ones the lowest (ADR 270).
 *    Of more than HD_HOLDING_DEALT buckets so many neighbours go together that there are no more runs.
 *    A function of bytes, ids and stages. Without bytes number i of n belongs to holder floor(i h / n) of h.
 * 3. Buckets are the same in all views of a run. Holders may change, also inside a step: when a member is
 *    lost.
 * 4. `apart`: some members hold parameters without their slots. An update then has two phases: the holders
 *    of slots update, then they send the new parameters to the others. `partial`: some member does not hold
 *    all of the state.
 * 5. *Kin*: an optimizer that changes whole tensors reads norms of a tensor's parameters and of their moves
 *    (buckets.h, rule 4). A member that holds slots of a bucket with some of a tensor, and not those of
 *    another bucket with more of it, is kin of that other one: it needs its sums of squares. Members that
 *    hold the whole of all tensors of which they hold some are kin of none.
 *
 * Ownership: memory from init to finish; arguments are borrowed for the call. Pure but for that memory. */
#ifndef HD_PLAN_HOLDING_H
#define HD_PLAN_HOLDING_H

#include "plan/buckets.h"

enum { HD_HOLDING_SLACK = 32, HD_HOLDING_DEALT = 4096 };      /* rule 2: a 32nd */

struct hd_holding {
	uint32_t nbuckets;
	/* borrowed: [nbuckets] that its owner gets and sends of each, per other member; NULL: not known */
	const uint64_t *bytes;
	bool apart, partial;
	uint64_t *param, *slot;           /* owned: [nbuckets] */
	uint32_t *owner;                  /* owned: [nbuckets] an index among the members */
	uint64_t *kin;                    /* owned: [nbuckets] */
	uint64_t *spare;                  /* owned: [nbuckets] of `param` those that run no reader */
};

/* The members of a view. `id` [n]; NULL: their numbers. `stage` [nstages]: those that hold each stage, at
 * least one; NULL: all hold all stages. `shadow` [nstages]: those that have the shadow of each, perhaps none,
 * or follow it; NULL: there are none. */
struct hd_holders { uint32_t n; const uint32_t *id; const uint64_t *stage, *shadow; };

/* `bytes` is set afterwards, if they are known. */
HD_MUST_USE enum hd_err hd_holding_init(struct hd_holding *holding, uint32_t nbuckets, struct hd_diag *diag);
void hd_holding_finish(struct hd_holding *holding);          /* takes zeroed and finished ones */

/* `buckets` NULL: the model is one stage. `copies`: how many members hold the slots of a bucket; 0: all that
 * hold its parameters. `servers`, with copies: the first so many members are all that hold slots; 0, and
 * where there are fewer members: all may. */
void hd_holding_make(struct hd_holding *holding, const struct hd_stage_buckets *buckets,
	const struct hd_holders *members, uint32_t copies, uint32_t servers);

/* Where these members hold the slots of each bucket, the kin of each (rule 5). Is any member kin of one? */
bool hd_holding_kin(uint64_t *kin, const struct hd_stage_buckets *buckets, const uint64_t *slot,
	uint32_t nbuckets);

/* May a member of such a run hold only a part of the state? One answer for all views of the run, also for
 * those in which each member has everything: what a member reports and how others read it agree. */
static inline bool hd_state_is_partial(const struct hd_stage_buckets *buckets, uint32_t copies)
{
	return copies > 0 || (buckets && !buckets->whole);
}

static inline uint64_t hd_members_all(uint32_t n) { return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1; }
/* The n-th member of a mask, which has more than n. */
uint32_t hd_members_nth(uint64_t members, uint32_t n);

#endif
