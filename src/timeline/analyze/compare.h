/* compare.h -- what became slower or faster from one recording to another, by name.
 *
 * Of each name: the median of its durations in both (instructions and reads from begin to end, transfers from
 * the first byte on), with the interval between two order statistics that holds the median with 95 %. A
 * change is reported where the intervals are disjoint and the medians differ by more than 3 %.
 *
 * 1. No distribution is assumed. A name that is there fewer than 6 times has no interval, and no change.
 * 2. Sorted by n x |change|, largest first; ties by name.
 * 3. The same recording twice has no change.
 *
 * Pure. */
#ifndef HD_TIMELINE_ANALYZE_COMPARE_H
#define HD_TIMELINE_ANALYZE_COMPARE_H

#include "base/arena.h"
#include "timeline/timeline.h"

enum { HD_TL_CHANGE_PERCENT = 3, HD_TL_MEDIAN_LEAST = 6 };

struct hd_tl_median { uint64_t n; int64_t ns, low, high; };
struct hd_tl_change {
	const char *name;
	uint8_t kind;                     /* enum hd_event_kind */
	struct hd_tl_median before, after;
	bool slower;
};

/* Of n sorted values: 0-based ranks [low, high] that hold the median with 95 %. False: n is too small. */
bool hd_tl_median_ranks(uint64_t n, uint64_t *low, uint64_t *high);

HD_MUST_USE enum hd_err hd_tl_compare(const struct hd_timeline *before, const struct hd_timeline *after,
	struct hd_arena *arena, struct hd_tl_change **change, size_t *nchanges, struct hd_diag *diag);

#endif
