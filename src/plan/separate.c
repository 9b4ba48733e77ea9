#include "plan/separate.h"

#include <string.h>

#include "graph/domain.h"
#include "graph/op.h"

enum { MAX_ITEMS = 1 << 14, MAX_GROUPS = 640, MAX_DEPTH = 64 };

/* Where a value was made, by item + 1: by its node, at the sources' end again; sent, and what is kept of
 * it. */
enum place { LOCAL, AGAIN, SENT, KEPT, SENT_KEPT, NPLACES };

struct split {
	const struct hd_graph *graph;
	uint8_t *domain;
	bool *bound;                      /* [nvalues] made of inputs alone */
	uint32_t *at[NPLACES];            /* [nvalues] */
	uint32_t from, to;                /* the lists, as the forward ops read them */
	struct hd_phase_item *item; uint32_t nitems;
	uint32_t *need; uint32_t nneeds;  /* of the item at hand: items */
	struct hd_graph_phase *group; uint32_t ngroups;
	uint8_t *edge;                    /* [MAX_GROUPS][MAX_GROUPS] a needs b */
	uint32_t loss;                    /* node of the loss */
	bool backward;                    /* the node at hand is of the gradient */
	struct hd_diag *diag;
};

enum { MAX_NEEDS = 64 };

static enum hd_err refuse(const struct split *s, uint32_t node, const char *what)
{
	return hd_fail(s->diag, HD_E_INVAL, "node %u (%s): %s", node, hd_ops[s->graph->node[node].op].name,
		what);
}

/* ---- groups */

static bool reaches(const struct split *s, uint32_t from, uint32_t to, bool *seen)
{
	if (from == to)
		return true;
	seen[from] = true;
	for (uint32_t g = 0; g < s->ngroups; g++)
		if (s->edge[from * MAX_GROUPS + g] && !seen[g] && reaches(s, g, to, seen))
			return true;
	return false;
}

/* Would an item with these needs leave group g and come back to it? */
static bool comes_back(const struct split *s, uint32_t g)
{
	for (uint32_t k = 0; k < s->nneeds; k++) {
		uint32_t h = s->item[s->need[k]].group;
		bool seen[MAX_GROUPS] = { false };
		if (h != g && reaches(s, h, g, seen))
			return true;
	}
	return false;
}

static enum hd_err add_item(struct split *s, struct hd_phase_item item, uint32_t *at)
{
	uint32_t g = s->ngroups;

	if (s->nitems == MAX_ITEMS)
		return hd_fail(s->diag, HD_E_REFUSED, "more than %d items of phases", MAX_ITEMS);
	while (g-- > 0)
		if (s->group[g].kind == item.kind && s->group[g].end == item.end)
			break;
	if (g == UINT32_MAX || comes_back(s, g)) {
		if (s->ngroups == MAX_GROUPS)
			return hd_fail(s->diag, HD_E_REFUSED,
				"more than %d phases: a model of fewer layers", MAX_GROUPS);
		g = s->ngroups++;
		s->group[g] = (struct hd_graph_phase){ .kind = item.kind, .end = item.end, .backward =
			s->backward,
			.first = s->nitems };
	}
	item.group = g;
	for (uint32_t k = 0; k < s->nneeds; k++)
		if (s->item[s->need[k]].group != g)
			s->edge[g * MAX_GROUPS + s->item[s->need[k]].group] = 1;
	s->item[s->nitems] = item;
	*at = s->nitems++;
	return HD_OK;
}

/* ---- items */

static enum hd_err make(struct split *s, uint32_t node, enum hd_phase_end end, bool again, uint32_t depth,
	uint32_t *at);

/* The item that value is there, which is made if need be; HD_NONE: it is bound, and needs none. */
static enum hd_err value_at(struct split *s, uint32_t value, enum place place, uint32_t depth, uint32_t *at);

static enum hd_err needs(struct split *s, uint32_t *list, uint32_t *n, uint32_t value, enum place place,
	uint32_t depth)
{
	uint32_t item = HD_NONE;
	enum hd_err err = value_at(s, value, place, depth, &item);

	if (err == HD_OK && item != HD_NONE && *n < MAX_NEEDS)
		list[(*n)++] = item;
	return err;
}

static enum hd_err value_at(struct split *s, uint32_t value, enum place place, uint32_t depth, uint32_t *at)
{
	const struct hd_value *v = &s->graph->value[value];
	uint32_t list[MAX_NEEDS], n = 0;
	enum hd_err err = HD_OK;

	*at = HD_NONE;
	if (s->bound[value] || v->kind != HD_TEMP)
		return HD_OK;
	if (s->at[place][value]) {
		*at = s->at[place][value] - 1;
		return HD_OK;
	}
	if (depth == MAX_DEPTH)
		return refuse(s, v->node, "a value of edges is made by too long a chain to be made again");
	if (place == LOCAL)
		return refuse(s, v->node, "it is read before it is made");
	if (place == AGAIN)
		return make(s, v->node, HD_EDGES_OUT, true, depth + 1, at);
	struct hd_phase_item item = { .value = value, .kind = HD_PHASE_SC, .kept = place != SENT };
	if (place == KEPT) {
		const struct hd_node *node = &s->graph->node[v->node];
		item.kind = HD_PHASE_AE;
		item.end = HD_EDGES_IN;
		for (int k = 1; k < node->nin && err == HD_OK; k++)
			err = needs(s, list, &n, node->in[k], LOCAL, depth + 1);
	} else {
		err = needs(s, list, &n, value, place == SENT ? LOCAL : KEPT, depth + 1);
	}
	if (err)
		return err;
	s->need = list;
	s->nneeds = n;
	err = add_item(s, item, at);
	s->at[place][value] = *at + 1;
	return err;
}

/* Which end an op of edges is at: that of its result, or of the list it reads. */
static enum hd_err end_of(struct split *s, uint32_t node, enum hd_phase_end *end)
{
	const struct hd_node *n = &s->graph->node[node];
	const struct hd_edge_op *e = hd_edge_op(n->op);
	const char *t = strchr(e->operand, 't'), *a = strchr(e->operand, 'a');
	uint32_t list = t ? n->in[t - e->operand] : a ? n->in[a - e->operand] : HD_NONE;

	*end = HD_EDGES_IN;
	for (int k = 0; k < n->nin; k++)
		if (strchr("ftan", e->operand[k]) && !s->bound[n->in[k]])
			return refuse(s, node, "its list of edges is computed, not given");
	if (list == HD_NONE)
		return HD_OK;
	if (t && s->to == HD_NONE) {
		const char *f = strchr(e->operand, 'f');
		s->to = list;
		s->from = f ? n->in[f - e->operand] : HD_NONE;
	}
	*end = list == s->to ? HD_EDGES_IN : HD_EDGES_OUT;
	if (s->from == HD_NONE && *end == HD_EDGES_OUT)
		s->from = list;
	return list == s->to || list == s->from ? HD_OK : refuse(s, node,
		"it reads other edges than the ops before it");
}

static enum hd_err edge_item(struct split *s, uint32_t node, enum hd_phase_end end, bool again,
	uint32_t depth,
	struct hd_phase_item *item, uint32_t *list, uint32_t *n)
{
	const struct hd_node *op = &s->graph->node[node];
	const struct hd_edge_op *e = hd_edge_op(op->op);
	const bool softmax = op->op == HD_OP_EDGE_SOFTMAX || op->op == HD_OP_EDGE_SOFTMAX_DX;
	enum hd_phase_end own = HD_EDGES_IN;
	enum hd_err err = end_of(s, node, &own);
	bool far = false;

	/* `turned`: the op's lists stand the other way round than forward ops have them */
	const bool turned = own == HD_EDGES_OUT && strchr(e->operand, 'f');
	for (int k = 0; k < op->nin && err == HD_OK; k++) {
		char is = e->operand[k];
		if (is == 'F' || is == 'T') {
			bool source = (is == 'F') != turned, away = source == (end == HD_EDGES_IN);
			far |= away;
			err = needs(s, list, n, op->in[k], away ? SENT : LOCAL, depth);
		} else if (is == 'e') {
			err = needs(s, list, n, op->in[k], end == HD_EDGES_OUT ? AGAIN : LOCAL, depth);
		}
	}
	if (err == HD_OK && softmax && again)
		err = needs(s, list, n, op->out, SENT_KEPT, depth);
	item->kind = e->result == HD_DOMAIN_V && (far || end == HD_EDGES_OUT) ? HD_PHASE_GA : HD_PHASE_AE;
	item->end = (uint8_t)end;
	return err;
}

static bool is_norm(uint16_t op)
{
	return strncmp(hd_ops[op].name, "batchnorm", 9) == 0;
}

static enum hd_err other_item(struct split *s, uint32_t node, enum hd_phase_end end, bool again,
	uint32_t depth,
	struct hd_phase_item *item, uint32_t *list, uint32_t *n)
{
	const struct hd_node *op = &s->graph->node[node];
	const bool edges = s->domain[op->out] == HD_DOMAIN_E;
	bool rows = false, sums = false;
	enum hd_err err = HD_OK;

	if (is_norm(op->op))
		return refuse(s, node,
			"a norm over the vertices mixes the rows of all intervals: norms of a graph are "
			"per vertex (layernorm)");
	if (edges && hd_ops[op->op].class == HD_OP_RANDOM)
		return refuse(s, node,
			"what is drawn on edges is drawn again at their other end: edge_dropout does");
	for (int k = 0; k < op->nin && err == HD_OK; k++) {
		uint32_t v = op->in[k];
		rows |= s->domain[v] == HD_DOMAIN_V || s->domain[v] == HD_DOMAIN_E;
		sums |= (s->domain[v] == HD_DOMAIN_P || s->domain[v] == HD_DOMAIN_S) &&
			s->graph->value[v].kind == HD_TEMP && !s->bound[v];
		err = needs(s, list, n, v, again ? AGAIN : LOCAL, depth);
	}
	if (err == HD_OK && rows && sums && s->domain[op->out] != HD_DOMAIN_P && s->domain[op->out] !=
		HD_DOMAIN_S)
		err = refuse(s, node,
			"it reads a sum over all vertices or edges, which is not there before the step ends");
	item->kind = edges ? HD_PHASE_AE : HD_PHASE_AV;
	item->end = edges ? (uint8_t)(end == HD_EDGES_NONE ? HD_EDGES_IN : end) : HD_EDGES_NONE;
	return err;
}

static enum hd_err make(struct split *s, uint32_t node, enum hd_phase_end end, bool again, uint32_t depth,
	uint32_t *at)
{
	const struct hd_node *op = &s->graph->node[node];
	struct hd_phase_item item = { .value = op->out, .again = again };
	uint32_t list[MAX_NEEDS], n = 0;
	enum hd_err err = HD_OK;

	if (hd_edge_op(op->op)) {
		if (!again)
			err = end_of(s, node, &end);
		err = err ? err : edge_item(s, node, end, again, depth, &item, list, &n);
	} else {
		err = other_item(s, node, end, again, depth, &item, list, &n);
	}
	if (err)
		return err;
	s->need = list;
	s->nneeds = n;
	err = add_item(s, item, at);
	for (uint32_t k = 0; k < op->nout && err == HD_OK; k++)
		s->at[again ? AGAIN : LOCAL][op->out + k] = *at + 1;
	return err;
}

/* ---- the graph */

static enum hd_err prepare(struct split *s, struct hd_arena *arena)
{
	const struct hd_graph *g = s->graph;
	uint32_t loss = hd_graph_find_output(g, "loss");
	bool room = true;

	s->domain = hd_arena_take(arena, g->nvalues + 1u, 1);
	s->bound = hd_arena_take(arena, g->nvalues + 1u, sizeof *s->bound);
	s->item = hd_arena_take(arena, MAX_ITEMS, sizeof *s->item);
	s->group = hd_arena_take(arena, MAX_GROUPS + 1, sizeof *s->group);
	s->edge = hd_arena_take(arena, MAX_GROUPS * MAX_GROUPS, 1);
	for (int p = 0; p < NPLACES; p++)
		room &= (s->at[p] = hd_arena_take(arena, g->nvalues + 1u, sizeof **s->at)) != NULL;
	if (!s->domain || !s->bound || !s->item || !s->group || !s->edge || !room)
		return hd_fail(s->diag, HD_E_NOMEM, "no memory for the phases of %u nodes", g->nnodes);
	s->from = s->to = HD_NONE;
	s->loss = loss == HD_NONE ? HD_NONE : g->value[loss].node;
	for (uint32_t v = 0; v < g->nvalues; v++)
		s->bound[v] = g->value[v].kind == HD_INPUT || g->value[v].kind == HD_CONST;
	for (uint32_t i = 0; i < g->nnodes; i++) {
		const struct hd_node *n = &g->node[i];
		bool bound = !hd_edge_op(n->op) && hd_ops[n->op].class != HD_OP_RANDOM;
		for (int k = 0; k < n->nin; k++)
			bound &= s->bound[n->in[k]];
		for (uint32_t k = 0; k < n->nout; k++)
			s->bound[n->out + k] = bound;
	}
	return hd_graph_domains(g, s->domain, s->diag);
}

/* Items of a phase stand together, in the order in which they were made. */
static enum hd_err in_order(struct split *s, struct hd_phase_list *list, struct hd_arena *arena)
{
	bool done[MAX_GROUPS] = { false };

	list->phase = hd_arena_take(arena, s->ngroups + 1u, sizeof *list->phase);
	list->item = hd_arena_take(arena, s->nitems + 1u, sizeof *list->item);
	if (!list->phase || !list->item)
		return hd_fail(s->diag, HD_E_NOMEM, "no memory for %u phases", s->ngroups);
	while (list->nphases < s->ngroups) {
		uint32_t best = HD_NONE;
		for (uint32_t g = 0; g < s->ngroups; g++) {
			bool ready = !done[g];
			for (uint32_t h = 0; h < s->ngroups; h++)
				ready &= !s->edge[g * MAX_GROUPS + h] || done[h];
			if (ready && (best == HD_NONE || s->group[g].first < s->group[best].first))
				best = g;
		}
		if (best == HD_NONE)
			return hd_fail(s->diag, HD_E_BUG, "phases wait for one another");
		struct hd_graph_phase *p = &list->phase[list->nphases++];
		*p = s->group[best];
		p->first = list->nitems;
		for (uint32_t i = 0; i < s->nitems; i++)
			if (s->item[i].group == best) {
				list->item[list->nitems] = s->item[i];
				list->item[list->nitems++].group = list->nphases - 1;
			}
		p->n = list->nitems - p->first;
		done[best] = true;
	}
	return HD_OK;
}

enum hd_err hd_separate(struct hd_phase_list *list, const struct hd_graph *graph, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct split s = { .graph = graph, .diag = diag };
	enum hd_err err = prepare(&s, arena);
	uint32_t at = 0;

	*list = (struct hd_phase_list){ 0 };
	for (uint32_t i = 0; i < graph->nnodes && err == HD_OK; i++) {
		s.backward = graph->node[i].phase != HD_PHASE_F;
		if (s.bound[graph->node[i].out])
			continue;
		err = make(&s, i, HD_EDGES_NONE, false, 0, &at);
		if (err == HD_OK && i == s.loss)
			s.group[s.item[at].group].loss = true;
	}
	err = err ? err : in_order(&s, list, arena);
	if (err == HD_OK && graph->nforward < graph->nnodes)
		list->phase[list->nphases++] = (struct hd_graph_phase){ .kind = HD_PHASE_WU, .backward = true,
			.first = list->nitems };
	return err;
}

void hd_phase_list_print(const struct hd_phase_list *list, struct hd_text *text)
{
	static const char *const names[] = { "GA", "AV", "AE", "SC", "WU" };

	for (uint32_t i = 0; i < list->nphases; i++) {
		const struct hd_graph_phase *p = &list->phase[i], *next = p + 1;
		bool edges = p->kind == HD_PHASE_GA || p->kind == HD_PHASE_AE;
		hd_text_addf(text, "%s%s%s", i ? " " : "", names[p->kind],
			p->loss ? "^" : p->backward && p->kind != HD_PHASE_WU ? "B" : "");
		if (p->kind == HD_PHASE_AE && p->end == HD_EDGES_OUT && i + 1 < list->nphases &&
			next->kind == HD_PHASE_GA && next->end == HD_EDGES_OUT) {
			hd_text_add(text, "+GAB(out-edges)");
			i++;
		} else if (edges && p->kind == HD_PHASE_AE && p->backward) {
			hd_text_add(text, p->end == HD_EDGES_OUT ? "(out-edges)" : "(in-edges)");
		}
	}
}
