/* overlay_int.h -- a series of an overlay that grows (private). */
#ifndef HD_RUN_OVERLAY_INT_H
#define HD_RUN_OVERLAY_INT_H

#include "run/overlay.h"

struct hd_overlay_at { uint64_t step, samples; double t_s; };

/* bins: of series->bin. Steps ascend, but for those that follow a cut. */
void hd_overlay_add(struct hd_overlay_series *series, uint32_t bins, struct hd_overlay_at at, double value);
/* Forgets from `step` on; extremes are those of what is left, to a bin's width. */
void hd_overlay_cut(struct hd_overlay_series *series, uint64_t step);

#endif
