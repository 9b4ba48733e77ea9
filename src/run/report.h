/* report.h -- report.html: what happened in a run, in one file that needs nothing.
 *
 * Made from metrics.ndjson, events.ndjson, job.resolved.json and the newest plan alone, so
 * it can be made again at any time, of a run that died too. Its head has the end and its
 * cause, the final metric, steps, time and devices; below are curves, events and the job.
 * Inline SVG, no script, no network; opens from file://, at any width. A run without steps,
 * evaluations or an end, and lines that cannot be read have their own words. Of a step
 * recorded twice (after a restart) the last record counts. */
#ifndef HD_RUN_REPORT_H
#define HD_RUN_REPORT_H

#include "run/rundir.h"

HD_MUST_USE enum hd_err hd_report_write(const struct hd_rundir *dir, struct hd_diag *diag);

#endif
