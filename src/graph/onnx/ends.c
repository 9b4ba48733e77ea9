/* Inputs before the nodes; outputs and the loss after them. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "graph/models/rows.h"
#include "graph/onnx/import.h"

#define T(name) ONNX__TENSOR_PROTO__DATA_TYPE__##name

static const struct hd_onnx_tensor *given(const struct hd_importer *im, const char *name)
{
	for (uint32_t k = 0; k < im->opts->nknown; k++)
		if (!strcmp(im->opts->known[k].name, name))
			return &im->opts->known[k];
	return NULL;
}

static enum hd_err take_known(struct hd_importer *im, const Onnx__ValueInfoProto *info, struct hd_onnx_val *v,
	const struct hd_onnx_tensor *t,
	struct hd_diag *diag)
{
	bool typed = info->type && info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
	struct hd_host_tensor *h = hd_arena_take(&im->file.arena, 1, sizeof *h);

	if (!typed || info->type->tensor_type->elem_type != t->type)
		return hd_fail(diag, HD_E_INPUT, "%s: input '%s' is given as %s", im->file.name, v->name,
			hd_onnx_type_text(t->type));
	enum hd_err err = h ? hd_host_make(h, &im->file.arena, t->type, t->rank, t->dim, diag) : hd_fail(diag,
		HD_E_NOMEM, "no memory for an input");

	for (uint64_t k = 0; !err && k < h->n; k++)
		if (h->is_float)
			h->f[k] = t->f[k];
		else
			h->i[k].a = t->i[k];
	if (err)
		return err;
	v->kind = HD_VAL_HOST;
	v->host = h;
	v->rank = t->rank;
	v->type = t->type;
	memcpy(v->dim, t->dim, sizeof v->dim);
	return HD_OK;
}

static enum hd_err extents(struct hd_importer *im, const Onnx__ValueInfoProto *info, struct hd_onnx_val *v,
	struct hd_diag *diag)
{
	const Onnx__TypeProto__Tensor *t = info->type && info->type->value_case ==
		ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? info->type->tensor_type : NULL;

	if (!t || !t->shape || t->shape->n_dim > HD_MAX_DIMS)
		return hd_fail(diag, HD_E_INPUT, "%s: input '%s' is no tensor of at most %d extents",
			im->file.name, v->name, HD_MAX_DIMS);
	v->type = t->elem_type;
	v->rank = (uint8_t)t->shape->n_dim;
	for (uint32_t d = 0; d < v->rank; d++) {
		const Onnx__TensorShapeProto__Dimension *e = t->shape->dim[d];
		bool number = e->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
		bool rows = d == 0 && !im->opts->as_is;
		if (!rows && (!number || e->dim_value < 1 || e->dim_value > INT32_MAX))
			return hd_fail(diag, HD_E_INPUT,
				"%s: extent %u of input '%s' is not fixed; only the first (the batch) may "
				"be free: export with "
				"dynamic_axes of axis 0 alone", im->file.name, d, v->name);
		if (rows && number && e->dim_value > 0 && e->dim_value < INT32_MAX)
			im->batch = e->dim_value;
		v->dim[d] = rows ? -1 : e->dim_value;
	}
	return HD_OK;
}

static enum hd_err dtype_of(struct hd_importer *im, const struct hd_onnx_val *v, enum hd_dtype *dtype,
	struct hd_diag *diag)
{
	bool is_int = v->type == T(INT64) || v->type == T(INT32);

	/* Node cases are given in many types; a job's data are not. */
	bool small = im->opts->as_is && (v->type == T(UINT8) || v->type == T(INT8) || v->type == T(UINT16) ||
		v->type == T(INT16));
	bool real = v->type == T(FLOAT) || v->type == T(BOOL) ||
		(im->opts->as_is && hd_onnx_type_is_float(v->type));
	if (!real && !small && !is_int)
		return hd_fail(diag, HD_E_INPUT, "%s: input '%s' is %s; Heddle feeds float, int32 and int64",
			im->file.name, v->name,
			hd_onnx_type_text(v->type));
	*dtype = is_int || small ? HD_I32 : HD_F32;
	return HD_OK;
}

/* The data inputs of a file: how many, and which of them a job calls x and y; HD_NONE: none. */
struct data_inputs { uint32_t n, x, y; };

/* Data inputs are called x and y in a job, whatever the file says, what else there is by its own name; node
 * cases are numbered. */
static void name_input(const struct hd_importer *im, const struct hd_onnx_val *v, uint32_t index,
	const struct data_inputs *data, char name[HD_MAX_NAME])
{
	if (im->opts->as_is)
		snprintf(name, HD_MAX_NAME, "in%u", index);
	else
		snprintf(name, HD_MAX_NAME, "%s", index == data->x ? "x" : index == data->y ? "y" : v->name);
}

static bool is_data(const struct hd_importer *im, const Onnx__ValueInfoProto *info)
{
	const struct hd_onnx_val *v = hd_onnx_find(im, info->name);

	return !v || (v->kind == HD_VAL_NONE && !given(im, info->name));
}

/* x is what is called so, or input_ids, else the first. The labels of a file with a loss of its own are
 * what is called y or labels, else the last. */
static struct data_inputs find_inputs(const struct hd_importer *im)
{
	static const char *const xs[] = { "input_ids", "x" }, *const ys[] = { "labels", "y" };
	const Onnx__GraphProto *g = im->file.graph;
	struct data_inputs data = { 0, 0, HD_NONE };
	bool named = false;

	for (size_t i = 0; i < g->n_input; i++) {
		if (!is_data(im, g->input[i]))
			continue;
		for (int k = 0; k < 2; k++) {
			data.x = !strcmp(g->input[i]->name, xs[k]) ? data.n : data.x;
			data.y = !strcmp(g->input[i]->name, ys[k]) ? data.n : data.y;
		}
		data.n++;
	}
	named = data.y != HD_NONE;
	if (im->opts->loss)
		data.y = HD_NONE;                 /* the job adds one */
	else if (!named && data.n > 1)
		data.y = data.x == data.n - 1 ? 0 : data.n - 1;
	return data;
}

static enum hd_err take_input(struct hd_importer *im, const Onnx__ValueInfoProto *info, uint32_t index,
	const struct data_inputs *data, struct hd_diag *diag)
{
	struct hd_onnx_val *v = hd_onnx_find(im, info->name);
	char name[HD_MAX_NAME];
	enum hd_dtype dtype = HD_F32;

	if (!v)                                           /* read by nothing */
		return HD_OK;
	if (v->maker != HD_NONE)
		return hd_fail(diag, HD_E_INPUT, "%s: input '%s' is made by a node too", im->file.name,
			v->name);
	/* an initializer listed as input, as old files do */
	if (v->kind != HD_VAL_NONE)
		return HD_OK;
	if (given(im, v->name))
		return take_known(im, info, v, given(im, v->name), diag);
	enum hd_err err = extents(im, info, v, diag);
	if (!err)
		err = dtype_of(im, v, &dtype, diag);
	if (err)
		return err;
	name_input(im, v, index, data, name);
	err = hd_graph_input(im->graph, name, dtype, v->rank ? v->rank : 1,
		v->rank ? v->dim : (int64_t[]){ 1 }, &v->value, diag);
	v->kind = HD_VAL_GRAPH;
	return err;
}

enum hd_err hd_onnx_inputs(struct hd_importer *im, struct hd_diag *diag)
{
	const Onnx__GraphProto *g = im->file.graph;
	uint32_t index = 0;
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < g->n_input; i++) {
		if (!g->input[i]->name || !*g->input[i]->name)
			return hd_fail(diag, HD_E_INPUT, "%s: input %zu has no name", im->file.name, i);
	}
	const struct data_inputs inputs = find_inputs(im);
	if (!im->opts->as_is && inputs.n == 0)
		return hd_fail(diag, HD_E_INPUT,
			"%s: no data inputs; a job feeds x, and what else the file names",
			im->file.name);
	for (size_t i = 0; i < g->n_input && !err; i++) {
		bool data = is_data(im, g->input[i]);
		err = take_input(im, g->input[i], index, &inputs, diag);
		index += data;
	}
	return err;
}

/* ---- the end */

static enum hd_err put_outputs(struct hd_importer *im, struct hd_diag *diag)
{
	const Onnx__GraphProto *g = im->file.graph;
	struct hd_onnx_call call = { .im = im };
	char name[32];
	uint32_t value;

	for (size_t i = 0; i < g->n_output; i++) {
		struct hd_onnx_val *v = hd_onnx_find(im, g->output[i]->name);
		if (!v || v->kind == HD_VAL_NONE || (v->kind == HD_VAL_GRAPH && v->value == HD_NONE &&
			v->turned == HD_NONE))
			return hd_fail(diag, HD_E_INPUT, "%s: output '%s' is made by no node", im->file.name,
				g->output[i]->name);
		enum hd_err err = hd_onnx_value_of(&call, v, &value);
		snprintf(name, sizeof name, "out%zu", i);
		if (!err)
			err = hd_graph_output(im->graph, name, value, &call.why);
		if (err)
			return hd_fail(diag, HD_E_INPUT, "%s: output '%s': %s", im->file.name, v->name,
				call.why.text);
	}
	return HD_OK;
}

/* Outputs that a loss judges beside the first one get their names. */
static enum hd_err judged_outputs(struct hd_importer *im, const struct hd_model_opts *loss,
	struct hd_diag *diag)
{
	struct hd_onnx_call call = { .im = im };
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < loss->nterms && !err; i++) {
		const char *of = loss->term[i].of;
		struct hd_onnx_val *v = NULL;
		uint32_t value;
		if (!strcmp(of, "logits") || hd_graph_find_output(im->graph, of) != HD_NONE)
			continue;
		for (size_t k = 0; k < im->file.graph->n_output && !v; k++)
			if (!strcmp(im->file.graph->output[k]->name, of))
				v = hd_onnx_find(im, of);
		if (!v)
			return hd_fail(diag, HD_E_INPUT, "%s: loss: it has no output '%.60s'",
				im->file.name, of);
		err = hd_onnx_value_of(&call, v, &value);
		err = err ? hd_fail(diag, HD_E_INPUT, "%s: output '%s': %s", im->file.name, of,
			call.why.text) :
			hd_graph_output(im->graph, of, value, diag);
	}
	return err;
}

/* logits [rows,..,classes]: a row has as many predictions as the extents between. */
static enum hd_err add_loss(struct hd_importer *im, uint32_t logits, struct hd_diag *diag)
{
	struct hd_maker m = { im->graph, diag, HD_OK };
	struct hd_model_opts loss = *im->opts->loss;
	uint32_t x = hd_graph_find_input(im->graph, "x");
	const struct hd_value *v = &im->graph->value[logits];
	int64_t classes = v->dim[v->rank - 1], positions = v->rank == 3 ? v->dim[1] : 1;

	if (x == HD_NONE || v->dtype != HD_F32 || v->rank < 2 || v->rank > 3 || v->dim[0] != -1 ||
		classes < 1 || positions < 1)
		return hd_fail(diag, HD_E_INPUT,
			"%s: the output is %s; a loss needs f32 [rows,classes] or [rows,positions,classes]",
			im->file.name,
			hd_value_shape(v).at);
	if (!hd_losses[loss.loss].classes && positions != 1)
		return hd_fail(diag, HD_E_INPUT, "%s: the output is %s; %s needs [rows,values]",
			im->file.name, hd_value_shape(v).at, hd_losses[loss.loss].name);
	if (positions > 1 && im->opts->token_if_rows)
		loss.normalize = HD_NORMALIZE_TOKEN;
	enum hd_err err = judged_outputs(im, &loss, diag);
	if (!err)
		hd_make_ends(&m, &loss, im->graph->input[x], logits, positions, classes);
	return err ? err : m.err;
}

/* The file's own loss: a mean or sum over the rows, which become our sum and its weight. */
static enum hd_err own_loss(struct hd_importer *im, const struct hd_onnx_val *v, struct hd_diag *diag)
{
	struct hd_maker m = { im->graph, diag, HD_OK };
	uint32_t y = hd_graph_find_input(im->graph, "y"), x = hd_graph_find_input(im->graph, "x");
	bool mean = v->mean_of != HD_NONE;
	uint32_t of = mean ? v->mean_of : v->sum_of;
	const struct hd_value *each = &im->graph->value[of];
	const struct hd_value *yv = y != HD_NONE ? &im->graph->value[im->graph->input[y]] : NULL;
	bool labels = mean && yv && yv->dtype == HD_I32 && hd_dims_same(each, yv);

	if (x == HD_NONE || each->dim[0] != -1)
		return hd_fail(diag, HD_E_INPUT, "%s: output '%s' is no sum over the rows of x",
			im->file.name, v->name);
	/* ids count one by one */
	uint32_t loss = of, rows = im->graph->value[im->graph->input[x]].dtype == HD_F32 ?
		im->graph->input[x] : of;
	/* A mean over positions too is one over rows of what each row's positions have on average. */
	if (mean && !labels && each->rank > 1)
		loss = hd_make1(&m, HD_OP_REDUCE_MEAN, of, (struct hd_attr){ .i =
			{ (1 << each->rank) - 2 } });
	hd_make_output(&m, "loss", hd_make1(&m, HD_OP_SUM64, loss, (struct hd_attr){ .i = { 0 } }));
	hd_make_output(&m, "weight", hd_make1(&m, HD_OP_COUNT64, labels ? im->graph->input[y] : rows,
		(struct hd_attr){ .i = { 0 } }));
	return m.err;
}

static enum hd_err put_ends(struct hd_importer *im, struct hd_diag *diag)
{
	const Onnx__GraphProto *g = im->file.graph;
	struct hd_onnx_call call = { .im = im };
	struct hd_onnx_val *loss = NULL, *logits = NULL;
	uint32_t value;
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < g->n_output; i++) {
		struct hd_onnx_val *v = hd_onnx_find(im, g->output[i]->name);
		bool is_loss = v && (v->mean_of != HD_NONE || v->sum_of != HD_NONE);
		if (is_loss && !loss)
			loss = v;
		else if (v && !is_loss && !logits && v->kind == HD_VAL_GRAPH)
			logits = v;
	}
	if (im->opts->loss && loss)
		return hd_fail(diag, HD_E_INPUT,
			"%s: output '%s' is a loss of the file's own; write model.loss: none", im->file.name,
			loss->name);
	if (!im->opts->loss && !loss)
		return hd_fail(diag, HD_E_INPUT,
			"%s: no output is a loss over the batch; set model.loss to one, as "
				"cross-entropy or mse",
			im->file.name);
	if (!logits && !loss)
		return hd_fail(diag, HD_E_INPUT, "%s: the graph has no output that depends on its input",
			im->file.name);
	if (logits)
		err = hd_onnx_value_of(&call, logits, &value);
	if (err)
		return hd_fail(diag, HD_E_INPUT, "%s: output '%s': %s", im->file.name, logits->name,
			call.why.text);
	if (loss)
		err = own_loss(im, loss, diag);
	else
		return add_loss(im, value, diag);
	return err || !logits ? err : hd_graph_output(im->graph, "logits", value, diag);
}

enum hd_err hd_onnx_outputs(struct hd_importer *im, struct hd_diag *diag)
{
	for (size_t i = 0; i < im->file.graph->n_output; i++)
		if (!im->file.graph->output[i]->name)
			return hd_fail(diag, HD_E_INPUT, "%s: output %zu has no name", im->file.name, i);
	return im->opts->as_is ? put_outputs(im, diag) : put_ends(im, diag);
}
