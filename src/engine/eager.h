/* eager.h -- the last stage's update before the norm of the step is known, where steps overlap (overlap.h)
 * and the next one reads what this one makes of it (`optim.update: stash`, D = 0). Private to the room.
 *
 * The rank of the last stage runs STEP! between its last backward of step t and its first forward of step
 * t + 1 (window.h of pipeline). What it needs of step t is there: sums of its own gradients, the weight of
 * all virtual nodes, the learning rate. Whether the step is valid (all of it finite) is known at NORM.
 *
 * 1. Of parameters that are not late EARLIER vector 0 is version t until the step ends (store.h, rule 6), and
 *    `kept` has their slots. So a step that is not valid, and one that fails, gets back what it began with,
 *    before anything reads the state: hd_eager_settle(), hd_eager_end().
 * 2. What was begun of step t + 1 is then of a version that never was: it is dropped, and done again.
 * 3. An empty step updates nothing, which the rank knows itself: nothing is dropped.
 * 4. No norm changes an update: no clipping, no trust ratio (hd_task_drains()). All that is not late is
 *    made and read by the last stage, each gradient in one part.
 * 5. Of several workers the one of the last rank does so alone; the others update when the step is finished,
 *    by the sum that it was made of. Until then hd_eager_read() says what the step began with, to whoever
 *    fetches the state of that step. A step that is given up gets it back, too (hd_dist_abandon()).
 *
 * Ownership: tables lie in the arena of the part, `kept` is of the rank's device. Threads: STEP! and settle
 * by the rank of the last stage, settle while all others wait at NORM; back and end by the worker's caller;
 * read by any thread. */
#ifndef HD_ENGINE_EAGER_H
#define HD_ENGINE_EAGER_H

#include "engine/pipe.h"

struct hd_eager {
	uint32_t rank;                    /* of the last stage, in the plan */
	uint32_t device;                  /* its first one; HD_NONE: of another worker */
	bool *early;                      /* [segments] of a parameter that is not late */
	struct hd_chunk *run; uint32_t nruns;             /* these, as far as they are neighbours */
	float *kept; uint64_t elems;      /* [slots][elems of all runs]; NULL: not taken */
	bool made;                        /* the step at hand is, ahead of its norm */
	bool dropped;                     /* it was not valid */
};

/* Of a pipe whose steps overlap. *eager NULL: every parameter that learns is late. HD_E_REFUSED: rule 4. */
HD_MUST_USE enum hd_err hd_eager_make(struct hd_eager **eager, struct hd_worker *worker,
	const struct hd_pipe *pipe, struct hd_arena *arena, struct hd_diag *diag);
uint64_t hd_eager_bytes(const struct hd_eager *eager, const struct hd_worker *worker);    /* takes NULL */
/* takes NULL, as the others below */
HD_MUST_USE enum hd_err hd_eager_take(struct hd_eager *eager, struct hd_worker *worker, struct hd_diag *diag);
void hd_eager_give(struct hd_eager *eager, struct hd_worker *worker);
/* STEP! */
HD_MUST_USE enum hd_err hd_eager_step(struct hd_rank *rank, struct hd_diag *diag);
/* At NORM, when the step's scalars are made and before ranks go on: rule 1 of a step that is skipped. */
void hd_eager_settle(struct hd_rank *rank);
/* Rule 5, of a vector of parameters or slots: what the store has, but for what STEP! brought on. */
void hd_eager_read(struct hd_worker *worker, enum hd_vector vector, uint64_t at, uint64_t len, uint8_t *to);
/* Before the worker's caller reads all of the state inside a step: what STEP! brought on is as the step began
 * with it, and this worker, too, updates it when the step is finished. */
void hd_eager_back(struct hd_eager *eager, struct hd_worker *worker);
/* The step has ended so: rule 1 of one that failed. Was what is begun of the next in vain? */
bool hd_eager_end(struct hd_eager *eager, struct hd_worker *worker, enum hd_err err);

#endif
