#include "graph/op_rules.h"

#include <string.h>

/* Views. */

enum hd_err hd_shape_reshape(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0);
	int64_t dim[HD_MAX_DIMS];
	uint8_t rank = 0;

	for (; rank < HD_MAX_DIMS && node->attr.i[rank] != 0; rank++)
		dim[rank] = node->attr.i[rank];
	for (int i = rank; i < HD_MAX_DIMS; i++)
		if (node->attr.i[i] != 0)
			return hd_rule_broken(graph, node, "an extent follows the 0 that ends them", diag);
	if (rank == 0 || hd_dims_product(dim, rank) != hd_dims_product(x->dim, x->rank))
		return hd_rule_broken(graph, node, "the new extents hold another number of elements", diag);
	hd_rule_set(out, rank, dim, (enum hd_dtype)x->dtype);
	return HD_OK;
}

enum hd_err hd_grad_reshape(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	const struct hd_value *x = hd_rule_in(hd_grad_graph(ad), &n, 0);
	struct hd_attr attr = { .i = { 0 } };
	float seed;

	if (hd_grad_is_seed(ad, n.out, &seed))
		return hd_grad_seed(ad, n.in[0], seed, diag);
	for (int i = 0; i < x->rank; i++)
		attr.i[i] = (int32_t)x->dim[i];        /* an extent fits: HD_MAX_EXTENT */
	return hd_grad_add(ad, node, n.in[0], HD_OP_RESHAPE, 1, (uint32_t[]){ hd_grad_of(ad, n.out) }, &attr,
		diag);
}

/* Pairs of equal shapes, multiples. */

enum hd_err hd_shape_pair(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *a = hd_rule_in(graph, node, 0), *b = hd_rule_in(graph, node, 1);
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err == HD_OK && !hd_dims_same(a, b))
		err = hd_rule_broken(graph, node, "the shapes differ", diag);
	if (err == HD_OK)
		hd_rule_like(out, a);
	return err;
}

static enum hd_err sum_to(struct hd_autodiff *ad, uint32_t node, uint32_t value, uint32_t grad, int32_t axis,
	int32_t keep,
	struct hd_diag *diag)
{
	return hd_grad_add(ad, node, value, HD_OP_SUM_ROWS, 1, &grad,
		&(struct hd_attr){ .i = { axis, keep } }, diag);
}

static enum hd_err scaled(struct hd_autodiff *ad, uint32_t node, uint32_t value, uint32_t grad, float by,
	struct hd_diag *diag)
{
	return hd_grad_add(ad, node, value, HD_OP_SCALE, 1, &grad, &(struct hd_attr){ .f = { by } }, diag);
}

enum hd_err hd_shape_scale(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err == HD_OK)
		hd_rule_like(out, hd_rule_in(graph, node, 0));
	return err;
}

enum hd_err hd_grad_scale(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	float seed;

	if (hd_grad_is_seed(ad, n.out, &seed))
		return hd_grad_seed(ad, n.in[0], seed * n.attr.f[0], diag);
	return scaled(ad, node, n.in[0], hd_grad_of(ad, n.out), n.attr.f[0], diag);
}

/* Bias and activation. */

static enum hd_err bias_check(const struct hd_graph *graph, const struct hd_node *node, struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0), *b = hd_rule_in(graph, node, 1);
	int32_t axis = node->attr.i[0];
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err != HD_OK)
		return err;
	if ((axis != -1 && axis != 1) || x->rank < 2)
		return hd_rule_broken(graph, node, "axis is -1 or 1, and x has two extents or more", diag);
	if (b->rank != 1 || b->dim[0] != x->dim[axis == 1 ? 1 : x->rank - 1])
		return hd_rule_broken(graph, node, "the bias has not the extent of that axis", diag);
	return HD_OK;
}

enum hd_err hd_shape_bias(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	enum hd_err err = bias_check(graph, node, diag);

	if (err == HD_OK)
		hd_rule_like(out, hd_rule_in(graph, node, 0));
	return err;
}

enum hd_err hd_grad_bias(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = hd_grad_of(ad, n.out);
	enum hd_err err = hd_grad_pass(ad, node, n.in[0], dy, diag);

	return err == HD_OK ? sum_to(ad, node, n.in[1], dy, n.attr.i[0], 0, diag) : err;
}

static enum hd_err act_check(const struct hd_graph *graph, const struct hd_node *node, int32_t act,
	struct hd_diag *diag)
{
	const float *f = node->attr.f;

	if (act < 0 || act >= HD_NACTS)
		return hd_rule_broken(graph, node, "this activation does not exist", diag);
	for (int i = hd_acts[act].nf; i < 2; i++)
		if (f[i] != 0.0f)
			return hd_rule_broken(graph, node,
				"alpha or beta is given to an activation that does not read it", diag);
	if (act == HD_ACT_CLIP && !(f[0] <= f[1]))
		return hd_rule_broken(graph, node, "clip: alpha is not above beta", diag);
	return hd_rule_f32(graph, node, 0, diag);
}

enum hd_err hd_shape_bias_act(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	enum hd_err err = bias_check(graph, node, diag);

	if (err == HD_OK)
		err = act_check(graph, node, node->attr.i[1], diag);
	if (err != HD_OK)
		return err;
	hd_rule_like(&out[0], hd_rule_in(graph, node, 0));
	hd_rule_like(&out[1], hd_rule_in(graph, node, 0));
	return HD_OK;
}

/* What arrives at z itself, from other readers of the sum, is there already: the activation's part joins
 * it. */
enum hd_err hd_grad_bias_act(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t z = n.out, dy = hd_grad_of(ad, n.out + 1);
	enum hd_err err = HD_OK;

	if (dy != HD_NONE)
		err = hd_grad_add(ad, node, z, HD_OP_ACT_DX, 2, (uint32_t[]){ dy, z },
			&(struct hd_attr){ .i = { n.attr.i[1] }, .f = { n.attr.f[0], n.attr.f[1] } }, diag);
	uint32_t dz = hd_grad_of(ad, z);
	if (err == HD_OK)
		err = hd_grad_pass(ad, node, n.in[0], dz, diag);
	return err == HD_OK ? sum_to(ad, node, n.in[1], dz, n.attr.i[0], 0, diag) : err;
}

enum hd_err hd_shape_act(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	enum hd_err err = act_check(graph, node, node->attr.i[0], diag);

	if (err == HD_OK)
		hd_rule_like(out, hd_rule_in(graph, node, 0));
	return err;
}

enum hd_err hd_shape_act_dx(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	enum hd_err err = act_check(graph, node, node->attr.i[0], diag);

	return err == HD_OK ? hd_shape_pair(graph, node, out, diag) : err;
}

enum hd_err hd_grad_act(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	return err == HD_OK ? hd_grad_add(ad, node, n.in[0], HD_OP_ACT_DX, 2, (uint32_t[]){ dy, n.in[0] },
		&n.attr, diag) : err;
}

/* Embedding. */

enum hd_err hd_shape_embed(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *ids = hd_rule_in(graph, node, 0), *table = hd_rule_in(graph, node, 1);
	int64_t dim[HD_MAX_DIMS];
	enum hd_err err = hd_rule_f32(graph, node, 1, diag);

	if (err != HD_OK)
		return err;
	if (ids->dtype != HD_I32 || table->rank != 2 || table->dim[0] < 0 || table->dim[1] < 0 ||
		ids->rank == HD_MAX_DIMS)
		return hd_rule_broken(graph, node, "ids are i32 of at most 5 extents, the table is [V,C]",
			diag);
	memcpy(dim, ids->dim, ids->rank * sizeof dim[0]);
	dim[ids->rank] = table->dim[1];
	hd_rule_set(out, (uint8_t)(ids->rank + 1), dim, HD_F32);
	return HD_OK;
}

enum hd_err hd_shape_embed_dw(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *dy = hd_rule_in(graph, node, 0), *ids = hd_rule_in(graph, node, 1),
		*table = hd_rule_in(graph, node, 2);
	enum hd_err err = hd_rule_f32(graph, node, 2, diag);

	if (err != HD_OK)
		return err;
	if (ids->dtype != HD_I32 || table->rank != 2 || dy->rank != ids->rank + 1 ||
		dy->dim[ids->rank] != table->dim[1] ||
	    memcmp(dy->dim, ids->dim, ids->rank * sizeof dy->dim[0]) != 0)
		return hd_rule_broken(graph, node, "dy is not the shape of ids with the columns of the table",
			diag);
	hd_rule_like(out, table);
	return HD_OK;
}

enum hd_err hd_grad_embed(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);

	return hd_grad_add(ad, node, n.in[1], HD_OP_EMBED_DW, 3,
		(uint32_t[]){ hd_grad_of(ad, n.out), n.in[0], n.in[1] }, NULL, diag);
}

/* Dropout. */

enum hd_err hd_shape_dropout(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0);
	float p = node->attr.f[0];
	int64_t from = node->attr.i[0], whole = node->attr.i[1];
	struct hd_value all = *x;

	if (!(p >= 0.0f && p < 1.0f))
		return hd_rule_broken(graph, node, "p is at least 0 and below 1", diag);
	if (whole == 0 && from == 0)
		return hd_shape_scale(graph, node, out, diag);
	if (x->rank < 2 || x->dim[1] < 0 || from < 0 || whole - from < x->dim[1])
		return hd_rule_broken(graph, node, "a part lies inside extent 1 of its whole", diag);
	all.dim[1] = whole;
	if (hd_dims_product(all.dim, all.rank) == 0)
		return hd_rule_broken(graph, node, "the whole has too many elements", diag);
	return hd_shape_scale(graph, node, out, diag);
}

enum hd_err hd_grad_dropout(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);

	return hd_grad_add(ad, node, n.in[0], HD_OP_DROPOUT_DX, 1, (uint32_t[]){ hd_grad_of(ad, n.out) },
		&n.attr, diag);
}
