/* predicted.h -- what was predicted beside what was measured, by name, primitive and size.
 *
 * Measured is an instruction's duration, of a transfer that from first to last byte: what it waited before is
 * no cost of its own. Events without a prediction are left out.
 *
 * 1. A group has one kind, name and primitive, and sizes of one power of two.
 * 2. Sorted by what the error costs, n x median of |measured - predicted|, largest first; ties by name.
 *
 * Pure. */
#ifndef HD_TIMELINE_ANALYZE_PREDICTED_H
#define HD_TIMELINE_ANALYZE_PREDICTED_H

#include "base/arena.h"
#include "timeline/timeline.h"

struct hd_tl_predicted {
	uint32_t name;
	uint8_t kind, primitive, size;    /* size: bytes are in [2^size, 2^(size + 1)); 0: of 0 as well */
	uint64_t n;
	double ratio, p10, p90;           /* of measured / predicted; ratio: the median */
	double error;                     /* mean of |measured - predicted| / measured */
	double cost_ns;                   /* rule 2 */
};

HD_MUST_USE enum hd_err hd_tl_predicted_of(const struct hd_timeline *tl, struct hd_arena *arena,
	struct hd_tl_predicted **group, size_t *ngroups, struct hd_diag *diag);

#endif
