/* path.h -- the critical path of a step, and what of its waits is the doing of which process.
 *
 * *Path*: from the end of the step at the process that ended it last, back in time: through the device's
 * slices while it works or stands still for itself; through the transfer that ended a wait to the device that
 * sent it; through a meeting to the device that came last. It ends at the step's begin at the process where
 * it started.
 *
 * *Blame*: a device's time, where what is peer late moves to the sender and is split there by what the sender
 * did then, recursively (depth HD_TL_BLAME_DEPTH; a lane is not entered twice on one way).
 *
 * 1. Segments ascend without gaps and add up to the step.
 * 2. Time on a channel (order, queue, wire) is the sender's; the receiver is `peer`.
 * 3. Blame keeps sums: what is given out is what came in.
 *
 * Pure. */
#ifndef HD_TIMELINE_ANALYZE_PATH_H
#define HD_TIMELINE_ANALYZE_PATH_H

#include "timeline/analyze/causes.h"

enum { HD_TL_BLAME_DEPTH = 64 };

struct hd_tl_segment {
	int64_t t0, t1;
	uint64_t event;                   /* the instruction, wait or RECV; HD_TL_NO_EVENT: idle */
	uint32_t process;
	uint32_t peer;                    /* of time on a channel: the receiver; else HD_TL_NONE */
	uint32_t lane;
	enum hd_tl_part part;             /* never PEER_LATE */
};

struct hd_tl_path { struct hd_tl_segment *segment; size_t n; uint32_t step; };

/* Step number `number` of those rows that are committed. HD_E_NOTFOUND: no process ended it. */
HD_MUST_USE enum hd_err hd_tl_path_of(const struct hd_tl_causes *causes, uint64_t number,
	struct hd_arena *arena, struct hd_tl_path *path, struct hd_diag *diag);

/* ns[process * HD_TL_NPARTS + part] grows by the span of the lane. */
HD_MUST_USE enum hd_err hd_tl_blame(const struct hd_tl_causes *causes, uint32_t lane, struct hd_tl_span span,
	int64_t *ns, struct hd_arena *arena, struct hd_diag *diag);

/* What part of its time the devices of the other processes waited for what this one computed, by blame.
 * scratch: for the call; it is reset. */
HD_MUST_USE enum hd_err hd_tl_waited_for(const struct hd_tl_causes *causes, uint32_t process,
	struct hd_tl_span span, struct hd_arena *scratch, double *part, struct hd_diag *diag);

#endif
