/* holding.h -- which members of a view hold the parameters and the optimizer's slots of each bucket, and
 * which one adds its partial sums.
 *
 * One value for every way to lay out state; the protocol knows no other (protocol/exchange.h). The cases:
 *
 *	                       param                       slot
 *	replicated             all                         all (stages, too: `whole` of plan/buckets.h)
 *	sharded (ADR 44)       all                         a chain: the owner and the next copies - 1
 *	staged                 holders of the readers      the same
 *	staged and sharded     holders of the readers      a chain among them (refused so far: view.h)
 *
 * The *readers* of a bucket are the stages that read its parameters (plan/buckets.h). A weight that several
 * stages read is updated by all of them: what a stage reads it also brings on.
 *
 * 1. Masks are by index among the members of a view: bit m is member m; at most 64 members.
 * 2. Every bucket has an owner among the holders of its stage, and the owner is one of its slot holders. Of
 *    the h holders of a stage with n buckets, number i (counted among these buckets) belongs to holder
 *    floor(i h / n): for one stage that of n members.
 * 3. Buckets are the same in all views of a run; holders may change, also inside of a step (a loss).
 * 4. `apart`: some parameters lie without their slots, so an update takes two acts (UPDATE, then PARAMETERS
 *    to those that hold no slots). `partial`: not all members hold all state.
 *
 * Ownership: init/finish; the table is borrowed for a call. Pure but for the memory it takes. */
#ifndef HD_PLAN_HOLDING_H
#define HD_PLAN_HOLDING_H

#include "plan/buckets.h"

struct hd_holding {
	uint32_t nbuckets;
	bool apart, partial;
	uint64_t *param, *slot;           /* owned: [nbuckets] */
	uint32_t *owner;                  /* owned: [nbuckets] an index among the members */
};

HD_MUST_USE enum hd_err hd_holding_init(struct hd_holding *holding, uint32_t nbuckets, struct hd_diag *diag);
void hd_holding_finish(struct hd_holding *holding);          /* takes zeroed and finished ones */

/* `buckets` NULL: all of one stage. `stage` [nstages]: the members that hold each stage, none empty; NULL:
 * all members hold all stages. `copies`: holders of each bucket's slots, 0: all that hold its parameters. */
void hd_holding_make(struct hd_holding *holding, const struct hd_stage_buckets *buckets,
	const uint64_t *stage,
	uint32_t nmembers, uint32_t copies);

/* Does any member of such a run hold parts of the state only? A run keeps one answer for all its views, so
 * what one member says of its part and what another makes of it are of one rule. */
static inline bool hd_state_is_partial(const struct hd_stage_buckets *buckets, uint32_t copies)
{
	return copies > 0 || (buckets && buckets->nstages > 1 && !buckets->whole);
}

static inline uint64_t hd_members_all(uint32_t n) { return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1; }
/* The n-th member of a mask, which has more than n. */
uint32_t hd_members_nth(uint64_t members, uint32_t n);

#endif
