/* window.h -- the lists of a straight pipeline whose steps overlap: while a rank ends a step, it begins the
 * next.
 *
 * p ranks have a stage each; a step has V virtual nodes. In a list, those from V on are of the next step:
 * V + v is its virtual node v. Whoever runs it makes sure that the next step reads no parameter that this one
 * updates (optim.update 2bw), or of the last stage alone (stash): `eager`. Counted on, step after step, rank
 * r works in pairs j = 0, 1, ...:
 *
 *	B of j + r, then F of j + 2 (p - 1) - r          the last rank: first F, then B, both of j + p - 1
 *
 * 1. Neighbours need what the other made a pair ago, the last rank what stands before it in its own. So with
 *    B as long as two F no rank ever waits, and all come to the end of a step at one time, where they meet
 *    for its norm: PipeDream-2BW's steady state, cut where the update is.
 * 2. A step ends with V pairs done by every rank. Rank r has begun 2 (p - 1) - r forwards of the next by
 *    then, and r backwards: `goes_on`. The list of that one leaves them out: `ahead`.
 * 3. Forwards run up to 2 (p - 1 - r) + 1 virtual nodes before their backwards (1f1b: p - r). V >= 2 (p - 1).
 * 4. Each list ends with NORM and STEP; transfers stand at the instructions that they serve.
 * 5. A rank that keeps its input alone computes again right before each backward. Where all do, none waits.
 * 6. `eager`: the last rank updates before the norm is known, by STEP! between the last backward of the step
 *    and the first forward of the next. So it stands in lists that go on, and nowhere else.
 *
 * Everything lies in the arena. Pure. */
#ifndef HD_PIPELINE_WINDOW_H
#define HD_PIPELINE_WINDOW_H

#include "plan/plan.h"

static inline bool hd_window_fits(uint32_t p, uint32_t nvns) { return p > 1 && nvns >= 2 * (p - 1); }

/* A step of p ranks of which they have begun some (ahead), or nothing; which they end alone, or begin the
 * next as well (goes_on). */
struct hd_window { uint32_t p, nvns; bool ahead, goes_on, eager, again; /* rule 5, of the rank */ };

/* Rank r's list of it. */
HD_MUST_USE enum hd_err hd_window_list(struct hd_ilist *list, const struct hd_window *window, uint32_t r,
	struct hd_arena *arena, struct hd_diag *diag);

/* Is it a plan of such a pipeline: rank r runs stage r of every virtual node, F and B whole, and computes all
 * again or nothing? */
bool hd_window_straight(const struct hd_plan *plan);
/* Does rank r of such a plan compute again? */
bool hd_window_again(const struct hd_plan *plan, uint32_t r);

#endif
