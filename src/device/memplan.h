/* memplan.h -- where every temporary value of a program lies: decided once, before
 * the first step, so that the step loop never allocates.
 *
 * Liveness over the order of execution gives each temporary an interval; values
 * whose intervals overlap never share bytes. First fit by decreasing size (as
 * Pisarchyk and Lee, "Efficient memory management for deep neural net inference",
 * 2020, "greedy by size"); ties by value id, so that the plan is a function of the
 * graph alone. Views (reshape) share the bytes of what they view.
 *
 * 1. Offsets are multiples of 64 bytes; the caller says how many bytes each value has.
 * 2. An output of the graph, and moments of running statistics, live to the end of the order.
 * 3. The plan holds for the order given and for the same nodes sorted by phase (all F,
 *    all I, all W): values share bytes only if their lives are apart in both. So the
 *    backward pass may run as one list or as two, at the price of keeping what weight
 *    gradients read.
 * 4. Where several devices run the nodes of an order, each its own (graph/tensor.h), each device has a clock
 *    that counts its nodes. Two values may share bytes only if the node that makes the one begins, by the
 *    clock of its device, after all that read and make the other are done.
 * 5. Pure: equal arguments give equal plans on every machine. */
#ifndef HD_DEVICE_MEMPLAN_H
#define HD_DEVICE_MEMPLAN_H

#include "graph/ir.h"

struct hd_memplan {
	uint64_t *at;                     /* [nvalues] offset in the arena; UINT64_MAX: not a temporary */
	uint64_t  len_bytes;              /* of the arena */
	uint64_t  live_peak_bytes;        /* lower bound of any plan: for reports */
};

/* `order` are node indices, in order of execution (all of F, then B; or F only for evaluation); `bytes`
 * [nvalues]. */
HD_MUST_USE enum hd_err hd_memplan_make(struct hd_memplan *plan, const struct hd_graph *graph,
	const uint32_t *order, uint32_t norder, const uint64_t *bytes, struct hd_arena *arena,
	struct hd_diag *diag);

/* Rule 4, for the order given and for the same nodes sorted by phase. */
struct hd_memplan_clocks {
	uint32_t t;                       /* devices */
	const uint8_t *device;            /* [nnodes] which one runs it */
	const uint32_t *clock[2];         /* [norder] nodes that its device has begun before */
	const uint32_t *until[2];         /* [norder][t] those of a device that may begin before it is done */
};

HD_MUST_USE enum hd_err hd_memplan_make_tensor(struct hd_memplan *plan, const struct hd_graph *graph,
	const uint32_t *order, uint32_t norder, const uint64_t *bytes, const struct hd_memplan_clocks *clocks,
	struct hd_arena *arena, struct hd_diag *diag);

/* Checks rule "overlapping lives, disjoint bytes" by brute force; tests and debug builds. */
HD_MUST_USE enum hd_err hd_memplan_verify(const struct hd_memplan *plan, const struct hd_graph *graph,
	const uint32_t *order, uint32_t norder, const uint64_t *bytes, struct hd_diag *diag);

#endif
