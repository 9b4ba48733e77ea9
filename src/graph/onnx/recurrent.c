/* LSTM, GRU and RNN: one layer, one way or both ways in time.
 *
 * ONNX has time first, [T,N,..] (layout 1: [N,T,..]), and the gates of an LSTM in the order i o f c, of a GRU
 * in z r h; ours lie in PyTorch's, i f g o and r z n. So inputs are turned, and weights cut along their gates
 * and joined again, in the graph: the parameters stay the file's. What goes backward is turned round in time
 * before and after. Our cells (LSTM, GRU) start from zeros and reset as PyTorch's do; what they do not is
 * written out step by step: RNN, a state that is given or a last cell that is read, a reset before the
 * product. */
#include <string.h>

#include "graph/models/rows.h"
#include "graph/onnx/import.h"

enum { X, W, R, B, LENGTHS, H0, C0, PEEPHOLES };
enum { MAX_STEPS = 1 << 12, MAX_WAYS = 2, MAX_GATES = 4 };

struct onnx_cell { const char *op; enum hd_op ours; int32_t gates, order[MAX_GATES]; };
static const struct onnx_cell cells[] = { { "LSTM", HD_OP_LSTM, 4, { 0, 2, 3, 1 } },
	{ "GRU", HD_OP_GRU, 3, { 1, 0, 2 } }, { "RNN", HD_NOPS, 1, { 0 } } };
enum { NCELLS = sizeof cells / sizeof *cells };

static const struct hd_attr none;

/* One way through time: operands of our forms, and what it gives. state HD_NONE: zeros. */
struct onnx_way {
	const struct onnx_cell *cell;
	bool back, resets_first;
	enum hd_act act;                  /* of an RNN */
	int64_t steps;
	int32_t hidden;
	uint32_t z;                       /* [N,T,G]: products of the input, and their bias */
	uint32_t r, b;                    /* [G,H], [G] */
	uint32_t h, c;                    /* [N,H] */
	uint32_t y, last_h, last_c;       /* [N,T,H], [N,H] */
};

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

/* ---- what the node says */

static enum hd_err check_extents(struct hd_onnx_call *call, const struct onnx_cell *cell)
{
	const struct hd_onnx_val *x = hd_onnx_in(call, X), *w = hd_onnx_in(call, W), *r = hd_onnx_in(call, R),
		*b = hd_onnx_in(call, B);
	bool both = hd_onnx_attr_is(call->node, "direction", "bidirectional", false);
	bool fits = x && w && r && x->rank == 3 && w->rank == 3 && r->rank == 3 && w->dim[0] == 1 + both &&
		r->dim[0] == w->dim[0] && r->dim[2] >= 1 && r->dim[2] <= INT32_MAX / 8 &&
		w->dim[1] == cell->gates * r->dim[2] && r->dim[1] == w->dim[1] && w->dim[2] == x->dim[2] &&
		(!b || (b->rank == 2 && b->dim[0] == w->dim[0] && b->dim[1] == 2 * w->dim[1]));

	if (!fits)
		return hd_onnx_no(call, "an operand is missing, or has other extents");
	int64_t steps = x->dim[hd_onnx_attr_int(call->node, "layout", 0) != 0];
	return steps >= 1 && steps <= INT32_MAX ? HD_OK : hd_onnx_no(call, "its time is the rows");
}

/* Those that are meant without the attribute; of an RNN also relu. */
static enum hd_err check_activations(struct hd_onnx_call *call, const struct onnx_cell *cell,
	struct onnx_way *way, uint32_t ways)
{
	static const char *const standard[NCELLS][3] = { { "Sigmoid", "Tanh", "Tanh" }, { "Sigmoid", "Tanh" },
		{ "Tanh" } };
	const Onnx__AttributeProto *a = hd_onnx_attr(call->node, "activations");
	const size_t which = (size_t)(cell - cells), each = 3 - which;

	for (uint32_t k = 0; k < ways; k++)
		way[k].act = HD_ACT_TANH;
	if (a && a->n_strings != each * ways)
		return hd_onnx_no(call, "has another number of activations");
	for (size_t k = 0; a && k < a->n_strings; k++) {
		const ProtobufCBinaryData *s = &a->strings[k];
		const char *word = standard[which][k % each];
		bool relu = which == 2 && s->len == 4 && !memcmp(s->data, "Relu", 4);
		if (relu)
			way[k].act = HD_ACT_RELU;
		else if (s->len != strlen(word) || memcmp(s->data, word, s->len) != 0)
			return hd_onnx_no(call, "has activations of its own");
	}
	return HD_OK;
}

static enum hd_err check(struct hd_onnx_call *call, const struct onnx_cell *cell, struct onnx_way *way,
	uint32_t *ways)
{
	bool both = hd_onnx_attr_is(call->node, "direction", "bidirectional", false),
		back = hd_onnx_attr_is(call->node, "direction", "reverse", false);
	enum hd_err err = check_extents(call, cell);

	if (err)
		return err;
	if (!both && !back && !hd_onnx_attr_is(call->node, "direction", "forward", true))
		return hd_onnx_no(call, "goes in an unknown direction");
	if (hd_onnx_in(call, LENGTHS) || hd_onnx_in(call, PEEPHOLES))
		return hd_onnx_no(call, "has lengths of sequences, or peepholes");
	if (hd_onnx_attr(call->node, "clip") || hd_onnx_attr_int(call->node, "input_forget", 0))
		return hd_onnx_no(call, "clips, or couples its gates");
	*ways = 1 + both;
	for (uint32_t k = 0; k < *ways; k++)
		way[k] = (struct onnx_way){ .cell = cell, .back = back || k, .h = HD_NONE, .c = HD_NONE,
			.hidden = (int32_t)hd_onnx_in(call, R)->dim[2],
			.resets_first = cell->ours == HD_OP_GRU &&
				!hd_onnx_attr_int(call->node, "linear_before_reset", 0) };
	return check_activations(call, cell, way, *ways);
}

/* ---- operands */

/* Blocks of `each` along extent 0 from `from` on, in the order of our gates. */
static uint32_t ordered(struct hd_maker *m, const struct onnx_cell *cell, uint32_t value, int32_t from,
	int32_t each)
{
	uint32_t all = 0;

	for (int32_t k = 0; k < cell->gates; k++) {
		uint32_t block = cell->gates == 1 && !from ? value : hd_make1(m, HD_OP_SLICE, value,
			(struct hd_attr){ .i = { 0, from + cell->order[k] * each, 1, each } });
		all = k ? hd_make2(m, HD_OP_CONCAT, all, block, none) : block;
	}
	return all;
}

/* Part `k` of input i along its first extent, which goes. */
static enum hd_err part_of(struct hd_onnx_call *call, uint32_t i, uint32_t k, uint32_t *value)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, i);
	enum hd_err err = hd_onnx_value(call, i, value);

	if (!err && v->dim[0] > 1)
		err = hd_onnx_node1(call, HD_OP_SLICE, *value, (struct hd_attr){ .i = { 0, (int32_t)k, 1,
			1 } },
			value);
	return err ? err : hd_onnx_reshape(call, *value, v->rank - 1u, v->dim + 1, value);
}

/* The state that way `k` begins with; HD_NONE: zeros. */
static enum hd_err state_of(struct hd_onnx_call *call, uint32_t i, uint32_t k, uint32_t ways, uint32_t *value)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, i);
	const int32_t axis = hd_onnx_attr_int(call->node, "layout", 0) ? 1 : 0;
	uint32_t state;

	if (!v)
		return HD_OK;
	enum hd_err err = hd_onnx_value(call, i, &state);
	if (err || is_zero(call->im->graph, state))
		return err;
	if (v->rank != 3 || v->dim[axis] != ways || v->dim[!axis] > 0)
		return hd_onnx_no(call, "its initial state has not a row for each of the batch");
	if (ways > 1)
		err = hd_onnx_node1(call, HD_OP_SLICE, state, (struct hd_attr){ .i = { axis, (int32_t)k, 1,
			1 } },
			&state);
	return err ? err : hd_onnx_reshape(call, state, 2, (int64_t[]){ v->dim[!axis], v->dim[2] }, value);
}

static uint32_t turned_round(struct hd_maker *m, uint32_t x, int64_t steps)
{
	return hd_make1(m, HD_OP_SLICE, x,
		(struct hd_attr){ .i = { 1, (int32_t)steps - 1, -1, (int32_t)steps } });
}

static enum hd_err operands(struct hd_onnx_call *call, struct hd_maker *m, uint32_t x, uint32_t k,
	uint32_t ways, struct onnx_way *way)
{
	const int32_t each = way->hidden, all = way->cell->gates * each;
	uint32_t w, r, b = 0;
	enum hd_err err = part_of(call, W, k, &w);

	if (!err)
		err = part_of(call, R, k, &r);
	if (!err && hd_onnx_in(call, B))
		err = part_of(call, B, k, &b);
	if (!err)
		err = state_of(call, H0, k, ways, &way->h);
	if (!err)
		err = state_of(call, C0, k, ways, &way->c);
	if (err)
		return err;
	if (!hd_onnx_in(call, B))
		b = hd_make_zeros(m, HD_F32, HD_DIMS(2 * all));
	if (way->back)
		x = turned_round(m, x, way->steps);
	w = ordered(m, way->cell, w, 0, each);
	way->r = ordered(m, way->cell, r, 0, each);
	way->z = hd_make2(m, HD_OP_MATMUL, x, w, (struct hd_attr){ .i = { 0, 1 } });
	uint32_t first = way->cell->gates == 1 ? hd_make1(m, HD_OP_SLICE, b,
		(struct hd_attr){ .i = { 0, 0, 1, each } }) : ordered(m, way->cell, b, 0, each);
	way->z = hd_make2(m, HD_OP_BIAS, way->z, first, (struct hd_attr){ .i = { -1 } });
	way->b = ordered(m, way->cell, b, all, each);
	return m->err;
}

/* ---- by our cells */

static void by_cell(struct hd_maker *m, struct onnx_way *way)
{
	struct hd_attr last = { .i = { 1, (int32_t)way->steps - 1, 1, 1 } };
	uint32_t y = hd_make3(m, way->cell->ours, way->z, way->r, way->b, none);
	bool lstm = way->cell->ours == HD_OP_LSTM;

	way->y = y;
	way->last_h = hd_make1(m, HD_OP_SLICE, y, last);
	way->last_c = lstm ? hd_make1(m, HD_OP_SLICE, y + 1, last) : HD_NONE;
}

/* ---- step by step */

static uint32_t act(struct hd_maker *m, enum hd_act which, uint32_t x) { return hd_make1(m, HD_OP_ACT, x,
	(struct hd_attr){ .i = { (int32_t)which } }); }
static uint32_t add(struct hd_maker *m, uint32_t a, uint32_t b) { return hd_make2(m, HD_OP_ADD, a, b, none); }
static uint32_t mul(struct hd_maker *m, uint32_t a, uint32_t b) { return hd_make2(m, HD_OP_MUL, a, b, none); }

/* Gate k of [N,G] or [G,..]. */
static uint32_t gate(struct hd_maker *m, const struct onnx_way *way, int32_t axis, uint32_t all, int32_t k)
{
	return way->cell->gates == 1 ? all : hd_make1(m, HD_OP_SLICE, all,
		(struct hd_attr){ .i = { axis, k * way->hidden, 1, way->hidden } });
}

/* h R' + b; of no state the bias alone. */
static uint32_t recurrent(struct hd_maker *m, uint32_t h, uint32_t r, uint32_t b)
{
	uint32_t y = h == HD_NONE ? b : hd_make2(m, HD_OP_MATMUL, h, r, (struct hd_attr){ .i = { 0, 1 } });

	return h == HD_NONE ? y : hd_make2(m, HD_OP_BIAS, y, b, (struct hd_attr){ .i = { -1 } });
}

static uint32_t lstm_step(struct hd_maker *m, struct onnx_way *way, uint32_t z)
{
	uint32_t all = add(m, z, recurrent(m, way->h, way->r, way->b)), g[MAX_GATES];

	for (int32_t k = 0; k < MAX_GATES; k++)
		g[k] = act(m, k == 2 ? HD_ACT_TANH : HD_ACT_SIGMOID, gate(m, way, 1, all, k));
	uint32_t fresh = mul(m, g[0], g[2]);
	way->c = way->c == HD_NONE ? fresh : add(m, mul(m, g[1], way->c), fresh);
	return mul(m, g[3], act(m, HD_ACT_TANH, way->c));
}

/* n = tanh(z_n + r (h R_n' + b_n)), or with the reset first tanh(z_n + (r h) R_n' + b_n);
 * h' = n + u (h - n). */
static uint32_t gru_step(struct hd_maker *m, struct onnx_way *way, uint32_t z)
{
	uint32_t part = 0, g[2], n;

	if (!way->resets_first)
		part = recurrent(m, way->h, way->r, way->b);
	for (int32_t k = 0; k < 2; k++) {
		uint32_t own = !way->resets_first ? gate(m, way, way->h == HD_NONE ? 0 : 1, part, k) :
			recurrent(m, way->h, gate(m, way, 0, way->r, k), gate(m, way, 0, way->b, k));
		g[k] = act(m, HD_ACT_SIGMOID, add(m, gate(m, way, 1, z, k), own));
	}
	if (way->resets_first) {
		uint32_t reset = way->h == HD_NONE ? HD_NONE : mul(m, g[0], way->h);
		n = recurrent(m, reset, gate(m, way, 0, way->r, 2), gate(m, way, 0, way->b, 2));
	} else {
		n = mul(m, g[0], gate(m, way, way->h == HD_NONE ? 0 : 1, part, 2));
	}
	n = act(m, HD_ACT_TANH, add(m, gate(m, way, 1, z, 2), n));
	uint32_t keep = hd_make2(m, HD_OP_SUB, n, mul(m, g[1], n), none);
	return way->h == HD_NONE ? keep : add(m, keep, mul(m, g[1], way->h));
}

static uint32_t rnn_step(struct hd_maker *m, struct onnx_way *way, uint32_t z)
{
	return act(m, way->act, add(m, z, recurrent(m, way->h, way->r, way->b)));
}

/* [N,1,H] each, joined in pairs: each element is copied log T times. */
static uint32_t joined(struct hd_maker *m, uint32_t *at, int64_t n)
{
	for (; n > 1; n = (n + 1) / 2)
		for (int64_t k = 0; k < (n + 1) / 2; k++)
			at[k] = 2 * k + 1 < n ? hd_make2(m, HD_OP_CONCAT, at[2 * k], at[2 * k + 1],
				(struct hd_attr){ .i = { 1 } }) : at[2 * k];
	return at[0];
}

static enum hd_err by_steps(struct hd_onnx_call *call, struct hd_maker *m, struct onnx_way *way)
{
	static uint32_t (*const step[NCELLS])(struct hd_maker *m, struct onnx_way *way, uint32_t z) =
		{ lstm_step,
		gru_step, rnn_step };
	const int32_t wide = way->cell->gates * way->hidden;
	const int64_t rows = m->err ? -1 : hd_onnx_shape(call, way->z)->dim[0];
	uint32_t *at = hd_arena_take(&call->im->file.arena, (size_t)way->steps, sizeof *at);

	if (!at || way->steps > MAX_STEPS)
		return hd_onnx_no(call, "has %lld steps; at most %d are written out", (long long)way->steps,
			MAX_STEPS);
	for (int64_t t = 0; t < way->steps && !m->err; t++) {
		uint32_t z = hd_make1(m, HD_OP_SLICE, way->z, (struct hd_attr){ .i = { 1, (int32_t)t, 1,
			1 } });
		z = hd_make1(m, HD_OP_RESHAPE, z, (struct hd_attr){ .i = { (int32_t)rows, wide } });
		way->h = step[way->cell - cells](m, way, z);
		at[t] = hd_make1(m, HD_OP_RESHAPE, way->h,
			(struct hd_attr){ .i = { (int32_t)rows, 1, way->hidden } });
	}
	if (m->err)
		return m->err;
	way->last_h = way->h;
	way->last_c = way->c;
	way->y = joined(m, at, way->steps);
	return m->err;
}

/* ---- results */

/* Of all ways, each [N,1,H] or [N,H]: [D,N,H], with the batch first [N,D,H]. */
static enum hd_err put_state(struct hd_onnx_call *call, struct hd_maker *m, uint32_t out,
	const uint32_t *last, uint32_t ways, int32_t hidden, bool batch_first)
{
	uint32_t all = HD_NONE;

	if (!hd_onnx_out(call, out) || !hd_onnx_out(call, out)->nuses)
		return HD_OK;
	for (uint32_t k = 0; k < ways && !m->err; k++) {
		int32_t rows = (int32_t)hd_onnx_shape(call, last[k])->dim[0];
		uint32_t one = last[k];
		if (hd_onnx_shape(call, one)->rank == 2)
			one = hd_make1(m, HD_OP_RESHAPE, one, (struct hd_attr){ .i = { rows, 1, hidden } });
		all = k ? hd_make2(m, HD_OP_CONCAT, all, one, (struct hd_attr){ .i = { 1 } }) : one;
	}
	if (!batch_first)
		all = hd_make1(m, HD_OP_PERMUTE, all, (struct hd_attr){ .i = { 1, 0, 2 } });
	return m->err ? m->err : hd_onnx_put_like(call, out, all);
}

/* [N,T,H] each: [T,D,N,H], with the batch first [N,T,D,H]. */
static enum hd_err put_all(struct hd_onnx_call *call, struct hd_maker *m, const struct onnx_way *way,
	uint32_t ways,
	bool batch_first)
{
	const struct hd_value v = *hd_onnx_shape(call, way->y);
	const int32_t rows = (int32_t)v.dim[0], steps = (int32_t)v.dim[1], hidden = (int32_t)v.dim[2];
	struct hd_attr apart = { .i = { rows, steps, 1, hidden } };
	uint32_t all = way->y;

	if (ways == 1 && !batch_first) {
		all = hd_make1(m, HD_OP_PERMUTE, all, (struct hd_attr){ .i = { 1, 0, 2 } });
		apart = (struct hd_attr){ .i = { steps, 1, rows, hidden } };
	}
	all = hd_make1(m, HD_OP_RESHAPE, all, apart);
	for (uint32_t k = 1; k < ways; k++)
		all = hd_make2(m, HD_OP_CONCAT, all, hd_make1(m, HD_OP_RESHAPE, way[k].y, apart),
			(struct hd_attr){ .i = { 2 } });
	if (ways > 1 && !batch_first)
		all = hd_make1(m, HD_OP_PERMUTE, all, (struct hd_attr){ .i = { 1, 2, 0, 3 } });
	return m->err ? m->err : hd_onnx_put_like(call, 0, all);
}

static enum hd_err one_way(struct hd_onnx_call *call, struct hd_maker *m, uint32_t x, uint32_t k,
	uint32_t ways, struct onnx_way *way)
{
	enum hd_err err;

	way->steps = m->err ? 1 : hd_onnx_shape(call, x)->dim[1];
	err = operands(call, m, x, k, ways, way);
	/* the last cell of an LSTM has no gradient in our op */
	const struct hd_onnx_val *last_c = hd_onnx_out(call, 2);
	bool plain = way->h == HD_NONE && way->c == HD_NONE && way->cell->ours != HD_NOPS &&
		!way->resets_first && !(last_c && last_c->nuses && !call->im->opts->as_is);
	if (!err && plain)
		by_cell(m, way);
	else if (!err)
		err = by_steps(call, m, way);
	if (!err && way->back)
		way->y = turned_round(m, way->y, way->steps);
	return err ? err : m->err;
}

enum hd_err hd_onnx_recurrent(struct hd_onnx_call *call)
{
	bool batch_first = hd_onnx_attr_int(call->node, "layout", 0) != 0;
	struct hd_maker m = { call->im->graph, &call->why, HD_OK };
	struct onnx_way way[MAX_WAYS] = { { 0 } };
	uint32_t x, ways = 0, last_h[MAX_WAYS], last_c[MAX_WAYS], which = 0;

	while (which + 1 < NCELLS && strcmp(call->node->op_type, cells[which].op) != 0)
		which++;
	enum hd_err err = check(call, &cells[which], way, &ways);
	if (!err)
		err = hd_onnx_value(call, X, &x);
	if (!err && !batch_first)
		x = hd_make1(&m, HD_OP_PERMUTE, x, (struct hd_attr){ .i = { 1, 0, 2 } });
	for (uint32_t k = 0; k < ways && !err; k++) {
		err = one_way(call, &m, x, k, ways, &way[k]);
		last_h[k] = way[k].last_h;
		last_c[k] = way[k].last_c;
	}
	if (!err)
		err = put_all(call, &m, way, ways, batch_first);
	if (!err)
		err = put_state(call, &m, 1, last_h, ways, way->hidden, batch_first);
	if (!err && which == 0)
		err = put_state(call, &m, 2, last_c, ways, way->hidden, batch_first);
	return err == HD_E_INVAL ? HD_E_INPUT : err;
}
