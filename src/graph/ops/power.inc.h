/* power.inc.h -- a^b of broadcast operands. The gradient of b wants a above 0. Parts of a file of an op:
 * ops.def. */

#ifdef OP
OP(POWER, "power", 2, 1, MAP, "", "a^b, f32; the gradient of b wants a above 0",
	hd_shape_pair_f32, power_grad, hd_cost_elementwise)
#endif

#ifdef OP_RULES
/* dy b a^(b-1) for a; dy a^b log a for b. */
static enum hd_err power_grad(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE, a = n.in[0], b = n.in[1], one, part, log;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	if (err == HD_OK && hd_grad_wanted(ad, a)) {
		err = hd_grad_scalar(ad, 1.0f, &one, diag);
		if (err == HD_OK)
			err = hd_grad_make(ad, node, a, HD_OP_SUB, 2, (uint32_t[]){ b, one }, NULL, &part,
				diag);
		if (err == HD_OK)
			err = hd_grad_make(ad, node, a, HD_OP_POWER, 2, (uint32_t[]){ a, part }, NULL, &part,
				diag);
		if (err == HD_OK)
			err = hd_grad_make(ad, node, a, HD_OP_MUL, 2, (uint32_t[]){ part, b }, NULL, &part,
				diag);
		if (err == HD_OK)
			err = hd_grad_add_summed(ad, node, a, HD_OP_MUL, 2, (uint32_t[]){ dy, part }, NULL,
				diag);
	}
	if (err != HD_OK || !hd_grad_wanted(ad, b))
		return err;
	err = hd_grad_make(ad, node, b, HD_OP_ACT, 1, &a, &(struct hd_attr){ .i = { HD_ACT_LOG } }, &log,
		diag);
	if (err == HD_OK)
		err = hd_grad_make(ad, node, b, HD_OP_MUL, 2, (uint32_t[]){ n.out, log }, NULL, &part, diag);
	return err == HD_OK ? hd_grad_add_summed(ad, node, b, HD_OP_MUL, 2, (uint32_t[]){ dy, part }, NULL,
		diag) : err;
}
#endif

#ifdef OP_REFERENCE
static void power(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)scratch;
	for (uint64_t e = first; e < last; e++)
		hd_ref_out(call, 0)[e] = (float)pow(hd_ref_paired(call, 0, e), hd_ref_paired(call, 1, e));
}
#endif
#ifdef OP_PLAIN
OP_PLAIN(POWER, hd_ref_elems, hd_ref_no_scratch, power)
#endif

#ifdef OP_KERNEL
HD_INLINE struct vf power_lanes(struct vf a, struct vf b) { return vf_pow(a, b); }
HD_PAIR_TILE(power)
#endif
#ifdef OP_TILES
OP_TILES(POWER, ROWS, map_ntiles, scratch_none, power_tile)
#endif

#ifdef OP_WRITER
static void power_writes(struct hd_ox *w) { hd_ox_last(w, "Pow", hd_ox_name(w, 0), hd_ox_name(w, 1), NULL); }
#endif
#ifdef OP_WRITES
OP_WRITES(POWER, power_writes)
#endif

#ifdef OP_ORACLE
static void power64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y, double **in,
	double **out)
{
	(void)n;
	for (int64_t e = 0; e < y->elems; e++) {
		double a = in[0][under64(y, &s[0], e)], b = in[1][under64(y, &s[1], e)];
		out[0][e] = a > 0 ? exp2(b * log2(a)) : pow(a, b);
	}
}
#endif
#ifdef OP_EVAL
OP_EVAL(POWER, power64)
#endif

#ifdef OP_CASES
	{ HD_OP_POWER, A(0), EXACT, 0, 3, { F(-1, 67), F(-1, 67) } },
#endif
#ifdef OP_SLOPES
	{ HD_OP_POWER, A(0), 1 | POSITIVE, { F(3, 4), F(3, 4) } },
	{ HD_OP_POWER, A(0), 1 | POSITIVE, { F(3, 4), F(1) } },
#endif
#ifdef OP_EXAMPLES
	T2(POWER, ATTR(0), S(40, 33), S(33), S(40, 33), 1),
#endif
#ifdef OP_BITS
OP_BITS(POWER, "57d81eeb2f3ad01f")
#endif

#ifdef OP_GROWS
static uint32_t power_grows(struct graph_maker *m, uint32_t x)
{
	return node2(m, HD_OP_POWER, positive(m, x), companion(m, x), (struct hd_attr){ .i = { 0 } });
}
#endif
#ifdef OP_GENERATES
OP_GENERATES("power", power_grows)
#endif
