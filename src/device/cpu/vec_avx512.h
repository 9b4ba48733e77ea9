/* vec_avx512.h -- the native part of vec.h on AVX-512: sixteen floats in one register.
 * Only vec.h includes it. */
#ifndef HD_DEVICE_CPU_VEC_AVX512_H
#define HD_DEVICE_CPU_VEC_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define HD_INLINE static inline __attribute__((always_inline))

/* floats in a register; rows of results held at once by gemm.inc.h */
enum { HD_WIDTH = 16, HD_HEIGHT = 14 };
#define HD_HEIGHTS(X) X(2) X(4) X(6) X(8) X(10) X(12) X(14)
typedef float quad __attribute__((vector_size(16)));
typedef float part __attribute__((vector_size(64)));
typedef int32_t ipart __attribute__((vector_size(64)));
typedef uint32_t upart __attribute__((vector_size(64)));      /* for sums that may wrap */
typedef uint64_t uwide __attribute__((vector_size(64)));      /* the same register as pairs */

HD_INLINE part part_set(float x) { return (part)_mm512_set1_ps(x); }
HD_INLINE part part_load(const float *at) { return (part)_mm512_loadu_ps(at); }
HD_INLINE void part_store(float *at, part a) { _mm512_storeu_ps(at, (__m512)a); }
HD_INLINE part part_fma(part a, part b, part c) { return (part)_mm512_fmadd_ps((__m512)a, (__m512)b,
	(__m512)c); }
HD_INLINE part part_sqrt(part a) { return (part)_mm512_sqrt_ps((__m512)a); }
HD_INLINE part part_from_int(ipart a) { return (part)_mm512_cvtepi32_ps((__m512i)a); }
/* A bit a lane. */
typedef __mmask16 pmask;
HD_INLINE pmask mask_first(size_t n) { return (pmask)((1u << n) - 1); }
HD_INLINE pmask part_lt(part a, part b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OS); }
HD_INLINE pmask part_eq(part a, part b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_OQ); }
HD_INLINE pmask ipart_lt(ipart a, ipart b) { return _mm512_cmplt_epi32_mask((__m512i)a, (__m512i)b); }
HD_INLINE pmask ipart_eq(ipart a, ipart b) { return _mm512_cmpeq_epi32_mask((__m512i)a, (__m512i)b); }
HD_INLINE pmask mask_not(pmask a) { return _mm512_knot(a); }
HD_INLINE ipart ipart_where(pmask m, ipart a) { return (ipart)_mm512_maskz_mov_epi32(m, (__m512i)a); }
HD_INLINE part part_select(pmask m, part yes, part no)
{
	return (part)_mm512_mask_blend_ps(m, (__m512)no, (__m512)yes);
}
HD_INLINE part part_max(part a, part b) { return (part)_mm512_max_ps((__m512)a, (__m512)b); }
HD_INLINE void part_quads(const part *p, quad q[4])
{
	q[0] = (quad)_mm512_castps512_ps128((__m512)p[0]);
	q[1] = (quad)_mm512_extractf32x4_ps((__m512)p[0], 1);
	q[2] = (quad)_mm512_extractf32x4_ps((__m512)p[0], 2);
	q[3] = (quad)_mm512_extractf32x4_ps((__m512)p[0], 3);
}
HD_INLINE part part_load_n(const float *at, size_t n)
{
	return (part)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), at);
}
HD_INLINE void part_store_n(float *at, part a, size_t n)
{
	_mm512_mask_storeu_ps(at, (__mmask16)((1u << n) - 1), (__m512)a);
}
HD_INLINE part part_pick(part a, ipart at) { return (part)_mm512_permutexvar_ps((__m512i)at, (__m512)a); }
HD_INLINE part part_even(part a, part b)
{
	return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}
HD_INLINE part part_odd(part a, part b)
{
	return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}
HD_INLINE part part_low(part a, part b)
{
	return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
HD_INLINE part part_high(part a, part b)
{
	return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

/* Rows become columns: pairs, quadruples, then quarters of registers change places. */
HD_INLINE void part_transpose(part row[16])
{
	__m512 t[16], u[16];

#pragma GCC unroll 8
	for (int i = 0; i < 16; i += 2) {
		t[i] = _mm512_unpacklo_ps((__m512)row[i], (__m512)row[i + 1]);
		t[i + 1] = _mm512_unpackhi_ps((__m512)row[i], (__m512)row[i + 1]);
	}
#pragma GCC unroll 4
	for (int i = 0; i < 16; i += 4) {
		u[i] = (__m512)_mm512_unpacklo_pd((__m512d)t[i], (__m512d)t[i + 2]);
		u[i + 1] = (__m512)_mm512_unpackhi_pd((__m512d)t[i], (__m512d)t[i + 2]);
		u[i + 2] = (__m512)_mm512_unpacklo_pd((__m512d)t[i + 1], (__m512d)t[i + 3]);
		u[i + 3] = (__m512)_mm512_unpackhi_pd((__m512d)t[i + 1], (__m512d)t[i + 3]);
	}
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		t[i] = _mm512_shuffle_f32x4(u[i], u[i + 4], 0x88);
		t[i + 4] = _mm512_shuffle_f32x4(u[i], u[i + 4], 0xdd);
		t[i + 8] = _mm512_shuffle_f32x4(u[i + 8], u[i + 12], 0x88);
		t[i + 12] = _mm512_shuffle_f32x4(u[i + 8], u[i + 12], 0xdd);
	}
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		row[i] = (part)_mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
		row[i + 4] = (part)_mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
		row[i + 8] = (part)_mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
		row[i + 12] = (part)_mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
	}
}

#endif
