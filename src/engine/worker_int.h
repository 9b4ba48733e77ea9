/* worker_int.h -- what the files of a worker share; not for other rooms.
 *
 * During a step a rank writes its own fields, its buffers, its
 * leaves of `leaf`, and of the shared flat vectors the chunks it owns. Everything
 * else is read-only until the end barrier. */
#ifndef HD_ENGINE_WORKER_INT_H
#define HD_ENGINE_WORKER_INT_H

#include <stdatomic.h>

#include "sys/clock.h"
#include "sys/lock.h"
#include "sys/memory.h"
#include "engine/rank.h"
#include "engine/stage.h"
#include "engine/step.h"
#include "engine/store.h"
#include "engine/values.h"
#include "engine/worker.h"

/* Entries of the state table; skips: in a row. */
struct hd_counters { int64_t step, samples, updates, skips; double epoch_loss, epoch_weight, epoch_correct; };

/* Parts by subject: stage.h, step.h and store.h say what they hold; the inside of the others is known to the
 * files that include part_int.h, reading_int.h and digest_int.h, threads.c, background.c and forward.c. */
struct hd_worker {
	const struct hd_task *task;       /* borrowed */
	struct hd_worker_spec spec;
	struct hd_arena arena;
	struct hd_rank *rank;             /* [spec.ndevices] */
	struct hd_param_store *store;     /* owned */
	struct hd_engine_stage *stage;    /* the one there is */
	struct hd_open_step *step;
	struct hd_worker_parts *parts;
	struct hd_reading *reading;
	struct hd_digests *digests;
	struct hd_values *values;         /* NULL: nothing asks for them */
	struct hd_threads *threads;
	struct hd_background *background;
	struct hd_post *post;
	struct hd_meeting *meeting;
	struct hd_onset *onset;           /* NULL: no step begins before the end of the one before */
	struct hd_judges *judges;         /* NULL: the job has none */
	struct hd_stretches *stretches;   /* NULL: nothing is given out */
	struct hd_forward_pass *forward;  /* while ranks run it; NULL: none */
	struct hd_state state;
	struct hd_counters count;
	uint64_t moves;                   /* how often the state came from outside (shadow.h) */
	struct hd_hash fingerprint;
	struct hd_clock clock;            /* for waits that are reported, never for decisions */
	struct hd_memory_info before;     /* of the process, before anything was taken */
	/* what STEP! has brought on of a step that has not ended (eager.h, rule 5); NULL: nothing */
	struct hd_lock early_lock;
	const struct hd_eager *early;
	/* instructions of rank 0 done; the longest since hd_worker_pulse() */
	_Atomic uint64_t progress, longest_ns;
};

/* Which step the rank computes: the one at hand, or one ahead of it (fore.h). */
static inline uint64_t hd_rank_step(const struct hd_rank *rank)
{
	return (uint64_t)rank->worker->count.step + rank->ahead;
}

/* How many rows that step has. */
static inline uint64_t hd_rank_rows(const struct hd_rank *rank)
{
	return hd_sampler_rows(&rank->worker->task->sampler, hd_rank_step(rank));
}

/* What a device may take at most, 0: no limit. By stages its vectors are as long as the model and take memory
 * where they are written to: hd_worker_fits() alone judges them. */
static inline uint64_t hd_worker_device_limit(const struct hd_worker *w)
{
	return w->spec.by_stage ? 0 : w->spec.memory_limit_bytes;
}
static inline uint64_t hd_worker_activation_bytes(const struct hd_worker *w)
{
	return w->stage->train.memory.len_bytes > w->stage->infer.memory.len_bytes ?
		w->stage->train.memory.len_bytes :
		w->stage->infer.memory.len_bytes;
}

/* A graph in intervals is evaluated as a whole, in one block, by the first device. The others have no room
 * for it; in lockstep each virtual node has an arena of its own, so that they have nothing else there. */
static inline bool hd_worker_evaluates(const struct hd_worker *w, uint32_t rank)
{
	return rank == 0 || w->task->eval_rows <= w->task->job->per_vn;
}
static inline uint64_t hd_worker_eval_rows(const struct hd_worker *w, uint32_t rank)
{
	return hd_worker_evaluates(w, rank) ? w->task->eval_rows : 0;
}

/* worker.c: the parts of a worker whose task and spec are set */
HD_MUST_USE enum hd_err hd_worker_begin(struct hd_worker *worker, struct hd_diag *diag);
void hd_worker_end(struct hd_worker *worker);
/* threads.c */
HD_MUST_USE enum hd_err hd_threads_make(struct hd_worker *worker, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_threads_start(struct hd_worker *worker, bool spin, struct hd_diag *diag);
void hd_threads_stop(struct hd_worker *worker);
void hd_threads_finish(struct hd_worker *worker);
/* background.c */
HD_MUST_USE enum hd_err hd_background_make(struct hd_worker *worker, struct hd_diag *diag);
void hd_background_finish(struct hd_worker *worker);
/* waits for the bucket at hand */
void hd_background_computing(struct hd_worker *worker, bool computing);
/* part.c */
HD_MUST_USE enum hd_err hd_parts_make(struct hd_worker *worker, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_parts_tables(struct hd_worker *worker, struct hd_diag *diag);
void hd_parts_give(struct hd_worker *worker, struct hd_device *first);
void hd_parts_finish(struct hd_worker *worker);
/* of the part in use, pass 0; NULL: none */
struct hd_work *hd_worker_work(const struct hd_worker *worker);
bool hd_worker_planned(const struct hd_worker *worker);               /* is a plan in use? */
/* of the part in use: its arena; its step goes on with another pipe, and the chunks of a device are those of
 * device[] (rest.h) */
struct hd_arena *hd_part_arena(const struct hd_worker *worker);
void hd_part_rest(struct hd_worker *worker, struct hd_pipe *rest, const uint32_t *device);
/* no other worker is in the plan in use */
bool hd_worker_alone(const struct hd_worker *worker);
float *hd_worker_sum(const struct hd_worker *worker);                 /* flat: where sums come to lie */
uint64_t hd_parts_bytes(const struct hd_worker *worker);           /* what a step of several workers adds */
uint64_t hd_parts_link_bytes(const struct hd_worker *worker);
/* reading.c */
HD_MUST_USE enum hd_err hd_reading_open(struct hd_worker *worker, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_reading_make(struct hd_worker *worker, struct hd_diag *diag);
void hd_reading_spare(struct hd_worker *worker, bool spare_core);
bool hd_reading_any(const struct hd_worker *worker);
/* Has the thread that reads ahead the rows of a virtual node of that step? There is one. */
bool hd_reading_is_here(const struct hd_worker *worker, uint64_t step, uint32_t vn);
void hd_reading_begin(struct hd_worker *worker);
void hd_reading_want(struct hd_worker *worker, const uint8_t *reads);
HD_MUST_USE enum hd_err hd_reading_take(struct hd_worker *worker, uint64_t step, uint32_t vn,
	const void *field[HD_MAX_FIELDS],
	uint64_t *nrows, struct hd_diag *diag);
/* Since it was asked last: do devices stand still for rows whose readers look for them, or wait until they
 * may ask again? Then the worker does not hang. One thread, any. */
bool hd_reading_waits(struct hd_worker *worker);
void hd_reading_done(struct hd_worker *worker, uint64_t step, uint32_t vn);
void hd_reading_close(struct hd_worker *worker);
/* digest.c */
HD_MUST_USE enum hd_err hd_digest_make(struct hd_worker *worker, struct hd_diag *diag);
struct hd_hash hd_digest_report(struct hd_worker *worker);            /* of the state after the step */
void hd_digest_forget(struct hd_worker *worker);                      /* what was reported */
void hd_digest_segment(struct hd_worker *worker, enum hd_vector vector, uint32_t isegment, const float *at);
/* Lets all ranks (this thread is rank 0) run `activity`, and waits for them. */
HD_MUST_USE enum hd_err hd_worker_all(struct hd_worker *worker, void (*activity)(struct hd_rank *rank),
	struct hd_diag *diag);
/* A rank's failure: the first is reported, the others only stop working (they still meet at barriers). */
void hd_rank_fail(struct hd_rank *rank, enum hd_err err);
bool hd_rank_idle(const struct hd_rank *rank);                       /* threads.c: has any rank failed? */
void hd_ranks_meet(struct hd_worker *worker);                        /* a barrier of all ranks */

/* fits.c. HD_E_REFUSED, with numbers: the terms exceed the limit, or what of them is not in use yet
 * exceeds what is free. */
struct hd_room {
	uint64_t devices_bytes;           /* what all devices may hold; 0: no limit of theirs */
	uint64_t limit_bytes, free_bytes;
	uint64_t used_bytes;              /* of the terms, by this process */
};
HD_MUST_USE enum hd_err hd_memory_fits(const struct hd_memory_terms *terms, const struct hd_room *room,
	uint32_t ndevices, struct hd_diag *diag);
/* of the machine, for the scripts at hand */
HD_MUST_USE enum hd_err hd_worker_fits(const struct hd_worker *worker, struct hd_diag *diag);
/* pass.c computes these. work.c: what the ranks `rank[]` of a plan run, one for each device, into buffers of
 * their pools from `first` on. NULL: a list without virtual nodes. Nothing is taken yet. */
HD_MUST_USE enum hd_err hd_work_make(struct hd_worker *worker, struct hd_work *work,
	const struct hd_plan *plan, const uint32_t *rank,
	struct hd_arena *arena, struct hd_diag *diag);
/* Makes the pools large enough for the needs of the ranks. */
HD_MUST_USE enum hd_err hd_work_take(struct hd_worker *worker, struct hd_diag *diag);
/* Buffers of rank r's pool from first[r] on are the pass's; its local joins. first NULL: all from 0. */
HD_MUST_USE enum hd_err hd_work_place(struct hd_worker *worker, struct hd_work *work, const uint32_t *first,
	struct hd_arena *arena,
	struct hd_diag *diag);
/* operands.c: room for joins of n roots of so many stages */
HD_MUST_USE enum hd_err hd_operands_cap(struct hd_worker *worker, uint32_t n, uint32_t nstages,
	struct hd_diag *diag);
/* leaves.c: what is known of the step's leaves: nothing yet; what this worker's pass says is known now */
void hd_leaves_begin(struct hd_worker *worker);
void hd_leaves_computed(struct hd_worker *worker, const struct hd_work *work);
/* step.c: what the ranks run next */
void hd_step_work(struct hd_worker *worker, struct hd_work *work);
/* step.c: when a worker is made */
HD_MUST_USE enum hd_err hd_step_tables(struct hd_worker *worker, struct hd_diag *diag);
/* step.c: the beginning and the end of every step. */
HD_MUST_USE enum hd_err hd_step_begin(struct hd_worker *worker, bool digest, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_step_end(struct hd_worker *worker, enum hd_err err, struct hd_step_record *record,
	struct hd_diag *diag);
/* reading.c: how the rows are read: ahead if a core is left for that or a disk may be waited for, else by
 * the devices. */
struct hd_prefetch_spec hd_worker_reading(const struct hd_worker *worker);
/* A reader at the step of the state, which stays as it is: a torn one stays torn. */
HD_MUST_USE enum hd_err hd_worker_reread(struct hd_worker *worker, struct hd_diag *diag);
/* worker.c. Which field of the data each of the first n inputs of a graph is. */
HD_MUST_USE enum hd_err hd_worker_fields(const struct hd_worker *worker, const struct hd_graph *graph,
	uint32_t n,
	uint32_t **map, struct hd_arena *arena, struct hd_diag *diag);
/* worker.c; needs task, spec and arena */
HD_MUST_USE enum hd_err hd_worker_programs(struct hd_worker *worker, struct hd_diag *diag);
/* interp.c: the list of one step; instruction i of it */
void hd_interp_run(struct hd_rank *rank);
void hd_interp_one(struct hd_rank *rank, uint32_t i);
/* An instruction of no list, or of any. began: when the one before it ended, if nothing came between; 0: it
 * looks itself. When it ended, by the clock of the recorder (now_of()). */
uint64_t hd_interp_ins(struct hd_rank *rank, const struct hd_ins *ins, uint32_t i, uint64_t began);
/* The rows of a virtual node in the step that the rank computes. Errors: in rank->diag. */
HD_MUST_USE enum hd_err hd_rank_load(struct hd_rank *rank, uint32_t vn, struct hd_loaded *loaded);
/* All that the wave at hand has loaded, as parts of one run. */
void hd_rank_bind_wave(struct hd_rank *rank, struct hd_part part[HD_MAX_WAVE], struct hd_bind *bind);
/* What slice q of virtual node v, which is loaded as part `ipart`, runs on: rows, random numbers,
 * addresses. */
void hd_rank_bind(struct hd_rank *rank, uint32_t ipart, uint32_t vn, uint32_t slice, struct hd_bind *bind);
/* Moves of the fold script for (part, slice), as addresses; how many. */
uint32_t hd_rank_moves(struct hd_rank *rank, uint32_t ipart, uint32_t slice,
	struct hd_fold fold[HD_MAX_FOLDS]);
/* The leaf of an empty slice, +0.0, for elements [at, at + len) of the flat vector. */
HD_MUST_USE enum hd_err hd_rank_fold_zeros(struct hd_rank *rank, const struct hd_fold *fold, uint32_t n,
	uint64_t at, uint64_t len, struct hd_diag *diag);
/* loss, weight, hits, moments */
void hd_rank_read_out(struct hd_rank *rank, const struct hd_bind *bind, uint32_t vn, uint32_t ipart);
void hd_reduce_chunks(struct hd_rank *rank);                       /* reduce.c: RED for the chunks it owns */
/* reduce.c: w->step->fold or w->step->arrived */
void hd_sum_buckets(struct hd_rank *rank);
bool hd_rank_owned(const struct hd_rank *rank, uint32_t *next, struct hd_chunk *run);      /* reduce.c */
void hd_scalars_make(struct hd_rank *rank);                        /* scalars.c: NORM, after the meeting */
/* The same as far as no norm is needed, when all virtual nodes are computed; false: the step is empty. */
bool hd_scalars_early(const struct hd_worker *worker, struct hd_step_scalars *scalars);
/* Those by which moves are measured, with nothing changed, before a step is finished: of one that is not
 * skipped. */
void hd_scalars_of_moves(const struct hd_worker *worker, struct hd_step_scalars *scalars);
/* update.c: STEP for the chunks it owns. Every rank calls it, idle or not: some optimizers meet inside. */
HD_MUST_USE enum hd_err hd_update_chunks(struct hd_rank *rank, struct hd_diag *diag);
/* The vector of the means (optim.ema), of a job that has them. */
static inline enum hd_vector hd_worker_means(const struct hd_worker *w)
{
	return hd_vec_slot(hd_optims[w->task->optim.kind].nslots);
}
/* An update of elements [at, at + u->len), each parameter by its own rate and decay (param_rates.h). */
HD_MUST_USE enum hd_err hd_update_by_rates(struct hd_rank *rank, const struct hd_update *u, uint64_t at,
	uint64_t *token, struct hd_diag *diag);
/* Unit TENSOR, first pass over segments [first, first + n), with the same: into sums[k][first ...]. */
HD_MUST_USE enum hd_err hd_measure_by_rates(struct hd_rank *rank, const struct hd_update *u, uint32_t first,
	uint32_t n, double *const sums[2], uint64_t *token, struct hd_diag *diag);
/* One run by such scalars and a flat vector of sums, whoever owns it: begun. Of unit ELEMENT alone. */
HD_MUST_USE enum hd_err hd_update_run(struct hd_rank *rank, const struct hd_step_scalars *scalars,
	const struct hd_chunk *run, const float *sums, uint64_t *token, struct hd_diag *diag);
/* Unit TENSOR: sums of squares of a run's parameters and of their moves by the rank's scalars: begun. Unless
 * they say so the slots move. */
HD_MUST_USE enum hd_err hd_measure_run(struct hd_rank *rank, const struct hd_chunk *run, uint64_t *token,
	struct hd_diag *diag);
/* Unit TENSOR: the ratio of the tensor that a parameter is of, by the sums of squares of all its segments. */
float hd_tensor_ratio(const struct hd_task *task, uint32_t param, const double *params, const double *moves);
/* of a learner: w->step->arrived, by the rank's scalars */
void hd_update_buckets(struct hd_rank *rank);
/* sharded.c: of state by stages all lies in a file at first, before it is made */
HD_MUST_USE enum hd_err hd_held_begin(struct hd_worker *worker, struct hd_diag *diag);
/* a step is over: all but the own buckets is dropped */
void hd_held_end(struct hd_worker *worker);
bool hd_worker_owns(const struct hd_worker *worker, uint32_t bucket);
/* sharded.c: new parameters are taken up */
HD_MUST_USE enum hd_err hd_sharded_finish(struct hd_worker *worker, struct hd_diag *diag);
/* reduce.c: one, whole */
/* reduce.c: the further parts of tied parameters in a run of chunks whose own joins are made */
enum hd_err hd_reduce_parts(struct hd_rank *rank, const struct hd_chunk *run, uint64_t *token);
/* What hd_work and hd_pipe_stage hold as `part_join`: the joins for each further part, moved to where it
 * lies, then its addition to `sum` (NULL: none is made). NULL: no memory. */
struct hd_flat_join *hd_joins_of_parts(const struct hd_layout *layout, const struct hd_flat_join *join,
	uint32_t njoins, float *sum, struct hd_arena *arena);
enum hd_err hd_sum_bucket(struct hd_rank *rank, uint32_t bucket, const struct hd_dist_fold *fold,
	struct hd_diag *diag);
void hd_step_mark(struct hd_worker *worker, uint32_t bucket);      /* step.c: it is summed */
/* final.c: which buckets' roots are final while a pass is computed. */
void hd_final_begin(struct hd_worker *worker, struct hd_work *work);
void hd_final_end(struct hd_worker *worker, struct hd_work *work);         /* all that are left */
/* by the rank's device, in its last wave */
void hd_final_folded(void *rank, uint32_t param);
void hd_digest_segments(struct hd_rank *rank);                     /* digest.c */
/* of what steps to come read of a segment */
void hd_digest_earlier(struct hd_worker *worker, uint32_t isegment);
/* after the parameters came from outside */
void hd_digest_frozen(struct hd_worker *worker);
struct hd_hash hd_digest_join(struct hd_worker *worker);
/* versions.c: earlier versions of the parameters (delays.h) */
struct hd_store_shape hd_worker_store_shape(const struct hd_worker *worker);
void hd_versions_begin(struct hd_worker *worker);                    /* all are the newest */
/* copies, after the state came from a table, which has none */
void hd_versions_follow(struct hd_worker *worker);
/* the same of what steps that overlap read ahead (store.h, rule 6) */
void hd_versions_near(struct hd_worker *worker);
/* of the chunks that a rank owns: before STEP, also of a step that is skipped; after it */
void hd_versions_age(struct hd_rank *rank);
void hd_versions_made(struct hd_rank *rank);
/* the same for a run of segments */
void hd_versions_age_run(struct hd_worker *worker, const struct hd_chunk *run);
void hd_versions_made_run(struct hd_worker *worker, const struct hd_chunk *run);
/* adopt.c: rewind() of a state that came with all that steps to come read */
HD_MUST_USE enum hd_err hd_worker_moved(struct hd_worker *worker, struct hd_diag *diag);
/* table.c */
/* the store and all entries are of `updates` updates */
void hd_state_table_stamp(struct hd_worker *worker);
HD_MUST_USE enum hd_err hd_state_table_make(struct hd_worker *worker, struct hd_diag *diag);

#endif
