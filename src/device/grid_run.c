#include "device/grid_int.h"

#include <string.h>

/* Below both, a call takes some 10 us on one core, no more than waking and awaiting the others. */
#define ALONE_FLOPS 400e3
#define ALONE_BYTES 65536.0

/* What a run of one phase works on. */
struct phase_run {
	struct hd_grid *grid;
	const struct hd_program *program;
	const struct hd_grid_program *loaded;
	const struct hd_bind *bind;
	bool full;                        /* every part has all its rows */
	struct hd_grid_lists lists;
};

/* npieces: those that threads take instead of tiles, if they do */
struct op_work { const struct hd_kernel *kernel; struct hd_call call; uint32_t npieces; };

static void op_tile(const void *user, uint32_t i, void *scratch)
{
	const struct op_work *work = user;

	work->kernel->tile(&work->call, i, scratch);
}

static void op_piece(const void *user, uint32_t i, void *scratch)
{
	const struct op_work *work = user;

	work->kernel->piece(&work->call, i, work->npieces, scratch);
}

struct fold_work {
	const struct hd_fold_kernel *kernel;
	struct hd_call call;
	struct hd_fold_job job;
	uint32_t npieces;
};

static void fold_tile(const void *user, uint32_t i, void *scratch)
{
	const struct fold_work *work = user;

	work->kernel->tile(&work->call, &work->job, i, scratch);
}

static void fold_piece(const void *user, uint32_t i, void *scratch)
{
	const struct fold_work *work = user;

	work->kernel->piece(&work->call, &work->job, i, work->npieces, scratch);
}

enum hd_err hd_grid_arithmetic(bool good, const struct hd_grid *grid, struct hd_diag *diag)
{
	return good ? HD_OK : hd_fail(diag, HD_E_BUG,
		"device %s: rounding or subnormals were switched by foreign code in this process",
		grid->device.ops->name);
}

/* The gradient that is the only output of the node, or HD_NONE. */
static uint32_t gradient_of(const struct hd_program *program, uint32_t inode)
{
	const struct hd_node *node = &program->graph->node[inode];

	return node->nout == 1 ? program->grad_of_value[node->out] : HD_NONE;
}

bool hd_grid_folds(const struct hd_program *program, uint32_t inode, const struct hd_kernel *kernel,
	const struct hd_call *call)
{
	const struct hd_node *node = &program->graph->node[inode];
	bool rows = kernel->fold != NULL;

	for (uint8_t i = 0; rows && i < kernel->fold->nread; i++)
		rows = program->kind[node->in[i]] == HD_KIND_ROWS;
	return rows && gradient_of(program, inode) != HD_NONE && kernel->fold->takes(call);
}

static const struct hd_slot *slot_of(const struct phase_run *w, uint32_t inode, uint64_t rows)
{
	return &w->loaded->slot[(size_t)hd_program_variant(w->program,
		rows) * w->program->graph->nnodes + inode];
}

static bool alone(const struct hd_slot *slot, uint32_t nparts)
{
	return slot->cost.flops * nparts < ALONE_FLOPS && slot->cost.bytes * nparts < ALONE_BYTES;
}

/* Pieces in which the threads take a call, or 0: they take tiles. */
static uint32_t pieces_of(const struct phase_run *w, const struct hd_call *call,
	bool (*divides)(const struct hd_call *call, uint32_t n), uint32_t ntiles, bool alone)
{
	const uint32_t n = alone ? 1 : w->grid->device.spec.nthreads;

	return divides && ntiles > 1 && (n == 1 || divides(call, n)) ? n : 0;
}

static bool run_op(const struct phase_run *w, struct op_work *work, uint32_t ntiles, bool alone)
{
	work->npieces = pieces_of(w, &work->call, work->kernel->divides, ntiles, alone);
	if (work->npieces)
		return hd_team_run(w->grid->team, work->npieces, alone, op_piece, work);
	return hd_team_run(w->grid->team, ntiles, alone, op_tile, work);
}

/* Rows of all parts in one call. */
static bool run_wave(const struct phase_run *w, uint32_t inode)
{
	const struct hd_slot *slot = slot_of(w, inode, w->program->part_rows);
	struct op_work work = { .kernel = &slot->row->kernel };

	hd_program_bind_part(w->program, 0, inode, 0, w->bind, &work.call);
	hd_program_widen(w->program, inode, w->bind->nparts, &work.call);
	work.call.prepared = slot->prepared;
	return run_op(w, &work, slot->row->kernel.ntiles(&work.call), alone(slot, w->bind->nparts));
}

static bool run_rows(struct phase_run *w, uint32_t inode, uint32_t ipart, uint64_t rows)
{
	const struct hd_slot *slot = slot_of(w, inode, rows);
	struct op_work work = { .kernel = &slot->row->kernel };

	hd_program_bind_part(w->program, hd_program_variant(w->program, rows), inode, ipart, w->bind,
		&work.call);
	work.call.prepared = slot->prepared;
	if (slot->edges)
		hd_grid_edges_bind(slot->edges, &work.call, &w->lists);
	return slot->ntiles == 0 || run_op(w, &work, slot->ntiles, alone(slot, 1));
}

/* What depends on no sample has the same extents for any number of rows. */
static bool run_once(struct phase_run *w, uint32_t inode) { return run_rows(w, inode, 0,
	w->program->part_rows); }

/* The leaf of a part without rows is +0.0; it is never skipped, since adding +0.0 turns -0.0 into
 * +0.0 and skipping would not. */
static bool fold_part(const struct phase_run *w, const struct hd_node *node, uint32_t ipart)
{
	const struct hd_part *part = &w->bind->part[ipart];
	bool good = true;

	for (uint32_t v = node->out; v < node->out + node->nout; v++) {
		uint32_t grad = w->program->grad_of_value[v];
		if (grad == HD_NONE || part->nfolds == 0)
			continue;
		float *leaf = hd_program_part(w->program, w->bind, v, ipart);
		if (part->rows == 0)
			memset(leaf, 0, w->program->layout->len[grad] * sizeof *leaf);
		good &= hd_grid_fold(w->grid, w->program, w->bind, part, grad, leaf);
	}
	return good;
}

static bool fold_parts(const struct phase_run *w, const struct hd_node *node)
{
	bool good = true;

	for (uint32_t i = 0; i < w->bind->nparts; i++)
		good &= fold_part(w, node, i);
	return good;
}

static void say_ran(const struct phase_run *w, uint32_t inode, uint32_t ipart)
{
	if (w->bind->ran && w->bind->part[ipart].rows)
		w->bind->ran(w->bind->ran_user, w->program, w->bind, inode, ipart);
}

/* Of a node that has run for all parts at once. */
static bool say_all_ran(const struct phase_run *w, uint32_t inode, bool good)
{
	for (uint32_t i = 0; i < w->bind->nparts && good; i++)
		say_ran(w, inode, i);
	return good;
}

static bool run_parts(struct phase_run *w, uint32_t inode)
{
	const struct hd_node *node = &w->program->graph->node[inode];
	bool good = true;

	for (uint32_t i = 0; i < w->bind->nparts && good; i++) {
		if (w->bind->part[i].rows)
			good = run_rows(w, inode, i, w->bind->part[i].rows);
		if (good)
			say_ran(w, inode, i);
		good &= fold_part(w, node, i);
	}
	return good;
}

/* The gradient of a parameter, summed over the parts tile by tile while they are in the cache. */
static bool run_fold(const struct phase_run *w, uint32_t inode)
{
	const struct hd_node *node = &w->program->graph->node[inode];
	const struct hd_slot *slot = slot_of(w, inode, w->program->part_rows);
	struct fold_work work = { .kernel = slot->row->kernel.fold,
		.job = { .nparts = w->bind->nparts, .part = w->bind->part,
		.rows = w->program->part_rows,
		.at = w->program->layout->at[w->program->grad_of_value[node->out]] } };

	hd_program_bind_part(w->program, 0, inode, 0, w->bind, &work.call);
	work.call.prepared = slot->prepared;
	for (uint8_t i = 0; i < node->nin; i++)
		work.job.step_bytes[i] = w->program->part_bytes[node->in[i]];
	uint32_t ntiles = work.kernel->ntiles(&work.call);
	bool lonely = alone(slot, w->bind->nparts);
	work.npieces = pieces_of(w, &work.call, work.kernel->divides, ntiles, lonely);
	if (work.npieces)
		return hd_team_run(w->grid->team, work.npieces, lonely, fold_piece, &work);
	return hd_team_run(w->grid->team, ntiles, lonely, fold_tile, &work);
}

static bool run_node(struct phase_run *w, uint32_t inode)
{
	const struct hd_node *node = &w->program->graph->node[inode];
	const struct hd_kernel *kernel;

	if (hd_ops[node->op].class == HD_OP_VIEW || w->bind->made)
		return fold_parts(w, node);
	if (w->program->kind[node->out] == HD_KIND_SHARED)
		return say_all_ran(w, inode, run_once(w, inode));
	kernel = &slot_of(w, inode, w->program->part_rows)->row->kernel;
	if (w->full && w->program->together[inode] && kernel->rowwise)
		return say_all_ran(w, inode, run_wave(w, inode));
	if (w->bind->part[0].nfolds && !w->bind->ran && hd_grid_folds(w->program, inode, kernel,
		&w->program->calls[0][inode]))
		return run_fold(w, inode);
	return run_parts(w, inode);
}

/* As run_node() chooses. */
bool hd_grid_folds_alone(struct hd_device *device, const struct hd_program *program, uint32_t inode)
{
	const struct hd_node *node = &program->graph->node[inode];

	if (hd_ops[node->op].class == HD_OP_VIEW || program->kind[node->out] == HD_KIND_SHARED)
		return false;
	const struct hd_kernel *kernel = &hd_grid_row(hd_grid_of(device), &program->calls[0][inode])->kernel;
	return !(program->together[inode] && kernel->rowwise) &&
		hd_grid_folds(program, inode, kernel, &program->calls[0][inode]);
}

static void say_folded(const struct phase_run *w, const struct hd_node *node)
{
	for (uint32_t v = node->out; v < node->out + node->nout; v++)
		if (w->program->grad_of_value[v] != HD_NONE)
			w->bind->folded(w->bind->folded_user, w->program->grad_of_value[v]);
}

static enum hd_err check_parts(struct phase_run *w, struct hd_diag *diag)
{
	if (w->bind->nparts > w->program->max_parts)
		return hd_fail(diag, HD_E_BUG, "device %s: a wave of %u virtual nodes in a program for %u",
			w->grid->device.ops->name,
			w->bind->nparts, w->program->max_parts);
	w->full = true;
	for (uint32_t i = 0; i < w->bind->nparts; i++) {
		uint64_t rows = w->bind->part[i].rows;
		w->full &= rows == w->program->part_rows;
		if (!w->loaded || (rows && hd_program_variant(w->program, rows) == HD_NONE))
			return hd_fail(diag, HD_E_BUG, "device %s: a slice of %llu rows was not prepared",
				w->grid->device.ops->name,
				(unsigned long long)rows);
	}
	return HD_OK;
}

enum hd_err hd_grid_run(struct hd_device *device, const struct hd_program *program, enum hd_run_phase phase,
	const struct hd_bind *bind, uint64_t *token, struct hd_diag *diag)
{
	struct hd_grid *grid = hd_grid_of(device);
	const struct hd_part one = { bind->rows, bind->draw.vn, bind->nfolds, bind->fold };
	struct hd_bind bound = *bind;
	struct phase_run w = { .grid = grid, .program = program, .loaded = hd_grid_find(grid, program),
		.bind = &bound };
	bool good = true;

	grid->kernels.init();             /* the leader may be another thread than the one that loaded */
	if (bind->nparts == 0 && bind->rows == 0)
		return hd_grid_done(grid, token);
	if (bind->nparts == 0) {
		bound.part = &one;
		bound.nparts = 1;
	}
	enum hd_err err = check_parts(&w, diag);
	for (uint32_t i = bind->from; !err && i < (bind->to ? bind->to : program->norder[phase]) && good;
		i++) {
		good = run_node(&w, program->order[phase][i]);
		if (bind->folded && good)
			say_folded(&w, &program->graph->node[program->order[phase][i]]);
	}
	err = err ? err : hd_grid_arithmetic(good, grid, diag);
	return err ? err : hd_grid_done(grid, token);
}
