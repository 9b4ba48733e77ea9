/* worker.h -- the devices of one process, walking the instruction lists of a plan.
 *
 * A worker owns memory (parameters, optimizer slots, gradient buffers, arenas) and
 * one thread per rank; hd_worker_step() lets every rank interpret its list for
 * one step. What an instruction does is a row of the table in interp.c; nothing
 * else in the tree computes a training step.
 *
 * 1. Devices share parameters and slots; each has its own gradient buffers (as
 *    many as its fold script needs) and activation arena.
 * 2. Order of a step: lists up to RED may interleave freely; RED joins the roots of
 *    each chunk at its owner in the order of the tree; NORM makes the step scalars
 *    on every rank from the same numbers; the step is sealed; STEP updates the
 *    chunks the rank owns. The bits depend on none of it.
 * 3. Parameters do not change before every sum of the step is there (seal), but for what STEP! does and a
 *    step that fails or is skipped takes back (eager.h). So a step that fails leaves the state of its
 *    beginning and may be tried again. A failure in the update itself refuses every further step until
 *    the state was overwritten (rewind).
 * 4. The step loop allocates nothing.
 *
 * Threads: one caller; it is rank 0's leader. */
#ifndef HD_ENGINE_WORKER_H
#define HD_ENGINE_WORKER_H

#include "graph/state.h"
#include "data/prefetch.h"
#include "plan/plan.h"
#include "engine/recorder.h"
#include "engine/task.h"
#include "engine/times.h"

struct hd_fn_owner;
struct hd_worker;

struct hd_worker_spec {
	const char *kind;                 /* row of hd_devices */
	uint32_t ndevices, nthreads;      /* D, T */
	enum hd_kernels kernels;
	uint64_t memory_limit_bytes;      /* per device, 0: the machine's */
	/* virtual nodes of one device call at most; 0: chosen (hd_worker_wave) */
	uint32_t wave;
	bool spin;
	/* instruction set of own kernels (device.h); NULL: the widest there is */
	const char *path;
	struct hd_recorder *recorder;     /* borrowed; NULL: off */
	/* one of several workers that each hold the state of their stages alone (dist.h); what it does not
	 * hold and has all the same for a while, as a checkpoint does, lies in a file of this folder,
	 * borrowed (NULL: in memory) */
	bool by_stage;
	/* so do activations that a plan moves away (offload.h; NULL: in a file of /var/tmp) */
	const char *spill;
	/* devices of no result wait what the nodes of the training graph take, [nnodes], over their speeds,
	 * [ndevices]; NULL: they do not wait, all alike. Borrowed */
	const int64_t *pace_ns;
	const double *speed;
	/* what gives dense work of virtual nodes to functions (stretch.h); borrowed; NULL: all is run here */
	struct hd_fn_owner *functions;
};

/* What one step said. Sums over the global batch; f64 values folded along the tree. */
struct hd_step_record {
	uint64_t step, samples, epoch;
	double   loss_sum, weight, correct, gnorm;
	uint32_t nterms; double term_sum[HD_MODEL_TERMS];         /* of losses that are added, not weighted */
	float    lr;
	bool     empty, skipped;          /* weight 0; not finite and on_nonfinite: skip */
	bool     has_digest;
	struct hd_hash digest;            /* state after the step */
	uint64_t wait_data_ns;
	/* of stages, on average over the devices: work for redundancy alone (instructions of shadows, updates
	 * of state that this worker does not compute with); waiting for tensors of neighbour stages */
	uint64_t redundant_ns, stalled_ns;
	/* device 0: time in its instructions, by op; waits inside them count */
	uint64_t ins_ns[HD_INS_END];
};

HD_MUST_USE enum hd_err hd_worker_create(struct hd_worker **worker, const struct hd_task *task,
	const struct hd_worker_spec *spec, struct hd_diag *diag);
void hd_worker_destroy(struct hd_worker *worker);           /* stops the ranks; takes NULL */

/* Adopts a plan between two steps: fold scripts, buffers, arenas. Checked by the plan checker first; one that
 * is refused, or that finds no memory, changes nothing. The state stays as it is: what invariant 3 refuses is
 * refused under a new plan too. A worker that is one of several adopts parts of a plan instead (dist.h). */
HD_MUST_USE enum hd_err hd_worker_adopt(struct hd_worker *worker, const struct hd_plan *plan,
	struct hd_diag *diag);

/* Runs step hd_worker_at() and moves on. `digest`: also the state digest after it. */
HD_MUST_USE enum hd_err hd_worker_step(struct hd_worker *worker, bool digest, struct hd_step_record *record,
	struct hd_diag *diag);

/* What a plan may ask for (hd_plan_job.wave): spec.wave, or as many virtual nodes as keep the largest
 * activation of a call in half a second-level cache; at least one. No bit of a result depends on it.
 * choose.h minds the memory. */
uint32_t hd_worker_wave(const struct hd_worker *worker);

/* Why steps of the job cannot overlap in a straight pipeline of p devices (pipeline/window.h), as part of a
 * sentence; NULL: they can. */
const char *hd_task_drains(const struct hd_task *task, uint32_t p);
/* Why no step of the job begins before the end of the one before (engine/onset.h), as part of a sentence;
 * NULL: over several workers steps do. */
const char *hd_task_onset(const struct hd_task *task);
/* Of a job and its training graph; late: a step reads what an earlier one made (optim.update). */
const char *hd_job_onset(const struct hd_job *job, const struct hd_graph *train, bool late);
/* Why it then reads no new parameter before that end; NULL: it reads them as they come. */
const char *hd_job_onset_waits(const struct hd_job *job);
/* Why an update needs the norms of all gradients first; NULL: a bucket is brought on once its sum is here. */
const char *hd_job_onset_norms(const struct hd_job *job);
/* What each row of the data adds to the weight by which gradients are divided; 0: the data say it. */
uint64_t hd_task_row_weight(const struct hd_task *task);
/* Both in a sentence, for events and plans. */
void hd_onset_say(const char *never, const char *waits, char *text, size_t size);
/* The same of n stages that begin at those nodes (engine/eager.h). HD_E_REFUSED: they cannot, as part of a
 * sentence. */
HD_MUST_USE enum hd_err hd_stages_overlap(const struct hd_task *task, const uint32_t *first, uint32_t n,
	struct hd_arena *arena, struct hd_diag *diag);

/* Names of the rows that a virtual node was loaded with in the step at hand, or the last one; NULL: the
 * job does not ask (trace.samples). */
const struct hd_sample *hd_worker_took(const struct hd_worker *worker, uint32_t vn, uint64_t *n);

/* What instructions `op` of a stage took on device r since the plan in use was adopted, waits inside them
 * included: between steps. Of a plan of one stage the stage is 0; so it is of NORM. */
struct hd_spent hd_worker_spent(const struct hd_worker *worker, uint32_t r, uint16_t stage, uint8_t op);

/* For others to judge whether it hangs: a count that rises while its first device works, and at each look
 * while it waits for another worker at a norm. Any thread. */
uint64_t hd_worker_pulse(struct hd_worker *worker);
/* instruction of that device since the last call of this, without such waits; the caller's thread */
uint64_t hd_worker_longest_ns(struct hd_worker *worker);

bool hd_worker_lockstep(const struct hd_worker *worker);    /* what a plan must do (hd_plan_job.lockstep) */
/* What a plan for this worker must respect: of its task, its wave and lockstep. */
struct hd_plan_job hd_worker_plan_job(const struct hd_worker *worker);

uint64_t hd_worker_at(const struct hd_worker *worker);      /* the next step */
struct hd_state *hd_worker_state(struct hd_worker *worker); /* live memory: between steps only */
/* After the state was overwritten (resume): takes the step number from it and restarts the reader there. */
HD_MUST_USE enum hd_err hd_worker_rewind(struct hd_worker *worker, struct hd_diag *diag);
struct hd_hash hd_worker_digest(struct hd_worker *worker);
/* False: the state is not the one any more whose digest its step reported. True of a step that reported
 * none. */
bool hd_worker_as_reported(struct hd_worker *worker);

/* What the memory is for, in bytes per worker: compared with the limit and with what is free before it is
 * taken, and printed before the first step. Without a plan one gradient buffer per device is counted, the
 * least there is. */
struct hd_memory_terms {
	/* gradients: with what is exchanged with other workers */
	uint64_t params, slots, gradients, arenas, inputs;
	uint64_t held;                    /* these five: what a limit of the devices bounds */
	uint64_t kept;                    /* samples that the data set keeps once it has made them */
	uint64_t own;                     /* programs, and scratch of their kernels once these are loaded */
	uint64_t total;
	/* of gradients and of arenas, what is reserved and never written to (device/idle.h): a bound counts
	 * it, the process does not grow by it. 0 before programs are loaded */
	uint64_t idle_gradients, idle_arenas;
	uint64_t idle_inputs;             /* the same in lockstep: rows that other workers read or evaluate */
	uint64_t idle_slots;              /* of slots, what other workers hold of sharded state */
	/* what the process takes besides, without pages of programs and files: measured once. No part of the
	 * total, by which it grows */
	uint64_t process;
	/* of the total, what the fullest device takes: the first one holds what all share */
	uint64_t device;
};
void hd_worker_memory(const struct hd_worker *worker, struct hd_memory_terms *terms);
/* What the process is predicted to grow by. */
static inline uint64_t hd_memory_taken(const struct hd_memory_terms *t)
{
	return t->total - t->idle_gradients - t->idle_arenas - t->idle_slots - t->idle_inputs;
}
/* What the process is predicted to take at its peak, without pages of programs and files. */
static inline uint64_t hd_memory_of_process(const struct hd_memory_terms *t)
{
	return hd_memory_taken(t) + t->process;
}
/* What of the terms the free bytes of `machine` have lost before there is a worker. */
struct hd_memory_info;
uint64_t hd_task_mapped_bytes(const struct hd_task *task, const struct hd_memory_info *machine);
/* By how much the process is larger at its peak than before the worker took any memory; `files`: of that,
 * pages of programs and files, which no prediction counts: the system takes them back when it needs them. */
struct hd_memory_growth { uint64_t peak, files; };
void hd_worker_growth(const struct hd_worker *worker, struct hd_memory_growth *growth);
/* false: devices of no result, the state means nothing */
bool hd_worker_computes(const struct hd_worker *worker);
/* Has a step failed because its samples could not be read? */
bool hd_worker_unread(const struct hd_worker *worker);
/* kernels chosen: "cpu/avx512 library" */
const char *hd_worker_path(const struct hd_worker *worker);
struct hd_hash hd_worker_fingerprint(const struct hd_worker *worker);

#endif
