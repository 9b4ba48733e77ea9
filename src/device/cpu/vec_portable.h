/* vec_portable.h -- the native part of vec.h in plain C: four floats, for any processor.
 * Only vec.h includes it.
 *
 * fmaf() of libm is exact by definition (one rounding) and so needs no code of our
 * own; where the processor lacks the instruction it is slow. */
#ifndef HD_DEVICE_CPU_VEC_PORTABLE_H
#define HD_DEVICE_CPU_VEC_PORTABLE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HD_INLINE static inline __attribute__((always_inline))

/* floats in a register; rows of results held at once by gemm.inc.h */
enum { HD_WIDTH = 4, HD_HEIGHT = 4 };
#define HD_HEIGHTS(X) X(2) X(4)
typedef float quad __attribute__((vector_size(16)));
typedef float part __attribute__((vector_size(16)));
typedef int32_t ipart __attribute__((vector_size(16)));
typedef uint32_t upart __attribute__((vector_size(16)));      /* for sums that may wrap */
typedef uint64_t uwide __attribute__((vector_size(16)));      /* the same register as pairs */

HD_INLINE part part_set(float x) { return (part){ x, x, x, x }; }
HD_INLINE part part_load(const float *at) { part a; memcpy(&a, at, sizeof a); return a; }
HD_INLINE void part_store(float *at, part a) { memcpy(at, &a, sizeof a); }
HD_INLINE part part_fma(part a, part b, part c)
{
	return (part){ fmaf(a[0], b[0], c[0]), fmaf(a[1], b[1], c[1]), fmaf(a[2], b[2], c[2]),
		fmaf(a[3], b[3], c[3]) };
}
HD_INLINE part part_sqrt(part a) { return (part){ sqrtf(a[0]), sqrtf(a[1]), sqrtf(a[2]), sqrtf(a[3]) }; }
HD_INLINE part part_from_int(ipart a) { return __builtin_convertvector(a, part); }
/* All ones or zero in a lane. */
typedef ipart pmask;
HD_INLINE pmask mask_first(size_t n) { return (pmask)((ipart){ 0, 1, 2, 3 } < (int32_t)n); }
HD_INLINE pmask part_lt(part a, part b) { return (pmask)(a < b); }
HD_INLINE pmask part_eq(part a, part b) { return (pmask)(a == b); }
HD_INLINE pmask ipart_lt(ipart a, ipart b) { return (pmask)(a < b); }
HD_INLINE pmask ipart_eq(ipart a, ipart b) { return (pmask)(a == b); }
HD_INLINE pmask mask_not(pmask a) { return ~a; }
HD_INLINE ipart ipart_where(pmask m, ipart a) { return m & a; }
HD_INLINE part part_select(pmask m, part yes, part no) { return (part)((m & (ipart)yes) | (~m & (ipart)no)); }
HD_INLINE part part_max(part a, part b) { return part_select(part_lt(b, a), a, b); }
HD_INLINE void part_quads(const part *p, quad q[4]) { for (int i = 0; i < 4; i++) q[i] = p[i]; }
HD_INLINE part part_load_n(const float *at, size_t n) { part a = { 0 }; memcpy(&a, at, n * sizeof *at);
	return a; }
HD_INLINE void part_store_n(float *at, part a, size_t n) { memcpy(at, &a, n * sizeof *at); }

/* lane i: lane at[i] of a */
HD_INLINE part part_pick(part a, ipart at) { return (part){ a[at[0]], a[at[1]], a[at[2]], a[at[3]] }; }
HD_INLINE part part_even(part a, part b) { return __builtin_shufflevector(a, b, 0, 2, 4, 6); }
HD_INLINE part part_odd(part a, part b) { return __builtin_shufflevector(a, b, 1, 3, 5, 7); }
HD_INLINE part part_low(part a, part b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
HD_INLINE part part_high(part a, part b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }

HD_INLINE void part_transpose(part row[4])
{
	for (int i = 0; i < 4; i++)
		for (int j = i + 1; j < 4; j++) {
			float t = row[i][j];
			row[i][j] = row[j][i];
			row[j][i] = t;
		}
}

#endif
