#include "exec/worker_int.h"

#include <assert.h>

#include "sys/failpoint.h"

/* The interpreter: what a device does in a step is its list and nothing else.
 * Each row says what one instruction does to a rank. Rows with `meets` take part
 * in a barrier of all ranks, so they run even after a failure; the others are
 * skipped then, and the step ends without a change of state. */

static enum hd_err load(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	struct hd_worker *w = rank->worker;
	uint64_t end, nrows = 0;

	while (rank->script.vn[rank->ivn] != ins->vn)
		rank->ivn++;
	assert(rank->ivn < rank->script.nvns_here);
	hd_vn_rows(w->task->job->per_vn, w->step_rows, ins->vn, &rank->first_row, &end);
	rank->rows = end - rank->first_row;
	uint64_t began = hd_recorder_now(w->spec.recorder);
	int64_t began_ns = hd_clock_now_ns(&w->clock);
	enum hd_err err = hd_prefetch_take(w->prefetch, (uint64_t)w->step, ins->vn, rank->field, &nrows, diag);
	uint64_t waited_ns = (uint64_t)(hd_clock_now_ns(&w->clock) - began_ns);
	rank->wait_data_ns += waited_ns;
	hd_recorder_wait(w->spec.recorder, rank->id, began, waited_ns, HD_WAIT_DATA);
	assert(err || nrows == rank->rows);
	return err;
}

/* Moves of the fold script for (virtual node, slice), as addresses. */
static uint32_t moves(struct hd_rank *rank, uint32_t slice, struct hd_fold fold[HD_MAX_FOLDS])
{
	const struct hd_fold_script *s = &rank->script;
	uint32_t at = rank->ivn * s->nslices + slice, n = 0;

	for (uint32_t i = s->first_move[at]; i < s->first_move[at + 1]; i++, n++) {
		const struct hd_move *m = &s->move[i];
		fold[n] = (struct hd_fold){
			.dst = rank->buffer[m->dst],
			.src = m->src == HD_LEAF ? NULL : rank->buffer[m->src],
			.add = m->add,
		};
	}
	return n;
}

void hd_rank_bind(struct hd_rank *rank, uint32_t vn, uint32_t slice, struct hd_bind *bind)
{
	struct hd_worker *w = rank->worker;
	uint64_t first, end;

	hd_task_slice(w->task, w->step_rows, vn, slice, &first, &end);
	for (uint32_t i = 0; i < w->train.graph->ninputs; i++) {
		uint32_t f = w->input_field[i];
		rank->input[i] = (const uint8_t *)rank->field[f] + (first - rank->first_row) * w->task->data->field[f].sample_bytes;
	}
	*bind = (struct hd_bind){
		.rows   = end - first,
		.draw   = { .seed = (uint64_t)hd_job_int(w->task->job, HD_JOB_SEED), .step = (uint64_t)w->step, .vn = vn,
			    .row0 = first - rank->first_row },
		.params = w->params,
		.input  = rank->input,
		.arena  = rank->train_arena,
	};
}

static double read_f64(const struct hd_program *program, const struct hd_bind *bind, uint32_t value)
{
	return value == HD_NONE ? 0 : *(const double *)hd_program_value(program, bind, value);
}

static enum hd_err run(struct hd_rank *rank, enum hd_run_phase phase, const struct hd_bind *bind, struct hd_diag *diag)
{
	uint64_t token = 0;
	enum hd_err err = rank->device->ops->run(rank->device, &rank->worker->train, phase, bind, &token, diag);

	return err ? err : rank->device->ops->wait(rank->device, token, diag);
}

static enum hd_err forward_slice(struct hd_rank *rank, uint32_t vn, uint32_t slice, struct hd_bind *bind, struct hd_diag *diag)
{
	struct hd_worker *w = rank->worker;
	struct hd_leaf *leaf = &w->leaf[vn];

	hd_rank_bind(rank, vn, slice, bind);
	enum hd_err err = run(rank, HD_RUN_F, bind, diag);
	if (err)
		return err;
	leaf->loss    += read_f64(&w->train, bind, w->train_out.loss);
	leaf->weight  += read_f64(&w->train, bind, w->train_out.weight);
	leaf->correct += read_f64(&w->train, bind, w->train_out.correct);
	return HD_OK;
}

/* With several slices the arena holds the activations of one, so F only clears the
 * leaf and B runs F and B slice by slice: the same nodes in the same order. */
static enum hd_err forward(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	struct hd_bind bind;

	rank->worker->leaf[ins->vn] = (struct hd_leaf){ 0 };
	if (rank->rows == 0 || rank->script.nslices > 1)
		return HD_OK;
	return forward_slice(rank, ins->vn, 0, &bind, diag);
}

/* The leaf of an empty virtual node is +0.0 with weight 0; it is never skipped,
 * since adding +0.0 turns -0.0 into +0.0 and skipping would not. */
static enum hd_err fold_zeros(struct hd_rank *rank, uint32_t slice, struct hd_diag *diag)
{
	struct hd_fold fold[HD_MAX_FOLDS];
	const struct hd_device_ops *ops = rank->device->ops;
	struct hd_worker *w = rank->worker;
	uint32_t n = moves(rank, slice, fold);
	uint64_t elems = w->task->layout.elems, token = 0;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < n && !err; i++)
		for (uint64_t at = 0; at < elems && !err; at += HD_ZEROS_ELEMS) {
			uint64_t len = elems - at < HD_ZEROS_ELEMS ? elems - at : HD_ZEROS_ELEMS;
			const float *src = fold[i].src ? fold[i].src + at : w->zeros;
			float *dst = fold[i].dst + at;
			err = fold[i].add ? ops->add(rank->device, dst, dst, src, len, &token)
					  : ops->write(rank->device, dst, src, len * sizeof *dst, &token);
		}
	return err ? err : ops->wait(rank->device, token, diag);
}

static enum hd_err backward_slice(struct hd_rank *rank, uint32_t slice, struct hd_bind *bind, struct hd_diag *diag)
{
	struct hd_fold fold[HD_MAX_FOLDS];

	bind->nfolds = moves(rank, slice, fold);
	bind->fold = fold;
	return run(rank, HD_RUN_B, bind, diag);
}

static enum hd_err backward(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	uint32_t nslices = rank->script.nslices;
	struct hd_bind bind;
	enum hd_err err = HD_OK;

	for (uint32_t q = 0; q < nslices && !err; q++) {
		hd_rank_bind(rank, ins->vn, q, &bind);
		if (bind.rows == 0) {
			err = fold_zeros(rank, q, diag);
			continue;
		}
		if (nslices > 1)
			err = forward_slice(rank, ins->vn, q, &bind, diag);
		if (!err)
			err = backward_slice(rank, q, &bind, diag);
	}
	if (!err)
		hd_prefetch_done(rank->worker->prefetch, (uint64_t)rank->worker->step, ins->vn);
	return err;
}

static enum hd_err reduce(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	(void)ins;
	(void)diag;
	hd_barrier_wait(&rank->worker->barrier);
	if (!hd_rank_idle(rank))
		hd_reduce_chunks(rank);
	return HD_OK;
}

static enum hd_err norm(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	(void)ins;
	(void)diag;
	hd_barrier_wait(&rank->worker->barrier);
	if (!hd_rank_idle(rank))
		hd_scalars_make(rank);
	hd_barrier_wait(&rank->worker->barrier);
	return HD_OK;
}

/* Sealed: NORM has met twice, so every sum of the step is complete on every rank, and no
 * rank begins to write what another one still refuses. */
static enum hd_err update(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	struct hd_worker *w = rank->worker;
	const struct hd_layout *layout = &w->task->layout;
	uint64_t token = 0;
	enum hd_err err = HD_OK;

	(void)ins;
	if (rank->scalars.skip)
		return HD_OK;
	for (uint32_t c = 0; c < layout->nchunks && !err; c++) {
		if (w->plan->owner[c] != rank->id)
			continue;
		uint64_t at = layout->chunk[c].at;
		struct hd_update u = {
			.kind = w->task->optim.kind,
			.param = w->params + at,
			.grad = w->item[w->result] + at,
			.slot = { w->slot[0] ? w->slot[0] + at : NULL, w->slot[1] ? w->slot[1] + at : NULL },
			.len = layout->chunk[c].len,
			.scalars = &rank->scalars,
		};
		err = rank->device->ops->update(rank->device, &u, &token);
	}
	if (!err)
		err = rank->device->ops->wait(rank->device, token, diag);
	int error = HD_FAILPOINT(STEP_UPDATE_AFTER);
	if (!err && error)
		err = hd_fail_errno(diag, error, "finish updating", "the parameters");
	if (err)
		atomic_store(&w->torn, true);
	return err;
}

static const struct {
	enum hd_err (*run)(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag);
	bool meets;
} rows[HD_INS_END] = {
	[HD_INS_LD]   = { load,     false },
	[HD_INS_F]    = { forward,  false },
	[HD_INS_B]    = { backward, false },
	[HD_INS_RED]  = { reduce,   true },
	[HD_INS_NORM] = { norm,     true },
	[HD_INS_STEP] = { update,   false },
};

/* With slices F runs inside B, and once for each: what is said is the order of size. */
static uint64_t touched(const struct hd_rank *rank, const struct hd_ins *ins)
{
	const struct hd_worker *w = rank->worker;
	uint32_t variant = ins->op == HD_INS_F || ins->op == HD_INS_B ? hd_program_variant(&w->train, rank->rows) : HD_NONE;

	return variant == HD_NONE ? 0 : w->touched_bytes[ins->op == HD_INS_F ? HD_RUN_F : HD_RUN_B][variant];
}

void hd_interp_run(struct hd_rank *rank)
{
	struct hd_recorder *recorder = rank->worker->spec.recorder;
	const struct hd_ilist *list = &rank->worker->plan->list[rank->id];

	rank->ivn = 0;
	for (uint32_t i = 0; i < list->len; i++) {
		const struct hd_ins *ins = &list->at[i];
		assert(ins->op < HD_INS_END && rows[ins->op].run);       /* the checker refuses others by name */
		if (hd_rank_idle(rank) && !rows[ins->op].meets)
			continue;
		uint64_t began = hd_recorder_now(recorder);
		enum hd_err err = rows[ins->op].run(rank, ins, &rank->diag);
		if (err)
			hd_rank_fail(rank, err);
		hd_recorder_op(recorder, rank->id, began, ins->op, i, touched(rank, ins));
	}
	if (rank->worker->want_digest && !hd_rank_idle(rank))
		hd_digest_segments(rank);
}
