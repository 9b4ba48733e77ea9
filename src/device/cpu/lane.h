/* lane.h -- what a lane of packed operands of a product holds: one term in f32, or (HD_BF16, kernels_bf16.c)
 * a pair of terms in bf16; with HD_AMX (kernels_amx.c) too, and lanes come in tiles.
 *
 * 1. Packed memory counts in lanes, operands in terms. A last pair may lack its odd term, a last tile some
 *    lanes: they are zero.
 * 2. The arithmetic of pairs and tiles is that of device/bf16.h. */
#ifndef HD_DEVICE_CPU_LANE_H
#define HD_DEVICE_CPU_LANE_H

#include "device/cpu/vec.h"

#ifdef HD_BF16
enum { LANE_TERMS = 2 };
#else
enum { LANE_TERMS = 1 };
#endif

/* lanes come in multiples of it */
#ifdef HD_AMX
enum { LANE_TILE = 16 };
#else
enum { LANE_TILE = 1 };
#endif

HD_INLINE int64_t lanes_of(int64_t terms)
{
	const int64_t tile = LANE_TERMS * LANE_TILE;

	return (terms + tile - 1) / tile * LANE_TILE;
}

#ifdef HD_BF16
HD_INLINE part lane_fma(part a, part b, part c)
{
	return (part)_mm512_dpbf16_ps((__m512)c, (__m512bh)a, (__m512bh)b);
}

/* The lanes of `n` columns: terms from[i] and from[step + i], as far as there are so many. */
HD_INLINE part lane_across(const float *from, int64_t step, int64_t n, int64_t terms)
{
	const __mmask16 mask = n >= HD_WIDTH ? 0xffff : (__mmask16)((1u << n) - 1);
	if (LANE_TILE > 1 && terms <= 0)
		return part_set(0.0f);
	__m512i even = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, from)));

	if (terms < LANE_TERMS)
		return (part)even;
	__m512i odd = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(
		_mm512_maskz_loadu_ps(mask, from + step)));
	return (part)_mm512_or_si512(even, _mm512_slli_epi32(odd, 16));
}

/* A register of lanes of `terms` terms that lie one after the other. */
HD_INLINE part lane_along(const float *from, int64_t terms)
{
	const uint32_t mask = terms >= 32 ? UINT32_MAX : (1u << terms) - 1;

	return (part)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps((__mmask16)(mask >> 16), from + HD_WIDTH),
		_mm512_maskz_loadu_ps((__mmask16)mask, from));
}
#else
HD_INLINE part lane_fma(part a, part b, part c) { return part_fma(a, b, c); }

HD_INLINE part lane_across(const float *from, int64_t step, int64_t n, int64_t terms)
{
	(void)step;
	(void)terms;
	return n >= HD_WIDTH ? part_load(from) : part_load_n(from, (size_t)n);
}

HD_INLINE part lane_along(const float *from, int64_t terms)
{
	return terms >= HD_WIDTH ? part_load(from) : part_load_n(from, (size_t)terms);
}
#endif

#endif
