#include "graph/op_images_rules.h"

#include <string.h>

/* Pools: attributes kh kw sh sw ph pw, and `all` of the average. */

static enum hd_err pool_dims(const struct hd_graph *graph, const struct hd_node *node,
	const struct hd_value *x,
	int64_t dim[4], struct hd_diag *diag)
{
	const int32_t *kernel = node->attr.i, *stride = node->attr.i + 2, *pad = node->attr.i + 4;

	if (x->rank != 4 || x->dim[1] < 0 || x->dim[2] < 0 || x->dim[3] < 0)
		return hd_rule_broken(graph, node,
			"images have four extents, and only the first may grow with the rows", diag);
	if (node->attr.i[6] & ~1)
		return hd_rule_broken(graph, node, "all is 0 or 1", diag);
	memcpy(dim, x->dim, 4 * sizeof dim[0]);
	for (int k = 0; k < 2; k++) {
		int64_t len = x->dim[2 + k] + 2 * (int64_t)pad[k] - kernel[k];
		if (kernel[k] < 1 || stride[k] < 1 || len < 0)
			return hd_rule_broken(graph, node,
				"windows and strides are at least 1 and windows fit into the image and its "
				"pads", diag);
		if (pad[k] < 0 || pad[k] >= kernel[k])
			return hd_rule_broken(graph, node, "pads are at least 0 and smaller than the window",
				diag);
		dim[2 + k] = len / stride[k] + 1;
	}
	return hd_rule_f32(graph, node, 0, diag);
}

enum hd_err hd_shape_pool(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	int64_t dim[4];
	enum hd_err err = pool_dims(graph, node, hd_rule_in(graph, node, 0), dim, diag);

	if (err == HD_OK)
		hd_rule_set(out, 4, dim, HD_F32);
	return err;
}

enum hd_err hd_shape_pool_dx(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *dy = hd_rule_in(graph, node, 0), *x = hd_rule_in(graph, node, 1);
	int64_t dim[4];
	enum hd_err err = pool_dims(graph, node, x, dim, diag);

	if (err != HD_OK)
		return err;
	if (dy->rank != 4 || memcmp(dy->dim, dim, sizeof dim) != 0)
		return hd_rule_broken(graph, node, "dy has not the shape of the pooled image", diag);
	hd_rule_like(out, x);
	return HD_OK;
}

enum hd_err hd_grad_pool(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint16_t op = n.op == HD_OP_MAXPOOL2D ? HD_OP_MAXPOOL2D_DX : HD_OP_AVGPOOL2D_DX;

	return hd_grad_add(ad, node, n.in[0], op, 2, (uint32_t[]){ hd_grad_of(ad, n.out), n.in[0] }, &n.attr,
		diag);
}

/* One operation per element of a window: a comparison or a sum. Windows belong to the pooled image, which is
 * the output forward and operand 0 backward. */
struct hd_cost hd_cost_pool(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	const struct hd_value *y = node->nin == 1 ? &graph->value[node->out] : hd_rule_in(graph, node, 0);

	return (struct hd_cost){ (double)hd_value_elems(y, rows) * node->attr.i[0] * node->attr.i[1],
		hd_cost_elementwise(graph, node, rows).bytes };
}

/* Norms of groups. */

static bool is_vector(const struct hd_value *v, int64_t len) { return v->rank == 1 && v->dim[0] == len; }

static enum hd_err groups_check(const struct hd_graph *graph, const struct hd_node *node,
	const struct hd_value *x, struct hd_diag *diag)
{
	int32_t groups = node->attr.i[0];

	if (x->rank < 2 || hd_dims_product(x->dim + 1, x->rank - 1u) <= 0)
		return hd_rule_broken(graph, node,
			"x has two extents or more, and only the first may grow with the rows", diag);
	if (groups < 1 || x->dim[1] % groups != 0)
		return hd_rule_broken(graph, node, "groups are at least 1 and divide the channels", diag);
	return hd_rule_f32(graph, node, 0, diag);
}

static void stats_dims(const struct hd_node *node, const struct hd_value *x, int64_t dim[3])
{
	dim[0] = x->dim[0];
	dim[1] = node->attr.i[0];
	dim[2] = 2;
}

enum hd_err hd_shape_groupnorm(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0);
	enum hd_err err = groups_check(graph, node, x, diag);
	int64_t stats[3];

	if (err != HD_OK)
		return err;
	if (!(node->attr.f[0] > 0.0f))
		return hd_rule_broken(graph, node, "eps is above 0", diag);
	if (!is_vector(hd_rule_in(graph, node, 1), x->dim[1]) ||
		!is_vector(hd_rule_in(graph, node, 2), x->dim[1]))
		return hd_rule_broken(graph, node, "gamma and beta have not the channels of x", diag);
	stats_dims(node, x, stats);
	hd_rule_like(&out[0], x);
	hd_rule_set(&out[1], 3, stats, HD_F32);
	return HD_OK;
}

static enum hd_err groups_grad_check(const struct hd_graph *graph, const struct hd_node *node, int istats,
	struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 1), *stats = hd_rule_in(graph, node, istats);
	enum hd_err err = groups_check(graph, node, x, diag);
	int64_t dim[3];

	if (err != HD_OK)
		return err;
	stats_dims(node, x, dim);
	if (!hd_dims_same(hd_rule_in(graph, node, 0), x) || stats->rank != 3 ||
		memcmp(stats->dim, dim, sizeof dim) != 0)
		return hd_rule_broken(graph, node, "dy, x and stats are not those of one normalisation",
			diag);
	return HD_OK;
}

enum hd_err hd_shape_groupnorm_dx(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 1);
	enum hd_err err = groups_grad_check(graph, node, 3, diag);

	if (err == HD_OK && !is_vector(hd_rule_in(graph, node, 2), x->dim[1]))
		err = hd_rule_broken(graph, node, "gamma has not the channels of x", diag);
	if (err == HD_OK)
		hd_rule_like(out, x);
	return err;
}

enum hd_err hd_shape_groupnorm_dg(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	enum hd_err err = groups_grad_check(graph, node, 2, diag);

	if (err == HD_OK)
		hd_rule_set(out, 1, &hd_rule_in(graph, node, 1)->dim[1], HD_F32);
	return err;
}

enum hd_err hd_grad_groupnorm(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = hd_grad_of(ad, n.out), x = n.in[0], gamma = n.in[1], stats = n.out + 1;
	const struct hd_attr groups = { .i = { n.attr.i[0] } }, channels = { .i = { 1 } };
	enum hd_err err = hd_rule_no_grad(ad, node, 1, diag);

	if (err == HD_OK)
		err = hd_grad_add(ad, node, x, HD_OP_GROUPNORM_DX, 4, (uint32_t[]){ dy, x, gamma, stats },
			&groups, diag);
	if (err == HD_OK)
		err = hd_grad_add(ad, node, gamma, HD_OP_GROUPNORM_DG, 3, (uint32_t[]){ dy, x, stats },
			&groups, diag);
	return err == HD_OK ? hd_grad_add(ad, node, n.in[2], HD_OP_SUM_ROWS, 1, &dy, &channels, diag) : err;
}
