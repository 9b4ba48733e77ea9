/* op_times.h -- what each op of a worker's training step costs alone: `bench op`.
 *
 * The nodes of the training program run one after the other on real rows of the step at
 * hand, in the wave that the worker has chosen; each distinct (op, shape) is repeated
 * where it stands, so that its operands are what the step would give it, and its best
 * time is kept.
 *
 * 1. Figures are those of one virtual node: a call that takes the rows of W is counted W
 *    times at 1/W of its time. What depends on parameters alone runs once a wave.
 * 2. The time of a parameter's gradient includes its folds. Of its bytes those count that must move:
 *    operands, and the sum of a wave once.
 * 3. Repeated at once (warm), an op finds its operands in the caches if they fit: the sum
 *    over a step is a bound from below of the step's time. Cold: whole passes in the order of the step, each
 *    node once a pass, so that every op finds its operands where the step leaves them; best of the passes
 *    per node, mean over the nodes of a row. With `peak` each of these runs stands between two measurements
 *    of the core's peak, and a node's share of the peak is the median of the passes: other work on the
 *    machine changes the clock within a pass, and a share of another moment's peak says nothing.
 * 4. No parameter, slot or counter changes; gradient buffers do, and the next step clears them.
 *
 * Workers of one device without lockstep only (HD_E_REFUSED). Threads: the worker's caller. */
#ifndef HD_ENGINE_OP_TIMES_H
#define HD_ENGINE_OP_TIMES_H

#include "sys/clock.h"
#include "engine/worker.h"

struct hd_op_time {
	const struct hd_call *call;       /* of one virtual node; borrowed from the worker */
	uint64_t count;                   /* in a step */
	double flops, bytes, best_s;      /* of one count; bytes as if nothing were cached */
	double peak_flops;                /* what the core's peak is in the time of one; 0: not measured */
};

/* `at` lies in the arena given; wave: W; FLOP/s of the core between the ops, 0: not measured */
struct hd_op_times { struct hd_op_time *at; uint32_t n, wave; double peak_least, peak_most; };

/* `repeat` >= 1 runs of each; cold: as many passes, and one that is not timed before them. With `path`
 * (device/peak.h), of cold passes: the peak of the core, `about` so many FLOP/s, between the ops; it and what
 * they take by `clock`. */
struct hd_op_timing { uint64_t repeat; bool cold; const char *path; double about; struct hd_clock clock; };

HD_MUST_USE enum hd_err hd_worker_op_times(struct hd_worker *worker, const struct hd_op_timing *how,
	struct hd_arena *arena, struct hd_op_times *times, struct hd_diag *diag);
/* Seconds of a step: every row as often as it counts. */
double hd_op_times_sum(const struct hd_op_times *times);

/* What the folds of device 0 would cost as passes of their own: additions of whole gradients in a step, and
 * the least time of one, of `repeat` >= 1. A bound from above: kernels that fold by themselves save some
 * of it. Gradient buffers change, as above. */
struct hd_fold_times { uint64_t nadds; double best_s; };
HD_MUST_USE enum hd_err hd_worker_fold_times(struct hd_worker *worker, uint64_t repeat,
	struct hd_fold_times *times, struct hd_diag *diag);
/* The least time of `repeat` >= 1 passes of device 0 over a whole gradient that take its squares for the norm
 * of a step. What they find is that of no step, and the next one takes its own. */
HD_MUST_USE enum hd_err hd_worker_norm_time(struct hd_worker *worker, uint64_t repeat, double *best_s,
	struct hd_diag *diag);

#endif
