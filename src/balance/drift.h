/* drift.h -- devices that are no longer as fast as their profile says, and when that calls for a new map.
 *
 * Input of every step: each device's time for a virtual node, and the step's time. Output: keep the map or
 * make a new one. A new map moves no state (every virtual node can run anywhere), so a change costs nothing
 * unless it is wrong.
 *
 * 1. slow(d) = measured / profile, an EWMA with 0.1 that starts at the first value. A device drifts when it
 *    differs by more than 5 % from what the map in use was made for, 16 steps long.
 * 2. Then the solver is asked with every device's times multiplied by slow(d). The same counts, or computing
 *    that is not 1 % shorter than with those in use: the map stays.
 * 3. After a change 8 steps are measured. Their median slower than that of the 8 before by more than 2 %:
 *    back to the old counts, and that set of devices is not tried again until the slow() of one of the
 *    devices has changed by more than 10 %.
 * 4. Every judged change adds |measured - predicted| / predicted to the errors that the solver's margin is
 *    made of (solver.h, rule 6).
 * 5. A device without virtual nodes is not measured, so it is tried: after 100 steps without any (after a
 *    trial in vain twice as many as before it, up to 1600) it gets one of the device that has most. 8 steps
 *    later the solver is asked with what it took: a map that computes 1 % shorter than the one before the
 *    trial, or back to that one.
 * 6. Every answer has its reason, with numbers; STAY has one if the solver was asked in vain, or a change was
 *    judged, else "". That the solver has the map in use is said once of each map: devices of some
 *    milliseconds drift all the time.
 *
 * Arrays lie in the arena of init; decide() takes scratch and plans from the arena it is given. Pure. */
#ifndef HD_BALANCE_DRIFT_H
#define HD_BALANCE_DRIFT_H

#include "balance/solver.h"

enum { HD_DRIFT_SETS = 4, HD_DRIFT_WHY = 320 };

enum hd_drift_act { HD_DRIFT_STAY, HD_DRIFT_CHANGE, HD_DRIFT_BACK, HD_DRIFT_TRY };

struct hd_drift_answer {
	enum hd_drift_act act;
	const uint32_t *count;                    /* [ndevices] of all but STAY */
	int64_t predicted_ps;                     /* of CHANGE; of BACK what was measured before; of TRY 0 */
	uint32_t device;                          /* of TRY */
	/* the last change: it took measured_ps a step, judged_ps had been predicted */
	bool judged;
	int64_t measured_ps, judged_ps;
	char why[HD_DRIFT_WHY];
};

/* steps without virtual nodes; until it is tried */
struct hd_drift_device { double slow, made_for; uint32_t nsamples, off, idle, rest; };

/* [ndevices] that were tried and given up */
struct hd_drift_set { uint8_t *used; double *slow; bool taken; };

struct hd_drift {
	/* borrowed: profile, devices, links; `now` and errors are kept here */
	const struct hd_solve_ask *ask;
	struct hd_drift_device *device;           /* [ndevices] */
	uint32_t *count, *before;                 /* [ndevices] in use; before the last change or trial */
	struct hd_drift_set set[HD_DRIFT_SETS]; uint32_t nsets;
	int64_t last_ps[8]; uint32_t nlast;       /* the last steps, a ring */
	bool judging, trying; uint32_t tried;     /* a device */
	/* median of the 8 steps before the change or trial; what it was to bring */
	int64_t before_ps, predicted_ps;
	uint32_t error_ppm[HD_SOLVE_ERRORS], nerrors;
	bool said_same;                           /* that the solver has the map in use */
};

HD_MUST_USE enum hd_err hd_drift_init(struct hd_drift *drift, const struct hd_solve_ask *ask,
	const uint32_t *count, struct hd_arena *arena,
	struct hd_diag *diag);
/* vn_ps[d]: of one virtual node on device d, 0 if it ran none. */
void hd_drift_on_step(struct hd_drift *drift, const int64_t *vn_ps, int64_t step_ps);
HD_MUST_USE enum hd_err hd_drift_decide(struct hd_drift *drift, struct hd_drift_answer *answer,
	struct hd_arena *arena, struct hd_diag *diag);
/* The map with these counts is in use from the next step on; an answer that is not adopted has no effect. */
void hd_drift_adopt(struct hd_drift *drift, const struct hd_drift_answer *answer);

#endif
