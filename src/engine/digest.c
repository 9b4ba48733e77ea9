#include "engine/worker_int.h"

#include <assert.h>

/* The state digest, taken where the memory is warm: each rank hashes the segments
 * of the chunks it has just updated; joining the segments' digests to those of
 * tensors and of the table costs nothing. Equal to hd_state_digest() by its law. */

void hd_digest_segments(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	const struct hd_layout *layout = &w->task->layout;
	uint32_t nflat = 1 + hd_param_store_nslots(w->store);

	for (uint32_t i = 0; i < layout->nsegments; i++) {
		const struct hd_segment *s = &layout->segment[i];
		if (w->share->owner[s->chunk] != rank->id)
			continue;
		for (uint32_t k = 0; k < nflat; k++)
			w->segment_digest[k][i] = hd_param_store_hash(w->store,
				(enum hd_vector)(HD_VEC_PARAMS + k), s->at, s->len);
	}
}

/* Nobody writes a frozen parameter during a run: its digest is taken when the state came from outside. */
void hd_digest_frozen(struct hd_worker *w)
{
	const struct hd_layout *layout = &w->task->layout;

	for (uint32_t p = 0; p < layout->nparams; p++)
		if (w->task->train.param[p].frozen)
			w->frozen_digest[p] = hd_state_tensor_digest(&(struct hd_state_entry){
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

	if (e->group == HD_STATE_RUN || e->key == HD_KEY_TENSOR)
		return hd_state_tensor_digest(e);
	bool found = hd_param_store_find(w->store, e->at, &vector, &at);
	while (found && p < layout->nparams && layout->at[p] != at)
		p++;
	/* an entry of the table lies in a vector of the store or is a counter */
	assert(found && vector < HD_VEC_BUFFERS && p < layout->nparams);
	if (w->task->train.param[p].frozen)
		return w->frozen_digest[p];
	uint32_t first = layout->first_segment[p], n = layout->first_segment[p + 1] - first;
	return hd_hash(w->segment_digest[vector - HD_VEC_PARAMS] + first, n * sizeof(struct hd_hash));
}

struct hd_hash hd_digest_join(struct hd_worker *w)
{
	struct hd_hash *tensor = w->tensor_digest;

	for (uint32_t i = 0; i < w->state.nentries; i++)
		tensor[i] = tensor_digest(w, &w->state.entry[i]);
	return hd_state_digest_of(&w->state, tensor);
}

struct hd_hash hd_worker_digest(struct hd_worker *worker) { return hd_state_digest(&worker->state); }

bool hd_worker_is_as_told(struct hd_worker *w)
{
	return !w->told_at || w->told_at != (uint64_t)w->step || hd_hash_same(w->told, hd_worker_digest(w));
}
