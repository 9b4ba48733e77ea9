#include "graph/op_rules.h"

#include <string.h>

/* A matrix of a product: leading extents flattened, then perhaps read transposed. */
struct flat_matrix { int64_t rows, cols; };

static struct flat_matrix matrix_of(const struct hd_value *v, bool transposed)
{
	int64_t lead = hd_dims_product(v->dim, v->rank - 1u), last = v->dim[v->rank - 1];

	return transposed ? (struct flat_matrix){ last, lead } : (struct flat_matrix){ lead, last };
}

enum hd_err hd_shape_matmul(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *a = hd_rule_in(graph, node, 0), *b = hd_rule_in(graph, node, 1);
	int ta = node->attr.i[0], tb = node->attr.i[1];
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err != HD_OK)
		return err;
	if ((ta | tb) & ~1)
		return hd_rule_broken(graph, node, "ta and tb are 0 or 1", diag);
	if (a->rank < 2 || b->rank < 2)
		return hd_rule_broken(graph, node, "both operands need two extents", diag);
	struct flat_matrix l = matrix_of(a, ta), r = matrix_of(b, tb);
	if (l.cols != r.rows || l.cols == 0)
		return hd_rule_broken(graph, node, "the extents summed over differ", diag);
	if (l.rows == 0 || r.cols == 0)
		return hd_rule_broken(graph, node, "an operand is too large", diag);
	int64_t dim[HD_MAX_DIMS] = { l.rows };
	uint8_t rank = ta ? 2 : a->rank;
	if (!ta)
		memcpy(dim, a->dim, (rank - 1u) * sizeof dim[0]);
	dim[rank - 1] = r.cols;
	hd_rule_set(out, rank, dim, HD_F32);
	return HD_OK;
}

/* y = op(a) op(b). Rows: [ta][tb], the gradient of a as a product x z with its flags, then that of b.
 * 'y' stands for dy. */
struct product { char x, z; uint8_t tx, tz; };
static const struct product da_rule[2][2] = {
	{ { 'y', 'b', 0, 1 }, { 'y', 'b', 0, 0 } },
	{ { 'b', 'y', 0, 1 }, { 'b', 'y', 1, 1 } },
};
static const struct product db_rule[2][2] = {
	{ { 'a', 'y', 1, 0 }, { 'y', 'a', 1, 0 } },
	{ { 'a', 'y', 0, 0 }, { 'y', 'a', 1, 1 } },
};

static enum hd_err product_add(struct hd_autodiff *ad, uint32_t node, uint32_t value, struct product p,
	struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t of[] = { ['a' - 'a'] = n.in[0], ['b' - 'a'] = n.in[1], ['y' - 'a'] = hd_grad_of(ad, n.out) };
	uint32_t in[2] = { of[p.x - 'a'], of[p.z - 'a'] };

	return hd_grad_add(ad, node, value, HD_OP_MATMUL, 2, in, &(struct hd_attr){ .i = { p.tx, p.tz } },
		diag);
}

enum hd_err hd_grad_matmul(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	enum hd_err err = product_add(ad, node, n.in[0], da_rule[n.attr.i[0]][n.attr.i[1]], diag);

	if (err == HD_OK)
		err = product_add(ad, node, n.in[1], db_rule[n.attr.i[0]][n.attr.i[1]], diag);
	return err;
}

static double elems(const struct hd_value *v, uint64_t rows) { return (double)hd_value_elems(v, rows); }

static double bytes_of(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	return hd_cost_elementwise(graph, node, rows).bytes;
}

struct hd_cost hd_cost_matmul(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	const struct hd_value *a = hd_rule_in(graph, node, 0);
	struct flat_matrix l = matrix_of(a, node->attr.i[0]);

	return (struct hd_cost){ 2.0 * elems(&graph->value[node->out], rows) * (double)hd_extent(l.cols,
		rows),
		bytes_of(graph, node, rows) };
}

/* Convolution: attributes sh sw ph pw groups dh dw; of the last three, 0 stands for 1. */

static enum hd_err conv_channels(const struct hd_graph *graph, const struct hd_node *node,
	const struct hd_value *x, const struct hd_value *w, struct hd_diag *diag)
{
	int64_t groups = node->attr.i[4] ? node->attr.i[4] : 1;

	if (x->rank != 4 || w->rank != 4)
		return hd_rule_broken(graph, node, "images and kernels have four extents", diag);
	if (x->dim[1] < 0 || x->dim[2] < 0 || x->dim[3] < 0 || hd_dims_product(w->dim, 4) <= 0)
		return hd_rule_broken(graph, node,
			"only the first extent of the images may grow with the rows", diag);
	if (groups < 1 || w->dim[0] % groups != 0)
		return hd_rule_broken(graph, node, "groups are at least 1 and divide the kernels", diag);
	if (x->dim[1] % groups != 0 || x->dim[1] / groups != w->dim[1])
		return hd_rule_broken(graph, node, "images and kernels have different channels", diag);
	return HD_OK;
}

static enum hd_err conv_check(const struct hd_graph *graph, const struct hd_node *node,
	const struct hd_value *x, const struct hd_value *w, int64_t out[4], struct hd_diag *diag)
{
	const int32_t *stride = node->attr.i, *pad = node->attr.i + 2, *apart = node->attr.i + 5;
	enum hd_err err = conv_channels(graph, node, x, w, diag);

	if (err != HD_OK)
		return err;
	out[0] = x->dim[0];
	out[1] = w->dim[0];
	for (int k = 0; k < 2; k++) {
		int64_t covers = (w->dim[2 + k] - 1) * (apart[k] ? apart[k] : 1) + 1;
		int64_t len = x->dim[2 + k] + 2 * (int64_t)pad[k] - covers;
		if (stride[k] < 1 || apart[k] < 0 || pad[k] < 0 || pad[k] >= covers)
			return hd_rule_broken(graph, node,
				"strides are at least 1, dilations and pads at least 0, and pads smaller "
				"than the kernel", diag);
		if (len < 0)
			return hd_rule_broken(graph, node, "the kernel is larger than the padded image",
				diag);
		out[2 + k] = len / stride[k] + 1;
	}
	return HD_OK;
}

enum hd_err hd_shape_conv2d(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	int64_t dim[4];
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err == HD_OK)
		err = conv_check(graph, node, hd_rule_in(graph, node, 0), hd_rule_in(graph, node, 1), dim,
			diag);
	if (err == HD_OK)
		hd_rule_set(out, 4, dim, HD_F32);
	return err;
}

static enum hd_err conv_grad_shape(const struct hd_graph *graph, const struct hd_node *node, int ix, int iw,
	int imade,
	struct hd_value *out, struct hd_diag *diag)
{
	const struct hd_value *dy = hd_rule_in(graph, node, 0);
	int64_t dim[4];
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err == HD_OK)
		err = conv_check(graph, node, hd_rule_in(graph, node, ix), hd_rule_in(graph, node, iw), dim,
			diag);
	if (err != HD_OK)
		return err;
	if (dy->rank != 4 || memcmp(dy->dim, dim, sizeof dim) != 0)
		return hd_rule_broken(graph, node, "dy has not the shape of the convolution", diag);
	hd_rule_like(out, hd_rule_in(graph, node, imade));
	return HD_OK;
}

enum hd_err hd_shape_conv2d_dx(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	return conv_grad_shape(graph, node, 2, 1, 2, out, diag);
}

enum hd_err hd_shape_conv2d_dw(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	return conv_grad_shape(graph, node, 1, 2, 2, out, diag);
}

enum hd_err hd_grad_conv2d(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = hd_grad_of(ad, n.out), x = n.in[0], w = n.in[1];
	enum hd_err err = hd_grad_add(ad, node, x, HD_OP_CONV2D_DX, 3, (uint32_t[]){ dy, w, x }, &n.attr,
		diag);

	if (err == HD_OK)
		err = hd_grad_add(ad, node, w, HD_OP_CONV2D_DW, 3, (uint32_t[]){ dy, x, w }, &n.attr, diag);
	return err;
}

/* Forwards it is a transposed convolution: dy is what it reads. */
enum hd_err hd_grad_conv2d_dx(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dx = HD_NONE, dy = n.in[0], w = n.in[1];
	enum hd_err err = hd_grad_full(ad, node, n.out, &dx, diag);

	if (err == HD_OK)
		err = hd_grad_add(ad, node, dy, HD_OP_CONV2D, 2, (uint32_t[]){ dx, w }, &n.attr, diag);
	if (err == HD_OK)
		err = hd_grad_add(ad, node, w, HD_OP_CONV2D_DW, 3, (uint32_t[]){ dy, dx, w }, &n.attr, diag);
	return err;
}

static struct hd_cost conv_cost(const struct hd_graph *graph, const struct hd_node *node,
	const struct hd_value *y,
	const struct hd_value *w, uint64_t rows)
{
	return (struct hd_cost){ 2.0 * elems(y, rows) * elems(w, 1) / (double)w->dim[0],
		bytes_of(graph, node, rows) };
}

struct hd_cost hd_cost_conv2d(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	return conv_cost(graph, node, &graph->value[node->out], hd_rule_in(graph, node, 1), rows);
}

struct hd_cost hd_cost_conv2d_dx(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	return conv_cost(graph, node, hd_rule_in(graph, node, 0), hd_rule_in(graph, node, 1), rows);
}

struct hd_cost hd_cost_conv2d_dw(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	return conv_cost(graph, node, hd_rule_in(graph, node, 0), hd_rule_in(graph, node, 2), rows);
}

/* Attention: attributes heads causal. */

static enum hd_err attention_check(const struct hd_graph *graph, const struct hd_node *node,
	const struct hd_value *qkv,
	int64_t y[3], int64_t lse[3], struct hd_diag *diag)
{
	int32_t heads = node->attr.i[0];
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err != HD_OK)
		return err;
	if (qkv->rank != 3 || qkv->dim[1] < 0 || qkv->dim[2] < 0 || qkv->dim[2] % 3 != 0)
		return hd_rule_broken(graph, node, "qkv is [N,T,3C]", diag);
	if (heads < 1 || qkv->dim[2] / 3 % heads != 0 || node->attr.i[1] & ~1)
		return hd_rule_broken(graph, node, "heads divides C, causal is 0 or 1", diag);
	memcpy(y, (int64_t[]){ qkv->dim[0], qkv->dim[1], qkv->dim[2] / 3 }, 3 * sizeof y[0]);
	memcpy(lse, (int64_t[]){ qkv->dim[0], heads, qkv->dim[1] }, 3 * sizeof lse[0]);
	return HD_OK;
}

enum hd_err hd_shape_attention(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	int64_t y[3], lse[3];
	enum hd_err err = attention_check(graph, node, hd_rule_in(graph, node, 0), y, lse, diag);

	if (err != HD_OK)
		return err;
	hd_rule_set(&out[0], 3, y, HD_F32);
	hd_rule_set(&out[1], 3, lse, HD_F32);
	return HD_OK;
}

enum hd_err hd_shape_attention_dx(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	const struct hd_value *dy = hd_rule_in(graph, node, 0), *qkv = hd_rule_in(graph, node, 1);
	const struct hd_value *py = hd_rule_in(graph, node, 2), *plse = hd_rule_in(graph, node, 3);
	int64_t y[3], lse[3];
	enum hd_err err = attention_check(graph, node, qkv, y, lse, diag);

	if (err != HD_OK)
		return err;
	if (dy->rank != 3 || py->rank != 3 || plse->rank != 3 || memcmp(dy->dim, y, sizeof y) != 0 ||
	    memcmp(py->dim, y, sizeof y) != 0 || memcmp(plse->dim, lse, sizeof lse) != 0)
		return hd_rule_broken(graph, node,
			"dy, y and lse have not the shapes of the attention of qkv", diag);
	hd_rule_like(out, qkv);
	return HD_OK;
}

enum hd_err hd_grad_attention(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	enum hd_err err = hd_rule_no_grad(ad, node, 1, diag);

	if (err != HD_OK)
		return err;
	return hd_grad_add(ad, node, n.in[0], HD_OP_ATTENTION_DX, 4,
		(uint32_t[]){ hd_grad_of(ad, n.out), n.in[0], n.out, n.out + 1 }, &n.attr, diag);
}

/* Products of T x T scores with C columns: two forward, five backward (the scores are made again); causal:
 * half. */
static struct hd_cost attention_cost(const struct hd_graph *graph, const struct hd_node *node,
	const struct hd_value *qkv,
	double products, uint64_t rows)
{
	double half = node->attr.i[1] ? 0.5 : 1.0;

	return (struct hd_cost){ 2.0 * products * half * elems(qkv, rows) / 3.0 * (double)qkv->dim[1],
		bytes_of(graph, node, rows) };
}

struct hd_cost hd_cost_attention(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	return attention_cost(graph, node, hd_rule_in(graph, node, 0), 2, rows);
}

struct hd_cost hd_cost_attention_dx(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	return attention_cost(graph, node, hd_rule_in(graph, node, 1), 5, rows);
}
