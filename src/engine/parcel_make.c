#include <assert.h>

#include "engine/parcel_int.h"
#include "engine/post.h"
#include "engine/worker_int.h"

/* The lines of parcels, found from the lists of both ends; their memory. */

static const struct parcel_op { uint8_t op; enum hd_run_phase phase; } ops[] = { { HD_INS_F, HD_RUN_F },
	{ HD_INS_B, HD_RUN_B }, { HD_INS_I, HD_RUN_I }, { HD_INS_W, HD_RUN_W }, { HD_INS_R, HD_RUN_F } };
enum { NOPS = sizeof ops / sizeof *ops };

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for what the groups of a rank send one another");
}

/* ---- numbers ---- */

static uint32_t nparcels(const struct hd_pipe_stage *stage, size_t i)
{
	return stage->tensor.parcels[ops[i].phase].n;
}

uint32_t hd_parcels_numbers(const struct hd_pipe_stage *stage)
{
	uint32_t n = 0;

	for (size_t i = 0; i < NOPS; i++)
		n += nparcels(stage, i);
	return n;
}

uint32_t hd_parcel_first(const struct hd_pipe_stage *stage, uint8_t op)
{
	uint32_t n = 0;

	for (size_t i = 0; ops[i].op != op; i++) {
		assert(i + 1 < NOPS);
		n += nparcels(stage, i);
	}
	return n;
}

const struct hd_parcel *hd_parcel_of(const struct hd_pipe_stage *stage, uint32_t number, int *phase)
{
	size_t i = 0;

	while (number >= nparcels(stage, i)) {
		number -= nparcels(stage, i++);
		assert(i < NOPS);
	}
	*phase = (int)ops[i].phase;
	return &stage->tensor.parcels[*phase].at[number];
}

uint64_t hd_parcel_len(const struct hd_pipe_stage *stage, const struct hd_parcel *parcel)
{
	const struct hd_program *program = &stage->tensor.whole;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < parcel->n; i++)
		bytes += hd_parcel_step(hd_value_bytes(&program->graph->value[parcel->value[i]],
			program->part_rows));
	return bytes;
}

/* ---- lines ---- */

typedef void per_parcel(struct hd_pipe *pipe, struct hd_parcel_line *line, uint16_t stage,
	struct hd_parcel_place at, uint64_t bytes);

static struct hd_parcel_line *line_to(struct hd_pipe *pipe, uint32_t from, const struct hd_parcel *parcel,
	uint32_t to)
{
	const bool sends = pipe->device_of[from] != HD_NONE, takes = pipe->device_of[to] != HD_NONE;
	uint32_t i = 0;

	if (!sends && !takes)
		return NULL;
	while (i < pipe->nparcel_lines && !(pipe->parcel_line[i].from == from &&
		pipe->parcel_line[i].to == to && pipe->parcel_line[i].device == parcel->device))
		i++;
	if (i == pipe->nparcel_lines)
		pipe->parcel_line[pipe->nparcel_lines++] = (struct hd_parcel_line){ .from = from, .to = to,
			.device = parcel->device, .sends = sends, .takes = takes };
	return &pipe->parcel_line[i];
}

static void of_instruction(struct hd_pipe *pipe, uint32_t r, const struct hd_ins *ins, size_t op,
	per_parcel *act)
{
	const struct hd_pipe_stage *stage = &pipe->stage[ins->stage];
	const struct hd_parcels *all = &stage->tensor.parcels[ops[op].phase];
	const uint32_t first = hd_parcel_first(stage, ops[op].op), width = pipe->width;

	for (uint32_t i = 0; i < all->n; i++) {
		const struct hd_parcel *parcel = &all->at[i];
		if (parcel->device / width != stage->group)
			continue;
		struct hd_parcel_line *line = line_to(pipe, r, parcel, r - stage->group + parcel->to);
		if (line)
			act(pipe, line, (uint16_t)(ins->stage - stage->group + parcel->to),
				(struct hd_parcel_place){ ins->vn, first + i }, hd_parcel_len(stage, parcel));
	}
}

static void for_parcels(struct hd_pipe *pipe, per_parcel *act)
{
	for (uint32_t r = 0; r < pipe->nranks; r++)
		for (uint32_t i = 0; i < pipe->plan->list[r].len; i++)
			for (size_t op = 0; op < NOPS; op++)
				if (pipe->plan->list[r].at[i].op == ops[op].op)
					of_instruction(pipe, r, &pipe->plan->list[r].at[i], op, act);
}

static void count_place(struct hd_pipe *pipe, struct hd_parcel_line *line, uint16_t stage,
	struct hd_parcel_place at, uint64_t bytes)
{
	(void)pipe;
	(void)stage;
	(void)at;
	line->n++;
	line->bytes = bytes > line->bytes ? bytes : line->bytes;
}

static void write_place(struct hd_pipe *pipe, struct hd_parcel_line *line, uint16_t stage,
	struct hd_parcel_place at, uint64_t bytes)
{
	(void)pipe;
	(void)bytes;
	line->stage[line->next] = stage;
	line->at[line->next++] = at;
}

/* Ids of transfers count them (protocol/transfers.h). */
static enum hd_err count_numbers(struct hd_pipe *pipe, struct hd_diag *diag)
{
	for (uint32_t s = 0; s < pipe->nstages; s++) {
		const uint32_t n = hd_parcels_numbers(&pipe->stage[s]);
		pipe->nparcels = n > pipe->nparcels ? n : pipe->nparcels;
	}
	if ((uint64_t)pipe->nstages * pipe->nvns * pipe->nparcels <= HD_MAX_PARCELS)
		return HD_OK;
	return hd_fail(diag, HD_E_REFUSED,
		"%u groups send %u parcels for each of %u virtual nodes: more than %d in all; use fewer "
		"workers for a rank (parallel.tensor)", pipe->nstages, pipe->nparcels, pipe->nvns,
		HD_MAX_PARCELS);
}

enum hd_err hd_parcel_lines(struct hd_pipe *pipe, struct hd_arena *arena, struct hd_diag *diag)
{
	const size_t most = (size_t)pipe->nranks * pipe->width * (pipe->groups - 1);
	uint32_t nhere = 0;

	if (pipe->groups == 1)
		return HD_OK;
	enum hd_err err = count_numbers(pipe, diag);
	pipe->parcel_line = hd_arena_take(arena, most + 1, sizeof *pipe->parcel_line);
	if (err || !pipe->parcel_line)
		return err ? err : no_memory(diag);
	for_parcels(pipe, count_place);
	for (uint32_t i = 0; i < pipe->nparcel_lines; i++) {
		struct hd_parcel_line *line = &pipe->parcel_line[i];
		line->at = hd_arena_take(arena, line->n, sizeof *line->at);
		line->stage = hd_arena_take(arena, line->n, sizeof *line->stage);
		line->out.cap = line->sends ? HD_CREDITS : 0;
		line->out.free = hd_arena_take(arena, HD_CREDITS, sizeof *line->out.free);
		if (!line->at || !line->stage || !line->out.free)
			return no_memory(diag);
	}
	for_parcels(pipe, write_place);
	for (uint32_t s = 0; s < pipe->nstages; s++)
		for (int phase = HD_RUN_F; phase <= HD_RUN_W; phase++) {
			const uint32_t n = pipe->stage[s].tensor.parcels[phase].n;
			nhere = n > nhere ? n : nhere;
		}
	for (uint32_t r = 0; r < pipe->nranks && !err; r++) {
		pipe->turn[r].here = hd_arena_take(arena, (size_t)nhere + 1, sizeof *pipe->turn[r].here);
		err = pipe->turn[r].here ? HD_OK : no_memory(diag);
	}
	return err;
}

/* ---- memory ---- */

/* Buffers of a line at one worker: of the sender, then, where that is another worker's, the receiver. */
static uint32_t nbuffers(const struct hd_parcel_line *line)
{
	return HD_CREDITS * (line->sends || line->takes);
}

static uint32_t home_of(const struct hd_pipe *pipe, const struct hd_parcel_line *line)
{
	return pipe->device_of[line->sends ? line->from : line->to];
}

uint64_t hd_parcel_bytes(const struct hd_pipe *pipe, uint32_t device)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < pipe->nparcel_lines; i++)
		if (home_of(pipe, &pipe->parcel_line[i]) == device)
			bytes += nbuffers(&pipe->parcel_line[i]) * pipe->parcel_line[i].bytes;
	return bytes;
}

uint32_t hd_parcel_letters(const struct hd_pipe *pipe)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < pipe->nparcel_lines; i++)
		n += pipe->parcel_line[i].sends != pipe->parcel_line[i].takes ? pipe->parcel_line[i].n : 0;
	return n;
}

enum hd_err hd_parcel_take(struct hd_pipe *pipe, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < pipe->nparcel_lines && !err; i++) {
		struct hd_parcel_line *line = &pipe->parcel_line[i];
		struct hd_device *device = pipe->worker->rank[home_of(pipe, line)].device;
		for (line->nmemory = 0; line->nmemory < nbuffers(line) && !err; line->nmemory += !err) {
			void *at = NULL;
			err = device->ops->take(device, line->bytes, &at, diag);
			if (err)
				break;
			line->memory[line->nmemory] = at;
			if (line->sends)
				line->out.free[line->out.nfree++] = at;
			else
				line->in[line->nmemory].bytes = at;
		}
		line->nout = line->sends ? line->nmemory : 0;
	}
	return err;
}

void hd_parcel_give(struct hd_pipe *pipe)
{
	for (uint32_t i = 0; i < pipe->nparcel_lines; i++) {
		struct hd_parcel_line *line = &pipe->parcel_line[i];
		struct hd_device *device = pipe->worker->rank[home_of(pipe, line)].device;
		if (line->sends && !line->takes)
			hd_post_await(pipe, &line->out, line->nout);
		for (; line->nmemory; line->nmemory--)
			device->ops->give(device, line->memory[line->nmemory - 1], line->bytes);
		line->out.nfree = line->nout = 0;
	}
}

void hd_parcel_void(struct hd_pipe *pipe)
{
	for (uint32_t i = 0; i < pipe->nparcel_lines; i++) {
		struct hd_parcel_line *line = &pipe->parcel_line[i];
		for (line->out.nfree = 0; line->out.nfree < line->nout; line->out.nfree++)
			line->out.free[line->out.nfree] = line->memory[line->out.nfree];
	}
}

size_t hd_parcel_list(const struct hd_pipe *pipe, uint16_t peer, bool send, struct hd_dist_letter *letter)
{
	size_t n = 0;

	for (uint32_t i = 0; i < pipe->nparcel_lines; i++) {
		const struct hd_parcel_line *line = &pipe->parcel_line[i];
		if (line->sends == line->takes || line->sends != send ||
			pipe->plan->worker[send ? line->to : line->from] != peer)
			continue;
		for (uint32_t k = 0; k < line->n; k++)
			if (letter)
				letter[n + k] = hd_parcel_letter(pipe, line, k);
		n += line->n;
	}
	return n;
}
