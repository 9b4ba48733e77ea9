/* advice.h -- what Slurm's own rules would start next on the nodes as they are: for `heddle sched advise`.
 *
 * Rules 1, 2, 5 and 7 of slurm.h with what Slurm itself says: its priorities, its running jobs with their
 * limits. Devices are counted node by node, so that a job which asks for so many on each node gets them.
 * Nothing is preempted. */
#ifndef HD_CLUSTERSIM_SCHEDSIM_ADVICE_H
#define HD_CLUSTERSIM_SCHEDSIM_ADVICE_H

#include "clustersim/slurm_now.h"

/* Of each job of live->job that waits: by_job[its place]. Types in waits are HD_SCHED_NONE. */
HD_MUST_USE enum hd_err slurm_advice(const struct hd_slurm_now *live, struct hd_advice *by_job,
	struct hd_arena *arena, struct hd_diag *diag);

/* "n1:2 n2:4": of[k] devices of node k. NULL: no memory. */
const char *advice_where(const struct hd_slurm_now *live, const uint32_t *of, struct hd_arena *arena);

#endif
