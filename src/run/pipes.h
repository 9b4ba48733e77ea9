/* pipes.h -- how the stages of a job's pipeline lie over workers: the shape of every view of the run, the
 * cuts, and the plan of a view.
 *
 * Coordinator and members derive it from the job alone, so that all agree without a message.
 *
 * 1. A pipeline has `width` ranks, adjacent in the order of the view, whichever workers have them; how many
 *    pipelines there are follows from the ranks that are there (protocol/view.h).
 * 2. The width is the job's where its keys say it (parallel.stages over parallel.chunks). Else it is settled
 *    when a run starts or is resumed, by the devices it starts with, and kept in the run as parallel.width:
 *    until then hd_pipes_make() takes it from there.
 * 3. What parallel.mode: auto chose is kept as parallel.settled, and goes before the keys (pipes_choose.h).
 *    Where that, or a view's shape, names no nodes, cuts balance the FLOPs. No bit of the result depends on
 *    any of it.
 * 4. With comm.sync: allreduce all workers hold all parameters and slots (`whole` in plan/buckets.h), and of
 *    activations and gradients those of their stages alone; with comm.sync: stages all is by stage. Of
 *    delayed updates earlier versions lie with the parameters, and each step is drained.
 * 5. A rank is t devices of one worker (parallel.tensor), which share the model's shards; a worker has as
 *    many ranks as its devices make, and what is left over computes nothing. t is the job's, as the width:
 *    settled with it, kept with it, and the same until the run ends.
 *
 * Pure but for hd_pipes_keep(), which writes the run's job. */
#ifndef HD_RUN_PIPES_H
#define HD_RUN_PIPES_H

#include "protocol/view.h"
#include "engine/dist.h"
#include "engine/task.h"
#include "run/rundir.h"
#include "run/stages.h"

/* Buckets whose state a worker requests at a time, of those that it lacks. */
enum { HD_PIPES_FETCHED = 4 };

struct hd_pipes {
	struct hd_run_stages stages;      /* of one pipeline; p 0: the job asks for none, and all else is 0 */
	struct hd_view_shape shape;
	uint32_t most;                    /* pipelines at most */
	struct hd_stage_buckets buckets;
	uint64_t *bytes;                  /* [buckets.n] of the parameters and slots of each */
};

/* In the arena. HD_E_INVAL: the keys do not go together, or leave the width open (rule 2). */
HD_MUST_USE enum hd_err hd_pipes_make(struct hd_pipes *pipes, const struct hd_task *task,
	struct hd_arena *arena, struct hd_diag *diag);
/* Of a shape, whatever the job's keys ask for. HD_E_INVAL: the job cannot have it. */
HD_MUST_USE enum hd_err hd_pipes_of_shape(struct hd_pipes *pipes, const struct hd_task *task,
	const struct hd_view_shape *shape, struct hd_arena *arena, struct hd_diag *diag);
/* The shape as a value of the job, text in the arena. HD_E_NOMEM. */
HD_MUST_USE enum hd_err hd_pipes_settled(struct hd_job_value *value, const struct hd_view_shape *shape,
	struct hd_arena *arena, struct hd_diag *diag);
/* May steps run under the view? A job of stages holds in one that has no shape, for want of devices. */
static inline bool hd_pipes_step(const struct hd_pipes *pipes, const struct hd_view *view)
{
	return !pipes->shape.nstages || view->shape.nstages;
}
/* The view that a run of `n` workers of `ndevices` each starts with. False: it has no shape, for want of
 * stages or of devices, and each device computes the whole model. */
bool hd_pipes_view(struct hd_view *view, const struct hd_pipes *pipes, uint32_t n, uint32_t ndevices,
	uint32_t nvns);
/* What the members of a view do in a step; `pipes` NULL, or a view without shape: each device computes the
 * whole model. Ranks are those of the view; the owner of a chunk is a device of the member that owns its
 * bucket, even over its devices. */
HD_MUST_USE enum hd_err hd_pipes_plan(struct hd_plan *plan, const struct hd_pipes *pipes,
	const struct hd_view *view, const struct hd_plan_job *job, const struct hd_task *task,
	struct hd_arena *arena, struct hd_diag *diag);

/* A member's part of such a plan, for memory and for the engine: received bytes, and of state by stages the
 * buckets that it holds and what carries others. In the arena. HD_E_NOSPACE: hd_view_received(). */
HD_MUST_USE enum hd_err hd_pipes_part(struct hd_dist_view *part, const struct hd_pipes *pipes,
	const struct hd_view *view, uint32_t worker, const struct hd_worker *engine, struct hd_arena *arena,
	struct hd_diag *diag);

/* Settles the width of a job that asks for stages, and the devices of a rank, for a run over workers of
 * `ndevices` each. HD_E_INVAL: what its keys ask for and the devices do not go together, or a worker would
 * have more than HD_MAX_PASSES stages. */
HD_MUST_USE enum hd_err hd_pipes_settle(struct hd_job *job, uint32_t nworkers, uint32_t ndevices,
	struct hd_arena *arena, struct hd_diag *diag);
/* The job of a run that goes on with pipelines of `width`, whose user has set some keys (HD_FROM_SET) to
 * change them: what is left open follows from what there is. HD_E_INVAL: another key was set than
 * parallel.stages, chunks, schedule and replicas. */
HD_MUST_USE enum hd_err hd_pipes_change(struct hd_job *job, uint32_t width, struct hd_arena *arena,
	struct hd_diag *diag);
/* Keeps what hd_pipes_make() made of it in the run's folder, which is held. */
HD_MUST_USE enum hd_err hd_pipes_keep_shape(struct hd_rundir *dir, const struct hd_job *job,
	const struct hd_pipes *pipes, struct hd_arena *arena, struct hd_diag *diag);
/* Keeps it in the run's folder, which is held. */
HD_MUST_USE enum hd_err hd_pipes_keep(struct hd_rundir *dir, const struct hd_job *job, struct hd_arena *arena,
	struct hd_diag *diag);

#endif
