/* ptdp_plan.h -- how to split a transformer over devices of one kind: by search over the model, or by PTD-P's
 * rules.
 *
 * `heddle plan ptdp` prints what these find; ptdp_cost.h says what each choice takes.
 *
 * hd_ptdp_search() takes the fastest of all splits whose memory fits:
 *   t  divides heads and server; p to min(l, n/t); d to n/(t p); b a power of two to B/d; v to 4 with p v
 *   dividing l and m >= p; recomputation none, selective, full
 * and lets the simulator judge the HD_PTDP_FINALISTS fastest by their real schedule, 1f1b or interleaved. Of
 * equally fast ones: fewer devices, then in the order of enumeration (t, p, d, b, v, recomputation,
 * ascending).
 *
 * hd_ptdp_rules() follows the paper instead, one choice after the other:
 *   (1) from t = 1, p = 1: while it does not fit with full recomputation, the next larger t, then p by one;
 *   (2) d = floor(n/(t p)); left-over devices idle; samples are split evenly, by largest remainder;
 *   (3) v the largest divisor of l/p to 4 with m >= p, kept if the simulator agrees;
 *   (4) recomputation none if that fits, else selective, else full;
 *   (5) tensor groups inside a server, pipelines across servers, data outermost.
 *
 * Each choice comes with its reason in words. What cannot be is HD_E_INVAL, with the least memory that would
 * do. Ownership: texts lie in the arena. Pure: equal asks give equal bytes. */
#ifndef HD_PLANNER_PTDP_PLAN_H
#define HD_PLANNER_PTDP_PLAN_H

#include "base/arena.h"
#include "planner/ptdp_cost.h"

enum { HD_PTDP_FINALISTS = 16, HD_PTDP_MAX_CHUNKS = 4, HD_PTDP_MAX_B = 64, HD_PTDP_CHOICES = 8 };

struct hd_ptdp_ask {
	struct hd_ptdp_model model;
	uint32_t ndevices, batch;
	/* samples of a virtual node; 0: searched for (the rules take 1) */
	uint32_t b;
	struct hd_ptdp_site site;
};

struct hd_ptdp_choice { const char *what, *why; };        /* "t=8", "a server has 8 devices and ..." */

struct hd_ptdp_plan {
	struct hd_ptdp_split split;
	struct hd_ptdp_cost cost;
	const char *schedule;                     /* of hd_schedule_kinds */
	int64_t step_ps;                          /* by the simulator, and cost.after_ps */
	bool simulated;                           /* false: too long a schedule, step_ps is the formula's */
	uint32_t idle;                            /* devices */
	/* pipelines with one sample more than the others (rule 2); 0: even */
	uint32_t more;
	struct hd_ptdp_choice choice[HD_PTDP_CHOICES]; uint32_t nchoices;
	struct hd_ptdp_split next; int64_t next_ps;       /* the runner-up; next.t 0: there is none */
};

HD_MUST_USE enum hd_err hd_ptdp_search(struct hd_ptdp_plan *plan, const struct hd_ptdp_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_ptdp_rules(struct hd_ptdp_plan *plan, const struct hd_ptdp_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag);
/* What one split takes, also one that does not fit its memory (plan->cost.need says so). */
HD_MUST_USE enum hd_err hd_ptdp_judge(struct hd_ptdp_plan *plan, const struct hd_ptdp_ask *ask,
	const struct hd_ptdp_split *split,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
