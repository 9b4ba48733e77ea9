#include "run/sampling.h"

#include <assert.h>
#include <math.h>

#include "base/philox.h"

uint32_t hd_sampling_largest(const float *at, uint32_t n)
{
	uint32_t best = 0;

	assert(n > 0);
	for (uint32_t i = 1; i < n; i++)
		if (at[i] > at[best])
			best = i;
	return best;
}

/* 53 bits in [0, 1). */
static double uniform(const struct hd_sampling *s, uint64_t position)
{
	const uint32_t counter[4] = { (uint32_t)position, (uint32_t)(position >> 32), 0, 0 };
	struct hd_philox drawn = hd_philox(counter, s->key);

	return (double)(((uint64_t)drawn.word[0] << 32 | drawn.word[1]) >> 11) * 0x1p-53;
}

uint32_t hd_sampling_token(const struct hd_sampling *s, const float *logits, uint32_t vocab,
	uint64_t position, double *weight)
{
	uint32_t best = hd_sampling_largest(logits, vocab);
	double sum = 0;

	if (s->temperature == 0)
		return best;
	for (uint32_t v = 0; v < vocab; v++)
		sum += weight[v] = exp(((double)logits[v] - (double)logits[best]) / s->temperature);
	double left = uniform(s, position) * sum;
	for (uint32_t v = 0; v < vocab; v++)
		if ((left -= weight[v]) < 0)
			return v;
	return best;
}
