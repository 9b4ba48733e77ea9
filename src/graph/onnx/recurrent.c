/* LSTM and GRU: one layer, forward in time, from a state of zeros, as our cells are.
 *
 * ONNX has time first, [T,N,..] (layout 1: [N,T,..]), and the gates of an LSTM in the order i o f c, of a GRU
 * in z r h; ours lie in PyTorch's, i f g o and r z n. So inputs are turned, and weights cut along their gates
 * and joined again, in the graph: the parameters stay the file's. */
#include <string.h>

#include "graph/models/rows.h"
#include "graph/onnx/import.h"

enum { X, W, R, B, LENGTHS, H0, C0, PEEPHOLES };

struct onnx_cell { const char *op; enum hd_op ours; int32_t gates, order[4]; };
static const struct onnx_cell cells[] = { { "LSTM", HD_OP_LSTM, 4, { 0, 2, 3, 1 } },
	{ "GRU", HD_OP_GRU, 3, { 1, 0, 2 } } };

static const struct hd_attr none;

/* Zeros, seen through what copies elements. */
static bool is_zero(const struct hd_graph *g, uint32_t value)
{
	const struct hd_value *v = &g->value[value];

	while (v->kind == HD_TEMP) {
		const struct hd_node *n = &g->node[v->node];
		if (n->op != HD_OP_EXPAND && n->op != HD_OP_RESHAPE && n->op != HD_OP_PERMUTE &&
			n->op != HD_OP_SLICE)
			return false;
		v = &g->value[n->in[0]];
	}
	for (uint64_t k = 0; v->kind == HD_CONST && k < hd_value_bytes(v, 1); k++)
		if (g->consts[v->data + k])
			return false;
	return v->kind == HD_CONST;
}

static enum hd_err starts_from_zeros(struct hd_onnx_call *call, uint32_t i)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, i);
	uint32_t value;

	if (!v)
		return HD_OK;
	if (v->kind == HD_VAL_INIT && !hd_onnx_is_constant(v))
		return hd_onnx_no(call, "its initial state is a parameter; Heddle's cells start from zeros");
	enum hd_err err = hd_onnx_value(call, i, &value);
	return err ? err : is_zero(call->im->graph, value) ? HD_OK : hd_onnx_no(call,
		"its initial state is not known to be zeros");
}

static enum hd_err check(struct hd_onnx_call *call, const struct onnx_cell *cell)
{
	const struct hd_onnx_val *x = hd_onnx_in(call, X), *w = hd_onnx_in(call, W), *r = hd_onnx_in(call, R),
		*b = hd_onnx_in(call, B);

	if (!x || !w || !r || x->rank != 3 || w->rank != 3 || r->rank != 3 || w->dim[0] != 1 ||
		r->dim[0] != 1 || r->dim[2] < 1 ||
	    w->dim[1] != cell->gates * r->dim[2] || r->dim[1] != w->dim[1] || w->dim[2] != x->dim[2] ||
	    (b && (b->rank != 2 || b->dim[0] != 1 || b->dim[1] != 2 * w->dim[1])) ||
	    w->dim[1] > INT32_MAX / 2)
		return hd_onnx_no(call,
			"an operand is missing, has other extents, or there are two directions");
	if (!hd_onnx_attr_is(call->node, "direction", "forward", true))
		return hd_onnx_no(call, "goes backward in time");
	if (hd_onnx_in(call, LENGTHS) || hd_onnx_in(call, PEEPHOLES))
		return hd_onnx_no(call, "has lengths of sequences, or peepholes");
	if (hd_onnx_attr(call->node, "activations") || hd_onnx_attr(call->node, "clip") ||
		hd_onnx_attr_int(call->node, "input_forget", 0))
		return hd_onnx_no(call, "has activations of its own, clips, or couples its gates");
	if (cell->ours == HD_OP_GRU && !hd_onnx_attr_int(call->node, "linear_before_reset", 0))
		return hd_onnx_no(call,
			"resets before the product (linear_before_reset 0); Heddle's resets after it, as "
			"PyTorch's");
	enum hd_err err = starts_from_zeros(call, H0);
	return err ? err : starts_from_zeros(call, C0);
}

/* Blocks of `each` along extent 0 from `from` on, in the order of our gates. */
static uint32_t ordered(struct hd_maker *m, const struct onnx_cell *cell, uint32_t value, int32_t from,
	int32_t each)
{
	uint32_t all = 0;

	for (int32_t k = 0; k < cell->gates; k++) {
		uint32_t block = hd_make1(m, HD_OP_SLICE, value,
			(struct hd_attr){ .i = { 0, from + cell->order[k] * each, 1, each } });
		all = k ? hd_make2(m, HD_OP_CONCAT, all, block, none) : block;
	}
	return all;
}

/* Input i without its first extent, which is 1. */
static enum hd_err flat(struct hd_onnx_call *call, uint32_t i, uint32_t *value)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, i);
	enum hd_err err = hd_onnx_value(call, i, value);

	return err ? err : hd_onnx_reshape(call, *value, v->rank - 1u, v->dim + 1, value);
}

/* [N,T,H] as output k: T and N change places unless the batch is first; a whole one has an extent of 1 for
 * the directions. */
static enum hd_err put(struct hd_onnx_call *call, struct hd_maker *m, uint32_t k, uint32_t y,
	bool batch_first)
{
	const struct hd_value v = *hd_onnx_shape(call, y);
	bool whole = k == 0;
	int64_t dim[4];

	if (!batch_first)
		y = hd_make1(m, HD_OP_PERMUTE, y, (struct hd_attr){ .i = { 1, 0, 2 } });
	if (m->err)
		return m->err;
	uint32_t at = 0;
	dim[at++] = batch_first ? v.dim[0] : v.dim[1];
	if (whole && !batch_first)
		dim[at++] = 1;
	dim[at++] = batch_first ? v.dim[1] : v.dim[0];
	if (whole && batch_first)
		dim[at++] = 1;
	dim[at++] = v.dim[2];
	enum hd_err err = hd_onnx_reshape(call, y, at, dim, &y);
	return err ? err : hd_onnx_put(call, k, y, at, dim);
}

static enum hd_err put_all(struct hd_onnx_call *call, const struct onnx_cell *cell, struct hd_maker *m,
	uint32_t y)
{
	bool batch_first = hd_onnx_attr_int(call->node, "layout", 0) != 0;
	const int32_t last = (int32_t)hd_onnx_shape(call, y)->dim[1] - 1;
	enum hd_err err = put(call, m, 0, y, batch_first);

	for (uint32_t k = 1; k < (cell->ours == HD_OP_LSTM ? 3u : 2u) && !err; k++)
		if (hd_onnx_out(call, k) && hd_onnx_out(call, k)->nuses) {
			uint32_t end = hd_make1(m, HD_OP_SLICE, y + k - 1,
				(struct hd_attr){ .i = { 1, last, 1, 1 } });
			err = m->err ? m->err : put(call, m, k, end, batch_first);
		}
	return err;
}

enum hd_err hd_onnx_recurrent(struct hd_onnx_call *call)
{
	const struct onnx_cell *cell = &cells[strcmp(call->node->op_type, cells[0].op) != 0];
	struct hd_maker m = { call->im->graph, &call->why, HD_OK };
	uint32_t x, w, r, b;
	enum hd_err err = check(call, cell);

	if (!err)
		err = hd_onnx_value(call, X, &x);
	if (!err)
		err = flat(call, W, &w);
	if (!err)
		err = flat(call, R, &r);
	if (!err && hd_onnx_in(call, B))
		err = flat(call, B, &b);
	if (err)
		return err;
	const int32_t hidden = (int32_t)hd_onnx_in(call, R)->dim[2], all = cell->gates * hidden;
	if (!hd_onnx_in(call, B))
		b = hd_make_zeros(&m, HD_F32, HD_DIMS(2 * all));
	if (!hd_onnx_attr_int(call->node, "layout", 0))
		x = hd_make1(&m, HD_OP_PERMUTE, x, (struct hd_attr){ .i = { 1, 0, 2 } });
	w = ordered(&m, cell, w, 0, hidden);
	r = ordered(&m, cell, r, 0, hidden);
	uint32_t z = hd_make2(&m, HD_OP_MATMUL, x, w, (struct hd_attr){ .i = { 0, 1 } });
	z = hd_make2(&m, HD_OP_BIAS, z, ordered(&m, cell, b, 0, hidden), (struct hd_attr){ .i = { -1 } });
	uint32_t y = hd_make3(&m, cell->ours, z, r, ordered(&m, cell, b, all, hidden), none);
	err = m.err ? m.err : put_all(call, cell, &m, y);
	return err == HD_E_INVAL ? HD_E_INPUT : err;
}
