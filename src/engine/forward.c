#include "engine/forward.h"

#include <math.h>
#include <stdio.h>

#include "base/lanes.h"
#include "data/augment.h"
#include "engine/onset.h"
#include "engine/part_int.h"
#include "engine/worker_int.h"

struct hd_forward_pass {
	const struct hd_forward_job *job;
	atomic_uint next_block;
	struct hd_leaf *block;            /* [blocks] */
	struct hd_measures measures;
};

enum { TOGETHER = 64 };                   /* rows that are asked of the set at once */

static enum hd_err read_rows(struct hd_rank *rank, const struct hd_forward_job *job, uint64_t first,
	uint64_t n)
{
	struct hd_dataset *data = rank->worker->task->data;
	struct hd_ask ask[TOGETHER];
	enum hd_err err = HD_OK;

	for (uint64_t at = 0; at < n && !err; at += TOGETHER) {
		const uint32_t many = n - at < TOGETHER ? (uint32_t)(n - at) : TOGETHER;
		for (uint32_t i = 0; i < many; i++) {
			ask[i].index = first + at + i;
			ask[i].epoch = HD_NO_EPOCH;
			for (uint32_t f = 0; f < data->nfields; f++)
				ask[i].out[f] = rank->eval_input[f] + (at + i) * data->field[f].sample_bytes;
		}
		err = hd_dataset_read_many(data, job->split, ask, many, false, &rank->diag);
	}
	return err;
}

static enum hd_err run_rows(struct hd_rank *rank, const void *const *field, uint64_t rows,
	struct hd_bind *bind)
{
	struct hd_worker *w = rank->worker;
	uint64_t token = 0;

	for (uint32_t i = 0; i < w->stage->infer.graph->ninputs; i++)
		rank->input[i] = field[w->stage->infer_field[i]];
	*bind = (struct hd_bind){ .rows = rows, .input = rank->input, .arena = rank->activations };
	hd_param_store_bind(w->store, bind);
	enum hd_err err = rank->device->ops->run(rank->device, &w->stage->infer, HD_RUN_F, bind, &token,
		&rank->diag);
	return err ? err : rank->device->ops->wait(rank->device, token, &rank->diag);
}

static double readout(struct hd_rank *rank, const struct hd_bind *bind, uint32_t value)
{
	return value == HD_NONE ? 0 : *(const double *)hd_program_value(&rank->worker->stage->infer, bind,
		value);
}

static enum hd_err one_block(struct hd_rank *rank, uint32_t iblock)
{
	struct hd_worker *w = rank->worker;
	const struct hd_forward_job *job = w->forward->job;
	uint64_t b = w->task->eval_rows, at = iblock * b, n = job->count - at < b ? job->count - at : b;
	struct hd_bind bind;
	enum hd_err err = read_rows(rank, job, job->first + at, n);

	if (!err)
		err = run_rows(rank, (const void *const *)rank->eval_input, n, &bind);
	if (err)
		return err;
	for (uint32_t k = 0; k < HD_LEAF_FIELDS; k++)
		*(&w->forward->block[iblock].loss + k) = readout(rank, &bind,
			hd_readout_field(&w->stage->infer_out, k));
	if (w->task->measured.wanted)
		hd_measures_take(&w->forward->measures, at, n, hd_program_value(&w->stage->infer, &bind,
			w->stage->infer_out.logits), rank->eval_input[w->task->measured.field]);
	if (job->logits)
		job->logits(job->user, job->first + at, n, hd_program_value(&w->stage->infer, &bind,
			w->stage->infer_out.logits));
	return HD_OK;
}

/* Blocks are handed out by a counter: which rank computes a block changes no bit of it. */
static void blocks(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	uint64_t b = w->task->eval_rows, nblocks = (w->forward->job->count + b - 1) / b;
	uint32_t i;

	if (!hd_worker_evaluates(w, rank->id))
		return;
	while (!hd_rank_idle(rank) && (i = atomic_fetch_add(&w->forward->next_block, 1)) < nblocks) {
		enum hd_err err = one_block(rank, i);
		if (err)
			hd_rank_fail(rank, err);
	}
}

/* `at`: room for n numbers. */
static double fold(double *at, const struct hd_leaf *block, size_t n, size_t field)
{
	for (size_t i = 0; i < n; i++)
		at[i] = *(const double *)((const char *)&block[i] + field);
	return hd_tree_sum(at, n);
}

enum hd_err hd_worker_forward(struct hd_worker *w, const struct hd_forward_job *job,
	struct hd_metrics *metrics, struct hd_diag *diag)
{
	uint64_t b = w->task->eval_rows, nblocks = (job->count + b - 1) / b;
	struct hd_arena arena;
	enum hd_err err;

	if (job->logits && w->stage->infer_out.logits == HD_NONE)
		return hd_fail(diag, HD_E_INVAL, "the graph has no output \"logits\": nothing to predict");
	hd_arena_init(&arena, 0);
	struct hd_forward_pass pass = { .job = job, .block = hd_arena_take(&arena, nblocks + 1,
		sizeof *pass.block) };
	double *at = hd_arena_take(&arena, nblocks + 1, sizeof *at);
	if (!pass.block || !at) {
		err = hd_fail(diag, HD_E_NOMEM, "no memory for the sums of %llu blocks",
			(unsigned long long)nblocks);
		goto out;
	}
	err = hd_measures_begin(&pass.measures, &w->task->measured, job->count, &arena, diag);
	if (err)
		goto out;
	hd_onset_void(w);                 /* its activations lie here */
	w->forward = &pass;
	err = hd_worker_all(w, blocks, diag);
	if (!err)
		*metrics = (struct hd_metrics){
			fold(at, pass.block, nblocks, offsetof(struct hd_leaf, loss)),
			fold(at, pass.block, nblocks, offsetof(struct hd_leaf, weight)),
			fold(at, pass.block, nblocks, offsetof(struct hd_leaf, correct)), job->count,
			w->stage->infer_out.correct != HD_NONE, w->task->measured.wanted, { 0 },
			.nterms = w->task->nterms,
		};
	for (uint32_t i = 0; i < w->task->nterms && !err; i++)
		metrics->term_sum[i] = fold(at, pass.block, nblocks, offsetof(struct hd_leaf, term) +
			i * sizeof(double));
	err = err ? err : hd_measures_count(&pass.measures, metrics->measure, &arena, diag);
out:
	hd_arena_finish(&arena);
	w->forward = NULL;
	return err;
}

enum hd_err hd_worker_exchange_means(struct hd_worker *w, struct hd_diag *diag)
{
	if (!(w->task->optim.average > 0))
		return hd_fail(diag, HD_E_REFUSED, "this job has no means of its parameters: optim.ema.decay "
			"keeps them while it trains");
	if ((w->parts->sharded || w->spec.by_stage) && !hd_dist_whole(w))
		return hd_fail(diag, HD_E_REFUSED, "comm.sync: %s leaves parts of the means at other "
			"workers: `heddle eval RUN --ema` reads a checkpoint, which has all of them",
			hd_job_text(w->task->job, HD_JOB_SYNC));
	hd_onset_void(w);
	hd_param_store_swap(w->store, hd_worker_means(w));
	return HD_OK;
}

/* The library's exp may differ in the last bit between machines: no state depends on this. */
double hd_metrics_perplexity(const struct hd_metrics *m) { return exp(hd_metrics_loss(m)); }

bool hd_metrics_has_accuracy(const struct hd_metrics *m)
{
	return m->has_hits || m->measured >> HD_MEASURE_ACCURACY & 1;
}

double hd_metrics_accuracy(const struct hd_metrics *m)
{
	if (m->measured >> HD_MEASURE_ACCURACY & 1)
		return m->measure[HD_MEASURE_ACCURACY];
	return m->weight > 0 ? m->correct / m->weight : 0;
}

const char *hd_metrics_measure(const struct hd_metrics *m, int i, double *value)
{
	if (i == HD_MEASURE_ACCURACY || !(m->measured >> i & 1))
		return NULL;
	*value = m->measure[i];
	return hd_measures[i].word;
}

void hd_metrics_line(const struct hd_metrics *m, char out[HD_METRICS_LINE])
{
	struct hd_text text;
	double value;

	hd_text_fixed(&text, out, HD_METRICS_LINE);
	hd_text_addf(&text, "loss %.4f", hd_metrics_loss(m));
	if (m->has_hits)
		hd_text_addf(&text, "  perplexity %.4g", hd_metrics_perplexity(m));
	if (hd_metrics_has_accuracy(m))
		hd_text_addf(&text, "  accuracy %.2f %%", hd_metrics_accuracy(m) * 100);
	for (int i = 0; i < HD_NMEASURES; i++) {
		const char *word = hd_metrics_measure(m, i, &value);
		if (word)
			hd_text_addf(&text, "  %s %.4f", word, value);
	}
	hd_text_addf(&text, "  (%llu rows)", (unsigned long long)m->rows);
}

enum hd_err hd_worker_forward_rows(struct hd_worker *w, const void *const *field, uint64_t rows,
	const float **logits, struct hd_diag *diag)
{
	struct hd_rank *rank = &w->rank[0];
	struct hd_bind bind;
	enum hd_err err;

	if (w->stage->infer_out.logits == HD_NONE)
		return hd_fail(diag, HD_E_INVAL,
			"the graph has no output \"logits\": nothing to sample from");
	rank->diag.text[0] = 0;
	err = run_rows(rank, field, rows, &bind);
	if (err)
		return hd_fail(diag, err, "%s", rank->diag.text);
	*logits = hd_program_value(&w->stage->infer, &bind, w->stage->infer_out.logits);
	return HD_OK;
}
