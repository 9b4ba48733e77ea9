#include "device/optim.h"

#include <math.h>

#include "base/lanes.h"

const struct hd_optim_row hd_optims[HD_NOPTIMS] = {
#define X(id, text, unit, nslots, s0, s1) [HD_OPTIM_##id] = { text, HD_UNIT_##unit, nslots, { s0, s1 } },
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
	const uint64_t every = scalars->optim.average_every;
	scalars->average = every && t % every == 0 ? t == every ? 1 : scalars->optim.average : 0;
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

/* What the formulas of two moments need beyond the step's scalars. */
struct moments { float b1, b2, n1, n2, ahead, eps; };

static struct moments moments_of(const struct hd_step_scalars *s, float rate)
{
	const struct hd_optim *o = &s->optim;
	const float root2 = sqrtf(s->c2), ahead = rate / s->c1;

	return (struct moments){ o->beta1, o->beta2, 1.0f - o->beta1, 1.0f - o->beta2, ahead * root2,
		o->eps * root2 };
}

static void move_moments(const struct moments *k, float g, float *m, float *v)
{
	float m_old = k->b1 * *m, m_new = k->n1 * g, v_old = k->b2 * *v, v_new = k->n2 * g;

	v_new = v_new * g;
	*m = m_old + m_new;
	*v = v_old + v_new;
}

static float quotient(const struct moments *k, float m, float v)
{
	float above = k->ahead * m, below = sqrtf(v);

	below = below + k->eps;
	return above / below;
}

/* What the decoupled decay leaves of a parameter. */
static float kept(const struct hd_step_scalars *s)
{
	float lrwd = s->lr * s->optim.weight_decay;

	return 1.0f - lrwd;
}

static void adam(const struct hd_step_scalars *s, float *param, const float *grad, float *m, float *v,
	uint64_t len)
{
	const bool decoupled = s->optim.kind == HD_OPTIM_ADAMW;
	const struct moments k = moments_of(s, s->lr);
	const float keep = decoupled ? kept(s) : 1.0f;

	for (uint64_t i = 0; i < len; i++) {
		float g = gradient(s, grad[i], param[i], decoupled ? 0.0f : s->optim.weight_decay);
		move_moments(&k, g, &m[i], &v[i]);
		float left = param[i] * keep;
		param[i] = left - quotient(&k, m[i], v[i]);
	}
}

static void adagrad(const struct hd_step_scalars *s, float *param, const float *grad, float *sum,
	uint64_t len)
{
	for (uint64_t i = 0; i < len; i++) {
		float g = gradient(s, grad[i], param[i], s->optim.weight_decay), square = g * g;
		sum[i] = sum[i] + square;
		float below = sqrtf(sum[i]), above = s->lr * g;
		below = below + s->optim.eps;
		param[i] = param[i] - above / below;
	}
}

static void lion(const struct hd_step_scalars *s, float *param, const float *grad, float *m, uint64_t len)
{
	const float b1 = s->optim.beta1, b2 = s->optim.beta2, n1 = 1.0f - b1, n2 = 1.0f - b2, keep = kept(s);

	for (uint64_t i = 0; i < len; i++) {
		float g = gradient(s, grad[i], param[i], 0.0f);
		float old = b1 * m[i], new = n1 * g, side = old + new;
		/* what is no number stays no number */
		float move = side > 0 ? s->lr : side < 0 ? -s->lr : side;
		float left = param[i] * keep;
		param[i] = left - move;
		old = b2 * m[i];
		new = n2 * g;
		m[i] = old + new;
	}
}

static float lamb_direction(const struct hd_step_scalars *s, const struct moments *k, float param, float m,
	float v)
{
	float decay = s->optim.weight_decay * param;

	return quotient(k, m, v) + decay;
}

static void lamb(const struct hd_step_scalars *s, float *param, const float *m, const float *v, uint64_t len)
{
	const struct moments k = moments_of(s, 1.0f);
	const float rate = s->lr * s->ratio;

	for (uint64_t i = 0; i < len; i++) {
		float move = rate * lamb_direction(s, &k, param[i], m[i], v[i]);
		param[i] = param[i] - move;
	}
}

void hd_optim_measure_plain(const struct hd_step_scalars *s, const float *param, const float *grad, float *m,
	float *v,
	uint64_t len, double sums[2])
{
	const struct moments k = moments_of(s, 1.0f);
	double squares[HD_LANES] = { 0 }, moves[HD_LANES] = { 0 };

	for (uint64_t i = 0; i < len && !s->skip && s->optim.kind == HD_OPTIM_LAMB; i++) {
		float slot0 = m[i], slot1 = v[i];
		move_moments(&k, gradient(s, grad[i], param[i], 0.0f), &slot0, &slot1);
		double move = (double)lamb_direction(s, &k, param[i], slot0, slot1);
		if (!s->looks) {
			m[i] = slot0;
			v[i] = slot1;
		}
		squares[i % HD_LANES] += (double)param[i] * (double)param[i];
		moves[i % HD_LANES] += move * move;
	}
	sums[0] = hd_tree_sum(squares, HD_LANES);
	sums[1] = hd_tree_sum(moves, HD_LANES);
}

float hd_optim_ratio(const double *param_sumsq, const double *move_sumsq, uint32_t n)
{
	double param = sqrt(hd_tree_sum(param_sumsq, n)), move = sqrt(hd_tree_sum(move_sumsq, n));

	return param > 0 && move > 0 ? (float)(param / move) : 1.0f;
}

void hd_optim_average(float share, float *mean, const float *param, uint64_t len)
{
	const float rest = 1.0f - share;

	for (uint64_t i = 0; i < len; i++) {
		const float way = param[i] - mean[i], moved = way * share, left = way * rest;
		mean[i] = share < 0.5f ? mean[i] + moved : param[i] - left;
	}
}

void hd_optim_update_plain(const struct hd_step_scalars *scalars, float *param, const float *grad,
	float *slot0, float *slot1, uint64_t len)
{
	if (scalars->skip)
		return;
	switch ((enum hd_optim_kind)scalars->optim.kind) {
	case HD_OPTIM_SGD:      sgd(scalars, param, grad, len); break;
	case HD_OPTIM_MOMENTUM:
	case HD_OPTIM_NESTEROV: momentum(scalars, param, grad, slot0, len); break;
	case HD_OPTIM_ADAM:
	case HD_OPTIM_ADAMW:    adam(scalars, param, grad, slot0, slot1, len); break;
	case HD_OPTIM_ADAGRAD:  adagrad(scalars, param, grad, slot0, len); break;
	case HD_OPTIM_LION:     lion(scalars, param, grad, slot0, len); break;
	case HD_OPTIM_LAMB:     lamb(scalars, param, slot0, slot1, len); break;
	case HD_NOPTIMS:        break;
	}
}
