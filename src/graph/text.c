#include "graph/text.h"

#include <math.h>

#include "base/alloc.h"
#include "base/num.h"
#include "graph/op.h"

static const char *const init_names[] = {
#define X(id, text, about) text,
	HD_INITS(X)
#undef X
};

static void put_f32(struct hd_text *text, const char *before, float v)
{
	char number[HD_NUM_CAP];

	hd_text_addf(text, "%s%s", before, hd_num_print_f32(number, v));
}

static void put_const(struct hd_text *text, const struct hd_graph *graph, const struct hd_value *v)
{
	const uint8_t *at = graph->consts + v->data;
	uint64_t n = hd_value_elems(v, 1);
	char number[HD_NUM_CAP];

	for (uint64_t i = 0; i < n; i++) {
		if (v->dtype == HD_F32)
			put_f32(text, " ", ((const float *)(const void *)at)[i]);
		else if (v->dtype == HD_F64)
			hd_text_addf(text, " %s", hd_num_print_f64(number,
				((const double *)(const void *)at)[i]));
		else if (v->dtype == HD_I32)
			hd_text_addf(text, " %d", ((const int32_t *)(const void *)at)[i]);
		else if (v->dtype == HD_I64)
			hd_text_addf(text, " %lld", (long long)((const int64_t *)(const void *)at)[i]);
		else
			hd_text_addf(text, " %u", at[i]);
	}
}

/* Of a graph that has come in shards. */
static void put_slice(struct hd_text *text, const struct hd_graph *graph, uint32_t param)
{
	const struct hd_slice *slice = &graph->param[param].slice;

	if (slice->tensor != param || slice->n > 1)
		hd_text_addf(text, " tensor %u", slice->tensor);
	if (slice->n > 1)
		hd_text_addf(text, " %s slice %u of %u axis %u of %u blocks %u",
			hd_graph_text_of(graph, slice->name), slice->number, slice->n, slice->axis,
			slice->extent, slice->blocks);
}

static void put_leaves(struct hd_text *text, const struct hd_graph *graph)
{
	for (uint32_t i = 0; i < graph->ninputs; i++) {
		const struct hd_value *v = &graph->value[graph->input[i]];
		hd_text_addf(text, "input %s %s\n", hd_graph_text_of(graph, v->name), hd_value_shape(v).at);
	}
	for (uint32_t i = 0; i < graph->nparams; i++) {
		const struct hd_param *p = &graph->param[i];
		const struct hd_value *v = &graph->value[p->value];
		hd_text_addf(text, "param %s %s %s", hd_graph_text_of(graph, v->name), hd_value_shape(v).at,
			init_names[p->init]);
		if (p->init == HD_INIT_NORMAL || p->init == HD_INIT_UNIFORM)
			put_f32(text, " ", p->scale);
		hd_text_add(text, p->frozen ? " frozen" : "");
		put_slice(text, graph, i);
		hd_text_add(text, "\n");
	}
	for (uint32_t i = 0; i < graph->nbuffers; i++) {
		const struct hd_value *v = &graph->value[graph->buffer[i].value];
		hd_text_addf(text, "buffer %s %s %s\n", hd_graph_text_of(graph, v->name),
			hd_value_shape(v).at, init_names[graph->buffer[i].init]);
	}
}

/* Names of values: labels count temporaries, and apart from them constants, in order. */
struct value_names { const struct hd_graph *graph; struct hd_text *text; uint32_t *label; };

static void put_value(const struct value_names *n, const char *before, uint32_t id)
{
	const struct hd_value *v = &n->graph->value[id];

	if (v->kind == HD_TEMP || v->kind == HD_CONST)
		hd_text_addf(n->text, "%s%c%u", before, v->kind == HD_TEMP ? '%' : '$', n->label[id]);
	else
		hd_text_addf(n->text, "%s%s", before, hd_graph_text_of(n->graph, v->name));
}

static void put_consts(const struct value_names *n)
{
	for (uint32_t id = 0; id < n->graph->nvalues; id++) {
		const struct hd_value *v = &n->graph->value[id];
		if (v->kind != HD_CONST)
			continue;
		put_value(n, "const ", id);
		hd_text_addf(n->text, " %s", hd_value_shape(v).at);
		put_const(n->text, n->graph, v);
		hd_text_add(n->text, "\n");
	}
}

static void put_attrs(struct hd_text *text, const struct hd_node *node)
{
	struct hd_attr_name name;

	for (uint32_t i = 0; hd_op_attr(node->op, i, &name); i++) {
		if (name.is_float) {
			if (node->attr.f[name.slot] == 0.0f && !signbit(node->attr.f[name.slot]))
				continue;
			hd_text_addf(text, " %s=", name.at);
			put_f32(text, "", node->attr.f[name.slot]);
		} else if (hd_attr_is_act(&name)) {
			hd_text_addf(text, " %s=%s", name.at, hd_act_text(node->attr.i[name.slot]));
		} else if (node->attr.i[name.slot]) {
			hd_text_addf(text, " %s=%d", name.at, node->attr.i[name.slot]);
		}
	}
}

static void put_node(const struct value_names *n, const struct hd_node *node)
{
	struct hd_text *text = n->text;

	for (uint32_t k = 0; k < node->nout; k++)
		put_value(n, k ? "," : "", node->out + k);
	hd_text_addf(text, " = %s", hd_ops[node->op].name);
	for (int k = 0; k < node->nin; k++)
		put_value(n, " ", node->in[k]);
	put_attrs(text, node);
	if (hd_ops[node->op].class == HD_OP_RANDOM)
		hd_text_addf(text, " key=%u", node->key);
	if (node->stage)
		hd_text_addf(text, " stage=%u", node->stage);
	if (node->shard)
		hd_text_addf(text, " shard=%u", node->shard - 1);
	if (node->phase != HD_PHASE_F) {
		hd_text_addf(text, " phase=%c", node->phase == HD_PHASE_I ? 'I' : 'W');
		put_value(n, " of=", n->graph->node[node->of].out);
	}
	for (uint32_t k = 0; k < node->nout; k++)
		hd_text_addf(text, "%s%s", k ? ", " : " : ",
			hd_value_shape(&n->graph->value[node->out + k]).at);
	hd_text_add(text, "\n");
}

static void put_gradients(const struct value_names *n)
{
	const struct hd_graph *graph = n->graph;
	uint32_t part = 0;

	for (uint32_t i = 0; i < graph->nparams; i++) {
		const struct hd_value *v = &graph->value[graph->param[i].value];
		if (v->grad == HD_NONE)
			continue;
		hd_text_addf(n->text, "grad %s", hd_graph_text_of(graph, v->name));
		put_value(n, " ", v->grad);
		for (; part < graph->nparts && graph->part[part].param <= i; part++)
			if (graph->part[part].param == i && graph->part[part].value != HD_NONE)
				put_value(n, " ", graph->part[part].value);
		hd_text_add(n->text, "\n");
	}
}

static void put_ends(const struct value_names *n)
{
	const struct hd_graph *graph = n->graph;

	for (uint32_t i = 0; i < graph->noutputs; i++) {
		hd_text_addf(n->text, "output %s", hd_graph_text_of(graph, graph->output[i].name));
		put_value(n, " ", graph->output[i].value);
		hd_text_add(n->text, "\n");
	}
	for (uint32_t i = 0; i < graph->nrunning; i++) {
		const struct hd_running *r = &graph->running[i];
		put_value(n, "running ", r->mean);
		put_value(n, " ", r->variance);
		put_value(n, " ", r->moments);
		put_f32(n->text, " ", r->momentum);
		hd_text_add(n->text, "\n");
	}
	put_gradients(n);
}

enum hd_err hd_graph_print(const struct hd_graph *graph, struct hd_text *text, struct hd_diag *diag)
{
	struct value_names n = { graph, text, hd_alloc((graph->nvalues + 1u) * sizeof *n.label) };
	uint32_t ntemps = 0, nconsts = 0;

	if (!n.label)
		return hd_fail(diag, HD_E_NOMEM, "no memory to print a graph of %u values", graph->nvalues);
	for (uint32_t i = 0; i < graph->nvalues; i++)
		n.label[i] = graph->value[i].kind == HD_CONST ? nconsts++ : graph->value[i].kind == HD_TEMP ?
			ntemps++ : 0;
	if (graph->name != HD_NONE)
		hd_text_addf(text, "graph %s\n", hd_graph_text_of(graph, graph->name));
	put_leaves(text, graph);
	put_consts(&n);
	for (uint32_t i = 0; i < graph->nnodes; i++)
		put_node(&n, &graph->node[i]);
	put_ends(&n);
	hd_free(n.label);
	if (text->full)
		return hd_fail(diag, HD_E_NOSPACE, "the text of the graph does not fit");
	return HD_OK;
}
