#include "graph/pass.h"

/* Readers come after makers, so one walk from the last node finds all that is needed. */
static void mark(const struct hd_graph *graph, bool *needed)
{
	for (uint32_t i = 0; i < graph->noutputs; i++)
		needed[graph->output[i].value] = true;
	for (uint32_t i = 0; i < graph->nrunning; i++)
		needed[graph->running[i].moments] = true;
	for (uint32_t i = graph->nnodes; i-- > 0;) {
		const struct hd_node *node = &graph->node[i];
		bool used = false;
		for (uint32_t k = 0; k < node->nout; k++)
			used |= needed[node->out + k];
		for (int k = 0; k < node->nin && used; k++)
			needed[node->in[k]] = true;
	}
}

static bool wanted(const struct hd_node *node, const bool *needed)
{
	for (uint32_t k = 0; k < node->nout; k++)
		if (needed[node->out + k])
			return true;
	return false;
}

enum hd_err hd_graph_prune(struct hd_graph *graph, struct hd_diag *diag)
{
	struct hd_rewrite rewrite;
	bool *needed = hd_arena_take(graph->arena, graph->nvalues, sizeof *needed);
	enum hd_err err = needed ? hd_rewrite_begin(&rewrite, graph, diag)
	                         : hd_fail(diag, HD_E_NOMEM, "no memory to prune a graph of %u values",
	                         	graph->nvalues);

	if (err != HD_OK)
		return err;
	mark(graph, needed);
	for (uint32_t i = 0; i < graph->nnodes && err == HD_OK; i++)
		if (wanted(&graph->node[i], needed))
			err = hd_rewrite_copy(&rewrite, &graph->node[i], diag);
	return err == HD_OK ? hd_rewrite_end(&rewrite, graph, diag) : err;
}
