#include "device/reference/reference.h"

#include <math.h>
#include <string.h>

#include "device/bf16.h"

/* [M,K] x [K,N]: leading extents of both operands are flattened, a transposed one is stored [K,M] or
 * [N,K]. */
static void matmul(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const float *a = hd_ref_in(call, 0), *b = hd_ref_in(call, 1);
	const int64_t acols = hd_cols(&call->in[0]), bcols = hd_cols(&call->in[1]),
		n = hd_cols(&call->out[0]);
	const bool ta = call->attr.i[0], tb = call->attr.i[1];
	const int64_t k = ta ? hd_rows(&call->in[0]) : acols;

	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		int64_t i = (int64_t)e / n, j = (int64_t)e % n;
		double sum = 0;
		for (int64_t p = 0; p < k; p++) {
			double left = (double)(ta ? a[p * acols + i] : a[i * acols + p]);
			double right = (double)(tb ? b[j * bcols + p] : b[p * bcols + j]);
			sum += left * right;
		}
		hd_ref_out(call, 0)[e] = (float)sum;
	}
}

void hd_ref_matmul_bf16(const struct hd_call *call, uint64_t first, uint64_t last)
{
	bool ta = call->attr.i[0], tb = call->attr.i[1];
	int64_t acols = hd_cols(&call->in[0]), bcols = hd_cols(&call->in[1]), cols = hd_cols(&call->out[0]);
	int64_t k = ta ? hd_rows(&call->in[0]) : acols;
	const float *a = hd_ref_in(call, 0), *b = hd_ref_in(call, 1);

	for (uint64_t e = first; e < last; e++) {
		int64_t i = (int64_t)e / cols, j = (int64_t)e % cols;
		float sum = 0;
		for (int64_t p = 0; p < k; p += 2) {
			float left[2] = { 0, 0 }, right[2] = { 0, 0 };
			for (int64_t t = 0; t < 2 && p + t < k; t++) {
				int64_t q = p + t;
				left[t] = hd_bf16_operand(ta ? a[q * acols + i] : a[i * acols + q]);
				right[t] = hd_bf16_operand(tb ? b[j * bcols + q] : b[q * bcols + j]);
			}
			sum = hd_bf16_pair(sum, left, right);
		}
		hd_ref_out(call, 0)[e] = sum;
	}
}

void hd_ref_matmul_amx(const struct hd_call *call, uint64_t first, uint64_t last)
{
	bool ta = call->attr.i[0], tb = call->attr.i[1];
	int64_t acols = hd_cols(&call->in[0]), bcols = hd_cols(&call->in[1]), cols = hd_cols(&call->out[0]);
	int64_t k = ta ? hd_rows(&call->in[0]) : acols;
	const float *a = hd_ref_in(call, 0), *b = hd_ref_in(call, 1);

	for (uint64_t e = first; e < last; e++) {
		int64_t i = (int64_t)e / cols, j = (int64_t)e % cols;
		float sum = 0;
		for (int64_t p = 0; p < k; p += HD_BF16_BLOCK) {
			float left[HD_BF16_BLOCK] = { 0 }, right[HD_BF16_BLOCK] = { 0 };
			for (int64_t t = 0; t < HD_BF16_BLOCK && p + t < k; t++) {
				int64_t q = p + t;
				left[t] = hd_bf16_operand(ta ? a[q * acols + i] : a[i * acols + q]);
				right[t] = hd_bf16_operand(tb ? b[j * bcols + q] : b[q * bcols + j]);
			}
			sum = hd_bf16_block(sum, left, right);
		}
		hd_ref_out(call, 0)[e] = sum;
	}
}

/* x[N,C,H,W] w[K,C,R,S] y[N,K,P,Q], whatever role each plays in the call. */
struct reference_conv { int64_t n, c, h, w, k, r, s, p, q, sh, sw, ph, pw, groups, dh, dw; };

static struct reference_conv conv_of(const struct hd_call *call, const struct hd_operand *x,
	const struct hd_operand *w,
	const struct hd_operand *y)
{
	const int32_t *at = call->attr.i;

	return (struct reference_conv){ x->dim[0], x->dim[1], x->dim[2], x->dim[3], w->dim[0], w->dim[2],
		w->dim[3],
		y->dim[2], y->dim[3], at[0], at[1], at[2], at[3], at[4] ? at[4] : 1, at[5] ? at[5] : 1,
		at[6] ? at[6] : 1 };
}

/* Where the kernel of output channel k has its element for channel `c` of its group. */
static int64_t weight_at(const struct reference_conv *v, int64_t k, int64_t c, int64_t r, int64_t s)
{
	return ((k * (v->c / v->groups) + c) * v->r + r) * v->s + s;
}

static void conv2d(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct reference_conv v = conv_of(call, &call->in[0], &call->in[1], &call->out[0]);
	const float *x = hd_ref_in(call, 0), *w = hd_ref_in(call, 1);

	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		int64_t q = (int64_t)e % v.q, p = (int64_t)e / v.q % v.p, k = (int64_t)e / (v.q * v.p) % v.k,
			n = (int64_t)e / (v.q * v.p * v.k);
		const int64_t own = v.c / v.groups, first_c = k / (v.k / v.groups) * own;
		double sum = 0;
		for (int64_t c = 0; c < own; c++)
			for (int64_t r = 0; r < v.r; r++)
				for (int64_t s = 0; s < v.s; s++) {
					int64_t h = p * v.sh + r * v.dh - v.ph,
						i = q * v.sw + s * v.dw - v.pw;
					if (h >= 0 && h < v.h && i >= 0 && i < v.w)
						sum += (double)x[((n * v.c + first_c + c) * v.h + h) * v.w +
							i] * (double)w[weight_at(&v, k, c, r, s)];
				}
		hd_ref_out(call, 0)[e] = (float)sum;
	}
}

/* Every (p, q) whose window covers (h, i): h = p * sh + r * dh - ph. */
static void conv2d_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct reference_conv v = conv_of(call, &call->out[0], &call->in[1], &call->in[0]);
	const float *dy = hd_ref_in(call, 0), *w = hd_ref_in(call, 1);

	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		int64_t i = (int64_t)e % v.w, h = (int64_t)e / v.w % v.h, c = (int64_t)e / (v.w * v.h) % v.c,
			n = (int64_t)e / (v.w * v.h * v.c);
		const int64_t own = v.c / v.groups, each = v.k / v.groups, group = c / own;
		double sum = 0;
		for (int64_t k = group * each; k < (group + 1) * each; k++)
			for (int64_t r = 0; r < v.r; r++)
				for (int64_t s = 0; s < v.s; s++) {
					int64_t up = h + v.ph - r * v.dh, left = i + v.pw - s * v.dw;
					if (up < 0 || left < 0 || up % v.sh || left % v.sw ||
						up / v.sh >= v.p || left / v.sw >= v.q)
						continue;
					sum += (double)dy[((n * v.k + k) * v.p + up / v.sh) * v.q +
						left / v.sw] *
						(double)w[weight_at(&v, k, c - group * own, r, s)];
				}
		hd_ref_out(call, 0)[e] = (float)sum;
	}
}

static void conv2d_dw(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct reference_conv v = conv_of(call, &call->in[1], &call->out[0], &call->in[0]);
	const float *dy = hd_ref_in(call, 0), *x = hd_ref_in(call, 1);

	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		const int64_t own = v.c / v.groups;
		int64_t s = (int64_t)e % v.s, r = (int64_t)e / v.s % v.r, k = (int64_t)e / (v.s * v.r * own);
		int64_t c = (int64_t)e / (v.s * v.r) % own + k / (v.k / v.groups) * own;
		double sum = 0;
		for (int64_t n = 0; n < v.n; n++)
			for (int64_t p = 0; p < v.p; p++)
				for (int64_t q = 0; q < v.q; q++) {
					int64_t h = p * v.sh + r * v.dh - v.ph,
						i = q * v.sw + s * v.dw - v.pw;
					if (h >= 0 && h < v.h && i >= 0 && i < v.w)
						sum += (double)dy[((n * v.k + k) * v.p + p) * v.q + q] *
							(double)x[((n * v.c + c) * v.h + h) * v.w + i];
				}
		hd_ref_out(call, 0)[e] = (float)sum;
	}
}

/* qkv[N,T,3C]: q, k and v lie side by side, heads side by side in each. */
struct heads { int64_t t, c, heads, d; bool causal; double scale; };

static struct heads heads_of(const struct hd_call *call, const struct hd_operand *qkv)
{
	int64_t c = qkv->dim[2] / 3, heads = call->attr.i[0];

	return (struct heads){ qkv->dim[1], c, heads, c / heads, call->attr.i[1] != 0,
		1.0 / sqrt((double)(c / heads)) };
}

/* Softmax of row i of the scores of one head into p[0..visible); returns its logarithmic sum. */
static double attend(const struct heads *h, const float *q, const float *k, int64_t visible, double *p)
{
	double most = -INFINITY, sum = 0;

	for (int64_t j = 0; j < visible; j++) {
		double score = 0;
		for (int64_t d = 0; d < h->d; d++)
			score += (double)q[d] * (double)k[j * 3 * h->c + d];
		p[j] = score * h->scale;
		most = p[j] > most ? p[j] : most;
	}
	for (int64_t j = 0; j < visible; j++)
		sum += exp(p[j] - most);
	double lse = most + log(sum);
	for (int64_t j = 0; j < visible; j++)
		p[j] = exp(p[j] - lse);
	return lse;
}

static uint64_t image_heads(const struct hd_call *call)
{
	const struct hd_operand *qkv = call->op == HD_OP_ATTENTION ? &call->in[0] : &call->in[1];

	return (uint64_t)(qkv->dim[0] * call->attr.i[0]);
}

static size_t attention_scratch(const struct hd_call *call) { return (size_t)call->in[0].dim[1] *
	sizeof(double); }

/* A unit is a head of a sequence. */
static void attention(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct heads h = heads_of(call, &call->in[0]);
	double *p = scratch;

	for (uint64_t unit = first; unit < last; unit++) {
		int64_t n = (int64_t)unit / h.heads, head = (int64_t)unit % h.heads;
		const float *q = hd_ref_in(call, 0) + n * h.t * 3 * h.c + head * h.d, *k = q + h.c,
			*v = k + h.c;
		float *y = hd_ref_out(call, 0) + n * h.t * h.c + head * h.d,
			*lse = hd_ref_out(call, 1) + (int64_t)unit * h.t;
		for (int64_t i = 0; i < h.t; i++) {
			int64_t visible = h.causal ? i + 1 : h.t;
			lse[i] = (float)attend(&h, q + i * 3 * h.c, k, visible, p);
			for (int64_t d = 0; d < h.d; d++) {
				double sum = 0;
				for (int64_t j = 0; j < visible; j++)
					sum += p[j] * (double)v[j * 3 * h.c + d];
				y[i * h.c + d] = (float)sum;
			}
		}
	}
}

/* Probabilities and their gradients of one row, and the gradients of q, k, v of the head in f64. */
static size_t attention_dx_scratch(const struct hd_call *call)
{
	int64_t t = call->in[1].dim[1], d = call->in[1].dim[2] / 3 / call->attr.i[0];

	return (size_t)(2 * t + 3 * t * d) * sizeof(double);
}

/* dv_j = sum_i p_ij dy_i; dp_ij = dy_i . v_j; ds_ij = p_ij (dp_ij - sum_j p_ij dp_ij) / sqrt(d);
 * dq_i = sum_j ds_ij k_j; dk_j = sum_i ds_ij q_i. The probabilities are computed again, not
 * from lse, whose rounding to f32 the reference need not inherit. */
static void attention_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct heads h = heads_of(call, &call->in[1]);
	const int64_t td = h.t * h.d, row = 3 * h.c;
	double *p = scratch, *dp = p + h.t, *dq = dp + h.t, *dk = dq + td, *dv = dk + td;

	for (uint64_t unit = first; unit < last; unit++) {
		int64_t n = (int64_t)unit / h.heads, head = (int64_t)unit % h.heads;
		const float *q = hd_ref_in(call, 1) + n * h.t * row + head * h.d, *k = q + h.c, *v = k + h.c;
		const float *dy = hd_ref_in(call, 0) + n * h.t * h.c + head * h.d;
		float *out = hd_ref_out(call, 0) + n * h.t * row + head * h.d;

		memset(dq, 0, (size_t)(3 * td) * sizeof *dq);
		for (int64_t i = 0; i < h.t; i++) {
			int64_t visible = h.causal ? i + 1 : h.t;
			double along = 0;
			attend(&h, q + i * row, k, visible, p);
			for (int64_t j = 0; j < visible; j++) {
				dp[j] = 0;
				for (int64_t d = 0; d < h.d; d++) {
					dp[j] += (double)dy[i * h.c + d] * (double)v[j * row + d];
					dv[j * h.d + d] += p[j] * (double)dy[i * h.c + d];
				}
				along += p[j] * dp[j];
			}
			for (int64_t j = 0; j < visible; j++) {
				double ds = p[j] * (dp[j] - along) * h.scale;
				for (int64_t d = 0; d < h.d; d++) {
					dq[i * h.d + d] += ds * (double)k[j * row + d];
					dk[j * h.d + d] += ds * (double)q[i * row + d];
				}
			}
		}
		for (int64_t i = 0; i < h.t; i++)
			for (int64_t d = 0; d < h.d; d++) {
				out[i * row + d] = (float)dq[i * h.d + d];
				out[i * row + h.c + d] = (float)dk[i * h.d + d];
				out[i * row + 2 * h.c + d] = (float)dv[i * h.d + d];
			}
	}
}

static const struct hd_ref_op rows[HD_NOPS] = {
	[HD_OP_MATMUL]       = { hd_ref_elems, hd_ref_no_scratch, matmul },
	[HD_OP_CONV2D]       = { hd_ref_elems, hd_ref_no_scratch, conv2d },
	[HD_OP_CONV2D_DX]    = { hd_ref_elems, hd_ref_no_scratch, conv2d_dx },
	[HD_OP_CONV2D_DW]    = { hd_ref_elems, hd_ref_no_scratch, conv2d_dw },
	[HD_OP_ATTENTION]    = { image_heads, attention_scratch, attention },
	[HD_OP_ATTENTION_DX] = { image_heads, attention_dx_scratch, attention_dx },
};

const struct hd_ref_op *hd_ref_dense(uint16_t op) { return &rows[op]; }
