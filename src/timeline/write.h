/* write.h -- a timeline in formats that other programs read.
 *
 *	format    suffix    what it is for
 *	perfetto  .pftrace  ui.perfetto.dev, trace_processor (perfetto.c has the fields)
 *	chrome    .json     whatever reads Chrome's trace events: Kineto's fields, speedscope (chrome.c)
 *	ndjson    .ndjson   scripts: one object a step (steps.c)
 *
 * 1. Writers are pure: they read the value and give bytes to a sink, in pieces of at most HD_TL_PIECE bytes.
 *    Their own memory follows from lanes and names, never from events, but for sub-lanes (4 bytes an event of
 *    the lane at hand).
 * 2. In one line of any of them slices are disjoint or strictly nested, and times do not go back: what
 *    overlaps lies on sub-lanes (pack.h).
 * 3. Names are data: whatever bytes they hold, the file stays well formed; what is not UTF-8 becomes U+FFFD.
 * 4. A sink that fails is not called again; its error is the writer's.
 * 5. Processes that are not aligned are named so; what was lost is counted in the file.
 *
 * Ownership: nothing is kept. Threads: pure. */
#ifndef HD_TIMELINE_WRITE_H
#define HD_TIMELINE_WRITE_H

#include "base/arena.h"
#include "base/err.h"
#include "timeline/timeline.h"

enum { HD_TL_PIECE = 1 << 16 };

struct hd_tl_sink {
	enum hd_err (*put)(void *self, const void *bytes, size_t len, struct hd_diag *diag);
	void *self;
};

/* arena: scratch, not given back. */
typedef enum hd_err hd_tl_writer(const struct hd_timeline *timeline, const struct hd_tl_sink *sink,
	struct hd_arena *arena, struct hd_diag *diag);

HD_MUST_USE enum hd_err hd_tl_write_perfetto(const struct hd_timeline *timeline,
	const struct hd_tl_sink *sink, struct hd_arena *arena, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_tl_write_chrome(const struct hd_timeline *timeline, const struct hd_tl_sink *sink,
	struct hd_arena *arena, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_tl_write_steps(const struct hd_timeline *timeline, const struct hd_tl_sink *sink,
	struct hd_arena *arena, struct hd_diag *diag);

/* One process as HolisticTraceAnalysis reads it ("rank-N.json"): integer microseconds, kernels on streams.
 * Its reader wants ranks from 0 on: the caller numbers the processes that it takes. */
struct hd_tl_rank { uint32_t process, rank, nranks; };
HD_MUST_USE enum hd_err hd_tl_write_hta(const struct hd_timeline *timeline, struct hd_tl_rank rank,
	const struct hd_tl_sink *sink, struct hd_arena *arena, struct hd_diag *diag);

#endif
