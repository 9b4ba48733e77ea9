#include "engine/worker_int.h"

/* Roots go out while the last gradients are made. A bucket counts, over all devices with leaves, the
 * gradients of which it or one of its pieces has something; a device in its last wave counts down as it has
 * folded each. The one that comes to 0 has seen what all others wrote. */

void hd_dist_watch(struct hd_worker *w, hd_dist_watcher *watch, void *user)
{
	w->step->watch = watch;
	w->step->watch_user = user;
}

bool hd_dist_final(const struct hd_worker *w, uint32_t pass, uint32_t bucket)
{
	const struct hd_work *work = pass ? &w->step->repair[pass - 1] : hd_worker_work(w);

	return pass <= w->step->nrepairs && atomic_load_explicit(&work->left[bucket],
		memory_order_acquire) == 0;
}

static uint32_t number_of(const struct hd_worker *w, const struct hd_work *work)
{
	return work == hd_worker_work(w) ? 0 : 1 + (uint32_t)(work - w->step->repair);
}

static void tell(const struct hd_worker *w, const struct hd_work *work, uint32_t bucket)
{
	if (w->step->watch)
		w->step->watch(w->step->watch_user, number_of(w, work), bucket);
}

void hd_final_begin(struct hd_worker *w, struct hd_work *work)
{
	uint32_t nranks = 0;

	for (uint32_t r = 0; r < w->spec.ndevices; r++)
		nranks += work->rank[r].script.nvns_here > 0;
	w->step->early = w->step->watch && !work->whole && work->njoins == 0 && nranks;
	for (uint32_t b = 0; b < w->stage->nbuckets && w->step->early; b++)
		atomic_store_explicit(&work->left[b], nranks * w->stage->bucket_grads[b],
			memory_order_relaxed);
}

void hd_final_folded(void *user, uint32_t grad)
{
	const struct hd_rank *rank = user;
	const struct hd_worker *w = rank->worker;
	const struct hd_layout *layout = &w->task->layout;
	const uint32_t param = layout->grad_param[grad];
	uint32_t first = layout->first_segment[param], end = layout->first_segment[param + 1];

	if (first == end)
		return;
	for (uint32_t b = hd_layout_bucket_of(layout, layout->segment[first].chunk);
		b <= hd_layout_bucket_of(layout, layout->segment[end - 1].chunk); b++)
		if (atomic_fetch_sub_explicit(&w->step->work->left[b], 1, memory_order_acq_rel) == 1)
			tell(w, w->step->work, b);
}

void hd_final_end(struct hd_worker *w, struct hd_work *work)
{
	for (uint32_t b = 0; b < w->stage->nbuckets; b++)
		if (atomic_exchange_explicit(&work->left[b], 0, memory_order_acq_rel))
			tell(w, work, b);
	w->step->early = false;
}
