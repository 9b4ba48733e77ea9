#include "graph/domain.h"

#include <string.h>

#include "graph/op.h"

static const struct { uint16_t op; struct hd_edge_op of; } rows[] = {
	{ HD_OP_SPMM,            { "ftFs",  HD_DOMAIN_V } },
	{ HD_OP_EDGE_PAIR,       { "ftFT",  HD_DOMAIN_E } },
	{ HD_OP_EDGE_TOTAL,      { "aes",   HD_DOMAIN_V } },
	{ HD_OP_EDGE_SOFTMAX,    { "te",    HD_DOMAIN_E } },
	{ HD_OP_EDGE_SOFTMAX_DX, { "tee",   HD_DOMAIN_E } },
	{ HD_OP_EDGE_PEAKS,      { "tes",   HD_DOMAIN_V } },
	{ HD_OP_EDGE_SOFTMAX_AT, { "aeA",   HD_DOMAIN_E } },
	{ HD_OP_EDGE_SOFTMAX_SUMS,  { "tees", HD_DOMAIN_V } },
	{ HD_OP_EDGE_SOFTMAX_DX_AT, { "aeeAeA", HD_DOMAIN_E } },
	{ HD_OP_EDGE_SUM,        { "fteFs", HD_DOMAIN_V } },
	{ HD_OP_EDGE_DOT,        { "ftTFe", HD_DOMAIN_E } },
	{ HD_OP_EDGE_DROPOUT,    { "ne",    HD_DOMAIN_E } },
	{ HD_OP_ROWS_MEET,       { "Fs", HD_DOMAIN_V } },
};

const struct hd_edge_op *hd_edge_op(uint16_t op)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].op == op)
			return &rows[i].of;
	return NULL;
}

bool hd_graph_has_edges(const struct hd_graph *graph)
{
	for (uint32_t i = 0; i < graph->nnodes; i++)
		if (hd_edge_op(graph->node[i].op))
			return true;
	return false;
}

static bool has_rows(const struct hd_value *v)
{
	for (int d = 0; d < v->rank; d++)
		if (v->dim[d] < 0)
			return true;
	return false;
}

/* Lists go back through views to the inputs that they are. */
static void mark_lists(const struct hd_graph *graph, uint8_t *domain)
{
	for (uint32_t i = graph->nnodes; i-- > 0;) {
		const struct hd_node *n = &graph->node[i];
		const struct hd_edge_op *e = hd_edge_op(n->op);
		for (int k = 0; k < n->nin; k++)
			if (e ? strchr("ftan", e->operand[k]) != NULL : hd_ops[n->op].class == HD_OP_VIEW &&
				domain[n->out] == HD_DOMAIN_E)
				domain[n->in[k]] = HD_DOMAIN_E;
	}
}

static enum hd_err refuse(const struct hd_graph *graph, uint32_t i, const char *what, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INVAL, "node %u (%s): %s", i, hd_ops[graph->node[i].op].name, what);
}

static enum hd_err of_edge_op(const struct hd_graph *graph, uint32_t i, const struct hd_edge_op *e,
	uint8_t *domain,
	struct hd_diag *diag)
{
	const struct hd_node *n = &graph->node[i];

	for (int k = 0; k < n->nin; k++) {
		bool edges = strchr("ftane", e->operand[k]) != NULL;
		uint8_t is = domain[n->in[k]];
		if (e->operand[k] != 's' && is != HD_DOMAIN_CONST && is != (edges ? HD_DOMAIN_E :
			HD_DOMAIN_V))
			return refuse(graph, i, !edges ?
				"an operand with a row for each vertex is not of the vertices" :
				e->operand[k] == 'e' ?
					"an operand with a row for each edge is not of the edges" :
				"its list of edges is computed, not given", diag);
	}
	domain[n->out] = (uint8_t)e->result;
	return HD_OK;
}

static enum hd_err of_other_op(const struct hd_graph *graph, uint32_t i, uint8_t *domain,
	struct hd_diag *diag)
{
	const struct hd_node *n = &graph->node[i];
	uint8_t first = HD_DOMAIN_CONST;
	bool params = false;

	for (int k = 0; k < n->nin; k++) {
		uint8_t is = domain[n->in[k]];
		params |= is == HD_DOMAIN_P;
		if (is != HD_DOMAIN_V && is != HD_DOMAIN_E)
			continue;
		if (first != HD_DOMAIN_CONST && first != is && has_rows(&graph->value[n->out]))
			return refuse(graph, i,
				"it reads rows of vertices and rows of edges: edge_pair brings the rows of "
				"both ends to an edge, edge_sum and edge_total those of edges to a vertex",
					diag);
		first = first == HD_DOMAIN_CONST ? is : first;
	}
	for (uint32_t k = 0; k < n->nout; k++) {
		const struct hd_value *v = &graph->value[n->out + k];
		domain[n->out + k] = first == HD_DOMAIN_CONST ? (params ? HD_DOMAIN_P : HD_DOMAIN_CONST) :
			has_rows(v) ? first : v->dtype == HD_F64 ? HD_DOMAIN_S : HD_DOMAIN_P;
	}
	return HD_OK;
}

enum hd_err hd_graph_domains(const struct hd_graph *graph, uint8_t *domain, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	memset(domain, HD_DOMAIN_CONST, graph->nvalues);
	mark_lists(graph, domain);
	for (uint32_t v = 0; v < graph->nvalues; v++)
		if (graph->value[v].kind == HD_PARAM || graph->value[v].kind == HD_BUFFER)
			domain[v] = HD_DOMAIN_P;
		else if (graph->value[v].kind == HD_INPUT && domain[v] != HD_DOMAIN_E &&
			has_rows(&graph->value[v]))
			domain[v] = HD_DOMAIN_V;
	for (uint32_t i = 0; i < graph->nnodes && err == HD_OK; i++) {
		const struct hd_edge_op *e = hd_edge_op(graph->node[i].op);
		err = e ? of_edge_op(graph, i, e, domain, diag) : of_other_op(graph, i, domain, diag);
	}
	return err;
}
