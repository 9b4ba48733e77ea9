#include "engine/worker_int.h"

#include <stdio.h>
#include <string.h>

#include "engine/closing.h"
#include "engine/judge.h"
#include "engine/stale.h"
#include "engine/stamps.h"

/* The state table of a run: parameters with the earlier versions that steps to come read, buffers,
 * optimizer slots, rows of earlier epochs (stale.h), and the few counters that a step reads besides the job.
 * Learning rate, random numbers and data order are functions of the step and stand nowhere. */

static float *lies_at(const struct hd_worker *w, uint32_t p, enum hd_vector vector)
{
	return hd_param_store_at(w->store, vector, w->task->layout.at[p], w->task->layout.len[p]);
}

static enum hd_err find_slices(struct hd_worker *w, struct hd_state_entry *e, const uint32_t *param,
	enum hd_vector vector, struct hd_diag *diag)
{
	const struct hd_sliced shape = hd_whole_shape(&w->task->train, param[0]);
	struct hd_state_slices *slices = hd_arena_take(&w->arena, 1, sizeof *slices);
	float **at = hd_arena_take(&w->arena, shape.n, sizeof *at);

	if (!slices || !at)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the slices of '%s'", e->name);
	for (uint32_t s = 0; s < shape.n; s++)
		at[s] = lies_at(w, param[s], vector);
	*slices = (struct hd_state_slices){ shape, at };
	e->at = NULL;
	e->slices = slices;
	return HD_OK;
}

/* A tensor of the model, whatever parameters it is. */
static enum hd_err add_tensor(struct hd_worker *w, uint32_t tensor, const char *suffix, enum hd_vector vector,
	uint8_t group, struct hd_diag *diag)
{
	const struct hd_graph *g = &w->task->train;
	const uint32_t *param = w->task->wholes.param + w->task->wholes.first[tensor];
	const struct hd_value v = hd_whole_value(g, param[0]);
	char name[HD_MAX_NAME + 8];

	snprintf(name, sizeof name, "%s%s%s", hd_whole_name(g, param[0]),
		*suffix && *suffix != '@' ? "." : "", suffix);
	struct hd_state_entry e = {
		.name = name, .dtype = HD_F32, .rank = v.rank, .key = HD_KEY_CHUNK, .merge = HD_MERGE_NONE,
			.group = group,
		.bf16 = group == HD_STATE_MODEL && w->task->optim.bf16,
		.at = lies_at(w, param[0], vector), .len_bytes = hd_value_bytes(&v, 1),
	};
	memcpy(e.dim, v.dim, sizeof e.dim);
	enum hd_err err = g->param[param[0]].slice.n > 1 ? find_slices(w, &e, param, vector, diag) : HD_OK;
	return err ? err : hd_state_add(&w->state, &e, diag);
}

/* "wte@-1": what it was a step ago. Beside the slots: a model's file has the newest parameters alone. */
static enum hd_err add_earlier(struct hd_worker *w, uint32_t tensor, uint32_t age, struct hd_diag *diag)
{
	const uint32_t p = w->task->wholes.param[w->task->wholes.first[tensor]];
	char suffix[8];

	snprintf(suffix, sizeof suffix, "@-%u", age);
	return add_tensor(w, tensor, suffix, hd_vec_earlier(w->task->delays.of_param[p] - age),
		HD_STATE_OPTIM, diag);
}

/* Means and variances in use are one copy, moved once per step by the moments of all virtual nodes. */
static enum hd_err add_buffer(struct hd_worker *w, uint32_t b, struct hd_diag *diag)
{
	const struct hd_graph *g = &w->task->train;
	const struct hd_value *v = &g->value[g->buffer[b].value];
	struct hd_state_entry e = {
		.name = hd_graph_text_of(g, v->name), .dtype = HD_F32, .rank = v->rank, .key = HD_KEY_TENSOR,
			.merge = HD_MERGE_MOMENT,
		.group = HD_STATE_MODEL, .at = hd_param_store_at(w->store, HD_VEC_BUFFERS,
			w->task->layout.buffer_at[b], w->task->layout.buffer_len[b]),
		.len_bytes = w->task->layout.buffer_len[b] * sizeof(float),
	};

	memcpy(e.dim, v->dim, sizeof e.dim);
	return hd_state_add(&w->state, &e, diag);
}

/*        name in the table    field           dtype  merge */
#define COUNTERS(X)                                                   \
	X("run.step",          step,           I64,   NONE)           \
	X("run.samples",       samples,        I64,   NONE)           \
	X("run.updates",       updates,        I64,   NONE)           \
	X("run.skips",         skips,          I64,   NONE)           \
	X("run.epoch_loss",    epoch_loss,     F64,   SUM_F64)        \
	X("run.epoch_weight",  epoch_weight,   F64,   SUM_F64)        \
	X("run.epoch_correct", epoch_correct,  F64,   SUM_F64)

enum hd_err hd_state_table_make(struct hd_worker *w, struct hd_diag *diag)
{
	const struct hd_optim_row *optim = &hd_optims[w->task->optim.kind];
	const uint32_t nslots = hd_optim_nslots(&w->task->optim);
	enum hd_err err = HD_OK;

	hd_state_init(&w->state, &w->arena);
	for (uint32_t t = 0; t < w->task->wholes.n && !err; t++) {
		const uint32_t p = w->task->wholes.param[w->task->wholes.first[t]];
		err = add_tensor(w, t, "", HD_VEC_PARAMS, HD_STATE_MODEL, diag);
		for (uint32_t k = 1; k <= w->task->delays.of_param[p] && !err; k++)
			err = add_earlier(w, t, k, diag);
		for (uint32_t s = 0; s < nslots && !w->task->train.param[p].frozen && !err; s++)
			err = add_tensor(w, t, s < optim->nslots ? optim->slot[s] : HD_STATE_MEAN,
				hd_vec_slot(s), HD_STATE_OPTIM, diag);
	}
	for (uint32_t b = 0; b < w->task->train.nbuffers && !err; b++)
		err = add_buffer(w, b, diag);
	err = err ? err : hd_stale_table(w, diag);
	err = err ? err : hd_stamps_table(w, diag);
	err = err ? err : hd_closing_table(w, diag);
	err = err ? err : hd_judges_table(w, diag);
#define X(text, field, type, how) \
	if (!err) \
		err = hd_state_add(&w->state, &(struct hd_state_entry){ \
			.name = (text), .dtype = HD_##type, .rank = 1, .dim = { 1 }, .key = HD_KEY_JOB, \
			.merge = HD_MERGE_##how, .group = HD_STATE_RUN, .at = &w->count.field, \
			.len_bytes = 8 }, diag);
	COUNTERS(X)
#undef X
	return err;
}

void hd_state_table_stamp(struct hd_worker *w)
{
	hd_param_store_set_version(w->store, (uint64_t)w->count.updates);
	for (uint32_t i = 0; i < w->state.nentries; i++)
		w->state.entry[i].version = (uint64_t)w->count.updates;
}
