/* scaler.h -- autoscaling of one run: feeds its committed steps to a policy of autoscale/autoscale.h.
 *
 * 1. Off until it is turned on, by elastic.autoscale of the job or `heddle scale RUN auto`; a number that a
 *    user asks for turns it off.
 * 2. What computing takes at each size is the largest share there times the median pace; the rest the policy
 *    learns.
 * 3. Nothing is proposed while a change is under way. Workers that have not joined after START of
 *    base/timeouts.h and HD_CO_STEPS_TO_JOIN steps cannot be had: that size is the limit until more workers
 *    are here (slow ones, or started by hand), or autoscaling is turned on again. Leaving members are waited
 *    for without end. The time of a change is the policy's price for the next.
 * 4. Sizes count local workers only: a run can start no others. Guests (workers of other machines) only make
 *    steps shorter: when their number changes, measurements are void, and the policy restarts. Cost is that
 *    of local workers.
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

/* Input after each committed step. */
struct hd_scaler_now {
	uint32_t members, target;         /* local workers, as `here` */
	uint32_t guests;                  /* members besides */
	uint32_t here;                    /* members, and workers ready to be */
	uint64_t step_ns, vn_ps, left;    /* vn_ps: the median pace, 0: none was measured */
	int64_t since_ns, now_ns;         /* of the run, on one clock */
};

/* HD_E_INVAL: no such policy. NULL: off. */
HD_MUST_USE enum hd_err hd_scaler_turn(struct hd_scaler *scaler, const char *policy, struct hd_diag *diag);
/* The number of workers to ask for; 0: as it is. *said: scaler->why is new. */
uint32_t hd_scaler_step(struct hd_scaler *scaler, const struct hd_scaler_now *now, bool *said);

#endif
