#include "engine/worker_int.h"

#include <assert.h>
#include <string.h>

#include "sys/memory.h"
#include "engine/eager.h"
#include "engine/onset.h"
#include "engine/part_int.h"

/* State by stages: parameters and slots of some buckets lie here; what else of them is here for a while lies
 * in a file. Sharded state: slots of some buckets lie here, and only these are brought on. New parameters of
 * all buckets come to lie beside the old ones, in the first root's buffer: whoever has the sum of a bucket,
 * or its parameters, needs its roots no more (exchange.h, rules 1 and 6). The flat vectors of slots keep
 * their addresses; memory is only where buckets are. */

static bool sharded_now(const struct hd_worker *w) { return w->parts->sharded && !w->parts->part->alone; }

static uint32_t nslots(const struct hd_worker *w) { return hd_optim_nslots(&w->task->optim); }

/* ---- slots; of state by stages parameters and slots ---- */

const struct hd_layout *hd_dist_layout(const struct hd_worker *w) { return &w->task->layout; }
bool hd_dist_by_stage(const struct hd_worker *w) { return w->spec.by_stage; }
bool hd_dist_measures(const struct hd_worker *w)
{
	return w->spec.by_stage && hd_optims[w->task->optim.kind].unit == HD_UNIT_TENSOR;
}
uint32_t hd_dist_servers(const struct hd_worker *w) { return hd_job_servers(w->task->job); }
uint32_t hd_dist_copies(const struct hd_worker *w) { return hd_job_copies(w->task->job); }

static uint32_t nvectors(const struct hd_worker *w)
{
	return nslots(w) + (w->spec.by_stage ? 1 + w->task->delays.most : 0);
}

/* Slots; of state by stages parameters, slots, then what steps to come read of earlier ones. */
static enum hd_vector vector_of(const struct hd_worker *w, uint32_t k)
{
	if (!w->spec.by_stage)
		return hd_vec_slot(k);
	return k <= nslots(w) ? (enum hd_vector)(HD_VEC_PARAMS + k) : hd_vec_earlier(k - 1 - nslots(w));
}

/* Each vector of a bucket; what it held is lost. */
static enum hd_err move(struct hd_worker *w, uint32_t bucket, bool to_file, struct hd_diag *diag)
{
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);
	enum hd_err err = HD_OK;

	for (uint32_t k = 0; k < nvectors(w) && !err; k++)
		err = (to_file ? hd_param_store_spill : hd_param_store_unspill)(w->store, vector_of(w, k),
			run.at,
			run.len, diag);
	if (!err)
		w->parts->spilled[bucket] = to_file;
	return err;
}

static bool spills(const struct hd_worker *w) { return w->spec.by_stage && w->spec.spill; }

enum hd_err hd_dist_lay_aside(struct hd_worker *w, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t b = 0; b < w->stage->nbuckets && spills(w) && !err; b++)
		err = w->parts->spilled[b] ? HD_OK : move(w, b, true, diag);
	return err;
}

enum hd_err hd_held_begin(struct hd_worker *w, struct hd_diag *diag)
{
	enum hd_err err = spills(w) ? hd_param_store_spills(w->store, w->spec.spill, diag) : HD_OK;

	return err ? err : hd_dist_lay_aside(w, diag);
}

void hd_held_end(struct hd_worker *w)
{
	if (w->spec.by_stage)
		hd_dist_drop_slots(w, w->parts->own);
}

bool hd_worker_owns(const struct hd_worker *w, uint32_t bucket) { return w->parts->own[bucket]; }

/* Vector by vector, through `room` for one of them: the system has that back at once, which the heap would
 * keep for later. */
static enum hd_err bring(struct hd_worker *w, uint32_t bucket, uint8_t *room, struct hd_diag *diag)
{
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);
	enum hd_err err = HD_OK;

	for (uint32_t k = 0; k < nvectors(w) && !err; k++) {
		hd_param_store_read(w->store, vector_of(w, k), run.at, run.len, room);
		err = hd_param_store_unspill(w->store, vector_of(w, k), run.at, run.len, diag);
		if (!err)
			hd_param_store_write(w->store, vector_of(w, k), run.at, run.len, room);
	}
	if (err)
		return err;
	w->parts->spilled[bucket] = 0;
	w->parts->slot_here[bucket] = 1;
	return HD_OK;
}

enum hd_err hd_dist_hold(struct hd_worker *w, const uint8_t *own, struct hd_diag *diag)
{
	struct hd_memory room = { 0 };
	enum hd_err err = HD_OK;

	hd_dist_own(w, own);
	for (uint32_t b = 0; b < w->stage->nbuckets && !err; b++) {
		if (!own[b] || !w->parts->spilled[b])
			continue;
		err = room.at ? HD_OK : hd_memory_take(hd_layout_most_bytes(&w->task->layout),
			HD_MEMORY_SMALL, &room, diag);
		err = err ? err : bring(w, b, room.at, diag);
	}
	hd_memory_give(&room);
	return err;
}

/* Memory of a file that cannot be had again stays the file's. */
static void drop(struct hd_worker *w, uint32_t bucket)
{
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);

	if (w->parts->spilled[bucket])
		(void)!move(w, bucket, false, NULL);
	for (uint32_t k = 0; k < nvectors(w) && w->parts->slot_here[bucket]; k++)
		hd_param_store_drop(w->store, vector_of(w, k), run.at, run.len);
	w->parts->slot_here[bucket] = 0;
}

void hd_dist_own(struct hd_worker *w, const uint8_t *own)
{
	for (uint32_t b = 0; b < w->stage->nbuckets; b++)
		w->parts->own[b] = own ? own[b] : 0;
}

bool hd_dist_whole(const struct hd_worker *w) { return !nvectors(w) || !memchr(w->parts->own, 0,
	w->stage->nbuckets); }

void hd_dist_drop_slots(struct hd_worker *w, const uint8_t *keep)
{
	for (uint32_t b = 0; b < w->stage->nbuckets && (w->parts->sharded || w->spec.by_stage);
		b++)
		if (!keep || !keep[b])
			drop(w, b);
}

uint64_t hd_dist_slot_bytes(const struct hd_worker *w, uint32_t bucket)
{
	return hd_layout_bucket(&w->task->layout, bucket).len * sizeof(float) * nvectors(w);
}

void hd_dist_slot_get(struct hd_worker *w, uint32_t bucket, uint8_t *bytes)
{
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);

	for (uint32_t k = 0; k < nvectors(w); k++)
		hd_eager_read(w, vector_of(w, k), run.at, run.len,
			bytes + k * run.len * sizeof(float));
}

enum hd_err hd_dist_slot_put(struct hd_worker *w, uint32_t bucket, const uint8_t *bytes, uint64_t len,
	bool borrowed, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	if (bucket >= w->stage->nbuckets || len != hd_dist_slot_bytes(w, bucket))
		return hd_fail(diag, HD_E_PROTOCOL, "%llu bytes are not the slots of bucket %u",
			(unsigned long long)len, bucket);
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);
	borrowed &= spills(w);
	if (w->parts->spilled[bucket] != borrowed)
		err = move(w, bucket, borrowed, diag);
	for (uint32_t k = 0; k < nvectors(w) && !err; k++)
		hd_param_store_write(w->store, vector_of(w, k), run.at, run.len,
			bytes + k * run.len * sizeof(float));
	w->parts->slot_here[bucket] = 1;
	return err;
}

/* ---- what goes with the parameters ---- */

float *hd_dist_parm_at(const struct hd_worker *w, uint32_t bucket) { return w->parts->part->parm +
	hd_layout_bucket(&w->task->layout, bucket).at; }

float *hd_dist_follow_at(const struct hd_worker *w, uint32_t bucket)
{
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);

	return w->parts->sharded ? hd_param_store_at(w->store, HD_VEC_PARAMS, run.at, run.len) :
		hd_dist_sum_at(w, bucket);
}

uint64_t hd_dist_norm_bytes(const struct hd_worker *w, uint32_t bucket)
{
	return hd_layout_bucket(&w->task->layout, bucket).nsegments * sizeof(double);
}

double *hd_dist_norm_at(const struct hd_worker *w, uint32_t bucket)
{
	return w->stage->segment_sumsq + hd_layout_bucket(&w->task->layout, bucket).first_segment;
}

/* ---- a step: UPDATE, then FINISH ---- */

static enum hd_err bring_on(struct hd_rank *rank, uint32_t bucket, uint64_t *token)
{
	struct hd_worker *w = rank->worker;
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);
	struct hd_update u = { .kind = w->task->optim.kind, .grad = w->parts->part->sum + run.at,
		.scalars = &rank->scalars };

	/* new parameters that may be on their way stay as they are, also of a step that is skipped */
	if (hd_onset_brought(w, bucket))
		return rank->scalars.skip ? HD_OK : hd_onset_slots(rank, &run, token);
	hd_param_store_span(w->store, run.at, run.len, &u);
	enum hd_err err = rank->device->ops->write(rank->device, w->parts->part->parm + run.at, u.param,
		run.len * sizeof(float), token);
	u.param = w->parts->part->parm + run.at;        /* the new ones come to lie beside those in use */
	if (!err && !rank->scalars.skip)
		err = hd_update_by_rates(rank, &u, run.at, token, &rank->diag);
	return err;
}

static void digest_slots(struct hd_worker *w, uint32_t bucket)
{
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);

	for (uint32_t i = run.first_segment; i < run.first_segment + run.nsegments; i++)
		for (uint32_t k = 0; k < nslots(w); k++)
			hd_digest_segment(w, hd_vec_slot(k), i, NULL);
}

/* Moments and scalars as in the lists of a plan (interp.c); then every device takes every ndevices-th of
 * the own buckets. */
static void update_own(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	uint64_t token = 0;
	enum hd_err err = HD_OK;

	hd_moments_fold(rank);
	hd_ranks_meet(w);
	if (!hd_rank_idle(rank))
		hd_scalars_make(rank);
	hd_ranks_meet(w);
	if (hd_rank_idle(rank))
		return;
	for (uint32_t b = rank->id; b < w->stage->nbuckets && !err; b += w->spec.ndevices)
		if (w->parts->own[b])
			err = bring_on(rank, b, &token);
	err = err ? err : rank->device->ops->wait(rank->device, token, &rank->diag);
	for (uint32_t b = rank->id; b < w->stage->nbuckets && !err &&
		w->step->want_digest; b += w->spec.ndevices)
		if (w->parts->own[b])
			digest_slots(w, b);
	if (err) {
		atomic_store(&w->step->torn, true);
		hd_rank_fail(rank, err);
	}
}

/* Of state by stages: parameters and slots are as they were. */
static void measure_own(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	uint64_t token = 0;
	enum hd_err err = HD_OK;

	hd_scalars_of_moves(w, &rank->scalars);
	for (uint32_t b = rank->id; b < w->stage->nbuckets && !err; b += w->spec.ndevices) {
		const struct hd_chunk run = hd_layout_bucket(&w->task->layout, b);
		if (w->parts->own[b])
			err = hd_measure_run(rank, &run, &token, &rank->diag);
	}
	err = err ? err : rank->device->ops->wait(rank->device, token, &rank->diag);
	if (err)
		hd_rank_fail(rank, err);
}

static enum hd_err measure(struct hd_worker *w, const uint8_t *own, struct hd_diag *diag)
{
	enum hd_err err = hd_dist_hold(w, own, diag);

	for (uint32_t b = 0; b < w->stage->nbuckets && !err; b++)
		if (own[b] && !w->step->summed[b])
			err = hd_fail(diag, HD_E_INVAL, "step %lld: bucket %u of the own ones has no sum",
				(long long)w->count.step, b);
	if (!err && hd_dist_leaves_missing(w))
		err = hd_fail(diag, HD_E_INVAL, "step %lld: %u virtual nodes have said nothing",
			(long long)w->count.step, hd_dist_leaves_missing(w));
	if (err)
		return err;
	hd_step_work(w, &w->parts->part->work);
	return hd_worker_all(w, measure_own, diag);
}

void hd_dist_ratio_get(const struct hd_worker *w, uint32_t bucket, double *to)
{
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);

	for (uint32_t k = 0; k < 2; k++, to += run.nsegments) {
		const double *from = w->stage->unit_sumsq[k] + run.first_segment;
		if (memcmp(to, from, run.nsegments * sizeof *to) != 0)
			memcpy(to, from, run.nsegments * sizeof *to);
	}
}

void hd_dist_ratio_put(struct hd_worker *w, uint32_t bucket, const double *from)
{
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);

	for (uint32_t k = 0; k < 2; k++)
		memcpy(w->stage->unit_sumsq[k] + run.first_segment, from + k * run.nsegments,
			run.nsegments * sizeof *from);
}

/* Of onset.h, rule 9. A step that weighs nothing is skipped: so is one of devices that compute nothing. */
static enum hd_err check_weight(const struct hd_worker *w, struct hd_diag *diag)
{
	const double weight = hd_scalars_weight(w), expected = w->onset ? hd_onset_weight(w) : 0;

	if (!w->onset || !w->onset->naside || weight == 0 || memcmp(&weight, &expected, sizeof weight) == 0)
		return HD_OK;
	return hd_fail(diag, HD_E_BUG, "step %lld: its samples weigh %g, and parameters were sent as if it "
		"were %g; please report it", (long long)w->count.step, weight, expected);
}

enum hd_err hd_dist_update(struct hd_worker *w, const uint8_t *own, struct hd_diag *diag)
{
	assert(w->step->begun);
	if (w->spec.by_stage)
		return hd_dist_measures(w) ? measure(w, own, diag) : HD_OK;
	hd_dist_own(w, own);
	if (!sharded_now(w))
		return HD_OK;
	for (uint32_t b = 0; b < w->stage->nbuckets; b++)
		if (own[b] && !w->step->summed[b])
			return hd_fail(diag, HD_E_INVAL, "step %lld: bucket %u of the own ones has no sum",
				(long long)w->count.step, b);
	if (hd_dist_leaves_missing(w))
		return hd_fail(diag, HD_E_INVAL, "step %lld: %u virtual nodes have said nothing",
			(long long)w->count.step, hd_dist_leaves_missing(w));
	enum hd_err err = check_weight(w, diag);
	if (err)
		return err;
	hd_step_work(w, &w->parts->part->work);
	err = hd_worker_all(w, update_own, diag);
	if (!err)
		hd_onset_updated(w);
	return err;
}

static void end_versions(struct hd_worker *w, uint32_t bucket)
{
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);

	hd_versions_made_run(w, &run);
	for (uint32_t i = 0; i < run.nsegments && w->step->want_digest; i++)
		hd_digest_earlier(w, run.first_segment + i);
}

static void take_up(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	const struct hd_layout *layout = &w->task->layout;
	const bool skip = w->step->scalars.skip;
	uint64_t token = 0;
	enum hd_err err = HD_OK;

	if (!skip)
		hd_moments_move(rank);
	for (uint32_t b = rank->id; b < w->stage->nbuckets && !err; b += w->spec.ndevices) {
		const struct hd_chunk run = hd_layout_bucket(layout, b);
		hd_versions_age_run(w, &run);
		err = skip ? HD_OK : rank->device->ops->write(rank->device,
			hd_param_store_at(w->store, HD_VEC_PARAMS, run.at, run.len),
			w->parts->part->parm + run.at, run.len * sizeof(float), &token);
	}
	err = err ? err : rank->device->ops->wait(rank->device, token, &rank->diag);
	for (uint32_t b = rank->id; b < w->stage->nbuckets && !err; b += w->spec.ndevices)
		end_versions(w, b);
	for (uint32_t i = rank->id; i < layout->nsegments && !err &&
		w->step->want_digest; i += w->spec.ndevices)
		hd_digest_segment(w, HD_VEC_PARAMS, i, skip ? NULL :
			w->parts->part->parm + layout->segment[i].at);
	if (err) {
		atomic_store(&w->step->torn, true);
		hd_rank_fail(rank, err);
	}
}

bool hd_dist_sharded(const struct hd_worker *w) { return sharded_now(w); }

enum hd_err hd_sharded_finish(struct hd_worker *w, struct hd_diag *diag)
{
	enum hd_err err = hd_worker_all(w, take_up, diag);

	if (!err)
		hd_dist_drop_slots(w, w->parts->own);
	return err;
}
