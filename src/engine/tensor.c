#include "engine/tensor.h"

#include <assert.h>
#include <string.h>

#include "engine/overlap.h"
#include "engine/parcel.h"
#include "engine/worker_int.h"

/* a wake-up is sent; the look is only the bound that every wait has */
enum { LOOK_NS = 1000000000 };

static int64_t in_a_while(const struct hd_rank *rank)
{
	return hd_clock_now_ns(&rank->worker->clock) + LOOK_NS;
}

static bool is_fenced(const struct hd_pipe *pipe)
{
	return atomic_load_explicit(&pipe->fenced, memory_order_acquire);
}

static struct hd_tensor_turn *turn_of(const struct hd_pipe *pipe, const struct hd_rank *rank)
{
	return &pipe->turn[pipe->rank_of[rank->id]];
}

uint32_t hd_tensor_member(const struct hd_pipe *pipe, const struct hd_rank *rank)
{
	const uint32_t of = pipe->rank_of[rank->id];

	return of == HD_NONE ? 0 : rank->id - pipe->device_of[of];
}

bool hd_tensor_turns(const struct hd_pipe *pipe) { return pipe->width > 1 || pipe->groups > 1; }

/* Which of all devices of its stage, in all groups. */
static uint32_t device_in(const struct hd_pipe *pipe, const struct hd_rank *rank, uint32_t stage)
{
	return pipe->stage[stage].group * pipe->width + hd_tensor_member(pipe, rank);
}

/* ---- one device's part ---- */

/* Is all that a step waits for made, and here? */
static bool may_begin(const struct hd_pipe *pipe, const struct hd_tensor_turn *turn, uint32_t device,
	uint32_t istep, const struct hd_tensor_step *step)
{
	const uint32_t first = device / pipe->width * pipe->width;

	for (uint32_t j = first; j < first + pipe->width; j++)
		if (turn->done[j] < step->after[j])
			return false;
	return hd_parcel_here(pipe, turn, device, istep);
}

/* false: fenced */
static bool await_step(const struct hd_rank *rank, struct hd_tensor_turn *turn, uint32_t device,
	uint32_t istep, const struct hd_tensor_step *step)
{
	bool may = false;

	hd_lock_take(&turn->lock);
	while (!is_fenced(rank->pipe) && !(may = may_begin(rank->pipe, turn, device, istep, step)))
		hd_cond_wait(&turn->cond, &turn->lock, in_a_while(rank));
	hd_lock_give(&turn->lock);
	return may;
}

static void say_done(struct hd_tensor_turn *turn, uint32_t device, uint32_t n)
{
	hd_lock_take(&turn->lock);
	turn->done[device] = n;
	hd_cond_wake(&turn->cond);
	hd_lock_give(&turn->lock);
}

static enum hd_err run_step(struct hd_rank *rank, const struct hd_pipe_stage *stage, uint32_t device,
	enum hd_run_phase phase, const struct hd_tensor_step *step, struct hd_bind *bind,
	struct hd_diag *diag)
{
	const struct hd_program *program = &stage->tensor.part[device];
	uint64_t token = 0;

	bind->from = step->from;
	bind->to = step->to;
	if (bind->ran)                    /* each device says what it has made */
		hd_values_watch(rank, (uint16_t)(stage - rank->pipe->stage), stage->node_of, bind);
	enum hd_err err = rank->device->ops->run(rank->device, program, phase, bind, &token, diag);
	err = err ? err : rank->device->ops->wait(rank->device, token, diag);
	if (!err && stage->node_ns)
		hd_rank_pace_nodes(rank, stage->node_ns, program, phase, bind);
	return err;
}

/* The failed flag is set before the fence is: whoever sees the one sees the other. */
static enum hd_err run_part(struct hd_rank *rank, struct hd_tensor_turn *turn, uint32_t istage,
	enum hd_run_phase phase, const struct hd_bind *of_lead, struct hd_diag *diag)
{
	const struct hd_pipe_stage *stage = &rank->pipe->stage[istage];
	const uint32_t device = device_in(rank->pipe, rank, istage);
	const struct hd_tensor_list *list = &stage->tensor.list[phase][device];
	struct hd_bind bind = *of_lead;
	enum hd_err err = HD_OK;

	bind.temp = rank->pool->temp;
	for (uint32_t i = 0; i < list->nsteps && !err; i++) {
		if (!await_step(rank, turn, device, i, &list->step[i]))
			return HD_OK;             /* the device that failed has said why */
		err = run_step(rank, stage, device, phase, &list->step[i], &bind, diag);
		if (err)
			break;
		hd_parcel_send(rank, turn, device, i, &bind);
		say_done(turn, device, list->step[i].to);
	}
	if (err) {
		hd_rank_fail(rank, err);
		hd_overlap_fence(rank->worker->step->work);
	}
	return err;
}

/* ---- turns ---- */

static void open_turn(struct hd_rank *rank, struct hd_tensor_turn *turn, const struct hd_ins *ins,
	enum hd_run_phase phase, const struct hd_bind *bind)
{
	hd_lock_take(&turn->lock);
	assert(turn->inside == 0 && turn->missing == 0);
	memset(turn->done, 0, sizeof turn->done);
	turn->bind = bind;
	turn->stage = ins->stage;
	turn->vn = ins->vn;
	turn->op = ins->op;
	turn->phase = phase;
	turn->missing = rank->pipe->width - 1;
	turn->number++;
	if (rank->pipe->groups > 1)
		hd_parcel_open(rank, turn);
	hd_cond_wake(&turn->cond);
	hd_lock_give(&turn->lock);
}

/* Behind a fence no further device comes in, so those that have are all there are. */
static void close_turn(const struct hd_rank *rank, struct hd_tensor_turn *turn)
{
	hd_lock_take(&turn->lock);
	while (turn->inside || ((turn->missing || !hd_parcel_all(rank->pipe, turn)) &&
		!is_fenced(rank->pipe)))
		hd_cond_wait(&turn->cond, &turn->lock, in_a_while(rank));
	turn->missing = 0;
	turn->bind = NULL;
	hd_lock_give(&turn->lock);
}

enum hd_err hd_tensor_run(struct hd_rank *rank, const struct hd_ins *ins, enum hd_run_phase phase,
	const struct hd_bind *bind, struct hd_diag *diag)
{
	struct hd_tensor_turn *turn = turn_of(rank->pipe, rank);

	open_turn(rank, turn, ins, phase, bind);
	enum hd_err err = run_part(rank, turn, ins->stage, phase, bind, diag);
	close_turn(rank, turn);
	return err;
}

/* The lead's bind; NULL: fenced. */
static const struct hd_bind *enter(const struct hd_rank *rank, struct hd_tensor_turn *turn, uint32_t member)
{
	const struct hd_bind *bind = NULL;

	hd_lock_take(&turn->lock);
	while (turn->number == turn->taken[member] && !is_fenced(rank->pipe))
		hd_cond_wait(&turn->cond, &turn->lock, in_a_while(rank));
	if (!is_fenced(rank->pipe)) {
		assert(turn->number == turn->taken[member] + 1 && turn->bind);
		turn->taken[member]++;
		turn->inside++;
		bind = turn->bind;
	}
	hd_lock_give(&turn->lock);
	return bind;
}

static void leave(struct hd_tensor_turn *turn)
{
	hd_lock_take(&turn->lock);
	turn->inside--;
	turn->missing--;
	hd_cond_wake(&turn->cond);
	hd_lock_give(&turn->lock);
}

enum hd_err hd_tensor_follow(struct hd_rank *rank, uint32_t stage, enum hd_run_phase phase,
	struct hd_diag *diag)
{
	struct hd_tensor_turn *turn = turn_of(rank->pipe, rank);
	const struct hd_bind *bind = enter(rank, turn, hd_tensor_member(rank->pipe, rank));

	if (!bind)
		return HD_OK;
	enum hd_err err = run_part(rank, turn, stage, phase, bind, diag);
	leave(turn);
	return err;
}

/* ---- their memory ---- */

void hd_tensor_clear(struct hd_pipe *pipe)
{
	for (uint32_t r = 0; r < pipe->nranks && hd_tensor_turns(pipe); r++) {
		pipe->turn[r].number = pipe->turn[r].inside = pipe->turn[r].missing = 0;
		pipe->turn[r].bind = NULL;
		memset(pipe->turn[r].taken, 0, sizeof pipe->turn[r].taken);
	}
}

void hd_tensor_wake(struct hd_pipe *pipe)
{
	for (uint32_t r = 0; r < pipe->nranks && hd_tensor_turns(pipe); r++) {
		hd_lock_take(&pipe->turn[r].lock);
		hd_cond_wake(&pipe->turn[r].cond);
		hd_lock_give(&pipe->turn[r].lock);
	}
}

enum hd_err hd_tensor_make(struct hd_pipe *pipe, struct hd_arena *arena, struct hd_diag *diag)
{
	if (!hd_tensor_turns(pipe))
		return HD_OK;
	pipe->turn = hd_arena_take(arena, pipe->nranks, sizeof *pipe->turn);
	return pipe->turn ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for ranks of %u devices",
		pipe->width);
}

void hd_tensor_open(struct hd_pipe *pipe)
{
	for (uint32_t r = 0; r < pipe->nranks && hd_tensor_turns(pipe); r++) {
		hd_lock_init(&pipe->turn[r].lock);
		hd_cond_init(&pipe->turn[r].cond);
	}
}

void hd_tensor_close(struct hd_pipe *pipe)
{
	for (uint32_t r = 0; r < pipe->nranks && hd_tensor_turns(pipe); r++) {
		hd_cond_finish(&pipe->turn[r].cond);
		hd_lock_finish(&pipe->turn[r].lock);
	}
}
