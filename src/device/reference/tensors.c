#include "device/reference/index.h"

#include <math.h>
#include <string.h>

static double pair_of(uint16_t op, double a, double b)
{
	switch (op) {
	case HD_OP_ADD:     return a + b;
	case HD_OP_SUB:     return a - b;
	case HD_OP_MUL:     return a * b;
	case HD_OP_DIV:     return a / b;
	case HD_OP_MAXIMUM: return isnan(a) || a > b ? a : b;
	case HD_OP_MINIMUM: return isnan(a) || a < b ? a : b;
	case HD_OP_LESS:    return a < b;
	case HD_OP_LESS_EQ: return a <= b;
	default:            return a == b;
	}
}

/* The numbers of i32 are few enough for f64; what does not fit wraps. */
static int32_t pair_of_int(uint16_t op, int32_t a, int32_t b)
{
	int64_t x = a, y = b;

	switch (op) {
	case HD_OP_ADD: return (int32_t)(uint32_t)(uint64_t)(x + y);
	case HD_OP_SUB: return (int32_t)(uint32_t)(uint64_t)(x - y);
	case HD_OP_MUL: return (int32_t)(uint32_t)(uint64_t)(x * y);
	case HD_OP_DIV: return y == 0 ? 0 : (int32_t)(uint32_t)(uint64_t)(x / y);
	default:        return (int32_t)pair_of(op, a, b);
	}
}

static bool compares(uint16_t op) { return op == HD_OP_LESS || op == HD_OP_LESS_EQ || op == HD_OP_EQUAL; }

static void pairs(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		int64_t i = hd_ref_under(call, 0, e), j = hd_ref_under(call, 1, e);
		if (call->in[0].dtype == HD_F32)
			hd_ref_out(call, 0)[e] = (float)pair_of(call->op, (double)hd_ref_in(call, 0)[i],
				(double)hd_ref_in(call, 1)[j]);
		else if (compares(call->op))
			hd_ref_out(call, 0)[e] = (float)pair_of(call->op,
				((const int32_t *)call->in[0].at)[i], ((const int32_t *)call->in[1].at)[j]);
		else
			((int32_t *)call->out[0].at)[e] = pair_of_int(call->op,
				((const int32_t *)call->in[0].at)[i], ((const int32_t *)call->in[1].at)[j]);
	}
}

static double number(const struct hd_operand *o, int64_t i)
{
	switch (o->dtype) {
	case HD_F32: return (double)((const float *)o->at)[i];
	case HD_F64: return ((const double *)o->at)[i];
	case HD_I32: return ((const int32_t *)o->at)[i];
	case HD_I64: return (double)((const int64_t *)o->at)[i];
	default:     return ((const uint8_t *)o->at)[i];
	}
}

static void copy(const struct hd_call *call, uint64_t to, const struct hd_operand *from, int64_t at)
{
	size_t bytes = hd_dtype_bytes((enum hd_dtype)from->dtype);

	memcpy((uint8_t *)call->out[0].at + to * bytes, (const uint8_t *)from->at + (size_t)at * bytes,
		bytes);
}

static void where(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		int side = number(&call->in[0], hd_ref_under(call, 0, e)) != 0 ? 1 : 2;
		copy(call, e, &call->in[side], hd_ref_under(call, side, e));
	}
}

/* Where element e of the output comes from in operand 0; -1: from nowhere. */
static int64_t source_of(const struct hd_call *call, uint64_t e)
{
	const int32_t *a = call->attr.i;
	int64_t at[HD_MAX_DIMS] = { 0 }, from[HD_MAX_DIMS];

	hd_ref_coords_of(&call->out[0], e, at);
	memcpy(from, at, sizeof from);
	switch (call->op) {
	case HD_OP_EXPAND: return hd_ref_under(call, 0, e);
	case HD_OP_PERMUTE:
		for (int d = 0; d < call->out[0].rank; d++)
			from[a[d]] = at[d];
		break;
	case HD_OP_SLICE:
		from[a[0]] = a[1] + at[a[0]] * a[2];
		break;
	case HD_OP_SLICE_DX:
		from[a[0]] = (at[a[0]] - a[1]) / a[2];
		if (from[a[0]] < 0 || from[a[0]] >= a[3] || a[1] + from[a[0]] * a[2] != at[a[0]])
			return -1;
		break;
	case HD_OP_PAD:
		from[a[0]] = at[a[0]] - a[1];
		if (from[a[0]] < 0 || from[a[0]] >= call->in[0].dim[a[0]])
			return -1;
		break;
	default:
		break;
	}
	return hd_ref_element_at(&call->in[0], from);
}

static void store(const struct hd_operand *o, uint64_t e, double x)
{
	x = isnan(x) && o->dtype != HD_F32 && o->dtype != HD_F64 ? 0 : x;
	switch (o->dtype) {
	case HD_F32: ((float *)o->at)[e] = (float)x; break;
	case HD_F64: ((double *)o->at)[e] = x; break;
	case HD_I32: ((int32_t *)o->at)[e] = (int32_t)fmin(fmax(trunc(x), INT32_MIN), INT32_MAX); break;
	case HD_I64: ((int64_t *)o->at)[e] = x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : (int64_t)x;
		break;
	default:     ((uint8_t *)o->at)[e] = (uint8_t)fmin(fmax(trunc(x), 0), UINT8_MAX); break;
	}
}

static void moves(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		int64_t from = source_of(call, e);
		if (from >= 0)
			copy(call, e, &call->in[0], from);
		else
			store(&call->out[0], e, call->op == HD_OP_PAD ? (double)call->attr.f[0] : 0);
	}
}

static void concat(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int32_t axis = call->attr.i[0];
	const int64_t cut = call->in[0].dim[axis];
	int64_t at[HD_MAX_DIMS] = { 0 };

	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		hd_ref_coords_of(&call->out[0], e, at);
		int side = at[axis] >= cut;
		at[axis] -= side ? cut : 0;
		copy(call, e, &call->in[side], hd_ref_element_at(&call->in[side], at));
	}
}

/* Integers go by way of i64, whose numbers f64 has not all. */
static void cast(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		if (call->in[0].dtype != HD_I64 || call->out[0].dtype == HD_F64 ||
			call->out[0].dtype == HD_F32)
			store(&call->out[0], e, number(&call->in[0], (int64_t)e));
		else
			store(&call->out[0], e,
				(double)fmin(fmax((double)((const int64_t *)call->in[0].at)[e], INT32_MIN),
				INT32_MAX));
		if (call->in[0].dtype == HD_I64 && call->out[0].dtype == HD_F32)
			hd_ref_out(call, 0)[e] = (float)((const int64_t *)call->in[0].at)[e];
	}
}

static void one_hot(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const uint64_t depth = (uint64_t)call->attr.i[0];

	(void)scratch;
	for (uint64_t e = first; e < last; e++)
		hd_ref_out(call, 0)[e] = ((const int32_t *)call->in[0].at)[e / depth] ==
			(int32_t)(e % depth) ? 1 : 0;
}

static void gather(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_operand *x = &call->in[0];
	const int64_t inner = hd_ref_span(x, call->attr.i[0] + 1), axis = x->dim[call->attr.i[0]],
		nids = (int64_t)call->in[1].elems;

	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		int64_t id = ((const int32_t *)call->in[1].at)[(int64_t)e / inner % nids],
			outer = (int64_t)e / inner / nids;
		if (id >= 0 && id < axis)
			copy(call, e, x, (outer * axis + id) * inner + (int64_t)e % inner);
		else
			store(&call->out[0], e, 0);
	}
}

static void scatter_add(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_operand *x = &call->out[0];
	const int64_t inner = hd_ref_span(x, call->attr.i[0] + 1), axis = x->dim[call->attr.i[0]],
		nids = (int64_t)call->in[1].elems;
	const int32_t *ids = call->in[1].at;

	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		int64_t mine = (int64_t)e / inner % axis, outer = (int64_t)e / inner / axis;
		double sum = 0;
		for (int64_t k = 0; k < nids; k++)
			if (ids[k] == mine)
				sum += (double)hd_ref_in(call,
					0)[(outer * nids + k) * inner + (int64_t)e % inner];
		hd_ref_out(call, 0)[e] = (float)sum;
	}
}

/* Every element of x that falls on element e of the result, by coordinates. */
static void reduce(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_operand *x = &call->in[0];
	const int32_t axes = call->attr.i[0];
	int64_t at[HD_MAX_DIMS] = { 0 };

	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		double acc = call->op == HD_OP_REDUCE_MAX ? (double)-INFINITY : call->op == HD_OP_REDUCE_MIN ?
			(double)INFINITY :
			call->op == HD_OP_REDUCE_PROD ? 1 : 0;
		uint64_t count = 0;
		for (uint64_t i = 0; i < x->elems; i++) {
			uint64_t falls_on = 0;
			hd_ref_coords_of(x, i, at);
			for (int d = 0; d < x->rank; d++)
				falls_on = axes >> d & 1 ? falls_on :
					falls_on * (uint64_t)x->dim[d] + (uint64_t)at[d];
			if (falls_on != e)
				continue;
			double v = (double)hd_ref_in(call, 0)[i];
			acc = call->op == HD_OP_REDUCE_MAX ? pair_of(HD_OP_MAXIMUM, v, acc) :
				call->op == HD_OP_REDUCE_MIN ? pair_of(HD_OP_MINIMUM, v, acc) :
				call->op == HD_OP_REDUCE_PROD ? acc * v : acc + v;
			count++;
		}
		hd_ref_out(call, 0)[e] = (float)(call->op == HD_OP_REDUCE_MEAN ? acc / (double)count : acc);
	}
}

static void argmax(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_ref_line l = hd_ref_line_of(call);

	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		int32_t best = 0;
		for (int64_t i = l.axis - 1; i >= 0; i--)
			if (hd_ref_in(call, 0)[hd_ref_on_line(l, e, i)] >=
				hd_ref_in(call, 0)[hd_ref_on_line(l, e, best)] || best == 0)
				best = (int32_t)i;
		((int32_t *)call->out[0].at)[e] = best;
	}
}

static void softmax(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t n = hd_cols(&call->out[0]);

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		const float *x = hd_ref_in(call, 0) + (int64_t)u * n;
		double top = (double)x[0], sum = 0;
		for (int64_t i = 1; i < n; i++)
			top = fmax(top, (double)x[i]);
		for (int64_t i = 0; i < n; i++)
			sum += exp((double)x[i] - top);
		for (int64_t i = 0; i < n; i++)
			hd_ref_out(call, 0)[(int64_t)u * n + i] = call->op == HD_OP_SOFTMAX ?
				(float)(exp((double)x[i] - top) / sum) :
				(float)((double)x[i] - top - log(sum));
	}
}

static void softmax_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t n = hd_cols(&call->out[0]);
	const bool log = call->op == HD_OP_LOG_SOFTMAX_DX;

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		const float *dy = hd_ref_in(call, 0) + (int64_t)u * n,
			*y = hd_ref_in(call, 1) + (int64_t)u * n;
		double sum = 0;
		for (int64_t i = 0; i < n; i++)
			sum += (double)dy[i] * (log ? 1 : (double)y[i]);
		for (int64_t i = 0; i < n; i++)
			hd_ref_out(call, 0)[(int64_t)u * n + i] = log ?
				(float)((double)dy[i] - exp((double)y[i]) * sum) :
				(float)((double)y[i] * ((double)dy[i] - sum));
	}
}

static void contract(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_operand *a = &call->in[0], *b = &call->in[1], *y = &call->out[0];
	const bool ta = call->attr.i[0], tb = call->attr.i[1];
	const int64_t k = a->dim[a->rank - (ta ? 2 : 1)];
	int64_t at[HD_MAX_DIMS] = { 0 };

	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		double sum = 0;
		hd_ref_coords_of(y, e, at);
		for (int64_t p = 0; p < k; p++) {
			int64_t l[HD_MAX_DIMS], r[HD_MAX_DIMS];
			memcpy(l, at, sizeof l);
			memcpy(r, at, sizeof r);
			l[y->rank - 2] = ta ? p : at[y->rank - 2];
			l[y->rank - 1] = ta ? at[y->rank - 2] : p;
			r[y->rank - 2] = tb ? at[y->rank - 1] : p;
			r[y->rank - 1] = tb ? p : at[y->rank - 1];
			sum += (double)hd_ref_in(call, 0)[hd_ref_element_at(a, l + (y->rank - a->rank))] *
				(double)hd_ref_in(call, 1)[hd_ref_element_at(b, r + (y->rank - b->rank))];
		}
		hd_ref_out(call, 0)[e] = (float)sum;
	}
}

#define PAIRS(X) X(ADD) X(SUB) X(MUL) X(DIV) X(MAXIMUM) X(MINIMUM) X(LESS) X(LESS_EQ) X(EQUAL)
#define MOVES(X) X(EXPAND) X(PERMUTE) X(SLICE) X(SLICE_DX) X(PAD)
static const struct hd_ref_op rows[HD_NOPS] = {
#define X(id) [HD_OP_##id] = { hd_ref_elems, hd_ref_no_scratch, pairs },
	PAIRS(X)
#undef X
#define X(id) [HD_OP_##id] = { hd_ref_elems, hd_ref_no_scratch, moves },
	MOVES(X)
#undef X
	[HD_OP_WHERE]          = { hd_ref_elems, hd_ref_no_scratch, where },
	[HD_OP_CONCAT]         = { hd_ref_elems, hd_ref_no_scratch, concat },
	[HD_OP_CAST]           = { hd_ref_elems, hd_ref_no_scratch, cast },
	[HD_OP_ONE_HOT]        = { hd_ref_elems, hd_ref_no_scratch, one_hot },
	[HD_OP_GATHER]         = { hd_ref_elems, hd_ref_no_scratch, gather },
	[HD_OP_SCATTER_ADD]    = { hd_ref_elems, hd_ref_no_scratch, scatter_add },
	[HD_OP_REDUCE_SUM]     = { hd_ref_elems, hd_ref_no_scratch, reduce },
	[HD_OP_REDUCE_MEAN]    = { hd_ref_elems, hd_ref_no_scratch, reduce },
	[HD_OP_REDUCE_MAX]     = { hd_ref_elems, hd_ref_no_scratch, reduce },
	[HD_OP_REDUCE_MIN]     = { hd_ref_elems, hd_ref_no_scratch, reduce },
	[HD_OP_REDUCE_PROD]    = { hd_ref_elems, hd_ref_no_scratch, reduce },
	[HD_OP_ARGMAX]         = { hd_ref_elems, hd_ref_no_scratch, argmax },
	[HD_OP_SOFTMAX]        = { hd_ref_rows, hd_ref_no_scratch, softmax },
	[HD_OP_SOFTMAX_DX]     = { hd_ref_rows, hd_ref_no_scratch, softmax_dx },
	[HD_OP_LOG_SOFTMAX]    = { hd_ref_rows, hd_ref_no_scratch, softmax },
	[HD_OP_LOG_SOFTMAX_DX] = { hd_ref_rows, hd_ref_no_scratch, softmax_dx },
	[HD_OP_CONTRACT]       = { hd_ref_elems, hd_ref_no_scratch, contract },
};

const struct hd_ref_op *hd_ref_tensors(uint16_t op) { return &rows[op]; }
