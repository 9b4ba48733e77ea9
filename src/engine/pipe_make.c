#include <assert.h>
#include <string.h>

#include "pipeline/schedule_check.h"
#include "engine/parcel.h"
#include "engine/pipe_int.h"
#include "engine/post.h"
#include "engine/rest.h"
#include "engine/shadow.h"
#include "engine/worker_int.h"

/* What a plan of several stages needs, counted from its lists; then taken. */

enum { ALIGN = 64 };

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for the stages of a pipeline");
}

static uint64_t line_up(uint64_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

/* ---- stages ---- */

/* Inputs [first, first + n) of a stage's graph that its group has, as one buffer, of full virtual nodes. */
static enum hd_err make_letter(struct hd_letter *letter, const struct hd_pipe *pipe,
	const struct hd_pipe_stage *stage, uint32_t first, uint32_t n, uint64_t rows, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_graph *graph = &stage->cut->graph;

	*letter = (struct hd_letter){ .n = n, .at = hd_arena_take(arena, n + 1, sizeof *letter->at) };
	if (!letter->at)
		return no_memory(diag);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t value = graph->input[first + i];
		letter->at[i] = HD_NOT_SENT;
		if (!hd_spread_has(&pipe->spread, stage->cut_of, stage->group, value))
			continue;
		letter->at[i] = letter->bytes;
		letter->bytes += line_up(hd_value_bytes(&graph->value[value], rows));
	}
	return HD_OK;
}

static enum hd_err find_runs(const struct hd_pipe *pipe, struct hd_pipe_stage *stage,
	const struct hd_layout *layout, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t number = (uint32_t)(stage - pipe->stage);

	stage->run = hd_arena_take(arena, layout->ngrads + 1, sizeof *stage->run);
	if (!stage->run)
		return no_memory(diag);
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
		return no_memory(diag);
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

	return (struct hd_readout){ .loss = own(pipe, stage, all.loss), .weight = own(pipe, stage,
		all.weight),
		.correct = own(pipe, stage, all.correct), .logits = all.logits };
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
		return no_memory(diag);
	for (uint32_t i = 0; i < list->len; i++)
		if (hd_pipe_ends_weights(&list->at[i]) && list->at[i].stage == seat->stage) {
			hd_cell_for(pipe, &list->at[i], seat->stage)->leaf = n;
			vn[n++] = list->at[i].vn;
		}
	return hd_fold_script_make_any(&seat->script, pipe->nvns, vn, n, arena, diag);
}

/* ---- how much is held at once ---- */

struct pipe_held { uint32_t arenas, away, mail[HD_MAILS]; };
struct pipe_count { struct pipe_held now, most; uint32_t kept[HD_MAILS]; };

static uint32_t most_of(uint32_t a, uint32_t b) { return a > b ? a : b; }

static void more(uint32_t *now, uint32_t *most)
{
	++*now;
	*most = *now > *most ? *now : *most;
}

static bool is_on(const struct hd_pipe *pipe, uint32_t stage, uint32_t vn, uint32_t rank)
{
	return hd_cell_of(pipe, stage, vn)->rank == rank;
}

static struct pipe_count *count_of(const struct hd_pipe *pipe, struct pipe_count *counts, uint32_t stage,
	uint32_t vn)
{
	return &counts[hd_cell_of(pipe, stage, vn)->seat - pipe->seat];
}

/* Of a shadow; its mail has buffers for all. */
static void count_shadow(const struct hd_pipe *pipe, struct pipe_count *counts, const struct hd_ins *ins)
{
	struct hd_cell *cell = hd_cell_for(pipe, ins, ins->stage);
	struct pipe_count *c = cell->seat ? &counts[cell->seat - pipe->seat] : NULL;

	switch (ins->op) {
	case HD_INS_F:  more(&c->now.arenas, &c->most.arenas); break;
	case HD_INS_RG: more(&c->now.mail[HD_MAIL_GRAD], &c->most.mail[HD_MAIL_GRAD]); break;
	case HD_INS_B:  c->now.arenas--; break;
	case HD_INS_OFF:
		c->now.arenas--;
		more(&c->now.away, &c->most.away);
		break;
	case HD_INS_ON:
		more(&c->now.arenas, &c->most.arenas);
		c->now.away--;
		break;
	default: break;
	}
}

/* As pipe.c does it. */
static void count_ins(const struct hd_pipe *pipe, struct pipe_count *counts, uint32_t r,
	const struct hd_ins *ins)
{
	const uint32_t s = ins->stage, v = ins->vn, after = hd_pipe_next(pipe, s),
		before = hd_pipe_before(pipe, s);
	struct pipe_count *c = count_of(pipe, counts, s, v);
	struct hd_cell *cell = hd_cell_of(pipe, s, v);
	bool sends = after != HD_NONE && !is_on(pipe, after, v, r), ends = false;

	switch (ins->op) {
	case HD_INS_F:
		more(&c->now.arenas, &c->most.arenas);
		if (after != HD_NONE && !sends) {
			struct pipe_count *next = count_of(pipe, counts, after, v);
			more(&next->now.mail[HD_MAIL_ACT], &next->most.mail[HD_MAIL_ACT]);
		}
		c->now.arenas -= cell->light && !sends;
		break;
	case HD_INS_SA: c->now.arenas -= cell->light; break;
	case HD_INS_R:  more(&c->now.arenas, &c->most.arenas); break;
	case HD_INS_OFF:
		c->now.arenas--;
		more(&c->now.away, &c->most.away);
		break;
	case HD_INS_ON:
		more(&c->now.arenas, &c->most.arenas);
		c->now.away--;
		break;
	case HD_INS_RA: more(&c->now.mail[HD_MAIL_ACT], &c->most.mail[HD_MAIL_ACT]); break;
	case HD_INS_RG: more(&c->now.mail[HD_MAIL_GRAD], &c->most.mail[HD_MAIL_GRAD]); break;
	case HD_INS_B: case HD_INS_I:
		if (before != HD_NONE && is_on(pipe, before, v, r)) {
			struct pipe_count *to = count_of(pipe, counts, before, v);
			more(&to->now.mail[HD_MAIL_GRAD], &to->most.mail[HD_MAIL_GRAD]);
		}
		ends = ins->op == HD_INS_B;
		break;
	case HD_INS_W: case HD_INS_SG: ends = true; break;
	default: break;
	}
	if (ends && --cell->left == 0) {
		c->now.arenas--;
		c->now.mail[HD_MAIL_ACT] -= before != HD_NONE;
		c->now.mail[HD_MAIL_GRAD] -= after != HD_NONE;
	}
}

/* Other ranks that send to a seat. */
static uint32_t senders(const struct hd_pipe *pipe, const struct hd_seat *seat, enum hd_mail kind)
{
	const uint32_t other = kind == HD_MAIL_ACT ? hd_pipe_before(pipe, seat->stage) :
		hd_pipe_next(pipe, seat->stage);
	uint64_t seen[HD_MAX_RANKS / 64] = { 0 };
	uint32_t n = 0;

	if (seat->shadow || other == HD_NONE)
		return 0;
	for (uint32_t v = 0; v < pipe->nvns; v++) {
		uint32_t r = hd_cell_of(pipe, other, v)->rank;
		if (hd_cell_of(pipe, seat->stage, v)->seat != seat || r == seat->rank ||
			seen[r / 64] >> r % 64 & 1)
			continue;
		seen[r / 64] |= UINT64_C(1) << r % 64;
		n++;
	}
	return n;
}

static void count_kept(const struct hd_pipe *pipe, struct pipe_count *counts)
{
	for (size_t i = 0; i < pipe->ncells; i++)
		for (int kind = 0; kind < HD_MAILS && pipe->cell[i].seat; kind++)
			counts[pipe->cell[i].seat - pipe->seat].kept[kind] += pipe->cell[i].keeps >> kind & 1;
}

/* Of the neighbour stage that gets it. */
static uint64_t kept_bytes(const struct hd_pipe *pipe, const struct hd_seat *seat, enum hd_mail kind)
{
	const uint32_t to = hd_pipe_to(pipe, seat->stage, kind);

	if (kind == HD_MAIL_ACT)
		return to == HD_NONE ? 0 : pipe->stage[to].act.bytes;
	return to == HD_NONE ? 0 : pipe->stage[to].grad.bytes;
}

enum hd_err hd_pipe_also(struct hd_pipe *pipe, const struct hd_ilist *list, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct pipe_count *counts = hd_arena_take(arena, pipe->nseats, sizeof *counts);

	if (!counts)
		return no_memory(diag);
	for (size_t i = 0; i < pipe->ncells; i++)
		pipe->cell[i].left = pipe->cell[i].ends;
	for (uint32_t r = 0; r < pipe->nranks; r++)
		for (uint32_t i = 0; i < list[r].len && pipe->device_of[r] != HD_NONE; i++)
			if (hd_ins_uses(list[r].at[i].op, 'v') && list[r].at[i].flags & HD_INS_SHADOW)
				count_shadow(pipe, counts, &list[r].at[i]);
			else if (hd_ins_uses(list[r].at[i].op, 'v'))
				count_ins(pipe, counts, r, &list[r].at[i]);
	count_kept(pipe, counts);
	for (uint32_t i = 0; i < pipe->nseats; i++) {
		struct hd_seat *seat = &pipe->seat[i];
		const struct hd_pipe_stage *stage = &pipe->stage[seat->stage];
		seat->arena.cap = most_of(seat->arena.cap, counts[i].most.arenas);
		seat->arena.bytes = line_up(stage->tensor.whole.memory.len_bytes);
		seat->away.cap = most_of(seat->away.cap, counts[i].most.away);
		for (int kind = 0; kind < HD_MAILS; kind++) {
			seat->mail[kind].cap = most_of(seat->mail[kind].cap, counts[i].most.mail[kind] +
				HD_CREDITS * senders(pipe, seat, (enum hd_mail)kind));
			seat->mail[kind].bytes = kind == HD_MAIL_ACT ? stage->act.bytes : stage->grad.bytes;
			seat->kept[kind].cap = most_of(seat->kept[kind].cap, counts[i].kept[kind]);
			seat->kept[kind].bytes = kept_bytes(pipe, seat, (enum hd_mail)kind);
		}
	}
	return HD_OK;
}

/* Seats of one stage have vectors of their own: first the one that runs virtual node 0, whose first root is
 * the leftmost of the tree. */
uint32_t hd_pipe_count_vectors(const struct hd_pipe *pipe)
{
	uint32_t most = 1;

	for (uint32_t s = 0; s < pipe->nstages; s++) {
		uint32_t n = 0;
		for (uint32_t i = 0; i < pipe->nseats; i++)
			n += pipe->seat[i].stage == s ? pipe->seat[i].script.nbuffers : 0;
		most = n > most ? n : most;
	}
	return most;
}

/* Vector v of each stage's is vector v of the worker's: what the stages that have so many write. */
static uint64_t bytes_of_vector(const struct hd_pipe *pipe, uint32_t v, struct hd_memory_part *part)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < pipe->nstages; s++) {
		const struct hd_pipe_stage *stage = &pipe->stage[s];
		uint32_t of = 0;
		for (uint32_t i = 0; i < pipe->nseats; i++)
			of += pipe->seat[i].stage == s ? pipe->seat[i].script.nbuffers : 0;
		for (uint32_t k = 0; k < stage->nruns && v < of; k++)
			part[n++] = (struct hd_memory_part){ stage->run[k].at * sizeof(float),
				(stage->run[k].at + stage->run[k].len) * sizeof(float) };
	}
	return hd_memory_taken_by(part, n, pipe->worker->stage->flat_bytes);
}

enum hd_err hd_pipe_count_vector_bytes(struct hd_pipe *pipe, struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < pipe->nstages; s++)
		n += pipe->stage[s].nruns;
	struct hd_memory_part *part = hd_arena_take(arena, n + 1, sizeof *part);
	pipe->vector_bytes = hd_arena_take(arena, pipe->nvectors, sizeof *pipe->vector_bytes);
	if (!part || !pipe->vector_bytes)
		return no_memory(diag);
	for (uint32_t v = 0; v < pipe->nvectors; v++)
		pipe->vector_bytes[v] = bytes_of_vector(pipe, v, part);
	return HD_OK;
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
		HD_OK : no_memory(diag);
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
		const uint32_t out[HD_LEAF_FIELDS] = { stage->out.loss, stage->out.weight,
			stage->out.correct };
		for (uint32_t k = 0; k < HD_LEAF_FIELDS; k++)
			if (out[k] != HD_NONE)
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
			reads |= pipe->stage[s].cut->ndata && hd_cell_of(pipe, pipe->nstages + s, v)->seat;
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
		return no_memory(diag);
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
		return no_memory(diag);
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
		return no_memory(diag);
	for (uint32_t i = 0; i < of->len; i++)
		if (hd_pipe_runners[of->at[i].op].meets)
			list->at[list->len++] = of->at[i];
	*idle = list;
	return HD_OK;
}

enum hd_err hd_pipe_work(struct hd_worker *w, struct hd_work *work, const struct hd_plan *plan,
	const uint32_t *rank, struct hd_arena *arena, struct hd_diag *diag)
{
	*work = (struct hd_work){ .rank = hd_arena_take(arena, w->spec.ndevices, sizeof *work->rank),
		.has = hd_arena_take(arena, plan->nvns, 1) };
	work->left = hd_arena_take(arena, w->stage->nbuckets + 1, sizeof *work->left);
	if (!work->rank || !work->has || !work->left)
		return no_memory(diag);
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
			return no_memory(diag);
	}
	err = hd_pipe_make(&work->pipe, w, plan, rank, arena, diag);
	for (uint32_t v = 0; v < plan->nvns && !err; v++) {
		for (uint32_t s = 0; s < plan->nstages; s++)
			work->has[v] |= hd_cell_of(work->pipe, s, v)->seat != NULL;
		work->nleaves += work->has[v];
	}
	return err;
}

static uint64_t pool_bytes(const struct hd_mail_pool *pool) { return pool->cap * pool->bytes; }

/* Arena i of a seat is the device's so far behind the first of the rank. */
static uint32_t home_of(const struct hd_pipe *pipe, uint32_t i) { return i % pipe->width; }

static uint64_t arena_bytes(const struct hd_pipe *pipe, const struct hd_seat *seat, uint32_t device)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < seat->arena.cap; i++)
		n += seat->device + home_of(pipe, i) == device;
	return n * seat->arena.bytes;
}

uint64_t hd_pipe_bytes(const struct hd_pipe *pipe, uint32_t device)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < pipe->nseats; i++) {
		const struct hd_seat *seat = &pipe->seat[i];
		bytes += arena_bytes(pipe, seat, device);
		if (seat->device == device)
			for (int kind = 0; kind < HD_MAILS; kind++)
				bytes += pool_bytes(&seat->mail[kind]) + pool_bytes(&seat->kept[kind]);
	}
	return bytes + hd_post_bytes(pipe, device) + hd_parcel_bytes(pipe, device) +
		hd_shadows_bytes(pipe, device);
}

uint64_t hd_pipe_idle_bytes(const struct hd_pipe *pipe, uint32_t device)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < pipe->nseats; i++) {
		const struct hd_seat *seat = &pipe->seat[i];
		if (seat->arena.bytes)
			bytes += arena_bytes(pipe, seat, device) / seat->arena.bytes *
				pipe->stage[seat->stage].idle_bytes;
	}
	return bytes;
}

/* Flat vectors are dealt to the pools of the ranks in turn. */
uint32_t hd_pipe_vectors_of(const struct hd_pipe *pipe, uint32_t device)
{
	const uint32_t n = pipe->first_vector + pipe->nvectors;

	return n / pipe->ndevices + (device < n % pipe->ndevices);
}

uint64_t hd_pipe_vector_bytes(const struct hd_pipe *pipe, uint32_t device)
{
	uint64_t bytes = 0;

	for (uint32_t v = 0; v < pipe->nvectors; v++)
		bytes += (pipe->first_vector + v) % pipe->ndevices == device ? pipe->vector_bytes[v] : 0;
	return bytes;
}

/* ---- taken ---- */

/* Of the first of the rank's devices, or of all in turn. */
enum hd_err hd_pipe_take_pool(const struct hd_pipe *pipe, struct hd_seat *seat, struct hd_mail_pool *pool,
	bool in_turn, struct hd_arena *arena, struct hd_diag *diag)
{
	pool->free = hd_arena_take(arena, pool->cap + 1, sizeof *pool->free);
	if (!pool->free)
		return no_memory(diag);
	for (pool->nfree = 0; pool->nfree < pool->cap; pool->nfree++) {
		/* a stage may be sent nothing: a place of its own all the same */
		const uint64_t bytes = pool->bytes ? pool->bytes : ALIGN;
		struct hd_device *device = pipe->worker->rank[seat->device + (in_turn ?
			home_of(pipe, pool->nfree) : 0)].device;
		void *at;
		enum hd_err err = device->ops->take(device, bytes, &at, diag);
		if (err)
			return err;
		pool->free[pool->nfree] = seat->memory[seat->nmemory] = at;
		seat->memory_bytes[seat->nmemory++] = bytes;
	}
	return HD_OK;
}

/* What device j of a rank runs. */
static struct hd_program *part_of(const struct hd_pipe *pipe, const struct hd_seat *seat, uint32_t j)
{
	const struct hd_pipe_stage *stage = &pipe->stage[seat->stage];

	return &stage->tensor.part[stage->group * pipe->width + j];
}

static enum hd_err take_seat(struct hd_pipe *pipe, struct hd_seat *seat, struct hd_worker *w,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t n = seat->arena.cap + seat->mail[HD_MAIL_ACT].cap + seat->mail[HD_MAIL_GRAD].cap +
		seat->kept[HD_MAIL_ACT].cap + seat->kept[HD_MAIL_GRAD].cap;

	seat->memory = hd_arena_take(arena, n + 1, sizeof *seat->memory);
	seat->memory_bytes = hd_arena_take(arena, n + 1, sizeof *seat->memory_bytes);
	seat->vector = hd_arena_take(arena, seat->script.nbuffers + 1, sizeof *seat->vector);
	for (int kind = 0; kind < HD_MAILS; kind++)
		seat->unused[kind] = hd_arena_take(arena, pipe->nranks, 1);
	if (!seat->memory || !seat->memory_bytes || !seat->vector || !seat->unused[0] || !seat->unused[1])
		return no_memory(diag);
	enum hd_err err = HD_OK;
	for (uint32_t j = 0; j < pipe->width && !err; j++) {
		struct hd_device *device = w->rank[seat->device + j].device;
		err = device->ops->load(device, part_of(pipe, seat, j), diag);
	}
	err = err ? err : hd_pipe_take_pool(pipe, seat, &seat->arena, true, arena, diag);
	for (int kind = 0; kind < HD_MAILS && !err; kind++)
		err = hd_pipe_take_pool(pipe, seat, &seat->mail[kind], false, arena, diag);
	for (int kind = 0; kind < HD_MAILS && !err; kind++)
		err = hd_pipe_take_pool(pipe, seat, &seat->kept[kind], false, arena, diag);
	return err;
}

/* Seats of a stage in the order of their flat vectors: the one with virtual node 0 is the first. */
void hd_pipe_give_vectors(struct hd_pipe *pipe)
{
	for (uint32_t s = 0; s < pipe->nstages; s++) {
		struct hd_seat *first = hd_cell_of(pipe, s, 0)->seat;     /* NULL: another worker's */
		uint32_t n = 0;
		for (uint32_t b = 0; first && b < first->script.nbuffers; b++)
			first->vector[b] = pipe->vector[n++];
		for (uint32_t i = 0; i < pipe->nseats; i++)
			for (uint32_t b = 0; pipe->seat[i].stage == s && &pipe->seat[i] != first &&
				b < pipe->seat[i].script.nbuffers; b++)
				pipe->seat[i].vector[b] = pipe->vector[n++];
	}
}

static bool all_here(const struct hd_pipe *pipe)
{
	uint32_t n = 0;

	while (n < pipe->nranks && pipe->device_of[n] != HD_NONE)
		n++;
	return n == pipe->nranks;
}

/* What a shadow sums is not part of the stage's sum. */
static bool sums(const struct hd_seat *seat, uint32_t stage) { return seat->stage == stage && !seat->shadow; }

/* The roots of all seats of a stage, joined in place of their left operands as far as both are here. Where
 * all seats are here: to flat vector 0. */
enum hd_err hd_pipe_make_joins(struct hd_pipe *pipe, uint32_t s, const struct hd_layout *layout,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_pipe_stage *stage = &pipe->stage[s];
	uint32_t nroots = 0, n = 0;

	for (uint32_t i = 0; i < pipe->nseats; i++)
		nroots += sums(&pipe->seat[i], s) ? pipe->seat[i].script.nroots : 0;
	struct hd_tnode *root = hd_arena_take(arena, nroots + 1, sizeof *root);
	struct hd_join *join = hd_arena_take(arena, nroots + 1, sizeof *join);
	float **item = stage->item = hd_arena_take(arena, 2 * nroots + 1, sizeof *item);
	stage->root = hd_arena_take(arena, nroots + 1, sizeof *stage->root);
	stage->join = hd_arena_take(arena, nroots + 1, sizeof *stage->join);
	if (!root || !join || !item || !stage->root || !stage->join)
		return no_memory(diag);
	for (uint32_t i = 0; i < pipe->nseats; i++)
		for (uint32_t k = 0; sums(&pipe->seat[i], s) && k < pipe->seat[i].script.nroots; k++) {
			root[n] = pipe->seat[i].script.root[k];
			item[n++] = pipe->seat[i].vector[pipe->seat[i].script.root_buffer[k]];
		}
	enum hd_err err = nroots ? hd_join_some(pipe->nvns, root, nroots, join, nroots, &stage->njoins,
		stage->root, &stage->nroots, diag) : HD_OK;
	for (uint32_t j = 0; j < stage->njoins && !err; j++) {
		item[join[j].dst] = item[join[j].a];
		stage->join[j] = (struct hd_flat_join){ item[join[j].dst], item[join[j].a], item[join[j].b] };
	}
	assert(err || !all_here(pipe) || (stage->nroots == 1 &&
		item[stage->root[0].item] == pipe->vector[0]));
	if (err)
		return err;
	stage->part_join = hd_joins_of_parts(layout, stage->join, stage->njoins, pipe->vector[0], arena);
	return stage->part_join ? HD_OK : no_memory(diag);
}

float *hd_pipe_pool_vector(const struct hd_pipe *pipe, uint32_t i)
{
	return pipe->worker->rank[i % pipe->ndevices].pool->buffer[i / pipe->ndevices];
}

enum hd_err hd_pipe_take(struct hd_pipe *pipe, struct hd_worker *w, struct hd_arena *arena,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t r = 0; r < pipe->ndevices; r++) {
		hd_lock_init(&pipe->box[r].lock);
		hd_cond_init(&pipe->box[r].cond);
	}
	hd_lock_init(&pipe->rows_lock);
	hd_tensor_open(pipe);
	pipe->taken = true;
	pipe->vector = hd_arena_take(arena, pipe->nvectors, sizeof *pipe->vector);
	if (!pipe->vector)
		return no_memory(diag);
	for (uint32_t i = 0; i < pipe->nvectors; i++)
		pipe->vector[i] = hd_pipe_pool_vector(pipe, i + pipe->first_vector);
	for (uint32_t i = 0; i < pipe->nseats && !err; i++)
		err = take_seat(pipe, &pipe->seat[i], w, arena, diag);
	if (!err)
		hd_pipe_give_vectors(pipe);
	err = err ? err : hd_offload_take(pipe, w->spec.spill ? w->spec.spill : "/var/tmp", arena, diag);
	err = err ? err : hd_post_take(pipe, arena, diag);
	err = err ? err : hd_parcel_take(pipe, diag);
	err = err ? err : hd_shadows_take(pipe, arena, diag);
	for (uint32_t s = 0; s < pipe->nstages && !err; s++)
		err = hd_pipe_make_joins(pipe, s, &w->task->layout, arena, diag);
	return err;
}

static void give_seat(const struct hd_pipe *pipe, struct hd_seat *seat, struct hd_worker *w)
{
	for (uint32_t k = 0; k < seat->nmemory; k++) {
		struct hd_device *device = w->rank[seat->device + (k < seat->arena.cap ?
			home_of(pipe, k) : 0)].device;
		device->ops->give(device, seat->memory[k], seat->memory_bytes[k]);
	}
	for (uint32_t j = 0; j < pipe->width; j++) {
		struct hd_device *device = w->rank[seat->device + j].device;
		device->ops->unload(device, part_of(pipe, seat, j));
	}
}

void hd_pipe_give(struct hd_pipe *pipe, struct hd_worker *w)
{
	if (!pipe || !pipe->taken)
		return;
	if (pipe->before) {
		hd_rest_give(pipe, w);
		return;
	}
	hd_post_give(pipe);
	hd_parcel_give(pipe);
	hd_shadows_give(pipe);
	hd_offload_give(pipe);
	for (uint32_t i = 0; i < pipe->nseats; i++)
		give_seat(pipe, &pipe->seat[i], w);
	hd_tensor_close(pipe);
	for (uint32_t r = 0; r < pipe->ndevices; r++) {
		hd_cond_finish(&pipe->box[r].cond);
		hd_lock_finish(&pipe->box[r].lock);
	}
	hd_lock_finish(&pipe->rows_lock);
	pipe->taken = false;
}

/* ---- a step ---- */

static void refill(struct hd_seat *seat, struct hd_mail_pool *pool, uint32_t *next)
{
	for (pool->nfree = 0; pool->nfree < pool->cap; pool->nfree++)
		pool->free[pool->nfree] = seat->memory[(*next)++];
}

/* Also after one that failed anywhere. */
void hd_pipe_clear(struct hd_pipe *pipe)
{
	atomic_store(&pipe->fenced, false);
	hd_tensor_clear(pipe);
	hd_offload_clear(pipe);
	for (size_t i = 0; i < pipe->ncells; i++) {
		struct hd_cell *cell = &pipe->cell[i];
		cell->kept[HD_MAIL_ACT] = cell->kept[HD_MAIL_GRAD] = NULL;
		cell->arena = cell->mail[HD_MAIL_ACT] = cell->mail[HD_MAIL_GRAD] = NULL;
		cell->taken[HD_MAIL_ACT] = cell->taken[HD_MAIL_GRAD] = NULL;
		cell->here[HD_MAIL_ACT] = cell->here[HD_MAIL_GRAD] = false;
		cell->left = cell->ends;
		cell->away = cell->sent = false;
	}
	memset(pipe->shadow_leaf, 0, pipe->nvns * sizeof *pipe->shadow_leaf);
	memset(pipe->shadow_moments, 0, (pipe->nsays - HD_LEAF_FIELDS) * pipe->nvns * pipe->keeps *
		sizeof *pipe->shadow_moments);
	for (uint32_t i = 0; i < pipe->nseats; i++) {
		struct hd_seat *seat = &pipe->seat[i];
		uint32_t next = 0;
		refill(seat, &seat->arena, &next);
		for (int kind = 0; kind < HD_MAILS; kind++) {
			refill(seat, &seat->mail[kind], &next);
			memset(seat->unused[kind], 0, pipe->nranks);
		}
		for (int kind = 0; kind < HD_MAILS; kind++)
			refill(seat, &seat->kept[kind], &next);
	}
	memset(pipe->loaded, 0, pipe->nvns * sizeof *pipe->loaded);
	memset(pipe->ahead_leaf, 0, pipe->nvns * sizeof *pipe->ahead_leaf);
	for (uint32_t v = 0; v < pipe->nvns; v++)
		pipe->left[v] = pipe->readers[v];
}

void hd_pipe_go_on(struct hd_pipe *pipe)
{
	memset(pipe->updated, 0, pipe->ndevices * sizeof *pipe->updated);
	for (uint32_t v = 0; v < pipe->nvns; v++) {
		pipe->worker->step->leaf[v] = pipe->ahead_leaf[v];
		hd_moments_clear(pipe->worker, v);
	}
}

void hd_pipe_begin(struct hd_pipe *pipe)
{
	hd_pipe_clear(pipe);
	hd_pipe_go_on(pipe);
	hd_shadows_begin(pipe);
	hd_post_begin(pipe);
	hd_parcel_begin(pipe);
}

/* The last reader of what was kept is the step. */
void hd_pipe_end(struct hd_pipe *pipe)
{
	for (uint32_t v = 0; v < pipe->nvns && pipe->keeps; v++)
		if (pipe->loaded[v] && pipe->readers[v])
			hd_reading_done(pipe->worker, (uint64_t)pipe->worker->count.step, v);
}
