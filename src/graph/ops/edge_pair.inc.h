/* edge_pair.inc.h -- rows of both ends of each edge, added; and rows of edges, added up per vertex, which is
 * its gradient. Parts of files of ops: ops.def.
 *
 * Edges are two lists of vertices, `from` and `to`, i32 [E]; a sum over edges goes up in their order. Edges
 * sorted by (to, from) are in that order for both ends: of one source too, targets ascend. So the transposed
 * op is the same op with the lists exchanged. An edge whose end is no vertex (-1) reads zeros and is added to
 * nothing. Sources and targets may be rows of two values of unlike length: those of all vertices and those of
 * one interval. The other files of edges (edge_dropout, edge_softmax, edge_sum, spmm) use the helpers of this
 * one. */

#ifdef OP
OP(EDGE_PAIR, "edge_pair", 4, 1, GRAPH, "",
	"from i32[E] to i32[E] s[V,K] d[U,K] -> s of the source + d of the target, [E,K]",
	edge_pair_shape, edge_pair_grad, edge_cost)
OP(EDGE_TOTAL, "edge_total", 3, 1, GRAPH, "",
	"ends i32[E] e[E,K] s[V,..](shape only) -> for each vertex the sum of its edges' rows, [V,K]",
	edge_total_shape, edge_total_grad, edge_cost)
#endif

#ifdef OP_RULES
/* The first n operands are i32 lists of one length, the others f32 with two extents. */
static enum hd_err edge_operands(const struct hd_graph *graph, const struct hd_node *node, int n,
	struct hd_diag *diag)
{
	for (int i = 0; i < node->nin; i++) {
		const struct hd_value *v = hd_rule_in(graph, node, i);
		if (i < n ? v->dtype != HD_I32 || v->rank != 1 : v->dtype != HD_F32 || v->rank != 2)
			return hd_rule_broken(graph, node, i < n ?
				"ends of edges are i32 [E]" :
					"rows of vertices and of edges are f32, two extents",
				diag);
		if (i < n && v->dim[0] != hd_rule_in(graph, node, 0)->dim[0])
			return hd_rule_broken(graph, node, "both ends have one length", diag);
	}
	return HD_OK;
}

/* As many edges as the value has rows. */
static enum hd_err edge_rows(const struct hd_graph *graph, const struct hd_node *node, int edges,
	struct hd_diag *diag)
{
	if (hd_rule_in(graph, node, edges)->dim[0] != hd_rule_in(graph, node, 0)->dim[0])
		return hd_rule_broken(graph, node, "a value of the edges has a row for each", diag);
	return HD_OK;
}

static struct hd_cost edge_cost(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	uint64_t edges = hd_value_elems(hd_rule_in(graph, node, 0), rows), width = 1, bytes = 0;

	for (int i = 0; i < node->nin; i++) {
		const struct hd_value *v = hd_rule_in(graph, node, i);
		if (v->rank == 2 && (uint64_t)v->dim[1] > width)
			width = (uint64_t)v->dim[1];
		bytes += hd_value_bytes(v, rows);
	}
	return (struct hd_cost){ 2.0 * (double)edges * (double)width,
		(double)bytes + 4.0 * (double)edges * (double)width +
		(double)hd_value_bytes(&graph->value[node->out], rows) };
}

static enum hd_err edge_pair_shape(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	const struct hd_value *s = hd_rule_in(graph, node, 2);
	enum hd_err err = edge_operands(graph, node, 2, diag);

	if (err == HD_OK && s->dim[1] != hd_rule_in(graph, node, 3)->dim[1])
		err = hd_rule_broken(graph, node, "s and d have the same width", diag);
	if (err == HD_OK)
		hd_rule_set(out, 2, (int64_t[]){ hd_rule_in(graph, node, 0)->dim[0], s->dim[1] }, HD_F32);
	return err;
}

/* For the source's rows, if they met: the sum over its edges, where dy is made again. */
static enum hd_err edge_pair_grad_met(struct hd_autodiff *ad, uint32_t node, uint32_t own, uint32_t dy,
	struct hd_diag *diag)
{
	const struct hd_node n = hd_rule_node(ad, node);
	uint32_t in[3] = { 0, 0, own };

	if (!hd_grad_wanted(ad, own))
		return HD_OK;
	enum hd_err err = hd_far_list(ad, n.in[0], &in[0], diag);
	err = err ? err : hd_far_edges(ad, n.in[1], own, dy, &in[1], diag);
	return err ? err : hd_grad_add(ad, node, own, HD_OP_EDGE_TOTAL, 3, in, NULL, diag);
}

static enum hd_err edge_pair_grad(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE, own = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	/* that of the target first: it needs nothing of another vertex */
	for (int k = 1; k >= 0 && err == HD_OK; k--)
		err = k == 0 && hd_far_met(ad, n.in[2], &own) ? edge_pair_grad_met(ad, node, own, dy, diag) :
			hd_grad_add(ad, node, n.in[2 + k], HD_OP_EDGE_TOTAL, 3,
			(uint32_t[]){ n.in[k], dy, n.in[2 + k] }, NULL, diag);
	return err;
}

static enum hd_err edge_total_shape(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	enum hd_err err = edge_operands(graph, node, 1, diag);

	err = err ? err : edge_rows(graph, node, 1, diag);
	if (err == HD_OK)
		hd_rule_set(out, 2, (int64_t[]){ hd_rule_in(graph, node, 2)->dim[0],
			hd_rule_in(graph, node, 1)->dim[1] }, HD_F32);
	return err;
}

/* Each edge has the row of its vertex: half of a pair whose two ends are that vertex. */
static enum hd_err edge_total_grad(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	return err == HD_OK ? hd_grad_add_scaled(ad, node, n.in[1], HD_OP_EDGE_PAIR, 4,
		(uint32_t[]){ n.in[0], n.in[0], dy, dy }, NULL, 0.5f, diag) : err;
}
#endif

#ifdef OP_REFERENCE
/* The vertex at an end, -1: none of `o`'s. */
static int64_t end_of(const struct hd_call *call, int list, uint64_t edge, const struct hd_operand *o)
{
	int64_t v = ((const int32_t *)call->in[list].at)[edge];

	return v >= 0 && v < o->dim[0] ? v : -1;
}

static double at_end(const struct hd_call *call, int list, uint64_t edge, int i, int64_t col)
{
	int64_t v = end_of(call, list, edge, &call->in[i]);

	return v < 0 ? 0 : (double)hd_ref_in(call, i)[v * hd_cols(&call->in[i]) + col];
}

static void edge_pair(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	int64_t cols = hd_cols(&call->out[0]);

	(void)scratch;
	for (uint64_t e = first; e < last; e++)
		for (int64_t c = 0; c < cols; c++)
			hd_ref_out(call, 0)[(int64_t)e * cols + c] =
				(float)(at_end(call, 0, e, 2, c) + at_end(call, 1, e, 3, c));
}

static void edge_total(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	int64_t cols = hd_cols(&call->out[0]);

	(void)scratch;
	for (uint64_t v = first; v < last; v++)
		for (int64_t c = 0; c < cols; c++) {
			double sum = 0;
			for (uint64_t e = 0; e < call->in[0].elems; e++)
				if (end_of(call, 0, e, &call->out[0]) == (int64_t)v)
					sum += (double)hd_ref_in(call, 1)[(int64_t)e * cols + c];
			hd_ref_out(call, 0)[(int64_t)v * cols + c] = (float)sum;
		}
}
#endif
#ifdef OP_PLAIN
OP_PLAIN(EDGE_PAIR, hd_ref_rows, hd_ref_no_scratch, edge_pair)
OP_PLAIN(EDGE_TOTAL, hd_ref_rows, hd_ref_no_scratch, edge_total)
#endif

#ifdef OP_KERNEL
/* Tiles of edges, and of columns. */
enum { EDGE_TILE = 1024 };
static inline uint32_t edge_ntiles(const struct hd_call *call)
{
	return (uint32_t)div_up((int64_t)call->in[0].elems, EDGE_TILE);
}

/* Tiles of rows that edges are summed into: cut where the edges are, if these are at hand row by row. */
enum { EDGE_ROW_TILE = 4096, EDGE_ROW_TILES = 256 };
struct edge_tile { uint64_t first, last; };

static inline uint32_t edge_row_ntiles(const struct hd_call *call)
{
	const int64_t n = min64(min64(div_up((int64_t)call->in[0].elems, EDGE_ROW_TILE), EDGE_ROW_TILES),
		call->out[0].dim[0]);

	return call->out[0].elems == 0 ? 0 : n > 0 ? (uint32_t)n : 1;
}

static inline struct edge_tile edge_tile_of(const struct hd_call *call, uint32_t tile)
{
	const uint32_t n = edge_row_ntiles(call);
	const uint64_t rows = (uint64_t)call->out[0].dim[0];

	return call->edges ? (struct edge_tile){ hd_spmm_cut(call->edges->offset, 0, rows, tile, n),
		hd_spmm_cut(call->edges->offset, 0, rows, tile + 1, n) } :
		(struct edge_tile){ rows * tile / n, rows * (tile + 1) / n };
}

/* The row of a vertex; NULL: it is none. */
static inline float *row_at(const struct hd_operand *o, int32_t v)
{
	return v >= 0 && v < o->dim[0] ? (float *)o->at + v * hd_cols(o) : NULL;
}

static inline void edge_pair_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const int32_t *from = call->in[0].at, *to = call->in[1].at;
	uint64_t cols = (uint64_t)hd_cols(&call->out[0]), first = (uint64_t)tile * EDGE_TILE,
		last = (uint64_t)min64((int64_t)first + EDGE_TILE, (int64_t)call->in[0].elems);
	(void)scratch;

	for (uint64_t e = first; e < last; e++) {
		const float *s = row_at(&call->in[2], from[e]), *d = row_at(&call->in[3], to[e]);
		float *y = (float *)call->out[0].at + e * cols;
		HD_UNITS(c, len, cols)
			vf_store_n(y + c, vf_add(s ? vf_load_n(s + c, len) : vf_set(0.0f),
				d ? vf_load_n(d + c, len) : vf_set(0.0f)), len);
	}
}

static inline void zero_rows(const struct hd_operand *o, struct edge_tile t)
{
	const uint64_t cols = (uint64_t)hd_cols(o);

	memset((float *)o->at + t.first * cols, 0, (t.last - t.first) * cols * sizeof(float));
}

/* The row of a vertex, if it is one of the tile. */
static inline float *row_in(const struct hd_call *call, struct edge_tile t, int32_t v)
{
	return v >= 0 && (uint64_t)v >= t.first && (uint64_t)v < t.last ? row_at(&call->out[0], v) : NULL;
}

/* Sums of the rows of x that `at` names, of weights if `sum` has them. */
static inline void edge_rows_sum(const struct hd_call *call, struct edge_tile t, const uint32_t *at,
	const struct hd_operand *x, struct hd_spmm sum)
{
	sum.offset = call->edges->offset;
	sum.at = at;
	sum.first = t.first;
	sum.last = t.last;
	sum.width = (uint32_t)hd_cols(x);
	sum.x = x->at;
	sum.x_stride = sum.y_stride = sum.width;
	sum.y = call->out[0].at;
	call->edges->kernels->spmm(&sum);
}

static inline uint32_t edge_blocks(const struct hd_call *call, const struct hd_operand *x)
{
	const uint32_t n = call->edges ? hd_edge_blocks((uint64_t)x->dim[0], (uint64_t)hd_cols(x),
		(uint64_t)call->out[0].dim[0], call->in[0].elems) : 1;

	return n > 1 && n <= call->edges->nblocks ? n : 1;
}

/* The first tile of piece i of n. */
static inline uint32_t edge_piece_tile(const struct hd_call *call, uint32_t i, uint32_t n)
{
	return (uint32_t)((uint64_t)edge_row_ntiles(call) * i / n);
}

/* Piece i of n of such sums, block by block over all its rows: what a block reads stays in the caches. */
static inline void edge_blocks_sum(const struct hd_call *call, uint32_t i, uint32_t n,
	const struct hd_operand *x, struct hd_spmm sum)
{
	const uint64_t rows = (uint64_t)call->out[0].dim[0];
	const uint32_t nblocks = edge_blocks(call, x);

	sum.first = hd_spmm_cut(call->edges->offset, 0, rows, i, n);
	sum.last = hd_spmm_cut(call->edges->offset, 0, rows, i + 1, n);
	sum.width = (uint32_t)hd_cols(x);
	sum.x = x->at;
	sum.x_stride = sum.y_stride = sum.width;
	sum.y = call->out[0].at;
	for (uint32_t b = 0; b < nblocks; b++) {
		hd_edge_block(call->edges, rows, b, nblocks, &sum);
		call->edges->kernels->spmm(&sum);
	}
}

/* Edges that stand row by row. */
static inline void edge_total_runs(const struct hd_call *call, struct edge_tile t)
{
	const uint64_t cols = (uint64_t)hd_cols(&call->out[0]), *offset = call->edges->offset;

	for (uint64_t v = t.first; v < t.last; v++)
		HD_UNITS(c, len, cols) {
			const float *x = (const float *)call->in[1].at + c;
			struct vf sum = vf_set(0.0f);
			for (uint64_t e = offset[v]; e < offset[v + 1]; e++)
				sum = vf_add(sum, vf_load_n(x + e * cols, len));
			vf_store_n((float *)call->out[0].at + v * cols + c, sum, len);
		}
}

static inline void edge_total_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const int32_t *end = call->in[0].at;
	const uint64_t cols = (uint64_t)hd_cols(&call->out[0]);
	const struct edge_tile t = edge_tile_of(call, tile);
	(void)scratch;

	if (call->edges && call->edges->order) {
		edge_rows_sum(call, t, call->edges->order, &call->in[1], (struct hd_spmm){ 0 });
		return;
	}
	if (call->edges) {
		edge_total_runs(call, t);
		return;
	}
	zero_rows(&call->out[0], t);
	for (uint64_t e = 0; e < call->in[0].elems; e++) {
		const float *x = (const float *)call->in[1].at + e * cols;
		float *y = row_in(call, t, end[e]);
		HD_UNITS(c, len, y ? cols : 0)
			vf_store_n(y + c, vf_add(vf_load_n(y + c, len), vf_load_n(x + c, len)), len);
	}
}
#endif
#ifdef OP_TILES
OP_TILES(EDGE_PAIR, CALL, edge_ntiles, scratch_none, edge_pair_tile)
OP_TILES(EDGE_TOTAL, CALL, edge_row_ntiles, scratch_none, edge_total_tile)
#endif

#ifdef OP_ENDS
OP_ENDS(EDGE_TOTAL, 0, -1, -1)
#endif

#ifdef OP_ORACLE
static bool is_end64(double id, const struct shape64 *s) { return id >= 0 && id < (double)s->dim[0]; }

static void edge_pair64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y,
	double **in,
	double **out)
{
	(void)n;
	for (int k = 0; k < 2; k++)
		for (int64_t e = 0; e < y->elems; e++)
			if (is_end64(in[k][e / y->last], &s[2 + k]))
				out[0][e] += in[2 + k][(int64_t)in[k][e / y->last] * y->last + e % y->last];
}

static void edge_total64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y,
	double **in,
	double **out)
{
	(void)n;
	for (int64_t e = s[1].elems - 1; e >= 0; e--)
		if (is_end64(in[0][e / y->last], y))
			out[0][(int64_t)in[0][e / y->last] * y->last + e % y->last] += in[1][e];
}
#endif
#ifdef OP_EVAL
OP_EVAL(EDGE_PAIR, edge_pair64)
OP_EVAL(EDGE_TOTAL, edge_total64)
#endif

#ifdef OP_CASES
	{ HD_OP_EDGE_PAIR, A(0), EXACT, 0, 1, { I(-37), I(-37), F(-2, 5), F(-2, 5) } },
	{ HD_OP_EDGE_TOTAL, A(0), LINEAR, 4, 1, { I(-37), F(-37, 5), F(-2, 5) } },
	{ HD_OP_EDGE_TOTAL, A(0), LINEAR, 4, 1, { I(-9), F(-9, 131), F(7, 4) } },
#endif
#ifdef OP_SLOPES
	{ HD_OP_EDGE_PAIR, A(0), 1, { I(9), I(9), F(4, 3), F(5, 3) } },
	{ HD_OP_EDGE_TOTAL, A(0), 1, { I(9), F(9, 3), X(4, 3) } },
#endif
#ifdef OP_EXAMPLES
	{ HD_OP_EDGE_PAIR, ATTR(0), { IDS(40, 3001), IDS(30, 3001), { .dim = { 40, 8 } }, { .dim = { 30, 8 } } },
	  { { .dim = { 3001, 8 } } }, false, 1 },
	{ HD_OP_EDGE_TOTAL, ATTR(0), { IDS(40, 700), { .dim = { 700, 133 } }, { .dim = { 40, 133 } } },
	  { { .dim = { 40, 133 } } }, false, 40 },
#endif
#ifdef OP_BITS
OP_BITS(EDGE_PAIR, "6a57d9adeb683bb1")
OP_BITS(EDGE_TOTAL, "b5ce674a6ccc43ef")
#endif
