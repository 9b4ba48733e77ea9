/* METIS, by its C interface: the only file that knows it. Numbers of Debian's build have 32 bits. */
#include <string.h>

#include <metis.h>

#include "base/alloc.h"
#include "sys/signal.h"
#include "gnn/split_int.h"

enum { NCON = 2, FEWEST = 32,             /* below: its coarsening has nothing to do, and says so on stderr */
       VERTICES_END = 1 << 29, EDGES_END = 1 << 30 };     /* from there on its sums leave 32 bits */

bool hd_split_metis_built(void) { return true; }

struct arrays { idx_t *offset, *at, *weight, *part; };

static void drop(struct arrays *a)
{
	hd_free(a->offset);
	hd_free(a->at);
	hd_free(a->weight);
	hd_free(a->part);
}

static enum hd_err fill(const struct hd_bisect *graph, struct arrays *a, struct hd_diag *diag)
{
	uint64_t n = graph->n, nedges = graph->offset[n];

	a->offset = hd_alloc((n + 1) * sizeof *a->offset);
	a->at = hd_alloc((nedges + 1) * sizeof *a->at);
	a->weight = hd_alloc(n * NCON * sizeof *a->weight);
	a->part = hd_alloc(n * sizeof *a->part);
	if (!a->offset || !a->at || !a->weight || !a->part)
		return hd_fail(diag, HD_E_NOMEM, "no memory to cut a graph of %llu vertices and %llu "
			"edges: take "
			"--splitter own, or a machine with more", (unsigned long long)n,
			(unsigned long long)nedges);
	for (uint64_t v = 0; v <= n; v++)
		a->offset[v] = (idx_t)graph->offset[v];
	for (uint64_t e = 0; e < nedges; e++)
		a->at[e] = (idx_t)graph->at[e];
	for (uint64_t v = 0; v < n; v++) {
		a->weight[NCON * v] = 1;
		a->weight[NCON * v + 1] = (idx_t)graph->weight[v];
	}
	return HD_OK;
}

static enum hd_err cut(const struct hd_bisect *graph, uint64_t seed, struct arrays *a, struct hd_diag *diag)
{
	real_t tolerance[NCON] = { (real_t)1.03, (real_t)1.05 };
	idx_t options[METIS_NOPTIONS], n = (idx_t)graph->n, ncon = NCON, nparts = 2, objective = 0;

	METIS_SetDefaultOptions(options);
	options[METIS_OPTION_OBJTYPE] = METIS_OBJTYPE_VOL;
	options[METIS_OPTION_SEED] = (idx_t)(seed & 0x7fffffff);
	options[METIS_OPTION_NUMBERING] = 0;
	int answer = METIS_PartGraphKway(&n, &ncon, a->offset, a->at, a->weight, NULL, NULL, &nparts, NULL,
		tolerance, options, &objective, a->part);
	if (answer == METIS_OK)
		return HD_OK;
	if (answer == METIS_ERROR_MEMORY)
		return hd_fail(diag, HD_E_NOMEM, "METIS has no memory to cut a graph of %u vertices: take "
			"--splitter own, or a machine with more", graph->n);
	/* It catches SIGTERM while it cuts, and has no other reason for this answer to a graph. */
	enum hd_err err = answer == METIS_ERROR ? hd_signal_term_again() : HD_OK;
	if (err)
		return hd_fail(diag, err, "stopped by SIGTERM while METIS cut a graph of %u vertices: start "
			"again", graph->n);
	return hd_fail(diag, HD_E_IO, "METIS failed%s while it cut a graph of %u vertices (its answer: %d): "
		"start again, or take --splitter own", answer == METIS_ERROR ?
		", or was stopped by a SIGTERM that this process ignores," : "", graph->n, answer);
}

/* Each side has as many vertices as it needs. */
static bool kept(const struct hd_bisect *graph, const idx_t *part)
{
	uint64_t count[2] = { 0 };

	for (uint32_t v = 0; v < graph->n; v++) {
		if (part[v] < 0 || part[v] > 1)
			return false;
		count[part[v]]++;
	}
	return count[0] >= graph->least && count[1] >= graph->least;
}

static enum hd_err too_large(const struct hd_bisect *graph, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_REFUSED, "METIS takes less than 2^29 vertices and 2^30 edges, counted both "
		"ways, not a graph of %u vertices: take --splitter own", graph->n);
}

enum hd_err hd_bisect_metis(const struct hd_bisect *graph, uint64_t seed, uint8_t *side, struct hd_diag *diag)
{
	struct arrays a = { 0 };
	enum hd_err err;

	uint64_t weight = graph->n;

	if (graph->n < FEWEST)
		return HD_E_AGAIN;
	if (graph->n >= VERTICES_END || graph->offset[graph->n] >= EDGES_END)
		return too_large(graph, diag);
	for (uint32_t v = 0; v < graph->n; v++)
		weight += graph->weight[v];
	if (!graph->offset[graph->n] || weight == graph->n)
		return HD_E_AGAIN;                 /* nothing to balance by */
	if (weight >= EDGES_END)
		return too_large(graph, diag);
	err = fill(graph, &a, diag);
	if (!err)
		err = cut(graph, seed, &a, diag);
	if (!err && !kept(graph, a.part))
		err = HD_E_AGAIN;
	for (uint32_t v = 0; v < graph->n && !err; v++)
		side[v] = (uint8_t)a.part[v];
	drop(&a);
	return err;
}
