/* kept_costs.h -- what a job's ops cost, in the run's folder (costs.json): measured once by the process that
 * coordinated the run's start, read by one that takes the run over and has nothing to measure with.
 *
 * Two lines of JSON: what a worker opens, and what is measured besides the profile; the profile
 * (cost/profile.h).
 *
 * 1. Costs that come back are those that were kept, so predictions and cuts are equal.
 * 2. Costs of another graph, or of a virtual node of another size, are none of the job: HD_E_INVAL.
 *
 * Threads: keeping is the folder's holder's; all in the arena. */
#ifndef HD_RUN_KEPT_COSTS_H
#define HD_RUN_KEPT_COSTS_H

#include "run/costs.h"
#include "run/rundir.h"

#define HD_RUN_COSTS "costs.json"

/* The worker's number of devices and threads is kept with them. */
HD_MUST_USE enum hd_err hd_kept_costs_put(struct hd_rundir *dir, const struct hd_run_costs *costs,
	const struct hd_worker_spec *worker, struct hd_arena *arena, struct hd_diag *diag);
/* Into *worker its numbers; all else of it stays. HD_E_NOTFOUND: the run kept none. */
HD_MUST_USE enum hd_err hd_kept_costs_get(struct hd_run_costs **costs, struct hd_worker_spec *worker,
	const struct hd_rundir *dir, const struct hd_task *task, struct hd_arena *arena,
	struct hd_diag *diag);

#endif
