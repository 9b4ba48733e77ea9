/* pipes.h -- how the pipelines of a job lie over workers: the shape of a run's views (protocol/view.h), where
 * the model is cut into stages, and the plan of a view.
 *
 * Coordinator and members derive all of it from the job alone, so that they agree without a message.
 *
 * 1. A pipeline has `width` ranks, consecutive in the order of the view, whichever workers have them. How
 *    many pipelines there are follows from the devices that are there.
 * 2. The width follows from the job's keys where they say it: parallel.stages over parallel.chunks. Else
 *    hd_pipes_settle() derives it from the devices with which the run starts or is resumed, and it is kept in
 *    the run as parallel.width. hd_pipes_make() needs one or the other.
 * 3. What parallel.mode: auto chose is kept as parallel.settled, and goes before the keys (pipes_settled.h).
 *    Where that, or a view's shape, names no nodes, cuts balance the FLOPs. No bit of the result depends on
 *    any of it.
 * 4. With comm.sync: allreduce all workers hold all parameters and slots (`whole` in plan/buckets.h), but
 *    activations and gradients of their own stages alone. With comm.sync: stages they hold all of these for
 *    their own stages alone; with elastic.redundancy also parameters and slots of the stages whose shadow
 *    they have (protocol/view.h, rule 10), whose work is in the lists (pipes_shadows.h); with elastic.standby
 *    those without a rank hold these of the stage that they follow (rule 14 there). Where updates are
 *    delayed (engine/delays.h), earlier versions lie where the parameters lie; steps of one straight pipeline
 *    overlap (engine/overlap.h), without redundancy and without followers.
 * 5. The devices of a rank (parallel.tensor) lie on one worker where it has enough, else on `groups` of them,
 *    as many on each (parallel.groups, kept as the width is). What a view counts as ranks and stages are then
 *    groups of ranks and what these run of a stage (graph/spread.h); `stages` says the ranks themselves.
 *
 * 6. Where the job has the lists of a plan file (parallel.lists), that says stages, places, cuts and order,
 *    and how many pipelines there are at most; fewer of them share its lists out (pipeline/listed.h). A shape
 *    says so by its order; a job without the lists cannot have it. No run begins with a file of fewer than
 *    elastic.resilience: replica:F keeps.
 *
 * Pure but for hd_pipes_keep() and hd_pipes_keep_shape(), which write the run's job. pipes.c makes the shape,
 * pipes_views.c plans views of it, pipes_job.c has what the run's job says of it. */
#ifndef HD_RUN_PIPES_H
#define HD_RUN_PIPES_H

#include "protocol/view.h"
#include "engine/dist.h"
#include "engine/task.h"
#include "run/rundir.h"
#include "run/stages.h"

/* Of how many of the buckets that it lacks a worker requests the state at a time. It answers one request at a
 * time. */
enum { HD_PIPES_FETCHED = 2, HD_PIPES_MOVED = HD_PIPES_FETCHED + 1 };

struct hd_pipes {
	struct hd_run_stages stages;      /* of one pipeline; p 0: the job has none, and all else is 0 */
	struct hd_view_shape shape;
	uint32_t groups;                  /* of a rank's devices: rule 5 */
	uint32_t most;                    /* at most so many pipelines */
	struct hd_stage_buckets buckets;
	uint64_t *bytes;                  /* [buckets.n] parameters and slots of each, in bytes */
};

/* What a shape's `schedule` says: the order of work, a row of pipeline/generate.h or the job's plan file, and
 * the redundancy. */
enum { HD_SHAPE_ORDERS = 256, HD_SHAPE_LISTED = HD_SHAPE_ORDERS - 1 };
static inline uint32_t hd_shape_order(const struct hd_view_shape *shape)
{
	return shape->schedule % HD_SHAPE_ORDERS;
}
static inline uint32_t hd_shape_redundancy(const struct hd_view_shape *shape)
{
	return shape->schedule / HD_SHAPE_ORDERS;
}
static inline void hd_shape_make_redundant(struct hd_view_shape *shape, uint32_t redundancy)
{
	shape->schedule = shape->nstages ? hd_shape_order(shape) + HD_SHAPE_ORDERS * redundancy : 0;
}

/* Devices of a rank that one worker has. */
static inline uint32_t hd_pipes_each(const struct hd_pipes *pipes)
{
	return pipes->groups ? pipes->stages.t / pipes->groups : pipes->stages.t;
}

/* In the arena. HD_E_INVAL: the keys do not go together, or leave the width open (rule 2). */
HD_MUST_USE enum hd_err hd_pipes_make(struct hd_pipes *pipes, const struct hd_task *task,
	struct hd_arena *arena, struct hd_diag *diag);
/* Of a shape, whatever the job's keys ask for. HD_E_INVAL: the job cannot have it. */
HD_MUST_USE enum hd_err hd_pipes_of_shape(struct hd_pipes *pipes, const struct hd_task *task,
	const struct hd_view_shape *shape, struct hd_arena *arena, struct hd_diag *diag);
/* May steps run under the view? A job with stages pauses in a view without a shape: there are too few devices
 * for one pipeline. */
static inline bool hd_pipes_step(const struct hd_pipes *pipes, const struct hd_view *view)
{
	return !pipes->shape.nstages || view->shape.nstages;
}
/* The virtual nodes of each of so many pipelines where a plan file says them: of all of its. False: even. */
bool hd_pipes_shares(const struct hd_pipes *pipes, uint32_t npipes, uint32_t *share);
/* The view with which a run of `n` workers of `ndevices` each starts. False: it has no shape, since the job
 * has no stages or there are too few devices, and each device computes the whole model. */
bool hd_pipes_view(struct hd_view *view, const struct hd_pipes *pipes, uint32_t n, uint32_t ndevices,
	uint32_t nvns);
/* What the members of a view do in a step; `pipes` NULL, or a view without shape: each device computes the
 * whole model. Ranks are those of the view. Chunks of a bucket are owned by devices of the bucket's owner,
 * dealt evenly to them. */
HD_MUST_USE enum hd_err hd_pipes_plan(struct hd_plan *plan, const struct hd_pipes *pipes,
	const struct hd_view *view, const struct hd_plan_job *job, const struct hd_task *task,
	struct hd_arena *arena, struct hd_diag *diag);

/* Why steps of views of that shape do not overlap, as far as shape and job say it; NULL: they may. */
const char *hd_pipes_drain(const struct hd_pipes *pipes, const struct hd_view_shape *shape,
	const struct hd_task *task);

/* What the engine of one member must know of such a plan (engine/dist.h): its number, the bytes of its
 * receive buffers and, with comm.sync: stages, the buckets that it holds; buffers for the buckets that it
 * fetches are counted. In the arena. HD_E_NOSPACE: see hd_view_received(). */
HD_MUST_USE enum hd_err hd_pipes_part(struct hd_dist_view *part, const struct hd_pipes *pipes,
	const struct hd_view *view, uint32_t worker, const struct hd_worker *engine, struct hd_arena *arena,
	struct hd_diag *diag);

/* Derives the width (rule 2) of a job that asks for stages, and the devices of a rank, for a run over workers
 * of `ndevices` each. HD_E_INVAL: its keys do not fit these devices, or a worker would have more than
 * HD_MAX_PASSES stages. */
HD_MUST_USE enum hd_err hd_pipes_settle(struct hd_job *job, uint32_t nworkers, uint32_t ndevices,
	struct hd_arena *arena, struct hd_diag *diag);
/* For a run that goes on, with pipelines of `width` ranks so far and workers of `ndevices`, after its user
 * set some keys (HD_FROM_SET): other keys of its pipelines that followed from these are open again.
 * HD_E_INVAL: other keys were set than parallel.stages, chunks, schedule, replicas, tensor, groups and
 * recompute, and elastic.redundancy. */
HD_MUST_USE enum hd_err hd_pipes_change(struct hd_job *job, uint32_t width, uint32_t ndevices,
	struct hd_arena *arena, struct hd_diag *diag);
/* Writes the shape that hd_pipes_make() found to the job in the run's folder. The caller has the folder's
 * lock (rundir.h). */
HD_MUST_USE enum hd_err hd_pipes_keep_shape(struct hd_rundir *dir, const struct hd_job *job,
	const struct hd_pipes *pipes, struct hd_arena *arena, struct hd_diag *diag);
/* Writes the width that hd_pipes_settle() found there, and the plan that was read, under the same lock. */
HD_MUST_USE enum hd_err hd_pipes_keep(struct hd_rundir *dir, const struct hd_job *job, struct hd_arena *arena,
	struct hd_diag *diag);

#endif
