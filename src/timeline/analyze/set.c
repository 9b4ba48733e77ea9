#include "timeline/analyze/set.h"

#include <stdlib.h>

static int by_begin(const void *a, const void *b)
{
	const struct hd_tl_span *x = a, *y = b;

	return (x->t0 > y->t0) - (x->t0 < y->t0);
}

struct hd_tl_set hd_tl_set_of(struct hd_tl_span *span, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(span, n, sizeof *span, by_begin);
	for (size_t i = 0; i < n; i++) {
		if (span[i].t1 <= span[i].t0)
			continue;
		if (kept && span[i].t0 <= span[kept - 1].t1) {
			if (span[i].t1 > span[kept - 1].t1)
				span[kept - 1].t1 = span[i].t1;
		} else {
			span[kept++] = span[i];
		}
	}
	return (struct hd_tl_set){ span, kept };
}

int64_t hd_tl_set_ns(const struct hd_tl_set *set)
{
	int64_t sum = 0;

	for (size_t i = 0; i < set->n; i++)
		sum += set->span[i].t1 - set->span[i].t0;
	return sum;
}

int64_t hd_tl_set_common_ns(const struct hd_tl_set *a, const struct hd_tl_set *b)
{
	int64_t sum = 0;

	for (size_t i = 0, j = 0; i < a->n && j < b->n;) {
		const struct hd_tl_span both = hd_tl_clip(a->span[i], b->span[j]);
		sum += both.t1 - both.t0;
		if (a->span[i].t1 < b->span[j].t1)
			i++;
		else
			j++;
	}
	return sum;
}
