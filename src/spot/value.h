/* value.h -- which way through losses of machines is worth most: samples per dollar, expected.
 *
 * A strategy is judged on a grid of D pipelines of P stages, by the step that a simulator predicts for it,
 * and by a market: how often machines are lost, how many at once, what was announced, what pauses take.
 *
 * 1. A loss of k devices that a strategy tolerates costs `pause` and a slower run until the next plan; one
 *    that exceeds it costs `rebuild` and the work that is done again. All sets of k are equally likely.
 * 2. What is done again: half a step where some device still holds every stage, as its own or as a shadow;
 *    where none does, half a checkpoint interval, and its reload. Checkpoint-and-restart goes back always.
 * 3. Checkpoints are as far apart as loses least by the rate of the losses that go back to one, those that
 *    were announced left out; beside other strategies every half hour at least. Where machines come and go
 *    they are as far apart with each grid: a run has one interval, by the losses of all the time.
 * 4. The choice is the highest value; within 1 % of it the earlier row of the table.
 * 5. A loss takes k of the machines that are there, each set equally likely; what waits beside the grid is
 *    paid for, too, and its losses cost nothing. Paid are all `machines`.
 * 6. Of every strategy the bound on pauses is held against the same: from a loss without notice until the run
 *    is where it was, what is computed again included, as half of such losses take at most. Where machines
 *    come and go these are the losses of all the time, whatever number of pipelines they met.
 *
 * Pure. */
#ifndef HD_SPOT_VALUE_H
#define HD_SPOT_VALUE_H

#include "base/json.h"
#include "spot/trace.h"

/*        id          name          tolerates without a rebuild */
#define HD_SPOT_STRATEGIES(X) \
	X(CHECKPOINT, "checkpoint",   "nothing")                                                \
	X(REROUTE,    "reroute",      "what leaves one device of each stage")                   \
	X(LAZY,       "shadow lazy",  "what has no two neighbours in a pipeline's ring")        \
	X(EAGER,      "shadow eager", "the same, and the forwards are there")                   \
	X(FULL,       "shadow full",  "the same, and the backwards are there")                  \
	X(REPLICA,    "replica",      "losses in as many pipelines as there are spare ones")

enum hd_spot_strategy {
#define X(id, name, tolerates) HD_SPOT_##id,
	HD_SPOT_STRATEGIES(X)
#undef X
	HD_NSPOT_STRATEGIES
};
extern const char *const hd_spot_strategy_names[HD_NSPOT_STRATEGIES];

enum { HD_SPOT_TOGETHER = 64, HD_SPOT_SPARES = 8, HD_SPOT_SAVE_S = 1800, HD_SPOT_TAKES = 3 };

/* Probability that k devices lost at once exceed it; 1 where there are no k. `spares` is of REPLICA. */
double hd_spot_exceeds(enum hd_spot_strategy strategy, uint32_t pipelines, uint32_t stages, uint32_t spares,
	uint32_t k);
/* Probability that k devices lost at once leave a stage that no device holds: all go back to a checkpoint. */
double hd_spot_unheld(enum hd_spot_strategy strategy, uint32_t pipelines, uint32_t stages, uint32_t spares,
	uint32_t k);

#define HD_SPOT_LOSSES_H 1e6              /* at most, of a market */
struct hd_spot_market {
	double usd_h;                             /* a device and hour */
	double losses_h;                          /* instants at which devices are lost, per hour */
	uint32_t ntogether;
	double together[HD_SPOT_TOGETHER];        /* share of the instants that take k + 1; sums to 1 */
	double announced;                         /* share of the losses that are announced early enough */
	double pause_s, rebuild_s, reload_s, checkpoint_s, switch_s;
	double replan_s;                          /* from a loss to the next plan */
	double doubled;                           /* a step while a device runs two stages, to one without */
	/* what pauses longer, takes longer or costs more for all of a job is left out; 0: nothing is */
	double pause_max_s, deadline_s, budget_usd;
};

/* {"usd_h": 0.91, "losses_h": 2, "together": [0.6, 0.3, 0.1], ...}; what may be missing has a usual value:
 * usd_h 0.91, announced 0, pause_s 5, rebuild_s 30, reload_s 30, checkpoint_s 10, switch_s 1, replan_s 60,
 * doubled 1.5, pause_max_s, deadline_s and budget_usd 0. */
HD_MUST_USE enum hd_err hd_spot_market_read(struct hd_spot_market *market, const struct hd_json *json,
	struct hd_diag *diag);
/* The usual values, with the losses that a trace has: instants with removals per hour until its last event,
 * and how many went at each; more than HD_SPOT_TOGETHER count as so many. */
void hd_spot_market_of(struct hd_spot_market *market, const struct hd_spot_trace *trace);

/* What a grid of `used` of all `machines` sees of the market (rule 5): fewer losses, and smaller ones. */
struct hd_spot_market hd_spot_market_seen(const struct hd_spot_market *market, uint32_t machines,
	uint32_t used);

struct hd_spot_grid {
	uint32_t pipelines, stages;
	double batch, step_s;
	uint32_t machines;                        /* that are paid for; fewer than it uses: as many */
	uint32_t present;                         /* that losses strike among; 0: all that are paid for */
	double redo_s;                            /* what a tolerated loss makes others compute again */
	bool spares_work;                         /* so step_s is theirs, too, and fewer are slower */
};

/* Each term of the expectation, for people to check. */
struct hd_spot_value {
	enum hd_spot_strategy strategy;
	uint32_t spares, devices;
	double losses_h;                          /* that strike its devices */
	double step_s, overhead, saving;          /* without losses; shares on top: all, of checkpoints */
	double exceeds, unheld;                   /* means over the sizes of losses */
	double tolerated_s, exceeded_s, stall_s;  /* a loss of each kind; the expected one */
	/* without notice: what takes how long, of which share of the losses: tolerated, held, of no holder */
	struct { double s, share; } takes[HD_SPOT_TAKES];
	double pause_s;                           /* rule 6 */
	double interval_s;                        /* between checkpoints; infinite: none */
	double useful, usd_h, value;              /* share of the time; samples per dollar */
	bool allowed;                             /* by pause_max_s */
};

/* `overhead`: what the strategy takes beside the step, as a share of it (shadows: from a simulator);
 * checkpoints come on top. */
struct hd_spot_value hd_spot_value(const struct hd_spot_market *market, const struct hd_spot_grid *grid,
	enum hd_spot_strategy strategy, uint32_t spares, double overhead);
/* Share of the time, and the machines that are there then, on average; 0 of no time. */
struct hd_spot_there { double share, machines; };
/* Machines come and go: there[d] when there are enough for d pipelines of the grid, d up to its own, where so
 * many or more count as its own. */
void hd_spot_presence(struct hd_spot_there *there, const struct hd_spot_trace *trace,
	const struct hd_spot_grid *grid);
/* The value where the run has the grid that there are machines for: `of` [k - 1] of the k-th of n, as with k
 * pipelines, weighted by the share [k] of the time; all of them get the interval of rule 3, and its pause is
 * by their losses, too (rule 6). Else as of the last. */
struct hd_spot_value hd_spot_value_present(const struct hd_spot_market *market, struct hd_spot_value *of,
	const double *share, uint32_t n);
/* Rule 4 among those that are allowed, in any order; of one row the highest value, then the first; n: none
 * is. */
uint32_t hd_spot_choose(uint32_t n, const struct hd_spot_value *values);

#endif
