#include "engine/part_int.h"

#include <assert.h>
#include <string.h>

#include "engine/meeting.h"
#include "engine/overlap.h"
#include "engine/worker_int.h"

/* The part of a plan that is in use, and the memory of what other workers send. */

enum hd_err hd_parts_make(struct hd_worker *w, struct hd_diag *diag)
{
	w->parts = hd_arena_take(&w->arena, 1, sizeof *w->parts);
	if (!w->parts)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a worker");
	for (size_t i = 0; i < 2; i++)
		hd_arena_init(&w->parts->of[i].arena, 0);
	return HD_OK;
}

enum hd_err hd_parts_tables(struct hd_worker *w, struct hd_diag *diag)
{
	const uint32_t n = w->stage->nbuckets;
	struct hd_worker_parts *x = w->parts;

	x->place_bytes = w->task->layout.first_chunk ? hd_layout_most_bytes(&w->task->layout) :
		HD_BUCKET_BYTES;
	x->own = hd_arena_take(&w->arena, n, 1);
	x->slot_here = hd_arena_take(&w->arena, n, 1);
	x->spilled = hd_arena_take(&w->arena, n, 1);
	x->sharded = hd_job_copies(w->task->job) > 0;
	if (!x->own || !x->slot_here || !x->spilled)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the tables of %u buckets", n);
	memset(x->own, 1, n);
	memset(x->slot_here, 1, n);
	return HD_OK;
}

void hd_parts_give(struct hd_worker *w, struct hd_device *first)
{
	first->ops->give(first, w->parts->receive, w->parts->nreceive * w->parts->place_bytes);
	for (size_t i = 0; i < 2; i++)
		hd_overlap_give(w, &w->parts->of[i].work);
}

void hd_parts_finish(struct hd_worker *w)
{
	for (size_t i = 0; i < 2; i++)
		hd_arena_finish(&w->parts->of[i].arena);
}

struct hd_work *hd_worker_work(const struct hd_worker *w)
{
	return w->parts->part ? &w->parts->part->work : NULL;
}

bool hd_worker_planned(const struct hd_worker *w) { return w->parts->part && w->parts->part->plan; }
bool hd_worker_alone(const struct hd_worker *w) { return w->parts->part->alone; }
float *hd_worker_sum(const struct hd_worker *w) { return w->parts->part->sum; }

struct hd_arena *hd_part_arena(const struct hd_worker *w) { return &w->parts->part->arena; }

void hd_part_rest(struct hd_worker *w, struct hd_pipe *rest, const uint32_t *device)
{
	struct hd_worker_part *part = w->parts->part;

	part->work.pipe = rest;
	if (!part->alone)                 /* chunks and sums are the exchange's */
		return;
	for (uint32_t c = 0; c < w->task->layout.nchunks; c++)
		part->owner[c] = device[part->owner[c]];
	part->sum = part->parm = rest->vector[0];
}

/* A flat vector for sums, receive buffers for the roots of others, moments folded apart, those that workers
 * exchange at norms. */
uint64_t hd_parts_bytes(const struct hd_worker *w)
{
	const struct hd_worker_parts *x = w->parts;
	const uint64_t places = x->need_places > x->nreceive ? x->need_places : x->nreceive;
	const bool moments = x->need_moments || w->step->moments.sum != w->step->moments.leaf;

	const uint64_t sum = w->spec.by_stage ? x->need_sum_bytes : w->stage->sum_bytes;

	return (w->stage->sum || x->need_sum ? sum : 0) +
		places * w->parts->place_bytes + x->need_received_bytes +
		(moments ? hd_moments_bytes(w->task) : 0) +
		hd_meeting_bytes(w);
}

/* The last is the coordinator's, which has no rings. */
uint64_t hd_parts_link_bytes(const struct hd_worker *w)
{
	const uint64_t n = w->parts->need_links;

	return n * HD_LINK_BYTES + (n ? n - 1 : 0) * HD_LINK_RINGS_BYTES;
}

enum hd_err hd_dist_places(struct hd_worker *w, uint64_t n, struct hd_diag *diag)
{
	struct hd_device *first = w->rank[0].device;
	float *places;

	if (n <= w->parts->nreceive)
		return HD_OK;
	enum hd_err err = first->ops->take(first, n * w->parts->place_bytes, (void **)&places, diag);
	if (err)
		return err;
	first->ops->give(first, w->parts->receive, w->parts->nreceive * w->parts->place_bytes);
	w->parts->receive = places;
	w->parts->nreceive = n;
	return HD_OK;
}

float *hd_dist_place(const struct hd_worker *w, uint64_t i)
{
	assert(i < w->parts->nreceive);
	return w->parts->receive + i * (w->parts->place_bytes / sizeof(float));
}
