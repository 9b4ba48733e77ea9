#include "run/pipes_forecast.h"

#include "run/comm_settled.h"
#include "run/pipes.h"

enum hd_err hd_pipes_whole_over_links(struct hd_forecast *step, const struct hd_task *task,
	const struct hd_run_costs *costs, uint32_t nworkers, uint32_t ndevices, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_comm_ask ask = { .graph = &task->train, .layout = &task->layout,
		.node_ns = costs->node_ns, .link = hd_comm_link_of(costs) };
	struct hd_comm_time time;

	if (ndevices != 1 || nworkers < 2 || costs->port_bytes_per_s <= 0 || !task->comm.nbuckets ||
		step->step_ns <= 0)
		return HD_OK;
	const struct hd_comm_way way = hd_comm_way_of(task, costs, nworkers);
	enum hd_err err = hd_comm_step_time(&time, &ask, NULL, &task->comm, &way, arena, diag);
	if (!err && time.step_ns) {
		step->step_ns = (double)time.step_ns;
		step->end_ns = time.step_ns > time.computing_ns ? (double)(time.step_ns -
			time.computing_ns) : 0;
	}
	return err;
}

enum hd_err hd_pipes_forecast(struct hd_pipes_forecast *forecast, const struct hd_task *task,
	const struct hd_run_costs *costs, uint32_t nworkers, uint32_t ndevices, uint32_t cores,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t nvns = task->job->nvns;
	const struct hd_plan_job job = hd_plan_job_whole(nvns, task->layout.nchunks);
	const struct hd_forecast_setting setting = { .cores = hd_forecast_shared(cores,
		nworkers * ndevices), .holders = hd_pipes_holders(task->job, ndevices) };
	struct hd_pipes_forecast made = { .npipes = 0 };
	struct hd_pipes pipes;
	struct hd_view view;
	struct hd_plan plan;

	*forecast = made;
	if (!nworkers || !ndevices || nworkers > HD_MAX_MEMBERS || nworkers > HD_VIEW_RANKS / ndevices)
		return HD_OK;
	enum hd_err err = hd_pipes_make(&pipes, task, arena, diag);
	if (err)
		return err;
	const bool staged = hd_pipes_view(&view, &pipes, nworkers, ndevices, nvns);
	if (!staged && (pipes.shape.nstages || !hd_pipes_whole_is_predicted(costs)))
		return HD_OK;
	err = staged ? hd_pipes_plan(&plan, &pipes, &view, &job, task, arena, diag) :
		hd_plan_data(&plan, &job, nworkers * ndevices, NULL, arena, diag);
	err = err ? err : hd_forecast_make(&made.step, &plan, costs, &setting, arena, diag);
	if (err)
		return err;
	hd_forecast_forget(&made.step, &plan);
	if (!staged)
		err = hd_pipes_whole_over_links(&made.step, task, costs, nworkers, ndevices, arena, diag);
	if (err)
		return err;
	made.npipes = staged ? hd_view_pipes(&view) : nworkers;
	*forecast = made;
	return HD_OK;
}
