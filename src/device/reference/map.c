#include "device/reference/reference.h"

#include <math.h>

#include "base/philox.h"

static double act_of(int act, double x)
{
	switch ((enum hd_act)act) {
	case HD_ACT_RELU:    return x < 0 ? 0 : x;
	case HD_ACT_GELU:    return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
	case HD_ACT_TANH:    return tanh(x);
	case HD_ACT_SIGMOID: return 1 / (1 + exp(-x));
	case HD_NACTS:       break;
	}
	return (double)NAN;
}

static double slope_of(int act, double x)
{
	switch ((enum hd_act)act) {
	case HD_ACT_RELU:    return x > 0 ? 1 : 0;
	case HD_ACT_GELU: {
		const double a = sqrt(2 / 3.14159265358979323846);
		double t = tanh(a * (x + 0.044715 * x * x * x));
		return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * a * (1 + 3 * 0.044715 * x * x);
	}
	case HD_ACT_TANH:    return 1 - tanh(x) * tanh(x);
	case HD_ACT_SIGMOID: return 1 / (1 + exp(-x)) * (1 / (1 + exp(x)));
	case HD_NACTS:       break;
	}
	return (double)NAN;
}

static void map(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const float *a = hd_ref_in(call, 0), *b = call->nin > 1 ? hd_ref_in(call, 1) : a;
	const uint64_t nb = call->nin > 1 ? call->in[1].elems : 1;
	float *out = hd_ref_out(call, 0);

	(void)scratch;
	for (uint64_t e = first; e < last; e++)
		switch (call->op) {
		case HD_OP_ADD:    out[e] = a[e] + b[e % nb]; break;
		case HD_OP_SUB:    out[e] = a[e] - b[e]; break;
		case HD_OP_MUL:    out[e] = a[e] * b[e]; break;
		case HD_OP_SCALE:  out[e] = a[e] * call->attr.f[0]; break;
		case HD_OP_ACT:    out[e] = (float)act_of(call->attr.i[0], (double)a[e]); break;
		case HD_OP_ACT_DX: out[e] = (float)((double)a[e] * slope_of(call->attr.i[0], (double)b[e])); break;
		default:           break;
		}
}

/* Elements between two neighbours of the channel extent. */
static uint64_t inner_of(const struct hd_operand *x, int axis)
{
	uint64_t inner = 1;

	for (int d = axis + 1; axis >= 0 && d < x->rank; d++)
		inner *= (uint64_t)x->dim[d];
	return inner;
}

static void bias(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const uint64_t inner = inner_of(&call->in[0], call->attr.i[0]), c = call->in[1].elems;
	float *z = hd_ref_out(call, 0), *y = call->op == HD_OP_BIAS_ACT ? hd_ref_out(call, 1) : NULL;

	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		z[e] = hd_ref_in(call, 0)[e] + hd_ref_in(call, 1)[e / inner % c];
		if (y)
			y[e] = (float)act_of(call->attr.i[1], (double)z[e]);
	}
}

/* kh kw sh sw; no padding. Where the first maximum of window (p, q) of plane `x` lies. */
static int64_t first_maximum(const struct hd_call *call, const struct hd_operand *x, const float *plane, int64_t p, int64_t q)
{
	const int32_t *a = call->attr.i;
	int64_t best = p * a[2] * x->dim[3] + q * a[3];

	for (int64_t r = 0; r < a[0]; r++)
		for (int64_t s = 0; s < a[1]; s++) {
			int64_t at = (p * a[2] + r) * x->dim[3] + q * a[3] + s;
			best = plane[at] > plane[best] ? at : best;
		}
	return best;
}

/* A unit is a plane [H,W] of one channel of one image. */
static uint64_t planes(const struct hd_call *call) { return (uint64_t)(call->out[0].dim[0] * call->out[0].dim[1]); }

static void maxpool2d(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_operand *x = &call->in[0], *y = &call->out[0];

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		const float *plane = hd_ref_in(call, 0) + (int64_t)u * x->dim[2] * x->dim[3];
		float *to = hd_ref_out(call, 0) + (int64_t)u * y->dim[2] * y->dim[3];
		for (int64_t p = 0; p < y->dim[2]; p++)
			for (int64_t q = 0; q < y->dim[3]; q++)
				to[p * y->dim[3] + q] = plane[first_maximum(call, x, plane, p, q)];
	}
}

/* Windows in row-major order: where they overlap, gradients are added in that order. */
static void maxpool2d_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_operand *dy = &call->in[0], *x = &call->in[1];
	const int64_t size = x->dim[2] * x->dim[3];

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		const float *plane = hd_ref_in(call, 1) + (int64_t)u * size, *from = hd_ref_in(call, 0) + (int64_t)u * dy->dim[2] * dy->dim[3];
		float *to = hd_ref_out(call, 0) + (int64_t)u * size;
		for (int64_t i = 0; i < size; i++)
			to[i] = 0;
		for (int64_t p = 0; p < dy->dim[2]; p++)
			for (int64_t q = 0; q < dy->dim[3]; q++)
				to[first_maximum(call, x, plane, p, q)] += from[p * dy->dim[3] + q];
	}
}

static void embed(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t c = hd_cols(&call->out[0]);
	const int32_t *ids = call->in[0].at;

	(void)scratch;
	for (uint64_t u = first; u < last; u++)
		for (int64_t i = 0; i < c; i++)
			hd_ref_out(call, 0)[(int64_t)u * c + i] = hd_ref_in(call, 1)[ids[u] * c + i];
}

/* Element `e` of the call is element row0 * (elements per row) + e of its virtual node. */
static void dropout(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_operand *y = &call->out[0];
	const struct hd_draw *draw = &call->draw;
	const uint64_t before = y->elems ? draw->row0 * (y->elems / (uint64_t)y->dim[0]) : 0;
	const float p = call->attr.f[0], kept = 1.0f - p;
	const uint32_t from = hd_keep_from((double)p);

	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		uint64_t element = before + e;
		struct hd_philox random = hd_philox_model(draw->seed, draw->step, draw->vn, draw->op, element / 4);
		hd_ref_out(call, 0)[e] = random.word[element % 4] >= from ? hd_ref_in(call, 0)[e] / kept : 0.0f;
	}
}

static void softmax_xent_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t v = hd_cols(&call->in[0]);
	const int32_t *labels = call->in[1].at;

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		const float *x = hd_ref_in(call, 0) + (int64_t)u * v;
		float *dx = hd_ref_out(call, 0) + (int64_t)u * v;
		for (int64_t i = 0; i < v; i++)
			dx[i] = labels[u] == -1 ? 0.0f : (float)(exp((double)x[i] - (double)hd_ref_in(call, 2)[u]) - (i == labels[u]));
	}
}

static void mse_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t c = hd_cols(&call->in[0]);

	(void)scratch;
	for (uint64_t e = first; e < last; e++)
		hd_ref_out(call, 0)[e] = (float)(2 * ((double)hd_ref_in(call, 0)[e] - (double)hd_ref_in(call, 1)[e]) / (double)c);
}

static void view(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)call;
	(void)first;
	(void)last;
	(void)scratch;
}

static uint64_t nothing(const struct hd_call *call) { (void)call; return 0; }

static const struct hd_ref_op rows[HD_NOPS] = {
	[HD_OP_RESHAPE]         = { nothing, hd_ref_no_scratch, view },
	[HD_OP_ADD]             = { hd_ref_elems, hd_ref_no_scratch, map },
	[HD_OP_SUB]             = { hd_ref_elems, hd_ref_no_scratch, map },
	[HD_OP_MUL]             = { hd_ref_elems, hd_ref_no_scratch, map },
	[HD_OP_SCALE]           = { hd_ref_elems, hd_ref_no_scratch, map },
	[HD_OP_BIAS]            = { hd_ref_elems, hd_ref_no_scratch, bias },
	[HD_OP_BIAS_ACT]        = { hd_ref_elems, hd_ref_no_scratch, bias },
	[HD_OP_ACT]             = { hd_ref_elems, hd_ref_no_scratch, map },
	[HD_OP_ACT_DX]          = { hd_ref_elems, hd_ref_no_scratch, map },
	[HD_OP_MAXPOOL2D]       = { planes, hd_ref_no_scratch, maxpool2d },
	[HD_OP_MAXPOOL2D_DX]    = { planes, hd_ref_no_scratch, maxpool2d_dx },
	[HD_OP_EMBED]           = { hd_ref_rows, hd_ref_no_scratch, embed },
	[HD_OP_SOFTMAX_XENT_DX] = { hd_ref_rows, hd_ref_no_scratch, softmax_xent_dx },
	[HD_OP_MSE_DX]          = { hd_ref_elems, hd_ref_no_scratch, mse_dx },
	[HD_OP_DROPOUT]         = { hd_ref_elems, hd_ref_no_scratch, dropout },
	[HD_OP_DROPOUT_DX]      = { hd_ref_elems, hd_ref_no_scratch, dropout },
};

const struct hd_ref_op *hd_ref_map(uint16_t op) { return &rows[op]; }
