/* topk.inc.h -- where the k best of an axis lie. Ids have no gradient: values are read by them (ONE_HOT, or
 * GATHER), whose gradient reaches x. Parts of a file of an op: ops.def.
 *
 * Order: the best first, of equals the one that lies first; what is no number counts as the largest, as in
 * ARGMAX. */

#ifdef OP
OP(TOPK, "topk", 1, 1, REDUCTION, "axis k least",
	"x -> i32 with extent k along the axis: where its k largest lie, best first; least = 1: the smallest",
	topk_shape, NULL, hd_cost_elementwise)
#endif

#ifdef OP_RULES
static enum hd_err topk_shape(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0);
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err == HD_OK)
		err = hd_rule_axis(graph, node, x, true, diag);
	if (err == HD_OK && (node->attr.i[1] < 1 || node->attr.i[1] > x->dim[node->attr.i[0]]))
		err = hd_rule_broken(graph, node, "k is at least 1, at most the extent of the axis", diag);
	if (err == HD_OK && (node->attr.i[2] & ~1))
		err = hd_rule_broken(graph, node, "least is 0 or 1", diag);
	if (err != HD_OK)
		return err;
	hd_rule_set(out, x->rank, x->dim, HD_I32);
	out->dim[node->attr.i[0]] = node->attr.i[1];
	return HD_OK;
}
#endif

#ifdef OP_REFERENCE
static bool before(const struct hd_call *call, double a, double b)
{
	if (isnan(a) || isnan(b))
		return call->attr.i[2] ? !isnan(a) && isnan(b) : isnan(a) && !isnan(b);
	return call->attr.i[2] ? a < b : a > b;
}

/* One after the other: the best that is not yet taken. */
static void topk(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_ref_line l = hd_ref_line_of(call);
	const struct hd_ref_line to = { call->attr.i[1], l.inner };
	int32_t *ids = call->out[0].at;

	(void)scratch;
	for (uint64_t u = first; u < last; u++)
		for (int64_t j = 0; j < to.axis; j++) {
			int64_t best = -1;
			for (int64_t i = 0; i < l.axis; i++) {
				bool taken = false;
				for (int64_t k = 0; k < j; k++)
					taken = taken || ids[hd_ref_on_line(to, u, k)] == i;
				if (!taken && (best < 0 ||
					before(call, (double)hd_ref_in(call, 0)[hd_ref_on_line(l, u, i)],
					(double)hd_ref_in(call, 0)[hd_ref_on_line(l, u, best)])))
					best = i;
			}
			ids[hd_ref_on_line(to, u, j)] = (int32_t)best;
		}
}
#endif
#ifdef OP_PLAIN
OP_PLAIN(TOPK, hd_ref_lines, hd_ref_no_scratch, topk)
#endif

#ifdef OP_KERNEL
HD_INLINE bool topk_before(float a, float b, bool least)
{
	return least ? a < b || (a == a && b != b) : a > b || (a != a && b == b);
}

/* The best so far lie in the result, in order; an element moves those behind it on. */
static inline void topk_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct axis_split b = blocks_of(&call->out[0], call->attr.i[0]);
	struct elem_run run = blocks_run(b, tile);
	const int64_t n = call->in[0].dim[call->attr.i[0]];
	const bool least = call->attr.i[2] != 0;
	(void)scratch;

	for (int64_t o = (int64_t)run.at; o < (int64_t)(run.at + run.n); o++)
		for (int64_t c = 0; c < b.inner; c++) {
			const float *x = (const float *)call->in[0].at + o * n * b.inner + c;
			int32_t *ids = (int32_t *)call->out[0].at + o * b.axis * b.inner + c;
			for (int64_t i = 0; i < n; i++) {
				int64_t j = i < b.axis ? i : b.axis;
				while (j > 0 && topk_before(x[i * b.inner], x[ids[(j -
					1) * b.inner] * b.inner],
					least)) {
					j--;
					if (j + 1 < b.axis)
						ids[(j + 1) * b.inner] = ids[j * b.inner];
				}
				if (j < b.axis)
					ids[j * b.inner] = (int32_t)i;
			}
		}
}
#endif
#ifdef OP_TILES
OP_TILES(TOPK, ROWS, blocks_ntiles, scratch_none, topk_tile)
#endif

#ifdef OP_WRITER
static void topk_writes(struct hd_ox *w)
{
	const char *k = hd_ox_ints(w, 1, (int64_t[]){ hd_ox_attr(w, 1) }), *ids = hd_ox_fresh(w);
	Onnx__NodeProto *n = hd_ox_emit_to(w, hd_ox_fresh(w), "TopK", hd_ox_name(w, 0), k, NULL);
	char **outputs = hd_ox_take(w, 2, sizeof *outputs);

	outputs[0] = n->output[0];
	outputs[1] = (char *)(uintptr_t)ids;
	n->output = outputs;
	n->n_output = 2;
	hd_ox_set_int(w, n, "axis", hd_ox_attr(w, 0));
	hd_ox_set_int(w, n, "largest", !hd_ox_attr(w, 2));
	hd_ox_set_int(w, hd_ox_last(w, "Cast", ids, NULL, NULL), "to", ONNX__TENSOR_PROTO__DATA_TYPE__INT32);
}
#endif
#ifdef OP_WRITES
OP_WRITES(TOPK, topk_writes)
#endif

#ifdef OP_READER
/* The values are sums over the axis in which all but the chosen element are 0. */
static enum hd_err topk_reads(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	struct hd_maker m = { call->im->graph, &call->why, HD_OK };
	bool least = !hd_onnx_attr_int(call->node, "largest", 1);
	double k = (double)hd_onnx_attr_int(call->node, "k", 0);
	int64_t dim[HD_ONNX_DIMS], row[HD_ONNX_DIMS];
	uint32_t axis, x;
	float nought = 0;

	if (!v || !hd_onnx_axis(hd_onnx_attr_int(call->node, "axis", -1), v->rank, &axis) ||
		v->dim[axis] < 1 || v->dim[axis] > INT32_MAX || v->rank >= HD_MAX_DIMS)
		return hd_onnx_no(call, "there is no such axis, it is the rows, or there are too many");
	if ((hd_onnx_in(call, 1) && !hd_onnx_number(call, 1, &k)) || !(k >= 1 && k <= (double)v->dim[axis]))
		return hd_onnx_no(call, "how many is not known before the graph runs, or not among the %lld",
			(long long)v->dim[axis]);
	enum hd_err err = hd_onnx_value(call, 0, &x);
	if (!err)
		err = hd_onnx_axis_last(call, x, v->rank, axis, false, &x);
	if (err)
		return err;
	if (hd_onnx_shape(call, x)->dtype != HD_F32)
		return hd_onnx_no(call, "of integers");
	memcpy(dim, v->dim, sizeof dim);
	dim[axis] = (int64_t)k;
	memcpy(row, hd_onnx_shape(call, x)->dim, v->rank * sizeof *row);
	row[v->rank] = row[v->rank - 1];
	row[v->rank - 1] = 1;
	uint32_t ids = hd_make1(&m, HD_OP_TOPK, x, (struct hd_attr){ .i = { v->rank - 1, (int32_t)k,
		least } });
	uint32_t hot = hd_make1(&m, HD_OP_ONE_HOT, ids, (struct hd_attr){ .i = { (int32_t)v->dim[axis] } });
	uint32_t zero = 0;
	if (!m.err)
		m.err = hd_graph_const(m.graph, HD_F32, 1, (int64_t[]){ 1 }, &nought, &zero, m.diag);
	err = m.err ? m.err : hd_onnx_reshape(call, x, v->rank + 1u, row, &x);
	uint32_t only = err ? 0 : hd_make3(&m, HD_OP_WHERE, hot, x, zero, (struct hd_attr){ .i = { 0 } });
	uint32_t y = err ? 0 : hd_make1(&m, HD_OP_REDUCE_SUM, only, (struct hd_attr){ .i =
		{ 1 << v->rank } });
	err = err ? err : m.err;
	for (uint32_t out = 0; out < 2 && !err; out++) {
		uint32_t back;
		err = hd_onnx_axis_last(call, out ? ids : y, v->rank, axis, true, &back);
		err = err ? err : hd_onnx_put(call, out, back, v->rank, dim);
	}
	return err == HD_E_INVAL ? HD_E_INPUT : err;
}
#endif
#ifdef OP_READS
OP_READS("TopK", 0, topk_reads)
#endif

#ifdef OP_ORACLE
/* The place of each element is the number of those before it. */
static void topk64(const struct hd_node *n, const struct shape64 *x, const struct shape64 *y, double **in,
	double **out)
{
	int64_t axis = x->dim[n->attr.i[0]], k = n->attr.i[1], inner = 1;

	(void)y;
	for (int d = n->attr.i[0] + 1; d < x->rank; d++)
		inner *= x->dim[d];
	for (int64_t e = 0; e < x->elems; e++) {
		int64_t i = e / inner % axis, start = e - i * inner, place = 0;
		for (int64_t j = 0; j < axis; j++) {
			double a = in[0][start + j * inner], b = in[0][e];
			place += (n->attr.i[2] ? a < b : a > b) || (a == b && j < i);
		}
		if (place < k)
			out[0][(e / inner / axis * k + place) * inner + e % inner] = (double)i;
	}
}
#endif
#ifdef OP_EVAL
OP_EVAL(TOPK, topk64)
#endif

#ifdef OP_CASES
	{ HD_OP_TOPK, A(1, 5), EXACT, 0, 1, { F(-1, 33) } },
	{ HD_OP_TOPK, A(1, 3, 1), EXACT, 0, 1, { F(-1, 9, 5) } },
	{ HD_OP_TOPK, A(1, 7), EXACT, 0, 1, { F(-1, 7) } },
#endif
#ifdef OP_EXAMPLES
	{ HD_OP_TOPK, ATTR(1, 5), { { .dim = { 70, 133 } } }, { { .dim = { 70, 5 }, .ids = 1 } }, false, 1 },
	{ HD_OP_TOPK, ATTR(1, 4, 1), { { .dim = { 7, 33, 5 } } }, { { .dim = { 7, 4, 5 }, .ids = 1 } }, false, 1 },
#endif
#ifdef OP_BITS
OP_BITS(TOPK, "ee84fe753afec986")
#endif
#ifdef OP_SELECTS
OP_SELECTS(TOPK)
#endif

#ifdef OP_GROWS
/* The best values of the last axis, read as ONNX's TopK reads them: ids have no gradient, values have. */
static uint32_t topk_grows(struct graph_maker *m, uint32_t x)
{
	const struct hd_value v = *shape(m, x);
	const int32_t n = (int32_t)v.dim[v.rank - 1];
	struct hd_attr as_row = { .i = { 0 } };
	struct hd_diag diag = { "" };
	const float nought = 0;
	uint32_t zero;

	if (n < 2 || v.rank >= HD_MAX_DIMS - 1)
		return HD_NONE;
	uint32_t ids = node1(m, HD_OP_TOPK, x, (struct hd_attr){ .i = { v.rank - 1,
		(int32_t)(1 + draw(m, (uint32_t)n)), coin(m) } });
	uint32_t hot = node1(m, HD_OP_ONE_HOT, ids, (struct hd_attr){ .i = { n } });
	for (int d = 0; d < v.rank - 1; d++)
		as_row.i[d] = (int32_t)v.dim[d];
	as_row.i[v.rank - 1] = 1;
	as_row.i[v.rank] = n;
	CHECK(hd_graph_const(m->graph, HD_F32, 1, (int64_t[]){ 1 }, &nought, &zero, &diag) == HD_OK, "%s",
		diag.text);
	uint32_t only = node(m, HD_OP_WHERE, 3, (uint32_t[]){ hot, node1(m, HD_OP_RESHAPE, x, as_row),
		zero }, (struct hd_attr){ .i = { 0 } });
	return node1(m, HD_OP_REDUCE_SUM, only, (struct hd_attr){ .i = { 1 << v.rank } });
}
#endif
#ifdef OP_GENERATES
OP_GENERATES("topk", topk_grows)
#endif
