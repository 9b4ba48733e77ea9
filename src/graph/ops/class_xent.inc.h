/* class_xent.inc.h -- softmax with cross-entropy whose classes have weights and whose labels are smoothed, as
 * PyTorch's cross_entropy(weight, label_smoothing) computes it, in one reading of the logits:
 *
 *	loss = (1 - s) w[y] (lse - x[y]) + s / V * sum over c of w[c] (lse - x[c])
 *
 * A masked row (label below 0) has the loss 0; what a batch is divided by, the sum of w[y], is a gather
 * beside it. Without weights and smoothing softmax_xent is the op. Parts of a file of an op: ops.def. */

#ifdef OP
OP(CLASS_XENT, "class_xent", 3, 3, REDUCTION, "f:smooth",
	"logits[..,V] labels i32[..] w[V] -> loss[..], lse[..], hit[..] (w[label] if argmax is it); "
	"smooth: share of the label spread over all classes; label -1: masked, loss and hit 0",
	class_xent_shape, class_xent_grad, hd_cost_elementwise)
OP(CLASS_XENT_DX, "class_xent_dx", 4, 1, MAP, "f:smooth",
	"logits labels lse w -> d(sum of losses)/d logits; masked rows 0",
	class_xent_dx_shape, NULL, hd_cost_elementwise)
#endif

#ifdef OP_RULES
static enum hd_err class_xent_check(const struct hd_graph *graph, const struct hd_node *node, int weights,
	struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0), *w = hd_rule_in(graph, node, weights);

	if (w->rank != 1 || w->dim[0] != x->dim[x->rank - 1])
		return hd_rule_broken(graph, node, "there is a weight for each class", diag);
	if (!(node->attr.f[0] >= 0 && node->attr.f[0] <= 1))
		return hd_rule_broken(graph, node, "smooth is a share from 0 to 1", diag);
	return HD_OK;
}

static enum hd_err class_xent_shape(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	enum hd_err err = hd_shape_softmax_xent(graph, node, out, diag);

	return err ? err : class_xent_check(graph, node, 2, diag);
}

static enum hd_err class_xent_dx_shape(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	enum hd_err err = hd_shape_softmax_xent_dx(graph, node, out, diag);

	return err ? err : class_xent_check(graph, node, 3, diag);
}

static enum hd_err class_xent_grad(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	enum hd_err err = hd_rule_no_grad(ad, node, 1, diag);

	if (err == HD_OK)
		err = hd_rule_no_grad(ad, node, 2, diag);
	if (err == HD_OK && hd_grad_wanted(ad, n.in[2]))
		err = hd_fail(diag, HD_E_INVAL, "node %u (class_xent): its weights are not trained", node);
	return err ? err : hd_rule_loss_grad(ad, node, n.in[0], HD_OP_CLASS_XENT_DX, 4,
		(uint32_t[]){ n.in[0], n.in[1], n.out + 1, n.in[2] }, &n.attr, diag);
}
#endif

#ifdef OP_REFERENCE
static uint64_t class_xent_units(const struct hd_call *call) { return call->out[0].elems; }

static void class_xent(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t v = hd_cols(&call->in[0]);
	const double smooth = (double)call->attr.f[0];
	const int32_t *labels = call->in[1].at;
	const float *w = hd_ref_in(call, 2);

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		const float *x = hd_ref_in(call, 0) + (int64_t)u * v;
		double sum = 0, even = 0;
		int64_t most = 0;
		for (int64_t i = 1; i < v; i++)
			most = x[i] > x[most] ? i : most;
		for (int64_t i = 0; i < v; i++)
			sum += exp((double)x[i] - (double)x[most]);
		const double lse = (double)x[most] + log(sum);
		for (int64_t i = 0; i < v && smooth > 0; i++)
			even += (double)w[i] * (lse - (double)x[i]);
		hd_ref_out(call, 0)[u] = labels[u] < 0 ? 0.0f : labels[u] >= v ? NAN :
			(float)((1 - smooth) * (double)w[labels[u]] * (lse - (double)x[labels[u]]) +
			smooth / (double)v * even);
		hd_ref_out(call, 1)[u] = (float)lse;
		hd_ref_out(call, 2)[u] = labels[u] == most ? w[most] : 0.0f;
	}
}

static void class_xent_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t v = hd_cols(&call->in[0]);
	const double smooth = (double)call->attr.f[0], even = smooth / (double)v;
	const int32_t *labels = call->in[1].at;
	const float *w = hd_ref_in(call, 3);
	double all = 0;

	(void)scratch;
	for (int64_t i = 0; i < v; i++)
		all += (double)w[i];
	for (uint64_t u = first; u < last; u++) {
		const int64_t y = labels[u];
		const double own = y >= 0 && y < v ? (1 - smooth) * (double)w[y] : 0;
		for (int64_t i = 0; i < v; i++) {
			const int64_t at = (int64_t)u * v + i;
			const double p = exp((double)hd_ref_in(call, 0)[at] - (double)hd_ref_in(call, 2)[u]);
			hd_ref_out(call, 0)[at] = y < 0 ? 0.0f : (float)(p * (own + even * all) -
				even * (double)w[i] - (i == y ? own : 0));
		}
	}
}
#endif
#ifdef OP_PLAIN
OP_PLAIN(CLASS_XENT, class_xent_units, hd_ref_no_scratch, class_xent)
OP_PLAIN(CLASS_XENT_DX, hd_ref_rows, hd_ref_no_scratch, class_xent_dx)
#endif

#ifdef OP_KERNEL
HD_INLINE float class_weight_sum(const float *w, size_t n)
{
	struct vf lanes = vf_set(0.0f);

	HD_UNITS(i, len, n)
		lanes = vf_add(lanes, vf_load_n(w + i, len));
	return vf_sum(lanes);
}

/* Sum over the classes of w (lse - x). */
HD_INLINE float class_even(const float *x, const float *w, size_t n, float lse)
{
	struct vf lanes = vf_set(0.0f);

	HD_UNITS(i, len, n) {
		struct vf far = vf_sub(vf_set(lse), vf_load_n(x + i, len));
		lanes = vf_add(lanes, vf_only(vf_mul(vf_load_n(w + i, len), far), len, vf_set(0.0f)));
	}
	return vf_sum(lanes);
}

static inline void class_xent_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const size_t cols = (size_t)hd_cols(&call->in[0]);
	const struct elem_run run = row_run(call->in[1].elems, cols, tile);
	const float smooth = call->attr.f[0], *w = call->in[2].at;
	const int32_t *label = call->in[1].at;
	float *loss = call->out[0].at, *lse = call->out[1].at, *hit = call->out[2].at, most;
	(void)scratch;

	for (uint64_t row = run.at; row < run.at + run.n; row++) {
		const float *x = (const float *)call->in[0].at + row * cols;
		const int32_t y = label[row];
		lse[row] = row_lse(x, cols, &most);
		hit[row] = 0.0f;
		/* no such class: no number, which the step will tell */
		loss[row] = y < 0 ? 0.0f : NAN;
		if (y < 0 || y >= (int64_t)cols)
			continue;
		loss[row] = (1.0f - smooth) * (w[y] * (lse[row] - x[y]));
		if (smooth > 0.0f)
			loss[row] += smooth / (float)cols * class_even(x, w, cols, lse[row]);
		hit[row] = row_hit(x, y, most) ? w[y] : 0.0f;
	}
}

static inline void class_xent_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const size_t cols = (size_t)hd_cols(&call->in[0]);
	const struct elem_run run = row_run(call->in[1].elems, cols, tile);
	const float smooth = call->attr.f[0], *lse = call->in[2].at, *w = call->in[3].at;
	const float even = smooth / (float)cols, all = even * class_weight_sum(w, cols);
	const int32_t *label = call->in[1].at;
	(void)scratch;

	for (uint64_t row = run.at; row < run.at + run.n; row++) {
		const float *x = (const float *)call->in[0].at + row * cols;
		float *dx = (float *)call->out[0].at + row * cols;
		const int32_t y = label[row];
		const float own = y >= 0 && y < (int64_t)cols ? (1.0f - smooth) * w[y] : 0.0f;
		if (y < 0) {
			memset(dx, 0, cols * sizeof *dx);
			continue;
		}
		HD_UNITS(i, len, cols) {
			struct vf p = vf_exp(vf_sub(vf_load_n(x + i, len), vf_set(lse[row])));
			struct vf spread = vf_mul(vf_set(even), vf_load_n(w + i, len));
			vf_store_n(dx + i, vf_sub(vf_mul(p, vf_set(own + all)), spread), len);
		}
		if (y < (int64_t)cols)
			dx[y] -= own;
	}
}
#endif
#ifdef OP_TILES
OP_TILES(CLASS_XENT, ROWS, logits_ntiles, scratch_none, class_xent_tile)
OP_TILES(CLASS_XENT_DX, ROWS, logits_ntiles, scratch_none, class_xent_dx_tile)
#endif

#ifdef OP_ORACLE
/* By the targets: the label has 1 - s more than its even share. */
static void class_xent64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y,
	double **in, double **out)
{
	const int64_t v = s[0].last;

	(void)y;
	for (int64_t r = 0; r < s[0].elems / v; r++) {
		const double *x = in[0] + r * v, smooth = (double)n->attr.f[0];
		const int64_t label = (int64_t)in[1][r];
		bool first = label >= 0;
		for (int64_t i = 0; i < v; i++)
			out[1][r] += exp(x[i]);
		out[1][r] = log(out[1][r]);
		for (int64_t i = v - 1; i >= 0 && label >= 0; i--) {
			const double target = smooth / (double)v + (i == label ? 1 - smooth : 0);
			out[0][r] -= target * in[2][i] * (x[i] - out[1][r]);
			first &= i < label ? x[i] < x[label] : x[i] <= x[label];
		}
		out[2][r] = first ? in[2][label] : 0;
	}
}
#endif
#ifdef OP_EVAL
OP_EVAL(CLASS_XENT, class_xent64)
#endif

#ifdef OP_CASES
	{ HD_OP_CLASS_XENT, { .f = { 0.1f } }, PEAK, 16, 8, { F(-1, 10), I(-1), F(10) } },
	{ HD_OP_CLASS_XENT, A(0), PEAK, 16, 8, { F(-1, 10), I(-1), F(10) } },
	{ HD_OP_CLASS_XENT, { .f = { 0.3f } }, PEAK, 16, 60, { F(-1, 3, 257), I(-1, 3), F(257) } },
	{ HD_OP_CLASS_XENT_DX, { .f = { 0.1f } }, PEAK, 16, 8, { F(-1, 10), I(-1), F(-1), F(10) } },
	{ HD_OP_CLASS_XENT_DX, { .f = { 0.3f } }, PEAK, 16, 60, { F(-1, 3, 257), I(-1, 3), F(-1, 3), F(257) } },
#endif
#ifdef OP_SLOPES
	{ HD_OP_CLASS_XENT, { .f = { 0.2f } }, 1, { F(7, 5), I(7), X(5) } },
	{ HD_OP_CLASS_XENT, A(0), 1, { F(2, 3, 5), I(2, 3), X(5) } },
#endif
#ifdef OP_EXAMPLES
#define CLASSES(smooth, rows, v) \
	{ HD_OP_CLASS_XENT, REAL(smooth), { { .dim = { rows, v } }, { .dim = { rows }, .ids = v, .masked = true }, { .dim = { v }, .positive = true } }, \
	  { { .dim = { rows } }, { .dim = { rows } }, { .dim = { rows } } }, false, 4 * (v) }, \
	{ HD_OP_CLASS_XENT_DX, REAL(smooth), { { .dim = { rows, v } }, { .dim = { rows }, .ids = v, .masked = true }, { .dim = { rows } }, { .dim = { v }, .positive = true } }, \
	  { { .dim = { rows, v } } }, false, 4 * (v) }
	CLASSES(0.1f, 40, 10), CLASSES(0.0f, 7, 16), CLASSES(0.3f, 2, 1025),
#undef CLASSES
#endif
#ifdef OP_BITS
OP_BITS(CLASS_XENT, "e18359d769b25449")
OP_BITS(CLASS_XENT_DX, "3bb8722dce80456d")
#endif
#ifdef OP_SELECTS
OP_SELECTS(CLASS_XENT_DX)
#endif
