#include "graph/pass.h"

#include <math.h>

#include "graph/op.h"

enum { MAX_ELEMS = 1 << 16 };                     /* tables stay ops: their memory is not worth the time saved */

/* One element: a and b are the operands' (b repeats over the leading extents of a). */
typedef float element_fn(const struct hd_attr *attr, float a, float b);

static float keep(const struct hd_attr *attr, float a, float b) { (void)attr, (void)b; return a; }
static float add(const struct hd_attr *attr, float a, float b) { (void)attr; return a + b; }
static float sub(const struct hd_attr *attr, float a, float b) { (void)attr; return a - b; }
static float mul(const struct hd_attr *attr, float a, float b) { (void)attr; return a * b; }
static float scale(const struct hd_attr *attr, float a, float b) { (void)b; return a * attr->f[0]; }
static float relu(const struct hd_attr *attr, float a, float b) { (void)attr, (void)b; return a > 0 || isnan(a) ? a : 0; }

static const struct { uint16_t op; element_fn *fn; } foldable[] = {
	{ HD_OP_RESHAPE, keep }, { HD_OP_ADD, add }, { HD_OP_SUB, sub },
	{ HD_OP_MUL, mul }, { HD_OP_SCALE, scale }, { HD_OP_ACT, relu },
};

/* NULL: not to be folded, because an operand is no constant or the arithmetic is not exact. */
static element_fn *folding(const struct hd_graph *graph, const struct hd_node *node)
{
	for (int k = 0; k < node->nin; k++)
		if (graph->value[node->in[k]].kind != HD_CONST || graph->value[node->in[k]].dtype != HD_F32)
			return NULL;
	if (hd_dims_product(graph->value[node->in[0]].dim, graph->value[node->in[0]].rank) > MAX_ELEMS)
		return NULL;
	if (node->op == HD_OP_ACT && node->attr.i[0] != HD_ACT_RELU)
		return NULL;
	for (size_t i = 0; i < sizeof foldable / sizeof foldable[0]; i++)
		if (foldable[i].op == node->op)
			return foldable[i].fn;
	return NULL;
}

static const float *data_of(const struct hd_graph *graph, uint32_t value)
{
	return (const float *)(const void *)(graph->consts + graph->value[value].data);      /* the pool aligns constants to 64 */
}

/* *folded stays false where a result is not finite: the job shall see it at run time, named. */
static enum hd_err fold_node(struct hd_rewrite *rewrite, const struct hd_node *node, element_fn *fn, const uint32_t *in,
	bool *folded, struct hd_diag *diag)
{
	struct hd_graph *graph = &rewrite->graph;
	const struct hd_value *made = &rewrite->from->value[node->out];
	uint64_t n = hd_value_elems(made, 1), nb = node->nin > 1 ? hd_value_elems(&graph->value[in[1]], 1) : 1;
	const float *a = data_of(graph, in[0]), *b = node->nin > 1 ? data_of(graph, in[1]) : a;
	float *out = hd_arena_take(graph->arena, n, sizeof *out);

	if (!out)
		return hd_fail(diag, HD_E_NOMEM, "no memory to fold a constant of %llu elements", (unsigned long long)n);
	for (uint64_t i = 0; i < n; i++) {
		out[i] = fn(&node->attr, a[i], b[i % nb]);
		if (!isfinite(out[i]))
			return HD_OK;
	}
	*folded = true;
	return hd_graph_const(graph, HD_F32, made->rank, made->dim, out, &rewrite->to[node->out], diag);
}

enum hd_err hd_graph_fold(struct hd_graph *graph, struct hd_diag *diag)
{
	struct hd_rewrite rewrite;
	enum hd_err err = hd_rewrite_begin(&rewrite, graph, diag);

	for (uint32_t i = 0; i < graph->nnodes && err == HD_OK; i++) {
		const struct hd_node *node = &graph->node[i];
		struct hd_node here = *node;
		bool folded = false;
		for (int k = 0; k < node->nin; k++) {
			err = hd_rewrite_value(&rewrite, node->in[k], &here.in[k], diag);
			if (err != HD_OK)
				return err;
		}
		element_fn *fn = folding(&rewrite.graph, &here);
		if (fn)
			err = fold_node(&rewrite, node, fn, here.in, &folded, diag);
		if (err == HD_OK && !folded)
			err = hd_rewrite_copy(&rewrite, node, diag);
	}
	return err == HD_OK ? hd_rewrite_end(&rewrite, graph, diag) : err;
}
