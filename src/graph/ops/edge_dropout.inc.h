/* edge_dropout.inc.h -- dropout of values of the edges, keyed by the number of the edge in the graph:
 * whichever
 * end computes it, whichever interval that is of, draws the same. It is its own gradient. Parts of a file of
 * an op: ops.def; edges: edge_pair.inc.h. */

#ifdef OP
OP(EDGE_DROPOUT, "edge_dropout", 2, 1, RANDOM, "f:p",
	"number i32[E] e[E,K] -> e / (1-p) where kept, else 0; keyed by the edge's number and the column; "
	"number -1: 0",
	edge_dropout_shape, edge_dropout_grad, edge_cost)
#endif

#ifdef OP_RULES
static enum hd_err edge_dropout_shape(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	enum hd_err err = edge_operands(graph, node, 1, diag);

	err = err ? err : edge_rows(graph, node, 1, diag);
	if (err == HD_OK && !(node->attr.f[0] >= 0 && node->attr.f[0] < 1))
		err = hd_rule_broken(graph, node, "p is in [0, 1)", diag);
	if (err == HD_OK)
		hd_rule_like(out, hd_rule_in(graph, node, 1));
	return err;
}

static enum hd_err edge_dropout_grad(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = HD_NONE;
	enum hd_err err = hd_grad_full(ad, node, n.out, &dy, diag);

	return err == HD_OK ? hd_grad_add(ad, node, n.in[1], HD_OP_EDGE_DROPOUT, 2,
		(uint32_t[]){ n.in[0], dy }, &n.attr, diag) : err;
}
#endif

#ifdef OP_REFERENCE
static void edge_dropout(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_draw *draw = &call->draw;
	const uint32_t from = hd_keep_from((double)call->attr.f[0]);
	int64_t cols = hd_cols(&call->out[0]);

	(void)scratch;
	for (uint64_t i = first; i < last; i++) {
		int64_t number = ((const int32_t *)call->in[0].at)[(int64_t)i / cols];
		uint64_t element = (uint64_t)(number * cols + (int64_t)i % cols);
		struct hd_philox random = hd_philox_model(draw->seed, draw->step, 0, draw->op, element / 4);
		hd_ref_out(call, 0)[i] = number >= 0 && random.word[element % 4] >= from ?
			hd_ref_in(call, 1)[i] / (1.0f - call->attr.f[0]) : 0.0f;
	}
}
#endif
#ifdef OP_PLAIN
OP_PLAIN(EDGE_DROPOUT, hd_ref_elems, hd_ref_no_scratch, edge_dropout)
#endif

#ifdef OP_KERNEL
static inline void edge_dropout_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const struct hd_draw *draw = &call->draw;
	const int32_t *number = call->in[0].at;
	const float kept = 1.0f - call->attr.f[0];
	const uint32_t from = hd_keep_from((double)call->attr.f[0]);
	uint64_t cols = (uint64_t)hd_cols(&call->out[0]), first = (uint64_t)tile * EDGE_TILE,
		last = (uint64_t)min64((int64_t)first + EDGE_TILE, (int64_t)call->in[0].elems);
	(void)scratch;

	for (uint64_t e = first; e < last; e++) {
		const float *x = (const float *)call->in[1].at + e * cols;
		float *y = (float *)call->out[0].at + e * cols;
		uint64_t element = (uint64_t)number[e] * cols, block = UINT64_MAX;
		struct hd_philox random = { { 0 } };
		for (uint64_t c = 0; c < cols; c++, element++) {
			if (number[e] >= 0 && element / 4 != block) {
				block = element / 4;
				random = hd_philox_model(draw->seed, draw->step, 0, draw->op, block);
			}
			y[c] = number[e] >= 0 && random.word[element % 4] >= from ? x[c] / kept : 0.0f;
		}
	}
}
#endif
#ifdef OP_TILES
OP_TILES(EDGE_DROPOUT, CALL, edge_ntiles, scratch_none, edge_dropout_tile)
#endif

#ifdef OP_CASES
	{ HD_OP_EDGE_DROPOUT, { .f = { 0.3f } }, PEAK, 4, 1, { I(-37), F(-37, 5) } },
#endif
#ifdef OP_SLOPES
	{ HD_OP_EDGE_DROPOUT, { .f = { 0.4f } }, 1, { I(11), F(11, 3) } },
#endif
#ifdef OP_EXAMPLES
	{ HD_OP_EDGE_DROPOUT, REAL(0.3f), { IDS(5000, 3001), { .dim = { 3001, 7 } } }, { { .dim = { 3001, 7 } } }, false, 1 },
#endif
#ifdef OP_BITS
OP_BITS(EDGE_DROPOUT, "37f741559543246f")
#endif
#ifdef OP_SELECTS
OP_SELECTS(EDGE_DROPOUT)
#endif
