/* report_int.h -- curves of a run, thinned to what a page can show.
 *
 * The reader of metrics.ndjson feeds it record by record; memory is bounded however
 * long the run was.
 *
 * 1. At most HD_CURVE_BINS bins, each with the least and the greatest value of its
 *    steps: a spike is never lost. When steps outgrow the bins, neighbours join and
 *    bins get twice as wide.
 * 2. A step recorded again, after a restart, drops all that was recorded from it on:
 *    whole bins are dropped, so at most one bin's width before it is shown thinner. */
#ifndef HD_RUN_REPORT_INT_H
#define HD_RUN_REPORT_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

enum { HD_CURVE_BINS = 1000 };

struct hd_curve {
	uint64_t width;                           /* steps of a bin; 0: nothing yet */
	struct hd_curve_bin { double low, high; bool used; } bin[HD_CURVE_BINS];
	uint32_t nbins;                           /* bins up to the last used */
	uint64_t nonfinite;                       /* values that cannot be drawn */
};
void hd_curve_add(struct hd_curve *curve, uint64_t step, double value);
void hd_curve_cut(struct hd_curve *curve, uint64_t step);         /* forgets from `step` on */
bool hd_curve_range(const struct hd_curve *curve, double *low, double *high);      /* for tests */

struct hd_dot { uint64_t step; double value; };

/* One chart as inline SVG. `dots` (may be none) lie on the same axes. */
struct hd_chart { const char *title, *unit, *dots_name; const struct hd_curve *curve;
	const struct hd_dot *dot; uint32_t ndots; };
void hd_chart_print(const struct hd_chart *chart, struct hd_text *page);

#endif
