/* excess.h -- what of a process's own time is more than the same costs the others (costs.h). Private to the
 * analyses.
 *
 * Of its slices in a span of time. Pure. */
#ifndef HD_TIMELINE_ANALYZE_EXCESS_H
#define HD_TIMELINE_ANALYZE_EXCESS_H

#include "timeline/analyze/causes.h"

enum { HD_TL_PAUSE_NS = 200000000 };     /* periods of quotas are 100 ms */

/* ns: of its instructions, which may be less; of the rest that is its own; of both where it is more. */
struct hd_tl_excess {
	int64_t net, others, rest;        /* others: what these instructions take them */
	int64_t all, whole;               /* whole: and lies in stretches as of a pause */
};

/* scratch: for the call; it is reset. */
HD_MUST_USE enum hd_err hd_tl_excess_of(const struct hd_tl_causes *causes, uint32_t process,
	struct hd_tl_span span, struct hd_arena *scratch, struct hd_tl_excess *excess, struct hd_diag *diag);

#endif
