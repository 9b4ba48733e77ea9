/* edge_softmax.inc.h -- softmax over the edges of each target, column by column, and its gradient. The edges
 * of a target stand together (edges are sorted by target): a run of equal ends is what is summed over. Where
 * the edges of a source are at hand, and the others of their targets are not, edge_softmax_at and
 * edge_softmax_dx_at make the same bits of what edge_peaks and edge_softmax_sums have kept per target. What
 * is kept may be of an earlier step (ADR 190): a score above the maximum counts as the maximum, so that no
 * weight is above 1, and has no gradient (ADR 193). Of the maximum of these very scores none is above it, and
 * no bit differs.
 * Parts of files of ops: ops.def; edges: edge_pair.inc.h. */

#ifdef OP
OP(EDGE_SOFTMAX, "edge_softmax", 2, 1, GRAPH, "",
	"to i32[E] e[E,K] -> softmax over the edges of each target; a run of equal ends is one",
	edge_softmax_shape, edge_softmax_grad, edge_cost)
OP(EDGE_SOFTMAX_DX, "edge_softmax_dx", 3, 1, GRAPH, "", "to da a -> de = a (da - sum a da), sums as there",
	edge_softmax_shape, NULL, edge_cost)
OP(EDGE_PEAKS, "edge_peaks", 3, 1, GRAPH, "",
	"to i32[E] e[E,K] y[U,..](shape only) -> for each target the maxima, then the sums of exp(e - "
	"maximum); none: 0, 1",
	edge_peaks_shape, NULL, edge_cost)
OP(EDGE_SOFTMAX_AT, "edge_softmax_at", 3, 1, GRAPH, "",
	"to i32[E] e[E,K] peaks[V,2*K] -> exp(e - maximum) / sum; an e above the maximum counts as it",
	edge_softmax_at_shape, NULL, edge_cost)
OP(EDGE_SOFTMAX_SUMS, "edge_softmax_sums", 4, 1, GRAPH, "",
	"to i32[E] da[E,K] a[E,K] y[U,..](shape only) -> for each target the sum of a da, [U,K]",
	edge_softmax_sums_shape, NULL, edge_cost)
OP(EDGE_SOFTMAX_DX_AT, "edge_softmax_dx_at", 6, 1, GRAPH, "",
	"to i32[E] da[E,K] a[E,K] sums[V,K] e[E,K] peaks[V,2*K] -> a (da - sum of the target), 0 where e is "
	"above the maximum",
	edge_softmax_dx_at_shape, NULL, edge_cost)
#endif

#ifdef OP_RULES
static enum hd_err edge_softmax_shape(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	enum hd_err err = edge_operands(graph, node, 1, diag);

	for (int i = 1; i < node->nin && err == HD_OK; i++)
		err = edge_rows(graph, node, i, diag);
	if (err == HD_OK && !hd_dims_same(hd_rule_in(graph, node, 1), hd_rule_in(graph, node, node->nin - 1)))
		err = hd_rule_broken(graph, node, "values of the edges have the same shape", diag);
	if (err == HD_OK)
		hd_rule_like(out, hd_rule_in(graph, node, 1));
	return err;
}

static enum hd_err edge_peaks_shape(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	enum hd_err err = edge_operands(graph, node, 1, diag);

	err = err ? err : edge_rows(graph, node, 1, diag);
	if (err == HD_OK)
		hd_rule_set(out, 2, (int64_t[]){ hd_rule_in(graph, node, 2)->dim[0],
			2 * hd_rule_in(graph, node, 1)->dim[1] }, HD_F32);
	return err;
}

static enum hd_err edge_softmax_at_shape(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	enum hd_err err = edge_operands(graph, node, 1, diag);

	err = err ? err : edge_rows(graph, node, 1, diag);
	if (err == HD_OK && hd_rule_in(graph, node, 2)->dim[1] != 2 * hd_rule_in(graph, node, 1)->dim[1])
		err = hd_rule_broken(graph, node, "a vertex has two columns for each of an edge", diag);
	if (err == HD_OK)
		hd_rule_like(out, hd_rule_in(graph, node, 1));
	return err;
}

/* Two values of the edges, then rows of vertices. */
static enum hd_err edge_two(const struct hd_graph *graph, const struct hd_node *node, struct hd_diag *diag)
{
	enum hd_err err = edge_operands(graph, node, 1, diag);

	err = err ? err : edge_rows(graph, node, 1, diag);
	if (err == HD_OK && !hd_dims_same(hd_rule_in(graph, node, 1), hd_rule_in(graph, node, 2)))
		err = hd_rule_broken(graph, node, "values of the edges have the same shape", diag);
	return err;
}

static enum hd_err edge_softmax_sums_shape(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	enum hd_err err = edge_two(graph, node, diag);

	if (err == HD_OK)
		hd_rule_set(out, 2, (int64_t[]){ hd_rule_in(graph, node, 3)->dim[0],
			hd_rule_in(graph, node, 1)->dim[1] }, HD_F32);
	return err;
}

static enum hd_err edge_softmax_dx_at_shape(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	enum hd_err err = edge_two(graph, node, diag);
	const int64_t cols = err ? 0 : hd_rule_in(graph, node, 1)->dim[1];

	if (err == HD_OK && !hd_dims_same(hd_rule_in(graph, node, 1), hd_rule_in(graph, node, 4)))
		err = hd_rule_broken(graph, node, "values of the edges have the same shape", diag);
	if (err == HD_OK && (hd_rule_in(graph, node, 3)->dim[1] != cols ||
		hd_rule_in(graph, node, 5)->dim[1] != 2 * cols))
		err = hd_rule_broken(graph, node, "a vertex has a sum, and two peaks, for each column of an "
			"edge", diag);
	if (err == HD_OK)
		hd_rule_like(out, hd_rule_in(graph, node, 1));
	return err;
}

static enum hd_err edge_softmax_grad(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t da = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &da, diag);

	return err == HD_OK ? hd_grad_add(ad, node, n.in[1], HD_OP_EDGE_SOFTMAX_DX, 3,
		(uint32_t[]){ n.in[0], da, n.out }, NULL, diag) : err;
}
#endif

#ifdef OP_REFERENCE
/* The run that begins at `first` ends before this. */
static uint64_t run_end(const struct hd_call *call, uint64_t first)
{
	const int32_t *to = call->in[0].at;
	uint64_t last = first + 1;

	while (last < call->in[0].elems && to[last] == to[first])
		last++;
	return last;
}

static void edge_softmax(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	uint64_t cols = (uint64_t)hd_cols(&call->out[0]);
	const float *x = hd_ref_in(call, 1);

	(void)first, (void)last, (void)scratch;
	for (uint64_t c = 0; c < cols; c++)
		for (uint64_t from = 0, end; from < call->in[0].elems; from = end) {
			double most = -INFINITY, sum = 0;
			end = run_end(call, from);
			for (uint64_t e = from; e < end; e++)
				most = fmax(most, (double)x[e * cols + c]);
			for (uint64_t e = from; e < end; e++)
				sum += exp((double)x[e * cols + c] - most);
			for (uint64_t e = from; e < end; e++)
				hd_ref_out(call, 0)[e * cols + c] =
					(float)(exp((double)x[e * cols + c] - most) / sum);
		}
}

static void edge_softmax_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	uint64_t cols = (uint64_t)hd_cols(&call->out[0]);
	const float *da = hd_ref_in(call, 1), *a = hd_ref_in(call, 2);

	(void)first, (void)last, (void)scratch;
	for (uint64_t c = 0; c < cols; c++)
		for (uint64_t from = 0, end; from < call->in[0].elems; from = end) {
			double sum = 0;
			end = run_end(call, from);
			for (uint64_t e = from; e < end; e++)
				sum += (double)a[e * cols + c] * (double)da[e * cols + c];
			for (uint64_t e = from; e < end; e++)
				hd_ref_out(call, 0)[e * cols + c] =
					(float)((double)a[e * cols + c] * ((double)da[e * cols + c] - sum));
		}
}

static void edge_peaks(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	uint64_t cols = (uint64_t)hd_cols(&call->in[1]);
	const float *x = hd_ref_in(call, 1);

	(void)scratch;
	for (uint64_t v = first; v < last; v++)
		for (uint64_t c = 0; c < cols; c++) {
			double most = -INFINITY, sum = 0;
			for (uint64_t e = 0; e < call->in[0].elems; e++)
				if (end_of(call, 0, e, &call->out[0]) == (int64_t)v)
					most = fmax(most, (double)x[e * cols + c]);
			for (uint64_t e = 0; e < call->in[0].elems; e++)
				if (end_of(call, 0, e, &call->out[0]) == (int64_t)v)
					sum += exp((double)x[e * cols + c] - most);
			hd_ref_out(call, 0)[v * 2 * cols + c] = sum > 0 ? (float)most : 0;
			hd_ref_out(call, 0)[v * 2 * cols + cols + c] = sum > 0 ? (float)sum : 1;
		}
}

static void edge_softmax_at(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	int64_t cols = hd_cols(&call->out[0]);

	(void)scratch;
	for (uint64_t e = first; e < last; e++)
		for (int64_t c = 0; c < cols; c++) {
			const double over = (double)hd_ref_in(call, 1)[(int64_t)e * cols + c] -
				at_end(call, 0, e, 2, c);
			hd_ref_out(call, 0)[(int64_t)e * cols + c] = end_of(call, 0, e, &call->in[2]) < 0 ?
				0 : (float)(exp(over > 0 ? 0 : over) / at_end(call, 0, e, 2, cols + c));
		}
}

static void edge_softmax_sums(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t cols = hd_cols(&call->out[0]);

	(void)scratch;
	for (uint64_t v = first; v < last; v++)
		for (int64_t c = 0; c < cols; c++) {
			double sum = 0;
			for (uint64_t e = 0; e < call->in[0].elems; e++)
				if (end_of(call, 0, e, &call->out[0]) == (int64_t)v)
					sum += (double)hd_ref_in(call, 1)[(int64_t)e * cols + c] *
						(double)hd_ref_in(call, 2)[(int64_t)e * cols + c];
			hd_ref_out(call, 0)[(int64_t)v * cols + c] = (float)sum;
		}
}

static void edge_softmax_dx_at(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t cols = hd_cols(&call->out[0]);

	(void)scratch;
	for (uint64_t e = first; e < last; e++)
		for (int64_t c = 0; c < cols; c++) {
			const double da = (double)hd_ref_in(call, 1)[(int64_t)e * cols + c];
			const bool above = end_of(call, 0, e, &call->in[5]) >= 0 &&
				(double)hd_ref_in(call, 4)[(int64_t)e * cols + c] > at_end(call, 0, e, 5, c);
			hd_ref_out(call, 0)[(int64_t)e * cols + c] = above ? 0 : (float)
				((double)hd_ref_in(call, 2)[(int64_t)e * cols + c] *
				(da - at_end(call, 0, e, 3, c)));
		}
}
#endif
#ifdef OP_PLAIN
OP_PLAIN(EDGE_SOFTMAX_SUMS, hd_ref_rows, hd_ref_no_scratch, edge_softmax_sums)
OP_PLAIN(EDGE_SOFTMAX_DX_AT, hd_ref_rows, hd_ref_no_scratch, edge_softmax_dx_at)
OP_PLAIN(EDGE_PEAKS, hd_ref_rows, hd_ref_no_scratch, edge_peaks)
OP_PLAIN(EDGE_SOFTMAX_AT, hd_ref_rows, hd_ref_no_scratch, edge_softmax_at)
OP_PLAIN(EDGE_SOFTMAX, hd_ref_whole, hd_ref_no_scratch, edge_softmax)
OP_PLAIN(EDGE_SOFTMAX_DX, hd_ref_whole, hd_ref_no_scratch, edge_softmax_dx)
#endif

#ifdef OP_KERNEL
/* What is done with a run: edges [from, end) of `len` columns that begin at `at` of each row. */
typedef void edge_run(const struct hd_call *call, uint64_t from, uint64_t end, uint64_t at, uint64_t len);

static void edge_softmax_run(const struct hd_call *call, uint64_t from, uint64_t end, uint64_t at,
	uint64_t len)
{
	uint64_t cols = (uint64_t)hd_cols(&call->out[0]);
	const float *x = (const float *)call->in[1].at + at;
	float *y = (float *)call->out[0].at + at;
	struct vf most = vf_load_n(x + from * cols, len), sum = vf_set(0.0f);

	for (uint64_t e = from + 1; e < end; e++)
		most = vf_max(most, vf_load_n(x + e * cols, len));
	for (uint64_t e = from; e < end; e++) {
		struct vf q = vf_exp(vf_sub(vf_load_n(x + e * cols, len), most));
		sum = vf_add(sum, q);
		vf_store_n(y + e * cols, q, len);
	}
	for (uint64_t e = from; e < end; e++)
		vf_store_n(y + e * cols, vf_div(vf_load_n(y + e * cols, len), sum), len);
}

static void edge_softmax_dx_run(const struct hd_call *call, uint64_t from, uint64_t end, uint64_t at,
	uint64_t len)
{
	uint64_t cols = (uint64_t)hd_cols(&call->out[0]);
	const float *da = (const float *)call->in[1].at + at, *a = (const float *)call->in[2].at + at;
	float *y = (float *)call->out[0].at + at;
	struct vf sum = vf_set(0.0f);

	for (uint64_t e = from; e < end; e++)
		sum = vf_fma(vf_load_n(a + e * cols, len), vf_load_n(da + e * cols, len), sum);
	for (uint64_t e = from; e < end; e++)
		vf_store_n(y + e * cols, vf_mul(vf_load_n(a + e * cols, len),
			vf_sub(vf_load_n(da + e * cols, len), sum)), len);
}

/* A tile has the runs that begin in its part of the edges. */
static inline uint32_t edge_run_ntiles(const struct hd_call *call)
{
	return (uint32_t)min64(div_up((int64_t)call->in[0].elems, EDGE_ROW_TILE), EDGE_ROW_TILES);
}

static inline void edge_runs(const struct hd_call *call, uint32_t tile, edge_run *run)
{
	const int32_t *to = call->in[0].at;
	const uint64_t cols = (uint64_t)hd_cols(&call->out[0]), edges = call->in[0].elems,
		n = edge_run_ntiles(call), last = edges * (tile + 1) / n;
	uint64_t from = edges * tile / n;

	while (from > 0 && from < last && to[from] == to[from - 1])
		from++;
	for (uint64_t end; from < last; from = end) {
		for (end = from + 1; end < edges && to[end] == to[from]; end++)
			;
		HD_UNITS(c, len, cols)
			run(call, from, end, c, len);
	}
}

static inline void edge_softmax_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	(void)scratch;
	edge_runs(call, tile, edge_softmax_run);
}

static inline void edge_softmax_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	(void)scratch;
	edge_runs(call, tile, edge_softmax_dx_run);
}

/* Walks the edges of the rows of a tile: those of a row in the order of the list. */
typedef void edge_step(const struct hd_call *call, uint64_t edge, float *row);

static inline void edge_rows_walk(const struct hd_call *call, struct edge_tile t, edge_step *step)
{
	const int32_t *to = call->in[0].at;

	if (!call->edges) {
		for (uint64_t e = 0; e < call->in[0].elems; e++) {
			float *y = row_in(call, t, to[e]);
			if (y)
				step(call, e, y);
		}
		return;
	}
	for (uint64_t v = t.first; v < t.last; v++)
		for (uint64_t i = call->edges->offset[v]; i < call->edges->offset[v + 1]; i++)
			step(call, call->edges->order ? call->edges->order[i] : i,
				row_at(&call->out[0], (int32_t)v));
}

static inline void edge_maximum(const struct hd_call *call, uint64_t edge, float *y)
{
	const uint64_t cols = (uint64_t)hd_cols(&call->in[1]);
	const float *x = (const float *)call->in[1].at + edge * cols;

	HD_UNITS(c, len, cols)
		vf_store_n(y + c, vf_max(vf_load_n(y + c, len), vf_load_n(x + c, len)), len);
}

static inline void edge_exponent(const struct hd_call *call, uint64_t edge, float *y)
{
	const uint64_t cols = (uint64_t)hd_cols(&call->in[1]);
	const float *x = (const float *)call->in[1].at + edge * cols;

	HD_UNITS(c, len, cols)
		vf_store_n(y + cols + c, vf_add(vf_load_n(y + cols + c, len),
			vf_exp(vf_sub(vf_load_n(x + c, len), vf_load_n(y + c, len)))), len);
}

static inline void edge_peaks_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const struct edge_tile t = edge_tile_of(call, tile);
	const uint64_t cols = (uint64_t)hd_cols(&call->in[1]);
	(void)scratch;

	zero_rows(&call->out[0], t);
	for (uint64_t v = t.first; v < t.last; v++)
		for (uint64_t c = 0; c < cols; c++)
			row_at(&call->out[0], (int32_t)v)[c] = -INFINITY;
	edge_rows_walk(call, t, edge_maximum);
	edge_rows_walk(call, t, edge_exponent);
	for (uint64_t v = t.first; v < t.last; v++)
		for (uint64_t c = 0; c < cols; c++) {
			float *y = row_at(&call->out[0], (int32_t)v) + c;
			if (y[cols] == 0)
				y[0] = 0, y[cols] = 1;
		}
}

static inline void edge_product(const struct hd_call *call, uint64_t edge, float *y)
{
	const uint64_t cols = (uint64_t)hd_cols(&call->out[0]);
	const float *da = (const float *)call->in[1].at + edge * cols,
		*a = (const float *)call->in[2].at + edge * cols;

	HD_UNITS(c, len, cols)
		vf_store_n(y + c, vf_fma(vf_load_n(a + c, len), vf_load_n(da + c, len),
			vf_load_n(y + c, len)), len);
}

static inline void edge_softmax_sums_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const struct edge_tile t = edge_tile_of(call, tile);
	(void)scratch;

	zero_rows(&call->out[0], t);
	edge_rows_walk(call, t, edge_product);
}

static inline void edge_softmax_dx_at_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const int32_t *to = call->in[0].at;
	uint64_t cols = (uint64_t)hd_cols(&call->out[0]), first = (uint64_t)tile * EDGE_TILE,
		last = (uint64_t)min64((int64_t)first + EDGE_TILE, (int64_t)call->in[0].elems);
	const struct vf none = vf_set(0.0f);
	(void)scratch;

	for (uint64_t e = first; e < last; e++) {
		const float *sums = row_at(&call->in[3], to[e]), *peaks = row_at(&call->in[5], to[e]),
			*da = (const float *)call->in[1].at + e * cols,
			*a = (const float *)call->in[2].at + e * cols,
			*x = (const float *)call->in[4].at + e * cols;
		float *y = (float *)call->out[0].at + e * cols;
		HD_UNITS(c, len, cols) {
			struct vf slope = vf_mul(vf_load_n(a + c, len), vf_sub(vf_load_n(da + c, len),
				sums ? vf_load_n(sums + c, len) : none));
			if (peaks)
				slope = vf_select(vf_lt(vf_load_n(peaks + c, len), vf_load_n(x + c, len)),
					none, slope);
			vf_store_n(y + c, slope, len);
		}
	}
}

static inline void edge_softmax_at_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const int32_t *to = call->in[0].at;
	uint64_t cols = (uint64_t)hd_cols(&call->out[0]), first = (uint64_t)tile * EDGE_TILE,
		last = (uint64_t)min64((int64_t)first + EDGE_TILE, (int64_t)call->in[0].elems);
	const struct vf none = vf_set(0.0f);
	(void)scratch;

	for (uint64_t e = first; e < last; e++) {
		const float *peaks = row_at(&call->in[2], to[e]), *x = (const float *)call->in[1].at + e *
			cols;
		float *y = (float *)call->out[0].at + e * cols;
		HD_UNITS(c, len, cols) {
			if (!peaks) {
				vf_store_n(y + c, none, len);
				continue;
			}
			struct vf over = vf_sub(vf_load_n(x + c, len), vf_load_n(peaks + c, len));
			over = vf_select(vf_lt(none, over), none, over);        /* what is no number stays */
			vf_store_n(y + c, vf_div(vf_exp(over), vf_load_n(peaks + cols + c, len)), len);
		}
	}
}
#endif
#ifdef OP_TILES
OP_TILES(EDGE_PEAKS, CALL, edge_row_ntiles, scratch_none, edge_peaks_tile)
OP_TILES(EDGE_SOFTMAX_SUMS, CALL, edge_row_ntiles, scratch_none, edge_softmax_sums_tile)
OP_TILES(EDGE_SOFTMAX_DX_AT, CALL, edge_ntiles, scratch_none, edge_softmax_dx_at_tile)
OP_TILES(EDGE_SOFTMAX_AT, CALL, edge_ntiles, scratch_none, edge_softmax_at_tile)
OP_TILES(EDGE_SOFTMAX, CALL, edge_run_ntiles, scratch_none, edge_softmax_tile)
OP_TILES(EDGE_SOFTMAX_DX, CALL, edge_run_ntiles, scratch_none, edge_softmax_dx_tile)
#endif

#ifdef OP_ENDS
OP_ENDS(EDGE_PEAKS, 0, -1, -1)
OP_ENDS(EDGE_SOFTMAX_SUMS, 0, -1, -1)
#endif

#ifdef OP_ORACLE
/* Each element looks for the others of its run. */
static void edge_softmax64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y,
	double **in, double **out)
{
	(void)n, (void)s;
	for (int64_t i = 0; i < y->elems; i++) {
		double sum = 0;
		for (int64_t step = -1; step <= 1; step += 2)
			for (int64_t j = step < 0 ? i : i + y->last; j >= 0 && j < y->elems &&
				in[0][j / y->last] == in[0][i / y->last]; j += step * y->last)
				sum += exp(in[1][j] - in[1][i]);
		out[0][i] = 1 / sum;
	}
}

static void edge_peaks64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y,
	double **in,
	double **out)
{
	int64_t cols = s[1].last;

	(void)n;
	for (int64_t i = 0; i < y->elems; i++)
		out[0][i] = i % y->last < cols ? -1e300 : 0;
	for (int pass = 0; pass < 2; pass++)
		for (int64_t i = s[1].elems - 1; i >= 0; i--) {
			if (!is_end64(in[0][i / cols], y))
				continue;
			double *peak = out[0] + (int64_t)in[0][i / cols] * y->last + i % cols;
			if (pass == 0)
				peak[0] = peak[0] > in[1][i] ? peak[0] : in[1][i];
			else
				peak[cols] += exp(in[1][i] - peak[0]);
		}
	for (int64_t i = 0; i < y->elems; i++)
		if (i % y->last < cols && out[0][i + cols] == 0)
			out[0][i] = 0, out[0][i + cols] = 1;
}

static void edge_softmax_at64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y,
	double **in, double **out)
{
	(void)n;
	for (int64_t i = 0; i < y->elems; i++) {
		double *peak = in[2] + (int64_t)in[0][i / y->last] * 2 * y->last + i % y->last;
		if (is_end64(in[0][i / y->last], &s[2]))
			out[0][i] = (in[1][i] >= peak[0] ? 1 : exp(in[1][i]) / exp(peak[0])) / peak[y->last];
	}
}

static void edge_softmax_sums64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y,
	double **in, double **out)
{
	(void)n;
	for (int64_t i = s[1].elems - 1; i >= 0; i--)
		if (is_end64(in[0][i / y->last], y))
			out[0][(int64_t)in[0][i / y->last] * y->last + i % y->last] += in[1][i] * in[2][i];
}

static void edge_softmax_dx_at64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y,
	double **in, double **out)
{
	(void)n;
	for (int64_t i = 0; i < y->elems; i++) {
		const double end = in[0][i / y->last];
		const double sum = is_end64(end, &s[3]) ? in[3][(int64_t)end * y->last + i % y->last] : 0;
		const bool above = is_end64(end, &s[5]) &&
			in[5][(int64_t)end * 2 * y->last + i % y->last] < in[4][i];
		out[0][i] = above ? 0 : in[2][i] * in[1][i] - in[2][i] * sum;
	}
}
#endif
#ifdef OP_EVAL
OP_EVAL(EDGE_SOFTMAX_SUMS, edge_softmax_sums64)
OP_EVAL(EDGE_SOFTMAX_DX_AT, edge_softmax_dx_at64)
OP_EVAL(EDGE_PEAKS, edge_peaks64)
OP_EVAL(EDGE_SOFTMAX_AT, edge_softmax_at64)
OP_EVAL(EDGE_SOFTMAX, edge_softmax64)
#endif

#ifdef OP_CASES
	{ HD_OP_EDGE_SOFTMAX, A(0), PEAK, 16, 4, { I(-37), F(-37, 5) } },
	{ HD_OP_EDGE_SOFTMAX_DX, A(0), PEAK, 16, 1, { I(-37), F(-37, 5), F(-37, 5) } },
	{ HD_OP_EDGE_PEAKS, A(0), PEAK, 16, 1, { I(-37), F(-37, 5), F(-2, 3) } },
	{ HD_OP_EDGE_SOFTMAX_AT, A(0), PEAK, 16, 1, { I(-37), F(-37, 5), F(-2, 10) } },
	{ HD_OP_EDGE_SOFTMAX_SUMS, A(0), LINEAR, 4, 1, { I(-37), F(-37, 5), F(-37, 5), F(-2, 3) } },
	{ HD_OP_EDGE_SOFTMAX_DX_AT, A(0), PEAK, 16, 1, { I(-37), F(-37, 5), F(-37, 5), F(-2, 5), F(-37, 5), F(-2, 10) } },
#endif
#ifdef OP_SLOPES
	{ HD_OP_EDGE_SOFTMAX, A(0), 1, { I(11), F(11, 3) } },
#endif
#ifdef OP_EXAMPLES
	{ HD_OP_EDGE_SOFTMAX, ATTR(0), { IDS(2, 301), { .dim = { 301, 133 } } }, { { .dim = { 301, 133 } } }, false, 40 },
	{ HD_OP_EDGE_SOFTMAX, ATTR(0), { IDS(2, 3001), { .dim = { 3001, 8 } } }, { { .dim = { 3001, 8 } } }, false, 40 },
	{ HD_OP_EDGE_SOFTMAX_DX, ATTR(0), { IDS(2, 301), { .dim = { 301, 133 } }, { .dim = { 301, 133 } } },
	  { { .dim = { 301, 133 } } }, false, 400 },
	{ HD_OP_EDGE_PEAKS, ATTR(0), { IDS(40, 301), { .dim = { 301, 133 } }, { .dim = { 40, 9 } } },
	  { { .dim = { 40, 266 } } }, false, 40 },
	{ HD_OP_EDGE_SOFTMAX_AT, ATTR(0), { IDS(40, 3001), { .dim = { 3001, 8 } }, { .dim = { 40, 16 }, .positive = true } },
	  { { .dim = { 3001, 8 } } }, false, 40 },
	{ HD_OP_EDGE_SOFTMAX_SUMS, ATTR(0), { IDS(40, 3001), { .dim = { 3001, 9 } }, { .dim = { 3001, 9 } }, { .dim = { 40, 3 } } },
	  { { .dim = { 40, 9 } } }, false, 400 },
	{ HD_OP_EDGE_SOFTMAX_DX_AT, ATTR(0), { IDS(40, 3001), { .dim = { 3001, 9 } }, { .dim = { 3001, 9 } }, { .dim = { 40, 9 } },
	  { .dim = { 3001, 9 } }, { .dim = { 40, 18 } } },
	  { { .dim = { 3001, 9 } } }, false, 40 },
#endif
#ifdef OP_BITS
OP_BITS(EDGE_SOFTMAX_SUMS, "4bd0d4598509a134")
OP_BITS(EDGE_SOFTMAX_DX_AT, "7751f0fa83312cfa")
OP_BITS(EDGE_PEAKS, "92e4954d9944fb50")
OP_BITS(EDGE_SOFTMAX_AT, "75a181bafecd35e5")
OP_BITS(EDGE_SOFTMAX, "6ead8d787157cbd5")
OP_BITS(EDGE_SOFTMAX_DX, "1d941347c78de400")
#endif
