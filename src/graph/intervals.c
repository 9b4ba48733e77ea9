#include "graph/intervals.h"

#include <string.h>

#include "graph/domain.h"
#include "graph/far_end.h"
#include "graph/op.h"
#include "graph/pass.h"

/* `met`, by value of the old graph and way: rows that met already, of the new one. */
struct interval_pass { struct hd_rewrite rewrite; uint32_t list[HD_EDGE_LISTS], *met[2]; };

static enum hd_err add_list(struct interval_pass *c, enum hd_edge_list which, uint32_t slots,
	struct hd_diag *diag)
{
	const int64_t dim[] = { -1, slots };
	const struct hd_attr flat = { .i = { -(int32_t)slots } };
	uint32_t input = HD_NONE;
	enum hd_err err = hd_graph_input(&c->rewrite.graph, hd_edge_list_names[which], HD_I32, 2, dim, &input,
		diag);

	return err ? err : hd_graph_node(&c->rewrite.graph, HD_OP_RESHAPE, 1, &input, &flat, 0,
		&c->list[which],
		diag);
}

static enum hd_err refuse(const struct hd_node *n, uint32_t i, const char *why, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INVAL, "node %u (%s): %s; set batch.virtual_nodes to 1, where a step takes "
		"the "
		"graph as one interval", i, hd_ops[n->op].name, why);
}

/* Of the whole graph: the list of ends or of numbers that stands in its place. Against the edges: HD_NONE. */
static uint32_t list_along(const struct interval_pass *c, char kind, uint32_t value)
{
	const char *name = hd_edge_list_name(c->rewrite.from, value);

	if (kind == 'n')
		return !strcmp(name, "number") ? c->list[HD_LIST_NUMBER] : HD_NONE;
	if (kind == 'f')
		return !strcmp(name, "from") ? c->list[HD_LIST_FAR] : HD_NONE;
	return !strcmp(name, "to") ? c->list[HD_LIST_NEAR] : HD_NONE;
}

/* Rule 3. */
static enum hd_err meet(struct interval_pass *c, const struct hd_node *n, uint32_t value, bool back,
	uint32_t *out, struct hd_diag *diag)
{
	uint32_t x = HD_NONE, *met = &c->met[back][value];
	enum hd_err err = hd_rewrite_value(&c->rewrite, value, &x, diag);

	if (!err && *met == HD_NONE)
		err = hd_graph_node(&c->rewrite.graph, HD_OP_ROWS_MEET, 2,
			(uint32_t[]){ x, c->list[back ? HD_LIST_BACK_GHOSTS : HD_LIST_GHOSTS] }, NULL,
			n->stage, met, diag);
	*out = *met;
	return err;
}

static enum hd_err sum_against(struct interval_pass *c, const struct hd_node *n, struct hd_diag *diag)
{
	uint32_t y = HD_NONE, met = HD_NONE, out = HD_NONE;
	enum hd_err err = meet(c, n, n->in[2], true, &met, diag);

	err = err ? err : hd_rewrite_value(&c->rewrite, n->in[3], &y, diag);
	err = err ? err : hd_graph_node(&c->rewrite.graph, HD_OP_SPMM, 4,
		(uint32_t[]){ c->list[HD_LIST_BACK_FAR], c->list[HD_LIST_BACK_NEAR], met, y }, NULL, n->stage,
		&out, diag);
	c->rewrite.to[n->out] = out;
	return err;
}

static bool is_against(const struct interval_pass *c, const struct hd_node *n)
{
	return n->op == HD_OP_SPMM && !strcmp(hd_edge_list_name(c->rewrite.from, n->in[0]), "to") &&
		!strcmp(hd_edge_list_name(c->rewrite.from, n->in[1]), "from");
}

static enum hd_err along(struct interval_pass *c, const struct hd_node *n, uint32_t i, const char *operand,
	struct hd_diag *diag)
{
	uint32_t in[HD_MAX_IN] = { 0 }, out = HD_NONE;
	enum hd_err err = HD_OK;

	for (int k = 0; k < n->nin && !err; k++) {
		if (operand[k] == 'F') {
			err = meet(c, n, n->in[k], false, &in[k], diag);
		} else if (!strchr("ftan", operand[k])) {
			err = hd_rewrite_value(&c->rewrite, n->in[k], &in[k], diag);
		} else {
			in[k] = list_along(c, operand[k], n->in[k]);
			if (in[k] == HD_NONE)
				return refuse(n, i, "its lists of edges are not the inputs \"from\", \"to\" "
					"and \"number\", in this order", diag);
		}
	}
	err = err ? err : hd_graph_node(&c->rewrite.graph, n->op, n->nin, in, &n->attr, n->stage, &out, diag);
	c->rewrite.to[n->out] = out;
	if (!err)
		c->rewrite.graph.node[c->rewrite.graph.nnodes - 1].key = n->key;
	return err;
}

static enum hd_err begin(struct interval_pass *c, const struct hd_interval_slots *slots,
	const struct hd_graph *graph, struct hd_diag *diag)
{
	const uint32_t places[HD_EDGE_LISTS] = {
		[HD_LIST_FAR] = slots->edges, [HD_LIST_NEAR] = slots->edges, [HD_LIST_NUMBER] = slots->edges,
		[HD_LIST_GHOSTS] = slots->ghosts, [HD_LIST_BACK_FAR] = slots->back_edges,
		[HD_LIST_BACK_NEAR] = slots->back_edges, [HD_LIST_BACK_NUMBER] = slots->back_edges,
		[HD_LIST_BACK_GHOSTS] = slots->back_ghosts };
	const bool numbers = hd_graph_find_input(graph, "number") != HD_NONE;
	enum hd_err err = hd_rewrite_begin(&c->rewrite, graph, diag);

	for (int l = 0; l < HD_EDGE_LISTS && !err; l++)
		if (numbers || (l != HD_LIST_NUMBER && l != HD_LIST_BACK_NUMBER))
			err = add_list(c, (enum hd_edge_list)l, places[l], diag);
	for (int way = 0; way < 2 && !err; way++) {
		c->met[way] = hd_arena_take(graph->arena, graph->nvalues, sizeof *c->met[way]);
		if (!c->met[way])
			return hd_fail(diag, HD_E_NOMEM, "no memory for a graph of %u values",
				graph->nvalues);
		memset(c->met[way], 0xff, graph->nvalues * sizeof *c->met[way]);
	}
	return err;
}

enum hd_err hd_graph_intervals(struct hd_graph *graph, const struct hd_interval_slots *slots,
	struct hd_diag *diag)
{
	struct interval_pass c = { .list = { 0 } };
	enum hd_err err = begin(&c, slots, graph, diag);

	for (uint32_t i = 0; i < graph->nnodes && err == HD_OK; i++) {
		const struct hd_node *n = &graph->node[i];
		const struct hd_edge_op *e = hd_edge_op(n->op);
		if (!e)
			err = hd_rewrite_copy(&c.rewrite, n, diag);
		else if (is_against(&c, n))
			err = sum_against(&c, n, diag);
		else
			err = along(&c, n, i, e->operand, diag);
	}
	return err == HD_OK ? hd_rewrite_end(&c.rewrite, graph, diag) : err;
}
