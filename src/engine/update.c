#include "engine/worker_int.h"

#include "base/lanes.h"
#include "sys/failpoint.h"
#include "engine/overlap.h"
#include "engine/shadow.h"

/* STEP: the owners of chunks update parameters and slots. NORM has met twice, so every sum
 * of the step is complete on every rank, and no rank begins to write what another one still
 * refuses. Optimizers of unit TENSOR need norms of whole tensors, whose segments may have
 * several owners: each rank measures its own segments, all meet, then each joins the
 * segments of the tensors it holds a part of, from the same numbers in the same order.
 * Where other workers hold parts of them, theirs came before (hd_dist_update()). */

static struct hd_update span_of(struct hd_rank *rank, const struct hd_step_scalars *scalars, uint64_t at,
	uint64_t len)
{
	struct hd_worker *w = rank->worker;
	struct hd_update u = { .kind = w->task->optim.kind, .grad = hd_worker_sum(w) + at,
		.scalars = scalars };

	hd_param_store_span(w->store, at, len, &u);
	return u;
}

/* The last segment that begins at `at` or before. */
static uint32_t segment_at(const struct hd_layout *layout, uint64_t at)
{
	uint32_t low = 0, high = layout->nsegments;

	while (high - low > 1) {
		const uint32_t middle = low + (high - low) / 2;
		if (layout->segment[middle].at <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The first segment after `i`, and before `end`, whose parameter has another rate. */
static uint32_t rate_ends(const struct hd_task *task, uint32_t i, uint32_t end)
{
	const struct hd_segment *segment = task->layout.segment;
	const struct hd_param_rate rate = task->rate[segment[i].param];

	for (i++; i < end && hd_param_rate_same(task->rate[segment[i].param], rate);)
		i++;
	return i;
}

static struct hd_step_scalars scalars_for(const struct hd_task *task, const struct hd_step_scalars *s,
	uint32_t segment)
{
	const struct hd_param_rate rate = task->rate[task->layout.segment[segment].param];
	struct hd_step_scalars own = *s;

	own.lr = s->lr * rate.lr_scale;
	own.optim.weight_decay = rate.decay;
	return own;
}

/* Elementwise, so pieces have the bits of the whole: pads between tensors go with the tensor before them. */
enum hd_err hd_update_by_rates(struct hd_rank *rank, const struct hd_update *u, uint64_t at, uint64_t *token,
	struct hd_diag *diag)
{
	const struct hd_task *task = rank->worker->task;
	const struct hd_layout *layout = &task->layout;
	const uint64_t end = at + u->len;
	enum hd_err err = HD_OK;

	if (!task->rate)
		return rank->device->ops->update(rank->device, u, token, diag);
	for (uint32_t i = segment_at(layout, at), next; i < layout->nsegments && !err; i = next) {
		next = rate_ends(task, i, layout->nsegments);
		uint64_t from = layout->segment[i].at,
			to = next < layout->nsegments ? layout->segment[next].at : layout->elems;
		const struct hd_step_scalars scalars = scalars_for(task, u->scalars, i);
		struct hd_update part = *u;
		from = from > at ? from : at;
		to = to < end ? to : end;
		if (from >= to)
			break;
		part.param += from - at;
		part.grad += from - at;
		for (int k = 0; k < HD_UPDATE_SLOTS; k++)
			part.slot[k] = u->slot[k] ? u->slot[k] + (from - at) : NULL;
		part.len = to - from;
		part.scalars = &scalars;
		err = rank->device->ops->update(rank->device, &part, token, diag);
	}
	return err;
}

enum hd_err hd_measure_by_rates(struct hd_rank *rank, const struct hd_update *u, uint32_t first, uint32_t n,
	double *const sums[2], uint64_t *token, struct hd_diag *diag)
{
	const struct hd_task *task = rank->worker->task;
	enum hd_err err = HD_OK;

	for (uint32_t i = first, next; i < first + n && !err; i = next) {
		next = task->rate ? rate_ends(task, i, first + n) : first + n;
		const struct hd_step_scalars scalars = task->rate ? scalars_for(task, u->scalars, i) :
			*u->scalars;
		struct hd_update part = *u;
		part.scalars = &scalars;
		err = rank->device->ops->measure(rank->device, &part, task->layout.segment + i, next - i,
			sums[0] + i, sums[1] + i, token, diag);
	}
	return err;
}

static enum hd_err update_span(struct hd_rank *rank, const struct hd_step_scalars *scalars, uint64_t at,
	uint64_t len, uint64_t *token,
	struct hd_diag *diag)
{
	const struct hd_update u = span_of(rank, scalars, at, len);

	return hd_update_by_rates(rank, &u, at, token, diag);
}

enum hd_err hd_update_run(struct hd_rank *rank, const struct hd_step_scalars *scalars,
	const struct hd_chunk *run, const float *sums, uint64_t *token, struct hd_diag *diag)
{
	struct hd_update u = span_of(rank, scalars, run->at, run->len);

	u.grad = sums + run->at;
	return hd_update_by_rates(rank, &u, run->at, token, diag);
}

enum hd_err hd_measure_run(struct hd_rank *rank, const struct hd_chunk *run, uint64_t *token,
	struct hd_diag *diag)
{
	struct hd_worker *w = rank->worker;
	const struct hd_update u = span_of(rank, &rank->scalars, 0, w->task->layout.elems);

	return hd_measure_by_rates(rank, &u, run->first_segment, run->nsegments, w->stage->unit_sumsq, token,
		diag);
}

/* Of a tensor in slices the tree of those of its slices. */
float hd_tensor_ratio(const struct hd_task *task, uint32_t param, const double *params, const double *moves)
{
	const struct hd_layout *layout = &task->layout;
	const uint32_t tensor = task->train.param[param].slice.tensor;
	const uint32_t n = hd_whole_slices(&task->wholes, tensor);
	double of[2][HD_MAX_SHARDS];

	for (uint32_t k = 0; k < n && n > 1; k++) {
		const uint32_t p = task->wholes.param[task->wholes.first[tensor] + k],
			first = layout->first_segment[p], count = layout->first_segment[p + 1] - first;
		of[0][k] = hd_tree_sum(params + first, count);
		of[1][k] = hd_tree_sum(moves + first, count);
	}
	if (n > 1)
		return hd_optim_ratio(of[0], of[1], n);
	const uint32_t first = layout->first_segment[param];
	return hd_optim_ratio(params + first, moves + first, layout->first_segment[param + 1] - first);
}

static enum hd_err update_tensors(struct hd_rank *rank, const struct hd_chunk *run, uint64_t *token,
	struct hd_diag *diag)
{
	struct hd_worker *w = rank->worker;
	const struct hd_layout *layout = &w->task->layout;
	struct hd_step_scalars scalars = rank->scalars;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < run->nsegments && !err; i++) {
		const struct hd_segment *s = &layout->segment[run->first_segment + i];
		scalars.ratio = hd_tensor_ratio(w->task, s->param, w->stage->unit_sumsq[0],
			w->stage->unit_sumsq[1]);
		err = update_span(rank, &scalars, s->at, s->len, token, diag);
	}
	return err;
}

static enum hd_err update_elements(struct hd_rank *rank, const struct hd_chunk *run, uint64_t *token,
	struct hd_diag *diag)
{
	const struct hd_overlap *overlap = rank->worker->step->work->overlap;
	const struct hd_eager *eager = overlap ? overlap->eager : NULL;
	const struct hd_segment *segment = rank->worker->task->layout.segment;
	const uint32_t end = run->first_segment + run->nsegments;
	enum hd_err err = HD_OK;

	if (!eager || !eager->made)
		return update_span(rank, &rank->scalars, run->at, run->len, token, diag);
	for (uint32_t i = run->first_segment; i < end && !err; i++)
		if (!eager->early[i])             /* others are updated before the norm */
			err = update_span(rank, &rank->scalars, segment[i].at, segment[i].len, token, diag);
	return err;
}

typedef enum hd_err per_run(struct hd_rank *rank, const struct hd_chunk *run, uint64_t *token,
	struct hd_diag *diag);

/* What the worker holds of a stage that it does not run is there for a loss: that takes redundant time. */
static enum hd_err act_on(struct hd_rank *rank, const struct hd_chunk *chunk, uint32_t bucket, per_run *act,
	uint64_t *token, struct hd_diag *diag)
{
	struct hd_clock *clock = &rank->worker->clock;
	const bool shadow = hd_shadow_has(rank->worker->step->work->pipe, bucket);
	const int64_t began_ns = shadow ? hd_clock_now_ns(clock) : 0;
	enum hd_err err = act(rank, chunk, token, diag);

	if (shadow)
		rank->redundant_ns += (uint64_t)(hd_clock_now_ns(clock) - began_ns);
	return err;
}

/* Of state by stages: the chunks of a run that lie in own buckets. */
static enum hd_err own_chunks(struct hd_rank *rank, const struct hd_chunk *run, per_run *act, uint64_t *token,
	struct hd_diag *diag)
{
	const struct hd_layout *layout = &rank->worker->task->layout;
	const uint32_t end = run->first_segment + run->nsegments;
	enum hd_err err = HD_OK;

	for (uint32_t c = layout->segment[run->first_segment].chunk; c < layout->nchunks &&
		layout->chunk[c].first_segment < end && !err; c++)
		if (hd_worker_owns(rank->worker, hd_layout_bucket_of(layout, c)))
			err = act_on(rank, &layout->chunk[c], hd_layout_bucket_of(layout, c), act, token,
				diag);
	return err;
}

static enum hd_err for_runs(struct hd_rank *rank, per_run *act, struct hd_diag *diag)
{
	struct hd_chunk run;
	uint64_t token = 0;
	uint32_t next = 0;
	enum hd_err err = HD_OK;

	while (!err && hd_rank_owned(rank, &next, &run))
		err = rank->worker->spec.by_stage ? own_chunks(rank, &run, act, &token, diag) :
			act(rank, &run, &token, diag);
	return err ? err : rank->device->ops->wait(rank->device, token, diag);
}

/* Every rank calls it, idle or not: those of unit TENSOR meet inside. */
static enum hd_err update_owned(struct hd_rank *rank, struct hd_diag *diag)
{
	struct hd_worker *w = rank->worker;
	bool tensors = hd_optims[w->task->optim.kind].unit == HD_UNIT_TENSOR, idle = hd_rank_idle(rank) ||
		rank->scalars.skip;
	enum hd_err err = HD_OK;

	if (tensors && !idle)
		err = for_runs(rank, hd_measure_run, diag);
	if (tensors)
		hd_ranks_meet(w);
	if (!idle && !err)
		err = for_runs(rank, tensors ? update_tensors : update_elements, diag);
	return err;
}

enum hd_err hd_update_chunks(struct hd_rank *rank, struct hd_diag *diag)
{
	struct hd_worker *w = rank->worker;
	bool idle = hd_rank_idle(rank) || rank->scalars.skip;

	if (!hd_rank_idle(rank))
		hd_versions_age(rank);
	if (!idle)
		hd_moments_move(rank);
	enum hd_err err = update_owned(rank, diag);
	if (idle)
		return HD_OK;
	if (!err)
		hd_versions_made(rank);
	int error = HD_FAILPOINT(STEP_UPDATE_AFTER);
	if (!err && error)
		err = hd_fail_errno(diag, error, "finish updating", "the parameters");
	if (err)
		atomic_store(&w->step->torn, true);
	return err;
}

void hd_update_buckets(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	uint64_t token = 0;
	enum hd_err err = HD_OK;

	if (hd_optims[w->task->optim.kind].unit == HD_UNIT_TENSOR) {
		err = update_owned(rank, &rank->diag);
	} else {
		for (uint32_t i = rank->id; i < w->step->nfolds && !err; i += w->spec.ndevices) {
			const struct hd_chunk run = hd_layout_bucket(&w->task->layout, w->step->arrived[i]);
			err = update_span(rank, &rank->scalars, run.at, run.len, &token, &rank->diag);
		}
		err = err ? err : rank->device->ops->wait(rank->device, token, &rank->diag);
	}
	if (err)
		hd_rank_fail(rank, err);
}
