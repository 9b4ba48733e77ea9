/* replacement.h -- straggler replacement: feeds the steps of a run to the rules of autoscale/straggler.h.
 *
 * Only local members are compared: a remote worker may be other hardware, and none can be started there from
 * here. The gain of a replacement is the solver's answer (balance/solver.h) for the speeds that reshape.h has
 * measured.
 *
 * Plain values, no clock. Threads: one. */
#ifndef HD_DRIVER_REPLACEMENT_H
#define HD_DRIVER_REPLACEMENT_H

#include "autoscale/straggler.h"
#include "driver/reshape.h"

struct hd_replacement_now { uint64_t step, left; int64_t now_ns, detect_ns; };

/* After a committed step and hd_reshape_step(). */
void hd_replacement_step(struct hd_straggler *straggler, struct hd_reshape *reshape,
	const struct hd_view *view, const struct hd_replacement_now *now,
	struct hd_straggler_action *action);

#endif
