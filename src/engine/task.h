/* task.h -- a job made concrete: graphs, layout, data and order of samples.
 *
 * What `run`, `eval`, `predict`, `bench` and the tests share before any device is
 * opened. A pure function of the job and the files it names.
 *
 * 1. The training graph has gradients and is fused; the inference graph is the
 *    same forward nodes with dropout off and norms on their running statistics; both have the same
 *    parameters.
 * 2. The set of slice sizes that can occur is known here (`rows`), so that every
 *    kernel is prepared before the first step.
 * 3. The identity of the job (job_hash) includes the content of its graph file and of its weights:
 *    the path alone would let an edited one resume another's checkpoint. It includes the nodes at which the
 *    stages of delayed updates are cut, where the job leaves them open.
 *
 * Ownership: create/destroy; everything lies in the task's own arena. */
#ifndef HD_ENGINE_TASK_H
#define HD_ENGINE_TASK_H

#include "graph/layout.h"
#include "graph/lora.h"
#include "graph/model.h"
#include "device/optim.h"
#include "device/program.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "plan/comm.h"
#include "job/job.h"
#include "checkpoint/weights.h"
#include "engine/delays.h"
#include "engine/measure.h"
#include "engine/param_rates.h"

struct hd_recording;

struct hd_task {
	struct hd_arena arena;
	const struct hd_job *job;         /* borrowed */
	struct hd_graph train, infer;
	struct hd_wholes wholes;          /* the tensors of both graphs, by names and numbers of the model */
	struct hd_layout layout;
	struct hd_comm comm;              /* comm.settled, of the layout's buckets; nothing: none */
	struct hd_dataset *data;          /* owned */
	struct hd_augment augment;        /* hung on the data set; no transforms: not */
	struct hd_sampler sampler;
	struct hd_optim optim;
	/* [nparams] of the training graph; NULL: all have the job's */
	const struct hd_param_rate *rate;
	struct hd_delays delays;          /* of the parameters that a step reads */
	uint64_t nsteps;                  /* steps the job asks for */
	const struct hd_recording *recording;     /* of batch.replay (stamps.h); NULL: none */
	uint64_t rows[HD_MAX_VARIANTS];   /* of training slices, largest first */
	uint32_t nrows;
	/* of a block of evaluation: those of a virtual node; a graph in intervals is evaluated whole */
	uint64_t eval_rows;
	uint32_t nterms;                  /* losses that are added: outputs loss_1, ...; 0: one loss */
	struct hd_measuring measured;      /* of evaluations; wanted 0: none */
	/* the job's, joined with the text of a graph file and the digest of weights if it names them */
	struct hd_hash job_hash;
	struct hd_weights *weights;       /* owned; NULL: none, or no longer needed */
	/* with weights: what each tensor of `wholes` and each buffer begins from */
	const struct hd_weight_source *fit;
};

HD_MUST_USE enum hd_err hd_task_create(struct hd_task **task, const struct hd_job *job, struct hd_fs *fs,
	struct hd_diag *diag);
void hd_task_destroy(struct hd_task *task);          /* takes NULL */
/* The job's comm.settled was set after the task was created: buckets and ranks are those from now on. Before
 * anything is made of the layout. */
HD_MUST_USE enum hd_err hd_task_settle(struct hd_task *task, struct hd_diag *diag);
/* What all members of a run must have alike: the job, and of which segments its buckets are, which a run that
 * is resumed may have settled otherwise. The job's hash where no cut was settled. */
struct hd_hash hd_task_alike(const struct hd_task *task);

/* The forward graph that the job names, with what it freezes and its adapters, before any pass; lies in
 * `arena`. Needs no data. */
HD_MUST_USE enum hd_err hd_task_graph(const struct hd_job *job, struct hd_fs *fs, struct hd_arena *arena,
	struct hd_graph *graph,
	struct hd_diag *diag);

/* The same after the passes, with its gradient: what is profiled and planned for, and trained where
 * model.shards is 1. Shards are the matter of the devices of one rank: no plan cuts between them. */
HD_MUST_USE enum hd_err hd_task_train_graph(const struct hd_job *job, struct hd_fs *fs,
	struct hd_arena *arena, struct hd_graph *graph,
	struct hd_diag *diag);
/* A graph of hd_task_graph() in the job's shards (model.shards), as it runs. */
HD_MUST_USE enum hd_err hd_task_shard(const struct hd_job *job, struct hd_graph *graph, struct hd_diag *diag);

/* What of the job's model is adapters: false where there are none. Texts are the job's; `pattern` has room
 * for all. */
struct hd_patterns { const char *target[HD_JOB_MAX_NAMES], *train[HD_JOB_MAX_NAMES], *ranks[HD_JOB_MAX_NAMES],
	*alphas[HD_JOB_MAX_NAMES]; };
bool hd_task_lora(const struct hd_job *job, struct hd_patterns *pattern, struct hd_lora *lora);

/* For programs that know no adapters: those of `state`, which such a job has made, go into the weights that
 * they change (graph/lora.h); a state without adapters stays as it is. HD_E_INTEGRITY: it has some, the job
 * none. Working memory is of `arena`. */
HD_MUST_USE enum hd_err hd_task_merge(const struct hd_job *job, struct hd_fs *fs, struct hd_arena *arena,
	struct hd_state *state, struct hd_diag *diag);

/* Initial parameters: those of the weights (of an ONNX file its own, unless the job names others), the others
 * by Philox domain init, keyed by (seed, tensor index, element). */
void hd_task_init_params(const struct hd_task *task, float *params);
void hd_task_init_buffers(const struct hd_task *task, float *buffers);

/* Gives the weights' memory back, once parameters have been initialised for the last time. */
void hd_task_drop_weights(struct hd_task *task);

/* Rows [first, end) of slice q of virtual node v in a step of n rows. */
void hd_task_slice(const struct hd_task *task, uint64_t nrows, uint32_t vn, uint32_t slice, uint64_t *first,
	uint64_t *end);

/* FLOPs of one whole step (forward and backward of B rows). */
double hd_task_flops(const struct hd_task *task);

#endif
