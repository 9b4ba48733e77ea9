/* merge.h -- one file (.hdt, trace/trace_file.h) of what all processes of a run recorded.
 *
 * 1. Slots, names and headers are as they were recorded; the windows of the clocks and an index of steps are
 *    added for other readers. What it is read back to is the timeline of its inputs.
 * 2. Its bytes do not depend on the order of the inputs, and merging it again, alone or with some of its
 *    inputs, gives the same bytes.
 *
 * 3. Its own memory is a buffer (write.h) and the text of META; slots are read twice where they lie, once for
 *    their section's hash.
 *
 * Ownership: nothing is kept; arena: scratch. Pure. */
#ifndef HD_TIMELINE_MERGE_H
#define HD_TIMELINE_MERGE_H

#include "timeline/align.h"
#include "timeline/write.h"

/* clock: of hd_tl_align(). */
HD_MUST_USE enum hd_err hd_tl_merge(struct hd_arena *arena, const struct hd_tl_lives *lives,
	const struct hd_tl_clock *clock, const struct hd_tl_sink *sink, struct hd_diag *diag);

#endif
