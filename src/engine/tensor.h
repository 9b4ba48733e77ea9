/* tensor.h -- the devices of one rank run the nodes of a stage together. Private to the room.
 *
 * A rank of a plan may be t devices (plan/plan.h). All walk its list. The first one, the *lead*, does what a
 * rank of one device does: rows, arenas, mail, what a virtual node says. Where an instruction runs a phase of
 * a stage, the lead opens a *turn*, and each device runs its own nodes (device/program.h, graph/tensor.h) in
 * the arena of the cell, step by step: it waits until what a step reads is made, runs it, and says so.
 *
 * 1. A turn ends when all devices have run their nodes. So between two phases no device is behind, and what
 *    is in the arena is the lead's again.
 * 2. Nodes that make gradients fold them; each gradient is made by one device, and always by the same.
 * 3. A virtual node without rows has no turn: each device knows that by itself.
 * 4. Waits are conditions under one lock, never polls. A fence of the pipe ends them all: a device that fails
 *    fences, the others leave the turn, and the lead leaves it as the last of those that came.
 * 5. At the end of a step each device updates a part of the chunks that its rank owns.
 * 6. The devices that share a stage's shards may be groups on several workers, each a rank of the plan
 *    (parcel.h). Then a device waits for those of its own group as above, and for parcels of the others; a
 *    rank of one device has turns, too; and a turn ends when all parcels to the group have come.
 *
 * Ownership: in the pipe. Threads: those of the rank's devices. */
#ifndef HD_ENGINE_TENSOR_H
#define HD_ENGINE_TENSOR_H

#include "sys/lock.h"
#include "engine/rank.h"

struct hd_pipe;
struct hd_pipe_stage;

/* One a rank of several devices; all under the lock. */
struct hd_tensor_turn {
	struct hd_lock lock;
	struct hd_cond cond;
	uint32_t number;                  /* of turns that were opened in this step */
	uint32_t inside, missing;         /* devices besides the lead: that run; that have not run it yet */
	const struct hd_bind *bind;       /* the lead's, while the turn is open */
	uint32_t done[HD_MAX_TENSOR];     /* nodes of each device's list that are; by devices of all groups */
	uint32_t taken[HD_MAX_TENSOR];    /* turns that each device of the rank has run */
	/* while it is open: what runs; the numbers of its parcels, which are here, how many are missing */
	uint32_t stage, vn;
	uint8_t op;
	enum hd_run_phase phase;
	uint32_t first_number, nnumbers, nawaited;
	uint8_t *here;
};

/* Which of its rank's devices one is; 0 of one without a rank. */
uint32_t hd_tensor_member(const struct hd_pipe *pipe, const struct hd_rank *rank);

/* Do ranks of this pipe run in turns? */
bool hd_tensor_turns(const struct hd_pipe *pipe);
/* The lead: one phase of a stage, by all devices of the rank. */
HD_MUST_USE enum hd_err hd_tensor_run(struct hd_rank *rank, const struct hd_ins *ins, enum hd_run_phase phase,
	const struct hd_bind *bind, struct hd_diag *diag);
/* Another device: its part of the lead's next turn. */
HD_MUST_USE enum hd_err hd_tensor_follow(struct hd_rank *rank, uint32_t stage, enum hd_run_phase phase,
	struct hd_diag *diag);

void hd_tensor_clear(struct hd_pipe *pipe);        /* no turn was opened yet: before a step */
void hd_tensor_wake(struct hd_pipe *pipe);         /* waits look again: the pipe is fenced */
HD_MUST_USE enum hd_err hd_tensor_make(struct hd_pipe *pipe, struct hd_arena *arena, struct hd_diag *diag);
void hd_tensor_open(struct hd_pipe *pipe);         /* locks, when memory is taken; and given back */
void hd_tensor_close(struct hd_pipe *pipe);

#endif
