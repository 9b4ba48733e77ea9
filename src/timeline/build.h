/* build.h -- a timeline (timeline.h) out of what processes recorded.
 *
 * 1. Names of all processes are one list; bytes that are no UTF-8 become U+FFFD. An event without a name has
 *    that of its kind; a wait its reason's.
 * 2. The class of an instruction follows from its name (plan/ins.h), that of other events from their kind;
 *    virtual node and stage from hd_work_vn() and hd_work_stage().
 * 3. A step begins at its STEP_BEGIN; where that was overwritten, at the end of the step before, else with
 *    what is there. An event lies in the step that it begins in.
 * 4. In a device's lane what neither is apart nor nested goes to further lanes of the same kind and index
 *    ("dev 0 +1"), and transfers and reads to one of their own ("dev 0 transfers"). What finds no lane among
 *    HD_TL_SPILL becomes an instant with the flag OPEN.
 * 5. Times of a process that is not aligned are ns since its start.
 * 6. base_ns is the reference's time at the coordinator's start, else when the first aligned process began.
 *
 * Equal lives give an equal timeline, whatever order files came in. */
#ifndef HD_TIMELINE_BUILD_H
#define HD_TIMELINE_BUILD_H

#include "timeline/align.h"
#include "timeline/timeline.h"

enum { HD_TL_SPILL = 8 };

/* clock, reference: of hd_tl_align(). */
HD_MUST_USE enum hd_err hd_tl_build_of(struct hd_arena *arena, const struct hd_tl_lives *lives,
	const struct hd_tl_clock *clock, uint32_t reference, struct hd_timeline *timeline,
	struct hd_diag *diag);
/* The same without events (`event` is NULL) and without lanes of what overlaps: processes, steps, counts,
 * bounds, names; its memory follows from these. Lanes say how many events they would have. */
HD_MUST_USE enum hd_err hd_tl_outline_of(struct hd_arena *arena, const struct hd_tl_lives *lives,
	const struct hd_tl_clock *clock, uint32_t reference, struct hd_timeline *timeline,
	struct hd_diag *diag);

#endif
