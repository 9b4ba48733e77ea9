/* summary.h -- all analyses of a recording's last steps, and in one sentence what held them back.
 *
 * 1. Sums are over the committed steps of `range` and the devices of a process; the parts of a process add up
 *    to its steps' times.
 * 2. What is not aligned is listed, and judged by itself alone; what was lost is counted.
 * 3. The sentence is empty where nothing holds more than HD_TL_HELD_PERCENT of the time.
 *
 * Pure. */
#ifndef HD_TIMELINE_ANALYZE_SUMMARY_H
#define HD_TIMELINE_ANALYZE_SUMMARY_H

#include "timeline/analyze/breakdown.h"
#include "timeline/analyze/order.h"
#include "timeline/analyze/path.h"
#include "timeline/analyze/predicted.h"
#include "timeline/analyze/replay.h"
#include "timeline/analyze/straggler.h"

enum { HD_TL_HELD_PERCENT = 5, HD_TL_HELD_BYTES = 256, HD_TL_SUMMARY_STEPS = 100 };

struct hd_tl_process_sum {
	uint32_t nsteps, ndevices;
	struct hd_tl_breakdown sum;       /* of all its steps and devices; ratios of the sums */
	int64_t path[HD_TL_NPARTS];       /* on critical paths */
	int64_t blame[HD_TL_NPARTS];      /* its part in the times of all devices */
	int64_t redone;                   /* ns of instructions run again, while these steps ran */
};

struct hd_tl_summary {
	const struct hd_timeline *tl;
	struct hd_tl_range range; uint32_t nsteps;               /* of which there is a critical path */
	struct hd_tl_process_sum *process;                       /* [nprocesses] */
	int64_t part[HD_TL_NPARTS], time; /* of all devices */
	int64_t path;                     /* of all critical paths */
	struct hd_tl_stragglers stragglers;
	struct hd_tl_predicted *predicted; size_t npredicted;
	struct hd_tl_orders orders;
	struct hd_tl_replayed replayed;   /* unchanged */
	uint64_t nwaits, nunmatched;      /* for transfers; of these without a cause */
	uint32_t nunaligned;
};

/* most: of the newest steps. scratch is reset. HD_E_NOTFOUND: no step of the recording ended. */
HD_MUST_USE enum hd_err hd_tl_summary_of(const struct hd_timeline *tl, uint64_t most, struct hd_arena *arena,
	struct hd_arena *scratch, struct hd_tl_summary *summary, struct hd_diag *diag);

/* Without a full stop or line feed. */
void hd_tl_held(const struct hd_tl_summary *summary, char text[HD_TL_HELD_BYTES]);

#endif
