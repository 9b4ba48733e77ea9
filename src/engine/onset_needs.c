#include "engine/onset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/fore.h"
#include "engine/lockstep.h"
#include "engine/worker_int.h"

/* What each node of the forward phase reads of flat vectors, made once with the worker; what keeps a job from
 * beginning a step before the end of the one before. */

const char *hd_job_onset(const struct hd_job *job, const struct hd_graph *train, bool late)
{
	const struct { bool never; const char *why; } rows[] = {
		{ hd_job_int(job, HD_JOB_OVERLAP) == HD_OVERLAP_OFF, "comm.overlap is off" },
		{ hd_job_int(job, HD_JOB_SYNC) == HD_SYNC_STAGES,
			"state lies by stages (comm.sync), which overlap by their lists" },
		{ late, "a step reads what an earlier one made (optim.update)" },
		{ hd_job_int(job, HD_JOB_SLICES) > 1, "slices (batch.slices) run forward inside backward" },
		{ hd_job_int(job, HD_JOB_SAMPLES), "trace.samples names the rows of each step" },
		{ !job->value[HD_JOB_VALUES].is_none, "trace.values looks at one step at a time" },
		{ hd_fore_steps(job) > 0, "its virtual nodes run steps ahead by themselves" },
		{ hd_lockstep_meetings(train) > 0, "virtual nodes meet inside the forward pass (norms over the "
			"global batch, rows of a graph)" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].never)
			return rows[i].why;
	return NULL;
}

const char *hd_task_onset(const struct hd_task *task)
{
	return hd_job_onset(task->job, &task->train, task->delays.most > 0);
}

const char *hd_job_onset_waits(const struct hd_job *job)
{
	return hd_job_copies(job) ? NULL : hd_job_onset_norms(job);
}

const char *hd_job_onset_norms(const struct hd_job *job)
{
	if (hd_job_num(job, HD_JOB_CLIP) > 0)
		return "optim.clip needs the norm of all gradients before any parameter changes (comm.sync: "
			"sharded, or clip: 0, does not wait for the end of a step)";
	if (hd_optims[hd_job_int(job, HD_JOB_OPTIM)].unit == HD_UNIT_TENSOR)
		return "optim.kind needs norms of whole tensors before any parameter changes";
	return NULL;
}

void hd_onset_say(const char *never, const char *waits, char *text, size_t size)
{
	if (never || waits)
		snprintf(text, size, "%s: %s", never ?
			"each step begins when the one before has ended at all workers" :
			"the forward pass of a step begins when the one before has ended at its worker",
			never ? never : waits);
	else
		snprintf(text, size, "the forward pass of a step begins on the new parameters that are here, "
			"while the step before ends");
}

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for what a forward pass needs");
}

/* Does the node take these statistics of its own rows, and the running ones where they are too few? */
static bool is_running(const struct hd_graph *graph, const struct hd_node *node, uint32_t value)
{
	bool is = false;

	for (uint32_t i = 0; i < graph->nrunning; i++) {
		const struct hd_running *r = &graph->running[i];
		is |= (r->mean == value || r->variance == value) && r->moments >= node->out &&
			r->moments < node->out + node->nout;
	}
	return is;
}

/* What a value of the flat vectors adds to a node: how many buckets, written to `to` unless NULL. */
static uint32_t need_of(const struct hd_worker *w, uint32_t value, uint8_t *needs, uint32_t *to)
{
	const struct hd_program *program = &w->stage->train;
	const struct hd_where *where = &program->where[value];
	const struct hd_layout *layout = &w->task->layout;
	uint32_t n = 0;

	if (where->space == HD_IN_BUFFERS)
		*needs = HD_NEEDS_END;
	if (where->space != HD_IN_PARAMS)
		return 0;
	const uint64_t at = where->at_bytes / sizeof(float),
		end = at + hd_value_bytes(&program->graph->value[value], 1) / sizeof(float);
	const uint8_t kind = at < layout->elems ? HD_NEEDS_BUCKETS : HD_NEEDS_FROZEN;
	*needs = *needs == HD_NEEDS_NOTHING || *needs == kind ? kind : HD_NEEDS_END;
	for (uint32_t b = 0; b < w->stage->nbuckets && kind == HD_NEEDS_BUCKETS; b++) {
		const struct hd_chunk run = hd_layout_bucket(layout, b);
		if (run.at >= end || run.at + run.len <= at)
			continue;
		if (to)
			to[n] = b;
		n++;
	}
	return n;
}

static uint32_t needs_of(const struct hd_worker *w, uint32_t place, uint8_t *needs, uint32_t *to)
{
	const struct hd_program *program = &w->stage->train;
	const struct hd_node *node = &program->graph->node[program->order[HD_RUN_F][place]];
	uint32_t n = 0;

	*needs = HD_NEEDS_NOTHING;
	for (uint32_t i = 0; i < node->nin; i++)
		if (is_running(program->graph, node, node->in[i]))
			w->onset->pairs[place] = true;
		else if (node->in[i] != HD_NONE)
			n += need_of(w, node->in[i], needs, to ? to + n : NULL);
	return n;
}

static enum hd_err make_needs(struct hd_worker *w, struct hd_onset *o, struct hd_diag *diag)
{
	const uint32_t n = w->stage->train.norder[HD_RUN_F];
	uint8_t needs, *used = hd_arena_take(&w->arena, w->stage->nbuckets, 1);
	uint32_t all = 0;

	o->nnodes = n;
	o->pairs = hd_arena_take(&w->arena, n + 1, sizeof *o->pairs);
	if (!o->pairs)
		return no_memory(diag);
	for (uint32_t i = 0; i < n; i++)
		all += needs_of(w, i, &needs, NULL);
	o->needs = hd_arena_take(&w->arena, n + 1, 1);
	o->first = hd_arena_take(&w->arena, n + 1, sizeof *o->first);
	o->bucket = hd_arena_take(&w->arena, all + 1, sizeof *o->bucket);
	o->order = hd_arena_take(&w->arena, w->stage->nbuckets, sizeof *o->order);
	if (!used || !o->needs || !o->first || !o->bucket || !o->order)
		return no_memory(diag);
	for (uint32_t i = 0; i < n; i++)
		o->first[i + 1] = o->first[i] + needs_of(w, i, &o->needs[i], o->bucket + o->first[i]);
	for (uint32_t i = 0; i < all; i++) {
		if (!used[o->bucket[i]])
			o->order[o->nused++] = o->bucket[i];
		used[o->bucket[i]] = 1;
	}
	return HD_OK;
}

static enum hd_err make_ranks(struct hd_worker *w, struct hd_onset *o, struct hd_diag *diag)
{
	o->rank = hd_arena_take(&w->arena, w->spec.ndevices + 1u, sizeof *o->rank);
	for (uint32_t r = 0; o->rank && r <= w->spec.ndevices; r++) {
		o->rank[r].bucket = HD_NONE;
		for (uint32_t k = 0; k <= hd_worker_store_shape(w).nslots; k++) {
			uint8_t *at = hd_arena_take(&w->arena, HD_ONSET_ELEMS + HD_FLAT_ALIGN_ELEMS,
				sizeof(float));
			if (!at)
				return no_memory(diag);
			at += -(uintptr_t)at % (HD_FLAT_ALIGN_ELEMS * sizeof(float));
			*(k ? &o->rank[r].slot[k - 1] : &o->rank[r].param) = (float *)(void *)at;
		}
	}
	return o->rank ? HD_OK : no_memory(diag);
}

/* Rows of labels count where they have one; of all else each does. */
uint64_t hd_task_row_weight(const struct hd_task *task)
{
	const struct hd_graph *g = &task->train;
	const uint32_t value = hd_graph_find_output(g, "weight");
	const struct hd_node *node = value == HD_NONE || g->value[value].node == HD_NONE ? NULL :
		&g->node[g->value[value].node];
	const struct hd_value *x = node && node->op == HD_OP_COUNT64 ? &g->value[node->in[0]] : NULL;

	return x && x->dtype == HD_F32 && x->dim[0] < 0 ? (uint64_t)-x->dim[0] : 0;
}

enum hd_err hd_onset_make(struct hd_worker *w, struct hd_diag *diag)
{
	if (hd_task_onset(w->task))
		return HD_OK;
	const uint64_t used = w->arena.used_bytes;
	struct hd_onset *o = hd_arena_take(&w->arena, 1, sizeof *o);
	if (!o)
		return no_memory(diag);
	w->onset = o;
	o->norms = hd_job_onset_norms(w->task->job);
	o->row_weight = hd_task_row_weight(w->task);
	o->readable = hd_arena_take(&w->arena, w->stage->nbuckets, 1);
	o->brings = hd_arena_take(&w->arena, w->stage->nbuckets, 1);
	o->rows = hd_arena_take(&w->arena, w->task->job->nvns, sizeof *o->rows);
	if (!o->readable || !o->brings || !o->rows)
		return no_memory(diag);
	enum hd_err err = make_needs(w, o, diag);
	err = err ? err : make_ranks(w, o, diag);
	o->bytes = w->arena.used_bytes - used;
	return err;
}

uint64_t hd_onset_bytes(const struct hd_worker *w) { return w->onset ? w->onset->bytes : 0; }
