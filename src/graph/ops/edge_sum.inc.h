/* edge_sum.inc.h -- weighted sums over the edges of each target, a weight a head and edge; and products of
 * the rows of both ends, which are the gradient of the weights. Parts of files of ops: ops.def; edges:
 * edge_pair.inc.h. */

#ifdef OP
OP(EDGE_SUM, "edge_sum", 5, 1, GRAPH, "",
	"from to a[E,K] h[V,K*D] y[U,K*D](shape only) -> for each target the sum of a times h of the "
	"source, head by head, [U,K*D]",
	edge_sum_shape, edge_sum_grad, edge_cost)
OP(EDGE_DOT, "edge_dot", 5, 1, GRAPH, "",
	"from to p[U,K*D] q[V,K*D] a[E,K](shape only) -> p of the target times q of the source, summed "
	"head by head, [E,K]",
	edge_dot_shape, edge_dot_grad, edge_cost)
#endif

#ifdef OP_RULES
/* Operand `edges` has a row for each edge and heads that divide the columns of operand `vertices`. */
static enum hd_err edge_heads(const struct hd_graph *graph, const struct hd_node *node, int edges,
	int vertices, struct hd_diag *diag)
{
	enum hd_err err = edge_operands(graph, node, 2, diag);

	err = err ? err : edge_rows(graph, node, edges, diag);
	if (err)
		return err;
	const int64_t heads = hd_rule_in(graph, node, edges)->dim[1];
	return heads > 0 && hd_rule_in(graph, node, vertices)->dim[1] % heads == 0 ? HD_OK :
		hd_rule_broken(graph, node, "the heads divide the columns", diag);
}

static enum hd_err edge_sum_shape(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	enum hd_err err = edge_heads(graph, node, 2, 3, diag);

	if (err == HD_OK && hd_rule_in(graph, node, 3)->dim[1] != hd_rule_in(graph, node, 4)->dim[1])
		err = hd_rule_broken(graph, node, "h and y have the same width", diag);
	if (err == HD_OK)
		hd_rule_like(out, hd_rule_in(graph, node, 4));
	return err;
}

/* For rows that met: their weights at the other end, times the rows of dy that meet there. */
static enum hd_err edge_sum_grad_met(struct hd_autodiff *ad, uint32_t node, uint32_t own, uint32_t dy,
	struct hd_diag *diag)
{
	const struct hd_node n = hd_rule_node(ad, node);
	uint32_t in[5] = { 0, 0, 0, 0, own };

	if (!hd_grad_wanted(ad, own))
		return HD_OK;
	enum hd_err err = hd_far_list(ad, n.in[1], &in[0], diag);
	err = err ? err : hd_far_list(ad, n.in[0], &in[1], diag);
	err = err ? err : hd_far_edges(ad, n.in[1], own, n.in[2], &in[2], diag);
	err = err ? err : hd_far_rows(ad, node, n.in[1], dy, &in[3], diag);
	return err ? err : hd_grad_add(ad, node, own, HD_OP_EDGE_SUM, 5, in, NULL, diag);
}

static enum hd_err edge_sum_grad(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE, own = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	if (err == HD_OK)
		err = hd_grad_add(ad, node, n.in[2], HD_OP_EDGE_DOT, 5,
			(uint32_t[]){ n.in[0], n.in[1], dy, n.in[3], n.in[2] }, NULL, diag);
	if (err == HD_OK && hd_far_met(ad, n.in[3], &own))
		return edge_sum_grad_met(ad, node, own, dy, diag);
	return err == HD_OK ? hd_grad_add(ad, node, n.in[3], HD_OP_EDGE_SUM, 5,
		(uint32_t[]){ n.in[1], n.in[0], n.in[2], dy, n.in[3] }, NULL, diag) : err;
}

static enum hd_err edge_dot_shape(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	enum hd_err err = edge_heads(graph, node, 4, 2, diag);

	if (err == HD_OK && hd_rule_in(graph, node, 2)->dim[1] != hd_rule_in(graph, node, 3)->dim[1])
		err = hd_rule_broken(graph, node, "p and q have the same width", diag);
	if (err == HD_OK)
		hd_rule_like(out, hd_rule_in(graph, node, 4));
	return err;
}

static enum hd_err edge_dot_grad(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	if (err == HD_OK)
		err = hd_grad_add(ad, node, n.in[2], HD_OP_EDGE_SUM, 5,
			(uint32_t[]){ n.in[0], n.in[1], dy, n.in[3], n.in[2] }, NULL, diag);
	return err == HD_OK ? hd_grad_add(ad, node, n.in[3], HD_OP_EDGE_SUM, 5,
		(uint32_t[]){ n.in[1], n.in[0], dy, n.in[2], n.in[3] }, NULL, diag) : err;
}
#endif

#ifdef OP_REFERENCE
static void edge_sum(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	int64_t cols = hd_cols(&call->out[0]), heads = hd_cols(&call->in[2]), each = cols / heads;

	(void)scratch;
	for (uint64_t v = first; v < last; v++)
		for (int64_t c = 0; c < cols; c++) {
			double sum = 0;
			for (uint64_t e = 0; e < call->in[0].elems; e++)
				if (end_of(call, 1, e, &call->out[0]) == (int64_t)v)
					sum += (double)hd_ref_in(call, 2)[(int64_t)e * heads + c / each] *
						at_end(call, 0, e, 3, c);
			hd_ref_out(call, 0)[(int64_t)v * cols + c] = (float)sum;
		}
}

static void edge_dot(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	int64_t cols = hd_cols(&call->in[2]), heads = hd_cols(&call->out[0]), each = cols / heads;

	(void)scratch;
	for (uint64_t e = first; e < last; e++)
		for (int64_t k = 0; k < heads; k++) {
			double sum = 0;
			for (int64_t c = k * each; c < (k + 1) * each; c++)
				sum += at_end(call, 1, e, 2, c) * at_end(call, 0, e, 3, c);
			hd_ref_out(call, 0)[(int64_t)e * heads + k] = (float)sum;
		}
}
#endif
#ifdef OP_PLAIN
OP_PLAIN(EDGE_SUM, hd_ref_rows, hd_ref_no_scratch, edge_sum)
OP_PLAIN(EDGE_DOT, hd_ref_rows, hd_ref_no_scratch, edge_dot)
#endif

#ifdef OP_KERNEL
static inline struct hd_spmm edge_weights(const struct hd_call *call)
{
	return (struct hd_spmm){ .weight = call->in[2].at, .heads = (uint32_t)hd_cols(&call->in[2]),
		.edge = call->edges->order };
}

static inline void edge_sum_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const int32_t *from = call->in[0].at, *to = call->in[1].at;
	const uint64_t cols = (uint64_t)hd_cols(&call->out[0]), heads = (uint64_t)hd_cols(&call->in[2]),
		each = cols / heads;
	const struct edge_tile t = edge_tile_of(call, tile);
	float weight[HD_UNIT];
	(void)scratch;

	if (call->edges) {
		edge_rows_sum(call, t, call->edges->at, &call->in[3], edge_weights(call));
		return;
	}
	zero_rows(&call->out[0], t);
	for (uint64_t e = 0; e < call->in[0].elems; e++) {
		const float *a = (const float *)call->in[2].at + e * heads, *x = row_at(&call->in[3],
			from[e]);
		float *y = row_in(call, t, to[e]);
		HD_UNITS(c, len, x && y ? cols : 0) {
			for (uint64_t i = 0; i < len; i++)
				weight[i] = a[(c + i) / each];
			vf_store_n(y + c, vf_fma(vf_load_n(weight, len), vf_load_n(x + c, len),
				vf_load_n(y + c, len)), len);
		}
	}
}

static inline bool edge_sum_divides(const struct hd_call *call, uint32_t n)
{
	return n > 0 && edge_blocks(call, &call->in[3]) > 1;
}

static inline void edge_sum_piece(const struct hd_call *call, uint32_t i, uint32_t n, void *scratch)
{
	if (edge_sum_divides(call, n)) {
		edge_blocks_sum(call, i, n, &call->in[3], edge_weights(call));
		return;
	}
	for (uint32_t tile = edge_piece_tile(call, i, n); tile < edge_piece_tile(call, i + 1, n); tile++)
		edge_sum_tile(call, tile, scratch);
}

/* Products of rows, head by head. A head's columns are cut into sixteens, lane j sums column j of each (one
 * multiplication, then fused multiply-adds), and lanes are summed neighbour by neighbour: (0 + 1) + (2 + 3)
 * and on. A register has as many heads as fit into sixteen columns where they fit evenly, else one, with
 * zeros beyond its end. Sixteen sums are made at once, of `n` registers. The rows of the edges
 * EDGE_DOT_AHEAD on are fetched meanwhile. */
enum { EDGE_DOT_AHEAD = 8, EDGE_DOT_LINE = 16 };

HD_INLINE void edge_dot_fetch(const struct hd_operand *rows, const int32_t *end, uint64_t edge)
{
	const float *row = edge > 0 && end[edge] == end[edge - 1] ? NULL : row_at(rows, end[edge]);

	for (int64_t c = 0; row && c < hd_cols(rows); c += EDGE_DOT_LINE)
		__builtin_prefetch(row + c);
}

/* Columns [0, n) of two rows, summed into sixteen lanes. */
HD_INLINE struct vf edge_dot_lanes(const float *p, const float *q, uint64_t n)
{
	struct vf sum = vf_set(0.0f);

	if (!p || !q)
		return sum;
	HD_UNITS(c, len, n) {
		struct vf a = vf_load_n(p + c, len), b = vf_load_n(q + c, len);
		sum = c == 0 ? vf_mul(a, b) : vf_fma(a, b, sum);
	}
	return sum;
}

HD_INLINE struct vf edge_dot_tree(struct vf *lanes, uint64_t n)
{
	for (; n > 1; n /= 2)
		for (uint64_t i = 0; i < n / 2; i++)
			lanes[i] = vf_pair_sums(lanes[2 * i], lanes[2 * i + 1]);
	return lanes[0];
}

/* Edges [first, last); `n` registers of `width` columns make sixteen sums. */
HD_INLINE void edge_dot_walk(const struct hd_call *call, uint64_t first, uint64_t last, uint64_t n,
	uint64_t width)
{
	const int32_t *from = call->in[0].at, *to = call->in[1].at;
	const uint64_t cols = (uint64_t)hd_cols(&call->in[2]), heads = (uint64_t)hd_cols(&call->out[0]);
	float *y = (float *)call->out[0].at + first * heads, *end = (float *)call->out[0].at + last * heads;
	struct vf lanes[HD_UNIT];
	uint64_t held = 0;

	for (uint64_t e = first; e < last; e++) {
		const float *p = row_at(&call->in[2], to[e]), *q = row_at(&call->in[3], from[e]);
		if (e + EDGE_DOT_AHEAD < last) {
			edge_dot_fetch(&call->in[2], to, e + EDGE_DOT_AHEAD);
			edge_dot_fetch(&call->in[3], from, e + EDGE_DOT_AHEAD);
		}
		for (uint64_t c = 0; c < cols; c += width) {
			lanes[held++] = edge_dot_lanes(p ? p + c : NULL, q ? q + c : NULL, width);
			if (held == n) {
				vf_store_n(y, edge_dot_tree(lanes, n), (size_t)min64(end - y, HD_UNIT));
				y += HD_UNIT;
				held = 0;
			}
		}
	}
	if (held == 0)
		return;
	while (held < n)
		lanes[held++] = vf_set(0.0f);
	vf_store_n(y, edge_dot_tree(lanes, n), (size_t)(end - y));
}

static inline void edge_dot_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const uint64_t cols = (uint64_t)hd_cols(&call->in[2]), heads = (uint64_t)hd_cols(&call->out[0]),
		each = cols / heads, first = (uint64_t)tile * EDGE_TILE,
		last = (uint64_t)min64((int64_t)first + EDGE_TILE, (int64_t)call->in[0].elems);
	const bool fit = cols % HD_UNIT == 0 && each <= HD_UNIT && HD_UNIT % each == 0;
	(void)scratch;

	if (fit && each == 8)           /* numbers that the compiler knows */
		edge_dot_walk(call, first, last, 8, HD_UNIT);
	else if (fit && each == 16)
		edge_dot_walk(call, first, last, 16, HD_UNIT);
	else
		edge_dot_walk(call, first, last, fit ? each : HD_UNIT, fit ? HD_UNIT : each);
}
#endif
#ifdef OP_TILES
OP_TILES(EDGE_DOT, CALL, edge_ntiles, scratch_none, edge_dot_tile)
#endif
#ifdef OP_PIECES
OP_PIECES(EDGE_SUM, CALL, edge_row_ntiles, scratch_none, edge_sum_tile, edge_sum_piece, edge_sum_divides)
#endif

#ifdef OP_ENDS
OP_ENDS(EDGE_SUM, 1, 0, 3)
#endif

#ifdef OP_ORACLE
static void edge_sum64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y, double **in,
	double **out)
{
	int64_t each = y->last / s[2].last;

	(void)n;
	for (int64_t e = s[0].elems - 1; e >= 0; e--)
		for (int64_t c = 0; c < y->last; c++)
			if (is_end64(in[0][e], &s[3]) && is_end64(in[1][e], y))
				out[0][(int64_t)in[1][e] * y->last + c] += in[2][e * s[2].last + c / each] *
					in[3][(int64_t)in[0][e] * y->last + c];
}

static void edge_dot64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y, double **in,
	double **out)
{
	int64_t cols = s[2].last;

	(void)n;
	for (int64_t i = s[0].elems * cols - 1; i >= 0; i--) {
		int64_t e = i / cols, c = i % cols;
		if (is_end64(in[0][e], &s[3]) && is_end64(in[1][e], &s[2]))
			out[0][e * y->last + c / (cols / y->last)] += in[2][(int64_t)in[1][e] * cols + c] *
				in[3][(int64_t)in[0][e] * cols + c];
	}
}
#endif
#ifdef OP_EVAL
OP_EVAL(EDGE_SUM, edge_sum64)
OP_EVAL(EDGE_DOT, edge_dot64)
#endif

#ifdef OP_CASES
	{ HD_OP_EDGE_SUM, A(0), LINEAR, 4, 1, { I(-37), I(-37), F(-37, 3), F(-2, 15), F(-2, 15) } },
	{ HD_OP_EDGE_SUM, A(0), LINEAR, 4, 1, { I(-9), I(-9), F(-9, 1), F(5, 131), F(7, 131) } },
	{ HD_OP_EDGE_DOT, A(0), LINEAR, 4, 1, { I(-37), I(-37), F(-2, 15), F(-2, 15), F(-37, 3) } },
	{ HD_OP_EDGE_DOT, A(0), LINEAR, 4, 1, { I(-37), I(-37), F(-2, 64), F(-2, 64), F(-37, 8) } },
	{ HD_OP_EDGE_DOT, A(0), LINEAR, 4, 1, { I(-37), I(-37), F(-2, 80), F(-2, 80), F(-37, 2) } },
	{ HD_OP_EDGE_DOT, A(0), LINEAR, 4, 1, { I(-37), I(-37), F(-2, 16), F(-2, 16), F(-37, 16) } },
#endif
#ifdef OP_SLOPES
	{ HD_OP_EDGE_SUM, A(0), 1, { I(9), I(9), F(9, 2), F(4, 6), X(3, 6) } },
	{ HD_OP_EDGE_DOT, A(0), 1, { I(9), I(9), F(3, 6), F(4, 6), X(9, 2) } },
#endif
#ifdef OP_EXAMPLES
	{ HD_OP_EDGE_SUM, ATTR(0), { IDS(40, 900), IDS(30, 900), { .dim = { 900, 7 } }, { .dim = { 40, 133 } }, { .dim = { 30, 133 } } },
	  { { .dim = { 30, 133 } } }, false, 40 },
	{ HD_OP_EDGE_DOT, ATTR(0), { IDS(40, 3001), IDS(40, 3001), { .dim = { 40, 35 } }, { .dim = { 40, 35 } }, { .dim = { 3001, 5 } } },
	  { { .dim = { 3001, 5 } } }, false, 7 },
	{ HD_OP_EDGE_DOT, ATTR(0), { IDS(40, 3001), IDS(40, 3001), { .dim = { 40, 64 } }, { .dim = { 40, 64 } }, { .dim = { 3001, 8 } } },
	  { { .dim = { 3001, 8 } } }, false, 8 },
	{ HD_OP_EDGE_DOT, ATTR(0), { IDS(40, 1029), IDS(40, 1029), { .dim = { 40, 80 } }, { .dim = { 40, 80 } }, { .dim = { 1029, 2 } } },
	  { { .dim = { 1029, 2 } } }, false, 40 },
	{ HD_OP_EDGE_DOT, ATTR(0), { IDS(40, 3001), IDS(40, 3001), { .dim = { 40, 16 } }, { .dim = { 40, 16 } }, { .dim = { 3001, 1 } } },
	  { { .dim = { 3001, 1 } } }, false, 16 },
#endif
#ifdef OP_BITS
OP_BITS(EDGE_SUM, "5378c9b358b08084")
OP_BITS(EDGE_DOT, "311d4f7b194b6ddc")
#endif
