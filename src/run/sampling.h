/* sampling.h -- a token drawn from a model's logits.
 *
 * The distribution is softmax(logits / temperature), summed in f64 and in the order of the tokens: the drawn
 * token depends on logits, seed and position alone, and logits have the same bits on any devices.
 *
 * Pure. */
#ifndef HD_RUN_SAMPLING_H
#define HD_RUN_SAMPLING_H

#include <stdint.h>

struct hd_sampling {
	double temperature;               /* 0: the most likely token, nothing is drawn */
	uint64_t key;                     /* hd_philox_key(seed, HD_RNG_USER) */
};

/* The first of the largest of `n` values, n > 0. */
uint32_t hd_sampling_largest(const float *at, uint32_t n);

/* The token after `position` tokens. `logits` and `weight` (scratch): [vocab], vocab > 0. */
uint32_t hd_sampling_token(const struct hd_sampling *s, const float *logits, uint32_t vocab,
	uint64_t position, double *weight);

#endif
