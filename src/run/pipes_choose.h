/* pipes_choose.h -- which pipelines a run over workers takes by measured costs (`parallel.mode: auto`).
 *
 * The candidates are those of a run in one process (choose_plan.h) with as many devices as all workers have.
 *
 * 1. What is chosen is a shape of a view: schedule, stages, devices of a pipeline and the nodes with which
 *    stages begin. Coordinator and members read it in the run's job (parallel.settled); no bit of a result
 *    depends on it.
 * 2. Keys of the job that are set bound the choice: schedule, chunks, stages, replicas, recompute. Without
 *    any of them each device may have the whole model; not with comm.sync: stages.
 * 3. A view deals the virtual nodes evenly to its pipelines, and computes all stages again or none: where one
 *    must, for memory, all do. A shape that no view can have (pipes.h) is no candidate.
 * 4. All devices are taken to be equally fast. Stages that turn out slower are cut again while the run goes
 *    on (driver/redraw.h).
 * 5. The exchange of gradients between workers is in the prediction as between workers of one machine
 *    (step_end.h): with the whole model each, workers send twice what they send where stages divide it.
 *
 * Pure; all in the arena. */
#ifndef HD_RUN_PIPES_CHOOSE_H
#define HD_RUN_PIPES_CHOOSE_H

#include "run/choose_plan.h"
#include "run/pipes.h"

struct hd_pipes_ask {
	const struct hd_task *task;
	const struct hd_run_costs *costs;
	uint32_t nworkers, ndevices;      /* of each */
	uint32_t cores;                   /* for all of them; 0: one each */
	uint64_t memory_bytes;            /* of a device; 0: no limit */
	bool again;                       /* all stages compute again, where the keys leave it open */
};

/* nstages 0: each device has the whole model. */
struct hd_pipes_choice { struct hd_view_shape shape; bool recompute; double step_ns; const char *about; };
struct hd_pipes_choices { struct hd_pipes_choice *at; uint32_t n; struct hd_text why; /* lines */ };

/* In the order in which they are to be tried. HD_E_INVAL: there is none, and why. */
HD_MUST_USE enum hd_err hd_pipes_choose(struct hd_pipes_choices *choices, const struct hd_pipes_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag);
/* The shape of these pipelines, with their redundancy, and stages cut for ranks of other speeds,
 * setting->speed [npipes * width]: for one of them with the longest share, each of whose ranks is as slow as
 * the slowest in its place, since all have the same cuts. Memory is of a device (0: no limit), as the planner
 * counts it; where nothing fits by that, the cuts are as if there were no limit. HD_E_INVAL: it cannot be
 * cut. */
HD_MUST_USE enum hd_err hd_pipes_cut_again(struct hd_view_shape *shape, const struct hd_pipes *pipes,
	uint32_t npipes, const struct hd_task *task, const struct hd_run_costs *costs,
	const struct hd_forecast_setting *setting, uint64_t memory_bytes, struct hd_arena *arena,
	struct hd_diag *diag);

#endif
