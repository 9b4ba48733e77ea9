/* onset.h -- the onset of the next step: the forward pass of each rank's first wave, run before the step at
 * hand has ended, on those of its new parameters that are here. Of whole models over several workers; steps
 * of pipelines overlap by their lists (overlap.h). Private to the room. ADR 203.
 *
 * After its pass of step s a worker waits for buckets. As soon as a bucket's new parameters are final they
 * are *readable* in part->parm, beside those of X_s. If this worker holds the bucket's slots it makes them
 * itself: once the bucket's sum and the metrics of all virtual nodes are here, the bucket is *brought on*, by
 * the update of the step on copies of the slots that are thrown away. If it does not (sharded state), they
 * are readable when they have arrived (hd_dist_readable()). The nodes of the first wave run in the order of
 * the forward phase, each when all buckets that it reads are readable (*need*).
 *
 * 1. X_s is not touched: parameters, slots and counters change at the end of a step, as without onset. So the
 *    loss of a worker, a repair, a state transfer and a save are not affected.
 * 2. What was begun is no state and leaves no process. It counts for the one step that it was begun for,
 *    under the same plan, when the step before was not skipped. Else it is run once more: *void* (its rows
 *    stay taken), or *dropped* (they are read again).
 * 3. Nothing waits: hd_onset_run() does what is possible and returns, also when it is called back
 *    (hd_dist_call()), at the latest after the node at hand. So no fence is needed.
 * 4. part->parm is the buffer of the first root. It is written bucket by bucket where the sum is here, which
 *    takes the place of all roots (exchange.h, rules 1 and 4). A forward writes activations alone.
 * 5. What a virtual node says (loss, moments) is read out by the step itself: until then the leaves are of
 *    the step at hand. Frozen parameters are read where they are; nodes that read both these and others, or
 *    buffers, wait for the end of the step. A norm over a part of the batch reads its running statistics
 *    only where that part has a single row.
 * 6. Where an update needs the norms of all sums (clipping, trust ratios), nothing is brought on before the
 *    end: hd_job_onset_norms(). Sharded state knows the norms before it updates: then what was not brought on
 *    is readable, too.
 *    What is not finite: a bucket brought on from it makes a forward that is void with the skipped step.
 * 7. Between the end of step s and the begin of s + 1 all is readable, in the store.
 * 8. Of sharded state a bucket is brought on where its slots were updated in the step before and are in this
 *    one (hd_dist_brings()): slots that are fetched may be on their way. Those that others wait for come
 *    first, also before nodes, and are said (hd_dist_watch_early()); from then on part->parm may be read by
 *    the I/O thread, so UPDATE changes only slots of what was brought on, and a step that is skipped takes up
 *    nothing (sharded.c).
 *
 * 9. Where the job says what each row weighs (hd_task_row_weight()), an update is known before the metrics:
 *    of a step in which rule 8 lets others have parameters, those of a bucket are brought on beside the pass,
 *    as soon as its sum is here, by the thread that sums it (hd_dist_aside_bring()), and go at once. What the
 *    metrics say then must be that weight. ADR 245.
 *
 * Ownership: the worker's arena. Threads: the worker's caller; inside hd_onset_run() a rank writes its own
 * entries and the rows of its virtual nodes; `readable` changes when all ranks have come back. Beside a pass,
 * and only then, `readable` and the last of `rank` are of the thread that sums, under its lock. */
#ifndef HD_ENGINE_ONSET_H
#define HD_ENGINE_ONSET_H

#include "device/optim.h"
#include "engine/work.h"
#include "engine/store.h"

struct hd_rank;
struct hd_task;
struct hd_worker;

/* What a node of the forward phase reads of flat vectors. */
enum hd_needs { HD_NEEDS_NOTHING, HD_NEEDS_BUCKETS, HD_NEEDS_FROZEN, HD_NEEDS_END };

/* Elements of a copy of a slot: what is brought on at a time. */
enum { HD_ONSET_ELEMS = 8192 };

struct hd_onset_rank {
	uint64_t next;                    /* 1 + the step that was begun here; 0: none */
	uint32_t done;                    /* nodes of the forward phase */
	uint32_t bucket;                  /* that it is to bring on; HD_NONE: nodes instead */
	float *slot[HD_MAX_SLOTS], *param;           /* [HD_ONSET_ELEMS] */
};

struct hd_onset {
	const char *norms;                /* hd_job_onset_norms() */
	uint64_t bytes;                   /* of all this, in the arena */
	/* of node i of the forward phase: bucket[first[i] .. first[i + 1]) */
	uint8_t *needs; uint32_t *first, *bucket;
	bool *pairs;                      /* [nnodes] of a part of one row it reads running statistics */
	uint32_t nnodes, *order, nused;   /* order: [nused] buckets as the phase needs them */
	uint8_t *readable, *brings;       /* [nbuckets] of the step at hand; rule 8 */
	/* [nvns] rows that were taken ahead; next: 1 + their step; 0: none */
	struct hd_onset_rows { uint64_t next; struct hd_loaded loaded; } *rows;
	struct hd_onset_rank *rank;       /* [ndevices + 1]; the last: room of rule 9 */
	uint64_t row_weight;              /* rule 9; 0: not known */
	uint32_t naside;                  /* buckets of the step brought on so */
	bool running;                     /* inside hd_onset_run() */
	bool goes_on; uint64_t step;      /* the step begun last: may the next one begin before its end? */
	/* the scalars of the step, once all metrics are here. 0: not made, 1: buckets are
	 * brought on by them (an empty step leaves them as they are), 2: a number is not finite */
	uint8_t scaled; struct hd_step_scalars scalars;
	uint32_t calls;                   /* seen by hd_onset_run() */
	enum hd_err err; struct hd_diag diag;     /* of what was begun: the step says it */
	uint64_t nahead, nvoid;           /* nodes that were run ahead; of these in vain */
};

HD_MUST_USE enum hd_err hd_onset_make(struct hd_worker *worker, struct hd_diag *diag);
/* Of the memory prediction (fits.c); 0: there is none. Made before the worker is known to fit. */
uint64_t hd_onset_bytes(const struct hd_worker *worker);
void hd_onset_begin(struct hd_worker *worker);            /* a step */
/* Rule 2. Before rank->activations is used for something else; before the reader is replaced. */
void hd_onset_void(struct hd_worker *worker);
void hd_onset_drop(struct hd_worker *worker);
bool hd_onset_any(const struct hd_worker *worker);        /* are rows taken ahead? */
/* A pass is about to be computed: what was begun is of another step, or it is no pass of the plan. */
HD_MUST_USE enum hd_err hd_onset_compute(struct hd_worker *worker, const struct hd_work *work,
	struct hd_diag *diag);
/* Rows of a virtual node that were taken ahead for that step, once. */
bool hd_onset_rows(struct hd_worker *worker, uint64_t step, uint32_t vn, struct hd_loaded *loaded);
/* Nodes of the forward phase that were run of the rank's wave at hand, once. */
uint32_t hd_onset_done(struct hd_rank *rank);
void hd_onset_updated(struct hd_worker *worker);          /* sharded state: the own buckets are */
/* Rule 8: was a bucket brought on? Then its slots, by rank->scalars; the parameters that come of it are those
 * that are there. */
bool hd_onset_brought(const struct hd_worker *worker, uint32_t bucket);
HD_MUST_USE enum hd_err hd_onset_slots(struct hd_rank *rank, const struct hd_chunk *run, uint64_t *token);

double hd_onset_weight(const struct hd_worker *worker);   /* rule 9: of all rows of the step */
bool hd_onset_may_aside(const struct hd_worker *worker, uint32_t bucket);
HD_MUST_USE enum hd_err hd_onset_aside(struct hd_rank *rank, uint32_t bucket);

bool hd_onset_has(const struct hd_worker *worker);        /* is anything possible now? */
HD_MUST_USE enum hd_err hd_onset_run(struct hd_worker *worker, uint32_t seen, struct hd_diag *diag);

/* scalars.c: those of an update without a norm, with all metrics here; `skip`: the step is empty. false: a
 * number is not finite. */
void hd_scalars_of_weight(const struct hd_worker *worker, double weight, struct hd_step_scalars *scalars);
double hd_scalars_weight(const struct hd_worker *worker); /* of all leaves, which are here */
bool hd_scalars_unclipped(const struct hd_worker *worker, struct hd_step_scalars *scalars);

#endif
