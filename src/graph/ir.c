#include "graph/ir.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "graph/op.h"

enum { FIRST_CAP = 64, CONST_ALIGN = 64 };

/* Above this no product of extents is believed: 16 TiB of f32. */
#define MAX_ELEMS ((int64_t)1 << 42)

static const struct { const char *text; uint8_t bytes; uint8_t dtype; } dtypes[] = {
#define X(id, number, text, bytes) { text, bytes, HD_##id },
	HD_DTYPES(X)
#undef X
};
enum { NDTYPES = sizeof dtypes / sizeof dtypes[0] };

size_t hd_dtype_bytes(enum hd_dtype dtype)
{
	for (int i = 0; i < NDTYPES; i++)
		if (dtypes[i].dtype == dtype)
			return dtypes[i].bytes;
	return 0;
}

const char *hd_dtype_text(enum hd_dtype dtype)
{
	for (int i = 0; i < NDTYPES; i++)
		if (dtypes[i].dtype == dtype)
			return dtypes[i].text;
	return "?";
}

bool hd_dtype_parse(const char *text, enum hd_dtype *dtype)
{
	for (int i = 0; i < NDTYPES; i++)
		if (strcmp(dtypes[i].text, text) == 0) {
			*dtype = (enum hd_dtype)dtypes[i].dtype;
			return true;
		}
	return false;
}

void hd_graph_init(struct hd_graph *graph, struct hd_arena *arena)
{
	*graph = (struct hd_graph){ .arena = arena, .name = HD_NONE };
}

/* Doubles until `need` elements fit; what is new is zero. The old array stays in the arena:
 * pointers into it keep their old contents, but are not to be used. */
static enum hd_err reserve(struct hd_arena *arena, void **at, uint32_t used, uint32_t *cap, uint64_t need,
	size_t size, struct hd_diag *diag)
{
	uint64_t more = *cap ? *cap : FIRST_CAP;
	void *grown;

	if (need <= *cap)
		return HD_OK;
	while (more < need)
		more *= 2;
	if (more > UINT32_MAX || !(grown = hd_arena_take(arena, more, size)))
		return hd_fail(diag, HD_E_NOMEM,
			"no memory for a graph of this size; raise the memory limit or make the model "
			"smaller");
	if (used)
		memcpy(grown, *at, used * size);
	*at = grown;
	*cap = (uint32_t)more;
	return HD_OK;
}

#define RESERVE(graph, field, used, capfield, n, diag) \
	reserve((graph)->arena, (void **)&(graph)->field, (graph)->used, &(graph)->capfield, \
		(uint64_t)(graph)->used + (n), sizeof *(graph)->field, diag)

static bool name_byte(char c, bool first)
{
	bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

	return letter || (!first && ((c >= '0' && c <= '9') || c == '.' || c == '-' || c == '/'));
}

static enum hd_err name_check(const char *name, struct hd_diag *diag)
{
	size_t len = strnlen(name, HD_MAX_NAME);

	for (size_t i = 0; i < len; i++)
		if (!name_byte(name[i], i == 0))
			return hd_fail(diag, HD_E_INVAL,
				"name '%.*s': letters, digits and _ . - / only, a letter or _ first",
				(int)len, name);
	if (len == 0 || len == HD_MAX_NAME)
		return hd_fail(diag, HD_E_INVAL, "a name has 1 to %d bytes", HD_MAX_NAME - 1);
	return HD_OK;
}

enum hd_err hd_graph_name(struct hd_graph *graph, const char *name, uint32_t *at, struct hd_diag *diag)
{
	size_t len = strnlen(name, HD_MAX_NAME) + 1;
	enum hd_err err = name_check(name, diag);

	if (err == HD_OK)
		err = RESERVE(graph, names, names_len, names_cap, len, diag);
	if (err != HD_OK)
		return err;
	memcpy(graph->names + graph->names_len, name, len);
	*at = graph->names_len;
	graph->names_len += (uint32_t)len;
	return HD_OK;
}

const char *hd_graph_text_of(const struct hd_graph *graph, uint32_t name)
{
	return name < graph->names_len ? graph->names + name : "";
}

static bool called(const struct hd_graph *graph, uint32_t name, const char *text)
{
	return name != HD_NONE && strcmp(hd_graph_text_of(graph, name), text) == 0;
}

uint32_t hd_graph_find_output(const struct hd_graph *graph, const char *name)
{
	for (uint32_t i = 0; i < graph->noutputs; i++)
		if (called(graph, graph->output[i].name, name))
			return graph->output[i].value;
	return HD_NONE;
}

uint32_t hd_graph_find_param(const struct hd_graph *graph, const char *name)
{
	for (uint32_t i = 0; i < graph->nparams; i++)
		if (called(graph, graph->value[graph->param[i].value].name, name))
			return i;
	return HD_NONE;
}

uint32_t hd_graph_find_input(const struct hd_graph *graph, const char *name)
{
	for (uint32_t i = 0; i < graph->ninputs; i++)
		if (called(graph, graph->value[graph->input[i]].name, name))
			return i;
	return HD_NONE;
}

uint32_t hd_graph_find_buffer(const struct hd_graph *graph, const char *name)
{
	for (uint32_t i = 0; i < graph->nbuffers; i++)
		if (called(graph, graph->value[graph->buffer[i].value].name, name))
			return i;
	return HD_NONE;
}

int64_t hd_dims_product(const int64_t *dim, uint32_t rank)
{
	int64_t n = 1;

	for (uint32_t i = 0; i < rank; i++)
		if ((dim[i] < 0 && n < 0) || !hd_mul_i64(n, dim[i], &n) || n > MAX_ELEMS || n < -MAX_ELEMS)
			return 0;
	return n;
}

bool hd_dims_same(const struct hd_value *a, const struct hd_value *b)
{
	return a->rank == b->rank && memcmp(a->dim, b->dim, a->rank * sizeof a->dim[0]) == 0;
}

struct hd_shape_text hd_value_shape(const struct hd_value *value)
{
	struct hd_shape_text text;
	int len = snprintf(text.at, sizeof text.at, "%s [", hd_dtype_text((enum hd_dtype)value->dtype));

	for (int i = 0; i < value->rank && i < HD_MAX_DIMS; i++) {
		int64_t d = value->dim[i];
		size_t left = sizeof text.at - (size_t)len;
		const char *comma = i ? "," : "";
		if (d == -1)
			len += snprintf(text.at + len, left, "%s*", comma);
		else
			len += snprintf(text.at + len, left, "%s%lld%s", comma, (long long)(d < 0 ? -d : d),
				d < 0 ? "*" : "");
	}
	snprintf(text.at + len, sizeof text.at - (size_t)len, "]");
	return text;
}

/* The rule for extents that come from outside; those of nodes come from shape rules and are checked by the
 * same. */
static enum hd_err dims_check(uint8_t rank, const int64_t *dim, struct hd_diag *diag)
{
	if (rank == 0 || rank > HD_MAX_DIMS)
		return hd_fail(diag, HD_E_INVAL, "%u extents: a value has 1 to %d", rank, HD_MAX_DIMS);
	for (uint32_t i = 0; i < rank; i++)
		if (dim[i] == 0 || dim[i] > HD_MAX_EXTENT || dim[i] < -HD_MAX_EXTENT)
			return hd_fail(diag, HD_E_INVAL,
				"extent %u is %lld: an extent is 1 to %d or a multiple of the rows",
				i, (long long)dim[i], HD_MAX_EXTENT);
	if (hd_dims_product(dim, rank) == 0)
		return hd_fail(diag, HD_E_INVAL,
			"more than 2^42 elements, or two extents that grow with the rows");
	return HD_OK;
}

enum hd_err hd_value_check(const struct hd_value *value, struct hd_diag *diag)
{
	if (hd_dtype_bytes((enum hd_dtype)value->dtype) == 0)
		return hd_fail(diag, HD_E_INVAL, "dtype %u does not exist", value->dtype);
	return dims_check(value->rank, value->dim, diag);
}

static enum hd_err value_add(struct hd_graph *graph, const struct hd_value *value, uint32_t *id,
	struct hd_diag *diag)
{
	enum hd_err err = hd_value_check(value, diag);

	if (err == HD_OK)
		err = RESERVE(graph, value, nvalues, value_cap, 1, diag);
	if (err != HD_OK)
		return err;
	*id = graph->nvalues;
	graph->value[graph->nvalues++] = *value;
	return HD_OK;
}

static struct hd_value value_of(enum hd_value_kind kind, enum hd_dtype dtype, uint8_t rank,
	const int64_t *dim)
{
	struct hd_value v = { .rank = rank, .dtype = (uint8_t)dtype, .kind = (uint8_t)kind,
		.node = HD_NONE, .name = HD_NONE, .data = HD_NONE, .grad = HD_NONE };

	if (rank && rank <= HD_MAX_DIMS)
		memcpy(v.dim, dim, rank * sizeof dim[0]);
	return v;
}

/* Inputs, parameters and buffers share one name space: the text form refers to them by name. */
static enum hd_err name_free(const struct hd_graph *graph, const char *name, struct hd_diag *diag)
{
	enum hd_err err = name_check(name, diag);

	if (err == HD_OK && (hd_graph_find_param(graph, name) != HD_NONE ||
		hd_graph_find_input(graph, name) != HD_NONE ||
	    hd_graph_find_buffer(graph, name) != HD_NONE))
		err = hd_fail(diag, HD_E_INVAL, "'%s' is declared twice", name);
	return err;
}

enum hd_err hd_graph_input(struct hd_graph *graph, const char *name, enum hd_dtype dtype,
	uint8_t rank, const int64_t *dim, uint32_t *value, struct hd_diag *diag)
{
	struct hd_value v = value_of(HD_INPUT, dtype, rank, dim);
	enum hd_err err = name_free(graph, name, diag);

	if (err == HD_OK && graph->ninputs == HD_MAX_ENDS)
		err = hd_fail(diag, HD_E_INVAL, "more than %d inputs", HD_MAX_ENDS);
	if (err == HD_OK)
		err = RESERVE(graph, input, ninputs, input_cap, 1, diag);
	if (err == HD_OK)
		err = hd_graph_name(graph, name, &v.name, diag);
	v.data = graph->ninputs;
	if (err == HD_OK)
		err = value_add(graph, &v, value, diag);
	if (err == HD_OK)
		graph->input[graph->ninputs++] = *value;
	return err;
}

enum hd_err hd_graph_param(struct hd_graph *graph, const char *name, uint8_t rank, const int64_t *dim,
	enum hd_init_kind init, float scale, uint32_t *value, struct hd_diag *diag)
{
	struct hd_value v = value_of(HD_PARAM, HD_F32, rank, dim);
	enum hd_err err = name_free(graph, name, diag);

	if (err == HD_OK && graph->nparams == HD_MAX_PARAMS)
		err = hd_fail(diag, HD_E_INVAL, "more than %d parameters", HD_MAX_PARAMS);
	for (uint32_t i = 0; i < rank && i < HD_MAX_DIMS && err == HD_OK; i++)
		if (dim[i] < 0)
			err = hd_fail(diag, HD_E_INVAL,
				"parameter '%s': its extents cannot depend on the rows", name);
	if (err == HD_OK)
		err = RESERVE(graph, param, nparams, param_cap, 1, diag);
	if (err == HD_OK)
		err = hd_graph_name(graph, name, &v.name, diag);
	v.data = graph->nparams;
	if (err == HD_OK)
		err = value_add(graph, &v, value, diag);
	if (err == HD_OK)
		graph->param[graph->nparams] = (struct hd_param){ .value = *value, .init = (uint32_t)init,
			.scale = scale, .slice = { .tensor = graph->nparams, .name = v.name, .n = 1,
			.blocks = 1 } };
	graph->nparams += err == HD_OK;
	return err;
}

static enum hd_err buffer_check(const struct hd_graph *graph, const char *name, uint8_t rank,
	const int64_t *dim,
	enum hd_init_kind init, struct hd_diag *diag)
{
	enum hd_err err = name_free(graph, name, diag);

	if (err == HD_OK && graph->nbuffers == HD_MAX_BUFFERS)
		err = hd_fail(diag, HD_E_INVAL, "more than %d buffers", HD_MAX_BUFFERS);
	if (err == HD_OK && init != HD_INIT_ZEROS && init != HD_INIT_ONES)
		err = hd_fail(diag, HD_E_INVAL, "buffer '%s': it begins as zeros or ones", name);
	for (uint32_t i = 0; i < rank && i < HD_MAX_DIMS && err == HD_OK; i++)
		if (dim[i] < 0)
			err = hd_fail(diag, HD_E_INVAL, "buffer '%s': its extents cannot depend on the rows",
				name);
	return err;
}

enum hd_err hd_graph_buffer(struct hd_graph *graph, const char *name, uint8_t rank, const int64_t *dim,
	enum hd_init_kind init, uint32_t *value, struct hd_diag *diag)
{
	struct hd_value v = value_of(HD_BUFFER, HD_F32, rank, dim);
	enum hd_err err = buffer_check(graph, name, rank, dim, init, diag);

	if (err == HD_OK)
		err = RESERVE(graph, buffer, nbuffers, buffer_cap, 1, diag);
	if (err == HD_OK)
		err = hd_graph_name(graph, name, &v.name, diag);
	v.data = graph->nbuffers;
	if (err == HD_OK)
		err = value_add(graph, &v, value, diag);
	if (err == HD_OK)
		graph->buffer[graph->nbuffers++] = (struct hd_buffer){ .value = *value,
			.init = (uint32_t)init };
	return err;
}

/* The rules of the record are the verifier's; here it only must not refer to nothing. */
enum hd_err hd_graph_running(struct hd_graph *graph, const struct hd_running *running, struct hd_diag *diag)
{
	enum hd_err err;

	if (running->mean >= graph->nvalues || running->variance >= graph->nvalues ||
		running->moments >= graph->nvalues)
		return hd_fail(diag, HD_E_INVAL, "running statistics: a value does not exist");
	if (graph->nrunning == HD_MAX_BUFFERS)
		return hd_fail(diag, HD_E_INVAL, "more than %d running statistics", HD_MAX_BUFFERS);
	err = RESERVE(graph, running, nrunning, running_cap, 1, diag);
	if (err == HD_OK)
		graph->running[graph->nrunning++] = *running;
	return err;
}

/* Its rules are the verifier's. */
enum hd_err hd_graph_part(struct hd_graph *graph, uint32_t param, uint32_t value, struct hd_diag *diag)
{
	enum hd_err err;

	if (graph->nparts == HD_MAX_GRAD_PARTS)
		return hd_fail(diag, HD_E_INVAL, "more than %d parts of gradients", HD_MAX_GRAD_PARTS);
	err = RESERVE(graph, part, nparts, part_cap, 1, diag);
	if (err == HD_OK)
		graph->part[graph->nparts++] = (struct hd_grad_part){ param, value };
	return err;
}

enum hd_err hd_graph_sort_parts(struct hd_graph *graph, struct hd_diag *diag)
{
	struct hd_grad_part *sorted = hd_arena_take(graph->arena, graph->nparts + 1u, sizeof *sorted);
	uint32_t *next = hd_arena_take(graph->arena, graph->nparams + 1u, sizeof *next);

	if (!sorted || !next)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u parts of gradients", graph->nparts);
	for (uint32_t i = 0; i < graph->nparts; i++)
		next[graph->part[i].param + 1]++;
	for (uint32_t p = 0; p < graph->nparams; p++)
		next[p + 1] += next[p];
	for (uint32_t i = 0; i < graph->nparts; i++)
		sorted[next[graph->part[i].param]++] = graph->part[i];
	for (uint32_t i = 0; i < graph->nparts; i++)
		graph->part[i] = sorted[i];
	return HD_OK;
}

uint32_t hd_graph_grad(const struct hd_graph *graph, uint32_t grad)
{
	return grad < graph->nparams ? graph->value[graph->param[grad].value].grad :
		graph->part[grad - graph->nparams].value;
}

uint32_t hd_graph_grad_param(const struct hd_graph *graph, uint32_t grad)
{
	return grad < graph->nparams ? grad : graph->part[grad - graph->nparams].param;
}

enum hd_err hd_graph_const(struct hd_graph *graph, enum hd_dtype dtype, uint8_t rank, const int64_t *dim,
	const void *data, uint32_t *value, struct hd_diag *diag)
{
	struct hd_value v = value_of(HD_CONST, dtype, rank, dim);
	enum hd_err err = hd_value_check(&v, diag);
	uint32_t at = (graph->consts_len + CONST_ALIGN - 1) / CONST_ALIGN * CONST_ALIGN;

	if (err != HD_OK)
		return err;
	if (hd_dims_product(v.dim, rank) < 0)
		return hd_fail(diag, HD_E_INVAL, "the extents of a constant cannot depend on the rows");
	uint64_t len = hd_value_bytes(&v, 1);
	if (len > HD_MAX_CONST_BYTES - at)
		return hd_fail(diag, HD_E_INVAL,
			"more than %d bytes of constants: make them parameters or inputs",
			HD_MAX_CONST_BYTES);
	err = RESERVE(graph, consts, consts_len, consts_cap, at - graph->consts_len + len, diag);
	if (err != HD_OK)
		return err;
	memcpy(graph->consts + at, data, len);
	v.data = at;
	err = value_add(graph, &v, value, diag);
	if (err == HD_OK)
		graph->consts_len = at + (uint32_t)len;
	return err;
}

static enum hd_err node_check(const struct hd_graph *graph, const struct hd_node *node, struct hd_diag *diag)
{
	if (node->op >= HD_NOPS)
		return hd_fail(diag, HD_E_INVAL, "op %u does not exist", node->op);
	const struct hd_op_row *row = &hd_ops[node->op];
	if (node->nin != row->nin)
		return hd_fail(diag, HD_E_INVAL, "%s: %u operands, it takes %u", row->name, node->nin,
			row->nin);
	for (int i = 0; i < node->nin; i++)
		if (node->in[i] >= graph->nvalues)
			return hd_fail(diag, HD_E_INVAL, "%s: operand %d does not exist", row->name, i);
	if (node->stage >= HD_MAX_STAGES)
		return hd_fail(diag, HD_E_INVAL, "%s: stage %u, there are at most %d", row->name, node->stage,
			HD_MAX_STAGES);
	if (graph->nnodes == HD_MAX_NODES)
		return hd_fail(diag, HD_E_INVAL, "more than %d nodes", HD_MAX_NODES);
	return HD_OK;
}

enum hd_err hd_graph_shapes(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value out[HD_MAX_OUT],
	struct hd_diag *diag)
{
	const struct hd_op_row *row = &hd_ops[node->op];
	enum hd_err err;

	for (int i = 0; i < HD_MAX_OUT; i++)
		out[i] = value_of(HD_TEMP, HD_F32, 0, NULL);
	err = hd_op_attr_check(node->op, &node->attr, diag);
	if (err == HD_OK)
		err = row->shape(graph, node, out, diag);
	for (int i = 0; i < row->nout && err == HD_OK; i++)
		err = hd_value_check(&out[i], diag);
	return err;
}

enum hd_err hd_graph_node(struct hd_graph *graph, uint16_t op, uint8_t nin, const uint32_t *in,
	const struct hd_attr *attr, uint16_t stage, uint32_t *out, struct hd_diag *diag)
{
	struct hd_node node = { .op = op, .nin = nin, .stage = stage, .of = HD_NONE, .out = graph->nvalues };
	struct hd_value made[HD_MAX_OUT];
	enum hd_err err;

	for (int i = 0; i < HD_MAX_IN; i++)
		node.in[i] = i < nin ? in[i] : HD_NONE;
	if (attr)
		node.attr = *attr;
	err = node_check(graph, &node, diag);
	if (err != HD_OK)
		return err;
	err = hd_graph_shapes(graph, &node, made, diag);
	if (err == HD_OK)
		err = RESERVE(graph, value, nvalues, value_cap, HD_MAX_OUT, diag);
	if (err == HD_OK)
		err = RESERVE(graph, node, nnodes, node_cap, 1, diag);
	if (err != HD_OK)
		return err;
	node.nout = hd_ops[op].nout;
	node.key = hd_ops[op].class == HD_OP_RANDOM ? graph->nrandom++ : 0;
	for (int i = 0; i < node.nout; i++) {
		made[i].node = graph->nnodes;
		graph->value[graph->nvalues++] = made[i];
	}
	graph->node[graph->nnodes++] = node;
	graph->nforward = graph->nnodes;
	*out = node.out;
	return HD_OK;
}

enum hd_err hd_graph_output(struct hd_graph *graph, const char *name, uint32_t value, struct hd_diag *diag)
{
	uint32_t at;
	enum hd_err err = HD_OK;

	if (value >= graph->nvalues)
		return hd_fail(diag, HD_E_INVAL, "output '%s': its value does not exist", name);
	if (hd_graph_find_output(graph, name) != HD_NONE || graph->noutputs == HD_MAX_ENDS)
		return hd_fail(diag, HD_E_INVAL, "output '%s' is declared twice, or there are more than %d",
			name, HD_MAX_ENDS);
	err = RESERVE(graph, output, noutputs, output_cap, 1, diag);
	if (err == HD_OK)
		err = hd_graph_name(graph, name, &at, diag);
	if (err == HD_OK)
		graph->output[graph->noutputs++] = (struct hd_output){ .name = at, .value = value };
	return err;
}

uint64_t hd_value_elems(const struct hd_value *value, uint64_t rows)
{
	uint64_t n = 1;

	for (int i = 0; i < value->rank; i++)
		n *= (uint64_t)hd_extent(value->dim[i], rows);
	return n;
}

uint64_t hd_value_bytes(const struct hd_value *value, uint64_t rows)
{
	return hd_value_elems(value, rows) * hd_dtype_bytes((enum hd_dtype)value->dtype);
}

enum hd_err hd_graph_cut(struct hd_graph *graph, uint32_t ncuts, const uint32_t *first, struct hd_diag *diag)
{
	uint16_t stage = 0;

	if (graph->nforward != graph->nnodes)
		return hd_fail(diag, HD_E_INVAL, "a graph is cut before its gradient is made");
	for (uint32_t i = 0; i < ncuts; i++)
		if (first[i] == 0 || first[i] >= graph->nnodes || (i && first[i] <= first[i - 1]) ||
			i + 1 >= HD_MAX_STAGES)
			return hd_fail(diag, HD_E_INVAL,
				"cut %u before node %u: cuts ascend and lie in 1..%u", i, first[i],
				graph->nnodes - 1);
	for (uint32_t i = 0; i < graph->nnodes; i++) {
		if (stage < ncuts && i == first[stage])
			stage++;
		graph->node[i].stage = stage;
	}
	return HD_OK;
}
