/* kept_forecast.h -- what the steps of a plan were predicted to take, and took, in the run's folder beside
 * the plan: plan/NNNN.predicted.json before its first step, plan/NNNN.measured.json when it is over. Over
 * workers the number is that of the view, and the coordinator writes both.
 *
 * What cannot be predicted (forecast.h; over workers pipes_forecast.h, too) has no file, nor has a view under
 * which no step begins: one with doubled ranks, or with too few devices for the stages of the job.
 *
 * One object: "plan", the number, and the members of hd_forecast_put() (forecast.h). The report reads the
 * newest that is measured.
 *
 * Pure but for the files. */
#ifndef HD_RUN_KEPT_FORECAST_H
#define HD_RUN_KEPT_FORECAST_H

#include "base/json.h"
#include "run/forecast.h"
#include "run/rundir.h"

#define HD_KEPT_PREDICTED "predicted"
#define HD_KEPT_MEASURED  "measured"

/* As many of one file are read, so no more are written. */
enum { HD_FORECAST_BYTES = 1 << 20 };

/* `what`: one of these two. Makes the folder of plans where there is none yet. HD_E_NOSPACE: it would be
 * longer, and nothing is written. */
HD_MUST_USE enum hd_err hd_forecast_keep(const struct hd_forecast *forecast, struct hd_rundir *dir,
	uint32_t number, const char *what, struct hd_diag *diag);
/* The newest that is measured, parsed: in the arena. HD_E_NOTFOUND: there is none. */
HD_MUST_USE enum hd_err hd_forecast_newest(const struct hd_json **json, const struct hd_rundir *dir,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
