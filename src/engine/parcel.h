/* parcel.h -- what the groups of a rank send one another inside a turn (graph/parcels.h). Private to the
 * room.
 *
 * The devices that share a stage's shards may be groups, each a rank of the plan and mostly on a worker of
 * its own (plan/plan.h, rule 5). Their lists are one list, so each instruction of it is a turn of all groups:
 * each runs its own nodes of the phase, and parcels bring it what it reads of the others.
 *
 * A *line*: all parcels of a step from one device to one group, in the order of the list and of the device's
 * steps. A device sends in that order.
 *
 * 1. A line has HD_CREDITS buffers at each end that is of this worker; one where both ends are. The sender
 *    waits for a free one, fills it, hands it to the wire (post.h) or to the other rank. The receiver offers
 *    its buffers for the first parcels of the line that it has not read.
 * 2. What comes is copied to the arena of the turn that it is of as soon as that is open, whatever the
 *    devices run (graph/parcels.h, rule 3); before that it stays in its buffer.
 * 3. A turn ends when all parcels to the group have come. So no turn leaves anything behind, and a parcel is
 *    of the turn at hand or of a later one.
 * 4. No list that the checker accepts can deadlock. Order the turns as they stand in the lists, and places
 *    within one as they stand in the order of nodes. Whoever waits for a parcel waits for an earlier place.
 *    Whoever waits for a buffer waits for a group that has not opened this turn yet: an earlier place. And
 *    whoever waits for mail waits as the checker has proved.
 * 5. A virtual node without rows has no turn and no parcels, at all ends alike.
 *
 * Ownership: tables lie in the arena given; buffers are of devices. Threads: the turn of a rank (tensor.h) is
 * locked by whoever changes what its lines hold; free buffers are under the lock of the post. */
#ifndef HD_ENGINE_PARCEL_H
#define HD_ENGINE_PARCEL_H

#include "pipeline/schedule_check.h"
#include "engine/pipe.h"

struct hd_dist_letter;

enum { HD_MAX_PARCELS = 1 << 28 };        /* numbers of a step: stages x virtual nodes x numbers of a stage */

struct hd_parcel_place { uint32_t vn, number; };  /* number: of the stage's parcels, all instructions */

struct hd_parcel_line {
	uint32_t from, to;                /* ranks of the plan */
	uint8_t device;                   /* of the t: it sends */
	bool sends, takes;                /* which ends are of this worker */
	struct hd_parcel_place *at; uint16_t *stage; uint32_t n;       /* in order; stages of the receiver */
	uint64_t bytes;                   /* the most of a parcel */
	struct hd_mail_pool out;          /* free buffers to send */
	uint8_t *memory[2 * HD_CREDITS]; uint32_t nmemory, nout;       /* the first nout are of `out` */
	/* of the receiver, under the lock of its turn, the first place that is not offered yet; of the sender
	 * the first that is not sent yet */
	uint32_t next;
	/* under the lock of the receiver's turn: buffers that are offered or hold what came */
	struct { uint8_t *bytes; uint32_t place; bool here; } in[HD_CREDITS];
};

/* How many numbers the parcels of a stage have, all instructions of a virtual node together. */
uint32_t hd_parcels_numbers(const struct hd_pipe_stage *stage);

HD_MUST_USE enum hd_err hd_parcel_lines(struct hd_pipe *pipe, struct hd_arena *arena, struct hd_diag *diag);
uint64_t hd_parcel_bytes(const struct hd_pipe *pipe, uint32_t device);
uint32_t hd_parcel_letters(const struct hd_pipe *pipe);        /* of a step, to and from other workers */
HD_MUST_USE enum hd_err hd_parcel_take(struct hd_pipe *pipe, struct hd_diag *diag);
void hd_parcel_give(struct hd_pipe *pipe);
void hd_parcel_void(struct hd_pipe *pipe);                     /* under the post's lock: nothing is lent */
size_t hd_parcel_list(const struct hd_pipe *pipe, uint16_t peer, bool send, struct hd_dist_letter *letter);

void hd_parcel_begin(struct hd_pipe *pipe);                    /* of a step: first buffers are offered */

/* The lead opened a turn, whose lock is held: what has come for it goes to its arena. */
void hd_parcel_open(struct hd_rank *rank, struct hd_tensor_turn *turn);
/* Are the parcels that a step needs here? All those of the turn? The turn's lock is held. */
bool hd_parcel_here(const struct hd_pipe *pipe, const struct hd_tensor_turn *turn, uint32_t device,
	uint32_t step);
bool hd_parcel_all(const struct hd_pipe *pipe, const struct hd_tensor_turn *turn);
/* A step is done: what it made leaves. `bind` is the device's. Ends early when the pipe is fenced. */
void hd_parcel_send(struct hd_rank *rank, struct hd_tensor_turn *turn, uint32_t device, uint32_t step,
	const struct hd_bind *bind);
/* The thread of the wire: it came. false: no turn waits for it. */
bool hd_parcel_arrived(struct hd_pipe *pipe, const struct hd_dist_letter *letter);

#endif
