#include "engine/worker_int.h"

#include <assert.h>
#include <string.h>

#include "sys/failpoint.h"
#include "engine/closing.h"
#include "engine/judge.h"
#include "engine/diverge.h"
#include "engine/fore.h"
#include "engine/onset.h"
#include "engine/overlap.h"
#include "engine/post.h"
#include "engine/stale.h"
#include "engine/stamps.h"

/* A step from its beginning to its commit. One worker alone runs the lists in one go (hd_worker_step); one of
 * several computes, has its buckets summed, and finishes: the same lists in two sections. */

enum hd_err hd_step_tables(struct hd_worker *w, struct hd_diag *diag)
{
	uint32_t nvns = w->task->job->nvns;

	w->step->summed = hd_arena_take(&w->arena, w->stage->nbuckets, 1);
	w->step->leaf = hd_arena_take(&w->arena, nvns, sizeof *w->step->leaf);
	w->step->known_whole = hd_arena_take(&w->arena, nvns, 1);
	return w->step->summed && w->step->leaf && w->step->known_whole ? HD_OK : hd_fail(diag, HD_E_NOMEM,
		"no memory for the tables of %u buckets and %u virtual nodes", w->stage->nbuckets, nvns);
}

void hd_step_work(struct hd_worker *w, struct hd_work *work)
{
	w->step->work = work;
	for (uint32_t r = 0; r < w->spec.ndevices; r++) {
		w->rank[r].work = &work->rank[r];
		w->rank[r].pipe = work->pipe;
	}
}

enum hd_err hd_step_begin(struct hd_worker *w, bool digest, struct hd_diag *diag)
{
	int error = HD_FAILPOINT(STEP_BEGIN);

	assert(!w->step->begun);
	if (error)
		return hd_fail_errno(diag, error, "begin", "a step");
	if (atomic_load(&w->step->torn))
		return hd_fail(diag, HD_E_INTEGRITY,
			"step %lld: an earlier update failed half-way: resume from the newest checkpoint",
			(long long)w->count.step);
	if (!hd_worker_planned(w))
		return hd_fail(diag, HD_E_INVAL,
			"step %lld: the worker has no plan: none was adopted, or the last one could not be",
			(long long)w->count.step);
	if (hd_worker_work(w)->pipe && hd_worker_work(w)->pipe->before)
		return hd_fail(diag, HD_E_INVAL,
			"step %lld: ranks were lost in the step before, and its plan is that of them all: "
			"adopt another one", (long long)w->count.step);
	enum hd_err err = w->step->again ? hd_worker_reread(w, diag) : HD_OK;
	err = err ? err : hd_closing_look(w, diag);
	err = err ? err : hd_judges_look(w, diag);
	if (err)
		return err;
	w->step->begun = w->step->again = true;
	w->step->rows = hd_sampler_rows(&w->task->sampler, (uint64_t)w->count.step);
	w->step->want_digest = digest;
	w->step->record = (struct hd_step_record){ .step = (uint64_t)w->count.step,
		.epoch = hd_sampler_epoch(&w->task->sampler, (uint64_t)w->count.step) };
	for (uint32_t r = 0; r < w->spec.ndevices; r++) {
		w->rank[r].wait_data_ns = w->rank[r].redundant_ns = w->rank[r].stalled_ns = 0;
		hd_worker_work(w)->rank[r].from = 0;
	}
	memset(w->step->summed, 0, w->stage->nbuckets);
	hd_leaves_begin(w);
	hd_reading_begin(w);
	w->step->nsummed = 0;
	hd_values_begin(w);
	if (w->step->nrepairs)
		hd_arena_reset(&w->step->repair_arena);
	atomic_store(&w->step->nrepairs, 0);
	hd_worker_work(w)->computed = false;
	for (uint32_t b = 0; b < w->stage->nbuckets && !hd_worker_work(w)->whole; b++)
		atomic_store_explicit(&hd_worker_work(w)->left[b], 1, memory_order_relaxed);
	hd_step_work(w, hd_worker_work(w));
	hd_onset_begin(w);
	if (w->step->work->overlap)
		hd_overlap_begin(w, w->step->work);
	else if (w->step->work->pipe)
		hd_pipe_begin(w->step->work->pipe);
	hd_recorder_step_begin(w->spec.recorder, (uint64_t)w->count.step);
	return HD_OK;
}

static void close_mail(struct hd_worker *w, bool failed)
{
	if (hd_worker_work(w)->pipe || hd_worker_work(w)->meeting)
		hd_post_end(w, !failed, !failed && hd_overlap_ahead(w));
}

/* Counters follow the commit; a new data epoch begins its sums again. */
static void count_step(struct hd_worker *w)
{
	struct hd_step_record *r = &w->step->record;
	uint64_t next_epoch = hd_sampler_epoch(&w->task->sampler, (uint64_t)w->count.step + 1);

	if (!r->skipped && !r->empty) {   /* nothing that is not finite reaches the state */
		w->count.epoch_loss += r->loss_sum;
		w->count.epoch_weight += r->weight;
		w->count.epoch_correct += r->correct;
	}
	if (next_epoch != r->epoch)
		w->count.epoch_loss = w->count.epoch_weight = w->count.epoch_correct = 0;
	hd_stale_commit(w, r->skipped);
	hd_closing_commit(w);
	hd_judges_commit(w, r);
	if (r->skipped)                   /* read with an update that is none */
		hd_onset_void(w);
	if (r->skipped)                   /* its rows, which those ahead may have read, are none */
		hd_fore_forget(w);
	hd_stamps_commit(w);
	w->count.updates += !r->empty && !r->skipped;
	w->count.skips = r->skipped ? w->count.skips + 1 : r->empty ? w->count.skips : 0;
	w->count.samples += (int64_t)w->step->rows;
	w->count.step++;
	hd_state_table_stamp(w);
	r->samples = (uint64_t)w->count.samples;
}

enum hd_err hd_step_end(struct hd_worker *w, enum hd_err err, struct hd_step_record *record,
	struct hd_diag *diag)
{
	hd_recorder_step_end(w->spec.recorder, (uint64_t)w->count.step, !err);
	close_mail(w, err);
	w->step->begun = false;
	struct hd_overlap *overlap = hd_worker_work(w)->overlap;
	w->step->again = hd_eager_end(overlap ? overlap->eager : NULL, w, err) || err;
	if (err == HD_E_DIVERGED)
		hd_diverge_explain(w, diag);
	if (err)
		return err;
	hd_values_end(w);
	if (hd_worker_work(w)->pipe)
		hd_pipe_end(hd_worker_work(w)->pipe);
	count_step(w);
	for (uint32_t r = 0; r < w->spec.ndevices; r++) {
		if (w->rank[r].wait_data_ns > w->step->record.wait_data_ns)
			w->step->record.wait_data_ns = w->rank[r].wait_data_ns;
		w->step->record.redundant_ns += w->rank[r].redundant_ns / w->spec.ndevices;
		w->step->record.stalled_ns += w->rank[r].stalled_ns / w->spec.ndevices;
	}
	w->step->record.has_digest = w->step->want_digest;
	if (w->step->want_digest)
		w->step->record.digest = hd_digest_report(w);
	*record = w->step->record;
	return HD_OK;
}

enum hd_err hd_dist_overlap(struct hd_worker *w, bool ahead, bool goes_on, struct hd_diag *diag)
{
	const bool begun = hd_overlap_ahead(w), has = begun || hd_onset_any(w);

	assert(!w->step->begun);
	if (ahead && !begun && hd_worker_work(w) && hd_worker_work(w)->overlap)
		return hd_fail(diag, HD_E_BUG, "step %lld: others have begun it, and this worker has not",
			(long long)w->count.step);
	w->step->goes_on = goes_on && (uint64_t)w->count.step + 1 < w->task->nsteps;
	return has && !ahead ? hd_worker_reread(w, diag) : HD_OK;
}

enum hd_err hd_dist_begin(struct hd_worker *w, bool digest, struct hd_diag *diag)
{
	enum hd_err err = hd_step_begin(w, digest, diag);

	w->step->goes_on = false;
	return err;
}

void hd_dist_abandon(struct hd_worker *w)
{
	if (w->step->begun)
		hd_recorder_step_end(w->spec.recorder, (uint64_t)w->count.step, false);
	if (w->step->begun)
		close_mail(w, true);
	if (w->step->begun && hd_worker_work(w)->overlap)
		(void)hd_eager_end(hd_worker_work(w)->overlap->eager, w, HD_E_STALE);
	w->step->begun = false;
}

void hd_dist_as_begun(struct hd_worker *w)
{
	if (w->step->begun && hd_worker_work(w)->overlap)
		hd_eager_back(hd_worker_work(w)->overlap->eager, w);
}

/* ---- roots ---- */

static const struct hd_work *work_of(const struct hd_worker *w, uint32_t pass)
{
	assert(pass <= w->step->nrepairs);
	return pass ? &w->step->repair[pass - 1] : hd_worker_work(w);
}

uint32_t hd_dist_npasses(const struct hd_worker *w) { return w->step->nrepairs + 1; }
uint32_t hd_dist_nleaves(const struct hd_worker *w, uint32_t pass) { return work_of(w, pass)->nleaves; }
/* Root i of a pass, and the stage that it is of: those of one stage after those of the one before. */
static const struct hd_left *root_of(const struct hd_work *work, uint32_t i, uint32_t *stage)
{
	*stage = 0;
	if (!work->pipe)
		return &work->root[i];
	while (i >= work->pipe->stage[*stage].nroots)
		i -= work->pipe->stage[(*stage)++].nroots;
	return &work->pipe->stage[*stage].root[i];
}

uint32_t hd_dist_nroots(const struct hd_worker *w, uint32_t pass) { return work_of(w, pass)->computed ?
	work_of(w, pass)->nroots : 0; }

struct hd_tnode hd_dist_root(const struct hd_worker *w, uint32_t pass, uint32_t i)
{
	uint32_t stage;

	assert(i < work_of(w, pass)->nroots);
	return root_of(work_of(w, pass), i, &stage)->node;
}

uint16_t hd_dist_root_stage(const struct hd_worker *w, uint32_t pass, uint32_t i)
{
	uint32_t stage;

	assert(i < work_of(w, pass)->nroots);
	(void)root_of(work_of(w, pass), i, &stage);
	return (uint16_t)stage;
}

const float *hd_dist_root_at(const struct hd_worker *w, uint32_t pass, uint32_t i, uint32_t run)
{
	const struct hd_work *work = work_of(w, pass);
	uint32_t stage;

	assert(i < work->nroots);
	const struct hd_left *root = root_of(work, i, &stage);
	float *const *item = work->pipe ? work->pipe->stage[stage].item : work->item;
	return item[root->item] + hd_layout_run(&w->task->layout, run).at;
}

/* ---- sums ---- */

/* One bucket is not worth waking the other devices. */
static enum hd_err on_buckets(struct hd_worker *w, void (*activity)(struct hd_rank *rank),
	struct hd_diag *diag)
{
	struct hd_rank *first = &w->rank[0];

	if (w->step->nfolds > 1)
		return hd_worker_all(w, activity, diag);
	first->err = HD_OK;
	first->diag.text[0] = 0;
	activity(first);
	return first->err ? hd_fail(diag, first->err, "%s",
		first->diag.text[0] ? first->diag.text : hd_err_text(first->err)) : HD_OK;
}

void hd_step_mark(struct hd_worker *w, uint32_t bucket)
{
	w->step->nsummed += !w->step->summed[bucket];
	w->step->summed[bucket] = 1;
}

enum hd_err hd_dist_fold(struct hd_worker *w, const struct hd_dist_fold *fold, uint32_t n,
	struct hd_diag *diag)
{
	assert(w->step->begun && w->step->operands.n);
	w->step->fold = fold;
	w->step->nfolds = n;
	enum hd_err err = n ? on_buckets(w, hd_sum_buckets, diag) : HD_OK;
	for (uint32_t i = 0; i < n && !err; i++)
		hd_step_mark(w, fold[i].bucket);
	w->step->fold = NULL;
	return err;
}

float *hd_dist_sum_at(const struct hd_worker *w, uint32_t bucket)
{
	return hd_worker_sum(w) + hd_layout_bucket(&w->task->layout, bucket).at;
}

enum hd_err hd_dist_arrived(struct hd_worker *w, const uint32_t *bucket, uint32_t n, struct hd_diag *diag)
{
	assert(w->step->begun);
	w->step->arrived = bucket;
	w->step->nfolds = n;
	enum hd_err err = n ? on_buckets(w, hd_sum_buckets, diag) : HD_OK;
	for (uint32_t i = 0; i < n && !err; i++)
		hd_step_mark(w, bucket[i]);
	w->step->arrived = NULL;
	return err;
}

bool hd_dist_summed(const struct hd_worker *w, uint32_t bucket) { return w->step->summed[bucket]; }
uint32_t hd_dist_unsummed(const struct hd_worker *w) { return w->stage->nbuckets - w->step->nsummed; }

/* Of buckets that it updates. */
static bool lacks_sums(const struct hd_worker *w)
{
	bool lacks = !hd_dist_by_stage(w) && hd_dist_unsummed(w);

	for (uint32_t b = 0; b < w->stage->nbuckets && hd_dist_by_stage(w); b++)
		lacks |= hd_worker_owns(w, b) && !w->step->summed[b];
	return lacks;
}

enum hd_err hd_dist_finish(struct hd_worker *w, struct hd_step_record *record, struct hd_diag *diag)
{
	struct hd_work *work = hd_worker_work(w);
	const bool untaken = !work->computed && work->nleaves, sharded = hd_dist_sharded(w);

	assert(w->step->begun);
	if ((!sharded && lacks_sums(w)) || hd_dist_leaves_missing(w))
		return hd_fail(diag, HD_E_INVAL,
			"step %lld: %u buckets have no sum, %u virtual nodes have said nothing",
			(long long)w->count.step,
			hd_dist_unsummed(w), hd_dist_leaves_missing(w));
	enum hd_err err = hd_stale_check(w, diag);
	if (err)
		return err;
	hd_step_work(w, work);
	w->step->section = HD_SECTION_FINISH;
	err = hd_step_end(w, sharded ? hd_sharded_finish(w, diag) : hd_worker_all(w,
		hd_interp_run, diag), record, diag);
	if (!err)
		hd_held_end(w);
	/* others computed it: its rows were not taken; some of the next step may have been */
	if (!err && untaken && (hd_overlap_ahead(w) || hd_onset_any(w)))
		w->step->again = true;
	else if (!err && untaken)
		hd_reading_want(w, work->reads);
	return err;
}
