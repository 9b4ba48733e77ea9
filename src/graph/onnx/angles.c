/* Functions that are several of ours: of angles, and the norm over neighbouring channels. */
#include <math.h>
#include <string.h>

#include "graph/models/rows.h"
#include "graph/onnx/import.h"

static const struct hd_attr none;

static uint32_t act(struct hd_maker *m, enum hd_act which, uint32_t x) { return hd_make1(m, HD_OP_ACT, x,
	(struct hd_attr){ .i = { (int32_t)which } }); }
static uint32_t two(struct hd_maker *m, enum hd_op op, uint32_t a, uint32_t b) { return hd_make2(m, op, a, b,
	none); }
static uint32_t scale(struct hd_maker *m, uint32_t x, double by) { return hd_make1(m, HD_OP_SCALE, x,
	(struct hd_attr){ .f = { (float)by } }); }

static uint32_t number(struct hd_maker *m, double value)
{
	float f = (float)value;
	uint32_t id = 0;

	if (!m->err)
		m->err = hd_graph_const(m->graph, HD_F32, 1, (int64_t[]){ 1 }, &f, &id, m->diag);
	return id;
}

/* sign(x): 0 at 0. */
static uint32_t sign(struct hd_maker *m, uint32_t x)
{
	uint32_t zero = number(m, 0);

	return two(m, HD_OP_SUB, two(m, HD_OP_LESS, zero, x), two(m, HD_OP_LESS, x, zero));
}

static uint32_t tangent(struct hd_maker *m, uint32_t x) { return two(m, HD_OP_DIV, act(m, HD_ACT_SIN, x),
	act(m, HD_ACT_COS, x)); }

/* (1 - x)(1 + x): what 1 - x^2 would cancel near 1. */
static uint32_t rest(struct hd_maker *m, uint32_t x)
{
	uint32_t one = number(m, 1);

	return act(m, HD_ACT_SQRT, two(m, HD_OP_MUL, two(m, HD_OP_SUB, one, x), two(m, HD_OP_ADD, one, x)));
}

/* atan(x / sqrt(1 - x^2)) */
static uint32_t arcsine(struct hd_maker *m, uint32_t x) { return act(m, HD_ACT_ATAN, two(m, HD_OP_DIV, x,
	rest(m, x))); }
/* 2 atan(sqrt(1 - x^2) / (1 + x)) */
static uint32_t arccosine(struct hd_maker *m, uint32_t x) { return scale(m, act(m, HD_ACT_ATAN,
	two(m, HD_OP_DIV, rest(m, x), two(m, HD_OP_ADD, number(m, 1), x))), 2); }

/* With u = e^|x| - 1, exact near 0: sinh |x| = (u + u / (u + 1)) / 2. elu is e^x - 1 below 0. */
static uint32_t hyperbolic_sine(struct hd_maker *m, uint32_t x)
{
	uint32_t a = act(m, HD_ACT_ABS, x);
	uint32_t down = hd_make1(m, HD_OP_ACT, act(m, HD_ACT_NEG, a),
		(struct hd_attr){ .i = { HD_ACT_ELU }, .f = { 1 } });           /* e^-|x| - 1 */
	/* e^|x| - 1 = (1 - e^-|x|) e^|x| */
	uint32_t up = two(m, HD_OP_MUL, act(m, HD_ACT_NEG, down), act(m, HD_ACT_EXP, a));
	return two(m, HD_OP_MUL, sign(m, x), scale(m, two(m, HD_OP_SUB, up, down), 0.5));
}

static uint32_t hyperbolic_cosine(struct hd_maker *m, uint32_t x)
{
	return scale(m, two(m, HD_OP_ADD, act(m, HD_ACT_EXP, x), act(m, HD_ACT_EXP, act(m, HD_ACT_NEG, x))),
		0.5);
}

/* sign(x) log(|x| + sqrt(x^2 + 1)) */
static uint32_t inverse_sine(struct hd_maker *m, uint32_t x)
{
	uint32_t root = act(m, HD_ACT_SQRT, two(m, HD_OP_ADD, act(m, HD_ACT_SQUARE, x), number(m, 1)));

	return two(m, HD_OP_MUL, sign(m, x), act(m, HD_ACT_LOG, two(m, HD_OP_ADD, act(m, HD_ACT_ABS, x),
		root)));
}

static uint32_t inverse_cosine(struct hd_maker *m, uint32_t x)
{
	uint32_t one = number(m, 1), root = act(m, HD_ACT_SQRT, two(m, HD_OP_MUL, two(m, HD_OP_SUB, x, one),
		two(m, HD_OP_ADD, x, one)));

	return act(m, HD_ACT_LOG, two(m, HD_OP_ADD, x, root));
}

/* (log(1 + x) - log(1 - x)) / 2 */
static uint32_t inverse_tangent(struct hd_maker *m, uint32_t x)
{
	uint32_t one = number(m, 1);

	return scale(m, two(m, HD_OP_SUB, act(m, HD_ACT_LOG, two(m, HD_OP_ADD, one, x)),
		act(m, HD_ACT_LOG, two(m, HD_OP_SUB, one, x))), 0.5);
}

static const struct { const char *op; uint32_t (*of)(struct hd_maker *m, uint32_t x); } angles[] = {
	{ "Tan", tangent }, { "Asin", arcsine }, { "Acos", arccosine }, { "Sinh", hyperbolic_sine },
	{ "Cosh", hyperbolic_cosine }, { "Asinh", inverse_sine }, { "Acosh", inverse_cosine }, { "Atanh", inverse_tangent },
};

enum hd_err hd_onnx_angle(struct hd_onnx_call *call)
{
	struct hd_maker m = { call->im->graph, &call->why, HD_OK };
	uint32_t x, y = 0;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (err)
		return err;
	for (size_t k = 0; k < sizeof angles / sizeof *angles; k++)
		if (!strcmp(call->node->op_type, angles[k].op))
			y = angles[k].of(&m, x);
	if (m.err)
		return m.err == HD_E_INVAL ? HD_E_INPUT : m.err;
	return hd_onnx_put(call, 0, y, call->in[0]->rank, call->in[0]->dim);
}

/* x / (bias + alpha / size sum of squares of `size` channels around)^beta. The sum is that of means of
 * windows over the channels, which lie along the height of an image of one channel. */
enum hd_err hd_onnx_lrn(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	struct hd_maker m = { call->im->graph, &call->why, HD_OK };
	int64_t size = hd_onnx_attr_int(call->node, "size", 0);
	double alpha = hd_onnx_attr_float(call->node, "alpha", 1e-4),
		beta = hd_onnx_attr_float(call->node, "beta", 0.75),
		bias = hd_onnx_attr_float(call->node, "bias", 1);
	uint32_t x;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (err)
		return err;
	int64_t plane = v->rank > 2 ? hd_dims_product(v->dim + 2, v->rank - 2u) : 1;
	if (v->rank < 2 || v->dim[1] < 1 || plane < 1 || size < 1 || size > 1 << 16)
		return hd_onnx_no(call, "x has no channels, or the size is %lld", (long long)size);
	int32_t before = (int32_t)((size - 1) / 2), after = (int32_t)(size - 1) - before;
	uint32_t square;
	err = hd_onnx_reshape(call, act(&m, HD_ACT_SQUARE, x), 4, (int64_t[]){ v->dim[0], 1, v->dim[1],
		plane }, &square);
	if (err)
		return err;
	if (before || after)
		square = hd_make1(&m, HD_OP_PAD, square, (struct hd_attr){ .i = { 2, before, after } });
	uint32_t mean = hd_make1(&m, HD_OP_AVGPOOL2D, square,
		(struct hd_attr){ .i = { (int32_t)size, 1, 1, 1, 0, 0, 1 } });
	uint32_t base = two(&m, HD_OP_ADD, scale(&m, mean, alpha), number(&m, bias));
	uint32_t by = hd_make1(&m, HD_OP_ACT, base, (struct hd_attr){ .i = { HD_ACT_POW },
		.f = { (float)-beta } });
	if (m.err)
		return m.err == HD_E_INVAL ? HD_E_INPUT : m.err;
	err = hd_onnx_reshape(call, by, v->rank, v->dim, &by);
	uint32_t y = err ? 0 : two(&m, HD_OP_MUL, x, by);
	if (err || m.err)
		return err ? err : m.err == HD_E_INVAL ? HD_E_INPUT : m.err;
	return hd_onnx_put(call, 0, y, v->rank, v->dim);
}
