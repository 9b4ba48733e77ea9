/* dist.h -- a step that several workers run together: what this one computes of it, folds, holds, and hands
 * over.
 *
 * The plan of a view names the ranks of all workers; a worker runs its own. The words:
 *
 *   bucket    HD_BUCKET_CHUNKS consecutive chunks of the flat gradient: what one message holds (layout.h)
 *   pass      a set of leaves that one worker computes in a step: number 0 is its part of the view, later
 *             ones are repairs after a loss
 *   roots     of a pass: what its leaves fold to in the canonical tree; each is a name and a flat vector
 *   sum       of a bucket: value(H,0), the roots of all workers joined in the order of the tree
 *
 * Whoever moves bytes between workers calls, in each step:
 *
 *	begin -> compute -> [repair ...] -> roots and leaves go out, those of others come in
 *	      -> owner: operands, fold    others: sum put at hd_dist_sum_at(), arrived
 *	      -> finish: NORM, seal, STEP, counters
 *
 * and between two steps adopt() of a part that prepare() has made, state ranges for a joining worker, and
 * what worker.h allows. hd_worker_step() is begin, compute and finish in one go, for a view of one worker:
 * the same rows of the same table.
 *
 * 1. Bits are those of one worker on one device, whatever the parts, repairs and the order of arrival.
 * 2. Per bucket a worker holds its own roots or the sum, never neither: roots stay whole until fold() or
 *    arrived() says that the sum is there. What is half received at hd_dist_sum_at() spoils nothing.
 * 3. Sums stay until the next compute() or repair(): between finish() and begin() of the next step they can
 *    be given to others. hd_dist_summed() speaks of the step that was begun last.
 * 4. No parameter changes before finish(). What fails before leaves the state of the step's beginning.
 * 5. Nothing is allocated between adopt() and the next prepare(), but by repair(), operands() beyond those
 *    of the view, and hd_dist_places().
 * 6. A worker that no rank of the plan names, or that has no part at all, learns or only folds: it has no
 *    roots.
 *
 * Sharded state (comm.sync: sharded): a worker brings only some buckets on, its own, and gets the new
 * parameters of the others:
 *
 *	... owner: operands, fold    others of a bucket's chain: sum put, arrived
 *	                             sums of squares of all buckets put at hd_dist_norm_at()
 *	-> update: NORM, slots and new parameters of the own buckets, at hd_dist_parm_at()
 *	           those of the others put there
 *	-> finish: seal, parameters taken up, counters
 *
 *  7. New parameters may be put at hd_dist_parm_at() once somebody has them: then roots of that bucket are
 *     not needed any more, which lie there.
 *
 * Norms over the global batch (model.bn: global) meet at every norm: a view of several workers is
 * HD_E_REFUSED.
 *
 * Ownership: everything is the worker's; addresses of roots, sums and places hold until adopt(). Threads:
 * the worker's caller. While it is inside compute(), others may use addresses that it handed out, and read
 * or write there what the rules above leave to them. prepare() takes no part in a step: call it wherever the
 * caller waits. */
#ifndef HD_ENGINE_DIST_H
#define HD_ENGINE_DIST_H

#include "engine/worker.h"

/* ---- the view ---- */

enum { HD_DIST_NOBODY = UINT16_MAX };

struct hd_dist_view {
	/* borrowed until another one was adopted; NULL: none yet (a learner) */
	const struct hd_plan *plan;
	/* whose ranks of the plan (plan.worker[]) are this worker's devices, in their order;
	 * HD_DIST_NOBODY: of no worker */
	uint16_t worker;
	uint64_t nplaces;                 /* see hd_dist_places() */
	/* buckets' worth of memory that the caller itself takes for roots of others (relay.h): counted
	 * with the worker's */
	uint64_t nreceived;
};

/* The part of a coming view, beside the one in use. HD_E_BADPLAN: refused by the checker, or other ranks
 * than there are devices; HD_E_REFUSED: does not fit the memory, or lockstep. A failure changes nothing; a
 * second one replaces the first. */
HD_MUST_USE enum hd_err hd_dist_prepare(struct hd_worker *worker, const struct hd_dist_view *view,
	struct hd_diag *diag);
/* What the worker would be predicted to take under such a part (hd_worker_memory); nothing is taken.
 * Errors as of prepare(). */
HD_MUST_USE enum hd_err hd_dist_memory(struct hd_worker *worker, const struct hd_dist_view *view,
	struct hd_memory_terms *terms, struct hd_diag *diag);
bool hd_dist_prepared(const struct hd_worker *worker);
/* Between two steps: takes up what was prepared. Neither fails nor waits. */
void hd_dist_adopt(struct hd_worker *worker);
void hd_dist_forget(struct hd_worker *worker);             /* what was prepared and not adopted */

/* Roots of worker `worker`'s pass 0 under a plan, in ascending order of cover: what others expect of it.
 * Pure. HD_E_NOSPACE: more than `cap`. `has` is scratch of nvns bytes. */
HD_MUST_USE enum hd_err hd_dist_roots_of(const struct hd_plan *plan, uint16_t worker, uint8_t *has,
	struct hd_tnode *root, uint32_t cap, uint32_t *nroots);

/* Buckets' worth of memory for roots that come from others, place i of n; 64-byte aligned, of the worker's
 * devices, counted by hd_worker_memory(). An owner needs (buckets it owns or has open at a time) x (roots of
 * other workers) of them. View.nplaces are there from adopt() on. This makes them at least n when a repair
 * needs more; the old addresses are void then. */
HD_MUST_USE enum hd_err hd_dist_places(struct hd_worker *worker, uint64_t n, struct hd_diag *diag);
float *hd_dist_place(const struct hd_worker *worker, uint64_t i);

/* ---- a step ---- */

enum { HD_DIST_PASSES = 16 };            /* of one step, repairs included */

/* Step hd_worker_at(); `digest`: finish() also makes the state digest. */
HD_MUST_USE enum hd_err hd_dist_begin(struct hd_worker *worker, bool digest, struct hd_diag *diag);
/* Pass 0: LD, F, B of the own leaves, local joins. At most once in a step; a worker without leaves may
 * leave it out. */
HD_MUST_USE enum hd_err hd_dist_compute(struct hd_worker *worker, struct hd_diag *diag);
/* A further pass over any leaves not computed here, ascending, dealt evenly to the local devices; into
 * buffers of its own, so all roots so far stay. Its samples are read at once, not ahead. *pass: its
 * number. */
HD_MUST_USE enum hd_err hd_dist_repair(struct hd_worker *worker, const uint32_t *vn, uint32_t n,
	uint32_t *pass, struct hd_diag *diag);

/* Between two steps: the bits of virtual node vn in step hd_worker_at(), on the state that is here: its
 * gradients and what it says besides. It belongs to no step, and changes nothing that anybody may still ask
 * for; takes as long as the virtual node, and memory as a repair of it would. HD_E_REFUSED: there is not so
 * much memory, or lockstep, or a step is under way. */
/* which one to ask for: it has samples, and another each step */
uint32_t hd_dist_probed(const struct hd_worker *worker, uint64_t step);
HD_MUST_USE enum hd_err hd_dist_probe(struct hd_worker *worker, uint32_t vn, struct hd_hash *bits,
	struct hd_diag *diag);

/* computed in this step; 0 is counted, computed or not */
uint32_t hd_dist_npasses(const struct hd_worker *worker);
uint32_t hd_dist_nleaves(const struct hd_worker *worker, uint32_t pass);
/* 0 while the pass is not computed. Ascending order of cover. */
uint32_t hd_dist_nroots(const struct hd_worker *worker, uint32_t pass);
struct hd_tnode hd_dist_root(const struct hd_worker *worker, uint32_t pass, uint32_t i);
/* Bucket b of root i: hd_layout_bucket(b).len floats. */
const float *hd_dist_root_at(const struct hd_worker *worker, uint32_t pass, uint32_t i, uint32_t bucket);

/* While devices are at the last leaf of a pass, the roots of a bucket may be final already, and go out.
 * `watch` hears of each bucket of each pass once, on the thread of a device, inside compute() or repair(): it
 * only notes, wakes, and returns. Where the roots of several devices are joined, all buckets are final
 * together at the end. NULL: nothing is said, and nothing is spent. */
typedef void hd_dist_watcher(void *user, uint32_t pass, uint32_t bucket);
void hd_dist_watch(struct hd_worker *worker, hd_dist_watcher *watch, void *user);
/* Any thread, from begin() of the step on: are the roots of the bucket final? Then hd_dist_root_at() may
 * be read by it. */
bool hd_dist_final(const struct hd_worker *worker, uint32_t pass, uint32_t bucket);

/* The roots, of all workers, that the folds to come join: they tile the tree (HD_E_INVAL, with the leaf, if
 * not). Equal to the last ones: costs nothing. A single root is copied: its fold is the sum already. */
HD_MUST_USE enum hd_err hd_dist_operands(struct hd_worker *worker, const struct hd_tnode *root, uint32_t n,
	struct hd_diag *diag);
/* One bucket: operand[i] is its piece of root i of hd_dist_operands(), own ones (hd_dist_root_at) as well
 * as received ones (any float address; received ones are scratch afterwards). */
struct hd_dist_fold { uint32_t bucket; const float *const *operand; };
/* Sums the buckets; the devices share several of them. Afterwards they are summed, their sums of squares
 * taken. */
HD_MUST_USE enum hd_err hd_dist_fold(struct hd_worker *worker, const struct hd_dist_fold *fold, uint32_t n,
	struct hd_diag *diag);

/* While the worker's caller is inside compute() or repair(), one other thread may sum buckets: by operands()
 * and fold(), or, with operand NULL, by arrived(). Roots of all own passes of that bucket must be final, or
 * its sum must have been put there, which cannot be made without them. *taken false: the caller is not
 * inside, nothing was done. open() makes the device for it, once. */
HD_MUST_USE enum hd_err hd_dist_aside_open(struct hd_worker *worker, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_dist_aside(struct hd_worker *worker, const struct hd_tnode *root, uint32_t nroots,
	const struct hd_dist_fold *fold,
	bool *taken, struct hd_diag *diag);

float *hd_dist_sum_at(const struct hd_worker *worker, uint32_t bucket);
/* The sums of these buckets were put at hd_dist_sum_at(), whole: takes their sums of squares, on all
 * devices. */
HD_MUST_USE enum hd_err hd_dist_arrived(struct hd_worker *worker, const uint32_t *bucket, uint32_t n,
	struct hd_diag *diag);
bool hd_dist_summed(const struct hd_worker *worker, uint32_t bucket);
uint32_t hd_dist_unsummed(const struct hd_worker *worker);             /* how many are missing */

/* What leaves say besides gradients (loss, weight, hits, moments), as bytes, for a pass of n leaves:
 *	u32 version, u32 n, n x { u32 leaf, u32 0, f64 x k }   little endian, leaves ascending, k of the
 *job */
uint64_t hd_dist_leaves_bytes(const struct hd_worker *worker, uint32_t n);
/* a pass that was computed */
void hd_dist_leaves_get(const struct hd_worker *worker, uint32_t pass, uint8_t *bytes);
/* all V leaves, when none is missing */
void hd_dist_table_get(const struct hd_worker *worker, uint8_t *bytes);
/* HD_E_PROTOCOL: not such bytes, nothing was taken. HD_E_INTEGRITY: a leaf that is known here, with other
 * numbers. */
HD_MUST_USE enum hd_err hd_dist_leaves_put(struct hd_worker *worker, const uint8_t *bytes, uint64_t len,
	struct hd_diag *diag);
uint32_t hd_dist_leaves_missing(const struct hd_worker *worker);       /* of the step's V */

/* XXH3-64 over those of the buckets' sums, in order: `dsum` of a seal. Every bucket is summed. */
uint64_t hd_dist_sums_digest(struct hd_worker *worker);
/* Every bucket is summed, every leaf known (HD_E_INVAL else): NORM, seal, STEP on all devices, counters. */
HD_MUST_USE enum hd_err hd_dist_finish(struct hd_worker *worker, struct hd_step_record *record,
	struct hd_diag *diag);
/* A step that was begun ends without a change: the state is that of its beginning, the step may be begun
 * again. */
void hd_dist_abandon(struct hd_worker *worker);

/* ---- sharded state ---- */

/* Is the part in use one of several workers, in a job whose state is sharded? Else all below does
 * nothing. */
bool hd_dist_sharded(const struct hd_worker *worker);
/* Whose slots are here, and are brought on: a byte for each bucket. All, until it is said; NULL: none. */
void hd_dist_own(struct hd_worker *worker, const uint8_t *own);
/* all slots are own ones, or there are none */
bool hd_dist_whole(const struct hd_worker *worker);
/* All own sums are here, all leaves, all sums of squares. HD_E_INVAL: they are not. HD_E_DIVERGED: nothing
 * was changed. */
HD_MUST_USE enum hd_err hd_dist_update(struct hd_worker *worker, const uint8_t *own, struct hd_diag *diag);
float *hd_dist_parm_at(const struct hd_worker *worker, uint32_t bucket);
double *hd_dist_norm_at(const struct hd_worker *worker, uint32_t bucket);
uint64_t hd_dist_norm_bytes(const struct hd_worker *worker, uint32_t bucket);
/* Digests of a bucket's slots, after update() of a step that has one; those of others are put before
 * finish(). 0 bytes: it has no slots. */
uint64_t hd_dist_digest_bytes(const struct hd_worker *worker, uint32_t bucket);
void hd_dist_digest_get(const struct hd_worker *worker, uint32_t bucket, uint8_t *bytes);
void hd_dist_digest_put(struct hd_worker *worker, uint32_t bucket, const uint8_t *bytes);
/* Slots, from one worker to another; between begin() and update(), or two steps. Those that are not own
 * ones are here until drop or finish(). */
uint64_t hd_dist_slot_bytes(const struct hd_worker *worker, uint32_t bucket);
void hd_dist_slot_get(const struct hd_worker *worker, uint32_t bucket, uint8_t *bytes);
HD_MUST_USE enum hd_err hd_dist_slot_put(struct hd_worker *worker, uint32_t bucket, const uint8_t *bytes,
	uint64_t len, struct hd_diag *diag);
/* but those of the buckets with a byte; NULL: all */
void hd_dist_drop_slots(struct hd_worker *worker, const uint8_t *keep);

/* ---- state transfer to a joining worker; between two steps ---- */

/* Snaps are numbered: those of the buckets (parameters, and slots unless they are sharded), then those of
 * the frozen parameters, which no step changes. */
uint32_t hd_dist_nsnaps(const struct hd_worker *worker);
uint64_t hd_dist_snap_bytes(const struct hd_worker *worker, uint32_t snap);
/* Snaps [snap, end) change together: take them at one boundary. Ask in order: snap 0, then its end, ... By
 * element each is alone; an optimizer by tensor changes all buckets together. */
uint32_t hd_dist_snap_end(const struct hd_worker *worker, uint32_t snap);
void hd_dist_snap_get(const struct hd_worker *worker, uint32_t snap, uint8_t *bytes);
HD_MUST_USE enum hd_err hd_dist_snap_put(struct hd_worker *worker, uint32_t snap, const uint8_t *bytes,
	uint64_t len, struct hd_diag *diag);

/* The small rest: counters and running statistics, all of the state table that is not in snaps. */
uint64_t hd_dist_rest_bytes(const struct hd_worker *worker);
void hd_dist_rest_get(const struct hd_worker *worker, uint8_t *bytes);
HD_MUST_USE enum hd_err hd_dist_rest_put(struct hd_worker *worker, const uint8_t *bytes, uint64_t len,
	struct hd_diag *diag);

/* What an update reads besides sums: of the step finished last. `step` comes back to the learner by
 * apply(). */
enum { HD_DIST_SCALARS_BYTES = 40 };
void hd_dist_scalars_get(const struct hd_worker *worker, uint8_t bytes[HD_DIST_SCALARS_BYTES]);
HD_MUST_USE enum hd_err hd_dist_scalars_step(const uint8_t bytes[HD_DIST_SCALARS_BYTES], uint64_t *step,
	struct hd_diag *diag);
/* What a learner needs of a bucket that it has, after a step: its sum, or where state is sharded its
 * parameters. It puts them at hd_dist_sum_at(). */
float *hd_dist_follow_at(const struct hd_worker *worker, uint32_t bucket);
/* A learner: the sums of these snaps, put at hd_dist_sum_at(), update their parameters and slots by the
 * scalars of that step. HD_E_INVAL: only a part of what changes together. Counters come by rest_put(). */
HD_MUST_USE enum hd_err hd_dist_apply(struct hd_worker *worker, const uint32_t *bucket, uint32_t n,
	const uint8_t scalars[HD_DIST_SCALARS_BYTES], struct hd_diag *diag);
/* All snaps and the rest are here and of one step: the worker stands at that step and may adopt and begin. */
HD_MUST_USE enum hd_err hd_dist_learned(struct hd_worker *worker, struct hd_diag *diag);

#endif
