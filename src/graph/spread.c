#include "graph/spread.h"

#include "graph/op.h"

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for stages over groups of devices");
}

static bool is_view(const struct hd_node *node) { return hd_ops[node->op].class == HD_OP_VIEW; }

bool hd_spread_has(const struct hd_graph_spread *x, uint32_t stage, uint32_t group, uint32_t value)
{
	const struct hd_spread_stage *at = &x->at[stage];

	return at->has[at->root[value]] >> group & 1;
}

bool hd_spread_makes(const struct hd_graph_spread *x, uint32_t stage, uint32_t group, uint32_t value)
{
	const struct hd_value *v = &x->stages->stage[stage].graph.value[x->at[stage].root[value]];

	return v->kind == HD_TEMP && hd_spread_group(x, stage, v->node) == group;
}

/* What groups make and read within a stage. */
static enum hd_err make_stage(struct hd_graph_spread *x, uint32_t s, uint32_t nshards, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_graph *g = &x->stages->stage[s].graph;
	struct hd_spread_stage *at = &x->at[s];

	at->device = hd_arena_take(arena, (size_t)g->nnodes + 1, sizeof *at->device);
	at->has = hd_arena_take(arena, (size_t)g->nvalues + 1, sizeof *at->has);
	at->root = hd_tensor_roots(g, arena);
	enum hd_err err = at->device && at->has && at->root ? HD_OK : no_memory(diag);
	err = err ? err : hd_tensor_place(at->device, g, nshards, x->t, diag);
	for (uint32_t i = 0; i < g->nnodes && !err; i++) {
		const struct hd_node *node = &g->node[i];
		const uint64_t group = UINT64_C(1) << hd_spread_group(x, s, i);
		for (uint8_t k = 0; k < node->nin && !is_view(node); k++)
			at->has[at->root[node->in[k]]] |= group;
		for (uint8_t k = 0; k < node->nout && !is_view(node); k++)
			at->has[node->out + k] |= group;
	}
	return err;
}

/* Rule 2, over the boundary to a stage from the one before it, or after it. */
static void add_needs(struct hd_graph_spread *x, uint32_t from, uint32_t to, bool forward)
{
	const struct hd_graph_stage *sends = &x->stages->stage[from], *reads = &x->stages->stage[to];
	const uint32_t *out = forward ? sends->act_out : sends->grad_out;
	const uint32_t n = forward ? reads->nact_in : reads->ngrad_in,
		first = reads->ndata + (forward ? 0 : reads->nact_in);

	for (uint32_t i = 0; i < n; i++)
		x->at[from].has[x->at[from].root[out[i]]] |= x->at[to].has[reads->graph.input[first + i]];
}

/* Gradients are numbered alike in all stages and in the whole; one stage has the value. */
static uint16_t maker_of(const struct hd_graph_spread *x, uint32_t grad)
{
	const uint32_t s = x->stages->of_grad[grad], value = hd_graph_grad(&x->stages->stage[s].graph, grad);
	const struct hd_graph *g = &x->stages->stage[s].graph;

	if (value == HD_NONE)
		return 0;
	return (uint16_t)(s * x->ngroups + hd_spread_group(x, s, g->value[x->at[s].root[value]].node));
}

enum hd_err hd_graph_spread_make(struct hd_graph_spread *spread, const struct hd_graph_stages *stages,
	uint32_t nshards, uint32_t t, uint32_t ngroups, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t ngrads = hd_graph_ngrads(stages->whole);
	struct hd_graph_spread made = { .stages = stages, .t = t, .ngroups = ngroups,
		.at = hd_arena_take(arena, stages->n, sizeof *made.at),
		.of_grad = hd_arena_take(arena, (size_t)ngrads + 1, sizeof *made.of_grad) };
	enum hd_err err = made.at && made.of_grad ? HD_OK : no_memory(diag);

	if (!ngroups || t % ngroups || (uint64_t)stages->n * ngroups > UINT16_MAX)
		return hd_fail(diag, HD_E_INVAL,
			"%u devices of a rank on %u workers, of each of %u stages: the workers must divide "
			"the devices", t, ngroups, stages->n);
	for (uint32_t s = 0; s < stages->n && !err; s++)
		err = make_stage(&made, s, nshards, arena, diag);
	if (err)
		return err;
	for (uint32_t s = stages->n; s-- > 1;)
		add_needs(&made, s - 1, s, true);
	for (uint32_t s = 0; s + 1 < stages->n; s++)
		add_needs(&made, s + 1, s, false);
	for (uint32_t g = 0; g < ngrads; g++)
		made.of_grad[g] = maker_of(&made, g);
	*spread = made;
	return HD_OK;
}
