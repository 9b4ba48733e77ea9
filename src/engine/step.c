#include "engine/worker_int.h"

#include <assert.h>
#include <string.h>

#include "base/le.h"
#include "sys/failpoint.h"
#include "engine/diverge.h"

/* A step from its beginning to its commit. One worker alone runs the lists in one go (hd_worker_step); one of
 * several computes, has its buckets summed, and finishes: the same lists in two sections. */

enum hd_err hd_step_tables(struct hd_worker *w, struct hd_diag *diag)
{
	const struct hd_layout *layout = &w->task->layout;
	uint32_t nvns = w->task->job->nvns;

	w->nbuckets = hd_layout_nbuckets(layout);
	w->summed = hd_arena_take(&w->arena, w->nbuckets, 1);
	w->own = hd_arena_take(&w->arena, w->nbuckets, 1);
	w->slot_here = hd_arena_take(&w->arena, w->nbuckets, 1);
	w->sharded = hd_job_int(w->task->job, HD_JOB_SYNC) == HD_SYNC_SHARDED;
	w->bucket_digest = hd_arena_take(&w->arena, w->nbuckets, sizeof *w->bucket_digest);
	w->bucket_params = hd_arena_take(&w->arena, w->nbuckets, sizeof *w->bucket_params);
	w->bucket_segment = hd_arena_take(&w->arena, layout->nsegments, sizeof *w->bucket_segment);
	w->leaf = hd_arena_take(&w->arena, nvns, sizeof *w->leaf);
	w->known = hd_arena_take(&w->arena, nvns, 1);
	bool named = hd_job_int(w->task->job, HD_JOB_SAMPLES) != 0;
	w->took = named ? hd_arena_take(&w->arena, nvns * w->task->job->per_vn, sizeof *w->took) : NULL;
	w->ntook = named ? hd_arena_take(&w->arena, nvns, sizeof *w->ntook) : NULL;
	if (!w->summed || !w->own || !w->slot_here || !w->bucket_digest || !w->bucket_params ||
		!w->bucket_segment || !w->leaf || !w->known ||
		(named && (!w->took || !w->ntook)))
		return hd_fail(diag, HD_E_NOMEM,
			"no memory for the tables of %u buckets and %u virtual nodes", w->nbuckets, nvns);
	memset(w->own, 1, w->nbuckets);
	if (named)
		memset(w->ntook, 0, nvns * sizeof *w->ntook);
	memset(w->slot_here, 1, w->nbuckets);
	for (uint32_t b = 0; b < w->nbuckets; b++) {
		const struct hd_chunk run = hd_layout_bucket(layout, b);
		for (uint32_t i = run.first_segment; i < run.first_segment + run.nsegments; i++) {
			w->bucket_segment[i] = layout->segment[i];
			w->bucket_segment[i].at -= run.at;
			w->bucket_params[b] += i == run.first_segment ||
				layout->segment[i].param != layout->segment[i - 1].param;
		}
	}
	return HD_OK;
}

void hd_step_work(struct hd_worker *w, struct hd_work *work)
{
	w->work = work;
	for (uint32_t r = 0; r < w->spec.ndevices; r++)
		w->rank[r].work = &work->rank[r];
}

enum hd_err hd_step_begin(struct hd_worker *w, bool digest, struct hd_diag *diag)
{
	int error = HD_FAILPOINT(STEP_BEGIN);

	assert(!w->begun);
	if (error)
		return hd_fail_errno(diag, error, "begin", "a step");
	if (atomic_load(&w->torn))
		return hd_fail(diag, HD_E_INTEGRITY,
			"step %lld: an earlier update failed half-way: resume from the newest checkpoint",
			(long long)w->step);
	if (!w->share || !w->share->plan)
		return hd_fail(diag, HD_E_INVAL,
			"step %lld: the worker has no plan: none was adopted, or the last one could not be",
			(long long)w->step);
	enum hd_err err = w->again ? hd_worker_reread(w, diag) : HD_OK;
	if (err)
		return err;
	w->begun = w->again = true;
	w->step_rows = hd_sampler_rows(&w->task->sampler, (uint64_t)w->step);
	w->want_digest = digest;
	w->record = (struct hd_step_record){ .step = (uint64_t)w->step,
		.epoch = hd_sampler_epoch(&w->task->sampler, (uint64_t)w->step) };
	for (uint32_t r = 0; r < w->spec.ndevices; r++)
		w->rank[r].wait_data_ns = 0;
	memset(w->summed, 0, w->nbuckets);
	memset(w->known, 0, w->task->job->nvns);
	if (w->took)
		memset(w->ntook, 0, w->task->job->nvns * sizeof *w->ntook);
	w->nsummed = w->nknown = 0;
	if (w->nrepairs)
		hd_arena_reset(&w->repair_arena);
	atomic_store(&w->nrepairs, 0);
	w->share->work.computed = false;
	for (uint32_t b = 0; b < w->nbuckets && !w->share->work.whole; b++)
		atomic_store_explicit(&w->share->work.left[b], 1, memory_order_relaxed);
	hd_step_work(w, &w->share->work);
	hd_recorder_step_begin(w->spec.recorder, (uint64_t)w->step);
	return HD_OK;
}

/* Counters follow the commit; a new data epoch begins its sums anew. */
static void count_step(struct hd_worker *w)
{
	struct hd_step_record *r = &w->record;
	uint64_t next_epoch = hd_sampler_epoch(&w->task->sampler, (uint64_t)w->step + 1);

	if (!r->skipped && !r->empty) {   /* nothing that is not finite reaches the state */
		w->epoch_loss += r->loss_sum;
		w->epoch_weight += r->weight;
		w->epoch_correct += r->correct;
	}
	if (next_epoch != r->epoch)
		w->epoch_loss = w->epoch_weight = w->epoch_correct = 0;
	w->updates += !r->empty && !r->skipped;
	w->skips = r->skipped ? w->skips + 1 : r->empty ? w->skips : 0;
	w->samples += (int64_t)w->step_rows;
	w->step++;
	hd_state_table_stamp(w);
	r->samples = (uint64_t)w->samples;
}

enum hd_err hd_step_end(struct hd_worker *w, enum hd_err err, struct hd_step_record *record,
	struct hd_diag *diag)
{
	hd_recorder_step_end(w->spec.recorder, (uint64_t)w->step, !err);
	w->begun = false;
	w->again = err;
	if (err == HD_E_DIVERGED)
		hd_diverge_explain(w, diag);
	if (err)
		return err;
	count_step(w);
	for (uint32_t r = 0; r < w->spec.ndevices; r++)
		if (w->rank[r].wait_data_ns > w->record.wait_data_ns)
			w->record.wait_data_ns = w->rank[r].wait_data_ns;
	w->record.has_digest = w->want_digest;
	if (w->want_digest) {
		w->told = w->record.digest = hd_digest_join(w);
		w->told_at = (uint64_t)w->step;
	}
	*record = w->record;
	return HD_OK;
}

enum hd_err hd_share_begin(struct hd_worker *w, bool digest,
	struct hd_diag *diag) { return hd_step_begin(w, digest, diag); }

void hd_share_abandon(struct hd_worker *w)
{
	if (w->begun)
		hd_recorder_step_end(w->spec.recorder, (uint64_t)w->step, false);
	w->begun = false;
}

/* ---- roots ---- */

static const struct hd_work *work_of(const struct hd_worker *w, uint32_t pass)
{
	assert(pass <= w->nrepairs);
	return pass ? &w->repair[pass - 1] : &w->share->work;
}

uint32_t hd_share_npasses(const struct hd_worker *w) { return w->nrepairs + 1; }
uint32_t hd_share_nleaves(const struct hd_worker *w, uint32_t pass) { return work_of(w, pass)->nleaves; }
uint32_t hd_share_nroots(const struct hd_worker *w, uint32_t pass) { return work_of(w, pass)->computed ?
	work_of(w, pass)->nroots : 0; }
struct hd_tnode hd_share_root(const struct hd_worker *w, uint32_t pass,
	uint32_t i) { return work_of(w, pass)->root[i].node; }

const float *hd_share_root_at(const struct hd_worker *w, uint32_t pass, uint32_t i, uint32_t bucket)
{
	const struct hd_work *work = work_of(w, pass);

	assert(i < work->nroots);
	return work->item[work->root[i].item] + w->task->layout.chunk[bucket * HD_BUCKET_CHUNKS].at;
}

/* ---- sums ---- */

/* Room for the joins of n roots. */
enum hd_err hd_operands_cap(struct hd_worker *w, uint32_t n, struct hd_diag *diag)
{
	struct hd_operands o = { .cap = n };

	if (n <= w->operands.cap)
		return HD_OK;
	o.root = hd_arena_take(&w->arena, n, sizeof *o.root);
	o.join = hd_arena_take(&w->arena, n, sizeof *o.join);
	o.flat_join = hd_arena_take(&w->arena, (size_t)n * w->spec.ndevices, sizeof *o.flat_join);
	o.item = hd_arena_take(&w->arena, (size_t)2 * n * w->spec.ndevices, sizeof *o.item);
	if (!o.root || !o.join || !o.flat_join || !o.item)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the joins of %u roots", n);
	w->operands = o;
	return HD_OK;
}

enum hd_err hd_share_operands(struct hd_worker *w, const struct hd_tnode *root, uint32_t n,
	struct hd_diag *diag)
{
	struct hd_operands *o = &w->operands;
	bool same = n == o->n;

	for (uint32_t i = 0; i < n && same; i++)
		same = hd_tnode_same(root[i], o->root[i]);
	if (same && n)
		return HD_OK;
	enum hd_err err = hd_operands_cap(w, n, diag);
	if (err)
		return err;
	o->n = 0;
	err = hd_join_make(w->task->job->nvns, root, n, o->join, o->cap, &o->njoins, &o->result, diag);
	if (err)
		return err;
	o->n = n;
	for (uint32_t i = 0; i < n; i++)
		o->root[i] = root[i];
	return HD_OK;
}

/* One bucket is not worth waking the other devices. */
static enum hd_err on_buckets(struct hd_worker *w, void (*activity)(struct hd_rank *rank),
	struct hd_diag *diag)
{
	struct hd_rank *first = &w->rank[0];

	if (w->nfolds > 1)
		return hd_worker_all(w, activity, diag);
	first->err = HD_OK;
	first->diag.text[0] = 0;
	activity(first);
	return first->err ? hd_fail(diag, first->err, "%s",
		first->diag.text[0] ? first->diag.text : hd_err_text(first->err)) : HD_OK;
}

void hd_step_mark(struct hd_worker *w, uint32_t bucket)
{
	w->nsummed += !w->summed[bucket];
	w->summed[bucket] = 1;
}

enum hd_err hd_share_fold(struct hd_worker *w, const struct hd_share_fold *fold, uint32_t n,
	struct hd_diag *diag)
{
	assert(w->begun && w->operands.n);
	w->fold = fold;
	w->nfolds = n;
	enum hd_err err = n ? on_buckets(w, hd_sum_buckets, diag) : HD_OK;
	for (uint32_t i = 0; i < n && !err; i++)
		hd_step_mark(w, fold[i].bucket);
	w->fold = NULL;
	return err;
}

float *hd_share_sum_at(const struct hd_worker *w, uint32_t bucket) { return w->share->sum +
	w->task->layout.chunk[bucket * HD_BUCKET_CHUNKS].at; }

enum hd_err hd_share_arrived(struct hd_worker *w, const uint32_t *bucket, uint32_t n, struct hd_diag *diag)
{
	assert(w->begun);
	w->arrived = bucket;
	w->nfolds = n;
	enum hd_err err = n ? on_buckets(w, hd_sum_buckets, diag) : HD_OK;
	for (uint32_t i = 0; i < n && !err; i++)
		hd_step_mark(w, bucket[i]);
	w->arrived = NULL;
	return err;
}

bool hd_share_summed(const struct hd_worker *w, uint32_t bucket) { return w->summed[bucket]; }
uint32_t hd_share_unsummed(const struct hd_worker *w) { return w->nbuckets - w->nsummed; }

static void digest_buckets(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;

	for (uint32_t b = rank->id; b < w->nbuckets; b += w->spec.ndevices) {
		const struct hd_chunk run = hd_layout_bucket(&w->task->layout, b);
		uint8_t bytes[8];
		hd_put64(bytes, hd_hash64((hd_share_sharded(w) ? w->share->parm : w->share->sum) + run.at,
			run.len * sizeof(float)));
		memcpy(&w->bucket_digest[b], bytes, sizeof bytes);
	}
}

uint64_t hd_share_sums_digest(struct hd_worker *w)
{
	enum hd_err err = hd_worker_all(w, digest_buckets, NULL);

	assert(!err && (w->nsummed == w->nbuckets || hd_share_sharded(w)));
	(void)err;
	return hd_hash64(w->bucket_digest, w->nbuckets * sizeof *w->bucket_digest);
}

enum hd_err hd_share_finish(struct hd_worker *w, struct hd_step_record *record, struct hd_diag *diag)
{
	struct hd_work *work = &w->share->work;
	const bool untaken = !work->computed && work->nleaves, sharded = hd_share_sharded(w);

	assert(w->begun);
	if ((!sharded && hd_share_unsummed(w)) || hd_share_leaves_missing(w))
		return hd_fail(diag, HD_E_INVAL,
			"step %lld: %u buckets have no sum, %u virtual nodes have said nothing",
			(long long)w->step,
			hd_share_unsummed(w), hd_share_leaves_missing(w));
	hd_step_work(w, work);
	w->section = HD_SECTION_FINISH;
	enum hd_err err = hd_step_end(w, sharded ? hd_sharded_finish(w, diag) : hd_worker_all(w,
		hd_interp_run, diag), record, diag);
	if (!err && untaken)              /* others computed it: its rows were not taken */
		hd_prefetch_want(w->prefetch, (uint64_t)w->step, work->has);
	return err;
}

/* ---- memory for what others send ---- */

enum hd_err hd_share_places(struct hd_worker *w, uint64_t n, struct hd_diag *diag)
{
	struct hd_device *first = w->rank[0].device;
	float *places;

	if (n <= w->nplaces)
		return HD_OK;
	enum hd_err err = first->ops->take(first, n * HD_BUCKET_BYTES, (void **)&places, diag);
	if (err)
		return err;
	first->ops->give(first, w->places, w->nplaces * HD_BUCKET_BYTES);
	w->places = places;
	w->nplaces = n;
	return HD_OK;
}

float *hd_share_place(const struct hd_worker *w, uint64_t i)
{
	assert(i < w->nplaces);
	return w->places + i * (HD_BUCKET_BYTES / sizeof(float));
}
