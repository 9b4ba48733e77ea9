/* Images in blocks of 16 channels between convolutions.
 *
 * A convolution whose channels fill blocks becomes its blocked twin; ops that compute each
 * element alone, or each channel alone, follow their operands. Every value is made in one
 * form; the other is made where the first reader wants it, so a chain of such nodes is
 * entered once and left once. What is right depends on nothing but the graph. */
#include "graph/pass.h"

#include "graph/op.h"

/* Ops that take blocked images as they are. Bits of `images`: operands that are images and must be alike;
 * output 0 is one as well. `axis`: the integer attribute 0 says where the channels stand, 1, and becomes
 * this; 0: it does not. `joins`: operands differ in their channels, each of which fills blocks: behind one
 * another these are the blocks of the whole. */
static const struct follower { uint16_t op; uint8_t images; int32_t axis; bool joins; } followers[] = {
	{ HD_OP_ADD,       3, 0,        false },
	{ HD_OP_SUB,       3, 0,        false },
	{ HD_OP_MUL,       3, 0,        false },
	{ HD_OP_SCALE,     1, 0,        false },
	{ HD_OP_ACT,       1, 0,        false },
	{ HD_OP_BATCHNORM, 1, HD_BLOCK, false },
	{ HD_OP_CONCAT,    3, 1,        true },
};
enum { NFOLLOWERS = sizeof followers / sizeof followers[0] };

struct blocker {
	struct hd_rewrite rewrite;        /* to[]: plain forms */
	/* [values of the old graph]: blocked forms in the new one, or HD_NONE */
	uint32_t *blocked;
};

static bool fills_blocks(int64_t channels) { return channels > 0 && channels % HD_BLOCK == 0; }

static enum hd_err append(struct blocker *b, const struct hd_node *like, uint16_t op, uint8_t nin,
	const uint32_t *in,
	const struct hd_attr *attr, uint32_t *out, struct hd_diag *diag)
{
	struct hd_graph *graph = &b->rewrite.graph;
	enum hd_err err = hd_graph_node(graph, op, nin, in, attr, like->stage, out, diag);

	if (err == HD_OK)
		graph->node[graph->nnodes - 1].shard = like->shard;
	return err;
}

static enum hd_err plain_form(struct blocker *b, const struct hd_node *reader, uint32_t value,
	struct hd_diag *diag)
{
	const struct hd_attr channels = { .i = { (int32_t)b->rewrite.from->value[value].dim[1] } };

	if (b->rewrite.to[value] != HD_NONE || b->blocked[value] == HD_NONE)
		return HD_OK;
	return append(b, reader, HD_OP_UNBLOCK, 1, &b->blocked[value], &channels, &b->rewrite.to[value],
		diag);
}

static enum hd_err blocked_form(struct blocker *b, const struct hd_node *reader, uint32_t value,
	struct hd_diag *diag)
{
	uint32_t plain = HD_NONE;

	if (b->blocked[value] != HD_NONE)
		return HD_OK;
	enum hd_err err = hd_rewrite_value(&b->rewrite, value, &plain, diag);
	return err == HD_OK ? append(b, reader, HD_OP_BLOCK, 1, &plain, NULL, &b->blocked[value], diag) : err;
}

/* integer attributes of conv2d: those of its twin; then groups, dh, dw */
enum { CONV_PLAIN = 4, CONV_ATTRS = 7 };

/* An image that the data set fills has few channels and no gradient: one block, not full, serves it. */
static bool becomes_blocked(const struct hd_graph *graph, const struct hd_node *node)
{
	if (node->op != HD_OP_CONV2D)
		return false;
	const struct hd_value *x = &graph->value[node->in[0]], *w = &graph->value[node->in[1]];
	for (int i = CONV_PLAIN; i < CONV_ATTRS; i++)
		if (node->attr.i[i] > 1)
			return false;
	return fills_blocks(w->dim[0]) && (fills_blocks(w->dim[1]) ||
		(x->kind == HD_INPUT && w->dim[1] < HD_BLOCK));
}

static bool alike(const struct hd_value *a, const struct hd_value *b, bool joins)
{
	struct hd_value same = *b;

	if (joins && b->rank == 4 && fills_blocks(b->dim[1]))
		same.dim[1] = a->dim[1];
	return hd_dims_same(a, &same);
}

static const struct follower *follows(const struct blocker *b, const struct hd_node *node)
{
	const struct hd_graph *graph = b->rewrite.from;
	const struct hd_value *x = &graph->value[node->in[0]];

	for (size_t i = 0; i < NFOLLOWERS; i++) {
		const struct follower *f = &followers[i];
		bool any = false, fits = x->rank == 4 && fills_blocks(x->dim[1]) &&
			(!f->axis || node->attr.i[0] == 1);
		for (int k = 0; k < node->nin && f->op == node->op; k++)
			if (f->images >> k & 1) {
				any |= b->blocked[node->in[k]] != HD_NONE;
				fits &= alike(x, &graph->value[node->in[k]], f->joins);
			}
		if (any && fits)
			return f;
	}
	return NULL;
}

/* The node in its blocked form: bits of `images` are operands that are blocked, as is output 0. */
static enum hd_err rewrite_blocked(struct blocker *b, const struct hd_node *node, uint16_t op, uint8_t images,
	int32_t axis, struct hd_diag *diag)
{
	struct hd_attr attr = node->attr;
	uint32_t in[HD_MAX_IN], out = HD_NONE;
	enum hd_err err = HD_OK;

	for (int k = 0; k < node->nin && err == HD_OK; k++) {
		bool image = images >> k & 1;
		err = image ? blocked_form(b, node, node->in[k], diag) : plain_form(b, node, node->in[k],
			diag);
		if (err == HD_OK && image)
			in[k] = b->blocked[node->in[k]];
		else if (err == HD_OK)
			err = hd_rewrite_value(&b->rewrite, node->in[k], &in[k], diag);
	}
	if (axis)
		attr.i[0] = axis;
	for (int i = CONV_PLAIN; i < CONV_ATTRS && op == HD_OP_CONV2D_B; i++)
		attr.i[i] = 0;
	if (err == HD_OK)
		err = append(b, node, op, node->nin, in, &attr, &out, diag);
	if (err != HD_OK)
		return err;
	b->blocked[node->out] = out;
	for (uint32_t k = 1; k < node->nout; k++)
		b->rewrite.to[node->out + k] = out + k;
	return HD_OK;
}

static enum hd_err rewrite_plain(struct blocker *b, const struct hd_node *node, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (int k = 0; k < node->nin && err == HD_OK; k++)
		err = plain_form(b, node, node->in[k], diag);
	return err == HD_OK ? hd_rewrite_copy(&b->rewrite, node, diag) : err;
}

static enum hd_err visit(struct blocker *b, const struct hd_node *node, struct hd_diag *diag)
{
	const struct follower *f = follows(b, node);

	if (becomes_blocked(b->rewrite.from, node))
		return rewrite_blocked(b, node, HD_OP_CONV2D_B, 1, 0, diag);
	return f ? rewrite_blocked(b, node, node->op, f->images, f->axis, diag) : rewrite_plain(b, node,
		diag);
}

enum hd_err hd_graph_block(struct hd_graph *graph, struct hd_diag *diag)
{
	struct blocker b = { .blocked = hd_arena_take(graph->arena, graph->nvalues, sizeof *b.blocked) };
	enum hd_err err = b.blocked ? hd_rewrite_begin(&b.rewrite, graph, diag)
	                            : hd_fail(diag, HD_E_NOMEM, "no memory to block a graph of %u values",
	                            	graph->nvalues);

	for (uint32_t i = 0; i < graph->nvalues && err == HD_OK; i++)
		b.blocked[i] = HD_NONE;
	for (uint32_t i = 0; i < graph->nnodes && err == HD_OK; i++)
		err = visit(&b, &graph->node[i], diag);
	for (uint32_t i = 0; i < graph->noutputs && err == HD_OK; i++)
		if (graph->value[graph->output[i].value].kind == HD_TEMP)
			err = plain_form(&b, &graph->node[graph->nnodes - 1], graph->output[i].value, diag);
	return err == HD_OK ? hd_rewrite_end(&b.rewrite, graph, diag) : err;
}
