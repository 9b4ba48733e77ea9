/* stage_drift.h -- ranks of a pipeline that are no longer as fast as their stages were cut for.
 *
 * The loop between steps asks after every step; the answer is how fast each rank is, by which stages are cut
 * again (plans.c). Data parallel has balance/drift.h.
 *
 * 1. slow(r) is the median of what rank r computed in the steps of a window, over what the forecast says. All
 *    ranks as slow as each other is no drift: other cuts would not help.
 * 2. Ranks drift when the slowest is more than HD_STAGE_DRIFT_BOUND times as slow as the fastest. Then
 *    speed(r) is 1 / slow(r), beside the speed that the forecast counted on.
 * 3. A window is HD_STAGE_DRIFT_STEPS steps; when new cuts would have saved too little, twice as many as
 *    before, up to HD_STAGE_DRIFT_MOST.
 *
 * Arrays lie in the arena of init; nothing is taken later. Pure. */
#ifndef HD_RUN_STAGE_DRIFT_H
#define HD_RUN_STAGE_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum { HD_STAGE_DRIFT_STEPS = 16, HD_STAGE_DRIFT_MOST = 256 };
#define HD_STAGE_DRIFT_BOUND 1.15

struct hd_stage_drift {
	uint32_t nranks, window, n;               /* n: steps of the window at hand */
	const double *expected_ns;                /* [nranks] of a step; borrowed */
	double *seen_ns;                          /* [nranks][MOST] */
	double *sorted;                           /* [MOST] */
};

HD_MUST_USE enum hd_err hd_stage_drift_init(struct hd_stage_drift *drift, uint32_t nranks,
	const double *expected_ns, struct hd_arena *arena, struct hd_diag *diag);
/* After a step in which rank r computed busy_ns[r]. True: they drift, speed[nranks] is filled. */
bool hd_stage_drift_step(struct hd_stage_drift *drift, const double *busy_ns, double *speed);
void hd_stage_drift_vain(struct hd_stage_drift *drift);           /* what came of it was not taken */

#endif
