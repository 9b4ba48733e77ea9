/* The sequence option: Korthikanti et al., "Reducing activation recomputation in large transformer models"
 * (2022). What lies between two pairs of products, [N, q, C], is computed in T parts of q/T positions: norms,
 * dropout, residual sums, biases.
 *
 * Where the paper scatters the sum of the partial results of a product, a part is a slice of their sum, and
 * where it gathers, parts are joined: as values the same, and the sums are those of the tree of shards. What
 * all parts read (gamma, beta, a bias) is handed to them along that tree, so that its gradient is summed
 * along it. A part of a dropout draws what its place in the whole would: masks are those of the unsplit
 * model. The paper gathers again in the backward pass to keep only a part of what a product reads; here the
 * joined value is kept.
 *
 * A sum and the norm behind it are made part by part, so that they stay neighbours and can be fused. */
#include "graph/shard_int.h"

static const struct hd_shard_split by_rows = { 1, 1 };

static bool lies_along(const struct hd_value *v) { return v->rank == 3 && v->dim[0] == -1 && v->dim[1] > 0; }

void hd_shard_enter(struct hd_sharder *x, uint32_t value)
{
	const struct hd_value *v = &x->from->value[value];

	if (!x->sequence || !lies_along(v))
		return;
	if (v->dim[1] % x->nshards)
		hd_shard_refuse(x, "sequence", v->dim[1]);
	x->at[value].along = true;
}

/* What computes a position from that position alone, but for what all share. */
static bool is_rowwise(const struct hd_sharder *x, const struct hd_node *n)
{
	static const uint16_t ops[] = { HD_OP_LAYERNORM, HD_OP_RMSNORM, HD_OP_ACT, HD_OP_SCALE, HD_OP_ADD,
		HD_OP_SUB, HD_OP_MUL, HD_OP_DIV, HD_OP_SWIGLU };

	if (n->op == HD_OP_DROPOUT)
		return n->attr.i[1] == 0;
	if (n->op == HD_OP_BIAS)
		return n->attr.i[0] == -1 && x->from->value[n->in[1]].rank == 1;
	for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
		if (n->op == ops[i])
			return true;
	return false;
}

/* It reads a value along the sequence, and its result has that value's extents. */
static bool is_along(const struct hd_sharder *x, const struct hd_node *n)
{
	const struct hd_value *out = &x->from->value[n->out];

	for (uint8_t k = 0; k < n->nin && is_rowwise(x, n); k++)
		if (x->at[n->in[k]].along && hd_dims_same(&x->from->value[n->in[k]], out))
			return true;
	return false;
}

/* Operand k for each part: extents are paired from the last one, so that positions are extent 1 of three
 * and extent 0 of two. */
static const uint32_t *operand(struct hd_sharder *x, const struct hd_node *n, uint8_t k)
{
	const struct hd_value *v = &x->from->value[n->in[k]];
	int64_t positions = x->from->value[n->out].dim[1];
	struct hd_shard_state *at = &x->at[n->in[k]];

	if (v->rank == 3 && v->dim[1] == positions) {
		if (!at->rows)
			at->rows = hd_shard_slices(x, n->in[k], by_rows);
		return at->rows;
	}
	return v->rank == 2 && v->dim[0] == positions ? hd_shard_slices(x, n->in[k],
		(struct hd_shard_split){ 1, 0 }) : hd_shard_copies(x, n->in[k]);
}

/* A node in parts: where its operands come from, where its results go. */
struct piece { const struct hd_node *node; const uint32_t *in[HD_MAX_IN]; uint32_t *out[HD_MAX_OUT]; };

static void prepare(struct hd_sharder *x, struct piece *p, const struct hd_node *n)
{
	*p = (struct piece){ .node = n };
	x->node = n;
	for (uint8_t k = 0; k < n->nin && !x->err; k++)
		p->in[k] = operand(x, n, k);
	for (uint8_t k = 0; k < n->nout && !x->err; k++) {
		x->at[n->out + k].rows = p->out[k] = hd_shard_take(x);
		x->at[n->out + k].along = true;
	}
	x->nalong++;
}

static void make_part(struct hd_sharder *x, const struct piece *p, uint32_t s)
{
	const struct hd_node *n = p->node;
	int64_t positions = x->from->value[n->out].dim[1];
	struct hd_attr attr = n->attr;
	uint32_t in[HD_MAX_IN];

	if (x->err)
		return;
	x->node = n;
	if (n->op == HD_OP_DROPOUT) {
		attr.i[0] = (int32_t)hd_shard_first(x, positions, s);
		attr.i[1] = (int32_t)positions;
	}
	for (uint8_t k = 0; k < n->nin; k++)
		in[k] = p->in[k][s];
	const uint16_t before = hd_shard_turn(x, (uint16_t)(s + 1));
	uint32_t out = hd_shard_make(x, (enum hd_op)n->op, n->nin, in, attr);
	hd_shard_turn(x, before);
	for (uint8_t k = 0; k < n->nout; k++)
		p->out[k][s] = out + k;
}

/* The norm that reads a sum right behind it. */
static bool is_mate(const struct hd_sharder *x, const struct hd_node *sum, const struct hd_node *next)
{
	return sum->op == HD_OP_ADD && next < x->from->node + x->from->nnodes &&
		(next->op == HD_OP_LAYERNORM || next->op == HD_OP_RMSNORM)
		&& next->in[0] == sum->out && next->stage == sum->stage;
}

bool hd_shard_along(struct hd_sharder *x, const struct hd_node *n)
{
	struct piece piece[2];
	uint32_t npieces = 1;

	if (!x->sequence || !is_along(x, n))
		return false;
	prepare(x, &piece[0], n);
	if (is_mate(x, n, n + 1))
		prepare(x, &piece[npieces++], n + 1);
	for (uint32_t s = 0; s < x->nshards; s++)
		for (uint32_t k = 0; k < npieces; k++)
			make_part(x, &piece[k], s);
	x->done = (uint32_t)(n - x->from->node) + npieces;
	return true;
}
