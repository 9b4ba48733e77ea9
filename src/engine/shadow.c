#include "engine/shadow.h"

#include <string.h>

#include "engine/worker_int.h"

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for the shadows of stages");
}

struct hd_shadow *hd_shadow_of(const struct hd_pipe *pipe, uint32_t rank)
{
	for (uint32_t i = 0; i < pipe->nshadows; i++)
		if (pipe->shadow[i].rank == rank && !pipe->shadow[i].ended)
			return &pipe->shadow[i];
	return NULL;
}

/* ---- which */

static void mark_params(const struct hd_graph *g, bool *reads)
{
	for (uint32_t i = 0; i < g->nnodes; i++)
		for (uint32_t k = 0; k < g->node[i].nin; k++)
			if (g->value[g->node[i].in[k]].kind == HD_PARAM)
				reads[g->value[g->node[i].in[k]].data] = true;
}

static enum hd_err find_params(const struct hd_pipe *pipe, struct hd_shadow *s, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_graph *g = &pipe->stage[s->stage].cut->graph;
	bool *reads = hd_arena_take(arena, (size_t)g->nparams + 1, sizeof *reads);

	s->param = hd_arena_take(arena, (size_t)g->nparams + 1, sizeof *s->param);
	if (!reads || !s->param)
		return no_memory(diag);
	mark_params(g, reads);
	for (uint32_t p = 0; p < g->nparams; p++)
		if (reads[p])
			s->param[s->nparams++] = p;
	return HD_OK;
}

static bool runs(const struct hd_pipe *pipe, uint32_t stage)
{
	bool here = false;

	for (uint32_t v = 0; v < pipe->nvns; v++)
		here |= hd_cell_of(pipe, stage, v)->seat != NULL;
	return here;
}

static enum hd_err find_buckets(struct hd_pipe *pipe, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_layout *layout = &pipe->worker->task->layout;
	const uint32_t nparams = pipe->cuts.whole->nparams;
	bool *read = hd_arena_take(arena, (size_t)nparams + 1, sizeof *read);

	pipe->reads = hd_arena_take(arena, (size_t)hd_layout_nbuckets(layout) + 1, sizeof *pipe->reads);
	if (!read || !pipe->reads)
		return no_memory(diag);
	for (uint32_t s = 0; s < pipe->nstages; s++)
		if (runs(pipe, s))
			mark_params(&pipe->stage[s].cut->graph, read);
	for (uint32_t p = 0; p < nparams; p++)
		for (uint32_t i = layout->first_segment[p]; read[p] && i < layout->first_segment[p + 1]; i++)
			pipe->reads[hd_layout_bucket_of(layout, layout->segment[i].chunk)] = true;
	return HD_OK;
}

bool hd_shadow_has(const struct hd_pipe *pipe, uint32_t bucket) { return pipe && !pipe->reads[bucket]; }

static enum hd_err check(const struct hd_pipe *pipe, struct hd_diag *diag)
{
	if (pipe->worker->task->delays.most)
		return hd_fail(diag, HD_E_REFUSED,
			"the plan has shadows of stages, which are updated with their stage, and this job "
			"delays updates: optim.update: flush, or a plan without shadows");
	if (pipe->width > 1 || pipe->groups > 1)
		return hd_fail(diag, HD_E_REFUSED,
			"the plan has shadows of stages that %u devices share: with shadows a stage of a "
			"pipeline is one device's", pipe->width * pipe->groups);
	return HD_OK;
}

/* Does another worker run the stage, for the virtual nodes that the rank has? */
static bool is_far(const struct hd_pipe *pipe, const struct hd_shadow *s)
{
	const uint32_t own = (s->stage + pipe->nstages - 1) % pipe->nstages;

	for (uint32_t v = 0; v < pipe->nvns; v++)
		if (hd_cell_of(pipe, own, v)->rank == s->rank)
			return pipe->device_of[hd_cell_of(pipe, s->stage, v)->rank] == HD_NONE;
	return false;
}

/* STEPx stands once in each list (K35). */
enum hd_err hd_shadows_find(struct hd_pipe *pipe, struct hd_arena *arena, struct hd_diag *diag)
{
	enum hd_err err = pipe->keeps ? check(pipe, diag) : HD_OK;

	err = err ? err : find_buckets(pipe, arena, diag);
	pipe->shadow = hd_arena_take(arena, (size_t)pipe->nranks + 1, sizeof *pipe->shadow);
	if (!err && !pipe->shadow)
		err = no_memory(diag);
	for (uint32_t r = 0; r < pipe->nranks && !err; r++)
		for (uint32_t i = 0; i < pipe->plan->list[r].len && !err; i++) {
			const struct hd_ins *ins = &pipe->plan->list[r].at[i];
			if (ins->op != HD_INS_STEP || !(ins->flags & HD_INS_SHADOW) ||
				pipe->device_of[r] == HD_NONE)
				continue;
			struct hd_shadow *s = &pipe->shadow[pipe->nshadows++];
			*s = (struct hd_shadow){ .rank = r, .device = pipe->device_of[r],
				.stage = ins->stage };
			s->far = is_far(pipe, s);
			err = find_params(pipe, s, arena, diag);
		}
	return err;
}

enum hd_err hd_shadows_held(const struct hd_pipe *pipe, const uint8_t *held, struct hd_diag *diag)
{
	const struct hd_layout *layout = &pipe->worker->task->layout;

	for (uint32_t i = 0; held && i < pipe->nshadows; i++)
		for (uint32_t k = 0; k < pipe->shadow[i].nparams && pipe->shadow[i].far; k++) {
			const uint32_t p = pipe->shadow[i].param[k];
			for (uint32_t j = layout->first_segment[p]; j < layout->first_segment[p + 1]; j++)
				if (!held[hd_layout_bucket_of(layout, layout->segment[j].chunk)])
					return hd_fail(diag, HD_E_REFUSED,
						"rank %u shadows stage %u, and its worker does not hold "
						"all that this stage reads: redundancy is to be that of "
						"the lists",
						pipe->shadow[i].rank, pipe->shadow[i].stage);
		}
	return HD_OK;
}

/* ---- taken */

static bool learns(const struct hd_layout *layout, uint32_t param)
{
	return layout->first_segment[param + 1] > layout->first_segment[param];
}

uint64_t hd_shadows_bytes(const struct hd_pipe *pipe, uint32_t device)
{
	const struct hd_worker *w = pipe->worker;
	const struct hd_layout *layout = &w->task->layout;
	uint64_t elems = 0;

	for (uint32_t i = 0; i < pipe->nshadows; i++)
		for (uint32_t k = 0; k < pipe->shadow[i].nparams && pipe->shadow[i].device == device &&
			!pipe->shadow[i].far; k++) {
			const uint32_t p = pipe->shadow[i].param[k];
			/* parameters; slots and the gradient */
			elems += layout->len[p] * (learns(layout, p) ? 2 + hd_worker_store_shape(w).nslots :
				1);
		}
	return elems * sizeof(float);
}

static enum hd_err take_one(struct hd_pipe *pipe, struct hd_shadow *s, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_worker *w = pipe->worker;
	struct hd_device *device = w->rank[s->device].device;
	void *sum;

	for (int k = 0; k < 2; k++) {
		s->unit_sumsq[k] = hd_arena_take(arena, (size_t)w->task->layout.nsegments + 1,
			sizeof *s->unit_sumsq[k]);
		if (!s->unit_sumsq[k])
			return no_memory(diag);
	}
	s->ncopies = 0;
	enum hd_err err = hd_param_store_create(&s->store, &w->task->layout, hd_worker_store_shape(w),
		device, diag);
	if (err)
		return err;
	s->taken = true;
	err = device->ops->take(device, w->stage->sum_bytes, &sum, diag);
	s->sum = err ? NULL : sum;
	return err;
}

enum hd_err hd_shadows_take(struct hd_pipe *pipe, struct hd_arena *arena, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < pipe->nshadows && !err; i++)
		err = pipe->shadow[i].far ? HD_OK : take_one(pipe, &pipe->shadow[i], arena, diag);
	return err;
}

void hd_shadows_give(struct hd_pipe *pipe)
{
	for (uint32_t i = 0; i < pipe->nshadows; i++) {
		struct hd_shadow *s = &pipe->shadow[i];
		struct hd_device *device = pipe->worker->rank[s->device].device;
		if (!s->taken)
			continue;
		device->ops->give(device, s->sum, pipe->worker->stage->sum_bytes);
		hd_param_store_destroy(s->store);
		s->store = NULL;
		s->sum = NULL;
		s->taken = false;
	}
}

/* ---- a step */

/* Parameters and slots of what the shadow's stage reads. */
static void copy_vectors(const struct hd_worker *w, const struct hd_shadow *s, struct hd_param_store *to,
	const struct hd_param_store *from)
{
	const struct hd_layout *layout = &w->task->layout;

	for (uint32_t k = 0; k < s->nparams; k++)
		for (uint32_t v = HD_VEC_PARAMS; v <= hd_param_store_nslots(w->store); v++) {
			const uint32_t p = s->param[k];
			const uint64_t at = layout->at[p], len = layout->len[p];
			if (v == HD_VEC_PARAMS || learns(layout, p))
				hd_param_store_write(to, (enum hd_vector)v, at, len,
					hd_param_store_at(from, (enum hd_vector)v, at, len));
		}
}

void hd_shadow_becomes(struct hd_worker *w, const struct hd_shadow *s)
{
	copy_vectors(w, s, w->store, s->store);
}

static void copy_state(const struct hd_worker *w, struct hd_shadow *s)
{
	copy_vectors(w, s, s->store, w->store);
	s->version = hd_param_store_version(w->store);
	s->moves = w->moves;
	s->ncopies++;
}

void hd_shadows_begin(struct hd_pipe *pipe)
{
	const struct hd_worker *w = pipe->worker;

	for (uint32_t i = 0; i < pipe->nshadows; i++) {
		struct hd_shadow *s = &pipe->shadow[i];
		s->takes = s->summed = false;
		if (s->far)
			continue;
		if (s->ncopies == 0 || s->moves != w->moves || s->version != hd_param_store_version(w->store))
			copy_state(w, s);
	}
}

static struct hd_shadow *mine(const struct hd_rank *rank)
{
	const uint32_t r = hd_pipe_rank(rank->pipe, rank);

	return r == HD_NONE ? NULL : hd_shadow_of(rank->pipe, r);
}

static void copy_sum(const struct hd_worker *w, struct hd_shadow *s)
{
	const struct hd_layout *layout = &w->task->layout;

	for (uint32_t k = 0; k < s->nparams; k++) {
		const uint32_t p = s->param[k];
		if (learns(layout, p))
			memcpy(s->sum + layout->at[p], hd_worker_sum(w) + layout->at[p],
				layout->len[p] * sizeof(float));
	}
}

void hd_shadow_take(struct hd_rank *rank)
{
	struct hd_shadow *s = mine(rank);

	if (s->far)
		return;
	if (s->summed)
		copy_sum(rank->worker, s);
	else
		s->takes = true;
}

void hd_shadow_summed(struct hd_rank *rank)
{
	struct hd_shadow *s = mine(rank);

	if (!s || s->far)
		return;
	s->summed = true;
	if (s->takes)
		copy_sum(rank->worker, s);
}

/* As update.c does it for the owner: norms of all tensors, then tensor by tensor. */
static enum hd_err measure_param(struct hd_rank *rank, struct hd_shadow *s, uint32_t param, uint64_t *token,
	struct hd_diag *diag)
{
	const struct hd_layout *layout = &rank->worker->task->layout;
	const struct hd_device_ops *ops = rank->device->ops;
	const uint32_t first = layout->first_segment[param], n = layout->first_segment[param + 1] - first;
	struct hd_update u = { .kind = rank->worker->task->optim.kind, .grad = s->sum,
		.scalars = &rank->scalars };

	hd_param_store_span(s->store, 0, layout->elems, &u);
	enum hd_err err = hd_measure_by_rates(rank, &u, first, n, s->unit_sumsq, token, diag);
	return err ? err : ops->wait(rank->device, *token, diag);
}

static enum hd_err update_param(struct hd_rank *rank, struct hd_shadow *s, uint32_t param, uint64_t *token,
	struct hd_diag *diag)
{
	const struct hd_layout *layout = &rank->worker->task->layout;
	const struct hd_device_ops *ops = rank->device->ops;
	struct hd_step_scalars scalars = rank->scalars;
	struct hd_update u = { .kind = rank->worker->task->optim.kind, .grad = s->sum + layout->at[param],
		.scalars = &scalars };

	if (hd_optims[u.kind].unit == HD_UNIT_TENSOR)
		scalars.ratio = hd_tensor_ratio(rank->worker->task, param, s->unit_sumsq[0],
			s->unit_sumsq[1]);
	hd_param_store_span(s->store, layout->at[param], layout->len[param], &u);
	enum hd_err err = hd_update_by_rates(rank, &u, layout->at[param], token, diag);
	return err ? err : ops->wait(rank->device, *token, diag);
}

enum hd_err hd_shadow_update(struct hd_rank *rank, struct hd_diag *diag)
{
	const bool tensors = hd_optims[rank->worker->task->optim.kind].unit == HD_UNIT_TENSOR;
	struct hd_shadow *s = mine(rank);
	uint64_t token = 0;
	enum hd_err err = HD_OK;

	if (!s || s->far || hd_rank_idle(rank) || rank->scalars.skip)
		return HD_OK;
	for (uint32_t k = 0; k < s->nparams && !err && tensors; k++)
		if (learns(&rank->worker->task->layout, s->param[k]))
			err = measure_param(rank, s, s->param[k], &token, diag);
	for (uint32_t k = 0; k < s->nparams && !err; k++)
		if (learns(&rank->worker->task->layout, s->param[k]))
			err = update_param(rank, s, s->param[k], &token, diag);
	if (!err)
		s->version++;
	return err;
}
