#include "cmd/bench/power_law.h"

#include <string.h>

#include "base/alloc.h"
#include "base/philox.h"

static struct hd_philox words(uint64_t key, uint64_t i, uint32_t what)
{
	return hd_philox((const uint32_t[4]){ (uint32_t)i, (uint32_t)(i >> 32), what, 0 }, key);
}

/* 53 bits of two words, as a number below 1; squared: the distribution of k^-1/2. */
static uint32_t rank_of(uint32_t a, uint32_t b, uint32_t n)
{
	double u = (double)((uint64_t)a << 21 | b >> 11) * 0x1p-53;
	return (uint32_t)(u * u * n);
}

static void deal(uint32_t *vertex, uint32_t n, uint64_t key)
{
	for (uint32_t i = 0; i < n; i++)
		vertex[i] = i;
	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = (uint32_t)((uint64_t)words(key, i, 1).word[0] * i >> 32), t = vertex[i - 1];
		vertex[i - 1] = vertex[j];
		vertex[j] = t;
	}
}

/* Rows of a, in the order in which b stands: at[] gets for each edge its b. */
static void sort_by(const uint32_t *a, const uint32_t *b, uint64_t nedges, uint64_t n, uint64_t *offset,
	uint32_t *at)
{
	memset(offset, 0, (n + 1) * sizeof *offset);
	for (uint64_t e = 0; e < nedges; e++)
		offset[a[e]]++;
	for (uint64_t v = 0, sum = 0; v <= n; v++) {
		uint64_t count = v < n ? offset[v] : 0;
		offset[v] = sum;
		sum += count;
	}
	for (uint64_t e = 0; e < nedges; e++)
		at[offset[a[e]]++] = b[e];
	memmove(offset + 1, offset, n * sizeof *offset);
	offset[0] = 0;
}

/* Of rows that ascend. */
static void drop_doubles(struct hd_power_law *g)
{
	uint64_t kept = 0, from = 0;

	for (uint64_t v = 0; v < g->nvertices; v++) {
		const uint64_t end = g->offset[v + 1], begin = kept;
		for (; from < end; from++)
			if (g->at[from] != v && (kept == begin || g->at[kept - 1] != g->at[from]))
				g->at[kept++] = g->at[from];
		g->offset[v + 1] = kept;
	}
	g->nedges = kept;
}

enum hd_err hd_power_law_make(struct hd_power_law *graph, uint32_t nvertices, uint64_t nedges, uint64_t seed,
	struct hd_diag *diag)
{
	const uint64_t key = hd_philox_key(seed, HD_RNG_USER), half = nedges / 2;
	struct hd_power_law g = { .nvertices = nvertices, .nedges = 2 * half };
	uint32_t *vertex = hd_alloc(nvertices * sizeof *vertex), *from = hd_alloc(g.nedges * sizeof *from),
		*to = hd_alloc(g.nedges * sizeof *to);

	g.offset = hd_alloc((nvertices + (uint64_t)1) * sizeof *g.offset);
	g.at = hd_alloc(g.nedges * sizeof *g.at);
	if (vertex && from && to && g.offset && g.at) {
		deal(vertex, nvertices, key);
		for (uint64_t e = 0; e < half; e++) {
			struct hd_philox w = words(key, e, 0);
			from[e] = to[half + e] = vertex[rank_of(w.word[0], w.word[1], nvertices)];
			to[e] = from[half + e] = vertex[rank_of(w.word[2], w.word[3], nvertices)];
		}
		/* by source, then, stably, by target: both columns change places in between */
		sort_by(from, to, g.nedges, nvertices, g.offset, g.at);
		for (uint64_t v = 0; v < nvertices; v++)
			for (uint64_t e = g.offset[v]; e < g.offset[v + 1]; e++) {
				from[e] = (uint32_t)v;
				to[e] = g.at[e];
			}
		sort_by(to, from, g.nedges, nvertices, g.offset, g.at);
		drop_doubles(&g);
		*graph = g;
	}
	bool complete = vertex && from && to && g.offset && g.at;
	hd_free(vertex);
	hd_free(from);
	hd_free(to);
	if (complete)
		return HD_OK;
	hd_power_law_free(&g);
	return hd_fail(diag, HD_E_NOMEM, "no memory for a graph of %u vertices and %llu edges", nvertices,
		(unsigned long long)nedges);
}

void hd_power_law_free(struct hd_power_law *graph)
{
	hd_free(graph->offset);
	hd_free(graph->at);
	*graph = (struct hd_power_law){ 0 };
}
