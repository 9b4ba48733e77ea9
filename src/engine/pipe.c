#include "engine/pipe.h"

#include <assert.h>
#include <string.h>

#include "engine/overlap.h"
#include "engine/post.h"
#include "engine/shadow.h"
#include "engine/worker_int.h"

/* What each instruction of a plan of several stages does to a rank. */

static struct hd_pipe *pipe_of(const struct hd_rank *rank) { return rank->pipe; }

struct hd_ins hd_pipe_turn(struct hd_rank *rank, const struct hd_ins *ins)
{
	const struct hd_work *work = rank->worker->step->work;
	struct hd_ins turn = *ins;

	assert(hd_ins_uses(ins->op, 'v') || !ins->vn);    /* and there is a virtual node */
	rank->ahead = ins->vn >= work->pipe->nvns;
	rank->pipe = rank->ahead ? hd_overlap_next(work->overlap) : work->pipe;
	turn.vn -= rank->ahead ? work->pipe->nvns : 0;
	return turn;
}

/* Between two steps the one to come is that of the counter. */
static bool is_after(const struct hd_rank *rank) { return rank->ahead && rank->worker->step->begun; }

static uint64_t step_of(const struct hd_rank *rank)
{
	return (uint64_t)rank->worker->count.step + is_after(rank);
}

static uint64_t rows_of_step(const struct hd_rank *rank)
{
	return rank->ahead ? hd_sampler_rows(&rank->worker->task->sampler, step_of(rank)) :
		rank->worker->step->rows;
}

static struct hd_cell *cell_of(const struct hd_rank *rank, const struct hd_ins *ins)
{
	return hd_cell_for(pipe_of(rank), ins, ins->stage);
}

static bool is_shadow(const struct hd_rank *rank, const struct hd_ins *ins)
{
	return cell_of(rank, ins)->seat->shadow;
}

/* ---- rows ---- */

/* Under the lock, as what follows. */
static void count_rows(struct hd_rank *rank, uint32_t vn)
{
	struct hd_pipe *pipe = pipe_of(rank);
	struct hd_loaded *loaded = &pipe->rows[vn];
	uint64_t end;

	if (pipe->loaded[vn] != HD_ROWS_NONE)
		return;
	hd_vn_rows(rank->worker->task->job->per_vn, rows_of_step(rank), vn, &loaded->first_row, &end);
	loaded->rows = end - loaded->first_row;
	pipe->loaded[vn] = HD_ROWS_COUNTED;
}

static enum hd_err read_rows(struct hd_rank *rank, uint32_t vn, struct hd_diag *diag)
{
	struct hd_worker *w = rank->worker;
	struct hd_pipe *pipe = pipe_of(rank);
	const int64_t began_ns = hd_clock_now_ns(&w->clock);
	uint64_t nrows = 0;

	if (!pipe->readers[vn] || pipe->loaded[vn] == HD_ROWS_READ)
		return HD_OK;
	enum hd_err err = hd_reading_take(w, step_of(rank), vn, pipe->rows[vn].field, &nrows, diag);
	rank->wait_data_ns += (uint64_t)(hd_clock_now_ns(&w->clock) - began_ns);
	assert(err || nrows == pipe->rows[vn].rows);
	pipe->loaded[vn] = err ? HD_ROWS_COUNTED : HD_ROWS_READ;
	return err;
}

/* How many there are, and if the rank looks at them, the rows. */
static enum hd_err rows_of(struct hd_rank *rank, uint32_t vn, bool reads, struct hd_diag *diag)
{
	struct hd_pipe *pipe = pipe_of(rank);

	hd_lock_take(&pipe->rows_lock);
	count_rows(rank, vn);
	enum hd_err err = reads ? read_rows(rank, vn, diag) : HD_OK;
	hd_lock_give(&pipe->rows_lock);
	return err;
}

static void rows_done(struct hd_rank *rank, uint32_t stage, uint32_t vn)
{
	struct hd_pipe *pipe = pipe_of(rank);

	if (pipe->stage[stage].cut->ndata == 0)
		return;
	hd_lock_take(&pipe->rows_lock);
	assert(pipe->left[vn]);
	bool last = --pipe->left[vn] == 0;
	hd_lock_give(&pipe->rows_lock);
	if (last)
		hd_reading_done(rank->worker, step_of(rank), vn);
}

static enum hd_err load(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	return rows_of(rank, ins->vn, true, diag);
}

/* ---- what a phase runs on ---- */

static const void *input_at(const uint8_t *letter, uint64_t at)
{
	return letter && at != HD_NOT_SENT ? letter + at : NULL;
}

/* What came, or what the rank's other stage has kept. */
static const uint8_t *input_of(const struct hd_rank *rank, const struct hd_ins *ins, enum hd_mail kind)
{
	const struct hd_pipe *pipe = pipe_of(rank);
	const struct hd_cell *cell = cell_of(rank, ins), *other;
	const uint32_t stage = kind == HD_MAIL_ACT ? hd_pipe_before(pipe, ins->stage) :
		hd_pipe_next(pipe, ins->stage);

	if (cell->taken[kind] || !pipe->keeps || stage == HD_NONE)
		return cell->taken[kind];
	other = hd_cell_of(pipe, stage, ins->vn);
	return other->rank == hd_pipe_rank(pipe, rank) ? other->kept[kind] : NULL;
}

static void bind_cell(struct hd_rank *rank, const struct hd_ins *ins, struct hd_bind *bind)
{
	struct hd_worker *w = rank->worker;
	struct hd_pipe *pipe = pipe_of(rank);
	const struct hd_pipe_stage *stage = &pipe->stage[ins->stage];
	const struct hd_cell *cell = cell_of(rank, ins);
	const struct hd_loaded *loaded = &pipe->rows[ins->vn];
	const struct hd_letter *letter[HD_MAILS] = { &stage->act, &stage->grad };
	const void **input = &pipe->input[(size_t)rank->id * HD_MAX_ENDS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < stage->cut->ndata; i++)
		input[n++] = loaded->field[stage->field[i]];
	for (int kind = 0; kind < HD_MAILS; kind++)
		for (uint32_t i = 0; i < letter[kind]->n; i++)
			input[n++] = input_at(input_of(rank, ins, (enum hd_mail)kind), letter[kind]->at[i]);
	*bind = (struct hd_bind){
		.rows = loaded->rows,
		.draw = { .seed = (uint64_t)hd_job_int(w->task->job, HD_JOB_SEED),
			.step = step_of(rank), .vn = ins->vn },
		.input = input,
		.arena = cell->arena,
		.temp = rank->pool->temp,
	};
	if (is_after(rank))
		hd_param_store_bind_after(w->store, bind);
	else
		hd_param_store_bind_step(w->store, bind);
	const struct hd_shadow *shadow = is_shadow(rank, ins) ?
		hd_shadow_of(pipe, hd_pipe_rank(pipe, rank)) : NULL;
	if (shadow && !shadow->far)
		bind->params = hd_param_store_at(shadow->store, HD_VEC_PARAMS, 0, 0);
}

static enum hd_err run(struct hd_rank *rank, const struct hd_ins *ins, enum hd_run_phase phase,
	struct hd_bind *bind, struct hd_diag *diag)
{
	const struct hd_program *program = &pipe_of(rank)->stage[ins->stage].tensor.part[0];
	uint64_t token = 0;

	if (!is_shadow(rank, ins))
		hd_values_watch(rank, ins->stage, pipe_of(rank)->stage[ins->stage].node_of, bind);
	if (hd_tensor_turns(pipe_of(rank)))
		return hd_tensor_run(rank, ins, phase, bind, diag);
	enum hd_err err = rank->device->ops->run(rank->device, program, phase, bind, &token, diag);

	err = err ? err : rank->device->ops->wait(rank->device, token, diag);
	if (!err)
		hd_rank_pace(rank, &pipe_of(rank)->stage[ins->stage].pace, phase, program, bind);
	return err;
}

/* Other ranks may be at the same virtual node: what is not said here is not touched. */
static void add_f64(double *sum, const struct hd_program *program, const struct hd_bind *bind, uint32_t value)
{
	if (value != HD_NONE)
		*sum += *(const double *)hd_program_value(program, bind, value);
}

static void set_f64(double *to, const struct hd_program *program, const struct hd_bind *bind, uint32_t value)
{
	if (value != HD_NONE)
		*to = *(const double *)hd_program_value(program, bind, value);
}

/* Others say something of the same virtual node meanwhile: only what this stage says is written. */
static void read_out_shadow(struct hd_rank *rank, const struct hd_ins *ins, const struct hd_bind *bind)
{
	struct hd_pipe *pipe = pipe_of(rank);
	const struct hd_pipe_stage *stage = &pipe->stage[ins->stage];
	const struct hd_moments *moments = &rank->worker->step->moments;
	struct hd_leaf *leaf = &pipe->shadow_leaf[ins->vn];

	for (uint32_t k = 0; k < HD_LEAF_FIELDS; k++)
		set_f64(&leaf->loss + k, &stage->tensor.whole, bind, hd_readout_field(&stage->out, k));
	for (uint32_t k = 0; k < stage->cut->graph.nrunning; k++) {
		const uint32_t record = stage->cut->running[k];
		memcpy(pipe->shadow_moments + ins->vn * moments->elems + moments->at[record],
			hd_program_value(&stage->tensor.whole, bind, stage->cut->graph.running[k].moments),
			(moments->at[record + 1] - moments->at[record]) * sizeof(double));
	}
}

static void read_out(struct hd_rank *rank, const struct hd_ins *ins, const struct hd_bind *bind)
{
	if (is_shadow(rank, ins)) {
		read_out_shadow(rank, ins, bind);
		return;
	}
	const struct hd_pipe_stage *stage = &pipe_of(rank)->stage[ins->stage];
	struct hd_leaf *leaf = rank->ahead ? &pipe_of(rank)->ahead_leaf[ins->vn] :
		&rank->worker->step->leaf[ins->vn];

	for (uint32_t k = 0; k < HD_LEAF_FIELDS; k++)
		add_f64(&leaf->loss + k, &stage->tensor.whole, bind, hd_readout_field(&stage->out, k));
	for (uint32_t k = 0; k < stage->cut->graph.nrunning; k++)
		if (hd_spread_makes(&pipe_of(rank)->spread, stage->cut_of, stage->group,
			stage->cut->graph.running[k].moments))
			hd_moments_join(rank->worker, ins->vn, stage->cut->running[k], hd_program_value(
				&stage->tensor.whole, bind, stage->cut->graph.running[k].moments));
}

/* ---- mail ---- */

/* What crosses from a cell to its neighbour stage, as one buffer. */
static void write_out(struct hd_rank *rank, const struct hd_ins *ins, enum hd_mail kind, uint8_t *buffer)
{
	const struct hd_pipe *pipe = pipe_of(rank);
	const struct hd_pipe_stage *stage = &pipe->stage[ins->stage];
	const uint32_t to = hd_pipe_to(pipe, ins->stage, kind);
	const struct hd_letter *letter = kind == HD_MAIL_ACT ? &pipe->stage[to].act : &pipe->stage[to].grad;
	const uint32_t *out = kind == HD_MAIL_ACT ? stage->cut->act_out : stage->cut->grad_out;
	struct hd_bind bind;

	bind_cell(rank, ins, &bind);
	for (uint32_t i = 0; i < letter->n && bind.rows; i++)
		if (letter->at[i] != HD_NOT_SENT)
			memcpy(buffer + letter->at[i], hd_program_value(&stage->tensor.whole, &bind, out[i]),
				hd_value_bytes(&stage->cut->graph.value[out[i]], bind.rows));
}

/* As soon as it is made. */
static void keep(struct hd_rank *rank, const struct hd_ins *ins, enum hd_mail kind)
{
	struct hd_cell *cell = cell_of(rank, ins);
	struct hd_mail_pool *pool = &cell->seat->kept[kind];

	if (!(cell->keeps >> kind & 1) || (pipe_of(rank)->before && cell->kept[kind]))
		return;
	assert(pool->nfree && !cell->kept[kind]);
	cell->kept[kind] = pool->free[--pool->nfree];
	write_out(rank, ins, kind, cell->kept[kind]);
}

static uint64_t cell_bytes(const struct hd_pipe *pipe, uint32_t stage, enum hd_mail kind)
{
	return kind == HD_MAIL_ACT ? pipe->stage[stage].act.bytes : pipe->stage[stage].grad.bytes;
}

/* Copies what crosses into a buffer of the cell that reads it. */
static enum hd_err deliver(struct hd_rank *rank, const struct hd_ins *ins, enum hd_mail kind)
{
	struct hd_pipe *pipe = pipe_of(rank);
	const uint32_t to = hd_pipe_to(pipe, ins->stage, kind);
	const struct hd_cell *made = hd_cell_of(pipe, ins->stage, ins->vn);
	struct hd_cell *cell = hd_cell_for(pipe, ins, to);

	uint8_t *buffer = cell->seat ? hd_mail_place(pipe, cell, kind, hd_pipe_rank(pipe, rank)) :
		hd_post_place(pipe, cell, kind);
	rank->undone = !buffer;           /* fenced: the rank that failed has said why */
	if (!buffer)
		return HD_OK;
	if (made->kept[kind])
		memcpy(buffer, made->kept[kind], cell_bytes(pipe, to, kind));
	else
		write_out(rank, ins, kind, buffer);
	if (cell->seat)
		hd_mail_put(pipe, cell, kind);
	else
		hd_post_put(pipe, cell, kind, ins->vn, buffer);
	return HD_OK;
}

/* What the cell read is used, what it made goes on: to a neighbour stage of the same rank no transfer stands
 * in the list. */
static enum hd_err pass_on(struct hd_rank *rank, const struct hd_ins *ins, enum hd_mail kind)
{
	struct hd_pipe *pipe = pipe_of(rank);
	const uint32_t to = hd_pipe_to(pipe, ins->stage, kind);

	hd_mail_used(pipe, cell_of(rank, ins), kind);
	keep(rank, ins, kind);
	if (to == HD_NONE || is_shadow(rank, ins) || pipe->before ||
		hd_cell_of(pipe, to, ins->vn)->rank != hd_pipe_rank(pipe, rank))
		return HD_OK;
	return deliver(rank, ins, kind);
}

static bool sends_by_list(const struct hd_rank *rank, const struct hd_ins *ins)
{
	const struct hd_pipe *pipe = pipe_of(rank);
	const uint32_t to = hd_pipe_next(pipe, ins->stage);

	return to != HD_NONE && hd_cell_of(pipe, to, ins->vn)->rank != hd_pipe_rank(pipe, rank);
}

static void take_arena(struct hd_cell *cell)
{
	struct hd_mail_pool *pool = &cell->seat->arena;

	assert(pool->nfree && !cell->arena);
	cell->arena = pool->free[--pool->nfree];
}

static void give_arena(struct hd_cell *cell)
{
	struct hd_mail_pool *pool = &cell->seat->arena;

	assert(cell->arena && pool->nfree < pool->cap);
	pool->free[pool->nfree++] = cell->arena;
	cell->arena = NULL;
}

/* The last reader of what the cell holds is done. */
static void end_of(struct hd_rank *rank, const struct hd_ins *ins)
{
	struct hd_cell *cell = cell_of(rank, ins);

	assert(cell->left);
	if (--cell->left)
		return;
	give_arena(cell);
	for (int kind = 0; kind < HD_MAILS; kind++)
		hd_mail_give(pipe_of(rank), cell, (enum hd_mail)kind);
	/* after a loss a virtual node may have been run before */
	if (!is_shadow(rank, ins) && !pipe_of(rank)->before)
		rows_done(rank, ins->stage, ins->vn);
}

static enum hd_err send_act(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	struct hd_cell *cell = cell_of(rank, ins);
	enum hd_err err = deliver(rank, ins, HD_MAIL_ACT);

	(void)diag;
	if (rank->undone)
		return err;
	if (cell->light && !cell->sent)
		give_arena(cell);
	cell->sent = true;
	return err;
}

static enum hd_err send_grad(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	enum hd_err err = deliver(rank, ins, HD_MAIL_GRAD);

	(void)diag;
	if (!(ins->flags & HD_INS_SHADOW) && !rank->undone)       /* a copy, of what is kept */
		end_of(rank, ins);
	return err;
}

/* ---- between the stages of a rank that runs two since a loss (rest.h) */

/* What is handed over is read where it is kept. */
static enum hd_err hand_act(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	struct hd_cell *cell = cell_of(rank, ins);

	(void)diag;
	if (!cell->kept[HD_MAIL_ACT])     /* its shadow has computed it */
		keep(rank, ins, HD_MAIL_ACT);
	if (cell->light && cell->arena)
		give_arena(cell);
	return HD_OK;
}

static enum hd_err hand_grad(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	(void)diag;
	assert(cell_of(rank, ins)->kept[HD_MAIL_GRAD]);
	return HD_OK;
}

static enum hd_err send_again(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	(void)diag;
	assert(cell_of(rank, ins)->kept[HD_MAIL_GRAD]);
	return deliver(rank, ins, HD_MAIL_GRAD);
}

static enum hd_err take_act(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	(void)diag;
	rank->undone = !hd_mail_wait(pipe_of(rank), cell_of(rank, ins), HD_MAIL_ACT);
	return HD_OK;
}

static enum hd_err take_grad(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	(void)diag;
	rank->undone = !hd_mail_wait(pipe_of(rank), cell_of(rank, ins), HD_MAIL_GRAD);
	return HD_OK;
}

/* ---- compute ---- */

static enum hd_err forward(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	struct hd_cell *cell = cell_of(rank, ins);
	struct hd_bind bind;
	enum hd_err err = rows_of(rank, ins->vn, pipe_of(rank)->stage[ins->stage].cut->ndata, diag);

	if (err)
		return err;
	take_arena(cell);
	cell->light = ins->flags & HD_INS_CHECKPOINT;
	bind_cell(rank, ins, &bind);
	err = bind.rows ? run(rank, ins, HD_RUN_F, &bind, diag) : HD_OK;
	if (err)
		return err;
	if (bind.rows)
		read_out(rank, ins, &bind);
	if (pipe_of(rank)->watch)
		pipe_of(rank)->watch(rank, ins, &bind);
	err = pass_on(rank, ins, HD_MAIL_ACT);
	if (cell->light && !sends_by_list(rank, ins))
		give_arena(cell);
	return err;
}

/* What it says besides was read the first time. */
static enum hd_err recompute(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	struct hd_cell *cell = cell_of(rank, ins);
	struct hd_bind bind;

	/* after a loss there may be nothing to send that would have given it back */
	if (!cell->arena)
		take_arena(cell);
	bind_cell(rank, ins, &bind);
	return bind.rows ? run(rank, ins, HD_RUN_F, &bind, diag) : HD_OK;
}

/* Nothing runs on the rank's devices meanwhile: its instructions are done when they end. */
static enum hd_err move_out(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	struct hd_cell *cell = cell_of(rank, ins);
	struct hd_bind bind;

	bind_cell(rank, ins, &bind);
	enum hd_err err = hd_offload_out(pipe_of(rank), cell, ins->stage, bind.rows, diag);
	give_arena(cell);
	cell->away = true;
	return err;
}

static enum hd_err move_back(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	struct hd_cell *cell = cell_of(rank, ins);
	struct hd_bind bind;

	take_arena(cell);
	bind_cell(rank, ins, &bind);
	enum hd_err err = hd_offload_back(pipe_of(rank), cell, ins->stage, bind.rows, diag);
	cell->away = false;
	return err;
}

static uint32_t moves_of(const struct hd_cell *cell, struct hd_fold fold[HD_MAX_FOLDS])
{
	const struct hd_fold_script *s = &cell->seat->script;
	uint32_t n = 0;

	for (uint32_t i = s->first_move[cell->leaf]; i < s->first_move[cell->leaf + 1]; i++)
		fold[n++] = (struct hd_fold){ .dst = cell->seat->vector[s->move[i].dst],
			.src = s->move[i].src == HD_LEAF ? NULL : cell->seat->vector[s->move[i].src],
			.add = s->move[i].add };
	return n;
}

/* The leaf of an empty virtual node is +0.0, for what the stage learns. */
static enum hd_err fold_zeros(struct hd_rank *rank, const struct hd_ins *ins, const struct hd_fold *fold,
	uint32_t n, struct hd_diag *diag)
{
	const struct hd_pipe_stage *stage = &pipe_of(rank)->stage[ins->stage];
	enum hd_err err = HD_OK;

	for (uint32_t k = 0; k < stage->nruns && !err; k++)
		err = hd_rank_fold_zeros(rank, fold, n, stage->run[k].at, stage->run[k].len, diag);
	return err;
}

static enum hd_err back(struct hd_rank *rank, const struct hd_ins *ins, enum hd_run_phase phase,
	struct hd_diag *diag)
{
	struct hd_fold fold[HD_MAX_FOLDS];
	struct hd_bind bind;
	enum hd_err err = HD_OK;

	bind_cell(rank, ins, &bind);
	if (phase != HD_RUN_I) {          /* I folds nothing, no zeros either */
		bind.nfolds = moves_of(cell_of(rank, ins), fold);
		bind.fold = fold;
	}
	if (bind.rows)
		err = run(rank, ins, phase, &bind, diag);
	else
		err = fold_zeros(rank, ins, fold, bind.nfolds, diag);
	if (err)
		return err;
	return phase == HD_RUN_W ? HD_OK : pass_on(rank, ins, HD_MAIL_GRAD);
}

static enum hd_err backward(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	enum hd_err err = back(rank, ins, HD_RUN_B, diag);

	if (!err)
		end_of(rank, ins);
	return err;
}

static enum hd_err backward_input(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	return back(rank, ins, HD_RUN_I, diag);
}

static enum hd_err backward_weights(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	enum hd_err err = back(rank, ins, HD_RUN_W, diag);

	if (!err)
		end_of(rank, ins);
	return err;
}

/* ---- the other devices of a rank (tensor.h) ---- */

static enum hd_err follow(struct hd_rank *rank, const struct hd_ins *ins, enum hd_run_phase phase,
	struct hd_diag *diag)
{
	const struct hd_worker *w = rank->worker;
	uint64_t first, end;

	hd_vn_rows(w->task->job->per_vn, rows_of_step(rank), ins->vn, &first, &end);
	return end > first ? hd_tensor_follow(rank, ins->stage, phase, diag) : HD_OK;
}

static enum hd_err follow_forward(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	return follow(rank, ins, HD_RUN_F, diag);
}

static enum hd_err follow_backward(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	return follow(rank, ins, HD_RUN_B, diag);
}

static enum hd_err follow_input(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	return follow(rank, ins, HD_RUN_I, diag);
}

static enum hd_err follow_weights(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	return follow(rank, ins, HD_RUN_W, diag);
}

/* ---- the end of a step ---- */

/* Versions of flush updates are one, sums are made at NORM, where all ranks meet. */
static enum hd_err nothing(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	(void)rank;
	(void)ins;
	(void)diag;
	return HD_OK;
}

static enum hd_err norm(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	(void)ins;
	(void)diag;
	hd_ranks_meet(rank->worker);
	if (!hd_rank_idle(rank) && rank->worker->step->section == HD_SECTION_ALL) {
		hd_moments_fold(rank);
		hd_pipe_reduce(rank);
	}
	hd_ranks_meet(rank->worker);
	if (pipe_of(rank)->nshadows) {            /* before anybody seals the step */
		if (!hd_rank_idle(rank))
			hd_shadow_summed(rank);
		hd_ranks_meet(rank->worker);
	}
	if (!hd_rank_idle(rank))
		hd_scalars_make(rank);
	hd_eager_settle(rank);
	hd_ranks_meet(rank->worker);
	return HD_OK;
}

static enum hd_err take(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	(void)ins;
	(void)diag;
	hd_shadow_take(rank);
	return HD_OK;
}

/* A rank updates the chunks that it owns, of any stage, once. */
static enum hd_err update(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	bool *updated = &pipe_of(rank)->updated[rank->id];

	if (ins->flags & HD_INS_SHADOW)
		return hd_shadow_update(rank, diag);
	if (ins->flags & HD_INS_EAGER)
		return hd_eager_step(rank, diag);
	if (*updated)
		return HD_OK;
	*updated = true;
	return hd_update_chunks(rank, diag);
}

static uint32_t stage_of(const struct hd_pipe *pipe, uint32_t isegment)
{
	return pipe->spread.of_grad[pipe->worker->task->layout.segment[isegment].param];
}

uint32_t hd_pipe_run(const struct hd_pipe *pipe, uint32_t first, uint32_t last, uint32_t *stage)
{
	uint32_t end = first + 1;

	*stage = stage_of(pipe, first);
	while (end < last && stage_of(pipe, end) == *stage)
		end++;
	return end;
}

static enum hd_err reduce_run(struct hd_rank *rank, uint32_t first, uint32_t end, uint32_t istage,
	uint64_t *token)
{
	struct hd_worker *w = rank->worker;
	const struct hd_pipe_stage *stage = &pipe_of(rank)->stage[istage];
	const bool whole = w->step->work->whole;
	const struct hd_reduction reduction = {
		.join = stage->join, .njoins = stage->njoins, .flat = hd_worker_sum(w),
		.segment = w->task->layout.segment + first, .nsegments = end - first,
		.partial = whole ? w->stage->segment_sumsq + first : NULL,
	};

	return whole || stage->njoins ? rank->device->ops->reduce(rank->device, &reduction, token,
		&rank->diag) :
		HD_OK;
}

void hd_pipe_reduce(struct hd_rank *rank)
{
	struct hd_chunk owned;
	uint64_t token = 0;
	uint32_t next = 0, end, stage;
	enum hd_err err = HD_OK;

	while (hd_rank_owned(rank, &next, &owned)) {
		const uint32_t last = owned.first_segment + owned.nsegments;
		for (uint32_t i = owned.first_segment; i < last && !err; i = end) {
			end = hd_pipe_run(pipe_of(rank), i, last, &stage);
			err = reduce_run(rank, i, end, stage, &token);
		}
		err = err ? err : hd_reduce_parts(rank, &owned, &token);
	}
	err = err ? err : rank->device->ops->wait(rank->device, token, &rank->diag);
	if (err)
		hd_rank_fail(rank, err);
}

const struct hd_ins_runner hd_pipe_runners[HD_INS_END] = {
	[HD_INS_LD]   = { load,             false, HD_SECTION_COMPUTE },
	[HD_INS_F]    = { forward,          false, HD_SECTION_COMPUTE },
	[HD_INS_B]    = { backward,         false, HD_SECTION_COMPUTE },
	[HD_INS_I]    = { backward_input,   false, HD_SECTION_COMPUTE },
	[HD_INS_W]    = { backward_weights, false, HD_SECTION_COMPUTE },
	[HD_INS_R]    = { recompute,        false, HD_SECTION_COMPUTE },
	[HD_INS_OFF]  = { move_out,         false, HD_SECTION_COMPUTE },
	[HD_INS_ON]   = { move_back,        false, HD_SECTION_COMPUTE },
	[HD_INS_SA]   = { send_act,         false, HD_SECTION_COMPUTE },
	[HD_INS_SG]   = { send_grad,        false, HD_SECTION_COMPUTE },
	[HD_INS_RA]   = { take_act,         false, HD_SECTION_COMPUTE },
	[HD_INS_RG]   = { take_grad,        false, HD_SECTION_COMPUTE },
	[HD_INS_RED]  = { nothing,          false, HD_SECTION_COMPUTE },
	[HD_INS_PIN]  = { nothing,          false, HD_SECTION_COMPUTE },
	[HD_INS_REL]  = { nothing,          false, HD_SECTION_COMPUTE },
	[HD_INS_HA]   = { hand_act,         false, HD_SECTION_COMPUTE },
	[HD_INS_HG]   = { hand_grad,        false, HD_SECTION_COMPUTE },
	[HD_INS_RSG]  = { send_again,       false, HD_SECTION_COMPUTE },
	[HD_INS_SHIP] = { nothing,          false, HD_SECTION_COMPUTE },
	[HD_INS_TAKE] = { take,             false, HD_SECTION_FINISH },
	[HD_INS_NORM] = { norm,             true,  HD_SECTION_FINISH },
	[HD_INS_STEP] = { update,           true,  HD_SECTION_FINISH },
};

/* Rows, mail and what a virtual node says are the lead's. */
static const struct hd_ins_runner follow_runners[HD_INS_END] = {
	[HD_INS_LD]   = { nothing,         false, HD_SECTION_COMPUTE },
	[HD_INS_F]    = { follow_forward,  false, HD_SECTION_COMPUTE },
	[HD_INS_B]    = { follow_backward, false, HD_SECTION_COMPUTE },
	[HD_INS_I]    = { follow_input,    false, HD_SECTION_COMPUTE },
	[HD_INS_W]    = { follow_weights,  false, HD_SECTION_COMPUTE },
	[HD_INS_R]    = { follow_forward,  false, HD_SECTION_COMPUTE },
	[HD_INS_OFF]  = { nothing,         false, HD_SECTION_COMPUTE },
	[HD_INS_ON]   = { nothing,         false, HD_SECTION_COMPUTE },
	[HD_INS_SA]   = { nothing,         false, HD_SECTION_COMPUTE },
	[HD_INS_SG]   = { nothing,         false, HD_SECTION_COMPUTE },
	[HD_INS_RA]   = { nothing,         false, HD_SECTION_COMPUTE },
	[HD_INS_RG]   = { nothing,         false, HD_SECTION_COMPUTE },
	[HD_INS_RED]  = { nothing,         false, HD_SECTION_COMPUTE },
	[HD_INS_PIN]  = { nothing,         false, HD_SECTION_COMPUTE },
	[HD_INS_REL]  = { nothing,         false, HD_SECTION_COMPUTE },
	[HD_INS_NORM] = { norm,            true,  HD_SECTION_FINISH },
	[HD_INS_STEP] = { update,          true,  HD_SECTION_FINISH },
};

const struct hd_ins_runner *hd_pipe_runners_of(const struct hd_pipe *pipe, const struct hd_rank *rank)
{
	return hd_tensor_member(pipe, rank) ? follow_runners : hd_pipe_runners;
}
