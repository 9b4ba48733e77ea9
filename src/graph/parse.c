#include "graph/text.h"

#include <string.h>

#include "graph/op.h"
#include "graph/parse_words.h"
#include "graph/verify.h"

static enum hd_err parse_graph(struct hd_parser *p)
{
	char name[HD_PARSE_WORD];
	struct hd_diag why = { "" };
	enum hd_err err = hd_parse_word(p, name, "the name of the graph");

	if (err == HD_OK && p->graph->name != HD_NONE)
		return hd_parse_fail(p, "the graph has a name already");
	if (err == HD_OK)
		err = hd_parse_refused(p, hd_graph_name(p->graph, name, &p->graph->name, &why), &why);
	return err;
}

static enum hd_err parse_input(struct hd_parser *p)
{
	char name[HD_PARSE_WORD];
	struct hd_diag why = { "" };
	int64_t dim[HD_MAX_DIMS];
	enum hd_dtype dtype;
	uint8_t rank;
	uint32_t value;
	enum hd_err err = hd_parse_word(p, name, "the name of the input");

	if (err == HD_OK)
		err = hd_parse_type(p, &dtype, &rank, dim);
	if (err == HD_OK)
		err = hd_parse_refused(p, hd_graph_input(p->graph, name, dtype, rank, dim, &value, &why),
			&why);
	return err == HD_OK ? hd_parse_name_add(p, value) : err;
}

static enum hd_err take_init(struct hd_parser *p, enum hd_init_kind *init, float *scale)
{
	static const struct { const char *text; enum hd_init_kind init; } inits[] = {
#define X(id, text, about) { text, HD_INIT_##id },
		HD_INITS(X)
#undef X
	};
	double real = 0;
	size_t i = 0;

	while (i < sizeof inits / sizeof inits[0] && !hd_parse_is(p, inits[i].text))
		i++;
	if (i == sizeof inits / sizeof inits[0])
		return hd_parse_fail(p,
			"the initial value is missing here: zeros, ones, normal D or uniform BOUND");
	hd_parse_next(p);
	*init = inits[i].init;
	if (*init == HD_INIT_NORMAL || *init == HD_INIT_UNIFORM) {
		struct hd_parser here = *p;
		enum hd_err err = hd_parse_real(p, true, &real);
		if (err != HD_OK)
			return err;
		if (!(real >= 0 && real <= 3e38))
			return hd_parse_fail(&here,
				"the scale of an initial value is finite and not negative");
	}
	*scale = (float)real;
	return HD_OK;
}

static enum hd_err take_worded(struct hd_parser *p, const char *word, int64_t min, int64_t max, int64_t *out)
{
	if (!hd_parse_is(p, word))
		return hd_parse_fail(p, "'%s' is missing here", word);
	hd_parse_next(p);
	return hd_parse_integer(p, min, max, out);
}

/* "tensor 5", of a slice "tensor 5 NAME slice 0 of 4 axis 1 of 96 blocks 3" */
static enum hd_err take_slice(struct hd_parser *p, struct hd_slice *slice)
{
	enum { TENSOR, NUMBER, N, AXIS, EXTENT, BLOCKS, NWORDS };
	static const struct { const char *word; int64_t min, max; } words[NWORDS] = {
		[TENSOR] = { "tensor", 0, HD_MAX_PARAMS - 1 }, [NUMBER] = { "slice", 0, HD_MAX_SHARDS - 1 },
		[N] = { "of", 2, HD_MAX_SHARDS }, [AXIS] = { "axis", 0, HD_MAX_DIMS - 1 },
		[EXTENT] = { "of", 1, HD_MAX_EXTENT }, [BLOCKS] = { "blocks", 1, UINT8_MAX },
	};
	int64_t v[NWORDS] = { 0 };
	char name[HD_PARSE_WORD];
	struct hd_diag why = { "" };
	enum hd_err err = take_worded(p, words[0].word, words[0].min, words[0].max, &v[0]);

	slice->tensor = (uint32_t)v[TENSOR];
	if (err || hd_parse_ended(p))
		return err;
	err = hd_parse_word(p, name, "the name of the tensor");
	if (!err)
		err = hd_parse_refused(p, hd_graph_name(p->graph, name, &slice->name, &why), &why);
	for (int i = NUMBER; i < NWORDS && !err; i++)
		err = take_worded(p, words[i].word, words[i].min, words[i].max, &v[i]);
	if (!err && (v[NUMBER] >= v[N] || v[EXTENT] % v[BLOCKS]))
		return hd_parse_fail(p, "a slice has a number below that of the slices, and equal blocks");
	slice->number = (uint16_t)v[NUMBER];
	slice->n = (uint16_t)v[N];
	slice->axis = (uint8_t)v[AXIS];
	slice->extent = (uint32_t)v[EXTENT];
	slice->blocks = (uint8_t)v[BLOCKS];
	return err;
}

static enum hd_err parse_param(struct hd_parser *p)
{
	char name[HD_PARSE_WORD];
	struct hd_diag why = { "" };
	int64_t dim[HD_MAX_DIMS];
	enum hd_dtype dtype = HD_F32;
	enum hd_init_kind init = HD_INIT_ZEROS;
	uint8_t rank = 0;
	uint32_t value;
	float scale = 0;
	bool frozen = false;
	enum hd_err err = hd_parse_word(p, name, "the name of the parameter");

	if (err == HD_OK)
		err = hd_parse_type(p, &dtype, &rank, dim);
	if (err == HD_OK && dtype != HD_F32)
		return hd_parse_fail(p, "parameters are f32");
	if (err == HD_OK)
		err = take_init(p, &init, &scale);
	if (err == HD_OK && hd_parse_is(p, "frozen")) {
		hd_parse_next(p);
		frozen = true;
	}
	if (err == HD_OK)
		err = hd_parse_refused(p, hd_graph_param(p->graph, name, rank, dim, init, scale, &value,
			&why), &why);
	if (err)
		return err;
	struct hd_param *param = &p->graph->param[p->graph->nparams - 1];
	param->frozen = frozen;
	if (!hd_parse_ended(p))
		err = take_slice(p, &param->slice);
	if (!err && param->slice.n > 1 && (param->slice.axis >= rank ||
		dim[param->slice.axis] > param->slice.extent))
		err = hd_parse_fail(p, "a slice of a tensor has no more of its axis than the tensor");
	return err ? err : hd_parse_name_add(p, value);
}

static enum hd_err parse_buffer(struct hd_parser *p)
{
	char name[HD_PARSE_WORD];
	struct hd_diag why = { "" };
	int64_t dim[HD_MAX_DIMS];
	enum hd_dtype dtype = HD_F32;
	enum hd_init_kind init = HD_INIT_ZEROS;
	uint8_t rank = 0;
	uint32_t value;
	float scale = 0;
	enum hd_err err = hd_parse_word(p, name, "the name of the buffer");

	if (err == HD_OK)
		err = hd_parse_type(p, &dtype, &rank, dim);
	if (err == HD_OK && dtype != HD_F32)
		return hd_parse_fail(p, "buffers are f32");
	if (err == HD_OK)
		err = take_init(p, &init, &scale);
	if (err == HD_OK)
		err = hd_parse_refused(p, hd_graph_buffer(p->graph, name, rank, dim, init, &value, &why),
			&why);
	return err == HD_OK ? hd_parse_name_add(p, value) : err;
}

static enum hd_err parse_running(struct hd_parser *p)
{
	struct hd_running r = { 0 };
	struct hd_diag why = { "" };
	double momentum = 0;
	enum hd_err err = hd_parse_value(p, &r.mean);

	if (err == HD_OK)
		err = hd_parse_value(p, &r.variance);
	if (err == HD_OK)
		err = hd_parse_value(p, &r.moments);
	if (err == HD_OK)
		err = hd_parse_real(p, true, &momentum);
	r.momentum = (float)momentum;
	return err == HD_OK ? hd_parse_refused(p, hd_graph_running(p->graph, &r, &why), &why) : err;
}

static enum hd_err take_number(struct hd_parser *p, enum hd_dtype dtype, uint64_t i, uint8_t *data)
{
	double real = 0;
	int64_t n = 0;
	bool reals = dtype == HD_F32 || dtype == HD_F64;
	int64_t min = dtype == HD_I64 ? INT64_MIN : dtype == HD_I32 ? INT32_MIN : 0;
	int64_t max = dtype == HD_I64 ? INT64_MAX : dtype == HD_I32 ? INT32_MAX : UINT8_MAX;
	enum hd_err err = reals ? hd_parse_real(p, dtype == HD_F32, &real) : hd_parse_integer(p, min, max,
		&n);

	if (err != HD_OK)
		return err;
	size_t size = hd_dtype_bytes(dtype);
	float single = (float)real;
	int32_t narrow = (int32_t)n;
	uint8_t byte = (uint8_t)n;
	const void *from[] = { [HD_F32] = &single, [HD_F64] = &real, [HD_I32] = &narrow, [HD_I64] = &n,
		[HD_U8] = &byte };
	memcpy(data + i * size, from[dtype], size);
	return HD_OK;
}

static enum hd_err parse_const(struct hd_parser *p)
{
	struct hd_diag why = { "" };
	int64_t dim[HD_MAX_DIMS], n = 0;
	enum hd_dtype dtype = HD_F32;
	uint8_t rank, *data = NULL;
	uint32_t label, value;
	enum hd_err err = hd_parse_label(p, '$', &label);

	if (err == HD_OK) {
		hd_parse_next(p);
		err = hd_parse_type(p, &dtype, &rank, dim);
	}
	if (err != HD_OK)
		return err;
	n = hd_dims_product(dim, rank);
	/* every element takes two bytes of text at least: a short line cannot ask for much memory */
	if (n <= 0 || n > (p->end - p->word.at) / 2 + 1)
		return hd_parse_fail(p, "a constant does not grow with the rows and is written out in full");
	data = hd_arena_take(p->graph->arena, (size_t)n, hd_dtype_bytes(dtype));
	if (!data)
		return hd_parse_no_memory(p);
	for (int64_t i = 0; i < n && err == HD_OK; i++)
		err = take_number(p, dtype, (uint64_t)i, data);
	if (err == HD_OK)
		err = hd_parse_refused(p, hd_graph_const(p->graph, dtype, rank, dim, data, &value, &why),
			&why);
	return err == HD_OK ? hd_parse_label_set(p, &p->consts, label, value) : err;
}

/* What a node line says besides operands; HD_NONE: not said. */
struct node_fields { struct hd_attr attr; uint32_t key, stage, shard, of; uint8_t phase; };

static enum hd_err take_attr(struct hd_parser *p, uint16_t op, const char *name, struct node_fields *said)
{
	struct hd_attr_name attr;
	char word[HD_PARSE_WORD];
	int64_t n = 0;
	double real = 0;
	int act = 0;
	uint32_t i = 0;
	struct hd_parser here = *p;
	enum hd_err err;

	while (hd_op_attr(op, i, &attr) && strcmp(attr.at, name) != 0)
		i++;
	if (!hd_op_attr(op, i, &attr))
		return hd_parse_fail(p, "%s has no attribute '%s'", hd_ops[op].name, name);
	if (attr.is_float) {
		err = hd_parse_real(p, true, &real);
		said->attr.f[attr.slot] = (float)real;
	} else if (hd_attr_is_act(&attr)) {
		err = hd_parse_word(p, word, "an activation");
		if (err == HD_OK && !hd_act_parse(word, &act))
			return hd_parse_fail(&here, "'%s' is no activation", word);
		said->attr.i[attr.slot] = act;
	} else {
		err = hd_parse_integer(p, INT32_MIN, INT32_MAX, &n);
		said->attr.i[attr.slot] = (int32_t)n;
	}
	return err;
}

static enum hd_err take_setting(struct hd_parser *p, uint16_t op, struct node_fields *said)
{
	char name[HD_PARSE_WORD];
	int64_t n;
	enum hd_err err = hd_parse_word(p, name, "an attribute");

	if (err == HD_OK)
		err = hd_parse_mark(p, "=");
	if (err != HD_OK)
		return err;
	if (strcmp(name, "key") == 0 && hd_ops[op].class == HD_OP_RANDOM) {
		err = hd_parse_integer(p, 0, HD_MAX_NODES - 1, &n);
		said->key = err == HD_OK ? (uint32_t)n : 0;
	} else if (strcmp(name, "stage") == 0) {
		err = hd_parse_integer(p, 0, HD_MAX_STAGES - 1, &n);
		said->stage = err == HD_OK ? (uint32_t)n : 0;
	} else if (strcmp(name, "shard") == 0) {
		err = hd_parse_integer(p, 0, HD_MAX_SHARDS - 1, &n);
		said->shard = err == HD_OK ? (uint32_t)n + 1 : 0;
	} else if (strcmp(name, "phase") == 0) {
		if (!hd_parse_is(p, "I") && !hd_parse_is(p, "W"))
			return hd_parse_fail(p, "the phase is I or W; forward nodes have none");
		said->phase = hd_parse_is(p, "I") ? HD_PHASE_I : HD_PHASE_W;
		hd_parse_next(p);
	} else if (strcmp(name, "of") == 0) {
		struct hd_parser here = *p;
		err = hd_parse_value(p, &said->of);
		if (err == HD_OK && p->graph->value[said->of].kind != HD_TEMP)
			return hd_parse_fail(&here, "'of' names an output of the forward node");
	} else {
		err = take_attr(p, op, name, said);
	}
	return err;
}

/* Given shapes must agree with those derived. */
static enum hd_err check_types(struct hd_parser *p, const struct hd_node *node)
{
	enum hd_err err = HD_OK;

	if (hd_parse_ended(p))
		return HD_OK;
	for (uint32_t k = 0; k < node->nout && err == HD_OK; k++) {
		struct hd_value given = { 0 };
		enum hd_dtype dtype = HD_F32;
		err = hd_parse_mark(p, k ? "," : ":");
		struct hd_parser here = *p;
		if (err == HD_OK)
			err = hd_parse_type(p, &dtype, &given.rank, given.dim);
		given.dtype = (uint8_t)dtype;
		const struct hd_value *v = &p->graph->value[node->out + k];
		if (err == HD_OK && (given.dtype != v->dtype || !hd_dims_same(&given, v)))
			err = hd_parse_fail(&here, "output %u is %s by the rule of %s, not %s", k,
				hd_value_shape(v).at, hd_ops[node->op].name,
				hd_value_shape(&given).at);
	}
	return err;
}

static enum hd_err node_settle(struct hd_parser *p, const struct node_fields *said)
{
	struct hd_graph *graph = p->graph;
	struct hd_node *node = &graph->node[graph->nnodes - 1];

	node->phase = said->phase;
	node->shard = (uint16_t)said->shard;
	if (said->of != HD_NONE)
		node->of = graph->value[said->of].node;
	if (hd_ops[node->op].class != HD_OP_RANDOM)
		return HD_OK;
	if (node->of != HD_NONE) {
		graph->nrandom--;
		node->key = graph->node[node->of].key;
	}
	if (said->key != HD_NONE) {
		graph->nrandom -= node->of == HD_NONE;              /* the key it was given is not taken */
		node->key = said->key;
	}
	if (node->of == HD_NONE && node->key >= graph->nrandom)
		graph->nrandom = node->key + 1;
	return HD_OK;
}

static enum hd_err parse_node(struct hd_parser *p)
{
	struct node_fields said = { .key = HD_NONE, .of = HD_NONE, .phase = HD_PHASE_F };
	uint32_t label[HD_MAX_OUT], in[HD_MAX_IN], nlabels = 0, out = 0;
	struct hd_diag why = { "" };
	struct hd_parser start;
	char word[HD_PARSE_WORD];
	uint16_t op = 0;
	enum hd_err err;

	do {
		if (nlabels == HD_MAX_OUT)
			return hd_parse_fail(p, "a node has at most %d outputs", HD_MAX_OUT);
		if (nlabels)
			hd_parse_next(p);
		err = hd_parse_label(p, '%', &label[nlabels++]);
		if (err != HD_OK)
			return err;
		hd_parse_next(p);
	} while (hd_parse_is(p, ","));
	err = hd_parse_mark(p, "=");
	start = *p;
	if (err == HD_OK)
		err = hd_parse_word(p, word, "an op");
	if (err == HD_OK && !hd_op_parse(word, &op))
		return hd_parse_fail(&start, "there is no op '%s'", word);
	if (err == HD_OK && nlabels != hd_ops[op].nout)
		return hd_parse_fail(&start, "%s makes %u values, not %u", word, hd_ops[op].nout, nlabels);
	for (uint8_t k = 0; k < hd_ops[op].nin && err == HD_OK; k++)
		err = hd_parse_value(p, &in[k]);
	while (err == HD_OK && !hd_parse_ended(p) && !hd_parse_is(p, ":"))
		err = take_setting(p, op, &said);
	if (err == HD_OK)
		err = hd_parse_refused(&start, hd_graph_node(p->graph, op, hd_ops[op].nin, in, &said.attr,
			(uint16_t)said.stage, &out, &why), &why);
	if (err == HD_OK)
		err = node_settle(p, &said);
	if (err == HD_OK)
		err = check_types(p, &p->graph->node[p->graph->nnodes - 1]);
	for (uint32_t k = 0; k < nlabels && err == HD_OK; k++)
		err = hd_parse_label_set(p, &p->temps, label[k], out + k);
	return err;
}

static enum hd_err parse_output(struct hd_parser *p)
{
	char name[HD_PARSE_WORD];
	struct hd_diag why = { "" };
	uint32_t value;
	enum hd_err err = hd_parse_word(p, name, "the name of the output");

	if (err == HD_OK)
		err = hd_parse_value(p, &value);
	return err == HD_OK ? hd_parse_refused(p, hd_graph_output(p->graph, name, value, &why), &why) : err;
}

static enum hd_err parse_grad(struct hd_parser *p)
{
	struct hd_parser here = *p;
	uint32_t param = 0, grad = 0;
	enum hd_err err = hd_parse_value(p, &param);

	if (err == HD_OK)
		err = hd_parse_value(p, &grad);
	if (err != HD_OK)
		return err;
	if (p->graph->value[param].kind != HD_PARAM || p->graph->value[param].grad != HD_NONE)
		return hd_parse_fail(&here, "a gradient is given once, to a parameter");
	p->graph->value[param].grad = grad;
	while (err == HD_OK && !hd_parse_ended(p)) {
		struct hd_diag why = { "" };
		err = hd_parse_value(p, &grad);
		if (err == HD_OK)
			err = hd_parse_refused(p, hd_graph_part(p->graph, p->graph->value[param].data, grad,
				&why), &why);
	}
	return err;
}

static enum hd_err parse_line(struct hd_parser *p)
{
	static const struct { const char *word; enum hd_err (*parse)(struct hd_parser *); } statements[] = {
		{ "graph", parse_graph }, { "input", parse_input }, { "param", parse_param },
		{ "buffer", parse_buffer }, { "const", parse_const }, { "output", parse_output }, { "running", parse_running },
		{ "grad", parse_grad },
	};
	enum hd_err err;
	size_t i = 0;

	hd_parse_next(p);
	if (hd_parse_ended(p))
		return HD_OK;
	if (p->word.at[0] == '%') {
		err = parse_node(p);
	} else {
		while (i < sizeof statements / sizeof statements[0] && !hd_parse_is(p, statements[i].word))
			i++;
		if (i == sizeof statements / sizeof statements[0])
			return hd_parse_fail(p,
				"'%.*s': a line begins with graph, input, param, buffer, const, output, "
				"running, grad or a label like %%0",
				hd_parse_shown(p), p->word.at);
		hd_parse_next(p);
		err = statements[i].parse(p);
	}
	if (err == HD_OK && !hd_parse_ended(p))
		err = hd_parse_fail(p, "'%.*s' is too much on this line", hd_parse_shown(p), p->word.at);
	return err;
}

/* So far phases may come in any order; the verifier wants forward nodes first and names the one that is
 * not. */
static void count_forward(struct hd_graph *graph)
{
	graph->nforward = 0;
	while (graph->nforward < graph->nnodes && graph->node[graph->nforward].phase == HD_PHASE_F)
		graph->nforward++;
}

enum hd_err hd_graph_parse(struct hd_graph *graph, const char *file, const char *text, size_t len,
	struct hd_diag *diag)
{
	struct hd_diag spare = { "" }, why = { "" };
	struct hd_parser p = { .graph = graph, .file = file, .at = text, .end = text + len, .line_at = text,
		.line = 1,
		.diag = diag ? diag : &spare };
	enum hd_err err = HD_OK;

	if (len > HD_MAX_GRAPH_TEXT)
		return hd_fail(diag, HD_E_INPUT, "%s: %zu bytes, a graph has at most %d", file, len,
			HD_MAX_GRAPH_TEXT);
	while (err == HD_OK) {
		err = parse_line(&p);
		while (p.at < p.end && *p.at != '\n')
			p.at++;
		if (p.at == p.end)
			break;
		p.line_at = ++p.at;
		p.line++;
	}
	if (err != HD_OK)
		return err;
	count_forward(graph);
	if (hd_graph_sort_parts(graph, &why) != HD_OK)
		return hd_fail(diag, HD_E_NOMEM, "%s: %s", file, why.text);
	if (hd_graph_verify(graph, 1, &why) != HD_OK)
		return hd_fail(diag, HD_E_INPUT, "%s: %s", file, why.text);
	return HD_OK;
}
