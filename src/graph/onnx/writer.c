#include "graph/onnx/writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define T(name) ONNX__TENSOR_PROTO__DATA_TYPE__##name

enum { MAX_PARTS = 8 };

void *hd_ox_take(struct hd_ox *w, size_t n, size_t size)
{
	void *at = hd_arena_take(w->arena, n ? n : 1, size);

	w->full = w->full || !at;
	return at ? at : w->nothing;
}

const char *hd_ox_text(struct hd_ox *w, const char *fmt, ...)
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

const char *hd_ox_fresh(struct hd_ox *w) { return hd_ox_text(w, "t%u", w->fresh++); }

/* ---- parts of a model */

static void *push(struct hd_ox *w, void *list, uint32_t *n, uint32_t *cap)
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

static void add_init(struct hd_ox *w, Onnx__TensorProto *t)
{
	Onnx__TensorProto **list = push(w, w->init, &w->ninits, &w->init_cap);

	if (!list)
		return;
	w->init = list;
	w->init[w->ninits++] = t;
}

void hd_ox_tensor(struct hd_ox *w, const char *name, int32_t type, uint32_t rank, const int64_t *dim,
	const void *at, size_t bytes)
{
	Onnx__TensorProto *t = hd_ox_take(w, 1, sizeof *t);

	if (w->full)
		return;
	onnx__tensor_proto__init(t);
	t->name = (char *)(uintptr_t)name;
	t->has_data_type = true;
	t->data_type = type;
	t->n_dims = rank;
	t->dims = hd_ox_take(w, rank, sizeof *t->dims);
	if (rank && !w->full)
		memcpy(t->dims, dim, rank * sizeof *dim);
	t->has_raw_data = true;
	t->raw_data = (ProtobufCBinaryData){ bytes, (uint8_t *)(uintptr_t)at };
	add_init(w, t);
}

const char *hd_ox_ints(struct hd_ox *w, uint32_t n, const int64_t *values)
{
	const char *name = hd_ox_fresh(w);
	int64_t *copy = hd_ox_take(w, n, sizeof *copy);

	if (!w->full)
		memcpy(copy, values, n * sizeof *copy);
	hd_ox_tensor(w, name, T(INT64), 1, (int64_t[]){ n }, copy, n * sizeof *copy);
	return name;
}

const char *hd_ox_whole(struct hd_ox *w, int64_t value)
{
	const char *name = hd_ox_fresh(w);
	int64_t *copy = hd_ox_take(w, 1, sizeof *copy);

	*copy = value;
	hd_ox_tensor(w, name, T(INT64), 0, NULL, copy, sizeof *copy);
	return name;
}

const char *hd_ox_number(struct hd_ox *w, double value)
{
	const char *name = hd_ox_fresh(w);
	float *copy = hd_ox_take(w, 1, sizeof *copy);

	*copy = (float)value;
	hd_ox_tensor(w, name, T(FLOAT), 0, NULL, copy, sizeof *copy);
	return name;
}

const char *hd_ox_floats(struct hd_ox *w, uint32_t rank, const int64_t *dim, const float *at)
{
	const char *name = hd_ox_fresh(w);
	size_t n = 1;

	for (uint32_t d = 0; d < rank; d++)
		n *= (size_t)dim[d];
	hd_ox_tensor(w, name, T(FLOAT), rank, dim, at, n * sizeof *at);
	return name;
}

Onnx__NodeProto *hd_ox_emit_to(struct hd_ox *w, const char *out, const char *op, const char *a, const char *b,
	const char *c)
{
	Onnx__NodeProto *n = hd_ox_take(w, 1, sizeof *n);
	Onnx__NodeProto **list = push(w, w->node, &w->nnodes, &w->node_cap);
	char **names = hd_ox_take(w, 8, sizeof *names);

	if (w->full || !list)
		return n;
	onnx__node_proto__init(n);
	n->op_type = (char *)(uintptr_t)op;
	n->name = (char *)(uintptr_t)hd_ox_text(w, "%s_%u", op, w->nnodes);
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

void hd_ox_more(struct hd_ox *w, Onnx__NodeProto *n, const char *in)
{
	if (!w->full)
		n->input[n->n_input++] = (char *)(uintptr_t)in;
}

const char *hd_ox_emit(struct hd_ox *w, const char *op, const char *a, const char *b, const char *c)
{
	const char *out = hd_ox_fresh(w);

	hd_ox_emit_to(w, out, op, a, b, c);
	return out;
}

static Onnx__AttributeProto *attribute(struct hd_ox *w, Onnx__NodeProto *n, const char *name,
	Onnx__AttributeProto__AttributeType type)
{
	Onnx__AttributeProto *a = hd_ox_take(w, 1, sizeof *a);

	if (w->full)
		return a;
	onnx__attribute_proto__init(a);
	a->name = (char *)(uintptr_t)name;
	a->has_type = true;
	a->type = type;
	if (!n->attribute)
		n->attribute = hd_ox_take(w, MAX_PARTS, sizeof *n->attribute);
	n->attribute[n->n_attribute++] = a;
	return a;
}

void hd_ox_set_int(struct hd_ox *w, Onnx__NodeProto *n, const char *name, int64_t value)
{
	Onnx__AttributeProto *a = attribute(w, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);

	a->has_i = true;
	a->i = value;
}

void hd_ox_set_float(struct hd_ox *w, Onnx__NodeProto *n, const char *name, float value)
{
	Onnx__AttributeProto *a = attribute(w, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);

	a->has_f = true;
	a->f = value;
}

void hd_ox_set_ints(struct hd_ox *w, Onnx__NodeProto *n, const char *name, uint32_t count,
	const int64_t *values)
{
	Onnx__AttributeProto *a = attribute(w, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
	int64_t *copy = hd_ox_take(w, count, sizeof *copy);

	if (w->full)
		return;
	memcpy(copy, values, count * sizeof *copy);
	a->n_ints = count;
	a->ints = copy;
}

/* ---- values */

const struct hd_value *hd_ox_value(const struct hd_ox *w, uint32_t v) { return &w->graph->value[v]; }
const struct hd_value *hd_ox_in(const struct hd_ox *w, int i) { return hd_ox_value(w, w->at->in[i]); }
int32_t hd_ox_attr(const struct hd_ox *w, int i) { return w->at->attr.i[i]; }

/* The name of operand i; parameters, buffers and constants are written when they are first read. */
const char *hd_ox_name(struct hd_ox *w, int i)
{
	uint32_t id = w->at->in[i];
	const struct hd_value *v = hd_ox_value(w, id);
	bool is_param = v->kind == HD_PARAM, is_const = v->kind == HD_CONST;
	const struct hd_onnx_weight *weight = is_param ? &w->values->param[v->data] : v->kind == HD_BUFFER ?
		&w->values->buffer[v->data] : NULL;

	if (w->name[id])
		return w->name[id];
	if (is_const) {
		w->name[id] = hd_ox_text(w, "c%u", id);
		hd_ox_tensor(w, w->name[id], v->dtype == HD_I32 ? T(INT32) : v->dtype == HD_I64 ? T(INT64) :
			v->dtype == HD_F64 ? T(DOUBLE) : T(FLOAT), v->rank,
			v->dim, w->graph->consts + v->data, hd_value_bytes(v, 1));
	} else if (weight) {
		w->name[id] = hd_graph_text_of(w->graph, v->name);
		hd_ox_tensor(w, w->name[id], T(FLOAT), v->rank, v->dim, weight->at, weight->len_bytes);
	} else {
		w->name[id] = hd_ox_text(w, "v%u", id);
	}
	return w->name[id];
}

const char *hd_ox_result(struct hd_ox *w)
{
	uint32_t id = w->at->out;

	w->name[id] = w->name[id] ? w->name[id] : hd_ox_text(w, "v%u", id);
	return w->name[id];
}

Onnx__NodeProto *hd_ox_last(struct hd_ox *w, const char *op, const char *a, const char *b, const char *c)
{
	return hd_ox_emit_to(w, hd_ox_result(w), op, a, b, c);
}

void hd_ox_shape_to(struct hd_ox *w, const char *out, const char *x, uint32_t rank, const int64_t *dim)
{
	int64_t to[HD_MAX_DIMS + 1];

	for (uint32_t d = 0; d < rank; d++)
		to[d] = dim[d] < 0 ? -1 : dim[d];
	hd_ox_emit_to(w, out, "Reshape", x, hd_ox_ints(w, rank, to), NULL);
}

const char *hd_ox_turned(struct hd_ox *w, const char *x, uint32_t rank)
{
	const char *out = hd_ox_fresh(w);
	int64_t perm[HD_MAX_DIMS];

	for (uint32_t d = 0; d < rank; d++)
		perm[d] = d + 2 < rank ? d : d + 1 == rank ? rank - 2 : rank - 1;
	hd_ox_set_ints(w, hd_ox_emit_to(w, out, "Transpose", x, NULL, NULL), "perm", rank, perm);
	return out;
}

const char *hd_ox_reshaped(struct hd_ox *w, const char *x, uint32_t rank, const int64_t *dim)
{
	const char *out = hd_ox_fresh(w);

	hd_ox_shape_to(w, out, x, rank, dim);
	return out;
}

const char *hd_ox_permuted(struct hd_ox *w, const char *x, uint32_t rank, const int64_t *perm)
{
	const char *out = hd_ox_fresh(w);

	hd_ox_set_ints(w, hd_ox_emit_to(w, out, "Transpose", x, NULL, NULL), "perm", rank, perm);
	return out;
}

const char *hd_ox_cast(struct hd_ox *w, const char *x, int32_t type)
{
	const char *out = hd_ox_fresh(w);

	hd_ox_set_int(w, hd_ox_emit_to(w, out, "Cast", x, NULL, NULL), "to", type);
	return out;
}
