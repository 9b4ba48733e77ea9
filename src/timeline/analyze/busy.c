#include "timeline/analyze/busy.h"

#include <string.h>

bool hd_tl_busy_open(struct hd_tl_busy *busy, struct hd_arena *arena)
{
	*busy = (struct hd_tl_busy){ .at = hd_arena_take(arena, HD_TL_BUSY_SPANS + 1, sizeof *busy->at) };
	return busy->at;
}

/* The first span that ends after t. */
static size_t after(const struct hd_tl_busy *b, int64_t t)
{
	size_t i = b->n;

	while (i > 0 && b->at[i - 1].t1 > t)
		i--;
	return i;
}

int64_t hd_tl_busy_free(const struct hd_tl_busy *b, int64_t t0, int64_t t1)
{
	int64_t free = t1 > t0 ? t1 - t0 : 0;

	for (size_t i = after(b, t0); i < b->n && b->at[i].t0 < t1; i++) {
		const struct hd_tl_span both = hd_tl_clip(b->at[i], (struct hd_tl_span){ t0, t1 });
		free -= both.t1 - both.t0;
	}
	return free;
}

static void put(struct hd_tl_busy *b, struct hd_tl_span span)
{
	size_t i = b->n, k;

	while (i > 0 && b->at[i - 1].t1 >= span.t0)
		i--;
	for (k = i; k < b->n && b->at[k].t0 <= span.t1; k++) {
		span.t0 = b->at[k].t0 < span.t0 ? b->at[k].t0 : span.t0;
		span.t1 = b->at[k].t1 > span.t1 ? b->at[k].t1 : span.t1;
	}
	memmove(&b->at[i + 1], &b->at[k], (b->n - k) * sizeof *b->at);
	b->at[i] = span;
	b->n += 1 + i - k;
	if (b->n <= HD_TL_BUSY_SPANS)
		return;
	b->at[1].t0 = b->at[0].t0;
	memmove(&b->at[0], &b->at[1], --b->n * sizeof *b->at);
}

int64_t hd_tl_busy_take(struct hd_tl_busy *b, int64_t from, int64_t ns)
{
	int64_t t = from;

	for (size_t i = after(b, from); i < b->n; i++) {
		const int64_t gap = b->at[i].t0 - t;
		if (gap >= ns)
			break;
		ns -= gap > 0 ? gap : 0;
		t = b->at[i].t1;
	}
	if (ns > 0)
		put(b, (struct hd_tl_span){ from, t + ns });
	return t + ns;
}
