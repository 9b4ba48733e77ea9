/* rounds_why.h -- why a job has no devices in this round: from the walk that gave them out.
 *
 *	err = hd_rounds_why(r, now_s, id, &wait, &diag);         numbers
 *	hd_rounds_explain(...)                                    the leading reason, of walk or policy, as a
 *	                                                          sentence
 *
 * 1. It explains the last hd_rounds_next or hd_rounds_offer: priorities are those of that walk, whatever ran
 *    since.
 * 2. A job that has a share is explained by its *best cell*: of its ways to run with a share the one with the
 *    highest priority.
 * 3. Codes without share are NO_SHARE here; hd_rounds_explain asks sched_why.h for the reason.
 * 4. Rounds of fidelity exact only (HD_E_INVAL): gavel is a replay, no job waits in it.
 * 5. A sentence names no job that `may_see` does not allow: those are counted.
 *
 * Pure; nothing in the rounds changes. */
#ifndef HD_SCHEDULER_ROUNDS_WHY_H
#define HD_SCHEDULER_ROUNDS_WHY_H

#include "scheduler/rounds.h"
#include "scheduler/sched_why.h"

enum { HD_WAIT_AHEAD = 4,                         /* jobs named that took the last devices */
       HD_WAIT_ROUNDS = 200 };                    /* of patience that are tried */

struct hd_wait {
	/* RUNS, UNRUNNABLE, DRAINING, QUEUED_NEW, NO_SHARE, HELD_BACK, SHARE_PAID, GANG_NO_FIT, OUTRANKED */
	enum hd_why_code code;
	/* of the best cell, the first it needs; HD_SCHED_NONE: it has none */
	uint32_t type;
	/* devices of it that the job needs at once; that were free at its turn */
	uint32_t need, free;
	/* of that cell since the last reset; due: with what earlier resets left over */
	double share, received_s, due_s;
	double priority;
	uint32_t nahead;
	/* with devices of the type and before it in the walk, the last first */
	struct { uint64_t id; double priority; } ahead[HD_WAIT_AHEAD];
	/* UNRUNNABLE, DRAINING, GANG_NO_FIT, OUTRANKED: so many more of `type` and it had been taken; 0:
	 * none do */
	uint32_t add;
	/* HELD_BACK and below: rounds from now until it runs if nothing else changes; 0: more than tried */
	uint32_t rounds;
};

/* HD_E_NOTFOUND: it did not arrive, or left. */
HD_MUST_USE enum hd_err hd_rounds_why(const struct hd_rounds *rounds, double now_s, uint64_t id,
	struct hd_wait *wait, struct hd_diag *diag);

struct hd_explain {
	const struct hd_policy_setting *setting;
	const struct hd_sched_state *state;       /* and `shares`: those last adopted */
	const struct hd_shares *shares;
	const struct hd_rounds *rounds;
	double now_s, boundary_s;                 /* when the next round begins */
	bool ask;                                 /* ways out that the policy has to be asked for */
	hd_may_see *may_see;                      /* NULL: all */
	void *user;                               /* of may_see */
};
HD_MUST_USE enum hd_err hd_rounds_explain(const struct hd_explain *explain, uint64_t id,
	struct hd_arena *arena, struct hd_why *why, struct hd_diag *diag);

#endif
