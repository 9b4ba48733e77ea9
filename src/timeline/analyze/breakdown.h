/* breakdown.h -- what a step's time went into, on one device.
 *
 *	m      of the step (hd_tl_step_span())            C  union of its instructions, less waits inside them
 *	U, L   |C| + |N| ; max(|C|, |N|)                  N  union of its process's transfers, first byte to
 *  end
 *	E      (U - m) / (U - L): 1 all hidden, 0 nothing, below 0 idle beyond that. Never clamped
 *	S      (U - L) / L: the most that overlap can gain
 *	alpha  |N| / |C|: gains of an order of transfers peak near 1
 *
 * 1. The parts (causes.h) add up to m exactly.
 * 2. exposed + hidden = |N|; rest = m - |N u C|.
 * 3. What cannot be said is NaN: E where U - L is below 1 % of U, S where L is 0, alpha where |C| is 0.
 *
 * Pure. */
#ifndef HD_TIMELINE_ANALYZE_BREAKDOWN_H
#define HD_TIMELINE_ANALYZE_BREAKDOWN_H

#include "timeline/analyze/causes.h"

struct hd_tl_breakdown {
	int64_t m, part[HD_TL_NPARTS];    /* ns */
	int64_t compute, transfer;        /* |C|, |N| */
	int64_t exposed, hidden, rest;
	int64_t u, l;
	double e, s, alpha;
};

/* The arena is for the call: reset it between calls. */
HD_MUST_USE enum hd_err hd_tl_breakdown_of(const struct hd_tl_causes *causes, uint32_t step, uint32_t lane,
	struct hd_arena *arena, struct hd_tl_breakdown *breakdown, struct hd_diag *diag);

#endif
