#include "engine/post.h"

#include <stdlib.h>

#include "pipeline/schedule_check.h"
#include "engine/overlap.h"
#include "engine/parcel.h"
#include "engine/worker_int.h"

/* The lines between this worker and others, found from the lists of both ends; their memory. */

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for the mail between several workers");
}

/* The cell that a transfer of a list brings something to; NULL: the instruction sends nothing. */
static struct hd_cell *sent_to(const struct hd_pipe *pipe, const struct hd_ins *ins, enum hd_mail *kind)
{
	if (ins->op != HD_INS_SA && ins->op != HD_INS_SG && ins->op != HD_INS_RSG)
		return NULL;
	*kind = ins->op == HD_INS_SA ? HD_MAIL_ACT : HD_MAIL_GRAD;
	return hd_cell_for(pipe, ins, hd_pipe_to(pipe, ins->stage, *kind));
}

static bool crosses(const struct hd_pipe *pipe, uint32_t from, uint32_t to)
{
	return (pipe->device_of[from] == HD_NONE) != (pipe->device_of[to] == HD_NONE);
}

typedef void per_letter(struct hd_pipe *pipe, struct hd_cell *cell, enum hd_mail kind, uint32_t from,
	const struct hd_ins *ins);

static void for_letters(struct hd_pipe *pipe, per_letter *act)
{
	for (uint32_t r = 0; r < pipe->nranks; r++)
		for (uint32_t i = 0; i < pipe->plan->list[r].len; i++) {
			const struct hd_ins *ins = &pipe->plan->list[r].at[i];
			enum hd_mail kind;
			struct hd_cell *cell = sent_to(pipe, ins, &kind);
			if (cell && crosses(pipe, r, cell->rank))
				act(pipe, cell, kind, r, ins);
		}
}

static void count_letter(struct hd_pipe *pipe, struct hd_cell *cell, enum hd_mail kind, uint32_t from,
	const struct hd_ins *ins)
{
	const uint32_t stage = hd_pipe_to(pipe, ins->stage, kind);
	const bool shadow = ins->flags & HD_INS_SHADOW;
	uint32_t i = 0;

	while (i < pipe->nlines && !(pipe->line[i].from == from && pipe->line[i].to == cell->rank &&
		pipe->line[i].stage == stage && pipe->line[i].kind == kind &&
		pipe->line[i].shadow == shadow))
		i++;
	if (i == pipe->nlines) {
		const struct hd_pipe_stage *to = &pipe->stage[stage];
		pipe->line[pipe->nlines++] = (struct hd_mail_line){ .from = from, .to = cell->rank,
			.stage = stage, .kind = kind, .shadow = shadow,
			.out = pipe->device_of[from] != HD_NONE,
			.pool.bytes = kind == HD_MAIL_ACT ? to->act.bytes : to->grad.bytes };
	}
	pipe->line[i].n++;
	cell->line[kind] = i;
}

static void write_letter(struct hd_pipe *pipe, struct hd_cell *cell, enum hd_mail kind, uint32_t from,
	const struct hd_ins *ins)
{
	struct hd_mail_line *line = &pipe->line[cell->line[kind]];

	(void)from;
	line->vn[line->next++] = ins->vn;
}

/* A stage may be sent nothing: a byte of its own all the same. */
static void size_line(struct hd_mail_line *line)
{
	line->pool.bytes += line->pool.bytes == 0;
	line->pool.cap = line->out ? HD_CREDITS : 0;
}

enum hd_err hd_post_lines(struct hd_pipe *pipe, struct hd_arena *arena, struct hd_diag *diag)
{
	/* of each rank to each other one, both kinds, to each stage: no more than letters */
	size_t most = 0;

	for (size_t i = 0; i < pipe->ncells; i++)
		pipe->cell[i].line[HD_MAIL_ACT] = pipe->cell[i].line[HD_MAIL_GRAD] = HD_NONE;
	for (uint32_t r = 0; r < pipe->nranks; r++)
		for (uint32_t i = 0; i < pipe->plan->list[r].len; i++)
			most += pipe->plan->list[r].at[i].op == HD_INS_SA ||
				pipe->plan->list[r].at[i].op == HD_INS_SG ||
				pipe->plan->list[r].at[i].op == HD_INS_RSG;
	pipe->line = hd_arena_take(arena, most + 1, sizeof *pipe->line);
	if (!pipe->line)
		return no_memory(diag);
	for_letters(pipe, count_letter);
	for (uint32_t i = 0; i < pipe->nlines; i++) {
		pipe->line[i].vn = hd_arena_take(arena, pipe->line[i].n, sizeof *pipe->line[i].vn);
		if (!pipe->line[i].vn)
			return no_memory(diag);
		size_line(&pipe->line[i]);
	}
	for_letters(pipe, write_letter);
	return HD_OK;
}

uint64_t hd_post_bytes(const struct hd_pipe *pipe, uint32_t device)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < pipe->nlines; i++)
		if (pipe->device_of[pipe->line[i].from] == device)
			bytes += pipe->line[i].pool.cap * pipe->line[i].pool.bytes;
	return bytes;
}

static enum hd_err take_line(struct hd_mail_line *line, struct hd_device *device, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_mail_pool *pool = &line->pool;
	enum hd_err err = HD_OK;

	pool->free = hd_arena_take(arena, pool->cap, sizeof *pool->free);
	line->memory = hd_arena_take(arena, pool->cap, sizeof *line->memory);
	if (!pool->free || !line->memory)
		return no_memory(diag);
	for (line->ntaken = 0; line->ntaken < pool->cap && !err; line->ntaken += !err) {
		void *at;
		err = device->ops->take(device, pool->bytes, &at, diag);
		if (!err)
			line->memory[line->ntaken] = pool->free[pool->nfree++] = at;
	}
	return err;
}

enum hd_err hd_post_room(struct hd_worker *w, uint32_t n, struct hd_diag *diag)
{
	struct hd_post *post = w->post;

	if (n <= post->cap)
		return HD_OK;
	hd_lock_take(&post->lock);
	struct hd_dist_letter *at = realloc(post->at, n * sizeof *at);
	if (at) {
		post->at = at;
		post->cap = n;
	}
	hd_lock_give(&post->lock);
	return at ? HD_OK : no_memory(diag);
}

enum hd_err hd_post_take(struct hd_pipe *pipe, struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t n = hd_parcel_letters(pipe);

	for (uint32_t i = 0; i < pipe->nlines; i++)
		n += pipe->line[i].n;
	enum hd_err err = hd_post_room(pipe->worker, pipe->overlaps ? 2 * n : n, diag);
	for (uint32_t i = 0; i < pipe->nlines && !err; i++)
		if (pipe->line[i].out)
			err = take_line(&pipe->line[i],
				pipe->worker->rank[pipe->device_of[pipe->line[i].from]].device, arena, diag);
	return err;
}

void hd_post_give(struct hd_pipe *pipe)
{
	for (uint32_t i = 0; i < pipe->nlines; i++) {
		struct hd_mail_line *line = &pipe->line[i];
		if (line->ntaken == 0)
			continue;
		hd_post_await(pipe, &line->pool, line->ntaken);
		struct hd_device *device = pipe->worker->rank[pipe->device_of[line->from]].device;
		for (; line->ntaken; line->ntaken--)
			device->ops->give(device, line->memory[line->ntaken - 1], line->pool.bytes);
		line->pool.nfree = 0;
	}
}

size_t hd_dist_mail_list(const struct hd_worker *w, uint16_t peer, bool send, struct hd_dist_letter *letter)
{
	const struct hd_work *work = hd_worker_work(w);
	const struct hd_pipe *pipe = work ? hd_overlap_tables(work) : NULL;
	size_t n = work ? hd_meeting_list(w->meeting, work->meeting, peer, send, letter) : 0;

	for (uint32_t i = 0; pipe && i < pipe->nlines; i++) {
		const struct hd_mail_line *line = &pipe->line[i];
		if (line->out != send || pipe->plan->worker[send ? line->to : line->from] != peer)
			continue;
		for (uint32_t odd = 0; odd <= pipe->overlaps; odd++)
			for (uint32_t k = 0; k < line->n; k++, n++)
				if (letter)
					letter[n] = hd_post_letter(pipe, line, line->vn[k], odd);
	}
	return pipe ? n + hd_parcel_list(pipe, peer, send, letter ? letter + n : NULL) : n;
}
