/* ways.h -- ways through losses of machines over all grids: which pipelines, which schedule and which
 * strategy (spot/value.h) of a job are worth most on a market.
 *
 * `heddle plan JOB --spot FILE` prints it.
 *
 * 1. Shapes: of every depth, number of pipelines, schedule without delayed updates and number of chunks that
 *    the ask leaves open, what the planner auto makes a plan of; one stage is data parallel. Grids with more
 *    devices come first, then deeper ones, then the order of generate.h.
 * 2. Each plan is judged by every strategy. Modes of shadows are added to it and simulated as it was
 *    (redundancy.h), and fit if the fullest rank's device has room for what lies on the device and on the
 *    host: of a processor both are one memory. Spare pipelines are among a grid's and work as the others do
 *    (ADR 161), so their plan is that of all of them; copies of one stage have none.
 * 3. A tolerated loss comes at any time of a step alike. Until the first rank has its last gradient
 *    (`goes_on`, a share of the step) shadows go on with it, and the heir computes once more what the lost
 *    rank had: half of it on average, with the forwards of `eager` and all of `full` left out. Later the step
 *    is begun again (ADR 140). Peers share half of what a rank does in a step, also with spare pipelines.
 * 4. Pruned and counted, unless all are asked for: grids, and shadows on them, that could not win even if
 *    devices waited only for what they depend on and nothing were computed twice; grids of equal devices, all
 *    of them there, that could not win wherever their boundaries were (hd_job_plan_may()); and grids for
 *    which there are never enough machines, where fewer pipelines are the same run. Nothing else is pruned.
 *    The reasons why grids were refused are kept, up to HD_WAYS_REFUSED, and counted beyond. Each way that
 *    lost has the reason. Those that may be worth most come first.
 * 5. With a trace, machines come and go: a run has as many of a grid's pipelines as there are machines for
 *    (hd_spot_presence()), each number of them planned and judged by itself. With machines for fewer than
 *    one, or for fewer than F + 1 of replica:F, shadows and replicas go on with fewer stages, as a run does:
 *    as many as one pipeline, or F + 1, have ranks then, in the same order and chunks; or one (rules 17 and
 *    19 of protocol/coordinator.h), whose copies go on as peers do, by `reroute`. All other runs stand still.
 *    The machines that are there are paid for, and losses strike among them: as many as are there on average
 *    with such a grid.
 *
 * Equal arguments give equal answers. What is handed out lies in the arena; plans go through one of their
 * own. Pure. */
#ifndef HD_PLANNER_WAYS_H
#define HD_PLANNER_WAYS_H

#include "spot/value.h"
#include "planner/job_plan.h"

/* Why a way is not the choice.
 *        id        text                                                            */
#define HD_WAY_FATES(X)                                                              \
	X(CHOSEN,   "chosen")                                                        \
	X(EQUAL,    "within 1 %, and the choice is simpler")                         \
	X(NEAR,     "of the same strategy, and worth up to 1 % less")                \
	X(STEP,     "its step is longer")                                            \
	X(OVERHEAD, "shadows and checkpoints take more")                             \
	X(LOSSES,   "losses cost more")                                              \
	X(ABSENT,   "its machines are there too seldom")                             \
	X(PAUSES,   "pauses too long")                                               \
	X(LATE,     "done too late")                                                 \
	X(DEAR,     "costs too much")                                                \
	X(NO_RUN,   "shown, not chosen yet")

enum hd_way_fate {
#define X(id, text) HD_WAY_##id,
	HD_WAY_FATES(X)
#undef X
	HD_NWAY_FATES
};
extern const char *const hd_way_fate_texts[HD_NWAY_FATES];

enum { HD_WAYS_SPARES = 2, HD_WAYS_REFUSED = 64 };

struct hd_ways_ask {
	struct hd_job_plan_ask plan;              /* what is set is kept; cluster:
		all devices that are there */
	const struct hd_spot_market *market;
	double batch;
	uint64_t steps;                           /* of the job, for bounds on time and money; 0: not known */
	/* rule 5, of no more machines than the cluster has; NULL: all are there. Not used in lockstep */
	const struct hd_spot_trace *trace;
	/* NULL, or called before each grid how many of all were gone through */
	void (*said)(void *user, uint32_t done, uint32_t of);
	void *user;
	bool runs[HD_NSPOT_STRATEGIES];           /* it may be chosen */
	bool all;                                 /* rule 4 */
};

/* A strategy on a grid of `pipelines` with `ranks` of `chunks` stages each. */
struct hd_way {
	const char *schedule;                     /* name of a row of generate.h */
	uint32_t pipelines, ranks, chunks;        /* spare pipelines are among them */
	struct hd_spot_value value;
	int64_t peak, needs;                      /* bytes of the fullest rank: on its device; with what
		lies on the host */
	double goes_on;                           /* rule 3; 0: no shadows */
	double there;                             /* share of the time with machines for all of it */
	double alone;                             /* its value if they were there all the time */
	double hours, usd;                        /* for all of the job; 0: not known */
	enum hd_way_fate fate;
};

/* A shape without a plan (strategy HD_NSPOT_STRATEGIES), or a plan without such shadows: the first of
 * `times` with this reason. */
struct hd_way_refused {
	enum hd_spot_strategy strategy;
	const char *schedule;
	uint32_t pipelines, ranks, chunks, times;
	const char *why;
};

struct hd_ways {
	struct hd_way *way; uint32_t n;           /* best first; what is not allowed behind */
	uint32_t chosen;                          /* n: none is allowed */
	struct hd_way_refused refused[HD_WAYS_REFUSED]; uint32_t nrefused;
	/* of all shapes: those with a plan, those of rule 4, refusals beyond the list */
	uint32_t nshapes, nplans, nhopeless, nmore;
};

/* HD_E_INVAL: no shape has a plan, and why the first has none; or the ask is for tensor groups. */
HD_MUST_USE enum hd_err hd_ways_find(struct hd_ways *ways, const struct hd_ways_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
