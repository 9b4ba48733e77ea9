/* buckets.h -- what a model's cuts say of each bucket: which stages make, update and read it.
 *
 * A bucket is the unit that workers sum, own and update: a run of chunks of the flat gradient
 * (graph/layout.h), for every plan. One may hold tensors of several stages, where a cut falls into it; its
 * masks then name them all, and so do its holders. So a worker holds at most one bucket more at each end of a
 * stage than the stage needs.
 *
 * 1. A function of layout and cuts alone: never of workers.
 * 2. `stage` is the lowest that makes any of it, which completes the gradient; `makers` are those whose
 *    passes yield partial sums of it; `readers` those whose nodes read its parameters, makers among them. A
 *    stage's bit is 1 << its number.
 *    Where stages lie over groups of devices (graph/spread.h) the stages here are substages: what is said of
 *    a stage is said of what one group runs of it.
 * 3. `whole`: every member holds all state, whatever stages it runs.
 * 4. `tensors`: of an optimizer that changes whole tensors, those that lie in several buckets; of others
 *    none. A tensor's slices (graph/slices.h) are parts of it. A function of the layout alone.
 * 5. `shadows`: of each stage there is a shadow at another worker of the pipeline (protocol/view.h, rule 10),
 *    which holds its state too. Not of whole state.
 * 6. `follows`: members without a rank follow a stage each (protocol/view.h, rule 14). Not of
 *    whole state.
 *
 * Ownership: the table lies in the arena. Pure. */
#ifndef HD_PLAN_BUCKETS_H
#define HD_PLAN_BUCKETS_H

#include "graph/layout.h"
#include "graph/slices.h"
#include "graph/spread.h"

enum { HD_STAGE_BITS = 64 };              /* bits of a mask */

struct hd_stage_bucket { uint32_t stage; uint64_t makers, readers; };
/* Tensor i lies in buckets bucket[first[i]] .. bucket[first[i + 1] - 1], ascending. */
struct hd_bucket_tensors { uint32_t n, *first, *bucket; };
struct hd_stage_buckets {
	uint32_t n, nstages;
	bool whole, shadows, follows;
	struct hd_stage_bucket *at;       /* [n] */
	/* [hd_layout_nruns()] of each run of a bucket (graph/layout.h) alone */
	uint64_t *run_makers;
	struct hd_bucket_tensors tensors;
};

/* `cuts` NULL: one stage; `spread` NULL: one group. `whole`, `shadows` and `follows` are false, and
 * there are no tensors. HD_E_INVAL: more than HD_STAGE_BITS. */
HD_MUST_USE enum hd_err hd_stage_buckets_make(struct hd_stage_buckets *buckets,
	const struct hd_layout *layout, const struct hd_graph_stages *cuts,
	const struct hd_graph_spread *spread, struct hd_arena *arena, struct hd_diag *diag);
/* `wholes`: the tensors of the layout's parameters. */
HD_MUST_USE enum hd_err hd_bucket_tensors_make(struct hd_bucket_tensors *tensors,
	const struct hd_layout *layout, const struct hd_wholes *wholes, struct hd_arena *arena,
	struct hd_diag *diag);

#endif
