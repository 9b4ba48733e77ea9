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
HD_INLINE struct vf flat_gradient(const struct hd_step_scalars *s, struct vf grad, struct vf param,
	float decay)
{
	struct vf g = vf_mul(vf_mul(grad, vf_set(s->scale)), vf_set(s->clip));
	return vf_add(g, vf_mul(vf_set(decay), param));
}

/* How far ahead a stream of read and written vectors is asked for, in elements: beyond the second-level
 * cache the hardware's own guess leaves a tenth of the bandwidth unused. A hint may pass the end. */
enum { FLAT_AHEAD = 512 };

HD_INLINE void flat_ahead(const float *at) { __builtin_prefetch(at + FLAT_AHEAD); }

static inline void flat_sgd(const struct hd_step_scalars *s, float *param, const float *grad, uint64_t len)
{
	HD_UNITS(i, n, len) {
		flat_ahead(param + i);
		flat_ahead(grad + i);
		struct vf p = vf_load_n(param + i, n);
		struct vf g = flat_gradient(s, vf_load_n(grad + i, n), p, s->optim.weight_decay);
		vf_store_n(param + i, vf_sub(p, vf_mul(vf_set(s->lr), g)), n);
	}
}

HD_INLINE void flat_momentum_of(bool nesterov, const struct hd_step_scalars *s, float *param,
	const float *grad, float *slot, uint64_t len)
{
	struct vf mu = vf_set(s->optim.momentum);

	HD_UNITS(i, n, len) {
		flat_ahead(param + i);
		flat_ahead(grad + i);
		flat_ahead(slot + i);
		struct vf p = vf_load_n(param + i, n);
		struct vf g = flat_gradient(s, vf_load_n(grad + i, n), p, s->optim.weight_decay);
		struct vf m = vf_add(vf_mul(mu, vf_load_n(slot + i, n)), g);
		struct vf move = nesterov ? vf_add(g, vf_mul(mu, m)) : m;
		vf_store_n(slot + i, m, n);
		vf_store_n(param + i, vf_sub(p, vf_mul(vf_set(s->lr), move)), n);
	}
}

/* What the formulas of two moments need beyond the step's scalars, each rounded once. */
struct flat_moments { struct vf b1, b2, n1, n2, ahead, eps; };

HD_INLINE struct flat_moments flat_moments_of(const struct hd_step_scalars *s, float rate)
{
	const struct hd_optim *o = &s->optim;
	float root2 = __builtin_sqrtf(s->c2), ahead = rate / s->c1;

	return (struct flat_moments){ vf_set(o->beta1), vf_set(o->beta2), vf_set(1.0f - o->beta1),
		vf_set(1.0f - o->beta2),
		vf_set(ahead * root2), vf_set(o->eps * root2) };
}

HD_INLINE void flat_move_moments(const struct flat_moments *k, struct vf g, struct vf *m, struct vf *v)
{
	*m = vf_add(vf_mul(k->b1, *m), vf_mul(k->n1, g));
	*v = vf_add(vf_mul(k->b2, *v), vf_mul(vf_mul(k->n2, g), g));
}

HD_INLINE struct vf flat_quotient(const struct flat_moments *k, struct vf m, struct vf v)
{
	return vf_div(vf_mul(k->ahead, m), vf_add(vf_sqrt(v), k->eps));
}

/* What the decoupled decay leaves of a parameter. */
HD_INLINE struct vf flat_kept(const struct hd_step_scalars *s)
{
	float lrwd = s->lr * s->optim.weight_decay;

	return vf_set(1.0f - lrwd);
}

static inline void flat_adam(const struct hd_step_scalars *s, float *param, const float *grad, float *slot0,
	float *slot1, uint64_t len)
{
	const bool decoupled = s->optim.kind == HD_OPTIM_ADAMW;
	const struct flat_moments k = flat_moments_of(s, s->lr);
	const struct vf keep = decoupled ? flat_kept(s) : vf_set(1.0f);
	const float decay = decoupled ? 0.0f : s->optim.weight_decay;

	HD_UNITS(i, n, len) {
		flat_ahead(param + i);
		flat_ahead(grad + i);
		flat_ahead(slot0 + i);
		flat_ahead(slot1 + i);
		struct vf p = vf_load_n(param + i, n), m = vf_load_n(slot0 + i, n),
			v = vf_load_n(slot1 + i, n);
		flat_move_moments(&k, flat_gradient(s, vf_load_n(grad + i, n), p, decay), &m, &v);
		vf_store_n(slot0 + i, m, n);
		vf_store_n(slot1 + i, v, n);
		vf_store_n(param + i, vf_sub(vf_mul(p, keep), flat_quotient(&k, m, v)), n);
	}
}

static inline void flat_adagrad(const struct hd_step_scalars *s, float *param, const float *grad, float *slot,
	uint64_t len)
{
	HD_UNITS(i, n, len) {
		flat_ahead(param + i);
		flat_ahead(grad + i);
		flat_ahead(slot + i);
		struct vf p = vf_load_n(param + i, n);
		struct vf g = flat_gradient(s, vf_load_n(grad + i, n), p, s->optim.weight_decay);
		struct vf sum = vf_add(vf_load_n(slot + i, n), vf_mul(g, g));
		struct vf below = vf_add(vf_sqrt(sum), vf_set(s->optim.eps));
		vf_store_n(slot + i, sum, n);
		vf_store_n(param + i, vf_sub(p, vf_div(vf_mul(vf_set(s->lr), g), below)), n);
	}
}

static inline void flat_lion(const struct hd_step_scalars *s, float *param, const float *grad, float *slot,
	uint64_t len)
{
	const struct hd_optim *o = &s->optim;
	const struct vf b1 = vf_set(o->beta1), b2 = vf_set(o->beta2), n1 = vf_set(1.0f - o->beta1),
		n2 = vf_set(1.0f - o->beta2);
	const struct vf keep = flat_kept(s), zero = vf_set(0.0f);

	HD_UNITS(i, n, len) {
		flat_ahead(param + i);
		flat_ahead(grad + i);
		flat_ahead(slot + i);
		struct vf p = vf_load_n(param + i, n), m = vf_load_n(slot + i, n);
		struct vf g = flat_gradient(s, vf_load_n(grad + i, n), p, 0.0f);
		struct vf side = vf_add(vf_mul(b1, m), vf_mul(n1, g));
		struct vf move = vf_select(vf_lt(zero, side), vf_set(s->lr),
			vf_select(vf_lt(side, zero), vf_set(-s->lr), side));
		vf_store_n(param + i, vf_sub(vf_mul(p, keep), move), n);
		vf_store_n(slot + i, vf_add(vf_mul(b2, m), vf_mul(n2, g)), n);
	}
}

HD_INLINE struct vf flat_lamb_direction(const struct hd_step_scalars *s, const struct flat_moments *k,
	struct vf p, struct vf m, struct vf v)
{
	return vf_add(flat_quotient(k, m, v), vf_mul(vf_set(s->optim.weight_decay), p));
}

static inline void flat_lamb(const struct hd_step_scalars *s, float *param, const float *slot0,
	const float *slot1, uint64_t len)
{
	const struct flat_moments k = flat_moments_of(s, 1.0f);
	const struct vf rate = vf_set(s->lr * s->ratio);

	HD_UNITS(i, n, len) {
		flat_ahead(param + i);
		flat_ahead(slot0 + i);
		flat_ahead(slot1 + i);
		struct vf p = vf_load_n(param + i, n);
		struct vf u = flat_lamb_direction(s, &k, p, vf_load_n(slot0 + i, n), vf_load_n(slot1 + i, n));
		vf_store_n(param + i, vf_sub(p, vf_mul(rate, u)), n);
	}
}

static inline void flat_update(const struct hd_step_scalars *s, float *param, const float *grad, float *slot0,
	float *slot1, uint64_t len)
{
	if (s->skip)
		return;
	switch ((enum hd_optim_kind)s->optim.kind) {
	case HD_OPTIM_SGD:      flat_sgd(s, param, grad, len); break;
	case HD_OPTIM_MOMENTUM: flat_momentum_of(false, s, param, grad, slot0, len); break;
	case HD_OPTIM_NESTEROV: flat_momentum_of(true, s, param, grad, slot0, len); break;
	case HD_OPTIM_ADAM:
	case HD_OPTIM_ADAMW:    flat_adam(s, param, grad, slot0, slot1, len); break;
	case HD_OPTIM_ADAGRAD:  flat_adagrad(s, param, grad, slot0, len); break;
	case HD_OPTIM_LION:     flat_lion(s, param, grad, slot0, len); break;
	case HD_OPTIM_LAMB:     flat_lamb(s, param, slot0, slot1, len); break;
	case HD_NOPTIMS:        break;
	}
}

static inline void flat_add(float *dst, const float *a, const float *b, uint64_t len)
{
	HD_UNITS(i, n, len)
		vf_store_n(dst + i, vf_add(vf_load_n(a + i, n), vf_load_n(b + i, n)), n);
}

static inline void flat_copy(float *dst, const float *src, uint64_t len) { memcpy(dst, src,
	len * sizeof *dst); }

/* The lanes of lanes.h, compiled for the registers of this path. Several runs of one sum: all but
 * the last are multiples of HD_LANES. */
static inline void flat_lanes(double lane[HD_LANES], const float *at, uint64_t len)
{
	uint64_t whole = len / HD_LANES * HD_LANES;

	for (uint64_t i = 0; i < whole; i += HD_LANES)
		for (int j = 0; j < HD_LANES; j++)
			lane[j] += (double)at[i + (uint64_t)j] * (double)at[i + (uint64_t)j];
	for (uint64_t i = whole; i < len; i++)
		lane[i - whole] += (double)at[i] * (double)at[i];
}

static inline double flat_sumsq(const float *at, uint64_t len)
{
	double lane[HD_LANES] = { 0 };

	flat_lanes(lane, at, len);
	return hd_tree_sum(lane, HD_LANES);
}

/* Moves the slots of a block, unless it only looks, and leaves its directions in `out`. */
static inline void flat_lamb_block(const struct hd_step_scalars *s, const struct flat_moments *k,
	const float *param, const float *grad,
	float *slot0, float *slot1, uint64_t len, float *out)
{
	HD_UNITS(i, n, len) {
		flat_ahead(param + i);
		flat_ahead(grad + i);
		flat_ahead(slot0 + i);
		flat_ahead(slot1 + i);
		struct vf p = vf_load_n(param + i, n), m = vf_load_n(slot0 + i, n),
			v = vf_load_n(slot1 + i, n);
		flat_move_moments(k, flat_gradient(s, vf_load_n(grad + i, n), p, 0.0f), &m, &v);
		if (!s->looks) {
			vf_store_n(slot0 + i, m, n);
			vf_store_n(slot1 + i, v, n);
		}
		vf_store_n(out + i, flat_lamb_direction(s, k, p, m, v), n);
	}
}

static inline void flat_measure(const struct hd_step_scalars *s, const float *param, const float *grad,
	float *slot0, float *slot1,
	uint64_t len, double sums[2])
{
	enum { BLOCK = 64 * HD_LANES };           /* directions stay in the first-level cache */
	const struct flat_moments k = flat_moments_of(s, 1.0f);
	double square[HD_LANES] = { 0 }, move[HD_LANES] = { 0 };
	float direction[BLOCK];

	for (uint64_t at = 0, n; at < len && !s->skip && s->optim.kind == HD_OPTIM_LAMB; at += n) {
		n = len - at < BLOCK ? len - at : BLOCK;
		flat_lamb_block(s, &k, param + at, grad + at, slot0 + at, slot1 + at, n, direction);
		flat_lanes(square, param + at, n);
		flat_lanes(move, direction, n);
	}
	sums[0] = hd_tree_sum(square, HD_LANES);
	sums[1] = hd_tree_sum(move, HD_LANES);
}

#endif
