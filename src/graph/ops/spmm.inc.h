/* spmm.inc.h -- sums of the rows of each target's sources: the adjacency of a graph times a matrix. Its
 * gradient is the product by the transposed one: the same op with the ends exchanged, or where the rows are
 * those of several virtual nodes (far_end.h) the sum of theirs over the edges the other way. Parts of a
 * file of an op: ops.def; edges: edge_pair.inc.h. */

#ifdef OP
OP(SPMM, "spmm", 4, 1, GRAPH, "",
	"from i32[E] to i32[E] x[V,C] y[U,C](shape only) -> for each target the sum of its sources' rows, "
	"[U,C]",
	spmm_shape, spmm_grad, edge_cost)
#endif

#ifdef OP_RULES
static enum hd_err spmm_shape(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	enum hd_err err = edge_operands(graph, node, 2, diag);

	if (err == HD_OK && hd_rule_in(graph, node, 2)->dim[1] != hd_rule_in(graph, node, 3)->dim[1])
		err = hd_rule_broken(graph, node, "x and y have the same width", diag);
	if (err == HD_OK)
		hd_rule_like(out, hd_rule_in(graph, node, 3));
	return err;
}

/* The sum over the edges the other way of the rows of dy that met, for the rows that met themselves. */
static enum hd_err spmm_grad_met(struct hd_autodiff *ad, uint32_t node, uint32_t own, uint32_t dy,
	struct hd_diag *diag)
{
	const struct hd_node n = hd_rule_node(ad, node);
	uint32_t in[4] = { 0, 0, 0, own };

	if (!hd_grad_wanted(ad, own))
		return HD_OK;
	enum hd_err err = hd_far_list(ad, n.in[1], &in[0], diag);
	err = err ? err : hd_far_list(ad, n.in[0], &in[1], diag);
	err = err ? err : hd_far_rows(ad, node, n.in[1], dy, &in[2], diag);
	return err ? err : hd_grad_add(ad, node, own, HD_OP_SPMM, 4, in, NULL, diag);
}

static enum hd_err spmm_grad(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE, own = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	if (err == HD_OK && hd_far_met(ad, n.in[2], &own))
		return spmm_grad_met(ad, node, own, dy, diag);
	return err == HD_OK ? hd_grad_add(ad, node, n.in[2], HD_OP_SPMM, 4,
		(uint32_t[]){ n.in[1], n.in[0], dy, n.in[2] }, NULL, diag) : err;
}
#endif

#ifdef OP_REFERENCE
static void spmm(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	int64_t cols = hd_cols(&call->out[0]);

	(void)scratch;
	for (uint64_t v = first; v < last; v++)
		for (int64_t c = 0; c < cols; c++) {
			double sum = 0;
			for (uint64_t e = 0; e < call->in[0].elems; e++)
				if (end_of(call, 1, e, &call->out[0]) == (int64_t)v)
					sum += at_end(call, 0, e, 2, c);
			hd_ref_out(call, 0)[(int64_t)v * cols + c] = (float)sum;
		}
}
#endif
#ifdef OP_PLAIN
OP_PLAIN(SPMM, hd_ref_rows, hd_ref_no_scratch, spmm)
#endif

#ifdef OP_KERNEL
static inline void spmm_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const int32_t *from = call->in[0].at, *to = call->in[1].at;
	const struct edge_tile t = edge_tile_of(call, tile);
	(void)scratch;

	if (call->edges) {
		edge_rows_sum(call, t, call->edges->at, &call->in[2], (struct hd_spmm){ 0 });
		return;
	}
	zero_rows(&call->out[0], t);
	for (uint64_t e = 0; e < call->in[0].elems; e++) {
		const float *x = row_at(&call->in[2], from[e]);
		float *y = row_in(call, t, to[e]);
		HD_UNITS(c, len, x && y ? (uint64_t)hd_cols(&call->out[0]) : 0)
			vf_store_n(y + c, vf_add(vf_load_n(y + c, len), vf_load_n(x + c, len)), len);
	}
}

static inline bool spmm_divides(const struct hd_call *call, uint32_t n)
{
	return n > 0 && edge_blocks(call, &call->in[2]) > 1;
}

static inline void spmm_piece(const struct hd_call *call, uint32_t i, uint32_t n, void *scratch)
{
	if (spmm_divides(call, n)) {
		edge_blocks_sum(call, i, n, &call->in[2], (struct hd_spmm){ 0 });
		return;
	}
	for (uint32_t tile = edge_piece_tile(call, i, n); tile < edge_piece_tile(call, i + 1, n); tile++)
		spmm_tile(call, tile, scratch);
}
#endif
#ifdef OP_PIECES
OP_PIECES(SPMM, CALL, edge_row_ntiles, scratch_none, spmm_tile, spmm_piece, spmm_divides)
#endif

#ifdef OP_ENDS
OP_ENDS(SPMM, 1, 0, 2)
#endif

#ifdef OP_ORACLE
static void spmm64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y, double **in,
	double **out)
{
	(void)n;
	for (int64_t e = s[0].elems - 1; e >= 0; e--)
		for (int64_t c = 0; c < y->last; c++)
			if (is_end64(in[0][e], &s[2]) && is_end64(in[1][e], y))
				out[0][(int64_t)in[1][e] * y->last + c] += in[2][(int64_t)in[0][e] *
					y->last + c];
}
#endif
#ifdef OP_EVAL
OP_EVAL(SPMM, spmm64)
#endif

#ifdef OP_CASES
	{ HD_OP_SPMM, A(0), LINEAR, 4, 1, { I(-37), I(-37), F(-2, 15), F(-2, 15) } },
	{ HD_OP_SPMM, A(0), LINEAR, 4, 1, { I(-9), I(-9), F(7, 131), F(5, 131) } },
#endif
#ifdef OP_SLOPES
	{ HD_OP_SPMM, A(0), 1, { I(9), I(9), F(4, 6), X(3, 6) } },
#endif
#ifdef OP_EXAMPLES
	{ HD_OP_SPMM, ATTR(0), { IDS(40, 900), IDS(30, 900), { .dim = { 40, 133 } }, { .dim = { 30, 133 } } }, { { .dim = { 30, 133 } } }, false, 40 },
#endif
#ifdef OP_BITS
OP_BITS(SPMM, "846a9cbf75335ebf")
#endif
