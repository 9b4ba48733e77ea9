/* All of a prepared graph against the rules of its header: digests, then content. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "data/prepared.h"

struct graph_checking { const struct hd_prepared *graph; const char *name; struct hd_diag *diag; };

static enum hd_err broken(const struct graph_checking *c, enum hd_prepared_section section, uint64_t at)
{
	return hd_fail(c->diag, HD_E_INPUT, "%s: section \"%s\" breaks its rules at place %llu: another "
		"program wrote it; prepare the graph again", c->name, hd_prepared_section_text(section),
		(unsigned long long)at);
}

static const uint8_t *file_bytes(const struct hd_prepared *graph)
{
	return (const uint8_t *)graph->interval - graph->head.section[HD_PREPARED_INTERVALS].offset;
}

static enum hd_err check_digests(const struct graph_checking *c)
{
	const struct hd_prepared_head *head = &c->graph->head;
	const uint8_t *bytes = file_bytes(c->graph);
	uint64_t end = HD_PREPARED_HEAD;

	for (int s = 0; s < HD_PREPARED_NSECTIONS; s++) {
		if (!head->section[s].bytes)
			continue;
		for (; end < head->section[s].offset; end++)
			if (bytes[end])
				return hd_fail(c->diag, HD_E_INTEGRITY, "%s: byte %llu, before section "
					"\"%s\", "
					"is not zero: the file was damaged; prepare the graph again", c->name,
					(unsigned long long)end,
					hd_prepared_section_text((enum hd_prepared_section)s));
		end = head->section[s].offset + head->section[s].bytes;
		if (hd_hash64(bytes + head->section[s].offset, head->section[s].bytes) !=
			head->section[s].digest)
			return hd_fail(c->diag, HD_E_INTEGRITY, "%s: section \"%s\" has another digest "
				"than the "
				"head says: the file was damaged; prepare the graph again", c->name,
				hd_prepared_section_text((enum hd_prepared_section)s));
	}
	return HD_OK;
}

/* n + 1 bounds that begin with 0, do not fall (or rise) and end with `last`. */
static enum hd_err check_offsets(const struct graph_checking *c, enum hd_prepared_section section,
	const uint64_t *offset, uint64_t n, uint64_t last, bool rise)
{
	if (offset[0] != 0)
		return broken(c, section, 0);
	for (uint64_t i = 0; i < n; i++)
		if (offset[i + 1] < offset[i] || offset[i + 1] > last || (rise && offset[i + 1] == offset[i]))
			return broken(c, section, i + 1);
	return offset[n] == last ? HD_OK : broken(c, section, n);
}

/* Rows ascend, stay below the bound, and do not name themselves. */
static enum hd_err check_rows(const struct graph_checking *c, enum hd_prepared_section section,
	const uint64_t *offset, const uint32_t *at, uint32_t bound, bool loops)
{
	for (uint64_t v = 0; v < c->graph->head.nvertices; v++)
		for (uint64_t e = offset[v]; e < offset[v + 1]; e++)
			if (at[e] >= bound || (e > offset[v] && at[e] <= at[e - 1]) || (!loops && at[e] == v))
				return broken(c, section, e);
	return HD_OK;
}

/* Each edge stands in `out` under its source, where `in` has it under its target: going through the rows of
 * `in`, those of `out` are met each from its begin to its end. */
static enum hd_err check_transposed(const struct graph_checking *c)
{
	const struct hd_prepared *g = c->graph;
	uint64_t n = g->head.nvertices, *next = hd_alloc(n * sizeof *next);
	enum hd_err err = HD_OK;

	if (!next)
		return hd_fail(c->diag, HD_E_NOMEM, "no memory to check the edges of %llu vertices",
			(unsigned long long)n);
	memcpy(next, g->out.offset, n * sizeof *next);
	for (uint64_t v = 0; v < n && !err; v++)
		for (uint64_t e = g->in.offset[v]; e < g->in.offset[v + 1] && !err; e++) {
			uint32_t from = g->in.at[e];
			if (next[from] == g->out.offset[from + 1] || g->out.at[next[from]++] != v)
				err = broken(c, HD_PREPARED_IN_SOURCES, e);
		}
	hd_free(next);
	return err;
}

static enum hd_err check_degrees(const struct graph_checking *c, enum hd_prepared_section section,
	struct hd_edges edges, const uint32_t *degree)
{
	for (uint64_t v = 0; v < c->graph->head.nvertices; v++)
		if (edges.offset[v + 1] - edges.offset[v] != degree[v])
			return broken(c, section, v);
	return HD_OK;
}

static enum hd_err check_edges(const struct graph_checking *c)
{
	const struct hd_prepared *g = c->graph;
	uint64_t n = g->head.nvertices;
	enum hd_err err;

	if ((err = check_offsets(c, HD_PREPARED_INTERVALS, g->interval, g->head.nintervals, n, true)) ||
		(err = check_offsets(c, HD_PREPARED_IN_OFFSETS, g->in.offset, n, g->head.nedges, false)) ||
		(err = check_rows(c, HD_PREPARED_IN_SOURCES, g->in.offset, g->in.at, (uint32_t)n, false)) ||
		(err = check_degrees(c, HD_PREPARED_IN_DEGREES, g->in, g->in_degree)))
		return err;
	if (g->head.directed && (
		(err = check_offsets(c, HD_PREPARED_OUT_OFFSETS, g->out.offset, n, g->head.nedges, false)) ||
		(err = check_rows(c, HD_PREPARED_OUT_TARGETS, g->out.offset, g->out.at, (uint32_t)n,
		false)) ||
		(err = check_degrees(c, HD_PREPARED_OUT_DEGREES, g->out, g->out_degree))))
		return err;
	return check_transposed(c);
}

static enum hd_err check_features(const struct graph_checking *c)
{
	const struct hd_prepared *g = c->graph;
	uint64_t n = g->head.section[HD_PREPARED_FEATURES].bytes / 4;
	enum hd_err err = HD_OK;

	if (g->head.sparse)
		err = check_offsets(c, HD_PREPARED_FEATURE_OFFSETS, g->feature_offset, g->head.nvertices, n,
			false);
	if (!err && g->head.sparse)
		err = check_rows(c, HD_PREPARED_FEATURE_COLUMNS, g->feature_offset, g->feature_column,
			g->head.width, true);
	for (uint64_t i = 0; i < n && !err; i++)
		if (!isfinite(g->feature[i]))
			err = broken(c, HD_PREPARED_FEATURES, i);
	return err;
}

static enum hd_err check_labels(const struct graph_checking *c)
{
	const struct hd_prepared *g = c->graph;
	uint64_t n = g->head.nvertices, count[4];

	for (uint64_t v = 0; v < n; v++)
		if (g->label[v] < -1 || g->label[v] >= (int32_t)g->head.nclasses)
			return broken(c, HD_PREPARED_LABELS, v);
	for (uint64_t v = n; v < (n + 3) / 4 * 4; v++)
		if (hd_prepared_mask(g->mask, v) != HD_GRAPH_REST)
			return broken(c, HD_PREPARED_MASKS, v);
	hd_prepared_count(g, count);
	if (!count[HD_GRAPH_TRAIN])
		return hd_fail(c->diag, HD_E_INPUT, "%s: no vertex of the training set has a label: there is "
			"nothing to train on", c->name);
	return HD_OK;
}

/* Each id of the input once, ascending in each interval. */
static enum hd_err check_ids(const struct graph_checking *c)
{
	const struct hd_prepared *g = c->graph;
	uint64_t n = g->head.nvertices;
	uint8_t *seen = hd_alloc(n / 8 + 1);
	enum hd_err err = HD_OK;

	if (!seen)
		return hd_fail(c->diag, HD_E_NOMEM, "no memory to check the ids of %llu vertices",
			(unsigned long long)n);
	memset(seen, 0, n / 8 + 1);
	for (uint32_t i = 0; i < g->head.nintervals; i++)
		for (uint64_t v = g->interval[i]; v < g->interval[i + 1] && !err; v++) {
			uint32_t id = g->id[v];
			if (id >= n || seen[id / 8] >> id % 8 & 1 ||
				(v > g->interval[i] && id <= g->id[v - 1]))
				err = broken(c, HD_PREPARED_IDS, v);
			else
				seen[id / 8] |= (uint8_t)(1u << id % 8);
		}
	hd_free(seen);
	return err;
}

/* The lists are those that the edges make. */
static enum hd_err check_halo(const struct graph_checking *c, const struct hd_halo *halo,
	struct hd_edges edges, enum hd_prepared_section offsets)
{
	enum hd_prepared_section lists = offsets + 1, bytes = offsets + 2;
	const struct hd_prepared_head *head = &c->graph->head;
	uint64_t nbytes = 0, nlists = head->section[lists].bytes / sizeof *halo->list;
	struct hd_halo_made made = { 0 };
	enum hd_err err = check_offsets(c, offsets, halo->offset, head->nintervals, nlists, false);

	for (uint32_t i = 0; i < head->nintervals && !err; i++) {
		err = hd_halo_make(c->graph->interval, head->nintervals, edges, i, &made, c->diag);
		if (!err && halo->offset[i + 1] - halo->offset[i] != made.nlists)
			err = broken(c, offsets, i);
		for (uint32_t l = 0; l < made.nlists && !err; l++) {
			const struct hd_halo_list *list = &halo->list[halo->offset[i] + l];
			if (list->to != made.list[l].to || list->count != made.list[l].count ||
				list->at != made.list[l].at + nbytes)
				err = broken(c, lists, halo->offset[i] + l);
		}
		if (!err && (made.nbytes > head->section[bytes].bytes - nbytes ||
			(made.nbytes && memcmp(halo->bytes + nbytes, made.bytes, made.nbytes) != 0)))
			err = broken(c, bytes, nbytes);
		nbytes += made.nbytes;
	}
	hd_halo_free(&made);
	return err || nbytes == head->section[bytes].bytes ? err : broken(c, bytes, nbytes);
}

enum hd_err hd_prepared_check(const struct hd_prepared *graph, const char *name, struct hd_diag *diag)
{
	struct graph_checking c = { graph, name, diag };
	enum hd_err err;

	if ((err = check_digests(&c)) || (err = check_edges(&c)) || (err = check_features(&c)) ||
		(err = check_labels(&c)) || (err = check_ids(&c)) ||
		(err = check_halo(&c, &graph->halo, graph->out, HD_PREPARED_HALO_OFFSETS)))
		return err;
	return graph->head.directed ? check_halo(&c, &graph->halo_back, graph->in, HD_PREPARED_BACK_OFFSETS) :
		HD_OK;
}
