#include "graph/onnx/owners.h"

#include <stdio.h>
#include <string.h>

#include "graph/onnx/pattern.h"

/* all elements are one number */
static bool is_uniform(struct hd_importer *im, const struct hd_onnx_val *v)
{
	const size_t size = sizeof(float);
	struct hd_host_tensor host;

	if (v->type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT && v->init->raw)
		return v->init->raw_len >= size && !memcmp(v->init->raw, v->init->raw + size,
			v->init->raw_len - size);
	if (hd_host_read(&host, &im->file.arena, v->init, NULL) || !host.is_float || !host.n)
		return false;
	for (uint64_t k = 1; k < host.n; k++)
		if (host.f[k] != host.f[0])
			return false;
	return true;
}

static struct hd_onnx_init *copy_of(struct hd_importer *im, const struct hd_onnx_init *init, const char *name,
	struct hd_diag *diag)
{
	struct hd_onnx_init *copy = hd_arena_take(&im->file.arena, 1, sizeof *copy);
	Onnx__TensorProto *tensor = hd_arena_take(&im->file.arena, 1, sizeof *tensor);
	char *text = hd_arena_text(&im->file.arena, name, strlen(name));

	if (!copy || !tensor || !text) {
		(void)hd_fail(diag, HD_E_NOMEM, "%s: no memory for tensor '%s'", im->file.name, name);
		return NULL;
	}
	*tensor = *init->tensor;
	tensor->name = text;
	*copy = *init;
	copy->tensor = tensor;
	return copy;
}

enum hd_err hd_onnx_own(struct hd_importer *im, size_t at, size_t k, const char *name, struct hd_diag *diag)
{
	Onnx__NodeProto *node = im->file.graph->node[at];
	struct hd_onnx_val *from = hd_onnx_find(im, node->input[k]), *v;
	char free_name[300];

	im->copied += from->init->tensor->raw_data.len + from->init->raw_len +
		from->init->tensor->n_float_data * sizeof(float);
	if (im->copied > HD_ONNX_MEMORY)
		return hd_fail(diag, HD_E_INPUT,
			"%s: tensors that several nodes read as their own, '%s' for one, would take more "
			"than %zu MiB", im->file.name,
			from->name, HD_ONNX_MEMORY >> 20);
	snprintf(free_name, sizeof free_name, "%.280s", name);
	for (from->copies = from->copies ? from->copies : 1; hd_onnx_find(im, free_name);)
		snprintf(free_name, sizeof free_name, "%.280s-%u", name, ++from->copies);
	struct hd_onnx_init *init = copy_of(im, from->init, free_name, diag);
	if (!init)
		return HD_E_NOMEM;
	v = hd_onnx_note(im, init->tensor->name);
	*v = (struct hd_onnx_val){ .name = init->tensor->name, .kind = HD_VAL_INIT, .rank = from->rank,
		.type = from->type, .role = from->role,
		.value = HD_NONE, .turned = HD_NONE, .maker = HD_NONE, .sum_of = HD_NONE, .mean_of = HD_NONE,
		.first = HD_NONE, .nuses = 1, .init = init };
	memcpy(v->dim, from->dim, sizeof v->dim);
	from->nuses--;
	node->input[k] = init->tensor->name;
	return HD_OK;
}

/* ---- a file that does not say */

static bool is_statistic(const Onnx__NodeProto *node, size_t k) { return (k == 3 || k == 4) &&
	!strcmp(node->op_type, "BatchNormalization"); }

static struct hd_onnx_val *init_at(struct hd_importer *im, const Onnx__NodeProto *node, size_t k)
{
	struct hd_onnx_val *v = *node->input[k] ? hd_onnx_find(im, node->input[k]) : NULL;

	return hd_onnx_is_float_init(v) ? v : NULL;
}

/* The output becomes the copy; the node is left out. */
static enum hd_err own_identities(struct hd_importer *im, struct hd_diag *diag)
{
	const Onnx__GraphProto *g = im->file.graph;

	for (size_t i = 0; i < g->n_node; i++) {
		Onnx__NodeProto *node = g->node[i];
		if (strcmp(node->op_type, "Identity") != 0 || node->n_input != 1 || node->n_output != 1 ||
			!*node->output[0])
			continue;
		struct hd_onnx_val *from = init_at(im, node, 0), *v = hd_onnx_find(im, node->output[0]);
		if (!from || v->kind != HD_VAL_NONE || !is_uniform(im, from))
			continue;
		struct hd_onnx_init *init = copy_of(im, from->init, v->name, diag);
		if (!init)
			return HD_E_NOMEM;
		v->kind = HD_VAL_INIT;
		v->rank = from->rank;
		v->type = from->type;
		v->init = init;
		v->maker = HD_NONE;
		memcpy(v->dim, from->dim, sizeof v->dim);
		from->nuses--;
		im->match[i].inside = true;
	}
	return HD_OK;
}

enum { READ_PLAINLY = 1, READ_AS_STATISTIC = 2 };

static void note_reads(struct hd_importer *im)
{
	const Onnx__GraphProto *g = im->file.graph;

	for (size_t i = 0; i < g->n_node; i++)
		for (size_t k = 0; k < g->node[i]->n_input; k++) {
			struct hd_onnx_val *v = im->match[i].inside ? NULL : init_at(im, g->node[i], k);
			if (v)
				v->read_as |= is_statistic(g->node[i], k) ? READ_AS_STATISTIC : READ_PLAINLY;
		}
}

/* Does something else read what a norm takes for its statistics? Then equal tensors were made one. */
static bool was_made_smaller(struct hd_importer *im)
{
	for (uint32_t at = 0; at < im->val_cap; at++)
		if (im->val[at].name && im->val[at].read_as == (READ_PLAINLY | READ_AS_STATISTIC) &&
			is_uniform(im, &im->val[at]))
			return true;
	return false;
}

/* One module used twice has its gain, bias and statistics in both places. */
static bool same_norm(const Onnx__NodeProto *a, const Onnx__NodeProto *b)
{
	for (size_t k = 1; k < 5; k++)
		if (a->n_input < 5 || b->n_input < 5 || strcmp(a->input[k], b->input[k]) != 0)
			return false;
	return true;
}

/* The first that reads it keeps it; a statistic is never kept where it is read otherwise too. */
static bool keeps(struct hd_importer *im, struct hd_onnx_val *v, size_t i, size_t k, bool all)
{
	const Onnx__GraphProto *g = im->file.graph;
	bool statistic = is_statistic(g->node[i], k);

	if (statistic && v->read_as & READ_PLAINLY)
		return false;
	if (v->first == HD_NONE) {
		v->first = (uint32_t)i;
		return true;
	}
	return statistic ? same_norm(g->node[v->first], g->node[i]) : !all;
}

static enum hd_err own_copies(struct hd_importer *im, bool all, struct hd_diag *diag)
{
	const Onnx__GraphProto *g = im->file.graph;
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < g->n_node; i++)
		for (size_t k = 0; k < g->node[i]->n_input && !err; k++) {
			struct hd_onnx_val *v = im->match[i].inside ? NULL : init_at(im, g->node[i], k);
			if (v && !keeps(im, v, i, k, all) && is_uniform(im, v))
				err = hd_onnx_own(im, i, k, v->name, diag);
		}
	return err;
}

enum hd_err hd_onnx_owners(struct hd_importer *im, struct hd_diag *diag)
{
	bool known = false;

	if (im->opts->as_is)
		return HD_OK;
	enum hd_err err = hd_onnx_signature(im, &known, diag);
	if (!err && !known)
		err = own_identities(im, diag);
	note_reads(im);
	return err ? err : own_copies(im, !known && was_made_smaller(im), diag);
}
