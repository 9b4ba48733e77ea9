#include "run/overlay_int.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Neighbours become one. */
static void halve(struct hd_overlay_series *s, uint32_t bins)
{
	for (uint32_t i = 0; i < s->used; i += 2) {
		struct hd_overlay_bin a = s->bin[i];
		const struct hd_overlay_bin b = i + 1 < s->used ? s->bin[i + 1] :
			(struct hd_overlay_bin){ 0 };
		if (a.n && b.n)
			a = (struct hd_overlay_bin){ b.step, b.samples, b.t_s, a.sum + b.sum, fmin(a.low,
				b.low),
				fmax(a.high, b.high), a.n + b.n };
		s->bin[i / 2] = a.n ? a : b;
	}
	s->used = (s->used + 1) / 2;
	memset(s->bin + s->used, 0, (bins - s->used) * sizeof *s->bin);
	s->width *= 2;
}

void hd_overlay_add(struct hd_overlay_series *s, uint32_t bins, struct hd_overlay_at at, double value)
{
	if (!isfinite(value)) {
		s->nonfinite++;
		return;
	}
	s->width = s->width ? s->width : 1;
	while (at.step / s->width >= bins)
		halve(s, bins);
	const uint32_t i = (uint32_t)(at.step / s->width);
	struct hd_overlay_bin *b = &s->bin[i];
	assert(i < bins);
	*b = (struct hd_overlay_bin){ (double)at.step, (double)at.samples, at.t_s, b->sum + value,
		b->n ? fmin(b->low, value) : value, b->n ? fmax(b->high, value) : value, b->n + 1 };
	s->used = i + 1 > s->used ? i + 1 : s->used;
	if (!s->n || value < s->least) {
		s->least = value;
		s->least_step = at.step;
	}
	if (!s->n || value > s->greatest) {
		s->greatest = value;
		s->greatest_step = at.step;
	}
	s->last = value;
	s->last_step = at.step;
	s->n++;
}

/* What is known of a bin alone: its extremes at its last step. */
void hd_overlay_cut(struct hd_overlay_series *s, uint64_t step)
{
	const uint64_t first = s->width ? step / s->width : 0;

	for (uint32_t i = s->used; i > first; i--)
		s->bin[i - 1] = (struct hd_overlay_bin){ 0 };
	s->used = first < s->used ? (uint32_t)first : s->used;
	s->n = 0;
	for (uint32_t i = 0; i < s->used; i++) {
		const struct hd_overlay_bin *b = &s->bin[i];
		if (!b->n)
			continue;
		if (!s->n || b->low < s->least) {
			s->least = b->low;
			s->least_step = (uint64_t)b->step;
		}
		if (!s->n || b->high > s->greatest) {
			s->greatest = b->high;
			s->greatest_step = (uint64_t)b->step;
		}
		s->last = b->sum / (double)b->n;
		s->last_step = (uint64_t)b->step;
		s->n += b->n;
	}
}
