/* bf16.h -- the arithmetic of `job.precision: bf16` and of `bf16-amx`, in plain C: what the kernels of
 * AVX512-BF16 and of AMX compute, bit for bit.
 *
 * 1. An operand is the nearest bf16 of its f32, ties to even; a subnormal f32 counts as a zero of its sign.
 * 2. Terms go in pairs (k, k + 1), k even; a last one without a partner has +0 x +0 in its place. A sum is an
 *    f32: first the product of the odd term is added to it, then that of the even one, each by a fused
 *    multiply-add rounded to nearest even; subnormal operands, sums and results count as zeros of their sign.
 * 3. Pairs ascend, from +0. So every element of a product is one chain, as in gemm.inc.h.
 * 4. What is no number stays no number; which one is the processor's.
 * 5. bf16-amx has other sums of the same operands. Terms go in blocks of 32; those missing in the last one
 *    are +0 x +0. In a block the even terms are a chain from +0 and the odd ones another, of fused
 *    multiply-adds; the two are added, then their sum to the one so far, which begins with +0. Each step
 *    rounds to nearest even and counts subnormals as zeros of their sign, as in 2.
 *
 * Source: VDPBF16PS, TDPBF16PS and VCVTNEPS2BF16 in the Intel 64 and IA-32 Architectures Software Developer's
 * Manual; a processor whose answers differ is refused (hd_cpu_has_bf16(), hd_cpu_has_amx()). */
#ifndef HD_DEVICE_BF16_H
#define HD_DEVICE_BF16_H

#include <math.h>

#include "base/half.h"

/* Subnormals count as zeros. */
static inline float hd_bf16_flush(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x; }

/* As an f32: the operand that a product sees. */
static inline float hd_bf16_operand(float x) { return hd_bf16_round(hd_bf16_flush(x)); }

/* sum + a b of operands. */
static inline float hd_bf16_term(float sum, float a, float b)
{
	return hd_bf16_flush(fmaf(hd_bf16_flush(a), hd_bf16_flush(b), hd_bf16_flush(sum)));
}

/* sum + a[0] b[0] + a[1] b[1]. */
static inline float hd_bf16_pair(float sum, const float a[2], const float b[2])
{
	return hd_bf16_term(hd_bf16_term(sum, a[1], b[1]), a[0], b[0]);
}

enum { HD_BF16_BLOCK = 32 };

/* sum + a[0] b[0] + ... of a block, as bf16-amx adds it. */
static inline float hd_bf16_block(float sum, const float a[HD_BF16_BLOCK], const float b[HD_BF16_BLOCK])
{
	float even = 0, odd = 0;

	for (int k = 0; k < HD_BF16_BLOCK; k += 2) {
		even = hd_bf16_term(even, a[k], b[k]);
		odd = hd_bf16_term(odd, a[k + 1], b[k + 1]);
	}
	return hd_bf16_flush(hd_bf16_flush(sum) + hd_bf16_flush(even + odd));
}

#endif
