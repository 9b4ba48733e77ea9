#include "graph/pass.h"

#include "graph/op.h"
#include "graph/verify.h"

const struct hd_graph_pass hd_graph_passes[] = {
	{ "fold",  "nodes of constants become constants",       hd_graph_fold },
	{ "block", "images between convolutions lie in blocks", hd_graph_block },
	{ "fuse",  "pairs of nodes become one",                 hd_graph_fuse },
	{ "prune", "what no output needs is left out",          hd_graph_prune },
	{ 0 },
};

enum hd_err hd_graph_optimize(struct hd_graph *graph, uint64_t rows, struct hd_diag *diag)
{
	struct hd_diag why = { "" };
	enum hd_err err = hd_graph_verify(graph, rows, diag);

	for (const struct hd_graph_pass *pass = hd_graph_passes; pass->name && err == HD_OK; pass++) {
		err = pass->run(graph, diag);
		if (err == HD_OK && hd_graph_verify(graph, rows, &why) != HD_OK)
			err = hd_fail(diag, HD_E_BUG, "after pass '%s': %s", pass->name, why.text);
	}
	return err;
}

/* The new graph has its own pool of names. */
static enum hd_err copy_param(struct hd_rewrite *rewrite, const struct hd_param *p, struct hd_diag *diag)
{
	const struct hd_graph *from = rewrite->from;
	struct hd_graph *graph = &rewrite->graph;
	const struct hd_value *v = &from->value[p->value];
	enum hd_err err = hd_graph_param(graph, hd_graph_text_of(from, v->name), v->rank, v->dim,
		(enum hd_init_kind)p->init, p->scale, &rewrite->to[p->value], diag);

	if (err)
		return err;
	struct hd_param *to = &graph->param[graph->nparams - 1];
	const uint32_t own = to->slice.name;
	to->frozen = p->frozen;
	to->slice = p->slice;
	to->slice.name = own;
	return p->slice.n == 1 ? HD_OK : hd_graph_name(graph, hd_graph_text_of(from, p->slice.name),
		&to->slice.name, diag);
}

enum hd_err hd_rewrite_begin(struct hd_rewrite *rewrite, const struct hd_graph *from, struct hd_diag *diag)
{
	return hd_rewrite_begin_without(rewrite, from, NULL, diag);
}

enum hd_err hd_rewrite_begin_without(struct hd_rewrite *rewrite, const struct hd_graph *from,
	const bool *leave, struct hd_diag *diag)
{
	struct hd_graph *graph = &rewrite->graph;
	enum hd_err err = HD_OK;

	if (from->nforward != from->nnodes)
		return hd_fail(diag, HD_E_INVAL, "passes run before the gradient is made");
	rewrite->from = from;
	rewrite->to = hd_arena_take(from->arena, from->nvalues, sizeof *rewrite->to);
	if (!rewrite->to)
		return hd_fail(diag, HD_E_NOMEM, "no memory to rewrite a graph of %u values", from->nvalues);
	for (uint32_t i = 0; i < from->nvalues; i++)
		rewrite->to[i] = HD_NONE;
	hd_graph_init(graph, from->arena);
	if (from->name != HD_NONE)
		err = hd_graph_name(graph, hd_graph_text_of(from, from->name), &graph->name, diag);
	for (uint32_t i = 0; i < from->ninputs && err == HD_OK; i++) {
		const struct hd_value *v = &from->value[from->input[i]];
		err = hd_graph_input(graph, hd_graph_text_of(from, v->name), (enum hd_dtype)v->dtype, v->rank,
			v->dim,
			&rewrite->to[from->input[i]], diag);
	}
	for (uint32_t i = 0; i < from->nparams && err == HD_OK; i++)
		if (!leave || !leave[i])
			err = copy_param(rewrite, &from->param[i], diag);
	for (uint32_t i = 0; i < from->nbuffers && err == HD_OK; i++) {
		const struct hd_buffer *b = &from->buffer[i];
		const struct hd_value *v = &from->value[b->value];
		err = hd_graph_buffer(graph, hd_graph_text_of(from, v->name), v->rank, v->dim,
			(enum hd_init_kind)b->init,
			&rewrite->to[b->value], diag);
	}
	return err;
}

/* Constants are copied when first used: those without a reader are left out. */
enum hd_err hd_rewrite_value(struct hd_rewrite *rewrite, uint32_t value, uint32_t *to, struct hd_diag *diag)
{
	const struct hd_graph *from = rewrite->from;
	const struct hd_value *v = &from->value[value];
	enum hd_err err = HD_OK;

	if (rewrite->to[value] == HD_NONE && v->kind == HD_CONST)
		err = hd_graph_const(&rewrite->graph, (enum hd_dtype)v->dtype, v->rank, v->dim,
			from->consts + v->data, &rewrite->to[value], diag);
	if (err == HD_OK && rewrite->to[value] == HD_NONE)
		err = hd_fail(diag, HD_E_BUG, "a pass dropped value %u, which is still read", value);
	*to = rewrite->to[value];
	return err;
}

enum hd_err hd_rewrite_node(struct hd_rewrite *rewrite, const struct hd_node *like, uint16_t op, uint8_t nin,
	const uint32_t *in, const struct hd_attr *attr, uint32_t *out, struct hd_diag *diag)
{
	struct hd_graph *graph = &rewrite->graph;
	uint32_t to[HD_MAX_IN];
	enum hd_err err = HD_OK;

	for (int i = 0; i < nin && err == HD_OK; i++)
		err = hd_rewrite_value(rewrite, in[i], &to[i], diag);
	if (err == HD_OK)
		err = hd_graph_node(graph, op, nin, to, attr, like->stage, out, diag);
	if (err == HD_OK) {
		graph->node[graph->nnodes - 1].key = like->key;
		graph->node[graph->nnodes - 1].shard = like->shard;
	}
	return err;
}

enum hd_err hd_rewrite_copy(struct hd_rewrite *rewrite, const struct hd_node *node, struct hd_diag *diag)
{
	uint32_t out = HD_NONE;
	enum hd_err err = hd_rewrite_node(rewrite, node, node->op, node->nin, node->in, &node->attr, &out,
		diag);

	for (uint32_t k = 0; k < node->nout && err == HD_OK; k++)
		rewrite->to[node->out + k] = out + k;
	return err;
}

static enum hd_err copy_running(struct hd_rewrite *rewrite, const struct hd_running *r, struct hd_diag *diag)
{
	struct hd_running copy = { .momentum = r->momentum };
	enum hd_err err = hd_rewrite_value(rewrite, r->mean, &copy.mean, diag);

	if (err == HD_OK)
		err = hd_rewrite_value(rewrite, r->variance, &copy.variance, diag);
	if (err == HD_OK)
		err = hd_rewrite_value(rewrite, r->moments, &copy.moments, diag);
	return err == HD_OK ? hd_graph_running(&rewrite->graph, &copy, diag) : err;
}

enum hd_err hd_rewrite_end(struct hd_rewrite *rewrite, struct hd_graph *graph, struct hd_diag *diag)
{
	const struct hd_graph *from = rewrite->from;
	uint32_t value = HD_NONE;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < from->noutputs && err == HD_OK; i++) {
		err = hd_rewrite_value(rewrite, from->output[i].value, &value, diag);
		if (err == HD_OK)
			err = hd_graph_output(&rewrite->graph, hd_graph_text_of(from, from->output[i].name),
				value, diag);
	}
	for (uint32_t i = 0; i < from->nrunning && err == HD_OK; i++)
		err = copy_running(rewrite, &from->running[i], diag);
	if (err != HD_OK)
		return err;
	rewrite->graph.nrandom = from->nrandom;
	*graph = rewrite->graph;
	return HD_OK;
}
