/* kept_job.h -- values of a run's job.resolved.json that were settled after it was written.
 *
 * 1. Its other values stay as they are; the file is replaced whole, or stays (rundir.h).
 *
 * Threads: that of the folder's holder. */
#ifndef HD_RUN_KEPT_JOB_H
#define HD_RUN_KEPT_JOB_H

#include "job/job.h"
#include "run/rundir.h"

/* Why no lineage goes on, where the state of the two jobs has not one shape (engine/stale.h, stamps.h). */
#define HD_OTHER_ROWS "with other steps, batch.mode or batch.staleness: its rows that are late, and " \
	"the recording of which they were, have the shape of these, so that no lineage goes on with " \
	"others: leave out -s and HEDDLE_ variables that change them, or begin another run from its " \
	"weights alone (model.weights: its folder)"

struct hd_kept_value { enum hd_job_key key; struct hd_job_value value; };

/* As it is there, with `set` put over it. */
HD_MUST_USE enum hd_err hd_kept_job_read(struct hd_job **job, const struct hd_rundir *dir,
	const struct hd_job_set *set, uint32_t nset, struct hd_arena *arena, struct hd_diag *diag);
/* `dir` is held. */
HD_MUST_USE enum hd_err hd_kept_job_put(struct hd_rundir *dir, const struct hd_kept_value *of, size_t n,
	struct hd_arena *arena, struct hd_diag *diag);

/* What -s and HEDDLE_ variables say of how the run in `dir`, held, goes on: its workers, and a coordinator
 * that takes over, read the file and nothing else. Nothing is written when they say nothing.
 * HD_E_INVAL: they change what fixes the result. */
HD_MUST_USE enum hd_err hd_kept_job_settings(struct hd_rundir *dir, const struct hd_job *job,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
