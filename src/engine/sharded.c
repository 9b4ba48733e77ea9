#include "engine/worker_int.h"

#include <assert.h>
#include <string.h>

/* Sharded state: slots of some buckets lie here, and only these are brought on. New parameters of all buckets
 * come to lie beside the old ones, in the first root's buffer: whoever has the sum of a bucket, or its
 * parameters, needs its roots no more (exchange.h, rules 1 and 6). The flat vectors of slots keep their
 * addresses; memory is only where buckets are. */

static bool sharded_now(const struct hd_worker *w) { return w->sharded && !w->share->alone; }

static uint32_t nslots(const struct hd_worker *w) { return hd_optims[w->task->optim.kind].nslots; }

/* ---- slots ---- */

static void drop(struct hd_worker *w, uint32_t bucket)
{
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);

	for (uint32_t k = 0; k < nslots(w) && w->slot_here[bucket]; k++)
		hd_param_store_drop(w->store, hd_vec_slot(k), run.at, run.len);
	w->slot_here[bucket] = 0;
}

void hd_share_own(struct hd_worker *w, const uint8_t *own)
{
	for (uint32_t b = 0; b < w->nbuckets; b++)
		w->own[b] = own ? own[b] : 0;
}

bool hd_share_whole(const struct hd_worker *w) { return !nslots(w) || !memchr(w->own, 0, w->nbuckets); }

void hd_share_drop_slots(struct hd_worker *w, const uint8_t *keep)
{
	for (uint32_t b = 0; b < w->nbuckets && w->sharded; b++)
		if (!keep || !keep[b])
			drop(w, b);
}

uint64_t hd_share_slot_bytes(const struct hd_worker *w, uint32_t bucket)
{
	return hd_layout_bucket(&w->task->layout, bucket).len * sizeof(float) * nslots(w);
}

void hd_share_slot_get(const struct hd_worker *w, uint32_t bucket, uint8_t *bytes)
{
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);

	for (uint32_t k = 0; k < nslots(w); k++)
		hd_param_store_read(w->store, hd_vec_slot(k), run.at, run.len,
			bytes + k * run.len * sizeof(float));
}

enum hd_err hd_share_slot_put(struct hd_worker *w, uint32_t bucket, const uint8_t *bytes, uint64_t len,
	struct hd_diag *diag)
{
	if (bucket >= w->nbuckets || len != hd_share_slot_bytes(w, bucket))
		return hd_fail(diag, HD_E_PROTOCOL, "%llu bytes are not the slots of bucket %u",
			(unsigned long long)len, bucket);
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);
	for (uint32_t k = 0; k < nslots(w); k++)
		hd_param_store_write(w->store, hd_vec_slot(k), run.at, run.len,
			bytes + k * run.len * sizeof(float));
	w->slot_here[bucket] = 1;
	return HD_OK;
}

/* ---- what goes with the parameters ---- */

float *hd_share_parm_at(const struct hd_worker *w, uint32_t bucket) { return w->share->parm +
	hd_layout_bucket(&w->task->layout, bucket).at; }

float *hd_share_follow_at(const struct hd_worker *w, uint32_t bucket)
{
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);

	return w->sharded ? hd_param_store_at(w->store, HD_VEC_PARAMS, run.at, run.len) :
		hd_share_sum_at(w, bucket);
}

uint64_t hd_share_norm_bytes(const struct hd_worker *w, uint32_t bucket)
{
	return hd_layout_bucket(&w->task->layout, bucket).nsegments * sizeof(double);
}

double *hd_share_norm_at(const struct hd_worker *w, uint32_t bucket)
{
	return w->segment_sumsq + hd_layout_bucket(&w->task->layout, bucket).first_segment;
}

uint64_t hd_share_digest_bytes(const struct hd_worker *w, uint32_t bucket)
{
	return (uint64_t)nslots(w) * hd_layout_bucket(&w->task->layout,
		bucket).nsegments * sizeof(struct hd_hash);
}

void hd_share_digest_get(const struct hd_worker *w, uint32_t bucket, uint8_t *bytes)
{
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);

	for (uint32_t k = 0; k < nslots(w); k++)
		memcpy(bytes + k * run.nsegments * sizeof(struct hd_hash),
			w->segment_digest[1 + k] + run.first_segment,
			run.nsegments * sizeof(struct hd_hash));
}

void hd_share_digest_put(struct hd_worker *w, uint32_t bucket, const uint8_t *bytes)
{
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);

	for (uint32_t k = 0; k < nslots(w); k++)
		memcpy(w->segment_digest[1 + k] + run.first_segment,
			bytes + k * run.nsegments * sizeof(struct hd_hash),
			run.nsegments * sizeof(struct hd_hash));
}

/* ---- a step: UPDATE, then FINISH ---- */

static enum hd_err bring_on(struct hd_rank *rank, uint32_t bucket, uint64_t *token)
{
	struct hd_worker *w = rank->worker;
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);
	struct hd_update u = { .kind = w->task->optim.kind, .grad = w->share->sum + run.at,
		.scalars = &rank->scalars };

	hd_param_store_span(w->store, run.at, run.len, &u);
	enum hd_err err = rank->device->ops->write(rank->device, w->share->parm + run.at, u.param,
		run.len * sizeof(float), token);
	u.param = w->share->parm + run.at;        /* the new ones come to lie beside those in use */
	if (!err && !rank->scalars.skip)
		err = rank->device->ops->update(rank->device, &u, token, &rank->diag);
	return err;
}

static void digest_slots(struct hd_worker *w, uint32_t bucket)
{
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);

	for (uint32_t i = run.first_segment; i < run.first_segment + run.nsegments; i++)
		for (uint32_t k = 0; k < nslots(w); k++)
			w->segment_digest[1 + k][i] = hd_param_store_hash(w->store, hd_vec_slot(k),
				w->task->layout.segment[i].at, w->task->layout.segment[i].len);
}

/* Moments and scalars as in the lists of a plan (interp.c); then every device takes every ndevices-th of
 * the own buckets. */
static void update_own(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	uint64_t token = 0;
	enum hd_err err = HD_OK;

	hd_moments_fold(rank);
	hd_barrier_wait(&w->barrier);
	if (!hd_rank_idle(rank))
		hd_scalars_make(rank);
	hd_barrier_wait(&w->barrier);
	if (hd_rank_idle(rank))
		return;
	for (uint32_t b = rank->id; b < w->nbuckets && !err; b += w->spec.ndevices)
		if (w->own[b])
			err = bring_on(rank, b, &token);
	err = err ? err : rank->device->ops->wait(rank->device, token, &rank->diag);
	for (uint32_t b = rank->id; b < w->nbuckets && !err && w->want_digest; b += w->spec.ndevices)
		if (w->own[b])
			digest_slots(w, b);
	if (err) {
		atomic_store(&w->torn, true);
		hd_rank_fail(rank, err);
	}
}

enum hd_err hd_share_update(struct hd_worker *w, const uint8_t *own, struct hd_diag *diag)
{
	assert(w->begun);
	hd_share_own(w, own);
	if (!sharded_now(w))
		return HD_OK;
	for (uint32_t b = 0; b < w->nbuckets; b++)
		if (own[b] && !w->summed[b])
			return hd_fail(diag, HD_E_INVAL, "step %lld: bucket %u of the own ones has no sum",
				(long long)w->step, b);
	if (hd_share_leaves_missing(w))
		return hd_fail(diag, HD_E_INVAL, "step %lld: %u virtual nodes have said nothing",
			(long long)w->step, hd_share_leaves_missing(w));
	hd_step_work(w, &w->share->work);
	return hd_worker_all(w, update_own, diag);
}

static void take_up(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	const struct hd_layout *layout = &w->task->layout;
	uint64_t token = 0;
	enum hd_err err = HD_OK;

	if (!w->scalars.skip)
		hd_moments_move(rank);
	for (uint32_t b = rank->id; b < w->nbuckets && !err; b += w->spec.ndevices) {
		const struct hd_chunk run = hd_layout_bucket(layout, b);
		err = rank->device->ops->write(rank->device,
			hd_param_store_at(w->store, HD_VEC_PARAMS, run.at, run.len),
			w->share->parm + run.at, run.len * sizeof(float), &token);
	}
	err = err ? err : rank->device->ops->wait(rank->device, token, &rank->diag);
	for (uint32_t i = rank->id; i < layout->nsegments && !err && w->want_digest; i += w->spec.ndevices)
		w->segment_digest[0][i] = hd_hash(w->share->parm + layout->segment[i].at,
			layout->segment[i].len * sizeof(float));
	if (err) {
		atomic_store(&w->torn, true);
		hd_rank_fail(rank, err);
	}
}

bool hd_share_sharded(const struct hd_worker *w) { return sharded_now(w); }

enum hd_err hd_sharded_finish(struct hd_worker *w, struct hd_diag *diag)
{
	enum hd_err err = hd_worker_all(w, take_up, diag);

	if (!err)
		hd_share_drop_slots(w, w->own);
	return err;
}
