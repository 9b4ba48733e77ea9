/* Bins of time: what a lane looks like from afar, where its events are too many for a page. */
#include "timeline/viewer_int.h"

#include <assert.h>

static int64_t more(int64_t a, int64_t b) { return a > b ? a : b; }

static uint32_t bins_of_lane(const struct hd_timeline *t)
{
	uint32_t even = t->nlanes ? HD_VIEWER_BINS / t->nlanes : 1;

	return even < 1 ? 1 : even < HD_VIEWER_LANE_BINS ? even : HD_VIEWER_LANE_BINS;
}

static uint8_t dominant(const uint64_t busy[HD_TL_CLASS_COUNT])
{
	uint8_t best = 0;

	for (uint8_t c = 1; c < HD_TL_CLASS_COUNT; c++)
		if (busy[c] > busy[best])
			best = c;
	return best;
}

/* Into bin[]; how many. `most` is enough: bins without an event are left out. */
static uint64_t bin_lane(const struct hd_timeline *t, const struct hd_tl_lane *lane, uint32_t most,
	struct hd_viewer_bin *bin)
{
	uint64_t n = 0, span, width, now = UINT64_MAX, busy[HD_TL_CLASS_COUNT] = { 0 };

	if (lane->begin == lane->end)
		return 0;
	int64_t origin = t->event[lane->begin].t0;
	span = (uint64_t)t->event[lane->end - 1].t0 - (uint64_t)origin;
	width = span / most + 1;
	for (uint64_t i = lane->begin; i < lane->end; i++) {
		const struct hd_tl_event *e = &t->event[i];
		uint64_t at = ((uint64_t)e->t0 - (uint64_t)origin) / width, took = (uint64_t)e->t1 -
			(uint64_t)e->t0;
		if (!hd_viewer_drawn(e))
			continue;
		if (at != now) {
			for (uint32_t c = 0; c < HD_TL_CLASS_COUNT; c++)
				busy[c] = 0;
			assert(n < most);
			bin[n++] = (struct hd_viewer_bin){ .t0 = e->t0, .t1 = e->t1 };
			now = at;
		}
		struct hd_viewer_bin *b = &bin[n - 1];
		b->t1 = more(b->t1, e->t1);
		b->count++;
		b->busy += took;
		/* 1: instants have a class, too */
		busy[e->class < HD_TL_CLASS_COUNT ? e->class : HD_TL_OTHER] += took + 1;
		b->class = dominant(busy);
	}
	return n;
}

enum hd_err hd_viewer_bin(const struct hd_timeline *t, struct hd_arena *arena, struct hd_viewer_bins *bins,
	struct hd_diag *diag)
{
	uint32_t most = bins_of_lane(t);
	struct hd_viewer_bins b = { hd_arena_take(arena, (size_t)t->nlanes * most + 1, sizeof *b.bin),
		hd_arena_take(arena, (size_t)t->nlanes + 1, sizeof *b.at) };

	if (!b.bin || !b.at)
		return hd_fail(diag, HD_E_NOMEM, "no memory for bins of %u lanes", t->nlanes);
	for (uint32_t l = 0; l < t->nlanes; l++)
		b.at[l + 1] = b.at[l] + bin_lane(t, &t->lane[l], most, b.bin + b.at[l]);
	*bins = b;
	return HD_OK;
}
