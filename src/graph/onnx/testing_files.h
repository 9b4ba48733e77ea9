/* testing_files.h -- ONNX files made from a few lines of text, for the tests of this folder. */
#ifndef HD_GRAPH_ONNX_TESTING_FILES_H
#define HD_GRAPH_ONNX_TESTING_FILES_H

#include <stdlib.h>
#include <string.h>

#include "onnx.pb-c.h"

#include "base/arena.h"
#include "graph/onnx.h"
#include "graph/op.h"
#include "tests/check.h"

/* A model written as lines "Op in,in -> out attr=1,2", of PyTorch's newer exporter with "@the call it came
 * from"; lines of its signature begin with "!"; numbers and shapes are initializers "name: 1,2" (ints, i64)
 * or "name: 0.5" (one float without extents); weights "name [3,4]" (floats 0, 1, 2 ...; "name [3,4]=1":
 * all 1). x is [rows,4,6] unless said otherwise. */
struct model { uint8_t bytes[1 << 16]; size_t len; };

enum { MAX = 64 };

/* What a message points at lives as long as the program: dozens of small things, packed and forgotten. */
static struct hd_arena messages;

static inline void *made(size_t n, size_t size) { return memset(hd_arena_take(&messages, n ? n : 1, size), 0,
	n * size); }

static inline char *copied(const char *text) { return hd_arena_text(&messages, text, strlen(text)); }

static inline Onnx__ValueInfoProto *info(const char *name, int type, const int64_t *dim, size_t n)
{
	Onnx__ValueInfoProto *vi = made(1, sizeof *vi);
	Onnx__TypeProto *t = made(1, sizeof *t);
	Onnx__TypeProto__Tensor *tt = made(1, sizeof *tt);
	Onnx__TensorShapeProto *s = made(1, sizeof *s);

	onnx__value_info_proto__init(vi);
	onnx__type_proto__init(t);
	onnx__type_proto__tensor__init(tt);
	onnx__tensor_shape_proto__init(s);
	s->dim = made(n, sizeof *s->dim);
	for (s->n_dim = 0; s->n_dim < n; s->n_dim++) {
		Onnx__TensorShapeProto__Dimension *d = made(1, sizeof *d);
		onnx__tensor_shape_proto__dimension__init(d);
		d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
		d->dim_value = dim[s->n_dim];
		s->dim[s->n_dim] = d;
	}
	tt->has_elem_type = true;
	tt->elem_type = type;
	tt->shape = s;
	t->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
	t->tensor_type = tt;
	vi->name = copied(name);
	vi->type = t;
	return vi;
}

static inline size_t numbers(const char *text, int64_t *at)
{
	size_t n = 0;

	for (const char *p = text; p && *p && n < MAX; p = strchr(p, ','), p = p ? p + 1 : NULL)
		at[n++] = strtoll(p, NULL, 10);
	return n;
}

static inline size_t words(char *text, char **at)
{
	size_t n = 0;

	for (char *w; (w = strsep(&text, ","));)          /* nothing between two commas: no such operand */
		at[n++] = copied(w);
	return n;
}

static inline Onnx__NodeProto *node_of(char *line)
{
	Onnx__NodeProto *n = made(1, sizeof *n);
	char *save, *w = strtok_r(line, " ", &save);

	onnx__node_proto__init(n);
	n->op_type = copied(w);
	n->input = made(MAX, sizeof(char *));
	n->output = made(MAX, sizeof(char *));
	n->attribute = made(MAX, sizeof *n->attribute);
	n->n_input = words(strtok_r(NULL, " ", &save), n->input);
	strtok_r(NULL, " ", &save);                       /* -> */
	n->n_output = words(strtok_r(NULL, " ", &save), n->output);
	n->name = copied(n->output[0]);
	while ((w = strtok_r(NULL, " ", &save))) {
		Onnx__AttributeProto *a = made(1, sizeof *a);
		char *eq = strchr(w, '=');
		*eq = '\0';
		onnx__attribute_proto__init(a);
		a->name = copied(w);
		n->attribute[n->n_attribute++] = a;
		if (eq[1] == '\'') {                     /* a text, without spaces */
			a->has_s = true;
			a->s.data = (uint8_t *)copied(eq + 2);
			a->s.len = strlen(eq + 2) - 1;
			continue;
		}
		a->ints = made(MAX, sizeof *a->ints);
		a->n_ints = numbers(eq + 1, a->ints);
		a->has_i = true;
		a->i = a->ints[0];
	}
	return n;
}

static inline Onnx__TensorProto *tensor_of(const char *name, const char *text)
{
	Onnx__TensorProto *t = made(1, sizeof *t);

	onnx__tensor_proto__init(t);
	t->name = copied(name);
	t->has_data_type = true;
	t->dims = made(MAX, sizeof *t->dims);
	if (*text == '[') {
		size_t n = 1;
		t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
		t->n_dims = numbers(text + 1, t->dims);
		for (size_t d = 0; d < t->n_dims; d++)
			n *= (size_t)t->dims[d];
		t->float_data = made(n, sizeof *t->float_data);
		const char *all = strchr(text, '=');
		for (t->n_float_data = 0; t->n_float_data < n; t->n_float_data++)
			t->float_data[t->n_float_data] = all ? strtof(all + 1, NULL) : (float)t->n_float_data;
	} else if (strchr(text, '.')) {
		t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
		t->float_data = made(1, sizeof *t->float_data);
		t->float_data[0] = strtof(text, NULL);
		t->n_float_data = 1;
	} else {
		t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
		t->int64_data = made(MAX, sizeof *t->int64_data);
		t->n_int64_data = numbers(text, t->int64_data);
		t->n_dims = 1;
		t->dims[0] = (int64_t)t->n_int64_data;
	}
	return t;
}

/* A field of newer protocols: {key, value} as field `id`. */
static inline void add_metadata(ProtobufCMessage *message, uint32_t id, const char *key, const char *value)
{
	size_t nkey = strlen(key), nvalue = strlen(value), n = 0;
	uint8_t *data = made(nkey + nvalue + 16, 1), entry[2048];
	const struct { uint8_t tag; const char *text; size_t len; } part[] = { { 0x0a, key, nkey },
		{ 0x12, value, nvalue } };

	assert_true(nkey + nvalue + 8 < sizeof entry);
	for (int k = 0; k < 2; k++) {
		entry[n++] = part[k].tag;
		entry[n++] = (uint8_t)(0x80 | (part[k].len & 0x7f));
		entry[n++] = (uint8_t)(part[k].len >> 7);
		memcpy(entry + n, part[k].text, part[k].len);
		n += part[k].len;
	}
	data[0] = (uint8_t)(0x80 | (n & 0x7f));
	data[1] = (uint8_t)(n >> 7);
	memcpy(data + 2, entry, n);
	message->unknown_fields = made(1, sizeof *message->unknown_fields);
	message->unknown_fields[0] = (ProtobufCMessageUnknownField){ id, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
		n + 2, data };
	message->n_unknown_fields = 1;
}

/* opset < 0: the file names none; 0: ai.onnx without a version. */
static inline void pack_opset(struct model *m, Onnx__GraphProto *g, int64_t opset)
{
	Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
	Onnx__OperatorSetIdProto set = ONNX__OPERATOR_SET_ID_PROTO__INIT, *sets = &set;

	set.has_version = true;
	set.version = opset;
	model.n_opset_import = opset >= 0;
	model.opset_import = &sets;
	model.graph = g;
	m->len = onnx__model_proto__get_packed_size(&model);
	assert_true(m->len < sizeof m->bytes);
	onnx__model_proto__pack(&model, m->bytes);
}

static inline void pack(struct model *m, Onnx__GraphProto *g) { pack_opset(m, g, 17); }

/* The output is "out". */
static inline void write_inputs(struct model *m, const char *text, Onnx__ValueInfoProto **in, size_t nin,
	int64_t opset)
{
	Onnx__GraphProto g = ONNX__GRAPH_PROTO__INIT;
	Onnx__NodeProto *node[MAX];
	Onnx__TensorProto *init[MAX];
	Onnx__ValueInfoProto *y = info("out", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, NULL, 0);
	char *copy = copied(text), *save, *signature = made(strlen(text) + 1, 1);

	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *call = strchr(line, '@');
		if (call) {
			*call = '\0';
			node[g.n_node] = node_of(line);
			add_metadata(&node[g.n_node++]->base, 9, "pkg.torch.onnx.fx_node", call + 1);
			continue;
		}
		if (*line == '!') {
			strcat(strcat(signature, line + 1), "\n");
			continue;
		}
		char *colon = strchr(line, ':'), *bracket = strchr(line, '[');
		if (colon || bracket) {
			char *at = colon ? colon + 2 : bracket;
			(colon ? colon : bracket - 1)[0] = '\0';
			init[g.n_initializer++] = tensor_of(line, at);
		} else {
			node[g.n_node++] = node_of(line);
		}
	}
	g.node = node;
	g.initializer = init;
	g.n_input = nin;
	g.input = in;
	g.n_output = 1;
	g.output = &y;
	if (*signature)
		add_metadata(&g.base, 16, "pkg.torch.export.ExportedProgram.graph_signature", signature);
	pack_opset(m, &g, opset);
}

static inline void write_opset(struct model *m, const char *text, int64_t traced, int64_t opset)
{
	Onnx__ValueInfoProto *x = info("x", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, (int64_t[]){ traced, 4, 6 },
		3);

	write_inputs(m, text, &x, 1, opset);
}

static inline void write_model(struct model *m, const char *text,
	int64_t traced) { write_opset(m, text, traced, 17); }

static const struct hd_model_opts loss = { .loss = HD_LOSS_CROSS_ENTROPY, .normalize = HD_NORMALIZE_SAMPLE };

static inline enum hd_err import(const struct model *m, struct hd_arena *arena, struct hd_graph *graph,
	struct hd_text *report, struct hd_diag *diag)
{
	struct hd_onnx_opts opts = { .loss = &loss, .report = report };

	hd_arena_init(arena, 0);
	hd_graph_init(graph, arena);
	if (report)
		hd_text_init(report, arena);
	return hd_onnx_import(graph, "test.onnx", m->bytes, m->len, &opts, NULL, diag);
}

static inline uint32_t count(const struct hd_graph *g, enum hd_op op)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->nnodes; i++)
		n += g->node[i].op == op;
	return n;
}

#endif
