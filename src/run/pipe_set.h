/* pipe_set.h -- the pipes (pipes.h) of every shape that the views of a run have: made once, when a view or
 * a user first names the shape.
 *
 * Coordinator and members have one each and derive equal pipes, since a shape says how many stages, ranks
 * and devices a pipeline has, in which order they work and whether stages compute again; all else is the
 * job's.
 *
 * Ownership: init/finish; what was found stays until then. Threads: any may ask. Not pure: it takes memory
 * and a lock. */
#ifndef HD_RUN_PIPE_SET_H
#define HD_RUN_PIPE_SET_H

#include "sys/lock.h"
#include "run/pipes.h"

struct hd_pipe_set_entry { struct hd_pipe_set_entry *next; struct hd_pipes pipes; };
struct hd_pipe_set {
	const struct hd_task *task;       /* borrowed */
	struct hd_pipes first;            /* as the job has them; p 0: no stages */
	struct hd_lock lock;              /* of what follows */
	struct hd_arena arena;
	struct hd_pipe_set_entry *others;
};

/* Errors as of hd_pipes_make(). */
HD_MUST_USE enum hd_err hd_pipe_set_init(struct hd_pipe_set *set, const struct hd_task *task,
	struct hd_diag *diag);
void hd_pipe_set_finish(struct hd_pipe_set *set);          /* takes zeroed ones */
/* Of the shape; without stages the first. HD_E_INVAL: the job cannot have it. */
HD_MUST_USE enum hd_err hd_pipe_set_find(struct hd_pipe_set *set, const struct hd_view_shape *shape,
	const struct hd_pipes **pipes, struct hd_diag *diag);
/* hd_shape_buckets; `self` is the set. */
const struct hd_stage_buckets *hd_pipe_set_buckets(void *self, const struct hd_view_shape *shape);
/* hd_shape_shares: those of a plan file, for all its pipelines. */
bool hd_pipe_set_shares(void *self, const struct hd_view_shape *shape, uint32_t npipes, uint32_t *share);
/* May steps of the view overlap, with the last stage's update ahead of the norm (engine/eager.h)? True also
 * where the cuts alone prevent it. `self` is the set. */
bool hd_pipe_set_early(void *self, const struct hd_view *view);

#endif
