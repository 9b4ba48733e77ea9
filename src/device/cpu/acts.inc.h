/* acts.inc.h -- the activations of HD_ACTS (op.h) and their slopes, and loops over them. One
 * source for all paths.
 *
 * 1. f is alpha, beta. Every element is computed alone: no order to fix.
 * 2. What is no number stays no number. */
#ifndef HD_DEVICE_CPU_ACTS_INC_H
#define HD_DEVICE_CPU_ACTS_INC_H

#include <stdbool.h>

#include "graph/op.h"
#include "device/cpu/vmath.h"

/* for each unit of n elements: `len` of them at i, 16 but for the last */
#define HD_UNITS(i, len, n) \
	for (size_t i = 0, len; i < (n) && ((len = (n) - i < HD_UNIT ? (n) - i : HD_UNIT), true); \
		i += HD_UNIT)

HD_INLINE struct vf vf_positive(struct vf x, struct vf yes,
	struct vf no) { return vf_select(vf_lt(vf_set(0.0f), x), yes, no); }

HD_INLINE struct vf act_clip(struct vf x, const float *f)
{
	struct vf lo = vf_set(f[0]), hi = vf_set(f[1]);
	return vf_select(vf_lt(x, lo), lo, vf_select(vf_lt(hi, x), hi, x));
}

HD_INLINE struct vf act_of(int act, const float *f, struct vf x)
{
	switch ((enum hd_act)act) {
	case HD_ACT_RELU:     return vf_select(vf_lt(x, vf_set(0.0f)), vf_set(0.0f), x);
	case HD_ACT_GELU:     return vf_mul(x, vf_gelu_gate(x));
	case HD_ACT_TANH:     return vf_tanh(x);
	case HD_ACT_SIGMOID:  return vf_sigmoid(x);
	case HD_ACT_SILU:     return vf_mul(x, vf_sigmoid(x));
	case HD_ACT_GELU_ERF: return vf_mul(x, vf_normal(x));
	case HD_ACT_SOFTPLUS: return vf_softplus(x);
	case HD_ACT_ELU:      return vf_positive(x, x, vf_mul(vf_set(f[0]), vf_expm1(x)));
	case HD_ACT_LEAKY:    return vf_positive(x, x, vf_mul(vf_set(f[0]), x));
	case HD_ACT_CLIP:     return act_clip(x, f);
	case HD_ACT_EXP:      return vf_exp(x);
	case HD_ACT_LOG:      return vf_log_any(x);
	case HD_ACT_SQRT:     return vf_sqrt(x);
	case HD_ACT_ERF:      return vf_erf(x);
	case HD_ACT_NEG:      return vf_neg(x);
	case HD_ACT_ABS:      return vf_abs(x);
	case HD_ACT_RECIP:    return vf_div(vf_set(1.0f), x);
	case HD_ACT_SQUARE:   return vf_mul(x, x);
	case HD_ACT_POW:      return vf_pow(x, vf_set(f[0]));
	case HD_NACTS:        break;
	}
	return x;
}

/* The derivative of gelu = x s(v), v = 2k (x + c x^3):  s + x s (1 - s) 2k (1 + 3 c x^2). */
HD_INLINE struct vf gelu_slope(struct vf x)
{
	struct vf s = vf_gelu_gate(x), one = vf_set(1.0f);
	struct vf inner = vf_mul(vf_set(HD_GELU_2K), vf_fma(vf_mul(x, x), vf_set(3.0f * HD_GELU_C), one));
	return vf_fma(vf_mul(vf_mul(x, s), vf_sub(one, s)), inner, s);
}

/* Phi(x) + x phi(x). */
HD_INLINE struct vf gelu_erf_slope(struct vf x)
{
	struct vf bell = vf_mul(vf_set(0x1.988454p-2f), vf_exp(vf_mul(vf_mul(x, x), vf_set(-0.5f))));
	return vf_fma(x, bell, vf_normal(x));
}

HD_INLINE struct vf abs_slope(struct vf x)
{
	struct vf one = vf_set(1.0f);
	return vf_positive(x, one, vf_select(vf_lt(x, vf_set(0.0f)), vf_set(-1.0f), vf_mul(x, vf_set(0.0f))));
}

HD_INLINE struct vf clip_slope(struct vf x, const float *f)
{
	struct vf none = vf_set(0.0f);
	return vf_select(vf_lt(x, vf_set(f[0])), none, vf_select(vf_lt(vf_set(f[1]), x), none, vf_set(1.0f)));
}

HD_INLINE struct vf act_slope(int act, const float *f, struct vf x)
{
	struct vf one = vf_set(1.0f), y;

	switch ((enum hd_act)act) {
	case HD_ACT_RELU:     return vf_positive(x, one, vf_set(0.0f));
	case HD_ACT_GELU:     return gelu_slope(x);
	case HD_ACT_TANH:
		y = vf_tanh(x);
		return vf_sub(one, vf_mul(y, y));
	case HD_ACT_SIGMOID:
		y = vf_sigmoid(x);
		return vf_mul(y, vf_sub(one, y));
	case HD_ACT_SILU:
		y = vf_sigmoid(x);
		return vf_mul(y, vf_fma(x, vf_sub(one, y), one));
	case HD_ACT_GELU_ERF: return gelu_erf_slope(x);
	case HD_ACT_SOFTPLUS: return vf_sigmoid(x);
	case HD_ACT_ELU:      return vf_positive(x, one, vf_mul(vf_set(f[0]), vf_exp(x)));
	case HD_ACT_LEAKY:    return vf_positive(x, one, vf_set(f[0]));
	case HD_ACT_CLIP:     return clip_slope(x, f);
	case HD_ACT_EXP:      return vf_exp(x);
	case HD_ACT_LOG:      return vf_div(one, x);
	case HD_ACT_SQRT:     return vf_div(vf_set(0.5f), vf_sqrt(x));
	case HD_ACT_ERF:      return vf_mul(vf_set(0x1.20dd76p+0f), vf_exp(vf_neg(vf_mul(x, x))));
	case HD_ACT_NEG:      return vf_set(-1.0f);
	case HD_ACT_ABS:      return abs_slope(x);
	case HD_ACT_RECIP:    return vf_neg(vf_div(one, vf_mul(x, x)));
	case HD_ACT_SQUARE:   return vf_add(x, x);
	case HD_ACT_POW:      return vf_mul(vf_set(f[0]), vf_pow(x, vf_set(f[0] - 1.0f)));
	case HD_NACTS:        break;
	}
	return x;
}

/* Each activation is its own loop: the switch is outside. Never inlined, since every copy is forty loops. */
HD_INLINE void act_run(int act, const float *f, const float *x, float *y, uint64_t n)
{
	HD_UNITS(i, len, n)
		vf_store_n(y + i, act_of(act, f, vf_load_n(x + i, len)), len);
}
HD_INLINE void act_dx_run(int act, const float *f, const float *dy, const float *x, float *dx, uint64_t n)
{
	HD_UNITS(i, len, n)
		vf_store_n(dx + i, vf_mul(vf_load_n(dy + i, len), act_slope(act, f, vf_load_n(x + i, len))),
			len);
}

#define X(id, text, nf, about) case HD_ACT_##id: act_run(HD_ACT_##id, f, x, y, n); break;
static __attribute__((noinline)) void act_all(int act, const float *f, const float *x, float *y,
	uint64_t n) { switch (act) { HD_ACTS(X) default: break; } }
#undef X
#define X(id, text, nf, about) case HD_ACT_##id: act_dx_run(HD_ACT_##id, f, dy, x, dx, n); break;
static __attribute__((noinline)) void act_dx_all(int act, const float *f, const float *dy, const float *x,
	float *dx, uint64_t n)
{
	switch (act) { HD_ACTS(X) default: break; }
}
#undef X

#endif
