/* philox.h -- random numbers as a pure function of what they are for.
 *
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011). Nothing random is state: a number is keyed by what it is
 * for, so that moving a virtual node moves no generator.
 *
 * key     = seed + domain * 0x9E3779B97F4A7C15 mod 2^64 (low word, high word)
 * domains = HD_RNG_*; counters of each domain:
 *   model   (element/4, op id, step low 32, vn | (step >> 32) << 20); word k of a
 *           block serves element 4*block + k; element is row-major inside the virtual node
 *   augment (draw, op id, sample low 32, (sample >> 32 & 0xfff) | data epoch << 12); of a step: data/mix.h
 *   init    (element/4, tensor index, 0, 0)
 *   order   see data/sampler.h
 *   mask    (position | (step >> 32) << 20, op id, step low 32, hash of the sample); three words of a block
 *           serve one token: chosen or not, what becomes of it, which token that is
 *   noise   (index in the list, rank, step, which cost of it)
 *   sweep   (trial, or ~0 for the shift of a sequence; the key's place; 0; 0)
 *   cluster (what is drawn: HD_RNG_CLUSTER_*, entity low 32, entity high 32, which draw of it)
 * Limits: vn < 2^20, step < 2^44, 2^34 elements in a draw. */
#ifndef HD_BASE_PHILOX_H
#define HD_BASE_PHILOX_H

#include <stdint.h>

enum hd_rng_domain { HD_RNG_INIT = 1, HD_RNG_MODEL, HD_RNG_AUGMENT, HD_RNG_ORDER, HD_RNG_SAMPLE, HD_RNG_USER,
	HD_RNG_MASK, HD_RNG_NOISE,
	HD_RNG_CLUSTER, HD_RNG_SWEEP };

/* What a cluster scheduler draws for a job, a device, a pair. In logs that are replayed: never reused. */
enum hd_rng_cluster { HD_RNG_CLUSTER_KIND = 1, HD_RNG_CLUSTER_SCALE, HD_RNG_CLUSTER_DURATION,
	HD_RNG_CLUSTER_ARRIVAL, HD_RNG_CLUSTER_REVOKED,
	HD_RNG_CLUSTER_FAILURE, HD_RNG_CLUSTER_PROFILE, HD_RNG_CLUSTER_WEIGHT, HD_RNG_CLUSTER_SPOT };

struct hd_philox { uint32_t word[4]; };

struct hd_philox hd_philox(const uint32_t counter[4], uint64_t key);
uint64_t hd_philox_key(uint64_t seed, enum hd_rng_domain domain);
struct hd_philox hd_philox_model(uint64_t seed, uint64_t step, uint32_t vn, uint32_t op, uint64_t block);
/* `sample`: low 32 bits of the hash of its tokens. Where two samples share them they share a pattern,
 * nothing else. */
struct hd_philox hd_philox_mask(uint64_t seed, uint64_t step, uint32_t op, uint32_t sample,
	uint32_t position);

static inline float hd_uniform(uint32_t word) { return (float)(word >> 8) * 0x1p-24f; }
/* keep iff word >= it; p < 1 */
static inline uint32_t hd_keep_from(double p) { return (uint32_t)(p * 4294967296.0); }

/* Two standard normals from two words by Box-Muller, with our own log, cos and
 * sin: the libm of two hosts may differ in the last bit. */
void hd_normal2(uint32_t u, uint32_t v, float out[2]);

#endif
