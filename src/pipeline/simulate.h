/* simulate.h -- what a schedule takes: time and activations, to the picosecond.
 *
 * Planners compare schedules by it, `heddle simulate` prints it, the timeline draws it. It is
 * exact: integer time, no clock, no random number, so the same question has the same answer on
 * every machine.
 *
 * 1. A rank executes its list in order. An instruction begins when its predecessor on the rank has
 *    ended and what it needs is there; a tensor from another rank is there one hop after its maker's
 *    end. Tensors between stages of one rank cost nothing. Nothing is reordered.
 * 2. A rank's costs are shared by its v = ceil(stages/ranks) chunks. Times are counted in 1/v of a
 *    picosecond (`per_ps`), so that every share is exact.
 * 3. A pair takes the sum of its halves, which begin and end together.
 * 4. Activations count from the start of F to the end of B, or of W: in chunks, `per_rank` of which
 *    are one full rank's. At equal times they are released before others are taken.
 * 5. Only compute instructions take time. Transfers are implied, without limits of buffers.
 * 6. Shadow stages (redundancy.h) are refused, HD_E_INVAL: sim_plan.h knows them.
 * 7. Delayed updates are run for `steps` steps: the prologue, periods, the epilogue.
 *
 * Linear in the number of instructions. Pure; results lie in the arena. */
#ifndef HD_PIPELINE_SIMULATE_H
#define HD_PIPELINE_SIMULATE_H

#include "pipeline/generate.h"

struct hd_sim_rank {
	/* start of the first, end of the last compute instruction; sum of costs */
	int64_t first, last, busy;
	uint32_t peak;                            /* chunks */
};

struct hd_sim_span { int64_t start, end; };

struct hd_sim {
	/* what was run: the schedule, or its steps one after the other */
	struct hd_schedule ran;
	uint32_t per_ps, per_rank;                /* rules 2 and 4 */
	int64_t makespan, span_idle, busiest;     /* span_idle: most of last - first - busy over the ranks */
	uint64_t nins;                            /* executed */
	struct hd_sim_rank *rank;                 /* [nranks] */
	struct hd_sim_span **span;                /* [nranks][list length], if asked for */
	uint32_t steps;                           /* rule 7; 1 where nothing is delayed */
	/* [steps] end of the last instruction on a virtual node of it */
	int64_t *step_end;
};

struct hd_sim_ask {
	struct hd_rank_costs costs;
	uint32_t steps;                           /* rule 7; 0: four, and whatever the prologue needs more */
	bool spans;
};

static inline double hd_sim_units(const struct hd_sim *sim,
	int64_t t) { return (double)t / (double)sim->per_ps / (double)HD_UNIT_PS; }
/* Makespan over the busiest rank's busy time, less 1. */
static inline double hd_sim_bubble(const struct hd_sim *sim) { return (double)(sim->makespan -
	sim->busiest) / (double)sim->busiest; }
/* The same between the ends of step 2 and the last step: what it tends to. Needs 4 steps. */
double hd_sim_steady_bubble(const struct hd_sim *sim, const struct hd_rank_costs *costs);

/* HD_E_BADPLAN: ranks wait for each other (two of them and what they wait for are named); the checker
 * says more. HD_E_INVAL: costs below 0, or sums beyond 2^62. */
HD_MUST_USE enum hd_err hd_simulate(struct hd_sim *sim, const struct hd_schedule *schedule,
	const struct hd_sim_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag);

/* How many steps the prologue of a schedule of delayed updates covers. */
uint32_t hd_schedule_prologue_steps(const struct hd_schedule *schedule);
/* The steps of a schedule of delayed updates as one list a rank, virtual nodes counted over all of them. */
HD_MUST_USE enum hd_err hd_schedule_unroll(struct hd_schedule *out, const struct hd_schedule *schedule,
	uint32_t steps,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
