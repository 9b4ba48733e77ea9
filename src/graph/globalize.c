#include "graph/pass.h"

#include "graph/op.h"

/* moments -> sync -> apply: what stands between the pieces is summed over all parts of the batch. */
static enum hd_err split(struct hd_rewrite *rewrite, const struct hd_node *n, struct hd_diag *diag)
{
	const struct hd_attr axis = { .i = { n->attr.i[0] } }, how = { .i = { 1 } };
	const struct hd_attr apply = { .i = { n->attr.i[0] }, .f = { n->attr.f[0] } };
	uint32_t in[6], moments = HD_NONE, all = HD_NONE, out = HD_NONE;
	enum hd_err err = hd_rewrite_node(rewrite, n, HD_OP_BATCHNORM_MOMENTS, 1, n->in, &axis, &moments,
		diag);

	if (err == HD_OK)
		err = hd_graph_node(&rewrite->graph, HD_OP_BATCHNORM_SYNC, 1, &moments, &how, n->stage, &all,
			diag);
	for (int i = 0; i < 5 && err == HD_OK; i++)
		err = hd_rewrite_value(rewrite, n->in[i], &in[i], diag);
	in[5] = all;
	if (err == HD_OK)
		err = hd_graph_node(&rewrite->graph, HD_OP_BATCHNORM_APPLY, 6, in, &apply, n->stage, &out,
			diag);
	if (err != HD_OK)
		return err;
	rewrite->to[n->out] = out;
	rewrite->to[n->out + 1] = out + 1;
	rewrite->to[n->out + 2] = moments;
	return HD_OK;
}

enum hd_err hd_graph_globalize(struct hd_graph *graph, struct hd_diag *diag)
{
	struct hd_rewrite rewrite;
	enum hd_err err = hd_rewrite_begin(&rewrite, graph, diag);

	for (uint32_t i = 0; i < graph->nnodes && err == HD_OK; i++) {
		const struct hd_node *n = &graph->node[i];
		bool norm = n->op == HD_OP_BATCHNORM && n->attr.i[1] == 0;
		err = norm ? split(&rewrite, n, diag) : hd_rewrite_copy(&rewrite, n, diag);
	}
	return err == HD_OK ? hd_rewrite_end(&rewrite, graph, diag) : err;
}
