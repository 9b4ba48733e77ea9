/* rotary_by.inc.h -- rotary positions by given frequencies: those that published models stretch for longer
 * texts (graph/models/rope.h), and those that turn a part of each head. Parts of a file of an op: ops.def.
 *
 * Of each head the first R channels are turned, element i with i + R/2, by t f[i] (Su et al., "RoFormer",
 * 2021), and multiplied by `scale`; the others pass. A linear map: its gradient is the same with the opposite
 * angles. ROTARY is the case of f[i] = base^(-2i/D), which costs no operand. */

#ifdef OP
OP(ROTARY_BY, "rotary_by", 2, 1, MAP, "heads back f:scale",
	"x[N,T,heads D] f[R/2]: elements i and i + R/2 of each head turned by t f[i] and times scale (0: 1), "
	"the rest as it is; back: by the opposite angles, which is the gradient",
	rotary_by_shape, rotary_by_grad, hd_cost_elementwise)
#endif

#ifdef OP_RULES
static enum hd_err rotary_by_shape(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0), *f = hd_rule_in(graph, node, 1);
	int32_t heads = node->attr.i[0];
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err != HD_OK)
		return err;
	if (x->rank != 3 || x->dim[1] < 0 || x->dim[2] < 0)
		return hd_rule_broken(graph, node, "x is [N,T,heads D]", diag);
	if (heads < 1 || x->dim[2] % heads != 0)
		return hd_rule_broken(graph, node, "heads divides the channels", diag);
	if (f->rank != 1 || f->dim[0] < 1 || 2 * f->dim[0] > x->dim[2] / heads)
		return hd_rule_broken(graph, node, "each frequency turns two channels of a head", diag);
	if (node->attr.i[1] & ~1 || !(node->attr.f[0] >= 0.0f))
		return hd_rule_broken(graph, node, "back is 0 or 1, scale is above 0, or 0", diag);
	hd_rule_like(out, x);
	return HD_OK;
}

static enum hd_err rotary_by_grad(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	struct hd_attr attr = n.attr;

	attr.i[1] = !attr.i[1];
	if (hd_grad_wanted(ad, n.in[1]))
		return hd_fail(diag, HD_E_INVAL,
			"rotary_by: frequencies are not learned; make them a constant");
	return hd_grad_add(ad, node, n.in[0], HD_OP_ROTARY_BY, 2,
		(uint32_t[]){ hd_grad_of(ad, n.out), n.in[1] }, &attr, diag);
}
#endif

#ifdef OP_REFERENCE
static void rotary_by(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_operand *x = &call->in[0];
	const int64_t d = x->dim[2] / call->attr.i[0], half = call->in[1].dim[0];
	const double scale = call->attr.f[0] > 0 ? (double)call->attr.f[0] : 1;

	(void)scratch;
	for (uint64_t u = first; u < last; u++)
		for (int64_t e = 0; e < x->dim[2]; e++) {
			const float *at = hd_ref_in(call, 0) + (int64_t)u * x->dim[2] + e;
			float *y = hd_ref_out(call, 0) + (int64_t)u * x->dim[2] + e;
			const bool high = e % d >= half;
			if (e % d >= 2 * half) {
				*y = *at;
				continue;
			}
			double angle = (double)((int64_t)u % x->dim[1]) *
				(double)hd_ref_in(call, 1)[e % d % half];
			double across = (double)at[high ? -half : half] * (high ? 1 : -1) *
				(call->attr.i[1] ? -sin(angle) : sin(angle));
			*y = (float)(scale * ((double)*at * cos(angle) + across));
		}
}
#endif
#ifdef OP_PLAIN
OP_PLAIN(ROTARY_BY, hd_ref_rows, hd_ref_no_scratch, rotary_by)
#endif

#ifdef OP_KERNEL
/* High and low parts of turns, sines, cosines. */
static inline size_t rotary_by_scratch(const struct hd_call *call)
{
	return (size_t)(4 * ((call->in[1].dim[0] + HD_UNIT - 1) / HD_UNIT * HD_UNIT)) * sizeof(float);
}

/* Frequencies in turns, f / (2 pi), as the sum of two floats. */
static inline void rotary_by_turns(const float *f, int64_t half, float *high, float *low)
{
	for (int64_t i = 0; i < half; i++) {
		double turns = (double)f[i] * 0.15915494309189535;
		high[i] = (float)turns;
		low[i] = (float)(turns - (double)high[i]);
	}
}

static inline void rotary_by_row(const float *x, float *y, int64_t heads, size_t d, size_t half,
	const float *sine, const float *cosine)
{
	for (int64_t h = 0; h < heads; h++, x += d, y += d) {
		HD_UNITS(i, len, half) {
			struct vf a = vf_load_n(x + i, len), b = vf_load_n(x + half + i, len),
				s = vf_load_n(sine + i, len), c = vf_load_n(cosine + i, len);
			vf_store_n(y + i, vf_sub(vf_mul(a, c), vf_mul(b, s)), len);
			vf_store_n(y + half + i, vf_add(vf_mul(b, c), vf_mul(a, s)), len);
		}
		HD_UNITS(i, len, d - 2 * half)
			vf_store_n(y + 2 * half + i, vf_load_n(x + 2 * half + i, len), len);
	}
}

static inline void rotary_by_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	int64_t heads = call->attr.i[0], t = call->in[0].dim[1], cols = call->in[0].dim[2],
		half = call->in[1].dim[0], room = (half + HD_UNIT - 1) / HD_UNIT * HD_UNIT;
	struct elem_run run = row_run((uint64_t)hd_rows(&call->in[0]), (uint64_t)cols, tile);
	float *high = scratch, *low = high + room, *sine = low + room, *cosine = sine + room;
	const struct vf scale = vf_set(call->attr.f[0] > 0 ? call->attr.f[0] : 1.0f),
		back = vf_set(call->attr.i[1] ? -1.0f : 1.0f);

	rotary_by_turns(call->in[1].at, half, high, low);
	for (uint64_t row = run.at; row < run.at + run.n; row++) {
		struct vf at = vf_set((float)((int64_t)row % t));
		HD_UNITS(i, len, (size_t)half) {
			struct vf f = vf_load_n(high + i, len), p = vf_mul(at, f), s, c;
			struct vf e = vf_fma(at, vf_load_n(low + i, len),
				vf_fma(at, f, vf_sub(vf_set(0.0f), p)));
			turn_of(p, e, &s, &c);
			vf_store_n(sine + i, vf_mul(vf_mul(s, back), scale), len);
			vf_store_n(cosine + i, vf_mul(c, scale), len);
		}
		rotary_by_row((const float *)call->in[0].at + row * (uint64_t)cols,
			(float *)call->out[0].at + row * (uint64_t)cols, heads, (size_t)(cols / heads),
			(size_t)half, sine, cosine);
	}
}
#endif
#ifdef OP_TILES
OP_TILES(ROTARY_BY, ROWS, rotary_ntiles, rotary_by_scratch, rotary_by_tile)
#endif

#ifdef OP_ORACLE
/* A pair is a complex number, multiplied by scale e^(i angle). */
static void rotary_by64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y,
	double **in,
	double **out)
{
	int64_t half = s[1].elems, each = s[0].last / n->attr.i[0];
	double scale = n->attr.f[0] > 0 ? (double)n->attr.f[0] : 1;

	for (int64_t e = 0; e < y->elems; e++) {
		int64_t pair = e % each, t = e / s[0].last % s[0].dim[1];
		double angle = pair < half ? (double)t * in[1][pair] * (n->attr.i[1] ? -1 : 1) : 0;
		if (pair >= 2 * half)
			out[0][e] = in[0][e];
		if (pair >= half)
			continue;
		out[0][e] = scale * (in[0][e] * cos(angle) - in[0][e + half] * sin(angle));
		out[0][e + half] = scale * (in[0][e] * sin(angle) + in[0][e + half] * cos(angle));
	}
}
#endif
#ifdef OP_EVAL
OP_EVAL(ROTARY_BY, rotary_by64)
#endif

#ifdef OP_CASES
	{ HD_OP_ROTARY_BY, { .i = { 3, 0 }, .f = { 1.25f } }, PEAK, 8, 1, { F(-1, 37, 30), F(3) } },
	{ HD_OP_ROTARY_BY, { .i = { 2, 1 } }, PEAK, 8, 2, { F(-1, 9, 160), F(40) } },
	{ HD_OP_ROTARY_BY, { .i = { 1, 0 } }, PEAK, 8, 1, { F(-1, 1500, 5), F(1) } },
#endif
#ifdef OP_SLOPES
	{ HD_OP_ROTARY_BY, { .i = { 2, 0 }, .f = { 1.5f } }, 1, { F(2, 5, 12), X(2) } },
	{ HD_OP_ROTARY_BY, { .i = { 1, 1 } }, 1, { F(2, 3, 4), X(2) } },
#endif
#ifdef OP_EXAMPLES
	{ HD_OP_ROTARY_BY, { .i = { 3, 0 }, .f = { 0.75f } }, { { .dim = { 2, 300, 3 * 22 } }, { .dim = { 9 } } }, { { .dim = { 2, 300, 3 * 22 } } }, false, 1 },
	{ HD_OP_ROTARY_BY, { .i = { 1, 1 } }, { { .dim = { 3, 5, 130 } }, { .dim = { 65 } } }, { { .dim = { 3, 5, 130 } } }, false, 1 },
#endif
#ifdef OP_BITS
OP_BITS(ROTARY_BY, "ac6205df7e786b72")
#endif

#ifdef OP_GROWS
static uint32_t rotary_by_grows(struct graph_maker *m, uint32_t x)
{
	if (!is_sequence(m, x) || shape(m, x)->dim[2] < 3)
		return HD_NONE;
	uint32_t by = leaf(m, false, HD_F32, 1, (int64_t[]){ 1 });
	return node2(m, HD_OP_ROTARY_BY, x, by, (struct hd_attr){ .i = { 1, coin(m) }, .f = { 0.5f } });
}
#endif
#ifdef OP_GENERATES
OP_GENERATES("rotary_by", rotary_by_grows)
#endif
