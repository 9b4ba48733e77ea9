/* cost_patience.h -- what prices have been, and which of them is worth waiting for.
 *
 * A job with a deadline and time to spare need not run now. Were the time to its deadline like the past, it
 * would run whenever a step costs at most some price r, the least one at which it is over in time:
 * hd_patience_price finds that r.
 *
 * 1. Only what was seen counts: prices hold from one call of hd_patience_see to the next. The time
 *    between is taken from the ages of the jobs that are in both; time in which no job stayed is not counted.
 * 2. Without a past, prices are assumed to stay: no job waits.
 * 3. Memory is bounded: of HD_PATIENCE_SEEN spans every two neighbours become one at the prices of the
 *    longer.
 *
 * Ownership: hd_patience_finish frees all. Pure. */
#ifndef HD_SCHEDULER_POLICY_COST_PATIENCE_H
#define HD_SCHEDULER_POLICY_COST_PATIENCE_H

#include "scheduler/policy/int.h"

enum { HD_PATIENCE_SEEN = 512 };

struct hd_patience {
	uint32_t n, ntypes;
	/* owned: [HD_PATIENCE_SEEN], [HD_PATIENCE_SEEN * ntypes]; the last span is the one that lasts */
	double *span_s, *usd_h;
	struct hd_ledger ages;                    /* of struct { uint64_t id; double age_s; } */
};

/* Other types than before: the past is forgotten. */
HD_MUST_USE enum hd_err hd_patience_see(struct hd_patience *p, const struct hd_sched_state *state,
	struct hd_diag *diag);
/* Money for a step of a job with these rates [ntypes] on `scale` devices, such that on the past it would have
 * made `need` steps/s on average; INFINITY: not at any price. */
double hd_patience_price(const struct hd_patience *p, const double *rate, uint32_t scale, double need);
void hd_patience_finish(struct hd_patience *p);

#endif
