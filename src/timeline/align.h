/* align.h -- the clock of a process against the reference's, with what it can be wrong by, from probes that
 * its recording holds.
 *
 * A probe (trace/event.h, CLOCK) has stamps t1 and t4 of the process and t2, t3 of the reference. Let
 * theta(t) = reference - local at local time t. Delays are not negative, so theta(t1) <= t2 - t1 and
 * theta(t4) >= t3 - t4, whatever the two ways take. Half-planes are cut to a convex polygon.
 *
 * 1. In windows of 60 s, one each 30 s, theta(t) = a + b (t - centre) with |b| <= 1e-3. The probes of a
 *    window cut a convex polygon of (a, b). None is left: the window is halved, until it holds two probes.
 * 2. At a probe theta lies in what the polygons of all its windows allow; between two probes of one window on
 *    the chord. The estimate is the middle, its error half the width and HD_TL_RESOLUTION_NS. It is exact if
 *    drift is constant within a window: no delay is assumed. More probes never widen it.
 * 3. Two probes, one after the other, that halving has parted are a window by themselves; where no drift of
 *    1e-3 explains them a clock was set: between them the error spans both sides. Times stay in order as long
 *    as no clock was set back.
 * 4. Beyond the first and the last probe their windows go on for 60 s, then b is any within 1e-3.
 *
 * Processes of one boot have one clock: without probes that contradict it theta is that of the other.
 * Fewer than two probes, and no such other: not aligned.
 *
 * Times are ns. Doubles are relative to `offset`, so that they hold parts of one.
 * Pure; the arena has the results. */
#ifndef HD_TIMELINE_ALIGN_H
#define HD_TIMELINE_ALIGN_H

#include "timeline/lives.h"

enum { HD_TL_RESOLUTION_NS = 1, HD_TL_CORNERS = 64 };
#define HD_TL_WINDOW_NS INT64_C(60000000000)
#define HD_TL_DRIFT_MAX 1e-3

struct hd_tl_probe { int64_t t1, t4, t2, t3; };

/* theta - offset at local time t. */
struct hd_tl_knot {
	int64_t t;
	double estimate, lo, hi;
	bool loose;                       /* a step comes before the next: 3 */
};

struct hd_tl_corner { double a, b; };
struct hd_tl_window {
	int64_t from, to, centre;         /* local ns */
	uint32_t first, end;              /* its probes */
	uint32_t ncorners;
	struct hd_tl_corner *corner;      /* a: relative to the clock's offset */
};

struct hd_tl_clock {
	bool aligned;
	int64_t offset;                   /* added to local times before all else */
	struct hd_tl_knot *knot; uint32_t nknots;         /* ascending; none: theta is the offset */
	struct hd_tl_window *window; uint32_t nwindows;
	int64_t *step; uint32_t nsteps;   /* local times where a clock was set: middles of the gaps */
	int64_t error_ns;                 /* without knots */
};

/* Of probes sorted by t1, at least two, for times in [begin, end]. */
HD_MUST_USE enum hd_err hd_tl_fit(struct hd_arena *arena, const struct hd_tl_probe *probe, uint32_t n,
	int64_t begin, int64_t end, struct hd_tl_clock *clock, struct hd_diag *diag);
/* The reference's time at local time t; *error_ns (may be NULL): by how much it can be wrong. */
int64_t hd_tl_reference(const struct hd_tl_clock *clock, int64_t t, int64_t *error_ns);

/* The local time in ns of a tick of a process. */
int64_t hd_tl_local(const struct hd_flight_info *info, uint64_t tick);

/* clock[lives->n], in their order. *reference: the life whose clock it is; lives->n: none of them. */
HD_MUST_USE enum hd_err hd_tl_align(struct hd_arena *arena, const struct hd_tl_lives *lives,
	struct hd_tl_clock **clock, uint32_t *reference, struct hd_diag *diag);

#endif
