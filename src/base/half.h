/* half.h -- the two floating-point formats of two bytes, to and from f32.
 *
 * f16 is IEEE binary16 (5 bits of exponent, 10 of fraction), bf16 the upper half of an f32.
 * Importers read both, parameters may be kept as bf16.
 *
 * 1. Widening is exact: infinities, -0 and subnormals keep their value; a NaN stays one.
 * 2. hd_bf16_of_f32() rounds to nearest, ties to even; what is beyond the largest bf16
 *    becomes an infinity, as IEEE rounding does; a NaN becomes a quiet one of the same sign.
 * 3. hd_bf16_round() is the f32 that hd_bf16_of_f32() stands for: doing it twice is doing it once.
 *
 * Pure. */
#ifndef HD_BASE_HALF_H
#define HD_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline float hd_f32_of_bits(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof x);
	return x;
}

static inline uint32_t hd_bits_of_f32(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof bits);
	return bits;
}

static inline float hd_f32_of_bf16(uint16_t half) { return hd_f32_of_bits((uint32_t)half << 16); }

/* Adding half of the last place, less one when that place is even, carries exactly where rounding goes up. */
static inline uint16_t hd_bf16_of_f32(float x)
{
	uint32_t bits = hd_bits_of_f32(x);

	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)(bits >> 16 | 0x40u);
	return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float hd_bf16_round(float x) { return hd_f32_of_bf16(hd_bf16_of_f32(x)); }

static inline float hd_f32_of_f16(uint16_t half)
{
	uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = half >> 10 & 31u,
		fraction = half & 0x3ffu;

	if (exponent == 31)
		return hd_f32_of_bits(sign | 0x7f800000u | fraction << 13);
	if (exponent == 0) {
		float tiny = (float)fraction * 0x1p-24f;      /* exact: 10 bits times a power of two */
		return sign ? -tiny : tiny;
	}
	return hd_f32_of_bits(sign | (exponent + 112u) << 23 | fraction << 13);
}

#endif
