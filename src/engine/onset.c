#include "engine/onset.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "engine/part_int.h"
#include "engine/worker_int.h"

/* What is possible of the next step while the one at hand ends: buckets first, as the next node needs them,
 * then nodes. The tables of needs: onset_needs.c. */

static bool is_replicated(const struct hd_worker *w) { return !w->parts->sharded; }

/* ---- what was begun ---- */

void hd_onset_void(struct hd_worker *w)
{
	struct hd_onset *o = w->onset;

	for (uint32_t r = 0; o && r < w->spec.ndevices; r++) {
		o->nvoid += o->rank[r].done;
		o->rank[r].done = 0;
	}
	if (o)
		o->err = HD_OK;
}

void hd_onset_drop(struct hd_worker *w)
{
	struct hd_onset *o = w->onset;

	if (!o)
		return;
	hd_onset_void(w);
	for (uint32_t r = 0; r < w->spec.ndevices; r++)
		o->rank[r].next = 0;
	for (uint32_t v = 0; v < w->task->job->nvns; v++)
		o->rows[v].next = 0;
}

bool hd_onset_any(const struct hd_worker *w)
{
	bool any = false;

	for (uint32_t v = 0; w->onset && v < w->task->job->nvns; v++)
		any |= w->onset->rows[v].next != 0;
	return any;
}

void hd_onset_begin(struct hd_worker *w)
{
	struct hd_onset *o = w->onset;

	if (!o)
		return;
	o->goes_on = w->step->goes_on;
	o->step = (uint64_t)w->count.step;
	o->scaled = 0;
	o->naside = 0;
	memset(o->readable, 0, w->stage->nbuckets);
	memset(o->brings, is_replicated(w), w->stage->nbuckets);
}

enum hd_err hd_onset_compute(struct hd_worker *w, const struct hd_work *work, struct hd_diag *diag)
{
	struct hd_onset *o = w->onset;

	if (!o)
		return HD_OK;
	const bool other = work != hd_worker_work(w);
	const enum hd_err err = other || !o->err ? HD_OK : hd_fail(diag, o->err, "%s", o->diag.text);
	if (other || err)
		hd_onset_void(w);
	return err;
}

bool hd_onset_rows(struct hd_worker *w, uint64_t step, uint32_t vn, struct hd_loaded *loaded)
{
	struct hd_onset_rows *rows = w->onset ? &w->onset->rows[vn] : NULL;

	/* a probe reads its rows by a reader of its own */
	if (!rows || rows->next != step + 1 || !w->step->begun)
		return false;
	*loaded = rows->loaded;
	rows->next = 0;
	return true;
}

uint32_t hd_onset_done(struct hd_rank *rank)
{
	struct hd_onset *o = rank->worker->onset;
	struct hd_onset_rank *at = o ? &o->rank[rank->id] : NULL;

	if (!at || rank->first_ivn || at->next != hd_rank_step(rank) + 1)
		return 0;
	const uint32_t done = at->done;
	at->next = at->done = 0;
	at->bucket = HD_NONE;
	return done;
}

/* ---- what is possible ---- */

static uint64_t next_step(const struct hd_worker *w) { return (uint64_t)w->count.step + w->step->begun; }

void hd_dist_brings(struct hd_worker *w, const uint8_t *own)
{
	for (uint32_t b = 0; w->onset && w->step->begun && b < w->stage->nbuckets; b++)
		w->onset->brings[b] = w->parts->own[b] && w->parts->slot_here[b] ? own[b] : 0;
}

void hd_dist_watch_early(struct hd_worker *w, hd_dist_early_watcher *watch, void *user)
{
	w->step->watch_early = watch;
	w->step->watch_early_user = user;
}

bool hd_onset_brought(const struct hd_worker *w, uint32_t bucket)
{
	return w->onset && w->onset->readable[bucket];
}

void hd_onset_updated(struct hd_worker *w)
{
	struct hd_onset *o = w->onset;

	for (uint32_t b = 0; o && b < w->stage->nbuckets; b++)
		o->readable[b] |= w->parts->own[b];
}

unsigned hd_dist_wants(const struct hd_worker *w)
{
	if (!w->onset)
		return 0;
	return (w->onset->norms ? 0 : HD_DIST_WANTS_METRICS) |
		(is_replicated(w) ? 0 : HD_DIST_WANTS_PARAMETERS);
}

void hd_dist_readable(struct hd_worker *w, uint32_t bucket)
{
	if (w->onset && w->step->begun && hd_dist_sharded(w))
		w->onset->readable[bucket] = 1;
}

/* Of the first wave; none: the rank computes nothing. */
static uint32_t wave_len(const struct hd_rank_work *work)
{
	uint32_t n = 0;

	while (n < work->script.nvns_here && work->wave[n] == work->wave[0])
		n++;
	return n;
}

/* Is the rank's first wave at the next node, or not begun? */
static uint32_t at_node(const struct hd_worker *w, uint32_t r)
{
	const struct hd_onset_rank *at = &w->onset->rank[r];

	return at->next == next_step(w) + 1 ? at->done : 0;
}

static bool has_nodes(const struct hd_worker *w, uint32_t r)
{
	return wave_len(&hd_worker_work(w)->rank[r]) && at_node(w, r) < w->onset->nnodes;
}

/* Has the first wave a part of one row? */
static bool has_single(const struct hd_worker *w, uint32_t r)
{
	const struct hd_rank_work *work = &hd_worker_work(w)->rank[r];
	const uint64_t rows = hd_sampler_rows(&w->task->sampler, next_step(w));
	bool has = false;

	for (uint32_t i = 0; i < wave_len(work); i++) {
		uint64_t first, end;
		hd_vn_rows(w->task->job->per_vn, rows, work->script.vn[i], &first, &end);
		has |= end - first == 1;
	}
	return has;
}

static bool may_run(const struct hd_worker *w, uint32_t r, uint32_t inode)
{
	const struct hd_onset *o = w->onset;

	if (w->step->begun && o->pairs[inode] && has_single(w, r))
		return false;
	if (!w->step->begun || o->needs[inode] == HD_NEEDS_NOTHING || o->needs[inode] == HD_NEEDS_FROZEN)
		return true;
	for (uint32_t i = o->first[inode]; i < o->first[inode + 1]; i++)
		if (!o->readable[o->bucket[i]])
			return false;
	return o->needs[inode] == HD_NEEDS_BUCKETS;
}

/* Are its rows here, so that nothing waits for a disk? */
static bool may_load(const struct hd_worker *w, uint32_t r)
{
	const struct hd_rank_work *work = &hd_worker_work(w)->rank[r];
	const uint64_t step = next_step(w);
	bool all = true;

	for (uint32_t i = 0; i < wave_len(work) && w->onset->rank[r].next != step + 1; i++) {
		const uint32_t vn = work->script.vn[i];
		all &= w->onset->rows[vn].next == step + 1 ||
			hd_reading_is_here(w, step, vn);
	}
	return all;
}

static bool runs(const struct hd_worker *w, uint32_t r)
{
	return has_nodes(w, r) && may_run(w, r, at_node(w, r)) && may_load(w, r);
}

/* Has a step begun, or ended, after which the next one may? */
static bool is_open(const struct hd_worker *w)
{
	const struct hd_onset *o = w->onset;
	const struct hd_work *work = o ? hd_worker_work(w) : NULL;

	return work && o->goes_on && !o->err && next_step(w) == o->step + 1 &&
		hd_reading_any(w) && !w->parts->part->alone && !work->pipe && !work->meeting &&
		(w->step->begun ? work->computed : !w->step->again);
}

static bool has_any_nodes(const struct hd_worker *w)
{
	bool any = false;

	for (uint32_t r = 0; r < w->spec.ndevices; r++)
		any |= has_nodes(w, r);
	return any;
}

/* May buckets be brought on here now? The scalars are made of all metrics: once. */
static bool may_bring(const struct hd_worker *w)
{
	struct hd_onset *o = w->onset;

	if (!w->step->begun || o->norms || hd_dist_leaves_missing(w))
		return false;
	if (!o->scaled)
		o->scaled = hd_scalars_unclipped(w, &o->scalars) ? 1 : 2;
	return o->scaled == 1;
}

/* The next one in the order of needs from order[*i] on that can be brought on; HD_NONE. `least`: of
 * hd_dist_brings(). */
static uint32_t next_bucket(const struct hd_worker *w, uint32_t *i, uint8_t least)
{
	const struct hd_onset *o = w->onset;

	while (*i < o->nused) {
		const uint32_t b = o->order[(*i)++];
		if (!o->readable[b] && o->brings[b] >= least && w->step->summed[b])
			return b;
	}
	return HD_NONE;
}

bool hd_onset_has(const struct hd_worker *w)
{
	uint32_t i = 0;
	bool has = false;

	if (!is_open(w))
		return false;
	const uint8_t least = has_any_nodes(w) ? HD_DIST_BRINGS : HD_DIST_SENDS;
	for (uint32_t r = 0; r < w->spec.ndevices; r++)
		has |= runs(w, r);
	return has || (may_bring(w) && next_bucket(w, &i, least) != HD_NONE);
}

uint32_t hd_dist_lacks(const struct hd_worker *w)
{
	const struct hd_onset *o = w->onset;

	if (!is_open(w) || !w->step->begun || (is_replicated(w) && !may_bring(w)))
		return HD_NONE;
	for (uint32_t r = 0; r < w->spec.ndevices; r++) {
		const uint32_t inode = at_node(w, r);
		const uint32_t end = has_nodes(w, r) ? o->first[inode + 1] : 0;
		for (uint32_t i = o->first[inode]; i < end; i++)
			if (!o->readable[o->bucket[i]])
				return o->bucket[i];
	}
	return HD_NONE;
}

/* ---- running ---- */

static bool is_called(const struct hd_worker *w) { return hd_dist_calls(w) != w->onset->calls; }

/* Elementwise, so pieces have the bits of the whole. */
static enum hd_err bring_piece(struct hd_rank *rank, const struct hd_onset_rank *room,
	const struct hd_step_scalars *scalars, uint64_t at, uint64_t len, uint64_t *token)
{
	struct hd_worker *w = rank->worker;
	const struct hd_device_ops *ops = rank->device->ops;
	struct hd_update u = { .kind = w->task->optim.kind, .grad = hd_worker_sum(w) + at,
		.scalars = scalars };
	float *parm = w->parts->part->parm + at;

	hd_param_store_span(w->store, at, len, &u);
	enum hd_err err = ops->write(rank->device, parm, u.param, len * sizeof *parm, token);
	if (err || u.scalars->skip)
		return err;
	for (uint32_t k = 0; k < hd_param_store_nslots(w->store) && !err; k++) {
		err = ops->write(rank->device, room->slot[k], u.slot[k], len * sizeof *parm, token);
		u.slot[k] = room->slot[k];
	}
	u.param = parm;
	return err ? err : hd_update_by_rates(rank, &u, at, token, &rank->diag);
}

static enum hd_err bring_bucket(struct hd_rank *rank, const struct hd_onset_rank *room,
	const struct hd_step_scalars *scalars, uint32_t bucket)
{
	const struct hd_chunk run = hd_layout_bucket(&rank->worker->task->layout, bucket);
	const uint64_t end = run.at + run.len;
	uint64_t token = 0;
	enum hd_err err = HD_OK;

	for (uint64_t at = run.at; at < end && !err; at += HD_ONSET_ELEMS)
		err = bring_piece(rank, room, scalars, at, end - at < HD_ONSET_ELEMS ? end - at :
			HD_ONSET_ELEMS, &token);
	return err ? err : rank->device->ops->wait(rank->device, token, &rank->diag);
}

/* ---- beside a pass: rule 9 ---- */

bool hd_onset_may_aside(const struct hd_worker *w, uint32_t bucket)
{
	const struct hd_onset *o = w->onset;

	return o && hd_dist_sharded(w) && w->step->begun && o->row_weight && !o->norms && !o->running &&
		o->goes_on && w->parts->own[bucket] && w->parts->slot_here[bucket] &&
		w->step->summed[bucket] && !o->readable[bucket];
}

enum hd_err hd_onset_aside(struct hd_rank *rank, uint32_t bucket)
{
	struct hd_worker *w = rank->worker;
	struct hd_onset *o = w->onset;
	struct hd_step_scalars scalars;

	hd_scalars_of_weight(w, hd_onset_weight(w), &scalars);
	const enum hd_err err = bring_bucket(rank, &o->rank[w->spec.ndevices], &scalars, bucket);
	if (err)
		return err;
	o->readable[bucket] = 1;
	o->naside++;
	return HD_OK;
}

double hd_onset_weight(const struct hd_worker *w)
{
	return (double)w->onset->row_weight * (double)hd_sampler_rows(&w->task->sampler,
		(uint64_t)w->count.step);
}

static enum hd_err bring_on(struct hd_rank *rank, uint32_t bucket)
{
	struct hd_worker *w = rank->worker;
	const enum hd_err err = bring_bucket(rank, &w->onset->rank[rank->id], &w->onset->scalars, bucket);

	if (err)
		w->onset->rank[rank->id].bucket = HD_NONE;
	else if (w->onset->brings[bucket] == HD_DIST_SENDS && w->step->watch_early)
		w->step->watch_early(w->step->watch_early_user, bucket);
	return err;
}

enum hd_err hd_onset_slots(struct hd_rank *rank, const struct hd_chunk *run, uint64_t *token)
{
	struct hd_worker *w = rank->worker;
	float *room = w->onset->rank[rank->id].param;
	enum hd_err err = HD_OK;

	for (uint64_t at = run->at, len; at < run->at + run->len && !err; at += len) {
		struct hd_update u = { .kind = w->task->optim.kind, .grad = w->parts->part->sum + at,
			.scalars = &rank->scalars };
		len = run->at + run->len - at < HD_ONSET_ELEMS ? run->at + run->len - at : HD_ONSET_ELEMS;
		hd_param_store_span(w->store, at, len, &u);
		err = rank->device->ops->write(rank->device, room, u.param, len * sizeof *room, token);
		u.param = room;
		err = err ? err : hd_update_by_rates(rank, &u, at, token, &rank->diag);
	}
	return err;
}

/* The rows of the first wave: where they stay until the step itself asks for them. */
static enum hd_err load_wave(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	struct hd_onset_rank *at = &w->onset->rank[rank->id];
	const uint64_t step = hd_rank_step(rank);
	enum hd_err err = HD_OK;

	if (at->next == step + 1)
		return HD_OK;
	for (uint32_t i = 0; i < rank->nwave && !err; i++) {
		const uint32_t vn = rank->work->script.vn[i];
		struct hd_onset_rows *rows = &w->onset->rows[vn];
		if (rows->next != step + 1)
			err = hd_rank_load(rank, vn, &rows->loaded);
		if (!err)
			rows->next = step + 1;
		rank->work->loaded[i] = rows->loaded;
	}
	at->done = 0;
	at->next = err ? 0 : step + 1;
	return err;
}

static enum hd_err run_nodes(struct hd_rank *rank, struct hd_bind *bind)
{
	struct hd_worker *w = rank->worker;
	struct hd_onset *o = w->onset;
	struct hd_onset_rank *at = &o->rank[rank->id];
	const float *now = bind->params;
	enum hd_err err = HD_OK;

	while (at->done < o->nnodes && !err && !is_called(w) && may_run(w, rank->id, at->done)) {
		uint64_t token = 0;
		bind->from = at->done;
		bind->to = at->done + 1;
		bind->params = w->step->begun && o->needs[at->done] == HD_NEEDS_BUCKETS ?
			w->parts->part->parm : now;
		err = rank->device->ops->run(rank->device, &w->stage->train, HD_RUN_F, bind, &token,
			&rank->diag);
		err = err ? err : rank->device->ops->wait(rank->device, token, &rank->diag);
		if (!err && w->spec.pace_ns)
			hd_rank_pace_nodes(rank, w->spec.pace_ns, &w->stage->train, HD_RUN_F, bind);
		at->done += !err;
		if (rank->id == 0)
			atomic_fetch_add_explicit(&w->progress, 1, memory_order_relaxed);
	}
	return err;
}

static void act(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	struct hd_onset_rank *at = &w->onset->rank[rank->id];
	struct hd_part part[HD_MAX_WAVE];
	struct hd_bind bind;
	enum hd_err err = HD_OK;
	struct hd_recorder *recorder = w->spec.recorder;
	const uint64_t began = hd_recorder_now_of(recorder, rank->id);

	if (at->bucket != HD_NONE) {
		err = bring_on(rank, at->bucket);
		hd_recorder_work(recorder, rank->id, HD_RECORDED_BROUGHT, began);
	} else if (runs(w, rank->id)) {
		rank->ahead = w->step->begun;
		rank->first_ivn = 0;
		rank->nwave = wave_len(rank->work);
		err = load_wave(rank);
		if (!err) {
			hd_rank_bind_wave(rank, part, &bind);
			err = run_nodes(rank, &bind);
			hd_recorder_work(recorder, rank->id, HD_RECORDED_AHEAD, began);
		}
		rank->nwave = rank->ahead = 0;
	}
	if (err)
		hd_rank_fail(rank, err);
}

/* What each rank does now: a node is worth more than a bucket that a later one needs, less than one that
 * others wait for. */
static void deal(struct hd_worker *w)
{
	struct hd_onset *o = w->onset;
	const bool brings = may_bring(w);
	uint8_t least = HD_DIST_BRINGS;
	uint32_t i = 0;

	for (uint32_t r = 0; r < w->spec.ndevices; r++)
		least = runs(w, r) ? HD_DIST_SENDS : least;
	for (uint32_t r = 0; r < w->spec.ndevices; r++)
		o->rank[r].bucket = brings ? next_bucket(w, &i, least) : HD_NONE;
}

/* Ranks may run nodes beside others that bring buckets on: those are readable when all have come back. */
static void note_brought(struct hd_worker *w)
{
	for (uint32_t r = 0; r < w->spec.ndevices; r++) {
		const uint32_t bucket = w->onset->rank[r].bucket;
		if (bucket != HD_NONE)
			w->onset->readable[bucket] = 1;
		w->onset->rank[r].bucket = HD_NONE;
	}
}

static uint64_t count_nodes(const struct hd_worker *w)
{
	uint64_t n = 0;

	for (uint32_t r = 0; r < w->spec.ndevices; r++)
		n += w->onset->rank[r].done;
	return n;
}

enum hd_err hd_onset_run(struct hd_worker *w, uint32_t seen, struct hd_diag *diag)
{
	struct hd_onset *o = w->onset;

	assert(hd_onset_has(w));
	o->calls = seen;
	o->running = true;
	hd_step_work(w, hd_worker_work(w));
	while (!is_called(w) && !o->err && hd_onset_has(w)) {
		const uint64_t before = count_nodes(w);
		deal(w);
		hd_background_computing(w, w->step->begun);
		o->err = hd_worker_all(w, act, &o->diag);
		note_brought(w);
		hd_background_computing(w, false);
		o->nahead += count_nodes(w) - before;
	}
	o->running = false;
	return o->err ? hd_fail(diag, o->err, "%s", o->diag.text) : HD_OK;
}
