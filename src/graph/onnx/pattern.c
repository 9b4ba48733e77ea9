#include "graph/onnx/pattern.h"

#include <math.h>
#include <string.h>

enum what { NONE, STEP, TENSOR, NUMBER, GIVEN };

/* STEP at: the node of that step; TENSOR at: captured; NUMBER at: captured; GIVEN: a number of this value. */
struct operand { uint8_t what, at; double value; };

/* `other`: another step to try in its place, 0: none. */
struct pattern_step { const char *op; struct operand in[2]; uint8_t other; };

struct pattern { const struct hd_onnx_op *op; uint8_t nin; struct pattern_step step[HD_PATTERN_STEPS]; };

#define S(i) { STEP, i, 0 }
#define X    { TENSOR, 0, 0 }
#define T1   { TENSOR, 1, 0 }
#define T2   { TENSOR, 2, 0 }
#define ANY(i) { NUMBER, i, 0 }
#define N(v) { GIVEN, 0, v }

#define ROOT2     1.4142135623730951
#define ROOT_HALF 0.7071067811865476
#define ROOT_2_PI 0.7978845608028654
#define CUBIC     0.044715

static hd_onnx_lower fused_layernorm, fused_gelu, fused_gelu_tanh;
static const struct hd_onnx_op layernorm = { "LayerNorm", fused_layernorm, 0 },
	gelu = { "Gelu", fused_gelu, 0 }, gelu_tanh = { "Gelu", fused_gelu_tanh, 0 };

static const struct pattern patterns[] = {
	/* (x - mean) / sqrt(mean((x - mean)^2) + eps) * gamma + beta */
	{ &layernorm, 3, {
		{ "Add", { S(1), T2 }, 0 }, { "Mul", { S(2), T1 }, 0 }, { "Div", { S(3), S(4) }, 0 }, { "Sub", { X, S(8) }, 0 },
		{ "Sqrt", { S(5) }, 0 }, { "Add", { S(6), ANY(0) }, 0 }, { "ReduceMean", { S(7) }, 0 }, { "Pow", { S(3), N(2) }, 9 },
		{ "ReduceMean", { X }, 0 }, { "Mul", { S(3), S(3) }, 0 } } },
	/* x (1 + erf(x / sqrt 2)) 0.5, the half before or after */
	{ &gelu, 1, {
		{ "Mul", { S(1), N(0.5) }, 0 }, { "Mul", { X, S(2) }, 0 }, { "Add", { S(3), N(1) }, 0 }, { "Erf", { S(4) }, 0 },
		{ "Div", { X, N(ROOT2) }, 5 }, { "Mul", { X, N(ROOT_HALF) }, 0 } } },
	{ &gelu, 1, {
		{ "Mul", { S(1), S(2) }, 0 }, { "Mul", { X, N(0.5) }, 0 }, { "Add", { S(3), N(1) }, 0 }, { "Erf", { S(4) }, 0 },
		{ "Div", { X, N(ROOT2) }, 5 }, { "Mul", { X, N(ROOT_HALF) }, 0 } } },
	/* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
	{ &gelu_tanh, 1, {
		{ "Mul", { S(1), S(2) }, 0 }, { "Mul", { X, N(0.5) }, 0 }, { "Add", { S(3), N(1) }, 0 }, { "Tanh", { S(4) }, 0 },
		{ "Mul", { S(5), N(ROOT_2_PI) }, 0 }, { "Add", { X, S(6) }, 0 }, { "Mul", { S(7), N(CUBIC) }, 0 }, { "Pow", { X, N(3) }, 8 },
		{ "Mul", { X, S(9) }, 0 }, { "Mul", { X, X }, 0 } } },
	{ &gelu_tanh, 1, {
		{ "Mul", { S(1), N(0.5) }, 0 }, { "Mul", { X, S(2) }, 0 }, { "Add", { S(3), N(1) }, 0 }, { "Tanh", { S(4) }, 0 },
		{ "Mul", { S(5), N(ROOT_2_PI) }, 0 }, { "Add", { X, S(6) }, 0 }, { "Mul", { S(7), N(CUBIC) }, 0 }, { "Pow", { X, N(3) }, 8 },
		{ "Mul", { X, S(9) }, 0 }, { "Mul", { X, X }, 0 } } },
};

/* What is bound so far; copied before a choice, so that a wrong one is taken back. */
struct binding {
	const char *tensor[HD_PATTERN_TENSORS];
	double number[HD_PATTERN_NUMBERS];
	uint32_t node[HD_PATTERN_STEPS];  /* by step, HD_NONE */
};

struct pattern_search { struct hd_importer *im; const struct pattern *pattern; struct binding bound; };

static const Onnx__NodeProto *maker_of(const struct hd_importer *im, const char *name, uint32_t *at)
{
	const struct hd_onnx_val *v = *name ? hd_onnx_find(im, name) : NULL;

	if (!v || v->maker == HD_NONE)
		return NULL;
	*at = v->maker;
	return im->file.graph->node[v->maker];
}

/* A literal: a Constant node or an initializer without extents. */
static bool number_of(struct hd_importer *im, const char *name, double *value)
{
	const struct hd_onnx_val *v = *name ? hd_onnx_find(im, name) : NULL;
	const Onnx__NodeProto *node = v && v->maker != HD_NONE ? im->file.graph->node[v->maker] : NULL;
	const Onnx__AttributeProto *a = node && !strcmp(node->op_type, "Constant") ? hd_onnx_attr(node,
		"value") : NULL;
	struct hd_onnx_init made = { 0 };
	const struct hd_onnx_init *init = v && hd_onnx_is_constant(v) && v->rank == 0 ? v->init : NULL;
	struct hd_host_tensor host;

	if (a && a->t) {
		made = (struct hd_onnx_init){ a->t, a->t->has_raw_data ? a->t->raw_data.data : NULL,
			a->t->has_raw_data ? a->t->raw_data.len : 0 };
		init = &made;
	}
	if (!init || hd_host_read(&host, &im->file.arena, init, NULL) || host.n != 1 || !host.is_float)
		return false;
	*value = host.f[0];
	return true;
}

static bool match_step(struct pattern_search *s, uint32_t step, uint32_t node);

static bool match_operand(struct pattern_search *s, const struct operand *o, const char *name)
{
	double value;
	uint32_t at;

	switch ((enum what)o->what) {
	case NONE:
		return true;
	case TENSOR:
		if (s->bound.tensor[o->at])
			return !strcmp(s->bound.tensor[o->at], name);
		s->bound.tensor[o->at] = name;
		return *name != '\0';
	case NUMBER:
		return number_of(s->im, name, &s->bound.number[o->at]);
	case GIVEN:
		return number_of(s->im, name, &value) && fabs(value - o->value) <= 1e-6 * fabs(o->value);
	case STEP:
		return maker_of(s->im, name, &at) && match_step(s, o->at, at);
	}
	return false;
}

/* Means over the last axis, kept. */
static bool mean_of_last(struct hd_importer *im, const Onnx__NodeProto *node)
{
	const Onnx__AttributeProto *a = hd_onnx_attr(node, "axes");
	(void)im;

	return a && a->n_ints == 1 && a->ints[0] == -1 && hd_onnx_attr_int(node, "keepdims", 1);
}

static bool match_node(struct pattern_search *s, const struct pattern_step *t, const Onnx__NodeProto *node)
{
	bool two = t->in[1].what != NONE;
	struct binding before = s->bound;

	if (strcmp(node->op_type, t->op) != 0 || (node->domain && *node->domain) ||
		node->n_input != (two ? 2 : 1) || node->n_output != 1)
		return false;
	if (!strcmp(t->op, "ReduceMean") && !mean_of_last(s->im, node))
		return false;
	if (match_operand(s, &t->in[0], node->input[0]) && (!two ||
		match_operand(s, &t->in[1], node->input[1])))
		return true;
	s->bound = before;
	if (!two || (strcmp(t->op, "Add") != 0 && strcmp(t->op, "Mul") != 0))
		return false;
	if (match_operand(s, &t->in[0], node->input[1]) && match_operand(s, &t->in[1], node->input[0]))
		return true;
	s->bound = before;
	return false;
}

/* Steps refer to later ones only, so the recursion is as deep as the table is long. */
static bool match_step(struct pattern_search *s, uint32_t step, uint32_t node)
{
	const struct pattern_step *t = &s->pattern->step[step];

	if (s->bound.node[step] != HD_NONE)
		return s->bound.node[step] == node;
	if (s->im->match[node].inside || s->im->match[node].op)
		return false;
	if (match_node(s, t, s->im->file.graph->node[node])) {
		s->bound.node[step] = node;
		return true;
	}
	return t->other && match_step(s, t->other, node);
}

/* Does only the pattern read what its nodes inside make? */
static bool closed(const struct pattern_search *s)
{
	const struct hd_importer *im = s->im;

	for (uint32_t k = 1; k < HD_PATTERN_STEPS; k++) {
		if (s->bound.node[k] == HD_NONE)
			continue;
		const struct hd_onnx_val *v = hd_onnx_find(im,
			im->file.graph->node[s->bound.node[k]]->output[0]);
		uint32_t n = 0;
		for (uint32_t j = 0; j < HD_PATTERN_STEPS; j++) {
			const Onnx__NodeProto *reader = s->bound.node[j] == HD_NONE ? NULL :
				im->file.graph->node[s->bound.node[j]];
			for (size_t i = 0; reader && i < reader->n_input; i++)
				n += !strcmp(reader->input[i], v->name);
		}
		if (n != v->nuses)
			return false;
	}
	return true;
}

static bool try_pattern(struct hd_importer *im, const struct pattern *p, uint32_t root)
{
	struct pattern_search s = { .im = im, .pattern = p };
	struct hd_onnx_match *m = &im->match[root];

	for (uint32_t k = 0; k < HD_PATTERN_STEPS; k++)
		s.bound.node[k] = HD_NONE;
	if (!match_step(&s, 0, root) || !closed(&s))
		return false;
	for (uint32_t k = 1; k < HD_PATTERN_STEPS; k++)
		if (s.bound.node[k] != HD_NONE)
			im->match[s.bound.node[k]].inside = true;
	m->op = p->op;
	m->nin = p->nin;
	for (uint32_t k = 0; k < HD_PATTERN_TENSORS; k++)
		m->in[k] = s.bound.tensor[k];
	for (uint32_t k = 0; k < HD_PATTERN_NUMBERS; k++)
		m->number[k] = s.bound.number[k];
	return true;
}

void hd_onnx_patterns(struct hd_importer *im)
{
	for (uint32_t i = 0; i < im->file.graph->n_node; i++)
		for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++)
			if (!im->match[i].inside && try_pattern(im, &patterns[p], i))
				break;
}

/* ---- what they become */

static enum hd_err fused_layernorm(struct hd_onnx_call *call)
{
	uint32_t in[3], y;

	for (uint32_t k = 0; k < 3; k++) {
		enum hd_err err = hd_onnx_value(call, k, &in[k]);
		if (err)
			return err;
	}
	enum hd_err err = hd_onnx_node(call, HD_OP_LAYERNORM, 3, in,
		(struct hd_attr){ .f = { (float)call->match->number[0] } }, &y);
	return err ? err : hd_onnx_put_like(call, 0, y);
}

static enum hd_err act(struct hd_onnx_call *call, int32_t which)
{
	uint32_t x, y;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (!err)
		err = hd_onnx_node1(call, HD_OP_ACT, x, (struct hd_attr){ .i = { which } }, &y);
	return err ? err : hd_onnx_put(call, 0, y, call->in[0]->rank, call->in[0]->dim);
}

static enum hd_err fused_gelu(struct hd_onnx_call *call) { return act(call, HD_ACT_GELU_ERF); }
static enum hd_err fused_gelu_tanh(struct hd_onnx_call *call) { return act(call, HD_ACT_GELU); }
