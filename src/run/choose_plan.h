/* choose_plan.h -- which plan a run in one process takes, by measured costs (`parallel.mode: auto`), and
 * where the stages of a shape that the job gives begin.
 *
 * The automatic planner (planner/planner.h) finds schedules, chunks, cuts and recomputation for every depth;
 * the best of each that this build runs are made into plans, and each is simulated once more as it would run
 * (forecast.h): with its copies, on the cores and at the speeds that there are.
 *
 * 1. Depths are the divisors of the number of devices, as far as the job's keys leave them open: all devices
 *    are used. HD_CHOOSE_EACH plans of a depth
 *    are simulated. A planner that refuses a depth (memory, cuts, virtual nodes) leaves it out.
 *    Where the keys say nothing of stages, those with copies in different numbers (1f1b-rr) as the planner
 *    finds them, and each way to put two on all devices, cut where the step is predicted fastest.
 * 2. Data parallel is a candidate unless the job asks for stages. It is taken unless a pipeline is faster by
 *    more than HD_CHOOSE_MARGIN: that is what predictions err by, and its plan needs no proof of cuts.
 * 3. Candidates stand in the order in which they are to be tried: a worker may yet refuse one for memory.
 * 4. Where cores are fewer than devices, all ranks share them, and a pipeline saves nothing but memory: the
 *    simulator says so, since one core is never idle under either.
 * 5. Devices of a rank (parallel.tensor) are as `width` says. Where that is open, each number that divides
 *    the shards and the devices is tried with all depths; where workers have `each` devices, they lie on as
 *    few of them as can be, and what they send one another is charged (forecast.h). Ranks of several devices
 *    with the whole model are candidates beside data parallel.
 * 6. A plan changes no bit. Equal costs give equal candidates.
 * 7. Where all stages compute again or none (`alike`), all do if one must, and are simulated so; a shape that
 *    is given has it as it says.
 * 8. Over links (costs->port_bytes_per_s) the holders of a bucket into which a cut falls exchange all of it
 *    (plan/buckets.h), which no recurrence over times sees. So each cut of the fastest plan moves in turn to
 *    where the step is predicted fastest, unless memory is bounded. Of a shape that is given, as that of a
 *    run that goes on, all cuts share the tries that one has else.
 * 9. Delayed updates (optim.update) let steps of one pipeline overlap (pipeline/window.h). Where the job's
 *    key leaves the order open these are candidates, too; where it names the order, that is of every
 *    candidate with stages, and the plan says why where steps are drained. What never drains is cut twice:
 *    as 1f1b is, and for the steady state alone, where a step takes what its slowest stage takes. Predicted
 *    is the step of a run that goes on.
 *
 * Everything lies in the arena. Pure. */
#ifndef HD_RUN_CHOOSE_PLAN_H
#define HD_RUN_CHOOSE_PLAN_H

#include "run/forecast.h"
#include "run/stages.h"

/* HD_CHOOSE_CUTS: of two stages with copies, those that divide the time best; twice as many of rule 8 */
enum { HD_CHOOSE_EACH = 3, HD_CHOICES_SHOWN = 6, HD_CHOOSE_CUTS = 24 };
#define HD_CHOOSE_MARGIN 0.03

struct hd_choose_ask {
	const struct hd_task *task;
	const struct hd_run_costs *costs;
	struct hd_plan_job job;
	/* `width`: devices of a rank (parallel.tensor; 0: one). Above one, `ndevices`, speeds and memory are
	 * of ranks. `open`: it is to be found, and these are of devices */
	uint32_t ndevices, width;
	bool open;
	uint32_t each;                            /* devices of a worker; 0: all */
	struct hd_forecast_setting setting;       /* cores and speeds */
	uint64_t memory_bytes;                    /* of a device; 0: no limit */
	/* the shape that the keys of the job give: only its cuts are open. NULL: all is */
	const struct hd_run_stages *shape;
	bool alike;                               /* rule 7 */
	/* plans whose stages all compute again, where the keys leave it open: no whole model */
	bool again;
};

struct hd_plan_choice {
	struct hd_run_stages stages;              /* p 0: every device has the whole model */
	struct hd_plan plan;
	struct hd_forecast forecast;
};

struct hd_plan_choices {
	struct hd_plan_choice *at; uint32_t n;
	/* of a job that delays updates: why steps of a pipeline of all devices cannot overlap; NULL: they
	 * may */
	const char *drains;
	struct hd_text why;                       /* lines */
};

/* HD_E_INVAL: no plan, with the planner's reason. */
HD_MUST_USE enum hd_err hd_choose_plan(struct hd_plan_choices *choices, const struct hd_choose_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag);

/* A line where updates are delayed and no candidate's steps overlap: why. */
void hd_plan_choices_drain(const struct hd_plan_choices *choices, const struct hd_task *task,
	struct hd_text *text);
/* "zb-v, 4 stages in 2 pipelines". */
void hd_plan_choice_name(const struct hd_plan_choice *choice, struct hd_text *text);

/* How many virtual nodes each of n devices gets, in proportion to their speeds (NULL: 1): the next one goes
 * to the device that would be done with it first; equal: the lower. */
void hd_share_by_speed(uint32_t *count, uint32_t n, uint32_t nvns, const double *speed);

#endif
