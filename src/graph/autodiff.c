#include "graph/autodiff.h"

#include "graph/op.h"

/* Per value of the forward graph. A gradient is nothing, a seed (one number for every element) or a value;
 * a value behind which no parameter lies is not wanted. Of a tied parameter: `at` is the first part, `part`
 * 1 + the graph's number of the last one (0: the first is), `use` the forward node of it. */
struct grad { uint32_t at; float seed; bool seeded, wanted, tied; uint32_t part, use; };

struct hd_autodiff {
	struct hd_graph *graph;
	uint32_t nvalues;                 /* of the forward graph */
	struct grad *grad;                /* [nvalues] */
};

uint32_t hd_grad_of(struct hd_autodiff *ad, uint32_t value) { return value < ad->nvalues ?
	ad->grad[value].at : HD_NONE; }

bool hd_grad_wanted(const struct hd_autodiff *ad, uint32_t value) { return value < ad->nvalues &&
	ad->grad[value].wanted; }

struct hd_graph *hd_grad_graph(struct hd_autodiff *ad) { return ad->graph; }

bool hd_grad_is_seed(const struct hd_autodiff *ad, uint32_t value, float *seed)
{
	if (!ad->grad[value].seeded)
		return false;
	*seed = ad->grad[value].seed;
	return true;
}

static enum hd_err mixed(uint32_t value, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INVAL,
		"value %u is both summed into the loss and used otherwise: the loss must be the sum of the "
		"results of one kind of loss op", value);
}

enum hd_err hd_grad_seed(struct hd_autodiff *ad, uint32_t value, float seed, struct hd_diag *diag)
{
	struct grad *g = &ad->grad[value];

	if (!g->wanted)
		return HD_OK;
	if (g->at != HD_NONE)
		return mixed(value, diag);
	g->seed = g->seeded ? g->seed + seed : seed;
	g->seeded = true;
	return HD_OK;
}

/* A node of the backward half: phase W when it contributes to a parameter, else I (also for HD_NONE: to no
 * value). */
static enum hd_err gradient_node(struct hd_autodiff *ad, uint32_t forward, uint32_t value, uint16_t op,
	uint8_t nin,
	const uint32_t *in, const struct hd_attr *attr, uint32_t *out, struct hd_diag *diag)
{
	struct hd_graph *graph = ad->graph;
	struct hd_node of = graph->node[forward];
	uint32_t nrandom = graph->nrandom, nforward = graph->nforward;
	enum hd_err err = hd_graph_node(graph, op, nin, in, attr, of.stage, out, diag);

	if (err != HD_OK)
		return err;
	struct hd_node *node = &graph->node[graph->nnodes - 1];
	node->phase = value != HD_NONE && graph->value[value].kind == HD_PARAM ? HD_PHASE_W : HD_PHASE_I;
	node->of = forward;
	node->shard = of.shard;
	if (hd_ops[op].class == HD_OP_RANDOM)
		node->key = of.key;
	graph->nrandom = nrandom;
	graph->nforward = nforward;
	return HD_OK;
}

static enum hd_err further_part(struct hd_autodiff *ad, uint32_t forward, uint32_t value, uint32_t grad,
	struct hd_diag *diag)
{
	struct grad *g = &ad->grad[value];
	enum hd_err err = hd_graph_part(ad->graph, ad->graph->value[value].data, grad, diag);

	if (err)
		return err;
	g->part = ad->graph->nparts;
	g->use = forward;
	return HD_OK;
}

static enum hd_err contribute(struct hd_autodiff *ad, uint32_t forward, uint32_t value, uint32_t grad,
	struct hd_diag *diag)
{
	const struct hd_graph *graph = ad->graph;
	struct grad *g = &ad->grad[value];

	if (!hd_dims_same(&graph->value[value], &graph->value[grad]))
		return hd_fail(diag, HD_E_INVAL,
			"node %u (%s): the gradient of an operand of shape %s comes out as %s; reshape the "
			"operand before",
			forward, hd_ops[graph->node[forward].op].name,
			hd_value_shape(&graph->value[value]).at,
			hd_value_shape(&graph->value[grad]).at);
	if (g->seeded)
		return mixed(value, diag);
	if (g->at == HD_NONE) {
		g->at = grad;
		g->use = forward;
		return HD_OK;
	}
	if (g->tied && g->use != forward)
		return further_part(ad, forward, value, grad, diag);
	uint32_t sum, at = g->part ? graph->part[g->part - 1].value : g->at;
	enum hd_err err = gradient_node(ad, forward, value, HD_OP_ADD, 2, (uint32_t[]){ at, grad }, NULL,
		&sum, diag);
	if (!err)
		*(g->part ? &ad->graph->part[g->part - 1].value : &g->at) = sum;
	return err;
}

static enum hd_err operands_there(struct hd_autodiff *ad, uint32_t forward, uint8_t nin, const uint32_t *in,
	struct hd_diag *diag)
{
	for (int i = 0; i < nin; i++)
		if (in[i] == HD_NONE)
			return hd_fail(diag, HD_E_INVAL,
				"node %u (%s): only losses may be summed into the loss; the sum reaches "
				"this op directly",
				forward, hd_ops[ad->graph->node[forward].op].name);
	return HD_OK;
}

enum hd_err hd_grad_aux(struct hd_autodiff *ad, uint32_t forward, uint16_t op, uint8_t nin,
	const uint32_t *in,
	const struct hd_attr *attr, uint32_t *out, struct hd_diag *diag)
{
	enum hd_err err = operands_there(ad, forward, nin, in, diag);

	return err == HD_OK ? gradient_node(ad, forward, HD_NONE, op, nin, in, attr, out, diag) : err;
}

enum hd_err hd_grad_add(struct hd_autodiff *ad, uint32_t forward, uint32_t value, uint16_t op, uint8_t nin,
	const uint32_t *in, const struct hd_attr *attr, struct hd_diag *diag)
{
	return hd_grad_add_scaled(ad, forward, value, op, nin, in, attr, 1.0f, diag);
}

enum hd_err hd_grad_add_scaled(struct hd_autodiff *ad, uint32_t forward, uint32_t value, uint16_t op,
	uint8_t nin,
	const uint32_t *in, const struct hd_attr *attr, float by, struct hd_diag *diag)
{
	uint32_t out;

	if (!hd_grad_wanted(ad, value))
		return HD_OK;
	enum hd_err err = operands_there(ad, forward, nin, in, diag);
	if (err == HD_OK)
		err = gradient_node(ad, forward, value, op, nin, in, attr, &out, diag);
	if (err == HD_OK && by != 1.0f)
		err = gradient_node(ad, forward, value, HD_OP_SCALE, 1, (uint32_t[]){ out },
			&(struct hd_attr){ .f = { by } }, &out, diag);
	return err == HD_OK ? contribute(ad, forward, value, out, diag) : err;
}

enum hd_err hd_grad_make(struct hd_autodiff *ad, uint32_t forward, uint32_t value, uint16_t op, uint8_t nin,
	const uint32_t *in, const struct hd_attr *attr, uint32_t *out, struct hd_diag *diag)
{
	return gradient_node(ad, forward, value, op, nin, in, attr, out, diag);
}

enum hd_err hd_grad_join(struct hd_autodiff *ad, uint32_t forward, uint32_t value, uint32_t made,
	struct hd_diag *diag)
{
	return contribute(ad, forward, value, made, diag);
}

enum hd_err hd_grad_full(struct hd_autodiff *ad, uint32_t forward, uint32_t value, uint32_t *grad,
	struct hd_diag *diag)
{
	struct grad *g = &ad->grad[value];
	struct hd_attr attr = { .i = { 0 } };
	uint32_t number;

	if (g->at == HD_NONE && g->seeded) {
		const struct hd_value v = ad->graph->value[value];
		enum hd_err err = hd_graph_const(ad->graph, HD_F32, 1, (int64_t[]){ 1 }, &g->seed, &number,
			diag);
		for (int i = 0; i < v.rank; i++)
			attr.i[i] = (int32_t)v.dim[i];
		if (err == HD_OK)
			err = gradient_node(ad, forward, value, HD_OP_EXPAND, 1, &number, &attr, &g->at,
				diag);
		if (err != HD_OK)
			return err;
	}
	*grad = g->at;
	return HD_OK;
}

/* A parameter never shares its gradient with another value: the fold takes it away as soon as it is
 * complete. */
enum hd_err hd_grad_pass(struct hd_autodiff *ad, uint32_t forward, uint32_t value, uint32_t grad,
	struct hd_diag *diag)
{
	if (!hd_grad_wanted(ad, value))
		return HD_OK;
	if (grad == HD_NONE || ad->graph->value[value].kind == HD_PARAM)
		return hd_grad_add(ad, forward, value, HD_OP_SCALE, 1, &grad,
			&(struct hd_attr){ .f = { 1.0f } }, diag);
	return contribute(ad, forward, value, grad, diag);
}

/* A comparison is a step: its slope is 0 wherever there is one; and whole numbers have none. */
static bool is_flat(const struct hd_graph *graph, const struct hd_node *n, uint32_t k)
{
	return n->op == HD_OP_LESS || n->op == HD_OP_LESS_EQ || n->op == HD_OP_EQUAL ||
		graph->value[n->out + k].dtype == HD_I32;
}

/* Values are made in node order, so one pass finds all behind which a parameter lies. */
static void mark_wanted(struct hd_autodiff *ad)
{
	const struct hd_graph *graph = ad->graph;

	for (uint32_t i = 0; i < graph->nparams; i++)
		ad->grad[graph->param[i].value].wanted = !graph->param[i].frozen;
	for (uint32_t i = 0; i < graph->nnodes; i++) {
		const struct hd_node *n = &graph->node[i];
		bool wanted = false;
		for (int k = 0; k < n->nin; k++)
			wanted |= ad->grad[n->in[k]].wanted;
		for (uint32_t k = 0; k < n->nout; k++)
			ad->grad[n->out + k].wanted = wanted && !is_flat(graph, n, k);
	}
}

/* Rule 3. */
static enum hd_err mark_tied(struct hd_autodiff *ad, struct hd_diag *diag)
{
	const struct hd_graph *graph = ad->graph;
	struct uses { uint32_t n, last; bool handed_on; } *uses = hd_arena_take(graph->arena,
		graph->nparams + 1u, sizeof *uses);

	if (!uses)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the uses of %u parameters", graph->nparams);
	for (uint32_t i = 0; i < graph->nforward; i++)
		for (uint8_t k = 0; k < graph->node[i].nin; k++) {
			const struct hd_value *v = &graph->value[graph->node[i].in[k]];
			struct uses *u = v->kind == HD_PARAM ? &uses[v->data] : NULL;
			if (!u || (u->n && u->last == i))
				continue;
			u->n++;
			u->last = i;
			u->handed_on |= graph->node[i].op == HD_OP_SLICE ||
				hd_ops[graph->node[i].op].class == HD_OP_VIEW;
		}
	for (uint32_t p = 0; p < graph->nparams; p++)
		ad->grad[graph->param[p].value].tied = uses[p].n > 1 && uses[p].n <= HD_MAX_USES_APART &&
			!uses[p].handed_on;
	return HD_OK;
}

static bool arrived(const struct hd_autodiff *ad, const struct hd_node *node)
{
	for (uint32_t k = 0; k < node->nout; k++)
		if (ad->grad[node->out + k].at != HD_NONE || ad->grad[node->out + k].seeded)
			return true;
	return false;
}

static enum hd_err seed_loss(struct hd_autodiff *ad, struct hd_diag *diag)
{
	const struct hd_graph *graph = ad->graph;
	uint32_t loss = hd_graph_find_output(graph, "loss");

	if (loss == HD_NONE)
		return hd_fail(diag, HD_E_INVAL, "the graph has no output named loss");
	if (graph->value[loss].kind != HD_TEMP || graph->node[graph->value[loss].node].op != HD_OP_SUM64)
		return hd_fail(diag, HD_E_INVAL,
			"the output loss must be made by sum64: it is the sum of losses over the rows");
	return hd_grad_seed(ad, loss, 1.0f, diag);
}

static enum hd_err name_gradients(struct hd_autodiff *ad, struct hd_diag *diag)
{
	struct hd_graph *graph = ad->graph;

	for (uint32_t i = 0; i < graph->nparams; i++) {
		struct hd_value *v = &graph->value[graph->param[i].value];
		v->grad = ad->grad[graph->param[i].value].at;
		if (v->grad == HD_NONE && !graph->param[i].frozen)
			return hd_fail(diag, HD_E_INVAL, "the loss does not depend on the parameter '%s'",
				hd_graph_text_of(graph, v->name));
	}
	return HD_OK;
}

enum hd_err hd_graph_autodiff(struct hd_graph *graph, struct hd_diag *diag)
{
	struct hd_autodiff ad = { .graph = graph, .nvalues = graph->nvalues };
	enum hd_err err;

	if (graph->nforward != graph->nnodes)
		return hd_fail(diag, HD_E_INVAL, "the graph has its gradient already");
	ad.grad = hd_arena_take(graph->arena, graph->nvalues, sizeof *ad.grad);
	if (!ad.grad)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the gradient of %u values", graph->nvalues);
	for (uint32_t i = 0; i < ad.nvalues; i++)
		ad.grad[i].at = HD_NONE;
	mark_wanted(&ad);
	err = mark_tied(&ad, diag);
	err = err ? err : seed_loss(&ad, diag);
	for (uint32_t i = graph->nforward; i-- > 0 && err == HD_OK;) {
		struct hd_node node = graph->node[i];
		if (!arrived(&ad, &node))
			continue;
		if (!hd_ops[node.op].grad)
			return hd_fail(diag, HD_E_INVAL,
				"node %u (%s): the op has no gradient, but a parameter lies behind it", i,
				hd_ops[node.op].name);
		err = hd_ops[node.op].grad(&ad, i, diag);
	}
	err = err ? err : hd_graph_sort_parts(graph, diag);
	return err == HD_OK ? name_gradients(&ad, diag) : err;
}
