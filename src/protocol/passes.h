/* passes.h -- which worker computes which virtual nodes in one step, and the partial sums that it yields.
 *
 * What a *pass* and its *roots* are, and how roots are numbered: view.h, rules 4 and 9. The passes of a step
 * follow from its view; where a worker was lost, others are added. Members, the coordinator and the
 * simulation each derive them and must find the same, so nothing here depends on more than its arguments.
 *
 * Plain values, no pointers. Pure: no clock; hd_view_received() alone allocates, and frees what it took. */
#ifndef HD_PROTOCOL_PASSES_H
#define HD_PROTOCOL_PASSES_H

#include "protocol/view.h"

enum {
	/* passes of one worker in one step; where a loss would take more, the step starts over */
	HD_MAX_PASSES = 16,
	HD_VIEW_PASSES = 256,             /* passes of all workers in one step */
	HD_VIEW_RANGES = 1024,            /* ranges of virtual nodes of all those passes */
	HD_VIEW_ROOTS = 1024,             /* roots of one worker in one step: ordinals fit 10 bits */
};

/* All passes of one step, ascending by (worker, pass); the ranges of each lie one after another. */
struct hd_pass { uint32_t worker, pass, first_range, nranges, stage; };
struct hd_passes {
	uint32_t npasses, nranges;
	uint32_t nstages;                 /* 0: one */
	struct hd_pass pass[HD_VIEW_PASSES];
	struct hd_vrange range[HD_VIEW_RANGES];
};

/* Pass 0 of each member under the view, with a shape one pass for each of its stages; none for a member
 * without virtual nodes. HD_E_NOSPACE: more than HD_VIEW_RANGES ranges, or than HD_MAX_PASSES stages of a
 * member. */
HD_MUST_USE enum hd_err hd_passes_of_view(struct hd_passes *passes, const struct hd_view *view);
/* The passes of `rest` of a step of `view` (hd_view_without()): those of the members that stayed, with their
 * numbers, and behind them one for each stage that a member inherits. Errors as above. */
HD_MUST_USE enum hd_err hd_passes_of_rest(struct hd_passes *passes, const struct hd_view *view,
	const struct hd_view *rest);
/* Inserts a pass in the order of `passes`. HD_E_NOSPACE: too many passes or ranges. */
HD_MUST_USE enum hd_err hd_passes_add(struct hd_passes *passes, uint32_t worker, uint32_t pass,
	const struct hd_vrange *range, uint32_t nranges);
HD_MUST_USE enum hd_err hd_passes_add_stage(struct hd_passes *passes, uint32_t worker, uint32_t pass,
	uint32_t stage, const struct hd_vrange *range, uint32_t nranges);
/* NULL: there is none. */
const struct hd_pass *hd_passes_find(const struct hd_passes *passes, uint32_t worker, uint32_t pass);
/* Do the passes of each stage partition 0..nvns-1? If not, *vn is one that is missing or occurs twice. */
bool hd_passes_tile(const struct hd_passes *passes, uint32_t nvns, uint32_t *vn);
/* The virtual nodes that no pass has, of passes without stages: ascending ranges. HD_E_NOSPACE. */
HD_MUST_USE enum hd_err hd_passes_missing(const struct hd_passes *passes, uint32_t nvns,
	struct hd_vrange *out, uint32_t cap, uint32_t *n);

/* Roots of ranges, which ascend and are disjoint: what hd_tree_roots() says of the set. */
HD_MUST_USE enum hd_err hd_ranges_roots(uint32_t nvns, const struct hd_vrange *range, uint32_t nranges,
	struct hd_tnode *out, uint32_t cap, uint32_t *nroots);
/* Roots of all passes of `worker` in ordinal order; first[p] is the ordinal of pass p's first root,
 * first[npasses] their number; `first` has room for HD_MAX_PASSES + 1. HD_E_NOSPACE: more than `cap`. */
HD_MUST_USE enum hd_err hd_passes_roots(const struct hd_passes *passes, uint32_t nvns, uint32_t worker,
	struct hd_tnode *out, uint32_t cap, uint32_t *first, uint32_t *npasses);

/* Bytes of receive buffers that `worker` needs in a step in which no member is lost: for each bucket that it
 * owns, one buffer for each root that another member sends of it, pieces included (graph/layout.h). `buckets`
 * NULL: one stage; `copies`, `servers`: as in plan/holding.h. 0: it is no member. HD_E_NOSPACE: more than
 * HD_VIEW_ROOTS roots; HD_E_NOMEM. */
HD_MUST_USE enum hd_err hd_view_received(const struct hd_view *view, uint32_t worker, uint32_t nvns,
	const struct hd_layout *layout, const struct hd_stage_buckets *buckets, uint32_t copies,
	uint32_t servers, uint64_t *bytes);

#endif
