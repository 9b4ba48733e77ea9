/* launch_int.h -- the inside of a launch: launch.c (its course) and launch_plan.c (costs, choice and
 * prediction, rules 4 and 5). Private to the room. */
#ifndef HD_DRIVER_LAUNCH_INT_H
#define HD_DRIVER_LAUNCH_INT_H

#include "run/pipes_forecast.h"
#include "driver/launch.h"

/* On the screen and in the run's record. */
void launch_note(const struct hd_launch_spec *spec, const char *kind, const char *said, const char *kept);
/* What the job's ops cost, where a plan is made or predicted by that: launch->costs. Measured at a start and
 * kept in the run's folder; of a run that is taken over what was kept. */
HD_MUST_USE enum hd_err launch_cost(struct hd_launch *launch, struct hd_diag *diag);
/* With that, of parallel.mode: auto what is chosen by it. */
HD_MUST_USE enum hd_err launch_choose(struct hd_launch *launch, struct hd_diag *diag);
/* Rule 5, by what was measured (launch->costs); of a run that is taken over nothing changes. */
HD_MUST_USE enum hd_err launch_settle(struct hd_launch *launch, struct hd_diag *diag);
/* Buckets and the order of transfers (run/comm_settled.h), kept in the run's job; before anything is made of
 * the task's layout. Of a run that is taken over nothing changes. */
HD_MUST_USE enum hd_err launch_comm(struct hd_launch *launch, struct hd_diag *diag);
/* hd_redraw_spec.fits; `self` is the launch. */
bool launch_shape_fits(void *self, const struct hd_view_shape *shape, uint32_t nworkers, uint32_t ndevices,
	struct hd_diag *why);
void launch_predict(struct hd_launch *launch, struct hd_pipes_forecast *forecast);
/* At the end: what the steps of the last view took beside its prediction; before its first step that of the
 * start. */
void launch_predicted(struct hd_launch *launch, const struct hd_pipes_forecast *start,
	struct hd_forecast *forecast);

#endif
