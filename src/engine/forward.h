/* forward.h -- evaluation and prediction: the forward pass over a split, block by block.
 *
 * A block is b consecutive rows of the split (b = rows of a virtual node); blocks
 * are the virtual nodes of evaluation. Sums of loss, weight and hits are folded
 * over the blocks along the canonical tree in f64, so a metric has the same bits
 * on any number of devices. No padding rows, ever. What a loss does not have (mse: accuracy,
 * perplexity) is left out wherever metrics are shown.
 *
 * Runs between two steps on the parameters as they are; no gradient, dropout off. Between two calls of
 * hd_worker_exchange_means() it runs on their means (optim.ema) instead; buffers are the same. */
#ifndef HD_ENGINE_FORWARD_H
#define HD_ENGINE_FORWARD_H

#include "engine/worker.h"

/* Hits and perplexity have a meaning where the model says which rows it got right: its loss is a
 * cross-entropy. */
struct hd_metrics {
	double loss_sum, weight, correct;
	uint64_t rows, has_hits;          /* has_hits: 0 or 1 */
	uint32_t measured;                /* bit i: measure[i] is there (measure.h) */
	double measure[HD_NMEASURES];
	uint32_t nterms; double term_sum[HD_MODEL_TERMS];         /* losses that are added, not weighted */
};

/* Called once per block, from the rank that computed it, in any order: rows [first, first+n)
 * of the split and their outputs [n, ...] f32. Must not write what another block writes. */
struct hd_forward_job {
	uint32_t split;
	uint64_t first, count;            /* rows of the split */
	void (*logits)(void *user, uint64_t first, uint64_t n, const float *logits);    /* may be NULL */
	void *user;
};

HD_MUST_USE enum hd_err hd_worker_forward(struct hd_worker *worker, const struct hd_forward_job *job,
	struct hd_metrics *metrics, struct hd_diag *diag);

/* One forward pass on inputs the caller holds (sampling of text): field pointers of `rows` rows
 * each; logits [rows, ...] stay valid until the next call. Runs on rank 0. */
HD_MUST_USE enum hd_err hd_worker_forward_rows(struct hd_worker *worker, const void *const *field,
	uint64_t rows,
	const float **logits, struct hd_diag *diag);

/* Means and parameters change places, until it is called again: nothing but forward passes may come between.
 * HD_E_REFUSED: the job has none, or this worker has not all of them. */
HD_MUST_USE enum hd_err hd_worker_exchange_means(struct hd_worker *worker, struct hd_diag *diag);

static inline double hd_metrics_loss(const struct hd_metrics *m) { return m->weight > 0 ?
	m->loss_sum / m->weight : 0; }
double hd_metrics_perplexity(const struct hd_metrics *metrics);      /* exp of the mean loss; 1 of no rows */
enum { HD_METRICS_LINE = 512 };
/* "loss 0.5000  perplexity 1.649  accuracy 81.00 %  f1-macro 0.7912  (100 rows)" */
void hd_metrics_line(const struct hd_metrics *metrics, char out[HD_METRICS_LINE]);
bool hd_metrics_has_accuracy(const struct hd_metrics *metrics);
double hd_metrics_accuracy(const struct hd_metrics *metrics);
/* Measure i of those that stand beside loss and accuracy, by its word; NULL: it is not there. */
const char *hd_metrics_measure(const struct hd_metrics *metrics, int i, double *value);

#endif
