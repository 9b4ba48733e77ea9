/* A graph of ours as an ONNX model of opset 17: one row per op, weights inside.
 *
 * Only what the logits need is written; losses and labels go, dropout becomes nothing. Names:
 * inputs and parameters keep theirs, `logits` is the output, other values are v<number>. */
#include <stdlib.h>
#include <string.h>

#include "graph/onnx/writer.h"

enum { IR_VERSION = 8, OPSET = 17 };
#define T(name) ONNX__TENSOR_PROTO__DATA_TYPE__##name

/* ---- ops */

static void w_reshape(struct hd_ox *w)
{
	const struct hd_value *y = hd_ox_value(w, w->at->out);

	hd_ox_shape_to(w, hd_ox_result(w), hd_ox_name(w, 0), y->rank, y->dim);
}

static void w_matmul(struct hd_ox *w)
{
	const struct hd_value *a = hd_ox_in(w, 0), *b = hd_ox_in(w, 1);

	if (a->rank == 2 && b->rank == 2 && (hd_ox_attr(w, 0) || hd_ox_attr(w, 1))) {
		Onnx__NodeProto *n = hd_ox_last(w, "Gemm", hd_ox_name(w, 0), hd_ox_name(w, 1), NULL);
		hd_ox_set_int(w, n, "transA", hd_ox_attr(w, 0));
		hd_ox_set_int(w, n, "transB", hd_ox_attr(w, 1));
		return;
	}
	const char *x = hd_ox_attr(w, 0) ? hd_ox_turned(w, hd_ox_name(w, 0), a->rank) : hd_ox_name(w, 0);
	const char *y = hd_ox_attr(w, 1) ? hd_ox_turned(w, hd_ox_name(w, 1), b->rank) : hd_ox_name(w, 1);
	hd_ox_last(w, "MatMul", x, y, NULL);
}

static void w_conv(struct hd_ox *w)
{
	Onnx__NodeProto *n = hd_ox_last(w, "Conv", hd_ox_name(w, 0), hd_ox_name(w, 1), NULL);
	int64_t p = hd_ox_attr(w, 2), q = hd_ox_attr(w, 3), dh = hd_ox_attr(w, 5), dw = hd_ox_attr(w, 6);

	hd_ox_set_ints(w, n, "strides", 2, (int64_t[]){ hd_ox_attr(w, 0), hd_ox_attr(w, 1) });
	hd_ox_set_ints(w, n, "pads", 4, (int64_t[]){ p, q, p, q });
	hd_ox_set_int(w, n, "group", hd_ox_attr(w, 4) ? hd_ox_attr(w, 4) : 1);
	hd_ox_set_ints(w, n, "dilations", 2, (int64_t[]){ dh ? dh : 1, dw ? dw : 1 });
}

static Onnx__NodeProto *pool(struct hd_ox *w, const char *op)
{
	Onnx__NodeProto *n = hd_ox_last(w, op, hd_ox_name(w, 0), NULL, NULL);
	int64_t p = hd_ox_attr(w, 4), q = hd_ox_attr(w, 5);

	hd_ox_set_ints(w, n, "kernel_shape", 2, (int64_t[]){ hd_ox_attr(w, 0), hd_ox_attr(w, 1) });
	hd_ox_set_ints(w, n, "strides", 2, (int64_t[]){ hd_ox_attr(w, 2), hd_ox_attr(w, 3) });
	hd_ox_set_ints(w, n, "pads", 4, (int64_t[]){ p, q, p, q });
	return n;
}

static void w_maxpool(struct hd_ox *w) { pool(w, "MaxPool"); }
static void w_avgpool(struct hd_ox *w) { hd_ox_set_int(w, pool(w, "AveragePool"), "count_include_pad",
	hd_ox_attr(w, 6)); }

/* A bias of channels that are not last stands as [C,1,..]. */
static void w_bias(struct hd_ox *w)
{
	const char *b = hd_ox_name(w, 1);
	int64_t dim[HD_MAX_DIMS];
	uint32_t rank = hd_ox_in(w, 0)->rank - 1u;

	if (hd_ox_attr(w, 0) == 1 && rank > 1) {
		const char *spread = hd_ox_fresh(w);
		for (uint32_t d = 0; d < rank; d++)
			dim[d] = d ? 1 : hd_ox_in(w, 1)->dim[0];
		hd_ox_shape_to(w, spread, b, rank, dim);
		b = spread;
	}
	hd_ox_last(w, "Add", hd_ox_name(w, 0), b, NULL);
}

static void w_scale(struct hd_ox *w) { hd_ox_last(w, "Mul", hd_ox_name(w, 0),
	hd_ox_number(w, (double)w->at->attr.f[0]), NULL); }
static void w_identity(struct hd_ox *w) { hd_ox_last(w, "Identity", hd_ox_name(w, 0), NULL, NULL); }

static const char *act_emit(struct hd_ox *w, const char *at, const char *out);

/* The column `write` of acts.def: an operand is x, a, b, a number, or the result of an op. Returns what
 * follows. */
static const char *act_operand(struct hd_ox *w, const char *at, const char **operand)
{
	if (*at >= 'A' && *at <= 'Z') {
		*operand = hd_ox_fresh(w);
		return act_emit(w, at, *operand);
	}
	if (*at == 'x')
		*operand = hd_ox_name(w, 0);
	else if (*at == 'a' || *at == 'b')
		*operand = hd_ox_number(w, (double)w->at->attr.f[*at - 'a']);
	else
		*operand = hd_ox_number(w, strtod(at, NULL));
	return at + strcspn(at, ",)");
}

/* Op(operand, .., attribute=a), its result named `out`; the attribute, if any, is last. */
static const char *act_emit(struct hd_ox *w, const char *at, const char *out)
{
	const char *op = hd_ox_text(w, "%.*s", (int)strcspn(at, "("), at), *operand[3] = { NULL };
	uint32_t n = 0;

	at += strcspn(at, "(") + 1;
	for (; *at != ')' && at[strcspn(at, "=,()")] != '='; at += strspn(at, ", "))
		at = act_operand(w, at, &operand[n++]);
	Onnx__NodeProto *node = hd_ox_emit_to(w, out, op, operand[0], operand[1], operand[2]);
	size_t name = strcspn(at, "=)");
	if (at[name] == '=')
		hd_ox_set_float(w, node, hd_ox_text(w, "%.*s", (int)name, at),
			w->at->attr.f[at[name + 1] - 'a']);
	return strchr(at, ')') + 1;
}

static void w_act(struct hd_ox *w) { act_emit(w, hd_acts[hd_ox_attr(w, 0)].onnx.write, hd_ox_result(w)); }

static void w_embed(struct hd_ox *w) { hd_ox_last(w, "Gather", hd_ox_name(w, 1), hd_ox_name(w, 0), NULL); }

static void w_layernorm(struct hd_ox *w)
{
	Onnx__NodeProto *n = hd_ox_last(w, "LayerNormalization", hd_ox_name(w, 0), hd_ox_name(w, 1),
		hd_ox_name(w, 2));

	hd_ox_set_int(w, n, "axis", -1);
	hd_ox_set_float(w, n, "epsilon", w->at->attr.f[0]);
}

/* Channels last are brought to extent 1 and back. */
static void w_batchnorm(struct hd_ox *w)
{
	uint32_t rank = hd_ox_in(w, 0)->rank;
	bool last_axis = hd_ox_attr(w, 0) == -1 && rank > 2;
	const char *x = hd_ox_name(w, 0), *y = last_axis ? hd_ox_fresh(w) : hd_ox_result(w);
	int64_t to[HD_MAX_DIMS] = { 0, rank - 1 }, back[HD_MAX_DIMS] = { 0 };

	for (uint32_t d = 2; d < rank; d++) {
		to[d] = d - 1;
		back[d - 1] = d;
	}
	back[rank - 1] = 1;
	if (last_axis) {
		const char *moved = hd_ox_fresh(w);
		hd_ox_set_ints(w, hd_ox_emit_to(w, moved, "Transpose", x, NULL, NULL), "perm", rank, to);
		x = moved;
	}
	Onnx__NodeProto *n = hd_ox_emit_to(w, y, "BatchNormalization", x, hd_ox_name(w, 1), hd_ox_name(w, 2));
	hd_ox_more(w, n, hd_ox_name(w, 3));
	hd_ox_more(w, n, hd_ox_name(w, 4));
	hd_ox_set_float(w, n, "epsilon", w->at->attr.f[0]);
	if (last_axis)
		hd_ox_set_ints(w, hd_ox_last(w, "Transpose", y, NULL, NULL), "perm", rank, back);
}

/* A norm of groups is that of instances whose channels are the groups; then each channel's own factor and
 * addend. */
static void w_groupnorm(struct hd_ox *w)
{
	const struct hd_value *x = hd_ox_in(w, 0);
	int64_t groups = hd_ox_attr(w, 0), dim[HD_MAX_DIMS] = { x->dim[1] };
	float *ones = hd_ox_take(w, (size_t)groups, sizeof *ones),
		*zeros = hd_ox_take(w, (size_t)groups, sizeof *zeros);
	const char *normed = hd_ox_fresh(w), *back = hd_ox_fresh(w);

	for (int64_t k = 0; k < groups && !w->full; k++)
		ones[k] = 1;
	for (uint32_t d = 1; d + 1 < x->rank; d++)
		dim[d] = 1;
	const char *cut = hd_ox_emit(w, "Reshape", hd_ox_name(w, 0),
		hd_ox_ints(w, 3, (int64_t[]){ 0, groups, -1 }), NULL);
	Onnx__NodeProto *n = hd_ox_emit_to(w, normed, "InstanceNormalization", cut,
		hd_ox_floats(w, 1, &groups, ones), hd_ox_floats(w, 1, &groups, zeros));
	hd_ox_set_float(w, n, "epsilon", w->at->attr.f[0]);
	hd_ox_shape_to(w, back, normed, x->rank, x->dim);
	const char *scaled = hd_ox_emit(w, "Mul", back, hd_ox_reshaped(w, hd_ox_name(w, 1), x->rank - 1u,
		dim), NULL);
	hd_ox_last(w, "Add", scaled, hd_ox_reshaped(w, hd_ox_name(w, 2), x->rank - 1u, dim), NULL);
}

static void w_add(struct hd_ox *w) { hd_ox_last(w, "Add", hd_ox_name(w, 0), hd_ox_name(w, 1), NULL); }
static void w_sub(struct hd_ox *w) { hd_ox_last(w, "Sub", hd_ox_name(w, 0), hd_ox_name(w, 1), NULL); }
static void w_mul(struct hd_ox *w) { hd_ox_last(w, "Mul", hd_ox_name(w, 0), hd_ox_name(w, 1), NULL); }

static hd_ox_writes *const writers[HD_NOPS] = {
	[HD_OP_MATMUL] = w_matmul,       [HD_OP_CONV2D] = w_conv,         [HD_OP_GROUPNORM] = w_groupnorm,
		[HD_OP_RESHAPE] = w_reshape,
	[HD_OP_ADD] = w_add,             [HD_OP_SUB] = w_sub,             [HD_OP_MUL] = w_mul,
	[HD_OP_SCALE] = w_scale,
	[HD_OP_BIAS] = w_bias,           [HD_OP_ACT] = w_act,             [HD_OP_MAXPOOL2D] = w_maxpool,
	[HD_OP_EMBED] = w_embed,
	[HD_OP_LAYERNORM] = w_layernorm, [HD_OP_DROPOUT] = w_identity,    [HD_OP_BATCHNORM] = w_batchnorm,
	[HD_OP_AVGPOOL2D] = w_avgpool,
};

/* ---- the model */

/* Which nodes the logits need. */
static bool *needed(struct hd_ox *w, uint32_t logits)
{
	const struct hd_graph *g = w->graph;
	bool *node = hd_ox_take(w, g->nnodes, sizeof *node),
		*wanted = hd_ox_take(w, g->nvalues, sizeof *wanted);

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

static Onnx__ValueInfoProto *info(struct hd_ox *w, const char *called, const struct hd_value *v)
{
	Onnx__ValueInfoProto *vi = hd_ox_take(w, 1, sizeof *vi);
	Onnx__TypeProto *type = hd_ox_take(w, 1, sizeof *type);
	Onnx__TypeProto__Tensor *t = hd_ox_take(w, 1, sizeof *t);
	Onnx__TensorShapeProto *shape = hd_ox_take(w, 1, sizeof *shape);
	Onnx__TensorShapeProto__Dimension **dim = hd_ox_take(w, v->rank, sizeof *dim),
		*each = hd_ox_take(w, v->rank, sizeof *each);

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
			each[d].dim_param = (char *)(uintptr_t)hd_ox_text(w, "rows_%lld",
				(long long)-v->dim[d]);
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

static void write_nodes(struct hd_ox *w, const bool *node)
{
	for (uint32_t i = 0; i < w->graph->nnodes && !w->full; i++) {
		if (!node[i])
			continue;
		w->at = &w->graph->node[i];
		const uint16_t op = w->at->op;
		hd_ox_writes *writes = writers[op] ? writers[op] : hd_ox_tensors[op] ? hd_ox_tensors[op] :
			hd_ox_sequences[op] ? hd_ox_sequences[op] : hd_ox_ops[op];
		if (writes)
			writes(w);
		else
			hd_text_addf(&w->bad, "%s%s (node %u)", w->nbad++ ? ", " : "", hd_ops[w->at->op].name,
				i);
	}
}

static enum hd_err pack(struct hd_ox *w, Onnx__GraphProto *graph, uint8_t **bytes, uint64_t *len,
	struct hd_diag *diag)
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
		return hd_fail(diag, HD_E_INVAL, "the model has %zu bytes; an ONNX file holds at most 2 GiB",
			n);
	*bytes = hd_arena_take(w->arena, n, 1);
	if (!*bytes)
		return hd_fail(diag, HD_E_NOMEM, "no memory for an ONNX model of %zu bytes", n);
	*len = onnx__model_proto__pack(&model, *bytes);
	return HD_OK;
}

enum hd_err hd_onnx_export(const struct hd_graph *graph, const struct hd_onnx_values *values,
	struct hd_arena *arena, uint8_t **bytes,
	uint64_t *len, struct hd_diag *diag)
{
	struct hd_ox w = { .graph = graph, .values = values, .arena = arena };
	Onnx__GraphProto g = ONNX__GRAPH_PROTO__INIT;
	Onnx__ValueInfoProto *in_info, *out_info;
	uint32_t logits = hd_graph_find_output(graph, "logits"), x = hd_graph_find_input(graph, "x");

	if (logits == HD_NONE || x == HD_NONE || graph->value[logits].kind != HD_TEMP)
		return hd_fail(diag, HD_E_INVAL,
			"the graph has no input x, or no output logits that is made of it");
	hd_text_init(&w.bad, arena);
	w.name = hd_ox_take(&w, graph->nvalues, sizeof *w.name);
	const bool *node = needed(&w, logits);
	if (w.full)
		return hd_fail(diag, HD_E_NOMEM, "no memory for an ONNX model");
	w.name[graph->input[x]] = "x";
	w.name[logits] = "logits";
	write_nodes(&w, node);
	if (w.nbad)
		return hd_fail(diag, HD_E_INVAL, "ONNX export: no words for %u node%s: %s", w.nbad,
			w.nbad == 1 ? "" : "s", w.bad.at);
	in_info = info(&w, "x", &graph->value[graph->input[x]]);
	out_info = info(&w, "logits", &graph->value[logits]);
	g.name = (char *)(uintptr_t)hd_ox_text(&w, "%s", graph->name == HD_NONE ? "heddle" :
		hd_graph_text_of(graph, graph->name));
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
