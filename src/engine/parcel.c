#include "engine/parcel.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "plan/xfer.h"
#include "engine/parcel_int.h"
#include "engine/post.h"
#include "engine/worker_int.h"

/* Parcels of a step: sent, come, copied to where they are read. Locks are taken in this order: a turn, the
 * post. */

static bool is_fenced(const struct hd_pipe *pipe)
{
	return atomic_load_explicit(&pipe->fenced, memory_order_acquire);
}

static bool has_rows(const struct hd_pipe *pipe, uint32_t vn)
{
	const struct hd_worker *w = pipe->worker;
	uint64_t first, end;

	hd_vn_rows(w->task->job->per_vn, w->step->rows, vn, &first, &end);
	return end > first;
}

struct hd_dist_letter hd_parcel_letter(const struct hd_pipe *pipe, const struct hd_parcel_line *line,
	uint32_t place)
{
	const struct hd_pipe_stage *stage = &pipe->stage[line->stage[place]];
	int phase;
	const struct hd_parcel *parcel = hd_parcel_of(stage, line->at[place].number, &phase);

	return (struct hd_dist_letter){ .kind = HD_XFER_SHARDS, .send = line->sends,
		.stage = line->stage[place], .vn = line->at[place].vn, .number = line->at[place].number,
		.from = pipe->plan->worker[line->from], .to = pipe->plan->worker[line->to],
		.len = hd_parcel_len(stage, parcel) };
}

/* ---- taking ---- */

/* The next places of the line, as long as there are buffers: under the turn's lock. */
static void offer(struct hd_pipe *pipe, struct hd_parcel_line *line)
{
	struct hd_post *post = pipe->worker->post;
	bool any = false;

	for (uint32_t i = 0; i < HD_CREDITS && !line->sends; i++) {
		while (line->next < line->n && !has_rows(pipe, line->at[line->next].vn))
			line->next++;
		if (line->in[i].place != HD_NONE || line->next == line->n)
			continue;
		line->in[i].place = line->next++;
		line->in[i].here = false;
		struct hd_dist_letter letter = hd_parcel_letter(pipe, line, line->in[i].place);
		letter.bytes = line->in[i].bytes;
		letter.send = false;
		hd_lock_take(&post->lock);
		hd_post_queue(post, &letter);
		hd_lock_give(&post->lock);
		any = true;
	}
	if (any)
		hd_post_call(pipe->worker);
}

void hd_parcel_begin(struct hd_pipe *pipe)
{
	for (uint32_t i = 0; i < pipe->nparcel_lines; i++) {
		struct hd_parcel_line *line = &pipe->parcel_line[i];
		line->next = 0;
		if (!line->takes)
			continue;
		for (line->out.nfree = 0; line->sends && line->out.nfree < line->nout; line->out.nfree++)
			line->out.free[line->out.nfree] = line->memory[line->out.nfree];
		struct hd_tensor_turn *turn = &pipe->turn[line->to];
		hd_lock_take(&turn->lock);
		for (uint32_t k = 0; k < HD_CREDITS; k++)
			line->in[k].place = HD_NONE;
		offer(pipe, line);
		hd_lock_give(&turn->lock);
	}
}

static void copy(const struct hd_pipe_stage *stage, const struct hd_parcel *parcel,
	const struct hd_bind *bind, uint8_t *bytes, bool out)
{
	const struct hd_program *program = &stage->tensor.whole;

	for (uint32_t i = 0; i < parcel->n; i++) {
		const struct hd_value *value = &program->graph->value[parcel->value[i]];
		void *at = hd_program_value(program, bind, parcel->value[i]);
		const uint64_t len = hd_value_bytes(value, bind->rows);
		if (out)
			memcpy(bytes, at, len);
		else
			memcpy(at, bytes, len);
		bytes += hd_parcel_step(hd_value_bytes(value, program->part_rows));
	}
}

/* Is that place of the line of the turn at hand? */
static bool is_of(const struct hd_tensor_turn *turn, const struct hd_parcel_line *line, uint32_t place)
{
	return turn->bind && line->stage[place] == turn->stage && line->at[place].vn == turn->vn &&
		line->at[place].number - turn->first_number < turn->nnumbers;
}

/* Under the turn's lock. */
static void read_in(struct hd_pipe *pipe, struct hd_tensor_turn *turn, const struct hd_parcel_line *line,
	uint32_t place, uint8_t *bytes)
{
	const struct hd_pipe_stage *stage = &pipe->stage[turn->stage];
	const uint32_t i = line->at[place].number - turn->first_number;

	assert(!turn->here[i] && turn->nawaited);
	copy(stage, &stage->tensor.parcels[turn->phase].at[i], turn->bind, bytes, false);
	turn->here[i] = 1;
	turn->nawaited--;
	hd_cond_wake(&turn->cond);
}

/* A buffer of the line was read: under the turn's lock. */
static void let_go(struct hd_pipe *pipe, struct hd_parcel_line *line, uint32_t i)
{
	struct hd_post *post = pipe->worker->post;

	line->in[i].place = HD_NONE;
	if (!line->sends) {
		offer(pipe, line);
		return;
	}
	hd_lock_take(&post->lock);
	assert(line->out.nfree < line->out.cap);
	line->out.free[line->out.nfree++] = line->in[i].bytes;
	hd_cond_wake(&post->cond);
	hd_lock_give(&post->lock);
}

void hd_parcel_open(struct hd_rank *rank, struct hd_tensor_turn *turn)
{
	struct hd_pipe *pipe = rank->pipe;
	const uint32_t me = pipe->rank_of[rank->id];
	const struct hd_pipe_stage *stage = &pipe->stage[turn->stage];
	const struct hd_parcels *all = &stage->tensor.parcels[turn->phase];

	turn->first_number = hd_parcel_first(stage, turn->op);
	turn->nnumbers = all->n;
	turn->nawaited = 0;
	for (uint32_t i = 0; i < all->n; i++) {
		turn->here[i] = 0;
		turn->nawaited += all->at[i].to == stage->group;
	}
	for (uint32_t k = 0; k < pipe->nparcel_lines; k++) {
		struct hd_parcel_line *line = &pipe->parcel_line[k];
		if (!line->takes || line->to != me)
			continue;
		/* a buffer that is let go may be offered again, never with something in it */
		for (uint32_t i = 0; i < HD_CREDITS; i++)
			if (line->in[i].place != HD_NONE && line->in[i].here && is_of(turn, line,
				line->in[i].place)) {
				read_in(pipe, turn, line, line->in[i].place, line->in[i].bytes);
				let_go(pipe, line, i);
			}
	}
}

bool hd_parcel_here(const struct hd_pipe *pipe, const struct hd_tensor_turn *turn, uint32_t device,
	uint32_t step)
{
	const struct hd_parcels *all = &pipe->stage[turn->stage].tensor.parcels[turn->phase];
	const struct hd_parcel_needs *needs = pipe->groups > 1 ? &all->needs[device][step] : NULL;

	for (uint32_t i = 0; needs && i < needs->n; i++)
		if (!turn->here[needs->parcel[i]])
			return false;
	return true;
}

bool hd_parcel_all(const struct hd_pipe *pipe, const struct hd_tensor_turn *turn)
{
	return pipe->groups == 1 || turn->nawaited == 0;
}

/* What came in buffer i of the line: read, if its turn is open, else kept. Under the turn's lock. */
static void take_in(struct hd_pipe *pipe, struct hd_tensor_turn *turn, struct hd_parcel_line *line,
	uint32_t i)
{
	line->in[i].here = true;
	if (!is_of(turn, line, line->in[i].place))
		return;
	read_in(pipe, turn, line, line->in[i].place, line->in[i].bytes);
	let_go(pipe, line, i);
}

bool hd_parcel_arrived(struct hd_pipe *pipe, const struct hd_dist_letter *letter)
{
	bool is = false;

	for (uint32_t k = 0; k < pipe->nparcel_lines && !is; k++) {
		struct hd_parcel_line *line = &pipe->parcel_line[k];
		if (!line->takes || line->sends)
			continue;
		struct hd_tensor_turn *turn = &pipe->turn[line->to];
		hd_lock_take(&turn->lock);
		for (uint32_t i = 0; i < HD_CREDITS && !is; i++) {
			const uint32_t at = line->in[i].place;
			is = at != HD_NONE && !line->in[i].here && line->in[i].bytes == letter->bytes &&
				line->stage[at] == letter->stage && line->at[at].vn == letter->vn &&
				line->at[at].number == letter->number;
			if (is)
				take_in(pipe, turn, line, i);
		}
		hd_lock_give(&turn->lock);
	}
	return is;
}

/* ---- sending ---- */

static uint8_t *buffer_of(struct hd_pipe *pipe, struct hd_parcel_line *line)
{
	struct hd_post *post = pipe->worker->post;
	uint8_t *buffer = NULL;

	hd_lock_take(&post->lock);
	while (line->out.nfree == 0 && !is_fenced(pipe))
		hd_post_wait(pipe->worker);
	if (!is_fenced(pipe))
		buffer = line->out.free[--line->out.nfree];
	hd_lock_give(&post->lock);
	return buffer;
}

/* To another rank of this worker. */
static void hand_over(struct hd_pipe *pipe, struct hd_parcel_line *line, uint32_t place, uint8_t *buffer)
{
	struct hd_tensor_turn *turn = &pipe->turn[line->to];
	uint32_t i = 0;

	hd_lock_take(&turn->lock);
	while (line->in[i].place != HD_NONE) {
		i++;
		assert(i < HD_CREDITS);   /* as many buffers */
	}
	line->in[i].place = place;
	line->in[i].bytes = buffer;
	take_in(pipe, turn, line, i);
	hd_lock_give(&turn->lock);
}

/* A device sends in the order of the line, which has places of empty virtual nodes, too. */
static uint32_t place_of(struct hd_parcel_line *line, uint32_t stage, uint32_t vn, uint32_t number)
{
	while (line->stage[line->next] != stage || line->at[line->next].vn != vn ||
		line->at[line->next].number != number) {
		line->next++;
		assert(line->next < line->n);
	}
	return line->next++;
}

static void send_one(struct hd_pipe *pipe, const struct hd_tensor_turn *turn, struct hd_parcel_line *line,
	const struct hd_parcel *parcel, uint32_t number, const struct hd_bind *bind)
{
	const struct hd_pipe_stage *stage = &pipe->stage[turn->stage];
	const uint32_t to = turn->stage - stage->group + parcel->to;
	struct hd_post *post = pipe->worker->post;
	uint8_t *buffer = buffer_of(pipe, line);

	if (!buffer)
		return;
	copy(stage, parcel, bind, buffer, true);
	const uint32_t place = place_of(line, to, turn->vn, number);
	if (line->takes) {
		hand_over(pipe, line, place, buffer);
		return;
	}
	struct hd_dist_letter letter = hd_parcel_letter(pipe, line, place);
	letter.bytes = buffer;
	letter.line = &line->out;
	hd_lock_take(&post->lock);
	hd_post_queue(post, &letter);
	hd_lock_give(&post->lock);
	hd_post_call(pipe->worker);
}

static struct hd_parcel_line *line_of(struct hd_pipe *pipe, uint32_t from, uint8_t device, uint32_t to)
{
	uint32_t i = 0;

	while (pipe->parcel_line[i].from != from || pipe->parcel_line[i].device != device ||
		pipe->parcel_line[i].to != to) {
		i++;
		assert(i < pipe->nparcel_lines);
	}
	return &pipe->parcel_line[i];
}

void hd_parcel_send(struct hd_rank *rank, struct hd_tensor_turn *turn, uint32_t device, uint32_t step,
	const struct hd_bind *bind)
{
	struct hd_pipe *pipe = rank->pipe;
	const uint32_t me = pipe->rank_of[rank->id];
	const struct hd_pipe_stage *stage = &pipe->stage[turn->stage];
	const struct hd_parcels *all = &stage->tensor.parcels[turn->phase];

	if (pipe->groups == 1)
		return;
	for (uint32_t i = all->first[device][step]; i < all->first[device][step + 1] &&
		!is_fenced(pipe); i++) {
		const struct hd_parcel *parcel = &all->at[i];
		send_one(pipe, turn, line_of(pipe, me, parcel->device, me - stage->group + parcel->to),
			parcel,
			turn->first_number + i, bind);
	}
}
