/* reshape.h -- assigns virtual nodes to workers, and changes the map while the run goes on.
 *
 * pace.h measures, balance/drift.h decides when, balance/solver.h computes the map. The solver's devices are
 * those of the members in the order of their ids; its profile is their median pace, with a slowdown factor
 * for each device.
 *
 * 1. For a new set of members (hd_reshape_plan) it answers with the solver's map for the known paces; a
 *    worker without a measured pace counts as the median. With no pace at all shares are even.
 * 2. A view that is in force is measured for HD_RESHAPE_LEARN steps after its first HD_PACE_FIRST; then drift
 *    watches it, until the members change. For the same members the map in use is the answer, or the one that
 *    drift has decided.
 * 3. Cost of a step: the longest share, the work that each worker does once, and the exchange. The latter is
 *    what is left of the measured time, given to the solver as the rate of the links.
 * 4. Every decision is an event with its numbers: a new map, one that was not worth it, the error of a
 *    prediction.
 * 5. Times are measured; no bit of the result depends on them.
 *
 * Ownership: init/finish. Threads: one. No clock. */
#ifndef HD_DRIVER_RESHAPE_H
#define HD_DRIVER_RESHAPE_H

#include "balance/drift.h"
#include "driver/pace.h"

enum { HD_RESHAPE_LEARN = 8, HD_RESHAPE_WORDS = 600 };

/* kind: of the event; "": nothing was said. */
struct hd_reshape_said { const char *kind; char text[HD_RESHAPE_WORDS]; };

struct hd_reshape_device { uint32_t worker; };
struct hd_reshape_planned { uint32_t worker; double vn_ps; };         /* what a map counts on */

/* A map that the solver or drift made; no members: shares are even. */
struct hd_reshape_map {
	uint32_t nmembers;
	struct hd_reshape_planned planned[HD_MAX_MEMBERS];
	struct hd_view view;
	int64_t predicted_ps;             /* of a step; 0: not known */
	char why[HD_RESHAPE_WORDS];       /* also of the last map that was not worth it; "" none */
};

struct hd_reshape {
	struct hd_pace pace;
	bool act;                         /* false: shares stay even */
	uint32_t nvns;
	int64_t gradient_bytes;
	uint32_t error_ppm[HD_SOLVE_ERRORS], nerrors;         /* of predictions that were judged */

	/* of the members that are watched */
	uint32_t epoch, nsteps;           /* of the view in force; steps of it */
	uint32_t nmembers, member[HD_MAX_MEMBERS], ndevices;
	struct hd_reshape_device device[HD_VIEW_RANKS];
	double own_ps, exchange_ps;       /* what the fastest does once a step; what is left: EWMA */
	uint32_t nexchange;
	bool watching;
	struct hd_arena arena, scratch;   /* of the watch; of one answer */
	struct hd_vn_cost type;
	struct hd_solve_device of[HD_VIEW_RANKS];
	struct hd_solve_worker link[HD_MAX_MEMBERS];
	struct hd_solve_ask ask;
	struct hd_drift drift;
	bool asked;                       /* drift's answer waits to be taken up */
	struct hd_drift_answer answer;
	uint32_t count[HD_VIEW_RANKS];    /* its counts */

	struct hd_reshape_map made, used; /* answered last; in force */
};

void hd_reshape_init(struct hd_reshape *reshape, uint32_t nvns, int64_t gradient_bytes, bool act);
void hd_reshape_finish(struct hd_reshape *reshape);
/* A seal of a member under `view`, which may be NULL. */
void hd_reshape_seal(struct hd_reshape *reshape, uint32_t worker, uint64_t step,
	const struct hd_step_news *news, const struct hd_view *view);
/* After a committed step. true: the planner is to be asked. */
bool hd_reshape_step(struct hd_reshape *reshape, uint64_t step, const struct hd_view *view,
	struct hd_reshape_said *said);
/* What a step takes under the best map by the speeds known, that worker taking vn_ps for a virtual node
 * (0: what it takes). false: not known yet. */
HD_MUST_USE bool hd_reshape_if(struct hd_reshape *reshape, uint32_t worker, double vn_ps, int64_t *step_ps);
/* hd_plan_view of protocol/coordinator.h; `self` is the reshape. */
bool hd_reshape_plan(void *self, struct hd_view *view, const struct hd_member_info *info, uint32_t n);

#endif
