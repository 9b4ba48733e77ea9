#include "device/grid_int.h"

#include <string.h>

#include "base/alloc.h"
#include "sys/memory.h"
#include "sys/thread.h"
#include "device/program.h"
#include "device/team.h"

struct hd_grid_block {
	struct hd_grid_block *next;
	struct hd_memory memory;
	uint64_t len_bytes;
};

enum hd_err hd_grid_open(struct hd_device *device, const struct hd_device_spec *spec,
	const struct hd_grid_kernels *kernels, struct hd_diag *diag)
{
	struct hd_grid *grid = hd_grid_of(device);
	const struct hd_team_spec team = { spec->nthreads, spec->pin ? (int)spec->first_core : -1, spec->spin,
		kernels->init };

	hd_thread_arith_set();
	device->spec = *spec;
	device->path = kernels->path;
	grid->kernels = *kernels;
	return hd_team_create(&grid->team, &team, diag);
}

enum hd_err hd_grid_take(struct hd_device *device, uint64_t len_bytes, void **at, struct hd_diag *diag)
{
	struct hd_grid *grid = hd_grid_of(device);
	const uint64_t limit = device->spec.memory_limit_bytes;

	if (limit && (len_bytes > limit || grid->taken_bytes > limit - len_bytes))
		return hd_fail(diag, HD_E_REFUSED,
			"device %s: %.1f MiB more are needed, %.1f MiB are in use and the limit is %.1f MiB: "
			"use a smaller batch or model, more virtual nodes or slices, or raise the limit",
			device->ops->name,
			(double)len_bytes / 1048576, (double)grid->taken_bytes / 1048576,
			(double)limit / 1048576);
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
	struct hd_grid *grid = hd_grid_of(device);

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

enum hd_err hd_grid_move(struct hd_device *device, void *to, const void *from, uint64_t len_bytes,
	uint64_t *token)
{
	if (len_bytes && to != from)
		memmove(to, from, len_bytes);
	return hd_grid_done(hd_grid_of(device), token);
}

struct hd_grid_program *hd_grid_find(const struct hd_grid *grid, const struct hd_program *of)
{
	struct hd_grid_program *program = grid->program;

	while (program && program->of != of)
		program = program->next;
	return program;
}

/* For one part, for every number of parts that may share a call, and for the fold of as many. */
static enum hd_err take_scratch(struct hd_grid *grid, const struct hd_program *program, uint32_t variant,
	uint32_t inode,
	const struct hd_call *call, const struct hd_kernel *kernel, struct hd_diag *diag)
{
	size_t most = kernel->scratch(call), bytes;

	for (uint32_t n = 2; variant == 0 && n <= program->max_parts && program->together[inode] &&
		kernel->rowwise; n++) {
		struct hd_call wave = *call;
		hd_program_widen(program, inode, n, &wave);
		bytes = kernel->scratch(&wave);
		most = bytes > most ? bytes : most;
	}
	if (hd_grid_folds(program, inode, kernel, call)) {
		bytes = kernel->fold->scratch(call, program->max_parts);
		most = bytes > most ? bytes : most;
	}
	return hd_team_scratch(grid->team, most, diag);
}

const struct hd_cpu_row *hd_grid_row(const struct hd_grid *grid, const struct hd_call *call)
{
	const struct hd_cpu_row *row = &grid->kernels.row[call->op];

	return row->takes && !row->takes(call) ? &grid->kernels.own[call->op] : row;
}

/* Layers repeat: a shape is prepared once and its other nodes borrow; what they do with it (waves, folds)
 * is their own. */
static enum hd_err prepare(struct hd_grid *grid, struct hd_grid_program *loaded, uint32_t variant,
	uint32_t inode, struct hd_diag *diag)
{
	const struct hd_program *program = loaded->of;
	const struct hd_graph *graph = program->graph;
	const struct hd_call *call = &program->calls[variant][inode];
	struct hd_slot *slots = loaded->slot + (size_t)variant * graph->nnodes;

	for (uint32_t i = 0; i < inode; i++)
		if (slots[i].owner && hd_call_same(&program->calls[variant][i], call)) {
			struct hd_call same = *call;
			slots[inode] = slots[i];
			slots[inode].owner = false;
			same.prepared = slots[i].prepared;
			return take_scratch(grid, program, variant, inode, &same, &slots[i].row->kernel,
				diag);
		}
	const struct hd_cpu_row *row = hd_grid_row(grid, call);
	enum hd_err err = row->prepare(call, &slots[inode].prepared, diag);
	if (err)
		return err;
	slots[inode].row = row;
	slots[inode].owner = true;
	slots[inode].cost = hd_ops[call->op].cost(graph, &graph->node[inode], program->rows[variant]);
	struct hd_call ready = *call;
	ready.prepared = slots[inode].prepared;
	slots[inode].ntiles = row->kernel.ntiles(&ready);
	return take_scratch(grid, program, variant, inode, &ready, &row->kernel, diag);
}

static bool will_run(const struct hd_program *program, uint32_t inode)
{
	const struct hd_node *node = &program->graph->node[inode];

	return hd_ops[node->op].class != HD_OP_VIEW && (program->training || node->phase == HD_PHASE_F) &&
		(!program->runs || program->runs[inode]);
}

enum hd_err hd_grid_load(struct hd_device *device, const struct hd_program *program, struct hd_diag *diag)
{
	struct hd_grid *grid = hd_grid_of(device);
	size_t nslots = (size_t)program->nvariants * program->graph->nnodes;
	size_t bytes = sizeof(struct hd_grid_program) + nslots * sizeof(struct hd_slot);

	if (hd_grid_find(grid, program))
		return HD_OK;
	struct hd_grid_program *loaded = hd_alloc(bytes);
	if (!loaded)
		return hd_fail(diag, HD_E_NOMEM, "kernels of %u nodes: out of memory",
			program->graph->nnodes);
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
	enum hd_err err = hd_grid_edges_take(grid, loaded, diag);
	if (err)
		return err;
	device->scratch_bytes = hd_team_scratch_bytes(grid->team) + hd_grid_edges_bytes(grid);
	return HD_OK;
}

static void release(struct hd_grid_program *loaded)
{
	const struct hd_program *program = loaded->of;

	for (uint32_t v = 0; v < program->nvariants; v++)
		for (uint32_t i = 0; i < program->graph->nnodes; i++) {
			struct hd_slot *slot = &loaded->slot[(size_t)v * program->graph->nnodes + i];
			if (slot->owner)
				slot->row->release(slot->prepared);
		}
	hd_grid_edges_free(loaded);
	hd_free(loaded);
}

void hd_grid_unload(struct hd_device *device, const struct hd_program *program)
{
	struct hd_grid_program **at = &hd_grid_of(device)->program;

	while (*at && (*at)->of != program)
		at = &(*at)->next;
	if (!*at)
		return;
	struct hd_grid_program *loaded = *at;
	*at = loaded->next;
	release(loaded);
}

enum hd_err hd_grid_wait(struct hd_device *device, uint64_t token, struct hd_diag *diag)
{
	if (token > hd_grid_of(device)->token)
		return hd_fail(diag, HD_E_BUG, "device %s: waits for work that was never given",
			device->ops->name);
	return HD_OK;
}

void hd_grid_close(struct hd_device *device)
{
	struct hd_grid *grid = hd_grid_of(device);

	hd_team_destroy(grid->team);
	grid->team = NULL;
	while (grid->program) {
		struct hd_grid_program *loaded = grid->program;
		grid->program = loaded->next;
		release(loaded);
	}
	while (grid->block)
		hd_grid_give(device, grid->block->memory.at, grid->block->len_bytes);
}
