/* forecast.h -- what a step of a plan is expected to take, said before the run, and beside it what it took.
 *
 * The full simulator (pipeline/sim_plan.h) runs the plan's own lists with measured costs (costs.h). What
 * ranks of one process have in common is in the setting: cores that they share, speeds that differ.
 *
 * 1. A row is an op of a stage: how often a step has it, what one of them takes. F has the copy to the next
 *    stage in it and I or B the one to the stage before, predicted and measured, whether a list has it as an
 *    instruction of its own or not. Additions of gradients are in B and W. Predicted times of ranks that
 *    share cores are as long as the sharing makes them, as the measured ones are. OFF and ON take the
 *    rank's own time, at the rate of a file whose pages are there.
 * 2. STEP of all stages is one row: a rank updates its chunks once, of whatever stage. Workers each update
 *    what they hold, with state by stages the parameters of their own stages and of those whose shadow they
 *    have.
 * 3. Measured is a mean since the plan was adopted, in a run without the first step under it, which meets
 *    memory that was never touched: time, and of stages the processor time in it, which other
 *    programs on the same cores do not lengthen. A row that no rank has run since has 0.
 * 4. Of a rank of several devices a stage takes what its devices take together: their lists (graph/tensor.h)
 *    with the times of their nodes and a hop at each wait; on fewer cores no less than the cores allow. Where
 *    they lie in groups on several workers, what these send one another takes its time on the link, which is
 *    the one of stages (`copy_ns_per_byte`).
 * 5. Steps that overlap (pipeline/window.h) never drain the pipeline: a step takes what the rank computes
 *    that has most to do, with its update, and over links no less than steps take one behind the other
 *    (steady.h). Where ranks share cores that is not known, and none is predicted. Over workers the end of a
 *    step (rule 6) hides behind the virtual nodes of the next that a worker may run before it (ADR 186); what
 *    is left of it counts.
 * 6. What a step takes from its last gradient to its update (step_end.h) is in the step, and in no row. What
 *    it takes besides, reading rows and its begin, is in neither.
 * 7. Stages that keep several virtual nodes alive take longer by what it costs to come back to activations
 *    after others (cost/reuse.h), as often as their lists do (pipeline/reuse.h).
 * 8. Ranks that wait (pace.h) go on later than they would, by what sleepers of this machine do undisturbed,
 *    once an instruction of a stage; each device of a rank of several once a step of its list
 *    (graph/tensor.h).
 * 9. Between workers of several machines (costs->port_bytes_per_s) activations and sums take their links.
 * 10. Of workers measured is what each said of its own ranks (HD_MSG_SPENT), the first step under the plan
 *    left out; those of the view that said nothing are missing.
 *
 * Everything lies in the arena. Pure but for what is read of a worker. */
#ifndef HD_RUN_FORECAST_H
#define HD_RUN_FORECAST_H

#include "base/json_writer.h"
#include "protocol/message.h"
#include "run/step_end.h"

struct hd_forecast_row {
	uint8_t op;
	uint16_t stage;
	uint64_t n;                       /* in a step, of all ranks */
	double predicted_ns, measured_ns; /* of one */
	double processor_ns;              /* of that, what the rank computed; 0: not known */
	struct hd_spent own, sent;        /* until hd_forecast_begin(), and of what is in it too */
};

struct hd_forecast {
	double step_ns;                   /* 0: none was made */
	double end_ns;                    /* of it: rule 6 */
	double measured_ns, least_ns;     /* median and least of the steps; 0: none */
	uint64_t nsteps;
	uint32_t cores;                   /* that ranks share; 0: one each */
	struct hd_forecast_row *row; uint32_t nrows;
	const uint32_t *missing; uint32_t nmissing;       /* workers: rule 10 */
	double *busy_ns;                  /* [ranks] predicted work of a step: F, R, B, I, W, OFF, ON */
};

struct hd_forecast_setting {
	uint32_t cores;                   /* that devices share; 0: one each */
	const double *speed;              /* [ranks]; NULL: 1 */
	struct hd_step_holders holders;   /* zeroed: of one process */
};

/* Of `cores` for all of so many devices. */
static inline uint32_t hd_forecast_shared(uint32_t cores, uint32_t ndevices)
{
	return cores < ndevices ? cores : 0;
}

/* HD_E_NOTFOUND: stages of the plan begin where the profile has no cut. */
HD_MUST_USE enum hd_err hd_forecast_make(struct hd_forecast *forecast, const struct hd_plan *plan,
	const struct hd_run_costs *costs, const struct hd_forecast_setting *setting, struct hd_arena *arena,
	struct hd_diag *diag);
/* Rule 5: a step that is not known is 0. Of a plan that was chosen; among others its time drained counts. */
void hd_forecast_forget(struct hd_forecast *forecast, const struct hd_plan *plan);
/* Between steps: what the worker's instructions took until now is not measured. */
void hd_forecast_begin(struct hd_forecast *forecast, const struct hd_plan *plan,
	const struct hd_worker *worker);
/* Between steps: fills in what the worker's instructions took under this plan. */
void hd_forecast_measure(struct hd_forecast *forecast, const struct hd_plan *plan,
	const struct hd_worker *worker);
/* Is what instructions `op` take in a row of a forecast? And in busy_ns? */
bool hd_forecast_counts(uint8_t op);
bool hd_forecast_is_busy(uint8_t op);
/* Rule 10: fills in what instructions took together, of several ranks one after another. */
void hd_forecast_measured(struct hd_forecast *forecast, const struct hd_spent_kind *spent, uint32_t n);
/* What rank r computed since the plan was adopted: all that busy_ns predicts of a step. */
double hd_forecast_busy_ns(const struct hd_plan *plan, const struct hd_worker *worker, uint32_t r);
/* Members of an object: predicted_ms, measured_ms, least_ms, null where there is none; ... */
void hd_forecast_put_step(const struct hd_forecast *forecast, struct hd_json_writer *w);
/* ... and with them cores, end_ms, instructions, and missing where some are. */
void hd_forecast_put(const struct hd_forecast *forecast, struct hd_json_writer *w);
/* A table, a line a row. */
void hd_forecast_print(const struct hd_forecast *forecast, struct hd_text *text);

#endif
