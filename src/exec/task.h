/* task.h -- a job made concrete: graphs, layout, data and order of samples.
 *
 * What `run`, `eval`, `predict`, `bench` and the tests share before any device is
 * opened. A pure function of the job and the files it names.
 *
 * 1. The training graph has gradients and is fused; the inference graph is the
 *    same forward nodes with dropout off; both have the same parameters.
 * 2. The set of slice sizes that can occur is known here (`rows`), so that every
 *    kernel is prepared before the first step.
 * 3. Who the job is (job_hash) includes the content of its graph file: the path alone
 *    would let an edited graph resume another's checkpoint.
 *
 * Ownership: create/destroy; everything lies in the task's own arena. */
#ifndef HD_EXEC_TASK_H
#define HD_EXEC_TASK_H

#include "graph/layout.h"
#include "device/optim.h"
#include "device/program.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "plan/job.h"

struct hd_task {
	struct hd_arena arena;
	const struct hd_job *job;         /* borrowed */
	struct hd_graph train, infer;
	struct hd_layout layout;
	struct hd_dataset *data;          /* owned */
	struct hd_sampler sampler;
	struct hd_optim optim;
	uint64_t nsteps;                  /* steps the job asks for */
	uint64_t rows[HD_MAX_VARIANTS];   /* of training slices, largest first */
	uint32_t nrows;
	struct hd_hash job_hash;          /* the job's, joined with the text of a graph file if it names one */
};

HD_MUST_USE enum hd_err hd_task_create(struct hd_task **task, const struct hd_job *job, struct hd_fs *fs, struct hd_diag *diag);
void hd_task_destroy(struct hd_task *task);          /* takes NULL */

/* The forward graph that the job names, before any pass; lies in `arena`. Needs no data. */
HD_MUST_USE enum hd_err hd_task_graph(const struct hd_job *job, struct hd_fs *fs, struct hd_arena *arena, struct hd_graph *graph,
	struct hd_diag *diag);

/* Initial parameters: Philox domain init, keyed by (seed, tensor index, element). */
void hd_task_init_params(const struct hd_task *task, float *params);

/* Rows [first, end) of slice q of virtual node v in a step of n rows. */
void hd_task_slice(const struct hd_task *task, uint64_t nrows, uint32_t vn, uint32_t slice, uint64_t *first, uint64_t *end);

/* FLOPs of one whole step (forward and backward of B rows). */
double hd_task_flops(const struct hd_task *task);

#endif
