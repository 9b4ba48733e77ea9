#include "engine/offload.h"

#include <assert.h>
#include <stdlib.h>

#include "engine/pipe.h"
#include "engine/worker_int.h"

enum { PLACE = 4096 };                    /* places begin at pages of the file */

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for activations in a file");
}

/* ---- what is kept ---- */

static int by_place(const void *a, const void *b)
{
	const struct hd_memory_part *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* Spans that meet become one. */
static uint32_t join_spans(struct hd_memory_part *span, uint32_t n)
{
	uint32_t end = 0;

	qsort(span, n, sizeof *span, by_place);
	for (uint32_t i = 0; i < n; i++)
		if (end && span[i].at <= span[end - 1].end)
			span[end - 1].end = span[i].end > span[end - 1].end ? span[i].end : span[end - 1].end;
		else
			span[end++] = span[i];
	return end;
}

/* A view lies where the value lies that it shows. */
enum hd_err hd_offload_find(struct hd_pipe_stage *stage, const struct hd_graph_spread *spread,
	uint32_t nout, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_program *program = &stage->tensor.whole;
	const struct hd_graph *graph = program->graph;
	bool *read = hd_arena_take(arena, (size_t)graph->nvalues + 1, sizeof *read);
	uint32_t n = 0;

	stage->kept = hd_arena_take(arena, (size_t)graph->nvalues + 1, sizeof *stage->kept);
	if (!read || !stage->kept)
		return no_memory(diag);
	for (uint32_t i = 0; i < graph->nnodes; i++)
		for (uint32_t k = 0; k < graph->node[i].nin && graph->node[i].phase != HD_PHASE_F; k++)
			read[graph->node[i].in[k]] = true;
	for (uint32_t i = 0; i < nout; i++)
		read[stage->cut->act_out[i]] = true;
	for (uint32_t v = 0; v < graph->nvalues; v++) {
		const struct hd_where *where = &program->where[v];
		if (!read[v] || graph->value[v].kind != HD_TEMP || where->space != HD_IN_ARENA ||
			graph->node[graph->value[v].node].phase != HD_PHASE_F ||
			!hd_spread_has(spread, stage->cut_of, stage->group, v))
			continue;
		stage->kept[n++] = (struct hd_memory_part){ where->at_bytes,
			where->at_bytes + hd_program_value_bytes(program, v) };
	}
	stage->nkept = join_spans(stage->kept, n);
	for (uint32_t i = 0; i < stage->nkept; i++)
		stage->kept_bytes += stage->kept[i].end - stage->kept[i].at;
	return HD_OK;
}

/* ---- the file ---- */

static uint64_t place_bytes(const struct hd_pipe_stage *stage)
{
	return (stage->kept_bytes + PLACE - 1) / PLACE * PLACE;
}

enum hd_err hd_offload_take(struct hd_pipe *pipe, const char *folder, struct hd_arena *arena,
	struct hd_diag *diag)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < pipe->nseats; i++) {
		struct hd_offload_pool *away = &pipe->seat[i].away;
		away->at_bytes = bytes;
		bytes += away->cap * place_bytes(&pipe->stage[pipe->seat[i].stage]);
		away->free = hd_arena_take(arena, (size_t)away->cap + 1, sizeof *away->free);
		if (!away->free)
			return no_memory(diag);
	}
	hd_offload_clear(pipe);
	return bytes ? hd_memory_spill_open(folder, bytes, &pipe->away, diag) : HD_OK;
}

void hd_offload_give(struct hd_pipe *pipe)
{
	hd_memory_id_close(pipe->away);
	pipe->away = -1;
}

void hd_offload_clear(struct hd_pipe *pipe)
{
	for (uint32_t i = 0; i < pipe->nseats; i++) {
		struct hd_offload_pool *away = &pipe->seat[i].away;
		for (away->nfree = 0; away->nfree < away->cap; away->nfree++)
			away->free[away->nfree] = away->cap - 1 - away->nfree;
	}
}

/* ---- one cell ---- */

static enum hd_err move(struct hd_pipe *pipe, const struct hd_cell *cell, uint32_t istage, bool out,
	struct hd_diag *diag)
{
	const struct hd_pipe_stage *stage = &pipe->stage[istage];
	const struct hd_seat *seat = cell->before ? cell->before : cell->seat;
	const int file = cell->before ? pipe->before->away : pipe->away;
	uint64_t at = seat->away.at_bytes + cell->place * place_bytes(stage);
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < stage->nkept && !err; i++) {
		const size_t bytes = stage->kept[i].end - stage->kept[i].at;
		err = out ? hd_memory_put(file, cell->arena + stage->kept[i].at, bytes, at, diag) :
			hd_memory_get(file, cell->arena + stage->kept[i].at, bytes, at, diag);
		at += bytes;
	}
	return err;
}

enum hd_err hd_offload_out(struct hd_pipe *pipe, struct hd_cell *cell, uint32_t stage, bool rows,
	struct hd_diag *diag)
{
	struct hd_offload_pool *away = &cell->seat->away;

	assert(away->nfree && cell->arena);
	cell->place = away->free[--away->nfree];
	return rows ? move(pipe, cell, stage, true, diag) : HD_OK;
}

enum hd_err hd_offload_back(struct hd_pipe *pipe, struct hd_cell *cell, uint32_t stage, bool rows,
	struct hd_diag *diag)
{
	struct hd_offload_pool *away = &cell->seat->away;

	assert(cell->arena && (cell->before || away->nfree < away->cap));
	enum hd_err err = rows ? move(pipe, cell, stage, false, diag) : HD_OK;
	if (!cell->before)
		away->free[away->nfree++] = cell->place;
	cell->before = NULL;
	return err;
}
