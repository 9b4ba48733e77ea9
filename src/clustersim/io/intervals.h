/* intervals.h -- the times that machines were there, as a list with start and stop says them.
 *
 * 1. Of one name no two overlap; they are in the order of their start, then of the file, and numbered:
 *    "a", "a#2", "a#3".
 * 2. The first start is 0; without a stop it is infinite. */
#ifndef HD_CLUSTERSIM_IO_INTERVALS_H
#define HD_CLUSTERSIM_IO_INTERVALS_H

#include "clustersim/io/cells.h"

struct interval { double start_s, stop_s; const char *name; size_t row; };
struct intervals { size_t n; struct interval *at; };

/* The record names the columns of such a list. */
bool intervals_header(const struct cells *cells);
/* From the record of the header on. */
HD_MUST_USE enum hd_err intervals_read(struct intervals *all, struct cells *cells, struct hd_arena *arena,
	struct hd_diag *diag);

#endif
