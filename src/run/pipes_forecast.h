/* pipes_forecast.h -- what a step of stages over workers is expected to take: forecast.h for the view that a
 * run starts with.
 *
 * 1. The plan is that of the view (pipes.h), its cuts are by FLOPs; the costs are measured (costs.h) by the
 *    process that coordinates, before a worker starts: on one device with the whole model, which
 *    workers.memory does not bound. Where the machine has not the memory for it, nothing is predicted.
 * 2. All ranks are of this machine and share its cores. A tensor on its way costs a copy in memory and
 *    threads that wake: what a link between processes takes besides is not in it. The exchange at the end of
 *    a step is (step_end.h). Of devices that wait (given_costs.h) links may be given, and are.
 * 3. A run that grows to more pipelines has other steps: what was measured is to be compared where as many
 *    run as were predicted.
 * 4. Of the whole model at each worker a step is predicted for devices that wait alone: of those that compute
 *    it is not known what the exchange takes beside the backward pass.
 * 5. Over links, with one device at each worker, that is what planner/comm_time.h says of the run's buckets,
 *    owners and order, where it says anything.
 *
 * Pure; all in the arena. */
#ifndef HD_RUN_PIPES_FORECAST_H
#define HD_RUN_PIPES_FORECAST_H

#include "pipeline/redundancy.h"
#include "run/forecast.h"

struct hd_pipes_forecast {
	struct hd_forecast step;
	uint32_t npipes;                  /* of the view; 0: none was made */
};

/* The holders among workers of `ndevices` each, by comm.sync. Sharded state goes with the whole model alone
 * (hd_job_is_whole()). */
static inline struct hd_step_holders hd_pipes_holders(const struct hd_job *job, uint32_t ndevices)
{
	return (struct hd_step_holders){ .devices = ndevices,
		.whole = hd_job_int(job, HD_JOB_SYNC) != HD_SYNC_STAGES,
		.shadows = hd_job_int(job, HD_JOB_REDUNDANCY) != HD_REDUNDANCY_NONE,
		.copies = hd_job_copies(job), .servers = hd_job_servers(job) };
}

/* Rule 4. */
static inline bool hd_pipes_whole_is_predicted(const struct hd_run_costs *costs)
{
	return costs->late_ns > 0;
}

/* Rule 5: puts it into *step, where it says anything. */
HD_MUST_USE enum hd_err hd_pipes_whole_over_links(struct hd_forecast *step, const struct hd_task *task,
	const struct hd_run_costs *costs, uint32_t nworkers, uint32_t ndevices, struct hd_arena *arena,
	struct hd_diag *diag);

/* Of `nworkers` with `ndevices` each; `cores`: for all of them. A job without stages but for rule 4, or with
 * more of them than there are devices, and more of these than a run can have: npipes 0. HD_E_NOTFOUND as of
 * hd_forecast_make(). */
HD_MUST_USE enum hd_err hd_pipes_forecast(struct hd_pipes_forecast *forecast, const struct hd_task *task,
	const struct hd_run_costs *costs, uint32_t nworkers, uint32_t ndevices, uint32_t cores,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
