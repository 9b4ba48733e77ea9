/* sampler.h -- which sample stands where: a keyed permutation evaluated on demand.
 *
 * The step number is the whole data state. D samples, S steps per data epoch:
 * step s reads data epoch E = s div S, batch k = s mod S, positions
 * [kB, min((k+1)B, D)); sample index = perm(E, position). With `wrap` the stream
 * runs on: position s*B + row, epoch = position div D.
 *
 * perm: Feistel network on [0, 2^(2h)), h = max(1, ceil(ceil(log2 D)/2)), 8 rounds
 * (L,R) <- (R, L xor F(r,R)), F = low h bits of words 0,1 (little end first) of
 * Philox(counter (R low, R high, r, E), key of domain order); the cycle is walked
 * until the result is below D (cycle walking keeps it a bijection).
 * `blocks` permutes blocks of 4096 and the inside of each (round word r |
 * (1+block) << 8 inside); the short last block keeps its place in the permuted order.
 *
 * 1. A bijection for every epoch: each sample exactly once, whatever happens.
 * 2. Pure; D < 2^48. */
#ifndef HD_DATA_SAMPLER_H
#define HD_DATA_SAMPLER_H

#include <stdint.h>

#include "base/err.h"

enum hd_order { HD_ORDER_SHUFFLE, HD_ORDER_SEQUENTIAL, HD_ORDER_BLOCKS };
enum hd_last  { HD_LAST_RAGGED, HD_LAST_DROP, HD_LAST_WRAP };

struct hd_sampler {
	uint64_t seed, count, batch;      /* D, B */
	enum hd_order order;
	enum hd_last last;
};

/* D = 0 is HD_E_INPUT; no step in a data epoch (drop with D < B) is HD_E_INVAL. */
HD_MUST_USE enum hd_err hd_sampler_init(struct hd_sampler *sampler, uint64_t seed, uint64_t count,
	uint64_t batch,
	enum hd_order order, enum hd_last last, struct hd_diag *diag);

/* S, of one data epoch (wrap: ceil) */
uint64_t hd_sampler_steps(const struct hd_sampler *sampler);
/* n: B, or fewer in a ragged step */
uint64_t hd_sampler_rows(const struct hd_sampler *sampler, uint64_t step);
/* data epoch of the step's first row */
uint64_t hd_sampler_epoch(const struct hd_sampler *sampler, uint64_t step);
/* of a row: with wrap a step may have two */
uint64_t hd_sampler_epoch_at(const struct hd_sampler *sampler, uint64_t step, uint64_t row);
/* sample index of a row of the step */
uint64_t hd_sampler_at(const struct hd_sampler *sampler, uint64_t step, uint64_t row);

/* The keyed permutation and its inverse, for tests. */
uint64_t hd_perm(uint64_t seed, uint64_t epoch, uint64_t count, uint64_t position);
uint64_t hd_perm_inverse(uint64_t seed, uint64_t epoch, uint64_t count, uint64_t index);

/* Rows of virtual node v in a step of n rows: [min(v*b,n), min((v+1)*b,n)). */
void hd_vn_rows(uint64_t per_vn, uint64_t nrows, uint32_t vn, uint64_t *first, uint64_t *end);

#endif
