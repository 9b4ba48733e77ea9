#include "graph/intervals.h"

#include <string.h>

#include "graph/domain.h"
#include "graph/op.h"
#include "graph/pass.h"

/* The lists, in the new graph, as ends of edges; those of one direction stand together. */
enum list { FAR, NEAR, GHOSTS, BACK_FAR, BACK_NEAR, BACK_GHOSTS, NLISTS };
static const char *const names[NLISTS] = { "far", "near", "ghosts", "back_far", "back_near", "back_ghosts" };

struct interval_pass { struct hd_rewrite rewrite; uint32_t list[NLISTS]; };

static enum hd_err add_list(struct interval_pass *c, enum list which, uint32_t slots, struct hd_diag *diag)
{
	const int64_t dim[] = { -1, slots };
	const struct hd_attr flat = { .i = { -(int32_t)slots } };
	uint32_t input = HD_NONE;
	enum hd_err err = hd_graph_input(&c->rewrite.graph, names[which], HD_I32, 2, dim, &input, diag);

	return err ? err : hd_graph_node(&c->rewrite.graph, HD_OP_RESHAPE, 1, &input, &flat, 0,
		&c->list[which],
		diag);
}

/* The name of the input that a list is, through views; "" if it is computed. */
static const char *list_name(const struct hd_graph *g, uint32_t value)
{
	while (g->value[value].kind == HD_TEMP &&
		hd_ops[g->node[g->value[value].node].op].class == HD_OP_VIEW)
		value = g->node[g->value[value].node].in[0];
	return g->value[value].kind == HD_INPUT ? hd_graph_text_of(g, g->value[value].name) : "";
}

static enum hd_err refuse(const struct hd_node *n, uint32_t i, const char *why, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INVAL, "node %u (%s): %s; set batch.virtual_nodes to 1, where a step takes "
		"the "
		"graph as one interval", i, hd_ops[n->op].name, why);
}

static enum hd_err sum_over(struct interval_pass *c, const struct hd_node *n, uint32_t i,
	struct hd_diag *diag)
{
	const struct hd_graph *from = c->rewrite.from;
	const char *ends[] = { list_name(from, n->in[0]), list_name(from, n->in[1]) };
	const bool along = !strcmp(ends[0], "from") && !strcmp(ends[1], "to"),
		against = !strcmp(ends[0], "to") && !strcmp(ends[1], "from");
	const uint32_t *one = &c->list[against ? BACK_FAR : FAR], *other = &c->list[against ? FAR : BACK_FAR];
	uint32_t x = HD_NONE, y = HD_NONE, met = HD_NONE, out = HD_NONE;

	if (!along && !against)
		return refuse(n, i, "its lists of edges are not the inputs \"from\" and \"to\"", diag);
	enum hd_err err = hd_rewrite_value(&c->rewrite, n->in[2], &x, diag);
	err = err ? err : hd_rewrite_value(&c->rewrite, n->in[3], &y, diag);
	err = err ? err : hd_graph_node(&c->rewrite.graph, HD_OP_ROWS_MEET, 5,
		(uint32_t[]){ x, one[GHOSTS], other[GHOSTS], other[FAR], other[NEAR] }, NULL, n->stage, &met,
		diag);
	err = err ? err : hd_graph_node(&c->rewrite.graph, HD_OP_SPMM, 4,
		(uint32_t[]){ one[FAR], one[NEAR], met, y }, NULL, n->stage, &out, diag);
	c->rewrite.to[n->out] = out;
	return err;
}

enum hd_err hd_graph_intervals(struct hd_graph *graph, const struct hd_interval_slots *slots,
	struct hd_diag *diag)
{
	const uint32_t places[NLISTS] = { slots->edges, slots->edges, slots->ghosts, slots->back_edges,
		slots->back_edges, slots->back_ghosts };
	struct interval_pass c = { .list = { 0 } };
	enum hd_err err = hd_rewrite_begin(&c.rewrite, graph, diag);

	for (int l = 0; l < NLISTS && err == HD_OK; l++)
		err = add_list(&c, (enum list)l, places[l], diag);
	for (uint32_t i = 0; i < graph->nnodes && err == HD_OK; i++) {
		const struct hd_node *n = &graph->node[i];
		if (n->op == HD_OP_SPMM)
			err = sum_over(&c, n, i, diag);
		else if (hd_edge_op(n->op))
			err = refuse(n, i, "values of edges do not go from one interval to another", diag);
		else
			err = hd_rewrite_copy(&c.rewrite, n, diag);
	}
	return err == HD_OK ? hd_rewrite_end(&c.rewrite, graph, diag) : err;
}
