/* validate.h -- does a timeline keep what timeline.h promises? For tests and fuzz targets, whatever made it.
 *
 * Looked at: rows that lie in their tables, lanes that follow one another, the order of events, nesting in
 * devices' lanes, stamps within their event, steps of a process in order and events within their step,
 * bounds, names and classes that there are.
 *
 * Pure; takes no memory. */
#ifndef HD_TIMELINE_VALIDATE_H
#define HD_TIMELINE_VALIDATE_H

#include "base/err.h"
#include "timeline/timeline.h"

/* HD_E_BUG says which promise, and where. */
HD_MUST_USE enum hd_err hd_tl_validate(const struct hd_timeline *timeline, struct hd_diag *diag);

#endif
