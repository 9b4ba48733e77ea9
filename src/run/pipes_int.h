/* pipes_int.h -- keys of a job's pipelines, written into a copy of it: what pipes.c (a job as a shape asks
 * for it) and pipes_job.c (a job that changes) share. Private to the room. Pure; texts lie in the arena. */
#ifndef HD_RUN_PIPES_INT_H
#define HD_RUN_PIPES_INT_H

#include "job/job.h"
#include "protocol/view.h"

/* A number, or a row of a key's words; the text stays. */
void hd_pipes_say(struct hd_job *job, enum hd_job_key key, uint32_t i);
void hd_pipes_say_redundancy(struct hd_job *job, uint32_t mode);
void hd_pipes_say_recompute(struct hd_job *job, bool again);
/* The ranks of each stage of a shape with copies; none of another. */
HD_MUST_USE enum hd_err hd_pipes_say_copies(struct hd_job *job, const struct hd_view_shape *shape,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
