/* measure.h -- the metrics of an evaluation: what is kept of each prediction, and how metrics are computed
 * from that.
 *
 * For classification, each row keeps its label, the predicted class and how many logits are above the
 * label's; for auroc also the scores; for regression and for several labels the outputs and their targets.
 * All of it is stored by the row's number in the split, and one thread sums in that order, in integers or in
 * f64: the bits depend on the outputs alone, not on the devices that computed them.
 *
 * 1. What a measure is, and what it is at the edges, is as in scikit-learn: precision, recall and F1 of
 *    nothing are 0; macro is over the classes that occur as label or as prediction; auroc counts ties
 *    half and is over the classes that some, not all rows have; R2 of a constant is 1 if it is met, else
 *    0.
 * 2. Of equal logits the first is the prediction, and those before the label count as above it, as for
 *    accuracy.
 * 3. Rows without a label (-1, loss.ignore) count nowhere. No row, or a logit that is no number: not a
 *    number.
 * 4. bce with one output has two classes: above 0 or not. Where targets are distributions
 *    (soft-cross-entropy, kl) the label is the class with the largest share.
 * 5. Probabilities are f32, by an exponential of this file: the same on every machine.
 *
 * Ownership: the caller's arena. Threads: take() of rows that no other call takes; the others alone. */
#ifndef HD_ENGINE_MEASURE_H
#define HD_ENGINE_MEASURE_H

#include "base/arena.h"
#include "job/job.h"
#include "job/measures.h"

struct hd_task;

enum { HD_MEASURE_BYTES = 1 << 30 };      /* most that an evaluation keeps for its measures */

enum hd_measuring_kind { HD_MEASURED_CLASSES, HD_MEASURED_LABELS, HD_MEASURED_NUMBERS };

/* What the outputs of a model are to their targets. */
struct hd_measuring {
	uint32_t wanted;                  /* bit i: enum hd_measure */
	enum hd_measuring_kind kind;
	bool     is_f32;                  /* targets are numbers: shares, labels or what is to be met */
	bool     one;                     /* bce of one output, as two classes */
	bool     ignores; int32_t ignore;
	uint32_t field;                   /* of the data: targets */
	uint64_t cols, per_row;           /* outputs of a prediction; predictions of a row */
};

struct hd_measures {
	struct hd_measuring of;
	uint64_t n;                       /* predictions */
	int32_t *label, *foreseen; uint32_t *above;       /* [n]; classes */
	float *score, *target;            /* [n, cols]; what needs them, else NULL */
};

/* From the job and the inference graph. HD_E_INVAL: a measure that this model or these data do not have,
 * or that would keep more than HD_MEASURE_BYTES of a split. `wanted` 0: none is asked for. */
HD_MUST_USE enum hd_err hd_measuring_make(struct hd_measuring *of, const struct hd_task *task,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_measures_begin(struct hd_measures *m, const struct hd_measuring *of, uint64_t rows,
	struct hd_arena *arena, struct hd_diag *diag);
/* Rows [first, first + n): their outputs [n, per_row, cols], and targets as the data have them. */
void hd_measures_take(struct hd_measures *m, uint64_t first, uint64_t n, const float *outputs,
	const void *targets);
/* Fills value[i] of each wanted one. Working memory is of the arena. */
HD_MUST_USE enum hd_err hd_measures_count(const struct hd_measures *m, double value[HD_NMEASURES],
	struct hd_arena *arena, struct hd_diag *diag);

#endif
