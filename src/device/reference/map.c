#include "device/reference/reference.h"

#include <math.h>

#include "base/philox.h"

static void map(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const float *a = hd_ref_in(call, 0), *b = call->nin > 1 ? hd_ref_in(call, 1) : a;
	float *out = hd_ref_out(call, 0);

	(void)scratch;
	for (uint64_t e = first; e < last; e++)
		switch (call->op) {
		case HD_OP_SCALE:  out[e] = a[e] * call->attr.f[0]; break;
		case HD_OP_ACT:    out[e] = (float)hd_act_value(call->attr.i[0], call->attr.f,
			(double)a[e]); break;
		case HD_OP_ACT_DX: out[e] = (float)((double)a[e] * hd_act_slope(call->attr.i[0], call->attr.f,
			(double)b[e])); break;
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
			y[e] = (float)hd_act_value(call->attr.i[1], call->attr.f, (double)z[e]);
	}
}

static void embed(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t c = hd_cols(&call->out[0]);
	const int32_t *ids = call->in[0].at;

	(void)scratch;
	for (uint64_t u = first; u < last; u++)
		for (int64_t i = 0; i < c; i++)
			hd_ref_out(call, 0)[(int64_t)u * c + i] = ids[u] >= 0 &&
				ids[u] < call->in[1].dim[0] ? hd_ref_in(call, 1)[ids[u] * c + i] : NAN;
}

/* The number that element `e` of the call has in its virtual node: row0 counts extent 0, and of a part
 * extent 1 begins at `from`. */
static uint64_t number_of(const struct hd_call *call, uint64_t e)
{
	const struct hd_operand *y = &call->out[0];
	const uint64_t per = y->elems / (uint64_t)y->dim[0], row = call->draw.row0 + e / per,
		inside = e % per;

	if (!call->attr.i[1])
		return row * per + inside;
	return (row * (uint64_t)call->attr.i[1] + (uint64_t)call->attr.i[0]) * (per / (uint64_t)y->dim[1]) +
		inside;
}

static void dropout(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_draw *draw = &call->draw;
	const float p = call->attr.f[0], kept = 1.0f - p;
	const uint32_t from = hd_keep_from((double)p);

	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		uint64_t element = number_of(call, e);
		struct hd_philox random = hd_philox_model(draw->seed, draw->step, draw->vn, draw->op,
			element / 4);
		hd_ref_out(call, 0)[e] = random.word[element % 4] >= from ? hd_ref_in(call, 0)[e] / kept :
			0.0f;
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
			dx[i] = labels[u] == -1 ? 0.0f : (float)(exp((double)x[i] - (double)hd_ref_in(call,
				2)[u]) - (i == labels[u]));
	}
}

static void mse_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t c = hd_cols(&call->in[0]);

	(void)scratch;
	for (uint64_t e = first; e < last; e++)
		hd_ref_out(call, 0)[e] = (float)(2 * ((double)hd_ref_in(call, 0)[e] - (double)hd_ref_in(call,
			1)[e]) / (double)c);
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
	[HD_OP_SCALE]           = { hd_ref_elems, hd_ref_no_scratch, map },
	[HD_OP_BIAS]            = { hd_ref_elems, hd_ref_no_scratch, bias },
	[HD_OP_BIAS_ACT]        = { hd_ref_elems, hd_ref_no_scratch, bias },
	[HD_OP_ACT]             = { hd_ref_elems, hd_ref_no_scratch, map },
	[HD_OP_ACT_DX]          = { hd_ref_elems, hd_ref_no_scratch, map },
	[HD_OP_EMBED]           = { hd_ref_rows, hd_ref_no_scratch, embed },
	[HD_OP_SOFTMAX_XENT_DX] = { hd_ref_rows, hd_ref_no_scratch, softmax_xent_dx },
	[HD_OP_MSE_DX]          = { hd_ref_elems, hd_ref_no_scratch, mse_dx },
	[HD_OP_DROPOUT]         = { hd_ref_elems, hd_ref_no_scratch, dropout },
	[HD_OP_DROPOUT_DX]      = { hd_ref_elems, hd_ref_no_scratch, dropout },
};

const struct hd_ref_op *hd_ref_map(uint16_t op) { return &rows[op]; }
