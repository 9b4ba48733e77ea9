#include "gnn/split.h"

#include <string.h>

#include "base/alloc.h"
#include "gnn/split_int.h"

enum { EDGES_EACH = 1000000, FEWEST = 16, VERTICES_EACH = 16 };

uint32_t hd_split_intervals(uint64_t nvertices, uint64_t nedges)
{
	uint64_t want = (nedges + EDGES_EACH - 1) / EDGES_EACH, n = FEWEST;

	while (n < want && n < HD_PREPARED_INTERVALS_CAP)
		n *= 2;
	while (n > 1 && n > nvertices / VERTICES_EACH)
		n /= 2;
	return (uint32_t)n;
}

/* Vertices by (group, id); the group of a vertex is its path so far. */
struct splitting {
	const struct hd_split_graph *graph;
	const struct hd_split_how *how;
	uint32_t *group;                  /* by vertex; the result */
	uint32_t *order, *spare;          /* vertices */
	uint32_t *local;                  /* by vertex: its number in the part at hand */
	/* of the part at hand */
	uint64_t *offset; uint32_t *at, *weight; uint8_t *side;
	uint32_t ndone, nmetis;
	bool metis;                       /* take it while it can */
};

static void part_edges(struct splitting *s, const uint32_t *vertex, uint32_t n)
{
	const struct hd_edges *edges = &s->graph->edges;
	uint32_t group = s->group[vertex[0]];
	uint64_t nedges = 0;

	for (uint32_t i = 0; i < n; i++)
		s->local[vertex[i]] = i;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t v = vertex[i];
		s->offset[i] = nedges;
		s->weight[i] = s->graph->weight[v];
		for (uint64_t e = edges->offset[v]; e < edges->offset[v + 1]; e++)
			if (s->group[edges->at[e]] == group)
				s->at[nedges++] = s->local[edges->at[e]];
	}
	s->offset[n] = nedges;
}

static enum hd_err bisect(struct splitting *s, const struct hd_bisect *part, struct hd_diag *diag)
{
	enum hd_err err = HD_E_AGAIN;

	if (s->metis) {
		err = hd_bisect_metis(part, s->how->seed, s->side, diag);
		if (err == HD_E_REFUSED && s->how->with == HD_SPLIT_AUTO) {
			s->metis = false;
			err = HD_E_AGAIN;
			if (diag)
				diag->text[0] = 0;        /* what comes is no failure */
		}
		s->nmetis += err == HD_OK;
	}
	return err == HD_E_AGAIN ? hd_bisect_own(part, s->side, diag) : err;
}

/* One cut: the vertices of the part, left ones first, each half still by id. */
static enum hd_err cut(struct splitting *s, uint32_t *vertex, uint32_t n, uint32_t least, uint32_t *nleft,
	struct hd_diag *diag)
{
	struct hd_bisect part = { n, s->offset, s->at, s->weight, least };
	uint32_t left = 0, right = 0;

	part_edges(s, vertex, n);
	enum hd_err err = bisect(s, &part, diag);
	if (err)
		return err;
	uint8_t flip = s->side[0];
	for (uint32_t i = 0; i < n; i++) {
		uint32_t v = vertex[i], side = s->side[i] ^ flip;
		s->group[v] = 2 * s->group[v] + side;
		if (side)
			s->spare[right++] = v;
		else
			vertex[left++] = v;
	}
	memcpy(vertex + left, s->spare, right * sizeof *vertex);
	*nleft = left;
	if (s->how->progress)
		s->how->progress(s->how->user, ++s->ndone, s->how->nintervals - 1);
	return HD_OK;
}

/* All parts of a level, then their halves; start[] has the bounds of the parts, nparts + 1. */
static enum hd_err cut_all(struct splitting *s, uint64_t *start, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	start[0] = 0;
	start[1] = s->graph->nvertices;
	for (uint32_t nparts = 1; nparts < s->how->nintervals && !err; nparts *= 2)
		for (uint32_t p = nparts; p-- > 0 && !err;) {
			uint64_t first = start[p], end = start[p + 1];
			uint32_t nleft = 0;
			err = cut(s, s->order + first, (uint32_t)(end - first),
				s->how->nintervals / nparts / 2, &nleft, diag);
			start[2 * p + 2] = end;
			start[2 * p + 1] = first + nleft;
			start[2 * p] = first;
		}
	return err;
}

static enum hd_err run(struct splitting *s, struct hd_diag *diag)
{
	uint64_t n = s->graph->nvertices, nedges = s->graph->edges.offset[n];
	uint64_t *start = hd_alloc(((uint64_t)s->how->nintervals + 2) * sizeof *start);
	enum hd_err err = HD_OK;

	s->order = hd_alloc(n * sizeof *s->order);
	s->spare = hd_alloc(n * sizeof *s->spare);
	s->local = hd_alloc(n * sizeof *s->local);
	s->offset = hd_alloc((n + 1) * sizeof *s->offset);
	s->at = hd_alloc((nedges + 1) * sizeof *s->at);
	s->weight = hd_alloc(n * sizeof *s->weight);
	s->side = hd_alloc(n);
	if (!start || !s->order || !s->spare || !s->local || !s->offset || !s->at || !s->weight || !s->side)
		err = hd_fail(diag, HD_E_NOMEM, "no memory to cut a graph of %llu vertices and %llu edges",
			(unsigned long long)n, (unsigned long long)nedges);
	for (uint64_t v = 0; v < n && !err; v++) {
		s->order[v] = (uint32_t)v;
		s->group[v] = 0;
	}
	if (!err)
		err = cut_all(s, start, diag);
	void *all[] = { start, s->order, s->spare, s->local, s->offset, s->at, s->weight, s->side };
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		hd_free(all[i]);
	return err;
}

enum hd_err hd_split_check(enum hd_split_with with, uint32_t nintervals, uint64_t nvertices,
	struct hd_diag *diag)
{
	if (!nintervals || (nintervals & (nintervals - 1)))
		return hd_fail(diag, HD_E_INVAL, "%u intervals: a power of two, of at least one vertex each",
			nintervals);
	if (nvertices && nintervals > nvertices)
		return hd_fail(diag, HD_E_INVAL, "%u intervals of %llu vertices: a power of two, of at least "
			"one vertex each", nintervals, (unsigned long long)nvertices);
	return with == HD_SPLIT_METIS && !hd_split_metis_built() ? hd_bisect_metis(NULL, 0, NULL, diag) :
		HD_OK;
}

enum hd_err hd_split(const struct hd_split_graph *graph, const struct hd_split_how *how, uint32_t *interval,
	enum hd_graph_splitter *used, struct hd_diag *diag)
{
	struct splitting s = { .graph = graph, .how = how, .group = interval,
		.metis = how->with == HD_SPLIT_METIS || (how->with == HD_SPLIT_AUTO &&
		hd_split_metis_built()) };
	enum hd_err err = hd_split_check(how->with, how->nintervals, graph->nvertices, diag);

	if (!err)
		err = run(&s, diag);
	if (!err)
		*used = s.nmetis ? HD_SPLITTER_METIS : HD_SPLITTER_OWN;
	return err;
}
