#include "engine/worker_int.h"

#include <assert.h>
#include <string.h>

#include "base/le.h"
#include "engine/part_int.h"

/* The state in pieces, for a joining worker, while others go on. Floats are copied as they lie:
 * little end, as in files. */

enum { PIECE_ELEMS = HD_BUCKET_BYTES / sizeof(float), REST_VERSION = 1, REST_HEAD = 8, SCALARS_VERSION = 1 };

static uint64_t frozen_elems(const struct hd_worker *w) { return w->task->layout.held_elems -
	w->task->layout.elems; }
static uint32_t nslots(const struct hd_worker *w) { return hd_optim_nslots(&w->task->optim); }
static uint32_t slots_in(const struct hd_worker *w) { return w->parts->sharded ? 0 : nslots(w); }
static bool by_tensor(const struct hd_worker *w) { return hd_optims[w->task->optim.kind].unit ==
	HD_UNIT_TENSOR; }

uint32_t hd_dist_nfollowed(const struct hd_worker *w) { return w->spec.by_stage ? 0 : w->stage->nbuckets; }
uint32_t hd_dist_nsnaps(const struct hd_worker *w) { return hd_dist_nfollowed(w) +
	(uint32_t)((frozen_elems(w) + PIECE_ELEMS - 1) / PIECE_ELEMS); }

/* Where a snap lies in the flat vectors; those of frozen parameters have no slots. */
static struct hd_chunk run_of(const struct hd_worker *w, uint32_t snap)
{
	assert(snap < hd_dist_nsnaps(w));
	if (snap < hd_dist_nfollowed(w))
		return hd_layout_bucket(&w->task->layout, snap);
	uint64_t from = (uint64_t)(snap - hd_dist_nfollowed(w)) * PIECE_ELEMS, left = frozen_elems(w) - from;
	return (struct hd_chunk){ .at = w->task->layout.elems + from,
		.len = left < PIECE_ELEMS ? left : PIECE_ELEMS };
}

/* Parameters, slots, then what steps to come read of earlier ones. */
static uint32_t nflat(const struct hd_worker *w, uint32_t snap)
{
	return snap < hd_dist_nfollowed(w) ? 1 + slots_in(w) + w->task->delays.most : 1;
}

static enum hd_vector vector_of(const struct hd_worker *w, uint32_t k)
{
	return k <= slots_in(w) ? (enum hd_vector)(HD_VEC_PARAMS + k) : hd_vec_earlier(k - 1 - slots_in(w));
}

uint64_t hd_dist_snap_bytes(const struct hd_worker *w, uint32_t snap) { return run_of(w,
	snap).len * sizeof(float) * nflat(w, snap); }
uint32_t hd_dist_snap_end(const struct hd_worker *w, uint32_t snap) { return by_tensor(w) &&
	snap < hd_dist_nfollowed(w) ? hd_dist_nfollowed(w) : snap + 1; }

void hd_dist_snap_get(const struct hd_worker *w, uint32_t snap, uint8_t *bytes)
{
	const struct hd_chunk run = run_of(w, snap);

	for (uint32_t k = 0; k < nflat(w, snap); k++)
		hd_param_store_read(w->store, vector_of(w, k), run.at, run.len,
			bytes + k * run.len * sizeof(float));
}

enum hd_err hd_dist_snap_put(struct hd_worker *w, uint32_t snap, const uint8_t *bytes, uint64_t len,
	struct hd_diag *diag)
{
	if (snap >= hd_dist_nsnaps(w) || len != hd_dist_snap_bytes(w, snap))
		return hd_fail(diag, HD_E_PROTOCOL, "%llu bytes are not snap %u of this job's state",
			(unsigned long long)len, snap);
	const struct hd_chunk run = run_of(w, snap);
	for (uint32_t k = 0; k < nflat(w, snap); k++)
		hd_param_store_write(w->store, vector_of(w, k), run.at, run.len,
			bytes + k * run.len * sizeof(float));
	if (snap >= hd_dist_nfollowed(w))
		hd_param_store_follow(w->store, run.at, run.len);
	return HD_OK;
}

static bool is_rest(const struct hd_state_entry *e) { return e->key != HD_KEY_CHUNK; }

uint64_t hd_dist_rest_bytes(const struct hd_worker *w)
{
	uint64_t len = REST_HEAD;

	for (uint32_t i = 0; i < w->state.nentries; i++)
		len += is_rest(&w->state.entry[i]) ? w->state.entry[i].len_bytes : 0;
	return len;
}

void hd_dist_rest_get(const struct hd_worker *w, uint8_t *bytes)
{
	uint8_t *at = bytes + REST_HEAD;

	hd_put32(bytes, REST_VERSION);
	hd_put32(bytes + 4, w->state.nentries);
	for (uint32_t i = 0; i < w->state.nentries; i++) {
		const struct hd_state_entry *e = &w->state.entry[i];
		if (is_rest(e)) {
			memcpy(at, e->at, e->len_bytes);
			at += e->len_bytes;
		}
	}
}

enum hd_err hd_dist_rest_put(struct hd_worker *w, const uint8_t *bytes, uint64_t len, struct hd_diag *diag)
{
	if (len != hd_dist_rest_bytes(w) || hd_get32(bytes) != REST_VERSION ||
		hd_get32(bytes + 4) != w->state.nentries)
		return hd_fail(diag, HD_E_PROTOCOL,
			"%llu bytes are not the counters and statistics of this job's state",
			(unsigned long long)len);
	bytes += REST_HEAD;
	for (uint32_t i = 0; i < w->state.nentries; i++) {
		struct hd_state_entry *e = &w->state.entry[i];
		if (is_rest(e)) {
			memcpy(e->at, bytes, e->len_bytes);
			bytes += e->len_bytes;
		}
	}
	hd_state_table_stamp(w);
	return HD_OK;
}

/* u32 version, u32 skip, u64 step, u64 updates before it, f32 lr, scale, clip, u32 0 */
static void put_f32(uint8_t *at, float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof bits);
	hd_put32(at, bits);
}

static float get_f32(const uint8_t *at)
{
	uint32_t bits = hd_get32(at);
	float x;

	memcpy(&x, &bits, sizeof x);
	return x;
}

void hd_dist_scalars_get(const struct hd_worker *w, uint8_t bytes[HD_DIST_SCALARS_BYTES])
{
	const struct hd_step_scalars *s = &w->step->scalars;

	hd_put32(bytes, SCALARS_VERSION);
	hd_put32(bytes + 4, s->skip);
	hd_put64(bytes + 8, w->step->scalars_step);
	hd_put64(bytes + 16, w->step->scalars_updates);
	put_f32(bytes + 24, s->lr);
	put_f32(bytes + 28, s->scale);
	put_f32(bytes + 32, s->clip);
	hd_put32(bytes + 36, 0);
}

enum hd_err hd_dist_scalars_step(const uint8_t bytes[HD_DIST_SCALARS_BYTES], uint64_t *step,
	struct hd_diag *diag)
{
	if (hd_get32(bytes) != SCALARS_VERSION || hd_get32(bytes + 4) > 1 || hd_get32(bytes + 36))
		return hd_fail(diag, HD_E_PROTOCOL, "these are no scalars of a step");
	*step = hd_get64(bytes + 8);
	return HD_OK;
}

static enum hd_err check_buckets(struct hd_worker *w, const uint32_t *bucket, uint32_t n,
	struct hd_diag *diag)
{
	uint32_t ndistinct = 0;

	memset(w->step->summed, 0, w->stage->nbuckets);
	for (uint32_t i = 0; i < n; i++) {
		if (bucket[i] >= w->stage->nbuckets || w->step->summed[bucket[i]])
			return hd_fail(diag, HD_E_INVAL, "bucket %u of %u comes twice, or does not exist",
				bucket[i], w->stage->nbuckets);
		ndistinct++;
		w->step->summed[bucket[i]] = 1;
	}
	if (by_tensor(w) && ndistinct != w->stage->nbuckets)
		return hd_fail(diag, HD_E_INVAL,
			"optimizer %s changes whole tensors: all %u buckets are updated together, not %u of "
			"them",
			hd_optims[w->task->optim.kind].name, w->stage->nbuckets, ndistinct);
	return HD_OK;
}

/* Of sharded state the source gives parameters in place of sums. */
static enum hd_err take_params(struct hd_worker *w)
{
	for (uint32_t i = 0; i < w->step->nfolds; i++) {
		const struct hd_chunk run = hd_layout_bucket(&w->task->layout, w->step->arrived[i]);
		hd_param_store_write(w->store, HD_VEC_PARAMS, run.at, run.len, w->parts->part->sum + run.at);
	}
	return HD_OK;
}

/* What a step to come reads moves on with a step that is skipped, too. */
static void move_versions(struct hd_worker *w, void (*move)(struct hd_worker *, const struct hd_chunk *))
{
	for (uint32_t i = 0; i < w->step->nfolds; i++) {
		const struct hd_chunk run = hd_layout_bucket(&w->task->layout, w->step->arrived[i]);
		move(w, &run);
	}
}

enum hd_err hd_dist_apply(struct hd_worker *w, const uint32_t *bucket, uint32_t n,
	const uint8_t scalars[HD_DIST_SCALARS_BYTES],
	struct hd_diag *diag)
{
	uint64_t step;

	assert(!w->step->begun && w->parts->part);
	enum hd_err err = hd_dist_scalars_step(scalars, &step, diag);
	if (!err)
		err = n ? check_buckets(w, bucket, n, diag) : HD_OK;
	if (err || !n)
		return err;
	struct hd_step_scalars s = { .optim = w->task->optim, .lr = get_f32(scalars + 24),
		.scale = get_f32(scalars + 28),
		.clip = get_f32(scalars + 32), .skip = hd_get32(scalars + 4) };
	hd_optim_corrections(&s, hd_get64(scalars + 16) + 1);
	for (uint32_t r = 0; r < w->spec.ndevices; r++)
		w->rank[r].scalars = s;
	w->step->arrived = bucket;
	w->step->nfolds = n;
	move_versions(w, hd_versions_age_run);
	if (!s.skip)
		err = w->parts->sharded ? take_params(w) : hd_worker_all(w, hd_update_buckets, diag);
	move_versions(w, hd_versions_made_run);
	w->step->arrived = NULL;
	if (err)
		atomic_store(&w->step->torn, true);
	return err;
}

enum hd_err hd_dist_learned(struct hd_worker *w, struct hd_diag *diag)
{
	assert(!w->step->begun);
	enum hd_err err = hd_worker_moved(w, diag);
	if (w->parts->sharded || w->spec.by_stage)       /* no slots were transferred */
		hd_dist_own(w, NULL);
	return err;
}
