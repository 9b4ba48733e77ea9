#include <assert.h>

#include "pipeline/schedule_check.h"
#include "engine/parcel.h"
#include "engine/pipe_int.h"
#include "engine/post.h"
#include "engine/shadow.h"
#include "engine/worker_int.h"

/* What a plan of several stages needs, found in its lists: stages, seats, cells. How many buffers they take:
 * pipe_count.c; taken in pipe_take.c. */

/* ---- stages ---- */

/* Inputs [first, first + n) of a stage's graph that its group has, as one buffer, of full virtual nodes. */
static enum hd_err make_letter(struct hd_letter *letter, const struct hd_pipe *pipe,
	const struct hd_pipe_stage *stage, uint32_t first, uint32_t n, uint64_t rows, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_graph *graph = &stage->cut->graph;

	*letter = (struct hd_letter){ .n = n, .at = hd_arena_take(arena, n + 1, sizeof *letter->at) };
	if (!letter->at)
		return hd_pipe_no_memory(diag);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t value = graph->input[first + i];
		letter->at[i] = HD_NOT_SENT;
		if (!hd_spread_has(&pipe->spread, stage->cut_of, stage->group, value))
			continue;
		letter->at[i] = letter->bytes;
		letter->bytes += hd_pipe_line_up(hd_value_bytes(&graph->value[value], rows));
	}
	return HD_OK;
}

static enum hd_err find_runs(const struct hd_pipe *pipe, struct hd_pipe_stage *stage,
	const struct hd_layout *layout, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t number = (uint32_t)(stage - pipe->stage);

	stage->run = hd_arena_take(arena, layout->ngrads + 1, sizeof *stage->run);
	if (!stage->run)
		return hd_pipe_no_memory(diag);
	for (uint32_t g = 0; g < layout->ngrads; g++)
		if (stage->cut->learns[g] && pipe->spread.of_grad[g] == number)
			stage->run[stage->nruns++] = (struct hd_flat_run){ layout->at[g], layout->len[g] };
	return HD_OK;
}

/* Nodes of a stage stand in the order of the whole graph. */
static enum hd_err set_pace(struct hd_pipe *pipe, const struct hd_worker *w, uint32_t s,
	struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_graph *whole = pipe->cuts.whole;
	const uint32_t cut = pipe->stage[s].cut_of;
	int64_t *node_ns = hd_arena_take(arena, (size_t)pipe->cuts.stage[cut].graph.nnodes + 1,
		sizeof *node_ns);
	uint32_t n = 0;

	if (!node_ns)
		return hd_pipe_no_memory(diag);
	for (uint32_t i = 0; i < whole->nnodes; i++)
		if (pipe->cuts.of_node[i] == cut)
			node_ns[n++] = w->spec.pace_ns[i];
	assert(n == pipe->cuts.stage[cut].graph.nnodes);
	hd_waits_make(&pipe->stage[s].pace, &pipe->stage[s].tensor.whole, node_ns);
	pipe->stage[s].node_ns = node_ns;
	return HD_OK;
}

static uint32_t own(const struct hd_pipe *pipe, const struct hd_pipe_stage *stage, uint32_t value)
{
	return value != HD_NONE && hd_spread_makes(&pipe->spread, stage->cut_of, stage->group, value) ?
		value :
		HD_NONE;
}

/* What a stage says of a virtual node is said by the group that makes it. */
static struct hd_readout said_by(const struct hd_pipe *pipe, const struct hd_pipe_stage *stage)
{
	const struct hd_readout all = hd_stage_readouts(&stage->cut->graph);

	struct hd_readout said = { .loss = own(pipe, stage, all.loss), .weight = own(pipe, stage, all.weight),
		.correct = own(pipe, stage, all.correct), .logits = all.logits };

	for (uint32_t i = 0; i < HD_MODEL_TERMS; i++)
		said.term[i] = own(pipe, stage, all.term[i]);
	return said;
}

static enum hd_err make_stage(struct hd_pipe *pipe, struct hd_worker *w, uint32_t s, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_task *task = w->task;
	struct hd_pipe_stage *stage = &pipe->stage[s];
	const struct hd_graph_stage *cut = stage->cut = &pipe->cuts.stage[s / pipe->groups];
	const struct hd_program_group group = { .at = &pipe->spread.at[s / pipe->groups],
		.group = s % pipe->groups, .ngroups = pipe->groups };

	const uint32_t to = hd_pipe_next(pipe, s);
	const uint32_t nout = pipe->keeps && to != HD_NONE ? pipe->cuts.stage[to / pipe->groups].nact_in : 0;

	stage->cut_of = s / pipe->groups;
	stage->group = group.group;
	enum hd_err err = hd_program_make_tensor(&stage->tensor, &cut->graph, &task->layout, task->rows,
		task->nrows, (uint32_t)hd_job_int(task->job, HD_JOB_SHARDS), pipe->width * pipe->groups,
		pipe->groups > 1 ? &group : NULL, arena, diag);

	if (!err && w->spec.pace_ns)
		err = set_pace(pipe, w, s, arena, diag);
	if (err)
		return err;
	struct hd_idle idle = { 0 };
	/* devices of a rank run a node in turns: what they write to is not looked at */
	if (w->rank && !hd_tensor_turns(pipe))
		err = hd_program_idle(&idle, &stage->tensor.part[0], w->rank[0].device,
			stage->tensor.whole.memory.len_bytes, 0, diag);
	if (err)
		return err;
	stage->idle_bytes = idle.arena_bytes;
	stage->node_of = w->values ? hd_values_nodes(&pipe->cuts, stage->cut_of, arena) : NULL;
	if (w->values && !stage->node_of)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the nodes of stage %u", s);
	stage->out = said_by(pipe, stage);
	const uint64_t rows = stage->tensor.whole.part_rows;
	err = hd_worker_fields(w, &cut->graph, cut->ndata, &stage->field, arena, diag);
	err = err ? err : hd_offload_find(stage, &pipe->spread, nout, arena, diag);
	err = err ? err : make_letter(&stage->act, pipe, stage, cut->ndata, cut->nact_in, rows, arena, diag);
	err = err ? err : make_letter(&stage->grad, pipe, stage, cut->ndata + cut->nact_in, cut->ngrad_in,
		rows, arena, diag);
	return err ? err : find_runs(pipe, stage, &task->layout, arena, diag);
}

/* ---- seats ---- */

/* NULL: of another worker */
struct hd_seat *hd_pipe_seat_at(struct hd_pipe *pipe, uint32_t rank, uint32_t stage, bool shadow)
{
	for (uint32_t i = 0; i < pipe->nseats; i++)
		if (pipe->seat[i].rank == rank && pipe->seat[i].stage == stage)
			return &pipe->seat[i];
	if (pipe->device_of[rank] == HD_NONE)
		return NULL;
	pipe->seat[pipe->nseats] = (struct hd_seat){ .rank = rank, .device = pipe->device_of[rank],
		.stage = stage, .shadow = shadow };
	return &pipe->seat[pipe->nseats++];
}

/* A gradient once more, to a shadow: the cell that made it keeps it. */
bool hd_pipe_is_copy(const struct hd_ins *ins)
{
	return ins->op == HD_INS_SG && ins->flags & HD_INS_SHADOW;
}

/* Bits of hd_cell.keeps. What a shadow's backward makes may be needed in its owner's place. */
static uint8_t what_keeps(const struct hd_ins *ins)
{
	if (ins->op == HD_INS_B && ins->flags & HD_INS_SHADOW && ins->stage)
		return 1 << HD_MAIL_GRAD;
	if (!(ins->flags & HD_INS_KEEP))
		return 0;
	return ins->op == HD_INS_SA ? 1 << HD_MAIL_ACT : 1 << HD_MAIL_GRAD;
}

bool hd_pipe_ends_weights(const struct hd_ins *ins) { return ins->op == HD_INS_B || ins->op == HD_INS_W; }

/* The seat of each cell, and how long a cell is kept. */
static void find_seats(struct hd_pipe *pipe, const struct hd_plan *plan)
{
	for (uint32_t r = 0; r < plan->nranks; r++)
		for (uint32_t i = 0; i < plan->list[r].len; i++) {
			const struct hd_ins *ins = &plan->list[r].at[i];
			struct hd_cell *cell = hd_ins_uses(ins->op, 'v') ? hd_cell_for(pipe, ins,
				ins->stage) : NULL;
			if (!cell || hd_pipe_is_copy(ins))
				continue;
			if (ins->op == HD_INS_F) {
				cell->rank = (uint16_t)r;
				cell->seat = hd_pipe_seat_at(pipe, r, ins->stage, ins->flags & HD_INS_SHADOW);
				cell->light = ins->flags & HD_INS_CHECKPOINT;
			}
			cell->keeps |= what_keeps(ins);
			cell->ends = (uint8_t)(cell->ends + (hd_pipe_ends_weights(ins) ||
				ins->op == HD_INS_SG));
		}
}

static enum hd_err make_script(struct hd_pipe *pipe, struct hd_seat *seat, const struct hd_ilist *list,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t *vn = hd_arena_take(arena, pipe->nvns, sizeof *vn), n = 0;

	if (!vn)
		return hd_pipe_no_memory(diag);
	for (uint32_t i = 0; i < list->len; i++)
		if (hd_pipe_ends_weights(&list->at[i]) && list->at[i].stage == seat->stage) {
			hd_cell_for(pipe, &list->at[i], seat->stage)->leaf = n;
			vn[n++] = list->at[i].vn;
		}
	return hd_fold_script_make_any(&seat->script, pipe->nvns, vn, n, arena, diag);
}

static enum hd_err take_tables(struct hd_pipe *pipe, struct hd_arena *arena, struct hd_diag *diag)
{
	const size_t cells = (size_t)pipe->nstages * pipe->nvns;

	pipe->stage = hd_arena_take(arena, pipe->nstages, sizeof *pipe->stage);
	pipe->ncells = pipe->keeps ? 2 * cells : cells;
	pipe->cell = hd_arena_take(arena, pipe->ncells, sizeof *pipe->cell);
	pipe->seat = hd_arena_take(arena, pipe->ncells < (size_t)pipe->nstages * pipe->ndevices ?
		pipe->ncells : (size_t)pipe->nstages * pipe->ndevices, sizeof *pipe->seat);
	pipe->box = hd_arena_take(arena, pipe->ndevices, sizeof *pipe->box);
	pipe->updated = hd_arena_take(arena, pipe->ndevices, sizeof *pipe->updated);
	pipe->rank_of = hd_arena_take(arena, pipe->ndevices, sizeof *pipe->rank_of);
	pipe->device_of = hd_arena_take(arena, pipe->nranks, sizeof *pipe->device_of);
	pipe->known = hd_arena_take(arena, cells, 1);
	pipe->shadow_leaf = hd_arena_take(arena, pipe->nvns, sizeof *pipe->shadow_leaf);
	pipe->shadow_moments = hd_arena_take(arena, (pipe->nsays - HD_LEAF_FIELDS) * pipe->nvns *
		pipe->keeps + 1, sizeof *pipe->shadow_moments);
	pipe->says = hd_arena_take(arena, pipe->nsays, sizeof *pipe->says);
	pipe->readers = hd_arena_take(arena, pipe->nvns, sizeof *pipe->readers);
	pipe->rows = hd_arena_take(arena, pipe->nvns, sizeof *pipe->rows);
	pipe->loaded = hd_arena_take(arena, pipe->nvns, sizeof *pipe->loaded);
	pipe->left = hd_arena_take(arena, pipe->nvns, sizeof *pipe->left);
	pipe->ahead_leaf = hd_arena_take(arena, pipe->nvns, sizeof *pipe->ahead_leaf);
	pipe->input = hd_arena_take(arena, (size_t)pipe->ndevices * HD_MAX_ENDS, sizeof *pipe->input);
	return pipe->stage && pipe->cell && pipe->seat && pipe->box && pipe->updated && pipe->rank_of &&
		pipe->device_of && pipe->readers && pipe->known && pipe->says && pipe->rows &&
			pipe->loaded && pipe->left && pipe->ahead_leaf && pipe->input &&
			pipe->shadow_leaf && pipe->shadow_moments ?
		HD_OK : hd_pipe_no_memory(diag);
}

static void find_devices(struct hd_pipe *pipe, const uint32_t *rank)
{
	for (uint32_t r = 0; r < pipe->nranks; r++)
		pipe->device_of[r] = HD_NONE;
	for (uint32_t d = pipe->ndevices; d-- > 0;) {
		pipe->rank_of[d] = rank[d];
		if (rank[d] != HD_NONE)
			pipe->device_of[rank[d]] = d;
	}
}

/* Which stage says what of a leaf. Moments of all records lie one after another. */
static void find_sayers(struct hd_pipe *pipe, const struct hd_worker *w)
{
	for (uint32_t s = 0; s < pipe->nstages; s++) {
		const struct hd_pipe_stage *stage = &pipe->stage[s];
		for (uint32_t k = 0; k < HD_LEAF_FIELDS; k++)
			if (hd_readout_field(&stage->out, k) != HD_NONE)
				pipe->says[k] = (uint16_t)s;
		for (uint32_t k = 0; k < stage->cut->graph.nrunning; k++) {
			if (own(pipe, stage, stage->cut->graph.running[k].moments) == HD_NONE)
				continue;
			const uint32_t record = stage->cut->running[k];
			for (uint64_t i = w->step->moments.at[record]; i < w->step->moments.at[record + 1];
				i++)
				pipe->says[HD_LEAF_FIELDS + i] = (uint16_t)s;
		}
	}
}

/* With shadows also the rank before that of a stage that reads: it may have to run it. */
static void count_readers(struct hd_pipe *pipe)
{
	for (uint32_t s = 0; s < pipe->nstages; s++)
		for (uint32_t v = 0; v < pipe->nvns && pipe->stage[s].cut->ndata; v++)
			pipe->readers[v] += hd_cell_of(pipe, s, v)->seat != NULL;
	if (!pipe->keeps)
		return;
	for (uint32_t v = 0; v < pipe->nvns; v++) {
		bool reads = pipe->readers[v];
		for (uint32_t s = 0; s < pipe->nstages; s++)
			reads |= pipe->stage[s].cut->ndata && hd_cell_of(pipe, (s ? s : pipe->nstages) - 1,
				v)->seat;
		pipe->readers[v] += reads;        /* the step (shadow.h, rule 5) */
	}
}

static bool keeps_sent(const struct hd_plan *plan)
{
	for (uint32_t r = 0; r < plan->nranks; r++)
		for (uint32_t i = 0; i < plan->list[r].len; i++)
			if (hd_ins_redundant(&plan->list[r].at[i]) || plan->list[r].at[i].flags & HD_INS_KEEP)
				return true;
	return false;
}

/* The stages of all groups begin at one node. */
static enum hd_err cut(struct hd_pipe *pipe, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_task *task = pipe->worker->task;
	const uint32_t n = pipe->nstages / pipe->groups;
	uint32_t *first = hd_arena_take(arena, n, sizeof *first);

	if (!first)
		return hd_pipe_no_memory(diag);
	for (uint32_t s = 0; s < n; s++)
		first[s] = pipe->plan->first[s * pipe->groups];
	enum hd_err err = hd_graph_stages_make(&pipe->cuts, &task->train, first, n, arena, diag);
	return err ? err : hd_graph_spread_make(&pipe->spread, &pipe->cuts,
		(uint32_t)hd_job_int(task->job, HD_JOB_SHARDS), pipe->width * pipe->groups, pipe->groups,
		arena,
		diag);
}

enum hd_err hd_pipe_make(struct hd_pipe **out, struct hd_worker *w, const struct hd_plan *plan,
	const uint32_t *rank, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_pipe *pipe = hd_arena_take(arena, 1, sizeof *pipe);

	if (!pipe)
		return hd_pipe_no_memory(diag);
	*pipe = (struct hd_pipe){ .nranks = plan->nranks, .nstages = plan->nstages, .nvns = plan->nvns,
		.nsays = HD_LEAF_FIELDS + w->step->moments.elems, .ndevices = w->spec.ndevices,
		.groups = hd_plan_groups(plan), .width = hd_plan_width(plan), .worker = w, .plan = plan,
		.away = -1, .keeps = keeps_sent(plan) };
	enum hd_err err = take_tables(pipe, arena, diag);
	err = err ? err : hd_tensor_make(pipe, arena, diag);
	if (!err)
		find_devices(pipe, rank);
	err = err ? err : cut(pipe, arena, diag);
	for (uint32_t s = 0; s < plan->nstages && !err; s++)
		err = make_stage(pipe, w, s, arena, diag);
	if (err)
		return err;
	find_seats(pipe, plan);
	count_readers(pipe);
	find_sayers(pipe, w);
	err = hd_shadows_find(pipe, arena, diag);
	err = err ? err : hd_post_lines(pipe, arena, diag);
	err = err ? err : hd_parcel_lines(pipe, arena, diag);
	for (uint32_t i = 0; i < pipe->nseats && !err; i++)
		err = make_script(pipe, &pipe->seat[i], &plan->list[pipe->seat[i].rank], arena, diag);
	err = err ? err : hd_pipe_also(pipe, plan->list, arena, diag);
	if (err)
		return err;
	pipe->nvectors = hd_pipe_count_vectors(pipe);
	err = hd_pipe_count_vector_bytes(pipe, arena, diag);
	*out = pipe;
	return err;
}

/* A device without a stage takes part in the end of the step. */
static enum hd_err make_idle(struct hd_ilist **idle, const struct hd_plan *plan, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_ilist *of = &plan->list[0];
	struct hd_ilist *list = hd_arena_take(arena, 1, sizeof *list);

	if (!list || !(list->at = hd_arena_take(arena, of->len + 1, sizeof *list->at)))
		return hd_pipe_no_memory(diag);
	for (uint32_t i = 0; i < of->len; i++)
		if (hd_pipe_runners[of->at[i].op].meets)
			list->at[list->len++] = of->at[i];
	*idle = list;
	return HD_OK;
}

/* Whose rows its lists read in every step. Of a shadow without work they are read after a loss alone: what
 * was read ahead for it would never be given back. */
static void find_reads(uint8_t *reads, const struct hd_pipe *pipe)
{
	for (uint32_t r = 0; r < pipe->nranks; r++)
		for (uint32_t i = 0; pipe->device_of[r] != HD_NONE && i < pipe->plan->list[r].len; i++) {
			const struct hd_ins *ins = &pipe->plan->list[r].at[i];
			const bool looks = pipe->stage[ins->stage].cut->ndata;
			if (ins->op == HD_INS_LD || (ins->op == HD_INS_F && looks))
				reads[ins->vn] = pipe->readers[ins->vn] > 0;
		}
}

enum hd_err hd_pipe_work(struct hd_worker *w, struct hd_work *work, const struct hd_plan *plan,
	const uint32_t *rank, struct hd_arena *arena, struct hd_diag *diag)
{
	*work = (struct hd_work){ .rank = hd_arena_take(arena, w->spec.ndevices, sizeof *work->rank),
		.has = hd_arena_take(arena, plan->nvns, 1) };
	uint8_t *reads = hd_arena_take(arena, plan->nvns, 1);
	work->reads = reads;
	work->left = hd_arena_take(arena, w->stage->nbuckets + 1, sizeof *work->left);
	if (!work->rank || !work->has || !work->reads || !work->left)
		return hd_pipe_no_memory(diag);
	struct hd_ilist *idle = NULL;
	enum hd_err err = make_idle(&idle, plan, arena, diag);
	if (err)
		return err;
	for (uint32_t r = 0; r < w->spec.ndevices; r++) {
		work->rank[r] = (struct hd_rank_work){ .list = rank[r] == HD_NONE ? idle :
			&plan->list[rank[r]],
			.script.nslices = 1,
			/* the search for a cause runs the whole model (diverge.c) */
			.loaded = hd_arena_take(arena, 1, sizeof *work->rank[r].loaded),
			.spent = hd_arena_take(arena, (size_t)plan->nstages * HD_INS_END,
				sizeof *work->rank[r].spent) };
		if (!work->rank[r].loaded || !work->rank[r].spent)
			return hd_pipe_no_memory(diag);
	}
	err = hd_pipe_make(&work->pipe, w, plan, rank, arena, diag);
	if (!err)
		find_reads(reads, work->pipe);
	for (uint32_t v = 0; v < plan->nvns && !err; v++) {
		for (uint32_t s = 0; s < plan->nstages; s++)
			work->has[v] |= hd_cell_of(work->pipe, s, v)->seat != NULL;
		work->nleaves += work->has[v];
	}
	return err;
}
