/* Elementwise ops. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "graph/onnx/import.h"

#define T(name) ONNX__TENSOR_PROTO__DATA_TYPE__##name

static bool is(const struct hd_onnx_call *call, const char *op) { return !strcmp(call->node->op_type, op); }

static enum hd_err put_act(struct hd_onnx_call *call, struct hd_attr attr)
{
	uint32_t x, y;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (!err)
		err = hd_onnx_node1(call, HD_OP_ACT, x, attr, &y);
	return err ? err : hd_onnx_put(call, 0, y, call->in[0]->rank, call->in[0]->dim);
}

/* By its row of acts.def. */
enum hd_err hd_onnx_act(struct hd_onnx_call *call)
{
	struct hd_attr attr = { .i = { 0 } };

	for (int act = 0; act < HD_NACTS; act++) {
		const struct hd_act_onnx *onnx = &hd_acts[act].onnx;
		if (!onnx->read || !is(call, onnx->read))
			continue;
		attr.i[0] = act;
		if (hd_acts[act].nf)
			attr.f[0] = (float)hd_onnx_attr_float(call->node, "alpha", onnx->alpha);
	}
	return put_act(call, attr);
}

/* As one op since opset 20; before, exporters write it out (pattern.c). */
enum hd_err hd_onnx_gelu(struct hd_onnx_call *call)
{
	bool tanh = hd_onnx_attr_is(call->node, "approximate", "tanh", false);

	return put_act(call, (struct hd_attr){ .i = { tanh ? HD_ACT_GELU : HD_ACT_GELU_ERF } });
}

static enum hd_err clip_whole(struct hd_onnx_call *call)
{
	static const enum hd_op op[] = { HD_OP_MAXIMUM, HD_OP_MINIMUM };
	uint32_t y, bound;
	enum hd_err err = hd_onnx_value(call, 0, &y);

	for (uint32_t k = 0; k < 2 && !err; k++) {
		err = hd_onnx_in(call, k + 1) ? hd_onnx_value(call, k + 1, &bound) : HD_OK;
		if (!err && hd_onnx_in(call, k + 1))
			err = hd_onnx_node2(call, op[k], y, bound, (struct hd_attr){ .i = { 0 } }, &y);
	}
	return err ? err : hd_onnx_put(call, 0, y, call->in[0]->rank, call->in[0]->dim);
}

enum hd_err hd_onnx_clip(struct hd_onnx_call *call)
{
	double low = hd_onnx_attr_float(call->node, "min", (double)-FLT_MAX),
		high = hd_onnx_attr_float(call->node, "max", (double)FLT_MAX);

	if ((hd_onnx_in(call, 1) && !hd_onnx_number(call, 1, &low)) ||
		(hd_onnx_in(call, 2) && !hd_onnx_number(call, 2, &high)))
		return hd_onnx_no(call, "its bounds are not known before the graph runs");
	if (hd_onnx_in(call, 0) && !hd_onnx_type_is_float(call->in[0]->type))
		return clip_whole(call);
	low = low < (double)-FLT_MAX ? (double)-FLT_MAX : low;
	high = high > (double)FLT_MAX ? (double)FLT_MAX : high;
	return put_act(call, (struct hd_attr){ .i = { HD_ACT_CLIP }, .f = { (float)low, (float)high } });
}

enum hd_err hd_onnx_pow(struct hd_onnx_call *call)
{
	double by;

	if (!hd_onnx_number(call, 1, &by) || (hd_onnx_in(call, 0) &&
		hd_onnx_in(call, 1)->rank > hd_onnx_in(call, 0)->rank))
		return hd_onnx_binary(call);
	if (by == 2)
		return put_act(call, (struct hd_attr){ .i = { HD_ACT_SQUARE } });
	if (by == 0.5)
		return put_act(call, (struct hd_attr){ .i = { HD_ACT_SQRT } });
	return put_act(call, (struct hd_attr){ .i = { HD_ACT_POW }, .f = { (float)by } });
}

/* ---- two operands, broadcast */

static enum hd_err join(struct hd_onnx_call *call, const struct hd_onnx_val *a, const struct hd_onnx_val *b,
	uint32_t *rank, int64_t *dim)
{
	*rank = a->rank > b->rank ? a->rank : b->rank;
	for (uint32_t d = 0; d < *rank; d++) {
		int64_t da = d < a->rank ? a->dim[a->rank - 1u - d] : 1,
			db = d < b->rank ? b->dim[b->rank - 1u - d] : 1;
		if (da != db && da != 1 && db != 1)
			return hd_onnx_no(call, "extents %lld and %lld cannot be broadcast", (long long)da,
				(long long)db);
		dim[*rank - 1 - d] = da == 1 ? db : da;
	}
	return HD_OK;
}

/* A parameter or constant, seen through a view; else the value itself. */
static uint32_t origin(const struct hd_graph *g, uint32_t value)
{
	const struct hd_value *v = &g->value[value];

	if (v->kind != HD_TEMP || g->node[v->node].op != HD_OP_RESHAPE ||
		g->value[g->node[v->node].in[0]].kind == HD_TEMP)
		return value;
	return g->node[v->node].in[0];
}

static bool is_fixed(const struct hd_graph *g, const struct hd_onnx_val *b)
{
	if (b->kind != HD_VAL_GRAPH)
		return true;
	uint32_t kind = b->value == HD_NONE ? HD_TEMP : g->value[origin(g, b->value)].kind;
	return kind == HD_PARAM || kind == HD_CONST;
}

/* An addend whose only extent beside 1 is the channel's is a bias: one op that fuses with what follows. */
static int32_t bias_axis(const struct hd_graph *g, const struct hd_onnx_val *x, const struct hd_onnx_val *b)
{
	uint32_t other = 0, at = 0;

	for (uint32_t d = 0; d < b->rank; d++)
		if (b->dim[d] != 1) {
			other++;
			at = x->rank - b->rank + d;
		}
	if (!is_fixed(g, b) || x->rank < 2 || b->rank > x->rank || other != 1 ||
		b->dim[at + b->rank - x->rank] != x->dim[at])
		return 0;
	return at == x->rank - 1u ? -1 : at == 1 ? 1 : 0;
}

static enum hd_err add(struct hd_onnx_call *call, struct hd_onnx_val *a, struct hd_onnx_val *b, uint32_t *y)
{
	int32_t axis = bias_axis(call->im->graph, a, b);
	uint32_t x, w;
	enum hd_err err = hd_onnx_value_of(call, a, &x);

	if (!err)
		err = hd_onnx_value_of(call, b, &w);
	if (!err && axis && hd_onnx_shape(call, x)->dtype == HD_F32) {
		err = hd_onnx_reshape(call, origin(call->im->graph, w), 1,
			(int64_t[]){ a->dim[axis < 0 ? a->rank - 1 : 1] }, &w);
		return err ? err : hd_onnx_node2(call, HD_OP_BIAS, x, w, (struct hd_attr){ .i = { axis } },
			y);
	}
	return err ? err : hd_onnx_node2(call, HD_OP_ADD, x, w, (struct hd_attr){ .i = { 0 } }, y);
}

static const struct { const char *name; enum hd_op op; bool swapped; } binaries[] = {
	{ "Add", HD_OP_ADD, false },   { "Sub", HD_OP_SUB, false },             { "Mul", HD_OP_MUL, false },
	{ "Div", HD_OP_DIV, false },   { "Pow", HD_OP_POWER, false },           { "Less", HD_OP_LESS, false },
	{ "LessOrEqual", HD_OP_LESS_EQ, false }, { "Greater", HD_OP_LESS, true }, { "GreaterOrEqual", HD_OP_LESS_EQ, true },
	{ "Equal", HD_OP_EQUAL, false }, { "And", HD_OP_MUL, false },           { "Or", HD_OP_MAXIMUM, false },
	{ "Sum", HD_OP_ADD, false },   { "Max", HD_OP_MAXIMUM, false },         { "Min", HD_OP_MINIMUM, false },
};

static enum hd_err op_of(struct hd_onnx_call *call, enum hd_op *op, bool *swapped)
{
	for (size_t k = 0; k < sizeof binaries / sizeof *binaries; k++)
		if (is(call, binaries[k].name)) {
			*op = binaries[k].op;
			*swapped = binaries[k].swapped;
			return HD_OK;
		}
	return hd_onnx_no(call, "no such op");
}

/* x times a known number, x over one: SCALE. */
static enum hd_err scaled(struct hd_onnx_call *call, uint32_t of, double by)
{
	uint32_t x, y;
	enum hd_err err = hd_onnx_value(call, of, &x);

	if (!err)
		err = hd_onnx_node1(call, HD_OP_SCALE, x, (struct hd_attr){ .f = { (float)by } }, &y);
	return err ? err : hd_onnx_put(call, 0, y, call->in[of]->rank, call->in[of]->dim);
}

static bool scales(struct hd_onnx_call *call, uint32_t x, uint32_t by, double *number)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, x), *k = hd_onnx_in(call, by);

	return v && k && hd_onnx_type_is_float(v->type) && k->rank <= v->rank &&
		hd_onnx_number(call, by, number) && isfinite((float)*number);
}

/* Computed in f32; the result is of the type of the base. */
static enum hd_err power(struct hd_onnx_call *call, uint32_t base, uint32_t by, uint32_t rank,
	const int64_t *dim)
{
	static const struct hd_attr to_float = { .i = { HD_F32 } }, to_int = { .i = { HD_I32 } };
	bool whole = hd_onnx_shape(call, base)->dtype == HD_I32;
	uint32_t y;
	enum hd_err err = whole ? hd_onnx_node1(call, HD_OP_CAST, base, to_float, &base) : HD_OK;

	if (!err && hd_onnx_shape(call, by)->dtype == HD_I32)
		err = hd_onnx_node1(call, HD_OP_CAST, by, to_float, &by);
	if (!err)
		err = hd_onnx_node2(call, HD_OP_POWER, base, by, (struct hd_attr){ .i = { 0 } }, &y);
	if (!err && whole)
		err = hd_onnx_node1(call, HD_OP_CAST, y, to_int, &y);
	return err ? err : hd_onnx_put(call, 0, y, rank, dim);
}

enum hd_err hd_onnx_binary(struct hd_onnx_call *call)
{
	struct hd_onnx_val *a = hd_onnx_in(call, 0), *b = hd_onnx_in(call, 1);
	int64_t dim[HD_ONNX_DIMS];
	uint32_t rank, x, w, y;
	enum hd_op op = HD_OP_ADD;
	bool swapped = false;
	double number;

	if (!a || !b)
		return hd_onnx_no(call, "an input is missing");
	if (is(call, "Mul") && (scales(call, 0, 1, &number) || scales(call, 1, 0, &number)))
		return scaled(call, scales(call, 0, 1, &number) ? 0 : 1, number);
	/* 1/number is exact only of powers of two; the rest divides. */
	if (is(call, "Div") && scales(call, 0, 1, &number) && number != 0 &&
		fabs(frexp(number, &(int){ 0 })) == 0.5)
		return scaled(call, 0, 1 / number);
	enum hd_err err = join(call, a, b, &rank, dim);
	if (!err)
		err = op_of(call, &op, &swapped);
	if (err)
		return err;
	if (op == HD_OP_ADD) {
		err = bias_axis(call->im->graph, b, a) ? add(call, b, a, &y) : add(call, a, b, &y);
		return err ? err : hd_onnx_put(call, 0, y, rank, dim);
	}
	err = hd_onnx_value_of(call, swapped ? b : a, &x);
	if (!err)
		err = hd_onnx_value_of(call, swapped ? a : b, &w);
	if (!err && op == HD_OP_POWER)
		return power(call, x, w, rank, dim);
	if (!err)
		err = hd_onnx_node2(call, op, x, w, (struct hd_attr){ .i = { 0 } }, &y);
	return err ? err : hd_onnx_put(call, 0, y, rank, dim);
}

enum hd_err hd_onnx_variadic(struct hd_onnx_call *call)
{
	struct hd_onnx_val so_far = { 0 };
	uint32_t x, y, rank;
	int64_t dim[HD_ONNX_DIMS];
	enum hd_op op = HD_OP_ADD;
	bool swapped;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (!err)
		err = op_of(call, &op, &swapped);
	if (err)
		return err;
	so_far = *call->in[0];
	for (uint32_t k = 1; k < call->nin && !err; k++) {
		err = hd_onnx_value(call, k, &y);
		if (!err)
			err = join(call, &so_far, call->in[k], &rank, dim);
		if (!err)
			err = hd_onnx_node2(call, op, x, y, (struct hd_attr){ .i = { 0 } }, &x);
		if (err)
			break;
		so_far.rank = (uint8_t)rank;
		memcpy(so_far.dim, dim, rank * sizeof *dim);
	}
	return err ? err : hd_onnx_put(call, 0, x, so_far.rank, so_far.dim);
}

enum hd_err hd_onnx_not(struct hd_onnx_call *call)
{
	uint32_t x, one, y;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (!err)
		err = hd_onnx_float_const(call, 1, &one);
	if (!err)
		err = hd_onnx_node2(call, HD_OP_SUB, one, x, (struct hd_attr){ .i = { 0 } }, &y);
	return err ? err : hd_onnx_put(call, 0, y, call->in[0]->rank, call->in[0]->dim);
}

enum hd_err hd_onnx_where(struct hd_onnx_call *call)
{
	struct hd_onnx_val ab = { 0 };
	int64_t dim[HD_ONNX_DIMS];
	uint32_t in[3], rank, y;
	enum hd_err err = HD_OK;

	for (uint32_t k = 0; k < 3 && !err; k++)
		err = hd_onnx_value(call, k, &in[k]);
	if (!err)
		err = join(call, call->in[1], call->in[2], &rank, ab.dim);
	if (err)
		return err;
	ab.rank = (uint8_t)rank;
	err = join(call, call->in[0], &ab, &rank, dim);
	if (!err)
		err = hd_onnx_node(call, HD_OP_WHERE, 3, in, (struct hd_attr){ .i = { 0 } }, &y);
	return err ? err : hd_onnx_put(call, 0, y, rank, dim);
}

/* ---- what changes nothing, or the type */

static enum hd_err pass(struct hd_onnx_call *call)
{
	uint32_t x;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	return err ? err : hd_onnx_put(call, 0, x, call->in[0]->rank, call->in[0]->dim);
}

enum hd_err hd_onnx_identity(struct hd_onnx_call *call) { return pass(call); }

static enum hd_err not_zero(struct hd_onnx_call *call, uint32_t x, uint32_t *y)
{
	const int32_t nought = 0;             /* the bits of 0 in either type */
	uint32_t zero, one, same;
	enum hd_err err = hd_graph_const(call->im->graph, hd_onnx_shape(call, x)->dtype, 1, (int64_t[]){ 1 },
		&nought, &zero, &call->why);

	if (!err)
		err = hd_onnx_node2(call, HD_OP_EQUAL, x, zero, (struct hd_attr){ .i = { 0 } }, &same);
	if (!err)
		err = hd_onnx_float_const(call, 1, &one);
	return err ? err : hd_onnx_node2(call, HD_OP_SUB, one, same, (struct hd_attr){ .i = { 0 } }, y);
}

enum hd_err hd_onnx_cast(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0), *like = hd_onnx_in(call, 1);
	int64_t to = is(call, "CastLike") && like ? like->type : hd_onnx_attr_int(call->node, "to", 0);
	struct hd_onnx_val *out = hd_onnx_out(call, 0);
	bool to_int = to == T(INT32) || to == T(INT64);
	uint32_t x, y;
	/* what is known stays known: exporters write bounds of the type of what they bound */
	if (v && v->type == to && hd_onnx_known(call, 0) && (v->kind == HD_VAL_HOST ||
		hd_onnx_is_constant(v)))
		return hd_onnx_put_host(call, 0, v->host);
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (err)
		return err;
	if (to != T(FLOAT) && to != T(BOOL) && !to_int)
		return hd_onnx_no(call, "to %s: the graph computes in f32 and i32",
			hd_onnx_type_text((int32_t)to));
	bool is_int = hd_onnx_shape(call, x)->dtype == HD_I32;
	y = x;
	if (to == T(BOOL) && v->type != T(BOOL))
		err = not_zero(call, x, &y);
	else if (is_int != to_int)
		err = hd_onnx_node1(call, HD_OP_CAST, x, (struct hd_attr){ .i = { to_int ? HD_I32 :
			HD_F32 } }, &y);
	if (!err)
		err = hd_onnx_put(call, 0, y, v->rank, v->dim);
	if (!err && out)
		out->type = (int32_t)to;
	return err;
}

/* With a mask that lets everything through. */
static enum hd_err pass_all(struct hd_onnx_call *call)
{
	uint32_t x, y;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (!err)
		err = hd_onnx_node2(call, HD_OP_EQUAL, x, x, (struct hd_attr){ .i = { 0 } }, &y);
	if (!err)
		err = hd_onnx_put(call, 1, y, call->in[0]->rank, call->in[0]->dim);
	return err ? err : pass(call);
}

/* Keyed dropout in training; the mask is not given out. */
enum hd_err hd_onnx_dropout(struct hd_onnx_call *call)
{
	double ratio = hd_onnx_attr_float(call->node, "ratio", 0.5), training = 0;
	uint32_t x, y;

	bool mask = hd_onnx_out(call, 1) && hd_onnx_out(call, 1)->nuses;
	if (hd_onnx_in(call, 1) && !hd_onnx_number(call, 1, &ratio))
		return hd_onnx_no(call, "its ratio is not known before the graph runs");
	if (hd_onnx_in(call, 2) && !hd_onnx_number(call, 2, &training))
		return hd_onnx_no(call, "its mode is not known before the graph runs");
	if (call->im->file.opset < 12 && !call->im->opts->as_is)
		training = 1;
	if ((training == 0 || ratio == 0) && mask)
		return pass_all(call);
	if (mask)
		return hd_onnx_no(call, "its mask is read");
	if (training == 0 || ratio == 0)
		return pass(call);
	if (call->im->opts->as_is)
		return hd_onnx_no(call, "draws by a generator that is not ours");
	enum hd_err err = hd_onnx_value(call, 0, &x);
	if (!err)
		err = hd_onnx_node1(call, HD_OP_DROPOUT, x, (struct hd_attr){ .f = { (float)ratio } }, &y);
	return err ? err : hd_onnx_put(call, 0, y, call->in[0]->rank, call->in[0]->dim);
}
