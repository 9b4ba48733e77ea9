#include "device/reference/reference.h"

#include <math.h>

/* A unit is a channel. Its elements, in order: x seen as [outer, channels, inner], or blocked as
 * [outer, channels/16, inner, 16]. */
struct channels { uint64_t c, outer, inner; bool blocked; };

static struct channels channels_of(const struct hd_operand *x, int32_t axis)
{
	struct channels s = { .blocked = axis == 16 };

	s.c = (uint64_t)(axis < 0 ? hd_cols(x) : s.blocked ? x->dim[1] * 16 : x->dim[1]);
	s.outer = axis < 0 ? x->elems / s.c : (uint64_t)x->dim[0];
	s.inner = x->elems / (s.outer * s.c);
	return s;
}

static uint64_t count_of(const struct channels *s) { return s->outer * s->inner; }

static uint64_t place(const struct channels *s, uint64_t channel, uint64_t i)
{
	uint64_t o = i / s->inner, at = i % s->inner;

	if (s->blocked)
		return ((o * (s->c / 16) + channel / 16) * s->inner + at) * 16 + channel % 16;
	return (o * s->c + channel) * s->inner + at;
}

static uint64_t channels_x(const struct hd_call *call) { return channels_of(&call->in[0], call->attr.i[0]).c;
	}
static uint64_t channels_dp(const struct hd_call *call) { return call->out[0].elems; }

static void moments_of(const struct hd_call *call, const struct channels *s, uint64_t channel, double m[3])
{
	const float *x = hd_ref_in(call, 0);
	double n = (double)count_of(s);

	m[1] = m[2] = 0;
	for (uint64_t i = 0; i < count_of(s); i++)
		m[1] += (double)x[place(s, channel, i)];
	m[0] = n;
	m[1] /= n;
	for (uint64_t i = 0; i < count_of(s); i++)
		m[2] += ((double)x[place(s, channel, i)] - m[1]) * ((double)x[place(s, channel, i)] - m[1]);
}

/* Moments of fewer than two values: the running statistics. */
static void apply(const struct hd_call *call, const struct channels *s, uint64_t c, const double m[3])
{
	double mean = m[0] >= 2 ? m[1] : (double)hd_ref_in(call, 3)[c];
	double variance = m[0] >= 2 ? m[2] / m[0] : (double)hd_ref_in(call, 4)[c];
	double rstd = 1 / sqrt(variance + (double)call->attr.f[0]);
	float *stats = hd_ref_out(call, 1);

	for (uint64_t i = 0; i < count_of(s); i++)
		hd_ref_out(call, 0)[place(s, c, i)] = (float)(((double)hd_ref_in(call,
			0)[place(s, c, i)] - mean) * rstd *
			(double)hd_ref_in(call, 1)[c] + (double)hd_ref_in(call, 2)[c]);
	stats[c] = (float)mean;
	stats[s->c + c] = (float)rstd;
	stats[2 * s->c + c] = m[0] >= 2 ? (float)(1 / m[0]) : 0.0f;
}

static void put_moments(double *moments, const struct channels *s, uint64_t c, const double m[3])
{
	for (uint64_t k = 0; k < 3; k++)
		moments[k * s->c + c] = m[k];
}

static void batchnorm(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct channels s = channels_of(&call->in[0], call->attr.i[0]);

	(void)scratch;
	for (uint64_t c = first; c < last; c++) {
		double m[3] = { 0, 0, 0 };
		if (!call->attr.i[1] && count_of(&s) >= 2)
			moments_of(call, &s, c, m);
		apply(call, &s, c, m);
		put_moments(call->out[2].at, &s, c, m);
	}
}

static void batchnorm_moments(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct channels s = channels_of(&call->in[0], call->attr.i[0]);
	double m[3];

	(void)scratch;
	for (uint64_t c = first; c < last; c++) {
		moments_of(call, &s, c, m);
		put_moments(call->out[0].at, &s, c, m);
	}
}

static void batchnorm_apply(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct channels s = channels_of(&call->in[0], call->attr.i[0]);
	const double *moments = call->in[5].at;

	(void)scratch;
	for (uint64_t c = first; c < last; c++)
		apply(call, &s, c, (double[]){ moments[c], moments[s.c + c], moments[2 * s.c + c] });
}

static void batchnorm_sync(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)scratch;
	for (uint64_t i = first; i < last; i++)
		((double *)call->out[0].at)[i] = ((const double *)call->in[0].at)[i];
}

/* Sums over a channel of dy and of dy times the normalised x. */
static void sums_of(const struct hd_call *call, const struct channels *s, const float *stats, uint64_t c,
	double sum[2])
{
	sum[0] = sum[1] = 0;
	for (uint64_t i = 0; i < count_of(s); i++) {
		double dy = (double)hd_ref_in(call, 0)[place(s, c, i)];
		sum[0] += dy;
		sum[1] += dy * ((double)hd_ref_in(call, 1)[place(s, c, i)] - (double)stats[c]) *
			(double)stats[s->c + c];
	}
}

static void batchnorm_sums(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct channels s = channels_of(&call->in[1], call->attr.i[0]);
	double sum[2], *out = call->out[0].at;

	(void)scratch;
	for (uint64_t c = first; c < last; c++) {
		sums_of(call, &s, hd_ref_in(call, 2), c, sum);
		out[c] = sum[0];
		out[s.c + c] = sum[1];
	}
}

/* With u = (x - mean) rstd: dx = gamma rstd (dy - mean(dy) - u mean(dy u)); the means are 0 where the
 * statistics did not depend on x. */
static void dx_of(const struct hd_call *call, const struct channels *s, uint64_t c, const double sum[2])
{
	const float *stats = hd_ref_in(call, 3);
	const double mean = (double)stats[c], rstd = (double)stats[s->c + c],
		share = (double)stats[2 * s->c + c];

	for (uint64_t i = 0; i < count_of(s); i++) {
		uint64_t at = place(s, c, i);
		double u = ((double)hd_ref_in(call, 1)[at] - mean) * rstd;
		hd_ref_out(call, 0)[at] = (float)((double)hd_ref_in(call, 2)[c] * rstd *
			((double)hd_ref_in(call, 0)[at] - share * sum[0] - u * share * sum[1]));
	}
}

static void batchnorm_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct channels s = channels_of(&call->in[1], call->attr.i[0]);
	double sum[2], *sums = call->out[1].at;

	(void)scratch;
	for (uint64_t c = first; c < last; c++) {
		sums_of(call, &s, hd_ref_in(call, 3), c, sum);
		sums[c] = sum[0];
		sums[s.c + c] = sum[1];
		dx_of(call, &s, c, sum);
	}
}

static void batchnorm_apply_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct channels s = channels_of(&call->in[1], call->attr.i[0]);
	const double *sums = call->in[4].at;

	(void)scratch;
	for (uint64_t c = first; c < last; c++)
		dx_of(call, &s, c, (double[]){ sums[c], sums[s.c + c] });
}

static void batchnorm_dp(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const double *sums = call->in[0].at;

	(void)scratch;
	for (uint64_t c = first; c < last; c++)
		hd_ref_out(call, 0)[c] = (float)sums[(uint64_t)call->attr.i[0] * call->out[0].elems + c];
}

static const struct hd_ref_op rows[HD_NOPS] = {
	[HD_OP_BATCHNORM]      = { channels_x, hd_ref_no_scratch, batchnorm },
	[HD_OP_BATCHNORM_DX]   = { channels_x, hd_ref_no_scratch, batchnorm_dx },
	[HD_OP_BATCHNORM_SUMS] = { channels_x, hd_ref_no_scratch, batchnorm_sums },
	[HD_OP_BATCHNORM_DP]   = { channels_dp, hd_ref_no_scratch, batchnorm_dp },
	[HD_OP_BATCHNORM_MOMENTS]  = { channels_x, hd_ref_no_scratch, batchnorm_moments },
	[HD_OP_BATCHNORM_SYNC]     = { hd_ref_elems, hd_ref_no_scratch, batchnorm_sync },
	[HD_OP_BATCHNORM_APPLY]    = { channels_x, hd_ref_no_scratch, batchnorm_apply },
	[HD_OP_BATCHNORM_APPLY_DX] = { channels_x, hd_ref_no_scratch, batchnorm_apply_dx },
};

const struct hd_ref_op *hd_ref_batch(uint16_t op) { return &rows[op]; }
