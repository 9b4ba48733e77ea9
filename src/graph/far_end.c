#include "graph/far_end.h"

#include <assert.h>
#include <string.h>

#include "graph/domain.h"
#include "graph/op.h"

enum { MAX_DEPTH = 64 };

const char *const hd_edge_list_names[HD_EDGE_LISTS] = { "far", "near", "ghosts", "part_number",
	"back_far", "back_near", "back_ghosts", "back_number" };

/* Sources are far of the edges that end in an interval, near of those that begin there. */
static const uint8_t other_way[HD_EDGE_LISTS] = {
	[HD_LIST_FAR] = HD_LIST_BACK_NEAR,       [HD_LIST_NEAR] = HD_LIST_BACK_FAR,
	[HD_LIST_GHOSTS] = HD_LIST_BACK_GHOSTS,  [HD_LIST_NUMBER] = HD_LIST_BACK_NUMBER,
	[HD_LIST_BACK_FAR] = HD_LIST_NEAR,       [HD_LIST_BACK_NEAR] = HD_LIST_FAR,
	[HD_LIST_BACK_GHOSTS] = HD_LIST_GHOSTS,  [HD_LIST_BACK_NUMBER] = HD_LIST_NUMBER,
};

const char *hd_edge_list_name(const struct hd_graph *g, uint32_t value)
{
	while (g->value[value].kind == HD_TEMP &&
		hd_ops[g->node[g->value[value].node].op].class == HD_OP_VIEW)
		value = g->node[g->value[value].node].in[0];
	return g->value[value].kind == HD_INPUT ? hd_graph_text_of(g, g->value[value].name) : "";
}

/* HD_EDGE_LISTS: none of them. */
static enum hd_edge_list list_of(const struct hd_graph *g, uint32_t value)
{
	const char *name = hd_edge_list_name(g, value);
	int l = 0;

	while (l < HD_EDGE_LISTS && strcmp(name, hd_edge_list_names[l]))
		l++;
	return (enum hd_edge_list)l;
}

/* The list as ops of edges read it, one extent. */
static enum hd_err find_list(const struct hd_graph *g, enum hd_edge_list list, uint32_t *value,
	struct hd_diag *diag)
{
	for (uint32_t i = 0; i < g->nforward; i++)
		if (g->node[i].op == HD_OP_RESHAPE && g->value[g->node[i].out].rank == 1 &&
			list_of(g, g->node[i].out) == list) {
			*value = g->node[i].out;
			return HD_OK;
		}
	return hd_fail(diag, HD_E_INVAL, "a gradient goes along edges the other way, and the graph has no "
		"list \"%s\" of them", hd_edge_list_names[list]);
}

static enum hd_err refuse(const struct hd_graph *g, uint32_t i, const char *why, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INVAL, "node %u (%s): %s; set batch.virtual_nodes to 1, where a step takes "
		"the graph as one interval", i, hd_ops[g->node[i].op].name, why);
}

bool hd_far_met(struct hd_autodiff *ad, uint32_t value, uint32_t *own)
{
	const struct hd_graph *g = hd_grad_graph(ad);
	const struct hd_value *v = &g->value[value];

	if (v->kind != HD_TEMP || g->node[v->node].op != HD_OP_ROWS_MEET)
		return false;
	*own = g->node[v->node].in[0];
	return true;
}

enum hd_err hd_far_list(struct hd_autodiff *ad, uint32_t list, uint32_t *other, struct hd_diag *diag)
{
	const struct hd_graph *g = hd_grad_graph(ad);
	const enum hd_edge_list l = list_of(g, list);

	return l == HD_EDGE_LISTS ? hd_fail(diag, HD_E_INVAL, "the list \"%s\" of a sum over edges is none "
		"of an interval", hd_edge_list_name(g, list)) : find_list(g, other_way[l], other, diag);
}

/* Rule 3. Operands from `nsame` on are read for their shape alone. */
static enum hd_err once(struct hd_autodiff *ad, uint32_t forward, uint16_t op, uint8_t nin, int nsame,
	const uint32_t *in, const struct hd_attr *attr, uint32_t *out, struct hd_diag *diag)
{
	static const struct hd_attr none;
	const struct hd_graph *g = hd_grad_graph(ad);

	for (uint32_t i = g->nforward; i < g->nnodes; i++)
		if (g->node[i].op == op && g->node[i].of == forward &&
			!memcmp(g->node[i].in, in, (size_t)nsame * sizeof *in) &&
			!memcmp(&g->node[i].attr, attr ? attr : &none, sizeof none)) {
			*out = g->node[i].out;
			return HD_OK;
		}
	return hd_grad_aux(ad, forward, op, nin, in, attr, out, diag);
}

enum hd_err hd_far_rows(struct hd_autodiff *ad, uint32_t forward, uint32_t list, uint32_t rows, uint32_t *met,
	struct hd_diag *diag)
{
	const struct hd_graph *g = hd_grad_graph(ad);
	const enum hd_edge_list l = list_of(g, list);
	uint32_t in[2] = { rows, HD_NONE };
	enum hd_err err = l < HD_EDGE_LISTS ? find_list(g, l < HD_LIST_BACK_FAR ? HD_LIST_BACK_GHOSTS :
		HD_LIST_GHOSTS, &in[1], diag) : hd_far_list(ad, list, met, diag);

	return err ? err : once(ad, forward, HD_OP_ROWS_MEET, 2, 2, in, NULL, met, diag);
}

/* ---- edges ---- */

/* What is asked for: a value of the edges of `list`. */
struct far { struct hd_autodiff *ad; uint32_t list, own; struct hd_diag *diag; };

static enum hd_err again(const struct far *f, uint32_t value, int depth, uint32_t *out);

/* Rows of vertices that an op of edges reads. */
static enum hd_err rows_of(const struct far *f, uint32_t forward, uint32_t value, uint32_t *out)
{
	return hd_far_met(f->ad, value, out) ? HD_OK :
		hd_far_rows(f->ad, forward, f->list, value, out, f->diag);
}

static enum hd_err operand(const struct far *f, uint32_t forward, char kind, uint32_t value, int depth,
	uint32_t *out)
{
	if (strchr("ftan", kind))
		return hd_far_list(f->ad, value, out, f->diag);
	return kind == 'e' ? again(f, value, depth, out) : rows_of(f, forward, value, out);
}

/* Softmaxes sum over the edges of a target: what is kept a target, and the op that takes it. */
static const struct { uint16_t op, kept, at; } softmaxes[] = {
	{ HD_OP_EDGE_SOFTMAX,    HD_OP_EDGE_PEAKS,        HD_OP_EDGE_SOFTMAX_AT },
	{ HD_OP_EDGE_SOFTMAX_DX, HD_OP_EDGE_SOFTMAX_SUMS, HD_OP_EDGE_SOFTMAX_DX_AT },
};

static enum hd_err kept(const struct far *f, uint32_t forward, const struct hd_node *n, uint16_t op,
	uint32_t *out)
{
	uint32_t in[HD_MAX_IN];

	memcpy(in, n->in, n->nin * sizeof *in);
	in[n->nin] = f->own;
	enum hd_err err = once(f->ad, forward, op, (uint8_t)(n->nin + 1), n->nin, in, NULL, out, f->diag);
	return err ? err : hd_far_rows(f->ad, forward, f->list, *out, out, f->diag);
}

/* What weights at the other end were made of, scores and peaks: one above its maximum has no gradient. */
static uint8_t scores_of(const struct far *f, uint32_t weights, uint32_t *out)
{
	const struct hd_graph *g = hd_grad_graph(f->ad);
	const struct hd_node *n = &g->node[g->value[weights].node];

	assert(n->op == HD_OP_EDGE_SOFTMAX_AT);
	out[0] = n->in[1];
	out[1] = n->in[2];
	return 2;
}

static enum hd_err of_softmax(const struct far *f, uint32_t forward, const struct hd_node *n, size_t which,
	uint32_t *in, uint32_t *out)
{
	uint8_t nin = (uint8_t)(n->nin + 1);
	enum hd_err err = kept(f, forward, n, softmaxes[which].kept, &in[n->nin]);

	if (!err && n->op == HD_OP_EDGE_SOFTMAX_DX)
		nin = (uint8_t)(nin + scores_of(f, in[2], &in[nin]));
	return err ? err : once(f->ad, forward, softmaxes[which].at, nin, nin, in, &n->attr, out, f->diag);
}

static enum hd_err of_edge_op(const struct far *f, uint32_t forward, const struct hd_node *n,
	const char *operands, int depth, uint32_t *out)
{
	uint32_t in[HD_MAX_IN];
	enum hd_err err = HD_OK;

	for (int k = 0; k < n->nin && !err; k++)
		err = operand(f, forward, operands[k], n->in[k], depth, &in[k]);
	for (size_t i = 0; i < sizeof softmaxes / sizeof *softmaxes && !err; i++)
		if (n->op == softmaxes[i].op)
			return of_softmax(f, forward, n, i, in, out);
	return err ? err : once(f->ad, forward, n->op, n->nin, n->nin, in, &n->attr, out, f->diag);
}

/* An elementwise op: what has a row for each edge is made again, the rest are numbers. */
static enum hd_err of_map(const struct far *f, uint32_t forward, const struct hd_node *n, int depth,
	uint32_t *out)
{
	const struct hd_graph *g = hd_grad_graph(f->ad);
	const int64_t edges = g->value[n->out].dim[0];
	uint32_t in[HD_MAX_IN];
	enum hd_err err = HD_OK;

	for (int k = 0; k < n->nin && !err; k++) {
		const struct hd_value *v = &hd_grad_graph(f->ad)->value[n->in[k]];
		in[k] = n->in[k];
		if (v->rank && v->dim[0] == edges)
			err = again(f, n->in[k], depth, &in[k]);
	}
	return err ? err : once(f->ad, forward, n->op, n->nin, n->nin, in, &n->attr, out, f->diag);
}

static enum hd_err again(const struct far *f, uint32_t value, int depth, uint32_t *out)
{
	const struct hd_graph *g = hd_grad_graph(f->ad);
	const struct hd_value *v = &g->value[value];

	if (v->kind != HD_TEMP || depth == MAX_DEPTH)
		return hd_fail(f->diag, HD_E_INVAL, "value %u of the edges is %s: a gradient cannot have it "
			"at the other end; set batch.virtual_nodes to 1", value,
			depth == MAX_DEPTH ? "made in too many steps" : "given, not computed");
	const uint32_t i = v->node;
	const struct hd_node n = g->node[i];
	const struct hd_edge_op *e = hd_edge_op(n.op);
	const uint32_t forward = i < g->nforward ? i : n.of;

	if (e && e->result == HD_DOMAIN_E)
		return of_edge_op(f, forward, &n, e->operand, depth + 1, out);
	if (e || hd_ops[n.op].class != HD_OP_MAP || hd_ops[n.op].nout != 1)
		return refuse(g, i, "it is not computed edge by edge, so that a gradient cannot have it at "
			"the other end", f->diag);
	return of_map(f, forward, &n, depth + 1, out);
}

enum hd_err hd_far_edges(struct hd_autodiff *ad, uint32_t list, uint32_t own, uint32_t edges,
	uint32_t *out, struct hd_diag *diag)
{
	return again(&(struct far){ .ad = ad, .list = list, .own = own, .diag = diag }, edges, 0, out);
}
