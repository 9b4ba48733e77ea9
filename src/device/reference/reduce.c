#include "device/reference/reference.h"

#include <math.h>
#include <string.h>

#include "base/lanes.h"

/* A unit is a row of the table: the positions that name it, in order. */
static uint64_t table_rows(const struct hd_call *call) { return (uint64_t)hd_rows(&call->out[0]); }

static size_t row_of_sums(const struct hd_call *call) { return (size_t)hd_cols(&call->out[0]) *
	sizeof(double); }

static void embed_dw(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t c = hd_cols(&call->out[0]);
	const int32_t *ids = call->in[1].at;
	double *sum = scratch;

	for (uint64_t u = first; u < last; u++) {
		for (int64_t i = 0; i < c; i++)
			sum[i] = 0;
		for (uint64_t n = 0; n < call->in[1].elems; n++)
			for (int64_t i = 0; i < c && ids[n] == (int32_t)u; i++)
				sum[i] += (double)hd_ref_in(call, 0)[(int64_t)n * c + i];
		for (int64_t i = 0; i < c; i++)
			hd_ref_out(call, 0)[(int64_t)u * c + i] = (float)sum[i];
	}
}

/* Sum over all extents but one (axis), or over the leading ones (keep). The input is seen as [outer, kept,
 * inner]. */
static void sum_rows(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_operand *x = &call->in[0];
	const uint64_t kept = call->out[0].elems;
	uint64_t inner = 1;

	(void)scratch;
	for (int d = call->attr.i[0] + 1; !call->attr.i[1] && call->attr.i[0] >= 0 && d < x->rank; d++)
		inner *= (uint64_t)x->dim[d];
	const uint64_t outer = x->elems / (kept * inner);
	for (uint64_t u = first; u < last; u++) {
		double sum = 0;
		for (uint64_t o = 0; o < outer; o++)
			for (uint64_t i = 0; i < inner; i++)
				sum += (double)hd_ref_in(call, 0)[(o * kept + u) * inner + i];
		hd_ref_out(call, 0)[u] = (float)sum;
	}
}

/* LAYERNORM: x gamma beta -> y stats. ADD_LAYERNORM: a b gamma beta -> y s stats, where s = a + b is
 * rounded first: the norm is that of the stored s. Variance is that of the population. */
static void layernorm(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const bool fused = call->op == HD_OP_ADD_LAYERNORM;
	const int64_t c = hd_cols(&call->out[0]);
	const float *gamma = hd_ref_in(call, fused ? 2 : 1), *beta = hd_ref_in(call, fused ? 3 : 2);

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		const float *x = hd_ref_in(call, 0) + (int64_t)u * c;
		float *y = hd_ref_out(call, 0) + (int64_t)u * c,
			*stats = hd_ref_out(call, fused ? 2 : 1) + 2 * u;
		double mean = 0, variance = 0;

		if (fused) {
			float *s = hd_ref_out(call, 1) + (int64_t)u * c;
			for (int64_t i = 0; i < c; i++)
				s[i] = x[i] + hd_ref_in(call, 1)[(int64_t)u * c + i];
			x = s;
		}
		for (int64_t i = 0; i < c; i++)
			mean += (double)x[i];
		mean /= (double)c;
		for (int64_t i = 0; i < c; i++)
			variance += ((double)x[i] - mean) * ((double)x[i] - mean);
		double rstd = 1 / sqrt(variance / (double)c + (double)call->attr.f[0]);
		for (int64_t i = 0; i < c; i++)
			y[i] = (float)(((double)x[i] - mean) * rstd * (double)gamma[i] + (double)beta[i]);
		stats[0] = (float)mean;
		stats[1] = (float)rstd;
	}
}

/* With n = (x - mean) rstd and g = dy gamma: dx = rstd (g - mean(g) - n mean(g n)). */
static void layernorm_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t c = hd_cols(&call->out[0]);
	const float *gamma = hd_ref_in(call, 2);

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		const float *dy = hd_ref_in(call, 0) + (int64_t)u * c,
			*x = hd_ref_in(call, 1) + (int64_t)u * c;
		const double mean = (double)hd_ref_in(call, 3)[2 * u],
			rstd = (double)hd_ref_in(call, 3)[2 * u + 1];
		double sum = 0, along = 0;
		for (int64_t i = 0; i < c; i++) {
			double g = (double)dy[i] * (double)gamma[i];
			sum += g;
			along += g * ((double)x[i] - mean) * rstd;
		}
		for (int64_t i = 0; i < c; i++) {
			double g = (double)dy[i] * (double)gamma[i], n = ((double)x[i] - mean) * rstd;
			hd_ref_out(call, 0)[(int64_t)u * c + i] =
				(float)(rstd * (g - sum / (double)c - n * along / (double)c));
		}
	}
}

static void layernorm_dg(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const uint64_t c = call->out[0].elems, rows = call->in[0].elems / c;
	const float *stats = hd_ref_in(call, 2);

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		double sum = 0;
		for (uint64_t n = 0; n < rows; n++)
			sum += (double)hd_ref_in(call, 0)[n * c + u] *
				((double)hd_ref_in(call, 1)[n * c + u] - (double)stats[2 * n]) *
				(double)stats[2 * n + 1];
		hd_ref_out(call, 0)[u] = (float)sum;
	}
}

static uint64_t losses(const struct hd_call *call) { return call->out[0].elems; }

static void softmax_xent(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t v = hd_cols(&call->in[0]);
	const int32_t *labels = call->in[1].at;

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		const float *x = hd_ref_in(call, 0) + (int64_t)u * v;
		int64_t most = 0;
		double sum = 0;
		for (int64_t i = 1; i < v; i++)
			most = x[i] > x[most] ? i : most;
		for (int64_t i = 0; i < v; i++)
			sum += exp((double)x[i] - (double)x[most]);
		double lse = (double)x[most] + log(sum);
		hd_ref_out(call, 0)[u] = labels[u] == -1 ? 0.0f : labels[u] >= v ? NAN :
			(float)(lse - (double)x[labels[u]]);
		hd_ref_out(call, 1)[u] = (float)lse;
		hd_ref_out(call, 2)[u] = labels[u] == most ? 1.0f : 0.0f;
	}
}

static void mse(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t c = hd_cols(&call->in[0]);

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		double sum = 0;
		for (int64_t i = 0; i < c; i++) {
			double gap = (double)hd_ref_in(call, 0)[(int64_t)u * c + i] - (double)hd_ref_in(call,
				1)[(int64_t)u * c + i];
			sum += gap * gap;
		}
		hd_ref_out(call, 0)[u] = (float)(sum / (double)c);
	}
}

static void sum64(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)first;
	(void)last;
	(void)scratch;
	*(double *)call->out[0].at = hd_lanes_sum(hd_ref_in(call, 0), call->in[0].elems);
}

/* Labels that are not masked; an f32 operand is weighed by its samples. */
static void count64(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_operand *x = &call->in[0];
	const int32_t *labels = x->at;
	double count = 0;

	(void)first;
	(void)last;
	(void)scratch;
	if (x->dtype == HD_F32)
		count = (double)x->dim[0];
	for (uint64_t i = 0; i < x->elems && x->dtype == HD_I32; i++)
		count += labels[i] != -1;
	*(double *)call->out[0].at = count;
}

static const struct hd_ref_op rows[HD_NOPS] = {
	[HD_OP_EMBED_DW]      = { table_rows, row_of_sums, embed_dw },
	[HD_OP_SUM_ROWS]      = { hd_ref_elems, hd_ref_no_scratch, sum_rows },
	[HD_OP_LAYERNORM]     = { hd_ref_rows, hd_ref_no_scratch, layernorm },
	[HD_OP_ADD_LAYERNORM] = { hd_ref_rows, hd_ref_no_scratch, layernorm },
	[HD_OP_LAYERNORM_DX]  = { hd_ref_rows, hd_ref_no_scratch, layernorm_dx },
	[HD_OP_LAYERNORM_DG]  = { hd_ref_elems, hd_ref_no_scratch, layernorm_dg },
	[HD_OP_SOFTMAX_XENT]  = { losses, hd_ref_no_scratch, softmax_xent },
	[HD_OP_MSE]           = { losses, hd_ref_no_scratch, mse },
	[HD_OP_SUM64]         = { hd_ref_whole, hd_ref_no_scratch, sum64 },
	[HD_OP_COUNT64]       = { hd_ref_whole, hd_ref_no_scratch, count64 },
};

const struct hd_ref_op *hd_ref_reduce(uint16_t op) { return &rows[op]; }
