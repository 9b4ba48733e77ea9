/* If: the branch that is taken is known once shapes are; exporters write one where a squeezed axis may not be
 * of one element. The nodes of both branches lie in the list before their If, left out of the walk; the If
 * has those of one taken, and its results are that branch's. An If in a branch stays as it is: refused. */
#include <string.h>

#include "graph/onnx/import.h"
#include "graph/onnx/pattern.h"

static const Onnx__GraphProto *branch_of(const Onnx__NodeProto *node, int which)
{
	const Onnx__AttributeProto *a = hd_onnx_attr(node, which ? "then_branch" : "else_branch");

	return a ? a->g : NULL;
}

/* Two branches that read no tensors of their own. */
static bool has_branches(const Onnx__NodeProto *node)
{
	bool has = node->op_type && !strcmp(node->op_type, "If") && (!node->domain || !*node->domain);

	for (int b = 0; b < 2 && has; b++) {
		const Onnx__GraphProto *g = branch_of(node, b);
		has = g && g->n_initializer == 0 && g->n_sparse_initializer == 0 &&
			g->n_output == node->n_output;
		for (size_t k = 0; has && k < g->n_output; k++)
			has = g->output[k]->name && *g->output[k]->name;
	}
	return has;
}

enum hd_err hd_onnx_branches(struct hd_importer *im, struct hd_diag *diag)
{
	Onnx__GraphProto *g = im->file.graph;
	size_t n = g->n_node, at = 0, found = 0;

	for (size_t i = 0; i < g->n_node; i++)
		if (has_branches(g->node[i])) {
			n += branch_of(g->node[i], 0)->n_node + branch_of(g->node[i], 1)->n_node;
			found++;
		}
	if (!found)
		return HD_OK;
	Onnx__NodeProto **list = hd_arena_take(&im->file.arena, n, sizeof *list);
	im->branch = hd_arena_take(&im->file.arena, found, sizeof *im->branch);
	if (!list || !im->branch)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its branches", im->file.name);
	for (size_t i = 0; i < g->n_node; i++) {
		Onnx__NodeProto *node = g->node[i];
		struct hd_onnx_branch *branch = has_branches(node) ? &im->branch[im->nbranches++] : NULL;
		for (int b = 0; b < 2 && branch; b++) {
			branch->node = node;
			branch->from[b] = at;
			branch->n[b] = branch_of(node, b)->n_node;
			for (size_t k = 0; k < branch->n[b]; k++)
				list[at++] = branch_of(node, b)->node[k];
		}
		list[at++] = node;
	}
	g->node = list;
	g->n_node = n;
	return HD_OK;
}

void hd_onnx_leave_branches(struct hd_importer *im)
{
	for (uint32_t i = 0; i < im->nbranches; i++)
		for (int b = 0; b < 2; b++)
			for (size_t k = 0; k < im->branch[i].n[b]; k++)
				im->match[im->branch[i].from[b] + k].inside = true;
}

/* Result k of the branch as that of the node. */
static enum hd_err take_result(struct hd_onnx_call *call, const Onnx__GraphProto *branch, uint32_t k)
{
	struct hd_onnx_val *from = hd_onnx_find(call->im, branch->output[k]->name), *to = hd_onnx_out(call,
		k);
	uint32_t value;

	if (!to)
		return HD_OK;
	if (!from || from->kind == HD_VAL_NONE)
		return hd_onnx_no(call, "its branch makes no '%s'", branch->output[k]->name);
	to->kind = HD_VAL_BAD;
	if (from->kind == HD_VAL_BAD)
		return HD_OK;
	if (from->kind == HD_VAL_HOST)
		return hd_onnx_put_host(call, k, from->host);
	enum hd_err err = hd_onnx_value_of(call, from, &value);
	if (!err)
		err = hd_onnx_put(call, k, value, from->rank, from->dim);
	if (!err)
		to->type = from->type;
	return err;
}

enum hd_err hd_onnx_if(struct hd_onnx_call *call)
{
	const struct hd_onnx_branch *branch = NULL;
	double known;

	for (uint32_t i = 0; i < call->im->nbranches; i++)
		if (call->im->branch[i].node == call->node)
			branch = &call->im->branch[i];
	if (!branch)
		return hd_onnx_no(call, "its branches have tensors of their own, or it lies in a branch");
	if (!hd_onnx_number(call, 0, &known))
		return hd_onnx_no(call, "which branch it takes is not known before the graph runs");
	const int b = known != 0;
	enum hd_err err = HD_OK;
	for (size_t k = 0; k < branch->n[b] && !err; k++)
		err = hd_onnx_take(call->im, branch->from[b] + k, &call->why);
	for (uint32_t k = 0; k < call->node->n_output && !err; k++)
		err = take_result(call, branch_of(call->node, b), k);
	return err;
}
