/* shadow.h -- what a rank holds of the stage that follows its own, as lists with shadows keep it current
 * (pipeline/redundancy.h). Private to the room.
 *
 * The users are pipe.c, which runs the instructions, and pipe_make.c. In one process the owner of a stage and
 * the rank that shadows it are devices of one worker, and the store has one copy of the state; a shadow has
 * another one: parameters and optimizer slots of all that the stage reads, in a store of its own. So owner
 * and shadow can be compared, and a shadow can take the owner's place.
 *
 * 1. After every committed step a shadow is the owner's state, bit for bit: TAKE has the reduced gradient,
 *    STEPx is the owner's update on the same bits.
 * 2. A shadow is copied from the owner when a plan is adopted and after the state came from outside, before
 *    the next step begins; never else.
 * 3. In one process sums are made at NORM, where all ranks meet. So SHIP does nothing, and what a list takes
 *    before NORM is copied there before the step is sealed: what commits is held by two ranks.
 * 4. Shadow work has cells and seats of its own (pipe.h). What a rank sends under flag k it keeps in buffers
 *    numbered by virtual node until the next step begins; the forward of a shadow reads it there.
 * 5. Rows of the data stay until the step ends: their last reader is not known before.
 * 6. Refused with the reason: delayed updates, ranks of several devices, a shadow whose stage's state its
 *    worker does not hold.
 * 7. If its owner is of another worker the shadow is what this worker's store holds of the stage: the
 *    exchange brings the sums, and the worker updates what it holds. So SHIP, TAKE and STEPx do nothing.
 *
 * Ownership: tables lie in the arena of the part; memory is the rank's device's, from take to give. Threads:
 * the shadow's rank, during a step. */
#ifndef HD_ENGINE_SHADOW_H
#define HD_ENGINE_SHADOW_H

#include "engine/pipe.h"

struct hd_shadow {
	uint32_t rank, device, stage;     /* of the plan; the rank's; which one it shadows */
	bool far;                         /* rule 7 */
	uint32_t *param, nparams;         /* that the stage reads */
	struct hd_param_store *store;
	float *sum;                       /* flat: the reduced gradient that came (TAKE) */
	double *unit_sumsq[2];            /* [nsegments], for optimizers with norms per tensor */
	bool takes, summed;               /* TAKE stands before NORM; NORM has been */
	uint64_t version, moves;          /* of the state that it has */
	uint64_t ncopies;                 /* rule 2 */
	bool taken;
	bool ended;                       /* its rank was lost, or has become the owner (rest.h) */
};

/* Finds the shadows of this worker's ranks. Takes nothing. HD_E_REFUSED: rule 6. */
HD_MUST_USE enum hd_err hd_shadows_find(struct hd_pipe *pipe, struct hd_arena *arena, struct hd_diag *diag);
/* held: [nbuckets] as in the view; NULL: all. HD_E_REFUSED: rule 6. */
HD_MUST_USE enum hd_err hd_shadows_held(const struct hd_pipe *pipe, const uint8_t *held,
	struct hd_diag *diag);
uint64_t hd_shadows_bytes(const struct hd_pipe *pipe, uint32_t device);
HD_MUST_USE enum hd_err hd_shadows_take(struct hd_pipe *pipe, struct hd_arena *arena, struct hd_diag *diag);
void hd_shadows_give(struct hd_pipe *pipe);
void hd_shadows_begin(struct hd_pipe *pipe);        /* a step begins: rule 2 */

/* Is the bucket one that no stage of this worker reads? What is held of it is a shadow, whatever the lists.
 * `pipe` NULL: no stages, false. */
bool hd_shadow_has(const struct hd_pipe *pipe, uint32_t bucket);
/* Of a rank of the plan; NULL: it has none here. */
struct hd_shadow *hd_shadow_of(const struct hd_pipe *pipe, uint32_t rank);
/* Its state is the stage's from now on: the owner is lost. */
void hd_shadow_becomes(struct hd_worker *worker, const struct hd_shadow *shadow);
void hd_shadow_take(struct hd_rank *rank);          /* TAKE */
void hd_shadow_summed(struct hd_rank *rank);        /* NORM, when all sums are made */
HD_MUST_USE enum hd_err hd_shadow_update(struct hd_rank *rank, struct hd_diag *diag);      /* STEPx */

#endif
