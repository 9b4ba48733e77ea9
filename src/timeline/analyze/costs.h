/* costs.h -- what the same work costs one process and the others. Private to the analyses.
 *
 * Of the slices in a span of time. Pure. */
#ifndef HD_TIMELINE_ANALYZE_COSTS_H
#define HD_TIMELINE_ANALYZE_COSTS_H

#include "timeline/analyze/causes.h"

enum { HD_TL_SIZES = 64 };

struct hd_tl_costs {
	const struct hd_tl_causes *causes;
	struct hd_tl_span span;
	int64_t *own;                     /* [nevents] work inside the event, less waits; of the span */
	/* [nevents] of OPs: what it costs the others, the median of their means; -1: they have none alike */
	int64_t *others;
	int64_t *part;                    /* [nprocesses][HD_TL_NPARTS] sums of cuts */
	double channel;                   /* what bytes take on the others' channels / on its own; <= 1 */
	double factor[HD_TL_NPARTS];      /* of the process's own parts: the others' median / its own; <= 1 */
};

HD_MUST_USE enum hd_err hd_tl_costs_of(const struct hd_tl_causes *causes, struct hd_tl_span span,
	uint32_t process, struct hd_arena *arena, struct hd_tl_costs *costs, struct hd_diag *diag);
uint32_t hd_tl_size_of(uint64_t bytes);                  /* its power of two */
/* ns of a transfer from its first byte to its last */
int64_t hd_tl_wire_of(const struct hd_timeline *tl, uint64_t send, uint64_t recv);
/* does the SEND, by its name, carry that kind (plan/xfer.h)? */
bool hd_tl_is_xfer(const struct hd_timeline *tl, uint64_t send, uint32_t kind);
/* is `process` at one end of the transfer? */
bool hd_tl_at_end(const struct hd_timeline *tl, uint32_t process, uint64_t send, uint64_t recv);

#endif
