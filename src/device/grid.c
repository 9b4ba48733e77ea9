#include "device/grid.h"

#include <string.h>

#include "base/alloc.h"
#include "sys/memory.h"
#include "sys/thread.h"
#include "device/optim.h"
#include "device/program.h"
#include "device/team.h"

/* Below both, a call takes some 10 us on one core, no more than waking and awaiting the others. */
#define ALONE_FLOPS 400e3
#define ALONE_BYTES 65536.0

/* Runs of flat vectors are shared out in blocks: a multiple of 16 elements, 64 KiB, within the second-level cache. */
enum { BLOCK_ELEMS = 16384 };

struct slot {
	void *prepared;                   /* borrowed from the slot that owns it */
	uint32_t ntiles;
	bool owner, alone;
};

struct hd_grid_program {
	struct hd_grid_program *next;
	const struct hd_program *of;      /* borrowed, see load() */
	struct slot slot[];               /* [nvariants][nnodes] */
};

struct hd_grid_block {
	struct hd_grid_block *next;
	struct hd_memory memory;
	uint64_t len_bytes;
};

static struct hd_grid *grid_of(struct hd_device *device) { return (struct hd_grid *)device; }

static enum hd_err done(struct hd_grid *grid, uint64_t *token)
{
	*token = ++grid->token;
	return HD_OK;
}

enum hd_err hd_grid_open(struct hd_device *device, const struct hd_device_spec *spec,
	const struct hd_grid_kernels *kernels, struct hd_diag *diag)
{
	struct hd_grid *grid = grid_of(device);
	const struct hd_team_spec team = { spec->nthreads, spec->pin ? (int)spec->first_core : -1, spec->spin, kernels->init };

	hd_thread_arith_set();
	device->spec = *spec;
	device->path = kernels->path;
	grid->kernels = *kernels;
	return hd_team_create(&grid->team, &team, diag);
}

enum hd_err hd_grid_take(struct hd_device *device, uint64_t len_bytes, void **at, struct hd_diag *diag)
{
	struct hd_grid *grid = grid_of(device);
	const uint64_t limit = device->spec.memory_limit_bytes;

	if (limit && (len_bytes > limit || grid->taken_bytes > limit - len_bytes))
		return hd_fail(diag, HD_E_REFUSED, "device %s: %.1f MiB more are needed, %.1f MiB are in use and the limit is %.1f MiB: "
			"use a smaller batch or model, more virtual nodes or slices, or raise the limit", device->ops->name,
			(double)len_bytes / 1048576, (double)grid->taken_bytes / 1048576, (double)limit / 1048576);
	struct hd_grid_block *block = hd_alloc(sizeof *block);
	if (!block)
		return hd_fail(diag, HD_E_NOMEM, "memory of a device: out of memory");
	*block = (struct hd_grid_block){ .next = grid->block, .len_bytes = len_bytes };
	enum hd_err err = hd_memory_take(len_bytes ? len_bytes : 1, HD_MEMORY_LAZY, &block->memory, diag);
	if (err) {
		hd_free(block);
		return err;
	}
	grid->block = block;
	grid->taken_bytes += len_bytes;
	*at = block->memory.at;
	return HD_OK;
}

void hd_grid_give(struct hd_device *device, void *at, uint64_t len_bytes)
{
	struct hd_grid *grid = grid_of(device);

	for (struct hd_grid_block **link = &grid->block; *link; link = &(*link)->next) {
		struct hd_grid_block *block = *link;
		if (block->memory.at != at || block->len_bytes != len_bytes)
			continue;
		*link = block->next;
		grid->taken_bytes -= block->len_bytes;
		hd_memory_give(&block->memory);
		hd_free(block);
		return;
	}
}

enum hd_err hd_grid_move(struct hd_device *device, void *to, const void *from, uint64_t len_bytes, uint64_t *token)
{
	if (len_bytes && to != from)
		memmove(to, from, len_bytes);
	return done(grid_of(device), token);
}

static struct hd_grid_program *find(const struct hd_grid *grid, const struct hd_program *of)
{
	struct hd_grid_program *program = grid->program;

	while (program && program->of != of)
		program = program->next;
	return program;
}

/* Layers repeat: a shape is prepared once and its other nodes borrow. */
static enum hd_err prepare(struct hd_grid *grid, struct hd_grid_program *loaded, uint32_t variant, uint32_t inode, struct hd_diag *diag)
{
	const struct hd_program *program = loaded->of;
	const struct hd_graph *graph = program->graph;
	const struct hd_call *call = &program->calls[variant][inode];
	struct slot *slots = loaded->slot + (size_t)variant * graph->nnodes;

	for (uint32_t i = 0; i < inode; i++)
		if (slots[i].owner && hd_call_same(&program->calls[variant][i], call)) {
			slots[inode] = slots[i];
			slots[inode].owner = false;
			return HD_OK;
		}
	const struct hd_cpu_row *row = &grid->kernels.row[call->op];
	struct hd_cost cost = hd_ops[call->op].cost(graph, &graph->node[inode], program->rows[variant]);
	enum hd_err err = row->prepare(call, &slots[inode].prepared, diag);
	if (err)
		return err;
	slots[inode].owner = true;
	slots[inode].alone = cost.flops < ALONE_FLOPS && cost.bytes < ALONE_BYTES;
	struct hd_call ready = *call;
	ready.prepared = slots[inode].prepared;
	slots[inode].ntiles = row->kernel.ntiles(&ready);
	return hd_team_scratch(grid->team, row->kernel.scratch(&ready), diag);
}

static bool will_run(const struct hd_program *program, uint32_t inode)
{
	const struct hd_node *node = &program->graph->node[inode];

	return hd_ops[node->op].class != HD_OP_VIEW && (program->training || node->phase == HD_PHASE_F);
}

enum hd_err hd_grid_load(struct hd_device *device, const struct hd_program *program, struct hd_diag *diag)
{
	struct hd_grid *grid = grid_of(device);
	size_t nslots = (size_t)program->nvariants * program->graph->nnodes;
	size_t bytes = sizeof(struct hd_grid_program) + nslots * sizeof(struct slot);

	if (find(grid, program))
		return HD_OK;
	struct hd_grid_program *loaded = hd_alloc(bytes);
	if (!loaded)
		return hd_fail(diag, HD_E_NOMEM, "kernels of %u nodes: out of memory", program->graph->nnodes);
	memset(loaded, 0, bytes);
	loaded->of = program;
	loaded->next = grid->program;
	grid->program = loaded;           /* from here on close() frees it, half-loaded or not */
	grid->kernels.init();
	for (uint32_t v = 0; v < program->nvariants; v++)
		for (uint32_t i = 0; i < program->graph->nnodes; i++) {
			enum hd_err err = will_run(program, i) ? prepare(grid, loaded, v, i, diag) : HD_OK;
			if (err)
				return err;
		}
	return HD_OK;
}

static void unload(struct hd_grid *grid, struct hd_grid_program *loaded)
{
	const struct hd_program *program = loaded->of;

	for (uint32_t v = 0; v < program->nvariants; v++)
		for (uint32_t i = 0; i < program->graph->nnodes; i++) {
			struct slot *slot = &loaded->slot[(size_t)v * program->graph->nnodes + i];
			if (slot->owner)
				grid->kernels.row[program->calls[v][i].op].release(slot->prepared);
		}
	hd_free(loaded);
}

static enum hd_err arithmetic(bool good, const struct hd_grid *grid, struct hd_diag *diag)
{
	return good ? HD_OK : hd_fail(diag, HD_E_BUG, "device %s: rounding or subnormals were switched by foreign code in this process",
		grid->device.ops->name);
}

struct op_work { const struct hd_kernel *kernel; struct hd_call call; };

static void op_tile(const void *user, uint32_t i, void *scratch)
{
	const struct op_work *work = user;

	work->kernel->tile(&work->call, i, scratch);
}

struct vector_work {
	const struct hd_cpu_vector *vector;
	float *dst;
	const float *a, *b;
	uint64_t len;
	const struct hd_update *update;
	const struct hd_segment *segment;
	double *partial;
};

static uint64_t block_len(uint64_t len, uint32_t i)
{
	uint64_t left = len - (uint64_t)i * BLOCK_ELEMS;

	return left < BLOCK_ELEMS ? left : BLOCK_ELEMS;
}

static uint32_t nblocks(uint64_t len) { return (uint32_t)((len + BLOCK_ELEMS - 1) / BLOCK_ELEMS); }

static void add_tile(const void *user, uint32_t i, void *scratch)
{
	const struct vector_work *w = user;
	uint64_t at = (uint64_t)i * BLOCK_ELEMS;

	(void)scratch;
	w->vector->add(w->dst + at, w->a + at, w->b + at, block_len(w->len, i));
}

static void copy_tile(const void *user, uint32_t i, void *scratch)
{
	const struct vector_work *w = user;
	uint64_t at = (uint64_t)i * BLOCK_ELEMS;

	(void)scratch;
	w->vector->copy(w->dst + at, w->a + at, block_len(w->len, i));
}

static void update_tile(const void *user, uint32_t i, void *scratch)
{
	const struct vector_work *w = user;
	const struct hd_update *u = w->update;
	uint64_t at = (uint64_t)i * BLOCK_ELEMS;

	(void)scratch;
	w->vector->update(u->scalars, u->param + at, u->grad + at, u->slot[0] ? u->slot[0] + at : NULL,
		u->slot[1] ? u->slot[1] + at : NULL, block_len(u->len, i));
}

static void sumsq_tile(const void *user, uint32_t i, void *scratch)
{
	const struct vector_work *w = user;

	(void)scratch;
	w->partial[i] = w->vector->sumsq(w->a + w->segment[i].at, w->segment[i].len);
}

static bool fold_one(struct hd_grid *grid, const struct hd_fold *fold, float *leaf, uint64_t at, uint64_t len)
{
	struct vector_work work = { .vector = grid->kernels.vector, .dst = fold->dst + at, .a = fold->src ? fold->src + at : leaf, .len = len };

	if (fold->add) {
		work.b = work.a;
		work.a = work.dst;
	}
	return hd_team_run(grid->team, nblocks(len), false, fold->add ? add_tile : copy_tile, &work);
}

static bool fold_gradients(struct hd_grid *grid, const struct hd_program *program, const struct hd_node *node, const struct hd_bind *bind)
{
	const struct hd_layout *layout = program->layout;
	bool good = true;

	for (uint32_t value = node->out; value < node->out + node->nout; value++) {
		uint32_t p = program->grad_of_value[value];
		for (uint32_t i = 0; p != HD_NONE && i < bind->nfolds; i++)
			good &= fold_one(grid, &bind->fold[i], hd_program_value(program, bind, value), layout->at[p], layout->len[p]);
	}
	return good;
}

enum hd_err hd_grid_run(struct hd_device *device, const struct hd_program *program, enum hd_run_phase phase,
	const struct hd_bind *bind, uint64_t *token, struct hd_diag *diag)
{
	struct hd_grid *grid = grid_of(device);
	const struct hd_grid_program *loaded = find(grid, program);
	uint32_t variant = hd_program_variant(program, bind->rows);
	bool good = true;

	grid->kernels.init();             /* the leader may be another thread than the one that loaded */
	if (bind->rows == 0)
		return done(grid, token);
	if (!loaded || variant == HD_NONE)
		return hd_fail(diag, HD_E_BUG, "device %s: a slice of %llu rows was not prepared", device->ops->name, (unsigned long long)bind->rows);
	for (uint32_t i = 0; i < program->norder[phase] && good; i++) {
		uint32_t inode = program->order[phase][i];
		const struct hd_node *node = &program->graph->node[inode];
		const struct slot *slot = &loaded->slot[(size_t)variant * program->graph->nnodes + inode];

		if (slot->ntiles) {
			struct op_work work = { .kernel = &grid->kernels.row[node->op].kernel };
			hd_program_bind(program, variant, inode, bind, &work.call);
			work.call.prepared = slot->prepared;
			good = hd_team_run(grid->team, slot->ntiles, slot->alone, op_tile, &work);
		}
		good &= fold_gradients(grid, program, node, bind);
	}
	enum hd_err err = arithmetic(good, grid, diag);
	return err ? err : done(grid, token);
}

enum hd_err hd_grid_add(struct hd_device *device, float *dst, const float *a, const float *b, uint64_t len, uint64_t *token)
{
	struct hd_grid *grid = grid_of(device);
	const struct vector_work work = { .vector = grid->kernels.vector, .dst = dst, .a = a, .b = b, .len = len };

	if (!hd_team_run(grid->team, nblocks(len), false, add_tile, &work))
		return arithmetic(false, grid, NULL);
	return done(grid, token);
}

enum hd_err hd_grid_sumsq(struct hd_device *device, const float *flat, const struct hd_segment *segment, uint32_t n,
	double *partial, uint64_t *token)
{
	struct hd_grid *grid = grid_of(device);
	const struct vector_work work = { .vector = grid->kernels.vector, .a = flat, .segment = segment, .partial = partial };

	if (!hd_team_run(grid->team, n, false, sumsq_tile, &work))
		return arithmetic(false, grid, NULL);
	return done(grid, token);
}

enum hd_err hd_grid_update(struct hd_device *device, const struct hd_update *update, uint64_t *token)
{
	struct hd_grid *grid = grid_of(device);
	const struct vector_work work = { .vector = grid->kernels.vector, .update = update };

	if (!hd_team_run(grid->team, nblocks(update->len), false, update_tile, &work))
		return arithmetic(false, grid, NULL);
	return done(grid, token);
}

enum hd_err hd_grid_wait(struct hd_device *device, uint64_t token, struct hd_diag *diag)
{
	if (token > grid_of(device)->token)
		return hd_fail(diag, HD_E_BUG, "device %s: waits for work that was never given", device->ops->name);
	return HD_OK;
}

void hd_grid_close(struct hd_device *device)
{
	struct hd_grid *grid = grid_of(device);

	hd_team_destroy(grid->team);
	grid->team = NULL;
	while (grid->program) {
		struct hd_grid_program *loaded = grid->program;
		grid->program = loaded->next;
		unload(grid, loaded);
	}
	while (grid->block)
		hd_grid_give(device, grid->block->memory.at, grid->block->len_bytes);
}
