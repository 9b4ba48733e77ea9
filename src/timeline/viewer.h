/* viewer.h -- timelines as one file of HTML that shows them.
 *
 * `heddle trace open` and `heddle trace merge -o FILE.html` write it. It opens from file://, without a
 * network: its policy is `default-src 'none'` with the hashes of its own script and style (src/timeline/page,
 * put into the program when it is built).
 *
 * 1. Events stand in columns, each a typed array in base64 of the least width that holds it: u8, u16, u32,
 *    else f64; a column of one value is that value. Texts stand in one JSON value. Neither is ever script.
 * 2. Up to HD_VIEWER_EVENTS events are all there. Of more, each timeline has those of its chosen steps, and
 *    of everything bins of time: begin, end, dominant class, count, busy time. The page says so.
 * 3. Critical paths (analyze/path.h) of the steps that are there come along, from the first on up to
 *    HD_VIEWER_SEGMENTS segments.
 * 4. Two timelines stand on one axis, the begin of a step of each at zero: a plan above its run.
 * 5. Equal arguments give equal bytes.
 *
 * Source of the bins: min/max pyramids of time series as viewers of traces keep them (spec of timed execution
 * 3.1). Ownership: the text is the caller's. Pure. */
#ifndef HD_TIMELINE_VIEWER_H
#define HD_TIMELINE_VIEWER_H

#include "base/text.h"
#include "timeline/write.h"

enum { HD_VIEWER_EVENTS = 1000000, HD_VIEWER_TIMELINES = 2,
       HD_VIEWER_BINS = 131072, HD_VIEWER_LANE_BINS = 16384,       /* of a timeline; of one lane */
       HD_VIEWER_SEGMENTS = 200000 };

struct hd_viewer_trace {
	const struct hd_timeline *timeline;
	const char *title;
	/* numbers of the steps to keep where not all fit: from the first on as many as fit; from > to: the
	 * last ones */
	uint64_t step_from, step_to;
};

/* n: 1 to HD_VIEWER_TIMELINES. HD_E_NOMEM: also where the text could not grow. */
HD_MUST_USE enum hd_err hd_viewer_write(const struct hd_viewer_trace *trace, uint32_t n, const char *title,
	struct hd_text *page, struct hd_diag *diag);

/* One timeline, as the writers of other formats do (write.h): titled by its job; the last steps where not all
 * fit. */
HD_MUST_USE enum hd_err hd_tl_write_html(const struct hd_timeline *timeline, const struct hd_tl_sink *sink,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
