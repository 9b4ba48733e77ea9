#include "engine/worker_int.h"

#include <assert.h>
#include <string.h>

#include "sys/failpoint.h"
#include "engine/fore.h"
#include "engine/meeting.h"
#include "engine/onset.h"
#include "engine/overlap.h"
#include "engine/stamps.h"

/* The interpreter: what a device does in a step is its list and nothing else. Where several workers share
 * a step it runs in two sections, with their exchange between them.
 * Each row says what one instruction does to a rank. Rows with `meets` take part
 * in a barrier of all ranks, so they run even after a failure; the others are
 * skipped then, and the step ends without a change of state. */

/* The wave begins with its first LD: neighbours of the list's order that carry the same number. */
static void begin_wave(struct hd_rank *rank, uint32_t vn)
{
	const struct hd_fold_script *s = &rank->work->script;

	while (s->vn[rank->first_ivn] != vn)
		rank->first_ivn++;
	rank->nloaded = rank->nforward = rank->nback = 0;
	if (hd_lockstep_needed(&rank->worker->stage->lockstep)) {
		rank->nwave = s->nvns_here;
		return;
	}
	for (rank->nwave = 1; rank->first_ivn + rank->nwave < s->nvns_here; rank->nwave++)
		if (rank->work->wave[rank->first_ivn + rank->nwave] != rank->work->wave[rank->first_ivn])
			break;
}

/* One look at a clock is the recorder's and the counts': ns, both. */
static uint64_t now_of(const struct hd_rank *rank)
{
	struct hd_recorder *recorder = rank->worker->spec.recorder;

	return recorder ? hd_recorder_now_of(recorder, rank->id) :
		(uint64_t)hd_clock_now_ns(&rank->worker->clock);
}

enum hd_err hd_rank_load(struct hd_rank *rank, uint32_t vn, struct hd_loaded *loaded)
{
	struct hd_worker *w = rank->worker;
	const uint64_t step = hd_rank_step(rank);
	uint64_t end, nrows = 0;

	if (hd_onset_rows(w, step, vn, loaded))
		return HD_OK;
	hd_vn_rows(w->task->job->per_vn, hd_rank_rows(rank), vn, &loaded->first_row, &end);
	loaded->rows = end - loaded->first_row;
	const uint64_t began = now_of(rank);
	enum hd_err err = hd_reading_take(w, step, vn, loaded->field, &nrows, &rank->diag);
	const uint64_t ended = now_of(rank);
	rank->wait_data_ns += ended - began;
	hd_recorder_waited(w->spec.recorder, rank->id, began, ended, HD_WAIT_DATA);
	assert(err || nrows == loaded->rows);
	return err;
}

static enum hd_err load(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	if (rank->nwave == 0)
		begin_wave(rank, ins->vn);
	assert(rank->nloaded < rank->nwave && rank->work->script.vn[rank->first_ivn + rank->nloaded] ==
		ins->vn);
	(void)diag;                       /* that of the rank */
	return hd_rank_load(rank, ins->vn, &rank->work->loaded[rank->nloaded++]);
}

uint32_t hd_rank_moves(struct hd_rank *rank, uint32_t ipart, uint32_t slice,
	struct hd_fold fold[HD_MAX_FOLDS])
{
	const struct hd_fold_script *s = &rank->work->script;
	uint32_t at = (rank->first_ivn + ipart) * s->nslices + slice, n = 0;
	float *const *buffer = hd_fore_buffer(rank);

	for (uint32_t i = s->first_move[at]; i < s->first_move[at + 1]; i++, n++) {
		const struct hd_move *m = &s->move[i];
		bool leaf = m->src == HD_LEAF, whole = leaf || m->src < s->nbuffers;
		fold[n] = (struct hd_fold){
			.dst = m->dst < s->nbuffers ? buffer[m->dst] : NULL,
			.dst_temp = m->dst < s->nbuffers ? 0 : (uint8_t)(m->dst - s->nbuffers + 1),
			.src = leaf || !whole ? NULL : buffer[m->src],
			.src_temp = whole ? 0 : (uint8_t)(m->src - s->nbuffers + 1),
			.add = m->add,
		};
	}
	return n;
}

void hd_rank_bind(struct hd_rank *rank, uint32_t ipart, uint32_t vn, uint32_t slice, struct hd_bind *bind)
{
	struct hd_worker *w = rank->worker;
	const struct hd_loaded *loaded = &rank->work->loaded[ipart];
	uint64_t first, end;

	hd_task_slice(w->task, hd_rank_rows(rank), vn, slice, &first, &end);
	for (uint32_t i = 0; i < w->stage->train.graph->ninputs; i++) {
		uint32_t f = w->stage->input_field[i];
		rank->input[i] = (const uint8_t *)loaded->field[f] + (first - loaded->first_row) *
			w->task->data->field[f].sample_bytes;
	}
	*bind = (struct hd_bind){
		.rows   = end - first,
		.draw   = { .seed = (uint64_t)hd_job_int(w->task->job, HD_JOB_SEED),
		.step = hd_rank_step(rank), .vn = vn,
			    .row0 = first - loaded->first_row },
		.input  = rank->input,
		.arena  = rank->activations,
		.temp   = rank->pool->temp,
	};
	if (hd_stamps_bound(w->task->job))
		hd_param_store_bind_back(w->store, hd_stamps_pinned(rank, vn), bind);
	else
		hd_param_store_bind_step(w->store, bind);
}

static double read_f64(const struct hd_program *program, const struct hd_bind *bind, uint32_t value,
	uint32_t ipart)
{
	return value == HD_NONE ? 0 : *(const double *)hd_program_part(program, bind, value, ipart);
}

void hd_rank_read_out(struct hd_rank *rank, const struct hd_bind *bind, uint32_t vn, uint32_t ipart)
{
	struct hd_worker *w = rank->worker;
	struct hd_leaf *leaf = hd_fore_leaf(rank, vn);

	for (uint32_t k = 0; k < HD_LEAF_FIELDS; k++)
		*(&leaf->loss + k) += read_f64(&w->stage->train, bind,
			hd_readout_field(&w->stage->train_out, k), ipart);
	hd_moments_take(rank, vn, ipart, bind);
}

static enum hd_err run(struct hd_rank *rank, enum hd_run_phase phase, struct hd_bind *bind,
	struct hd_diag *diag)
{
	uint64_t token = 0;

	hd_values_watch(rank, 0, NULL, bind);
	enum hd_err err = rank->device->ops->run(rank->device, &rank->worker->stage->train, phase, bind,
		&token,
		diag);

	err = err ? err : rank->device->ops->wait(rank->device, token, diag);
	if (err)
		return err;
	if (bind->from && rank->worker->spec.pace_ns) {
		const struct hd_program *train = &rank->worker->stage->train;
		struct hd_bind rest = *bind;
		rest.to = train->norder[phase];
		hd_rank_pace_nodes(rank, rank->worker->spec.pace_ns, train, phase, &rest);
	} else {
		hd_rank_pace(rank, &rank->worker->stage->pace, phase, &rank->worker->stage->train, bind);
	}
	return HD_OK;
}

/* All that the wave at hand has loaded, as parts of one run. */
void hd_rank_bind_wave(struct hd_rank *rank, struct hd_part part[HD_MAX_WAVE], struct hd_bind *bind)
{
	hd_rank_bind(rank, 0, rank->work->script.vn[rank->first_ivn], 0, bind);
	for (uint32_t i = 0; i < rank->nwave; i++)
		part[i] = (struct hd_part){ .rows = rank->work->loaded[i].rows,
			.vn = rank->work->script.vn[rank->first_ivn + i], .fold = rank->fold[i] };
	bind->part = part;
	bind->nparts = rank->nwave;
}

/* The first F of a wave to the last but one only count: the last one runs all. With several
 * slices the arena holds the activations of one, so F only clears the leaf and B runs F and B slice
 * by slice: the same nodes in the same order. */
static enum hd_err forward(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	struct hd_part part[HD_MAX_WAVE];
	struct hd_bind bind;

	rank->worker->step->leaf[ins->vn] = (struct hd_leaf){ 0 };
	hd_moments_clear(rank->worker, ins->vn);
	if (++rank->nforward < rank->nwave || rank->work->script.nslices > 1)
		return HD_OK;
	hd_rank_bind_wave(rank, part, &bind);
	bind.from = hd_onset_done(rank);
	enum hd_err err = run(rank, HD_RUN_F, &bind, diag);
	for (uint32_t i = 0; i < rank->nwave && !err; i++)
		if (part[i].rows)
			hd_rank_read_out(rank, &bind, part[i].vn, i);
	return err;
}

/* It is never skipped, since adding +0.0 turns -0.0 into +0.0 and skipping would not. */
enum hd_err hd_rank_fold_zeros(struct hd_rank *rank, const struct hd_fold *fold, uint32_t n, uint64_t at,
	uint64_t len, struct hd_diag *diag)
{
	const struct hd_device_ops *ops = rank->device->ops;
	const uint64_t end = at + len;
	uint64_t token = 0;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < n && !err; i++)
		for (uint64_t k = at; k < end && !err; k += HD_ZEROS_ELEMS) {
			uint64_t elems = end - k < HD_ZEROS_ELEMS ? end - k : HD_ZEROS_ELEMS;
			const float *src = fold[i].src ? fold[i].src + k : rank->worker->stage->zeros;
			float *dst = fold[i].dst + k;
			err = fold[i].add ? ops->add(rank->device, dst, dst, src, elems, &token, diag)
					  : ops->write(rank->device, dst, src, elems * sizeof *dst, &token);
		}
	return err ? err : ops->wait(rank->device, token, diag);
}

static enum hd_err fold_zeros(struct hd_rank *rank, uint32_t slice, struct hd_diag *diag)
{
	struct hd_fold fold[HD_MAX_FOLDS];
	uint32_t n = hd_rank_moves(rank, 0, slice, fold);

	return hd_rank_fold_zeros(rank, fold, n, 0, rank->worker->task->layout.grad_elems, diag);
}

/* The rank's last leaf: what is folded now is final. */
static void watch_folds(struct hd_rank *rank, bool last, struct hd_bind *bind)
{
	if (rank->worker->step->early && last &&
		rank->first_ivn + rank->nwave == rank->work->script.nvns_here) {
		bind->folded = hd_final_folded;
		bind->folded_user = rank;
	}
}

static enum hd_err backward_slice(struct hd_rank *rank, uint32_t vn, uint32_t slice, struct hd_diag *diag)
{
	struct hd_bind bind;

	hd_rank_bind(rank, 0, vn, slice, &bind);
	if (bind.rows == 0)
		return fold_zeros(rank, slice, diag);
	enum hd_err err = run(rank, HD_RUN_F, &bind, diag);
	if (err)
		return err;
	hd_rank_read_out(rank, &bind, vn, 0);
	bind.nfolds = hd_rank_moves(rank, 0, slice, rank->fold[0]);
	bind.fold = rank->fold[0];
	watch_folds(rank, slice + 1 == rank->work->script.nslices, &bind);
	return run(rank, HD_RUN_B, &bind, diag);
}

static enum hd_err backward_wave(struct hd_rank *rank, struct hd_diag *diag)
{
	struct hd_part part[HD_MAX_WAVE];
	struct hd_bind bind;

	hd_rank_bind_wave(rank, part, &bind);
	for (uint32_t i = 0; i < rank->nwave; i++)
		part[i].nfolds = hd_rank_moves(rank, i, 0, rank->fold[i]);
	watch_folds(rank, true, &bind);
	return run(rank, HD_RUN_B, &bind, diag);
}

static enum hd_err backward(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	struct hd_worker *w = rank->worker;
	enum hd_err err = HD_OK;

	if (++rank->nback < rank->nwave)
		return HD_OK;
	if (rank->work->script.nslices == 1)
		err = backward_wave(rank, diag);
	for (uint32_t q = 0; q < rank->work->script.nslices && rank->work->script.nslices > 1 && !err; q++)
		err = backward_slice(rank, ins->vn, q, diag);
	for (uint32_t i = 0; i < rank->nwave && !err; i++)
		hd_reading_done(w, (uint64_t)w->count.step, rank->work->script.vn[rank->first_ivn + i]);
	rank->nwave = 0;
	return err;
}

static enum hd_err forward_all(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	(void)ins;
	return hd_lockstep_run(rank, HD_RUN_F, diag);
}

static enum hd_err backward_all(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	(void)ins;
	return hd_lockstep_run(rank, HD_RUN_B, diag);
}

static enum hd_err reduce(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	(void)ins;
	(void)diag;
	hd_ranks_meet(rank->worker);
	if (!hd_rank_idle(rank) && rank->worker->step->section == HD_SECTION_ALL)
		hd_moments_fold(rank);
	if (!hd_rank_idle(rank))
		hd_reduce_chunks(rank);
	return HD_OK;
}

static enum hd_err norm(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	(void)ins;
	(void)diag;
	hd_ranks_meet(rank->worker);
	if (!hd_rank_idle(rank))
		hd_scalars_make(rank);
	hd_ranks_meet(rank->worker);
	return HD_OK;
}

static enum hd_err update(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag)
{
	(void)ins;
	return hd_update_chunks(rank, diag);
}

static const struct hd_ins_runner whole_runners[HD_INS_END] = {
	[HD_INS_LD]   = { load,     false, HD_SECTION_COMPUTE },
	[HD_INS_F]    = { forward,  false, HD_SECTION_COMPUTE },
	[HD_INS_B]    = { backward, false, HD_SECTION_COMPUTE },
	[HD_INS_FL]   = { forward_all,  true, HD_SECTION_COMPUTE },
	[HD_INS_BL]   = { backward_all, true, HD_SECTION_COMPUTE },
	[HD_INS_RED]  = { reduce,   true, HD_SECTION_COMPUTE },
	[HD_INS_NORM] = { norm,     true, HD_SECTION_FINISH },
	[HD_INS_STEP] = { update,   true, HD_SECTION_FINISH },
};

/* With slices F runs inside B, and once for each: what is said is the order of size. */
static uint64_t touched(const struct hd_rank *rank, const struct hd_ins *ins)
{
	const struct hd_worker *w = rank->worker;
	uint32_t variant = !rank->work->loaded || w->step->work->pipe ? HD_NONE : ins->op == HD_INS_F ||
		ins->op == HD_INS_B ? hd_program_variant(&w->stage->train,
		rank->work->loaded[0].rows) : HD_NONE;

	return variant == HD_NONE ? 0 : w->stage->touched_bytes[ins->op == HD_INS_F ? HD_RUN_F :
		HD_RUN_B][variant];
}

/* What instructions without a stage took counts at stage 0. STEP! is a part of the STEP that follows it. Of
 * rank 0 others may look at the pulse. */
static void count(struct hd_rank *rank, const struct hd_ins *ins, uint64_t took_ns, uint64_t processor_ns,
	uint64_t waited_ns)
{
	struct hd_worker *w = rank->worker;
	const bool staged = w->step->work->pipe && hd_ins_uses(ins->op, 's');
	struct hd_spent *spent = &rank->work->spent[hd_spent_index(staged ? ins->stage : 0, ins->op)];

	spent->n += !(ins->flags & HD_INS_EAGER) && !rank->undone;
	spent->ns += took_ns;
	spent->processor_ns += processor_ns;
	if (ins->op == HD_INS_RA || ins->op == HD_INS_RG)         /* all that they do is wait */
		rank->stalled_ns += took_ns;
	else if (hd_ins_redundant(ins))
		rank->redundant_ns += took_ns;
	if (rank->id)
		return;
	w->step->record.ins_ns[ins->op] += took_ns;
	atomic_fetch_add_explicit(&w->progress, 1, memory_order_relaxed);
	/* a worker that waits for others does not hang; what it waited another clock says (now_of()) */
	const uint64_t own_ns = took_ns > waited_ns ? took_ns - waited_ns : 0;
	if (own_ns > atomic_load_explicit(&w->longest_ns, memory_order_relaxed))
		atomic_store_explicit(&w->longest_ns, own_ns, memory_order_relaxed);
}

/* For other workers, by the one rank that does. */
static uint64_t waited(const struct hd_rank *rank) { return rank->id ? 0 : rank->worker->meeting->waited_ns; }

static const struct hd_ins_runner *rows_of(const struct hd_rank *rank)
{
	const struct hd_pipe *pipe = rank->worker->step->work->pipe;

	return pipe ? hd_pipe_runners_of(pipe, rank) : whole_runners;
}

/* STEP! is a part of the pass that computes. */
static bool runs_in(enum hd_section section, const struct hd_ins_runner *rows, const struct hd_ins *ins)
{
	return section == HD_SECTION_ALL || section == (ins->flags & HD_INS_EAGER ? HD_SECTION_COMPUTE :
		rows[ins->op].section);
}

/* Of what is recorded all passes but the step's own are for workers that are gone. */
static bool is_repair(const struct hd_worker *w) { return w->step->work != hd_worker_work(w); }

/* A wait lies inside its instruction: it is written first, and the instruction ends after it. */
static uint64_t record(struct hd_rank *rank, const struct hd_ins *ins, uint32_t i, uint64_t began,
	uint64_t ended)
{
	struct hd_recorder *recorder = rank->worker->spec.recorder;
	struct hd_recorder_op op = { .began = began, .ended = ended, .bytes = touched(rank, ins),
		.instr = i,
		.vn = hd_ins_uses(ins->op, 'v') ? ins->vn : UINT32_MAX,
		.stage = hd_ins_uses(ins->op, 's') ? ins->stage : UINT32_MAX, .op = ins->op,
		.flags = (uint8_t)((ins->flags & HD_INS_SHADOW ? HD_EVENT_FLAG_SHADOW : 0) |
			(is_repair(rank->worker) ? HD_EVENT_FLAG_REDONE : 0)) };

	if (ins->op == HD_INS_RA || ins->op == HD_INS_RG || ins->op == HD_INS_TAKE) {
		hd_recorder_wait(recorder, rank->id, began, HD_WAIT_TRANSFER);
		op.ended = hd_recorder_now_of(recorder, rank->id);
	}
	hd_recorder_op(recorder, rank->id, &op);
	return op.ended;
}

uint64_t hd_interp_ins(struct hd_rank *rank, const struct hd_ins *of, uint32_t i, uint64_t began)
{
	struct hd_recorder *recorder = rank->worker->spec.recorder;
	const struct hd_pipe *pipe = rank->worker->step->work->pipe;
	const struct hd_ins one = pipe ? hd_pipe_turn(rank, of) : *of, *ins = &one;

	if (pipe)
		(void)HD_FAILPOINT_KEY(PIPE_INSTR, ins->stage);
	began = began ? began : now_of(rank);
	int64_t used_ns = pipe ? hd_clock_thread_ns() : 0;
	const uint64_t waited_ns = waited(rank);
	enum hd_err err = rows_of(rank)[ins->op].run(rank, ins, &rank->diag);
	used_ns = pipe ? hd_clock_thread_ns() - used_ns : 0;
	const uint64_t ended = now_of(rank);
	count(rank, ins, ended - began, (uint64_t)used_ns, waited(rank) - waited_ns);
	if (err)
		hd_rank_fail(rank, err);
	if (err && pipe)
		hd_overlap_fence(rank->worker->step->work);
	return recorder ? record(rank, ins, i, began, ended) : ended;
}

void hd_interp_one(struct hd_rank *rank, uint32_t i)
{
	(void)hd_interp_ins(rank, &rank->work->list->at[i], i, 0);
}

void hd_interp_run(struct hd_rank *rank)
{
	const struct hd_ilist *list = rank->work->list;
	const enum hd_section section = rank->worker->step->section;
	const struct hd_ins_runner *rows = rows_of(rank);

	uint64_t seen = 0;

	rank->first_ivn = rank->nwave = 0;
	rank->undone = false;
	if (section != HD_SECTION_FINISH)
		rank->work->at = rank->work->from;
	if (section == HD_SECTION_FINISH)
		/* those of other workers are here now; ranks meet before they are read */
		hd_moments_fold(rank);
	for (uint32_t i = rank->work->from; i < list->len; i++) {
		const uint8_t op = list->at[i].op;
		/* the checker refuses others by name */
		assert(op < HD_INS_END && rows[op].run);
		if (!runs_in(section, rows, &list->at[i]) || (hd_rank_idle(rank) && !rows[op].meets))
			continue;
		seen = hd_interp_ins(rank, &list->at[i], i, seen);
		if (!rank->undone && section != HD_SECTION_FINISH)
			rank->work->at = i + 1;
	}
	if (section != HD_SECTION_COMPUTE && rank->worker->step->want_digest && !hd_rank_idle(rank))
		hd_digest_segments(rank);
}
