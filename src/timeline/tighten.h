/* tighten.h -- clocks that transfers bound, too: what was received had been sent.
 *
 * For a transfer from i to j theta_j(received) + received >= theta_i(sent) + sent. With what is known of the
 * one clock this is a half-plane of the other, as a probe's side is (align.h).
 *
 * 1. Bounds: each process is fitted again with the half-planes that its transfers give by the bounds of
 *    others, HD_TL_TIGHTEN_ROUNDS times. No latency is assumed, so they hold as the probes' do.
 * 2. Estimates: corrections at the knots, by difference constraints of all transfers (shortest paths by
 *    relaxation, after Bellman and Ford), the middle of what is possible. Then no receive is before its send.
 * 3. Where transfers contradict the probes a drift was not constant: that process, or those knots, keep what
 *    they had, and are counted.
 * 4. Untouched: the reference, processes of its boot, those that are not aligned or have another's clock.
 *
 * Pure; the arena has the results. */
#ifndef HD_TIMELINE_TIGHTEN_H
#define HD_TIMELINE_TIGHTEN_H

#include "timeline/align.h"

enum { HD_TL_TIGHTEN_ROUNDS = 2 };

/* clock: of hd_tl_align(), changed in place. *nkept: processes and knots of rule 3. */
HD_MUST_USE enum hd_err hd_tl_tighten(struct hd_arena *arena, const struct hd_tl_lives *lives,
	struct hd_tl_clock *clock, uint32_t *nkept, struct hd_diag *diag);

#endif
