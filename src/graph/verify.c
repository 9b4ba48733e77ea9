#include "graph/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "graph/op.h"

static enum hd_err bad_value(const struct hd_graph *graph, uint32_t id, const char *rule,
	struct hd_diag *diag)
{
	const struct hd_value *v = &graph->value[id];

	return hd_fail(diag, HD_E_INVAL, "value %u (%s%s%s): %s", id, hd_graph_text_of(graph, v->name),
		v->name == HD_NONE ? "" : ", ", hd_value_shape(v).at, rule);
}

static bool fits(const struct hd_value *v, uint64_t rows)
{
	int64_t n = hd_dims_product(v->dim, v->rank);
	uint64_t bytes = (uint64_t)(n < 0 ? -n : n);

	return (n > 0 || hd_mul_u64(bytes, rows, &bytes)) &&
		hd_mul_u64(bytes, hd_dtype_bytes((enum hd_dtype)v->dtype), &bytes) &&
		bytes <= HD_MAX_VALUE_BYTES;
}

/* Where an input, parameter or constant says it lies, it must lie. */
static enum hd_err leaf_check(const struct hd_graph *graph, uint32_t id, struct hd_diag *diag)
{
	const struct hd_value *v = &graph->value[id];

	if (v->node != HD_NONE)
		return bad_value(graph, id, "only temporaries have a maker", diag);
	if (v->kind != HD_CONST && v->name >= graph->names_len)
		return bad_value(graph, id, "inputs, parameters and buffers have names", diag);
	switch ((enum hd_value_kind)v->kind) {
	case HD_INPUT:
		if (v->data >= graph->ninputs || graph->input[v->data] != id)
			return bad_value(graph, id, "an input lies where its index says", diag);
		break;
	case HD_PARAM:
		if (v->data >= graph->nparams || graph->param[v->data].value != id)
			return bad_value(graph, id, "a parameter lies where its index says", diag);
		if (v->dtype != HD_F32 || hd_dims_product(v->dim, v->rank) < 0)
			return bad_value(graph, id, "a parameter is f32 and does not grow with the rows",
				diag);
		break;
	case HD_BUFFER:
		if (v->data >= graph->nbuffers || graph->buffer[v->data].value != id)
			return bad_value(graph, id, "a buffer lies where its index says", diag);
		if (v->dtype != HD_F32 || hd_dims_product(v->dim, v->rank) < 0)
			return bad_value(graph, id, "a buffer is f32 and does not grow with the rows", diag);
		break;
	case HD_CONST:
		if (hd_dims_product(v->dim, v->rank) < 0 || v->data > graph->consts_len ||
		    hd_value_bytes(v, 1) > graph->consts_len - v->data)
			return bad_value(graph, id, "a constant lies in the pool", diag);
		break;
	case HD_TEMP:
		break;
	}
	return HD_OK;
}

static enum hd_err value_check(const struct hd_graph *graph, uint32_t id, uint64_t rows, struct hd_diag *diag)
{
	const struct hd_value *v = &graph->value[id];
	struct hd_diag why = { "" };

	if (hd_value_check(v, &why) != HD_OK)
		return bad_value(graph, id, why.text, diag);
	if (!fits(v, rows))
		return bad_value(graph, id, "it is too large for the number of rows", diag);
	if (v->kind > HD_BUFFER)
		return bad_value(graph, id, "its kind does not exist", diag);
	if (v->kind != HD_TEMP)
		return leaf_check(graph, id, diag);
	if (v->node >= graph->nnodes || id < graph->node[v->node].out ||
		id - graph->node[v->node].out >= graph->node[v->node].nout)
		return bad_value(graph, id, "a temporary has one maker, which knows it", diag);
	return HD_OK;
}

__attribute__((format(printf, 4, 5)))
static enum hd_err bad_node(const struct hd_graph *graph, uint32_t i, struct hd_diag *diag, const char *rule,
	...)
{
	char text[sizeof diag->text / 2];
	uint16_t op = graph->node[i].op;
	va_list args;

	va_start(args, rule);
	vsnprintf(text, sizeof text, rule, args);
	va_end(args);
	return hd_fail(diag, HD_E_INVAL, "node %u (%s): %s", i, op < HD_NOPS ? hd_ops[op].name : "?", text);
}

static enum hd_err operands_check(const struct hd_graph *graph, uint32_t i, struct hd_diag *diag)
{
	const struct hd_node *n = &graph->node[i];

	if (n->op >= HD_NOPS || n->nin != hd_ops[n->op].nin || n->nout != hd_ops[n->op].nout)
		return bad_node(graph, i, diag, "the op exists and has its number of operands and outputs");
	for (int k = 0; k < HD_MAX_IN; k++) {
		if (k >= n->nin ? n->in[k] != HD_NONE : n->in[k] >= graph->nvalues)
			return bad_node(graph, i, diag,
				"operand %d exists, and those past the last are empty", k);
		if (k < n->nin && graph->value[n->in[k]].kind == HD_TEMP && graph->value[n->in[k]].node >= i)
			return bad_node(graph, i, diag,
				"operands come before their reader; operand %d is made by node %u", k,
				graph->value[n->in[k]].node);
	}
	if (n->out >= graph->nvalues || graph->nvalues - n->out < n->nout ||
		(i && n->out < graph->node[i - 1].out + graph->node[i - 1].nout))
		return bad_node(graph, i, diag, "outputs exist and ascend from node to node");
	for (uint32_t k = 0; k < n->nout; k++)
		if (graph->value[n->out + k].kind != HD_TEMP || graph->value[n->out + k].node != i)
			return bad_node(graph, i, diag, "output %u has this node as its maker", k);
	return HD_OK;
}

static enum hd_err shapes_check(const struct hd_graph *graph, uint32_t i, struct hd_diag *diag)
{
	const struct hd_node *n = &graph->node[i];
	struct hd_value derived[HD_MAX_OUT];
	struct hd_diag why = { "" };

	if (hd_graph_shapes(graph, n, derived, &why) != HD_OK)
		return bad_node(graph, i, diag, "the op's own rules hold: %s", why.text);
	for (uint32_t k = 0; k < n->nout; k++)
		if (!hd_dims_same(&derived[k], &graph->value[n->out + k]) ||
			derived[k].dtype != graph->value[n->out + k].dtype)
			return bad_node(graph, i, diag,
				"output %u is %s by the op's rule, and the graph says %s", k,
				hd_value_shape(&derived[k]).at, hd_value_shape(&graph->value[n->out + k]).at);
	return HD_OK;
}

static enum hd_err phase_check(const struct hd_graph *graph, uint32_t i, struct hd_diag *diag)
{
	const struct hd_node *n = &graph->node[i];
	bool forward = i < graph->nforward;

	if (forward != (n->phase == HD_PHASE_F) || n->phase > HD_PHASE_W)
		return bad_node(graph, i, diag,
			"forward nodes are of phase F and come first, the others are I or W");
	if (forward ? n->of != HD_NONE : n->of >= graph->nforward)
		return bad_node(graph, i, diag,
			"a gradient node names the forward node it belongs to, and only such a node");
	for (int k = 0; k < n->nin && n->phase == HD_PHASE_I; k++) {
		const struct hd_value *v = &graph->value[n->in[k]];
		if (v->kind == HD_TEMP && graph->node[v->node].phase == HD_PHASE_W)
			return bad_node(graph, i, diag,
				"an input gradient never reads a weight gradient; operand %d is one", k);
	}
	return HD_OK;
}

/* Data flow forward through the stages, gradients back: since nodes are in both orders,
 * it suffices that stages never turn round. */
static enum hd_err stage_check(const struct hd_graph *graph, uint32_t i, struct hd_diag *diag)
{
	const struct hd_node *n = &graph->node[i], *before = i ? n - 1 : NULL;

	if (n->stage >= HD_MAX_STAGES)
		return bad_node(graph, i, diag, "there are at most %d stages", HD_MAX_STAGES);
	if (i < graph->nforward && before && n->stage < before->stage)
		return bad_node(graph, i, diag, "stages never descend; this is %u after %u", n->stage,
			before->stage);
	if (i >= graph->nforward && n->stage != graph->node[n->of].stage)
		return bad_node(graph, i, diag, "a gradient node has the stage of its forward node, %u",
			graph->node[n->of].stage);
	if (i > graph->nforward && n->stage > before->stage)
		return bad_node(graph, i, diag, "stages of gradients never ascend; this is %u after %u",
			n->stage, before->stage);
	return HD_OK;
}

/* Parts of one draw have its key; they ascend and do not overlap. */
static bool is_next_part(const struct hd_graph *graph, const struct hd_node *before, const struct hd_node *n)
{
	struct hd_value a = graph->value[before->out], b = graph->value[n->out];
	int64_t end = before->attr.i[0] + a.dim[1];

	if (before->op != HD_OP_DROPOUT || n->op != HD_OP_DROPOUT || before->key != n->key ||
		n->attr.i[1] == 0 ||
	    n->attr.i[1] != before->attr.i[1] || memcmp(n->attr.f, before->attr.f, sizeof n->attr.f) != 0)
		return false;
	a.dim[1] = b.dim[1];
	return n->attr.i[0] >= end && hd_dims_same(&a, &b);
}

/* `last`: the random node before, HD_NONE: there is none. */
static enum hd_err key_check(const struct hd_graph *graph, uint32_t i, uint32_t *last, struct hd_diag *diag)
{
	const struct hd_node *n = &graph->node[i], *before = *last == HD_NONE ? NULL : &graph->node[*last];

	if (hd_ops[n->op].class != HD_OP_RANDOM)
		return n->key == 0 ? HD_OK : bad_node(graph, i, diag, "only random nodes have a key");
	if (i >= graph->nforward)
		return n->key == graph->node[n->of].key ? HD_OK : bad_node(graph, i, diag,
			"a gradient has its forward node's key");
	if (n->key >= graph->nrandom || (before && n->key <= before->key && !is_next_part(graph, before, n)))
		return bad_node(graph, i, diag,
			"keys of random nodes ascend, but for parts of one draw; this is %u", n->key);
	*last = i;
	return HD_OK;
}

static enum hd_err output_check(const struct hd_graph *graph, const struct hd_output *output,
	struct hd_diag *diag)
{
	static const char *const sums[] = { "loss", "weight", "correct", "loss_1", "loss_2", "loss_3",
		"loss_4" };
	const char *name = hd_graph_text_of(graph, output->name);

	if (output->value >= graph->nvalues)
		return hd_fail(diag, HD_E_INVAL, "output '%s': its value exists", name);
	const struct hd_value *v = &graph->value[output->value];
	for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
		if (strcmp(name, sums[i]) == 0 && (v->dtype != HD_F64 || v->rank != 1 || v->dim[0] != 1))
			return hd_fail(diag, HD_E_INVAL,
				"output '%s': a sum is f64 [1], not %s; make it by sum64 or count64", name,
				hd_value_shape(v).at);
	return HD_OK;
}

static enum hd_err gradient_check(const struct hd_graph *graph, uint32_t p, struct hd_diag *diag)
{
	uint32_t id = graph->param[p].value;
	uint32_t grad = graph->value[id].grad;

	if (graph->nforward == graph->nnodes)
		return grad == HD_NONE ? HD_OK : bad_value(graph, id,
			"a graph without gradient nodes has no gradients", diag);
	if (graph->param[p].frozen)
		return grad == HD_NONE ? HD_OK : bad_value(graph, id, "a frozen parameter has no gradient",
			diag);
	if (grad >= graph->nvalues || graph->value[grad].kind != HD_TEMP ||
		graph->node[graph->value[grad].node].phase != HD_PHASE_W ||
	    !hd_dims_same(&graph->value[grad], &graph->value[id]))
		return bad_value(graph, id, "its gradient is a value of phase W and of its shape", diag);
	for (uint32_t q = 0; q < p; q++)
		if (graph->value[graph->param[q].value].grad == grad)
			return bad_value(graph, id, "it shares its gradient with another parameter", diag);
	return HD_OK;
}

static enum hd_err part_check(const struct hd_graph *graph, uint32_t i, struct hd_diag *diag)
{
	const struct hd_grad_part *part = &graph->part[i], *before = i ? part - 1 : NULL;

	if (part->param >= graph->nparams || (before && part->param < before->param))
		return hd_fail(diag, HD_E_INVAL, "part %u of gradients: parts ascend by parameter", i);
	if (part->value == HD_NONE)       /* a stage of a pipeline: another one makes it */
		return HD_OK;
	const uint32_t id = graph->param[part->param].value, first = graph->value[id].grad;
	uint32_t last = first == HD_NONE ? 0 : first;
	if (before && before->param == part->param && before->value != HD_NONE)
		last = before->value;
	if (part->value >= graph->nvalues || graph->value[part->value].kind != HD_TEMP ||
		graph->node[graph->value[part->value].node].phase != HD_PHASE_W ||
		!hd_dims_same(&graph->value[part->value], &graph->value[id]) || part->value <= last)
		return bad_value(graph, id, "a part of its gradient is a value of phase W and of its shape, "
			"made after the part before", diag);
	for (uint32_t g = 0; g < graph->nparams + i; g++)
		if (hd_graph_grad(graph, g) == part->value)
			return bad_value(graph, id, "it shares a part of its gradient with another parameter",
				diag);
	return HD_OK;
}

static bool is_buffer(const struct hd_graph *graph, uint32_t id)
{
	return id < graph->nvalues && graph->value[id].kind == HD_BUFFER && graph->value[id].rank == 1;
}

static enum hd_err running_check(const struct hd_graph *graph, uint32_t i, struct hd_diag *diag)
{
	const struct hd_running *r = &graph->running[i];

	if (!is_buffer(graph, r->mean) || !is_buffer(graph, r->variance) || r->mean == r->variance ||
	    !hd_dims_same(&graph->value[r->mean], &graph->value[r->variance]))
		return hd_fail(diag, HD_E_INVAL,
			"running statistics %u: mean and variance are two buffers of one length", i);
	if (r->moments >= graph->nvalues)
		return hd_fail(diag, HD_E_INVAL, "running statistics %u: the moments exist", i);
	const struct hd_value *m = &graph->value[r->moments];
	if (m->kind != HD_TEMP || graph->node[m->node].phase != HD_PHASE_F || m->dtype != HD_F64 ||
		m->rank != 2 || m->dim[0] != 3 ||
	    m->dim[1] != graph->value[r->mean].dim[0])
		return hd_fail(diag, HD_E_INVAL,
			"running statistics %u: the moments are f64 [3,%lld] made by a forward node", i,
			(long long)graph->value[r->mean].dim[0]);
	if (!(r->momentum > 0.0f && r->momentum <= 1.0f))
		return hd_fail(diag, HD_E_INVAL,
			"running statistics %u: the momentum is above 0 and at most 1", i);
	for (uint32_t k = 0; k < i; k++)
		if (graph->running[k].mean == r->mean || graph->running[k].mean == r->variance ||
			graph->running[k].variance == r->mean ||
		    graph->running[k].variance == r->variance)
			return hd_fail(diag, HD_E_INVAL,
				"running statistics %u: a buffer is moved by one record", i);
	return HD_OK;
}

static enum hd_err tables_check(const struct hd_graph *graph, struct hd_diag *diag)
{
	for (uint32_t i = 0; i < graph->nparams; i++)
		if (graph->param[i].value >= graph->nvalues ||
			graph->value[graph->param[i].value].kind != HD_PARAM ||
		    graph->value[graph->param[i].value].data != i)
			return hd_fail(diag, HD_E_INVAL,
				"parameter %u: its value is a parameter and knows it", i);
	for (uint32_t i = 0; i < graph->ninputs; i++)
		if (graph->input[i] >= graph->nvalues || graph->value[graph->input[i]].kind != HD_INPUT ||
			graph->value[graph->input[i]].data != i)
			return hd_fail(diag, HD_E_INVAL, "input %u: its value is an input and knows it", i);
	for (uint32_t i = 0; i < graph->nbuffers; i++)
		if (graph->buffer[i].value >= graph->nvalues ||
			graph->value[graph->buffer[i].value].kind != HD_BUFFER ||
		    graph->value[graph->buffer[i].value].data != i || graph->buffer[i].init > HD_INIT_ONES)
			return hd_fail(diag, HD_E_INVAL,
				"buffer %u: its value is a buffer and knows it, and begins as zeros or ones",
				i);
	if (graph->nforward > graph->nnodes)
		return hd_fail(diag, HD_E_INVAL, "%u forward nodes of %u", graph->nforward, graph->nnodes);
	return HD_OK;
}

enum hd_err hd_graph_verify(const struct hd_graph *graph, uint64_t rows, struct hd_diag *diag)
{
	static enum hd_err (*const checks[])(const struct hd_graph *, uint32_t, struct hd_diag *) = {
		operands_check, shapes_check, phase_check, stage_check,
	};
	enum hd_err err = tables_check(graph, diag);
	uint32_t random = HD_NONE;

	for (uint32_t i = 0; i < graph->nvalues && err == HD_OK; i++)
		err = value_check(graph, i, rows, diag);
	for (uint32_t i = 0; i < graph->nnodes && err == HD_OK; i++) {
		for (size_t k = 0; k < sizeof checks / sizeof checks[0] && err == HD_OK; k++)
			err = checks[k](graph, i, diag);
		if (err == HD_OK)
			err = key_check(graph, i, &random, diag);
	}
	for (uint32_t i = 0; i < graph->noutputs && err == HD_OK; i++)
		err = output_check(graph, &graph->output[i], diag);
	for (uint32_t i = 0; i < graph->nparams && err == HD_OK; i++)
		err = gradient_check(graph, i, diag);
	for (uint32_t i = 0; i < graph->nparts && err == HD_OK; i++)
		err = part_check(graph, i, diag);
	for (uint32_t i = 0; i < graph->nrunning && err == HD_OK; i++)
		err = running_check(graph, i, diag);
	return err;
}
