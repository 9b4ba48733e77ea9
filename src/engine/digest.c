#include "engine/digest_int.h"

#include <assert.h>
#include <string.h>

#include "base/le.h"
#include "engine/part_int.h"
#include "engine/worker_int.h"

/* The state digest, taken where the memory is warm: each rank hashes the segments
 * of the chunks it has just updated; joining the segments' digests to those of
 * tensors and of the table costs nothing. Tensors in slices are hashed then, in their natural order, which no
 * rank has. Equal to hd_state_digest() by its law. */

enum hd_err hd_digest_make(struct hd_worker *w, struct hd_diag *diag)
{
	const struct hd_layout *layout = &w->task->layout;
	struct hd_digests *d = hd_arena_take(&w->arena, 1, sizeof *d);
	bool all = d;

	for (uint32_t k = 0; k < HD_VECS && all; k++) {
		if (k == HD_VEC_BUFFERS || (k && !hd_param_store_elems(w->store, (enum hd_vector)k)))
			continue;
		d->segment[k] = hd_arena_take(&w->arena, layout->nsegments + 1, sizeof *d->segment[k]);
		all = d->segment[k];
	}
	if (all) {
		d->tensor = hd_arena_take(&w->arena, w->state.nentries + 1, sizeof *d->tensor);
		d->frozen = hd_arena_take(&w->arena, layout->nparams + 1, sizeof *d->frozen);
		d->bucket = hd_arena_take(&w->arena, w->stage->nbuckets, sizeof *d->bucket);
		d->held_said = hd_arena_take(&w->arena, w->stage->nbuckets, sizeof *d->held_said);
	}
	w->digests = d;
	return all && d->tensor && d->frozen && d->bucket && d->held_said ? HD_OK : hd_fail(diag, HD_E_NOMEM,
		"no memory for the digests of %u segments", layout->nsegments);
}

void hd_digest_segment(struct hd_worker *w, enum hd_vector vector, uint32_t isegment, const float *at)
{
	const struct hd_segment *s = &w->task->layout.segment[isegment];

	w->digests->segment[vector][isegment] = at ? hd_hash(at, s->len * sizeof *at) :
		hd_param_store_hash(w->store, vector, s->at, s->len);
}

void hd_digest_earlier(struct hd_worker *w, uint32_t isegment)
{
	for (uint32_t j = 0; j < w->task->delays.of_param[w->task->layout.segment[isegment].param]; j++)
		hd_digest_segment(w, hd_vec_earlier(j), isegment, NULL);
}

void hd_digest_segments(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	const struct hd_layout *layout = &w->task->layout;
	uint32_t nflat = 1 + hd_param_store_nslots(w->store);

	for (uint32_t i = 0; i < layout->nsegments; i++) {
		const struct hd_segment *s = &layout->segment[i];
		if (w->parts->part->owner[s->chunk] != rank->id ||
			w->task->train.param[s->param].slice.n > 1)
			continue;
		for (uint32_t k = 0; k < nflat; k++)
			hd_digest_segment(w, (enum hd_vector)(HD_VEC_PARAMS + k), i, NULL);
		hd_digest_earlier(w, i);
	}
}

/* No step writes a frozen parameter: its digest is taken when the state came from outside. */
void hd_digest_frozen(struct hd_worker *w)
{
	const struct hd_layout *layout = &w->task->layout;

	for (uint32_t p = 0; p < layout->nparams; p++)
		if (w->task->train.param[p].frozen)
			w->digests->frozen[p] = hd_state_tensor_digest(&(struct hd_state_entry){
				.dtype = HD_F32, .len_bytes = layout->len[p] * sizeof(float),
				.at = hd_param_store_at(w->store, HD_VEC_PARAMS, layout->at[p],
					layout->len[p]) });
}

static struct hd_hash tensor_digest(const struct hd_worker *w, const struct hd_state_entry *e)
{
	const struct hd_layout *layout = &w->task->layout;
	enum hd_vector vector = HD_VECS;
	uint64_t at = 0;
	uint32_t p = 0;

	if (e->group == HD_STATE_RUN || e->key == HD_KEY_TENSOR || e->slices)
		return hd_state_tensor_digest(e);
	bool found = hd_param_store_find(w->store, e->at, &vector, &at);
	while (found && p < layout->nparams && layout->at[p] != at)
		p++;
	/* an entry of the table lies in a vector of the store or is a counter */
	assert(found && vector != HD_VEC_BUFFERS && p < layout->nparams);
	if (w->task->train.param[p].frozen)
		return w->digests->frozen[p];
	uint32_t first = layout->first_segment[p], n = layout->first_segment[p + 1] - first;
	return hd_hash(w->digests->segment[vector] + first, n * sizeof(struct hd_hash));
}

struct hd_hash hd_digest_join(struct hd_worker *w)
{
	struct hd_hash *tensor = w->digests->tensor;

	for (uint32_t i = 0; i < w->state.nentries; i++)
		tensor[i] = tensor_digest(w, &w->state.entry[i]);
	return hd_state_digest_of(&w->state, tensor);
}

struct hd_hash hd_digest_report(struct hd_worker *w)
{
	w->digests->reported_at = (uint64_t)w->count.step;
	return w->digests->reported = hd_digest_join(w);
}

void hd_digest_forget(struct hd_worker *w) { w->digests->reported_at = w->digests->held_at = 0; }

struct hd_hash hd_worker_digest(struct hd_worker *worker) { return hd_state_digest(&worker->state); }

/* Without pads: an update by segments leaves them, one of a whole bucket does arithmetic there. */
static struct hd_hash hash_segments(const struct hd_worker *w, enum hd_vector vector,
	const struct hd_chunk *run)
{
	const struct hd_segment *s = w->task->layout.segment + run->first_segment;
	struct hd_hasher all;

	hd_hasher_init(&all);
	for (uint32_t i = 0; i < run->nsegments; i++) {
		const struct hd_hash one = hd_param_store_hash(w->store, vector, s[i].at, s[i].len);
		hd_hasher_add(&all, &one, sizeof one);
	}
	return hd_hasher_end(&all);
}

/* What other holders have as well: earlier parameters (versions.c) were compared when they were new. */
static uint64_t digest_held(const struct hd_worker *w, uint32_t bucket)
{
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);
	struct hd_hash of[HD_VECS];
	uint32_t n = 0;

	for (; n <= hd_param_store_nslots(w->store); n++)
		of[n] = hash_segments(w, (enum hd_vector)(HD_VEC_PARAMS + n), &run);
	const uint64_t digest = hd_hash64(of, n * sizeof *of);
	return digest ? digest : 1;
}

/* What was said of parts of the state is still true of those that are here. */
static bool holds_as_said(const struct hd_worker *w)
{
	const struct hd_digests *d = w->digests;

	for (uint32_t b = 0; b < w->stage->nbuckets && d->held_at == (uint64_t)w->count.step; b++)
		if (d->held_said[b] && w->parts->slot_here[b] && digest_held(w, b) != d->held_said[b])
			return false;
	return true;
}

bool hd_worker_as_reported(struct hd_worker *w)
{
	if (!holds_as_said(w))
		return false;
	return !w->digests->reported_at || w->digests->reported_at != (uint64_t)w->count.step ||
		hd_hash_same(w->digests->reported, hd_worker_digest(w));
}

uint64_t hd_dist_digest_bytes(const struct hd_worker *w, uint32_t bucket)
{
	return (uint64_t)hd_param_store_nslots(w->store) * hd_layout_bucket(&w->task->layout,
		bucket).nsegments * sizeof(struct hd_hash);
}

void hd_dist_digest_get(const struct hd_worker *w, uint32_t bucket, uint8_t *bytes)
{
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);

	for (uint32_t k = 0; k < hd_param_store_nslots(w->store); k++)
		memcpy(bytes + k * run.nsegments * sizeof(struct hd_hash),
			w->digests->segment[1 + k] + run.first_segment,
			run.nsegments * sizeof(struct hd_hash));
}

void hd_dist_digest_put(struct hd_worker *w, uint32_t bucket, const uint8_t *bytes)
{
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);

	for (uint32_t k = 0; k < hd_param_store_nslots(w->store); k++)
		memcpy(w->digests->segment[1 + k] + run.first_segment,
			bytes + k * run.nsegments * sizeof(struct hd_hash),
			run.nsegments * sizeof(struct hd_hash));
}

static void digest_each_held(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;

	for (uint32_t b = rank->id; b < w->stage->nbuckets; b += w->spec.ndevices)
		w->digests->held_said[b] = w->digests->held[b] ? digest_held(w, b) : 0;
}

void hd_dist_held_digests(struct hd_worker *w, const uint8_t *own, uint64_t *digest)
{
	w->digests->held = own;
	enum hd_err err = hd_worker_all(w, digest_each_held, NULL);

	assert(!err && hd_dist_by_stage(w));
	(void)err;
	w->digests->held_at = (uint64_t)w->count.step;
	memcpy(digest, w->digests->held_said, w->stage->nbuckets * sizeof *digest);
}

static void digest_buckets(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;

	for (uint32_t b = rank->id; b < w->stage->nbuckets; b += w->spec.ndevices) {
		const struct hd_chunk run = hd_layout_bucket(&w->task->layout, b);
		uint8_t bytes[8];
		hd_put64(bytes, hd_hash64((hd_dist_sharded(w) ? w->parts->part->parm :
			w->parts->part->sum) + run.at,
			run.len * sizeof(float)));
		memcpy(&w->digests->bucket[b], bytes, sizeof bytes);
	}
}

uint64_t hd_dist_sums_digest(struct hd_worker *w)
{
	enum hd_err err = hd_worker_all(w, digest_buckets, NULL);

	assert(!err && (w->step->nsummed == w->stage->nbuckets || hd_dist_sharded(w)));
	(void)err;
	return hd_hash64(w->digests->bucket, w->stage->nbuckets * sizeof *w->digests->bucket);
}
