/* kernels.h -- which set of kernels a run computes with: job.kernels, and where that is `auto` what it stood
 * for when the run started (job.kernels_auto).
 *
 * 1. `auto` is settled once, by the table of device/kernels_auto.h for the processor of the process that
 *    starts the run, and written into its job.resolved.json: all that go on with it (resume, workers here and
 *    elsewhere, coordinators that take over, leases of a scheduler) read it there, on whatever processor.
 * 2. It is part of no hash: the job is still one of `auto`.
 * 3. A run that began before this was written down goes on with the kernels that its checkpoint names. */
#ifndef HD_RUN_KERNELS_H
#define HD_RUN_KERNELS_H

#include "device/program.h"
#include "job/job.h"
#include "checkpoint/ckpt.h"
#include "run/rundir.h"

/* Settles `auto` of a job that has not been: by `was`, the kernels of a checkpoint that it goes on from, if
 * it names a set; else ("", NULL) by the table. */
HD_MUST_USE enum hd_err hd_kernels_settle(struct hd_job *job, struct hd_fs *fs, const char *was,
	struct hd_diag *diag);
/* The same for the run in `dir`, which is held, and into its job.resolved.json. */
HD_MUST_USE enum hd_err hd_kernels_keep(struct hd_rundir *dir, struct hd_job *job, const char *was,
	struct hd_arena *arena, struct hd_diag *diag);
/* Of a job that is settled; one that is not has our own, one of products in bf16 those for them. */
enum hd_kernels hd_kernels_of(const struct hd_job *job);

#endif
