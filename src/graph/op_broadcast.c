#include <string.h>

#include "graph/op_tensors_rules.h"

/* Extent d from the end, 1 where there is none. */
static int64_t from_end(const struct hd_value *v, int d) { return d < v->rank ? v->dim[v->rank - 1 - d] : 1; }

/* The common shape of `n` operands from `first` on, into out. */
static enum hd_err broadcast(const struct hd_graph *graph, const struct hd_node *node, int first,
	enum hd_dtype dtype,
	struct hd_value *out, struct hd_diag *diag)
{
	int64_t dim[HD_MAX_DIMS];
	uint8_t rank = 0;

	for (int i = first; i < node->nin; i++)
		rank = hd_rule_in(graph, node, i)->rank > rank ? hd_rule_in(graph, node, i)->rank : rank;
	for (int d = 0; d < rank; d++) {
		int64_t whole = 1;
		for (int i = first; i < node->nin; i++) {
			int64_t here = from_end(hd_rule_in(graph, node, i), d);
			if (here != 1 && whole != 1 && here != whole)
				return hd_rule_broken(graph, node,
					"the shapes do not broadcast: paired from the last, extents are "
					"equal or 1", diag);
			whole = whole == 1 ? here : whole;
		}
		dim[rank - 1 - d] = whole;
	}
	hd_rule_set(out, rank, dim, dtype);
	return HD_OK;
}

/* Both operands of one type, f32 or i32. */
static enum hd_err pair_types(const struct hd_graph *graph, const struct hd_node *node, int first,
	struct hd_diag *diag)
{
	uint8_t type = hd_rule_in(graph, node, first)->dtype;

	if ((type != HD_F32 && type != HD_I32) || hd_rule_in(graph, node, first + 1)->dtype != type)
		return hd_rule_broken(graph, node, "operands are f32, or both are i32; cast one", diag);
	return HD_OK;
}

enum hd_err hd_shape_arith(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	enum hd_err err = pair_types(graph, node, 0, diag);

	return err == HD_OK ? broadcast(graph, node, 0, (enum hd_dtype)hd_rule_in(graph, node, 0)->dtype, out,
		diag) : err;
}

enum hd_err hd_shape_pair_f32(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	return err == HD_OK ? broadcast(graph, node, 0, HD_F32, out, diag) : err;
}

enum hd_err hd_shape_compare(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	enum hd_err err = pair_types(graph, node, 0, diag);

	return err == HD_OK ? broadcast(graph, node, 0, HD_F32, out, diag) : err;
}

enum hd_err hd_shape_where(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	uint8_t c = hd_rule_in(graph, node, 0)->dtype;
	enum hd_err err = pair_types(graph, node, 1, diag);

	if (err == HD_OK && c != HD_F32 && c != HD_I32 && c != HD_U8)
		err = hd_rule_broken(graph, node, "the condition is f32, i32 or u8", diag);
	return err == HD_OK ? broadcast(graph, node, 0, (enum hd_dtype)hd_rule_in(graph, node, 1)->dtype, out,
		diag) : err;
}

enum hd_err hd_shape_expand(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
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
	if (rank < x->rank)
		return hd_rule_broken(graph, node, "the new extents are fewer than those of x", diag);
	for (int d = 0; d < x->rank; d++)
		if (from_end(x, d) != 1 && from_end(x, d) != dim[rank - 1 - d])
			return hd_rule_broken(graph, node, "an extent of x is neither 1 nor the new one",
				diag);
	hd_rule_set(out, rank, dim, (enum hd_dtype)x->dtype);
	return HD_OK;
}

/* Which axes of `whole` a value of the shape `part` is repeated over, and which of them it has as 1. */
static struct hd_attr repeated_axes(const struct hd_value *whole, const struct hd_value *part)
{
	struct hd_attr attr = { .i = { 0 } };

	for (int d = 0; d < whole->rank; d++) {
		int32_t bit = 1 << (whole->rank - 1 - d);
		if (d >= part->rank)
			attr.i[0] |= bit;
		else if (from_end(part, d) != from_end(whole, d))
			attr.i[0] |= bit, attr.i[1] |= bit;
	}
	return attr;
}

enum hd_err hd_grad_add_summed(struct hd_autodiff *ad, uint32_t forward, uint32_t value, uint16_t op,
	uint8_t nin,
	const uint32_t *in, const struct hd_attr *attr, struct hd_diag *diag)
{
	uint32_t made;
	enum hd_err err;

	if (!hd_grad_wanted(ad, value))
		return HD_OK;
	err = hd_grad_make(ad, forward, value, op, nin, in, attr, &made, diag);
	if (err != HD_OK)
		return err;
	const struct hd_graph *graph = hd_grad_graph(ad);
	struct hd_attr sum = repeated_axes(&graph->value[made], &graph->value[value]);
	if (sum.i[0] == 0)
		return hd_grad_join(ad, forward, value, made, diag);
	return hd_grad_add(ad, forward, value, HD_OP_REDUCE_SUM, 1, &made, &sum, diag);
}

/* The gradient `grad` itself, summed to the shape of `value`. */
static enum hd_err pass_summed(struct hd_autodiff *ad, uint32_t node, uint32_t value, uint32_t grad,
	struct hd_diag *diag)
{
	const struct hd_graph *graph = hd_grad_graph(ad);
	struct hd_attr sum = repeated_axes(&graph->value[grad], &graph->value[value]);

	return sum.i[0] ? hd_grad_add(ad, node, value, HD_OP_REDUCE_SUM, 1, &grad, &sum, diag) :
		hd_grad_pass(ad, node, value, grad, diag);
}

/* Sums, differences, products: lines of op.h. */

/* A suffix repeated over all leading extents is the bias of old: summed by sum_rows. */
static bool is_suffix(const struct hd_value *whole, const struct hd_value *part)
{
	return part->rank < whole->rank && memcmp(whole->dim + (whole->rank - part->rank), part->dim,
		part->rank * sizeof part->dim[0]) == 0;
}

static enum hd_err add_side(struct hd_autodiff *ad, uint32_t node, uint32_t value, uint32_t dy,
	struct hd_diag *diag)
{
	const struct hd_graph *graph = hd_grad_graph(ad);
	const struct hd_value *whole = &graph->value[dy], *part = &graph->value[value];

	if (is_suffix(whole, part))
		return hd_grad_add(ad, node, value, HD_OP_SUM_ROWS, 1, &dy,
			&(struct hd_attr){ .i = { 0, part->rank } }, diag);
	return pass_summed(ad, node, value, dy, diag);
}

/* Sums and differences hand a seed on where nothing is repeated: they may join losses. */
static bool seeds_pass(struct hd_autodiff *ad, const struct hd_node *n, float *seed)
{
	const struct hd_graph *graph = hd_grad_graph(ad);

	return hd_grad_is_seed(ad, n->out, seed) && hd_dims_same(&graph->value[n->in[0]],
		&graph->value[n->in[1]]);
}

enum hd_err hd_grad_add_op(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE;
	enum hd_err err;
	float seed;

	if (seeds_pass(ad, &n, &seed)) {
		err = hd_grad_seed(ad, n.in[0], seed, diag);
		return err == HD_OK ? hd_grad_seed(ad, n.in[1], seed, diag) : err;
	}
	err = hd_grad_full(ad, node, n.out, &dy, diag);
	if (err == HD_OK)
		err = add_side(ad, node, n.in[0], dy, diag);
	return err == HD_OK ? add_side(ad, node, n.in[1], dy, diag) : err;
}

enum hd_err hd_grad_sub(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE;
	enum hd_err err;
	float seed;

	if (seeds_pass(ad, &n, &seed)) {
		err = hd_grad_seed(ad, n.in[0], seed, diag);
		return err == HD_OK ? hd_grad_seed(ad, n.in[1], -seed, diag) : err;
	}
	err = hd_grad_full(ad, node, n.out, &dy, diag);
	if (err == HD_OK)
		err = pass_summed(ad, node, n.in[0], dy, diag);
	return err == HD_OK ? hd_grad_add_summed(ad, node, n.in[1], HD_OP_SCALE, 1, &dy,
		&(struct hd_attr){ .f = { -1.0f } }, diag) : err;
}

enum hd_err hd_grad_mul(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	if (err == HD_OK)
		err = hd_grad_add_summed(ad, node, n.in[0], HD_OP_MUL, 2, (uint32_t[]){ dy, n.in[1] }, NULL,
			diag);
	return err == HD_OK ? hd_grad_add_summed(ad, node, n.in[1], HD_OP_MUL, 2, (uint32_t[]){ dy, n.in[0] },
		NULL, diag) : err;
}

/* d(a/b) = dy / b for a, -(dy / b) (a / b) for b. */
enum hd_err hd_grad_div(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE, part, b = n.in[1];
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	if (err == HD_OK)
		err = hd_grad_add_summed(ad, node, n.in[0], HD_OP_DIV, 2, (uint32_t[]){ dy, b }, NULL, diag);
	if (err != HD_OK || !hd_grad_wanted(ad, b))
		return err;
	err = hd_grad_make(ad, node, b, HD_OP_DIV, 2, (uint32_t[]){ dy, b }, NULL, &part, diag);
	if (err == HD_OK)
		err = hd_grad_make(ad, node, b, HD_OP_MUL, 2, (uint32_t[]){ part, n.out }, NULL, &part, diag);
	return err == HD_OK ? hd_grad_add_summed(ad, node, b, HD_OP_SCALE, 1, &part,
		&(struct hd_attr){ .f = { -1.0f } }, diag) : err;
}

/* dy where value `mine` is the greater of the two, half of it where they are equal. */
static enum hd_err greater_side(struct hd_autodiff *ad, uint32_t node, uint32_t value, uint32_t dy,
	uint32_t less, uint32_t more,
	struct hd_diag *diag)
{
	uint32_t mask, tie;
	enum hd_err err;

	if (!hd_grad_wanted(ad, value))
		return HD_OK;
	err = hd_grad_make(ad, node, value, HD_OP_LESS, 2, (uint32_t[]){ less, more }, NULL, &mask, diag);
	if (err == HD_OK)
		err = hd_grad_make(ad, node, value, HD_OP_EQUAL, 2, (uint32_t[]){ less, more }, NULL, &tie,
			diag);
	if (err == HD_OK)
		err = hd_grad_make(ad, node, value, HD_OP_SCALE, 1, &tie, &(struct hd_attr){ .f = { 0.5f } },
			&tie, diag);
	if (err == HD_OK)
		err = hd_grad_make(ad, node, value, HD_OP_ADD, 2, (uint32_t[]){ mask, tie }, NULL, &mask,
			diag);
	return err == HD_OK ? hd_grad_add_summed(ad, node, value, HD_OP_MUL, 2, (uint32_t[]){ dy, mask },
		NULL, diag) : err;
}

enum hd_err hd_grad_maximum(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	if (err == HD_OK)
		err = greater_side(ad, node, n.in[0], dy, n.in[1], n.in[0], diag);
	return err == HD_OK ? greater_side(ad, node, n.in[1], dy, n.in[0], n.in[1], diag) : err;
}

enum hd_err hd_grad_minimum(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	if (err == HD_OK)
		err = greater_side(ad, node, n.in[0], dy, n.in[0], n.in[1], diag);
	return err == HD_OK ? greater_side(ad, node, n.in[1], dy, n.in[1], n.in[0], diag) : err;
}

enum hd_err hd_grad_scalar(struct hd_autodiff *ad, float x, uint32_t *value, struct hd_diag *diag)
{
	return hd_graph_const(hd_grad_graph(ad), HD_F32, 1, (int64_t[]){ 1 }, &x, value, diag);
}

/* By where once more, not by a product: what is no number on the other side stays there. */
enum hd_err hd_grad_where(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE, none;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	if (err == HD_OK)
		err = hd_grad_scalar(ad, 0.0f, &none, diag);
	if (err == HD_OK)
		err = hd_grad_add_summed(ad, node, n.in[1], HD_OP_WHERE, 3, (uint32_t[]){ n.in[0], dy, none },
			NULL, diag);
	return err == HD_OK ? hd_grad_add_summed(ad, node, n.in[2], HD_OP_WHERE, 3,
		(uint32_t[]){ n.in[0], none, dy }, NULL, diag) : err;
}

enum hd_err hd_grad_expand(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	return err == HD_OK ? pass_summed(ad, node, n.in[0], dy, diag) : err;
}
