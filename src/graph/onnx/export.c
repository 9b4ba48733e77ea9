/* A graph of ours as an ONNX model of opset 17: one row per op, weights inside.
 *
 * Only what the logits need is written; losses and labels go, dropout becomes nothing. Names:
 * inputs and parameters keep theirs, `logits` is the output, other values are v<number>. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "onnx.pb-c.h"

#include "graph/onnx.h"
#include "graph/op.h"

enum { IR_VERSION = 8, OPSET = 17, MAX_PARTS = 8 };
#define T(name) ONNX__TENSOR_PROTO__DATA_TYPE__##name

struct writer {
	const struct hd_graph *graph;
	const struct hd_onnx_values *values;
	struct hd_arena *arena;
	Onnx__NodeProto **node; uint32_t nnodes, node_cap;
	Onnx__TensorProto **init; uint32_t ninits, init_cap;
	const char **name;                /* by value; NULL: not yet written */
	const struct hd_node *at;         /* the node being written */
	uint32_t fresh;
	bool full;                        /* no memory */
	struct hd_text bad; uint32_t nbad;
	_Alignas(64) uint8_t nothing[512];        /* what take() gives when there is none: written, never read */
};

static void *take(struct writer *w, size_t n, size_t size)
{
	void *at = hd_arena_take(w->arena, n ? n : 1, size);

	w->full = w->full || !at;
	return at ? at : w->nothing;
}

static const char *text(struct writer *w, const char *fmt, ...)
{
	char at[2 * HD_MAX_NAME];
	va_list args;

	va_start(args, fmt);
	vsnprintf(at, sizeof at, fmt, args);
	va_end(args);
	const char *copy = hd_arena_text(w->arena, at, strlen(at));
	w->full = w->full || !copy;
	return copy ? copy : "";
}

static const char *fresh(struct writer *w) { return text(w, "t%u", w->fresh++); }

/* ---- parts of a model */

static void *push(struct writer *w, void *list, uint32_t *n, uint32_t *cap)
{
	void **at = list;

	if (*n == *cap) {
		uint32_t more = *cap ? 2 * *cap : 64;
		void **grown = hd_arena_take(w->arena, more, sizeof *grown);
		if (!grown) {
			w->full = true;
			return NULL;
		}
		if (*n)
			memcpy(grown, at, *n * sizeof *grown);
		*cap = more;
		return grown;
	}
	return at;
}

static void add_init(struct writer *w, Onnx__TensorProto *t)
{
	Onnx__TensorProto **list = push(w, w->init, &w->ninits, &w->init_cap);

	if (!list)
		return;
	w->init = list;
	w->init[w->ninits++] = t;
}

static void tensor(struct writer *w, const char *name, int32_t type, uint32_t rank, const int64_t *dim, const void *at, size_t bytes)
{
	Onnx__TensorProto *t = take(w, 1, sizeof *t);

	if (w->full)
		return;
	onnx__tensor_proto__init(t);
	t->name = (char *)(uintptr_t)name;
	t->has_data_type = true;
	t->data_type = type;
	t->n_dims = rank;
	t->dims = take(w, rank, sizeof *t->dims);
	if (rank && !w->full)
		memcpy(t->dims, dim, rank * sizeof *dim);
	t->has_raw_data = true;
	t->raw_data = (ProtobufCBinaryData){ bytes, (uint8_t *)(uintptr_t)at };
	add_init(w, t);
}

static const char *ints(struct writer *w, uint32_t n, const int64_t *values)
{
	const char *name = fresh(w);
	int64_t *copy = take(w, n, sizeof *copy);

	if (!w->full)
		memcpy(copy, values, n * sizeof *copy);
	tensor(w, name, T(INT64), 1, (int64_t[]){ n }, copy, n * sizeof *copy);
	return name;
}

static const char *number(struct writer *w, double value)
{
	const char *name = fresh(w);
	float *copy = take(w, 1, sizeof *copy);

	*copy = (float)value;
	tensor(w, name, T(FLOAT), 0, NULL, copy, sizeof *copy);
	return name;
}

static Onnx__NodeProto *emit_to(struct writer *w, const char *out, const char *op, const char *a, const char *b, const char *c)
{
	Onnx__NodeProto *n = take(w, 1, sizeof *n);
	Onnx__NodeProto **list = push(w, w->node, &w->nnodes, &w->node_cap);
	char **names = take(w, 8, sizeof *names);

	if (w->full || !list)
		return n;
	onnx__node_proto__init(n);
	n->op_type = (char *)(uintptr_t)op;
	n->name = (char *)(uintptr_t)text(w, "%s_%u", op, w->nnodes);
	names[0] = (char *)(uintptr_t)a;
	names[1] = (char *)(uintptr_t)b;
	names[2] = (char *)(uintptr_t)c;
	n->n_input = (size_t)(c ? 3 : b ? 2 : 1);
	n->input = names;
	n->n_output = 1;
	n->output = names + 7;
	names[7] = (char *)(uintptr_t)out;
	w->node = list;
	w->node[w->nnodes++] = n;
	return n;
}

static const char *emit(struct writer *w, const char *op, const char *a, const char *b, const char *c)
{
	const char *out = fresh(w);

	emit_to(w, out, op, a, b, c);
	return out;
}

static Onnx__AttributeProto *attribute(struct writer *w, Onnx__NodeProto *n, const char *name, Onnx__AttributeProto__AttributeType type)
{
	Onnx__AttributeProto *a = take(w, 1, sizeof *a);

	if (w->full)
		return a;
	onnx__attribute_proto__init(a);
	a->name = (char *)(uintptr_t)name;
	a->has_type = true;
	a->type = type;
	if (!n->attribute)
		n->attribute = take(w, MAX_PARTS, sizeof *n->attribute);
	n->attribute[n->n_attribute++] = a;
	return a;
}

static void set_int(struct writer *w, Onnx__NodeProto *n, const char *name, int64_t value)
{
	Onnx__AttributeProto *a = attribute(w, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);

	a->has_i = true;
	a->i = value;
}

static void set_float(struct writer *w, Onnx__NodeProto *n, const char *name, float value)
{
	Onnx__AttributeProto *a = attribute(w, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);

	a->has_f = true;
	a->f = value;
}

static void set_ints(struct writer *w, Onnx__NodeProto *n, const char *name, uint32_t count, const int64_t *values)
{
	Onnx__AttributeProto *a = attribute(w, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
	int64_t *copy = take(w, count, sizeof *copy);

	if (w->full)
		return;
	memcpy(copy, values, count * sizeof *copy);
	a->n_ints = count;
	a->ints = copy;
}

/* ---- values */

static const struct hd_value *value(const struct writer *w, uint32_t v) { return &w->graph->value[v]; }
static const struct hd_value *in(const struct writer *w, int i) { return value(w, w->at->in[i]); }
static int32_t attr(const struct writer *w, int i) { return w->at->attr.i[i]; }

/* The name of operand i; parameters, buffers and constants are written when they are first read. */
static const char *name(struct writer *w, int i)
{
	uint32_t id = w->at->in[i];
	const struct hd_value *v = value(w, id);
	bool is_param = v->kind == HD_PARAM, is_const = v->kind == HD_CONST;
	const struct hd_onnx_weight *weight = is_param ? &w->values->param[v->data] : v->kind == HD_BUFFER ? &w->values->buffer[v->data] : NULL;

	if (w->name[id])
		return w->name[id];
	if (is_const) {
		w->name[id] = text(w, "c%u", id);
		tensor(w, w->name[id], v->dtype == HD_I32 ? T(INT32) : v->dtype == HD_I64 ? T(INT64) : v->dtype == HD_F64 ? T(DOUBLE) : T(FLOAT), v->rank,
			v->dim, w->graph->consts + v->data, hd_value_bytes(v, 1));
	} else if (weight) {
		w->name[id] = hd_graph_text_of(w->graph, v->name);
		tensor(w, w->name[id], T(FLOAT), v->rank, v->dim, weight->at, weight->len_bytes);
	} else {
		w->name[id] = text(w, "v%u", id);
	}
	return w->name[id];
}

static const char *result(struct writer *w)
{
	uint32_t id = w->at->out;

	w->name[id] = w->name[id] ? w->name[id] : text(w, "v%u", id);
	return w->name[id];
}

static Onnx__NodeProto *last(struct writer *w, const char *op, const char *a, const char *b, const char *c)
{
	return emit_to(w, result(w), op, a, b, c);
}

/* ---- ops */

typedef void writes(struct writer *w);

static void shape_to(struct writer *w, const char *out, const char *x, uint32_t rank, const int64_t *dim)
{
	int64_t to[HD_MAX_DIMS + 1];

	for (uint32_t d = 0; d < rank; d++)
		to[d] = dim[d] < 0 ? -1 : dim[d];
	emit_to(w, out, "Reshape", x, ints(w, rank, to), NULL);
}

static void w_reshape(struct writer *w) { shape_to(w, result(w), name(w, 0), value(w, w->at->out)->rank, value(w, w->at->out)->dim); }

static const char *turned(struct writer *w, const char *x, uint32_t rank)
{
	const char *out = fresh(w);
	int64_t perm[HD_MAX_DIMS];

	for (uint32_t d = 0; d < rank; d++)
		perm[d] = d + 2 < rank ? d : d + 1 == rank ? rank - 2 : rank - 1;
	set_ints(w, emit_to(w, out, "Transpose", x, NULL, NULL), "perm", rank, perm);
	return out;
}

static void w_matmul(struct writer *w)
{
	const struct hd_value *a = in(w, 0), *b = in(w, 1);

	if (a->rank == 2 && b->rank == 2 && (attr(w, 0) || attr(w, 1))) {
		Onnx__NodeProto *n = last(w, "Gemm", name(w, 0), name(w, 1), NULL);
		set_int(w, n, "transA", attr(w, 0));
		set_int(w, n, "transB", attr(w, 1));
		return;
	}
	const char *x = attr(w, 0) ? turned(w, name(w, 0), a->rank) : name(w, 0);
	const char *y = attr(w, 1) ? turned(w, name(w, 1), b->rank) : name(w, 1);
	last(w, "MatMul", x, y, NULL);
}

static void w_conv(struct writer *w)
{
	Onnx__NodeProto *n = last(w, "Conv", name(w, 0), name(w, 1), NULL);
	int64_t p = attr(w, 2), q = attr(w, 3), dh = attr(w, 5), dw = attr(w, 6);

	set_ints(w, n, "strides", 2, (int64_t[]){ attr(w, 0), attr(w, 1) });
	set_ints(w, n, "pads", 4, (int64_t[]){ p, q, p, q });
	set_int(w, n, "group", attr(w, 4) ? attr(w, 4) : 1);
	set_ints(w, n, "dilations", 2, (int64_t[]){ dh ? dh : 1, dw ? dw : 1 });
}

static Onnx__NodeProto *pool(struct writer *w, const char *op)
{
	Onnx__NodeProto *n = last(w, op, name(w, 0), NULL, NULL);
	int64_t p = attr(w, 4), q = attr(w, 5);

	set_ints(w, n, "kernel_shape", 2, (int64_t[]){ attr(w, 0), attr(w, 1) });
	set_ints(w, n, "strides", 2, (int64_t[]){ attr(w, 2), attr(w, 3) });
	set_ints(w, n, "pads", 4, (int64_t[]){ p, q, p, q });
	return n;
}

static void w_maxpool(struct writer *w) { pool(w, "MaxPool"); }
static void w_avgpool(struct writer *w) { set_int(w, pool(w, "AveragePool"), "count_include_pad", attr(w, 6)); }

/* A bias of channels that are not last stands as [C,1,..]. */
static void w_bias(struct writer *w)
{
	const char *b = name(w, 1);
	int64_t dim[HD_MAX_DIMS];
	uint32_t rank = in(w, 0)->rank - 1u;

	if (attr(w, 0) == 1 && rank > 1) {
		const char *spread = fresh(w);
		for (uint32_t d = 0; d < rank; d++)
			dim[d] = d ? 1 : in(w, 1)->dim[0];
		shape_to(w, spread, b, rank, dim);
		b = spread;
	}
	last(w, "Add", name(w, 0), b, NULL);
}

static void w_scale(struct writer *w) { last(w, "Mul", name(w, 0), number(w, (double)w->at->attr.f[0]), NULL); }
static void w_identity(struct writer *w) { last(w, "Identity", name(w, 0), NULL, NULL); }

static void gelu(struct writer *w, const char *inner)
{
	const char *one = emit(w, "Add", inner, number(w, 1), NULL), *half = emit(w, "Mul", name(w, 0), number(w, 0.5), NULL);

	last(w, "Mul", half, one, NULL);
}

static void w_gelu_tanh(struct writer *w)
{
	const char *x = name(w, 0), *cube = emit(w, "Mul", x, emit(w, "Mul", x, x, NULL), NULL);
	const char *sum = emit(w, "Add", x, emit(w, "Mul", cube, number(w, 0.044715), NULL), NULL);

	gelu(w, emit(w, "Tanh", emit(w, "Mul", sum, number(w, 0.7978845608028654), NULL), NULL, NULL));
}

static const char *const plain_acts[HD_NACTS] = {
	[HD_ACT_RELU] = "Relu", [HD_ACT_TANH] = "Tanh", [HD_ACT_SIGMOID] = "Sigmoid", [HD_ACT_SOFTPLUS] = "Softplus", [HD_ACT_ELU] = "Elu",
	[HD_ACT_LEAKY] = "LeakyRelu", [HD_ACT_EXP] = "Exp", [HD_ACT_LOG] = "Log", [HD_ACT_SQRT] = "Sqrt", [HD_ACT_ERF] = "Erf",
	[HD_ACT_NEG] = "Neg", [HD_ACT_ABS] = "Abs", [HD_ACT_RECIP] = "Reciprocal",
};

static void w_act(struct writer *w)
{
	const char *x = name(w, 0);
	int32_t act = attr(w, 0);
	float alpha = w->at->attr.f[0], beta = w->at->attr.f[1];

	if (act == HD_ACT_GELU)
		w_gelu_tanh(w);
	else if (act == HD_ACT_GELU_ERF)
		gelu(w, emit(w, "Erf", emit(w, "Div", x, number(w, sqrt(2)), NULL), NULL, NULL));
	else if (act == HD_ACT_SILU)
		last(w, "Mul", x, emit(w, "Sigmoid", x, NULL, NULL), NULL);
	else if (act == HD_ACT_SQUARE)
		last(w, "Mul", x, x, NULL);
	else if (act == HD_ACT_POW)
		last(w, "Pow", x, number(w, (double)alpha), NULL);
	else if (act == HD_ACT_CLIP)
		last(w, "Clip", x, number(w, (double)alpha), number(w, (double)beta));
	else {
		Onnx__NodeProto *n = last(w, plain_acts[act], x, NULL, NULL);
		if (act == HD_ACT_ELU || act == HD_ACT_LEAKY)
			set_float(w, n, "alpha", alpha);
	}
}

static void w_embed(struct writer *w) { last(w, "Gather", name(w, 1), name(w, 0), NULL); }

static void w_layernorm(struct writer *w)
{
	Onnx__NodeProto *n = last(w, "LayerNormalization", name(w, 0), name(w, 1), name(w, 2));

	set_int(w, n, "axis", -1);
	set_float(w, n, "epsilon", w->at->attr.f[0]);
}

/* Channels last are brought to extent 1 and back. */
static void w_batchnorm(struct writer *w)
{
	uint32_t rank = in(w, 0)->rank;
	bool last_axis = attr(w, 0) == -1 && rank > 2;
	const char *x = name(w, 0), *y = last_axis ? fresh(w) : result(w);
	int64_t to[HD_MAX_DIMS] = { 0, rank - 1 }, back[HD_MAX_DIMS] = { 0 };

	for (uint32_t d = 2; d < rank; d++) {
		to[d] = d - 1;
		back[d - 1] = d;
	}
	back[rank - 1] = 1;
	if (last_axis) {
		const char *moved = fresh(w);
		set_ints(w, emit_to(w, moved, "Transpose", x, NULL, NULL), "perm", rank, to);
		x = moved;
	}
	Onnx__NodeProto *n = emit_to(w, y, "BatchNormalization", x, name(w, 1), name(w, 2));
	if (!w->full) {
		n->input[3] = (char *)(uintptr_t)name(w, 3);
		n->input[4] = (char *)(uintptr_t)name(w, 4);
		n->n_input = 5;
	}
	set_float(w, n, "epsilon", w->at->attr.f[0]);
	if (last_axis)
		set_ints(w, last(w, "Transpose", y, NULL, NULL), "perm", rank, back);
}

/* [N,T,3C]: q, k and v side by side, each cut into heads. */
static void w_attention(struct writer *w)
{
	const struct hd_value *x = in(w, 0);
	int64_t tokens = x->dim[1], width = x->dim[2] / 3, heads = attr(w, 0), each = width / heads;
	const char *part[3], *cut = fresh(w), *moved = fresh(w), *flat;

	shape_to(w, cut, name(w, 0), 5, (int64_t[]){ -1, tokens, 3, heads, each });
	set_ints(w, emit_to(w, moved, "Transpose", cut, NULL, NULL), "perm", 5, (int64_t[]){ 2, 0, 3, 1, 4 });
	for (int64_t k = 0; k < 3; k++) {
		int64_t *index = take(w, 1, sizeof *index);
		const char *which = fresh(w);
		*index = k;
		tensor(w, which, T(INT64), 0, NULL, index, sizeof *index);
		part[k] = fresh(w);
		set_int(w, emit_to(w, part[k], "Gather", moved, which, NULL), "axis", 0);
	}
	const char *scores = emit(w, "Mul", emit(w, "MatMul", part[0], turned(w, part[1], 4), NULL), number(w, 1 / sqrt((double)each)), NULL);
	if (attr(w, 1)) {
		float *mask = take(w, (size_t)(tokens * tokens), sizeof *mask);
		const char *hide = fresh(w);
		for (int64_t i = 0; i < tokens * tokens && !w->full; i++)
			mask[i] = i % tokens > i / tokens ? -1e30f : 0;
		tensor(w, hide, T(FLOAT), 2, (int64_t[]){ tokens, tokens }, mask, (size_t)(tokens * tokens) * sizeof *mask);
		scores = emit(w, "Add", scores, hide, NULL);
	}
	const char *weights = fresh(w), *rows = fresh(w);
	set_int(w, emit_to(w, weights, "Softmax", scores, NULL, NULL), "axis", -1);
	flat = emit(w, "MatMul", weights, part[2], NULL);
	set_ints(w, emit_to(w, rows, "Transpose", flat, NULL, NULL), "perm", 4, (int64_t[]){ 0, 2, 1, 3 });
	shape_to(w, result(w), rows, 3, (int64_t[]){ -1, tokens, width });
}

static void w_add(struct writer *w) { last(w, "Add", name(w, 0), name(w, 1), NULL); }
static void w_sub(struct writer *w) { last(w, "Sub", name(w, 0), name(w, 1), NULL); }
static void w_mul(struct writer *w) { last(w, "Mul", name(w, 0), name(w, 1), NULL); }

static writes *const writers[HD_NOPS] = {
	[HD_OP_MATMUL] = w_matmul,       [HD_OP_CONV2D] = w_conv,         [HD_OP_ATTENTION] = w_attention, [HD_OP_RESHAPE] = w_reshape,
	[HD_OP_ADD] = w_add,             [HD_OP_SUB] = w_sub,             [HD_OP_MUL] = w_mul,             [HD_OP_SCALE] = w_scale,
	[HD_OP_BIAS] = w_bias,           [HD_OP_ACT] = w_act,             [HD_OP_MAXPOOL2D] = w_maxpool,   [HD_OP_EMBED] = w_embed,
	[HD_OP_LAYERNORM] = w_layernorm, [HD_OP_DROPOUT] = w_identity,    [HD_OP_BATCHNORM] = w_batchnorm,
	[HD_OP_AVGPOOL2D] = w_avgpool,
};

/* ---- the model */

/* Which nodes the logits need. */
static bool *needed(struct writer *w, uint32_t logits)
{
	const struct hd_graph *g = w->graph;
	bool *node = take(w, g->nnodes, sizeof *node), *wanted = take(w, g->nvalues, sizeof *wanted);

	if (w->full)
		return NULL;
	wanted[logits] = true;
	for (uint32_t i = g->nnodes; i-- > 0;) {
		for (uint32_t k = 0; k < g->node[i].nout; k++)
			node[i] = node[i] || wanted[g->node[i].out + k];
		for (uint32_t k = 0; node[i] && k < g->node[i].nin; k++)
			wanted[g->node[i].in[k]] = true;
	}
	return node;
}

static Onnx__ValueInfoProto *info(struct writer *w, const char *called, const struct hd_value *v)
{
	Onnx__ValueInfoProto *vi = take(w, 1, sizeof *vi);
	Onnx__TypeProto *type = take(w, 1, sizeof *type);
	Onnx__TypeProto__Tensor *t = take(w, 1, sizeof *t);
	Onnx__TensorShapeProto *shape = take(w, 1, sizeof *shape);
	Onnx__TensorShapeProto__Dimension **dim = take(w, v->rank, sizeof *dim), *each = take(w, v->rank, sizeof *each);

	if (w->full)
		return vi;
	onnx__value_info_proto__init(vi);
	onnx__type_proto__init(type);
	onnx__type_proto__tensor__init(t);
	onnx__tensor_shape_proto__init(shape);
	for (uint32_t d = 0; d < v->rank; d++) {
		onnx__tensor_shape_proto__dimension__init(&each[d]);
		dim[d] = &each[d];
		each[d].value_case = v->dim[d] < 0 ? ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM :
			ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
		if (v->dim[d] == -1)
			each[d].dim_param = (char *)(uintptr_t)"rows";
		else if (v->dim[d] < 0)
			each[d].dim_param = (char *)(uintptr_t)text(w, "rows_%lld", (long long)-v->dim[d]);
		else
			each[d].dim_value = v->dim[d];
	}
	shape->n_dim = v->rank;
	shape->dim = dim;
	t->has_elem_type = true;
	t->elem_type = v->dtype == HD_I32 ? T(INT32) : T(FLOAT);
	t->shape = shape;
	type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
	type->tensor_type = t;
	vi->name = (char *)(uintptr_t)called;
	vi->type = type;
	return vi;
}

static void write_nodes(struct writer *w, const bool *node)
{
	for (uint32_t i = 0; i < w->graph->nnodes && !w->full; i++) {
		if (!node[i])
			continue;
		w->at = &w->graph->node[i];
		if (writers[w->at->op])
			writers[w->at->op](w);
		else
			hd_text_addf(&w->bad, "%s%s (node %u)", w->nbad++ ? ", " : "", hd_ops[w->at->op].name, i);
	}
}

static enum hd_err pack(struct writer *w, Onnx__GraphProto *graph, uint8_t **bytes, uint64_t *len, struct hd_diag *diag)
{
	Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
	Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets = &opset;

	opset.domain = (char *)(uintptr_t)"";
	opset.has_version = true;
	opset.version = OPSET;
	model.has_ir_version = true;
	model.ir_version = IR_VERSION;
	model.producer_name = (char *)(uintptr_t)"heddle";
	model.n_opset_import = 1;
	model.opset_import = &opsets;
	model.graph = graph;
	size_t n = onnx__model_proto__get_packed_size(&model);
	if (n > INT32_MAX)
		return hd_fail(diag, HD_E_INVAL, "the model has %zu bytes; an ONNX file holds at most 2 GiB", n);
	*bytes = hd_arena_take(w->arena, n, 1);
	if (!*bytes)
		return hd_fail(diag, HD_E_NOMEM, "no memory for an ONNX model of %zu bytes", n);
	*len = onnx__model_proto__pack(&model, *bytes);
	return HD_OK;
}

enum hd_err hd_onnx_export(const struct hd_graph *graph, const struct hd_onnx_values *values, struct hd_arena *arena, uint8_t **bytes,
	uint64_t *len, struct hd_diag *diag)
{
	struct writer w = { .graph = graph, .values = values, .arena = arena };
	Onnx__GraphProto g = ONNX__GRAPH_PROTO__INIT;
	Onnx__ValueInfoProto *in_info, *out_info;
	uint32_t logits = hd_graph_find_output(graph, "logits"), x = hd_graph_find_input(graph, "x");

	if (logits == HD_NONE || x == HD_NONE || graph->value[logits].kind != HD_TEMP)
		return hd_fail(diag, HD_E_INVAL, "the graph has no input x, or no output logits that is made of it");
	hd_text_init(&w.bad, arena);
	w.name = take(&w, graph->nvalues, sizeof *w.name);
	const bool *node = needed(&w, logits);
	if (w.full)
		return hd_fail(diag, HD_E_NOMEM, "no memory for an ONNX model");
	w.name[graph->input[x]] = "x";
	w.name[logits] = "logits";
	write_nodes(&w, node);
	if (w.nbad)
		return hd_fail(diag, HD_E_INVAL, "ONNX export: no words for %u node%s: %s", w.nbad, w.nbad == 1 ? "" : "s", w.bad.at);
	in_info = info(&w, "x", &graph->value[graph->input[x]]);
	out_info = info(&w, "logits", &graph->value[logits]);
	g.name = (char *)(uintptr_t)text(&w, "%s", graph->name == HD_NONE ? "heddle" : hd_graph_text_of(graph, graph->name));
	g.n_node = w.nnodes;
	g.node = w.node;
	g.n_initializer = w.ninits;
	g.initializer = w.init;
	g.n_input = g.n_output = 1;
	g.input = &in_info;
	g.output = &out_info;
	if (w.full)
		return hd_fail(diag, HD_E_NOMEM, "no memory for an ONNX model");
	return pack(&w, &g, bytes, len, diag);
}
