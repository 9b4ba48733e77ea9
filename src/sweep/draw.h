/* draw.h -- the values of trial i: what a sweep sets in its job.
 *
 * 1. A function of the sweep and the number alone. Trials of a larger sweep begin with those of a smaller
 *    one, but for grids.
 * 2. Grid: combinations in order, the last key changes fastest; a range has its n points with both ends.
 * 3. Random: Philox of (seed, trial, key's place). Sobol: point `trial` (sobol.h), shifted by a number drawn
 *    of (seed, key's place); seed 0 shifts nothing.
 * 4. Numbers are written with six digits, so that another libm draws the same ones.
 *
 * Pure. */
#ifndef HD_SWEEP_DRAW_H
#define HD_SWEEP_DRAW_H

#include "base/num.h"
#include "sweep/sweep.h"

struct hd_sweep_value { char text[HD_NUM_CAP]; };

/* The value of key `axis` in trial `trial`, as -s takes it; of a choice the text of the file, else in `room`.
 * */
const char *hd_sweep_value(const struct hd_sweep *sweep, uint32_t trial, uint32_t axis,
	struct hd_sweep_value *room);

#endif
