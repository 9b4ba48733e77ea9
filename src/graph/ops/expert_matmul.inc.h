/* expert_matmul.inc.h -- products whose matrix each row names: the experts of a mixture (models/moe.h). And
 * the gradient of the matrices. Parts of a file of an op: ops.def.
 *
 *	y[r] = x[r / each] w[ids[r]]          dw[e] = sum over the rows r that name e of a[r / ..]^T b[r / ..]
 *
 * `each` ids name the matrices of one row of x where ids have one extent more than x has before its columns.
 * A row whose id is none of a matrix (-1: dropped) is 0, and adds nothing to dw.
 *
 * Work is that of the rows that there are: the rows of an expert are gathered, multiplied as one matrix, and
 * scattered. An element is one ascending chain of fused multiply-adds (gemm.inc.h), so a row has the same
 * bits in any company, and those of dw are added in the order of the rows. */

#ifdef OP
OP(EXPERT_MATMUL, "expert_matmul", 3, 1, DENSE, "tb",
	"x[..,K] ids i32[..] or [..,each] w[E,K,N] -> of each id e its row of x times w[e], [ids..,N]; "
	"tb = 1: w[E,N,K]; an id that names none: 0",
	expert_matmul_shape, expert_matmul_grad, expert_matmul_cost)
OP(EXPERT_DW, "expert_dw", 4, 1, DENSE, "",
	"a[..,M] b[..,N] ids w(shape only) -> dw[E,M,N]: of each e the sum over its ids of a^T b; a or b may "
	"have one row for each ids of the last extent",
	expert_dw_shape, NULL, expert_dw_cost)
#endif

#ifdef OP_RULES
/* Operand `i` has a row for each id, or one for those of the last extent. */
static enum hd_err expert_rows(const struct hd_graph *graph, const struct hd_node *node, int i, int ids,
	struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, i), *id = hd_rule_in(graph, node, ids);
	const uint8_t lead = (uint8_t)(x->rank - 1);
	bool fit = x->rank >= 2 && (id->rank == lead || id->rank == x->rank);

	for (int d = 0; d < lead && fit; d++)
		fit = x->dim[d] == id->dim[d];
	if (fit && id->rank == x->rank)
		fit = id->dim[lead] > 0;
	return fit ? HD_OK : hd_rule_broken(graph, node,
		"ids have the extents of the rows, or one more that is fixed", diag);
}

static enum hd_err expert_operands(const struct hd_graph *graph, const struct hd_node *node, int ids, int w,
	struct hd_diag *diag)
{
	const struct hd_value *m = hd_rule_in(graph, node, w);
	enum hd_err err = hd_rule_f32(graph, node, 1u << ids, diag);

	if (err == HD_OK && hd_rule_in(graph, node, ids)->dtype != HD_I32)
		err = hd_rule_broken(graph, node, "ids are i32", diag);
	if (err == HD_OK && (m->rank != 3 || hd_dims_product(m->dim, 3) <= 0))
		err = hd_rule_broken(graph, node, "w is [experts, .., ..] of fixed extents", diag);
	for (int i = 0; i < ids && err == HD_OK; i++)
		err = expert_rows(graph, node, i, ids, diag);
	return err;
}

static enum hd_err expert_matmul_shape(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0), *ids = hd_rule_in(graph, node, 1),
		*w = hd_rule_in(graph, node, 2);
	const int32_t tb = node->attr.i[0];
	enum hd_err err = expert_operands(graph, node, 1, 2, diag);

	if (err != HD_OK)
		return err;
	if (tb & ~1)
		return hd_rule_broken(graph, node, "tb is 0 or 1", diag);
	if (x->dim[x->rank - 1] != w->dim[tb ? 2 : 1])
		return hd_rule_broken(graph, node, "the extents summed over differ", diag);
	if (ids->rank == HD_MAX_DIMS)
		return hd_rule_broken(graph, node, "ids have too many extents", diag);
	hd_rule_set(out, ids->rank, ids->dim, HD_F32);
	out->dim[out->rank++] = w->dim[tb ? 1 : 2];
	return HD_OK;
}

static enum hd_err expert_dw_shape(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	const struct hd_value *a = hd_rule_in(graph, node, 0), *b = hd_rule_in(graph, node, 1),
		*w = hd_rule_in(graph, node, 3);
	enum hd_err err = expert_operands(graph, node, 2, 3, diag);

	if (err == HD_OK && (a->dim[a->rank - 1] != w->dim[1] || b->dim[b->rank - 1] != w->dim[2]))
		err = hd_rule_broken(graph, node, "a and b have the columns of w", diag);
	if (err == HD_OK)
		hd_rule_like(out, w);
	return err;
}

/* The gradient of a row that several ids read is the sum over them. */
static enum hd_err expert_matmul_grad(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	const struct hd_value *v = hd_grad_graph(ad)->value;
	const bool several = v[n.in[1]].rank == v[n.in[0]].rank;
	const struct hd_attr back = { .i = { !n.attr.i[0] } }, last = { .i = { 1 << (v[n.in[0]].rank - 1) } };
	uint32_t dy = HD_NONE, made = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);
	const uint32_t in[3] = { dy, n.in[1], n.in[2] };

	if (err == HD_OK && !several)
		err = hd_grad_add(ad, node, n.in[0], HD_OP_EXPERT_MATMUL, 3, in, &back, diag);
	if (err == HD_OK && several && hd_grad_wanted(ad, n.in[0])) {
		err = hd_grad_make(ad, node, n.in[0], HD_OP_EXPERT_MATMUL, 3, in, &back, &made, diag);
		err = err ? err : hd_grad_add(ad, node, n.in[0], HD_OP_REDUCE_SUM, 1, &made, &last, diag);
	}
	return err ? err : hd_grad_add(ad, node, n.in[2], HD_OP_EXPERT_DW, 4, n.attr.i[0] ?
		(uint32_t[]){ dy, n.in[0], n.in[1], n.in[2] } : (uint32_t[]){ n.in[0], dy, n.in[1], n.in[2] },
		NULL, diag);
}

/* As if each id named a matrix. */
static struct hd_cost expert_cost(const struct hd_graph *graph, const struct hd_node *node, int ids, int w,
	uint64_t rows)
{
	const struct hd_value *m = hd_rule_in(graph, node, w);
	struct hd_cost cost = hd_cost_elementwise(graph, node, rows);

	cost.flops = 2.0 * (double)hd_value_elems(hd_rule_in(graph, node, ids), rows) * (double)m->dim[1] *
		(double)m->dim[2];
	return cost;
}

static struct hd_cost expert_matmul_cost(const struct hd_graph *graph, const struct hd_node *node,
	uint64_t rows)
{
	return expert_cost(graph, node, 1, 2, rows);
}

static struct hd_cost expert_dw_cost(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	return expert_cost(graph, node, 2, 3, rows);
}
#endif

#ifdef OP_REFERENCE
static void expert_matmul(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_operand *w = &call->in[2];
	const int64_t k = hd_cols(&call->in[0]), n = hd_cols(&call->out[0]);
	const uint64_t each = call->in[1].elems * (uint64_t)k / call->in[0].elems;
	const int32_t *ids = call->in[1].at;

	(void)scratch;
	for (uint64_t u = first; u < last; u++)
		for (int64_t j = 0; j < n; j++) {
			const float *x = hd_ref_in(call, 0) + (int64_t)(u / each) * k;
			double sum = 0;
			for (int64_t i = 0; i < k && ids[u] >= 0 && ids[u] < w->dim[0]; i++)
				sum += (double)x[i] * (double)hd_ref_in(call, 2)[call->attr.i[0] ?
					(ids[u] * n + j) * k + i : (ids[u] * k + i) * n + j];
			hd_ref_out(call, 0)[(int64_t)u * n + j] = (float)sum;
		}
}

/* A unit is a row of a matrix. */
static void expert_dw(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t m = hd_cols(&call->in[0]), n = hd_cols(&call->in[1]);
	const int64_t nids = (int64_t)call->in[2].elems, of_a = nids / hd_rows(&call->in[0]),
		of_b = nids / hd_rows(&call->in[1]);
	const int32_t *ids = call->in[2].at;

	(void)scratch;
	for (uint64_t u = first; u < last; u++)
		for (int64_t j = 0; j < n; j++) {
			double sum = 0;
			for (int64_t r = 0; r < nids; r++)
				if (ids[r] == (int64_t)u / m)
					sum += (double)hd_ref_in(call, 0)[r / of_a * m + (int64_t)u % m] *
						(double)hd_ref_in(call, 1)[r / of_b * n + j];
			hd_ref_out(call, 0)[(int64_t)u * n + j] = (float)sum;
		}
}
#endif
#ifdef OP_PLAIN
OP_PLAIN(EXPERT_MATMUL, hd_ref_rows, hd_ref_no_scratch, expert_matmul)
OP_PLAIN(EXPERT_DW, hd_ref_rows, hd_ref_no_scratch, expert_dw)
#endif

#ifdef OP_KERNEL
/* A tile is a matrix and some of its columns (of dw a rectangle of it); of the rows that name it, at most
 * `block` are gathered at once. */
enum { EXPERT_COLS = 512, EXPERT_TERMS = GEMM_DEPTH };

struct expert { int64_t n, k, nids, nmats, cols, nwide, rows, ntall, block; };

static inline struct expert expert_grid(const struct hd_call *call)
{
	const struct hd_operand *w = &call->in[2];
	struct expert g = { .n = hd_cols(&call->out[0]), .k = hd_cols(&call->in[0]),
		.nids = (int64_t)call->in[1].elems, .nmats = w->dim[0] };

	for (int64_t most = EXPERT_COLS; g.cols == 0 || (most >= 64 && g.nmats * g.nwide < MATMUL_ENOUGH);
		most /= 2) {
		g.cols = share(g.n, most, 32);
		g.nwide = div_up(g.n, g.cols);
	}
	g.block = min64(GEMM_ROWS, g.nids);
	return g;
}

static inline struct expert expert_dw_grid(const struct hd_call *call)
{
	const struct hd_operand *w = &call->in[3];
	struct expert g = { .n = w->dim[2], .k = w->dim[1], .nids = (int64_t)call->in[2].elems,
		.nmats = w->dim[0] };

	g.cols = share(g.n, EXPERT_COLS, 32);
	g.nwide = div_up(g.n, g.cols);
	g.rows = share(g.k, GEMM_ROWS, GEMM_HEIGHT);
	g.ntall = div_up(g.k, g.rows);
	g.block = min64(EXPERT_TERMS, g.nids);
	return g;
}

/* The next rows that name `mat`, at most `most`, from row *at on. */
HD_INLINE int64_t expert_next(const int32_t *ids, int64_t nids, int64_t mat, int64_t most, int64_t *at,
	int32_t *row)
{
	int64_t n = 0;

	for (; *at < nids && n < most; ++*at)
		if (ids[*at] == mat)
			row[n++] = (int32_t)*at;
	return n;
}

HD_INLINE void expert_gather(float *to, int64_t pitch, const float *from, int64_t step, const int32_t *row,
	int64_t each, int64_t n, int64_t len)
{
	for (int64_t i = 0; i < n; i++)
		memcpy(to + i * pitch, from + row[i] / each * step, (size_t)len * sizeof *to);
}

/* Floats: the list of rows, two gathered matrices, then the product's own. */
HD_INLINE int64_t expert_room(int64_t rows, int64_t pitch) { return round_up(rows * pitch, HD_UNIT); }

static inline uint32_t expert_matmul_ntiles(const struct hd_call *call)
{
	const struct expert g = expert_grid(call);
	return (uint32_t)(g.nmats * g.nwide);
}

static inline size_t expert_matmul_scratch(const struct hd_call *call)
{
	const struct expert g = expert_grid(call);
	return (size_t)(expert_room(g.block, 1) + expert_room(g.block, gemm_pitch(g.k)) +
		expert_room(g.block, g.cols)) * sizeof(float) + gemm_scratch(g.block, g.cols, g.k);
}

/* Rows that name no matrix: columns [j, j + n). */
static inline void expert_zeros(const struct expert *g, const int32_t *ids, float *y, int64_t n)
{
	for (int64_t r = 0; r < g->nids; r++)
		if (ids[r] < 0 || ids[r] >= g->nmats)
			memset(y + r * g->n, 0, (size_t)n * sizeof *y);
}

static inline void expert_matmul_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const struct expert g = expert_grid(call);
	const int64_t mat = tile % g.nmats, j = tile / g.nmats * g.cols, n = min64(g.cols, g.n - j),
		pitch = gemm_pitch(g.k), each = g.nids / hd_rows(&call->in[0]);
	const float *w = (const float *)call->in[2].at + mat * g.n * g.k;
	const struct mat right = call->attr.i[0] ? (struct mat){ w + j * g.k, g.k, true } :
		(struct mat){ w + j, g.n, false };
	const int32_t *ids = call->in[1].at;
	float *y = (float *)call->out[0].at + j;
	int32_t *row = scratch;
	float *a = (float *)scratch + expert_room(g.block, 1), *c = a + expert_room(g.block, pitch),
		*work = c + expert_room(g.block, g.cols);
	int64_t at = 0, m;

	while ((m = expert_next(ids, g.nids, mat, g.block, &at, row)) > 0) {
		const struct gemm_out out = { c, g.cols, m, n, false };
		expert_gather(a, pitch, call->in[0].at, g.k, row, each, m, g.k);
		gemm((struct mat){ a, pitch, false }, right, out, g.k, work);
		for (int64_t i = 0; i < m; i++)
			memcpy(y + row[i] * g.n, c + i * g.cols, (size_t)n * sizeof *y);
	}
	if (mat == 0)
		expert_zeros(&g, ids, y, n);
}

static inline uint32_t expert_dw_ntiles(const struct hd_call *call)
{
	const struct expert g = expert_dw_grid(call);
	return (uint32_t)(g.nmats * g.nwide * g.ntall);
}

static inline size_t expert_dw_scratch(const struct hd_call *call)
{
	const struct expert g = expert_dw_grid(call);
	return (size_t)(expert_room(g.block, 1) + expert_room(g.block, g.rows) +
		expert_room(g.block, g.cols)) * sizeof(float) + gemm_scratch(g.rows, g.cols, g.block);
}

static inline void expert_dw_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const struct expert g = expert_dw_grid(call);
	const int64_t mat = tile % g.nmats, i = tile / g.nmats % g.ntall * g.rows,
		j = tile / g.nmats / g.ntall * g.cols, m = min64(g.rows, g.k - i), n = min64(g.cols, g.n - j),
		of_a = g.nids / hd_rows(&call->in[0]), of_b = g.nids / hd_rows(&call->in[1]);
	const int32_t *ids = call->in[2].at;
	int32_t *row = scratch;
	float *a = (float *)scratch + expert_room(g.block, 1), *b = a + expert_room(g.block, g.rows),
		*work = b + expert_room(g.block, g.cols),
		*y = (float *)call->out[0].at + (mat * g.k + i) * g.n + j;
	int64_t at = 0, terms, before = 0;

	for (; (terms = expert_next(ids, g.nids, mat, g.block, &at, row)) > 0; before += terms) {
		expert_gather(a, g.rows, (const float *)call->in[0].at + i, g.k, row, of_a, terms, m);
		expert_gather(b, g.cols, (const float *)call->in[1].at + j, g.n, row, of_b, terms, n);
		gemm((struct mat){ a, g.rows, true }, (struct mat){ b, g.cols, false },
			(struct gemm_out){ y, g.n, m, n, before > 0 }, terms, work);
	}
	for (int64_t r = 0; r < m && before == 0; r++)
		memset(y + r * g.n, 0, (size_t)n * sizeof *y);
}
#endif
#ifdef OP_TILES
OP_TILES(EXPERT_MATMUL, ROWS, expert_matmul_ntiles, expert_matmul_scratch, expert_matmul_tile)
OP_TILES(EXPERT_DW, CALL, expert_dw_ntiles, expert_dw_scratch, expert_dw_tile)
#endif

#ifdef OP_ORACLE
/* By the elements of w: where each goes. */
static void expert_matmul64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y,
	double **in, double **out)
{
	const int64_t k = s[0].last, cols = y->last, each = s[1].elems / (s[0].elems / k);

	for (int64_t t = 0; t < s[2].elems; t++) {
		const int64_t high = t / s[2].last % s[2].dim[1], low = t % s[2].last;
		const int64_t from = n->attr.i[0] ? low : high, to = n->attr.i[0] ? high : low;
		for (int64_t r = 0; r < s[1].elems; r++)
			if (in[1][r] == (double)(t / s[2].last / s[2].dim[1]))
				out[0][r * cols + to] += in[0][r / each * k + from] * in[2][t];
	}
}

/* By the rows: what each adds to its matrix. */
static void expert_dw64(const struct hd_node *node, const struct shape64 *s, const struct shape64 *y,
	double **in, double **out)
{
	const int64_t m = s[0].last, n = s[1].last;

	(void)node;
	for (int64_t r = s[2].elems; r-- > 0;)
		for (int64_t t = 0; t < m * n && in[2][r] >= 0 && in[2][r] < (double)y->dim[0]; t++)
			out[0][(int64_t)in[2][r] * m * n + t] +=
				in[0][r / (s[2].elems * m / s[0].elems) * m + t / n] *
				in[1][r / (s[2].elems * n / s[1].elems) * n + t % n];
}
#endif
#ifdef OP_EVAL
OP_EVAL(EXPERT_MATMUL, expert_matmul64)
OP_EVAL(EXPERT_DW, expert_dw64)
#endif

#ifdef OP_CASES
	{ HD_OP_EXPERT_MATMUL, A(0), LINEAR, 4, 1, { F(-1, 7, 33), I(-1, 7), F(3, 33, 19) } },
	{ HD_OP_EXPERT_MATMUL, A(1), LINEAR, 4, 1, { F(-1, 7, 33), I(-1, 7, 2), F(5, 70, 33) } },
	{ HD_OP_EXPERT_MATMUL, A(1), LINEAR, 4, 1, { F(-1, 5), I(-1, 3), F(1, 4, 5) } },
	{ HD_OP_EXPERT_DW, A(0), LINEAR, 4, 1, { F(-1, 7, 33), F(-1, 7, 19), I(-1, 7), F(3, 33, 19) } },
	{ HD_OP_EXPERT_DW, A(0), LINEAR, 4, 1, { F(-1, 7, 2, 17), F(-1, 7, 40), I(-1, 7, 2), F(5, 17, 40) } },
	{ HD_OP_EXPERT_DW, A(0), LINEAR, 4, 1, { F(-1, 5), F(-1, 3, 4), I(-1, 3), F(1, 5, 4) } },
#endif
#ifdef OP_SLOPES
	{ HD_OP_EXPERT_MATMUL, A(0), 1, { F(4, 5), I(4), F(3, 5, 2) } },
	{ HD_OP_EXPERT_MATMUL, A(1), 1, { F(2, 3, 4), I(2, 3, 2), F(3, 5, 4) } },
#endif
#ifdef OP_EXAMPLES
#define EXPERTS(rows, each, experts, k, n) \
	{ HD_OP_EXPERT_MATMUL, ATTR(0), { { .dim = { rows, k } }, { .dim = { rows, each }, .ids = experts, .masked = true }, { .dim = { experts, k, n } } }, \
	  { { .dim = { rows, each, n } } }, false, k }, \
	{ HD_OP_EXPERT_MATMUL, ATTR(1), { { .dim = { rows, k } }, { .dim = { rows, each }, .ids = experts, .masked = true }, { .dim = { experts, n, k } } }, \
	  { { .dim = { rows, each, n } } }, false, k }, \
	{ HD_OP_EXPERT_DW, ATTR(0), { { .dim = { rows, k } }, { .dim = { rows, each, n } }, { .dim = { rows, each }, .ids = experts, .masked = true }, { .dim = { experts, k, n } } }, \
	  { { .dim = { experts, k, n } } }, false, rows * each }
	EXPERTS(70, 2, 5, 33, 133), EXPERTS(900, 1, 2, 31, 17), EXPERTS(3, 3, 7, 130, 5),
	EXPERTS(40, 2, 1, 385, 530),
#undef EXPERTS
#endif
#ifdef OP_BITS
OP_BITS(EXPERT_MATMUL, "1d2f3bda866bdad5")
OP_BITS(EXPERT_DW, "b5f82d81318d5af2")
#endif
#ifdef OP_SELECTS
OP_SELECTS(EXPERT_MATMUL)
OP_SELECTS(EXPERT_DW)
#endif
