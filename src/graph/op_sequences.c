#include "graph/op_sequences_rules.h"

#include <string.h>

static int64_t last_of(const struct hd_value *v) { return v->dim[v->rank - 1]; }
static bool is_vector(const struct hd_value *v, int64_t len) { return v->rank == 1 && v->dim[0] == len; }

/* Adds one node with several gradients, for value[0 .. n); *out is its first output, HD_NONE: none of them
 * is wanted. */
static enum hd_err grad_node(struct hd_autodiff *ad, uint32_t node, uint32_t n, const uint32_t *value,
	uint16_t op, uint8_t nin,
	const uint32_t *in, const struct hd_attr *attr, uint32_t *out, struct hd_diag *diag)
{
	bool wanted = false;

	for (uint32_t i = 0; i < n; i++)
		wanted |= hd_grad_wanted(ad, value[i]);
	*out = HD_NONE;
	return wanted ? hd_grad_aux(ad, node, op, nin, in, attr, out, diag) : HD_OK;
}

/* The same; its output i is the gradient of value[i]. */
static enum hd_err grad_several(struct hd_autodiff *ad, uint32_t node, uint32_t n, const uint32_t *value,
	uint16_t op, uint8_t nin,
	const uint32_t *in, const struct hd_attr *attr, struct hd_diag *diag)
{
	uint32_t out;
	enum hd_err err = grad_node(ad, node, n, value, op, nin, in, attr, &out, diag);

	for (uint32_t i = 0; i < n && err == HD_OK && out != HD_NONE; i++)
		err = hd_grad_pass(ad, node, value[i], out + i, diag);
	return err;
}

/* Rotary positions and gates. */

enum hd_err hd_shape_rotary(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0);
	int32_t heads = node->attr.i[0];
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err != HD_OK)
		return err;
	if (x->rank != 3 || x->dim[1] < 0 || x->dim[2] < 0)
		return hd_rule_broken(graph, node, "x is [N,T,heads D]", diag);
	if (heads < 1 || x->dim[2] % (2 * (int64_t)heads) != 0)
		return hd_rule_broken(graph, node, "every head has an even number of channels", diag);
	if (node->attr.i[1] & ~1 || !(node->attr.f[0] > 1.0f))
		return hd_rule_broken(graph, node, "back is 0 or 1, base is above 1", diag);
	hd_rule_like(out, x);
	return HD_OK;
}

enum hd_err hd_grad_rotary(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	struct hd_attr attr = n.attr;

	attr.i[1] = !attr.i[1];
	return hd_grad_add(ad, node, n.in[0], HD_OP_ROTARY, 1, (uint32_t[]){ hd_grad_of(ad, n.out) }, &attr,
		diag);
}

enum hd_err hd_shape_swiglu_dx(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	enum hd_err err = hd_shape_pair(graph, node, out, diag);

	if (err == HD_OK && !hd_dims_same(hd_rule_in(graph, node, 0), hd_rule_in(graph, node, 2)))
		err = hd_rule_broken(graph, node, "the shapes differ", diag);
	if (err == HD_OK)
		hd_rule_like(&out[1], hd_rule_in(graph, node, 0));
	return err;
}

enum hd_err hd_grad_swiglu(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);

	return grad_several(ad, node, 2, n.in, HD_OP_SWIGLU_DX, 3,
		(uint32_t[]){ hd_grad_of(ad, n.out), n.in[0], n.in[1] }, NULL, diag);
}

/* Attention with operands of its own. `first` is the operand q. */

static bool padded(const struct hd_node *node) { return node->op == HD_OP_ATTEND_PAD ||
	node->op == HD_OP_ATTEND_PAD_DX; }

static enum hd_err attend_check(const struct hd_graph *graph, const struct hd_node *node, int first,
	int64_t lse[3], struct hd_diag *diag)
{
	const struct hd_value *q = hd_rule_in(graph, node, first), *k = hd_rule_in(graph, node, first + 1),
		*v = hd_rule_in(graph, node, first + 2);
	const struct hd_value *ids = padded(node) ? hd_rule_in(graph, node, node->nin - 1) : NULL;
	int32_t heads = node->attr.i[0], kv = node->attr.i[1];
	enum hd_err err = hd_rule_f32(graph, node, ids ? 1u << (node->nin - 1) : 0, diag);

	if (err != HD_OK)
		return err;
	if (q->rank != 3 || q->dim[1] < 0 || q->dim[2] < 0)
		return hd_rule_broken(graph, node, "q is [N,T,heads D]", diag);
	if (heads < 1 || kv < 1 || heads % kv != 0 || q->dim[2] % heads != 0 || node->attr.i[2] & ~1)
		return hd_rule_broken(graph, node,
			"kv divides heads, heads divides the channels of q, causal is 0 or 1", diag);
	int32_t window = node->attr.i[ids ? 4 : 3];
	if (window < 0 || (window && !node->attr.i[2]))
		return hd_rule_broken(graph, node, "a window is of what came before: 0, or causal is 1",
			diag);
	if (!(node->attr.f[0] >= 0) || !(node->attr.f[1] >= 0))
		return hd_rule_broken(graph, node, "scale and cap are above 0, or 0", diag);
	if (!hd_dims_same(k, v) || k->rank != 3 || k->dim[0] != q->dim[0] || k->dim[1] != q->dim[1] ||
		k->dim[2] != q->dim[2] / heads * kv)
		return hd_rule_broken(graph, node, "k and v are [N,T,kv D]", diag);
	if (ids && (ids->dtype != HD_I32 || ids->rank != 2 || ids->dim[0] != q->dim[0] ||
		ids->dim[1] != q->dim[1]))
		return hd_rule_broken(graph, node, "ids are i32 [N,T]", diag);
	memcpy(lse, (int64_t[]){ q->dim[0], heads, q->dim[1] }, 3 * sizeof lse[0]);
	return HD_OK;
}

enum hd_err hd_shape_attend(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	int64_t lse[3];
	enum hd_err err = attend_check(graph, node, 0, lse, diag);

	if (err != HD_OK)
		return err;
	hd_rule_like(&out[0], hd_rule_in(graph, node, 0));
	hd_rule_set(&out[1], 3, lse, HD_F32);
	return HD_OK;
}

enum hd_err hd_shape_attend_dx(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *q = hd_rule_in(graph, node, 1), *plse = hd_rule_in(graph, node, 5);
	int64_t lse[3];
	enum hd_err err = attend_check(graph, node, 1, lse, diag);

	if (err != HD_OK)
		return err;
	if (!hd_dims_same(hd_rule_in(graph, node, 0), q) || !hd_dims_same(hd_rule_in(graph, node, 4), q) ||
		plse->rank != 3 ||
	    memcmp(plse->dim, lse, sizeof lse) != 0)
		return hd_rule_broken(graph, node, "dy, y and lse have not the shapes of this attention",
			diag);
	for (int i = 0; i < 3; i++)
		hd_rule_like(&out[i], hd_rule_in(graph, node, 1 + i));
	return HD_OK;
}

enum hd_err hd_grad_attend(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t in[7] = { hd_grad_of(ad, n.out), n.in[0], n.in[1], n.in[2], n.out, n.out + 1,
		padded(&n) ? n.in[3] : HD_NONE };
	enum hd_err err = hd_rule_no_grad(ad, node, 1, diag);

	if (err != HD_OK)
		return err;
	return grad_several(ad, node, 3, n.in, padded(&n) ? HD_OP_ATTEND_PAD_DX : HD_OP_ATTEND_DX,
		padded(&n) ? 7 : 6, in, &n.attr, diag);
}

static double elems(const struct hd_value *v, uint64_t rows) { return (double)hd_value_elems(v, rows); }

/* Products of T x T scores with the channels of q: two forward, five backward (the scores are made again);
 * causal: half. */
static struct hd_cost attend_cost(const struct hd_graph *graph, const struct hd_node *node,
	const struct hd_value *q, double products, uint64_t rows)
{
	double half = node->attr.i[2] ? 0.5 : 1.0;

	return (struct hd_cost){ 2.0 * products * half * elems(q, rows) * (double)q->dim[1],
		hd_cost_elementwise(graph, node, rows).bytes };
}

struct hd_cost hd_cost_attend(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	return attend_cost(graph, node, hd_rule_in(graph, node, 0), 2, rows);
}

struct hd_cost hd_cost_attend_dx(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	return attend_cost(graph, node, hd_rule_in(graph, node, 1), 5, rows);
}

/* Recurrent cells. Operand `iz` has `gates` times the H columns of w [gates H, H]. */

static enum hd_err cell_check(const struct hd_graph *graph, const struct hd_node *node, int gates,
	const struct hd_value *z, struct hd_value *y,
	struct hd_diag *diag)
{
	const struct hd_value *w = hd_rule_in(graph, node, 1);
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err != HD_OK)
		return err;
	if (z->rank != 3 || z->dim[1] < 0 || z->dim[2] < 0 || z->dim[2] % gates != 0)
		return hd_rule_broken(graph, node, gates == 4 ? "the gates are [N,T,4H]" :
			"the gates are [N,T,3H]", diag);
	if (w->rank != 2 || w->dim[0] != z->dim[2] || w->dim[1] != z->dim[2] / gates)
		return hd_rule_broken(graph, node, gates == 4 ? "w is [4H,H]" : "w is [3H,H]", diag);
	hd_rule_set(y, 3, (int64_t[]){ z->dim[0], z->dim[1], w->dim[1] }, HD_F32);
	return HD_OK;
}

static enum hd_err cell_shape(const struct hd_graph *graph, const struct hd_node *node, int gates,
	struct hd_value *y, struct hd_diag *diag)
{
	const struct hd_value *z = hd_rule_in(graph, node, 0);
	enum hd_err err = cell_check(graph, node, gates, z, y, diag);

	if (err == HD_OK && !is_vector(hd_rule_in(graph, node, 2), last_of(z)))
		err = hd_rule_broken(graph, node, "the bias has not the last extent of z", diag);
	return err;
}

enum hd_err hd_shape_lstm(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	struct hd_value y = { 0 };
	enum hd_err err = cell_shape(graph, node, 4, &y, diag);

	if (err != HD_OK)
		return err;
	hd_rule_like(&out[0], &y);
	hd_rule_like(&out[1], &y);
	hd_rule_like(&out[2], hd_rule_in(graph, node, 0));
	return HD_OK;
}

enum hd_err hd_shape_gru(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	struct hd_value y = { 0 };
	enum hd_err err = cell_shape(graph, node, 3, &y, diag);

	if (err != HD_OK)
		return err;
	hd_rule_like(&out[0], &y);
	hd_rule_like(&out[1], hd_rule_in(graph, node, 0));
	hd_rule_like(&out[2], &y);
	return HD_OK;
}

enum hd_err hd_shape_lstm_dx(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *gates = hd_rule_in(graph, node, 3);
	struct hd_value y = { 0 };
	enum hd_err err = cell_check(graph, node, 4, gates, &y, diag);

	if (err == HD_OK && (!hd_dims_same(hd_rule_in(graph, node, 0), &y) ||
		!hd_dims_same(hd_rule_in(graph, node, 2), &y)))
		err = hd_rule_broken(graph, node, "dy and cell are not those of these gates", diag);
	if (err == HD_OK)
		hd_rule_like(out, gates);
	return err;
}

enum hd_err hd_shape_gru_dx(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *gates = hd_rule_in(graph, node, 3);
	struct hd_value y = { 0 };
	enum hd_err err = cell_check(graph, node, 3, gates, &y, diag);

	if (err == HD_OK && (!hd_dims_same(hd_rule_in(graph, node, 0), &y) ||
		!hd_dims_same(hd_rule_in(graph, node, 2), &y) ||
	    !hd_dims_same(hd_rule_in(graph, node, 4), &y)))
		err = hd_rule_broken(graph, node, "dy, y and pre are not those of these gates", diag);
	if (err != HD_OK)
		return err;
	hd_rule_like(&out[0], gates);
	hd_rule_like(&out[1], gates);
	return HD_OK;
}

enum hd_err hd_shape_recur_dw(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *dg = hd_rule_in(graph, node, 0), *y = hd_rule_in(graph, node, 1);
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err != HD_OK)
		return err;
	if (dg->rank != 3 || y->rank != 3 || dg->dim[0] != y->dim[0] || dg->dim[1] != y->dim[1] ||
		dg->dim[1] < 0 || dg->dim[2] < 0 || y->dim[2] < 0)
		return hd_rule_broken(graph, node, "the operands are [N,T,G] and [N,T,H]", diag);
	hd_rule_set(out, 2, (int64_t[]){ dg->dim[2], y->dim[2] }, HD_F32);
	return HD_OK;
}

enum hd_err hd_grad_lstm(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dz, z = n.in[0], w = n.in[1], b = n.in[2], y = n.out, dy = hd_grad_of(ad, y);
	enum hd_err err = hd_rule_no_grad(ad, node, 1, diag);

	if (err == HD_OK)
		err = hd_rule_no_grad(ad, node, 2, diag);
	if (err == HD_OK)
		err = grad_node(ad, node, 3, n.in, HD_OP_LSTM_DX, 4,
			(uint32_t[]){ dy, w, n.out + 1, n.out + 2 }, NULL, &dz, diag);
	if (err != HD_OK || dz == HD_NONE)
		return err;
	err = hd_grad_pass(ad, node, z, dz, diag);
	if (err == HD_OK)
		err = hd_grad_add(ad, node, w, HD_OP_RECUR_DW, 2, (uint32_t[]){ dz, y }, NULL, diag);
	return err == HD_OK ? hd_grad_add(ad, node, b, HD_OP_SUM_ROWS, 1, &dz,
		&(struct hd_attr){ .i = { -1, 0 } }, diag) : err;
}

enum hd_err hd_grad_gru(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dz, z = n.in[0], w = n.in[1], b = n.in[2], y = n.out, dy = hd_grad_of(ad, y);
	enum hd_err err = hd_rule_no_grad(ad, node, 1, diag);

	if (err == HD_OK)
		err = hd_rule_no_grad(ad, node, 2, diag);
	if (err == HD_OK)
		err = grad_node(ad, node, 3, n.in, HD_OP_GRU_DX, 5,
			(uint32_t[]){ dy, w, y, n.out + 1, n.out + 2 }, NULL, &dz, diag);
	if (err != HD_OK || dz == HD_NONE)
		return err;
	uint32_t dg = dz + 1;
	err = hd_grad_pass(ad, node, z, dz, diag);
	if (err == HD_OK)
		err = hd_grad_add(ad, node, w, HD_OP_RECUR_DW, 2, (uint32_t[]){ dg, y }, NULL, diag);
	return err == HD_OK ? hd_grad_add(ad, node, b, HD_OP_SUM_ROWS, 1, &dg,
		&(struct hd_attr){ .i = { -1, 0 } }, diag) : err;
}

/* One product of the state with w per position, forward and backward. */
struct hd_cost hd_cost_recurrent(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	const struct hd_value *w = hd_rule_in(graph, node, 1), *y = hd_rule_in(graph, node, 0);
	double states = elems(y, rows) / (double)last_of(y);

	return (struct hd_cost){ 2.0 * states * elems(w, 1), hd_cost_elementwise(graph, node, rows).bytes };
}

struct hd_cost hd_cost_recur_dw(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	const struct hd_value *dg = hd_rule_in(graph, node, 0), *y = hd_rule_in(graph, node, 1);

	return (struct hd_cost){ 2.0 * elems(dg, rows) * (double)last_of(y),
		hd_cost_elementwise(graph, node, rows).bytes };
}

/* Masked tokens. */

enum hd_err hd_shape_mask_tokens(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0);

	if (x->dtype != HD_I32 || x->rank != 2 || x->dim[1] < 0)
		return hd_rule_broken(graph, node, "tokens are i32 [N,T]", diag);
	if (node->attr.i[1] < 1 || node->attr.i[0] < 0 || node->attr.i[0] >= node->attr.i[1])
		return hd_rule_broken(graph, node, "mask is a token below vocab", diag);
	if (!(node->attr.f[0] >= 0.0f && node->attr.f[0] <= 1.0f))
		return hd_rule_broken(graph, node, "share is 0 to 1", diag);
	hd_rule_like(&out[0], x);
	hd_rule_like(&out[1], x);
	return HD_OK;
}
