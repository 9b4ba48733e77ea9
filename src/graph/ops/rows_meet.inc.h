/* rows_meet.inc.h -- rows of a virtual node and of others: what the virtual nodes of a graph in several
 * intervals have of one value. Where they meet (engine/lockstep.h) a ghost is a row of any of them; a device
 * that runs the node knows those of its own alone, and the others are zeros. Parts of a file of an op:
 * ops.def; edges: edge_pair.inc.h.
 *
 * It passes no gradient on: that of a sum over its rows is a sum over the edges the other way, of rows of the
 * gradient that meet (far_end.h). So nothing is ever scattered. */

#ifdef OP
OP(ROWS_MEET, "rows_meet", 2, 1, GRAPH, "",
	"x[V,C] ghosts i32[G] -> x, then its rows that are named as ghosts (-1: zeros), [V+G,C]",
	rows_meet_shape, NULL, rows_meet_cost)
#endif

#ifdef OP_RULES
static enum hd_err rows_meet_shape(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0), *ghosts = hd_rule_in(graph, node, 1);

	if (x->dtype != HD_F32 || x->rank != 2)
		return hd_rule_broken(graph, node, "rows of vertices are f32, two extents", diag);
	if (ghosts->dtype != HD_I32 || ghosts->rank != 1)
		return hd_rule_broken(graph, node, "ghosts are i32, one extent", diag);
	if ((x->dim[0] < 0) != (ghosts->dim[0] < 0))
		return hd_rule_broken(graph, node, "vertices and ghosts both grow with the rows, or none",
			diag);
	hd_rule_set(out, 2, (int64_t[]){ x->dim[0] + ghosts->dim[0], x->dim[1] }, HD_F32);
	return HD_OK;
}

static struct hd_cost rows_meet_cost(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	return (struct hd_cost){ 0, 2.0 * (double)hd_value_bytes(&graph->value[node->out], rows) +
		(double)hd_value_bytes(hd_rule_in(graph, node, 1), rows) };
}
#endif

#ifdef OP_REFERENCE
static void rows_meet(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t cols = hd_cols(&call->out[0]), own = call->in[0].dim[0];

	(void)scratch;
	for (uint64_t v = first; v < last; v++) {
		int64_t at = (int64_t)v < own ? (int64_t)v : end_of(call, 1, v - (uint64_t)own, &call->in[0]);
		for (int64_t c = 0; c < cols; c++)
			hd_ref_out(call, 0)[(int64_t)v * cols + c] =
				at < 0 ? 0.0f : hd_ref_in(call, 0)[at * cols + c];
	}
}
#endif
#ifdef OP_PLAIN
OP_PLAIN(ROWS_MEET, hd_ref_rows, hd_ref_no_scratch, rows_meet)
#endif

#ifdef OP_KERNEL
/* Tiles of ghosts; the last one copies the own rows. */
static inline uint32_t rows_meet_ntiles(const struct hd_call *call)
{
	return 1 + (uint32_t)div_up((int64_t)call->in[1].elems, EDGE_TILE);
}

static inline void rows_meet_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const uint64_t cols = (uint64_t)hd_cols(&call->out[0]), first = (uint64_t)tile * EDGE_TILE;
	const int32_t *ghost = call->in[1].at;
	float *ghosts = (float *)call->out[0].at + call->in[0].elems;
	(void)scratch;

	if (tile + 1 == rows_meet_ntiles(call))
		memcpy(call->out[0].at, call->in[0].at, call->in[0].elems * sizeof(float));
	for (uint64_t g = first; g < first + EDGE_TILE && g < call->in[1].elems; g++) {
		const float *x = row_at(&call->in[0], ghost[g]);
		if (x)
			memcpy(ghosts + g * cols, x, cols * sizeof *x);
		else
			memset(ghosts + g * cols, 0, cols * sizeof *x);
	}
}
#endif
#ifdef OP_TILES
OP_TILES(ROWS_MEET, CALL, rows_meet_ntiles, scratch_none, rows_meet_tile)
#endif

#ifdef OP_ORACLE
static void rows_meet64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y,
	double **in,
	double **out)
{
	(void)n;
	for (int64_t i = 0; i < y->elems; i++) {
		double at = (double)(i / y->last);
		if (i >= s[0].elems)
			at = in[1][(i - s[0].elems) / y->last];
		out[0][i] = is_end64(at, &s[0]) ? in[0][(int64_t)at * y->last + i % y->last] : 0;
	}
}
#endif
#ifdef OP_EVAL
OP_EVAL(ROWS_MEET, rows_meet64)
#endif

#ifdef OP_CASES
	{ HD_OP_ROWS_MEET, A(0), EXACT, 0, 1, { F(-2, 15), I(-3) } },
	{ HD_OP_ROWS_MEET, A(0), EXACT, 0, 1, { F(7, 131), I(9) } },
#endif
#ifdef OP_EXAMPLES
	{ HD_OP_ROWS_MEET, ATTR(0), { { .dim = { 40, 133 } }, IDS(40, 2100) },
	  { { .dim = { 2140, 133 } } }, false, 1 },
#endif
#ifdef OP_BITS
OP_BITS(ROWS_MEET, "d1f761b2b8d14636")
#endif
