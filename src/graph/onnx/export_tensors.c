/* Ops of op_tensors.h in the words of ONNX. Truth values are f32 0 and 1 here, bool there. */
#include <string.h>

#include "graph/onnx/writer.h"

#define T(name) ONNX__TENSOR_PROTO__DATA_TYPE__##name

static const char *const pairs[HD_NOPS] = {
	[HD_OP_DIV] = "Div",   [HD_OP_MAXIMUM] = "Max",          [HD_OP_MINIMUM] = "Min",
	[HD_OP_LESS] = "Less", [HD_OP_LESS_EQ] = "LessOrEqual", [HD_OP_EQUAL] = "Equal",
};

static void w_pair(struct hd_ox *w) { hd_ox_last(w, pairs[w->at->op], hd_ox_name(w, 0), hd_ox_name(w, 1),
	NULL); }

static void w_compare(struct hd_ox *w)
{
	const char *truth = hd_ox_emit(w, pairs[w->at->op], hd_ox_name(w, 0), hd_ox_name(w, 1), NULL);

	hd_ox_set_int(w, hd_ox_last(w, "Cast", truth, NULL, NULL), "to", T(FLOAT));
}

static void w_where(struct hd_ox *w)
{
	const char *c = hd_ox_name(w, 0);

	hd_ox_last(w, "Where", hd_ox_cast(w, c, T(BOOL)), hd_ox_name(w, 1), hd_ox_name(w, 2));
}

/* The number of rows, times k, as i64 [1]: of the graph's input. */
static const char *rows(struct hd_ox *w, int64_t k)
{
	const char *shape = hd_ox_emit(w, "Shape", "x", NULL, NULL),
		*n = hd_ox_emit(w, "Gather", shape, hd_ox_ints(w, 1, (int64_t[]){ 0 }), NULL);
	const struct hd_value *x = hd_ox_value(w, w->graph->input[hd_graph_find_input(w->graph, "x")]);

	n = hd_ox_emit(w, "Mul", n, hd_ox_ints(w, 1, &k), NULL);
	return x->dim[0] == -1 ? n : hd_ox_emit(w, "Div", n, hd_ox_ints(w, 1, (int64_t[]){ -x->dim[0] }),
		NULL);
}

/* An extent that x has already is 1 in the shape that it is broadcast with; only new rows are computed. */
static void w_expand(struct hd_ox *w)
{
	const struct hd_value *x = hd_ox_in(w, 0), *y = hd_ox_value(w, w->at->out);
	const char *to = NULL;

	for (uint32_t d = 0; d < y->rank; d++) {
		int64_t have = d + x->rank >= y->rank ? x->dim[d + x->rank - y->rank] : 1,
			want = have == y->dim[d] ? 1 : y->dim[d];
		const char *each = want < 0 ? rows(w, -want) : hd_ox_ints(w, 1, &want),
			*joined = hd_ox_fresh(w);
		if (to)
			hd_ox_set_int(w, hd_ox_emit_to(w, joined, "Concat", to, each, NULL), "axis", 0);
		to = to ? joined : each;
	}
	hd_ox_last(w, "Expand", hd_ox_name(w, 0), to, NULL);
}

static const char *const reductions[HD_NOPS] = {
	[HD_OP_REDUCE_SUM] = "ReduceSum", [HD_OP_REDUCE_MEAN] = "ReduceMean",
		[HD_OP_REDUCE_MAX] = "ReduceMax", [HD_OP_REDUCE_MIN] = "ReduceMin",
	[HD_OP_REDUCE_PROD] = "ReduceProd",
};

/* Extents stay as 1, then those that do not stay go. */
static void w_reduce(struct hd_ox *w)
{
	const struct hd_value *x = hd_ox_in(w, 0), *y = hd_ox_value(w, w->at->out);
	bool sum = w->at->op == HD_OP_REDUCE_SUM, keeps = hd_ox_attr(w, 1) == hd_ox_attr(w, 0);
	const char *kept = keeps ? hd_ox_result(w) : hd_ox_fresh(w);
	int64_t axis[HD_MAX_DIMS];
	uint32_t n = 0;

	for (uint32_t d = 0; d < x->rank; d++)
		if (hd_ox_attr(w, 0) >> d & 1)
			axis[n++] = d;
	Onnx__NodeProto *node = hd_ox_emit_to(w, kept, reductions[w->at->op], hd_ox_name(w, 0),
		sum ? hd_ox_ints(w, n, axis) : NULL, NULL);
	hd_ox_set_int(w, node, "keepdims", 1);
	if (!sum)
		hd_ox_set_ints(w, node, "axes", n, axis);
	if (!keeps)
		hd_ox_shape_to(w, hd_ox_result(w), kept, y->rank, y->dim);
}

static void w_argmax(struct hd_ox *w)
{
	const struct hd_value *y = hd_ox_value(w, w->at->out);
	const char *at = hd_ox_fresh(w);
	Onnx__NodeProto *n = hd_ox_emit_to(w, at, "ArgMax", hd_ox_name(w, 0), NULL, NULL);

	hd_ox_set_int(w, n, "axis", hd_ox_attr(w, 0));
	hd_ox_set_int(w, n, "keepdims", 1);
	hd_ox_shape_to(w, hd_ox_result(w), hd_ox_cast(w, at, T(INT32)), y->rank, y->dim);
}

static void w_softmax(struct hd_ox *w)
{
	hd_ox_set_int(w, hd_ox_last(w, w->at->op == HD_OP_SOFTMAX ? "Softmax" : "LogSoftmax",
		hd_ox_name(w, 0), NULL, NULL), "axis", -1);
}

static void w_permute(struct hd_ox *w)
{
	uint32_t rank = hd_ox_in(w, 0)->rank;
	int64_t perm[HD_MAX_DIMS];

	for (uint32_t d = 0; d < rank; d++)
		perm[d] = hd_ox_attr(w, (int)d);
	hd_ox_set_ints(w, hd_ox_last(w, "Transpose", hd_ox_name(w, 0), NULL, NULL), "perm", rank, perm);
}

/* Backwards to the first element the end lies before it, which ONNX writes as the smallest number. */
static void w_slice(struct hd_ox *w)
{
	int64_t from = hd_ox_attr(w, 1), step = hd_ox_attr(w, 2), end = from + step * hd_ox_attr(w, 3);
	Onnx__NodeProto *n = hd_ox_last(w, "Slice", hd_ox_name(w, 0), hd_ox_ints(w, 1, &from),
		hd_ox_ints(w, 1, (int64_t[]){ end < 0 ? INT64_MIN : end }));

	hd_ox_more(w, n, hd_ox_ints(w, 1, (int64_t[]){ hd_ox_attr(w, 0) }));
	hd_ox_more(w, n, hd_ox_ints(w, 1, &step));
}

static void w_concat(struct hd_ox *w) { hd_ox_set_int(w, hd_ox_last(w, "Concat", hd_ox_name(w, 0),
	hd_ox_name(w, 1), NULL), "axis", hd_ox_attr(w, 0)); }
static void w_gather(struct hd_ox *w) { hd_ox_set_int(w, hd_ox_last(w, "Gather", hd_ox_name(w, 0),
	hd_ox_name(w, 1), NULL), "axis", hd_ox_attr(w, 0)); }

static void w_pad(struct hd_ox *w)
{
	uint32_t rank = hd_ox_in(w, 0)->rank;
	int64_t pads[2 * HD_MAX_DIMS] = { 0 };
	bool real = hd_ox_in(w, 0)->dtype == HD_F32;

	pads[hd_ox_attr(w, 0)] = hd_ox_attr(w, 1);
	pads[rank + (uint32_t)hd_ox_attr(w, 0)] = hd_ox_attr(w, 2);
	hd_ox_last(w, "Pad", hd_ox_name(w, 0), hd_ox_ints(w, 2 * rank, pads),
		real ? hd_ox_number(w, (double)w->at->attr.f[0]) : NULL);
}

static void w_one_hot(struct hd_ox *w)
{
	static const float off_on[2] = { 0, 1 };
	hd_ox_last(w, "OneHot", hd_ox_name(w, 0), hd_ox_whole(w, hd_ox_attr(w, 0)),
		hd_ox_floats(w, 1, (int64_t[]){ 2 }, off_on));
}

static void w_cast(struct hd_ox *w)
{
	static const int32_t type[] = { [HD_F32] = T(FLOAT), [HD_F64] = T(DOUBLE), [HD_I32] = T(INT32),
		[HD_I64] = T(INT64), [HD_U8] = T(UINT8) };

	hd_ox_set_int(w, hd_ox_last(w, "Cast", hd_ox_name(w, 0), NULL, NULL), "to", type[hd_ox_attr(w, 0)]);
}

static void w_contract(struct hd_ox *w)
{
	const char *a = hd_ox_attr(w, 0) ? hd_ox_turned(w, hd_ox_name(w, 0), hd_ox_in(w, 0)->rank) :
		hd_ox_name(w, 0);
	const char *b = hd_ox_attr(w, 1) ? hd_ox_turned(w, hd_ox_name(w, 1), hd_ox_in(w, 1)->rank) :
		hd_ox_name(w, 1);

	hd_ox_last(w, "MatMul", a, b, NULL);
}

hd_ox_writes *const hd_ox_tensors[HD_NOPS] = {
	[HD_OP_DIV] = w_pair,           [HD_OP_MAXIMUM] = w_pair,       [HD_OP_MINIMUM] = w_pair,
	[HD_OP_LESS] = w_compare,       [HD_OP_LESS_EQ] = w_compare,    [HD_OP_EQUAL] = w_compare,
	[HD_OP_WHERE] = w_where,
	[HD_OP_EXPAND] = w_expand,      [HD_OP_REDUCE_SUM] = w_reduce,  [HD_OP_REDUCE_MEAN] = w_reduce,
	[HD_OP_REDUCE_MAX] = w_reduce,
	[HD_OP_REDUCE_MIN] = w_reduce,  [HD_OP_REDUCE_PROD] = w_reduce, [HD_OP_ARGMAX] = w_argmax,
	[HD_OP_SOFTMAX] = w_softmax,
	[HD_OP_LOG_SOFTMAX] = w_softmax, [HD_OP_PERMUTE] = w_permute,   [HD_OP_SLICE] = w_slice,
	[HD_OP_CONCAT] = w_concat,
	[HD_OP_PAD] = w_pad,            [HD_OP_GATHER] = w_gather,      [HD_OP_ONE_HOT] = w_one_hot,
	[HD_OP_CAST] = w_cast,
	[HD_OP_CONTRACT] = w_contract,
};
