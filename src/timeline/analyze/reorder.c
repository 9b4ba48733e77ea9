#include "timeline/analyze/reorder.h"

#include <assert.h>
#include <math.h>

#include "timeline/analyze/reorder_int.h"

enum { HALVINGS = 16 };

/* What the ends take at a rate, in memory that is given back. */
static enum hd_err play_at(const struct hd_tl_endings *e, double rate, double compute, bool now, double *took,
	struct hd_diag *diag)
{
	struct hd_arena scratch;

	hd_arena_init(&scratch, 0);
	const enum hd_err err = hd_tl_endings_play(e, &(struct hd_tl_play){ rate, compute, now }, took,
		&scratch, diag);
	hd_arena_finish(&scratch);
	return err;
}

/* Rule 1. */
static enum hd_err find_rate(const struct hd_tl_endings *e, double recorded, double *rate, double *took,
	struct hd_diag *diag)
{
	double low = e->rate / HD_TL_REORDER_WITHIN, high = e->rate * HD_TL_REORDER_WITHIN, slow, fast;
	enum hd_err err = play_at(e, low, 1, false, &slow, diag);

	err = err ? err : play_at(e, high, 1, false, &fast, diag);
	if (err)
		return err;
	*rate = e->rate;
	if (slow < recorded || fast > recorded)
		return play_at(e, *rate, 1, false, took, diag);
	for (int i = 0; i < HALVINGS && !err; i++) {
		*rate = sqrt(low * high);
		err = play_at(e, *rate, 1, false, took, diag);
		if (*took > recorded)
			low = *rate;
		else
			high = *rate;
	}
	return err;
}

enum hd_err hd_tl_reorder(const struct hd_tl_causes *causes, struct hd_tl_range *range,
	const struct hd_tl_order *order, const struct hd_tl_whatif *whatif, struct hd_arena *arena,
	struct hd_tl_replayed *now, struct hd_tl_replayed *then, struct hd_diag *diag)
{
	struct hd_tl_endings e;
	double rate, took, other;

	assert(whatif->bandwidth > 0 && whatif->compute > 0);
	enum hd_err err = hd_tl_endings_read(&e, causes, range, order, arena, diag);
	if (err)
		return err;
	const struct hd_tl_span span = hd_tl_range_span(causes->tl, *range);
	const double recorded = (double)(span.t1 - span.t0);
	err = find_rate(&e, recorded, &rate, &took, diag);
	err = err ? err : play_at(&e, rate * whatif->bandwidth, whatif->compute, true, &other, diag);
	if (err)
		return err;
	*now = (struct hd_tl_replayed){ span.t1 - span.t0, (int64_t)took };
	*then = (struct hd_tl_replayed){ span.t1 - span.t0, (int64_t)other };
	return HD_OK;
}
