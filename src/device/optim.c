#include "device/optim.h"

#include <math.h>

const struct hd_optim_row hd_optims[HD_NOPTIMS] = {
#define X(id, text, nslots, s0, s1) [HD_OPTIM_##id] = { text, nslots, { s0, s1 } },
	HD_OPTIMS(X)
#undef X
};

/* Squaring and multiplying: the order of multiplications depends on t alone, and a run
 * of millions of updates costs some forty of them. */
static double power(double base, uint64_t t)
{
	double result = 1;

	for (; t; t >>= 1) {
		if (t & 1)
			result *= base;
		base *= base;
	}
	return result;
}

void hd_optim_corrections(struct hd_step_scalars *scalars, uint64_t t)
{
	scalars->c1 = (float)(1.0 - power((double)scalars->optim.beta1, t));
	scalars->c2 = (float)(1.0 - power((double)scalars->optim.beta2, t));
}

/* Scaled, clipped, then with the L2 term: what every formula calls g. */
static float gradient(const struct hd_step_scalars *s, float grad, float param, float decay)
{
	float g = grad * s->scale;
	float l2 = decay * param;

	g = g * s->clip;
	return g + l2;
}

static void sgd(const struct hd_step_scalars *s, float *param, const float *grad, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++) {
		float g = gradient(s, grad[i], param[i], s->optim.weight_decay);
		float move = s->lr * g;
		param[i] = param[i] - move;
	}
}

static void momentum(const struct hd_step_scalars *s, float *param, const float *grad, float *m, uint64_t len)
{
	const float mu = s->optim.momentum;

	for (uint64_t i = 0; i < len; i++) {
		float g = gradient(s, grad[i], param[i], s->optim.weight_decay);
		float old = mu * m[i];
		m[i] = old + g;
		float ahead = mu * m[i];
		float step = s->optim.kind == HD_OPTIM_NESTEROV ? g + ahead : m[i];
		float move = s->lr * step;
		param[i] = param[i] - move;
	}
}

static void adam(const struct hd_step_scalars *s, float *param, const float *grad, float *m, float *v, uint64_t len)
{
	const bool decoupled = s->optim.kind == HD_OPTIM_ADAMW;
	const float b1 = s->optim.beta1, b2 = s->optim.beta2, n1 = 1.0f - b1, n2 = 1.0f - b2;
	const float rate = s->lr / s->c1, root2 = sqrtf(s->c2);
	const float lrwd = s->lr * s->optim.weight_decay, shrink = decoupled ? 1.0f - lrwd : 1.0f;

	for (uint64_t i = 0; i < len; i++) {
		float g = gradient(s, grad[i], param[i], decoupled ? 0.0f : s->optim.weight_decay);
		float m_old = b1 * m[i], m_new = n1 * g, v_old = b2 * v[i], v_new = n2 * g;
		v_new = v_new * g;
		m[i] = m_old + m_new;
		v[i] = v_old + v_new;
		float below = sqrtf(v[i]) / root2;
		below = below + s->optim.eps;
		float move = rate * m[i];
		move = move / below;
		float kept = param[i] * shrink;
		param[i] = kept - move;
	}
}

void hd_optim_update_plain(const struct hd_step_scalars *scalars, float *param, const float *grad, float *slot0, float *slot1, uint64_t len)
{
	if (scalars->skip)
		return;
	switch ((enum hd_optim_kind)scalars->optim.kind) {
	case HD_OPTIM_SGD:      sgd(scalars, param, grad, len); break;
	case HD_OPTIM_MOMENTUM:
	case HD_OPTIM_NESTEROV: momentum(scalars, param, grad, slot0, len); break;
	case HD_OPTIM_ADAM:
	case HD_OPTIM_ADAMW:    adam(scalars, param, grad, slot0, slot1, len); break;
	case HD_NOPTIMS:        break;
	}
}
