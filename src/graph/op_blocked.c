#include "graph/op_blocked_rules.h"

#include <string.h>

static int64_t blocks_of(int64_t channels) { return (channels + HD_BLOCK - 1) / HD_BLOCK; }

static bool blocked(const struct hd_value *v) { return v->rank == 5 && v->dim[4] == HD_BLOCK &&
	v->dim[1] > 0 && v->dim[2] > 0 && v->dim[3] > 0; }

enum hd_err hd_shape_block(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0);
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err != HD_OK)
		return err;
	if (x->rank != 4 || x->dim[1] < 0 || x->dim[2] < 0 || x->dim[3] < 0)
		return hd_rule_broken(graph, node,
			"images have four extents, and only the first may grow with the rows", diag);
	hd_rule_set(out, 5, (int64_t[]){ x->dim[0], blocks_of(x->dim[1]), x->dim[2], x->dim[3], HD_BLOCK },
		HD_F32);
	return HD_OK;
}

enum hd_err hd_shape_unblock(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0);
	int64_t c = node->attr.i[0];
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err != HD_OK)
		return err;
	if (!blocked(x))
		return hd_rule_broken(graph, node,
			"a blocked image has five extents, the last 16, and only the first may grow with "
			"the rows", diag);
	if (c < 1 || blocks_of(c) != x->dim[1])
		return hd_rule_broken(graph, node, "c channels do not fill these blocks", diag);
	hd_rule_set(out, 4, (int64_t[]){ x->dim[0], c, x->dim[2], x->dim[3] }, HD_F32);
	return HD_OK;
}

enum hd_err hd_grad_block(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = hd_grad_of(ad, n.out);
	struct hd_attr attr = { .i = { (int32_t)hd_grad_graph(ad)->value[n.in[0]].dim[1] } };

	return hd_grad_add(ad, node, n.in[0], HD_OP_UNBLOCK, 1, &dy, &attr, diag);
}

enum hd_err hd_grad_unblock(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = hd_grad_of(ad, n.out);

	return hd_grad_add(ad, node, n.in[0], HD_OP_BLOCK, 1, &dy, NULL, diag);
}

/* The extents of the result of a convolution of x by w. */
static enum hd_err check(const struct hd_graph *graph, const struct hd_node *node, const struct hd_value *x,
	const struct hd_value *w,
	int64_t out[5], struct hd_diag *diag)
{
	const int32_t *stride = node->attr.i, *pad = node->attr.i + 2;

	if (!blocked(x) || w->rank != 4 || hd_dims_product(w->dim, 4) <= 0)
		return hd_rule_broken(graph, node,
			"blocked images have five extents, the last 16, kernels "
			"four, and only the first of the images may grow with the rows", diag);
	if (x->dim[1] != blocks_of(w->dim[1]))
		return hd_rule_broken(graph, node,
			"the channels of the kernels do not fill the blocks of the images", diag);
	out[0] = x->dim[0];
	out[1] = blocks_of(w->dim[0]);
	for (int k = 0; k < 2; k++) {
		int64_t len = x->dim[2 + k] + 2 * (int64_t)pad[k] - w->dim[2 + k];
		if (stride[k] < 1 || pad[k] < 0 || pad[k] >= w->dim[2 + k])
			return hd_rule_broken(graph, node,
				"strides are at least 1, pads at least 0 and smaller than the kernel", diag);
		if (len < 0)
			return hd_rule_broken(graph, node, "the kernel is larger than the padded image",
				diag);
		out[2 + k] = len / stride[k] + 1;
	}
	out[4] = HD_BLOCK;
	return HD_OK;
}

enum hd_err hd_shape_conv2d_b(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	int64_t dim[5];
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err == HD_OK)
		err = check(graph, node, hd_rule_in(graph, node, 0), hd_rule_in(graph, node, 1), dim, diag);
	if (err == HD_OK)
		hd_rule_set(out, 5, dim, HD_F32);
	return err;
}

static enum hd_err grad_shape(const struct hd_graph *graph, const struct hd_node *node, int ix, int iw,
	struct hd_value *out, struct hd_diag *diag)
{
	const struct hd_value *dy = hd_rule_in(graph, node, 0);
	int64_t dim[5];
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err == HD_OK)
		err = check(graph, node, hd_rule_in(graph, node, ix), hd_rule_in(graph, node, iw), dim, diag);
	if (err != HD_OK)
		return err;
	if (dy->rank != 5 || memcmp(dy->dim, dim, sizeof dim) != 0)
		return hd_rule_broken(graph, node, "dy has not the shape of the convolution", diag);
	hd_rule_like(out, hd_rule_in(graph, node, 2));
	return HD_OK;
}

enum hd_err hd_shape_conv2d_b_dx(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	return grad_shape(graph, node, 2, 1, out, diag);
}

enum hd_err hd_shape_conv2d_b_dw(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	return grad_shape(graph, node, 1, 2, out, diag);
}

enum hd_err hd_grad_conv2d_b(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = hd_grad_of(ad, n.out), x = n.in[0], w = n.in[1];
	enum hd_err err = hd_grad_add(ad, node, x, HD_OP_CONV2D_B_DX, 3, (uint32_t[]){ dy, w, x }, &n.attr,
		diag);

	if (err == HD_OK)
		err = hd_grad_add(ad, node, w, HD_OP_CONV2D_B_DW, 3, (uint32_t[]){ dy, x, w }, &n.attr, diag);
	return err;
}

/* Real channels only: those that fill up the last block are not work. */
static struct hd_cost cost(const struct hd_graph *graph, const struct hd_node *node, const struct hd_value *y,
	const struct hd_value *w,
	uint64_t rows)
{
	double pixels = (double)hd_value_elems(y, rows) / (double)(y->dim[1] * HD_BLOCK);

	return (struct hd_cost){ 2.0 * pixels * (double)hd_value_elems(w, 1),
		hd_cost_elementwise(graph, node, rows).bytes };
}

struct hd_cost hd_cost_conv2d_b(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	return cost(graph, node, &graph->value[node->out], hd_rule_in(graph, node, 1), rows);
}

struct hd_cost hd_cost_conv2d_b_dx(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	return cost(graph, node, hd_rule_in(graph, node, 0), hd_rule_in(graph, node, 1), rows);
}

struct hd_cost hd_cost_conv2d_b_dw(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	return cost(graph, node, hd_rule_in(graph, node, 0), hd_rule_in(graph, node, 2), rows);
}
