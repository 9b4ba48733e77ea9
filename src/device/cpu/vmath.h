/* vmath.h -- exponential, logarithm, tanh, sigmoid and gelu of sixteen floats:
 * polynomials of our own, since the libm of two machines may differ in the last bit.
 *
 * 1. Errors against f64, bounded by vmath_test.c: exp and log 1 ulp, tanh 2, sigmoid 3.
 *    The gate of gelu 2 ulp for positive x; 12 down to x = -2.5, since an error of v
 *    becomes a relative one of e^v (and the gate is below 1e-2 there).
 * 2. What is no number stays no number. exp gives 0 below -87.336 (no subnormal
 *    results: they cost a hundred cycles each) and infinity above 88.7228.
 * 3. log takes positive normal numbers.
 *
 * Coefficients: exp is the Taylor series, whose seventh term is below half an ulp
 * for |r| <= ln 2 / 2; log and tanh are the classical single-precision minimax
 * polynomials of Moshier's Cephes library (logf, tanhf).
 *
 * Everything is inline: the header is private to the kernels. */
#ifndef HD_DEVICE_CPU_VMATH_H
#define HD_DEVICE_CPU_VMATH_H

#include "device/cpu/vec.h"

#define HD_LN2_HIGH 0x1.62e4p-1f              /* 15 bits: times any exponent it is exact */
#define HD_LN2_LOW  0x1.7f7d1cp-20f

/* x = n ln 2 + r; adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits. */
HD_INLINE struct vf vf_exp(struct vf x)
{
	static const float coeff[] = { 1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f };
	const struct vf magic = vf_set(0x1.8p23f);
	struct vf t = vf_fma(x, vf_set(0x1.715476p+0f), magic), n = vf_sub(t, magic);
	struct vf r = vf_fma(n, vf_set(-HD_LN2_LOW), vf_fma(n, vf_set(-HD_LN2_HIGH), x));
	struct vf p = vf_set(coeff[0]);

	for (int i = 1; i < 8; i++)
		p = vf_fma(p, r, vf_set(coeff[i]));
	struct vf y = vi_float_of(vi_add(vf_bits(p), vi_up23(vi_sub(vf_bits(t), vf_bits(magic)))));
	y = vf_select(vf_lt(x, vf_set(-87.336f)), vf_set(0.0f), y);
	y = vf_select(vf_lt(vf_set(0x1.62e42ep+6f), x), vf_set(__builtin_inff()), y);
	return vf_select(vf_eq(x, x), y, x);
}

/* x = m 2^e with m in [sqrt(1/2), sqrt(2)); log(1+f) = f - f^2/2 + f^3 P(f). */
HD_INLINE struct vf vf_log(struct vf x)
{
	static const float coeff[] = {
		7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
		-1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f,
	};
	struct vi over = vi_sub(vf_bits(x), vi_set(0x3f3504f3));           /* above sqrt(1/2) */
	struct vf e = vi_to_float(vi_down23(over));
	struct vf m = vi_float_of(vi_add(vi_and(over, vi_set(0x7fffff)), vi_set(0x3f3504f3)));
	struct vf f = vf_sub(m, vf_set(1.0f)), ff = vf_mul(f, f), p = vf_set(coeff[0]);

	for (int i = 1; i < 9; i++)
		p = vf_fma(p, f, vf_set(coeff[i]));
	p = vf_fma(e, vf_set(HD_LN2_LOW), vf_mul(vf_mul(p, f), ff));
	p = vf_fma(ff, vf_set(-0.5f), p);
	struct vf y = vf_fma(e, vf_set(HD_LN2_HIGH), vf_add(p, f));
	return vf_select(vf_lt(x, vf_set(__builtin_inff())), y, x);
}

HD_INLINE struct vf vf_sigmoid(struct vf x)
{
	struct vf one = vf_set(1.0f);
	return vf_div(one, vf_add(one, vf_exp(vf_sub(vf_set(0.0f), x))));
}

/* Near 0 an odd polynomial, since 1 - 2/(e^2x + 1) cancels there. */
HD_INLINE struct vf vf_tanh(struct vf x)
{
	static const float coeff[] = { -5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f, -3.33332819422e-1f };
	const struct vi sign = vi_set(INT32_MIN);
	struct vf one = vf_set(1.0f), a = vi_float_of(vi_and(vf_bits(x), vi_set(INT32_MAX))), xx = vf_mul(x, x);
	struct vf big = vf_sub(one, vf_div(vf_set(2.0f), vf_add(vf_exp(vf_add(a, a)), one)));
	struct vf p = vf_set(coeff[0]);

	for (int i = 1; i < 5; i++)
		p = vf_fma(p, xx, vf_set(coeff[i]));
	struct vf small = vf_fma(vf_mul(p, xx), x, x);
	big = vi_float_of(vi_or(vf_bits(big), vi_and(vf_bits(x), sign)));
	return vf_select(vf_lt(a, vf_set(0.625f)), small, big);
}

/* gelu(x) = x/2 (1 + tanh u) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3): no
 * cancellation and one division. */
#define HD_GELU_2K 1.5957691216057308f      /* 2 sqrt(2/pi) */
#define HD_GELU_C  0.044715f

HD_INLINE struct vf vf_gelu_gate(struct vf x)
{
	struct vf inner = vf_mul(x, vf_fma(vf_mul(x, x), vf_set(HD_GELU_C), vf_set(1.0f)));
	return vf_sigmoid(vf_mul(vf_set(HD_GELU_2K), inner));
}

#endif
