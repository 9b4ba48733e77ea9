/* pack.h -- sub-lanes: events of one lane that overlap, on lines where none does.
 *
 * First fit in the order of the lane (begin, then longer first): the first line whose last end is at or
 * before the event's begin. So the lines are as few as the most that overlap at once.
 *
 * 1. On a line events are disjoint. Instants stay on line 0: they last nothing.
 * 2. A device's lane is nested by its maker (timeline.h, 3): all of it is line 0.
 *
 * 3. Time and memory grow with events times the logarithm of lines, however many overlap.
 *
 * Pure. */
#ifndef HD_TIMELINE_PACK_H
#define HD_TIMELINE_PACK_H

#include "base/arena.h"
#include "base/err.h"
#include "timeline/timeline.h"

struct hd_tl_lines {
	uint32_t *line, nlines;           /* [events of the lane]; nlines >= 1 */
	/* events of the lane by line: those of line l are event[begin[l]] to event[begin[l + 1]], from the
	 * lane's first */
	uint64_t *begin, *event;
	uint64_t nlooked;                 /* ends that were compared */
};

HD_MUST_USE enum hd_err hd_tl_pack(const struct hd_timeline *timeline, uint32_t lane,
	struct hd_tl_lines *lines, struct hd_arena *arena, struct hd_diag *diag);

#endif
