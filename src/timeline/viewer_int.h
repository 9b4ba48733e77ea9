/* viewer_int.h -- the parts of one timeline in a page; for viewer*.c alone. */
#ifndef HD_TIMELINE_VIEWER_INT_H
#define HD_TIMELINE_VIEWER_INT_H

#include "base/json_writer.h"
#include "timeline/analyze/path.h"
#include "timeline/viewer.h"

/* ---- which events ---- */

/* Kept events of lane l are [begin[l], begin[l] + at[l+1] - at[l]); at[] counts them over all lanes. */
struct hd_viewer_kept {
	bool all;
	uint64_t step_from, step_to;      /* not all: numbers of the steps that are whole; from > to: none */
	uint64_t *begin, *at;             /* [nlanes], [nlanes + 1] */
};
HD_MUST_USE enum hd_err hd_viewer_keep(const struct hd_viewer_trace *trace, uint64_t budget,
	struct hd_arena *arena, struct hd_viewer_kept *kept, struct hd_diag *diag);
/* HD_TL_NONE: not kept */
uint32_t hd_viewer_place(const struct hd_viewer_kept *kept, const struct hd_timeline *t, uint64_t event);

/* For each kept event the place of the other end of its transfer, HD_TL_NONE. Ends of one flow meet in order
 * of time: the k-th that is sent and the k-th that is received. */
HD_MUST_USE enum hd_err hd_viewer_pair(const struct hd_timeline *t, const struct hd_viewer_kept *kept,
	struct hd_arena *arena, uint32_t **other, struct hd_diag *diag);

/* ---- bins of time ---- */

struct hd_viewer_bin { int64_t t0, t1; uint64_t busy, count; uint8_t class; };
struct hd_viewer_bins {
	struct hd_viewer_bin *bin;
	uint64_t *at;                     /* [nlanes + 1] */
};
/* A lane's span is cut evenly; an event is of the bin that it begins in. Counters and steps are left out. */
HD_MUST_USE enum hd_err hd_viewer_bin(const struct hd_timeline *t, struct hd_arena *arena,
	struct hd_viewer_bins *bins, struct hd_diag *diag);
/* Is it drawn in its lane? */
static inline bool hd_viewer_drawn(const struct hd_tl_event *e)
{
	return e->kind != HD_EVENT_COUNTER && e->kind != HD_EVENT_STEP_BEGIN && e->kind !=
		HD_EVENT_STEP_END &&
		e->kind != HD_EVENT_CLOCK;
}

/* ---- critical paths ---- */

struct hd_viewer_segment { uint64_t step; struct hd_tl_segment s; };      /* step: its number */
struct hd_viewer_paths { struct hd_viewer_segment *segment; uint64_t n; };     /* by step, then time */
HD_MUST_USE enum hd_err hd_viewer_walk(const struct hd_timeline *t, const struct hd_viewer_kept *kept,
	struct hd_arena *arena, struct hd_viewer_paths *paths, struct hd_diag *diag);

/* ---- columns ---- */

enum { HD_VIEWER_COLUMNS = 48 };

/* Where it stands in the text of the data. */
struct hd_viewer_column {
	/* of: "event", "transfer", "bin", "path"; type "one": all are `value` */
	const char *of, *name, *type;
	double value;
	uint64_t at, len, n;
};
struct hd_viewer_columns { struct hd_viewer_column column[HD_VIEWER_COLUMNS]; uint32_t n; };

struct hd_viewer_part {
	const struct hd_viewer_trace *trace;
	struct hd_viewer_kept kept;
	struct hd_viewer_bins bins;       /* where not all are kept */
	struct hd_viewer_paths paths;
	uint32_t *other;
	uint64_t *event;                  /* of each place */
	uint32_t *transfer; uint64_t ntransfers;               /* places of SEND, RECV, READ */
	struct hd_viewer_columns columns;
};
/* The text of the data; `columns` says where each begins. */
HD_MUST_USE enum hd_err hd_viewer_put_columns(struct hd_viewer_part *part, struct hd_text *page,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
