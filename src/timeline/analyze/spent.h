/* spent.h -- what each kind of instruction took each process in recorded steps: costs for a replay under
 * another plan.
 *
 * 1. A kind is an op (plan/ins.h) of a stage. Its time is the work inside its events (causes.h): waits, and
 *    what else is inside them, are not in it. Of several virtual nodes in one call one event has the time of
 *    all, and each counts.
 *    "forward ahead" and "update ahead" are of F and STEP.
 * 2. Steps that are committed count, of numbers in the range.
 * 3. `rate` of a link is the median of what activations and gradients of at least HD_TL_SPENT_BYTES took from
 *    their first byte to their last.
 *
 * Pure. */
#ifndef HD_TIMELINE_ANALYZE_SPENT_H
#define HD_TIMELINE_ANALYZE_SPENT_H

#include "timeline/analyze/replay.h"

enum { HD_TL_SPENT_BYTES = 4096 };

struct hd_tl_spent { uint8_t op; uint32_t stage, process; uint64_t n; double ns; };    /* ns: of all n */

struct hd_tl_spents {
	struct hd_tl_spent *at; uint32_t n;       /* by op, stage, process */
	uint32_t nprocesses;                      /* that computed */
	uint64_t nsteps;                          /* rows of steps over these processes */
	double step_ns;                           /* from the first begin to the last end, over all numbers */
	double rate;                              /* bytes a ns; 0: nothing of that size was sent */
};

/* *range is cut (hd_tl_range_whole()). HD_E_NOTFOUND: no step of it ended. */
HD_MUST_USE enum hd_err hd_tl_spent_of(const struct hd_tl_causes *causes, struct hd_tl_range *range,
	struct hd_arena *arena, struct hd_tl_spents *spents, struct hd_diag *diag);

#endif
