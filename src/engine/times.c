#include "engine/times.h"

#include <stdlib.h>
#include <string.h>

void hd_times_add(struct hd_times *times, double ms) { times->at[times->n++ % HD_TIMES_CAP] = ms; }

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double hd_times_quantile(const struct hd_times *times, double q)
{
	double sorted[HD_TIMES_CAP];
	size_t n = times->n < HD_TIMES_CAP ? (size_t)times->n : HD_TIMES_CAP;

	if (n == 0)
		return 0;
	memcpy(sorted, times->at, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, by_size);
	size_t rank = (size_t)(q * (double)n);
	return sorted[rank < n ? rank : n - 1];
}

uint64_t hd_times_interval(double cost_ms, double step_ms, uint32_t share)
{
	uint64_t steps = 1;

	while (steps < (uint64_t)1 << 40 && (double)steps * step_ms < cost_ms * share)
		steps *= 2;
	return steps;
}
