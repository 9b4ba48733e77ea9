/* pipes_settled.h -- what parallel.mode: auto chose for a run over workers: a value of the run's job
 * (parallel.settled), and whether a run that is started again keeps it.
 *
 * The coordinator's process writes it; members, a coordinator that takes over and a resume read it.
 *
 * 1. What was settled stays, since measuring again would move cuts by noise: where the run has as many
 *    devices as it was chosen for, its keys still ask for nothing else, and none of them was given for this
 *    start (-s). Data parallel that was chosen stays like any other choice.
 * 2. Else all is open again, within the keys as they are now.
 *
 * Pure; texts lie in the arena. */
#ifndef HD_RUN_PIPES_SETTLED_H
#define HD_RUN_PIPES_SETTLED_H

#include "job/job.h"
#include "protocol/view.h"

/* What else of a choice is no part of a view's shape. ndevices 0: of no choice, not kept (rule 1). */
struct hd_pipes_settling { bool recompute; uint32_t ndevices; };

/* The shape as a value of the job; without stages each device has the whole model. HD_E_NOMEM. */
HD_MUST_USE enum hd_err hd_pipes_settled(struct hd_job_value *value, const struct hd_view_shape *shape,
	struct hd_pipes_settling how, struct hd_arena *arena, struct hd_diag *diag);
/* Rule 1, for a run that is started with `ndevices` of all workers. */
bool hd_pipes_stay(const struct hd_job *job, uint32_t ndevices);

#endif
