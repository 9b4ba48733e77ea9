#include "graph/pass.h"

#include <math.h>

#include "graph/op.h"

/* tables stay ops: their memory is not worth the time saved */
enum { MAX_ELEMS = 1 << 16 };

/* One element: a and b are the operands', as broadcasting pairs them. */
typedef float number_fn(const struct hd_attr *attr, float a, float b);
typedef int32_t whole_fn(int32_t a, int32_t b);

static float keep(const struct hd_attr *attr, float a, float b) { (void)attr, (void)b; return a; }
static float add(const struct hd_attr *attr, float a, float b) { (void)attr; return a + b; }
static float sub(const struct hd_attr *attr, float a, float b) { (void)attr; return a - b; }
static float mul(const struct hd_attr *attr, float a, float b) { (void)attr; return a * b; }
static float divide(const struct hd_attr *attr, float a, float b) { (void)attr; return a / b; }
static float scale(const struct hd_attr *attr, float a, float b) { (void)b; return a * attr->f[0]; }

/* Whole numbers wrap, as the kernels let them; by 0 is 0. */
static int32_t wrapped(int64_t x) { return (int32_t)(uint32_t)(uint64_t)x; }
static int32_t keep_whole(int32_t a, int32_t b) { (void)b; return a; }
static int32_t add_whole(int32_t a, int32_t b) { return wrapped((int64_t)a + b); }
static int32_t sub_whole(int32_t a, int32_t b) { return wrapped((int64_t)a - b); }
static int32_t mul_whole(int32_t a, int32_t b) { return wrapped((int64_t)a * b); }
static int32_t divide_whole(int32_t a, int32_t b) { return b == 0 ? 0 : wrapped((int64_t)a / b); }
static int32_t larger(int32_t a, int32_t b) { return a > b ? a : b; }
static int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }

/* Of exact arithmetic: f64 rounded once to f32 has the bits of the kernels. */
static float act(const struct hd_attr *attr, float a, float b)
{
	(void)b;
	return (float)hd_act_value(attr->i[0], attr->f, (double)a);
}

/* By the type of the operands; NULL: stays an op. */
static const struct fold_rule { uint16_t op; number_fn *number; whole_fn *whole; } foldable[] = {
	{ HD_OP_RESHAPE, keep, keep_whole },  { HD_OP_ADD, add, add_whole },     { HD_OP_SUB, sub, sub_whole },
	{ HD_OP_MUL, mul, mul_whole },        { HD_OP_DIV, divide, divide_whole }, { HD_OP_SCALE, scale, NULL },
	{ HD_OP_ACT, act, NULL },             { HD_OP_MAXIMUM, NULL, larger },   { HD_OP_MINIMUM, NULL, smaller },
};

/* NULL: not to be folded, because an operand is no constant or the arithmetic is not exact. */
static const struct fold_rule *folding(const struct hd_graph *graph, const struct hd_node *node)
{
	bool number = node->nin && graph->value[node->in[0]].dtype == HD_F32;

	for (int k = 0; k < node->nin; k++)
		if (graph->value[node->in[k]].kind != HD_CONST ||
			graph->value[node->in[k]].dtype != (number ? HD_F32 : HD_I32))
			return NULL;
	if (node->op == HD_OP_ACT && !hd_acts[node->attr.i[0]].folds)
		return NULL;
	for (size_t i = 0; i < sizeof foldable / sizeof foldable[0]; i++)
		if (foldable[i].op == node->op)
			return (number ? foldable[i].number != NULL : foldable[i].whole != NULL) ?
				&foldable[i] : NULL;
	return NULL;
}

/* The element of `part` under element e of `whole`: extents paired from the last, those of 1 repeated. */
static uint64_t under(const struct hd_value *whole, const struct hd_value *part, uint64_t e)
{
	uint64_t at = 0, step = 1;

	for (int d = 1; d <= part->rank; d++) {
		uint64_t mine = (uint64_t)part->dim[part->rank - d],
			extent = (uint64_t)whole->dim[whole->rank - d];
		at += mine == 1 ? 0 : e % extent * step;
		step *= mine;
		e /= extent;
	}
	return at;
}

static const void *data_of(const struct hd_graph *graph, uint32_t value)
{
	return graph->consts + graph->value[value].data;      /* the pool aligns constants to 64 */
}

/* *folded stays false where a result is not finite: the job shall see it at run time, named. */
static enum hd_err fold_node(struct hd_rewrite *rewrite, const struct hd_node *node,
	const struct fold_rule *fold, const uint32_t *in,
	bool *folded, struct hd_diag *diag)
{
	struct hd_graph *graph = &rewrite->graph;
	const struct hd_value *made = &rewrite->from->value[node->out];
	const struct hd_value *va = node->nin > 1 ? &graph->value[in[0]] : made,
		*vb = node->nin > 1 ? &graph->value[in[1]] : made;
	uint64_t n = hd_value_elems(made, 1);
	const void *a = data_of(graph, in[0]), *b = node->nin > 1 ? data_of(graph, in[1]) : a;
	float *number = hd_arena_take(graph->arena, n, sizeof *number);
	int32_t *whole = (int32_t *)(void *)number;

	if (!number)
		return hd_fail(diag, HD_E_NOMEM, "no memory to fold a constant of %llu elements",
			(unsigned long long)n);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = under(made, va, i), bt = under(made, vb, i);
		if (made->dtype == HD_I32)
			whole[i] = fold->whole(((const int32_t *)a)[at], ((const int32_t *)b)[bt]);
		else if (!isfinite(number[i] = fold->number(&node->attr, ((const float *)a)[at],
			((const float *)b)[bt])))
			return HD_OK;
	}
	*folded = true;
	return hd_graph_const(graph, (enum hd_dtype)made->dtype, made->rank, made->dim, number,
		&rewrite->to[node->out], diag);
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
		const struct fold_rule *fold = folding(&rewrite.graph, &here);
		if (fold && hd_value_elems(&graph->value[node->out], 1) <= MAX_ELEMS)
			err = fold_node(&rewrite, node, fold, here.in, &folded, diag);
		if (err == HD_OK && !folded)
			err = hd_rewrite_copy(&rewrite, node, diag);
	}
	return err == HD_OK ? hd_rewrite_end(&rewrite, graph, diag) : err;
}
