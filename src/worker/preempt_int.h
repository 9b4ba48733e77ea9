/* preempt_int.h -- what the two ends of the bench share (private to preempt*.c). */
#ifndef HD_WORKER_PREEMPT_INT_H
#define HD_WORKER_PREEMPT_INT_H

#include "sys/memory.h"
#include "worker/ends.h"
#include "worker/preempt.h"

enum {
	ID_BULK, ID_URGENT, ID_LAYERS, LAYERS = 32, IDS = ID_LAYERS + LAYERS,
	STEPS = 6,                        /* of state and gaps */
	PLAYS = 11,
	NEAR_ID = HD_END_NEAR, FAR_ID = HD_END_FAR,
	SAYS_READY = HD_TELL_FIRST_ID,    /* far to near, step: this play may begin */
	SAYS_STEP,                        /* far to near: all of a step is here */
	SAYS_OVER,                        /* near to far: no play follows */
};

enum how { ALONE, FIFO, TIMED };
struct play { enum hd_preempt_case what; enum how how; };
extern const struct play preempt_plays[PLAYS];

/* What is urgent, by its number; of bulk the least. */
static inline int32_t preempt_urgency(uint32_t id) { return id == ID_BULK ? 1000 : id == ID_URGENT ? -1 :
	(int32_t)(id - ID_LAYERS); }
/* Of a layer: of unequal lengths, an eighth of the bulk in all. */
static inline uint64_t preempt_len(const struct hd_preempt_spec *spec, uint32_t id)
{
	if (id < ID_LAYERS)
		return id == ID_BULK ? spec->bulk : spec->urgent;
	return spec->bulk / 8 * (1 + (id - ID_LAYERS) * 5 % 8) / (LAYERS / 8 * 36) + 1;
}
static inline uint64_t preempt_layers(const struct hd_preempt_spec *spec)
{
	uint64_t sum = 0;

	for (uint32_t id = ID_LAYERS; id < IDS; id++)
		sum += preempt_len(spec, id);
	return sum;
}

/* One end's bytes of all transfers, one after the other. */
struct preempt_bytes { struct hd_memory all; uint8_t *at[IDS]; };

/* Of every round. */
struct preempt_figures {
	double urgent[PLAYS][HD_PREEMPT_ROUNDS], whole[PLAYS][HD_PREEMPT_ROUNDS], share[PLAYS];
	uint64_t inversions[PLAYS], preempted[PLAYS], aged[PLAYS];
};

struct preempt {
	const struct hd_preempt_spec *spec;
	struct hd_ends ends;
	/* by the far end, of the play at hand; read after SAYS_READY of the next or SAYS_STEP */
	_Atomic int64_t arrived_ns[IDS];
	struct preempt_bytes bytes[2];
	struct preempt_figures *figures;
};

HD_MUST_USE enum hd_err preempt_take_bytes(struct preempt *p, uint32_t me);

/* Threads' whole lives. */
void preempt_far(void *preempt);
void preempt_near(void *preempt);

#endif
