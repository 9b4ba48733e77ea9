#include "device/reference/reference.h"

#include <math.h>

/* A pool over planes [H,W]; a unit is one plane of one image. */
struct reference_pool { int64_t h, w, p, q, kh, kw, sh, sw, ph, pw; bool all; };

static struct reference_pool pool_of(const struct hd_call *call, const struct hd_operand *x,
	const struct hd_operand *y)
{
	const int32_t *a = call->attr.i;

	return (struct reference_pool){ x->dim[2], x->dim[3], y->dim[2], y->dim[3], a[0], a[1], a[2], a[3],
		a[4], a[5],
		a[6] != 0 };
}

static uint64_t planes(const struct hd_call *call) { return (uint64_t)(call->out[0].dim[0] *
	call->out[0].dim[1]); }

/* Where element k of window (p, q) lies in its plane; -1: on a pad. */
static int64_t window_at(const struct reference_pool *v, int64_t p, int64_t q, int64_t k)
{
	int64_t h = p * v->sh + k / v->kw - v->ph, w = q * v->sw + k % v->kw - v->pw;

	return h < 0 || h >= v->h || w < 0 || w >= v->w ? -1 : h * v->w + w;
}

static int64_t first_maximum(const struct reference_pool *v, const float *plane, int64_t p, int64_t q)
{
	int64_t best = -1;

	for (int64_t k = 0; k < v->kh * v->kw; k++) {
		int64_t at = window_at(v, p, q, k);
		if (at >= 0 && (best < 0 || plane[at] > plane[best]))
			best = at;
	}
	return best;
}

static void maxpool2d(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct reference_pool v = pool_of(call, &call->in[0], &call->out[0]);

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		const float *plane = hd_ref_in(call, 0) + (int64_t)u * v.h * v.w;
		float *to = hd_ref_out(call, 0) + (int64_t)u * v.p * v.q;
		for (int64_t e = 0; e < v.p * v.q; e++)
			to[e] = plane[first_maximum(&v, plane, e / v.q, e % v.q)];
	}
}

/* Windows in row-major order: where they overlap, gradients are added in that order. */
static void maxpool2d_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct reference_pool v = pool_of(call, &call->in[1], &call->in[0]);

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		const float *plane = hd_ref_in(call, 1) + (int64_t)u * v.h * v.w,
			*from = hd_ref_in(call, 0) + (int64_t)u * v.p * v.q;
		float *to = hd_ref_out(call, 0) + (int64_t)u * v.h * v.w;
		for (int64_t i = 0; i < v.h * v.w; i++)
			to[i] = 0;
		for (int64_t e = 0; e < v.p * v.q; e++)
			to[first_maximum(&v, plane, e / v.q, e % v.q)] += from[e];
	}
}

/* What the sum over window (p, q) is divided by. */
static double divisor(const struct reference_pool *v, int64_t p, int64_t q)
{
	int64_t n = 0;

	for (int64_t k = 0; k < v->kh * v->kw; k++)
		n += v->all || window_at(v, p, q, k) >= 0;
	return (double)n;
}

static void avgpool2d(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct reference_pool v = pool_of(call, &call->in[0], &call->out[0]);

	(void)scratch;
	for (uint64_t u = first; u < last; u++)
		for (int64_t e = 0; e < v.p * v.q; e++) {
			double sum = 0;
			for (int64_t k = 0; k < v.kh * v.kw; k++) {
				int64_t at = window_at(&v, e / v.q, e % v.q, k);
				sum += at < 0 ? 0 : (double)hd_ref_in(call, 0)[(int64_t)u * v.h * v.w + at];
			}
			hd_ref_out(call, 0)[(int64_t)u * v.p * v.q + e] = (float)(sum / divisor(&v, e / v.q,
				e % v.q));
		}
}

static void avgpool2d_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct reference_pool v = pool_of(call, &call->in[1], &call->in[0]);

	(void)scratch;
	for (uint64_t u = first; u < last; u++)
		for (int64_t i = 0; i < v.h * v.w; i++) {
			double sum = 0;
			/* the windows whose element k is pixel i */
			for (int64_t k = 0; k < v.kh * v.kw; k++) {
				int64_t h = i / v.w + v.ph - k / v.kw, w = i % v.w + v.pw - k % v.kw,
					p = h / v.sh, q = w / v.sw;
				if (h >= 0 && w >= 0 && h % v.sh == 0 && w % v.sw == 0 && p < v.p && q < v.q)
					sum += (double)hd_ref_in(call,
						0)[((int64_t)u * v.p + p) * v.q + q] / divisor(&v, p, q);
			}
			hd_ref_out(call, 0)[(int64_t)u * v.h * v.w + i] = (float)sum;
		}
}

/* x[N,C,..] seen as [N,C,inner]; a unit is a group of `own` channels of one sample, `len` elements side by
 * side. */
struct channel_group { int64_t c, inner, own, len, groups; };

static struct channel_group group_of(const struct hd_call *call, const struct hd_operand *x)
{
	int64_t inner = (int64_t)x->elems / (x->dim[0] * x->dim[1]), own = x->dim[1] / call->attr.i[0];

	return (struct channel_group){ x->dim[1], inner, own, own * inner, call->attr.i[0] };
}

static uint64_t sample_groups(const struct hd_call *call) { return (uint64_t)(call->out[0].dim[0] *
	call->attr.i[0]); }

static void groupnorm(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct channel_group v = group_of(call, &call->in[0]);

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		const float *x = hd_ref_in(call, 0) + (int64_t)u * v.len;
		double mean = 0, variance = 0;

		for (int64_t i = 0; i < v.len; i++)
			mean += (double)x[i] / (double)v.len;
		for (int64_t i = 0; i < v.len; i++)
			variance += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)v.len;
		double rstd = 1 / sqrt(variance + (double)call->attr.f[0]);
		for (int64_t i = 0; i < v.len; i++) {
			int64_t c = (int64_t)u % v.groups * v.own + i / v.inner;
			hd_ref_out(call, 0)[(int64_t)u * v.len + i] =
				(float)(((double)x[i] - mean) * rstd * (double)hd_ref_in(call,
				1)[c] + (double)hd_ref_in(call, 2)[c]);
		}
		hd_ref_out(call, 1)[2 * u] = (float)mean;
		hd_ref_out(call, 1)[2 * u + 1] = (float)rstd;
	}
}

/* As layernorm_dx in reduce.c, a group in place of a row. */
static void groupnorm_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct channel_group v = group_of(call, &call->in[1]);

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		const float *dy = hd_ref_in(call, 0) + (int64_t)u * v.len,
			*x = hd_ref_in(call, 1) + (int64_t)u * v.len;
		const float *gamma = hd_ref_in(call, 2) + (int64_t)u % v.groups * v.own;
		double mean = (double)hd_ref_in(call, 3)[2 * u], rstd = (double)hd_ref_in(call, 3)[2 * u + 1],
			gmean = 0, along = 0;

		for (int64_t i = 0; i < v.len; i++) {
			double g = (double)dy[i] * (double)gamma[i / v.inner];
			gmean += g / (double)v.len;
			along += g * ((double)x[i] - mean) * rstd / (double)v.len;
		}
		for (int64_t i = 0; i < v.len; i++)
			hd_ref_out(call, 0)[(int64_t)u * v.len + i] =
				(float)(rstd * ((double)dy[i] * (double)gamma[i / v.inner] - gmean -
				((double)x[i] - mean) * rstd * along));
	}
}

static void groupnorm_dg(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct channel_group v = group_of(call, &call->in[1]);

	(void)scratch;
	for (uint64_t c = first; c < last; c++) {
		double sum = 0;
		for (int64_t n = 0; n < call->in[1].dim[0]; n++) {
			const float *stats = hd_ref_in(call, 2) + 2 * (n * v.groups + (int64_t)c / v.own);
			for (int64_t i = 0; i < v.inner; i++) {
				int64_t at = (n * v.c + (int64_t)c) * v.inner + i;
				sum += (double)hd_ref_in(call,
					0)[at] * ((double)hd_ref_in(call, 1)[at] - (double)stats[0]) *
					(double)stats[1];
			}
		}
		hd_ref_out(call, 0)[c] = (float)sum;
	}
}

static const struct hd_ref_op rows[HD_NOPS] = {
	[HD_OP_MAXPOOL2D]    = { planes, hd_ref_no_scratch, maxpool2d },
	[HD_OP_MAXPOOL2D_DX] = { planes, hd_ref_no_scratch, maxpool2d_dx },
	[HD_OP_AVGPOOL2D]    = { planes, hd_ref_no_scratch, avgpool2d },
	[HD_OP_AVGPOOL2D_DX] = { planes, hd_ref_no_scratch, avgpool2d_dx },
	[HD_OP_GROUPNORM]    = { sample_groups, hd_ref_no_scratch, groupnorm },
	[HD_OP_GROUPNORM_DX] = { sample_groups, hd_ref_no_scratch, groupnorm_dx },
	[HD_OP_GROUPNORM_DG] = { hd_ref_elems, hd_ref_no_scratch, groupnorm_dg },
};

const struct hd_ref_op *hd_ref_images(uint16_t op) { return &rows[op]; }
