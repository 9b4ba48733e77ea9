#include "cost/front.h"

#include <string.h>

/* While nodes merge and go, the graph is a list of edges in the order of the file, and what became of each
 * node. */
struct edge { uint32_t from, to; };
struct loose {
	struct hd_front_node *node;
	bool *gone;
	uint32_t *head;                   /* of its chain; itself where it is in none */
	uint32_t n;
	struct edge *edge; uint32_t nedges;
	uint32_t *nin, *nout, *next;      /* next: the head of the last edge out */
};

static bool begins(const char *text, const char *word) { return !strncmp(text, word, strlen(word)); }

static void degrees(struct loose *g)
{
	memset(g->nin, 0, g->n * sizeof *g->nin);
	memset(g->nout, 0, g->n * sizeof *g->nout);
	for (uint32_t e = 0; e < g->nedges; e++) {
		g->nout[g->edge[e].from]++;
		g->nin[g->edge[e].to]++;
		g->next[g->edge[e].from] = g->edge[e].to;
	}
}

static void drop_edges_of_gone(struct loose *g)
{
	uint32_t kept = 0;

	for (uint32_t e = 0; e < g->nedges; e++)
		if (!g->gone[g->edge[e].from] && !g->gone[g->edge[e].to])
			g->edge[kept++] = g->edge[e];
	g->nedges = kept;
}

static bool fill(struct loose *g, const struct hd_profile *p, struct hd_arena *arena)
{
	uint32_t *seen = hd_arena_take(arena, p->nnodes, sizeof *seen);

	*g = (struct loose){ .n = p->nnodes, .node = hd_arena_take(arena, p->nnodes, sizeof *g->node),
		.gone = hd_arena_take(arena, p->nnodes, sizeof *g->gone),
		.edge = hd_arena_take(arena, (size_t)p->nedges + 1, sizeof *g->edge),
		.nin = hd_arena_take(arena, p->nnodes, sizeof *g->nin),
		.head = hd_arena_take(arena, p->nnodes, sizeof *g->head),
		.nout = hd_arena_take(arena, p->nnodes, sizeof *g->nout),
		.next = hd_arena_take(arena, p->nnodes, sizeof *g->next) };
	if (!seen || !g->node || !g->gone || !g->head || !g->edge || !g->nin || !g->nout || !g->next)
		return false;
	for (uint32_t v = 0; v < p->nnodes; v++) {
		g->node[v] = (struct hd_front_node){ hd_profile_node_ns(&p->node[v]), p->node[v].param, 0,
			v };
		g->head[v] = v;
		for (uint32_t t = 0; t < p->node[v].nouts; t++)
			g->node[v].out += p->node[v].out[t];
	}
	for (uint32_t e = 0; e < p->nedges; e++)
		g->edge[g->nedges++] = (struct edge){ p->edge[e].from, p->edge[e].to };
	return true;
}

/* u has several successors, x is one of them with one edge in: x takes in what follows it. The edges inside
 * the chain go; those of its last node become its own. `into` renames the tails of edges. */
static void take_in_chain(struct loose *g, uint32_t x, uint32_t *into)
{
	uint32_t last = x;

	while (g->nout[last] == 1 && g->nin[g->next[last]] == 1) {
		last = g->next[last];
		g->node[x].time_ns += g->node[last].time_ns;
		g->node[x].param += g->node[last].param;
		g->node[x].out = g->node[last].out;
		g->gone[last] = true;
		g->head[last] = x;
	}
	into[last] = x;
}

/* Edges in the order of the nodes they lead to; those to one node stay as they were. */
static bool by_heads(struct loose *g, struct hd_arena *arena)
{
	uint32_t *at = hd_arena_take(arena, (size_t)g->n + 1, sizeof *at);
	struct edge *sorted = hd_arena_take(arena, (size_t)g->nedges + 1, sizeof *sorted);

	if (!at || !sorted)
		return false;
	for (uint32_t e = 0; e < g->nedges; e++)
		at[g->edge[e].to + 1]++;
	for (uint32_t v = 0; v < g->n; v++)
		at[v + 1] += at[v];
	for (uint32_t e = 0; e < g->nedges; e++)
		sorted[at[g->edge[e].to]++] = g->edge[e];
	g->edge = sorted;
	return true;
}

static bool compress(struct loose *g, struct hd_arena *arena)
{
	uint32_t *into = hd_arena_take(arena, g->n, sizeof *into), kept = 0;

	if (!into)
		return false;
	for (uint32_t v = 0; v < g->n; v++)
		into[v] = v;
	degrees(g);
	for (uint32_t e = 0; e < g->nedges; e++)
		if (g->nout[g->edge[e].from] > 1 && g->nin[g->edge[e].to] == 1)
			take_in_chain(g, g->edge[e].to, into);
	for (uint32_t e = 0; e < g->nedges; e++) {
		struct edge edge = { into[g->edge[e].from], g->edge[e].to };
		if (!g->gone[edge.from] && !g->gone[edge.to])
			g->edge[kept++] = edge;
	}
	g->nedges = kept;
	return by_heads(g, arena);
}

static void drop_ends(struct loose *g, const struct hd_profile *p, bool sources)
{
	degrees(g);
	for (uint32_t v = 0; v < g->n; v++)
		if (!g->gone[v] && !(sources ? g->nin : g->nout)[v] &&
			begins(p->node[g->node[v].of].op, sources ? "Input" : "__getitem__"))
			g->gone[v] = true;
	drop_edges_of_gone(g);
}

/* Edges by tail; a pair that several tensors join is one edge. */
static bool settle(struct hd_cut_front *f, const struct loose *g, struct hd_arena *arena)
{
	uint32_t *number = hd_arena_take(arena, g->n, sizeof *number),
		*twin = hd_arena_take(arena, g->n, sizeof *twin);
	uint32_t *filled = hd_arena_take(arena, (size_t)g->n + 1, sizeof *filled), kept = 0;

	*f = (struct hd_cut_front){ .node = hd_arena_take(arena, g->n, sizeof *f->node),
		.home = hd_arena_take(arena, g->n, sizeof *f->home),
		.first = hd_arena_take(arena, (size_t)g->n + 2, sizeof *f->first),
		.succ = hd_arena_take(arena, (size_t)g->nedges + 1, sizeof *f->succ) };
	if (!number || !twin || !filled || !f->node || !f->home || !f->first || !f->succ)
		return false;
	for (uint32_t v = 0; v < g->n; v++)
		if (!g->gone[v]) {
			number[v] = f->n;
			f->node[f->n++] = g->node[v];
		}
	for (uint32_t v = 0; v < g->n; v++)
		f->home[v] = g->gone[g->head[v]] ? HD_NO_NODE : number[g->head[v]];
	for (uint32_t e = 0; e < g->nedges; e++)
		f->first[number[g->edge[e].from] + 1]++;
	for (uint32_t v = 0; v < f->n; v++) {
		f->first[v + 1] += f->first[v];
		filled[v] = f->first[v];
	}
	for (uint32_t e = 0; e < g->nedges; e++)
		f->succ[filled[number[g->edge[e].from]]++] = number[g->edge[e].to];
	for (uint32_t v = 0; v < f->n; v++) {
		uint32_t begin = f->first[v], end = f->first[v + 1];
		f->first[v] = kept;
		for (uint32_t e = begin; e < end; e++)
			if (twin[f->succ[e]] != v + 1) {
				twin[f->succ[e]] = v + 1;
				f->succ[kept++] = f->succ[e];
			}
	}
	f->first[f->n] = kept;
	return true;
}

/* Twins would make a successor look like two: they go before degrees are counted. */
static void drop_twins(struct loose *g, const struct hd_cut_front *all)
{
	g->nedges = 0;
	for (uint32_t v = 0; v < all->n; v++)
		for (uint32_t e = all->first[v]; e < all->first[v + 1]; e++)
			g->edge[g->nedges++] = (struct edge){ v, all->succ[e] };
}

enum hd_err hd_front_make(struct hd_cut_front *front, const struct hd_profile *profile, bool with_compress,
	struct hd_arena *arena)
{
	struct loose g;
	struct hd_cut_front all;

	if (!fill(&g, profile, arena) || !settle(&all, &g, arena))
		return HD_E_NOMEM;
	drop_twins(&g, &all);
	if (with_compress && !compress(&g, arena))
		return HD_E_NOMEM;
	drop_ends(&g, profile, true);
	drop_ends(&g, profile, false);
	return settle(front, &g, arena) ? HD_OK : HD_E_NOMEM;
}
