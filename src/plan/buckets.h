/* buckets.h -- the bucket table: which part of the flat gradient each bucket is, and which stages make,
 * update and read it.
 *
 * A bucket is the unit that workers sum, own and update. A model of one stage has those of its layout
 * (graph/layout.h). Cut into stages, a bucket of the layout is split wherever what its segments say of stages
 * changes: a chunk may hold tensors of several stages, a segment is of one.
 *
 * 1. A function of layout and cuts alone: never of workers.
 * 2. Buckets tile the segments, in order. Each lies in one bucket of the layout, so none has more than
 *    HD_BUCKET_BYTES, and two tables of one layout have common parts that are runs of segments.
 * 3. One stage, or no cuts: exactly the layout's buckets.
 * 4. `stage` is the lowest maker, which completes the gradient; `makers` are those whose passes yield
 *    partial sums of it; `readers` those whose nodes read its parameters, `stage` among them. A stage's bit
 *    is 1 << its number.
 *
 * Ownership: the table lies in the arena. Pure. */
#ifndef HD_PLAN_BUCKETS_H
#define HD_PLAN_BUCKETS_H

#include "graph/layout.h"
#include "graph/stages.h"

enum { HD_STAGE_BITS = 64 };              /* bits of a mask */

struct hd_stage_bucket {
	uint64_t at, len;                 /* elements of the flat vector, pads included */
	uint32_t first_segment, nsegments;
	uint32_t of;                      /* the bucket of the layout in which it lies */
	uint32_t stage;
	uint64_t makers, readers;
};

struct hd_stage_buckets { uint32_t n, nstages; struct hd_stage_bucket *at; };

/* `cuts` NULL: one stage. HD_E_INVAL: more than HD_STAGE_BITS. */
HD_MUST_USE enum hd_err hd_stage_buckets_make(struct hd_stage_buckets *buckets,
	const struct hd_layout *layout,
	const struct hd_graph_stages *cuts, struct hd_arena *arena, struct hd_diag *diag);

#endif
