#include "sweep/draw.h"

#include <math.h>
#include <stdio.h>

#include "base/philox.h"
#include "sweep/sobol.h"

static uint32_t drawn(const struct hd_sweep *s, uint32_t what, uint32_t axis)
{
	const uint32_t counter[4] = { what, axis, 0, 0 };

	return hd_philox(counter, hd_philox_key(s->seed, HD_RNG_SWEEP)).word[0];
}

/* Of a key in [0, 1). */
static double unit(const struct hd_sweep *s, uint32_t trial, uint32_t axis)
{
	uint32_t word;

	if (s->draw == HD_SWEEP_SOBOL)
		word = hd_sobol(trial, axis) ^ (s->seed ? drawn(s, UINT32_MAX, axis) : 0);
	else
		word = drawn(s, trial, axis);
	return (double)word * 0x1p-32;
}

static uint32_t place_in_grid(const struct hd_sweep *s, uint32_t trial, uint32_t axis)
{
	for (uint32_t a = s->naxes - 1; a > axis; a--)
		trial /= s->axis[a].n;
	return trial % s->axis[axis].n;
}

/* u in [0, 1], or, of what was drawn, [0, 1): each whole number has an equal part of that. */
static double between(const struct hd_sweep_axis *axis, double u, bool was_drawn)
{
	const bool log_ = axis->kind == HD_SWEEP_AXIS_LOG || axis->kind == HD_SWEEP_AXIS_LOGINT;
	const bool whole = hd_sweep_axis_is_whole(axis->kind);
	const double wide = whole && was_drawn ? 1 : 0, from = axis->from, to = axis->to + wide;
	double v = log_ ? exp(log(from) + u * (log(to) - log(from))) : from + u * (to - from);

	if (whole)
		v = wide > 0 ? floor(v) : nearbyint(v);
	return fmin(fmax(v, axis->from), axis->to);
}

const char *hd_sweep_value(const struct hd_sweep *s, uint32_t trial, uint32_t a, struct hd_sweep_value *room)
{
	const struct hd_sweep_axis *axis = &s->axis[a];
	const bool grid = s->draw == HD_SWEEP_GRID;
	const uint32_t place = grid ? place_in_grid(s, trial, a) : 0;

	if (axis->kind == HD_SWEEP_AXIS_CHOICE)
		return axis->choice[grid ? place : (uint32_t)(unit(s, trial, a) * axis->n)];
	double u = !grid ? unit(s, trial, a) : axis->n > 1 ? place / (axis->n - 1.0) : 0;
	snprintf(room->text, sizeof room->text, hd_sweep_axis_is_whole(axis->kind) ? "%.0f" : "%.6g",
		between(axis, u, !grid));
	return room->text;
}
