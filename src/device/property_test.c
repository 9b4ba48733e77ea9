/* Random graphs: their gradients against central differences of the evaluator in f64
 * (eval64.inc.h), on the reference and on the cpu device; and their text, read back, is the
 * same text.
 *
 * A graph grows node by node from a pool of values: a generator of the table below takes
 * operands that fit, makes parameters where it wants some, and gives its result back to the
 * pool, so subexpressions are shared. Values that nothing reads at the end are squared and
 * summed into the loss, so every parameter has a gradient. Everything is drawn from Philox
 * by the number of the graph. Graphs whose values leave the range where f32 can be judged
 * are counted and passed over.
 *
 * HD_PROPERTY_OUT=DIR writes each graph, its inputs, parameters and gradients there, for
 * tests/torch/graph_torch.py. */
#include <math.h>
#include <stdio.h>

#include "base/philox.h"
#include "graph/op.h"
#include "graph/pass.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "device/testing.h"
#include "tests/eval64.inc.h"

enum { GRAPHS = 300, ROWS = 3, POOL = 40, MAX_ELEMS = 300, SAMPLES = 4 };

struct graph_maker {
	struct hd_graph *graph;
	uint64_t seed;
	uint32_t draws, names;
	uint32_t pool[POOL], npool;
	bool read[POOL];
};

static uint32_t draw(struct graph_maker *m, uint32_t below)
{
	const uint32_t counter[4] = { m->draws++, 0, 0, 0 };

	return hd_philox(counter, m->seed).word[0] % below;
}
static bool coin(struct graph_maker *m) { return draw(m, 2); }

static const struct hd_value *shape(const struct graph_maker *m, uint32_t v) { return &m->graph->value[v]; }

static uint32_t node(struct graph_maker *m, uint16_t op, uint8_t nin, const uint32_t *in, struct hd_attr attr)
{
	struct hd_diag diag = { "" };
	uint32_t out;

	CHECK(hd_graph_node(m->graph, op, nin, in, &attr, 0, &out, &diag) == HD_OK, "graph %llu: %s",
		(unsigned long long)m->seed, diag.text);
	return out;
}
static uint32_t node1(struct graph_maker *m, uint16_t op, uint32_t a,
	struct hd_attr attr) { return node(m, op, 1, &a, attr); }
static uint32_t node2(struct graph_maker *m, uint16_t op, uint32_t a, uint32_t b,
	struct hd_attr attr) { return node(m, op, 2, (uint32_t[]){ a, b }, attr); }
static uint32_t act(struct graph_maker *m, uint32_t x, int kind) { return node1(m, HD_OP_ACT, x,
	(struct hd_attr){ .i = { kind } }); }

static uint32_t leaf(struct graph_maker *m, bool param, enum hd_dtype dtype, uint8_t rank, const int64_t *dim)
{
	struct hd_diag diag = { "" };
	char name[16];
	uint32_t out;

	snprintf(name, sizeof name, "%c%u", param ? 'p' : 'x', m->names++);
	enum hd_err err = param ? hd_graph_param(m->graph, name, rank, dim, HD_INIT_UNIFORM, 1, &out, &diag) :
		hd_graph_input(m->graph, name, dtype, rank, dim, &out, &diag);
	CHECK(err == HD_OK, "%s", diag.text);
	return out;
}

/* Between 0.37 and 2.7: for ops that want numbers above 0. */
static uint32_t positive(struct graph_maker *m, uint32_t x) { return act(m, act(m, x, HD_ACT_TANH),
	HD_ACT_EXP); }

/* One of the extents that do not grow with the rows, or -1. */
static int fixed_axis(struct graph_maker *m, uint32_t x)
{
	int fixed[HD_MAX_DIMS];
	uint32_t n = 0;

	for (int d = 0; d < shape(m, x)->rank; d++)
		if (shape(m, x)->dim[d] > 0)
			fixed[n++] = d;
	return n ? fixed[draw(m, n)] : -1;
}

/* A parameter that broadcasts against x: some of its last extents, some of those 1, never the rows. */
static uint32_t companion(struct graph_maker *m, uint32_t x)
{
	struct hd_value v = *shape(m, x);
	uint8_t rank = (uint8_t)(1 + draw(m, v.rank));
	int64_t dim[HD_MAX_DIMS];

	for (int d = 0; d < rank; d++) {
		int64_t mine = v.dim[v.rank - rank + d];
		dim[d] = mine < 0 || draw(m, 3) == 0 ? 1 : mine;
	}
	return leaf(m, true, HD_F32, rank, dim);
}

/* Generators: HD_NONE where the operand does not fit. */

enum { ANY, POSITIVE };
#define ACT_UNPACK(...) __VA_ARGS__
#define ACT_CALL(macro, ...) macro(__VA_ARGS__)
#define ACT_DRAWN(id, alpha, beta, domain, ...) { HD_ACT_##id, domain, { alpha, beta } },
static const struct { uint8_t act, domain; float f[2]; } acts[] = {
#define ACT(id, text, nf, use, folds, about, value, slope, lanes, lanes_slope, oracle, onnx, tests) \
	ACT_CALL(ACT_DRAWN, id, ACT_UNPACK tests)
#include "graph/acts.def"
	{ HD_ACT_POW, ANY, { 2 } }, { HD_ACT_POW, POSITIVE, { -1.3f } },
};

static uint32_t gen_act_of(struct graph_maker *m, uint32_t x, uint8_t domain)
{
	uint32_t k;

	do
		k = draw(m, sizeof acts / sizeof acts[0]);
	while (acts[k].domain != domain);
	return node1(m, HD_OP_ACT, x, (struct hd_attr){ .i = { acts[k].act },
		.f = { acts[k].f[0], acts[k].f[1] } });
}

static uint32_t gen_act(struct graph_maker *m, uint32_t x) { return gen_act_of(m, x, ANY); }
static uint32_t gen_act_positive(struct graph_maker *m, uint32_t x) { return gen_act_of(m, positive(m, x),
	POSITIVE); }

static uint32_t gen_scale(struct graph_maker *m, uint32_t x) { return node1(m, HD_OP_SCALE, x,
	(struct hd_attr){ .f = { coin(m) ? -0.7f : 1.5f } }); }

/* The other operand: a parameter that broadcasts, the same once more, or a value of the same shape. */
static uint32_t gen_pair(struct graph_maker *m, uint32_t x)
{
	static const uint16_t ops[] = { HD_OP_ADD, HD_OP_SUB, HD_OP_MUL, HD_OP_MAXIMUM, HD_OP_MINIMUM };
	uint32_t other = HD_NONE;

	for (uint32_t i = 0; i < m->npool && other == HD_NONE && coin(m); i++)
		if (m->pool[i] != x && hd_dims_same(shape(m, m->pool[i]), shape(m, x))) {
			other = m->pool[i];
			m->read[i] = true;
		}
	if (other == HD_NONE)
		other = draw(m, 8) == 0 ? x : companion(m, x);
	return coin(m) ? node2(m, ops[draw(m, 5)], x, other, (struct hd_attr){ .i = { 0 } }) :
		node2(m, ops[draw(m, 5)], other, x, (struct hd_attr){ .i = { 0 } });
}

static uint32_t gen_div(struct graph_maker *m, uint32_t x) { return node2(m, HD_OP_DIV, x,
	positive(m, companion(m, x)), (struct hd_attr){ .i = { 0 } }); }
static uint32_t gen_where(struct graph_maker *m, uint32_t x)
{
	struct hd_value v = *shape(m, x);
	uint32_t mask = leaf(m, false, HD_I32, v.rank, v.dim), other = companion(m, x);

	return node(m, HD_OP_WHERE, 3, coin(m) ? (uint32_t[]){ mask, x, other } : (uint32_t[]){ mask, other,
		x }, (struct hd_attr){ .i = { 0 } });
}

static uint32_t gen_reduce(struct graph_maker *m, uint32_t x)
{
	static const uint16_t ops[] = { HD_OP_REDUCE_SUM, HD_OP_REDUCE_MEAN, HD_OP_REDUCE_MAX,
		HD_OP_REDUCE_MIN, HD_OP_REDUCE_PROD };
	int32_t axes = 0, keep = 0;

	for (int d = 0; d < shape(m, x)->rank; d++)
		if (shape(m, x)->dim[d] > 0 && coin(m)) {
			axes |= 1 << d;
			keep |= coin(m) << d;
		}
	return axes ? node1(m, ops[draw(m, 5)], x, (struct hd_attr){ .i = { axes, keep } }) : HD_NONE;
}

static uint32_t gen_softmax(struct graph_maker *m, uint32_t x)
{
	if (shape(m, x)->dim[shape(m, x)->rank - 1] < 2)
		return HD_NONE;
	return node1(m, coin(m) ? HD_OP_SOFTMAX : HD_OP_LOG_SOFTMAX, x, (struct hd_attr){ .i = { 0 } });
}

static uint32_t gen_permute(struct graph_maker *m, uint32_t x)
{
	struct hd_attr attr = { .i = { 0, 1, 2, 3, 4, 5 } };
	int rank = shape(m, x)->rank;

	for (int d = rank - 1; d > 0; d--) {
		uint32_t k = draw(m, (uint32_t)d + 1);
		int32_t t = attr.i[d];
		attr.i[d] = attr.i[k];
		attr.i[k] = t;
	}
	for (int d = rank; d < HD_MAX_DIMS; d++)
		attr.i[d] = 0;
	return node1(m, HD_OP_PERMUTE, x, attr);
}

static uint32_t gen_slice(struct graph_maker *m, uint32_t x)
{
	int axis = fixed_axis(m, x);
	if (axis < 0 || shape(m, x)->dim[axis] < 2)
		return HD_NONE;
	int32_t n = (int32_t)shape(m, x)->dim[axis], step = (int32_t)(1 + draw(m, 2)),
		count = 1 + (int32_t)draw(m, (uint32_t)((n - 1) / step + 1));
	int32_t from = (int32_t)draw(m, (uint32_t)(n - (count - 1) * step));
	bool back = coin(m);

	return node1(m, HD_OP_SLICE, x, (struct hd_attr){ .i = { axis,
		back ? from + (count - 1) * step : from, back ? -step : step, count } });
}

static uint32_t gen_concat(struct graph_maker *m, uint32_t x)
{
	int axis = fixed_axis(m, x);

	return axis < 0 ? HD_NONE : node2(m, HD_OP_CONCAT, x, coin(m) ? x : act(m, x, HD_ACT_SIGMOID),
		(struct hd_attr){ .i = { axis } });
}

static uint32_t gen_pad(struct graph_maker *m, uint32_t x)
{
	int axis = fixed_axis(m, x);

	return axis < 0 ? HD_NONE :
		node1(m, HD_OP_PAD, x, (struct hd_attr){ .i = { axis, (int32_t)draw(m, 3),
		(int32_t)draw(m, 2) }, .f = { 0.25f } });
}

static uint32_t gen_gather(struct graph_maker *m, uint32_t x)
{
	int axis = fixed_axis(m, x);

	if (axis < 0 || shape(m, x)->rank >= 5)
		return HD_NONE;
	int64_t dim[2] = { (int64_t)(1 + draw(m, 4)), 2 };
	return node2(m, HD_OP_GATHER, x, leaf(m, false, HD_I32, (uint8_t)(1 + draw(m, 2)), dim),
		(struct hd_attr){ .i = { axis } });
}

static uint32_t gen_expand(struct graph_maker *m, uint32_t x)
{
	struct hd_value v = *shape(m, x);
	struct hd_attr attr = { .i = { 2 } };

	if (v.rank >= 4)
		return HD_NONE;
	for (int d = 0; d < v.rank; d++)
		attr.i[d + 1] = v.dim[d] == 1 ? 3 : (int32_t)v.dim[d];
	return node1(m, HD_OP_EXPAND, x, attr);
}

/* Two neighbours become one. */
static uint32_t gen_reshape(struct graph_maker *m, uint32_t x)
{
	struct hd_attr attr = { .i = { 0 } };
	int rank = shape(m, x)->rank, at = rank > 1 ? (int)draw(m, (uint32_t)rank - 1) : -1;

	for (int d = 0; d < rank; d++)
		attr.i[d > at && at >= 0 ? d - 1 : d] = (int32_t)(shape(m, x)->dim[d] * (d == at + 1 &&
			at >= 0 ? attr.i[at] : 1));
	attr.i[rank - 1] = 0;
	return at < 0 ? HD_NONE : node1(m, HD_OP_RESHAPE, x, attr);
}

static uint32_t gen_contract(struct graph_maker *m, uint32_t x)
{
	struct hd_value v = *shape(m, x);
	bool ta = coin(m), tb = coin(m);

	if (v.rank < 2 || v.dim[v.rank - (ta ? 2 : 1)] < 0)
		return HD_NONE;
	int64_t k = v.dim[v.rank - (ta ? 2 : 1)], n = 1 + draw(m, 4), batch = coin(m) && v.rank > 2 &&
		v.dim[v.rank - 3] > 0 ? v.dim[v.rank - 3] : 1;
	uint32_t w = leaf(m, true, HD_F32, 3, (int64_t[]){ batch, tb ? n : k, tb ? k : n });
	return node2(m, HD_OP_CONTRACT, x, w, (struct hd_attr){ .i = { ta, tb } });
}

static uint32_t gen_matmul(struct graph_maker *m, uint32_t x)
{
	struct hd_value v = *shape(m, x);
	bool tb = coin(m);
	int64_t k = v.dim[v.rank - 1], n = 1 + draw(m, 5);

	if (v.rank < 2 || k < 0)
		return HD_NONE;
	return node2(m, HD_OP_MATMUL, x, leaf(m, true, HD_F32, 2,
		tb ? (int64_t[]){ n, k } : (int64_t[]){ k, n }), (struct hd_attr){ .i = { 0, tb } });
}

static uint32_t gen_bias(struct graph_maker *m, uint32_t x)
{
	struct hd_value v = *shape(m, x);

	if (v.rank < 2 || v.dim[v.rank - 1] < 0)
		return HD_NONE;
	uint32_t y = node2(m, HD_OP_BIAS, x, leaf(m, true, HD_F32, 1, &v.dim[v.rank - 1]),
		(struct hd_attr){ .i = { -1 } });
	return coin(m) ? y : act(m, y, HD_ACT_SILU);
}

static uint32_t gen_layernorm(struct graph_maker *m, uint32_t x)
{
	struct hd_value v = *shape(m, x);

	if (v.rank < 2 || v.dim[v.rank - 1] < 2)
		return HD_NONE;
	uint32_t gamma = leaf(m, true, HD_F32, 1, &v.dim[v.rank - 1]),
		beta = leaf(m, true, HD_F32, 1, &v.dim[v.rank - 1]);
	return node(m, HD_OP_LAYERNORM, 3, (uint32_t[]){ x, gamma, beta }, (struct hd_attr){ .f = { 0.1f } });
}

static uint32_t gen_rmsnorm(struct graph_maker *m, uint32_t x)
{
	struct hd_value v = *shape(m, x);

	if (v.rank < 2 || v.dim[v.rank - 1] < 2)
		return HD_NONE;
	return node2(m, HD_OP_RMSNORM, x, leaf(m, true, HD_F32, 1, &v.dim[v.rank - 1]),
		(struct hd_attr){ .f = { 0.1f } });
}

static uint32_t gen_swiglu(struct graph_maker *m, uint32_t x) { return node2(m, HD_OP_SWIGLU, x,
	act(m, x, HD_ACT_TANH), (struct hd_attr){ .i = { 0 } }); }

/* Rows first and two fixed extents: an image with a channel, or that convolved to two. */
static uint32_t gen_image(struct graph_maker *m, uint32_t x)
{
	struct hd_value v = *shape(m, x);
	int32_t pad = (int32_t)draw(m, 2);

	if (v.rank != 3 || v.dim[0] >= 0)
		return HD_NONE;
	uint32_t image = node1(m, HD_OP_RESHAPE, x, (struct hd_attr){ .i = { (int32_t)v.dim[0], 1,
		(int32_t)v.dim[1], (int32_t)v.dim[2] } });
	int32_t kh = v.dim[1] > 1 ? 2 : 1, kw = v.dim[2] > 1 ? 2 : 1;
	switch (draw(m, 4)) {
	case 0:  return node1(m, HD_OP_AVGPOOL2D, image, (struct hd_attr){ .i = { kh, kw, 1, 1, 0, 0,
		coin(m) } });
	case 1:  return node1(m, HD_OP_MAXPOOL2D, image, (struct hd_attr){ .i = { kh, kw, 1, 1 } });
	default: image = node2(m, HD_OP_CONV2D, image, leaf(m, true, HD_F32, 4, (int64_t[]){ 2, 1, kh, kw }),
		(struct hd_attr){ .i = { 1, 1, kh > 1 ? pad : 0, kw > 1 ? 1 - pad : 0 } });
	}
	if (coin(m))
		return image;
	uint32_t gamma = leaf(m, true, HD_F32, 1, (int64_t[]){ 2 }),
		beta = leaf(m, true, HD_F32, 1, (int64_t[]){ 2 });
	return node(m, HD_OP_GROUPNORM, 3, (uint32_t[]){ image, gamma, beta },
		(struct hd_attr){ .i = { 1 }, .f = { 0.1f } });
}

/* [N,T,C] projected to n channels. */
static uint32_t projected(struct graph_maker *m, uint32_t x, int64_t n)
{
	return node2(m, HD_OP_MATMUL, x, leaf(m, true, HD_F32, 2, (int64_t[]){ shape(m, x)->dim[2], n }),
		(struct hd_attr){ .i = { 0 } });
}

static bool is_sequence(const struct graph_maker *m, uint32_t x)
{
	const struct hd_value *v = shape(m, x);

	return v->rank == 3 && v->dim[0] < 0 && v->dim[1] > 0 && v->dim[2] > 0;
}

/* Heads of queries, some of which share keys; with rotary positions or without; from parts, or packed. */
static uint32_t gen_attend(struct graph_maker *m, uint32_t x)
{
	int32_t kv = (int32_t)(1 + draw(m, 2)), heads = kv * (int32_t)(1 + draw(m, 2)), causal = coin(m);
	int64_t each = 2;

	if (!is_sequence(m, x))
		return HD_NONE;
	if (draw(m, 3) == 0)
		return node1(m, HD_OP_ATTENTION, projected(m, x, 3 * each * heads),
			(struct hd_attr){ .i = { heads, causal } });
	uint32_t in[3] = { projected(m, x, each * heads), projected(m, x, each * kv),
		projected(m, x, each * kv) };
	bool turned = coin(m);
	for (int k = 0; k < 2 && turned; k++)
		in[k] = node1(m, HD_OP_ROTARY, in[k], (struct hd_attr){ .i = { k ? kv : heads, 0 },
			.f = { 7 } });
	return node(m, HD_OP_ATTEND, 3, in, (struct hd_attr){ .i = { heads, kv, causal,
		causal ? coin(m) : 0 },
		.f = { 0, coin(m) ? 1.5f : 0 } });
}

static uint32_t gen_rotary(struct graph_maker *m, uint32_t x)
{
	if (!is_sequence(m, x) || shape(m, x)->dim[2] % 2)
		return HD_NONE;
	return node1(m, HD_OP_ROTARY, x, (struct hd_attr){ .i = { 1, coin(m) }, .f = { 100 } });
}

static uint32_t gen_cell(struct graph_maker *m, uint32_t x)
{
	bool lstm = coin(m);
	int64_t hidden = 1 + draw(m, 3), all = (lstm ? 4 : 3) * hidden;

	if (!is_sequence(m, x))
		return HD_NONE;
	uint32_t w = leaf(m, true, HD_F32, 2, (int64_t[]){ all, hidden }), b = leaf(m, true, HD_F32, 1, &all);
	return node(m, lstm ? HD_OP_LSTM : HD_OP_GRU, 3, (uint32_t[]){ projected(m, x, all), w, b },
		(struct hd_attr){ .i = { 0 } });
}

static uint32_t gen_batchnorm(struct graph_maker *m, uint32_t x)
{
	static const float numbers[16] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
	struct hd_value v = *shape(m, x);
	int32_t axis = v.rank > 2 && coin(m) ? 1 : -1;
	int64_t c = v.rank < 2 ? 0 : v.dim[axis == 1 ? 1 : v.rank - 1];
	uint32_t in[5] = { x };
	struct hd_diag diag = { "" };

	if (v.rank < 2 || v.dim[0] >= 0 || c < 1 || c > 16)
		return HD_NONE;
	in[1] = leaf(m, true, HD_F32, 1, &c);
	in[2] = leaf(m, true, HD_F32, 1, &c);
	CHECK(hd_graph_const(m->graph, HD_F32, 1, &c, numbers, &in[3], &diag) == HD_OK, "%s", diag.text);
	in[4] = in[3];
	return node(m, HD_OP_BATCHNORM, 5, in, (struct hd_attr){ .i = { axis, draw(m, 4) == 0 },
		.f = { 0.1f } });
}

/* A table read by ids of their own: x gives the extents. */
static uint32_t gen_embed(struct graph_maker *m, uint32_t x)
{
	struct hd_value v = *shape(m, x);

	if (v.rank != 3 || v.dim[0] >= 0)
		return HD_NONE;
	uint32_t ids = leaf(m, false, HD_I32, 2, v.dim), table = leaf(m, true, HD_F32, 2,
		(int64_t[]){ 5, v.dim[2] });
	return node2(m, HD_OP_ADD, x, node2(m, HD_OP_EMBED, ids, table, (struct hd_attr){ .i = { 0 } }),
		(struct hd_attr){ .i = { 0 } });
}

static uint32_t gen_dropout(struct graph_maker *m, uint32_t x)
{
	if (shape(m, x)->dim[0] >= 0)
		return HD_NONE;
	return node1(m, HD_OP_DROPOUT, x, (struct hd_attr){ .f = { 0.3f } });
}

#define OP_GROWS
#include "graph/ops.def"

/* One kind of op, or several that want the same; a member of another family touches its row here. */
static const struct generator { const char *name; uint32_t (*run)(struct graph_maker *m, uint32_t x);
	} generators[] = {
	{ "activation", gen_act }, { "activation of positive", gen_act_positive }, { "scale", gen_scale }, { "pair", gen_pair }, { "pair", gen_pair },
	{ "div", gen_div }, { "where", gen_where }, { "reduce", gen_reduce }, { "softmax", gen_softmax },
	{ "permute", gen_permute }, { "slice", gen_slice }, { "concat", gen_concat }, { "pad", gen_pad }, { "gather", gen_gather },
	{ "expand", gen_expand }, { "reshape", gen_reshape }, { "contract", gen_contract }, { "matmul", gen_matmul }, { "bias", gen_bias },
	{ "layernorm", gen_layernorm }, { "rmsnorm", gen_rmsnorm }, { "swiglu", gen_swiglu }, { "image", gen_image }, { "image", gen_image },
	{ "attend", gen_attend }, { "attend", gen_attend }, { "rotary", gen_rotary }, { "cell", gen_cell }, { "cell", gen_cell },
	{ "batchnorm", gen_batchnorm }, { "embed", gen_embed }, { "dropout", gen_dropout },
#define OP_GENERATES(name, run) { name, run },
#include "graph/ops.def"
};
enum { NGENERATORS = sizeof generators / sizeof generators[0] };

/* Squares of what nothing reads, summed over all extents but that of the rows. */
static void finish_loss(struct graph_maker *m)
{
	struct hd_diag diag = { "" };
	uint32_t loss = HD_NONE;

	for (uint32_t i = 0; i < m->npool; i++) {
		if (m->read[i])
			continue;
		uint32_t t = act(m, m->pool[i], HD_ACT_SQUARE);
		int32_t axes = 0;
		for (int d = 0; d < shape(m, t)->rank; d++)
			axes |= (shape(m, t)->dim[d] > 0) << d;
		if (axes)
			t = node1(m, HD_OP_REDUCE_MEAN, t, (struct hd_attr){ .i = { axes } });
		if (shape(m, t)->dim[0] < -1)
			t = node1(m, HD_OP_REDUCE_SUM, node1(m, HD_OP_RESHAPE, t,
				(struct hd_attr){ .i = { -1, (int32_t)-shape(m, t)->dim[0] } }),
				(struct hd_attr){ .i = { 2 } });
		loss = loss == HD_NONE ? t : node2(m, HD_OP_ADD, loss, t, (struct hd_attr){ .i = { 0 } });
	}
	CHECK(hd_graph_output(m->graph, "loss", node1(m, HD_OP_SUM64, loss, (struct hd_attr){ .i = { 0 } }),
		&diag) == HD_OK, "%s", diag.text);
}

static void grow(struct graph_maker *m)
{
	static const int64_t starts[][3] = { { -1, 4 }, { -1, 2, 3 }, { -2, 5 }, { -1, 1, 4 } };
	const int64_t *dim = starts[draw(m, 4)];
	uint32_t x = leaf(m, false, HD_F32, dim[2] ? 3 : 2, dim), depth = 3 + draw(m, 10);

	m->pool[m->npool++] = node2(m, HD_OP_MUL, x, companion(m, x), (struct hd_attr){ .i = { 0 } });
	m->pool[m->npool++] = leaf(m, true, HD_F32, 2, (int64_t[]){ 3, 4 });
	for (uint32_t made = 0; made < depth && m->npool < POOL;) {
		uint32_t y = generators[draw(m, NGENERATORS)].run(m,
			coin(m) ? m->pool[m->npool - 1] : m->pool[draw(m, m->npool)]);
		if (y == HD_NONE || hd_value_elems(shape(m, y), ROWS) > MAX_ELEMS)
			continue;
		m->pool[m->npool++] = y;
		made++;
	}
	/* what is an operand of some node is read */
	for (uint32_t i = 0; i < m->graph->nnodes; i++)
		for (int k = 0; k < m->graph->node[i].nin; k++)
			for (uint32_t p = 0; p < m->npool; p++)
				m->read[p] |= m->pool[p] == m->graph->node[i].in[k];
	finish_loss(m);
}

static double input_number(const struct hd_stage *stage, uint32_t i, uint64_t e)
{
	return stage->graph.value[stage->graph.input[i]].dtype == HD_I32 ?
		(double)((int32_t *)stage->input[i])[e] : (double)((float *)stage->input[i])[e];
}

static void load(struct eval64 *ev, const struct hd_stage *stage)
{
	const struct hd_graph *graph = &stage->graph;

	eval64_make(ev, graph, stage->rows);
	ev->draw = stage->bind.draw;
	for (uint32_t p = 0; p < graph->nparams; p++)
		for (uint64_t e = 0; e < stage->layout.len[p]; e++)
			ev->at[graph->param[p].value][e] = (double)stage->params[stage->layout.at[p] + e];
	for (uint32_t i = 0; i < graph->ninputs; i++)
		for (uint64_t e = 0; e < hd_value_elems(&graph->value[graph->input[i]], stage->rows); e++)
			ev->at[graph->input[i]][e] = input_number(stage, i, e);
	for (uint32_t v = 0; v < graph->nvalues; v++)
		for (uint64_t e = 0; graph->value[v].kind == HD_CONST &&
			e < hd_value_elems(&graph->value[v], 1); e++)
			ev->at[v][e] = (double)((const float *)(const void *)(graph->consts +
				graph->value[v].data))[e];
}

static double loss_at(const struct eval64 *ev)
{
	eval64_run(ev);
	return ev->at[hd_graph_find_output(ev->graph, "loss")][0];
}

/* Everything between the inputs and the loss is a number that f32 holds well. */
static bool tame(const struct eval64 *ev)
{
	const struct hd_graph *graph = ev->graph;

	for (uint32_t i = 0; i < graph->nforward; i++)
		for (uint64_t e = 0; e < hd_value_elems(&graph->value[graph->node[i].out], ROWS); e++)
			if (!(fabs(ev->at[graph->node[i].out][e]) < 1e3))
				return false;
	return true;
}

static uint32_t differentiate(const struct hd_stage *stage, struct eval64 *ev, const char *device,
	uint64_t seed)
{
	const struct hd_graph *graph = &stage->graph;
	const double step = 1e-6;
	double peak = 1e-2;
	uint32_t checked = 0;

	for (uint64_t e = 0; e < stage->layout.elems; e++)
		peak = fmax(peak, fabs((double)stage->grad[e]));
	for (uint32_t p = 0; p < graph->nparams; p++) {
		const uint64_t len = stage->layout.len[p], stride = len / SAMPLES + 1;
		double *at = ev->at[graph->param[p].value];
		for (uint64_t e = (seed + p) % (stride < len ? stride : len); e < len; e += stride,
			checked++) {
			double middle = at[e], got = (double)stage->grad[stage->layout.at[p] + e],
				tolerance = 0x1p-24 * 16 * graph->nnodes * peak + 1e-7;
			at[e] = middle + step;
			double above = loss_at(ev);
			at[e] = middle - step;
			double below = loss_at(ev);
			at[e] = middle;
			double want = (above - below) / (2 * step);
			CHECK(fabs(want - got) <= tolerance,
				"graph %llu on %s, parameter %s, element %llu: %.9g, differences say %.9g "
				"(tolerance %.3g)",
				(unsigned long long)seed, device,
				hd_graph_text_of(graph, graph->value[graph->param[p].value].name),
				(unsigned long long)e,
				got, want, tolerance);
		}
	}
	return checked;
}

static void text_survives(const struct hd_graph *graph, struct hd_arena *arena, uint64_t seed)
{
	struct hd_text text, again;
	struct hd_diag diag = { "" };
	struct hd_graph read;

	hd_text_init(&text, arena);
	hd_text_init(&again, arena);
	hd_graph_init(&read, arena);
	CHECK(hd_graph_print(graph, &text, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_graph_parse(&read, "random.graph", text.at, strlen(text.at), &diag) == HD_OK,
		"graph %llu: %s", (unsigned long long)seed, diag.text);
	CHECK(hd_graph_print(&read, &again, &diag) == HD_OK, "%s", diag.text);
	assert_string_equal(text.at, again.at);
}

static void show(const struct hd_graph *graph, struct hd_arena *arena)
{
	struct hd_text text;

	hd_text_init(&text, arena);
	CHECK(hd_graph_print(graph, &text, NULL) == HD_OK, "no memory");
	puts(text.at);
}

/* N.graph, and N.numbers: a line per input, parameter and gradient, "name values..". */
static void write_out(const struct hd_stage *stage, struct hd_arena *arena, uint64_t seed, const char *folder)
{
	const struct hd_graph *graph = &stage->graph;
	char path[512];
	struct hd_text text;

	hd_text_init(&text, arena);
	CHECK(hd_graph_print(graph, &text, NULL) == HD_OK, "graph %llu", (unsigned long long)seed);
	snprintf(path, sizeof path, "%s/%llu.graph", folder, (unsigned long long)seed);
	FILE *file = fopen(path, "w");
	CHECK(file, "cannot write %s", path);
	fputs(text.at, file);
	fclose(file);
	snprintf(path, sizeof path, "%s/%llu.numbers", folder, (unsigned long long)seed);
	file = fopen(path, "w");
	CHECK(file, "cannot write %s", path);
	for (uint32_t i = 0; i < graph->ninputs; i++) {
		fprintf(file, "input %s", hd_graph_text_of(graph, graph->value[graph->input[i]].name));
		for (uint64_t e = 0; e < hd_value_elems(&graph->value[graph->input[i]], stage->rows); e++)
			fprintf(file, " %.9g", input_number(stage, i, e));
		fputc('\n', file);
	}
	for (uint32_t p = 0; p < graph->nparams; p++)
		for (int k = 0; k < 2; k++) {
			fprintf(file, "%s %s", k ? "grad" : "param",
				hd_graph_text_of(graph, graph->value[graph->param[p].value].name));
			for (uint64_t e = 0; e < stage->layout.len[p]; e++)
				fprintf(file, " %.9g", (double)(k ? stage->grad :
					stage->params)[stage->layout.at[p] + e]);
			fputc('\n', file);
		}
	fclose(file);
}

struct tally { uint32_t graphs, wild, nodes, checked, of[HD_NOPS]; };

static void try_graph(uint64_t seed, struct tally *tally)
{
	static const char *const devices[] = { "reference", "cpu" };
	struct hd_stage stage;
	struct hd_diag diag = { "" };
	struct eval64 ev;

	memset(&stage, 0, sizeof stage);
	hd_arena_init(&stage.arena, 0);
	hd_graph_init(&stage.graph, &stage.arena);
	struct graph_maker m = { .graph = &stage.graph, .seed = seed };
	grow(&m);
	if (seed % 3 == 0)
		CHECK(hd_graph_optimize(&stage.graph, ROWS, &diag) == HD_OK, "graph %llu: %s",
			(unsigned long long)seed, diag.text);
	CHECK(hd_graph_autodiff(&stage.graph, &diag) == HD_OK, "graph %llu: %s", (unsigned long long)seed,
		diag.text);
	CHECK(hd_graph_verify(&stage.graph, ROWS, &diag) == HD_OK, "graph %llu: %s", (unsigned long long)seed,
		diag.text);
	text_survives(&stage.graph, &stage.arena, seed);
	if (getenv("HD_PROPERTY_SEED"))
		show(&stage.graph, &stage.arena);
	hd_stage_set(&stage, &(uint64_t){ ROWS }, 1, seed);
	load(&ev, &stage);
	loss_at(&ev);
	bool good = tame(&ev);
	for (int d = 0; d < 2 && good; d++) {
		struct hd_device *device = hd_stage_device(devices[d], 1);
		hd_stage_load(&stage, device);
		hd_stage_run(&stage, device, HD_RUN_F);
		hd_stage_run(&stage, device, HD_RUN_B);
		hd_stage_join(&stage);
		tally->checked += differentiate(&stage, &ev, devices[d], seed);
		hd_device_destroy(device);
	}
	if (good && getenv("HD_PROPERTY_OUT"))
		write_out(&stage, &stage.arena, seed, getenv("HD_PROPERTY_OUT"));
	tally->graphs += good;
	tally->wild += !good;
	for (uint32_t i = 0; i < stage.graph.nnodes && good; i++, tally->nodes++)
		tally->of[stage.graph.node[i].op]++;
	eval64_finish(&ev);
	hd_stage_finish(&stage);
}

static void random_graphs_have_the_gradients_that_differences_have(void **state)
{
	const char *only = getenv("HD_PROPERTY_SEED");
	struct tally tally = { 0 };
	uint32_t ops = 0;

	(void)state;
	if (only) {                               /* one graph, to look at */
		try_graph(strtoull(only, NULL, 10), &tally);
		return;
	}
	for (uint64_t seed = 1; tally.graphs < GRAPHS; seed++)
		try_graph(seed, &tally);
	for (int op = 0; op < HD_NOPS; op++)
		ops += tally.of[op] > 0;
	print_message("             %u graphs (%u too wild), %u nodes of %u ops, %u gradients compared\n",
		tally.graphs, tally.wild, tally.nodes,
		ops, tally.checked);
	assert_true(tally.graphs >= 200 && ops >= 60 && tally.wild < GRAPHS);
}

int main(void)
{
	static const struct CMUnitTest tests[] =
		{ cmocka_unit_test(random_graphs_have_the_gradients_that_differences_have) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
