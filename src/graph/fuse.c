#include "graph/pass.h"

#include <string.h>

#include "graph/op.h"

/* A pair of neighbours (the second reads the first's result as its operand 0) and the op
 * that does both. Only direct neighbours are joined: what lay between them would
 * otherwise change its place, and gradients are summed in that order.
 *
 * in[]: operands of the fused op, 'f' of the first, 's' of the second.
 * attr[]: its integer attributes, likewise. float_of: whose float attributes it has.
 * first_out, second_out: outputs that stand for the parts' own; the second's further outputs follow
 * at second_more. */
struct fuse_pattern {
	uint16_t first, second, into;
	struct { char of; uint8_t i; } in[HD_MAX_IN], attr[2];
	char float_of;
	uint8_t first_out, second_out, second_more;
};

static const struct fuse_pattern patterns[] = {
	{ HD_OP_BIAS, HD_OP_ACT, HD_OP_BIAS_ACT, { { 'f', 0 }, { 'f', 1 } }, { { 'f', 0 }, { 's', 0 } }, 's', 0, 1, 0 },
	{ HD_OP_ADD, HD_OP_LAYERNORM, HD_OP_ADD_LAYERNORM, { { 'f', 0 }, { 'f', 1 }, { 's', 1 }, { 's', 2 } }, { { 0 } }, 's', 1, 0, 2 },
	{ HD_OP_ADD, HD_OP_RMSNORM, HD_OP_ADD_RMSNORM, { { 'f', 0 }, { 'f', 1 }, { 's', 1 } }, { { 0 } }, 's', 1, 0, 2 },
};

/* Sums that repeat an operand keep their own op: the fused one wants equal shapes. */
static bool fits(const struct hd_graph *graph, const struct fuse_pattern *p, const struct hd_node *a,
	const struct hd_node *b)
{
	return a->op == p->first && b->op == p->second && b->in[0] == a->out && a->stage == b->stage &&
		(a->op != HD_OP_ADD || hd_dims_same(&graph->value[a->in[0]], &graph->value[a->in[1]])) &&
		b->in[1] != a->out && (b->nin < 3 || b->in[2] != a->out);
}

static const struct fuse_pattern *find(const struct hd_graph *graph, uint32_t i)
{
	if (i + 1 == graph->nnodes)
		return NULL;
	for (size_t k = 0; k < sizeof patterns / sizeof patterns[0]; k++)
		if (fits(graph, &patterns[k], &graph->node[i], &graph->node[i + 1]))
			return &patterns[k];
	return NULL;
}

static enum hd_err join(struct hd_rewrite *rewrite, const struct fuse_pattern *p, const struct hd_node *a,
	const struct hd_node *b,
	struct hd_diag *diag)
{
	uint8_t nin = hd_ops[p->into].nin;
	uint32_t in[HD_MAX_IN], out = HD_NONE;
	struct hd_attr attr = { .i = { 0 } };

	for (int k = 0; k < nin; k++)
		in[k] = p->in[k].of == 'f' ? a->in[p->in[k].i] : b->in[p->in[k].i];
	memcpy(attr.f, p->float_of == 's' ? b->attr.f : a->attr.f, sizeof attr.f);
	for (int k = 0; k < 2; k++)
		if (p->attr[k].of)
			attr.i[k] = (p->attr[k].of == 'f' ? a : b)->attr.i[p->attr[k].i];
	enum hd_err err = hd_rewrite_node(rewrite, a, p->into, nin, in, &attr, &out, diag);
	if (err != HD_OK)
		return err;
	if (a->shard != b->shard)         /* the sum of all shards and the norm behind it */
		rewrite->graph.node[rewrite->graph.nnodes - 1].shard = 0;
	rewrite->to[a->out] = out + p->first_out;
	rewrite->to[b->out] = out + p->second_out;
	for (uint32_t k = 1; k < b->nout; k++)
		rewrite->to[b->out + k] = out + p->second_more + k - 1;
	return HD_OK;
}

enum hd_err hd_graph_fuse(struct hd_graph *graph, struct hd_diag *diag)
{
	struct hd_rewrite rewrite;
	enum hd_err err = hd_rewrite_begin(&rewrite, graph, diag);

	for (uint32_t i = 0; i < graph->nnodes && err == HD_OK; i++) {
		const struct fuse_pattern *p = find(graph, i);
		if (p) {
			err = join(&rewrite, p, &graph->node[i], &graph->node[i + 1], diag);
			i++;
		} else {
			err = hd_rewrite_copy(&rewrite, &graph->node[i], diag);
		}
	}
	return err == HD_OK ? hd_rewrite_end(&rewrite, graph, diag) : err;
}
