/* worker_int.h -- what the files of a worker share; not for other rooms.
 *
 * Who writes what during a step: a rank writes its own fields, its buffers, its
 * leaves of `leaf`, and of the shared flat vectors the chunks it owns. Everything
 * else is read-only until the end barrier. */
#ifndef HD_ENGINE_WORKER_INT_H
#define HD_ENGINE_WORKER_INT_H

#include <stdatomic.h>

#include "sys/clock.h"
#include "sys/lock.h"
#include "sys/memory.h"
#include "sys/thread.h"
#include "plan/folds.h"
#include "protocol/seal.h"
#include "engine/forward.h"
#include "engine/lockstep.h"
#include "engine/moments.h"
#include "engine/share.h"
#include "engine/store.h"
#include "engine/worker.h"

/* in a row: then the job has diverged, whatever on_nonfinite says */
enum { HD_MAX_SKIPS = 25,
       HD_PREFETCH_STEPS = 3,             /* read ahead: cheap; more helps only uneven disks */
       HD_PREFETCH_BYTES = 256 << 20,     /* at most this much of them */
       HD_ZEROS_ELEMS = HD_CHUNK_ELEMS };

/* What one virtual node contributes besides its gradient. */
struct hd_leaf { double loss, weight, correct; };

struct hd_loaded { uint64_t rows, first_row; const void *field[HD_MAX_FIELDS]; };

/* What one rank runs of a pass. */
struct hd_rank_work {
	const struct hd_ilist *list;      /* borrowed from the plan, or hd_ends_list */
	struct hd_fold_script script;
	uint32_t *wave;                   /* [script.nvns_here] number of the wave of each */
	float  **buffer;                  /* [script.nbuffers] of the rank's pool */
	struct hd_loaded *loaded;         /* [HD_MAX_WAVE], or all virtual nodes of the rank in lockstep */
};

/* A pass of a step (share.h) for the devices: which leaves each runs, and what becomes of them. */
struct hd_work {
	struct hd_rank_work *rank;        /* [ndevices] */
	uint8_t *has;                     /* [nvns] is it a leaf of this pass? */
	uint32_t nleaves;
	/* of the worker: those of its ranks, joined as far as both operands are here */
	uint32_t nroots;
	struct hd_left *root;             /* [nroots] names; items are flat vectors below */
	/* roots of the ranks, then joins, in place of their left operands */
	float  **item;
	struct hd_flat_join *join; uint32_t njoins;       /* the same, as addresses */
	/* [nbuckets] gradients still to be folded into it before its roots are final (final.c); 0: they
	 * are */
	atomic_uint *left;
	/* RED makes the sum: its one root is value(H,0), and nobody else takes part */
	bool whole;
	bool computed;
};

/* What a worker needs to take part under a view: made by hd_share_prepare(), immutable after. */
struct hd_share {
	struct hd_arena arena;
	const struct hd_plan *plan;       /* borrowed; NULL: none */
	struct hd_work work;              /* number 0 */
	uint32_t *owner;                  /* [nchunks] the device that joins, updates and hashes it */
	/* flat: where sums come to lie. The root itself when the pass is whole */
	float *sum;
	/* flat: where new parameters come to lie, of sharded state; a root's buffer */
	float *parm;
	bool alone;                       /* no rank of another worker */
	bool needs_parm;                  /* there is no root for them */
	bool needs_sum;                   /* no gradient buffer is free for sums */
	uint64_t nplaces, nreceived, nlinks;
};

/* What a link of the hub takes once it is used: places of what it sends and of what it is sent, each in a
 * page of 2 MiB. */
#define HD_LINK_BYTES (UINT64_C(4) << 20)

/* The roots of all workers, as hd_share_operands() was told. */
struct hd_operands {
	struct hd_tnode *root; uint32_t n, cap;
	struct hd_join *join; uint32_t njoins, result;
	struct hd_flat_join *flat_join;   /* [ndevices][cap] of the bucket at hand */
	float **item;                     /* [ndevices][2 cap] */
};

/* What the largest of the plans at hand needs of a rank: counted before it is taken. */
struct hd_rank_need { uint32_t nbuffers, ntemps, narenas; };

struct hd_rank {
	struct hd_worker *worker;
	uint32_t id;
	struct hd_device *device;         /* owned */
	struct hd_thread thread;          /* ranks above 0 */
	struct hd_rank_need need;
	struct hd_rank_work *work;        /* of the pass at hand */
	/* [buffer_cap] flat gradients, from the device: the pool of all passes */
	float  **buffer;
	uint32_t buffer_cap;
	float   *temp;                    /* temporary buffers of the folds */
	uint64_t temp_bytes;
	uint8_t *activations;             /* of the rows at hand: training, or between steps a forward pass */
	const void **input;               /* [max inputs] as the graph orders them */
	uint8_t *eval_input[HD_MAX_FIELDS];       /* rows read by this rank itself (forward passes) */
	/* the wave at hand: virtual nodes script.vn[first_ivn ..], taken by LD */
	uint32_t first_ivn, nloaded, nforward, nback, nwave;
	/* [narenas] in lockstep: activations of each virtual node of the rank */
	uint8_t **arena;
	uint32_t narenas;
	struct hd_fold fold[HD_MAX_WAVE][HD_MAX_FOLDS];
	struct hd_step_scalars scalars;
	uint64_t wait_data_ns;
	enum hd_err err;
	struct hd_diag diag;
};

/* Outputs of a program that the worker reads; HD_NONE where the graph has none. */
struct hd_readout { uint32_t loss, weight, correct, logits; };

/* What of a list runs in one go: one worker alone needs no exchange between RED and NORM. */
enum hd_section { HD_SECTION_ALL, HD_SECTION_COMPUTE, HD_SECTION_FINISH };

struct hd_worker {
	const struct hd_task *task;       /* borrowed */
	struct hd_worker_spec spec;
	struct hd_arena arena;
	struct hd_program train, infer;
	struct hd_readout train_out, infer_out;
	uint64_t touched_bytes[2][HD_MAX_VARIANTS];       /* of F and of B, for the recorder */
	const struct hd_device_ops *ops;
	struct hd_rank *rank;             /* [spec.ndevices] */
	struct hd_barrier barrier;
	uint32_t *input_field, *infer_field;      /* graph input -> field of the data set */
	struct hd_hash fingerprint;
	struct hd_clock clock;            /* for waits that are reported, never for decisions */

	struct hd_param_store *store;     /* owned: parameters, slots, running statistics */
	float *zeros;                     /* HD_ZEROS_ELEMS of +0.0: the leaf of an empty virtual node */
	struct hd_moments moments;        /* of the step at hand */
	struct hd_lockstep lockstep;
	/* the last digest that a step told, of X_told_at; 0: none. The record is that of the step going
	 * on. */
	struct hd_hash told;
	uint64_t told_at;
	uint64_t flat_bytes;              /* of gradients */
	uint64_t table_bytes;             /* of the programs, besides what they run on */
	struct hd_memory_info before;     /* of the process, before anything was taken */
	struct hd_state state;
	int64_t step, samples, updates, skips;    /* entries of the state table; skips: in a row */
	double  epoch_loss, epoch_weight, epoch_correct;

	/* shares: the adopted one, and the one made beside it */
	struct hd_share shares[2];
	struct hd_share *share, *next;    /* NULL: none */
	bool sharded;                     /* the job's state */
	uint8_t *own, *slot_here;         /* [nbuckets] slots that are brought on here; that take memory */
	/* a flat of its own for sums, when every gradient buffer is a root's; NULL: never needed yet */
	float *sum;
	float *places; uint64_t nplaces;  /* for roots of other workers */
	/* by the shares at hand */
	uint64_t need_places, need_received, need_links; bool need_sum, need_moments;

	/* the step at hand */
	bool begun;
	struct hd_work *work;             /* being computed: the share's, or the last of repair[] */
	struct hd_arena repair_arena;
	struct hd_work repair[HD_SHARE_PASSES - 1];
	atomic_uint nrepairs;             /* begun; others read it while the next one is made */
	hd_share_watcher *watch; void *watch_user;        /* NULL: nobody asks before a pass is computed */
	bool early;                       /* the pass at hand is watched, and its roots need no joins */
	uint32_t *bucket_params;          /* [nbuckets] parameters that lie in it, wholly or in part */
	struct hd_operands operands;
	struct hd_segment *bucket_segment;        /* [nsegments] counted from the beginning of their bucket */
	uint8_t *summed; uint32_t nbuckets, nsummed;     /* [nbuckets] */
	/* while ranks work on them */
	const struct hd_share_fold *fold; const uint32_t *arrived; uint32_t nfolds;
	/* a device for buckets that another thread sums while a pass is computed (aside.c); none until it
	 * is opened */
	struct hd_rank aside;
	struct hd_lock aside_lock;        /* of computing, and held while it sums one */
	bool computing;
	uint64_t *bucket_digest;          /* [nbuckets] */
	struct hd_step_scalars scalars;   /* of the step finished last */
	uint64_t scalars_step, scalars_updates;

	struct hd_leaf *leaf;             /* [nvns] */
	uint8_t *known; uint32_t nknown;  /* [nvns] which of them belong to the step */
	double *segment_sumsq;            /* [nsegments] of the gradient */
	/* [nsegments] of parameters and of directions: optimizers of unit TENSOR */
	double *unit_sumsq[2];
	struct hd_prefetch *prefetch;
	/* [nvns][per_vn] names of the rows that were loaded for the step at hand; NULL: nobody asks
	 * (trace.samples) */
	struct hd_sample *took;
	uint64_t *ntook;                  /* [nvns] */
	bool spare_core;                  /* the threads of all devices leave one of the usable cores */

	enum hd_section section;          /* of the lists, to run */

	/* one activity of all ranks between two meetings */
	void (*activity)(struct hd_rank *rank);
	bool stopping, launched;          /* launched: all ranks exist (or none will); under launch_lock */
	struct hd_lock launch_lock;
	struct hd_cond launch_cond;
	atomic_bool failed;
	atomic_bool torn;                 /* an update failed: the state is of no step */
	/* the last step failed before its update: the reader must go back */
	bool again;
	uint64_t step_rows;
	bool want_digest;
	/* the last: [nparams] */
	struct hd_hash *segment_digest[1 + HD_MAX_SLOTS], *tensor_digest, *frozen_digest;
	struct hd_step_record record;     /* written by rank 0 */
	struct hd_seals seals;
	const struct hd_forward_job *forward;     /* forward.c: while ranks run it */
	/* instructions of rank 0 done; the longest since hd_worker_pulse() */
	_Atomic uint64_t progress, longest_ns;
	atomic_uint next_block;
	struct hd_leaf *block;            /* [blocks] of a forward pass */
};

static inline uint64_t hd_worker_activation_bytes(const struct hd_worker *w)
{
	return w->train.memory.len_bytes > w->infer.memory.len_bytes ? w->train.memory.len_bytes :
		w->infer.memory.len_bytes;
}

/* Lets all ranks (this thread is rank 0) run `activity`, and waits for them. */
HD_MUST_USE enum hd_err hd_worker_all(struct hd_worker *worker, void (*activity)(struct hd_rank *rank),
	struct hd_diag *diag);
/* A rank's failure: the first is told, the others only stop working (they still meet at barriers). */
void hd_rank_fail(struct hd_rank *rank, enum hd_err err);
static inline bool hd_rank_idle(const struct hd_rank *rank) { return atomic_load_explicit(&rank->worker->failed, memory_order_relaxed); }

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
/* step.c: room for joins of n roots */
HD_MUST_USE enum hd_err hd_operands_cap(struct hd_worker *worker, uint32_t n, struct hd_diag *diag);
/* step.c: what the ranks run next */
void hd_step_work(struct hd_worker *worker, struct hd_work *work);
/* step.c: when a worker is made */
HD_MUST_USE enum hd_err hd_step_tables(struct hd_worker *worker, struct hd_diag *diag);
/* step.c: the beginning and the end of every step. */
HD_MUST_USE enum hd_err hd_step_begin(struct hd_worker *worker, bool digest, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_step_end(struct hd_worker *worker, enum hd_err err, struct hd_step_record *record,
	struct hd_diag *diag);
/* adopt.c: how the rows are read: ahead if a core is left for that or a disk may be waited for, else by
 * the devices. */
struct hd_prefetch_spec hd_worker_reading(const struct hd_worker *worker);
/* A reader at the step of the state, which stays as it is: a torn one stays torn. */
HD_MUST_USE enum hd_err hd_worker_reread(struct hd_worker *worker, struct hd_diag *diag);
/* worker.c; needs task, spec and arena */
HD_MUST_USE enum hd_err hd_worker_programs(struct hd_worker *worker, struct hd_diag *diag);
void hd_interp_run(struct hd_rank *rank);                          /* interp.c: the list of one step */
/* What slice q of virtual node v, which is loaded as part `ipart`, runs on: rows, random numbers,
 * addresses. */
void hd_rank_bind(struct hd_rank *rank, uint32_t ipart, uint32_t vn, uint32_t slice, struct hd_bind *bind);
/* Moves of the fold script for (part, slice), as addresses; how many. */
uint32_t hd_rank_moves(struct hd_rank *rank, uint32_t ipart, uint32_t slice,
	struct hd_fold fold[HD_MAX_FOLDS]);
/* loss, weight, hits, moments */
void hd_rank_read_out(struct hd_rank *rank, const struct hd_bind *bind, uint32_t vn, uint32_t ipart);
void hd_reduce_chunks(struct hd_rank *rank);                       /* reduce.c: RED for the chunks it owns */
void hd_sum_buckets(struct hd_rank *rank);                         /* reduce.c: w->fold or w->arrived */
bool hd_rank_owned(const struct hd_rank *rank, uint32_t *next, struct hd_chunk *run);      /* reduce.c */
void hd_scalars_make(struct hd_rank *rank);                        /* scalars.c: NORM, after the meeting */
/* update.c: STEP for the chunks it owns. Every rank calls it, idle or not: some optimizers meet inside. */
HD_MUST_USE enum hd_err hd_update_chunks(struct hd_rank *rank, struct hd_diag *diag);
/* of a learner: w->arrived, by the rank's scalars */
void hd_update_buckets(struct hd_rank *rank);
/* sharded.c: new parameters are taken up */
HD_MUST_USE enum hd_err hd_sharded_finish(struct hd_worker *worker, struct hd_diag *diag);
/* reduce.c: one, whole */
enum hd_err hd_sum_bucket(struct hd_rank *rank, uint32_t bucket, const struct hd_share_fold *fold,
	struct hd_diag *diag);
void hd_step_mark(struct hd_worker *worker, uint32_t bucket);      /* step.c: it is summed */
void hd_aside_computing(struct hd_worker *worker, bool computing); /* aside.c: waits for the bucket at hand */
/* final.c: which buckets' roots are final while a pass is computed. */
void hd_final_begin(struct hd_worker *worker, struct hd_work *work);
void hd_final_end(struct hd_worker *worker, struct hd_work *work);         /* all that are left */
/* by the rank's device, in its last wave */
void hd_final_folded(void *rank, uint32_t param);
void hd_digest_segments(struct hd_rank *rank);                     /* digest.c */
/* after the parameters came from outside */
void hd_digest_frozen(struct hd_worker *worker);
struct hd_hash hd_digest_join(struct hd_worker *worker);
/* table.c */
/* the store and all entries are of `updates` updates */
void hd_state_table_stamp(struct hd_worker *worker);
HD_MUST_USE enum hd_err hd_state_table_make(struct hd_worker *worker, struct hd_diag *diag);

#endif
