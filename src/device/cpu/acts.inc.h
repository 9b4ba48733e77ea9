/* acts.inc.h -- loops over the activations of acts.def and their slopes, and what its formulas want beside
 * vmath.h. One source for all paths.
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

HD_INLINE struct vf tanh_slope(struct vf x)
{
	struct vf y = vf_tanh(x);
	return vf_sub(vf_set(1.0f), vf_mul(y, y));
}

HD_INLINE struct vf sigmoid_slope(struct vf x)
{
	struct vf y = vf_sigmoid(x);
	return vf_mul(y, vf_sub(vf_set(1.0f), y));
}

HD_INLINE struct vf silu_slope(struct vf x)
{
	struct vf y = vf_sigmoid(x), one = vf_set(1.0f);
	return vf_mul(y, vf_fma(x, vf_sub(one, y), one));
}

HD_INLINE struct vf act_of(int act, const float *f, struct vf x)
{
	const struct vf a = vf_set(f[0]), b = vf_set(f[1]), zero = vf_set(0.0f), one = vf_set(1.0f);

	switch ((enum hd_act)act) {
#define ACT(id, text, nf, use, folds, about, value, slope, lanes, ...) case HD_ACT_##id: return lanes;
#include "graph/acts.def"
	case HD_NACTS: break;
	}
	return x;
}

HD_INLINE struct vf act_slope(int act, const float *f, struct vf x)
{
	const struct vf a = vf_set(f[0]), b = vf_set(f[1]), zero = vf_set(0.0f), one = vf_set(1.0f);

	switch ((enum hd_act)act) {
#define ACT(id, text, nf, use, folds, about, value, slope, lanes, lanes_slope, ...) \
	case HD_ACT_##id: return lanes_slope;
#include "graph/acts.def"
	case HD_NACTS: break;
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

static __attribute__((noinline)) void act_all(int act, const float *f, const float *x, float *y,
	uint64_t n)
{
	switch (act) {
#define ACT(id, ...) case HD_ACT_##id: act_run(HD_ACT_##id, f, x, y, n); break;
#include "graph/acts.def"
	default: break;
	}
}
static __attribute__((noinline)) void act_dx_all(int act, const float *f, const float *dy, const float *x,
	float *dx, uint64_t n)
{
	switch (act) {
#define ACT(id, ...) case HD_ACT_##id: act_dx_run(HD_ACT_##id, f, dy, x, dx, n); break;
#include "graph/acts.def"
	default: break;
	}
}

#endif
