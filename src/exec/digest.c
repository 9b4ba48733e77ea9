#include "exec/worker_int.h"

#include <assert.h>

/* The state digest, taken where the memory is warm: each rank hashes the segments
 * of the chunks it has just updated; joining the segments' digests to those of
 * tensors and of the table costs nothing. Equal to hd_state_digest() by its law. */

void hd_digest_segments(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	const struct hd_layout *layout = &w->task->layout;
	const float *flat[1 + HD_MAX_SLOTS] = { w->params, w->slot[0], w->slot[1] };
	uint32_t nflat = 1 + hd_optims[w->task->optim.kind].nslots;

	for (uint32_t i = 0; i < layout->nsegments; i++) {
		const struct hd_segment *s = &layout->segment[i];
		if (w->plan->owner[s->chunk] != rank->id)
			continue;
		for (uint32_t k = 0; k < nflat; k++)
			w->segment_digest[k][i] = hd_hash(flat[k] + s->at, s->len * sizeof(float));
	}
}

static struct hd_hash tensor_digest(const struct hd_worker *w, const struct hd_state_entry *e)
{
	const struct hd_layout *layout = &w->task->layout;
	const float *flat[1 + HD_MAX_SLOTS] = { w->params, w->slot[0], w->slot[1] };

	if (e->group == HD_STATE_RUN)
		return hd_state_tensor_digest(e);
	for (uint32_t k = 0; k < 1 + HD_MAX_SLOTS; k++)
		for (uint32_t p = 0; flat[k] && p < layout->nparams; p++)
			if (flat[k] + layout->at[p] == e->at) {
				uint32_t first = layout->first_segment[p], n = layout->first_segment[p + 1] - first;
				return hd_hash(w->segment_digest[k] + first, n * sizeof(struct hd_hash));
			}
	assert(false);                  /* an entry of the table lies in a flat vector or is a counter */
	return (struct hd_hash){ { 0 } };
}

struct hd_hash hd_digest_join(struct hd_worker *w)
{
	struct hd_hash *tensor = w->tensor_digest;

	for (uint32_t i = 0; i < w->state.nentries; i++)
		tensor[i] = tensor_digest(w, &w->state.entry[i]);
	return hd_state_digest_of(&w->state, tensor);
}

struct hd_hash hd_worker_digest(struct hd_worker *worker) { return hd_state_digest(&worker->state); }
