#include <string.h>

#include "graph/op_tensors_rules.h"

enum hd_err hd_rule_axis(const struct hd_graph *graph, const struct hd_node *node,
	const struct hd_value *x, bool fixed, struct hd_diag *diag)
{
	int32_t axis = node->attr.i[0];

	if (axis < 0 || axis >= x->rank)
		return hd_rule_broken(graph, node, "axis is an extent of x, counted from 0", diag);
	if (fixed && x->dim[axis] < 0)
		return hd_rule_broken(graph, node,
			"that extent grows with the rows, and rows do not mix: reshape or permute first",
			diag);
	return HD_OK;
}

/* x with extent `axis` left out; a value has one extent at least. */
static void without(const struct hd_value *x, int axis, enum hd_dtype dtype, struct hd_value *out)
{
	int64_t dim[HD_MAX_DIMS] = { 1 };
	uint8_t rank = 0;

	for (int d = 0; d < x->rank; d++)
		if (d != axis)
			dim[rank++] = x->dim[d];
	hd_rule_set(out, rank ? rank : 1, dim, dtype);
}

/* Reductions. */

enum hd_err hd_shape_reduce(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0);
	int32_t axes = node->attr.i[0], keep = node->attr.i[1];
	int64_t dim[HD_MAX_DIMS] = { 1 };
	uint8_t rank = 0;
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err != HD_OK)
		return err;
	if (axes <= 0 || axes >= 1 << x->rank || keep < 0 || (keep & ~axes))
		return hd_rule_broken(graph, node,
			"axes is a mask of extents of x, not empty, and keep is a part of it", diag);
	for (int d = 0; d < x->rank; d++)
		if (!(axes >> d & 1) || keep >> d & 1)
			dim[rank++] = axes >> d & 1 ? 1 : x->dim[d];
	hd_rule_set(out, rank ? rank : 1, dim, HD_F32);
	return HD_OK;
}

enum hd_err hd_shape_reduce_fixed(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0);
	enum hd_err err = hd_shape_reduce(graph, node, out, diag);

	for (int d = 0; d < x->rank && err == HD_OK; d++)
		if (node->attr.i[0] >> d & 1 && x->dim[d] < 0)
			err = hd_rule_broken(graph, node,
				"an extent grows with the rows: over those only sums are the same for every "
				"slice of a batch", diag);
	return err;
}

enum hd_err hd_grad_regrow(struct hd_autodiff *ad, uint32_t node, uint32_t value, uint32_t reduced,
	int32_t axes, uint32_t *out, struct hd_diag *diag)
{
	const struct hd_graph *graph = hd_grad_graph(ad);
	const struct hd_value *x = &graph->value[value];
	struct hd_attr attr = { .i = { 0 } };

	for (int d = 0; d < x->rank; d++)
		attr.i[d] = axes >> d & 1 ? 1 : (int32_t)x->dim[d];
	return hd_grad_make(ad, node, value, HD_OP_RESHAPE, 1, &reduced, &attr, out, diag);
}

static struct hd_attr dims_attr(const struct hd_value *x)
{
	struct hd_attr attr = { .i = { 0 } };

	for (int d = 0; d < x->rank; d++)
		attr.i[d] = (int32_t)x->dim[d];
	return attr;
}

static enum hd_err grad_spread(struct hd_autodiff *ad, uint32_t node, float by, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t x = n.in[0], dy = HD_NONE;
	struct hd_attr dims = dims_attr(hd_rule_in(hd_grad_graph(ad), &n, 0));
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	if (err == HD_OK)
		err = hd_grad_regrow(ad, node, x, dy, n.attr.i[0], &dy, diag);
	if (err == HD_OK && by != 1.0f)
		err = hd_grad_make(ad, node, x, HD_OP_SCALE, 1, &dy, &(struct hd_attr){ .f = { by } }, &dy,
			diag);
	return err == HD_OK ? hd_grad_add(ad, node, x, HD_OP_EXPAND, 1, &dy, &dims, diag) : err;
}

enum hd_err hd_grad_reduce_sum(struct hd_autodiff *ad, uint32_t node,
	struct hd_diag *diag) { return grad_spread(ad, node, 1.0f, diag); }

enum hd_err hd_grad_reduce_mean(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	const struct hd_value *x = hd_rule_in(hd_grad_graph(ad), &n, 0);
	double count = 1;

	for (int d = 0; d < x->rank; d++)
		if (n.attr.i[0] >> d & 1)
			count *= (double)x->dim[d];
	return grad_spread(ad, node, (float)(1 / count), diag);
}

/* The elements that equal the result share its gradient. */
enum hd_err hd_grad_reduce_most(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t x = n.in[0], dy = HD_NONE, y, mask, count;
	int32_t axes = n.attr.i[0];
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	if (err == HD_OK)
		err = hd_grad_regrow(ad, node, x, n.out, axes, &y, diag);
	if (err == HD_OK)
		err = hd_grad_regrow(ad, node, x, dy, axes, &dy, diag);
	if (err == HD_OK)
		err = hd_grad_make(ad, node, x, HD_OP_EQUAL, 2, (uint32_t[]){ x, y }, NULL, &mask, diag);
	if (err == HD_OK)
		err = hd_grad_make(ad, node, x, HD_OP_REDUCE_SUM, 1, &mask,
			&(struct hd_attr){ .i = { axes, axes } }, &count, diag);
	if (err == HD_OK)
		err = hd_grad_make(ad, node, x, HD_OP_DIV, 2, (uint32_t[]){ dy, count }, NULL, &dy, diag);
	return err == HD_OK ? hd_grad_add(ad, node, x, HD_OP_MUL, 2, (uint32_t[]){ mask, dy }, NULL, diag) :
		err;
}

/* dx = dy times the product of the others: that of all, over x, where nothing is 0; with zeros it is 0 for
 * all but a zero that is alone, which gets the product of the rest. So with z = (x == 0), u = x + z and c
 * zeros in all: the product of the u, over u, where c = z, and else 0. */
enum hd_err hd_grad_reduce_prod(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	const struct hd_attr kept = { .i = { n.attr.i[0], n.attr.i[0] } };
	uint32_t x = n.in[0], dy = HD_NONE, none, z, u, c, dx;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	if (err == HD_OK)
		err = hd_grad_regrow(ad, node, x, dy, n.attr.i[0], &dy, diag);
	if (err == HD_OK)
		err = hd_grad_scalar(ad, 0.0f, &none, diag);
	if (err == HD_OK)
		err = hd_grad_make(ad, node, x, HD_OP_EQUAL, 2, (uint32_t[]){ x, none }, NULL, &z, diag);
	if (err == HD_OK)
		err = hd_grad_make(ad, node, x, HD_OP_ADD, 2, (uint32_t[]){ x, z }, NULL, &u, diag);
	if (err == HD_OK)
		err = hd_grad_make(ad, node, x, HD_OP_REDUCE_PROD, 1, &u, &kept, &dx, diag);
	if (err == HD_OK)
		err = hd_grad_make(ad, node, x, HD_OP_REDUCE_SUM, 1, &z, &kept, &c, diag);
	if (err == HD_OK)
		err = hd_grad_make(ad, node, x, HD_OP_EQUAL, 2, (uint32_t[]){ c, z }, NULL, &c, diag);
	if (err == HD_OK)
		err = hd_grad_make(ad, node, x, HD_OP_DIV, 2, (uint32_t[]){ dx, u }, NULL, &dx, diag);
	if (err == HD_OK)
		err = hd_grad_make(ad, node, x, HD_OP_MUL, 2, (uint32_t[]){ dy, dx }, NULL, &dx, diag);
	return err == HD_OK ? hd_grad_add(ad, node, x, HD_OP_WHERE, 3, (uint32_t[]){ c, dx, none }, NULL,
		diag) : err;
}

enum hd_err hd_shape_argmax(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0);
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err == HD_OK)
		err = hd_rule_axis(graph, node, x, true, diag);
	if (err == HD_OK)
		without(x, node->attr.i[0], HD_I32, out);
	return err;
}

/* Softmax. */

enum hd_err hd_shape_softmax(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0);
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err == HD_OK && x->dim[x->rank - 1] < 0)
		err = hd_rule_broken(graph, node, "the last extent is fixed: rows do not mix", diag);
	if (err == HD_OK)
		hd_rule_like(out, x);
	return err;
}

enum hd_err hd_shape_softmax_dx(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	enum hd_err err = hd_shape_softmax(graph, node, out, diag);

	return err == HD_OK ? hd_shape_pair(graph, node, out, diag) : err;
}

static enum hd_err grad_by_y(struct hd_autodiff *ad, uint32_t node, uint16_t op, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	return err == HD_OK ? hd_grad_add(ad, node, n.in[0], op, 2, (uint32_t[]){ dy, n.out }, NULL, diag) :
		err;
}

enum hd_err hd_grad_softmax(struct hd_autodiff *ad, uint32_t node,
	struct hd_diag *diag) { return grad_by_y(ad, node, HD_OP_SOFTMAX_DX, diag); }
enum hd_err hd_grad_log_softmax(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	return grad_by_y(ad, node, HD_OP_LOG_SOFTMAX_DX, diag);
}

/* Moving data. */

enum hd_err hd_shape_permute(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0);
	int64_t dim[HD_MAX_DIMS];
	unsigned seen = 0;

	for (int d = 0; d < HD_MAX_DIMS; d++) {
		int32_t p = node->attr.i[d];
		if (d >= x->rank ? p != 0 : p < 0 || p >= x->rank || seen >> p & 1)
			return hd_rule_broken(graph, node,
				"p names every extent of x once, and is 0 beyond them", diag);
		if (d < x->rank) {
			seen |= 1u << p;
			dim[d] = x->dim[p];
		}
	}
	hd_rule_set(out, x->rank, dim, (enum hd_dtype)x->dtype);
	return HD_OK;
}

enum hd_err hd_grad_permute(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	struct hd_attr back = { .i = { 0 } };
	uint32_t dy = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	for (int d = 0; d < hd_rule_in(hd_grad_graph(ad), &n, 0)->rank; d++)
		back.i[n.attr.i[d]] = d;
	return err == HD_OK ? hd_grad_add(ad, node, n.in[0], HD_OP_PERMUTE, 1, &dy, &back, diag) : err;
}

/* axis from step count */
static enum hd_err slice_of(const struct hd_graph *graph, const struct hd_node *node,
	const struct hd_value *x, struct hd_value *out,
	struct hd_diag *diag)
{
	const int32_t *a = node->attr.i;
	enum hd_err err = hd_rule_axis(graph, node, x, true, diag);

	if (err != HD_OK)
		return err;
	int64_t last = (int64_t)a[1] + ((int64_t)a[3] - 1) * a[2];
	if (a[2] == 0 || a[3] < 1 || a[1] < 0 || a[1] >= x->dim[a[0]] || last < 0 || last >= x->dim[a[0]])
		return hd_rule_broken(graph, node,
			"step is not 0, count is at least 1, and the first and the last element exist", diag);
	hd_rule_like(out, x);
	out->dim[a[0]] = a[3];
	return HD_OK;
}

enum hd_err hd_shape_slice(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	return slice_of(graph, node, hd_rule_in(graph, node, 0), out, diag);
}

enum hd_err hd_shape_slice_dx(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *dy = hd_rule_in(graph, node, 0), *x = hd_rule_in(graph, node, 1);
	enum hd_err err = slice_of(graph, node, x, out, diag);

	if (err == HD_OK && (!hd_dims_same(out, dy) || dy->dtype != x->dtype))
		return hd_rule_broken(graph, node, "dy is not such a slice of x", diag);
	if (err == HD_OK)
		hd_rule_like(out, x);
	return err;
}

enum hd_err hd_grad_slice(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	return err == HD_OK ? hd_grad_add(ad, node, n.in[0], HD_OP_SLICE_DX, 2, (uint32_t[]){ dy, n.in[0] },
		&n.attr, diag) : err;
}

enum hd_err hd_shape_concat(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *a = hd_rule_in(graph, node, 0), *b = hd_rule_in(graph, node, 1);
	int32_t axis = node->attr.i[0];
	enum hd_err err = hd_rule_axis(graph, node, a, true, diag);

	if (err != HD_OK)
		return err;
	if (a->rank != b->rank || a->dtype != b->dtype || b->dim[axis] < 0)
		return hd_rule_broken(graph, node,
			"both have the same type and number of extents, and that of the axis is fixed", diag);
	for (int d = 0; d < a->rank; d++)
		if (d != axis && a->dim[d] != b->dim[d])
			return hd_rule_broken(graph, node, "extents beside the axis are equal", diag);
	hd_rule_like(out, a);
	out->dim[axis] += b->dim[axis];
	return HD_OK;
}

static enum hd_err part_of(struct hd_autodiff *ad, uint32_t node, uint32_t value, uint32_t dy, int32_t axis,
	int64_t from, struct hd_diag *diag)
{
	int32_t count = (int32_t)hd_grad_graph(ad)->value[value].dim[axis];

	return hd_grad_add(ad, node, value, HD_OP_SLICE, 1, &dy,
		&(struct hd_attr){ .i = { axis, (int32_t)from, 1, count } }, diag);
}

enum hd_err hd_grad_concat(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	int32_t axis = n.attr.i[0];
	int64_t first = hd_rule_in(hd_grad_graph(ad), &n, 0)->dim[axis];
	uint32_t dy = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	if (err == HD_OK)
		err = part_of(ad, node, n.in[0], dy, axis, 0, diag);
	return err == HD_OK ? part_of(ad, node, n.in[1], dy, axis, first, diag) : err;
}

enum hd_err hd_shape_pad(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0);
	const int32_t *a = node->attr.i;
	enum hd_err err = hd_rule_axis(graph, node, x, true, diag);

	if (err != HD_OK)
		return err;
	if (a[1] < 0 || a[2] < 0 || (x->dtype != HD_F32 && x->dtype != HD_I32))
		return hd_rule_broken(graph, node,
			"x is f32 or i32, before and after are not negative: slice to take away", diag);
	hd_rule_like(out, x);
	out->dim[a[0]] += (int64_t)a[1] + a[2];
	return HD_OK;
}

enum hd_err hd_grad_pad(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	return err == HD_OK ? part_of(ad, node, n.in[0], dy, n.attr.i[0], n.attr.i[1], diag) : err;
}

static enum hd_err gather_of(const struct hd_graph *graph, const struct hd_node *node,
	const struct hd_value *x, const struct hd_value *ids,
	struct hd_value *out, struct hd_diag *diag)
{
	int32_t axis = node->attr.i[0];
	int64_t dim[HD_MAX_DIMS];
	uint8_t rank = 0;
	enum hd_err err = hd_rule_axis(graph, node, x, true, diag);

	if (err != HD_OK)
		return err;
	if (ids->dtype != HD_I32 || x->rank - 1 + ids->rank > HD_MAX_DIMS)
		return hd_rule_broken(graph, node, "ids are i32, and the result has at most 6 extents", diag);
	for (int d = 0; d < axis; d++)
		dim[rank++] = x->dim[d];
	for (int d = 0; d < ids->rank; d++)
		dim[rank++] = ids->dim[d];
	for (int d = axis + 1; d < x->rank; d++)
		dim[rank++] = x->dim[d];
	if (hd_dims_product(dim, rank) == 0)
		return hd_rule_broken(graph, node, "only one of x and ids grows with the rows", diag);
	hd_rule_set(out, rank, dim, (enum hd_dtype)x->dtype);
	return HD_OK;
}

enum hd_err hd_shape_gather(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	return gather_of(graph, node, hd_rule_in(graph, node, 0), hd_rule_in(graph, node, 1), out, diag);
}

enum hd_err hd_shape_scatter_add(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	const struct hd_value *dy = hd_rule_in(graph, node, 0), *x = hd_rule_in(graph, node, 2);
	enum hd_err err = hd_rule_f32(graph, node, 2, diag);

	if (err == HD_OK)
		err = gather_of(graph, node, x, hd_rule_in(graph, node, 1), out, diag);
	if (err == HD_OK && !hd_dims_same(out, dy))
		return hd_rule_broken(graph, node, "dy has not the shape of what was gathered", diag);
	if (err == HD_OK)
		hd_rule_like(out, x);
	return err;
}

enum hd_err hd_grad_gather(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	return err == HD_OK ? hd_grad_add(ad, node, n.in[0], HD_OP_SCATTER_ADD, 3,
		(uint32_t[]){ dy, n.in[1], n.in[0] }, &n.attr, diag) : err;
}

/* The extents of operand 2 are read, never its elements: it has no gradient. */
enum hd_err hd_grad_scatter_add(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	return err == HD_OK ? hd_grad_add(ad, node, n.in[0], HD_OP_GATHER, 2, (uint32_t[]){ dy, n.in[1] },
		&n.attr, diag) : err;
}

enum hd_err hd_shape_one_hot(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *ids = hd_rule_in(graph, node, 0);

	if (ids->dtype != HD_I32 || ids->rank == HD_MAX_DIMS || node->attr.i[0] < 1)
		return hd_rule_broken(graph, node,
			"ids are i32 of at most 5 extents, and depth is at least 1", diag);
	hd_rule_like(out, ids);
	out->dtype = HD_F32;
	out->dim[out->rank++] = node->attr.i[0];
	return HD_OK;
}

enum hd_err hd_shape_cast(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0);
	int32_t to = node->attr.i[0];

	if (to < HD_F32 || to > HD_U8 || to == x->dtype)
		return hd_rule_broken(graph, node,
			"to is the number of another dtype: 1 f32, 2 f64, 3 i32, 4 i64, 5 u8", diag);
	hd_rule_like(out, x);
	out->dtype = (uint8_t)to;
	return HD_OK;
}

/* Contractions. */

struct contract { int64_t m, n, ka, kb; };

static struct contract contract_of(const struct hd_graph *graph, const struct hd_node *node)
{
	const struct hd_value *a = hd_rule_in(graph, node, 0), *b = hd_rule_in(graph, node, 1);
	bool ta = node->attr.i[0], tb = node->attr.i[1];
	const int64_t *da = a->dim + a->rank - 2, *db = b->dim + b->rank - 2;

	return (struct contract){ da[ta], db[!tb], da[!ta], db[tb] };
}

enum hd_err hd_shape_contract(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *a = hd_rule_in(graph, node, 0), *b = hd_rule_in(graph, node, 1);
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);
	int64_t dim[HD_MAX_DIMS];

	if (err != HD_OK)
		return err;
	if ((node->attr.i[0] | node->attr.i[1]) & ~1)
		return hd_rule_broken(graph, node, "ta and tb are 0 or 1", diag);
	if (a->rank < 2 || b->rank < 2)
		return hd_rule_broken(graph, node, "matrices need two extents", diag);
	struct contract c = contract_of(graph, node);
	if (c.ka != c.kb)
		return hd_rule_broken(graph, node, "the extents summed over differ", diag);
	uint8_t rank = a->rank > b->rank ? a->rank : b->rank;
	for (int d = 2; d < rank; d++) {
		int64_t x = d < a->rank ? a->dim[a->rank - 1 - d] : 1,
			y = d < b->rank ? b->dim[b->rank - 1 - d] : 1;
		if (x != y && x != 1 && y != 1)
			return hd_rule_broken(graph, node, "the leading extents do not broadcast", diag);
		dim[rank - 1 - d] = x == 1 ? y : x;
	}
	dim[rank - 2] = c.m;
	dim[rank - 1] = c.n;
	if (hd_dims_product(dim, rank) == 0)
		return hd_rule_broken(graph, node, "two extents of the result grow with the rows", diag);
	hd_rule_set(out, rank, dim, HD_F32);
	return HD_OK;
}

/* With A = op(a), B = op(b): dA = dy B', dB = A' dy, each stored as a and b are. */
enum hd_err hd_grad_contract(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t a = n.in[0], b = n.in[1], dy = HD_NONE;
	int32_t ta = n.attr.i[0], tb = n.attr.i[1];
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	if (err == HD_OK)
		err = hd_grad_add_summed(ad, node, a, HD_OP_CONTRACT, 2,
			ta ? (uint32_t[]){ b, dy } : (uint32_t[]){ dy, b },
			&(struct hd_attr){ .i = { ta ? tb : 0, ta ? 1 : !tb } }, diag);
	if (err == HD_OK)
		err = hd_grad_add_summed(ad, node, b, HD_OP_CONTRACT, 2,
			tb ? (uint32_t[]){ dy, a } : (uint32_t[]){ a, dy },
			&(struct hd_attr){ .i = { tb ? 1 : !ta, tb ? ta : 0 } }, diag);
	return err;
}

struct hd_cost hd_cost_contract(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	struct hd_cost cost = hd_cost_elementwise(graph, node, rows);

	cost.flops = 2.0 * (double)hd_value_elems(&graph->value[node->out],
		rows) * (double)hd_extent(contract_of(graph, node).ka, rows);
	return cost;
}
