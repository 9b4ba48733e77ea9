/* replay.h -- what if: the recorded run again, with costs that were measured or others in their place.
 *
 * Each slice of a device (causes.h) has a cost: work and idleness their duration, a wait what remains after
 * its cause. A wait for a transfer ends when that has come. What a device makes is enqueued where the device
 * then is; what is made of what others sent (sums), when that has come: the last that came within 300 us
 * before. All that a process sends goes over one line (busy.h) in the order in which it came to its end in
 * the recording: what was done first has the line first, the rest takes the gaps. The end of a step waits for
 * all that its process received in it, also for what nothing waited for in the recording. A process
 * comes to a meeting when all that it received since the one before has come; the meeting ends a constant
 * time after the last process has.
 * What nothing is known of lasts as long as it did.
 *
 * The change: a bandwidth (time on a channel divided by it), faster devices (work divided by it), waits
 * for data (multiplied), and one process whose own costs become those of the others: an instruction the
 * median of the others' means with the same
 * name and bytes; idleness, delivery and waits for nothing that was recorded, in sum, the median of the
 * others' sums; transfers from and to it, from first byte to last and in sum, what as many bytes take on the
 * other channels (by powers of two of bytes, by means). What the others do not have stays.
 *
 * 1. Unchanged it gives the recorded times, up to arrows that point backwards in time by the error of clocks
 *    and to waits that are not in order: `replayed` beside `recorded` says by how much it misses.
 * 2. Nothing is invented: what has no cause in the recording does not move by a change elsewhere.
 * 3. Which of two transfers is the more urgent says the order of their ends in the recording.
 *
 * Pure. */
#ifndef HD_TIMELINE_ANALYZE_REPLAY_H
#define HD_TIMELINE_ANALYZE_REPLAY_H

#include "timeline/analyze/causes.h"

struct hd_tl_whatif {
	double bandwidth, compute, data;  /* 1: as recorded */
	uint32_t process;                 /* becomes as the others; HD_TL_NONE: none does */
	bool work, reading, channels;     /* which of its costs: own, waits for data, transfers */
};

static inline struct hd_tl_whatif hd_tl_as_recorded(void)
{
	return (struct hd_tl_whatif){ .bandwidth = 1, .compute = 1, .data = 1, .process = HD_TL_NONE };
}

/* Committed steps numbered [first, last] of all processes that have them. */
struct hd_tl_range { uint64_t first, last; };
/* The last `most` of the steps that are there. HD_E_NOTFOUND: none is. */
HD_MUST_USE enum hd_err hd_tl_range_last(const struct hd_timeline *tl, uint64_t most, struct hd_tl_range
	*range,
	struct hd_diag *diag);

/* The last `least` steps, and as many more as take `ns`, or all that are there. HD_E_NOTFOUND: none is. */
HD_MUST_USE enum hd_err hd_tl_range_long(const struct hd_timeline *tl, uint64_t least, int64_t ns,
	struct hd_tl_range *range, struct hd_diag *diag);

/* Cut to its last stretch of steps that follow one another without a pause: each has the number after the one
 * before, and a process has both. A run that was resumed stood still in between; nothing says for what. */
void hd_tl_range_unbroken(const struct hd_tl_causes *causes, struct hd_tl_range *range);

/* Cut to its newest stretch of steps that as many processes have ended as any of it: of the last some may not
 * be there yet. How many; 0: the range has no step, and is as it was. */
uint32_t hd_tl_range_whole(const struct hd_tl_causes *causes, struct hd_tl_range *range);

/* From the first begin of its steps to their last end; t0 > t1: there is none. */
struct hd_tl_span hd_tl_range_span(const struct hd_timeline *tl, struct hd_tl_range range);

/* ns from the first begin of the range to its last end. */
struct hd_tl_replayed { int64_t recorded, replayed; };

HD_MUST_USE enum hd_err hd_tl_replay(const struct hd_tl_causes *causes, struct hd_tl_range range,
	const struct hd_tl_whatif *whatif, struct hd_arena *arena, struct hd_tl_replayed *replayed,
	struct hd_diag *diag);

#endif
