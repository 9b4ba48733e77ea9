/* pipes_listed.h -- the plan file of a run over workers, as a value of the run's job (parallel.lists).
 *
 * Workers of other machines, a coordinator that takes over and a resume, also one in one process, read it
 * there: the file may be gone, or changed. It is the plan's printed form, which any plan file has.
 *
 * Pure; all in the arena. Users: pipes.c, plans.c, cmd/run. */
#ifndef HD_RUN_PIPES_LISTED_H
#define HD_RUN_PIPES_LISTED_H

#include "pipeline/listed.h"
#include "job/job.h"
#include "run/stages.h"

enum { HD_PIPES_LISTS_BYTES = 1 << 17 };  /* a plan's printed form; it travels with the job */

/* Proves the plan in `text` [len] of `file` as far as the job alone can, and puts it into parallel.lists.
 * HD_E_INVAL, HD_E_BADPLAN: it is none for workers, or not for this job. */
HD_MUST_USE enum hd_err hd_pipes_list(struct hd_job *job, const char *text, size_t len, const char *file,
	struct hd_arena *arena, struct hd_diag *diag);
/* What the job has there. */
HD_MUST_USE enum hd_err hd_pipes_listed(struct hd_listed *listed, const struct hd_job *job,
	struct hd_arena *arena, struct hd_diag *diag);
/* So many pipelines of it, whose ranks' devices lie on `groups` workers each. Borrows `listed`. */
struct hd_run_stages hd_pipes_listed_stages(const struct hd_listed *listed, uint32_t d, uint32_t groups);
/* The same of what the job has, for `ndevices` of one process; 0: for all devices of the file. HD_E_INVAL:
 * these are no pipelines of it. */
HD_MUST_USE enum hd_err hd_pipes_listed_alone(struct hd_run_stages *stages, const struct hd_job *job,
	uint32_t ndevices, struct hd_arena *arena, struct hd_diag *diag);

#endif
