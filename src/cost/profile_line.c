#include "cost/profile_line.h"

#include <string.h>

/* What crosses each place of a graph's order is a sum over values: each adds its bytes where it begins to
 * cross and takes them off where it no longer does. */

struct line_maker {
	const struct hd_graph *graph;
	uint64_t rows;
	uint32_t *place;                  /* [nodes] of a gradient node: the forward node at which it runs */
	uint32_t *reach;                  /* [values] the farthest place that reads it */
	int64_t *act, *grad;              /* [nforward + 1] bytes that cross before a forward node */
};

static bool take(struct line_maker *m, struct hd_arena *arena)
{
	const struct hd_graph *g = m->graph;

	m->place = hd_arena_take(arena, (size_t)g->nnodes + 1, sizeof *m->place);
	m->reach = hd_arena_take(arena, (size_t)g->nvalues + 1, sizeof *m->reach);
	m->act = hd_arena_take(arena, (size_t)g->nforward + 2, sizeof *m->act);
	m->grad = hd_arena_take(arena, (size_t)g->nforward + 2, sizeof *m->grad);
	return m->place && m->reach && m->act && m->grad;
}

static bool is_back(const struct hd_graph *g, uint32_t value)
{
	return g->value[value].node >= g->nforward;
}

/* Cuts are monotone, so the lowest place stands for the lowest stage (graph/stages.h, rule 1). */
static void find_places(struct line_maker *m)
{
	const struct hd_graph *g = m->graph;

	for (uint32_t i = 0; i < g->nnodes; i++) {
		const struct hd_node *node = &g->node[i];
		m->place[i] = i < g->nforward ? i : node->of;
		for (uint8_t k = 0; i >= g->nforward && k < node->nin; k++) {
			uint32_t v = node->in[k];
			if (g->value[v].kind == HD_TEMP && is_back(g, v) &&
				m->place[g->value[v].node] < m->place[i])
				m->place[i] = m->place[g->value[v].node];
		}
	}
}

static void find_reach(struct line_maker *m)
{
	const struct hd_graph *g = m->graph;

	for (uint32_t v = 0; v < g->nvalues; v++)
		m->reach[v] = g->value[v].kind == HD_TEMP ? m->place[g->value[v].node] : 0;
	for (uint32_t i = 0; i < g->nnodes; i++)
		for (uint8_t k = 0; k < g->node[i].nin; k++) {
			uint32_t v = g->node[i].in[k], at = m->place[i];
			if (g->value[v].kind == HD_TEMP && (is_back(g, v) ? at < m->reach[v] :
				at > m->reach[v]))
				m->reach[v] = at;
		}
}

static void sum_up(struct line_maker *m)
{
	const struct hd_graph *g = m->graph;

	for (uint32_t v = 0; v < g->nvalues; v++) {
		if (g->value[v].kind != HD_TEMP)
			continue;
		const bool back = is_back(g, v);
		const uint32_t made = m->place[g->value[v].node], low = back ? m->reach[v] : made,
			high = back ? made : m->reach[v];
		const int64_t bytes = (int64_t)hd_value_bytes(&g->value[v], m->rows);
		int64_t *at = back ? m->grad : m->act;
		at[low + 1] += bytes;
		at[high + 1] -= bytes;
	}
	for (uint32_t i = 1; i <= g->nforward; i++) {
		m->act[i] += m->act[i - 1];
		m->grad[i] += m->grad[i - 1];
	}
}

/* What joined a later node (profile_graph.h, rule 1) may stand before it: first[] rises nevertheless. */
static void find_first(struct hd_profile_line *line, const struct line_maker *m, const uint32_t *home)
{
	uint32_t n = 0;

	for (uint32_t k = 1; k < line->profile.nnodes; k++) {
		for (n++; n + 1 < m->graph->nforward && home[n] != k; n++)
			;
		line->first[k] = n;
	}
}

static enum hd_err chain(struct hd_profile_line *line, const struct line_maker *m, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_profile *p = &line->profile;
	int64_t *out = hd_arena_take(arena, (size_t)p->nnodes + 1, sizeof *out);
	struct hd_profile_node *node = hd_arena_take(arena, (size_t)p->nnodes + 1, sizeof *node);

	p->edge = hd_arena_take(arena, (size_t)p->nnodes + 1, sizeof *p->edge);
	if (!out || !node || !p->edge)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a profile of %u nodes", p->nnodes);
	memcpy(node, p->node, p->nnodes * sizeof *node);
	p->node = node;
	p->nedges = 0;
	for (uint32_t k = 0; k < p->nnodes; k++) {
		const bool last = k + 1 == p->nnodes;
		out[k] = last ? 0 : m->act[line->first[k + 1]];
		line->back[k] = k ? m->grad[line->first[k]] : 0;
		node[k].out = &out[k];
		node[k].nouts = !last;
		if (!last)
			p->edge[p->nedges++] = (struct hd_profile_edge){ k, k + 1, 0 };
	}
	return HD_OK;
}

enum hd_err hd_profile_line(struct hd_profile_line *line, const struct hd_profile *profile,
	const uint32_t *home, const struct hd_graph *graph, uint64_t rows, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_profile_line made = { .profile = *profile };
	struct line_maker m = { .graph = graph, .rows = rows };

	made.first = hd_arena_take(arena, (size_t)profile->nnodes + 1, sizeof *made.first);
	made.back = hd_arena_take(arena, (size_t)profile->nnodes + 1, sizeof *made.back);
	if (!take(&m, arena) || !made.first || !made.back)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a profile of %u nodes", profile->nnodes);
	find_places(&m);
	find_reach(&m);
	sum_up(&m);
	find_first(&made, &m, home);
	enum hd_err err = chain(&made, &m, arena, diag);
	if (!err)
		*line = made;
	return err;
}
