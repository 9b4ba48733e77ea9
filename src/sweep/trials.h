/* trials.h -- the state machine of a sweep: what came of trials in, which are to run how far out.
 *
 *	hd_trials_begin(&t, ...);
 *	for each trial that is RUNNING: bring it to rung[target]; then, once,
 *	hd_trials_take(&t, &event, diag);          which may set others RUNNING
 *
 * 1. A rung is a number of steps. A trial that has reported at a rung waits there (PAUSED) until it is to go
 *    on (RUNNING), never will (STOPPED), or was at the last one (DONE).
 * 2. Synchronous halving: when no trial runs any more, the best of those that reported at the highest rung go
 *    on: of n at first n / eta, then that / eta, ..., at least one each. Failed ones count as trials of their
 *    rung and never go on. What follows depends on what came, not on its order.
 * 3. ASHA (L. Li and others, "A system for massively parallel hyperparameter tuning", MLSys 2020): while
 *    fewer than `parallel` run, one that is among the best 1/eta of all that reported at its rung goes on,
 *    from the highest rung down; else a new trial begins. Depends on the order of what came, and on that
 *    alone.
 * 4. Better is the less (or greater) metric; of equals the lower number; what is not a number is worse than
 *    all.
 * 5. The machine has ended when no trial runs; nothing is PAUSED or WAITING then.
 *
 * Pure, a plain value. */
#ifndef HD_SWEEP_TRIALS_H
#define HD_SWEEP_TRIALS_H

#include "sweep/sweep.h"

enum { HD_TRIAL_WHY = 200, HD_TRIAL_DIGEST = 40 };

/* Stored in no file: what came is (record.h).
 *        id        name        what holds */
#define HD_TRIAL_STATES(X)                                                        \
	X(WAITING,  "waiting")    /* has not begun */                             \
	X(RUNNING,  "running")    /* is to be brought to its target */            \
	X(PAUSED,   "paused")     /* reported at a rung, and may go on */         \
	X(STOPPED,  "stopped")    /* reported at a rung, and others were better */ \
	X(DONE,     "done")       /* reported at the last rung */                 \
	X(FAILED,   "failed")

enum hd_trial_state {
#define X(id, name) HD_TRIAL_##id,
	HD_TRIAL_STATES(X)
#undef X
	HD_TRIAL_NSTATES
};

struct hd_trial {
	enum hd_trial_state state;
	uint32_t reached, target;         /* rungs that it reported at; RUNNING: the rung, from 0 */
	uint64_t step;                    /* as far as it came */
	double metric[HD_SWEEP_RUNGS];    /* [reached] */
	char digest[HD_TRIAL_DIGEST], why[HD_TRIAL_WHY];
	int exit;                         /* of one that failed */
};

struct hd_trials {
	enum hd_sweep_method method;
	bool max;
	uint32_t ntrials, nrungs, eta, parallel, nrunning;
	uint64_t rung[HD_SWEEP_RUNGS];
	struct hd_trial trial[HD_SWEEP_TRIALS];
};

/* failed false: it has `step` steps, those of the rung, and the metric. */
struct hd_trial_event {
	uint32_t trial, rung;
	bool failed;
	uint64_t step;
	double metric;
	int exit;
	const char *digest, *why;
};

void hd_trials_begin(struct hd_trials *t, const struct hd_sweep *sweep, const uint64_t *rung, uint32_t nrungs,
	uint32_t parallel);
/* HD_E_INTEGRITY: that trial is not on its way to that rung; nothing was changed. */
HD_MUST_USE enum hd_err hd_trials_take(struct hd_trials *t, const struct hd_trial_event *event,
	struct hd_diag *diag);
bool hd_trials_is_over(const struct hd_trials *t);
/* The best of those that came furthest; UINT32_MAX: none has reported. */
uint32_t hd_trials_best(const struct hd_trials *t);
uint64_t hd_trials_steps(const struct hd_trials *t);      /* of all, together */
bool hd_trials_better(const struct hd_trials *t, uint32_t a, uint32_t b, uint32_t rung);
const char *hd_trial_state_name(enum hd_trial_state state);

#endif
