#include "engine/lockstep.h"

#include <string.h>

#include "sys/failpoint.h"
#include "graph/far_end.h"
#include "graph/op.h"
#include "job/job.h"
#include "engine/closing.h"
#include "engine/fore.h"
#include "engine/meeting.h"
#include "engine/stale.h"
#include "engine/stamps.h"
#include "engine/stretch.h"
#include "engine/worker_int.h"

bool hd_lockstep_is_sync(const struct hd_node *n)
{
	return n->op == HD_OP_BATCHNORM_SYNC || n->op == HD_OP_ROWS_MEET;
}

uint8_t *hd_sync_leaf(const struct hd_worker *w, const struct hd_sync *s, uint64_t step)
{
	return s->leaf + step % w->stage->lockstep.nsets * (s->bytes * w->task->job->nvns);
}

/* What a virtual node of so many rows brings. */
static uint64_t bytes_of(const struct hd_graph *graph, uint32_t inode, uint64_t rows)
{
	return hd_value_bytes(&graph->value[graph->node[inode].in[0]], rows);
}

uint64_t hd_lockstep_bytes(const struct hd_graph *graph, const struct hd_job *job)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < graph->nnodes; i++)
		if (hd_lockstep_is_sync(&graph->node[i]))
			bytes += bytes_of(graph, i, job->per_vn);
	return bytes * job->nvns;
}

uint32_t hd_lockstep_meetings(const struct hd_graph *graph)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < graph->nnodes; i++)
		n += hd_lockstep_is_sync(&graph->node[i]);
	return n;
}

/* The ghosts of all virtual nodes, as the data have them; none where all rows become state. */
static struct hd_ghosts ghosts_of(const struct hd_task *task, const struct hd_node *node)
{
	const struct hd_dataset *data = task->data;
	const struct hd_job *job = task->job;
	const char *name = hd_edge_list_name(&task->train, node->in[1]);
	uint32_t f = hd_stale_epochs(job) ? data->nfields : 0;

	while (f < data->nfields && strcmp(data->field[f].name, name))
		f++;
	if (f == data->nfields)
		return (struct hd_ghosts){ 0 };
	return (struct hd_ghosts){ .ghost = data->field[f].all, .nvns = job->nvns, .rows = job->per_vn,
		.each = job->per_vn * (uint64_t)data->field[f].dim[0] };
}

/* Workers with so many virtual nodes each: what each has sent at the syncs of a step, into bytes[n]. */
static enum hd_err add_sent(const struct hd_task *task, const uint16_t *worker, const uint32_t *count,
	uint32_t n, uint32_t nused, uint64_t *rows, uint64_t *bytes, struct hd_diag *diag)
{
	const int32_t *counted = NULL;    /* lists of one way, which many syncs have */
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < task->train.nnodes && !err; i++) {
		const struct hd_node *node = &task->train.node[i];
		if (!hd_lockstep_is_sync(node))
			continue;
		const uint64_t each = bytes_of(&task->train, i, task->job->per_vn);
		const struct hd_ghosts ghosts = node->op == HD_OP_ROWS_MEET ? ghosts_of(task, node) :
			(struct hd_ghosts){ 0 };
		if (ghosts.ghost && ghosts.ghost != counted)
			err = hd_ghost_rows_count(&ghosts, worker, (uint16_t)n, rows, diag);
		counted = ghosts.ghost ? ghosts.ghost : counted;
		for (uint32_t k = 0; k < n && !err; k++)
			bytes[k] += ghosts.ghost ? rows[k] * (each / task->job->per_vn) :
				each * count[k] * (nused - 1);
	}
	return err;
}

enum hd_err hd_lockstep_sent(const struct hd_task *task, const uint32_t *count, uint32_t n, uint64_t *most,
	struct hd_diag *diag)
{
	struct hd_arena own;
	uint32_t nused = 0;

	hd_arena_init(&own, 0);
	uint16_t *worker = hd_arena_take(&own, task->job->nvns + 1u, sizeof *worker);
	uint64_t *rows = hd_arena_take(&own, n + 1u, sizeof *rows), *bytes = hd_arena_take(&own, n + 1u,
		sizeof *bytes);
	for (uint32_t k = 0, v = 0; worker && k < n; k++) {
		nused += count[k] > 0;
		for (uint32_t i = 0; i < count[k] && v < task->job->nvns; i++)
			worker[v++] = (uint16_t)k;
	}
	enum hd_err err = worker && rows && bytes ? add_sent(task, worker, count, n, nused, rows, bytes,
		diag) : hd_fail(diag, HD_E_NOMEM, "no memory for what %u workers send", n);
	*most = 0;
	for (uint32_t k = 0; k < n && !err; k++)
		*most = bytes[k] > *most ? bytes[k] : *most;
	hd_arena_finish(&own);
	return err;
}

static enum hd_err find_syncs(struct hd_worker *w, enum hd_run_phase phase, struct hd_diag *diag)
{
	const struct hd_graph *graph = w->stage->train.graph;
	const uint32_t *order = w->stage->train.order[phase], n = w->stage->train.norder[phase];
	struct hd_sync *sync = hd_arena_take(&w->arena, n + 1, sizeof *sync);
	uint32_t nsyncs = 0;

	for (uint32_t i = 0; sync && i < n; i++) {
		if (!hd_lockstep_is_sync(&graph->node[order[i]]))
			continue;
		struct hd_sync *s = &sync[nsyncs++];
		*s = (struct hd_sync){ .node = order[i], .place = i,
			.number = (phase == HD_RUN_B ? w->stage->lockstep.nsyncs[HD_RUN_F] : 0) + nsyncs - 1,
			.bytes = bytes_of(graph, order[i], w->task->job->per_vn),
			.rows = graph->node[order[i]].op == HD_OP_ROWS_MEET };
		if (s->rows)
			s->ghosts = ghosts_of(w->task, &graph->node[order[i]]);
	}
	if (!sync)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u ops of a step", n);
	w->stage->lockstep.sync[phase] = sync;
	w->stage->lockstep.nsyncs[phase] = nsyncs;
	return HD_OK;
}

enum hd_err hd_lockstep_make(struct hd_worker *w, struct hd_diag *diag)
{
	enum hd_err err = find_syncs(w, HD_RUN_F, diag);

	return err ? err : find_syncs(w, HD_RUN_B, diag);
}

enum hd_err hd_lockstep_leaves(struct hd_worker *w, struct hd_diag *diag)
{
	struct hd_lockstep *l = &w->stage->lockstep;
	const uint32_t nvns = w->task->job->nvns;

	l->nsets = 1 + hd_fore_steps(w->task->job);
	for (int phase = HD_RUN_F; phase <= HD_RUN_B; phase++)
		for (uint32_t k = 0; k < l->nsyncs[phase]; k++) {
			struct hd_sync *s = &l->sync[phase][k];
			if (!(s->leaf = hd_arena_take(&w->arena, s->bytes, (size_t)nvns * l->nsets)))
				return hd_fail(diag, HD_E_NOMEM,
					"no memory for what %u virtual nodes bring to the others", nvns);
		}
	enum hd_err err = hd_stale_take(w, diag);
	err = err ? err : hd_stamps_take(w, diag);
	err = err ? err : hd_closing_take(w, diag);
	return err ? err : hd_fore_take(w, diag);
}

enum hd_err hd_lockstep_take(struct hd_rank *rank, uint32_t need, struct hd_diag *diag)
{
	struct hd_worker *w = rank->worker;
	struct hd_device *d = rank->device;
	enum hd_err err = HD_OK;

	if (need <= rank->narenas)
		return HD_OK;
	uint8_t **arena = hd_arena_take(&w->arena, need, sizeof *arena);
	if (!arena)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the activations of %u virtual nodes", need);
	for (uint32_t i = 0; i < rank->narenas; i++)
		arena[i] = rank->arena[i];
	rank->arena = arena;
	while (rank->narenas < need && !err) {
		err = d->ops->take(d, w->stage->train.memory.len_bytes, (void **)&arena[rank->narenas], diag);
		rank->narenas += !err;
	}
	return err;
}

void hd_lockstep_give(struct hd_rank *rank)
{
	for (uint32_t i = 0; i < rank->narenas; i++)
		rank->device->ops->give(rank->device, rank->arena[i],
			rank->worker->stage->train.memory.len_bytes);
}

void hd_lockstep_clear(struct hd_worker *w)
{
	const struct hd_lockstep *l = &w->stage->lockstep;

	for (int phase = HD_RUN_F; phase <= HD_RUN_B; phase++)
		for (uint32_t k = 0; k < l->nsyncs[phase]; k++)
			memset(l->sync[phase][k].leaf, 0, l->sync[phase][k].bytes * w->task->job->nvns *
				l->nsets);
}

static enum hd_err run_one(struct hd_rank *rank, uint32_t i, enum hd_run_phase phase, uint32_t from,
	uint32_t to, struct hd_diag *diag)
{
	struct hd_part part = { .rows = rank->work->loaded[i].rows, .vn = rank->work->script.vn[i],
		.fold = rank->fold[0] };
	uint64_t token = 0;
	struct hd_bind bind;

	hd_rank_bind(rank, i, part.vn, 0, &bind);
	bind.arena = rank->arena[i];
	bind.part = &part;
	bind.nparts = 1;
	bind.from = from;
	bind.to = to;
	if (phase == HD_RUN_B)
		part.nfolds = hd_rank_moves(rank, i, 0, rank->fold[0]);
	hd_values_watch(rank, 0, NULL, &bind);
	enum hd_err err = rank->device->ops->run(rank->device, &rank->worker->stage->train, phase, &bind,
		&token,
		diag);
	return err ? err : rank->device->ops->wait(rank->device, token, diag);
}

static void run_here(struct hd_rank *rank, enum hd_run_phase phase, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; from < to && i < rank->work->script.nvns_here && !hd_rank_idle(rank); i++) {
		enum hd_err err = run_one(rank, i, phase, from, to, &rank->diag);
		if (err)
			hd_rank_fail(rank, err);
	}
}

/* Places [from, to); none where two syncs are neighbours. */
static void run_all(struct hd_rank *rank, enum hd_run_phase phase, uint32_t from, uint32_t to)
{
	const struct hd_stretch *s;

	for (; (s = hd_stretch_in(rank, phase, from, to)); from = s->to) {
		run_here(rank, phase, from, s->from);
		if (!hd_rank_idle(rank))
			hd_stretch_run(rank, s);
	}
	run_here(rank, phase, from, to);
}

/* A value of virtual node i, an input or a view of one too. */
static void *value_of(struct hd_rank *rank, uint32_t i, uint32_t value)
{
	struct hd_bind bind;

	hd_rank_bind(rank, i, rank->work->script.vn[i], 0, &bind);
	bind.arena = rank->arena[i];
	return hd_program_value(&rank->worker->stage->train, &bind, value);
}

static void bring(struct hd_rank *rank, const struct hd_sync *s)
{
	const struct hd_node *node = &rank->worker->stage->train.graph->node[s->node];

	for (uint32_t i = 0; i < rank->work->script.nvns_here; i++) {
		uint8_t *leaf = hd_sync_leaf(rank->worker, s, hd_rank_step(rank)) +
			rank->work->script.vn[i] * s->bytes;
		if (rank->work->loaded[i].rows)
			memcpy(leaf, value_of(rank, i, node->in[0]), s->bytes);
		else
			memset(leaf, 0, s->bytes);
	}
}

static void sum(const struct hd_worker *w, const struct hd_sync *s)
{
	const uint64_t nvns = w->task->job->nvns, elems = s->bytes / sizeof(double);
	double *leaf = (double *)hd_sync_leaf(w, s, (uint64_t)w->count.step);

	if (w->stage->train.graph->node[s->node].attr.i[0]) {
		hd_moments_tree(leaf, (uint32_t)nvns, elems, elems / 3);
		return;
	}
	for (uint64_t half = 1; half < nvns; half *= 2)
		for (uint64_t v = 0; v + half < nvns; v += 2 * half)
			for (uint64_t e = 0; e < elems; e++)
				leaf[v * elems + e] += leaf[(v + half) * elems + e];
}

/* The own rows, then the ghosts: rows of the step, -1 none. */
static void take_rows(struct hd_rank *rank, const struct hd_sync *s, uint32_t i)
{
	const struct hd_graph *graph = rank->worker->stage->train.graph;
	const struct hd_node *node = &graph->node[s->node];
	const struct hd_job *job = rank->worker->task->job;
	const uint32_t vn = rank->work->script.vn[i];
	const uint64_t rows = rank->work->loaded[i].rows, row_bytes = s->bytes / rows,
		n = hd_value_elems(&graph->value[node->in[1]], rows), all = job->nvns * rows;
	const int32_t *ghost = value_of(rank, i, node->in[1]);
	uint8_t *out = value_of(rank, i, node->out), *at = out + s->bytes;
	const uint8_t *leaf = NULL;
	uint64_t of = job->nvns;          /* whose leaves they are */

	hd_stamps_decide(rank, s, vn);
	memcpy(out, hd_sync_leaf(rank->worker, s, hd_rank_step(rank)) + vn * s->bytes, s->bytes);
	for (uint64_t k = 0; k < n; k++, at += row_bytes) {
		const uint64_t row = ghost[k] < 0 ? all : (uint64_t)ghost[k];
		if (row < all && row / rows != of) {
			of = row / rows;
			leaf = hd_stale_leaf(rank, s, vn, (uint32_t)of);
		}
		if (row < all)
			memcpy(at, leaf + row * row_bytes, row_bytes);
		else
			memset(at, 0, row_bytes);
	}
}

static void take(struct hd_rank *rank, const struct hd_sync *s)
{
	const struct hd_node *node = &rank->worker->stage->train.graph->node[s->node];

	for (uint32_t i = 0; i < rank->work->script.nvns_here; i++) {
		if (!rank->work->loaded[i].rows)
			continue;
		if (s->rows)
			take_rows(rank, s, i);
		else
			memcpy(value_of(rank, i, node->out), hd_sync_leaf(rank->worker, s,
				hd_rank_step(rank)), s->bytes);
	}
}

/* Whoever fails here leaves the other ranks idle after the next meeting. */
static void meet_workers(struct hd_rank *rank, const struct hd_sync *s)
{
	if (rank->id == 0 && !hd_rank_idle(rank)) {
		enum hd_err err = hd_meeting_hold(rank, s, &rank->diag);
		if (err)
			hd_rank_fail(rank, err);
	}
	hd_ranks_meet(rank->worker);
}

/* Nothing is waited for: what others have brought so far is taken. */
static void pass_by(struct hd_rank *rank, const struct hd_sync *s)
{
	struct hd_worker *w = rank->worker;

	if (hd_rank_idle(rank))
		return;
	bring(rank, s);
	for (uint32_t i = 0; i < rank->work->script.nvns_here; i++)
		hd_stamps_mark(w, s, rank->work->script.vn[i], hd_rank_step(rank));
	const bool last = hd_stamps_last(rank, s);
	if (w->step->work->meeting && last && !rank->ahead)
		hd_meeting_offer(w, s);
	if (w->step->work->meeting)
		hd_meeting_look(w, s);
	take(rank, s);
}

static void meet(struct hd_rank *rank, const struct hd_sync *s)
{
	struct hd_worker *w = rank->worker;

	if (s->rows && hd_stamps_run_free(w)) {
		pass_by(rank, s);
		return;
	}
	if (!hd_rank_idle(rank))
		bring(rank, s);
	hd_ranks_meet(w);
	if (w->step->work->meeting)
		meet_workers(rank, s);
	if (!hd_rank_idle(rank) && !s->rows && s->number % w->spec.ndevices == rank->id)
		sum(w, s);
	hd_ranks_meet(w);
	if (!hd_rank_idle(rank))
		take(rank, s);
}

static void begin(struct hd_rank *rank)
{
	const uint64_t said_bytes = rank->worker->step->moments.elems * sizeof(double);

	for (uint32_t i = 0; i < rank->work->script.nvns_here; i++) {
		const uint32_t vn = rank->work->script.vn[i];
		*hd_fore_leaf(rank, vn) = (struct hd_leaf){ 0 };
		memset(hd_fore_said(rank, vn), 0, said_bytes);
		hd_stamps_pin(rank, vn);
	}
}

static void read_all(struct hd_rank *rank)
{
	for (uint32_t i = 0; i < rank->work->script.nvns_here; i++)
		if (rank->work->loaded[i].rows)
			hd_rank_read_out(rank, &(struct hd_bind){ .arena = rank->arena[i] },
				rank->work->script.vn[i], 0);
}

/* ---- parts: from sync to sync, and from the last one of a phase to its end ---- */

static uint32_t parts_of(const struct hd_worker *w, enum hd_run_phase phase)
{
	return w->stage->lockstep.nsyncs[phase] + 1;
}

static uint32_t parts_of_step(const struct hd_worker *w)
{
	return parts_of(w, HD_RUN_F) + parts_of(w, HD_RUN_B);
}

static void run_part(struct hd_rank *rank, uint32_t part)
{
	struct hd_worker *w = rank->worker;
	const struct hd_lockstep *l = &w->stage->lockstep;
	const enum hd_run_phase phase = part < parts_of(w, HD_RUN_F) ? HD_RUN_F : HD_RUN_B;
	const uint32_t k = part - (phase == HD_RUN_B ? parts_of(w, HD_RUN_F) : 0),
		from = k ? l->sync[phase][k - 1].place + 1 : 0;

	(void)HD_FAILPOINT_KEY(GRAPH_PART, rank->id);
	if (l->fore && l->fore->hold)
		l->fore->hold(l->fore->hold_user, rank, part);
	if (part == 0 && !hd_rank_idle(rank))
		begin(rank);
	if (k < l->nsyncs[phase]) {
		run_all(rank, phase, from, l->sync[phase][k].place);
		meet(rank, &l->sync[phase][k]);
		return;
	}
	run_all(rank, phase, from, w->stage->train.norder[phase]);
	if (phase == HD_RUN_F && !hd_rank_idle(rank))
		read_all(rank);
}

/* Of the step at hand: those that did not run ahead. */
static void run_parts(struct hd_rank *rank, enum hd_run_phase phase)
{
	const struct hd_worker *w = rank->worker;
	const uint64_t step = (uint64_t)w->count.step;
	const uint32_t n = parts_of_step(w), end = phase == HD_RUN_F ? parts_of(w, HD_RUN_F) : n;
	const bool fore = hd_fore_runs(w);
	uint32_t part = phase == HD_RUN_F ? 0 : parts_of(w, HD_RUN_F);

	if (fore && hd_fore_next(rank, step, n) > part)
		part = hd_fore_next(rank, step, n);
	for (; part < end; part++) {
		run_part(rank, part);
		if (fore)
			hd_fore_ran(rank, step, part, n);
	}
}

/* Rank 0: is all here that other workers bring to the step at hand? */
static void look_at_workers(struct hd_rank *rank)
{
	struct hd_fore *f = rank->worker->stage->lockstep.fore;
	bool all = true;
	enum hd_err err;

	if (rank->id || atomic_load(&f->here))
		return;
	err = hd_meeting_poll(rank->worker, &all, &rank->diag);
	if (err)
		hd_rank_fail(rank, err);
	else if (all)
		atomic_store(&f->here, true);
}

/* The rank's virtual nodes are through the step at hand, and go on until all others are (fore.h). */
static void run_ahead(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	struct hd_fore *f = w->stage->lockstep.fore;
	const uint64_t now = (uint64_t)w->count.step, end = now + f->most + 1 < w->task->nsteps ?
		now + f->most + 1 : w->task->nsteps;
	const uint32_t n = parts_of_step(w);

	atomic_fetch_add(&f->nthrough, 1);
	for (; !hd_rank_idle(rank); rank->ahead = 0) {
		look_at_workers(rank);
		if (rank->at.step >= end || (atomic_load(&f->nthrough) == w->spec.ndevices &&
			atomic_load(&f->here)))
			return;
		rank->ahead = (uint32_t)(rank->at.step - now);
		const uint32_t part = hd_fore_next(rank, rank->at.step, n);
		run_part(rank, part);
		hd_fore_ran(rank, rank->at.step, part, n);
	}
}

/* What all ranks have brought to syncs ahead of this step goes out. */
static void offer_brought(struct hd_worker *w)
{
	const struct hd_lockstep *l = &w->stage->lockstep;

	for (int phase = HD_RUN_F; phase <= HD_RUN_B; phase++)
		for (uint32_t k = 0; k < l->nsyncs[phase]; k++)
			if (hd_stamps_all(w, &l->sync[phase][k]))
				hd_meeting_offer(w, &l->sync[phase][k]);
}

/* All buffers are there to be written, and no leaf is of this pass but what was brought ahead of it. */
static void open_syncs(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	const bool meets = rank->id == 0 && w->step->work->meeting && !hd_rank_idle(rank);
	enum hd_err err = HD_OK;

	if (rank->id == 0)
		w->stage->lockstep.met = 0;
	if (!hd_stamps_run_free(w))
		return;
	if (rank->id == 0)
		hd_stamps_begin(w);
	if (meets)
		err = hd_meeting_ready(w, &rank->diag);
	if (err)
		hd_rank_fail(rank, err);
	if (hd_fore_runs(w))
		hd_fore_open(rank);
	if (meets && !err && hd_fore_runs(w))
		offer_brought(w);
	hd_ranks_meet(w);
}

/* The rows of this step are those that the next one may read. */
static void close_syncs(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	enum hd_err err = HD_OK;

	if (rank->id || hd_rank_idle(rank))
		return;
	if (hd_stamps_run_free(w) && w->step->work->meeting)
		err = hd_meeting_drain(w, &rank->diag);
	if (err) {
		hd_rank_fail(rank, err);
		return;
	}
	w->stage->lockstep.met = w->count.step + 1;
	if (w->stage->lockstep.fore)      /* those still ahead come back */
		atomic_store(&w->stage->lockstep.fore->here, true);
}

enum hd_err hd_lockstep_run(struct hd_rank *rank, enum hd_run_phase phase, struct hd_diag *diag)
{
	struct hd_worker *w = rank->worker;
	(void)diag;                       /* failures are reported where they happen: the others still meet */

	if (phase == HD_RUN_F)
		open_syncs(rank);
	run_parts(rank, phase);
	if (phase == HD_RUN_F)
		return HD_OK;
	if (hd_fore_runs(w))
		run_ahead(rank);
	close_syncs(rank);
	for (uint32_t i = 0; i < rank->work->script.nvns_here && !hd_rank_idle(rank); i++)
		hd_reading_done(w, (uint64_t)w->count.step, rank->work->script.vn[i]);
	return HD_OK;
}
