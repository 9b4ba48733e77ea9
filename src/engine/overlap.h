/* overlap.h -- steps of a pipeline that overlap: while ranks end a step, they begin the next one (window.h of
 * pipeline says in which order). Private to the room.
 *
 * There are two pipes (pipe.h): of the step at hand and of the step to come; at a step's beginning they
 * change places. So a step is sealed, updated and committed as ever, and what was begun of the next is no
 * state: it is forgotten where the step is not the next after all, and computed again.
 *
 * 1. A parameter that learns is late (delays.h), or rule 4 is for it: what step t + 1 reads is there when
 *    step t begins. Before STEP of step t it lies in one vector (store.h, rule 6), after it in another. All
 *    ranks meet before STEP, so what is read is the same either way.
 * 2. Each pipe has arenas, mail and flat vectors of its own.
 * 3. Running statistics would be said before their step, names of samples too: jobs with them do not overlap.
 * 4. Parameters of the last stage may be read as the step at hand makes them (`stash`): that stage updates
 *    before the norm (eager.h).
 * 5. Of several workers all run lists of the same kind in a step: the caller of begin() says which
 *    (hd_dist_overlap()). Mail of both steps is on its way at once (post.h, rule 7), and what comes for the
 *    step to come is taken between the two as well.
 *
 * 6. Between two steps flat vectors of both pipes may hold gradients: a probe lies behind them (pass.c).
 *
 * 7. Of several workers, a step that goes on is also run ahead (ahead.c) after its pass, while sums, norm and
 *    commit are on their way: in the order of the next step's list, up to the first instruction that needs
 *    what the step at hand makes (`fore`: forwards of the step after the next, STEP!, NORM). How far is
 *    `done`, of each device; that step's own pass goes on from there. So a rank stands still only for mail,
 *    and where the delays of the job ask for it. Calls back end it between two instructions, or in a wait.
 *
 * Ownership: tables lie in the arena of the part. Threads: changes between steps, by the worker's caller;
 * others ask hd_overlap_tables(). */
#ifndef HD_ENGINE_OVERLAP_H
#define HD_ENGINE_OVERLAP_H

#include "engine/eager.h"

struct hd_overlap {
	struct hd_pipe *pipe[2]; uint32_t at;             /* which is of the step at hand */
	struct hd_ilist *list[2][2];      /* [ahead][goes_on][devices] */
	/* the step after the one begun last was begun, or is; the step at hand also begins the next */
	bool ahead, goes_on;
	/* rule 7. [devices] of the list of a step that was begun ahead: where it may not go on; where it is.
	 * What failed, which that step's pass says */
	uint32_t *fore, *done;
	enum hd_err err; struct hd_diag diag;
	struct hd_eager *eager;           /* rule 4; NULL: nothing is updated early */
};

/* Of a part whose plan says so, with its first pipe made. HD_E_REFUSED: the job cannot. */
HD_MUST_USE enum hd_err hd_overlap_make(struct hd_worker *worker, struct hd_work *work,
	const struct hd_plan *plan, const uint32_t *rank, struct hd_arena *arena, struct hd_diag *diag);
/* what the steps hold besides the pipes; no pipe is taken or given */
uint64_t hd_overlap_bytes(const struct hd_overlap *overlap, const struct hd_worker *worker, uint32_t device);
/* of a step: which pipe, which lists; the sum's place with them */
void hd_overlap_begin(struct hd_worker *worker, struct hd_work *work);
/* What was begun of a step to come is forgotten: before the reader is replaced. */
void hd_overlap_drop(struct hd_worker *worker);
bool hd_overlap_ahead(const struct hd_worker *worker);     /* is there any? */
struct hd_overlap *hd_overlap_in_use(const struct hd_worker *worker);        /* of its part; NULL: none */
/* Rule 7: what the pass of a step has to say of what was run ahead. */
HD_MUST_USE enum hd_err hd_overlap_failed(const struct hd_work *work, struct hd_diag *diag);
/* all pipes of a pass, if there are any */
void hd_overlap_give(struct hd_worker *worker, const struct hd_work *work);
/* All waits end, in all pipes of the pass. */
void hd_overlap_fence(struct hd_work *work);

/* The pipe to ask what follows from the plan alone, which both say alike. Any thread may: which one is of the
 * step at hand is written at its begin, by the thread that computes. */
static inline struct hd_pipe *hd_overlap_tables(const struct hd_work *work)
{
	return work->overlap ? work->overlap->pipe[0] : work->pipe;
}

static inline struct hd_pipe *hd_overlap_next(const struct hd_overlap *overlap)
{
	return overlap->pipe[1 - overlap->at];
}

#endif
