/* moments.h -- running statistics: from the moments of parts to the state table.
 *
 * A part of the batch (a virtual node, or a slice of one) contributes per channel its
 * number of values n, their mean m and the sum M of squared distances from it (the
 * values `moments` of hd_running). Two contributions become one by
 *	d = mb - ma,  n = na + nb,  m = ma + d nb/n,  M = Ma + Mb + d d na nb/n
 * in f64; one with n = 0 leaves the other as it is (Chan, Golub, LeVeque, "Updating
 * formulae and a pairwise algorithm for computing sample variances", 1979).
 *
 * 1. Slices of a virtual node join by a left fold, virtual nodes along the canonical
 *    tree: the bits depend on the job alone.
 * 2. Buffers move once per committed step: mean by m, variance by M/(n-1), so that it
 *    is that of the whole global batch; n < 2 moves nothing, nor does an empty or
 *    skipped step.
 * 3. The contributions of a step are no state: each step writes them again.
 *
 * Threads: take() writes the leaf of its virtual node; fold() and move() the records of
 * its rank (record mod ranks); between them ranks meet. */
#ifndef HD_ENGINE_MOMENTS_H
#define HD_ENGINE_MOMENTS_H

#include "graph/ir.h"
#include "device/program.h"

struct hd_rank;
struct hd_task;
struct hd_worker;

/* One leaf per virtual node: all records of the graph one after the other, [3,C] each. */
struct hd_moments {
	double  *leaf;                    /* [nvns][elems] */
	/* where they are folded: `leaf` itself, or apart where other workers may still ask for leaves */
	double  *sum;
	/* at[nrunning]: where in a leaf a record begins; behind all of them: stamps.h */
	uint64_t elems, *at;
	uint32_t nvns;
};

/* `b` joins `a`: n, mean and M of `c` channels, each [c]. */
void hd_moments_merge(double *a, const double *b, uint64_t c);
/* The canonical tree over nvns leaves of [3,c], `step` doubles apart; the result takes the place of leaf
 * 0. */
void hd_moments_tree(double *leaf, uint32_t nvns, uint64_t step, uint64_t c);
/* One step of one channel: what the buffers become. */
void hd_moments_next(double n, double mean, double spread, double momentum, float *running_mean,
	float *running_var);

uint64_t hd_moments_bytes(const struct hd_task *task);                        /* of the leaves */
HD_MUST_USE enum hd_err hd_moments_make(struct hd_worker *worker, struct hd_diag *diag);
/* from now on folded apart; again: nothing */
HD_MUST_USE enum hd_err hd_moments_apart(struct hd_worker *worker, struct hd_diag *diag);

void hd_moments_clear(struct hd_worker *worker, uint32_t vn);
/* After F of virtual node vn (or of a slice of it), which is part `ipart` of what ran. */
void hd_moments_take(struct hd_rank *rank, uint32_t vn, uint32_t ipart, const struct hd_bind *bind);
/* The same of one record: `moments` [3,C] join what virtual node vn has said. */
void hd_moments_join(struct hd_worker *worker, uint32_t vn, uint32_t record, const double *moments);
void hd_moments_fold(struct hd_rank *rank);                                              /* RED */
/* NORM: would the buffers stay finite? */
bool hd_moments_finite(const struct hd_worker *worker);
void hd_moments_move(struct hd_rank *rank);                                              /* STEP */

#endif
