/* align_int.h -- the probes that a recording holds. Private to the room. */
#ifndef HD_TIMELINE_ALIGN_INT_H
#define HD_TIMELINE_ALIGN_INT_H

#include "timeline/align.h"

/* Sorted by t1; begin, end: local times of all that was recorded. */
struct tl_probes { struct hd_tl_probe *at; uint32_t n; int64_t begin, end; };
/* other: of the process at the other end, whose clock t2 and t3 are of. */
HD_MUST_USE enum hd_err hd_tl_probes_of(struct hd_arena *arena, const struct hd_tl_life *life,
	const struct hd_flight_info *other, struct tl_probes *probes, struct hd_diag *diag);

/* What bounds theta on one side alone has the other stamp so far off (tighten.h): it cuts, and is no knot. */
#define HD_TL_ONE_SIDE INT64_C(1000000000000000)
static inline bool hd_tl_one_sided(const struct hd_tl_probe *p) { return p->t2 - p->t3 >= HD_TL_ONE_SIDE; }

#endif
