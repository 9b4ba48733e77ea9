#include "timeline/analyze/straggler_int.h"

#include <assert.h>
#include <math.h>

static enum hd_err gain_in(struct hold_judge *j, struct hd_tl_range range, struct hd_tl_whatif whatif,
	double *gain)
{
	struct hd_tl_replayed now, then;
	const struct hd_tl_whatif none = hd_tl_as_recorded();

	hd_arena_reset(j->scratch);
	enum hd_err err = hd_tl_replay(j->causes, range, &none, j->scratch, &now, j->diag);
	if (!err)
		err = hd_tl_replay(j->causes, range, &whatif, j->scratch, &then, j->diag);
	if (!err)
		*gain = now.replayed > 0 ? 1 - (double)then.replayed / (double)now.replayed : 0;
	return err;
}

enum hd_err hd_tl_hold_gain(struct hold_judge *j, struct hd_tl_whatif whatif, double *gain)
{
	return gain_in(j, j->range, whatif, gain);
}

struct hd_tl_range hd_tl_hold_quarter(const struct hold_judge *j, uint64_t k)
{
	const uint64_t n = j->range.last - j->range.first + 1;

	assert(n >= HD_TL_STRAGGLER_LEAST && k < HOLD_QUARTERS);
	return (struct hd_tl_range){ j->range.first + n * k / HOLD_QUARTERS, j->range.first + n * (k + 1) /
		HOLD_QUARTERS - 1 };
}

enum hd_err hd_tl_hold_lasts(struct hold_judge *j, struct hd_tl_whatif whatif, int percent, bool *does)
{
	double gain[HOLD_QUARTERS] = { 0 }, mean = 0, squares = 0;
	enum hd_err err = HD_OK;

	for (uint64_t k = 0; k < HOLD_QUARTERS && !err; k++) {
		err = gain_in(j, hd_tl_hold_quarter(j, k), whatif, &gain[k]);
		mean += gain[k] / HOLD_QUARTERS;
	}
	for (int k = 0; k < HOLD_QUARTERS; k++)
		squares += (gain[k] - mean) * (gain[k] - mean);
	const double error = sqrt(squares / (HOLD_QUARTERS * (HOLD_QUARTERS - 1)));
	*does = !err && 100 * (mean - 2 * error) > percent;
	return err;
}

struct hd_tl_whatif hd_tl_hold_alike(uint32_t process, bool work, bool reading, bool channels)
{
	struct hd_tl_whatif w = hd_tl_as_recorded();

	w.process = process;
	w.work = work;
	w.reading = reading;
	w.channels = channels;
	return w;
}
