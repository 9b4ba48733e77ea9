/* dist.h -- a training step that several workers run together (data parallel, sharded state, stages), as one
 * of them runs it.
 *
 * The plan of a view names the ranks of all workers; a worker runs its own. The words:
 *
 *   bucket    a run of consecutive chunks of the flat gradient (layout.h): the unit that is summed,
 *             owned and updated. It may hold segments of several stages
 *   run       a bucket, or a *piece*: the gradient of a tied parameter is summed apart for each use; the
 *             first part lies where the parameter does, further ones behind (layout.h), and a piece is
 *             what of a further part belongs to one bucket. What one transfer of a partial sum holds
 *   leaf      what one virtual node yields: its gradient and its metrics
 *   pass      a set of virtual nodes that one worker computes in a step: number 0 is all that the view gives
 *             it, of all stages (view.h counts one a stage); later ones are repairs after a loss
 *   root      a partial sum that a pass yields: a node of the canonical tree (plan/tree.h) and a flat vector
 *   sum       of a bucket: the roots of all workers, added in the order of the tree; then the sums of its
 *             pieces, made likewise, in their order
 *
 * Whoever moves bytes between workers calls, in each step:
 *
 *	begin -> compute -> [repair ...] -> roots and leaves go out, those of others come in
 *	      -> owner: operands, fold    others: sum put at hd_dist_sum_at(), arrived
 *	      -> finish: NORM, seal, STEP, counters
 *
 * Between two steps it may call: adopt() of a part that prepare() has made, the state transfer below, and
 * what worker.h allows. hd_worker_step() is begin, compute and finish in one call, for a view of one worker;
 * it runs the same code.
 *
 * 1. The bits are those of one worker on one device, whatever the view, the repairs and the order in which
 *    messages arrive.
 * 2. Of each bucket a worker holds its own roots, or the sum, or both: the roots stay intact until fold() or
 *    arrived() has marked the sum as complete. A sum that is received half does no harm.
 * 3. Sums stay until the next compute() or repair(): between finish() and the next begin() they can still be
 *    sent to others. hd_dist_summed() is about the step that was begun last.
 * 4. No parameter changes before finish(). A failure before it leaves the state as it was at begin().
 * 5. Nothing is allocated between adopt() and the next prepare(), but by repair(), by probe(), by operands()
 *    beyond those of the view, by hd_dist_places(), and once by hd_dist_aside_open().
 * 6. A worker may have no virtual nodes (no rank of the plan is its own), or no plan yet (a joiner during
 *    state transfer). Such a worker has no roots; it folds, or only receives.
 *
 * Sharded state (comm.sync: sharded; ZeRO-1): a worker updates only some buckets, its *own*, and receives the
 * new parameters of the others:
 *
 *	... owner: operands, fold    others of a bucket's chain: sum put, arrived
 *	                             sums of squares of all buckets put at hd_dist_norm_at()
 *	-> update: NORM, slots and new parameters of the own buckets, at hd_dist_parm_at()
 *	           those of the others put there
 *	-> finish: seal, parameters taken up, counters
 *
 *  7. hd_dist_parm_at() may be memory of the bucket's roots. It may be written once any worker has the new
 *     parameters, since no worker needs these roots then.
 *
 * State by stages (comm.sync: stages): a worker holds parameters and slots of some buckets, again its *own*.
 * A step is that of replicated state but for its end: the sums of the own buckets are here, of the others the
 * sums of squares at hd_dist_norm_at(); finish() updates the own ones. The functions of slots below then mean
 * parameters and slots. No digests are made: no worker has all of the state.
 *
 * Delayed updates (delays.h): what steps to come read of earlier parameters is where the parameters are,
 * moves on with them at finish(), and goes with them where they go: to a joiner, and of state by stages with
 * the slots of a bucket.
 *
 * Steps that overlap (overlap.h; the plan says so): a step that *goes on* begins the next one inside its
 * compute(), by the same lists at all workers. hd_dist_overlap() says before begin() whether it does, and
 * whether what was begun of this one counts. Nothing of it is state: whatever comes between forgets it.
 *
 * Norms over the global batch (model.bn: global) synchronise all virtual nodes at every norm: compute() of
 * a worker ends only if all workers of the view compute (mail, below). There is no repair: after a loss the
 * step is finished from its sums, or begun again.
 *
 * Ownership: everything is the worker's; addresses of roots, sums and receive buffers are valid until
 * adopt(). Threads: the worker's caller, but for what says otherwise: watch(), final(), fence(), and
 * mail_*() by the thread of the wire. While it is inside compute(), other threads may read and write at
 * addresses that they got before, as the rules above allow. prepare() needs no step: call it wherever the
 * caller waits. */
#ifndef HD_ENGINE_DIST_H
#define HD_ENGINE_DIST_H

#include "engine/worker.h"

/* ---- the view ---- */

enum { HD_DIST_NOBODY = UINT16_MAX };

struct hd_dist_view {
	/* borrowed until another one was adopted; NULL: none yet (a joiner) */
	const struct hd_plan *plan;
	/* this worker's number in plan.worker[]: the ranks that have it are its devices, in their order;
	 * HD_DIST_NOBODY: no rank is */
	uint16_t worker;
	uint64_t nplaces;                 /* receive buffers, see hd_dist_places() */
	/* receive buffers that the caller itself takes (relay.h): counted with the memory of the worker */
	uint64_t received_bytes;
	/* of these, what nothing is written to while the view stays: a prediction leaves it out */
	uint64_t idle_received_bytes;
	/* [nbuckets] of state by stages: 1: those that it holds; NULL: all. Read by prepare() alone */
	const uint8_t *held;
	/* Another member evaluates and writes checkpoints: the room for that is reserved here, too, and a
	 * prediction leaves it out */
	bool rests;
	/* [nbuckets] of sharded state: 1: those whose slots it holds; NULL: all. Read by prepare() alone */
	const uint8_t *slots;
};

/* Makes the part of a coming view, beside the one in use; a second call replaces the first. HD_E_BADPLAN: the
 * checker refuses the plan, or it has other ranks than there are devices (a pipeline may have fewer: a device
 * without a stage takes part in the end of a step). HD_E_REFUSED: it does not fit into memory. A failure
 * changes nothing. */
HD_MUST_USE enum hd_err hd_dist_prepare(struct hd_worker *worker, const struct hd_dist_view *view,
	struct hd_diag *diag);
/* Predicts what memory the worker would need under that view (hd_worker_memory()); takes none. Errors as of
 * prepare(). */
HD_MUST_USE enum hd_err hd_dist_memory(struct hd_worker *worker, const struct hd_dist_view *view,
	struct hd_memory_terms *terms, struct hd_diag *diag);
bool hd_dist_prepared(const struct hd_worker *worker);
/* Between two steps: switches to the prepared part. Neither fails nor waits. */
void hd_dist_adopt(struct hd_worker *worker);
void hd_dist_forget(struct hd_worker *worker);             /* drops a prepared part */

/* The roots of a stage in pass 0 of `worker` under a plan, ascending by the leaves they cover: what others
 * expect of it. Pure. HD_E_NOSPACE: more than `cap`. `has` is scratch of nvns bytes. */
HD_MUST_USE enum hd_err hd_dist_roots_of(const struct hd_plan *plan, uint16_t worker, uint16_t stage,
	uint8_t *has, struct hd_tnode *root, uint32_t cap, uint32_t *nroots);

/* Receive buffers for roots of other workers: of one bucket each, numbered, 64-byte aligned, in memory of the
 * worker's devices, counted by hd_worker_memory(). An owner needs (buckets that it has open at a time) x
 * (roots of other workers). view.nplaces exist from adopt() on. hd_dist_places() makes them at least n, when
 * a repair needs more; old addresses are void then. */
HD_MUST_USE enum hd_err hd_dist_places(struct hd_worker *worker, uint64_t n, struct hd_diag *diag);
float *hd_dist_place(const struct hd_worker *worker, uint64_t i);

/* ---- a step ---- */

enum { HD_DIST_PASSES = 16 };            /* of one step, repairs included */

/* Steps that overlap, before adopt() and begin(). `ahead`: what the step before began of this one counts;
 * else it is forgotten, and so are its letters: then no earlier one may come any more. `goes_on`: the step
 * begins the next one. All workers say the same of a step. Without this call nothing counts and nothing is
 * begun. Of a plan whose steps do not overlap it does nothing. HD_E_BUG: nothing was begun that could
 * count. */
HD_MUST_USE enum hd_err hd_dist_overlap(struct hd_worker *worker, bool ahead, bool goes_on,
	struct hd_diag *diag);
/* Of a step that goes on, between the end of its compute() and the begin of the next one, before or after
 * finish(): is there something of the next that can be run now? Of a pipeline: what needs nothing of what
 * this step makes. Of whole models over several workers: the first forward pass, on the new parameters that
 * are here (onset.h); where slots lie here, once leaves_put() has brought all metrics, on summed buckets. */
bool hd_dist_has_ahead(const struct hd_worker *worker);
/* Then: runs it, as far as mail comes. It returns at once when it was called back since hd_dist_calls() was
 * `seen`, else when it is, when there is no more or when the epoch is fenced. What fails is said by compute()
 * of the next step. Meanwhile another thread may sum buckets, as inside compute(). Nothing follows from how
 * far it came, at this worker or at others. Returns for how many ns devices waited for mail, on average. */
uint64_t hd_dist_run_ahead(struct hd_worker *worker, uint32_t seen);
/* What has to come before what runs ahead may read new parameters, bits: the metrics of all, where slots lie
 * here; the parameters themselves, where not. 0: it reads none before finish(). */
enum hd_dist_wants { HD_DIST_WANTS_METRICS = 1, HD_DIST_WANTS_PARAMETERS = 2 };
unsigned hd_dist_wants(const struct hd_worker *worker);
/* Of what runs ahead: the bucket that the next node needs and that is not here; UINT32_MAX: it does not stand
 * still for one. */
uint32_t hd_dist_lacks(const struct hd_worker *worker);
/* Sharded state, with the metrics of all: buckets that this worker is to update in the step at hand, 0: it is
 * not. What runs ahead may bring on those that it updated in the step before, too (onset.h, rule 8). */
enum { HD_DIST_BRINGS = 1, HD_DIST_SENDS };      /* SENDS: others wait for its new parameters */
void hd_dist_brings(struct hd_worker *worker, const uint8_t *own);
/* `watch` is called where the new parameters of such a bucket (SENDS) are at hd_dist_parm_at(), before
 * update(), on the thread of a device: as of hd_dist_watch(). They stay as they are until the step ends. */
typedef void hd_dist_early_watcher(void *user, uint32_t bucket);
void hd_dist_watch_early(struct hd_worker *worker, hd_dist_early_watcher *watch, void *user);
/* Sharded state: the new parameters of the bucket are at hd_dist_parm_at(): what runs ahead may read them. */
void hd_dist_readable(struct hd_worker *worker, uint32_t bucket);
/* Any thread. */
uint32_t hd_dist_calls(const struct hd_worker *worker);
void hd_dist_call(struct hd_worker *worker);
/* Begins step hd_worker_at(); `digest`: finish() also makes the state digest. */
HD_MUST_USE enum hd_err hd_dist_begin(struct hd_worker *worker, bool digest, struct hd_diag *diag);
/* Pass 0: loads samples, runs forward and backward, folds the roots. At most once in a step; a worker without
 * virtual nodes need not call it. */
HD_MUST_USE enum hd_err hd_dist_compute(struct hd_worker *worker, struct hd_diag *diag);
/* A further pass, over n virtual nodes (ascending) that were not computed here. They are divided evenly among
 * the worker's devices and use buffers of their own, so earlier roots stay. Samples are read at once, not
 * ahead. *pass: its number. */
HD_MUST_USE enum hd_err hd_dist_repair(struct hd_worker *worker, const uint32_t *vn, uint32_t n,
	uint32_t *pass, struct hd_diag *diag);

/* Mail between different workers: activations to the stage after and gradients of activations to the stage
 * before (pipeline parallelism), what shards of a stage on several workers send one another, or moments to
 * every worker that meets this one at a norm over the global batch. While compute() runs, one other thread,
 * that of the wire, carries it: it takes letters one by one,
 * posts the buffers of those to receive and sends those to send, and says what arrived. Both ends of a letter
 * name it alike. Lengths hold for every step of a plan, whatever its rows.
 *
 *	hd_dist_begin(), or of moments hd_dist_compute()
 *	hd_dist_mail_next() -> receive: post `bytes`; when filled, hd_dist_mail_arrived()
 *	                    -> send: send `bytes`; when they are out or were cancelled, hd_dist_mail_sent()
 *	hd_dist_compute() returns HD_E_STALE after hd_dist_fence(): hd_dist_abandon()
 *
 * The buffers of letters to receive are void once their step is over. Those to send are the wire's until
 * hd_dist_mail_sent(), also beyond the step; a plan is not given up before all are back. */
struct hd_dist_letter {
	uint8_t kind;                     /* HD_XFER_ACTIVATIONS, _GRADIENTS, _SHARDS or _MOMENTS */
	bool send;
	/* of the receiver; of moments the sync (meeting.h). Where steps overlap, in those of odd numbers
	 * behind all stages */
	uint16_t stage;
	uint32_t vn;                      /* 0 of moments */
	uint32_t number;                  /* of shards (parcel.h): below hd_dist_nparcels(); else 0 */
	uint16_t from, to;                /* workers of the plan */
	uint64_t step;                    /* the open one, or where steps overlap the one after it */
	uint32_t epoch;                   /* of that step (hd_dist_epoch()) */
	uint8_t *bytes;
	uint64_t len;                     /* in bytes, at least 1 */
	void *line;                       /* the worker's own mark */
};
/* The letters of every step of the plan in use between this worker and `peer`: those that this one sends, or
 * those that it receives; `step`, `epoch`, `bytes` and `line` are not set. Returns how many. `letter` NULL:
 * only that. */
size_t hd_dist_mail_list(const struct hd_worker *worker, uint16_t peer, bool send,
	struct hd_dist_letter *letter);
/* Called on the threads of devices, and in begin(): there are letters. It must only wake the thread of the
 * wire. */
typedef void hd_dist_mailer(void *user);
void hd_dist_mail_watch(struct hd_worker *worker, hd_dist_mailer *mailer, void *user);
bool hd_dist_mail_next(struct hd_worker *worker, struct hd_dist_letter *letter);         /* false: none */
void hd_dist_mail_sent(struct hd_worker *worker, const struct hd_dist_letter *letter);
/* The wire is gone, and with it what it had: nothing it borrowed is waited for. */
void hd_dist_mail_void(struct hd_worker *worker);
/* HD_E_STALE: no step waits for it. */
HD_MUST_USE enum hd_err hd_dist_mail_arrived(struct hd_worker *worker, const struct hd_dist_letter *letter,
	struct hd_diag *diag);
/* Any thread: no mail of epochs before `epoch` comes any more. compute() of a plan with mail in a step of
 * such an epoch ends soon with HD_E_STALE, also if it is called later, unless all its mail is here. Nothing
 * else is touched. */
void hd_dist_fence(struct hd_worker *worker, uint32_t epoch);
/* Between two steps: those that begin now are of that epoch. Of epoch 0 before the first call. */
void hd_dist_epoch(struct hd_worker *worker, uint32_t epoch);

/* ---- the rest of a step after workers are lost, of plans with shadows that work (rest.h) ---- */

/* After compute() has ended, by a fence or by itself: how far the step is here, and the end of its mail.
 * at[r] of the own ranks r of the plan: the next instruction; arrived: [stages * virtual nodes] bits of
 * hd_arrived (pipeline/failover.h) of what came to them. The progress of a step is the at[] of all and their
 * bits together. HD_E_REFUSED: this step cannot be gone on with. */
HD_MUST_USE enum hd_err hd_dist_stopped(struct hd_worker *worker, uint32_t *at, uint8_t *arrived,
	struct hd_diag *diag);
/* What is known of a step after a loss, of all its workers alike. */
struct hd_dist_loss {
	const uint32_t *at;               /* [ranks of the plan] */
	const uint8_t *arrived;           /* [stages * virtual nodes] */
	const bool *lost;                 /* [ranks] */
	/* [ranks] the worker of each from now on, of a lost rank that of the rank before it; NULL: their
	 * numbers are those of the plan */
	const uint16_t *worker;
};
/* The step goes on in that epoch without the lost ranks, by the progress of those that live; all of them call
 * this with the same. Then compute() runs what is left here, after which roots, leaves and sums are had as
 * ever: of the stage of a lost rank at the worker of the rank before it. Buckets become final once more. No
 * letter of an earlier epoch may come any more. *redone: virtual nodes whose gradient this worker makes in
 * the place of lost ranks. HD_E_REFUSED: as hd_failover() has it, or as above; the step is to be abandoned,
 * as after every other error. */
HD_MUST_USE enum hd_err hd_dist_rest(struct hd_worker *worker, uint32_t epoch,
	const struct hd_dist_loss *loss, uint32_t *redone, struct hd_diag *diag);

/* Which virtual node to probe in a step: one that has samples, another one each step. */
uint32_t hd_dist_probed(const struct hd_worker *worker, uint64_t step);
/* Between two steps: computes virtual node vn of step hd_worker_at() from the present state, and hashes its
 * gradients and metrics into *bits. It is part of no step and changes no result that may still be read, nor
 * what was begun of that step. It needs the time and the memory of a repair of this virtual node; at norms
 * over the global batch no other one brings anything. HD_E_REFUSED: too little memory, or a step is under
 * way. */
HD_MUST_USE enum hd_err hd_dist_probe(struct hd_worker *worker, uint32_t vn, struct hd_hash *bits,
	struct hd_diag *diag);

uint32_t hd_dist_nstages(const struct hd_worker *worker);             /* of the plan in use */
/* Letters of a plan with shadows of stages, or of one whose steps overlap, may also be to these: stages
 * behind all others. 0: none are. */
uint32_t hd_dist_nshadows(const struct hd_worker *worker);
uint32_t hd_dist_nparcels(const struct hd_worker *worker);            /* numbers of a stage's shards; or 0 */
/* Syncs of a step in both phases; 0: no norms over the global batch. */
uint32_t hd_dist_nsyncs(const struct hd_worker *worker);
/* Do rows of the step at hand become state, and are they not here? */
bool hd_dist_wants_rows(const struct hd_worker *worker);
/* How long the last compute() waited for moments of other workers. */
uint64_t hd_dist_awaited_ns(const struct hd_worker *worker);
/* Passes of this step; pass 0 is counted even if it is not computed. */
uint32_t hd_dist_npasses(const struct hd_worker *worker);
uint32_t hd_dist_nleaves(const struct hd_worker *worker, uint32_t pass);
/* 0 while the pass is not computed. Ascending order of cover. */
uint32_t hd_dist_nroots(const struct hd_worker *worker, uint32_t pass);
struct hd_tnode hd_dist_root(const struct hd_worker *worker, uint32_t pass, uint32_t i);
/* The stage of the plan that it is of: roots ascend by stage first. A bucket may hold segments of several
 * stages; of root i only those of its own stage count. */
uint16_t hd_dist_root_stage(const struct hd_worker *worker, uint32_t pass, uint32_t i);
/* Does the run hold what that stage makes, under the plan in use? A piece is all of one stage. */
bool hd_dist_run_has(const struct hd_worker *worker, uint32_t run, uint16_t stage);
/* Run r of root i: hd_layout_run(r).len floats. */
const float *hd_dist_root_at(const struct hd_worker *worker, uint32_t pass, uint32_t i, uint32_t run);

/* Overlap of computing and sending: the roots of a bucket may be final, and can be sent, before the pass is
 * done. `watch` is called once for each bucket of each pass, inside compute() or repair(), on the thread of a
 * device: it must only take a note, wake a thread and return. If roots of several devices are joined, all
 * buckets become final together, at the end. NULL: no calls, no cost. */
typedef void hd_dist_watcher(void *user, uint32_t pass, uint32_t bucket);
void hd_dist_watch(struct hd_worker *worker, hd_dist_watcher *watch, void *user);
/* Are the roots of the bucket final? Then the calling thread may read them at hd_dist_root_at(). Any thread,
 * from begin() of the step on. */
bool hd_dist_final(const struct hd_worker *worker, uint32_t pass, uint32_t bucket);

/* Sets the roots of all workers that the next folds add, with their stages (NULL: all of stage 0). Those of
 * each stage must partition the leaves of the tree (HD_E_INVAL otherwise; it names the leaf). The same roots
 * as last time cost nothing. A single root is the sum already; its fold copies it. */
HD_MUST_USE enum hd_err hd_dist_operands(struct hd_worker *worker, const struct hd_tnode *root,
	const uint16_t *stage, uint32_t n, struct hd_diag *diag);
/* The fold of one bucket: operand[i] is where this bucket of root i of the n of hd_dist_operands() lies: at
 * hd_dist_root_at() if it is an own one, else where it was received; operand[k n + i] is piece k - 1 of the
 * bucket likewise. NULL: the run has nothing of the root's stage. They are overwritten. */
struct hd_dist_fold { uint32_t bucket; const float *const *operand; };
/* Adds the roots of n buckets, distributed over the devices, and takes the sums of squares. The buckets are
 * summed then. */
HD_MUST_USE enum hd_err hd_dist_fold(struct hd_worker *worker, const struct hd_dist_fold *fold, uint32_t n,
	struct hd_diag *diag);

/* Background reduce: while the worker's caller is inside compute() or repair(), one other thread may sum one
 * bucket: as operands() and fold() would, or, with operand NULL, as arrived() would. The own roots of that
 * bucket must be final, or its sum must have arrived, which implies it. *taken false: the caller is not
 * inside, nothing was done. hd_dist_aside_open() makes the device for it, once. */
HD_MUST_USE enum hd_err hd_dist_aside_open(struct hd_worker *worker, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_dist_aside(struct hd_worker *worker, const struct hd_tnode *root,
	const uint16_t *stage, uint32_t nroots, const struct hd_dist_fold *fold, bool *taken,
	struct hd_diag *diag);

/* Likewise, of sharded state: brings on the parameters of a bucket that is summed, before the metrics of the
 * step are known, where it can (onset.h, rule 9): they are at hd_dist_parm_at(), and may go. Its slots are
 * here, and were updated in the step before. */
HD_MUST_USE enum hd_err hd_dist_aside_bring(struct hd_worker *worker, uint32_t bucket, bool *brought,
	struct hd_diag *diag);

float *hd_dist_sum_at(const struct hd_worker *worker, uint32_t bucket);
/* The sums of n buckets were received at hd_dist_sum_at(), completely: takes their sums of squares. The
 * buckets are summed then. */
HD_MUST_USE enum hd_err hd_dist_arrived(struct hd_worker *worker, const uint32_t *bucket, uint32_t n,
	struct hd_diag *diag);
bool hd_dist_summed(const struct hd_worker *worker, uint32_t bucket);
uint32_t hd_dist_unsummed(const struct hd_worker *worker);             /* how many are missing */

/* The metrics of n leaves (loss, weight, hits, norm moments) as bytes, little endian, leaves ascending, k
 * numbers per leaf as the job has it:
 *
 *	u32 version, u32 n, n x { u32 leaf, u32 0, f64 x k }
 *
 * hd_dist_leaves_bytes(): the length. */
uint64_t hd_dist_leaves_bytes(const struct hd_worker *worker, uint32_t n);
/* Writes those of a pass that was computed. */
void hd_dist_leaves_get(const struct hd_worker *worker, uint32_t pass, uint8_t *bytes);
/* Writes those of all V leaves; none is missing. */
void hd_dist_table_get(const struct hd_worker *worker, uint8_t *bytes);
/* Reads such bytes of the worker with that number in the plan: of a plan of several stages, what its stages
 * say. HD_DIST_NOBODY: of a whole table. HD_E_PROTOCOL: malformed, nothing was taken. HD_E_INTEGRITY: a leaf
 * that is known here has other numbers there. */
HD_MUST_USE enum hd_err hd_dist_leaves_put(struct hd_worker *worker, uint16_t from, const uint8_t *bytes,
	uint64_t len, struct hd_diag *diag);
/* Does worker `from` of the plan in use run a stage of that virtual node? */
bool hd_dist_says(const struct hd_worker *worker, uint16_t from, uint32_t vn);
/* Copies into one entry of a leaf (all after the head of such bytes) what worker `from` of the plan says in
 * another. */
void hd_dist_leaf_merge(const struct hd_worker *worker, uint16_t from, const uint8_t *entry, uint8_t *into);
uint32_t hd_dist_leaves_missing(const struct hd_worker *worker);       /* of the step's V, times stages */

/* XXH3-64 over the hashes of all buckets' sums, in order: sum_digest of a seal. Every bucket is summed. */
uint64_t hd_dist_sums_digest(struct hd_worker *worker);
/* Norm, seal, update on all devices, counters. HD_E_INVAL: a bucket is not summed, or a leaf missing. */
HD_MUST_USE enum hd_err hd_dist_finish(struct hd_worker *worker, struct hd_step_record *record,
	struct hd_diag *diag);
/* Ends a step without a change: the state is that of its begin(), and the step may be begun again. */
void hd_dist_abandon(struct hd_worker *worker);
/* Between compute() and finish(), before all of the state is read: it is that of begin() again, also where
 * compute() brought a part of it on (overlap.h, rule 4). The step is finished as ever. */
void hd_dist_as_begun(struct hd_worker *worker);

/* ---- sharded state ---- */

const struct hd_layout *hd_dist_layout(const struct hd_worker *worker);
/* Is state by stages? */
bool hd_dist_by_stage(const struct hd_worker *worker);
/* Is it, and does the optimizer change whole tensors? Then a step may be measured before it is finished. */
bool hd_dist_measures(const struct hd_worker *worker);
uint32_t hd_dist_servers(const struct hd_worker *worker);     /* workers that all of them lie at; 0: any */
uint32_t hd_dist_copies(const struct hd_worker *worker);      /* of slots, of sharded state; else 0 */
/* State by stages, between two steps, before all of it comes from elsewhere: no bucket takes memory, and what
 * was in it is lost. */
HD_MUST_USE enum hd_err hd_dist_lay_aside(struct hd_worker *worker, struct hd_diag *diag);
/* State by stages, before finish(): these buckets are the own ones; what of them lay in a file is memory. */
HD_MUST_USE enum hd_err hd_dist_hold(struct hd_worker *worker, const uint8_t *own, struct hd_diag *diag);
/* State by stages, after finish(): XXH3-64 of parameters and slots of each of these buckets, never 0, and 0
 * of the others. digest: [buckets]. */
void hd_dist_held_digests(struct hd_worker *worker, const uint8_t *own, uint64_t *digest);
/* Is state sharded in this job, and the part in use one of several workers? Else all below does nothing. */
bool hd_dist_sharded(const struct hd_worker *worker);
/* Sets the own buckets: those whose slots are here and are updated here. own[bucket]: 0 or 1; NULL: none.
 * Before the first call: all. */
void hd_dist_own(struct hd_worker *worker, const uint8_t *own);
/* Are all buckets own ones, or has the optimizer no slots? */
bool hd_dist_whole(const struct hd_worker *worker);
/* Updates the own buckets: slots in place, new parameters at hd_dist_parm_at(). HD_E_INVAL: own sums, leaves
 * or sums of squares are missing. HD_E_DIVERGED: nothing was changed. */
HD_MUST_USE enum hd_err hd_dist_update(struct hd_worker *worker, const uint8_t *own, struct hd_diag *diag);
/* State by stages, of an optimizer that changes whole tensors: hd_dist_update() changes nothing, and takes
 * the sums of squares of the own buckets' parameters and of their moves, segment by segment. Those of others,
 * with which a tensor of an own bucket goes on, are put before finish(). After finish() those of own buckets
 * are there in any case. Two numbers a segment; get() writes nothing where they stand already: they may be on
 * their way. */
void hd_dist_ratio_get(const struct hd_worker *worker, uint32_t bucket, double *to);
void hd_dist_ratio_put(struct hd_worker *worker, uint32_t bucket, const double *from);
float *hd_dist_parm_at(const struct hd_worker *worker, uint32_t bucket);
double *hd_dist_norm_at(const struct hd_worker *worker, uint32_t bucket);
uint64_t hd_dist_norm_bytes(const struct hd_worker *worker, uint32_t bucket);
/* Digests of a bucket's slots: get() after update() of a step that has a digest; put() those of other workers
 * before finish(). 0 bytes: there are no slots. */
uint64_t hd_dist_digest_bytes(const struct hd_worker *worker, uint32_t bucket);
void hd_dist_digest_get(const struct hd_worker *worker, uint32_t bucket, uint8_t *bytes);
void hd_dist_digest_put(struct hd_worker *worker, uint32_t bucket, const uint8_t *bytes);
/* The slots of a bucket as bytes, from one worker to another; between begin() and update(), or between two
 * steps. Slots of buckets that are not own ones stay until hd_dist_drop_slots() or finish(). */
uint64_t hd_dist_slot_bytes(const struct hd_worker *worker, uint32_t bucket);
void hd_dist_slot_get(struct hd_worker *worker, uint32_t bucket, uint8_t *bytes);
/* `borrowed`: not to stay; of state by stages it lies in the worker's file. */
HD_MUST_USE enum hd_err hd_dist_slot_put(struct hd_worker *worker, uint32_t bucket, const uint8_t *bytes,
	uint64_t len, bool borrowed, struct hd_diag *diag);
/* Drops all slots but those of buckets with keep[bucket] = 1; NULL: drops all. */
void hd_dist_drop_slots(struct hd_worker *worker, const uint8_t *keep);

/* ---- state transfer to a joining worker; between two steps ---- */

/* A *snap* is a range of the state. Snaps are numbered: first one per bucket (its parameters with earlier
 * versions, and its slots unless state is sharded), then those of the frozen parameters, which no step
 * changes. Of state by stages there are those of frozen parameters alone: a new member fetches what it
 * holds. */
uint32_t hd_dist_nsnaps(const struct hd_worker *worker);
uint32_t hd_dist_nfollowed(const struct hd_worker *worker);   /* snaps that steps change: the first ones */
uint64_t hd_dist_snap_bytes(const struct hd_worker *worker, uint32_t snap);
/* Snaps [snap, end) must be copied at the same boundary, since an update changes them together. Call it for
 * snap 0, then for its end, and so on. Of optimizers by element each snap is alone; optimizers by tensor
 * change all buckets together. */
uint32_t hd_dist_snap_end(const struct hd_worker *worker, uint32_t snap);
void hd_dist_snap_get(const struct hd_worker *worker, uint32_t snap, uint8_t *bytes);
HD_MUST_USE enum hd_err hd_dist_snap_put(struct hd_worker *worker, uint32_t snap, const uint8_t *bytes,
	uint64_t len, struct hd_diag *diag);

/* The rest of the state table: counters and running statistics. */
uint64_t hd_dist_rest_bytes(const struct hd_worker *worker);
void hd_dist_rest_get(const struct hd_worker *worker, uint8_t *bytes);
HD_MUST_USE enum hd_err hd_dist_rest_put(struct hd_worker *worker, const uint8_t *bytes, uint64_t len,
	struct hd_diag *diag);

/* The scalars that an update reads besides sums, of the last finished step, as bytes; of which step they are:
 * hd_dist_scalars_step(). */
enum { HD_DIST_SCALARS_BYTES = 40 };
void hd_dist_scalars_get(const struct hd_worker *worker, uint8_t bytes[HD_DIST_SCALARS_BYTES]);
HD_MUST_USE enum hd_err hd_dist_scalars_step(const uint8_t bytes[HD_DIST_SCALARS_BYTES], uint64_t *step,
	struct hd_diag *diag);
/* What the source sends of a bucket after a step, once it has sent the snap: the sum; in sharded state, the
 * new parameters. The joiner puts it at its hd_dist_sum_at(). */
float *hd_dist_follow_at(const struct hd_worker *worker, uint32_t bucket);
/* The joiner: updates parameters and slots of n buckets from what it put at hd_dist_sum_at() and the scalars
 * of that step. HD_E_INVAL: not all buckets that change together. Counters come by hd_dist_rest_put(). */
HD_MUST_USE enum hd_err hd_dist_apply(struct hd_worker *worker, const uint32_t *bucket, uint32_t n,
	const uint8_t scalars[HD_DIST_SCALARS_BYTES], struct hd_diag *diag);
/* The joiner: all snaps and the rest are here, of one step. The worker is at that step now, and may adopt a
 * view and begin. */
HD_MUST_USE enum hd_err hd_dist_learned(struct hd_worker *worker, struct hd_diag *diag);

#endif
