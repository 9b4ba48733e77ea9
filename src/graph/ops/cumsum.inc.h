/* cumsum.inc.h -- running sums along an axis; back = 1: from the end. Its gradient is the same from the other
 * end. Parts of a file of an op: ops.def. */

#ifdef OP
OP(CUMSUM, "cumsum", 1, 1, REDUCTION, "axis back", "running sums along the axis; back = 1: from the end",
	cumsum_shape, cumsum_grad, hd_cost_elementwise)
#endif

#ifdef OP_RULES
static enum hd_err cumsum_shape(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err == HD_OK)
		err = hd_rule_axis(graph, node, hd_rule_in(graph, node, 0), true, diag);
	if (err == HD_OK && (node->attr.i[1] & ~1))
		err = hd_rule_broken(graph, node, "back is 0 or 1", diag);
	if (err == HD_OK)
		hd_rule_like(out, hd_rule_in(graph, node, 0));
	return err;
}

static enum hd_err cumsum_grad(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	struct hd_attr attr = { .i = { n.attr.i[0], !n.attr.i[1] } };
	uint32_t dy = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	return err == HD_OK ? hd_grad_add(ad, node, n.in[0], HD_OP_CUMSUM, 1, &dy, &attr, diag) : err;
}
#endif

#ifdef OP_REFERENCE
static void cumsum(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_ref_line l = hd_ref_line_of(call);

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		double sum = 0;
		for (int64_t i = 0; i < l.axis; i++) {
			int64_t at = hd_ref_on_line(l, u, call->attr.i[1] ? l.axis - 1 - i : i);
			sum += (double)hd_ref_in(call, 0)[at];
			hd_ref_out(call, 0)[at] = (float)sum;
		}
	}
}
#endif
#ifdef OP_PLAIN
OP_PLAIN(CUMSUM, hd_ref_lines, hd_ref_no_scratch, cumsum)
#endif

#ifdef OP_KERNEL
static inline void cumsum_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct axis_split b = blocks_of(&call->out[0], call->attr.i[0]);
	struct elem_run run = blocks_run(b, tile);
	(void)scratch;

	for (int64_t o = (int64_t)run.at; o < (int64_t)(run.at + run.n); o++) {
		const float *x = (const float *)call->in[0].at + o * b.axis * b.inner;
		float *y = (float *)call->out[0].at + o * b.axis * b.inner;
		for (int64_t k = 0; k < b.axis; k++) {
			int64_t at = (call->attr.i[1] ? b.axis - 1 - k : k) * b.inner,
				prev = at + (call->attr.i[1] ? b.inner : -b.inner);
			for (int64_t i = 0; i < b.inner; i++)
				y[at + i] = k == 0 ? x[at + i] : y[prev + i] + x[at + i];
		}
	}
}
#endif
#ifdef OP_TILES
OP_TILES(CUMSUM, ROWS, blocks_ntiles, scratch_none, cumsum_tile)
#endif

#ifdef OP_WRITER
static void cumsum_writes(struct hd_ox *w)
{
	hd_ox_set_int(w, hd_ox_last(w, "CumSum", hd_ox_name(w, 0), hd_ox_whole(w, hd_ox_attr(w, 0)), NULL),
		"reverse", hd_ox_attr(w, 1));
}
#endif
#ifdef OP_WRITES
OP_WRITES(CUMSUM, cumsum_writes)
#endif

#ifdef OP_READER
static enum hd_err cumsum_reads(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	double axis = 0;
	uint32_t at, x, y;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (err)
		return err;
	if (!hd_onnx_number(call, 1, &axis) || !hd_onnx_axis((int64_t)axis, v->rank, &at) || v->dim[at] < 1 ||
		v->dim[at] > INT32_MAX)
		return hd_onnx_no(call, "its axis is not known, or it is the rows");
	bool back = hd_onnx_attr_int(call->node, "reverse", 0) != 0;
	/* Exclusive: of elements moved on by one. */
	if (hd_onnx_attr_int(call->node, "exclusive", 0)) {
		err = hd_onnx_node1(call, HD_OP_PAD, x, (struct hd_attr){ .i = { (int32_t)at, !back, back } },
			&x);
		if (!err)
			err = hd_onnx_node1(call, HD_OP_SLICE, x,
				(struct hd_attr){ .i = { (int32_t)at, back, 1, (int32_t)v->dim[at] } }, &x);
		if (err)
			return err;
	}
	err = hd_onnx_node1(call, HD_OP_CUMSUM, x, (struct hd_attr){ .i = { (int32_t)at, back } }, &y);
	return err ? err : hd_onnx_put_like(call, 0, y);
}
#endif
#ifdef OP_READS
OP_READS("CumSum", 0, cumsum_reads)
#endif

#ifdef OP_ORACLE
/* Each element goes to all sums that it is part of. */
static void cumsum64(const struct hd_node *n, const struct shape64 *x, const struct shape64 *y, double **in,
	double **out)
{
	int64_t axis = x->dim[n->attr.i[0]], inner = 1;

	(void)y;
	for (int d = n->attr.i[0] + 1; d < x->rank; d++)
		inner *= x->dim[d];
	for (int64_t e = 0; e < x->elems; e++) {
		int64_t i = e / inner % axis, start = e - i * inner;
		for (int64_t j = 0; j < axis; j++)
			if (n->attr.i[1] ? j <= i : j >= i)
				out[0][start + j * inner] += in[0][e];
	}
}
#endif
#ifdef OP_EVAL
OP_EVAL(CUMSUM, cumsum64)
#endif

#ifdef OP_CASES
	{ HD_OP_CUMSUM, A(1), LINEAR, 4, 1, { F(-1, 33) } },
	{ HD_OP_CUMSUM, A(1, 1), LINEAR, 4, 1, { F(-1, 9, 5) } },
#endif
#ifdef OP_SLOPES
	{ HD_OP_CUMSUM, A(1), 1, { F(2, 5, 2) } },
	{ HD_OP_CUMSUM, A(1, 1), 1, { F(2, 5) } },
#endif
#ifdef OP_EXAMPLES
	T1(CUMSUM, ATTR(1), S(70, 33), S(70, 33), 33),
	T1(CUMSUM, ATTR(1, 1), S(7, 33, 5), S(7, 33, 5), 33),
#endif
#ifdef OP_BITS
OP_BITS(CUMSUM, "7324838481b50bde")
#endif

#ifdef OP_GROWS
static uint32_t cumsum_grows(struct graph_maker *m, uint32_t x)
{
	int axis = fixed_axis(m, x);

	return axis < 0 ? HD_NONE : node1(m, HD_OP_CUMSUM, x, (struct hd_attr){ .i = { axis, coin(m) } });
}
#endif
#ifdef OP_GENERATES
OP_GENERATES("cumsum", cumsum_grows)
#endif
