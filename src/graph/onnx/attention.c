/* softmax(scale q k' + mask) v becomes one op, so that no scores of [N,H,T,T] are kept.
 *
 * Where a product's left side is a SOFTMAX of ours, the nodes before it are followed: a mask (WHERE or ADD of
 * a constant), factors (of the scores, of q, of k: SDPA's exporter writes a root before each), the product of
 * q and k. Followed in our graph, not in the file, because there the factors and the mask are arithmetic on
 * shapes and here they are constants.
 *
 * It is attention when q, k and v are [N,H,T,D] or [N,T,D] with one T, and the mask hides nothing, or exactly
 * what comes later. Hidden: below -1e9, whose e^x is 0 in f32 next to any score; else a mask adds 0. Scores
 * with another reader are still computed: nothing is removed here; nodes without a reader are pruned
 * (prune.c). */
#include <math.h>
#include <string.h>

#include "graph/onnx/import.h"

struct attention_match { uint32_t q, k, v; bool causal; double scale; };

static const struct hd_node *maker(const struct hd_graph *g, uint32_t value, enum hd_op op)
{
	const struct hd_value *v = &g->value[value];
	const struct hd_node *n = v->kind == HD_TEMP ? &g->node[v->node] : NULL;

	return n && n->op == op && n->out == value ? n : NULL;
}

static const float *constant(const struct hd_graph *g, uint32_t value)
{
	const struct hd_value *v = &g->value[value];

	return v->kind == HD_CONST && v->dtype == HD_F32 ? (const float *)(const void *)(g->consts +
		v->data) : NULL;
}

static bool one_number(const struct hd_graph *g, uint32_t value, double *number)
{
	const float *f = constant(g, value);

	if (!f || hd_value_elems(&g->value[value], 1) != 1)
		return false;
	*number = (double)*f;
	return true;
}

/* The value before factors that are one number, which are gathered in `scale`. */
static uint32_t unscaled(const struct hd_graph *g, uint32_t value, double *scale)
{
	const struct hd_node *n;
	double by;

	for (;;)
		if ((n = maker(g, value, HD_OP_SCALE))) {
			*scale *= (double)n->attr.f[0];
			value = n->in[0];
		} else if ((n = maker(g, value, HD_OP_DIV)) && one_number(g, n->in[1], &by)) {
			*scale /= by;
			value = n->in[0];
		} else {
			return value;
		}
}

static bool hides(double x) { return x <= -1e9; }

/* Is `m` for queries and keys of T positions, the same for all rows and heads? T 1: one number for all. */
static bool spans(const struct hd_value *m, int64_t tokens)
{
	for (uint32_t d = 0; d + 2 < m->rank; d++)
		if (m->dim[d] != 1)
			return false;
	return m->rank >= 2 && m->dim[m->rank - 1] == tokens && m->dim[m->rank - 2] == tokens;
}

/* Which of T x T are hidden: nothing, or what comes later. `choose` not 0: WHERE, hidden where the mask is
 * true (1) or not (-1). */
static bool read_mask(const struct hd_graph *g, uint32_t mask, int choose, int64_t tokens, bool *causal)
{
	const float *m = constant(g, mask);
	bool any = false, later = true;

	if (!m || !spans(&g->value[mask], tokens))
		return false;
	for (int64_t i = 0; i < tokens * tokens; i++) {
		bool hidden = choose ? (m[i] != 0) == (choose > 0) : hides((double)m[i]);
		if (!choose && !hidden && m[i] != 0)
			return false;
		any = any || hidden;
		later = later && hidden == (i % tokens > i / tokens);
	}
	*causal = any;
	return !any || later;
}

/* The scores before their mask. */
static bool unmasked(const struct hd_graph *g, uint32_t value, int64_t tokens, uint32_t *scores, bool *causal)
{
	const struct hd_node *n;
	double number;

	*causal = false;
	*scores = value;
	if ((n = maker(g, value, HD_OP_WHERE))) {
		bool first = one_number(g, n->in[1], &number) && hides(number);
		if (!first && !(one_number(g, n->in[2], &number) && hides(number)))
			return false;
		*scores = n->in[first ? 2 : 1];
		return read_mask(g, n->in[0], first ? 1 : -1, tokens, causal);
	}
	if ((n = maker(g, value, HD_OP_ADD))) {
		int at = constant(g, n->in[1]) ? 1 : 0;
		*scores = n->in[!at];
		return read_mask(g, n->in[at], 0, tokens, causal);
	}
	return true;
}

static bool find(const struct hd_graph *g, uint32_t weights, uint32_t v, struct attention_match *f)
{
	const struct hd_node *softmax = maker(g, weights, HD_OP_SOFTMAX), *product;
	const struct hd_value *p = &g->value[weights], *q, *k, *vv = &g->value[v];
	uint32_t scores;

	if (!softmax || p->rank < 3 || p->rank > 4 || vv->rank != p->rank ||
		p->dim[p->rank - 1] != p->dim[p->rank - 2] || p->dim[p->rank - 1] < 1)
		return false;
	f->v = v;
	f->scale = 1;
	if (!unmasked(g, softmax->in[0], p->dim[p->rank - 1], &scores, &f->causal))
		return false;
	product = maker(g, unscaled(g, scores, &f->scale), HD_OP_CONTRACT);
	if (!product || product->attr.i[0] || product->attr.i[1])
		return false;
	f->q = unscaled(g, product->in[0], &f->scale);
	f->k = unscaled(g, product->in[1], &f->scale);
	q = &g->value[f->q];
	k = &g->value[f->k];
	if (q->rank != p->rank || k->rank != p->rank || !hd_dims_same(q, vv))
		return false;
	for (uint32_t d = 0; d + 2 < p->rank; d++)
		if (q->dim[d] != k->dim[d])
			return false;
	return q->dim[0] < 0 && q->dim[1] > 0 && k->dim[k->rank - 1] == q->dim[q->rank - 2] &&
		k->dim[k->rank - 2] == q->dim[q->rank - 1] &&
		f->scale > 0 && isfinite((float)f->scale);
}

/* [N,H,T,D] (turned: [N,H,D,T]) as [N,T,H D]; views that undo one another vanish. */
static enum hd_err tokens_first(struct hd_onnx_call *call, uint32_t value, bool turned, uint32_t *out)
{
	static const uint32_t straight4[] = { 0, 2, 1, 3 }, turned4[] = { 0, 3, 1, 2 },
		turned3[] = { 0, 2, 1 }, straight3[] = { 0, 1, 2 };
	const struct hd_value v = *hd_onnx_shape(call, value);
	const uint32_t *perm = v.rank == 4 ? (turned ? turned4 : straight4) : turned ? turned3 : straight3;
	enum hd_err err = hd_onnx_permute(call, value, v.rank, perm, out);

	if (err || v.rank == 3)
		return err;
	const struct hd_value *t = hd_onnx_shape(call, *out);
	return hd_onnx_reshape(call, *out, 3, (int64_t[]){ t->dim[0], t->dim[1], t->dim[2] * t->dim[3] },
		out);
}

/* Are they thirds of one value [N,T,3C]? */
static bool packed(const struct hd_graph *g, const uint32_t part[3], uint32_t *whole)
{
	*whole = HD_NONE;
	for (uint32_t k = 0; k < 3; k++) {
		const struct hd_node *n = maker(g, part[k], HD_OP_SLICE);
		int32_t each = (int32_t)g->value[part[k]].dim[2];
		if (!n || n->attr.i[0] != 2 || n->attr.i[1] != (int32_t)k * each || n->attr.i[2] != 1 ||
			g->value[n->in[0]].dim[2] != 3 * (int64_t)each ||
		    (k && n->in[0] != *whole))
			return false;
		*whole = n->in[0];
	}
	return true;
}

static enum hd_err attend(struct hd_onnx_call *call, const struct attention_match *f, int32_t heads,
	double rest,
	uint32_t *y)
{
	uint32_t part[3], whole;
	enum hd_err err = tokens_first(call, f->q, false, &part[0]);

	if (!err)
		err = tokens_first(call, f->k, true, &part[1]);
	if (!err)
		err = tokens_first(call, f->v, false, &part[2]);
	if (err)
		return err;
	if (rest == 1 && packed(call->im->graph, part, &whole))
		return hd_onnx_node1(call, HD_OP_ATTENTION, whole,
			(struct hd_attr){ .i = { heads, f->causal } }, y);
	if (rest != 1)
		err = hd_onnx_node1(call, HD_OP_SCALE, part[0], (struct hd_attr){ .f = { (float)rest } },
			&part[0]);
	return err ? err : hd_onnx_node(call, HD_OP_ATTEND, 3, part,
		(struct hd_attr){ .i = { heads, heads, f->causal } }, y);
}

enum hd_err hd_onnx_attention(struct hd_onnx_call *call, uint32_t weights, uint32_t v, uint32_t *y)
{
	static const uint32_t perm[] = { 0, 2, 1, 3 };
	const struct hd_value shape = *hd_onnx_shape(call, v);
	struct attention_match f;

	*y = HD_NONE;
	if (!find(call->im->graph, weights, v, &f))
		return HD_OK;
	int64_t heads = shape.rank == 4 ? shape.dim[1] : 1, tokens = shape.dim[shape.rank - 2],
		each = shape.dim[shape.rank - 1];
	double rest = f.scale * sqrt((double)each);
	enum hd_err err = attend(call, &f, (int32_t)heads, fabs(rest - 1) <= 1e-6 ? 1 : rest, y);
	if (err || shape.rank == 3)
		return err;
	err = hd_onnx_reshape(call, *y, 4, (int64_t[]){ shape.dim[0], tokens, heads, each }, y);
	return err ? err : hd_onnx_permute(call, *y, 4, perm, y);
}
