#include "graph/onnx/import.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "graph/onnx/owners.h"
#include "graph/onnx/pattern.h"
#include "graph/onnx/wire.h"
#include "graph/verify.h"

/* ---- names */

static uint32_t place(const struct hd_importer *im, const char *name)
{
	uint32_t mask = im->val_cap - 1, at = (uint32_t)hd_hash64(name, strlen(name)) & mask;

	while (im->val[at].name && strcmp(im->val[at].name, name) != 0)
		at = (at + 1) & mask;
	return at;
}

struct hd_onnx_val *hd_onnx_find(const struct hd_importer *im, const char *name)
{
	struct hd_onnx_val *v = &im->val[place(im, name)];

	return v->name ? v : NULL;
}

/* The value of that name, made if it is new; the table has room for every name of the file. */
struct hd_onnx_val *hd_onnx_note(struct hd_importer *im, const char *name)
{
	struct hd_onnx_val *v = &im->val[place(im, name)];

	if (!v->name)
		*v = (struct hd_onnx_val){ .name = name, .value = HD_NONE, .turned = HD_NONE,
			.maker = HD_NONE, .first = HD_NONE, .sum_of = HD_NONE,
			.mean_of = HD_NONE };
	return v;
}

static enum hd_err note_inits(struct hd_importer *im, struct hd_diag *diag)
{
	uint64_t n;

	for (uint32_t i = 0; i < im->file.ninit; i++) {
		const struct hd_onnx_init *init = &im->file.init[i];
		if (!init->tensor->name || !*init->tensor->name)
			return hd_fail(diag, HD_E_INPUT, "%s: initializer %u has no name", im->file.name, i);
		struct hd_onnx_val *v = hd_onnx_note(im, init->tensor->name);
		if (v->kind != HD_VAL_NONE)
			return hd_fail(diag, HD_E_INPUT, "%s: two initializers are called '%s'",
				im->file.name, v->name);
		enum hd_err err = hd_onnx_extents(init->tensor, v->dim, &n, diag);
		if (err)
			return err;
		v->kind = HD_VAL_INIT;
		v->rank = (uint8_t)init->tensor->n_dims;
		v->type = init->tensor->data_type;
		v->init = init;
	}
	return HD_OK;
}

/* What a branch gives is read by its If; a name that nothing makes has room in the table by now. */
static void note_results(struct hd_importer *im)
{
	for (uint32_t i = 0; i < im->nbranches; i++)
		for (size_t k = 0; k < im->branch[i].n[0] + im->branch[i].n[1]; k++) {
			const Onnx__NodeProto *node = im->file.graph->node[im->branch[i].from[0] + k];
			for (size_t out = 0; out < node->n_output; out++)
				if (*node->output[out])
					hd_onnx_note(im, node->output[out])->nuses++;
		}
}

static enum hd_err note_nodes(struct hd_importer *im, struct hd_diag *diag)
{
	const Onnx__GraphProto *g = im->file.graph;

	for (size_t i = 0; i < g->n_node; i++) {
		if (!g->node[i]->op_type)
			return hd_fail(diag, HD_E_INPUT, "%s: node %zu has no op type", im->file.name, i);
		for (size_t k = 0; k < g->node[i]->n_input; k++)
			if (*g->node[i]->input[k])
				hd_onnx_note(im, g->node[i]->input[k])->nuses++;
		for (size_t k = 0; k < g->node[i]->n_output; k++) {
			if (!*g->node[i]->output[k])
				continue;
			struct hd_onnx_val *v = hd_onnx_note(im, g->node[i]->output[k]);
			if (v->maker != HD_NONE || v->kind != HD_VAL_NONE)
				return hd_fail(diag, HD_E_INPUT, "%s: '%s' is made twice", im->file.name,
					v->name);
			v->maker = (uint32_t)i;
		}
	}
	for (size_t i = 0; i < g->n_output; i++)
		if (g->output[i]->name && *g->output[i]->name)
			hd_onnx_note(im, g->output[i]->name)->nuses++;
	note_results(im);
	return HD_OK;
}

static enum hd_err make_table(struct hd_importer *im, struct hd_diag *diag)
{
	const Onnx__GraphProto *g = im->file.graph;
	uint64_t n = im->file.ninit + g->n_input + g->n_output, cap = 64;

	for (size_t i = 0; i < g->n_node; i++)
		n += g->node[i]->n_input + g->node[i]->n_output;
	while (cap < 2 * n)
		cap *= 2;
	if (cap > UINT32_MAX || !(im->val = hd_arena_take(&im->file.arena, cap, sizeof *im->val)))
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for %llu names", im->file.name,
			(unsigned long long)n);
	im->val_cap = (uint32_t)cap;
	im->match = hd_arena_take(&im->file.arena, g->n_node + 1, sizeof *im->match);
	if (!im->match)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for %zu nodes", im->file.name, g->n_node);
	hd_onnx_leave_branches(im);
	enum hd_err err = note_inits(im, diag);
	if (!err)
		err = note_nodes(im, diag);
	return err ? err : hd_onnx_owners(im, diag);
}

/* ---- what cannot be had */

enum hd_err hd_onnx_no(struct hd_onnx_call *call, const char *fmt, ...)
{
	char text[sizeof call->why.text];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	return hd_fail(&call->why, HD_E_INPUT, "%s", text);
}

static void complain(struct hd_importer *im, const Onnx__NodeProto *node, const char *why)
{
	const char *name = node->name && *node->name ? node->name : node->n_output ? node->output[0] : "";

	hd_text_addf(&im->bad, "%s%s '%s'%s%s", im->nbad++ ? "; " : "", node->op_type, name, why ? ": " : "",
		why ? why : "");
	if (im->opts->report)
		hd_text_addf(im->opts->report, "%s '%s': %s\n", node->op_type, name,
			why ? why : "no such op in Heddle");
}

static void spoil(struct hd_importer *im, const Onnx__NodeProto *node)
{
	for (size_t k = 0; k < node->n_output; k++)
		if (*node->output[k])
			hd_onnx_find(im, node->output[k])->kind = HD_VAL_BAD;
}

/* ---- values */

/* Letters, digits and _ . - / only, a letter or _ first ("0.weight" is _0.weight), and not yet taken. */
static enum hd_err clean_name(struct hd_importer *im, const char *name, char out[HD_MAX_NAME],
	struct hd_diag *diag)
{
	size_t n = 0;

	for (const char *p = name; *p && n < HD_MAX_NAME - 12; p++) {
		bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_';
		bool later = (*p >= '0' && *p <= '9') || *p == '.' || *p == '-' || *p == '/';
		if (n == 0 && later)
			out[n++] = '_';
		out[n++] = letter || later ? *p : '_';
	}
	out[n] = '\0';
	for (unsigned k = 2; hd_graph_find_param(im->graph, out) != HD_NONE ||
		hd_graph_find_input(im->graph, out) != HD_NONE ||
	     hd_graph_find_buffer(im->graph, out) != HD_NONE; k++) {
		if (k > HD_MAX_PARAMS)
			return hd_fail(diag, HD_E_INPUT, "%s: too many tensors have names like '%s'",
				im->file.name, name);
		snprintf(out + n, HD_MAX_NAME - n, "-%u", k);
	}
	return HD_OK;
}

/* The values as f32: the file's own bytes where they are that already. */
static enum hd_err weights_of(struct hd_importer *im, const struct hd_onnx_val *v,
	struct hd_onnx_weight *weight, struct hd_diag *diag)
{
	const struct hd_onnx_init *init = v->init;
	struct hd_host_tensor host;
	int64_t dim[HD_ONNX_DIMS];
	uint64_t n;

	if (!init)
		return hd_fail(diag, HD_E_INPUT,
			"tensor '%s' is used as a parameter and has no values of its own", v->name);
	enum hd_err err = hd_onnx_extents(init->tensor, dim, &n, diag);
	if (err)
		return err;
	weight->len_bytes = n * sizeof(float);
	if (v->type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT && init->raw) {
		if (init->raw_len != weight->len_bytes)
			return hd_fail(diag, HD_E_INPUT,
				"tensor '%s' does not hold the %llu elements of its extents", v->name,
				(unsigned long long)n);
		uint8_t *copy = init->tensor->has_raw_data ? hd_arena_take(im->graph->arena, n,
			sizeof(float)) : NULL;
		if (init->tensor->has_raw_data && !copy)
			return hd_fail(diag, HD_E_NOMEM, "no memory for tensor '%s'", v->name);
		if (copy)
			memcpy(copy, init->raw, weight->len_bytes);
		weight->at = copy ? copy : init->raw;
		return HD_OK;
	}
	err = hd_host_read(&host, &im->file.arena, init, diag);
	float *f = err ? NULL : hd_arena_take(im->graph->arena, n, sizeof *f);
	if (!err && !f)
		return hd_fail(diag, HD_E_NOMEM, "no memory for tensor '%s'", v->name);
	for (uint64_t k = 0; !err && k < n; k++)
		f[k] = (float)host.f[k];
	weight->at = f;
	return err;
}

/* What a job that starts from scratch gets: the spread of the file's values, or their one value. */
static void init_of(const struct hd_onnx_weight *weight, enum hd_init_kind *init, float *scale)
{
	uint64_t n = weight->len_bytes / sizeof(float), zeros = 0, ones = 0;
	double sum = 0;
	float f;

	for (uint64_t k = 0; k < n; k++) {
		memcpy(&f, (const uint8_t *)weight->at + k * sizeof f, sizeof f);
		zeros += f == 0;
		ones += f == 1;
		sum += (double)f * (double)f;
	}
	double rms = n ? __builtin_sqrt(sum / (double)n) : 0;
	*init = ones == n ? HD_INIT_ONES : zeros == n || !(rms > 0 && rms < 1e6) ? HD_INIT_ZEROS :
		HD_INIT_NORMAL;
	*scale = *init == HD_INIT_NORMAL ? (float)rms : 0;
}

static enum hd_err keep(struct hd_arena *arena, struct hd_onnx_weight **at, uint32_t *cap, uint32_t n,
	struct hd_onnx_weight weight, struct hd_diag *diag)
{
	if (n == *cap) {
		uint32_t more = *cap ? 2 * *cap : 64;
		struct hd_onnx_weight *grown = hd_arena_take(arena, more, sizeof *grown);
		if (!grown)
			return hd_fail(diag, HD_E_NOMEM, "no memory for %u tensors", more);
		if (*cap)
			memcpy(grown, *at, *cap * sizeof *grown);
		*at = grown;
		*cap = more;
	}
	(*at)[n] = weight;
	return HD_OK;
}

static enum hd_err make_param(struct hd_importer *im, struct hd_onnx_val *v, struct hd_diag *diag)
{
	struct hd_onnx_weight weight = { 0 };
	enum hd_init_kind init;
	char name[HD_MAX_NAME];
	float scale;
	enum hd_err err = weights_of(im, v, &weight, diag);

	if (!err)
		err = clean_name(im, v->name, name, diag);
	if (err)
		return err;
	init_of(&weight, &init, &scale);
	err = keep(im->graph->arena, &im->weight, &im->weight_cap, im->graph->nparams, weight, diag);
	return err ? err : hd_graph_param(im->graph, name, v->rank ? v->rank : 1,
		v->rank ? v->dim : (int64_t[]){ 1 }, init, scale, &v->value, diag);
}

enum hd_err hd_onnx_buffer(struct hd_onnx_call *call, uint32_t i, uint32_t *value)
{
	struct hd_onnx_val *v = hd_onnx_in(call, i);
	struct hd_importer *im = call->im;
	struct hd_onnx_weight weight = { 0 };
	enum hd_init_kind init;
	char name[HD_MAX_NAME];
	float scale;

	if (!v || v->kind != HD_VAL_INIT || v->value != HD_NONE || !hd_onnx_type_is_float(v->type))
		return hd_onnx_value(call, i, value);
	enum hd_err err = weights_of(im, v, &weight, &call->why);
	if (!err)
		err = clean_name(im, v->name, name, &call->why);
	if (!err)
		err = keep(im->graph->arena, &im->buffer, &im->buffer_cap, im->graph->nbuffers, weight,
			&call->why);
	if (err)
		return err;
	init_of(&weight, &init, &scale);
	err = hd_graph_buffer(im->graph, name, v->rank ? v->rank : 1, v->rank ? v->dim : (int64_t[]){ 1 },
		init == HD_INIT_ONES ? init : HD_INIT_ZEROS,
		&v->value, &call->why);
	*value = v->value;
	return err == HD_E_INVAL ? HD_E_INPUT : err;
}

/* A known tensor as a constant of our graph: f32 (bools too: what `where` takes), or i32. */
static enum hd_err make_const(struct hd_importer *im, const struct hd_host_tensor *h, uint32_t *value,
	struct hd_diag *diag)
{
	bool is_float = h->is_float || h->type == ONNX__TENSOR_PROTO__DATA_TYPE__BOOL;
	union { float f; int32_t i; } *at = h->n ? hd_arena_take(&im->file.arena, h->n, sizeof *at) : NULL;

	if (!h->n)
		return hd_fail(diag, HD_E_INPUT, "a constant has no elements");
	if (!at)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a constant");
	for (uint64_t k = 0; k < h->n; k++)
		if (is_float)
			at[k].f = h->is_float ? (float)h->f[k] : (float)h->i[k].a;
		else if (h->i[k].rows)
			return hd_fail(diag, HD_E_INPUT, "a number of rows is used as a value");
		else if (!hd_i32_from(h->i[k].a, &at[k].i))
			return hd_fail(diag, HD_E_INPUT,
				"%lld does not fit 32 bits, which integers have here", (long long)h->i[k].a);
	return hd_graph_const(im->graph, is_float ? HD_F32 : HD_I32, h->rank ? h->rank : 1,
		h->rank ? h->dim : (int64_t[]){ 1 }, at, value, diag);
}

/* Integers, and floats without extents (what an exporter writes for literals) unless the file says
 * otherwise. */
bool hd_onnx_is_constant(const struct hd_onnx_val *v)
{
	if (v->kind != HD_VAL_INIT || v->role == HD_ROLE_PARAM)
		return false;
	return v->role == HD_ROLE_CONST || !hd_onnx_type_is_float(v->type) || v->rank == 0;
}

static enum hd_err read_init(struct hd_importer *im, struct hd_onnx_val *v, struct hd_diag *diag)
{
	if (v->host || v->kind != HD_VAL_INIT)
		return HD_OK;
	struct hd_host_tensor *host = hd_arena_take(&im->file.arena, 1, sizeof *host);
	if (!host)
		return hd_fail(diag, HD_E_NOMEM, "no memory for tensor '%s'", v->name);
	enum hd_err err = hd_host_read(host, &im->file.arena, v->init, diag);
	if (!err)
		v->host = host;
	return err;
}

static enum hd_err turn(struct hd_onnx_call *call, uint32_t value, uint32_t *out);

enum hd_err hd_onnx_value_of(struct hd_onnx_call *call, struct hd_onnx_val *v, uint32_t *value)
{
	struct hd_importer *im = call->im;
	enum hd_err err = HD_OK;

	if (v->value == HD_NONE && hd_onnx_is_constant(v))
		err = read_init(im, v, &call->why);
	if (v->value == HD_NONE && !err) {
		if (v->turned != HD_NONE)
			err = turn(call, v->turned, &v->value);
		else if (v->host)
			err = make_const(im, v->host, &v->value, &call->why);
		else
			err = make_param(im, v, &call->why);
	}
	*value = v->value;
	return err == HD_E_INVAL ? HD_E_INPUT : err;
}

enum hd_err hd_onnx_value(struct hd_onnx_call *call, uint32_t i, uint32_t *value)
{
	if (i >= call->nin || !call->in[i])
		return hd_onnx_no(call, "input %u is missing", i);
	return hd_onnx_value_of(call, call->in[i], value);
}

const struct hd_host_tensor *hd_onnx_known(struct hd_onnx_call *call, uint32_t i)
{
	struct hd_onnx_val *v = hd_onnx_in(call, i);

	if (!v || (v->kind == HD_VAL_INIT && read_init(call->im, v, NULL)))
		return NULL;
	return v->host;
}

bool hd_onnx_number(struct hd_onnx_call *call, uint32_t i, double *number)
{
	struct hd_onnx_val *v = hd_onnx_in(call, i);

	if (!v || (v->kind == HD_VAL_INIT && !hd_onnx_is_constant(v)))
		return false;
	const struct hd_host_tensor *h = hd_onnx_known(call, i);
	if (!h || h->n != 1 || (!h->is_float && h->i[0].rows))
		return false;
	*number = h->is_float ? h->f[0] : (double)h->i[0].a;
	return true;
}

enum hd_err hd_onnx_ints(struct hd_onnx_call *call, const char *name, uint32_t i, struct hd_sym *at,
	uint32_t cap, uint32_t *n, bool *given)
{
	const Onnx__AttributeProto *a = name ? hd_onnx_attr(call->node, name) : NULL;
	struct hd_onnx_val *v = i == HD_NONE ? NULL : hd_onnx_in(call, i);
	const struct hd_host_tensor *h = v ? hd_onnx_known(call, i) : NULL;
	uint64_t have = h ? h->n : a ? a->n_ints : 0;

	*n = 0;
	*given = a || v;
	if (v && (!h || h->is_float))
		return hd_onnx_no(call, "its input %u ('%s') is not known before the graph runs", i, v->name);
	if (have > cap)
		return hd_onnx_no(call, "%s has %llu numbers, at most %u", name ? name : "an input",
			(unsigned long long)have, cap);
	for (uint64_t k = 0; k < have; k++)
		at[k] = h ? h->i[k] : (struct hd_sym){ a->ints[k], 0 };
	*n = (uint32_t)have;
	return HD_OK;
}

/* ---- nodes of ours */

enum hd_err hd_onnx_node(struct hd_onnx_call *call, enum hd_op op, uint32_t nin, const uint32_t *in,
	struct hd_attr attr, uint32_t *out)
{
	enum hd_err err = hd_graph_node(call->im->graph, (uint16_t)op, (uint8_t)nin, in, &attr, 0, out,
		&call->why);

	return err == HD_E_INVAL ? HD_E_INPUT : err;
}

enum hd_err hd_onnx_node1(struct hd_onnx_call *call, enum hd_op op, uint32_t a, struct hd_attr attr,
	uint32_t *out)
{
	return hd_onnx_node(call, op, 1, &a, attr, out);
}

enum hd_err hd_onnx_node2(struct hd_onnx_call *call, enum hd_op op, uint32_t a, uint32_t b,
	struct hd_attr attr, uint32_t *out)
{
	return hd_onnx_node(call, op, 2, (uint32_t[]){ a, b }, attr, out);
}

const struct hd_value *hd_onnx_shape(const struct hd_onnx_call *call,
	uint32_t value) { return &call->im->graph->value[value]; }

enum hd_err hd_onnx_reshape(struct hd_onnx_call *call, uint32_t value, uint32_t rank, const int64_t *dim,
	uint32_t *out)
{
	const struct hd_value *v = hd_onnx_shape(call, value);
	struct hd_attr attr = { .i = { 0 } };

	if (rank > HD_MAX_DIMS)
		return hd_onnx_no(call, "%u extents; at most %d", rank, HD_MAX_DIMS);
	for (uint32_t d = 0; d < rank; d++)
		if (!hd_i32_from(dim[d], &attr.i[d]))
			return hd_onnx_no(call, "extent %lld is too large", (long long)dim[d]);
	attr.i[0] = rank ? attr.i[0] : 1;
	rank = rank ? rank : 1;
	bool same = v->rank == rank;
	for (uint32_t d = 0; d < rank && same; d++)
		same = v->dim[d] == attr.i[d];
	*out = value;
	if (same)
		return HD_OK;
	/* A view of a view is one of what that sees. */
	if (v->kind == HD_TEMP && call->im->graph->node[v->node].op == HD_OP_RESHAPE)
		return hd_onnx_reshape(call, call->im->graph->node[v->node].in[0], rank, dim, out);
	return hd_onnx_node1(call, HD_OP_RESHAPE, value, attr, out);
}

static enum hd_err turn(struct hd_onnx_call *call, uint32_t value, uint32_t *out)
{
	return hd_onnx_permute(call, value, 2, (uint32_t[]){ 1, 0 }, out);
}

enum hd_err hd_onnx_float_const(struct hd_onnx_call *call, double number, uint32_t *value)
{
	float f = (float)number;
	enum hd_err err = hd_graph_const(call->im->graph, HD_F32, 1, (int64_t[]){ 1 }, &f, value, &call->why);

	return err == HD_E_INVAL ? HD_E_INPUT : err;
}

/* ---- outputs of a node */

struct hd_onnx_val *hd_onnx_out(struct hd_onnx_call *call, uint32_t k)
{
	return k < call->node->n_output && *call->node->output[k] ? hd_onnx_find(call->im,
		call->node->output[k]) : NULL;
}

enum hd_err hd_onnx_put(struct hd_onnx_call *call, uint32_t k, uint32_t value, uint32_t rank,
	const int64_t *dim)
{
	struct hd_onnx_val *v = hd_onnx_out(call, k);

	if (!v)
		return HD_OK;
	if (rank > HD_ONNX_DIMS)
		return hd_onnx_no(call, "%u extents; at most %d", rank, HD_ONNX_DIMS);
	v->kind = HD_VAL_GRAPH;
	v->value = value;
	v->rank = (uint8_t)rank;
	for (uint32_t d = 0; d < rank; d++)
		v->dim[d] = dim[d];
	v->type = value == HD_NONE || hd_onnx_shape(call, value)->dtype == HD_F32 ?
		ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT :
		ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
	return HD_OK;
}

enum hd_err hd_onnx_put_like(struct hd_onnx_call *call, uint32_t k, uint32_t value)
{
	const struct hd_value *v = hd_onnx_shape(call, value);

	return hd_onnx_put(call, k, value, v->rank, v->dim);
}

enum hd_err hd_onnx_put_host(struct hd_onnx_call *call, uint32_t k, struct hd_host_tensor *host)
{
	struct hd_onnx_val *v = hd_onnx_out(call, k);

	if (!v)
		return HD_OK;
	v->kind = HD_VAL_HOST;
	v->host = host;
	v->rank = host->rank;
	v->type = host->type;
	memcpy(v->dim, host->dim, sizeof v->dim);
	return HD_OK;
}

/* ---- the walk over the nodes */

/* 1: all inputs are known; 0: some are not; -1: one is bad or does not exist. */
static int state_of(struct hd_onnx_call *call, const char **missing)
{
	bool known = true;

	*missing = NULL;
	for (uint32_t i = 0; i < call->nin; i++) {
		struct hd_onnx_val *v = call->in[i];
		if (!v)
			continue;
		if (v->kind == HD_VAL_NONE)
			*missing = v->name;
		if (v->kind == HD_VAL_NONE || v->kind == HD_VAL_BAD)
			return -1;
		known = known && (v->kind == HD_VAL_HOST || hd_onnx_is_constant(v));
	}
	return known && call->nin;
}

static enum hd_err fold(struct hd_onnx_call *call)
{
	const struct hd_host_tensor *in[HD_ONNX_MAX_IN];
	uint32_t nout = (uint32_t)call->node->n_output;
	struct hd_host_tensor *out = hd_arena_take(&call->im->file.arena, nout + 1, sizeof *out);
	struct hd_host_fold x = { call->node, call->im->file.opset, in, call->nin, out, nout,
		&call->im->file.arena, &call->why };

	if (!out)
		return hd_fail(&call->why, HD_E_NOMEM, "no memory for a constant");
	for (uint32_t i = 0; i < call->nin; i++) {
		enum hd_err err = call->in[i] ? read_init(call->im, call->in[i], &call->why) : HD_OK;
		if (err)
			return err;
		in[i] = call->in[i] ? call->in[i]->host : NULL;
	}
	enum hd_err err = hd_host_fold(&x);
	for (uint32_t k = 0; k < nout && !err; k++)
		err = hd_onnx_put_host(call, k, &out[k]);
	return err;
}

/* A constant repeated over the rows is none: nodes make it. */
static bool grows(struct hd_onnx_call *call)
{
	bool expand = !strcmp(call->node->op_type, "Expand");
	const struct hd_host_tensor *shape = expand || !strcmp(call->node->op_type, "ConstantOfShape") ?
		hd_onnx_known(call, expand) : NULL;

	return shape && !hd_host_plain(shape);
}

static const struct hd_onnx_op *row_of(const Onnx__NodeProto *node)
{
	bool ours = !node->domain || !*node->domain || !strcmp(node->domain, "ai.onnx");

	return ours ? hd_onnx_op_find(node->op_type) : NULL;
}

static enum hd_err take_inputs(struct hd_onnx_call *call)
{
	const Onnx__NodeProto *node = call->node;
	const struct hd_onnx_match *m = call->match && call->match->op ? call->match : NULL;

	call->nin = m ? m->nin : (uint32_t)node->n_input;
	if (!m && (node->n_input > HD_ONNX_MAX_IN || node->n_output > HD_ONNX_MAX_OUT || node->n_output == 0))
		return hd_onnx_no(call, "%zu inputs and %zu outputs", node->n_input, node->n_output);
	for (uint32_t i = 0; i < call->nin; i++) {
		const char *name = m ? m->in[i] : node->input[i];
		call->in[i] = *name ? hd_onnx_find(call->im, name) : NULL;
	}
	return HD_OK;
}

/* HD_E_INPUT: noted, go on; anything else ends the import. */
enum hd_err hd_onnx_take(struct hd_importer *im, size_t at, struct hd_diag *diag)
{
	const Onnx__NodeProto *node = im->file.graph->node[at];
	struct hd_onnx_call *call = hd_arena_take(&im->file.arena, 1, sizeof *call);
	const struct hd_onnx_op *row = row_of(node);
	const char *missing = NULL;

	if (!call)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for the node", im->file.name);
	*call = (struct hd_onnx_call){ .im = im, .node = node, .match = &im->match[at] };
	enum hd_err err = take_inputs(call);
	int state = err ? 0 : state_of(call, &missing);
	bool old = im->file.opset < (row && row->since ? row->since : HD_ONNX_OPSET_MIN);
	bool folds = state == 1 && !grows(call) && !im->match[at].op && hd_host_folds(node->op_type) &&
		(!node->domain || !*node->domain);
	if (missing)
		err = hd_onnx_no(call, "its input '%s' is made by nothing before it", missing);
	else if (old && (row || hd_host_folds(node->op_type)))
		err = hd_onnx_no(call, "has changed since opset %lld: export with opset_version=17",
			(long long)im->file.opset);
	else if (!row && !folds && !im->match[at].op && !(state < 0 && hd_host_folds(node->op_type)))
		err = HD_E_INPUT;
	else if (state < 0) {
		spoil(im, node);
		return HD_OK;
	} else if (!err) {
		err = im->match[at].op ? im->match[at].op->lower(call) : folds ? fold(call) :
			row->lower(call);
	}
	if (err == HD_E_INPUT || err == HD_E_NOTFOUND) {
		complain(im, node, call->why.text[0] ? call->why.text : NULL);
		spoil(im, node);
		return HD_OK;
	}
	return err ? hd_fail(diag, err, "%s: node %zu (%s): %s", im->file.name, at, node->op_type,
		call->why.text) : HD_OK;
}

static enum hd_err take_nodes(struct hd_importer *im, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < im->file.graph->n_node && !err; i++)
		if (!im->match[i].inside)
			err = hd_onnx_take(im, i, diag);
	if (!err && im->nbad)
		err = hd_fail(diag, HD_E_INPUT, "%s: %u node%s cannot be had: %s", im->file.name, im->nbad,
			im->nbad == 1 ? "" : "s", im->bad.at);
	return err;
}

static enum hd_err import(struct hd_importer *im, const void *bytes, uint64_t len, const char *name,
	struct hd_diag *diag)
{
	enum hd_err err = hd_onnx_file_open(&im->file, name, bytes, len, im->opts, diag);

	if (err)
		return err;
	hd_text_init(&im->bad, &im->file.arena);
	err = hd_onnx_branches(im, diag);
	if (!err)
		err = make_table(im, diag);
	if (!err)
		err = hd_onnx_inputs(im, diag);
	if (!err && im->file.opset >= HD_ONNX_OPSET_MIN)
		hd_onnx_patterns(im);
	if (!err)
		err = take_nodes(im, diag);
	if (!err)
		err = hd_onnx_outputs(im, diag);
	return err ? err : hd_graph_verify(im->graph, 1, diag);
}

enum hd_err hd_onnx_import(struct hd_graph *graph, const char *name, const void *bytes, uint64_t len,
	const struct hd_onnx_opts *opts,
	struct hd_onnx_values *values, struct hd_diag *diag)
{
	struct hd_importer im = { .graph = graph, .opts = opts };
	enum hd_err err = import(&im, bytes, len, name, diag);

	if (!err && values)
		*values = (struct hd_onnx_values){ im.weight, im.buffer };
	hd_onnx_file_close(&im.file);
	return err == HD_E_INVAL || err == HD_E_NOTFOUND ? HD_E_INPUT : err;
}

enum hd_err hd_onnx_tensor_read(struct hd_onnx_tensor *tensor, struct hd_arena *arena, const char *file,
	const void *bytes, uint64_t len,
	struct hd_diag *diag)
{
	static const struct hd_onnx_opts opts;
	struct hd_onnx_file holder = { .name = file };
	struct hd_onnx_init init = { 0 };
	struct hd_host_tensor host;

	hd_arena_init(&holder.arena, HD_ONNX_MEMORY);
	enum hd_err err = hd_wire_walk(&onnx__tensor_proto__descriptor, file, bytes, len, diag);
	if (!err)
		err = hd_onnx_init_read(&holder, bytes, len, &opts, &init, diag);
	if (!err)
		err = hd_host_read(&host, arena, &init, diag);
	if (!err) {
		int64_t *plain = host.is_float ? NULL : hd_arena_take(arena, host.n + 1, sizeof *plain);
		for (uint64_t k = 0; plain && k < host.n; k++)
			plain[k] = host.i[k].a;
		*tensor = (struct hd_onnx_tensor){ .type = host.type, .is_float = host.is_float,
			.rank = host.rank, .n = host.n, .f = host.f, .i = plain };
		memcpy(tensor->dim, host.dim, sizeof tensor->dim);
		tensor->name = hd_arena_text(arena, init.tensor->name ? init.tensor->name : "",
			init.tensor->name ? strlen(init.tensor->name) : 0);
		if ((!host.is_float && !plain) || !tensor->name)
			err = hd_fail(diag, HD_E_NOMEM, "no memory for a tensor");
	}
	hd_arena_finish(&holder.arena);
	return err;
}
