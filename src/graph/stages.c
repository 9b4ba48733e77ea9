#include "graph/stages.h"

#include <stdio.h>
#include <string.h>

/* Stage by stage: which node is of which, what crosses, then a graph of each. */

static enum hd_err no_memory(const struct hd_graph *graph, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory to cut a graph of %u nodes", graph->nnodes);
}

static enum hd_err check_first(const struct hd_graph *graph, const uint32_t *first, uint32_t n,
	struct hd_diag *diag)
{
	if (n == 0 || n > HD_MAX_STAGES || graph->nforward == graph->nnodes)
		return hd_fail(diag, HD_E_INVAL, "%u stages of a graph with %u gradient nodes", n,
			graph->nnodes - graph->nforward);
	for (uint32_t s = 0; s < n; s++)
		if (first[s] >= graph->nforward || (s ? first[s] <= first[s - 1] : first[s] != 0))
			return hd_fail(diag, HD_E_INVAL,
				"stage %u begins at node %u: stages begin with node 0, rise, and end before "
				"node %u", s, first[s], graph->nforward);
	return HD_OK;
}

/* Rule 1. A gradient node reads what was made before it, so one walk suffices. */
static void place_nodes(struct hd_graph_stages *s)
{
	const struct hd_graph *g = s->whole;
	uint16_t at = 0;

	for (uint32_t i = 0; i < g->nnodes; i++) {
		const struct hd_node *node = &g->node[i];
		while (at + 1u < s->n && s->first[at + 1] <= i)
			at++;
		s->of_node[i] = i < g->nforward ? at : s->of_node[node->of];
		/* what a forward node reads is made by none of gradients */
		for (uint8_t k = 0; k < node->nin; k++) {
			const struct hd_value *v = &g->value[node->in[k]];
			if (v->kind == HD_TEMP && v->node >= g->nforward &&
				s->of_node[v->node] < s->of_node[i])
				s->of_node[i] = s->of_node[v->node];
		}
	}
	for (uint32_t i = 0; i < hd_graph_ngrads(g); i++) {
		uint32_t grad = hd_graph_grad(g, i);
		s->of_grad[i] = grad == HD_NONE ? 0 : s->of_node[g->value[grad].node];
	}
}

/* The farthest stage that reads each value: the highest of what forward nodes make, the lowest of what
 * gradient nodes make. */
static enum hd_err find_reach(const struct hd_graph_stages *s, uint16_t *reach, struct hd_diag *diag)
{
	const struct hd_graph *g = s->whole;

	for (uint32_t v = 0; v < g->nvalues; v++)
		reach[v] = g->value[v].kind == HD_TEMP ? s->of_node[g->value[v].node] : 0;
	for (uint32_t i = 0; i < g->nnodes; i++)
		for (uint8_t k = 0; k < g->node[i].nin; k++) {
			uint32_t v = g->node[i].in[k];
			if (g->value[v].kind != HD_TEMP)
				continue;
			bool forward = g->value[v].node < g->nforward;
			uint16_t made = s->of_node[g->value[v].node], read = s->of_node[i];
			if (forward ? read < made : read > made)
				return hd_fail(diag, HD_E_BUG,
					"node %u of stage %u reads value %u, which stage %u makes: data flow "
					"the wrong way", i, read, v, made);
			if (forward ? read > reach[v] : read < reach[v])
				reach[v] = read;
		}
	return HD_OK;
}

/* Rule 2. */
static enum hd_err find_crossings(struct hd_graph_stages *s, const uint16_t *reach, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_graph *g = s->whole;

	for (uint32_t b = 0; b + 1 < s->n; b++) {
		s->act[b].value = hd_arena_take(arena, HD_MAX_ENDS, sizeof(uint32_t));
		s->grad[b].value = hd_arena_take(arena, HD_MAX_ENDS, sizeof(uint32_t));
		if (!s->act[b].value || !s->grad[b].value)
			return no_memory(g, diag);
	}
	for (uint32_t v = 0; v < g->nvalues; v++) {
		if (g->value[v].kind != HD_TEMP)
			continue;
		bool forward = g->value[v].node < g->nforward;
		uint16_t made = s->of_node[g->value[v].node], low = forward ? made : reach[v],
			high = forward ? reach[v] : made;
		for (uint32_t b = low; b < high; b++) {
			struct hd_crossing *c = forward ? &s->act[b] : &s->grad[b];
			if (c->n == HD_MAX_ENDS)
				return hd_fail(diag, HD_E_INVAL,
					"more than %d values cross from stage %u to stage %u: cut elsewhere, "
					"or into fewer stages", HD_MAX_ENDS, b, b + 1);
			c->value[c->n++] = v;
		}
	}
	return HD_OK;
}

/* ---- one stage ---- */

struct stage_building {
	const struct hd_graph_stages *all;
	struct hd_graph_stage *to;
	struct hd_diag *diag;
	uint32_t number;
	uint32_t *value, *node;           /* of the whole graph -> of the stage; HD_NONE: not in it */
};

static uint32_t add_value(struct stage_building *b, uint32_t of, uint8_t kind, uint32_t data)
{
	struct hd_graph *g = &b->to->graph;
	struct hd_value v = b->all->whole->value[of];

	v.kind = kind;
	v.data = data;
	v.node = v.grad = HD_NONE;
	g->value[g->nvalues] = v;
	b->value[of] = g->nvalues;
	return g->nvalues++;
}

/* `letter` 0: a field of the data, with its own name. */
static enum hd_err add_input(struct stage_building *b, uint32_t of, char letter)
{
	struct hd_graph *g = &b->to->graph;
	char name[24];
	enum hd_err err = HD_OK;

	if (g->ninputs == HD_MAX_ENDS)
		return hd_fail(b->diag, HD_E_INVAL,
			"stage %u reads more than %d values of its neighbours: cut elsewhere, or into fewer "
			"stages", b->number, HD_MAX_ENDS);
	uint32_t v = add_value(b, of, HD_INPUT, g->ninputs);
	g->input[g->ninputs++] = v;
	if (letter) {
		snprintf(name, sizeof name, "%c%u", letter, of);
		err = hd_graph_name(g, name, &g->value[v].name, b->diag);
	}
	return err;
}

static enum hd_err add_output(struct stage_building *b, uint32_t of, char letter, uint32_t *value)
{
	struct hd_graph *g = &b->to->graph;
	uint32_t at;
	char name[24];

	if (g->noutputs == HD_MAX_ENDS)
		return hd_fail(b->diag, HD_E_INVAL,
			"stage %u makes more than %d values for its neighbours: cut elsewhere, or into fewer "
			"stages", b->number, HD_MAX_ENDS);
	snprintf(name, sizeof name, "%c%u.out", letter, of);
	enum hd_err err = hd_graph_name(g, name, &at, b->diag);
	*value = b->value[of];
	g->output[g->noutputs++] = (struct hd_output){ at, *value };
	return err;
}

static enum hd_err take_stage(struct stage_building *b, struct hd_arena *arena)
{
	const struct hd_graph *w = b->all->whole;
	struct hd_graph *g = &b->to->graph;

	*g = (struct hd_graph){ .arena = arena, .name = w->name, .consts = w->consts,
		.consts_len = w->consts_len, .consts_cap = w->consts_len, .nrandom = w->nrandom,
		.names_len = w->names_len, .names_cap = w->names_len };
	g->value = hd_arena_take(arena, w->nvalues + 1, sizeof *g->value);
	g->node = hd_arena_take(arena, w->nnodes + 1, sizeof *g->node);
	g->param = hd_arena_take(arena, w->nparams + 1, sizeof *g->param);
	g->buffer = hd_arena_take(arena, w->nbuffers + 1, sizeof *g->buffer);
	g->running = hd_arena_take(arena, w->nrunning + 1, sizeof *g->running);
	g->input = hd_arena_take(arena, HD_MAX_ENDS, sizeof *g->input);
	g->output = hd_arena_take(arena, HD_MAX_ENDS, sizeof *g->output);
	g->part = hd_arena_take(arena, w->nparts + 1, sizeof *g->part);
	g->names = hd_arena_take(arena, w->names_len + 1, 1);
	b->to->act_out = hd_arena_take(arena, HD_MAX_ENDS, sizeof *b->to->act_out);
	b->to->grad_out = hd_arena_take(arena, HD_MAX_ENDS, sizeof *b->to->grad_out);
	b->to->running = hd_arena_take(arena, w->nrunning + 1, sizeof *b->to->running);
	b->to->learns = hd_arena_take(arena, hd_graph_ngrads(w) + 1, sizeof *b->to->learns);
	if (!g->value || !g->node || !g->param || !g->buffer || !g->running || !g->input || !g->output ||
		!g->part || !g->names || !b->to->act_out || !b->to->grad_out || !b->to->running ||
		!b->to->learns)
		return no_memory(w, b->diag);
	memcpy(g->names, w->names, w->names_len);
	g->value_cap = w->nvalues + 1;
	g->node_cap = w->nnodes + 1;
	for (uint32_t v = 0; v < w->nvalues; v++)
		b->value[v] = HD_NONE;
	for (uint32_t i = 0; i < w->nnodes; i++)
		b->node[i] = HD_NONE;
	return HD_OK;
}

/* Rule 4. */
static void add_state(struct stage_building *b)
{
	const struct hd_graph *w = b->all->whole;
	struct hd_graph *g = &b->to->graph;

	for (uint32_t i = 0; i < hd_graph_ngrads(w); i++)
		b->to->learns[i] = hd_graph_grad(w, i) != HD_NONE && b->all->of_grad[i] == b->number;
	for (uint32_t p = 0; p < w->nparams; p++) {
		g->param[p] = w->param[p];
		g->param[p].value = add_value(b, w->param[p].value, HD_PARAM, p);
		g->param[p].frozen = !b->to->learns[p];
	}
	for (uint32_t i = 0; i < w->nbuffers; i++) {
		g->buffer[i] = w->buffer[i];
		g->buffer[i].value = add_value(b, w->buffer[i].value, HD_BUFFER, i);
	}
	g->nparams = w->nparams;
	g->nbuffers = w->nbuffers;
}

static bool is_here(const struct stage_building *b, uint32_t node)
{
	return b->all->of_node[node] == b->number;
}

static enum hd_err add_inputs(struct stage_building *b)
{
	const struct hd_graph *w = b->all->whole;
	const struct hd_crossing *act = b->number ? &b->all->act[b->number - 1] : NULL,
		*grad = b->number + 1 < b->all->n ? &b->all->grad[b->number] : NULL;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < w->nnodes && !err; i++)
		for (uint8_t k = 0; is_here(b, i) && k < w->node[i].nin && !err; k++) {
			uint32_t v = w->node[i].in[k];
			if (w->value[v].kind == HD_INPUT && b->value[v] == HD_NONE)
				err = add_input(b, v, 0);
			if (w->value[v].kind == HD_CONST && b->value[v] == HD_NONE)
				add_value(b, v, HD_CONST, w->value[v].data);
		}
	b->to->ndata = b->to->graph.ninputs;
	for (uint32_t i = 0; act && i < act->n && !err; i++)
		err = add_input(b, act->value[i], 'a');
	for (uint32_t i = 0; grad && i < grad->n && !err; i++)
		err = add_input(b, grad->value[i], 'g');
	b->to->nact_in = act ? act->n : 0;
	b->to->ngrad_in = grad ? grad->n : 0;
	return err;
}

static bool crosses_back(const struct stage_building *b, const struct hd_node *node)
{
	const struct hd_crossing *out = b->number ? &b->all->grad[b->number - 1] : NULL;

	for (uint32_t i = 0; out && i < out->n; i++)
		if (out->value[i] >= node->out && out->value[i] < node->out + node->nout)
			return true;
	return false;
}

/* Rule 5, from the last node to the first: `early` are those that others wait for. Nodes of other stages make
 * none of this one early: what they read of it is not made there. */
static void advance_sent(struct stage_building *b, bool *early)
{
	const struct hd_graph *w = b->all->whole;

	for (uint32_t i = w->nnodes; i-- > w->nforward;) {
		early[i] |= crosses_back(b, &w->node[i]);
		for (uint8_t k = 0; early[i] && k < w->node[i].nin; k++) {
			const struct hd_value *v = &w->value[w->node[i].in[k]];
			if (v->kind == HD_TEMP && v->node >= w->nforward)
				early[v->node] = true;
		}
	}
}

static void add_node(struct stage_building *b, uint32_t i, bool early)
{
	const struct hd_graph *w = b->all->whole;
	struct hd_graph *g = &b->to->graph;
	struct hd_node node = w->node[i];

	for (uint8_t k = 0; k < node.nin; k++)
		node.in[k] = b->value[node.in[k]];
	node.stage = 0;
	/* a sum that stands lower than its forward node belongs to none here: any forward node will do */
	if (node.of != HD_NONE)
		node.of = b->node[node.of] == HD_NONE ? 0 : b->node[node.of];
	if (early)                        /* a gradient node: it is of phase I or W */
		node.phase = HD_PHASE_I;
	node.out = g->nvalues;
	for (uint8_t k = 0; k < node.nout; k++)
		g->value[add_value(b, w->node[i].out + k, HD_TEMP, 0)].node = g->nnodes;
	b->node[i] = g->nnodes;
	g->node[g->nnodes++] = node;
}

static enum hd_err add_outputs(struct stage_building *b)
{
	const struct hd_graph *w = b->all->whole;
	struct hd_graph *g = &b->to->graph;
	const struct hd_crossing *act = b->number + 1 < b->all->n ? &b->all->act[b->number] : NULL,
		*grad = b->number ? &b->all->grad[b->number - 1] : NULL;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < w->noutputs; i++) {
		uint32_t v = w->output[i].value;
		if (w->value[v].kind == HD_TEMP && is_here(b, w->value[v].node))
			g->output[g->noutputs++] = (struct hd_output){ w->output[i].name, b->value[v] };
	}
	for (uint32_t i = 0; act && i < act->n && !err; i++)
		err = add_output(b, act->value[i], 'a', &b->to->act_out[i]);
	for (uint32_t i = 0; grad && i < grad->n && !err; i++)
		err = add_output(b, grad->value[i], 'g', &b->to->grad_out[i]);
	for (uint32_t k = 0; k < w->nrunning; k++) {
		struct hd_running r = w->running[k];
		if (!is_here(b, w->value[r.moments].node))
			continue;
		b->to->running[g->nrunning] = k;
		g->running[g->nrunning++] = (struct hd_running){ b->value[r.mean], b->value[r.variance],
			b->value[r.moments], r.momentum };
	}
	for (uint32_t p = 0; p < w->nparams; p++)
		if (b->to->learns[p])
			g->value[g->param[p].value].grad = b->value[w->value[w->param[p].value].grad];
	for (uint32_t i = 0; i < w->nparts; i++)
		g->part[g->nparts++] = (struct hd_grad_part){ w->part[i].param,
			b->to->learns[w->nparams + i] ? b->value[w->part[i].value] : HD_NONE };
	return err;
}

static enum hd_err build(struct stage_building *b, bool *early, struct hd_arena *arena)
{
	const struct hd_graph *w = b->all->whole;
	enum hd_err err = take_stage(b, arena);

	if (err)
		return err;
	add_state(b);
	err = add_inputs(b);
	if (err)
		return err;
	memset(early, 0, w->nnodes);
	advance_sent(b, early);
	for (uint32_t i = 0; i < w->nnodes; i++) {
		if (!is_here(b, i))
			continue;
		add_node(b, i, early[i]);
		b->to->graph.nforward += i < w->nforward;
	}
	return add_outputs(b);
}

static enum hd_err take_all(struct hd_graph_stages *s, const uint32_t *first, struct hd_arena *arena,
	struct hd_diag *diag)
{
	s->first = hd_arena_take(arena, s->n, sizeof *s->first);
	s->of_node = hd_arena_take(arena, s->whole->nnodes, sizeof *s->of_node);
	s->of_grad = hd_arena_take(arena, hd_graph_ngrads(s->whole) + 1, sizeof *s->of_grad);
	s->act = hd_arena_take(arena, s->n, sizeof *s->act);
	s->grad = hd_arena_take(arena, s->n, sizeof *s->grad);
	s->stage = hd_arena_take(arena, s->n, sizeof *s->stage);
	if (!s->first || !s->of_node || !s->of_grad || !s->act || !s->grad || !s->stage)
		return no_memory(s->whole, diag);
	memcpy(s->first, first, s->n * sizeof *first);
	return HD_OK;
}

enum hd_err hd_graph_stages_make(struct hd_graph_stages *stages, const struct hd_graph *graph,
	const uint32_t *first, uint32_t n, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_graph_stages s = { .whole = graph, .n = n };
	enum hd_err err = check_first(graph, first, n, diag);

	err = err ? err : take_all(&s, first, arena, diag);
	if (err)
		return err;
	uint16_t *reach = hd_arena_take(arena, graph->nvalues, sizeof *reach);
	bool *early = hd_arena_take(arena, graph->nnodes, sizeof *early);
	struct stage_building b = { .all = &s, .diag = diag,
		.value = hd_arena_take(arena, graph->nvalues, sizeof *b.value),
		.node = hd_arena_take(arena, graph->nnodes, sizeof *b.node) };
	if (!reach || !early || !b.value || !b.node)
		return no_memory(graph, diag);
	place_nodes(&s);
	err = find_reach(&s, reach, diag);
	err = err ? err : find_crossings(&s, reach, arena, diag);
	for (; b.number < n && !err; b.number++) {
		b.to = &s.stage[b.number];
		err = build(&b, early, arena);
	}
	if (!err)
		*stages = s;
	return err;
}

uint16_t hd_graph_stages_lowest(const struct hd_graph_stages *stages, uint32_t param)
{
	const struct hd_graph *g = stages->whole;
	uint16_t lowest = stages->of_grad[param];

	for (uint32_t i = g->nparams; i < hd_graph_ngrads(g); i++)
		if (hd_graph_grad_param(g, i) == param && stages->of_grad[i] < lowest)
			lowest = stages->of_grad[i];
	return lowest;
}
