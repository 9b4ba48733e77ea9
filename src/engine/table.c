#include "engine/worker_int.h"

#include <stdio.h>
#include <string.h>

/* The state table of a run: parameters with the earlier versions that steps to come read, buffers,
 * optimizer slots, and the few counters that a step reads besides the job. Learning rate, random numbers and
 * data order are functions of the step and stand nowhere. */

static enum hd_err add_tensor(struct hd_worker *w, uint32_t p, const char *suffix, enum hd_vector vector,
	uint8_t group, struct hd_diag *diag)
{
	const struct hd_graph *g = &w->task->train;
	const struct hd_value *v = &g->value[g->param[p].value];
	char name[HD_MAX_NAME + 8];

	snprintf(name, sizeof name, "%s%s%s", hd_graph_text_of(g, v->name),
		*suffix && *suffix != '@' ? "." : "", suffix);
	struct hd_state_entry e = {
		.name = name, .dtype = HD_F32, .rank = v->rank, .key = HD_KEY_CHUNK, .merge = HD_MERGE_NONE,
			.group = group,
		.bf16 = group == HD_STATE_MODEL && w->task->optim.bf16,
		.at = hd_param_store_at(w->store, vector, w->task->layout.at[p], w->task->layout.len[p]),
		.len_bytes = w->task->layout.len[p] * sizeof(float),
	};
	memcpy(e.dim, v->dim, sizeof e.dim);
	return hd_state_add(&w->state, &e, diag);
}

/* "wte@-1": what it was a step ago. Beside the slots: a model's file has the newest parameters alone. */
static enum hd_err add_earlier(struct hd_worker *w, uint32_t p, uint32_t age, struct hd_diag *diag)
{
	char suffix[8];

	snprintf(suffix, sizeof suffix, "@-%u", age);
	return add_tensor(w, p, suffix, hd_vec_earlier(w->task->delays.of_param[p] - age), HD_STATE_OPTIM,
		diag);
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
	enum hd_err err = HD_OK;

	hd_state_init(&w->state, &w->arena);
	for (uint32_t p = 0; p < w->task->train.nparams && !err; p++) {
		err = add_tensor(w, p, "", HD_VEC_PARAMS, HD_STATE_MODEL, diag);
		for (uint32_t k = 1; k <= w->task->delays.of_param[p] && !err; k++)
			err = add_earlier(w, p, k, diag);
		for (uint32_t s = 0; s < optim->nslots && !w->task->train.param[p].frozen && !err; s++)
			err = add_tensor(w, p, optim->slot[s], hd_vec_slot(s), HD_STATE_OPTIM, diag);
	}
	for (uint32_t b = 0; b < w->task->train.nbuffers && !err; b++)
		err = add_buffer(w, b, diag);
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
