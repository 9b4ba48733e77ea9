/* Two walks. Backward: which values may be split, by what their readers make of them (`wish`). Forward: the
 * new graph, in which a value is whole, in T parts, or both, each made when it is first read. */
#include "graph/shard.h"

#include <stdio.h>
#include <string.h>

#include "graph/op.h"
#include "graph/shard_int.h"

static const struct hd_attr none;

static bool same(struct hd_shard_split a, struct hd_shard_split b) { return a.blocks == b.blocks &&
	a.axis == b.axis; }

uint32_t *hd_shard_take(struct hd_sharder *x)
{
	uint32_t *part = hd_arena_take(x->from->arena, x->nshards, sizeof *part);

	if (!part && !x->err)
		x->err = hd_fail(x->diag, HD_E_NOMEM, "no memory for %u shards", x->nshards);
	return x->err ? NULL : part;
}

/* A node of values of the new graph. */
uint32_t hd_shard_make(struct hd_sharder *x, enum hd_op op, uint8_t nin, const uint32_t *in,
	struct hd_attr attr)
{
	uint32_t out = HD_NONE;

	if (!x->err)
		x->err = hd_graph_node(&x->r.graph, (uint16_t)op, nin, in, &attr, x->node->stage, &out,
			x->diag);
	if (!x->err && hd_ops[op].class == HD_OP_RANDOM)
		x->r.graph.node[x->r.graph.nnodes - 1].key = x->node->key;
	if (!x->err)
		x->r.graph.node[x->r.graph.nnodes - 1].shard = x->shard;
	return out;
}

uint16_t hd_shard_turn(struct hd_sharder *x, uint16_t shard)
{
	const uint16_t before = x->shard;

	x->shard = shard;
	return before;
}

static uint32_t make1(struct hd_sharder *x, enum hd_op op, uint32_t a,
	struct hd_attr attr) { return hd_shard_make(x, op, 1, &a, attr); }
static uint32_t make2(struct hd_sharder *x, enum hd_op op, uint32_t a, uint32_t b, struct hd_attr attr)
{
	return hd_shard_make(x, op, 2, (uint32_t[]){ a, b }, attr);
}

static uint32_t f32_const(struct hd_sharder *x, float number)
{
	uint32_t out = HD_NONE;

	if (!x->err)
		x->err = hd_graph_const(&x->r.graph, HD_F32, 1, (int64_t[]){ 1 }, &number, &out, x->diag);
	return out;
}

static uint32_t i32_const(struct hd_sharder *x, int32_t number)
{
	uint32_t out = HD_NONE;

	if (!x->err)
		x->err = hd_graph_const(&x->r.graph, HD_I32, 1, (int64_t[]){ 1 }, &number, &out, x->diag);
	return out;
}

/* The same for shard s. */
static uint32_t make_of(struct hd_sharder *x, uint32_t s, enum hd_op op, uint8_t nin, const uint32_t *in,
	struct hd_attr attr)
{
	const uint16_t before = hd_shard_turn(x, (uint16_t)(s + 1));
	uint32_t out = hd_shard_make(x, op, nin, in, attr);

	hd_shard_turn(x, before);
	return out;
}

static uint32_t make1_of(struct hd_sharder *x, uint32_t s, enum hd_op op, uint32_t a,
	struct hd_attr attr) { return make_of(x, s, op, 1, &a, attr); }
static uint32_t make2_of(struct hd_sharder *x, uint32_t s, enum hd_op op, uint32_t a, uint32_t b,
	struct hd_attr attr) { return make_of(x, s, op, 2, (uint32_t[]){ a, b }, attr); }

/* ---- trees of shards (rule 3). The left subtree of n leaves is the largest power of two below n. ---- */

static uint32_t left_of(uint32_t n)
{
	uint32_t left = 1;

	while (2 * left < n)
		left *= 2;
	return left;
}

static uint32_t reduce(struct hd_sharder *x, enum hd_op op, const uint32_t *part, uint32_t n)
{
	if (n == 1)
		return part[0];
	uint32_t left = left_of(n), a = reduce(x, op, part, left), b = reduce(x, op, part + left, n - left);

	return make2(x, op, a, b, none);
}

static uint32_t view(struct hd_sharder *x, uint32_t value)
{
	struct hd_attr attr = none;

	if (x->err)
		return HD_NONE;
	const struct hd_value *v = &x->r.graph.value[value];
	for (uint32_t d = 0; d < v->rank; d++)
		attr.i[d] = (int32_t)v->dim[d];
	return make1(x, HD_OP_RESHAPE, value, attr);
}

static void spread(struct hd_sharder *x, uint32_t value, uint32_t *copy, uint32_t n)
{
	uint32_t node = view(x, value);

	if (n == 1) {
		copy[0] = node;
		return;
	}
	uint32_t left = left_of(n);
	spread(x, node, copy, left);
	spread(x, node, copy + left, n - left);
}

/* ---- values ---- */

/* Shard s of a value of the new graph, as `split` says. */
static uint32_t slice(struct hd_sharder *x, uint32_t value, struct hd_shard_split split, uint32_t s)
{
	if (x->err)
		return HD_NONE;
	int64_t n = x->r.graph.value[value].dim[split.axis] / split.blocks, from = hd_shard_first(x, n, s),
		count = hd_shard_first(x, n, s + 1) - from;
	const uint16_t before = hd_shard_turn(x, (uint16_t)(s + 1));
	uint32_t all = HD_NONE;

	for (uint32_t b = 0; b < split.blocks; b++) {
		uint32_t one = make1(x, HD_OP_SLICE, value,
			(struct hd_attr){ .i = { split.axis, (int32_t)(b * n + from), 1, (int32_t)count } });
		all = b ? make2(x, HD_OP_CONCAT, all, one, (struct hd_attr){ .i = { split.axis } }) : one;
	}
	hd_shard_turn(x, before);
	return all;
}

/* The whole of a split value: parts of one block stand in order; of several, block by block. */
static uint32_t join(struct hd_sharder *x, const uint32_t *part, struct hd_shard_split split)
{
	uint32_t all = HD_NONE;

	for (uint32_t b = 0; b < split.blocks && !x->err; b++)
		for (uint32_t s = 0; s < x->nshards && !x->err; s++) {
			int64_t n = x->r.graph.value[part[s]].dim[split.axis] / split.blocks;
			struct hd_attr piece = { .i = { split.axis, (int32_t)(b * n), 1, (int32_t)n } };
			uint32_t one = split.blocks == 1 ? part[s] : make1(x, HD_OP_SLICE, part[s], piece);
			all = all == HD_NONE ? one : make2(x, HD_OP_CONCAT, all, one,
				(struct hd_attr){ .i = { split.axis } });
		}
	return all;
}

static const struct hd_value *value_of(const struct hd_sharder *x,
	uint32_t value) { return &x->from->value[value]; }
static bool is_param(const struct hd_sharder *x, uint32_t value) { return value_of(x,
	value)->kind == HD_PARAM; }

static struct hd_shard_param *param_of(struct hd_sharder *x, uint32_t value)
{
	return is_param(x, value) ? &x->param[value_of(x, value)->data] : NULL;
}

/* Values of the old graph in the new one: whole, for each shard, a shard's part. */
static uint32_t make_whole(struct hd_sharder *x, uint32_t value)
{
	struct hd_shard_state *v = &x->at[value];
	const uint16_t before = hd_shard_turn(x, 0);
	uint32_t to = HD_NONE;

	if (x->r.to[value] == HD_NONE && v->split.blocks && !x->err)
		x->r.to[value] = join(x, v->part, v->split);
	else if (x->r.to[value] == HD_NONE && v->rows && !x->err)
		x->r.to[value] = join(x, v->rows, (struct hd_shard_split){ 1, 1 });
	if (!x->err)
		x->err = hd_rewrite_value(&x->r, value, &to, x->diag);
	hd_shard_turn(x, before);
	return to;
}

static uint32_t whole_of(struct hd_sharder *x, uint32_t value)
{
	if (is_param(x, value))
		param_of(x, value)->whole = true;
	return make_whole(x, value);
}

const uint32_t *hd_shard_copies(struct hd_sharder *x, uint32_t value)
{
	struct hd_shard_state *v = &x->at[value];
	uint32_t from = whole_of(x, value);
	const uint16_t before = hd_shard_turn(x, 0);

	if (!v->copy && (v->copy = hd_shard_take(x)))
		spread(x, from, v->copy, x->nshards);
	hd_shard_turn(x, before);
	return v->copy;
}

const uint32_t *hd_shard_slices(struct hd_sharder *x, uint32_t value, struct hd_shard_split split)
{
	struct hd_shard_param *param = param_of(x, value);

	if (param && param->part)
		return param->part;
	if (param) {
		param->whole |= param->sliced && !same(param->split, split);
		param->split = split;
		param->sliced = true;
	}
	for (uint32_t i = 0; i < x->nslices; i++)
		if (x->slices[i].value == value && same(x->slices[i].split, split))
			return x->slices[i].part;
	uint32_t from = param ? make_whole(x, value) : whole_of(x, value), *part = hd_shard_take(x);
	if (!part)
		return NULL;
	for (uint32_t s = 0; s < x->nshards; s++)
		part[s] = slice(x, from, split, s);
	if (x->nslices < x->cap)
		x->slices[x->nslices++] = (struct hd_slices){ value, split, part };
	return part;
}

static uint32_t *made(struct hd_sharder *x, uint32_t value, struct hd_shard_split split)
{
	x->at[value].split = split;
	return x->at[value].part = hd_shard_take(x);
}

/* ---- the old graph ---- */

static uint8_t last_of(const struct hd_sharder *x, uint32_t value) { return (uint8_t)(value_of(x,
	value)->rank - 1); }

static bool is_product(const struct hd_sharder *x, const struct hd_node *n)
{
	return n->op == HD_OP_MATMUL && !n->attr.i[0] && is_param(x, n->in[1]) &&
		value_of(x, n->in[1])->rank == 2 && !is_param(x, n->in[0]);
}

static bool is_pair(const struct hd_sharder *x, const struct hd_node *n)
{
	static const uint16_t pairs[] = { HD_OP_ADD, HD_OP_SUB, HD_OP_MUL, HD_OP_DIV, HD_OP_SWIGLU };

	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
		if (n->op == pairs[i])
			return hd_dims_same(value_of(x, n->in[0]), value_of(x, n->in[1]));
	return false;
}

static bool is_elementwise(const struct hd_node *n) { return n->op == HD_OP_ACT || n->op == HD_OP_SCALE; }

static bool is_last_bias(const struct hd_sharder *x, const struct hd_node *n)
{
	return n->op == HD_OP_BIAS && n->attr.i[0] == -1 && is_param(x, n->in[1]);
}

static bool is_rotary(const struct hd_node *n) { return n->op == HD_OP_ROTARY || n->op == HD_OP_ROTARY_BY; }

static bool is_attend(const struct hd_node *n) { return n->op == HD_OP_ATTEND || n->op == HD_OP_ATTEND_PAD; }

/* One of the three blocks of columns that queries, keys and values are; *block: which. */
static bool is_third(const struct hd_sharder *x, const struct hd_node *n, int32_t *block)
{
	const int64_t columns = value_of(x, n->in[0])->dim[last_of(x, n->in[0])], count = n->attr.i[3];

	if (n->op != HD_OP_SLICE || n->attr.i[0] != last_of(x, n->in[0]) || n->attr.i[2] != 1 ||
		columns != 3 * count || n->attr.i[1] % count)
		return false;
	*block = (int32_t)(n->attr.i[1] / count);
	return true;
}

/* ---- backward: what readers wish ---- */

static struct hd_shard_split wish_of(const struct hd_sharder *x, const struct hd_node *n, int operand)
{
	const struct hd_shard_split whole = { 0 }, columns = { 1, last_of(x, n->in[operand]) };

	int32_t block;

	if (n->op == HD_OP_ATTENTION || (is_third(x, n, &block) && same(x->wish[n->out],
		(struct hd_shard_split){ 1, columns.axis })))
		return (struct hd_shard_split){ 3, columns.axis };
	if ((is_attend(n) && operand < 3) || (is_product(x, n) && operand == 0) ||
		(n->op == HD_OP_SOFTMAX_XENT && operand == 0))
		return columns;
	if (is_elementwise(n) || is_pair(x, n) || (is_last_bias(x, n) && operand == 0) ||
		(is_rotary(n) && operand == 0))
		return x->wish[n->out];
	return whole;
}

/* Readers that differ get it whole; an output does not count as a reader, nor does one that counts rows. */
static void find_wishes(struct hd_sharder *x, bool *read)
{
	for (uint32_t i = x->from->nnodes; i-- > 0;) {
		const struct hd_node *n = &x->from->node[i];
		for (int k = 0; k < n->nin; k++) {
			struct hd_shard_split wish = wish_of(x, n, k);
			if (n->op == HD_OP_COUNT64)
				continue;
			if (!read[n->in[k]])
				x->wish[n->in[k]] = wish;
			else if (!same(x->wish[n->in[k]], wish))
				x->wish[n->in[k]] = (struct hd_shard_split){ 0 };
			read[n->in[k]] = true;
		}
	}
}

/* ---- forward: rules. Each says whether it rewrote the node. ---- */

void hd_shard_refuse(struct hd_sharder *x, const char *what, int64_t n)
{
	if (!x->err)
		x->err = hd_fail(x->diag, HD_E_INVAL, "%s %lld cannot be split in %u shards", what,
			(long long)n, x->nshards);
}

/* g: a value is the sum of partial results, and what follows it may lie along the sequence. */
static void summed(struct hd_sharder *x, uint32_t value, const uint32_t *part)
{
	x->r.to[value] = reduce(x, HD_OP_ADD, part, x->nshards);
	hd_shard_enter(x, value);
}

/* The second of a pair: columns of a, rows of w; partial results are summed. */
static void product_by_rows(struct hd_sharder *x, const struct hd_node *n)
{
	const uint32_t *a = x->at[n->in[0]].part, *w = hd_shard_slices(x, n->in[1],
		(struct hd_shard_split){ 1, n->attr.i[1] ? 1 : 0 });
	uint32_t *part = hd_shard_take(x);

	for (uint32_t s = 0; s < x->nshards && part && w; s++)
		part[s] = make2_of(x, s, HD_OP_MATMUL, a[s], w[s], n->attr);
	if (part && w)
		summed(x, n->out, part);
	x->nsplits++;
}

static void product_by_columns(struct hd_sharder *x, const struct hd_node *n, struct hd_shard_split split)
{
	uint8_t axis = n->attr.i[1] ? 0 : 1;

	if (value_of(x, n->in[1])->dim[axis] / split.blocks < x->nshards) {
		hd_shard_refuse(x, "width", value_of(x, n->in[1])->dim[axis] / split.blocks);
		return;
	}
	const uint32_t *a = hd_shard_copies(x, n->in[0]), *w = hd_shard_slices(x, n->in[1],
		(struct hd_shard_split){ split.blocks, axis });
	uint32_t *part = made(x, n->out, split);
	for (uint32_t s = 0; s < x->nshards && part && a && w; s++)
		part[s] = make2_of(x, s, HD_OP_MATMUL, a[s], w[s], n->attr);
	x->nsplits++;
}

static bool product(struct hd_sharder *x, const struct hd_node *n)
{
	const struct hd_shard_split columns = { 1, last_of(x, n->in[0]) };

	if (!is_product(x, n))
		return false;
	if (same(x->at[n->in[0]].split, columns))
		product_by_rows(x, n);
	else if (x->wish[n->out].blocks)
		product_by_columns(x, n, x->wish[n->out]);
	else
		return false;
	return true;
}

/* One operand that is split, and for a bias its slice. */
static bool along(struct hd_sharder *x, const struct hd_node *n)
{
	struct hd_shard_split split = x->at[n->in[0]].split;
	const uint32_t *a = x->at[n->in[0]].part, *b = NULL;

	if (!split.blocks || !(is_elementwise(n) || (is_last_bias(x, n) &&
		split.axis == last_of(x, n->in[0]))))
		return false;
	if (n->nin == 2 && !(b = hd_shard_slices(x, n->in[1], (struct hd_shard_split){ split.blocks, 0 })))
		return true;
	uint32_t *part = made(x, n->out, split);
	for (uint32_t s = 0; s < x->nshards && part; s++)
		part[s] = b ? make2_of(x, s, (enum hd_op)n->op, a[s], b[s], n->attr) :
			make1_of(x, s, (enum hd_op)n->op, a[s], n->attr);
	return true;
}

static bool pair(struct hd_sharder *x, const struct hd_node *n)
{
	if (!is_pair(x, n) || !x->at[n->in[0]].split.blocks ||
		!same(x->at[n->in[0]].split, x->at[n->in[1]].split))
		return false;
	const uint32_t *a = x->at[n->in[0]].part, *b = x->at[n->in[1]].part;
	uint32_t *part = made(x, n->out, x->at[n->in[0]].split);
	for (uint32_t s = 0; s < x->nshards && part; s++)
		part[s] = make2_of(x, s, (enum hd_op)n->op, a[s], b[s], n->attr);
	return true;
}

static bool third(struct hd_sharder *x, const struct hd_node *n)
{
	struct hd_attr attr = n->attr;
	int32_t block;

	if (x->at[n->in[0]].split.blocks != 3 || !is_third(x, n, &block))
		return false;
	if (attr.i[3] % (int32_t)x->nshards) {
		hd_shard_refuse(x, "width", attr.i[3]);
		return true;
	}
	attr.i[3] /= (int32_t)x->nshards;
	attr.i[1] = block * attr.i[3];
	uint32_t *part = made(x, n->out, (struct hd_shard_split){ 1, last_of(x, n->out) });
	for (uint32_t s = 0; s < x->nshards && part; s++)
		part[s] = make1_of(x, s, HD_OP_SLICE, x->at[n->in[0]].part[s], attr);
	return true;
}

static bool heads_split(struct hd_sharder *x, int32_t heads, const char *what)
{
	if (heads % (int32_t)x->nshards)
		hd_shard_refuse(x, what, heads);
	return !x->err;
}

static bool rotary(struct hd_sharder *x, const struct hd_node *n)
{
	struct hd_shard_split split = x->at[n->in[0]].split;
	struct hd_attr attr = n->attr;

	if (!is_rotary(n) || split.blocks != 1)
		return false;
	if (!heads_split(x, attr.i[0], "heads"))
		return true;
	attr.i[0] /= (int32_t)x->nshards;
	uint32_t *part = made(x, n->out, split), by = n->nin == 2 ? whole_of(x, n->in[1]) : HD_NONE;
	for (uint32_t s = 0; s < x->nshards && part; s++)
		part[s] = make_of(x, s, (enum hd_op)n->op, n->nin,
			(uint32_t[]){ x->at[n->in[0]].part[s], by }, attr);
	return true;
}

/* y by columns, the other result (lse [N, heads, T]) by heads. */
static void attention_of(struct hd_sharder *x, const struct hd_node *n, struct hd_attr attr, uint8_t nsplit)
{
	uint32_t *y = made(x, n->out, (struct hd_shard_split){ 1, last_of(x, n->out) }),
		*lse = made(x, n->out + 1, (struct hd_shard_split){ 1, 1 });
	uint32_t in[HD_MAX_IN];

	for (uint32_t s = 0; s < x->nshards && y && lse; s++) {
		for (uint8_t k = 0; k < n->nin; k++)
			in[k] = k < nsplit ? x->at[n->in[k]].part[s] : whole_of(x, n->in[k]);
		y[s] = make_of(x, s, (enum hd_op)n->op, n->nin, in, attr);
		lse[s] = y[s] + 1;
	}
}

static bool attention(struct hd_sharder *x, const struct hd_node *n)
{
	struct hd_attr attr = n->attr;

	if (n->op != HD_OP_ATTENTION || x->at[n->in[0]].split.blocks != 3)
		return false;
	if (heads_split(x, attr.i[0], "heads")) {
		attr.i[0] /= (int32_t)x->nshards;
		attention_of(x, n, attr, 1);
	}
	return true;
}

static bool attend(struct hd_sharder *x, const struct hd_node *n)
{
	struct hd_attr attr = n->attr;

	if (!is_attend(n))
		return false;
	for (int k = 0; k < 3; k++)
		if (x->at[n->in[k]].split.blocks != 1)
			return false;
	if (heads_split(x, attr.i[0], "heads") && heads_split(x, attr.i[1], "heads of keys")) {
		attr.i[0] /= (int32_t)x->nshards;
		attr.i[1] /= (int32_t)x->nshards;
		attention_of(x, n, attr, 3);
	}
	return true;
}

/* Each shard looks up the ids of its rows and has zeros for the others: their sum is exact. */
static bool table(struct hd_sharder *x, const struct hd_node *n)
{
	const struct hd_value *t = value_of(x, n->in[1]);
	const struct hd_value *ids = value_of(x, n->in[0]);

	/* a table of fewer rows than shards stays whole, as that of two kinds of tokens */
	if (n->op != HD_OP_EMBED || !is_param(x, n->in[1]) || ids->kind == HD_CONST ||
		t->dim[0] < x->nshards)
		return false;
	const uint32_t *rows = hd_shard_slices(x, n->in[1], (struct hd_shard_split){ 1, 0 });
	uint32_t *part = hd_shard_take(x), all = whole_of(x, n->in[0]);
	for (uint32_t s = 0; s < x->nshards && part && rows; s++) {
		uint32_t mine = make2_of(x, s, HD_OP_SUB, all, i32_const(x,
			(int32_t)hd_shard_first(x, t->dim[0], s)), none);
		part[s] = make2_of(x, s, HD_OP_GATHER, rows[s], mine, none);
	}
	if (part && rows)
		summed(x, n->out, part);
	x->nsplits++;
	return true;
}

/* Which shard holds a label; -1 stays. */
static uint32_t shard_of(struct hd_sharder *x, uint32_t labels, int64_t classes)
{
	uint32_t count = HD_NONE;

	for (uint32_t s = 0; s < x->nshards; s++) {
		uint32_t reached = make2(x, HD_OP_LESS_EQ, i32_const(x,
			(int32_t)hd_shard_first(x, classes, s)), labels, none);
		count = s ? make2(x, HD_OP_ADD, count, reached, none) : reached;
	}
	return make1(x, HD_OP_CAST, make2(x, HD_OP_SUB, count, f32_const(x, 1), none),
		(struct hd_attr){ .i = { HD_I32 } });
}

/* The parts, each a column, beside one another: [.., T]. */
static uint32_t columns_of(struct hd_sharder *x, const uint32_t *part)
{
	uint32_t all = HD_NONE;

	for (uint32_t s = 0; s < x->nshards && !x->err; s++) {
		const struct hd_value *v = &x->r.graph.value[part[s]];
		struct hd_attr attr = none, axis = { .i = { v->rank } };
		for (uint32_t d = 0; d < v->rank; d++)
			attr.i[d] = (int32_t)v->dim[d];
		attr.i[v->rank] = 1;
		uint32_t column = make1(x, HD_OP_RESHAPE, part[s], attr);
		all = s ? make2(x, HD_OP_CONCAT, all, column, axis) : column;
	}
	return all;
}

/* -log p = -log p(shard) - log p(label in its shard): shards are classes whose logits are their lse, and
 * shards that do not hold the label are masked. A shard hands on its lse, its loss and whether it hit: no
 * logits. */
static bool cross_entropy(struct hd_sharder *x, const struct hd_node *n)
{
	const struct hd_shard_split columns = { 1, last_of(x, n->in[0]) };
	int64_t classes = value_of(x, n->in[0])->dim[columns.axis];
	const uint32_t *logits = x->at[n->in[0]].part;

	if (n->op != HD_OP_SOFTMAX_XENT || !same(x->at[n->in[0]].split, columns))
		return false;
	uint32_t labels = whole_of(x, n->in[1]), home = shard_of(x, labels, classes);
	uint32_t *loss = hd_shard_take(x), *lse = hd_shard_take(x), *hit = hd_shard_take(x),
		*most = hd_shard_take(x);
	for (uint32_t s = 0; s < x->nshards && !x->err; s++) {
		uint32_t here = make2_of(x, s, HD_OP_EQUAL, home, i32_const(x, (int32_t)s), none);
		uint32_t moved = make2_of(x, s, HD_OP_SUB, labels,
			i32_const(x, (int32_t)hd_shard_first(x, classes, s)), none);
		uint32_t mine = make_of(x, s, HD_OP_WHERE, 3,
			(uint32_t[]){ here, moved, i32_const(x, -1) }, none);
		loss[s] = make2_of(x, s, HD_OP_SOFTMAX_XENT, logits[s], mine, none);
		lse[s] = loss[s] + 1;
		hit[s] = loss[s] + 2;
		most[s] = make1_of(x, s, HD_OP_REDUCE_MAX, logits[s],
			(struct hd_attr){ .i = { 1 << columns.axis } });
	}
	if (x->err)
		return true;
	uint32_t shard = make2(x, HD_OP_SOFTMAX_XENT, columns_of(x, lse), home, none);
	uint32_t best = make2(x, HD_OP_SOFTMAX_XENT, columns_of(x, most), home, none);
	x->r.to[n->out] = make2(x, HD_OP_ADD, reduce(x, HD_OP_ADD, loss, x->nshards), shard, none);
	x->r.to[n->out + 1] = shard + 1;
	x->r.to[n->out + 2] = make2(x, HD_OP_MUL, reduce(x, HD_OP_ADD, hit, x->nshards), best + 2, none);
	return true;
}

/* Rows are as many in a part as in the whole. */
static bool count(struct hd_sharder *x, const struct hd_node *n)
{
	const struct hd_shard_state *v = &x->at[n->in[0]];

	if (n->op != HD_OP_COUNT64 || !v->split.blocks || v->split.axis == 0)
		return false;
	x->r.to[n->out] = make1(x, HD_OP_COUNT64, v->part[0], n->attr);
	return true;
}

static bool (*const rules[])(struct hd_sharder *x, const struct hd_node *n) = {
	hd_shard_along, product, along, pair, third, rotary, attention, attend, table, cross_entropy, count,
};

static void rewrite(struct hd_sharder *x, const struct hd_node *n)
{
	x->node = n;
	x->done = (uint32_t)(n - x->from->node) + 1;
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
		if (rules[i](x, n))
			return;
	for (int k = 0; k < n->nin && !x->err; k++)
		(void)whole_of(x, n->in[k]);
	if (!x->err)
		x->err = hd_rewrite_copy(&x->r, n, x->diag);
}

/* What is read out is whole. */
static void read_out(struct hd_sharder *x)
{
	const struct hd_graph *from = x->from;

	for (uint32_t i = 0; i < from->noutputs && !x->err; i++) {
		const struct hd_value *v = value_of(x, from->output[i].value);
		x->node = v->kind == HD_TEMP ? &from->node[v->node] : x->node;
		(void)whole_of(x, from->output[i].value);
	}
}

/* ---- two walks: the first sees how parameters are read, the second makes slices of them (rule 5) ---- */

static void walk(struct hd_sharder *x)
{
	const struct hd_graph *from = x->from;

	for (uint32_t i = 0; i < from->nvalues; i++)
		x->at[i] = (struct hd_shard_state){ 0 };
	x->nslices = x->nsplits = x->nalong = 0;
	for (uint32_t i = 0; i < from->nnodes && !x->err; i = x->done)
		rewrite(x, &from->node[i]);
	if (!x->err)
		read_out(x);
}

static void take_slice(struct hd_sharder *x, uint32_t param, uint32_t s)
{
	const struct hd_param *p = &x->from->param[param];
	const struct hd_value *v = &x->from->value[p->value];
	const struct hd_shard_split split = x->param[param].split;
	const char *name = hd_graph_text_of(x->from, v->name);
	const int64_t block = v->dim[split.axis] / split.blocks;
	int64_t dim[HD_MAX_DIMS];
	char own[HD_MAX_NAME];

	memcpy(dim, v->dim, sizeof dim);
	dim[split.axis] = (hd_shard_first(x, block, s + 1) - hd_shard_first(x, block, s)) * split.blocks;
	if ((size_t)snprintf(own, sizeof own, "%s/%u", name, s) >= sizeof own)
		x->err = hd_fail(x->diag, HD_E_INVAL, "the name '%s' has no room for a shard's number", name);
	if (!x->err)
		x->err = hd_graph_param(&x->r.graph, own, v->rank, dim, (enum hd_init_kind)p->init, p->scale,
			&x->param[param].part[s], x->diag);
	if (x->err)
		return;
	struct hd_param *to = &x->r.graph.param[x->r.graph.nparams - 1];
	to->frozen = p->frozen;
	to->slice = (struct hd_slice){ .tensor = param, .number = (uint16_t)s, .n = (uint16_t)x->nshards,
		.axis = split.axis, .blocks = split.blocks, .extent = (uint32_t)v->dim[split.axis] };
	x->err = hd_graph_name(&x->r.graph, name, &to->slice.name, x->diag);
}

/* Those of one shard stand together, so that a device that runs a shard has few ranges of the flat vector. */
static void begin_again(struct hd_sharder *x)
{
	const struct hd_graph *from = x->from;
	bool *leave = hd_arena_take(from->arena, (size_t)from->nparams + 1, sizeof *leave);

	if (!leave)
		x->err = hd_fail(x->diag, HD_E_NOMEM, "no memory to split %u parameters", from->nparams);
	for (uint32_t p = 0; p < from->nparams && !x->err; p++) {
		leave[p] = x->param[p].sliced && !x->param[p].whole;
		x->param[p].part = leave[p] ? hd_shard_take(x) : NULL;
	}
	if (!x->err)
		x->err = hd_rewrite_begin_without(&x->r, from, leave, x->diag);
	for (uint32_t s = 0; s < x->nshards; s++)
		for (uint32_t p = 0; p < from->nparams && !x->err; p++)
			if (leave[p])
				take_slice(x, p, s);
}

static enum hd_err begin(struct hd_sharder *x, const struct hd_graph *graph)
{
	bool *read = hd_arena_take(graph->arena, graph->nvalues, sizeof *read);

	x->wish = hd_arena_take(graph->arena, graph->nvalues, sizeof *x->wish);
	x->at = hd_arena_take(graph->arena, graph->nvalues, sizeof *x->at);
	x->cap = graph->nnodes;
	x->slices = hd_arena_take(graph->arena, (size_t)x->cap + 1, sizeof *x->slices);
	x->param = hd_arena_take(graph->arena, (size_t)graph->nparams + 1, sizeof *x->param);
	if (!read || !x->wish || !x->at || !x->slices || !x->param)
		return hd_fail(x->diag, HD_E_NOMEM, "no memory to split a graph of %u values",
			graph->nvalues);
	enum hd_err err = hd_rewrite_begin(&x->r, graph, x->diag);
	if (!err)
		find_wishes(x, read);
	return err;
}

enum hd_err hd_graph_shard(struct hd_graph *graph, uint32_t nshards, bool sequence, struct hd_diag *diag)
{
	struct hd_sharder x = { .from = graph, .nshards = nshards, .sequence = sequence, .diag = diag };

	if (nshards == 1)
		return HD_OK;
	if (nshards < 1 || nshards > HD_MAX_SHARDS)
		return hd_fail(diag, HD_E_INVAL, "%u shards: from 1 to %d", nshards, HD_MAX_SHARDS);
	x.err = begin(&x, graph);
	if (!x.err)
		walk(&x);
	if (!x.err && x.nsplits == 0)
		x.err = hd_fail(diag, HD_E_INVAL,
			"nothing of this model can be split in %u shards: it has no pair "
			"of products, no attention and no token table; leave model.shards at 1", nshards);
	if (!x.err && sequence && x.nalong == 0)
		x.err = hd_fail(diag, HD_E_INVAL,
			"nothing of this model lies along a sequence: no norm, dropout or sum of [rows, "
			"positions, channels] "
			"follows a sum over shards; leave model.sequence_shards false");
	if (!x.err)
		begin_again(&x);
	if (!x.err)
		walk(&x);
	return x.err ? x.err : hd_rewrite_end(&x.r, graph, diag);
}
