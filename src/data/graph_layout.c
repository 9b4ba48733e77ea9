#include "data/graph_layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum hd_err hd_graph_layout_make(struct hd_graph_layout *l, const struct hd_prepared *graph, const char *name,
	uint32_t n, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t have = graph->head.nintervals;

	if (n == 0 || n > have || have % n)
		return hd_fail(diag, HD_E_INVAL, "%s has %u intervals: set batch.virtual_nodes to 1 or to a "
			"power "
			"of two up to %u, or prepare the graph with other --intervals", name, have, have);
	*l = (struct hd_graph_layout){ .graph = graph, .name = name, .n = n,
		.bound = hd_arena_take(arena, n + 1u, sizeof *l->bound) };
	if (!l->bound)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u virtual nodes", n);
	for (uint32_t i = 0; i < n; i++) {
		l->bound[i + 1] = graph->interval[(uint64_t)(i + 1) * (have / n)];
		if (l->bound[i + 1] <= l->bound[i] || l->bound[i + 1] > graph->head.nvertices)
			return hd_fail(diag, HD_E_INTEGRITY, "%s was changed while it is in use: its "
				"intervals",
				name);
		const uint64_t rows = l->bound[i + 1] - l->bound[i];
		l->rows = rows > l->rows ? rows : l->rows;
	}
	if (l->rows > (uint64_t)INT32_MAX / n)
		return hd_fail(diag, HD_E_REFUSED, "%s in %u virtual nodes of %" PRIu64 " rows: a step takes "
			"%d at "
			"most", name, n, l->rows, INT32_MAX);
	return HD_OK;
}

static uint32_t part_of(const struct hd_graph_layout *l, uint64_t vertex)
{
	uint32_t low = 0, high = l->n;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (l->bound[middle] <= vertex)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint64_t hd_graph_layout_row(const struct hd_graph_layout *l, uint64_t vertex)
{
	const uint32_t i = part_of(l, vertex);

	return i * l->rows + vertex - l->bound[i];
}

uint64_t hd_graph_layout_vertex(const struct hd_graph_layout *l, uint64_t row)
{
	const uint64_t i = row / l->rows, v = l->bound[i] + row % l->rows;

	return v < l->bound[i + 1] ? v : l->graph->head.nvertices;
}

/* ---- edges ---- */

/* What going through the edges of one virtual node needs. Of a vertex that is no own one: `seen` is 1 + the
 * virtual node that has it as a ghost, `place` its number among the ghosts. */
struct scan {
	const struct hd_graph_layout *layout;
	bool back;
	struct hd_edges edges;
	uint32_t *seen, *place, *ghost;
	uint64_t nedges, nghosts;
};

static enum hd_err changed(const struct scan *s, uint64_t vertex, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INTEGRITY, "%s was changed while it is in use: edges of vertex %" PRIu64,
		s->layout->name, vertex);
}

static enum hd_err edges_of(const struct scan *s, uint64_t v, uint64_t *from, uint64_t *end,
	struct hd_diag *diag)
{
	*from = s->edges.offset[v];
	*end = s->edges.offset[v + 1];
	return *from > *end || *end > s->layout->graph->head.nedges ? changed(s, v, diag) : HD_OK;
}

/* Counts; with `ghost` lists the ghosts, as they come. */
static enum hd_err scan(struct scan *s, uint32_t i, uint64_t cap, struct hd_diag *diag)
{
	const uint64_t first = s->layout->bound[i], last = s->layout->bound[i + 1];
	uint64_t e, end;

	s->nedges = s->nghosts = 0;
	for (uint64_t v = first; v < last; v++) {
		enum hd_err err = edges_of(s, v, &e, &end, diag);
		if (err)
			return err;
		s->nedges += end - e + 1;
		for (; e < end; e++) {
			const uint32_t u = s->edges.at[e];
			if (u >= s->layout->graph->head.nvertices)
				return changed(s, v, diag);
			if ((u >= first && u < last) || s->seen[u] == i + 1)
				continue;
			s->seen[u] = i + 1;
			if (s->ghost && s->nghosts == cap)
				return changed(s, v, diag);
			if (s->ghost)
				s->ghost[s->nghosts] = u;
			s->nghosts++;
		}
	}
	return HD_OK;
}

static uint64_t places(uint64_t n, uint64_t rows) { return n ? (n + rows - 1) / rows : 1; }

static enum hd_err count(struct scan *s, struct hd_graph_ends *ends, struct hd_diag *diag)
{
	const struct hd_graph_layout *l = s->layout;

	*ends = (struct hd_graph_ends){ .edges = 1, .ghosts = 1 };
	for (uint32_t i = 0; i < l->n; i++) {
		enum hd_err err = scan(s, i, 0, diag);
		if (err)
			return err;
		uint64_t edges = places(s->nedges, l->rows), ghosts = places(s->nghosts, l->rows);
		ends->edges = edges > ends->edges ? edges : ends->edges;
		ends->ghosts = ghosts > ends->ghosts ? ghosts : ends->ghosts;
	}
	if (l->rows * ends->edges > INT32_MAX || l->rows * (ends->ghosts + 1) > INT32_MAX)
		return hd_fail(diag, HD_E_REFUSED, "%s: a virtual node would have more than %d edges or "
			"ghosts: "
			"take more batch.virtual_nodes", l->name, INT32_MAX);
	memset(s->seen, 0, l->graph->head.nvertices * sizeof *s->seen);
	return HD_OK;
}

static enum hd_err begin(struct scan *s, const struct hd_graph_layout *l, bool back,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const uint64_t n = l->graph->head.nvertices;

	*s = (struct scan){ .layout = l, .back = back, .edges = back ? l->graph->out : l->graph->in,
		.seen = hd_arena_take(arena, n, sizeof *s->seen),
		.place = hd_arena_take(arena, n, sizeof *s->place) };
	return s->seen && s->place ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for the edges of %s",
		l->name);
}

enum hd_err hd_graph_ends_count(const struct hd_graph_layout *l, bool back,
	struct hd_graph_ends *ends, struct hd_diag *diag)
{
	struct hd_arena arena;
	struct scan s;

	hd_arena_init(&arena, 0);
	enum hd_err err = begin(&s, l, back, &arena, diag);
	err = err ? err : count(&s, ends, diag);
	hd_arena_finish(&arena);
	return err;
}

static int ascending(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Where the vertex at a far end is among own rows and ghosts; -1: neither, the file was changed. */
static int32_t far_of(const struct scan *s, uint32_t i, uint64_t u)
{
	const uint64_t *own = s->layout->bound + i;

	if (u >= own[0] && u < own[1])
		return (int32_t)(u - own[0]);
	return u < s->layout->graph->head.nvertices && s->seen[u] == i + 1 ?
		(int32_t)(s->layout->rows + s->place[u]) : -1;
}

/* The place of an edge in the list of the whole graph, each vertex with one to itself; -1: there is none, the
 * file was changed. */
static int32_t number_of(const struct hd_graph_layout *l, uint64_t from, uint64_t to)
{
	const struct hd_prepared *g = l->graph;
	const uint64_t first = g->in.offset[to], end = g->in.offset[to + 1];
	uint64_t low = first, high = end;

	if (first > end || end > g->head.nedges)
		return -1;
	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;
		if (g->in.at[middle] < from)
			low = middle + 1;
		else
			high = middle;
	}
	if (from != to && (low == end || g->in.at[low] != from))
		return -1;
	return (int32_t)(low + to + (from > to));
}

static enum hd_err list_edges(struct scan *s, uint32_t i, const struct hd_graph_ends *ends,
	struct hd_diag *diag)
{
	const uint64_t cap = s->layout->rows * ends->edges, first = s->layout->bound[i],
		last = s->layout->bound[i + 1];
	int32_t *far = ends->far + i * cap, *near = ends->near + i * cap,
		*number = ends->number + i * cap;
	uint64_t e, end, n = 0;

	for (uint64_t v = first; v < last; v++) {
		enum hd_err err = edges_of(s, v, &e, &end, diag);
		if (err)
			return err;
		if (n + (end - e) + 1 > cap)
			return changed(s, v, diag);
		/* far ends ascend; the vertex itself comes where it would stand among them */
		for (bool self = false; e < end || !self; n++) {
			const bool now = !self && (e == end || s->edges.at[e] > v);
			const uint64_t u = now ? v : s->edges.at[e];
			near[n] = (int32_t)(v - first);
			far[n] = far_of(s, i, u);
			if (far[n] < 0)
				return changed(s, v, diag);
			number[n] = number_of(s->layout, s->back ? v : u, s->back ? u : v);
			if (number[n] < 0)
				return changed(s, v, diag);
			e += !now;
			self |= now;
		}
	}
	for (; n < cap; n++)
		far[n] = near[n] = number[n] = -1;
	return HD_OK;
}

static enum hd_err list_part(struct scan *s, uint32_t i, const struct hd_graph_ends *ends,
	struct hd_diag *diag)
{
	const uint64_t cap = s->layout->rows * ends->ghosts;
	int32_t *ghost = ends->ghost + i * cap;
	enum hd_err err = scan(s, i, cap, diag);

	if (err)
		return err;
	qsort(s->ghost, s->nghosts, sizeof *s->ghost, ascending);
	for (uint64_t k = 0; k < s->nghosts; k++) {
		s->place[s->ghost[k]] = (uint32_t)k;
		ghost[k] = (int32_t)hd_graph_layout_row(s->layout, s->ghost[k]);
	}
	for (uint64_t k = s->nghosts; k < cap; k++)
		ghost[k] = -1;
	return list_edges(s, i, ends, diag);
}

enum hd_err hd_graph_ends_make(const struct hd_graph_layout *l, bool back,
	struct hd_graph_ends *ends, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_arena own;
	struct scan s;

	hd_arena_init(&own, 0);
	enum hd_err err = begin(&s, l, back, &own, diag);
	err = err ? err : count(&s, ends, diag);
	if (!err) {
		const uint64_t all = l->n * l->rows;
		ends->far = hd_arena_take(arena, all * ends->edges, sizeof *ends->far);
		ends->near = hd_arena_take(arena, all * ends->edges, sizeof *ends->near);
		ends->number = hd_arena_take(arena, all * ends->edges, sizeof *ends->number);
		ends->ghost = hd_arena_take(arena, all * ends->ghosts, sizeof *ends->ghost);
		s.ghost = hd_arena_take(&own, l->rows * ends->ghosts, sizeof *s.ghost);
		if (!ends->far || !ends->near || !ends->number || !ends->ghost || !s.ghost)
			err = hd_fail(diag, HD_E_NOMEM, "no memory for the edges of %s", l->name);
	}
	for (uint32_t i = 0; i < l->n && !err; i++)
		err = list_part(&s, i, ends, diag);
	hd_arena_finish(&own);
	return err;
}

enum hd_err hd_graph_shape(struct hd_graph_shape *shape, struct hd_fs *fs, const char *path, uint32_t n,
	struct hd_diag *diag)
{
	struct hd_prepared_file file = { 0 };
	struct hd_graph_layout layout;
	struct hd_arena arena;
	enum hd_err err = hd_prepared_open(&file, fs, path, true, diag);

	hd_arena_init(&arena, 0);
	err = err ? err : hd_graph_layout_make(&layout, &file.graph, path, n, &arena, diag);
	err = err ? err : hd_graph_ends_count(&layout, false, &shape->in, diag);
	err = err ? err : hd_graph_ends_count(&layout, true, &shape->out, diag);
	if (!err)
		shape->rows = layout.rows;
	hd_arena_finish(&arena);
	hd_prepared_close(&file);
	return err;
}
