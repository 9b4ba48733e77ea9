/* scaler.h -- how many workers a run asks for by itself: a policy of autoscale/autoscale.h, told of the steps
 * as they are.
 *
 * 1. Off until it is turned on, by elastic.autoscale of the job or `heddle scale RUN auto`; a number that a
 *    user asks for turns it off.
 * 2. What computing takes at each size is the largest share there times the median pace; the rest the policy
 *    learns.
 * 3. While members come or go nothing is proposed. Those that do not come in START of base/timeouts.h and
 *    HD_CO_STEPS_TO_JOIN steps cannot be had: no more are asked for until more workers are here than that
 *    (slow ones, somebody's own), or it is turned on anew. Members that are to go are waited for without end.
 *    What a change took is the policy's price for the next.
 * 4. Sizes are numbers of local workers, for whom a run can ask. Guests (workers of other machines) only make
 *    steps shorter: when their number changes, what was measured is of another run, and the policy begins
 *    anew. Cost is that of local workers.
 * 5. Every change, and that it settled, has the policy's sentence.
 *
 * Plain values, no clock: time is an argument. Threads: one. */
#ifndef HD_DRIVER_SCALER_H
#define HD_DRIVER_SCALER_H

#include "protocol/seal.h"
#include "autoscale/autoscale.h"

struct hd_scaler {
	const char *policy;               /* name of its row; NULL: off */
	bool begun;                       /* it has what it needs to begin: a pace */
	uint32_t nvns, min, max;
	uint32_t guests;                  /* while it measured */
	uint32_t cut;                     /* more than those could not be had; 0: up to max */
	int64_t detect_ns;                /* T */
	enum hd_objective objective;
	uint32_t every;
	double price_usd_h;
	struct hd_scale scale;
	int64_t compute_ps[HD_MAX_MEMBERS + 1];
	uint32_t asked; int64_t asked_ns; /* a change under way; 0: none */
	char why[HD_SCALE_WHY];           /* of the last answer that had one */
};

/* What it is told after a committed step. */
struct hd_scaler_now {
	uint32_t members, target;         /* local workers, as `here` */
	uint32_t guests;                  /* members besides */
	uint32_t here;                    /* members, and those who could be */
	uint64_t step_ns, vn_ps, left;    /* vn_ps: the median pace, 0: none was measured */
	int64_t since_ns, now_ns;         /* of the run, on one clock */
};

/* HD_E_INVAL: no such policy. NULL: off. */
HD_MUST_USE enum hd_err hd_scaler_turn(struct hd_scaler *scaler, const char *policy, struct hd_diag *diag);
/* The number of workers to ask for; 0: as it is. *said: scaler->why is new. */
uint32_t hd_scaler_step(struct hd_scaler *scaler, const struct hd_scaler_now *now, bool *said);

#endif
