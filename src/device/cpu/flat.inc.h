/* flat.inc.h -- loops over flat vectors: optimizers in one pass, sums, copies. One source
 * for all paths; the formulas stand in optim.h.
 *
 * 1. Every element is computed alone, one rounding per operation, in the order of
 *    hd_optim_update_plain(): the same bits. */
#ifndef HD_DEVICE_CPU_FLAT_INC_H
#define HD_DEVICE_CPU_FLAT_INC_H

#include <string.h>

#include "base/lanes.h"
#include "device/cpu/maps.inc.h"
#include "device/optim.h"

/* What every formula calls g: scaled, clipped, with the L2 term. */
HD_INLINE struct vf flat_gradient(const struct hd_step_scalars *s, struct vf grad, struct vf param, float decay)
{
	struct vf g = vf_mul(vf_mul(grad, vf_set(s->scale)), vf_set(s->clip));
	return vf_add(g, vf_mul(vf_set(decay), param));
}

static inline void flat_sgd(const struct hd_step_scalars *s, float *param, const float *grad, uint64_t len)
{
	HD_UNITS(i, n, len) {
		struct vf p = vf_load_n(param + i, n);
		struct vf g = flat_gradient(s, vf_load_n(grad + i, n), p, s->optim.weight_decay);
		vf_store_n(param + i, vf_sub(p, vf_mul(vf_set(s->lr), g)), n);
	}
}

HD_INLINE void flat_momentum_of(bool nesterov, const struct hd_step_scalars *s, float *param, const float *grad, float *slot, uint64_t len)
{
	struct vf mu = vf_set(s->optim.momentum);

	HD_UNITS(i, n, len) {
		struct vf p = vf_load_n(param + i, n);
		struct vf g = flat_gradient(s, vf_load_n(grad + i, n), p, s->optim.weight_decay);
		struct vf m = vf_add(vf_mul(mu, vf_load_n(slot + i, n)), g);
		struct vf move = nesterov ? vf_add(g, vf_mul(mu, m)) : m;
		vf_store_n(slot + i, m, n);
		vf_store_n(param + i, vf_sub(p, vf_mul(vf_set(s->lr), move)), n);
	}
}

/* What the formulas of Adam need beyond the step's scalars, each rounded once. */
struct flat_adam { struct vf b1, b2, n1, n2, rate, root2, eps, keep; float decay; };

HD_INLINE struct flat_adam flat_adam_of(const struct hd_step_scalars *s)
{
	const struct hd_optim *o = &s->optim;
	bool decoupled = o->kind == HD_OPTIM_ADAMW;
	float shrink = s->lr * o->weight_decay;

	return (struct flat_adam){ vf_set(o->beta1), vf_set(o->beta2), vf_set(1.0f - o->beta1), vf_set(1.0f - o->beta2),
		vf_set(s->lr / s->c1), vf_set(__builtin_sqrtf(s->c2)), vf_set(o->eps),
		vf_set(decoupled ? 1.0f - shrink : 1.0f), decoupled ? 0.0f : o->weight_decay };
}

static inline void flat_adam(const struct hd_step_scalars *s, float *param, const float *grad, float *slot0, float *slot1, uint64_t len)
{
	struct flat_adam a = flat_adam_of(s);

	HD_UNITS(i, n, len) {
		struct vf p = vf_load_n(param + i, n), g = flat_gradient(s, vf_load_n(grad + i, n), p, a.decay);
		struct vf m = vf_add(vf_mul(a.b1, vf_load_n(slot0 + i, n)), vf_mul(a.n1, g));
		struct vf v = vf_add(vf_mul(a.b2, vf_load_n(slot1 + i, n)), vf_mul(vf_mul(a.n2, g), g));
		struct vf below = vf_add(vf_div(vf_sqrt(v), a.root2), a.eps);
		struct vf move = vf_div(vf_mul(a.rate, m), below);
		vf_store_n(slot0 + i, m, n);
		vf_store_n(slot1 + i, v, n);
		vf_store_n(param + i, vf_sub(vf_mul(p, a.keep), move), n);
	}
}

static inline void flat_update(const struct hd_step_scalars *s, float *param, const float *grad, float *slot0, float *slot1, uint64_t len)
{
	if (s->skip)
		return;
	switch ((enum hd_optim_kind)s->optim.kind) {
	case HD_OPTIM_SGD:      flat_sgd(s, param, grad, len); break;
	case HD_OPTIM_MOMENTUM: flat_momentum_of(false, s, param, grad, slot0, len); break;
	case HD_OPTIM_NESTEROV: flat_momentum_of(true, s, param, grad, slot0, len); break;
	case HD_OPTIM_ADAM:
	case HD_OPTIM_ADAMW:    flat_adam(s, param, grad, slot0, slot1, len); break;
	case HD_NOPTIMS:        break;
	}
}

static inline void flat_add(float *dst, const float *a, const float *b, uint64_t len)
{
	HD_UNITS(i, n, len)
		vf_store_n(dst + i, vf_add(vf_load_n(a + i, n), vf_load_n(b + i, n)), n);
}

static inline void flat_copy(float *dst, const float *src, uint64_t len) { memcpy(dst, src, len * sizeof *dst); }

/* The lanes of lanes.h, compiled for the registers of this path. */
static inline double flat_sumsq(const float *at, uint64_t len)
{
	double lane[HD_LANES] = { 0 };
	uint64_t whole = len / HD_LANES * HD_LANES;

	for (uint64_t i = 0; i < whole; i += HD_LANES)
		for (int j = 0; j < HD_LANES; j++)
			lane[j] += (double)at[i + (uint64_t)j] * (double)at[i + (uint64_t)j];
	for (uint64_t i = whole; i < len; i++)
		lane[i - whole] += (double)at[i] * (double)at[i];
	return hd_tree_sum(lane, HD_LANES);
}

#endif
