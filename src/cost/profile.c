#include "cost/profile.h"

#include <string.h>

#include "base/hash.h"
#include "cost/int.h"

static const char *const method_name[HD_NPROFILE_METHODS] = {
#define X(id, name) [HD_PROFILE_##id] = name,
	HD_PROFILE_METHODS(X)
#undef X
};

const char *hd_profile_method_name(enum hd_profile_method method) { return method_name[method]; }

bool hd_profile_ids_init(struct hd_profile_ids *ids, const struct hd_profile_node *node, uint32_t cap,
	struct hd_arena *arena)
{
	uint32_t n = 16;

	while (n < 2 * cap)
		n *= 2;
	*ids = (struct hd_profile_ids){ hd_arena_take(arena, n, sizeof *ids->at), n - 1, node };
	return ids->at != NULL;
}

static uint32_t *slot(const struct hd_profile_ids *ids, const char *id, size_t len)
{
	uint32_t i = (uint32_t)hd_hash64(id, len) & ids->mask;

	for (; ids->at[i]; i = (i + 1) & ids->mask) {
		const char *have = ids->node[ids->at[i] - 1].id;
		if (strlen(have) == len && !memcmp(have, id, len))
			break;
	}
	return &ids->at[i];
}

uint32_t hd_profile_ids_find(const struct hd_profile_ids *ids, const char *id, size_t len)
{
	return *slot(ids, id, len) - 1;
}

void hd_profile_ids_add(struct hd_profile_ids *ids, uint32_t inode)
{
	*slot(ids, ids->node[inode].id, strlen(ids->node[inode].id)) = inode + 1;
}

static bool sums_fit(const struct hd_profile *p, uint32_t *bad)
{
	int64_t time = 0, param = 0, out = 0, rest = 0;

	for (uint32_t v = 0; v < p->nnodes; v++) {
		const struct hd_profile_node *n = &p->node[v];
		bool fits = hd_profile_add(&time, n->f.p50_ns) && hd_profile_add(&time, n->i.p50_ns) &&
			hd_profile_add(&time, n->w.p50_ns) &&
			hd_profile_add(&param, n->param) && hd_profile_add(&rest, n->saved) &&
			hd_profile_add(&rest, n->opt) &&
			hd_profile_add(&rest, n->work);
		for (uint32_t t = 0; t < n->nouts; t++)
			fits = fits && hd_profile_add(&out, n->out[t]);
		*bad = v;
		if (!fits)
			return false;
	}
	return true;
}

/* Edges by their tail, in order, as index + 1; an edge that is there already is dropped. */
static void drop_twins(struct hd_profile *p, const uint32_t *start, uint32_t *edges)
{
	uint32_t kept = 0;

	for (uint32_t e = 0; e < p->nedges; e++) {
		struct hd_profile_edge edge = p->edge[e];
		uint32_t *mine = edges + start[edge.from], n = 0;
		while (mine[n] && (p->edge[mine[n] - 1].to != edge.to ||
			p->edge[mine[n] - 1].out != edge.out))
			n++;
		if (mine[n])
			continue;
		p->edge[kept++] = edge;
		mine[n] = kept;
	}
	p->nedges = kept;
}

/* Takes nodes whose predecessors are all taken; what is left holds a cycle. */
static uint32_t left_in_cycles(const struct hd_profile *p, const uint32_t *start, const uint32_t *edges,
	uint32_t *nin, uint32_t *queue)
{
	uint32_t head = 0, tail = 0;

	for (uint32_t e = 0; e < p->nedges; e++)
		nin[p->edge[e].to]++;
	for (uint32_t v = 0; v < p->nnodes; v++)
		if (!nin[v])
			queue[tail++] = v;
	while (head < tail) {
		uint32_t v = queue[head++];
		for (uint32_t e = start[v]; e < start[v + 1] && edges[e]; e++)
			if (!--nin[p->edge[edges[e] - 1].to])
				queue[tail++] = p->edge[edges[e] - 1].to;
	}
	return p->nnodes - tail;
}

/* A node on a cycle: from any node that was never taken, back along edges from such nodes as often as
 * there are nodes. */
static uint32_t on_a_cycle(const struct hd_profile *p, const uint32_t *nin, uint32_t *back)
{
	uint32_t v = 0;

	for (uint32_t e = 0; e < p->nedges; e++)
		if (nin[p->edge[e].from] && nin[p->edge[e].to])
			back[p->edge[e].to] = p->edge[e].from;
	while (!nin[v])
		v++;
	for (uint32_t i = 0; i < p->nnodes; i++)
		v = back[v];
	return v;
}

enum hd_err hd_profile_verify(struct hd_profile *p, const char **why, uint32_t *bad, struct hd_arena *arena)
{
	uint32_t *start = hd_arena_take(arena, (size_t)p->nnodes + 1, sizeof *start),
		*nin = hd_arena_take(arena, p->nnodes, sizeof *nin);
	uint32_t *queue = hd_arena_take(arena, p->nnodes, sizeof *queue),
		*edges = hd_arena_take(arena, (size_t)p->nedges + 1, sizeof *edges);

	*bad = UINT32_MAX;
	*why = "there is no node without an edge in: nothing to begin with";
	if (!start || !nin || !queue || !edges)
		return HD_E_NOMEM;
	if (p->nnodes == 0)
		return HD_E_INPUT;
	for (uint32_t e = 0; e < p->nedges; e++)
		start[p->edge[e].from + 1]++;
	for (uint32_t v = 0; v < p->nnodes; v++)
		start[v + 1] += start[v];
	drop_twins(p, start, edges);
	if (left_in_cycles(p, start, edges, nin, queue)) {
		*bad = on_a_cycle(p, nin, queue);
		*why = "the edges go round in a circle through this node";
		return HD_E_INPUT;
	}
	*why = "times or sizes add up to more than 2^53 ns or bytes at this node";
	return sums_fit(p, bad) ? HD_OK : HD_E_INPUT;
}

enum hd_err hd_profile_read(struct hd_profile *profile, const char *text, size_t len, const char *file,
	struct hd_arena *arena, struct hd_diag *diag)
{
	size_t i = 0;

	while (i < len && (text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t'))
		i++;
	return i < len && (text[i] == '{' || text[i] == '[') ? hd_profile_parse(profile, text, len, file,
		arena, diag)
					 : hd_profile_import(profile, text, len, file, arena, diag);
}
