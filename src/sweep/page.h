/* page.h -- sweep.html: a sweep in one file that needs nothing.
 *
 * Parallel coordinates: an axis for each key and one for the metric, a line for each trial that reported.
 * Curves: the metric of each trial over its steps. Then the table. No script, no network (base/page.h).
 *
 * Pure: writes into a text. */
#ifndef HD_SWEEP_PAGE_H
#define HD_SWEEP_PAGE_H

#include "sweep/table.h"

void hd_sweep_page(const struct hd_sweep_table *table, const struct hd_sweep *sweep,
	const struct hd_trials *t, struct hd_text *page);

#endif
