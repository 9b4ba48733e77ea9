/* vec_avx2.h -- the native part of vec.h on AVX2 with FMA: eight floats in one register.
 * Only vec.h includes it. */
#ifndef HD_DEVICE_CPU_VEC_AVX2_H
#define HD_DEVICE_CPU_VEC_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define HD_INLINE static inline __attribute__((always_inline))

/* floats in a register; rows of results held at once by gemm.inc.h */
enum { HD_WIDTH = 8, HD_HEIGHT = 6 };
#define HD_HEIGHTS(X) X(2) X(4) X(6)
typedef float quad __attribute__((vector_size(16)));
typedef float part __attribute__((vector_size(32)));
typedef int32_t ipart __attribute__((vector_size(32)));
typedef uint32_t upart __attribute__((vector_size(32)));      /* for sums that may wrap */
typedef uint64_t uwide __attribute__((vector_size(32)));      /* the same register as pairs */

HD_INLINE part part_set(float x) { return (part)_mm256_set1_ps(x); }
HD_INLINE part part_load(const float *at) { return (part)_mm256_loadu_ps(at); }
HD_INLINE void part_store(float *at, part a) { _mm256_storeu_ps(at, (__m256)a); }
HD_INLINE part part_fma(part a, part b, part c) { return (part)_mm256_fmadd_ps((__m256)a, (__m256)b,
	(__m256)c); }
HD_INLINE part part_sqrt(part a) { return (part)_mm256_sqrt_ps((__m256)a); }
HD_INLINE part part_from_int(ipart a) { return (part)_mm256_cvtepi32_ps((__m256i)a); }
/* All ones or zero in a lane. */
typedef ipart pmask;
HD_INLINE pmask mask_first(size_t n)
{
	return (pmask)((ipart){ 0, 1, 2, 3, 4, 5, 6, 7 } < (int32_t)n);
}
HD_INLINE pmask part_lt(part a, part b) { return (pmask)(a < b); }
HD_INLINE pmask part_eq(part a, part b) { return (pmask)(a == b); }
HD_INLINE pmask ipart_lt(ipart a, ipart b) { return (pmask)(a < b); }
HD_INLINE pmask ipart_eq(ipart a, ipart b) { return (pmask)(a == b); }
HD_INLINE pmask mask_not(pmask a) { return ~a; }
HD_INLINE ipart ipart_where(pmask m, ipart a) { return m & a; }
HD_INLINE part part_select(pmask m, part yes, part no)
{
	return (part)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)m);
}
HD_INLINE part part_max(part a, part b) { return (part)_mm256_max_ps((__m256)a, (__m256)b); }
HD_INLINE void part_quads(const part *p, quad q[4])
{
	for (int i = 0; i < 2; i++) {
		q[2 * i] = (quad)_mm256_castps256_ps128((__m256)p[i]);
		q[2 * i + 1] = (quad)_mm256_extractf128_ps((__m256)p[i], 1);
	}
}
HD_INLINE part part_load_n(const float *at, size_t n)
{
	return (part)_mm256_maskload_ps(at, (__m256i)mask_first(n));
}
HD_INLINE void part_store_n(float *at, part a, size_t n)
{
	_mm256_maskstore_ps(at, (__m256i)mask_first(n), (__m256)a);
}
HD_INLINE part part_pick(part a, ipart at) { return (part)_mm256_permutevar8x32_ps((__m256)a, (__m256i)at); }
HD_INLINE part part_even(part a, part b) { return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14); }
HD_INLINE part part_odd(part a, part b)
{
	return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
}
HD_INLINE part part_low(part a, part b)
{
	return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
HD_INLINE part part_high(part a, part b)
{
	return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

/* Rows become columns: pairs, quadruples, then halves of registers change places. */
HD_INLINE void part_transpose(part row[8])
{
	__m256 t[8], u[8];

#pragma GCC unroll 4
	for (int i = 0; i < 8; i += 2) {
		t[i] = _mm256_unpacklo_ps((__m256)row[i], (__m256)row[i + 1]);
		t[i + 1] = _mm256_unpackhi_ps((__m256)row[i], (__m256)row[i + 1]);
	}
#pragma GCC unroll 2
	for (int i = 0; i < 8; i += 4) {
		u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
		u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
		u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
		u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
	}
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		row[i] = (part)_mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
		row[i + 4] = (part)_mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
	}
}

#endif
