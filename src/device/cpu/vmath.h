/* vmath.h -- exponential, logarithm, power, tanh, sigmoid, the error function, the gates of gelu, sine,
 * cosine, the inverse tangent and rounding of sixteen floats: polynomials of our own, since the libm of two
 * machines may differ in the last bit.
 *
 * 1. Errors against f64, bounded by vmath_test.c: exp, log and pow 1 ulp, tanh 2, sigmoid,
 *    erf and softplus 3, normal (the gate of gelu_erf) 5, expm1 2, sin and cos 2, atan 3.
 *    The gate of gelu 2 ulp for positive x; 12 down to x = -2.5, since an error of v
 *    becomes a relative one of e^v (and the gate is below 1e-2 there).
 * 2. What is no number stays no number. exp gives 0 below -87.336 (no subnormal
 *    results: they cost a hundred cycles each) and infinity above 88.7228.
 * 3. vf_log takes positive normal numbers, vf_log_any whatever comes.
 *
 * Coefficients: exp is the Taylor series, whose seventh term is below half an ulp
 * for |r| <= ln 2 / 2; log and tanh are the classical single-precision minimax
 * polynomials of Moshier's Cephes library (logf, tanhf); those of the error function are
 * our own minimax fits (weighted least squares at Chebyshev nodes, in f64).
 *
 * Everything is inline: the header is private to the kernels. */
#ifndef HD_DEVICE_CPU_VMATH_H
#define HD_DEVICE_CPU_VMATH_H

#include <stdbool.h>
#include <string.h>

#include "device/cpu/vec.h"

#define HD_LN2_HIGH 0x1.62e4p-1f              /* 15 bits: times any exponent it is exact */
#define HD_LN2_LOW  0x1.7f7d1cp-20f

/* Of x that is no number or below 88.7228. x = n ln 2 + r; adding 1.5 * 2^23 rounds to an integer and
 * leaves it in the low bits. */
HD_INLINE struct vf vf_exp_finite(struct vf x)
{
	static const float coeff[] = { 1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f,
		1.0f };
	const struct vf magic = vf_set(0x1.8p23f);
	struct vf t = vf_fma(x, vf_set(0x1.715476p+0f), magic), n = vf_sub(t, magic);
	struct vf r = vf_fma(n, vf_set(-HD_LN2_LOW), vf_fma(n, vf_set(-HD_LN2_HIGH), x));
	struct vf p = vf_set(coeff[0]);

	for (int i = 1; i < 8; i++)
		p = vf_fma(p, r, vf_set(coeff[i]));
	struct vf y = vi_float_of(vi_add(vf_bits(p), vi_up23(vi_sub(vf_bits(t), vf_bits(magic)))));
	y = vf_select(vf_lt(x, vf_set(-87.336f)), vf_set(0.0f), y);
	return vf_select(vf_eq(x, x), y, x);
}

HD_INLINE struct vf vf_exp(struct vf x)
{
	return vf_select(vf_lt(vf_set(0x1.62e42ep+6f), x), vf_set(__builtin_inff()), vf_exp_finite(x));
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
	static const float coeff[] = { -5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f,
		1.33314422036e-1f, -3.33332819422e-1f };
	const struct vi sign = vi_set(INT32_MIN);
	struct vf one = vf_set(1.0f), a = vi_float_of(vi_and(vf_bits(x), vi_set(INT32_MAX))),
		xx = vf_mul(x, x);
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

HD_INLINE struct vf vf_abs(struct vf x) { return vi_float_of(vi_and(vf_bits(x), vi_set(INT32_MAX))); }
HD_INLINE struct vf vf_neg(struct vf x) { return vi_float_of(vi_xor(vf_bits(x), vi_set(INT32_MIN))); }
HD_INLINE struct vf vf_signed(struct vf size, struct vf sign) { return vi_float_of(vi_or(vf_bits(size),
	vi_and(vf_bits(sign), vi_set(INT32_MIN)))); }

/* Minus infinity at 0, no number below; subnormal numbers are scaled by 2^23 first. */
HD_INLINE struct vf vf_log_any(struct vf x)
{
	struct vf zero = vf_set(0.0f);
	struct vm small = vf_lt(x, vf_set(0x1p-126f));
	struct vf y = vf_log(vf_select(small, vf_mul(x, vf_set(0x1p23f)), x));

	y = vf_select(small, vf_sub(y, vf_set(0x1.fe2804p+3f)), y);            /* 23 ln 2 */
	y = vf_select(vf_eq(x, zero), vf_set(-__builtin_inff()), y);
	y = vf_select(vf_lt(x, zero), vf_set(__builtin_nanf("")), y);
	return vf_select(vf_eq(x, x), y, x);
}

/* Near 0 the series without its first term, since e^x - 1 cancels there. */
HD_INLINE struct vf vf_expm1(struct vf x)
{
	static const float coeff[] = { 1.0f / 40320, 1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6,
		0.5f };
	struct vf p = vf_set(coeff[0]);

	for (int i = 1; i < 7; i++)
		p = vf_fma(p, x, vf_set(coeff[i]));
	struct vf near = vf_fma(vf_mul(p, x), x, x);
	return vf_select(vf_lt(vf_abs(x), vf_set(0.5f)), near, vf_sub(vf_exp(x), vf_set(1.0f)));
}

/* max(x, 0) + log(1 + u), u = e^-|x|: log(w) + (u - (w - 1)) / w, where w = 1 + u as rounded. */
HD_INLINE struct vf vf_softplus(struct vf x)
{
	struct vf zero = vf_set(0.0f), one = vf_set(1.0f), u = vf_exp(vf_neg(vf_abs(x))), w = vf_add(one, u);
	struct vf rest = vf_div(vf_sub(u, vf_sub(w, one)), w);
	return vf_add(vf_select(vf_lt(x, zero), zero, x), vf_add(vf_log(w), rest));
}

/* The upper tail of the normal distribution, erfc(a / sqrt 2) / 2 for a >= 0: e^(-a^2/2) times a
 * polynomial in (a - 3) / (a + 3). The rounding of a^2 is put back, since it would be a relative error. */
HD_INLINE struct vf vf_normal_tail(struct vf a)
{
	static const float coeff[] = {
		5.415121996e-05f, 1.160378306e-04f, -3.399116977e-04f, -9.841832798e-04f, 2.904702676e-03f,
		6.132183131e-03f, -4.621331394e-02f, 1.232250184e-01f, -2.064026147e-01f, 1.215139478e-01f,
	};
	/* nothing is left there */
	struct vf cut = vf_select(vf_lt(vf_set(14.0f), a), vf_set(14.0f), a), three = vf_set(3.0f);
	struct vf s = vf_div(vf_sub(cut, three), vf_add(cut, three)), p = vf_set(coeff[0]);
	struct vf square = vf_mul(cut, cut), lost = vf_fma(cut, cut, vf_neg(square));

	for (int i = 1; i < 10; i++)
		p = vf_fma(p, s, vf_set(coeff[i]));
	struct vf e = vf_exp(vf_mul(square, vf_set(-0.5f)));
	return vf_mul(p, vf_fma(e, vf_mul(lost, vf_set(-0.5f)), e));
}

/* The normal distribution, (1 + erf(x / sqrt 2)) / 2: the gate of gelu_erf. */
HD_INLINE struct vf vf_normal(struct vf x)
{
	struct vf tail = vf_normal_tail(vf_abs(x));
	struct vf y = vf_select(vf_lt(x, vf_set(0.0f)), tail, vf_sub(vf_set(1.0f), tail));
	return vf_select(vf_eq(x, x), y, x);
}

HD_INLINE struct vf vf_erf(struct vf x)
{
	static const float coeff[] = {
		0x1.6512c0p-14f, -0x1.aca43cp-11f, 0x1.550a5ap-8f, -0x1.b81526p-6f, 0x1.ce2e54p-4f,
			-0x1.812744p-2f, 0x1.20dd76p+0f,
	};
	struct vf a = vf_abs(x), xx = vf_mul(x, x), p = vf_set(coeff[0]),
		tail = vf_normal_tail(vf_mul(a, vf_set(0x1.6a09e6p+0f)));

	for (int i = 1; i < 7; i++)
		p = vf_fma(p, xx, vf_set(coeff[i]));
	struct vf y = vf_select(vf_lt(a, vf_set(0.9f)), vf_mul(p, x),
		vf_signed(vf_fma(vf_set(-2.0f), tail, vf_set(1.0f)), x));
	return vf_select(vf_eq(x, x), y, x);
}

/* One power in f64: e^(y log x), whose error is far below half a unit of f32. log m = 2
 * atanh((m-1)/(m+1)). */
static inline double log64(double x)
{
	int64_t bits;
	double sum = 0;

	memcpy(&bits, &x, sizeof bits);
	int64_t over = bits - 0x3fe6a09e667f3bcd, e = over >> 52;           /* above sqrt(1/2) */
	bits = (over & 0xfffffffffffff) + 0x3fe6a09e667f3bcd;
	memcpy(&x, &bits, sizeof x);
	double s = (x - 1) / (x + 1), ss = s * s;
	for (int k = 21; k >= 1; k -= 2)
		sum = sum * ss + 1.0 / k;
	return (double)e * 0.693147180559945309417 + 2 * s * sum;
}
static inline double exp64(double x)
{
	double n = x * 1.44269504088896340736 + 0x1.8p52, p = 1, scale;
	int64_t low;

	memcpy(&low, &n, sizeof low);
	double r = x - (n - 0x1.8p52) * 0.693147180559945309417;
	for (int k = 13; k >= 1; k--)
		p = 1 + p * r / k;
	/* the exponent lies in the low bits of n */
	low = ((low & 0xfff) + 1023) << 52 & 0x7ff0000000000000;
	memcpy(&scale, &low, sizeof scale);
	return p * scale;
}
/* Powers as IEEE 754 (pow) defines them, but what is no number never becomes one, pow(x, 0) excepted. */
static inline float one_pow(float x, float y)
{
	const float inf = __builtin_inff(), size = x < 0 ? -x : x, ysize = y < 0 ? -y : y;
	bool whole = ysize >= 0x1p23f || (y == y && (float)(int32_t)y == y), odd = whole && ysize < 0x1p24f &&
		((int32_t)y & 1);

	if (y == 0.0f || x == 1.0f)
		return 1.0f;
	if (x != x || y != y || (x < 0.0f && !whole))
		return __builtin_nanf("");
	if (size == 0.0f || size == inf)
		return __builtin_copysignf((size == 0.0f) == (y > 0.0f) ? 0.0f : inf, odd ? x : 1.0f);
	double t = size == 1.0f ? 0 : (double)y * log64((double)size);
	return __builtin_copysignf((float)exp64(t > 200 ? 200 : t < -200 ? -200 : t), odd ? x : 1.0f);
}
static __attribute__((noinline, unused)) struct vf vf_pow(struct vf x, struct vf y)
{
	float base[HD_UNIT], by[HD_UNIT];

	vf_store(base, x);
	vf_store(by, y);
	for (int i = 0; i < HD_UNIT; i++)
		base[i] = one_pow(base[i], by[i]);
	return vf_load(base);
}

/* What is left of x after whole turns of 2 pi, beyond where n pi/2 in three floats is exact enough. fmod is
 * exact, with the bits of every machine; the rounding of 2 pi is what the result has of error. */
static __attribute__((noinline, unused)) struct vf vf_turned_back(struct vf x)
{
	float angle[HD_UNIT];

	vf_store(angle, x);
	for (int i = 0; i < HD_UNIT; i++)
		if (angle[i] > 0x1p15f || angle[i] < -0x1p15f)
			angle[i] = (float)__builtin_fmod((double)angle[i], 6.28318530717958647693);
	return vf_load(angle);
}

/* sin(x + quarter pi/2): x = n pi/2 + r, and the polynomial of sine or of cosine of r in [-pi/4, pi/4] with
 * the sign of the quadrant. Polynomials: Cephes (sinf, cosf); pi/2 in three parts: Cody and Waite. */
HD_INLINE struct vf vf_wave(struct vf x, int32_t quarter)
{
	const struct vf magic = vf_set(0x1.8p23f), one = vf_set(1.0f);
	x = vf_turned_back(x);
	struct vf t = vf_fma(x, vf_set(0x1.45f306p-1f), magic), n = vf_sub(t, magic);
	struct vf r = vf_fma(n, vf_set(-0x1.921fb6p+0f), x);
	r = vf_fma(n, vf_set(0x1.777a5cp-25f), r);
	r = vf_fma(n, vf_set(0x1.ee59dap-50f), r);
	struct vf rr = vf_mul(r, r);
	struct vf s = vf_fma(vf_fma(vf_set(-1.9515295891e-4f), rr, vf_set(8.3321608736e-3f)), rr,
		vf_set(-1.6666654611e-1f));
	struct vf c = vf_fma(vf_fma(vf_set(2.443315711809948e-5f), rr, vf_set(-1.388731625493765e-3f)), rr,
		vf_set(4.166664568298827e-2f));
	s = vf_fma(vf_mul(s, rr), r, r);
	c = vf_fma(vf_mul(c, rr), rr, vf_fma(rr, vf_set(-0.5f), one));
	struct vi turn = vi_add(vf_bits(t), vi_set(quarter));
	struct vm even = vi_eq(vi_and(turn, vi_set(1)), vi_set(0)),
		minus = vi_eq(vi_and(turn, vi_set(2)), vi_set(2));
	struct vf y = vf_select(even, s, c);
	y = vi_float_of(vi_xor(vf_bits(y), vi_where(minus, vi_set(INT32_MIN))));
	return vf_select(vf_lt(vf_abs(x), vf_set(__builtin_inff())), y, vf_sub(x, x));
}
HD_INLINE struct vf vf_sin(struct vf x) { return vf_select(vf_eq(x, vf_set(0.0f)), x, vf_wave(x, 0)); }
HD_INLINE struct vf vf_cos(struct vf x) { return vf_wave(x, 1); }

/* Beyond tan(pi/8) by the angle that is left to pi/4 or pi/2. Polynomial: Cephes (atanf). */
HD_INLINE struct vf vf_atan(struct vf x)
{
	static const float coeff[] = { 8.05374449538e-2f, -1.38776856032e-1f, 1.99777106478e-1f,
		-3.33329491539e-1f };
	const struct vf one = vf_set(1.0f), zero = vf_set(0.0f);
	struct vf a = vf_abs(x);
	struct vm far = vf_lt(vf_set(0x1.3504f4p+1f), a), mid = vf_lt(vf_set(0x1.a8279ap-2f), a);
	struct vf from = vf_select(far, vf_set(0x1.921fb6p+0f), vf_select(mid, vf_set(0x1.921fb6p-1f), zero));
	struct vf lost = vf_select(far, vf_set(-0x1.777a5cp-25f),
		vf_select(mid, vf_set(-0x1.777a5cp-26f), zero));
	struct vf z = vf_select(far, vf_div(vf_set(-1.0f), a),
		vf_select(mid, vf_div(vf_sub(a, one), vf_add(a, one)), a));
	struct vf zz = vf_mul(z, z), p = vf_set(coeff[0]);

	for (int i = 1; i < 4; i++)
		p = vf_fma(p, zz, vf_set(coeff[i]));
	struct vf y = vf_add(from, vf_add(vf_fma(vf_mul(p, zz), z, z), lost));
	return vf_select(vf_eq(x, x), vf_signed(y, x), x);
}

/* To the nearest whole number, of two the even one: adding 2^23 leaves no places behind the point. */
HD_INLINE struct vf vf_round(struct vf x)
{
	const struct vf magic = vf_set(0x1p23f);
	struct vf a = vf_abs(x), whole = vf_sub(vf_add(a, magic), magic);

	return vf_select(vf_lt(a, magic), vf_signed(whole, x), x);
}
HD_INLINE struct vf vf_floor(struct vf x)
{
	struct vf y = vf_round(x);
	return vf_signed(vf_sub(y, vf_select(vf_lt(x, y), vf_set(1.0f), vf_set(0.0f))), x);
}
HD_INLINE struct vf vf_ceil(struct vf x) { return vf_neg(vf_floor(vf_neg(x))); }

#endif
