/* step_end.h -- what a step takes from its last gradient on, predicted: partial sums are joined, their
 * squares make the norm, and workers exchange what each lacks. The update is not in it: that is STEP
 * (forecast.h).
 *
 * 1. The partial sums of a stage are those that its ranks' virtual nodes leave (plan/tree.h); one less is
 *    joined, at the rate of an addition. Owners of chunks share joins and squares evenly.
 * 2. A *holder* of a stage has its sum, takes its squares and updates it: of one process all ranks together;
 *    of several workers each that runs the stage (comm.sync: stages), or all of them (`whole`).
 *    With shadows (elastic.redundancy; view.h, rule 10) so does the worker that has the nearest rank before
 *    the stage's in its pipeline, round, if that is another worker.
 * 3. Between workers an owner gets the partial sums of the others that run the stage, which own as much of it
 *    each, and gives its sum to the other holders. A byte costs both its sender and its receiver
 *    `link_ns_per_byte`: a copy and a checksum.
 * 4. The end takes what the worker takes that has most to do, its devices together; where cores are fewer, no
 *    less than the cores allow. Nothing of it overlaps with the work before: the last gradients of a pipeline
 *    are those of its last virtual node. Messages that are no bytes of a vector cost a hop, HD_STEP_HOPS of
 *    them one after another.
 * 5. Between machines a worker has one link, costs->port_bytes_per_s each way. Buckets are those of the
 *    layout, each of one owner (plan/holding.h), and what workers send of them shares links as
 *    port_exchange.h says, beside the rest of the backward pass where gradients are sent while that goes on.
 *    Where they are many, neighbours with the same owner, makers and holders count as one; as many as are
 *    left then are all in it.
 *
 * Pure; memory is the arena's. */
#ifndef HD_RUN_STEP_END_H
#define HD_RUN_STEP_END_H

#include "plan/plan.h"
#include "run/costs.h"

/* Final, summed, squared; sealed, committed, begun: each a message to the other thread or process. */
enum { HD_STEP_HOPS = 6 };
/* A tensor between workers wakes the thread that sends, the one that receives, and the rank. */
enum { HD_LETTER_HOPS = 3 };

/* Ranks over workers, in their order. */
struct hd_step_holders {
	uint32_t devices;                 /* of a worker; 0: all ranks are of one process */
	bool whole;                       /* each holds all, as with comm.sync: allreduce */
	bool shadows;                     /* each stage has one more holder: rule 2 */
	/* that update each bucket and give others its new parameters (comm.sync: sharded); 0: each holder
	 * updates. Known on links alone (rule 5). `servers`: the first so many workers are all that do; 0:
	 * any */
	uint32_t copies, servers;
};

/* How many of the workers hold each stage: copies[nstages]. */
HD_MUST_USE enum hd_err hd_step_copies(uint32_t *copies, const struct hd_plan *plan,
	const struct hd_step_holders *holders, struct hd_arena *arena, struct hd_diag *diag);

/* Of a plan whose groups are folded, with the bytes of its stages' parameters (`stages`). `cores`: that all
 * ranks share; 0: one each. */
HD_MUST_USE enum hd_err hd_step_end_time(double *took_ns, const struct hd_plan *plan,
	const struct hd_stage_costs *stages, const struct hd_run_costs *costs,
	const struct hd_step_holders *holders, uint32_t cores, struct hd_arena *arena, struct hd_diag *diag);

/* A bucket of the layout (plan/buckets.h): bits of the stages that make it and that read it; all of its
 * gradients are made at ready_ns, but for what last_ns says. */
struct hd_step_bucket { double bytes, ready_ns; uint32_t stage; uint64_t makers, readers; };

/* Rule 5: when the last byte is there, of all buckets in their order. `last_ns`: [ranks][stages] when a rank
 * has made its last gradient of a stage; NULL: no bucket waits for it. 0: none is moved. */
HD_MUST_USE enum hd_err hd_step_link_time(double *done_ns, const struct hd_plan *plan,
	const struct hd_run_costs *costs, const struct hd_step_holders *holders,
	const struct hd_step_bucket *bucket, uint32_t nbuckets, const double *last_ns, struct hd_arena *arena,
	struct hd_diag *diag);

#endif
