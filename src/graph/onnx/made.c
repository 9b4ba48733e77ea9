/* Ops that are several of ours: elementwise functions, reductions of them, gathers along an axis, images in
 * blocks. Each is the plain definition; only WHERE chooses, so that what is not chosen may be infinite. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "graph/models/rows.h"
#include "graph/onnx/import.h"

static const struct hd_attr none;

static struct hd_maker maker(struct hd_onnx_call *call) { return (struct hd_maker){ call->im->graph,
	&call->why, HD_OK }; }

static enum hd_err put(struct hd_onnx_call *call, const struct hd_maker *m, uint32_t y, uint32_t rank,
	const int64_t *dim)
{
	if (m->err)
		return m->err == HD_E_INVAL ? HD_E_INPUT : m->err;
	enum hd_err err = hd_onnx_reshape(call, y, rank, dim, &y);
	return err ? err : hd_onnx_put(call, 0, y, rank, dim);
}

static uint32_t number(struct hd_maker *m, double value)
{
	float f = (float)value;
	uint32_t id = 0;

	if (!m->err)
		m->err = hd_graph_const(m->graph, HD_F32, 1, (int64_t[]){ 1 }, &f, &id, m->diag);
	return id;
}

static uint32_t act(struct hd_maker *m, enum hd_act which, uint32_t x, double alpha, double beta)
{
	return hd_make1(m, HD_OP_ACT, x, (struct hd_attr){ .i = { (int32_t)which },
		.f = { (float)alpha, (float)beta } });
}

static uint32_t scale(struct hd_maker *m, uint32_t x, double by) { return hd_make1(m, HD_OP_SCALE, x,
	(struct hd_attr){ .f = { (float)by } }); }
static uint32_t add(struct hd_maker *m, uint32_t a, uint32_t b) { return hd_make2(m, HD_OP_ADD, a, b, none); }
static uint32_t sub(struct hd_maker *m, uint32_t a, uint32_t b) { return hd_make2(m, HD_OP_SUB, a, b, none); }
static uint32_t mul(struct hd_maker *m, uint32_t a, uint32_t b) { return hd_make2(m, HD_OP_MUL, a, b, none); }
static uint32_t less(struct hd_maker *m, uint32_t a, uint32_t b) { return hd_make2(m, HD_OP_LESS, a, b, none);
	}
static uint32_t equal(struct hd_maker *m, uint32_t a, uint32_t b) { return hd_make2(m, HD_OP_EQUAL, a, b,
	none); }
static uint32_t where(struct hd_maker *m, uint32_t c, uint32_t a,
	uint32_t b) { return hd_make3(m, HD_OP_WHERE, c, a, b, none); }

/* ---- functions of one number */

static double given(const struct hd_onnx_call *call, const char *name,
	double standard) { return hd_onnx_attr_float(call->node, name, standard); }

static uint32_t selu(struct hd_maker *m, const struct hd_onnx_call *call, uint32_t x)
{
	return scale(m, act(m, HD_ACT_ELU, x, given(call, "alpha", 1.6732632423543772), 0),
		given(call, "gamma", 1.0507009873554805));
}

static uint32_t celu(struct hd_maker *m, const struct hd_onnx_call *call, uint32_t x)
{
	double alpha = given(call, "alpha", 1);

	return scale(m, act(m, HD_ACT_ELU, scale(m, x, 1 / alpha), 1, 0), alpha);
}

static uint32_t hard(struct hd_maker *m, uint32_t x, double alpha, double beta)
{
	return act(m, HD_ACT_CLIP, add(m, scale(m, x, alpha), number(m, beta)), 0, 1);
}

static uint32_t hard_sigmoid(struct hd_maker *m, const struct hd_onnx_call *call, uint32_t x)
{
	return hard(m, x, given(call, "alpha", 0.2), given(call, "beta", 0.5));
}

static uint32_t hard_swish(struct hd_maker *m, const struct hd_onnx_call *call, uint32_t x) { (void)call;
	return mul(m, x, hard(m, x, 1.0 / 6, 0.5)); }

static uint32_t softsign(struct hd_maker *m, const struct hd_onnx_call *call, uint32_t x)
{
	(void)call;
	return hd_make2(m, HD_OP_DIV, x, add(m, act(m, HD_ACT_ABS, x, 0, 0), number(m, 1)), none);
}

static uint32_t thresholded(struct hd_maker *m, const struct hd_onnx_call *call, uint32_t x)
{
	return where(m, less(m, number(m, given(call, "alpha", 1)), x), x, number(m, 0));
}

static uint32_t shrink(struct hd_maker *m, const struct hd_onnx_call *call, uint32_t x)
{
	double from = given(call, "lambd", 0.5), bias = given(call, "bias", 0);
	uint32_t low = where(m, less(m, x, number(m, -from)), add(m, x, number(m, bias)), number(m, 0));

	return where(m, less(m, number(m, from), x), sub(m, x, number(m, bias)), low);
}

static uint32_t sign(struct hd_maker *m, const struct hd_onnx_call *call, uint32_t x)
{
	uint32_t zero = number(m, 0);
	(void)call;

	return sub(m, less(m, zero, x), less(m, x, zero));
}

static uint32_t is_nan(struct hd_maker *m, const struct hd_onnx_call *call, uint32_t x) { (void)call;
	return sub(m, number(m, 1), equal(m, x, x)); }

static uint32_t is_inf(struct hd_maker *m, const struct hd_onnx_call *call, uint32_t x)
{
	uint32_t above = less(m, number(m, (double)FLT_MAX), x),
		below = less(m, x, number(m, (double)-FLT_MAX));
	bool up = hd_onnx_attr_int(call->node, "detect_positive", 1),
		down = hd_onnx_attr_int(call->node, "detect_negative", 1);

	return up && down ? add(m, above, below) : up ? above : down ? below : sub(m, above, above);
}

static const struct { const char *op; uint32_t (*of)(struct hd_maker *m, const struct hd_onnx_call *call,
	uint32_t x); } functions[] = {
	{ "Selu", selu },           { "Celu", celu },       { "HardSigmoid", hard_sigmoid }, { "HardSwish", hard_swish },
	{ "Softsign", softsign },   { "Shrink", shrink },   { "ThresholdedRelu", thresholded }, { "Sign", sign },
	{ "IsNaN", is_nan },        { "IsInf", is_inf },
};

enum hd_err hd_onnx_function(struct hd_onnx_call *call)
{
	struct hd_maker m = maker(call);
	uint32_t x, y = 0;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (err)
		return err;
	if (hd_onnx_shape(call, x)->dtype != HD_F32)
		return hd_onnx_no(call, "of integers");
	for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
		if (!strcmp(call->node->op_type, functions[k].op))
			y = functions[k].of(&m, call, x);
	return put(call, &m, y, call->in[0]->rank, call->in[0]->dim);
}

/* ---- of two */

enum hd_err hd_onnx_prelu(struct hd_onnx_call *call)
{
	struct hd_maker m = maker(call);
	uint32_t x, slope;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (!err)
		err = hd_onnx_value(call, 1, &slope);
	if (err)
		return err;
	uint32_t below = act(&m, HD_ACT_RELU, act(&m, HD_ACT_NEG, x, 0, 0), 0, 0);
	return put(call, &m, sub(&m, act(&m, HD_ACT_RELU, x, 0, 0), mul(&m, slope, below)), call->in[0]->rank,
		call->in[0]->dim);
}

/* Truth values are f32 0 and 1: of two that differ the difference is not 0. */
enum hd_err hd_onnx_xor(struct hd_onnx_call *call)
{
	struct hd_maker m = maker(call);
	uint32_t a, b;
	enum hd_err err = hd_onnx_value(call, 0, &a);

	if (!err)
		err = hd_onnx_value(call, 1, &b);
	if (err)
		return err;
	uint32_t y = sub(&m, number(&m, 1), equal(&m, a, b));
	return m.err ? put(call, &m, y, 0, NULL) : hd_onnx_put_like(call, 0, y);
}

/* Integers: a - (a / b) b has the sign of a; with fmod = 0 that of b. Of floats the quotient may be too
 * large to be whole. */
enum hd_err hd_onnx_mod(struct hd_onnx_call *call)
{
	struct hd_maker m = maker(call);
	int32_t nought = 0;
	uint32_t a, b, zero;
	enum hd_err err = hd_onnx_value(call, 0, &a);

	if (!err)
		err = hd_onnx_value(call, 1, &b);
	if (err)
		return err;
	if (hd_onnx_shape(call, a)->dtype != HD_I32 || hd_onnx_shape(call, b)->dtype != HD_I32)
		return hd_onnx_no(call, "of floats: Heddle has it of integers alone");
	uint32_t y = sub(&m, a, mul(&m, hd_make2(&m, HD_OP_DIV, a, b, none), b));
	if (!hd_onnx_attr_int(call->node, "fmod", 0) && !m.err) {
		m.err = hd_graph_const(m.graph, HD_I32, 1, (int64_t[]){ 1 }, &nought, &zero, m.diag);
		uint32_t same = equal(&m, less(&m, y, zero), less(&m, b, zero));
		y = where(&m, equal(&m, y, zero), y, where(&m, same, y, add(&m, y, b)));
	}
	return m.err ? put(call, &m, y, 0, NULL) : hd_onnx_put_like(call, 0, y);
}

/* ---- reductions of functions */

static uint32_t reduced(struct hd_maker *m, enum hd_op op, uint32_t x, uint32_t set, bool keep)
{
	return set ? hd_make1(m, op, x, (struct hd_attr){ .i = { (int32_t)set, keep ? (int32_t)set : 0 } }) :
		x;
}

/* log of the sum of e^x as max + log sum e^(x - max): nothing overflows. */
static uint32_t log_sum_exp(struct hd_maker *m, uint32_t x, uint32_t set, bool keep)
{
	uint32_t top = reduced(m, HD_OP_REDUCE_MAX, x, set, true),
		rest = act(m, HD_ACT_EXP, sub(m, x, top), 0, 0);

	return add(m, reduced(m, HD_OP_REDUCE_MAX, x, set, keep),
		act(m, HD_ACT_LOG, reduced(m, HD_OP_REDUCE_SUM, rest, set, keep), 0, 0));
}

enum hd_err hd_onnx_reduce_of(struct hd_onnx_call *call)
{
	const char *op = call->node->op_type;
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	bool keep = hd_onnx_attr_int(call->node, "keepdims", 1) != 0, given_axes;
	struct hd_maker m = maker(call);
	int64_t dim[HD_ONNX_DIMS];
	uint32_t x, y, set, n, rank = 0;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (!err)
		err = hd_onnx_axes(call, v->rank, &set, &n, &given_axes);
	if (err)
		return err;
	if (n == 0 && !hd_onnx_attr_int(call->node, "noop_with_empty_axes", 0))
		set = (1u << v->rank) - 1;
	for (uint32_t d = 0; d < v->rank; d++) {
		if (set >> d & 1 && v->dim[d] < 0)
			return hd_onnx_no(call, "reduces over the rows of the batch");
		if (keep || !(set >> d & 1))
			dim[rank++] = set >> d & 1 ? 1 : v->dim[d];
	}
	if (!strcmp(op, "ReduceLogSumExp"))
		return put(call, &m, log_sum_exp(&m, x, set, keep), rank, dim);
	if (!strcmp(op, "ReduceL1"))
		x = act(&m, HD_ACT_ABS, x, 0, 0);
	else if (strcmp(op, "ReduceLogSum") != 0)
		x = act(&m, HD_ACT_SQUARE, x, 0, 0);
	y = reduced(&m, HD_OP_REDUCE_SUM, x, set, keep);
	if (!strcmp(op, "ReduceL2"))
		y = act(&m, HD_ACT_SQRT, y, 0, 0);
	else if (!strcmp(op, "ReduceLogSum"))
		y = act(&m, HD_ACT_LOG, y, 0, 0);
	return put(call, &m, y, rank, dim);
}

/* (x - mean) / (deviation + 1e-9), over the axes alone */
enum hd_err hd_onnx_mvn(struct hd_onnx_call *call)
{
	const Onnx__AttributeProto *a = hd_onnx_attr(call->node, "axes");
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	struct hd_maker m = maker(call);
	uint32_t x, at, set = 0;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (err)
		return err;
	for (size_t k = 0; k < (a ? a->n_ints : 3); k++) {
		if (!hd_onnx_axis(a ? a->ints[k] : k ? (int64_t)k + 1 : 0, v->rank, &at) || v->dim[at] < 0)
			return hd_onnx_no(call, "there is no such axis, or it is the rows");
		set |= 1u << at;
	}
	uint32_t d = sub(&m, x, reduced(&m, HD_OP_REDUCE_MEAN, x, set, true));
	uint32_t deviation = act(&m, HD_ACT_SQRT, reduced(&m, HD_OP_REDUCE_MEAN,
		act(&m, HD_ACT_SQUARE, d, 0, 0), set, true), 0, 0);
	return put(call, &m, hd_make2(&m, HD_OP_DIV, d, add(&m, deviation, number(&m, 1e-9)), none), v->rank,
		v->dim);
}

/* ---- choosing along an axis */

enum hd_err hd_onnx_hardmax(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	struct hd_maker m = maker(call);
	bool flat = call->im->file.opset < 13;            /* then: over all axes from `axis` on */
	uint32_t x, axis;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (err)
		return err;
	if (!hd_onnx_axis(hd_onnx_attr_int(call->node, "axis", flat ? 1 : -1), v->rank, &axis) ||
		v->dim[axis] < 0 ||
	    v->dim[axis] > INT32_MAX || (flat && axis + 1u < v->rank))
		return hd_onnx_no(call, "there is no such axis, it is the rows, or there are several");
	uint32_t at = hd_make1(&m, HD_OP_ARGMAX, x, (struct hd_attr){ .i = { (int32_t)axis } });
	uint32_t y = hd_make1(&m, HD_OP_ONE_HOT, at, (struct hd_attr){ .i = { (int32_t)v->dim[axis] } });
	if (m.err)
		return put(call, &m, y, 0, NULL);
	if (v->rank > 1)
		err = hd_onnx_axis_last(call, y, v->rank, axis, true, &y);
	return err ? err : put(call, &m, y, v->rank, v->dim);
}

enum hd_err hd_onnx_one_hot(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *ids = hd_onnx_in(call, 0), *pair = hd_onnx_in(call, 2);
	struct hd_maker m = maker(call);
	int64_t dim[HD_ONNX_DIMS];
	double depth = 0;
	uint32_t x, values, axis, n = 0;

	if (!ids || !pair || !hd_onnx_number(call, 1, &depth) || !(depth >= 1 && depth <= INT32_MAX) ||
		pair->rank != 1 || pair->dim[0] != 2)
		return hd_onnx_no(call,
			"its depth is not known before the graph runs, or there are not two values");
	if (ids->rank >= HD_MAX_DIMS || !hd_onnx_axis(hd_onnx_attr_int(call->node, "axis", -1),
		ids->rank + 1u, &axis))
		return hd_onnx_no(call, "there is no such axis");
	int64_t ndepth = (int64_t)depth;
	enum hd_err err = hd_onnx_indices(call, 0, ndepth, &x);
	if (!err)
		err = hd_onnx_value(call, 2, &values);
	if (err)
		return err;
	if (hd_onnx_shape(call, x)->dtype == HD_F32)
		x = hd_make1(&m, HD_OP_CAST, x, (struct hd_attr){ .i = { HD_I32 } });
	for (uint32_t d = 0; d <= ids->rank; d++)
		dim[d] = d == axis ? ndepth : ids->dim[n++];
	if (!ids->rank)
		err = hd_onnx_reshape(call, x, 0, NULL, &x);
	uint32_t hot = hd_make1(&m, HD_OP_ONE_HOT, x, (struct hd_attr){ .i = { (int32_t)ndepth } });
	uint32_t off = hd_make1(&m, HD_OP_SLICE, values, (struct hd_attr){ .i = { 0, 0, 1, 1 } });
	uint32_t on = hd_make1(&m, HD_OP_SLICE, values, (struct hd_attr){ .i = { 0, 1, 1, 1 } });
	uint32_t y = where(&m, hot, on, off);
	if (!err && !m.err && ids->rank)
		err = hd_onnx_axis_last(call, y, ids->rank + 1u, axis, true, &y);
	return err ? err : put(call, &m, y, ids->rank + 1u, dim);
}

/* One element per index along the axis: the axis goes last, indices become a choice over it, and what is not
 * chosen is 0 of the sum. Costs an element of work per element of the axis; a graph op for it is not worth
 * a kernel. */
enum hd_err hd_onnx_gather_elements(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0), *ids = hd_onnx_in(call, 1);
	struct hd_maker m = maker(call);
	int64_t dim[HD_ONNX_DIMS];
	uint32_t x, index, axis;

	if (!v || !ids || v->rank != ids->rank || v->rank >= HD_MAX_DIMS ||
		!hd_onnx_axis(hd_onnx_attr_int(call->node, "axis", 0), v->rank, &axis))
		return hd_onnx_no(call, "an input is missing, or its axis, or there are more than %d extents",
			HD_MAX_DIMS - 1);
	for (uint32_t d = 0; d < v->rank; d++)
		if ((d != axis && ids->dim[d] != v->dim[d]) ||
			(d == axis && (v->dim[d] < 0 || v->dim[d] > INT32_MAX)))
			return hd_onnx_no(call,
				"the indices have other extents beside the axis, or the axis is the rows");
	enum hd_err err = hd_onnx_value(call, 0, &x);
	if (!err)
		err = hd_onnx_indices(call, 1, v->dim[axis], &index);
	if (!err)
		err = hd_onnx_axis_last(call, x, v->rank, axis, false, &x);
	for (uint32_t d = 0, k = 0; d < v->rank; d++)
		dim[d] = d == axis ? 1 : hd_onnx_shape(call, x)->dim[k++];
	dim[v->rank] = v->dim[axis];
	if (!err)
		err = hd_onnx_reshape(call, x, v->rank + 1u, dim, &x);
	if (err)
		return err;
	if (hd_onnx_shape(call, x)->dtype != HD_F32)
		return hd_onnx_no(call, "of integers");
	uint32_t hot = hd_make1(&m, HD_OP_ONE_HOT, index, (struct hd_attr){ .i = { (int32_t)v->dim[axis] } });
	uint32_t y = reduced(&m, HD_OP_REDUCE_SUM, where(&m, hot, x, number(&m, 0)), 1u << v->rank, false);
	return put(call, &m, y, ids->rank, ids->dim);
}

/* What an element of `data` becomes by the updates that fall on it, which lie along `axis` of `u`; `hot` says
 * which do. None: the one that does, for ONNX forbids several. */
struct scatter { const char *reduction; enum hd_op among, with; double none; };
static const struct scatter scatters[] = {
	{ "none", HD_OP_REDUCE_SUM,  HD_NOPS,       0 },
	{ "add",  HD_OP_REDUCE_SUM,  HD_OP_ADD,     0 },
	{ "mul",  HD_OP_REDUCE_PROD, HD_OP_MUL,     1 },
	{ "max",  HD_OP_REDUCE_MAX,  HD_OP_MAXIMUM, -INFINITY },
	{ "min",  HD_OP_REDUCE_MIN,  HD_OP_MINIMUM, INFINITY },
};

static const struct scatter *scatter_of(const struct hd_onnx_call *call)
{
	for (size_t i = 0; i < sizeof scatters / sizeof *scatters; i++)
		if (hd_onnx_attr_is(call->node, "reduction", scatters[i].reduction, i == 0))
			return &scatters[i];
	return NULL;
}

static uint32_t scatter(struct hd_maker *m, const struct scatter *how, uint32_t data, uint32_t u,
	uint32_t hot, uint32_t axis)
{
	uint32_t s = reduced(m, how->among, where(m, hot, u, number(m, how->none)), 1u << axis, false);

	return how->with != HD_NOPS ? hd_make2(m, (uint16_t)how->with, data, s, none) :
		where(m, reduced(m, HD_OP_REDUCE_MAX, hot, 1u << axis, false), s, data);
}

/* As gather, a choice over the axis, which goes last: an element of work per index and element of the
 * axis. */
enum hd_err hd_onnx_scatter_elements(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0), *ids = hd_onnx_in(call, 1),
		*updates = hd_onnx_in(call, 2);
	const struct scatter *how = scatter_of(call);
	struct hd_maker m = maker(call);
	int64_t dim[HD_ONNX_DIMS];
	uint32_t x, u, index, axis;

	if (!v || !ids || !updates || v->rank != ids->rank || updates->rank != ids->rank ||
		v->rank >= HD_MAX_DIMS || !how ||
	    !hd_onnx_axis(hd_onnx_attr_int(call->node, "axis", 0), v->rank, &axis))
		return hd_onnx_no(call, "an input is missing, or its axis, or there are more than %d extents",
			HD_MAX_DIMS - 1);
	for (uint32_t d = 0; d < v->rank; d++)
		if (updates->dim[d] != ids->dim[d] || (d != axis && ids->dim[d] != v->dim[d]) ||
			(d == axis && (v->dim[d] < 0 || ids->dim[d] < 1)))
			return hd_onnx_no(call,
				"the indices have other extents beside the axis, or the axis is the rows");
	enum hd_err err = hd_onnx_value(call, 0, &x);
	if (!err)
		err = hd_onnx_indices(call, 1, v->dim[axis], &index);
	if (!err)
		err = hd_onnx_value(call, 2, &u);
	if (!err)
		err = hd_onnx_axis_last(call, x, v->rank, axis, false, &x);
	memcpy(dim, ids->dim, sizeof dim);
	dim[ids->rank] = 1;
	if (!err)
		err = hd_onnx_reshape(call, u, ids->rank + 1u, dim, &u);
	if (err)
		return err;
	if (hd_onnx_shape(call, x)->dtype != HD_F32 || hd_onnx_shape(call, u)->dtype != HD_F32)
		return hd_onnx_no(call, "of integers");
	uint32_t hot = hd_make1(&m, HD_OP_ONE_HOT, index, (struct hd_attr){ .i = { (int32_t)v->dim[axis] } });
	uint32_t y = scatter(&m, how, x, u, hot, axis);
	if (!m.err)
		err = hd_onnx_axis_last(call, y, v->rank, axis, true, &y);
	return err ? err : put(call, &m, y, v->rank, v->dim);
}

/* Whole slices of the first axis. */
enum hd_err hd_onnx_scatter_nd(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0), *ids = hd_onnx_in(call, 1),
		*updates = hd_onnx_in(call, 2);
	const struct scatter *how = scatter_of(call);
	struct hd_maker m = maker(call);
	uint32_t x, u, index;

	if (!v || !ids || !updates || !how || v->rank < 1 || ids->rank < 1 || ids->dim[ids->rank - 1] != 1)
		return hd_onnx_no(call, "an input is missing, or it addresses by more than one index");
	int64_t n = hd_dims_product(ids->dim, ids->rank), inner = hd_dims_product(v->dim + 1, v->rank - 1u);
	for (uint32_t d = 0; d < v->rank; d++)
		if (v->dim[d] < 1)
			return hd_onnx_no(call, "the data have rows, or nothing");
	if (n < 1 || hd_dims_product(updates->dim, updates->rank) != n * inner)
		return hd_onnx_no(call,
			"there is not one slice of updates for each index, or they are of the rows");
	enum hd_err err = hd_onnx_value(call, 0, &x);
	if (!err)
		err = hd_onnx_indices(call, 1, v->dim[0], &index);
	if (!err)
		err = hd_onnx_value(call, 2, &u);
	if (!err)
		err = hd_onnx_reshape(call, x, 2, (int64_t[]){ v->dim[0], inner }, &x);
	if (!err)
		err = hd_onnx_axis_last(call, x, 2, 0, false, &x);
	if (!err)
		err = hd_onnx_reshape(call, u, 3, (int64_t[]){ n, inner, 1 }, &u);
	if (!err)
		err = hd_onnx_reshape(call, index, 2, (int64_t[]){ n, 1 }, &index);
	if (err)
		return err;
	if (hd_onnx_shape(call, x)->dtype != HD_F32 || hd_onnx_shape(call, u)->dtype != HD_F32)
		return hd_onnx_no(call, "of integers");
	uint32_t hot = hd_make1(&m, HD_OP_ONE_HOT, index, (struct hd_attr){ .i = { (int32_t)v->dim[0] } });
	uint32_t y = scatter(&m, how, x, u, hot, 0);
	if (!m.err)
		err = hd_onnx_axis_last(call, y, 2, 0, true, &y);
	return err ? err : put(call, &m, y, v->rank, v->dim);
}

/* ---- moving */

enum hd_err hd_onnx_tile(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	struct hd_sym by[HD_ONNX_DIMS];
	struct hd_maker m = maker(call);
	int64_t dim[HD_ONNX_DIMS], cut[4];
	uint32_t n, x;
	bool there;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (!err)
		err = hd_onnx_ints(call, NULL, 1, by, HD_ONNX_DIMS, &n, &there);
	if (err)
		return err;
	if (n != v->rank)
		return hd_onnx_no(call, "there is not one number of repetitions for each axis");
	memcpy(dim, v->dim, sizeof dim);
	for (uint32_t d = 0; d < n && !err; d++) {
		if (by[d].rows || by[d].a < 1 || (by[d].a > 1 && v->dim[d] < 0) ||
			!hd_mul_i64(v->dim[d], by[d].a, &dim[d]) || dim[d] > INT32_MAX)
			return hd_onnx_no(call,
				"axis %u is repeated not at all, too often, or it is the rows", d);
		if (by[d].a == 1)
			continue;
		/* [before, 1, here, behind] -> [before, times, here, behind] */
		cut[0] = hd_dims_product(dim, d);
		cut[1] = 1;
		cut[2] = v->dim[d];
		cut[3] = hd_dims_product(v->dim + d + 1, n - d - 1);
		err = hd_onnx_reshape(call, x, 4, cut, &x);
		struct hd_attr to = { .i = { (int32_t)cut[0], (int32_t)by[d].a, (int32_t)cut[2],
			(int32_t)cut[3] } };
		x = hd_make1(&m, HD_OP_EXPAND, x, to);
	}
	return err ? err : put(call, &m, x, n, dim);
}

/* DCR: a channel is (row, column, c); CRD: (c, row, column). SpaceToDepth is the way back of DCR. */
enum hd_err hd_onnx_depth_space(struct hd_onnx_call *call)
{
	static const int32_t dcr[6] = { 0, 3, 4, 1, 5, 2 }, crd[6] = { 0, 1, 4, 2, 5, 3 },
		back[6] = { 0, 3, 5, 1, 2, 4 };
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	bool to_space = !strcmp(call->node->op_type, "DepthToSpace"),
		crossed = !hd_onnx_attr_is(call->node, "mode", "DCR", true);
	int64_t b = hd_onnx_attr_int(call->node, "blocksize", 0);
	struct hd_maker m = maker(call);
	struct hd_attr perm = none;
	uint32_t x;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (err)
		return err;
	if (v->rank != 4 || b < 1 || b > 1 << 15 || v->dim[1] < 1 || v->dim[2] < 1 || v->dim[3] < 1 ||
	    (to_space ? v->dim[1] % (b * b) : v->dim[2] % b || v->dim[3] % b))
		return hd_onnx_no(call, "x is no image of whole blocks of %lld", (long long)b);
	int64_t c = v->dim[1], h = v->dim[2], w = v->dim[3];
	int64_t cut[6] = { v->dim[0], crossed ? c / (b * b) : b, b, crossed ? b : c / (b * b), h, w };
	int64_t cut_back[6] = { v->dim[0], c, h / b, b, w / b, b },
		dim[4] = { v->dim[0], c / (b * b), h * b, w * b };
	memcpy(perm.i, !to_space ? back : crossed ? crd : dcr, sizeof dcr);
	if (!to_space) {
		dim[1] = c * b * b;
		dim[2] = h / b;
		dim[3] = w / b;
	}
	err = hd_onnx_reshape(call, x, 6, to_space ? cut : cut_back, &x);
	return err ? err : put(call, &m, hd_make1(&m, HD_OP_PERMUTE, x, perm), 4, dim);
}

enum hd_err hd_onnx_mean(struct hd_onnx_call *call)
{
	struct hd_maker m = maker(call);
	uint32_t x, y = 0;
	enum hd_err err = HD_OK;

	for (uint32_t k = 0; k < call->nin && !err; k++) {
		err = hd_onnx_value(call, k, &x);
		y = !err && k ? add(&m, y, x) : x;
	}
	if (err)
		return err;
	y = scale(&m, y, 1 / (double)call->nin);
	return m.err ? put(call, &m, y, 0, NULL) : hd_onnx_put_like(call, 0, y);
}

/* Ones on diagonal k of the input's extents. */
enum hd_err hd_onnx_eye(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	struct hd_host_tensor *h = hd_arena_take(&call->im->file.arena, 1, sizeof *h);
	int64_t type = hd_onnx_attr_int(call->node, "dtype", v ? v->type : 0),
		k = hd_onnx_attr_int(call->node, "k", 0);
	int32_t kind;

	if (!h || !v || v->rank != 2 || v->dim[0] < 0 || v->dim[1] < 0 || !hd_i32_from(type, &kind) ||
		!hd_onnx_type_bytes(kind) || llabs(k) > INT32_MAX)
		return hd_onnx_no(call, "takes a matrix whose extents are known, and a type that is read");
	enum hd_err err = hd_host_make(h, &call->im->file.arena, kind, 2, v->dim, &call->why);
	for (int64_t r = 0; !err && r < v->dim[0]; r++)
		if (r + k >= 0 && r + k < v->dim[1]) {
			if (h->is_float)
				h->f[r * v->dim[1] + r + k] = 1;
			else
				h->i[r * v->dim[1] + r + k].a = 1;
		}
	return err ? err : hd_onnx_put_host(call, 0, h);
}
